/*
 * See dev/cluster.h. The folder has `postgres` (the data, or a link when the server's user cannot reach the folder),
 * `postgres.log` and `lock`. The socket is in a short folder under /tmp, because the path of a socket must fit in 107
 * bytes.
 *
 * A new cluster is made as `postgres.new` and then renamed, so that an interrupted one is never taken for a good one.
 */
#include "dev/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/digest.h"
#include "base/text.h"

enum { WAIT_MS = 20, START_WAITS = 120 * 1000 / WAIT_MS, STOP_WAITS = 30 * 1000 / WAIT_MS, STALE_STARTS = 20 };

static void PRINTF_LIKE(2, 3) tell(void (*say)(const char *line), const char *format, ...)
{
    char line[4 * DEV_PATH_BYTES];
    va_list arguments;

    if (say) {
        va_start(arguments, format);
        (void)vsnprintf(line, sizeof(line), format, arguments); /* two paths and a sentence fit */
        va_end(arguments);
        say(line);
    }
}

static void wait_a_little(void)
{
    struct timespec pause = {.tv_nsec = WAIT_MS * 1000000L};

    (void)nanosleep(&pause, NULL); /* a signal makes the pause shorter, which is fine */
}

/* --- files --- */

static bool text_fits(char *out, size_t out_bytes, const char *a, const char *b)
{
    return (size_t)snprintf(out, out_bytes, "%s%s", a, b) < out_bytes;
}

static ssize_t file_read(const char *path, char *out, size_t out_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, out, out_bytes - 1);

    if (fd >= 0) {
        close(fd);
    }
    out[len > 0 ? len : 0] = '\0';
    return len;
}

static enum err_code directory_problem(const char *path, int why, struct err *err)
{
    err_set(err, ERR_IO, "the folder %s cannot be used: %s", path, strerror(why));
    err_hint(err, why == ENOSPC ? "make room on that file system" : "give `sagad dev` a folder of your own: --dir DIR");
    return ERR_IO;
}

/* Checks a folder. If another user can write to it, links and files of that user could be in place of ours. */
static enum err_code directory_check(const char *path, struct err *err)
{
    struct stat st;

    if (stat(path, &st) != 0) {
        return directory_problem(path, errno, err);
    }
    if (st.st_uid != geteuid() || (st.st_mode & S_IWOTH) != 0) {
        err_set(err, ERR_CONFIG, "the folder %s %s", path,
                st.st_uid != geteuid() ? "belongs to another user" : "can be written to by everybody");
        err_hint(err, "give `sagad dev` a folder of your own: --dir DIR");
        return ERR_CONFIG;
    }
    return ERR_OK;
}

int dev_file_open(const char *path, mode_t mode, struct err *err)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, mode);

    if (fd < 0 || fstat(fd, &st) != 0) {
        (void)err_set(err, ERR_IO, "the file %s cannot be opened", path);
        err_detail(err, "%s", errno == ELOOP ? "it is a link" : strerror(errno));
    } else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1 || (st.st_mode & 077 & ~mode) != 0) {
        (void)err_set(err, ERR_CONFIG, "the file %s is not one that `sagad dev` has made", path);
        err_detail(err, "its owner, its mode or its links are others");
    } else {
        return fd;
    }
    err_hint(err, "look at what it is; remove it, or give `sagad dev` another --dir");
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

/*
 * Does mkdir -p and returns an absolute path without links. New folders are private; when PostgreSQL runs as another
 * user, that user may pass through them.
 */
static enum err_code directory_make(const char *path, const struct dev_user *user, char out[DEV_PATH_BYTES],
                                    struct err *err)
{
    mode_t mode = user->changes ? 0711 : 0700;
    char part[DEV_PATH_BYTES], real[PATH_MAX], inside[PATH_MAX + 2];

    if (!text_fits(part, sizeof(part), path, "")) {
        return err_set(err, ERR_CONFIG, "--dir is longer than %d bytes", DEV_PATH_BYTES);
    }
    for (char *slash = strchr(part + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash) {
            *slash = '\0';
        }
        if (mkdir(part, mode) == 0 ? chmod(part, mode) != 0 : errno != EEXIST) {
            return directory_problem(part, errno, err);
        }
        if (!slash) {
            break;
        }
        *slash = '/';
    }
    if (!realpath(path, real) || !text_fits(inside, sizeof(inside), real, "/.") ||
        access(inside, R_OK | W_OK | X_OK) != 0) {
        return directory_problem(path, errno, err);
    }
    /* Leaves room for the names below it. */
    if (strlen(real) + 32 > DEV_PATH_BYTES) {
        return err_set(err, ERR_CONFIG, "--dir is longer than %d bytes", DEV_PATH_BYTES - 32);
    }
    (void)text_fits(out, DEV_PATH_BYTES, real, ""); /* the length was just checked */
    return directory_check(real, err);
}

/* Makes or finds a folder that only the server's user can enter. Another user's folder of that name is refused, because
 * everybody can write to /tmp. */
static enum err_code private_folder(const struct dev_user *user, const char *path, struct err *err)
{
    struct stat st;

    if (mkdir(path, 0700) == 0 && user->changes && chown(path, user->uid, user->gid) != 0) {
        return directory_problem(path, errno, err);
    }
    if (lstat(path, &st) != 0) {
        return directory_problem(path, errno, err);
    }
    if (!S_ISDIR(st.st_mode) || st.st_uid != user->uid || (st.st_mode & 077) != 0) {
        err_set(err, ERR_CONFIG, "%s is not a private folder of the user that runs PostgreSQL", path);
        err_hint(err, "look at what it is; remove it, or give `sagad dev` another --dir");
        return ERR_CONFIG;
    }
    return ERR_OK;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void folder_remove(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT); /* whoever makes it anew meets what stays */
}

/* --- where things lie --- */

static void folder_hash(const char *path, char out[17])
{
    struct digest digest = digest_sha256(slice_of(path));
    char hex[65];

    digest_hex(&digest, hex);
    memcpy(out, hex, 16);
    out[16] = '\0';
}

/*
 * Chooses the place of the data: in the folder, or, when the server's user cannot get there (a checkout below /root),
 * in a folder of that user under /var/tmp to which DIR/postgres links.
 */
static enum err_code data_place(struct dev_cluster *cluster, void (*say)(const char *), struct err *err)
{
    char link_path[DEV_PATH_BYTES + 16], probe[DEV_PATH_BYTES + 16], home[64], hash[17];
    struct stat st;
    enum err_code code;

    CHECK(text_fits(link_path, sizeof(link_path), cluster->directory, "/postgres"));
    CHECK(text_fits(cluster->data, sizeof(cluster->data), cluster->directory, "/postgres"));
    if (!cluster->user.changes ||
        (lstat(link_path, &st) == 0 && S_ISDIR(st.st_mode) && dev_user_reaches(&cluster->user, link_path))) {
        return ERR_OK;
    }
    CHECK(text_fits(probe, sizeof(probe), cluster->directory, "/reach"));
    code = private_folder(&cluster->user, probe, err);
    if (code == ERR_OK && dev_user_reaches(&cluster->user, probe)) {
        (void)rmdir(probe); /* otherwise the next start meets it */
        return ERR_OK;
    }
    (void)rmdir(probe);
    if (code != ERR_OK) {
        return code;
    }
    folder_hash(cluster->directory, hash);
    CHECK(text_fits(home, sizeof(home), "/var/tmp/sagad-dev-", hash));
    CHECK(text_fits(cluster->data, sizeof(cluster->data), home, "/postgres"));
    code = private_folder(&cluster->user, home, err);
    if (code != ERR_OK) {
        return code;
    }
    tell(say, "user %s cannot enter %s: the data lies in %s", cluster->user.name, cluster->directory, cluster->data);
    if (symlink(cluster->data, link_path) != 0 && errno != EEXIST) {
        return directory_problem(link_path, errno, err);
    }
    return ERR_OK;
}

static enum err_code socket_place(struct dev_cluster *cluster, struct err *err)
{
    char hash[17];

    folder_hash(cluster->directory, hash);
    (void)snprintf(cluster->socket_directory, sizeof(cluster->socket_directory), "/tmp/sagad-dev-%u-%s",
                   (unsigned)cluster->user.uid, hash);
    (void)snprintf(cluster->dsn, sizeof(cluster->dsn), "host=%s port=5432 user=sagad dbname=postgres",
                   cluster->socket_directory);
    return private_folder(&cluster->user, cluster->socket_directory, err);
}

static enum err_code lock_take(struct dev_cluster *cluster, struct err *err)
{
    char path[DEV_PATH_BYTES + 16];

    CHECK(text_fits(path, sizeof(path), cluster->directory, "/lock"));
    cluster->lock_fd = dev_file_open(path, 0644, err);
    if (cluster->lock_fd < 0) {
        return err->code;
    }
    if (flock(cluster->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        err_set(err, ERR_CONFIG, "another `sagad dev` is running in %s", cluster->directory);
        err_hint(err, "stop that one, or give this one another --dir");
        return ERR_CONFIG;
    }
    return ERR_OK;
}

/* --- the data --- */

/* Returns the major version of the data; 0 when there is none yet, -1 with a sentence. */
static int data_major(const struct dev_cluster *cluster, struct err *err)
{
    char path[DEV_PATH_BYTES + 16], text[32];
    struct stat st;

    if (stat(cluster->data, &st) != 0) {
        return 0;
    }
    CHECK(text_fits(path, sizeof(path), cluster->data, "/PG_VERSION"));
    if (file_read(path, text, sizeof(text)) > 0 && atoi(text) > 0) {
        if (st.st_uid != cluster->user.uid) {
            err_set(err, ERR_CONFIG, "the data in %s belong to another user", cluster->data);
            err_hint(err, "start `sagad dev` as the user who made them, or give it another --dir");
            return -1;
        }
        return atoi(text);
    }
    err_set(err, ERR_CONFIG, "%s exists and is no PostgreSQL data directory", cluster->data);
    err_hint(err, "look at what it is; remove it, or give `sagad dev` another --dir");
    return -1;
}

static enum err_code data_make(const struct dev_cluster *cluster, struct err *err)
{
    char fresh[DEV_PATH_BYTES + 16];
    const char *arguments[] = {
        "initdb", "-D", fresh, "-U", "sagad", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions",
        NULL};
    enum err_code code;

    CHECK(text_fits(fresh, sizeof(fresh), cluster->data, ".new"));
    folder_remove(fresh);
    code = private_folder(&cluster->user, fresh, err);
    if (code == ERR_OK) {
        code = dev_program_run(&cluster->postgres, "initdb", arguments, &cluster->user, cluster->log_path, err);
    }
    if (code == ERR_OK && rename(fresh, cluster->data) != 0) {
        code = directory_problem(cluster->data, errno, err);
    }
    if (code != ERR_OK) {
        folder_remove(fresh);
    }
    return code;
}

/* --- the server --- */

/* Reads postmaster.pid. Returns false when there is no readable file. */
static bool postmaster_file(const struct dev_cluster *cluster, pid_t *pid, bool *ready)
{
    char path[DEV_PATH_BYTES + 24], text[DEV_PATH_BYTES + 512];

    CHECK(text_fits(path, sizeof(path), cluster->data, "/postmaster.pid"));
    if (file_read(path, text, sizeof(text)) <= 0 || atoi(text) <= 0) {
        return false;
    }
    *pid = (pid_t)atoi(text);
    *ready = strstr(text, "\nready") != NULL; /* the postmaster writes this last line */
    return true;
}

/* Is this process a server on our data? Its number alone proves nothing, because numbers come again. A postmaster works
 * in its data folder. */
static bool postmaster_is_ours(const struct dev_cluster *cluster, pid_t pid)
{
    char link_path[64], target[PATH_MAX], real[PATH_MAX];
    ssize_t len;

    (void)snprintf(link_path, sizeof(link_path), "/proc/%d/cwd", (int)pid);
    len = readlink(link_path, target, sizeof(target) - 1);
    if (len <= 0 || !realpath(cluster->data, real)) {
        return false;
    }
    target[len] = '\0';
    return strcmp(target, real) == 0;
}

static void remove_in(const char *folder, const char *name)
{
    char path[DEV_PATH_BYTES + 32];

    CHECK(text_fits(path, sizeof(path), folder, name));
    (void)unlink(path); /* usually it is not there */
}

static enum err_code postmaster_await(struct dev_cluster *cluster, bool is_child, struct err *err)
{
    char line[240];
    pid_t pid;
    bool ready = false;

    for (int i = 0; i < START_WAITS; i++) {
        if (postmaster_file(cluster, &pid, &ready) && pid == cluster->postmaster && ready) {
            return ERR_OK;
        }
        if (is_child ? waitpid(cluster->postmaster, NULL, WNOHANG) == cluster->postmaster
                     : !postmaster_is_ours(cluster, cluster->postmaster)) {
            cluster->postmaster = 0;
            dev_log_last_line(cluster->log_path, line, sizeof(line));
            err_set(err, ERR_IO, "the private PostgreSQL in %s did not start", cluster->data);
            err_detail(err, "its last words: %s", line[0] ? line : "none");
            err_hint(err, "the whole of it is in %s", cluster->log_path);
            return ERR_IO;
        }
        wait_a_little();
    }
    err_set(err, ERR_IO, "the private PostgreSQL in %s is still not ready", cluster->data);
    err_hint(err, "it may be repairing itself after a crash: see %s", cluster->log_path);
    return ERR_IO;
}

static enum err_code postmaster_start(struct dev_cluster *cluster, struct err *err)
{
    const char *arguments[] = {"postgres",
                               "-D",
                               cluster->data,
                               "-k",
                               cluster->socket_directory,
                               "-p",
                               "5432",
                               "-c",
                               "listen_addresses=",
                               "-c",
                               "fsync=on",
                               "-c",
                               "full_page_writes=on",
                               "-c",
                               "synchronous_commit=on",
                               "-c",
                               "logging_collector=off",
                               "-c",
                               "unix_socket_permissions=0700",
                               NULL};
    pid_t pid = dev_program_start(&cluster->postgres, "postgres", arguments, &cluster->user, cluster->log_path);

    if (pid < 0) {
        return err_set(err, ERR_IO, "PostgreSQL cannot be started: %s", strerror(errno));
    }
    cluster->postmaster = pid;
    return postmaster_await(cluster, true, err);
}

/* Finds the running server, or starts one. */
static enum err_code postmaster_get(struct dev_cluster *cluster, void (*say)(const char *), struct err *err)
{
    enum err_code code;
    pid_t pid;
    bool ready, stale = false;

    if (postmaster_file(cluster, &pid, &ready)) {
        if (postmaster_is_ours(cluster, pid)) {
            cluster->postmaster = pid;
            cluster->reused = true;
            tell(say, "PostgreSQL %d is still running (pid %d): going on with it", cluster->postgres.major, (int)pid);
            return postmaster_await(cluster, false, err);
        }
        tell(say, "%s", "a server ended without tidying up: removing its postmaster.pid");
        remove_in(cluster->data, "/postmaster.pid");
        stale = true;
    }
    /* No server uses our data, and nobody else may enter this folder, so a socket in it is a dead one. */
    remove_in(cluster->socket_directory, "/.s.PGSQL.5432");
    remove_in(cluster->socket_directory, "/.s.PGSQL.5432.lock");
    tell(say, "starting PostgreSQL %d in %s", cluster->postgres.major, cluster->data);
    code = postmaster_start(cluster, err);
    /* The workers of a killed server hold its memory for a moment, and a new server refuses to start until they are
     * gone. */
    for (int i = 0; i < STALE_STARTS && stale && code != ERR_OK && cluster->postmaster == 0; i++) {
        wait_a_little();
        code = postmaster_start(cluster, err);
    }
    return code;
}

/* --- start and stop --- */

bool dev_cluster_default_directory(const char *name, char *out, size_t out_bytes)
{
    char below[DEV_PATH_BYTES];
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

    if (state && state[0] == '/') {
        return text_fits(below, sizeof(below), "/sagad/", name) && text_fits(out, out_bytes, state, below);
    }
    return home && home[0] == '/' && text_fits(below, sizeof(below), "/.local/state/sagad/", name) &&
           text_fits(out, out_bytes, home, below);
}

static enum err_code cluster_open(struct dev_cluster *cluster, const char *directory, void (*say)(const char *),
                                  struct err *err)
{
    int major;
    enum err_code code = dev_user_find(&cluster->user, err);

    if (code != ERR_OK || (code = directory_make(directory, &cluster->user, cluster->directory, err)) != ERR_OK ||
        (code = lock_take(cluster, err)) != ERR_OK || (code = data_place(cluster, say, err)) != ERR_OK ||
        (code = socket_place(cluster, err)) != ERR_OK) {
        return code;
    }
    CHECK(text_fits(cluster->log_path, sizeof(cluster->log_path), cluster->directory, "/postgres.log"));
    major = data_major(cluster, err);
    if (major < 0) {
        return ERR_CONFIG;
    }
    code = dev_postgres_find(&cluster->postgres, major, err);
    if (code != ERR_OK && major != 0) {
        err_set(err, code, "the data in %s were made by PostgreSQL %d, and that is not installed", cluster->data,
                major);
        err_hint(err, "apt-get install postgresql-%d, or give `sagad dev` another --dir", major);
    }
    if (code == ERR_OK && major == 0) {
        tell(say, "making a PostgreSQL %d cluster in %s", cluster->postgres.major, cluster->data);
        code = data_make(cluster, err);
    }
    return code != ERR_OK ? code : postmaster_get(cluster, say, err);
}

enum err_code dev_cluster_start(struct dev_cluster *cluster, const char *directory, void (*say)(const char *line),
                                struct err *err)
{
    enum err_code code;

    *cluster = (struct dev_cluster){.lock_fd = -1};
    code = cluster_open(cluster, directory, say, err);
    if (code != ERR_OK) {
        dev_cluster_stop(cluster);
    }
    return code;
}

static bool postmaster_ends(const struct dev_cluster *cluster, int signal_number)
{
    (void)kill(cluster->postmaster, signal_number); /* a server that is already gone is fine */
    for (int i = 0; i < STOP_WAITS; i++) {
        (void)waitpid(cluster->postmaster, NULL, WNOHANG); /* only when it is our child */
        if (!postmaster_is_ours(cluster, cluster->postmaster)) {
            return true;
        }
        wait_a_little();
    }
    return false;
}

void dev_cluster_stop(struct dev_cluster *cluster)
{
    if (cluster->postmaster > 0 && postmaster_is_ours(cluster, cluster->postmaster)) {
        /* Shuts down fast. A server that is not done in time is stopped at once, and repairs itself at its next
         * start. */
        if (!postmaster_ends(cluster, SIGINT)) {
            (void)postmaster_ends(cluster, SIGQUIT);
        }
    }
    if (cluster->socket_directory[0]) {
        (void)rmdir(cluster->socket_directory); /* the next start makes it again; it is not empty while a server runs */
    }
    cluster->postmaster = 0;
    if (cluster->lock_fd >= 0) {
        close(cluster->lock_fd);
        cluster->lock_fd = -1;
    }
}
