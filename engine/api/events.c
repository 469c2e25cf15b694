/*
 * The feed of events: a page as JSON, with or without a wait, or all events from a cursor on as server-sent events.
 *
 * Following is one loop: ask for the events behind the cursor and wait for them, write them, wait until they have left,
 * ask again. The `id` of an event is a cursor behind which nothing is missed: that of the page before, and only with
 * the last event of a page the next one. So a client that comes again with Last-Event-ID may get some events twice, and
 * misses none.
 */
#include "api/request.h"
#include "base/utf8.h"
#include "core/show/event.h"

#include <string.h>

#define EVENT_FOLLOWERS_MAX 64 /* followers of one engine */
#define FOLLOWERS_OF_NAMESPACE_MAX 16
#define TYPES_BYTES_MAX 1024
#define CURSOR_BYTES_MAX 32

struct event_follow {
    struct api_request *request;
    struct list_link link; /* links api->followers */
    struct slice types;
    char cursor[CURSOR_BYTES_MAX];
    bool streaming, writing, over;
};

static void follow_advance(struct event_follow *follow);

/* --- a page --- */

static void on_page(struct engine_request *asked)
{
    struct api_request *request = request_of(asked);

    if (!request_failed(request)) {
        request_answer_items(request, asked->answer, asked->next_cursor);
    }
}

/* --- following --- */

static void follow_end(struct event_follow *follow)
{
    struct api_request *request = follow->request;

    if (list_linked(&follow->link)) {
        list_remove(&request->api->followers, &follow->link);
    }
    if (list_linked(&request->link)) {
        list_remove(&request->api->waiting, &request->link);
    }
}

static void keep_cursor(struct event_follow *follow, struct slice cursor)
{
    if (cursor.ptr && cursor.len < sizeof(follow->cursor)) {
        memcpy(follow->cursor, cursor.ptr, cursor.len);
        follow->cursor[cursor.len] = '\0';
    }
}

static void put_event(struct buffer *out, const char *id, struct slice event)
{
    struct slice type = json_member(event, "type");

    buffer_printf(out, "id: %s\nevent: %.*s\ndata: ", id, (int)(type.len > 2 ? type.len - 2 : 0), type.ptr + 1);
    buffer_put_slice(out, event); /* json_writer has written the event, so it is one line */
    buffer_put_text(out, "\n\n");
}

static void follow_write(struct event_follow *follow, struct slice events, struct slice next_cursor)
{
    struct json_walk walk = json_walk(events);
    size_t count = json_count(events), written = 0;
    struct slice event;
    struct buffer out;

    buffer_init(&out, events.len + (count + 1) * 128);
    while (json_next_element(&walk, &event)) {
        if (++written == count) {
            keep_cursor(follow, next_cursor);
        }
        put_event(&out, follow->cursor, event);
    }
    if (count == 0) { /* tells a client that goes away how far it had come */
        keep_cursor(follow, next_cursor);
        buffer_printf(&out, "id: %s\n: still here\n\n", follow->cursor);
    }
    follow->writing = true;
    http_stream_write(follow->request->exchange, buffer_slice(&out));
    buffer_fini(&out);
}

static void on_drained(struct http_exchange *exchange)
{
    struct event_follow *follow = ((struct api_request *)exchange->context)->state;

    follow->writing = false;
    follow_advance(follow);
}

static void on_events(struct engine_request *asked)
{
    struct api_request *request = request_of(asked);
    struct event_follow *follow = request->state;

    if (asked->code != ERR_OK && !follow->streaming) {
        follow_end(follow);
        (void)request_failed(request); /* it has answered */
        return;
    }
    if (asked->code != ERR_OK || request_is_revoked(request)) {
        follow->over = true; /* the client comes again with Last-Event-ID, and is told the reason */
    } else {
        if (!follow->streaming) {
            http_answer_header(request->exchange, "Cache-Control", SLICE("no-store"));
            http_stream_begin(request->exchange, 200, "text/event-stream");
            follow->streaming = true;
        }
        follow_write(follow, asked->answer, asked->next_cursor);
    }
    follow_advance(follow);
}

static void follow_advance(struct event_follow *follow)
{
    struct api_request *request = follow->request;

    if (request->engine_busy) {
        return; /* the answer advances the stream */
    }
    if (follow->over) {
        follow_end(follow);
        http_stream_end(request->exchange);
    } else if (!follow->writing) {
        request->asked.in.events.cursor = follow->cursor[0] ? slice_of(follow->cursor) : SLICE_NONE;
        request->asked.in.events.types = follow->types;
        request->asked.in.events.limit = 0;
        request->asked.in.events.wait_ms = follow->streaming ? request->api->heartbeat_ms : 0;
        request_ask(request, engine_get_events, on_events);
    }
}

static void follow_cancel(struct api_request *request)
{
    struct event_follow *follow = request->state;

    if (follow->over) {
        return; /* the client left and the service stops, and one end is enough */
    }
    follow->over = true;
    if (request->engine_busy) {
        engine_cancel(request->api->engine, &request->asked);
    } else {
        follow_advance(follow);
    }
}

static bool is_too_many(const struct api_request *request)
{
    size_t of_namespace = 0;

    for (const struct list_link *at = list_first(&request->api->followers); at;
         at = list_after(&request->api->followers, at)) {
        const struct event_follow *follow = container_of(at, const struct event_follow, link);

        of_namespace += slice_equal(follow->request->asked.namespace, request->asked.namespace);
    }
    return request->api->followers.count >= EVENT_FOLLOWERS_MAX || of_namespace >= FOLLOWERS_OF_NAMESPACE_MAX;
}

static void follow_begin(struct api_request *request, struct slice cursor, struct slice types)
{
    struct event_follow *follow = arena_alloc(request->arena, sizeof(*follow));
    struct err err = {0};

    if (is_too_many(request)) {
        (void)err_set(&err, ERR_BUSY, "as many follow the events of this namespace through this engine as may");
        err_hint(&err, "ask another engine, or read pages with `wait`");
        request_problem_later(request, &err, 5000);
        return;
    }
    follow->request = request;
    follow->types = types;
    keep_cursor(follow, cursor);
    request->state = follow;
    request->cancel = follow_cancel;
    request->exchange->on_drained = on_drained;
    list_push(&request->api->followers, &follow->link);
    follow_advance(follow);
}

void handle_get_events(struct api_request *request)
{
    struct slice last_id = http_exchange_header(request->exchange, "last-event-id"),
                 types = request_query(request, "type"), cursor = request_query(request, "cursor");
    bool stream = false;

    if (!request_read_limit(request) || !request_read_stream(request, &stream)) {
        return;
    }
    if (types.ptr && (!text_is_plain(types, TYPES_BYTES_MAX) || !event_types_are_known(types))) {
        request_problem(request, ERR_MALFORMED,
                        "the query parameter \"type\" is one or more types of events with commas between, such as "
                        "case.opened or saga.*");
        return;
    }
    if (cursor.len >= CURSOR_BYTES_MAX || last_id.len >= CURSOR_BYTES_MAX) {
        request_problem(request, ERR_MALFORMED, "this cursor is longer than any that sagad has given out");
        return;
    }
    if (stream) {
        follow_begin(request, last_id.len ? last_id : cursor, types);
        return;
    }
    if (!request_read_wait(request, 0)) {
        return;
    }
    request->asked.in.events.cursor = cursor;
    request->asked.in.events.types = types;
    request->asked.in.events.limit = request->limit;
    request->asked.in.events.wait_ms = request->wait_ms;
    request_ask(request, engine_get_events, on_page);
}
