/* Does a record make sense in this state, of those that only open sagas and runs have? A part of record_check(). */
#include "core/saga/machine.h"

#include <string.h>

static bool check_admits(const struct saga *saga, const struct record *record, const struct tool *tool,
                         enum effect effect, uint32_t except, struct err *err)
{
    enum err_code code = saga_admits(saga, tool, effect, except);

    if (saga->paused.ptr) {
        return check_refuse(record, err, "the saga is paused");
    }
    if (tool->terminal && effect != EFFECT_READ && saga->definition->kind == SAGA_OPEN && saga->escalation.number) {
        return check_refuse(record, err, "nothing that cannot be undone is called while a person is asked");
    }
    return code == ERR_OK ||
           check_refuse(record, err,
                        code == ERR_SEALED ? "the saga is sealed" : "a terminal call while something is unsettled");
}

static bool check_bypass(const struct saga *saga, const struct record *record, struct err *err)
{
    enum direction direction;
    uint32_t earlier = saga_find_key(saga, &record->earlier_key, &direction);
    const struct bypass *bypass = earlier == STEP_NONE ? NULL : saga->steps[earlier].bypass;

    if (!slice_is(record->decision, "bypass")) {
        return true;
    }
    if (!bypass || direction != DIRECTION_DO || bypass->expires_ms <= record->at_ms) {
        return check_refuse(record, err, "nobody has signed that off, or it was used, or it has expired");
    }
    return memcmp(&bypass->fingerprint, &record->fingerprint, sizeof(record->fingerprint)) == 0 ||
           check_refuse(record, err, "what was signed off has other arguments");
}

bool check_called(const struct saga *saga, const struct record *record, struct err *err)
{
    struct step_definition step;
    enum direction direction;

    if (!saga_is_open(saga)) {
        return check_refuse(record, err, "the steps of this saga are its definition's");
    }
    if (!apply_find_tools(saga, record, &step)) {
        return check_refuse(record, err, "there is no tool %.*s version %u that can be called",
                            SLICE_ARG(record->tool_name), record->tool_version);
    }
    if (saga_find_key(saga, &record->key, &direction) != STEP_NONE) {
        return check_refuse(record, err, "there is an operation with this key");
    }
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (slice_equal(saga->definition->steps[i].id, record->label)) {
            return check_refuse(record, err, "there is a step %.*s", SLICE_ARG(record->label));
        }
    }
    return check_bypass(saga, record, err) && check_admits(saga, record, step.tool, record->effect, STEP_NONE, err);
}

bool check_repeated(const struct saga *saga, const struct record *record, struct err *err)
{
    const struct operation *op = &saga->steps[record->step].forward;

    if (!saga_is_open(saga)) {
        return check_refuse(record, err, "nobody calls the steps of this saga");
    }
    if (op->expired) {
        return check_refuse(record, err, "the record of this call has expired");
    }
    return check_admits(saga, record, saga->definition->steps[record->step].tool, op->effect, record->step, err);
}

static bool is_settled(const struct operation *op)
{
    return op->state == OP_COMPLETED || op->state == OP_FAILED || op->state == OP_SKIPPED;
}

/* Checks a record about an operation that an agent has called. */
bool check_about_call(const struct saga *saga, const struct record *record, struct err *err)
{
    const struct operation *op = &saga->steps[record->step].forward;

    if (!saga_is_open(saga)) {
        return check_refuse(record, err, "nobody calls the steps of this saga");
    }
    if (!uuid_equal(&op->key.uuid, &record->key.uuid)) {
        return check_refuse(record, err, "it is about another key");
    }
    if (record->type == RECORD_OPERATION_EXPIRED && (!is_settled(op) || op->expired)) {
        return check_refuse(record, err, "only what is settled expires, and once");
    }
    if (record->type == RECORD_BYPASS_SIGNED &&
        memcmp(&op->fingerprint, &record->fingerprint, sizeof(op->fingerprint)) != 0) {
        return check_refuse(record, err, "a bypass is bound to the arguments of what it is for");
    }
    /* A run has ended only because it rests. Any record about it must wake it first. */
    return saga->phase != PHASE_ENDED || saga->definition->kind == SAGA_OPEN ||
           check_refuse(record, err, "the run rests");
}

bool check_run(const struct saga *saga, const struct record *record, struct err *err)
{
    if (saga->definition->kind != SAGA_RUN) {
        return check_refuse(record, err, "only runs rest");
    }
    return record->type == RECORD_RUN_WOKEN || saga_rests(saga) ||
           check_refuse(record, err, "something of it is going on");
}

bool check_pause(const struct saga *saga, const struct record *record, struct err *err)
{
    bool by_person = record->type == RECORD_SAGA_PAUSED && slice_is(record->reason, "operator");

    if (record->type == RECORD_SAGA_RESUMED) {
        return saga_is_open(saga) || saga->paused.ptr || check_refuse(record, err, "it is not paused");
    }
    if (by_person ? saga->definition->kind == SAGA_RUN : !saga_is_open(saga) || saga->phase != PHASE_FORWARD) {
        return check_refuse(record, err, "this saga is not paused like that");
    }
    if (by_person && !record->actor.len) {
        return check_refuse(record, err, "it does not say who paused it");
    }
    return !saga->paused.ptr || check_refuse(record, err, "it is paused already");
}
