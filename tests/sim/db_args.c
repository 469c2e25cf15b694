/* Keeps parameters as they were given: see db_values.h. The checks of types are those of the real
 * io/postgres/args.c. */
#include "tests/sim/db_values.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

/* Makes only the head; the values are set one by one. */
struct db_args *db_args_new(struct arena *arena)
{
    struct db_args *args = arena_array(arena, 1, sizeof(*args));

    args->arena = arena;
    return args;
}

static struct db_value *add(struct db_args *args, enum db_type type)
{
    CHECK(args->count < DB_ARGS_MAX && !args->open);
    args->values[args->count].type = type;
    return &args->values[args->count++];
}

static void add_number(struct db_args *args, enum db_type type, int64_t number)
{
    add(args, type)->value.number = number;
}

static void add_bytes(struct db_args *args, enum db_type type, struct slice bytes)
{
    struct db_value *value = add(args, type);

    value->is_null = bytes.ptr == NULL;
    value->value.bytes = arena_slice(args->arena, bytes);
}

void db_arg_null(struct db_args *args, enum db_type type)
{
    add(args, type)->is_null = true;
}

void db_arg_bool(struct db_args *args, bool value)
{
    add_number(args, DB_BOOL, value);
}

void db_arg_int2(struct db_args *args, int value)
{
    CHECK(value >= INT16_MIN && value <= INT16_MAX);
    add_number(args, DB_INT2, value);
}

void db_arg_int4(struct db_args *args, int32_t value)
{
    add_number(args, DB_INT4, value);
}

void db_arg_int8(struct db_args *args, int64_t value)
{
    add_number(args, DB_INT8, value);
}

void db_arg_uuid(struct db_args *args, const struct uuid *value)
{
    add(args, DB_UUID)->value.uuid = *value;
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
    add_number(args, DB_TIMESTAMPTZ, ms);
}

/* --- arrays --- */

void db_array_begin(struct db_args *args, enum db_type type, size_t count)
{
    struct db_value *value = add(args, type);

    CHECK(count <= INT_MAX / 64);
    value->is_array = true;
    value->items = arena_array(args->arena, count, sizeof(*value->items));
    args->items_due = count;
    args->open = true;
}

static struct db_value *array_of(struct db_args *args)
{
    CHECK(args->open);
    return &args->values[args->count - 1];
}

static struct db_item *item(struct db_args *args)
{
    struct db_value *array = array_of(args);

    CHECK(array->item_count < args->items_due);
    return &array->items[array->item_count++];
}

void db_item_null(struct db_args *args)
{
    item(args)->is_null = true;
}

void db_item_bool(struct db_args *args, bool value)
{
    CHECK(array_of(args)->type == DB_BOOL);
    item(args)->value.number = value;
}

void db_item_int(struct db_args *args, int64_t value)
{
    enum db_type type = array_of(args)->type;

    CHECK(type == DB_INT8 || (type == DB_INT4 && value >= INT32_MIN && value <= INT32_MAX) ||
          (type == DB_INT2 && value >= INT16_MIN && value <= INT16_MAX));
    item(args)->value.number = value;
}

void db_item_uuid(struct db_args *args, const struct uuid *value)
{
    CHECK(array_of(args)->type == DB_UUID);
    item(args)->value.uuid = *value;
}

void db_item_bytes(struct db_args *args, struct slice value)
{
    enum db_type type = array_of(args)->type;
    struct db_item *out = item(args);

    CHECK(type == DB_TEXT || type == DB_BYTEA);
    out->is_null = value.ptr == NULL;
    out->value.bytes = arena_slice(args->arena, value);
}

void db_item_timestamptz(struct db_args *args, int64_t ms)
{
    CHECK(array_of(args)->type == DB_TIMESTAMPTZ);
    item(args)->value.number = ms;
}

void db_array_end(struct db_args *args)
{
    CHECK(array_of(args)->item_count == args->items_due);
    args->open = false;
}

/* --- copies --- */

static bool is_bytes(enum db_type type)
{
    return type == DB_TEXT || type == DB_BYTEA;
}

struct db_args *db_args_copy(const struct db_args *args, struct arena *arena)
{
    struct db_args *copy;

    if (!args) {
        return NULL;
    }
    CHECK(!args->open);
    copy = arena_dup(arena, args, offsetof(struct db_args, values) + (size_t)args->count * sizeof(args->values[0]));
    copy->arena = arena;
    for (int i = 0; i < copy->count; i++) {
        struct db_value *value = &copy->values[i];

        if (!value->is_array) {
            if (is_bytes(value->type) && !value->is_null) {
                value->value.bytes = arena_slice(arena, value->value.bytes);
            }
            continue;
        }
        value->items = arena_dup(arena, value->items, value->item_count * sizeof(*value->items));
        for (size_t j = 0; is_bytes(value->type) && j < value->item_count; j++) {
            value->items[j].value.bytes = arena_slice(arena, value->items[j].value.bytes);
        }
    }
    return copy;
}
