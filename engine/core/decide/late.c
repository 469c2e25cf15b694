/*
 * Evidence that comes when everything was settled: the call took effect although it counts as failed, or it did not
 * although a person has said so. Nothing is overturned silently and nothing is dropped. The log has the evidence, the
 * operation is unknown again, and a person is asked.
 */
#include <string.h>

#include "core/saga/machine.h"

static bool forward_is_contradicted(const struct saga *saga, uint32_t step, bool happened)
{
    const struct step *s = &saga->steps[step];

    if (s->forward.attempts == 0 || operation_effect(saga, step, DIRECTION_DO) == EFFECT_READ) {
        return false;
    }
    if (!happened) { /* a step that is being undone, or was, is its compensator's business */
        return s->forward.state == OP_COMPLETED && s->forward.source == SOURCE_OPERATOR &&
               (step_phase(saga, step) == PHASE_UNDO ? s->plan == PLAN_READY && step_undo(s)->state == OP_NONE
                                                     : s->plan == PLAN_NONE);
    }
    if (s->plan == PLAN_DONE && step_undo(s)->attempts > 0) { /* undone although nobody knew whether it was there */
        return s->forward.state == OP_UNKNOWN || s->forward.state == OP_PROBING;
    }
    return (s->forward.state == OP_FAILED || s->forward.state == OP_SKIPPED) &&
           (s->plan == PLAN_NONE || s->plan == PLAN_DROPPED);
}

static bool undo_is_contradicted(const struct saga *saga, uint32_t step, bool happened)
{
    const struct step *s = &saga->steps[step];
    const struct operation *undo = step_undo(s);

    if (undo->attempts == 0) {
        return false;
    }
    return happened ? undo->state == OP_FAILED && s->plan == PLAN_FAILED
                    : undo->state == OP_COMPLETED && undo->source == SOURCE_OPERATOR && s->plan == PLAN_DONE;
}

static bool is_contradicted(const struct saga *saga, uint32_t step, enum direction direction, bool happened)
{
    return direction == DIRECTION_UNDO ? undo_is_contradicted(saga, step, happened)
                                       : forward_is_contradicted(saga, step, happened);
}

/* --- deciding --- */

struct evidence {
    uint32_t step, attempt;
    enum direction direction;
    bool happened;
};

/* Reads the evidence of an input. Returns false when it says nothing for certain. */
static bool evidence_of(const struct machine *m, struct evidence *out)
{
    const struct saga_input *input = m->input;
    const struct operation *op;

    *out = (struct evidence){
        .step = input->settled.step, .direction = input->settled.direction, .attempt = input->settled.attempt};
    if (out->step >= m->saga->definition->step_count || out->direction >= DIRECTION_COUNT) {
        return false;
    }
    op = operation_of(m->saga, out->step, out->direction);
    if (input->type == SAGA_INPUT_PROBED) { /* a probe asks about the key, and so about every attempt */
        out->attempt = op->attempts;
        out->happened = input->settled.outcome.kind == OUTCOME_COMPLETED;
        return (out->happened || input->settled.outcome.kind == OUTCOME_ABSENT) && input->settled.attempt > 0 &&
               input->settled.attempt <= op->probes && out->attempt > op->other_key_attempts;
    }
    switch (input->settled.outcome.kind) {
    case OUTCOME_COMPLETED:
        out->happened = true;
        return out->attempt > op->other_key_attempts && out->attempt <= op->attempts;
    case OUTCOME_FAILED:
    case OUTCOME_RETRY: /* covers its own attempt only, so it counts when that was the only one with this key
                         */
        return out->attempt == op->attempts && op->attempts == op->other_key_attempts + 1;
    case OUTCOME_RUNNING:
    case OUTCOME_ABSENT:
    case OUTCOME_UNKNOWN:
        return false;
    case OUTCOME_KIND_COUNT:
        break;
    }
    UNREACHABLE();
}

bool operation_is_contradicted(const struct machine *m)
{
    struct evidence evidence;

    return evidence_of(m, &evidence) && is_contradicted(m->saga, evidence.step, evidence.direction, evidence.happened);
}

void operation_contradict(struct machine *m)
{
    const struct outcome *outcome = &m->input->settled.outcome;
    struct evidence evidence;
    struct record record;

    CHECK(evidence_of(m, &evidence));
    record = machine_record(m, evidence.direction == DIRECTION_UNDO ? RECORD_COMPENSATION_LATE : RECORD_STEP_LATE,
                            evidence.step, evidence.direction);
    record.attempt = evidence.attempt;
    record.source = m->input->type == SAGA_INPUT_PROBED ? SOURCE_PROBE : SOURCE_CALL;
    if (evidence.happened) {
        record.result = outcome->result.ptr ? outcome->result : SLICE("null");
    } else {
        record.error = outcome->error.len ? outcome->error : slice_of(outcome_name(outcome->kind));
        record.detail = outcome->detail;
    }
    machine_emit(m, &record);
}

/* --- checking --- */

bool check_late(const struct saga *saga, const struct record *record, struct err *err)
{
    enum direction direction = record->type == RECORD_COMPENSATION_LATE ? DIRECTION_UNDO : DIRECTION_DO;
    const struct operation *op = operation_of(saga, record->step, direction);

    if (!uuid_equal(&op->key.uuid, &record->key.uuid)) {
        return check_refuse(record, err, "it is about another key");
    }
    if (record->attempt > op->attempts || record->attempt <= op->other_key_attempts) {
        return check_refuse(record, err, "attempt %u was not made under this key", record->attempt);
    }
    return is_contradicted(saga, record->step, direction, record->error.len == 0) ||
           check_refuse(record, err, "it contradicts nothing");
}

/* --- folding --- */

/*
 * Puts the step first into an undo plan that lacks it. The steps before it wait until a person has decided. The saga's
 * plan lacks what a child had undone on its own before.
 */
static void amend_plan(struct saga *saga, uint32_t step)
{
    uint32_t *plan;

    for (uint32_t i = 0; i < saga->plan_count; i++) {
        if (saga->plan[i] == step) {
            return;
        }
    }
    plan = arena_array(saga_memory(saga), saga->plan_count + 1, sizeof(*plan));
    plan[0] = step;
    if (saga->plan_count > 0) {
        memcpy(plan + 1, saga->plan, saga->plan_count * sizeof(*plan));
    }
    saga->plan = plan;
    saga->plan_count++;
}

static void doubt(struct operation *op, bool denied)
{
    op->state = OP_UNKNOWN;
    op->took_effect = TOOK_EFFECT_MAYBE;
    op->late = op->known_before = true;
    op->expired = false; /* the operation's record answers again, for as long as one that ends only now */
    op->denied = denied;
}

/* Doubts an undo: nobody knows any more whether the step was undone. */
static void doubt_undo(struct saga *saga, uint32_t step, bool denied)
{
    struct step *s = &saga->steps[step];

    doubt(apply_undo_room(saga, step), denied);
    if (s->plan == PLAN_DONE) {
        s->forward.took_effect = s->forward.state == OP_COMPLETED || !denied ? TOOK_EFFECT_YES : TOOK_EFFECT_MAYBE;
        amend_plan(saga, step);
        plan_move(saga, step, PLAN_FAILED);
    }
}

void apply_late(struct saga *saga, const struct record *record)
{
    struct step *step = &saga->steps[record->step];
    bool denied = record->error.len > 0;

    /* The step was undone blindly, and it is unclear whether there was anything to undo. */
    if (record->type == RECORD_COMPENSATION_LATE || step->plan == PLAN_DONE) {
        doubt_undo(saga, record->step, denied);
        return;
    }
    doubt(&step->forward, denied);
    step->settled_seq = 0;
    if (!denied) { /* the amount given back with the failure may have been spent */
        step->forward.cost_micros = saga->definition->steps[record->step].tool->cost_fixed_micros;
        saga->used.micros += step->forward.cost_micros;
    }
    if (step_phase(saga, record->step) == PHASE_UNDO) {
        amend_plan(saga, record->step);
        plan_move(saga, record->step, PLAN_VERDICT);
    }
}
