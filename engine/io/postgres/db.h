/*
 * One PostgreSQL connection on the loop: libpq in pipeline mode, prepared statements, binary parameters and results.
 *
 * The unit is a transaction: some statements and one Sync. It ends in one of three ways, never in two:
 * DB_COMMITTED, DB_REFUSED (certainly nothing happened) or DB_UNKNOWN (sent, and the answer was lost: look before you
 * write again). Transactions of one connection run in the order submitted. What was submitted and not yet sent
 * when the connection is lost ends DB_REFUSED with ERR_STORE; what was sent ends DB_UNKNOWN (read-only ones:
 * DB_REFUSED).
 *
 * A COMMIT that comes back with a warning that it might not have been replicated is DB_UNKNOWN with ERR_LOST_COMMIT.
 *
 * A connection that lets the oldest of what was sent wait for `answer_ms` without a byte is given up: that is a loss
 * like any other. TCP alone does not notice it: a server that hangs, or waits for a standby, acknowledges what it gets.
 *
 * What is submitted while connecting waits for the end of that attempt; what is submitted after a loss, before the next
 * attempt, ends DB_REFUSED at once (but not inside db_submit()).
 */
#ifndef SAGAD_IO_POSTGRES_DB_H
#define SAGAD_IO_POSTGRES_DB_H

#include "base/arena.h"
#include "base/errors.h"
#include "base/id.h"
#include "io/loop/loop.h"

struct db;

enum db_state { DB_CONNECTING, DB_READY, DB_LOST, DB_CLOSED };

struct db_options {
    const char *dsn;              /* libpq connection string or URI; "" lets PG* variables and the service file speak */
    const char *application_name; /* shown in pg_stat_activity */
    const char *const *setup;     /* statements run on each new connection, NULL-terminated; may be NULL */
    int64_t answer_ms;            /* see above; 0: for ever. It bounds each statement of `setup`, too */
    bool reconnect;               /* keep trying with backoff (100 ms to 1 s, jittered) until db_close() */
    /* DB_READY, or DB_LOST with the reason: again for each attempt that failed. May call any function here. */
    void (*on_state)(struct db *db, enum db_state state, const struct err *err, void *context);
    void (*on_notify)(struct db *db, struct slice channel, struct slice payload, void *context); /* may be NULL */
    void *context;
}; /* copied by db_open() */

/*
 * Connecting happens on a worker thread; on_state follows. Keepalives and tcp_user_timeout are set on TCP connections.
 * Of several hosts that take writes the one with the newest timeline is chosen: an old primary that nobody has stopped
 * takes writes, too.
 */
struct db *db_open(struct loop *loop, const struct db_options *options);
/* Ends what is pending as a loss would, later in this turn, then frees it. Waits for nobody. on_closed may be NULL. */
void db_close(struct db *db, void (*on_closed)(void *context), void *context);
/* As if the connection had been lost, later in this turn; a no-op unless it is ready. */
void db_give_up(struct db *db, const struct err *reason);
bool db_was_unanswered(const struct db *db); /* the last loss came from `answer_ms` */
enum db_state db_state(const struct db *db);
int db_server_version(const struct db *db); /* 150018; 0 before ready */
int db_backend_pid(const struct db *db);
size_t db_pending(const struct db *db); /* transactions submitted and not done */

/* --- parameters, in binary; values are copied into the arena --- */

#define DB_ARGS_MAX 32 /* parameters of one query; an array is one */

enum db_type { DB_BOOL, DB_INT2, DB_INT4, DB_INT8, DB_UUID, DB_TEXT, DB_BYTEA, DB_TIMESTAMPTZ /* ms since 1970 */ };

struct db_args; /* in an arena */
struct db_args *db_args_new(struct arena *arena);
void db_arg_null(struct db_args *args, enum db_type type);
void db_arg_bool(struct db_args *args, bool value);
void db_arg_int2(struct db_args *args, int value);
void db_arg_int4(struct db_args *args, int32_t value);
void db_arg_int8(struct db_args *args, int64_t value);
void db_arg_uuid(struct db_args *args, const struct uuid *value);
void db_arg_text(struct db_args *args, struct slice value); /* SLICE_NONE: null */
void db_arg_bytea(struct db_args *args, struct slice value);
void db_arg_timestamptz(struct db_args *args, int64_t ms);
/* One-dimensional arrays: begin, then one call of db_item_* an element, then end. */
void db_array_begin(struct db_args *args, enum db_type type, size_t count);
void db_item_null(struct db_args *args);
void db_item_bool(struct db_args *args, bool value);
void db_item_int(struct db_args *args, int64_t value); /* INT2, INT4, INT8 */
void db_item_uuid(struct db_args *args, const struct uuid *value);
void db_item_bytes(struct db_args *args, struct slice value); /* TEXT, BYTEA; SLICE_NONE: null */
void db_item_timestamptz(struct db_args *args, int64_t ms);
void db_array_end(struct db_args *args);

/*
 * --- results, in binary ---
 * The types are those of db_type; what else a statement selects it casts: payload::text, count(*)::int4.
 */

struct db_rows; /* borrowed during the callback, and so are all slices from it */
size_t db_row_count(const struct db_rows *rows);
int64_t db_affected(const struct db_rows *rows);
bool db_is_null(const struct db_rows *rows, size_t row, int column);
int64_t db_int(const struct db_rows *rows, size_t row,
               int column); /* int2, int4, int8 by size; bool as 0/1; 0 for null */
struct uuid db_uuid(const struct db_rows *rows, size_t row, int column);
struct slice db_bytes(const struct db_rows *rows, size_t row,
                      int column); /* text, bytea; SLICE_NONE for null; borrowed */
int64_t db_timestamptz(const struct db_rows *rows, size_t row, int column); /* ms since 1970 */

/* --- transactions --- */

enum db_outcome { DB_COMMITTED, DB_REFUSED, DB_UNKNOWN };

/*
 * Prepared at its first use on each connection, right before the transaction that uses it: what it names must exist by
 * then. The types of its parameters are those of the first use.
 */
struct db_statement {
    const char *name; /* the name of the prepared statement; unique */
    const char *sql;  /* one statement */
    bool has_row;     /* the answer has a row, always: one without is no answer to it, and ends the connection */
};

struct db_query {
    const struct db_statement *statement;
    struct db_args *args; /* may be NULL */
    void (*on_rows)(struct db_query *query,
                    const struct db_rows *rows); /* may be NULL; called before the Sync: decide nothing final here */
    void *context;
};

struct db_transaction {
    struct list_link link;
    struct db_query *queries; /* borrowed until done */
    size_t count;
    bool read_only; /* a lost answer is DB_REFUSED: nothing can have happened */

    enum db_outcome outcome; /* out */
    char sqlstate[6];        /* out, "" when none */
    size_t failed_query;     /* out, with an SQL error: its index; `count` when the COMMIT itself failed */
    struct err err;          /* out: ERR_OK, ERR_STORE, ERR_LOST_COMMIT, or ERR_FENCED (SQLSTATE SG001, our fence) */
    void (*done)(struct db_transaction *transaction); /* exactly once, never inside db_submit() */
    void *context;
};

void db_submit(struct db *db, struct db_transaction *transaction);

/* The server refused a value (SQLSTATE class 22 or 23): the same again fails again. */
bool db_is_data_error(const struct db_transaction *transaction);

/* Blocking helpers for migrate, `sagad dev` and start-up checks, not for the loop. Text results. */
struct db_session;
MUST_USE enum err_code db_session_open(const char *dsn, const char *application_name, struct db_session **out,
                                       struct err *err);
void db_session_close(struct db_session *session); /* accepts NULL */
int db_session_server_version(const struct db_session *session);
/* Runs one or more statements (simple protocol); `on_row` may be NULL, gets each row's columns as
 * text (NULL for null). */
MUST_USE enum err_code db_session_run(struct db_session *session, const char *sql,
                                      void (*on_row)(void *context, int columns, const char *const *values),
                                      void *context, struct err *err);

#endif
