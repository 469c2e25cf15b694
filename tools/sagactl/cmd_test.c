/* The command test: plays scenarios on the engine's own state machine. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "io/process/jq.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/documents.h"
#include "tools/sagactl/output.h"
#include "tools/sagactl/scenario/report.h"

#define PROGRESS_EACH 1000

const char help_test[] =
    "sagactl test FILE... [--only TEXT] [--coverage] [--junit FILE]\n"
    "\n"
    "Plays scenarios offline, on the engine's own state machine: what each tool answers, which signals,\n"
    "decisions and verdicts come, how much time passes, where the engine is killed; and what is\n"
    "expected: the end, the calls in order with arguments and keys, what was undone, the output. No\n"
    "tool is called, and the clock jumps to whatever comes next. The page schema/scenarios.md has the\n"
    "format.\n"
    "\n"
    "A FILE with the member \"scenarios\" has scenarios, and may name its files of definitions by\n"
    "\"definitions\", as seen from where it lies. Any other FILE has definitions. JSON, or YAML.\n"
    "\n"
    "Prints TAP. Exits 0 when all went as expected, 1 when some did not or a file has faults.\n"
    "\n"
    "  --only TEXT         scenarios with this text in their name or their saga's name\n"
    "  --coverage          name the failure points of `sagactl prove` that no scenario goes through\n"
    "  --junit FILE        write JUnit's XML there, too\n"
    "  -o json             {\"items\": [{\"saga\", \"name\", \"ok\", \"differences\"}], \"coverage\": [...]}\n"
    "\n"
    "  sagactl test order.scenarios.json\n"
    "  sagactl test tools.json order.json order.scenarios.json --coverage\n";

struct test_run {
    struct ctl *ctl;
    struct input_text *texts; /* the texts of the files of scenarios */
    struct scenarios *scenarios;
    size_t file_count;
    struct arguments definition_files;
    struct documents documents;
    struct played *played;
    struct report report;
    struct coverage *coverage;
    struct arena coverage_arena;
    const char *only;
};

static int64_t now_us(void)
{
    struct timespec now;

    return clock_gettime(CLOCK_MONOTONIC, &now) == 0 ? (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 : 0;
}

/* --- the files --- */

static void add_definitions(struct test_run *run, const char *path)
{
    for (size_t i = 0; i < run->definition_files.count; i++) {
        if (strcmp(run->definition_files.items[i], path) == 0) {
            return;
        }
    }
    const char **items = arena_array(&run->ctl->arena, run->definition_files.count + 1, sizeof(*items));

    for (size_t i = 0; i < run->definition_files.count; i++) {
        items[i] = run->definition_files.items[i];
    }
    items[run->definition_files.count++] = path;
    run->definition_files.items = items;
}

/* A path as seen from the file that names it. */
static const char *path_beside(struct ctl *ctl, const char *file, struct slice path)
{
    const char *end = strrchr(file, '/');

    if (!end || path.len == 0 || path.ptr[0] == '/') {
        return arena_text(&ctl->arena, path);
    }
    return arena_printf(&ctl->arena, "%.*s/%.*s", (int)(end - file), file, SLICE_ARG(path)).ptr;
}

/* Reads the scenarios of a file. Returns false after it printed the faults. */
static bool take_scenarios(struct test_run *run, const struct input_text *text)
{
    struct scenarios *scenarios = &run->scenarios[run->file_count];
    struct faults faults;

    run->texts[run->file_count++] = *text;
    faults_init(&faults, &run->ctl->arena);
    scenarios_read(text->json, &run->ctl->arena, &faults, scenarios);
    for (size_t i = 0; i < faults.count; i++) {
        input_print_fault(text, faults.items[i].pointer, faults.items[i].detail);
    }
    for (size_t i = 0; i < scenarios->definition_count; i++) {
        add_definitions(run, path_beside(run->ctl, text->path, scenarios->definitions[i]));
    }
    return faults.count == 0;
}

static int load(struct test_run *run, const struct arguments *files)
{
    bool good = true;

    run->texts = arena_array(&run->ctl->arena, files->count, sizeof(*run->texts));
    run->scenarios = arena_array(&run->ctl->arena, files->count, sizeof(*run->scenarios));
    for (size_t i = 0; i < files->count; i++) {
        struct input_text text;
        struct err err = {0};

        if (!input_read_whole(run->ctl, files->items[i], &text)) {
            return EXIT_FAILED;
        }
        if (json_check(text.json, &json_limits_default, &err) != ERR_OK) {
            (void)fprintf(stderr, "sagactl: %s: %s: %s\n", files->items[i], err.message, err.detail);
            good = false;
        } else if (scenarios_are_in(text.json)) {
            good = take_scenarios(run, &text) && good;
        } else {
            add_definitions(run, files->items[i]);
        }
    }
    if (!good) {
        return EXIT_FAILED;
    }
    if (run->file_count == 0) {
        return usage_error(run->ctl,
                           "no file has scenarios: write them beside the definitions, see schema/scenarios.md");
    }
    if (run->definition_files.count == 0) {
        return usage_error(run->ctl, "which definitions? give their files, or name them by \"definitions\"");
    }
    return documents_load(run->ctl, &run->definition_files, NULL, &run->documents);
}

static const struct definition *find_saga(const struct test_run *run, struct slice name)
{
    for (size_t i = 0; i < run->documents.count; i++) {
        if (slice_equal(run->documents.sagas[i]->name, name)) {
            return run->documents.sagas[i];
        }
    }
    return NULL;
}

/* --- the plays --- */

static struct coverage *coverage_of(struct test_run *run, const struct definition *definition)
{
    for (size_t i = 0; i < run->report.coverage_count; i++) {
        if (run->coverage[i].definition == definition) {
            return &run->coverage[i];
        }
    }
    struct coverage *coverage = &run->coverage[run->report.coverage_count++];

    progress_show(run->ctl, "%.*s: looking for its failure points", SLICE_ARG(definition->name));
    coverage_open(coverage, definition, &run->coverage_arena);
    progress_clear(run->ctl);
    return coverage;
}

/* Copies what differs, which lies in the arena of the stage. */
static void keep_differences(struct ctl *ctl, const struct differences *found, struct played *played)
{
    struct difference *items = arena_array(&ctl->arena, found->count + 1, sizeof(*items));

    for (size_t i = 0; i < found->count; i++) {
        items[i] = (struct difference){.pointer = arena_slice(&ctl->arena, found->items[i].pointer),
                                       .expected = arena_slice(&ctl->arena, found->items[i].expected),
                                       .found = arena_slice(&ctl->arena, found->items[i].found)};
    }
    played->differences = items;
    played->difference_count = found->count;
}

static void play(struct test_run *run, const struct scenario *scenario, const struct definition *definition,
                 struct played *played)
{
    struct differences differences;
    struct stage stage;
    int64_t began_us = now_us();

    stage_play(scenario, definition, &stage);
    expect_compare(&stage, &differences);
    played->took_us = now_us() - began_us;
    keep_differences(run->ctl, &differences, played);
    coverage_take(coverage_of(run, definition), &stage);
    stage_fini(&stage);
}

static bool text_has(struct slice text, const char *part)
{
    size_t len = strlen(part);

    for (size_t i = 0; i + len <= text.len; i++) {
        if (memcmp(text.ptr + i, part, len) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_chosen(const struct test_run *run, const struct scenario *scenario)
{
    return !run->only || text_has(scenario->name, run->only) || text_has(scenario->saga, run->only);
}

/* Plays a scenario. Returns false, with a sentence, when nobody has its saga. */
static bool play_one(struct test_run *run, const struct input_text *file, const struct scenario *scenario)
{
    const struct definition *definition = find_saga(run, scenario->saga);
    struct played *played = &run->played[run->report.count];

    if (!definition) {
        input_print_fault(file, scenario->pointer,
                          arena_printf(&run->ctl->arena, "no file has the saga \"%.*s\"", SLICE_ARG(scenario->saga)));
        return false;
    }
    *played = (struct played){.file = file, .scenario = scenario};
    play(run, scenario, definition, played);
    run->report.count++;
    run->report.failed += played->difference_count > 0;
    run->report.took_us += played->took_us;
    if (run->report.count % PROGRESS_EACH == 0) {
        progress_show(run->ctl, "%zu scenarios, %zu failed", run->report.count, run->report.failed);
    }
    return true;
}

static bool play_all(struct test_run *run)
{
    size_t count = 0;
    bool good = true;

    for (size_t i = 0; i < run->file_count; i++) {
        count += run->scenarios[i].count;
    }
    run->played = arena_array(&run->ctl->arena, count + 1, sizeof(*run->played));
    run->coverage = arena_array(&run->ctl->arena, run->documents.count + 1, sizeof(*run->coverage));
    for (size_t i = 0; i < run->file_count; i++) {
        for (size_t k = 0; k < run->scenarios[i].count; k++) {
            const struct scenario *scenario = &run->scenarios[i].items[k];

            if (is_chosen(run, scenario)) {
                good = play_one(run, &run->texts[i], scenario) && good;
            }
        }
    }
    progress_clear(run->ctl);
    return good;
}

int cmd_test(struct ctl *ctl, int argc, char **argv)
{
    const char *only = NULL, *junit = NULL;
    bool names_uncovered = false, helped = false;
    const struct option options[] = {{"--only", &only, NULL, NULL},
                                     {"--junit", &junit, NULL, NULL},
                                     {"--coverage", NULL, NULL, &names_uncovered},
                                     {NULL, NULL, NULL, NULL}};
    struct test_run run = {.ctl = ctl};
    struct arguments files;
    bool good;

    if (!options_read(ctl, argc, argv, options, &files, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (files.count == 0) {
        return usage_error(ctl, "which files?");
    }
    jq_prepare(); /* called while there is one thread and little memory */
    run.only = only;
    int code = load(&run, &files);

    if (code != EXIT_OK) {
        return code;
    }
    arena_init(&run.coverage_arena, (size_t)1 << 20);
    good = play_all(&run);
    run.report.items = run.played;
    run.report.coverage = run.coverage;
    run.report.names_uncovered = names_uncovered;
    if (ctl->output == OUTPUT_DATA) {
        report_json(ctl, &run.report);
    } else {
        report_tap(ctl, &run.report);
    }
    good = (!junit || report_junit(ctl, &run.report, junit)) && good;
    arena_fini(&run.coverage_arena);
    if (good && run.report.count == 0) {
        (void)fprintf(stderr, "sagactl: no scenario has \"%s\" in its name\n", only ? only : "");
        return EXIT_NOT_FOUND;
    }
    return good && run.report.failed == 0 ? EXIT_OK : EXIT_FAILED;
}
