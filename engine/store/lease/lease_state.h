/*
 * The declarations that the lease_*.c files share. lease.c has the public functions and gives leases up. lease_talk.c
 * holds the conversation with the database, with its two long parts in lease_renew.c and lease_take.c. lease_fleet.c
 * knows which engines there are, and so how many shards are ours. The picture is in lease.c.
 */
#ifndef SAGAD_STORE_LEASE_LEASE_STATE_H
#define SAGAD_STORE_LEASE_LEASE_STATE_H

#include "store/lease/lease_identity.h"
#include "store/store_state.h"

#define LEASE_QUERIES_MAX 14
#define FLEET_MAX 256      /* the most engines that are read; more than one for each shard have nothing to do */
#define FLEET_STALE_MAX 16 /* the most rows of dead engines that are removed in one conversation */

enum lease_talk { TALK_IDLE, TALK_RENEW, TALK_END, TALK_LOCK, TALK_TAKE, TALK_RELEASE };

struct lease {
    bool held;
    int64_t epoch;
    int64_t deadline_ms; /* when sends stop, by the boot-time clock */
    bool has_low;
    int64_t low_ms; /* the low mark as last read from the table */
    /* state of the conversation under way */
    bool asked, answered, wanted, locked;
    int64_t answered_epoch, asked_epoch;
    bool answered_has_low;
    int64_t answered_low_ms, answered_turns;
    int lock_tries;
    bool expired;    /* the lease of its former owner was over by the database's clock when we took it */
    bool owner_died; /* we took it from a process that has certainly ended */
    bool giving;     /* we gave it away, and its row still says that it is ours */
    bool given;      /* the conversation under way changes that row */
};

struct lease_row {                             /* a row of the table as last read */
    int64_t epoch, turns, expires_ms, left_ms; /* left_ms: until expiry, by the database's clock; below 0: expired */
    bool has_owner, has_expiry;
    char owner[96], identity[LEASE_IDENTITY_BYTES];
};

struct fleet_row { /* a living engine as last read */
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
    struct transaction_proof proof; /* the proof of the renewal */
    int backend_pid;                /* the connection's backend, since its first renewal; 0: none yet */
    struct db_transaction transaction;
    int64_t sent_ms;
    bool follows;   /* the database's clock has been read */
    bool advancing; /* true inside of lease_advance() */
    bool relock;    /* the connection is new, so its locks must be taken again */
    bool tick_due;
    bool look_due;     /* both tables may have changed since they were read */
    bool looks;        /* the conversation under way reads both tables */
    int64_t looked_ms; /* when both tables were read last */
    struct timer tick;
    struct fleet_row fleet[FLEET_MAX]; /* sorted by instance */
    size_t fleet_count;
    char stale[FLEET_STALE_MAX][STORE_INSTANCE_BYTES]; /* instances of dead engines whose rows we remove */
    size_t stale_count;
    bool beside_older; /* an engine that knows no bundles of keys runs, or ended within the last hour without leaving */
    bool in_fleet;     /* our row is in the table of engines */
    bool leaving;
    bool says_leaving;        /* what our row said when it was sent last */
    bool told;                /* the other engines were notified that we came or leave */
    int64_t renewed_ms;       /* when the question was sent whose answer came last; 0: no answer yet */
    int64_t patient_until_ms; /* the owners keep expired leases until then: the database was away for all engines */
    struct err reason;        /* the last error of the connection; ERR_OK: none since the last answer */
    struct deferred give;
    struct deferred report;
    uint64_t fenced; /* shards that appends reported as fenced and that are not yet reported as lost */
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
                  int64_t database_ms);  /* the time of the database in the answer that has just come */
void lease_begin(struct leases *leases); /* begins a transaction; add queries, then submit */
struct db_args *lease_query(struct leases *leases, const struct db_statement *statement,
                            void (*on_rows)(struct db_query *, const struct db_rows *));
void lease_submit(struct leases *leases, enum lease_talk talk, bool read_only);
size_t lease_asked_count(const struct leases *leases);
void lease_put_asked(struct leases *leases, struct db_args *args);  /* the numbers of the shards that are `asked` */
void lease_put_epochs(struct leases *leases, struct db_args *args); /* adds the epochs of these shards */
struct lease *lease_of_row(struct leases *leases, const struct db_rows *rows,
                           size_t row); /* finds the lease by the first column; may return NULL */
void lease_on_table(struct db_query *query, const struct db_rows *rows);

/* lease_fleet.c */
void fleet_put(struct leases *leases);             /* adds the writing of our row to the conversation */
void fleet_put_gone(struct leases *leases);        /* adds the removal of our row */
void fleet_read(struct leases *leases);            /* adds the reading of all rows */
void fleet_written(struct leases *leases);         /* our row was committed */
bool fleet_is_alone(const struct leases *leases);  /* no other engine lived when we looked last, not even a standby */
size_t fleet_share(const struct leases *leases);   /* the number of shards that are our share */
size_t fleet_surplus(const struct leases *leases); /* the number of our shards that other engines should have */
size_t fleet_first(const struct leases *leases);   /* the shard that we look at first; engines begin apart */
int64_t fleet_next_ms(const struct leases *leases,
                      int64_t ms); /* the time until the next engine may turn out to be dead, at most `ms` */

/* lease_renew.c */
void leases_renew(struct leases *leases);
void leases_renewed(struct leases *leases);

/* lease_take.c */
size_t leases_choose(struct leases *leases); /* marks the shards that may be taken now, and returns their number */
void leases_end_old_owners(struct leases *leases);
void leases_lock(struct leases *leases);
void leases_locked(struct leases *leases);
bool leases_take(struct leases *leases); /* false: nothing is left to take */
void leases_taken(struct leases *leases);

#endif
