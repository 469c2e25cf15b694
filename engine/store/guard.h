/*
 * What bounds calls over all engines, kept in PostgreSQL: rates, places (concurrency), circuit breakers, pauses that a
 * tool asked for, budgets of tools, namespaces and days. One statement before a call of a tool that has such bounds,
 * one after it; each decides under the lock of the tool's row, so that engines that race decide one after the other.
 */
#ifndef SAGAD_STORE_GUARD_H
#define SAGAD_STORE_GUARD_H

#include "store/store.h"

enum guard_verdict {
    GUARD_GRANTED,
    GUARD_RATE,
    GUARD_CONCURRENCY,
    GUARD_BREAKER,
    GUARD_PAUSED,
    GUARD_BUDGET,
    GUARD_UNPRICED /* nobody knows what an earlier call of a budget cost: nothing can be said to be left */
};

#define GUARD_BUDGETS_MAX 12 /* with and without namespace and tool, each by day, by month and for ever */

struct guard_budget {                             /* one line of the settings that matches the call */
    struct slice name;                            /* of the counter: namespace, tool and period, made by the caller */
    int64_t period_start_ms;                      /* 0: for ever */
    int64_t calls_max, emissions_max, micros_max; /* -1: unbounded */
    int64_t calls, emissions, micros;             /* to be reserved now; all budgets or none */
};

struct guard_ask {
    struct store_read read;
    struct slice namespace, tool, endpoint; /* in; the endpoint is what a breaker is about besides the tool */
    struct rate_limit rate;                 /* in */
    uint32_t concurrency;                   /* in; 0: unbounded */
    struct breaker_policy breaker;          /* in */
    int64_t place_ms;      /* in: a place, or the turn as a breaker's probe, is given back by itself after so long */
    struct uuid holder;    /* in: of this attempt: asking again for it takes nothing twice */
    bool safe_to_repeat;   /* in: this call may be the probe of a half-open breaker */
    struct uuid operation; /* in: reserves of the budgets once, however many attempts it takes */
    const struct guard_budget *budgets; /* in; GUARD_BUDGETS_MAX at most, in order of name */
    size_t budget_count;
    enum guard_verdict verdict; /* out; of all but GUARD_GRANTED nothing was taken */
    int64_t retry_after_ms;     /* out; 0: nobody can say */
    bool is_breaker_probe;      /* out */
};
void store_guard_ask(struct store *store, struct guard_ask *ask);

enum guard_charge {
    CHARGE_KEEP,
    /* nobody knows yet */ CHARGE_GIVE_BACK,
    CHARGE_SETTLE,
    CHARGE_UNPRICED /* it happened, and nobody knows what it cost: until store_guard_price() */
};
enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN };

struct guard_tell {
    struct store_read read;
    struct slice namespace, tool, endpoint;
    struct rate_limit rate;
    struct breaker_policy breaker;
    struct uuid holder, operation; /* the holder's place is given back */
    bool failed;              /* for the breaker: a transport error, a timeout, 5xx, unknown; else the tool is well */
    bool no_verdict;          /* it says nothing about the tool; a turn as breaker's probe is given back */
    bool never_called;        /* granted, but not used: no verdict, and the rate is given back too */
    int64_t pause_ms;         /* the tool asked for so long: Retry-After of a 429 */
    enum guard_charge charge; /* of what the operation reserved */
    int64_t cost_micros;      /* with CHARGE_SETTLE */
    enum breaker_state breaker_state; /* out */
    bool breaker_changed;             /* out */
};
void store_guard_tell(struct store *store, struct guard_tell *tell);

struct guard_price { /* a person says what an operation cost; nothing happens where it reserved
                      * nothing, or is settled */
    struct store_read read;
    struct slice namespace, tool;
    struct uuid operation;
    int64_t cost_micros;
    bool booked; /* out: it waited for this */
};
void store_guard_price(struct store *store, struct guard_price *price);

struct guard_count { /* adds to budgets what nobody was asked for: emissions of duplicates, undo calls */
    struct store_read read;
    const struct guard_budget *budgets; /* name, period, calls, emissions, micros; each name and period once */
    size_t budget_count;
};
/* Not done again when its answer was lost: it may be missing, never twice. */
void store_guard_count(struct store *store, struct guard_count *count);

struct guard_list { /* all rows of a namespace, for `sagactl tools` and metrics */
    struct store_read read;
    struct slice namespace; /* SLICE_NONE: all */
    struct guard_row {
        struct slice namespace, tool, endpoint;
        enum breaker_state breaker_state;
        int64_t open_until_ms, paused_until_ms; /* 0: not */
        uint32_t places_taken;
        uint64_t opened; /* how often the breaker opened */
    } * rows;
    size_t count;
};
void store_guard_list(struct store *store, struct guard_list *list);

#endif
