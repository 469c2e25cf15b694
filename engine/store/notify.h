/*
 * Notifications: what the receivers of the settings have not confirmed yet, and how far the feed of events was read for
 * each. A receiver lies in the shard of its namespace and name, and only the owner of the shard moves its cursor and
 * sends: see schema/migrations/0030_notification.sql.
 */
#ifndef SAGAD_STORE_NOTIFY_H
#define SAGAD_STORE_NOTIFY_H

#include "store/store.h"

struct notify_name {
    struct slice namespace, name;
};

/* The shard of a receiver: any one, but always the same. */
uint32_t notify_shard(const struct notify_name *of);

enum notification_state { NOTIFICATION_PENDING, NOTIFICATION_DEAD };

struct notification_row {
    struct slice name; /* the name of the receiver */
    uint64_t number;
    struct slice event, body; /* the id of the event, and the event as JSON */
    enum notification_state state;
    uint32_t attempts;
    int64_t since_ms, until_ms; /* it becomes a dead letter at until_ms */
    int64_t look_ms;            /* when it is sent next, or when it died */
    struct slice error;         /* SLICE_NONE: no attempt has failed */
};

struct notify_take {
    struct store_read read;
    struct notify_name of;         /* in */
    int64_t now_ms;                /* in */
    size_t limit;                  /* in */
    bool is_known;                 /* out: it has a cursor */
    int64_t tx;                    /* out: the cursor */
    struct notification_row *rows; /* out: those that are due */
    size_t count;                  /* out */
    int64_t next_ms;               /* out: when the first of all is due; INT64_MAX: none is pending */
};
void store_notify_take(struct store *store, struct notify_take *take);

struct notify_event {
    struct slice id, body;
};

enum notify_put_end { NOTIFY_FENCED, NOTIFY_PUT, NOTIFY_MOVED };

struct notify_put { /* moves the cursor, and writes the events that it passes */
    struct store_read read;
    struct notify_name of;             /* in */
    int64_t epoch;                     /* in */
    bool is_known;                     /* in: it has a cursor; false: it gets its first one, and no events */
    int64_t before, tx;                /* in: the cursor as it is, and as it becomes */
    const struct notify_event *events; /* in */
    size_t count;                      /* in */
    int64_t now_ms, until_ms;          /* in */
    enum notify_put_end end;           /* out; NOTIFY_MOVED: the cursor is not where it was thought to be */
};
void store_notify_put(struct store *store, struct notify_put *put);

struct notify_outcome {
    uint64_t number;
    bool done; /* the receiver has confirmed it; else: */
    enum notification_state state;
    int64_t look_ms;
    uint32_t attempts;  /* made now */
    struct slice error; /* SLICE_NONE: as it was */
};

struct notify_settle {
    struct store_read read;
    struct notify_name of;                 /* in */
    int64_t epoch;                         /* in */
    const struct notify_outcome *outcomes; /* in */
    size_t count;                          /* in */
    bool fenced;                           /* out: another engine has the shard */
};
void store_notify_settle(struct store *store, struct notify_settle *settle);

struct notification_list {
    struct store_read read;
    struct slice namespace;        /* in */
    struct slice name, state;      /* in; SLICE_NONE: any */
    struct slice after_name;       /* in: the last of the page before; SLICE_NONE: none */
    uint64_t after;                /* in */
    size_t limit;                  /* in */
    struct notification_row *rows; /* out: by the name of the receiver, the oldest first */
    size_t count;                  /* out */
};
void store_notification_list(struct store *store, struct notification_list *list);

struct notification_replay { /* dead letters become pending again */
    struct store_read read;
    struct slice namespace;     /* in */
    struct slice name;          /* in; SLICE_NONE: of every receiver */
    const struct slice *events; /* in: ids */
    size_t event_count;         /* in; 0: all */
    struct slice act;           /* in: see act_text(); SLICE_NONE: none. Written when something is sent again */
    uint64_t count;             /* out: so many */
};
void store_notification_replay(struct store *store, struct notification_replay *replay);

#endif
