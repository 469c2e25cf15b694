/* Many runs, on several processes: seeds, or every crash point of some scenarios. Failures are shrunken and written to
 * files. */
#ifndef SAGAD_TESTS_SIM_CAMPAIGN_H
#define SAGAD_TESTS_SIM_CAMPAIGN_H

#include "tests/sim/scenario.h"

#define CAMPAIGN_NAME_BYTES 96

struct campaign {
    const char *what; /* "seeds" */
    uint64_t count;
    /* The i-th scenario, and its name in a few words. */
    void (*make)(const struct campaign *campaign, uint64_t i, struct scenario *out, char name[CAMPAIGN_NAME_BYTES],
                 struct arena *arena);
    void *context;
    uint32_t jobs;
    bool twice; /* each run is made twice; else one in a hundred */
    bool is_json;
    bool wants_all_seen;  /* a rare thing that never happened is a failure */
    uint32_t shrink_runs; /* 0: failures are kept as they are */
    uint32_t failures_max;
    const char *folder; /* for the scenarios that failed */
};

bool campaign_run(const struct campaign *campaign); /* false: something failed */

/* One run, judged: a failure is told as a campaign tells it. */
bool campaign_one(const struct campaign *campaign, const struct scenario *scenario, const char *name,
                  const char *replay, bool traced);

/* In a process of its own: a crash is a failure of the invariant CRASH. shrink.c */
#define CRASH "CRASH"
void run_apart(const struct scenario *scenario, struct outcome_of_run *out);

#endif
