/*
 * What the engine asks of PostgreSQL, in words of the domain: appends, leases, loads, reads.
 *
 * A request is memory of its owner and stays there until its `done` was called. That happens exactly once, on the
 * thread of the loop, never inside the call that made the request. The store hides lost connections: when the answer to
 * a COMMIT is lost, the store looks for the append, and appends it again when it is certainly not there. `done` comes
 * when the truth is known. While the database is away, appends wait.
 */
#ifndef SAGAD_STORE_STORE_H
#define SAGAD_STORE_STORE_H

#include "base/arena.h"
#include "base/errors.h"
#include "base/id.h"
#include "core/record/record.h"
#include "core/saga/saga.h"
#include "core/schedule/timetable.h"
#include "io/loop/loop.h"

#define SHARD_COUNT 64
#define STORE_WRITERS_MAX 16
#define STORE_READERS_MAX 16

struct store;
struct payload_keys;

/* The turns that were confirmed to an engine, and the calls that it made. Sagas and calls may be listed twice. */
struct known_work {
    struct arena *arena; /* in: holds the lists below */
    struct known_saga {
        struct saga_id id;
        uint64_t seq; /* the last confirmed record; its epoch is at most `epoch` */
        int64_t epoch;
    } * sagas;
    size_t saga_count;
    struct known_call {
        struct saga_id saga; /* one of the sagas above */
        struct op_key key;
        uint32_t attempts;
        enum effect effect;
        struct slice tool; /* SLICE_NONE: no longer known */
    } * calls;
    size_t call_count;
    size_t left_out;        /* how many sagas and calls did not fit */
    int64_t calls_since_ms; /* calls of sagas that left memory are known since then; 0: all are known */
};

struct store_options {
    const char *dsn;
    int writers;      /* connections for appends; more than two at once only while a full batch waits. default 4 */
    int readers;      /* default 2 */
    size_t batch_max; /* the most turns in one transaction; default 500 */
    size_t second_batch_min; /* while one batch is under way, another leaves only when this many appends wait, or a
                                quarter of a crowd (append.c); default 200 */
    int64_t key_look_ms;     /* how often small bundles of keys are joined (keys.c); default 300000 */
    int64_t answer_ms;       /* a connection is given up when an append got no answer for so long; default 10 s */
    bool risk_losing_acknowledged_work; /* accept fsync=off and similar settings */
    bool virtual_clock;                 /* virtual_clock.h: go by the clock that can be moved */
    const struct payload_keys
        *payload_keys; /* seal/payload_keys.h; NULL: nothing is sealed, and nothing sealed is read */
    /* The store is connected, and server and schema passed the checks. Comes again after each
     * loss. */
    void (*on_ready)(struct store *store, void *context);
    /* The database does not answer. The store tries again. */
    void (*on_away)(struct store *store, const struct err *err, void *context);
    /* The database lacks what it had confirmed. The callee logs what may be lost with this process. May be NULL. */
    void (*on_rewound)(struct store *store, void *context);
    /* The store is about to write into the database what only this engine may know: fill `out`. May be NULL. */
    void (*on_know)(struct store *store, struct known_work *out, void *context);
    /* A person has accepted a loss. Every shard is reported as lost next, and is taken anew. May be NULL. */
    void (*on_history)(struct store *store, void *context);
    /* The database answers, but sagad must not run on it: it is too old, not durable, or has another schema. */
    void (*on_refused)(struct store *store, const struct err *err, void *context);
    void *context;
};

struct store *store_open(struct loop *loop, const struct store_options *options);
void store_close(struct store *store, void (*on_closed)(void *context), void *context);
bool store_is_ready(const struct store *store);
bool store_is_whole(const struct store *store); /* it is ready, and all of its connections have passed the checks */

/*
 * True when the store is whole, and then each connection has passed once more, one after another. Call it again while
 * it is false. It is for who does nothing else with the store: a pooler that gives a backend for each transaction shows
 * itself then. The checks at the beginning run at the same time, and each may have had one backend by chance.
 */
bool store_prove_all(struct store *store);
/* Is the database away because it hung? Then connections got no answer and were given up, and none is up
 * since. */
bool store_has_hung(const struct store *store);
/* Returns a sentence about standbys, or NULL: no commit waits for them, so that a failover may lose acknowledged work,
 * or too few of them are there for any commit. */
const char *store_warning(const struct store *store);
size_t store_appends_waiting(const struct store *store); /* counts appends under way, too */

/* --- append: one turn of one saga --- */

struct append_start { /* comes with the first turn of a saga */
    struct slice namespace, saga_name, tags /* JSON or none */;
    struct slice started_by; /* the actor of the token; SLICE_NONE: none, as for a follower */
    uint32_t version;
    struct slice business_id;      /* SLICE_NONE: none */
    struct digest business_digest; /* the digest of namespace, saga name and business id */
    bool has_key; /* the request had an Idempotency-Key, which is also the business id when the request names none */
    struct digest key_digest;   /* with has_key, the digest of namespace, saga name and key */
    struct digest input_digest; /* the digest of the canonical input; sealed where it is kept */
};

struct append_escalation { /* a case that this turn opened, reopened or resolved */
    uint64_t number;
    bool is_new;  /* it has no row yet */
    bool is_open; /* after the turn */
    struct slice step, reason, body /* JSON of the escalation as the API shows it */;
};

struct append_approval { /* an approval that this turn opened (step.waiting for a person), decided, or ended without a
                            decision */
    uint64_t number;
    bool opened; /* false: the approval ends, or with the status "open" gets more time */
    struct slice step, status /* "open" "approved" "refused" "expired" "cancelled" */,
        body /* JSON of the approval as the API shows it */;
    int64_t expires_ms; /* 0: never */
};

struct append_follower { /* becomes an inbox row "start" in the same transaction */
    uint32_t shard;
    struct saga_id saga;  /* the id of the new saga, unless its business id is taken */
    struct uuid input;    /* id of the inbox row */
    struct slice payload; /* JSON, as run/exchange/delivery.c reads a start */
};

struct append {
    struct saga_id saga;
    struct slice namespace;
    uint32_t shard;
    int64_t epoch; /* the epoch of the lease under which the turn was decided */
    int64_t at_ms;
    uint64_t first_seq;
    uint32_t record_count;
    struct slice payload; /* JSON array of the records' text forms; borrowed until done */
    struct slice rest;    /* with the turn a run goes to rest: its state then (core/saga/rest.h); SLICE_NONE: none */
    const struct op_key *new_keys; /* the keys of operations that this turn mentions first */
    uint32_t new_key_count;
    const struct append_start *start; /* NULL but for the first turn */
    bool status_changed;              /* the turn changes the status to the one below */
    enum saga_status status;
    /* Set with a status change. A status change without it clears ended_at: a run was woken. */
    bool ended;
    /* A woken run is unfinished although it is old, so recovery finds it by the table awake. */
    enum { AWAKE_AS_IT_WAS, AWAKE_ADD, AWAKE_REMOVE } awake;
    int64_t started_ms; /* the start of the saga */
    const struct append_escalation *escalations;
    uint32_t escalation_count;
    const struct append_approval *approvals;
    uint32_t approval_count;
    const struct append_follower *followers; /* set with the end of the saga */
    uint32_t follower_count;
    bool unparks; /* the saga has a row 'parked' in due, which is removed; it gets a row in awake instead, unless it
                     ended */
    bool releases_locks; /* set with the end of a saga that wanted locks; the next saga in line gets an inbox row
                            "locked" */
    int64_t forget_ms;   /* set with the end: when the retention is over; 0: never */
    bool never_due; /* set with forget_ms, but not with a start: says that the saga has no row in due, which is cheaper;
                       the store mends a wrong claim */
    bool is_event;  /* one of the records is an event: the feed finds the turn */
    bool from_inbox; /* the turn consumes an inbox row, which is removed in the same transaction */
    struct uuid inbox_id;
    struct slice act; /* act_text() of whoever asked for the turn, written in the same transaction; SLICE_NONE: none */

    /*
     * out: ERR_OK; ERR_FENCED (another engine owns the shard, or wrote at this place of the log); ERR_CONFLICT (start:
     * the business id is taken); ERR_DECIDED (from_inbox: this input was consumed before); ERR_CORRUPT (refused as
     * data); ERR_STOPPING (store_close(): nobody knows). With any code but ERR_OK and ERR_STOPPING nothing was written.
     */
    enum err_code code;
    struct err err;           /* out */
    struct saga_id existing;  /* out, with ERR_CONFLICT */
    bool existing_same_input; /* out, with ERR_CONFLICT: that saga was started with the input of this start */
    bool existing_other_id;   /* out, with ERR_CONFLICT: that saga has the key of this start but another business id */
    void (*done)(struct append *append);

    struct list_link link; /* the store's */
    int tries;             /* the store's: size of the group that is tried on its own */
    uint32_t history;      /* the store's: number of the history under which the turn was decided */
    int64_t since_boot_ms; /* the store's: when the append came */
    /* the store's: payload, rest and the digest of the input as they are written, sealed once for all tries, because
     * each sealing gives another text; and their memory */
    struct slice stored_payload, stored_rest, stored_input;
    struct buffer sealed;
};

/* At most one append of a saga may be under way. Appends ready in the same turn of the loop share a commit. */
void store_append(struct store *store, struct append *append);

int64_t store_append_lag_ms(const struct store *store); /* how long the oldest append has waited; 0: none waits */

/*
 * --- leases ---
 *
 * A lease is ours while its row has our epoch. `on_lost` comes when the row says otherwise, or when an append was
 * fenced. After the deadline nothing may leave (lease_allows_send() is false), but the lease is still ours: while the
 * database is away nobody can take it, and the outcomes of calls under way can be appended when it is back.
 */

struct leases;

struct engine_lags {    /* the figures of an engine in the table of engines */
    int64_t append_ms;  /* how long the oldest append has waited */
    int64_t due_ms;     /* how overdue the oldest parked saga is */
    int64_t inbox_rows; /* rows of the inbox that the engine works on */
    int64_t holds;      /* the version of the holds that the engine abides by */
};

/*
 * Shards are shared fairly. Each engine takes free shards up to its share, and gives away those beyond its share
 * (on_surplus, leases_give()). Engines that leave have no share, nor have standbys while another engine lives.
 */
struct lease_options {
    int64_t ttl_ms;          /* default 10 s; a lease is renewed after a third of it */
    int64_t margin_ms;       /* sends stop this long before the end; default a fifth of ttl_ms */
    const char *engine_name; /* shown to people */
    const char *version;     /* the version of the program; shown to people */
    bool standby; /* a standby takes shards only while all living engines are standbys, and then all that are free */
    /*
     * Called after each renewal with the number of shards beyond our share, mostly 0. The owner chooses shards, and
     * calls leases_give() for each as soon as it has no work under way. NULL: nothing is given away.
     */
    void (*on_surplus)(size_t count, void *context);
    void (*lags)(struct engine_lags *out, void *context); /* may be NULL */
    /* Called with each renewal, before our leases last longer by it: the newest version of the holds. May be NULL. */
    void (*on_holds)(int64_t version, void *context);
    void (*on_gained)(uint32_t shard, int64_t epoch, void *context); /* the owner loads the sagas of the shard */
    /* The owner drops the sagas of the shard at once and writes nothing. Never called after leases_release(). */
    void (*on_lost)(uint32_t shard, int64_t epoch, void *context);
    /*
     * Asked at each renewal. Returns an instant before which no id of an unfinished saga of this shard was made,
     * including sagas that could not be read. Recovery never looks further back. 0 means unknown, and the mark stays.
     * The mark does not move before store_load_shard() has ended, either.
     */
    int64_t (*oldest_unfinished_ms)(uint32_t shard, void *context);
    void *context;
};

struct leases *leases_start(struct store *store, const struct lease_options *options);
/* Gives all leases up, so that other engines can take over at once. */
void leases_release(struct leases *leases, void (*done)(void *context), void *context);
/* From now on other engines share the shards without us, and we take none. Shards that we hold stay ours until they are
 * given. */
void leases_leave(struct leases *leases);
/* Gives a shard to another engine. Its sagas have left memory, and no work is under way. on_lost does not
 * follow. */
void leases_give(struct leases *leases, uint32_t shard);
bool lease_is_held(const struct leases *leases, uint32_t shard, int64_t *epoch);
int64_t lease_last_epoch(const struct leases *leases,
                         uint32_t shard); /* the epoch of its row as last read, whoever holds it */
/* Is our last answer from the database younger than a lease? If not, the database hangs or is away, and others may have
 * taken over our shards. */
bool leases_are_current(const struct leases *leases);
/* Returns why leases are not current or none could be taken: the last error of their connection, or ERR_OK when there
 * was none. */
const struct err *leases_reason(const struct leases *leases);
/* Reads CLOCK_BOOTTIME now. Ask right before a call leaves. */
bool lease_allows_send(const struct leases *leases, uint32_t shard);
/*
 * Returns how long after on_gained() the former owner may still believe that it may send. Its lease was over by the
 * database's clock, and that clock may have stepped. Returns 0 when the former owner gave the shard away or has
 * certainly ended.
 */
int64_t lease_doubt_ms(const struct leases *leases, uint32_t shard);
/* Was the shard taken from a process that has certainly ended? An owner whose lease expired may merely stand still. */
bool lease_owner_died(const struct leases *leases, uint32_t shard);
/* Reports that an append was refused. on_lost follows. */
void leases_report_fenced(struct leases *leases, uint32_t shard, int64_t epoch);
/* Writes an array of {engine, shards, epoch range, expires_at} from the table as last read. */
void leases_write_json(struct leases *leases, struct buffer *out);

/* --- loading the unfinished sagas of a shard --- */

struct stored_turn {
    uint64_t first_seq;
    int64_t at_ms;
    int64_t epoch;        /* the epoch of the lease under which it was decided; 0: not read */
    struct slice payload; /* borrowed during the callback, or in the request's arena */
    struct slice rest;    /* store_read_saga() sets it: as append.rest; SLICE_NONE: none, or not read */
    const char *fault;    /* why the payload does not open, in a sentence; NULL: it is as it was written */
};

struct shard_load {
    uint32_t shard;
    void (*on_saga)(struct shard_load *load, struct saga_id id, struct slice namespace, const struct stored_turn *turns,
                    size_t count);
    /* Called before `done` for each call that was made and that the log may lack (history.c). May come twice for a
     * call. May be NULL. */
    void (*on_forgotten)(struct shard_load *load, const struct op_key *key, uint32_t attempts);
    void (*done)(struct shard_load *load);
    enum err_code code;             /* out */
    struct err err;                 /* out */
    uint64_t escalation_number_max; /* out: the highest number that this shard has given */
    uint64_t approval_number_max;   /* out: the same */
    int64_t escalations_open;       /* out: open escalations of this shard */
    bool is_awake;                  /* out, during on_saga: the saga has a row in the table awake */
    void *context;
    void *internal;
};
void store_load_shard(struct store *store, struct shard_load *load);

/* --- inbox: inputs that reached an engine which does not own their shard --- */

struct inbox_row {
    struct uuid id;
    uint32_t shard;
    struct saga_id saga;
    /* "start", "abort", "resolve", "call", "complete", "bypass", "resume", "settled", "signal", "decide", "pause",
     * "locked" */
    struct slice kind;
    struct slice payload; /* JSON */
};

struct inbox_put {
    struct inbox_row row; /* in; a nil id is replaced by a new one */
    bool once;            /* in; see below */
    enum err_code code;
    struct err err;
    void (*done)(struct inbox_put *put);
    void *internal;
};
/* The row is durable when `done` comes, and the owner is notified. When the answer is lost, the row is put again, and
 * may arrive twice under one id. With `once` it is not put again, and the request ends with ERR_LOST_COMMIT: the row is
 * there, was consumed, or never came. */
void store_inbox_put(struct store *store, struct inbox_put *put);

/* `on_rows` is called with the rows of shards in `shards` (a bit set), after a notification and by a slow poll. Rows
 * come again until an append or store_inbox_drop() consumes them. */
void store_inbox_watch(struct store *store, uint64_t shards,
                       void (*on_rows)(const struct inbox_row *rows, size_t count, void *context), void *context);
/* Drops a row whose input was refused or came too late. Does nothing while an append is about to consume the row. */
void store_inbox_drop(struct store *store, uint32_t shard, const struct uuid *id);

/*
 * --- answers: replies of an owner to inputs of the inbox, for callers of other engines ---
 *
 * The owner of the shard writes an answer once. The engine that put the input reads and removes it. An answer that
 * nobody fetches is removed after ten minutes.
 */
struct answer_put {
    uint32_t shard;
    struct uuid input; /* id of the inbox row */
    struct slice body; /* JSON; borrowed until done */
    bool drop_input;   /* in: the input was refused, so its inbox row is removed in the same transaction */
    /* Out: ERR_OK, ERR_STORE (refused), ERR_STOPPING. While the database is away the request waits. */
    enum err_code code;
    void (*done)(struct answer_put *put); /* may be NULL */
    struct list_link link;                /* the store's */
};
/* An input that an append is about to consume is not dropped. */
void store_answer_put(struct store *store, struct answer_put *put);

struct answer_wait {       /* memory of the waiter; on_answer comes once, unless the wait is stopped before */
    struct list_link link; /* the store's */
    uint32_t shard;
    struct uuid input;
    void (*on_answer)(struct answer_wait *wait, struct slice body); /* body is borrowed during the call */
};
/* Begin this before the input is put. An earlier notification is not heard, and the next poll comes only after a
 * second. */
void store_answer_wait(struct store *store, struct answer_wait *wait);
void store_answer_stop(struct store *store, struct answer_wait *wait); /* does nothing when it does not wait */

/* --- reads; each result is in the arena of its request --- */

struct store_read {
    struct arena *arena;
    enum err_code code; /* out: ERR_OK, ERR_NOT_FOUND, ERR_STORE */
    struct err err;     /* out */
    void (*done)(struct store_read *read);
    void *context;
    void *internal;
};

struct list_engines { /* reads the tables of engines and shards, and how the database is, as they are now */
    struct store_read read;
    struct engine_row {
        struct slice instance, identity, name, version;
        int schema;
        bool standby, leaving;
        int64_t started_ms, left_ms; /* left_ms: by the database's clock; below 0: expired */
        struct engine_lags lags;
    } * rows;
    size_t count;
    struct shard_row {
        int64_t epoch, left_ms;
        struct slice identity; /* identity of the holder; SLICE_NONE: nobody holds it */
    } shards[SHARD_COUNT];
    struct database_facts {
        struct slice version, fsync, full_page_writes, synchronous_commit, synchronous_standby_names;
        int64_t now_ms;         /* the time by the database's clock */
        int64_t clock_ahead_ms; /* how far our clock is ahead of it; late by the way of the answer */
        int64_t timeline;       /* the timeline of its write-ahead log; 0: the server is in recovery */
        int64_t schema;
        int64_t connections_max, connections; /* for all but superusers; of all clients */
        int64_t standbys;                     /* the standbys that stream from it, as far as our role may see */
        int64_t standby_lag_ms;               /* the lag of the slowest standby; -1: unknown */
        int64_t losses_open;                  /* losses of history that nobody has accepted */
    } database;
};
void store_list_engines(struct store *store, struct list_engines *list);

struct saga_row { /* a row of the table saga */
    struct saga_id id;
    struct slice namespace, saga_name, business_id, tags;
    uint32_t version;
    enum saga_status status;
    int64_t created_ms, updated_ms, ended_ms /* 0: not ended */;
};

struct read_saga { /* reads the row and the log of a saga; ERR_NOT_FOUND also when it is in another namespace */
    struct store_read read;
    struct saga_id id;         /* in */
    struct slice namespace;    /* in */
    uint64_t after_seq;        /* in: reads only turns with a record behind this one */
    size_t turns_max;          /* in; 0: all */
    struct saga_row row;       /* out */
    struct stored_turn *turns; /* out */
    size_t turn_count;         /* out */
};
void store_read_saga(struct store *store, struct read_saga *read);

#define LOGS_MAX 64             /* the logs that one request reads */
#define LOG_TURNS_MAX 32        /* the turns of a log that store_read_logs() brings */
#define LOG_TURN_BYTES_MAX 8192 /* the bytes of each turn of it */

struct saga_log {
    struct stored_turn *turns; /* without `rest` */
    size_t turn_count;         /* 0: there is no such log, or it is long */
    bool is_long;              /* it is longer than this brings: store_read_saga() */
};

struct read_logs { /* reads the logs of several sagas by one statement; a log that is not there is no error */
    struct store_read read;
    const struct saga_id *ids; /* in */
    size_t count;              /* in: at most LOGS_MAX */
    struct saga_log *logs;     /* out: in the order of the ids */
};
void store_read_logs(struct store *store, struct read_logs *read);

struct find_saga { /* finds a saga by its business id */
    struct store_read read;
    struct digest business_digest; /* in */
    uint32_t shard;                /* in */
    const struct digest *input;    /* in: the digest of a canonical input; NULL: nobody asks about it */
    struct saga_id id;             /* out */
    bool has_input;                /* out: the saga was started with that input */
};
void store_find_saga(struct store *store, struct find_saga *find);

#define RUN_TURNS_MAX 32        /* the turns of a log that store_read_run() brings */
#define RUN_TURN_BYTES_MAX 8192 /* the bytes of each turn of it */

/* Finds a run by its name, and reads its state at rest, or its log where there is none. Runs that are asked for at
 * about the same time are read together. */
struct read_run {
    struct store_read read;
    struct digest digest;      /* in: of the name; see run_digest() */
    uint32_t shard;            /* in */
    struct saga_id id;         /* out */
    struct slice rest;         /* out: as append.rest of the newest turn of the run; SLICE_NONE: it has none */
    uint64_t rest_seq;         /* out, with `rest`: of the last record of that turn */
    struct stored_turn *turns; /* out, without `rest`; NULL: the log is longer than this brings: store_read_saga() */
    size_t turn_count;         /* out */
    struct list_link link;     /* the store's */
};
void store_read_run(struct store *store, struct read_run *run);

struct find_operation { /* finds the saga of an operation key */
    struct store_read read;
    struct op_key key;      /* in */
    struct slice namespace; /* in */
    struct saga_id id;      /* out */
};
void store_find_operation(struct store *store, struct find_operation *find);

struct find_input { /* ERR_OK: the row is in the inbox; ERR_NOT_FOUND: it was consumed or dropped */
    struct store_read read;
    uint32_t shard; /* in */
    struct uuid id; /* in */
};
void store_find_input(struct store *store, struct find_input *find);

struct business_place { /* where a saga with a business id lies */
    uint32_t shard;
    struct digest digest;
};

/*
 * Lists sagas newest first. A member that is empty, zero or nil selects all. Of each list one value must fit. A list
 * reads few sagas besides those that fit: `edge` says where it ended.
 */
struct list_sagas {
    struct store_read read;
    struct slice namespace;           /* in */
    uint32_t statuses;                /* in: a bit for each enum saga_status */
    const struct slice *names, *tags; /* in: names of definitions; JSON objects of texts as in question_filter */
    size_t name_count, tag_count;
    const int64_t *versions; /* in */
    size_t version_count;
    struct slice business_prefix; /* in: how the business id begins */
    bool has_business_id;         /* in: only the sagas at these places */
    const struct business_place *places;
    size_t place_count;
    int64_t since_ms, until_ms; /* in */
    bool without_runs;  /* in: leave "~run" out, unless it is paused or escalated and that status was asked for */
    struct uuid before; /* in; nil: from the newest */
    bool has_ids;       /* in: only ids from first_id to last_id */
    struct uuid first_id, last_id; /* in */
    size_t limit;                  /* in */
    size_t looked_max;             /* in: sagas of each shard that are looked at; 0: SAGAS_LOOKED_AT; tests set it */
    struct saga_row *rows;         /* out */
    size_t count;                  /* out */
    bool has_edge; /* out: sagas with a smaller id than `edge` were not looked at, although `limit` was not reached */
    struct uuid edge;
};
#define SAGAS_LOOKED_AT 256
void store_list_sagas(struct store *store, struct list_sagas *list);

struct count_looked { /* how many sagas a list that ended at its edge has looked at */
    struct store_read read;
    const struct list_sagas *list; /* in: as it came back */
    int64_t count;                 /* out */
};
void store_count_looked(struct store *store, struct count_looked *count);

struct sum_sagas { /* counts what a list would have by status; its edge says how far it looked */
    struct store_read read;
    struct list_sagas *list; /* in, and its edge out; not one with has_business_id */
    int64_t counts[SAGA_STATUS_COUNT];
};
void store_sum_sagas(struct store *store, struct sum_sagas *sum);

/* The kinds of questions to people. An escalation wants a person to act, an approval wants a yes or
 * no. */
enum question_kind { QUESTION_ESCALATION, QUESTION_APPROVAL };

struct question_row {
    uint64_t number;
    struct saga_id saga;
    struct slice body; /* JSON of the question */
    bool open;
    int64_t opened_ms;
    struct slice saga_name, business_id, tags, started_by; /* members of its saga; SLICE_NONE when the saga lacks one */
    /* The members below belong to cases that were read from the store (is_read), not to cases that a turn just made. */
    bool is_read;
    struct slice acknowledged_by, assigned_to; /* SLICE_NONE: nobody */
    int64_t acknowledged_until_ms;             /* 0: until the case is resolved */
    int64_t remark_count;
    struct slice remarks; /* JSON objects with commas between; SLICE_NONE in lists */
};
/* Selects questions. A member that is empty, zero or SLICE_NONE selects all. Of each list from `tools` to `errors` one
 * value must fit; an empty text fits questions without a value. Texts are in the arena of the read. */
struct question_filter {
    const struct slice *statuses, *tools, *sagas, *steps, *reasons, *errors;
    size_t status_count, tool_count, saga_count, step_count, reason_count, error_count;
    const struct slice *tags; /* JSON objects of texts; the tags of the saga must include one of them */
    size_t tag_count;
    int64_t since_ms, until_ms; /* when it was opened: from since_ms to before until_ms */
    bool has_cost;
    int64_t cost_above;                  /* with has_cost */
    bool has_acknowledged, acknowledged; /* with has_acknowledged: does somebody look at the case, as of now_ms? */
    int64_t now_ms;
    const struct slice *assigned; /* the case is assigned to one of them; an empty text: to nobody */
    size_t assigned_count;
};

struct question_grouping {
    bool tool, saga, step, reason, error; /* the members that make the groups */
    const struct slice *tags;             /* tags whose values make groups, too */
    size_t tag_count;
};

struct question_group { /* a member is SLICE_NONE when it makes no groups, or has no value
                         */
    struct slice tool, saga, step, reason, error;
    struct slice tags; /* JSON array in the order of the grouping, null: none; SLICE_NONE: no grouping */
    uint64_t count, costless /* how many have no known cost */;
    int64_t oldest_ms, newest_ms;
    struct slice costs; /* the sums: JSON objects {currency, micros, cases} with commas between; SLICE_NONE: no cost */
};

#define QUESTIONS_LOOKED_AT 20000        /* the most questions that one list reads; see `edge` */
#define QUESTIONS_LOOKED_AT_BY_SAGA 5000 /* the most where the saga of each one is read, for a filter or a group */

struct list_questions { /* lists questions newest first, or one by its number, or groups with the largest first */
    struct store_read read;
    enum question_kind kind;            /* in */
    struct slice namespace;             /* in */
    bool open_only;                     /* in */
    struct question_filter filter;      /* in; statuses are for lists without open_only */
    const struct question_grouping *by; /* in; NULL: no groups */
    uint64_t number;                    /* in; 0: many */
    int64_t before_ms;                  /* in; instant and number of the last row of the page before */
    uint64_t before;                    /* in; 0: from the newest */
    size_t limit;                       /* in */
    size_t looked_max;                  /* in; 0: one of the two above; tests set it */
    struct question_row *rows;          /* out */
    struct question_group *groups;      /* out */
    size_t count;                       /* out: the number of rows or groups */
    bool has_edge;                      /* out: older questions were not read. The last one that was read: */
    size_t looked;                      /* out, with has_edge: so many were read */
    int64_t edge_ms;                    /* out */
    uint64_t edge;                      /* out; not for groups */
};
void store_list_questions(struct store *store, struct list_questions *list);

struct version_row {
    struct slice name;
    uint32_t version;
    int64_t unfinished;
};
struct count_versions { /* counts the unfinished sagas of each version of each definition; leaves out versions without
                           one */
    struct store_read read;
    struct slice namespace;   /* in */
    struct version_row *rows; /* out */
    size_t count;             /* out */
};
void store_count_versions(struct store *store, struct count_versions *count);

/* Counts the sagas of a namespace by status, except runs: all that are unfinished, and the ended ones that started
 * since `since_ms`. */
struct count_sagas {
    struct store_read read;
    struct slice namespace;
    uint32_t newest;  /* in: looks for ended sagas only among so many newest ones of each shard */
    int64_t since_ms; /* in and out: becomes later when a shard has more than `newest` sagas since then */
    int64_t counts[SAGA_STATUS_COUNT]; /* out */
};
void store_count_sagas(struct store *store, struct count_sagas *count);

/*
 * --- due: parked sagas, which left memory while they wait, and ended sagas that will be forgotten ---
 */

#define PARK_HOLDS_MAX 16 /* as in schema/migrations/0037_due_holds.sql */

struct park { /* fenced; after ERR_OK recovery no longer loads the saga: its due time or mail does. Many share a
                 transaction */
    struct saga_id saga;
    uint32_t shard;
    int64_t epoch;
    int64_t due_ms; /* INT64_MAX: only mail moves it */
    /* The holds that its calls wait for, each once, rising: when one of them has ended, the saga is let go. */
    uint64_t holds[PARK_HOLDS_MAX];
    size_t hold_count;
    bool awake;         /* the saga has a row in the table awake, which is removed */
    enum err_code code; /* out: ERR_OK, ERR_FENCED, ERR_STORE (refused), ERR_STOPPING */
    void (*done)(struct park *park);
    struct list_link link; /* the store's */
};
void store_park(struct store *store, struct park *park);

struct due_row {
    struct saga_id saga;
    uint32_t shard;
    struct slice namespace;
    bool forget;   /* false: the saga is parked, and its time has come */
    int64_t at_ms; /* when it was due */
};
struct due_take { /* reads rows and changes nothing: the first append of a saga removes its row */
    struct store_read read;
    uint64_t shards;            /* in: bit set */
    int64_t now_ms;             /* in: the engine's clock */
    size_t limit, forget_limit; /* in: the most rows of parked sagas and of sagas to forget; 0: none of that kind */
    struct due_row *rows;       /* out: the rows that are due, parked sagas first */
    size_t count;               /* out */
    bool more;                  /* out: there may be more than the limits allow */
    int64_t next_ms;            /* out: when the next row is due; INT64_MAX: there is none */
};
void store_due_take(struct store *store, struct due_take *take);

struct due_let_go { /* parked sagas are due now when one of the holds that they wait for is over */
    struct store_read read;
    uint64_t shards;          /* in: bit set */
    const uint64_t *in_force; /* in: the numbers of the holds that are not over, rising; every other one is over */
    size_t in_force_count;    /* in */
    int64_t now_ms;           /* in: the engine's clock */
    size_t limit;             /* in: the most sagas */
    size_t count;             /* out: sagas that are due now */
};
void store_due_let_go(struct store *store, struct due_let_go *let_go);

/*
 * Removes an ended saga whose retention is over: its log, its keys, its row, escalations, approvals. Fenced; does
 * nothing when the saga is gone. Up to 500 requests of one turn of the loop share a transaction. When the database
 * refuses one saga, a line in our log tells so, the saga is due again in an hour, and the others are removed.
 *
 * A run goes only when its last turn is older than `kept_ms`; otherwise it is due again when it will be. The caller
 * makes sure that the run takes no turn until `done`.
 */
struct forget {
    struct saga_id saga;
    uint32_t shard;
    int64_t epoch;
    int64_t now_ms;     /* in: the engine's clock */
    int64_t kept_ms;    /* in: how long a run is kept after its last turn; 0: for ever. Sagas do not need it */
    enum err_code code; /* out: ERR_OK, ERR_CONFLICT (a run that was used, and is put off), ERR_FENCED, ERR_STORE
                           (refused), ERR_STOPPING */
    void (*done)(struct forget *forget);
    struct list_link link;
};
void store_forget(struct store *store, struct forget *forget);

/*
 * --- schedules ---
 *
 * People change schedules through any engine. The owner of the shard moves a schedule, fenced, and only when the row is
 * still as it was read.
 */

struct schedule_row {
    uint32_t shard;
    struct slice namespace, name;
    struct uuid id;
    int64_t revision;
    struct slice body, state, actor; /* JSON, JSON (core/schedule/schedule.h) and text */
    struct slice hold;               /* JSON; SLICE_NONE: the schedule is not held */
    int64_t created_ms, last_ms;
    struct slice offsets; /* the offsets of its time zone, for zone_read_offsets(); SLICE_NONE: it has no zone, or an
                             unknown one */
};

enum schedule_put_outcome { SCHEDULE_TOO_MANY = -1, SCHEDULE_OTHER = 0, SCHEDULE_MADE = 1, SCHEDULE_SAME = 2 };
struct schedule_put {
    struct store_read read;
    uint32_t shard;                            /* in */
    struct slice namespace, name, body, actor; /* in */
    struct slice zone;                         /* in; SLICE_NONE: none */
    struct uuid id;                            /* in */
    size_t max;                                /* in: the most schedules of a namespace */
    struct slice act;                          /* in: act_text(), written where a schedule is made; SLICE_NONE: none */
    enum schedule_put_outcome outcome;         /* out */
};
void store_schedule_put(struct store *store, struct schedule_put *put);

struct schedule_list { /* lists schedules by name, or finds one by its name, else ERR_NOT_FOUND */
    struct store_read read;
    struct slice namespace, name, after; /* in; SLICE_NONE: all, from the first */
    size_t limit;                        /* in */
    int64_t since_ms, until_ms;          /* in: of the offsets */
    struct schedule_row *rows;           /* out */
    size_t count;                        /* out */
};
void store_schedule_list(struct store *store, struct schedule_list *list);

struct schedule_change { /* ERR_NOT_FOUND */
    struct store_read read;
    uint32_t shard;               /* in */
    struct slice namespace, name; /* in */
    struct slice hold;            /* in: JSON, or SLICE_NONE to release the schedule */
    bool removes;                 /* in: deletes the schedule instead */
    struct slice act;             /* in: act_text(), written with the change; SLICE_NONE: none */
};
void store_schedule_change(struct store *store, struct schedule_change *change);

struct zone_read { /* ERR_NOT_FOUND: the database knows no such zone */
    struct store_read read;
    struct slice name;          /* in */
    int64_t since_ms, until_ms; /* in */
    struct zone zone;           /* out */
};
void store_zone_read(struct store *store, struct zone_read *zone);

struct schedule_take {
    struct store_read read;
    uint64_t shards;            /* in: bit set */
    int64_t now_ms;             /* in: the engine's clock */
    size_t limit;               /* in */
    int64_t since_ms, until_ms; /* in: of the offsets */
    struct schedule_row *rows;  /* out: the schedules that are due */
    size_t count;               /* out */
    int64_t next_ms;            /* in: INT64_MAX; out: when the next schedule is due */
};
void store_schedule_take(struct store *store, struct schedule_take *take);

struct schedule_move {
    struct store_read read;
    const struct schedule_row *row; /* in: the row as it was read */
    int64_t epoch;                  /* in */
    int64_t revision;               /* in: the revision of the row; out: the new one, when it moved */
    int64_t last_ms, look_ms;       /* in */
    struct slice state;             /* in: JSON */
    bool fenced, moved; /* out: fenced: another engine has the shard; moved: the row was still as it was read */
};
void store_schedule_move(struct store *store, struct schedule_move *move);

/* `changed` is called when a schedule was made or released, so that something may be due. */
void store_watch_schedules(struct store *store, void (*changed)(void *context), void *context);

/*
 * --- events ---
 *
 * In the order of the transactions that wrote them, which keeps the order of each saga. A transaction is there as a
 * whole or not at all, and nothing comes later before what was read.
 */
struct stored_event {
    int64_t tx;
    bool has_saga;
    struct saga_id saga;
    struct slice saga_name, business_id, tags; /* SLICE_NONE: none, or the saga is gone */
    uint32_t version;
    int64_t at_ms;
    uint64_t first_seq;
    struct slice payload; /* a turn; SLICE_NONE: of another namespace */
    struct slice reason;  /* the reason of a case of which no log tells, or SLICE_NONE; and: */
    uint64_t number;
    bool is_resolved;  /* a case is resolved; false: opened */
    struct slice type; /* the type of an event of which no log tells, such as hold.placed, or SLICE_NONE; and: */
    struct uuid id;
    struct slice subject, data; /* data: JSON, members of the event's data */
};

struct event_list {
    struct store_read read;
    int64_t after;             /* in: everything up to this transaction was read */
    struct slice namespace;    /* in */
    size_t limit, bytes_max;   /* in: rows, and of their payloads */
    struct stored_event *rows; /* out */
    size_t count;              /* out */
    int64_t edge;              /* out: nothing is written up to here any more */
    /* Out: everything up to here stands in `rows`. Without rows it is `after`, and never `edge`: a PostgreSQL that
     * crashes gives the numbers of transactions of which nothing was on disk once more, and their events would be
     * passed over. */
    int64_t through;
    int64_t gone; /* out: the last that was removed; `after` below it: some were missed */
    bool more;    /* out: there may be more already */
    bool is_cut;  /* out: a transaction has more rows than `limit`: ask again with a larger one */
};
void store_event_list(struct store *store, struct event_list *list);

/*
 * --- locks on business keys ---
 *
 * The saga that came first holds the lock. A saga may ask again for a key that it holds or waits for, so that a restart
 * simply asks again.
 */
struct lock_take {
    struct store_read read;
    struct slice namespace, key; /* in */
    struct saga_id saga;         /* in */
    uint32_t shard;              /* in: the shard of the saga */
    bool fails;                  /* in: do not wait in line */
    bool held; /* out; false: in line (an inbox row "locked" {"namespace","key"} comes when it is its turn), or with
                  `fails` not taken */
};
void store_lock_take(struct store *store, struct lock_take *take);

/* --- definitions --- */

struct definition_row {
    struct slice namespace;
    enum definition_kind kind;
    struct slice name, body;
    uint32_t version;
    enum reading reading; /* out; a new version gets the newest reading */
    struct digest identity;
    int64_t created_ms;
};
struct load_definitions { /* loads all definitions, or those of one name; the engine keeps them in memory */
    struct store_read read;
    struct definition_row *rows; /* out */
    size_t count;                /* out */
};
void store_load_definitions(struct store *store, struct load_definitions *load);

struct put_definitions { /* registers all or none; makes a new version when the identity differs from that of the newest
                            one, or the reading is newer */
    struct store_read read;
    struct definition_row *rows; /* in; out: version */
    /* in: act_text() of each namespace that is registered in, written where a version is made in it; none: NULL */
    const struct slice *acts, *act_namespaces;
    size_t act_count;
    bool *created; /* out: one for each row */
    size_t count;
};
void store_put_definitions(struct store *store, struct put_definitions *put);
/* `changed` is called when another engine registered definitions */
void store_watch_definitions(struct store *store, void (*changed)(void *context), void *context);

/* --- blocking: `sagad migrate` and start-up --- */

/* Bring the schema up to date. Migrations only go forward, under an advisory lock, so that two programs may run this at
 * once. Reports each step to `progress`, which may be NULL. */
MUST_USE enum err_code migrate(const char *dsn, void (*progress)(const char *line), struct err *err);

#endif
