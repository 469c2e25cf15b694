/*
 * What a hold means for a saga. Its calls wait where nothing of them is durable but that they are wanted. While one
 * waits the clocks of the saga stand: its deadline and those of its children, the time in which an approval has to
 * come, and the times after which a person is asked. What a receiver remembers (`key.window`) runs on, and probes do.
 *
 * The log says when the clocks stood (saga.held, saga.released), so that every engine, with or without the hold in its
 * memory, goes by the same times. A pause stops more, so a saga that is paused is not held beside it.
 */
#include "core/saga/hold.h"
#include "core/saga/machine.h"

bool call_is_held(const struct machine *m, uint32_t step, enum direction direction)
{
    const struct hold_set *holds = m->input->holds;

    return holds && holds->count > 0 && step_has_call(m->saga, step) &&
           hold_of_call(holds, m->saga, saga_tool(m->saga, step, direction)->name, direction, m->turn);
}

/* --- does a call wait? --- */

static bool forward_is_kept(const struct machine *m, uint32_t step)
{
    const struct operation *op = &m->saga->steps[step].forward;

    return ((op->state == OP_PENDING && step_may_leave(m->saga, step)) ||
            (op->state == OP_RETRYING && op->due_ms <= m->input->now_ms)) &&
           call_is_held(m, step, DIRECTION_DO);
}

static bool undo_is_kept(const struct machine *m, uint32_t step)
{
    const struct operation *op = step_undo(&m->saga->steps[step]);
    bool waits = m->saga->steps[step].plan == PLAN_READY
                     ? undo_may_begin(m->saga, step)
                     : op->state == OP_PENDING || (op->state == OP_RETRYING && op->due_ms <= m->input->now_ms);

    return waits && call_is_held(m, step, DIRECTION_UNDO);
}

static bool is_kept(const struct machine *m)
{
    if (!m->input->holds || m->input->holds->count == 0 || m->saga->paused.ptr) {
        return false;
    }
    for (uint32_t i = 0; i < m->saga->definition->step_count; i++) {
        if (forward_is_kept(m, i) || undo_is_kept(m, i)) {
            return true;
        }
    }
    return false;
}

/* --- the log --- */

void hold_begin_turn(struct machine *m)
{
    if (m->saga->held_ms && m->saga->phase != PHASE_ENDED && !is_kept(m)) {
        machine_emit(m, &(struct record){.type = RECORD_SAGA_RELEASED, .step = STEP_NONE});
    }
}

void hold_end_turn(struct machine *m)
{
    const struct saga *saga = m->saga;
    bool kept;

    if (saga->seq == 0 || saga->phase == PHASE_ENDED || saga->definition->kind == SAGA_RUN) {
        return; /* the operations of a run share no clock */
    }
    kept = is_kept(m);
    if (kept != (saga->held_ms != 0)) {
        machine_emit(m, &(struct record){.type = kept ? RECORD_SAGA_HELD : RECORD_SAGA_RELEASED, .step = STEP_NONE});
    }
}

bool check_hold(const struct saga *saga, const struct record *record, struct err *err)
{
    if (record->type == RECORD_SAGA_RELEASED) {
        return saga->held_ms || check_refuse(record, err, "it is not held");
    }
    if (saga->definition->kind == SAGA_RUN || saga->paused.ptr) {
        return check_refuse(record, err, "this saga is not held");
    }
    return !saga->held_ms || check_refuse(record, err, "it is held already");
}

/* --- the clocks --- */

static void shift_operation(const struct standing *standing, const struct step_definition *step, struct operation *op)
{
    switch (op->state) {
    case OP_WAITING:
        if (step->kind == STEP_APPROVE) {
            op->due_ms = clock_shifted(standing, op->due_ms, op->changed_ms);
        }
        return;
    case OP_OPEN: /* a child with a deadline */
        op->due_ms = clock_shifted(standing, op->due_ms, op->changed_ms);
        return;
    case OP_PENDING:
    case OP_IN_FLIGHT:
    case OP_RETRYING:
    case OP_PROBING:
    case OP_UNKNOWN: /* a person may give it another round */
        op->round_ms = clock_shifted(standing, op->round_ms, op->round_ms);
        op->unknown_ms = clock_shifted(standing, op->unknown_ms, op->unknown_ms);
        return;
    case OP_NONE:
    case OP_COMPLETED:
    case OP_FAILED:
    case OP_SKIPPED:
        return;
    case OP_STATE_COUNT:
        break;
    }
    UNREACHABLE();
}

void hold_end(struct saga *saga, int64_t at_ms)
{
    const struct standing standing = {saga->held_ms, at_ms};

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        shift_operation(&standing, &saga->definition->steps[i], &saga->steps[i].forward);
        if (saga->steps[i].undo) {
            shift_operation(&standing, &saga->definition->steps[i], saga->steps[i].undo);
        }
    }
    saga->deadline_ms = clock_shifted(&standing, saga->deadline_ms, 0);
    saga->held_before_ms += at_ms > saga->held_ms ? at_ms - saga->held_ms : 0; /* the clock of another engine */
    saga->held_ms = 0;
}
