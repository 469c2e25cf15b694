/*
 * Holds: what people keep from beginning. See schema/migrations/0022_hold.sql and 0034_hold_ended.sql.
 *
 * People make and release them through any engine. Every engine reads those that are in force, and says so in the table
 * of engines. An engine whose leases last has heard of every hold that was made before its last renewal.
 */
#ifndef SAGAD_STORE_HOLDS_H
#define SAGAD_STORE_HOLDS_H

#include "store/store.h"

struct hold_row {
    uint64_t number;
    struct slice namespace, body;           /* JSON, see core/saga/hold.h */
    struct slice release;                   /* JSON; SLICE_NONE: nobody has released it */
    int64_t made_ms, until_ms, released_ms; /* 0: never */
};

struct hold_put { /* may be made again with the same id */
    struct store_read read;
    struct uuid id;               /* in */
    struct slice namespace, body; /* in */
    int64_t until_ms;             /* in; 0: never */
    size_t max;                   /* in: holds in force in a namespace */
    struct slice act;             /* in: act_text(), written with the hold; SLICE_NONE: none */
    uint64_t number;              /* out; 0: there are so many */
};
void store_hold_put(struct store *store, struct hold_put *put);

struct hold_release { /* ERR_NOT_FOUND */
    struct store_read read;
    uint64_t number;              /* in */
    struct slice namespace, body; /* in; body: JSON */
    struct slice act;             /* in: act_text(), written where it ends the hold; SLICE_NONE: none */
    uint64_t version;             /* out: of the holds without it; 0: it had ended before */
};
void store_hold_release(struct store *store, struct hold_release *release);

struct hold_list { /* newest first; or the one with a number, ERR_NOT_FOUND */
    struct store_read read;
    struct slice namespace; /* in */
    uint64_t number;        /* in; 0: all */
    uint64_t before;        /* in; 0: from the newest */
    bool with_ended;        /* in */
    size_t limit;           /* in */
    struct hold_row *rows;  /* out */
    size_t count;           /* out */
};
void store_hold_list(struct store *store, struct hold_list *list);

struct hold_unseen { /* the engines that live, and have not said that they abide by this version */
    struct store_read read;
    uint64_t version; /* in */
    struct unseen_engine {
        struct slice name;
        bool knows_none; /* an engine of an earlier release: it never will */
    } * engines;
    size_t count;
};
void store_hold_unseen(struct store *store, struct hold_unseen *unseen);

struct hold_load { /* all that are in force, in order of their numbers */
    struct store_read read;
    int64_t version;       /* out: what is read is at least as new */
    struct hold_row *rows; /* out */
    size_t count;          /* out */
};
void store_hold_load(struct store *store, struct hold_load *load);

struct hold_seen { /* this engine abides by them */
    struct store_read read;
    int64_t version; /* in */
};
void store_hold_seen(struct store *store, struct hold_seen *seen);

/* Tells holds that have ended by their time, some at a time. Each is told once, however many engines ask. */
struct hold_tell_ended {
    struct store_read read;
    int64_t left_ms; /* out: the time until the next one ends; 0: more have ended; negative: none will */
};
void store_hold_tell_ended(struct store *store, struct hold_tell_ended *tell);

/* A hold was made or released, or may have been. */
void store_watch_holds(struct store *store, void (*changed)(void *context), void *context);

#endif
