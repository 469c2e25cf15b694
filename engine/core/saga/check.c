/*
 * Does a record make sense in this state? The same check is used for records that were just decided and for records
 * that were read back. The allowed moves are tables, and every other move is refused. A record that was read may hold
 * anything, so nothing here trusts it.
 */
#include "core/record/record_fields.h"
#include "core/saga/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The moves of an operation, forward or undo. */
static const uint32_t op_next[OP_STATE_COUNT] = {
    [OP_NONE] = BIT(OP_PENDING) | BIT(OP_IN_FLIGHT) | BIT(OP_FAILED) | BIT(OP_SKIPPED) | BIT(OP_OPEN) | BIT(OP_WAITING),
    [OP_OPEN] = BIT(OP_COMPLETED) | BIT(OP_FAILED),
    [OP_WAITING] = BIT(OP_COMPLETED) | BIT(OP_FAILED),
    [OP_PENDING] = BIT(OP_IN_FLIGHT) | BIT(OP_FAILED) | BIT(OP_RETRYING) | BIT(OP_COMPLETED),
    [OP_IN_FLIGHT] = BIT(OP_RETRYING) | BIT(OP_PROBING) | BIT(OP_UNKNOWN) | BIT(OP_COMPLETED) | BIT(OP_FAILED),
    [OP_RETRYING] =
        BIT(OP_RETRYING) | BIT(OP_IN_FLIGHT) | BIT(OP_PROBING) | BIT(OP_UNKNOWN) | BIT(OP_COMPLETED) | BIT(OP_FAILED),
    [OP_PROBING] = BIT(OP_PROBING) | BIT(OP_RETRYING) | BIT(OP_UNKNOWN) | BIT(OP_COMPLETED) | BIT(OP_FAILED),
    [OP_UNKNOWN] = BIT(OP_PROBING) | BIT(OP_RETRYING) | BIT(OP_COMPLETED) | BIT(OP_FAILED),
    [OP_COMPLETED] = BIT(OP_PENDING), /* a success is never overturned: only a read is called again */
    [OP_FAILED] = BIT(OP_PENDING) | BIT(OP_RETRYING) | BIT(OP_SKIPPED),
    [OP_SKIPPED] = 0,
};

#define FORWARD BIT(PHASE_FORWARD)
#define FAILING BIT(PHASE_FAILING)
#define UNDO BIT(PHASE_UNDO)
#define ENDED BIT(PHASE_ENDED)

static const uint32_t phases[RECORD_TYPE_COUNT] = {
    [RECORD_SAGA_STARTED] = FORWARD,
    [RECORD_STEP_PENDING] = FORWARD,
    [RECORD_STEP_INTENT] = FORWARD | FAILING,
    [RECORD_STEP_RETRYING] = FORWARD | FAILING,
    [RECORD_STEP_RUNNING] = FORWARD | FAILING,
    [RECORD_STEP_UNKNOWN] = FORWARD | FAILING | UNDO,
    [RECORD_STEP_PROBED] = FORWARD | FAILING | UNDO,
    [RECORD_STEP_COMPLETED] = FORWARD | FAILING | UNDO,
    [RECORD_STEP_FAILED] = FORWARD | FAILING | UNDO,
    [RECORD_STEP_SKIPPED] = FORWARD,
    [RECORD_STEP_REOPENED] = FORWARD,
    [RECORD_STEP_WAIVED] = FORWARD | FAILING | UNDO,
    [RECORD_STEP_UNDONE] = FORWARD | FAILING | UNDO,
    [RECORD_STEP_CALLED] = FORWARD,
    [RECORD_STEP_REPEATED] = FORWARD,
    [RECORD_STEP_OPENED] = FORWARD,
    [RECORD_STEP_FAILING] = FORWARD,
    [RECORD_STEP_WAITING] = FORWARD,
    [RECORD_SIGNAL_RECEIVED] = FORWARD,
    [RECORD_APPROVAL_DECIDED] = FORWARD,
    [RECORD_LOCK_WANTED] = FORWARD,
    [RECORD_LOCK_TAKEN] = FORWARD,
    [RECORD_STEP_LATE] = FORWARD | FAILING | UNDO,
    [RECORD_OPERATION_DUPLICATE] = FORWARD | FAILING | UNDO | ENDED,
    [RECORD_OPERATION_PRICED] = FORWARD | FAILING | UNDO,
    [RECORD_TOOL_MENDED] = FORWARD | FAILING | UNDO,
    [RECORD_OPERATION_EXPIRED] = FORWARD | FAILING | UNDO | ENDED,
    [RECORD_BYPASS_SIGNED] = FORWARD,
    [RECORD_LOOP_TRIPPED] = FORWARD,
    [RECORD_SAGA_PAUSED] = FORWARD | FAILING | UNDO,
    [RECORD_SAGA_RESUMED] = FORWARD | FAILING | UNDO,
    [RECORD_SAGA_HELD] = FORWARD | FAILING | UNDO,
    [RECORD_SAGA_RELEASED] = FORWARD | FAILING | UNDO,
    [RECORD_RUN_RESTED] = FORWARD,
    [RECORD_RUN_WOKEN] = ENDED,
    [RECORD_SAGA_FAILING] = FORWARD,
    [RECORD_COMPENSATION_PLANNED] = FAILING,
    [RECORD_COMPENSATION_INTENT] = UNDO,
    [RECORD_COMPENSATION_RETRYING] = UNDO,
    [RECORD_COMPENSATION_RUNNING] = UNDO,
    [RECORD_COMPENSATION_UNKNOWN] = UNDO,
    [RECORD_COMPENSATION_PROBED] = UNDO,
    [RECORD_COMPENSATION_COMPLETED] = UNDO,
    [RECORD_COMPENSATION_FAILED] = UNDO,
    [RECORD_COMPENSATION_REOPENED] = UNDO,
    [RECORD_COMPENSATION_LATE] = UNDO,
    [RECORD_ESCALATION_OPENED] = FORWARD | FAILING | UNDO,
    [RECORD_ESCALATION_RESOLVED] = FORWARD | FAILING | UNDO,
    [RECORD_SAGA_COMPLETED] = FORWARD | FAILING | UNDO,
    [RECORD_SAGA_COMPENSATED] = UNDO,
    [RECORD_SAGA_ABANDONED] = FORWARD | FAILING | UNDO,
};

/* The plan states of a step in which a record about its undo is allowed. */
static const uint32_t undo_plans[RECORD_TYPE_COUNT] = {
    [RECORD_COMPENSATION_INTENT] = BIT(PLAN_READY) | BIT(PLAN_ACTIVE),
    [RECORD_COMPENSATION_RETRYING] = BIT(PLAN_ACTIVE),
    [RECORD_COMPENSATION_RUNNING] = BIT(PLAN_ACTIVE),
    [RECORD_COMPENSATION_UNKNOWN] = BIT(PLAN_READY) | BIT(PLAN_ACTIVE) | BIT(PLAN_FAILED),
    [RECORD_COMPENSATION_PROBED] = BIT(PLAN_ACTIVE) | BIT(PLAN_FAILED),
    [RECORD_COMPENSATION_COMPLETED] = BIT(PLAN_READY) | BIT(PLAN_ACTIVE) | BIT(PLAN_FAILED),
    [RECORD_COMPENSATION_FAILED] = BIT(PLAN_READY) | BIT(PLAN_ACTIVE) | BIT(PLAN_FAILED),
    [RECORD_COMPENSATION_REOPENED] = BIT(PLAN_FAILED),
};

enum op_state record_leads_to(const struct record *record)
{
    switch (record->type) {
    case RECORD_STEP_PENDING:
    case RECORD_STEP_CALLED:
    case RECORD_STEP_REPEATED:
        return OP_PENDING;
    case RECORD_STEP_INTENT:
    case RECORD_COMPENSATION_INTENT:
        return OP_IN_FLIGHT;
    case RECORD_STEP_RETRYING:
    case RECORD_COMPENSATION_RETRYING:
    case RECORD_STEP_REOPENED:
    case RECORD_COMPENSATION_REOPENED:
        return OP_RETRYING;
    case RECORD_STEP_RUNNING:
    case RECORD_COMPENSATION_RUNNING:
    case RECORD_STEP_PROBED:
    case RECORD_COMPENSATION_PROBED:
    case RECORD_COMPENSATION_UNKNOWN:
        return OP_PROBING;
    case RECORD_STEP_UNKNOWN:
        return record->due_ms ? OP_PROBING : OP_UNKNOWN;
    case RECORD_STEP_OPENED:
        return OP_OPEN;
    case RECORD_STEP_WAITING:
        return OP_WAITING;
    case RECORD_STEP_COMPLETED:
    case RECORD_COMPENSATION_COMPLETED:
        return OP_COMPLETED;
    case RECORD_STEP_FAILED:
        return OP_FAILED;
    case RECORD_COMPENSATION_FAILED:
        return record->maybe ? OP_UNKNOWN : OP_FAILED;
    case RECORD_STEP_SKIPPED:
        return OP_SKIPPED;
    case RECORD_SAGA_STARTED:
    case RECORD_STEP_WAIVED:
    case RECORD_STEP_UNDONE:
    case RECORD_STEP_FAILING:
    case RECORD_SIGNAL_RECEIVED:
    case RECORD_APPROVAL_DECIDED:
    case RECORD_LOCK_WANTED:
    case RECORD_LOCK_TAKEN:
    case RECORD_STEP_LATE: /* only evidence makes this move */
    case RECORD_COMPENSATION_LATE:
    case RECORD_OPERATION_DUPLICATE:
    case RECORD_OPERATION_PRICED:
    case RECORD_TOOL_MENDED:
    case RECORD_OPERATION_EXPIRED:
    case RECORD_BYPASS_SIGNED:
    case RECORD_LOOP_TRIPPED:
    case RECORD_SAGA_PAUSED:
    case RECORD_SAGA_RESUMED:
    case RECORD_SAGA_HELD:
    case RECORD_SAGA_RELEASED:
    case RECORD_RUN_RESTED:
    case RECORD_RUN_WOKEN:
    case RECORD_SAGA_FAILING:
    case RECORD_COMPENSATION_PLANNED:
    case RECORD_ESCALATION_OPENED:
    case RECORD_ESCALATION_RESOLVED:
    case RECORD_SAGA_COMPLETED:
    case RECORD_SAGA_COMPENSATED:
    case RECORD_SAGA_ABANDONED:
        return OP_NONE; /* not about the state of an operation */
    case RECORD_TYPE_COUNT:
        break;
    }
    UNREACHABLE();
}

bool operation_may_move(enum op_state from, enum op_state to)
{
    return (op_next[from] & BIT(to)) != 0;
}

/* --- the check --- */

void check_say(const struct record *record, struct err *err, const char *why, ...)
{
    char text[160];
    va_list args;

    va_start(args, why);
    (void)vsnprintf(text, sizeof(text), why, args); /* a long sentence is cut, because it is only for people */
    va_end(args);
    (void)err_set(err, ERR_CORRUPT, "record %llu (%s) does not fit: %s", (unsigned long long)record->seq,
                  record->type < RECORD_TYPE_COUNT ? record_type_name(record->type) : "?", text);
}

static bool check_indexes(const struct saga *saga, const struct record *record, struct err *err)
{
    uint32_t count = saga->definition->step_count;

    if (record->type == RECORD_STEP_CALLED) {
        return record->step == count || check_refuse(record, err, "the step it makes is not the next one");
    }
    if (record->step != STEP_NONE && record->step >= count) {
        return check_refuse(record, err, "it names step %u of %u", record->step, count);
    }
    if (record->plan_count > count || (record->plan_count && !record->plan) || record->debt_count > count ||
        (record->debt_count && !record->debts)) {
        return check_refuse(record, err, "it lists more steps than there are");
    }
    for (uint32_t i = 0; i < record->plan_count; i++) {
        if (record->plan[i] >= count) {
            return check_refuse(record, err, "its plan names step %u of %u", record->plan[i], count);
        }
    }
    for (uint32_t i = 0; i < record->debt_count; i++) {
        if (record->debts[i] >= count) {
            return check_refuse(record, err, "its debts name step %u of %u", record->debts[i], count);
        }
    }
    return true;
}

static bool check_attempt(const struct operation *op, const struct record *record, struct err *err)
{
    if (record_leads_to(record) == OP_IN_FLIGHT) {
        return record->attempt == op->attempts + 1 ||
               check_refuse(record, err, "attempt %u follows attempt %u", record->attempt, op->attempts);
    }
    return record->attempt <= op->attempts ||
           check_refuse(record, err, "attempt %u has no intent, only %u have", record->attempt, op->attempts);
}

/* Checks what the first record of an operation must bring, and what a later one must not change. */
static bool check_identity(const struct operation *op, const struct record *record, struct err *err)
{
    bool is_new = op->created_ms == 0,
         begins = record_leads_to(record) == OP_PENDING || record_leads_to(record) == OP_IN_FLIGHT;
    bool reopens = record->type == RECORD_STEP_REOPENED || record->type == RECORD_COMPENSATION_REOPENED;

    if (is_new && begins) {
        return record->args.ptr || check_refuse(record, err, "it begins an operation without arguments");
    }
    if (reopens && record->args.ptr) {
        return op->took_effect == TOOK_EFFECT_NO ||
               check_refuse(record, err, "the arguments of what may have happened cannot change");
    }
    if (record->args.ptr) {
        return check_refuse(record, err, "it brings arguments for an operation that has them");
    }
    if (!uuid_equal(&op->key.uuid, &record->key.uuid)) {
        return check_refuse(record, err, "it is about another key");
    }
    return true;
}

/* Checks that the step has a call: a group or a wait is never called. */
static bool check_has_call(const struct saga *saga, const struct record *record, struct err *err)
{
    if (step_has_call(saga, record->step)) {
        /* A call that ends without a key was refused for its arguments. */
        return record->type != RECORD_STEP_COMPLETED || !uuid_is_nil(&record->key.uuid) ||
               check_refuse(record, err, "it lacks key");
    }
    return record->type == RECORD_STEP_SKIPPED || check_refuse(record, err, "this step has no call");
}

static bool check_operation(const struct saga *saga, const struct record *record, enum direction direction,
                            struct err *err)
{
    const struct operation *op = operation_of(saga, record->step, direction);
    enum op_state to = record_leads_to(record);

    if (op->state == OP_COMPLETED && (op->effect != EFFECT_READ || record->type != RECORD_STEP_REPEATED)) {
        return check_refuse(record, err, "what has completed is never overturned");
    }
    if (op->state == OP_FAILED && to == OP_PENDING && record->type != RECORD_STEP_REPEATED) {
        return check_refuse(record, err, "what has failed is called again only when it is asked for again");
    }
    if (!operation_may_move(op->state, to)) {
        return check_refuse(record, err, "the operation cannot go from state %d to %d", (int)op->state, (int)to);
    }
    return check_attempt(op, record, err) && check_identity(op, record, err);
}

/* A step is skipped by its condition when its turn has come, or by a person after it has failed. */
static bool check_skipped(const struct saga *saga, const struct record *record, struct err *err)
{
    if (record->reason.len) {
        return (template_is_set(&saga->definition->steps[record->step].when) && step_is_ready(saga, record->step)) ||
               check_refuse(record, err, "it has no condition, or its turn has not come");
    }
    if (!record->actor.len || !record->note.len) {
        return check_refuse(record, err, "it says neither who skipped it nor why");
    }
    return saga->steps[record->step].forward.state == OP_FAILED ||
           check_refuse(record, err, "a person skips only what has failed");
}

static bool check_forward(const struct saga *saga, const struct record *record, struct err *err)
{
    const struct step *step = &saga->steps[record->step];
    enum op_state to = record_leads_to(record);

    if ((to == OP_PENDING || to == OP_IN_FLIGHT) &&
        (step->forward.state == OP_NONE || step->forward.state == OP_PENDING)) {
        const struct step_definition *definition = &saga->definition->steps[record->step];

        if (step_phase(saga, record->step) != PHASE_FORWARD || !step_may_leave(saga, record->step)) {
            return check_refuse(record, err, "no step may start now");
        }
        if (step->forward.state == OP_NONE && !group_lets_begin(saga, record->step)) {
            return check_refuse(record, err, "its turn in its group has not come");
        }
        if (!locks_are_held(saga)) {
            return check_refuse(record, err, "not all locks are held");
        }
        if (saga_is_open(saga) && step->forward.state == OP_NONE) {
            return check_refuse(record, err, "this step was not called");
        }
        for (uint32_t i = 0; i < definition->after_count; i++) {
            if (!step_is_over(saga, definition->after[i])) {
                return check_refuse(record, err, "what this step comes after is not over");
            }
        }
    }
    if (to == OP_FAILED && step->forward.state == OP_NONE && !step_is_ready(saga, record->step)) {
        return check_refuse(record, err, "its turn has not come");
    }
    if (to == OP_SKIPPED && !check_skipped(saga, record, err)) {
        return false;
    }
    if (step_phase(saga, record->step) == PHASE_UNDO &&
        (step_undo(step)->state != OP_NONE || (step->plan != PLAN_VERDICT && step->plan != PLAN_READY))) {
        return check_refuse(record, err, "its undoing has begun, or there is none");
    }
    if (step->plan == PLAN_WAIVED) {
        return check_refuse(record, err, "its effect was left standing");
    }
    if (record->type == RECORD_STEP_REOPENED && step->forward.state == OP_FAILED &&
        saga_admits(saga, saga->definition->steps[record->step].tool, step->forward.effect, record->step) != ERR_OK) {
        return check_refuse(record, err, "the saga is sealed, or not settled for a terminal call");
    }
    return check_operation(saga, record, DIRECTION_DO, err);
}

/* --- undoing --- */

static bool check_undo(const struct saga *saga, const struct record *record, struct err *err)
{
    const struct step *step = &saga->steps[record->step];

    if (!saga->definition->steps[record->step].compensate.is_set) {
        return check_refuse(record, err, "this step has no compensator");
    }
    if (!(undo_plans[record->type] & BIT(step->plan))) {
        return check_refuse(record, err, "its place in the undo plan does not allow it");
    }
    /* An undo begins in its turn, when every effect that came after it is gone. */
    if (step->plan == PLAN_READY && record->type != RECORD_COMPENSATION_COMPLETED &&
        !undo_may_begin(saga, record->step)) {
        return check_refuse(record, err, "it is not this step's turn to be undone");
    }
    if (step->plan == PLAN_READY && !step_may_stand(saga, record->step)) {
        return check_refuse(record, err, "there is nothing to undo");
    }
    return check_operation(saga, record, DIRECTION_UNDO, err);
}

/* Checks the plan of the saga, or of a child that is undone on its own. */
static bool check_plan(const struct saga *saga, const struct record *record, struct err *err)
{
    uint32_t standing = 0;

    if (record->step != STEP_NONE &&
        (saga->phase != PHASE_FORWARD || step_phase(saga, record->step) != PHASE_FORWARD)) {
        return check_refuse(record, err, "what is around it is being undone");
    }
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (!step_lies_in(saga, i, record->step)) {
            continue;
        }
        if (operation_is_open(&saga->steps[i].forward) || saga->steps[i].forward.state == OP_WAITING) {
            return check_refuse(record, err, "step %u is not settled", i);
        }
        standing += step_may_stand(saga, i) && saga->steps[i].plan != PLAN_WAIVED;
    }
    for (uint32_t i = 0; i < record->plan_count; i++) {
        uint32_t step = record->plan[i];

        if (!step_may_stand(saga, step) || saga->steps[step].plan == PLAN_WAIVED ||
            !step_lies_in(saga, step, record->step) ||
            (i > 0 && !step_undone_before(saga, record->plan[i - 1], step))) {
            return check_refuse(record, err, "step %u does not belong there in the plan", step);
        }
    }
    return record->plan_count == standing ||
           check_refuse(record, err, "the plan has %u of %u effects", record->plan_count, standing);
}

static bool check_waived(const struct saga *saga, const struct record *record, struct err *err)
{
    const struct step *step = &saga->steps[record->step];

    if (step_phase(saga, record->step) == PHASE_UNDO
            ? step->plan == PLAN_VERDICT || step->plan == PLAN_FAILED
            : step->plan == PLAN_NONE && (step->forward.state == OP_UNKNOWN || step->forward.state == OP_PROBING)) {
        return true;
    }
    return check_refuse(record, err, "there is no open effect to leave standing");
}

static bool check_end(const struct saga *saga, const struct record *record, struct err *err)
{
    bool waived = false;

    if (saga->escalation.number) {
        return check_refuse(record, err, "escalation %llu is open", (unsigned long long)saga->escalation.number);
    }
    if (record->followers.ptr && !check_followers(saga, record, err)) {
        return false;
    }
    if (record->type == RECORD_SAGA_COMPLETED && saga_is_open(saga)) {
        return (!saga_is_unsettled(saga) && !saga_has_undone(saga) &&
                (saga->phase == PHASE_FORWARD || saga_passed_return(saga))) ||
               check_refuse(record, err, "not all of its work is done");
    }
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        waived = waived || saga->steps[i].plan == PLAN_WAIVED;
    }
    if (record->type == RECORD_SAGA_COMPLETED && (!saga_is_finished(saga) || saga_has_undone(saga))) {
        return check_refuse(record, err, "not all of its work is done");
    }
    if (record->type == RECORD_SAGA_COMPENSATED && (!saga_undo_is_over(saga) || waived || saga_passed_return(saga))) {
        return check_refuse(record, err, "something is left standing");
    }
    return true;
}

static bool check_by_type(const struct saga *saga, const struct record *record, struct err *err)
{
    switch (record->type) {
    case RECORD_SAGA_STARTED:
        return slice_equal(record->saga_name, saga->definition->name) && record->version == saga->definition->version
                   ? true
                   : check_refuse(record, err, "it started with another definition");
    case RECORD_STEP_PENDING:
    case RECORD_STEP_INTENT:
    case RECORD_STEP_RETRYING:
    case RECORD_STEP_RUNNING:
    case RECORD_STEP_UNKNOWN:
    case RECORD_STEP_PROBED:
    case RECORD_STEP_SKIPPED:
    case RECORD_STEP_REOPENED:
        return check_has_call(saga, record, err) && check_forward(saga, record, err);
    case RECORD_STEP_COMPLETED:
    case RECORD_STEP_FAILED:
        if (step_is_wait(saga, record->step)) {
            return check_wait(saga, record, err);
        }
        if (step_is_group(&saga->definition->steps[record->step])) {
            return check_group(saga, record, err);
        }
        return check_has_call(saga, record, err) && check_forward(saga, record, err);
    case RECORD_STEP_WAIVED:
        return check_waived(saga, record, err);
    case RECORD_STEP_UNDONE:
        return check_undone(saga, record, err);
    case RECORD_STEP_CALLED:
        return check_called(saga, record, err);
    case RECORD_STEP_REPEATED:
        return check_repeated(saga, record, err) && check_operation(saga, record, DIRECTION_DO, err);
    case RECORD_STEP_OPENED:
    case RECORD_STEP_FAILING:
        return check_group(saga, record, err);
    case RECORD_STEP_WAITING:
    case RECORD_SIGNAL_RECEIVED:
    case RECORD_APPROVAL_DECIDED:
        return check_wait(saga, record, err);
    case RECORD_LOCK_WANTED:
    case RECORD_LOCK_TAKEN:
        return check_lock(saga, record, err);
    case RECORD_STEP_LATE:
    case RECORD_COMPENSATION_LATE:
        return check_late(saga, record, err);
    case RECORD_OPERATION_PRICED:
        return check_priced(saga, record, err);
    case RECORD_TOOL_MENDED:
        return check_mended(saga, record, err);
    case RECORD_OPERATION_DUPLICATE:
    case RECORD_OPERATION_EXPIRED:
    case RECORD_BYPASS_SIGNED:
        return check_about_call(saga, record, err);
    case RECORD_LOOP_TRIPPED:
    case RECORD_SAGA_PAUSED:
    case RECORD_SAGA_RESUMED:
        return check_pause(saga, record, err);
    case RECORD_SAGA_HELD:
    case RECORD_SAGA_RELEASED:
        return check_hold(saga, record, err);
    case RECORD_RUN_RESTED:
    case RECORD_RUN_WOKEN:
        return check_run(saga, record, err);
    case RECORD_SAGA_FAILING:
        return true;
    case RECORD_COMPENSATION_PLANNED:
        return check_plan(saga, record, err);
    case RECORD_COMPENSATION_INTENT:
    case RECORD_COMPENSATION_RETRYING:
    case RECORD_COMPENSATION_RUNNING:
    case RECORD_COMPENSATION_UNKNOWN:
    case RECORD_COMPENSATION_PROBED:
    case RECORD_COMPENSATION_COMPLETED:
    case RECORD_COMPENSATION_FAILED:
    case RECORD_COMPENSATION_REOPENED:
        return check_undo(saga, record, err);
    case RECORD_ESCALATION_OPENED:
        return saga->escalation.number == 0 ? true
                                            : check_refuse(record, err, "escalation %llu is open already",
                                                           (unsigned long long)saga->escalation.number);
    case RECORD_ESCALATION_RESOLVED:
        return saga->escalation.number == record->escalation
                   ? true
                   : check_refuse(record, err, "that escalation is not the open one");
    case RECORD_SAGA_COMPLETED:
    case RECORD_SAGA_COMPENSATED:
    case RECORD_SAGA_ABANDONED:
        return check_end(saga, record, err);
    case RECORD_TYPE_COUNT:
        break;
    }
    UNREACHABLE();
}

/* Does the record exist only in sagas whose steps belong together? */
static bool is_of_a_whole(enum record_type type)
{
    return type == RECORD_SAGA_FAILING || type == RECORD_COMPENSATION_PLANNED || type == RECORD_SAGA_COMPLETED ||
           type == RECORD_SAGA_COMPENSATED || type == RECORD_SAGA_ABANDONED || type == RECORD_STEP_WAIVED ||
           type == RECORD_STEP_UNDONE || type == RECORD_STEP_SKIPPED;
}

/* Returns the phase that a record must fit: that of its step, which may be undone with a child while the saga goes on,
 * or that of the saga. */
static enum saga_phase phase_of(const struct saga *saga, const struct record *record)
{
    enum saga_phase phase;

    if (record->step >= saga->definition->step_count || record->type == RECORD_ESCALATION_OPENED ||
        record->type == RECORD_ESCALATION_RESOLVED || record->type == RECORD_SAGA_FAILING) {
        return saga->phase;
    }
    phase = step_phase(saga, record->step);
    if (record->type == RECORD_COMPENSATION_PLANNED) {
        return phase == PHASE_FORWARD ? saga->steps[record->step].group_phase : phase;
    }
    return phase;
}

bool record_check(const struct saga *saga, const struct record *record, struct err *err)
{
    const char *missing, *broken;

    if ((unsigned)record->type >= RECORD_TYPE_COUNT) {
        return check_refuse(record, err, "its type is not known");
    }
    if (record->seq != saga->seq + 1) {
        return check_refuse(record, err, "record %llu comes next", (unsigned long long)saga->seq + 1);
    }
    if ((record->type == RECORD_SAGA_STARTED) != (saga->seq == 0)) {
        return check_refuse(record, err, "a saga starts once, and first");
    }
    if (record->at_ms <= 0) {
        return check_refuse(record, err, "it has no time");
    }
    if (!(phases[record->type] & BIT(phase_of(saga, record)))) {
        return check_refuse(record, err,
                            saga->phase == PHASE_ENDED ? "the saga has ended" : "the saga is in another phase");
    }
    if (!record_is_complete(record, &missing)) {
        return check_refuse(record, err, "it lacks %s", missing);
    }
    broken = record_broken_text(record);
    if (broken) {
        return check_refuse(record, err, "its %s is not UTF-8", broken);
    }
    if (!check_indexes(saga, record, err)) {
        return false;
    }
    if (pause_holds(saga) && pause_forbids(record)) {
        return check_refuse(record, err, "the saga is paused");
    }
    if (saga->definition->kind == SAGA_RUN && is_of_a_whole(record->type)) {
        return check_refuse(record, err, "the calls of a run are independent: it is not undone, and does not end");
    }
    return check_by_type(saga, record, err);
}

/* --- the state as a whole --- */

static bool step_is_sound(const struct saga *saga, uint32_t i)
{
    const struct step *step = &saga->steps[i];

    if (operation_effect(saga, i, DIRECTION_DO) == EFFECT_READ && step->forward.took_effect != TOOK_EFFECT_NO) {
        return false;
    }
    /* A step that surely did not happen is never undone, and nothing is undone before the plan is frozen. */
    if (step_undo(step)->state != OP_NONE && (step->plan == PLAN_NONE || step->forward.took_effect == TOOK_EFFECT_NO ||
                                              step->forward.took_effect == TOOK_EFFECT_BEFORE)) {
        return false;
    }
    if (step->forward.took_effect == TOOK_EFFECT_UNDONE && step_undo(step)->state != OP_COMPLETED &&
        !step->undone_by.ptr) {
        return false;
    }
    if (step->plan == PLAN_DONE && step->forward.took_effect != TOOK_EFFECT_UNDONE) {
        return false;
    }
    if (step->plan == PLAN_ACTIVE && step_phase(saga, i) < PHASE_UNDO) {
        return false;
    }
    if (operation_is_open(&step->forward) && step->forward.state != OP_PROBING && step_phase(saga, i) == PHASE_UNDO) {
        return false;
    }
    return step->forward.attempts == 0 || step->start_order != 0;
}

/* May the operation have been over before? Late evidence has put it in doubt, or a person has given it another round,
 * so it may have been over when the next element began. */
static bool may_have_been_over(const struct operation *op)
{
    return op->late || operation_calls(op) > op->counted;
}

/* Checks the counts of a group's members, and that elements began in order and not too many at once. */
static bool group_is_sound(const struct saga *saga, uint32_t group)
{
    const struct step *step = &saga->steps[group];
    const struct step_definition *definition = &saga->definition->steps[group];
    uint32_t begun = 0, over = 0, left = 0, room = definition->concurrency ? definition->concurrency : 1;
    uint32_t doubted = 0;

    for (uint32_t i = 0; i < step->count; i++) {
        bool is_begun = saga->steps[step->first + i].forward.state != OP_NONE;

        if (template_is_set(&definition->for_each) && is_begun && begun < i) {
            return false;
        }
        begun += is_begun;
        over += step_is_over(saga, step->first + i);
        doubted += may_have_been_over(&saga->steps[step->first + i].forward);
        left += saga->steps[step->first + i].undo_left;
    }
    if (step->begun != begun || step->over != over || step->undo_left != left) {
        return false;
    }
    if (step->forward.state != OP_NONE && step->forward.state != OP_OPEN && step->group_phase == PHASE_FAILING) {
        return false;
    }
    return template_is_set(&definition->for_each) ? group_may_end(saga, group) || step->forward.state != OP_OPEN ||
                                                        begun - over <= room + doubted || !group_is_open(saga, group)
                                                  : step->undo_active <= undo_concurrency(saga, group);
}

bool saga_is_sound(const struct saga *saga)
{
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        bool is_group = step_is_group(&saga->definition->steps[i]) && saga->steps[i].forward.state != OP_NONE;

        if (!step_is_sound(saga, i) || (is_group && !group_is_sound(saga, i))) {
            return false;
        }
    }
    if (saga->phase == PHASE_ENDED) {
        for (uint32_t i = 0; i < saga->definition->step_count; i++) {
            bool is_written = saga_is_open(saga) || i < saga->definition->written_count;

            if (saga->end == SAGA_COMPENSATED && step_may_stand(saga, i)) {
                return false;
            }
            if (saga->end == SAGA_COMPLETED && (operation_is_open(&saga->steps[i].forward) ||
                                                (is_written && !saga_is_open(saga) && !step_is_over(saga, i)))) {
                return false;
            }
        }
        return saga_status_is_final(saga->end) && saga->escalation.number == 0;
    }
    return undo_units_active(saga, STEP_NONE) <= undo_concurrency(saga, STEP_NONE);
}
