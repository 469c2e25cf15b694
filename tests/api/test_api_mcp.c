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
    int fd = mkstemp(tokens_path);

    (void)state;
    if (fd < 0) {
        return -1;
    }
    (void)close(fd);
    token_file_write(tokens_path, tokens, COUNT_OF(tokens));
    host = api_host_start(&(struct api_options){.version = "1.2.3"});
    guarded = api_host_start(
        &(struct api_options){.tokens_file = tokens_path, .mcp_origins = "https://a.example, https://chat.example"});
    hasty = api_host_start(&(struct api_options){.mcp_wait_ms = 400, .mcp_progress_ms = 100});
    sessions = api_host_start(&(struct api_options){.mcp_session_run = true});
    return host.port && guarded.port && hasty.port && sessions.port ? 0 : -1;
}

static int teardown(void **state)
{
    int a = api_host_stop(&host), b = api_host_stop(&guarded), c = api_host_stop(&hasty), d = api_host_stop(&sessions);

    (void)state;
    (void)unlink(tokens_path);
    return a || b || c || d;
}

static void ask_with(const char *head, const char *body)
{
    raw_ask(host.port, "POST", "/mcp", head, body, &answer);
}

static void ask(const char *body)
{
    ask_with("", body);
}

static bool body_has(const char *text)
{
    return strstr(answer.body, text) != NULL;
}

static void must_have(const char *text)
{
    if (!body_has(text)) {
        fail_msg("%s is not in %s", text, answer.body);
    }
}

static void must_not_have(const char *text)
{
    if (body_has(text)) {
        fail_msg("%s is in %s", text, answer.body);
    }
}

static void must_be_refused(const char *type, const char *says)
{
    assert_int_equal(answer.status, 200);
    must_have("\"isError\":true");
    must_have(type);
    must_have(says);
}

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
        if (answer.status != messages[i].status || !body_has(messages[i].says)) {
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
        ask(bodies[i]);
        assert_int_equal(answer.status, 202);
        assert_int_equal(answer.body_len, 0);
    }
}

TEST(an_id_comes_back_as_it_was_and_a_huge_one_is_refused)
{
    char body[BODY_MAX];

    ask("{\"jsonrpc\":\"2.0\",\"id\":\"a\\u0041\\\"\",\"method\":\"ping\"}");
    must_have("\"id\":\"a\\u0041\\\"\"");
    (void)snprintf(body, sizeof(body), "{\"jsonrpc\":\"2.0\",\"id\":\"%0254d\",\"method\":\"ping\"}", 1);
    ask(body);
    assert_int_equal(answer.status, 200);
    (void)snprintf(body, sizeof(body), "{\"jsonrpc\":\"2.0\",\"id\":\"%0255d\",\"method\":\"ping\"}", 1);
    ask(body);
    assert_int_equal(answer.status, 400);
    must_have("\"id\":null");
}

TEST(only_post_is_possible)
{
    static const char *const methods[] = {"GET", "DELETE", "PUT"};

    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        raw_ask(host.port, methods[i], "/mcp", "", NULL, &answer);
        assert_int_equal(answer.status, 405);
        assert_true(raw_head_has(&answer, "\r\nAllow: POST\r\n"));
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
        ask(body);
        assert_int_equal(answer.status, 200);
        must_have(says);
        must_have("\"capabilities\":{\"tools\":{},\"resources\":{},\"prompts\":{}}");
        must_have("\"serverInfo\":{\"name\":\"sagad\"");
        must_have("\"version\":\"1.2.3\"");
        assert_false(raw_head_has(&answer, "\r\nMcp-Session-Id:")); /* there are no sessions */
    }
    ask("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{}}");
    must_have("-32602");
    ask_with("MCP-Protocol-Version: 1999-01-01\r\n", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
    assert_int_equal(answer.status, 400);
    must_have("\"code\":-32022");
    must_have("\"supported\":[\"2026-07-28\",\"2025-11-25\"],\"requested\":\"1999-01-01\"");
}

TEST(the_later_revision_says_everything_with_each_request)
{
    ask_with(LATER_HEAD("server/discover"), LATER("1", "server/discover", ""));
    assert_int_equal(answer.status, 200);
    must_have("\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\",\"2025-11-25\"]");
    must_have("\"ttlMs\":60000,\"cacheScope\":\"private\"");
    must_have("\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"sagad\"");
    ask_with(LATER_HEAD("tools/list"), LATER("1", "tools/list", ""));
    must_have("\"resultType\":\"complete\",\"tools\":[");
    must_have("\"cacheScope\":\"private\"");
    ask_with(LATER_HEAD("ping"), LATER("1", "ping", ""));
    assert_int_equal(answer.status, 404);
    must_have("-32601");
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
        if (answer.status != 400 || !body_has(broken[i].code)) {
            fail_msg("%s: got %d %s", broken[i].name, answer.status, answer.body);
        }
    }
    ask_with(LATER_HEAD("tools/call") "Mcp-Name: =?base64?dF9yZWFk?=\r\n",
             LATER("1", "tools/call", ",\"name\":\"t_read\""));
    assert_int_equal(answer.status, 200);
    must_have("\"resultType\":\"complete\",\"content\":[");
}

/* --- who may --- */

static void ask_as(const char *token, const char *more, const char *body)
{
    char head[512];

    (void)snprintf(head, sizeof(head), "Authorization: Bearer %s\r\n%s", token, more);
    raw_ask(guarded.port, "POST", "/mcp", head, body, &answer);
}

#define LIST "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"

TEST(a_token_sees_the_tools_of_its_namespace_only)
{
    ask_as("an-agent", "", LIST);
    must_have("\"name\":\"t_one\"");
    ask_as("other-agent", "", LIST);
    must_have("\"name\":\"saga_open\"");
    must_not_have("t_one");
    ask_as("other-agent", "", CALL("1", "t_one", "\"sagad/run\":\"r\"", "{}"));
    must_have("there is no tool of this name");
    ask_as("a-reader", "", LIST);
    assert_int_equal(answer.status, 403);
    ask_as("nobody", "", LIST);
    assert_int_equal(answer.status, 401);
}

TEST(a_refusal_says_where_a_token_comes_from_and_which_scope_it_needs)
{
    raw_ask(guarded.port, "POST", "/mcp", "", LIST, &answer);
    assert_int_equal(answer.status, 401);
    assert_true(raw_head_has(&answer,
                             "\r\nWWW-Authenticate: Bearer realm=\"sagad\", scope=\"agent\", resource_metadata="
                             "\"http://localhost/.well-known/oauth-protected-resource/mcp\"\r\n"));
    ask_as("nobody", "Host: here\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: sagad.example\r\n", LIST);
    assert_true(raw_head_has(&answer, "error=\"invalid_token\", scope=\"agent\", resource_metadata="
                                      "\"https://sagad.example/.well-known/oauth-protected-resource/mcp\"\r\n"));
    ask_as("nobody", "Host: here\r\nX-Forwarded-Host: a\"b\r\n", LIST); /* what would end the text is not repeated */
    assert_true(raw_head_has(&answer, "\"http://here/.well-known/"));
    ask_as("a-reader", "", LIST);
    assert_int_equal(answer.status, 403);
    assert_true(raw_head_has(&answer, "\r\nWWW-Authenticate: Bearer realm=\"sagad\", error=\"insufficient_scope\", "
                                      "scope=\"agent\", resource_metadata="));
    raw_ask(guarded.port, "GET", "/v1/sagas", "", NULL, &answer);
    assert_true(raw_head_has(&answer, "\r\nWWW-Authenticate: Bearer realm=\"sagad\"\r\n"));
}

TEST(the_metadata_of_the_protected_resource_need_no_token)
{
    static const char *const paths[] = {"/.well-known/oauth-protected-resource",
                                        "/.well-known/oauth-protected-resource/mcp"};

    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        raw_ask(guarded.port, "GET", paths[i], "", NULL, &answer);
        assert_int_equal(answer.status, 200);
        assert_string_equal(answer.body,
                            "{\"resource\":\"http://localhost/mcp\",\"bearer_methods_supported\":[\"header\"],"
                            "\"scopes_supported\":[\"agent\"],\"resource_name\":\"sagad\"}");
    }
}

TEST(a_web_page_is_refused_unless_its_origin_is_listed)
{
    ask_as("an-agent", "Origin: https://evil.example\r\n", LIST);
    assert_int_equal(answer.status, 403);
    ask_as("an-agent", "Origin: null\r\n", LIST);
    assert_int_equal(answer.status, 403);
    ask_as("an-agent", "Origin: https://chat.example\r\nOrigin: https://evil.example\r\n", LIST);
    assert_int_equal(answer.status, 403);
    ask_as("an-agent", "Origin: https://chat.example\r\n", LIST);
    assert_int_equal(answer.status, 200);
    ask_as("an-agent", "Origin: https://localhost\r\n", LIST); /* the page comes from where the request goes */
    assert_int_equal(answer.status, 403);
}

/* --- the list --- */

TEST(the_list_says_what_a_model_and_its_host_need)
{
    ask(LIST);
    assert_int_equal(answer.status, 200);
    must_have(
        "{\"name\":\"t_one\",\"title\":\"Charge\",\"description\":\"Charges a card.\",\"inputSchema\":{\"type\":"
        "\"object\",\"$comment\":\"a\",\"properties\":{\"n\":{\"type\":\"number\"},\"saga\":{\"type\":\"string\"");
    must_have("\"scope\":{\"type\":\"string\"");
    must_have("\"annotations\":{\"readOnlyHint\":false,\"destructiveHint\":false,\"idempotentHint\":false,"
              "\"openWorldHint\":false}}");
    must_have("{\"name\":\"t_read\",\"description\":\"Calls t.read, which has no "
              "description.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{}},\"annotations\":{"
              "\"readOnlyHint\":true,\"openWorldHint\":true}}");
    must_have("\"name\":\"t_slow\"");
    must_not_have("t_hidden");
    must_not_have("t_undo");
    must_not_have("nextCursor");
    ask_with("Saga-Run: conversation-1\r\n", LIST);
    must_have("\"idempotentHint\":true");
}

/* --- sets --- */

TEST(a_set_offers_only_the_tools_that_name_it_and_those_of_sagad)
{
    raw_ask(host.port, "POST", "/mcp/t/a_set", "", LIST, &answer);
    assert_int_equal(answer.status, 200);
    must_have("\"name\":\"t_slow\"");
    must_have("\"name\":\"saga_open\"");
    must_not_have("\"name\":\"t_one\"");
    must_not_have("\"name\":\"start_quick\"");
    raw_ask(host.port, "POST", "/mcp/t/a_set", "", CALL("1", "t_one", "\"sagad/run\":\"set\"", "{}"), &answer);
    must_have("there is no tool of this name");
    raw_ask(host.port, "POST", "/mcp/t/a_se", "", LIST, &answer); /* a misspelt set is no empty one */
    assert_int_equal(answer.status, 404);
    raw_ask(guarded.port, "POST", "/mcp/t/a_set", "Authorization: Bearer other-agent\r\n", LIST, &answer);
    assert_int_equal(answer.status, 404);
    raw_ask(host.port, "GET", "/mcp/t/a_set", "", NULL, &answer);
    assert_int_equal(answer.status, 405);
}

TEST(a_result_that_is_declared_has_its_schema_and_refusals_fit_it)
{
    ask(LIST);
    must_have("\"outputSchema\":{\"type\":\"object\",\"anyOf\":[{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
              "\"integer\"}}},{\"description\":\"A refusal.\"");
    must_have("\"required\":[\"type\",\"title\",\"status\",\"detail\",\"retryable\"]");
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
        raw_ask(sessions.port, "POST", "/mcp", head, CALL("1", "t_one", "", "{\"n\":1}"), &answer);
        must_have("\"isError\":false");
        must_have(i ? "\"sagad/replayed\":true" : "\"sagad/replayed\":false");
    }
    raw_ask(sessions.port, "POST", "/mcp", head, CALL("1", "t_one", "\"threadId\":\"t\"", "{\"n\":1}"), &answer);
    must_have("\"sagad/replayed\":false"); /* what the host says of the conversation is stronger */
    raw_ask(sessions.port, "POST", "/mcp", "Mcp-Session-Id: another\r\n", CALL("1", "t_one", "", "{\"n\":1}"), &answer);
    must_have("\"sagad/replayed\":false");
    ask_with(head, CALL("1", "t_one", "", "{\"n\":1}")); /* without the setting it is nothing */
    must_be_refused("urn:sagad:problem:invalid", "nothing was done");
    raw_ask(sessions.port, "POST", "/mcp", LATER_HEAD("tools/call") "Mcp-Name: t_one\r\nMcp-Session-Id: s\r\n",
            LATER("1", "tools/call", ",\"name\":\"t_one\""), &answer); /* nor in the later revision */
    must_be_refused("urn:sagad:problem:invalid", "nothing was done");
}

/* --- calls --- */

TEST(a_repeat_gets_the_same_bytes_and_what_sagad_knows_stands_in_meta)
{
    static const char first[] = CALL("1", "t_one", "\"sagad/run\":\"same\"", "{\"n\": 1.50, \"m\":\"\\u0041\\n\"}"),
                      again[] = CALL("2", "t_one", "\"sagad/run\":\"same\"", "{\"n\": 1.50, \"m\":\"\\u0041\\n\"}");

    ask(first);
    assert_int_equal(answer.status, 200);
    must_have("\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"n\\\": 1.50, "
              "\\\"m\\\":\\\"\\\\u0041\\\\n\\\"}\"}],\"structuredContent\":{\"n\": 1.50, \"m\":\"\\u0041\\n\"},"
              "\"isError\":false,\"_meta\":{\"sagad/operation\":\"");
    must_have("\"sagad/state\":\"completed\",\"sagad/replayed\":false}");
    ask(again);
    must_have("\"id\":2,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"n\\\": 1.50, "
              "\\\"m\\\":\\\"\\\\u0041\\\\n\\\"}\"}],\"structuredContent\":{\"n\": 1.50, \"m\":\"\\u0041\\n\"},"
              "\"isError\":false,\"_meta\":{\"sagad/operation\":\"");
    must_have("\"sagad/replayed\":true,\"sagad/first-at\":\"20");
}

TEST(a_tool_with_effects_does_nothing_without_a_run_and_a_read_runs)
{
    ask(CALL("1", "t_one", "\"progressToken\":\"p\"", "{}"));
    must_be_refused("urn:sagad:problem:invalid", "nothing was done");
    must_have("Saga-Run");
    must_not_have("sagad/operation");
    ask(CALL("1", "t_read", "", "{\"n\":1}"));
    must_have("\"structuredContent\":{\"n\":1},\"isError\":false");
    ask(CALL("2", "t_read", "", "{\"n\":2}")); /* no repeat of it, although nothing tells them apart */
    must_have("\"structuredContent\":{\"n\":2},\"isError\":false");
    must_have("\"sagad/replayed\":false");
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
        if (answer.status != 200 || !body_has("\"isError\":false") ||
            body_has("\"sagad/replayed\":true") != (sources[i].same && i > 0)) {
            fail_msg("%s: got %d %s", sources[i].name, answer.status, answer.body);
        }
    }
    must_have("\"structuredContent\":{}"); /* the scope was for sagad */
}

TEST(the_arguments_beside_those_for_sagad_arrive_whole_even_where_their_names_grow)
{
    char name[201], grown[601], body[BODY_MAX];

    for (size_t i = 0; i < 100; i++) {
        (void)snprintf(name + 2 * i, sizeof(name) - 2 * i, "\\b");
        (void)snprintf(grown + 6 * i, sizeof(grown) - 6 * i, "\\u0008");
    }
    (void)snprintf(body, sizeof(body),
                   CALL("1", "t_one", "\"sagad/run\":\"grown\"", "{\"scope\":\"lamp\",\"%s\":1,\"n\":2}"), name);
    ask(body);
    (void)snprintf(body, sizeof(body), "\"structuredContent\":{\"%s\":1,\"n\":2},\"isError\":false", grown);
    must_have(body);
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
        if (answer.status != 200 || !body_has("\"isError\":true") || !body_has(contradictions[i].says) ||
            !body_has(contradictions[i].and_says) || body_has("sagad/operation")) {
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
        ask(body);
        must_be_refused(type, "{\"type\":\"text\",\"text\":\"refused as the tool's name says");
        must_have("\"sagad/operation\":\"");
    }
    ask(CALL("1", "as_arguments-differ", "\"sagad/run\":\"refused\"", "{}"));
    must_have("\"pointers\":[\"/amount\",\"/to/name\"]");
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
    raw_ask(hasty.port, "POST", "/mcp", "", CALL("1", "t_slow", "\"sagad/run\":\"slow\"", "{}"), &answer);
    must_be_refused("urn:sagad:problem:in-flight", "under way: call again with the same arguments");
    must_have("\"sagad/state\":\"in_flight\"");
    raw_ask(hasty.port, "POST", "/mcp", "", CALL("2", "t_slow", "\"sagad/run\":\"slow\"", "{}"), &answer);
    must_be_refused("urn:sagad:problem:in-flight", "under way: call again with the same arguments");
    api_host_tell(&hasty, SIGUSR1);
    raw_ask(hasty.port, "POST", "/mcp", "", CALL("3", "t_slow", "\"sagad/run\":\"slow\"", "{}"), &answer);
    must_have("\"isError\":false");
    must_have("\"sagad/replayed\":true");
}

TEST(whoever_asks_for_progress_gets_signs_of_life_and_then_the_answer)
{
    raw_ask(hasty.port, "POST", "/mcp", STREAMS,
            CALL("1", "t_slow", "\"sagad/run\":\"progress\",\"progressToken\":\"p-1\"", "{}"), &answer);
    assert_int_equal(answer.status, 200);
    assert_true(raw_head_has(&answer, "\r\nContent-Type: text/event-stream\r\n"));
    assert_true(raw_head_has(&answer, "\r\nX-Accel-Buffering: no\r\n"));
    must_have(": under way\n\n");
    must_have("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
              "\"progressToken\":\"p-1\",\"progress\":1,\"message\":\"under way\"}}\n\n");
    must_have("\"progress\":2,");
    must_have("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{");
    must_have("under way: call again with the same arguments");
}

TEST(a_result_with_line_ends_is_one_event)
{
    ask_with(STREAMS, CALL("1", "t_one", "\"sagad/run\":\"lines\",\"progressToken\":7", "{\n\"n\":\r\n1}"));
    must_have("\ndata: \"n\":\ndata: 1},\"isError\":false");
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

static void ask_about(const char *tool, const char *meta, const char *handle, const char *more)
{
    char body[BODY_MAX];

    (void)snprintf(body, sizeof(body),
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\",\"_meta\":{%s},"
                   "\"arguments\":{\"saga\":\"%s\"%s}}}",
                   tool, meta, handle, more);
    ask(body);
}

TEST(a_model_opens_a_saga_calls_in_it_and_keeps_or_undoes_it)
{
    char handle[128], again[128];

    ask(CALL("1", "saga_open", "", "{\"name\":\"trip\"}"));
    must_have("\"status\":\"running\"");
    take_handle(handle, sizeof(handle));
    assert_int_equal(strlen(handle), 36);
    ask(CALL("1", "saga_open", "", "{\"name\":\"trip\"}")); /* nothing says that it is the same */
    take_handle(again, sizeof(again));
    assert_string_not_equal(again, handle);
    ask_about("t_one", "", handle, ",\"n\":1");
    must_have("\"structuredContent\":{\"n\":1},\"isError\":false");
    ask_about("t_one", "", handle, ",\"n\":1");
    must_have("\"sagad/replayed\":true");
    ask_about("saga_status", "", handle, "");
    must_have("\"status\":\"running\"");
    must_have("\"isError\":false");
    ask_about("saga_complete", "", handle, "");
    must_have("\"status\":\"completed\"");
    ask_about("t_one", "", handle, ",\"n\":2,\"scope\":\"late\"");
    must_be_refused("urn:sagad:problem:saga-closed", "ended");
    ask_about("saga_abort", "", again, "");
    must_be_refused("urn:sagad:problem:invalid", "note");
    ask_about("saga_abort", "", again, ",\"note\":\"no time\"");
    must_have("\"status\":\"compensating\"");
}

TEST(a_saga_that_is_opened_again_in_its_run_is_the_same_and_good_in_no_other)
{
    char handle[128], again[128];

    ask(CALL("1", "saga_open", "\"sagad/run\":\"a\"", "{\"name\":\"trip\"}"));
    must_have("\"sagad/replayed\":false");
    take_handle(handle, sizeof(handle));
    ask(CALL("2", "saga_open", "\"sagad/run\":\"a\"", "{\"name\":\"trip\"}"));
    must_have("\"sagad/replayed\":true");
    take_handle(again, sizeof(again));
    assert_string_equal(again, handle);
    ask(CALL("2", "saga_open", "\"sagad/run\":\"a\"", "{\"name\":\"other\"}"));
    take_handle(again, sizeof(again));
    assert_string_not_equal(again, handle);
    ask_about("t_one", "\"sagad/run\":\"a\"", handle, "");
    must_have("\"isError\":false");
    ask_about("t_one", "\"threadId\":\"b\"", handle, ""); /* a key that the host sends anyway gives way */
    must_have("\"isError\":false");
    ask_about("t_one", "\"sagad/run\":\"b\"", handle, "");
    must_be_refused("urn:sagad:problem:invalid", "\\\"sagad/run\\\" says that the run is \\\"b\\\"");
    ask_about("saga_abort", "\"sagad/run\":\"b\"", handle, ",\"note\":\"x\"");
    must_be_refused("urn:sagad:problem:invalid", "was not opened in it");
    handle[36] = '\0'; /* without its mark */
    ask_about("t_one", "\"sagad/run\":\"a\"", handle, "");
    must_be_refused("urn:sagad:problem:invalid", "was not opened in it");
}

TEST(a_definition_that_is_offered_is_started_once_in_its_run)
{
    ask(CALL("1", "start_quick", "", "{\"n\":1}"));
    must_be_refused("urn:sagad:problem:invalid", "nothing was done");
    ask(CALL("1", "start_quick", "\"sagad/run\":\"start\"", "{\"n\":1}"));
    must_have("\"status\":\"completed\"");
    must_have("\"sagad/replayed\":false");
    ask(CALL("1", "start_quick", "\"sagad/run\":\"start\"", "{\"n\":1}"));
    must_have("\"sagad/replayed\":true");
    ask(CALL("1", "start_quick", "\"sagad/run\":\"start\"", "{\"n\":2}"));
    must_be_refused("urn:sagad:problem:other-input", "other input");
}

TEST(an_operation_is_shown_by_its_key)
{
    char key[37], body[BODY_MAX];
    const char *at;

    ask(CALL("1", "t_one", "\"sagad/run\":\"shown\"", "{\"n\":5}"));
    at = strstr(answer.body, "\"sagad/operation\":\"");
    assert_non_null(at);
    (void)snprintf(key, sizeof(key), "%.36s", at + strlen("\"sagad/operation\":\""));
    (void)snprintf(body, sizeof(body), CALL("1", "operation_status", "", "{\"operation\":\"%s\"}"), key);
    ask(body);
    must_have("\"state\":\"completed\"");
    must_have("\"result\":{\"n\":5}");
    ask(CALL("1", "operation_status", "", "{\"operation\":\"7\"}"));
    must_be_refused("urn:sagad:problem:invalid", "no key of an operation");
    ask(CALL("1", "operation_status", "", "{\"operation\":\"01890a5d-ac96-774b-bcce-b302099a8057\"}"));
    must_be_refused("urn:sagad:problem:not-found", "no such thing");
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
        if (answer.status != 200 || !body_has("\"isError\":true") || !body_has(own_faults[i].says)) {
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
    ask(LIST);
    assert_int_equal(answer.status, 503);
    api_host_tell(&host, SIGUSR2);
    ask(LIST);
    assert_int_equal(answer.status, 200);
}

TEST_PROGRAM(setup, teardown)
