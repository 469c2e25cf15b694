/*
 * The guards before a call: budgets, rate, concurrency, breaker, pauses; over all engines, through store/guard.h. Tools
 * that have none of them never touch PostgreSQL here.
 *
 * A call of an agent is refused when a guard says no. Work that the engine drives itself waits, and is refused for an
 * exhausted budget only; compensations always wait. What waits for a tool waits in its gate, in order, and asks again
 * in growing groups (pace.h). While PostgreSQL is away nothing is let through.
 */
#ifndef SAGAD_RUN_CALL_LIMITER_H
#define SAGAD_RUN_CALL_LIMITER_H

#include "run/call/activity.h"

struct limiter;

/* NULL with a sentence: the file is wrong. */
struct limiter *limiter_new(struct engine *engine, const char *budgets_file, struct err *err);
void limiter_free(struct limiter *limiter); /* accepts NULL */

/* For whoever compiles tools: does a budget of the settings apply, so that the tool is guarded although its definition
 * bounds nothing? */
bool limiter_budgets_apply(void *engine, struct slice namespace, struct slice tool);
/* An emission about this tool began no new operation: it counts against budgets of emissions, and nobody is asked.
 * Written a second later, together. */
void limiter_count_emission(struct engine *engine, struct slice namespace, struct slice tool);

/* activity.c: a WANT_ADMIT whose time has come, or a WANT_CALL of an undo operation: goes on in call_queue_push() or
 * activity_report(). */
void limiter_enter(struct activity *activity);
bool limiter_holds_undo(const struct activity *activity); /* this WANT_CALL has to go through limiter_enter() first */
/* Guards and precheck have nothing against it: the intent, at once or from the queue when the call can leave. */
void limiter_let_through(struct activity *activity);
/* It will not be called after all, or this attempt was never sent: what the guards granted is given back. */
void limiter_forgo(struct activity *activity);
/* A call of an engine that has certainly died: its place is free. */
void limiter_interrupted(struct activity *activity);
/* It waited so long for a place among the calls that it must ask again. */
bool limiter_is_stale(const struct activity *activity);
int64_t limiter_paused_ms(const struct activity *activity); /* the time its tool still asked to be left alone */
void limiter_hold(struct engine *engine, int64_t ms);       /* run the call queue again then */
void limiter_step(struct engine *engine, int64_t ms);       /* the clock of the day was moved ahead by so much */
void limiter_leave(struct activity *activity);              /* it ends, wherever it is */
void limiter_return(struct engine *engine);                 /* draining: calls that wait here go back */
void limiter_return_shard(struct engine *engine,
                          uint32_t shard);        /* the same for the calls of a shard that is being given */
void limiter_admitted(struct activity *activity); /* the SAGA_INPUT_ADMITTED has been decided: was it used? */

/* precheck.c, when it is done */
void limiter_admission(struct activity *activity, enum admission admission, struct slice error, struct slice detail,
                       int64_t retry_after_ms, struct slice result);
/* The read that tries a half-open breaker has an answer, or could not be made: `activity->act->outcome`. */
void limiter_status_read(struct activity *activity);

/* request/breaker.c: a person has opened or closed the breaker; other engines see it when they look next. */
void limiter_breaker_set(struct engine *engine, struct slice namespace, struct slice tool, bool is_open);

/* dispatch.c: a call or a probe is over, `activity->act->outcome` and its `cost_micros` are final. */
void limiter_settled(struct activity *activity);

/* Pure parts, for tests. */
enum call_verdict { CALL_WELL, CALL_FAILED, CALL_NO_VERDICT }; /* what a call says about its tool's health */
enum call_verdict call_verdict(const struct outcome *outcome, struct slice response);
/* Scheme, host and port of an http tool whose url is plain, else empty. */
struct slice tool_endpoint(const struct tool *tool, struct arena *arena);

#endif
