/* Starts a program with fork() and exec(). Between the two, only calls are made that POSIX allows there, because this
 * process has threads. The child reports a failure over a pipe. */
#include "io/process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/process/sandbox.h"

#define STDIO_COUNT 3
#define ERROR_FD 3 /* the descriptor of the pipe for errors, in the child */
#define DESCRIPTORS_FROM 10

static const struct {
    int resource;
    rlim_t most;
    bool of_user; /* the bound counts all processes of a user, so it is set only for a separate user */
} bounds[] = {
    {RLIMIT_CORE, 0, false},
    {RLIMIT_FSIZE, (rlim_t)4 << 30, false},
    {RLIMIT_DATA, (rlim_t)4 << 30, false},
    {RLIMIT_NOFILE, 1024, false},
    {RLIMIT_NPROC, 1024, true},
};

struct child_ends {
    int stdio[STDIO_COUNT], error;
};

static bool bound_set(int resource, rlim_t most)
{
    struct rlimit limit;

    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0) {
        return false;
    }
    limit.rlim_max = limit.rlim_max < most ? limit.rlim_max : most;
    limit.rlim_cur = limit.rlim_cur < limit.rlim_max ? limit.rlim_cur : limit.rlim_max;
    return setrlimit((__rlimit_resource_t)resource, &limit) == 0;
}

static bool bounds_set(const struct spawn *spawn)
{
    bool as_user = spawn->programs && spawn->programs->as_user;

    for (size_t i = 0; i < COUNT_OF(bounds); i++) {
        if ((as_user || !bounds[i].of_user) && !bound_set(bounds[i].resource, bounds[i].most)) {
            return false;
        }
    }
    return spawn->processor_s == 0 || bound_set(RLIMIT_CPU, spawn->processor_s);
}

static bool user_set(const struct programs *programs)
{
    if (!programs || !programs->as_user) {
        return true;
    }
    return setgroups(0, NULL) == 0 && setresgid(programs->gid, programs->gid, programs->gid) == 0 &&
           setresuid(programs->uid, programs->uid, programs->uid) == 0;
}

static bool descriptors_set(const struct child_ends *ends)
{
    int high[STDIO_COUNT + 1];

    for (int i = 0; i <= STDIO_COUNT;
         i++) { /* first copies all descriptors out of the way, since they may have each other's numbers */
        high[i] = fcntl(i < STDIO_COUNT ? ends->stdio[i] : ends->error, F_DUPFD_CLOEXEC, DESCRIPTORS_FROM);
        if (high[i] < 0) {
            return false;
        }
    }
    for (int i = 0; i <= STDIO_COUNT; i++) {
        if (dup3(high[i], i, i == ERROR_FD ? O_CLOEXEC : 0) < 0) {
            return false;
        }
    }
    return close_range(ERROR_FD + 1, ~0u, 0) == 0;
}

static void signals_reset(void)
{
    sigset_t none;

    for (int number = 1; number < NSIG; number++) {
        if (number != SIGKILL && number != SIGSTOP) {
            (void)signal(number, SIG_DFL); /* signals that cannot be set belong to the C library */
        }
    }
    (void)sigemptyset(&none);                    /* cannot fail */
    (void)sigprocmask(SIG_SETMASK, &none, NULL); /* nor this */
}

__attribute__((noreturn)) static void child(const struct spawn *spawn, const struct child_ends *ends, pid_t parent)
{
    int error_fd = ends->error, error;

    (void)setsid(); /* cannot fail, because a new process leads no group */
    if (descriptors_set(ends)) {
        error_fd = ERROR_FD;
        signals_reset();
        /* The order counts. The user comes before the folder, since the rights of the user decide about the folder. The
         * death signal comes behind the user, since a change of the user clears it. */
        if (bounds_set(spawn) && user_set(spawn->programs) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
            prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && (!spawn->cwd || chdir(spawn->cwd) == 0)) {
            if (getppid() != parent) {
                _exit(127);
            }
            environ = (char **)(uintptr_t)spawn->env;
            if (!spawn->programs || sandbox_enter(parent)) {
                (void)execvp(spawn->argv[0], spawn->argv); /* returns only with an error */
            }
        }
    }
    error = errno;
    (void)!write(error_fd, &error, sizeof(error)); /* there is no other way to report the error */
    _exit(127);
}

static void on_child_signal(uv_signal_t *signal, int number)
{
    struct spawned *spawned = container_of(signal, struct spawned, signal);
    int status;

    (void)number;
    if (spawned->pid <= 0 || waitpid(spawned->pid, &status, WNOHANG) != spawned->pid) {
        return;
    }
    (void)uv_signal_stop(signal); /* never fails */
    spawned->exited(spawned, WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* Waits until the child runs its program or has failed to run it. This takes a moment, as in uv_spawn(). */
static int error_read(int fd)
{
    int error = 0;
    ssize_t got;

    do {
        got = read(fd, &error, sizeof(error));
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(error) ? error : 0;
}

/* Opens the pipes of the child. `ours` are the ends that stay in this process. Returns false when no descriptors are
 * left. */
static bool ends_open(const struct spawn *spawn, struct child_ends *theirs, int ours[STDIO_COUNT], int error_pipe[2])
{
    for (int i = 0; i < STDIO_COUNT; i++) {
        int pair[2];

        if (!spawn->pipes[i]) {
            theirs->stdio[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
        } else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
            ours[i] = pair[0];
            theirs->stdio[i] = pair[1];
        }
        if (theirs->stdio[i] < 0) {
            return false;
        }
    }
    if (pipe2(error_pipe, O_CLOEXEC) != 0) {
        return false;
    }
    theirs->error = error_pipe[1];
    return true;
}

static void fd_close(int fd)
{
    if (fd >= 0) {
        (void)close(fd); /* no write can be lost here */
    }
}

static pid_t start(const struct spawn *spawn, const struct child_ends *theirs)
{
    pid_t parent = getpid(), pid;
    sigset_t all, before;

    (void)sigfillset(&all);                            /* cannot fail */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of ours may run in the child; cannot fail */
    pid = fork();
    if (pid == 0) {
        child(spawn, theirs, parent);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pid;
}

int spawn(struct loop *loop, struct spawned *spawned, const struct spawn *spawn)
{
    struct child_ends theirs = {{-1, -1, -1}, -1};
    int ours[STDIO_COUNT] = {-1, -1, -1}, error_pipe[2] = {-1, -1}, error = 0;

    CHECK(spawned->exited);
    spawned->pid = 0;
    CHECK(uv_signal_init(loop_uv(loop), &spawned->signal) == 0);
    if (!ends_open(spawn, &theirs, ours, error_pipe)) {
        error = errno;
    } else {
        CHECK(uv_signal_start(&spawned->signal, on_child_signal, SIGCHLD) == 0);
        spawned->pid = start(spawn, &theirs);
        error = spawned->pid < 0 ? errno : 0;
    }
    for (int i = 0; i < STDIO_COUNT; i++) {
        fd_close(theirs.stdio[i]);
    }
    fd_close(error_pipe[1]);
    if (error == 0 && (error = error_read(error_pipe[0])) != 0) {
        (void)waitpid(spawned->pid, NULL, 0); /* the child has ended or is about to end */
    }
    fd_close(error_pipe[0]);
    for (int i = 0; i < STDIO_COUNT; i++) {
        if (error == 0 && ours[i] >= 0) {
            CHECK(uv_pipe_open(spawn->pipes[i], ours[i]) == 0);
        } else {
            fd_close(ours[i]);
        }
    }
    if (error != 0) {
        spawned->pid = 0;
        (void)uv_signal_stop(&spawned->signal); /* never fails */
    }
    return error ? uv_translate_sys_error(error) : 0;
}
