/*
 * The feed of events: a page behind a cursor, or the wait for the next one.
 *
 *     list what transactions have written behind the cursor -> make events of it, of this namespace and of these types
 *         -> none: go on where there is more, else look again after a moment, until the wait is over
 *
 * The cursor is the number of a transaction: everything up to it was read, in every shard. All shards are in one
 * database, so one number is enough for all of them. No engine remembers its readers: a reader that comes again with
 * the same cursor, to any engine, gets the same events again.
 */
#include "base/json.h"
#include "core/show/event.h"
#include "run/query/walk.h"
#include "run/request/work.h"

#define LIMIT_DEFAULT 50
#define LIMIT_MAX 16384 /* the most rows of one transaction; a batch has far fewer */
#define PAYLOAD_BYTES_MAX ((size_t)4 << 20)
#define POLL_MS 500

struct feed {
    struct work *work;
    struct event_list list;
    struct event_sink sink;
    bool from_now, from_first;
};

static void look(struct feed *feed);

static void put_turn(struct feed *feed, const struct event_source *source, const struct stored_event *row)
{
    struct json_walk walk = json_walk(row->payload);
    uint64_t seq = row->first_seq;
    struct slice record;

    for (; json_type(row->payload) == JSON_ARRAY && json_next_element(&walk, &record); seq++) {
        event_put(&feed->sink, source, seq, row->at_ms, json_trim(record));
    }
}

static void put_row(struct feed *feed, const struct stored_event *row)
{
    struct event_source source = {.saga = row->saga,
                                  .namespace = feed->work->namespace,
                                  .saga_name = row->saga_name,
                                  .business_id = row->business_id,
                                  .tags = row->tags,
                                  .version = row->version};

    if (row->type.ptr) {
        struct event_beside event = {.id = row->id, .type = row->type, .subject = row->subject, .data = row->data};

        event_put_beside(&feed->sink, &source, row->has_saga, row->at_ms, &event);
    } else if (row->payload.ptr) {
        put_turn(feed, &source, row);
    } else if (row->reason.ptr) {
        event_put_case(&feed->sink, &source, row->at_ms, row->reason, row->number, row->is_resolved);
    }
}

static void cursor_at(struct work *work, int64_t tx)
{
    work_next_cursor(work, arena_printf(&work->arena, "%lld", (long long)tx));
}

static void fail_gone(struct feed *feed, int64_t first)
{
    cursor_at(feed->work, first);
    work_fail(feed->work, ERR_GONE, "events behind this cursor are not kept any more",
              "go on with the member \"cursor\", and look at the lists for what was missed");
}

static void answer(struct feed *feed)
{
    buffer_put_char(&feed->work->out, ']');
    cursor_at(feed->work, feed->list.through);
    work_done(feed->work, ERR_OK, NULL);
}

static void on_time(struct timer *timer)
{
    struct work *work = container_of(timer, struct work, timer);

    look(work->store.events);
}

static void go_on(struct feed *feed)
{
    struct work *work = feed->work;
    int64_t left = work->request ? work->until_boot_ms - loop_boot_ms(work->engine->loop) : 0;

    feed->list.after = feed->list.through;
    if (feed->sink.count > 0 || (!feed->list.more && left <= 0) || !work->request) {
        answer(feed);
    } else if (feed->list.more) {
        look(feed);
    } else {
        timer_start(work->engine->loop, &work->timer, left < POLL_MS ? left : POLL_MS, on_time);
    }
}

static void on_listed(struct store_read *read)
{
    struct feed *feed = read->context;
    struct event_list *list = &feed->list;

    if (work_read_failed(feed->work, read)) {
        return;
    }
    if (feed->from_now || feed->from_first) {
        list->after = feed->from_now ? list->edge : list->gone < list->edge ? list->gone : list->edge;
        list->through = list->more ? list->through : list->after;
    }
    if (feed->from_now) {
        list->through = list->edge;
        list->count = 0;
        list->more = false;
    } else if (list->gone > list->after || list->edge < list->after) {
        fail_gone(feed, list->gone > list->after ? list->gone : list->edge);
        return;
    }
    feed->from_now = feed->from_first = false;
    if (list->is_cut && list->limit < LIMIT_MAX) {
        list->limit *= 2;
        look(feed);
        return;
    }
    if (list->is_cut) {
        work_fail(feed->work, ERR_CORRUPT, "one transaction has more events than one answer holds", NULL);
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        put_row(feed, &list->rows[i]);
    }
    go_on(feed);
}

static void look(struct feed *feed)
{
    struct work *work = feed->work;

    arena_reset(&work->reading);
    feed->list.read = (struct store_read){.arena = &work->reading, .done = on_listed, .context = feed};
    store_event_list(work->engine->store, &feed->list);
}

void engine_get_events(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct slice cursor = request->in.events.cursor;
    int64_t after = 0;

    if (work_refused(work)) {
        return;
    }
    struct feed *feed = arena_alloc(&work->arena, sizeof(*feed));

    work->store.events = feed;
    work->until_boot_ms = loop_boot_ms(engine->loop) + request->in.events.wait_ms;
    feed->work = work;
    feed->from_now = slice_is(cursor, "now");
    feed->from_first = !cursor.ptr;
    if (cursor.ptr && !feed->from_now && (!slice_to_i64(cursor, &after) || after < 0)) {
        work_bad_cursor(work);
        return;
    }
    feed->sink = (struct event_sink){.types = arena_slice(&work->arena, request->in.events.types), .out = &work->out};
    feed->list = (struct event_list){.after = after,
                                     .namespace = work->namespace,
                                     .limit = request->in.events.limit ? request->in.events.limit : LIMIT_DEFAULT,
                                     .bytes_max = PAYLOAD_BYTES_MAX};
    buffer_put_char(&work->out, '[');
    look(feed);
}
