/* Open sagas, which an agent drives, are opened here. Their calls are in calls.c, their end in changes.c. */
#include "api/sagas.h"

#include "base/instant.h"

struct open_state {
    struct slice open, saga, input, version, id, tags, deadline, on_timeout, budget, loop;
};

struct number_member { /* a member of `loop` that is a number */
    const char *name;
    int64_t min, max;
};

static const struct number_member loop_members[] = {{"repeats", 2, LOOP_REPEATS_MAX}, {"max_cycle", 1, LOOP_CYCLE_MAX}};

static const struct number_member *loop_member_find(struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(loop_members); i++) {
        if (slice_is(name, loop_members[i].name)) {
            return &loop_members[i];
        }
    }
    return NULL;
}

static void check_number(struct slice value, const struct number_member *member, struct slice pointer,
                         struct faults *faults)
{
    int64_t number = 0;

    if (!json_i64(value, &number) || number < member->min || number > member->max) {
        faults_add(faults, pointer, "not a whole number from %lld to %lld", (long long)member->min,
                   (long long)member->max);
    }
}

static void check_loop(struct slice loop, struct arena *arena, struct faults *faults)
{
    struct json_walk walk = json_walk(loop);
    struct slice name_raw, value;

    if (json_type(loop) != JSON_OBJECT) {
        return; /* absent, or a fault that was reported */
    }
    while (json_next_member(&walk, &name_raw, &value)) {
        struct slice quoted = {name_raw.ptr - 1, name_raw.len + 2}, name = json_string(quoted, arena);
        struct slice place = json_pointer_join(arena, SLICE("/loop"), name);
        const struct number_member *member = loop_member_find(name);

        if (member) {
            check_number(value, member, place, faults);
        } else {
            faults_add(faults, place, "unknown member");
        }
    }
}

static void check_alone(const struct open_state *state, struct faults *faults)
{
    bool open = false;

    if (state->open.ptr && json_bool(state->open, &open) && !open) {
        faults_add(faults, SLICE("/open"),
                   "\"open\" is true where an open saga is meant; leave it out to start the saga that \"saga\" names");
        return;
    }
    if (state->saga.ptr) {
        faults_add(faults, SLICE("/saga"), "an open saga follows no definition: give \"open\" or \"saga\", not both");
    }
    if (state->input.ptr) {
        faults_add(faults, SLICE("/input"), "an open saga has no input; each of its calls brings its arguments");
    }
    if (state->version.ptr) {
        faults_add(faults, SLICE("/version"), "an open saga follows no definition, so there is no version of it");
    }
}

static void check_open(struct api_request *request, struct faults *faults)
{
    struct open_state *state = request->state;
    struct engine_request *asked = &request->asked;
    struct slice deadline = json_string(state->deadline, request->arena);
    struct budget budget;
    int64_t deadline_ms = 0;

    check_alone(state, faults);
    if (deadline.ptr && (!duration_parse(deadline, &deadline_ms) || deadline_ms == 0)) {
        faults_add(faults, SLICE("/deadline"), "not a duration from now, such as 15m or 24h, at most 366 days");
    }
    asked->in.open.on_timeout = json_string(state->on_timeout, request->arena);
    if (asked->in.open.on_timeout.ptr && !slice_is(asked->in.open.on_timeout, "abort") &&
        !slice_is(asked->in.open.on_timeout, "escalate")) {
        faults_add(faults, SLICE("/on_timeout"), "\"on_timeout\" is \"abort\", which undoes, or \"escalate\"");
    }
    if (state->budget.ptr) {
        (void)budget_read(state->budget, SLICE("/budget"), request->arena, faults,
                          &budget); /* reports every fault itself */
    }
    check_loop(state->loop, request->arena, faults);
    saga_check_tags(state->tags, request->arena, faults);
    asked->in.open.business_id = saga_read_id(request, state->id, &asked->in.open.key, faults);
    asked->in.open.tags = state->tags;
    asked->in.open.budget = state->budget;
    asked->in.open.loop = state->loop;
    asked->in.open.deadline_ms = deadline_ms;
    asked->in.open.trace = request_trace(request, SLICE_NONE);
}

void handle_open_saga(struct api_request *request)
{
    struct open_state *state = arena_alloc(request->arena, sizeof(*state));
    const struct member members[] = {
        {"open", JSON_BOOL, true, false, &state->open},
        {"id", JSON_STRING, false, false, &state->id},
        {"tags", JSON_OBJECT, false, false, &state->tags},
        {"deadline", JSON_STRING, false, false, &state->deadline},
        {"on_timeout", JSON_STRING, false, false, &state->on_timeout},
        {"budget", JSON_OBJECT, false, false, &state->budget},
        {"loop", JSON_OBJECT, false, false, &state->loop},
        {"saga", JSON_NONE, false, false,
         &state->saga}, /* these three are read only to say that they do not belong here */
        {"input", JSON_NONE, false, false, &state->input},
        {"version", JSON_NONE, false, false, &state->version},
    };

    request->state = state;
    if (request_read_wait(request, 0) && request_read_body(request, members, COUNT_OF(members), check_open)) {
        request->asked.wants_saga = request->wait_ms == 0;
        request_ask(request, engine_open_saga, saga_on_started);
    }
}
