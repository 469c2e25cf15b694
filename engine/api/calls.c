/*
 * Calls of agents: one operation through the registry, in an open saga or under a run that the caller names.
 *
 * The header Idempotency-Key is the id of this emission. It identifies a repeat of the same request, and never enters
 * the key of the operation. engine.h says in struct call_result what a call is told; here that becomes status and
 * headers.
 */
#include "api/request.h"

#include "base/utf8.h"

#define CALL_WAIT_MS 30000
#define RUN_BYTES_MAX 256
#define TOOL_BYTES_MAX 256
#define SCOPE_BYTES_MAX 256
#define TURN_BYTES_MAX 128

struct call_state {
    struct slice run, tool, step, scope, args, turn;
};

/* --- reading --- */

static void check_step(struct slice step, struct faults *faults)
{
    if (!step.ptr) {
        return;
    }
    if (slice_starts_with(step, "~")) {
        faults_add(faults, SLICE("/step"),
                   "names that begin with ~ are those of calls without a step; leave \"step\" out for that");
    } else if (!call_step_is_good(step)) {
        faults_add(faults, SLICE("/step"), "a step has 1 to %d of the characters A-Z a-z 0-9 . _ : / -",
                   CALL_STEP_BYTES_MAX);
    }
}

/* Reads a turn, which may be counted or named: 7 and "7" are the same one. */
static struct slice read_turn(struct slice turn, struct arena *arena, struct faults *faults)
{
    struct slice text = json_string(turn, arena);
    int64_t number = 0;

    if (!turn.ptr) {
        return SLICE_NONE;
    }
    if (json_type(turn) == JSON_NUMBER && json_i64(turn, &number)) {
        return arena_printf(arena, "%lld", (long long)number);
    }
    if (!text.ptr || !text_is_plain(text, TURN_BYTES_MAX)) {
        faults_add(faults, SLICE("/turn"),
                   "a turn is a whole number, or a text of 1 to %d bytes without control characters", TURN_BYTES_MAX);
    }
    return text;
}

static void check_call(struct api_request *request, struct faults *faults)
{
    const struct call_state *state = request->state;
    struct engine_request *asked = &request->asked;
    struct arena *arena = request->arena;

    asked->in.call.emission = request_idempotency_key(request, faults);
    asked->in.call.run = json_string(state->run, arena);
    if (asked->in.call.run.ptr && !text_is_plain(asked->in.call.run, RUN_BYTES_MAX)) {
        faults_add(faults, SLICE("/run"), "a run has 1 to %d bytes and no control characters", RUN_BYTES_MAX);
    }
    asked->in.call.tool = json_string(state->tool, arena);
    if (asked->in.call.tool.ptr && !text_is_plain(asked->in.call.tool, TOOL_BYTES_MAX)) {
        faults_add(faults, SLICE("/tool"), "a tool's name has 1 to %d bytes and no control characters", TOOL_BYTES_MAX);
    }
    asked->in.call.step = json_string(state->step, arena);
    check_step(asked->in.call.step, faults);
    asked->in.call.scope = json_string(state->scope, arena);
    if (asked->in.call.scope.len > SCOPE_BYTES_MAX) {
        faults_add(faults, SLICE("/scope"), "a scope has at most %d bytes", SCOPE_BYTES_MAX);
    }
    asked->in.call.conversation_turn = read_turn(state->turn, arena, faults);
    asked->in.call.args = state->args;
    asked->in.call.trace = request_trace(request, SLICE_NONE);
}

/* --- the answer --- */

static void on_called(struct engine_request *asked)
{
    struct api_request *request = container_of(asked, struct api_request, asked);

    if (asked->code == ERR_TIMEOUT && request->api->stopping) {
        asked->code = err_set(&asked->err, ERR_STOPPING, "this engine is stopping; the operation goes on without it");
        err_hint(&asked->err, "make the same call again: it waits for what is under way");
    }
    if (asked->code != ERR_OK) {
        request_on_answer(asked);
        return;
    }
    (void)request_of(asked);
    request_put_replay_headers(request);
    if (asked->call.going_on) {
        http_answer_header(request->exchange, "Location",
                           arena_printf(request->arena, "/v1/operations/%.*s", SLICE_ARG(asked->call.key)));
    }
    request_answer_json(request, asked->call.going_on ? 202 : 200, asked->answer);
}

static void call(struct api_request *request, bool in_run)
{
    struct call_state *state = arena_alloc(request->arena, sizeof(*state));
    const struct member members[] = {
        {"tool", JSON_STRING, true, false, &state->tool},    {"step", JSON_STRING, false, false, &state->step},
        {"scope", JSON_STRING, false, false, &state->scope}, {"args", JSON_NONE, false, false, &state->args},
        {"turn", JSON_NONE, false, false, &state->turn},     {"run", JSON_STRING, true, false, &state->run},
    };

    request->state = state;
    if (request_read_wait(request, CALL_WAIT_MS) &&
        request_read_body(request, members, COUNT_OF(members) - (in_run ? 0 : 1), check_call)) {
        if (!token_tools_have(&request->tools, request->asked.in.call.tool)) {
            request_problem(request, ERR_FORBIDDEN, "this token is bound to other tools than \"%.*s\"",
                            (int)(request->asked.in.call.tool.len < 64 ? request->asked.in.call.tool.len : 64),
                            request->asked.in.call.tool.ptr);
            return;
        }
        request->asked.in.call.wait_ms = request->wait_ms;
        request_ask(request, engine_call, on_called);
    }
}

void handle_call(struct api_request *request)
{
    call(request, true);
}

void handle_call_in_saga(struct api_request *request)
{
    if (request_read_saga_id(request, &request->asked.in.call.saga)) {
        call(request, false);
    }
}
