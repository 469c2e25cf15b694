/* The parts of this room. Only the files of saga/ look into it; the headers of the parts say what can be asked. */
#ifndef SAGAD_RUN_SAGA_SAGA_ROOM_H
#define SAGAD_RUN_SAGA_SAGA_ROOM_H

#include "base/list.h"

struct engine;

struct saga_room {
    struct lives *lives;         /* live.c */
    struct summoner *summoner;   /* summon.c */
    struct rests *rests;         /* rests.c */
    struct turns *turns;         /* turn.c */
    struct cases *cases;         /* cases.c */
    struct forgotten *forgotten; /* forgotten.c */
    struct list dues;            /* the three below wait for an instant (due.c) */
    struct parker *parker;       /* park.c */
    struct retention *retention; /* retention.c */
    struct scheduler *scheduler; /* scheduler.c */
};

void saga_room_init(struct engine *engine); /* engine->saga_room is there before its parts are made: they look for it */
void saga_room_fini(struct engine *engine); /* the store has closed */

#endif
