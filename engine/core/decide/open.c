/*
 * Open sagas and runs besides their calls: completing, the deadline of an agent that vanished, signing one more
 * execution off, going on after a pause, and the rest of a run in which nothing goes on.
 */
#include "core/decide/call.h"

#include <string.h>

#define UNSETTLED_NAMES_MAX 5

void run_begin(struct machine *m)
{
    struct saga *saga = m->saga;

    if (saga->definition->kind != SAGA_RUN) {
        return;
    }
    if (saga->seq == 0) {
        forward_start_run(m);
    } else if (saga->phase == PHASE_ENDED) {
        machine_emit(m, &(struct record){.type = RECORD_RUN_WOKEN, .step = STEP_NONE});
    }
}

bool run_sleeps(const struct machine *m)
{
    const struct saga *saga = m->saga;

    return saga->definition->kind == SAGA_RUN && saga->seq > 0 && saga->phase == PHASE_ENDED &&
           m->input->now_ms >= saga->active_ms + RUN_REST_MS;
}

void run_rest_again(struct machine *m)
{
    if (saga_rests(m->saga)) {
        machine_emit(m, &(struct record){.type = RECORD_RUN_RESTED, .step = STEP_NONE});
    }
}

/* Says why this step is not settled; NULL when it is. */
static const char *unsettled_word(const struct saga *saga, uint32_t step)
{
    const struct operation *op = &saga->steps[step].forward;

    switch (op->state) {
    case OP_PENDING:
        return "not sent yet";
    case OP_IN_FLIGHT:
        return "in flight";
    case OP_RETRYING:
        return "to be tried again";
    case OP_PROBING:
        return op->accepted ? "in flight" : "outcome unknown, being asked about";
    case OP_UNKNOWN:
        return saga->steps[step].plan == PLAN_WAIVED ? NULL : "outcome unknown, for a person to find out";
    case OP_NONE:
    case OP_OPEN:
    case OP_WAITING:
    case OP_COMPLETED:
    case OP_FAILED:
    case OP_SKIPPED:
    case OP_STATE_COUNT:
        return NULL;
    }
    UNREACHABLE();
}

struct slice unsettled_list(const struct saga *saga, struct arena *arena)
{
    struct slice list = SLICE("");
    uint32_t count = 0;

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        const char *word = unsettled_word(saga, i);

        if (word && count++ < UNSETTLED_NAMES_MAX) {
            list = arena_printf(arena, "%.*s%s%.*s (%s)", SLICE_ARG(list), count > 1 ? ", " : "",
                                SLICE_ARG(saga->definition->steps[i].id), word);
        }
    }
    return count > UNSETTLED_NAMES_MAX
               ? arena_printf(arena, "%.*s and %u more", SLICE_ARG(list), count - UNSETTLED_NAMES_MAX)
               : list;
}

/* --- completing --- */

static enum err_code refuse_unsettled(struct machine *m)
{
    struct slice list = unsettled_list(m->saga, m->turn);

    if (list.len > 0) {
        (void)err_set(m->err, ERR_UNSETTLED, "not everything in the saga is settled yet");
        err_detail(m->err, "%.*s", SLICE_ARG(list));
        err_hint(m->err, "Complete it again when that is known; an abort undoes it instead.");
    } else {
        (void)err_set(m->err, ERR_UNSETTLED, "a person has to decide something about the saga first");
        err_detail(m->err, "escalation %llu: %.*s", (unsigned long long)m->saga->escalation.number,
                   SLICE_ARG(m->saga->escalation.reason));
        err_hint(m->err, "Complete it again when that is decided; see GET /v1/escalations.");
    }
    return ERR_UNSETTLED;
}

enum err_code open_complete(struct machine *m)
{
    const struct saga *saga = m->saga;

    if (saga->definition->kind != SAGA_OPEN || saga->seq == 0) {
        return err_set(m->err, ERR_CONFLICT, "only open sagas are completed by a call");
    }
    if (saga->phase == PHASE_ENDED) {
        return saga->end == SAGA_COMPLETED
                   ? ERR_OK /* a repeat */
                   : err_set(m->err, ERR_ENDED, "the saga has ended %s", saga_status_name(saga->end));
    }
    if (saga->phase != PHASE_FORWARD) {
        return err_set(m->err, ERR_CLOSED, "the saga is being undone");
    }
    if (saga->paused.ptr) {
        (void)err_set(m->err, ERR_PAUSED, "the saga is paused: %.*s", SLICE_ARG(saga->paused));
        err_hint(m->err, "An operator can resume it; an abort undoes it.");
        return ERR_PAUSED;
    }
    if (saga_is_unsettled(saga) || saga->escalation.number) {
        return refuse_unsettled(m);
    }
    forward_finish(m, m->input->complete.output, SLICE_NONE);
    return ERR_OK;
}

/* --- aborting --- */

enum err_code open_abort_check(struct machine *m)
{
    if (m->saga->definition->kind != SAGA_RUN) {
        return ERR_OK;
    }
    (void)err_set(m->err, ERR_CONFLICT, "a run cannot be aborted: its operations are independent of each other");
    err_hint(m->err, "What is to be undone together belongs into an open saga.");
    return ERR_CONFLICT;
}

/* --- the deadline --- */

/* Does the deadline still count? */
bool open_deadline_counts(const struct saga *saga)
{
    if (saga->definition->kind != SAGA_OPEN || saga->phase != PHASE_FORWARD || !saga->deadline_ms || saga->paused.ptr ||
        saga->held_ms) {
        return false;
    }
    if (saga_passed_return(saga)) { /* the work is done, and only reads can still go on */
        return !saga_is_unsettled(saga) && !saga->escalation.number;
    }
    return !saga->escalate_on_timeout || !saga->escalation.number; /* one question at a time */
}

void open_deadline(struct machine *m)
{
    const struct saga *saga = m->saga;

    if (!open_deadline_counts(saga) || m->input->now_ms < saga->deadline_ms) {
        return;
    }
    if (saga_passed_return(saga)) {
        forward_finish(m, SLICE_NONE, SLICE_NONE);
    } else if (saga->escalate_on_timeout) {
        escalation_raise(m, STEP_NONE, DIRECTION_DO, SLICE("deadline"));
    } else {
        forward_stop(m, STEP_NONE, WHY("deadline", "its agent has not completed it in time"), SLICE_NONE, SLICE_NONE);
    }
}

/* --- rest --- */

void open_rest(struct machine *m)
{
    if (saga_rests(m->saga) && m->input->now_ms >= m->saga->updated_ms + RUN_REST_MS) {
        machine_emit(m, &(struct record){.type = RECORD_RUN_RESTED, .step = STEP_NONE});
    }
}

/* --- one more execution --- */

static bool is_newest(const struct saga *saga, uint32_t step)
{
    const struct operation *op = &saga->steps[step].forward;

    for (uint32_t i = step + 1; i < saga->definition->step_count; i++) {
        const struct operation *other = &saga->steps[i].forward;

        if (other->effect != EFFECT_READ && slice_equal(step_key_name(saga, i), step_key_name(saga, step)) &&
            slice_equal(saga->definition->steps[i].tool->name, saga->definition->steps[step].tool->name) &&
            slice_equal(other->scope, op->scope)) {
            return false;
        }
    }
    return true;
}

static enum err_code bypass_check_saga(struct machine *m)
{
    const struct saga *saga = m->saga;

    if (!saga_is_open(saga)) {
        (void)err_set(m->err, ERR_CONFLICT, "only calls of agents can be signed off for one more execution");
        err_hint(m->err, "Start the saga again instead.");
        return ERR_CONFLICT;
    }
    if (!m->input->bypass.actor.len || !m->input->bypass.note.len) {
        return err_set(m->err, ERR_INVALID, "a bypass needs an actor and a reason");
    }
    if (saga->phase == PHASE_ENDED) {
        return err_set(m->err, ERR_ENDED, "the saga has ended %s", saga_status_name(saga->end));
    }
    if (saga->phase != PHASE_FORWARD) {
        return err_set(m->err, ERR_CLOSED, "the saga is being undone");
    }
    if (saga_sealed_by(saga) != STEP_NONE) {
        return err_set(m->err, ERR_SEALED, "a call that cannot be undone was the last effect of the saga");
    }
    return ERR_OK;
}

static enum err_code bypass_check_step(struct machine *m, uint32_t step)
{
    const struct saga *saga = m->saga;
    const struct operation *op = &saga->steps[step].forward;

    if (op->effect == EFFECT_READ) {
        return err_set(m->err, ERR_INVALID, "a read needs no signature: it is called again each time");
    }
    if (!is_newest(saga, step)) {
        (void)err_set(m->err, ERR_CONFLICT, "it was executed once more already");
        err_hint(m->err, "Sign off the newest operation of this step, tool and scope.");
        return ERR_CONFLICT;
    }
    if (unsettled_word(saga, step)) {
        (void)err_set(m->err, ERR_CONFLICT, "it is not settled: %s", unsettled_word(saga, step));
        err_hint(m->err, "What may still happen is not to be done once more. Settle it first.");
        return ERR_CONFLICT;
    }
    if (saga->steps[step].bypass && saga->steps[step].bypass->expires_ms > m->input->now_ms) {
        return err_set(m->err, ERR_DECIDED, "one more execution is signed off already, and not used yet");
    }
    return ERR_OK;
}

enum err_code open_bypass(struct machine *m)
{
    const struct saga_input *input = m->input;
    struct record record = {.type = RECORD_BYPASS_SIGNED};
    enum direction direction = DIRECTION_DO;
    uint32_t step = saga_find_key(m->saga, &input->bypass.key, &direction);
    enum err_code code;

    if (m->saga->seq == 0 || step == STEP_NONE) {
        return err_set(m->err, ERR_NOT_FOUND, "there is no operation of this key");
    }
    if (direction != DIRECTION_DO) {
        return err_set(m->err, ERR_INVALID, "what undoes is never executed once more");
    }
    run_begin(m); /* the caller drops it again when this is refused */
    code = bypass_check_saga(m);
    code = code == ERR_OK ? bypass_check_step(m, step) : code;
    if (code != ERR_OK) {
        return code;
    }
    record.step = step;
    record.key = m->saga->steps[step].forward.key;
    record.fingerprint = m->saga->steps[step].forward.fingerprint;
    record.due_ms = input->now_ms + CALL_BYPASS_MS;
    record.actor = input->bypass.actor;
    record.note = input->bypass.note;
    machine_emit(m, &record);
    return ERR_OK;
}

/* --- going on --- */

enum err_code open_resume(struct machine *m)
{
    struct saga *saga = m->saga;
    struct record record = {.type = RECORD_SAGA_RESUMED, .step = STEP_NONE};

    if (saga->seq > 0 && saga->phase == PHASE_ENDED && saga->definition->kind != SAGA_RUN) {
        return err_set(m->err, ERR_ENDED, "the saga has ended %s", saga_status_name(saga->end));
    }
    if (!pause_holds(saga) && saga->phase != PHASE_FORWARD && saga->phase != PHASE_ENDED) {
        return err_set(m->err, ERR_CLOSED, "the saga is being undone, which nothing holds up");
    }
    if (!saga->paused.ptr && (!saga->loop || saga->loop->closed_count == 0)) {
        return err_set(m->err, ERR_CONFLICT, "nothing in it is paused or closed");
    }
    if (!m->input->resume.actor.len) {
        return err_set(m->err, ERR_INVALID, "to resume needs an actor");
    }
    run_begin(m);
    record.actor = m->input->resume.actor;
    record.note = m->input->resume.note;
    machine_emit(m, &record);
    return ERR_OK;
}
