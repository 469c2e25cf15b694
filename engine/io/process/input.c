/* A pipe, a socket or a terminal, read until it ends. */
#include "io/process/input.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/arena.h"

#define READ_BYTES ((size_t)64 * 1024)

struct input_job {
    struct input *owner;
    union {
        uv_handle_t any;
        uv_stream_t stream;
        uv_pipe_t pipe;
        uv_tty_t terminal;
    } handle;
    struct buffer line;
    bool dropping; /* the rest of a line that is too long */
    char chunk[READ_BYTES];
};

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct input_job *job = handle->data;

    (void)suggested; /* one chunk is enough, because each read empties it */
    *buf = uv_buf_init(job->chunk, sizeof(job->chunk));
}

static void on_closed(uv_handle_t *handle)
{
    struct input_job *job = handle->data;
    struct input *owner = job->owner;

    buffer_fini(&job->line);
    free(job);
    owner->internal = NULL;
    owner->on_end(owner);
}

static void line_end(struct input_job *job)
{
    struct slice line = slice_trim(buffer_slice(&job->line));

    if (!job->dropping && line.len > 0) {
        job->owner->on_line(job->owner, line);
    }
    job->dropping = false;
    buffer_reset(&job->line);
}

static void line_grow(struct input_job *job, struct slice part)
{
    if (job->dropping) {
        return;
    }
    buffer_put_slice(&job->line, part);
    if (job->line.overflow) {
        job->dropping = true;
        job->owner->on_long(job->owner);
    }
}

static void on_read(uv_stream_t *stream, ssize_t bytes, const uv_buf_t *buf)
{
    struct input_job *job = stream->data;
    struct slice rest = {buf->base, bytes > 0 ? (size_t)bytes : 0};

    if (bytes < 0) {
        line_end(job); /* the last line may have no end */
        uv_close(&job->handle.any, on_closed);
        return;
    }
    while (rest.len > 0) {
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
}

const char *input_open(struct loop *loop, struct input *input)
{
    uv_handle_type type = uv_guess_handle(0);
    struct input_job *job;

    CHECK(input->on_line && input->on_long && input->on_end && input->line_bytes_max);
    if (type != UV_TTY && type != UV_NAMED_PIPE) {
        return "standard input is no pipe and no terminal";
    }
    job = memory_alloc(sizeof(*job));
    if (type == UV_TTY) {
        CHECK(uv_tty_init(loop_uv(loop), &job->handle.terminal, 0, 1) == 0);
    } else {
        CHECK(uv_pipe_init(loop_uv(loop), &job->handle.pipe, 0) == 0 && uv_pipe_open(&job->handle.pipe, 0) == 0);
    }
    job->owner = input;
    job->handle.any.data = job;
    buffer_init(&job->line, input->line_bytes_max);
    input->internal = job;
    CHECK(uv_read_start(&job->handle.stream, on_alloc, on_read) == 0);
    return NULL;
}
