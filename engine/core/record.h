/*
 * Records: what the durable log is made of. saga_decide() makes them, the store commits them, saga_apply() folds them.
 *
 * A turn's records are one row: a JSON array in which each element is the text form of a record. The text form is also
 * what the API shows as `type`, `step`, `key`, `attempt`, `actor` and `data`; `seq` and `at` are added when it is shown. Payloads (input, arguments,
 * results) stand in it byte for byte. A type or a member is never removed or given another meaning; a version that does not know a
 * type refuses the saga instead of guessing.
 */
#ifndef SAGAD_CORE_RECORD_H
#define SAGAD_CORE_RECORD_H

#include "base/errors.h"
#include "base/id.h"
#include "base/outcome.h"
#include "core/opkey.h"

/*  id                              type in the log             what it says */
#define RECORD_MAP(X)                                                                                                          \
    X(RECORD_SAGA_STARTED,            "saga.started")             /* accepted: definition, pinned tools, input, deadline */      \
    X(RECORD_STEP_PENDING,            "step.pending")             /* operation with key and arguments durable, surely not sent (checked, once) */ \
    X(RECORD_STEP_INTENT,             "step.intent")              /* from here on anything may have happened */                  \
    X(RECORD_STEP_RETRYING,           "step.retrying")            /* an attempt ended, another follows at `due` */               \
    X(RECORD_STEP_RUNNING,            "step.accepted")            /* the receiver took it and is not done; the probe completes it */ \
    X(RECORD_STEP_UNKNOWN,            "step.unknown")             /* nobody can say; probed at `due`, or for good when due is 0 */ \
    X(RECORD_STEP_PROBED,             "step.probed")              /* a probe that did not settle it; next at `due` */            \
    X(RECORD_STEP_COMPLETED,          "step.completed")           /* with the result, and the compensator's arguments */         \
    X(RECORD_STEP_FAILED,             "step.failed")              /* certainly no effect, for good */                            \
    X(RECORD_STEP_SKIPPED,            "step.skipped")             /* by an operator */                                           \
    X(RECORD_STEP_REOPENED,           "step.reopened")            /* by an operator: one more round of attempts */               \
    X(RECORD_STEP_WAIVED,             "step.waived")              /* by an operator: this effect is left standing, a debt */     \
    X(RECORD_SAGA_FAILING,            "saga.failing")             /* forward work is over: why, and who said so */               \
    X(RECORD_COMPENSATION_PLANNED,    "compensation.planned")     /* the frozen undo plan, in order */                           \
    X(RECORD_COMPENSATION_INTENT,     "compensation.intent")                                                                    \
    X(RECORD_COMPENSATION_RETRYING,   "compensation.retrying")                                                                  \
    X(RECORD_COMPENSATION_RUNNING,    "compensation.accepted")                                                                  \
    X(RECORD_COMPENSATION_UNKNOWN,    "compensation.unknown")                                                                   \
    X(RECORD_COMPENSATION_PROBED,     "compensation.probed")                                                                    \
    X(RECORD_COMPENSATION_COMPLETED,  "compensation.completed")                                                                 \
    X(RECORD_COMPENSATION_FAILED,     "compensation.failed")      /* given up, or refused for good */                            \
    X(RECORD_COMPENSATION_REOPENED,   "compensation.reopened")    /* by an operator */                                           \
    X(RECORD_ESCALATION_OPENED,       "escalation.opened")                                                                      \
    X(RECORD_ESCALATION_RESOLVED,     "escalation.resolved")                                                                    \
    X(RECORD_SAGA_COMPLETED,          "saga.completed")                                                                         \
    X(RECORD_SAGA_COMPENSATED,        "saga.compensated")                                                                       \
    X(RECORD_SAGA_ABANDONED,          "saga.abandoned")

#define X(id, type) id,
enum record_type { RECORD_MAP(X) RECORD_TYPE_COUNT };
#undef X

const char *record_type_name(enum record_type type);
bool record_type_parse(struct slice name, enum record_type *out);

#define STEP_NONE UINT32_MAX

enum source { SOURCE_CALL, SOURCE_PROBE, SOURCE_OPERATOR }; /* how an outcome was learnt */

/*
 * One struct for all types: a record is written once and read a thousand times, by people too, so that members mean the
 * same wherever they stand. record_check() knows which of them a type has; the others are zero.
 */
struct record {
    uint64_t seq;          /* 1 for the first; dense */
    int64_t at_ms;
    enum record_type type;
    uint32_t step;         /* index; STEP_NONE for records of the saga */

    struct op_key key;     /* pending, intent, and everything about an operation */
    uint32_t attempt;      /* which attempt this is about, 1 for the first */
    uint32_t generation;
    struct slice args;     /* JSON: pending, or intent where there was no pending; reopened with changed arguments */
    struct slice scope;    /* text, beside args; SLICE_NONE is empty */
    struct digest fingerprint; /* beside args */

    int64_t due_ms;        /* retrying, accepted, unknown, probed: what comes next, when; 0: nothing by itself. started: the deadline, 0 for none */
    bool unsent;           /* retrying, failed: not a byte of this attempt left */
    bool maybe;            /* retrying, compensation.failed: this attempt may have taken effect */
    bool accept_double;    /* reopened: a person takes it upon themselves that the next attempt may be a second effect */
    struct slice error;    /* short code: retrying, unknown, probed, failed, saga.failing ("step-failed" "deadline" "abort" "operator"), ended */
    struct slice detail;   /* one sentence */
    enum source source;    /* completed, failed; retrying, when a probe said that nothing happened */
    struct slice result;   /* JSON: completed; saga.completed: the output; escalation.opened: the evidence */
    struct slice undo_args; /* JSON: step.completed of a step with a compensator */
    struct slice undo_error; /* step.completed: the compensator's arguments could not be rendered */

    /* saga.started */
    struct slice saga_name, namespace, business_id, tags /* JSON or none */, input /* JSON */, tools /* JSON: {name: version} */;
    uint32_t version;

    /* compensation.planned: indexes in order of undoing, and those among them whose effect awaits a verdict */
    const uint32_t *plan;
    uint32_t plan_count;

    /* escalation.*, and whatever an operator did */
    uint64_t escalation;   /* its number */
    enum direction direction; /* of the operation in question */
    struct slice reason;   /* escalation.opened: "unknown", "compensation-failed", "compensation-arguments", ... */
    struct slice action;   /* escalation.resolved: the verb */
    struct slice verdict;  /* escalation.resolved: "happened" or "not_happened" with resolve */
    struct slice actor, note;

    /* saga.abandoned */
    const uint32_t *debts; /* steps whose effects are left standing */
    uint32_t debt_count;
};

struct records { /* what a decision gives; items lie in the turn's arena */
    struct record *items;
    size_t count, capacity;
};

struct definition;

/* Append the text form. `definition` names the steps. */
void record_write(const struct record *record, const struct definition *definition, struct buffer *out);

/*
 * Read the text form, as stored or as the API shows it (`seq` and `at` are taken when they are there). Slices point into `text`; arrays lie in the
 * arena. ERR_CORRUPT when it makes no sense or its type is not known to this version.
 */
MUST_USE enum err_code record_read(struct slice text, const struct definition *definition, struct arena *arena, struct record *out, struct err *err);

/* What is needed of saga.started before the definition is at hand: name, version and pinned tools. */
MUST_USE enum err_code record_read_start(struct slice text, struct arena *arena, struct record *out, struct err *err);

#endif
