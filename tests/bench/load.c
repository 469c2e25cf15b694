/*
 * bench-load: drives sagas or calls through the public API and says how fast that went. load_driver.h tells how it is
 * measured, load_sagas.c and load_calls.c what.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "tests/bench/load.h"
#include "tools/sagactl/client.h"

static const char help[] =
    "bench-load --saga NAME [--input JSON|@FILE] [--sagas N | --seconds S] [--concurrency C] [--rate R]\n"
    "              [--warmup N] [--steps K] [--id-prefix TEXT] [--batch B] [--in-flight F] [--no-wait]\n"
    "bench-load --calls TOOL [--args JSON|@FILE] [--duplicates] [--mcp] [--rounds R]\n"
    "              [--only new|repeated|mcp] [--run-prefix TEXT] [--made N]\n"
    "              [--number N | --seconds S] [--per-run K] [--pause S] [--concurrency C] [--rate R] [--warmup N]\n"
    "\n"
    "Starts sagas over the public API, each with ?wait, and counts each until its end. Prints sagas\n"
    "and transitions a second and the percentiles of the time from start to end. A transition is a\n"
    "durable change of a saga: one for each step and one for its end (--steps, default: the steps of\n"
    "the definition).\n"
    "\n"
    "With --no-wait the acknowledgement counts and not the end. With --in-flight the ends are those that the\n"
    "service counts in /metrics: for one service that nobody else uses meanwhile. 503 with Retry-After is\n"
    "waited for and sent again; what that costs is in the figures.\n"
    "\n"
    "With --calls it calls a tool through the registry, outside sagas, each call a new operation; with\n"
    "--duplicates rounds of new calls and rounds of their repeats take turns, and the ratio is printed. With --mcp\n"
    "rounds of new calls through /mcp take turns with them.\n"
    "\n"
    "  --sagas N, --number N  how many, of calls in each round (default 10000); --seconds S: as many as\n"
    "                    fit\n"
    "  --concurrency C   connections, one saga or call in flight on each (default 64)\n"
    "  --rate R          open loop: R starts a second, whatever the service does\n"
    "  --warmup N        so many requests first, not counted (default: as many as connections)\n"
    "  --id-prefix TEXT  give each a business id, TEXT and a number\n"
    "  --batch B         B starts in each request, to /v1/sagas/batch (1000 at most); implies --no-wait\n"
    "  --in-flight F     as many unfinished sagas as F at most; implies --no-wait\n"
    "  --per-run K       so many calls in each run, each of a scope of its own (default 1)\n"
    "  --pause S         seconds between new calls and their repeats: runs rest after 15\n"
    "                    s, and a repeat then finds them asleep (default 0)\n"
    "  --only KIND       one round of this kind and no other: new, mcp, or repeated, of the --made N calls of\n"
    "                    an earlier run of this program with the same --run-prefix\n"
    "  --rounds R        rounds of each kind (default 3 with --duplicates or --mcp, else 1); medians\n"
    "                    are shown\n"
    "\n"
    "Exits 1 when a start or a call failed, a saga did not end or a repeat was no repeat.\n"
    "\n"
    "  bench-load --saga w1 --sagas 100000 --concurrency 256\n"
    "  bench-load --saga w1 --seconds 60 --batch 256 --in-flight 1024 --concurrency 4\n"
    "  bench-load --saga order --input @order.json --rate 500 --seconds 30 -o json\n"
    "  bench-load --calls bench.do --args '{\"n\": 1}' --duplicates --seconds 10\n";

struct load_words { /* as they were written */
    const char *saga, *input, *sagas, *steps, *id_prefix, *batch, *in_flight;
    const char *tool, *args, *number, *per_run, *pause, *rounds, *only, *run_prefix, *made;
    const char *seconds, *concurrency, *rate, *warmup;
    bool duplicates, mcp, no_wait;
};

static bool read_number(struct ctl *ctl, const char *name, const char *text, int64_t least, int64_t most, int64_t *out)
{
    if (text && (!slice_to_i64(slice_of(text), out) || *out < least || *out > most)) {
        if (most < INT64_MAX) {
            (void)usage_error(ctl, "%s is a whole number from %lld to %lld, not \"%s\"", name, (long long)least,
                              (long long)most, text);
        } else {
            (void)usage_error(ctl, "%s is a whole number from %lld on, not \"%s\"", name, (long long)least, text);
        }
        return false;
    }
    return true;
}

static int run_calls(struct ctl *ctl, const struct load_words *words)
{
    struct load_calls_options o = {.ctl = ctl,
                                   .tool = words->tool,
                                   .args = SLICE("{}"),
                                   .count = 10000,
                                   .concurrency = 64,
                                   .warmup = -1,
                                   .per_run = 1,
                                   .duplicates = words->duplicates,
                                   .mcp = words->mcp,
                                   .only = words->only,
                                   .run_prefix = words->run_prefix,
                                   .rounds = words->duplicates || words->mcp ? 3 : 1};

    if (words->sagas || words->steps || words->id_prefix || words->input || words->batch || words->in_flight ||
        words->no_wait) {
        return usage_error(ctl,
                           "--sagas, --steps, --id-prefix, --input, --batch, --in-flight and --no-wait are for --saga");
    }
    if (!read_number(ctl, "--number", words->number, 1, INT64_MAX, &o.count) ||
        !read_number(ctl, "--seconds", words->seconds, 1, INT64_MAX / 1000000, &o.seconds) ||
        !read_number(ctl, "--concurrency", words->concurrency, 1, 10000, &o.concurrency) ||
        !read_number(ctl, "--rate", words->rate, 1, INT64_MAX, &o.rate) ||
        !read_number(ctl, "--warmup", words->warmup, 0, INT64_MAX, &o.warmup) ||
        !read_number(ctl, "--per-run", words->per_run, 1, INT64_MAX, &o.per_run) ||
        !read_number(ctl, "--pause", words->pause, 0, 3600, &o.pause_s) ||
        !read_number(ctl, "--rounds", words->rounds, 1, LOAD_ROUNDS_MAX, &o.rounds) ||
        !read_number(ctl, "--made", words->made, 1, INT64_MAX, &o.made) ||
        (words->args && !read_json_argument(ctl, "--args", words->args, &o.args))) {
        return EXIT_USAGE;
    }
    if (words->only && (words->duplicates || words->mcp || words->rounds)) {
        return usage_error(ctl, "--only is one round of one kind: not with --duplicates, --mcp or --rounds");
    }
    if (words->only && strcmp(words->only, "repeated") == 0 && (o.made == 0 || !words->run_prefix)) {
        return usage_error(ctl, "--only repeated takes --run-prefix and --made, of the calls that it repeats");
    }
    if (words->run_prefix && strlen(words->run_prefix) > 48) {
        return usage_error(ctl, "--run-prefix is 48 bytes at most");
    }
    o.warmup = o.warmup < 0 ? o.concurrency : o.warmup;
    return load_calls(&o);
}

static int run_sagas(struct ctl *ctl, const struct load_words *words)
{
    struct load_sagas_options o = {.ctl = ctl,
                                   .saga = words->saga,
                                   .id_prefix = words->id_prefix,
                                   .input = SLICE("{}"),
                                   .sagas = 10000,
                                   .concurrency = 64,
                                   .warmup = -1,
                                   .steps = -1};

    if (words->args || words->number || words->per_run || words->pause || words->rounds || words->duplicates ||
        words->mcp || words->only || words->run_prefix || words->made) {
        return usage_error(ctl, "--args, --number, --per-run, --pause, --rounds, --duplicates, --mcp, --only, "
                                "--run-prefix and --made are for --calls");
    }
    if (!read_number(ctl, "--sagas", words->sagas, 1, INT64_MAX, &o.sagas) ||
        !read_number(ctl, "--seconds", words->seconds, 1, INT64_MAX / 1000000, &o.seconds) ||
        !read_number(ctl, "--concurrency", words->concurrency, 1, 10000, &o.concurrency) ||
        !read_number(ctl, "--rate", words->rate, 1, INT64_MAX, &o.rate) ||
        !read_number(ctl, "--warmup", words->warmup, 0, INT64_MAX, &o.warmup) ||
        !read_number(ctl, "--batch", words->batch, 1, 1000, &o.batch) ||
        !read_number(ctl, "--in-flight", words->in_flight, 1, 10000000, &o.in_flight) ||
        !read_number(ctl, "--steps", words->steps, 0, INT64_MAX, &o.steps) ||
        (words->input && !read_json_argument(ctl, "--input", words->input, &o.input))) {
        return EXIT_USAGE;
    }
    o.warmup = o.warmup < 0 ? o.concurrency : o.warmup;
    o.wait = !words->no_wait && o.batch == 0 && o.in_flight == 0;
    if (o.in_flight > 0 && o.in_flight < o.batch) {
        return usage_error(ctl, "--in-flight leaves no room for a batch");
    }
    return load_sagas(&o);
}

static int load(struct ctl *ctl, int argc, char **argv)
{
    struct load_words words = {0};
    const struct option options[] = {{"--saga", &words.saga, NULL, NULL},
                                     {"--input", &words.input, NULL, NULL},
                                     {"--sagas", &words.sagas, NULL, NULL},
                                     {"--steps", &words.steps, NULL, NULL},
                                     {"--id-prefix", &words.id_prefix, NULL, NULL},
                                     {"--batch", &words.batch, NULL, NULL},
                                     {"--in-flight", &words.in_flight, NULL, NULL},
                                     {"--no-wait", NULL, NULL, &words.no_wait},
                                     {"--calls", &words.tool, NULL, NULL},
                                     {"--args", &words.args, NULL, NULL},
                                     {"--number", &words.number, NULL, NULL},
                                     {"--per-run", &words.per_run, NULL, NULL},
                                     {"--pause", &words.pause, NULL, NULL},
                                     {"--rounds", &words.rounds, NULL, NULL},
                                     {"--duplicates", NULL, NULL, &words.duplicates},
                                     {"--mcp", NULL, NULL, &words.mcp},
                                     {"--only", &words.only, NULL, NULL},
                                     {"--run-prefix", &words.run_prefix, NULL, NULL},
                                     {"--made", &words.made, NULL, NULL},
                                     {"--seconds", &words.seconds, NULL, NULL},
                                     {"--concurrency", &words.concurrency, NULL, NULL},
                                     {"--rate", &words.rate, NULL, NULL},
                                     {"--warmup", &words.warmup, NULL, NULL},
                                     {NULL, NULL, NULL, NULL}};
    struct arguments none;
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &none, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (none.count != 0 || !words.saga == !words.tool) {
        return usage_error(ctl, "what? --saga NAME, or --calls TOOL");
    }
    if (words.seconds && (words.sagas || words.number)) {
        return usage_error(ctl, "a number (--sagas, --number) or --seconds, not both");
    }
    if (words.id_prefix && strlen(words.id_prefix) > 128) {
        return usage_error(ctl, "--id-prefix is 128 bytes at most");
    }
    if (strpbrk(words.saga ? words.saga : words.tool, "\"\\")) {
        return usage_error(ctl, "\"%s\" is no name", words.saga ? words.saga : words.tool);
    }
    return words.tool ? run_calls(ctl, &words) : run_sagas(ctl, &words);
}

int main(int argc, char **argv)
{
    static const struct command command = {.name = "", .help = help};
    struct ctl ctl = {.program = "bench-load", .command = &command};

    (void)signal(SIGPIPE, SIG_IGN); /* a reader of ours that leaves is seen by fflush() below */
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
    arena_init(&ctl.arena, 64 * 1024);
    int code = load(&ctl, argc - 1, argv + 1);

    client_close(&ctl);
    arena_fini(&ctl.arena);
    return fflush(stdout) != 0 && code == EXIT_OK ? EXIT_FAILED : code;
}
