/* Serves one connection at a time. This is enough, because the client under test sends one request at a time. */
#include "tests/lib/stub_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"

#define REQUEST_BYTES_MAX 65536

struct stub_server {
    pthread_t thread;
    int listen_fd, port, wake[2];
    const struct stub_act *acts;
    size_t act_count;
    atomic_int requests;
    pthread_mutex_t mutex;
    char last[REQUEST_BYTES_MAX];
};

static int listen_any(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    CHECK(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &len) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

int stub_port_refused(void)
{
    int port, fd = listen_any(&port); /* the port was bound and closed, and nobody listens on it */

    (void)close(fd);
    return port;
}

/* Waits until there is something to read. Returns false when the test is over. */
static bool readable(const struct stub_server *stub, int fd)
{
    struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = stub->wake[0], .events = POLLIN}};

    while (poll(fds, 2, -1) < 0) {
        CHECK(errno == EINTR);
    }
    return fds[1].revents == 0;
}

static size_t body_length(const char *head)
{
    const char *at = strcasestr(head, "\r\ncontent-length:");

    return at ? (size_t)atol(at + 17) : 0;
}

/* Reads a request. Returns false when the connection ended before the whole request. */
static bool request_read(struct stub_server *stub, int fd)
{
    static _Thread_local char text[REQUEST_BYTES_MAX];
    size_t len = 0;

    for (;;) {
        const char *end;
        ssize_t got;

        text[len] = '\0';
        end = strstr(text, "\r\n\r\n");
        if (end && len >= (size_t)(end + 4 - text) + body_length(text)) {
            break;
        }
        if (!readable(stub, fd)) {
            return false;
        }
        got = recv(fd, text + len, sizeof(text) - 1 - len, 0);
        if (got <= 0) {
            return false;
        }
        len += (size_t)got;
    }
    CHECK(pthread_mutex_lock(&stub->mutex) == 0);
    memcpy(stub->last, text, len + 1);
    CHECK(pthread_mutex_unlock(&stub->mutex) == 0);
    stub->requests++;
    return true;
}

static void send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);

        if (sent <= 0) {
            return;
        }
        bytes += sent;
        len -= (size_t)sent;
    }
}

static void flood(int fd)
{
    static const char zeros[4096];

    while (send(fd, zeros, sizeof(zeros), MSG_NOSIGNAL) > 0) {
    }
}

static void hang(const struct stub_server *stub, int fd)
{
    char byte;

    while (readable(stub, fd) && recv(fd, &byte, 1, 0) > 0) {
    }
}

static void connection_serve(struct stub_server *stub, int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    while (request_read(stub, fd)) {
        size_t n = (size_t)stub->requests - 1;
        const struct stub_act *act = &stub->acts[n < stub->act_count ? n : stub->act_count - 1];

        if (act->answer) {
            send_all(fd, act->answer, strlen(act->answer));
        }
        if (act->then == STUB_UNASKED) {
            (void)usleep(50000); /* gives the client time to read the answer and keep the connection */
            send_all(fd, STUB_UNASKED_ANSWER, strlen(STUB_UNASKED_ANSWER));
        }
        if (act->then == STUB_KEEP || act->then == STUB_UNASKED) {
            continue;
        }
        if (act->then == STUB_RESET) {
            CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) == 0);
        } else if (act->then == STUB_HANG) {
            hang(stub, fd);
        } else if (act->then == STUB_FLOOD) {
            flood(fd);
        }
        break;
    }
    (void)close(fd);
}

static void *stub_main(void *context)
{
    struct stub_server *stub = context;

    while (readable(stub, stub->listen_fd)) {
        int fd = accept4(stub->listen_fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd >= 0) {
            connection_serve(stub, fd);
        }
    }
    return NULL;
}

struct stub_server *stub_server_new(const struct stub_act *acts, size_t count)
{
    struct stub_server *stub = memory_alloc(sizeof(*stub));

    stub->acts = acts;
    stub->act_count = count;
    stub->listen_fd = listen_any(&stub->port);
    CHECK(listen(stub->listen_fd, 16) == 0);
    CHECK(pipe(stub->wake) == 0);
    CHECK(pthread_mutex_init(&stub->mutex, NULL) == 0);
    CHECK(pthread_create(&stub->thread, NULL, stub_main, stub) == 0);
    return stub;
}

void stub_server_free(struct stub_server *stub)
{
    CHECK(write(stub->wake[1], "x", 1) == 1);
    CHECK(pthread_join(stub->thread, NULL) == 0);
    (void)close(stub->listen_fd);
    (void)close(stub->wake[0]);
    (void)close(stub->wake[1]);
    CHECK(pthread_mutex_destroy(&stub->mutex) == 0);
    free(stub);
}

int stub_server_port(const struct stub_server *stub)
{
    return stub->port;
}

int stub_server_requests(const struct stub_server *stub)
{
    return stub->requests;
}

void stub_server_last(struct stub_server *stub, char *out, size_t size)
{
    size_t len;

    CHECK(pthread_mutex_lock(&stub->mutex) == 0);
    len = strnlen(stub->last, size - 1);
    memcpy(out, stub->last, len);
    out[len] = '\0';
    CHECK(pthread_mutex_unlock(&stub->mutex) == 0);
}
