/* What requests about one saga share: the way to its owner (route.c), and waiting for its operations (caller.c). */
#ifndef SAGAD_RUN_REQUEST_CALLING_H
#define SAGAD_RUN_REQUEST_CALLING_H

#include "base/instant.h"
#include "run/call/rendering.h"
#include "run/request/work.h"

struct calling {
    struct saga_id saga; /* the saga as it was asked for; nil: the one of a run */
    struct effect_of_call effect;
    uint32_t step;              /* the step whose operation it waits for */
    struct faults faults;       /* faults of the arguments, in the request's arena, told in place of sending the call */
    struct trace_context trace; /* the trace of a call */
    bool duplicate, rerouted;
    int64_t busy_ms; /* nothing new is taken in now: what a refused call is told to wait; 0: it is */
    int64_t first_ms;
    /* Set: it waits until everything is settled, then this is done; give_up when its patience ends before. */
    void (*again)(struct work *work);
    void (*give_up)(struct work *work);
};

/* --- route.c --- */

/* Sets work->calling, the saga and the patience; before the other two. */
void route_prepare(struct work *work, struct saga_id saga, int64_t wait_ms);
typedef void route_function(struct work *work, uint32_t shard); /* puts it into the inbox of that shard */
/* Another engine has this shard? Then the work is on its way there by `post`, or is over: new work (it has no verb)
 * where that engine takes in none. */
bool route_elsewhere(struct work *work, uint32_t shard, route_function *post);
/* The change work->mail to the owner of work->saga, which may have to read it back. */
void route_send(struct work *work);
/* Nothing happened, and the shard has another owner: that one is asked, once. True: it is on its way. */
bool route_again(struct work *work, enum err_code code);

/* --- caller.c --- */

void caller_wait(struct work *work, struct live *live); /* ends by callers_check(), or when the patience is over */
/* For calling->step, which the live saga has: answered at once where it is settled. */
void caller_wait_for_step(struct work *work, struct live *live);
void caller_look_later(struct work *work); /* the same, when the saga is not in memory here */
/* Answers from the operation work->calling->step as it stands. False: it is not settled, and there is reason to wait.
 * `last`: answer anyway. */
bool caller_answer(struct work *work, const struct saga *saga, bool last);
bool caller_has_patience(const struct work *work);
/* The record of the operation for the answer or the problem; nothing where there is none (STEP_NONE, or no saga). */
void caller_give_operation(struct work *work, const struct saga *saga, uint32_t step);
/* Ends the work; the record given before stands beside the problem. */
void caller_refuse(struct work *work, const struct err *err, int64_t retry_after_ms);

/* --- what some verbs do besides (change.c) --- */

struct verb_extra {
    void (*send)(struct work *work);   /* the saga is known, and has not heard of it: ends in route_send() */
    bool (*ended)(struct work *work);  /* the saga has ended. True: the work goes on, or is over */
    void (*answer)(struct work *work); /* ANSWER_OWN: it is durable */
    void (*found)(struct work *work);  /* the question was read; ends the work without its saga */
};

/* operator.c */
void abort_send(struct work *work);
void verdict_send(struct work *work);
bool case_takes(struct work *work, const struct question_row *row); /* true: this is a case, and the work is its */
void bypass_answer(struct work *work);
/* debt.c */
bool debt_ended(struct work *work);
/* remark.c */
void remark_found(struct work *work);
/* signal.c */
bool signal_ended(struct work *work);
void signal_answer(struct work *work);
/* mend.c */
void mend_send(struct work *work);
/* rerun.c */
void rerun_send(struct work *work);
bool rerun_ended(struct work *work);
/* cost.c */
bool cost_ended(struct work *work);
void cost_answer(struct work *work);

/* --- call.c --- */

/* A work for an input of the inbox. NULL: it cannot be taken now, and has been answered so. */
struct work *work_of_delivery(struct engine *engine, struct engine_request *request, const struct uuid *inbox_id);

#endif
