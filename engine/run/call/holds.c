/* See holds.h. */
#include "run/call/holds.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/metric.h"
#include "run/call/call_queue.h"
#include "run/call/hold_ends.h"
#include "run/call/limiter.h"
#include "run/readiness.h"
#include "run/saga/live.h"
#include "run/saga/park.h"
#include "store/holds.h"

#define AGAIN_MS 200       /* the time until the next try when the holds could not be read */
#define STEP_MS 20         /* sagas are let go at most this often */
#define UNTIL_MS_MAX 60000 /* the clock is read again after this time, because it may be set forward */

struct holds {
    struct engine *engine;
    struct hold_ends *ends;
    struct hold_set set; /* lies in: */
    struct arena arena;
    struct arena loading; /* holds the reading under way */
    struct arena scratch;
    int64_t version, newest;
    bool known, busy, again, stopped;
    struct hold_load load;
    struct hold_seen seen;
    struct arena telling;
    bool tells, tells_again;
    struct list held;   /* sagas with held work */
    struct list let_go; /* sagas that nothing holds any more and that have not gone on yet */
    uint32_t pace;
    struct timer timer, until_timer, again_timer;
};

/* --- which hold --- */

static bool begins_a_call(const struct activity *activity)
{
    const struct want *want = &activity->want;
    const struct saga *saga = &activity->live->saga;
    const struct step *step;

    if (want->step == STEP_NONE || !step_calls(&saga->definition->steps[want->step])) {
        return false;
    }
    step = &saga->steps[want->step];
    switch (want->type) {
    case WANT_ADMIT:
    case WANT_CALL:
        return true;
    case WANT_EVALUATE:
        return want->number == EVALUATE_UNDO;
    case WANT_TIMER:
        return want->direction == DIRECTION_UNDO || step->forward.state == OP_PENDING ||
               step->forward.state == OP_RETRYING;
    case WANT_PROBE:
    case WANT_LOCK:
        return false;
    }
    UNREACHABLE();
}

const struct hold *holds_on(const struct activity *activity)
{
    struct holds *holds = activity->engine->holds;

    if (holds->set.count == 0 || !begins_a_call(activity)) {
        return NULL;
    }
    const struct saga *saga = &activity->live->saga;
    enum direction direction = activity->want.type == WANT_EVALUATE ? DIRECTION_UNDO : activity->want.direction;

    arena_reset(&holds->scratch);
    return hold_of_call(&holds->set, saga, saga_tool(saga, activity->want.step, direction)->name, direction,
                        &holds->scratch);
}

/* --- what waits --- */

static void on_looked(struct mail *mail, enum err_code code, const struct err *err)
{
    (void)code, (void)err; /* the next owner of the saga looks by itself, with the first call that it keeps */
    free(mail);
}

/* The clocks of a saga stand while a call of it waits: it looks whether they do. */
static void have_it_look(struct live *live)
{
    struct mail *mail = memory_alloc(sizeof(*mail));

    mail->input = (struct saga_input){.type = SAGA_INPUT_TIMER, .timer = {.step = STEP_NONE, .timer = SAGA_TIMER_HOLD}};
    mail->done = on_looked;
    live_send(live, mail);
}

static void stand_in(struct list *list, struct live *live, bool is_let_go)
{
    holds_forget(live);
    live->is_let_go = is_let_go;
    list_push(list, &live->hold_link);
}

void holds_forget(struct live *live)
{
    struct holds *holds = live->engine->holds;

    if (list_linked(&live->hold_link)) {
        list_remove(live->is_let_go ? &holds->let_go : &holds->held, &live->hold_link);
        gauge_set(GAUGE_SAGAS_HELD, (int64_t)(holds->held.count + holds->let_go.count));
    }
}

bool holds_keep(struct activity *activity)
{
    struct holds *holds = activity->engine->holds;
    const struct hold *hold = holds_on(activity);

    if (!hold) {
        return false;
    }
    if (activity->want.type == WANT_CALL) {
        activity_return_held(activity);
        return true;
    }
    limiter_forgo(activity);
    activity->state = ACTIVITY_WAITING;
    activity->on_hold = true;
    if (!list_linked(&activity->live->hold_link)) {
        stand_in(&holds->held, activity->live, false);
        if (!activity->live->saga.held_ms) {
            have_it_look(activity->live);
        }
        gauge_set(GAUGE_SAGAS_HELD, (int64_t)(holds->held.count + holds->let_go.count));
    }
    park_consider(activity->live);
    return true;
}

/* --- letting go --- */

static bool is_kept(const struct live *live)
{
    for (struct list_link *link = list_first(&live->activities); link; link = list_after(&live->activities, link)) {
        const struct activity *activity = container_of(link, struct activity, link);

        if (activity->on_hold && !holds_on(activity)) {
            return false;
        }
    }
    return true;
}

static void on_pace(struct timer *timer);

static void let_some_go(struct holds *holds)
{
    uint32_t count = holds->pace * STEP_MS / 1000;

    for (count = count > 0 ? count : 1; count > 0 && !list_empty(&holds->let_go); count--) {
        struct live *live = container_of(list_first(&holds->let_go), struct live, hold_link);

        holds_forget(live);
        activities_let_go(live);
        if (live->saga.held_ms) {
            have_it_look(live);
        }
    }
    if (!list_empty(&holds->let_go) && !holds->stopped) {
        timer_start(holds->engine->loop, &holds->timer,
                    holds->pace * STEP_MS >= 1000 ? STEP_MS : 1000 / (int64_t)holds->pace, on_pace);
    }
}

static void on_pace(struct timer *timer)
{
    let_some_go(container_of(timer, struct holds, timer));
}

bool holds_let_go(const struct holds *holds)
{
    return !list_empty(&holds->let_go);
}

/* Finds the sagas that may go on. `pace` is the slowest of the holds that have ended. */
static void look_who_goes(struct holds *holds, uint32_t pace)
{
    struct list_link *link = list_first(&holds->held);

    if (pace > 0) {
        holds->pace = list_empty(&holds->let_go) || pace < holds->pace ? pace : holds->pace;
    }
    while (link) {
        struct live *live = container_of(link, struct live, hold_link);

        link = list_after(&holds->held, link);
        if (!is_kept(live)) {
            stand_in(&holds->let_go, live, true);
        }
    }
    if (!timer_running(&holds->timer) && !list_empty(&holds->let_go)) {
        let_some_go(holds);
    }
    parker_let_go(holds->engine, holds->pace);
}

/* --- by time --- */

static void arm_until(struct holds *holds);

static bool is_over(const struct hold *hold, int64_t now_ms)
{
    return hold->until_ms && hold->until_ms <= now_ms;
}

/* Removes the holds whose time is over. */
static void end_by_time(struct holds *holds)
{
    int64_t now_ms = loop_wall_ms(holds->engine->loop);
    struct hold *kept = arena_array(&holds->arena, holds->set.count + 1, sizeof(*kept));
    uint32_t pace = 0;
    size_t count = 0;

    for (size_t i = 0; i < holds->set.count; i++) {
        const struct hold *hold = &holds->set.items[i];

        if (is_over(hold, now_ms)) {
            pace = pace == 0 || hold->pace < pace ? hold->pace : pace;
        } else {
            kept[count++] = *hold;
        }
    }
    holds->set = (struct hold_set){kept, count};
    gauge_set(GAUGE_HOLDS, (int64_t)count);
    arm_until(holds);
    if (pace > 0) {
        look_who_goes(holds, pace);
    }
}

static void on_until(struct timer *timer)
{
    end_by_time(container_of(timer, struct holds, until_timer));
}

static void arm_until(struct holds *holds)
{
    int64_t now_ms = loop_wall_ms(holds->engine->loop), next_ms = INT64_MAX;

    for (size_t i = 0; i < holds->set.count; i++) {
        int64_t until_ms = holds->set.items[i].until_ms;

        next_ms = until_ms && until_ms < next_ms ? until_ms : next_ms;
    }
    if (next_ms == INT64_MAX || holds->stopped) {
        timer_stop(holds->engine->loop, &holds->until_timer);
    } else {
        int64_t left_ms = next_ms > now_ms ? next_ms - now_ms : 0;

        timer_start_by_day(holds->engine->loop, &holds->until_timer, left_ms < UNTIL_MS_MAX ? left_ms : UNTIL_MS_MAX,
                           on_until);
    }
}

/* --- reading them --- */

static void tell(struct holds *holds);

static void on_told(struct store_read *read)
{
    struct holds *holds = read->context; /* when it failed, the next renewal says so */

    holds->tells = false;
    if (holds->tells_again) {
        tell(holds);
    }
}

static void tell(struct holds *holds)
{
    holds->tells_again = holds->tells;
    if (holds->tells || holds->stopped) {
        return;
    }
    holds->tells = true;
    arena_reset(&holds->telling);
    holds->seen = (struct hold_seen){.read = {.arena = &holds->telling, .done = on_told, .context = holds},
                                     .version = holds->version};
    store_hold_seen(holds->engine->store, &holds->seen);
}

static bool stands_in(const struct hold_set *set, uint64_t number)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->items[i].number == number) {
            return true;
        }
    }
    return false;
}

static struct hold_set read_set(const struct hold_load *load, struct arena *arena)
{
    struct hold *items = arena_array(arena, load->count + 1, sizeof(*items));
    size_t count = 0;

    for (size_t i = 0; i < load->count; i++) {
        const struct hold_row *row = &load->rows[i];
        struct hold *hold = &items[count];
        struct faults faults;

        faults_init(&faults, arena);
        if (!hold_read_kept(row->body, arena, &faults, hold)) {
            log_error("hold_unreadable", LOG_I64("hold", (int64_t)row->number));
            /* A later release may have more kinds of holds. A hold that cannot be read holds its whole namespace. */
            *hold = (struct hold){.kind = HOLD_NAMESPACE, .undo = true, .pace = HOLD_PACE_DEFAULT};
        }
        hold->number = row->number;
        hold->namespace = row->namespace;
        hold->made_ms = row->made_ms;
        hold->until_ms = row->until_ms;
        count++;
    }
    return (struct hold_set){items, count};
}

static void take_over(struct holds *holds)
{
    struct hold_set set = read_set(&holds->load, &holds->loading), before = holds->set;
    struct arena arena = holds->arena;
    uint32_t pace = 0;

    for (size_t i = 0; i < before.count; i++) {
        if (!stands_in(&set, before.items[i].number)) {
            pace = pace == 0 || before.items[i].pace < pace ? before.items[i].pace : pace;
        }
    }
    holds->set = set;
    holds->arena = holds->loading;
    holds->loading = arena;
    arena_reset(&holds->loading);
    holds->version = holds->load.version;
    holds->newest = holds->newest > holds->version ? holds->newest : holds->version;
    gauge_set(GAUGE_HOLDS, (int64_t)set.count);
    arm_until(holds);
    tell(holds);
    hold_ends_look(holds->ends);
    if (pace > 0) {
        look_who_goes(holds, pace);
    }
}

static void read_them(struct holds *holds);

static void on_again(struct timer *timer)
{
    read_them(container_of(timer, struct holds, again_timer));
}

static void on_read(struct store_read *read)
{
    struct holds *holds = read->context;
    struct engine *engine = holds->engine;

    holds->busy = false;
    if (holds->stopped) {
        return;
    }
    if (read->code == ERR_OK) {
        take_over(holds);
        holds->known = true;
        engine_start_leases(engine);
        call_queue_run(engine);
    } else {
        log_warn("holds_unread", LOG_ERR(&read->err));
        arena_reset(&holds->loading);
    }
    if (holds->again || holds_are_stale(holds)) {
        read_them(holds);
    } else if (read->code != ERR_OK) {
        timer_start(engine->loop, &holds->again_timer, AGAIN_MS, on_again);
    }
}

static void read_them(struct holds *holds)
{
    holds->again = holds->busy;
    if (holds->busy || holds->stopped || engine_is_closing(holds->engine)) {
        return;
    }
    holds->busy = true;
    holds->load = (struct hold_load){.read = {.arena = &holds->loading, .done = on_read, .context = holds}};
    store_hold_load(holds->engine->store, &holds->load);
}

static void on_changed(void *context)
{
    read_them(context);
}

void holds_watch(struct holds *holds)
{
    store_watch_holds(holds->engine->store, on_changed, holds);
    read_them(holds);
}

/* The version differs from ours: it is newer, or older when the database has lost what it confirmed. */
void holds_renewed(struct holds *holds, int64_t version)
{
    holds->newest = version;
    if (version != holds->version) {
        read_them(holds);
    }
}

bool holds_are_known(const struct holds *holds)
{
    return holds->known;
}

bool holds_are_stale(const struct holds *holds)
{
    return !holds->known || holds->newest > holds->version;
}

int64_t holds_version(const struct holds *holds)
{
    return holds->version;
}

const struct hold_set *holds_in_force(const struct holds *holds)
{
    return &holds->set;
}

/* --- their own life --- */

struct holds *holds_new(struct engine *engine)
{
    struct holds *holds = memory_alloc(sizeof(*holds));

    holds->engine = engine;
    holds->ends = hold_ends_new(engine);
    holds->pace = HOLD_PACE_DEFAULT;
    list_init(&holds->held);
    list_init(&holds->let_go);
    arena_init(&holds->arena, 1024);
    arena_init(&holds->loading, 1024);
    arena_init(&holds->scratch, 1024);
    arena_init(&holds->telling, 1024);
    return holds;
}

void holds_stop(struct holds *holds)
{
    holds->stopped = true;
    hold_ends_stop(holds->ends);
    timer_stop(holds->engine->loop, &holds->timer);
    timer_stop(holds->engine->loop, &holds->until_timer);
    timer_stop(holds->engine->loop, &holds->again_timer);
}

void holds_free(struct holds *holds)
{
    if (!holds) {
        return;
    }
    arena_fini(&holds->arena);
    arena_fini(&holds->loading);
    arena_fini(&holds->scratch);
    arena_fini(&holds->telling);
    hold_ends_free(holds->ends);
    free(holds);
}
