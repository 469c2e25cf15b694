/* The promises of the API, tested over a fake engine and real sockets. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/api/api_host.h"
#include "tests/api/raw_client.h"
#include "tests/api/token_file.h"
#include "tests/lib/test.h"

static struct api_host host;        /* the host without tokens */
static struct api_host with_tokens; /* the host with a file of tokens */
static char tokens_path[] = "/tmp/sagad-test-tokens-XXXXXX";
static struct raw_answer answer;

/* The last one comes late: the file is written without it, and with it. */
static const struct test_token tokens[] = {
    {"a-reader", "default", "reader", NULL},
    {"an-agent", "default", "agent", NULL},
    {"an-operator", "default", "operator", NULL},
    {"an-admin", "default", "admin", NULL},
    {"other-admin", "other", "admin", NULL},
    {"expired", "default", "admin", "2020-01-01T00:00:00Z"},
    {"above-all", "*", "admin", NULL},
    {"all-reader", "*", "reader", NULL},
    {"late", "default", "admin", NULL},
};

static int setup(void **state)
{
    (void)state;
    token_file_new(tokens_path, tokens, COUNT_OF(tokens) - 1);
    host = api_host_start(&(struct api_options){.heartbeat_ms = 300});
    with_tokens = api_host_start(&(struct api_options){.tokens_file = tokens_path});
    return 0;
}

static const struct raw_answer *ask(const char *method, const char *target, const char *body)
{
    return raw_ask(host.port, method, target, "", body, &answer);
}

static const struct raw_answer *ask_as(const char *token, const char *method, const char *target, const char *body)
{
    return raw_ask_as(with_tokens.port, token, method, target, body, &answer);
}

/* Does `text` come within this time? The text can still be read afterwards. */
static bool comes(int fd, const char *text, int patience_ms)
{
    static char bytes[65536];

    for (int waited_ms = 0; waited_ms < patience_ms; waited_ms += 20) {
        ssize_t n = recv(fd, bytes, sizeof(bytes) - 1, MSG_PEEK | MSG_DONTWAIT);

        bytes[n > 0 ? n : 0] = '\0';
        if (strstr(bytes, text)) {
            return true;
        }
        (void)usleep(20000);
    }
    return false;
}

static void start(const char *body, char id[37])
{
    expect(ask("POST", "/v1/sagas", body), 201);
    assert_memory_equal(answer.body, "{\"id\":\"", 7);
    answer_take(&answer, "{\"id\":\"", 36, id);
}

/* --- starting --- */

TEST(a_start_is_201_with_a_location)
{
    expect(ask("POST", "/v1/sagas", "{\"saga\":\"quick\",\"input\":{\"n\":1.50}}"), 201, "\"input\":{\"n\":1.50}");
    expect_head(&answer, "\r\nLocation: /v1/sagas/0");
}

TEST(the_same_business_id_is_the_same_saga)
{
    char id[37];

    start("{\"saga\":\"slow\",\"id\":\"o-1\",\"input\":{}}", id);
    expect(ask("POST", "/v1/sagas", "{\"saga\":\"slow\",\"id\":\"o-1\",\"input\":{}}"), 200, id);
    expect(ask("POST", "/v1/sagas", "{\"saga\":\"slow\",\"id\":\"o-1\",\"input\":{\"a\":1}}"), 422,
           "urn:sagad:problem:other-input");
}

TEST(an_idempotency_key_serves_as_business_id)
{
    expect(raw_ask(host.port, "POST", "/v1/sagas", "Idempotency-Key: k-1\r\n", "{\"saga\":\"quick\"}", &answer), 201,
           "\"business_id\":\"k-1\"");
    expect(raw_ask(host.port, "POST", "/v1/sagas", "Idempotency-Key: k-1\r\n", "{\"saga\":\"quick\"}", &answer), 200);
}

TEST(a_wait_holds_until_the_saga_has_ended)
{
    expect(ask("POST", "/v1/sagas?wait=5s", "{\"saga\":\"quick\"}"), 201, "\"status\":\"completed\"");
}

TEST(a_wait_that_is_over_answers_with_the_saga_as_it_is)
{
    expect(ask("POST", "/v1/sagas?wait=100ms", "{\"saga\":\"slow\"}"), 201, "\"status\":\"running\"");
}

TEST(many_wait_and_all_are_woken)
{
    static const char request[] =
        "POST /v1/sagas?wait=30s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\n{\"saga\":\"slow\"}";
    int fds[100], tries = 0;

    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = raw_connect(host.port);
        raw_send(fds[i], request, sizeof(request) - 1);
    }
    (void)usleep(1200000); /* long enough that the server watches the sockets itself */
    api_host_tell(&host, SIGUSR1);
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        while (!comes(fds[i], "HTTP", 2000) && ++tries < 10) {
            api_host_tell(&host, SIGUSR1); /* the client's request may have come when the others had been told */
        }
        expect(raw_read(fds[i], 5000, &answer), 201, "\"status\":\"completed\"");
        (void)close(fds[i]);
    }
}

TEST(a_client_that_leaves_ends_its_wait)
{
    static const char request[] =
        "POST /v1/sagas?wait=200s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\n{\"saga\":\"slow\"}";
    int fd = raw_connect(host.port), tries = 0;

    raw_send(fd, request, sizeof(request) - 1);
    (void)usleep(100000);
    (void)close(fd);
    do { /* the gauge counts connections until only ours is left */
        (void)usleep(100000);
        expect(ask("GET", "/metrics", NULL), 200);
    } while (!raw_body_has(&answer, "sagad_http_connections 1\n") && ++tries < 50);
    assert_true(tries < 50);
}

/* --- what is wrong is named --- */

static const struct {
    const char *name, *method, *target, *body;
    int status;
    const char *says;
} wrongs[] = {
    {"not JSON", "POST", "/v1/sagas", "{\"saga\":", 400, "malformed"},
    {"the same member twice", "POST", "/v1/sagas", "{\"saga\":\"quick\",\"saga\":\"slow\"}", 400, "malformed"},
    {"an array", "POST", "/v1/sagas", "[]", 422, "expected an object"},
    {"no saga", "POST", "/v1/sagas", "{}", 422, "\\\"saga\\\" is missing"},
    {"an empty body", "POST", "/v1/sagas", "", 422, "\\\"saga\\\" is missing"},
    {"an unknown member", "POST", "/v1/sagas", "{\"saga\":\"quick\",\"inptu\":{}}", 422, "\"pointer\":\"/inptu\""},
    {"a saga that is a number", "POST", "/v1/sagas", "{\"saga\":7}", 422, "expected string"},
    {"a tag that is a number", "POST", "/v1/sagas", "{\"saga\":\"quick\",\"tags\":{\"a\":1}}", 422,
     "\"pointer\":\"/tags/a\""},
    {"version 0", "POST", "/v1/sagas", "{\"saga\":\"quick\",\"version\":0}", 422, "\"pointer\":\"/version\""},
    {"an empty business id", "POST", "/v1/sagas", "{\"saga\":\"quick\",\"id\":\"\"}", 422, "\"pointer\":\"/id\""},
    {"an unknown saga", "POST", "/v1/sagas", "{\"saga\":\"nothing\"}", 404, "not-found"},
    {"a wait that is no duration", "POST", "/v1/sagas?wait=5", "{\"saga\":\"quick\"}", 400, "duration"},
    {"a wait of a day", "POST", "/v1/sagas?wait=24h", "{\"saga\":\"quick\"}", 400, "at most 5m"},
    {"an unknown parameter", "GET", "/v1/sagas?limt=5", NULL, 400, "\\\"limt\\\""},
    {"a parameter twice", "GET", "/v1/sagas?limit=5&limit=6", NULL, 400, "twice"},
    {"limit 0", "GET", "/v1/sagas?limit=0", NULL, 400, "limit"},
    {"limit 501", "GET", "/v1/sagas?limit=501", NULL, 400, "500"},
    {"an unknown status", "GET", "/v1/sagas?status=done", NULL, 400, "compensated"},
    {"a group that there is not", "GET", "/v1/sagas?group_by=saga", NULL, 400, "status"},
    {"an unknown status among others", "GET", "/v1/sagas?status=running,done", NULL, 400, "compensated"},
    {"an empty status", "GET", "/v1/sagas?status=", NULL, 400, "compensated"},
    {"nothing that sagas wait for", "GET", "/v1/sagas?waits_for=retry,luck", NULL, 400, "approval"},
    {"a time that is none", "GET", "/v1/sagas?since=yesterday", NULL, 400, "RFC 3339"},
    {"an id that is none", "GET", "/v1/sagas/17", NULL, 404, "not-found"},
    {"an unknown id", "GET", "/v1/sagas/019b3c52-0000-7000-8000-00000000ffff", NULL, 404, "not-found"},
    {"an unknown path", "GET", "/v2/sagas", NULL, 404, "openapi.json"},
    {"a slash too many", "GET", "/v1/sagas/", NULL, 404, "not-found"},
    {"a method that is not there", "DELETE", "/v1/sagas", NULL, 405, "method-not-allowed"},
    {"a bulk job without an action", "POST", "/v1/bulk", "{}", 422, "\"pointer\":\"/action\""},
    {"an outcome that is none", "GET", "/v1/bulk/01890a5d-ac96-774b-bcce-b302099a0007/items?outcome=lost", NULL, 400,
     "changed"},
    {"an id of a bulk job that is none", "GET", "/v1/bulk/7", NULL, 404, "not-found"},
    {"a stop without a note", "POST", "/v1/bulk/01890a5d-ac96-774b-bcce-b302099a0007/stop", "{}", 422, "\"note\\\" is"},
    {"resolve without a note", "POST", "/v1/escalations/1/resolve", "{\"action\":\"retry\"}", 422,
     "\\\"note\\\" is missing"},
    {"an unknown action", "POST", "/v1/escalations/1/resolve", "{\"action\":\"forget\",\"note\":\"x\"}", 422,
     "\"pointer\":\"/action\""},
    {"resolve without a verdict", "POST", "/v1/escalations/1/resolve", "{\"action\":\"resolve\",\"note\":\"x\"}", 422,
     "\"pointer\":\"/as\""},
    {"a definition with a fault", "POST", "/v1/definitions", "{\"tools\":{}}", 422, "\"pointer\":\"/tools\""},
};

TEST(wrong_requests_are_told_what_is_wrong)
{
    for (size_t i = 0; i < COUNT_OF(wrongs); i++) {
        ask(wrongs[i].method, wrongs[i].target, wrongs[i].body);
        if (answer.status != wrongs[i].status || !raw_body_has(&answer, wrongs[i].says)) {
            fail_msg("%s: got %d %s", wrongs[i].name, answer.status, answer.body);
        }
        expect_head(&answer, "application/problem+json");
    }
}

TEST(a_wrong_method_is_told_the_right_ones)
{
    ask("DELETE", "/v1/sagas", NULL);
    expect_head(&answer, "\r\nAllow: POST, GET, HEAD\r\n");
}

TEST(deep_nesting_is_refused)
{
    expect(ask("POST", "/v1/sagas",
               text_of("{\"saga\":\"quick\",\"input\":%.*s%.*s}", 70,
                       "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 70,
                       "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]")),
           400);
}

TEST(a_database_that_is_away_is_503_with_a_time_to_come_back)
{
    api_host_tell(&host, SIGUSR2);
    expect(ask("POST", "/v1/sagas", "{\"saga\":\"quick\"}"), 503, "\"retryable\":true");
    expect_head(&answer, "\r\nRetry-After: ");
    expect(ask("GET", "/readyz", NULL), 503);
    expect(ask("GET", "/livez", NULL), 200);
    api_host_tell(&host, SIGUSR2);
    expect(ask("GET", "/readyz", NULL), 200);
}

TEST(new_work_is_refused_under_an_overload_and_nothing_else_is)
{
    char id[37];

    expect(ask("POST", "/v1/sagas", "{\"saga\":\"slow\"}"), 201);
    answer_take(&answer, "\"id\":\"", 36, id);
    api_host_tell(&host, SIGHUP);
    for (int i = 0; i < 3; i++) {
        expect(ask("POST", "/v1/sagas", text_of("{\"saga\":\"quick\",\"input\":{\"text\":\"%0*d\"}}", 1 + i * 1500, i)),
               503, "\"type\":\"urn:sagad:problem:busy\"", "\"retryable\":true");
        expect_head(&answer, "\r\nRetry-After: 7\r\n"); /* 6.5 s, rounded up to whole seconds */
        assert_false(answer.closed);
    }
    expect(ask("POST", "/v1/sagas", "{\"open\":true}"), 503);
    expect(ask("GET", text_of("/v1/sagas/%s", id), NULL), 200);
    ask("POST", text_of("/v1/sagas/%s/abort", id), "{}");
    assert_true(answer.status == 200 || answer.status == 202);
    expect(ask("GET", "/readyz", NULL), 200);
    api_host_tell(&host, SIGHUP);
    expect(ask("POST", "/v1/sagas", "{\"saga\":\"quick\"}"), 201);
}

/* --- lists and pages --- */

#define VERSION(n, unfinished)                                                                                         \
    "{\"version\":" n ",\"created_at\":\"2026-01-31T09:05:00.250Z\",\"unfinished\":" unfinished "}"
#define ONE "\"versions\":[" VERSION("1", "0") "]"
#define THREE "\"versions\":[" VERSION("2", "3") "," VERSION("1", "0") "]"

TEST(lists_are_paged)
{
    expect(ask("GET", "/v1/definitions?limit=2", NULL), 200);
    assert_string_equal(answer.body,
                        "{\"items\":[{\"kind\":\"saga\",\"name\":\"a\",\"version\":1," ONE "},"
                        "{\"kind\":\"saga\",\"name\":\"b\",\"version\":2," THREE "}],\"next_cursor\":\"2\"}");
    ask("GET", "/v1/definitions?limit=2&cursor=2", NULL);
    assert_string_equal(answer.body,
                        "{\"items\":[{\"kind\":\"saga\",\"name\":\"c\",\"version\":1," ONE "}],\"next_cursor\":null}");
}

TEST(head_is_answered_where_get_is)
{
    expect(raw_ask(host.port, "HEAD", "/v1/definitions", "Connection: close\r\n", NULL, &answer), 200);
}

TEST(an_abort_may_have_no_body)
{
    char id[37];

    start("{\"saga\":\"slow\"}", id);
    expect(ask("POST", text_of("/v1/sagas/%s/abort", id), NULL), 200, "\"status\":\"compensating\"");
}

/* --- the log --- */

TEST(the_log_is_paged_by_entries)
{
    char id[37];

    start("{\"saga\":\"slow\"}", id);
    expect(ask("GET", text_of("/v1/sagas/%s/log?limit=1", id), NULL), 200, "\"seq\":1", "\"next_cursor\":\"1\"");
    expect_none(&answer, "\"seq\":2");
    expect(ask("GET", text_of("/v1/sagas/%s/log?cursor=1", id), NULL), 200, "\"seq\":2", "\"next_cursor\":null");
    expect_none(&answer, "\"seq\":1,");
}

TEST(following_streams_until_the_saga_has_ended)
{
    char id[37], request[200];

    start("{\"saga\":\"slow\"}", id);
    (void)snprintf(request, sizeof(request), "GET /v1/sagas/%s/log?follow=true HTTP/1.1\r\nHost: localhost\r\n\r\n",
                   id);
    int fd = raw_connect(host.port);

    raw_send(fd, request, strlen(request));
    assert_true(comes(fd, ": still here", 20000));
    api_host_tell(&host, SIGUSR1);
    assert_true(comes(fd, "\r\n0\r\n\r\n", 20000)); /* the last chunk ends the stream */
    raw_read(fd, 2000, &answer);
    (void)close(fd);
    /* The line end in the entry starts a second data line. */
    expect(&answer, 200, "id: 1\nevent: saga.started\ndata: {\"seq\":1,", "\ndata:  \"data\":", ": still here\n\n",
           "id: 3\nevent: saga.completed\n");
    expect_head(&answer, "text/event-stream");
}

TEST(following_goes_on_behind_the_last_event_id)
{
    char id[37], path[80];

    start("{\"saga\":\"quick\"}", id);
    (void)usleep(50000);
    (void)snprintf(path, sizeof(path), "/v1/sagas/%s/log", id);
    expect(raw_ask(host.port, "GET", path, "Accept: text/event-stream\r\nLast-Event-ID: 2\r\nConnection: close\r\n",
                   NULL, &answer),
           200, "id: 3\n");
    expect_none(&answer, "id: 2\n");
    expect(raw_ask(host.port, "GET", path, "Accept: text/event-stream\r\nLast-Event-ID: 3\r\n", NULL, &answer), 204);
    expect(
        raw_ask(host.port, "GET", "/v1/sagas/019b3c52-0000-7000-8000-00000000ffff/log?follow=true", "", NULL, &answer),
        404);
}

TEST(a_follower_that_leaves_is_noticed)
{
    char id[37], request[200];
    int tries = 0;

    start("{\"saga\":\"slow\"}", id);
    (void)snprintf(request, sizeof(request), "GET /v1/sagas/%s/log?follow=true HTTP/1.1\r\nHost: localhost\r\n\r\n",
                   id);
    int fd = raw_connect(host.port);

    raw_send(fd, request, strlen(request));
    (void)usleep(200000);
    (void)close(fd);
    do {
        (void)usleep(100000);
        ask("GET", "/metrics", NULL);
    } while (!raw_body_has(&answer, "sagad_http_connections 1\n") && ++tries < 50);
    assert_true(tries < 50);
}

/* --- who may --- */

TEST(web_pages_of_other_origins_are_refused_without_tokens)
{
    static const struct {
        const char *head;
        int status;
    } heads[] = {
        {"Host: evil.example\r\n", 403},
        {"Host: localhost:1\r\nOrigin: http://evil.example\r\n", 403},
        {"Host: localhost:1\r\nOrigin: null\r\n", 403},
        {"Host: 127.0.0.1:8077\r\nOrigin: http://127.0.0.1:8077\r\n", 200},
        {"Host: LocalHost\r\n", 200},
        {"Host: 127.255.0.9:1\r\n", 200},
        {"Host: [::1]:8077\r\n", 200},
        /* Names whose owners let them resolve to loopback. */
        {"Host: 127.attacker.example:8077\r\nOrigin: http://127.attacker.example:8077\r\n", 403},
        {"Host: 127.0.0.1.evil.example\r\n", 403},
        {"Host: 127.0.0.1.\r\n", 403},
        {"Host: 127.1\r\n", 403},
        {"Host: localhost.evil.example\r\n", 403},
        {"Host: 128.0.0.1\r\n", 403},
        {"Host: 127.0.0.1:8077:8077\r\n", 403},
        /* Headers that may come only once. */
        {"Host: localhost:1\r\nOrigin: http://localhost:1\r\nOrigin: http://evil.example\r\n", 403},
        {"Host: localhost\r\nSec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n", 403},
        /* Headers that the browser itself sends. */
        {"Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", 403},
        {"Host: localhost\r\nSec-Fetch-Site: same-site\r\n", 403},
        {"Host: localhost\r\nSec-Fetch-Site: \r\n", 403},
        {"Host: localhost\r\nSec-Fetch-Site: same-origin\r\n", 200},
        {"Host: localhost\r\nSec-Fetch-Site: none\r\n", 200},
        /* Headers that a proxy sends: its clients may be anybody. */
        {"Host: localhost\r\nX-Forwarded-For: 10.1.2.3\r\n", 403},
        {"Host: localhost\r\nForwarded: for=10.1.2.3\r\n", 403},
    };

    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        raw_ask(host.port, "GET", "/v1/stats", heads[i].head, NULL, &answer);
        if (answer.status != heads[i].status) {
            fail_msg("%s: got %d", heads[i].head, answer.status);
        }
    }
    expect(raw_ask(host.port, "POST", "/v1/sagas", "Host: 127.attacker.example\r\n", "{\"saga\":\"quick\"}", &answer),
           403);
}

TEST(a_request_without_a_good_token_is_401)
{
    expect(raw_ask(with_tokens.port, "GET", "/v1/stats", "", NULL, &answer), 401);
    expect_head(&answer, "\r\nWWW-Authenticate: Bearer");
    expect(ask_as("nobody", "GET", "/v1/stats", NULL), 401);
    expect(ask_as("expired", "GET", "/v1/stats", NULL), 401);
    expect(raw_ask(with_tokens.port, "GET", "/readyz", "", NULL, &answer), 200);
}

TEST(a_changed_tokens_file_is_read_again)
{
    int tries = 0;

    expect(ask_as("late", "GET", "/v1/stats", NULL), 401);
    token_file_write(tokens_path, tokens, COUNT_OF(tokens));
    do {
        (void)usleep(200000);
        ask_as("late", "GET", "/v1/stats", NULL);
    } while (answer.status == 401 && ++tries < 30);
    expect(&answer, 200);
}

static int connect_as(const char *token, const char *method, const char *target, const char *body)
{
    char request[400];
    int fd = raw_connect(with_tokens.port);

    (void)snprintf(request, sizeof(request),
                   "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %zu\r\n\r\n%s",
                   method, target, token, strlen(body), body);
    raw_send(fd, request, strlen(request));
    return fd;
}

TEST(a_revoked_token_ends_its_streams_and_its_waits)
{
    char id[37];
    int stream, wait;

    token_file_write(tokens_path, tokens, COUNT_OF(tokens));
    for (int tries = 0; tries < 50 && answer.status != 201; tries++) {
        ask_as("late", "POST", "/v1/sagas", "{\"saga\":\"slow\"}");
        (void)usleep(100000);
    }
    expect(&answer, 201);
    answer_take(&answer, "\"id\":\"", 36, id);
    stream = connect_as("late", "GET", text_of("/v1/sagas/%s/log?follow=true", id), "");
    assert_true(comes(stream, "saga.started", 5000));
    wait = connect_as("late", "GET", text_of("/v1/sagas/%s?wait=60s", id), "");
    token_file_write(tokens_path, tokens, COUNT_OF(tokens) - 1);
    expect(raw_read(wait, 20000, &answer), 401);
    expect_none(&answer, id);
    assert_true(comes(stream, "\r\n0\r\n\r\n", 20000)); /* the last chunk */
    (void)close(stream);
    (void)close(wait);
}

TEST(data_of_all_namespaces_is_for_the_admin_above_them)
{
    static const char *const others[] = {"a-reader", "an-admin", "other-admin", "all-reader"};

    for (size_t i = 0; i < COUNT_OF(others); i++) {
        expect(ask_as(others[i], "GET", "/metrics", NULL), 200, "sagad_metrics_partial 1\n");
        assert_false(raw_body_has(&answer, "sagad_escalations_open") || raw_body_has(&answer, "sagad_info"));
        expect(ask_as(others[i], "GET", "/v1/engines", NULL), 403);
    }
    expect(ask_as("above-all", "GET", "/metrics", NULL), 200, "sagad_escalations_open");
    expect_none(&answer, "sagad_metrics_partial");
    expect(ask_as("above-all", "GET", "/v1/engines", NULL), 200);
    expect(ask("GET", "/metrics", NULL), 200, "sagad_escalations_open"); /* without tokens nobody is told apart */
}

static int64_t now_ms(void)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void until_reader_gets(int status)
{
    int64_t began_ms = now_ms();

    do {
        (void)usleep(20000);
        ask_as("a-reader", "GET", "/v1/stats", NULL);
    } while (answer.status != status && now_ms() - began_ms < 12000);
    expect(&answer, status);
}

TEST(a_tokens_file_that_is_gone_has_no_tokens)
{
    until_reader_gets(200);
    assert_int_equal(unlink(tokens_path), 0);
    until_reader_gets(401);
    token_file_write(tokens_path, tokens, COUNT_OF(tokens) - 1);
    until_reader_gets(200);
}

static void take_a_row_out(void)
{
    token_file_write(tokens_path, tokens + 1, COUNT_OF(tokens) - 2);
}

static void take_the_file_away(void)
{
    assert_int_equal(unlink(tokens_path), 0);
}

/* How long a wait holds whose token is revoked just after a look at the file: the longest time that there is. The best
 * of three rounds is taken, because the machine may be busy with other things. */
static int64_t wait_ends_after_ms(void (*revoke)(void))
{
    int64_t best_ms = INT64_MAX;
    char id[37];

    token_file_write(tokens_path, tokens, COUNT_OF(tokens) - 1);
    until_reader_gets(200);
    ask_as("an-agent", "POST", "/v1/sagas", "{\"saga\":\"slow\"}");
    answer_take(&answer, "\"id\":\"", 36, id);
    for (int round = 0; round < 3; round++) {
        int64_t began_ms;
        int wait;

        token_file_write(tokens_path, tokens, COUNT_OF(tokens) - 1);
        until_reader_gets(200); /* a look has just been */
        wait = connect_as("a-reader", "GET", text_of("/v1/sagas/%s?wait=60s", id), "");
        began_ms = now_ms();
        revoke();
        expect(raw_read(wait, 20000, &answer), 401);
        best_ms = now_ms() - began_ms < best_ms ? now_ms() - began_ms : best_ms;
        (void)close(wait);
        until_reader_gets(401);
    }
    token_file_write(tokens_path, tokens, COUNT_OF(tokens) - 1);
    until_reader_gets(200);
    return best_ms;
}

TEST(a_wait_ends_within_a_second_after_its_token_is_gone)
{
    assert_in_range(wait_ends_after_ms(take_a_row_out), 0, 1000);
    assert_in_range(wait_ends_after_ms(take_the_file_away), 0, 1000);
}

TEST(a_file_with_the_same_size_and_time_is_another_file)
{
    static const struct test_token other = {"a-writer", "default", "reader", NULL};
    static const struct test_token reader = {"a-reader", "default", "reader", NULL};
    char path[sizeof(tokens_path) + 4];
    struct stat st;

    token_file_write(tokens_path, &reader, 1);
    until_reader_gets(200);
    ask_as("an-agent", "GET", "/v1/stats", NULL);
    for (int tries = 0; tries < 50 && answer.status != 401; tries++) {
        (void)usleep(100000);
        ask_as("an-agent", "GET", "/v1/stats", NULL);
    }
    (void)snprintf(path, sizeof(path), "%s.new", tokens_path);
    token_file_write(path, &other, 1);
    assert_int_equal(stat(tokens_path, &st), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){st.st_atim, st.st_mtim}, 0), 0);
    assert_int_equal(rename(path, tokens_path), 0);
    until_reader_gets(401);
    token_file_write(tokens_path, tokens, COUNT_OF(tokens) - 1);
    until_reader_gets(200);
}

TEST(a_tokens_file_that_others_may_write_is_not_read)
{
    static const struct test_token other = {"a-writer", "default", "reader", NULL};

    token_file_write(tokens_path, &other, 1);
    assert_int_equal(chmod(tokens_path, 0620), 0);
    (void)usleep(2000000); /* longer than two looks at the file */
    /* The old tokens still hold. */
    expect(ask_as("above-all", "GET", "/metrics", NULL), 200, "sagad_tokens_age_seconds ");
    expect_none(&answer, "sagad_tokens_age_seconds 0\n");
    token_file_write(tokens_path, tokens, COUNT_OF(tokens) - 1);
    until_reader_gets(200);
}

TEST_PROGRAM(setup, api_host_teardown)
