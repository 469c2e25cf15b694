/* A turn between its decision and its commit. Private to turn.c and turn_describe.c. */
#ifndef SAGAD_RUN_SAGA_TURN_STATE_H
#define SAGAD_RUN_SAGA_TURN_STATE_H

#include "run/saga/turn.h"

struct touched { /* an approval that was opened, or is over, in this turn */
    uint32_t step;
    uint64_t number;
    bool opened;
};

struct turns { /* the turns of an engine */
    struct list idle;
    size_t under_way;
    struct list watches; /* who wants to hear of turns */
};

struct turn {
    struct list_link link; /* among the idle ones, or those being appended */
    struct live *live;
    struct mail *mail;
    struct arena arena;
    struct buffer payload, body, rest;
    struct records records;
    struct append append;
    struct append_start start;
    enum saga_status status_after;
    bool ended, awake;
    int64_t began_us;
    /* what the tables beside the log need, gathered record by record */
    struct op_key *keys;
    int64_t cases_more; /* open ones after it, beyond those before it */
    struct append_escalation *escalations;
    struct touched *touched;
    struct append_follower *followers;
    uint32_t key_count, escalation_count, touched_count, follower_count;
};

/* turn_describe.c: from the records of a decided turn to `append`. turn->payload.overflow: it is larger than a turn may
 * be. */
void turn_describe(struct turn *turn);

#endif
