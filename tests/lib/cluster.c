/* See cluster.h. Programs are started directly, without a shell and without pg_ctl, so the postmaster is our child and
 * ends with us. */
#include "tests/lib/cluster.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ARGS_MAX = 64, WAIT_MS = 20, WAITS_MAX = 60 * 1000 / WAIT_MS, RESTARTS_MAX = 50 };

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void end(struct cluster *cluster, int signal_number)
{
    if (cluster->pid > 0) {
        (void)kill(cluster->pid, signal_number);
        while (waitpid(cluster->pid, NULL, 0) < 0 && errno == EINTR) {
        }
        cluster->pid = 0;
    }
}

static _Noreturn void give_up(struct cluster *cluster, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void give_up(struct cluster *cluster, const char *format, ...)
{
    char path[128], line[512];
    va_list arguments;
    FILE *log;

    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "\n");
    (void)snprintf(path, sizeof(path), "%s/log", cluster->directory);
    log = fopen(path, "r");
    while (log && fgets(line, sizeof(line), log)) {
        (void)fputs(line, stderr);
    }
    cluster_free(cluster);
    exit(99);
}

static void wait_a_little(void)
{
    struct timespec pause = {.tv_nsec = WAIT_MS * 1000000L};

    (void)nanosleep(&pause, NULL);
}

/* --- programs --- */

static bool folder_has(const char *folder, char *out, size_t out_bytes)
{
    char path[300];

    (void)snprintf(path, sizeof(path), "%s/initdb", folder);
    if (access(path, X_OK) != 0) {
        return false;
    }
    (void)snprintf(path, sizeof(path), "%s/postgres", folder);
    return access(path, X_OK) == 0 && (size_t)snprintf(out, out_bytes, "%s", folder) < out_bytes;
}

static bool find_binaries(char *out, size_t out_bytes)
{
    const char *path = getenv("PATH");
    DIR *versions = opendir("/usr/lib/postgresql");
    char folder[300];
    int best = 0;

    for (struct dirent *entry; versions && (entry = readdir(versions)) != NULL;) {
        int version = atoi(entry->d_name);

        (void)snprintf(folder, sizeof(folder), "/usr/lib/postgresql/%s/bin", entry->d_name);
        if (version > best && folder_has(folder, out, out_bytes)) {
            best = version;
        }
    }
    if (versions) {
        closedir(versions);
    }
    while (best == 0 && path && *path) {
        size_t len = strcspn(path, ":");

        (void)snprintf(folder, sizeof(folder), "%.*s", (int)len, path);
        if (folder_has(folder, out, out_bytes)) {
            return true;
        }
        path += len + (path[len] == ':');
    }
    return best > 0;
}

bool cluster_possible(void)
{
    char folder[300];

    return find_binaries(folder, sizeof(folder));
}

/* Starts a program of PostgreSQL, or another one by its path. */
static pid_t spawn(struct cluster *cluster, const char *program, const char *const *argv)
{
    char path[300], log[128];
    pid_t parent = getpid(), pid;

    if (program[0] == '/') {
        (void)snprintf(path, sizeof(path), "%s", program);
    } else {
        (void)snprintf(path, sizeof(path), "%s/%s", cluster->binaries, program);
    }
    (void)snprintf(log, sizeof(log), "%s/log", cluster->directory);
    pid = fork();
    if (pid < 0) {
        give_up(cluster, "fork: %s", strerror(errno));
    }
    if (pid == 0) {
        int fd;

        if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setgid(cluster->gid) != 0 || setuid(cluster->uid) != 0)) {
            _exit(98);
        }
        (void)prctl(PR_SET_PDEATHSIG, SIGQUIT); /* a test that crashes leaves no server behind */
        fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
        if (getppid() != parent || fd < 0 || chdir(cluster->directory) != 0) {
            _exit(98);
        }
        (void)dup2(fd, STDOUT_FILENO);
        (void)dup2(fd, STDERR_FILENO);
        for (int i = 3; i < 1024; i++) {
            (void)close(i); /* the server must not inherit the descriptors of the test */
        }
        (void)setenv("LC_ALL", "C.UTF-8", 1);
        (void)unsetenv("PGDATA");
        execv(path, (char *const *)(uintptr_t)argv); /* execv() does not change the arguments */
        _exit(98);
    }
    return pid;
}

/* --- the cluster --- */

static void choose_user(struct cluster *cluster)
{
    const struct passwd *user = getpwnam("postgres");

    cluster->uid = geteuid();
    cluster->gid = getegid();
    if (geteuid() != 0) {
        return;
    }
    user = user ? user : getpwnam("nobody");
    if (!user) {
        give_up(cluster, "PostgreSQL does not run as root, and there is neither a user postgres nor nobody");
    }
    cluster->uid = user->pw_uid;
    cluster->gid = user->pw_gid;
}

static bool is_well_done(struct cluster *cluster, const char *program, const char *const *argv)
{
    int status;
    pid_t pid = spawn(cluster, program, argv);

    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The path of the server's socket must stay short. */
static const char *where(void)
{
    const char *folder = getenv("TMPDIR");

    return folder && *folder && strlen(folder) <= 40 ? folder : "/tmp";
}

static bool copied(struct cluster *cluster, const char *from, const char *to)
{
    const char *argv[] = {"cp", "-a", "--reflink=auto", from, to, NULL};

    if (is_well_done(cluster, "/bin/cp", argv)) {
        return true;
    }
    (void)nftw(to, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return false;
}

/* Makes the data folder. initdb makes the same one each time, so the first test keeps a copy for all later ones
 * (world.mjs does the same). */
static void make_data(struct cluster *cluster)
{
    char data[128], path[300], template[200], fresh[256];
    /* Small segments of the log make the copies half as large. */
    const char *argv[] = {
        "initdb",          "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "-N",
        "--wal-segsize=1", NULL};
    struct stat st;

    (void)snprintf(data, sizeof(data), "%s/data", cluster->directory);
    (void)snprintf(path, sizeof(path), "%s/initdb", cluster->binaries);
    if (stat(path, &st) != 0) {
        give_up(cluster, "%s: %s", path, strerror(errno));
    }
    (void)snprintf(template, sizeof(template), "%s/sagad-test-template-small-%llx-%lld-%u", where(),
                   (unsigned long long)st.st_ino, (long long)st.st_mtime, (unsigned)cluster->uid);
    (void)snprintf(fresh, sizeof(fresh), "%s.%d", template, (int)getpid());
    if (stat(template, &st) == 0 && st.st_uid == cluster->uid && copied(cluster, template, data)) {
        return;
    }
    if (!is_well_done(cluster, "initdb", argv)) {
        give_up(cluster, "initdb failed");
    }
    if (copied(cluster, data, fresh) && rename(fresh, template) != 0) { /* fails when another test was faster */
        (void)nftw(fresh, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
}

/* Starts the server. Returns true when it accepts connections, false when it ended. */
static bool launch(struct cluster *cluster)
{
    char data[128];
    const char *argv[ARGS_MAX] = {"postgres",
                                  "-D",
                                  data,
                                  "-k",
                                  cluster->directory,
                                  "-p",
                                  "5432",
                                  "-c",
                                  "listen_addresses=",
                                  "-c",
                                  "fsync=on",
                                  "-c",
                                  "shared_buffers=64MB",
                                  "-c",
                                  "max_wal_size=1GB"};
    int count = 15;

    (void)snprintf(data, sizeof(data), "%s/data", cluster->directory);
    for (size_t i = 0; cluster->settings && cluster->settings[i]; i++) {
        if (count + 3 > ARGS_MAX) {
            give_up(cluster, "too many settings");
        }
        argv[count++] = "-c";
        argv[count++] = cluster->settings[i];
    }
    cluster->pid = spawn(cluster, "postgres", argv);
    for (int i = 0; i < WAITS_MAX; i++) {
        if (PQping(cluster->dsn) == PQPING_OK) {
            return true;
        }
        if (waitpid(cluster->pid, NULL, WNOHANG) == cluster->pid) {
            cluster->pid = 0;
            return false;
        }
        wait_a_little();
    }
    give_up(cluster, "PostgreSQL does not take connections");
}

void cluster_resume(struct cluster *cluster)
{
    /* After a kill, old backends may hold the shared memory for a moment, and the new server refuses to start. */
    for (int i = 0; i < RESTARTS_MAX; i++) {
        if (launch(cluster)) {
            return;
        }
        wait_a_little();
    }
    give_up(cluster, "PostgreSQL does not start");
}

static const char *port_of(const char *const *settings)
{
    for (size_t i = 0; settings && settings[i]; i++) {
        if (strncmp(settings[i], "port=", 5) == 0) {
            return settings[i] + 5;
        }
    }
    return "5432";
}

void cluster_start(struct cluster *cluster, const char *const *settings)
{
    memset(cluster, 0, sizeof(*cluster));
    cluster->settings = settings;
    if (!find_binaries(cluster->binaries, sizeof(cluster->binaries))) {
        give_up(cluster, "no PostgreSQL server programs: install one, or put them into PATH");
    }
    choose_user(cluster);
    (void)snprintf(cluster->directory, sizeof(cluster->directory), "%s/sagad-test-XXXXXX", where());
    if (!mkdtemp(cluster->directory) || chown(cluster->directory, cluster->uid, cluster->gid) != 0 ||
        chmod(cluster->directory, 0755) != 0) {
        give_up(cluster, "%s: %s", cluster->directory, strerror(errno));
    }
    (void)snprintf(cluster->dsn, sizeof(cluster->dsn), "host=%s port=%s user=postgres dbname=postgres",
                   cluster->directory, port_of(settings));
    make_data(cluster);
    cluster_resume(cluster);
}

const char *cluster_dsn(const struct cluster *cluster)
{
    return cluster->dsn;
}

void cluster_stop(struct cluster *cluster)
{
    end(cluster, SIGINT);
}

void cluster_kill(struct cluster *cluster)
{
    end(cluster, SIGKILL);
}

void cluster_restart_immediate(struct cluster *cluster)
{
    end(cluster, SIGQUIT);
    cluster_resume(cluster);
}

void cluster_free(struct cluster *cluster)
{
    end(cluster, SIGINT);
    if (cluster->directory[0]) {
        (void)nftw(cluster->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        cluster->directory[0] = '\0';
    }
}
