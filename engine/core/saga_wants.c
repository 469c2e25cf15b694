/*
 * What should exist now, given the state. Nothing is ever commanded: whoever performs the wants compares them with what
 * is under way, starts what is missing and cancels what is not wanted any more. After a crash the same answer comes
 * out.
 */
#include <stdlib.h>

#include "core/saga_call.h"

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

static void want_operation(const struct saga *saga, uint32_t step, enum direction direction, struct wants *out)
{
    const struct operation *op = operation_of(saga, step, direction);
    bool guarded = direction == DIRECTION_DO && saga->definition->steps[step].tool->guarded; /* undoing only queues */

    switch (op->state) {
    case OP_IN_FLIGHT:
        want_add(out, WANT_CALL, step, direction, op->attempts, 0);
        return;
    case OP_PROBING:
        want_add(out, WANT_PROBE, step, direction, op->probes + 1, op->due_ms);
        return;
    case OP_PENDING:
        if (!step_may_leave(saga, step)) { /* surely not sent: while a person is being asked it waits */
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
                   saga->steps[step].plan == PLAN_ACTIVE) { /* else it waits for its turn */
            want_add(out, WANT_TIMER, step, direction, op->attempts, op->due_ms);
        }
        return;
    case OP_NONE:
    case OP_UNKNOWN:
    case OP_COMPLETED:
    case OP_FAILED:
    case OP_SKIPPED:
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
    return saga->phase == PHASE_FORWARD && saga->deadline_ms && !saga_is_finished(saga);
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
    for (uint32_t i = 0; i < count; i++) {
        want_operation(saga, i, DIRECTION_DO, out);
        want_operation(saga, i, DIRECTION_UNDO, out);
        if (step_is_ready(saga, i) && step_needs_evaluation(saga, i)) {
            want_add(out, WANT_EVALUATE, i, DIRECTION_DO, EVALUATE_ARGS, 0);
        }
        if (saga->phase == PHASE_UNDO && undo_needs_evaluation(saga, i) && undo_may_begin(saga, i)) {
            want_add(out, WANT_EVALUATE, i, DIRECTION_UNDO, EVALUATE_UNDO, 0);
        }
    }
    if (saga_is_finished(saga) && saga->definition->output.program_count > 0) {
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
