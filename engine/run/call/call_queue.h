/*
 * Calls that wait for a place among --calls-max.
 *
 * In each queue a tool has a line of its own, first come, first served; the lines take turns. So the slow calls of one
 * tool hold up its own: the next call of another tool waits until one place is free.
 */
#ifndef SAGAD_RUN_CALL_CALL_QUEUE_H
#define SAGAD_RUN_CALL_CALL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct activity;
struct engine;
struct shard;

/*
 * The queues in the order in which they are served. What was begun ends before more begins, so that under a load those
 * who wait have done nothing yet that would have to be undone; but now and then CALL_QUEUE_FIRST goes before
 * CALL_QUEUE_BEGUN.
 */
enum call_queue_kind {
    CALL_QUEUE_UNDO,  /* compensations, and before them calls to whose intent a place was promised */
    CALL_QUEUE_BEGUN, /* calls of sagas of which something has settled */
    CALL_QUEUE_FIRST, /* calls of sagas that begin */
    CALL_QUEUE_COUNT
};

struct call_line {         /* the calls of one tool in one queue */
    struct list_link link; /* among the lines of its queue while somebody stands in it */
    struct list waiting;
};

struct calls; /* an engine's: queues, and places */

struct calls *calls_new(struct engine *engine);
void calls_free(struct calls *calls);
void calls_stop(struct engine *engine); /* nothing is run by a timer any more */

/* The activity has a place from when its settings are rendered until its answer has come, or it is not sent. */
void call_place_take(struct activity *activity, bool is_exec);
void call_place_give_back(struct activity *activity);
/* What was promised to an intent is its call's, which goes to the front of all queues in this same turn; or anybody's,
 * where there is none. Nothing where nothing was promised. */
void call_promise_give_back(struct activity *activity);
uint32_t calls_under_way(const struct engine *engine);
bool calls_are_full(const struct engine *engine); /* every place is taken, or promised */

void call_lines_init(struct call_line lines[CALL_QUEUE_COUNT]);

void call_queue_push(struct activity *activity);
void call_queue_leave(struct activity *activity); /* it waits no more; nothing where it did not */
void call_queue_run(struct engine *engine);       /* whoever may leave does */
void call_queue_run_soon(struct engine *engine); /* the same, in another turn of the loop; nothing where nobody waits */
void call_queue_return(struct engine *engine);   /* draining: what waits was never sent, and the log will say so */
void call_queue_return_shard(struct shard *shard);      /* the same of a shard that is being given */
size_t call_queue_waiting(const struct engine *engine); /* calls in all queues */
size_t call_queue_count(const struct engine *engine, enum call_queue_kind kind);
/* The longest wait among the calls that stand first in their line and are held up by nothing but places; 0: there is
 * none, as far as is looked. */
int64_t call_queue_waited_ms(const struct engine *engine, enum call_queue_kind kind);
/* The intent of what may never be sent twice is made durable when the call can leave at once: a crash while it waits
 * is then known as not sent. Until then the activity that leads to the intent (WANT_TIMER, WANT_ADMIT) waits in the
 * queue in the place of the call. */
bool call_queue_holds_intent(const struct activity *activity);

#endif
