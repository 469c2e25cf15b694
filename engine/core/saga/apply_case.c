/*
 * Cases: the times at which a person is asked about an operation, or about the saga as a whole. The log has the number
 * of a case. The round follows from it: the same number about the same operation again is the next round.
 */
#include "core/saga/machine.h"

const struct case_round *saga_asked(const struct saga *saga, uint32_t step, enum direction direction)
{
    return step == STEP_NONE ? saga->asked : operation_of(saga, step, direction)->asked;
}

uint32_t saga_case_round(const struct saga *saga)
{
    const struct case_round *asked = saga_asked(saga, saga->escalation.step, saga->escalation.direction);

    return saga->escalation.number ? asked->round : 0;
}

static const struct case_round **asked_at(struct saga *saga, const struct record *record)
{
    if (record->step == STEP_NONE) {
        return &saga->asked;
    }
    return record->direction == DIRECTION_UNDO ? &apply_undo_room(saga, record->step)->asked
                                               : &saga->steps[record->step].forward.asked;
}

static const struct case_round *case_round_new(const struct saga *saga, const struct record *record)
{
    const struct case_round *last = saga_asked(saga, record->step, record->direction);
    bool again = last && last->number == record->escalation;
    struct case_round *asking = arena_alloc(saga_memory(saga), sizeof(*asking));

    *asking = (struct case_round){.number = record->escalation,
                                  .round = again ? last->round + 1 : 1,
                                  .opened_ms = record->at_ms,
                                  .reason = saga->escalation.reason,
                                  .before = again ? last : NULL};
    return asking;
}

void apply_opened(struct saga *saga, const struct record *record)
{
    saga->escalation = (struct escalation){
        .number = record->escalation,
        .step = record->step,
        .direction = record->direction,
        .reason = apply_keep(saga, record->reason),
        .evidence = apply_keep(saga, record->result),
        .raised_by = apply_keep(saga, record->actor),
        .raised_note = apply_keep(saga, record->note),
        .opened_ms = record->at_ms,
    };
    *asked_at(saga, record) = case_round_new(saga, record);
    saga->escalation_count++;
    if (record->step != STEP_NONE && escalation_is_raised(&saga->escalation)) {
        saga->steps[record->step].forward.duplicate_asked = true;
    }
    if (slice_is(record->reason, "deadline")) { /* the deadline was asked about once; a person decides what follows */
        saga->deadline_ms = 0;
    }
}

void apply_resolved(struct saga *saga, const struct record *record)
{
    const struct case_round *open = saga_asked(saga, saga->escalation.step, saga->escalation.direction);
    const struct record about = {.step = saga->escalation.step, .direction = saga->escalation.direction};

    /* The operation may have another key by now, because a retry with other arguments is decided before the case is
     * resolved. */
    if (open && open->number == record->escalation) {
        struct case_round *resolved = arena_dup(saga_memory(saga), open, sizeof(*open));

        resolved->resolved_ms = record->at_ms;
        resolved->action = apply_keep(saga, record->action);
        resolved->verdict = apply_keep(saga, record->verdict);
        resolved->actor = apply_keep(saga, record->actor);
        resolved->note = apply_keep(saga, record->note);
        resolved->request = apply_keep(saga, record->request);
        *asked_at(saga, &about) = resolved;
    }
    saga->escalation = (struct escalation){.step = STEP_NONE};
}

/* Keeps who asked for a probe until the escalation is closed, or until it is a person's turn again. */
void apply_asked(struct saga *saga, const struct record *record, enum direction direction)
{
    struct escalation *open = &saga->escalation;

    if (open->number && open->step == record->step && open->direction == direction && !escalation_is_raised(open)) {
        bool asked = record_leads_to(record) == OP_PROBING && record->actor.ptr;

        open->asked_by = asked ? apply_keep(saga, record->actor) : SLICE_NONE;
        open->asked_note = asked ? apply_keep(saga, record->note) : SLICE_NONE;
    }
}
