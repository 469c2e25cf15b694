/*
 * Records: what the durable log is made of. saga_decide() makes them, the store commits them, saga_apply() folds them.
 *
 * A turn's records are one row: a JSON array in which each element is the text form of a record. The text form is also
 * what the API shows as `type`, `step`, `key`, `attempt`, `actor` and `data`; `seq` and `at` are added when it is
 * shown. Payloads (input, arguments, results) stand in it byte for byte. A type or a member is never removed or given
 * another meaning; a version that does not know a type refuses the saga instead of guessing.
 */
#ifndef SAGAD_CORE_RECORD_RECORD_H
#define SAGAD_CORE_RECORD_RECORD_H

#include "base/errors.h"
#include "base/id.h"
#include "base/outcome.h"
#include "core/definition/opkey.h"
#include "core/language/policy.h"

/*  id                              type in the log             what it says */
#define RECORD_MAP(X)                                                                                                  \
    X(RECORD_SAGA_STARTED, "saga.started") /* accepted: definition, pinned tools, input, deadline */                   \
    X(RECORD_STEP_PENDING,                                                                                             \
      "step.pending") /* operation with key and arguments durable, surely not sent (checked, once) */                  \
    X(RECORD_STEP_INTENT, "step.intent")       /* from here on anything may have happened */                           \
    X(RECORD_STEP_RETRYING, "step.retrying")   /* an attempt ended, another follows at `due` */                        \
    X(RECORD_STEP_RUNNING, "step.accepted")    /* the receiver took it and is not done; the probe completes it */      \
    X(RECORD_STEP_UNKNOWN, "step.unknown")     /* nobody can say; probed at `due`, or for good when due is 0 */        \
    X(RECORD_STEP_PROBED, "step.probed")       /* a probe that did not settle it; next at `due` */                     \
    X(RECORD_STEP_COMPLETED, "step.completed") /* with the result, and the compensator's arguments */                  \
    X(RECORD_STEP_FAILED, "step.failed")       /* certainly no effect, for good */                                     \
    X(RECORD_STEP_SKIPPED, "step.skipped")     /* by an operator; or its `when` did not hold: reason "when" */         \
    X(RECORD_STEP_REOPENED, "step.reopened")   /* by an operator: one more round of attempts */                        \
    X(RECORD_STEP_WAIVED, "step.waived")       /* by an operator: this effect is left standing, a debt */              \
    X(RECORD_STEP_UNDONE, "step.undone")       /* by an operator: somebody undid this effect by hand */                \
    X(RECORD_STEP_CALLED,                                                                                              \
      "step.called") /* an agent's call was admitted: it makes the step; key and arguments durable, surely not sent */ \
    X(RECORD_STEP_REPEATED, "step.repeated") /* an agent's call again: a new attempt of what failed, or of a read */   \
    X(RECORD_STEP_OPENED, "step.opened")   /* a group begins: with the elements of for_each, or the input of a child;  \
                                              its members are steps from here on */                                    \
    X(RECORD_STEP_FAILING, "step.failing") /* a child is undone as a unit, the saga goes on: why */                    \
    X(RECORD_STEP_WAITING, "step.waiting") /* for a time, a signal or a person; over at `due` */                       \
    X(RECORD_SIGNAL_RECEIVED, "signal.received")   /* taken by `step`, or kept */                                      \
    X(RECORD_APPROVAL_DECIDED, "approval.decided") /* by a person */                                                   \
    X(RECORD_LOCK_WANTED, "lock.wanted")           /* the business keys, in the order in which they are taken */       \
    X(RECORD_LOCK_TAKEN, "lock.taken")                                                                                 \
    X(RECORD_STEP_LATE, "step.late") /* evidence that contradicts what was settled: kept, and handed to a person */    \
    X(RECORD_OPERATION_DUPLICATE,                                                                                      \
      "operation.duplicate") /* a call that began nothing: what it was a duplicate of, and what it got */              \
    X(RECORD_OPERATION_PRICED,                                                                                         \
      "operation.priced") /* by an operator: what an operation cost, where that could not be computed */               \
    X(RECORD_TOOL_MENDED, "tool.mended") /* by an operator: from here on this saga calls that version of the tool */   \
    X(RECORD_OPERATION_EXPIRED, "operation.expired") /* its record answers no more duplicates: a tombstone is left */  \
    X(RECORD_BYPASS_SIGNED, "bypass.signed")         /* an operator signs one more execution off */                    \
    X(RECORD_LOOP_TRIPPED, "loop.tripped")           /* the same calls went round: which, how often */                 \
    X(RECORD_SAGA_PAUSED, "saga.paused")             /* no call is admitted until an operator resumes it */            \
    X(RECORD_SAGA_RESUMED, "saga.resumed")           /* by an operator; what a loop has closed is open again */        \
    X(RECORD_SAGA_HELD, "saga.held")                 /* a hold keeps a call of it: its clocks stand */                 \
    X(RECORD_SAGA_RELEASED, "saga.released")         /* no hold does any more: its clocks go on where they stood */    \
    X(RECORD_RUN_RESTED, "run.rested")               /* nothing of a run was going on for a while: it leaves memory */ \
    X(RECORD_RUN_WOKEN, "run.woken")                 /* and a call brought it back */                                  \
    X(RECORD_SAGA_FAILING, "saga.failing")           /* forward work is over: why, and who said so */                  \
    X(RECORD_COMPENSATION_PLANNED, "compensation.planned") /* the frozen undo plan, in order */                        \
    X(RECORD_COMPENSATION_INTENT, "compensation.intent")                                                               \
    X(RECORD_COMPENSATION_RETRYING, "compensation.retrying")                                                           \
    X(RECORD_COMPENSATION_RUNNING, "compensation.accepted")                                                            \
    X(RECORD_COMPENSATION_UNKNOWN, "compensation.unknown")                                                             \
    X(RECORD_COMPENSATION_PROBED, "compensation.probed")                                                               \
    X(RECORD_COMPENSATION_COMPLETED, "compensation.completed")                                                         \
    X(RECORD_COMPENSATION_FAILED, "compensation.failed")     /* given up, or refused for good */                       \
    X(RECORD_COMPENSATION_REOPENED, "compensation.reopened") /* by an operator */                                      \
    X(RECORD_COMPENSATION_LATE, "compensation.late")         /* as step.late, of an undo */                            \
    X(RECORD_ESCALATION_OPENED, "escalation.opened")                                                                   \
    X(RECORD_ESCALATION_RESOLVED, "escalation.resolved")                                                               \
    X(RECORD_SAGA_COMPLETED, "saga.completed")                                                                         \
    X(RECORD_SAGA_COMPENSATED, "saga.compensated")                                                                     \
    X(RECORD_SAGA_ABANDONED, "saga.abandoned")

#define X(id, type) id,
enum record_type { RECORD_MAP(X) RECORD_TYPE_COUNT };
#undef X

const char *record_type_name(enum record_type type);
/* Does the member of this name in "data" hold a payload, quote one, or is it a digest over one? The store seals those.
 */
bool record_member_is_payload(struct slice name);
bool record_type_parse(struct slice name, enum record_type *out);

#define STEP_NONE UINT32_MAX

enum source {
    SOURCE_CALL,
    SOURCE_PROBE,
    SOURCE_OPERATOR,
    SOURCE_PRECHECK,
    SOURCE_GUARD
}; /* how an outcome was learnt */

/*
 * One struct for all types: a record is written once and read a thousand times, by people too, so that members mean the
 * same wherever they stand. record_check() knows which of them a type has; the others are zero.
 */
struct record {
    uint64_t seq; /* 1 for the first; dense */
    int64_t at_ms;
    enum record_type type;
    uint32_t step; /* index; STEP_NONE for records of the saga */

    struct op_key key; /* pending, intent, and everything about an operation */
    uint32_t attempt;  /* which attempt this is about, 1 for the first */
    uint32_t generation;
    struct slice args;  /* JSON: pending, or intent where there was no pending; reopened with changed arguments; opened:
                           the elements, or the child's input;  waiting: what a person is shown; signal.received: the
                           payload; lock.wanted: [{key, when_taken}] */
    struct slice scope; /* text, beside args; SLICE_NONE is empty */
    struct digest fingerprint; /* beside args; of an approval: SHA-256 of the canonical form of what was shown */

    int64_t due_ms; /* retrying, accepted, unknown, probed: what comes next, when; 0: nothing by itself. reopened: not
                       before; 0: at once. started: the deadline, 0 for none */
    bool unsent;    /* retrying, failed: not a byte of this attempt left */
    bool maybe;     /* retrying, compensation.failed: this attempt may have taken effect */
    bool accept_double; /* reopened: a person takes it upon themselves that the next attempt may be a second effect */
    struct slice error; /* short code: retrying, unknown, probed, failed, saga.failing ("step-failed" "deadline" "abort"
                           "operator"), ended */
    struct slice detail; /* one sentence */
    struct slice answer; /* JSON {status, body, ...}: retrying, unknown, probed, failed: what the receiver said;
                            SLICE_NONE: nothing new */
    enum source
        source; /* completed, failed; retrying, when a probe said that nothing happened. completed by SOURCE_PRECHECK
                   took effect before; failed by SOURCE_GUARD was refused by a guard, and nothing was sent */
    int64_t cost_micros;       /* step.completed, step.called (reserved), step.unknown (estimated), operation.priced */
    bool conditional;          /* effect below was decided from the arguments: pending, intent, called */
    enum effect effect;        /* class of the operation, frozen: with conditional, and always in step.called */
    struct slice result;       /* JSON: completed; saga.completed: the output; escalation.opened: the evidence */
    struct slice undo_args;    /* JSON: step.completed of a step with a compensator */
    struct slice undo_error;   /* step.completed: the compensator's arguments could not be rendered */
    struct slice result_error; /* step.completed: why its result could not be made; null stands for it, and nothing may
                                  use that */
    struct slice cost_unknown; /* completed: why nobody knows what it cost */

    /* saga.started */
    struct slice saga_name, namespace, business_id, tags /* JSON or none */, input /* JSON */,
        tools /* JSON: {name: version} */, sagas /* JSON: {name: version} of its children; SLICE_NONE: it has none */;
    uint32_t version;

    /* saga.started of an open saga or a run */
    struct slice run; /* the caller's name of a run */
    struct slice budget, loop /* JSON or none */, on_timeout /* "abort" "escalate" */;

    struct slice traceparent, tracestate; /* saga.started: the trace of the caller; only where traces are sent */

    /* step.called, step.repeated, operation.duplicate: one emission of a call */
    struct slice emission;          /* its id on the wire; SLICE_NONE: none was given */
    struct slice conversation_turn; /* `turn`, as the caller counts; SLICE_NONE: not given */
    struct slice call_step; /* step.called: the step's name as it stands in the key; the record's step, unique in the
                               saga, is `label` */
    struct slice label;
    struct slice tool_name, undo_name; /* step.called */
    uint32_t tool_version, undo_version;
    struct op_key earlier_key; /* step.called by a bypass, by `allow` or `again`: the operation before it */
    /*
     * operation.duplicate: "replayed" "waited" "refused" "escalated" "failed" "unknown" "awaiting-operator" "drift"
     * "drift-refused" "expired" "loop"; step.called: "bypass" "allow" "again" or none.
     */
    struct slice decision;
    struct slice pointers; /* operation.duplicate: JSON array of the JSON Pointers in which the arguments differ */
    struct slice pattern;  /* loop.tripped: JSON array of {tool, step, scope} */
    uint32_t repeats;      /* loop.tripped: how many copies of the pattern */

    struct slice signal;    /* signal.received: its name */
    uint64_t approval;      /* waiting for a person, approval.decided: its number */
    struct slice lock;      /* lock.taken: the key */
    struct slice followers; /* saga.completed: JSON array of {saga, input, business_id}; SLICE_NONE: none */

    /* compensation.planned: indexes in order of undoing, and those among them whose effect awaits a verdict */
    const uint32_t *plan;
    uint32_t plan_count;

    /* escalation.*, and whatever an operator did */
    uint64_t escalation;      /* its number */
    enum direction direction; /* of the operation in question */
    struct slice reason;      /* escalation.opened: "unknown", "compensation-failed", "compensation-arguments", ... */
                              /* saga.paused: "loop"; step.skipped: "when" */
    struct slice action;      /* escalation.resolved: the verb */
    struct slice verdict; /* escalation.resolved: "happened" or "not_happened" with resolve; approval.decided: "approve"
                             or "refuse" */
    struct slice actor, note;
    struct slice request; /* escalation.resolved: the Idempotency-Key of the answer */
    struct slice bulk;    /* the first record of a turn that a bulk job asked for: "JOB/ITEM"; any type may have it */

    /* saga.abandoned */
    const uint32_t *debts; /* steps whose effects are left standing */
    uint32_t debt_count;
};

struct call_answer {    /* what an agent's call means for the caller, once the records are durable */
    enum err_code code; /* ERR_OK: its operation is `step`, to be answered as it stands or when it is settled; else it
                           is refused */
    uint32_t step;      /* of the operation it is about; STEP_NONE: none */
    bool duplicate;     /* it began nothing, and no new attempt */
    bool replay;        /* of a settled operation: the answer is the stored one */
    int64_t first_ms;   /* when that was asked for first */
    int64_t retry_after_ms;
    struct slice message; /* of a refusal: a sentence, and what to do */
    struct slice hint;
    struct slice pointers; /* JSON array, where the arguments differ */
    struct slice pattern;  /* JSON array, of a loop */
    const char *decision;  /* for the log line tool_call_deduplicated; NULL: it was no duplicate */
    int64_t original_ms;
};

struct records { /* what a decision gives; items lie in the turn's arena */
    struct record *items;
    size_t count, capacity;
    struct call_answer answer; /* of SAGA_INPUT_CALL */
};

struct definition;

/* Append the text form. `definition` names the steps. */
void record_write(const struct record *record, const struct definition *definition, struct buffer *out);

/*
 * Read the text form, as stored or as the API shows it (`seq` and `at` are taken when they are there). Slices point
 * into `text`; arrays lie in the arena. ERR_CORRUPT when it makes no sense or its type is not known to this version.
 */
MUST_USE enum err_code record_read(struct slice text, const struct definition *definition, struct arena *arena,
                                   struct record *out, struct err *err);

/* What is needed of saga.started before the definition is at hand: name, version and pinned tools. */
MUST_USE enum err_code record_read_start(struct slice text, struct arena *arena, struct record *out, struct err *err);

#endif
