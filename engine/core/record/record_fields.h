/* Which members a type of record has: one table, for the codec and for record_check(). Private to the record and the
 * saga machine. */
#ifndef SAGAD_CORE_RECORD_RECORD_FIELDS_H
#define SAGAD_CORE_RECORD_RECORD_FIELDS_H

#include "core/record/record.h"

enum record_field {
    FIELD_STEP,
    FIELD_KEY,
    FIELD_ATTEMPT,
    FIELD_ACTOR,
    FIELD_GENERATION,
    FIELD_ARGS,
    FIELD_SCOPE,
    FIELD_FINGERPRINT,
    FIELD_DUE,
    FIELD_UNSENT,
    FIELD_MAYBE,
    FIELD_ERROR,
    FIELD_DETAIL,
    FIELD_SOURCE,
    FIELD_RESULT,
    FIELD_UNDO,
    FIELD_START,
    FIELD_DEADLINE,
    FIELD_PLAN,
    FIELD_ESCALATION,
    FIELD_REASON,
    FIELD_ACTION,
    FIELD_NOTE,
    FIELD_DEBTS,
    FIELD_EVIDENCE,
    FIELD_OUTPUT,
    FIELD_DOUBLE,
    FIELD_CLASS,
    FIELD_COST,
    FIELD_OPENING,  /* what saga.started of an open saga or a run has more */
    FIELD_EMISSION, /* with the turn of the conversation */
    FIELD_CALLED,   /* the step that a call makes: name, label, tools */
    FIELD_EARLIER,
    FIELD_DECISION,
    FIELD_POINTERS,
    FIELD_TOOL,
    FIELD_PATTERN,
    FIELD_SIGNAL,
    FIELD_APPROVAL,
    FIELD_LOCK,
    FIELD_FOLLOWERS,
    FIELD_ANSWER,
    FIELD_VERDICT,      /* without an action */
    FIELD_TOOL_VERSION, /* beside FIELD_TOOL, without the rest of FIELD_CALLED */
    FIELD_REQUEST,
    FIELD_TRACE,
    FIELD_LOST, /* what an expression over the result should have given */
    FIELD_BULK
};

#define FIELD_BIT(field) (UINT64_C(1) << (field))

struct record_shape {
    uint64_t may; /* bits of enum record_field (FIELD_BIT); what must be is in it too, FIELD_BULK is in none */
    uint64_t must;
};

const struct record_shape *record_shape(enum record_type type);

/* Are the members that must be there there? `missing` is the name of one that is not. */
bool record_is_complete(const struct record *record, const char **missing);

/* The name of a text that could not be read back as it was written, because it is not UTF-8; NULL
 * when there is none. */
const char *record_broken_text(const struct record *record);

#endif
