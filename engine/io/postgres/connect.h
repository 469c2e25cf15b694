/* Opening a connection and saying in one sentence why it, or a statement, was refused. For the db_*.c files alone. */
#ifndef SAGAD_IO_POSTGRES_CONNECT_H
#define SAGAD_IO_POSTGRES_CONNECT_H

#include <libpq-fe.h>

#include "base/arena.h"
#include "base/errors.h"
#include "io/loop/loop.h"

struct egress;

struct db_target {
    const char *dsn, *application_name;
    const char *const *setup; /* NULL-terminated; may be NULL */
    int64_t answer_ms;        /* each statement of the set-up is answered within it; 0: a few seconds */
    bool is_foreign; /* a tool's: it says itself where it leads, and as whom; nothing of this process's own is used */
    const struct egress *egress; /* with is_foreign: the addresses that it may reach */
    int left_pid;                /* backend of a connection of this name that was given up: it is ended. 0: none */
};

/* Blocks. NULL, and a sentence, when it was refused or a statement of the set-up was. */
PGconn *db_connect(const struct db_target *target, struct err *err);

#define DB_NAME_BYTES 256

/* postgres/hosts.c: lists with commas, as libpq has them. The field `index` of a list; the only one stands for all.
 * False: it is too long, or missing. */
bool db_list_field(const char *list, size_t index, char out[DB_NAME_BYTES]);
size_t db_list_count(const char *list); /* NULL and "" have none */

/*
 * postgres/pin.c: the connection string with the addresses that `egress` allows, and how many hosts it names. Resolves
 * names, so it blocks. NULL, and a sentence: ERR_FORBIDDEN when all addresses of all hosts are denied.
 */
const char *db_pin(const char *dsn, const struct egress *egress, size_t *host_count, struct arena *arena,
                   struct err *err);

/* postgres/hosts.c: connects to one server of those that the connection string names, or as libpq does where `dsn` is
 * NULL. Its status tells whether that came about. */
PGconn *db_hosts_connect(const char *const *keywords, const char *const *values, const char *dsn, char *refusals,
                         size_t refusals_bytes);
/* Blocks for `ms` at most. NULL: there was no answer within it. Else the last result of the
 * statement, to be cleared. */
PGresult *db_exec_within(PGconn *conn, const char *sql, int64_t ms);

/* Connects on a worker thread. `done` is called once on the loop's thread, unless the attempt was abandoned before. */
struct db_attempt;
struct db_attempt *db_attempt_start(struct loop *loop, const struct db_target *target,
                                    void (*done)(void *context, PGconn *conn, const struct err *err), void *context);
void db_attempt_abandon(struct db_attempt *attempt); /* it frees itself later; accepts NULL */

/* What the server says about a statement. `what` names it. Fills `sqlstate` ("" when the answer
 * is not the server's). */
enum err_code db_result_err(const PGresult *result, const char *what, char sqlstate[6], struct err *err);
/* The session ended with this answer (severity FATAL and worse, or no answer of the server at all). */
bool db_result_is_fatal(const PGresult *result);
/* The COMMIT is on this server only, and the synchronous standby may not have it. */
bool db_notice_is_lost_commit(const PGresult *notice);
/* One line of libpq's text. */
void db_one_line(const char *text, char *out, size_t out_bytes);

#endif
