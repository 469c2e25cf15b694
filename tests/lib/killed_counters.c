/*
 * Writes the counters of branches when a process is killed. Only the build that measures coverage has this file: see
 * tools/coverage.
 *
 * Normally the counters are written when a process ends by exit(). But children end by _exit(), and tests kill engines;
 * in this build they send SIGUSR2 (world.mjs). A thread waits for that signal, writes the counters and then ends the
 * process as SIGKILL would. A signal handler could not do that, because writing takes memory.
 */
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"

void __gcov_dump(void);

static sigset_t killing;

static void *wait_for_the_end(void *unused)
{
    int number;

    (void)unused;
    while (sigwait(&killing, &number) != 0) {
    }
    __gcov_dump();
    (void)kill(getpid(), SIGKILL);
    return NULL;
}

static void __attribute__((constructor)) begin(void)
{
    pthread_t thread;

    (void)sigemptyset(&killing);
    (void)sigaddset(&killing, SIGUSR2);
    CHECK(pthread_sigmask(SIG_BLOCK, &killing, NULL) == 0); /* blocked in all later threads */
    CHECK(pthread_create(&thread, NULL, wait_for_the_end, NULL) == 0);
}

/* This function replaces the one of the C library. */
_Noreturn void _exit(int status)
{
    __gcov_dump();
    for (;;) {
        (void)syscall(SYS_exit_group, status);
    }
}
