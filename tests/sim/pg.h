/*
 * PostgreSQL as far as sagad uses it: sessions, transactions at READ COMMITTED, row and advisory locks, NOTIFY, and all
 * the ways in which a COMMIT can end. Held against the real one by differential.c.
 *
 * A session executes one transaction after another, statement by statement, each at an instant of its own, so that
 * those of other sessions come between. A statement sees what was committed when it began, and what its own transaction
 * did; a row that it waited for it sees as it is then (EvalPlanQual).
 */
#ifndef SAGAD_TESTS_SIM_PG_H
#define SAGAD_TESTS_SIM_PG_H

#include "io/postgres/db.h"
#include "tests/sim/world.h"

struct pg;
struct pg_session;
struct pg_result; /* the rows of one statement: struct db_rows of io/postgres/db.h, see pg_call.h */

struct pg *pg_new(void); /* in the world's arena; the schema of the migrations is there, with its 64 shards */
void pg_fini(struct pg *pg);
int64_t pg_clock_ms(const struct pg *pg); /* clock_timestamp() */
int64_t pg_clock_us(const struct pg *pg);

/* --- sessions --- */

struct pg_client { /* who is at the other end; called at the server's instant: the network is db.c's business */
    void (*rows)(struct pg_session *session, size_t query, const struct db_rows *rows);
    /* The transaction is over. `outcome` is never DB_UNKNOWN: what is lost on the way is lost by db.c. `warned`: the
     * COMMIT says that its standby may not have it. */
    void (*over)(struct pg_session *session, enum db_outcome outcome, bool warned, const char *sqlstate,
                 size_t failed_query);
    void (*notify)(struct pg_session *session, struct slice channel, struct slice payload);
    void (*gone)(struct pg_session *session); /* ended by the server: restart, pg_terminate_backend(), a timeout */
};

/*
 * NULL: nobody listens there now. `setup` as in struct db_options: LISTEN and the timeouts are understood, other SET
 * ignored. All of these are called outside of nodes: what PostgreSQL keeps does not die with an engine. After gone()
 * and after pg_disconnect() the session is no more.
 */
struct pg_session *pg_connect(struct pg *pg, const char *application_name, const char *const *setup,
                              const struct pg_client *client, void *context);
void *pg_context(const struct pg_session *session);
int pg_backend_pid(const struct pg_session *session);
/* The statements and arguments are copied. Several may be submitted: they run in order. */
void pg_submit(struct pg_session *session, const struct db_query *queries, size_t count);
/* The begin of a transaction whose rest, and COMMIT, never came through: it stays open until the session ends, or idles
 * for too long. */
void pg_submit_part(struct pg_session *session, const struct db_query *queries, size_t count);
/*
 * The client is gone and the server has noticed: what is open is rolled back, locks are free. With `later` the server
 * has not noticed: it executes what it has got to the end, COMMIT included, and notices then, or when its transaction
 * has been idle for too long.
 */
void pg_disconnect(struct pg_session *session, bool later);

/* --- faults --- */

enum commit_fate {
    COMMIT_OK,
    COMMIT_FAILS,       /* 40001 or 40P01: nothing happened, and it says so */
    COMMIT_WARNS,       /* done here, with the warning that the standby may not have it */
    COMMIT_LOST_BEFORE, /* the connection is cut before the server gets it */
    COMMIT_LOST_AFTER,  /* it is done, and the connection is cut before the answer */
    COMMIT_LATE         /* the connection is cut, and the server does it some time later */
};
/* Asked at each COMMIT of a transaction that wrote something; NULL: COMMIT_OK. */
void pg_on_commit(struct pg *pg, enum commit_fate (*fate)(struct pg_session *session));
void pg_restart(struct pg *pg, int64_t down_us); /* -m immediate: sessions end, what was not committed is gone */
/*
 * The primary dies and its standby takes over: a tail of the order of commits is gone. `lose_us` 0: a synchronous
 * standby, and what is not confirmed (see below) is gone. Else, at most PG_LOSE_US_MAX: an asynchronous one, and all
 * that was committed in that time before, too.
 */
enum { PG_LOSE_US_MAX = 3000000 };
void pg_fail_over(struct pg *pg, int64_t down_us, int64_t lose_us);
void pg_terminate(struct pg *pg,
                  uint32_t which); /* pg_terminate_backend() of the which-th session, modulo how many there are */
void pg_set_clock(struct pg *pg, int64_t offset_ms);       /* its clock jumps */
void pg_set_slow(struct pg *pg, int64_t statement_us_max); /* how long a statement takes, at most */
/* Its disk is full: nothing is inserted (53100), and `refused` is told each time; what is there is updated and deleted.
 * NULL: it has room. */
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
    struct slice payload;
    int64_t shard_epoch, epoch_since_us; /* of the shard's row at the instant of the commit; in world time */
};
/* Called when a commit is confirmed, for each row of sagad.log in it, in order of saga and seq; then once with NULL. In
 * order of commit. */
void pg_on_turn(struct pg *pg, void (*confirmed)(const struct committed_turn *turn));
/* Called for each turn that was told and that a fail over with `lose_us` takes back, the newest commit first. */
void pg_on_lost(struct pg *pg, void (*lost)(const struct committed_turn *turn));
/* Are there turns of the saga that can be seen here, and are not confirmed? */
bool pg_is_ahead(const struct pg *pg, struct saga_id saga);
/* Is the key known, as it is committed now, as one of the saga's? */
bool pg_knows_key(const struct pg *pg, struct op_key key, struct saga_id saga);
/* How many rows the inbox has, as it is committed now. */
size_t pg_inbox_rows(const struct pg *pg);
/* The epoch of a shard as it is committed now, and since when. */
int64_t pg_epoch(const struct pg *pg, uint32_t shard, int64_t *since_us);

#endif
