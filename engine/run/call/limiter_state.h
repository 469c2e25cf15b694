/* What limiter.c and limiter_tell.c share. */
#ifndef SAGAD_RUN_CALL_LIMITER_STATE_H
#define SAGAD_RUN_CALL_LIMITER_STATE_H

#include "run/call/budgets.h"
#include "run/call/limiter.h"
#include "run/call/pace.h"

struct gate { /* where calls of one tool wait; made once, kept as long as the engine */
    struct limiter *limiter;
    struct tool_health *health;
    struct list waiting; /* struct admitting */
    struct timer timer;
    struct pace pace;
    int64_t rests_until_ms;  /* limiter_now_ms(): what the breaker said last; it is looked at more often than that */
    int64_t paused_until_ms; /* limiter_now_ms(): the tool asked for it, also where it is not guarded */
};

struct limiter {
    struct engine *engine;
    struct budgets budgets;
    int64_t stepped_ms;      /* limiter_step() */
    struct map gates;        /* "namespace\ntool" -> struct gate */
    int64_t paused_until_ms; /* the end of the pause, of any gate */
    struct timer hold;       /* for calls in the queue whose tool is paused */

    /* limiter_tell.c */
    struct list untold; /* the database did not answer: told again */
    struct timer again;
    size_t telling;
    struct arena counting; /* what is added to budgets with the next flush */
    struct guard_budget *counts;
    size_t count_count, count_capacity;
    struct timer flush;
};

/* The clock of gates and pauses: CLOCK_BOOTTIME, and what the clock of the day was moved ahead (request/clock.c). */
static inline int64_t limiter_now_ms(const struct limiter *limiter)
{
    return loop_boot_ms(limiter->engine->loop) + limiter->stepped_ms;
}

struct gate *limiter_gate(struct limiter *limiter, struct slice namespace, struct slice name);
/* A place is free, or the breaker has closed: those waiting ask now, a few at first. */
void gate_wake(struct gate *gate);
/* Is PostgreSQL asked? */
bool limiter_asks(const struct limiter *limiter, struct slice namespace, const struct tool *tool,
                  enum direction direction);
struct uuid limiter_holder(const struct op_key *key, uint32_t attempt);

/* limiter_tell.c */
void limiter_tell_unused(struct activity *activity); /* granted, and not called */
void limiter_tell_status(struct activity *activity, enum call_verdict verdict);
void limiter_count(struct limiter *limiter, const struct guard_budget *budgets, size_t count); /* with the next flush */
void limiter_flush(struct limiter *limiter);
void limiter_tell_fini(struct limiter *limiter);

#endif
