/* Whether this engine takes in new work: the intake (intake.h) of an engine, and what it is measured by. */
#ifndef SAGAD_RUN_INTAKE_MEASURES_H
#define SAGAD_RUN_INTAKE_MEASURES_H

#include "run/engine_state.h"

struct measures;

struct measures *measures_new(struct engine *engine, struct err *err); /* reads the quotas; NULL: it cannot */
void measures_free(struct measures *measures);                         /* accepts NULL */

void intake_work_ended(struct engine *engine); /* see intake_ended() */
void intake_turn_begun(struct engine *engine, struct list_link *turn);
void intake_turn_over(struct engine *engine, struct list_link *turn, bool begins, int64_t us);
/* It has a place. INT64_MAX: it waited for more than that, so how long says nothing. */
void intake_call_left(struct engine *engine, bool first, int64_t waited_ms);
/* False: refused with ERR_BUSY, a sentence, and after how long it may come again. */
bool intake_admits(struct engine *engine, struct err *err, int64_t *retry_after_ms);
/* the owner of this shard, another engine, refused something new */
void intake_elsewhere(struct shard *shard, int64_t retry_after_ms);
void intake_show(struct engine *engine); /* sets the gauges */

#endif
