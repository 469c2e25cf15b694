/*
 * What the engine asks of PostgreSQL, in words of the domain: appends, leases, loads, reads.
 *
 * Each request lies in its owner and stays there until its `done` was called, exactly once, on the loop's thread and
 * never inside the call that made it. The store hides lost connections: an append whose COMMIT lost its answer is
 * looked for and, when it is certainly not there, appended again; `done` comes when the truth is known. While the
 * database is away appends wait.
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

/* What an engine knows to have been acknowledged to it, and to have been called. Sagas and calls may
 * stand in it twice. */
struct known_work {
    struct arena *arena; /* in: for what follows */
    struct known_saga {
        struct saga_id id;
        uint64_t seq; /* up to this record, under an epoch not above `epoch` */
        int64_t epoch;
    } * sagas;
    size_t saga_count;
    struct known_call {
        struct saga_id saga; /* stands among the sagas, too */
        struct op_key key;
        uint32_t attempts;
        enum effect effect;
        struct slice tool; /* SLICE_NONE: not known any more */
    } * calls;
    size_t call_count;
    size_t left_out;        /* sagas and calls that were too many */
    int64_t calls_since_ms; /* of sagas that left memory, calls are known from here on; 0: all */
};

struct store_options {
    const char *dsn;
    int writers;      /* connections for appends; more than two at once only while a full batch waits. default 4 */
    int readers;      /* default 2 */
    size_t batch_max; /* turns in one transaction; default 500 */
    size_t second_batch_min; /* another batch leaves while one is under way only when so many wait, or a quarter of a
                              * crowd (append.c); default 200 */
    int64_t key_look_ms;     /* small bundles of keys are put together after so long (keys.c); default 300000 */
    int64_t answer_ms;       /* an append that is not answered for so long: its connection is given up; default 10 s */
    bool risk_losing_acknowledged_work; /* accept fsync=off and its like */
    /* connected, checked, schema in order; again after each loss */
    void (*on_ready)(struct store *store, void *context);
    /* the database does not answer; it is tried again */
    void (*on_away)(struct store *store, const struct err *err, void *context);
    /* the database lacks what it had confirmed: say in the log what may be lost with this process. May be NULL */
    void (*on_rewound)(struct store *store, void *context);
    /* it is about to be told what we know and it may not: fill `out`. May be NULL */
    void (*on_know)(struct store *store, struct known_work *out, void *context);
    /* what we knew was lost, and a person has accepted that: every shard is lost next, and taken anew. May be NULL */
    void (*on_history)(struct store *store, void *context);
    /* it answers, and sagad must not run on it: too old, not durable, other schema */
    void (*on_refused)(struct store *store, const struct err *err, void *context);
    void *context;
};

struct store *store_open(struct loop *loop, const struct store_options *options);
void store_close(struct store *store, void (*on_closed)(void *context), void *context);
bool store_is_ready(const struct store *store);
/* It is away because it hung: connections waited for an answer and were given up, and none has come up since. */
bool store_has_hung(const struct store *store);
/* What is not refused, and yet may lose acknowledged work one day; NULL: nothing is known. */
const char *store_warning(const struct store *store);
size_t store_appends_waiting(const struct store *store); /* and under way */

/* --- append: one turn of one saga --- */

struct append_start { /* with the first turn */
    struct slice namespace, saga_name, tags /* JSON or none */;
    struct slice started_by; /* whose token it was; SLICE_NONE: nobody's, as of a follower */
    uint32_t version;
    struct slice business_id;      /* SLICE_NONE: none */
    struct digest business_digest; /* of namespace, saga name and business id */
    bool has_key; /* the request had an Idempotency-Key; without an id of its own that is the business id, too */
    struct digest key_digest;   /* then: of namespace, saga name and key */
    struct digest input_digest; /* canonical input */
};

struct append_escalation { /* a record escalation.opened or .resolved of this turn */
    uint64_t number;
    bool opened; /* else resolved */
    struct slice step, reason, body /* JSON of the escalation as the API shows it */;
};

struct append_approval { /* opened (step.waiting for a person), decided, or over without a decision in this turn */
    uint64_t number;
    bool opened; /* else it ends; with the status "open" it goes on, and has more time */
    struct slice step, status /* "open" "approved" "refused" "expired" "cancelled" */,
        body /* JSON of the approval as the API shows it */;
    int64_t expires_ms; /* 0: never */
};

struct append_follower { /* an inbox row "start", in the same transaction */
    uint32_t shard;
    struct saga_id saga;  /* the id that it will have, unless its business id is taken */
    struct uuid input;    /* id of the inbox row */
    struct slice payload; /* JSON, as run/exchange/delivery.c reads a start */
};

struct append {
    struct saga_id saga;
    struct slice namespace;
    uint32_t shard;
    int64_t epoch; /* of the lease under which the turn was decided */
    int64_t at_ms;
    uint64_t first_seq;
    uint32_t record_count;
    struct slice payload;          /* JSON array of the records' text forms; borrowed until done */
    const struct op_key *new_keys; /* operations that this turn makes known for the first time */
    uint32_t new_key_count;
    const struct append_start *start; /* NULL but for the first turn */
    bool status_changed;              /* status below is not what it was before the turn */
    enum saga_status status;
    /* set with a status change; false with one takes ended_at back: a run that was woken */
    bool ended;
    /* a woken run is unfinished although it is old: recovery finds it in the table awake */
    enum { AWAKE_AS_IT_WAS, AWAKE_ADD, AWAKE_REMOVE } awake;
    int64_t started_ms; /* of the saga */
    const struct append_escalation *escalations;
    uint32_t escalation_count;
    const struct append_approval *approvals;
    uint32_t approval_count;
    const struct append_follower *followers; /* with the end of the saga */
    uint32_t follower_count;
    bool unparks; /* the saga has a row in due 'parked': removed, and put into awake instead (or not, where it ended) */
    bool releases_locks; /* with the end of a saga that wanted some: whoever is next in line gets
                          * an inbox row "locked" */
    int64_t forget_ms;   /* with the end: when retention is over; 0: never */
    bool never_due; /* with forget_ms, and not with a start: no row in due can be of it. Cheaper; a mistake is mended */
    bool from_inbox; /* removes this inbox row in the same transaction */
    struct uuid inbox_id;

    /*
     * out: ERR_OK; ERR_FENCED (another engine owns the shard, or wrote at this place of the log); ERR_CONFLICT (start:
     * the business id is taken); ERR_DECIDED (from_inbox: this input was consumed before); ERR_CORRUPT (refused as
     * data); ERR_STOPPING (store_close(): nobody knows). Of all but ERR_OK and ERR_STOPPING nothing happened.
     */
    enum err_code code;
    struct err err;               /* out */
    struct saga_id existing;      /* out, with ERR_CONFLICT */
    struct digest existing_input; /* out, with ERR_CONFLICT */
    bool existing_other_id; /* out, with ERR_CONFLICT: that saga has the key of this start, and another business id */
    void (*done)(struct append *append);

    struct list_link link; /* the store's */
    int tries;             /* the store's: size of the group that is tried apart */
    uint32_t history;      /* the store's: by which history it was decided */
    int64_t since_boot_ms; /* the store's: when it came */
};

/* At most one append of a saga may be under way. Appends ready in the same turn of the loop share a commit. */
void store_append(struct store *store, struct append *append);

int64_t store_append_lag_ms(const struct store *store); /* how long the oldest append has been waiting; 0: none */

/*
 * --- leases ---
 *
 * A lease is ours while its row has our epoch; `on_lost` comes when the row says otherwise, or an append was fenced.
 * That the deadline has passed (lease_allows_send() is false: nothing may leave) does not end it: without the database
 * nobody can have taken it, and the outcomes of calls under way can still be appended when it is back.
 */

struct leases;

struct engine_lags {    /* what an engine says of itself in the table of engines */
    int64_t append_ms;  /* how long the oldest append has been waiting */
    int64_t due_ms;     /* by how much the oldest parked saga is overdue */
    int64_t inbox_rows; /* it is at work on */
};

/*
 * Shards are shared fairly: each engine takes up to its share of those that are free, and gives away what it has beyond
 * that (on_surplus, leases_give()). Engines that leave, and standbys beside one that is none, have no share.
 */
struct lease_options {
    int64_t ttl_ms;          /* default 10 s; renewed each third of it */
    int64_t margin_ms;       /* sends stop so long before the end; default a fifth */
    const char *engine_name; /* shown to people */
    const char *version;     /* of the program; shown to people */
    bool standby;            /* takes shards only while no engine lives that is no standby; then all that are free */
    /*
     * After each renewal: so many shards are beyond our share, 0 most of the time. The owner chooses which, and calls
     * leases_give() for each as soon as nothing of it is under way. NULL: nothing is given away.
     */
    void (*on_surplus)(size_t count, void *context);
    void (*lags)(struct engine_lags *out, void *context);            /* may be NULL */
    void (*on_gained)(uint32_t shard, int64_t epoch, void *context); /* load its sagas */
    /* drop its sagas at once, write nothing; not after leases_release() */
    void (*on_lost)(uint32_t shard, int64_t epoch, void *context);
    /*
     * Asked at each renewal: no unfinished saga of this shard has an id made before this instant, also none that could
     * not be read. Recovery never looks further back. 0: not known, the mark stays. It does not move either before
     * store_load_shard() has ended.
     */
    int64_t (*oldest_unfinished_ms)(uint32_t shard, void *context);
    void *context;
};

struct leases *leases_start(struct store *store, const struct lease_options *options);
/* gives all up: another engine can take over at once */
void leases_release(struct leases *leases, void (*done)(void *context), void *context);
/* Others count without us from now on, and nothing is taken any more; what we hold stays ours until it is given. */
void leases_leave(struct leases *leases);
/* Its sagas have left memory and nothing of it is under way: another engine may have it. on_lost does not follow. */
void leases_give(struct leases *leases, uint32_t shard);
bool lease_is_held(const struct leases *leases, uint32_t shard, int64_t *epoch);
int64_t lease_last_epoch(const struct leases *leases, uint32_t shard); /* whoever holds it, as last read */
/* Our last word with the database is younger than a lease. False: it hangs, or is away; others may have taken over what
 * was ours. */
bool leases_are_current(const struct leases *leases);
/* Why they are not, or why nothing could be taken yet: the last thing that went wrong on their connection; ERR_OK:
 * nothing did. */
const struct err *leases_reason(const struct leases *leases);
/* reads CLOCK_BOOTTIME now; ask right before a call leaves */
bool lease_allows_send(const struct leases *leases, uint32_t shard);
/*
 * For so long after on_gained() the engine that had it before may still believe that it may send: its lease was over by
 * the database's clock, and that clock may have stepped. 0: it gave the shard away, or is known to have ended.
 */
int64_t lease_doubt_ms(const struct leases *leases, uint32_t shard);
/* Was it taken from a process that certainly has ended? An owner whose lease is over may only stand still. */
bool lease_owner_died(const struct leases *leases, uint32_t shard);
/* an append was refused: on_lost follows */
void leases_report_fenced(struct leases *leases, uint32_t shard, int64_t epoch);
/* array of {engine, shards, epoch range, expires_at} from the table as last read */
void leases_write_json(struct leases *leases, struct buffer *out);

/* --- loading the unfinished sagas of a shard --- */

struct stored_turn {
    uint64_t first_seq;
    int64_t at_ms;
    struct slice payload; /* borrowed during the callback, or in the request's arena */
};

struct shard_load {
    uint32_t shard;
    void (*on_saga)(struct shard_load *load, struct saga_id id, struct slice namespace, const struct stored_turn *turns,
                    size_t count);
    /* before `done`: a call that was made, and that the log may not have (history.c); may come twice. May be NULL */
    void (*on_forgotten)(struct shard_load *load, const struct op_key *key, uint32_t attempts);
    void (*done)(struct shard_load *load);
    enum err_code code;             /* out */
    struct err err;                 /* out */
    uint64_t escalation_number_max; /* out: the highest number this shard has given */
    uint64_t approval_number_max;   /* out: the same */
    int64_t escalations_open;       /* out: of this shard */
    bool is_awake;                  /* out, during on_saga: this one stands in the table awake */
    void *context;
    void *internal;
};
void store_load_shard(struct store *store, struct shard_load *load);

/* --- inbox: inputs from outside that reached an engine which does not own the shard --- */

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
    struct inbox_row row; /* in; id may be nil, then it is made */
    bool once;            /* in; see below */
    enum err_code code;
    struct err err;
    void (*done)(struct inbox_put *put);
    void *internal;
};
/* Durable when done; the owner is notified. Should the answer be lost it is put again: it may then arrive twice, under
 * one id. With `once` it is not, and ends with ERR_LOST_COMMIT: it is there, or was and is consumed, or never came. */
void store_inbox_put(struct store *store, struct inbox_put *put);

/* `on_rows` is called with rows of shards in `shards` (a bit set) when there are some: after a notification, and by a
 * slow poll. Rows come again until consumed by an append or store_inbox_drop(). */
void store_inbox_watch(struct store *store, uint64_t shards,
                       void (*on_rows)(const struct inbox_row *rows, size_t count, void *context), void *context);
/* its input was refused or came too late; ignored while an append is about to consume it */
void store_inbox_drop(struct store *store, uint32_t shard, const struct uuid *id);

/*
 * --- answers: what an owner says to an input of the inbox that another engine's caller waits for ---
 *
 * Written by the owner, once, and read (and removed) by whoever put the input. An answer that nobody fetches is removed
 * after ten minutes.
 */
struct answer_put {
    uint32_t shard;
    struct uuid input; /* id of the inbox row */
    struct slice body; /* JSON; borrowed until done */
    bool drop_input;   /* the input was refused: remove the inbox row in the same transaction */
    /* out: ERR_OK, ERR_STORE (refused), ERR_STOPPING; while the database is away it waits */
    enum err_code code;
    void (*done)(struct answer_put *put); /* may be NULL */
    struct list_link link;                /* the store's */
};
/* an input that an append is about to consume is not dropped */
void store_answer_put(struct store *store, struct answer_put *put);

struct answer_wait {       /* lies in the waiter; on_answer comes once, unless it is removed before */
    struct list_link link; /* the store's */
    uint32_t shard;
    struct uuid input;
    void (*on_answer)(struct answer_wait *wait, struct slice body); /* body is borrowed during the call */
};
/* Begin before the input is put: a notification from before it waited is not heard, and the poll behind it takes a
 * second. */
void store_answer_wait(struct store *store, struct answer_wait *wait);
void store_answer_stop(struct store *store, struct answer_wait *wait); /* a no-op when it does not wait */

/* --- reads; each answers in the arena of its request --- */

struct store_read {
    struct arena *arena;
    enum err_code code; /* out: ERR_OK, ERR_NOT_FOUND, ERR_STORE */
    struct err err;     /* out */
    void (*done)(struct store_read *read);
    void *context;
    void *internal;
};

struct list_engines { /* the tables of engines and shards, as they are now */
    struct store_read read;
    struct engine_row {
        struct slice instance, identity, name, version;
        int schema;
        bool standby, leaving;
        int64_t started_ms, left_ms; /* left: by the database's clock; below 0: its time is over */
        struct engine_lags lags;
    } * rows;
    size_t count;
    struct shard_row {
        int64_t epoch, left_ms;
        struct slice identity; /* of whoever holds it; SLICE_NONE: nobody */
    } shards[SHARD_COUNT];
};
void store_list_engines(struct store *store, struct list_engines *list);

struct saga_row { /* of the table saga */
    struct saga_id id;
    struct slice namespace, saga_name, business_id, tags;
    uint32_t version;
    enum saga_status status;
    int64_t created_ms, updated_ms, ended_ms /* 0: not ended */;
    struct digest input_digest;
};

struct read_saga { /* the row and the whole log of a saga; ERR_NOT_FOUND also for another namespace */
    struct store_read read;
    struct saga_id id;         /* in */
    struct slice namespace;    /* in */
    uint64_t after_seq;        /* in: turns that hold a record beyond this */
    size_t turns_max;          /* in; 0: all */
    struct saga_row row;       /* out */
    struct stored_turn *turns; /* out */
    size_t turn_count;         /* out */
};
void store_read_saga(struct store *store, struct read_saga *read);

struct find_saga { /* by business id */
    struct store_read read;
    struct digest business_digest; /* in */
    uint32_t shard;                /* in */
    struct saga_id id;             /* out */
    struct digest input_digest;    /* out */
};
void store_find_saga(struct store *store, struct find_saga *find);

struct find_operation { /* which saga has this key */
    struct store_read read;
    struct op_key key;      /* in */
    struct slice namespace; /* in */
    struct saga_id id;      /* out */
};
void store_find_operation(struct store *store, struct find_operation *find);

struct find_input { /* ERR_OK: the row is still in the inbox; ERR_NOT_FOUND: it was consumed or dropped */
    struct store_read read;
    uint32_t shard; /* in */
    struct uuid id; /* in */
};
void store_find_input(struct store *store, struct find_input *find);

struct list_sagas { /* newest first */
    struct store_read read;
    struct slice namespace;              /* in */
    bool has_status;                     /* in */
    enum saga_status status;             /* in */
    struct slice saga_name, business_id; /* in; SLICE_NONE: any */
    struct slice tag_name, tag_value;    /* in */
    int64_t since_ms, until_ms;          /* in; 0: any */
    bool without_runs;                   /* in: leave "~run" out */
    struct uuid before;                  /* in; nil: from the newest */
    bool has_ids;                        /* in: only ids from first_id to last_id */
    struct uuid first_id, last_id;       /* in */
    size_t limit;                        /* in */
    struct saga_row *rows;               /* out */
    size_t count;                        /* out */
};
void store_list_sagas(struct store *store, struct list_sagas *list);

/* What a person is asked: an escalation wants somebody to act, an approval a yes or no. A table each. */
enum question_kind { QUESTION_ESCALATION, QUESTION_APPROVAL };

struct question_row {
    uint64_t number;
    struct saga_id saga;
    struct slice body; /* JSON of the question itself */
    bool open;
    int64_t opened_ms;
    struct slice saga_name, business_id, tags, started_by; /* of its saga; SLICE_NONE: it has none */
};
/* Which of them: what is empty, zero or SLICE_NONE fits all. Of `tools` to `errors` one is wanted; an empty text fits
 * what has none. Texts lie in the arena of the read. */
struct question_filter {
    const struct slice *statuses, *tools, *sagas, *steps, *reasons, *errors;
    size_t status_count, tool_count, saga_count, step_count, reason_count, error_count;
    const struct slice *tags; /* JSON objects of texts: the tags of its saga hold one of them */
    size_t tag_count;
    int64_t since_ms, until_ms; /* opened, the second left out */
    bool has_cost;
    int64_t cost_above; /* with has_cost */
};

struct question_grouping {
    bool tool, saga, step, reason, error; /* by which of these */
    const struct slice *tags;             /* and by the values of these tags */
    size_t tag_count;
};

struct question_group { /* what it is not grouped by is SLICE_NONE, and so is what its members have none of */
    struct slice tool, saga, step, reason, error;
    struct slice tags; /* JSON array in the order of the grouping, null: none; SLICE_NONE: grouped by none */
    uint64_t count, costless /* cost nothing that is known */;
    int64_t oldest_ms, newest_ms;
    int64_t cost; /* the sum, in micros */
};

#define QUESTIONS_LOOKED_AT 20000 /* for one list; see `edge` */

struct list_questions { /* newest first; or one by number; or in groups, the largest first */
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
    size_t looked_max;                  /* in; 0: QUESTIONS_LOOKED_AT */
    struct question_row *rows;          /* out */
    struct question_group *groups;      /* out */
    size_t count;                       /* out, of either */
    bool has_edge;                      /* out: older ones were not looked at. The last that was: */
    int64_t edge_ms;                    /* out */
    uint64_t edge;                      /* out; not of groups */
};
void store_list_questions(struct store *store, struct list_questions *list);

/*
 * An escalation of which no log tells, opened (resolved_ms is 0) or resolved, where the shard is at its epoch. A saga
 * has one open case "unreadable" at most: `stands_as` is then the number of the one that is there. A repeat changes
 * nothing.
 */
struct case_put {
    struct store_read read;
    uint32_t shard;                       /* in; the number's: number modulo SHARD_COUNT */
    int64_t epoch;                        /* in */
    uint64_t number;                      /* in */
    struct saga_id saga;                  /* in; may lie in another shard */
    struct slice namespace, reason, body; /* in */
    int64_t opened_ms, resolved_ms;       /* in */
    struct uuid input;                    /* in: this row of the inbox is removed in the same transaction; nil: none */
    bool ends_saga;                       /* in: the saga, of this shard, is abandoned; its locks are given on */
    uint64_t stands_as;                   /* out; 0: nothing was written, because ... */
    bool fenced, decided;                 /* out: ... another engine has the shard; it was resolved before */
};
void store_case_put(struct store *store, struct case_put *put);

struct version_row {
    struct slice name;
    uint32_t version;
    int64_t unfinished;
};
struct count_versions { /* how many unfinished sagas of each version of each definition; versions without one are left
                           out */
    struct store_read read;
    struct slice namespace;   /* in */
    struct version_row *rows; /* out */
    size_t count;             /* out */
};
void store_count_versions(struct store *store, struct count_versions *count);

/* By status, over a namespace; runs are not counted. All that are unfinished, and the ended ones that started since
 * `since_ms`. */
struct count_sagas {
    struct store_read read;
    struct slice namespace;
    uint32_t newest;  /* of a shard, and of all namespaces: before that many no ended saga is looked for */
    int64_t since_ms; /* in, and out: later if a shard has more than `newest` since */
    int64_t counts[SAGA_STATUS_COUNT]; /* out */
};
void store_count_sagas(struct store *store, struct count_sagas *count);

/*
 * --- due: sagas that left memory while they wait, and ended ones that are to be forgotten ---
 */

struct park { /* fenced; after ERR_OK recovery does not load the saga any more: its due time, or mail, does. Many share
                 a transaction */
    struct saga_id saga;
    uint32_t shard;
    int64_t epoch;
    int64_t due_ms;     /* INT64_MAX: nothing but mail moves it */
    bool awake;         /* it stands in the table awake: removed */
    enum err_code code; /* out: ERR_OK, ERR_FENCED, ERR_STORE (refused), ERR_STOPPING */
    void (*done)(struct park *park);
    struct list_link link; /* the store's */
};
void store_park(struct store *store, struct park *park);

struct due_row {
    struct saga_id saga;
    uint32_t shard;
    struct slice namespace;
    bool forget;   /* else it is parked, and its time has come */
    int64_t at_ms; /* when it was due */
};
struct due_take { /* reads, changes nothing: the first append of a saga removes its row */
    struct store_read read;
    uint64_t shards; /* in: bit set */
    int64_t now_ms;  /* in: the engine's clock */
    size_t limit,
        forget_limit; /* in: of those that are parked, and of those that are forgotten; 0: of these nothing is told */
    struct due_row *rows; /* out: those that are due, the parked before the others */
    size_t count;         /* out */
    bool more;            /* out: there may be more than the limits allow */
    int64_t next_ms;      /* out: when the next one is that is not; INT64_MAX: none */
};
void store_due_take(struct store *store, struct due_take *take);

/*
 * Removes an ended saga whose retention is over: its log, its keys, its row, escalations, approvals. Fenced; a no-op
 * when it is gone. Those asked for in one turn of the loop share a transaction, up to 500. One that the database
 * refuses for itself has been told of in the log and is due again in an hour; the others are removed.
 */
struct forget {
    struct saga_id saga;
    uint32_t shard;
    int64_t epoch;
    enum err_code code; /* out: ERR_OK, ERR_FENCED, ERR_STORE (refused), ERR_STOPPING */
    void (*done)(struct forget *forget);
    struct list_link link;
};
void store_forget(struct store *store, struct forget *forget);

/*
 * --- schedules ---
 *
 * People change them through any engine; the owner of the shard moves them, fenced, and only as it has read them.
 */

struct schedule_row {
    uint32_t shard;
    struct slice namespace, name;
    struct uuid id;
    int64_t revision;
    struct slice body, state, actor; /* JSON, JSON (core/schedule/schedule.h) and text */
    struct slice hold;               /* JSON; SLICE_NONE: nobody holds it */
    int64_t created_ms, last_ms;
    struct slice offsets; /* of its time zone, for zone_read_offsets(); SLICE_NONE: it has none, or nobody knows it */
};

enum schedule_put_outcome { SCHEDULE_TOO_MANY = -1, SCHEDULE_OTHER = 0, SCHEDULE_MADE = 1, SCHEDULE_SAME = 2 };
struct schedule_put {
    struct store_read read;
    uint32_t shard;                            /* in */
    struct slice namespace, name, body, actor; /* in */
    struct slice zone;                         /* in; SLICE_NONE: none */
    struct uuid id;                            /* in */
    size_t max;                                /* in: schedules of a namespace */
    enum schedule_put_outcome outcome;         /* out */
};
void store_schedule_put(struct store *store, struct schedule_put *put);

struct schedule_list { /* by name; or the one with a name, ERR_NOT_FOUND */
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
    struct slice hold;            /* in: JSON, or SLICE_NONE, which releases it */
    bool removes;                 /* in: it is deleted instead */
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
    struct schedule_row *rows;  /* out: those that are due */
    size_t count;               /* out */
    int64_t next_ms;            /* in: INT64_MAX; out: when the next one is that is not */
};
void store_schedule_take(struct store *store, struct schedule_take *take);

struct schedule_move {
    struct store_read read;
    const struct schedule_row *row; /* in: as it was read */
    int64_t epoch;                  /* in */
    int64_t revision;               /* in: of the row; out, when it moved: the new one */
    int64_t last_ms, look_ms;       /* in */
    struct slice state;             /* in: JSON */
    bool fenced, moved;             /* out: another engine has the shard; it was as it was read */
};
void store_schedule_move(struct store *store, struct schedule_move *move);

/* One was made or released: something may be due. */
void store_watch_schedules(struct store *store, void (*changed)(void *context), void *context);

/*
 * --- figures over time ---
 *
 * Every engine adds what it has counted; the parts of all engines add up.
 */
enum series_kind { SERIES_SAGA, SERIES_TOOL, SERIES_KIND_COUNT };

/* The columns of the table, and the members of the API. */
#define SERIES_FIGURES(X)                                                                                              \
    X(STARTED, "started")                                                                                              \
    X(COMPLETED, "completed")                                                                                          \
    X(COMPENSATED, "compensated")                                                                                      \
    X(ABANDONED, "abandoned")                                                                                          \
    X(ESCALATED, "escalated") /* the last one of a saga; those of a tool follow */                                     \
    X(OPERATIONS, "operations")                                                                                        \
    X(CALLS, "calls")                                                                                                  \
    X(RETRIES, "retries")                                                                                              \
    X(CALLS_COMPLETED, "calls_completed")                                                                              \
    X(CALLS_FAILED, "calls_failed")                                                                                    \
    X(CALLS_UNKNOWN, "calls_unknown")                                                                                  \
    X(DUPLICATES, "duplicates")
#define X(id, name) SERIES_##id,
enum series_figure { SERIES_FIGURES(X) SERIES_FIGURE_COUNT };
#undef X

struct series_row {
    struct slice namespace, name;
    enum series_kind kind;
    int64_t at_ms;
    int64_t figures[SERIES_FIGURE_COUNT];
};

struct series_add {
    struct store_read read;
    struct uuid part;              /* in: a part that was added before is not added again */
    int64_t at_ms;                 /* in: the minute of all rows */
    const struct series_row *rows; /* in: a saga or a tool stands there once */
    size_t count;                  /* in */
};
void store_series_add(struct store *store, struct series_add *add);

struct series_roll { /* minutes become hours, and old hours are deleted; by two engines at once does no harm */
    struct store_read read;
    int64_t minutes_before_ms, hours_before_ms; /* in */
    size_t limit;                               /* in: rows of each */
    int64_t rolled, dropped;                    /* out: rows; as many as `limit`: there may be more */
};
void store_series_roll(struct store *store, struct series_roll *roll);

struct series_list { /* in order of time and name */
    struct store_read read;
    struct slice namespace;    /* in */
    bool by_hour;              /* in; else by the minute */
    int64_t from_ms, until_ms; /* in */
    enum series_kind kind;     /* in; SERIES_KIND_COUNT: all of the namespace put together, without names */
    struct slice name;         /* in; SLICE_NONE: any */
    size_t limit;              /* in */
    struct series_row *rows;   /* out */
    size_t count;              /* out */
};
void store_series_list(struct store *store, struct series_list *list);

/*
 * --- locks on business keys ---
 *
 * Who came first holds it. Asking again for a key that the saga is in line for already takes nothing twice, so that a
 * restart simply asks again.
 */
struct lock_take {
    struct store_read read;
    struct slice namespace, key; /* in */
    struct saga_id saga;         /* in */
    uint32_t shard;              /* in: of the saga */
    bool fails;                  /* in: do not stand in line */
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
    enum reading reading; /* out; a version that is made gets the newest */
    struct digest identity;
    int64_t created_ms;
};
struct load_definitions { /* all of them, or those of one name: the engine keeps them in memory */
    struct store_read read;
    struct definition_row *rows; /* out */
    size_t count;                /* out */
};
void store_load_definitions(struct store *store, struct load_definitions *load);

struct put_definitions { /* all or nothing; a new version where the identity differs from the newest one's, or the
                            reading is newer */
    struct store_read read;
    struct definition_row *rows; /* in; out: version */
    bool *created;               /* out: one a row */
    size_t count;
};
void store_put_definitions(struct store *store, struct put_definitions *put);
/* another engine registered some */
void store_watch_definitions(struct store *store, void (*changed)(void *context), void *context);

/* --- blocking: `sagad migrate` and start-up --- */

/* Bring the schema up to date: forward only, under an advisory lock, safe to run twice and by two at once. Reports each
 * step to `progress`, may be NULL. */
MUST_USE enum err_code migrate(const char *dsn, void (*progress)(const char *line), struct err *err);

#endif
