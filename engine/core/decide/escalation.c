/*
 * Questions to a person. The state decides which questions are open, and one is asked at a time. A question that is
 * answered by late evidence or by a probe is closed again. A person may have a question asked before it follows from
 * the state. It is closed when its operation is settled, and asked anew when the operation cannot be settled by itself.
 */
#include "base/json.h"
#include "core/saga/machine.h"

#define OPEN_ITEMS_MAX 256
#define DETAIL_BYTES_MAX ((size_t)16 << 10) /* the log has the whole text */

struct question {
    uint32_t step; /* STEP_NONE when there is none, or when it is about the saga as a whole */
    enum direction direction;
    struct slice reason;
    struct slice actor, note; /* the person who has it asked */
};

#define REASON_ASKED "asked" /* a person asked */

/* Must a person decide what becomes of this operation? */
static bool question_stands(const struct saga *saga, uint32_t step, enum direction direction)
{
    const struct step *s = &saga->steps[step];

    if (direction == DIRECTION_UNDO) {
        return s->plan == PLAN_FAILED || operation_is_denied(step_undo(s));
    }
    if (s->plan != PLAN_NONE && s->plan != PLAN_VERDICT) {
        return false;
    }
    if (operation_is_denied(&s->forward)) {
        return true;
    }
    if (saga->definition->steps[step].on_failure != ON_FAILURE_COMPENSATE && step_phase(saga, step) == PHASE_FORWARD) {
        /* Whatever follows a failure, the failure must be certain first. */
        return s->forward.state == OP_UNKNOWN ||
               (s->forward.state == OP_FAILED && saga->definition->steps[step].on_failure == ON_FAILURE_ESCALATE);
    }
    /* An agent goes on whatever the outcome of one call, and a saga goes on with what a person has vouched for. There
     * the person is asked, even if the step could be undone blindly. When the step is to be undone anyway, it is
     * undone. */
    if (s->forward.state == OP_UNKNOWN && (s->forward.late || saga_is_open(saga)) &&
        step_phase(saga, step) == PHASE_FORWARD) {
        return true;
    }
    return s->forward.state == OP_UNKNOWN && (!step_can_be_undone_blind(saga, step) || s->plan == PLAN_VERDICT);
}

/* Is it a question that does not follow from the state of an operation? */
bool escalation_is_raised(const struct escalation *open)
{
    return open->step == STEP_NONE || slice_is(open->reason, "duplicate") || slice_is(open->reason, "late-duplicate");
}

static struct slice late_reason(const struct operation *op)
{
    return op->denied ? SLICE("late-failure") : SLICE("late-success");
}

/* Did a person have it asked while its operation may still be settled by itself? */
static bool is_early(const struct escalation *open)
{
    return slice_is(open->reason, REASON_ASKED) && open->step != STEP_NONE;
}

/* Is the question asked anew? Either evidence came that says the opposite of what the question was about, or nothing
 * else will answer the question any more and the evidence it was opened with is old. */
static bool is_asked_anew(const struct saga *saga, const struct escalation *open)
{
    const struct operation *op;

    if (escalation_is_raised(open)) {
        return false;
    }
    op = operation_of(saga, open->step, open->direction);
    return (op->late && !slice_is(open->reason, OUTCOME_EGRESS_DENIED) &&
            !slice_equal(open->reason, late_reason(op))) ||
           (is_early(open) && question_stands(saga, open->step, open->direction));
}

/* Was the operation denied and is no longer? The settings or the tool have been changed since, or it is not wanted any
 * more. */
static bool is_let_through(const struct saga *saga, const struct escalation *open)
{
    return slice_is(open->reason, OUTCOME_EGRESS_DENIED) &&
           !operation_is_denied(operation_of(saga, open->step, open->direction));
}

/* Is it known by now that the operation was denied and never sent? A denied probe that a person wants changes
 * nothing. */
static bool is_denied_since(const struct saga *saga, const struct escalation *open)
{
    const struct operation *op;

    if (escalation_is_raised(open) || slice_is(open->reason, OUTCOME_EGRESS_DENIED)) {
        return false;
    }
    op = operation_of(saga, open->step, open->direction);
    return operation_is_denied(op) && op->state != OP_PROBING;
}

bool escalation_stands(const struct saga *saga)
{
    const struct escalation *open = &saga->escalation;

    if (escalation_is_raised(open)) { /* no evidence answers it, only being undone does */
        return saga->phase == PHASE_FORWARD;
    }
    if (is_asked_anew(saga, open) || is_let_through(saga, open) || is_denied_since(saga, open)) {
        return false;
    }
    if (question_stands(saga, open->step, open->direction) ||
        (is_early(open) && operation_is_open(operation_of(saga, open->step, open->direction)))) {
        return true;
    }
    /* It is being probed again because a person wants that, and the answer decides. */
    return open->asked_by.ptr && operation_of(saga, open->step, open->direction)->state == OP_PROBING;
}

static struct slice reason_of(const struct operation *op, enum direction direction)
{
    if (operation_is_denied(op)) {
        return SLICE(OUTCOME_EGRESS_DENIED);
    }
    if (op->late) {
        return late_reason(op);
    }
    if (direction == DIRECTION_UNDO) {
        return slice_is(op->error, "arguments") ? SLICE("compensation-arguments") : SLICE("compensation-failed");
    }
    return op->state == OP_FAILED ? SLICE("step-failed") : SLICE("unknown");
}

static struct question next_question(const struct saga *saga)
{
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        for (unsigned d = 0; d < DIRECTION_COUNT; d++) {
            enum direction direction = (enum direction)d;

            if (question_stands(saga, i, direction)) {
                return (struct question){.step = i,
                                         .direction = direction,
                                         .reason = reason_of(operation_of(saga, i, direction), direction)};
            }
        }
    }
    return (struct question){.step = STEP_NONE};
}

/* --- evidence --- */

static void write_open_items(struct json_writer *w, const struct saga *saga)
{
    uint32_t listed = 0;

    json_array_begin(w, "open");
    for (uint32_t i = 0; i < saga->definition->step_count && listed < OPEN_ITEMS_MAX; i++) {
        const struct step *s = &saga->steps[i];
        bool question = question_stands(saga, i, DIRECTION_DO) || question_stands(saga, i, DIRECTION_UNDO);

        /* While undoing, every effect that still stands is open, even if it only waits for something else. */
        if (!question && !operation_is_open(&s->forward) &&
            !(step_may_stand(saga, i) && s->plan != PLAN_WAIVED && step_phase(saga, i) == PHASE_UNDO)) {
            continue;
        }
        listed++;
        json_object_begin(w, NULL);
        json_write_slice(w, "step", saga->definition->steps[i].id);
        json_write_text(w, "status", step_status_name(saga_step_status(saga, i)));
        json_write_text(w, "took_effect", took_effect_name(s->forward.took_effect));
        json_write_bool(w, "needs_person", question);
        json_object_end(w);
    }
    json_array_end(w);
}

/* Returns the beginning of a text, cut between characters. The reason that a precheck gives may be as long as the
 * output of a program. */
static struct slice beginning_of(struct slice text)
{
    if (text.len > DETAIL_BYTES_MAX) {
        text.len = DETAIL_BYTES_MAX;
        while (text.len > 0 && ((unsigned char)text.ptr[text.len] & 0xc0) == 0x80) {
            text.len--;
        }
    }
    return text;
}

static void write_operation(struct json_writer *w, const struct saga *saga, const struct question *question)
{
    const struct operation *op = operation_of(saga, question->step, question->direction);
    char key[UUID_TEXT_BYTES];

    uuid_text(&op->key.uuid, key);
    json_write_slice(w, "operation", uuid_is_nil(&op->key.uuid) ? SLICE_NONE : slice_of(key));
    json_write_slice(w, "tool",
                     question->direction == DIRECTION_UNDO || step_has_call(saga, question->step)
                         ? saga_tool(saga, question->step, question->direction)->name
                         : SLICE_NONE);
    json_write_text(w, "direction", direction_name(question->direction));
    json_write_i64(w, "attempts", operation_calls(op));
    if (op->never_left > 0) {
        json_write_i64(w, "unsent", op->never_left);
    }
    json_write_instant(w, "first_sent_at", op->first_sent_ms);
    json_write_instant(w, "last_sent_at", op->last_sent_ms);
    json_write_slice(w, "last_error", op->error.len ? beginning_of(op->error) : SLICE_NONE);
    json_write_slice(w, "detail", op->detail.len ? beginning_of(op->detail) : SLICE_NONE);
    if (op->answer.ptr) { /* the last status and body of the receiver */
        json_write_raw(w, "answer", op->answer);
        json_write_i64(w, "answer_attempt", op->answer_attempt);
    }
    json_write_i64(w, "probes", op->probes);
    if (op->duplicates > 0) {
        json_write_i64(w, "duplicates_seen", op->duplicates);
    }
    if (op->late) {
        json_write_bool(w, "contradicted", true); /* the log has the evidence as step.late or compensation.late */
    }
}

static struct slice evidence(struct machine *m, const struct question *question)
{
    struct buffer out;
    struct json_writer w;
    struct slice text;

    buffer_init(&out, (size_t)1 << 20);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    if (question->step != STEP_NONE) {
        write_operation(&w, m->saga, question);
    }
    write_open_items(&w, m->saga);
    json_object_end(&w);
    CHECK(!out.overflow); /* the number of items and the texts are bounded */
    text = arena_slice(m->turn, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

static struct op_key key_of(const struct saga *saga, uint32_t step, enum direction direction)
{
    return step == STEP_NONE ? (struct op_key){0} : operation_of(saga, step, direction)->key;
}

/* --- opening and closing --- */

static void escalation_open(struct machine *m, const struct question *question)
{
    struct record record = {.type = RECORD_ESCALATION_OPENED, .step = question->step, .direction = question->direction};
    const struct case_round *last = saga_asked(m->saga, question->step, question->direction);

    CHECK(m->input->escalation_number != 0);
    record.escalation = last ? last->number : m->input->escalation_number;
    record.reason = question->reason;
    record.actor = question->actor;
    record.note = question->note;
    record.key = key_of(m->saga, question->step, question->direction);
    record.result = evidence(m, question);
    m->opened = true;
    machine_emit(m, &record);
}

static void escalation_close(struct machine *m)
{
    const struct escalation *open = &m->saga->escalation;
    bool asked = open->asked_by.ptr != NULL;
    struct record record = {.type = RECORD_ESCALATION_RESOLVED, .step = open->step, .direction = open->direction};

    record.escalation = open->number;
    record.key = key_of(m->saga, open->step, open->direction);
    record.action = asked ? SLICE("probe") : SLICE("evidence");
    record.actor = asked ? open->asked_by : SLICE("sagad");
    record.note =
        asked                            ? open->asked_note
        : is_let_through(m->saga, open)  ? SLICE("the settings do not deny it any more, or it is not wanted any more")
        : is_denied_since(m->saga, open) ? SLICE("it was never sent, because the settings deny it: it is asked anew")
        : is_early(open) && question_stands(m->saga, open->step, open->direction)
            ? SLICE("it is not settled by itself any more: it is asked anew")
        : is_asked_anew(m->saga, open) ? SLICE("an answer came that contradicts what was settled: it is asked anew")
                                       : SLICE("it was settled without a person");
    machine_emit(m, &record);
}

void escalation_raise(struct machine *m, uint32_t step, enum direction direction, struct slice reason)
{
    const struct question question = {.step = step, .direction = direction, .reason = reason};

    CHECK(m->saga->escalation.number == 0 && !m->opened);
    escalation_open(m, &question);
}

bool escalation_advance(struct machine *m)
{
    struct question question;

    if (m->saga->escalation.number) {
        if (escalation_stands(m->saga)) {
            return false;
        }
        escalation_close(m);
        return true;
    }
    question = next_question(m->saga);
    if (question.step == STEP_NONE) {
        return false;
    }
    if (m->opened) { /* one input opens at most one question; the next is asked when that is answered */
        return false;
    }
    escalation_open(m, &question);
    return true;
}

/* --- a person has it asked --- */

/* Returns the operation that the saga waits for: one with an unknown outcome, else one that is tried again, else one
 * that is being called now. The saga does not wait for an operation that was not sent yet; then the question is about
 * the saga itself. */
static struct question question_of_person(const struct saga *saga)
{
    static const enum op_state states[] = {OP_UNKNOWN, OP_PROBING, OP_RETRYING, OP_IN_FLIGHT};
    struct question question = {.step = STEP_NONE, .reason = SLICE(REASON_ASKED)};

    for (size_t s = 0; s < COUNT_OF(states); s++) {
        for (uint32_t i = 0; i < saga->definition->step_count; i++) {
            bool undoes = saga->steps[i].plan == PLAN_ACTIVE;

            if (step_has_call(saga, i) &&
                operation_of(saga, i, undoes ? DIRECTION_UNDO : DIRECTION_DO)->state == states[s] &&
                (states[s] != OP_UNKNOWN || question_stands(saga, i, undoes ? DIRECTION_UNDO : DIRECTION_DO))) {
                question.step = i;
                question.direction = undoes ? DIRECTION_UNDO : DIRECTION_DO;
                return question;
            }
        }
    }
    return question;
}

static enum err_code check_asking(struct machine *m)
{
    const struct saga *saga = m->saga;

    if (saga->seq == 0) {
        return err_set(m->err, ERR_CONFLICT, "the saga has not started");
    }
    if (saga->phase == PHASE_ENDED) {
        return err_set(m->err, ERR_ENDED, "the saga has ended %s", saga_status_name(saga->end));
    }
    if (!m->input->escalate.actor.len || !m->input->escalate.note.len) {
        (void)err_set(m->err, ERR_INVALID, "a person is asked by somebody, and for a reason");
        err_hint(m->err, "Say in \"note\" what is to be looked at.");
        return ERR_INVALID;
    }
    if (pause_holds(saga)) {
        (void)err_set(m->err, ERR_PAUSED, "the saga is paused: nothing of it is asked");
        err_hint(m->err, "Resume it first.");
        return ERR_PAUSED;
    }
    if (saga->escalation.number) {
        (void)err_set(m->err, ERR_CONFLICT, "a person is asked already: escalation %llu is open",
                      (unsigned long long)saga->escalation.number);
        err_hint(m->err, "Answer that one, or comment on it.");
        return ERR_CONFLICT;
    }
    return ERR_OK;
}

enum err_code escalation_ask(struct machine *m)
{
    const struct saga *saga = m->saga;
    const struct escalation *open = &saga->escalation;
    struct question question;
    enum err_code code = check_asking(m);

    if (open->number && open->raised_by.ptr && slice_equal(open->raised_by, m->input->escalate.actor) &&
        slice_equal(open->raised_note, m->input->escalate.note)) {
        return ERR_OK; /* a repeat */
    }
    if (code != ERR_OK) {
        return code;
    }
    question = question_of_person(saga);
    if (question.step == STEP_NONE && (saga->phase != PHASE_FORWARD || saga->definition->kind == SAGA_RUN)) {
        (void)err_set(m->err, ERR_CONFLICT, "it waits for no operation that a person could say anything about");
        err_hint(m->err, "GET it to see what it does.");
        return ERR_CONFLICT;
    }
    question.actor = m->input->escalate.actor;
    question.note = m->input->escalate.note;
    escalation_open(m, &question);
    return ERR_OK;
}

/* --- verbs --- */

/* Returns the actions on a question that does not follow from an unknown outcome: a duplicate that no rule may decide,
 * or a deadline. */
static unsigned actions_on_raised(const struct saga *saga)
{
    const struct escalation *open = &saga->escalation;
    unsigned actions = BIT(OPERATOR_RESOLVE);

    if (open->step != STEP_NONE && saga->steps[open->step].forward.state == OP_FAILED &&
        saga_admits(saga, saga->definition->steps[open->step].tool, saga->steps[open->step].forward.effect,
                    open->step) == ERR_OK &&
        !saga_over_budget(saga, saga->definition->steps[open->step].tool, false, true)) {
        actions |= BIT(OPERATOR_RETRY);
    }
    if (saga->definition->kind != SAGA_RUN) {
        actions |= BIT(OPERATOR_ABANDON);
        actions |= saga_passed_return(saga) ? 0 : BIT(OPERATOR_COMPENSATE);
    }
    return actions;
}

/* The calls of a run belong to nothing that could be undone, waived or abandoned. */
#define RUN_ACTIONS (BIT(OPERATOR_RETRY) | BIT(OPERATOR_PROBE) | BIT(OPERATOR_RESOLVE))

/* Returns the actions on a denied operation. A person who has changed the settings need not wait for the next try. */
static unsigned actions_on_denied(const struct operation *op)
{
    return !operation_is_denied(op) ? 0 : op->state == OP_PROBING ? BIT(OPERATOR_PROBE) : BIT(OPERATOR_RETRY);
}

static unsigned actions_on_forward(const struct saga *saga)
{
    const struct operation *op = &saga->steps[saga->escalation.step].forward;
    unsigned actions = BIT(OPERATOR_ABANDON) | actions_on_denied(op);

    if (op->state == OP_UNKNOWN && saga_tool(saga, saga->escalation.step, DIRECTION_DO)->has_probe) {
        actions |= BIT(OPERATOR_PROBE);
    }
    if (op->state == OP_UNKNOWN || op->state == OP_PROBING) {
        actions |= BIT(OPERATOR_RESOLVE) | BIT(OPERATOR_WAIVE);
    }
    if (op->state == OP_RETRYING || op->state == OP_IN_FLIGHT) { /* a call that is out must end first */
        actions |= BIT(OPERATOR_RESOLVE);
    }
    if (saga->phase != PHASE_FORWARD) {
        return actions;
    }
    actions |= saga_passed_return(saga) ? 0 : BIT(OPERATOR_COMPENSATE);
    if (step_phase(saga, saga->escalation.step) != PHASE_FORWARD) { /* in a child that is undone on its own */
        return actions;
    }
    if (step_has_call(saga, saga->escalation.step) && (op->state == OP_UNKNOWN || op->state == OP_FAILED)) {
        actions |= BIT(OPERATOR_RETRY);
    }
    if (op->state == OP_FAILED) {
        actions |= BIT(OPERATOR_SKIP);
    }
    return saga->definition->kind == SAGA_RUN ? actions & RUN_ACTIONS : actions;
}

static unsigned actions_on_undo(const struct saga *saga)
{
    const struct step *step = &saga->steps[saga->escalation.step];
    const struct operation *op = step_undo(step);
    unsigned actions = BIT(OPERATOR_ABANDON) | actions_on_denied(op);

    if (step->plan == PLAN_FAILED) {
        actions |= BIT(OPERATOR_WAIVE);
    }
    if (saga->phase == PHASE_FORWARD && !saga_passed_return(saga)) { /* all of a child that is undone on its own */
        actions |= BIT(OPERATOR_COMPENSATE);
    }
    if (op->state == OP_UNKNOWN && saga_tool(saga, saga->escalation.step, DIRECTION_UNDO)->has_probe) {
        actions |= BIT(OPERATOR_PROBE);
    }
    if (op->state == OP_UNKNOWN || op->state == OP_FAILED ||
        operation_is_open(op)) { /* it may have been undone by hand */
        actions |= BIT(OPERATOR_RESOLVE);
    }
    if (op->state == OP_UNKNOWN || op->state == OP_FAILED) {
        actions |= BIT(OPERATOR_RETRY);
    }
    return actions;
}

unsigned saga_escalation_actions(const struct saga *saga)
{
    if (!saga->escalation.number || saga->phase == PHASE_ENDED || !escalation_stands(saga)) {
        return 0;
    }
    if (escalation_is_raised(&saga->escalation)) {
        return actions_on_raised(saga);
    }
    return saga->escalation.direction == DIRECTION_UNDO ? actions_on_undo(saga) : actions_on_forward(saga);
}

const char *operator_action_does(const struct saga *saga, enum operator_action action)
{
    uint32_t step = saga->escalation.step;
    bool undo = saga->escalation.direction == DIRECTION_UNDO;
    bool forward = (step == STEP_NONE ? saga->phase : step_phase(saga, step)) == PHASE_FORWARD;
    bool alone = !forward && saga->phase == PHASE_FORWARD;

    switch (action) {
    case OPERATOR_RETRY:
        if (slice_is(saga->escalation.reason, OUTCOME_EGRESS_DENIED)) {
            return "tries it again now, under the same key; say it when the settings or the tool were changed";
        }
        return undo ? "tries the compensation again, one more round of attempts; other args may be given where it "
                      "certainly had no effect"
                    : "calls the tool again under the same key, one more round of attempts; a tool of class once needs "
                      "accept_double";
    case OPERATOR_PROBE:
        return "asks the receiver again now; if it can say what happened, that settles it";
    case OPERATOR_RESOLVE:
        if (escalation_is_raised(&saga->escalation)) {
            return saga->escalation.step == STEP_NONE
                       ? slice_is(saga->escalation.reason, REASON_ASKED)
                             ? "notes that you have looked at it; the saga goes on"
                             : "notes that you have looked at it; the saga goes on without a deadline"
                       : "notes that you have looked at it; what was settled stands, and is what a repeat gets";
        }
        if (saga_is_open(saga) && forward) {
            return "you say whether it happened: if so it has completed with the result you give, if not it has failed";
        }
        if (undo) {
            return "you say whether the compensation happened, or whether somebody undid it by hand: if so the step is "
                   "undone, "
                   "if not it may be tried again";
        }
        if (forward && saga->definition->steps[saga->escalation.step].on_failure == ON_FAILURE_CONTINUE) {
            return "you say whether it happened: if so the saga goes on with the result you give, if not without one";
        }
        return forward
                   ? "you say whether it happened: if so the saga goes on with the result you give, if not the step "
                     "has failed and the saga is undone"
                   : "you say whether it happened: if so it is undone like the rest, if not there is nothing to undo";
    case OPERATOR_WAIVE:
        return alone ? "leaves this effect standing and lists it as a debt; the rest of the child is undone, the saga "
                       "goes on "
                       "and ends abandoned"
                     : "leaves this effect standing and lists it as a debt; the rest is undone and the saga ends "
                       "abandoned";
    case OPERATOR_SKIP:
        return "counts the step as skipped; the saga goes on without it, with the result you give where a later step "
               "needs one";
    case OPERATOR_COMPENSATE:
        return "undoes what is certain now, as far as the order allows; the verdict on the rest is asked for again";
    case OPERATOR_ABANDON:
        return "ends the saga at once; every effect that stands, or may stand, is listed as a debt";
    case OPERATOR_ACTION_COUNT:
        break;
    }
    UNREACHABLE();
}
