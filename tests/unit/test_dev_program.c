/* The programs of PostgreSQL that `sagad dev` finds and runs. Scripts replace them. The tests show which program is
 * taken, and the message when it fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "dev/cluster.h"
#include "tests/lib/scratch.h"
#include "tests/lib/test.h"

static void path_in(char out[256], const char *folder, const char *name)
{
    CHECK(snprintf(out, 256, "%.64s/%.64s%s%.64s", scratch_folder, folder, *name ? "/" : "", name) < 256);
}

static void script(const char *folder, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    path_in(path, folder, "");
    (void)mkdir(path, 0755);
    path_in(path, folder, name);
    file = fopen(path, "w");
    CHECK(file && fprintf(file, "#!/bin/sh\n%s\n", text) > 0 && fclose(file) == 0 && chmod(path, 0755) == 0);
}

static void look_in(const char *folders)
{
    char path[1024];

    CHECK(snprintf(path, sizeof(path), "%.900s", folders) < (int)sizeof(path));
    assert_int_equal(setenv("PATH", path, 1), 0);
}

TEST(the_version_that_is_wanted_is_found_in_the_path)
{
    struct dev_postgres postgres;
    struct err err = {0};
    char path[1000];
    char *long_name = malloc(DEV_PATH_BYTES + 10);

    assert_non_null(long_name);
    memset(long_name, 'x', DEV_PATH_BYTES + 9);
    long_name[DEV_PATH_BYTES + 9] = '\0';
    script("bin99", "initdb", "");
    script("bin99", "postgres", "echo 'postgres (PostgreSQL) 99.1 (of the test)'");
    script("bin9", "initdb", "");
    script("bin9", "postgres", "echo 'postgres (PostgreSQL) 9.6'");
    script("mute", "initdb", "");
    script("mute", "postgres", "echo nothing");
    script("half", "initdb", "");
    (void)snprintf(path, sizeof(path), "::%s/none:%s/half:%s/mute:%s/bin9:%s/bin99", scratch_folder, scratch_folder,
                   scratch_folder, scratch_folder, scratch_folder);
    look_in(path);
    assert_int_equal(dev_postgres_find(&postgres, 99, &err), ERR_OK);
    assert_int_equal(postgres.major, 99);
    assert_non_null(strstr(postgres.bin, "/bin99"));
    assert_int_equal(dev_postgres_find(&postgres, 98, &err), ERR_CONFIG);
    assert_non_null(strstr(err.message, "PostgreSQL 98 is not installed"));
    assert_int_equal(setenv("PATH", long_name, 1), 0); /* no user can have such a folder */
    assert_int_equal(dev_postgres_find(&postgres, 99, &err), ERR_CONFIG);
    assert_int_equal(unsetenv("PATH"), 0);
    assert_int_equal(dev_postgres_find(&postgres, 99, &err), ERR_CONFIG);
    look_in("/usr/bin:/bin");
    free(long_name);
}

static void run(const char *program, enum err_code code, const char *last_words)
{
    const char *const arguments[] = {program, NULL};
    struct dev_postgres postgres = {.major = 99};
    struct dev_user user;
    struct err err = {0};
    char log[256];

    CHECK(dev_user_find(&user, &err) == ERR_OK);
    path_in(postgres.bin, "programs", "");
    path_in(log, "log", "");
    (void)unlink(log);
    assert_int_equal(dev_program_run(&postgres, program, arguments, &user, log, &err), code);
    if (code != ERR_OK && !strstr(err.detail, last_words)) {
        fail_msg("%s: %s", program, err.detail);
    }
}

/* When branches are counted, a child that becomes another user says that it cannot write its counters. */
#ifdef SAGAD_COVERAGE
static const char silence[] = "";
#else
static const char silence[] = "none";
#endif

TEST(a_program_that_fails_is_quoted_with_its_last_words)
{
    script("programs", "works", "exit 0");
    script("programs", "fails", "echo first; echo 'the last one  '; echo; exit 3");
    script("programs", "is_silent", "exit 3");
    script("programs", "is_killed", "echo 'good bye'; kill -9 $$");
    run("works", ERR_OK, NULL);
    run("fails", ERR_IO, "the last one");
    run("is_silent", ERR_IO, silence);
    run("is_killed", ERR_IO, "good bye");
    run("is_not_there", ERR_IO, silence);
}

TEST(without_a_log_nothing_is_run)
{
    const char *const arguments[] = {"works", NULL};
    struct dev_postgres postgres = {.major = 99};
    struct dev_user user;
    struct err err = {0};

    CHECK(dev_user_find(&user, &err) == ERR_OK);
    script("programs", "works", "exit 0");
    path_in(postgres.bin, "programs", "");
    assert_int_equal(dev_program_run(&postgres, "works", arguments, &user, "/nowhere/log", &err), ERR_IO);
    assert_non_null(strstr(err.detail, silence));
}

TEST(the_last_line_of_a_long_log_is_found_and_cut)
{
    char path[256], line[24];
    FILE *file;

    path_in(path, "long.log", "");
    file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 400; i++) {
        assert_true(fprintf(file, "line %d of many\n", i) > 0);
    }
    assert_true(fprintf(file, "the last line, and a long one\n\n") > 0);
    assert_int_equal(fclose(file), 0);
    dev_log_last_line(path, line, sizeof(line));
    assert_string_equal(line, "the last line, and a lo");
    assert_int_equal(truncate(path, 0), 0);
    dev_log_last_line(path, line, sizeof(line));
    assert_string_equal(line, "");
    dev_log_last_line("/nowhere/log", line, sizeof(line));
    assert_string_equal(line, "");
}

TEST(a_user_reaches_what_is_open_to_it)
{
    struct dev_user user;
    struct err err = {0};
    char path[256];

    CHECK(dev_user_find(&user, &err) == ERR_OK);
    path_in(path, "own", "");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chown(path, user.uid, user.gid), 0);
    assert_true(dev_user_reaches(&user, path));
    assert_false(dev_user_reaches(&user, "/nowhere"));
    if (user.changes) {
        path_in(path, "closed", "");
        assert_int_equal(mkdir(path, 0700), 0);
        assert_false(dev_user_reaches(&user, path));
        user.changes = false; /* as we are */
        assert_true(dev_user_reaches(&user, path));
    }
}

TEST(the_cluster_lies_where_programs_keep_their_state)
{
    char path[64], little[8];

    assert_int_equal(setenv("HOME", "/h", 1), 0);
    assert_int_equal(setenv("XDG_STATE_HOME", "/s", 1), 0);
    assert_true(dev_cluster_default_directory("dev", path, sizeof(path)));
    assert_string_equal(path, "/s/sagad/dev");
    assert_false(dev_cluster_default_directory("dev", little, sizeof(little)));
    assert_int_equal(setenv("XDG_STATE_HOME", "s", 1), 0); /* a relative path counts as unset */
    assert_true(dev_cluster_default_directory("dev", path, sizeof(path)));
    assert_string_equal(path, "/h/.local/state/sagad/dev");
    assert_false(dev_cluster_default_directory("dev", little, sizeof(little)));
    assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
    assert_int_equal(setenv("HOME", "h", 1), 0);
    assert_false(dev_cluster_default_directory("dev", path, sizeof(path)));
    assert_int_equal(unsetenv("HOME"), 0);
    assert_false(dev_cluster_default_directory("dev", path, sizeof(path)));
}

TEST_PROGRAM(scratch_make_folder, scratch_remove_folder)
