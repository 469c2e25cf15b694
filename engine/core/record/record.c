/*
 * The types of records and the members of each. record.h explains the members. This file says only which members a type
 * may and must have, so that the codec and record_check() cannot disagree.
 */
#include "core/record/record_fields.h"

#include <string.h>

static const char *const type_names[RECORD_TYPE_COUNT] = {
#define X(id, type) [id] = type,
    RECORD_MAP(X)
#undef X
};

const char *record_type_name(enum record_type type)
{
    CHECK(type < RECORD_TYPE_COUNT);
    return type_names[type];
}

bool record_type_parse(struct slice name, enum record_type *out)
{
    for (unsigned i = 0; i < RECORD_TYPE_COUNT; i++) {
        if (slice_is(name, type_names[i])) {
            *out = (enum record_type)i;
            return true;
        }
    }
    return false;
}

#define F(name) FIELD_BIT(FIELD_##name)
#define OPERATION (F(STEP) | F(KEY) | F(ATTEMPT))
#define PERSON (F(ACTOR) | F(NOTE))
#define ARGUMENTS (F(GENERATION) | F(ARGS) | F(SCOPE) | F(FINGERPRINT))
#define WHY (F(ERROR) | F(DETAIL))
#define REFUSAL (WHY | F(ANSWER))
#define EMISSION (F(EMISSION) | F(ACTOR))
/* The record may be about an attempt that a guard or a precheck kept from leaving; such an attempt has no number. */
#define ADMITTED (F(STEP) | F(KEY))

static const struct record_shape shapes[RECORD_TYPE_COUNT] = {
    [RECORD_SAGA_STARTED] = {F(START) | F(DEADLINE) | F(OPENING) | F(TRACE), F(START)},
    [RECORD_STEP_PENDING] = {F(STEP) | F(KEY) | ARGUMENTS | F(CLASS), F(STEP) | F(KEY) | F(ARGS) | F(FINGERPRINT)},
    [RECORD_STEP_INTENT] = {OPERATION | ARGUMENTS | F(CLASS), OPERATION},
    [RECORD_STEP_RETRYING] = {OPERATION | F(DUE) | F(UNSENT) | F(MAYBE) | REFUSAL | F(SOURCE), ADMITTED | F(DUE)},
    [RECORD_STEP_RUNNING] = {OPERATION | F(DUE), OPERATION | F(DUE)},
    [RECORD_STEP_UNKNOWN] = {OPERATION | F(DUE) | F(COST) | REFUSAL | PERSON, OPERATION},
    [RECORD_STEP_PROBED] = {OPERATION | F(DUE) | REFUSAL, OPERATION | F(DUE)},
    [RECORD_STEP_COMPLETED] = {OPERATION | F(SOURCE) | F(RESULT) | F(UNDO) | F(COST) | F(LOST) | PERSON,
                               F(STEP)}, /* record_check() wants a key, except for groups and waits */
    [RECORD_STEP_FAILED] = {OPERATION | F(DUE) | F(UNSENT) | F(SOURCE) | REFUSAL | PERSON, F(STEP) | F(ERROR)},
    [RECORD_STEP_SKIPPED] = {F(STEP) | F(KEY) | F(REASON) | F(RESULT) | PERSON,
                             F(STEP)}, /* skipped by a person, or for a reason */
    [RECORD_STEP_REOPENED] = {F(STEP) | F(KEY) | F(DUE) | ARGUMENTS | F(CLASS) | F(DOUBLE) | PERSON,
                              F(STEP) | F(KEY) | PERSON},
    [RECORD_STEP_WAIVED] = {F(STEP) | F(KEY) | PERSON, F(STEP) | PERSON},
    [RECORD_STEP_UNDONE] = {F(STEP) | F(KEY) | PERSON, F(STEP) | F(KEY) | PERSON},
    [RECORD_STEP_CALLED] = {F(STEP) | F(KEY) | ARGUMENTS | F(CLASS) | F(COST) | F(CALLED) | F(TOOL) | F(EARLIER) |
                                F(DECISION) | EMISSION,
                            F(STEP) | F(KEY) | F(ARGS) | F(FINGERPRINT) | F(CALLED) | F(TOOL)},
    [RECORD_STEP_REPEATED] = {F(STEP) | F(KEY) | F(FINGERPRINT) | F(COST) | EMISSION, F(STEP) | F(KEY)},
    [RECORD_STEP_OPENED] = {F(STEP) | F(ARGS) | F(DUE), F(STEP) | F(ARGS)},
    [RECORD_STEP_FAILING] = {F(STEP) | WHY, F(STEP) | F(ERROR)},
    [RECORD_STEP_WAITING] = {F(STEP) | F(DUE) | F(ARGS) | F(FINGERPRINT) | F(APPROVAL), F(STEP)},
    [RECORD_SIGNAL_RECEIVED] = {F(STEP) | F(SIGNAL) | F(ARGS) | EMISSION, F(SIGNAL) | F(ARGS)},
    [RECORD_APPROVAL_DECIDED] = {F(STEP) | F(APPROVAL) | F(FINGERPRINT) | F(VERDICT) | PERSON,
                                 F(STEP) | F(APPROVAL) | F(VERDICT) | F(ACTOR)},
    [RECORD_LOCK_WANTED] = {F(ARGS), F(ARGS)},
    [RECORD_LOCK_TAKEN] = {F(LOCK), F(LOCK)},
    [RECORD_STEP_LATE] = {OPERATION | F(SOURCE) | F(RESULT) | WHY,
                          OPERATION}, /* with an error it says that the call did not happen */
    [RECORD_OPERATION_DUPLICATE] = {F(STEP) | F(KEY) | F(FINGERPRINT) | F(DECISION) | F(POINTERS) | WHY | EMISSION,
                                    F(STEP) | F(KEY) | F(DECISION)},
    [RECORD_OPERATION_PRICED] = {F(STEP) | F(KEY) | F(COST) | PERSON, F(STEP) | F(KEY) | PERSON},
    [RECORD_TOOL_MENDED] = {F(TOOL) | F(TOOL_VERSION) | F(DOUBLE) | PERSON, F(TOOL) | F(TOOL_VERSION) | PERSON},
    [RECORD_OPERATION_EXPIRED] = {F(STEP) | F(KEY), F(STEP) | F(KEY)},
    [RECORD_BYPASS_SIGNED] = {F(STEP) | F(KEY) | F(FINGERPRINT) | F(DUE) | PERSON,
                              F(STEP) | F(KEY) | F(FINGERPRINT) | F(DUE) | PERSON},
    [RECORD_LOOP_TRIPPED] = {F(STEP) | F(KEY) | F(SCOPE) | F(FINGERPRINT) | F(TOOL) | F(PATTERN) | EMISSION,
                             F(FINGERPRINT) | F(TOOL) | F(PATTERN)},
    [RECORD_SAGA_PAUSED] = {F(REASON) | WHY | PERSON, F(REASON)},
    [RECORD_SAGA_RESUMED] = {PERSON, F(ACTOR)},
    [RECORD_SAGA_HELD] = {0, 0},
    [RECORD_SAGA_RELEASED] = {0, 0},
    [RECORD_RUN_RESTED] = {0, 0},
    [RECORD_RUN_WOKEN] = {0, 0},
    [RECORD_SAGA_FAILING] = {F(STEP) | WHY | PERSON, F(ERROR)},
    [RECORD_COMPENSATION_PLANNED] = {F(STEP) | F(PLAN), 0}, /* with a step the plan is only that child's */
    [RECORD_COMPENSATION_INTENT] = {OPERATION | ARGUMENTS | F(CLASS), OPERATION},
    [RECORD_COMPENSATION_RETRYING] = {OPERATION | F(DUE) | F(UNSENT) | F(MAYBE) | REFUSAL | F(SOURCE),
                                      OPERATION | F(DUE)},
    [RECORD_COMPENSATION_RUNNING] = {OPERATION | F(DUE), OPERATION | F(DUE)},
    [RECORD_COMPENSATION_UNKNOWN] = {OPERATION | F(DUE) | REFUSAL | PERSON, OPERATION | F(DUE)},
    [RECORD_COMPENSATION_PROBED] = {OPERATION | F(DUE) | REFUSAL, OPERATION | F(DUE)},
    [RECORD_COMPENSATION_COMPLETED] = {OPERATION | F(SOURCE) | F(RESULT) | F(COST) | F(LOST) | PERSON, OPERATION},
    [RECORD_COMPENSATION_FAILED] = {OPERATION | F(UNSENT) | F(MAYBE) | F(SOURCE) | REFUSAL | PERSON,
                                    F(STEP) | F(ERROR)},
    [RECORD_COMPENSATION_REOPENED] = {F(STEP) | F(KEY) | F(DUE) | ARGUMENTS | F(CLASS) | F(DOUBLE) | PERSON,
                                      F(STEP) | PERSON},
    [RECORD_COMPENSATION_LATE] = {OPERATION | F(SOURCE) | F(RESULT) | WHY, OPERATION},
    [RECORD_ESCALATION_OPENED] = {F(STEP) | F(KEY) | F(ESCALATION) | F(REASON) | F(EVIDENCE) | PERSON,
                                  F(ESCALATION) | F(REASON)},
    [RECORD_ESCALATION_RESOLVED] = {F(STEP) | F(KEY) | F(ESCALATION) | F(ACTION) | F(REQUEST) | PERSON,
                                    F(ESCALATION) | F(ACTION) | F(ACTOR)},
    [RECORD_SAGA_COMPLETED] = {F(OUTPUT) | F(FOLLOWERS) | WHY, 0},
    [RECORD_SAGA_COMPENSATED] = {WHY, 0},
    [RECORD_SAGA_ABANDONED] = {F(DEBTS) | WHY | PERSON, 0},
};

const struct record_shape *record_shape(enum record_type type)
{
    CHECK(type < RECORD_TYPE_COUNT);
    return &shapes[type];
}

static bool has_field(const struct record *record, enum record_field field)
{
    static const struct digest no_digest;

    switch (field) {
    case FIELD_STEP:
        return record->step != STEP_NONE;
    case FIELD_KEY:
        return !uuid_is_nil(&record->key.uuid);
    case FIELD_ATTEMPT:
        return record->attempt != 0;
    case FIELD_ACTOR:
        return record->actor.len != 0;
    case FIELD_NOTE:
        return record->note.len != 0;
    case FIELD_ARGS:
        return record->args.len != 0;
    case FIELD_FINGERPRINT:
        return memcmp(&record->fingerprint, &no_digest, sizeof(no_digest)) != 0;
    case FIELD_DUE:
        return record->due_ms > 0;
    case FIELD_ERROR:
        return record->error.len != 0;
    case FIELD_START:
        return record->saga_name.len && (record->version || record->saga_name.ptr[0] == '~') && record->input.len &&
               record->tools.len;
    case FIELD_ESCALATION:
        return record->escalation != 0;
    case FIELD_REASON:
        return record->reason.len != 0;
    case FIELD_ACTION:
        return record->action.len != 0;
    case FIELD_CALLED:
        return record->call_step.len && record->label.len && record->tool_version;
    case FIELD_TOOL:
        return record->tool_name.len != 0;
    case FIELD_TOOL_VERSION:
        return record->tool_version != 0;
    case FIELD_DECISION:
        return record->decision.len != 0;
    case FIELD_PATTERN:
        return record->pattern.len && record->repeats;
    case FIELD_SIGNAL:
        return record->signal.len != 0;
    case FIELD_APPROVAL:
        return record->approval != 0;
    case FIELD_LOCK:
        return record->lock.len != 0;
    case FIELD_VERDICT:
        return record->verdict.len != 0;
    case FIELD_GENERATION:
    case FIELD_SCOPE:
    case FIELD_UNSENT:
    case FIELD_MAYBE:
    case FIELD_DETAIL:
    case FIELD_SOURCE:
    case FIELD_RESULT:
    case FIELD_UNDO:
    case FIELD_DEADLINE:
    case FIELD_PLAN:
    case FIELD_DEBTS:
    case FIELD_EVIDENCE:
    case FIELD_OUTPUT:
    case FIELD_DOUBLE:
    case FIELD_CLASS:
    case FIELD_COST:
    case FIELD_OPENING:
    case FIELD_EMISSION:
    case FIELD_EARLIER:
    case FIELD_POINTERS:
    case FIELD_FOLLOWERS:
    case FIELD_ANSWER:
    case FIELD_REQUEST:
    case FIELD_TRACE:
    case FIELD_LOST:
    case FIELD_BULK:
        return true; /* none of these may be empty */
    }
    UNREACHABLE();
}

bool record_is_complete(const struct record *record, const char **missing)
{
    static const char *const names[] = {
        [FIELD_STEP] = "step",
        [FIELD_KEY] = "key",
        [FIELD_ATTEMPT] = "attempt",
        [FIELD_ACTOR] = "actor",
        [FIELD_NOTE] = "note",
        [FIELD_ARGS] = "args",
        [FIELD_FINGERPRINT] = "fingerprint",
        [FIELD_DUE] = "due_at",
        [FIELD_ERROR] = "error",
        [FIELD_START] = "saga, version, input or tools",
        [FIELD_ESCALATION] = "escalation",
        [FIELD_REASON] = "reason",
        [FIELD_ACTION] = "action",
        [FIELD_CALLED] = "name, label or tool_version",
        [FIELD_TOOL] = "tool",
        [FIELD_TOOL_VERSION] = "tool_version",
        [FIELD_DECISION] = "decision",
        [FIELD_PATTERN] = "pattern or repeats",
        [FIELD_SIGNAL] = "signal",
        [FIELD_APPROVAL] = "approval",
        [FIELD_LOCK] = "lock",
        [FIELD_VERDICT] = "as",
    };
    uint64_t must = record_shape(record->type)->must;

    for (uint64_t left = must; left != 0; left &= left - 1) {
        enum record_field field = (enum record_field)__builtin_ctzll(left);

        if (!has_field(record, field)) {
            *missing = names[field];
            return false;
        }
    }
    return true;
}
