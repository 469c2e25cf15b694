/*
 * What a statement of store/sql.c is here: a function over tables. Private to pg_*.c.
 *
 * It reads its arguments, looks at rows as its snapshot shows them, locks, writes, and puts its result. When a lock is
 * not free it returns PG_WAIT as it got it: what it wrote is taken back, its locks stay, and it is called again from
 * its beginning, with the snapshot that it had, as soon as whoever it waits for has ended. So a statement is written as
 * if it never waited; every pg_lock(), pg_insert() and pg_advisory() must be followed by RETURN_UNLESS_DONE.
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
    struct arena *arena;  /* until the transaction is over */
    const char *sqlstate; /* with PG_ERROR */
};

typedef enum pg_progress pg_statement(struct pg_call *call);

/* The table of all statements: pg_statements.c. CHECK: it is there. */
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
void put_int(struct pg_call *call, int64_t value); /* bool and all integers */
void put_uuid(struct pg_call *call, const struct uuid *value);
void put_bytes(struct pg_call *call, struct slice value); /* copied; SLICE_NONE: null */
void put_time_ms(struct pg_call *call, int64_t ms);
void put_row_end(struct pg_call *call);
void put_affected(struct pg_call *call, int64_t count);

enum pg_progress pg_fail(struct pg_call *call, const char *sqlstate); /* returns PG_ERROR */

/*
 * A function in plpgsql: its next statement begins, with a snapshot of now, and sees what was written here before. A
 * statement never sees its own writes: they are there for the next one. When a call is repeated after PG_WAIT the n-th
 * of these gives what the n-th gave then.
 */
void pg_next_statement(struct pg_call *call);

/* --- rows: struct row_X of pg_rows.h, one kind a table, in order of the primary key --- */

struct pg_row; /* one primary key, with its versions and locks */

/* The first row whose key is not below that of `from` (only its key members count), or the next one; NULL: no more.
 * Also those that this statement does not see. */
struct pg_row *pg_first(struct pg_call *call, enum pg_table table, const void *from);
struct pg_row *pg_next(struct pg_call *call, enum pg_table table, struct pg_row *row);
struct pg_row *pg_find(struct pg_call *call, enum pg_table table,
                       const void *key); /* exactly this key, seen or not; NULL */
const void *pg_see(struct pg_call *call,
                   struct pg_row *row); /* as the snapshot shows it; NULL: it does not. NULL for NULL */

/* In the order of strength, with PostgreSQL's table of conflicts. UPDATE takes PG_NO_KEY_UPDATE, DELETE PG_UPDATE. */
enum pg_lock_mode { PG_KEY_SHARE, PG_SHARE, PG_NO_KEY_UPDATE, PG_UPDATE };

/*
 * Locks a row that was seen. `current` is what it is now, which a transaction that committed after the snapshot may
 * have changed: judge the condition of the statement again. NULL: it is gone, or this statement has changed it already,
 * and the row is left out. A row that is not seen may be locked too where pg_insert() gave it (ON CONFLICT DO UPDATE).
 */
enum pg_progress pg_lock(struct pg_call *call, struct pg_row *row, enum pg_lock_mode mode, const void **current);

/*
 * Unique is the primary key, and for some tables a second key (pg_rows.h). `existing` NULL: a conflict is the error
 * 23505. Else: ON CONFLICT of the second key where there is one (of the primary key it is 23505 then, too), or else of
 * the primary key; the row that is in the way, which may be one that the snapshot does not see (lock it before an
 * update), or NULL: it was inserted. Waits for a transaction that has inserted, changed or deleted the same and has not
 * ended.
 */
enum pg_progress pg_insert(struct pg_call *call, enum pg_table table, const void *data, struct pg_row **existing);
void pg_update(struct pg_call *call, struct pg_row *row,
               const void *data);                         /* locked at PG_NO_KEY_UPDATE or above; keys as they were */
void pg_delete(struct pg_call *call, struct pg_row *row); /* locked at PG_UPDATE */
struct slice pg_keep(struct pg_call *call, struct slice bytes); /* a copy that lives as long as the rows */

/* --- the rest --- */

/* pg_current_xact_id(): a transaction gets its number when it writes first, or locks a row. */
int64_t pg_tx(struct pg_call *call);
int64_t pg_edge(struct pg_call *call); /* pg_snapshot_xmin(pg_current_snapshot()) */

enum pg_progress pg_advisory_xact(struct pg_call *call, int64_t class, int64_t object); /* waits */
bool pg_advisory_try(struct pg_call *call, int64_t class, int64_t object);              /* of the session; stacks */
bool pg_advisory_unlock(struct pg_call *call, int64_t class, int64_t object);
void pg_advisory_unlock_all(struct pg_call *call);
void pg_notify(struct pg_call *call, const char *channel,
               struct slice payload);            /* with the commit; the same twice is one */
void pg_make_asynchronous(struct pg_call *call); /* set_config('synchronous_commit', 'off', true) */
int64_t pg_random(struct pg_call *call, int64_t below);
struct uuid pg_new_id(struct pg_call *call); /* sagad.new_id() */

/* Sessions other than this one: `match` says which; ends them soon after, and says how many (pg_terminate_backend). */
size_t pg_end_sessions(struct pg_call *call,
                       bool (*match)(int pid, int64_t started_us, const char *application_name, void *context),
                       void *context);
int pg_own_pid(const struct pg_call *call);
int64_t pg_own_started_us(const struct pg_call *call);
int pg_timeline(const struct pg_call *call);

#endif
