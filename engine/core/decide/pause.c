/*
 * Pauses by a person. Nothing begins and no clock runs until somebody resumes the saga, in any phase. Calls that were
 * sent are settled, inputs from outside are kept, and nothing follows from either. An abort ends the pause of the saga
 * that it undoes.
 *
 * A saga whose calls went round in a loop is paused in another sense: its calls are refused, and its deadline waits.
 */
#include "core/saga/machine.h"

#define REASON "operator"

bool pause_holds(const struct saga *saga)
{
    return saga->paused.ptr && slice_is(saga->paused, REASON);
}

enum err_code pause_decide(struct machine *m)
{
    const struct saga *saga = m->saga;
    struct record record = {.type = RECORD_SAGA_PAUSED, .step = STEP_NONE, .reason = SLICE(REASON)};

    if (saga->definition->kind == SAGA_RUN) {
        (void)err_set(m->err, ERR_CONFLICT, "a run cannot be paused: its operations are independent of each other");
        err_hint(m->err, "What is to be held up together belongs into an open saga.");
        return ERR_CONFLICT;
    }
    if (saga->seq == 0) {
        return err_set(m->err, ERR_CONFLICT, "the saga has not started");
    }
    if (saga->phase == PHASE_ENDED) {
        return err_set(m->err, ERR_ENDED, "the saga has ended %s", saga_status_name(saga->end));
    }
    if (!m->input->pause.actor.len) {
        return err_set(m->err, ERR_INVALID, "a pause needs an actor");
    }
    if (pause_holds(saga)) {
        return ERR_OK; /* a repeat */
    }
    if (saga->paused.ptr) {
        (void)err_set(m->err, ERR_CONFLICT, "the saga is paused already: %.*s", SLICE_ARG(saga->paused));
        err_hint(m->err, "Resume it first.");
        return ERR_CONFLICT;
    }
    record.actor = m->input->pause.actor;
    record.note = m->input->pause.note;
    machine_emit(m, &record);
    return ERR_OK;
}

/* --- the clocks --- */

/* What was set before the clocks stood, stood still for all of it; what was set while they did, from then on. */
int64_t clock_shifted(const struct standing *standing, int64_t ms, int64_t set_ms)
{
    int64_t from_ms = set_ms > standing->from_ms ? set_ms : standing->from_ms;

    return ms && standing->to_ms > from_ms ? ms + (standing->to_ms - from_ms) : ms;
}

static void shift_operation(const struct standing *pause, struct operation *op)
{
    switch (op->state) {
    case OP_PENDING:
    case OP_IN_FLIGHT:
    case OP_RETRYING:
    case OP_PROBING:
    case OP_UNKNOWN: /* a person may give it another round */
    case OP_OPEN:
    case OP_WAITING:
        break;
    case OP_NONE:
    case OP_COMPLETED:
    case OP_FAILED:
    case OP_SKIPPED:
        return;
    case OP_STATE_COUNT:
        UNREACHABLE();
    }
    op->due_ms = clock_shifted(pause, op->due_ms, op->changed_ms);
    op->round_ms = clock_shifted(pause, op->round_ms, op->round_ms);
    op->unknown_ms = clock_shifted(pause, op->unknown_ms, op->unknown_ms);
}

void pause_end(struct saga *saga, int64_t at_ms)
{
    const struct standing pause = {saga->paused_ms, at_ms};

    if (!pause_holds(saga)) {
        return;
    }
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        shift_operation(&pause, &saga->steps[i].forward);
        if (saga->steps[i].undo) {
            shift_operation(&pause, saga->steps[i].undo);
        }
    }
    saga->deadline_ms = clock_shifted(&pause, saga->deadline_ms, 0);
    saga->paused = SLICE_NONE;
    saga->paused_ms = 0;
}

/* --- what a pause allows --- */

bool pause_forbids(const struct record *record)
{
    switch (record->type) {
    case RECORD_SAGA_STARTED:
    case RECORD_STEP_PENDING:
    case RECORD_STEP_INTENT:
    case RECORD_STEP_CALLED:
    case RECORD_STEP_REPEATED:
    case RECORD_STEP_OPENED:
    case RECORD_STEP_FAILING:
    case RECORD_STEP_WAITING:
    case RECORD_LOCK_WANTED:
    case RECORD_LOOP_TRIPPED:
    case RECORD_SAGA_PAUSED:
    case RECORD_SAGA_HELD:
    case RECORD_RUN_RESTED:
    case RECORD_RUN_WOKEN:
    case RECORD_COMPENSATION_PLANNED:
    case RECORD_COMPENSATION_INTENT:
    case RECORD_ESCALATION_OPENED:
    case RECORD_SAGA_COMPLETED:
    case RECORD_SAGA_COMPENSATED:
        return true;
    case RECORD_STEP_RETRYING:
    case RECORD_STEP_RUNNING:
    case RECORD_STEP_UNKNOWN:
    case RECORD_STEP_PROBED:
    case RECORD_STEP_COMPLETED:
    case RECORD_STEP_FAILED:
    case RECORD_STEP_SKIPPED:
    case RECORD_STEP_REOPENED:
    case RECORD_STEP_WAIVED:
    case RECORD_STEP_UNDONE:
    case RECORD_SIGNAL_RECEIVED:
    case RECORD_APPROVAL_DECIDED:
    case RECORD_LOCK_TAKEN:
    case RECORD_STEP_LATE:
    case RECORD_OPERATION_DUPLICATE:
    case RECORD_OPERATION_PRICED:
    case RECORD_TOOL_MENDED:
    case RECORD_OPERATION_EXPIRED:
    case RECORD_BYPASS_SIGNED:
    case RECORD_SAGA_RESUMED:
    case RECORD_SAGA_RELEASED:
    case RECORD_SAGA_FAILING: /* a person does it, and ends the pause */
    case RECORD_COMPENSATION_RETRYING:
    case RECORD_COMPENSATION_RUNNING:
    case RECORD_COMPENSATION_UNKNOWN:
    case RECORD_COMPENSATION_PROBED:
    case RECORD_COMPENSATION_COMPLETED:
    case RECORD_COMPENSATION_FAILED:
    case RECORD_COMPENSATION_REOPENED:
    case RECORD_COMPENSATION_LATE:
    case RECORD_ESCALATION_RESOLVED:
    case RECORD_SAGA_ABANDONED:
        return false;
    case RECORD_TYPE_COUNT:
        break;
    }
    UNREACHABLE();
}
