/*
 * The API over a fake engine, in a child process: tests speak to it over real sockets. SIGUSR1 ends all slow sagas,
 * SIGUSR2 takes the database away and gives it back, SIGHUP makes the engine too busy for anything new and quiet again,
 * SIGTERM stops as sagad does; sanitizers then judge the child by its exit status.
 */
#ifndef SAGAD_TESTS_API_HOST_H
#define SAGAD_TESTS_API_HOST_H

#include <sys/types.h>

#include "api/server.h"

struct api_host {
    pid_t pid;
    int told; /* where it acknowledges signals */
    uint16_t port;
};

struct api_host api_host_start(const struct api_options *options);  /* listen is 127.0.0.1:0 when NULL */
void api_host_tell(const struct api_host *host, int signal_number); /* not SIGTERM; returns when it has been done */
int api_host_stop(struct api_host *host);                           /* the exit status; 0 is good */
_Noreturn void api_host_serve(
    const struct api_options *options,
    int port_fd); /* in this process; writes "PORT\n" to port_fd, and "!" when it has done what a signal told it */

#endif
