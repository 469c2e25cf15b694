/*
 * The saga machine: read this first.
 *
 *     saga_decide(saga, input)  -> records    what an input means; changes nothing
 *     saga_apply(saga, record)                folds one durable record; the only writer of state
 *     saga_wants(saga)          -> wants      which calls, probes, evaluations and timers should exist now
 *
 * Pure: no I/O, clock, randomness or globals; memory only from the arenas given. Live running, recovery and replay use
 * these three functions, so there is no recovery code. After loading, a want WANT_CALL means that an intent is durable
 * whose end is not: the engine that finds one it has not sent itself feeds it back as SETTLED with OUTCOME_UNKNOWN
 * ("interrupted"), and the effect class decides.
 */
#ifndef SAGAD_CORE_SAGA_SAGA_H
#define SAGAD_CORE_SAGA_SAGA_H

#include "base/trace_context.h"
#include "core/definition/definition.h"
#include "core/record/emissions.h"
#include "core/record/loop_guard.h"
#include "core/record/record.h"

/* --- states --- */

#define SAGA_STATUS_MAP(X)                                                                                             \
    X(SAGA_RUNNING, "running")                                                                                         \
    X(SAGA_WAITING, "waiting")                                                                                         \
    X(SAGA_PAUSED, "paused")                                                                                           \
    X(SAGA_COMPENSATING, "compensating")                                                                               \
    X(SAGA_ESCALATED, "escalated")                                                                                     \
    X(SAGA_COMPLETED, "completed")                                                                                     \
    X(SAGA_COMPENSATED, "compensated")                                                                                 \
    X(SAGA_ABANDONED, "abandoned")
#define STEP_STATUS_MAP(X)                                                                                             \
    X(STEP_PENDING, "pending")                                                                                         \
    X(STEP_WAITING, "waiting")                                                                                         \
    X(STEP_RUNNING, "running")                                                                                         \
    X(STEP_RETRYING, "retrying")                                                                                       \
    X(STEP_COMPLETED, "completed")                                                                                     \
    X(STEP_SKIPPED, "skipped")                                                                                         \
    X(STEP_FAILED, "failed")                                                                                           \
    X(STEP_UNKNOWN, "unknown")                                                                                         \
    X(STEP_COMPENSATING, "compensating")                                                                               \
    X(STEP_COMPENSATED, "compensated")                                                                                 \
    X(STEP_COMPENSATION_FAILED, "compensation_failed")
#define TOOK_EFFECT_MAP(X)                                                                                             \
    X(TOOK_EFFECT_NO, "no")                                                                                            \
    X(TOOK_EFFECT_MAYBE, "maybe")                                                                                      \
    X(TOOK_EFFECT_YES, "yes")                                                                                          \
    X(TOOK_EFFECT_BEFORE, "before")                                                                                    \
    X(TOOK_EFFECT_UNDONE, "undone")
/* The states of an operation; the last column is the state's name in the registry's contract. */
#define OP_STATE_MAP(X)                                                                                                \
    X(OP_NONE, "none", "pending")             /* no record of it yet */                                                \
    X(OP_PENDING, "pending", "pending")       /* durable, surely not sent */                                           \
    X(OP_IN_FLIGHT, "in_flight", "in_flight") /* intent durable; a call is or may be under way */                      \
    X(OP_RETRYING, "retrying",                                                                                         \
      "pending") /* the next attempt is due at due_ms; shown as in_flight when an earlier one may have taken effect */ \
    X(OP_PROBING, "probing", "unknown") /* nobody can say yet; the next probe is due at due_ms */                      \
    X(OP_UNKNOWN, "unknown", "unknown") /* for good: only late evidence or a person can settle it */                   \
    X(OP_COMPLETED, "completed", "completed")                                                                          \
    X(OP_FAILED, "failed", "failed") /* certainly no effect */                                                         \
    X(OP_SKIPPED, "skipped", "failed")                                                                                 \
    X(OP_OPEN, "open", "in_flight")     /* a group: its members are under way */                                       \
    X(OP_WAITING, "waiting", "pending") /* for a time, a signal or a person; until due_ms, 0: for ever */

#define X(id, name) id,
enum saga_status { SAGA_STATUS_MAP(X) SAGA_STATUS_COUNT };
enum step_status { STEP_STATUS_MAP(X) STEP_STATUS_COUNT };
enum took_effect { TOOK_EFFECT_MAP(X) TOOK_EFFECT_COUNT };
#undef X
#define X(id, name, registry_name) id,
enum op_state { OP_STATE_MAP(X) OP_STATE_COUNT };
#undef X

const char *saga_status_name(enum saga_status status);
bool saga_status_parse(struct slice name, enum saga_status *out);
bool saga_status_is_final(enum saga_status status);
const char *step_status_name(enum step_status status);
const char *took_effect_name(enum took_effect took_effect);

enum saga_phase {
    PHASE_FORWARD,
    PHASE_FAILING, /* forward work is over; what is in flight is being settled, no step starts */
    PHASE_UNDO,    /* the plan is frozen and being worked through */
    PHASE_ENDED
};

/* One asking of a case. A case keeps its number as long as it is about the same operation; each asking is a round. */
struct case_round {
    uint64_t number;
    uint32_t round; /* 1 for the first */
    int64_t opened_ms, resolved_ms /* 0: it is open */;
    struct slice reason;
    struct slice action, verdict, actor, note; /* members from escalation.resolved on */
    struct slice request;                      /* the Idempotency-Key of the answer; SLICE_NONE: it had none */
    const struct case_round *before;           /* the round before; NULL: this is the first */
};

struct room { /* where a text lies whose place another one takes */
    char *ptr;
    size_t bytes;
};

struct operation { /* one intended effect: the forward or the undo operation of a step */
    enum op_state state;
    enum took_effect took_effect;
    struct op_key key;
    uint32_t generation;
    uint32_t attempts;   /* intents in all; the number of the current or last attempt */
    uint32_t never_left; /* the number of attempts of which not one byte left: operation_calls() leaves them out */
    uint32_t counted;    /* attempts of this round of which a byte may have left */
    uint32_t unsent;     /* tries of this round, in a row, that never left */
    uint32_t probes;     /* probes answered in all; the next one is number probes + 1 */
    struct slice args, scope, result, error, detail;
    struct digest fingerprint;
    int64_t created_ms, first_sent_ms, last_sent_ms, ended_ms, due_ms;
    enum source source;
    bool earlier_maybe;   /* an attempt before the current one may have taken effect, and nothing has settled that */
    bool accepted;        /* OP_PROBING because the receiver said that it works on it, not for want of an answer */
    bool double_accepted; /* a person takes it upon themselves that the next attempt may be a second effect */
    bool one_probe;       /* OP_PROBING because somebody had it asked once more: one answer, no series */
    bool duplicate_asked; /* a person was asked what its duplicates mean */
    bool before;          /* a precheck found that the wanted state held already */
    bool expired;         /* answers no duplicates any more: result and arguments are gone */
    bool late;            /* evidence came that contradicts how it was settled: a person decides */
    bool denied;          /* with `late`: the evidence says that it did not happen */
    bool known_before;    /* evidence came late: the receiver may know the key since its first call */
    uint32_t ruled_out;   /* attempts up to this one did not happen, by a person's word */
    uint32_t other_key_attempts; /* attempts made under keys of earlier generations: their answers say nothing about
                                    this key */
    uint32_t other_probes;       /* probes answered when it became unknown before */
    int64_t window_from_ms;      /* the receiver remembers the key since then; 0: it has not seen it */
    int64_t prior_sent_ms,
        prior_window_ms;       /* last_sent_ms and window_from_ms before the current attempt, in case that never left */
    int64_t settled_ms;        /* when the last attempt ended: no byte of it can have left later */
    int64_t unknown_ms;        /* probes ask since then */
    int64_t probed_ms;         /* when the last probe answered */
    int64_t round_ms;          /* when this round of attempts began */
    int64_t changed_ms;        /* when the last record about it was made, and with it due_ms */
    enum effect effect;        /* the class it is under, frozen when it began */
    uint32_t tool_version;     /* the version of the last attempt; 0: there was none, or its step has the tool */
    int64_t call_timeout_ms;   /* the longest of its attempts: a call may be out for so long after last_sent_ms */
    uint32_t duplicates;       /* emissions that began nothing, in all */
    int64_t cost_micros;       /* booked; reserved while it is open */
    struct slice result_error; /* completed, and its result could not be made: what uses it fails */
    struct slice cost_unknown; /* completed, and nobody knows what it cost: the budget takes no call that costs */
    struct slice answer; /* JSON: what the receiver said last that was no success; SLICE_NONE: nothing that is kept */
    uint32_t answer_attempt;        /* the attempt that got it, or that was asked about */
    const struct case_round *asked; /* the last time a person was asked about it; NULL: never under this key */
    struct room room;               /* the room for the result of a read that agents call again and again */
    struct room answer_room;
};

/* Calls of which a byte may have left: what people and clients are shown as `attempts`. */
static inline uint32_t operation_calls(const struct operation *operation)
{
    return operation->attempts - operation->never_left;
}

struct kept_signal { /* arrived before a step waited for it, or was taken by one */
    struct slice name, payload, id /* SLICE_NONE: its sender gave none */;
    struct digest digest; /* the digest of the payload, canonical: to tell a repeat from another */
    bool taken;
    struct kept_signal *next; /* in order of arrival */
};

struct lock { /* in the order in which they are taken */
    struct slice key;
    bool fails; /* when it is taken by another saga */
    bool taken;
};

struct bypass { /* an operator's signature for one more execution of an operation */
    struct slice actor, note;
    struct digest fingerprint;
    int64_t expires_ms;
};

enum plan_state {               /* the state of a step in the undo plan */
                  PLAN_NONE,    /* the step is not in the plan: there is nothing to undo */
                  PLAN_VERDICT, /* nobody knows whether it took effect: waits for a person */
                  PLAN_READY,   /* the step is undone when what came after it is */
                  PLAN_ACTIVE,
                  PLAN_DONE,
                  PLAN_FAILED, /* given up: waits for a person */
                  PLAN_WAIVED, /* left standing, a debt */
                  PLAN_DROPPED /* a person said it never happened */
};

struct step {
    struct operation forward;
    struct operation *undo; /* NULL: there was none, as of most; read it by step_undo() */
    struct slice undo_args, undo_error;
    enum plan_state plan;
    uint32_t start_order; /* 1 for the first step that began; 0 for one that did not */
    int64_t started_ms;
    /* members of a call in an open saga or a run */
    const struct bypass *bypass;     /* NULL: there is none, or it was used */
    struct op_key earlier_key;       /* the key of the operation that this one is another execution of; nil: none */
    uint64_t begun_seq, settled_seq; /* what was settled before another began comes before it in the order of undoing */
    struct slice item;               /* an element of for_each: what it is for */
    /* members of a group */
    uint32_t first, count;       /* the members of the group, from step.opened on */
    uint32_t begun, over;        /* so many of them are: elements begin in order */
    enum saga_phase group_phase; /* the phase of a child that is undone on its own; PHASE_FORWARD else */
    uint32_t failing_step;       /* then: what has failed in it */
    /* counts of itself and, where it is a group, of all that belongs to it */
    uint32_t undo_count, undo_left, undo_waived; /* in an undo plan, ever; not over there; left standing */
    uint32_t undo_active; /* 1: it is being undone; of a child: so many of its units are, see undo_unit() */
    uint64_t approval;    /* STEP_APPROVE: its number */
    struct slice undone_by, undone_note;   /* who undid its effect by hand */
    struct slice decided_by, decided_note; /* who decided it, and why, from approval.decided on */
};

extern const struct operation operation_none; /* OP_NONE: no record of it yet */

static inline const struct operation *step_undo(const struct step *step)
{
    return step->undo ? step->undo : &operation_none;
}

struct escalation {
    uint64_t number; /* 0: none open */
    uint32_t step;   /* STEP_NONE for the saga as a whole */
    enum direction direction;
    struct slice reason, evidence;
    struct slice raised_by, raised_note; /* the person who had it asked before anything else did */
    struct slice asked_by, asked_note;   /* the person who had it probed again, until the answer is there */
    int64_t opened_ms;
};

struct bulk_done { /* a change by an item of a bulk job that stands in the log */
    struct slice id;
    const struct bulk_done *before;
};

struct hold_set;

struct saga {
    struct saga_id id;
    const struct definition *definition; /* borrowed; outlives the saga */
    struct arena *arena;                 /* what the state keeps; NULL in a copy, which borrows instead */
    enum saga_phase phase;
    enum saga_status end;  /* with PHASE_ENDED */
    uint64_t seq;          /* the number of the last record applied; 0: not started */
    int64_t alone_from_ms; /* not of the log: since when nobody but the engine that decides can have sent for it, by its
                              clock */
    const struct hold_set *holds; /* not of the log: what people hold now, for whoever is shown it; NULL: nothing */
    struct slice namespace, business_id, tags, input, output;
    struct trace_context trace; /* the trace of the start; none where the start did not say, or traces are not sent */
    int64_t created_ms, updated_ms, ended_ms, deadline_ms /* 0: none or over */;
    int64_t active_ms;                           /* a run's last record other than run.rested was made then */
    struct slice failing_reason, failing_detail; /* why, from PHASE_FAILING on; completed: why output or then failed */
    struct slice failing_by, failing_note;       /* who said so, where a person or an agent did */
    uint32_t failing_step;
    struct step *steps; /* definition->step_count of them */
    uint32_t step_room; /* so many fit */
    uint32_t started_count;
    const uint32_t
        *plan; /* steps in order of undoing; before PHASE_UNDO those of children that are undone on their own */
    uint32_t plan_count;
    uint32_t undo_active; /* units of the saga that are being undone; children that are undone on their own are none */
    struct escalation escalation;   /* the open one: there is one at most */
    const struct case_round *asked; /* the last time a person was asked about the saga as a whole */
    uint32_t escalation_count;
    bool escalate_on_timeout; /* the way of an open saga when its deadline has passed */
    bool signals_borrowed;    /* a copy borrows the signals until it changes them */
    bool locks_wanted;        /* lock.wanted is in the log */

    /* open sagas and runs; the budget of defined ones too */
    struct slice run;     /* the name that the key is derived from: the saga's id, or what the caller named */
    struct budget budget; /* limits, -1: none */
    struct budget used;   /* calls begun, emissions, money booked and reserved */
    struct slice paused;  /* why; SLICE_NONE: it is not */
    struct slice paused_by, paused_note; /* then: by whom, and what they said; SLICE_NONE: a loop guard's */
    int64_t paused_ms;                   /* the saga is paused since then; the deadline stands still meanwhile */
    int64_t held_ms;                     /* a hold keeps a call since then, and the clocks stand; 0: none does */
    int64_t held_before_ms;              /* how long holds did that before */
    struct slice conversation_turn;
    struct loop_guard *loop;           /* NULL: a defined saga, which has none */
    struct emissions *emissions;       /* the same */
    struct arena *scratch;             /* a copy's scratch: what grows in it lies here */
    const struct bulk_done *bulk_done; /* the newest; NULL: no bulk job has changed it */

    /* defined sagas */
    struct kept_signal *signals;        /* SIGNALS_MAX at most that are not taken */
    uint32_t signal_count, signal_kept; /* in all; not taken */
    const struct lock *locks;           /* the locks from lock.wanted on, sorted; lock_taken of them are ours */
    uint32_t lock_count, lock_taken;
    struct slice followers; /* JSON array; SLICE_NONE: none */
};

#define SIGNALS_MAX 1000u
#define SIGNAL_BYTES_MAX ((size_t)16 << 20) /* the bytes of all payloads that are kept */
#define SIGNAL_IDS_MAX 10000u               /* signals of one saga in all */

/* The steps are calls of an agent: failures are the agent's to judge, nothing starts by itself. */
bool saga_is_open(const struct saga *saga); /* SAGA_OPEN or SAGA_RUN */
/* The terminal operation that seals an open saga, or STEP_NONE. */
uint32_t saga_sealed_by(const struct saga *saga);
/* Is anything of it pending, in flight, retrying, probed, or unknown? */
bool saga_is_unsettled(const struct saga *saga);
/* The generation of one more operation of this identity: higher than all there ever were. Names as in the key. */
uint32_t saga_next_generation(const struct saga *saga, struct slice step, struct slice tool, struct slice scope);
uint32_t saga_find_key(const struct saga *saga, const struct op_key *key,
                       enum direction *direction); /* STEP_NONE: none */
/* Does the record of this call answer no repeats any more, by the `ttl` of its tool? Its arguments and result are then
 * not shown either. */
bool operation_has_expired(const struct saga *saga, uint32_t step, int64_t now_ms);

/* When the same call again is worth a new attempt, after it has failed: an instant. 0: its failure is final, and a
 * repeat gets that. */
int64_t saga_call_again_ms(const struct saga *saga, uint32_t step);

#define BUSINESS_ID_BYTES_MAX 256 /* the bytes of the id that whoever starts a saga gives it; at least one */
#define CALL_STEP_BYTES_MAX 128
/* May an agent name a step like this? */
bool call_step_is_good(struct slice name);

void saga_init(struct saga *saga, struct arena *arena, struct saga_id id, const struct definition *definition);
/*
 * A copy to try records on: what a turn would lead to, before it is durable. It borrows from `saga`, and from the
 * records it is given; it lies in the arena.
 */
struct saga *saga_copy(const struct saga *saga, struct arena *arena);
enum saga_status saga_status(const struct saga *saga);
bool saga_did_bulk(const struct saga *saga, struct slice id); /* has the item of this id changed it? */
/* The status of a group: `running` while it is open; where it is undone, with its saga or on its own, `compensating`
 * until nothing in it is left to undo, then `compensated`, or `compensation_failed` where an effect in it was left
 * standing; a child that was undone on its own is `failed` in the end. What was not begun stays `pending`. */
enum step_status saga_step_status(const struct saga *saga, uint32_t step);
enum took_effect saga_took_effect(const struct saga *saga, uint32_t step);
/* Does the effect of this step stand, or may it, although its saga has ended abandoned? */
bool saga_has_debt(const struct saga *saga, uint32_t step);
bool saga_debt_in_doubt(const struct saga *saga, uint32_t step); /* nobody knows whether it took effect */
uint32_t saga_debt_count(const struct saga *saga);
/* The `cost_micros` was computed from the arguments, and it is not known whether the call has happened. */
bool operation_cost_is_estimated(const struct saga *saga, uint32_t step, enum direction direction);
/* A `cost_micros` of 0 is a cost where the tool says so of these arguments, or of what has happened. Otherwise 0 only
 * means that nothing was booked. */
bool operation_cost_is_known(const struct saga *saga, uint32_t step, enum direction direction);
bool saga_is_sound(const struct saga *saga); /* the invariants that one saga's state can show */

/* --- inputs --- */

enum saga_input_type {
    SAGA_INPUT_START,
    SAGA_INPUT_SETTLED,   /* a call ended */
    SAGA_INPUT_PROBED,    /* a probe answered */
    SAGA_INPUT_EVALUATED, /* what WANT_EVALUATE asked for */
    SAGA_INPUT_TIMER,     /* the time of a WANT_TIMER has come */
    SAGA_INPUT_ADMITTED,  /* what WANT_ADMIT asked for */
    SAGA_INPUT_ABORT,
    SAGA_INPUT_OPERATOR,
    SAGA_INPUT_ESCALATE, /* a person is to be asked now */
    SAGA_INPUT_REMARK,   /* a remark about a case; it changes no saga */
    SAGA_INPUT_CALL,     /* an agent calls a tool, in an open saga or a run */
    SAGA_INPUT_COMPLETE, /* an open saga ends well */
    SAGA_INPUT_BYPASS,
    SAGA_INPUT_MEND,  /* a person has it go on with another version of a tool */
    SAGA_INPUT_RERUN, /* a person wants it once more as a saga of its own: may that be? */
    SAGA_INPUT_COST,  /* a person says what an operation cost */
    SAGA_INPUT_RESUME,
    SAGA_INPUT_PAUSE,
    SAGA_INPUT_SIGNAL,
    SAGA_INPUT_DECISION, /* a person approves, or refuses */
    SAGA_INPUT_LOCKED    /* what WANT_LOCK asked for */
};

enum saga_timer {
    SAGA_TIMER_DEADLINE,
    SAGA_TIMER_REST,
    SAGA_TIMER_HOLD /* a call began to wait for a hold, or may go on */
};

enum admission { /* what the guards and the precheck said before an intent */
                 ADMISSION_GRANTED,
                 ADMISSION_REFUSED, /* an agent's call: budget, rate, concurrency, breaker. Work that the engine drives
                                       waits instead, but for an exhausted budget */
                 ADMISSION_DONE,    /* the precheck: the wanted state holds already */
                 ADMISSION_BLOCKED, /* the precheck: it must not be called, and why */
                 ADMISSION_UNASKED  /* the precheck could not be asked: tried again like a call that never left */
};

enum operator_action { /* what a person may do about an escalation */
                       OPERATOR_RETRY,
                       OPERATOR_PROBE,
                       OPERATOR_RESOLVE,
                       OPERATOR_WAIVE,
                       OPERATOR_SKIP,
                       OPERATOR_COMPENSATE,
                       OPERATOR_ABANDON,
                       OPERATOR_ACTION_COUNT
};
const char *operator_action_name(enum operator_action action);
bool operator_action_parse(struct slice name, enum operator_action *out);

enum evaluation {
    EVALUATE_ARGS,   /* `when` of a step where it is a program, and if that holds what saga_main_template() says and
                        `scope` */
    EVALUATE_OUTPUT, /* the output of the saga, with its followers; or of a group that is a child */
    EVALUATE_UNDO,   /* `with` of a step's compensator, whose outcome nobody knows: `.result` is what the step has, else
                        null */
    EVALUATE_LOCKS   /* the keys of locks: a JSON array of texts, in the order of the definition */
};

/* The mark of an input that an item of a bulk job asks for. Repeated under its id it changes nothing a second time. */
struct bulk_act {
    struct slice id;   /* "JOB/ITEM"; SLICE_NONE: no bulk job asks */
    struct op_key key; /* the operation that the item was frozen with; nil: none */
    uint32_t attempts; /* the calls then, as people are shown them: where they differ it is refused with ERR_DECIDED */
};

struct saga_input { /* borrowed during saga_decide() */
    enum saga_input_type type;
    struct bulk_act bulk;
    int64_t now_ms;                          /* wall clock of this engine, UTC; the core never asks for it */
    uint64_t escalation_number;              /* the number for the escalation that this decision may open */
    uint64_t approval_number, number_stride; /* the number of the first approval that it opens, the way to the next */
    size_t payload_bytes_max;     /* the arguments of a call, and the input of a child or follower; 0: unbounded */
    const struct hold_set *holds; /* in force now (hold.h); NULL: there are none */
    /* keys digests over payloads that have sensitive members and are shown to whoever may not see these; NULL: plain */
    const struct digest *digest_key;
    union {
        struct {
            struct slice namespace, business_id, tags, input;
            struct slice key; /* the Idempotency-Key of the request: the business id itself where no other was given;
                                 SLICE_NONE: none */
            /* members of an open saga */
            int64_t deadline_ms; /* an instant; 0: none */
            struct slice budget, loop,
                on_timeout;             /* JSON, JSON, text, checked by whoever took them; SLICE_NONE: not given */
            struct trace_context trace; /* the trace that is kept */
        } start;
        struct { /* SETTLED and PROBED */
            uint32_t step;
            enum direction direction;
            uint32_t attempt;       /* for PROBED: the number of the want */
            struct outcome outcome; /* never OUTCOME_ABSENT for SETTLED */
            struct slice undo_args,
                undo_error;            /* with a completed forward operation that has a compensator: rendered outside */
            int64_t cost_micros;       /* with a completed one whose tool has `cost` */
            struct slice cost_unknown; /* instead: why it is not known */
            struct slice result_error; /* with a completed one: why its result could not be made */
        } settled;
        struct {
            uint32_t step;
            enum admission admission;
            struct slice error, detail; /* REFUSED: "budget-exhausted" "rate-limited" "concurrency-limited"
                                           "breaker-open"; BLOCKED: the reason is the detail */
            int64_t retry_after_ms;
            struct slice result; /* DONE: JSON */
        } admitted;
        struct {
            enum evaluation what;
            uint32_t step;
            bool failed;  /* `error` says why */
            bool skipped; /* EVALUATE_ARGS: the condition of the step does not hold, and nothing else was evaluated */
            struct slice value;     /* rendered JSON: the arguments or the output */
            struct slice scope;     /* text */
            struct slice followers; /* EVALUATE_OUTPUT of a saga with `then`: JSON array of {saga, input, business_id
                                       (text or null)} */
            bool has_effect;        /* EVALUATE_ARGS of a conditional tool whose condition is a program */
            enum effect effect;
            struct slice error;
        } evaluated;
        struct {
            uint32_t step; /* STEP_NONE: one of the saga itself */
            enum saga_timer timer;
            enum direction direction;
        } timer;
        struct {
            struct slice actor, note;
        } abort;
        struct {
            struct slice actor, note;
        } escalate;
        struct { /* a remark: somebody looks at a case, is to answer it, or comments it */
            uint64_t escalation;
            struct slice to;  /* who is to answer the case; empty: nobody in particular */
            int64_t until_ms; /* the acknowledgement ends then; 0: when the case is resolved */
            struct slice id;  /* the Idempotency-Key; SLICE_NONE: none */
            struct slice actor, note;
        } remark;
        struct {
            enum operator_action action;
            uint64_t escalation;
            uint64_t round;       /* the round of the case, that the person has seen; 0: not said */
            struct slice request; /* the Idempotency-Key; SLICE_NONE: none */
            struct op_key key;   /* OPERATOR_RESOLVE of an operation, whether or not a person is asked about it; nil: of
                                    the escalation */
            bool happened;       /* OPERATOR_RESOLVE */
            bool undone;         /* OPERATOR_RESOLVE: it happened, and somebody has undone it by hand */
            bool again;          /* OPERATOR_RESOLVE as not happened: then one more round under the same key */
            bool accept_double;  /* OPERATOR_RETRY of a `once` whose outcome is unknown */
            struct slice result; /* JSON, OPERATOR_RESOLVE as happened; SLICE_NONE is null */
            struct slice undo_args, undo_error; /* rendered outside from that result, where there is a compensator */
            struct slice args;                  /* JSON, OPERATOR_RETRY with changed arguments */
            struct slice actor, note;
        } verdict; /* the word of a person, asked or not */
        struct {
            struct slice namespace, run;    /* the name of the run whose first call this may be */
            struct slice step;              /* SLICE_NONE: implicit, one logical step a tool and scope */
            const struct tool *tool, *undo; /* newest versions; undo: of its compensator, NULL: none */
            enum effect effect;             /* the effect that these arguments have */
            struct slice args;              /* JSON */
            struct slice scope, emission, conversation_turn, actor;
            /* Why the newest version cannot be called like this (its schema, nothing that undoes it); ERR_OK: it can. A
             * repeat is answered all the same: only what would be sent is refused with this. */
            enum err_code unfit;
            struct slice unfit_message, unfit_hint;
        } call;
        struct {
            struct slice output; /* JSON or none */
            struct slice actor;
        } complete;
        struct {
            struct op_key key;
            struct slice actor, note;
        } bypass;
        struct {
            struct op_key key;
            int64_t micros; /* 0 to COST_MICROS_MAX */
            struct slice actor, note;
        } cost;
        struct {
            struct slice tool;
            uint32_t version;
            bool accept_double; /* another receiver may be told what the one before may have done */
            struct slice actor, note;
        } mend;
        struct {
            struct slice id;              /* the signal's Idempotency-Key */
            uint32_t version;             /* the version of its definition; 0: the newest */
            struct slice accept_standing; /* JSON array of steps that may stand; SLICE_NONE: none */
            struct slice actor, note;
        } rerun;
        struct {
            struct slice actor, note;
        } resume;
        struct {
            struct slice actor, note;
        } pause;
        struct {
            struct slice name, payload /* JSON */, id /* the Idempotency-Key or none */, actor;
        } signal;
        struct {
            uint64_t approval;
            bool approve;
            enum role role;
            struct slice hash; /* hex; SLICE_NONE: not given */
            struct slice actor, note;
            struct slice started_by; /* who started the saga; SLICE_NONE: nobody knows */
        } decision;
        struct {
            struct slice key;
            bool refused; /* it is taken, and the saga does not wait */
        } locked;
    };
};

/*
 * What the input means, as records to make durable. None is a valid answer: a duplicate, a late one, a timer that lost
 * its point. Records carry seq and at_ms. The state is not changed; the arena is the turn's.
 *
 * ERR_OK, or the reason why a person's input is refused (ABORT, OPERATOR, START: ERR_CONFLICT, ERR_DECIDED, ERR_ENDED,
 * ERR_PAST_RETURN, ERR_INVALID, ERR_FORBIDDEN...), with a sentence; then there are no records.
 */
MUST_USE enum err_code saga_decide(const struct saga *saga, const struct saga_input *input, struct arena *turn,
                                   struct records *out, struct err *err);

/*
 * Hears of each record of a decision, before and after it is applied to the next state. The record stays where it is
 * until the next one is told. What was told is void when the decision is refused in the end.
 */
struct witness {
    void (*before)(struct witness *witness, const struct saga *next, const struct record *record);
    void (*after)(struct witness *witness, const struct saga *next, const struct record *record);
};

struct decision {
    struct witness *witness; /* in: who hears of the records; NULL: nobody */
    struct records records;  /* out: what saga_decide() gives */
    struct saga *next;       /* out: the state with them, a saga_copy() in the turn's arena; NULL: there are none */
};

/* saga_decide(), which also hands out the state that it has worked on, so that no record has to be folded again. */
MUST_USE enum err_code saga_decide_next(const struct saga *saga, const struct saga_input *input, struct arena *turn,
                                        struct decision *decision, struct err *err);

/* Folds one durable record; copies what the state keeps. The caller, or whoever made the record, has checked it with
 * record_check(); builds with invariants assert that. */
void saga_apply(struct saga *saga, const struct record *record);

/*
 * Makes `next`, which a decision on this state has handed out, the state, when its records are durable. The same as
 * saga_apply() with each of them, but nothing is folded again. Copies what the state keeps, and uses up `next`. The
 * state has not changed since the decision, and what `next` borrows is still there.
 */
void saga_become(struct saga *saga, struct saga *next, const struct records *records);

/* Does this record make sense in this state? Asked of what was decided before it is appended, and of what was read. */
MUST_USE bool record_check(const struct saga *saga, const struct record *record, struct err *err);

/* --- wants --- */

enum want_type {
    WANT_ADMIT, /* at due_ms ask guards and precheck whether attempt `number` may leave, and feed SAGA_INPUT_ADMITTED;
                   nothing was sent yet */
    WANT_CALL,  /* carry out attempt `number` of the operation: its intent is durable */
    WANT_PROBE, /* ask, at due_ms, whether the operation happened */
    WANT_TIMER, /* at due_ms feed SAGA_INPUT_TIMER: a retry, the second commit of a pending operation, a compensation
                   that gives up, the deadline, what a full turn left over */
    WANT_EVALUATE, /* evaluate the programs of a template and feed SAGA_INPUT_EVALUATED */
    WANT_LOCK      /* take saga->locks[number], which may take long, and feed SAGA_INPUT_LOCKED */
};

struct want {
    enum want_type type;
    uint32_t step; /* STEP_NONE: the saga's own (deadline, output) */
    enum direction direction;
    uint32_t number; /* attempt; probe number; enum evaluation; of a timer of the saga enum saga_timer */
    int64_t due_ms;  /* 0: now */
};

struct wants {
    struct want *items; /* sorted by type, step, direction, number, due: a comparison is one merge */
    size_t count, capacity;
};

void saga_wants(const struct saga *saga, struct arena *turn, struct wants *out);
int want_compare(const struct want *a, const struct want *b);

/* --- for whoever performs the wants --- */

/* The tool an operation of this step calls: the step's own, or its compensator. */
const struct tool *saga_tool(const struct saga *saga, uint32_t step, enum direction direction);
/* What expressions may see: those of this step, or of the saga itself (STEP_NONE). For EVALUATE_OUTPUT of a child see
 * saga_inner_context(). `steps` arrays lie in the arena. The rest of the context (args, result, response, key) is the
 * caller's. */
struct expression_context saga_expression_context(const struct saga *saga, uint32_t step, struct arena *arena);
/* What the `output` of a child sees, whose group is `step`. STEP_NONE: the saga's. */
struct expression_context saga_inner_context(const struct saga *saga, uint32_t step, struct arena *arena);
/* What a step is given, by its kind: `for_each`, `with`, `sleep` or `show`. May be unset. */
const struct template *saga_main_template(const struct saga *saga, uint32_t step);
/* The `output` of the saga (STEP_NONE) or of a child. */
const struct template *saga_output_template(const struct saga *saga, uint32_t step);
/* When the saga may be left alone until: the smallest due_ms of its wants, INT64_MAX where only the outside can move
 * it; 0: it may not. */
int64_t saga_rests_until(const struct saga *saga, struct arena *arena);
/* The last time a person was asked about this operation, or about the saga (STEP_NONE); NULL: never. */
const struct case_round *saga_asked(const struct saga *saga, uint32_t step, enum direction direction);
uint32_t saga_case_round(const struct saga *saga); /* the round of the open escalation; 0: none is open */
/* Which verbs the open escalation allows, as a bit set of enum operator_action. */
unsigned saga_escalation_actions(const struct saga *saga);
/* What a person may say of its operation with OPERATOR_RESOLVE, as a bit set. A call or a probe that is out, which a
 * verdict has to wait for, forbids nothing. */
enum case_verdict { CASE_HAPPENED, CASE_NOT_HAPPENED, CASE_UNDONE, CASE_VERDICT_COUNT };
const char *case_verdict_name(enum case_verdict verdict);
unsigned saga_escalation_verdicts(const struct saga *saga);
const char *operator_action_does(const struct saga *saga,
                                 enum operator_action action); /* one sentence: what it would do here */

/* --- for people --- */

/* The saga as `GET /v1/sagas/{id}` answers it. */
void saga_write_json(const struct saga *saga, struct buffer *out);

struct breaker_wait { /* a call that begins when the breaker of its tool closes; no log has it */
    uint32_t step;
    enum direction direction;
    struct slice tool, endpoint; /* the endpoint is empty where it is not known beforehand */
    int64_t since_ms, until_ms;  /* 0: not known; no time closes it */
    struct slice opened_by;      /* JSON: the person who opened it, when and why; SLICE_NONE: failures did */
    const char *closes;          /* "person", "test" or "call" */
};
struct breaker_waits {
    const struct breaker_wait *items;
    size_t count;
};
void saga_write_json_waiting(const struct saga *saga, const struct breaker_waits *waits, struct buffer *out);
/* An operation as `/v1/operations` answers it. */
void saga_write_operation(const struct saga *saga, uint32_t step, enum direction direction, struct buffer *out);
/* The same without its arguments and its result: both are null. */
void saga_write_operation_bare(const struct saga *saga, uint32_t step, struct buffer *out);
/* The same as of `now_ms`: what has expired until then has lost its arguments and result, whether or not a record says
 * so. */
void saga_write_operation_at(const struct saga *saga, uint32_t step, enum direction direction, int64_t now_ms,
                             struct buffer *out);
/* An approval as `/v1/approvals` answers it. */
void saga_write_approval(const struct saga *saga, uint32_t step, struct buffer *out);
/* Member of what the next two write that nobody is shown: [{round, request}], under which Idempotency-Key a round was
 * answered. */
#define CASE_REQUESTS "requests"
/* The open escalation as `/v1/escalations` answers it: evidence, and what each verb would do. */
void saga_write_escalation(const struct saga *saga, struct buffer *out);
/* The same as it will be answered once `resolved`, a record escalation.resolved that fits this state, is durable. */
void saga_write_escalation_resolved(const struct saga *saga, const struct record *resolved, struct buffer *out);

#endif
