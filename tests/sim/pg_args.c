/* The parameters and results of a statement, with the functions of pg_call.h. */
#include "tests/sim/pg_state.h"

static const struct db_value *value_at(const struct pg_call *call, int arg)
{
    if (!call->args || arg < 0 || arg >= call->args->count) {
        world_violate("SIM", "a statement has no parameter %d", arg + 1);
    }
    return &call->args->values[arg];
}

static bool is_int(enum db_type type)
{
    return type == DB_BOOL || type == DB_INT2 || type == DB_INT4 || type == DB_INT8;
}

static bool is_bytes(enum db_type type)
{
    return type == DB_TEXT || type == DB_BYTEA;
}

static bool is_uuid(enum db_type type)
{
    return type == DB_UUID;
}

static bool is_time(enum db_type type)
{
    return type == DB_TIMESTAMPTZ;
}

static const union db_scalar *scalar(const struct pg_call *call, int arg, bool (*is)(enum db_type type))
{
    static const union db_scalar none;
    const struct db_value *value = value_at(call, arg);

    if (value->is_array || !is(value->type)) {
        world_violate("SIM", "parameter %d of a statement has another type", arg + 1);
    }
    return value->is_null ? &none : &value->value;
}

static const union db_scalar *item(const struct pg_call *call, int arg, size_t i, bool (*is)(enum db_type type))
{
    static const union db_scalar none;
    const struct db_value *value = value_at(call, arg);

    if (!value->is_array || !is(value->type) || i >= value->item_count) {
        world_violate("SIM", "parameter %d of a statement has another type, or no item %zu", arg + 1, i);
    }
    return value->items[i].is_null ? &none : &value->items[i].value;
}

bool arg_is_null(const struct pg_call *call, int arg)
{
    return value_at(call, arg)->is_null;
}

int64_t arg_int(const struct pg_call *call, int arg)
{
    return scalar(call, arg, is_int)->number;
}

struct uuid arg_uuid(const struct pg_call *call, int arg)
{
    return scalar(call, arg, is_uuid)->uuid;
}

struct slice arg_bytes(const struct pg_call *call, int arg)
{
    return scalar(call, arg, is_bytes)->bytes;
}

int64_t arg_time_ms(const struct pg_call *call, int arg)
{
    return scalar(call, arg, is_time)->number;
}

size_t arg_count(const struct pg_call *call, int arg)
{
    const struct db_value *value = value_at(call, arg);

    if (!value->is_array) {
        world_violate("SIM", "parameter %d of a statement is no array", arg + 1);
    }
    return value->item_count;
}

bool item_is_null(const struct pg_call *call, int arg, size_t i)
{
    const struct db_value *value = value_at(call, arg);

    if (!value->is_array || i >= value->item_count) {
        world_violate("SIM", "parameter %d of a statement has no item %zu", arg + 1, i);
    }
    return value->items[i].is_null;
}

int64_t item_int(const struct pg_call *call, int arg, size_t i)
{
    return item(call, arg, i, is_int)->number;
}

struct uuid item_uuid(const struct pg_call *call, int arg, size_t i)
{
    return item(call, arg, i, is_uuid)->uuid;
}

struct slice item_bytes(const struct pg_call *call, int arg, size_t i)
{
    return item(call, arg, i, is_bytes)->bytes;
}

int64_t item_time_ms(const struct pg_call *call, int arg, size_t i)
{
    return item(call, arg, i, is_time)->number;
}

/* --- the result --- */

/* Returns the next cell and makes room for it. Most cells are numbers, and there are many. */
static struct db_cell *next_cell(struct pg_call *call)
{
    struct db_rows *rows = call->result;

    if (rows->cell_count == rows->cell_capacity) {
        db_rows_put(rows, (struct db_cell){.kind = DB_CELL_NULL});
    } else {
        rows->cell_count++;
    }
    return &rows->cells[rows->cell_count - 1];
}

void put_null(struct pg_call *call)
{
    next_cell(call)->kind = DB_CELL_NULL;
}

void put_int(struct pg_call *call, int64_t value)
{
    struct db_cell *cell = next_cell(call);

    cell->kind = DB_CELL_NUMBER;
    cell->value.number = value;
}

void put_uuid(struct pg_call *call, const struct uuid *value)
{
    struct db_cell *cell = next_cell(call);

    cell->kind = DB_CELL_UUID;
    cell->value.uuid = *value;
}

void put_bytes(struct pg_call *call, struct slice value)
{
    struct db_cell *cell = next_cell(call);

    cell->kind = value.ptr ? DB_CELL_BYTES : DB_CELL_NULL;
    cell->value.bytes = value.ptr ? arena_slice(call->result->arena, value) : SLICE_NONE;
}

void put_time_ms(struct pg_call *call, int64_t ms)
{
    struct db_cell *cell = next_cell(call);

    cell->kind = DB_CELL_TIME;
    cell->value.number = ms;
}

void put_row_end(struct pg_call *call)
{
    db_rows_end_row(call->result);
}

void put_affected(struct pg_call *call, int64_t count)
{
    call->result->affected = count;
}

enum pg_progress end_with_row(struct pg_call *call)
{
    put_row_end(call);
    return PG_DONE;
}

enum pg_progress end_with_affected(struct pg_call *call, int64_t count)
{
    put_affected(call, count);
    return PG_DONE;
}
