/*
 * A list of what is refused, and not of what is allowed: programs of tools are anybody's, in any language, and a list
 * of calls that they need would be wrong with the next release of their C library. What is refused fails with EPERM,
 * as for a user without rights; ENOSYS where libraries then take another way.
 */
#include "io/process/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE

enum { CODE_MAX = 400, X32_CALLS = 0x40000000 };

#define NAMESPACES                                                                                                     \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

static const struct {
    uint32_t call;
    uint32_t error;
} refused[] = {
    /* other processes */
    {SYS_ptrace, EPERM},
    {SYS_process_vm_readv, EPERM},
    {SYS_process_vm_writev, EPERM},
    {SYS_kcmp, EPERM},
    {SYS_pidfd_getfd, EPERM},
    {SYS_process_madvise, EPERM},
    {SYS_tkill, EPERM}, /* names a thread of anybody; tgkill() took its place */
    /* out of the process group, whose end is the end of the call */
    {SYS_setsid, EPERM},
    {SYS_setpgid, EPERM},
    /* namespaces, mounts, files past their folders */
    {SYS_unshare, EPERM},
    {SYS_setns, EPERM},
    {SYS_clone3, ENOSYS}, /* no filter sees its flags, which lie in memory; libraries take clone() */
    {SYS_mount, EPERM},
    {SYS_umount2, EPERM},
    {SYS_pivot_root, EPERM},
    {SYS_chroot, EPERM},
    {SYS_move_mount, EPERM},
    {SYS_open_tree, EPERM},
    {SYS_fsopen, EPERM},
    {SYS_fsconfig, EPERM},
    {SYS_fsmount, EPERM},
    {SYS_fspick, EPERM},
    {SYS_open_by_handle_at, EPERM},
    /* the kernel itself */
    {SYS_bpf, EPERM},
    {SYS_perf_event_open, EPERM},
    {SYS_userfaultfd, EPERM},
    {SYS_io_uring_setup, ENOSYS},
    {SYS_io_uring_enter, ENOSYS},
    {SYS_io_uring_register, ENOSYS},
    {SYS_kexec_load, EPERM},
    {SYS_init_module, EPERM},
    {SYS_finit_module, EPERM},
    {SYS_delete_module, EPERM},
    {SYS_reboot, EPERM},
    {SYS_swapon, EPERM},
    {SYS_swapoff, EPERM},
    {SYS_acct, EPERM},
    {SYS_quotactl, EPERM},
    {SYS_syslog, EPERM},
    {SYS_sethostname, EPERM},
    {SYS_setdomainname, EPERM},
    {SYS_vhangup, EPERM},
    /* keys and clocks */
    {SYS_add_key, EPERM},
    {SYS_request_key, EPERM},
    {SYS_keyctl, EPERM},
    {SYS_settimeofday, EPERM},
    {SYS_clock_settime, EPERM},
    {SYS_clock_adjtime, EPERM},
    {SYS_adjtimex, EPERM},
#ifdef __x86_64__
    {SYS_iopl, EPERM},
    {SYS_ioperm, EPERM},
    {SYS_kexec_file_load, EPERM},
#endif
};

/* Calls that are refused about the engine: the argument that names it. */
static const struct {
    uint32_t call;
    uint32_t argument;
} aimed[] = {
    {SYS_kill, 0},           {SYS_tgkill, 0},        {SYS_rt_sigqueueinfo, 0},   {SYS_rt_tgsigqueueinfo, 0},
    {SYS_pidfd_open, 0},     {SYS_prlimit64, 0},     {SYS_sched_setaffinity, 0}, {SYS_sched_setscheduler, 0},
    {SYS_sched_setparam, 0}, {SYS_migrate_pages, 0}, {SYS_move_pages, 0},        {SYS_setpriority, 1},
};

struct code {
    struct sock_filter items[CODE_MAX];
    unsigned short count;
};

static void put(struct code *code, struct sock_filter item)
{
    CHECK(code->count < CODE_MAX); /* the lists are of this file */
    code->items[code->count++] = item;
}

static void put_load(struct code *code, size_t offset)
{
    put(code, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* The lower half: numbers of processes, families and flags have no more. */
static void put_load_argument(struct code *code, uint32_t argument)
{
    put_load(code, offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t));
}

/* Goes on behind the next `skipped` items, unless the value is this one. */
static void put_unless_equal(struct code *code, uint32_t value, unsigned char skipped)
{
    put(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped));
}

static void put_refusal(struct code *code, uint32_t error)
{
    put(code, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
}

static void put_reload(struct code *code)
{
    put_load(code, offsetof(struct seccomp_data, nr));
}

/* Refuses the call where its argument is this one. */
static void put_refusal_of(struct code *code, uint32_t call, uint32_t argument, uint32_t value)
{
    put_unless_equal(code, call, 4);
    put_load_argument(code, argument);
    put_unless_equal(code, value, 1);
    put_refusal(code, EPERM);
    put_reload(code);
}

/* Refuses the call where its argument has one of these bits. */
static void put_refusal_of_bits(struct code *code, uint32_t call, uint32_t argument, uint32_t bits)
{
    put_unless_equal(code, call, 4);
    put_load_argument(code, argument);
    put(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
    put_refusal(code, EPERM);
    put_reload(code);
}

/* Sockets of the network and of this machine, and netlink, which resolvers ask: no others. */
static void put_families(struct code *code)
{
    static const uint32_t families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
    const unsigned char count = sizeof(families) / sizeof(families[0]);

    put_unless_equal(code, SYS_socket, count + 3);
    put_load_argument(code, 0);
    for (unsigned char i = 0; i < count; i++) {
        put(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, families[i], (unsigned char)(count - i), 0));
    }
    put_refusal(code, EAFNOSUPPORT);
    put_reload(code);
}

static void put_all(struct code *code, pid_t engine)
{
    put_load(code, offsetof(struct seccomp_data, arch));
    put(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
    put(code, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    put_reload(code);
#ifdef __x86_64__
    put(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, 0, 1));
    put_refusal(code, ENOSYS);
#endif
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        put_unless_equal(code, refused[i].call, 1);
        put_refusal(code, refused[i].error);
    }
    for (size_t i = 0; i < sizeof(aimed) / sizeof(aimed[0]); i++) {
        put_refusal_of(code, aimed[i].call, aimed[i].argument, (uint32_t)engine);
    }
    put_refusal_of(code, SYS_kill, 0, (uint32_t)-1); /* everybody whom the user may reach */
    put_refusal_of(code, SYS_kill, 0, (uint32_t)-getpgid(engine));
    put_refusal_of_bits(code, SYS_clone, 0, NAMESPACES);
    put_refusal_of(code, SYS_ioctl, 1, TIOCSTI); /* types into the terminal of whoever began us */
    put_refusal_of(code, SYS_ioctl, 1, TIOCLINUX);
    put_families(code);
    put(code, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

bool sandbox_enter(pid_t engine)
{
    struct code code = {.count = 0};
    struct sock_fprog program = {.filter = code.items};

    put_all(&code, engine);
    program.len = code.count;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 || errno == EINVAL;
}

#else

bool sandbox_enter(pid_t engine)
{
    (void)engine; /* nobody has tried the filter on this architecture */
    return true;
}

#endif
