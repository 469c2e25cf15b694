/*
 * What the lease_*.c files share. lease.c is what others see, and letting go; lease_talk.c the conversation and its
 * round; lease_renew.c and lease_take.c its two long parts; lease_fleet.c which engines there are, and so how many
 * shards are ours. The picture is in lease.c.
 */
#ifndef SAGAD_STORE_LEASE_LEASE_STATE_H
#define SAGAD_STORE_LEASE_LEASE_STATE_H

#include "store/lease/lease_identity.h"
#include "store/store_state.h"

#define LEASE_QUERIES_MAX 12
#define FLEET_MAX 256      /* engines that are looked at; more than one a shard have nothing to do anyway */
#define FLEET_STALE_MAX 16 /* rows of dead engines that are removed at once */

enum lease_talk { TALK_IDLE, TALK_RENEW, TALK_END, TALK_LOCK, TALK_TAKE, TALK_RELEASE };

struct lease {
    bool held;
    int64_t epoch;
    int64_t deadline_ms; /* boot-time clock: sends stop */
    bool has_low;
    int64_t low_ms; /* as last seen in the table */
    /* of the conversation under way */
    bool asked, answered, wanted, locked;
    int64_t answered_epoch, asked_epoch;
    bool answered_has_low;
    int64_t answered_low_ms, answered_turns;
    int lock_tries;
    bool expired;    /* nobody gave it to us: it was over by the database's clock, when it was taken */
    bool owner_died; /* it was taken from a process that is certainly gone */
    bool giving;     /* given away, and its row still says that it is ours */
    bool given;      /* that is being changed */
};

struct lease_row {                             /* the table as last read */
    int64_t epoch, turns, expires_ms, left_ms; /* left: until expiry, by the database's clock; below 0: over */
    bool has_owner, has_expiry;
    char owner[96], identity[LEASE_IDENTITY_BYTES];
};

struct fleet_row { /* an engine that lives, as last read */
    char identity[LEASE_IDENTITY_BYTES];
    bool standby, leaving;
    int64_t left_ms;
};

struct leases {
    struct store *store;
    struct lease_options options;
    struct db *db;
    struct arena arena, names;
    char identity[LEASE_IDENTITY_BYTES];
    char connection_name[64];
    struct lease shards[SHARD_COUNT];
    struct lease_row table[SHARD_COUNT];
    enum lease_talk talk;
    struct db_query queries[LEASE_QUERIES_MAX];
    size_t query_count;
    struct db_transaction transaction;
    int64_t sent_ms;
    bool follows;   /* the database's clock has been read */
    bool advancing; /* inside lease_advance() */
    bool relock;    /* the connection is new: its locks have to be taken again */
    bool tick_due;
    bool look_due;     /* something may be otherwise than both tables said when they were read last */
    bool looks;        /* the conversation under way reads them */
    int64_t looked_ms; /* when they were read last */
    struct timer tick;
    struct fleet_row fleet[FLEET_MAX]; /* in the order of their instances */
    size_t fleet_count;
    char stale[FLEET_STALE_MAX][STORE_INSTANCE_BYTES]; /* instances whose rows nobody will remove but us */
    size_t stale_count;
    bool beside_older; /* there is one that knows no bundles of keys, or one went within the hour without leaving */
    bool in_fleet;     /* our row is there */
    bool leaving;
    bool says_leaving;        /* the row as last sent */
    bool told;                /* others were told that we came, or leave */
    int64_t renewed_ms;       /* when what was heard last was asked for; 0: never yet */
    int64_t patient_until_ms; /* until then what has expired is left to its owner: the database was away for all */
    struct err reason; /* the last thing that went wrong on the connection; ERR_OK: nothing since the last answer */
    struct deferred give;
    struct deferred report;
    uint64_t fenced; /* shards reported by appends, not yet told as lost */
    bool releasing, released, closing;
    struct timer patience;
    void (*on_released)(void *context);
    void *released_context;
};

/* lease.c */
void leases_lose(struct leases *leases, uint32_t shard);
void leases_release_send(struct leases *leases);
void leases_release_end(struct leases *leases);

/* lease_talk.c */
void leases_tick(struct leases *leases); /* renew, look and take what is free, if no conversation is under way */
void lease_follow(struct leases *leases,
                  int64_t database_ms);  /* what the time was there, by the answer that has just come */
void lease_begin(struct leases *leases); /* a transaction of it: queries, then submit */
struct db_args *lease_query(struct leases *leases, const struct db_statement *statement,
                            void (*on_rows)(struct db_query *, const struct db_rows *));
void lease_submit(struct leases *leases, enum lease_talk talk, bool read_only);
size_t lease_asked_count(const struct leases *leases);
void lease_put_asked(struct leases *leases, struct db_args *args);  /* the numbers of the shards that are `asked` */
void lease_put_epochs(struct leases *leases, struct db_args *args); /* and their epochs */
struct lease *lease_of_row(struct leases *leases, const struct db_rows *rows,
                           size_t row); /* by its first column; may be NULL */
void lease_on_table(struct db_query *query, const struct db_rows *rows);

/* lease_fleet.c */
void fleet_put(struct leases *leases);             /* adds our row to the conversation */
void fleet_put_gone(struct leases *leases);        /* takes it away */
void fleet_read(struct leases *leases);            /* adds the reading of all rows */
void fleet_written(struct leases *leases);         /* it was committed */
bool fleet_is_alone(const struct leases *leases);  /* there was nobody else when we looked last, not even a standby */
size_t fleet_share(const struct leases *leases);   /* how many shards we take */
size_t fleet_surplus(const struct leases *leases); /* how many of ours others should have */
size_t fleet_first(const struct leases *leases);   /* where to look for free shards: engines begin apart */
int64_t fleet_next_ms(const struct leases *leases,
                      int64_t ms); /* until the next of them may turn out to be dead, at most ms */

/* lease_renew.c */
void leases_renew(struct leases *leases);
void leases_renewed(struct leases *leases);

/* lease_take.c */
size_t leases_choose(struct leases *leases); /* marks the shards that may be taken now; how many */
void leases_end_old_owners(struct leases *leases);
void leases_lock(struct leases *leases);
void leases_locked(struct leases *leases);
bool leases_take(struct leases *leases); /* false: nothing is left to take */
void leases_taken(struct leases *leases);

#endif
