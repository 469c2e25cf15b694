/* graph: a saga as Graphviz or Mermaid text, for documents and reviews. */
#include <stdio.h>
#include <string.h>

#include "tools/sagactl/cmds.h"
#include "tools/sagactl/documents.h"

const char help_graph[] =
    "sagactl graph FILE... [--saga NAME] [--format dot|mermaid]\n"
    "\n"
    "Prints the sagas of definition files as text for Graphviz (dot, the default) or Mermaid: steps\n"
    "with their tools and effect classes, what waits for what, what undoes what (dashed), and which\n"
    "step cannot be undone (bold). Offline; the files are checked first.\n"
    "\n"
    "  sagactl graph order.json | dot -Tsvg -o order.svg\n"
    "  sagactl graph order.json --format mermaid\n";

static const char *class_of(const struct tool *tool)
{
    return tool->conditional ? "depends on the arguments" : effect_name(tool->effect);
}

/* In both languages a quoted text ends with the next quote; ids and names of tools have none, what a condition says
 * may. */
static void print_quoted(struct slice text, const char *quote)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"') {
            (void)fputs(quote, stdout);
        } else if (text.ptr[i] == '\\' && quote[0] == '\\') {
            (void)fputs("\\\\", stdout);
        } else {
            (void)putchar((unsigned char)text.ptr[i] < 0x20 ? ' ' : text.ptr[i]);
        }
    }
}

static bool is_last(const struct definition *saga, uint32_t step)
{
    for (uint32_t i = 0; i < saga->step_count; i++) {
        for (uint32_t k = 0; k < saga->steps[i].after_count; k++) {
            if (saga->steps[i].after[k] == step) {
                return false;
            }
        }
    }
    return true;
}

static const char *failure_note(const struct step_definition *step)
{
    switch (step->on_failure) {
    case ON_FAILURE_COMPENSATE:
        return NULL;
    case ON_FAILURE_ESCALATE:
        return "on failure: a person";
    case ON_FAILURE_CONTINUE:
        return "on failure: goes on";
    }
    UNREACHABLE();
}

static void print_label(const struct step_definition *step, struct arena *arena, const char *line_end,
                        const char *quote)
{
    const char *note = failure_note(step);

    (void)printf("%.*s%s%.*s (%s)", SLICE_ARG(step->id), line_end, SLICE_ARG(step->tool->name), class_of(step->tool));
    if (step->terminal) {
        (void)printf("%scannot be undone", line_end);
    }
    if (template_is_set(&step->when)) {
        (void)printf("%swhen ", line_end);
        print_quoted(json_type(step->when.json) == JSON_STRING ? json_string(step->when.json, arena) : step->when.json,
                     quote);
    }
    if (note) {
        (void)printf("%s%s", line_end, note);
    }
}

/* --- Graphviz --- */

static void print_dot_step(const struct definition *saga, uint32_t step, struct arena *arena)
{
    const struct step_definition *s = &saga->steps[step];

    (void)printf("  \"%.*s\" [label=\"", SLICE_ARG(s->id));
    print_label(s, arena, "\\n", "\\\"");
    (void)printf("\"%s%s];\n", s->terminal ? ", style=bold, peripheries=2" : "",
                 template_is_set(&s->when) ? ", shape=hexagon" : "");
    if (s->after_count == 0) {
        (void)printf("  \"start\" -> \"%.*s\";\n", SLICE_ARG(s->id));
    }
    for (uint32_t i = 0; i < s->after_count; i++) {
        (void)printf("  \"%.*s\" -> \"%.*s\";\n", SLICE_ARG(saga->steps[s->after[i]].id), SLICE_ARG(s->id));
    }
    if (is_last(saga, step)) {
        (void)printf("  \"%.*s\" -> \"end\";\n", SLICE_ARG(s->id));
    }
    if (s->compensate.is_set) {
        (void)printf("  \"undo %.*s\" [label=\"%.*s (%s)\", shape=ellipse, style=dashed];\n", SLICE_ARG(s->id),
                     SLICE_ARG(s->compensate.tool_name), class_of(s->compensate.tool));
        (void)printf("  \"%.*s\" -> \"undo %.*s\" [style=dashed, dir=back, constraint=false];\n", SLICE_ARG(s->id),
                     SLICE_ARG(s->id));
    }
}

static void print_dot(const struct definition *saga, struct arena *arena)
{
    (void)printf("digraph \"%.*s\" {\n  rankdir=TB;\n  label=\"%.*s\";\n  node [shape=box];\n"
                 "  \"start\" [shape=circle];\n  \"end\" [shape=doublecircle];\n",
                 SLICE_ARG(saga->name), SLICE_ARG(saga->name));
    for (uint32_t i = 0; i < saga->step_count; i++) {
        print_dot_step(saga, i, arena);
    }
    (void)puts("}");
}

/* --- Mermaid: nodes are numbered, since ids may be words of its own --- */

static void print_mermaid_step(const struct definition *saga, uint32_t step, struct arena *arena)
{
    const struct step_definition *s = &saga->steps[step];
    bool asks = template_is_set(&s->when);

    (void)printf("  s%u%s\"", step, asks ? "{{" : "[");
    print_label(s, arena, "<br>", "#quot;");
    (void)printf("\"%s\n", asks ? "}}" : "]");
    if (s->after_count == 0) {
        (void)printf("  start --> s%u\n", step);
    }
    for (uint32_t i = 0; i < s->after_count; i++) {
        (void)printf("  s%u --> s%u\n", s->after[i], step);
    }
    if (is_last(saga, step)) {
        (void)printf("  s%u --> finish\n", step);
    }
    if (s->compensate.is_set) {
        (void)printf("  u%u([\"%.*s (%s)\"])\n  s%u -. undo .- u%u\n", step, SLICE_ARG(s->compensate.tool_name),
                     class_of(s->compensate.tool), step, step);
    }
    if (s->terminal) {
        (void)printf("  style s%u stroke-width:4px\n", step);
    }
}

static void print_mermaid(const struct definition *saga, struct arena *arena)
{
    (void)printf("---\ntitle: \"%.*s\"\n---\nflowchart TB\n  start((start))\n  finish(((end)))\n",
                 SLICE_ARG(saga->name));
    for (uint32_t i = 0; i < saga->step_count; i++) {
        print_mermaid_step(saga, i, arena);
    }
}

int cmd_graph(struct ctl *ctl, int argc, char **argv)
{
    const char *only = NULL, *format = "dot";
    const struct option options[] = {
        {"--saga", &only, NULL, NULL}, {"--format", &format, NULL, NULL}, {NULL, NULL, NULL, NULL}};
    struct arguments files;
    struct documents documents;
    bool helped = false, mermaid;
    int code;

    if (!options_read(ctl, argc, argv, options, &files, &helped) || helped) {
        return helped ? EXIT_OK : EXIT_USAGE;
    }
    if (files.count == 0) {
        return usage_error(ctl, "which files?");
    }
    mermaid = strcmp(format, "mermaid") == 0;
    if (!mermaid && strcmp(format, "dot") != 0) {
        return usage_error(ctl, "--format is dot or mermaid, not \"%s\"", format);
    }
    code = documents_load(ctl, &files, only, &documents);
    if (code != EXIT_OK) {
        return code;
    }
    for (size_t i = 0; i < documents.count; i++) {
        if (mermaid) {
            print_mermaid(documents.sagas[i], &ctl->arena);
        } else {
            print_dot(documents.sagas[i], &ctl->arena);
        }
    }
    return EXIT_OK;
}
