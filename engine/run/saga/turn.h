/* A turn: one input of a saga decided, appended and applied. See turn.c. */
#ifndef SAGAD_RUN_SAGA_TURN_H
#define SAGAD_RUN_SAGA_TURN_H

#include "run/saga/live.h"

/* JSON whose digest tells a repeat of this start from another one under the same id */
struct slice mail_asked(const struct mail *start);
void turn_begin(struct live *live, struct mail *mail);
struct turns *turns_new(void);
void turns_free(struct turns *turns);
size_t turns_under_way(const struct engine *engine);
int64_t turn_began_us(const struct list_link *turn); /* see intake_turn_begun() */
/* The append of the turn that is being appended, inside the done of its mail too; NULL: none */
const struct append *turn_append(const struct live *live);

#endif
