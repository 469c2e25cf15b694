/* How a saga's state becomes an exit code, and waiting for its end. */
#ifndef SAGACTL_SAGA_END_H
#define SAGACTL_SAGA_END_H

#include "tools/sagactl/client.h"

/* Completed 0, compensated 8, escalated 9, abandoned 1, anything else 7. */
int saga_exit_code(struct slice saga);
bool saga_has_ended(struct slice saga);                       /* or waits for a person: nothing more comes by itself */
bool saga_is_one_of(struct slice saga, const char *statuses); /* "waiting,completed" */
bool saga_statuses_are_good(const char *statuses);            /* each is a status that a saga can have */
#define SAGA_WAIT_FOREVER_MS (INT64_C(1000) * 365 * 24 * 3600)
/* Ask again, a few seconds at a time, until it has ended, has one of `statuses` (NULL: no others count), or `wait_ms`
 * is over. `saga` is in and out. */
MUST_USE int saga_await(struct ctl *ctl, struct slice id, int64_t wait_ms, const char *statuses, struct slice *saga);
int64_t now_ms(void);

#endif
