/* What `bench-load` measures: sagas, and calls outside sagas. */
#ifndef TESTS_BENCH_LOAD_H
#define TESTS_BENCH_LOAD_H

#include "tools/sagactl/command.h"

#define LOAD_ROUNDS_MAX 99

struct load_sagas_options {
    struct ctl *ctl;
    const char *saga, *id_prefix; /* id_prefix: NULL without business ids */
    struct slice input;           /* JSON */
    int64_t sagas, seconds;       /* the number of sagas; `seconds` not 0: as many as fit into that time */
    int64_t concurrency, rate, warmup;
    int64_t steps;     /* -1: the number of steps that the definition has */
    int64_t batch;     /* the number of starts in one request to /v1/sagas/batch; 0: each start is a request */
    int64_t in_flight; /* the most sagas under way, by the service's count of ends; 0: no bound */
    bool wait;         /* each answer waits for the end of its saga; not with `batch` or `in_flight` */
};

int load_sagas(const struct load_sagas_options *options); /* gives the exit code */

struct load_calls_options {
    struct ctl *ctl;
    const char *tool;
    struct slice args;      /* JSON */
    int64_t count, seconds; /* of one round: the number of calls; `seconds` not 0: as many as fit into that time */
    int64_t concurrency, rate, warmup;
    int64_t per_run; /* the number of calls in each run; each run has a scope of its own */
    int64_t pause_s; /* between a round of new calls and the round of their repeats */
    int64_t rounds;  /* at most LOAD_ROUNDS_MAX */
    bool duplicates; /* a round of repeats follows each round of new calls */
    bool mcp;        /* a round of other new calls, through /mcp, follows each round of new calls */
    /* One round of one kind alone, by its name, so that what it costs can be measured from outside; else NULL. */
    const char *only;
    const char *run_prefix; /* of the names of runs; NULL: one that no other run of the program has */
    int64_t made;           /* with `only` "repeated": as many calls were made under this prefix */
};

int load_calls(const struct load_calls_options *options); /* gives the exit code */

#endif
