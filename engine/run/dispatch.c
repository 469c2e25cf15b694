/*
 * Operation -> adapter call -> outcome. Renders the tool's settings, hands the call to its adapter, and judges the
 * answer by the tool's own conditions; then the result, and the arguments of the compensator, are rendered, so that the
 * log holds all that an undo will need.
 */
#include <stdio.h>

#include "run/limiter.h"

#include "base/json.h"
#include "base/log.h"
#include "base/metric.h"

#define COST_MICROS_MAX INT64_C(1000000000000000) /* a sum of many stays a number */

static bool is_probe(const struct activity *activity)
{
    return activity->want.type == WANT_PROBE;
}

/* A read on the way to something else: neither sends the key nor counts as an attempt. */
static bool is_question(const struct activity *activity)
{
    return is_probe(activity) || activity->inquiry != INQUIRY_NONE;
}

static struct slice adapter_of(const struct activity *activity)
{
    return activity->inquiry == INQUIRY_PRECHECK ? activity->tool->precheck.adapter
           : is_question(activity)               ? activity->tool->probe.adapter
                                                 : activity->tool->adapter;
}

static const struct template *settings_of(const struct activity *activity)
{
    return activity->inquiry == INQUIRY_PRECHECK ? &activity->tool->precheck.settings
           : is_question(activity)               ? &activity->tool->probe.settings
                                                 : &activity->tool->settings;
}

static int64_t timeout_of(const struct activity *activity)
{
    const struct tool *tool = activity->tool;

    return activity->inquiry == INQUIRY_PRECHECK ? tool->precheck.timeout_ms
           : is_question(activity)               ? tool->probe.timeout_ms
           : activity->want.direction == DIRECTION_UNDO
               ? tool->timeout_ms
               : activity->live->saga.definition->steps[activity->want.step].timeout_ms;
}

static const struct operation *operation_of(const struct activity *activity)
{
    const struct step *step = &activity->live->saga.steps[activity->want.step];

    return activity->want.direction == DIRECTION_UNDO ? &step->undo : &step->forward;
}

struct tool_health *tool_health_of(struct engine *engine, struct slice namespace, struct slice name)
{
    char key[256];
    int len = snprintf(key, sizeof(key), "%.*s\n%.*s", SLICE_ARG(namespace), SLICE_ARG(name));

    if (len <= 0 || (size_t)len >= sizeof(key)) {
        len = (int)sizeof(key) - 1;
    }
    struct tool_health *health = map_find(&engine->tool_health, key, (size_t)len);

    if (!health) {
        struct slice kept = arena_slice(&engine->arena, (struct slice){key, (size_t)len});

        health = arena_alloc(&engine->arena, sizeof(*health));
        health->namespace = arena_slice(&engine->arena, namespace);
        health->name = arena_slice(&engine->arena, name);
        map_put(&engine->tool_health, kept.ptr, kept.len, health);
    }
    return health;
}

static void count_outcome(struct activity *activity)
{
    struct tool_health *health = tool_health_of(activity->engine, activity->namespace, activity->tool->name);

    switch (activity->outcome.kind) {
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

static void report(struct activity *activity, struct slice undo_args, struct slice undo_error)
{
    struct engine *engine = activity->engine;
    bool judged = activity->state == ACTIVITY_JUDGING;

    engine->evaluations_under_way -= judged;
    if (!is_probe(activity)) {
        count_outcome(activity);
    }
    limiter_settled(activity);
    activity->mail.input = (struct saga_input){.type = is_probe(activity) ? SAGA_INPUT_PROBED : SAGA_INPUT_SETTLED,
                                               .settled = {.step = activity->want.step,
                                                           .direction = activity->want.direction,
                                                           .attempt = activity->want.number,
                                                           .outcome = activity->outcome,
                                                           .undo_args = undo_args,
                                                           .undo_error = undo_error,
                                                           .cost_micros = activity->cost_micros}};
    activity_report(activity);
    if (judged) {
        engine_check_drained(engine);
    }
}

static struct slice sentence(struct arena *arena, const char *about, struct slice error)
{
    return arena_printf(arena, "%s: %.*s", about, SLICE_ARG(error));
}

/* --- the arguments of the compensator, as soon as the forward operation is known to have happened --- */

static void on_undo_args(struct eval *eval)
{
    struct activity *activity = container_of(eval, struct activity, eval);
    struct eval_item *item = &eval->items[0];

    if (item->code == ERR_OK) {
        report(activity, item->value.ptr ? item->value : SLICE("{}"), SLICE_NONE);
    } else {
        report(activity, SLICE_NONE, sentence(&activity->arena, "the compensator's arguments", item->error));
    }
}

static void render_undo_args(struct activity *activity)
{
    struct eval *eval = &activity->eval;

    if (activity->outcome.kind != OUTCOME_COMPLETED || activity->want.direction != DIRECTION_DO ||
        !activity->compensator->is_set) {
        report(activity, SLICE_NONE, SLICE_NONE);
        return;
    }
    if (!template_is_set(&activity->compensator->with)) {
        report(activity, SLICE("{}"), SLICE_NONE);
        return;
    }
    *eval = (struct eval){.count = 1, .context = activity->context, .arena = &activity->arena, .done = on_undo_args};
    eval->items[0].template = &activity->compensator->with;
    eval->context.result = activity->outcome.result.ptr ? activity->outcome.result : SLICE("null");
    eval->context.response = SLICE_NONE;
    if (eval_start(activity->engine->loop, eval)) {
        on_undo_args(eval);
    }
}

/* --- what it cost --- */

static void on_cost(struct eval *eval)
{
    struct activity *activity = container_of(eval, struct activity, eval);
    struct eval_item *item = &eval->items[0];

    if (item->code != ERR_OK || !json_i64(item->value, &activity->cost_micros) || activity->cost_micros < 0 ||
        activity->cost_micros > COST_MICROS_MAX) {
        activity->cost_micros = 0;
        log_warn("cost_unknown", LOG_UUID("saga", &activity->saga.uuid), LOG_SLICE("tool", activity->tool->name),
                 LOG_SLICE("why", item->code != ERR_OK ? item->error
                                                       : SLICE("it is no whole number of micro-units from 0 on")));
    }
    render_undo_args(activity);
}

static void render_cost(struct activity *activity)
{
    const struct tool *tool = activity->tool;
    struct eval *eval = &activity->eval;

    if (tool->cost_fixed_micros > 0 || !template_is_set(&tool->cost)) {
        activity->cost_micros = tool->cost_fixed_micros;
        render_undo_args(activity);
        return;
    }
    *eval = (struct eval){.count = 1, .context = activity->context, .arena = &activity->arena, .done = on_cost};
    eval->items[0].template = &tool->cost;
    eval->context.result = activity->outcome.result.ptr ? activity->outcome.result : SLICE("null");
    eval->context.response = SLICE_NONE;
    if (eval_start(activity->engine->loop, eval)) {
        on_cost(eval);
    }
}

/* --- the result --- */

static void on_result(struct eval *eval)
{
    struct activity *activity = container_of(eval, struct activity, eval);
    struct eval_item *item = &eval->items[0];

    if (item->code == ERR_OK && item->value.len <= activity->engine->options.payload_bytes_max) {
        activity->outcome.result = item->value;
        render_cost(activity);
        return;
    }
    /* It happened, and what is to be kept of it cannot be had: an undo that needs the result must not run
     * on a guess. */
    activity->outcome.result = SLICE_NONE;
    activity->outcome.detail = item->code == ERR_OK ? SLICE("the result is larger than allowed")
                                                    : sentence(&activity->arena, "the result", item->error);
    activity->cost_micros = activity->tool->cost_fixed_micros;
    metric_add(METRIC_RESULTS_LOST, 1);
    log_warn("result_lost", LOG_UUID("saga", &activity->saga.uuid), LOG_I64("step", activity->want.step),
             LOG_SLICE("tool", activity->tool->name), LOG_SLICE("why", activity->outcome.detail));
    report(activity, SLICE_NONE,
           activity->want.direction == DIRECTION_DO && activity->compensator->is_set ? activity->outcome.detail
                                                                                     : SLICE_NONE);
}

static void render_result(struct activity *activity)
{
    const struct template *template = is_probe(activity) ? &activity->tool->probe.result : &activity->tool->result;
    struct eval *eval = &activity->eval;

    if (activity->outcome.kind != OUTCOME_COMPLETED) {
        report(activity, SLICE_NONE, SLICE_NONE);
        return;
    }
    if (!template_is_set(template)) {
        if (activity->outcome.result.len > activity->engine->options.payload_bytes_max) {
            activity->outcome.result = SLICE_NONE;
            activity->outcome.detail = SLICE("the result is larger than allowed");
        }
        render_cost(activity);
        return;
    }
    *eval = (struct eval){.count = 1, .context = activity->context, .arena = &activity->arena, .done = on_result};
    eval->items[0].template = template;
    eval->context.response = activity->response;
    if (eval_start(activity->engine->loop, eval)) {
        on_result(eval);
    }
}

/* --- what the answer means --- */

struct rule {
    enum outcome_kind kind;
    const struct template *condition;
};

static size_t rules_of(const struct activity *activity, struct rule out[4])
{
    if (is_probe(activity)) {
        const struct outcome_rules *rules = &activity->tool->probe.outcome;

        out[0] = (struct rule){OUTCOME_COMPLETED, &rules->completed};
        out[1] = (struct rule){OUTCOME_ABSENT, &rules->absent};
        out[2] = (struct rule){OUTCOME_RUNNING, &rules->running};
        return 3;
    }
    const struct outcome_rules *rules = &activity->tool->outcome;

    out[0] = (struct rule){OUTCOME_COMPLETED, &rules->completed};
    out[1] = (struct rule){OUTCOME_RUNNING, &rules->running};
    out[2] = (struct rule){OUTCOME_RETRY, &rules->retry};
    out[3] = (struct rule){OUTCOME_FAILED, &rules->no_effect};
    return 4;
}

/* In the order of the rules: the tool's own condition where it has one, else the adapter's default.
 * None: nobody knows. */
static void on_judged(struct eval *eval)
{
    struct activity *activity = container_of(eval, struct activity, eval);
    struct rule rules[4];
    size_t count = rules_of(activity, rules);
    enum outcome_kind given = activity->outcome.kind, found = OUTCOME_UNKNOWN;
    struct slice why = SLICE_NONE;

    for (size_t i = 0; i < count; i++) {
        if (!template_is_set(rules[i].condition)) {
            if (rules[i].kind == given) {
                found = given;
                break;
            }
            continue;
        }
        if (eval->items[i].code != ERR_OK) {
            /* A condition that cannot be told could have been true: whatever a later one says would be a guess. */
            why = sentence(&activity->arena, "a condition of `outcome`", eval->items[i].error);
            break;
        }
        if (expression_true(eval->items[i].value)) {
            found = rules[i].kind;
            break;
        }
    }
    if (found != given) {
        activity->outcome.unsent = false;
        if (found == OUTCOME_UNKNOWN || !activity->outcome.error.ptr) {
            activity->outcome.error = found == OUTCOME_UNKNOWN ? SLICE("outcome") : SLICE("outcome-rule");
            activity->outcome.detail =
                why.ptr ? why
                        : arena_printf(&activity->arena, "by the tool's `outcome`, the answer means %s",
                                       outcome_name(found));
        }
    }
    activity->outcome.kind = found;
    if (found == OUTCOME_RUNNING && !activity->tool->has_probe) {
        activity->outcome.kind = OUTCOME_COMPLETED; /* accepted is all that will ever be heard of it */
    }
    render_result(activity);
}

static void judge(struct activity *activity)
{
    struct eval *eval = &activity->eval;
    struct rule rules[4];

    activity->state = ACTIVITY_JUDGING;
    activity->engine->evaluations_under_way++;
    if (!activity->response.ptr) {
        if (activity->outcome.kind == OUTCOME_COMPLETED) {
            render_cost(activity);
        } else {
            report(activity, SLICE_NONE, SLICE_NONE); /* no complete answer: there is nothing to judge */
        }
        return;
    }
    *eval = (struct eval){.context = activity->context, .arena = &activity->arena, .done = on_judged};
    eval->count = rules_of(activity, rules);
    for (size_t i = 0; i < eval->count; i++) {
        eval->items[i].template = rules[i].condition;
    }
    eval->context.response = activity->response;
    if (eval_start(activity->engine->loop, eval)) {
        on_judged(eval);
    }
}

/* --- the call --- */

static void place_given_back(struct activity *activity)
{
    struct engine *engine = activity->engine;

    engine->calls_under_way--;
    engine->execs_under_way -= slice_is(adapter_of(activity), "exec");
    gauge_set(GAUGE_CALLS_IN_FLIGHT, engine->calls_under_way);
}

static void on_settled(struct call *call)
{
    /* A call's arena is its activity's, embedded in it. */
    struct activity *activity = container_of(call->arena, struct activity, arena);
    struct engine *engine = activity->engine;

    histogram_observe_us(HISTOGRAM_CALL, loop_boot_us(engine->loop) - activity->started_us);
    activity->outcome = call->outcome;
    activity->response = call->response;
    place_given_back(activity);
    if (activity->inquiry != INQUIRY_NONE) {
        precheck_settled(activity);
    } else {
        judge(activity);
    }
    call_queue_run(engine);
    engine_check_drained(engine);
}

/* Not a byte left: the definition, a secret or the arguments would not go together. */
static void report_unsent(struct activity *activity, enum outcome_kind kind, struct slice error, struct slice detail)
{
    struct engine *engine = activity->engine;

    activity->outcome = (struct outcome){.kind = kind, .unsent = true, .error = error, .detail = detail};
    place_given_back(activity);
    if (activity->inquiry != INQUIRY_NONE) {
        precheck_unasked(activity, error, detail);
    } else {
        report(activity, SLICE_NONE, SLICE_NONE);
    }
    engine_check_drained(engine);
}

/* The shard may be another engine's by now: its call is made by that one. */
static bool may_leave(const struct call *call)
{
    const struct activity *activity = container_of(call->arena, struct activity, arena);

    return activity->live && lease_allows_send(activity->engine->leases, activity->live->shard->number);
}

static void on_settings(struct eval *eval)
{
    struct activity *activity = container_of(eval, struct activity, eval);
    struct engine *engine = activity->engine;
    struct eval_item *item = &eval->items[0];
    const struct tool *tool = activity->tool;

    if (!activity->live || activity->cancelled) {
        report_unsent(activity, OUTCOME_RETRY, SLICE("cancelled"), SLICE("the call was not wanted any more"));
        return;
    }
    if (item->code != ERR_OK) {
        report_unsent(activity, is_question(activity) ? OUTCOME_UNKNOWN : OUTCOME_FAILED, SLICE("settings"),
                      sentence(&activity->arena, "the tool's settings", item->error));
        return;
    }
    if (!lease_allows_send(engine->leases, activity->live->shard->number)) {
        report_unsent(activity, OUTCOME_RETRY, SLICE("lease"), SLICE("the lease of this shard was about to end"));
        return;
    }
    const struct adapter *adapter = adapter_find(adapter_of(activity));

    CHECK(adapter);
    struct call *call = arena_alloc(&activity->arena, adapter->call_size);

    call->adapter = adapter;
    call->host = &engine->host;
    call->arena = &activity->arena;
    call->settings = item->value;
    call->args = activity->args;
    call->key = activity->key;
    call->undoes = activity->undoes;
    call->key_place = is_question(activity) ? KEY_PLACE_DEFAULT : tool->key_place;
    call->key_name = is_question(activity) ? SLICE_NONE : tool->key_name;
    call->send_key = !is_question(activity) && activity->effect != EFFECT_READ;
    call->harmless = is_question(activity) || activity->effect == EFFECT_READ || activity->effect == EFFECT_IDEMPOTENT;
    call->repeatable = is_question(activity) || effect_is_safe(activity->effect);
    call->timeout_ms = timeout_of(activity);
    call->attempt = (int)activity->want.number;
    call->may_leave = may_leave;
    call->settled = on_settled;
    activity->call = call;
    activity->state = ACTIVITY_CALLING;
    activity->started_us = loop_boot_us(engine->loop);
    adapter->begin(call);
}

/* The context outlives this turn, and its saga: what it shows of it is copied. Calls of agents see no other steps. */
static void keep_context(struct activity *activity)
{
    const struct saga *saga = &activity->live->saga;
    char id[UUID_TEXT_BYTES];

    if (saga_is_open(saga)) {
        uuid_text(&saga->id.uuid, id);
        activity->context =
            (struct expression_context){.saga_id = arena_slice(&activity->arena, slice_of(id)),
                                        .saga_name = arena_slice(&activity->arena, saga->definition->name)};
        return;
    }
    activity->context = saga_expression_context(saga, activity->want.step, &activity->arena);
    activity->context.input = arena_slice(&activity->arena, activity->context.input);
    activity->context.item = arena_slice(&activity->arena, activity->context.item);
    struct expression_step *steps =
        arena_dup(&activity->arena, activity->context.steps, activity->context.step_count * sizeof(*steps));

    for (size_t i = 0; i < activity->context.step_count; i++) {
        steps[i].result = arena_slice(&activity->arena, steps[i].result);
    }
    activity->context.steps = steps;
}

/* Only a compensator that looks into the same memory of keys as the forward tool may be told what it undoes. */
static void keep_undone(struct activity *activity)
{
    const struct saga *saga = &activity->live->saga;
    const struct tool *undone, *tool = activity->tool;
    const struct adapter *adapter = adapter_find(adapter_of(activity));
    char key[UUID_TEXT_BYTES];

    if (activity->want.direction != DIRECTION_UNDO || is_question(activity) || !adapter || !adapter->shares_keys) {
        return;
    }
    undone = saga_tool(saga, activity->want.step, DIRECTION_DO);
    if (undone && slice_equal(undone->adapter, tool->adapter) && adapter->shares_keys(undone->settings.json, tool->settings.json)) {
        uuid_text(&saga->steps[activity->want.step].forward.key.uuid, key);
        activity->undoes = arena_slice(&activity->arena, slice_of(key));
    }
}

void dispatch_begin(struct activity *activity)
{
    struct engine *engine = activity->engine;
    const struct saga *saga = &activity->live->saga;
    const struct operation *operation = operation_of(activity);
    char key[UUID_TEXT_BYTES];
    struct eval *eval = &activity->eval;

    activity->tool = saga_tool(saga, activity->want.step, activity->want.direction);
    /* A copy: the step of an open saga goes with its saga, and late evidence is judged after that. */
    activity->compensator = arena_dup(&activity->arena, &saga->definition->steps[activity->want.step].compensate,
                                      sizeof(*activity->compensator));
    activity->args = arena_slice(&activity->arena, operation->args);
    uuid_text(&operation->key.uuid, key);
    activity->key = arena_slice(&activity->arena, slice_of(key));
    keep_undone(activity);
    keep_context(activity);
    activity->context.args = activity->args;
    activity->context.key = activity->key;
    activity->context.attempt = is_probe(activity) ? (int)operation->attempts : (int)activity->want.number;
    engine->calls_under_way++;
    engine->execs_under_way += slice_is(adapter_of(activity), "exec");
    gauge_set(GAUGE_CALLS_IN_FLIGHT, engine->calls_under_way);
    if (is_question(activity)) {
        metric_add(METRIC_PROBES, 1);
    } else {
        struct tool_health *health = tool_health_of(engine, saga->namespace, activity->tool->name);

        metric_add(METRIC_CALLS, 1);
        metric_add(METRIC_RETRIES, activity->want.number > 1);
        health->calls++;
        health->retries += activity->want.number > 1;
    }
    activity->state = ACTIVITY_RENDERING;
    *eval = (struct eval){.count = 1,
                          .context = activity->context,
                          .arena = &activity->arena,
                          .secrets = &engine->secrets,
                          .done = on_settings};
    eval->items[0].template = settings_of(activity);
    if (eval_start(engine->loop, eval)) {
        on_settings(eval);
    }
}

void dispatch_cancel(struct activity *activity)
{
    if (!activity->cancelled && activity->call->adapter->cancel) {
        activity->cancelled = true;
        activity->call->adapter->cancel(activity->call);
    }
}
