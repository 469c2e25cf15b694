/* Calls that wait for a place: their lines, which of them may leave next, and what becomes of them when none may leave
 * any more. */
#include "run/call/call_queue.h"

#include <stdlib.h>

#include "base/metric.h"
#include "run/call/activity.h"
#include "run/call/call_room.h"
#include "run/call/call_terms.h"
#include "run/call/holds.h"
#include "run/call/limiter.h"
#include "run/exchange/exchange.h"
#include "run/intake/measures.h"
#include "run/query/health.h"
#include "run/saga/live.h"
#include "run/shard/shard.h"

#define FIRST_SHARE                                                                                                    \
    8                 /* about one of this many accepted calls belongs to a saga that begins; compensations go first   \
                       */
#define LOOKS_MAX 256 /* the most calls at the front of the lines that are checked for obstacles other than places */
#define LEASE_WAIT_MS 50

struct call_queue {
    struct list lines; /* the lines in which a call waits; the first line is served next */
    size_t count;      /* the calls in all lines */
};

struct calls {
    struct engine *engine;
    struct call_queue queues[CALL_QUEUE_COUNT];
    struct timer timer; /* runs the queues again */
    uint32_t let_in;    /* counts */
    uint32_t under_way, execs_under_way;
    uint32_t promised, execs_promised; /* places kept for calls whose intent is being made durable */
};

/* --- lines --- */

void call_lines_init(struct call_line lines[CALL_QUEUE_COUNT])
{
    for (int kind = 0; kind < CALL_QUEUE_COUNT; kind++) {
        lines[kind] = (struct call_line){0};
        list_init(&lines[kind].waiting);
    }
}

static const struct tool *tool_of(const struct activity *activity)
{
    return saga_tool(&activity->live->saga, activity->want.step, activity->want.direction);
}

static struct tool_health *health_of(const struct activity *activity)
{
    return tool_health_of(activity->engine, activity->namespace, tool_of(activity)->name);
}

static void stand_in_line(struct activity *activity, enum call_queue_kind kind, bool in_front)
{
    struct call_queue *queue = &activity->engine->call_room->calls->queues[kind];
    struct call_line *line = &health_of(activity)->lines[kind];

    if (in_front && list_linked(&line->link)) {
        list_remove(&queue->lines, &line->link);
    }
    if (!list_linked(&line->link)) {
        (in_front ? list_push_front : list_push)(&queue->lines, &line->link);
    }
    (in_front ? list_push_front : list_push)(&line->waiting, &activity->queue_link);
    activity->queue = queue;
    activity->line = line;
    queue->count++;
}

void call_queue_leave(struct activity *activity)
{
    struct call_line *line = activity->line;

    if (!line) {
        return;
    }
    list_remove(&line->waiting, &activity->queue_link);
    activity->queue->count--;
    if (list_empty(&line->waiting)) {
        list_remove(&activity->queue->lines, &line->link);
    }
    activity->line = NULL;
}

static struct call_line *line_at(struct list_link *link)
{
    return container_of(link, struct call_line, link);
}

static struct activity *waiting_at(struct list_link *link)
{
    return container_of(link, struct activity, queue_link);
}

/* --- places --- */

uint32_t calls_under_way(const struct engine *engine)
{
    return engine->call_room->calls->under_way;
}

bool calls_are_full(const struct engine *engine)
{
    return engine->call_room->calls->under_way + engine->call_room->calls->promised >= engine->options.calls_max;
}

/* Takes a place among the child processes; with `of` NULL gives it back. */
static void exec_take(struct activity *activity, struct tool_health *of)
{
    if (activity->exec_of) {
        activity->exec_of->exec_places--;
    }
    activity->exec_of = of;
    if (of) {
        of->exec_places++;
    }
}

void call_place_take(struct activity *activity, bool is_exec)
{
    struct calls *calls = activity->engine->call_room->calls;

    exec_take(activity, is_exec ? health_of(activity) : NULL);
    calls->under_way++;
    calls->execs_under_way += is_exec;
    gauge_set(GAUGE_CALLS_IN_FLIGHT, calls->under_way);
}

void call_place_give_back(struct activity *activity)
{
    struct calls *calls = activity->engine->call_room->calls;

    calls->under_way--;
    calls->execs_under_way -= activity->exec_of != NULL;
    exec_take(activity, NULL);
    gauge_set(GAUGE_CALLS_IN_FLIGHT, calls->under_way);
}

static void promise_place(struct activity *activity, bool is_exec)
{
    struct calls *calls = activity->engine->call_room->calls;

    activity->promised = true;
    exec_take(activity, is_exec ? health_of(activity) : NULL);
    calls->promised++;
    calls->execs_promised += is_exec;
}

void call_promise_give_back(struct activity *activity)
{
    struct calls *calls = activity->engine->call_room->calls;

    if (!activity->promised) {
        return;
    }
    calls->promised--;
    calls->execs_promised -= activity->exec_of != NULL;
    exec_take(activity, NULL);
    activity->promised = false;
    call_queue_run_soon(activity->engine);
}

/* --- who comes --- */

bool call_queue_holds_intent(const struct activity *activity)
{
    return (activity->want.type == WANT_TIMER || activity->want.type == WANT_ADMIT) &&
           activity->want.step != STEP_NONE && activity->want.direction == DIRECTION_DO &&
           !effect_is_safe(activity->effect);
}

/* Does the call go first? Its intent is already durable, and a crash would leave it to a person, so calls that may be
 * repeated let it go first. A place was promised to it, which no other call may take. */
static bool goes_first(const struct activity *activity)
{
    return activity->want.type == WANT_CALL && activity->want.direction == DIRECTION_DO &&
           !effect_is_safe(activity->effect);
}

static enum call_queue_kind queue_for(const struct activity *activity)
{
    return activity->want.direction == DIRECTION_UNDO ? CALL_QUEUE_UNDO
           : activity->live->begun                    ? CALL_QUEUE_BEGUN
                                                      : CALL_QUEUE_FIRST;
}

/* Does the call return at once? When its shard is being given away but may be kept, a call waits until that is known. A
 * call that a crash meanwhile would leave to a person does not wait. */
static bool returns_at_once(const struct activity *activity)
{
    return engine_is_draining(activity->engine) || (live_stops(activity->live) && goes_first(activity));
}

void call_queue_push(struct activity *activity)
{
    activity->state = ACTIVITY_WAITING;
    activity->held_up = false;
    activity->queued_boot_ms = loop_boot_ms(activity->engine->loop);
    if (activity->want.type == WANT_CALL && returns_at_once(activity)) {
        activity_return(activity);
        return;
    }
    if (engine_is_draining(activity->engine)) {
        limiter_forgo(activity);
        return;
    }
    if (holds_keep(activity)) {
        return;
    }
    if (goes_first(activity)) {
        stand_in_line(activity, CALL_QUEUE_UNDO, true); /* this call is served first */
    } else {
        stand_in_line(activity, queue_for(activity), false);
    }
    if (!timer_running(&activity->engine->call_room->calls->timer)) {
        call_queue_run(activity->engine);
    }
}

/* --- who may leave --- */

static void on_call_timer(struct timer *timer)
{
    call_queue_run(container_of(timer, struct calls, timer)->engine);
}

size_t call_queue_waiting(const struct engine *engine)
{
    size_t count = 0;

    for (int kind = 0; kind < CALL_QUEUE_COUNT; kind++) {
        count += engine->call_room->calls->queues[kind].count;
    }
    return count;
}

size_t call_queue_count(const struct engine *engine, enum call_queue_kind kind)
{
    return engine->call_room->calls->queues[kind].count;
}

void call_queue_run_soon(struct engine *engine)
{
    if (!engine_is_draining(engine) && call_queue_waiting(engine) > 0 &&
        !timer_running(&engine->call_room->calls->timer)) {
        timer_start(engine->loop, &engine->call_room->calls->timer, 0, on_call_timer);
    }
}

static bool is_exec(const struct activity *activity)
{
    return slice_is(tool_of(activity)->adapter, "exec");
}

/* Has the tool its share of child processes? The last quarter of the places is for other tools, so that the slow
 * programs of one tool do not hold up all others. An undo, and a call with a promised place, goes on. */
static bool has_its_share(const struct activity *activity)
{
    uint32_t places = activity->engine->options.exec_max;

    return activity->want.direction == DIRECTION_DO && !goes_first(activity) &&
           health_of(activity)->exec_places >= places - places / 4;
}

/* The obstacles of a call in the queue, besides a place among the calls. */
enum obstacle {
    OBSTACLE_NONE,
    OBSTACLE_SHARD, /* the shard is kept or has gone */
    OBSTACLE_EXEC,  /* a place among the child processes */
    OBSTACLE_PAUSE, /* the tool asked for a pause */
    OBSTACLE_LEASE  /* the lease is about to end, or the database is away: wait for renewal or the end */
};

static enum obstacle obstacle_of(const struct activity *activity)
{
    const struct engine *engine = activity->engine;
    const struct shard *shard = activity->live->shard;

    if (shard->state == SHARD_GIVING) {
        return OBSTACLE_SHARD;
    }
    if (is_exec(activity) && (engine->call_room->calls->execs_under_way + engine->call_room->calls->execs_promised >=
                                  engine->options.exec_max ||
                              has_its_share(activity))) {
        return OBSTACLE_EXEC;
    }
    if (limiter_paused_ms(activity) > 0) {
        return OBSTACLE_PAUSE;
    }
    return lease_allows_send(engine->leases, shard->number) ? OBSTACLE_NONE : OBSTACLE_LEASE;
}

int64_t call_queue_waited_ms(const struct engine *engine, enum call_queue_kind kind)
{
    const struct list *lines = &engine->call_room->calls->queues[kind].lines;
    int64_t now_ms = loop_boot_ms(engine->loop), longest_ms = 0;
    int looks = 0;

    for (struct list_link *at = list_first(lines); at && looks < LOOKS_MAX; at = list_after(lines, at)) {
        const struct list *waiting = &line_at(at)->waiting;

        for (struct list_link *link = list_first(waiting); link && looks < LOOKS_MAX;
             link = list_after(waiting, link), looks++) {
            const struct activity *activity = waiting_at(link);

            if (obstacle_of(activity) == OBSTACLE_NONE) {
                int64_t waited_ms = now_ms - activity->queued_boot_ms;

                longest_ms = waited_ms > longest_ms ? waited_ms : longest_ms;
                break;
            }
        }
    }
    return longest_ms;
}

/* May the call leave? Returns false when it goes on waiting; the queue is run again when that may have changed. */
static bool may_leave(struct activity *activity, enum obstacle obstacle, int64_t *held_ms)
{
    struct engine *engine = activity->engine;
    int64_t paused_ms;

    switch (obstacle) {
    case OBSTACLE_NONE:
        return true;
    case OBSTACLE_SHARD:
    case OBSTACLE_EXEC:
        break;
    case OBSTACLE_PAUSE:
        paused_ms = limiter_paused_ms(activity);
        *held_ms = *held_ms == 0 || paused_ms < *held_ms ? paused_ms : *held_ms;
        break;
    case OBSTACLE_LEASE:
        if (!timer_running(&engine->call_room->calls->timer)) {
            timer_start(engine->loop, &engine->call_room->calls->timer, LEASE_WAIT_MS, on_call_timer);
        }
        break;
    }
    activity->held_up = true;
    return false;
}

/* Returns the first call of the line that may leave, or NULL. When one call waits for a child process, all calls behind
 * it wait for the same. */
static struct activity *next_of(const struct call_line *line, int64_t *held_ms)
{
    for (struct list_link *link = list_first(&line->waiting); link; link = list_after(&line->waiting, link)) {
        struct activity *activity = waiting_at(link);
        enum obstacle obstacle = obstacle_of(activity);

        if (may_leave(activity, obstacle, held_ms)) {
            return activity;
        }
        if (obstacle == OBSTACLE_EXEC) {
            break;
        }
    }
    return NULL;
}

/* Releases a call: its intent is made durable now, and the place is kept for it until then. */
static void release_intent(struct activity *activity)
{
    promise_place(activity, is_exec(activity));
    if (activity->want.type == WANT_ADMIT) {
        limiter_admission(activity, ADMISSION_GRANTED, SLICE_NONE, SLICE_NONE, 0, SLICE_NONE);
    } else {
        activity_report_timer(activity);
    }
}

/* Tells the intake how long the call waited for a place. The time counts only when nothing else held the call up and
 * others wait behind it. */
static void tell_intake(const struct activity *activity, enum call_queue_kind kind, bool was_last)
{
    bool says_nothing = activity->held_up || was_last;

    if (kind != CALL_QUEUE_UNDO) {
        intake_call_left(activity->engine, kind == CALL_QUEUE_FIRST,
                         says_nothing ? INT64_MAX : loop_boot_ms(activity->engine->loop) - activity->queued_boot_ms);
    }
}

static void let_in(struct activity *activity)
{
    activity->engine->call_room->calls->let_in++;
    if (holds_keep(activity)) {
        return;
    }
    if (limiter_is_stale(activity)) {
        limiter_enter(activity);
    } else if (call_queue_holds_intent(activity) && activity->inquiry == INQUIRY_NONE) {
        release_intent(activity);
    } else {
        dispatch_begin(activity);
    }
}

static void queue_run(struct engine *engine, enum call_queue_kind kind, int64_t *held_ms)
{
    struct list *lines = &engine->call_room->calls->queues[kind].lines;
    struct list_link *at = list_first(lines);

    while (at && !calls_are_full(engine)) {
        struct call_line *line = line_at(at);
        struct activity *activity = next_of(line, held_ms);

        if (!activity) {
            at = list_after(lines, at);
            continue;
        }
        call_queue_leave(activity);
        if (list_linked(&line->link)) { /* the other tools have their turn first */
            list_remove(lines, &line->link);
            list_push(lines, &line->link);
        }
        tell_intake(activity, kind, !list_linked(&line->link));
        let_in(activity);
        at = list_first(lines); /* a call that ended at once may have changed the lines */
    }
}

void call_queue_run(struct engine *engine)
{
    int64_t held_ms = 0;

    if (engine_is_draining(engine)) {
        return; /* the next owner makes these calls */
    }
    if (holds_are_stale(engine->holds)) {
        return; /* the holds are being read, and the queues run again then */
    }
    bool first = engine->call_room->calls->let_in % FIRST_SHARE == 0;

    queue_run(engine, CALL_QUEUE_UNDO, &held_ms);
    queue_run(engine, first ? CALL_QUEUE_FIRST : CALL_QUEUE_BEGUN, &held_ms);
    queue_run(engine, first ? CALL_QUEUE_BEGUN : CALL_QUEUE_FIRST, &held_ms);
    if (held_ms > 0) {
        limiter_hold(engine, held_ms);
    }
}

/* --- when nobody may leave any more --- */

static void return_of_line(struct call_line *line, uint32_t shard)
{
    struct list_link *link = list_first(&line->waiting);

    while (link) {
        struct activity *activity = waiting_at(link);

        link = list_after(&line->waiting, link);
        if (activity->shard == shard && activity->want.type == WANT_CALL) {
            call_queue_leave(activity);
            activity_return(activity);
        }
    }
}

void call_queue_return_shard(struct shard *shard)
{
    for (int kind = 0; kind < CALL_QUEUE_COUNT; kind++) {
        struct list *lines = &shard->engine->call_room->calls->queues[kind].lines;
        struct list_link *at = list_first(lines);

        while (at) {
            struct call_line *line = line_at(at);

            at = list_after(lines, at);
            return_of_line(line, shard->number);
        }
    }
}

void call_queue_return(struct engine *engine)
{
    for (int kind = 0; kind < CALL_QUEUE_COUNT; kind++) {
        struct list_link *at;

        while ((at = list_first(&engine->call_room->calls->queues[kind].lines)) != NULL) {
            struct activity *activity = waiting_at(list_first(&line_at(at)->waiting));

            call_queue_leave(activity);
            if (activity->want.type == WANT_CALL) {
                activity_return(activity);
            } else {
                limiter_forgo(activity);
            }
        }
    }
    limiter_return(engine);
}

/* --- their own life --- */

struct calls *calls_new(struct engine *engine)
{
    struct calls *calls = memory_alloc(sizeof(*calls));

    calls->engine = engine;
    for (int kind = 0; kind < CALL_QUEUE_COUNT; kind++) {
        list_init(&calls->queues[kind].lines);
    }
    return calls;
}

void calls_stop(struct engine *engine)
{
    timer_stop(engine->loop, &engine->call_room->calls->timer);
}

void calls_free(struct calls *calls)
{
    free(calls);
}
