/*
 * Part of programs in a build that counts the branches that are taken, and of no other: see tools/coverage. The
 * counters are written when a process ends by exit(). Children end by _exit(), and engines of the tests are killed:
 * with SIGUSR2 in such a build (world.mjs). A thread waits for that, writes the counters, which takes memory and so is
 * nothing for a handler, and then does what SIGKILL does.
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
    CHECK(pthread_sigmask(SIG_BLOCK, &killing, NULL) == 0); /* of all threads that follow */
    CHECK(pthread_create(&thread, NULL, wait_for_the_end, NULL) == 0);
}

/* Before the one of the C library. */
_Noreturn void _exit(int status)
{
    __gcov_dump();
    for (;;) {
        (void)syscall(SYS_exit_group, status);
    }
}
