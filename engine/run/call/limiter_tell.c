/*
 * Tells PostgreSQL after a call what its outcome means for the guards. Nobody waits for that. While the database is
 * away the reports are kept and told later. If the engine ends before, places expire by themselves and reservations
 * stand, which is the safe side.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "run/call/activity.h"
#include "run/call/call_room.h"
#include "run/call/limiter_state.h"
#include "run/query/health.h"
#include "run/saga/live.h"

#define UNTOLD_MAX 10000
#define AGAIN_MS 1000
#define FLUSH_MS 1000

struct telling {
    struct list_link link;
    struct limiter *limiter;
    struct gate *gate;
    struct arena arena;
    struct guard_tell tell;
};

static void telling_free(struct telling *telling)
{
    arena_fini(&telling->arena);
    free(telling);
}

/* --- what a call says --- */

enum call_verdict call_verdict(const struct outcome *outcome, struct slice response)
{
    static const char *const ours[] = {"bad-settings", "settings", "lease",       "withheld",           "held",
                                       "cancelled",    "stopping", "interrupted", OUTCOME_EGRESS_DENIED};
    int64_t status = 0;

    for (size_t i = 0; i < COUNT_OF(ours); i++) {
        if (slice_is(outcome->error, ours[i])) {
            return CALL_NO_VERDICT;
        }
    }
    if (json_type(response) == JSON_OBJECT && json_i64(json_member(response, "status"), &status) && status >= 100) {
        return status >= 500                      ? CALL_FAILED
               : status >= 400                    ? CALL_WELL
               : outcome->kind == OUTCOME_UNKNOWN ? CALL_FAILED
                                                  : CALL_WELL;
    }
    return outcome->kind == OUTCOME_UNKNOWN || outcome->unsent ? CALL_FAILED : CALL_WELL;
}

/* Returns the pause that the receiver wants for all calls of its tool: 429 with Retry-After. */
static int64_t pause_of(const struct outcome *outcome, struct slice response)
{
    int64_t status = 0;

    return outcome->retry_after_ms > 0 && json_type(response) == JSON_OBJECT &&
                   json_i64(json_member(response, "status"), &status) && status == 429
               ? outcome->retry_after_ms
               : 0;
}

struct slice tool_endpoint(const struct tool *tool, struct arena *arena)
{
    struct slice url =
        slice_is(tool->adapter, "http") ? json_string(json_member(tool->settings.json, "url"), arena) : SLICE_NONE;
    size_t scheme = slice_starts_with(url, "http://") ? 7 : slice_starts_with(url, "https://") ? 8 : 0;
    size_t end = scheme, begin = scheme;

    if (scheme == 0) {
        return SLICE("");
    }
    while (end < url.len && !strchr("/?#", url.ptr[end])) {
        if (url.ptr[end] == '$' || url.ptr[end] == '{') {
            return SLICE(""); /* not known before it is rendered */
        }
        end++;
        if (url.ptr[end - 1] == '@') {
            begin = end; /* a user in front of the host does not belong into a table */
        }
    }
    return arena_printf(arena, "%.*s%.*s", (int)scheme, url.ptr, (int)(end - begin), url.ptr + begin);
}

/* --- telling --- */

static void tell_now(struct telling *telling);

static void on_again(struct timer *timer)
{
    struct limiter *limiter = container_of(timer, struct limiter, again);
    size_t left = limiter->untold.count;

    while (left-- > 0) {
        tell_now(container_of(list_pop(&limiter->untold), struct telling, link));
    }
}

static void on_breaker_changed(const struct telling *telling)
{
    const struct guard_tell *tell = &telling->tell;
    struct gate *gate = telling->gate;

    switch (tell->breaker_state) {
    case BREAKER_CLOSED:
        log_info("breaker_closed", LOG_SLICE("namespace", tell->namespace), LOG_SLICE("tool", tell->tool),
                 LOG_SLICE("endpoint", tell->endpoint));
        gate_wake(gate);
        break;
    case BREAKER_OPEN:
        log_warn("breaker_opened", LOG_SLICE("namespace", tell->namespace), LOG_SLICE("tool", tell->tool),
                 LOG_SLICE("endpoint", tell->endpoint));
        gate->health->breaker_opened++;
        break;
    case BREAKER_HALF_OPEN:
        break;
    }
}

static void on_told(struct store_read *read)
{
    struct telling *telling = read->context;
    struct limiter *limiter = telling->limiter;
    struct engine *engine = limiter->engine;

    limiter->telling--;
    if (read->code == ERR_STORE && !engine_is_closing(engine) && limiter->untold.count < UNTOLD_MAX) {
        list_push(&limiter->untold, &telling->link);
        if (!timer_running(&limiter->again)) {
            timer_start(engine->loop, &limiter->again, AGAIN_MS, on_again);
        }
        return;
    }
    if (read->code == ERR_OK) {
        if (telling->tell.breaker.failures > 0) {
            telling->gate->health->breaker_state = (int)telling->tell.breaker_state;
        }
        if (telling->tell.breaker_changed) {
            on_breaker_changed(telling);
        } else if (telling->gate->pace.why == PACE_CONCURRENCY) {
            gate_wake(telling->gate); /* a place is free */
        }
    } else {
        log_warn("guard_untold", LOG_SLICE("tool", telling->tell.tool), LOG_ERR(&read->err));
    }
    telling_free(telling);
}

static void tell_now(struct telling *telling)
{
    if (engine_is_closing(telling->limiter->engine)) {
        telling_free(telling);
        return;
    }
    telling->tell.read = (struct store_read){.arena = &telling->arena, .done = on_told, .context = telling};
    telling->limiter->telling++;
    store_guard_tell(telling->limiter->engine->store, &telling->tell);
}

static struct telling *telling_new(struct activity *activity, const struct tool *tool)
{
    struct limiter *limiter = activity->engine->call_room->limiter;
    struct telling *telling = memory_alloc(sizeof(*telling));

    arena_init(&telling->arena, 1024);
    telling->limiter = limiter;
    telling->gate = limiter_gate(limiter, activity->namespace, tool->name);
    telling->tell = (struct guard_tell){.namespace = arena_slice(&telling->arena, activity->namespace),
                                        .tool = arena_slice(&telling->arena, tool->name),
                                        .endpoint = tool_endpoint(tool, &telling->arena),
                                        .rate = tool->rate,
                                        .breaker = tool->breaker,
                                        .holder = limiter_holder(&activity->operation_key, activity->want.number),
                                        .operation = activity->operation_key.uuid};
    return telling;
}

static const struct tool *tool_asked(const struct activity *activity)
{
    return activity->act && activity->act->tool
               ? activity->act->tool
               : saga_tool(&activity->live->saga, activity->want.step, activity->want.direction);
}

void limiter_tell_unused(struct activity *activity)
{
    struct telling *telling = telling_new(activity, tool_asked(activity));

    telling->tell.never_called = true;
    telling->tell.charge = activity->maybe_before ? CHARGE_KEEP : CHARGE_GIVE_BACK;
    tell_now(telling);
}

/*
 * Frees the place of a call whose engine has died. Its reservation stands, because the outcome is unknown. A program
 * may have outlived the engine that ran it, so its place is kept until it expires.
 */
void limiter_interrupted(struct activity *activity)
{
    const struct tool *tool = tool_asked(activity);
    struct telling *telling;

    if (slice_is(tool->adapter, "exec") || slice_is(tool->adapter, "mcp") ||
        !limiter_asks(activity->engine->call_room->limiter, activity->namespace, tool, activity->want.direction)) {
        return;
    }
    telling = telling_new(activity, tool);
    telling->tell.no_verdict = true;
    telling->tell.charge = CHARGE_KEEP;
    tell_now(telling);
}

void limiter_tell_status(struct activity *activity, enum call_verdict verdict)
{
    struct telling *telling = telling_new(activity, tool_asked(activity));

    telling->tell.failed = verdict == CALL_FAILED;
    telling->tell.no_verdict = verdict == CALL_NO_VERDICT;
    telling->tell.charge = activity->maybe_before || verdict == CALL_WELL ? CHARGE_KEEP : CHARGE_GIVE_BACK;
    tell_now(telling);
}

static void pause_tool(struct activity *activity, int64_t pause_ms)
{
    struct limiter *limiter = activity->engine->call_room->limiter;
    struct gate *gate = limiter_gate(limiter, activity->namespace, activity->act->tool->name);
    int64_t now = limiter_now_ms(limiter), until = now + pause_ms;

    log_info("tool_paused", LOG_SLICE("namespace", activity->namespace), LOG_SLICE("tool", activity->act->tool->name),
             LOG_MS("for", pause_ms));
    gate->health->pauses++;
    gate->paused_until_ms = until > gate->paused_until_ms ? until : gate->paused_until_ms;
    limiter->paused_until_ms = until > limiter->paused_until_ms ? until : limiter->paused_until_ms;
    pace_close(&gate->pace, PACE_PAUSED, pause_ms, now, 0);
}

static enum guard_charge charge_of(const struct activity *activity)
{
    switch (activity->act->outcome.kind) {
    case OUTCOME_COMPLETED:
        return activity->act->cost_unknown.ptr ? CHARGE_UNPRICED : CHARGE_SETTLE;
    case OUTCOME_RETRY:
    case OUTCOME_FAILED:
        return activity->maybe_before ? CHARGE_KEEP : CHARGE_GIVE_BACK;
    case OUTCOME_ABSENT: /* an early absence does not count; another attempt keeps the reservation
                          */
    case OUTCOME_RUNNING:
    case OUTCOME_UNKNOWN:
        return CHARGE_KEEP;
    case OUTCOME_KIND_COUNT:
        break;
    }
    UNREACHABLE();
}

void limiter_settled(struct activity *activity)
{
    struct limiter *limiter = activity->engine->call_room->limiter;
    const struct tool *tool = activity->act->tool;
    bool is_call = activity->want.type == WANT_CALL;
    int64_t pause_ms = is_call ? pause_of(&activity->act->outcome, activity->act->response) : 0;
    enum guard_charge charge =
        activity->want.direction == DIRECTION_DO && budgets_apply(&limiter->budgets, activity->namespace, tool->name)
            ? charge_of(activity)
            : CHARGE_KEEP;

    if (pause_ms > 0) {
        pause_tool(activity, pause_ms);
    }
    if (is_call && activity->want.direction == DIRECTION_UNDO && activity->act->outcome.kind == OUTCOME_COMPLETED) {
        struct guard_budget budgets[GUARD_BUDGETS_MAX];
        size_t count = budgets_match(&limiter->budgets, activity->namespace, tool->name,
                                     loop_wall_ms(limiter->engine->loop), budgets);

        for (size_t i = 0; i < count; i++) {
            budgets[i].calls = 1;
            budgets[i].micros = activity->act->cost_micros;
        }
        limiter_count(limiter, budgets, count);
    }
    if (is_call ? !limiter_asks(limiter, activity->namespace, tool, activity->want.direction) : charge == CHARGE_KEEP) {
        return;
    }
    struct telling *telling = telling_new(activity, tool);
    enum call_verdict verdict =
        is_call ? call_verdict(&activity->act->outcome, activity->act->response) : CALL_NO_VERDICT;

    telling->tell.failed = verdict == CALL_FAILED;
    telling->tell.no_verdict = verdict == CALL_NO_VERDICT;
    telling->tell.never_called = verdict == CALL_NO_VERDICT && is_call && activity->act->outcome.unsent;
    telling->tell.pause_ms = pause_ms;
    telling->tell.charge = charge;
    telling->tell.cost_micros = activity->act->cost_micros;
    tell_now(telling);
}

/* --- what is counted without asking --- */

struct counting {
    struct limiter *limiter;
    struct arena arena;
    struct guard_count count;
    struct guard_budget *budgets;
};

static void on_counted(struct store_read *read)
{
    struct counting *counting = read->context;
    struct limiter *limiter = counting->limiter;

    limiter->telling--;
    if (read->code == ERR_STORE && !engine_is_closing(limiter->engine)) {
        limiter_count(limiter, counting->budgets, counting->count.budget_count); /* the count certainly was not added */
    } else if (read->code != ERR_OK) {
        log_warn("budget_uncounted", LOG_ERR(&read->err));
    }
    arena_fini(&counting->arena);
    free(counting);
}

static int compare_counts(const void *a, const void *b)
{
    const struct guard_budget *x = a, *y = b;
    int order = slice_compare(x->name, y->name);

    return order ? order : (x->period_start_ms > y->period_start_ms) - (x->period_start_ms < y->period_start_ms);
}

void limiter_flush(struct limiter *limiter)
{
    struct engine *engine = limiter->engine;

    timer_stop(engine->loop, &limiter->flush);
    if (limiter->count_count == 0 || engine_is_closing(engine)) {
        return;
    }
    struct counting *counting = memory_alloc(sizeof(*counting));

    counting->limiter = limiter;
    counting->arena = limiter->counting; /* together with its content */
    counting->budgets = limiter->counts;
    qsort(counting->budgets, limiter->count_count, sizeof(*counting->budgets), compare_counts);
    counting->count = (struct guard_count){.read = {.arena = &counting->arena, .done = on_counted, .context = counting},
                                           .budgets = counting->budgets,
                                           .budget_count = limiter->count_count};
    arena_init(&limiter->counting, 4096);
    limiter->counts = NULL;
    limiter->count_count = limiter->count_capacity = 0;
    limiter->telling++;
    store_guard_count(engine->store, &counting->count);
}

static void on_flush(struct timer *timer)
{
    limiter_flush(container_of(timer, struct limiter, flush));
}

void limiter_count(struct limiter *limiter, const struct guard_budget *budgets, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct guard_budget *found = NULL;

        for (size_t k = 0; k < limiter->count_count && !found; k++) {
            found = compare_counts(&limiter->counts[k], &budgets[i]) == 0 ? &limiter->counts[k] : NULL;
        }
        if (!found) {
            if (limiter->count_count == limiter->count_capacity) {
                size_t capacity = limiter->count_capacity ? limiter->count_capacity * 2 : 8;
                struct guard_budget *grown = arena_array(&limiter->counting, capacity, sizeof(*grown));

                if (limiter->count_count > 0) {
                    memcpy(grown, limiter->counts, limiter->count_count * sizeof(*grown));
                }
                limiter->counts = grown;
                limiter->count_capacity = capacity;
            }
            found = &limiter->counts[limiter->count_count++];
            found->name = arena_slice(&limiter->counting, budgets[i].name);
            found->period_start_ms = budgets[i].period_start_ms;
        }
        found->calls += budgets[i].calls;
        found->emissions += budgets[i].emissions;
        found->micros += budgets[i].micros;
    }
    if (limiter->count_count > 0 && !timer_running(&limiter->flush)) {
        timer_start(limiter->engine->loop, &limiter->flush, FLUSH_MS, on_flush);
    }
}

void limiter_count_emission(struct engine *engine, struct slice namespace, struct slice tool)
{
    struct guard_budget budgets[GUARD_BUDGETS_MAX];
    size_t count =
        budgets_match(&engine->call_room->limiter->budgets, namespace, tool, loop_wall_ms(engine->loop), budgets);

    for (size_t i = 0; i < count; i++) {
        budgets[i].emissions = 1;
    }
    limiter_count(engine->call_room->limiter, budgets, count);
}

void limiter_tell_fini(struct limiter *limiter)
{
    struct list_link *link;

    timer_stop(limiter->engine->loop, &limiter->again);
    timer_stop(limiter->engine->loop, &limiter->flush);
    while ((link = list_pop(&limiter->untold)) != NULL) {
        telling_free(container_of(link, struct telling, link));
    }
    arena_fini(&limiter->counting);
}
