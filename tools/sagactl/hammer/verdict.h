/*
 * Judges from the evidence about a receiver what a definition may declare. It is pure: evidence in, verdict out.
 *
 * A claim is shown, refuted, or neither. "Neither" is not good enough to be declared: nobody has seen it.
 */
#ifndef SAGACTL_HAMMER_VERDICT_H
#define SAGACTL_HAMMER_VERDICT_H

#include "base/arena.h"
#include "core/language/policy.h"

/* A trial is done to a receiver several times, each time with a new operation. */
/*  id                name           what people read */
#define TRIAL_MAP(X)                                                                                                   \
    X(TRIAL_SINGLE, "single", "one call")                                                                              \
    X(TRIAL_REPEATED, "repeated", "the same call again and again")                                                     \
    X(TRIAL_AT_ONCE, "at_once", "the same call many times at once")                                                    \
    X(TRIAL_CUT, "cut", "connection cut, then the same call again")                                                    \
    X(TRIAL_OTHER_KEY, "other_key", "the same arguments under another key")                                            \
    X(TRIAL_OTHER_ARGS, "other_arguments", "other arguments under the same key")                                       \
    X(TRIAL_UNDO_FIRST, "undo_first", "undone before it came, then the call")                                          \
    X(TRIAL_UNDO_TWICE, "undo_twice", "undone, and undone again")

#define X(id, name, text) id,
enum trial { TRIAL_MAP(X) TRIAL_COUNT };
#undef X

const char *trial_name(enum trial trial);
const char *trial_text(enum trial trial);

enum counter {                 /* how effects are counted, from the best to the worst */
               COUNTER_TOOL,   /* a tool that the user names */
               COUNTER_PROBE,  /* the tool's own probe, whose result is a number */
               COUNTER_ANSWERS /* the results of the answers count: two different results are two effects */
};

struct tally {
    uint32_t operations, calls;
    int64_t effects;     /* the effects of all operations */
    int64_t most;        /* the most effects of one operation */
    uint32_t lost;       /* operations that were answered as completed and had no effect */
    uint32_t refused;    /* answers that meant "no effect" although the operation had taken effect */
    uint32_t unanswered; /* operations that no call brought to an end */
};

#define LATE_MAX 8

struct lateness {     /* repeats that long after the first call */
    int64_t after_ms; /* at least */
    int64_t most_ms;  /* the longest wait: a wait may take longer than asked for */
    uint32_t operations, calls;
    uint32_t again; /* operations that took effect a second time */
};

struct evidence {
    enum counter counter;
    bool tells_apart; /* the counter sees each new operation as one effect more */
    struct tally tallies[TRIAL_COUNT];
    struct lateness late[LATE_MAX]; /* the tallies of late repeats, sorted by time */
    size_t late_count;
    bool has_probe;
    uint32_t probes, probe_said_absent, probe_said_done; /* the last two: wrongly */
    uint32_t probe_unsure;                               /* it did not answer the question */
    int64_t probe_unseen_ms;                             /* the longest time for which it did not see an effect */
    uint32_t undo_refused;                               /* undoing what was not there did not complete */
    uint32_t settled; /* refusals with a status of key.settles although the operation had taken effect */
};

struct declared {
    enum effect effect;
    int64_t window_ms; /* the window of keyed */
    bool has_undo, tolerates_absent, voids_key, has_settles;
    bool keeps_keys;     /* each key is committed with its effect: the barrier of `sql` */
    bool believe_window; /* what of the window was not tried is the user's word */
};

enum shown { SHOWN, NOT_SHOWN, REFUTED };

struct claim {
    enum shown shown;
    struct slice why; /* a sentence */
};

#define EXCESS_MAX 8

struct verdict {
    struct claim claims[EFFECT_COUNT];
    int64_t window_ms; /* the longest lateness at which repeats were harmless; 0: none was tried, or none was */
    int64_t forgot_ms; /* the lateness at which a repeat took effect again; 0: none did */
    struct slice excess[EXCESS_MAX]; /* what is declared and was not seen, a sentence each */
    size_t excess_count;
    struct slice notes[EXCESS_MAX]; /* what is no lie and good to know */
    size_t note_count;
    struct slice next; /* what the author of the definition does now */
};

void verdict_of(const struct evidence *evidence, const struct declared *declared, struct arena *arena,
                struct verdict *out);

#endif
