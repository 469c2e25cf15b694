/*
 * Which step belongs to which group, the order among steps of different groups, and the phase of a step: everything
 * that follows from the definition and the state. decide/group.c decides what groups do.
 */
#include "core/definition/graph.h"
#include "core/saga/machine.h"

/* --- who belongs to whom --- */

static const struct step_definition *definition_of(const struct saga *saga, uint32_t step)
{
    return &saga->definition->steps[step];
}

static uint32_t group_of(const struct saga *saga, uint32_t step)
{
    return saga->definition->steps[step].group;
}

static bool is_for_each(const struct saga *saga, uint32_t step)
{
    return template_is_set(&definition_of(saga, step)->for_each);
}

static bool is_child(const struct saga *saga, uint32_t step)
{
    return definition_of(saga, step)->kind == STEP_SAGA && !is_for_each(saga, step);
}

bool step_has_call(const struct saga *saga, uint32_t step)
{
    const struct step_definition *definition = definition_of(saga, step);

    return definition->kind == STEP_CALL && !step_is_group(definition);
}

uint32_t step_scope(const struct saga *saga, uint32_t step)
{
    uint32_t group = group_of(saga, step);

    while (group != STEP_NONE && is_for_each(saga, group)) {
        group = group_of(saga, group); /* an element is written where its for_each is */
    }
    return group;
}

bool step_lies_in(const struct saga *saga, uint32_t step, uint32_t group)
{
    uint32_t at = group == STEP_NONE ? STEP_NONE : group_of(saga, step);

    while (at != group && at != STEP_NONE) {
        at = group_of(saga, at);
    }
    return at == group;
}

/* --- order --- */

static uint32_t depth_of(const struct saga *saga, uint32_t step)
{
    uint32_t depth = 0;

    while ((step = group_of(saga, step)) != STEP_NONE) {
        depth++;
    }
    return depth;
}

/* Replaces both steps by their ancestors directly below the lowest group that they share. Returns false when one lies
 * in the other. */
static bool lift(const struct saga *saga, uint32_t *a, uint32_t *b)
{
    uint32_t depth_a, depth_b;

    if (group_of(saga, *a) == group_of(saga, *b)) {
        return *a != *b;
    }
    depth_a = depth_of(saga, *a);
    depth_b = depth_of(saga, *b);
    for (; depth_a > depth_b; depth_a--) {
        *a = group_of(saga, *a);
    }
    for (; depth_b > depth_a; depth_b--) {
        *b = group_of(saga, *b);
    }
    if (*a == *b) {
        return false;
    }
    while (group_of(saga, *a) != group_of(saga, *b)) {
        *a = group_of(saga, *a);
        *b = group_of(saga, *b);
    }
    return true;
}

bool step_comes_before(const struct saga *saga, uint32_t a, uint32_t b)
{
    const struct step_definition *definition;
    uint32_t group;

    if (saga_is_open(saga)) {
        return saga->steps[a].settled_seq && saga->steps[a].settled_seq < saga->steps[b].begun_seq;
    }
    if (!lift(saga, &a, &b)) {
        return false;
    }
    definition = definition_of(saga, a);
    group = definition->group;
    if (group != STEP_NONE && is_for_each(saga, group)) {
        return definition_of(saga, group)->concurrency <= 1 && definition->element < definition_of(saga, b)->element;
    }
    return graph_before(definition->written_in ? definition->written_in : saga->definition, definition->member,
                        definition_of(saga, b)->member);
}

bool step_undone_before(const struct saga *saga, uint32_t a, uint32_t b)
{
    if (!lift(saga, &a, &b)) {
        return a > b;
    }
    if (definition_of(saga, a)->element != ELEMENT_NONE) {
        return definition_of(saga, a)->element > definition_of(saga, b)->element;
    }
    return saga->steps[a].start_order != saga->steps[b].start_order
               ? saga->steps[a].start_order > saga->steps[b].start_order
               : a > b;
}

/* --- phases --- */

enum saga_phase step_phase(const struct saga *saga, uint32_t step)
{
    enum saga_phase phase = saga->phase;

    for (uint32_t at = group_of(saga, step); at != STEP_NONE; at = group_of(saga, at)) {
        phase = saga->steps[at].group_phase > phase ? saga->steps[at].group_phase : phase;
    }
    return phase;
}

bool group_is_open(const struct saga *saga, uint32_t step)
{
    return saga->steps[step].forward.state == OP_OPEN && saga->steps[step].group_phase == PHASE_FORWARD &&
           step_phase(saga, step) == PHASE_FORWARD;
}

bool group_lets_begin(const struct saga *saga, uint32_t step)
{
    const struct step_definition *definition = definition_of(saga, step);
    const struct step *group;
    uint32_t room;

    if (definition->group == STEP_NONE) {
        return true;
    }
    if (definition->element != ELEMENT_NONE) {
        group = &saga->steps[definition->group];
        room = definition_of(saga, definition->group)->concurrency;
        if (definition->element != group->begun || group->begun - group->over >= (room ? room : 1)) {
            return false;
        }
    }
    return group_is_open(saga, definition->group);
}

bool group_is_undone_alone(const struct saga *saga, uint32_t step)
{
    return step != STEP_NONE && saga->steps[step].group_phase == PHASE_UNDO;
}

uint32_t step_undone_alone(const struct saga *saga, uint32_t step)
{
    uint32_t at = group_of(saga, step);

    while (at != STEP_NONE && !group_is_undone_alone(saga, at)) {
        at = group_of(saga, at);
    }
    return at;
}

/* A terminal step is the last one of its saga, and the group that holds it is terminal there. So it is found from
 * outside in. */
bool passed_return_in(const struct saga *saga, uint32_t group)
{
    while (group == STEP_NONE || saga->steps[group].forward.state != OP_NONE) {
        uint32_t first = group == STEP_NONE ? 0 : saga->steps[group].first;
        uint32_t count = group == STEP_NONE ? saga->definition->written_count : saga->steps[group].count, i = 0;

        if (group != STEP_NONE && !is_child(saga, group)) {
            return false;
        }
        while (i < count && !definition_of(saga, first + i)->terminal) {
            i++;
        }
        if (i == count) {
            return false;
        }
        if (step_has_call(saga, first + i)) {
            return saga->steps[first + i].forward.state == OP_COMPLETED;
        }
        group = first + i;
    }
    return false;
}

bool undone_around(const struct saga *saga, uint32_t step)
{
    uint32_t alone = step_undone_alone(saga, step);

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if ((step_undo(&saga->steps[i])->attempts > 0 || saga->steps[i].undone_by.ptr) &&
            step_undone_alone(saga, i) == alone) {
            return true;
        }
    }
    return false;
}

uint32_t group_that_fails(const struct saga *saga, uint32_t step)
{
    uint32_t at = group_of(saga, step);

    while (at != STEP_NONE && !(is_child(saga, at) && saga->steps[at].forward.state == OP_OPEN &&
                                definition_of(saga, at)->on_failure != ON_FAILURE_COMPENSATE)) {
        at = group_of(saga, at);
    }
    return at;
}
