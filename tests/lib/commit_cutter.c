/* See commit_cutter.h. One thread accepts connections, and each connection has a thread that serves it. The threads end
 * with their sockets. */
#include "tests/lib/commit_cutter.h"

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"

struct pair {
    struct commit_cutter *cutter;
    int client, server;
};

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    return address;
}

static bool ends_with(const char *bytes, ssize_t len, const char *message, size_t message_bytes)
{
    return len >= (ssize_t)message_bytes && memcmp(bytes + len - message_bytes, message, message_bytes) == 0;
}

/* libpq sends a plain COMMIT as its own message; a pipeline ends with a Sync. */
static bool is_commit(const struct commit_cutter *cutter, const char *bytes, ssize_t len)
{
    static const char message[] = {'Q', 0, 0, 0, 11, 'C', 'O', 'M', 'M', 'I', 'T', 0};
    static const char sync[] = {'S', 0, 0, 0, 4};

    return ends_with(bytes, len, message, sizeof(message)) ||
           (__atomic_load_n(&cutter->any_sync, __ATOMIC_SEQ_CST) && ends_with(bytes, len, sync, sizeof(sync)));
}

static bool pass(int to, const char *bytes, ssize_t len)
{
    return send(to, bytes, (size_t)len, MSG_NOSIGNAL) == len;
}

/* Cuts the connection around a COMMIT. Returns false when the connection is over. */
static bool commit_arrived(struct pair *pair, const char *bytes, ssize_t len)
{
    int cut = __atomic_exchange_n(&pair->cutter->cut, CUT_NOTHING, __ATOMIC_SEQ_CST);
    char answer[256];

    if (cut == CUT_NOTHING) {
        return pass(pair->server, bytes, len);
    }
    if (cut == CUT_HOLD_COMMIT) {
        (void)shutdown(pair->client, SHUT_RDWR);
        (void)usleep(500 * 1000);
    }
    if (cut == CUT_AFTER_COMMIT || cut == CUT_HOLD_COMMIT) {
        (void)pass(pair->server, bytes, len); /* the server may be gone already */
        (void)read(pair->server, answer,
                   sizeof(answer)); /* after the answer, or the end of the stream, the transaction is committed */
    }
    (void)__atomic_add_fetch(&pair->cutter->strikes, 1, __ATOMIC_SEQ_CST);
    return false;
}

static bool move_bytes(struct pair *pair, bool to_server)
{
    char bytes[65536];
    ssize_t len = read(to_server ? pair->client : pair->server, bytes, sizeof(bytes));

    if (len <= 0) {
        return false;
    }
    return to_server && is_commit(pair->cutter, bytes, len) ? commit_arrived(pair, bytes, len)
                                                            : pass(to_server ? pair->server : pair->client, bytes, len);
}

static void *serve(void *context)
{
    struct pair *pair = context;
    struct pollfd fds[2] = {{.fd = pair->client, .events = POLLIN}, {.fd = pair->server, .events = POLLIN}};
    bool good = true;

    while (good && poll(fds, 2, -1) > 0) {
        good = (!fds[0].revents || move_bytes(pair, true)) && (!fds[1].revents || move_bytes(pair, false));
    }
    (void)close(pair->client);
    (void)close(pair->server);
    free(pair);
    return NULL;
}

static void *accept_all(void *context)
{
    struct commit_cutter *cutter = context;
    struct sockaddr_un address = address_of(cutter->server);
    pthread_t thread;
    int client;

    while ((client = accept(cutter->listener, NULL, NULL)) >= 0) {
        struct pair *pair = calloc(1, sizeof(*pair));

        CHECK(pair);
        *pair = (struct pair){cutter, client, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        if (connect(pair->server, (const struct sockaddr *)&address, sizeof(address)) < 0) {
            (void)close(client);
            (void)close(pair->server);
            free(pair);
            continue;
        }
        CHECK(pthread_create(&thread, NULL, serve, pair) == 0);
        CHECK(pthread_detach(thread) == 0);
    }
    return NULL;
}

void commit_cutter_start(struct commit_cutter *cutter, const char *server_socket)
{
    char path[100];
    struct sockaddr_un address;
    pthread_t thread;

    memset(cutter, 0, sizeof(*cutter));
    (void)snprintf(cutter->directory, sizeof(cutter->directory), "/tmp/sagad-cutter-XXXXXX");
    CHECK(mkdtemp(cutter->directory));
    (void)snprintf(cutter->server, sizeof(cutter->server), "%s", server_socket);
    (void)snprintf(path, sizeof(path), "%s/.s.PGSQL.5432", cutter->directory);
    address = address_of(path);
    cutter->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(cutter->listener, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
          listen(cutter->listener, 64) == 0);
    CHECK(pthread_create(&thread, NULL, accept_all, cutter) == 0);
    cutter->thread = (unsigned long)thread;
}

void commit_cutter_set(struct commit_cutter *cutter, enum cut cut)
{
    __atomic_store_n(&cutter->cut, (int)cut, __ATOMIC_SEQ_CST);
}

int commit_cutter_strikes(struct commit_cutter *cutter)
{
    return __atomic_load_n(&cutter->strikes, __ATOMIC_SEQ_CST);
}

void commit_cutter_stop(struct commit_cutter *cutter)
{
    char path[100];

    (void)shutdown(cutter->listener, SHUT_RDWR); /* wakes accept() */
    CHECK(pthread_join((pthread_t)cutter->thread, NULL) == 0);
    (void)close(cutter->listener);
    (void)snprintf(path, sizeof(path), "%s/.s.PGSQL.5432", cutter->directory);
    (void)unlink(path);
    (void)rmdir(cutter->directory);
}
