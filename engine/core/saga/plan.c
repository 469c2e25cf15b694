/*
 * The undo plan, as it follows from the state: its steps, their order, and whose turn it is.
 *
 * The order is the reverse of the graph; equal steps are ordered by reverse start. A step starts only after all steps
 * that it waits for, so the reverse order of starting is both at once. Elements of for_each are undone from the last to
 * the first.
 */
#include "core/saga/machine.h"

#include <string.h>

/* --- what is in it --- */

static void sort_plan(const struct saga *saga, uint32_t *plan, uint32_t count, uint32_t *spare)
{
    for (uint32_t width = 1; width < count; width *= 2) {
        for (uint32_t from = 0; from < count; from += 2 * width) {
            uint32_t middle = from + width < count ? from + width : count;
            uint32_t end = from + 2 * width < count ? from + 2 * width : count;
            uint32_t a = from, b = middle;

            for (uint32_t i = from; i < end; i++) {
                bool left = b >= end || (a < middle && !step_undone_before(saga, plan[b], plan[a]));

                spare[i] = left ? plan[a++] : plan[b++];
            }
        }
        memcpy(plan, spare, count * sizeof(*plan));
    }
}

uint32_t *saga_make_plan(const struct saga *saga, uint32_t group, struct arena *arena, uint32_t *count)
{
    uint32_t steps = saga->definition->step_count, n = 0;
    uint32_t *plan = arena_array(arena, 2 * (size_t)steps + 1, sizeof(*plan));

    for (uint32_t i = 0; i < steps; i++) {
        if (step_may_stand(saga, i) && saga->steps[i].plan != PLAN_WAIVED && step_lies_in(saga, i, group)) {
            plan[n++] = i;
        }
    }
    sort_plan(saga, plan, n, plan + steps);
    *count = n;
    return plan;
}

uint32_t *saga_make_debts(const struct saga *saga, struct arena *arena, uint32_t *count)
{
    uint32_t *debts = arena_array(arena, saga->definition->step_count + 1, sizeof(*debts)), n = 0;

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (step_may_stand(saga, i)) {
            debts[n++] = i;
        }
    }
    *count = n;
    return debts;
}

bool plan_is_left(enum plan_state plan)
{
    return plan == PLAN_VERDICT || plan == PLAN_READY || plan == PLAN_ACTIVE || plan == PLAN_FAILED;
}

bool saga_undo_is_over(const struct saga *saga)
{
    for (uint32_t i = 0; i < saga->plan_count; i++) {
        if (plan_is_left(saga->steps[saga->plan[i]].plan)) {
            return false;
        }
    }
    return true;
}

/* --- moving in it --- */

/* Counts a unit whose undo begins or ends. A unit counts once in each scope further out; a child that is undone on its
 * own counts nowhere. */
static void count_active(struct saga *saga, uint32_t unit, bool begins)
{
    for (;;) {
        uint32_t scope = step_scope(saga, unit), *active = &saga->steps[unit].undo_active;
        bool was_active = *active > 0;

        *active += begins ? 1 : UINT32_MAX;
        if ((*active > 0) == was_active || group_is_undone_alone(saga, unit)) {
            return;
        }
        if (scope == STEP_NONE) {
            saga->undo_active += begins ? 1 : UINT32_MAX;
            return;
        }
        unit = scope;
    }
}

void plan_move(struct saga *saga, uint32_t step, enum plan_state to)
{
    enum plan_state from = saga->steps[step].plan;
    uint32_t counted = (to != PLAN_NONE) - (uint32_t)(from != PLAN_NONE),
             left = plan_is_left(to) - (uint32_t)plan_is_left(from),
             waived = (to == PLAN_WAIVED) - (uint32_t)(from == PLAN_WAIVED);

    saga->steps[step].plan = to;
    for (uint32_t at = step; at != STEP_NONE; at = saga->definition->steps[at].group) {
        saga->steps[at].undo_count += counted;
        saga->steps[at].undo_left += left;
        saga->steps[at].undo_waived += waived;
    }
    if ((from == PLAN_ACTIVE) != (to == PLAN_ACTIVE)) {
        count_active(saga, step, to == PLAN_ACTIVE);
    }
}

/* --- whose turn it is --- */

static bool is_left_of(const struct saga *saga, uint32_t sibling, uint32_t step)
{
    return saga->steps[sibling].undo_left > 0 && sibling != step && step_comes_before(saga, step, sibling);
}

/* Is a sibling of the step, in its saga, child or for_each, still to be undone first? */
static bool is_held_among_siblings(const struct saga *saga, uint32_t step)
{
    const struct step_definition *definition = &saga->definition->steps[step];
    uint32_t group = definition->group, first = 0, count = saga->definition->written_count;

    if (group != STEP_NONE) {
        first = saga->steps[group].first;
        count = saga->steps[group].count;
    }
    if (definition->element != ELEMENT_NONE && !step_comes_before(saga, step, first + count - 1)) {
        return false; /* the last one, or elements that ran side by side */
    }
    for (uint32_t i = definition->element == ELEMENT_NONE ? 0 : definition->element + 1; i < count; i++) {
        if (is_left_of(saga, first + i, step)) {
            return true;
        }
    }
    return false;
}

/* True while something that came after the step is not undone yet. */
static bool undo_is_held(const struct saga *saga, uint32_t step)
{
    if (!saga_is_open(saga)) {
        for (uint32_t at = step; at != STEP_NONE; at = saga->definition->steps[at].group) {
            if (is_held_among_siblings(saga, at)) {
                return true;
            }
        }
        return false;
    }
    for (uint32_t i = 0; i < saga->plan_count; i++) {
        if (is_left_of(saga, saga->plan[i], step)) {
            return true;
        }
    }
    return false;
}

/*
 * Returns the unit that counts for the undo concurrency of `scope` (a child's group, or STEP_NONE): the step itself, or
 * the child of that scope it is in. STEP_NONE: it does not count there, because it lies elsewhere or in a child that is
 * undone on its own.
 */
static uint32_t undo_unit(const struct saga *saga, uint32_t step, uint32_t scope)
{
    uint32_t unit = step, at = step_scope(saga, step);

    while (at != scope && at != STEP_NONE && !group_is_undone_alone(saga, at)) {
        unit = at;
        at = step_scope(saga, at);
    }
    return at == scope ? unit : STEP_NONE;
}

uint32_t undo_concurrency(const struct saga *saga, uint32_t scope)
{
    const struct definition *definition = scope == STEP_NONE ? saga->definition : saga->definition->steps[scope].child;

    return definition->undo_concurrency ? definition->undo_concurrency : 1;
}

uint32_t undo_units_active(const struct saga *saga, uint32_t scope)
{
    return scope == STEP_NONE ? saga->undo_active : saga->steps[scope].undo_active;
}

/* Has the scope room for the unit? Ready steps before it in the plan take the room first. They stand together, by
 * units. */
static bool scope_has_room_for(const struct saga *saga, uint32_t scope, uint32_t unit, uint32_t step)
{
    uint32_t taken = undo_units_active(saga, scope), room = undo_concurrency(saga, scope), last = unit;

    for (uint32_t i = 0; i < saga->plan_count && saga->plan[i] != step && taken < room; i++) {
        uint32_t other, entry = saga->plan[i];

        if (saga->steps[entry].plan != PLAN_READY) {
            continue;
        }
        other = undo_unit(saga, entry, scope);
        if (other == STEP_NONE || other == unit || other == last || saga->steps[other].undo_active > 0 ||
            undo_is_held(saga, entry)) {
            continue;
        }
        last = other;
        taken++;
    }
    return taken < room;
}

/* Is there room in the child that holds the step, and further out in everything that is undone with it? With `exactly`,
 * steps that come first take room. */
static bool there_is_room(const struct saga *saga, uint32_t step, bool exactly)
{
    for (uint32_t unit = step;;) {
        uint32_t scope = step_scope(saga, unit);

        if (saga->steps[unit].undo_active == 0 &&
            (exactly ? !scope_has_room_for(saga, scope, unit, step)
                     : undo_units_active(saga, scope) >= undo_concurrency(saga, scope))) {
            return false;
        }
        if (scope == STEP_NONE || group_is_undone_alone(saga, scope)) {
            return true;
        }
        unit = scope;
    }
}

/* May the undo begin? Undos begin in the order of the plan, as far as there is room. */
bool undo_may_begin(const struct saga *saga, uint32_t step)
{
    if (saga->steps[step].plan != PLAN_READY || step_phase(saga, step) != PHASE_UNDO || pause_holds(saga)) {
        return false;
    }
    /* Behind a terminal step nothing is undone any more, except a child whose effects are unwanted either way. */
    if (step_undone_alone(saga, step) == STEP_NONE && saga_passed_return(saga)) {
        return false;
    }
    return there_is_room(saga, step, false) && !undo_is_held(saga, step) && there_is_room(saga, step, true);
}

bool undo_needs_evaluation(const struct saga *saga, uint32_t step)
{
    const struct step *s = &saga->steps[step];

    return !step_undo(s)->args.ptr && !s->undo_args.ptr && !s->undo_error.ptr &&
           saga->definition->steps[step].compensate.with.program_count > 0;
}
