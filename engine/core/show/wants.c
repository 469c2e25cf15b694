/*
 * Says what should exist now, given the state. Nothing is ever commanded: the caller compares the wants with the work
 * under way, starts what is missing and cancels what is no longer wanted. After a crash the answer is the same.
 */
#include <stdlib.h>

#include "core/decide/call.h"

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

int want_compare(const struct want *a, const struct want *b)
{
    int order = compare_u64(a->type, b->type);

    order = order ? order : compare_u64(a->step, b->step);
    order = order ? order : compare_u64(a->direction, b->direction);
    order = order ? order : compare_u64(a->number, b->number);
    return order ? order : (a->due_ms < b->due_ms ? -1 : a->due_ms > b->due_ms);
}

static int compare_items(const void *a, const void *b)
{
    return want_compare(a, b);
}

static void want_add(struct wants *wants, enum want_type type, uint32_t step, enum direction direction, uint32_t number,
                     int64_t due_ms)
{
    CHECK(wants->count < wants->capacity);
    wants->items[wants->count++] = (struct want){type, step, direction, number, due_ms};
}

/* Wants the work that a full turn left to the next one. */
static void want_turn(uint32_t step, enum direction direction, struct wants *out)
{
    want_add(out, WANT_TIMER, step, direction, 0, 0);
}

/* Wants the deadline of a child while it works, and then its output. */
static void want_group(const struct saga *saga, uint32_t step, struct wants *out)
{
    bool is_for_each = template_is_set(&saga->definition->steps[step].for_each);

    if (group_may_end(saga, step)) {
        if (!is_for_each && saga_output_template(saga, step)->program_count > 0) {
            want_add(out, WANT_EVALUATE, step, DIRECTION_DO, EVALUATE_OUTPUT, 0);
        } else {
            want_turn(step, DIRECTION_DO, out);
        }
    } else if (saga->steps[step].forward.due_ms && !saga->held_ms && group_is_open(saga, step)) {
        want_add(out, WANT_TIMER, step, DIRECTION_DO, 0, saga->steps[step].forward.due_ms);
    }
}

static void want_operation(const struct saga *saga, uint32_t step, enum direction direction, struct wants *out)
{
    const struct operation *op = operation_of(saga, step, direction);
    bool guarded = direction == DIRECTION_DO && step_has_call(saga, step) &&
                   saga->definition->steps[step].tool->guarded; /* an undo only waits in the queue */

    switch (op->state) {
    case OP_IN_FLIGHT:
        want_add(out, WANT_CALL, step, direction, op->attempts, 0);
        return;
    case OP_PROBING:
        want_add(out, WANT_PROBE, step, direction, op->probes + 1, op->due_ms);
        return;
    case OP_PENDING:
        if (!step_may_leave(saga, step)) { /* certainly not sent: it waits while a person is asked */
            return;
        }
        if (guarded) {
            want_add(out, WANT_ADMIT, step, direction, op->attempts + 1, 0);
        } else {
            want_add(out, WANT_TIMER, step, direction, op->attempts, 0);
        }
        return;
    case OP_RETRYING:
        if (guarded) {
            want_add(out, WANT_ADMIT, step, direction, op->attempts + 1, op->due_ms);
        } else if (direction == DIRECTION_DO ||
                   saga->steps[step].plan == PLAN_ACTIVE) { /* otherwise it waits for its turn */
            want_add(out, WANT_TIMER, step, direction, op->attempts, op->due_ms);
        }
        return;
    case OP_NONE:
    case OP_UNKNOWN:
    case OP_COMPLETED:
    case OP_FAILED:
    case OP_SKIPPED:
        return;
    case OP_OPEN:
        want_group(saga, step, out);
        return;
    case OP_WAITING:
        if (op->due_ms && (!saga->held_ms || saga->definition->steps[step].kind != STEP_APPROVE)) {
            want_add(out, WANT_TIMER, step, direction, 0, op->due_ms);
        }
        return;
    case OP_STATE_COUNT:
        break;
    }
    UNREACHABLE();
}

static bool deadline_runs(const struct saga *saga)
{
    if (saga_is_open(saga)) {
        return open_deadline_counts(saga);
    }
    return saga->phase == PHASE_FORWARD && saga->deadline_ms && !saga->held_ms && !saga_is_finished(saga);
}

/* Wants the calls that are under way, which is all that a pause leaves. */
static void want_calls(const struct saga *saga, struct wants *out)
{
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        for (unsigned d = 0; d < DIRECTION_COUNT; d++) {
            if (operation_of(saga, i, (enum direction)d)->state == OP_IN_FLIGHT) {
                want_operation(saga, i, (enum direction)d, out);
            }
        }
    }
    qsort(out->items, out->count, sizeof(*out->items), compare_items);
}

static void want_locks(const struct saga *saga, struct wants *out)
{
    if (saga->phase != PHASE_FORWARD) {
        return;
    }
    if (locks_need_evaluation(saga)) {
        want_add(out, WANT_EVALUATE, STEP_NONE, DIRECTION_DO, EVALUATE_LOCKS, 0);
    }
    if (saga->lock_taken < saga->lock_count) {
        want_add(out, WANT_LOCK, STEP_NONE, DIRECTION_DO, saga->lock_taken, 0);
    }
}

void saga_wants(const struct saga *saga, struct arena *turn, struct wants *out)
{
    uint32_t count = saga->definition->step_count;

    *out = (struct wants){0};
    if (saga->seq == 0 || saga->phase == PHASE_ENDED) {
        return;
    }
    out->capacity = 3 * (size_t)count + 4;
    out->items = arena_array(turn, out->capacity, sizeof(*out->items));
    if (pause_holds(saga)) {
        want_calls(saga, out);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        want_operation(saga, i, DIRECTION_DO, out);
        want_operation(saga, i, DIRECTION_UNDO, out);
        if (step_is_ready(saga, i)) {
            if (step_needs_evaluation(saga, i)) {
                want_add(out, WANT_EVALUATE, i, DIRECTION_DO, EVALUATE_ARGS, 0);
            } else {
                want_turn(i, DIRECTION_DO, out);
            }
        }
        if (saga->steps[i].plan == PLAN_READY && undo_may_begin(saga, i)) {
            if (undo_needs_evaluation(saga, i)) {
                want_add(out, WANT_EVALUATE, i, DIRECTION_UNDO, EVALUATE_UNDO, 0);
            } else {
                const struct operation *undo = step_undo(&saga->steps[i]);

                want_add(out, WANT_TIMER, i, DIRECTION_UNDO, 0, undo->state == OP_RETRYING ? undo->due_ms : 0);
            }
        }
    }
    want_locks(saga, out);
    if (saga_is_finished(saga) && finish_needs_evaluation(saga) && !saga->escalation.number) {
        want_add(out, WANT_EVALUATE, STEP_NONE, DIRECTION_DO, EVALUATE_OUTPUT, 0);
    }
    if (deadline_runs(saga)) {
        want_add(out, WANT_TIMER, STEP_NONE, DIRECTION_DO, SAGA_TIMER_DEADLINE, saga->deadline_ms);
    }
    if (saga_rests(saga)) {
        want_add(out, WANT_TIMER, STEP_NONE, DIRECTION_DO, SAGA_TIMER_REST, saga->updated_ms + RUN_REST_MS);
    }
    qsort(out->items, out->count, sizeof(*out->items), compare_items);
}

int64_t saga_rests_until(const struct saga *saga, struct arena *arena)
{
    struct wants wants;
    int64_t until_ms = INT64_MAX;

    saga_wants(saga, arena, &wants);
    for (size_t i = 0; i < wants.count; i++) {
        const struct want *want = &wants.items[i];

        if (want->type == WANT_LOCK) {
            continue;
        }
        if (want->type != WANT_TIMER || want->due_ms == 0) {
            return 0;
        }
        until_ms = want->due_ms < until_ms ? want->due_ms : until_ms;
    }
    return until_ms;
}
