/*
 * Records: the durable log is made of them. saga_decide() makes them, the store commits them, saga_apply() folds them.
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
    X(RECORD_SAGA_STARTED,                                                                                             \
      "saga.started") /* the saga was accepted, with its definition, pinned tools, input and deadline */               \
    X(RECORD_STEP_PENDING,                                                                                             \
      "step.pending") /* the operation is durable with key and arguments, and surely not sent (checked, once) */       \
    X(RECORD_STEP_INTENT, "step.intent")     /* the call leaves: from here on anything may have happened */            \
    X(RECORD_STEP_RETRYING, "step.retrying") /* an attempt ended, and another one follows at `due` */                  \
    X(RECORD_STEP_RUNNING, "step.accepted")  /* the receiver took it and is not done; the probe completes it */        \
    X(RECORD_STEP_UNKNOWN,                                                                                             \
      "step.unknown") /* nobody can say what happened; a probe asks at `due`, none where that is 0 */                  \
    X(RECORD_STEP_PROBED, "step.probed")       /* a probe did not settle it; the next one asks at `due` */             \
    X(RECORD_STEP_COMPLETED, "step.completed") /* the step has its result, and its compensator the arguments */        \
    X(RECORD_STEP_FAILED, "step.failed")       /* the call certainly had no effect, and no attempt follows */          \
    X(RECORD_STEP_SKIPPED,                                                                                             \
      "step.skipped") /* an operator skipped the step, or its `when` did not hold: reason "when" */                    \
    X(RECORD_STEP_REOPENED, "step.reopened") /* an operator wants one more round of attempts */                        \
    X(RECORD_STEP_WAIVED, "step.waived")     /* an operator leaves this effect standing: a debt */                     \
    X(RECORD_STEP_UNDONE, "step.undone")     /* an operator says that somebody undid this effect by hand */            \
    X(RECORD_STEP_CALLED,                                                                                              \
      "step.called") /* an agent's call was admitted and makes the step; it is durable, and surely not sent */         \
    X(RECORD_STEP_REPEATED,                                                                                            \
      "step.repeated") /* the call of an agent came again: a new attempt of what failed, or of a read */               \
    X(RECORD_STEP_OPENED, "step.opened")   /* a group begins: with the elements of for_each, or the input of a child;  \
                                              its members are steps from here on */                                    \
    X(RECORD_STEP_FAILING, "step.failing") /* a child is undone as a unit, the saga goes on: why */                    \
    X(RECORD_STEP_WAITING, "step.waiting") /* the step waits for a time, a signal or a person, until `due` */          \
    X(RECORD_SIGNAL_RECEIVED, "signal.received")   /* a signal came: `step` takes it, or the saga keeps it */          \
    X(RECORD_APPROVAL_DECIDED, "approval.decided") /* a person approved or refused */                                  \
    X(RECORD_LOCK_WANTED, "lock.wanted")           /* the business keys, in the order in which they are taken */       \
    X(RECORD_LOCK_TAKEN, "lock.taken")                                                                                 \
    X(RECORD_STEP_LATE, "step.late") /* evidence that contradicts what was settled: kept, and handed to a person */    \
    X(RECORD_OPERATION_DUPLICATE,                                                                                      \
      "operation.duplicate") /* a call began nothing: of what it was a duplicate, and what it got */                   \
    X(RECORD_OPERATION_PRICED,                                                                                         \
      "operation.priced") /* an operator says what an operation cost, where that could not be computed */              \
    X(RECORD_TOOL_MENDED, "tool.mended") /* an operator has this saga call that version of the tool from here on */    \
    X(RECORD_OPERATION_EXPIRED,                                                                                        \
      "operation.expired")                   /* the operation answers no more duplicates: a tombstone is left */       \
    X(RECORD_BYPASS_SIGNED, "bypass.signed") /* an operator signs one more execution off */                            \
    X(RECORD_LOOP_TRIPPED, "loop.tripped")   /* the same calls went round: which ones, and how often */                \
    X(RECORD_SAGA_PAUSED, "saga.paused")     /* no call is admitted until an operator resumes it */                    \
    X(RECORD_SAGA_RESUMED, "saga.resumed")   /* an operator resumes it; what a loop has closed is open again */        \
    X(RECORD_SAGA_HELD, "saga.held")         /* a hold keeps a call of it: its clocks stand */                         \
    X(RECORD_SAGA_RELEASED, "saga.released") /* no hold keeps a call any more: its clocks go on where they stood */    \
    X(RECORD_RUN_RESTED, "run.rested")       /* nothing of a run was going on for a while: it leaves memory */         \
    X(RECORD_RUN_WOKEN, "run.woken")         /* a call brought the run back */                                         \
    X(RECORD_SAGA_FAILING, "saga.failing")   /* forward work is over: why, and by whose word */                        \
    X(RECORD_COMPENSATION_PLANNED, "compensation.planned") /* the frozen undo plan, in order */                        \
    X(RECORD_COMPENSATION_INTENT, "compensation.intent")                                                               \
    X(RECORD_COMPENSATION_RETRYING, "compensation.retrying")                                                           \
    X(RECORD_COMPENSATION_RUNNING, "compensation.accepted")                                                            \
    X(RECORD_COMPENSATION_UNKNOWN, "compensation.unknown")                                                             \
    X(RECORD_COMPENSATION_PROBED, "compensation.probed")                                                               \
    X(RECORD_COMPENSATION_COMPLETED, "compensation.completed")                                                         \
    X(RECORD_COMPENSATION_FAILED, "compensation.failed")     /* the undo was given up, or refused for good */          \
    X(RECORD_COMPENSATION_REOPENED, "compensation.reopened") /* an operator wants one more round of attempts */        \
    X(RECORD_COMPENSATION_LATE, "compensation.late")         /* the same as step.late, about an undo */                \
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

enum source { /* how an outcome was learnt */
              SOURCE_CALL,
              SOURCE_PROBE,
              SOURCE_OPERATOR,
              SOURCE_PRECHECK,
              SOURCE_GUARD
};

/*
 * One struct serves all types: a record is written once and read a thousand times, by people too, so a member means the
 * same in each type. record_check() knows which members a type has; the others are zero. The comments name the types
 * that have a member by their last words: "retrying" is both step.retrying and compensation.retrying.
 */
struct record {
    uint64_t seq; /* the record's place in the log: 1 for the first record, then without gaps */
    int64_t at_ms;
    enum record_type type;
    uint32_t step; /* the index of its step; STEP_NONE: it is a record of the saga */

    struct op_key key; /* the key of its operation, in pending, intent and all that follows */
    uint32_t attempt;  /* the number of its attempt, 1 for the first */
    uint32_t generation;
    struct slice args;  /* JSON. Arguments: in pending, in intent where there was no pending, and in reopened where they
                           changed. opened: the elements, or the child's input; waiting: the text that a person is
                           shown; signal.received: the payload; lock.wanted: [{key, when_taken}] */
    struct slice scope; /* the scope of the call, beside args; SLICE_NONE: none */
    struct digest
        fingerprint; /* the fingerprint of args; of an approval: SHA-256 of the canonical form of what was shown */

    int64_t due_ms;     /* retrying, accepted, unknown, probed: the time of what comes next; 0: nothing comes by itself.
                           reopened: the attempt begins no earlier; 0: at once. started: the deadline; 0: none */
    bool unsent;        /* retrying, failed: not one byte of this attempt was sent */
    bool maybe;         /* retrying, compensation.failed: this attempt may have taken effect */
    bool accept_double; /* reopened: a person takes it upon themselves that the next attempt may be a second effect */
    struct slice error; /* a short code, in retrying, unknown, probed, failed, saga.failing ("step-failed" "deadline"
                           "abort" "operator") and at the end of a saga */
    struct slice detail; /* a sentence about the error */
    struct slice answer; /* the answer of the receiver, JSON {status, body, ...}, in retrying, unknown, probed and
                            failed; SLICE_NONE: it said nothing new */
    enum source source;  /* who said so, in completed, failed, and retrying where a probe said that nothing happened.
                            What is completed by SOURCE_PRECHECK took effect before. What is failed by SOURCE_GUARD was
                            refused by a guard, and nothing was sent */
    int64_t cost_micros; /* the cost: in step.completed, step.called (reserved), step.unknown (estimated),
                            operation.priced */
    bool conditional;    /* pending, intent, called: `effect` was decided from the arguments */
    enum effect effect;  /* the frozen class of the operation: where it is conditional, and always in step.called */
    struct slice result; /* JSON. completed: the result; saga.completed: the output; escalation.opened: the evidence */
    struct slice undo_args;    /* JSON: the arguments of the compensator, in step.completed of a step that has one */
    struct slice undo_error;   /* step.completed: why the compensator's arguments could not be rendered */
    struct slice result_error; /* step.completed: why the result could not be made; null stands for it, and nothing may
                                  use that null */
    struct slice cost_unknown; /* completed: why nobody knows what the call cost */

    /* These stand in saga.started. */
    struct slice saga_name, namespace, business_id, tags /* JSON or none */, input /* JSON */,
        tools /* JSON: {name: version} */, sagas /* JSON: {name: version} of its children; SLICE_NONE: it has none */;
    uint32_t version;

    /* These stand in saga.started of an open saga or a run. */
    struct slice run; /* the name that the caller gave to the run */
    struct slice budget, loop /* JSON or none */, on_timeout /* "abort" "escalate" */;

    struct slice traceparent, tracestate; /* saga.started: the trace of the caller; only where traces are sent */

    /* These are about one emission of a call: step.called, step.repeated, operation.duplicate. */
    struct slice emission;          /* the id of the emission on the wire; SLICE_NONE: none was given */
    struct slice conversation_turn; /* the turn, as the caller counts; SLICE_NONE: the caller does not say */
    struct slice call_step;         /* step.called: the name of the step in the key; `label` is unique in the saga */
    struct slice label;
    struct slice tool_name, undo_name; /* step.called: the tool, and the tool that undoes it */
    uint32_t tool_version, undo_version;
    struct op_key earlier_key; /* step.called by a bypass, by `allow` or `again`: the operation before it */
    /*
     * operation.duplicate: "replayed" "waited" "refused" "escalated" "failed" "unknown" "awaiting-operator" "drift"
     * "drift-refused" "expired" "loop"; step.called: "bypass" "allow" "again" or none.
     */
    struct slice decision;
    struct slice pointers; /* operation.duplicate: a JSON array of the JSON Pointers in which the arguments differ */
    struct slice pattern;  /* loop.tripped: a JSON array of {tool, step, scope} */
    uint32_t repeats;      /* loop.tripped: the number of copies of the pattern */

    struct slice signal;    /* signal.received: the name of the signal */
    uint64_t approval;      /* waiting for a person, approval.decided: the number of the approval */
    struct slice lock;      /* lock.taken: the key */
    struct slice followers; /* saga.completed: a JSON array of {saga, input, business_id}; SLICE_NONE: none follow */

    /* compensation.planned: indexes of steps in the order of undoing, also of those whose effect awaits a verdict */
    const uint32_t *plan;
    uint32_t plan_count;

    /* These stand in escalation.*, and in the records of what an operator did. */
    uint64_t escalation;      /* the number of the escalation */
    enum direction direction; /* the direction of the operation in question */
    struct slice reason;      /* escalation.opened: "unknown", "compensation-failed", "compensation-arguments", ... */
                              /* saga.paused: "loop"; step.skipped: "when" */
    struct slice action;      /* escalation.resolved: the verb of the person */
    struct slice verdict; /* escalation.resolved: "happened" or "not_happened" with resolve; approval.decided: "approve"
                             or "refuse" */
    struct slice actor, note;
    struct slice request; /* escalation.resolved: the Idempotency-Key of the answer */
    struct slice bulk;    /* "JOB/ITEM" in the first record of a turn that a bulk job asked for, whatever its type */

    const uint32_t *debts; /* saga.abandoned: the steps whose effects are left standing */
    uint32_t debt_count;
};

struct call_answer {    /* the answer to an agent's call, once the records are durable */
    enum err_code code; /* ERR_OK: the operation of `step` answers the call, as it stands or when it is settled. Other
                           codes refuse the call */
    uint32_t step;      /* the step of the operation that the call is about; STEP_NONE: none */
    bool duplicate;     /* the call began no operation, and no new attempt */
    bool replay;        /* the operation is settled: the answer is the stored one */
    int64_t first_ms;   /* when the operation was asked for first */
    int64_t retry_after_ms;
    struct slice message; /* the sentence of a refusal; the hint says what to do */
    struct slice hint;
    struct slice pointers; /* a JSON array of the places where the arguments differ */
    struct slice pattern;  /* a JSON array of the calls of a loop */
    const char *decision;  /* a word for the log line tool_call_deduplicated; NULL: the call was no duplicate */
    int64_t original_ms;
};

struct records { /* the result of a decision; the items lie in the arena of the turn */
    struct record *items;
    size_t count, capacity;
    struct call_answer answer; /* the answer to SAGA_INPUT_CALL */
};

struct definition;

/* Appends the text form. `definition` names the steps. */
void record_write(const struct record *record, const struct definition *definition, struct buffer *out);

/*
 * Reads the text form, as stored or as the API shows it: `seq` and `at` are taken when they are there. Slices point
 * into `text`; arrays lie in the arena. ERR_CORRUPT: the text makes no sense, or this version does not know its type.
 */
MUST_USE enum err_code record_read(struct slice text, const struct definition *definition, struct arena *arena,
                                   struct record *out, struct err *err);

/* Reads the members of saga.started that are needed before the definition is at hand: name, version, pinned tools. */
MUST_USE enum err_code record_read_start(struct slice text, struct arena *arena, struct record *out, struct err *err);

#endif
