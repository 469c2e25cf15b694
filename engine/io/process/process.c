/*
 * Child processes on the loop.
 *
 * Each child leads its own process group, and a stop ends the whole group: a stopped shell script must not leave its
 * `curl` behind. Once the child was reaped, the rest of the group is killed. A descendant that left the group and holds
 * a pipe gets one second before we close our end.
 */
#include "io/process/process.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/process/spawn.h"

#define TERM_GRACE_MS 2000
#define PIPE_GRACE_MS 1000
#define READ_BYTES ((size_t)64 * 1024)
#define JOB_MAGIC UINT32_C(0x50726f63)

enum process_phase { PROCESS_RUNNING, PROCESS_TERMINATING, PROCESS_KILLED, PROCESS_EXITED, PROCESS_ENDING };
enum { PIPE_IN, PIPE_OUT, PIPE_ERR, PIPE_COUNT };

struct process_job {
    uint32_t magic;
    enum process_phase phase;
    struct loop *loop;
    struct process_run *run;
    struct spawned process;
    uv_pipe_t pipe[PIPE_COUNT];
    uv_write_t write;
    struct timer timer;
    struct buffer output[PIPE_COUNT]; /* [PIPE_IN] stays unused */
    int handles_open;
    char chunk[READ_BYTES];
};

static struct process_job *job_of(void *pointer)
{
    struct process_job *job = pointer;

    CHECK(job && job->magic == JOB_MAGIC);
    return job;
}

static void job_end(struct process_job *job)
{
    struct process_run *run = job->run;

    timer_stop(job->loop, &job->timer);
    run->stdout_text = arena_slice(run->arena, buffer_slice(&job->output[PIPE_OUT]));
    run->stderr_text = arena_slice(run->arena, buffer_slice(&job->output[PIPE_ERR]));
    buffer_fini(&job->output[PIPE_OUT]);
    buffer_fini(&job->output[PIPE_ERR]);
    job->magic = 0;
    free(job);
    run->internal = NULL;
    run->done(run);
}

static void on_closed(uv_handle_t *handle)
{
    struct process_job *job = job_of(handle->data);

    if (--job->handles_open == 0) {
        job_end(job);
    }
}

static void handle_close(uv_handle_t *handle)
{
    if (!uv_is_closing(handle)) {
        uv_close(handle, on_closed);
    }
}

static void pipes_close(struct process_job *job)
{
    for (int i = 0; i < PIPE_COUNT; i++) {
        handle_close((uv_handle_t *)&job->pipe[i]);
    }
}

static void group_kill(struct process_job *job, int signal_number)
{
    if (job->process.pid > 1) {
        (void)kill(-job->process.pid, signal_number); /* a group that is already gone is fine */
    }
}

static void on_timer(struct timer *timer);

/* Moves the job towards its end. Only this function changes the phase. */
static void job_advance(struct process_job *job, enum process_phase to)
{
    if (to <= job->phase) {
        return;
    }
    job->phase = to;
    switch (to) {
    case PROCESS_RUNNING:
        UNREACHABLE();
    case PROCESS_TERMINATING:
        group_kill(job, SIGTERM);
        timer_start(job->loop, &job->timer, TERM_GRACE_MS, on_timer);
        return;
    case PROCESS_KILLED:
        group_kill(job, SIGKILL);
        timer_stop(job->loop, &job->timer);
        return;
    case PROCESS_EXITED:
        group_kill(job, SIGKILL);
        timer_start(job->loop, &job->timer, PIPE_GRACE_MS, on_timer);
        handle_close((uv_handle_t *)&job->process.signal);
        handle_close((uv_handle_t *)&job->pipe[PIPE_IN]); /* the child no longer reads its input */
        return;
    case PROCESS_ENDING:
        timer_stop(job->loop, &job->timer);
        handle_close((uv_handle_t *)&job->process.signal);
        pipes_close(job);
        return;
    }
}

static void on_timer(struct timer *timer)
{
    struct process_job *job = container_of(timer, struct process_job, timer);

    switch (job->phase) {
    case PROCESS_RUNNING:
        job->run->timed_out = true;
        job_advance(job, PROCESS_TERMINATING);
        return;
    case PROCESS_TERMINATING:
        job_advance(job, PROCESS_KILLED);
        return;
    case PROCESS_EXITED:
        job_advance(job, PROCESS_ENDING);
        return;
    case PROCESS_KILLED:
    case PROCESS_ENDING:
        UNREACHABLE();
    }
}

static void on_exit_status(struct spawned *process, int exit_code, int signal_number)
{
    struct process_job *job = job_of(process->signal.data);

    job->run->signal_number = signal_number;
    job->run->exit_code = exit_code;
    job_advance(job, PROCESS_EXITED);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct process_job *job = job_of(handle->data);

    (void)suggested; /* one chunk serves both pipes, because each read empties it */
    *buf = uv_buf_init(job->chunk, sizeof(job->chunk));
}

static void on_output(uv_stream_t *stream, ssize_t bytes, const uv_buf_t *buf)
{
    struct process_job *job = job_of(stream->data);
    struct buffer *output = &job->output[(uv_pipe_t *)stream - job->pipe];

    if (bytes < 0) {
        handle_close((uv_handle_t *)stream);
        return;
    }
    if (output->overflow) {
        return; /* further output is read and dropped until the group is gone */
    }
    buffer_put(output, buf->base, (size_t)bytes);
    if (output->overflow) {
        job->run->too_large = true;
        job_advance(job, PROCESS_KILLED);
    }
}

static void on_input_written(uv_write_t *write, int status)
{
    struct process_job *job = job_of(write->data);

    (void)status; /* a program may end without reading its input */
    handle_close((uv_handle_t *)&job->pipe[PIPE_IN]);
}

/* Ignores SIGPIPE: a child that closes its input must not end this process. */
static void signals_prepare(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* cannot fail for a signal that exists */
}

static void run_reset(struct process_run *run)
{
    run->started = run->timed_out = run->too_large = run->cancelled = false;
    run->exit_code = -1;
    run->signal_number = 0;
    run->stdout_text = run->stderr_text = SLICE_NONE;
    run->error = NULL;
}

/*
 * Returns the bound on processor time. A process that leaves its group is not ended with the group, and must not use a
 * processor for ever. A program that keeps to its time never meets this bound, not even with a thread on each
 * processor.
 */
static rlim_t processor_s(const struct process_run *run)
{
    long processors = sysconf(_SC_NPROCESSORS_CONF);
    int64_t life_s = (run->timeout_ms + TERM_GRACE_MS + 999) / 1000;

    return (rlim_t)(processors > 0 ? processors : 1) * (rlim_t)life_s;
}

static int job_spawn(struct process_job *job)
{
    struct process_run *run = job->run;
    const struct spawn how = {.argv = run->argv,
                              .env = run->env,
                              .cwd = run->cwd,
                              .pipes = {&job->pipe[PIPE_IN], &job->pipe[PIPE_OUT], &job->pipe[PIPE_ERR]},
                              .programs = run->programs,
                              .processor_s = processor_s(run)};

    job->process.exited = on_exit_status;
    job->process.signal.data = job;
    return spawn(job->loop, &job->process, &how);
}

void process_start(struct loop *loop, struct process_run *run)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct process_job *job = memory_alloc(sizeof(*job));
    uv_buf_t input;
    int code;

    CHECK(run->done && run->arena && run->argv && run->argv[0]);
    CHECK(pthread_once(&once, signals_prepare) == 0);
    run_reset(run);
    run->internal = job;
    job->magic = JOB_MAGIC;
    job->loop = loop;
    job->run = run;
    for (int i = 0; i < PIPE_COUNT; i++) {
        CHECK(uv_pipe_init(loop_uv(loop), &job->pipe[i], 0) == 0);
        job->pipe[i].data = job;
        buffer_init(&job->output[i], run->output_bytes_max);
    }
    code = job_spawn(job);
    job->handles_open = PIPE_COUNT + 1;
    if (code != 0) {
        run->error = uv_strerror(code);
        job_advance(job, PROCESS_ENDING);
        return;
    }
    run->started = true;
    CHECK(uv_read_start((uv_stream_t *)&job->pipe[PIPE_OUT], on_alloc, on_output) == 0);
    CHECK(uv_read_start((uv_stream_t *)&job->pipe[PIPE_ERR], on_alloc, on_output) == 0);
    timer_start(loop, &job->timer, run->timeout_ms, on_timer);
    input = uv_buf_init((char *)run->input.ptr, (unsigned)run->input.len);
    job->write.data = job;
    if (run->input.len == 0 ||
        uv_write(&job->write, (uv_stream_t *)&job->pipe[PIPE_IN], &input, 1, on_input_written) != 0) {
        handle_close((uv_handle_t *)&job->pipe[PIPE_IN]);
    }
}

void process_cancel(struct process_run *run)
{
    struct process_job *job;

    if (!run->internal) {
        return;
    }
    job = job_of(run->internal);
    if (job->phase == PROCESS_RUNNING) {
        run->cancelled = true;
        job_advance(job, PROCESS_TERMINATING);
    }
}
