/*
 * Shows one saga, with what neither its log nor its state has: at which breakers its calls wait, and which of its debts
 * somebody has settled since its end. The store is asked only where there is something to ask for.
 */
#ifndef SAGAD_RUN_QUERY_SAGA_ANSWER_H
#define SAGAD_RUN_QUERY_SAGA_ANSWER_H

#include "run/request/work.h"
#include "store/guard.h"

struct live;

/* Ends the work. `live` is NULL for a saga that is not in memory here: whether an undo that was decided waits, or is
 * out, is known only there. */
void saga_answer(struct work *work, const struct saga *saga, const struct live *live);

/* Does a call of it wait at one of these breakers? `live` is NULL where the saga was read from its log. */
bool saga_waits_at_breaker(const struct saga *saga, const struct live *live, const struct guard_list *list,
                           int64_t now_ms, struct arena *scratch);

#endif
