/* The shards of an engine: which are its own, and what is kept of each. */
#ifndef SAGAD_RUN_SHARD_SHARD_H
#define SAGAD_RUN_SHARD_SHARD_H

#include "base/list.h"
#include "store/store.h"

struct engine;

/* GIVING: another engine is to have it (handover.c); ours, and nothing begins in it */
enum shard_state { SHARD_NONE, SHARD_LOADING, SHARD_OWNED, SHARD_GIVING };

struct shard {
    struct engine *engine;
    uint32_t number;
    enum shard_state state;
    int64_t epoch;
    int64_t alone_from_ms;       /* time of day: nobody else can have sent a call of it since */
    uint64_t escalation_counter; /* numbers given are counter * SHARD_COUNT + shard */
    uint64_t approval_counter;   /* the same */
    int64_t escalations_open;    /* the open escalations of this shard, also of sagas that are not in memory */
    struct list sagas;
    struct shard_load load;
    int64_t busy_until_ms; /* the owner, another engine, takes in nothing new before (measures.c); boot-time clock */
    int64_t oldest_unreadable_ms;  /* when the oldest saga was made whose log makes no sense here; 0: none */
    bool load_running, load_stale; /* stale: lost while loading */
    int64_t give_until_boot_ms;    /* handover.c: then it is kept */
    int64_t keep_until_boot_ms;    /* the shard is not tried again before this */
    uint32_t keeps;                /* how often it was kept */
    uint32_t answers; /* answers to inputs of its inbox, on their way to the database (exchange/delivery.c) */
};

void shard_leave(struct shard *shard); /* the sagas leave memory; the shard is ours no more */
/* Is the shard ours by the lease, as far as can be known here? Another engine may have taken it unheard. */
bool shard_is_surely_ours(const struct engine *engine, uint32_t shard);
void shard_gained(uint32_t shard, int64_t epoch, void *engine);
void shard_lost(uint32_t shard, int64_t epoch, void *engine);
/* A write at this epoch was refused: another engine has the shard, and its sagas leave memory here. Nothing where that
 * is known already. */
void shard_fenced(struct engine *engine, uint32_t shard, int64_t epoch);
int64_t shard_oldest_unfinished_ms(uint32_t shard, void *engine);
uint32_t shards_owned(const struct engine *engine);
uint64_t shards_owned_set(const struct engine *engine); /* a bit each */

#endif
