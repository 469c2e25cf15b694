/*
 * Acts: who changed what, written in the transaction of the change. A request of the API says on whose behalf it comes
 * (struct act_by of engine.h); the items of a bulk job, followers and schedules come on nobody's.
 *
 * Refusals are counted in memory, one row for each token and minute, and written every few seconds.
 */
#ifndef SAGAD_RUN_REQUEST_ACT_H
#define SAGAD_RUN_REQUEST_ACT_H

#include "run/request/work.h"
#include "store/acts.h"

/* Returns the act that the work is, in the work's arena; the caller adds what it knows. NULL: nobody did it. */
struct person_act *act_new(struct work *work, const char *verb, const char *kind, struct slice target,
                           struct slice note);
/* Sets work->act of a work that is a verb, from the row of the verb and the members. */
void act_of_change(struct work *work);
/* Returns the act as the requests of the store take it; SLICE_NONE without one. */
struct slice act_of_work(struct work *work);

/* The refusals that are not written yet, and the removal of old acts. */
struct acts *acts_new(struct engine *engine);
void acts_stop(struct engine *engine); /* the engine leaves: what was counted is written now */
void acts_free(struct acts *acts);     /* the store has closed */

#endif
