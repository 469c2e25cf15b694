/* Notifications that their receivers have not confirmed: a list of them, and dead letters that are sent again. */
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "run/query/walk.h"
#include "run/request/act.h"
#include "store/notify.h"

#define LIMIT_DEFAULT 50
#define CURSOR_BYTES_MAX 128

struct asked { /* for a work of this file */
    struct work *work;
    struct notification_list list;
    struct notification_replay replay;
    size_t limit;
};

static struct asked *asked_new(struct work *work)
{
    struct asked *asked = arena_alloc(&work->arena, sizeof(*asked));

    asked->work = work;
    return asked;
}

static void put_row(struct json_writer *w, const struct notification_row *row)
{
    bool is_dead = row->state == NOTIFICATION_DEAD;

    json_object_begin(w, NULL);
    json_write_slice(w, "receiver", row->name);
    json_write_i64(w, "n", (int64_t)row->number);
    json_write_text(w, "state", is_dead ? "dead" : "pending");
    json_write_i64(w, "attempts", row->attempts);
    json_write_slice(w, "error", row->error);
    json_write_instant(w, "since", row->since_ms);
    json_write_instant(w, "gives_up_at", row->until_ms);
    json_write_instant(w, "next_at", is_dead ? 0 : row->look_ms);
    json_write_instant(w, "died_at", is_dead ? row->look_ms : 0);
    json_write_raw(w, "event", row->body);
    json_object_end(w);
}

static void on_list(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;
    const struct notification_list *list = &asked->list;
    struct json_writer w;

    if (work_read_failed(work, read)) {
        return;
    }
    json_writer_init(&w, &work->out);
    json_array_begin(&w, NULL);
    for (size_t i = 0; i < list->count && i < asked->limit; i++) {
        put_row(&w, &list->rows[i]);
    }
    json_array_end(&w);
    if (list->count > asked->limit && work->request) {
        const struct notification_row *last = &list->rows[asked->limit - 1];

        work->request->next_cursor =
            arena_printf(work->request->arena, "%llu.%.*s", (unsigned long long)last->number, SLICE_ARG(last->name));
    }
    work_done(work, ERR_OK, NULL);
}

/* A cursor is the number and the receiver of the last one, such as 12.ops. */
static bool read_cursor(struct slice cursor, struct notification_list *list)
{
    const char *dot = cursor.ptr && cursor.len <= CURSOR_BYTES_MAX ? memchr(cursor.ptr, '.', cursor.len) : NULL;
    int64_t number = 0;

    if (!cursor.ptr) {
        return true;
    }
    if (!dot || !slice_to_i64((struct slice){cursor.ptr, (size_t)(dot - cursor.ptr)}, &number) || number < 1) {
        return false;
    }
    list->after = (uint64_t)number;
    list->after_name = (struct slice){dot + 1, cursor.len - (size_t)(dot + 1 - cursor.ptr)};
    return list->after_name.len > 0;
}

void engine_get_notifications(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct asked *asked;

    if (work_refused(work)) {
        return;
    }
    asked = asked_new(work);
    asked->limit = request->in.notifications.limit ? request->in.notifications.limit : LIMIT_DEFAULT;
    asked->list = (struct notification_list){.read = {.arena = &work->arena, .done = on_list, .context = asked},
                                             .namespace = work->namespace,
                                             .name = arena_slice(&work->arena, request->in.notifications.receiver),
                                             .state = arena_slice(&work->arena, request->in.notifications.state),
                                             .limit = asked->limit + 1};
    if (!read_cursor(arena_slice(&work->arena, request->in.notifications.cursor), &asked->list)) {
        work_bad_cursor(work);
        return;
    }
    store_notification_list(engine->store, &asked->list);
}

/* --- once more --- */

static void on_replayed(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;
    struct json_writer w;

    if (work_read_failed(work, read)) {
        return;
    }
    log_info("notifications_replayed", LOG_SLICE("namespace", work->namespace), LOG_SLICE("actor", work->actor),
             LOG_I64("count", (int64_t)asked->replay.count));
    json_writer_init(&w, &work->out);
    json_object_begin(&w, NULL);
    json_write_i64(&w, "replayed", (int64_t)asked->replay.count);
    json_object_end(&w);
    work_done(work, ERR_OK, NULL);
}

void engine_replay_notifications(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    size_t count = request->in.notifications.event_count;
    struct asked *asked;
    struct slice *events;

    if (work_refused(work)) {
        return;
    }
    asked = asked_new(work);
    (void)act_new(work, "replay", "receiver", request->in.notifications.receiver, request->in.notifications.note);
    events = arena_array(&work->arena, count + 1, sizeof(*events));
    for (size_t i = 0; i < count; i++) {
        events[i] = arena_slice(&work->arena, request->in.notifications.events[i]);
    }
    asked->replay = (struct notification_replay){.read = {.arena = &work->arena, .done = on_replayed, .context = asked},
                                                 .namespace = work->namespace,
                                                 .name = arena_slice(&work->arena, request->in.notifications.receiver),
                                                 .events = events,
                                                 .event_count = count,
                                                 .act = act_of_work(work)};
    store_notification_replay(engine->store, &asked->replay);
}
