/* What fuzz_api.c sees of the engine's door: the requests that are under way, of one client. */
#ifndef SAGAD_TESTS_ENGINE_DOOR_H
#define SAGAD_TESTS_ENGINE_DOOR_H

#include "run/engine.h"

enum door { DOOR_THING, DOOR_LIST, DOOR_LOG, DOOR_START, DOOR_FIND, DOOR_CALL }; /* what its answer looks like */

#define DOOR_MAX 1000 /* a batch of starts has so many */

struct engine_door {
    struct door_request {
        struct engine_request *request;
        enum door door;
        bool cancelled;
    } waiting[DOOR_MAX];
    size_t count;
    bool busy;                  /* takes nothing new */
    struct engine_watch *watch; /* of somebody who follows a log */
};

extern struct engine_door engine_door;

#endif
