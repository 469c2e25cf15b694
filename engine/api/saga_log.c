/*
 * The durable log of a saga: a page as JSON, or all entries from a number on as server-sent events until the saga has
 * ended.
 *
 * Following is one loop: ask for the entries behind `after`, write them, wait until they have left and a turn was
 * committed, ask again. The engine's hint may be missed (another engine owns the shard), so each heartbeat looks, too.
 */
#include "api/request.h"

#include <string.h>

#define PAGE_ENTRIES 200

struct log_follow {
    struct api_request *request;
    struct engine_watch watch;
    struct timer heartbeat;
    uint64_t after; /* the seq of the last entry written */
    bool streaming; /* http_stream_begin() was called */
    bool changed;   /* there may be entries behind `after` */
    bool writing;   /* written bytes have not left yet */
    bool over;      /* the last entry was written, or nobody listens any more */
};

static void follow_advance(struct log_follow *follow);

static struct slice last_of(struct slice entries, size_t *count)
{
    struct json_walk walk = json_walk(entries);
    struct slice entry, last = SLICE_NONE;

    *count = 0;
    while (json_next_element(&walk, &entry)) {
        last = entry;
        (*count)++;
    }
    return last;
}

static uint64_t seq_of(struct slice entry)
{
    int64_t seq = 0;

    (void)json_i64(json_member(entry, "seq"), &seq); /* every entry has one; at worst 0 ends a page early */
    return (uint64_t)seq;
}

/* --- a page --- */

static void on_page(struct engine_request *asked)
{
    struct api_request *request = container_of(asked, struct api_request, asked);
    size_t count = 0;

    if (asked->code != ERR_OK) {
        request_on_answer(asked);
        return;
    }
    (void)request_of(asked);
    struct slice last = last_of(asked->answer, &count);
    bool more = count >= request->limit;

    request_answer_items(request, asked->answer,
                         more ? arena_printf(request->arena, "%llu", (unsigned long long)seq_of(last)) : SLICE_NONE);
}

/* --- following --- */

static void follow_end(struct log_follow *follow)
{
    struct api_request *request = follow->request;

    engine_watch_remove(request->api->engine, &follow->watch);
    timer_stop(request->api->loop, &follow->heartbeat);
    if (list_linked(&request->link)) {
        list_remove(&request->api->waiting, &request->link);
    }
}

/* Writes one "data:" for each line, because JSON may hold line ends between its tokens, and a line end ends a field. */
static void put_data(struct buffer *out, struct slice json)
{
    size_t begin = 0;

    for (size_t i = 0; i <= json.len; i++) {
        if (i < json.len && json.ptr[i] != '\n' && json.ptr[i] != '\r') {
            continue;
        }
        buffer_put_text(out, "data: ");
        buffer_put(out, json.ptr + begin, i - begin);
        buffer_put_char(out, '\n');
        begin = i + 1;
    }
}

static bool is_final(struct slice type)
{
    return json_string_is(type, "saga.completed") || json_string_is(type, "saga.compensated") ||
           json_string_is(type, "saga.abandoned");
}

static void put_entry(struct log_follow *follow, struct buffer *out, struct slice entry)
{
    struct slice type = json_member(entry, "type");

    follow->after = seq_of(entry);
    buffer_printf(out, "id: %llu\nevent: %.*s\n", (unsigned long long)follow->after,
                  (int)(type.len > 2 ? type.len - 2 : 0), type.ptr + 1);
    put_data(out, entry);
    buffer_put_char(out, '\n');
    follow->over |= is_final(type);
}

static void follow_write(struct log_follow *follow, struct slice entries)
{
    struct json_walk walk = json_walk(entries);
    struct slice entry;
    struct buffer out;
    size_t count = 0;

    buffer_init(&out, entries.len * 8 + 4096);
    while (json_next_element(&walk, &entry)) {
        put_entry(follow, &out, entry);
        count++;
    }
    if (count >= PAGE_ENTRIES) {
        follow->changed = true;
    }
    if (count > 0) {
        follow->writing = true;
        http_stream_write(follow->request->exchange, buffer_slice(&out));
    }
    buffer_fini(&out);
}

static void on_changed(struct engine_watch *watch, uint64_t seq, bool ended)
{
    struct log_follow *follow = container_of(watch, struct log_follow, watch);

    (void)ended; /* the last entry says so itself */
    if (seq > follow->after) {
        follow->changed = true;
        follow_advance(follow);
    }
}

static void on_heartbeat(struct timer *timer)
{
    struct log_follow *follow = container_of(timer, struct log_follow, heartbeat);
    struct api_request *request = follow->request;

    if (follow->streaming && !follow->over) {
        follow->writing = true;
        http_stream_write(request->exchange, SLICE(": still here\n\n"));
    }
    follow->changed = true;
    timer_start(request->api->loop, timer, request->api->heartbeat_ms, on_heartbeat);
    follow_advance(follow);
}

static void on_drained(struct http_exchange *exchange)
{
    struct log_follow *follow = ((struct api_request *)exchange->context)->state;

    follow->writing = false;
    follow_advance(follow);
}

static void follow_stream(struct log_follow *follow, struct slice entries)
{
    if (!follow->streaming) {
        http_answer_header(follow->request->exchange, "Cache-Control", SLICE("no-store"));
        http_stream_begin(follow->request->exchange, 200, "text/event-stream");
        follow->streaming = true;
    }
    follow_write(follow, entries);
    follow_advance(follow);
}

/* Answers when nothing is behind Last-Event-ID: there is nothing yet, or the saga has ended. 204 tells a browser not to
 * come again. */
static void on_nothing_new(struct engine_request *asked)
{
    struct api_request *request = request_of(asked);
    struct log_follow *follow = request->state;

    if (asked->code != ERR_OK) {
        follow_end(follow);
        request_problem_of(request, &asked->err, NULL);
    } else if (json_type(json_member(asked->answer, "ended_at")) == JSON_STRING) {
        follow_end(follow);
        http_respond(request->exchange, 204, NULL, SLICE_NONE);
    } else {
        follow_stream(follow, SLICE("[]"));
    }
}

static void on_entries(struct engine_request *asked)
{
    struct api_request *request = request_of(asked);
    struct log_follow *follow = request->state;

    if (asked->code != ERR_OK && !follow->streaming) {
        follow_end(follow);
        asked->err.code = asked->code;
        request_problem_of(request, &asked->err, NULL);
    } else if (asked->code !=
               ERR_OK) { /* the database is away, or nobody listens; the client comes again with Last-Event-ID */
        follow->over = true;
        follow_advance(follow);
    } else if (!follow->streaming && json_count(asked->answer) == 0) {
        struct saga_id id = asked->in.log.id;

        asked->in.get.id = id;
        asked->in.get.wait_ms = 0;
        request_ask(request, engine_get_saga, on_nothing_new);
    } else {
        follow_stream(follow, asked->answer);
    }
}

static void follow_advance(struct log_follow *follow)
{
    struct api_request *request = follow->request;

    if (request->engine_busy) {
        return; /* the answer advances the stream */
    }
    if (follow->over) {
        follow_end(follow);
        http_stream_end(request->exchange);
    } else if (follow->changed && !follow->writing) {
        follow->changed = false;
        request->asked.in.log.id = follow->watch.id;
        request->asked.in.log.after_seq = follow->after;
        request->asked.in.log.limit = PAGE_ENTRIES;
        request_ask(request, engine_get_log, on_entries);
    }
}

static void follow_cancel(struct api_request *request)
{
    struct log_follow *follow = request->state;

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

static void follow_begin(struct api_request *request, struct saga_id id, uint64_t after)
{
    struct log_follow *follow = arena_alloc(request->arena, sizeof(*follow));

    follow->request = request;
    follow->after = after;
    follow->changed = true;
    follow->watch.id = id;
    follow->watch.changed = on_changed;
    request->state = follow;
    request->cancel = follow_cancel;
    request->exchange->on_drained = on_drained;
    engine_watch_add(request->api->engine, &follow->watch); /* added first, so that nothing is missed */
    timer_start(request->api->loop, &follow->heartbeat, request->api->heartbeat_ms, on_heartbeat);
    follow_advance(follow);
}

void handle_get_log(struct api_request *request)
{
    struct engine_request *asked = &request->asked;
    struct slice last_id = http_exchange_header(request->exchange, "last-event-id");
    struct saga_id id;
    uint64_t after = 0;
    bool stream = false;

    if (!request_read_saga_id(request, &id) || !request_read_limit(request) ||
        !request_read_count(request, "cursor", 0, &after) || !request_read_stream(request, &stream)) {
        return;
    }
    if (stream) {
        int64_t seq = 0;

        if (last_id.ptr && slice_to_i64(last_id, &seq) && seq > 0) {
            after = (uint64_t)seq;
        }
        follow_begin(request, id, after);
        return;
    }
    asked->in.log.id = id;
    asked->in.log.after_seq = after;
    asked->in.log.limit = request->limit;
    request_ask(request, engine_get_log, on_page);
}
