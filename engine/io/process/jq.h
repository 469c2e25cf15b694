/*
 * jq expressions by libjq, behind a guard: no environment, files, clock, modules, input or randomness; bounded in time,
 * output and memory. A hostile program can neither read what it should not, nor stop the loop, nor end the process: it
 * runs in a helper process (io/process/jq_helper.h) with limits of its own, while a worker thread waits.
 *
 * Compiling is the cost (15 ms, for one program or for many at once): each helper keeps compiled programs in a bounded
 * cache.
 */
#ifndef SAGAD_IO_PROCESS_JQ_H
#define SAGAD_IO_PROCESS_JQ_H

#include "base/arena.h"
#include "base/errors.h"
#include "io/loop/worker.h"

struct jq_limits {
    int64_t time_ms;         /* default 100 */
    size_t output_bytes_max; /* default 1 MiB */
};
extern const struct jq_limits jq_limits_default;

/*
 * Fork the process that helpers come from. Call it first thing in main(), while there is one thread and little memory;
 * without it the first evaluation does it.
 */
void jq_prepare(void);

/* Do they compile? Blocks; for sagactl and worker threads. ERR_INVALID with the index of the first that does not, and
 * jq's own words in the detail. */
MUST_USE enum err_code jq_check(const struct slice *programs, size_t count, size_t *failed_index, struct err *err);

/*
 * Evaluate programs over one input, on this thread. Exactly one value must come out of each; several or none are an
 * error that says so. The outputs are JSON texts in the arena.
 */
MUST_USE enum err_code jq_evaluate(const struct slice *programs, size_t count, struct slice input_json,
                                   const struct jq_limits *limits, struct arena *arena, struct slice *outputs,
                                   size_t *failed_index, struct err *err);

/* The same on a worker thread. Everything is borrowed until `done`, which is called exactly once
 * on the loop's thread. */
struct jq_job {
    struct worker_job job;
    const struct slice *programs; /* in */
    size_t count;                 /* in */
    struct slice input_json;      /* in */
    bool check_only;              /* in: compile each, evaluate none */
    struct arena *arena;          /* in: for the outputs; used by the worker thread alone until done */
    struct slice *outputs;        /* out: `count` of them, caller's array */
    size_t failed_index;          /* out, with an error */
    enum err_code code;           /* out */
    struct err err;               /* out */
    void (*done)(struct jq_job *job);
};
void jq_submit(struct loop *loop, struct jq_job *job);

#endif
