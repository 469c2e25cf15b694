/* Reads rows in PostgreSQL's binary formats. A column that is missing or has another type is a mistake in our SQL. */
#include <endian.h>
#include <stdio.h>

#include "io/postgres/db.h"
#include "io/postgres/wire.h"

static _Noreturn void is_not_there(const struct db_rows *rows, size_t row, int column)
{
    char what[200];

    (void)snprintf(what, sizeof(what), "row %zu, column %d of the answer to %s, which has %d rows and %d columns (%s)",
                   row, column, rows->statement->name, PQntuples(rows->result), PQnfields(rows->result),
                   PQresStatus(PQresultStatus(rows->result)));
    check_failed(__FILE__, __LINE__, what);
}

static size_t place(const struct db_rows *rows, size_t row, int column, const char **bytes)
{
    if (row >= db_row_count(rows) || column < 0 || column >= PQnfields(rows->result)) {
        is_not_there(rows, row, column);
    }
    *bytes = PQgetvalue(rows->result, (int)row, column);
    return (size_t)PQgetlength(rows->result, (int)row, column);
}

size_t db_row_count(const struct db_rows *rows)
{
    return (size_t)PQntuples(rows->result);
}

int64_t db_affected(const struct db_rows *rows)
{
    int64_t count;

    /* libpq's prototype is not const, but the call does not change the result. */
    return slice_to_i64(slice_of(PQcmdTuples((PGresult *)rows->result)), &count) ? count : 0;
}

bool db_is_null(const struct db_rows *rows, size_t row, int column)
{
    const char *bytes;

    (void)place(rows, row, column, &bytes);
    return PQgetisnull(rows->result, (int)row, column);
}

int64_t db_int(const struct db_rows *rows, size_t row, int column)
{
    const char *bytes;
    size_t len = place(rows, row, column, &bytes);
    uint64_t big = 0;

    if (db_is_null(rows, row, column)) {
        return 0;
    }
    CHECK(len == 1 || len == 2 || len == 4 || len == 8);
    memcpy(&big, bytes, len); /* the value is the high end of a big-endian number */
    return (int64_t)be64toh(big) >> (64 - 8 * len);
}

struct uuid db_uuid(const struct db_rows *rows, size_t row, int column)
{
    struct uuid uuid = {{0}};
    const char *bytes;
    size_t len = place(rows, row, column, &bytes);

    if (!db_is_null(rows, row, column)) {
        CHECK(len == sizeof(uuid.bytes));
        memcpy(uuid.bytes, bytes, len);
    }
    return uuid;
}

struct slice db_bytes(const struct db_rows *rows, size_t row, int column)
{
    const char *bytes;
    size_t len = place(rows, row, column, &bytes);

    return db_is_null(rows, row, column) ? SLICE_NONE : (struct slice){bytes, len};
}

int64_t db_timestamptz(const struct db_rows *rows, size_t row, int column)
{
    int64_t us = db_int(rows, row, column), ms;

    if (db_is_null(rows, row, column)) {
        return 0;
    }
    if (us == INT64_MIN || us == INT64_MAX) {
        return us; /* -infinity and infinity stay as they are */
    }
    ms = us / 1000 - (us % 1000 < 0); /* rounds down, also before 2000 */
    return ms + DB_EPOCH_MS;
}
