/*
 * Answers that take their time. A client that reads server-sent events is told that its call is under way, so that
 * neither it nor a proxy gives up. The answer is the last event. When the client leaves, its wait ends and the
 * operation goes on: the next call joins it.
 */
#include "api/mcp/mcp.h"

#include <string.h>

#define STREAM_AFTER_MS 1000
#define FRAME_BYTES 64 /* around the lines of an event */

static void on_time(struct timer *timer);

static struct mcp_exchange *exchange_of(struct timer *timer)
{
    return container_of(timer, struct mcp_exchange, stream.timer);
}

/* --- events --- */

/* White space between two values may hold line ends: then the message is an event of several lines, which a client puts
 * together again. */
static void put_event(struct buffer *out, struct slice message)
{
    const char *at = message.ptr, *end = message.ptr + message.len;

    buffer_put_text(out, "event: message\n");
    while (at <= end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop ? stop : end) - at);

        buffer_put_text(out, "data: ");
        buffer_put(out, at, len > 0 && at[len - 1] == '\r' ? len - 1 : len);
        buffer_put_char(out, '\n');
        at = stop ? stop + 1 : end + 1;
    }
    buffer_put_char(out, '\n');
}

static size_t lines_of(struct slice message)
{
    size_t lines = 1;

    for (size_t i = 0; i < message.len; i++) {
        lines += message.ptr[i] == '\n';
    }
    return lines;
}

static void put_progress(struct mcp_exchange *exchange, struct buffer *out)
{
    struct buffer message;
    struct json_writer w;

    buffer_init(&message, 1024);
    json_writer_init(&w, &message);
    json_object_begin(&w, NULL);
    json_write_text(&w, "jsonrpc", "2.0");
    json_write_text(&w, "method", "notifications/progress");
    json_object_begin(&w, "params");
    json_write_raw(&w, "progressToken", exchange->message.progress_token);
    json_write_i64(&w, "progress", (int64_t)exchange->stream.signs);
    json_write_text(&w, "message", "under way");
    json_object_end(&w);
    json_object_end(&w);
    put_event(out, buffer_slice(&message));
    buffer_fini(&message);
}

static void give_sign(struct mcp_exchange *exchange)
{
    struct buffer out;

    buffer_init(&out, 2048);
    if (exchange->message.progress_token.ptr && exchange->stream.signs > 0) {
        put_progress(exchange, &out);
    } else {
        buffer_put_text(&out, ": under way\n\n");
    }
    exchange->stream.signs++;
    http_stream_write(exchange->request->exchange, buffer_slice(&out));
    buffer_fini(&out);
}

/* --- the stream --- */

static void begin(struct mcp_exchange *exchange)
{
    struct http_exchange *http = exchange->request->exchange;

    http_answer_header(http, "Cache-Control", SLICE("no-store"));
    http_answer_header(http, "X-Accel-Buffering", SLICE("no")); /* a proxy would keep the signs of life to itself */
    http_stream_begin(http, 200, "text/event-stream");
    exchange->stream.has_begun = true;
}

static void tick(struct mcp_exchange *exchange)
{
    const struct api *api = exchange->request->api;

    if (!exchange->stream.has_begun) {
        begin(exchange);
    }
    give_sign(exchange);
    timer_start(api->loop, &exchange->stream.timer, api->mcp_progress_ms, on_time);
}

static void on_time(struct timer *timer)
{
    tick(exchange_of(timer));
}

bool mcp_wait(struct mcp_exchange *exchange)
{
    struct api_request *request = exchange->request;
    struct slice accept = http_exchange_header(request->exchange, "accept");

    if (!request_hold(request, request->api->mcp_wait_ms)) {
        return false;
    }
    exchange->stream.may_begin = accept.ptr && memmem(accept.ptr, accept.len, "text/event-stream", 17) != NULL;
    if (!exchange->stream.may_begin) {
        return true;
    }
    if (exchange->message.progress_token.ptr) {
        tick(exchange);
    } else {
        timer_start(request->api->loop, &exchange->stream.timer, STREAM_AFTER_MS, on_time);
    }
    return true;
}

void mcp_send(struct mcp_exchange *exchange, int http_status, struct slice json)
{
    struct api_request *request = exchange->request;
    struct buffer out;

    if (exchange->stream.may_begin) {
        timer_stop(request->api->loop, &exchange->stream.timer);
    }
    if (!exchange->stream.has_begun) {
        request_answer_json(request, http_status, json);
        return;
    }
    buffer_init(&out, json.len + (lines_of(json) + 1) * FRAME_BYTES);
    put_event(&out, json);
    request_end_stream(request, buffer_slice(&out));
    buffer_fini(&out);
}
