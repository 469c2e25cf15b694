/*
 * The adapter `mcp` against servers that follow a script, over HTTP and over standard input: every outcome, and answers
 * that no honest server gives. A call is settled once, never inside begin(), and never promises more than is known.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/mcp_message.h"
#include "tests/integration/adapter_trial.h"

static struct call *mcp_call(const char *settings)
{
    struct call *call = trial_call("mcp", settings);

    call->args = SLICE("{\n \"amount\":5}");
    return call;
}

/* Settings of the tool "charge" of a server on this port. */
static const char *charge_at(int port)
{
    return arena_text(
        &trial.arena,
        arena_printf(&trial.arena, "{\"server\":{\"url\":\"http://127.0.0.1:%d/\"},\"tool\":\"charge\"}", port));
}

static void expect(const struct call *call, const char *what, enum outcome_kind kind, bool unsent, const char *error,
                   const char *result)
{
    const struct outcome *outcome = &call->outcome;

    if (outcome->kind != kind || outcome->unsent != unsent || (error && !slice_is(outcome->error, error)) ||
        (result && !slice_is(outcome->result, result))) {
        fail_msg("%s: %s%s, error %.*s (%.*s), result %.*s, response %.*s", what, outcome->unsent ? "unsent " : "",
                 outcome_name(outcome->kind), SLICE_ARG(outcome->error), SLICE_ARG(outcome->detail),
                 SLICE_ARG(outcome->result), SLICE_ARG(call->response));
    }
}

/* --- HTTP ----------------------------------------------------------------------------------------------------- */

#define GREETING                                                                                                       \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"serverInfo\":" \
    "{\"name\":\"s\",\"version\":\"1\"}}}"
#define ANSWER(members) "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{" members "}}"
#define REFUSAL(code) "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":" code ",\"message\":\"no\"}}"
#define TEXT(text) "\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]"

static const char *http(struct arena *arena, const char *status, const char *more, const char *type, const char *body)
{
    return arena_text(arena, arena_printf(arena, "HTTP/1.1 %s\r\n%sContent-Type: %s\r\nContent-Length: %zu\r\n\r\n%s",
                                          status, more, type, strlen(body), body));
}

#define JSON "application/json"
#define EVENTS "text/event-stream"
#define SESSION "Mcp-Session-Id: s-1\r\n"

struct http_row {
    const char *status, *type, *body;
    int then;
    int64_t timeout_ms, cancel_ms;
    bool harmless;
    enum outcome_kind kind;
    const char *error, *result;
};

static const struct http_row http_rows[] = {
    {"200 OK", JSON, ANSWER(TEXT("hi")), STUB_KEEP, 0, 0, false, OUTCOME_COMPLETED, NULL,
     "[{\"type\":\"text\",\"text\":\"hi\"}]"},
    {"200 OK", JSON, ANSWER(TEXT("hi") ",\"structuredContent\":{\"n\":1.50}"), STUB_KEEP, 0, 0, false,
     OUTCOME_COMPLETED, NULL, "{\"n\":1.50}"},
    {"200 OK", JSON, ANSWER(TEXT("hi") ",\"resultType\":\"complete\",\"isError\":false"), STUB_KEEP, 0, 0, false,
     OUTCOME_COMPLETED, NULL, NULL},
    {"200 OK", EVENTS, "id: 1\ndata: \n\nevent: message\nid: 2\ndata: " ANSWER(TEXT("hi")) "\n\n", STUB_KEEP, 0, 0,
     false, OUTCOME_COMPLETED, NULL, NULL},
    {"200 OK", EVENTS, "\xef\xbb\xbf: hello\r\rdata:{\"jsonrpc\":\"2.0\",\r\ndata: \"id\":2,\"result\":{}}\r\n\r\n",
     STUB_KEEP, 0, 0, false, OUTCOME_COMPLETED, NULL, NULL},
    {"200 OK", EVENTS,
     "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\ndata: "
     "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n\ndata: {}\n\n"
     "data: nonsense\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n\ndata: " ANSWER(TEXT("hi")) "\n\n",
     STUB_KEEP, 0, 0, false, OUTCOME_COMPLETED, NULL, NULL},
    /* The tool refuses. */
    {"200 OK", JSON, ANSWER(TEXT("no money") ",\"isError\":true"), STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN,
     "tool-error", NULL},
    {"200 OK", JSON, ANSWER(TEXT("no money") ",\"isError\":true"), STUB_KEEP, 0, 0, true, OUTCOME_FAILED, "tool-error",
     NULL},
    {"200 OK", JSON, ANSWER(TEXT("MCP error -32602: Tool charge not found") ",\"isError\":true"), STUB_KEEP, 0, 0,
     false, OUTCOME_FAILED, "mcp-32602", NULL},
    {"200 OK", JSON,
     ANSWER(
         TEXT("MCP error -32602: Input validation error: Invalid arguments for tool charge: [x]") ",\"isError\":true"),
     STUB_KEEP, 0, 0, false, OUTCOME_FAILED, "mcp-32602", NULL},
    {"200 OK", JSON, ANSWER(TEXT("Input validation error: Invalid arguments for tool charge: x") ",\"isError\":true"),
     STUB_KEEP, 0, 0, false, OUTCOME_FAILED, "mcp-32602", NULL},
    {"200 OK", JSON, ANSWER(TEXT("Input validation error: Invalid arguments for tool charger: x") ",\"isError\":true"),
     STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN, "tool-error", NULL},
    {"200 OK", JSON, ANSWER(TEXT("MCP error -32602: Tool other not found") ",\"isError\":true"), STUB_KEEP, 0, 0, false,
     OUTCOME_UNKNOWN, "tool-error", NULL},
    {"200 OK", JSON,
     ANSWER(TEXT("MCP error -32602: Output validation error: Tool charge has an output schema") ",\"isError\":true"),
     STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN, "tool-error", NULL},
    /* The protocol refuses. */
    {"200 OK", JSON, REFUSAL("-32600"), STUB_KEEP, 0, 0, false, OUTCOME_FAILED, "mcp-32600", NULL},
    {"200 OK", JSON, REFUSAL("-32601"), STUB_KEEP, 0, 0, false, OUTCOME_FAILED, "mcp-32601", NULL},
    {"200 OK", EVENTS, "data: " REFUSAL("-32602") "\n\n", STUB_KEEP, 0, 0, false, OUTCOME_FAILED, "mcp-32602", NULL},
    {"400 Bad Request", JSON, REFUSAL("-32602"), STUB_KEEP, 0, 0, false, OUTCOME_FAILED, "mcp-32602", NULL},
    {"200 OK", JSON,
     "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32602,\"message\":\"Tool charge has an output schema but no "
     "structured content was provided\"}}",
     STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN, "mcp-32602", NULL},
    {"200 OK", JSON, REFUSAL("-32603"), STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN, "mcp-32603", NULL},
    {"200 OK", JSON, REFUSAL("7"), STUB_KEEP, 0, 0, true, OUTCOME_UNKNOWN, "mcp7", NULL},
    {"500 Oops", JSON, REFUSAL("-32603"), STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN, "mcp-32603", NULL},
    /* HTTP refuses. */
    {"401 Unauthorized", JSON, "{}", STUB_KEEP, 0, 0, false, OUTCOME_FAILED, "http-401", NULL},
    {"403 Forbidden", "text/html", "<p>", STUB_KEEP, 0, 0, false, OUTCOME_FAILED, "http-403", NULL},
    {"429 Too Many", JSON, "", STUB_KEEP, 0, 0, false, OUTCOME_RETRY, "http-429", NULL},
    {"409 Conflict", JSON, "", STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN, "http-409", NULL},
    {"503 Busy", JSON, "", STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN, "http-503", NULL},
    {"302 Found", JSON, ANSWER(TEXT("hi")), STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN, "http-302", NULL},
    {"500 Oops", JSON, ANSWER(TEXT("hi")), STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN, "http-500", NULL},
    /* The outcome is unknown. */
    {"202 Accepted", JSON, "", STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN, "unreadable", NULL},
    {"200 OK", JSON, "", STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN, "unreadable", NULL},
    {"200 OK", JSON, "{\"jsonrpc\":\"2.0\",\"id\":2,\"resu", STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN, "unreadable",
     NULL},
    {"200 OK", JSON, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}", STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN,
     "unreadable", NULL},
    {"200 OK", JSON, "{\"jsonrpc\":\"2.0\",\"id\":\"2\",\"result\":{}}", STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN,
     "unreadable", NULL},
    {"200 OK", JSON, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{},\"error\":{\"code\":-32600}}", STUB_KEEP, 0, 0, false,
     OUTCOME_UNKNOWN, "unreadable", NULL},
    {"200 OK", JSON, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":[]}", STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN,
     "unreadable", NULL},
    {"200 OK", JSON, "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":\"-32600\"}}", STUB_KEEP, 0, 0, false,
     OUTCOME_UNKNOWN, "unreadable", NULL},
    {"200 OK", JSON, "{\"id\":2,\"result\":{}}", STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN, "unreadable", NULL},
    {"200 OK", JSON, "[" ANSWER("") "]", STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN, "unreadable", NULL},
    {"200 OK", JSON, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600}}", STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN,
     "unreadable", NULL},
    {"200 OK", JSON, ANSWER("\"isError\":\"no\""), STUB_KEEP, 0, 0, true, OUTCOME_UNKNOWN, "unreadable", NULL},
    {"200 OK", JSON, ANSWER("\"resultType\":\"input_required\""), STUB_KEEP, 0, 0, true, OUTCOME_UNKNOWN, "incomplete",
     NULL},
    {"200 OK", JSON, ANSWER("\"task\":{\"taskId\":\"1\"}"), STUB_KEEP, 0, 0, true, OUTCOME_UNKNOWN, "incomplete", NULL},
    {"200 OK", EVENTS, "data: " ANSWER(TEXT("hi")) "\n", STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN, "cut", NULL},
    {"200 OK", EVENTS, ": only a comment\n\n", STUB_KEEP, 0, 0, false, OUTCOME_UNKNOWN, "cut", NULL},
    {NULL, NULL, NULL, STUB_CLOSE, 0, 0, false, OUTCOME_UNKNOWN, "reset", NULL},
    {NULL, NULL, NULL, STUB_RESET, 0, 0, false, OUTCOME_UNKNOWN, "reset", NULL},
    {NULL, NULL, NULL, STUB_HANG, 2000, 0, false, OUTCOME_UNKNOWN, "timeout", NULL},
    {NULL, NULL, NULL, STUB_HANG, 0, 1500, false, OUTCOME_UNKNOWN, "cancelled", NULL},
    {NULL, NULL, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {\"jso", STUB_CLOSE, 0, 0, false,
     OUTCOME_UNKNOWN, "cut", NULL},
    {NULL, NULL, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " ANSWER("") "\n\n", STUB_HANG, 0, 0,
     false, OUTCOME_COMPLETED, NULL, "null"},
    {NULL, NULL, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ", STUB_FLOOD, 0, 0, false,
     OUTCOME_UNKNOWN, "too-large", NULL},
    {NULL, NULL, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", STUB_FLOOD, 0, 0, false, OUTCOME_UNKNOWN,
     "too-large", NULL},
};

TEST(an_answer_over_http_means_what_it_says_and_no_more)
{
    for (size_t i = 0; i < COUNT_OF(http_rows); i++) {
        const struct http_row *row = &http_rows[i];
        struct call *call;
        char what[200];

        trial_again();
        struct stub_act acts[] = {
            {http(&trial.arena, "200 OK", "", EVENTS, "id: 0\ndata: \n\ndata: " GREETING "\n\n"), STUB_KEEP},
            {http(&trial.arena, "202 Accepted", "", JSON, ""), STUB_KEEP},
            {row->status ? http(&trial.arena, row->status, "", row->type, row->body) : row->body, row->then},
        };

        trial_serve(acts, COUNT_OF(acts));
        call = mcp_call(arena_text(
            &trial.arena,
            arena_printf(&trial.arena, "{\"server\":{\"url\":\"http://127.0.0.1:%d/mcp\"},\"tool\":\"charge\"}",
                         stub_server_port(trial.stub))));
        call->harmless = row->harmless;
        call->timeout_ms = row->timeout_ms ? row->timeout_ms : 5000;
        snprintf(what, sizeof(what), "row %zu: %.100s", i, row->body ? row->body : "(nothing)");
        trial_run(row->cancel_ms);
        expect(call, what, row->kind, false, row->error,
               row->result && !strcmp(row->result, "null") ? NULL : row->result);
        assert_int_equal(stub_server_requests(trial.stub), 3);
    }
}

TEST(a_call_that_has_not_left_may_be_tried_again)
{
    static const struct {
        const char *status, *more, *body;
        int then;
        const char *error;
    } table[] = {
        {"401 Unauthorized", "", "{}", STUB_KEEP, "handshake"},
        {"500 Oops", "", "{}", STUB_KEEP, "handshake"},
        {"200 OK", "", "{}", STUB_KEEP, "handshake"},
        {"200 OK", "", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"1999-01-01\"}}", STUB_KEEP,
         "version"},
        {"200 OK", "", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", STUB_KEEP, "version"},
        {"200 OK", "", "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"x\"}}", STUB_KEEP,
         "handshake"},
        {"200 OK", "Mcp-Session-Id: a b\r\n", GREETING, STUB_KEEP, "handshake"},
        {NULL, NULL, NULL, STUB_CLOSE, "reset"},
        {NULL, NULL, NULL, STUB_HANG, "timeout"},
        {NULL, NULL, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", STUB_FLOOD, "too-large"},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct call *a, *b;
        const char *settings;

        trial_again();
        struct stub_act act = {table[i].status ? http(&trial.arena, table[i].status, table[i].more, JSON, table[i].body)
                                               : table[i].body,
                               table[i].then};

        trial_serve(&act, 1);
        settings = charge_at(stub_server_port(trial.stub));
        a = mcp_call(settings);
        b = mcp_call(settings); /* waits for the handshake of the first call */
        a->timeout_ms = b->timeout_ms = table[i].then == STUB_HANG ? 300 : 20000;
        trial_run(0);
        expect(a, table[i].error, OUTCOME_RETRY, true, table[i].error, NULL);
        expect(b, table[i].error, OUTCOME_RETRY, true, table[i].error, NULL);
        /* When the time of the first call was over, the second may have tried. */
        assert_true(stub_server_requests(trial.stub) <= 2);
    }
}

TEST(nobody_listening_is_unsent)
{
    struct call *call;

    call = mcp_call(charge_at(stub_port_refused()));
    trial_run(0);
    expect(call, "refused", OUTCOME_RETRY, true, "refused", NULL);
}

TEST(a_session_is_shared_and_opened_again_when_the_server_forgot_it)
{
    static const char *const forgotten[][2] = {
        {"404 Not Found",
         "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32001,\"message\":\"Session not found\"}}"},
        {"400 Bad Request",
         "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32000,\"message\":\"Bad Request: No valid session ID provided\"}}"},
        {"404 Not Found", ""},
    };

    for (size_t i = 0; i < COUNT_OF(forgotten); i++) {
        const char *settings;
        struct call *call;
        char last[65536];

        trial_again();
        struct stub_act acts[] = {
            {http(&trial.arena, "200 OK", SESSION, JSON, GREETING), STUB_KEEP},
            {http(&trial.arena, "202 Accepted", "", JSON, ""), STUB_KEEP},
            {http(&trial.arena, "200 OK", "", JSON, ANSWER("")), STUB_KEEP},
            {http(&trial.arena, "200 OK", "", JSON, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}"), STUB_KEEP},
            {http(&trial.arena, forgotten[i][0], "", JSON, forgotten[i][1]), STUB_KEEP},
            {http(&trial.arena, "200 OK", "Mcp-Session-Id: s-2\r\n", JSON,
                  "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"protocolVersion\":\"2025-11-25\"}}"),
             STUB_KEEP},
            {http(&trial.arena, "202 Accepted", "", JSON, ""), STUB_KEEP},
            {http(&trial.arena, "200 OK", "", JSON, "{\"jsonrpc\":\"2.0\",\"id\":6,\"result\":{}}"), STUB_KEEP},
        };

        trial_serve(acts, COUNT_OF(acts));
        settings = arena_text(&trial.arena,
                              arena_printf(&trial.arena,
                                           "{\"server\":{\"url\":\"http://127.0.0.1:%d/"
                                           "\",\"bearer\":\"hush\",\"headers\":{\"X-A\":\"b\"}},\"tool\":\"charge\"}",
                                           stub_server_port(trial.stub)));
        call = mcp_call(settings);
        trial_run(0);
        expect(call, "first", OUTCOME_COMPLETED, false, NULL, NULL);
        stub_server_last(trial.stub, last, sizeof(last));
        assert_non_null(strstr(last, "\r\nMcp-Session-Id: s-1\r\n"));
        assert_non_null(strstr(last, "\r\nMCP-Protocol-Version: 2025-06-18\r\n"));
        assert_non_null(strstr(last, "\r\nAuthorization: Bearer hush\r\n"));
        assert_non_null(strstr(last, "\r\nX-A: b\r\n"));
        assert_non_null(strstr(last, "\"_meta\":{\"sagad/idempotency-key\":\"" KEY "\"}"));
        assert_non_null(strstr(last, "\"arguments\":{  \"amount\":5}"));
        call = mcp_call(settings);
        call->key_place = KEY_PLACE_META;
        call->key_name = SLICE("shop.example/key");
        trial_run(0);
        expect(call, "second", OUTCOME_COMPLETED, false, NULL, NULL);
        stub_server_last(trial.stub, last, sizeof(last));
        assert_non_null(strstr(last, "\"_meta\":{\"shop.example/key\":\"" KEY "\"}"));
        assert_int_equal(stub_server_requests(trial.stub), 4);
        call = mcp_call(settings);
        call->send_key = false;
        trial_run(0);
        expect(call, "forgotten", OUTCOME_COMPLETED, false, NULL, NULL);
        stub_server_last(trial.stub, last, sizeof(last));
        assert_non_null(strstr(last, "\r\nMcp-Session-Id: s-2\r\n"));
        assert_null(strstr(last, "_meta"));
        assert_int_equal(stub_server_requests(trial.stub), 8);
    }
}

TEST(a_server_that_forgets_every_session_is_not_asked_for_ever)
{
    struct call *call;

    struct stub_act acts[] = {
        {http(&trial.arena, "200 OK", SESSION, JSON, GREETING), STUB_KEEP},
        {http(&trial.arena, "202 Accepted", "", JSON, ""), STUB_KEEP},
        {http(&trial.arena, "404 Not Found", "", JSON, ""), STUB_KEEP},
        {http(&trial.arena, "200 OK", SESSION, JSON,
              "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"protocolVersion\":\"2025-11-25\"}}"),
         STUB_KEEP},
        {http(&trial.arena, "202 Accepted", "", JSON, ""), STUB_KEEP},
        {http(&trial.arena, "404 Not Found", "", JSON, ""), STUB_KEEP},
    };

    trial_serve(acts, COUNT_OF(acts));
    call = mcp_call(charge_at(stub_server_port(trial.stub)));
    trial_run(0);
    expect(call, "404 twice", OUTCOME_FAILED, false, "http-404", NULL);
    assert_int_equal(stub_server_requests(trial.stub), 6);
}

TEST(a_server_without_a_handshake_is_spoken_to_without)
{
    struct call *call;
    const char *settings;
    char last[65536];

    struct stub_act acts[] = {
        {http(&trial.arena, "400 Bad Request", "", JSON,
              "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32022,\"message\":\"x\"}}"),
         STUB_KEEP},
        {http(&trial.arena, "200 OK", "", JSON, ANSWER(TEXT("hi") ",\"resultType\":\"complete\"")), STUB_KEEP},
        {http(&trial.arena, "404 Not Found", "", JSON,
              "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32601,\"message\":\"x\"}}"),
         STUB_KEEP},
    };

    trial_serve(acts, COUNT_OF(acts));
    settings = charge_at(stub_server_port(trial.stub));
    call = mcp_call(settings);
    trial_run(0);
    expect(call, "modern", OUTCOME_COMPLETED, false, NULL, NULL);
    stub_server_last(trial.stub, last, sizeof(last));
    assert_has(last, "\r\nMCP-Protocol-Version: 2026-07-28\r\n", "\r\nMcp-Method: tools/call\r\n",
               "\r\nMcp-Name: charge\r\n", "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"",
               "\"sagad/idempotency-key\":\"" KEY "\"");
    call = mcp_call(settings);
    trial_run(0);
    expect(call, "unknown method", OUTCOME_FAILED, false, "mcp-32601", NULL);
    assert_int_equal(stub_server_requests(trial.stub), 3);
}

TEST(the_response_holds_what_conditions_ask_for)
{
    struct call *call;

    struct stub_act acts[] = {
        {http(&trial.arena, "200 OK", "", JSON, GREETING), STUB_KEEP},
        {http(&trial.arena, "202 Accepted", "", JSON, ""), STUB_KEEP},
        {http(&trial.arena, "200 OK", "", JSON, ANSWER(TEXT("hi") ",\"isError\":true")), STUB_KEEP},
        {http(&trial.arena, "200 OK", "", JSON,
              "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32603,\"message\":\"no\"}}"),
         STUB_KEEP},
    };

    trial_serve(acts, COUNT_OF(acts));
    for (int i = 0; i < 2; i++) {
        call = mcp_call(arena_text(
            &trial.arena,
            arena_printf(&trial.arena,
                         "{\"server\":{\"url\":\"http://127.0.0.1:%d/\"},\"tool\":\"charge\",\"arguments\":{}}",
                         stub_server_port(trial.stub))));
        trial_run(0);
        assert_string_equal(arena_text(&trial.arena, call->response),
                            i ? "{\"result\":null,\"structuredContent\":null,\"content\":null,\"isError\":false,"
                                "\"error\":{\"code\":-32603,\"message\":\"no\"},\"status\":200}"
                              : "{\"result\":{" TEXT(
                                    "hi") ",\"isError\":true},\"structuredContent\":null,\"content\":[{\"type\":"
                                          "\"text\",\"text\":\"hi\"}],\"isError\":true,\"error\":null,\"status\":200}");
    }
}

TEST(a_malformed_call_never_leaves)
{
    static const char *const settings[] = {
        "{\"server\":7,\"tool\":\"a\"}",
        "{\"server\":{},\"tool\":\"a\"}",
        "{\"server\":{\"url\":\"http://127.0.0.1:1/\",\"argv\":[\"true\"]},\"tool\":\"a\"}",
        "{\"server\":{\"url\":\"file:///etc\"},\"tool\":\"a\"}",
        "{\"server\":{\"url\":\"http://127.0.0.1:1/\"},\"tool\":\"a b\"}",
        "{\"server\":{\"url\":\"http://127.0.0.1:1/\"},\"tool\":7}",
        "{\"server\":{\"url\":\"http://127.0.0.1:1/\",\"bearer\":7},\"tool\":\"a\"}",
        "{\"server\":{\"url\":\"http://127.0.0.1:1/\",\"headers\":{\"a\":[]}},\"tool\":\"a\"}",
        "{\"server\":{\"url\":\"http://127.0.0.1:1/\"},\"tool\":\"a\",\"arguments\":[]}",
        "{\"server\":{\"argv\":[]},\"tool\":\"a\"}",
        "{\"server\":{\"argv\":[\"true\"],\"env\":[]},\"tool\":\"a\"}",
    };

    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        struct call *call;

        trial_again();
        call = mcp_call(settings[i]);
        trial_run(0);
        expect(call, settings[i], OUTCOME_FAILED, true, "bad-settings", NULL);
    }
}

/* --- standard input ------------------------------------------------------------------------------------------- */

#define HELLO "read line; echo '" GREETING "'; read line; "

static const char *script_settings(const char *script)
{
    struct buffer text;
    const char *settings;

    buffer_init(&text, 10000);
    buffer_put_text(&text, "{\"server\":{\"argv\":[\"sh\",\"-c\",");
    json_put_string(&text, slice_of(script));
    buffer_put_text(&text, "],\"env\":{\"A\":\"b\"}},\"tool\":\"charge\"}");
    settings = arena_text(&trial.arena, buffer_slice(&text));
    buffer_fini(&text);
    return settings;
}

TEST(an_answer_over_standard_output_means_what_it_says_and_no_more)
{
    static const struct {
        const char *script;
        int64_t timeout_ms, cancel_ms;
        enum outcome_kind kind;
        bool unsent;
        const char *error;
    } table[] = {
        {HELLO "read line; echo '" ANSWER(TEXT("hi")) "'; read line", 0, 0, OUTCOME_COMPLETED, false, NULL},
        {HELLO "read line; echo '" ANSWER(TEXT("hi")) "'", 0, 0, OUTCOME_COMPLETED, false,
         NULL}, /* the server's last words */
        {HELLO "read line; printf '" ANSWER("") "'", 0, 0, OUTCOME_UNKNOWN, false, "server-ended"},
        {HELLO "read line; echo noise; echo '{}'; echo '[]'; echo '{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}'; "
               "echo '" ANSWER("") "'; read line",
         0, 0, OUTCOME_COMPLETED, false, NULL},
        {HELLO "echo '{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}'; read line; read pong; case $pong in "
               "*'\"id\":\"p\",\"result\":{}'*) echo '" ANSWER("") "';; esac; read line",
         0, 0, OUTCOME_COMPLETED, false, NULL},
        {HELLO "read line; case $line in *'" KEY "'*) echo '" ANSWER("") "';; esac; read line", 0, 0, OUTCOME_COMPLETED,
         false, NULL},
        {HELLO "read line; echo '" REFUSAL("-32602") "'; read line", 0, 0, OUTCOME_FAILED, false, "mcp-32602"},
        {HELLO "read line; echo '" REFUSAL("-32603") "'; read line", 0, 0, OUTCOME_UNKNOWN, false, "mcp-32603"},
        {HELLO "read line; echo '" ANSWER(TEXT("x") ",\"isError\":true") "'; read line", 0, 0, OUTCOME_UNKNOWN, false,
         "tool-error"},
        {HELLO "read line; exit 0", 0, 0, OUTCOME_UNKNOWN, false, "server-ended"},
        {HELLO "read line; exec 1>&-; sleep 60", 0, 0, OUTCOME_UNKNOWN, false, "server-ended"},
        {HELLO "read line; kill -9 $$", 0, 0, OUTCOME_UNKNOWN, false, "server-ended"},
        {HELLO "read line; sleep 60", 3000, 0, OUTCOME_UNKNOWN, false, "timeout"},
        {HELLO "read line; sleep 60", 0, 3000, OUTCOME_UNKNOWN, false, "cancelled"},
        {HELLO "read line; head -c 200000 /dev/zero; echo; read line", 0, 0, OUTCOME_UNKNOWN, false, "too-large"},
        {"exit 1", 0, 0, OUTCOME_RETRY, true, "server-ended"},
        {"read line; exit 1", 0, 0, OUTCOME_RETRY, true, "server-ended"},
        {"sleep 60", 300, 0, OUTCOME_RETRY, true, "timeout"},
        {"sleep 60", 0, 300, OUTCOME_RETRY, true, "cancelled"},
        {"read line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"x\"}}'; read line", 0,
         0, OUTCOME_RETRY, true, "handshake"},
        {"read line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"1\"}}'; read line", 0, 0,
         OUTCOME_RETRY, true, "version"},
        {"read line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"x\"}}'; read line; "
         "case $line in *2026-07-28*) echo '" ANSWER("") "';; esac; read line",
         0, 0, OUTCOME_COMPLETED, false, NULL},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct call *call;

        trial_again();
        call = mcp_call(script_settings(table[i].script));
        call->timeout_ms = table[i].timeout_ms ? table[i].timeout_ms : 5000;
        trial_run(table[i].cancel_ms);
        expect(call, table[i].script, table[i].kind, table[i].unsent, table[i].error, NULL);
    }
}

TEST(a_program_that_is_not_there_is_unsent)
{
    struct call *call;

    call = mcp_call("{\"server\":{\"argv\":[\"/no/such/program\"]},\"tool\":\"a\"}");
    trial_run(0);
    expect(call, "not there", OUTCOME_RETRY, true, "not-started", NULL);
}

static bool no_more(const struct call *call)
{
    (void)call;
    return false;
}

/* By the time the server is ready, another engine may have made the call. */
TEST(a_call_that_may_not_leave_any_more_is_unsent)
{
    struct call *call;

    call = mcp_call(script_settings(HELLO "read a; echo '{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}'; read b"));
    call->may_leave = no_more;
    trial_run(0);
    expect(call, "a process", OUTCOME_RETRY, true, "withheld", NULL);
    trial_again();

    struct stub_act act = {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", STUB_CLOSE};

    trial_serve(&act, 1);
    call = mcp_call(charge_at(stub_server_port(trial.stub)));
    call->may_leave = no_more;
    trial_run(0);
    expect(call, "HTTP", OUTCOME_RETRY, true, "withheld", NULL);
    assert_int_equal(stub_server_requests(trial.stub), 0);
}

TEST(calls_share_one_process_and_are_told_apart_by_id)
{
    struct call *calls[3];
    const char *settings;

    /* The answers come in another order; each has the number of the process as its result. */
    settings = script_settings(
        HELLO "read a; read b; read c; for i in 4 2 3; do echo "
              "'{\"jsonrpc\":\"2.0\",\"id\":'$i',\"result\":{\"structuredContent\":['$i','$$']}}'; done; "
              "read d; echo '{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"structuredContent\":[5,'$$']}}'; read e");
    for (int i = 0; i < 3; i++) {
        calls[i] = mcp_call(settings);
    }
    trial_run(0);
    for (int i = 0; i < 3; i++) {
        int64_t id, pid;

        expect(calls[i], "three at once", OUTCOME_COMPLETED, false, NULL, NULL);
        assert_true(json_i64(json_element(calls[i]->outcome.result, 0), &id) && id == i + 2);
        assert_true(json_i64(json_element(calls[i]->outcome.result, 1), &pid) && pid > 1);
    }
    calls[1] = mcp_call(settings);
    trial_run(0);
    expect(calls[1], "a fourth", OUTCOME_COMPLETED, false, NULL, NULL);
    assert_true(slice_equal(json_element(calls[0]->outcome.result, 1), json_element(calls[1]->outcome.result, 1)));
}

TEST(a_server_that_died_is_started_again_and_its_calls_are_unknown)
{
    struct call *a, *b;
    const char *settings;
    char directory[] = "/tmp/sagad-mcp-XXXXXX";
    char script[1000];

    assert_non_null(mkdtemp(directory));
    snprintf(
        script, sizeof(script),
        "read line; id=${line#*\\\"id\\\":}; id=${id%%%%,*}; echo "
        "'{\"jsonrpc\":\"2.0\",\"id\":'$id',\"result\":{\"protocolVersion\":\"2025-11-25\"}}'; read line; read line; "
        "if mkdir %s/once; then read line; exit 1; fi; id=${line#*\\\"id\\\":}; echo "
        "'{\"jsonrpc\":\"2.0\",\"id\":'${id%%%%,*}',\"result\":{}}'; read line",
        directory);
    settings = script_settings(script);
    a = mcp_call(settings);
    b = mcp_call(settings);
    trial_run(0);
    expect(a, "under way", OUTCOME_UNKNOWN, false, "server-ended", NULL);
    expect(b, "under way too", OUTCOME_UNKNOWN, false, "server-ended", NULL);
    a = mcp_call(settings);
    trial_run(0);
    expect(a, "started again", OUTCOME_COMPLETED, false, NULL, NULL);
    (void)trial_close(NULL);
    snprintf(script, sizeof(script), "%s/once", directory);
    assert_int_equal(rmdir(script), 0);
    assert_int_equal(rmdir(directory), 0);
}

struct watch {
    struct timer timer;
    pid_t pid;
    int looks;
};

static void on_watch(struct timer *timer)
{
    struct watch *watch = container_of(timer, struct watch, timer);

    if (kill(watch->pid, 0) == 0 && ++watch->looks < 1000) {
        timer_start(trial.host.loop, timer, 10, on_watch);
    } else {
        loop_stop(trial.host.loop);
    }
}

TEST(a_server_that_writes_without_an_end_is_ended_while_nobody_calls_it)
{
    struct call *call;
    struct watch watch = {0};
    int64_t pid;

    call = mcp_call(script_settings(
        HELLO
        "read line; echo '{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"structuredContent\":['$$']}}'; exec yes ''"));
    trial_run(0);
    expect(call, "before the flood", OUTCOME_COMPLETED, false, NULL, NULL);
    assert_true(json_i64(json_element(call->outcome.result, 0), &pid) && pid > 1);
    watch.pid = (pid_t)pid;
    timer_start(trial.host.loop, &watch.timer, 10, on_watch);
    loop_run(trial.host.loop);
    assert_true(watch.looks < 1000);
}

TEST(no_process_outlives_the_engine)
{
    struct call *call;
    int64_t shell, sleeper;
    int tries = 0;

    call = mcp_call(
        script_settings("trap '' TERM; " HELLO "sleep 600 & read line; echo "
                        "'{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"structuredContent\":['$$','$!']}}'; wait"));
    trial_run(0);
    expect(call, "with a child of its own", OUTCOME_COMPLETED, false, NULL, NULL);
    assert_true(json_i64(json_element(call->outcome.result, 0), &shell) &&
                json_i64(json_element(call->outcome.result, 1), &sleeper));
    assert_int_equal(kill((pid_t)sleeper, 0), 0);
    (void)trial_close(NULL);
    while (kill(-(pid_t)shell, 0) == 0 && tries++ < 100) { /* the shell itself stays as a zombie of this process */
        FILE *stat;
        char path[64], word[64] = "";

        snprintf(path, sizeof(path), "/proc/%d/stat", (int)sleeper);
        stat = fopen(path, "r");
        if (!stat) {
            break;
        }
        if (fscanf(stat, "%*d %*s %63s", word) == 1 && word[0] == 'Z') {
            tries = 1000;
        }
        (void)fclose(stat);
        usleep(20000);
    }
    assert_true(tries != 100);
}

/* --- the event stream ------------------------------------------------------------------------------------------ */

TEST(an_event_is_the_same_however_the_stream_is_cut)
{
    static const char stream[] =
        "\xef\xbb\xbfid: 1\ndata: \n\n: c\r\ndata: a\r\ndata:b\r\n\r\ndata: c\r\revent: x\ndata\n\ndata: d\n\n";

    for (size_t step = 1; step < sizeof(stream); step++) {
        struct mcp_sse sse;
        struct slice data = SLICE_NONE;
        char found[100] = "";

        mcp_sse_init(&sse, 1000);
        for (size_t at = 0; at < sizeof(stream) - 1; at += step) {
            struct slice rest = {stream + at, sizeof(stream) - 1 - at < step ? sizeof(stream) - 1 - at : step};

            while (mcp_sse_next(&sse, &rest, &data)) {
                strncat(found, "<", 2);
                strncat(found, arena_text(&trial.arena, slice_trim(data)), 20);
                strncat(found, ">", 2);
            }
        }
        assert_string_equal(found, "<a\nb><c><d>");
        mcp_sse_fini(&sse);
    }
}

TEST_PROGRAM_EACH(trial_open, trial_close)
