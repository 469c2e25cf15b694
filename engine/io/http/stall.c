/*
 * The library can have nothing to do and still ask to be run again at once: when a line of a chunk (its size, or an
 * extension) has filled the buffer of its connection, libmicrohttpd 0.9.75 can neither go on nor refuse it. If we
 * obeyed, it would take a whole processor until the body's time is over, even after the client has left.
 *
 * Two measures prevent that. Runs in which nothing happens follow each other more and more slowly; an event of any
 * socket brings the next run at once, so nobody else waits. And a connection is closed when its body has not moved for
 * several checks although bytes were waiting at each.
 *
 * A TLS handshake that the client does not go on with is such a wish, too, and ends only with the time of a head. Each
 * run tries all of these again. So once the library has been found to want runs for nothing, an event gets few of them.
 */
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "io/http/server_state.h"

/* The library reads a head 1 KiB a run and calls nobody before its end: a head of 16 KiB must not be taken for a
 * stall. */
enum { IDLE_RUNS_AT_ONCE = 32, STALLED_RUNS_AT_ONCE = 2, WAIT_MS_MAX = 32, LOOK_EVERY_RUNS = 16, STRIKES_MAX = 3 };

/* Are there bytes that the library has not read? It would have read them if its buffer had room. */
static bool has_unread(int fd)
{
    int unread = 0;

    return ioctl(fd, FIONREAD, &unread) == 0 && unread > 0;
}

static void look(struct http_server *server)
{
    struct list_link *link = list_first(&server->phases[PHASE_BODY]);

    while (link) {
        struct connection *connection = container_of(link, struct connection, link);
        bool stands_still = connection->pieces == connection->pieces_seen && has_unread(connection->fd);

        link = list_after(&server->phases[PHASE_BODY], link);
        connection->pieces_seen = connection->pieces;
        connection->strikes = stands_still ? connection->strikes + 1 : 0;
        if (connection->strikes >= STRIKES_MAX) {
            http_connection_cut(server, connection);
        }
    }
}

int64_t http_stall_wait_ms(struct http_server *server)
{
    bool is_idle = server->happened == server->happened_seen;

    server->happened_seen = server->happened;
    server->idle_runs = is_idle ? server->idle_runs + 1 : 0;
    server->stalled |= server->idle_runs > IDLE_RUNS_AT_ONCE;
    unsigned at_once = server->stalled ? STALLED_RUNS_AT_ONCE : IDLE_RUNS_AT_ONCE;

    if (++server->eager_runs % LOOK_EVERY_RUNS == 0 || server->idle_runs > at_once) {
        look(server);
    }
    if (server->idle_runs <= at_once) {
        return 0;
    }
    unsigned doublings = server->idle_runs - at_once - 1;

    return doublings < 5 ? INT64_C(1) << doublings : WAIT_MS_MAX;
}

void http_stall_over(struct http_server *server)
{
    server->idle_runs = server->eager_runs = 0;
    server->stalled = false;
}
