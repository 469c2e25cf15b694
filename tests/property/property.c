/*
 * Property tests of the pure core. Definitions with every construct, or the calls of an agent, are drawn at random, and
 * so is the order of events. After each event the invariants of the design are checked against books that are kept
 * outside of the machine.
 *
 *     property [--seed N] [--runs N]    runs N, N + 1 and so on; ten runs share a definition or an agent, and the
 *                                       seed `new` draws another one each time
 *     property --tell SEED              tells one run event by event
 *     property --keep 1 ...             prints a line for each failure, and goes on
 *     property --jobs N ...             shares the runs among N processes
 *     property --prove N [--seed N]     gives N definitions to core/prove/prove.h, which must end and find nothing
 *
 * A failure is shrunk and printed: the seed, the definition, the events and the broken invariant.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/prove/prove.h"
#include "tests/lib/test_seed.h"
#include "tests/property/run.h"

#define RUNS_DEFAULT 20000
#define RUNS_EVERYWHERE 10000 /* after this many runs every event must have come up */
#define RUNS_OF_A_SKETCH 10
#define DRAWS_MAX 1000
#define SKETCHES_TO_OPEN_ONE 6 /* one sketch of this many has an agent instead of a definition */
#define SEEN_MIN 3             /* how many times each possible event must come up */
#define PROGRESS_RUNS 4096

static struct tally tally;
static struct run run;
static struct arena definitions; /* holds the current sketch */

static const struct definition *mend(const struct tool_shelf *self, struct slice namespace,
                                     const struct definition *definition, struct slice tool, uint32_t version,
                                     struct err *err)
{
    const struct mend_shelf *shelf = (const struct mend_shelf *)self;
    struct definition *mended = sketch_mend(shelf->sketch, definition, tool, version, shelf->arena);

    (void)namespace;
    if (mended) {
        mended->shelf = self;
    } else {
        (void)err_set(err, ERR_CONFLICT, "it does not compile");
    }
    return mended;
}

static const struct definition *compile(struct run *of, const struct sketch *sketch, struct slice *why)
{
    struct definition *definition;

    if (sketch->kind != SAGA_DEFINED) {
        return agent_definition(of, sketch->kind, &definitions);
    }
    definition = sketch_compile(sketch, &definitions, why);
    of->mend_shelf = (struct mend_shelf){.shelf = {.mend = mend}, .sketch = sketch, .arena = &of->kept};
    if (definition) {
        definition->shelf = &of->mend_shelf.shelf;
    }
    return definition;
}

/* Runs a script. The definition is compiled again when the sketch has changed. */
static bool fails(struct run *of, struct script *script)
{
    struct slice why;

    arena_reset(&definitions);
    arena_reset(&of->kept);
    of->definition = compile(of, &script->sketch, &why);
    return of->definition && !run_play(of, script);
}

static void draw(struct script *script, uint64_t number)
{
    struct chance chance = chance_of(number, 33, 0);
    struct slice why = SLICE_NONE;

    for (uint32_t i = 0; i < DRAWS_MAX; i++) {
        if (number % SKETCHES_TO_OPEN_ONE == 0) {
            sketch_draw_open(&script->sketch, &chance);
        } else {
            sketch_draw(&script->sketch, &chance);
        }
        arena_reset(&definitions);
        run.definition = compile(&run, &script->sketch, &why);
        if (run.definition) {
            return;
        }
        tally.redrawn++;
        if (getenv("PROPERTY_REFUSED")) {
            (void)printf("%.*s\n", SLICE_ARG(why));
        }
    }
    (void)fprintf(stderr, "no sketch compiles: %.*s\n", SLICE_ARG(why));
    exit(2);
}

/* --- telling --- */

static void print_sketch(const struct sketch *sketch)
{
    struct buffer text;

    if (sketch->kind != SAGA_DEFINED) {
        (void)printf("%s; budget %s, loop %s, on_timeout %s\n", sketch->kind == SAGA_OPEN ? "an open saga" : "a run",
                     sketch->budget ? sketch->budget : "none", sketch->loop ? sketch->loop : "as always",
                     sketch->on_timeout ? sketch->on_timeout : "abort");
        return;
    }
    buffer_init(&text, 65536);
    sketch_write(sketch, &text);
    (void)printf("%s\n", buffer_c(&text));
    buffer_fini(&text);
}

static void tell(struct script *script)
{
    print_sketch(&script->sketch);
    run.is_told = true;
    (void)fails(&run, script);
    run.is_told = false;
    if (run.violation.ptr) {
        (void)printf("DOES NOT HOLD: %.*s\n", SLICE_ARG(run.violation));
    } else {
        (void)printf("all holds; %u turns, %s\n", (unsigned)run.turns, saga_status_name(run.judge.end));
    }
}

static void report_failure(struct script *script)
{
    int errors = dup(STDERR_FILENO), nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);

    (void)printf("\nseed %" PRIu64 ": %.*s\n", script->seed, SLICE_ARG(run.violation));
    (void)fflush(stdout);
    (void)dup2(nothing, STDERR_FILENO); /* a broken CHECK would print its message each time */
    shrink(&run, script, fails);
    (void)dup2(errors, STDERR_FILENO);
    (void)close(errors);
    (void)close(nothing);
    (void)printf("shrunk to %u events:\n", (unsigned)script->event_count);
    tell(script);
    (void)printf("again: --tell %" PRIu64 "\n", script->seed);
}

static void show_progress(uint64_t done, uint64_t runs, const struct timespec *began)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    (void)fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " runs, %" PRIu64 " turns, %lld s ", done, runs, tally.turns,
                  (long long)(now.tv_sec - began->tv_sec));
}

/* --- did the runs come everywhere? --- */

static const enum record_type not_of_ours[] = {RECORD_OPERATION_PRICED};
static const enum err_code answers_of_ours[] = {ERR_OK,     ERR_DUPLICATE,   ERR_AWAITING, ERR_LOOP,
                                                ERR_SEALED, ERR_UNSETTLED,   ERR_BUDGET,   ERR_PAUSED,
                                                ERR_DRIFT,  ERR_OTHER_INPUT, ERR_CLOSED,   ERR_OUTCOME_UNKNOWN};

static bool came_everywhere(void)
{
    bool everywhere = true;

    for (unsigned i = 0; i < RECORD_TYPE_COUNT && getenv("PROPERTY_SHOW"); i++) {
        (void)printf("%9" PRIu64 " %s\n", tally.records[i], record_type_name((enum record_type)i));
    }
    for (unsigned i = 0; i < RECORD_TYPE_COUNT; i++) {
        bool ours = true;

        for (size_t k = 0; k < COUNT_OF(not_of_ours); k++) {
            ours = ours && not_of_ours[k] != i;
        }
        if (ours && tally.records[i] < SEEN_MIN) {
            (void)printf("only %" PRIu64 " records %s\n", tally.records[i], record_type_name((enum record_type)i));
            everywhere = false;
        }
    }
    for (size_t i = 0; i < COUNT_OF(answers_of_ours); i++) {
        if (tally.answers[answers_of_ours[i]] < SEEN_MIN) {
            (void)printf("only %" PRIu64 " answers %s\n", tally.answers[answers_of_ours[i]],
                         err_name(answers_of_ours[i]));
            everywhere = false;
        }
    }
    for (unsigned i = 0; i < OPERATOR_ACTION_COUNT; i++) {
        if (tally.actions[i] < SEEN_MIN) {
            (void)printf("only %" PRIu64 " times %s\n", tally.actions[i],
                         operator_action_name((enum operator_action)i));
            everywhere = false;
        }
    }
    return everywhere && tally.scoped_undos > 10 && tally.element_undos > 10 && tally.child_undos > 10 &&
           tally.kept_signals_taken > 10 && tally.undos_at_once > 10;
}

static void print_tally(const struct timespec *began)
{
    struct timespec now;
    double s;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    s = (double)(now.tv_sec - began->tv_sec) + (double)(now.tv_nsec - began->tv_nsec) / 1e9;
    (void)printf("%" PRIu64 " runs, %" PRIu64 " turns, %" PRIu64 " definitions refused, %.1f s: %" PRIu64
                 " completed, %" PRIu64 " compensated, %" PRIu64 " abandoned; undone: %" PRIu64 " of elements, %" PRIu64
                 " of children, %" PRIu64 " in children alone, %" PRIu64 " kept signals\n",
                 tally.runs, tally.turns, tally.redrawn, s, tally.ends[SAGA_COMPLETED], tally.ends[SAGA_COMPENSATED],
                 tally.ends[SAGA_ABANDONED], tally.element_undos, tally.child_undos, tally.scoped_undos,
                 tally.kept_signals_taken);
}

static uint64_t number_of(int argc, char **argv, const char *option, uint64_t otherwise)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], option) == 0) {
            uint64_t number;

            if (!test_seed_read(argv[i + 1], &number)) {
                (void)fprintf(stderr, "property: %s takes a number, not %s\n", option, argv[i + 1]);
                exit(2);
            }
            return number;
        }
    }
    return otherwise;
}

struct task {
    uint64_t first, runs, told;
    bool keeps, shows;
};

static int play_all(const struct task *task)
{
    static struct script script;
    uint64_t sketch = UINT64_MAX;
    struct timespec began;
    int failed = 0;

    (void)clock_gettime(CLOCK_MONOTONIC, &began);
    arena_init(&definitions, (size_t)256 << 10);
    run_init(&run, &tally);
    for (uint64_t seed = task->first; seed < task->first + task->runs && (task->keeps || !failed); seed++) {
        if (seed / RUNS_OF_A_SKETCH != sketch) {
            sketch = seed / RUNS_OF_A_SKETCH;
            draw(&script, sketch);
        }
        script.seed = seed;
        script.event_count = script.calm_count = 0;
        script.is_fixed = false;
        arena_reset(&run.kept);
        if (task->told) {
            tell(&script);
        } else if (!run_play(&run, &script)) {
            failed = 1;
            if (task->keeps) {
                (void)printf("seed %" PRIu64 ": %.*s\n", seed, SLICE_ARG(run.violation));
                (void)fflush(stdout);
            } else {
                report_failure(&script);
            }
        }
        if (task->shows && seed % PROGRESS_RUNS == 0) {
            show_progress(seed - task->first, task->runs, &began);
        }
    }
    if (!task->told) {
        (void)fprintf(stderr, "%s", task->shows ? "\r" : "");
        print_tally(&began);
        if (!failed && task->runs >= RUNS_EVERYWHERE && !came_everywhere()) {
            failed = 1;
        }
    }
    run_fini(&run);
    arena_fini(&definitions);
    return failed;
}

/* Runs the proof over the same definitions. */
static int prove_all(uint64_t first, uint64_t count)
{
    const struct prove_options options = {.states_max = 50};
    uint64_t plays = 0;
    int failed = 0;

    arena_init(&definitions, (size_t)256 << 10);
    for (uint64_t number = first; number < first + count; number++) {
        static struct script script;
        struct prove_report report;

        if (number % SKETCHES_TO_OPEN_ONE == 0) {
            continue; /* an agent has no definition to prove */
        }
        draw(&script, number);
        prove_saga(run.definition, &options, &definitions, &report);
        plays += report.plays;
        for (uint32_t i = 0; i < report.end_count && report.violation_count > 0; i++) {
            if (report.ends[i].violation.ptr) {
                (void)printf("definition %" PRIu64 ": %.*s\n", number, SLICE_ARG(report.ends[i].violation));
                print_sketch(&script.sketch);
                failed = 1;
                break;
            }
        }
    }
    (void)printf("%" PRIu64 " definitions, %" PRIu64 " plays\n", count, plays);
    arena_fini(&definitions);
    return failed;
}

/* Shares the seeds among processes. */
static int share(const struct task *task, uint64_t jobs)
{
    int failed = 0, status;

    for (uint64_t i = 0; i < jobs; i++) {
        struct task part = *task;
        pid_t child = fork();

        if (child == 0) {
            part.first += i * (task->runs / jobs);
            part.runs = i + 1 < jobs ? task->runs / jobs : task->runs - i * (task->runs / jobs);
            part.shows = task->shows && i == 0;
            exit(play_all(&part));
        }
        failed = child < 0 ? 1 : failed;
    }
    while (wait(&status) > 0) {
        failed = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? failed : 1;
    }
    return failed;
}

int main(int argc, char **argv)
{
    uint64_t jobs = number_of(argc, argv, "--jobs", 1), proven = number_of(argc, argv, "--prove", 0);
    struct task task = {.first = number_of(argc, argv, "--seed", 1),
                        .runs = number_of(argc, argv, "--runs", RUNS_DEFAULT),
                        .told = number_of(argc, argv, "--tell", 0),
                        .keeps = number_of(argc, argv, "--keep", 0) != 0,
                        .shows = isatty(STDERR_FILENO) != 0};

    (void)printf("seed %" PRIu64 "\n", task.first);
    if (proven) {
        return prove_all(task.first, proven);
    }
    if (task.told) {
        task.first = task.told;
        task.runs = 1;
    }
    return jobs > 1 ? share(&task, jobs) : play_all(&task);
}
