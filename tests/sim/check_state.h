/*
 * What the judge knows: sagas, their steps, and operations by key, all from the log's text and the tools' books. Only
 * check*.c use this file: check_log.c reads records, check_call.c sees what tools see, and check.c keeps the state and
 * judges the end.
 */
#ifndef SAGAD_TESTS_SIM_CHECK_STATE_H
#define SAGAD_TESTS_SIM_CHECK_STATE_H

#include "base/json.h"
#include "base/map.h"
#include "core/record/record.h"
#include "core/saga/saga.h"
#include "tests/sim/check.h"

enum judged_state { /* the state of an operation by its last record */
                    JUDGED_NEW,
                    JUDGED_PENDING,
                    JUDGED_SENT, /* the log has the intent: the call may be under way */
                    JUDGED_RETRYING,
                    JUDGED_UNKNOWN,
                    JUDGED_COMPLETED,
                    JUDGED_FAILED,
                    JUDGED_SKIPPED
};

struct judged_op { /* an intended effect */
    struct op_key key;
    struct judged_saga *saga;
    struct judged_step *step;
    bool is_undo;
    enum judged_state state;
    uint32_t intents;   /* committed */
    uint64_t first_seq; /* seq of the first intent */
    uint32_t requests, effects;
    bool may_have_left;    /* an attempt ended without the statement that no byte of it left */
    bool double_accepted;  /* a person accepts a second effect */
    bool judged_by_person; /* a person judged, and may be wrong when a request on the wire lands */
    bool waived;           /* a person leaves the effect standing */
    bool voided;           /* a tombstone stands at the service */
    bool surely_failed;    /* the engine has said that the effect did not happen */
    bool has_args;
    uint64_t args_hash;
    int64_t due_ms;             /* when the next attempt is due, or 0 */
    int64_t epoch;              /* the epoch of the last committed intent */
    int64_t intent_us;          /* when the intent was committed; 0: no call can be under way */
    int64_t ruled_out_us;       /* when a person said that nothing had happened; 0: nobody did */
    uint32_t effects_ruled_out; /* effects of requests that a person had ruled out: the person was wrong */
    struct slice tool;
    struct judged_op *next; /* the next operation of the saga, newest first */
};

struct judged_step {
    struct slice name;
    struct judged_op *forward, *undo; /* the newest */
    bool undo_refused;                /* the undo failed before it had a key: its arguments could not be made */
    bool is_waiting;
    bool is_failing; /* a child that is undone as a unit */
    int64_t wait_due_ms;
    uint64_t approval; /* number of the open approval; 0: none */
    struct slice approval_hash;
    uint64_t first_seq, ended_seq; /* seq of the first intent, and of the completion */
    uint32_t plan;                 /* number of the plan that has the step; 0: none */
    uint32_t plan_at;
    uint64_t plan_seq; /* seq at which that plan was made */
    struct judged_step *next;
};

struct judged_saga {
    struct saga_id id;
    struct slice namespace, name, business_id;
    uint64_t seq;
    int64_t epoch;
    bool is_open_kind; /* an open saga or a run */
    bool is_failing, is_planned, is_ended, is_paused, was_paused;
    enum saga_status end;
    uint64_t escalation; /* number of the open escalation; 0: none */
    struct slice escalation_step;
    bool escalation_of_undo;
    uint32_t plans;
    struct judged_step *steps;
    struct judged_op *ops;
    struct judged_turn *turns; /* of a run: the newest, see check_rest.c */
    uint64_t seen_hash;        /* hash of the answer that a client got after the end; 0: none */
    struct judged_saga *next;  /* the next saga in order of beginning */
};

struct noted { /* an answer that somebody got, which the log must hold in the end */
    enum { NOTED_START, NOTED_SIGNAL, NOTED_DECISION, NOTED_RESOLUTION } kind;
    struct saga_id saga;
    struct slice name, key;
    uint64_t number;
    bool approved;
    struct noted *next;
};

struct check {
    struct map sagas, ops, starts; /* keys: id; op key; namespace + name + business id */
    struct judged_saga *first, **last;
    struct noted *noted;
    struct map signals;   /* check_place_of_signal() of each signal.received */
    struct map kinds;     /* id of a step -> STEP_ID_SLEEPS, or STEP_ID_OTHER where any step of this id does not */
    struct map decisions; /* number of each approval.decided, escalation.resolved */
    struct map acts;      /* id of each item of a bulk job that has acted */
    struct map events;    /* type and id of each event */
    struct judged_event *last_event; /* the newest; they are in a list */
    struct slice definitions;
    struct judged_shelf *shelf; /* check_rest.c: made with its first use */
    bool has_parallel_undo, has_branches, clocks_jump, may_lose;
    uint64_t turns;
};

struct judged_op *check_op_of(struct op_key key);                /* NULL: the log has no such operation */
bool op_is_class(const struct judged_op *op, const char *class); /* class by the name of the tool: "once" of "once_3" */
bool op_stands(const struct judged_op *forward); /* the effect happened, is no read, and was not undone */

/* In check_rest.c: compares what the turn stores of a run at rest with the run's log. */
void check_rest(struct judged_saga *saga, const struct committed_turn *turn);

bool check_is_sleep(struct slice step); /* true when the step of this name sleeps in all definitions */
uint64_t check_place_of_signal(struct saga_id saga, struct slice name);

void check_bulk_act(const struct judged_saga *saga, struct slice id); /* a turn that this item asked for */
void check_bulk_end(void);

/* This record is the seq-th of its saga. */
void check_happened(const struct judged_saga *saga, uint64_t seq, struct slice record);

void check_record(struct judged_saga *saga, const struct committed_turn *turn, uint64_t seq, struct slice text);

#endif
