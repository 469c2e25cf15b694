/* Makes the parts that count for those who ask, and gives them back. */
#include "run/query/query_room.h"

#include <stdlib.h>

#include "run/query/health.h"
#include "run/query/saga_health.h"
#include "run/query/series.h"

void query_room_init(struct engine *engine)
{
    struct query_room *room = engine->query_room = memory_alloc(sizeof(*room));

    room->health = health_new();
    room->saga_healths = saga_healths_new();
    room->series = series_new(engine);
}

void query_room_fini(struct engine *engine)
{
    struct query_room *room = engine->query_room;

    series_free(room->series);
    saga_healths_free(room->saga_healths);
    health_free(room->health);
    free(room);
}
