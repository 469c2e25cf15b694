/* The child process that tests of the API talk to; see api_host.h. */
#include "tests/api/api_host.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/api/token_file.h"
#include "tests/lib/fake_engine.h"

struct serving {
    struct loop *loop;
    struct engine *engine;
    struct api *api;
    int told;
    bool away, busy;
};

/* Acknowledges a signal to its sender, who waits for it. The loop handles signals last in a turn, behind requests that
 * came later. */
static void acknowledge(const struct serving *serving)
{
    CHECK(write(serving->told, "!", 1) == 1);
}

static void on_usr1(void *context)
{
    struct serving *serving = context;

    fake_engine_end_all(serving->engine);
    acknowledge(serving);
}

static void on_usr2(void *context)
{
    struct serving *serving = context;

    serving->away = !serving->away;
    fake_engine_set_away(serving->engine, serving->away);
    acknowledge(serving);
}

static void on_hup(void *context)
{
    struct serving *serving = context;

    serving->busy = !serving->busy;
    fake_engine_set_busy(serving->engine, serving->busy);
    acknowledge(serving);
}

static void on_stopped(void *context)
{
    loop_stop(((struct serving *)context)->loop);
}

static void on_term(void *context)
{
    struct serving *serving = context;

    api_stop(serving->api, on_stopped, serving);
}

void api_host_serve(const struct api_options *options, int port_fd)
{
    struct serving serving = {.loop = loop_new(), .told = port_fd};
    struct api_options own = *options;
    struct err err = {0};

    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
    own.listen = own.listen ? own.listen : "127.0.0.1:0";
    serving.engine = fake_engine_new(serving.loop);
    serving.api = api_start(serving.loop, serving.engine, &own, &err);
    if (!serving.api) {
        err_print(&err, "api_host");
        fake_engine_free(serving.engine);
        loop_free(serving.loop);
        exit(2);
    }
    loop_on_signal(serving.loop, SIGUSR1, on_usr1, &serving);
    loop_on_signal(serving.loop, SIGUSR2, on_usr2, &serving);
    loop_on_signal(serving.loop, SIGHUP, on_hup, &serving);
    loop_on_signal(serving.loop, SIGTERM, on_term, &serving);
    if (dprintf(port_fd, "%u\n", api_port(serving.api)) < 0) {
        exit(3);
    }
    loop_run(serving.loop);
    fake_engine_free(serving.engine);
    loop_free(serving.loop);
    exit(0);
}

static struct api_host running[8]; /* pid 0: a free place */

struct api_host api_host_start(const struct api_options *options)
{
    struct api_host host = {0};
    int ends[2];
    char text[16] = "";

    CHECK(pipe(ends) == 0);
    host.pid = fork();
    CHECK(host.pid >= 0);
    if (host.pid == 0) {
        const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};

        for (size_t i = 0; i < COUNT_OF(signals); i++) {
            (void)signal(signals[i],
                         SIG_DFL); /* the test runner's handlers would go on with the parent's tests in this process */
        }
        (void)close(ends[0]);
        api_host_serve(options, ends[1]);
    }
    (void)close(ends[1]);
    if (read(ends[0], text, sizeof(text) - 1) > 0) {
        host.port = (uint16_t)strtoul(text, NULL, 10);
    }
    CHECK(host.port != 0);
    host.told = ends[0];
    for (size_t i = 0;; i++) {
        CHECK(i < COUNT_OF(running));
        if (running[i].pid == 0) {
            running[i] = host;
            return host;
        }
    }
}

void api_host_tell(const struct api_host *host, int signal_number)
{
    char byte;

    CHECK(kill(host->pid, signal_number) == 0);
    CHECK(read(host->told, &byte, 1) == 1);
}

/* cmocka 1.1 only prints that the teardown of a group failed, and still counts the test as good. */
static void fail_at_exit(void)
{
    (void)fflush(NULL); /* the test has failed anyway */
    _exit(1);
}

int api_host_await(struct api_host *host)
{
    int status = 0;

    CHECK(waitpid(host->pid, &status, 0) == host->pid);
    (void)close(host->told);
    for (size_t i = 0; i < COUNT_OF(running); i++) {
        if (running[i].pid == host->pid) {
            running[i].pid = 0;
        }
    }
    if (status != 0) { /* the child crashed or leaked */
        CHECK(atexit(fail_at_exit) == 0);
    }
    return status;
}

int api_host_stop(struct api_host *host)
{
    (void)kill(host->pid, SIGTERM); /* waitpid reports a process that is already gone */
    return api_host_await(host);
}

int api_host_teardown(void **state)
{
    int status = 0;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(running); i++) {
        struct api_host host = running[i];

        if (host.pid != 0) {
            status |= api_host_stop(&host); /* it leaves the array */
        }
    }
    token_files_remove();
    return status;
}
