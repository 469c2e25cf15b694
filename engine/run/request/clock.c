/*
 * The virtual clock of `sagad dev --clock virtual`: shown, and moved ahead.
 *
 * PostgreSQL's clock moves first (store/virtual_clock.h), because time is the database's. Then the loop takes the step,
 * and every timer of a saga, schedule or hold that is due by the new time fires. A client whose answer was lost looks
 * where the clock is and asks again, and a statement that is sent twice moves it once: it says how far ahead of the
 * real time it is to be, and the act that it writes has one id.
 */
#include "base/instant.h"
#include "base/json.h"
#include "run/call/activity.h"
#include "run/call/limiter.h"
#include "run/notify/notifier.h"
#include "run/request/act.h"
#include "store/virtual_clock.h"

struct moving {
    struct work *work;
    struct clock_move move;
    int64_t by_ms, until_ms;
    bool to_next, moves;
    struct slice act; /* JSON */
};

/* The next time of the sagas in memory; those that left it have a row, which the database has looked at. */
static int64_t next_in_memory(const struct engine *engine)
{
    int64_t next_ms = INT64_MAX;
    size_t position = 0;

    for (const struct live *live; (live = lives_next(engine, &position)) != NULL;) {
        for (struct list_link *link = list_first(&live->activities); link; link = list_after(&live->activities, link)) {
            const struct activity *activity = container_of(link, struct activity, link);

            if (activity->state == ACTIVITY_WAITING && timer_running(&activity->timer) &&
                activity->want.due_ms < next_ms) {
                next_ms = activity->want.due_ms;
            }
        }
    }
    return next_ms;
}

/* 0: nothing is due. */
static int64_t next_of(const struct moving *moving)
{
    const struct engine *engine = moving->work->engine;
    int64_t stored_ms = moving->move.next_ms, memory_ms = next_in_memory(engine),
            rest_ms = notifier_rests_until_ms(engine->notifier);

    memory_ms = rest_ms != 0 && rest_ms < memory_ms ? rest_ms : memory_ms;
    return stored_ms != 0 && stored_ms < memory_ms ? stored_ms : memory_ms != INT64_MAX ? memory_ms : 0;
}

static void show(struct moving *moving)
{
    struct work *work = moving->work;
    struct json_writer w;

    json_writer_init(&w, &work->out);
    json_object_begin(&w, NULL);
    json_write_instant(&w, "now", moving->move.now_ms);
    json_write_i64(&w, "ahead_ms", moving->move.ahead_ms);
    json_write_instant(&w, "next_at", next_of(moving));
    json_object_end(&w);
    work_done(work, ERR_OK, NULL);
}

static void talk(struct moving *moving, int64_t to_ms);

static void move_now(struct moving *moving)
{
    int64_t next_ms = next_of(moving), until_ms = moving->to_next ? next_ms : moving->until_ms,
            by_ms = moving->by_ms > 0 ? moving->by_ms : until_ms - moving->move.now_ms;

    if (moving->to_next && next_ms == 0) {
        work_fail(moving->work, ERR_CONFLICT, "nothing is due: nothing waits for a time",
                  "move the clock by a duration, such as 1d");
    } else if (moving->until_ms > 0 && moving->until_ms <= moving->move.now_ms) {
        work_fail(moving->work, ERR_INVALID, "the clock only goes ahead, and this instant is past",
                  "`sagactl time` says what time it is");
    } else {
        moving->moves = false;
        talk(moving, moving->move.ahead_ms + (by_ms > 0 ? by_ms : 1)); /* what is due next may be due by now */
    }
}

static void step(struct engine *engine, int64_t now_ms)
{
    int64_t before_ms = loop_wall_ms(engine->loop), ahead_ms = now_ms > before_ms ? now_ms - before_ms : 0;

    loop_step(engine->loop, now_ms, loop_boot_ms_now());
    limiter_step(engine, ahead_ms);
    notifier_step(engine->notifier, ahead_ms);
}

static void on_talked(struct store_read *read)
{
    struct moving *moving = read->context;
    struct work *work = moving->work;

    if (read->code == ERR_NOT_FOUND) {
        work_fail(work, ERR_INVALID, "the clock would be more than a hundred years ahead",
                  "give `sagad dev` a new --dir, which begins at the real time");
    } else if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
    } else if (moving->moves) {
        move_now(moving);
    } else {
        if (moving->move.to_ms > 0) {
            step(work->engine, moving->move.now_ms);
        }
        show(moving);
    }
}

static void talk(struct moving *moving, int64_t to_ms)
{
    moving->move = (struct clock_move){.read = {.arena = &moving->work->arena, .done = on_talked, .context = moving},
                                       .to_ms = to_ms,
                                       .act = moving->act};
    store_clock_move(moving->work->engine->store, &moving->move);
}

static struct slice act_of_move(struct moving *moving)
{
    struct work *work = moving->work;
    struct person_act *act = act_new(work, "move", "clock", SLICE_NONE, SLICE_NONE);
    char text[INSTANT_TEXT_BYTES] = "next";

    if (moving->by_ms > 0) {
        duration_text(moving->by_ms, text);
    } else if (!moving->to_next) {
        instant_text(moving->until_ms, text);
    }
    if (act) {
        act->detail = arena_printf(&work->arena, "%s %s", moving->by_ms > 0 ? "by" : "to", text);
    }
    return act_of_work(work);
}

static void begin(struct engine *engine, struct engine_request *request, bool moves)
{
    struct work *work = work_new(engine, request);

    if (work_refused(work)) {
        return;
    }
    if (!engine->options.virtual_clock) {
        work_fail(work, ERR_NOT_FOUND, "this service goes by the real time, and nobody can move it",
                  "`sagad dev --clock virtual` has a clock for tests");
        return;
    }
    struct moving *moving = arena_alloc(&work->arena, sizeof(*moving));

    *moving = (struct moving){.work = work, .moves = moves};
    if (moves) {
        moving->by_ms = request->in.clock.by_ms;
        moving->until_ms = request->in.clock.until_ms;
        moving->to_next = request->in.clock.to_next;
        moving->act = act_of_move(moving);
    }
    talk(moving, 0);
}

void engine_get_clock(struct engine *engine, struct engine_request *request)
{
    begin(engine, request, false);
}

void engine_move_clock(struct engine *engine, struct engine_request *request)
{
    begin(engine, request, true);
}
