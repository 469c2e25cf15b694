/*
 * A hold that ends by its `until` is an event, hold.ended, though nobody has done anything.
 *
 *     look: tell what has ended -> the time until the next one ends -> wait, a minute at most -> look again
 *
 * Every engine looks, by the clock of PostgreSQL, and the first one tells it. So it is told once, also where engines
 * die, and a hold that ended while nobody lived is told by the next engine that starts.
 */
#ifndef SAGAD_RUN_CALL_HOLD_ENDS_H
#define SAGAD_RUN_CALL_HOLD_ENDS_H

struct engine;
struct hold_ends;

struct hold_ends *hold_ends_new(struct engine *engine);
void hold_ends_free(struct hold_ends *ends); /* accepts NULL */
void hold_ends_look(struct hold_ends *ends); /* the holds were read: the next one may end sooner than was known */
void hold_ends_stop(struct hold_ends *ends); /* draining */

#endif
