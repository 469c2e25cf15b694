/*
 * Every adapter, against real programs and a server that follows a script. A call completes, fails, hangs or is
 * cancelled. It is settled exactly once, never inside begin(), with an outcome that keeps its promise.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/process/programs.h"
#include "tests/integration/adapter_trial.h"

static void expect(const char *what, enum outcome_kind kind, const char *error, const char *result)
{
    const struct outcome *outcome = &trial.call->outcome;

    if (outcome->kind != kind || (error && !slice_is(outcome->error, error)) ||
        (result && !slice_is(outcome->result, result))) {
        fail_msg("%s: %s, error %.*s (%.*s), result %.*s", what, outcome_name(outcome->kind), SLICE_ARG(outcome->error),
                 SLICE_ARG(outcome->detail), SLICE_ARG(outcome->result));
    }
}

/* --- builtin ------------------------------------------------------------------------------------------------- */

TEST(builtin_keeps_its_promises)
{
    static const struct {
        const char *settings;
        int64_t timeout_ms, cancel_ms;
        enum outcome_kind kind;
        const char *error, *result;
    } table[] = {
        {"{\"do\":\"echo\"}", 5000, 0, OUTCOME_COMPLETED, NULL, "{\"amount\":5}"},
        {"{\"do\":\"fail\"}", 5000, 0, OUTCOME_FAILED, "told-so", NULL},
        {"{\"do\":\"fail\",\"outcome\":\"retry\"}", 5000, 0, OUTCOME_RETRY, "told-so", NULL},
        {"{\"do\":\"fail\",\"outcome\":\"unknown\"}", 5000, 0, OUTCOME_UNKNOWN, "told-so", NULL},
        {"{\"do\":\"fail\",\"outcome\":\"running\"}", 5000, 0, OUTCOME_RUNNING, "told-so", NULL},
        {"{\"do\":\"fail\",\"outcome\":\"dance\"}", 5000, 0, OUTCOME_FAILED, "bad-settings", NULL},
        {"{\"do\":\"sleep\",\"for\":\"30ms\"}", 5000, 0, OUTCOME_COMPLETED, NULL, "null"},
        {"{\"do\":\"sleep\",\"for\":\"1h\"}", 50, 0, OUTCOME_UNKNOWN, "timeout", NULL},
        {"{\"do\":\"sleep\",\"for\":\"1h\"}", 9000000, 50, OUTCOME_RETRY, "cancelled", NULL},
        {"{\"do\":\"sleep\",\"for\":7}", 5000, 0, OUTCOME_FAILED, "bad-settings", NULL},
        {"{\"do\":\"dance\"}", 5000, 0, OUTCOME_FAILED, "bad-settings", NULL},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        trial_again();
        trial_call("builtin", table[i].settings)->timeout_ms = table[i].timeout_ms;
        trial_run(table[i].cancel_ms);
        expect(table[i].settings, table[i].kind, table[i].error, table[i].result);
    }
}

/* --- exec ---------------------------------------------------------------------------------------------------- */

TEST(exec_keeps_its_promises)
{
    static const struct {
        const char *script;
        int64_t timeout_ms, cancel_ms;
        enum outcome_kind kind;
        const char *error, *result;
    } table[] = {
        {"cat", 5000, 0, OUTCOME_COMPLETED, NULL, "{\"amount\":5}"},
        {"true", 5000, 0, OUTCOME_COMPLETED, NULL, "null"},
        {"echo hello", 5000, 0, OUTCOME_COMPLETED, NULL, "\"hello\\n\""},
        {"printf '\\377'", 5000, 0, OUTCOME_UNKNOWN, "unreadable", NULL},
        {"echo \\\"$IDEMPOTENCY_KEY\\\"", 5000, 0, OUTCOME_COMPLETED, NULL, "\"" KEY "\""},
        {"exit 64", 5000, 0, OUTCOME_FAILED, "exit-64", NULL},
        {"exit 69", 5000, 0, OUTCOME_FAILED, "exit-69", NULL},
        {"exit 70", 5000, 0, OUTCOME_UNKNOWN, "exit-70", NULL},
        {"exit 75", 5000, 0, OUTCOME_RETRY, "exit-75", NULL},
        {"exit 76", 5000, 0, OUTCOME_FAILED, "exit-76", NULL},
        {"exit 78", 5000, 0, OUTCOME_FAILED, "exit-78", NULL},
        {"exit 1", 5000, 0, OUTCOME_UNKNOWN, "exit-1", NULL},
        {"kill -9 $$", 5000, 0, OUTCOME_UNKNOWN, "signal-9", NULL},
        {"sleep 60", 100, 0, OUTCOME_UNKNOWN, "timeout", NULL},
        {"sleep 60", 60000, 100, OUTCOME_UNKNOWN, "cancelled", NULL},
        {"yes", 5000, 0, OUTCOME_UNKNOWN, "too-large", NULL},
    };

    setenv("SECRET_OF_OURS", "x", 1);
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct buffer settings;

        buffer_init(&settings, 1000);
        buffer_put_text(&settings, "{\"argv\":[\"sh\",\"-c\",");
        json_put_string(&settings, slice_of(table[i].script));
        buffer_put_text(&settings, "]}");
        trial_again();
        trial_call("exec", buffer_c(&settings))->timeout_ms = table[i].timeout_ms;
        trial_run(table[i].cancel_ms);
        expect(table[i].script, table[i].kind, table[i].error, table[i].result);
        buffer_fini(&settings);
    }
}

TEST(exec_tells_what_was_not_started_apart)
{
    trial_call("exec", "{\"argv\":[\"/nonexistent/program\"]}");
    trial_run(0);
    expect("no such program", OUTCOME_RETRY, "not-started", NULL);
    assert_true(trial.call->outcome.unsent);
    assert_null(trial.call->response.ptr);
    trial_call("exec", "{\"argv\":[null]}");
    trial_run(0);
    expect("no program", OUTCOME_FAILED, "bad-settings", NULL);
    assert_true(trial.call->outcome.unsent);
}

TEST(exec_runs_only_what_the_settings_allow)
{
    static const struct {
        const char *user, *paths, *settings, *error;
        bool as_me;
    } table[] = {
        {NULL, NULL, "{\"argv\":[\"true\"]}", "not-allowed", false},
        {NULL, NULL, "{\"argv\":[\"true\"]}", NULL, true},
        {NULL, "/usr/bin:/opt", "{\"argv\":[\"true\"]}", NULL, true},
        {NULL, "/opt", "{\"argv\":[\"true\"]}", "not-allowed", true},
        {NULL, "", "{\"argv\":[\"true\"]}", "not-allowed", true},
        {NULL, "/usr/bin/true", "{\"argv\":[\"/usr/bin/../bin/true\"]}", NULL, true},
        {NULL, "/usr/bin/true", "{\"argv\":[\"/usr/bin/id\"]}", "not-allowed", true},
        {NULL, "/usr/bin/tru", "{\"argv\":[\"true\"]}", NULL, true}, /* no such file, see below */
        {NULL, "/usr", "{\"argv\":[\"./true\"],\"cwd\":\"/usr/bin\"}", "not-allowed", true},
        {NULL, "/usr", "{\"argv\":[\"true\"],\"env\":{\"PATH\":\"/nowhere\"}}", "not-allowed", true},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct programs programs;
        struct err err = {0};

        if (programs_read(&programs, table[i].user, table[i].as_me, table[i].paths, &err) != ERR_OK) {
            assert_string_equal(table[i].paths, "/usr/bin/tru");
            continue;
        }
        trial_again();
        trial.host.programs = &programs;
        trial_call("exec", table[i].settings);
        trial_run(0);
        expect(table[i].settings, table[i].error ? OUTCOME_RETRY : OUTCOME_COMPLETED, table[i].error, NULL);
        assert_int_equal(trial.call->outcome.unsent, table[i].error != NULL);
        programs_fini(&programs);
    }
}

TEST(programs_run_as_another_user)
{
    struct programs programs;
    struct err err = {0};

    assert_int_equal(programs_read(&programs, "no-such-user", false, NULL, &err), ERR_CONFIG);
    assert_int_equal(programs_read(&programs, "root", false, NULL, &err), ERR_CONFIG);
    assert_int_equal(programs_read(&programs, "nobody", true, NULL, &err), ERR_CONFIG);
    assert_int_equal(programs_read(&programs, NULL, true, "bin", &err), ERR_CONFIG);
    assert_int_equal(programs_read(&programs, "nobody", false, NULL, &err), geteuid() == 0 ? ERR_OK : ERR_CONFIG);
}

TEST(exec_gives_the_program_its_environment_and_no_other)
{
    setenv("SECRET_OF_OURS", "x", 1);
    trial_call("exec",
               "{\"argv\":[\"sh\",\"-c\",\"echo "
               "\\\"[\\\\\\\"$A\\\\\\\",\\\\\\\"$MY_KEY\\\\\\\",\\\\\\\"$SECRET_OF_OURS\\\\\\\"]\\\"; echo no >&2\"],"
               "\"env\":{\"A\":7,\"MY_KEY\":\"mine\"}}");
    trial.call->key_place = KEY_PLACE_ENV;
    trial.call->key_name = SLICE("MY_KEY");
    trial_run(0);
    expect("environment", OUTCOME_COMPLETED, NULL, "[\"7\",\"" KEY "\",\"\"]");
    assert_true(slice_is(trial.call->response,
                         "{\"exit\":0,\"signal\":null,\"stdout\":[\"7\",\"" KEY "\",\"\"],\"stderr\":\"no\\n\"}"));
}

/* --- http ---------------------------------------------------------------------------------------------------- */

static struct call *trial_http(const char *members)
{
    return trial_call(
        "http",
        arena_printf(&trial.arena, "{\"url\":\"http://127.0.0.1:%d/x\"%s}", stub_server_port(trial.stub), members).ptr);
}

TEST(http_keeps_its_promises)
{
    static const struct {
        const char *answer;
        enum outcome_kind kind;
        const char *error, *result;
    } table[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{\"id\":7}", OUTCOME_COMPLETED, NULL, "{\"id\":7}"},
        {"HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nplain", OUTCOME_COMPLETED, NULL, "\"plain\""},
        {"HTTP/1.1 204 No Content\r\n\r\n", OUTCOME_COMPLETED, NULL, "null"},
        {"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", OUTCOME_RUNNING, "http-202", NULL},
        {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{\"a\":", OUTCOME_UNKNOWN,
         "unreadable", NULL},
        {"HTTP/1.1 200 OK\r\nContent-Type: application/problem+json; x=y\r\nContent-Length: 2\r\n\r\n\xff\xfe",
         OUTCOME_UNKNOWN, "unreadable", NULL},
        {"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 2\r\n\r\n\xff\xfe", OUTCOME_COMPLETED, NULL,
         "null"},
        {"HTTP/1.1 302 Found\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n", OUTCOME_UNKNOWN, "http-302", NULL},
        {"HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n", OUTCOME_FAILED, "http-400", NULL},
        {"HTTP/1.1 404 Not\r\nContent-Length: 0\r\n\r\n", OUTCOME_FAILED, "http-404", NULL},
        {"HTTP/1.1 408 Slow\r\nContent-Length: 0\r\n\r\n", OUTCOME_UNKNOWN, "http-408", NULL},
        {"HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n", OUTCOME_UNKNOWN, "http-409", NULL},
        {"HTTP/1.1 418 Teapot\r\nContent-Length: 0\r\n\r\n", OUTCOME_FAILED, "http-418", NULL},
        {"HTTP/1.1 422 No\r\nContent-Length: 0\r\n\r\n", OUTCOME_FAILED, "http-422", NULL},
        {"HTTP/1.1 425 Early\r\nContent-Length: 0\r\n\r\n", OUTCOME_RETRY, "http-425", NULL},
        {"HTTP/1.1 429 Many\r\nContent-Length: 0\r\n\r\n", OUTCOME_RETRY, "http-429", NULL},
        {"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", OUTCOME_UNKNOWN, "http-500", NULL},
        {"HTTP/1.1 503 Away\r\nContent-Length: 0\r\n\r\n", OUTCOME_UNKNOWN, "http-503", NULL},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"id\"", OUTCOME_UNKNOWN, "cut", NULL},
        {"", OUTCOME_UNKNOWN, "reset", NULL},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct stub_act act = {table[i].answer, STUB_CLOSE};

        trial_again();
        trial_serve(&act, 1);
        trial_http(",\"method\":\"POST\",\"body\":{\"amount\":5}");
        trial_run(0);
        expect(table[i].answer, table[i].kind, table[i].error, table[i].result);
        assert_false(trial.call->outcome.unsent);
        assert_int_equal(stub_server_requests(trial.stub), 1);
    }
}

TEST(http_hangs_and_is_cancelled_into_doubt)
{
    struct stub_act act = {NULL, STUB_HANG};

    trial_serve(&act, 1);
    trial_http(",\"body\":{}")->timeout_ms = 1000;
    trial_run(0);
    expect("hang", OUTCOME_UNKNOWN, "timeout", NULL);
    assert_null(trial.call->response.ptr);
    trial_http(",\"body\":{}");
    trial_run(1000);
    expect("cancel", OUTCOME_UNKNOWN, "cancelled", NULL);
}

TEST(http_that_never_left_may_be_repeated)
{
    trial_call("http", arena_printf(&trial.arena, "{\"url\":\"http://127.0.0.1:%d/\"}", stub_port_refused()).ptr);
    trial_run(0);
    expect("refused", OUTCOME_RETRY, "refused", NULL);
    assert_true(trial.call->outcome.unsent);
    trial_call("http", "{\"url\":\"http://127.0.0.1:1/a b\"}");
    trial_run(0);
    expect("bad url", OUTCOME_FAILED, "protocol", NULL);
    trial_call("http", "{\"url\":\"gopher://127.0.0.1/\"}");
    trial_run(0);
    expect("bad scheme", OUTCOME_FAILED, "bad-settings", NULL);
    trial_call("http", "{\"url\":\"http://127.0.0.1:1/\",\"headers\":{\"X-A\":\"b\\r\\nX-Evil: c\"}}");
    trial_run(0);
    expect("bad header", OUTCOME_FAILED, "protocol", NULL);
}

TEST(http_writes_key_body_headers_and_query_as_told)
{
    struct stub_act act = {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b\r\nx-a: c\r\n\r\n{}", STUB_KEEP};
    char request[4000];

    trial_serve(&act, 1);
    trial_http(",\"body\":{\"amount\": "
               "5.00},\"headers\":{\"X-N\":7,\"idempotency-key\":\"mine\",\"X-Null\":null},\"query\":{\"q\":\"a b\"}");
    trial_run(0);
    stub_server_last(trial.stub, request, sizeof(request));
    assert_ptr_equal(strstr(request, "POST /x?q=a%20b HTTP/1.1\r\n"), request);
    assert_has(request, "\r\nIdempotency-Key: " KEY "\r\n");
    assert_has_none(request, "mine", "X-Null");
    assert_has(request, "\r\nX-N: 7\r\n", "\r\nContent-Type: application/json\r\n", "\r\n\r\n{\"amount\": 5.00}");
    assert_true(slice_is(trial.call->response,
                         "{\"status\":200,\"headers\":{\"content-length\":\"2\",\"x-a\":\"b, c\"},\"body\":{}}"));

    trial_http(",\"body\":{\"a\":1}");
    trial.call->key_place = KEY_PLACE_BODY;
    trial.call->key_name = SLICE("/meta/key");
    trial_run(0);
    stub_server_last(trial.stub, request, sizeof(request));
    assert_has(request, "\r\n\r\n{\"a\":1,\"meta\":{\"key\":\"" KEY "\"}}");
    assert_has_none(request, "Idempotency-Key");

    trial_http(
        ",\"method\":\"PUT\",\"body\":\"a=b\",\"headers\":{\"content-type\":\"application/x-www-form-urlencoded\"}");
    trial.call->key_place = KEY_PLACE_QUERY;
    trial.call->key_name = SLICE("key");
    trial_run(0);
    stub_server_last(trial.stub, request, sizeof(request));
    assert_ptr_equal(strstr(request, "PUT /x?key=" KEY " HTTP/1.1\r\n"), request);
    assert_has(request, "\r\n\r\na=b");

    trial_http(",\"method\":\"GET\"")->send_key = false;
    trial.call->repeatable = true; /* on the kept connection, because the stub has only one */
    trial_run(0);
    stub_server_last(trial.stub, request, sizeof(request));
    assert_ptr_equal(strstr(request, "GET /x HTTP/1.1\r\n"), request);
    assert_has_none(request, KEY);
}

TEST(http_sends_what_its_reading_says_where_nothing_is_written)
{
    static const struct {
        const char *members;
        enum reading reading;
        bool reads, question;
        const char *line, *body;
    } table[] = {
        {"", READING_SECOND, true, true, "GET /x ", ""},
        {"", READING_SECOND, true, false, "GET /x ", ""},
        {"", READING_FIRST, true, true, "POST /x ", ""},
        {"", READING_FIRST, true, false, "POST /x ", ""},
        {",\"method\":\"POST\"", READING_SECOND, true, true, "POST /x ", ""},
        {",\"method\":\"POST\"", READING_SECOND, true, false, "POST /x ", "{\"amount\":5}"},
        {"", READING_SECOND, false, false, "POST /x ", "{\"amount\":5}"},
        {"", READING_FIRST, false, false, "POST /x ", ""},
        {",\"method\":\"PUT\"", READING_SECOND, false, false, "PUT /x ", "{\"amount\":5}"},
        {",\"method\":\"PATCH\"", READING_SECOND, false, false, "PATCH /x ", "{\"amount\":5}"},
        {",\"method\":\"DELETE\"", READING_SECOND, false, false, "DELETE /x ", ""},
        {",\"method\":\"GET\"", READING_SECOND, false, false, "GET /x ", ""},
        {",\"body\":null", READING_SECOND, false, false, "POST /x ", ""},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct stub_act act = {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", STUB_CLOSE};
        char request[4000];

        trial_again();
        trial_serve(&act, 1);
        trial_http(table[i].members);
        trial.call->reading = table[i].reading;
        trial.call->reads = table[i].reads;
        trial.call->question = table[i].question;
        trial_run(0);
        stub_server_last(trial.stub, request, sizeof(request));
        assert_ptr_equal(strstr(request, table[i].line), request);
        assert_string_equal(strstr(request, "\r\n\r\n") + 4, table[i].body);
    }
}

TEST(a_url_that_leads_elsewhere_is_never_sent)
{
    static const char *const paths[] = {"/a/../b", "/..", "/a/.", "/%2e%2E/b", "/a/.%2e?x=1", "/./#f"};

    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        trial_call("http",
                   arena_printf(&trial.arena, "{\"url\":\"http://127.0.0.1:%d%s\"}", stub_port_refused(), paths[i]).ptr)
            ->reading = READING_SECOND;
        trial_run(0);
        expect(paths[i], OUTCOME_FAILED, "bad-settings", NULL);
        assert_true(trial.call->outcome.unsent);
        trial.call->reading = READING_FIRST;
    }
    trial_call("http", arena_printf(&trial.arena, "{\"url\":\"http://127.0.0.1:%d/a/../b\"}", stub_port_refused()).ptr)
        ->reading = READING_FIRST;
    trial_run(0);
    expect("as it was registered", OUTCOME_RETRY, "refused", NULL);
}

TEST(http_honours_retry_after)
{
    static const struct {
        const char *value;
        int64_t least_ms, most_ms;
    } table[] = {
        {"7", 7000, 7000},
        {"0", 0, 0},
        {"-5", 0, 0},
        {"soon", 0, 0},
        {"99999999999999999", 7 * 24 * 3600 * 1000, 7 * 24 * 3600 * 1000},
        {"Wed, 21 Oct 2015 07:28:00 GMT", 0, 0},
        {"Fri, 31 Dec 2299 23:59:59 GMT", 7 * 24 * 3600 * 1000, 7 * 24 * 3600 * 1000},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        char answer[200];
        struct stub_act act = {answer, STUB_CLOSE};

        snprintf(answer, sizeof(answer), "HTTP/1.1 429 Many\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n",
                 table[i].value);
        trial_again();
        trial_serve(&act, 1);
        trial_http("");
        trial_run(0);
        assert_true(trial.call->outcome.retry_after_ms >= table[i].least_ms &&
                    trial.call->outcome.retry_after_ms <= table[i].most_ms);
    }
}

TEST(http_without_body_is_not_sent_twice_unless_that_is_harmless)
{
    static const struct stub_act acts[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", STUB_CLOSE},
                                           {NULL, STUB_CLOSE},
                                           {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", STUB_CLOSE}};

    trial_serve(acts, 3);
    trial_http(",\"method\":\"DELETE\"");
    trial_run(0);
    trial_http(",\"method\":\"DELETE\"");
    trial_run(0);
    expect("second", OUTCOME_UNKNOWN, "reset", NULL);
    assert_int_equal(stub_server_requests(trial.stub), 2);
}

TEST_PROGRAM_EACH(trial_open, trial_close)
