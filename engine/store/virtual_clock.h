/*
 * The virtual clock of `sagad dev --clock virtual`: a clock that runs like PostgreSQL's, and can be moved ahead.
 *
 * Time is the database's (engine/decisions/0010). So the schema sagad_clock has functions clock_timestamp() and now()
 * of its own, and the connections of an engine with a virtual clock find them before those of PostgreSQL. An engine
 * without one refuses a database that has this schema, and one with it refuses every other database.
 */
#ifndef SAGAD_STORE_VIRTUAL_CLOCK_H
#define SAGAD_STORE_VIRTUAL_CLOCK_H

#include "store/store.h"

#define VIRTUAL_CLOCK_PATH                                                                                             \
    "set search_path = sagad_clock, pg_catalog, pg_temp" /* for a connection, last of its setup */
#define VIRTUAL_CLOCK_AHEAD_MS_MAX (INT64_C(100) * 366 * 24 * 3600 * 1000)

/*
 * Before the first migration of a database: gives it a virtual clock. A database that has one keeps it. ERR_CONFIG for
 * a database that has a schema of sagad, and no virtual clock. Blocking.
 */
MUST_USE enum err_code virtual_clock_make(const char *dsn, struct err *err);

struct clock_move { /* ERR_NOT_FOUND: it would be further ahead than it may be */
    struct store_read read;
    int64_t to_ms;    /* in: to so much ahead of the real time, if it is not further already. 0: it is only read */
    struct slice act; /* in: the act that the move is, JSON; SLICE_NONE: it is nobody's */
    int64_t now_ms, ahead_ms; /* out */
    int64_t next_ms;          /* out: when the next thing is due of which a table knows; 0: nothing is */
};
void store_clock_move(struct store *store, struct clock_move *move);

#endif
