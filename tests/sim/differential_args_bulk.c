/* Draws the arguments of scripts for bulk jobs. There are two jobs in two shards, so that no clock decides which comes
 * first. */
#include "tests/sim/differential_args.h"

enum { JOBS = 2, NUMBERS = 4 };

static struct uuid job_id(uint32_t job)
{
    return holder_id(job);
}

static void put_key(struct db_args *args, uint32_t job)
{
    db_arg_int2(args, saga_shard(job));
    arg_id(args, job_id(job));
}

static void put_json(struct db_args *args, const char *json)
{
    if (json) {
        db_arg_bytea(args, slice_of(json));
    } else {
        db_arg_null(args, DB_BYTEA);
    }
}

void draw_bulk_begin(struct db_args *args, struct chance *chance)
{
    put_key(args, chance_below(chance, JOBS));
    arg_text(args, "n");
    put_json(args, "{}");
    arg_text(args, "somebody");
    db_arg_timestamptz(args, chance_percent(chance, 80) ? FAR_MS : T0_MS);
    db_arg_int8(args, 1 + chance_below(chance, 2));
}

void draw_bulk_add(struct db_args *args, struct chance *chance)
{
    uint32_t count = chance_below(chance, 3);

    put_key(args, chance_below(chance, JOBS));
    db_arg_int8(args, chance_below(chance, 2));
    db_array_begin(args, DB_BYTEA, count);
    for (uint32_t i = 0; i < count; i++) {
        db_item_bytes(args, SLICE("{\"item\":1}"));
    }
    db_array_end(args);
    db_arg_timestamptz(args, T0_MS + chance_below(chance, 1000));
}

void draw_bulk_freeze(struct db_args *args, struct chance *chance)
{
    put_key(args, chance_below(chance, JOBS));
    put_json(args, ONE_OF("{}", "{\"applies\":1}"));
    db_arg_int8(args, chance_below(chance, 4));
}

void draw_bulk_move(struct db_args *args, struct chance *chance)
{
    put_key(args, chance_below(chance, JOBS));
    arg_text(args, ONE_OF("n", "n", "n", "m"));
    arg_text(args, ONE_OF("running", "running", "stopped"));
    put_json(args, ONE_OF("{}", "{\"actor\":\"x\"}"));
    db_arg_timestamptz(args, T0_MS + 2000);
    db_arg_null(args, DB_TEXT);
}

void draw_bulk_list(struct db_args *args, struct chance *chance)
{
    arg_text(args, ONE_OF("n", "n", "m"));
    arg_id(args, holder_id(chance_below(chance, 3)));
    db_arg_int8(args, 1 + chance_below(chance, 3));
}

void draw_bulk_one(struct db_args *args, struct chance *chance)
{
    put_key(args, chance_below(chance, JOBS));
    arg_text(args, ONE_OF("n", "n", "m"));
}

void draw_bulk_items(struct db_args *args, struct chance *chance)
{
    put_key(args, chance_below(chance, JOBS));
    db_arg_int8(args, chance_below(chance, 3));
    arg_text(args, ONE_OF(NULL, "open", "done", "refused"));
    db_arg_int8(args, 1 + chance_below(chance, 3));
}

static void put_shard(struct db_args *args, struct chance *chance)
{
    db_array_begin(args, DB_INT2, 1);
    db_item_int(args, saga_shard(chance_below(chance, JOBS)));
    db_array_end(args);
}

void draw_bulk_due(struct db_args *args, struct chance *chance)
{
    put_shard(args, chance);
    db_arg_timestamptz(args, chance_percent(chance, 80) ? FAR_MS : T0_MS + 500);
    db_arg_int8(args, 1 + chance_below(chance, 3));
}

void draw_bulk_next(struct db_args *args, struct chance *chance)
{
    put_shard(args, chance);
}

void draw_bulk_settle(struct db_args *args, struct chance *chance)
{
    struct some some = some_of(chance, NUMBERS);
    uint32_t job = chance_below(chance, JOBS);

    db_arg_int2(args, saga_shard(job));
    db_arg_int8(args, chance_below(chance, 3));
    arg_id(args, job_id(job));
    COLUMN(DB_INT8, some, db_item_int(args, x));
    COLUMN(DB_TEXT, some, item_text(args, ONE_OF(NULL, "done", "done", "changed", "refused")));
    add_bytes(args, chance, some.count, true);
    COLUMN(DB_TIMESTAMPTZ, some, db_item_timestamptz(args, T0_MS + chance_below(chance, 1000)));
    db_arg_timestamptz(args, T0_MS + 3000);
}

void draw_bulk_forget(struct db_args *args, struct chance *chance)
{
    uint32_t job = chance_below(chance, JOBS);

    db_arg_int2(args, saga_shard(job));
    db_arg_int8(args, chance_below(chance, 3));
    arg_id(args, job_id(job));
    db_arg_timestamptz(args, chance_percent(chance, 70) ? FAR_MS + INT64_C(10) * 86400000 : T0_MS);
    db_arg_int8(args, 1 + chance_below(chance, 3));
}
