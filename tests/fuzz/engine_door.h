/* What fuzz_api.c sees of the engine's door: the requests of one client that are under way. */
#ifndef SAGAD_TESTS_ENGINE_DOOR_H
#define SAGAD_TESTS_ENGINE_DOOR_H

#include "run/engine.h"

enum door {
    DOOR_THING,
    DOOR_LIST,
    DOOR_LOG,
    DOOR_START,
    DOOR_FIND,
    DOOR_CALL,
    DOOR_GRANTS
}; /* the form of the answer */

#define DOOR_MAX 1000 /* the most starts in a batch */

struct engine_door {
    struct door_request {
        struct engine_request *request;
        enum door door;
        bool cancelled;
    } waiting[DOOR_MAX];
    size_t count;
    bool busy;                  /* the engine takes no new requests */
    struct engine_watch *watch; /* the watch of a client that follows a log */
};

extern struct engine_door engine_door;

#endif
