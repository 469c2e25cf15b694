/* How each tool fares, in the stats and for Prometheus: see health.c. */
#ifndef SAGAD_RUN_QUERY_HEALTH_H
#define SAGAD_RUN_QUERY_HEALTH_H

#include "run/call/call_queue.h"
#include "run/saga/live.h"
#include "store/figures.h"

struct health;

/* What an emission of a call got that began nothing: as in operation.duplicate, in the order of health.c. */
#define DUPLICATE_DECISIONS 11

struct tool_health {
    struct slice namespace, name;
    uint64_t calls, retries, unknown, failed, completed;
    uint32_t exec_places; /* places among the child processes that its calls have, or were promised */
    struct call_line lines[CALL_QUEUE_COUNT]; /* the calls of the tool that wait for a place */
    uint64_t operations;                      /* keys that were new */
    uint64_t duplicates[DUPLICATE_DECISIONS];
    uint64_t drift, loop_trips, budget_refusals;
    uint64_t rate_refusals, breaker_refusals; /* agents' calls that were refused */
    uint64_t breaker_opened, pauses;          /* seen by this engine; set by limiter.c, and so is: */
    /* the state of its worst endpoint, as last told by the store: 0 closed, 1 open, 2 half open; set by limiter.c */
    int breaker_state;
    int64_t unknown_open, unknown_oldest_ms; /* scratch of a walk over the sagas in memory */
    uint64_t told[SERIES_FIGURE_COUNT];      /* series.c: of these, what stands in the table */
};

struct health *health_new(void);
void health_free(struct health *health);

/* The health of this tool; made at its first use, and kept as long as the engine. */
struct tool_health *tool_health_of(struct engine *engine, struct slice namespace, struct slice name);
/* The next one in no particular order, from `*position`, which begins at 0; NULL: no more. */
struct tool_health *tool_health_next(struct health *health, size_t *position);
/* What the records of a durable turn mean for the figures. */
void health_count(struct live *live, const struct records *records);
void health_doubts(struct live *live);  /* something of it may be unknown: it is looked at when somebody asks */
void health_forgets(struct live *live); /* nothing is, or it leaves memory */
/* It leaves memory and goes on later: what nobody knows of it still counts, until it comes back or its shard leaves. */
void health_rests(struct live *live);
void health_wakes(struct engine *engine, struct saga_id id);
void health_leaves(struct engine *engine, uint32_t shard);
/* member "tools" of the stats */
void health_write_json(struct engine *engine, struct slice namespace, struct json_writer *w);
size_t health_doubt_count(const struct engine *engine); /* sagas in memory that are looked at for the figures */

#endif
