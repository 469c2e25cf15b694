/*
 * Tells the service manager how sagad is: systemd, or whoever else set NOTIFY_SOCKET. The protocol is a datagram of
 * NAME=VALUE lines on a Unix socket, so no library is needed. Without that variable every function does nothing.
 *
 * The watchdog is fed from a timer of the loop: a loop that hangs does not feed it. A datagram that cannot be sent is
 * sent again later, so READY is never lost.
 */
#ifndef SAGAD_IO_PROCESS_MANAGER_H
#define SAGAD_IO_PROCESS_MANAGER_H

#include "io/loop/loop.h"

#define MANAGER_STATUS_BYTES 200

struct manager {
    struct loop *loop; /* NULL: there is no manager */
    int fd;
    struct timer timer;
    int64_t watchdog_ms;     /* it must hear from us within this; 0: it does not watch */
    int64_t extend_until_ms; /* boot-time clock; while we stop */
    unsigned unsent;         /* what the manager has not been told yet */
    bool is_ready, is_stopping;
    char status[MANAGER_STATUS_BYTES]; /* the newest one that was sent */
    /* One line for people, asked for again and again. NULL: there is none. */
    void (*describe)(void *context, char out[MANAGER_STATUS_BYTES]);
    void *context;
};

/*
 * Take NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment, so that no child has them. ERR_CONFIG:
 * NOTIFY_SOCKET names nothing that can be reached.
 */
MUST_USE enum err_code manager_open(struct manager *manager, struct loop *loop,
                                    void (*describe)(void *context, char out[MANAGER_STATUS_BYTES]), void *context,
                                    struct err *err);
void manager_close(struct manager *manager); /* accepts a zeroed struct */

void manager_ready(struct manager *manager);
void manager_reloaded(struct manager *manager); /* settings were read again */
/* We stop, and that may take `patience_ms`: the manager is asked for more time again and again, but not beyond that. */
void manager_stopping(struct manager *manager, int64_t patience_ms);

#endif
