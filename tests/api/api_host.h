/*
 * The API over a fake engine, in a child process: tests speak to it over real sockets.
 *
 * The child obeys signals. SIGUSR1 ends all slow sagas. SIGUSR2 takes the database away and gives it back. SIGHUP makes
 * the engine too busy for new requests, and the next SIGHUP makes it quiet again. SIGTERM stops the child as it stops
 * sagad. Sanitizers then judge the child by its exit status.
 */
#ifndef SAGAD_TESTS_API_HOST_H
#define SAGAD_TESTS_API_HOST_H

#include <sys/types.h>

#include "api/server.h"

struct api_host {
    pid_t pid;
    int told; /* the pipe on which the child acknowledges signals */
    uint16_t port;
};

struct api_host api_host_start(const struct api_options *options); /* `options->listen` is 127.0.0.1:0 when NULL */
/* Sends any signal but SIGTERM; returns when the child has obeyed. */
void api_host_tell(const struct api_host *host, int signal_number);
int api_host_stop(struct api_host *host);  /* gives the exit status; 0 is good */
int api_host_await(struct api_host *host); /* the same for a host that the test has told to stop */
/* Stops the hosts that run, and removes the files of token_file_new(): TEST_PROGRAM(setup, api_host_teardown). */
int api_host_teardown(void **state);
/* Runs in this process; writes "PORT\n" to port_fd, and "!" after each signal. */
_Noreturn void api_host_serve(const struct api_options *options, int port_fd);

#endif
