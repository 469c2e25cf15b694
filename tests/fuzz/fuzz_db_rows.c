/*
 * PostgreSQL's binary formats, both ways. The input is a list of values: a byte for the type, then the bytes of the
 * type. A text has a length of two bytes first, which may be anything.
 *
 * A value that is encoded as a parameter, returned by libpq as a column, and decoded, stays the same. An array has the
 * layout that PostgreSQL reads. A column of any length is borrowed with exactly that length.
 */
#include <endian.h>

#include "io/postgres/wire.h"
#include "tests/fuzz/fuzz.h"

#define COLUMNS_MAX DB_ARGS_MAX

struct value {
    enum db_type type;
    bool is_null;
    int64_t number; /* the value for all types of numbers */
    struct uuid uuid;
    struct slice bytes;
};

static struct slice take(struct slice *rest, size_t len)
{
    struct slice part = {rest->ptr, len < rest->len ? len : rest->len};

    *rest = (struct slice){rest->ptr + part.len, rest->len - part.len};
    return part;
}

static int64_t take_number(struct slice *rest, size_t len)
{
    struct slice bytes = take(rest, len);
    uint64_t value = 0;

    for (size_t i = 0; i < bytes.len; i++) {
        value = value << 8 | (unsigned char)bytes.ptr[i];
    }
    return (int64_t)(value << (64 - 8 * len)) >> (64 - 8 * len); /* extends the sign */
}

static struct value take_value(struct slice *rest)
{
    uint8_t first = fuzz_byte(rest);
    struct value value = {.type = (enum db_type)(first % 8), .is_null = (first & 0xe0) == 0xe0};
    struct slice bytes;

    switch (value.type) {
    case DB_BOOL:
        value.number = fuzz_byte(rest) & 1;
        break;
    case DB_INT2:
        value.number = take_number(rest, 2);
        break;
    case DB_INT4:
        value.number = take_number(rest, 4);
        break;
    case DB_INT8:
    case DB_TIMESTAMPTZ:
        value.number = take_number(rest, 8);
        break;
    case DB_UUID:
        bytes = take(rest, sizeof(value.uuid.bytes));
        memcpy(value.uuid.bytes, bytes.ptr, bytes.len);
        break;
    case DB_TEXT:
    case DB_BYTEA:
        value.bytes = take(rest, (size_t)take_number(rest, 2) & 0xffff);
        break;
    }
    return value;
}

static void put(struct db_args *args, const struct value *value)
{
    if (value->is_null) {
        db_arg_null(args, value->type);
        return;
    }
    switch (value->type) {
    case DB_BOOL:
        db_arg_bool(args, value->number != 0);
        break;
    case DB_INT2:
        db_arg_int2(args, (int)value->number);
        break;
    case DB_INT4:
        db_arg_int4(args, (int32_t)value->number);
        break;
    case DB_INT8:
        db_arg_int8(args, value->number);
        break;
    case DB_UUID:
        db_arg_uuid(args, &value->uuid);
        break;
    case DB_TEXT:
        db_arg_text(args, value->bytes);
        break;
    case DB_BYTEA:
        db_arg_bytea(args, value->bytes);
        break;
    case DB_TIMESTAMPTZ:
        db_arg_timestamptz(args, value->number);
        break;
    }
}

static void put_item(struct db_args *args, const struct value *value)
{
    if (value->is_null) {
        db_item_null(args);
        return;
    }
    switch (value->type) {
    case DB_BOOL:
        db_item_bool(args, value->number != 0);
        break;
    case DB_INT2:
    case DB_INT4:
    case DB_INT8:
        db_item_int(args, value->number);
        break;
    case DB_UUID:
        db_item_uuid(args, &value->uuid);
        break;
    case DB_TEXT:
    case DB_BYTEA:
        db_item_bytes(args, value->bytes);
        break;
    case DB_TIMESTAMPTZ:
        db_item_timestamptz(args, value->number);
        break;
    }
}

/* Compares instants. We keep milliseconds, and times beyond PostgreSQL's years are its infinity. */
static bool same_instant(int64_t ms, int64_t read)
{
    int64_t us;

    if (__builtin_sub_overflow(ms, DB_EPOCH_MS, &us) || __builtin_mul_overflow(us, 1000, &us)) {
        return read == (ms < 0 ? INT64_MIN : INT64_MAX);
    }
    return read == ms || us == INT64_MIN || us == INT64_MAX;
}

static void check(const struct value *value, const struct db_rows *rows, size_t row, int column)
{
    struct slice bytes = db_bytes(rows, row, column);
    struct uuid uuid;

    MUST(db_is_null(rows, row, column) == value->is_null && (bytes.ptr == NULL) == value->is_null);
    if (value->is_null) {
        return;
    }
    switch (value->type) {
    case DB_BOOL:
    case DB_INT2:
    case DB_INT4:
    case DB_INT8:
        MUST(db_int(rows, row, column) == value->number);
        break;
    case DB_UUID:
        uuid = db_uuid(rows, row, column);
        MUST(uuid_equal(&uuid, &value->uuid));
        break;
    case DB_TEXT:
    case DB_BYTEA:
        MUST(slice_equal(bytes, value->bytes));
        break;
    case DB_TIMESTAMPTZ:
        MUST(same_instant(value->number, db_timestamptz(rows, row, column)));
        break;
    }
}

static uint32_t word(const char *at)
{
    uint32_t big;

    memcpy(&big, at, sizeof(big));
    return be32toh(big);
}

/* Checks an array of all values that have the type of the first one. */
static void check_array(const struct value *values, size_t count, struct arena *arena)
{
    struct db_args *args = db_args_new(arena);
    enum db_type type = values[0].type;
    size_t items = 0, at = 20, nulls = 0;

    for (size_t i = 0; i < count; i++) {
        items += values[i].type == type;
    }
    db_array_begin(args, type, items);
    for (size_t i = 0; i < count; i++) {
        if (values[i].type == type) {
            put_item(args, &values[i]);
            nulls += values[i].is_null;
        }
    }
    db_array_end(args);
    const char *bytes = args->values[0];
    size_t len = (size_t)args->lengths[0];

    MUST(args->count == 1 && len >= at && word(bytes) == 1 && word(bytes + 4) == (nulls > 0) &&
         word(bytes + 12) == items);
    for (size_t i = 0; i < items; i++) {
        uint32_t item;

        MUST(at + 4 <= len);
        item = word(bytes + at);
        at += 4 + (item == UINT32_MAX ? 0 : item);
    }
    MUST(at == len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice rest = fuzz_input(data, size);
    struct arena *arena = fuzz_arena();
    struct value values[COLUMNS_MAX];
    struct db_args *args = db_args_new(arena);
    PGresAttDesc columns[COLUMNS_MAX];
    struct db_rows rows;
    PGresult *result;
    int count = 0;

    while (rest.len > 0 && count < COLUMNS_MAX) {
        values[count] = take_value(&rest);
        put(args, &values[count]);
        columns[count] = (PGresAttDesc){.name = (char *)"c", .typid = args->oids[count], .format = 1};
        count++;
    }
    if (count == 0) {
        return 0;
    }
    check_array(values, (size_t)count, arena);
    result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    MUST(result && PQsetResultAttrs(result, count, columns));
    for (int i = 0; i < count; i++) {
        /* libpq takes the length -1 for a null. */
        MUST(PQsetvalue(result, 0, i, (char *)(uintptr_t)args->values[i], args->values[i] ? args->lengths[i] : -1));
    }
    rows.result = result;
    MUST(db_row_count(&rows) == 1 && db_affected(&rows) == 0);
    for (int i = 0; i < count; i++) {
        check(&values[i], &rows, 0, i);
    }
    PQclear(result);
    return 0;
}
