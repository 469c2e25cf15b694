/*
 * A statement of store/sql.c in the simulation: a function over tables. Only pg_*.c use this file.
 *
 * The function reads its arguments, looks at rows as its snapshot shows them, locks, writes, and puts its result. When
 * a lock is not free it passes PG_WAIT on: the server takes its writes back and keeps its locks. When the transaction
 * for which it waits has ended, the server calls it again from its beginning, with the same snapshot. So a statement is
 * written as if it never waited; RETURN_UNLESS_DONE must follow every pg_lock(), pg_insert() and pg_advisory().
 */
#ifndef SAGAD_TESTS_SIM_PG_CALL_H
#define SAGAD_TESTS_SIM_PG_CALL_H

#include "tests/sim/pg.h"
#include "tests/sim/pg_rows.h"

enum pg_progress { PG_DONE, PG_WAIT, PG_ERROR };

struct pg_call {
    struct pg *pg;
    struct pg_session *session;
    const struct db_args *args;
    struct db_rows *result;
    struct arena *arena;  /* memory that lasts until the transaction is over */
    const char *sqlstate; /* the error code with PG_ERROR */
};

typedef enum pg_progress pg_statement(struct pg_call *call);

/* Finds the function of a statement in the table of pg_statements.c. CHECK: it is there. */
pg_statement *pg_statement_of(const struct db_statement *statement);

#define RETURN_UNLESS_DONE(progress)                                                                                   \
    do {                                                                                                               \
        enum pg_progress progress_ = (progress);                                                                       \
        if (progress_ != PG_DONE) {                                                                                    \
            return progress_;                                                                                          \
        }                                                                                                              \
    } while (0)

/* --- arguments, from 0; the types are checked: a mismatch with the statement is a violation "SIM" --- */

bool arg_is_null(const struct pg_call *call, int arg);
int64_t arg_int(const struct pg_call *call, int arg); /* bool, int2, int4, int8 */
struct uuid arg_uuid(const struct pg_call *call, int arg);
struct slice arg_bytes(const struct pg_call *call, int arg); /* text, bytea; SLICE_NONE: null */
int64_t arg_time_ms(const struct pg_call *call, int arg);
size_t arg_count(const struct pg_call *call, int arg); /* of an array */
bool item_is_null(const struct pg_call *call, int arg, size_t i);
int64_t item_int(const struct pg_call *call, int arg, size_t i);
struct uuid item_uuid(const struct pg_call *call, int arg, size_t i);
struct slice item_bytes(const struct pg_call *call, int arg, size_t i);
int64_t item_time_ms(const struct pg_call *call, int arg, size_t i);

/* --- the result; columns in order, then put_row_end() --- */

void put_null(struct pg_call *call);
void put_int(struct pg_call *call, int64_t value); /* a bool or an integer */
void put_uuid(struct pg_call *call, const struct uuid *value);
void put_bytes(struct pg_call *call, struct slice value); /* copies the value; SLICE_NONE: null */
void put_time_ms(struct pg_call *call, int64_t ms);
void put_row_end(struct pg_call *call);
void put_affected(struct pg_call *call, int64_t count);
/* Each ends the statement: with its last row, or with the number of rows that it changed. */
enum pg_progress end_with_row(struct pg_call *call);
enum pg_progress end_with_affected(struct pg_call *call, int64_t count);

enum pg_progress pg_fail(struct pg_call *call, const char *sqlstate); /* returns PG_ERROR */

/*
 * In a plpgsql function: its next statement begins, with a snapshot of now, and sees what was written here before. A
 * statement never sees its own writes; the next statement does. When a call is repeated after PG_WAIT, the n-th of
 * these calls gives the same snapshot as before.
 */
void pg_next_statement(struct pg_call *call);

/* --- rows: struct row_X of pg_rows.h, one kind a table, in order of the primary key --- */

struct pg_row; /* one primary key, with its versions and locks */

/* Gives the first row whose key is not below that of `from` (only its key members count), or the next row; NULL: no
 * more. It gives also rows that this statement does not see. */
struct pg_row *pg_first(struct pg_call *call, enum pg_table table, const void *from);
struct pg_row *pg_next(struct pg_call *call, enum pg_table table, struct pg_row *row);
/* Gives the row of exactly this key, seen or not; NULL: none. */
struct pg_row *pg_find(struct pg_call *call, enum pg_table table, const void *key);
/* Gives the data that the snapshot shows; NULL: it shows none. NULL for NULL. */
const void *pg_see(struct pg_call *call, struct pg_row *row);

/* Modes in the order of strength, with PostgreSQL's table of conflicts. UPDATE takes PG_NO_KEY_UPDATE, DELETE
 * PG_UPDATE. */
enum pg_lock_mode { PG_KEY_SHARE, PG_SHARE, PG_NO_KEY_UPDATE, PG_UPDATE };

/*
 * Locks a row that was seen. `current` is the row's data now, which a transaction that committed after the snapshot may
 * have changed: judge the condition of the statement again. NULL: the row is gone, or this statement has changed it
 * already; leave the row out. A row that is not seen may be locked too where pg_insert() gave it (ON CONFLICT DO
 * UPDATE).
 */
enum pg_progress pg_lock(struct pg_call *call, struct pg_row *row, enum pg_lock_mode mode, const void **current);
/* FOR UPDATE SKIP LOCKED and the like. Returns false when somebody else has it locked, or it is gone. */
bool pg_lock_if_free(struct pg_call *call, struct pg_row *row, enum pg_lock_mode mode, const void **current);

/*
 * Unique is the primary key, and for some tables a second key (pg_rows.h). `existing` NULL: a conflict is the error
 * 23505. Else: ON CONFLICT of the second key where there is one (of the primary key it is 23505 then, too), or else of
 * the primary key; the row that is in the way, which may be one that the snapshot does not see (lock it before an
 * update), or NULL: it was inserted. Waits for a transaction that has inserted, changed or deleted the same and has not
 * ended.
 */
enum pg_progress pg_insert(struct pg_call *call, enum pg_table table, const void *data, struct pg_row **existing);
/* Changes a row that is locked at PG_NO_KEY_UPDATE or above; the keys do not change. */
void pg_update(struct pg_call *call, struct pg_row *row, const void *data);
void pg_delete(struct pg_call *call, struct pg_row *row);       /* the row is locked at PG_UPDATE */
struct slice pg_keep(struct pg_call *call, struct slice bytes); /* a copy that lives as long as the rows */

/* --- the rest --- */

/* pg_current_xact_id(): a transaction gets its number when it first writes or locks a row. */
int64_t pg_tx(struct pg_call *call);
int64_t pg_edge(struct pg_call *call); /* pg_snapshot_xmin(pg_current_snapshot()) */

enum pg_progress pg_advisory_xact(struct pg_call *call, int64_t class, int64_t object); /* waits */
/* Takes a lock of the session; such locks stack. */
bool pg_advisory_try(struct pg_call *call, int64_t class, int64_t object);
bool pg_advisory_unlock(struct pg_call *call, int64_t class, int64_t object);
void pg_advisory_unlock_all(struct pg_call *call);
/* Sends a notification with the commit; two equal notifications are one. */
void pg_notify(struct pg_call *call, const char *channel, struct slice payload);
void pg_make_asynchronous(struct pg_call *call); /* set_config('synchronous_commit', 'off', true) */
int64_t pg_random(struct pg_call *call, int64_t below);
struct uuid pg_new_id(struct pg_call *call); /* sagad.new_id() */

/* Ends sessions other than this one for which `match` is true, soon afterwards. Gives their number
 * (pg_terminate_backend). */
size_t pg_end_sessions(struct pg_call *call,
                       bool (*match)(int pid, int64_t started_us, const char *application_name, void *context),
                       void *context);
int pg_own_pid(const struct pg_call *call);
int64_t pg_own_started_us(const struct pg_call *call);
int pg_timeline(const struct pg_call *call);

#endif
