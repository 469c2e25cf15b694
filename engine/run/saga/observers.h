/* Who waits for something of a saga in memory. */
#ifndef SAGAD_RUN_SAGA_OBSERVERS_H
#define SAGAD_RUN_SAGA_OBSERVERS_H

#include "base/trace_context.h"
#include "run/saga/live.h"

/* request/caller.c: for its operations */
/* after a turn, and at its end: answer those whose operation is settled */
void callers_check(struct live *live);
/* The trace of a caller who waits for this operation; none where nobody waits, or waits with one. */
struct trace_context callers_trace(const struct live *live, uint32_t step);
void callers_drop(struct live *live); /* it left memory: they ask the database from now on */

/* query/saga.c: for its end */
void waiters_answer(struct live *live); /* the saga has ended */
void waiters_drop(struct live *live);   /* it left memory: they ask the database from now on */

#endif
