/* The socket is opened here, not by the HTTP library, because the library does not say why it could not. */
#include "io/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LISTEN_BACKLOG 1024

/* Splits "ADDRESS:PORT" or "[ADDRESS]:PORT" into its parts. */
static bool split(const char *text, char host[256], char port[8])
{
    const char *colon = strrchr(text, ':');
    size_t host_len = colon ? (size_t)(colon - text) : 0;
    int64_t number = 0;

    if (host_len == 0 || host_len >= 256 || !slice_to_i64(slice_of(colon + 1), &number) || number < 0 ||
        number > 65535) {
        return false;
    }
    if (text[0] == '[') {
        if (host_len < 3 || text[host_len - 1] != ']') {
            return false;
        }
        text++;
        host_len -= 2;
    } else if (memchr(text, ':', host_len)) {
        return false;
    }
    memcpy(host, text, host_len);
    host[host_len] = '\0';
    (void)snprintf(port, 8, "%d", (int)number);
    return true;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET) {
        return (ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24) == 127;
    }
    return address->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

static void describe(struct http_listener *out, const struct sockaddr_storage *address)
{
    char host[INET6_ADDRSTRLEN] = "";

    if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;

        out->port = ntohs(in6->sin6_port);
        (void)snprintf(out->text, sizeof(out->text), "[%s]:%u",
                       inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host)), out->port);
    } else {
        const struct sockaddr_in *in4 = (const struct sockaddr_in *)address;

        out->port = ntohs(in4->sin_port);
        (void)snprintf(out->text, sizeof(out->text), "%s:%u", inet_ntop(AF_INET, &in4->sin_addr, host, sizeof(host)),
                       out->port);
    }
    out->is_loopback = is_loopback(address);
}

static enum err_code refuse(const char *listen_text, int error, struct err *err)
{
    (void)err_set(err, ERR_CONFIG, "sagad cannot listen on %s", listen_text);
    err_detail(err, "%s", strerror(error));
    if (error == EADDRINUSE) {
        err_hint(err,
                 "another program has this port, maybe another sagad: stop it, or choose another port with --listen");
    } else if (error == EADDRNOTAVAIL) {
        err_hint(err, "this machine has no such address: choose one of its own with --listen");
    } else if (error == EACCES) {
        err_hint(err, "ports below 1024 need a privilege: choose a higher one with --listen");
    }
    return ERR_CONFIG;
}

static enum err_code find(const char *listen_text, struct addrinfo **found, struct err *err)
{
    char host[256], port[8];

    if (!split(listen_text, host, port)) {
        enum err_code code = err_set(err, ERR_CONFIG, "\"%s\" is no address to listen on", listen_text);

        err_hint(err, "write ADDRESS:PORT, as in 127.0.0.1:8077 or [::1]:8077");
        return code;
    }
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    int failure = getaddrinfo(host, port, &hints, found);

    if (failure != 0) {
        enum err_code code = err_set(err, ERR_CONFIG, "\"%s\" is no address to listen on", listen_text);

        err_detail(err, "%s", gai_strerror(failure));
        return code;
    }
    return ERR_OK;
}

enum err_code http_listen(const char *listen_text, struct http_listener *out, struct err *err)
{
    struct addrinfo *found = NULL;

    if (find(listen_text, &found, err) != ERR_OK) {
        return ERR_CONFIG;
    }
    int yes = 1;
    struct sockaddr_storage address;
    socklen_t address_len = sizeof(address);
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
              bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, LISTEN_BACKLOG) == 0 &&
              getsockname(fd, (struct sockaddr *)&address, &address_len) == 0;
    int error = errno;

    freeaddrinfo(found);
    if (!ok) {
        if (fd >= 0) {
            (void)close(fd); /* nothing was written */
        }
        return refuse(listen_text, error, err);
    }
    out->fd = fd;
    describe(out, &address);
    return ERR_OK;
}

/* May this process have the port? Linux looks at that before it sees that the socket is bound already, so that asking
 * takes the port from nobody. */
static bool port_is_permitted(int fd, const struct sockaddr_storage *address, socklen_t address_len)
{
    return bind(fd, (const struct sockaddr *)address, address_len) == 0 || errno != EACCES;
}

/* Binds the address with port 0, so that an engine that runs at the port, or is about to, is not disturbed. */
enum err_code http_listen_check(const char *listen_text, struct http_listener *out, struct err *err)
{
    struct addrinfo *found = NULL;

    if (find(listen_text, &found, err) != ERR_OK) {
        return ERR_CONFIG;
    }
    struct sockaddr_storage address = {0}, probe;
    socklen_t address_len = found->ai_addrlen;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(&address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    probe = address;
    if (probe.ss_family == AF_INET6) {
        ((struct sockaddr_in6 *)&probe)->sin6_port = 0;
    } else {
        ((struct sockaddr_in *)&probe)->sin_port = 0;
    }
    bool ok = fd >= 0 && bind(fd, (const struct sockaddr *)&probe, address_len) == 0 &&
              port_is_permitted(fd, &address, address_len);
    int error = errno;

    if (fd >= 0) {
        (void)close(fd); /* nothing was written */
    }
    if (!ok) {
        return refuse(listen_text, error, err);
    }
    out->fd = -1;
    describe(out, &address);
    return ERR_OK;
}
