/* See limiter.h. limiter_tell.c tells PostgreSQL how calls ended. */
#include <stdio.h>
#include <stdlib.h>

#include "run/call/activity.h"
#include "run/call/call_queue.h"
#include "run/call/call_room.h"
#include "run/call/call_terms.h"
#include "run/call/holds.h"
#include "run/call/limiter_state.h"
#include "run/query/health.h"
#include "run/request/definitions.h"
#include "run/saga/live.h"

#define BREAKER_LOOK_MS 5000  /* after so long an open breaker is looked at: a person may have closed it */
#define AWAY_MS 300           /* the time until the next question when the database did not answer */
#define PLACE_MARGIN_MS 15000 /* between the permission and the call, and between its end and the report of it */
#define STALE_MS 8000 /* a call that waited this long for a place asks again, because the margin is nearly over */

struct admitting {         /* an activity at the guards, in its arena */
    struct list_link link; /* links the activities that wait at its gate */
    struct activity *activity;
    struct gate *gate;
    struct guard_ask ask;
    struct arena arena;           /* the arena of one ask */
    struct guard_budget *budgets; /* GUARD_BUDGETS_MAX of them, when the question is about budgets */
    bool in_group, granted;
};

static void ask(struct activity *activity, bool in_group);
static void gate_schedule(struct gate *gate);

/* --- gates --- */

struct gate *limiter_gate(struct limiter *limiter, struct slice namespace, struct slice name)
{
    char key[300];
    int len = snprintf(key, sizeof(key), "%.*s\n%.*s", SLICE_ARG(namespace), SLICE_ARG(name));

    CHECK(len > 0);
    if ((size_t)len >= sizeof(key)) {
        len = (int)sizeof(key) - 1;
    }
    struct gate *gate = map_find(&limiter->gates, key, (size_t)len);

    if (!gate) {
        struct arena *arena = &limiter->engine->arena;
        struct slice kept = arena_slice(arena, (struct slice){key, (size_t)len});

        gate = arena_alloc(arena, sizeof(*gate));
        gate->limiter = limiter;
        gate->health = tool_health_of(limiter->engine, namespace, name);
        list_init(&gate->waiting);
        map_put(&limiter->gates, kept.ptr, kept.len, gate);
    }
    return gate;
}

static void on_gate_timer(struct timer *timer)
{
    struct gate *gate = container_of(timer, struct gate, timer);

    CHECK(!engine_is_draining(gate->limiter->engine) &&
          gate->pace.asking == 0); /* the timer is stopped in these cases */
    if (list_empty(&gate->waiting)) {
        return;
    }
    if (pace_closed_ms(&gate->pace, limiter_now_ms(gate->limiter)) > 0) {
        gate_schedule(gate);
        return;
    }
    for (uint32_t left = pace_begin_group(&gate->pace, (uint32_t)gate->waiting.count); left > 0; left--) {
        ask(container_of(list_pop(&gate->waiting), struct admitting, link)->activity, true);
    }
}

static void gate_schedule(struct gate *gate)
{
    if (gate->pace.asking == 0 && !list_empty(&gate->waiting) && !engine_is_draining(gate->limiter->engine)) {
        timer_start_by_day(gate->limiter->engine->loop, &gate->timer,
                           pace_closed_ms(&gate->pace, limiter_now_ms(gate->limiter)), on_gate_timer);
    }
}

void gate_wake(struct gate *gate)
{
    pace_open(&gate->pace);
    gate_schedule(gate);
}

/* --- who is asked, and who may be refused --- */

static const struct tool *tool_of(const struct activity *activity)
{
    return saga_tool(&activity->live->saga, activity->want.step, activity->want.direction);
}

bool limiter_asks(const struct limiter *limiter, struct slice namespace, const struct tool *tool,
                  enum direction direction)
{
    return tool->rate.limit > 0 || tool->concurrency > 0 || tool->breaker.failures > 0 ||
           (direction == DIRECTION_DO && budgets_apply(&limiter->budgets, namespace, tool->name));
}

/* May the activity be refused? Only a call that an agent asks for now. A retry is the engine's own work, which
 * waits. */
static bool may_be_refused(const struct activity *activity)
{
    const struct saga *saga = &activity->live->saga;

    return activity->want.type == WANT_ADMIT && saga_is_open(saga) &&
           saga->steps[activity->want.step].forward.state == OP_PENDING;
}

/* The tool of class `read` that tries the breaker. NULL: there is none any more. */
static const struct tool *test_of(const struct activity *activity, const struct tool *tool)
{
    const struct tool *test = definitions_find_tool(activity->engine->definitions, activity->namespace, tool->test);

    return test && test->effect == EFFECT_READ ? test : NULL;
}

/* May it try a half-open breaker? The test of its tool may, and what a status read can settle does no harm either.
 * Where nothing may try, a person closes the breaker. */
static bool may_probe(const struct activity *activity, const struct tool *tool)
{
    return tool->test.ptr ? activity->test != NULL : effect_is_safe(activity->effect) || tool->has_probe;
}

struct uuid limiter_holder(const struct op_key *key, uint32_t attempt)
{
    char number[16];
    struct slice fields[] = {{(const char *)key->uuid.bytes, sizeof(key->uuid.bytes)}, SLICE_NONE};

    (void)snprintf(number, sizeof(number), "%u", attempt);
    fields[1] = slice_of(number);
    struct digest digest = digest_fields("attempt", fields, COUNT_OF(fields));

    return uuid_v8(&digest);
}

static uint32_t salt_of(const struct activity *activity)
{
    const uint8_t *bytes = activity->operation_key.uuid.bytes;

    return (uint32_t)bytes[13] << 16 | (uint32_t)bytes[14] << 8 | bytes[15];
}

/* --- the ways on --- */

void limiter_admission(struct activity *activity, enum admission admission, struct slice error, struct slice detail,
                       int64_t retry_after_ms, struct slice result)
{
    if (admission != ADMISSION_GRANTED && activity->admitting->granted) {
        limiter_tell_unused(activity);
        activity->admitting->granted = false;
    }
    activity_act(activity);
    activity->act->mail.input = (struct saga_input){.type = SAGA_INPUT_ADMITTED,
                                                    .admitted = {.step = activity->want.step,
                                                                 .admission = admission,
                                                                 .error = error,
                                                                 .detail = detail,
                                                                 .retry_after_ms = retry_after_ms,
                                                                 .result = result}};
    activity_report(activity);
}

static void refuse(struct activity *activity, enum pace_why why, int64_t retry_after_ms)
{
    static const struct {
        struct slice error, detail;
    } words[] = {
        [PACE_RATE] = {SLICE("rate-limited"), SLICE("the rate of this tool, over all engines, is used up")},
        [PACE_CONCURRENCY] = {SLICE("concurrency-limited"),
                              SLICE("as many calls of this tool as may be are under way, over all engines")},
        [PACE_BREAKER] = {SLICE("breaker-open"),
                          SLICE("calls of this tool kept failing: it rests before it is tried again")},
        [PACE_PAUSED] = {SLICE("rate-limited"), SLICE("the tool itself asked to be left alone for a while")},
        [PACE_AWAY] = {SLICE("breaker-open"), SLICE("the bounds of this tool cannot be asked for")},
        [PACE_UNPRICED] = {SLICE("budget-exhausted"),
                           SLICE(
                               "nobody knows what an earlier call of the same budget cost: an operator has to say it")},
        [PACE_OPEN] = {SLICE("budget-exhausted"), SLICE("a budget that this call counts against is used up")},
    };

    limiter_admission(activity, ADMISSION_REFUSED, words[why].error, words[why].detail,
                      retry_after_ms > 0 ? retry_after_ms
                      : why == PACE_OPEN ? 0
                                         : 1000,
                      SLICE_NONE);
}

static void wait_at_gate(struct activity *activity, bool in_front)
{
    struct admitting *admitting = activity->admitting;
    struct list *list = &admitting->gate->waiting;

    activity->state = ACTIVITY_WAITING;
    if (in_front) {
        list_push_front(list, &admitting->link);
    } else {
        list_push(list, &admitting->link);
    }
    gate_schedule(admitting->gate);
}

void limiter_let_through(struct activity *activity)
{
    activity->inquiry = INQUIRY_NONE;
    if (call_queue_holds_intent(activity)) {
        call_queue_push(activity);
    } else {
        limiter_admission(activity, ADMISSION_GRANTED, SLICE_NONE, SLICE_NONE, 0, SLICE_NONE);
    }
}

/* Is the call granted? A forward call was granted when its intent was let through, by another activity; all others
 * carry the permission themselves. */
static bool is_granted(const struct activity *activity)
{
    if (activity->want.type == WANT_CALL && activity->want.direction == DIRECTION_DO) {
        return limiter_asks(activity->engine->call_room->limiter, activity->namespace, tool_of(activity), DIRECTION_DO);
    }
    return activity->admitting && activity->admitting->granted;
}

void limiter_forgo(struct activity *activity)
{
    if (activity->live && is_granted(activity)) {
        limiter_tell_unused(activity);
    }
    if (activity->admitting) {
        activity->admitting->granted = false;
    }
}

/* Goes on, because the guards allow it. */
static void go_on(struct activity *activity)
{
    const struct tool *tool = tool_of(activity);
    const struct guard_ask *asked = &activity->admitting->ask;

    if (activity->admitting->granted && asked->is_breaker_probe && tool->test.ptr) {
        activity->inquiry = INQUIRY_TEST;
    } else if (activity->admitting->granted && asked->is_breaker_probe && !effect_is_safe(activity->effect) &&
               tool->has_probe) {
        activity->inquiry = INQUIRY_STATUS;
    } else if (activity->want.type == WANT_ADMIT && tool->has_precheck) {
        activity->inquiry = INQUIRY_PRECHECK;
    } else {
        activity->inquiry = INQUIRY_NONE;
    }
    if (activity->want.type == WANT_ADMIT && activity->inquiry == INQUIRY_NONE) {
        limiter_let_through(activity);
    } else {
        call_queue_push(activity);
    }
}

static enum pace_why why_of(enum guard_verdict verdict)
{
    switch (verdict) {
    case GUARD_RATE:
        return PACE_RATE;
    case GUARD_CONCURRENCY:
        return PACE_CONCURRENCY;
    case GUARD_BREAKER:
        return PACE_BREAKER;
    case GUARD_PAUSED:
        return PACE_PAUSED;
    case GUARD_UNPRICED:
        return PACE_UNPRICED;
    case GUARD_GRANTED:
    case GUARD_BUDGET:
        return PACE_OPEN;
    }
    UNREACHABLE();
}

static void end_of_group(struct activity *activity, bool granted)
{
    struct admitting *admitting = activity->admitting;
    struct gate *gate = admitting->gate;
    int64_t delay;

    if (admitting->in_group &&
        pace_end_one(&gate->pace, granted, limiter_now_ms(gate->limiter), salt_of(activity), &delay) &&
        !list_empty(&gate->waiting) && !engine_is_draining(gate->limiter->engine)) {
        timer_start_by_day(gate->limiter->engine->loop, &gate->timer, delay, on_gate_timer);
    }
    admitting->in_group = false;
}

static void on_answer(struct activity *activity)
{
    struct admitting *admitting = activity->admitting;
    struct gate *gate = admitting->gate;
    struct guard_ask *asked = &admitting->ask;

    /* It was let through before as the one that tries, and its test is not there any more. */
    if (asked->read.code == ERR_OK && asked->verdict == GUARD_GRANTED && asked->is_breaker_probe &&
        !may_probe(activity, tool_of(activity))) {
        limiter_tell_unused(activity);
        asked->verdict = GUARD_BREAKER;
        asked->retry_after_ms = 1000;
    }
    enum pace_why why = asked->read.code == ERR_OK ? why_of(asked->verdict) : PACE_AWAY;

    admitting->granted = asked->read.code == ERR_OK && asked->verdict == GUARD_GRANTED;
    if (why != PACE_OPEN) {
        int64_t wait_ms = why == PACE_AWAY ? AWAY_MS : asked->retry_after_ms;

        if (why == PACE_BREAKER) {
            gate->rests_until_ms = limiter_now_ms(gate->limiter) + wait_ms;
            wait_ms = wait_ms < BREAKER_LOOK_MS ? wait_ms : BREAKER_LOOK_MS;
        }
        pace_close(&gate->pace, why, wait_ms, limiter_now_ms(gate->limiter), salt_of(activity));
    } else if (gate->health->breaker_state != BREAKER_CLOSED && admitting->granted && !asked->is_breaker_probe) {
        gate->health->breaker_state = BREAKER_CLOSED; /* another engine saw it close */
    }
    if (why == PACE_BREAKER && gate->health->breaker_state == BREAKER_CLOSED) {
        gate->health->breaker_state = BREAKER_OPEN;
    }
    end_of_group(activity, why == PACE_OPEN);
    if (admitting->granted) {
        go_on(activity);
    } else if (why == PACE_OPEN) {
        refuse(activity, PACE_OPEN, 0);
    } else if (may_be_refused(activity) && why != PACE_AWAY) {
        refuse(activity, why, asked->retry_after_ms);
    } else {
        wait_at_gate(activity, true);
    }
}

static void on_asked(struct store_read *read)
{
    struct activity *activity = read->context;
    struct admitting *admitting = activity->admitting;
    bool granted = read->code == ERR_OK && admitting->ask.verdict == GUARD_GRANTED;

    activity->state = ACTIVITY_WAITING;
    if (activity->live && !activity->cancelled && !engine_is_draining(activity->engine)) {
        on_answer(activity);
        return;
    }
    end_of_group(activity, granted);
    admitting->granted = admitting->granted || granted;
    if (activity->live && !activity->cancelled && activity->want.type == WANT_CALL) {
        activity_return(activity);
        return;
    }
    limiter_forgo(activity); /* an activity without its saga keeps the permission: the next owner asks for the same
                                attempt, and finds it granted */
    if (!activity->live || activity->cancelled) {
        activity_end(activity);
    }
}

static int64_t place_ms(const struct activity *activity, const struct tool *tool)
{
    int64_t timeout = activity->want.direction == DIRECTION_DO
                          ? activity->live->saga.definition->steps[activity->want.step].timeout_ms
                          : tool->timeout_ms;

    timeout = timeout > tool->timeout_ms ? timeout : tool->timeout_ms;
    return timeout + (tool->has_precheck ? tool->precheck.timeout_ms : 0) +
           (tool->has_probe ? tool->probe.timeout_ms : 0) + (activity->test ? activity->test->timeout_ms : 0) +
           PLACE_MARGIN_MS;
}

static void ask(struct activity *activity, bool in_group)
{
    struct admitting *admitting = activity->admitting;
    struct limiter *limiter = admitting->gate->limiter;
    const struct tool *tool = tool_of(activity);

    arena_reset(&admitting->arena);
    admitting->in_group = in_group;
    activity->test = tool->test.ptr ? test_of(activity, tool) : NULL;
    admitting->ask = (struct guard_ask){.read = {.arena = &admitting->arena, .done = on_asked, .context = activity},
                                        .namespace = activity->namespace,
                                        .tool = tool->name,
                                        .endpoint = tool_endpoint(tool, &admitting->arena),
                                        .rate = tool->rate,
                                        .concurrency = tool->concurrency,
                                        .breaker = tool->breaker,
                                        .place_ms = place_ms(activity, tool),
                                        .holder = limiter_holder(&activity->operation_key, activity->want.number),
                                        .operation = activity->operation_key.uuid,
                                        .safe_to_repeat = may_probe(activity, tool)};
    if (activity->want.direction == DIRECTION_DO) {
        if (!admitting->budgets) {
            admitting->budgets = arena_array(&activity->arena, GUARD_BUDGETS_MAX, sizeof(*admitting->budgets));
        }
        admitting->ask.budgets = admitting->budgets;
        admitting->ask.budget_count = budgets_match(&limiter->budgets, activity->namespace, tool->name,
                                                    loop_wall_ms(limiter->engine->loop), admitting->budgets);
        for (size_t i = 0; i < admitting->ask.budget_count; i++) {
            admitting->budgets[i].calls = 1;
            admitting->budgets[i].emissions =
                activity->want.number == 1; /* a retry is no emission, and a repeat is counted where it is accepted */
            /* The cost is not known before, so something must be left. */
            admitting->budgets[i].micros = tool->cost_fixed_micros > 0    ? tool->cost_fixed_micros
                                           : template_is_set(&tool->cost) ? 1
                                                                          : 0;
        }
    }
    activity->state = ACTIVITY_ASKING;
    store_guard_ask(limiter->engine->store, &admitting->ask);
}

/* How long an open breaker rests, which is longer than the time to the next look. */
static int64_t rests_ms(const struct gate *gate, int64_t closed_ms)
{
    int64_t left_ms = gate->rests_until_ms - limiter_now_ms(gate->limiter);

    return left_ms > closed_ms ? left_ms : closed_ms;
}

static void release_admitting(void *object)
{
    arena_fini(&((struct admitting *)object)->arena);
}

void limiter_enter(struct activity *activity)
{
    if (holds_keep(activity)) {
        return;
    }
    struct limiter *limiter = activity->engine->call_room->limiter;
    const struct tool *tool = tool_of(activity);
    struct gate *gate = limiter_gate(limiter, activity->namespace, tool->name);
    int64_t closed_ms = pace_closed_ms(&gate->pace, limiter_now_ms(limiter));
    bool asks = limiter_asks(limiter, activity->namespace, tool, activity->want.direction);

    if (!activity->admitting) {
        activity->admitting = arena_alloc(&activity->arena, sizeof(*activity->admitting));
        arena_init(&activity->admitting->arena, 2048);
        arena_on_release(&activity->arena, release_admitting, activity->admitting);
        activity->admitting->activity = activity;
        activity->admitting->gate = gate;
    }
    if (closed_ms > 0 && gate->pace.why != PACE_CONCURRENCY) {
        if (may_be_refused(activity) && gate->pace.why != PACE_AWAY) {
            refuse(activity, gate->pace.why, gate->pace.why == PACE_BREAKER ? rests_ms(gate, closed_ms) : closed_ms);
        } else {
            wait_at_gate(activity, false);
        }
    } else if (!asks) {
        go_on(activity);
    } else if (!may_be_refused(activity) && !list_empty(&gate->waiting)) {
        wait_at_gate(activity, false);
    } else {
        ask(activity, false);
    }
}

/* A test has to complete: that its tool refuses it says nothing good. Whoever answers about the status is there. */
static enum call_verdict verdict_of_read(const struct activity *activity)
{
    const struct outcome *outcome = &activity->act->outcome;
    enum call_verdict verdict = call_verdict(outcome, activity->act->response);

    return activity->inquiry == INQUIRY_TEST && verdict == CALL_WELL && outcome->kind != OUTCOME_COMPLETED ? CALL_FAILED
                                                                                                           : verdict;
}

void limiter_status_read(struct activity *activity)
{
    struct admitting *admitting = activity->admitting;
    const struct outcome *outcome = &activity->act->outcome;
    enum call_verdict verdict = verdict_of_read(activity);

    limiter_tell_status(activity, verdict);
    admitting->granted = false;
    activity->inquiry = INQUIRY_NONE;
    activity->state = ACTIVITY_WAITING;
    /* When the tool is well, the gate opens as soon as the store has heard of it (gate_wake()). */
    pace_close(&admitting->gate->pace, PACE_BREAKER, verdict == CALL_WELL ? 200 : 1000,
               limiter_now_ms(activity->engine->call_room->limiter), salt_of(activity));
    if (outcome_is_egress_denied(outcome)) { /* no wait makes it allowed: a person is asked, as for a call */
        if (activity->want.type == WANT_ADMIT) {
            limiter_admission(activity, ADMISSION_UNASKED, outcome->error, outcome->detail, 0, SLICE_NONE);
        } else {
            activity_unsent(activity, outcome->error, outcome->detail);
        }
    } else if (verdict != CALL_WELL && may_be_refused(activity)) {
        refuse(activity, PACE_BREAKER, 1000);
    } else {
        wait_at_gate(activity, false);
    }
}

void limiter_breaker_set(struct engine *engine, struct slice namespace, struct slice tool, bool is_open)
{
    struct gate *gate = limiter_gate(engine->call_room->limiter, namespace, tool);

    gate->health->breaker_state = is_open ? BREAKER_OPEN : BREAKER_CLOSED;
    if (!is_open) {
        gate->rests_until_ms = 0;
        gate_wake(gate);
    }
}

/* --- what activity.c asks --- */

bool limiter_holds_undo(const struct activity *activity)
{
    return activity->want.direction == DIRECTION_UNDO &&
           limiter_asks(activity->engine->call_room->limiter, activity->namespace, tool_of(activity), DIRECTION_UNDO);
}

bool limiter_is_stale(const struct activity *activity)
{
    if (activity->inquiry != INQUIRY_NONE ||
        loop_boot_ms(activity->engine->loop) - activity->queued_boot_ms <= STALE_MS) {
        return false;
    }
    return activity->want.type == WANT_ADMIT ||
           (activity->want.type == WANT_CALL && tool_of(activity)->concurrency > 0);
}

int64_t limiter_paused_ms(const struct activity *activity)
{
    const struct limiter *limiter = activity->engine->call_room->limiter;
    int64_t now = limiter_now_ms(limiter);

    if (limiter->paused_until_ms <= now || (activity->want.type != WANT_CALL && !call_queue_holds_intent(activity))) {
        return 0;
    }
    const struct gate *gate =
        limiter_gate(activity->engine->call_room->limiter, activity->namespace, tool_of(activity)->name);

    return gate->paused_until_ms > now ? gate->paused_until_ms - now : 0;
}

static void on_hold_over(struct timer *timer)
{
    call_queue_run(container_of(timer, struct limiter, hold)->engine);
}

void limiter_hold(struct engine *engine, int64_t ms)
{
    timer_start_by_day(engine->loop, &engine->call_room->limiter->hold, ms, on_hold_over);
}

void limiter_step(struct engine *engine, int64_t ms)
{
    engine->call_room->limiter->stepped_ms += ms;
}

void limiter_leave(struct activity *activity)
{
    if (activity->admitting && list_linked(&activity->admitting->link)) {
        list_remove(&activity->admitting->gate->waiting, &activity->admitting->link);
    }
}

void limiter_admitted(struct activity *activity)
{
    if (!activity->live || !activity->admitting->granted) {
        return;
    }
    const struct operation *operation = &activity->live->saga.steps[activity->want.step].forward;

    if (operation->state != OP_IN_FLIGHT || operation->attempts != activity->want.number) {
        limiter_tell_unused(activity); /* nobody wants it any more */
    }
}

void limiter_return(struct engine *engine)
{
    size_t position = 0;
    void *value;

    while (map_next(&engine->call_room->limiter->gates, &position, &value)) {
        struct gate *gate = value;
        struct list_link *link;

        timer_stop(engine->loop, &gate->timer); /* on_gate_timer() is only for waiting calls */
        while ((link = list_pop(&gate->waiting)) != NULL) {
            struct activity *activity = container_of(link, struct admitting, link)->activity;

            if (activity->want.type == WANT_CALL) {
                activity_return(activity);
            }
        }
    }
    limiter_flush(engine->call_room->limiter);
}

void limiter_return_shard(struct engine *engine, uint32_t shard)
{
    size_t position = 0;
    void *value;

    while (map_next(&engine->call_room->limiter->gates, &position, &value)) {
        struct gate *gate = value;
        struct list_link *link = list_first(&gate->waiting);

        while (link) {
            struct admitting *admitting = container_of(link, struct admitting, link);
            struct activity *activity = admitting->activity;

            link = list_after(&gate->waiting, link);
            if (activity->shard == shard && activity->want.type == WANT_CALL) {
                list_remove(&gate->waiting, &admitting->link);
                activity_return(activity);
            }
        }
    }
}

/* --- the limiter as a whole --- */

bool limiter_budgets_apply(void *context, struct slice namespace, struct slice tool)
{
    const struct engine *engine = context;

    return budgets_apply(&engine->call_room->limiter->budgets, namespace, tool);
}

struct limiter *limiter_new(struct engine *engine, const char *budgets_file, struct err *err)
{
    struct limiter *limiter = memory_alloc(sizeof(*limiter));

    if (budgets_load(&limiter->budgets, budgets_file, err) != ERR_OK) {
        free(limiter);
        return NULL;
    }
    limiter->engine = engine;
    map_init(&limiter->gates);
    list_init(&limiter->untold);
    arena_init(&limiter->counting, 4096);
    return limiter;
}

void limiter_free(struct limiter *limiter)
{
    if (!limiter) {
        return;
    }
    timer_stop(limiter->engine->loop, &limiter->hold);
    limiter_tell_fini(limiter);
    map_fini(&limiter->gates);
    budgets_fini(&limiter->budgets);
    free(limiter);
}
