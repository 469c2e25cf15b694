/*
 * What `sagactl doctor` concludes from what sagad and PostgreSQL say of themselves: a list of findings, each with what
 * it is, where it is and what to do. Pure: whoever asks hands the answers in.
 */
#ifndef SAGACTL_DOCTOR_DIAGNOSIS_H
#define SAGACTL_DOCTOR_DIAGNOSIS_H

#include "tools/sagactl/command.h"

enum finding_state { FINDING_TROUBLE, FINDING_WARNING, FINDING_UNKNOWN, FINDING_FINE, FINDING_STATE_COUNT };

struct finding {
    const char *check; /* one word: "clock" */
    enum finding_state state;
    struct slice what, where, act; /* act: what to do; empty where nothing is to be done */
};

#define FINDINGS_MAX 200 /* what is beyond is dropped: the first ones say enough */

struct diagnosis {
    struct ctl *ctl;    /* the arena of `ctl` holds the texts */
    struct slice where; /* the place of findings about PostgreSQL */
    bool has_virtual_clock;
    int64_t virtual_ahead_ms; /* how far `sagactl time` has moved the clock of this `sagad dev` ahead */
    struct finding items[FINDINGS_MAX];
    size_t count;
};

extern const char *const finding_state_names[FINDING_STATE_COUNT];

/* Adds a finding. The texts are borrowed. */
void diagnosis_add(struct diagnosis *d, const char *check, enum finding_state state, struct slice what,
                   struct slice where, struct slice act);
size_t diagnosis_count(const struct diagnosis *d, enum finding_state state);

/* Names the mode of replication by the member `database` of /v1/engines, and what it promises. */
void judge_replication(struct diagnosis *d, struct slice database);

/* Adds what sagad warns of; behind its last semicolon stands what to do. */
void diagnose_warning(struct diagnosis *d, struct slice text);

/* Judges the answer of /readyz?verbose. */
void diagnose_readiness(struct diagnosis *d, struct slice server, struct slice answer);

/*
 * Judges the answer of /v1/engines. This machine's clock showed `asked_ms` when it was asked for, and `answered_ms`
 * when it came.
 */
void diagnose_engines(struct diagnosis *d, struct slice answer, int64_t asked_ms, int64_t answered_ms);

#endif
