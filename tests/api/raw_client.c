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

void raw_read(int fd, int patience_ms, struct raw_answer *out)
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
        return;
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
}

void raw_ask(uint16_t port, const char *method, const char *target, const char *head, const char *body,
             struct raw_answer *out)
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
    raw_read(fd, 10000, out);
    (void)close(fd);
}

bool raw_head_has(const struct raw_answer *answer, const char *line)
{
    return strcasestr(answer->head, line) != NULL;
}
