/*
 * What tools answer on stage. An answer that is written as a `response` goes through the tool's own rules, as in the
 * engine: statuses, `outcome`, `result`, `error`, `settles`.
 */
#include "adapters/http_parts.h"
#include "base/json.h"
#include "run/call/call_terms.h"
#include "tools/sagactl/scenario/stage.h"

#define CONDITIONS_MAX 4

/* --- which reply --- */

static const struct tool_replies *replies_of(const struct stage *stage, struct slice tool)
{
    for (size_t i = 0; i < stage->scenario->tool_count; i++) {
        if (slice_equal(stage->scenario->tools[i].tool, tool)) {
            return &stage->scenario->tools[i];
        }
    }
    return NULL;
}

/* How often each reply of this list was given. */
static uint32_t *counters_of(struct stage *stage, const struct replies *replies)
{
    for (size_t i = 0; i < stage->counter_count; i++) {
        if (stage->counters[i].items == replies->items) {
            return stage->counters[i].given;
        }
    }
    struct stage_counter *counters = arena_array(&stage->arena, stage->counter_count + 1, sizeof(*counters));

    for (size_t i = 0; i < stage->counter_count; i++) {
        counters[i] = stage->counters[i];
    }
    counters[stage->counter_count] = (struct stage_counter){
        .items = replies->items, .given = arena_array(&stage->arena, replies->count + 1, sizeof(uint32_t))};
    stage->counters = counters;
    return counters[stage->counter_count++].given;
}

/* Takes the next reply of a list for these arguments; the last one that fits goes on. NULL: no reply fits. */
static const struct reply *next_reply(struct stage *stage, const struct replies *replies, struct slice args)
{
    const struct reply *last = NULL;
    uint32_t *given;

    if (replies->count == 0) {
        return NULL;
    }
    given = counters_of(stage, replies);
    for (size_t i = 0; i < replies->count; i++) {
        const struct reply *reply = &replies->items[i];

        if (reply->args.ptr && !json_has(args, reply->args, &stage->arena)) {
            continue;
        }
        if (given[i] < reply->times) {
            given[i]++;
            return reply;
        }
        last = reply;
    }
    return last;
}

/* --- a response, judged by the tool's own rules --- */

static struct expression_context response_context(struct stage *stage, const struct want *want, struct slice response)
{
    const struct operation *operation = stage_operation(stage, want->step, want->direction);
    struct expression_context context = saga_expression_context(&stage->saga, want->step, &stage->arena);

    context.key = stage_key(stage, &operation->key);
    context.args = operation->args;
    context.attempt = (int)operation->attempts;
    context.response = response;
    return context;
}

/* What the adapter would make of it, before the tool's rules. */
static struct outcome by_adapter(struct stage *stage, const struct tool *tool, struct slice response)
{
    struct slice retry_after = json_string(json_member(json_member(response, "headers"), "retry-after"), &stage->arena);
    struct outcome outcome = {.kind = OUTCOME_COMPLETED, .result = json_member(response, "body")};
    int64_t status = 0;

    if (!slice_is(tool->adapter, "http")) {
        outcome.result = response;
        return outcome;
    }
    if (!json_i64(json_member(response, "status"), &status) || status < 100 || status > 599) {
        stage_fail(stage, "a response of %.*s needs the \"status\" of an HTTP answer", SLICE_ARG(tool->name));
        return outcome;
    }
    outcome.kind = http_status_outcome((int)status);
    if (retry_after.ptr) {
        outcome.retry_after_ms = http_retry_after_ms(retry_after, stage->now_ms, &stage->arena);
    }
    if (outcome.kind != OUTCOME_COMPLETED) {
        outcome.result = SLICE_NONE;
        outcome.error = arena_printf(&stage->arena, "http-%d", (int)status);
        outcome.detail = arena_printf(&stage->arena, "The receiver answered with status %d.", (int)status);
        outcome.answer = response;
    }
    return outcome;
}

static bool settles(const struct tool *tool, struct slice response)
{
    int64_t status;

    for (size_t i = 0; json_i64(json_member(response, "status"), &status) && i < tool->settles_count; i++) {
        if (tool->settles[i] == status) {
            return true;
        }
    }
    return false;
}

static struct outcome judge(struct stage *stage, const struct want *want, const struct tool *tool,
                            struct slice response, struct slice *result_error)
{
    bool is_probe = want->type == WANT_PROBE;
    struct expression_context context = response_context(stage, want, response);
    struct outcome outcome = by_adapter(stage, tool, response);
    struct rendering_item items[CONDITIONS_MAX] = {0};
    size_t count = call_terms_conditions(tool, is_probe, items);
    struct slice text, error = SLICE_NONE;

    for (size_t i = 0; i < count; i++) {
        bool good = stage_render(stage, items[i].template, &context, &items[i].value, &items[i].error);

        items[i].code = good ? ERR_OK : ERR_INVALID;
    }
    call_terms_judge(tool, is_probe, items, &stage->arena, &outcome);
    if (outcome.kind == OUTCOME_COMPLETED) {
        if (!stage_render(stage, is_probe ? &tool->probe.result : &tool->result, &context, &text, &error)) {
            *result_error = arena_printf(&stage->arena, "the result: %.*s", SLICE_ARG(error));
            outcome.result = SLICE_NONE;
        } else if (text.ptr) {
            outcome.result = text;
        }
        return outcome;
    }
    outcome.result = SLICE_NONE;
    if (!is_probe && stage_render(stage, &tool->error, &context, &text, &error) && json_type(text) == JSON_STRING) {
        outcome.detail = json_string(text, &stage->arena);
    }
    outcome.settles = !is_probe && outcome.kind == OUTCOME_FAILED && settles(tool, response);
    return outcome;
}

/* --- a call --- */

static struct outcome plain(enum outcome_kind kind, const struct reply *reply, const char *error, const char *detail)
{
    return (struct outcome){.kind = kind,
                            .error = reply->error.ptr ? reply->error : slice_of(error),
                            .detail = reply->detail.ptr ? reply->detail : slice_of(detail),
                            .retry_after_ms = reply->retry_after_ms};
}

static struct outcome outcome_of(struct stage *stage, const struct want *want, const struct tool *tool,
                                 const struct reply *reply, struct slice *result_error)
{
    struct outcome outcome;

    switch (reply->kind) {
    case REPLY_RESPONSE:
        return judge(stage, want, tool, reply->response, result_error);
    case REPLY_FAILS:
        return plain(OUTCOME_FAILED, reply, "refused", "The scenario has it fail.");
    case REPLY_BUSY:
        return plain(OUTCOME_RETRY, reply, "busy", "The scenario has the receiver busy.");
    case REPLY_UNSENT:
        outcome = plain(OUTCOME_RETRY, reply, "connect", "The scenario has no byte leave.");
        outcome.unsent = true;
        return outcome;
    case REPLY_UNKNOWN:
        return plain(OUTCOME_UNKNOWN, reply, "timeout", "The scenario has no answer come.");
    case REPLY_ACCEPTED:
        return plain(OUTCOME_RUNNING, reply, "accepted", "The scenario has the receiver work on it.");
    case REPLY_ABSENT:
        return plain(OUTCOME_ABSENT, reply, "absent", "The scenario has the receiver know nothing of it.");
    case REPLY_DONE:
    case REPLY_CRASH:
    case REPLY_GO:
    case REPLY_BLOCKED:
    case REPLY_COUNT:
        break;
    }
    return (struct outcome){.kind = OUTCOME_COMPLETED, .result = reply->result.ptr ? reply->result : SLICE("{}")};
}

/* What a tool does of which the scenario says nothing: a builtin does what it does in the engine, and any other call
 * happens, with the result {}. */
static struct outcome by_default(struct stage *stage, const struct want *want, const struct tool *tool,
                                 struct slice *result_error)
{
    struct slice what = json_member(tool->settings.json, "do"), name = json_member(tool->settings.json, "outcome");
    struct outcome outcome = {.kind = OUTCOME_COMPLETED, .result = SLICE("{}")};
    enum outcome_kind kind = OUTCOME_FAILED;

    if (!slice_is(tool->adapter, "builtin")) {
        return outcome;
    }
    if (!json_string_is(what, "fail")) {
        return judge(stage, want, tool,
                     json_string_is(what, "echo") ? stage_operation(stage, want->step, want->direction)->args
                                                  : SLICE("null"),
                     result_error);
    }
    if (name.ptr && !outcome_parse(json_string(name, &stage->arena), &kind)) {
        kind = OUTCOME_FAILED;
    }
    return (struct outcome){.kind = kind, .error = SLICE("told-so"), .detail = SLICE("Its definition has it so.")};
}

static void strike_outcome(struct stage *stage, const struct want *want, const struct outcome *outcome)
{
    switch (outcome->kind) {
    case OUTCOME_FAILED:
        stage_strike(stage, want->step, want->direction, TROUBLE_FAILS);
        return;
    case OUTCOME_RETRY:
        stage_strike(stage, want->step, want->direction, outcome->unsent ? TROUBLE_UNSENT : TROUBLE_BUSY);
        return;
    case OUTCOME_UNKNOWN:
        stage_strike(stage, want->step, want->direction, TROUBLE_UNKNOWN);
        return;
    case OUTCOME_COMPLETED:
    case OUTCOME_RUNNING:
    case OUTCOME_ABSENT:
    case OUTCOME_KIND_COUNT:
        return;
    }
    UNREACHABLE();
}

static void feed_outcome(struct stage *stage, enum saga_input_type type, const struct want *want,
                         struct outcome outcome, struct slice result_error)
{
    const struct tool *tool = saga_tool(&stage->saga, want->step, want->direction);
    struct saga_input input = {.type = type};
    struct err err = {0};

    input.settled.step = want->step;
    input.settled.direction = want->direction;
    input.settled.attempt = want->number;
    input.settled.outcome = outcome;
    input.settled.result_error = result_error;
    if (outcome.kind == OUTCOME_COMPLETED) {
        input.settled.cost_micros = tool->cost_fixed_micros;
        stage_truth_of(stage, want->step)->did[want->direction] = true;
        stage_truth_of(stage, want->step)->result[want->direction] = outcome.result;
        if (want->direction == DIRECTION_DO) {
            stage_undo_args(stage, want->step, outcome.result, &input.settled.undo_args, &input.settled.undo_error);
        }
    }
    if (stage_feed(stage, input, &err) != ERR_OK) {
        stage_fail(stage, "%s: %s", err.message, err.detail);
    }
}

static void note_call(struct stage *stage, const struct want *want, const struct tool *tool,
                      const struct operation *operation)
{
    if (stage->call_count == stage->call_room) {
        stage->call_room = stage->call_room ? 2 * stage->call_room : 16;
        stage->calls = memory_grow(stage->calls, stage->call_room * sizeof(*stage->calls));
    }
    stage->calls[stage->call_count++] = (struct stage_call){.step = want->step,
                                                            .direction = want->direction,
                                                            .id = stage->saga.definition->steps[want->step].id,
                                                            .tool = tool->name,
                                                            .scope = arena_slice(&stage->arena, operation->scope),
                                                            .args = arena_slice(&stage->arena, operation->args),
                                                            .key = operation->key,
                                                            .attempt = want->number};
}

void stage_answer_call(struct stage *stage, const struct want *want)
{
    static const struct reply none = {.kind = REPLY_COUNT};
    const struct tool *tool = saga_tool(&stage->saga, want->step, want->direction);
    const struct operation *operation = stage_operation(stage, want->step, want->direction);
    const struct tool_replies *replies = replies_of(stage, tool->name);
    struct slice result_error = SLICE_NONE;
    const struct reply *reply;
    struct outcome outcome;

    note_call(stage, want, tool, operation);
    reply = replies ? next_reply(stage, &replies->calls, operation->args) : NULL;
    reply = reply ? reply : &none;
    if (reply->took_effect) {
        stage_truth_of(stage, want->step)->did[want->direction] = true;
        stage_truth_of(stage, want->step)->result[want->direction] = reply->result;
    }
    if (reply->kind == REPLY_CRASH) {
        stage_strike(stage, want->step, want->direction, TROUBLE_UNKNOWN);
        stage_crash(stage);
        return;
    }
    outcome = reply == &none ? by_default(stage, want, tool, &result_error)
                             : outcome_of(stage, want, tool, reply, &result_error);
    strike_outcome(stage, want, &outcome);
    if (outcome.kind == OUTCOME_UNKNOWN) { /* the engine waits as long as it may */
        stage->now_ms +=
            want->direction == DIRECTION_DO ? stage->saga.definition->steps[want->step].timeout_ms : tool->timeout_ms;
    }
    feed_outcome(stage, SAGA_INPUT_SETTLED, want, outcome, result_error);
}

/* --- a probe, a precheck, late evidence --- */

/* Without a reply a probe says what really happened. */
static struct outcome by_truth(struct stage *stage, const struct want *want)
{
    const struct stage_truth *truth = stage_truth_of(stage, want->step);
    struct slice result = truth->result[want->direction];

    if (truth->did[want->direction]) {
        return (struct outcome){.kind = OUTCOME_COMPLETED, .result = result.ptr ? result : SLICE("{}")};
    }
    return (struct outcome){.kind = OUTCOME_ABSENT, .error = SLICE("absent")};
}

void stage_answer_probe(struct stage *stage, const struct want *want)
{
    const struct tool *tool = saga_tool(&stage->saga, want->step, want->direction);
    const struct tool_replies *replies = replies_of(stage, tool->name);
    struct slice result_error = SLICE_NONE;
    const struct reply *reply =
        replies ? next_reply(stage, &replies->probes, stage_operation(stage, want->step, want->direction)->args) : NULL;

    feed_outcome(stage, SAGA_INPUT_PROBED, want,
                 reply ? outcome_of(stage, want, tool, reply, &result_error) : by_truth(stage, want), result_error);
}

void stage_answer_admission(struct stage *stage, uint32_t step)
{
    const struct tool *tool = saga_tool(&stage->saga, step, DIRECTION_DO);
    const struct tool_replies *replies = tool->has_precheck ? replies_of(stage, tool->name) : NULL;
    const struct reply *reply =
        replies ? next_reply(stage, &replies->prechecks, stage_operation(stage, step, DIRECTION_DO)->args) : NULL;
    struct saga_input input = {.type = SAGA_INPUT_ADMITTED};
    struct err err = {0};

    input.admitted.step = step;
    if (reply && reply->kind == REPLY_DONE) {
        input.admitted.admission = ADMISSION_DONE;
        input.admitted.result = reply->result.ptr ? reply->result : SLICE("null");
        stage_strike(stage, step, DIRECTION_DO, TROUBLE_BEFORE);
    } else if (reply && reply->kind == REPLY_BLOCKED) {
        input.admitted.admission = ADMISSION_BLOCKED;
        input.admitted.detail = reply->detail.ptr ? reply->detail : SLICE("The scenario has the precheck forbid it.");
        stage_strike(stage, step, DIRECTION_DO, TROUBLE_BLOCKED);
    } else if (reply && reply->kind == REPLY_UNKNOWN) {
        input.admitted.admission = ADMISSION_UNASKED;
        input.admitted.error = SLICE("precheck");
        input.admitted.detail = SLICE("The scenario has no answer come.");
    }
    (void)stage_feed(stage, input, &err);
}

void stage_late(struct stage *stage, const struct event *event, uint32_t step)
{
    const struct operation *forward = stage_operation(stage, step, DIRECTION_DO);
    const struct want call = {.type = WANT_CALL, .step = step, .number = forward->attempts};
    struct outcome outcome = {.kind = OUTCOME_COMPLETED, .result = event->result.ptr ? event->result : SLICE("{}")};

    if (event->error.ptr) {
        outcome = (struct outcome){.kind = OUTCOME_FAILED, .error = event->error};
    }
    feed_outcome(stage, SAGA_INPUT_SETTLED, &call, outcome, SLICE_NONE);
}
