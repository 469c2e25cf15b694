/* Keeps rows as they were put: see db_values.h. A column that is missing or has another type is a mistake in a
 * statement. */
#include "tests/sim/db_values.h"

#include <string.h>

struct db_rows *db_rows_new(struct arena *arena)
{
    struct db_rows *rows = arena_alloc(arena, sizeof(*rows));

    rows->arena = arena;
    return rows;
}

void db_rows_put(struct db_rows *rows, struct db_cell cell)
{
    if (rows->cell_count == rows->cell_capacity) {
        size_t capacity = rows->cell_capacity > 0 ? 2 * rows->cell_capacity : 16;
        struct db_cell *larger = arena_array(rows->arena, capacity, sizeof(*larger));

        if (rows->cell_count > 0) {
            memcpy(larger, rows->cells, rows->cell_count * sizeof(*larger));
        }
        rows->cells = larger; /* the arena frees the smaller array */
        rows->cell_capacity = capacity;
    }
    if (cell.kind == DB_CELL_BYTES) {
        cell.value.bytes = arena_slice(rows->arena, cell.value.bytes);
    }
    rows->cells[rows->cell_count++] = cell;
}

void db_rows_end_row(struct db_rows *rows)
{
    if (rows->row_count == 0) {
        rows->column_count = rows->cell_count;
    }
    rows->row_count++;
    CHECK(rows->cell_count == rows->row_count * rows->column_count);
}

void db_rows_reset(struct db_rows *rows)
{
    rows->row_count = rows->column_count = rows->cell_count = 0;
    rows->affected = 0;
}

struct db_rows *db_rows_copy(const struct db_rows *rows, struct arena *arena)
{
    struct db_rows *copy = arena_dup(arena, rows, sizeof(*rows));

    copy->arena = arena;
    copy->cells = arena_dup(arena, rows->cells, rows->cell_count * sizeof(*rows->cells));
    copy->cell_capacity = rows->cell_count;
    for (size_t i = 0; i < copy->cell_count; i++) {
        if (copy->cells[i].kind == DB_CELL_BYTES) {
            copy->cells[i].value.bytes = arena_slice(arena, copy->cells[i].value.bytes);
        }
    }
    return copy;
}

static const struct db_cell *place(const struct db_rows *rows, size_t row, int column)
{
    CHECK(row < rows->row_count && column >= 0 && (size_t)column < rows->column_count);
    return &rows->cells[row * rows->column_count + (size_t)column];
}

static const struct db_cell *place_of(const struct db_rows *rows, size_t row, int column, enum db_cell_kind kind)
{
    const struct db_cell *cell = place(rows, row, column);

    CHECK(cell->kind == kind || cell->kind == DB_CELL_NULL);
    return cell;
}

size_t db_row_count(const struct db_rows *rows)
{
    return rows->row_count;
}

int64_t db_affected(const struct db_rows *rows)
{
    return rows->affected;
}

bool db_is_null(const struct db_rows *rows, size_t row, int column)
{
    return place(rows, row, column)->kind == DB_CELL_NULL;
}

int64_t db_int(const struct db_rows *rows, size_t row, int column)
{
    const struct db_cell *cell = place_of(rows, row, column, DB_CELL_NUMBER);

    return cell->kind == DB_CELL_NULL ? 0 : cell->value.number;
}

struct uuid db_uuid(const struct db_rows *rows, size_t row, int column)
{
    const struct db_cell *cell = place_of(rows, row, column, DB_CELL_UUID);

    return cell->kind == DB_CELL_NULL ? (struct uuid){{0}} : cell->value.uuid;
}

struct slice db_bytes(const struct db_rows *rows, size_t row, int column)
{
    const struct db_cell *cell = place_of(rows, row, column, DB_CELL_BYTES);

    return cell->kind == DB_CELL_NULL ? SLICE_NONE : cell->value.bytes;
}

int64_t db_timestamptz(const struct db_rows *rows, size_t row, int column)
{
    const struct db_cell *cell = place_of(rows, row, column, DB_CELL_TIME);

    return cell->kind == DB_CELL_NULL ? 0 : cell->value.number;
}
