/*
 * What people hold, as this engine knows it, and what waits for it here.
 *
 * A hold that is durable is in force here as soon as it is read: from then on no call begins that it is about. Nothing
 * waits by asking. A saga with a call that waits stands in a list; when holds end, those that nothing keeps any more
 * are let go, at the pace of the hold, and each asks again for what it wants.
 *
 * Every renewal of our leases brings the newest version of the holds. Where ours is older nothing is sent before the
 * newer ones are read. So a hold is in force everywhere once each engine has said so, and at the latest when a lease
 * has passed since it was made.
 */
#ifndef SAGAD_RUN_CALL_HOLDS_H
#define SAGAD_RUN_CALL_HOLDS_H

#include "core/saga/hold.h"
#include "run/call/activity.h"

struct holds;

struct holds *holds_new(struct engine *engine);
void holds_free(struct holds *holds);                     /* accepts NULL */
void holds_watch(struct holds *holds);                    /* the store is ready, for the first time: they are read, and
                                                             engine_start_leases()                    follows */
void holds_stop(struct holds *holds);                     /* draining */
void holds_renewed(struct holds *holds, int64_t version); /* the newest, by a renewal of our leases */

bool holds_are_known(const struct holds *holds); /* the holds were read once */
bool holds_are_stale(const struct holds *holds); /* newer ones have not been read: nothing may be sent */
int64_t holds_version(const struct holds *holds);
const struct hold_set *holds_in_force(const struct holds *holds); /* the items change when the loop goes on */

/* What keeps this activity from beginning; NULL: nothing. Of what no hold is about, such as a probe, nothing does. */
const struct hold *holds_on(const struct activity *activity);
/* True: it may not begin. A call whose intent is durable was returned, everything else waits until it is let go. */
bool holds_keep(struct activity *activity);
bool holds_let_go(
    const struct holds *holds);       /* sagas in memory that nothing holds any more still wait for their turn */
void holds_forget(struct live *live); /* it leaves memory */

#endif
