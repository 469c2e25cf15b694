/*
 * Operation -> adapter call -> outcome. Renders the tool's settings, hands the call to its adapter, and judges the
 * answer by the tool's own conditions; then the result, and the arguments of the compensator, are rendered, so that the
 * log holds all that an undo will need.
 */
#include <string.h>

#include "run/call/limiter.h"
#include "run/call/refusal.h"

#include "base/json.h"
#include "base/log.h"
#include "base/metric.h"
#include "core/language/decimal.h"

#define HEALTH_NAME_BYTES 128 /* no namespace and no tool has a longer name */
#define INQUIRY_BLOCK_BYTES 2048

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
    return activity->inquiry == INQUIRY_PRECHECK ? activity->act->tool->precheck.adapter
           : is_question(activity)               ? activity->act->tool->probe.adapter
                                                 : activity->act->tool->adapter;
}

static const struct template *settings_of(const struct activity *activity)
{
    return activity->inquiry == INQUIRY_PRECHECK ? &activity->act->tool->precheck.settings
           : is_question(activity)               ? &activity->act->tool->probe.settings
                                                 : &activity->act->tool->settings;
}

static int64_t timeout_of(const struct activity *activity)
{
    const struct tool *tool = activity->act->tool;

    return activity->inquiry == INQUIRY_PRECHECK ? tool->precheck.timeout_ms
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

struct tool_health *tool_health_of(struct engine *engine, struct slice namespace, struct slice name)
{
    char key[2 * HEALTH_NAME_BYTES + 1];
    size_t before = namespace.len < HEALTH_NAME_BYTES ? namespace.len : HEALTH_NAME_BYTES;
    size_t behind = name.len < HEALTH_NAME_BYTES ? name.len : HEALTH_NAME_BYTES, len = before + 1 + behind;

    memcpy(key, namespace.ptr, before);
    key[before] = '\n';
    memcpy(key + before + 1, name.ptr, behind);
    struct tool_health *health = map_find(&engine->tool_health, key, len);

    if (!health) {
        struct slice kept = arena_slice(&engine->arena, (struct slice){key, len});

        health = arena_alloc(&engine->arena, sizeof(*health));
        health->namespace = arena_slice(&engine->arena, namespace);
        health->name = arena_slice(&engine->arena, name);
        call_lines_init(health->lines);
        map_put(&engine->tool_health, kept.ptr, kept.len, health);
    }
    return health;
}

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

/* Does its tool say that such a refusal holds for every attempt under the key? */
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

static void report(struct activity *activity, struct slice undo_args, struct slice undo_error)
{
    struct engine *engine = activity->engine;
    bool judged = activity->state == ACTIVITY_JUDGING;

    engine->evaluations_under_way -= judged;
    if (!is_probe(activity)) {
        count_outcome(activity);
    }
    limiter_settled(activity);
    activity->act->outcome.settles = answer_settles(activity);
    refusal_keep(activity, settings_of(activity));
    activity->act->mail.input = (struct saga_input){.type = is_probe(activity) ? SAGA_INPUT_PROBED : SAGA_INPUT_SETTLED,
                                                    .settled = {.step = activity->want.step,
                                                                .direction = activity->want.direction,
                                                                .attempt = activity->want.number,
                                                                .outcome = activity->act->outcome,
                                                                .undo_args = undo_args,
                                                                .undo_error = undo_error,
                                                                .cost_micros = activity->act->cost_micros,
                                                                .cost_unknown = activity->act->cost_unknown,
                                                                .result_error = activity->act->result_error}};
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
    struct activity *activity = activity_of(eval);
    struct eval_item *item = &eval->items[0];

    if (item->code == ERR_OK) {
        report(activity, item->value, SLICE_NONE);
    } else {
        report(activity, SLICE_NONE, sentence(activity->act->arena, "the compensator's arguments", item->error));
    }
}

static void render_undo_args(struct activity *activity)
{
    struct eval *eval = &activity->act->eval;

    if (activity->act->outcome.kind != OUTCOME_COMPLETED || activity->want.direction != DIRECTION_DO ||
        !activity->act->compensator->is_set) {
        report(activity, SLICE_NONE, SLICE_NONE);
        return;
    }
    if (!template_is_set(&activity->act->compensator->with)) {
        report(activity, SLICE("{}"), SLICE_NONE);
        return;
    }
    *eval = (struct eval){
        .count = 1, .context = activity->act->context, .arena = activity->act->arena, .done = on_undo_args};
    eval->items[0].template = &activity->act->compensator->with;
    eval->context.result = activity->act->outcome.result.ptr ? activity->act->outcome.result : SLICE("null");
    eval->context.response = SLICE_NONE;
    if (eval_start(activity->engine->loop, eval)) {
        on_undo_args(eval);
    }
}

/* --- what it cost --- */

/* What is booked is never less than what it was: a part of a micro-unit counts as one. */
static bool cost_of(struct slice value, struct arena *arena, int64_t *micros)
{
    if (json_type(value) != JSON_NUMBER) {
        return false;
    }
    struct decimal number = decimal_of(json_trim(value), arena);

    return decimal_round_up(&number, COST_MICROS_MAX, micros);
}

static void cost_lost(struct activity *activity, struct slice why)
{
    activity->act->cost_unknown = arena_slice(activity->act->arena, why);
    log_warn("cost_unknown", LOG_UUID("saga", &activity->saga.uuid), LOG_SLICE("tool", activity->act->tool->name),
             LOG_SLICE("why", why));
}

static void on_cost(struct eval *eval)
{
    struct activity *activity = activity_of(eval);
    struct eval_item *item = &eval->items[0];

    activity->act->cost_micros = 0;
    if (item->code != ERR_OK) {
        cost_lost(activity, item->error);
    } else if (!cost_of(item->value, activity->act->arena, &activity->act->cost_micros)) {
        cost_lost(activity, SLICE("it is no number of micro-units from 0 to 1000000000000000"));
    }
    render_undo_args(activity);
}

static void render_cost(struct activity *activity)
{
    const struct tool *tool = activity->act->tool;
    struct eval *eval = &activity->act->eval;

    if (tool->cost_fixed_micros > 0 || !template_is_set(&tool->cost)) {
        activity->act->cost_micros = tool->cost_fixed_micros;
        render_undo_args(activity);
        return;
    }
    *eval =
        (struct eval){.count = 1, .context = activity->act->context, .arena = activity->act->arena, .done = on_cost};
    eval->items[0].template = &tool->cost;
    eval->context.result = activity->act->outcome.result.ptr ? activity->act->outcome.result : SLICE("null");
    eval->context.response = SLICE_NONE;
    if (eval_start(activity->engine->loop, eval)) {
        on_cost(eval);
    }
}

/* --- the result --- */

/* It happened, and what is to be kept of it cannot be had: neither an undo that needs the result nor a later step may
 * run on a guess. */
static void result_lost(struct activity *activity, struct slice why)
{
    activity->act->outcome.result = SLICE_NONE;
    activity->act->outcome.detail = activity->act->result_error = arena_slice(activity->act->arena, why);
    activity->act->cost_micros = activity->act->tool->cost_fixed_micros;
    if (activity->act->tool->cost.count > 0) {
        cost_lost(activity, why);
    }
    metric_add(METRIC_RESULTS_LOST, 1);
    log_warn("result_lost", LOG_UUID("saga", &activity->saga.uuid), LOG_I64("step", activity->want.step),
             LOG_SLICE("tool", activity->act->tool->name), LOG_SLICE("why", activity->act->outcome.detail));
    if (activity->want.direction == DIRECTION_DO && activity->act->compensator->is_set &&
        template_uses_result(&activity->act->compensator->with)) {
        report(activity, SLICE_NONE, activity->act->outcome.detail);
    } else {
        render_undo_args(activity);
    }
}

static void on_result(struct eval *eval)
{
    struct activity *activity = activity_of(eval);
    struct eval_item *item = &eval->items[0];

    if (item->code == ERR_OK && item->value.len <= activity->engine->options.payload_bytes_max) {
        activity->act->outcome.result = item->value;
        render_cost(activity);
        return;
    }
    result_lost(activity, item->code == ERR_OK ? SLICE("the result is larger than allowed")
                                               : sentence(activity->act->arena, "the result", item->error));
}

/* The tool's own words for people. That they cannot be made takes nothing from what is known. */
static void on_error_text(struct eval *eval)
{
    struct activity *activity = activity_of(eval);
    struct eval_item *item = &eval->items[0];
    struct slice text = item->code == ERR_OK && json_type(item->value) == JSON_STRING
                            ? slice_trim(json_string(item->value, activity->act->arena))
                            : SLICE_NONE;

    if (text.len > 0) {
        activity->act->outcome.detail = text;
    }
    report(activity, SLICE_NONE, SLICE_NONE);
}

static void render_error(struct activity *activity)
{
    struct eval *eval = &activity->act->eval;
    bool refused =
        activity->act->outcome.kind != OUTCOME_RUNNING && activity->act->response.ptr && !is_question(activity);

    if (!refused || !template_is_set(&activity->act->tool->error)) {
        report(activity, SLICE_NONE, SLICE_NONE);
        return;
    }
    *eval = (struct eval){
        .count = 1, .context = activity->act->context, .arena = activity->act->arena, .done = on_error_text};
    eval->items[0].template = &activity->act->tool->error;
    eval->context.response = activity->act->response;
    if (eval_start(activity->engine->loop, eval)) {
        on_error_text(eval);
    }
}

static void render_result(struct activity *activity)
{
    const struct tool *tool = activity->act->tool;
    const struct template *template = is_probe(activity) ? &tool->probe.result : &tool->result;
    struct eval *eval = &activity->act->eval;

    if (activity->act->outcome.kind != OUTCOME_COMPLETED) {
        render_error(activity);
        return;
    }
    if (!template_is_set(template)) {
        if (activity->act->outcome.result.len > activity->engine->options.payload_bytes_max) {
            result_lost(activity, SLICE("the result is larger than allowed"));
            return;
        }
        render_cost(activity);
        return;
    }
    *eval =
        (struct eval){.count = 1, .context = activity->act->context, .arena = activity->act->arena, .done = on_result};
    eval->items[0].template = template;
    eval->context.response = activity->act->response;
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
        const struct outcome_rules *rules = &activity->act->tool->probe.outcome;

        out[0] = (struct rule){OUTCOME_COMPLETED, &rules->completed};
        out[1] = (struct rule){OUTCOME_ABSENT, &rules->absent};
        out[2] = (struct rule){OUTCOME_RUNNING, &rules->running};
        return 3;
    }
    const struct outcome_rules *rules = &activity->act->tool->outcome;

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
    struct activity *activity = activity_of(eval);
    struct rule rules[4];
    size_t count = rules_of(activity, rules);
    enum outcome_kind given = activity->act->outcome.kind, found = OUTCOME_UNKNOWN;
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
            why = sentence(activity->act->arena, "a condition of `outcome`", eval->items[i].error);
            break;
        }
        if (expression_true(eval->items[i].value)) {
            found = rules[i].kind;
            break;
        }
    }
    if (found != given) {
        activity->act->outcome.unsent = false;
        if (found == OUTCOME_UNKNOWN || !activity->act->outcome.error.ptr) {
            activity->act->outcome.error = found == OUTCOME_UNKNOWN ? SLICE("outcome") : SLICE("outcome-rule");
            activity->act->outcome.detail =
                why.ptr ? why
                        : arena_printf(activity->act->arena, "by the tool's `outcome`, the answer means %s",
                                       outcome_name(found));
        }
    }
    activity->act->outcome.kind = found;
    if (found == OUTCOME_RUNNING && !activity->act->tool->has_probe) {
        activity->act->outcome.kind = OUTCOME_COMPLETED; /* accepted is all that will ever be heard of it */
    }
    render_result(activity);
}

static void judge(struct activity *activity)
{
    struct eval *eval = &activity->act->eval;
    struct rule rules[4];

    activity->state = ACTIVITY_JUDGING;
    activity->engine->evaluations_under_way++;
    if (!activity->act->response.ptr) {
        if (activity->act->outcome.kind == OUTCOME_COMPLETED) {
            render_cost(activity);
        } else {
            report(activity, SLICE_NONE, SLICE_NONE); /* no complete answer: there is nothing to judge */
        }
        return;
    }
    *eval = (struct eval){.context = activity->act->context, .arena = activity->act->arena, .done = on_judged};
    eval->count = rules_of(activity, rules);
    for (size_t i = 0; i < eval->count; i++) {
        eval->items[i].template = rules[i].condition;
    }
    eval->context.response = activity->act->response;
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
    activity_exec_take(activity, NULL);
    gauge_set(GAUGE_CALLS_IN_FLIGHT, engine->calls_under_way);
}

static void on_settled(struct call *call)
{
    struct activity *activity = call->owner;
    struct engine *engine = activity->engine;

    histogram_observe_us(HISTOGRAM_CALL, loop_boot_us(engine->loop) - activity->act->started_us);
    activity->act->outcome = call->outcome;
    activity->act->response = call->response;
    refusal_hide(activity, settings_of(activity)); /* before anything is judged by it, kept of it or shown */
    activity->act->binary = call->binary;
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

    activity->act->outcome = (struct outcome){.kind = kind, .unsent = true, .error = error, .detail = detail};
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
    const struct activity *activity = call->owner;

    return activity->live && lease_allows_send(activity->engine->leases, activity->live->shard->number);
}

static void on_settings(struct eval *eval)
{
    struct activity *activity = activity_of(eval);
    struct engine *engine = activity->engine;
    struct eval_item *item = &eval->items[0];
    const struct tool *tool = activity->act->tool;

    if (!activity->live || activity->cancelled) {
        report_unsent(activity, OUTCOME_RETRY, SLICE("cancelled"), SLICE("the call was not wanted any more"));
        return;
    }
    if (item->code != ERR_OK) {
        report_unsent(activity, is_question(activity) ? OUTCOME_UNKNOWN : OUTCOME_FAILED, SLICE("settings"),
                      sentence(activity->act->arena, "the tool's settings", item->error));
        return;
    }
    if (!lease_allows_send(engine->leases, activity->live->shard->number)) {
        report_unsent(activity, OUTCOME_RETRY, SLICE("lease"), SLICE("the lease of this shard was about to end"));
        return;
    }
    const struct adapter *adapter = adapter_find(adapter_of(activity));

    CHECK(adapter);
    struct call *call = arena_alloc(activity->act->arena, adapter->call_size);

    call->adapter = adapter;
    call->host = &engine->host;
    call->arena = activity->act->arena;
    call->owner = activity;
    call->settings = item->value;
    call->args = activity->act->args;
    call->key = activity->act->key;
    call->undoes = activity->act->undoes;
    call->key_place = is_question(activity) ? KEY_PLACE_DEFAULT : tool->key_place;
    call->key_name = is_question(activity) ? SLICE_NONE : tool->key_name;
    call->reading = tool->reading;
    call->question = is_question(activity);
    call->reads = call->question || tool->effect == EFFECT_READ;
    call->send_key = !is_question(activity) && activity->effect != EFFECT_READ;
    call->harmless = is_question(activity) || activity->effect == EFFECT_READ || activity->effect == EFFECT_IDEMPOTENT;
    call->repeatable = is_question(activity) || effect_is_safe(activity->effect);
    call->timeout_ms = timeout_of(activity);
    call->attempt = (int)activity->want.number;
    call->may_leave = may_leave;
    call->settled = on_settled;
    activity->act->call = call;
    activity->state = ACTIVITY_CALLING;
    activity->act->started_us = loop_boot_us(engine->loop);
    if (!call->question) {
        forgotten_made(activity);
    }
    adapter->begin(call);
}

/* The context outlives this turn, and its saga: what it shows of it is copied. Calls of agents see no other steps. */
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

/* Only a compensator that looks into the same memory of keys as the forward tool may be told what it undoes. */
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

static void release_arena(void *object)
{
    arena_fini(object);
}

/*
 * A call is the last that its activity makes. Inquiries may come before it for as long as a breaker stays half-open,
 * and nothing of one is needed by what follows it: they share an arena, of which each takes all.
 */
static void begin_arena(struct activity *activity)
{
    struct act *act = activity->act;

    if (act->inquiry_arena) {
        act->response = SLICE_NONE; /* of the inquiry before */
        arena_reset(act->inquiry_arena);
    } else if (activity->inquiry != INQUIRY_NONE) {
        act->inquiry_arena = arena_alloc(&activity->arena, sizeof(*act->inquiry_arena));
        arena_init(act->inquiry_arena, INQUIRY_BLOCK_BYTES);
        arena_on_release(&activity->arena, release_arena, act->inquiry_arena);
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
    struct eval *eval = &activity->act->eval;
    struct arena *arena = activity->act->arena;

    activity->act->tool = saga_tool(saga, activity->want.step, activity->want.direction);
    /* A copy: the step of an open saga goes with its saga, and late evidence is judged after that. */
    activity->act->compensator =
        arena_dup(arena, &saga->definition->steps[activity->want.step].compensate, sizeof(*activity->act->compensator));
    activity->act->args = arena_slice(arena, operation->args);
    uuid_text(&operation->key.uuid, key);
    activity->act->key = arena_slice(arena, slice_of(key));
    keep_undone(activity);
    keep_context(activity);
    activity->act->context.args = activity->act->args;
    activity->act->context.key = activity->act->key;
    activity->act->context.attempt = is_probe(activity) ? (int)operation->attempts : (int)activity->want.number;
    engine->calls_under_way++;
    engine->execs_under_way += slice_is(adapter_of(activity), "exec");
    activity_exec_take(activity, slice_is(adapter_of(activity), "exec")
                                     ? tool_health_of(engine, activity->namespace, activity->act->tool->name)
                                     : NULL);
    gauge_set(GAUGE_CALLS_IN_FLIGHT, engine->calls_under_way);
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
    *eval = (struct eval){.count = 1,
                          .context = activity->act->context,
                          .arena = arena,
                          .secrets = &engine->secrets,
                          .namespace = activity->namespace,
                          .done = on_settings};
    eval->items[0].template = settings_of(activity);
    if (eval_start(engine->loop, eval)) {
        on_settings(eval);
    }
}

void dispatch_cancel(struct activity *activity)
{
    if (!activity->cancelled && activity->act->call->adapter->cancel) {
        activity->cancelled = true;
        activity->act->call->adapter->cancel(activity->act->call);
    }
}
