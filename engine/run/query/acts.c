/* Acts of persons and tokens as the API shows them. Old ones are read in steps, so that no list reads all of them. */
#include <string.h>

#include "base/json.h"
#include "run/query/filter.h"
#include "store/acts.h"

#define LIMIT_DEFAULT 50
#define FUTURE_MS INT64_C(253402300799999) /* the end of the year 9999 */

struct asked { /* for a work of this file */
    struct work *work;
    struct act_list list;
    size_t limit;
};

static void put_act(struct work *work, const struct act_row *row)
{
    const struct person_act *act = &row->act;
    char id[UUID_TEXT_BYTES];
    struct json_writer w;

    json_writer_init(&w, &work->out);
    json_object_begin(&w, NULL);
    uuid_text(&act->id, id);
    json_write_text(&w, "id", id);
    json_write_instant(&w, "at", act->at_ms);
    json_write_slice(&w, "actor", act->actor);
    json_write_slice(&w, "role", row->role);
    json_write_slice(&w, "via", row->via);
    json_write_slice(&w, "address", act->address);
    json_write_slice(&w, "verb", act->verb);
    json_write_slice(&w, "kind", act->kind);
    json_write_slice(&w, "target", act->target);
    json_write_slice(&w, "detail", act->detail);
    if (uuid_is_nil(&act->saga.uuid)) {
        json_write_null(&w, "saga");
    } else {
        uuid_text(&act->saga.uuid, id);
        json_write_text(&w, "saga", id);
    }
    json_write_slice(&w, "saga_name", act->saga_name);
    json_write_slice(&w, "business_id", act->business_id);
    json_write_slice(&w, "tool", act->tool);
    json_write_slice(&w, "note", act->note);
    json_write_slice(&w, "outcome", row->outcome);
    json_write_slice(&w, "code", row->code);
    json_write_i64(&w, "count", row->count);
    json_write_instant(&w, "last_at", row->last_ms);
    json_object_end(&w);
}

static void next_page(struct work *work, int64_t at_ms, const struct uuid *id)
{
    char text[UUID_TEXT_BYTES];

    uuid_text(id, text);
    work_next_cursor(work, arena_printf(&work->arena, "%lld.%s", (long long)at_ms, text));
}

static void on_list(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;
    const struct act_list *list = &asked->list;

    if (work_read_failed(work, read)) {
        return;
    }
    buffer_put_char(&work->out, '[');
    for (size_t i = 0; i < list->count && i < asked->limit; i++) {
        buffer_put_text(&work->out, i > 0 ? "," : "");
        put_act(work, &list->rows[i]);
    }
    buffer_put_char(&work->out, ']');
    if (list->count > asked->limit) {
        const struct person_act *last = &list->rows[asked->limit - 1].act;

        next_page(work, last->at_ms, &last->id);
    } else if (list->has_edge) {
        next_page(work, list->edge_ms, &list->edge);
        work_looked(work, list->edge_ms, ACTS_LOOKED_AT);
    }
    work_done(work, ERR_OK, NULL);
}

static bool read_cursor(struct slice cursor, struct act_list *list)
{
    const char *dot = cursor.len ? memchr(cursor.ptr, '.', cursor.len) : NULL;
    int64_t ms = 0;

    if (!dot || !slice_to_i64((struct slice){cursor.ptr, (size_t)(dot - cursor.ptr)}, &ms) || ms < 0 ||
        ms > FUTURE_MS ||
        !uuid_parse((struct slice){dot + 1, cursor.len - (size_t)(dot + 1 - cursor.ptr)}, &list->before)) {
        return false;
    }
    if (ms < list->before_ms) { /* `until` may be earlier */
        list->before_ms = ms;
    } else {
        list->before = (struct uuid){{0}};
    }
    return true;
}

void engine_list_acts(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    const struct engine_acts *wanted = &request->in.acts;
    struct asked *asked;
    struct act_list *list;

    if (work_refused(work)) {
        return;
    }
    asked = arena_alloc(&work->arena, sizeof(*asked));
    asked->work = work;
    asked->limit = wanted->limit ? wanted->limit : LIMIT_DEFAULT;
    list = &asked->list;
    *list = (struct act_list){.read = {.arena = &work->arena, .done = on_list, .context = asked},
                              .namespace = work->namespace,
                              .since_ms = wanted->since_ms,
                              .before_ms = wanted->until_ms ? wanted->until_ms : FUTURE_MS,
                              .outcome = arena_slice(&work->arena, wanted->outcome),
                              .limit = asked->limit + 1};
    list->actors = filter_split(work, wanted->actor, &list->actor_count);
    list->verbs = filter_split(work, wanted->verb, &list->verb_count);
    list->tools = filter_split(work, wanted->tool, &list->tool_count);
    if (!wanted->saga.ptr || !uuid_parse(wanted->saga, &list->saga.uuid)) {
        list->saga = (struct saga_id){0};
        list->sagas = filter_split(work, wanted->saga, &list->saga_count);
    }
    if (wanted->cursor.len && !read_cursor(wanted->cursor, list)) {
        work_bad_cursor(work);
        return;
    }
    store_act_list(engine->store, list);
}
