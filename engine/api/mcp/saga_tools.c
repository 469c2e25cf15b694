/*
 * The tools that sagad has itself: work of several calls that stand or fall together, its state, its end, and the start
 * of the definitions that say `"expose": true`. They do what an agent's token may do over /v1/sagas, and no verb of
 * operators, whatever the token.
 *
 * A model forgets that it has opened a saga and opens it again. So what is opened or started in a run has a business id
 * that is made of the run and of what it is for, and the second time gives the first saga.
 */
#include "api/mcp/mcp.h"

#include "api/acts.h"
#include "base/instant.h"
#include "base/utf8.h"

#define NAME_BYTES_MAX 64
#define NOTE_BYTES_MAX 1000
#define DEADLINE_MS_MAX (INT64_C(366) * 24 * 3600 * 1000)

struct saga_state {
    struct identity identity;
    struct saga_id saga;
    bool was_there; /* it was opened or started before */
    bool waited;    /* for its end */
};

/* --- the answer: the saga, for a model --- */

static void copy(struct json_writer *w, struct slice object, const char *name)
{
    struct slice value = json_member(object, name);

    if (value.ptr && json_type(value) != JSON_NULL) {
        json_write_raw(w, name, value);
    }
}

static void write_steps(struct json_writer *w, struct slice steps)
{
    static const char *const shown[] = {"id", "tool", "status", "key", "result", "error", "waits_for"};
    struct json_walk walk = json_walk(steps);
    struct slice step;

    json_array_begin(w, "steps");
    while (json_next_element(&walk, &step)) {
        json_object_begin(w, NULL);
        for (size_t i = 0; i < COUNT_OF(shown); i++) {
            copy(w, step, shown[i]);
        }
        json_object_end(w);
    }
    json_array_end(w);
}

static struct slice saga_for_model(const struct mcp_exchange *exchange, struct slice saga)
{
    static const char *const shown[] = {"status", "deadline", "ended_at", "output", "error", "escalation"};
    const struct saga_state *state = exchange->state;
    struct arena *arena = exchange->request->arena;
    struct slice run = state->identity.run_is_told ? state->identity.run : SLICE_NONE;
    struct json_writer w;
    struct buffer out;

    buffer_init(&out, saga.len + 1024);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "saga", saga_handle(state->saga, run, arena));
    for (size_t i = 0; i < COUNT_OF(shown); i++) {
        copy(&w, saga, shown[i]);
    }
    if (json_type(json_member(saga, "steps")) == JSON_ARRAY) {
        write_steps(&w, json_member(saga, "steps"));
    }
    json_object_end(&w);
    struct slice text = arena_slice(arena, buffer_slice(&out));

    buffer_fini(&out);
    return text;
}

static void answer(struct mcp_exchange *exchange, struct slice content, bool is_error, bool was_there)
{
    struct mcp_result out;

    mcp_result_begin(&out, exchange, content.len * 7);
    json_array_begin(&out.w, "content");
    json_object_begin(&out.w, NULL);
    json_write_text(&out.w, "type", "text");
    json_write_slice(&out.w, "text", content);
    json_object_end(&out.w);
    json_array_end(&out.w);
    json_write_raw(&out.w, "structuredContent", content);
    json_write_bool(&out.w, "isError", is_error);
    mcp_meta_begin(&out);
    json_write_bool(&out.w, "sagad/replayed", was_there);
    mcp_meta_end(&out);
    mcp_result_send(&out);
}

static bool failed(struct mcp_exchange *exchange)
{
    struct engine_request *asked = &exchange->request->asked;

    if (asked->code == ERR_OK) {
        return false;
    }
    mcp_refuse_asked(exchange);
    return true;
}

/* Work that was undone, or that nobody ended well, must not read like a success. */
static void on_saga(struct engine_request *asked)
{
    struct api_request *request = request_of(asked);
    struct mcp_exchange *exchange = request->state;
    const struct saga_state *state = exchange->state;
    struct slice status = json_member(asked->answer, "status");

    if (!failed(exchange)) {
        bool is_lost = json_string_is(status, "compensated") || json_string_is(status, "abandoned");

        answer(exchange, saga_for_model(exchange, asked->answer), state->waited && is_lost, state->was_there);
    }
}

static void ask_saga(struct mcp_exchange *exchange, int64_t wait_ms)
{
    struct api_request *request = exchange->request;
    struct saga_state *state = exchange->state;

    state->waited = wait_ms > 0;
    request->asked.in.get.id = state->saga;
    request->asked.in.get.wait_ms = request->api->stopping ? 0 : wait_ms;
    request_ask(request, engine_get_saga, on_saga);
}

/* --- reading --- */

static bool refuse(struct mcp_exchange *exchange, const char *message, const char *hint)
{
    struct err err = {0};

    (void)err_set(&err, ERR_INVALID, "%s", message);
    err_hint(&err, "%s", hint);
    mcp_refuse(exchange, &err, NULL);
    return false;
}

static bool read_identity(struct mcp_exchange *exchange, bool takes_saga, struct slice arguments)
{
    struct api_request *request = exchange->request;
    struct saga_state *state = arena_alloc(request->arena, sizeof(*state));
    const struct identity_sources sources = {.grant = request->grant,
                                             .meta = exchange->message.meta,
                                             .headers = request->exchange,
                                             .arguments = arguments,
                                             .takes_saga = takes_saga,
                                             .keys = &request->api->mcp_keys,
                                             .session_is_run = mcp_session_is_run(exchange)};
    struct err err = {0};

    exchange->state = state;
    if (!identity_read(&sources, request->arena, &state->identity, &err)) {
        mcp_refuse(exchange, &err, NULL);
        return false;
    }
    state->saga = state->identity.saga;
    return true;
}

static bool read_handle(struct mcp_exchange *exchange, struct slice arguments)
{
    if (!read_identity(exchange, true, arguments)) {
        return false;
    }
    return ((const struct saga_state *)exchange->state)->identity.has_saga ||
           refuse(exchange, "the argument \"saga\" is missing", "pass the handle that saga_open or start_NAME gave");
}

/* The business id of what is opened or started for one purpose in a run. */
static struct slice id_in_run(const struct identity *identity, const char *kind, struct slice what, struct arena *arena)
{
    const struct slice fields[] = {slice_of(kind), identity->run, what, identity->step, identity->scope};
    struct digest digest = digest_fields("sagad mcp saga", fields, COUNT_OF(fields));
    char hex[65];

    digest_hex(&digest, hex);
    return arena_printf(arena, "mcp-%.*s-%.32s", SLICE_ARG(what), hex);
}

/* --- open --- */

/* Shows the saga that was opened or started, once `wait_ms` are over or it has ended. */
static void show_made(struct engine_request *asked, int64_t wait_ms)
{
    struct mcp_exchange *exchange = request_of(asked)->state;
    struct saga_state *state = exchange->state;

    if (!failed(exchange)) {
        state->saga = asked->saga;
        state->was_there = !asked->created;
        ask_saga(exchange, wait_ms);
    }
}

static void on_opened(struct engine_request *asked)
{
    show_made(asked, 0);
}

static bool name_is_good(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_' && c != '-' &&
            c != '.') {
            return false;
        }
    }
    return name.len > 0 && name.len <= NAME_BYTES_MAX;
}

static void open_saga(struct mcp_exchange *exchange, struct slice arguments)
{
    struct api_request *request = exchange->request;
    struct engine_request *asked = &request->asked;
    struct slice name = json_string(json_member(arguments, "name"), request->arena);
    struct slice deadline = json_member(arguments, "deadline"), on_timeout = json_member(arguments, "on_timeout");
    const struct saga_state *state;
    int64_t deadline_ms = 0;

    if (!read_identity(exchange, false, arguments)) {
        return;
    }
    state = exchange->state;
    if (!name_is_good(name)) {
        (void)refuse(exchange, "the argument \"name\" is missing, or has other characters than A-Z a-z 0-9 _ - .",
                     "say in a word or two what the work is for, such as trip-to-rome; the same for the same work");
        return;
    }
    if (deadline.ptr && (!duration_parse(json_string(deadline, request->arena), &deadline_ms) || deadline_ms <= 0 ||
                         deadline_ms > DEADLINE_MS_MAX)) {
        (void)refuse(exchange, "the argument \"deadline\" is no duration from now", "write 15m or 24h, at most 366d");
        return;
    }
    if (on_timeout.ptr && !json_string_is(on_timeout, "abort") && !json_string_is(on_timeout, "escalate")) {
        (void)refuse(exchange, "the argument \"on_timeout\" is not right", "write abort, which undoes, or escalate");
        return;
    }
    asked->in.open.deadline_ms = deadline_ms;
    asked->in.open.on_timeout = json_string(on_timeout, request->arena);
    asked->in.open.business_id =
        state->identity.run.ptr ? id_in_run(&state->identity, "open", name, request->arena) : SLICE_NONE;
    asked->in.open.key = SLICE_NONE;
    asked->in.open.tags = asked->in.open.budget = asked->in.open.loop = SLICE_NONE;
    asked->in.open.trace = request_trace(request, exchange->message.meta);
    request_ask(request, engine_open_saga, on_opened);
}

/* --- look, complete, abort --- */

static void show_saga(struct mcp_exchange *exchange, struct slice arguments)
{
    if (read_handle(exchange, arguments)) {
        ask_saga(exchange, 0);
    }
}

static void change_saga(struct mcp_exchange *exchange, enum verb_id verb, struct slice note)
{
    struct api_request *request = exchange->request;
    const struct saga_state *state = exchange->state;
    struct change *change = &request->asked.in.change;

    *change = (struct change){.verb = verb, .saga = state->saga};
    if (verb == VERB_ABORT) {
        change->input.abort.note = note;
    }
    if (verbs[verb].wait_ms > 0) {
        if (!mcp_wait(exchange)) {
            return;
        }
        change->wait_ms = request->wait_ms;
    }
    request_mark_act_of(request, &verbs[verb]);
    request_ask(request, engine_change, on_saga);
}

static void complete_saga(struct mcp_exchange *exchange, struct slice arguments)
{
    if (read_handle(exchange, arguments)) {
        change_saga(exchange, VERB_COMPLETE, SLICE_NONE);
    }
}

static void abort_saga(struct mcp_exchange *exchange, struct slice arguments)
{
    struct slice note = json_string(json_member(arguments, "note"), exchange->request->arena);

    if (!read_handle(exchange, arguments)) {
        return;
    }
    if (!text_is_plain(note, NOTE_BYTES_MAX)) {
        (void)refuse(exchange, "the argument \"note\" is missing, or no text of at most 1000 bytes",
                     "say why the work is undone");
        return;
    }
    change_saga(exchange, VERB_ABORT, note);
}

/* --- operations --- */

/* An agent that was granted one run, or one saga, sees no operation of another. */
static bool is_of_grant(const struct grant *grant, struct slice operation, struct arena *arena)
{
    char saga[UUID_TEXT_BYTES];

    if (!grant) {
        return true;
    }
    uuid_text(&grant->saga.uuid, saga);
    return grant->has_saga ? json_string_is(json_member(operation, "saga"), saga)
                           : slice_equal(json_string(json_member(operation, "run"), arena), grant->run);
}

static void on_operation(struct engine_request *asked)
{
    struct api_request *request = request_of(asked);
    struct mcp_exchange *exchange = request->state;

    request_hide_operation(request);
    if (failed(exchange)) {
        return;
    }
    if (!is_of_grant(request->grant, asked->answer, request->arena)) {
        (void)refuse(exchange, "this operation is not one of the run or the saga that the grant is for",
                     "look at the work with saga_status");
        return;
    }
    answer(exchange, json_trim(asked->answer), false, false);
}

static void show_operation(struct mcp_exchange *exchange, struct slice arguments)
{
    struct api_request *request = exchange->request;
    struct slice key = json_string(json_member(arguments, "operation"), request->arena);

    if (!uuid_parse(key, &request->asked.in.operation.key.uuid)) {
        (void)refuse(exchange, "the argument \"operation\" is no key of an operation",
                     "pass the \"key\" of a step, or \"sagad/operation\" of a result, as it is");
        return;
    }
    request_ask(request, engine_get_operation, on_operation);
}

/* --- start --- */

static void on_started(struct engine_request *asked)
{
    show_made(asked, request_of(asked)->wait_ms);
}

void mcp_start_saga(struct mcp_exchange *exchange, const struct offer *offer, struct slice arguments)
{
    struct api_request *request = exchange->request;
    struct engine_request *asked = &request->asked;
    struct slice name = arena_slice(request->arena, offer->definition);
    const struct saga_state *state;

    if (!read_identity(exchange, false, SLICE_NONE)) {
        return;
    }
    state = exchange->state;
    if (!state->identity.run.ptr) {
        (void)refuse(exchange,
                     "this call does not say what it is for, so a repeat of it could not be told from a new call; "
                     "nothing was done",
                     "let the host send _meta \"sagad/run\" or the header Saga-Run");
        return;
    }
    if (!mcp_wait(exchange)) {
        return;
    }
    asked->in.start.saga = name;
    asked->in.start.input = arguments.ptr ? arguments : SLICE("{}");
    asked->in.start.business_id = id_in_run(&state->identity, "start", name, request->arena);
    asked->in.start.key = asked->in.start.tags = SLICE_NONE;
    asked->in.start.version = 0;
    asked->in.start.trace = request_trace(request, exchange->message.meta);
    request_ask(request, engine_start_saga, on_started);
}

/* --- the table --- */

#define TEXT(text) "{\"type\":\"string\",\"description\":\"" text "\"}"
#define HANDLE "\"saga\":" TEXT("The handle that saga_open or start_NAME gave.")
#define INPUT(properties, required)                                                                                    \
    "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "],\"additionalProperties\":false}"
#define READS "{\"readOnlyHint\":true,\"openWorldHint\":false}"
#define REPEATABLE "\"idempotentHint\":true,\"openWorldHint\":false}"

const struct saga_tool saga_tools[] = {
    {"operation_status", "Look at an operation",
     "Shows what became of one call: its state, its result or its error. Changes nothing.",
     INPUT("\"operation\":" TEXT("The key of the operation, such as sagad/operation of a result."), "\"operation\""),
     READS, show_operation, .of_operations = true},
    {"saga_abort", "Undo the work",
     "Ends work that saga_open or start_NAME began, and undoes all of its calls in reverse. Ask the user first.",
     INPUT(HANDLE ",\"note\":" TEXT("Why it is undone."), "\"saga\",\"note\""),
     "{\"readOnlyHint\":false,\"destructiveHint\":true," REPEATABLE, abort_saga},
    {"saga_complete", "Keep the work",
     "Ends work that saga_open began: all of its calls stay done. Call it when the last call has succeeded.",
     INPUT(HANDLE, "\"saga\""), "{\"readOnlyHint\":false,\"destructiveHint\":false," REPEATABLE, complete_saga},
    {"saga_open", "Begin work that stands or falls together",
     "Begins work of several calls of which either all stay done, or all are undone. Gives a handle: pass it as "
     "the "
     "argument saga of each call, and end with saga_complete or saga_abort. After the deadline the work is undone.",
     INPUT("\"name\":" TEXT("What the work is for, in a word or two: trip-to-rome. The same name gives the same "
                            "work.") ","
                                     "\"deadline\":" TEXT("When it is undone if it was not completed: 15m, 24h. "
                                                          "24h by default.") ","
                                                                             "\"on_timeout\":{\"enum\":[\"abort\","
                                                                             "\"escalate\"],\"description\":"
                                                                             "\"After the deadline: undo, or ask a "
                                                                             "person.\"}",
           "\"name\""),
     "{\"readOnlyHint\":false,\"destructiveHint\":false," REPEATABLE, open_saga, .begins = true},
    {"saga_status", "Look at the work",
     "Shows how far work is that saga_open or start_NAME began, call by call. Changes nothing.",
     INPUT(HANDLE, "\"saga\""), READS, show_saga},
};
const size_t saga_tool_count = COUNT_OF(saga_tools);
