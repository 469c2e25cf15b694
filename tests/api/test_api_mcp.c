/* POST /mcp over a fake engine: messages, revisions, the list of tools, calls, identity, refusals. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/api/api_host.h"
#include "tests/api/raw_client.h"
#include "tests/api/token_file.h"
#include "tests/lib/test.h"

#define BODY_MAX 8192
#define CALL(id, tool, meta, args)                                                                                     \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" tool "\",\"_meta\":{" meta  \
    "},\"arguments\":" args "}}"
#define LATER_META                                                                                                     \
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}"
#define LATER(id, method, more)                                                                                        \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":{\"_meta\":{" LATER_META "}" more "}}"
#define LATER_HEAD(method) "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " method "\r\n"

static struct api_host host, guarded, hasty,
    sessions; /* hasty: a call waits for 400 ms, with a sign of life each 100 ms */
static char tokens_path[] = "/tmp/sagad-test-mcp-XXXXXX";
static struct raw_answer answer;

static const struct test_token tokens[] = {
    {"a-reader", "default", "reader", NULL},
    {"an-agent", "default", "agent", NULL},
    {"other-agent", "other", "agent", NULL},
};

static int setup(void **state)
{
    (void)state;
    token_file_new(tokens_path, tokens, COUNT_OF(tokens));
    host = api_host_start(&(struct api_options){.version = "1.2.3"});
    guarded = api_host_start(
        &(struct api_options){.tokens_file = tokens_path, .mcp_origins = "https://a.example, https://chat.example"});
    hasty = api_host_start(&(struct api_options){.mcp_wait_ms = 400, .mcp_progress_ms = 100});
    sessions = api_host_start(&(struct api_options){.mcp_session_run = true});
    return 0;
}

static const struct raw_answer *ask_with(const char *head, const char *body)
{
    return raw_ask(host.port, "POST", "/mcp", head, body, &answer);
}

static const struct raw_answer *ask(const char *body)
{
    return ask_with("", body);
}

/* A refusal is the result of a tool: its type, and what it says. */
#define expect_refused(answer, ...) expect(answer, 200, "\"isError\":true", __VA_ARGS__)

/* --- messages --- */

static const struct {
    const char *name, *body;
    int status;
    const char *says;
} messages[] = {
    {"nothing", "", 400, "\"id\":null,\"error\":{\"code\":-32600"},
    {"no JSON", "{\"jsonrpc\":", 400, "\"code\":-32700"},
    {"a member twice", "{\"jsonrpc\":\"2.0\",\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", 400,
     "\"code\":-32700"},
    {"a batch", "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", 400, "batches are not taken"},
    {"a number", "7", 400, "\"code\":-32600"},
    {"no version", "{\"id\":1,\"method\":\"ping\"}", 400, "\"id\":1,\"error\":{\"code\":-32600"},
    {"version 1", "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", 400, "\"code\":-32600"},
    {"an id that is null", "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", 400, "\"code\":-32600"},
    {"an id that is a part", "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", 400, "\"code\":-32600"},
    {"an id that is an object", "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", 400, "\"code\":-32600"},
    {"no method", "{\"jsonrpc\":\"2.0\",\"id\":1}", 400, "\"code\":-32600"},
    {"a method that is a number", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", 400, "\"code\":-32600"},
    {"params that are an array", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", 400, "-32602"},
    {"_meta that is a text", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"_meta\":\"\"}}", 400,
     "-32602"},
    {"a token that is a list",
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"_meta\":{\"progressToken\":[]}}}", 400, "-32602"},
    {"a method that is none", "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"tools/forget\"}", 200,
     "\"id\":\"a\",\"error\":{\"code\":-32601"},
    {"a method of the later revision", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}", 200, "-32601"},
    {"a ping", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", 200,
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"},
    {"a list of what is not there", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}", 200,
     "\"result\":{\"resources\":[]"},
    {"another one", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/templates/list\"}", 200,
     "\"resourceTemplates\":[]"},
    {"a third one", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"prompts/list\"}", 200, "\"prompts\":[]"},
    {"a look at what is not there",
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\",\"params\":{\"uri\":\"test://a\"}}", 200,
     "\"data\":{\"uri\":\"test://a\"}"},
    {"a call without a name", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{}}", 200, "-32602"},
    {"a call of nothing", CALL("1", "t_nothing", "", "{}"), 200, "there is no tool of this name"},
    {"a call of what is hidden", CALL("1", "t_hidden", "", "{}"), 200, "there is no tool of this name"},
    {"a call of what undoes", CALL("1", "t_undo", "", "{}"), 200, "there is no tool of this name"},
    {"a call by the registered name", CALL("1", "t.one", "", "{}"), 200, "there is no tool of this name"},
    {"arguments that are a list", CALL("1", "t_one", "", "[]"), 200, "-32602"},
    {"a cursor that is none", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"cursor\":\"x\"}}",
     200, "-32602"},
};

TEST(each_message_is_answered_as_its_revision_says)
{
    for (size_t i = 0; i < COUNT_OF(messages); i++) {
        ask(messages[i].body);
        if (answer.status != messages[i].status || !raw_body_has(&answer, messages[i].says)) {
            fail_msg("%s: got %d %s", messages[i].name, answer.status, answer.body);
        }
    }
}

TEST(a_notification_and_an_answer_get_202_without_a_body)
{
    static const char *const bodies[] = {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
                                         "{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{}}",
                                         "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"};

    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        expect(ask(bodies[i]), 202);
        assert_int_equal(answer.body_len, 0);
    }
}

TEST(an_id_comes_back_as_it_was_and_a_huge_one_is_refused)
{
    expect(ask("{\"jsonrpc\":\"2.0\",\"id\":\"a\\u0041\\\"\",\"method\":\"ping\"}"), 200, "\"id\":\"a\\u0041\\\"\"");
    expect(ask(text_of("{\"jsonrpc\":\"2.0\",\"id\":\"%0254d\",\"method\":\"ping\"}", 1)), 200);
    expect(ask(text_of("{\"jsonrpc\":\"2.0\",\"id\":\"%0255d\",\"method\":\"ping\"}", 1)), 400, "\"id\":null");
}

TEST(only_post_is_possible)
{
    static const char *const methods[] = {"GET", "DELETE", "PUT"};

    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        expect(raw_ask(host.port, methods[i], "/mcp", "", NULL, &answer), 405);
        expect_head(&answer, "\r\nAllow: POST\r\n");
    }
}

/* --- revisions --- */

TEST(a_handshake_gets_the_revision_it_asks_for_or_the_newest_of_its_kind)
{
    static const struct {
        const char *asked, *got;
    } rows[] = {{"2025-11-25", "2025-11-25"},
                {"2025-06-18", "2025-06-18"},
                {"1999-01-01", "2025-11-25"},
                {"2026-07-28", "2025-11-25"}};
    char body[BODY_MAX], says[64];

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        (void)snprintf(body, sizeof(body),
                       "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"%s\","
                       "\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}",
                       rows[i].asked);
        (void)snprintf(says, sizeof(says), "\"protocolVersion\":\"%s\"", rows[i].got);
        expect(ask(body), 200, says, "\"capabilities\":{\"tools\":{},\"resources\":{},\"prompts\":{}}",
               "\"serverInfo\":{\"name\":\"sagad\"", "\"version\":\"1.2.3\"");
        assert_false(raw_head_has(&answer, "\r\nMcp-Session-Id:")); /* there are no sessions */
    }
    expect(ask("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{}}"), 200, "-32602");
    expect(ask_with("MCP-Protocol-Version: 1999-01-01\r\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"), 400,
           "\"code\":-32022", "\"supported\":[\"2026-07-28\",\"2025-11-25\"],\"requested\":\"1999-01-01\"");
}

TEST(the_later_revision_says_everything_with_each_request)
{
    expect(ask_with(LATER_HEAD("server/discover"), LATER("1", "server/discover", "")), 200,
           "\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\",\"2025-11-25\"]",
           "\"ttlMs\":60000,\"cacheScope\":\"private\"",
           "\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"sagad\"");
    expect(ask_with(LATER_HEAD("tools/list"), LATER("1", "tools/list", "")), 200,
           "\"resultType\":\"complete\",\"tools\":[", "\"cacheScope\":\"private\"");
    expect(ask_with(LATER_HEAD("ping"), LATER("1", "ping", "")), 404, "-32601");
}

static const struct {
    const char *name, *head, *body;
    const char *code;
} broken[] = {
    {"no header at all", "", LATER("1", "tools/list", ""), "-32020"},
    {"no Mcp-Method", "MCP-Protocol-Version: 2026-07-28\r\n", LATER("1", "tools/list", ""), "-32020"},
    {"another method", LATER_HEAD("tools/call"), LATER("1", "tools/list", ""), "-32020"},
    {"another revision", "MCP-Protocol-Version: 2025-11-25\r\nMcp-Method: tools/list\r\n", LATER("1", "tools/list", ""),
     "-32020"},
    {"a header twice", LATER_HEAD("tools/list") "Mcp-Method: tools/list\r\n", LATER("1", "tools/list", ""), "-32020"},
    {"no Mcp-Name", LATER_HEAD("tools/call"), LATER("1", "tools/call", ",\"name\":\"t_read\""), "-32020"},
    {"another name", LATER_HEAD("tools/call") "Mcp-Name: t_one\r\n", LATER("1", "tools/call", ",\"name\":\"t_read\""),
     "-32020"},
    {"another resource", LATER_HEAD("resources/read") "Mcp-Name: test://b\r\n",
     LATER("1", "resources/read", ",\"uri\":\"test://a\""), "-32020"},
    {"another prompt", LATER_HEAD("prompts/get") "Mcp-Name: b\r\n", LATER("1", "prompts/get", ",\"name\":\"a\""),
     "-32020"},
    {"a name that is no base64", LATER_HEAD("tools/call") "Mcp-Name: =?base64?!?=\r\n",
     LATER("1", "tools/call", ",\"name\":\"t_read\""), "-32020"},
    {"no _meta", LATER_HEAD("tools/list"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", "-32602"},
    {"no capabilities", LATER_HEAD("tools/list"),
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
     "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}",
     "-32602"},
    {"a revision to come", "MCP-Protocol-Version: 2031-01-01\r\nMcp-Method: tools/list\r\n",
     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
     "\"io.modelcontextprotocol/protocolVersion\":\"2031-01-01\"}}}",
     "-32022"},
};

TEST(a_header_that_says_something_else_than_the_body_is_refused)
{
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        ask_with(broken[i].head, broken[i].body);
        if (answer.status != 400 || !raw_body_has(&answer, broken[i].code)) {
            fail_msg("%s: got %d %s", broken[i].name, answer.status, answer.body);
        }
    }
    expect(ask_with(LATER_HEAD("tools/call") "Mcp-Name: =?base64?dF9yZWFk?=\r\n",
                    LATER("1", "tools/call", ",\"name\":\"t_read\"")),
           200, "\"resultType\":\"complete\",\"content\":[");
}

/* --- who may --- */

static const struct raw_answer *ask_as(const char *token, const char *more, const char *body)
{
    return raw_ask(guarded.port, "POST", "/mcp", text_of("Authorization: Bearer %s\r\n%s", token, more), body, &answer);
}

#define LIST "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"

TEST(a_token_sees_the_tools_of_its_namespace_only)
{
    expect(ask_as("an-agent", "", LIST), 200, "\"name\":\"t_one\"");
    expect(ask_as("other-agent", "", LIST), 200, "\"name\":\"saga_open\"");
    expect_none(&answer, "t_one");
    expect(ask_as("other-agent", "", CALL("1", "t_one", "\"sagad/run\":\"r\"", "{}")), 200,
           "there is no tool of this name");
    expect(ask_as("a-reader", "", LIST), 403);
    expect(ask_as("nobody", "", LIST), 401);
}

TEST(a_refusal_says_where_a_token_comes_from_and_which_scope_it_needs)
{
    expect(raw_ask(guarded.port, "POST", "/mcp", "", LIST, &answer), 401);
    expect_head(&answer, "\r\nWWW-Authenticate: Bearer realm=\"sagad\", scope=\"agent\", resource_metadata="
                         "\"http://localhost/.well-known/oauth-protected-resource/mcp\"\r\n");
    ask_as("nobody", "Host: here\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: sagad.example\r\n", LIST);
    expect_head(&answer, "error=\"invalid_token\", scope=\"agent\", resource_metadata="
                         "\"https://sagad.example/.well-known/oauth-protected-resource/mcp\"\r\n");
    ask_as("nobody", "Host: here\r\nX-Forwarded-Host: a\"b\r\n", LIST); /* what would end the text is not repeated */
    expect_head(&answer, "\"http://here/.well-known/");
    expect(ask_as("a-reader", "", LIST), 403);
    expect_head(&answer, "\r\nWWW-Authenticate: Bearer realm=\"sagad\", error=\"insufficient_scope\", "
                         "scope=\"agent\", resource_metadata=");
    raw_ask(guarded.port, "GET", "/v1/sagas", "", NULL, &answer);
    expect_head(&answer, "\r\nWWW-Authenticate: Bearer realm=\"sagad\"\r\n");
}

TEST(the_metadata_of_the_protected_resource_need_no_token)
{
    static const char *const paths[] = {"/.well-known/oauth-protected-resource",
                                        "/.well-known/oauth-protected-resource/mcp"};

    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        expect(raw_ask(guarded.port, "GET", paths[i], "", NULL, &answer), 200);
        assert_string_equal(answer.body,
                            "{\"resource\":\"http://localhost/mcp\",\"bearer_methods_supported\":[\"header\"],"
                            "\"scopes_supported\":[\"agent\"],\"resource_name\":\"sagad\"}");
    }
}

TEST(a_web_page_is_refused_unless_its_origin_is_listed)
{
    expect(ask_as("an-agent", "Origin: https://evil.example\r\n", LIST), 403);
    expect(ask_as("an-agent", "Origin: null\r\n", LIST), 403);
    expect(ask_as("an-agent", "Origin: https://chat.example\r\nOrigin: https://evil.example\r\n", LIST), 403);
    expect(ask_as("an-agent", "Origin: https://chat.example\r\n", LIST), 200);
    /* The page comes from where the request goes. */
    expect(ask_as("an-agent", "Origin: https://localhost\r\n", LIST), 403);
}

/* --- the list --- */

TEST(the_list_says_what_a_model_and_its_host_need)
{
    expect(ask(LIST), 200,
           "{\"name\":\"t_one\",\"title\":\"Charge\",\"description\":\"Charges a card.\",\"inputSchema\":{\"type\":"
           "\"object\",\"$comment\":\"a\",\"properties\":{\"n\":{\"type\":\"number\"},\"saga\":{\"type\":\"string\"",
           "\"scope\":{\"type\":\"string\"",
           "\"annotations\":{\"readOnlyHint\":false,\"destructiveHint\":false,\"idempotentHint\":false,"
           "\"openWorldHint\":false}}",
           "{\"name\":\"t_read\",\"description\":\"Calls t.read, which has no "
           "description.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{}},\"annotations\":{"
           "\"readOnlyHint\":true,\"openWorldHint\":true}}",
           "\"name\":\"t_slow\"");
    expect_none(&answer, "t_hidden", "t_undo", "nextCursor");
    expect(ask_with("Saga-Run: conversation-1\r\n", LIST), 200, "\"idempotentHint\":true");
}

/* --- sets --- */

TEST(a_set_offers_only_the_tools_that_name_it_and_those_of_sagad)
{
    expect(raw_ask(host.port, "POST", "/mcp/t/a_set", "", LIST, &answer), 200, "\"name\":\"t_slow\"",
           "\"name\":\"saga_open\"");
    expect_none(&answer, "\"name\":\"t_one\"", "\"name\":\"start_quick\"");
    expect(raw_ask(host.port, "POST", "/mcp/t/a_set", "", CALL("1", "t_one", "\"sagad/run\":\"set\"", "{}"), &answer),
           200, "there is no tool of this name");
    expect(raw_ask(host.port, "POST", "/mcp/t/a_se", "", LIST, &answer), 404); /* a misspelt set is no empty one */
    expect(raw_ask(guarded.port, "POST", "/mcp/t/a_set", "Authorization: Bearer other-agent\r\n", LIST, &answer), 404);
    expect(raw_ask(host.port, "GET", "/mcp/t/a_set", "", NULL, &answer), 405);
}

TEST(a_result_that_is_declared_has_its_schema_and_refusals_fit_it)
{
    expect(ask(LIST), 200,
           "\"outputSchema\":{\"type\":\"object\",\"anyOf\":[{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
           "\"integer\"}}},{\"description\":\"A refusal.\"",
           "\"required\":[\"type\",\"title\",\"status\",\"detail\",\"retryable\"]");
}

/* --- sessions --- */

TEST(a_session_is_a_run_only_where_the_settings_say_so_and_nothing_else_says_one)
{
    static const char begin[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                                "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{}}}";
    char head[128], *id;

    raw_ask(sessions.port, "POST", "/mcp", "", begin, &answer);
    id = strstr(answer.head, "\r\nMcp-Session-Id: ");
    assert_non_null(id);
    (void)snprintf(head, sizeof(head), "Mcp-Session-Id: %.32s\r\n", id + 18);
    for (int i = 0; i < 2; i++) {
        expect(raw_ask(sessions.port, "POST", "/mcp", head, CALL("1", "t_one", "", "{\"n\":1}"), &answer), 200,
               "\"isError\":false", i ? "\"sagad/replayed\":true" : "\"sagad/replayed\":false");
    }
    /* What the host says of the conversation is stronger. */
    expect(raw_ask(sessions.port, "POST", "/mcp", head, CALL("1", "t_one", "\"threadId\":\"t\"", "{\"n\":1}"), &answer),
           200, "\"sagad/replayed\":false");
    /* Without the setting it is nothing. */
    expect(raw_ask(sessions.port, "POST", "/mcp", "Mcp-Session-Id: another\r\n", CALL("1", "t_one", "", "{\"n\":1}"),
                   &answer),
           200, "\"sagad/replayed\":false");
    /* Nor in the later revision. */
    expect_refused(ask_with(head, CALL("1", "t_one", "", "{\"n\":1}")), "urn:sagad:problem:invalid",
                   "nothing was done");
    expect_refused(raw_ask(sessions.port, "POST", "/mcp",
                           LATER_HEAD("tools/call") "Mcp-Name: t_one\r\nMcp-Session-Id: s\r\n",
                           LATER("1", "tools/call", ",\"name\":\"t_one\""), &answer),
                   "urn:sagad:problem:invalid", "nothing was done");
}

/* --- calls --- */

TEST(a_repeat_gets_the_same_bytes_and_what_sagad_knows_stands_in_meta)
{
    static const char first[] = CALL("1", "t_one", "\"sagad/run\":\"same\"", "{\"n\": 1.50, \"m\":\"\\u0041\\n\"}"),
                      again[] = CALL("2", "t_one", "\"sagad/run\":\"same\"", "{\"n\": 1.50, \"m\":\"\\u0041\\n\"}");

    expect(ask(first), 200,
           "\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"n\\\": 1.50, "
           "\\\"m\\\":\\\"\\\\u0041\\\\n\\\"}\"}],\"structuredContent\":{\"n\": 1.50, \"m\":\"\\u0041\\n\"},"
           "\"isError\":false,\"_meta\":{\"sagad/operation\":\"",
           "\"sagad/state\":\"completed\",\"sagad/replayed\":false}");
    expect(ask(again), 200,
           "\"id\":2,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"n\\\": 1.50, "
           "\\\"m\\\":\\\"\\\\u0041\\\\n\\\"}\"}],\"structuredContent\":{\"n\": 1.50, \"m\":\"\\u0041\\n\"},"
           "\"isError\":false,\"_meta\":{\"sagad/operation\":\"",
           "\"sagad/replayed\":true,\"sagad/first-at\":\"20");
}

TEST(a_tool_with_effects_does_nothing_without_a_run_and_a_read_runs)
{
    expect_refused(ask(CALL("1", "t_one", "\"progressToken\":\"p\"", "{}")), "urn:sagad:problem:invalid",
                   "nothing was done", "Saga-Run");
    expect_none(&answer, "sagad/operation");
    expect(ask(CALL("1", "t_read", "", "{\"n\":1}")), 200, "\"structuredContent\":{\"n\":1},\"isError\":false");
    /* No repeat of it, although nothing tells them apart. */
    expect(ask(CALL("2", "t_read", "", "{\"n\":2}")), 200, "\"structuredContent\":{\"n\":2},\"isError\":false",
           "\"sagad/replayed\":false");
}

static const struct {
    const char *name, *head, *body;
    bool same; /* as the call under the run "who", step "~t.one", without a scope; else another operation */
} sources[] = {
    {"_meta", "", CALL("1", "t_one", "\"sagad/run\":\"who\"", "{}"), true},
    {"a header", "Saga-Run: who\r\n", CALL("1", "t_one", "", "{}"), true},
    {"both", "Saga-Run: who\r\n", CALL("1", "t_one", "\"sagad/run\":\"who\"", "{}"), true},
    {"VS Code", "", CALL("1", "t_one", "\"vscode.conversationId\":\"who\",\"vscode.requestId\":\"q\"", "{}"), true},
    {"Codex", "", CALL("1", "t_one", "\"threadId\":\"who\",\"x-codex-turn-metadata\":{\"turn_id\":\"t\"}", "{}"), true},
    {"OpenCode", "", CALL("1", "t_one", "\"ai.opencode/sessionID\":\"who\"", "{}"), true},
    {"Antigravity", "", CALL("1", "t_one", "\"antigravity.google/conversation_id\":\"who\"", "{}"), true},
    {"an emission beside it", "", CALL("1", "t_one", "\"threadId\":\"who\",\"claudecode/toolUseId\":\"u\"", "{}"),
     true},
    {"a host's key that says less", "", CALL("1", "t_one", "\"sagad/run\":\"who\",\"threadId\":\"x\"", "{}"), true},
    {"a turn that is a number", "", CALL("1", "t_one", "\"sagad/run\":\"who\",\"sagad/turn\":7", "{}"), true},
    {"another run", "", CALL("1", "t_one", "\"sagad/run\":\"whom\"", "{}"), false},
    {"a step", "Saga-Step: pay\r\n", CALL("1", "t_one", "\"sagad/run\":\"who\"", "{}"), false},
    {"a scope", "Saga-Scope: kettle\r\n", CALL("1", "t_one", "\"sagad/run\":\"who\"", "{}"), false},
    {"a scope of the model", "", CALL("1", "t_one", "\"sagad/run\":\"who\"", "{\"scope\":\"lamp\"}"), false},
};

TEST(the_purpose_of_a_call_comes_from_any_place_where_the_host_says_it)
{
    for (size_t i = 0; i < COUNT_OF(sources); i++) {
        ask_with(sources[i].head, sources[i].body);
        if (answer.status != 200 || !raw_body_has(&answer, "\"isError\":false") ||
            raw_body_has(&answer, "\"sagad/replayed\":true") != (sources[i].same && i > 0)) {
            fail_msg("%s: got %d %s", sources[i].name, answer.status, answer.body);
        }
    }
    expect_body(&answer, "\"structuredContent\":{}"); /* the scope was for sagad */
}

TEST(the_arguments_beside_those_for_sagad_arrive_whole_even_where_their_names_grow)
{
    char name[201], grown[601];

    for (size_t i = 0; i < 100; i++) {
        (void)snprintf(name + 2 * i, sizeof(name) - 2 * i, "\\b");
        (void)snprintf(grown + 6 * i, sizeof(grown) - 6 * i, "\\u0008");
    }
    ask(text_of(CALL("1", "t_one", "\"sagad/run\":\"grown\"", "{\"scope\":\"lamp\",\"%s\":1,\"n\":2}"), name));
    expect_body(&answer, text_of("\"structuredContent\":{\"%s\":1,\"n\":2},\"isError\":false", grown));
}

static const struct {
    const char *name, *head, *body, *says, *and_says;
} contradictions[] = {
    {"the run", "Saga-Run: b\r\n", CALL("1", "t_one", "\"sagad/run\":\"a\"", "{}"),
     "_meta \\\"sagad/run\\\" says that the run is \\\"a\\\"", "the header \\\"Saga-Run\\\" says that it is \\\"b\\\""},
    {"the step", "Saga-Step: b\r\n", CALL("1", "t_one", "\"sagad/run\":\"a\",\"sagad/step\":\"a\"", "{}"),
     "\\\"sagad/step\\\" says", "\\\"Saga-Step\\\" says"},
    {"the scope", "", CALL("1", "t_one", "\"sagad/run\":\"a\",\"sagad/scope\":\"a\"", "{\"scope\":\"b\"}"),
     "\\\"sagad/scope\\\" says", "the argument \\\"scope\\\" says"},
    {"the turn", "Saga-Turn: 2\r\n", CALL("1", "t_one", "\"sagad/run\":\"a\",\"sagad/turn\":1", "{}"),
     "\\\"sagad/turn\\\" says", "\\\"Saga-Turn\\\" says"},
    {"the emission", "Idempotency-Key: 2\r\n", CALL("1", "t_one", "\"sagad/run\":\"a\",\"sagad/emission\":\"1\"", "{}"),
     "\\\"sagad/emission\\\" says", "\\\"Idempotency-Key\\\" says"},
    {"a run that is no text", "", CALL("1", "t_one", "\"sagad/run\":{}", "{}"), "cannot be right", "\\\"sagad/run\\\""},
    {"an empty run", "", CALL("1", "t_one", "\"sagad/run\":\"\"", "{}"), "cannot be right", "the run"},
    {"a step that is sagad's own", "", CALL("1", "t_one", "\"sagad/run\":\"a\",\"sagad/step\":\"~t.one\"", "{}"),
     "cannot be right", "the step"},
    {"two runs in headers", "Saga-Run: a\r\nSaga-Run: a\r\n", CALL("1", "t_one", "", "{}"), "twice", "Saga-Run"},
    {"a handle that is none", "", CALL("1", "t_one", "", "{\"saga\":\"mine\"}"), "not the handle", "saga_open"},
};

TEST(two_places_that_say_different_things_are_refused_and_both_are_named)
{
    for (size_t i = 0; i < COUNT_OF(contradictions); i++) {
        ask_with(contradictions[i].head, contradictions[i].body);
        if (answer.status != 200 || !raw_body_has(&answer, "\"isError\":true") ||
            !raw_body_has(&answer, contradictions[i].says) || !raw_body_has(&answer, contradictions[i].and_says) ||
            raw_body_has(&answer, "sagad/operation")) {
            fail_msg("%s: got %d %s", contradictions[i].name, answer.status, answer.body);
        }
    }
}

TEST(each_refusal_is_a_result_that_a_model_can_read)
{
    static const char *const names[] = {"arguments-differ", "loop-detected",   "budget-exhausted", "breaker-open",
                                        "saga-sealed",      "outcome-unknown", "awaiting-operator"};
    char body[BODY_MAX], type[64];

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        (void)snprintf(body, sizeof(body), CALL("1", "as_%s", "\"sagad/run\":\"refused\"", "{}"), names[i]);
        (void)snprintf(type, sizeof(type), "\"structuredContent\":{\"type\":\"urn:sagad:problem:%s\"", names[i]);
        expect_refused(ask(body), type, "{\"type\":\"text\",\"text\":\"refused as the tool's name says",
                       "\"sagad/operation\":\"");
    }
    expect(ask(CALL("1", "as_arguments-differ", "\"sagad/run\":\"refused\"", "{}")), 200,
           "\"pointers\":[\"/amount\",\"/to/name\"]");
}

/* --- calls that take their time --- */

#define STREAMS "Accept: application/json, text/event-stream\r\nConnection: close\r\n"

/* Sends a request and leaves it open. */
static int begin(uint16_t port, const char *head, const char *body)
{
    char request[BODY_MAX];
    int fd = raw_connect(port);

    (void)snprintf(request, sizeof(request), "POST /mcp HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %zu\r\n\r\n%s",
                   head, strlen(body), body);
    raw_send(fd, request, strlen(request));
    return fd;
}

/* Reads until this stands there, or the connection ends. */
static void read_until(int fd, const char *text, char out[BODY_MAX])
{
    size_t len = 0;
    ssize_t got;

    out[0] = '\0';
    while (!strstr(out, text) && len < BODY_MAX - 1 && (got = read(fd, out + len, BODY_MAX - 1 - len)) > 0) {
        len += (size_t)got;
        out[len] = '\0';
    }
    if (!strstr(out, text)) {
        fail_msg("%s is not in %s", text, out);
    }
}

TEST(a_call_that_is_too_slow_says_what_to_do_and_the_next_one_joins_it)
{
    expect_refused(
        raw_ask(hasty.port, "POST", "/mcp", "", CALL("1", "t_slow", "\"sagad/run\":\"slow\"", "{}"), &answer),
        "urn:sagad:problem:in-flight", "under way: call again with the same arguments",
        "\"sagad/state\":\"in_flight\"");
    expect_refused(
        raw_ask(hasty.port, "POST", "/mcp", "", CALL("2", "t_slow", "\"sagad/run\":\"slow\"", "{}"), &answer),
        "urn:sagad:problem:in-flight", "under way: call again with the same arguments");
    api_host_tell(&hasty, SIGUSR1);
    expect(raw_ask(hasty.port, "POST", "/mcp", "", CALL("3", "t_slow", "\"sagad/run\":\"slow\"", "{}"), &answer), 200,
           "\"isError\":false", "\"sagad/replayed\":true");
}

TEST(whoever_asks_for_progress_gets_signs_of_life_and_then_the_answer)
{
    expect(raw_ask(hasty.port, "POST", "/mcp", STREAMS,
                   CALL("1", "t_slow", "\"sagad/run\":\"progress\",\"progressToken\":\"p-1\"", "{}"), &answer),
           200, ": under way\n\n",
           "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
           "\"progressToken\":\"p-1\",\"progress\":1,\"message\":\"under way\"}}\n\n",
           "\"progress\":2,", "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{",
           "under way: call again with the same arguments");
    expect_head(&answer, "\r\nContent-Type: text/event-stream\r\n", "\r\nX-Accel-Buffering: no\r\n");
}

TEST(a_result_with_line_ends_is_one_event)
{
    expect(ask_with(STREAMS, CALL("1", "t_one", "\"sagad/run\":\"lines\",\"progressToken\":7", "{\n\"n\":\r\n1}")), 200,
           "\ndata: \"n\":\ndata: 1},\"isError\":false");
}

TEST(whoever_reads_events_and_waits_for_a_second_gets_a_stream)
{
    char got[BODY_MAX];
    int fd = begin(host.port, STREAMS, CALL("1", "t_slow", "\"sagad/run\":\"second\"", "{}"));

    read_until(fd, ": under way", got);
    assert_non_null(strstr(got, "text/event-stream"));
    api_host_tell(&host, SIGUSR1);
    read_until(fd, "\"isError\":false", got);
    assert_null(strstr(got, "notifications/progress")); /* nobody has asked for it */
    (void)close(fd);
}

TEST(a_client_that_leaves_ends_its_wait_and_never_the_operation)
{
    static const char call[] = CALL("1", "t_slow", "\"sagad/run\":\"leaves\",\"progressToken\":1", "{}");
    char got[BODY_MAX];
    int fd = begin(host.port, STREAMS, call);

    read_until(fd, ": under way", got);
    (void)close(fd);
    fd = begin(host.port, STREAMS, call);
    read_until(fd, ": under way", got);
    api_host_tell(&host, SIGUSR1);
    read_until(fd, "\"sagad/replayed\":true", got);
    (void)close(fd);
}

/* --- the tools that sagad has itself --- */

static void take_handle(char *out, size_t size)
{
    const char *at = strstr(answer.body, "\"structuredContent\":{\"saga\":\"");

    assert_non_null(at);
    at += strlen("\"structuredContent\":{\"saga\":\"");
    (void)snprintf(out, size, "%.*s", (int)strcspn(at, "\""), at);
}

static const struct raw_answer *ask_about(const char *tool, const char *meta, const char *handle, const char *more)
{
    return ask(text_of(CALL("1", "%s", "%s", "{\"saga\":\"%s\"%s}"), tool, meta, handle, more));
}

TEST(a_model_opens_a_saga_calls_in_it_and_keeps_or_undoes_it)
{
    char handle[128], again[128];

    expect(ask(CALL("1", "saga_open", "", "{\"name\":\"trip\"}")), 200, "\"status\":\"running\"");
    take_handle(handle, sizeof(handle));
    assert_int_equal(strlen(handle), 36);
    ask(CALL("1", "saga_open", "", "{\"name\":\"trip\"}")); /* nothing says that it is the same */
    take_handle(again, sizeof(again));
    assert_string_not_equal(again, handle);
    expect(ask_about("t_one", "", handle, ",\"n\":1"), 200, "\"structuredContent\":{\"n\":1},\"isError\":false");
    expect(ask_about("t_one", "", handle, ",\"n\":1"), 200, "\"sagad/replayed\":true");
    expect(ask_about("saga_status", "", handle, ""), 200, "\"status\":\"running\"", "\"isError\":false");
    expect(ask_about("saga_complete", "", handle, ""), 200, "\"status\":\"completed\"");
    expect_refused(ask_about("t_one", "", handle, ",\"n\":2,\"scope\":\"late\""), "urn:sagad:problem:saga-closed",
                   "ended");
    expect_refused(ask_about("saga_abort", "", again, ""), "urn:sagad:problem:invalid", "note");
    expect(ask_about("saga_abort", "", again, ",\"note\":\"no time\""), 200, "\"status\":\"compensating\"");
}

TEST(a_saga_that_is_opened_again_in_its_run_is_the_same_and_good_in_no_other)
{
    char handle[128], again[128];

    expect(ask(CALL("1", "saga_open", "\"sagad/run\":\"a\"", "{\"name\":\"trip\"}")), 200, "\"sagad/replayed\":false");
    take_handle(handle, sizeof(handle));
    expect(ask(CALL("2", "saga_open", "\"sagad/run\":\"a\"", "{\"name\":\"trip\"}")), 200, "\"sagad/replayed\":true");
    take_handle(again, sizeof(again));
    assert_string_equal(again, handle);
    ask(CALL("2", "saga_open", "\"sagad/run\":\"a\"", "{\"name\":\"other\"}"));
    take_handle(again, sizeof(again));
    assert_string_not_equal(again, handle);
    expect(ask_about("t_one", "\"sagad/run\":\"a\"", handle, ""), 200, "\"isError\":false");
    /* A key that the host sends anyway gives way. */
    expect(ask_about("t_one", "\"threadId\":\"b\"", handle, ""), 200, "\"isError\":false");
    expect_refused(ask_about("t_one", "\"sagad/run\":\"b\"", handle, ""), "urn:sagad:problem:invalid",
                   "\\\"sagad/run\\\" says that the run is \\\"b\\\"");
    expect_refused(ask_about("saga_abort", "\"sagad/run\":\"b\"", handle, ",\"note\":\"x\""),
                   "urn:sagad:problem:invalid", "was not opened in it");
    handle[36] = '\0'; /* without its mark */
    expect_refused(ask_about("t_one", "\"sagad/run\":\"a\"", handle, ""), "urn:sagad:problem:invalid",
                   "was not opened in it");
}

TEST(a_definition_that_is_offered_is_started_once_in_its_run)
{
    expect_refused(ask(CALL("1", "start_quick", "", "{\"n\":1}")), "urn:sagad:problem:invalid", "nothing was done");
    expect(ask(CALL("1", "start_quick", "\"sagad/run\":\"start\"", "{\"n\":1}")), 200, "\"status\":\"completed\"",
           "\"sagad/replayed\":false");
    expect(ask(CALL("1", "start_quick", "\"sagad/run\":\"start\"", "{\"n\":1}")), 200, "\"sagad/replayed\":true");
    expect_refused(ask(CALL("1", "start_quick", "\"sagad/run\":\"start\"", "{\"n\":2}")),
                   "urn:sagad:problem:other-input", "other input");
}

TEST(an_operation_is_shown_by_its_key)
{
    char key[37];

    ask(CALL("1", "t_one", "\"sagad/run\":\"shown\"", "{\"n\":5}"));
    answer_take(&answer, "\"sagad/operation\":\"", 36, key);
    expect(ask(text_of(CALL("1", "operation_status", "", "{\"operation\":\"%s\"}"), key)), 200,
           "\"state\":\"completed\"", "\"result\":{\"n\":5}");
    expect_refused(ask(CALL("1", "operation_status", "", "{\"operation\":\"7\"}")), "urn:sagad:problem:invalid",
                   "no key of an operation");
    expect_refused(ask(CALL("1", "operation_status", "", "{\"operation\":\"01890a5d-ac96-774b-bcce-b302099a8057\"}")),
                   "urn:sagad:problem:not-found", "no such thing");
}

static const struct {
    const char *name, *body, *says;
} own_faults[] = {
    {"no name", CALL("1", "saga_open", "", "{}"), "\\\"name\\\" is missing"},
    {"a name with blanks", CALL("1", "saga_open", "", "{\"name\":\"a trip\"}"), "\\\"name\\\" is missing, or has"},
    {"a deadline of nothing", CALL("1", "saga_open", "", "{\"name\":\"a\",\"deadline\":\"0s\"}"), "deadline"},
    {"a deadline of years", CALL("1", "saga_open", "", "{\"name\":\"a\",\"deadline\":\"367d\"}"), "deadline"},
    {"another end", CALL("1", "saga_open", "", "{\"name\":\"a\",\"on_timeout\":\"complete\"}"), "on_timeout"},
    {"no handle", CALL("1", "saga_status", "", "{}"), "\\\"saga\\\" is missing"},
    {"a handle of nothing", CALL("1", "saga_status", "", "{\"saga\":\"01890a5d-ac96-774b-bcce-b302099a8057\"}"),
     "not-found"},
};

TEST(what_is_wrong_with_a_tool_of_sagads_own_is_a_result)
{
    for (size_t i = 0; i < COUNT_OF(own_faults); i++) {
        ask(own_faults[i].body);
        if (answer.status != 200 || !raw_body_has(&answer, "\"isError\":true") ||
            !raw_body_has(&answer, own_faults[i].says)) {
            fail_msg("%s: got %d %s", own_faults[i].name, answer.status, answer.body);
        }
    }
}

TEST(no_verb_of_operators_is_offered_whatever_the_role)
{
    char names[1024] = "";
    size_t len = 0;

    ask(LIST); /* without tokens everybody is an admin */
    for (const char *at = answer.body; (at = strstr(at, "{\"name\":\"")); at++) {
        at += strlen("{\"name\":\"");
        len += (size_t)snprintf(names + len, sizeof(names) - len, "%.*s ", (int)strcspn(at, "\""), at);
    }
    assert_string_equal(names, "operation_status saga_abort saga_complete saga_open saga_status "
                               "as_arguments-differ as_awaiting-operator as_breaker-open as_budget-exhausted "
                               "as_loop-detected as_outcome-unknown as_saga-sealed start_quick t_one t_read t_slow ");
}

TEST(a_database_that_is_away_is_a_problem_and_no_empty_list)
{
    api_host_tell(&host, SIGUSR2);
    expect(ask(LIST), 503);
    api_host_tell(&host, SIGUSR2);
    expect(ask(LIST), 200);
}

TEST_PROGRAM(setup, api_host_teardown)
