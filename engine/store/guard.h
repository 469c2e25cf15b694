/*
 * Guards bound calls over all engines. PostgreSQL keeps their state: rates, places (concurrency), circuit breakers,
 * pauses that a tool asked for, budgets of tools, namespaces and days. A tool with such bounds costs one statement
 * before each call and one after it. Each statement decides under the lock of the tool's row, so that engines which
 * race decide one after the other.
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
    GUARD_UNPRICED /* an earlier call of a budget has an unknown cost, so nobody knows what is left */
};

#define GUARD_BUDGETS_MAX 12 /* budgets with and without namespace and tool, each by day, by month and for ever */

struct guard_budget {        /* one line of the settings that applies to the call */
    struct slice name;       /* the name of the counter, which the caller makes of namespace, tool and period */
    int64_t period_start_ms; /* 0: for ever */
    int64_t calls_max, emissions_max, micros_max; /* -1: unbounded */
    int64_t calls, emissions, micros;             /* the amounts to reserve now, from all budgets or from none */
};

struct guard_ask {
    struct store_read read;
    struct slice namespace, tool, endpoint; /* in; each endpoint of a tool has its own breaker */
    struct rate_limit rate;                 /* in */
    uint32_t concurrency;                   /* in; 0: unbounded */
    struct breaker_policy breaker;          /* in */
    int64_t place_ms;      /* in: how long a place, or the turn as a breaker's probe, is held at most */
    struct uuid holder;    /* in: the id of this attempt; asking again with the same id takes nothing twice */
    bool safe_to_repeat;   /* in: this call may be the probe of a half-open breaker */
    struct uuid operation; /* in: an operation reserves from the budgets once, however many attempts it takes */
    const struct guard_budget *budgets; /* in; GUARD_BUDGETS_MAX at most, in order of name */
    size_t budget_count;
    enum guard_verdict verdict; /* out; only GUARD_GRANTED has taken anything */
    int64_t retry_after_ms;     /* out; 0: unknown */
    bool is_breaker_probe;      /* out */
};
void store_guard_ask(struct store *store, struct guard_ask *ask);

enum guard_charge {
    CHARGE_KEEP,
    /* the outcome is not known yet */ CHARGE_GIVE_BACK,
    CHARGE_SETTLE,
    CHARGE_UNPRICED /* it took effect at an unknown cost; store_guard_price() tells the cost later */
};
enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN };

struct guard_tell {
    struct store_read read;
    struct slice namespace, tool, endpoint;
    struct rate_limit rate;
    struct breaker_policy breaker;
    struct uuid holder, operation; /* the place of the holder becomes free */
    bool failed;       /* for the breaker: true for a transport error, a timeout, 5xx or an unknown outcome */
    bool no_verdict;   /* the call says nothing about the tool; its turn as the breaker's probe becomes free */
    bool never_called; /* the call was granted but not made: no verdict, and its share of the rate becomes free, too */
    int64_t pause_ms;  /* the pause that the tool asked for: Retry-After of a 429 */
    enum guard_charge charge;         /* what becomes of the reserved amounts */
    int64_t cost_micros;              /* with CHARGE_SETTLE */
    enum breaker_state breaker_state; /* out */
    bool breaker_changed;             /* out */
};
void store_guard_tell(struct store *store, struct guard_tell *tell);

struct guard_price { /* a person says what an operation cost; nothing happens when it reserved nothing or is settled */
    struct store_read read;
    struct slice namespace, tool;
    struct uuid operation;
    int64_t cost_micros;
    bool booked; /* out: the operation waited for this */
};
void store_guard_price(struct store *store, struct guard_price *price);

struct guard_breaker_set { /* a person opens or closes the breaker of all endpoints of a tool */
    struct store_read read;
    struct slice namespace, tool;
    struct slice open; /* who opens it, why and when, as JSON; SLICE_NONE: it is closed, and forgets its failures */
    struct slice act;  /* act_text(), written with it; SLICE_NONE: none */
};
void store_guard_breaker_set(struct store *store, struct guard_breaker_set *set);

struct guard_count { /* adds to budgets what needed no permission: emissions of duplicates, undo calls */
    struct store_read read;
    const struct guard_budget *budgets; /* name, period, calls, emissions, micros; each name and period once */
    size_t budget_count;
};
/* The store does not repeat this when the answer was lost: a count may be missing, but is never added twice. */
void store_guard_count(struct store *store, struct guard_count *count);

struct guard_list { /* all rows of a namespace, for `sagactl tools` and metrics */
    struct store_read read;
    struct slice namespace; /* SLICE_NONE: all */
    struct guard_row {
        struct slice namespace, tool, endpoint;
        enum breaker_state breaker_state;
        int64_t open_until_ms, paused_until_ms; /* 0: neither open nor paused */
        int64_t open_since_ms;                  /* when failures last opened the breaker; 0: it is closed */
        uint32_t places_taken;
        uint64_t opened;        /* how often the breaker opened */
        struct slice opened_by; /* JSON: the person who keeps it open, why and since when; SLICE_NONE: nobody does */
    } * rows;
    size_t count;
};
void store_guard_list(struct store *store, struct guard_list *list);

#endif
