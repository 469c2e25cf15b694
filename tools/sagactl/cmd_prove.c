/* The command prove: shows, before a saga runs, how it ends at every point where something can go wrong. */
#include <stdio.h>

#include "core/prove/show.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/documents.h"
#include "tools/sagactl/output.h"

const char help_prove[] =
    "sagactl prove FILE... [--saga NAME] [--states N]\n"
    "sagactl prove --registered NAME [--version N]\n"
    "\n"
    "Plays the sagas of definition files offline, on the engine's own state machine, through every\n"
    "single failure point: each operation fails for certain, never leaves, is refused once, does not\n"
    "answer (and then: called again, probed, answered late, told by a person, or nobody can say), each\n"
    "compensator does the same, an abort and the deadline (a child's too) come between any two turns,\n"
    "an approval is refused, what is waited for does not come in time, a lock is taken. One row each:\n"
    "how the saga ends, what was undone in which order, what is left standing. Orders in which parallel\n"
    "branches get on, and conditions that hold or do not, are walked through too; only what is wrong\n"
    "in them gets a row. Values are symbolic: no expression is evaluated, for_each has two elements.\n"
    "Steps are named as in the log: hotels#0, billing/charge. --server URL also looks for tools and\n"
    "sagas that are registered there.\n"
    "\n"
    "Exits 1 when an end violates an invariant: something that took effect is not undone, something\n"
    "is undone that did not happen, the order is wrong, the saga is stuck and nobody is asked, or\n"
    "something happens after the end. An end `escalated` violates none: it waits for a person.\n"
    "\n"
    "  --saga NAME         this saga only\n"
    "  --registered NAME   has the service prove a saga that is registered, within bounds\n"
    "  --version N         that version of it; without it the newest\n"
    "  --states N          walk through at most N states of parallel branches (default 4096)\n"
    "  -o json             {\"items\": [{\"saga\", \"ok\", \"covered\", \"ends\": [...]}]}\n"
    "\n"
    "  sagactl prove order.json\n"
    "  sagactl prove tools.json sagas.json --saga order -o json\n";

/* --- as a table --- */

static struct slice names(struct ctl *ctl, struct slice steps)
{
    struct json_walk walk = json_walk(steps);
    struct slice text = SLICE(""), step;

    while (json_next_element(&walk, &step)) {
        text = arena_printf(&ctl->arena, "%.*s%s%.*s", SLICE_ARG(text), text.len ? " " : "",
                            SLICE_ARG(show_value(ctl, step)));
    }
    return text;
}

static void add_row(struct table *table, struct slice end)
{
    struct ctl *ctl = table->ctl;
    struct slice what = show_member(ctl, end, "what"), place = show_member(ctl, end, "place"),
                 violation = show_member(ctl, end, "violation");
    struct cell *row = table_row(table);

    row[0].text = show_member(ctl, end, "step");
    row[1].text = place.len ? arena_printf(&ctl->arena, "%.*s, %.*s", SLICE_ARG(what), SLICE_ARG(place)) : what;
    row[2].text = show_member(ctl, end, "settled");
    row[3].text = show_member(ctl, end, "end");
    row[3].colour = status_colour(row[3].text);
    row[4].text = names(ctl, json_member(end, "undone"));
    row[5].text = names(ctl, json_member(end, "standing"));
    if (violation.len) {
        row[6].text = arena_printf(&ctl->arena, "VIOLATED: %.*s", SLICE_ARG(violation));
        row[6].colour = COLOUR_RED;
    } else {
        row[6].text = show_member(ctl, end, "waits_for");
    }
}

static bool is_true(struct slice object, const char *name)
{
    bool value = false;

    return json_bool(json_member(object, name), &value) && value;
}

static void print_table(struct ctl *ctl, struct slice proof)
{
    static const char *const titles[] = {"STEP",   "WHAT HAPPENS", "THEN",      "ENDS",
                                         "UNDONE", "STANDING",     "WAITS FOR", NULL};
    struct slice covered = json_member(proof, "covered"), unreached = json_member(covered, "unreached"), item;
    struct json_walk ends = json_walk(json_member(proof, "ends")), left = json_walk(unreached);
    bool good = is_true(proof, "ok");
    struct table table;

    (void)printf("%s%.*s%s: %s%.*s failure points, %s%s\n", colour_on(ctl, COLOUR_BOLD),
                 SLICE_ARG(show_member(ctl, proof, "saga")), colour_off(ctl, COLOUR_BOLD),
                 colour_on(ctl, good ? COLOUR_GREEN : COLOUR_RED), SLICE_ARG(show_member(ctl, covered, "points")),
                 good ? "all end well" : "not all end well", colour_off(ctl, COLOUR_GREEN));
    table_init(&table, ctl, titles);
    while (json_next_element(&ends, &item)) {
        add_row(&table, item);
    }
    table_print(&table, 2);
    while (json_next_element(&left, &item)) {
        (void)printf("  %.*s is not reached even when nothing goes wrong\n", SLICE_ARG(show_value(ctl, item)));
    }
    if (!is_true(covered, "all_points")) {
        (void)printf("  not all failure points were played: `sagactl prove FILE` has no such bound\n");
    }
    (void)printf(
        "  covered: one failure at a time, %.*s plays; %s%.*s states of branches and conditions, every point in each;"
        " compensators in the longest undo they are in\n\n",
        SLICE_ARG(show_member(ctl, covered, "plays")), is_true(covered, "all_states") ? "all " : "the first ",
        SLICE_ARG(show_member(ctl, covered, "states")));
}

/* --- the command --- */

struct progress {
    struct ctl *ctl;
    const struct definition *saga;
};

static void on_progress(void *context, uint32_t plays, uint32_t states)
{
    const struct progress *progress = context;

    progress_show(progress->ctl, "%.*s: %u plays, %u states", SLICE_ARG(progress->saga->name), plays, states);
}

/* Proves the sagas of files here, and writes one proof for each as an array. */
static int prove_files(struct ctl *ctl, const struct arguments *files, const char *only, uint32_t states_max,
                       struct buffer *out)
{
    struct documents documents;
    struct json_writer w;
    int code = documents_load(ctl, files, only, &documents);

    if (code != EXIT_OK) {
        return code;
    }
    json_writer_init(&w, out);
    json_array_begin(&w, NULL);
    for (size_t i = 0; i < documents.count; i++) {
        const struct definition *saga = documents.sagas[i];
        struct progress progress = {ctl, saga};
        struct prove_options how = {.states_max = states_max, .on_progress = on_progress, .context = &progress};
        struct prove_report report;
        struct arena arena = {0};

        arena_init(&arena, (size_t)1 << 20);
        prove_saga(saga, &how, &arena, &report);
        progress_clear(ctl);
        prove_write(&w, saga->name, &report);
        arena_fini(&arena);
    }
    json_array_end(&w);
    return EXIT_OK;
}

/* The same of the saga that is registered, which the service proves. */
static int prove_registered(struct ctl *ctl, const char *name, const char *version, struct buffer *out)
{
    struct slice path = arena_printf(&ctl->arena, "/v1/definitions/%.*s/proof%s%.*s",
                                     SLICE_ARG(url_escape(slice_of(name), &ctl->arena)), version ? "?version=" : "",
                                     SLICE_ARG(url_escape(slice_of(version ? version : ""), &ctl->arena)));
    struct answer answer;
    int code = options_ask_server(ctl) ? client_get(ctl, path, &ctl->arena, &answer) : EXIT_USAGE;

    if (code != EXIT_OK) {
        return code;
    }
    buffer_printf(out, "[%.*s]", SLICE_ARG(answer.body));
    return EXIT_OK;
}

/* Shows the proofs, and says whether all of them are good. */
static bool show(struct ctl *ctl, struct slice proofs)
{
    struct json_walk walk = json_walk(proofs);
    struct slice proof;
    bool good = true;

    if (ctl->output == OUTPUT_DATA) {
        print_data(ctl, arena_printf(&ctl->arena, "{\"items\":%.*s}", SLICE_ARG(proofs)));
    }
    while (json_next_element(&walk, &proof)) {
        good = good && is_true(proof, "ok");
        if (ctl->output == OUTPUT_NAME) {
            (void)printf("%.*s\n", SLICE_ARG(show_member(ctl, proof, "saga")));
        } else if (ctl->output != OUTPUT_DATA) {
            print_table(ctl, proof);
        }
    }
    return good;
}

int cmd_prove(struct ctl *ctl, int argc, char **argv)
{
    const char *only = NULL, *states = "0", *registered = NULL, *version = NULL;
    const struct option options[] = {{"--saga", &only, NULL, NULL},
                                     {"--states", &states, NULL, NULL},
                                     {"--registered", &registered, NULL, NULL},
                                     {"--version", &version, NULL, NULL},
                                     {NULL, NULL, NULL, NULL}};
    struct arguments files;
    struct buffer out;
    bool helped = false, good = true;
    int64_t states_max = 0;

    if (!options_read(ctl, argc, argv, options, &files, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (!registered && files.count == 0) {
        return usage_error(ctl, "which files?");
    }
    if (registered && (files.count > 0 || only)) {
        return usage_error(ctl, "either files, or --registered with the name of a saga");
    }
    if (!slice_to_i64(slice_of(states), &states_max) || states_max < 0 || states_max > 1000000) {
        return usage_error(ctl, "--states is a number up to 1000000, not \"%s\"", states);
    }
    buffer_init(&out, (size_t)256 << 20);
    int code = registered ? prove_registered(ctl, registered, version, &out)
                          : prove_files(ctl, &files, only, (uint32_t)states_max, &out);

    if (code == EXIT_OK) {
        good = show(ctl, buffer_slice(&out));
    }
    buffer_fini(&out);
    return code == EXIT_OK && !good ? EXIT_FAILED : code;
}
