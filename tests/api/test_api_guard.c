/* Requests that two readers could understand differently are refused, and slow clients are sent away. Tested over real
 * sockets. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/api/api_host.h"
#include "tests/api/raw_client.h"
#include "tests/lib/test.h"

#define BIG "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define BIG_512 BIG BIG BIG BIG BIG BIG BIG BIG
#define BIG_8K                                                                                                         \
    BIG_512 BIG_512 BIG_512 BIG_512 BIG_512 BIG_512 BIG_512 BIG_512 BIG_512 BIG_512 BIG_512 BIG_512 BIG_512 BIG_512    \
        BIG_512 BIG_512

static const struct {
    const char *name, *request;
    int status;
    bool closes;
} cases[] = {
    {"a good request is answered and the connection kept", "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", 200,
     false},
    {"a good body by length",
     "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16\r\n\r\n{\"saga\":\"quick\"}", 201, false},
    {"a good body in chunks",
     "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
     "chunked\r\n\r\n10\r\n{\"saga\":\"quick\"}\r\n0\r\n\r\n",
     201, false},
    {"Transfer-Encoding beside Content-Length",
     "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     400, true},
    {"two Content-Length that differ",
     "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400, true},
    {"two Content-Length that agree",
     "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400, true},
    {"a list of Content-Length", "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2, 2\r\n\r\n{}", 400,
     true},
    {"a negative Content-Length", "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nContent-Length: -2\r\n\r\n{}", 400,
     true},
    {"a Content-Length with a sign", "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nContent-Length: +2\r\n\r\n{}", 400,
     true},
    {"a space before the colon", "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nContent-Length : 2\r\n\r\n{}", 400,
     true},
    {"another Transfer-Encoding",
     "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400, true},
    {"Transfer-Encoding twice",
     "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
     "chunked\r\n\r\n0\r\n\r\n",
     400, true},
    {"a list of Transfer-Encoding",
     "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400, true},
    {"no Host", "GET /livez HTTP/1.1\r\n\r\n", 400, true},
    {"two Host", "GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400, true},
    {"a Host with a path", "GET /livez HTTP/1.1\r\nHost: localhost/x\r\n\r\n", 400, true},
    {"an odd name", "GET /livez HTTP/1.1\r\nHost: localhost\r\nX(Y): 1\r\n\r\n", 400, true},
    {"a control character in a value", "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: a\001b\r\n\r\n", 400, true},
    {"a NUL in the target", "GET /livez%00x HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, true},
    {"a % that encodes nothing", "GET /livez%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, true},
    {"a path that is not UTF-8", "GET /v1/sagas/%ff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, true},
    {"a query parameter that is not UTF-8", "GET /v1/sagas?business_id=%c3%28 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400,
     true},
    {"the name of a query parameter that is not UTF-8", "GET /v1/sagas?tag.%fe=1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
     400, true},
    {"an Idempotency-Key that is not UTF-8",
     "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: \xff\r\nContent-Length: "
     "16\r\n\r\n{\"saga\":\"quick\"}",
     400, true},
    {"an Idempotency-Key beyond ASCII",
     "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: \xc3\xa4\r\nContent-Length: "
     "16\r\n\r\n{\"saga\":\"quick\"}",
     201, false},
    {"a Content-Length on a folded line",
     "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nContent-Length:\r\n 16\r\n\r\n{\"saga\":\"quick\"}", 400, true},
    {"a Transfer-Encoding on a folded line",
     "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400, true},
    {"a folded line", "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n", 400, true},
    {"a line folded by a tab", "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: a\r\n\tb\r\n\r\n", 400, true},
    {"a folded line that is blank", "GET /livez HTTP/1.1\r\nHost: localhost\r\n \r\n\r\n", 400, true},
    {"a line folded twice", "GET /livez HTTP/1.1\r\nX: a\r\n b\r\n c\r\nHost: localhost\r\n\r\n", 400, true},
    {"a Content-Length without a value", "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nContent-Length:\r\n\r\n", 400,
     true},
    {"a Transfer-Encoding without a value", "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding:\r\n\r\n",
     400, true},
    {"another field without a value", "GET /livez HTTP/1.1\r\nHost: localhost\r\nX:\r\n\r\n", 200, false},
    {"white space around values", "GET /livez HTTP/1.1\r\nHost: \t localhost\r\nX:  a b \t\r\nY: c\r\n\r\n", 200,
     false},
    {"a field without a name", "GET /livez HTTP/1.1\r\n: y\r\nHost: localhost\r\n\r\n", 400, true},
    {"two Authorization",
     "GET /livez HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", 400, true},
    {"an encoded slash", "GET /v1%2Fsagas HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, true},
    {"an encoded slash within a part", "GET /v1/sagas/a%2flog HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, true},
    {"an encoded slash in the query", "GET /v1/sagas?business_id=a%2Fb HTTP/1.1\r\nHost: localhost\r\n\r\n", 200,
     false},
    {"an odd method", "G@T /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, true},
    {"far too much body by its length",
     "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n", 413, true},
    {"too much body that waits to be asked for",
     "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2000000\r\n\r\n", 413,
     true},
    {"a head of more than 8 KiB", "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " BIG_8K "\r\n\r\n", 200, false},
    {"a head of 32 KiB", "GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " BIG_8K BIG_8K BIG_8K BIG_8K "\r\n\r\n", 431,
     true},
};

static struct api_host host;
static struct api_host patient; /* the host with the default times, for large bodies */

static int setup(void **state)
{
    (void)state;
    host = api_host_start(&(struct api_options){.header_ms = 1000, .body_ms = 1000, .idle_ms = 2000});
    patient = api_host_start(&(struct api_options){0});
    return 0;
}

TEST(ambiguous_requests_are_refused)
{
    static struct raw_answer answer;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int fd = raw_connect(host.port);

        raw_send(fd, cases[i].request, strlen(cases[i].request));
        raw_read(fd, 5000, &answer);
        if (answer.status != cases[i].status || answer.closed != cases[i].closes) {
            fail_msg("%s: got %d%s\n%s", cases[i].name, answer.status, answer.closed ? ", closed" : "", answer.head);
        }
        if (raw_head_has(&answer, "\r\nContent-Type:") &&
            answer.status >= 400) { /* the library's own refusals have no problem document */
            expect_head(&answer, "application/problem+json");
        }
        (void)close(fd);
    }
}

TEST(a_nul_in_the_head_is_refused)
{
    static const struct slice heads[] = {SLICE("GET\0T /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                                         SLICE("GET /livez HTTP/1.1\0x\r\nHost: localhost\r\n\r\n"),
                                         SLICE("GET /livez HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\nY: c\r\n\r\n")};
    static struct raw_answer answer;

    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        int fd = raw_connect(host.port);

        raw_send(fd, heads[i].ptr, heads[i].len);
        expect(raw_read(fd, 5000, &answer), 400);
        assert_true(answer.closed);
        (void)close(fd);
    }
}

/* The library has no answer to so many parameters: its client would wait in vain. */
TEST(far_too_many_parameters_are_refused_at_once)
{
    static const size_t counts[] = {300, 3000, 9000};
    static const char head[] = "GET /livez?", tail[] = " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static char request[10000];
    static struct raw_answer answer;

    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        int fd = raw_connect(patient.port);

        memcpy(request, head, sizeof(head) - 1);
        memset(request + sizeof(head) - 1, '&', counts[i]);
        memcpy(request + sizeof(head) - 1 + counts[i], tail, sizeof(tail));
        raw_send(fd, request, strlen(request));
        raw_read(fd, 5000, &answer);
        if (answer.status != 400 || !answer.closed || !strstr(answer.body, "32 query parameters")) {
            fail_msg("%zu: status %d, closed %d, %s", counts[i], answer.status, answer.closed, answer.body);
        }
        (void)close(fd);
    }
    request[sizeof(head) - 1 + 40] = '\0';
    expect(raw_ask(patient.port, "GET", request + 4, "", NULL, &answer), 400);
}

static void read_to_the_end(int fd, char *to, size_t capacity)
{
    struct timeval patience = {.tv_sec = 10};
    size_t len = 0;
    ssize_t n;

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    while ((n = recv(fd, to + len, capacity - 1 - len, 0)) > 0) {
        len += (size_t)n;
    }
    to[len] = '\0';
    assert_true(n == 0 || errno == ECONNRESET); /* the connection was closed, not only silent */
}

/*
 * libmicrohttpd 0.9.75 answers these requests itself and writes the head of its answer twice. A client reads the second
 * head as a body. The test checks that the library takes neither this request nor the one behind it.
 */
TEST(lengths_that_the_library_refuses_let_nothing_through)
{
    static const char *const lengths[] = {"16, 16", "+16", "0x10", "-16", "16 16", "1e1", "18446744073709551632"};
    static const char format[] = "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nContent-Length: %s\r\n\r\n"
                                 "{\"saga\":\"quick\"}"
                                 "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16\r\n\r\n"
                                 "{\"saga\":\"quick\"}";
    static char answer[16384];
    char request[1024];

    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        int fd = raw_connect(patient.port);
        int len = snprintf(request, sizeof(request), format, lengths[i]);

        raw_send(fd, request, (size_t)len);
        read_to_the_end(fd, answer, sizeof(answer));
        if (strncmp(answer, "HTTP/1.1 4", 10) != 0 || strstr(answer, "HTTP/1.1 2") ||
            !strstr(answer, "Connection: close")) {
            fail_msg("Content-Length: %s is answered %s", lengths[i], answer);
        }
        (void)close(fd);
    }
}

TEST(too_much_body_in_chunks_is_refused)
{
    static struct raw_answer answer;
    static const char head[] = "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    static char chunk[65536 + 16];
    int fd = raw_connect(patient.port);

    raw_send(fd, head, sizeof(head) - 1);
    memcpy(chunk, "10000\r\n", 7);
    memset(chunk + 7, ' ', 65536);
    memcpy(chunk + 7 + 65536, "\r\n", 2);
    for (int i = 0; i < 20; i++) {
        raw_send(fd, chunk, 7 + 65536 + 2);
    }
    raw_send(fd, "0\r\n\r\n", 5);
    expect(raw_read(fd, 5000, &answer), 413);
    (void)close(fd);
}

static int64_t processor_ms(pid_t pid)
{
    struct timespec used;
    clockid_t clock;

    assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
    assert_int_equal(clock_gettime(clock, &used), 0);
    return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

/* The client keeps its end open. A connection that the library does not close would cost each request of others, for
 * as long as an idle one may stay: a minute. */
static void wait_until_gone(uint16_t port)
{
    static struct raw_answer answer;
    int tries = 0;

    do {
        assert_true(tries++ < 200);
        (void)usleep(100000);
        expect(raw_ask(port, "GET", "/metrics", "", NULL, &answer), 200);
    } while (!raw_body_has(&answer, "\nsagad_http_connections 1\n")); /* the one that asks */
}

/* The library's buffer is full, and the library can neither go on nor refuse. It asks to be run again at once. */
TEST(a_line_of_a_chunk_without_an_end_costs_next_to_nothing)
{
    static const char head[] = "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    static const struct {
        const char *name, *begin;
        char filler;
        size_t bytes;
    } lines[] = {{"an extension", "10;", 'a', 20000},
                 {"a size", "", '0', 20000},
                 {"an extension, more and more", "10;", 'a', 200000},
                 {"an extension that just fills the buffer", "10;", 'a', 15000}};
    static char filler[200000];
    static struct raw_answer answer;

    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        int64_t before_ms = processor_ms(patient.pid);
        int fd = raw_connect(patient.port);

        raw_send(fd, head, sizeof(head) - 1);
        raw_send(fd, lines[i].begin, strlen(lines[i].begin));
        memset(filler, lines[i].filler, lines[i].bytes);
        raw_send(fd, filler, lines[i].bytes);
        raw_read(fd, 3000, &answer);
        if (processor_ms(patient.pid) - before_ms > 1000) {
            fail_msg("%s: %lld ms of processor time", lines[i].name,
                     (long long)(processor_ms(patient.pid) - before_ms));
        }
        assert_true(answer.closed || lines[i].bytes < 16000);
        if (answer.closed) {
            wait_until_gone(patient.port);
        }
        (void)close(fd);
    }
}

/* A client without the right gets its refusal before the end of its body in chunks. */
TEST(a_client_without_the_right_is_told_so_before_the_end_of_a_body_in_chunks)
{
    static const char head[] =
        "POST /v1/sagas HTTP/1.1\r\nHost: evil.example\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n";
    static struct raw_answer answer;
    int fd = raw_connect(patient.port);

    raw_send(fd, head, sizeof(head) - 1);
    expect(raw_read(fd, 3000, &answer), 403);
    expect_head(&answer, "\r\nConnection: close");
    (void)close(fd);
}

/* No reset may overtake the answer: a client that is still sending reads the answer afterwards. */
TEST(an_early_answer_waits_for_the_body)
{
    static struct raw_answer answer;
    static char body[1200000];

    memset(body, ' ', sizeof(body) - 1);
    expect(raw_ask(patient.port, "POST", "/v1/sagas", "", body, &answer), 413);
    assert_false(answer.closed);
    expect(raw_ask(patient.port, "POST", "/v1/nothing", "", body, &answer), 413);
    body[1000000] = '\0';
    expect(raw_ask(patient.port, "POST", "/v1/nothing", "", body, &answer), 404);
    assert_false(answer.closed);
}

TEST(pipelined_requests_are_answered_in_order)
{
    static struct raw_answer answer;
    static const char two[] = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGET /nothing HTTP/1.1\r\nHost: "
                              "localhost\r\nConnection: close\r\n\r\n";
    int fd = raw_connect(host.port);

    raw_send(fd, two, sizeof(two) - 1);
    expect(raw_read(fd, 2000, &answer), 200);
    (void)close(fd);
}

static bool closed_within(int fd, const char *drip, int times, useconds_t pause_us)
{
    char byte;

    for (int i = 0; i < times; i++) {
        raw_send(fd, drip, strlen(drip));
        (void)usleep(pause_us);
        if (recv(fd, &byte, 1, MSG_DONTWAIT) == 0) {
            return true;
        }
    }
    return false;
}

TEST(a_head_that_drips_is_cut_off)
{
    int fd = raw_connect(host.port);

    raw_send(fd, "GET /livez HTTP/1.1\r\nX: ", 24);
    assert_true(closed_within(fd, "a", 40, 100000));
    (void)close(fd);
}

TEST(a_body_that_drips_is_cut_off)
{
    static const char head[] = "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n";
    int fd = raw_connect(host.port);

    raw_send(fd, head, sizeof(head) - 1);
    assert_true(closed_within(fd, " ", 40, 100000));
    (void)close(fd);
}

TEST(a_connection_that_says_nothing_is_closed)
{
    int fd = raw_connect(host.port);

    assert_true(closed_within(fd, "", 50, 100000));
    (void)close(fd);
}

TEST(a_client_that_connects_and_says_nothing_has_the_time_of_a_head)
{
    struct api_host strict = api_host_start(&(struct api_options){.header_ms = 1000, .idle_ms = 60000});
    static const char livez[] = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static struct raw_answer answer;
    int silent = raw_connect(strict.port), known = raw_connect(strict.port);

    raw_send(known, livez, sizeof(livez) - 1);
    expect(raw_read(known, 5000, &answer), 200);
    assert_true(closed_within(silent, "", 100, 100000));
    raw_send(known, livez, sizeof(livez) - 1); /* between requests there is more time */
    expect(raw_read(known, 5000, &answer), 200);
    (void)close(silent);
    (void)close(known);
    assert_int_equal(api_host_stop(&strict), 0);
}

TEST(one_address_has_no_more_connections_than_allowed)
{
    struct api_host few = api_host_start(&(struct api_options){.connections_per_ip_max = 3});
    static const char livez[] = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static struct raw_answer answer;
    int fds[4];

    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = raw_connect(few.port);
        raw_send(fds[i], livez, sizeof(livez) - 1);
        expect(raw_read(fds[i], 5000, &answer), i < 3 ? 200 : 0);
    }
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        (void)close(fds[i]);
    }
    assert_int_equal(api_host_stop(&few), 0);
}

TEST(a_client_beyond_the_limit_of_connections_is_told_to_come_again)
{
    enum { CONNECTIONS = 4 };
    static const char livez[] = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static const char start[] =
        "POST /v1/sagas HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16\r\n\r\n{\"saga\":\"quick\"}";
    struct api_host few = api_host_start(&(struct api_options){.connections_max = CONNECTIONS});
    static struct raw_answer answer;
    int fds[CONNECTIONS], silent, fd, tries = 0;

    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = raw_connect(few.port);
        raw_send(fds[i], livez, sizeof(livez) - 1);
        expect(raw_read(fds[i], 5000, &answer), 200);
    }
    for (int i = 0; i < 100; i++) {
        fd = raw_connect(few.port);
        raw_send(fd, start, sizeof(start) - 1);
        raw_read(fd, 5000, &answer);
        (void)close(fd);
        expect(&answer, 503);
        expect_head(&answer, "\r\nRetry-After: ");
        assert_true(answer.closed);
    }
    silent = raw_connect(few.port); /* this client says nothing, and is closed earlier than the others */
    expect(raw_read(silent, 20000, &answer), 0);
    assert_true(answer.closed);
    (void)close(silent);
    raw_send(fds[1], livez, sizeof(livez) - 1); /* the earlier clients go on */
    expect(raw_read(fds[1], 5000, &answer), 200);
    (void)close(fds[0]);
    do { /* until the server notices that one client has left */
        (void)usleep(100000);
        raw_ask(few.port, "POST", "/v1/sagas", "", "{\"saga\":\"quick\"}", &answer);
    } while (answer.status == 503 && ++tries < 50);
    expect(&answer, 201);
    for (size_t i = 1; i < COUNT_OF(fds); i++) {
        (void)close(fds[i]);
    }
    assert_int_equal(api_host_stop(&few), 0);
}

TEST_PROGRAM(setup, api_host_teardown)
