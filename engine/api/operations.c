/* Operations: read, one more execution of one signed off, and what one cost. Calls, which make them, are in calls.c. */
#include "api/request.h"

void handle_list_operations(struct api_request *request)
{
    struct engine_request *engine = &request->engine;

    if (!request_read_limit(request)) {
        return;
    }
    engine->in.operations.tool = request_query(request, "tool");
    engine->in.operations.state = request_query(request, "state");
    engine->in.operations.run = request_query(request, "run");
    engine->in.operations.limit = request->limit;
    engine->in.operations.cursor = request_query(request, "cursor");
    request_ask(request, engine_list_operations, request_on_items);
}

bool request_read_key(struct api_request *request, struct op_key *out)
{
    if (!uuid_parse(request->params[0], &out->uuid)) {
        request_problem(request, ERR_NOT_FOUND, "there is no operation with the key \"%.*s\"",
                        SLICE_ARG(request->params[0]));
        return false;
    }
    return true;
}

void handle_get_operation(struct api_request *request)
{
    if (request_read_key(request, &request->engine.in.operation.key)) {
        request_ask(request, engine_get_operation, request_on_answer);
    }
}

static void check_bypass(struct api_request *request, struct faults *faults)
{
    struct slice *reason = request->state;

    request->engine.in.bypass.reason = read_note(*reason, SLICE("/reason"), request->arena, faults);
}

void handle_bypass(struct api_request *request)
{
    struct slice *reason = arena_alloc(request->arena, sizeof(*reason));
    const struct member members[] = {{"reason", JSON_STRING, true, false, reason}};

    request->state = reason;
    if (request_read_key(request, &request->engine.in.bypass.key) &&
        request_read_body(request, members, COUNT_OF(members), check_bypass)) {
        request_ask(request, engine_bypass, request_on_answer);
    }
}

struct cost_state {
    struct slice micros, note;
};

static void check_cost(struct api_request *request, struct faults *faults)
{
    struct cost_state *state = request->state;
    struct engine_request *engine = &request->engine;

    if (state->micros.ptr && (!json_i64(state->micros, &engine->in.cost.micros) || engine->in.cost.micros < 0 ||
                              engine->in.cost.micros > COST_MICROS_MAX)) {
        faults_add(faults, SLICE("/micros"), "a cost is a whole number of millionths of your currency, from 0 to %lld",
                   (long long)COST_MICROS_MAX);
    }
    engine->in.cost.note = read_note(state->note, SLICE("/note"), request->arena, faults);
}

void handle_say_cost(struct api_request *request)
{
    struct cost_state *state = arena_alloc(request->arena, sizeof(*state));
    const struct member members[] = {{"micros", JSON_NUMBER, true, false, &state->micros},
                                     {"note", JSON_STRING, true, false, &state->note}};

    request->state = state;
    if (request_read_key(request, &request->engine.in.cost.key) &&
        request_read_body(request, members, COUNT_OF(members), check_cost)) {
        request_ask(request, engine_say_cost, request_on_answer);
    }
}
