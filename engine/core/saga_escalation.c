/*
 * Questions to a person. Which are open follows from the state; one at a time is asked. A question that answers itself,
 * by late evidence or by a probe, is closed again.
 */
#include "base/instant.h"
#include "base/json.h"
#include "core/saga_machine.h"

struct question {
    uint32_t step; /* STEP_NONE: there is none */
    enum direction direction;
    struct slice reason;
};

/* Is it for a person to say what becomes of this operation? */
static bool question_stands(const struct saga *saga, uint32_t step, enum direction direction)
{
    const struct step *s = &saga->steps[step];

    if (direction == DIRECTION_UNDO) {
        return s->plan == PLAN_FAILED;
    }
    if (s->plan != PLAN_NONE && s->plan != PLAN_VERDICT) {
        return false;
    }
    return s->forward.state == OP_UNKNOWN && (!step_can_be_undone_blind(saga, step) || s->plan == PLAN_VERDICT);
}

static bool still_open(const struct saga *saga)
{
    const struct escalation *open = &saga->escalation;

    if (question_stands(saga, open->step, open->direction)) {
        return true;
    }
    /* It is being probed again at a person's wish: the answer decides. */
    return open->asked_by.ptr && operation_of(saga, open->step, open->direction)->state == OP_PROBING;
}

static struct question next_question(const struct saga *saga)
{
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (question_stands(saga, i, DIRECTION_DO)) {
            return (struct question){i, DIRECTION_DO, SLICE("unknown")};
        }
        if (question_stands(saga, i, DIRECTION_UNDO)) {
            bool arguments = slice_is(saga->steps[i].undo.error, "arguments");

            return (struct question){i, DIRECTION_UNDO,
                                     arguments ? SLICE("compensation-arguments") : SLICE("compensation-failed")};
        }
    }
    return (struct question){.step = STEP_NONE};
}

/* --- evidence --- */

static void write_instant(struct json_writer *w, const char *name, int64_t ms)
{
    char text[INSTANT_TEXT_BYTES];

    if (ms == 0) {
        json_write_null(w, name);
        return;
    }
    instant_text(ms, text);
    json_write_text(w, name, text);
}

static void write_open_items(struct json_writer *w, const struct saga *saga)
{
    json_array_begin(w, "open");
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        const struct step *s = &saga->steps[i];
        bool question = question_stands(saga, i, DIRECTION_DO) || question_stands(saga, i, DIRECTION_UNDO);

        /* While undoing, whatever still stands is open, be it only because it waits for something else. */
        if (!question && !operation_is_open(&s->forward) &&
            !(saga->phase == PHASE_UNDO && step_may_stand(saga, i) && s->plan != PLAN_WAIVED)) {
            continue;
        }
        json_object_begin(w, NULL);
        json_write_slice(w, "step", saga->definition->steps[i].id);
        json_write_text(w, "status", step_status_name(saga_step_status(saga, i)));
        json_write_text(w, "took_effect", took_effect_name(s->forward.took_effect));
        json_write_bool(w, "needs_person", question);
        json_object_end(w);
    }
    json_array_end(w);
}

static struct slice evidence(struct machine *m, const struct question *question)
{
    const struct operation *op = operation_of(m->saga, question->step, question->direction);
    struct buffer out;
    struct json_writer w;
    struct slice text;
    char key[UUID_TEXT_BYTES];

    buffer_init(&out, (size_t)1 << 20);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    uuid_text(&op->key.uuid, key);
    json_write_slice(&w, "operation", uuid_is_nil(&op->key.uuid) ? SLICE_NONE : slice_of(key));
    json_write_slice(&w, "tool", saga_tool(m->saga, question->step, question->direction)->name);
    json_write_text(&w, "direction", direction_name(question->direction));
    json_write_i64(&w, "attempts", op->attempts);
    write_instant(&w, "first_sent_at", op->first_sent_ms);
    write_instant(&w, "last_sent_at", op->last_sent_ms);
    json_write_slice(&w, "last_error", op->error.len ? op->error : SLICE_NONE);
    json_write_slice(&w, "detail", op->detail.len ? op->detail : SLICE_NONE);
    json_write_i64(&w, "probes", op->probes);
    write_open_items(&w, m->saga);
    json_object_end(&w);
    CHECK(!out.overflow); /* 256 steps at most, and texts that were bounded */
    text = arena_slice(m->turn, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

/* --- opening and closing --- */

static void escalation_open(struct machine *m, const struct question *question)
{
    struct record record = {.type = RECORD_ESCALATION_OPENED, .step = question->step, .direction = question->direction};

    CHECK(m->input->escalation_number != 0);
    record.escalation = m->input->escalation_number;
    record.reason = question->reason;
    record.key = operation_of(m->saga, question->step, question->direction)->key;
    record.result = evidence(m, question);
    m->opened = true;
    machine_emit(m, record);
}

static void escalation_close(struct machine *m)
{
    const struct escalation *open = &m->saga->escalation;
    bool asked = open->asked_by.ptr != NULL;
    struct record record = {.type = RECORD_ESCALATION_RESOLVED, .step = open->step, .direction = open->direction};

    record.escalation = open->number;
    record.key = operation_of(m->saga, open->step, open->direction)->key;
    record.action = asked ? SLICE("probe") : SLICE("evidence");
    record.actor = asked ? open->asked_by : SLICE("sagad");
    record.note = asked ? open->asked_note : SLICE("it was settled without a person");
    machine_emit(m, record);
}

bool escalation_advance(struct machine *m)
{
    struct question question;

    if (m->saga->escalation.number) {
        if (still_open(m->saga)) {
            return false;
        }
        escalation_close(m);
        return true;
    }
    question = next_question(m->saga);
    if (question.step == STEP_NONE) {
        return false;
    }
    CHECK(!m->opened); /* nothing that follows from one input answers the question that it has raised */
    escalation_open(m, &question);
    return true;
}

/* --- verbs --- */

static unsigned actions_on_forward(const struct saga *saga)
{
    const struct operation *op = &saga->steps[saga->escalation.step].forward;
    unsigned actions = BIT(OPERATOR_ABANDON);

    if (op->state == OP_UNKNOWN && saga_tool(saga, saga->escalation.step, DIRECTION_DO)->has_probe) {
        actions |= BIT(OPERATOR_PROBE);
    }
    if (op->state == OP_UNKNOWN || op->state == OP_PROBING) {
        actions |= BIT(OPERATOR_RESOLVE) | BIT(OPERATOR_WAIVE);
    }
    if (saga->phase != PHASE_FORWARD) {
        return actions;
    }
    actions |= BIT(OPERATOR_COMPENSATE);
    if (op->state == OP_UNKNOWN || op->state == OP_FAILED) {
        actions |= BIT(OPERATOR_RETRY);
    }
    if (op->state == OP_FAILED) {
        actions |= BIT(OPERATOR_SKIP);
    }
    return actions;
}

static unsigned actions_on_undo(const struct saga *saga)
{
    const struct operation *op = &saga->steps[saga->escalation.step].undo;
    unsigned actions = BIT(OPERATOR_WAIVE) | BIT(OPERATOR_ABANDON);

    if (op->state == OP_UNKNOWN && saga_tool(saga, saga->escalation.step, DIRECTION_UNDO)->has_probe) {
        actions |= BIT(OPERATOR_PROBE);
    }
    if (op->state == OP_UNKNOWN || op->state == OP_PROBING) {
        actions |= BIT(OPERATOR_RESOLVE);
    }
    if (op->state == OP_UNKNOWN || op->state == OP_FAILED) {
        actions |= BIT(OPERATOR_RETRY);
    }
    return actions;
}

unsigned saga_escalation_actions(const struct saga *saga)
{
    if (!saga->escalation.number || saga->phase == PHASE_ENDED) {
        return 0;
    }
    return saga->escalation.direction == DIRECTION_UNDO ? actions_on_undo(saga) : actions_on_forward(saga);
}

const char *operator_action_does(const struct saga *saga, enum operator_action action)
{
    bool undo = saga->escalation.direction == DIRECTION_UNDO, forward = saga->phase == PHASE_FORWARD;

    switch (action) {
    case OPERATOR_RETRY:
        return undo ? "tries the compensation again, one more round of attempts; other args may be given where it "
                      "certainly had no effect"
                    : "calls the tool again under the same key, one more round of attempts; a tool of class once needs "
                      "accept_double";
    case OPERATOR_PROBE:
        return "asks the receiver again now; if it can say what happened, that settles it";
    case OPERATOR_RESOLVE:
        if (undo) {
            return "you say whether the compensation happened: if so the step is undone, if not it may be tried again";
        }
        return forward
                   ? "you say whether it happened: if so the saga goes on with the result you give, if not the step "
                     "has failed and the saga is undone"
                   : "you say whether it happened: if so it is undone like the rest, if not there is nothing to undo";
    case OPERATOR_WAIVE:
        return "leaves this effect standing and lists it as a debt; the rest is undone and the saga ends abandoned";
    case OPERATOR_SKIP:
        return "counts the step as skipped; the saga goes on without it";
    case OPERATOR_COMPENSATE:
        return "undoes what is certain now, as far as the order allows; the verdict on the rest is asked for again";
    case OPERATOR_ABANDON:
        return "ends the saga at once; every effect that stands, or may stand, is listed as a debt";
    case OPERATOR_ACTION_COUNT:
        break;
    }
    UNREACHABLE();
}
