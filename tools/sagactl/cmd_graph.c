/* The command graph: draws a saga as Graphviz or Mermaid text, for documents and reviews. */
#include <stdio.h>
#include <string.h>

#include "base/instant.h"
#include "base/json.h"
#include "tools/sagactl/cmds.h"
#include "tools/sagactl/documents.h"

const char help_graph[] =
    "sagactl graph FILE... [--saga NAME] [--format dot|mermaid]\n"
    "\n"
    "Prints the sagas of definition files as text for Graphviz (dot, the default) or Mermaid: steps\n"
    "with their tools and effect classes, what waits for what, what undoes what (dashed), and which\n"
    "step cannot be undone (bold). Child sagas and steps that run for each element are boxes around\n"
    "what is in them; sleeps, signals and approvals have shapes of their own. Offline, unless --server\n"
    "URL says where else to look for tools and sagas; the files are checked first.\n"
    "\n"
    "  sagactl graph order.json | dot -Tsvg -o order.svg\n"
    "  sagactl graph order.json --format mermaid\n";

static const char *class_of(const struct tool *tool)
{
    return tool->conditional ? "depends on the arguments" : effect_name(tool->effect);
}

/* Prints a quoted text. In both languages the next quote ends the text. Ids and names of tools hold no quotes, but
 * conditions may. */
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

struct words { /* the words of one of the two languages */
    const char *line_end, *quote;
};
static const struct words dot_words = {"\\n", "\\\""}, mermaid_words = {"<br>", "#quot;"};

static void print_template(const struct template *template, const struct words *words, struct arena *arena)
{
    print_quoted(json_type(template->json) == JSON_STRING ? json_string(template->json, arena) : template->json,
                 words->quote);
}

static void print_wait_limit(const struct step_definition *step)
{
    char text[INSTANT_TEXT_BYTES];

    if (step->wait_timeout_ms > 0) {
        duration_text(step->wait_timeout_ms, text);
        (void)printf(", for %s at most", text);
    }
}

static void print_roles(unsigned roles)
{
    const char *between = "";

    for (unsigned role = 0; role < ROLE_COUNT; role++) {
        if (roles & (1u << role)) {
            (void)printf("%s%s", between, role_name((enum role)role));
            between = " or ";
        }
    }
}

static void print_kind(const struct step_definition *step, const struct words *words, struct arena *arena)
{
    switch (step->kind) {
    case STEP_CALL:
        (void)printf("%.*s (%s)", SLICE_ARG(step->tool->name), class_of(step->tool));
        break;
    case STEP_SAGA:
        (void)printf("saga %.*s", SLICE_ARG(step->child_name));
        break;
    case STEP_SLEEP:
        (void)fputs("sleeps ", stdout);
        print_template(&step->sleep, words, arena);
        break;
    case STEP_SIGNAL:
        (void)printf("waits for signal %.*s", SLICE_ARG(step->signal_name));
        print_wait_limit(step);
        break;
    case STEP_APPROVE:
        (void)fputs("waits for ", stdout);
        print_roles(step->roles);
        if (step->not_by_starter) {
            (void)fputs(", not who started it", stdout);
        }
        print_wait_limit(step);
        break;
    }
}

/* Prints what holds for the whole step: at the box of a group, otherwise at the node. */
static void print_terms(const struct step_definition *step, const struct words *words, struct arena *arena)
{
    const char *note = failure_note(step);

    if (template_is_set(&step->for_each)) {
        (void)printf("%sfor each of ", words->line_end);
        print_template(&step->for_each, words, arena);
        (void)printf(", %u at once", step->concurrency ? (unsigned)step->concurrency : 1u);
    }
    if (step->terminal) {
        (void)printf("%scannot be undone", words->line_end);
    }
    if (template_is_set(&step->when)) {
        (void)printf("%swhen ", words->line_end);
        print_template(&step->when, words, arena);
    }
    if (note) {
        (void)printf("%s%s", words->line_end, note);
    }
}

static void print_label(const struct step_definition *step, const struct words *words, struct arena *arena)
{
    (void)printf("%.*s", SLICE_ARG(step->id));
    if (step->kind != STEP_CALL ||
        !step_is_group(step)) { /* the box of a group shows what is called for each element */
        (void)fputs(words->line_end, stdout);
        print_kind(step, words, arena);
    }
    print_terms(step, words, arena);
}

/* --- Graphviz: a box is entered at one point and left at another --- */

static void print_dot_steps(const struct definition *saga, struct slice path, struct arena *arena);

static const char *dot_shape(const struct step_definition *step)
{
    switch (step->kind) {
    case STEP_CALL:
    case STEP_SAGA:
        return template_is_set(&step->when) ? ", shape=hexagon" : "";
    case STEP_SLEEP:
        return ", shape=octagon";
    case STEP_SIGNAL:
        return ", shape=cds";
    case STEP_APPROVE:
        return ", shape=invtrapezium";
    }
    UNREACHABLE();
}

/* Returns where the edge to the next step begins. */
static const char *dot_exit(const struct step_definition *step)
{
    return step->kind == STEP_SAGA ? " end" : "";
}

static void print_dot_undo(const struct step_definition *s, struct slice path)
{
    (void)printf("  \"undo %.*s%.*s\" [label=\"%.*s (%s)\", shape=ellipse, style=dashed];\n", SLICE_ARG(path),
                 SLICE_ARG(s->id), SLICE_ARG(s->compensate.tool_name), class_of(s->compensate.tool));
    (void)printf("  \"%.*s%.*s\" -> \"undo %.*s%.*s\" [style=dashed, dir=back, constraint=false];\n", SLICE_ARG(path),
                 SLICE_ARG(s->id), SLICE_ARG(path), SLICE_ARG(s->id));
}

static void print_dot_group(const struct step_definition *s, struct slice path, struct arena *arena)
{
    struct slice inner = arena_printf(arena, "%.*s%.*s/", SLICE_ARG(path), SLICE_ARG(s->id));

    (void)printf("  subgraph \"cluster %.*s%.*s\" {\n  label=\"", SLICE_ARG(path), SLICE_ARG(s->id));
    print_label(s, &dot_words, arena);
    (void)printf("\";\n  style=\"rounded%s%s\";\n", s->terminal ? ",bold" : "",
                 template_is_set(&s->for_each) ? ",dashed" : "");
    if (s->kind == STEP_SAGA) {
        (void)printf("  \"%.*s%.*s\" [shape=point];\n  \"%.*s%.*s end\" [shape=point];\n", SLICE_ARG(path),
                     SLICE_ARG(s->id), SLICE_ARG(path), SLICE_ARG(s->id));
        print_dot_steps(s->child, inner, arena);
    } else {
        (void)printf("  \"%.*s%.*s\" [label=\"", SLICE_ARG(path), SLICE_ARG(s->id));
        print_kind(s, &dot_words, arena);
        (void)puts("\"];");
        if (s->compensate.is_set) {
            print_dot_undo(s, path);
        }
    }
    (void)puts("  }");
}

static void print_dot_step(const struct definition *saga, uint32_t step, struct slice path, struct arena *arena)
{
    const struct step_definition *s = &saga->steps[step];
    struct slice outer = path.len > 0 ? (struct slice){path.ptr, path.len - 1} : SLICE_NONE; /* the enclosing group */

    if (step_is_group(s)) {
        print_dot_group(s, path, arena);
    } else {
        (void)printf("  \"%.*s%.*s\" [label=\"", SLICE_ARG(path), SLICE_ARG(s->id));
        print_label(s, &dot_words, arena);
        (void)printf("\"%s%s];\n", s->terminal ? ", style=bold, peripheries=2" : "", dot_shape(s));
    }
    if (s->after_count == 0) {
        (void)printf("  \"%.*s\" -> \"%.*s%.*s\";\n", SLICE_ARG(outer.ptr ? outer : SLICE("start")), SLICE_ARG(path),
                     SLICE_ARG(s->id));
    }
    for (uint32_t i = 0; i < s->after_count; i++) {
        const struct step_definition *before = &saga->steps[s->after[i]];

        (void)printf("  \"%.*s%.*s%s\" -> \"%.*s%.*s\";\n", SLICE_ARG(path), SLICE_ARG(before->id), dot_exit(before),
                     SLICE_ARG(path), SLICE_ARG(s->id));
    }
    if (is_last(saga, step)) {
        (void)printf("  \"%.*s%.*s%s\" -> \"%.*s%s\";\n", SLICE_ARG(path), SLICE_ARG(s->id), dot_exit(s),
                     SLICE_ARG(outer.ptr ? outer : SLICE("end")), outer.ptr ? " end" : "");
    }
    if (s->compensate.is_set && !step_is_group(s)) {
        print_dot_undo(s, path);
    }
}

static void print_dot_steps(const struct definition *saga, struct slice path, struct arena *arena)
{
    for (uint32_t i = 0; i < saga->step_count; i++) {
        print_dot_step(saga, i, path, arena);
    }
}

static void print_dot(const struct definition *saga, struct arena *arena)
{
    (void)printf("digraph \"%.*s\" {\n  rankdir=TB;\n  label=\"%.*s\";\n  node [shape=box];\n"
                 "  \"start\" [shape=circle];\n  \"end\" [shape=doublecircle];\n",
                 SLICE_ARG(saga->name), SLICE_ARG(saga->name));
    print_dot_steps(saga, SLICE(""), arena);
    (void)puts("}");
}

/* --- Mermaid: nodes are numbered, since ids may be words of its own; a box is a node like the others --- */

static void print_mermaid_steps(const struct definition *saga, struct slice path, struct arena *arena);

struct brackets {
    const char *open, *close;
};

static struct brackets mermaid_shape(const struct step_definition *step)
{
    switch (step->kind) {
    case STEP_CALL:
    case STEP_SAGA:
        return template_is_set(&step->when) ? (struct brackets){"{{", "}}"} : (struct brackets){"[", "]"};
    case STEP_SLEEP:
        return (struct brackets){">", "]"};
    case STEP_SIGNAL:
        return (struct brackets){"[/", "/]"};
    case STEP_APPROVE:
        return (struct brackets){"[\\", "/]"};
    }
    UNREACHABLE();
}

/* Prints the undo of a step. `node` is the node of the call: "s3", or "s3_each" in the box of its elements. */
static void print_mermaid_undo(const struct step_definition *s, struct slice path, uint32_t step, const char *node)
{
    (void)printf("  u%.*s%u([\"%.*s (%s)\"])\n  s%.*s%u%s -. undo .- u%.*s%u\n", SLICE_ARG(path), (unsigned)step,
                 SLICE_ARG(s->compensate.tool_name), class_of(s->compensate.tool), SLICE_ARG(path), (unsigned)step,
                 node, SLICE_ARG(path), (unsigned)step);
}

static void print_mermaid_group(const struct step_definition *s, struct slice path, uint32_t step, struct arena *arena)
{
    (void)printf("  subgraph s%.*s%u[\"", SLICE_ARG(path), (unsigned)step);
    print_label(s, &mermaid_words, arena);
    (void)puts("\"]");
    if (s->kind == STEP_SAGA) {
        print_mermaid_steps(s->child, arena_printf(arena, "%.*s%u_", SLICE_ARG(path), (unsigned)step), arena);
    } else {
        (void)printf("  s%.*s%u_each[\"", SLICE_ARG(path), (unsigned)step);
        print_kind(s, &mermaid_words, arena);
        (void)puts("\"]");
        if (s->compensate.is_set) {
            print_mermaid_undo(s, path, step, "_each");
        }
    }
    (void)puts("  end");
}

static void print_mermaid_step(const struct definition *saga, uint32_t step, struct slice path, struct arena *arena)
{
    const struct step_definition *s = &saga->steps[step];
    struct brackets shape = mermaid_shape(s);
    bool is_inner = path.len > 0; /* the others are tied to the box */

    if (step_is_group(s)) {
        print_mermaid_group(s, path, step, arena);
    } else {
        (void)printf("  s%.*s%u%s\"", SLICE_ARG(path), (unsigned)step, shape.open);
        print_label(s, &mermaid_words, arena);
        (void)printf("\"%s\n", shape.close);
    }
    if (s->after_count == 0 && !is_inner) {
        (void)printf("  start --> s%u\n", (unsigned)step);
    }
    for (uint32_t i = 0; i < s->after_count; i++) {
        (void)printf("  s%.*s%u --> s%.*s%u\n", SLICE_ARG(path), (unsigned)s->after[i], SLICE_ARG(path),
                     (unsigned)step);
    }
    if (is_last(saga, step) && !is_inner) {
        (void)printf("  s%u --> finish\n", (unsigned)step);
    }
    if (s->compensate.is_set && !step_is_group(s)) {
        print_mermaid_undo(s, path, step, "");
    }
    if (s->terminal) {
        (void)printf("  style s%.*s%u stroke-width:4px\n", SLICE_ARG(path), (unsigned)step);
    }
}

static void print_mermaid_steps(const struct definition *saga, struct slice path, struct arena *arena)
{
    for (uint32_t i = 0; i < saga->step_count; i++) {
        print_mermaid_step(saga, i, path, arena);
    }
}

static void print_mermaid(const struct definition *saga, struct arena *arena)
{
    (void)printf("---\ntitle: \"%.*s\"\n---\nflowchart TB\n  start((start))\n  finish(((end)))\n",
                 SLICE_ARG(saga->name));
    print_mermaid_steps(saga, SLICE(""), arena);
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
