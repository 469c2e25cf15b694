/* Turns the state of a saga into an exit code, and waits for the end of a saga. */
#ifndef SAGACTL_SAGA_END_H
#define SAGACTL_SAGA_END_H

#include "tools/sagactl/client.h"

/* Gives 0 for completed, 8 for compensated, 9 for escalated, 1 for abandoned, and 7 for anything else. */
int saga_exit_code(struct slice saga);
/* Gives "step pay: http-422: Your card has insufficient funds": why it is undone, or what its output lacks; empty: no
 * reason is known. */
struct slice saga_why(struct ctl *ctl, struct slice saga);
bool saga_has_ended(struct slice saga); /* the saga has ended or waits for a person: nothing more happens by itself */
bool saga_is_one_of(struct slice saga, const char *statuses); /* `statuses` is a list such as "waiting,completed" */
bool saga_statuses_are_good(const char *statuses);            /* each name is a status that a saga can have */
#define SAGA_WAIT_FOREVER_MS (INT64_C(1000) * 365 * 24 * 3600)
/* Asks again and again, a few seconds each time, until the saga has ended, has one of `statuses` (NULL: only the end
 * counts), or `wait_ms` is over. `saga` is in and out. */
MUST_USE int saga_await(struct ctl *ctl, struct slice id, int64_t wait_ms, const char *statuses, struct slice *saga);
int64_t now_ms(void);

#endif
