/*
 * Who may do what: every route with every role, and with a token of another namespace. A new route fails here until it
 * has a row in the list below.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/routes.h"
#include "tests/api/api_host.h"
#include "tests/api/raw_client.h"
#include "tests/api/token_file.h"
#include "tests/lib/test.h"

#define NAMED "/v1/sagas/by-business-id/{name}/{business_id}"

static const struct {
    const char *method, *pattern;
    enum role least;
    const char *body; /* a valid body */
    bool thing;       /* the path names something that belongs to a namespace */
} rights[] = {
    {"GET", "/", ROLE_NONE, NULL, false},
    {"GET", "/console", ROLE_NONE, NULL, false},
    {"GET", "/console/", ROLE_NONE, NULL, false},
    {"GET", "/console/{file}", ROLE_NONE, NULL, false},
    {"POST", "/console/session", ROLE_NONE, "{\"token\":\"a-reader\"}", false},
    {"DELETE", "/console/session", ROLE_NONE, NULL, false},
    {"POST", "/console/links", ROLE_READER, "{}", false},
    {"GET", "/livez", ROLE_NONE, NULL, false},
    {"GET", "/readyz", ROLE_NONE, NULL, false},
    {"GET", "/healthz", ROLE_NONE, NULL, false},
    {"GET", "/v1/openapi.json", ROLE_NONE, NULL, false},
    {"GET", "/metrics", ROLE_READER, NULL, false},
    {"GET", "/v1/stats", ROLE_READER, NULL, false},
    {"GET", "/v1/events", ROLE_READER, NULL, false},
    {"GET", "/v1/notifications", ROLE_READER, NULL, false},
    {"GET", "/v1/stats/series", ROLE_READER, NULL, false},
    {"GET", "/v1/engines", ROLE_READER, NULL, false},
    {"GET", "/v1/me", ROLE_READER, NULL, false},
    {"GET", "/v1/debts", ROLE_READER, NULL, false},
    {"GET", "/v1/acts", ROLE_READER, NULL, false},
    {"GET", "/v1/holds", ROLE_READER, NULL, false},
    {"GET", "/v1/holds/{n}", ROLE_READER, NULL, true},
    {"GET", "/v1/bulk", ROLE_READER, NULL, false},
    {"GET", "/v1/bulk/{bulk}", ROLE_READER, NULL, true},
    {"GET", "/v1/bulk/{bulk}/items", ROLE_READER, NULL, true},
    {"GET", "/v1/schedules", ROLE_READER, NULL, false},
    {"GET", "/v1/schedules/{name}", ROLE_READER, NULL, true},
    {"GET", "/v1/schedules/{name}/next", ROLE_READER, NULL, true},
    {"GET", "/v1/tools", ROLE_READER, NULL, false},
    {"GET", "/v1/tools/{name}", ROLE_READER, NULL, true},
    {"GET", "/v1/definitions", ROLE_READER, NULL, false},
    {"GET", "/v1/definitions/{name}", ROLE_READER, NULL, true},
    {"GET", "/v1/definitions/{name}/proof", ROLE_READER, NULL, true},
    {"GET", "/v1/sagas", ROLE_READER, NULL, false},
    {"GET", "/v1/sagas/{id}", ROLE_READER, NULL, true},
    {"GET", "/v1/sagas/{id}/log", ROLE_READER, NULL, true},
    {"GET", "/v1/sagas/{id}/preview", ROLE_READER, NULL, true},
    {"GET", "/v1/operations/{key}/preview", ROLE_READER, NULL, true},
    {"GET", "/v1/escalations/{n}/preview", ROLE_READER, NULL, true},
    {"GET", "/v1/operations", ROLE_READER, NULL, false},
    {"GET", "/v1/operations/{key}", ROLE_READER, NULL, true},
    {"GET", "/v1/escalations", ROLE_READER, NULL, false},
    {"GET", "/v1/escalations/{n}", ROLE_READER, NULL, true},
    {"GET", "/v1/approvals", ROLE_READER, NULL, false},
    {"GET", "/v1/approvals/{n}", ROLE_READER, NULL, true},
    /* An agent calls, opens, starts, completes and aborts in its own namespace. */
    {"POST", "/v1/operations", ROLE_AGENT, "{\"run\":\"rights\",\"tool\":\"t.one\"}", false},
    {"POST", "/v1/sagas", ROLE_AGENT, "{\"open\":true}", false},
    {"POST", "/v1/sagas/batch", ROLE_AGENT, "[{\"open\":true}]", false},
    {"POST", "/v1/sagas/{id}/calls", ROLE_AGENT, "{\"tool\":\"t.one\"}", true},
    {"POST", "/v1/sagas/{id}/complete", ROLE_AGENT, "{}", true},
    {"POST", "/v1/sagas/{id}/abort", ROLE_AGENT, "{\"note\":\"x\"}", true},
    {"POST", "/v1/sagas/{id}/signals/{name}", ROLE_AGENT, "{}", true},
    {"POST", "/mcp", ROLE_AGENT, "{}", false},
    {"POST", "/mcp/t/{set}", ROLE_AGENT, "{}", false},
    {"GET", "/.well-known/oauth-protected-resource", ROLE_NONE, NULL, false},
    {"GET", "/.well-known/oauth-protected-resource/mcp", ROLE_NONE, NULL, false},
    {"POST", "/mcp/g/{secret}", ROLE_AGENT, "{}", false}, /* who may is said by the path alone */
    {"GET", "/v1/grants", ROLE_READER, NULL, false},
    {"POST", "/v1/grants", ROLE_AGENT, "{\"run\":\"rights\"}", false},
    {"DELETE", "/v1/grants/{id}", ROLE_AGENT, NULL, true},
    /* The same rights hold for a saga that is named by its business id. */
    {"GET", NAMED, ROLE_READER, NULL, true},
    {"GET", NAMED "/preview", ROLE_READER, NULL, true},
    {"GET", NAMED "/log", ROLE_READER, NULL, true},
    {"POST", NAMED "/calls", ROLE_AGENT, "{\"tool\":\"t.one\"}", true},
    {"POST", NAMED "/complete", ROLE_AGENT, "{}", true},
    {"POST", NAMED "/abort", ROLE_AGENT, "{\"note\":\"x\"}", true},
    {"POST", NAMED "/signals/{signal}", ROLE_AGENT, "{}", true},
    {"POST", NAMED "/escalate", ROLE_OPERATOR, "{\"note\":\"x\"}", true},
    {"POST", NAMED "/pause", ROLE_OPERATOR, "{\"note\":\"x\"}", true},
    {"POST", NAMED "/resume", ROLE_OPERATOR, "{\"note\":\"x\"}", true},
    {"POST", NAMED "/rerun", ROLE_OPERATOR, "{\"note\":\"x\"}", true},
    {"POST", NAMED "/tools", ROLE_OPERATOR, "{\"tool\":\"quick\",\"version\":1,\"note\":\"x\"}", true},
    /* An agent approves only when the approval itself allows it, which the engine checks. */
    {"POST", "/v1/approvals/{n}", ROLE_AGENT, "{\"decision\":\"approve\",\"note\":\"x\"}", true},
    /* An agent never resolves, bypasses, resumes or pauses. */
    {"POST", "/v1/sagas/{id}/escalate", ROLE_OPERATOR, "{\"note\":\"x\"}", true},
    {"POST", "/v1/sagas/{id}/pause", ROLE_OPERATOR, "{\"note\":\"x\"}", true},
    {"POST", "/v1/sagas/{id}/resume", ROLE_OPERATOR, "{\"note\":\"x\"}", true},
    {"POST", "/v1/sagas/{id}/rerun", ROLE_OPERATOR, "{\"note\":\"x\"}", true},
    {"POST", "/v1/sagas/{id}/tools", ROLE_OPERATOR, "{\"tool\":\"quick\",\"version\":1,\"note\":\"x\"}", true},
    {"POST", "/v1/operations/{key}/bypass", ROLE_OPERATOR, "{\"reason\":\"x\"}", true},
    {"POST", "/v1/operations/{key}/cost", ROLE_OPERATOR, "{\"micros\":1,\"note\":\"x\"}", true},
    {"POST", "/v1/operations/{key}/resolve", ROLE_OPERATOR, "{\"as\":\"happened\",\"note\":\"x\"}", true},
    {"POST", "/v1/escalations/{n}/acknowledge", ROLE_OPERATOR, "{\"note\":\"x\"}", true},
    {"POST", "/v1/escalations/{n}/assign", ROLE_OPERATOR, "{\"to\":\"ada\",\"note\":\"x\"}", true},
    {"POST", "/v1/escalations/{n}/comment", ROLE_OPERATOR, "{\"note\":\"x\"}", true},
    {"POST", "/v1/escalations/{n}/resolve", ROLE_OPERATOR, "{\"action\":\"probe\",\"note\":\"x\"}", true},
    {"POST", "/v1/holds", ROLE_OPERATOR, "{\"tool\":\"card.pay\",\"note\":\"x\"}", false},
    {"POST", "/v1/holds/{n}/release", ROLE_OPERATOR, "{\"note\":\"x\"}", true},
    {"POST", "/v1/tools/{name}/breaker", ROLE_OPERATOR, "{\"state\":\"closed\",\"note\":\"x\"}", true},
    {"POST", "/v1/schedules", ROLE_OPERATOR, "{\"name\":\"nightly\",\"saga\":\"quick\",\"every\":\"1m\"}", false},
    {"DELETE", "/v1/schedules/{name}", ROLE_OPERATOR, NULL, true},
    {"POST", "/v1/schedules/{name}/hold", ROLE_OPERATOR, "{\"note\":\"x\"}", true},
    {"POST", "/v1/schedules/{name}/release", ROLE_OPERATOR, "{\"note\":\"x\"}", true},
    {"POST", "/v1/bulk", ROLE_OPERATOR, "{\"action\":\"pause\",\"filter\":{\"saga\":\"quick\"},\"note\":\"x\"}", false},
    {"POST", "/v1/bulk/{bulk}/run", ROLE_OPERATOR, "{}", true},
    {"POST", "/v1/bulk/{bulk}/stop", ROLE_OPERATOR, "{\"note\":\"x\"}", true},
    {"POST", "/v1/notifications/replay", ROLE_OPERATOR, "{\"note\":\"x\"}", false},
    /* An agent never defines. */
    {"POST", "/v1/definitions", ROLE_ADMIN, "{\"tools\":[]}", false},
};

static const struct test_token tokens[] = {
    {"a-reader", "default", "reader", NULL},       {"an-agent", "default", "agent", NULL},
    {"an-operator", "default", "operator", NULL},  {"an-admin", "default", "admin", NULL},
    {"other-agent", "other", "agent", NULL},       {"other-admin", "other", "admin", NULL},
    {"a-both", "default,other", "operator", NULL}, {"everywhere", "*", "admin", NULL},
    {"reads-all", "*", "operator", NULL},
};

static struct api_host host;
static char tokens_path[] = "/tmp/sagad-test-rights-XXXXXX";
static struct raw_answer answer;

static int setup(void **state)
{
    int fd = mkstemp(tokens_path);

    (void)state;
    if (fd < 0) {
        return -1;
    }
    (void)close(fd);
    token_file_write(tokens_path, tokens, COUNT_OF(tokens));
    host = api_host_start(&(struct api_options){.tokens_file = tokens_path});
    return host.port ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(tokens_path);
    return api_host_stop(&host);
}

static void ask_as(const char *token, const char *method, const char *target, const char *body)
{
    char head[256];

    (void)snprintf(head, sizeof(head), "Authorization: Bearer %s\r\nSagad-Console: 1\r\n", token);
    raw_ask(host.port, method, target, head, body, &answer);
}

static size_t right_of(const struct route *route)
{
    for (size_t i = 0; i < COUNT_OF(rights); i++) {
        if (strcmp(rights[i].method, route->method) == 0 && strcmp(rights[i].pattern, route->pattern) == 0) {
            return i;
        }
    }
    fail_msg("%s %s: say in this file who may", route->method, route->pattern);
    return 0;
}

/* Copies the first text of 36 characters behind `member` in the answer. */
static void take_uuid(const char *member, char out[37])
{
    const char *at = strstr(answer.body, member);

    assert_non_null(at);
    (void)snprintf(out, 37, "%.36s", at + strlen(member));
}

/* Makes a thing of each kind in the namespace "default", and names it in the path. */
static void fill(const char *pattern, char *out, size_t size)
{
    static unsigned opened;
    char id[37], key[37], body[64];
    const char *brace = strchr(pattern, '{');

    (void)snprintf(body, sizeof(body), "{\"open\":true,\"id\":\"b-%u\"}", ++opened);
    ask_as("an-agent", "POST", "/v1/sagas", body);
    assert_int_equal(answer.status, 201);
    take_uuid("{\"id\":\"", id);
    ask_as("an-agent", "POST", "/v1/operations", "{\"run\":\"fill\",\"tool\":\"t.one\"}");
    assert_int_equal(answer.status, 200);
    take_uuid("{\"key\":\"", key);
    if (!brace) {
        (void)snprintf(out, size, "%s", pattern);
        return;
    }
    if (strncmp(pattern, NAMED, sizeof(NAMED) - 1) == 0) {
        const char *end = pattern + sizeof(NAMED) - 1;

        (void)snprintf(out, size, "/v1/sagas/by-business-id/~open/b-%u%s", opened,
                       strncmp(end, "/signals", 8) == 0 ? "/signals/paid" : end);
        return;
    }
    if (strncmp(pattern, "/v1/schedules/", 14) == 0) {
        (void)snprintf(out, size, "/v1/schedules/nightly%s", strchr(brace, '}') + 1);
        return;
    }
    if (strncmp(pattern, "/v1/bulk/", 9) == 0) {
        (void)snprintf(out, size, "/v1/bulk/01890a5d-ac96-774b-bcce-b302099a0007%s", strchr(brace, '}') + 1);
        return;
    }
    if (strncmp(pattern, "/v1/grants/", 11) == 0) {
        ask_as("an-agent", "POST", "/v1/grants", "{\"run\":\"fill\"}");
        assert_int_equal(answer.status, 201);
        take_uuid("{\"id\":\"", id);
    }
    const char *thing = strncmp(brace, "{id}", 4) == 0    ? id
                        : strncmp(brace, "{key}", 5) == 0 ? key
                        : strncmp(brace, "{n}", 3) == 0   ? "1"
                                                          : "quick";
    const char *rest = strchr(brace, '}') + 1;
    const char *second = strchr(rest, '{');

    (void)snprintf(out, size, "%.*s%s%.*s%s", (int)(brace - pattern), pattern, thing,
                   second ? (int)(second - rest) : (int)strlen(rest), rest, second ? "paid" : "");
}

TEST(the_table_says_for_every_route_who_may)
{
    for (size_t i = 0; i < route_count; i++) {
        assert_int_equal(route_least(&routes[i]), rights[right_of(&routes[i])].least);
    }
    assert_int_equal(route_count, COUNT_OF(rights));
}

static bool is_by_grant(const struct route *route)
{
    return strcmp(route->pattern, "/mcp/g/{secret}") == 0;
}

TEST(each_role_may_what_the_table_says_and_no_more)
{
    for (size_t i = 0; i < route_count; i++) {
        size_t right = right_of(&routes[i]);

        for (size_t k = 0; k < (is_by_grant(&routes[i]) ? 0 : 4); k++) {
            enum role role = (enum role)(ROLE_READER + (int)k);
            char path[128];

            fill(routes[i].pattern, path, sizeof(path));
            ask_as(tokens[k].name, routes[i].method, path, rights[right].body);
            bool refused = answer.status == 403 && strstr(answer.body, "urn:sagad:problem:forbidden");

            bool above =
                strcmp(routes[i].pattern, "/v1/engines") == 0; /* an admin of one namespace has too few rights */

            if (refused != (above || role < rights[right].least) || answer.status == 401 || answer.status == 422) {
                fail_msg("%s %s as %s: got %d %s", routes[i].method, path, tokens[k].name, answer.status, answer.body);
            }
        }
    }
}

TEST(requests_without_a_token_get_only_public_answers)
{
    for (size_t i = 0; i < route_count; i++) {
        char path[128];

        fill(routes[i].pattern, path, sizeof(path));
        raw_ask(host.port, routes[i].method, path, "", rights[right_of(&routes[i])].body, &answer);
        assert_int_equal(answer.status == 401, route_least(&routes[i]) != ROLE_NONE);
    }
}

TEST(things_of_another_namespace_are_404_everywhere)
{
    for (size_t i = 0; i < route_count; i++) {
        size_t right = right_of(&routes[i]);
        char path[128];

        if (!rights[right].thing) {
            continue;
        }
        fill(routes[i].pattern, path, sizeof(path));
        ask_as("other-admin", routes[i].method, path, rights[right].body);
        if (answer.status != 404 || !strstr(answer.body, "urn:sagad:problem:not-found")) {
            fail_msg("%s %s of another namespace: got %d %s", routes[i].method, path, answer.status, answer.body);
        }
        if (rights[right].least <= ROLE_AGENT) {
            ask_as("other-agent", routes[i].method, path, rights[right].body);
            assert_int_equal(answer.status, 404);
        }
        ask_as("an-admin", routes[i].method, path, rights[right].body); /* the thing was there all the time */
        assert_int_not_equal(answer.status, 404);
    }
}

TEST(lists_show_only_what_belongs_to_the_namespace)
{
    static const char *const lists[] = {"/v1/sagas", "/v1/operations", "/v1/escalations"};
    char path[128];

    fill("/", path, sizeof(path));
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        ask_as("an-agent", "GET", lists[i], NULL);
        assert_null(strstr(answer.body, "\"items\":[]"));
        ask_as("other-admin", "GET", lists[i], NULL);
        assert_int_equal(answer.status, 200);
        assert_non_null(strstr(answer.body, "\"items\":[]"));
    }
}

/* The same names in two namespaces are two operations, and neither learns of the other. */
TEST(the_same_call_in_another_namespace_is_another_operation)
{
    static const char body[] = "{\"run\":\"shared\",\"tool\":\"t.one\",\"args\":{\"n\":1}}";
    char first[37], second[37];

    ask_as("an-agent", "POST", "/v1/operations", body);
    take_uuid("{\"key\":\"", first);
    ask_as("other-agent", "POST", "/v1/operations", body);
    assert_int_equal(answer.status, 200);
    assert_false(raw_head_has(&answer, "Idempotent-Replayed"));
    take_uuid("{\"key\":\"", second);
    assert_string_not_equal(first, second);
}

static void ask_in(const char *token, const char *namespace, const char *target)
{
    char head[256];

    (void)snprintf(head, sizeof(head), "Authorization: Bearer %s\r\nSagad-Namespace: %s\r\n", token, namespace);
    raw_ask(host.port, "GET", target, head, NULL, &answer);
}

TEST(a_token_of_several_namespaces_acts_in_the_one_that_the_request_names)
{
    static char refused[sizeof(answer.body)];
    char path[128];

    fill("/v1/sagas/{id}", path, sizeof(path));
    ask_as("a-both", "GET", path, NULL);
    assert_int_equal(answer.status, 200); /* without a name it is the first */
    ask_in("a-both", "default", path);
    assert_int_equal(answer.status, 200);
    ask_in("a-both", "other", path);
    assert_int_equal(answer.status, 404);
    ask_in("a-both", "other", "/v1/sagas");
    assert_non_null(strstr(answer.body, "\"items\":[]"));
    ask_in("a-both", "other", "/v1/me");
    assert_non_null(strstr(answer.body, "\"namespace\":\"other\",\"namespaces\":[\"default\",\"other\"]"));
    ask_in("everywhere", "default", path);
    assert_int_equal(answer.status, 200);
    ask_in("reads-all", "default", path); /* only an admin of "*" is above all namespaces */
    assert_int_equal(answer.status, 403);
    /* A namespace that is there is refused as one that is not. */
    ask_in("an-agent", "nowhere", path);
    assert_int_equal(answer.status, 403);
    (void)memcpy(refused, answer.body, sizeof(refused));
    ask_in("an-agent", "other", path);
    assert_int_equal(answer.status, 403);
    assert_string_equal(answer.body, refused);
    ask_in("a-both", "*", path);
    assert_int_equal(answer.status, 403);
    ask_in("a-both", "", path);
    assert_int_equal(answer.status, 403);
}

TEST_PROGRAM(setup, teardown)
