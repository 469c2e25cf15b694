/* Checks a play against the books of its world: see prove/world.h. The order of steps is computed here and not asked of
 * the machine, so that the two check each other. */
#include "core/definition/graph.h"
#include "core/prove/world.h"
#include "core/saga/machine.h"

/* --- books --- */

const struct operation *prove_operation(const struct prove_world *w, uint32_t step, enum direction direction)
{
    return direction == DIRECTION_UNDO ? step_undo(&w->saga.steps[step]) : &w->saga.steps[step].forward;
}

static const struct step_definition *definition_of(const struct prove_world *w, uint32_t step)
{
    return &w->saga.definition->steps[step];
}

bool prove_is_read(const struct prove_world *w, uint32_t step)
{
    const struct step_definition *definition = definition_of(w, step);

    return !definition->tool || step_is_group(definition) || definition->tool->effect == EFFECT_READ;
}

bool prove_world_stands(const struct prove_world *w, uint32_t step)
{
    return (w->books[step].did || w->books[step].maybe) && !w->books[step].undone && !prove_is_read(w, step);
}

/* Must the step be undone? A step that a person left standing, or found absent, keeps no other step waiting. */
static bool is_to_be_undone(const struct prove_world *w, uint32_t step)
{
    enum plan_state plan = w->saga.steps[step].plan;

    return prove_world_stands(w, step) && plan != PLAN_WAIVED && plan != PLAN_DROPPED;
}

/* May the saga still see the effect standing? The answer of the undo, or a person's verdict, is still to come. */
static bool may_stand_yet(const struct prove_world *w, uint32_t step)
{
    enum plan_state plan = w->saga.steps[step].plan;

    return plan == PLAN_VERDICT || plan == PLAN_READY || plan == PLAN_ACTIVE || plan == PLAN_FAILED;
}

void prove_violate(struct prove_world *w, const char *what, uint32_t step, uint32_t other)
{
    const struct step_definition *steps = w->saga.definition->steps;

    if (w->violation.ptr) { /* the first violation is the cause of the others */
        return;
    }
    if (step == STEP_NONE) {
        w->violation = arena_slice(w->arena, slice_of(what));
    } else if (other == STEP_NONE) {
        w->violation = arena_printf(w->arena, "%.*s %s", SLICE_ARG(steps[step].id), what);
    } else {
        w->violation =
            arena_printf(w->arena, "%.*s %s %.*s", SLICE_ARG(steps[step].id), what, SLICE_ARG(steps[other].id));
    }
}

/* --- the order --- */

static uint32_t group_of(const struct prove_world *w, uint32_t step)
{
    return definition_of(w, step)->group;
}

static uint32_t depth_of(const struct prove_world *w, uint32_t step)
{
    uint32_t depth = 0;

    for (uint32_t at = group_of(w, step); at != STEP_NONE; at = group_of(w, at)) {
        depth++;
    }
    return depth;
}

/* Replaces two steps by the ancestors of theirs that are side by side in one group or in the saga. */
static void lift(const struct prove_world *w, uint32_t *a, uint32_t *b)
{
    uint32_t depth_a = depth_of(w, *a), depth_b = depth_of(w, *b);

    for (; depth_a > depth_b; depth_a--) {
        *a = group_of(w, *a);
    }
    for (; depth_b > depth_a; depth_b--) {
        *b = group_of(w, *b);
    }
    while (group_of(w, *a) != group_of(w, *b)) {
        *a = group_of(w, *a);
        *b = group_of(w, *b);
    }
}

/* Does b depend on a? */
static bool comes_before(const struct prove_world *w, uint32_t a, uint32_t b)
{
    const struct step_definition *definition;

    lift(w, &a, &b);
    definition = definition_of(w, a);
    if (a == b) {
        return false;
    }
    if (definition->element != ELEMENT_NONE) {
        return definition->element < definition_of(w, b)->element &&
               definition_of(w, definition->group)->concurrency <= 1;
    }
    return graph_before(definition->written_in ? definition->written_in : w->saga.definition, definition->member,
                        definition_of(w, b)->member);
}

static bool began_later(const struct prove_world *w, uint32_t a, uint32_t b)
{
    lift(w, &a, &b);
    if (definition_of(w, a)->element != ELEMENT_NONE) {
        return definition_of(w, a)->element > definition_of(w, b)->element;
    }
    return w->saga.steps[a].start_order > w->saga.steps[b].start_order;
}

/* Is the step part of a child in this scope that is undone on its own? */
static bool is_undone_alone_in(const struct prove_world *w, uint32_t step, uint32_t scope)
{
    for (uint32_t at = group_of(w, step); at != scope; at = group_of(w, at)) {
        if (w->saga.steps[at].group_phase != PHASE_FORWARD) {
            return true;
        }
    }
    return false;
}

/* Can the order of these two be certain? Side by side in one saga it always is; elsewhere only where one step is undone
 * at a time. */
static bool is_next_to(const struct prove_world *w, uint32_t a, uint32_t b)
{
    uint32_t side_a = a, side_b = b, scope;
    const struct definition *saga;

    lift(w, &side_a, &side_b);
    if (side_a == a && side_b == b) {
        return true;
    }
    for (scope = group_of(w, side_a); scope != STEP_NONE && template_is_set(&definition_of(w, scope)->for_each);) {
        scope = group_of(w, scope);
    }
    if (is_undone_alone_in(w, a, scope) || is_undone_alone_in(w, b, scope)) {
        return false; /* such a child waits for no step, and no step waits for it */
    }
    saga = scope == STEP_NONE ? w->saga.definition : definition_of(w, scope)->child;
    return saga->undo_concurrency <= 1;
}

/*
 * Does the saga go on with a child that it is already undoing? A step that must be undone only now, for example after a
 * late answer, waits for that child when the saga undoes one step at a time.
 */
static bool is_gone_on_with(const struct prove_world *w, uint32_t step, uint32_t other)
{
    uint32_t unit = step, beside = other;

    lift(w, &unit, &beside);
    for (uint32_t i = 0; i < w->saga.definition->step_count; i++) {
        uint32_t at = i;

        while (at != STEP_NONE && at != unit) {
            at = group_of(w, at);
        }
        if (at == unit && i != step && w->saga.steps[i].plan == PLAN_ACTIVE) {
            return true;
        }
    }
    return false;
}

/* --- what begins --- */

static void check_element_begins(struct prove_world *w, uint32_t step)
{
    const struct step_definition *definition = definition_of(w, step);
    const struct step *group = &w->saga.steps[definition->group];
    uint32_t room = definition_of(w, definition->group)->concurrency, under_way = 0;

    for (uint32_t i = group->first; i < group->first + group->count; i++) {
        enum op_state state = w->saga.steps[i].forward.state;

        if (i < step && state == OP_NONE) {
            prove_violate(w, "is begun before", step, i);
        }
        under_way +=
            i != step && state != OP_NONE && state != OP_COMPLETED && state != OP_FAILED && state != OP_SKIPPED;
    }
    if (under_way >= (room ? room : 1)) {
        prove_violate(w, "is begun beside too many others", step, STEP_NONE);
    }
}

static void check_step_begins(struct prove_world *w, uint32_t step)
{
    const struct step_definition *definition = definition_of(w, step);

    if (step_phase(&w->saga, step) != PHASE_FORWARD) {
        prove_violate(w, "is begun although the saga is being undone", step, STEP_NONE);
    }
    if (w->saga.definition->lock_count > 0 && (!w->saga.locks_wanted || w->saga.lock_taken < w->saga.lock_count)) {
        prove_violate(w, "is begun before the locks are taken", step, STEP_NONE);
    }
    if (definition->group != STEP_NONE && w->saga.steps[definition->group].forward.state != OP_OPEN) {
        prove_violate(w, "is begun although it is not open:", step, definition->group);
    }
    if (definition->element != ELEMENT_NONE) {
        check_element_begins(w, step);
    }
    for (uint32_t i = 0; i < definition->after_count; i++) {
        const struct operation *before = &w->saga.steps[definition->after[i]].forward;

        if (before->state == OP_NONE || before->state == OP_UNKNOWN || before->state == OP_OPEN ||
            before->state == OP_WAITING || operation_is_open(before)) {
            prove_violate(w, "is begun before the end of", step, definition->after[i]);
        }
    }
}

/* Checks that an undo may begin: no step that depends on this one stands, and of all steps that could be undone now
 * this one began last. */
static void check_undo_begins(struct prove_world *w, uint32_t step)
{
    const struct step_definition *definition = definition_of(w, step);
    uint32_t count = w->saga.definition->step_count;
    struct prove_book *book = &w->books[step];
    bool blind =
        w->saga.steps[step].forward.took_effect == TOOK_EFFECT_MAYBE && definition->compensate.tolerates_absent;

    if (book->undo_begun) {
        return; /* another round follows the order that people brought about */
    }
    book->undo_begun = true;
    if (!book->did && !book->maybe && !blind) {
        prove_violate(w, "is undone although it did not happen", step, STEP_NONE);
    }
    for (uint32_t i = 0; i < count; i++) {
        bool held = false;

        if (i == step || !is_to_be_undone(w, i)) {
            continue;
        }
        if (comes_before(w, step, i)) {
            prove_violate(w, "is undone before", step, i);
        }
        if (w->books[i].undo_begun || w->saga.steps[i].plan != PLAN_READY || !began_later(w, i, step) ||
            !is_next_to(w, i, step) || is_gone_on_with(w, step, i)) {
            continue;
        }
        for (uint32_t k = 0; k < count && !held; k++) {
            held = may_stand_yet(w, k) && comes_before(w, i, k);
        }
        if (!held) {
            prove_violate(w, "is undone before what began later:", step, i);
        }
    }
}

/* --- what ends --- */

static void check_group_completes(struct prove_world *w, uint32_t step)
{
    const struct step *group = &w->saga.steps[step];

    for (uint32_t i = group->first; i < group->first + group->count; i++) {
        const struct operation *op = &w->saga.steps[i].forward;

        if (op->state != OP_COMPLETED && op->state != OP_SKIPPED && op->state != OP_FAILED &&
            w->saga.steps[i].plan != PLAN_WAIVED) {
            prove_violate(w, "is completed before the end of", step, i);
        }
    }
}

static void check_group_fails(struct prove_world *w, uint32_t step)
{
    for (uint32_t i = 0; i < w->saga.definition->step_count; i++) {
        bool within = false;

        for (uint32_t at = group_of(w, i); at != STEP_NONE; at = group_of(w, at)) {
            within = within || at == step;
        }
        if (within && is_to_be_undone(w, i)) {
            prove_violate(w, "is left standing, and it counts as undone:", i, step);
        }
    }
}

void prove_check_record(struct prove_world *w, const struct record *record)
{
    uint32_t step = record->step;
    bool is_group = step != STEP_NONE && step_is_group(definition_of(w, step));
    bool is_call = step != STEP_NONE && definition_of(w, step)->kind == STEP_CALL && !is_group;
    struct err err = {0};

    if (w->saga.phase == PHASE_ENDED) {
        prove_violate(w, "something happens after the end", STEP_NONE, STEP_NONE);
        return;
    }
    if (!record_check(&w->saga, record, &err)) {
        prove_violate(w, err.message, STEP_NONE, STEP_NONE);
        return;
    }
    if (record->type == RECORD_STEP_PENDING || record->type == RECORD_STEP_OPENED ||
        record->type == RECORD_STEP_WAITING || (record->type == RECORD_STEP_INTENT && record->attempt == 1)) {
        check_step_begins(w, step);
    } else if (record->type == RECORD_COMPENSATION_INTENT && record->attempt == 1) {
        check_undo_begins(w, step);
    } else if (record->type == RECORD_COMPENSATION_COMPLETED && !w->books[step].undone) {
        prove_violate(w, "counts as undone, and is not", step, STEP_NONE);
    } else if (record->type == RECORD_STEP_COMPLETED && is_group) {
        check_group_completes(w, step);
    } else if (record->type == RECORD_STEP_COMPLETED && is_call && record->source != SOURCE_PRECHECK &&
               !w->books[step].did) {
        prove_violate(w, "counts as done, and did not happen", step, STEP_NONE);
    } else if (record->type == RECORD_STEP_FAILED && is_group) {
        check_group_fails(w, step);
    } else if (record->type == RECORD_STEP_FAILED && w->books[step].did && !prove_is_read(w, step)) {
        prove_violate(w, "counts as failed, and happened", step, STEP_NONE);
    }
}

/* --- the end --- */

/* Does the step belong to a child that was undone on its own? What became of the step was settled there. */
static bool is_in_failed_child(const struct prove_world *w, uint32_t step)
{
    for (uint32_t at = group_of(w, step); at != STEP_NONE; at = group_of(w, at)) {
        if (w->saga.steps[at].group_phase != PHASE_FORWARD) {
            return true;
        }
    }
    return false;
}

static void check_step_of_completed(struct prove_world *w, uint32_t step)
{
    const struct operation *op = &w->saga.steps[step].forward;

    if (is_in_failed_child(w, step)) {
        if (is_to_be_undone(w, step) && op->state != OP_COMPLETED) {
            prove_violate(w, "is left standing, and the saga ended completed", step, STEP_NONE);
        }
        return;
    }
    if (w->books[step].undone) {
        prove_violate(w, "was undone, and the saga ended completed", step, STEP_NONE);
    } else if (op->state == OP_NONE || op->state == OP_UNKNOWN || op->state == OP_OPEN || op->state == OP_WAITING ||
               operation_is_open(op) ||
               (op->state == OP_FAILED && definition_of(w, step)->on_failure != ON_FAILURE_CONTINUE)) {
        prove_violate(w, "is not over, and the saga ended completed", step, STEP_NONE);
    }
}

void prove_check_end(struct prove_world *w)
{
    for (uint32_t i = 0; i < w->saga.definition->step_count; i++) {
        if (w->saga.end == SAGA_COMPENSATED && prove_world_stands(w, i)) {
            prove_violate(w, "is left standing, and the saga ended compensated", i, STEP_NONE);
        } else if (w->saga.end == SAGA_COMPLETED) {
            check_step_of_completed(w, i);
        } else if (w->saga.end == SAGA_ABANDONED && prove_world_stands(w, i) && !step_may_stand(&w->saga, i)) {
            prove_violate(w, "is left standing, and is no debt", i, STEP_NONE);
        }
    }
    if (w->saga.end == SAGA_ABANDONED && w->decisions == 0) {
        prove_violate(w, "the saga is abandoned, and nobody has said so", STEP_NONE, STEP_NONE);
    }
}
