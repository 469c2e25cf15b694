/* The command prove: shows, before a saga runs, how it ends at every point where something can go wrong. */
#include <stdio.h>

#include "core/prove/prove.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/documents.h"
#include "tools/sagactl/output.h"

const char help_prove[] =
    "sagactl prove FILE... [--saga NAME] [--states N]\n"
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
    "  --states N          walk through at most N states of parallel branches (default 4096)\n"
    "  -o json             {\"items\": [{\"saga\", \"ok\", \"covered\", \"ends\": [...]}]}\n"
    "\n"
    "  sagactl prove order.json\n"
    "  sagactl prove tools.json sagas.json --saga order -o json\n";

static struct slice step_name(const struct definition *saga, uint32_t step)
{
    return step == STEP_NONE ? SLICE("") : saga->steps[step].id;
}

/* --- as a table --- */

static struct slice names(struct ctl *ctl, const struct definition *saga, const uint32_t *steps, uint32_t count)
{
    struct slice text = SLICE("");

    for (uint32_t i = 0; i < count; i++) {
        text =
            arena_printf(&ctl->arena, "%.*s%s%.*s", SLICE_ARG(text), i ? " " : "", SLICE_ARG(saga->steps[steps[i]].id));
    }
    return text;
}

static struct slice what_happens(struct ctl *ctl, const struct prove_end *end)
{
    const struct prove_point *point = &end->point;
    const char *trouble = prove_trouble_text(point->trouble);
    bool undo = point->direction == DIRECTION_UNDO;
    struct slice text = slice_of(trouble);

    if (point->varies && !undo) {
        text = arena_printf(&ctl->arena, "as %s: %s", effect_name(point->effect), trouble);
    }
    if (undo) {
        text =
            arena_printf(&ctl->arena, "its undo %s", point->trouble == TROUBLE_UNKNOWN ? "gives no answer" : trouble);
    }
    return end->place.ptr ? arena_printf(&ctl->arena, "%.*s, %.*s", SLICE_ARG(text), SLICE_ARG(end->place)) : text;
}

static void add_row(struct table *table, const struct definition *saga, const struct prove_end *end)
{
    struct ctl *ctl = table->ctl;
    struct cell *row = table_row(table);

    row[0].text = step_name(saga, end->point.step);
    row[1].text = what_happens(ctl, end);
    row[2].text = slice_of(prove_answer_text(end->point.answer));
    row[3].text = slice_of(saga_status_name(end->status));
    row[3].colour = status_colour(row[3].text);
    row[4].text = names(ctl, saga, end->undone, end->undone_count);
    row[5].text = names(ctl, saga, end->standing, end->standing_count);
    if (end->violation.ptr) {
        row[6].text = arena_printf(&ctl->arena, "VIOLATED: %.*s", SLICE_ARG(end->violation));
        row[6].colour = COLOUR_RED;
    } else {
        row[6].text = end->waits_for;
    }
}

static void print_table(struct ctl *ctl, const struct definition *saga, const struct prove_report *report)
{
    static const char *const titles[] = {"STEP",   "WHAT HAPPENS", "THEN",      "ENDS",
                                         "UNDONE", "STANDING",     "WAITS FOR", NULL};
    struct table table;

    (void)printf("%s%.*s%s: %s%u failure points, %s%s\n", colour_on(ctl, COLOUR_BOLD), SLICE_ARG(saga->name),
                 colour_off(ctl, COLOUR_BOLD), colour_on(ctl, report->violation_count ? COLOUR_RED : COLOUR_GREEN),
                 report->end_count - 1, report->violation_count ? "not all end well" : "all end well",
                 colour_off(ctl, COLOUR_GREEN));
    table_init(&table, ctl, titles);
    for (uint32_t i = 0; i < report->end_count; i++) {
        add_row(&table, report->definition, &report->ends[i]);
    }
    table_print(&table, 2);
    for (uint32_t i = 0; i < report->unreached_count; i++) {
        (void)printf("  %.*s is not reached even when nothing goes wrong\n",
                     SLICE_ARG(report->definition->steps[report->unreached[i]].id));
    }
    (void)printf(
        "  covered: one failure at a time, %u plays; %s%u states of branches and conditions, every point in each;"
        " compensators in the longest undo they are in\n\n",
        report->plays, report->bounded ? "the first " : "all ", report->states);
}

/* --- as JSON --- */

static void write_steps(struct json_writer *w, const char *name, const struct definition *saga, const uint32_t *steps,
                        uint32_t count)
{
    json_array_begin(w, name);
    for (uint32_t i = 0; i < count; i++) {
        json_write_slice(w, NULL, saga->steps[steps[i]].id);
    }
    json_array_end(w);
}

static void write_end(struct json_writer *w, const struct definition *saga, const struct prove_end *end)
{
    const struct prove_point *point = &end->point;

    json_object_begin(w, NULL);
    json_write_slice(w, "step", point->step == STEP_NONE ? SLICE_NONE : saga->steps[point->step].id);
    json_write_text(w, "direction", direction_name(point->direction));
    if (point->step != STEP_NONE && saga->steps[point->step].tool && !step_is_group(&saga->steps[point->step])) {
        json_write_text(w, "effect", effect_name(point->effect));
    }
    json_write_text(w, "happens", prove_trouble_name(point->trouble));
    json_write_text(w, "then", prove_answer_name(point->answer));
    json_write_slice(w, "place", end->place);
    json_write_text(w, "end", saga_status_name(end->status));
    json_write_slice(w, "waits_for", end->waits_for);
    write_steps(w, "undone", saga, end->undone, end->undone_count);
    write_steps(w, "standing", saga, end->standing, end->standing_count);
    json_write_slice(w, "violation", end->violation);
    json_object_end(w);
}

static void write_report(struct json_writer *w, const struct definition *saga, const struct prove_report *report)
{
    json_object_begin(w, NULL);
    json_write_slice(w, "saga", saga->name);
    json_write_bool(w, "ok", report->violation_count == 0);
    json_write_i64(w, "violations", report->violation_count);
    json_object_begin(w, "covered");
    json_write_i64(w, "points", report->end_count - 1);
    json_write_i64(w, "plays", report->plays);
    json_write_i64(w, "states", report->states);
    json_write_bool(w, "all_states", !report->bounded);
    write_steps(w, "unreached", report->definition, report->unreached, report->unreached_count);
    json_object_end(w);
    json_array_begin(w, "ends");
    for (uint32_t i = 0; i < report->end_count; i++) {
        write_end(w, report->definition, &report->ends[i]);
    }
    json_array_end(w);
    json_object_end(w);
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

int cmd_prove(struct ctl *ctl, int argc, char **argv)
{
    const char *only = NULL, *states = "0";
    const struct option options[] = {
        {"--saga", &only, NULL, NULL}, {"--states", &states, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments files;
    struct documents documents;
    struct buffer out;
    struct json_writer w;
    bool helped = false, good = true;
    int64_t states_max = 0;

    if (!options_read(ctl, argc, argv, options, &files, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (files.count == 0) {
        return usage_error(ctl, "which files?");
    }
    if (!slice_to_i64(slice_of(states), &states_max) || states_max < 0 || states_max > 1000000) {
        return usage_error(ctl, "--states is a number up to 1000000, not \"%s\"", states);
    }
    int code = documents_load(ctl, &files, only, &documents);

    if (code != EXIT_OK) {
        return code;
    }
    buffer_init(&out, (size_t)256 << 20);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    json_array_begin(&w, "items");
    for (size_t i = 0; i < documents.count; i++) {
        const struct definition *saga = documents.sagas[i];
        struct progress progress = {ctl, saga};
        struct prove_options how = {(uint32_t)states_max, on_progress, &progress};
        struct prove_report report;
        struct arena arena = {0};

        arena_init(&arena, (size_t)1 << 20);
        prove_saga(saga, &how, &arena, &report);
        progress_clear(ctl);
        good = good && report.violation_count == 0;
        if (ctl->output == OUTPUT_DATA) {
            write_report(&w, saga, &report);
        } else if (ctl->output == OUTPUT_NAME) {
            (void)printf("%.*s\n", SLICE_ARG(saga->name));
        } else {
            print_table(ctl, saga, &report);
        }
        arena_fini(&arena);
    }
    json_array_end(&w);
    json_object_end(&w);
    if (ctl->output == OUTPUT_DATA) {
        print_data(ctl, buffer_slice(&out));
    }
    buffer_fini(&out);
    return good ? EXIT_OK : EXIT_FAILED;
}
