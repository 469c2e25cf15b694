/* Makes the parts that keep sagas in memory, in an order in which each finds what it needs, and gives them back. */
#include "run/saga/saga_room.h"

#include <stdlib.h>

#include "run/saga/cases.h"
#include "run/saga/forgotten.h"
#include "run/saga/park.h"
#include "run/saga/rests.h"
#include "run/saga/retention.h"
#include "run/saga/scheduler.h"
#include "run/saga/summon.h"
#include "run/saga/turn.h"

void saga_room_init(struct engine *engine)
{
    struct saga_room *room = engine->saga_room = memory_alloc(sizeof(*room));

    room->lives = lives_new(engine);
    room->summoner = summoner_new();
    room->rests = rests_new(engine);
    room->turns = turns_new();
    room->cases = cases_new();
    room->forgotten = forgotten_new();
    list_init(&room->dues);
    room->parker = parker_new(engine);
    room->retention = retention_new(engine);
    room->scheduler = scheduler_new(engine);
}

void saga_room_fini(struct engine *engine)
{
    struct saga_room *room = engine->saga_room;

    scheduler_free(room->scheduler);
    retention_free(room->retention);
    parker_free(room->parker);
    forgotten_free(room->forgotten);
    cases_free(engine);
    turns_free(room->turns);
    rests_free(room->rests);
    summoner_free(room->summoner);
    lives_free(room->lives);
    free(room);
}
