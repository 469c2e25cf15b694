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
    (void)state;
    token_file_new(tokens_path, tokens, COUNT_OF(tokens));
    host = api_host_start(&(struct api_options){.tokens_file = tokens_path});
    open_host = api_host_start(&(struct api_options){0});
    return 0;
}

/* --- asking --- */

static const struct raw_answer *ask_as(const char *token, const char *method, const char *target, const char *body)
{
    return raw_ask_as(host.port, token, method, target, body, &answer);
}

static struct made make_as(const char *token, const char *body)
{
    struct made made;

    ask_as(token, "POST", "/v1/grants", body);
    if (answer.status != 201) {
        fail_msg("got %d %s", answer.status, answer.body);
    }
    answer_take(&answer, "\"id\":\"", 36, made.id);
    answer_take(&answer, "\"token\":\"", GRANT_TOKEN_BYTES - 1, made.token);
    return made;
}

static const struct raw_answer *mcp(const struct made *grant, const char *head, const char *body)
{
    return raw_ask(host.port, "POST", text_of("/mcp/g/%s", grant->token), head, body, &answer);
}

static void end_grant(const struct made *grant)
{
    expect(ask_as("an-agent", "DELETE", text_of("/v1/grants/%s", grant->id), NULL), 200, "\"status\":\"revoked\"",
           "\"revoked\":{\"at\":\"20");
}

/* --- what a grant is --- */

TEST(a_grant_gives_a_token_and_an_address_that_are_good_at_mcp_only)
{
    struct made grant = make_as("an-agent", "{\"run\":\"chat-1\"}");

    expect_body(&answer, "\"status\":\"in-force\",\"run\":\"chat-1\",\"saga\":null,\"tools\":null",
                "\"issuer\":\"an-agent\"", text_of("\"url\":\"/mcp/g/%s\"", grant.token));
    expect_head(&answer, "\r\nCache-Control: no-store\r\n");
    expect(mcp(&grant, "", LIST), 200, "\"name\":\"t_one\"", "\"idempotentHint\":true"); /* the run is known */
    expect(ask_as(grant.token, "POST", "/mcp", CALL("t_one", "", "{\"n\":1}")), 200, "\"isError\":false");
    /* By the address it is the same run. */
    expect(mcp(&grant, "", CALL("t_one", "", "{\"n\":1}")), 200, "\"sagad/replayed\":true");
    /* And the run is the one that it names. */
    expect(ask_as("an-agent", "POST", "/mcp", CALL("t_one", "\"sagad/run\":\"chat-1\"", "{\"n\":1}")), 200,
           "\"sagad/replayed\":true");
    expect(mcp(&grant, "Authorization: Bearer an-agent\r\n", LIST), 400);
    expect(ask_as(grant.token, "GET", "/v1/sagas", NULL), 403);
    expect(ask_as(grant.token, "POST", "/v1/grants", "{\"run\":\"chat-2\"}"), 403);
    expect(ask_as(grant.token, "GET", "/livez", NULL), 200);
}

TEST(a_token_that_differs_anywhere_is_no_grant_and_all_refusals_are_the_same)
{
    struct made grant = make_as("an-agent", "{\"run\":\"chat-digits\"}"), changed = grant;
    static char refused[sizeof(answer.body)];

    for (size_t i = sizeof(GRANT_PREFIX) - 1; i < GRANT_TOKEN_BYTES - 1; i++) {
        changed = grant;
        changed.token[i] = changed.token[i] == '0' ? '1' : '0';
        expect(mcp(&changed, "", LIST), 401);
        if (refused[0]) {
            assert_string_equal(answer.body, refused);
        }
        (void)memcpy(refused, answer.body, sizeof(refused));
        expect_none(&answer, grant.id);
    }
    (void)snprintf(changed.token, sizeof(changed.token), "short");
    expect(mcp(&changed, "", LIST), 401);
    assert_string_equal(answer.body, refused);
}

TEST(no_list_shows_a_secret)
{
    struct made grant = make_as("an-agent", "{\"run\":\"chat-list\"}");
    struct digest digest = digest_sha256(slice_of(grant.token)), token = digest_sha256(SLICE("an-agent"));
    char hex[65];

    expect(ask_as("a-reader", "GET", "/v1/grants?all=true&limit=500", NULL), 200, grant.id);
    expect_none(&answer, GRANT_PREFIX, grant.token + sizeof(GRANT_PREFIX) - 1 + 32);
    digest_hex(&digest, hex);
    expect_none(&answer, hex);
    digest_hex(&token, hex);
    expect_none(&answer, hex);
    expect(ask_as("other-agent", "GET", "/v1/grants?all=true", NULL), 200, "\"items\":[]");
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
    expect(ask_as("a-reader", "POST", "/v1/grants", "{\"run\":\"r\"}"), 403);
    expect(ask_as("an-agent", "POST", "/v1/grants", "{\"saga\":\"01890a5d-ac96-774b-bcce-b30209ffffff\"}"), 404);
}

TEST(a_grant_lasts_no_longer_than_its_issuer_where_nobody_says_how_long)
{
    int64_t ms;
    char text[25];

    make_as("brief", "{\"run\":\"r\"}");
    answer_take(&answer, "\"expires_at\":\"", 24, text);
    assert_true(instant_parse(slice_of(text), &ms));
    assert_true(ms <= INT64_C(1798761600000)); /* 2027-01-01 */
}

TEST(a_grant_of_another_namespace_sees_nothing_of_this_one)
{
    struct made grant = make_as("other-agent", "{\"run\":\"chat-1\"}");

    expect(mcp(&grant, "", LIST), 200, "\"name\":\"saga_open\"");
    expect_none(&answer, "t_one");
    expect(mcp(&grant, "Sagad-Namespace: default\r\n", LIST), 403);
    expect(mcp(&grant, "Sagad-Namespace: other\r\n", LIST), 200);
}

TEST(only_the_tools_that_were_granted_are_listed_and_called)
{
    struct made grant = make_as("an-agent", "{\"run\":\"chat-tools\",\"tools\":[\"t.one\",\"saga_status\"]}");

    expect(mcp(&grant, "", LIST), 200, "\"name\":\"t_one\"", "\"name\":\"saga_status\"");
    expect_none(&answer, "\"name\":\"t_read\"", "\"name\":\"saga_open\"");
    expect(mcp(&grant, "", CALL("t_one", "", "{}")), 200, "\"isError\":false");
    expect(mcp(&grant, "", CALL("t_read", "", "{}")), 200, "there is no tool of this name");
    expect(mcp(&grant, "", CALL("saga_open", "", "{\"name\":\"x\"}")), 200, "there is no tool of this name");
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
    expect(mcp(&grant, "Saga-Run: chat-a\r\nSaga-Turn: t-1\r\n",
               CALL("t_one", "\"sagad/scope\":\"kettle\",\"threadId\":\"x\",\"vscode.requestId\":\"y\"", "{}")),
           200, "\"isError\":false");
}

TEST(a_grant_for_a_saga_puts_every_call_into_it_and_begins_no_other)
{
    char id[37], body[128], text[512];
    struct made grant;

    ask_as("an-agent", "POST", "/v1/sagas", "{\"open\":true}");
    answer_take(&answer, "{\"id\":\"", 36, id);
    (void)snprintf(body, sizeof(body), "{\"saga\":\"%s\"}", id);
    grant = make_as("an-agent", body);
    mcp(&grant, "", LIST);
    expect_none(&answer, "\"name\":\"saga_open\"");
    expect(mcp(&grant, "", CALL("t_one", "", "{}")), 200, "\"isError\":false");
    expect(mcp(&grant, "", CALL("saga_status", "", "{}")), 200, "\"tool\":\"t.one\"");
    mcp(&grant, "", CALL("t_one", "\"sagad/run\":\"r\"", "{}"));
    (void)snprintf(
        text, sizeof(text),
        "the grant \\\"%s\\\" says that the call is for the saga %s, and _meta \\\"sagad/run\\\" says that the "
        "run is \\\"r\\\"",
        grant.id, id);
    expect_body(&answer, text);
    expect(mcp(&grant, "", CALL("t_one", "", "{\"saga\":\"01890a5d-ac96-774b-bcce-b302099a0007\"}")), 200,
           "and the argument \\\"saga\\\" names the saga 01890a5d-ac96-774b-bcce-b302099a0007");
    expect(mcp(&grant, "", CALL("saga_open", "", "{\"name\":\"x\"}")), 200, "there is no tool of this name");
}

/* --- the end --- */

TEST(a_grant_that_was_revoked_is_refused_at_once_and_a_repeat_changes_nothing)
{
    struct made grant = make_as("an-agent", "{\"run\":\"chat-end\"}");
    static char first[sizeof(answer.body)];

    expect(mcp(&grant, "", LIST), 200);
    end_grant(&grant);
    (void)memcpy(first, answer.body, sizeof(first));
    expect(mcp(&grant, "", LIST), 401);
    end_grant(&grant);
    assert_string_equal(answer.body, first);
    ask_as("an-agent", "GET", "/v1/grants?limit=500", NULL);
    expect_none(&answer, grant.id);
    expect(ask_as("an-agent", "GET", "/v1/grants?all=true&limit=500", NULL), 200, grant.id);
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
    expect(&answer, 401, "this token was revoked, or has expired, while its request was under way");
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
    expect(&answer, 200, "\"isError\":false");
    len = snprintf(head, sizeof(head),
                   "POST /mcp/g/%s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n%s",
                   grant.token, sizeof(LIST) - 1, LIST);
    fd = raw_connect(host.port);
    raw_send(fd, head, (size_t)len);
    end_call(fd, "\r\n0\r\n\r\n");
    expect(&answer, 200);
}

TEST(a_body_that_comes_after_the_end_of_its_grant_does_nothing)
{
    const struct timespec pause = {0, 250000000}; /* so long that the grant is asked for again: grant_is_fresh() */
    struct made grant = make_as("an-agent", "{\"run\":\"chat-late\"}");
    int fd = begin_call("/mcp", grant.token, sizeof(late) - 1);

    end_grant(&grant);
    (void)nanosleep(&pause, NULL);
    end_call(fd, late);
    expect(&answer, 401);
    ask_as("an-agent", "GET", "/v1/operations?run=chat-late", NULL);
    expect_none(&answer, "chat-late");
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
    expect(&answer, 401, "nothing was done");
    ask_as("an-agent", "GET", "/v1/operations?run=late", NULL);
    expect_none(&answer, "\"run\":\"late\"");
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
        expect(&answer, 401);
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
            expect(&answer, targets[k].status);
        }
    }
    assert_true(most_memory_kib() - before_kib < STRANGERS * STRANGE_BODY / 1024 / 3);
}

/* The file is looked at again and again. */
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
        answer_take(&answer, "\"id\":\"", 36, grant.id);
        answer_take(&answer, "\"token\":\"", GRANT_TOKEN_BYTES - 1, grant.token);
        expect(mcp(&grant, "", LIST), 200);
        token_file_write(tokens_path, changed, COUNT_OF(changed) - !ends[i].issuer.name);
        until_refused(&grant, ends[i].name);
        expect(ask_as("an-agent", "GET", "/v1/grants?limit=500", NULL), 200, "\"status\":\"issuer-gone\"");
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
    answer_take(&answer, "\"token\":\"", GRANT_TOKEN_BYTES - 1, grant.token);
    expect(mcp(&grant, "", LIST), 200, "t_one");
    token_file_write(tokens_path, bound, COUNT_OF(bound));
    for (int i = 0; strstr(answer.body, "t_one") && i < PATIENCE_MS / 50; i++) {
        (void)nanosleep(&pause, NULL);
        mcp(&grant, "", LIST);
    }
    expect_body(&answer, "t_read");
    expect_none(&answer, "t_one");
    expect(mcp(&grant, "", CALL("t_one", "", "{}")), 200, "there is no tool of this name");
    token_file_write(tokens_path, tokens, COUNT_OF(tokens));
}

TEST(a_grant_ends_when_its_time_is_over)
{
    char instant[INSTANT_TEXT_BYTES];
    struct made grant;
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    instant_text((int64_t)now.tv_sec * 1000 + 3000, instant);
    ask_as("an-agent", "POST", "/v1/grants", text_of("{\"run\":\"chat-time\",\"expires_at\":\"%s\"}", instant));
    if (answer.status == 422) { /* this machine stood still for so long */
        expect_body(&answer, "in the future");
        return;
    }
    answer_take(&answer, "\"id\":\"", 36, grant.id);
    answer_take(&answer, "\"token\":\"", GRANT_TOKEN_BYTES - 1, grant.token);
    until_refused(&grant, "its time");
}

TEST(a_service_without_tokens_has_grants_too)
{
    char path[256];

    expect(raw_ask(open_host.port, "POST", "/v1/grants", "", "{\"run\":\"r\",\"tools\":[\"t.read\"]}", &answer), 201);
    (void)snprintf(path, sizeof(path), "/mcp/g/%s", strstr(answer.body, GRANT_PREFIX));
    path[7 + GRANT_TOKEN_BYTES - 1] = '\0';
    expect(raw_ask(open_host.port, "POST", path, "", LIST, &answer), 200, "t_read");
    expect_none(&answer, "t_one");
}

TEST_PROGRAM(setup, api_host_teardown)
