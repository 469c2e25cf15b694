/*
 * Schedules: this engine acts for schedules whose shard it owns.
 *
 *     due -> does its last saga run? -> decide about the instants up to now -> write that, fenced
 *         -> start the saga of the first instant in the queue -> write that it is there, fenced -> the next
 *
 * A decision is durable before its saga is started, and the saga has a business id made of the schedule and the
 * instant. So an engine that dies in between leaves an instant in the queue, and the next engine starts the same saga
 * again, which changes nothing. A write has no effect when its schedule was changed meanwhile, and the schedule is
 * looked at anew.
 *
 * An instant whose start is refused stays first in the queue, with the reason, and is tried again each minute: nothing
 * is lost while somebody mends the definition. After a refusal for too much work, or without a database, the start is
 * tried again after a second and leaves no trace.
 */
#include "run/saga/scheduler.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/metric.h"
#include "core/schedule/schedule.h"
#include "run/saga/due.h"
#include "run/saga/saga_room.h"

#define TAKE_MAX 32      /* schedules at work at once */
#define STARTS_MAX 16    /* the most starts of one schedule before others have their turn */
#define POLL_MS 60000    /* looks even when nobody has said that a schedule is due */
#define AGAIN_MS 1000    /* when there was no room, or no database */
#define RUNS_MS 2000     /* the saga before may have ended by then */
#define REFUSED_MS 60000 /* somebody may have mended the cause of the refusal by then */
#define UNREADABLE_MS 3600000
#define PATIENCE_MS 60000 /* an instant that is late by this much and two leases is still on time */
#define HORIZON_MS (INT64_C(400) * 24 * 3600 * 1000) /* how far ahead the offsets of a zone are known */
#define STATE_BYTES_MAX 65536

struct scheduler {
    struct engine *engine;
    struct due due;
    struct schedule_take take;
    bool again; /* something could not be done now */
};

struct firing { /* a schedule at work */
    struct scheduler *scheduler;
    const struct schedule_row *row;
    struct arena arena;
    struct schedule schedule;
    struct schedule_state state;
    struct zone zone;
    int64_t epoch;
    int starts;
    bool runs;    /* the saga that it started last still runs */
    bool dirty;   /* the row must be written */
    bool refused; /* the first instant of the queue was refused for now */
    char business_id[SCHEDULE_ID_BYTES_MAX];
    struct read_saga saga;
    struct engine_request request;
    struct schedule_move move;
};

static void firing_advance(struct firing *firing);

static void firing_end(struct firing *firing)
{
    struct scheduler *scheduler = firing->scheduler;

    arena_fini(&firing->arena);
    free(firing);
    due_ended(&scheduler->due);
}

static void firing_again(struct firing *firing) /* leaves the schedule due as before */
{
    firing->scheduler->again = true;
    firing_end(firing);
}

/* --- writing --- */

/* Returns when the schedule needs the next look. */
static int64_t next_look_ms(const struct firing *firing)
{
    const struct schedule_state *state = &firing->state;
    int64_t now_ms = loop_wall_ms(firing->scheduler->engine->loop), next_ms = state->next_ms, wait_ms;

    if (next_ms == INT64_MAX) { /* beyond the known offsets of the zone, which are known further in a day */
        next_ms = now_ms + HORIZON_MS / 400;
    }
    if (state->queue_count == 0) {
        return next_ms;
    }
    wait_ms = firing->refused ? REFUSED_MS : firing->runs ? RUNS_MS : 0;
    return next_ms < now_ms + wait_ms ? next_ms : now_ms + wait_ms;
}

static void on_moved(struct store_read *read)
{
    struct firing *firing = read->context;
    struct engine *engine = firing->scheduler->engine;

    if (firing->scheduler->due.stopped) {
        firing_end(firing);
    } else if (read->code != ERR_OK) {
        firing_again(firing);
    } else if (firing->move.fenced) {
        shard_fenced(engine, firing->row->shard, firing->epoch);
        firing_end(firing);
    } else if (!firing->move.moved) { /* somebody changed it, and the next look sees what is due */
        due_at(&firing->scheduler->due, 0);
        firing_end(firing);
    } else {
        due_at(&firing->scheduler->due, firing->move.look_ms);
        firing_advance(firing);
    }
}

static void firing_move(struct firing *firing, struct slice state, int64_t look_ms)
{
    struct schedule_move *move = &firing->move;

    firing->dirty = false;
    move->read = (struct store_read){.arena = &firing->arena, .done = on_moved, .context = firing};
    move->row = firing->row;
    move->epoch = firing->epoch;
    move->last_ms = firing->state.last_ms;
    move->look_ms = look_ms;
    move->state = state;
    store_schedule_move(firing->scheduler->engine->store, move);
}

static void firing_write(struct firing *firing)
{
    struct buffer text;

    buffer_init(&text, STATE_BYTES_MAX);
    schedule_state_write(&firing->state, &text);
    CHECK(!text.overflow);
    struct slice state = arena_slice(&firing->arena, buffer_slice(&text));

    buffer_fini(&text);
    firing_move(firing, state, next_look_ms(firing));
}

/* --- starting --- */

static void refuse(struct firing *firing, const struct err *err, const struct faults *faults)
{
    struct schedule_state *state = &firing->state;

    state->error = arena_slice(&firing->arena, slice_of(err->message));
    state->error_detail = arena_slice(&firing->arena, slice_of(err->detail));
    if (faults && faults->count > 0) {
        state->error_detail = arena_printf(&firing->arena, "%.*s: %.*s", SLICE_ARG(faults->items[0].pointer),
                                           SLICE_ARG(faults->items[0].detail));
    }
    state->error_at_ms = loop_wall_ms(firing->scheduler->engine->loop);
    state->error_instant_ms = state->queue_count > 0 ? state->queue[0] : state->last_ms;
    firing->dirty = true;
    metric_add(METRIC_SCHEDULE_REFUSALS, 1);
    log_warn("schedule_refused", LOG_SLICE("namespace", firing->row->namespace),
             LOG_SLICE("schedule", firing->row->name), LOG_ERR(err));
}

static void on_started(struct engine_request *request)
{
    struct firing *firing = container_of(request, struct firing, request);
    struct schedule_state *state = &firing->state;

    if (firing->scheduler->due.stopped) {
        firing_end(firing);
        return;
    }
    if (request->code == ERR_OK) {
        state->saga = request->saga;
        state->saga_at_ms = state->queue[0];
        state->started++;
        state->error = state->error_detail = SLICE_NONE;
        schedule_drop_first(state);
        firing->runs = true;
        firing->dirty = true;
        metric_add(METRIC_SCHEDULE_STARTS, 1);
    } else if (request->code == ERR_OTHER_INPUT) { /* another saga has its id, for ever */
        refuse(firing, &request->err, NULL);
        state->refused++;
        schedule_drop_first(state);
    } else if (err_retryable(request->code)) {
        firing_again(firing);
        return;
    } else {
        refuse(firing, &request->err, &request->faults);
        firing->refused = true;
    }
    firing_advance(firing);
}

static void firing_start(struct firing *firing)
{
    struct engine_request *request = &firing->request;
    struct slice name = firing->row->name;

    firing->starts++;
    schedule_business_id(name, firing->state.queue[0], firing->business_id);
    *request = (struct engine_request){
        .arena = &firing->arena,
        .namespace = firing->row->namespace,
        .actor = arena_printf(&firing->arena, "schedule:%.*s", SLICE_ARG(name)),
        .done = on_started,
        .in.start = {.saga = firing->schedule.saga,
                     .input = firing->schedule.input,
                     .business_id = slice_of(firing->business_id),
                     .tags = arena_printf(&firing->arena, "{\"schedule\":\"%.*s\"}", SLICE_ARG(name))}};
    engine_start_saga(firing->scheduler->engine, request);
}

static void firing_advance(struct firing *firing)
{
    bool may_start = !firing->refused && firing->starts < STARTS_MAX &&
                     schedule_may_start(&firing->schedule, &firing->state, firing->runs);

    if (firing->dirty) {
        firing_write(firing);
    } else if (may_start) {
        firing_start(firing);
    } else {
        firing_end(firing);
    }
}

/* --- a look --- */

static void firing_decide(struct firing *firing)
{
    const struct engine *engine = firing->scheduler->engine;

    if (firing->schedule.timetable.is_cron && firing->zone.count == 0) {
        struct err err = {0};

        (void)err_set(&err, ERR_INVALID, "the database does not know this time zone any more");
        refuse(firing, &err, NULL);
        firing->state.next_ms = loop_wall_ms(engine->loop) + UNREADABLE_MS;
    } else {
        schedule_decide(&firing->schedule, &firing->zone, loop_wall_ms(engine->loop),
                        PATIENCE_MS + 2 * engine->options.lease_ms, firing->runs, &firing->state);
    }
    firing->dirty = true;
    firing_advance(firing);
}

static void on_saga(struct store_read *read)
{
    struct firing *firing = read->context;
    const struct saga_row *row = &firing->saga.row;

    if (firing->scheduler->due.stopped) {
        firing_end(firing);
    } else if (read->code != ERR_OK && read->code != ERR_NOT_FOUND) {
        firing_again(firing);
    } else {
        firing->runs = read->code == ERR_OK && row->ended_ms == 0 && row->status != SAGA_ESCALATED;
        firing_decide(firing);
    }
}

static void firing_look(struct firing *firing)
{
    if (firing->schedule.overlap == OVERLAP_ALL || uuid_is_nil(&firing->state.saga.uuid)) {
        firing_decide(firing);
        return;
    }
    firing->saga = (struct read_saga){.read = {.arena = &firing->arena, .done = on_saga, .context = firing},
                                      .id = firing->state.saga,
                                      .namespace = firing->row->namespace,
                                      .turns_max = 1};
    store_read_saga(firing->scheduler->engine->store, &firing->saga);
}

static void scheduler_begin(struct due *due, size_t i)
{
    struct scheduler *scheduler = container_of(due, struct scheduler, due);
    struct engine *engine = due->engine;
    const struct schedule_row *row = &scheduler->take.rows[i];
    struct firing *firing;
    struct faults faults;
    bool known;

    if (engine->shards[row->shard].state != SHARD_OWNED) {
        return;
    }
    firing = memory_alloc(sizeof(*firing));
    arena_init(&firing->arena, 4096);
    firing->scheduler = scheduler;
    firing->row = row;
    firing->epoch = engine->shards[row->shard].epoch;
    firing->move.revision = row->revision;
    due_begun(due);
    faults_init(&faults, &firing->arena);
    known = zone_read_offsets(row->offsets, scheduler->take.until_ms, &firing->arena, &firing->zone);
    if (schedule_state_read(row->state, row->last_ms, &firing->arena, &firing->state) &&
        schedule_read(row->body, &firing->arena, &faults, &firing->schedule) && (known || !row->offsets.ptr)) {
        firing_look(firing);
        return;
    }
    log_error("schedule_unreadable", LOG_SLICE("namespace", row->namespace), LOG_SLICE("schedule", row->name));
    firing->state = (struct schedule_state){.last_ms = row->last_ms}; /* nothing is started for it */
    firing->starts = STARTS_MAX;
    firing_move(firing, row->state, loop_wall_ms(engine->loop) + UNREADABLE_MS);
}

static void scheduler_on_taken(struct store_read *read)
{
    struct scheduler *scheduler = read->context;
    bool is_good = read->code == ERR_OK;

    scheduler->again = !is_good;
    due_at(&scheduler->due, is_good ? scheduler->take.next_ms : INT64_MAX);
    due_rows(&scheduler->due, is_good ? scheduler->take.count : 0);
}

static void scheduler_take(struct due *due, uint64_t shards, int64_t now_ms)
{
    struct scheduler *scheduler = container_of(due, struct scheduler, due);

    scheduler->take =
        (struct schedule_take){.read = {.arena = &due->arena, .done = scheduler_on_taken, .context = scheduler},
                               .shards = shards,
                               .now_ms = now_ms,
                               .limit = TAKE_MAX,
                               .since_ms = now_ms - SCHEDULE_LOOK_BACK_MS,
                               .until_ms = now_ms + HORIZON_MS,
                               .next_ms = INT64_MAX};
    store_schedule_take(due->engine->store, &scheduler->take);
}

static void scheduler_over(struct due *due)
{
    const struct scheduler *scheduler = container_of(due, struct scheduler, due);
    int64_t now_ms = loop_wall_ms(due->engine->loop);

    due_at(due, scheduler->again ? now_ms + AGAIN_MS : due->count == TAKE_MAX ? 0 : now_ms + POLL_MS);
}

/* --- its own life --- */

static const struct due_kind scheduler_kind = {
    .under_way_max = TAKE_MAX, .take = scheduler_take, .begin = scheduler_begin, .over = scheduler_over};

static void on_changed(void *context)
{
    due_at(&((struct scheduler *)context)->due, 0);
}

struct scheduler *scheduler_new(struct engine *engine)
{
    struct scheduler *scheduler = memory_alloc(sizeof(*scheduler));

    scheduler->engine = engine;
    due_init(&scheduler->due, engine, &scheduler_kind);
    return scheduler;
}

void scheduler_watch(struct engine *engine)
{
    store_watch_schedules(engine->store, on_changed, engine->saga_room->scheduler);
}

void scheduler_free(struct scheduler *scheduler)
{
    due_fini(&scheduler->due);
    free(scheduler);
}
