/* Grants over a fake engine: what they allow, what calls under them are for, and how they end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "api/grant.h"
#include "base/instant.h"
#include "tests/api/api_host.h"
#include "tests/api/raw_client.h"
#include "tests/api/token_file.h"
#include "tests/lib/test.h"

#define CALL(tool, meta, args)                                                                                         \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"" tool "\",\"_meta\":{" meta       \
    "},\"arguments\":" args "}}"
#define LIST "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"
#define PATIENCE_MS 60000

static struct api_host host, open_host; /* the second one knows no tokens */
static char tokens_path[] = "/tmp/sagad-test-grants-XXXXXX";
static struct raw_answer answer;

#define OTHERS                                                                                                         \
    {"an-agent", "default", "agent", NULL}, {"other-agent", "other", "agent", NULL},                                   \
        {"a-reader", "default", "reader", NULL},                                                                       \
    {                                                                                                                  \
        "brief", "default", "agent", "2027-01-01T00:00:00Z"                                                            \
    }

static const struct test_token tokens[] = {OTHERS, {"issuer", "default", "agent", NULL}};

struct made {
    char id[37], token[GRANT_TOKEN_BYTES];
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
    host = api_host_start(&(struct api_options){.tokens_file = tokens_path});
    open_host = api_host_start(&(struct api_options){0});
    return host.port && open_host.port ? 0 : -1;
}

static int teardown(void **state)
{
    int a = api_host_stop(&host), b = api_host_stop(&open_host);

    (void)state;
    (void)unlink(tokens_path);
    return a || b;
}

/* --- asking --- */

static void ask_as(const char *token, const char *method, const char *target, const char *body)
{
    char head[512];

    (void)snprintf(head, sizeof(head), "Authorization: Bearer %s\r\n", token);
    raw_ask(host.port, method, target, head, body, &answer);
}

static void take(const char *member, char *out, size_t len)
{
    const char *at = strstr(answer.body, member);

    assert_non_null(at);
    (void)snprintf(out, len + 1, "%s", at + strlen(member));
}

static struct made make_as(const char *token, const char *body)
{
    struct made made;

    ask_as(token, "POST", "/v1/grants", body);
    if (answer.status != 201) {
        fail_msg("got %d %s", answer.status, answer.body);
    }
    take("\"id\":\"", made.id, 36);
    take("\"token\":\"", made.token, GRANT_TOKEN_BYTES - 1);
    return made;
}

static void mcp(const struct made *grant, const char *head, const char *body)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "/mcp/g/%s", grant->token);
    raw_ask(host.port, "POST", path, head, body, &answer);
}

static void must_have(const char *text)
{
    if (!strstr(answer.body, text)) {
        fail_msg("%s is not in %s", text, answer.body);
    }
}

static void must_not_have(const char *text)
{
    if (strstr(answer.body, text)) {
        fail_msg("%s is in %s", text, answer.body);
    }
}

static void end_grant(const struct made *grant)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/v1/grants/%s", grant->id);
    ask_as("an-agent", "DELETE", path, NULL);
    assert_int_equal(answer.status, 200);
    must_have("\"status\":\"revoked\"");
    must_have("\"revoked\":{\"at\":\"20");
}

/* --- what a grant is --- */

TEST(a_grant_gives_a_token_and_an_address_that_are_good_at_mcp_only)
{
    struct made grant = make_as("an-agent", "{\"run\":\"chat-1\"}");
    char address[256];

    must_have("\"status\":\"in-force\",\"run\":\"chat-1\",\"saga\":null,\"tools\":null");
    must_have("\"issuer\":\"an-agent\"");
    (void)snprintf(address, sizeof(address), "\"url\":\"/mcp/g/%s\"", grant.token);
    must_have(address);
    assert_true(raw_head_has(&answer, "\r\nCache-Control: no-store\r\n"));
    mcp(&grant, "", LIST);
    assert_int_equal(answer.status, 200);
    must_have("\"name\":\"t_one\"");
    must_have("\"idempotentHint\":true"); /* the run is known */
    ask_as(grant.token, "POST", "/mcp", CALL("t_one", "", "{\"n\":1}"));
    must_have("\"isError\":false");
    mcp(&grant, "", CALL("t_one", "", "{\"n\":1}"));
    must_have("\"sagad/replayed\":true"); /* by the address it is the same run */
    ask_as("an-agent", "POST", "/mcp", CALL("t_one", "\"sagad/run\":\"chat-1\"", "{\"n\":1}"));
    must_have("\"sagad/replayed\":true"); /* and the run is the one that it names */
    mcp(&grant, "Authorization: Bearer an-agent\r\n", LIST);
    assert_int_equal(answer.status, 400);
    ask_as(grant.token, "GET", "/v1/sagas", NULL);
    assert_int_equal(answer.status, 403);
    ask_as(grant.token, "POST", "/v1/grants", "{\"run\":\"chat-2\"}");
    assert_int_equal(answer.status, 403);
    ask_as(grant.token, "GET", "/livez", NULL);
    assert_int_equal(answer.status, 200);
}

TEST(a_token_that_differs_anywhere_is_no_grant_and_all_refusals_are_the_same)
{
    struct made grant = make_as("an-agent", "{\"run\":\"chat-digits\"}"), changed = grant;
    static char refused[sizeof(answer.body)];

    for (size_t i = sizeof(GRANT_PREFIX) - 1; i < GRANT_TOKEN_BYTES - 1; i++) {
        changed = grant;
        changed.token[i] = changed.token[i] == '0' ? '1' : '0';
        mcp(&changed, "", LIST);
        assert_int_equal(answer.status, 401);
        if (refused[0]) {
            assert_string_equal(answer.body, refused);
        }
        (void)memcpy(refused, answer.body, sizeof(refused));
        must_not_have(grant.id);
    }
    (void)snprintf(changed.token, sizeof(changed.token), "short");
    mcp(&changed, "", LIST);
    assert_int_equal(answer.status, 401);
    assert_string_equal(answer.body, refused);
}

TEST(no_list_shows_a_secret)
{
    struct made grant = make_as("an-agent", "{\"run\":\"chat-list\"}");
    struct digest digest = digest_sha256(slice_of(grant.token)), token = digest_sha256(SLICE("an-agent"));
    char hex[65];

    ask_as("a-reader", "GET", "/v1/grants?all=true&limit=500", NULL);
    assert_int_equal(answer.status, 200);
    must_have(grant.id);
    must_not_have(GRANT_PREFIX);
    must_not_have(grant.token + sizeof(GRANT_PREFIX) - 1 + 32);
    digest_hex(&digest, hex);
    must_not_have(hex);
    digest_hex(&token, hex);
    must_not_have(hex);
    ask_as("other-agent", "GET", "/v1/grants?all=true", NULL);
    must_have("\"items\":[]");
}

/* --- at most its issuer --- */

static const struct {
    const char *name, *token, *body, *says;
} wrong[] = {
    {"neither", "an-agent", "{}", "exactly one of them"},
    {"both", "an-agent", "{\"run\":\"r\",\"saga\":\"01890a5d-ac96-774b-bcce-b302099a0007\"}", "exactly one of them"},
    {"no id", "an-agent", "{\"saga\":\"trip\"}", "\"pointer\":\"/saga\""},
    {"no tools", "an-agent", "{\"run\":\"r\",\"tools\":[]}", "\"pointer\":\"/tools\""},
    {"a tool that is not there", "an-agent", "{\"run\":\"r\",\"tools\":[\"t.one\",\"t.nothing\"]}", "/tools/1"},
    {"a tool that is hidden", "an-agent", "{\"run\":\"r\",\"tools\":[\"t.hidden\"]}", "/tools/0"},
    {"a tool of another namespace", "other-agent", "{\"run\":\"r\",\"tools\":[\"t.one\"]}", "/tools/0"},
    {"a number", "an-agent", "{\"run\":\"r\",\"tools\":[7]}", "/tools/0"},
    {"the past", "an-agent", "{\"run\":\"r\",\"expires_at\":\"2020-01-01T00:00:00Z\"}", "in the future"},
    {"no time", "an-agent", "{\"run\":\"r\",\"expires_at\":\"soon\"}", "RFC 3339"},
    {"for ever", "an-agent", "{\"run\":\"r\",\"expires_at\":\"9999-01-01T00:00:00Z\"}", "366 days"},
    {"longer than the issuer", "brief", "{\"run\":\"r\",\"expires_at\":\"2027-01-01T00:00:01Z\"}", "no later than"},
    {"a run of control characters", "an-agent", "{\"run\":\"a\\u0007\"}", "\"pointer\":\"/run\""},
    {"a turn that is too long", "an-agent",
     "{\"run\":\"r\",\"turn\":"
     "\"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
     "89012345678901234567890123456789012345678901234567890\"}",
     "\"pointer\":\"/turn\""},
    {"a member that is not known", "an-agent", "{\"run\":\"r\",\"role\":\"admin\"}", "unknown member"},
};

TEST(a_grant_is_refused_where_it_would_be_more_than_its_issuer_or_is_not_right)
{
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        ask_as(wrong[i].token, "POST", "/v1/grants", wrong[i].body);
        if (answer.status != 422 || !strstr(answer.body, wrong[i].says)) {
            fail_msg("%s: got %d %s", wrong[i].name, answer.status, answer.body);
        }
    }
    ask_as("a-reader", "POST", "/v1/grants", "{\"run\":\"r\"}");
    assert_int_equal(answer.status, 403);
    ask_as("an-agent", "POST", "/v1/grants", "{\"saga\":\"01890a5d-ac96-774b-bcce-b30209ffffff\"}");
    assert_int_equal(answer.status, 404);
}

TEST(a_grant_lasts_no_longer_than_its_issuer_where_nobody_says_how_long)
{
    int64_t ms;
    char text[25];

    make_as("brief", "{\"run\":\"r\"}");
    take("\"expires_at\":\"", text, 24);
    assert_true(instant_parse(slice_of(text), &ms));
    assert_true(ms <= INT64_C(1798761600000)); /* 2027-01-01 */
}

TEST(a_grant_of_another_namespace_sees_nothing_of_this_one)
{
    struct made grant = make_as("other-agent", "{\"run\":\"chat-1\"}");

    mcp(&grant, "", LIST);
    must_have("\"name\":\"saga_open\"");
    must_not_have("t_one");
    mcp(&grant, "Sagad-Namespace: default\r\n", LIST);
    assert_int_equal(answer.status, 403);
    mcp(&grant, "Sagad-Namespace: other\r\n", LIST);
    assert_int_equal(answer.status, 200);
}

TEST(only_the_tools_that_were_granted_are_listed_and_called)
{
    struct made grant = make_as("an-agent", "{\"run\":\"chat-tools\",\"tools\":[\"t.one\",\"saga_status\"]}");

    mcp(&grant, "", LIST);
    must_have("\"name\":\"t_one\"");
    must_have("\"name\":\"saga_status\"");
    must_not_have("\"name\":\"t_read\"");
    must_not_have("\"name\":\"saga_open\"");
    mcp(&grant, "", CALL("t_one", "", "{}"));
    must_have("\"isError\":false");
    mcp(&grant, "", CALL("t_read", "", "{}"));
    must_have("there is no tool of this name");
    mcp(&grant, "", CALL("saga_open", "", "{\"name\":\"x\"}"));
    must_have("there is no tool of this name");
}

/* --- what a call is for --- */

static const struct {
    const char *name, *head, *body, *says;
} contradictions[] = {
    {"_meta, run", "", CALL("t_one", "\"sagad/run\":\"chat-b\"", "{}"),
     "says that the run is \\\"chat-a\\\", and _meta \\\"sagad/run\\\" says that it is \\\"chat-b\\\""},
    {"a header, run", "Saga-Run: chat-b\r\n", CALL("t_one", "", "{}"),
     "says that the run is \\\"chat-a\\\", and the header \\\"Saga-Run\\\" says that it is \\\"chat-b\\\""},
    {"_meta, scope", "", CALL("t_one", "\"sagad/scope\":\"lamp\"", "{}"),
     "says that the scope is \\\"kettle\\\", and _meta \\\"sagad/scope\\\" says that it is \\\"lamp\\\""},
    {"a header, scope", "Saga-Scope: lamp\r\n", CALL("t_one", "", "{}"), "the header \\\"Saga-Scope\\\""},
    {"the model, scope", "", CALL("t_one", "", "{\"scope\":\"lamp\"}"), "the argument \\\"scope\\\""},
    {"_meta, turn", "", CALL("t_one", "\"sagad/turn\":\"t-2\"", "{}"),
     "says that the turn is \\\"t-1\\\", and _meta \\\"sagad/turn\\\" says that it is \\\"t-2\\\""},
    {"a header, turn", "Saga-Turn: t-2\r\n", CALL("t_one", "", "{}"), "the header \\\"Saga-Turn\\\""},
    {"a handle of no run", "", CALL("t_one", "", "{\"saga\":\"01890a5d-ac96-774b-bcce-b302099a0007\"}"),
     "the argument \\\"saga\\\" is a saga that was not opened in it"},
};

TEST(what_contradicts_the_grant_is_refused_and_the_sentence_names_both)
{
    struct made grant = make_as("an-agent", "{\"run\":\"chat-a\",\"scope\":\"kettle\",\"turn\":\"t-1\"}");
    char named[64];

    (void)snprintf(named, sizeof(named), "the grant \\\"%s\\\" says", grant.id);
    for (size_t i = 0; i < COUNT_OF(contradictions); i++) {
        mcp(&grant, contradictions[i].head, contradictions[i].body);
        if (!strstr(answer.body, "\"isError\":true") || !strstr(answer.body, named) ||
            !strstr(answer.body, contradictions[i].says)) {
            fail_msg("%s: got %s", contradictions[i].name, answer.body);
        }
    }
    /* What says the same is no contradiction, and what hosts send anyway is none either. */
    mcp(&grant, "Saga-Run: chat-a\r\nSaga-Turn: t-1\r\n",
        CALL("t_one", "\"sagad/scope\":\"kettle\",\"threadId\":\"x\",\"vscode.requestId\":\"y\"", "{}"));
    must_have("\"isError\":false");
}

TEST(a_grant_for_a_saga_puts_every_call_into_it_and_begins_no_other)
{
    char id[37], body[128], text[512];
    struct made grant;

    ask_as("an-agent", "POST", "/v1/sagas", "{\"open\":true}");
    take("{\"id\":\"", id, 36);
    (void)snprintf(body, sizeof(body), "{\"saga\":\"%s\"}", id);
    grant = make_as("an-agent", body);
    mcp(&grant, "", LIST);
    must_not_have("\"name\":\"saga_open\"");
    mcp(&grant, "", CALL("t_one", "", "{}"));
    must_have("\"isError\":false");
    mcp(&grant, "", CALL("saga_status", "", "{}"));
    must_have("\"tool\":\"t.one\"");
    mcp(&grant, "", CALL("t_one", "\"sagad/run\":\"r\"", "{}"));
    (void)snprintf(
        text, sizeof(text),
        "the grant \\\"%s\\\" says that the call is for the saga %s, and _meta \\\"sagad/run\\\" says that the "
        "run is \\\"r\\\"",
        grant.id, id);
    must_have(text);
    mcp(&grant, "", CALL("t_one", "", "{\"saga\":\"01890a5d-ac96-774b-bcce-b302099a0007\"}"));
    must_have("and the argument \\\"saga\\\" names the saga 01890a5d-ac96-774b-bcce-b302099a0007");
    mcp(&grant, "", CALL("saga_open", "", "{\"name\":\"x\"}"));
    must_have("there is no tool of this name");
}

/* --- the end --- */

TEST(a_grant_that_was_revoked_is_refused_at_once_and_a_repeat_changes_nothing)
{
    struct made grant = make_as("an-agent", "{\"run\":\"chat-end\"}");
    static char first[sizeof(answer.body)];

    mcp(&grant, "", LIST);
    assert_int_equal(answer.status, 200);
    end_grant(&grant);
    (void)memcpy(first, answer.body, sizeof(first));
    mcp(&grant, "", LIST);
    assert_int_equal(answer.status, 401);
    end_grant(&grant);
    assert_string_equal(answer.body, first);
    ask_as("an-agent", "GET", "/v1/grants?limit=500", NULL);
    must_not_have(grant.id);
    ask_as("an-agent", "GET", "/v1/grants?all=true&limit=500", NULL);
    must_have(grant.id);
}

TEST(whoever_waits_by_a_grant_that_is_revoked_gets_no_answer_of_the_tool)
{
    struct made grant = make_as("an-agent", "{\"run\":\"chat-wait\"}");
    char request[1024];
    static const char body[] = CALL("t_slow", "", "{}");
    int fd = raw_connect(host.port), len;

    len = snprintf(request, sizeof(request),
                   "POST /mcp/g/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                   "Content-Length: %zu\r\n\r\n%s",
                   grant.token, sizeof(body) - 1, body);
    raw_send(fd, request, (size_t)len);
    do { /* until the call is there */
        ask_as("an-agent", "GET", "/v1/operations?run=chat-wait", NULL);
    } while (!strstr(answer.body, "t.slow"));
    end_grant(&grant);
    raw_read(fd, PATIENCE_MS, &answer);
    (void)close(fd);
    assert_int_equal(answer.status, 401);
    must_have("this token was revoked, or has expired, while its request was under way");
}

/* --- the body of a request comes after its grant was looked up --- */

/* Sends the head of a call by this grant, or by this token, and waits until the service asks for the body. */
static int begin_call(const char *path, const char *token, size_t body_len)
{
    static const char expected[] = "HTTP/1.1 100 Continue\r\n\r\n";
    char head[512], told[sizeof(expected)] = "";
    int fd = raw_connect(host.port);
    int len = snprintf(head, sizeof(head),
                       "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                       "Expect: 100-continue\r\nContent-Length: %zu\r\n\r\n",
                       path, token, body_len);

    raw_send(fd, head, (size_t)len);
    assert_int_equal(recv(fd, told, sizeof(expected) - 1, MSG_WAITALL), sizeof(expected) - 1);
    assert_string_equal(told, expected);
    return fd;
}

static void end_call(int fd, const char *body)
{
    raw_send(fd, body, strlen(body));
    raw_read(fd, PATIENCE_MS, &answer);
    (void)close(fd);
}

/* Calls: by a grant, and by a token. */
static const char late[] = CALL("t_one", "", "{}");
static const char late_token[] = "{\"run\":\"late\",\"tool\":\"t.one\"}";

TEST(a_body_that_its_grant_has_to_wait_for_is_read_whole)
{
    struct made grant = make_as("an-agent", "{\"run\":\"chat-pieces\"}");
    char head[512];
    int fd, len;

    end_call(begin_call("/mcp", grant.token, sizeof(late) - 1), late);
    assert_int_equal(answer.status, 200);
    must_have("\"isError\":false");
    len = snprintf(head, sizeof(head),
                   "POST /mcp/g/%s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n%s",
                   grant.token, sizeof(LIST) - 1, LIST);
    fd = raw_connect(host.port);
    raw_send(fd, head, (size_t)len);
    end_call(fd, "\r\n0\r\n\r\n");
    assert_int_equal(answer.status, 200);
}

TEST(a_body_that_comes_after_the_end_of_its_grant_does_nothing)
{
    const struct timespec pause = {0, 250000000}; /* so long that the grant is asked for again: grant_is_fresh() */
    struct made grant = make_as("an-agent", "{\"run\":\"chat-late\"}");
    int fd = begin_call("/mcp", grant.token, sizeof(late) - 1);

    end_grant(&grant);
    (void)nanosleep(&pause, NULL);
    end_call(fd, late);
    assert_int_equal(answer.status, 401);
    ask_as("an-agent", "GET", "/v1/operations?run=chat-late", NULL);
    must_not_have("chat-late");
}

TEST(a_body_that_comes_after_the_end_of_its_token_does_nothing)
{
    const struct timespec pause = {0, 50000000};
    const struct test_token others[] = {OTHERS};
    int fd = begin_call("/v1/operations", "issuer", sizeof(late_token) - 1);

    token_file_write(tokens_path, others, COUNT_OF(others));
    for (ask_as("issuer", "GET", "/v1/tools", NULL); answer.status != 401; ask_as("issuer", "GET", "/v1/tools", NULL)) {
        (void)nanosleep(&pause, NULL);
    }
    token_file_write(tokens_path, tokens, COUNT_OF(tokens));
    end_call(fd, late_token);
    assert_int_equal(answer.status, 401);
    must_have("nothing was done");
    ask_as("an-agent", "GET", "/v1/operations?run=late", NULL);
    must_not_have("\"run\":\"late\"");
}

TEST(a_body_that_never_comes_does_not_keep_a_stranger_waiting)
{
    static const char *const heads[] = {"Transfer-Encoding: chunked", "Expect: 100-continue\r\nContent-Length: 9"};
    struct made grant = make_as("an-agent", "{\"run\":\"chat-never\"}");

    end_grant(&grant);
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        char head[512];
        int len = snprintf(head, sizeof(head), "POST /mcp/g/%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n", grant.token,
                           heads[i]);
        int fd = raw_connect(host.port);

        raw_send(fd, head, (size_t)len);
        end_call(fd, "");
        assert_int_equal(answer.status, 401);
        assert_true(answer.closed);
    }
}

/* The most memory that the service has had so far. */
static long most_memory_kib(void)
{
    char path[64], line[256];
    FILE *file;
    long kib = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)host.pid);
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kib = strtol(line + 6, NULL, 10);
        }
    }
    (void)fclose(file);
    assert_true(kib > 0);
    return kib;
}

#define STRANGERS 48
#define STRANGE_BODY (1000 * 1000)

/* A body of a stranger is thrown away piece by piece: by no grant, and where no token is needed. */
TEST(the_bodies_of_strangers_are_not_kept)
{
    static const struct {
        const char *path;
        int status;
    } targets[] = {{"/mcp/g/%s", 401}, {"/console/session", 413}, {"/livez", 413}};
    struct made grant = make_as("an-agent", "{\"run\":\"chat-strange\"}");
    static char body[STRANGE_BODY];
    int fds[STRANGERS];
    long before_kib;

    end_grant(&grant);
    memset(body, ' ', sizeof(body));
    before_kib = most_memory_kib();
    for (size_t k = 0; k < COUNT_OF(targets); k++) {
        for (size_t i = 0; i < STRANGERS; i++) {
            char path[256], head[512];
            int len;

            (void)snprintf(path, sizeof(path), targets[k].path, grant.token);
            len = snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n",
                           k == 2 ? "GET" : "POST", path, STRANGE_BODY);
            fds[i] = raw_connect(host.port);
            raw_send(fds[i], head, (size_t)len);
            raw_send(fds[i], body, sizeof(body) - 1);
        }
        for (size_t i = 0; i < STRANGERS; i++) {
            end_call(fds[i], " ");
            assert_int_equal(answer.status, targets[k].status);
        }
    }
    assert_true(most_memory_kib() - before_kib < STRANGERS * STRANGE_BODY / 1024 / 3);
}

/* The file is looked at every two seconds. */
static void until_refused(const struct made *grant, const char *why)
{
    const struct timespec pause = {0, 50000000};

    for (int i = 0; i < PATIENCE_MS / 50; i++) {
        mcp(grant, "", LIST);
        if (answer.status == 401) {
            return;
        }
        (void)nanosleep(&pause, NULL);
    }
    fail_msg("%s: the grant still holds", why);
}

static const struct {
    const char *name;
    struct test_token issuer; /* no name: it is gone */
} ends[] = {
    {"the issuer may no longer call", {"issuer", "default", "reader", NULL}},
    {"the issuer has another namespace", {"issuer", "other", "agent", NULL}},
    {"the time of the issuer is over", {"issuer", "default", "agent", "2020-01-01T00:00:00Z"}},
    {"the issuer is gone", {NULL, NULL, NULL, NULL}},
};

TEST(a_grant_ends_with_its_issuer)
{
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        const struct test_token changed[] = {OTHERS, ends[i].issuer};
        struct made grant;

        token_file_write(tokens_path, tokens, COUNT_OF(tokens));
        do {
            ask_as("issuer", "POST", "/v1/grants", "{\"run\":\"chat-issuer\"}");
        } while (answer.status == 401 || answer.status == 403);
        take("\"id\":\"", grant.id, 36);
        take("\"token\":\"", grant.token, GRANT_TOKEN_BYTES - 1);
        mcp(&grant, "", LIST);
        assert_int_equal(answer.status, 200);
        token_file_write(tokens_path, changed, COUNT_OF(changed) - !ends[i].issuer.name);
        until_refused(&grant, ends[i].name);
        ask_as("an-agent", "GET", "/v1/grants?limit=500", NULL);
        must_have("\"status\":\"issuer-gone\"");
    }
    token_file_write(tokens_path, tokens, COUNT_OF(tokens));
}

/* The issuer is bound to a tool after it has made the grant. */
TEST(a_grant_has_no_tools_that_its_issuer_has_not)
{
    const struct timespec pause = {0, 50000000};
    const struct test_token bound[] = {OTHERS, {"issuer", "default", "agent", NULL, "t.read"}};
    struct made grant;

    do { /* the test before has put the issuer back just now */
        ask_as("issuer", "POST", "/v1/grants", "{\"run\":\"chat-bound\"}");
    } while (answer.status == 401);
    take("\"token\":\"", grant.token, GRANT_TOKEN_BYTES - 1);
    mcp(&grant, "", LIST);
    must_have("t_one");
    token_file_write(tokens_path, bound, COUNT_OF(bound));
    for (int i = 0; strstr(answer.body, "t_one") && i < PATIENCE_MS / 50; i++) {
        (void)nanosleep(&pause, NULL);
        mcp(&grant, "", LIST);
    }
    must_not_have("t_one");
    must_have("t_read");
    mcp(&grant, "", CALL("t_one", "", "{}"));
    must_have("there is no tool of this name");
    token_file_write(tokens_path, tokens, COUNT_OF(tokens));
}

TEST(a_grant_ends_when_its_time_is_over)
{
    char body[128], instant[INSTANT_TEXT_BYTES];
    struct made grant;
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    instant_text((int64_t)now.tv_sec * 1000 + 3000, instant);
    (void)snprintf(body, sizeof(body), "{\"run\":\"chat-time\",\"expires_at\":\"%s\"}", instant);
    ask_as("an-agent", "POST", "/v1/grants", body);
    if (answer.status == 422) { /* this machine stood still for so long */
        must_have("in the future");
        return;
    }
    take("\"id\":\"", grant.id, 36);
    take("\"token\":\"", grant.token, GRANT_TOKEN_BYTES - 1);
    until_refused(&grant, "its time");
}

TEST(a_service_without_tokens_has_grants_too)
{
    char path[256];

    raw_ask(open_host.port, "POST", "/v1/grants", "", "{\"run\":\"r\",\"tools\":[\"t.read\"]}", &answer);
    assert_int_equal(answer.status, 201);
    (void)snprintf(path, sizeof(path), "/mcp/g/%s", strstr(answer.body, GRANT_PREFIX));
    path[7 + GRANT_TOKEN_BYTES - 1] = '\0';
    raw_ask(open_host.port, "POST", path, "", LIST, &answer);
    assert_int_equal(answer.status, 200);
    must_have("t_read");
    must_not_have("t_one");
}

TEST_PROGRAM(setup, teardown)
