/*
 * Turns an input into records. The decision works on a copy of the state. Each new record is applied there, so that the
 * decision can go on from it (a step settled, so which is next?) until nothing follows without further input. The state
 * itself does not change before the records are durable.
 */
#include <string.h>

#include "base/utf8.h"
#include "core/decide/call.h"
#include "core/saga/sensitive.h"

#define TURN_BYTES ((size_t)8 << 20) /* a thousand elements may each have large arguments, so one commit is bounded */

struct record machine_record(const struct machine *m, enum record_type type, uint32_t step, enum direction direction)
{
    struct record record = {.type = type, .step = step, .direction = direction};

    if (step != STEP_NONE) {
        const struct operation *op = operation_of(m->saga, step, direction);

        record.key = op->key;
        record.attempt = op->attempts;
    }
    return record;
}

/* Returns the place of the next record. */
static struct record *place_of_next(struct records *out, struct arena *turn)
{
    if (out->count == out->capacity) {
        size_t capacity = out->capacity ? out->capacity * 2 : 2; /* most turns have two records */
        struct record *items = arena_array(turn, capacity, sizeof(*items));

        if (out->count > 0) {
            memcpy(items, out->items, out->count * sizeof(*items));
        }
        out->items = items;
        out->capacity = capacity;
    }
    return &out->items[out->count];
}

void machine_emit(struct machine *m, const struct record *emitted)
{
    struct records *out = m->out;
    struct record *record = place_of_next(out, m->turn);

    *record = *emitted;
    record->seq = m->saga->seq + 1;
    record->at_ms = m->input->now_ms;
    record->bulk = out->count == 0 ? m->input->bulk.id : SLICE_NONE;
    /* Messages of libraries and programs may hold any bytes. Names and ids may not, and record_check() refuses
     * those. */
    record->error = text_as_utf8(record->error, m->turn);
    record->detail = text_as_utf8(record->detail, m->turn);
    record->undo_error = text_as_utf8(record->undo_error, m->turn);
    saga_mask_sentences(m->saga, record, m->turn);
    if (!record_check(m->saga, record, m->err)) {
        longjmp(m->misfit, 1);
    }
    out->count++;
    m->bytes += record->args.len + record->result.len;
    if (m->witness) {
        m->witness->before(m->witness, m->saga, record);
    }
    saga_apply(m->saga, record);
    if (m->witness) {
        m->witness->after(m->witness, m->saga, record);
    }
}

bool machine_is_full(const struct machine *m)
{
    return m->bytes > TURN_BYTES;
}

struct slice machine_faults(struct machine *m, const struct faults *faults)
{
    const struct fault *first = &faults->items[0];
    size_t others = faults->count + faults->dropped - 1;

    if (others > 0) {
        return arena_printf(m->turn, "at \"%.*s\": %.*s (and %zu more)", SLICE_ARG(first->pointer),
                            SLICE_ARG(first->detail), others);
    }
    return arena_printf(m->turn, "at \"%.*s\": %.*s", SLICE_ARG(first->pointer), SLICE_ARG(first->detail));
}

struct slice machine_oversize(struct machine *m, const char *what, struct slice value)
{
    size_t most = m->input->payload_bytes_max;

    if (most == 0 || value.len <= most) {
        return SLICE_NONE;
    }
    return arena_printf(m->turn, "%s %zu bytes, and at most %zu are allowed: pass references instead of large values",
                        what, value.len, most);
}

static void machine_advance(struct machine *m)
{
    bool more = true;

    while (more && !pause_holds(m->saga)) {
        switch (m->saga->phase) {
        case PHASE_FORWARD:
            more = forward_advance(m);
            break;
        case PHASE_FAILING:
            more = failing_advance(m);
            break;
        case PHASE_UNDO:
            more = undo_advance(m);
            break;
        case PHASE_ENDED:
            more = false;
            break;
        }
    }
}

/* --- inputs that are not about an operation's outcome --- */

static void decide_evaluated(struct machine *m)
{
    const struct saga_input *input = m->input;
    struct saga *saga = m->saga;
    uint32_t step = input->evaluated.step;

    switch (input->evaluated.what) {
    case EVALUATE_ARGS:
        if (step >= saga->definition->step_count || !step_is_ready(saga, step) || !step_needs_evaluation(saga, step)) {
            return;
        }
        if (forward_condition_stops(m, step)) { /* the turn in which the step became ready was full */
            return;
        }
        if (input->evaluated.failed) {
            forward_refuse_arguments(m, step, input->evaluated.error);
        } else if (input->evaluated.skipped) {
            if (saga->definition->steps[step].when.program_count > 0) {
                forward_skip(m, step);
            }
        } else {
            /* When only the condition is a program, nothing else may be left to evaluate. */
            forward_begin(m, step, input->evaluated.value.len ? input->evaluated.value : SLICE("{}"),
                          input->evaluated.scope);
        }
        return;
    case EVALUATE_LOCKS:
        lock_evaluated(m);
        return;
    case EVALUATE_OUTPUT:
        if (step != STEP_NONE) {
            if (step < saga->definition->step_count) {
                group_output(m, step, input->evaluated.value,
                             input->evaluated.failed ? input->evaluated.error : SLICE_NONE);
            }
            return;
        }
        if (saga_is_finished(saga) && finish_needs_evaluation(saga) && !saga->escalation.number) {
            forward_finish(m, input->evaluated.value, input->evaluated.failed ? input->evaluated.error : SLICE_NONE);
        }
        return;
    case EVALUATE_UNDO:
        if (step >= saga->definition->step_count || !undo_may_begin(saga, step) ||
            call_is_held(m, step, DIRECTION_UNDO) || !undo_needs_evaluation(saga, step)) {
            return;
        }
        if (input->evaluated.failed) {
            undo_refuse_arguments(m, step, input->evaluated.error);
        } else {
            undo_begin(m, step, input->evaluated.value);
        }
        return;
    }
    UNREACHABLE();
}

static void decide_deadline(struct machine *m)
{
    const struct saga *saga = m->saga;

    if (saga_is_open(saga)) {
        open_deadline(m);
        return;
    }
    if (saga->phase == PHASE_FORWARD && saga->deadline_ms && m->input->now_ms >= saga->deadline_ms && !saga->held_ms &&
        !saga_is_finished(saga)) {
        forward_stop(m, STEP_NONE, WHY("deadline", "the deadline has passed before the work was done"), SLICE_NONE,
                     SLICE_NONE);
    }
}

static void decide_timer(struct machine *m)
{
    const struct saga *saga = m->saga;
    const struct operation *op;
    uint32_t step = m->input->timer.step;

    if (step == STEP_NONE) {
        switch (m->input->timer.timer) {
        case SAGA_TIMER_DEADLINE:
            decide_deadline(m);
            return;
        case SAGA_TIMER_REST:
            open_rest(m);
            return;
        case SAGA_TIMER_HOLD: /* the turn itself says what follows: decide/hold.c */
            return;
        }
        UNREACHABLE();
    }
    if (step >= saga->definition->step_count) {
        return;
    }
    op = operation_of(saga, step, m->input->timer.direction);
    if (m->input->timer.direction == DIRECTION_DO && op->state == OP_NONE) { /* the turn before was full */
        (void)forward_take_turn(m, step);
        return;
    }
    if (m->input->timer.direction == DIRECTION_UNDO && saga->steps[step].plan == PLAN_READY) {
        (void)undo_take_turn(m, step);
        return;
    }
    if (m->input->timer.direction == DIRECTION_DO && step_is_wait(saga, step)) {
        wait_over(m, step);
        return;
    }
    if (op->state == OP_OPEN) {
        group_timer(m, step);
        return;
    }
    if (m->input->timer.direction == DIRECTION_DO && step_has_call(saga, step) &&
        saga->definition->steps[step].tool->guarded) {
        return; /* the guards are asked instead */
    }
    if (op->state == OP_PENDING) {
        /* The call was surely not sent yet. While a person is asked, no new call is sent. */
        if (step_may_leave(saga, step)) {
            operation_attempt(m, step, m->input->timer.direction);
        }
        return;
    }
    /* An undo that was given another round waits for its turn, not for a time. */
    if (op->state == OP_RETRYING && m->input->now_ms >= op->due_ms &&
        (m->input->timer.direction == DIRECTION_DO || saga->steps[step].plan == PLAN_ACTIVE)) {
        operation_due(m, step, m->input->timer.direction);
    }
}

static enum err_code decide_abort(struct machine *m)
{
    struct saga *saga = m->saga;
    enum err_code code = open_abort_check(m);

    if (code != ERR_OK) {
        return code;
    }
    if (saga->seq == 0) {
        return err_set(m->err, ERR_CONFLICT, "the saga has not started");
    }
    if (saga->phase == PHASE_ENDED && !saga_passed_return(saga)) {
        return err_set(m->err, ERR_ENDED, "the saga has ended %s", saga_status_name(saga->end));
    }
    if (saga_passed_return(saga)) {
        (void)err_set(m->err, ERR_PAST_RETURN, "a step that cannot be undone has completed");
        err_hint(m->err, "Start a saga that makes up for it instead.");
        return ERR_PAST_RETURN;
    }
    if (!m->input->abort.actor.len) {
        return err_set(m->err, ERR_INVALID, "an abort needs an actor");
    }
    if (saga->phase != PHASE_FORWARD && pause_holds(saga)) {
        (void)err_set(m->err, ERR_PAUSED, "the saga is being undone already, and that is paused");
        err_hint(m->err, "Resume it: the undoing goes on then.");
        return ERR_PAUSED;
    }
    if (saga->phase == PHASE_FORWARD) { /* otherwise the saga is already being undone */
        forward_stop(m, STEP_NONE, WHY("abort", "somebody aborted the saga"), m->input->abort.actor,
                     m->input->abort.note);
    }
    return ERR_OK;
}

/* Decides a rerun. No record is written for a saga that has ended: ERR_ENDED tells the caller that it may be run
 * again. */
static enum err_code decide_rerun(struct machine *m)
{
    const struct saga *saga = m->saga;

    if (saga_is_open(saga)) {
        (void)err_set(m->err, ERR_CONFLICT,
                      "the steps of this saga are calls of an agent, who would have to call again");
        err_hint(m->err, "Open another saga instead.");
        return ERR_CONFLICT;
    }
    if (saga->seq == 0 || saga->phase != PHASE_ENDED) {
        (void)err_set(m->err, ERR_CONFLICT, "the saga has not ended: there is nothing to run again yet");
        err_hint(m->err, "Abort it, or let it go on with a mended tool.");
        return ERR_CONFLICT;
    }
    return err_set(m->err, ERR_ENDED, "the saga has ended %s", saga_status_name(saga->end));
}

static enum err_code decide_by_type(struct machine *m)
{
    switch (m->input->type) {
    case SAGA_INPUT_START:
        return forward_start(m);
    case SAGA_INPUT_SETTLED:
        operation_settled(m);
        return ERR_OK;
    case SAGA_INPUT_PROBED:
        operation_probed(m);
        return ERR_OK;
    case SAGA_INPUT_EVALUATED:
        decide_evaluated(m);
        return ERR_OK;
    case SAGA_INPUT_TIMER:
        decide_timer(m);
        return ERR_OK;
    case SAGA_INPUT_ABORT:
        return decide_abort(m);
    case SAGA_INPUT_OPERATOR:
        return operator_decide(m);
    case SAGA_INPUT_ESCALATE:
        return escalation_ask(m);
    case SAGA_INPUT_REMARK:
        return ERR_OK; /* a remark stands beside the log */
    case SAGA_INPUT_ADMITTED:
        forward_admitted(m);
        return ERR_OK;
    case SAGA_INPUT_CALL:
        return call_decide(m);
    case SAGA_INPUT_COMPLETE:
        return open_complete(m);
    case SAGA_INPUT_BYPASS:
        return open_bypass(m);
    case SAGA_INPUT_COST:
        return cost_decide(m);
    case SAGA_INPUT_MEND:
        return mend_decide(m);
    case SAGA_INPUT_RERUN:
        return decide_rerun(m);
    case SAGA_INPUT_RESUME:
        return open_resume(m);
    case SAGA_INPUT_PAUSE:
        return pause_decide(m);
    case SAGA_INPUT_SIGNAL:
        return wait_signal(m);
    case SAGA_INPUT_DECISION:
        return wait_decide(m);
    case SAGA_INPUT_LOCKED:
        lock_answered(m);
        return ERR_OK;
    }
    UNREACHABLE();
}

static bool is_from_outside(enum saga_input_type type)
{
    switch (type) {
    case SAGA_INPUT_START:
    case SAGA_INPUT_ABORT:
    case SAGA_INPUT_OPERATOR:
    case SAGA_INPUT_ESCALATE:
    case SAGA_INPUT_REMARK:
    case SAGA_INPUT_CALL:
    case SAGA_INPUT_COMPLETE:
    case SAGA_INPUT_BYPASS:
    case SAGA_INPUT_COST:
    case SAGA_INPUT_MEND:
    case SAGA_INPUT_RERUN:
    case SAGA_INPUT_RESUME:
    case SAGA_INPUT_PAUSE:
    case SAGA_INPUT_SIGNAL:
    case SAGA_INPUT_DECISION:
        return true;
    case SAGA_INPUT_SETTLED:
    case SAGA_INPUT_PROBED:
    case SAGA_INPUT_EVALUATED:
    case SAGA_INPUT_TIMER:
    case SAGA_INPUT_ADMITTED:
    case SAGA_INPUT_LOCKED:
        return false;
    }
    UNREACHABLE();
}

/* Does a pause hold the input up? It is asked for again when the pause is over. Calls and probes that were under way
 * are settled. */
static bool is_held_up(const struct machine *m)
{
    enum saga_input_type type = m->input->type;

    return pause_holds(m->saga) &&
           (type == SAGA_INPUT_TIMER || type == SAGA_INPUT_EVALUATED || type == SAGA_INPUT_ADMITTED);
}

/* Does the input wake the run? A resting run wakes when a call of it that had failed turns out to have succeeded. */
static bool wakes_run(const struct machine *m)
{
    const struct saga_input *input = m->input;

    return m->saga->definition->kind == SAGA_RUN && m->saga->seq > 0 && input->type == SAGA_INPUT_SETTLED &&
           operation_is_contradicted(m);
}

/* Checks an item of a bulk job. The set of the job shows each operation as it was, and the person decided about that
 * state, not about what the operation has become since. */
static enum err_code check_bulk(struct machine *m)
{
    const struct bulk_act *bulk = &m->input->bulk;
    enum direction direction = DIRECTION_DO;
    uint32_t step;

    if (!bulk->id.ptr || uuid_is_nil(&bulk->key.uuid)) {
        return ERR_OK;
    }
    step = saga_find_key(m->saga, &bulk->key, &direction);
    if (step != STEP_NONE && operation_calls(operation_of(m->saga, step, direction)) == bulk->attempts) {
        return ERR_OK;
    }
    (void)err_set(m->err, ERR_DECIDED, "the operation was called again after the set of the bulk job was frozen");
    err_hint(m->err, "Look at it, and decide about it by itself or in a new bulk job.");
    return ERR_DECIDED;
}

static enum err_code decide(struct machine *m)
{
    const struct saga *saga = m->saga;
    struct records *out = m->out;
    enum err_code code;

    if (saga_did_bulk(saga, m->input->bulk.id)) {
        return ERR_OK; /* an engine died between the turn and the outcome of the item */
    }
    code = check_bulk(m);
    if (code != ERR_OK) {
        return code;
    }
    if (!is_from_outside(m->input->type) && (saga->seq == 0 || saga->phase == PHASE_ENDED)) {
        if (!wakes_run(m)) {
            return ERR_OK; /* too late, or for a saga that never was, so it means nothing any more */
        }
        run_begin(m);
    }
    if (is_held_up(m)) {
        return ERR_OK;
    }
    hold_begin_turn(m);
    code = decide_by_type(m);
    if (code == ERR_OK && out->count > 0) {
        machine_advance(m);
    }
    if (code == ERR_OK) {
        hold_end_turn(m);
    }
    return code;
}

enum err_code saga_decide_next(const struct saga *saga, const struct saga_input *input, struct arena *turn,
                               struct decision *decision, struct err *err)
{
    struct err why = {0};
    struct records *out = &decision->records;
    struct machine m = {.saga = saga_copy(saga, turn),
                        .input = input,
                        .turn = turn,
                        .out = out,
                        .err = &why,
                        .witness = decision->witness};
    enum err_code code;

    *out = (struct records){0};
    decision->next = NULL;
    /* A decision that its own rules refuse is a bug. Nothing of it is durable, so it is taken back whole. An unforeseen
     * input is then refused instead of ending one engine after the other. */
    if (setjmp(m.misfit) != 0) {
        *out = (struct records){0};
        (void)err_context(&why, "the decision contradicts the state");
        if (err) {
            *err = why;
            err->code = ERR_INTERNAL;
        }
        return ERR_INTERNAL;
    }
    code = decide(&m);
    if (code != ERR_OK) {
        struct call_answer answer = out->answer;

        *out = (struct records){.answer = answer}; /* a refusal may still be about an operation */
        if (err) {
            *err = why;
        }
    }
    decision->next = out->count > 0 ? m.saga : NULL;
    return code;
}

enum err_code saga_decide(const struct saga *saga, const struct saga_input *input, struct arena *turn,
                          struct records *out, struct err *err)
{
    struct decision decision = {0};
    enum err_code code = saga_decide_next(saga, input, turn, &decision, err);

    *out = decision.records;
    return code;
}
