/* What the HTTP client says about a request must be true: whether it was sent and whether the answer is whole. A
 * request is never sent twice. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "io/http/client.h"
#include "tests/lib/stub_server.h"
#include "tests/lib/test.h"
#include "tests/lib/texts.h"

#define OK_KEEP "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Kind: Good\r\n\r\nok"

struct exchange {
    struct loop *loop;
    struct http_client *client;
    struct arena arena;
    struct http_request request;
    struct timer timer;
    int done_count;
    char streamed[256];
    bool cancel_on_data;
};

static void on_done(struct http_request *request)
{
    struct exchange *exchange = container_of(request, struct exchange, request);

    exchange->done_count++;
    loop_stop(exchange->loop);
}

static struct exchange x;
static struct stub_server *stub; /* NULL: the test has none */

static int exchange_open(void **state __attribute__((unused)))
{
    memset(&x, 0, sizeof(x));
    x.loop = loop_new();
    x.client = http_client_new(x.loop, 8, 8);
    arena_init(&x.arena, 4096);
    return 0;
}

static int exchange_close(void **state __attribute__((unused)))
{
    http_client_free(x.client);
    loop_free(x.loop);
    arena_fini(&x.arena);
    if (stub) {
        stub_server_free(stub);
        stub = NULL;
    }
    return 0;
}

/* For the next row of a table. */
static void exchange_again(void)
{
    (void)exchange_close(NULL);
    (void)exchange_open(NULL);
}

static void stub_serve(const struct stub_act *acts, size_t count)
{
    assert_null(stub);
    stub = stub_server_new(acts, count);
}

static void exchange_send(struct exchange *exchange, const char *method, const char *url, struct slice body)
{
    exchange->request.method = slice_of(method);
    exchange->request.url = arena_slice(&exchange->arena, slice_of(url));
    exchange->request.body = body;
    exchange->request.timeout_ms = exchange->request.timeout_ms ? exchange->request.timeout_ms : 5000;
    exchange->request.response_bytes_max =
        exchange->request.response_bytes_max ? exchange->request.response_bytes_max : 1000;
    exchange->request.arena = &exchange->arena;
    exchange->request.done = on_done;
    exchange->done_count = 0;
    http_send(exchange->client, &exchange->request);
    assert_int_equal(exchange->done_count, 0); /* never inside http_send() */
}

static void exchange_run(const char *method, const char *url, struct slice body)
{
    exchange_send(&x, method, url, body);
    loop_run(x.loop);
    assert_int_equal(x.done_count, 1);
}

static const char *stub_url(void)
{
    return arena_printf(&x.arena, "http://127.0.0.1:%d/charges", stub_server_port(stub)).ptr;
}

/* --- what happened, and what the client must say ------------------------------------------------------------- */

TEST(every_end_of_a_request_is_told_truly)
{
    static const struct {
        const char *what;
        struct stub_act act;
        bool sent, complete;
        const char *error;
    } table[] = {
        {"a whole answer", {OK_KEEP, STUB_KEEP}, true, true, NULL},
        {"a chunked answer",
         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", STUB_KEEP},
         true,
         true,
         NULL},
        {"an answer that ends with the connection", {"HTTP/1.1 200 OK\r\n\r\nok", STUB_CLOSE}, true, true, NULL},
        {"an interim answer first", {"HTTP/1.1 100 Continue\r\n\r\n" OK_KEEP, STUB_KEEP}, true, true, NULL},
        {"closed without an answer", {NULL, STUB_CLOSE}, true, false, "reset"},
        {"reset after everything was read", {NULL, STUB_RESET}, true, false, "reset"},
        {"cut in the middle of the headers", {"HTTP/1.1 200 OK\r\nContent-Le", STUB_CLOSE}, true, false, "cut"},
        {"cut behind a header", {"HTTP/1.1 200 OK\r\nX-A: b\r\n", STUB_CLOSE}, true, false, "cut"},
        {"cut in the middle of the body",
         {"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf", STUB_CLOSE},
         true,
         false,
         "cut"},
        {"cut in the middle of a chunk",
         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\nhalf", STUB_CLOSE},
         true,
         false,
         "cut"},
        {"garbage", {"this is no HTTP\r\n\r\n", STUB_CLOSE}, true, false, "protocol"},
        {"more than allowed",
         {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", STUB_FLOOD},
         true,
         false,
         "too-large"},
        {"silence", {NULL, STUB_HANG}, true, false, "timeout"},
        {"half an answer, then silence",
         {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", STUB_HANG},
         true,
         false,
         "timeout"},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        exchange_again();
        stub_serve(&table[i].act, 1);
        x.request.timeout_ms = table[i].error && strcmp(table[i].error, "timeout") == 0 ? 1000 : 20000;
        exchange_run("POST", stub_url(), SLICE("{\"amount\":5}"));
        if (x.request.sent != table[i].sent || x.request.complete != table[i].complete ||
            (x.request.error ? !table[i].error || strcmp(x.request.error, table[i].error) != 0
                             : table[i].error != NULL)) {
            fail_msg("%s: sent %d, complete %d, error %s (%s)", table[i].what, x.request.sent, x.request.complete,
                     x.request.error ? x.request.error : "none", x.request.detail);
        }
        if (table[i].complete) {
            assert_int_equal(x.request.status, 200);
            assert_true(slice_is(x.request.response_body, "ok"));
        }
        assert_int_equal(stub_server_requests(stub), 1);
    }
}

TEST(a_request_that_never_left_is_told_as_unsent)
{
    char refused[64];
    const struct {
        const char *url, *error;
    } table[] = {
        {refused, "refused"},
        {"http://no-such-host.invalid/", "dns"},
        {"http://169.254.169.254/latest/meta-data/", "egress-denied"},
        {"http://[fe80::1]/", "egress-denied"},
        {"http://[::ffff:169.254.169.254]/", "egress-denied"},
        {"http://[fd00:ec2::254]/", "egress-denied"},
        {"http://[64:ff9b::a9fe:a9fe]/", "egress-denied"},
        {"file:///etc/passwd", "protocol"},
        {"ftp://127.0.0.1/", "protocol"},
        {"http://127.0.0.1:1/a b", "protocol"},
        {"http://127.0.0.1:1/a\r\nX: y", "protocol"},
        {"", "protocol"},
        {"http://", "protocol"},
    };

    snprintf(refused, sizeof(refused), "http://127.0.0.1:%d/", stub_port_refused());
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        exchange_again();
        x.request.timeout_ms = 60000; /* a resolver without a network takes long */
        exchange_run("POST", table[i].url, SLICE("{}"));
        if (x.request.sent || x.request.complete || strcmp(x.request.error, table[i].error) != 0) {
            fail_msg("%s: sent %d, complete %d, error %s (%s)", table[i].url, x.request.sent, x.request.complete,
                     x.request.error, x.request.detail);
        }
    }
}

TEST(a_hanging_tls_handshake_is_unsent)
{
    struct stub_act act = {NULL, STUB_HANG};

    stub_serve(&act, 1);
    x.request.timeout_ms = 200;
    exchange_run("POST", arena_printf(&x.arena, "https://127.0.0.1:%d/", stub_server_port(stub)).ptr, SLICE("{}"));
    assert_false(x.request.sent);
    assert_true(x.request.timed_out);
}

/* libcurl would send the request again on a new connection and call that a success. */
TEST(a_post_is_not_sent_twice_when_a_kept_connection_dies)
{
    static const struct stub_act acts[] = {{OK_KEEP, STUB_KEEP}, {NULL, STUB_CLOSE}, {OK_KEEP, STUB_KEEP}};

    stub_serve(acts, 3);
    exchange_run("POST", stub_url(), SLICE("{\"n\":1}"));
    assert_true(x.request.complete);
    exchange_run("POST", stub_url(), SLICE("{\"n\":2}"));
    assert_false(x.request.complete);
    assert_true(x.request.sent);
    assert_string_equal(x.request.error, "reset");
    assert_int_equal(stub_server_requests(stub), 2);
}

/* A short body leaves with its head, a long one behind it. These are two ways in which a request must not leave
 * again. */
TEST(a_long_post_is_not_sent_twice_either)
{
    static const struct stub_act acts[] = {{OK_KEEP, STUB_KEEP}, {NULL, STUB_CLOSE}, {OK_KEEP, STUB_KEEP}};
    static char long_body[20000];

    stub_serve(acts, 3);
    memset(long_body, 'a', sizeof(long_body));
    exchange_run("POST", stub_url(), SLICE("{}"));
    assert_true(x.request.complete);
    exchange_run("POST", stub_url(), (struct slice){long_body, sizeof(long_body)});
    assert_false(x.request.complete);
    assert_true(x.request.sent);
    assert_string_equal(x.request.error, "reset");
    assert_int_equal(stub_server_requests(stub), 2);
}

static bool is_full; /* the socket's buffer is full when POST /full is about to go into it */

/* This function replaces send() for libcurl, too. */
ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    if (is_full && len > 10 && memcmp(bytes, "POST /full", 10) == 0) {
        is_full = false;
        errno = EAGAIN;
        return -1;
    }
    return sendto(fd, bytes, len, flags, NULL, 0);
}

/* libcurl counts only what its first sending took. The bytes that had to wait for room have left all the same. */
TEST(a_request_that_waited_for_room_in_the_socket_has_left_and_does_not_leave_twice)
{
    static const struct {
        int then;
        size_t body_bytes;
        bool fresh;
        const char *error;
    } table[] = {
        {STUB_CLOSE, 12, false, "reset"},  {STUB_CLOSE, 20000, false, "reset"},  {STUB_RESET, 12, false, "reset"},
        {STUB_HANG, 12, false, "timeout"}, {STUB_HANG, 20000, false, "timeout"}, {STUB_CLOSE, 12, true, "reset"},
        {STUB_HANG, 12, true, "timeout"},
    };
    static char body[20000];

    memset(body, 'a', sizeof(body));
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        /* The server has one connection at a time. */
        const struct stub_act acts[] = {
            {OK_KEEP, table[i].fresh ? STUB_CLOSE : STUB_KEEP}, {NULL, table[i].then}, {OK_KEEP, STUB_KEEP}};

        exchange_again();
        stub_serve(acts, 3);
        exchange_run("POST", stub_url(), SLICE("{}"));
        assert_true(x.request.complete);
        is_full = true;
        x.request.timeout_ms = table[i].then == STUB_HANG ? 1000 : 20000;
        x.request.fresh_connection = table[i].fresh;
        exchange_run("POST", arena_printf(&x.arena, "http://127.0.0.1:%d/full", stub_server_port(stub)).ptr,
                     (struct slice){body, table[i].body_bytes});
        if (is_full || !x.request.sent || x.request.complete || strcmp(x.request.error, table[i].error) != 0 ||
            stub_server_requests(stub) != 2) {
            fail_msg("%zu: sent %d, complete %d, error %s (%s), %d requests", i, x.request.sent, x.request.complete,
                     x.request.error ? x.request.error : "none", x.request.detail, stub_server_requests(stub));
        }
    }
}

static void on_idle_time(struct timer *timer)
{
    loop_stop(container_of(timer, struct exchange, timer)->loop);
}

TEST(bytes_that_come_while_nobody_asks_are_no_answer)
{
    static const struct stub_act acts[] = {{OK_KEEP, STUB_UNASKED}, {OK_KEEP, STUB_KEEP}};

    stub_serve(acts, 2);
    exchange_run("POST", stub_url(), SLICE("{}"));
    assert_true(x.request.complete);
    timer_start(x.loop, &x.timer, 2500, on_idle_time); /* the event comes by then */
    loop_run(x.loop);
    exchange_run("POST", stub_url(), SLICE("{}"));
    assert_true(x.request.complete);
    assert_true(slice_is(x.request.response_body, "ok")); /* the answer is its own, on another connection */
    assert_int_equal(stub_server_requests(stub), 2);
}

/* libcurl itself sends the head again to a server that refuses "Expect", as often as the server refuses. */
TEST(nothing_is_expected_before_the_body)
{
    static const struct stub_act acts[] = {{"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n", STUB_KEEP}};
    const struct http_header expect = {.name = SLICE("Expect"), .value = SLICE("100-continue")};
    static char body[20000];
    char request[1000];

    stub_serve(acts, 1);
    memset(body, 'a', sizeof(body));
    x.request.headers = &expect;
    x.request.header_count = 1;
    exchange_run("POST", stub_url(), (struct slice){body, sizeof(body)});
    assert_int_equal(x.request.status, 417);
    assert_int_equal(stub_server_requests(stub), 1);
    stub_server_last(stub, request, sizeof(request));
    assert_null(strcasestr(request, "\r\nexpect:"));
}

TEST(an_empty_post_is_not_sent_twice_either)
{
    static const struct stub_act acts[] = {{OK_KEEP, STUB_CLOSE}, {NULL, STUB_CLOSE}, {OK_KEEP, STUB_KEEP}};
    char request[1000];

    stub_serve(acts, 3);
    exchange_run("POST", stub_url(), SLICE_NONE);
    assert_true(x.request.complete);
    stub_server_last(stub, request, sizeof(request));
    assert_has(request, "Content-Length: 0\r\n");
    exchange_run("POST", stub_url(), SLICE(""));
    assert_false(x.request.complete);
    assert_true(x.request.sent);
    assert_int_equal(stub_server_requests(stub), 2);
}

TEST(a_request_without_body_on_a_fresh_connection_is_not_sent_twice)
{
    static const struct stub_act acts[] = {{OK_KEEP, STUB_CLOSE}, {NULL, STUB_CLOSE}, {OK_KEEP, STUB_KEEP}};

    stub_serve(acts, 3);
    x.request.fresh_connection = true;
    exchange_run("DELETE", stub_url(), SLICE_NONE);
    assert_true(x.request.complete);
    exchange_run("DELETE", stub_url(), SLICE_NONE);
    assert_false(x.request.complete);
    assert_int_equal(stub_server_requests(stub), 2);
}

TEST(a_redirect_is_an_answer)
{
    struct stub_act act = {"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", STUB_KEEP};

    stub_serve(&act, 1);
    exchange_run("GET", stub_url(), SLICE_NONE);
    assert_true(x.request.complete);
    assert_int_equal(x.request.status, 302);
    assert_int_equal(stub_server_requests(stub), 1);
}

TEST(a_request_arrives_as_it_was_written)
{
    static const struct http_header headers[] = {{SLICE("X-Empty"), SLICE("")},
                                                 {SLICE("X-Key"), SLICE("abc")},
                                                 {SLICE("Content-Type"), SLICE("application/json")}};
    struct stub_act act = {OK_KEEP, STUB_KEEP};
    char request[2000];

    stub_serve(&act, 1);
    setenv("http_proxy", "http://127.0.0.1:1", 1); /* the client must ignore the variable */
    x.request.headers = headers;
    x.request.header_count = 3;
    exchange_run("PUT", stub_url(), SLICE("{\"n\": 1.50}"));
    assert_true(x.request.complete);
    stub_server_last(stub, request, sizeof(request));
    assert_ptr_equal(strstr(request, "PUT /charges HTTP/1.1\r\n"), request);
    assert_has(request, "\r\nX-Empty:\r\n", "\r\nX-Key: abc\r\n", "\r\nContent-Type: application/json\r\n",
               "\r\nContent-Length: 11\r\n");
    assert_has_none(request, "Expect:");
    assert_has(request, "\r\n\r\n{\"n\": 1.50}");
    assert_int_equal(x.request.response_header_count, 2);
    assert_true(slice_is(x.request.response_headers[1].name, "x-kind"));
    assert_true(slice_is(x.request.response_headers[1].value, "Good"));
    unsetenv("http_proxy");
}

TEST(a_header_that_frames_the_message_is_ours_whatever_a_tool_renders)
{
    static const struct http_header framing[] = {{SLICE("Content-Length"), SLICE("1")},
                                                 {SLICE("transfer-encoding"), SLICE("chunked")},
                                                 {SLICE("Upgrade"), SLICE("h2c")}};
    struct stub_act act = {OK_KEEP, STUB_KEEP};
    char request[1000];

    stub_serve(&act, 1);
    x.request.headers = framing;
    x.request.header_count = COUNT_OF(framing);
    exchange_run("POST", stub_url(), SLICE("{}"));
    assert_true(x.request.complete);
    stub_server_last(stub, request, sizeof(request));
    assert_has(request, "\r\nContent-Length: 2\r\n");
    assert_has_none(request, "Content-Length: 1");
    assert_null(strcasestr(request, "transfer-encoding"));
    assert_null(strcasestr(request, "upgrade"));
}

TEST(a_header_with_a_line_end_never_leaves)
{
    static const struct http_header bad[] = {{SLICE("X-A"), SLICE("b\r\nX-Evil: 1")},
                                             {SLICE("X-A"), SLICE("b\0c")},
                                             {SLICE("X A"), SLICE("b")},
                                             {SLICE(""), SLICE("b")},
                                             {SLICE("X:A"), SLICE("b")}};
    struct stub_act act = {OK_KEEP, STUB_KEEP};

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        exchange_again();
        stub_serve(&act, 1);
        x.request.headers = &bad[i];
        x.request.header_count = 1;
        exchange_run("POST", stub_url(), SLICE("{}"));
        assert_false(x.request.sent);
        assert_string_equal(x.request.error, "protocol");
        assert_int_equal(stub_server_requests(stub), 0);
    }
}

/* --- cancelling and streaming -------------------------------------------------------------------------------- */

static void on_cancel_time(struct timer *timer)
{
    http_cancel(&container_of(timer, struct exchange, timer)->request);
}

TEST(a_cancelled_request_ends_at_once_with_what_is_known)
{
    struct stub_act act = {NULL, STUB_HANG};

    stub_serve(&act, 1);
    exchange_send(&x, "POST", stub_url(), SLICE("{}"));
    timer_start(x.loop, &x.timer, 100, on_cancel_time);
    loop_run(x.loop);
    assert_int_equal(x.done_count, 1);
    assert_true(x.request.sent);
    assert_string_equal(x.request.error, "cancelled");
    exchange_send(&x, "POST", stub_url(), SLICE("{}"));
    http_cancel(&x.request);
    http_cancel(&x.request);
    loop_run(x.loop);
    assert_int_equal(x.done_count, 1);
    assert_false(x.request.complete);
    http_cancel(&x.request); /* too late, and harmless */
}

static void on_data(struct http_request *request, struct slice data)
{
    struct exchange *exchange = container_of(request, struct exchange, request);
    size_t used = strlen(exchange->streamed);

    assert_int_equal(request->status, 200);
    assert_true(used + data.len < sizeof(exchange->streamed));
    memcpy(exchange->streamed + used, data.ptr, data.len);
    if (exchange->cancel_on_data) {
        http_cancel(request);
    }
}

TEST(a_stream_is_given_as_it_comes_and_may_be_left)
{
    static const struct stub_act acts[] = {
        {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\ndata: 2\n\n", STUB_CLOSE},
        {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n", STUB_HANG},
    };

    stub_serve(acts, 2);
    x.request.streaming = true;
    x.request.on_data = on_data;
    exchange_run("GET", stub_url(), SLICE_NONE);
    assert_true(x.request.complete);
    assert_string_equal(x.streamed, "data: 1\n\ndata: 2\n\n");
    x.cancel_on_data = true;
    x.streamed[0] = '\0';
    memset(x.streamed, 0, sizeof(x.streamed));
    exchange_run("GET", stub_url(), SLICE_NONE);
    assert_string_equal(x.streamed, "data: 1\n\n");
    assert_string_equal(x.request.error, "cancelled");
}

static struct {
    struct loop_hook hook;
    size_t turn_bytes, turn_bytes_most, bytes;
} flood;

static void on_flood(struct http_request *request, struct slice data)
{
    (void)request;
    flood.bytes += data.len;
    flood.turn_bytes += data.len;
    flood.turn_bytes_most = flood.turn_bytes > flood.turn_bytes_most ? flood.turn_bytes : flood.turn_bytes_most;
}

static void on_turn(struct loop_hook *hook)
{
    (void)hook;
    flood.turn_bytes = 0;
}

TEST(a_stream_without_an_end_gets_so_much_a_turn_and_in_all)
{
    static const struct stub_act act = {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", STUB_FLOOD};

    stub_serve(&act, 1);
    loop_hook_add(x.loop, &flood.hook, on_turn);
    x.request.streaming = true;
    x.request.on_data = on_flood;
    x.request.response_bytes_max = 16384;
    x.request.timeout_ms = 60000;
    exchange_run("GET", stub_url(), SLICE_NONE);
    assert_non_null(x.request.error);
    assert_string_equal(x.request.error, "too-large");
    assert_in_range(flood.bytes, HTTP_STREAM_FACTOR * 16384 - 16384, HTTP_STREAM_FACTOR * 16384 + 16384);
    assert_in_range(flood.turn_bytes_most, 1, 65536);
    loop_hook_remove(x.loop, &flood.hook);
}

TEST(connections_are_used_again)
{
    struct stub_act act = {OK_KEEP, STUB_KEEP};

    stub_serve(&act, 1);
    for (int i = 0; i < 200; i++) { /* the stub serves one connection at a time, so a second one would hang */
        exchange_run("POST", stub_url(), SLICE("{}"));
        assert_true(x.request.complete);
    }
    assert_int_equal(stub_server_requests(stub), 200);
}

/* The socket is watched while it is idle, and its number soon belongs to another connection. */
TEST(a_kept_connection_that_closes_meanwhile_is_replaced)
{
    struct stub_act act = {OK_KEEP, STUB_CLOSE};

    stub_serve(&act, 1);
    for (int i = 0; i < 20; i++) {
        exchange_run("POST", stub_url(), SLICE("{}"));
        assert_true(x.request.complete);
        timer_start(x.loop, &x.timer, 20, on_idle_time);
        loop_run(x.loop);
    }
    assert_int_equal(stub_server_requests(stub), 20);
}

static int leave_asked, leave_granted;

static bool may_leave(struct http_request *request)
{
    assert_non_null(request->done);
    return ++leave_asked <= leave_granted;
}

/* The request waits behind another one, or on a kept connection. Permission to leave is asked when its turn has
 * come. */
TEST(a_request_that_may_not_leave_any_more_in_its_turn_is_unsent)
{
    static const struct stub_act acts[] = {{OK_KEEP, STUB_KEEP}, {NULL, STUB_HANG}, {OK_KEEP, STUB_KEEP}};
    struct exchange first;

    stub_serve(acts, 3);
    http_client_free(x.client);
    x.client = http_client_new(x.loop, 1, 1);
    first = (struct exchange){.loop = x.loop, .client = x.client};
    arena_init(&first.arena, 4096);
    x.request.may_leave = first.request.may_leave = may_leave;
    leave_asked = 0;
    leave_granted = 2;
    exchange_run("POST", stub_url(), SLICE("{}"));
    assert_true(x.request.complete);
    assert_int_equal(leave_asked, 1);

    first.request.timeout_ms = 200;
    exchange_send(&first, "POST", stub_url(), SLICE("{}"));
    exchange_send(&x, "POST", stub_url(), SLICE("{}"));
    loop_run(x.loop); /* the time of the first request is over; the second has waited for its connection */
    assert_true(first.request.timed_out && first.request.sent);
    if (x.done_count == 0) {
        loop_run(x.loop);
    }
    assert_int_equal(leave_asked, 3);
    assert_false(x.request.sent);
    assert_false(x.request.complete);
    assert_string_equal(x.request.error, "withheld");
    assert_int_equal(stub_server_requests(stub), 2);

    leave_granted = 4; /* nothing is left that harms the next request */
    exchange_run("POST", stub_url(), SLICE("{}"));
    assert_true(x.request.complete);
    assert_int_equal(stub_server_requests(stub), 3);
    arena_fini(&first.arena);
}

TEST_PROGRAM_EACH(exchange_open, exchange_close)
