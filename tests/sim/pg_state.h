/*
 * The inside of the simulated PostgreSQL: rows with their versions, sessions with their transaction, locks, waits. Only
 * pg*.c use this file.
 *
 * A process has one server, and the next run uses its memory again. A commit is a counted number; a snapshot is the
 * number of the last commit that it shows.
 */
#ifndef SAGAD_TESTS_SIM_PG_STATE_H
#define SAGAD_TESTS_SIM_PG_STATE_H

#include "tests/sim/db_values.h"
#include "tests/sim/pg_call.h"

enum { PG_SESSIONS_MAX = 128, PG_LISTENS_MAX = 16, PG_NAME_BYTES = 96, PG_DEADLOCK_US = 1000000 };

/* --- rows --- */

struct pg_version {
    struct pg_version *older;
    struct pg_version *written; /* the version that the same transaction wrote before */
    struct pg_row *row;
    struct pg_session *owner; /* the session whose open transaction wrote this version; NULL: committed */
    uint64_t commit;
    uint32_t command; /* number of the command in that transaction */
    bool gone;        /* the row was deleted: no data; the deleted row is the version below */
    _Alignas(max_align_t) unsigned char data[];
};

struct pg_row {
    struct pg_row *previous, *next; /* neighbours in the order of keys */
    struct pg_version *newest;      /* NULL: see `kept` */
    const void *key;                /* points into the data of one of its versions, or of `kept` */
    struct pg_version *kept;        /* for a row without versions: its writer waits, and holds the key */
    struct pg_row_lock *locks;
    enum pg_table table;
};

struct pg_row_lock {
    struct pg_row_lock *next;      /* of the row */
    struct pg_row_lock *next_held; /* the next lock of the session */
    struct pg_row *row;
    struct pg_session *session;
    enum pg_lock_mode mode;
    bool is_written; /* a waiting statement wrote the row; the write is taken back until it runs again */
};

struct pg_rows { /* one table */
    struct pg_row **sorted;
    size_t count, capacity;
    struct pg_version *spare;
};

struct pg_commit { /* a commit that may still be taken back */
    uint64_t number;
    int64_t at_us;
    struct pg_version *written;
    bool flushed; /* this commit and all before it are flushed */
};

struct pg_epoch { /* of a shard */
    struct pg_epoch *before;
    int64_t epoch, since_us;
    uint64_t commit;
};

/* --- sessions --- */

struct pg_work { /* a transaction as it was submitted */
    struct pg_work *next;
    struct pg_work *all; /* the next of all transactions */
    struct arena arena;
    struct pg_query {
        pg_statement *run;
        struct db_args *args;
    } * queries;
    size_t count;
    bool part; /* the COMMIT never comes */
};

enum pg_wait { PG_WAIT_NOTHING, PG_WAIT_ROW, PG_WAIT_TRANSACTION, PG_WAIT_ADVISORY };

enum pg_phase {
    PG_IDLE,
    PG_STATEMENT, /* the step executes queries[next] */
    PG_WAITING,   /* the statement waits for a lock */
    PG_STUCK,     /* the rest of the transaction never comes */
    PG_COMMIT,
    PG_LATE_COMMIT /* the client is gone */
};

struct pg_notice {
    struct pg_notice *next;
    struct slice channel, payload;
};

struct pg_session {
    struct pg *pg;
    struct pg_session *spare;
    size_t place; /* index in pg->sessions */
    int pid;
    int64_t started_us;
    char application_name[PG_NAME_BYTES];
    const struct pg_client *client; /* NULL: gone, and the server has not noticed, or finishes its work */
    void *context;
    int64_t lock_timeout_us, statement_timeout_us, idle_timeout_us; /* 0: none */
    char listens[PG_LISTENS_MAX][64];
    size_t listen_count;
    struct event step, alarm, end;
    struct pg_work *first, *last;
    bool busy, ending; /* busy: the step is running; ending: the session was ended meanwhile */
    bool told;         /* the client knows that the session ends */

    /* --- the transaction --- */
    enum pg_phase phase;
    uint64_t transaction; /* the number of the transaction; 0: none */
    int64_t tx;           /* the result of pg_tx(); 0: none yet */
    size_t query;
    uint32_t command; /* the command that writes now; it sees writes of earlier commands */
    struct pg_version *written;
    struct pg_row_lock *held;
    struct pg_notice *notices, *last_notice;
    struct pg_advisory *advisory; /* locks of the transaction and of the session */
    bool asynchronous;

    /* --- the statement --- */
    struct db_rows *result;
    int64_t began_us;
    uint32_t first_command;
    uint64_t snapshot;   /* now */
    int64_t edge;        /* the result of pg_edge() with that snapshot */
    uint64_t *snapshots; /* all snapshots of this statement, for its next try */
    size_t snapshot_count, snapshot_index, snapshot_capacity;
    struct pg_notice *last_notice_before;
    struct pg_row *conflict; /* the row that an insert of this statement met */
    struct pg_row **met;     /* the row that each insert with ON CONFLICT met, for the next try; NULL: decide again */
    size_t met_count, met_index, met_capacity;

    /* the wait */
    enum pg_wait wait;
    struct pg_session *wait_previous, *wait_next; /* neighbours in the order of arrival */
    bool in_line, woken, deadlock_checked;
    int64_t waits_since_us;
    struct pg_row *wait_row;
    enum pg_lock_mode wait_mode;
    struct pg_session *wait_session;
    uint64_t wait_transaction;
    uint64_t wait_changed; /* the last commit that changed the row */
    bool out_of_order;     /* the row changed during the wait: PostgreSQL has no line for the new version */
    struct pg_advisory *wait_advisory;
    uint32_t visit; /* a mark for the search for a deadlock */
};

struct pg_advisory {
    struct pg_advisory *next; /* the next lock in the bucket */
    struct pg_advisory *next_held;
    int64_t class, object;
    struct pg_session *holder; /* NULL: free */
    uint32_t session_count;    /* how often the session took the lock */
    bool of_transaction;       /* the transaction took the lock, too */
};

enum { PG_ADVISORY_BUCKETS = 256, PG_CACHE = 256 };

struct pg {
    struct arena arena; /* ends with the run; one block of it is kept */
    bool up;
    struct event back;
    int64_t clock_offset_ms, slow_us;
    void (*full)(void); /* called for each insert that finds no room; NULL: the disk has room */
    int timeline;
    int last_pid;
    uint64_t commits, transactions;
    int64_t last_tx;
    struct pg_rows tables[PG_TABLE_COUNT];
    struct pg_row *spare_row;
    struct pg_row_lock *spare_lock;
    struct pg_session *sessions[PG_SESSIONS_MAX];
    size_t session_count;
    struct pg_session *spare_session;
    struct pg_work *spare_work, *all_works;
    struct pg_session *line, *line_end; /* waiting sessions in the order of arrival */
    struct pg_advisory *advisory[PG_ADVISORY_BUCKETS];
    struct pg_commit *recent; /* a ring of the commits that may be taken back */
    size_t recent_first, recent_count, recent_capacity;
    size_t confirmed;            /* the number of confirmed commits in `recent` */
    struct pg_epoch *epochs[64]; /* newest first */
    uint32_t visits;
    struct {
        const struct db_statement *statement;
        pg_statement *run;
    } cache[PG_CACHE];
    enum commit_fate (*fate)(struct pg_session *session);
    void (*on_turn)(const struct committed_turn *turn);
    void (*on_lost)(const struct committed_turn *turn);
};

/* pg_key.c */
extern const size_t rows_bytes[PG_TABLE_COUNT];
const void *pg_committed(const struct pg_row *row); /* the data as it is committed now; NULL: there is no such row */
int rows_compare(enum pg_table table, const void *left, const void *right);

/* pg_row.c */
void rows_init(struct pg *pg);
void row_remove(struct pg *pg, struct pg_row *row); /* the row has no version any more, but its key can still be read */
void row_pop(struct pg *pg, struct pg_row *row);    /* takes back the newest version */
void version_free(struct pg *pg, struct pg_version *version);
uint64_t row_last_commit(const struct pg_row *row);
/* The row as it is now, committed by anybody or by our own transaction. NULL: the row that was seen is gone, or this
 * very statement has `changed` it. */
const void *row_now(const struct pg_session *session, const struct pg_row *row, bool *unseen, bool *changed);

/* One lock of the row is gone. */
void row_unlocked(struct pg *pg, struct pg_row *row);

/* pg_commit.c */
/* Takes back the writes of this command and of those after it. `keep`: the statement will write them again, and the
 * keys stay taken. */
void rows_undo(struct pg_session *session, uint32_t command, bool keep);
void rows_commit(struct pg_session *session, bool flushed, bool confirms);
void rows_forget(struct pg *pg); /* drops versions that nobody can see any more */
void rows_lose(struct pg *pg, int64_t since_us, bool by_crash);
/* pg_lock.c */
void session_number(struct pg_session *session); /* the session has a tx from now on */
int64_t edge_now(const struct pg *pg);           /* the oldest open tx; else the next tx */
void lock_take(struct pg_session *session, struct pg_row *row, enum pg_lock_mode mode);
/* Releases the locks of the transaction, or all locks. */
void locks_release(struct pg_session *session, bool of_session);
void locks_drop_of_row(struct pg *pg, struct pg_row *row);
void lock_mark_written(struct pg_session *session, struct pg_row *row);
bool lock_is_held(const struct pg_session *session, const struct pg_row *row, enum pg_lock_mode at_least);
/* Waits as the members of the wait say, which must be set; gives PG_WAIT. */
enum pg_progress lock_wait(struct pg_call *call, enum pg_wait wait);
void line_join(struct pg_session *session);
void line_leave(struct pg_session *session);
void line_wake(struct pg *pg);
bool line_has_cycle(struct pg_session *session);

/* pg_session.c */
void session_end(struct pg_session *session, bool tell); /* rolls back and ends the session */
void session_wake(struct pg_session *session);           /* the lock for which the session waits may be free */
void session_terminate(struct pg_session *session);      /* soon */
int64_t session_pause(struct pg *pg);                    /* the time until the next statement */

#endif
