/*
 * A person's verdict on one operation: it happened, it did not, or it happened and somebody has undone it by hand. A
 * verdict may be given at any time while the outcome is unknown or the operation is tried again, whether or not a
 * person is asked about it.
 *
 * A call or a probe that is out is awaited: nothing is cut off, and no verdict is accepted meanwhile. `not happened,
 * then retry` sends again under the same key, even for `once`. But it waits until the time of the last call is over,
 * and the time that its receiver may need to show an effect (`visibility`).
 */
#include "core/saga/machine.h"

#define OPERATOR (m->input->verdict)

static enum err_code check_nothing_is_out(struct machine *m, const struct operation *op)
{
    if (op->state == OP_IN_FLIGHT) {
        (void)err_set(m->err, ERR_CALL_OUT, "a call of this operation is under way");
        err_hint(m->err, "Decide again when it has ended: its answer may say what happened.");
        return ERR_CALL_OUT;
    }
    if (operation_is_asked_now(m->saga, op, m->input->now_ms)) {
        (void)err_set(m->err, ERR_PROBE_OUT, "a probe of this operation is under way");
        err_hint(m->err, "Decide again when it has answered: it may say what happened.");
        return ERR_PROBE_OUT;
    }
    return ERR_OK;
}

enum err_code verdict_find(struct machine *m)
{
    enum err_code code;

    if (!uuid_is_nil(&OPERATOR.key.uuid)) {
        m->about = saga_find_key(m->saga, &OPERATOR.key, &m->direction);
        if (m->about == STEP_NONE) {
            return err_set(m->err, ERR_NOT_FOUND, "there is no operation with this key");
        }
        if (m->saga->phase == PHASE_ENDED) {
            return err_set(m->err, ERR_ENDED, "the saga has ended %s", saga_status_name(m->saga->end));
        }
        code = operator_check_round(m, m->about, m->direction);
        if (code != ERR_OK) {
            return code;
        }
    }
    code = check_nothing_is_out(m, operation_of(m->saga, m->about, m->direction));
    if (code == ERR_OK && OPERATOR.undone) { /* this verdict is about the effect and its undo */
        code = check_nothing_is_out(m, &m->saga->steps[m->about].forward);
        code = code == ERR_OK ? check_nothing_is_out(m, step_undo(&m->saga->steps[m->about])) : code;
    }
    return code;
}

/* --- undone by hand --- */

struct refusal {
    const char *why, *hint; /* `why` is NULL: it is allowed */
};

static struct refusal refuse_undone(const struct saga *saga, uint32_t step)
{
    static const char either[] = "Resolve it as happened, or as not_happened.";
    const struct step *s = &saga->steps[step];

    if (!step_has_call(saga, step) || operation_effect(saga, step, DIRECTION_DO) == EFFECT_READ ||
        s->forward.attempts == 0 || !step_may_stand(saga, step)) {
        return (struct refusal){"it left nothing that could have been undone",
                                "What did not happen is resolved as not_happened."};
    }
    if (saga->definition->steps[step].terminal) {
        return (struct refusal){"its tool is terminal: its effect is final, and nobody undoes it", either};
    }
    if (saga_passed_return(saga)) {
        return (struct refusal){"a terminal step of the saga has completed: what came before it stands", either};
    }
    if (s->plan == PLAN_WAIVED || s->plan == PLAN_DONE || s->plan == PLAN_DROPPED) {
        return (struct refusal){"it is settled already",
                                "What was left standing is settled as undone when the saga has ended."};
    }
    return saga->definition->kind == SAGA_RUN
               ? (struct refusal){"the calls of a run are independent: nothing of it is undone", either}
               : (struct refusal){NULL, NULL};
}

bool check_undone(const struct saga *saga, const struct record *record, struct err *err)
{
    const struct step *s = &saga->steps[record->step];
    const char *why = refuse_undone(saga, record->step).why;

    if (!uuid_equal(&s->forward.key.uuid, &record->key.uuid)) {
        return check_refuse(record, err, "it is about another key");
    }
    if (s->forward.state == OP_IN_FLIGHT || step_undo(s)->state == OP_IN_FLIGHT) {
        return check_refuse(record, err, "a call is under way");
    }
    return why == NULL || check_refuse(record, err, "%s", why);
}

static void settle(struct operation *op, const struct record *record)
{
    op->state = OP_COMPLETED;
    op->source = SOURCE_OPERATOR;
    op->ended_ms = record->at_ms;
    op->changed_ms = record->at_ms;
    op->due_ms = 0;
    op->late = op->accepted = op->earlier_maybe = false;
}

void apply_undone(struct saga *saga, const struct record *record)
{
    struct step *s = &saga->steps[record->step];

    if (s->forward.state != OP_COMPLETED) {
        settle(&s->forward, record);
        s->settled_seq = record->seq;
        apply_answered(saga, record->step);
    }
    if (s->undo && s->undo->state != OP_NONE) {
        settle(s->undo, record);
        s->undo->took_effect = TOOK_EFFECT_YES;
    }
    s->forward.took_effect = TOOK_EFFECT_UNDONE;
    s->undone_by = apply_keep(saga, record->actor);
    s->undone_note = apply_keep(saga, record->note);
    plan_move(saga, record->step, PLAN_DONE);
}

/* Returns a terminal step that may have happened; STEP_NONE when there is none. A terminal step relies on all others,
 * so they stay while its outcome is unknown. */
static uint32_t terminal_in_doubt(const struct saga *saga, uint32_t about)
{
    for (uint32_t i = 0; i < saga->definition->step_count && step_phase(saga, about) != PHASE_UNDO; i++) {
        if (saga->definition->steps[i].terminal && saga->steps[i].forward.took_effect == TOOK_EFFECT_MAYBE &&
            step_phase(saga, i) != PHASE_UNDO) {
            return i;
        }
    }
    return STEP_NONE;
}

/* The saga cannot go on without the step, so the rest is undone, too. */
static enum err_code undone(struct machine *m)
{
    struct record record;
    struct refusal refusal = refuse_undone(m->saga, m->about);
    uint32_t terminal = terminal_in_doubt(m->saga, m->about);
    bool stops = m->saga->phase == PHASE_FORWARD && step_phase(m->saga, m->about) == PHASE_FORWARD;

    if (refusal.why) {
        (void)err_set(m->err, ERR_CONFLICT, "%s", refusal.why);
        err_hint(m->err, "%s", refusal.hint);
        return ERR_CONFLICT;
    }
    if (terminal != STEP_NONE) {
        (void)err_set(m->err, ERR_UNSETTLED,
                      "%.*s cannot be undone, and may have happened: it counts on what came before it",
                      SLICE_ARG(m->saga->definition->steps[terminal].id));
        err_hint(m->err, "Decide again when that is settled.");
        return ERR_UNSETTLED;
    }
    operator_resolved(m);
    record = machine_record(m, RECORD_STEP_UNDONE, m->about, DIRECTION_DO);
    record.attempt = 0;
    record.actor = OPERATOR.actor;
    record.note = OPERATOR.note;
    machine_emit(m, &record);
    if (stops) {
        forward_stop(m, STEP_NONE, WHY("operator", "a person undid one of its effects by hand"), OPERATOR.actor,
                     OPERATOR.note);
    }
    return ERR_OK;
}

/* --- not happened, then retry --- */

static enum err_code check_again(struct machine *m)
{
    const struct saga *saga = m->saga;

    if (m->direction == DIRECTION_UNDO) {
        return ERR_OK;
    }
    if (saga->phase != PHASE_FORWARD || step_phase(saga, m->about) != PHASE_FORWARD) {
        (void)err_set(m->err, ERR_CONFLICT, "the saga is being undone: nothing is called any more");
        err_hint(m->err, "Leave \"then\" out: what did not happen needs no undo.");
        return ERR_CONFLICT;
    }
    if (saga_admits(saga, saga->definition->steps[m->about].tool, saga->steps[m->about].forward.effect, m->about) !=
        ERR_OK) {
        return err_set(m->err, ERR_CONFLICT,
                       "the saga is sealed, or something is not settled before a call that ends it");
    }
    return ERR_OK;
}

static enum err_code not_happened_again(struct machine *m)
{
    struct record record;
    int64_t quiet_ms = operation_quiet_ms(m->saga, m->about, m->direction);
    enum err_code code = check_again(m);

    if (code != ERR_OK) {
        return code;
    }
    if (operation_of(m->saga, m->about, m->direction)->state == OP_FAILED) {
        operator_resolved(m); /* the undo was refused */
    } else {
        code = operator_did_not_happen(m);
        if (code != ERR_OK) {
            return code;
        }
    }
    record = operator_record(m, m->direction == DIRECTION_UNDO ? RECORD_COMPENSATION_REOPENED : RECORD_STEP_REOPENED);
    record.attempt = 0;
    record.due_ms = quiet_ms > m->input->now_ms ? quiet_ms : m->input->now_ms;
    machine_emit(m, &record);
    return ERR_OK;
}

/* --- the door --- */

static enum err_code refuse_settled(struct machine *m, const struct operation *op)
{
    if (op->state == OP_PENDING || op->state == OP_NONE) {
        (void)err_set(m->err, ERR_CONFLICT, "it has not been called yet");
        err_hint(m->err, "Abort the saga, or pause it, to keep it from being called.");
        return ERR_CONFLICT;
    }
    (void)err_set(m->err, ERR_DECIDED, "it is settled already: it %s",
                  op->state == OP_COMPLETED ? "has happened" : "has not happened");
    err_hint(m->err, "An effect that somebody undid by hand is resolved as undone.");
    return ERR_DECIDED;
}

/* Is the step being undone? Its effect is gone either way, or about to be. Only the outcome of the undo may be
 * asked. */
static bool is_being_undone(const struct saga *saga, uint32_t step)
{
    const struct step *s = &saga->steps[step];

    return step_phase(saga, step) == PHASE_UNDO &&
           (step_undo(s)->state != OP_NONE || (s->plan != PLAN_VERDICT && s->plan != PLAN_READY));
}

static enum err_code refuse_undoing(struct machine *m)
{
    (void)err_set(m->err, ERR_DECIDED, "its undo has begun, whether it had happened or not");
    err_hint(m->err, "Resolve the operation that undoes it.");
    return ERR_DECIDED;
}

/* Refuses a verdict on an undo that was given another round and waits for its turn. It has not run yet, so it cannot
 * have failed. */
static enum err_code refuse_waiting(struct machine *m)
{
    (void)err_set(m->err, ERR_CONFLICT, "it is to be tried again, and waits for its turn in the order of undoing");
    err_hint(m->err, "Decide when it has been tried, or say that it happened if it has.");
    return ERR_CONFLICT;
}

enum err_code verdict_decide(struct machine *m)
{
    const struct operation *op = operation_of(m->saga, m->about, m->direction);
    bool undo = m->direction == DIRECTION_UNDO, refused = undo && op->state == OP_FAILED;

    if (undo && m->saga->steps[m->about].plan != PLAN_FAILED && m->saga->steps[m->about].plan != PLAN_ACTIVE &&
        m->saga->steps[m->about].plan != PLAN_READY) {
        return refuse_settled(m, op);
    }
    if (OPERATOR.undone || (refused && OPERATOR.happened)) {
        return undone(m);
    }
    if (op->state != OP_UNKNOWN && op->state != OP_PROBING && op->state != OP_RETRYING &&
        !(refused && OPERATOR.again && op->attempts > 0)) {
        return refuse_settled(m, op);
    }
    if (undo && !OPERATOR.happened && m->saga->steps[m->about].plan == PLAN_READY &&
        !undo_may_begin(m->saga, m->about)) {
        return refuse_waiting(m);
    }
    if (!undo && m->saga->steps[m->about].plan == PLAN_WAIVED) {
        return refuse_settled(m, op);
    }
    if (!undo && is_being_undone(m->saga, m->about)) {
        return refuse_undoing(m);
    }
    if (OPERATOR.again) {
        return not_happened_again(m);
    }
    return OPERATOR.happened ? operator_happened(m) : operator_did_not_happen(m);
}

/* --- what a person is offered --- */

const char *case_verdict_name(enum case_verdict verdict)
{
    static const char *const names[CASE_VERDICT_COUNT] = {"happened", "not_happened", "undone"};

    return names[verdict];
}

/* Asks the decision itself, so that what is offered and what is refused cannot drift apart. */
unsigned saga_escalation_verdicts(const struct saga *saga)
{
    unsigned verdicts = 0;

    if (!(saga_escalation_actions(saga) & BIT(OPERATOR_RESOLVE))) {
        return 0;
    }
    for (unsigned i = 0; i < CASE_VERDICT_COUNT; i++) {
        struct saga_input input = {.type = SAGA_INPUT_OPERATOR,
                                   .now_ms = saga->updated_ms,
                                   .escalation_number = saga->escalation.number + 1,
                                   .approval_number = 1,
                                   .number_stride = 1,
                                   .holds = saga->holds,
                                   .verdict = {.escalation = saga->escalation.number,
                                               .action = OPERATOR_RESOLVE,
                                               .happened = i == CASE_HAPPENED,
                                               .undone = i == CASE_UNDONE,
                                               .round = saga_case_round(saga),
                                               .result = i == CASE_HAPPENED ? SLICE("null") : SLICE_NONE,
                                               .undo_args = i == CASE_HAPPENED ? SLICE("{}") : SLICE_NONE,
                                               .actor = SLICE("-"),
                                               .note = SLICE("-")}};
        struct records records;
        struct arena scratch;
        struct err err = {0};

        arena_init(&scratch, 4096);
        enum err_code code = saga_decide(saga, &input, &scratch, &records, &err);

        arena_fini(&scratch);
        if (code == ERR_OK || code == ERR_CALL_OUT || code == ERR_PROBE_OUT) {
            verdicts |= BIT(i);
        }
    }
    return verdicts;
}
