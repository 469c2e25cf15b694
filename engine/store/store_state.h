/*
 * What the files of store/ share: the connections, the appends that wait, the batches.
 *
 * store.c keeps the connections and says whether the store is ready; append.c makes batches of appends;
 * append_resolve.c finds out what came of a batch whose answer was lost; read.c carries the transactions of all other
 * requests.
 */
#ifndef SAGAD_STORE_STORE_STATE_H
#define SAGAD_STORE_STORE_STATE_H

#include "base/list.h"
#include "base/map.h"
#include "io/postgres/db.h"
#include "store/seal/places.h"
#include "store/sql.h"
#include "store/store.h"

#define STORE_CONNS_MAX (STORE_WRITERS_MAX + STORE_READERS_MAX)
#define STORE_SERVER_LEAST 150000
#define STORE_ADVISORY_SHARDS 0x53474144 /* class of the advisory locks of shards: "SGAD" */
#define STORE_INSTANCE_BYTES 17

struct conn;
struct batch;

/* --- connections (store.c) --- */

/*
 * The proof that one transaction of ours is one transaction of PostgreSQL. What stands between may route each statement
 * on its own (Citus' coordinator), or end the transaction behind each (a proxy that splits pipelines): then nothing is
 * atomic, a fence holds nothing, and no error tells. `sql_check_transaction` is the first and the last statement of a
 * transaction, and both must see the same one. The proof is made whenever a connection is checked. With each renewal of
 * leases, the connection for leases makes it again, and so does one of the other connections, in turn: a proxy may
 * begin to do this at any time. The proof then also finds a pooler that gives a connection another backend.
 */
struct transaction_proof {
    struct { /* what the two statements saw: a transaction's number, and its backend */
        int64_t transaction;
        int backend_pid;
    } seen[2];
    size_t count;
};
void store_on_transaction(struct transaction_proof *proof, const struct db_rows *rows);
bool store_is_one_transaction(const struct transaction_proof *proof, struct err *err);
void store_say_pooled(struct err *err);     /* a backend is not the one that the connection had before */
void store_prove_next(struct store *store); /* the proof again, on the next connection that is up */

struct conn_facts { /* what a connection's checks found */
    bool have;
    int backend_pid, timeline;
    int64_t backend_started_us;
    char fsync[8], full_page_writes[8], synchronous_commit[16], read_only[8], user[80], missing[480];
    bool standby, has_table, has_usage;
    bool has_virtual_clock; /* virtual_clock.h */
    int64_t waits_for;      /* the standbys that a commit waits for: 0 where synchronous_standby_names is empty */
    int64_t streams;        /* standbys that stream from it, as far as we may see */
    int schema_version, second_pid;
    struct transaction_proof proof;
    struct err keys_err;                /* a key of payloads is not there, or another one */
    int64_t missing_turns, losses_open; /* history.c */
    uint64_t shards_missing, shards_back,
        shards_behind; /* a turn is missing; at an epoch before one that we saw; with fewer turns than we saw */
    struct saga_id missing_saga;
    int64_t missing_seq, missing_at_ms;
};

#define CONN_QUERIES_MAX 9

struct conn {
    struct store *store;
    struct db *db;
    bool writer;
    bool up; /* connected and all checks passed */
    bool checking;
    int backend_pid; /* the backend of this connection, while it is up */
    int64_t backend_started_us;
    char name[64];
    struct arena arena; /* the arena of the check */
    struct db_transaction check;
    struct db_query check_queries[CONN_QUERIES_MAX];
    int doubts; /* checks in a row that missed something */
    struct conn_facts facts;
    struct timer recheck;
    struct batch *batch; /* the batch of a writer */
};

/* --- appends (append.c, append_batch.c, append_resolve.c) --- */

enum batch_phase {
    BATCH_IDLE,
    BATCH_SENT,   /* the append itself */
    BATCH_TAKEN,  /* asking whose the business ids are */
    BATCH_EPOCHS, /* it was fenced: asking which shards are lost */
    BATCH_LOST,   /* nobody knows what came of it: waiting for a connection, or for the time of the next try */
    BATCH_ENDING, /* making sure that the old backend is gone */
    BATCH_LOOKING /* reading the log */
};

#define BATCH_QUERIES_MAX 24
#define BATCH_BYTES_MAX (4u << 20) /* the bytes of payloads in one transaction, if it has more than one append */

struct batch { /* a writer has one, again and again */
    struct store *store;
    struct conn *conn;
    enum batch_phase phase;
    struct arena arena;
    struct append **items;
    bool *refused; /* which items were refused: starts whose business id was taken */
    size_t count, capacity;
    struct db_query queries[BATCH_QUERIES_MAX];
    size_t query_count;
    struct db_transaction transaction;
    size_t unique_cursor; /* where the last id that came back was found */
    int backend_pid;      /* who has it, should the answer be lost */
    int64_t backend_started_us;
    bool backend_gone;
    int64_t backends_left; /* answer of sql_end_backend */
    struct timer again;
    unsigned char *found; /* answers of sql_taken (by what it was found), sql_look and sql_epochs, one an item */
    int64_t epochs[SHARD_COUNT];
};

/* --- the history that we know (history.c) --- */

struct confirmed_turn { /* a turn that was confirmed */
    bool is_there;
    struct saga_id saga;
    uint64_t seq;
    int64_t epoch, at_ms;
};

struct shard_mark { /* neither ever goes down in one history */
    int64_t epoch, turns;
};

#define HISTORY_QUERIES_MAX 5

struct history {
    struct confirmed_turn last[STORE_WRITERS_MAX][SHARD_COUNT];
    bool is_other;   /* something is missing, and nobody has accepted that */
    bool is_doubted; /* the last check missed something, or found a loss that is not accepted */
    bool is_written, is_asking, is_accepted;
    bool is_there;                       /* the row of the loss; a history that was rewound once may be so again */
    uint64_t lacking;                    /* shards of which something is missing */
    struct shard_mark seen[SHARD_COUNT]; /* the highest that the lease table has shown */
    int64_t turns[SHARD_COUNT]; /* confirmed turns of our shards: those of the table when they were taken, and ours */
    size_t asked;               /* connections, one after another */
    uint32_t number;            /* how many histories were accepted: an append of an earlier one is not made any more */
    struct uuid loss;           /* the row in history_loss */
    struct err err;
    struct timer poll;
    struct arena arena;
    struct db_query queries[HISTORY_QUERIES_MAX];
    struct db_transaction transaction;
};

/* --- the inbox (inbox.c) --- */

#define CONSUMED_MAX 1024

struct inbox_watch {
    void (*on_rows)(const struct inbox_row *rows, size_t count, void *context);
    void *context;
    uint64_t shards;
    struct timer poll;
    bool polling, again, stale; /* stale: too much was consumed meanwhile to tell rows from ghosts */
    struct arena arena;
    struct db_transaction transaction;
    struct db_query query;
    struct inbox_row *rows;
    size_t row_count;
    struct uuid after; /* where the next page begins: rows that wait for long must not hide those behind them */
    struct list drops; /* under way */
    struct uuid consumed[CONSUMED_MAX]; /* the inputs consumed since the poll under way was sent */
    size_t consumed_count;
};

/* --- answers (answers.c) --- */

struct answers {
    struct list puts; /* the answers to be written when the ones under way are */
    bool putting;
    struct deferred put_soon;
    struct timer put_again, sweep;

    struct map waits; /* input -> struct answer_wait */
    struct list ripe; /* the inputs of `waits` that are to be asked for next */
    struct timer poll;
    bool taking;
    struct arena arena;
    struct db_transaction transaction;
    struct db_query query;
    struct {
        struct uuid input;
        struct slice body;
    } * taken;
    size_t taken_count;
};

/* --- definitions (definitions.c) --- */

struct definition_watch {
    void (*changed)(void *context);
    void *context;
    struct timer poll;
    bool polling, primed;
    int64_t state, state_read;
    struct db_transaction transaction;
    struct db_query query;
};

/* --- parking and forgetting (due_queue.c; its kinds are in due.c) --- */

struct due_item {
    uint32_t shard;
    int64_t epoch;
    struct uuid saga;
};

struct due_write_kind {
    const char *refused; /* event of the log */
    const struct db_statement
        *statement; /* arrays of shard, epoch, saga; gives the positions of those that were not fenced */
    size_t max;     /* in one transaction */
    struct due_item (*item)(struct list_link *link);
    void (*put_more)(struct db_args *args, struct list_link *const *links, size_t count); /* more arrays; may be NULL */
    void (*tell)(struct list_link *link, enum err_code code);
    const struct db_statement *put_off; /* arrays of shard, saga, when: of one that alone is refused; may be NULL */
};

struct due_queue {
    struct store *store;
    const struct due_write_kind *kind;
    struct list waiting;
    struct list_link **sent; /* under way, or lost */
    size_t sent_count;
    bool *held;              /* whether the shard of a sent append is at its epoch */
    bool *put_off;           /* whether a sent write was put off by its statement, which has set the time */
    size_t max;              /* how many may be sent now: fewer after one was refused for its rows, or took too long */
    size_t refused_in_a_row; /* alone, with nothing between that was done */
    bool busy;               /* a transaction is under way */
    bool lost;               /* the answer was, and its backend may still be there */
    int backend_pid;
    int64_t backend_started_us, backends_left;
    struct deferred soon;
    struct timer again;
    struct arena arena;
    struct db_query query;
    struct db_transaction transaction;
};

struct key_sweep { /* keys.c */
    struct store *store;
    struct timer timer;
    struct arena arena;
    uint32_t shard;        /* the one under way, or the next */
    int64_t bundles_max;   /* in one statement */
    int64_t bundles, keys; /* the bundles and keys that it has looked at */
    bool under_way;        /* a statement: no timer runs */
    bool is_behind;        /* in this round something was left that is due */
    bool is_fed;           /* keys were made known here, or bundles were due, since this round began */
    bool rests;            /* nothing was going on: the next round is far away */
    int64_t began_boot_ms;
    uint64_t rounds; /* over all shards, that have ended */
};

struct run_reads {        /* runs.c */
    struct list waiting;  /* struct read_run */
    struct deferred soon; /* the reads that wait begin at the end of this turn of the loop */
    size_t under_way;     /* statements */
};

struct store {
    struct loop *loop;
    struct store_options options;
    struct arena arena;                  /* texts of the options */
    char instance[STORE_INSTANCE_BYTES]; /* random; in the name of each connection */
    struct conn conns[STORE_CONNS_MAX];  /* writers, then readers; the first reader listens */
    size_t conn_count, writer_count;
    size_t prove_next;    /* the connection that makes the proof next, counted on and on */
    size_t proved_count;  /* connections, since all are up (store_prove_all()) */
    int timeline;         /* the highest seen */
    bool is_asynchronous; /* standbys stream from it, and no commit waits for one */
    bool lacks_standbys;  /* fewer standbys stream from it than each commit waits for */

    bool ready, was_ready, refused, closing;
    bool away_told;
    bool hung; /* a connection got no answer and was given up; none has come up since */
    struct err away_err;

    struct list waiting;   /* appends */
    struct list newcomers; /* appends that begin a saga nobody was promised yet: behind the others */
    bool newcomer_led;     /* a large one of them was the first in the last batch */
    /* the groups of batches that were refused as data, and are tried apart; `tries` is the size of the group */
    struct list suspects;
    size_t append_count;
    size_t batches_sent; /* under way */
    struct loop_hook hook;
    size_t crowd; /* turns under way or ready when a batch was sent last */
    struct deferred half_ready;
    struct timer pause; /* nothing is sent while it runs: after a deadlock and the like */
    bool trouble;       /* the database answers and takes no appends: one batch at a time is tried */
    bool trouble_may_try;
    int trouble_count;
    struct timer trouble_timer;
    int64_t low_ms[SHARD_COUNT]; /* the highest low that a renewal may have set; 0: none */

    /* unfinished sagas of the shard were handed over since the lease was taken: `low` may move */
    bool loaded[SHARD_COUNT];
    unsigned loads_due[SHARD_COUNT]; /* counts takings, to tell a load from an earlier one */

    struct list loads;  /* shard loads that wait for their turn, or for a connection */
    size_t loads_begun; /* the loads that wait no more, or only for a connection */
    struct list jobs;   /* the jobs, writing requests whose answer was lost among them */
    struct run_reads runs;
    struct inbox_watch inbox;
    struct answers answers;
    struct due_queue parks, forgets;
    struct key_sweep key_sweep;
    struct history history;
    struct definition_watch definitions;
    void (*schedules_changed)(void *context); /* schedules.c */
    void *schedules_context;
    void (*holds_changed)(void *context); /* holds.c */
    void *holds_context;
    void (*bulk_changed)(void *context); /* bulk.c */
    void *bulk_context;
    struct leases *leases;

    size_t dbs_open;
    void (*on_closed)(void *context);
    void *closed_context;
    struct deferred closer;
};

/* store.c */
extern const char *const store_setup[]; /* the setup of writers, readers and the lease connection */
void store_name_connection(const struct store *store, const char *what, char out[64]);
void store_db_closed(struct store *store);
/* It took longer than a lease: every connection is made anew, perhaps to another server. */
void store_unanswered(struct store *store, const struct err *err);
bool store_is_checked(
    const struct store *store); /* a connection is up that has passed all checks, and none doubts the history */
void store_refuse(struct store *store, const struct err *err); /* it cannot get better by waiting: tell the owner */
void store_tell(struct store *store);                          /* readiness may have changed: tell the owner */
struct conn *store_reader(struct store *store);                /* the least busy one that is up, or NULL */

/* append.c */
void appends_init(struct store *store);
void appends_stop(struct store *store); /* ends what waits with ERR_STOPPING */
void appends_fini(struct store *store);
void appends_conn_up(struct conn *conn);
/* The instant of the oldest start that is not yet durable, for each shard; INT64_MAX: none */
void appends_oldest_starts(const struct store *store, int64_t oldest_ms[SHARD_COUNT]);
void append_complete(struct store *store, struct append *append, enum err_code code);
void append_again(struct store *store, struct append *append); /* it certainly did not happen */
/* one that waits or is under way does */
bool appends_will_consume(const struct store *store, const struct uuid *inbox_id);
struct append *batch_take(struct batch *batch, size_t i);
void batch_finish(struct batch *batch); /* it holds no append any more */
void batch_submit(struct batch *batch, enum batch_phase phase, bool read_only);

void appends_drop_rewound(
    struct store *store); /* another history was accepted: what waits was decided by what is gone */

/* history.c */
void history_init(struct store *store);
void history_stop(struct store *store);
void history_fini(struct store *store);
void history_note(struct store *store, const struct conn *writer, const struct append *append); /* it was confirmed */
void history_forget(struct store *store, uint32_t shard, struct saga_id saga); /* it is about to be removed */
size_t history_put_checks(struct conn *conn, size_t at);  /* adds to the check_queries; how many there are then */
bool history_is_good(struct conn *conn, struct err *err); /* judges by what they answered */
/* It is another one: of the shards `lacking` something is missing. */
void history_found(struct store *store, uint64_t lacking, const struct err *err);
void history_torn(struct batch *batch); /* the same, by an append behind a hole */
/* What the lease table has shown, once that is confirmed. False: less than before. Then every connection is made anew,
 * and looks. */
bool history_saw(struct store *store, const struct shard_mark table[SHARD_COUNT]);

/* seal/stored.c: what is written and read, sealed and opened */
void append_seal(struct store *store, struct append *append);
/* Opens the turn of this saga, whose payload is as it was read. What does not open is no array of records any more, and
 * has its `fault`. A key that is missing stops the engine: no other saga of that key can be read either. */
void turn_open(struct store *store, const struct uuid *saga, struct stored_turn *turn, struct arena *arena);

/* Was this saga, whose row has this `input_digest`, started with the input of that digest? False, too, when the column
 * does not open, which was said: nobody can tell, and no other saga may be begun in place of that one. */
bool input_is(struct store *store, struct saga_id saga, struct slice column, const struct digest *digest);

/* A column that is sealed whole: `text` itself while there is no active key. */
struct slice column_seal(struct store *store, struct seal_place place, struct slice text, struct arena *arena);
/* SLICE_NONE: it does not open, which was said. A key that is missing stops the engine. */
struct slice column_open(struct store *store, struct seal_place place, struct slice column, struct arena *arena);
/* The body of a case or an approval. What does not open is shown as it stands: a person has to answer it all the same.
 */
struct slice question_seal(struct store *store, struct seal_place place, struct slice body, struct arena *arena);
struct slice question_open(struct store *store, struct seal_place place, struct slice body, struct arena *arena);

/* append_batch.c */
#define BUSINESS_DIGEST_BYTES 16
void batch_build(struct batch *batch);
struct db_args *batch_query(struct batch *batch, const struct db_statement *statement,
                            void (*on_rows)(struct db_query *, const struct db_rows *));
void batch_clear_queries(struct batch *batch);
struct slice digest_slice(const struct digest *digest, size_t bytes);
bool start_has_own_id(const struct append_start *start);
void batch_put_key(struct db_args *args, const struct append_start *start); /* digest of the key, or null */
void batch_put_key_shard(
    struct db_args *args,
    const struct append_start *start); /* the answer names the saga that had it for its id; null: that is this one */

/* append_resolve.c */
void batch_ask_taken(struct batch *batch);
void batch_taken_done(struct batch *batch);
void batch_ask_epochs(struct batch *batch);
void batch_epochs_done(struct batch *batch);
void batch_lost(struct batch *batch);    /* the answer was lost */
void batch_resolve(struct batch *batch); /* the next step, if there is a connection */
void batch_ending_done(struct batch *batch);
void batch_looking_done(struct batch *batch);

/* lease.c */
void leases_store_ready(struct leases *leases);
void leases_store_checked(struct leases *leases); /* a connection has passed its checks */
int64_t leases_ttl_ms(const struct leases *leases);
void leases_be_patient(
    struct leases *leases); /* history may have been rewound: what has expired is left to its owner, who knows */
void leases_reconnect(struct leases *leases, const struct err *reason);
void leases_lose_all(struct leases *leases); /* another history was accepted: all is taken anew */
void leases_close(struct leases *leases);    /* store_close() */
void leases_free(struct leases *leases);     /* accepts NULL */

/* load.c */
void runs_run(struct store *store); /* reads what waits */
void runs_stop(struct store *store);
void loads_run(struct store *store);
void loads_stop(struct store *store);

/* inbox.c */
void inbox_conn_up(struct store *store);
void inbox_notified(struct store *store, struct slice payload);
void inbox_consumed(struct store *store, const struct uuid *id);
void inbox_stop(struct store *store);

/* answers.c */
void answers_init(struct store *store);
void answers_conn_up(struct store *store);
void answers_notified(struct store *store, struct slice payload);
void answers_stop(struct store *store);
void answers_fini(struct store *store); /* ends what waits to be written with ERR_STOPPING */

/* due_queue.c */
void due_queue_init(struct due_queue *queue, struct store *store, const struct due_write_kind *kind);
void due_queue_add(struct due_queue *queue, struct list_link *link);
void due_queue_go(struct due_queue *queue);   /* sends what waits, if it can */
void due_queue_fini(struct due_queue *queue); /* ends what waits with ERR_STOPPING */

/* due.c */
void dues_init(struct store *store);
void dues_conn_up(struct store *store);
void dues_fini(struct store *store);

/* lease_fleet.c */
/* There is an engine that knows no bundles of keys, or one went within the hour without leaving,
 * when we looked last. */
bool leases_beside_older(const struct leases *leases);

/* keys.c */
uint32_t store_key_shard(const struct op_key *key); /* where operation_key has it; bundles lie in that modulo 16 */
void keys_init(struct store *store);
void keys_sweep(struct store *store); /* what its timer does; none may be under way */
void keys_fed(struct store *store);   /* a batch makes some known */
void keys_stop(struct store *store);
void keys_fini(struct store *store);

/* definitions.c */
void definitions_conn_up(struct store *store);
void schedules_notified(struct store *store); /* schedules.c */
void holds_notified(struct store *store);     /* holds.c; also when notifications may have been missed */
void bulk_notified(struct store *store);      /* bulk.c */
void definitions_notified(struct store *store);
void definitions_stop(struct store *store);

/* --- carrying a request over a reader (read.c) --- */

#define JOB_QUERIES_MAX 5

struct job { /* lies in the request's arena */
    struct store *store;
    struct arena *arena;
    void *request;
    struct db_query queries[JOB_QUERIES_MAX];
    size_t query_count;
    struct db_transaction transaction;
    struct deferred deferred;
    struct list_link link; /* in store->jobs: its answer was lost, and it waits for a connection */
    /* done again when its answer was lost: it is made so that a repeat does no harm; `once` when it is not */
    bool writes, once;
    int tries;
    bool found; /* set by on_rows; a request for one thing ends with ERR_NOT_FOUND without it */
    bool wants_one;
    /* Another transaction was faster, and this one is done again: forgets what it was answered. NULL: it is not. */
    void (*outrun)(struct job *job);
    enum err_code code;              /* out */
    struct err err;                  /* out */
    void (*finish)(struct job *job); /* always; tells the request's owner */
};

struct job *job_new(struct store *store, struct arena *arena, void *request, void (*finish)(struct job *job));
struct db_args *job_query(struct job *job, const struct db_statement *statement,
                          void (*on_rows)(struct db_query *, const struct db_rows *));
void arg_shards(struct db_args *args, uint64_t shards); /* an array of the numbers of a set: a bit each */
int64_t row_next_ms(const struct db_rows *rows);        /* the instant of the only row; INT64_MAX: there is none */
void job_submit(struct job *job);
void jobs_run(struct store *store);
void jobs_stop(struct store *store);

/* The common end of requests that are a struct store_read. */
struct job *read_job(struct store *store, struct store_read *read, void *request);
void read_finished(struct job *job); /* tells the owner of the request; the job is gone with that */
/* columns of sql_saga_row */
void read_row(const struct db_rows *rows, size_t row, struct arena *arena, struct saga_row *out);
void read_arg_texts(struct db_args *args, const struct slice *texts, size_t count);

#endif
