/* Shows jobs and their items to people, and lets them run and stop a job. */
#include "base/instant.h"
#include "base/json.h"
#include "core/saga/sensitive.h"
#include "run/bulk/bulk.h"
#include "run/query/walk.h"
#include "run/request/act.h"

#define LIMIT_DEFAULT 50

struct asked { /* for a work of this file */
    struct work *work;
    struct bulk_list list;
    struct bulk_items items;
    struct bulk_move move;
    size_t limit;
    bool runs;
};

static struct asked *asked_new(struct work *work)
{
    struct asked *asked = arena_alloc(&work->arena, sizeof(*asked));

    asked->work = work;
    return asked;
}

static void no_such_job(struct work *work)
{
    work_fail(work, ERR_NOT_FOUND, "there is no bulk job with this id", "`sagactl bulk` lists them");
}

/* --- as JSON --- */

/* Writes the members of a job. What it gives to its sagas lies beside them, so nobody can tell by place what of it is
 * sensitive. */
static void write_members(struct work *work, struct slice object, struct json_writer *w)
{
    bool hides = work_hides(work, SLICE_NONE);
    struct json_walk walk = json_walk(object);
    struct slice name, value;

    while (json_next_member(&walk, &name, &value)) {
        bool is_hidden = hides && (slice_is(name, "args") || slice_is(name, "result"));

        json_write_raw(w, arena_text(&work->arena, name), /* our own names need no escapes */
                       is_hidden ? SLICE(SENSITIVE_MASK_JSON) : value);
    }
}

static void write_outcomes(const struct bulk_row *row, struct json_writer *w)
{
    json_object_begin(w, "outcomes");
    json_write_i64(w, "open", row->items - row->done - row->changed - row->refused);
    json_write_i64(w, "done", row->done);
    json_write_i64(w, "changed", row->changed);
    json_write_i64(w, "refused", row->refused);
    json_object_end(w);
}

void bulk_show(struct work *work, const struct bulk_row *row, struct json_writer *w)
{
    int64_t now_ms = loop_wall_ms(work->engine->loop);
    char id[UUID_TEXT_BYTES];
    bool expired = row->state == BULK_FROZEN && row->expires_ms <= now_ms;

    uuid_text(&row->id.uuid, id);
    json_object_begin(w, NULL);
    json_write_text(w, "bulk", id);
    json_write_text(w, "state", bulk_state_name(expired ? BULK_EXPIRED : row->state));
    json_write_i64(w, "count", row->items);
    write_members(work, row->body, w);
    write_outcomes(row, w);
    json_write_instant(w, "created_at", row->created_ms);
    json_write_slice(w, "created_by", row->actor);
    json_write_instant(w, "expires_at", row->expires_ms);
    json_write_raw(w, "run", row->run);
    json_write_raw(w, "stop", row->stop);
    json_write_instant(w, "ended_at", row->ended_ms);
    json_object_end(w);
}

static void show_job(struct work *work, const struct bulk_row *row)
{
    struct json_writer w;

    json_writer_init(&w, &work->out);
    bulk_show(work, row, &w);
    work_done(work, ERR_OK, NULL);
}

static void show_item(struct work *work, const struct bulk_item_row *row)
{
    struct json_writer w;

    json_writer_init(&w, &work->out);
    json_object_begin(&w, NULL);
    json_write_i64(&w, "n", (int64_t)row->number);
    bulk_item_show(row->body, &w);
    json_write_slice(&w, "outcome", row->outcome.ptr ? row->outcome : SLICE("open"));
    json_write_raw(&w, "error", row->detail);
    json_object_end(&w);
}

/* --- read --- */

static void on_one(struct store_read *read)
{
    struct asked *asked = read->context;

    if (read->code == ERR_NOT_FOUND) {
        no_such_job(asked->work);
    } else if (!work_read_failed(asked->work, read)) {
        show_job(asked->work, &asked->list.rows[0]);
    }
}

static void read_one(struct asked *asked, void (*done)(struct store_read *read))
{
    struct work *work = asked->work;

    asked->list = (struct bulk_list){.read = {.arena = &work->arena, .done = done, .context = asked},
                                     .namespace = work->namespace,
                                     .id = work->saga};
    store_bulk_list(work->engine->store, &asked->list);
}

static void on_list(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;
    struct json_writer w;

    if (work_read_failed(work, read)) {
        return;
    }
    json_writer_init(&w, &work->out);
    json_array_begin(&w, NULL);
    for (size_t i = 0; i < asked->list.count && i < asked->limit; i++) {
        bulk_show(work, &asked->list.rows[i], &w);
    }
    json_array_end(&w);
    if (asked->list.count > asked->limit) {
        char id[UUID_TEXT_BYTES];

        uuid_text(&asked->list.rows[asked->limit - 1].id.uuid, id);
        work_next_cursor(work, slice_of(id));
    }
    work_done(work, ERR_OK, NULL);
}

void engine_get_bulk(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct asked *asked;

    if (work_refused(work)) {
        return;
    }
    asked = asked_new(work);
    work->saga = request->in.bulk.id;
    if (!uuid_is_nil(&work->saga.uuid)) {
        read_one(asked, on_one);
        return;
    }
    asked->limit = request->in.bulk.limit ? request->in.bulk.limit : LIMIT_DEFAULT;
    asked->list = (struct bulk_list){.read = {.arena = &work->arena, .done = on_list, .context = asked},
                                     .namespace = work->namespace,
                                     .limit = asked->limit + 1};
    if (request->in.bulk.cursor.len &&
        (!uuid_parse(request->in.bulk.cursor, &asked->list.before) || uuid_is_nil(&asked->list.before))) {
        work_bad_cursor(work);
        return;
    }
    store_bulk_list(engine->store, &asked->list);
}

static void on_items(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;

    if (work_read_failed(work, read)) {
        return;
    }
    buffer_put_char(&work->out, '[');
    for (size_t i = 0; i < asked->items.count && i < asked->limit; i++) {
        if (i > 0) {
            buffer_put_char(&work->out, ',');
        }
        show_item(work, &asked->items.rows[i]);
    }
    buffer_put_char(&work->out, ']');
    if (asked->items.count > asked->limit) {
        work_next_cursor(
            work, arena_printf(&work->arena, "%llu", (unsigned long long)asked->items.rows[asked->limit - 1].number));
    }
    work_done(work, ERR_OK, NULL);
}

static void on_job_of_items(struct store_read *read)
{
    struct asked *asked = read->context;

    if (read->code == ERR_NOT_FOUND) {
        no_such_job(asked->work);
    } else if (!work_read_failed(asked->work, read)) {
        store_bulk_items(asked->work->engine->store, &asked->items);
    }
}

void engine_get_bulk_items(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct asked *asked;

    if (work_refused(work)) {
        return;
    }
    asked = asked_new(work);
    work->saga = request->in.bulk.id;
    asked->limit = request->in.bulk.limit ? request->in.bulk.limit : LIMIT_DEFAULT;
    asked->items = (struct bulk_items){.read = {.arena = &work->arena, .done = on_items, .context = asked},
                                       .id = work->saga,
                                       .after = request->in.bulk.after,
                                       .outcome = arena_slice(&work->arena, request->in.bulk.outcome),
                                       .limit = asked->limit + 1};
    read_one(asked, on_job_of_items); /* finds out whether the job is in this namespace */
}

/* --- run and stop --- */

static void on_moved(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;

    if (read->code == ERR_NOT_FOUND) {
        no_such_job(work);
    } else if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
    } else if (asked->move.state == BULK_EXPIRED) {
        work_fail(work, ERR_EXPIRED, "the set of this bulk job was frozen more than 15 minutes ago",
                  "freeze it anew: the sagas may have moved on");
    } else {
        read_one(asked, on_one);
    }
}

static void move(struct asked *asked, enum bulk_state to, struct slice said, struct slice note)
{
    struct work *work = asked->work;
    const struct bulk_row *row = asked->list.rows; /* NULL: it was not read, because any job may be stopped */
    char id[UUID_TEXT_BYTES];

    uuid_text(&work->saga.uuid, id);
    struct person_act *act =
        act_new(work, to == BULK_RUNNING ? "run" : "stop", "bulk", arena_slice(&work->arena, slice_of(id)), note);

    if (act && row) {
        act->detail =
            arena_printf(&work->arena, "%.*s, %lld items",
                         SLICE_ARG(json_string(json_member(row->body, "action"), &work->arena)), (long long)row->items);
    }

    asked->move = (struct bulk_move){.read = {.arena = &work->arena, .done = on_moved, .context = asked},
                                     .id = work->saga,
                                     .namespace = work->namespace,
                                     .to = to,
                                     .who = said,
                                     .act = act_of_work(work),
                                     .keep_ms = loop_wall_ms(work->engine->loop) + work->engine->options.bulk_keep_ms};
    store_bulk_move(work->engine->store, &asked->move);
}

/* Running a job needs the role of its verb, too. */
static void on_to_run(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;
    enum verb_id verb = VERB_COUNT;

    if (read->code == ERR_NOT_FOUND) {
        no_such_job(work);
        return;
    }
    if (work_read_failed(work, read)) {
        return;
    }
    if (!bulk_find_verb(json_string(json_member(asked->list.rows[0].body, "action"), &work->arena), &verb)) {
        work_fail(work, ERR_UNSUPPORTED, "this engine does not know the verb of the bulk job", NULL);
    } else if (work->request && work->request->in.bulk.role < verbs[verb].least) {
        work_fail(work, ERR_FORBIDDEN, "the verb of this bulk job needs a higher role", NULL);
    } else {
        move(asked, BULK_RUNNING, work_signature(work, SLICE_NONE),
             json_string(json_member(asked->list.rows[0].body, "note"), &work->arena));
    }
}

static struct asked *begin(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct asked *asked;

    if (work_refused(work)) {
        return NULL;
    }
    asked = asked_new(work);
    work->saga = request->in.bulk.id;
    return asked;
}

void engine_run_bulk(struct engine *engine, struct engine_request *request)
{
    struct asked *asked = begin(engine, request);

    if (asked) {
        read_one(asked, on_to_run);
    }
}

void engine_stop_bulk(struct engine *engine, struct engine_request *request)
{
    struct asked *asked = begin(engine, request);

    if (asked) {
        move(asked, BULK_STOPPED, work_signature(asked->work, request->in.bulk.note), request->in.bulk.note);
    }
}
