/* A small pool of threads for work that would block the loop (name resolution, jq, a connect). */
#ifndef SAGAD_IO_LOOP_WORKER_H
#define SAGAD_IO_LOOP_WORKER_H

#include "io/loop/loop.h"

/*
 * A job lies in its owner and stays there until `done` was called on the loop's thread, exactly once. `work` runs on a
 * thread of the pool and must touch only what the job owns.
 */
struct worker_job {
    void (*work)(struct worker_job *job);
    void (*done)(struct worker_job *job);
    void *internal;
};
void worker_submit(struct loop *loop, struct worker_job *job);

#endif
