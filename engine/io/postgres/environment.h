/*
 * Who may use what this process was given to reach its own database. libpq fills what a connection string leaves out
 * from PG* variables, from a service file and from files in the home folder: right for sagad's own connection, and
 * wrong for connections that tools name, which would get in as sagad.
 */
#ifndef SAGAD_IO_POSTGRES_ENVIRONMENT_H
#define SAGAD_IO_POSTGRES_ENVIRONMENT_H

#include "base/arena.h"
#include "base/errors.h"
#include "base/text.h"

#define DB_DSN_BYTES_MAX 65536

/* Appends keyword='value' to a connection string, with the quotes that it needs. */
void db_dsn_put(struct buffer *out, const char *keyword, const char *value);

/*
 * The connection string with what PG* variables and its service say where it is silent, in `arena`. The variables are
 * gone afterwards, and their values overwritten, so that nothing else in this process is led by them. A string that
 * libpq cannot read comes back as it is. Call it once, before other threads exist.
 */
const char *db_environment_take(const char *dsn, struct arena *arena);

/* ERR_CONFIG when libpq cannot read it. Connects to nothing. */
MUST_USE enum err_code db_dsn_check(const char *dsn, struct err *err);

/* Does it name its server and its user itself, and no service? Only such a one is for a tool. */
bool db_dsn_is_whole(const char *dsn);

#endif
