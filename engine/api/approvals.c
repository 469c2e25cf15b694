/* Approvals: what waits for a yes or no, and that answer. Which roles may give it stands in the definition of the step,
 * so that the engine says who may not. */
#include "api/request.h"

void handle_list_approvals(struct api_request *request)
{
    request_list_questions(request, &request->engine.in.approvals, "open approved refused expired cancelled",
                           engine_get_approvals);
}

void handle_get_approval(struct api_request *request)
{
    if (request_read_number(request, "approval", &request->engine.in.approvals.number)) {
        request_ask(request, engine_get_approvals, request_on_answer);
    }
}

struct decide_state {
    struct slice decision, note, hash;
};

static bool is_hash(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
    }
    return text.len == 64;
}

static void check_decision(struct api_request *request, struct faults *faults)
{
    struct decide_state *state = request->state;
    struct engine_request *engine = &request->engine;

    engine->in.decision.approve = json_string_is(state->decision, "approve");
    if (state->decision.ptr && !engine->in.decision.approve && !json_string_is(state->decision, "refuse")) {
        faults_add(faults, SLICE("/decision"), "a decision is \"approve\" or \"refuse\"");
    }
    engine->in.decision.note = read_note(state->note, SLICE("/note"), request->arena, faults);
    engine->in.decision.hash = json_string(state->hash, request->arena);
    if (engine->in.decision.hash.ptr && !is_hash(engine->in.decision.hash)) {
        faults_add(faults, SLICE("/hash"),
                   "the `hash` of an approval is 64 hexadecimal digits, as the approval shows it");
    }
}

void handle_decide(struct api_request *request)
{
    struct decide_state *state = arena_alloc(request->arena, sizeof(*state));
    const struct member members[] = {{"decision", JSON_STRING, true, false, &state->decision},
                                     {"note", JSON_STRING, true, false, &state->note},
                                     {"hash", JSON_STRING, false, false, &state->hash}};
    uint64_t number;

    request->state = state;
    if (request_read_number(request, "approval", &number) &&
        request_read_body(request, members, COUNT_OF(members), check_decision)) {
        request->engine.in.decision.number = number;
        request->engine.in.decision.role = request->role;
        request_ask(request, engine_decide, request_on_answer);
    }
}
