/*
 * Parameters and rows as typed values, where io/postgres/db.h has PostgreSQL's binary formats. The simulated PostgreSQL
 * reads what an engine writes with db_arg_X(), and the engine reads with db_int() and its sisters what the simulated
 * PostgreSQL writes.
 */
#ifndef SAGAD_TESTS_SIM_DB_VALUES_H
#define SAGAD_TESTS_SIM_DB_VALUES_H

#include "io/postgres/db.h"

union db_scalar {
    int64_t number; /* of DB_BOOL, DB_INT*, DB_TIMESTAMPTZ (ms; INT64_MIN and INT64_MAX are infinities) */
    struct uuid uuid;
    struct slice bytes; /* DB_TEXT, DB_BYTEA */
};

struct db_item { /* of an array */
    bool is_null;
    union db_scalar value;
};

struct db_value {      /* one parameter */
    enum db_type type; /* the type of the items in an array */
    bool is_null, is_array;
    union db_scalar value;
    struct db_item *items;
    size_t item_count; /* items written so far; an open array has fewer than were announced */
};

struct db_args {
    struct arena *arena;
    int count;
    bool open; /* the last value is an array that is being written */
    size_t items_due;
    struct db_value values[DB_ARGS_MAX]; /* only the first `count` are set */
};

struct db_args *db_args_copy(const struct db_args *args, struct arena *arena); /* NULL gives NULL */

enum db_cell_kind {
    DB_CELL_NULL,
    DB_CELL_NUMBER /* a bool or an integer */,
    DB_CELL_UUID,
    DB_CELL_BYTES,
    DB_CELL_TIME /* ms */
};

struct db_cell {
    enum db_cell_kind kind;
    union db_scalar value;
};

struct db_rows {
    struct arena *arena;            /* memory of cells and bytes */
    size_t row_count, column_count; /* column_count: of the first row; all rows have as many */
    int64_t affected;
    struct db_cell *cells; /* row by row */
    size_t cell_count, cell_capacity;
};

struct db_rows *db_rows_new(struct arena *arena);
void db_rows_put(struct db_rows *rows, struct db_cell cell); /* adds the next column; copies bytes */
void db_rows_end_row(struct db_rows *rows);
void db_rows_reset(struct db_rows *rows); /* empties the result: a statement begins again */
struct db_rows *db_rows_copy(const struct db_rows *rows, struct arena *arena);

#endif
