/* The public functions: they send requests to a helper process, from this thread or from a worker thread. */
#include "io/process/jq.h"

#include "base/check.h"
#include "io/process/jq_helper.h"

const struct jq_limits jq_limits_default = {.time_ms = 100, .output_bytes_max = (size_t)1024 * 1024};

void jq_prepare(void)
{
    jq_helper_prepare();
}

enum err_code jq_check(const struct slice *programs, size_t count, size_t *failed_index, struct err *err)
{
    struct jq_request request = {
        .programs = programs, .count = count, .check_only = true, .limits = &jq_limits_default};

    jq_request_run(&request);
    *failed_index = request.index;
    if (request.code != ERR_OK && err) {
        *err = request.err;
    }
    return request.code;
}

enum err_code jq_evaluate(const struct slice *programs, size_t count, struct slice input_json,
                          const struct jq_limits *limits, struct arena *arena, struct slice *outputs,
                          size_t *failed_index, struct err *err)
{
    struct jq_request request = {
        .programs = programs,
        .count = count,
        .input_json = input_json,
        .limits = limits ? limits : &jq_limits_default,
        .arena = arena,
        .outputs = outputs,
    };

    jq_request_run(&request);
    if (request.code != ERR_OK) {
        if (failed_index) {
            *failed_index = request.index;
        }
        if (err) {
            *err = request.err;
        }
    }
    return request.code;
}

static void on_work(struct worker_job *worker)
{
    struct jq_job *job = container_of(worker, struct jq_job, job);
    struct jq_request request = {
        .programs = job->programs,
        .count = job->count,
        .input_json = job->input_json,
        .check_only = job->check_only,
        .limits = &jq_limits_default,
        .arena = job->arena,
        .outputs = job->outputs,
    };

    jq_request_run(&request);
    job->code = request.code;
    job->failed_index = request.index;
    job->err = request.err;
}

static void on_done(struct worker_job *worker)
{
    struct jq_job *job = container_of(worker, struct jq_job, job);

    job->done(job);
}

void jq_submit(struct loop *loop, struct jq_job *job)
{
    job->job.work = on_work;
    job->job.done = on_done;
    worker_submit(loop, &job->job);
}
