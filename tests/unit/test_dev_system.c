/*
 * `sagad dev` on a system that refuses. Each call to the system fails once, and the worst result is a sentence. Scripts
 * replace PostgreSQL, and the linker puts the functions of this file in front of the system's.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "dev/cluster.h"
#include "tests/lib/scratch.h"
#include "tests/lib/test.h"

#define CALLS_MAX 500

/* --- the system --- */

static struct {
    bool armed;
    unsigned calls, fails_at; /* counts while armed; with fails_at 0 no call fails */
    int why;
    bool is_nobody_s; /* there is no user postgres */
    bool has_no_users;
    uid_t euid;       /* the user that dev_user_find() sees */
    bool stays;       /* becoming another user changes nothing, so that children can write their counters */
    bool has_scripts; /* scripts replace PostgreSQL */
    bool hides;       /* hides the installed PostgreSQL */
    bool hurries;     /* makes every wait much shorter */
    pid_t dies;       /* a server that ends while a waiter waits for it */
} sys;

static bool fails(void)
{
    if (!sys.armed || ++sys.calls != sys.fails_at) {
        return false;
    }
    errno = sys.why;
    return true;
}

#define REFUSE(type, name, parameters, arguments, failed)                                                              \
    type __real_##name parameters;                                                                                     \
    type __wrap_##name parameters;                                                                                     \
    type __wrap_##name parameters                                                                                      \
    {                                                                                                                  \
        return fails() ? (failed) : __real_##name arguments;                                                           \
    }
REFUSE(pid_t, fork, (void), (), -1)
REFUSE(int, pipe2, (int *fds, int flags), (fds, flags), -1)
REFUSE(int, dup2, (int from, int to), (from, to), -1)
REFUSE(int, chdir, (const char *path), (path), -1)
REFUSE(int, chown, (const char *path, uid_t uid, gid_t gid), (path, uid, gid), -1)
REFUSE(int, lstat64, (const char *path, struct stat *st), (path, st), -1)
REFUSE(char *, realpath, (const char *path, char *out), (path, out), NULL)
REFUSE(int, rename, (const char *from, const char *to), (from, to), -1)
REFUSE(int, symlink, (const char *to, const char *path), (to, path), -1)
REFUSE(pid_t, waitpid, (pid_t pid, int *status, int options), (pid, status, options), -1)

/* Things made outside of the test's own folder: sockets, and data that the server's user could not reach. */
static struct {
    char paths[CALLS_MAX][64];
    size_t count;
} outside;

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    int code = fails() ? -1 : __real_mkdir(path, mode);

    if (code == 0 && strncmp(path, scratch_folder, strlen(scratch_folder)) != 0) {
        CHECK(outside.count < CALLS_MAX && strlen(path) < sizeof(outside.paths[0]));
        memcpy(outside.paths[outside.count++], path, strlen(path) + 1);
    }
    return code;
}

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
    return fails() || (sys.hides && strncmp(path, "/usr/", 5) == 0) ? -1 : __real_access(path, mode);
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode)
{
    return fails() ? -1 : __real_open64(path, flags, mode);
}

#define BECOME(name, parameters, arguments)                                                                            \
    int __real_##name parameters;                                                                                      \
    int __wrap_##name parameters;                                                                                      \
    int __wrap_##name parameters                                                                                       \
    {                                                                                                                  \
        return fails() ? -1 : sys.stays ? 0 : __real_##name arguments;                                                 \
    }
BECOME(setgroups, (size_t count, const gid_t *list), (count, list))
BECOME(setgid, (gid_t gid), (gid))
BECOME(setuid, (uid_t uid), (uid))

uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
    return sys.euid;
}

struct passwd *__real_getpwnam(const char *name);
struct passwd *__wrap_getpwnam(const char *name);
struct passwd *__wrap_getpwnam(const char *name)
{
    static char name_of_nobody[] = "nobody";
    static struct passwd nobody = {.pw_name = name_of_nobody};

    if (sys.has_no_users || (sys.is_nobody_s && strcmp(name, "postgres") == 0)) {
        return NULL;
    }
    nobody.pw_uid = getuid();
    nobody.pw_gid = getgid();
    if (sys.stays) {
        nobody.pw_uid = 65534;
        return &nobody;
    }
    return sys.is_nobody_s ? &nobody : __real_getpwnam(name);
}

int __real_nanosleep(const struct timespec *pause, struct timespec *left);
int __wrap_nanosleep(const struct timespec *pause, struct timespec *left);
int __wrap_nanosleep(const struct timespec *pause, struct timespec *left)
{
    struct timespec shorter = {.tv_nsec = pause->tv_nsec / (sys.hurries ? 200 : 4)};

    if (sys.dies) {
        (void)kill(sys.dies, SIGKILL);
        (void)__real_waitpid(sys.dies, NULL, 0);
        sys.dies = 0;
    }
    return __real_nanosleep(&shorter, left);
}

/* --- scripts in place of PostgreSQL --- */

static struct dev_postgres scripts = {.major = 15};

enum err_code __real_dev_postgres_find(struct dev_postgres *postgres, int major, struct err *err);
enum err_code __wrap_dev_postgres_find(struct dev_postgres *postgres, int major, struct err *err);
enum err_code __wrap_dev_postgres_find(struct dev_postgres *postgres, int major, struct err *err)
{
    if (!sys.has_scripts) {
        return __real_dev_postgres_find(postgres, major, err);
    }
    *postgres = scripts;
    return ERR_OK;
}

static void path_in(char out[256], const char *name)
{
    CHECK(snprintf(out, 256, "%.100s/%.100s", scratch_folder, name) < 256);
}

static void script(const char *name, const char *text)
{
    char path[256];
    FILE *file;

    path_in(path, "bin");
    (void)mkdir(path, 0755);
    CHECK(snprintf(scripts.bin, sizeof(scripts.bin), "%s", path) > 0);
    CHECK(snprintf(path, sizeof(path), "%.200s/%.40s", scripts.bin, name) < (int)sizeof(path));
    file = fopen(path, "w");
    CHECK(file && fprintf(file, "#!/bin/sh\n%s\n", text) > 0 && fclose(file) == 0 && chmod(path, 0755) == 0);
}

#define RUNS "cd \"$2\" && printf '%s\\n%s\\nready   \\n' $$ \"$2\" > postmaster.pid && exec sleep 1000"

/* Begins as the current user, who owns the files and the children's counters. */
static void begin(void)
{
    memset(&sys, 0, sizeof(sys));
    sys.euid = getuid();
    sys.stays = true;
    sys.has_scripts = true;
    script("initdb", "echo 15 > \"$2/PG_VERSION\"");
    script("postgres", RUNS);
}

static void folder(char out[256])
{
    static int number;
    char name[32];

    (void)snprintf(name, sizeof(name), "dev%d", number++);
    path_in(out, name);
}

/* --- one call after another fails --- */

/* Checks that the next start works, because what was begun is either ended or found. */
static void works_after_that(const char *dir)
{
    struct dev_cluster cluster;
    struct err err = {0};

    sys.armed = false;
    if (dev_cluster_start(&cluster, dir, NULL, &err) != ERR_OK) {
        fail_msg("call %u: %s", sys.fails_at, err.message);
    }
    assert_int_equal(kill(cluster.postmaster, 0), 0);
    dev_cluster_stop(&cluster);
}

static void arm(unsigned call, int why)
{
    sys.armed = true;
    sys.calls = 0;
    sys.fails_at = call;
    sys.why = why;
}

static void one_refusal_after_another(void)
{
    static const int reasons[] = {EACCES, ENOSPC};
    struct dev_cluster cluster;
    char dir[256];
    unsigned failed = 0;

    begin();
    sys.euid = 0;
    sys.stays = true;
    for (unsigned call = 1;; call++) {
        struct err err = {0};

        folder(dir);
        arm(call, reasons[call % 2]);
        enum err_code code = dev_cluster_start(&cluster, dir, NULL, &err);
        bool all = sys.calls < call;

        sys.armed = false;
        if (code == ERR_OK) {
            dev_cluster_stop(&cluster);
        } else {
            failed++;
            assert_true(err.message[0] != '\0');
            works_after_that(dir);
        }
        if (all && code == ERR_OK) { /* children go on counting, so one of their calls may still have failed */
            break;
        }
        assert_true(call < CALLS_MAX);
    }
    assert_true(failed >= 5);
}

TEST(whatever_the_system_refuses_is_told_and_the_next_start_works)
{
    struct dev_cluster cluster;
    char dir[256];

    if (getuid() != 0) {
        skip(); /* root makes the files, and they belong to the user of the server */
    }
    one_refusal_after_another();
    /* The second start begins over the data that the first one left. */
    begin();
    sys.euid = 0;
    sys.stays = true;
    folder(dir);
    works_after_that(dir);
    for (unsigned call = 1;; call++) {
        struct err err = {0};

        arm(call, EACCES);
        enum err_code code = dev_cluster_start(&cluster, dir, NULL, &err);
        bool all = sys.calls < call;

        sys.armed = false;
        if (code == ERR_OK) {
            dev_cluster_stop(&cluster);
        }
        works_after_that(dir);
        if (all && code == ERR_OK) {
            break;
        }
        assert_true(call < CALLS_MAX);
    }
}

TEST(a_program_that_cannot_be_begun_has_failed)
{
    static const char *const arguments[] = {"works", NULL};
    struct dev_user user;
    struct err err = {0};
    char log[256];

    begin();
    script("works", "exit 0");
    path_in(log, "log");
    for (int i = 0; i < 2; i++) {
        sys.euid = i == 0 ? 0 : 4711;
        sys.stays = true;
        assert_int_equal(dev_user_find(&user, &err), ERR_OK);
        assert_int_equal(user.changes, i == 0);
        for (unsigned call = 1; call <= 20; call++) { /* calls of the parent and of the child */
            arm(call, call % 2 ? EINTR : EACCES);
            if (dev_program_run(&scripts, "works", arguments, &user, log, &err) != ERR_OK) {
                assert_true(err.message[0] != '\0');
            }
            sys.armed = false;
        }
        assert_int_equal(dev_program_run(&scripts, "works", arguments, &user, log, &err), ERR_OK);
    }
}

TEST(a_folder_is_reached_only_where_everything_says_so)
{
    struct dev_user user;
    struct err err = {0};

    begin();
    sys.euid = 0;
    sys.stays = true;
    assert_int_equal(dev_user_find(&user, &err), ERR_OK);
    for (unsigned call = 1; call <= 6;
         call++) { /* fork, becoming the user, entering the folder, looking, and waiting for the child */
        arm(call, EACCES);
        assert_int_equal(dev_user_reaches(&user, scratch_folder), false);
        sys.armed = false;
    }
    assert_true(dev_user_reaches(&user, scratch_folder));
}

TEST(postgres_that_cannot_be_asked_is_not_there)
{
    struct dev_postgres found;
    struct err err = {0};

    begin();
    script("postgres", "echo 'postgres (PostgreSQL) 97.1'");
    assert_int_equal(setenv("PATH", scripts.bin, 1), 0);
    for (unsigned call = 1;; call++) {
        arm(call, EMFILE);
        enum err_code code = __real_dev_postgres_find(&found, 97, &err);
        bool all = sys.calls < call;

        sys.armed = false;
        if (all && code == ERR_OK) {
            break;
        }
        assert_true(call < CALLS_MAX);
    }
    assert_int_equal(setenv("PATH", "/usr/bin:/bin", 1), 0);
}

/* --- who runs it --- */

TEST(root_becomes_somebody_else_or_says_so)
{
    struct dev_user user;
    struct err err = {0};

    begin();
    sys.euid = 4711;
    assert_int_equal(dev_user_find(&user, &err), ERR_OK);
    assert_false(user.changes);
    sys.euid = 0;
    sys.has_no_users = true;
    assert_int_equal(dev_user_find(&user, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "neither a user postgres nor a user nobody"));
    assert_true(err.hint[0] != '\0');
    sys.has_no_users = false;
    sys.is_nobody_s = true;
    sys.stays = true;
    assert_int_equal(dev_user_find(&user, &err), ERR_OK);
    assert_string_equal(user.name, "nobody");
    sys.stays = false; /* the user called nobody is root */
    if (getuid() == 0) {
        assert_int_equal(dev_user_find(&user, &err), ERR_CONFIG);
    }
}

TEST(an_old_or_missing_postgresql_is_told_with_what_to_install)
{
    struct dev_postgres found;
    struct err err = {0};

    begin();
    script("postgres", "echo 'postgres (PostgreSQL) 9.6'");
    sys.hides = true; /* hides the installed PostgreSQL */
    assert_int_equal(setenv("PATH", scripts.bin, 1), 0);
    assert_int_equal(__real_dev_postgres_find(&found, 0, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "PostgreSQL 9 is too old"));
    assert_int_equal(setenv("PATH", "/nowhere", 1), 0);
    assert_int_equal(__real_dev_postgres_find(&found, 0, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "not installed"));
    assert_true(err.detail[0] != '\0' && err.hint[0] != '\0');
    sys.hides = false;
    assert_int_equal(setenv("PATH", "/usr/bin:/bin", 1), 0);
}

/* --- servers that behave badly --- */

TEST(a_server_that_never_becomes_ready_is_given_up)
{
    struct dev_cluster cluster;
    struct err err = {0};
    char dir[256];

    begin();
    script("postgres", "cd \"$2\" && echo $$ > postmaster.pid && exec sleep 1000");
    folder(dir);
    sys.hurries = true;
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_IO);
    assert_non_null(strstr(err.message, "still not ready"));
    assert_non_null(strstr(err.hint, "see "));
}

TEST(a_server_that_does_not_hear_is_stopped_at_once)
{
    struct dev_cluster cluster;
    struct err err = {0};
    char dir[256];

    begin();
    script("postgres", "trap '' INT; " RUNS);
    folder(dir);
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_OK);
    pid_t pid = cluster.postmaster;
    int status = 0;

    sys.hurries = true;
    dev_cluster_stop(&cluster);
    if (__real_waitpid(pid, &status, 0) == pid) { /* otherwise the child was reaped before */
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGQUIT);
    }
    assert_int_equal(kill(pid, 0), -1);
}

/* The workers of a killed server hold its memory for a moment. */
TEST(over_a_stale_server_the_start_is_tried_again)
{
    struct dev_cluster cluster;
    struct err err = {0};
    char dir[256], path[300];

    begin();
    folder(dir);
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_OK);
    assert_int_equal(kill(cluster.postmaster, SIGKILL), 0);
    assert_int_equal(waitpid(cluster.postmaster, NULL, 0), cluster.postmaster);
    dev_cluster_stop(&cluster);
    script("postgres", "if [ -e \"$2/tried\" ]; then rm \"$2/tried\"; " RUNS
                       "; fi; touch \"$2/tried\"; echo 'shared memory is in use'; exit 1");
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_OK);
    dev_cluster_stop(&cluster);
    CHECK(snprintf(path, sizeof(path), "%s/postgres/postmaster.pid", dir) < (int)sizeof(path));
    assert_int_equal(unlink(path), 0); /* a server that ends by itself is not stale, and its end is reported at once */
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_IO);
    assert_non_null(strstr(err.detail, "shared memory is in use"));
}

TEST(a_stale_server_that_never_goes_is_told)
{
    struct dev_cluster cluster;
    struct err err = {0};
    char dir[256];

    begin();
    folder(dir);
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_OK);
    dev_cluster_stop(&cluster); /* this stop leaves the pid file behind */
    script("postgres", "echo 'shared memory is in use'; exit 1");
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_IO);
    assert_non_null(strstr(err.detail, "shared memory is in use"));
}

TEST(without_a_user_for_it_nothing_is_begun)
{
    struct dev_cluster cluster;
    struct err err = {0};
    char dir[256];

    begin();
    sys.euid = 0;
    sys.has_no_users = true;
    folder(dir);
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_CONFIG);
    begin();
    sys.euid = getuid() + 4711; /* the files belong to this user */
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "belongs to another user"));
}

TEST(a_server_that_ends_while_it_is_waited_for_is_told)
{
    struct dev_cluster first, second;
    struct err err = {0};
    char dir[256], path[300];
    FILE *file;

    begin();
    folder(dir);
    assert_int_equal(dev_cluster_start(&first, dir, NULL, &err), ERR_OK);
    close(first.lock_fd); /* sagad was killed */
    CHECK(snprintf(path, sizeof(path), "%s/postgres/postmaster.pid", dir) < (int)sizeof(path));
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fprintf(file, "%d\nshutting down\n", (int)first.postmaster) > 0 && fclose(file) == 0);
    sys.dies = first.postmaster; /* while the next sagad waits for it */
    assert_int_equal(dev_cluster_start(&second, dir, NULL, &err), ERR_IO);
    assert_non_null(strstr(err.message, "did not start"));
}

TEST(data_that_are_no_data_are_left_alone)
{
    struct dev_cluster cluster;
    struct err err = {0};
    char dir[256], path[300];
    FILE *file;

    begin();
    folder(dir);
    assert_int_equal(mkdir(dir, 0755), 0);
    CHECK(snprintf(path, sizeof(path), "%s/postgres", dir) < (int)sizeof(path));
    assert_int_equal(mkdir(path, 0700), 0);
    CHECK(snprintf(path, sizeof(path), "%s/postgres/PG_VERSION", dir) < (int)sizeof(path));
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("fifteen\n", file) >= 0 && fclose(file) == 0);
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "is no PostgreSQL data directory"));
}

TEST(somebody_else_s_folder_for_sockets_is_not_used)
{
    struct dev_cluster cluster;
    struct err err = {0};
    char dir[256], place[64];

    begin();
    folder(dir);
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_OK);
    (void)snprintf(place, sizeof(place), "%s", cluster.socket_directory);
    dev_cluster_stop(&cluster);
    FILE *file = fopen(place, "w"); /* a file instead of a folder */

    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "is not a private folder"));
    assert_int_equal(unlink(place), 0);
    assert_int_equal(symlink("/tmp", place), 0);
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_CONFIG);
    assert_int_equal(unlink(place), 0);
}

/* After each test, nothing of ours is left in the places of other programs. */
static int remove_folders(void **state)
{
    int left = 0;

    sys.armed = false;
    for (size_t i = 0; i < outside.count; i++) {
        pid_t pid = __real_fork();

        if (pid == 0) {
            execl("/bin/rm", "rm", "-rf", outside.paths[i], (char *)NULL);
            _exit(1);
        }
        left -= __real_waitpid(pid, NULL, 0) != pid || __real_access(outside.paths[i], F_OK) == 0;
    }
    return scratch_remove_folder(state) == 0 ? left : -1;
}

int main(void)
{
    /* A shell without job control makes its background programs ignore these signals, and their children, too. */
    CHECK(signal(SIGINT, SIG_DFL) != SIG_ERR && signal(SIGQUIT, SIG_DFL) != SIG_ERR);
    return tests_run(scratch_make_folder, remove_folders);
}
