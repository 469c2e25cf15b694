/* What the db_*.c files share: parameters as libpq wants them, rows as libpq gives them. Nobody else includes this. */
#ifndef SAGAD_IO_POSTGRES_WIRE_H
#define SAGAD_IO_POSTGRES_WIRE_H

#include <libpq-fe.h>
#include <string.h>

#include "io/postgres/db.h"

/* Between 1970, where our milliseconds begin, and 2000, where PostgreSQL's microseconds do. */
#define DB_EPOCH_MS INT64_C(946684800000)

struct db_args {
    struct arena *arena;
    int count;
    size_t bytes; /* the bytes of all values */
    Oid oids[DB_ARGS_MAX];
    const char *values[DB_ARGS_MAX];
    int lengths[DB_ARGS_MAX];
    struct { /* the array that is being written */
        bool open, has_null;
        enum db_type type;
        char *ptr;
        size_t len, capacity, count, count_due;
    } array;
};

struct db_rows {
    const PGresult *result;
    const struct db_statement *statement; /* the statement, for the message about a column that is not there */
};

#endif
