/*
 * The engine's door (run/engine.h) without an engine: sagas live in memory and end when the test says so. Tests of the
 * API use it and need neither a database nor time.
 *
 * Sagas named "quick" complete in the turn of the loop in which they start. "slow" ones wait for fake_engine_end().
 * "stuck" ones are escalated at once. "tree" ones have steps of every kind, and otherwise are like slow ones. Any other
 * name is not registered. Each saga waits for the signal "paid".
 *
 * The calls "t.one" and "t.read" complete at once, with their arguments as the result. "t.slow" completes when the test
 * says so. "as.NAME" is refused with the error of that name (as.in-flight, as.loop-detected, ...). A repeat of an
 * operation is a duplicate; with other arguments it is ERR_DRIFT.
 */
#ifndef SAGAD_TESTS_FAKE_ENGINE_H
#define SAGAD_TESTS_FAKE_ENGINE_H

#include "run/engine.h"

struct engine *fake_engine_new(struct loop *loop);
void fake_engine_free(struct engine *engine);
void fake_engine_end(struct engine *engine, struct saga_id id); /* completes a slow saga */
void fake_engine_end_all(struct engine *engine);                /* completes all slow sagas and calls */
/* `away`: every request ends with ERR_STORE, and the engine is not ready. */
void fake_engine_set_away(struct engine *engine, bool away);
void fake_engine_set_busy(struct engine *engine, bool busy); /* busy: the engine takes no new requests */
size_t fake_engine_waiting(const struct engine *engine);     /* the number of requests that wait for their answer */
size_t fake_engine_cancelled(const struct engine *engine);   /* the number of engine_cancel() calls so far */
size_t fake_engine_watches(const struct engine *engine);

#endif
