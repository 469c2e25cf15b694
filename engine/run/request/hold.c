/* Requests about holds: make, list and release them. A hold is answered when no engine begins anything that it
 * holds. */
#include "run/request/act.h"

#include "base/json.h"
#include "base/log.h"
#include "core/saga/hold.h"
#include "store/holds.h"

#define HOLDS_MAX 1000 /* the most holds in force in a namespace */
#define LIMIT_DEFAULT 50
#define BODY_BYTES_MAX 65536
#define LOOK_MS 25 /* the time until the engines that have not seen it are asked for again */

struct asked { /* for a work of this file */
    struct work *work;
    struct hold hold;
    struct hold_put put;
    struct hold_list list;
    struct hold_release release;
    struct hold_unseen unseen;
    struct arena looking;
    uint64_t number, version; /* the number of the hold, and the version of the holds with or without it */
    int64_t until_boot_ms;    /* every lease that was there at the time has been renewed or is over by then */
    size_t limit;
};

static struct asked *asked_new(struct work *work)
{
    struct asked *asked = arena_alloc(&work->arena, sizeof(*asked));

    asked->work = work;
    work->of_request = asked;
    arena_init(&asked->looking, 1024);
    arena_tie(&work->arena, &asked->looking);
    return asked;
}

/* --- as JSON --- */

static void write_release(struct json_writer *w, const struct hold_row *row)
{
    if (!row->released_ms) {
        json_write_null(w, "released");
        return;
    }
    json_object_begin(w, "released");
    json_write_instant(w, "at", row->released_ms);
    json_write_raw(w, "actor", json_member(row->release, "actor"));
    json_write_raw(w, "note", json_member(row->release, "note"));
    json_object_end(w);
}

/* Puts a hold. `unseen` is NULL when the engines were not asked for. */
static void put_hold(struct work *work, const struct hold_row *row, const struct hold_unseen *unseen)
{
    struct json_walk walk = json_walk(row->body);
    struct json_writer w;
    struct slice name, value;
    bool in_force = true;

    json_writer_init(&w, &work->out);
    json_object_begin(&w, NULL);
    json_write_i64(&w, "n", (int64_t)row->number);
    while (json_next_member(&walk, &name, &value)) {
        if (!slice_is(name, "until")) {
            json_write_raw(&w, arena_text(&work->arena, name), value); /* our own names need no escapes */
        }
    }
    json_write_instant(&w, "until", row->until_ms);
    json_write_instant(&w, "made_at", row->made_ms);
    json_write_text(&w, "status",
                    row->released_ms                                                     ? "released"
                    : row->until_ms && row->until_ms <= loop_wall_ms(work->engine->loop) ? "over"
                                                                                         : "held");
    write_release(&w, row);
    if (unseen) {
        json_array_begin(&w, "ignored_by");
        for (size_t i = 0; i < unseen->count; i++) {
            if (unseen->engines[i].knows_none) {
                json_write_slice(&w, NULL, unseen->engines[i].name);
                in_force = false;
            }
        }
        json_array_end(&w);
        json_write_bool(&w, "in_force", in_force);
    }
    json_object_end(&w);
}

static void no_such_hold(struct work *work)
{
    work_fail(work, ERR_NOT_FOUND, "there is no hold with this number", "`sagactl holds` lists them");
}

/* --- read --- */

static void on_one(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;

    if (read->code == ERR_NOT_FOUND) {
        no_such_hold(work);
    } else if (!work_read_failed(work, read)) {
        put_hold(work, &asked->list.rows[0], asked->put.number ? &asked->unseen : NULL);
        work_done(work, ERR_OK, NULL);
    }
}

static void read_one(struct asked *asked, uint64_t number)
{
    asked->list = (struct hold_list){.read = {.arena = &asked->work->arena, .done = on_one, .context = asked},
                                     .namespace = asked->work->namespace,
                                     .number = number,
                                     .limit = 1};
    store_hold_list(asked->work->engine->store, &asked->list);
}

static void on_list(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;

    if (work_read_failed(work, read)) {
        return;
    }
    buffer_put_char(&work->out, '[');
    for (size_t i = 0; i < asked->list.count && i < asked->limit; i++) {
        if (i > 0) {
            buffer_put_char(&work->out, ',');
        }
        put_hold(work, &asked->list.rows[i], NULL);
    }
    buffer_put_char(&work->out, ']');
    if (asked->list.count > asked->limit && work->request) {
        work->request->next_cursor =
            arena_printf(work->request->arena, "%llu", (unsigned long long)asked->list.rows[asked->limit - 1].number);
    }
    work_done(work, ERR_OK, NULL);
}

void engine_get_holds(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct asked *asked;
    int64_t before = 0;

    if (work_refused(work)) {
        return;
    }
    asked = asked_new(work);
    if (request->in.hold.number) {
        read_one(asked, request->in.hold.number);
        return;
    }
    if (request->in.hold.cursor.ptr && (!slice_to_i64(request->in.hold.cursor, &before) || before < 1)) {
        work_fail(work, ERR_MALFORMED, "this is no cursor of a list of holds", NULL);
        return;
    }
    asked->limit = request->in.hold.limit ? request->in.hold.limit : LIMIT_DEFAULT;
    asked->list = (struct hold_list){.read = {.arena = &work->arena, .done = on_list, .context = asked},
                                     .namespace = work->namespace,
                                     .before = (uint64_t)before,
                                     .with_ended = request->in.hold.with_ended,
                                     .limit = asked->limit + 1};
    store_hold_list(engine->store, &asked->list);
}

/* --- make --- */

static void look(struct timer *timer);

/* An engine of this release that has not reported the version may still not send. It has renewed its leases since, and
 * heard of a hold that it must read before anything leaves. */
static void on_unseen(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;
    int64_t left_ms = asked->until_boot_ms - loop_boot_ms(work->engine->loop);
    bool is_seen = read->code == ERR_OK && asked->unseen.count == 0;

    if (is_seen || (read->code == ERR_OK && left_ms <= 0)) {
        read_one(asked, asked->number);
    } else if (left_ms <= 0) {
        work_done(work, read->code, &read->err);
    } else if (engine_is_closing(work->engine)) { /* works_stop() is over, so nobody would end another look */
        work_fail(work, ERR_STOPPING,
                  "this engine is stopping: what was asked is done, and others may not abide by it yet",
                  "ask another engine for the holds that are in force");
    } else {
        timer_start(work->engine->loop, &work->timer, LOOK_MS, look);
    }
}

static void look_who_has_seen(struct asked *asked)
{
    arena_reset(&asked->looking);
    asked->unseen = (struct hold_unseen){.read = {.arena = &asked->looking, .done = on_unseen, .context = asked},
                                         .version = asked->version};
    store_hold_unseen(asked->work->engine->store, &asked->unseen);
}

static void wait_until_seen(struct asked *asked, uint64_t number, uint64_t version)
{
    asked->number = number;
    asked->version = version;
    asked->until_boot_ms = loop_boot_ms(asked->work->engine->loop) + asked->work->engine->options.lease_ms;
    look_who_has_seen(asked);
}

static void look(struct timer *timer)
{
    look_who_has_seen(container_of(timer, struct work, timer)->of_request);
}

static void on_put(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;
    struct err err = {0};

    if (work_read_failed(work, read)) {
        return;
    }
    if (asked->put.number == 0) {
        (void)err_set(&err, ERR_INVALID, "this namespace has %d holds, which is as many as it may have", HOLDS_MAX);
        err_hint(&err, "release those that are not needed any more");
        work_done(work, ERR_INVALID, &err);
        return;
    }
    log_info("hold_made", LOG_I64("hold", (int64_t)asked->put.number), LOG_SLICE("namespace", work->namespace),
             LOG_SLICE("actor", work->actor), LOG_SLICE("body", asked->put.body));
    if (work->request) {
        work->request->created = true;
    }
    wait_until_seen(asked, asked->put.number, asked->put.number);
}

/* Checks the target. An unknown target would hold nothing, and a typing error would not be noticed. */
static void check_target(struct work *work, const struct hold *hold, struct faults *faults)
{
    struct engine *engine = work->engine;

    switch (hold->kind) {
    case HOLD_TOOL:
        if (!definitions_row(engine->definitions, DEFINITION_TOOL, work->namespace, hold->name, 0) &&
            !definitions_find_tool(engine->definitions, work->namespace, hold->name)) { /* nor one of a step */
            faults_add(faults, SLICE("/tool"), "there is no tool `%.*s`", SLICE_ARG(hold->name));
        }
        break;
    case HOLD_SAGA:
        if (!definitions_row(engine->definitions, DEFINITION_SAGA, work->namespace, hold->name, 0)) {
            faults_add(faults, SLICE("/saga"), "there is no saga definition `%.*s`", SLICE_ARG(hold->name));
        }
        break;
    case HOLD_NAMESPACE:
        if (!slice_equal(hold->name, work->namespace)) {
            faults_add(faults, SLICE("/namespace"), "this token is of the namespace `%.*s`, and holds nothing else",
                       SLICE_ARG(work->namespace));
        }
        break;
    case HOLD_TAG:
        if (hold->name.len == 0) {
            faults_add(faults, SLICE("/tag"), "a tag has a name");
        }
        break;
    case HOLD_KIND_COUNT:
        UNREACHABLE();
    }
    if (hold->until_ms && hold->until_ms <= loop_wall_ms(engine->loop)) {
        faults_add(faults, SLICE("/until"), "`until` has passed");
    }
}

static struct slice body_of(struct work *work, const struct hold *hold)
{
    struct buffer text;
    struct json_writer w;

    buffer_init(&text, BODY_BYTES_MAX);
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    hold_write(hold, &work->arena, &w);
    json_object_end(&w);
    CHECK(!text.overflow);
    struct slice body = arena_slice(&work->arena, buffer_slice(&text));

    buffer_fini(&text);
    return body;
}

void engine_put_hold(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct asked *asked;
    struct faults faults;

    if (work_refused(work)) {
        return;
    }
    asked = asked_new(work);
    faults_init(&faults, request->arena);
    if (hold_read(arena_slice(&work->arena, request->in.hold.body), &work->arena, &faults, &asked->hold)) {
        check_target(work, &asked->hold, &faults);
    }
    if (faults.count > 0) {
        work_fail_by_faults(work, &faults, "this hold is not right");
        return;
    }
    asked->hold.actor = work->actor;
    asked->put = (struct hold_put){.read = {.arena = &work->arena, .done = on_put, .context = asked},
                                   .id = saga_id_new(loop_wall_ms(engine->loop), 0).uuid,
                                   .namespace = work->namespace,
                                   .body = body_of(work, &asked->hold),
                                   .until_ms = asked->hold.until_ms,
                                   .max = HOLDS_MAX};
    struct person_act *act = act_new(work, "hold", "hold", SLICE_NONE, asked->hold.note);

    if (act) {
        act->detail =
            arena_printf(&work->arena, "%s %.*s", hold_kind_name(asked->hold.kind), SLICE_ARG(asked->hold.name));
        act->tool = asked->hold.kind == HOLD_TOOL ? asked->hold.name : SLICE_NONE;
        act->saga_name = asked->hold.kind == HOLD_SAGA ? asked->hold.name : SLICE_NONE;
    }
    asked->put.act = act_of_work(work);
    store_hold_put(engine->store, &asked->put);
}

/* --- release --- */

static void on_released(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;

    if (read->code == ERR_NOT_FOUND) {
        no_such_hold(work);
    } else if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
    } else if (asked->release.version == 0) {
        work_fail(work, ERR_DECIDED, "this hold has ended already", "GET it to see when, and by whom");
    } else {
        log_info("hold_released", LOG_I64("hold", (int64_t)asked->release.number),
                 LOG_SLICE("namespace", work->namespace), LOG_SLICE("actor", work->actor));
        wait_until_seen(asked, asked->release.number, asked->release.version);
    }
}

void engine_release_hold(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct asked *asked;

    if (work_refused(work)) {
        return;
    }
    asked = asked_new(work);
    asked->release = (struct hold_release){.read = {.arena = &work->arena, .done = on_released, .context = asked},
                                           .number = request->in.hold.number,
                                           .namespace = work->namespace,
                                           .body = work_signature(work, request->in.hold.note)};
    (void)act_new(work, "release", "hold",
                  arena_printf(&work->arena, "%llu", (unsigned long long)request->in.hold.number),
                  request->in.hold.note);
    asked->release.act = act_of_work(work);
    store_hold_release(engine->store, &asked->release);
}
