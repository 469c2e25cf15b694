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

/* The act that the work is; the caller adds what it knows. In the work's arena. NULL: the work is nobody's act. */
struct person_act *act_new(struct work *work, const char *verb, const char *kind, struct slice target,
                           struct slice note);
/* The same of a verb, by its row and its members: work->act. */
void act_of_change(struct work *work);
/* As the requests of the store take it. SLICE_NONE without an act. */
struct slice act_of_work(struct work *work);

/* The refusals that are not written yet, and the removal of old acts. */
struct acts *acts_new(struct engine *engine);
void acts_stop(struct engine *engine); /* the engine leaves: what was counted is written now */
void acts_free(struct acts *acts);     /* the store has closed */

#endif
