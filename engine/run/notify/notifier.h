/*
 * Delivers notifications to the receivers of the settings whose shards are ours: see receiver.h. Each receiver is on
 * its own, so that one that does not answer holds up nothing of another.
 */
#ifndef SAGAD_RUN_NOTIFY_NOTIFIER_H
#define SAGAD_RUN_NOTIFY_NOTIFIER_H

#include "run/engine_state.h"

/* Reads the file (NULL: nobody is notified). NULL, with an error: it is wrong, or a secret is missing. */
struct notifier *notifier_new(struct engine *engine, const char *path, struct err *err);
void notifier_free(struct notifier *notifier); /* accepts NULL */
void notifier_look(struct notifier *notifier); /* a shard was gained */
/* The clock of the day was moved ahead by so much: receivers rest so much shorter. Then one that rests may be tried. */
void notifier_step(struct notifier *notifier, int64_t ms);
/* When the first receiver of ours that rests is tried, by the clock of the day; 0: none rests. */
int64_t notifier_rests_until_ms(const struct notifier *notifier);
/* Draining: nothing new is sent, and what is under way is given up; the next owner of the shard sends it again. */
void notifier_stop(struct notifier *notifier);
/* Does a request use our sockets? When the last one ends, engine_check_drained() is called. */
bool notifier_sends(const struct notifier *notifier);

#endif
