/* Blocking sockets that read one answer at a time; see raw_client.h. */
#include "tests/api/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/test.h"

int raw_connect(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    CHECK(connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
}

void raw_send(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

        if (n <= 0) {
            return; /* the server closed, which the read reports */
        }
        bytes += n;
        len -= (size_t)n;
    }
}

static int64_t clock_ms(void)
{
    struct timespec now;

    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Reads more bytes. Returns false when the time is over or the server closed. */
static bool read_more(int fd, int64_t until_ms, char *to, size_t room, size_t *len, bool *closed)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    int64_t left_ms = until_ms - clock_ms();

    if (left_ms < 0 || poll(&poll_fd, 1, (int)left_ms) <= 0) {
        return false;
    }
    ssize_t n = recv(fd, to + *len, room - *len, 0);

    if (n <= 0) {
        *closed = true;
        return false;
    }
    *len += (size_t)n;
    return true;
}

static size_t content_length(const char *head, size_t otherwise)
{
    const char *line = strcasestr(head, "\r\ncontent-length:");

    return line ? strtoul(line + 17, NULL, 10) : otherwise;
}

const struct raw_answer *raw_read(int fd, int patience_ms, struct raw_answer *out)
{
    static char bytes[sizeof(out->head) + sizeof(out->body)];
    int64_t until_ms = clock_ms() + patience_ms;
    size_t len = 0;
    char *end = NULL;

    out->status = 0; /* the texts are large: only their beginnings are cleared */
    out->closed = false;
    out->head[0] = out->body[0] = '\0';
    out->body_len = 0;
    do {
        bytes[len] = '\0';
        end = strstr(bytes, "\r\n\r\n");
    } while (!end && read_more(fd, until_ms, bytes, sizeof(bytes) - 1, &len, &out->closed));
    if (!end) {
        return out;
    }
    size_t head_len = (size_t)(end + 4 - bytes);

    (void)snprintf(out->head, sizeof(out->head), "%.*s", (int)head_len, bytes);
    out->status = atoi(bytes + 9);
    size_t want = content_length(out->head, out->status == 204 ? 0 : sizeof(out->body) - 1);

    while (len - head_len < want && read_more(fd, until_ms, bytes, sizeof(bytes) - 1, &len, &out->closed)) {
    }
    out->body_len = len - head_len;
    CHECK(out->body_len < sizeof(out->body));
    memcpy(out->body, bytes + head_len, out->body_len);
    out->body[out->body_len] = '\0';
    out->closed = out->closed || strcasestr(out->head, "\r\nconnection: close") != NULL;
    return out;
}

const struct raw_answer *raw_ask(uint16_t port, const char *method, const char *target, const char *head,
                                 const char *body, struct raw_answer *out)
{
    int fd = raw_connect(port);
    struct buffer request;

    buffer_init(&request, 4 << 20);
    buffer_printf(&request, "%s %s HTTP/1.1\r\n%s", method, target,
                  strcasestr(head, "host:") ? "" : "Host: localhost\r\n");
    buffer_put_text(&request, head);
    if (body) {
        buffer_printf(&request, "Content-Length: %zu\r\n", strlen(body));
    }
    buffer_put_text(&request, "\r\n");
    buffer_put_text(&request, body ? body : "");
    raw_send(fd, request.ptr, request.len);
    buffer_fini(&request);
    (void)raw_read(fd, 10000, out);
    (void)close(fd);
    return out;
}

const struct raw_answer *raw_ask_as(uint16_t port, const char *token, const char *method, const char *target,
                                    const char *body, struct raw_answer *out)
{
    char head[512];

    (void)snprintf(head, sizeof(head), "Authorization: Bearer %s\r\n", token);
    return raw_ask(port, method, target, head, body, out);
}

bool raw_head_has(const struct raw_answer *answer, const char *line)
{
    return strcasestr(answer->head, line) != NULL;
}

bool raw_body_has(const struct raw_answer *answer, const char *text)
{
    return strstr(answer->body, text) != NULL;
}

/* Each of the texts must stand in `where`, or none of them. The test fails at the line that expects it. */
static void expect_texts(const char *file, int line, const struct raw_answer *answer, const char *where, bool stands,
                         va_list texts)
{
    const char *text;

    while ((text = va_arg(texts, const char *)) != NULL) {
        bool is_there = (where == answer->head ? strcasestr(where, text) : strstr(where, text)) != NULL;

        if (is_there != stands) {
            print_error("ERROR: %s: %s\n%d %s%s\n", stands ? "this is missing" : "this may not be there", text,
                        answer->status, answer->head, answer->body);
            _fail(file, line);
        }
    }
}

void expect_at(const char *file, int line, const struct raw_answer *answer, int status, ...)
{
    va_list texts;

    if (answer->status != status) {
        print_error("ERROR: expected %d, got %d %s%s\n", status, answer->status, answer->head, answer->body);
        _fail(file, line);
    }
    va_start(texts, status);
    expect_texts(file, line, answer, answer->body, true, texts);
    va_end(texts);
}

void expect_body_at(const char *file, int line, const struct raw_answer *answer, ...)
{
    va_list texts;

    va_start(texts, answer);
    expect_texts(file, line, answer, answer->body, true, texts);
    va_end(texts);
}

void expect_none_at(const char *file, int line, const struct raw_answer *answer, ...)
{
    va_list texts;

    va_start(texts, answer);
    expect_texts(file, line, answer, answer->body, false, texts);
    va_end(texts);
}

void expect_head_at(const char *file, int line, const struct raw_answer *answer, ...)
{
    va_list texts;

    va_start(texts, answer);
    expect_texts(file, line, answer, answer->head, true, texts);
    va_end(texts);
}

void answer_take(const struct raw_answer *answer, const char *member, size_t bytes, char *out)
{
    const char *at = strstr(answer->body, member);

    if (!at) {
        fail_msg("%s is not in %d %s", member, answer->status, answer->body);
    }
    (void)snprintf(out, bytes + 1, "%s", at + strlen(member));
}

const char *text_of(const char *format, ...)
{
    static char texts[4][8192];
    static size_t next;
    char *text = texts[next++ % COUNT_OF(texts)];
    va_list arguments;

    va_start(arguments, format);
    int len = vsnprintf(text, sizeof(texts[0]), format, arguments);

    va_end(arguments);
    assert_in_range(len, 0, sizeof(texts[0]) - 1);
    return text;
}
