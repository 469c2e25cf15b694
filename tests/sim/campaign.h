/* A campaign makes many runs on several processes: runs of seeds, or every crash point of some scenarios. It shrinks
 * failures and writes them to files. */
#ifndef SAGAD_TESTS_SIM_CAMPAIGN_H
#define SAGAD_TESTS_SIM_CAMPAIGN_H

#include "tests/sim/scenario.h"

#define CAMPAIGN_NAME_BYTES 96

struct campaign {
    const char *what; /* "seeds" */
    uint64_t count;
    /* Makes the i-th scenario, and its name in a few words. */
    void (*make)(const struct campaign *campaign, uint64_t i, struct scenario *out, char name[CAMPAIGN_NAME_BYTES],
                 struct arena *arena);
    void *context;
    uint32_t jobs;
    bool twice; /* each run is made twice; else one run in a hundred is */
    bool is_json;
    bool wants_all_seen;  /* a rare event that never happened is a failure */
    uint32_t shrink_runs; /* 0: failures are not shrunken */
    uint32_t failures_max;
    const char *folder; /* the folder for scenarios that failed */
};

bool campaign_run(const struct campaign *campaign); /* false: a run failed */

/* Makes and judges one run. It reports a failure as a campaign does. */
bool campaign_one(const struct campaign *campaign, const struct scenario *scenario, const char *name,
                  const char *replay, bool traced);

/* Makes a run in a process of its own: a crash of it is a failure of the invariant CRASH. In shrink.c. */
#define CRASH "CRASH"
void run_apart(const struct scenario *scenario, struct outcome_of_run *out);

#endif
