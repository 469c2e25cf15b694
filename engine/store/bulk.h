/*
 * What the engine asks of PostgreSQL about bulk jobs, in the terms of store.h.
 *
 * Any engine freezes the set of a job, runs and stops it; the owner of the job's shard carries it out. The id of a job
 * holds its time and its shard, as those of sagas do.
 */
#ifndef SAGAD_STORE_BULK_H
#define SAGAD_STORE_BULK_H

#include "store/store.h"

enum bulk_state { BULK_FREEZING, BULK_FROZEN, BULK_RUNNING, BULK_DONE, BULK_STOPPED, BULK_EXPIRED, BULK_STATE_COUNT };
const char *bulk_state_name(enum bulk_state state);

struct bulk_row {
    struct saga_id id;
    struct slice namespace, body, actor; /* text, JSON, text */
    enum bulk_state state;               /* never BULK_EXPIRED */
    int64_t items, done, changed, refused;
    int64_t created_ms, expires_ms, ended_ms /* 0: it has not ended */;
    struct slice run, stop; /* JSON; SLICE_NONE: nobody ran it, stopped it */
};

struct bulk_begin {
    struct store_read read;
    struct saga_id id;                   /* in */
    struct slice namespace, body, actor; /* in */
    int64_t expires_ms;                  /* in */
    size_t max;                          /* in: jobs of a namespace that are not over */
    bool begun;                          /* out; false: there are as many as may be */
};
void store_bulk_begin(struct store *store, struct bulk_begin *begin);

struct bulk_add { /* items to a job that has begun; a repeat adds nothing */
    struct store_read read;
    struct saga_id id;          /* in */
    uint64_t before;            /* in: how many it has already */
    const struct slice *bodies; /* in: JSON */
    size_t count;               /* in */
    int64_t look_ms;            /* in */
};
void store_bulk_add(struct store *store, struct bulk_add *add);

struct bulk_freeze { /* ERR_NOT_FOUND: it is gone */
    struct store_read read;
    struct saga_id id;   /* in */
    struct slice body;   /* in */
    size_t count;        /* in: items */
    struct bulk_row row; /* out */
};
void store_bulk_freeze(struct store *store, struct bulk_freeze *freeze);

struct bulk_move { /* ERR_NOT_FOUND */
    struct store_read read;
    struct saga_id id;      /* in */
    struct slice namespace; /* in */
    enum bulk_state to;     /* in: BULK_RUNNING or BULK_STOPPED */
    struct slice who;       /* in: JSON */
    struct slice act;       /* in: act_text(), written where the state changes; SLICE_NONE: none */
    int64_t keep_ms;        /* in: a job that is stopped is removed then */
    enum bulk_state state;  /* out: what it is now; BULK_EXPIRED: it was to be run too late */
};
void store_bulk_move(struct store *store, struct bulk_move *move);

struct bulk_list { /* newest first; or the one with an id, ERR_NOT_FOUND */
    struct store_read read;
    struct slice namespace; /* in */
    struct saga_id id;      /* in; nil: many */
    struct uuid before;     /* in; nil: from the newest */
    size_t limit;           /* in */
    struct bulk_row *rows;  /* out */
    size_t count;           /* out */
};
void store_bulk_list(struct store *store, struct bulk_list *list);

struct bulk_item_row {
    uint64_t number;
    struct slice body, outcome, detail; /* JSON, text (SLICE_NONE: none yet), JSON or SLICE_NONE */
};

struct bulk_items { /* in their order */
    struct store_read read;
    struct saga_id id;          /* in */
    uint64_t after;             /* in */
    struct slice outcome;       /* in: "open" for those without; SLICE_NONE: all */
    size_t limit;               /* in */
    struct bulk_item_row *rows; /* out */
    size_t count;               /* out */
};
void store_bulk_items(struct store *store, struct bulk_items *items);

struct bulk_take { /* the job of these shards whose turn it is, with the items that are due */
    struct store_read read;
    uint64_t shards;             /* in: bit set */
    int64_t now_ms;              /* in */
    size_t limit;                /* in: items */
    bool found;                  /* out: there is one */
    struct bulk_row row;         /* out: one that is not running is to be removed */
    struct bulk_item_row *items; /* out */
    size_t count;                /* out */
    int64_t next_ms;             /* out: when the next job is due; INT64_MAX: there is none */
};
void store_bulk_take(struct store *store, struct bulk_take *take);

struct bulk_outcome {
    uint64_t number;
    struct slice outcome; /* SLICE_NONE: its turn comes again at look_ms */
    struct slice detail;  /* JSON or SLICE_NONE */
    int64_t look_ms;
};
struct bulk_settle {
    struct store_read read;
    struct saga_id id;                   /* in */
    int64_t epoch;                       /* in */
    const struct bulk_outcome *outcomes; /* in; of an item that has one already nothing is written */
    size_t count;                        /* in */
    int64_t keep_ms;                     /* in: a job that is done with this is removed then */
    bool fenced;                         /* out: another engine has the shard */
};
void store_bulk_settle(struct store *store, struct bulk_settle *settle);

struct bulk_forget { /* some of its items, and with the last of them the job */
    struct store_read read;
    struct saga_id id; /* in */
    int64_t epoch;     /* in */
    int64_t now_ms;    /* in */
    size_t limit;      /* in: items */
    bool fenced;       /* out */
};
void store_bulk_forget(struct store *store, struct bulk_forget *forget);

/* One was run, and is due, or was stopped. */
void store_watch_bulk(struct store *store, void (*changed)(void *context), void *context);

#endif
