/*
 * Connections to any database, for statements that others wrote: lent out of a pool, one conversation at a time. A
 * connection string names server and user itself: nothing that this process was given for its own database is used
 * (postgres/environment.h). It leads only to addresses that the guard of outgoing calls allows (postgres/pin.c).
 *
 * Unlike db.h nothing is pipelined: each statement is answered before the next one is sent. So whoever loses the
 * connection knows whether the COMMIT had left, and before that nothing can have happened. Parameters and values are
 * text, and the server finds the types of parameters itself.
 */
#ifndef SAGAD_IO_POSTGRES_POOL_H
#define SAGAD_IO_POSTGRES_POOL_H

#include "base/errors.h"
#include "io/loop/loop.h"

struct db_pool;
struct egress;
struct db_link; /* one connection, lent */

struct db_pool_options {
    int links_max;                /* the links to one database: one connection string */
    int64_t idle_ms;              /* a connection that nobody wants for so long is closed */
    const char *application_name; /* borrowed as long as the pool */
    const struct egress *egress;  /* the addresses that it may reach; copied. NULL: all but those denied always */
};

struct db_pool *db_pool_new(struct loop *loop, const struct db_pool_options *options);
void db_pool_free(struct db_pool *pool);       /* nothing is lent or wished any more; accepts NULL */
int db_pool_links(const struct db_pool *pool); /* open or being opened, to all databases */

/* Can libpq read it? `has_password`: a password stands in it. Connects to nothing. */
bool db_dsn_is_readable(
    const char *dsn, bool *has_password); /* db_dsn_is_whole() in postgres/environment.h says whether it may be lent */

struct db_wish {
    struct list_link link;
    const char *dsn; /* in: NUL-terminated, borrowed until done */
    struct db_link
        *lent;      /* out: NULL when no connection came about, `err` says why: not a byte of a statement has left */
    struct err err; /* ERR_FORBIDDEN: every address of its hosts is denied */
    void (*done)(struct db_wish *wish); /* exactly once, never inside db_pool_wish() */
    struct db_place *place;
};

void db_pool_wish(struct db_pool *pool, struct db_wish *wish);
void db_pool_forget(struct db_pool *pool, struct db_wish *wish); /* before done was called: it will not be */

/* Back into the pool. What was begun is rolled back, what the session remembers is forgotten; a
 * broken one is closed. */
void db_link_give(struct db_link *link);
/* Closed at once; what was asked and is not done will not be. Without a COMMIT that has left, nothing has happened. */
void db_link_drop(struct db_link *link);
bool db_link_in_transaction(const struct db_link *link); /* BEGIN was answered, and nothing has failed or ended it */

enum db_column_kind { DB_COLUMN_BOOL, DB_COLUMN_NUMBER, DB_COLUMN_JSON, DB_COLUMN_TEXT /* all other types */ };

struct db_row; /* borrowed during on_row, and so are all slices of it */
int db_row_columns(const struct db_row *row);
const char *db_row_name(const struct db_row *row, int column);
enum db_column_kind db_row_kind(const struct db_row *row, int column);
struct slice db_row_value(const struct db_row *row, int column); /* SLICE_NONE is null */

enum db_answer {
    DB_ANSWER_DONE,
    DB_ANSWER_REFUSED, /* an error of the server, which goes on; `sqlstate` says which */
    DB_ANSWER_LOST /* the connection is gone, or the server ended it: what was asked may or may not have been done */
};

struct db_ask { /* the asker's; borrowed until done */
    const char *sql;
    bool plain;                /* several statements, without parameters */
    const char *const *params; /* text; NULL is null */
    int param_count;
    void (*on_row)(struct db_ask *ask, const struct db_row *row); /* may be NULL; must neither ask, give nor drop */
    void (*done)(struct db_ask *ask);                             /* exactly once, never inside db_link_ask() */
    bool stop; /* set by on_row: enough, end the connection; `done` follows with DB_ANSWER_LOST */

    enum db_answer answer; /* out */
    bool unconfirmed;      /* a COMMIT that perhaps did not reach its standby */
    int64_t affected;      /* rows changed or given */
    char tag[64];          /* the command tag, such as "UPDATE 1" */
    char sqlstate[6];      /* "" when none */
    char message[320];     /* the server's or libpq's words, one line */
};

void db_link_ask(struct db_link *link, struct db_ask *ask);

#endif
