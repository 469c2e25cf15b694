/* What `bench-load` measures: sagas, and calls outside sagas. */
#ifndef TESTS_BENCH_LOAD_H
#define TESTS_BENCH_LOAD_H

#include "tools/sagactl/command.h"

#define LOAD_ROUNDS_MAX 99

struct load_sagas_options {
    struct ctl *ctl;
    const char *saga, *id_prefix; /* id_prefix: NULL without business ids */
    struct slice input;           /* JSON */
    int64_t sagas, seconds;       /* so many, or as many as fit when `seconds` is not 0 */
    int64_t concurrency, rate, warmup;
    int64_t steps;     /* -1: as many as the definition has */
    int64_t batch;     /* so many starts in a request to /v1/sagas/batch; 0: one start, one request */
    int64_t in_flight; /* not 0: as many as that at most, by the service's count of ends */
    bool wait;         /* each answer waits for the end of its saga; false with `batch` and `in_flight` */
};

int load_sagas(const struct load_sagas_options *options); /* gives the exit code */

struct load_calls_options {
    struct ctl *ctl;
    const char *tool;
    struct slice args;      /* JSON */
    int64_t count, seconds; /* of a round: so many calls, or as many as fit when `seconds` is not 0 */
    int64_t concurrency, rate, warmup;
    int64_t per_run; /* so many in each run, each with a scope of its own */
    int64_t rounds;  /* LOAD_ROUNDS_MAX at most */
    bool duplicates; /* a round of repeats behind each round of new ones */
};

int load_calls(const struct load_calls_options *options); /* gives the exit code */

#endif
