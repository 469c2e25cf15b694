/*
 * Checks the rules about the graph of a saga. Each message names the step that breaks the rule and the change that
 * mends it, because a reader of a definition sees steps and not paths.
 */
#include <string.h>

#include "base/json.h"
#include "core/definition/graph.h"
#include "core/definition/parts.h"

/* --- the terminal rule --- */

/* Names what makes a step terminal: its tool, or a step of its child. */
static struct slice what_ends(const struct step_definition *step, struct arena *arena)
{
    if (step->tool) {
        return step->tool->name;
    }
    for (uint32_t i = 0; i < step->child->written_count; i++) {
        const struct step_definition *member = &step->child->steps[i];

        if (member->terminal) {
            return arena_printf(arena, "`%.*s` in the child `%.*s`, by %.*s", SLICE_ARG(member->id),
                                SLICE_ARG(step->child_name), SLICE_ARG(what_ends(member, arena)));
        }
    }
    UNREACHABLE();
}

void check_terminal(struct reader *reader, const struct definition *definition, struct slice steps_pointer)
{
    const struct step_definition *terminal = NULL;

    for (uint32_t i = 0; i < definition->step_count; i++) {
        const struct step_definition *step = &definition->steps[i];

        if (!step->terminal) {
            continue;
        }
        if (template_is_set(&step->for_each)) {
            faults_add(
                reader->faults,
                place_join(reader->arena, reader_element_pointer(reader, steps_pointer, i), SLICE("for_each")),
                "the step `%.*s` is terminal (%.*s), and with `for_each` one element could fail when another has "
                "completed for good; call it once with all elements, or start a saga for each of them by `then`",
                SLICE_ARG(step->id), SLICE_ARG(what_ends(step, reader->arena)));
        }
        if (terminal) {
            bool conditional = template_is_set(&terminal->when) || template_is_set(&step->when);

            faults_add(reader->faults, reader_element_pointer(reader, steps_pointer, i),
                       "the steps `%.*s` and `%.*s` are both terminal "
                       "(%.*s, %.*s), but when one has completed and the other fails, nothing could be undone; there "
                       "is one terminal step "
                       "at most%s: give one of the tools a compensator, or move it to a saga of its own",
                       SLICE_ARG(terminal->id), SLICE_ARG(step->id), SLICE_ARG(what_ends(terminal, reader->arena)),
                       SLICE_ARG(what_ends(step, reader->arena)),
                       conditional ? ", and that a `when` always keeps them apart cannot be proven" : "");
        } else {
            terminal = step;
        }
    }
    for (uint32_t i = 0; terminal && i < definition->step_count; i++) {
        const struct step_definition *step = &definition->steps[i];

        if (step->terminal || graph_before(definition, i, terminal->index)) {
            continue;
        }
        struct slice place = reader_element_pointer(reader, steps_pointer, i);

        if (graph_before(definition, terminal->index, i)) {
            faults_add(
                reader->faults, place,
                "the step `%.*s` comes after the terminal step `%.*s`, which could not be undone when "
                "`%.*s` fails; let `%.*s` come before it: write it above `%.*s`, or name it in the `after` of `%.*s`",
                SLICE_ARG(step->id), SLICE_ARG(terminal->id), SLICE_ARG(step->id), SLICE_ARG(step->id),
                SLICE_ARG(terminal->id), SLICE_ARG(terminal->id));
        } else {
            faults_add(reader->faults, place,
                       "the step `%.*s` may run beside the terminal step `%.*s`, which could not be undone when "
                       "`%.*s` fails; add `%.*s` to the `after` of `%.*s`",
                       SLICE_ARG(step->id), SLICE_ARG(terminal->id), SLICE_ARG(step->id), SLICE_ARG(step->id),
                       SLICE_ARG(terminal->id));
        }
    }
}

/* --- references --- */

struct reference {
    struct reader *reader;
    const struct definition *definition;
    const struct step_definition
        *step;               /* the step that has the expression; NULL for the output, which may name every step */
    struct slice pointer;    /* the place for messages; SLICE_NONE for the place of the expression itself */
    const struct tool *tool; /* the tool whose compensator has these arguments; NULL for the step's own arguments */
    bool is_condition;       /* a condition takes null as false */
};

static struct slice near_step(const struct reader *reader, const struct definition *definition, struct slice id)
{
    for (uint32_t i = 0; reader_has_time(reader) && i < definition->step_count; i++) {
        if (definition->steps[i].id.len > 2 && word_distance(definition->steps[i].id, id) < 3) {
            return definition->steps[i].id;
        }
    }
    return SLICE_NONE;
}

static bool is_program(const struct template *when, const struct slice text)
{
    const struct expression *e = &when->expressions[0];
    size_t at = 0;

    for (size_t i = 0; i < e->source.len; i++) { /* skips white space */
        if (!strchr(" \t\r\n", e->source.ptr[i]) && (at == text.len || text.ptr[at++] != e->source.ptr[i])) {
            return false;
        }
    }
    return at == text.len;
}

/* Does it follow from a step's `when` that the step `named` has completed? */
static bool when_proves(struct arena *arena, const struct step_definition *step, const struct step_definition *named)
{
    const struct expression *e = template_is_set(&step->when) ? step->when.expressions : NULL;

    if (!e) {
        return false;
    }
    if ((named->on_failure != ON_FAILURE_CONTINUE || template_is_set(&named->for_each)) &&
        template_is_set(&named->when) && slice_equal(named->when.expressions[0].source, e->source)) {
        return true; /* either both steps run or neither does */
    }
    if (e->kind == EXPRESSION_PLAIN) {
        return e->part_count >= 3 && slice_is(e->parts[0].member, "steps") &&
               slice_equal(e->parts[1].member, named->id) && slice_is(e->parts[2].member, "result");
    }
    return is_program(&step->when, arena_printf(arena, ".steps.%.*s.status==\"completed\"", SLICE_ARG(named->id))) ||
           is_program(&step->when, arena_printf(arena, ".steps.%.*s.result!=null", SLICE_ARG(named->id)));
}

/* Says why the result of a step is always null. Returns NULL when it is not. */
static const char *why_always_null(const struct step_definition *named)
{
    if (template_is_set(&named->for_each)) {
        return NULL;
    }
    return named->kind == STEP_SLEEP ? "a `sleep` gives nothing"
           : named->kind == STEP_SAGA && named->child && !template_is_set(&named->child->output)
               ? "that saga has no `output`; give it one"
               : NULL;
}

/* Reports a use of a result that may be null although its step is over. */
static void check_null(const struct reference *r, const struct step_definition *named, struct slice whose,
                       struct slice place)
{
    bool skipped = template_is_set(&named->when);
    /* Elements of `for_each` fail one by one: the result is still an array, with nulls for the failed elements. */
    bool goes_on = named->on_failure == ON_FAILURE_CONTINUE && !template_is_set(&named->for_each);

    if (!r->step || r->is_condition) {
        return;
    }
    if (why_always_null(named)) {
        faults_add(r->reader->faults, place, "%.*s`.steps.%.*s.result` is always null: %s", SLICE_ARG(whose),
                   SLICE_ARG(named->id), why_always_null(named));
        return;
    }
    if ((!skipped && !goes_on) || when_proves(r->reader->arena, r->step, named)) {
        return;
    }
    faults_add(r->reader->faults, place,
               "%.*s`.steps.%.*s.result` is null here when the step `%.*s` %s; say what holds then with jq's `//`, "
               "as in ${ .steps.%.*s.result.MEMBER // null }, or give the step `%.*s` the `when` "
               "${ .steps.%.*s.status == \"completed\" }",
               SLICE_ARG(whose), SLICE_ARG(named->id), SLICE_ARG(named->id),
               skipped ? "was skipped by its `when`" : "has failed, which `on_failure: continue` allows",
               SLICE_ARG(named->id), SLICE_ARG(r->step->id), SLICE_ARG(named->id));
}

static void on_reference(void *context, const struct step_use *use)
{
    struct slice id = use->step_id, pointer = use->pointer;
    const struct reference *r = context;
    const struct definition *definition = r->definition;
    struct slice place = r->pointer.ptr ? r->pointer : pointer;
    struct arena *arena = r->reader->arena;
    struct slice whose =
        r->tool ? arena_printf(arena, "the compensator's arguments of the tool `%.*s` use ", SLICE_ARG(r->tool->name))
                : SLICE("");
    uint32_t index = 0;

    while (index < definition->step_count && !slice_equal(definition->steps[index].id, id)) {
        index++;
    }
    if (index == definition->step_count) {
        faults_add(r->reader->faults, place, "%.*s`.steps.%.*s`: there is no such step%.*s", SLICE_ARG(whose),
                   SLICE_ARG(id), SLICE_ARG(did_you_mean(near_step(r->reader, definition, id), arena)));
        return;
    }
    if (!r->step || !definition->ancestors || graph_before(definition, index, r->step->index)) {
        if (!use->takes_null) {
            check_null(r, &definition->steps[index], whose, place);
        }
        return;
    }
    if (index == r->step->index) {
        faults_add(r->reader->faults, place,
                   "%.*s`.steps.%.*s` is the step itself, which has no result yet; in `compensate` its result "
                   "is `.result`",
                   SLICE_ARG(whose), SLICE_ARG(id));
    } else if (graph_before(definition, r->step->index, index)) {
        faults_add(r->reader->faults, place,
                   "%.*s`.steps.%.*s` comes after the step `%.*s`, so its result cannot be used here", SLICE_ARG(whose),
                   SLICE_ARG(id), SLICE_ARG(r->step->id));
    } else {
        faults_add(r->reader->faults, place,
                   "%.*s`.steps.%.*s` need not have ended when the step `%.*s` runs; add `%.*s` to the `after` "
                   "of `%.*s`",
                   SLICE_ARG(whose), SLICE_ARG(id), SLICE_ARG(r->step->id), SLICE_ARG(id), SLICE_ARG(r->step->id));
    }
}

void check_references(struct reader *reader, const struct definition *definition, struct slice steps_pointer)
{
    struct reference r = {.reader = reader, .definition = definition};

    template_each_use(&definition->output, on_reference, &r);
    for (uint32_t i = 0; i < definition->follower_count; i++) {
        template_each_use(&definition->followers[i].input, on_reference, &r);
        template_each_use(&definition->followers[i].id, on_reference, &r);
    }
    for (uint32_t i = 0; i < definition->step_count; i++) {
        const struct step_definition *step = &definition->steps[i];
        bool is_tools = step->tool && step->tool->compensate.is_set && step->compensate.is_set &&
                        slice_equal(step->compensate.pointer, step->tool->compensate.pointer);

        r = (struct reference){.reader = reader, .definition = definition, .step = step};
        template_each_use(&step->with, on_reference, &r);
        template_each_use(&step->scope, on_reference, &r);
        template_each_use(&step->for_each, on_reference, &r);
        template_each_use(&step->sleep, on_reference, &r);
        template_each_use(&step->show, on_reference, &r);
        r.is_condition = true;
        template_each_use(&step->when, on_reference, &r);
        r.is_condition = false;
        if (is_tools) { /* the tool may be in another document; the call brings tool and saga together */
            r.tool = step->tool;
            r.pointer = place_join(reader->arena, reader_element_pointer(reader, steps_pointer, i), SLICE("call"));
        }
        template_each_use(&step->compensate.with, on_reference, &r);
    }
}
