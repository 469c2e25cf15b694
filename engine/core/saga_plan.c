/* The undo plan, as it can be read off the state: what is in it, in which order, and whose turn it is. */
#include "core/saga_machine.h"

/*
 * The reverse of the graph, ties by reverse start. A step starts only after all that it comes after, so that the
 * reverse order of starting is both at once.
 */
uint32_t *saga_make_plan(const struct saga *saga, struct arena *arena, uint32_t *count)
{
    uint32_t *plan = arena_array(arena, saga->definition->step_count + 1, sizeof(*plan)), n = 0;

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        uint32_t at = n;

        if (!step_may_stand(saga, i) || saga->steps[i].plan == PLAN_WAIVED) {
            continue;
        }
        while (at > 0 && saga->steps[plan[at - 1]].start_order < saga->steps[i].start_order) {
            plan[at] = plan[at - 1];
            at--;
        }
        plan[at] = i;
        n++;
    }
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

static bool plan_entry_is_left(enum plan_state plan)
{
    return plan == PLAN_VERDICT || plan == PLAN_READY || plan == PLAN_ACTIVE || plan == PLAN_FAILED;
}

bool saga_undo_is_over(const struct saga *saga)
{
    for (uint32_t i = 0; i < saga->plan_count; i++) {
        if (plan_entry_is_left(saga->steps[saga->plan[i]].plan)) {
            return false;
        }
    }
    return true;
}

bool undo_is_held(const struct saga *saga, uint32_t step)
{
    for (uint32_t i = 0; i < saga->plan_count; i++) {
        if (plan_entry_is_left(saga->steps[saga->plan[i]].plan) && step_comes_before(saga, step, saga->plan[i])) {
            return true;
        }
    }
    return false;
}

/* How many of the plan are being undone, and may be at once. */
static uint32_t undo_active(const struct saga *saga)
{
    uint32_t active = 0;

    for (uint32_t i = 0; i < saga->plan_count; i++) {
        active += saga->steps[saga->plan[i]].plan == PLAN_ACTIVE;
    }
    return active;
}

uint32_t undo_concurrency(const struct saga *saga)
{
    return saga->definition->undo_concurrency ? saga->definition->undo_concurrency : 1;
}

static bool undo_is_ready(const struct saga *saga, uint32_t step)
{
    return saga->steps[step].plan == PLAN_READY && !undo_is_held(saga, step);
}

/* In the order of the plan, as far as there is room: those before it that are ready have the room first. */
bool undo_may_begin(const struct saga *saga, uint32_t step)
{
    uint32_t taken = undo_active(saga);

    if (saga->phase != PHASE_UNDO || saga_passed_return(saga) || !undo_is_ready(saga, step)) {
        return false;
    }
    for (uint32_t i = 0; i < saga->plan_count && saga->plan[i] != step; i++) {
        taken += undo_is_ready(saga, saga->plan[i]);
    }
    return taken < undo_concurrency(saga);
}

bool undo_needs_evaluation(const struct saga *saga, uint32_t step)
{
    const struct step *s = &saga->steps[step];

    return !s->undo.args.ptr && !s->undo_args.ptr && !s->undo_error.ptr &&
           saga->definition->steps[step].compensate.with.program_count > 0;
}
