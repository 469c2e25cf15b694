/*
 * PostgreSQL as far as sagad uses it: sessions, transactions at READ COMMITTED, row and advisory locks, NOTIFY, and all
 * the ways in which a COMMIT can end. differential.c compares it with the real server.
 *
 * A session executes one transaction after another, statement by statement. Each statement has an instant of its own,
 * so that statements of other sessions come between. A statement sees what was committed when it began, and what its
 * own transaction did. It sees a row for which it waited as the row is after the wait (EvalPlanQual).
 */
#ifndef SAGAD_TESTS_SIM_PG_H
#define SAGAD_TESTS_SIM_PG_H

#include "io/postgres/db.h"
#include "tests/sim/world.h"

struct pg;
struct pg_session;
struct pg_result; /* the rows of one statement: struct db_rows of io/postgres/db.h, see pg_call.h */

struct pg *pg_new(void); /* lives in the world's arena, with the schema of the migrations and its 64 shards */
void pg_fini(struct pg *pg);
int64_t pg_clock_ms(const struct pg *pg); /* clock_timestamp() */
int64_t pg_clock_us(const struct pg *pg);

/* --- sessions --- */

struct pg_client { /* the client of a session, called at the server's instant: db.c adds the network */
    void (*rows)(struct pg_session *session, size_t query, const struct db_rows *rows);
    /* The transaction is over. `outcome` is never DB_UNKNOWN: db.c loses the answers that get lost on the way.
     * `warned`: the COMMIT says that its standby may not have it. */
    void (*over)(struct pg_session *session, enum db_outcome outcome, bool warned, const char *sqlstate,
                 size_t failed_query);
    void (*notify)(struct pg_session *session, struct slice channel, struct slice payload);
    void (*gone)(struct pg_session *session); /* the server ended the session */
};

/*
 * NULL: nobody listens there now. `setup` is as in struct db_options: the fake understands LISTEN and the timeouts, and
 * ignores other SET. Call all of these outside of nodes: what PostgreSQL keeps does not die with an engine. The session
 * is gone after gone() and after pg_disconnect().
 */
struct pg_session *pg_connect(struct pg *pg, const char *application_name, const char *const *setup,
                              const struct pg_client *client, void *context);
void *pg_context(const struct pg_session *session);
int pg_backend_pid(const struct pg_session *session);
/* Submits a transaction; copies the statements and arguments. Several may be submitted: they run in order. */
void pg_submit(struct pg_session *session, const struct db_query *queries, size_t count);
/* Submits the begin of a transaction whose rest and COMMIT never arrive. The transaction stays open until the session
 * ends, or idles for too long. */
void pg_submit_part(struct pg_session *session, const struct db_query *queries, size_t count);
/*
 * The client is gone and the server has noticed: it rolls back the open transaction and releases the locks. With
 * `later` the server has not noticed: it executes what it has got to the end, COMMIT included. It notices then, or when
 * its transaction has been idle for too long.
 */
void pg_disconnect(struct pg_session *session, bool later);

/* --- faults --- */

enum commit_fate {
    COMMIT_OK,
    COMMIT_FAILS,       /* 40001 or 40P01: nothing happened, and the server says so */
    COMMIT_WARNS,       /* committed here, with the warning that the standby may not have the commit */
    COMMIT_LOST_BEFORE, /* the connection is cut before the server gets the COMMIT */
    COMMIT_LOST_AFTER,  /* committed, and the connection is cut before the answer */
    COMMIT_LATE         /* the connection is cut, and the server commits some time later */
};
/* `fate` decides each COMMIT of a transaction that wrote something; NULL: COMMIT_OK. */
void pg_on_commit(struct pg *pg, enum commit_fate (*fate)(struct pg_session *session));
void pg_restart(struct pg *pg, int64_t down_us); /* -m immediate: sessions end, and what was not committed is gone */
/*
 * The primary dies and its standby takes over: the last commits are gone. `lose_us` 0: the standby is synchronous, and
 * only commits that are not confirmed (see below) are gone. Else, at most PG_LOSE_US_MAX: the standby is asynchronous,
 * and all commits of that time before are gone, too.
 */
enum { PG_LOSE_US_MAX = 3000000 };
void pg_fail_over(struct pg *pg, int64_t down_us, int64_t lose_us);
/* Calls pg_terminate_backend() for the which-th session, modulo the number of sessions. */
void pg_terminate(struct pg *pg, uint32_t which);
void pg_set_clock(struct pg *pg, int64_t offset_ms);       /* the server's clock jumps */
void pg_set_slow(struct pg *pg, int64_t statement_us_max); /* the longest time of a statement */
/* The server's disk is full: an insert fails (53100), and `refused` is called each time. Updates and deletes of
 * existing rows work. NULL: the disk has room. */
void pg_set_full(struct pg *pg, void (*refused)(void));
bool pg_is_up(const struct pg *pg);
size_t pg_session_count(const struct pg *pg);

/*
 * --- for the checker: what is committed, in the order of the commits ---
 *
 * A COMMIT that ends without a warning confirms itself and all before it. One that warned is committed and seen by
 * everybody, and not confirmed before the next one that does not warn.
 */

struct committed_turn {
    struct saga_id saga;
    uint32_t shard;
    int64_t epoch, at_ms;
    uint32_t seq, records;
    struct slice payload, rest /* SLICE_NONE: null */;
    int64_t shard_epoch, epoch_since_us; /* of the shard's row at the instant of the commit; in world time */
};
/* Calls `confirmed` when a commit is confirmed: for each row of sagad.log in it, in order of saga and seq, then once
 * with NULL. Commits come in their order. */
void pg_on_turn(struct pg *pg, void (*confirmed)(const struct committed_turn *turn));
/* Calls `lost` for each reported turn that a fail over with `lose_us` takes back, the newest commit first. */
void pg_on_lost(struct pg *pg, void (*lost)(const struct committed_turn *turn));
/* Are there turns of the saga that can be seen here, and are not confirmed? */
bool pg_is_ahead(const struct pg *pg, struct saga_id saga);
/* Is the key known, by what is committed now, as one of the saga's? */
bool pg_knows_key(const struct pg *pg, struct op_key key, struct saga_id saga);

struct committed_job {
    struct saga_id id;
    struct slice state;
    bool was_run;
    int64_t items, done, changed, refused;
};

struct committed_item {
    const struct committed_job *job;
    uint64_t number;
    struct slice body, outcome; /* outcome SLICE_NONE: it has none */
};
/* The bulk jobs that are committed now, and the items of one of them. */
void pg_each_bulk_job(const struct pg *pg, void (*seen)(const struct committed_job *job));
void pg_each_bulk_item(const struct pg *pg, const struct committed_job *job,
                       void (*seen)(const struct committed_item *item));
struct committed_event { /* of which no log tells */
    struct slice namespace, type, id;
};
/* The events beside the logs that are committed now: rows of sagad.event and of sagad.case_event. */
void pg_each_event(const struct pg *pg, void (*seen)(const struct committed_event *event));
bool pg_has_receiver(const struct pg *pg);          /* a receiver of notifications has a place in the feed */
bool pg_parks_under_two_holds(const struct pg *pg); /* a parked saga waits for several holds */
/* The number of committed rows in the inbox now. */
size_t pg_inbox_rows(const struct pg *pg);
/* The committed epoch of a shard now, and the time since which it holds. */
int64_t pg_epoch(const struct pg *pg, uint32_t shard, int64_t *since_us);

#endif
