/*
 * What the conformance suite of the Model Context Protocol asks for by fixed names, and sagad does not have: resources,
 * prompts, completions, and tools that ask the client for something in the middle of a call. The program
 * sagad_fixtures, which only that suite sees, answers these from the table below; everything else of it is sagad. So
 * the suite looks at how sagad reads and answers such messages, their headers and their capabilities too.
 *
 * The answers are fixed: what the suite fills in stands in them. Tools that ask for nothing are no fixtures: sagad
 * calls them at a server behind it (conformance.mjs).
 *
 * A tool that asks gives `requestState` with it, which comes back with the answer. A client may change it, so it is
 * signed, with the method and the name that it was given for.
 */
#include "api/mcp/fixtures.h"

#include "api/mcp/mcp.h"
#include "base/hmac.h"

#define TEXT(text) "{\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]}"
#define CONTENTS(uri, type, content) "{\"contents\":[{\"uri\":\"" uri "\",\"mimeType\":\"" type "\"," content "}]}"
#define MESSAGE(content) "{\"role\":\"user\",\"content\":" content "}"
#define MESSAGES(content) "{\"messages\":[" MESSAGE(content) "]}"
#define WORDS(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define PNG "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
#define ELICIT(key, words, member, type)                                                                               \
    "\"" key "\":{\"method\":\"elicitation/create\",\"params\":{\"message\":\"" words "\",\"requestedSchema\":"        \
    "{\"type\":\"object\",\"properties\":{\"" member "\":{\"type\":\"" type "\"}},\"required\":[\"" member "\"]}}}"
#define SAMPLE(key, words)                                                                                             \
    "\"" key                                                                                                           \
    "\":{\"method\":\"sampling/createMessage\",\"params\":{\"messages\":[" MESSAGE(WORDS(words)) "],"                  \
                                                                                                 "\"maxTokens\":100}}"
#define ROOTS(key) "\"" key "\":{\"method\":\"roots/list\",\"params\":{}}"
#define TOOL(name) "tools/call", "test_input_required_result_" name

static const struct fixture {
    const char *method, *name; /* name: of the tool or prompt, or the URI; NULL: of any */
    const char *needs;         /* a capability, as JSON: a client that does not declare it is refused */
    const char *after;         /* the state that this round follows; NULL: it may be the first */
    const char *response;      /* the response that the client gives in this round; NULL: none is looked for */
    const char *asks, *state;  /* of the client: an object; NULL: the round is the last */
    const char *result;        /* an object; NULL: this row only looks at what the client needs */
} fixtures[] = {
    {.method = "completion/complete", .result = "{\"completion\":{\"values\":[],\"total\":0,\"hasMore\":false}}"},
    {.method = "logging/setLevel", .result = "{}"},
    {.method = "resources/subscribe", .result = "{}"},
    {.method = "resources/unsubscribe", .result = "{}"},
    {"resources/read", "test://static-text",
     .result = CONTENTS("test://static-text", "text/plain", "\"text\":\"This is the content of the text.\"")},
    {"resources/read", "test://static-binary",
     .result = CONTENTS("test://static-binary", "image/png", "\"blob\":\"" PNG "\"")},
    {"resources/read", "test://template/123/data",
     .result = CONTENTS("test://template/123/data", "application/json", "\"text\":\"{\\\"id\\\":\\\"123\\\"}\"")},
    {"prompts/get", "test_simple_prompt", .result = MESSAGES(WORDS("This is a simple prompt for testing."))},
    {"prompts/get", "test_prompt_with_arguments",
     .result = MESSAGES(WORDS("Prompt with arguments: arg1='testValue1', arg2='testValue2'"))},
    {"prompts/get", "test_prompt_with_embedded_resource",
     .result = MESSAGES("{\"type\":\"resource\",\"resource\":{\"uri\":\"test://example-resource\",\"mimeType\":"
                        "\"text/plain\",\"text\":\"Embedded resource content for testing.\"}}")},
    {"prompts/get", "test_prompt_with_image",
     .result = MESSAGES("{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}")},
    {"prompts/get", "test_input_required_result_prompt", .response = "user_context",
     .result = MESSAGES(WORDS("Prompt with context: test context"))},
    {"prompts/get", "test_input_required_result_prompt",
     .asks = "{" ELICIT("user_context", "What context should the prompt use?", "context", "string") "}"},

    {"tools/call", "test_missing_capability", .needs = "{\"sampling\":{}}", .result = TEXT("Success")},
    /* The tool itself is at the server behind sagad. */
    {"tools/call", "failing_job", .needs = "{\"extensions\":{\"" META_PREFIX "tasks\":{}}}"},

    {TOOL("elicitation"), .response = "user_name", .result = TEXT("Hello, Alice!")},
    {TOOL("elicitation"), .asks = "{" ELICIT("user_name", "What is your name?", "name", "string") "}"},
    {TOOL("sampling"), .response = "capital_question", .result = TEXT("The capital of France is Paris.")},
    {TOOL("sampling"), .asks = "{" SAMPLE("capital_question", "What is the capital of France?") "}"},
    {TOOL("list_roots"), .response = "client_roots", .result = TEXT("Found the roots.")},
    {TOOL("list_roots"), .asks = "{" ROOTS("client_roots") "}"},
    {TOOL("request_state"), .after = "asked", .response = "confirm", .result = TEXT("state-ok")},
    {TOOL("request_state"), .asks = "{" ELICIT("confirm", "Please confirm", "ok", "boolean") "}", .state = "asked"},
    {TOOL("multiple_inputs"), .after = "asked", .response = "client_roots", .result = TEXT("All three are here.")},
    {TOOL("multiple_inputs"),
     .asks = "{" ELICIT("user_name", "What is your name?", "name",
                        "string") "," SAMPLE("greeting", "Generate a greeting") "," ROOTS("client_roots") "}",
     .state = "asked"},
    {TOOL("multi_round"), .after = "second", .response = "step2", .result = TEXT("Alice likes blue.")},
    {TOOL("multi_round"), .after = "first", .response = "step1", .state = "second",
     .asks = "{" ELICIT("step2", "Step 2: What is your favorite color?", "color", "string") "}"},
    {TOOL("multi_round"), .asks = "{" ELICIT("step1", "Step 1: What is your name?", "name", "string") "}",
     .state = "first"},
    {TOOL("tampered_state"), .after = "asked", .response = "confirm", .result = TEXT("integrity-ok")},
    {TOOL("tampered_state"), .asks = "{" ELICIT("confirm", "Please confirm", "ok", "boolean") "}", .state = "asked"},
    {TOOL("capabilities"), .asks = "{" ELICIT("elicit_input", "Elicitation input", "value",
                                              "string") "," SAMPLE("sample_input", "Sample request") "}"},
};

/* --- which row answers --- */

static struct slice declared(const struct mcp_exchange *exchange)
{
    return json_member(exchange->message.meta, META_PREFIX "clientCapabilities");
}

/* Is each member of `needed` in `given`, and so on within them? */
static bool has_all(struct slice given, struct slice needed, struct arena *arena)
{
    struct json_walk walk = json_walk(needed);
    struct slice name_raw, value;

    if (json_type(given) != JSON_OBJECT) {
        return false;
    }
    while (json_next_member(&walk, &name_raw, &value)) {
        struct slice name = json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, arena);

        if (!has_all(json_member(given, arena_text(arena, name)), value, arena)) {
            return false;
        }
    }
    return true;
}

static struct slice signed_state(const struct fixture *fixture, const char *state, struct arena *arena)
{
    struct slice text = arena_printf(arena, "%s %s %s", fixture->method, fixture->name, state);
    struct digest digest = hmac_sha256(SLICE("only the suite sees this key"), text);
    char hex[65];

    digest_hex(&digest, hex);
    return arena_printf(arena, "%s.%s", state, hex);
}

static bool has_named(const struct fixture *fixture, const struct mcp_exchange *exchange)
{
    const char *member = rpc_name_in_header(exchange->message.method);

    return slice_is(exchange->message.method, fixture->method) &&
           (!fixture->name || (member && json_string_is(json_member(exchange->message.params, member), fixture->name)));
}

static bool has_come(const struct fixture *fixture, const struct mcp_exchange *exchange)
{
    struct slice params = exchange->message.params, state = json_member(params, "requestState");
    struct arena *arena = exchange->request->arena;

    return (!fixture->after || slice_equal(json_string(state, arena), signed_state(fixture, fixture->after, arena))) &&
           (!fixture->response ||
            json_type(json_member(json_member(params, "inputResponses"), fixture->response)) == JSON_OBJECT);
}

/* Was the state of this request given to a client for this method and name? */
static bool state_holds(const struct fixture *named, const struct mcp_exchange *exchange)
{
    struct arena *arena = exchange->request->arena;
    struct slice state = json_member(exchange->message.params, "requestState");

    for (size_t i = 0; state.ptr && i < COUNT_OF(fixtures); i++) {
        if (fixtures[i].state && has_named(&fixtures[i], exchange) &&
            slice_equal(json_string(state, arena), signed_state(named, fixtures[i].state, arena))) {
            return true;
        }
    }
    return !state.ptr;
}

static const struct fixture *fixture_find(const struct mcp_exchange *exchange)
{
    /* A method that names nothing is one of the older revisions, or a completion. */
    for (size_t i = 0; i < COUNT_OF(fixtures); i++) {
        if (has_named(&fixtures[i], exchange) && has_come(&fixtures[i], exchange) &&
            (fixtures[i].name || exchange->message.era == ERA_HANDSHAKE ||
             slice_is(exchange->message.method, "completion/complete"))) {
            return &fixtures[i];
        }
    }
    return NULL;
}

/* --- what it says --- */

static void write_members(struct json_writer *w, struct slice object, struct arena *arena)
{
    struct json_walk walk = json_walk(object);
    struct slice name_raw, value;

    while (json_next_member(&walk, &name_raw, &value)) {
        struct slice name = json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, arena);

        json_write_raw(w, arena_text(arena, name), value);
    }
}

/* A client is asked only for what it has declared. */
static void write_requests(struct json_writer *w, const struct mcp_exchange *exchange, struct slice asks)
{
    static const char *const capabilities[][2] = {
        {"elicitation/create", "elicitation"}, {"sampling/createMessage", "sampling"}, {"roots/list", "roots"}};
    struct arena *arena = exchange->request->arena;
    struct json_walk walk = json_walk(asks);
    struct slice name_raw, value;

    json_object_begin(w, "inputRequests");
    while (json_next_member(&walk, &name_raw, &value)) {
        struct slice name = json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, arena);

        for (size_t i = 0; i < COUNT_OF(capabilities); i++) {
            if (json_string_is(json_member(value, "method"), capabilities[i][0]) &&
                json_member(declared(exchange), capabilities[i][1]).ptr) {
                json_write_raw(w, arena_text(arena, name), value);
            }
        }
    }
    json_object_end(w);
}

static void say(struct mcp_exchange *exchange, const struct fixture *fixture)
{
    struct arena *arena = exchange->request->arena;
    struct mcp_result result;

    exchange->result_type = fixture->asks ? "input_required" : NULL;
    mcp_result_begin(&result, exchange, 0);
    if (fixture->asks) {
        write_requests(&result.w, exchange, slice_of(fixture->asks));
        if (fixture->state) {
            json_write_slice(&result.w, "requestState", signed_state(fixture, fixture->state, arena));
        }
    } else {
        write_members(&result.w, slice_of(fixture->result), arena);
    }
    if (slice_is(exchange->message.method, "resources/read")) {
        mcp_write_caching(&result);
    }
    if (exchange->message.era == ERA_STATELESS) {
        mcp_meta_begin(&result);
        mcp_meta_end(&result);
    }
    mcp_result_send(&result);
}

static bool answer(struct mcp_exchange *exchange)
{
    const struct fixture *fixture = fixture_find(exchange);
    struct arena *arena = exchange->request->arena;

    if (!fixture) {
        return false;
    }
    if (fixture->needs && !has_all(declared(exchange), slice_of(fixture->needs), arena)) {
        mcp_fail_with(exchange, 400, RPC_CAPABILITY_MISSING, "this tool is for clients that declare what it needs",
                      arena_printf(arena, "{\"requiredCapabilities\":%s}", fixture->needs));
        return true;
    }
    if (!fixture->result && !fixture->asks) {
        return false;
    }
    if (fixture->name && !state_holds(fixture, exchange)) {
        mcp_fail(exchange, 200, RPC_INVALID_PARAMS, "\"requestState\" is none that this server has given out");
        return true;
    }
    say(exchange, fixture);
    return true;
}

/* A call that takes a second and a half becomes a task. What the suite calls as a task takes three. */
const struct mcp_fixtures mcp_fixtures = {.wait_ms = 1500, .progress_ms = 100, .answer = answer};
