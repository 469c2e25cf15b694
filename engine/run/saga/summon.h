/* Sagas that are not in memory: read back for mail, or for somebody who needs them. See summon.c. */
#ifndef SAGAD_RUN_SAGA_SUMMON_H
#define SAGAD_RUN_SAGA_SUMMON_H

#include "run/saga/live.h"

/*
 * Mails to sagas that may not be in memory: ended ones and runs that rest are read back for them and leave
 * again. The mail's done may come inside the call. ERR_FENCED: its shard is not ours (SHARD_OWNED); ERR_NOT_FOUND: no
 * such saga in this namespace; ERR_BUSY.
 */
void live_deliver(struct engine *engine, struct saga_id id, struct slice namespace, struct mail *mail);
/* Whoever needs the saga in memory, not its next turn: to look at it, or to wait for its end. */
struct summons {
    struct list_link link;
    bool presses; /* the time has come: the saga is read back although memory is full, within bounds */
    /*
     * Exactly once, maybe inside the call. ERR_OK: `live` is there, maybe ended, and no turn of it begins before this
     * returns; it leaves again when nobody waits for anything of it. Else NULL, with the codes of live_deliver().
     */
    void (*done)(struct summons *summons, struct live *live, enum err_code code, const struct err *err);
};
void live_summon(struct engine *engine, struct saga_id id, struct slice namespace, struct summons *summons);
/* Sends to the run of this name; a run that does not exist begins with this mail, a SAGA_INPUT_CALL. */
void live_deliver_run(struct engine *engine, struct slice namespace, struct slice run, struct mail *mail);
struct summoner *summoner_new(void);
void summoner_free(struct summoner *summoner);
size_t summons_under_way(const struct engine *engine); /* sagas that are being read back */
/* A run leaves memory. What is being read of it now is not used, since it may be from before its last turn. */
void summoner_run_left(const struct engine *engine, const struct digest *run);
struct digest run_digest(struct slice namespace, struct slice run);
uint32_t run_shard(struct slice namespace, struct slice run);

#endif
