/*
 * Checks paths against what is known of their values when a definition is registered. `.input` and `.args` have a
 * schema, and a result has the template that makes it. A path to a value that can never exist is refused, because it
 * would be null in the middle of a run. A path that a schema allows but does not list gets a warning.
 */
#include <string.h>

#include "base/json.h"
#include "core/definition/parts.h"
#include "core/language/shape.h"

#define SOURCES_MAX 3 /* sources of a result: the call, a probe that finds it, a precheck */

struct origin { /* where a value comes from */
    struct shape shapes[SOURCES_MAX];
    size_t count;
    bool is_array;      /* the shapes are those of the elements */
    struct slice named; /* the name of the value in messages: "the saga's `input`" */
};

struct seen { /* the values that the expressions of one place may name */
    struct reader *reader;
    const struct definition *definition; /* has `.input` and `.steps`; NULL when they are checked elsewhere */
    const struct tool *tool;             /* has `.args` and `.result`; NULL when they are checked elsewhere */
    bool has_result;                     /* `.result` is the result of the tool */
    struct slice pointer;                /* the place for messages; SLICE_NONE for the place of the expression itself */
};

/* --- where values come from --- */

static struct shape schema_shape(const struct schema *schema)
{
    return (struct shape){.kind = schema ? SHAPE_SCHEMA : SHAPE_ANY, .schema = schema};
}

static struct shape template_shape(const struct template *template)
{
    return template_is_set(template) ? (struct shape){.kind = SHAPE_JSON, .text = template->json}
                                     : (struct shape){.kind = SHAPE_ANY};
}

static struct origin result_of_tool(struct reader *reader, const struct tool *tool)
{
    struct origin origin = {.shapes = {template_shape(&tool->result)}, .count = 1};

    origin.named = arena_printf(reader->arena, "the `result` of the tool `%.*s`", SLICE_ARG(tool->name));
    if (tool->has_probe) {
        origin.shapes[origin.count++] = template_shape(&tool->probe.result);
    }
    if (tool->has_precheck && template_is_set(&tool->precheck.result)) {
        origin.shapes[origin.count++] = template_shape(&tool->precheck.result);
    }
    return origin;
}

static struct origin result_of_step(struct reader *reader, const struct step_definition *step)
{
    struct origin origin = {.count = 1};

    switch (step->kind) {
    case STEP_CALL:
        if (step->tool) {
            origin = result_of_tool(reader, step->tool);
        }
        break;
    case STEP_SAGA:
        if (step->child) {
            origin.shapes[0] = template_shape(&step->child->output);
            origin.named = arena_printf(reader->arena, "the `output` of the saga `%.*s`", SLICE_ARG(step->child->name));
        }
        break;
    case STEP_APPROVE:
        origin.shapes[0] = (struct shape){.kind = SHAPE_WORDS, .words = "decision actor note"};
        origin.named = SLICE("the result of an approval");
        break;
    case STEP_SLEEP:
    case STEP_SIGNAL:
        break;
    }
    origin.is_array = template_is_set(&step->for_each);
    return origin;
}

static const struct step_definition *step_named(const struct definition *definition, struct slice id)
{
    for (uint32_t i = 0; i < definition->step_count; i++) {
        if (slice_equal(definition->steps[i].id, id)) {
            return &definition->steps[i];
        }
    }
    return NULL;
}

/* Finds the value that `path` leads into, and how many parts of the path lead there. Returns false when nothing is
 * known about the value. */
static bool find_origin(const struct seen *seen, const struct path_use *path, struct origin *out, size_t *used)
{
    struct slice root = path->parts[0];
    const struct step_definition *step;

    *used = 1;
    *out = (struct origin){.count = 1};
    if (!root.ptr) {
        return false;
    }
    if (seen->tool && slice_is(root, "args")) {
        out->shapes[0] = schema_shape(seen->tool->input);
        out->named = arena_printf(seen->reader->arena, "the `input` of the tool `%.*s`", SLICE_ARG(seen->tool->name));
        return true;
    }
    if (seen->tool && seen->has_result && slice_is(root, "result")) {
        *out = result_of_tool(seen->reader, seen->tool);
        return true;
    }
    if (seen->definition && slice_is(root, "input")) {
        out->shapes[0] = schema_shape(seen->definition->input);
        out->named = SLICE("the `input` of the saga");
        return true;
    }
    if (!seen->definition || !slice_is(root, "steps") || path->part_count < 3 || !path->parts[1].ptr ||
        !path->parts[2].ptr) {
        return false;
    }
    *used = 2;
    step = step_named(seen->definition, path->parts[1]);
    if (!step || !slice_is(path->parts[2], "result")) {
        out->shapes[0] = (struct shape){.kind = SHAPE_WORDS, .words = "result status error"};
        out->named = SLICE("what is known of a step");
        return step != NULL;
    }
    *used = 3;
    *out = result_of_step(seen->reader, step);
    return true;
}

/* --- following them --- */

static enum shape_says follow(const struct seen *seen, const struct path_use *path, size_t used, bool is_array,
                              struct shape shape, struct slice *why)
{
    if (is_array && used < path->part_count) {
        if (path->parts[used].ptr) {
            *why = SLICE("it is an array, one result for each element");
            return SHAPE_FORBIDS;
        }
        used++;
    }
    for (size_t i = used; i < path->part_count; i++) {
        enum shape_says says = shape_follow(&shape, path->parts[i], seen->reader->arena, why);

        if (says != SHAPE_ALLOWS) {
            return says;
        }
    }
    return SHAPE_ALLOWS;
}

static void on_path(void *context, const struct path_use *path)
{
    const struct seen *seen = context;
    struct slice why = SLICE_NONE, pointer = seen->pointer.ptr ? seen->pointer : path->pointer;
    size_t used, forbidden = 0, omitted = 0;
    struct origin origin;

    if (path->part_count < 2 || !find_origin(seen, path, &origin, &used)) {
        return;
    }
    for (size_t i = 0; i < origin.count; i++) {
        enum shape_says says = follow(seen, path, used, origin.is_array, origin.shapes[i], &why);

        forbidden += says == SHAPE_FORBIDS;
        omitted += says != SHAPE_ALLOWS;
    }
    if (forbidden == origin.count) {
        faults_add(seen->reader->faults, pointer, "`%.*s` is never there, by %.*s: %.*s", SLICE_ARG(path->text),
                   SLICE_ARG(origin.named), SLICE_ARG(why));
    } else if (omitted > 0 && seen->reader->warnings) {
        faults_add(seen->reader->warnings, pointer, "`%.*s` may never be there, by %.*s: %.*s; list it there",
                   SLICE_ARG(path->text), SLICE_ARG(origin.named), SLICE_ARG(why));
    }
}

static void look(struct seen *seen, const struct template *template)
{
    template_each_path(template, on_path, seen);
}

/* --- a tool --- */

static void look_at_rules(struct seen *seen, const struct outcome_rules *rules)
{
    look(seen, &rules->completed);
    look(seen, &rules->running);
    look(seen, &rules->retry);
    look(seen, &rules->no_effect);
    look(seen, &rules->absent);
}

void check_tool_paths(struct reader *reader, const struct tool *tool)
{
    struct seen seen = {.reader = reader, .tool = tool};

    if (!reader->holds) {
        return;
    }
    look(&seen, &tool->settings);
    look(&seen, &tool->effect_if);
    look(&seen, &tool->scope);
    look_at_rules(&seen, &tool->outcome);
    look(&seen, &tool->result);
    look(&seen, &tool->error);
    if (tool->has_probe) {
        look(&seen, &tool->probe.settings);
        look_at_rules(&seen, &tool->probe.outcome);
        look(&seen, &tool->probe.result);
    }
    if (tool->has_precheck) {
        look(&seen, &tool->precheck.settings);
        look(&seen, &tool->precheck.done);
        look(&seen, &tool->precheck.blocked);
        look(&seen, &tool->precheck.result);
    }
    seen.has_result = true;
    look(&seen, &tool->cost);
    look(&seen, &tool->compensate.with);
}

/* --- a saga --- */

static void look_at_step(struct seen *seen, const struct step_definition *step, struct slice steps_pointer)
{
    bool is_tools = step->tool && step->tool->compensate.is_set && step->compensate.is_set &&
                    slice_equal(step->compensate.pointer, step->tool->compensate.pointer);

    look(seen, &step->with);
    look(seen, &step->scope);
    look(seen, &step->for_each);
    look(seen, &step->sleep);
    look(seen, &step->show);
    look(seen, &step->when);
    if (is_tools) { /* `.args` and `.result` were checked with the tool */
        seen->pointer = place_join(seen->reader->arena,
                                   reader_element_pointer(seen->reader, steps_pointer, step->index), SLICE("call"));
    } else {
        seen->tool = step->tool;
        seen->has_result = true;
    }
    look(seen, &step->compensate.with);
}

void check_saga_paths(struct reader *reader, const struct definition *definition, struct slice steps_pointer)
{
    struct seen saga = {.reader = reader, .definition = definition};

    if (!reader->holds) {
        return;
    }
    look(&saga, &definition->output);
    look(&saga, &definition->tag_values);
    for (uint32_t i = 0; i < definition->lock_count; i++) {
        look(&saga, &definition->locks[i].key);
    }
    for (uint32_t i = 0; i < definition->follower_count; i++) {
        look(&saga, &definition->followers[i].input);
        look(&saga, &definition->followers[i].id);
    }
    for (uint32_t i = 0; i < definition->step_count; i++) {
        struct seen seen = saga;

        look_at_step(&seen, &definition->steps[i], steps_pointer);
    }
}
