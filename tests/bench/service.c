/*
 * The least that a service can be: answers every request with 200 and {"ok":true}, over connections that stay. One
 * thread, one epoll, no allocation after a connection was accepted, so that W3 measures how sagad calls and not how
 * well somebody answers.
 *
 *   bench-service PORT
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_BYTES_MAX 16384
#define EVENTS_MAX 256

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n"
                             "{\"ok\":true}";

struct client {
    int fd;
    size_t used;
    size_t skip; /* bytes of a body that are still to come */
    char in[HEAD_BYTES_MAX];
};

static void client_close(struct client *client)
{
    (void)close(client->fd); /* nothing was promised on it */
    free(client);
}

static size_t content_length(const char *head, size_t len)
{
    for (const char *line = head; line < head + len; line++) {
        if ((size_t)(head + len - line) > 15 && strncasecmp(line, "content-length:", 15) == 0) {
            return (size_t)strtoul(line + 15, NULL, 10);
        }
        line = memchr(line, '\n', (size_t)(head + len - line));
        if (!line) {
            break;
        }
    }
    return 0;
}

/* Answers each request whose head is there; its body is thrown away, then or later. False: no client to go on with. */
static bool client_serve(struct client *client)
{
    for (;;) {
        size_t now = client->skip < client->used ? client->skip : client->used;

        client->skip -= now;
        client->used -= now;
        memmove(client->in, client->in + now, client->used);
        const char *end = client->used > 0 ? memmem(client->in, client->used, "\r\n\r\n", 4) : NULL;

        if (!end) {
            return client->used < HEAD_BYTES_MAX;
        }
        size_t head = (size_t)(end + 4 - client->in);

        client->skip = head + content_length(client->in, head);
        /* So short that it fits the socket's buffer, unless the client does not read: then it is none of ours. */
        if (send(client->fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof(answer) - 1) {
            return false;
        }
    }
}

static bool client_read(struct client *client)
{
    ssize_t n = recv(client->fd, client->in + client->used, HEAD_BYTES_MAX - client->used, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return true;
    }
    client->used += n > 0 ? (size_t)n : 0;
    return n > 0 && client_serve(client);
}

static int listen_on(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 1024) != 0) {
        perror("bench-service");
        exit(1);
    }
    return fd;
}

static void client_accept(int epoll, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), yes = 1;
    struct client *client = fd >= 0 ? malloc(sizeof(*client)) : NULL;

    if (!client) {
        if (fd >= 0) {
            (void)close(fd); /* out of memory: this one has to come again */
        }
        return;
    }
    client->fd = fd;
    client->used = client->skip = 0;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)); /* slower without, not wrong */
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = client}};

    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        client_close(client);
    }
}

int main(int argc, char **argv)
{
    unsigned long port = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;

    if (port == 0 || port > 65535) {
        (void)fputs("usage: bench-service PORT\n", stderr);
        return 2;
    }
    int listener = listen_on((uint16_t)port), epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = NULL}}, events[EVENTS_MAX];

    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0) {
        perror("bench-service");
        return 1;
    }
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS_MAX, -1);

        for (int i = 0; i < count; i++) {
            struct client *client = events[i].data.ptr;

            if (!client) {
                client_accept(epoll, listener);
            } else if (!client_read(client)) {
                client_close(client);
            }
        }
    }
}
