/*
 * The simulator: engines, PostgreSQL, tools, clients and people in one process under one seed. README.md and `sim
 * --help` say how to use it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test_seed.h"
#include "tests/sim/campaign.h"
#include "tests/sim/exhaustive.h"
#include "tests/sim/memory.h"

#define SCENARIO_BYTES_MAX (4u << 20)
#define FILES_MAX 256
#define ALL_SEEN_FROM 10000 /* from this many seeds on, rare events must have occurred */

static const char help[] =
    "sim: sagad's engines in a simulated world. The real core, store and run code, on a loop, a PostgreSQL, tools, "
    "clients and people that\n"
    "are simulated, in virtual time. Everything that happens follows from one seed.\n"
    "\n"
    "usage: sim --seed S [--trace] [--until EVENT]     one seed; with --trace all that happens, line by line\n"
    "       sim --from S --seeds N [--jobs J]          a campaign over the seeds S to S+N-1; S may be `new`: another "
    "one\n"
    "                                                  each time, or made from SAGAD_TEST_SEED\n"
    "       sim --scenario FILE... [--trace]           scenarios from files, as a failure or --print writes them\n"
    "       sim --exhaustive singles|pairs --scenario FILE... [--jobs J]\n"
    "                                                  each commit of each scenario with each thing that can become of "
    "it\n"
    "\n"
    "  --twice           make each run twice and compare them event by event (else one in a hundred)\n"
    "  --shrink RUNS     so many runs to make a failure smaller (default 400; 0: none)\n"
    "  --failures N      stop after so many (default 5)\n"
    "  --out FOLDER      for the scenarios that failed (default: here)\n"
    "  --print           write the scenario of the seed, and do not run it\n"
    "  --json            the figures as JSON\n"
    "\n"
    "A failure names the invariant (I1 to I21, see check.h), the sentence that does not hold, and the command that "
    "replays it. CHECK is an\n"
    "assertion of the engine, TWICE a run that is not reproducible, SIM a mistake of the simulation. The smallest "
    "scenario that fails alike\n"
    "is written to a file: look at it, replay it with --trace, and keep it in tests/sim/regressions when it is "
    "mended.\n"
    "Exit code: 0 all sound, 1 something failed, 2 wrong use.\n"
    "\n"
    "example: sim --from 1 --seeds 20000 --jobs 2\n";

struct arguments {
    uint64_t seed, from, seeds, until;
    bool has_seed, traced, prints;
    const char *exhaustive;
    const char *files[FILES_MAX];
    uint32_t file_count;
    struct campaign campaign;
};

/* --- arguments --- */

static bool read_number(const char *text, uint64_t *out)
{
    char *end;

    *out = text ? strtoull(text, &end, 10) : 0;
    return text && *text && *end == '\0';
}

static bool read_small(const char *text, uint32_t *out)
{
    uint64_t value;

    if (!read_number(text, &value) || value > 1000000) {
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

/* Reads an argument that has a value. Returns false when there is no such argument or value. */
static bool read_value(struct arguments *a, const char *name, const char *value)
{
    if (strcmp(name, "--seed") == 0) {
        a->has_seed = true;
        return read_number(value, &a->seed);
    }
    if (strcmp(name, "--from") == 0) {
        return test_seed_read(value, &a->from);
    }
    if (strcmp(name, "--seeds") == 0) {
        return read_number(value, &a->seeds);
    }
    if (strcmp(name, "--until") == 0) {
        return read_number(value, &a->until);
    }
    if (strcmp(name, "--jobs") == 0) {
        return read_small(value, &a->campaign.jobs);
    }
    if (strcmp(name, "--shrink") == 0) {
        return read_small(value, &a->campaign.shrink_runs);
    }
    if (strcmp(name, "--failures") == 0) {
        return read_small(value, &a->campaign.failures_max);
    }
    if (strcmp(name, "--out") == 0 && value) {
        a->campaign.folder = value;
        return true;
    }
    if (strcmp(name, "--exhaustive") == 0 && value) {
        a->exhaustive = value;
        return strcmp(value, "singles") == 0 || strcmp(value, "pairs") == 0;
    }
    return false;
}

static bool read_switch(struct arguments *a, const char *name)
{
    bool *out = strcmp(name, "--trace") == 0   ? &a->traced
                : strcmp(name, "--print") == 0 ? &a->prints
                : strcmp(name, "--twice") == 0 ? &a->campaign.twice
                : strcmp(name, "--json") == 0  ? &a->campaign.is_json
                                               : NULL;

    if (out) {
        *out = true;
    }
    return out != NULL;
}

static bool read_arguments(struct arguments *a, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--scenario") == 0) {
            while (i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0 && a->file_count < FILES_MAX) {
                a->files[a->file_count++] = argv[++i];
            }
        } else if (!read_switch(a, argv[i])) {
            if (!read_value(a, argv[i], i + 1 < argc ? argv[i + 1] : NULL)) {
                fprintf(stderr, "sim: %s is not understood, or its value is not\n", argv[i]);
                return false;
            }
            i++;
        }
    }
    return true;
}

/* --- scenarios --- */

static bool load(const char *path, struct scenario *out, struct arena *arena)
{
    FILE *file = fopen(path, "r");
    struct err err = {0};
    enum err_code code;
    size_t len;
    char *text;

    if (!file) {
        fprintf(stderr, "sim: %s cannot be opened\n", path);
        return false;
    }
    text = memory_alloc(SCENARIO_BYTES_MAX);
    len = fread(text, 1, SCENARIO_BYTES_MAX, file);
    (void)fclose(file);
    code = scenario_read(out, (struct slice){text, len}, arena, &err);
    free(text);
    if (code != ERR_OK) {
        fprintf(stderr, "sim: %s: %s. %s\n", path, err.message, err.hint);
    }
    return code == ERR_OK;
}

static void make_seed(const struct campaign *campaign, uint64_t i, struct scenario *out, char name[CAMPAIGN_NAME_BYTES],
                      struct arena *arena)
{
    uint64_t seed = *(const uint64_t *)campaign->context + i;

    scenario_draw(out, seed, arena);
    (void)snprintf(name, CAMPAIGN_NAME_BYTES, "seed %" PRIu64, seed);
}

static bool run_seeds(struct arguments *a)
{
    printf("seeds %" PRIu64 " to %" PRIu64 "\n", a->from, a->from + a->seeds - 1);
    a->campaign.what = "seeds";
    a->campaign.count = a->seeds;
    a->campaign.make = make_seed;
    a->campaign.context = &a->from;
    a->campaign.wants_all_seen = a->seeds >= ALL_SEEN_FROM;
    return campaign_run(&a->campaign);
}

static void print_scenario(const struct scenario *scenario)
{
    struct buffer text;

    buffer_init(&text, SCENARIO_BYTES_MAX);
    scenario_write(scenario, &text);
    (void)fwrite(text.ptr, 1, text.len, stdout);
    buffer_fini(&text);
}

static bool run_seed(const struct arguments *a, struct arena *arena)
{
    static struct scenario scenario;
    char name[64], replay[64];

    scenario_draw(&scenario, a->seed, arena);
    if (a->prints) {
        print_scenario(&scenario);
        return true;
    }
    (void)snprintf(name, sizeof(name), "seed %" PRIu64, a->seed);
    (void)snprintf(replay, sizeof(replay), "sim --seed %" PRIu64 " --trace", a->seed);
    return campaign_one(&a->campaign, &scenario, name, replay, a->traced);
}

static bool run_files(const struct arguments *a, struct arena *arena)
{
    static struct scenario scenario;
    bool sound = true;

    for (uint32_t i = 0; i < a->file_count; i++) {
        const char *base = strrchr(a->files[i], '/');

        if (!load(a->files[i], &scenario, arena)) {
            return false;
        }
        if (a->prints) {
            print_scenario(&scenario);
        } else {
            sound = campaign_one(&a->campaign, &scenario, base ? base + 1 : a->files[i], NULL, a->traced) && sound;
        }
    }
    return sound;
}

static bool run_exhaustive(const struct arguments *a, struct arena *arena)
{
    struct scenario *scenarios = arena_array(arena, a->file_count + 1, sizeof(*scenarios));

    for (uint32_t i = 0; i < a->file_count; i++) {
        if (!load(a->files[i], &scenarios[i], arena)) {
            return false;
        }
    }
    if (a->file_count == 0) {
        fprintf(stderr,
                "sim: --exhaustive needs scenarios: --exhaustive singles --scenario tests/sim/scenarios/*.txt\n");
        return false;
    }
    return exhaust(&a->campaign, scenarios, a->file_count, strcmp(a->exhaustive, "pairs") == 0);
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.from = 1,
                                  .campaign = {.jobs = 1, .shrink_runs = 400, .failures_max = 5, .folder = "."}};
    struct arena arena;
    bool sound;

    memory_setup();
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        fputs(help, argc < 2 ? stderr : stdout);
        return argc < 2 ? 2 : 0;
    }
    if (!read_arguments(&arguments, argc, argv)) {
        fputs(help, stderr);
        return 2;
    }
    arena_init(&arena, 65536);
    run_until = arguments.until;
    if (arguments.exhaustive) {
        sound = run_exhaustive(&arguments, &arena);
    } else if (arguments.file_count) {
        sound = run_files(&arguments, &arena);
    } else if (arguments.has_seed) {
        sound = run_seed(&arguments, &arena);
    } else if (arguments.seeds) {
        sound = run_seeds(&arguments);
    } else {
        fputs("sim: what is to be run? --seed, --seeds, --scenario or --exhaustive\n", stderr);
        return 2;
    }
    arena_fini(&arena);
    return sound ? 0 : 1;
}
