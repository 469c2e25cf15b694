/* What comes from outside on stage: signals, decisions, verdicts. See stage.h. */
#include "base/json.h"
#include "tools/sagactl/scenario/stage.h"

static struct slice actor_of(const struct event *event)
{
    return event->by.len ? event->by : SLICE("scenario");
}

static struct slice note_of(const struct event *event)
{
    return event->note.len ? event->note : SLICE("the scenario has it so");
}

/* The members of a verb about the whole saga, whose value is the note. */
static struct slice note_of_all(const struct event *event)
{
    return event->text.len ? event->text : note_of(event);
}

static bool names_step(enum event_kind kind)
{
    switch (kind) {
    case EVENT_APPROVE:
    case EVENT_REFUSE:
    case EVENT_LATE:
    case EVENT_RESOLVE:
    case EVENT_RETRY:
    case EVENT_SKIP:
    case EVENT_WAIVE:
    case EVENT_PROBE:
        return true;
    case EVENT_SIGNAL:
    case EVENT_COMPENSATE:
    case EVENT_ABANDON:
    case EVENT_ABORT:
    case EVENT_ESCALATE:
    case EVENT_PAUSE:
    case EVENT_RESUME:
    case EVENT_PASS:
    case EVENT_COUNT:
        return false;
    }
    UNREACHABLE();
}

static enum operator_action action_of(enum event_kind kind)
{
    return kind == EVENT_RESOLVE      ? OPERATOR_RESOLVE
           : kind == EVENT_RETRY      ? OPERATOR_RETRY
           : kind == EVENT_SKIP       ? OPERATOR_SKIP
           : kind == EVENT_WAIVE      ? OPERATOR_WAIVE
           : kind == EVENT_PROBE      ? OPERATOR_PROBE
           : kind == EVENT_COMPENSATE ? OPERATOR_COMPENSATE
                                      : OPERATOR_ABANDON;
}

/* Fills in a verdict: about the open case where there is one about this step, else about the operation. */
static void verdict_fill(struct stage *stage, const struct event *event, uint32_t step, struct saga_input *input)
{
    const struct escalation *open = &stage->saga.escalation;
    bool is_asked = open->number && (step == STEP_NONE || open->step == step);

    input->type = SAGA_INPUT_OPERATOR;
    input->verdict.action = action_of(event->kind);
    input->verdict.happened = event->happened;
    input->verdict.undone = event->undone;
    input->verdict.again = event->again;
    input->verdict.accept_double = event->accept_double;
    input->verdict.result = event->result;
    input->verdict.args = event->args;
    input->verdict.actor = actor_of(event);
    input->verdict.note = note_of(event);
    if (is_asked) {
        input->verdict.escalation = open->number;
        input->verdict.round = saga_case_round(&stage->saga);
    } else if (step != STEP_NONE) {
        const struct operation *undo = step_undo(&stage->saga.steps[step]);

        input->verdict.key = undo->state != OP_NONE ? undo->key : stage->saga.steps[step].forward.key;
    }
    if (event->kind == EVENT_RESOLVE && event->happened && step != STEP_NONE &&
        !(is_asked && open->direction == DIRECTION_UNDO)) {
        stage_undo_args(stage, step, event->result, &input->verdict.undo_args, &input->verdict.undo_error);
    }
}

static bool input_of(struct stage *stage, const struct event *event, uint32_t step, struct saga_input *input)
{
    switch (event->kind) {
    case EVENT_SIGNAL:
        input->type = SAGA_INPUT_SIGNAL;
        input->signal.name = event->text;
        input->signal.payload = event->payload.ptr ? event->payload : SLICE("{}");
        input->signal.actor = actor_of(event);
        return true;
    case EVENT_APPROVE:
    case EVENT_REFUSE:
        input->type = SAGA_INPUT_DECISION;
        input->decision.approval = stage->saga.steps[step].approval;
        input->decision.approve = event->kind == EVENT_APPROVE;
        input->decision.role = ROLE_ADMIN;
        input->decision.actor = actor_of(event);
        input->decision.note = note_of(event);
        if (event->kind == EVENT_REFUSE) {
            stage_strike(stage, step, DIRECTION_DO, TROUBLE_REFUSED);
        }
        return true;
    case EVENT_RESOLVE:
    case EVENT_RETRY:
    case EVENT_SKIP:
    case EVENT_WAIVE:
    case EVENT_PROBE:
    case EVENT_COMPENSATE:
    case EVENT_ABANDON:
        verdict_fill(stage, event, step, input);
        return true;
    case EVENT_ABORT:
        input->type = SAGA_INPUT_ABORT;
        input->abort.actor = actor_of(event);
        input->abort.note = note_of_all(event);
        stage_strike(stage, STEP_NONE, DIRECTION_DO, TROUBLE_ABORT);
        return true;
    case EVENT_ESCALATE:
        input->type = SAGA_INPUT_ESCALATE;
        input->escalate.actor = actor_of(event);
        input->escalate.note = note_of_all(event);
        return true;
    case EVENT_PAUSE:
        input->type = SAGA_INPUT_PAUSE;
        input->pause.actor = actor_of(event);
        input->pause.note = note_of_all(event);
        return true;
    case EVENT_RESUME:
        input->type = SAGA_INPUT_RESUME;
        input->resume.actor = actor_of(event);
        input->resume.note = note_of_all(event);
        return true;
    case EVENT_LATE:
        stage_late(stage, event, step);
        return false;
    case EVENT_PASS:
    case EVENT_COUNT:
        break;
    }
    UNREACHABLE();
}

void stage_event(struct stage *stage, const struct event *event)
{
    uint32_t step = names_step(event->kind) ? stage_find_step(stage, event->text) : STEP_NONE;
    size_t number = stage->next_event;
    struct saga_input input = {0};
    struct err err = {0};

    if (names_step(event->kind) && step == STEP_NONE) {
        stage_fail(stage, "event %zu (%s): the saga has no step \"%.*s\"", number, event_name(event->kind),
                   SLICE_ARG(event->text));
        return;
    }
    if (input_of(stage, event, step, &input) && stage_feed(stage, input, &err) != ERR_OK) {
        stage_fail(stage, "event %zu (%s) is refused: %s%s%s", number, event_name(event->kind), err.message,
                   err.detail[0] ? ": " : "", err.detail);
    }
}
