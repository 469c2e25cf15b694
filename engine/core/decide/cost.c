/*
 * A cost that could not be computed. The operation has happened and was paid for. So the saga's budget of money allows
 * no further call with a cost until a person has said the amount. Then the amount is booked, and the budget goes on.
 */
#include "core/decide/call.h"

/* Has the saga an unknown cost? More was spent than is booked, by an unknown amount, so nothing can be said to be
 * left. */
bool saga_has_unknown_cost(const struct saga *saga)
{
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        const struct step *step = &saga->steps[i];

        if (step->forward.cost_unknown.ptr || step_undo(step)->cost_unknown.ptr) {
            return true;
        }
    }
    return false;
}

/* Decides a repeated price. The same amount again is no fault, because its sender may not have heard the answer. */
static enum err_code check_repeated_price(struct machine *m, const struct operation *op)
{
    if (op->cost_micros == m->input->cost.micros) {
        return ERR_OK;
    }
    (void)err_set(m->err, ERR_DECIDED, "the cost of this operation is known: %lld", (long long)op->cost_micros);
    err_hint(m->err, "What was booked stays. Only a cost that nobody knows (cost_unknown) can be said.");
    return ERR_DECIDED;
}

enum err_code cost_decide(struct machine *m)
{
    enum direction direction = DIRECTION_DO;
    uint32_t step = saga_find_key(m->saga, &m->input->cost.key, &direction);
    const struct operation *op;
    struct record record;

    if (m->saga->seq == 0 || step == STEP_NONE) {
        return err_set(m->err, ERR_NOT_FOUND, "there is no operation with this key");
    }
    op = operation_of(m->saga, step, direction);
    if (op->state != OP_COMPLETED) {
        (void)err_set(m->err, ERR_CONFLICT, "this operation has not completed: what it costs is not settled");
        err_hint(m->err, "Say it when the operation shows cost_unknown.");
        return ERR_CONFLICT;
    }
    if (!op->cost_unknown.ptr) {
        return check_repeated_price(m, op);
    }
    if (m->saga->phase == PHASE_ENDED && m->saga->definition->kind != SAGA_RUN) {
        return err_set(m->err, ERR_ENDED, "the saga has ended %s", saga_status_name(m->saga->end));
    }
    if (!m->input->cost.actor.len || !m->input->cost.note.len) {
        return err_set(m->err, ERR_INVALID, "who says a cost says why");
    }
    run_begin(m);
    record = machine_record(m, RECORD_OPERATION_PRICED, step, direction);
    record.attempt = 0;
    record.cost_micros = m->input->cost.micros;
    record.actor = m->input->cost.actor;
    record.note = m->input->cost.note;
    machine_emit(m, &record);
    return ERR_OK;
}

/* Finds the operation of the record by its key alone, because forward calls and compensations are priced alike. */
static struct operation *priced(struct saga *saga, const struct record *record)
{
    struct step *step = &saga->steps[record->step];

    return uuid_equal(&step->forward.key.uuid, &record->key.uuid) ? &step->forward : step->undo;
}

bool check_priced(const struct saga *saga, const struct record *record, struct err *err)
{
    const struct step *step = &saga->steps[record->step];
    bool is_forward = uuid_equal(&step->forward.key.uuid, &record->key.uuid);
    const struct operation *op = is_forward ? &step->forward : step_undo(step);

    if (!is_forward && !uuid_equal(&op->key.uuid, &record->key.uuid)) {
        return check_refuse(record, err, "it is about another key");
    }
    if (record->cost_micros < 0 || record->cost_micros > COST_MICROS_MAX) {
        return check_refuse(record, err, "its cost is out of bounds");
    }
    return (op->state == OP_COMPLETED && op->cost_unknown.ptr) ||
           check_refuse(record, err, "the cost of this operation is not unknown");
}

void apply_priced(struct saga *saga, const struct record *record)
{
    struct operation *op = priced(saga, record);

    apply_book(saga, op, record->cost_micros);
    op->cost_unknown = SLICE_NONE;
}
