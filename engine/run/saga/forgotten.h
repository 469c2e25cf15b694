/* What this engine knows to have called, and a log that was rewound may not: see forgotten.c. */
#ifndef SAGAD_RUN_SAGA_FORGOTTEN_H
#define SAGAD_RUN_SAGA_FORGOTTEN_H

#include "run/call/activity.h"

struct forgotten;

struct forgotten *forgotten_new(void);
void forgotten_free(struct forgotten *forgotten);

void forgotten_made(const struct activity *activity); /* the call leaves */
void forgotten_log(
    struct engine *engine); /* history was rewound: the last calls, for people, in case nothing else outlives us */
void forgotten_know(struct engine *engine, struct known_work *out);                      /* see store_options */
void forgotten_note(struct engine *engine, const struct op_key *key, uint32_t attempts); /* so many were made */
void forgotten_remember(struct engine *engine); /* before its sagas leave memory */
void forgotten_compare(struct live *live);      /* it was read back */
void forgotten_tell(struct engine *engine,
                    uint32_t shard); /* the shard is loaded: which of its sagas were not read back? */
/* This attempt was made, and the log may not know it. */
bool forgotten_call(struct engine *engine, const struct op_key *key, uint32_t attempt);

#endif
