/* Requests about schedules: make, list, hold, release and delete them, and see their next instants. The owner of the
 * shard acts on what is written here (saga/scheduler.c). */
#include "run/request/act.h"

#include "base/instant.h"
#include "base/json.h"
#include "core/saga/sensitive.h"
#include "core/schedule/schedule.h"
#include "store/business.h"

#define SCHEDULES_MAX 1000 /* the most schedules of a namespace */
#define LIMIT_DEFAULT 50
#define NEXT_DEFAULT 10
#define BODY_BYTES_MAX (64u << 20)
#define NEXT_HORIZON_MS (INT64_C(12) * 366 * 24 * 3600 * 1000) /* a 29th of February comes within eight years */

struct asked { /* for a work of this file */
    struct work *work;
    struct schedule schedule;
    struct zone_read zone;
    struct schedule_put put;
    struct schedule_list list;
    struct schedule_change change;
    size_t limit;
};

static uint32_t schedule_shard(struct slice namespace, struct slice name)
{
    struct slice fields[] = {namespace, name};
    struct digest digest = digest_fields("schedule", fields, COUNT_OF(fields));

    return digest_shard(&digest);
}

static struct asked *asked_new(struct work *work)
{
    struct asked *asked = arena_alloc(&work->arena, sizeof(*asked));

    asked->work = work;
    return asked;
}

static void no_such_schedule(struct work *work)
{
    work_fail(work, ERR_NOT_FOUND, "there is no schedule with this name", "`sagactl schedules` lists them");
}

/* --- as JSON --- */

static void write_instant(struct json_writer *w, const char *name, int64_t ms)
{
    char text[INSTANT_TEXT_BYTES];

    if (ms == 0 || ms == INT64_MAX) {
        json_write_null(w, name);
        return;
    }
    instant_text(ms, text);
    json_write_text(w, name, text);
}

static void write_members(struct json_writer *w, struct slice object, bool hides, struct arena *arena)
{
    struct json_walk walk = json_walk(object);
    struct slice name, value;

    while (json_next_member(&walk, &name, &value)) {
        json_write_raw(w, arena_text(arena, name), /* our own names need no escapes */
                       hides && slice_is(name, "input") ? SLICE(SENSITIVE_MASK_JSON) : value);
    }
}

static void write_last_saga(struct json_writer *w, const struct schedule_state *state)
{
    char id[UUID_TEXT_BYTES];

    if (uuid_is_nil(&state->saga.uuid)) {
        json_write_null(w, "last_saga");
        return;
    }
    uuid_text(&state->saga.uuid, id);
    json_object_begin(w, "last_saga");
    json_write_text(w, "saga", id);
    write_instant(w, "instant", state->saga_at_ms);
    json_object_end(w);
}

/* The detail of a refusal may show a part of the input. */
static void write_error(struct json_writer *w, const struct schedule_state *state, bool hides)
{
    if (!state->error.ptr) {
        json_write_null(w, "error");
        return;
    }
    json_object_begin(w, "error");
    json_write_slice(w, "message", state->error);
    json_write_slice(w, "detail",
                     state->error_detail.len == 0 ? SLICE_NONE
                     : hides                      ? SLICE(SENSITIVE_MASK)
                                                  : state->error_detail);
    write_instant(w, "instant", state->error_instant_ms);
    write_instant(w, "at", state->error_at_ms);
    json_object_end(w);
}

static void put_schedule(struct work *work, const struct schedule_row *row)
{
    struct schedule_state *state = arena_alloc(&work->arena, sizeof(*state));
    bool readable = schedule_state_read(row->state, row->last_ms, &work->arena, state);
    bool hides = work_hides(work, json_string(json_member(row->body, "saga"), &work->arena));
    struct json_writer w;

    json_writer_init(&w, &work->out);
    json_object_begin(&w, NULL);
    write_members(&w, row->body, hides, &work->arena);
    json_write_text(&w, "status", row->hold.ptr ? "held" : !readable || state->error.ptr ? "failing" : "active");
    write_instant(&w, "created_at", row->created_ms);
    json_write_slice(&w, "created_by", row->actor);
    write_instant(&w, "last_at", row->last_ms);
    write_instant(&w, "next_at", row->hold.ptr ? INT64_MAX : state->next_ms);
    json_write_i64(&w, "queued", (int64_t)state->queue_count);
    json_write_i64(&w, "started", state->started);
    json_write_i64(&w, "skipped", state->skipped);
    json_write_i64(&w, "missed", state->missed);
    json_write_i64(&w, "refused", state->refused);
    write_last_saga(&w, state);
    json_write_raw(&w, "hold", row->hold);
    write_error(&w, state, hides);
    json_object_end(&w);
}

/* --- read --- */

static void on_one(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;

    if (read->code == ERR_NOT_FOUND) {
        no_such_schedule(work);
    } else if (!work_read_failed(work, read)) {
        put_schedule(work, &asked->list.rows[0]);
        work_done(work, ERR_OK, NULL);
    }
}

static void read_one(struct asked *asked, struct slice name, void (*done)(struct store_read *), int64_t ahead_ms)
{
    int64_t now_ms = loop_wall_ms(asked->work->engine->loop);

    asked->list = (struct schedule_list){.read = {.arena = &asked->work->arena, .done = done, .context = asked},
                                         .namespace = asked->work->namespace,
                                         .name = name,
                                         .limit = 1,
                                         .since_ms = now_ms,
                                         .until_ms = now_ms + ahead_ms};
    store_schedule_list(asked->work->engine->store, &asked->list);
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
        put_schedule(work, &asked->list.rows[i]);
    }
    buffer_put_char(&work->out, ']');
    if (asked->list.count > asked->limit && work->request) {
        work->request->next_cursor = arena_slice(work->request->arena, asked->list.rows[asked->limit - 1].name);
    }
    work_done(work, ERR_OK, NULL);
}

void engine_get_schedules(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct asked *asked;

    if (work_refused(work)) {
        return;
    }
    asked = asked_new(work);
    if (request->in.schedule.name.ptr) {
        read_one(asked, arena_slice(&work->arena, request->in.schedule.name), on_one, 0);
        return;
    }
    asked->limit = request->in.schedule.limit ? request->in.schedule.limit : LIMIT_DEFAULT;
    asked->list = (struct schedule_list){.read = {.arena = &work->arena, .done = on_list, .context = asked},
                                         .namespace = work->namespace,
                                         .after = arena_slice(&work->arena, request->in.schedule.cursor),
                                         .limit = asked->limit + 1};
    store_schedule_list(engine->store, &asked->list);
}

static void put_instants(struct work *work, const struct timetable *timetable, const struct zone *zone,
                         int64_t after_ms, size_t limit)
{
    struct json_writer w;

    json_writer_init(&w, &work->out);
    json_object_begin(&w, NULL);
    json_array_begin(&w, "items");
    for (size_t i = 0; i < limit; i++) {
        after_ms = timetable_next(timetable, zone, after_ms);
        if (after_ms >= zone->until_ms) {
            break;
        }
        write_instant(&w, NULL, after_ms);
    }
    json_array_end(&w);
    json_object_end(&w);
    work_done(work, ERR_OK, NULL);
}

static void on_next(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;
    const struct schedule_row *row = asked->list.rows;
    struct faults faults;
    struct zone zone;
    int64_t now_ms = loop_wall_ms(work->engine->loop);

    if (read->code == ERR_NOT_FOUND) {
        no_such_schedule(work);
        return;
    }
    if (work_read_failed(work, read)) {
        return;
    }
    faults_init(&faults, &work->arena);
    if (!schedule_read(row->body, &work->arena, &faults, &asked->schedule) ||
        (!zone_read_offsets(row->offsets, asked->list.until_ms, &work->arena, &zone) &&
         asked->schedule.timetable.is_cron)) {
        work_fail(work, ERR_CORRUPT,
                  "this schedule cannot be read, or the database does not know its time zone any more",
                  "delete it and make it anew");
        return;
    }
    zone.until_ms = asked->list.until_ms;
    put_instants(work, &asked->schedule.timetable, &zone, row->last_ms > now_ms ? row->last_ms : now_ms, asked->limit);
}

void engine_get_schedule_next(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct asked *asked;

    if (work_refused(work)) {
        return;
    }
    asked = asked_new(work);
    asked->limit = request->in.schedule.limit ? request->in.schedule.limit : NEXT_DEFAULT;
    read_one(asked, arena_slice(&work->arena, request->in.schedule.name), on_next, NEXT_HORIZON_MS);
}

/* --- make --- */

static void on_put(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;
    struct err err = {0};

    if (work_read_failed(work, read)) {
        return;
    }
    switch (asked->put.outcome) {
    case SCHEDULE_TOO_MANY:
        (void)err_set(&err, ERR_INVALID, "this namespace has %d schedules, which is as many as it may have",
                      SCHEDULES_MAX);
        err_hint(&err, "delete those that are not needed any more");
        work_done(work, ERR_INVALID, &err);
        return;
    case SCHEDULE_OTHER:
        work_fail(work, ERR_CONFLICT, "there is a schedule with this name, and it is another one",
                  "choose another name, or delete that one first");
        return;
    case SCHEDULE_MADE:
    case SCHEDULE_SAME:
        if (work->request) {
            work->request->created = asked->put.outcome == SCHEDULE_MADE;
        }
        read_one(asked, asked->put.name, on_one, 0);
        return;
    }
    UNREACHABLE();
}

static void send_put(struct asked *asked)
{
    struct work *work = asked->work;
    const struct schedule *schedule = &asked->schedule;
    struct buffer body;

    buffer_init(&body, BODY_BYTES_MAX);
    schedule_write(schedule, &body);
    CHECK(!body.overflow);
    asked->put = (struct schedule_put){
        .read = {.arena = &work->arena, .done = on_put, .context = asked},
        .shard = schedule_shard(work->namespace, schedule->name),
        .namespace = work->namespace,
        .name = schedule->name,
        .body = arena_slice(&work->arena, buffer_slice(&body)),
        .actor = work->actor,
        .zone = schedule->timetable.is_cron ? schedule->zone : SLICE_NONE,
        .id = saga_id_new(loop_wall_ms(work->engine->loop), 0).uuid,
        .max = SCHEDULES_MAX,
    };
    buffer_fini(&body);
    struct person_act *act = act_new(work, "schedule", "schedule", schedule->name, SLICE_NONE);

    if (act) {
        act->saga_name = schedule->saga;
    }
    asked->put.act = act_of_work(work);
    store_schedule_put(work->engine->store, &asked->put);
}

static void on_zone(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;
    struct faults faults;

    if (read->code == ERR_OK) {
        send_put(asked);
    } else if (read->code == ERR_NOT_FOUND && work->request) {
        faults_init(&faults, work->request->arena);
        faults_add(&faults, SLICE("/zone"), "the database knows no time zone `%.*s`", SLICE_ARG(asked->schedule.zone));
        work_fail_by_faults(work, &faults, "this schedule is not right");
    } else {
        work_done(work, read->code, &read->err);
    }
}

/* Checks what the schedule would start, so that it is refused now and not at its first instant. */
static void check_start(struct work *work, const struct schedule *schedule, struct faults *faults)
{
    const struct definition *definition =
        definitions_newest(work->engine->definitions, work->namespace, schedule->saga, 0, NULL);
    struct err err = {0};

    if (!definition || slice_starts_with(schedule->saga, "~")) {
        faults_add(faults, SLICE("/saga"), "there is no saga definition `%.*s`", SLICE_ARG(schedule->saga));
    } else if (!definitions_lets_start(work->engine->definitions, work->namespace, schedule->saga, &work->arena,
                                       &err)) {
        faults_add(faults, SLICE("/saga"), "%s", err.message);
    } else if (schedule->input.len > work->engine->options.payload_bytes_max) {
        faults_add(faults, SLICE("/input"), "it has %zu bytes, at most %zu are taken", schedule->input.len,
                   work->engine->options.payload_bytes_max);
    } else {
        schema_check(definition->input, schedule->input, SLICE("/input"), &work->arena, faults);
    }
}

void engine_put_schedule(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct asked *asked;
    struct faults faults;

    if (work_refused(work)) {
        return;
    }
    asked = asked_new(work);
    faults_init(&faults, request->arena);
    if (schedule_read(arena_slice(&work->arena, request->in.schedule.body), &work->arena, &faults, &asked->schedule)) {
        check_start(work, &asked->schedule, &faults);
    }
    if (faults.count > 0) {
        work_fail_by_faults(work, &faults, "this schedule is not right");
        return;
    }
    if (!asked->schedule.timetable.is_cron) {
        send_put(asked);
        return;
    }
    asked->zone = (struct zone_read){.read = {.arena = &work->arena, .done = on_zone, .context = asked},
                                     .name = asked->schedule.zone};
    store_zone_read(engine->store, &asked->zone);
}

/* --- hold, release, delete --- */

static void on_changed(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;

    if (read->code == ERR_NOT_FOUND) {
        no_such_schedule(work);
    } else if (read->code != ERR_OK || asked->change.removes) {
        work_done(work, read->code, &read->err);
    } else {
        read_one(asked, asked->change.name, on_one, 0);
    }
}

static const char *const act_names[] = {
    [SCHEDULE_HOLD] = "hold", [SCHEDULE_RELEASE] = "release", [SCHEDULE_DELETE] = "delete"};

void engine_change_schedule(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct asked *asked;

    if (work_refused(work)) {
        return;
    }
    asked = asked_new(work);
    asked->change = (struct schedule_change){
        .read = {.arena = &work->arena, .done = on_changed, .context = asked},
        .shard = schedule_shard(work->namespace, request->in.schedule.name),
        .namespace = work->namespace,
        .name = arena_slice(&work->arena, request->in.schedule.name),
        .hold =
            request->in.schedule.act == SCHEDULE_HOLD ? work_signature(work, request->in.schedule.note) : SLICE_NONE,
        .removes = request->in.schedule.act == SCHEDULE_DELETE,
    };
    (void)act_new(work, act_names[request->in.schedule.act], "schedule", asked->change.name, request->in.schedule.note);
    asked->change.act = act_of_work(work);
    store_schedule_change(engine->store, &asked->change);
}
