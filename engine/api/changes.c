/* Every change of an existing saga: one handler, which reads a request by the row of its verb (run/request/verbs.h). */
#include "api/request.h"

struct change_state {
    struct slice values[VERB_MEMBERS_MAX]; /* the JSON of each member of the verb */
};

static bool says_why(const struct api_request *request)
{
    return request->has_token && request->role >= ROLE_OPERATOR; /* without tokens nobody is told apart */
}

static bool read_target(struct api_request *request, const struct verb *verb)
{
    struct change *change = &request->asked.in.change;

    switch (verb->on) {
    case ON_SAGA:
        return request_read_saga_id(request, &change->saga);
    case ON_OPERATION:
        return request_read_key(request, verb_key(verb, &change->input));
    case ON_ESCALATION:
        return request_read_number(request, "escalation", verb_number(verb, &change->input));
    case ON_APPROVAL:
        return request_read_number(request, "approval", verb_number(verb, &change->input));
    }
    UNREACHABLE();
}

static void read_elsewhere(struct api_request *request, const struct verb *verb, struct faults *faults)
{
    struct saga_input *input = &request->asked.in.change.input;

    for (size_t i = 0; i < verb->member_count; i++) {
        const struct verb_member *member = &verb->members[i];
        void *to = (char *)input + member->at;

        if (member->from == FROM_PATH) {
            *(struct slice *)to = request->params[1];
        } else if (member->from == FROM_KEY) {
            *(struct slice *)to = request_idempotency_key(request, faults);
        } else if (member->from == FROM_TOKEN) {
            *(enum role *)to = request->role;
        } else if (member->from == FROM_WHOLE_BODY && json_trim(request->exchange->body).len) {
            *(struct slice *)to = request->body;
        }
    }
}

static void check_change(struct api_request *request, struct faults *faults)
{
    const struct verb *verb = request->route->verb;
    const struct change_state *state = request->state;

    verb_read_body(verb, state->values, request->body, says_why(request), request->arena,
                   &request->asked.in.change.input, faults);
    read_elsewhere(request, verb, faults);
}

/* Reads the members of the verb from the body; a verb whose body is one value has none. */
static bool read_members(struct api_request *request, const struct verb *verb)
{
    struct change_state *state = request->state;
    struct member members[VERB_MEMBERS_MAX];
    struct faults faults;
    size_t count = 0;
    bool whole = false;

    CHECK(verb->member_count <= VERB_MEMBERS_MAX);
    for (size_t i = 0; i < verb->member_count; i++) {
        const struct verb_member *member = &verb->members[i];

        whole |= member->from == FROM_WHOLE_BODY;
        if (member->from == FROM_BODY) {
            members[count++] = (struct member){.name = member->name,
                                               .type = verb_member_type(member),
                                               .required = verb_requires(verb, member),
                                               .out = &state->values[i]};
        }
    }
    if (!whole) {
        return request_read_body(request, members, count, check_change);
    }
    faults_init(&faults, request->arena);
    read_elsewhere(request, verb, &faults);
    return request_is_good(request, &faults);
}

static void on_changed(struct engine_request *asked)
{
    struct api_request *request = container_of(asked, struct api_request, asked);

    request->status = request->route->verb->creates && asked->created ? 201 : 200;
    request_on_answer(asked);
}

void handle_change(struct api_request *request)
{
    const struct verb *verb = request->route->verb;
    struct change *change = &request->asked.in.change;

    request->state = arena_alloc(request->arena, sizeof(struct change_state));
    *change = (struct change){.verb = (enum verb_id)(verb - verbs)};
    if (read_target(request, verb) && (!verb->wait_ms || request_read_wait(request, verb->wait_ms)) &&
        read_members(request, verb)) {
        change->wait_ms = request->wait_ms;
        request_ask(request, engine_change, on_changed);
    }
}
