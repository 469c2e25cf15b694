/*
 * Definitions that grow. An open saga or a run grows by one step with each call of an agent; any other saga grows by
 * the members of a group when the group begins. Steps of calls and written steps share the code here that gives them
 * compensators and retries.
 */
#include <string.h>

#include "core/definition/parts.h"

#define ROOM_MIN 1 /* most runs have one call */

/*
 * The array of steps that successive versions of one definition share. A version reads only up to its own count, and
 * the next version writes behind all places that were ever taken. A version that was only tried therefore disturbs
 * nobody: its place stays taken, and the next version copies the array.
 */
struct step_room {
    const struct arena *arena;
    uint32_t capacity, taken;
};

struct definition *definition_open(enum saga_kind kind, const struct tool_shelf *shelf, struct arena *arena)
{
    struct definition *definition = arena_alloc(arena, sizeof(*definition));

    CHECK(kind != SAGA_DEFINED);
    definition->kind = kind;
    definition->shelf = shelf;
    definition->budget = BUDGET_UNBOUNDED;
    definition->name = slice_of(kind == SAGA_OPEN ? OPEN_SAGA_NAME : RUN_SAGA_NAME);
    definition->body = SLICE("{}");
    return definition;
}

/* Makes room for `more` steps behind those of the definition. Steps of a compiled definition belong to it, so they are
 * copied first. */
static void make_room(struct definition *definition, uint32_t more, struct arena *arena)
{
    struct step_room *room = definition->room;
    uint32_t count = definition->step_count;

    if (room && room->arena == arena && room->taken == count && more <= room->capacity - count) {
        return;
    }
    /* In another arena the definition may be only for a trial, so it gets no spare room. */
    bool grows = room && room->arena == arena;
    uint32_t capacity = count + more + (grows && count > ROOM_MIN ? count : ROOM_MIN);
    struct step_definition *steps = arena_array(arena, capacity, sizeof(*steps));

    if (count > 0) {
        memcpy(steps, definition->steps, count * sizeof(*steps));
    }
    definition->steps = steps;
    definition->room = arena_alloc(arena, sizeof(*room));
    *definition->room = (struct step_room){.arena = arena, .capacity = capacity, .taken = count};
}

struct definition *definition_with_step(const struct definition *definition, const struct step_definition *step,
                                        struct arena *arena)
{
    struct definition *next = arena_dup(arena, definition, sizeof(*definition));

    CHECK(definition->kind != SAGA_DEFINED && definition->step_count < UINT32_MAX / 4);
    make_room(next, 1, arena);
    next->steps[next->step_count] = *step;
    next->steps[next->step_count].index = next->steps[next->step_count].member = next->step_count;
    next->room->taken = ++next->step_count;
    return next;
}

/* --- members of groups --- */

/* Makes the step of one element: the group's step without the members that hold for the whole group. */
static struct step_definition element_of(const struct step_definition *group, uint32_t element, struct arena *arena)
{
    struct step_definition step = *group;

    step.id = step.name = arena_printf(arena, "%.*s#%u", SLICE_ARG(group->id), (unsigned)element);
    step.for_each = step.when = (struct template){0};
    step.concurrency = 0;
    step.after = NULL;
    step.after_count = 0;
    step.group = group->index;
    step.element = element;
    return step;
}

static struct step_definition member_of_child(const struct step_definition *group, uint32_t member, uint32_t first,
                                              struct arena *arena)
{
    struct step_definition step = group->child->steps[member];
    uint32_t *after = step.after_count > 0 ? arena_array(arena, step.after_count, sizeof(*after)) : NULL;

    for (uint32_t i = 0; i < step.after_count; i++) {
        after[i] = first + step.after[i];
    }
    step.after = after;
    step.id = step.name = arena_printf(arena, "%.*s/%.*s", SLICE_ARG(group->id), SLICE_ARG(step.id));
    step.group = group->index;
    step.element = ELEMENT_NONE;
    step.written_in = group->child;
    step.member = member;
    return step;
}

struct definition *definition_with_members(const struct definition *definition, uint32_t step, uint32_t count,
                                           struct arena *arena, uint32_t *first)
{
    CHECK(step < definition->step_count && step_is_group(&definition->steps[step]));
    const struct step_definition *group = &definition->steps[step];
    bool is_each = template_is_set(&group->for_each);

    CHECK(is_each == (count != ELEMENT_NONE));
    count = is_each ? count : group->child->written_count;
    if (definition->step_count > SAGA_STEPS_MAX || count > SAGA_STEPS_MAX - definition->step_count) {
        return NULL;
    }
    struct definition *next = arena_dup(arena, definition, sizeof(*definition));

    *first = definition->step_count;
    make_room(next, count, arena);
    for (uint32_t i = 0; i < count; i++) {
        struct step_definition member =
            is_each ? element_of(group, i, arena) : member_of_child(group, i, *first, arena);

        member.index = *first + i;
        next->steps[member.index] = member;
    }
    next->step_count += count;
    next->room->taken = next->step_count;
    return next;
}

static bool awaits_itself(const struct definition *definition, struct slice signal)
{
    uint32_t count = definition->written_count ? definition->written_count : definition->step_count;

    for (uint32_t i = 0; i < count; i++) {
        const struct step_definition *step = &definition->steps[i];

        if (step->kind == STEP_SIGNAL && slice_equal(step->signal_name, signal)) {
            return true;
        }
    }
    return false;
}

bool definition_awaits(const struct definition *definition, struct slice signal)
{
    for (uint32_t i = 0; i < definition->child_count; i++) {
        if (awaits_itself(definition->children[i], signal)) {
            return true;
        }
    }
    return awaits_itself(definition, signal);
}

enum effect tool_effect_mildest(const struct tool *tool)
{
    if (!tool->conditional) {
        return tool->effect;
    }
    return effect_stricter(tool->effect_then, tool->effect_else) == tool->effect_then ? tool->effect_else
                                                                                      : tool->effect_then;
}

bool tool_may_undo(const struct tool *tool)
{
    return tool_effect_mildest(tool) != EFFECT_READ && tool->effect != EFFECT_ONCE;
}

bool step_definition_of_call(const struct tool *tool, const struct tool *undo, struct step_definition *out)
{
    struct step_definition step = {.group = UINT32_MAX,
                                   .element = ELEMENT_NONE,
                                   .tool = tool,
                                   .retry = tool->retry,
                                   .timeout_ms = tool->timeout_ms};

    if (tool->compensate.is_set) {
        if (!undo || !tool_may_undo(undo)) {
            return false;
        }
        step.compensate = tool->compensate;
        compensator_resolve(&step.compensate, undo);
    } else if (!tool->terminal && tool->effect != EFFECT_READ) {
        return false;
    }
    step.terminal = tool->terminal;
    *out = step;
    return true;
}

void compensator_resolve(struct compensator *compensator, const struct tool *tool)
{
    compensator->tool = tool;
    compensator->retry = retry_policy_of_undo(compensator, tool->effect);
}

/* --- retries --- */

/* A `once` call leaves once, even when the tool allows more attempts for its other class. */
static struct retry_policy of_class(struct retry_policy policy, enum effect effect)
{
    policy.max_attempts = effect == EFFECT_ONCE ? 1 : policy.max_attempts;
    return policy;
}

struct retry_policy retry_policy_of(const struct tool *tool, enum effect effect)
{
    return of_class(retry_policy_with(retry_policy_default(effect), &tool->own_retry), effect);
}

struct retry_policy retry_policy_of_step(const struct step_definition *step, enum effect effect)
{
    return of_class(retry_policy_with(retry_policy_of(step->tool, effect), &step->own_retry), effect);
}

struct retry_policy retry_policy_of_undo(const struct compensator *compensate, enum effect effect)
{
    return of_class(retry_policy_with(retry_policy_of(compensate->tool, effect), &compensate->own_retry), effect);
}
