/* The private PostgreSQL of `sagad dev`, tested with the real PostgreSQL. It must start from any state that it
 * finds. */
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

static void path_in(char out[256], const char *name)
{
    CHECK(snprintf(out, 256, "%s/%s", scratch_folder, name) < 256);
}

static void file_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void own_by_server(const char *path)
{
    struct dev_user user;
    struct err err;

    CHECK(dev_user_find(&user, &err) == ERR_OK);
    CHECK(chown(path, user.uid, user.gid) == 0);
}

/* Leaves the state of a sagad that got SIGKILL: the server runs, the lock is free, and nobody was told. */
static void abandon(struct dev_cluster *cluster)
{
    close(cluster->lock_fd);
    cluster->lock_fd = -1;
}

static bool server_answers(const struct dev_cluster *cluster)
{
    char path[128];

    CHECK(snprintf(path, sizeof(path), "%s/.s.PGSQL.5432", cluster->socket_directory) < (int)sizeof(path));
    return access(path, R_OK) == 0 && kill(cluster->postmaster, 0) == 0;
}

TEST(a_server_that_survived_is_used_again)
{
    struct dev_cluster first, second;
    struct err err;
    char dir[256];

    path_in(dir, "one");
    assert_int_equal(dev_cluster_start(&first, dir, NULL, &err), ERR_OK);
    assert_false(first.reused);
    assert_true(server_answers(&first));
    abandon(&first);
    assert_int_equal(dev_cluster_start(&second, dir, NULL, &err), ERR_OK);
    assert_true(second.reused);
    assert_int_equal(second.postmaster, first.postmaster);
    assert_string_equal(second.dsn, first.dsn);
    dev_cluster_stop(&second);
    assert_false(server_answers(&first));
}

TEST(two_sagads_do_not_share_a_folder)
{
    struct dev_cluster first, second;
    struct err err;
    char dir[256];

    path_in(dir, "one");
    assert_int_equal(dev_cluster_start(&first, dir, NULL, &err), ERR_OK);
    assert_int_equal(dev_cluster_start(&second, dir, NULL, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "another `sagad dev`"));
    assert_true(server_answers(&first));
    dev_cluster_stop(&first);
}

TEST(a_killed_server_is_started_again_over_its_stale_pid_file)
{
    struct dev_cluster first, second;
    struct err err;
    char dir[256];

    path_in(dir, "one");
    assert_int_equal(dev_cluster_start(&first, dir, NULL, &err), ERR_OK);
    kill(first.postmaster, SIGKILL);
    assert_int_equal(waitpid(first.postmaster, NULL, 0), first.postmaster);
    abandon(&first);
    assert_int_equal(dev_cluster_start(&second, dir, NULL, &err), ERR_OK);
    assert_false(second.reused);
    assert_true(server_answers(&second));
    dev_cluster_stop(&second);
}

TEST(a_pid_file_that_names_a_stranger_is_stale)
{
    struct dev_cluster cluster;
    struct err err;
    char dir[256], path[256], text[32];

    path_in(dir, "one");
    path_in(path, "one/postgres/postmaster.pid");
    (void)snprintf(text, sizeof(text), "%d\n", (int)getpid());
    file_write(path, text);
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_OK);
    assert_int_not_equal(cluster.postmaster, getpid());
    dev_cluster_stop(&cluster);
}

TEST(an_interrupted_initdb_is_done_over)
{
    struct dev_cluster cluster;
    struct err err;
    char dir[256], path[256];

    path_in(dir, "half");
    assert_int_equal(mkdir(dir, 0755), 0);
    path_in(path, "half/postgres.new");
    assert_int_equal(mkdir(path, 0700), 0);
    path_in(path, "half/postgres.new/PG_VERSION");
    file_write(path, "15\n");
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_OK);
    assert_true(server_answers(&cluster));
    dev_cluster_stop(&cluster);
}

TEST(a_path_too_long_for_a_socket_is_no_trouble)
{
    struct dev_cluster cluster;
    struct err err;
    char dir[256], name[160];

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    path_in(dir, name);
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_OK);
    assert_true(server_answers(&cluster));
    dev_cluster_stop(&cluster);
}

TEST(a_directory_that_cannot_be_used_gets_a_sentence_and_a_hint)
{
    static const struct {
        const char *dir, *version, *sentence;
    } cases[] = {
        {"old", "9\n", "were made by PostgreSQL 9"},
        {"strange", "", "is no PostgreSQL data directory"},
    };
    struct dev_cluster cluster;
    struct err err;
    char dir[256], data[256], path[256];

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        path_in(dir, cases[i].dir);
        assert_int_equal(mkdir(dir, 0755), 0);
        CHECK(snprintf(data, sizeof(data), "%.200s/postgres", dir) < (int)sizeof(data));
        assert_int_equal(mkdir(data, 0700), 0);
        CHECK(snprintf(path, sizeof(path), "%.200s/PG_VERSION", data) < (int)sizeof(path));
        file_write(path, cases[i].version);
        own_by_server(data);
        assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_CONFIG);
        assert_non_null(strstr(err.message, cases[i].sentence));
        assert_true(err.hint[0] != '\0');
    }
    path_in(path, "a-file");
    file_write(path, "");
    assert_int_equal(dev_cluster_start(&cluster, path, NULL, &err), ERR_IO);
    assert_non_null(strstr(err.message, "Not a directory"));
}

static int lines_said;
static char last_said[512];

static void hear(const char *line)
{
    lines_said++;
    (void)snprintf(last_said, sizeof(last_said), "%s", line);
}

TEST(a_server_that_does_not_start_is_quoted)
{
    struct dev_cluster cluster;
    struct err err;
    char dir[256], path[512];

    path_in(dir, "broken");
    lines_said = 0;
    assert_int_equal(dev_cluster_start(&cluster, dir, hear, &err), ERR_OK);
    assert_true(lines_said > 0);
    CHECK(snprintf(path, sizeof(path), "%.400s/postgresql.conf", cluster.data) < (int)sizeof(path));
    dev_cluster_stop(&cluster);
    file_write(path, "no_such_setting = 1\n");
    assert_int_equal(dev_cluster_start(&cluster, dir, hear, &err), ERR_IO);
    assert_non_null(strstr(err.message, "did not start"));
    assert_true(err.detail[0] != '\0' && err.hint[0] != '\0');
}

/* Only root may enter the folder. The data is put elsewhere, and later starts find it. */
TEST(a_folder_that_the_server_cannot_enter_gets_a_place_for_its_data)
{
    struct dev_cluster cluster;
    struct dev_user user;
    struct err err;
    char closed[256], dir[256];

    assert_int_equal(dev_user_find(&user, &err), ERR_OK);
    if (!user.changes) {
        skip(); /* only root runs the server as another user */
    }
    path_in(closed, "closed");
    path_in(dir, "closed/dev");
    assert_int_equal(mkdir(closed, 0700), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dev_cluster_start(&cluster, dir, hear, &err), ERR_OK);
        assert_non_null(strstr(cluster.data, "/var/tmp/sagad-dev-"));
        dev_cluster_stop(&cluster);
    }
    char *end = strstr(cluster.data, "/postgres");

    assert_non_null(end);
    *end = '\0';                                    /* leaves its own folder */
    assert_int_equal(chmod(cluster.data, 0755), 0); /* another user could have changed it, so it is no longer private */
    assert_int_equal(dev_cluster_start(&cluster, dir, hear, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "is not a private folder"));
    char *message_end = strstr(err.message, " is not");

    *message_end = '\0';
    pid_t pid = fork();

    if (pid == 0) {
        execl("/bin/rm", "rm", "-rf", err.message, (char *)NULL);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

TEST(a_path_that_is_too_long_is_refused)
{
    struct dev_cluster cluster;
    struct err err;
    char *dir = malloc(5000);

    assert_non_null(dir);
    memset(dir, 'x', 4999);
    dir[0] = '/';
    dir[4999] = '\0';
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "longer than"));
    /* The folder can be made, but nothing can be made inside it. */
    size_t len = (size_t)snprintf(dir, 5000, "%s", scratch_folder);

    while (len < DEV_PATH_BYTES - 20) {
        size_t part = DEV_PATH_BYTES - 10 - len < 200 ? DEV_PATH_BYTES - 10 - len : 200;

        dir[len] = '/';
        memset(dir + len + 1, 'y', part - 1);
        len += part;
    }
    dir[len] = '\0';
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "longer than"));
    free(dir);
}

TEST(data_of_another_user_are_left_alone)
{
    struct dev_cluster cluster;
    struct dev_user user;
    struct err err;
    char dir[256], data[256], path[300];

    assert_int_equal(dev_user_find(&user, &err), ERR_OK);
    if (!user.changes) {
        skip(); /* only root can make such files */
    }
    path_in(dir, "foreign");
    path_in(data, "foreign/postgres");
    assert_int_equal(mkdir(dir, 0755), 0);
    assert_int_equal(mkdir(data, 0777), 0);
    assert_int_equal(chmod(data, 0777), 0);
    CHECK(snprintf(path, sizeof(path), "%s/PG_VERSION", data) < (int)sizeof(path));
    file_write(path, "15\n");
    assert_int_equal(dev_cluster_start(&cluster, dir, NULL, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "belong to another user"));
}

/* The folder is writable for another user. A link by that user would make us write into our own file elsewhere. */
TEST(a_file_of_somebody_else_is_not_taken)
{
    char path[256], other[256];
    struct err err = {0};
    int fd;

    path_in(path, "token");
    path_in(other, "other");
    file_write(other, "keep this");
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(dev_file_open(path, 0600, &err), -1);
    assert_non_null(strstr(err.detail, "a link"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(link(other, path), 0);
    assert_int_equal(chmod(other, 0600), 0);
    assert_int_equal(dev_file_open(path, 0600, &err), -1);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(dev_file_open(path, 0600, &err), -1); /* other users have read it */
    fd = dev_file_open(path, 0644, &err);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(dev_file_open(path, 0600, &err), -1);
    assert_int_equal(rmdir(path), 0);
}

TEST(a_folder_that_others_write_to_is_refused)
{
    struct dev_cluster cluster;
    char path[256];
    struct err err = {0};

    path_in(path, "open-to-all");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(dev_cluster_start(&cluster, path, NULL, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "by everybody"));
    assert_int_equal(chmod(path, 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 12345, 12345), 0);
        assert_int_equal(dev_cluster_start(&cluster, path, NULL, &err), ERR_CONFIG);
        assert_non_null(strstr(err.message, "another user"));
    }
    assert_int_equal(rmdir(path), 0);
}

TEST_PROGRAM(scratch_make_folder, scratch_remove_folder)
