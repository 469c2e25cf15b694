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
    struct witness witness;   /* turn_describe.c hears of each record */
    struct decision decision; /* the records, and the state with them */
    struct append append;
    struct append_start start;
    enum saga_status status_after;
    bool ended, awake;
    int64_t began_us;
    /* what the tables beside the log need, gathered record by record */
    struct op_key *keys;
    bool is_event;
    uint64_t asked;                        /* the approval that the record's step waited for before the record */
    uint32_t cases_opened, cases_resolved; /* askings of cases that began, and that ended */
    uint32_t cases_new, approvals_new;     /* numbers used up */
    struct append_escalation *escalations;
    struct touched *touched;
    struct append_follower *followers;
    uint32_t key_count, escalation_count, touched_count, follower_count;
};

/*
 * turn_describe.c: what a turn means, described while it is decided. turn_describe_begin() comes before the decision,
 * turn_describe_end() after one that has records, and makes `append`. A decision that is refused leaves nothing behind:
 * what was described of it goes with the turn. turn->payload.overflow: it is larger than a turn may be.
 */
void turn_describe_begin(struct turn *turn);
void turn_describe_end(struct turn *turn);

#endif
