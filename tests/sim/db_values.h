/*
 * Parameters and rows as typed values, where io/postgres/db.h has PostgreSQL's binary formats: what an engine writes
 * with db_arg_X() the simulated PostgreSQL reads, and what it puts the engine reads with db_int() and its sisters.
 */
#ifndef SAGAD_TESTS_SIM_DB_VALUES_H
#define SAGAD_TESTS_SIM_DB_VALUES_H

#include "io/postgres/db.h"

union db_scalar {
    int64_t number; /* DB_BOOL, DB_INT2, DB_INT4, DB_INT8; DB_TIMESTAMPTZ in ms, INT64_MIN and INT64_MAX are the
                       infinities */
    struct uuid uuid;
    struct slice bytes; /* DB_TEXT, DB_BYTEA */
};

struct db_item { /* of an array */
    bool is_null;
    union db_scalar value;
};

struct db_value {      /* one parameter */
    enum db_type type; /* of the items, when it is an array */
    bool is_null, is_array;
    union db_scalar value;
    struct db_item *items;
    size_t item_count; /* items written; while the array is open, fewer than were announced */
};

struct db_args {
    struct arena *arena;
    int count;
    bool open; /* an array is being written: the last value */
    size_t items_due;
    struct db_value values[DB_ARGS_MAX]; /* `count` of them; the others are not set */
};

struct db_args *db_args_copy(const struct db_args *args, struct arena *arena); /* NULL gives NULL */

enum db_cell_kind {
    DB_CELL_NULL,
    DB_CELL_NUMBER /* bool and all integers */,
    DB_CELL_UUID,
    DB_CELL_BYTES,
    DB_CELL_TIME /* ms */
};

struct db_cell {
    enum db_cell_kind kind;
    union db_scalar value;
};

struct db_rows {
    struct arena *arena;            /* of cells and bytes */
    size_t row_count, column_count; /* column_count: of the first row; all have as many */
    int64_t affected;
    struct db_cell *cells; /* row by row */
    size_t cell_count, cell_capacity;
};

struct db_rows *db_rows_new(struct arena *arena);
void db_rows_put(struct db_rows *rows, struct db_cell cell); /* the next column; bytes are copied */
void db_rows_end_row(struct db_rows *rows);
void db_rows_reset(struct db_rows *rows); /* a statement begins again: no rows, nothing affected */
struct db_rows *db_rows_copy(const struct db_rows *rows, struct arena *arena);

#endif
