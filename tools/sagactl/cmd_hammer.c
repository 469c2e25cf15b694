/* hammer: what a receiver does with repeats, and what a definition may therefore declare. */
#include <stdio.h>
#include <string.h>

#include "base/instant.h"
#include "base/json.h"
#include "io/postgres/pool.h"
#include "tools/sagactl/ask.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/documents.h"
#include "tools/sagactl/hammer/hammer.h"
#include "tools/sagactl/hammer/report.h"

#define RESPONSE_BYTES_MAX (1 << 20)
#define LATE_MAX_MS (INT64_C(31) * 24 * 3600 * 1000)
#define SETTLE_MAX_MS (INT64_C(60) * 1000)
#define CONNECTIONS 128
#define LINK_IDLE_MS 60000

const char help_hammer[] =
    "sagactl hammer FILE... --tool NAME [--against URL]... [--programs] --args JSON|@FILE|- [--count NAME] "
    "[--other-args JSON] "
    "[--late 65s] [--settle 0s] [--rounds 5] [--at-once 8] [--secrets FILE] [--namespace NAME] [--believe-window] "
    "[--yes]\n"
    "\n"
    "Says what a receiver does with repeats, and so which `effect` and `key.window` a tool of a\n"
    "definition file may declare. The tool is called as sagad calls it, many times: the same call one\n"
    "after the other, many at once, after a lost connection, late, under another key, with other\n"
    "arguments under the same key, undone before it came, and undone twice. After each of these the\n"
    "effects are counted. The effects are real: name a test system. No sagad is asked.\n"
    "\n"
    "  --tool NAME         the tool\n"
    "  --against URL       the receiver, of the tool, of its probe, its undo and the counter. http:// or https:// "
    "replaces scheme, host and port of URLs of `http` and `mcp`; postgresql:// replaces the `database` of `sql`. "
    "May be given twice\n"
    "  --programs          programs of `exec`, and of `mcp` with `argv`, run here as the files name them. What they "
    "reach is theirs: give them a test system by --secrets\n"
    "  --args JSON         the arguments; {unique} in a text becomes another one for each operation\n"
    "  --other-args JSON   for the trial with other arguments under the same key; without it --args again, with "
    "another "
    "{unique}\n"
    "  --count NAME        a tool of the files that counts effects: of class read, called with the same arguments and "
    "key, its `result` a number\n"
    "  --late 65s          repeats are sent after an eighth, a quarter, half and all of this; 0s sends none\n"
    "  --believe-window    a `key.window` that is longer than --late is no fault\n"
    "  --settle 0s         how long an effect needs until the counter shows it\n"
    "  --rounds 5          operations in each trial\n"
    "  --at-once 8         calls at once\n"
    "  --secrets FILE      what secret(\"name\") gives, as sagad reads it; also SAGAD_SECRET_NAME\n"
    "  --namespace NAME    whose secrets (default)\n"
    "  -o json|name        all that was seen, which `sagactl check --strict` reads; the classes that may be declared\n"
    "\n"
    "Without --count the tool's own probe counts, if its result is a number; else the results of the\n"
    "answers do, which shows less. The longest lateness that did no harm is what `key.window` may be.\n"
    "\n"
    "Exits 0 when all that is declared was seen, and 1 when more is declared than was seen.\n"
    "\n"
    "  sagactl hammer bank.json --tool charge --against http://127.0.0.1:9001 --count charges.made "
    "--args '{\"amount\": 5, \"customer\": \"{unique}\"}' --believe-window\n";

struct given {
    struct option_values against;
    const char *tool, *args, *other_args, *count, *late, *settle, *rounds, *at_once, *secrets, *namespace;
    bool programs, believe_window;
};

static const struct document_item *find_item(const struct document *documents, size_t count, struct slice name)
{
    for (size_t d = 0; d < count; d++) {
        for (size_t i = 0; i < documents[d].item_count; i++) {
            const struct document_item *item = &documents[d].items[i];

            if (item->kind == DEFINITION_TOOL && slice_equal(item->name, name)) {
                return item;
            }
        }
    }
    return NULL;
}

static const struct tool *find_tool(const struct document *documents, size_t count, struct slice name)
{
    const struct document_item *item = find_item(documents, count, name);

    return item ? item->tool : NULL;
}

static int no_tool(const char *option, const char *name)
{
    (void)fprintf(stderr, "sagactl: there is no tool %s in what was given (%s)\n", name, option);
    return EXIT_NOT_FOUND;
}

static bool is_reached(struct ctl *ctl, const struct receiver *receiver, const struct tool *tool, struct slice adapter,
                       const struct template *settings)
{
    static const char *const missing[] = {
        [REACH_NOTHING] = "which has no receiver: there is nothing to try",
        [REACH_HTTP] = "over HTTP. Which receiver? --against http://HOST:PORT",
        [REACH_DATABASE] = "in a database. Which one? --against postgresql://USER@HOST/NAME",
        [REACH_PROGRAM] = "a program of this machine. Say with --programs that it may run",
    };
    enum reach reach = receiver_reach(adapter, settings->json);

    if (receiver_has(receiver, reach)) {
        return true;
    }
    (void)usage_error(ctl, "%.*s is called by \"%.*s\", %s", SLICE_ARG(tool->name), SLICE_ARG(adapter), missing[reach]);
    return false;
}

static bool all_is_reached(struct ctl *ctl, const struct hammer *hammer)
{
    const struct tool *tools[] = {hammer->tool, hammer->undo, hammer->counter};
    const struct receiver *receiver = &hammer->target.receiver;

    for (size_t i = 0; i < COUNT_OF(tools); i++) {
        if (tools[i] && !is_reached(ctl, receiver, tools[i], tools[i]->adapter, &tools[i]->settings)) {
            return false;
        }
    }
    return !hammer->tool->has_probe ||
           is_reached(ctl, receiver, hammer->tool, hammer->tool->probe.adapter, &hammer->tool->probe.settings);
}

/* EXIT_OK, or the exit code once a sentence was printed. */
static int find_tools(struct ctl *ctl, const struct given *given, const struct arguments *files, struct hammer *hammer)
{
    struct document *documents;
    int code = documents_load_all(ctl, files, &documents);

    if (code != EXIT_OK) {
        return code;
    }
    const struct document_item *item = find_item(documents, files->count, slice_of(given->tool));

    if (!item) {
        return no_tool("--tool", given->tool);
    }
    hammer->tool = item->tool;
    hammer->identity = item->identity;
    hammer->counter = given->count ? find_tool(documents, files->count, slice_of(given->count)) : NULL;
    if (given->count && !hammer->counter) {
        return no_tool("--count", given->count);
    }
    if (hammer->counter && hammer->counter->effect != EFFECT_READ) {
        return usage_error(ctl, "--count %s is no tool of class read", given->count);
    }
    hammer->undo =
        hammer->tool->compensate.is_set ? find_tool(documents, files->count, hammer->tool->compensate.tool_name) : NULL;
    return all_is_reached(ctl, hammer) ? EXIT_OK : EXIT_USAGE;
}

static bool read_number(struct ctl *ctl, const char *option, const char *text, int64_t max, uint32_t *out)
{
    int64_t number;

    if (!slice_to_i64(slice_of(text), &number) || number < 1 || number > max) {
        (void)usage_error(ctl, "%s is a number from 1 to %lld, not \"%s\"", option, (long long)max, text);
        return false;
    }
    *out = (uint32_t)number;
    return true;
}

static bool read_time(struct ctl *ctl, const char *option, const char *text, int64_t max_ms, int64_t *out)
{
    if (!duration_parse(slice_of(text), out) || *out > max_ms) {
        (void)usage_error(ctl, "%s is a time such as 65s, at most %lld s, not \"%s\"", option,
                          (long long)(max_ms / 1000), text);
        return false;
    }
    return true;
}

static bool read_address(struct ctl *ctl, const char *text, struct receiver *out)
{
    struct slice url = slice_of(text);
    bool is_database = slice_starts_with(url, "postgresql://") || slice_starts_with(url, "postgres://");
    bool is_http = slice_starts_with(url, "http://") || slice_starts_with(url, "https://");
    struct slice *place = is_database ? &out->database : &out->http;

    while (is_http && url.ptr[url.len - 1] == '/') {
        url.len--;
    }
    if (!is_database && (!is_http || memchr(text, '?', strlen(text)))) {
        (void)usage_error(ctl,
                          "--against is a URL such as http://127.0.0.1:9001 or postgresql://tester@127.0.0.1/test, not "
                          "\"%s\"",
                          text);
        return false;
    }
    if (place->ptr) {
        (void)usage_error(ctl, "--against names two receivers of one kind");
        return false;
    }
    *place = url;
    return true;
}

static bool read_receiver(struct ctl *ctl, const struct given *given, struct receiver *out)
{
    *out = (struct receiver){.http = SLICE_NONE, .database = SLICE_NONE, .programs = given->programs};
    for (size_t i = 0; i < given->against.count; i++) {
        if (!read_address(ctl, given->against.items[i], out)) {
            return false;
        }
    }
    return true;
}

/* EXIT_OK, or the exit code once a sentence was printed. */
static int read_given(struct ctl *ctl, const struct given *given, struct hammer *hammer)
{
    bool has_receiver = given->against.count > 0 || given->programs;

    if (!given->tool || !has_receiver || !given->args) {
        return usage_error(ctl, "%s",
                           !given->tool    ? "which tool? --tool NAME"
                           : !has_receiver ? "which receiver? --against URL, or --programs"
                                           : "with which arguments? --args JSON");
    }
    return read_receiver(ctl, given, &hammer->target.receiver) &&
                   read_number(ctl, "--rounds", given->rounds, HAMMER_ROUNDS_MAX, &hammer->rounds) &&
                   read_number(ctl, "--at-once", given->at_once, HAMMER_AT_ONCE_MAX, &hammer->at_once) &&
                   read_time(ctl, "--late", given->late, LATE_MAX_MS, &hammer->late_ms) &&
                   read_time(ctl, "--settle", given->settle, SETTLE_MAX_MS, &hammer->settle_ms) &&
                   read_json_argument(ctl, "--args", given->args, &hammer->args) &&
                   (!given->other_args ||
                    read_json_argument(ctl, "--other-args", given->other_args, &hammer->other_args))
               ? EXIT_OK
               : EXIT_USAGE;
}

static bool args_fit(struct ctl *ctl, const struct hammer *hammer)
{
    struct faults faults;

    if (!hammer->tool->input) {
        return true;
    }
    faults_init(&faults, &ctl->arena);
    schema_check(hammer->tool->input, hammer->args, SLICE(""), &ctl->arena, &faults);
    for (size_t i = 0; i < faults.count; i++) {
        (void)usage_error(ctl, "--args%.*s: %.*s", SLICE_ARG(faults.items[i].pointer),
                          SLICE_ARG(faults.items[i].detail));
    }
    return faults.count == 0;
}

static bool keeps_keys(const struct tool *tool)
{
    const struct adapter *adapter = adapter_find(tool->adapter);

    return adapter->shares_keys && adapter->shares_keys(tool->settings.json, tool->settings.json);
}

static int strike_and_judge(struct ctl *ctl, const struct given *given, struct hammer *hammer)
{
    const struct tool *tool = hammer->tool;
    struct verdict verdict;

    if (!hammer_run(hammer)) {
        (void)fprintf(stderr, "sagactl: %.*s\n", SLICE_ARG(hammer->broken));
        return EXIT_FAILED;
    }
    struct declared declared = {
        .effect = hammer->effect,
        .window_ms = tool->key_window_ms,
        .has_undo = hammer->undo != NULL,
        .tolerates_absent = tool->compensate.tolerates_absent,
        .voids_key = tool->compensate.voids_key,
        .has_settles = tool->settles_count > 0,
        .keeps_keys = keeps_keys(tool),
        .believe_window = given->believe_window,
    };

    verdict_of(&hammer->evidence, &declared, &ctl->arena, &verdict);
    report_print(hammer, &declared, &verdict);
    return verdict.excess_count == 0 ? EXIT_OK : EXIT_FAILED;
}

int cmd_hammer(struct ctl *ctl, int argc, char **argv)
{
    struct given given = {.late = "65s", .settle = "0s", .rounds = "5", .at_once = "8", .namespace = "default"};
    const struct option options[] = {{"--tool", &given.tool, NULL, NULL},
                                     {"--against", NULL, &given.against, NULL},
                                     {"--programs", NULL, NULL, &given.programs},
                                     {"--args", &given.args, NULL, NULL},
                                     {"--other-args", &given.other_args, NULL, NULL},
                                     {"--count", &given.count, NULL, NULL},
                                     {"--late", &given.late, NULL, NULL},
                                     {"--settle", &given.settle, NULL, NULL},
                                     {"--rounds", &given.rounds, NULL, NULL},
                                     {"--at-once", &given.at_once, NULL, NULL},
                                     {"--secrets", &given.secrets, NULL, NULL},
                                     {"--namespace", &given.namespace, NULL, NULL},
                                     {"--believe-window", NULL, NULL, &given.believe_window},
                                     {NULL, NULL, NULL, NULL}};
    const struct db_pool_options links = {
        .links_max = HAMMER_AT_ONCE_MAX, .idle_ms = LINK_IDLE_MS, .application_name = "sagactl hammer"};
    struct hammer hammer = {.ctl = ctl};
    struct arguments files;
    struct err err = {0};
    bool helped = false;

    if (!options_read(ctl, argc, argv, options, &files, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (files.count == 0) {
        return usage_error(ctl, "which files?");
    }
    int code = read_given(ctl, &given, &hammer);

    code = code == EXIT_OK ? find_tools(ctl, &given, &files, &hammer) : code;
    if (code != EXIT_OK) {
        return code;
    }
    if (!args_fit(ctl, &hammer)) {
        return EXIT_USAGE;
    }
    ctl->server = arena_text(&ctl->arena, receiver_text(&hammer.target.receiver, &ctl->arena));
    code = ask_first(ctl, 1, "call %s many times, with real effects", given.tool);
    if (code != EXIT_OK) {
        return code;
    }
    if (secrets_load(&hammer.target.secrets, given.secrets, &err) != ERR_OK) {
        err_print(&err, "sagactl");
        return err_exit_code(err.code);
    }
    hammer.target.namespace = slice_of(given.namespace);
    hammer.target.loop = loop_new();
    hammer.target.host = (struct adapter_host){.loop = hammer.target.loop,
                                               .http = http_client_new(hammer.target.loop, CONNECTIONS, CONNECTIONS),
                                               .databases = db_pool_new(hammer.target.loop, &links),
                                               .response_bytes_max = RESPONSE_BYTES_MAX};
    code = strike_and_judge(ctl, &given, &hammer);
    adapter_host_close(&hammer.target.host);
    http_client_free(hammer.target.host.http);
    db_pool_free(hammer.target.host.databases);
    loop_free(hammer.target.loop);
    secrets_fini(&hammer.target.secrets);
    return code;
}
