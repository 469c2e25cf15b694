/*
 * Reads sagas inside sagas. The steps of a child become steps of the one saga that runs. A child may not have members
 * that hold for the whole saga (locks, budget, followers), because they would silently do nothing there.
 */
#include <string.h>

#include "base/json.h"
#include "core/definition/parts.h"

/* Writes "a > b > c": the sagas that are being read, from the outermost to `last`. */
static struct slice chain_text(const struct nesting *nesting, struct slice last, struct arena *arena)
{
    struct slice text = last;

    for (; nesting; nesting = nesting->around) {
        text = arena_printf(arena, "%.*s > %.*s", SLICE_ARG(nesting->name), SLICE_ARG(text));
    }
    return text;
}

static void check_members(struct reader *reader, const struct definition *child, struct slice place)
{
    const struct {
        bool is_there;
        const char *name, *why;
    } refused[] = {
        {child->lock_count > 0, "locks",
         "a saga that waits for locks in the middle of its work may wait for ever; put the `locks` into the saga that "
         "has this step"},
        {child->budget.calls >= 0 || child->budget.emissions >= 0 || child->budget.micros >= 0, "budget",
         "its calls are booked to the saga that has this step; put the `budget` there"},
        {child->follower_count > 0, "then",
         "what follows is started when the whole saga has completed; put the `then` into the saga that has this step"},
    };

    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        if (refused[i].is_there) {
            faults_add(reader->faults, place, "the saga `%.*s` has `%s`, which does not work in a child: %s",
                       SLICE_ARG(child->name), refused[i].name, refused[i].why);
        }
    }
}

static bool is_in_circle(struct reader *reader, struct slice name, struct slice place)
{
    for (const struct nesting *around = reader->nesting; around; around = around->around) {
        if (slice_equal(around->name, name)) {
            faults_add(reader->faults, place,
                       "the saga `%.*s` would contain itself (%.*s); a saga that repeats itself is started anew by "
                       "`then`",
                       SLICE_ARG(name), SLICE_ARG(chain_text(reader->nesting, name, reader->arena)));
            return true;
        }
    }
    return false;
}

static void refuse_depth(struct reader *reader, struct slice name, uint32_t height, struct slice place)
{
    faults_add(reader->faults, place,
               "sagas lie in each other %u deep from here (%.*s); at most %d are allowed, so let one of them do the "
               "work of another",
               (unsigned)height, SLICE_ARG(chain_text(reader->nesting, name, reader->arena)), CHILD_DEPTH_MAX);
}

static bool has_terminal(const struct definition *child)
{
    for (uint32_t i = 0; i < child->written_count; i++) {
        if (child->steps[i].terminal) {
            return true;
        }
    }
    return false;
}

void child_read(struct saga_reader *s, struct step_definition *step, const struct members *m)
{
    struct reader *reader = s->reader;
    struct slice value = members_at(m, "saga"), place = members_pointer(m, "saga"), why = SLICE_NONE, near;
    struct slice name = json_type(value) == JSON_STRING ? json_string(value, reader->arena) : SLICE_NONE;
    const struct definition *child = NULL;

    if (!name.ptr) {
        faults_add(reader->faults, place, "`saga` is %.*s; it must be the name of a saga",
                   SLICE_ARG(value_excerpt(value, reader->arena)));
        return;
    }
    step->child_name = name;
    if (is_in_circle(reader, name, place)) {
        return;
    }
    if (reader->nesting->depth >= CHILD_DEPTH_MAX) { /* the limit of depth is checked before the next child is read */
        refuse_depth(reader, name, reader->nesting->depth + 1, place);
        return;
    }
    switch (s->finder->find_saga(s->finder, name, &child, &why)) {
    case TOOL_FOUND:
    case TOOL_FLAWED: /* only tools can be flawed */
        break;
    case TOOL_BROKEN:
        if (why.ptr) {
            faults_add(reader->faults, place, "the saga `%.*s` cannot be a child: %.*s", SLICE_ARG(name),
                       SLICE_ARG(why));
        }
        return;
    case TOOL_MISSING:
        near = s->finder->near_saga ? s->finder->near_saga(s->finder, name) : SLICE_NONE;
        faults_add(reader->faults, place, "there is no saga `%.*s` in this document%s%.*s", SLICE_ARG(name),
                   reader_not_registered(reader), SLICE_ARG(did_you_mean(near, reader->arena)));
        return;
    }
    step->child = child;
    step->terminal = has_terminal(child);
    check_members(reader, child, place);
    if (child->height + 1 > CHILD_DEPTH_MAX) {
        refuse_depth(reader, name, child->height + 1, place);
    }
}

/* --- what all of it uses --- */

/* Adds a tool to the list, which is sorted by name and has each tool once. The search is binary because hostile
 * documents name many tools. */
static void collect_tool(struct definition *definition, const struct tool *tool)
{
    uint32_t low = 0, high = definition->tool_count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        int order = slice_compare(definition->tools[middle]->name, tool->name);

        if (order == 0) {
            return;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    memmove(definition->tools + low + 1, definition->tools + low,
            (definition->tool_count - low) * sizeof(*definition->tools));
    definition->tools[low] = tool;
    definition->tool_count++;
}

static void collect_child(struct definition *definition, const struct definition *child)
{
    uint32_t low = 0, high = definition->child_count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        int order = slice_compare(definition->children[middle]->name, child->name);

        if (order == 0) {
            return;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    memmove(definition->children + low + 1, definition->children + low,
            (definition->child_count - low) * sizeof(*definition->children));
    definition->children[low] = child;
    definition->child_count++;
}

void children_collect(struct saga_reader *s)
{
    struct definition *definition = s->definition;
    size_t tools_max = 2 * (size_t)definition->step_count, children_max = 0;

    for (uint32_t i = 0; i < definition->step_count; i++) {
        const struct definition *child = definition->steps[i].child;

        definition->step_total++;
        if (child) {
            tools_max += child->tool_count;
            children_max += 1 + child->child_count;
            definition->height = child->height + 1 > definition->height ? child->height + 1 : definition->height;
            definition->step_total +=
                child->step_total; /* at most 256 children with SAGA_STEPS_MAX steps each: the sum cannot overflow */
        }
    }
    definition->tools = arena_array(s->reader->arena, tools_max + 1, sizeof(*definition->tools));
    definition->children =
        children_max > 0 ? arena_array(s->reader->arena, children_max, sizeof(*definition->children)) : NULL;
    for (uint32_t i = 0; i < definition->step_count; i++) {
        const struct step_definition *step = &definition->steps[i];

        if (step->tool && !s->is_inline[i]) {
            collect_tool(definition, step->tool);
        }
        if (step->compensate.tool) {
            collect_tool(definition, step->compensate.tool);
        }
        if (!step->child) {
            continue;
        }
        collect_child(definition, step->child);
        for (uint32_t k = 0; k < step->child->child_count; k++) {
            collect_child(definition, step->child->children[k]);
        }
        for (uint32_t k = 0; k < step->child->tool_count; k++) {
            collect_tool(definition, step->child->tools[k]);
        }
    }
    if (definition->step_total > SAGA_STEPS_MAX) {
        faults_add(s->reader->faults, s->steps_pointer,
                   "with the steps of its children the saga has more than %u steps; start some of them by `then`",
                   SAGA_STEPS_MAX);
    }
}
