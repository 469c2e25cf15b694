/* Runs jobs on libuv's pool of threads. The request of the pool is hidden here, so that owners of jobs need not include
 * uv.h. */
#include "io/loop/worker.h"

#include <stdlib.h>
#include <uv.h>

#include "base/arena.h"

struct worker_request {
    uv_work_t work;
    struct worker_job *job;
};

static void on_work(uv_work_t *work)
{
    struct worker_request *request = container_of(work, struct worker_request, work);

    request->job->work(request->job);
}

static void on_after_work(uv_work_t *work, int status)
{
    struct worker_request *request = container_of(work, struct worker_request, work);
    struct worker_job *job = request->job;

    CHECK(status == 0); /* jobs are never cancelled */
    job->internal = NULL;
    free(request);
    job->done(job);
}

void worker_submit(struct loop *loop, struct worker_job *job)
{
    struct worker_request *request = memory_alloc(sizeof(*request));

    CHECK(job->work && job->done);
    request->job = job;
    job->internal = request;
    CHECK(uv_queue_work(loop_uv(loop), &request->work, on_work, on_after_work) == 0);
}
