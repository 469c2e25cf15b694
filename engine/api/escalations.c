/* Escalations: what waits for a person, and a person's answer. */
#include "api/request.h"

void handle_list_escalations(struct api_request *request)
{
    request_list_questions(request, &request->engine.in.escalations, "open resolved", engine_get_escalations);
}

void handle_get_escalation(struct api_request *request)
{
    if (request_read_number(request, "escalation", &request->engine.in.escalations.number)) {
        request_ask(request, engine_get_escalations, request_on_answer);
    }
}

struct resolve_state {
    struct slice action, as, result, args, note, accept_double, then;
};

/* What a person says of an operation: happened, not_happened, undone; and what is to follow. */
static void check_verdict(struct api_request *request, struct faults *faults)
{
    struct resolve_state *state = request->state;
    struct engine_request *engine = &request->engine;

    engine->in.resolve.happened = json_string_is(state->as, "happened");
    engine->in.resolve.undone = json_string_is(state->as, "undone");
    engine->in.resolve.again = json_string_is(state->then, "retry");
    if (state->as.ptr && !engine->in.resolve.happened && !engine->in.resolve.undone &&
        !json_string_is(state->as, "not_happened")) {
        faults_add(faults, SLICE("/as"), "\"as\" is \"happened\", \"not_happened\" or \"undone\"");
    }
    if (state->then.ptr && (!engine->in.resolve.again || !json_string_is(state->as, "not_happened"))) {
        faults_add(faults, SLICE("/then"), "\"then\" is \"retry\", and goes with \"as\": \"not_happened\" only");
    }
    if (state->result.ptr && !engine->in.resolve.happened && !json_string_is(state->action, "skip")) {
        faults_add(faults, SLICE("/result"), "only resolve as happened, and skip, take \"result\"");
    }
    engine->in.resolve.result = state->result;
    engine->in.resolve.note = state->note.ptr ? json_string(state->note, request->arena) : SLICE_NONE;
    if (state->note.ptr && slice_trim(engine->in.resolve.note).len == 0) {
        faults_add(faults, SLICE("/note"), "say why, for those who read the log later");
    }
}

static void check_resolve(struct api_request *request, struct faults *faults)
{
    struct resolve_state *state = request->state;
    struct engine_request *engine = &request->engine;
    bool resolves = false;

    if (state->action.ptr) {
        struct slice action = json_string(state->action, request->arena);

        if (!operator_action_parse(action, &engine->in.resolve.action)) {
            faults_add(faults, SLICE("/action"),
                       "an action is one of retry, probe, resolve, waive, skip, compensate, abandon");
            return;
        }
        resolves = engine->in.resolve.action == OPERATOR_RESOLVE;
        if (resolves && !state->as.ptr) {
            faults_add(faults, SLICE("/as"),
                       "resolve says what happened: \"as\" is \"happened\", \"not_happened\" or \"undone\"");
        }
        if (state->as.ptr && !resolves) {
            faults_add(faults, SLICE("/as"), "only the action resolve takes \"as\"");
        }
        if (state->args.ptr && engine->in.resolve.action != OPERATOR_RETRY) {
            faults_add(faults, SLICE("/args"), "only the action retry takes \"args\"");
        }
        if (state->accept_double.ptr && engine->in.resolve.action != OPERATOR_RETRY) {
            faults_add(faults, SLICE("/accept_double"), "only the action retry takes \"accept_double\"");
        }
    }
    check_verdict(request, faults);
    (void)json_bool(state->accept_double, &engine->in.resolve.accept_double); /* stays false when absent */
    engine->in.resolve.args = state->args;
}

void handle_resolve(struct api_request *request)
{
    struct resolve_state *state = arena_alloc(request->arena, sizeof(*state));
    const struct member members[] = {
        {"action", JSON_STRING, true, false, &state->action},
        {"as", JSON_STRING, false, false, &state->as},
        {"result", JSON_NONE, false, false, &state->result},
        {"args", JSON_NONE, false, false, &state->args},
        {"note", JSON_STRING, true, false, &state->note},
        {"accept_double", JSON_BOOL, false, false, &state->accept_double},
        {"then", JSON_STRING, false, false, &state->then},
    };

    request->state = state;
    if (request_read_number(request, "escalation", &request->engine.in.resolve.number) &&
        request_read_body(request, members, COUNT_OF(members), check_resolve)) {
        request_ask(request, engine_resolve, request_on_answer);
    }
}

/* The same of any operation of which nobody knows, or that is tried again, whether or not a person
 * is asked about it. */
void handle_resolve_operation(struct api_request *request)
{
    struct resolve_state *state = arena_alloc(request->arena, sizeof(*state));
    const struct member members[] = {
        {"as", JSON_STRING, true, false, &state->as},
        {"result", JSON_NONE, false, false, &state->result},
        {"then", JSON_STRING, false, false, &state->then},
        {"note", JSON_STRING, true, false, &state->note},
    };

    request->state = state;
    request->engine.in.resolve.action = OPERATOR_RESOLVE;
    if (request_read_key(request, &request->engine.in.resolve.key) &&
        request_read_body(request, members, COUNT_OF(members), check_verdict)) {
        request_ask(request, engine_resolve, request_on_answer);
    }
}
