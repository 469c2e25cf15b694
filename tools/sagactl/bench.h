/* What `bench` measures besides sagas. */
#ifndef SAGACTL_BENCH_H
#define SAGACTL_BENCH_H

#include "tools/sagactl/command.h"

#define BENCH_ROUNDS_MAX 99

struct bench_calls_options {
    struct ctl *ctl;
    const char *tool;
    struct slice args;     /* JSON */
    int64_t count, seconds; /* of a round: so many calls, or as many as fit when `seconds` is not 0 */
    int64_t concurrency, rate, warmup;
    int64_t per_run;       /* so many in each run, each with a scope of its own */
    int64_t rounds;        /* BENCH_ROUNDS_MAX at most */
    bool duplicates;       /* a round of repeats behind each round of new ones */
};

int bench_calls(const struct bench_calls_options *options); /* gives the exit code */

#endif
