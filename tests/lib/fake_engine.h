/*
 * The engine's door (run/engine.h) without an engine: sagas in memory that end when the test says so. For tests of the
 * API, which then need neither a database nor time.
 *
 * Sagas named "quick" end completed in the turn of the loop in which they were started; "slow" ones wait for
 * fake_engine_end(); "stuck" ones are escalated at once; "tree" ones have steps of every kind, and are like slow ones.
 * Any other name is not registered. Each waits for the signal "paid".
 *
 * Of calls, "t.one" and "t.read" complete at once with their arguments as the result, "t.slow" when the test says so,
 * and "as.NAME" is refused with the error of that name (as.in-flight, as.loop-detected, ...). The same operation again
 * is a duplicate; with other arguments it is ERR_DRIFT.
 */
#ifndef SAGAD_TESTS_FAKE_ENGINE_H
#define SAGAD_TESTS_FAKE_ENGINE_H

#include "run/engine.h"

struct engine *fake_engine_new(struct loop *loop);
void fake_engine_free(struct engine *engine);
void fake_engine_end(struct engine *engine, struct saga_id id); /* completes a slow saga */
void fake_engine_end_all(struct engine *engine);                /* slow calls too */
void fake_engine_set_away(struct engine *engine,
                          bool away); /* every request then ends with ERR_STORE, and it is not ready */
void fake_engine_set_busy(struct engine *engine, bool busy); /* nothing new is taken in */
size_t fake_engine_waiting(const struct engine *engine);     /* requests that hold their answer */
size_t fake_engine_cancelled(const struct engine *engine);   /* engine_cancel() calls so far */
size_t fake_engine_watches(const struct engine *engine);

#endif
