/* Makes the parts that carry out calls, and gives them back. */
#include "run/call/call_room.h"

#include <stdlib.h>

#include "run/call/activity.h"
#include "run/call/call_queue.h"
#include "run/call/limiter.h"

enum err_code call_room_init(struct engine *engine, struct err *err)
{
    struct call_room *room = engine->call_room = memory_alloc(sizeof(*room));

    room->calls = calls_new(engine);
    room->activities = activities_new();
    room->limiter = limiter_new(engine, engine->options.budgets_file, err);
    return room->limiter ? ERR_OK : err->code;
}

void call_room_fini(struct engine *engine)
{
    struct call_room *room = engine->call_room;

    if (room) {
        limiter_free(room->limiter);
        activities_free(room->activities);
        calls_free(room->calls);
        free(room);
    }
}
