/* What fuzz_api.c sees of the engine's door: the one request that is under way. */
#ifndef SAGAD_TESTS_ENGINE_DOOR_H
#define SAGAD_TESTS_ENGINE_DOOR_H

#include "run/engine.h"

enum door { DOOR_THING, DOOR_LIST, DOOR_LOG, DOOR_START, DOOR_CALL }; /* what its answer looks like */

struct engine_door {
    struct engine_request *request; /* NULL: none */
    enum door door;
    bool cancelled;
    bool busy;                      /* takes nothing new */
    struct engine_watch *watch; /* of somebody who follows a log */
};

extern struct engine_door engine_door;

#endif
