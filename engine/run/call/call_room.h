/* The parts of this room. Only the files of call/ look into it; the headers of the parts say what can be asked. */
#ifndef SAGAD_RUN_CALL_CALL_ROOM_H
#define SAGAD_RUN_CALL_CALL_ROOM_H

#include "base/errors.h"

struct engine;

struct call_room {
    struct calls *calls;           /* call_queue.c */
    struct activities *activities; /* activity.c */
    struct limiter *limiter;       /* limiter.c */
};

enum err_code call_room_init(struct engine *engine, struct err *err); /* reads the budgets */
void call_room_fini(struct engine *engine);                           /* good after a failed call_room_init(), too */

#endif
