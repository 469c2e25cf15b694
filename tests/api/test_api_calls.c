/* Calls of agents, open sagas and bypasses over HTTP: bodies, status, headers and waiting. Tested over a fake
 * engine. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/api/api_host.h"
#include "tests/api/raw_client.h"
#include "tests/lib/test.h"

#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X128 X64 X64
#define X256 X128 X128
#define X1024 X256 X256 X256 X256

static struct api_host host;
static struct api_host narrow; /* at most two clients may wait */
static struct raw_answer answer;

static int setup(void **state)
{
    (void)state;
    host = api_host_start(&(struct api_options){0});
    narrow = api_host_start(&(struct api_options){.waiting_max = 2});
    return 0;
}

static const struct raw_answer *ask(const char *method, const char *target, const char *body)
{
    return raw_ask(host.port, method, target, "", body, &answer);
}

static void open_saga(char id[37])
{
    expect(ask("POST", "/v1/sagas", "{\"open\":true}"), 201);
    answer_take(&answer, "{\"id\":\"", 36, id);
}

/* Sends a call and leaves it open. */
static int begin(uint16_t port, const char *target, const char *body)
{
    char request[512];
    int fd = raw_connect(port);

    (void)snprintf(request, sizeof(request), "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
                   target, strlen(body), body);
    raw_send(fd, request, strlen(request));
    return fd;
}

static void settle(void)
{
    api_host_tell(&host, SIGUSR1);
}

/* --- answers --- */

TEST(a_call_that_completes_is_200_with_the_record)
{
    /* Byte for byte. */
    expect(ask("POST", "/v1/operations",
               "{\"run\":\"a\",\"tool\":\"t.one\",\"args\":{\"n\":1.50,\"m\": [ 9007199254740993 ]}}"),
           200, "\"state\":\"completed\"", "\"result\":{\"n\":1.50,\"m\": [ 9007199254740993 ]}",
           "\"step\":\"~t.one\"");
    assert_false(raw_head_has(&answer, "\r\nIdempotent-Replayed:"));
    assert_false(raw_head_has(&answer, "\r\nLocation:"));
}

TEST(a_duplicate_gets_the_same_content_marked_in_the_headers)
{
    static const char body[] =
        "{\"run\":\"b\",\"tool\":\"t.one\",\"step\":\"pay:1\",\"scope\":\"order 7\",\"args\":{\"n\":1.0}}";
    char key[37];

    ask("POST", "/v1/operations", body);
    answer_take(&answer, "{\"key\":\"", 36, key);
    expect(ask("POST", "/v1/operations", body), 200, key, "\"result\":{\"n\":1.0}");
    expect_head(&answer, "\r\nIdempotent-Replayed: true\r\n", "\r\nIdempotent-First-At: 20");
    ask("POST", "/v1/operations",
        "{\"run\":\"b\",\"tool\":\"t.one\",\"step\":\"pay:1\",\"scope\":\"order 8\",\"args\":{\"n\":1.0}}");
    expect_none(&answer, key); /* another scope is another operation */
}

TEST(a_wait_that_is_over_is_202_with_the_place_of_the_operation)
{
    char key[37];

    expect(ask("POST", "/v1/operations?wait=50ms", "{\"run\":\"c\",\"tool\":\"t.slow\"}"), 202);
    answer_take(&answer, "{\"key\":\"", 36, key);
    expect_body(&answer, "\"state\":\"in_flight\"");
    expect_head(&answer, text_of("\r\nLocation: /v1/operations/%s\r\n", key));
    expect(ask("GET", text_of("/v1/operations/%s", key), NULL), 200);

    /* A duplicate, which is answered with the first operation. */
    expect(ask("POST", "/v1/operations?wait=50ms", "{\"run\":\"c\",\"tool\":\"t.slow\"}"), 409,
           "urn:sagad:problem:in-flight", "\"retryable\":true", "\"operation\":{\"key\":\"", key);
    expect_head(&answer, "\r\nRetry-After: 2\r\n"); /* 1.5 s, rounded up */
    settle();
    expect(ask("POST", "/v1/operations?wait=0s", "{\"run\":\"c\",\"tool\":\"t.slow\"}"), 200);
    expect_head(&answer, "\r\nIdempotent-Replayed: true\r\n");
}

TEST(all_clients_that_wait_for_one_operation_are_told_when_it_is_settled)
{
    int fds[64], tries = 0;
    size_t replayed = 0;

    for (size_t i = 0; i < COUNT_OF(fds); i++) { /* the default without ?wait= is 30 s */
        fds[i] = begin(host.port, "/v1/operations", "{\"run\":\"d\",\"tool\":\"t.slow\",\"args\":{\"n\":1}}");
    }
    (void)usleep(200000); /* so that most of them wait */
    settle();
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        struct pollfd answered = {.fd = fds[i], .events = POLLIN};

        while (poll(&answered, 1, 2000) == 0 && ++tries < 10) {
            settle(); /* the last one may have come when the others had been told */
        }
        expect(raw_read(fds[i], 5000, &answer), 200, "\"result\":{\"n\":1}");
        replayed += raw_head_has(&answer, "\r\nIdempotent-Replayed: true");
        (void)close(fds[i]);
    }
    assert_int_equal(replayed, COUNT_OF(fds) - 1);
}

TEST(a_caller_that_leaves_ends_its_wait_and_not_the_operation)
{
    int fd = begin(host.port, "/v1/operations?wait=5m", "{\"run\":\"e\",\"tool\":\"t.slow\"}"), tries = 0;

    (void)usleep(100000);
    (void)close(fd);
    do {
        (void)usleep(100000);
        ask("GET", "/metrics", NULL);
    } while (!raw_body_has(&answer, "sagad_http_connections 1\n") && ++tries < 50);
    assert_true(tries < 50);
    expect(ask("POST", "/v1/operations?wait=0s", "{\"run\":\"e\",\"tool\":\"t.slow\"}"), 409);
    settle();
    expect(ask("POST", "/v1/operations", "{\"run\":\"e\",\"tool\":\"t.slow\"}"), 200);
}

TEST(other_arguments_are_told_where_they_differ_and_not_how)
{
    ask("POST", "/v1/operations", "{\"run\":\"f\",\"tool\":\"t.one\",\"args\":{\"amount\":1}}");
    expect(ask("POST", "/v1/operations", "{\"run\":\"f\",\"tool\":\"t.one\",\"args\":{\"amount\":7654321}}"), 422,
           "urn:sagad:problem:arguments-differ", "\"pointers\":[\"/amount\",\"/to/name\"]");
    expect_none(&answer, "7654321");
}

TEST(arguments_that_break_the_schema_are_named_place_by_place)
{
    expect(ask("POST", "/v1/operations", "{\"run\":\"g\",\"tool\":\"t.one\",\"args\":[]}"), 422,
           "urn:sagad:problem:invalid", "\"pointer\":\"/args\"");
}

/* The fake's tool "as.NAME" is refused with the error NAME. Each error is a problem document of the right shape. */
TEST(every_refusal_is_a_problem_with_the_record)
{
    for (int code = ERR_OK + 1; code < ERR_COUNT; code++) {
        int status = err_http_status((enum err_code)code);

        expect(
            ask("POST", "/v1/operations", text_of("{\"run\":\"h\",\"tool\":\"as.%s\"}", err_name((enum err_code)code))),
            status);
        expect_head(&answer, "application/problem+json");
        expect_body(&answer, text_of("\"type\":\"urn:sagad:problem:%s\"", err_name((enum err_code)code)),
                    "\"operation\":{\"key\":\"");
        assert_true(
            raw_body_has(&answer, err_retryable((enum err_code)code) ? "\"retryable\":true" : "\"retryable\":false"));
        assert_int_equal(raw_head_has(&answer, "\r\nRetry-After: "), err_retryable((enum err_code)code));
        assert_int_equal(raw_body_has(&answer, "\"pointers\":["), code == ERR_DRIFT);
        assert_int_equal(raw_body_has(&answer, "\"pattern\":[{\"tool\":"), code == ERR_LOOP);
    }
}

TEST(a_header_recognises_the_emission_and_is_bounded)
{
    static const char body[] = "{\"run\":\"i\",\"tool\":\"t.one\"}";

    expect(raw_ask(host.port, "POST", "/v1/operations", "Idempotency-Key: e-1\r\n", body, &answer), 200);
    expect(raw_ask(host.port, "POST", "/v1/operations", "Idempotency-Key: " X256 "\r\n", body, &answer), 200);
    expect(raw_ask(host.port, "POST", "/v1/operations", "Idempotency-Key: x" X256 "\r\n", body, &answer), 422,
           "Idempotency-Key has 1 to 256 bytes");
    expect(raw_ask(host.port, "POST", "/v1/operations", "Idempotency-Key: \r\n", body, &answer), 422);
    expect(raw_ask(host.port, "POST", "/v1/operations", "Idempotency-Key: a\r\nidempotency-key: b\r\n", body, &answer),
           422, "stands there 2 times");
}

/* --- what is wrong is named --- */

#define SOME "019b3c52-0000-7000-8000-00000000ffff"

static const struct {
    const char *name, *method, *target, *body;
    int status;
    const char *says;
} wrongs[] = {
    {"no run", "POST", "/v1/operations", "{\"tool\":\"t.one\"}", 422, "\\\"run\\\" is missing"},
    {"no tool", "POST", "/v1/operations", "{\"run\":\"a\"}", 422, "\\\"tool\\\" is missing"},
    {"nothing", "POST", "/v1/operations", "", 422, "wrong in 2 places"},
    {"an empty run", "POST", "/v1/operations", "{\"run\":\"\",\"tool\":\"t.one\"}", 422, "\"pointer\":\"/run\""},
    {"a run of 257 bytes", "POST", "/v1/operations", "{\"run\":\"x" X256 "\",\"tool\":\"t.one\"}", 422,
     "\"pointer\":\"/run\""},
    {"a run with a line end", "POST", "/v1/operations", "{\"run\":\"a\\nb\",\"tool\":\"t.one\"}", 422,
     "\"pointer\":\"/run\""},
    {"an empty tool", "POST", "/v1/operations", "{\"run\":\"a\",\"tool\":\"\"}", 422, "\"pointer\":\"/tool\""},
    {"an unknown tool", "POST", "/v1/operations", "{\"run\":\"a\",\"tool\":\"nothing\"}", 404, "not-found"},
    {"an empty step", "POST", "/v1/operations", "{\"run\":\"a\",\"tool\":\"t.one\",\"step\":\"\"}", 422,
     "\"pointer\":\"/step\""},
    {"a step with a space", "POST", "/v1/operations", "{\"run\":\"a\",\"tool\":\"t.one\",\"step\":\"a b\"}", 422,
     "\"pointer\":\"/step\""},
    {"a step of the engine's own", "POST", "/v1/operations", "{\"run\":\"a\",\"tool\":\"t.one\",\"step\":\"~t.one\"}",
     422, "begin with ~"},
    {"a step of 129 bytes", "POST", "/v1/operations", "{\"run\":\"a\",\"tool\":\"t.one\",\"step\":\"x" X128 "\"}", 422,
     "\"pointer\":\"/step\""},
    {"a scope that is a number", "POST", "/v1/operations", "{\"run\":\"a\",\"tool\":\"t.one\",\"scope\":7}", 422,
     "expected string"},
    {"a scope of 257 bytes", "POST", "/v1/operations", "{\"run\":\"a\",\"tool\":\"t.one\",\"scope\":\"x" X256 "\"}",
     422, "\"pointer\":\"/scope\""},
    {"a turn that is a list", "POST", "/v1/operations", "{\"run\":\"a\",\"tool\":\"t.one\",\"turn\":[]}", 422,
     "\"pointer\":\"/turn\""},
    {"half a turn", "POST", "/v1/operations", "{\"run\":\"a\",\"tool\":\"t.one\",\"turn\":1.5}", 422,
     "\"pointer\":\"/turn\""},
    {"an unknown member", "POST", "/v1/operations", "{\"run\":\"a\",\"tool\":\"t.one\",\"arguments\":{}}", 422,
     "\"pointer\":\"/arguments\""},
    {"four faults at once", "POST", "/v1/operations", "{\"run\":\"\",\"tool\":1,\"step\":\"~\",\"colour\":1}", 422,
     "wrong in 4 places"},
    {"not JSON", "POST", "/v1/operations", "{\"run\":", 400, "malformed"},
    {"a member twice", "POST", "/v1/operations", "{\"run\":\"a\",\"run\":\"b\",\"tool\":\"t.one\"}", 400, "malformed"},
    {"a wait that is none", "POST", "/v1/operations?wait=long", "{\"run\":\"a\",\"tool\":\"t.one\"}", 400, "duration"},
    {"a wait of 6 minutes", "POST", "/v1/operations?wait=6m", "{\"run\":\"a\",\"tool\":\"t.one\"}", 400, "at most 5m"},
    {"a run in a saga", "POST", "/v1/sagas/" SOME "/calls", "{\"run\":\"a\",\"tool\":\"t.one\"}", 422,
     "\"pointer\":\"/run\""},
    {"a call in no saga", "POST", "/v1/sagas/" SOME "/calls", "{\"tool\":\"t.one\"}", 404, "not-found"},
    {"a saga id that is none", "POST", "/v1/sagas/7/calls", "{\"tool\":\"t.one\"}", 404, "not-found"},

    {"open beside saga", "POST", "/v1/sagas", "{\"open\":true,\"saga\":\"quick\"}", 422, "\"pointer\":\"/saga\""},
    {"open with input", "POST", "/v1/sagas", "{\"open\":true,\"input\":{}}", 422, "\"pointer\":\"/input\""},
    {"open with a version", "POST", "/v1/sagas", "{\"open\":true,\"version\":1}", 422, "\"pointer\":\"/version\""},
    {"open that is false", "POST", "/v1/sagas", "{\"open\":false,\"saga\":\"quick\"}", 422, "leave it out"},
    {"open that is a text", "POST", "/v1/sagas", "{\"open\":\"yes\"}", 422, "expected boolean"},
    {"a deadline without a unit", "POST", "/v1/sagas", "{\"open\":true,\"deadline\":\"15\"}", 422,
     "\"pointer\":\"/deadline\""},
    {"a deadline of nothing", "POST", "/v1/sagas", "{\"open\":true,\"deadline\":\"0s\"}", 422,
     "\"pointer\":\"/deadline\""},
    {"a deadline of years", "POST", "/v1/sagas", "{\"open\":true,\"deadline\":\"4000d\"}", 422,
     "\"pointer\":\"/deadline\""},
    {"another on_timeout", "POST", "/v1/sagas", "{\"open\":true,\"on_timeout\":\"retry\"}", 422,
     "\"pointer\":\"/on_timeout\""},
    {"a budget below nothing", "POST", "/v1/sagas", "{\"open\":true,\"budget\":{\"calls\":-1}}", 422,
     "\"pointer\":\"/budget/calls\""},
    {"a budget of half a micro", "POST", "/v1/sagas", "{\"open\":true,\"budget\":{\"micros\":0.5}}", 422,
     "\"pointer\":\"/budget/micros\""},
    {"a budget of tokens", "POST", "/v1/sagas", "{\"open\":true,\"budget\":{\"tokens\":1}}", 422,
     "\"pointer\":\"/budget/tokens\""},
    {"a budget of nothing", "POST", "/v1/sagas", "{\"open\":true,\"budget\":{}}", 422, "\"pointer\":\"/budget\""},
    {"one repeat", "POST", "/v1/sagas", "{\"open\":true,\"loop\":{\"repeats\":1}}", 422, "from 2 to 10"},
    {"a cycle of nine", "POST", "/v1/sagas", "{\"open\":true,\"loop\":{\"max_cycle\":9}}", 422, "from 1 to 8"},
    {"a loop that is a number", "POST", "/v1/sagas", "{\"open\":true,\"loop\":3}", 422, "\"pointer\":\"/loop\""},
    {"a deadline of a defined saga", "POST", "/v1/sagas", "{\"saga\":\"quick\",\"deadline\":\"15m\"}", 422,
     "only an open saga takes"},
    {"five faults of an opening", "POST", "/v1/sagas",
     "{\"open\":true,\"input\":1,\"deadline\":\"x\",\"on_timeout\":\"x\",\"budget\":{\"calls\":\"x\"},\"colour\":1}",
     422, "wrong in 5 places"},

    {"completing nothing", "POST", "/v1/sagas/" SOME "/complete", "{}", 404, "not-found"},
    {"completing with a result", "POST", "/v1/sagas/" SOME "/complete", "{\"result\":1}", 422,
     "\"pointer\":\"/result\""},
    {"resuming without a note", "POST", "/v1/sagas/" SOME "/resume", "{}", 422, "\\\"note\\\" is missing"},
    {"resuming with a blank note", "POST", "/v1/sagas/" SOME "/resume", "{\"note\":\"  \"}", 422,
     "\"pointer\":\"/note\""},
    {"resuming nothing", "POST", "/v1/sagas/" SOME "/resume", "{\"note\":\"x\"}", 404, "not-found"},
    {"a bypass without a reason", "POST", "/v1/operations/" SOME "/bypass", "{}", 422, "\\\"reason\\\" is missing"},
    {"a bypass with a blank reason", "POST", "/v1/operations/" SOME "/bypass", "{\"reason\":\" \"}", 422,
     "\"pointer\":\"/reason\""},
    {"a bypass with a long reason", "POST", "/v1/operations/" SOME "/bypass", "{\"reason\":\"" X1024 "\"}", 422,
     "1000 characters"},
    {"a bypass of nothing", "POST", "/v1/operations/" SOME "/bypass", "{\"reason\":\"x\"}", 404, "not-found"},
    {"a bypass of what is no key", "POST", "/v1/operations/7/bypass", "{\"reason\":\"x\"}", 404, "not-found"},
    {"reading where calls are made", "GET", "/v1/sagas/" SOME "/calls", NULL, 405, "method-not-allowed"},
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

TEST(the_longest_names_are_taken)
{
    expect(ask("POST", "/v1/operations",
               "{\"run\":\"" X256 "\",\"tool\":\"t.one\",\"step\":\"" X128 "\",\"scope\":\"" X256 "\",\"turn\":\"" X128
               "\"}"),
           200);
    expect(ask("POST", "/v1/operations",
               "{\"run\":\"r\",\"tool\":\"t.one\",\"step\":\"Az09._:/-\",\"scope\":\"\",\"turn\":7}"),
           200);
}

/* --- open sagas --- */

TEST(an_open_saga_is_201_and_the_same_id_is_200)
{
    static const char body[] =
        "{\"open\":true,\"id\":\"trip-1\",\"tags\":{\"a\":\"b\"},\"deadline\":\"15m\",\"on_timeout\":\"escalate\","
        "\"budget\":{\"calls\":10,\"emissions\":30,\"micros\":5000000},\"loop\":{\"repeats\":2,\"max_cycle\":8}}";
    char id[37];

    /* The fake shows what it was given. */
    expect(ask("POST", "/v1/sagas", body), 201, "\"deadline_ms\":900000,\"on_timeout\":\"escalate\"",
           "\"micros\":5000000", "\"repeats\":2", "\"tags\":{\"a\":\"b\"}");
    expect_head(&answer, "\r\nLocation: /v1/sagas/0");
    answer_take(&answer, "{\"id\":\"", 36, id);
    expect(ask("POST", "/v1/sagas", body), 200, id);
    expect(ask("POST", "/v1/sagas", "{\"open\":true,\"id\":\"trip-1\"}"), 422, "other-input");
}

TEST(an_idempotency_key_serves_as_its_id)
{
    expect(raw_ask(host.port, "POST", "/v1/sagas", "Idempotency-Key: k-9\r\n", "{\"open\":true}", &answer), 201,
           "\"business_id\":\"k-9\"");
    expect(raw_ask(host.port, "POST", "/v1/sagas", "Idempotency-Key: k-9\r\n", "{\"open\":true}", &answer), 200);
}

TEST(an_open_saga_takes_calls_until_it_is_completed)
{
    char id[37];
    const char *calls;

    open_saga(id);
    calls = text_of("/v1/sagas/%s/calls", id);
    expect(ask("POST", calls, "{\"tool\":\"t.one\",\"args\":{\"n\":1}}"), 200, id); /* the run is the saga */
    expect(ask("POST", text_of("/v1/sagas/%s/complete", id), "{\"output\":{\"done\":true}}"), 200,
           "\"status\":\"completed\"");
    expect(ask("POST", calls, "{\"tool\":\"t.one\",\"scope\":\"another\"}"), 409, "saga-closed");
    /* An earlier call still has its answer. */
    expect(ask("POST", calls, "{\"tool\":\"t.one\",\"args\":{\"n\":1}}"), 200);
    expect_head(&answer, "\r\nIdempotent-Replayed: true\r\n");
}

TEST(completing_waits_and_is_then_409_unsettled)
{
    char id[37];

    open_saga(id);
    expect(ask("POST", text_of("/v1/sagas/%s/calls?wait=0s", id), "{\"tool\":\"t.slow\"}"), 202);
    expect(ask("POST", text_of("/v1/sagas/%s/complete?wait=50ms", id), NULL), 409, "urn:sagad:problem:unsettled");
    expect_head(&answer, "\r\nRetry-After: 2\r\n");
    settle();
    expect(ask("POST", text_of("/v1/sagas/%s/complete", id), NULL), 200);
}

TEST(an_open_saga_can_be_aborted)
{
    char id[37];

    open_saga(id);
    expect(ask("POST", text_of("/v1/sagas/%s/abort", id), "{\"note\":\"changed my mind\"}"), 200,
           "\"status\":\"compensating\"");
}

TEST(a_defined_saga_takes_no_calls)
{
    char id[37];

    ask("POST", "/v1/sagas", "{\"saga\":\"slow\"}");
    answer_take(&answer, "{\"id\":\"", 36, id);
    expect(ask("POST", text_of("/v1/sagas/%s/calls", id), "{\"tool\":\"t.one\"}"), 409);
    expect(ask("POST", text_of("/v1/sagas/%s/complete", id), "{}"), 409);
}

TEST(a_paused_saga_is_resumed_once)
{
    char id[37], path[80];

    open_saga(id);
    expect(ask("POST", text_of("/v1/sagas/%s/calls", id), "{\"tool\":\"as.paused\"}"), 409);
    (void)snprintf(path, sizeof(path), "/v1/sagas/%s/resume", id);
    expect(ask("POST", path, "{\"note\":\"looked at it\"}"), 200, "\"status\":\"running\"");
    expect(ask("POST", path, "{\"note\":\"looked at it\"}"), 409);
}

/* --- bypass --- */

TEST(a_person_signs_one_more_execution_off_with_a_reason)
{
    char key[37], path[80];

    ask("POST", "/v1/operations", "{\"run\":\"bypass\",\"tool\":\"t.one\"}");
    answer_take(&answer, "{\"key\":\"", 36, key);
    (void)snprintf(path, sizeof(path), "/v1/operations/%s/bypass", key);
    expect(ask("POST", path, "{\"reason\":\"the parcel was lost\"}"), 200, "\"reason\":\"the parcel was lost\"",
           "\"actor\":\"local\"", "\"expires_at\":\"20");
    expect(ask("POST", path, "{\"reason\":\"again\"}"), 409, "already-decided");
}

/* --- bounds --- */

TEST(only_so_many_may_wait_and_others_are_still_answered)
{
    int fds[2], tries = 0;

    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = begin(narrow.port, "/v1/operations", "{\"run\":\"n\",\"tool\":\"t.slow\"}");
    }
    (void)usleep(200000);
    expect(raw_ask(narrow.port, "POST", "/v1/operations", "", "{\"run\":\"m\",\"tool\":\"t.one\"}", &answer), 503,
           "urn:sagad:problem:busy");
    expect_head(&answer, "\r\nRetry-After: 1\r\n");
    expect(raw_ask(narrow.port, "POST", "/v1/sagas?wait=1s", "", "{\"saga\":\"quick\"}", &answer), 503);
    expect(raw_ask(narrow.port, "POST", "/v1/operations?wait=0s", "", "{\"run\":\"m\",\"tool\":\"t.one\"}", &answer),
           200);
    expect(raw_ask(narrow.port, "GET", "/readyz", "", NULL, &answer), 200);
    (void)close(fds[0]); /* one client leaves, and another one gets its place */
    do {
        (void)usleep(100000);
        raw_ask(narrow.port, "POST", "/v1/operations", "", "{\"run\":\"m\",\"tool\":\"t.one\"}", &answer);
    } while (answer.status == 503 && ++tries < 50);
    expect(&answer, 200);
    for (int i = 0; i < 5; i++) { /* an answer gives the place back, and so does a refusal */
        raw_ask(narrow.port, "POST", "/v1/operations", "", i % 2 ? "{" : "{\"run\":1}", &answer);
        assert_in_range(answer.status, 400, 422);
    }
    (void)close(fds[1]);
}

TEST(waiting_clients_are_told_when_the_engine_stops)
{
    struct api_host own = api_host_start(&(struct api_options){0});
    int fd = begin(own.port, "/v1/operations?wait=5m", "{\"run\":\"s\",\"tool\":\"t.slow\"}");

    (void)usleep(200000);
    assert_int_equal(kill(own.pid, SIGTERM), 0);
    expect(raw_read(fd, 5000, &answer), 503, "urn:sagad:problem:stopping", "\"retryable\":true", "\"operation\":{");
    expect_head(&answer, "\r\nRetry-After: ");
    (void)close(fd);
    assert_int_equal(api_host_await(&own), 0);
}

TEST(metrics_end_with_those_of_the_tools)
{
    expect(ask("GET", "/metrics", NULL), 200, "sagad_http_connections ",
           "sagad_tool_operations_total{namespace=\"default\",tool=\"t.one\"}");
}

TEST_PROGRAM(setup, api_host_teardown)
