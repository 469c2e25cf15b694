/* The table from statements of store/sql.c to functions, and helpers that several of the functions use. */
#include "tests/sim/pg_statements.h"

#include <string.h>

#include "store/sql.h"
#include "tests/sim/world.h"

/* --- the table: found by address --- */

enum { SLOTS = 256 };

struct slot {
    const struct db_statement *statement;
    pg_statement *function;
};

static struct slot slots[SLOTS];
static bool is_filled;

static struct slot *slot_of(const struct db_statement *statement)
{
    size_t i = (size_t)((uintptr_t)statement / sizeof(*statement) * UINT64_C(0x9e3779b97f4a7c15) >> 56);

    while (slots[i].statement && slots[i].statement != statement) {
        i = (i + 1) % SLOTS;
    }
    return &slots[i];
}

void pg_statement_add(const struct db_statement *statement, pg_statement *function)
{
    *slot_of(statement) = (struct slot){statement, function};
}

pg_statement *pg_statement_of(const struct db_statement *statement)
{
    pg_statement *function;

    if (!is_filled) {
        is_filled = true;
#define ADD_STATEMENT(name) pg_statement_add(&sql_##name, pg_statement_##name);
        PG_STATEMENTS(ADD_STATEMENT)
#undef ADD_STATEMENT
    }
    function = slot_of(statement)->function;
    if (!function) {
        world_violate("SIM", "statement %s is not simulated", statement->name);
    }
    return function;
}

/* --- rows --- */

void pg_touch(struct pg_call *call, struct pg_touched *touched, struct pg_row *row)
{
    if (touched->count == touched->capacity) {
        struct pg_row **larger;

        touched->capacity = touched->capacity ? 4 * touched->capacity : 16;
        larger = arena_array(call->arena, touched->capacity, sizeof(struct pg_row *));
        if (touched->count > 0) {
            memcpy(larger, touched->rows, touched->count * sizeof(struct pg_row *));
        }
        touched->rows = larger;
    }
    touched->rows[touched->count++] = row;
}

bool pg_is_touched(const struct pg_touched *touched, const struct pg_row *row)
{
    for (size_t i = 0; i < touched->count; i++) {
        if (touched->rows[i] == row) {
            return true;
        }
    }
    return false;
}

enum pg_progress pg_take(struct pg_call *call, struct pg_touched *touched, struct pg_row *row, enum pg_lock_mode mode,
                         const void **current)
{
    *current = NULL;
    if (!pg_see(call, row) || pg_is_touched(touched, row)) {
        return PG_DONE;
    }
    RETURN_UNLESS_DONE(pg_lock(call, row, mode, current));
    if (*current) {
        pg_touch(call, touched, row);
    }
    return PG_DONE;
}

enum pg_progress pg_insert_new(struct pg_call *call, enum pg_table table, const void *data, bool *inserted)
{
    struct pg_row *existing = NULL;

    RETURN_UNLESS_DONE(pg_insert(call, table, data, &existing));
    *inserted = existing == NULL;
    return PG_DONE;
}

enum pg_progress pg_insert_or_lock(struct pg_call *call, enum pg_table table, const void *data,
                                   struct pg_touched *touched, struct pg_row **row, const void **current)
{
    *current = NULL;
    for (int tries = 0; tries < 3; tries++) {
        RETURN_UNLESS_DONE(pg_insert(call, table, data, row));
        if (!*row) {
            pg_touch(call, touched, pg_find(call, table, data));
            return PG_DONE;
        }
        if (pg_is_touched(touched, *row)) {
            return pg_fail(call, ERROR_TWICE);
        }
        RETURN_UNLESS_DONE(pg_lock(call, *row, PG_NO_KEY_UPDATE, current));
        if (*current) {
            pg_touch(call, touched, *row);
            return PG_DONE;
        }
    }
    world_violate("SIM", "a row of table %d is neither there nor not", (int)table);
}

enum pg_progress pg_delete_key(struct pg_call *call, enum pg_table table, const void *key, struct pg_touched *touched,
                               bool *deleted)
{
    struct pg_row *row = pg_find(call, table, key);
    const void *current;

    RETURN_UNLESS_DONE(pg_take(call, touched, row, PG_UPDATE, &current));
    *deleted = current != NULL;
    if (current) {
        pg_delete(call, row);
    }
    return PG_DONE;
}

enum pg_progress pg_expect(struct pg_call *call, size_t touched, size_t due)
{
    return touched == due ? PG_DONE : pg_fail(call, ERROR_EXPECT);
}

void pg_put_void(struct pg_call *call)
{
    put_bytes(call, SLICE(""));
    put_row_end(call);
}

const struct row_saga *pg_saga(struct pg_call *call, int64_t shard, struct uuid id)
{
    return pg_see(call, pg_find(call, PG_SAGA, &(struct row_saga){.shard = shard, .id = id}));
}

/* A shard has few sagas here, so all of them are searched. */
const struct row_saga *pg_saga_of_business(struct pg_call *call, int64_t shard, struct slice digest)
{
    struct pg_row *row = pg_first(call, PG_SAGA, &(struct row_saga){.shard = shard});

    for (; row; row = pg_next(call, PG_SAGA, row)) {
        const struct row_saga *saga = pg_see(call, row);

        if (saga && saga->shard != shard) {
            return NULL;
        }
        if (saga && saga->business_digest.ptr && slice_equal(saga->business_digest, digest)) {
            return saga;
        }
    }
    return NULL;
}

const struct row_saga *pg_saga_of_start_key(struct pg_call *call, struct slice digest)
{
    struct pg_row *row = pg_first(call, PG_SAGA, &(struct row_saga){0});

    for (; row; row = pg_next(call, PG_SAGA, row)) {
        const struct row_saga *saga = pg_see(call, row);

        if (saga && saga->key_digest.ptr && slice_equal(saga->key_digest, digest)) {
            return saga;
        }
    }
    return NULL;
}

const struct row_shard *pg_shard(struct pg_call *call, int64_t shard)
{
    return pg_see(call, pg_find(call, PG_SHARD, &(struct row_shard){.shard = shard}));
}

/* --- values --- */

struct uuid pg_id_floor(int64_t ms)
{
    struct uuid id = {{0}};

    for (int i = 0; i < 6; i++) {
        id.bytes[i] = (uint8_t)((uint64_t)ms >> (40 - 8 * i));
    }
    return id;
}

int64_t pg_left_ms(struct pg_call *call, int64_t at_ms)
{
    int64_t left_us = at_ms * 1000 - pg_clock_us(call->pg);

    return (left_us < 0 ? left_us - 500 : left_us + 500) / 1000;
}

struct slice pg_number_text(struct pg_call *call, int64_t number)
{
    return arena_printf(call->arena, "%lld", (long long)number);
}

void pg_escape_json(struct buffer *out, struct slice text)
{
    static const char controls[] = "\b\f\n\r\t\"\\", names[] = "bfnrt\"\\";

    buffer_put_char(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        const char *control = text.ptr[i] ? strchr(controls, text.ptr[i]) : NULL;

        if (control) {
            buffer_put_char(out, '\\');
            buffer_put_char(out, names[control - controls]);
        } else if ((unsigned char)text.ptr[i] < ' ') {
            buffer_printf(out, "\\u%04x", (unsigned)text.ptr[i]);
        } else {
            buffer_put_char(out, text.ptr[i]);
        }
    }
    buffer_put_char(out, '"');
}

size_t *pg_order_of_ints(struct pg_call *call, int arg)
{
    size_t count = arg_count(call, arg);
    size_t *order = arena_array(call->arena, count + 1, sizeof(*order));

    for (size_t i = 0; i < count; i++) { /* the numbers are usually nearly in order */
        int64_t value = item_int(call, arg, i);
        size_t at = i;

        while (at > 0 && item_int(call, arg, order[at - 1]) > value) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    return order;
}
