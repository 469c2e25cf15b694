/* INVARIANT checks whole objects in every build for tests. A state that is bent on purpose must not survive the next
 * fold. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define SAID_BYTES_MAX 400

/* Settles the step of a saga in a child process. What the child writes to stderr goes to `said`. */
static int settle_in_a_child(struct trial *trial, bool bent, char *said)
{
    int ends[2], status;
    ssize_t length;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        if (bent) { /* a step that never began counts as undone */
            trial->saga.steps[1].plan = PLAN_DONE;
        }
        trial_play(trial, "a");
        _exit(0);
    }
    (void)close(ends[1]);
    length = read(ends[0], said, SAID_BYTES_MAX - 1);
    said[length > 0 ? length : 0] = '\0';
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static struct trial trial;

TEST(a_fold_that_leaves_an_unsound_saga_ends_the_process)
{
    char said[SAID_BYTES_MAX];
    int status;

#ifndef SAGAD_INVARIANTS
    print_message("this build does without INVARIANT: meson setup -Dinvariants=true\n");
    skip();
#endif
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'b','call':'keyed'}"), "{}");
    status = settle_in_a_child(&trial, false, said);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    status = settle_in_a_child(&trial, true, said);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "saga_is_sound"));
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
