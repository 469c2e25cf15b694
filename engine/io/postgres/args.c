/*
 * Writes parameters in PostgreSQL's binary formats: big-endian numbers, timestamps in microseconds since 2000, and
 * arrays. An array has a header (dimensions, whether it has nulls, element type, count, lower bound) and for each
 * element its length and its bytes.
 */
#include <endian.h>
#include <limits.h>

#include "io/postgres/db.h"
#include "io/postgres/wire.h"

enum { ARRAY_HEADER_BYTES = 20, ARRAY_FLAGS_AT = 4 };

/* The type numbers are from PostgreSQL's catalogue and never change. A type with `bytes` 0 has any length. */
static const struct {
    Oid oid, array_oid;
    size_t bytes;
} types[] = {
    [DB_BOOL] = {16, 1000, 1},  [DB_INT2] = {21, 1005, 2},          [DB_INT4] = {23, 1007, 4},
    [DB_INT8] = {20, 1016, 8},  [DB_UUID] = {2950, 2951, 16},       [DB_TEXT] = {25, 1009, 0},
    [DB_BYTEA] = {17, 1001, 0}, [DB_TIMESTAMPTZ] = {1184, 1185, 8},
};

/* Writes the low `bytes` bytes of a number, highest first. */
static void put_int(char *out, uint64_t value, size_t bytes)
{
    uint64_t big = htobe64(value);

    memcpy(out, (const char *)&big + 8 - bytes, bytes);
}

static uint64_t timestamp_us(int64_t ms)
{
    int64_t us;

    if (__builtin_sub_overflow(ms, DB_EPOCH_MS, &us) || __builtin_mul_overflow(us, 1000, &us)) {
        us = ms < 0 ? INT64_MIN : INT64_MAX; /* PostgreSQL reads these as -infinity and infinity */
    }
    return (uint64_t)us;
}

struct db_args *db_args_new(struct arena *arena)
{
    struct db_args *args = arena_alloc(arena, sizeof(*args));

    args->arena = arena;
    return args;
}

static void add(struct db_args *args, Oid oid, const char *value, size_t len)
{
    CHECK(args->count < DB_ARGS_MAX && !args->array.open && len <= INT_MAX);
    args->oids[args->count] = oid;
    args->values[args->count] = value;
    args->lengths[args->count] = (int)len;
    args->count++;
    args->bytes += len;
}

static void add_int(struct db_args *args, enum db_type type, uint64_t value)
{
    char *bytes = arena_alloc(args->arena, types[type].bytes);

    put_int(bytes, value, types[type].bytes);
    add(args, types[type].oid, bytes, types[type].bytes);
}

static void add_bytes(struct db_args *args, enum db_type type, struct slice value)
{
    if (!value.ptr) {
        db_arg_null(args, type);
        return;
    }
    add(args, types[type].oid, value.len > 0 ? arena_dup(args->arena, value.ptr, value.len) : "", value.len);
}

void db_arg_null(struct db_args *args, enum db_type type)
{
    add(args, types[type].oid, NULL, 0);
}

void db_arg_bool(struct db_args *args, bool value)
{
    add_int(args, DB_BOOL, value);
}

void db_arg_int2(struct db_args *args, int value)
{
    CHECK(value >= INT16_MIN && value <= INT16_MAX);
    add_int(args, DB_INT2, (uint64_t)value);
}

void db_arg_int4(struct db_args *args, int32_t value)
{
    add_int(args, DB_INT4, (uint64_t)value);
}

void db_arg_int8(struct db_args *args, int64_t value)
{
    add_int(args, DB_INT8, (uint64_t)value);
}

void db_arg_uuid(struct db_args *args, const struct uuid *value)
{
    add_bytes(args, DB_UUID, (struct slice){(const char *)value->bytes, sizeof(value->bytes)});
}

void db_arg_text(struct db_args *args, struct slice value)
{
    add_bytes(args, DB_TEXT, value);
}

void db_arg_bytea(struct db_args *args, struct slice value)
{
    add_bytes(args, DB_BYTEA, value);
}

void db_arg_timestamptz(struct db_args *args, int64_t ms)
{
    add_int(args, DB_TIMESTAMPTZ, timestamp_us(ms));
}

/* --- arrays --- */

void db_array_begin(struct db_args *args, enum db_type type, size_t count)
{
    size_t bytes_guess = types[type].bytes > 0 ? types[type].bytes : 40;

    CHECK(!args->array.open && count <= INT_MAX / 64);
    args->array.open = true;
    args->array.has_null = false;
    args->array.type = type;
    args->array.count = 0;
    args->array.count_due = count;
    args->array.capacity = ARRAY_HEADER_BYTES + count * (4 + bytes_guess);
    args->array.ptr = arena_alloc(args->arena, args->array.capacity);
    args->array.len = count > 0 ? ARRAY_HEADER_BYTES : ARRAY_HEADER_BYTES - 8; /* an empty array has no dimension */
    put_int(args->array.ptr, count > 0, 4);
    put_int(args->array.ptr + 8, types[type].oid, 4);
    if (count > 0) {
        put_int(args->array.ptr + 12, count, 4);
        put_int(args->array.ptr + 16, 1, 4);
    }
}

/* Writes the length of an element and returns room for its `len` bytes. */
static char *item(struct db_args *args, size_t len)
{
    char *out;

    CHECK(args->array.open && args->array.count < args->array.count_due && len <= INT_MAX);
    if (args->array.capacity - args->array.len < 4 + len) {
        char *larger;

        args->array.capacity = 2 * args->array.capacity + len;
        larger = arena_alloc(args->arena, args->array.capacity);
        memcpy(larger, args->array.ptr, args->array.len);
        args->array.ptr = larger; /* the arena frees the smaller array */
    }
    out = args->array.ptr + args->array.len;
    put_int(out, len, 4);
    args->array.len += 4 + len;
    args->array.count++;
    return out + 4;
}

static void item_int(struct db_args *args, uint64_t value)
{
    size_t bytes = types[args->array.type].bytes;

    put_int(item(args, bytes), value, bytes);
}

void db_item_null(struct db_args *args)
{
    char *after = item(args, 0);

    put_int(after - 4, UINT32_MAX, 4);
    if (!args->array.has_null) {
        args->array.has_null = true;
        put_int(args->array.ptr + ARRAY_FLAGS_AT, 1, 4);
    }
}

void db_item_bool(struct db_args *args, bool value)
{
    CHECK(args->array.type == DB_BOOL);
    item_int(args, value);
}

void db_item_int(struct db_args *args, int64_t value)
{
    CHECK(args->array.type == DB_INT8 || (args->array.type == DB_INT4 && value >= INT32_MIN && value <= INT32_MAX) ||
          (args->array.type == DB_INT2 && value >= INT16_MIN && value <= INT16_MAX));
    item_int(args, (uint64_t)value);
}

void db_item_uuid(struct db_args *args, const struct uuid *value)
{
    CHECK(args->array.type == DB_UUID);
    memcpy(item(args, sizeof(value->bytes)), value->bytes, sizeof(value->bytes));
}

void db_item_bytes(struct db_args *args, struct slice value)
{
    CHECK(args->array.type == DB_TEXT || args->array.type == DB_BYTEA);
    if (!value.ptr) {
        db_item_null(args);
        return;
    }
    if (value.len > 0) {
        memcpy(item(args, value.len), value.ptr, value.len);
    } else {
        (void)item(args, 0); /* an empty element consists only of its length */
    }
}

void db_item_timestamptz(struct db_args *args, int64_t ms)
{
    CHECK(args->array.type == DB_TIMESTAMPTZ);
    item_int(args, timestamp_us(ms));
}

void db_array_end(struct db_args *args)
{
    CHECK(args->array.open && args->array.count == args->array.count_due);
    args->array.open = false;
    add(args, types[args->array.type].array_oid, args->array.ptr, args->array.len);
}
