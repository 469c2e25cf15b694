/* Tasks of the Model Context Protocol over a fake engine: who gets one, what it shows, and who does not have it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/api/api_host.h"
#include "tests/api/raw_client.h"
#include "tests/api/token_file.h"
#include "tests/lib/test.h"

#define CALL(id, tool, meta, args)                                                                                     \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" tool "\",\"_meta\":{" meta  \
    "},\"arguments\":" args "}}"
#define LATER_META                                                                                                     \
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}"
#define LATER_HEAD(method) "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " method "\r\n"

static struct api_host owned; /* a call waits for 400 ms */
static char tokens_path[] = "/tmp/sagad-test-tasks-XXXXXX";
static struct raw_answer answer;

static const struct test_token tokens[] = {
    {"an-agent", "default", "agent", NULL},
    {"a-second-agent", "default", "agent", NULL},
};

static int setup(void **state)
{
    (void)state;
    token_file_new(tokens_path, tokens, COUNT_OF(tokens));
    owned =
        api_host_start(&(struct api_options){.tokens_file = tokens_path, .mcp_wait_ms = 400, .mcp_progress_ms = 100});
    return 0;
}

#define TASKS_META                                                                                                     \
    "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":"       \
    "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"

/* Asks as a client of this token, which declares tasks where `declares` says so. */
static const struct raw_answer *ask_task(const char *token, const char *method, const char *task, bool declares)
{
    char head[512], body[1024];

    (void)snprintf(head, sizeof(head), "Authorization: Bearer %s\r\n" LATER_HEAD("%s") "Mcp-Name: %s\r\n", token,
                   method, task);
    (void)snprintf(body, sizeof(body),
                   "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"%s\",\"params\":{\"_meta\":{%s},\"taskId\":\"%s\"}}",
                   method, declares ? TASKS_META : LATER_META, task);
    return raw_ask(owned.port, "POST", "/mcp", head, body, &answer);
}

static void begin_task(const char *run, char task[80])
{
    const char *body = text_of(CALL("1", "t_slow", TASKS_META ",\"sagad/run\":\"%s\"", "{\"n\":1}"), run), *at;

    expect(raw_ask(owned.port, "POST", "/mcp",
                   "Authorization: Bearer an-agent\r\n" LATER_HEAD("tools/call") "Mcp-Name: t_slow\r\n", body, &answer),
           200, "\"resultType\":\"task\"", "\"status\":\"working\"", "\"createdAt\":\"20", "\"pollIntervalMs\":100");
    at = strstr(answer.body, "\"taskId\":\"");
    assert_non_null(at);
    (void)snprintf(task, 80, "%.*s", (int)strcspn(at + 10, "\""), at + 10);
}

TEST(a_client_that_declares_tasks_gets_one_for_a_slow_call_and_its_result_later)
{
    char task[80], again[80];

    begin_task("task-1", task);
    begin_task("task-1", again); /* the same call is the same operation, and the same task */
    assert_string_equal(task, again);
    /* A wish, which is not followed. */
    expect(ask_task("an-agent", "tasks/get", task, true), 200, "\"resultType\":\"complete\"",
           "\"status\":\"working\",\"statusMessage\":\"in_flight\"");
    expect(ask_task("an-agent", "tasks/cancel", task, true), 200, "\"result\":{\"resultType\":\"complete\"");
    api_host_tell(&owned, SIGUSR1);
    expect(ask_task("an-agent", "tasks/get", task, true), 200, "\"status\":\"completed\"",
           "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"n\\\":1}\"}],\"structuredContent\":{\"n\":1},"
           "\"isError\":false}");
}

TEST(a_task_is_there_for_its_own_token_only_and_its_id_cannot_be_guessed)
{
    static const char *const methods[] = {"tasks/get", "tasks/cancel", "tasks/update"};
    char task[80], changed[80];

    begin_task("task-2", task);
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        expect(ask_task("a-second-agent", methods[i], task, true), 200, "\"code\":-32602");
        expect(ask_task("an-agent", methods[i], task, false), 400, "\"code\":-32021",
               "\"requiredCapabilities\":{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}");
        (void)snprintf(changed, sizeof(changed), "%.36s", task); /* the key alone */
        expect(ask_task("an-agent", methods[i], changed, true), 200, "\"code\":-32602");
        (void)snprintf(changed, sizeof(changed), "%s", task);
        changed[50] = changed[50] == '0' ? '1' : '0';
        expect(ask_task("an-agent", methods[i], changed, true), 200, "\"code\":-32602");
    }
    api_host_tell(&owned, SIGUSR1);
}

TEST(a_method_of_tasks_that_there_is_not_is_unknown_whatever_its_headers_say)
{
    static const char *const methods[] = {"tasks/list", "tasks/result"};

    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        char head[200], body[300];

        (void)snprintf(head, sizeof(head),
                       "Authorization: Bearer an-agent\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\n",
                       methods[i]);
        (void)snprintf(body, sizeof(body),
                       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{\"_meta\":{" LATER_META "}}}",
                       methods[i]);
        expect(raw_ask(owned.port, "POST", "/mcp", head, body, &answer), 404, "\"code\":-32601");
    }
}

TEST(a_task_whose_result_is_not_kept_any_more_has_expired)
{
    char task[80];

    begin_task("expires-1", task);
    expect(ask_task("an-agent", "tasks/get", task, true), 200, "\"status\":\"working\"");
    api_host_tell(&owned, SIGUSR1);
    expect(ask_task("an-agent", "tasks/get", task, true), 200, "\"code\":-32602", "this task has expired");
    /* Nobody else learns that there was one. */
    expect(ask_task("a-second-agent", "tasks/get", task, true), 200, "there is no task of this id");
}

TEST(a_client_that_declares_no_tasks_is_told_to_call_again)
{
    expect(raw_ask(owned.port, "POST", "/mcp",
                   "Authorization: Bearer an-agent\r\n" LATER_HEAD("tools/call") "Mcp-Name: t_slow\r\n",
                   CALL("1", "t_slow", LATER_META ",\"sagad/run\":\"task-3\"", "{}"), &answer),
           200, "under way: call again with the same arguments", "\"isError\":true");
}

TEST_PROGRAM(setup, api_host_teardown)
