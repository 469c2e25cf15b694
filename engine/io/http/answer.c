/* How an answer is sent: whole, or as a stream that the library pulls as fast as the client reads. */
#include <string.h>

#include "io/http/server_state.h"

static void exchange_answer(struct exchange *x, int status, const char *content_type)
{
    CHECK(x->response && x->status == 0);
    CHECK(x->state == EXCHANGE_HANDLING || x->state == EXCHANGE_HELD ||
          (x->state == EXCHANGE_READING && x->in_handler));
    x->status = status;
    x->closes |= x->state != EXCHANGE_HANDLING && http_exchange_is_at_once(x);
    if (content_type) {
        (void)MHD_add_response_header(x->response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                      content_type); /* fails only without memory */
    }
    for (size_t i = 0; i < x->answer_header_count; i++) {
        (void)MHD_add_response_header(x->response, x->answer_headers[i].name.ptr,
                                      x->answer_headers[i].value.ptr); /* the header was checked when it was set */
    }
    if (x->closes || x->server->stopping) {
        (void)MHD_add_response_header(x->response, MHD_HTTP_HEADER_CONNECTION, "close"); /* as above */
    }
}

void http_respond(struct http_exchange *exchange, int status, const char *content_type, struct slice body)
{
    struct exchange *x = container_of(exchange, struct exchange, public);

    CHECK(x->magic == EXCHANGE_MAGIC);
    /* The library takes a non-const pointer but only reads what is persistent. */
    x->response = MHD_create_response_from_buffer(body.len, (void *)(uintptr_t)body.ptr, MHD_RESPMEM_PERSISTENT);
    exchange_answer(x, status, content_type);
    if (x->state == EXCHANGE_HELD) {
        http_exchange_release(x, EXCHANGE_ANSWERED);
        return;
    }
    x->state = EXCHANGE_ANSWERED;
    http_exchange_unpark(x);
    http_exchange_settled(x);
}

static void on_drained(struct deferred *deferred)
{
    struct exchange *x = container_of(deferred, struct exchange, drained);

    if (!x->ended && !x->gone && x->out.len == x->out_read && x->public.on_drained) {
        x->public.on_drained(&x->public);
    }
}

static ssize_t on_read(void *context, uint64_t position, char *to, size_t room)
{
    struct exchange *x = context;
    size_t len = x->out.len - x->out_read;

    (void)position;
    CHECK(x->magic == EXCHANGE_MAGIC);
    x->server->happened++;
    if (x->gone || x->out.overflow) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (len == 0) {
        if (x->ended) {
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        if (!x->parked) {
            http_exchange_park(x);
        }
        return 0;
    }
    len = len < room ? len : room;
    memcpy(to, x->out.ptr + x->out_read, len);
    x->out_read += len;
    if (x->out_read == x->out.len) {
        buffer_reset(&x->out);
        x->out_read = 0;
        loop_defer(x->server->loop, &x->drained, on_drained);
    }
    return (ssize_t)len;
}

void http_stream_begin(struct http_exchange *exchange, int status, const char *content_type)
{
    struct exchange *x = container_of(exchange, struct exchange, public);

    CHECK(x->magic == EXCHANGE_MAGIC && x->state == EXCHANGE_HANDLING);
    x->response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16 * 1024, on_read, x, NULL);
    exchange_answer(x, status, content_type);
    x->state = EXCHANGE_STREAMING;
    http_exchange_unpark(x);
}

void http_stream_write(struct http_exchange *exchange, struct slice bytes)
{
    struct exchange *x = container_of(exchange, struct exchange, public);

    CHECK(x->magic == EXCHANGE_MAGIC && x->state == EXCHANGE_STREAMING && !x->ended);
    if (!x->gone && bytes.len > 0) {
        buffer_put_slice(&x->out, bytes);
        http_exchange_unpark(x);
    }
}

void http_stream_end(struct http_exchange *exchange)
{
    struct exchange *x = container_of(exchange, struct exchange, public);

    CHECK(x->magic == EXCHANGE_MAGIC && x->state == EXCHANGE_STREAMING && !x->ended);
    x->ended = true;
    http_exchange_unpark(x);
    http_exchange_settled(x);
    if (x->finished) {
        http_exchange_recycle(x);
    }
}

void http_answer_header(struct http_exchange *exchange, const char *name, struct slice value)
{
    struct exchange *x = container_of(exchange, struct exchange, public);

    CHECK(x->magic == EXCHANGE_MAGIC && x->status == 0 && x->answer_header_count < ANSWER_HEADERS_MAX);
    x->answer_headers[x->answer_header_count++] = (struct http_pair){slice_of(name), arena_slice(&x->arena, value)};
}
