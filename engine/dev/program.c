/* See dev/program.h. Between fork() and exec, only calls are made that POSIX allows there, because this process may
 * have threads. */
#include "dev/program.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"

enum { EXIT_CANNOT_RUN = 127, MAJOR_NEWEST_TRIED = 30 };

enum err_code dev_user_find(struct dev_user *user, struct err *err)
{
    const struct passwd *entry;

    *user = (struct dev_user){.uid = geteuid(), .gid = getegid()};
    if (geteuid() != 0) {
        return ERR_OK;
    }
    entry = getpwnam("postgres");
    if (!entry) {
        entry = getpwnam("nobody");
    }
    if (!entry || entry->pw_uid == 0) {
        err_set(err, ERR_CONFIG,
                "PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody");
        err_hint(err, "start `sagad dev` as an ordinary user");
        return ERR_CONFIG;
    }
    user->changes = true;
    user->uid = entry->pw_uid;
    user->gid = entry->pw_gid;
    (void)snprintf(user->name, sizeof(user->name), "%s", entry->pw_name); /* only shown */
    return ERR_OK;
}

/* Becomes the user for good, in a child. */
static bool user_become(const struct dev_user *user)
{
    if (!user->changes) {
        return true;
    }
    return setgroups(0, NULL) == 0 && setgid(user->gid) == 0 && setuid(user->uid) == 0;
}

bool dev_user_reaches(const struct dev_user *user, const char *folder)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        _exit(user_become(user) && chdir(folder) == 0 && access(".", R_OK | W_OK | X_OK) == 0 ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Returns the major version that `bin`/postgres reports; 0 when there is no such program or its answer cannot be
 * read. */
static int postgres_major(const char *bin)
{
    char path[DEV_PATH_BYTES + 16], text[128] = "";
    const char *at;
    size_t len = 0;
    ssize_t got;
    int pipe_fds[2], status;
    pid_t pid;

    CHECK(snprintf(path, sizeof(path), "%s/initdb", bin) < (int)sizeof(path)); /* bin has at most DEV_PATH_BYTES */
    if (access(path, X_OK) != 0) {
        return 0;
    }
    CHECK(snprintf(path, sizeof(path), "%s/postgres", bin) < (int)sizeof(path));
    if (access(path, X_OK) != 0 || pipe2(pipe_fds, O_CLOEXEC) != 0) {
        return 0;
    }
    pid = fork();
    if (pid == 0) {
        dup2(pipe_fds[1], STDOUT_FILENO);
        execl(path, path, "--version", (char *)NULL);
        _exit(EXIT_CANNOT_RUN);
    }
    close(pipe_fds[1]);
    while (len + 1 < sizeof(text) && (got = read(pipe_fds[0], text + len, sizeof(text) - 1 - len)) > 0) {
        len += (size_t)got;
    }
    close(pipe_fds[0]);
    if (pid > 0) {
        waitpid(pid, &status, 0);
    }
    at = strstr(text, "(PostgreSQL) "); /* for example: postgres (PostgreSQL) 15.8 (Debian 15.8-0+deb12u1) */
    return at ? (int)strtol(at + strlen("(PostgreSQL) "), NULL, 10) : 0;
}

static void postgres_consider(struct dev_postgres *best, const char *bin, int wanted, int *too_old)
{
    int major = postgres_major(bin);

    if (major > 0 && major < DEV_POSTGRES_MAJOR_LEAST && major > *too_old) {
        *too_old = major;
    }
    if (major < DEV_POSTGRES_MAJOR_LEAST || major <= best->major || (wanted != 0 && major != wanted)) {
        return;
    }
    best->major = major;
    (void)snprintf(best->bin, sizeof(best->bin), "%s", bin); /* a bin is as large as any folder that is searched */
}

enum err_code dev_postgres_find(struct dev_postgres *postgres, int major, struct err *err)
{
    const char *path = getenv("PATH");
    char bin[DEV_PATH_BYTES];
    int too_old = 0;

    *postgres = (struct dev_postgres){.major = 0};
    for (int i = MAJOR_NEWEST_TRIED; i >= DEV_POSTGRES_MAJOR_LEAST && postgres->major == 0; i--) {
        (void)snprintf(bin, sizeof(bin), "/usr/lib/postgresql/%d/bin", i);
        postgres_consider(postgres, bin, major, &too_old);
        (void)snprintf(bin, sizeof(bin), "/usr/pgsql-%d/bin", i);
        postgres_consider(postgres, bin, major, &too_old);
    }
    while (path && *path && postgres->major == 0) {
        size_t len = strcspn(path, ":");

        if (len > 0 && len < sizeof(bin)) {
            memcpy(bin, path, len);
            bin[len] = '\0';
            postgres_consider(postgres, bin, major, &too_old);
        }
        path += len + (path[len] == ':');
    }
    if (postgres->major != 0) {
        return ERR_OK;
    }
    if (major != 0) {
        return err_set(err, ERR_CONFIG, "PostgreSQL %d is not installed", major);
    }
    if (too_old != 0) {
        err_set(err, ERR_CONFIG, "PostgreSQL %d is too old: sagad needs %d or newer", too_old,
                DEV_POSTGRES_MAJOR_LEAST);
    } else {
        err_set(err, ERR_CONFIG, "PostgreSQL is not installed: neither initdb nor postgres was found");
    }
    err_detail(err, "looked in /usr/lib/postgresql/*/bin, /usr/pgsql-*/bin and PATH");
    err_hint(err, "apt-get install postgresql-15, or start sagad with --database DSN on a server you have");
    return ERR_CONFIG;
}

pid_t dev_program_start(const struct dev_postgres *postgres, const char *program, const char *const arguments[],
                        const struct dev_user *user, const char *log_path)
{
    static const char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", NULL};
    char path[DEV_PATH_BYTES + 64];
    pid_t pid;

    CHECK(snprintf(path, sizeof(path), "%s/%s", postgres->bin, program) < (int)sizeof(path));
    pid = fork();
    if (pid == 0) {
        int in = open("/dev/null", O_RDONLY), log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
        sigset_t none;

        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        setsid(); /* Ctrl-C in the terminal is only for sagad */
        if (in < 0 || log < 0 || dup2(in, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 || !user_become(user) ||
            chdir("/") != 0) {
            _exit(EXIT_CANNOT_RUN);
        }
        closefrom(3); /* a server that survives us must not hold our lock or socket */
        execve(path, (char *const *)(uintptr_t)arguments,
               (char *const *)(uintptr_t)environment); /* the prototype is older than const */
        _exit(EXIT_CANNOT_RUN);
    }
    return pid;
}

enum err_code dev_program_run(const struct dev_postgres *postgres, const char *program, const char *const arguments[],
                              const struct dev_user *user, const char *log_path, struct err *err)
{
    char line[240];
    int status = 0;
    pid_t pid = dev_program_start(postgres, program, arguments, user, log_path);

    if (pid < 0) {
        return err_set(err, ERR_IO, "%s cannot be started: %s", program, strerror(errno));
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return ERR_OK;
    }
    dev_log_last_line(log_path, line, sizeof(line));
    err_set(err, ERR_IO, "%s/%s failed", postgres->bin, program);
    err_detail(err, "its last words: %s", line[0] ? line : "none");
    err_hint(err, "the whole of it is in %s", log_path);
    return ERR_IO;
}

void dev_log_last_line(const char *log_path, char *out, size_t out_bytes)
{
    char text[2048];
    int fd = open(log_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    ssize_t len = 0;
    size_t end, start;

    out[0] = '\0';
    if (fd < 0) {
        return;
    }
    if (size > 0) {
        len = pread(fd, text, sizeof(text), size > (off_t)sizeof(text) ? size - (off_t)sizeof(text) : 0);
    }
    close(fd);
    for (end = len > 0 ? (size_t)len : 0; end > 0 && (text[end - 1] == '\n' || text[end - 1] == ' '); end--) {
    }
    for (start = end; start > 0 && text[start - 1] != '\n'; start--) {
    }
    (void)snprintf(out, out_bytes, "%.*s", (int)(end - start),
                   text + start); /* a text too long for a sentence is cut */
}
