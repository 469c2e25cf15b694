/*
 * The program of a hostile tool: it tries what no tool may do, and prints a line for each thing that it reached. Its
 * argument is the process that began it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static pid_t engine;

static void reached(const char *what)
{
    printf("%s\n", what);
}

static void tries(const char *what, long result)
{
    if (result >= 0) {
        reached(what);
    }
}

static void tries_file(const char *what, const char *name, int flags)
{
    char path[64], bytes[16];
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)engine, name);
    fd = open(path, flags | O_CLOEXEC);
    if (fd >= 0 && (flags != O_RDONLY || read(fd, bytes, sizeof(bytes)) > 0)) {
        reached(what);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

static void looks_into_the_engine(void)
{
    char bytes[16];
    struct iovec ours = {bytes, sizeof(bytes)}, theirs = {(void *)(uintptr_t)&engine, sizeof(bytes)};
    struct rlimit limit;

    tries("ptrace", ptrace(PTRACE_ATTACH, engine, NULL, NULL));
    tries("ptrace, by seizing", ptrace(PTRACE_SEIZE, engine, NULL, NULL));
    tries("reading its memory", process_vm_readv(engine, &ours, 1, &theirs, 1, 0));
    tries("writing its memory", process_vm_writev(engine, &ours, 1, &theirs, 1, 0));
    tries("its limits", prlimit(engine, RLIMIT_NOFILE, NULL, &limit));
    tries("comparing with it", syscall(SYS_kcmp, engine, getpid(), 1, 0, 0));
    tries("a descriptor of it", syscall(SYS_pidfd_open, engine, 0));
    tries_file("its environment", "environ", O_RDONLY);
    tries_file("its memory as a file", "mem", O_RDWR);
    tries_file("its map", "maps", O_RDONLY);
}

static void stops_the_engine(void)
{
    union sigval value = {0};

    tries("a signal", kill(engine, 0));
    tries("a signal to its group", kill(-getpgid(engine), 0));
    tries("a signal to everybody", kill(-1, 0));
    tries("a signal to a thread of it", syscall(SYS_tgkill, engine, engine, 0));
    tries("a signal to a thread of anybody", syscall(SYS_tkill, engine, 0));
    tries("a queued signal", sigqueue(engine, 0, value));
    tries("its priority", setpriority(PRIO_PROCESS, (id_t)engine, 10));
}

static void stays(void)
{
    pid_t child = fork();

    if (child == 0) {
        _exit(setsid() >= 0 ? 1 : 0);
    }
    if (child > 0) {
        int status = 0;

        (void)waitpid(child, &status, 0);
        if (status != 0) {
            reached("a session of its own");
        }
    }
    child = fork();
    if (child == 0) {
        _exit(setpgid(0, 0) >= 0 ? 1 : 0);
    }
    if (child > 0) {
        int status = 0;

        (void)waitpid(child, &status, 0);
        if (status != 0) {
            reached("a process group of its own");
        }
    }
}

static void gets_at_the_system(void)
{
    struct io_uring_params ring = {0};
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(event), .exclude_kernel = 1};
    union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    struct timex clock = {0};

    tries("a namespace", unshare(CLONE_NEWUSER));
    tries("a network of its own", unshare(CLONE_NEWNET));
    tries("a child in a namespace", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, 0));
    tries("clone3", syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS ? -1 : 0);
    tries("a mount", mount("none", "/tmp", "tmpfs", 0, NULL));
    tries("a root of its own", chroot("/tmp"));
    tries("a program in the kernel", syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof(map)));
    tries("counters of the processor", syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
    tries("faults of its own memory", syscall(SYS_userfaultfd, 1));
    tries("a ring of calls", syscall(SYS_io_uring_setup, 4, &ring));
    tries("a key", syscall(SYS_add_key, "user", "sagad", "x", 1, -2));
    tries("the clock", clock_adjtime(CLOCK_REALTIME, &clock));
    tries("a raw socket of the link", socket(AF_PACKET, SOCK_RAW, 0));
    tries("ciphers of the kernel", socket(AF_ALG, SOCK_SEQPACKET, 0));
    tries("sockets of the hypervisor", socket(AF_VSOCK, SOCK_STREAM, 0));
    tries("the terminal", ioctl(STDIN_FILENO, TIOCSTI, "x") >= 0 || errno == ENOTTY ? 0 : -1);
#ifdef __x86_64__
    tries("calls of another architecture", syscall(0x40000000 | SYS_getpid));
#endif
}

static void finds_what_was_left(void)
{
    for (int fd = 3; fd < 1024; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) {
            printf("descriptor %d\n", fd);
        }
    }
    for (char **at = environ; *at; at++) {
        if (strstr(*at, "secret")) {
            printf("in the environment: %s\n", *at);
        }
    }
    tries("a core file", setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1}));
    tries("more descriptors", setrlimit(RLIMIT_NOFILE, &(struct rlimit){4096, 4096}));
    tries("the rights of root", getuid() != 0 && setuid(0) == 0 ? 0 : -1);
}

/* What every program needs goes on as it was. */
static void does_its_work(void)
{
    int pair[2];
    pid_t child;
    int status = 1;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || socket(AF_INET, SOCK_STREAM, 0) < 0 ||
        socket(AF_INET6, SOCK_DGRAM, 0) < 0 || kill(getpid(), 0) != 0 || kill(0, 0) != 0) {
        reached("not even its own work");
    }
    child = fork();
    if (child == 0) {
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        reached("no child");
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        return 2;
    }
    engine = (pid_t)strtol(argv[1], NULL, 10);
    looks_into_the_engine();
    stops_the_engine();
    stays();
    gets_at_the_system();
    finds_what_was_left();
    does_its_work();
    return 0;
}
