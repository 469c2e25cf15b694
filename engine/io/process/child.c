/*
 * Child processes that stay.
 *
 * The owner may let go of a child at any time, while uv still holds handles. Therefore the job outlives the `struct
 * child`, and each callback first checks whether there still is an owner.
 */
#include "io/process/child.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "io/process/spawn.h"

#define TERM_GRACE_MS 2000
#define PIPE_GRACE_MS 1000
#define READ_BYTES ((size_t)64 * 1024)
#define TURN_BYTES ((size_t)128 * 1024) /* the most bytes of output read in one turn of the loop */
#define BREATH_MS 1
#define JOB_MAGIC UINT32_C(0x4b696e64)

enum { HANDLE_COUNT = 3 }; /* the process, its input and its output */

struct child_job {
    uint32_t magic;
    struct list_link link;
    struct children *children; /* NULL once the children are gone */
    struct loop *loop;
    struct child *owner; /* NULL once the owner has let go */
    struct spawned process;
    uv_pipe_t input, output;
    struct timer timer;   /* runs while the child is being ended */
    struct timer breath;  /* runs until the output is read again */
    size_t turn_bytes;    /* bytes read in this turn */
    size_t idle_bytes;    /* bytes written since child_heard() */
    struct deferred told; /* defers on_end, which child_write() must not call itself */
    struct buffer line;
    bool dropping; /* drops the rest of a line that is too long */
    bool exited, ended;
    int handles_open;
    char chunk[READ_BYTES];
};

struct child_write {
    uv_write_t write;
    size_t len;
    char bytes[];
};

static struct child_job *job_of(void *pointer)
{
    struct child_job *job = pointer;

    CHECK(job && job->magic == JOB_MAGIC);
    return job;
}

static void on_closed(uv_handle_t *handle)
{
    struct child_job *job = job_of(handle->data);

    if (--job->handles_open == 0) {
        timer_stop(job->loop, &job->timer);
        timer_stop(job->loop, &job->breath);
        loop_defer_cancel(job->loop, &job->told);
        if (job->children) {
            list_remove(&job->children->jobs, &job->link);
        }
        buffer_fini(&job->line);
        job->magic = 0;
        free(job);
    }
}

static void handle_close(uv_handle_t *handle)
{
    if (!uv_is_closing(handle)) {
        uv_close(handle, on_closed);
    }
}

static void group_kill(struct child_job *job, int signal_number)
{
    if (job->process.pid > 1) {
        (void)kill(-job->process.pid, signal_number); /* a group that is already gone is fine */
    }
}

static void on_told(struct deferred *deferred)
{
    struct child_job *job = container_of(deferred, struct child_job, told);
    struct child *owner = job->owner;

    if (owner) {
        job->owner = NULL;
        owner->internal = NULL;
        owner->on_end(owner);
    }
}

static void on_timer(struct timer *timer)
{
    struct child_job *job = container_of(timer, struct child_job, timer);

    group_kill(job, SIGKILL);
    if (job->exited) {
        handle_close((uv_handle_t *)&job->output); /* a process that left the group holds the output open */
    }
}

/* Ends a job that will say nothing more, or must not. The process group ends, and the owner is told. */
static void job_end(struct child_job *job)
{
    if (job->ended) {
        return;
    }
    job->ended = true;
    handle_close((uv_handle_t *)&job->input);
    handle_close((uv_handle_t *)&job->output);
    if (!job->exited) {
        group_kill(job, SIGTERM);
        timer_start(job->loop, &job->timer, TERM_GRACE_MS, on_timer);
    }
    if (job->owner) {
        loop_defer(job->loop, &job->told, on_told);
    }
}

static void on_pipe_grace_over(struct timer *timer)
{
    job_end(container_of(timer, struct child_job, timer));
}

static void on_exit_status(struct spawned *process, int exit_code, int signal_number)
{
    struct child_job *job = job_of(process->signal.data);

    (void)exit_code; /* this child should not have ended at all */
    (void)signal_number;
    job->exited = true;
    group_kill(job, SIGKILL); /* ends the remaining processes of the group */
    job->process.pid = 0;
    handle_close((uv_handle_t *)&job->process.signal);
    if (job->ended) {
        timer_stop(job->loop, &job->timer);
    } else {
        timer_start(job->loop, &job->timer, PIPE_GRACE_MS,
                    on_pipe_grace_over); /* the last lines may still be in the pipe */
    }
}

/* --- what it says -------------------------------------------------------------------------------------------- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct child_job *job = job_of(handle->data);

    (void)suggested; /* one chunk is enough, because each read empties it */
    *buf = uv_buf_init(job->chunk, sizeof(job->chunk));
}

static void line_grow(struct child_job *job, struct slice part)
{
    if (job->dropping) {
        return;
    }
    buffer_put_slice(&job->line, part);
    if (job->line.overflow) {
        job->dropping = true;
        if (job->owner) {
            job->owner->on_long(job->owner);
        }
    }
}

static void line_end(struct child_job *job)
{
    struct slice line = slice_trim(buffer_slice(&job->line));

    if (!job->dropping && line.len > 0 && job->owner) {
        job->owner->on_line(job->owner, line);
    }
    job->dropping = false;
    buffer_reset(&job->line);
}

static void on_output(uv_stream_t *stream, ssize_t bytes, const uv_buf_t *buf);

static void on_breath(struct timer *timer)
{
    struct child_job *job = container_of(timer, struct child_job, breath);

    job->turn_bytes = 0;
    if (!job->ended) {
        (void)uv_read_start((uv_stream_t *)&job->output, on_alloc,
                            on_output); /* the pipe may be read already, but it is not closing */
    }
}

/* Bounds the output of a child. A child that writes without end must not hold up the loop, and must not go on for ever
 * when nobody reads its output. */
static void output_count(struct child_job *job, size_t bytes)
{
    if (job->turn_bytes == 0) {
        timer_start(job->loop, &job->breath, BREATH_MS, on_breath);
    }
    job->turn_bytes += bytes;
    job->idle_bytes += bytes;
    if (job->turn_bytes >= TURN_BYTES) {
        (void)uv_read_stop((uv_stream_t *)&job->output); /* never fails */
    }
    if (job->owner && job->owner->idle_bytes_max && job->idle_bytes > job->owner->idle_bytes_max) {
        job_end(job);
    }
}

void child_heard(struct child *child)
{
    if (child->internal) {
        job_of(child->internal)->idle_bytes = 0;
    }
}

static void on_output(uv_stream_t *stream, ssize_t bytes, const uv_buf_t *buf)
{
    struct child_job *job = job_of(stream->data);
    struct slice rest = {buf->base, bytes > 0 ? (size_t)bytes : 0};

    if (bytes < 0) {
        job_end(job);
        return;
    }
    while (rest.len > 0 && job->owner) { /* the owner may let go between two lines */
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;

        line_grow(job, (struct slice){rest.ptr, len});
        if (end) {
            line_end(job);
            len++;
        }
        rest.ptr += len;
        rest.len -= len;
    }
    if (!job->ended) {
        output_count(job, (size_t)bytes);
    }
}

/* --- what it is told ----------------------------------------------------------------------------------------- */

static void on_written(uv_write_t *write, int status)
{
    struct child_job *job = job_of(write->data);

    free(container_of(write, struct child_write, write));
    if (status < 0) {
        job_end(job); /* the child no longer reads its input */
    }
}

bool child_write(struct child *child, struct slice line)
{
    struct child_job *job;
    struct child_write *write;
    uv_buf_t buf;

    if (!child->internal) {
        return false;
    }
    job = job_of(child->internal);
    if (job->ended || job->exited ||
        uv_stream_get_write_queue_size((uv_stream_t *)&job->input) + line.len + 1 > child->unread_bytes_max) {
        return false;
    }
    write = memory_alloc(sizeof(*write) + line.len + 1);
    memcpy(write->bytes, line.ptr, line.len);
    write->bytes[line.len] = '\n';
    write->len = line.len + 1;
    write->write.data = job;
    buf = uv_buf_init(write->bytes, (unsigned)write->len);
    if (uv_write(&write->write, (uv_stream_t *)&job->input, &buf, 1, on_written) != 0) {
        free(write);
        job_end(job);
        return false;
    }
    return true;
}

/* --- start and end ------------------------------------------------------------------------------------------- */

static void signals_prepare(void)
{
    (void)signal(
        SIGPIPE,
        SIG_IGN); /* a child that closes its input must not end this process; cannot fail for a signal that exists */
}

const char *child_start(struct children *children, struct child *child, char *const *argv, char *const *env,
                        const char *cwd)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct loop *loop = children->loop;
    struct child_job *job = memory_alloc(sizeof(*job));
    const struct spawn how = {.argv = argv,
                              .env = env,
                              .cwd = cwd,
                              .pipes = {&job->input, &job->output, NULL},
                              .programs = children->programs};
    int code;

    CHECK(child->on_line && child->on_long && child->on_end && child->line_bytes_max && child->unread_bytes_max);
    CHECK(pthread_once(&once, signals_prepare) == 0);
    job->magic = JOB_MAGIC;
    job->loop = loop;
    job->children = children;
    list_push(&children->jobs, &job->link);
    job->process.exited = on_exit_status;
    job->process.signal.data = job;
    CHECK(uv_pipe_init(loop_uv(loop), &job->input, 0) == 0);
    CHECK(uv_pipe_init(loop_uv(loop), &job->output, 0) == 0);
    job->input.data = job->output.data = job;
    job->handles_open = HANDLE_COUNT;
    buffer_init(&job->line, child->line_bytes_max);
    code = spawn(loop, &job->process, &how);
    if (code != 0) {
        job->exited = true;
        handle_close((uv_handle_t *)&job->process.signal);
        job_end(job);
        child->internal = NULL;
        return uv_strerror(code);
    }
    child->internal = job;
    job->owner = child;
    CHECK(uv_read_start((uv_stream_t *)&job->output, on_alloc, on_output) == 0);
    return NULL;
}

void child_stop(struct child *child)
{
    struct child_job *job;

    if (!child->internal) {
        return;
    }
    job = job_of(child->internal);
    child->internal = NULL;
    job->owner = NULL;
    loop_defer_cancel(job->loop, &job->told);
    job_end(job);
}

void children_init(struct children *children, struct loop *loop)
{
    children->loop = loop;
    children->programs = NULL;
    list_init(&children->jobs);
}

void children_kill(struct children *children)
{
    struct list_link *link;

    while ((link = list_pop(&children->jobs))) {
        struct child_job *job = container_of(link, struct child_job, link);

        job->children = NULL;
        if (job->owner) {
            job->owner->internal = NULL;
            job->owner = NULL;
        }
        loop_defer_cancel(job->loop, &job->told);
        job_end(job);
        group_kill(job, SIGKILL);
        timer_stop(job->loop, &job->timer);
        timer_stop(job->loop, &job->breath);
        handle_close((uv_handle_t *)&job->process.signal);
    }
}
