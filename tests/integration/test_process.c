/* Child processes: the result is reported truly, and nothing of them is left. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/process/process.h"
#include "io/process/programs.h"
#include "tests/lib/test.h"

struct trial {
    struct loop *loop;
    struct arena arena;
    struct process_run run;
    struct timer timer;
    int done_count;
    int64_t took_ms;
};

static void on_done(struct process_run *run)
{
    struct trial *t = container_of(run, struct trial, run);

    t->done_count++;
    loop_stop(t->loop);
}

static void trial_init(struct trial *t)
{
    memset(t, 0, sizeof(*t));
    t->loop = loop_new();
    arena_init(&t->arena, 4096);
    t->run.timeout_ms = 10000;
    t->run.output_bytes_max = 100000;
}

static void trial_fini(struct trial *t)
{
    loop_free(t->loop);
    arena_fini(&t->arena);
}

static void trial_run(struct trial *t, const char *const *argv)
{
    static const char *const env[] = {"PATH=/usr/bin:/bin", "COLOUR=blue", NULL};
    int64_t begin = loop_boot_ms_now();

    t->run.argv = (char *const *)argv;
    t->run.env = (char *const *)env;
    t->run.arena = &t->arena;
    t->run.done = on_done;
    loop_clock_update(t->loop); /* the time limit counts from here, not from when the loop was made */
    process_start(t->loop, &t->run);
    assert_int_equal(t->done_count, 0); /* never inside process_start() */
    loop_run(t->loop);
    assert_int_equal(t->done_count, 1);
    t->took_ms = loop_boot_ms_now() - begin;
}

static void trial_shell(struct trial *t, const char *script)
{
    const char *const argv[] = {"sh", "-c", script, NULL};

    trial_run(t, argv);
}

/* Is the process alive? A zombie that nobody has reaped yet has ended all the same. */
static bool is_alive(pid_t pid)
{
    char path[64], word[64] = "Z";
    FILE *stat;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    stat = fopen(path, "r");
    if (stat) {
        if (fscanf(stat, "%*d %*s %63s", word) != 1) {
            word[0] = 'Z';
        }
        (void)fclose(stat);
    }
    return word[0] != 'Z';
}

TEST(a_program_inherits_as_little_of_us_as_can_be)
{
    struct trial t;
    int leaked[2];

    assert_int_equal(pipe(leaked), 0); /* without O_CLOEXEC, as a library may have opened it */
    trial_init(&t);
    trial_shell(&t, "ls /proc/self/fd | wc -l; grep NoNewPrivs /proc/self/status; ulimit -c; ulimit -n; trap | wc -l");
    assert_true(t.run.started);
    assert_int_equal(t.run.exit_code, 0);
    /* These are 0, 1, 2 and the folder that ls reads. */
    assert_string_equal(arena_text(&t.arena, t.run.stdout_text), "4\nNoNewPrivs:\t1\n0\n1024\n0\n");
    (void)close(leaked[0]);
    (void)close(leaked[1]);
    trial_fini(&t);
}

/* A process that has left the process group is not found when the time is over. This bound limits its use of the
 * processor. */
TEST(a_program_has_no_more_processor_time_than_its_time_limit_allows)
{
    const long most =
        sysconf(_SC_NPROCESSORS_CONF) * 4; /* all processors are busy for 1.5 s, and for 2 s until SIGKILL */
    char expected[64];
    struct trial t;

    trial_init(&t);
    t.run.timeout_ms = 1500;
    (void)snprintf(expected, sizeof(expected), "%ld %ld\n", most, most);
    trial_shell(&t, "exec setsid --wait sh -c 'echo $(ulimit -St) $(ulimit -Ht)'");
    assert_int_equal(t.run.exit_code, 0);
    assert_string_equal(arena_text(&t.arena, t.run.stdout_text), expected);
    trial_fini(&t);
}

TEST(a_program_runs_as_the_user_that_is_set)
{
    struct programs programs = {.allowed = true, .as_user = true, .uid = 65534, .gid = 65534};
    struct trial t;

    if (geteuid() != 0) {
        skip();
    }
    trial_init(&t);
    t.run.programs = &programs;
    t.run.cwd = "/";
    trial_shell(&t, "id -u; id -g; id -G");
    assert_string_equal(arena_text(&t.arena, t.run.stdout_text), "65534\n65534\n65534\n");
    trial_fini(&t);
}

/* A copy of the program where every user may run it. */
static void place_hostile(const char *folder)
{
    char script[1024];
    struct trial t;

    assert_non_null(getenv("HOSTILE_PROGRAM"));
    (void)snprintf(script, sizeof(script), "cp '%s' %s/hostile && chmod 755 %s %s/hostile", getenv("HOSTILE_PROGRAM"),
                   folder, folder, folder);
    trial_init(&t);
    trial_shell(&t, script);
    assert_int_equal(t.run.exit_code, 0);
    trial_fini(&t);
}

static const char *what_hostile_reaches(struct trial *t, struct programs *programs)
{
    char engine[32], folder[] = "/tmp/sagad-hostile-XXXXXX", path[64];
    const char *const argv[] = {path, engine, NULL};

    assert_non_null(mkdtemp(folder));
    place_hostile(folder);
    (void)snprintf(path, sizeof(path), "%s/hostile", folder);
    (void)snprintf(engine, sizeof(engine), "%d", (int)getpid());
    trial_init(t);
    t->run.programs = programs;
    t->run.cwd = "/";
    trial_run(t, argv);
    assert_true(t->run.started);
    assert_int_equal(t->run.exit_code, 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    return arena_text(&t->arena, t->run.stdout_text);
}

/* The table of what it reached is empty. */
TEST(a_hostile_program_reaches_nothing)
{
    struct programs programs = {.allowed = true, .as_user = geteuid() == 0, .uid = 65534, .gid = 65534};
    struct trial t;

    assert_int_equal(prctl(PR_SET_DUMPABLE, 0), 0); /* as sagad does at its start */
    assert_string_equal(what_hostile_reaches(&t, &programs), "");
    trial_fini(&t);
    assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
}

/* The rights that root has by files and bounds stay; the calls are refused to root as well. */
TEST(a_hostile_program_with_the_rights_of_root_reaches_files_and_bounds_only)
{
    static const char *const known[] = {"its environment\n", "its memory as a file\n", "its map\n", "a core file\n",
                                        "more descriptors\n"};
    struct programs programs = {.allowed = true};
    struct trial t;
    const char *reached;

    if (geteuid() != 0) {
        skip();
    }
    reached = what_hostile_reaches(&t, &programs);
    for (const char *line = reached; *line; line = strchr(line, '\n') + 1) {
        bool is_known = false;

        for (size_t i = 0; i < COUNT_OF(known); i++) {
            is_known = is_known || strncmp(line, known[i], strlen(known[i])) == 0;
        }
        if (!is_known) {
            fail_msg("a hostile program of root reached %s", line);
        }
    }
    trial_fini(&t);
}

/* The shell is killed with its parent, so what it would write after a while never comes. */
TEST(a_program_ends_with_us)
{
    char path[] = "/tmp/sagad-process-XXXXXX", script[160];
    int fd = mkstemp(path), tries = 0;
    pid_t pid, shell = 0;

    assert_true(fd >= 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) { /* acts as sagad: it starts a program and is killed */
        const char *const argv[] = {"sh", "-c", script, NULL};
        static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
        struct trial t;

        trial_init(&t);
        (void)snprintf(script, sizeof(script), "echo $$ > %s; kill -9 %d; read never", path, (int)getpid());
        t.run.argv = (char *const *)argv;
        t.run.env = (char *const *)env;
        t.run.arena = &t.arena;
        t.run.done = on_done;
        process_start(t.loop, &t.run);
        loop_run(t.loop);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(read(fd, script, sizeof(script) - 1) > 0);
    shell = (pid_t)strtol(script, NULL, 10);
    assert_true(shell > 1);
    while (is_alive(shell) && tries++ < 500) {
        usleep(10000);
    }
    assert_true(tries < 500);
    (void)close(fd);
    assert_int_equal(unlink(path), 0);
}

TEST(input_output_and_exit_code_come_through)
{
    struct trial t;

    trial_init(&t);
    t.run.input = SLICE("{\"a\":1}");
    trial_shell(&t, "cat; echo $COLOUR >&2; exit 7");
    assert_true(t.run.started);
    assert_int_equal(t.run.exit_code, 7);
    assert_int_equal(t.run.signal_number, 0);
    assert_true(slice_is(t.run.stdout_text, "{\"a\":1}"));
    assert_true(slice_is(t.run.stderr_text, "blue\n"));
    trial_fini(&t);
}

TEST(a_program_that_is_not_there_was_not_started)
{
    static const char *const argv[] = {"/nonexistent/program", NULL};
    struct trial t;

    trial_init(&t);
    trial_run(&t, argv);
    assert_false(t.run.started);
    assert_non_null(t.run.error);
    trial_fini(&t);
}

TEST(a_directory_that_is_not_there_means_not_started)
{
    struct trial t;

    trial_init(&t);
    t.run.cwd = "/nonexistent";
    trial_shell(&t, "true");
    assert_false(t.run.started);
    trial_fini(&t);
}

TEST(a_signal_is_told_as_a_signal)
{
    struct trial t;

    trial_init(&t);
    trial_shell(&t, "kill -9 $$");
    assert_int_equal(t.run.exit_code, -1);
    assert_int_equal(t.run.signal_number, SIGKILL);
    trial_fini(&t);
}

TEST(a_timeout_ends_the_whole_group)
{
    struct trial t;
    int64_t grandchild;

    trial_init(&t);
    t.run.timeout_ms = 3000; /* long enough for the shell to tell its child */
    trial_shell(&t, "sleep 60 & echo $!; wait");
    assert_true(t.run.timed_out);
    assert_true(t.took_ms < 30000);
    assert_true(slice_to_i64(slice_trim(t.run.stdout_text), &grandchild));
    /* The process was killed. It is reaped later, so a zombie may still answer. */
    for (int i = 0; i < 1000 && kill((pid_t)grandchild, 0) == 0; i++) {
        char path[64], status[256] = "";
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/stat", (int)grandchild);
        file = fopen(path, "r");
        if (!file || !fgets(status, sizeof(status), file) || strstr(status, ") Z ")) {
            if (file) {
                fclose(file);
            }
            break;
        }
        fclose(file);
        assert_true(i < 999);
        (void)usleep(10000);
    }
    trial_fini(&t);
}

TEST(a_program_that_ignores_sigterm_is_killed)
{
    struct trial t;

    trial_init(&t);
    t.run.timeout_ms = 2000; /* long enough for the shell to set its trap */
    trial_shell(&t, "trap '' TERM; while :; do sleep 1; done");
    assert_true(t.run.timed_out);
    assert_int_equal(t.run.signal_number, SIGKILL);
    assert_true(t.took_ms >= 4000 && t.took_ms < 30000);
    trial_fini(&t);
}

TEST(a_grandchild_that_holds_the_pipe_does_not_hold_us)
{
    struct trial t;

    trial_init(&t);
    trial_shell(&t, "echo early; setsid sleep 60 & exit 0");
    assert_int_equal(t.run.exit_code, 0);
    assert_true(slice_is(t.run.stdout_text, "early\n"));
    assert_true(t.took_ms < 30000);
    trial_fini(&t);
}

TEST(too_much_output_ends_the_group)
{
    static const char *const argv[] = {"yes", NULL};
    struct trial t;

    trial_init(&t);
    trial_run(&t, argv);
    assert_true(t.run.too_large);
    assert_true(t.run.stdout_text.len <= t.run.output_bytes_max);
    assert_true(t.took_ms < 30000);
    trial_fini(&t);
}

TEST(a_program_that_does_not_read_its_input_is_no_problem)
{
    struct trial t;
    char *large = memory_alloc(1000000);

    memset(large, 'x', 1000000);
    trial_init(&t);
    t.run.input = (struct slice){large, 1000000};
    trial_shell(&t, "exec <&-; echo done");
    assert_int_equal(t.run.exit_code, 0);
    assert_true(slice_is(t.run.stdout_text, "done\n"));
    trial_fini(&t);
    free(large);
}

static void on_cancel_time(struct timer *timer)
{
    struct trial *t = container_of(timer, struct trial, timer);

    process_cancel(&t->run);
    process_cancel(&t->run);
}

TEST(a_cancelled_program_ends_soon)
{
    struct trial t;

    trial_init(&t);
    timer_start(t.loop, &t.timer, 100, on_cancel_time);
    trial_shell(&t, "sleep 60");
    assert_true(t.run.cancelled);
    assert_false(t.run.timed_out);
    assert_true(t.took_ms < 30000);
    process_cancel(&t.run); /* too late, and harmless */
    trial_fini(&t);
}

TEST_PROGRAM(NULL, NULL)
