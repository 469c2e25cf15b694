/*
 * From an operation to its outcome by a call of an adapter. One call is one conversation: act->stage says what it
 * awaits, and dispatch_advance() takes that and goes on. After the answer come the tool's own conditions, the result,
 * the cost and the arguments of the compensator, so that the log holds everything that an undo will need.
 *
 *     SETTINGS -> ANSWER -> RULES -> RESULT -> COST -> UNDO_ARGS -> REPORT   it happened
 *        |          |         +----> ERROR -------------------------> |      it did not, or nobody knows
 *        |          +-----------------------------------------------> |      no complete answer came
 *        +----------------------------------------------------------> |      nothing was sent
 *
 * A stage for which the tool has no template is passed without waiting. The answer to an inquiry goes to precheck.c
 * instead.
 */
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/metric.h"
#include "core/language/decimal.h"
#include "core/show/trace.h"
#include "run/call/activity.h"
#include "run/call/call_queue.h"
#include "run/call/call_terms.h"
#include "run/call/holds.h"
#include "run/call/limiter.h"
#include "run/call/refusal.h"
#include "run/leaving.h"
#include "run/query/health.h"
#include "run/saga/forgotten.h"
#include "run/saga/live.h"
#include "run/saga/observers.h"
#include "run/trace/exporter.h"

#define INQUIRY_BLOCK_BYTES 2048

static bool is_probe(const struct activity *activity)
{
    return activity->want.type == WANT_PROBE;
}

/* Is it a read on the way to something else? Such a read neither sends the key nor counts as an attempt. */
static bool is_question(const struct activity *activity)
{
    return is_probe(activity) || activity->inquiry != INQUIRY_NONE;
}

static struct slice adapter_of(const struct activity *activity)
{
    return activity->inquiry == INQUIRY_PRECHECK ? activity->act->tool->precheck.adapter
           : activity->inquiry == INQUIRY_TEST   ? activity->test->adapter
           : is_question(activity)               ? activity->act->tool->probe.adapter
                                                 : activity->act->tool->adapter;
}

static const struct template *settings_of(const struct activity *activity)
{
    return activity->inquiry == INQUIRY_PRECHECK ? &activity->act->tool->precheck.settings
           : activity->inquiry == INQUIRY_TEST   ? &activity->test->settings
           : is_question(activity)               ? &activity->act->tool->probe.settings
                                                 : &activity->act->tool->settings;
}

static int64_t timeout_of(const struct activity *activity)
{
    const struct tool *tool = activity->act->tool;

    return activity->inquiry == INQUIRY_PRECHECK ? tool->precheck.timeout_ms
           : activity->inquiry == INQUIRY_TEST   ? activity->test->timeout_ms
           : is_question(activity)               ? tool->probe.timeout_ms
           : activity->want.direction == DIRECTION_UNDO
               ? tool->timeout_ms
               : activity->live->saga.definition->steps[activity->want.step].timeout_ms;
}

static const struct operation *operation_of(const struct activity *activity)
{
    const struct step *step = &activity->live->saga.steps[activity->want.step];

    return activity->want.direction == DIRECTION_UNDO ? step_undo(step) : &step->forward;
}

/* --- what is rendered for a call --- */

static void on_rendered(struct rendering *rendering);

static struct rendering *begin_render(struct activity *activity, enum dispatch_stage stage, size_t count)
{
    struct act *act = activity->act;

    act->stage = stage;
    act->rendering =
        (struct rendering){.count = count, .context = act->context, .arena = act->arena, .done = on_rendered};
    if (stage == DISPATCH_COST || stage == DISPATCH_UNDO_ARGS) {
        act->rendering.context.result = act->outcome.result.ptr ? act->outcome.result : SLICE("null");
    } else {
        act->rendering.context.response = act->response;
    }
    return &act->rendering;
}

/* Renders a template. Returns true when the value is here; a template that is not set has no value then. Returns false
 * when on_rendered() follows. */
static bool render(struct activity *activity, enum dispatch_stage stage, const struct template *template)
{
    struct rendering *rendering = begin_render(activity, stage, 1);

    rendering->items[0].template = template;
    return rendering_start(activity->engine->loop, rendering);
}

static struct slice sentence(struct arena *arena, const char *about, struct slice error)
{
    return arena_printf(arena, "%s: %.*s", about, SLICE_ARG(error));
}

/* --- settings: is it still to be sent? --- */

static bool not_sent(struct activity *activity, enum outcome_kind kind, struct slice error, struct slice detail)
{
    activity->act->outcome = (struct outcome){.kind = kind, .unsent = true, .error = error, .detail = detail};
    return false;
}

/* Does a person hold the call, or may a person hold it because the newest holds are still being read? */
static bool is_held(const struct activity *activity)
{
    return !is_probe(activity) && (holds_are_stale(activity->engine->holds) || holds_on(activity));
}

/* May the call be sent? Returns false when no byte leaves: the call is not wanted, it is held, the lease ends, or
 * definition, secret and arguments do not fit together. */
static bool may_be_sent(struct activity *activity)
{
    const struct rendering_item *settings = &activity->act->rendering.items[0];

    if (!activity->live || activity->cancelled) {
        return not_sent(activity, OUTCOME_RETRY, SLICE("cancelled"), SLICE("the call was not wanted any more"));
    }
    if (settings->code != ERR_OK) {
        return not_sent(activity, is_question(activity) ? OUTCOME_UNKNOWN : OUTCOME_FAILED, SLICE("settings"),
                        sentence(activity->act->arena, "the tool's settings", settings->error));
    }
    if (!lease_allows_send(activity->engine->leases, activity->live->shard->number)) {
        return not_sent(activity, OUTCOME_RETRY, SLICE("lease"), SLICE("the lease of this shard was about to end"));
    }
    if (is_held(activity)) {
        return not_sent(activity, OUTCOME_RETRY, SLICE("held"), SLICE("a person held it before this call was sent"));
    }
    return true;
}

/* Another engine may have the shard by now and make the call. Or a person holds it since it was begun. */
static bool may_leave(const struct call *call)
{
    const struct activity *activity = call->owner;

    return activity->live && !is_held(activity) &&
           lease_allows_send(activity->engine->leases, activity->live->shard->number);
}

/* The trace that the receiver sees: the caller's of a call of an agent; else the saga's, with the attempt as parent. */
static struct trace_context trace_of(const struct activity *activity)
{
    const struct live *live = activity->live;
    struct arena *arena = activity->act->arena;
    struct trace_context trace = {SLICE_NONE, SLICE_NONE};
    char parent[TRACE_PARENT_BYTES];

    if (live && activity->want.direction == DIRECTION_DO) {
        trace = callers_trace(live, activity->want.step);
    }
    if (live && !trace.parent.ptr) {
        trace = live->saga.trace;
        if (exporter_is_on(activity->engine->exporter) && live->saga.definition->kind != SAGA_RUN) {
            trace.parent = trace_parent(&live->saga, &operation_of(activity)->key,
                                        is_question(activity) ? 0 : activity->want.number,
                                        exporter_sampler(activity->engine->exporter), parent);
        }
    }
    return (struct trace_context){arena_slice(arena, trace.parent), arena_slice(arena, trace.state)};
}

static void on_settled(struct call *call);

static void send_call(struct activity *activity)
{
    struct engine *engine = activity->engine;
    struct act *act = activity->act;
    const struct tool *tool = activity->inquiry == INQUIRY_TEST ? activity->test : act->tool;
    const struct adapter *adapter = adapter_find(adapter_of(activity));

    CHECK(adapter);
    struct call *call = arena_alloc(act->arena, adapter->call_size);

    call->adapter = adapter;
    call->host = &engine->host;
    call->arena = act->arena;
    call->owner = activity;
    call->settings = act->rendering.items[0].value;
    call->args = act->args;
    call->key = act->key;
    call->undoes = act->undoes;
    call_terms_fill(call, tool, activity->effect, is_question(activity));
    call->timeout_ms = timeout_of(activity);
    call->attempt = (int)activity->want.number;
    call->trace = trace_of(activity);
    call->may_leave = may_leave;
    call->settled = on_settled;
    act->call = call;
    act->stage = DISPATCH_ANSWER;
    act->started_us = loop_boot_us(engine->loop);
    activity->state = ACTIVITY_CALLING;
    if (!call->question) {
        forgotten_made(activity);
    }
    adapter->begin(call);
}

/* --- the answer, and the tool's own conditions on it --- */

static void take_answer(struct activity *activity)
{
    struct act *act = activity->act;

    histogram_observe_us(HISTOGRAM_CALL, loop_boot_us(activity->engine->loop) - act->started_us);
    act->outcome = act->call->outcome;
    act->response = act->call->response;
    refusal_hide(activity, settings_of(activity)); /* before it is judged, kept or shown */
    act->binary = act->call->binary;
    call_place_give_back(activity);
}

static bool ask_rules(struct activity *activity)
{
    struct rendering *rendering = begin_render(activity, DISPATCH_RULES, 0);

    rendering->count = call_terms_conditions(activity->act->tool, is_probe(activity), rendering->items);
    return rendering_start(activity->engine->loop, rendering);
}

static void take_rules(struct activity *activity)
{
    struct act *act = activity->act;

    call_terms_judge(act->tool, is_probe(activity), act->rendering.items, act->arena, &act->outcome);
}

/* --- the arguments of the compensator, as soon as the forward operation is known to have happened --- */

static bool ask_undo_args(struct activity *activity)
{
    struct act *act = activity->act;

    if (act->outcome.kind != OUTCOME_COMPLETED || activity->want.direction != DIRECTION_DO ||
        !act->compensator->is_set) {
        act->stage = DISPATCH_REPORT;
        return true;
    }
    if (act->result_error.ptr && template_uses_result(&act->compensator->with)) {
        act->undo_error = act->result_error;
        act->stage = DISPATCH_REPORT;
        return true;
    }
    return render(activity, DISPATCH_UNDO_ARGS, &act->compensator->with);
}

static void take_undo_args(struct activity *activity)
{
    struct act *act = activity->act;
    const struct rendering_item *item = &act->rendering.items[0];

    if (item->code != ERR_OK) {
        act->undo_error = sentence(act->arena, "the compensator's arguments", item->error);
    } else {
        act->undo_args = item->value.ptr ? item->value : SLICE("{}");
    }
}

/* --- a refusal: the tool's own words for people --- */

static bool ask_error(struct activity *activity)
{
    const struct act *act = activity->act;

    if (act->outcome.kind == OUTCOME_RUNNING || !act->response.ptr || is_question(activity)) {
        activity->act->stage = DISPATCH_REPORT;
        return true;
    }
    return render(activity, DISPATCH_ERROR, &act->tool->error);
}

/* An error text that cannot be rendered changes nothing about the known outcome. */
static void take_error(struct activity *activity)
{
    struct act *act = activity->act;
    const struct rendering_item *item = &act->rendering.items[0];
    struct slice text = item->code == ERR_OK && item->value.ptr && json_type(item->value) == JSON_STRING
                            ? slice_trim(json_string(item->value, act->arena))
                            : SLICE_NONE;

    if (text.len > 0) {
        act->outcome.detail = text;
    }
}

/* --- the result --- */

/* Returns a sentence about an answer as the log of the program may have it. */
static struct slice why_logged(const struct activity *activity, struct slice why)
{
    return definitions_declare(activity->engine->definitions, activity->namespace, SLICE_NONE)
               ? SLICE("not said here, since some definition of the namespace has sensitive members")
               : why;
}

static void cost_lost(struct activity *activity, struct slice why)
{
    activity->act->cost_unknown = arena_slice(activity->act->arena, why);
    log_warn("cost_unknown", LOG_UUID("saga", &activity->saga.uuid), LOG_SLICE("tool", activity->act->tool->name),
             LOG_SLICE("why", why_logged(activity, why)));
}

/* Marks a result as lost. The call happened, and its result cannot be had. Neither an undo that needs the result nor a
 * later step may run on a guess. */
static void result_lost(struct activity *activity, struct slice why)
{
    struct act *act = activity->act;

    act->outcome.result = SLICE_NONE;
    act->outcome.detail = act->result_error = arena_slice(act->arena, why);
    act->cost_micros = act->tool->cost_fixed_micros;
    if (act->tool->cost.count > 0) {
        cost_lost(activity, why);
    }
    metric_add(METRIC_RESULTS_LOST, 1);
    log_warn("result_lost", LOG_UUID("saga", &activity->saga.uuid), LOG_I64("step", activity->want.step),
             LOG_SLICE("tool", act->tool->name), LOG_SLICE("why", why_logged(activity, act->outcome.detail)));
}

static bool ask_result(struct activity *activity)
{
    const struct tool *tool = activity->act->tool;

    return render(activity, DISPATCH_RESULT, is_probe(activity) ? &tool->probe.result : &tool->result);
}

/* Takes the result. Returns false when it is lost. */
static bool take_result(struct activity *activity)
{
    struct act *act = activity->act;
    const struct rendering_item *item = &act->rendering.items[0];
    struct slice result =
        item->value.ptr ? item->value : act->outcome.result; /* otherwise the result that the adapter made */

    if (item->code != ERR_OK) {
        result_lost(activity, sentence(act->arena, "the result", item->error));
    } else if (result.len > activity->engine->options.payload_bytes_max) {
        result_lost(activity, SLICE("the result is larger than allowed"));
    } else {
        act->outcome.result = result;
    }
    return !act->result_error.ptr;
}

/* --- what it cost --- */

/* Reads a cost, rounded up, because the booked amount must not be less than the real one. */
static bool cost_of(struct slice value, struct arena *arena, int64_t *micros)
{
    if (json_type(value) != JSON_NUMBER) {
        return false;
    }
    struct decimal number = decimal_of(json_trim(value), arena);

    return decimal_round_up(&number, COST_MICROS_MAX, micros);
}

static bool ask_cost(struct activity *activity)
{
    struct act *act = activity->act;

    act->cost_micros = act->tool->cost_fixed_micros;
    if (act->cost_micros > 0) {
        return ask_undo_args(activity);
    }
    return render(activity, DISPATCH_COST, &act->tool->cost);
}

static void take_cost(struct activity *activity)
{
    struct act *act = activity->act;
    const struct rendering_item *item = &act->rendering.items[0];

    if (item->code != ERR_OK) {
        cost_lost(activity, item->error);
    } else if (item->value.ptr && !cost_of(item->value, act->arena, &act->cost_micros)) {
        cost_lost(activity, SLICE("it is no number of micro-units from 0 to 1000000000000000"));
    }
}

/* Asks for an estimate when the outcome is unknown. The arguments alone must decide the cost. */
static bool ask_estimate(struct activity *activity)
{
    struct act *act = activity->act;
    const struct template *cost = &act->tool->cost;

    if (act->outcome.kind != OUTCOME_UNKNOWN || is_question(activity) || activity->want.direction == DIRECTION_UNDO ||
        cost->count == 0 || template_uses_result(cost)) {
        act->stage = DISPATCH_REPORT;
        return true;
    }
    return render(activity, DISPATCH_ESTIMATE, cost);
}

/* Without an estimate the case shows none, and nothing depends on it. */
static void take_estimate(struct activity *activity)
{
    struct act *act = activity->act;
    const struct rendering_item *item = &act->rendering.items[0];

    if (item->code != ERR_OK || !item->value.ptr || !cost_of(item->value, act->arena, &act->cost_micros)) {
        act->cost_micros = 0;
    }
    act->stage = DISPATCH_REPORT;
}

/* --- the end --- */

static void count_outcome(struct activity *activity)
{
    struct tool_health *health = tool_health_of(activity->engine, activity->namespace, activity->act->tool->name);

    switch (activity->act->outcome.kind) {
    case OUTCOME_COMPLETED:
        health->completed++;
        break;
    case OUTCOME_UNKNOWN:
        metric_add(METRIC_CALLS_UNKNOWN, 1);
        health->unknown++;
        break;
    case OUTCOME_FAILED:
    case OUTCOME_RETRY:
        metric_add(METRIC_CALLS_FAILED, 1);
        health->failed++;
        break;
    case OUTCOME_RUNNING:
    case OUTCOME_ABSENT:
    case OUTCOME_KIND_COUNT:
        break;
    }
}

/* Does the tool say that such a refusal holds for every attempt under the key? */
static bool answer_settles(const struct activity *activity)
{
    const struct act *act = activity->act;
    int64_t status;

    if (is_question(activity) || act->outcome.kind != OUTCOME_FAILED || act->outcome.unsent ||
        activity->effect != EFFECT_KEYED || !act->response.ptr ||
        !json_i64(json_member(act->response, "status"), &status)) {
        return false;
    }
    for (size_t i = 0; i < act->tool->settles_count; i++) {
        if (act->tool->settles[i] == status) {
            return true;
        }
    }
    return false;
}

static void report(struct activity *activity)
{
    struct act *act = activity->act;

    if (activity->state == ACTIVITY_JUDGING) {
        rendering_ends(activity->engine);
    }
    if (!is_probe(activity)) {
        count_outcome(activity);
    }
    limiter_settled(activity);
    act->outcome.settles = answer_settles(activity);
    refusal_keep(activity, settings_of(activity));
    act->mail.input = (struct saga_input){.type = is_probe(activity) ? SAGA_INPUT_PROBED : SAGA_INPUT_SETTLED,
                                          .settled = {.step = activity->want.step,
                                                      .direction = activity->want.direction,
                                                      .attempt = activity->want.number,
                                                      .outcome = act->outcome,
                                                      .undo_args = act->undo_args,
                                                      .undo_error = act->undo_error,
                                                      .cost_micros = act->cost_micros,
                                                      .cost_unknown = act->cost_unknown,
                                                      .result_error = act->result_error}};
    activity_report(activity);
}

/* --- the conversation --- */

/* Takes what the stage has waited for, and begins the next stage, until one has to wait. */
static void dispatch_advance(struct activity *activity)
{
    struct act *act = activity->act;

    for (bool is_here = true; is_here;) {
        switch (act->stage) {
        case DISPATCH_SETTINGS:
            if (may_be_sent(activity)) {
                send_call(activity);
                return;
            }
            call_place_give_back(activity);
            call_queue_run_soon(activity->engine);
            if (activity->inquiry != INQUIRY_NONE) {
                precheck_unasked(activity, act->outcome.error, act->outcome.detail);
                return;
            }
            act->stage = DISPATCH_REPORT;
            break;
        case DISPATCH_ANSWER:
            take_answer(activity);
            if (activity->inquiry != INQUIRY_NONE) {
                precheck_settled(activity);
                return;
            }
            activity->state = ACTIVITY_JUDGING;
            rendering_begins(activity->engine);
            if (act->response.ptr) {
                is_here = ask_rules(activity);
            } else if (act->outcome.kind == OUTCOME_COMPLETED) {
                is_here = ask_cost(activity);
            } else {
                is_here = ask_estimate(activity);
            }
            break;
        case DISPATCH_RULES:
            take_rules(activity);
            is_here = act->outcome.kind == OUTCOME_COMPLETED ? ask_result(activity) : ask_error(activity);
            break;
        case DISPATCH_ERROR:
            take_error(activity);
            is_here = ask_estimate(activity);
            break;
        case DISPATCH_RESULT:
            is_here = take_result(activity) ? ask_cost(activity) : ask_undo_args(activity);
            break;
        case DISPATCH_COST:
            take_cost(activity);
            is_here = ask_undo_args(activity);
            break;
        case DISPATCH_ESTIMATE:
            take_estimate(activity);
            break;
        case DISPATCH_UNDO_ARGS:
            take_undo_args(activity);
            act->stage = DISPATCH_REPORT;
            break;
        case DISPATCH_REPORT:
            report(activity);
            return;
        }
    }
}

static void on_rendered(struct rendering *rendering)
{
    struct activity *activity = activity_of(rendering);
    struct engine *engine = activity->engine;

    dispatch_advance(activity);
    engine_check_drained(engine);
}

static void on_settled(struct call *call)
{
    struct activity *activity = call->owner;
    struct engine *engine = activity->engine;

    dispatch_advance(activity);
    call_queue_run(engine);
    engine_check_drained(engine);
}

/* Copies the context, which outlives this turn and its saga. Calls of agents see no other steps. */
static void keep_context(struct activity *activity)
{
    const struct saga *saga = &activity->live->saga;
    struct arena *arena = activity->act->arena;
    char id[UUID_TEXT_BYTES];

    if (saga_is_open(saga)) {
        uuid_text(&saga->id.uuid, id);
        activity->act->context = (struct expression_context){.saga_id = arena_slice(arena, slice_of(id)),
                                                             .saga_name = arena_slice(arena, saga->definition->name)};
        return;
    }
    activity->act->context = saga_expression_context(saga, activity->want.step, arena);
    activity->act->context.input = arena_slice(arena, activity->act->context.input);
    activity->act->context.item = arena_slice(arena, activity->act->context.item);
    struct expression_step *steps =
        arena_dup(arena, activity->act->context.steps, activity->act->context.step_count * sizeof(*steps));

    for (size_t i = 0; i < activity->act->context.step_count; i++) {
        steps[i].result = arena_slice(arena, steps[i].result);
        steps[i].error = arena_slice(arena, steps[i].error);
    }
    activity->act->context.steps = steps;
}

/* Keeps the key that is undone. A compensator gets it only when it uses the same memory of keys as the forward tool. */
static void keep_undone(struct activity *activity)
{
    const struct saga *saga = &activity->live->saga;
    const struct tool *undone, *tool = activity->act->tool;
    const struct adapter *adapter = adapter_find(adapter_of(activity));
    char key[UUID_TEXT_BYTES];

    if (activity->want.direction != DIRECTION_UNDO || is_question(activity) || !adapter->shares_keys) {
        return;
    }
    undone = saga_tool(saga, activity->want.step, DIRECTION_DO);
    if (slice_equal(undone->adapter, tool->adapter) &&
        adapter->shares_keys(undone->settings.json, tool->settings.json)) {
        uuid_text(&saga->steps[activity->want.step].forward.key.uuid, key);
        activity->act->undoes = arena_slice(activity->act->arena, slice_of(key));
    }
}

/*
 * Begins an arena. A call is the last thing that its activity makes. Before it, inquiries may come for as long as a
 * breaker stays half-open. Nothing later needs them, so they share an arena that each uses anew.
 */
static void begin_arena(struct activity *activity)
{
    struct act *act = activity->act;

    if (act->inquiry_arena) {
        act->response = SLICE_NONE; /* belongs to the inquiry before */
        arena_reset(act->inquiry_arena);
    } else if (activity->inquiry != INQUIRY_NONE) {
        act->inquiry_arena = arena_alloc(&activity->arena, sizeof(*act->inquiry_arena));
        arena_init(act->inquiry_arena, INQUIRY_BLOCK_BYTES);
        arena_tie(&activity->arena, act->inquiry_arena);
    }
    act->arena = activity->inquiry != INQUIRY_NONE ? act->inquiry_arena : &activity->arena;
}

void dispatch_begin(struct activity *activity)
{
    struct engine *engine = activity->engine;
    const struct saga *saga = &activity->live->saga;
    const struct operation *operation = operation_of(activity);
    char key[UUID_TEXT_BYTES];

    activity_act(activity);
    begin_arena(activity);
    struct rendering *rendering = &activity->act->rendering;
    struct arena *arena = activity->act->arena;

    activity->act->tool = saga_tool(saga, activity->want.step, activity->want.direction);
    /* A copy, because the step of an open saga goes away with its saga, and late evidence is judged after that. */
    activity->act->compensator =
        arena_dup(arena, &saga->definition->steps[activity->want.step].compensate, sizeof(*activity->act->compensator));
    activity->act->args = activity->inquiry == INQUIRY_TEST ? SLICE("{}") : arena_slice(arena, operation->args);
    uuid_text(&operation->key.uuid, key);
    activity->act->key = arena_slice(arena, slice_of(key));
    keep_undone(activity);
    keep_context(activity);
    activity->act->context.args = activity->act->args;
    activity->act->context.key = activity->act->key;
    activity->act->context.attempt = is_probe(activity) ? (int)operation->attempts : (int)activity->want.number;
    call_place_take(activity, slice_is(adapter_of(activity), "exec"));
    if (is_question(activity)) {
        metric_add(METRIC_PROBES, 1);
    } else {
        struct tool_health *health = tool_health_of(engine, saga->namespace, activity->act->tool->name);

        metric_add(METRIC_CALLS, 1);
        metric_add(METRIC_RETRIES, activity->want.number > 1);
        health->calls++;
        health->retries += activity->want.number > 1;
    }
    activity->state = ACTIVITY_RENDERING;
    *rendering = (struct rendering){.count = 1,
                                    .context = activity->act->context,
                                    .arena = arena,
                                    .secrets = &engine->secrets,
                                    .namespace = activity->namespace,
                                    .done = on_rendered};
    rendering->items[0].template = settings_of(activity);
    activity->act->stage = DISPATCH_SETTINGS;
    if (rendering_start(engine->loop, rendering)) {
        on_rendered(rendering);
    }
}

void dispatch_cancel(struct activity *activity)
{
    if (!activity->cancelled && activity->act->call->adapter->cancel) {
        activity->cancelled = true;
        activity->act->call->adapter->cancel(activity->act->call);
    }
}
