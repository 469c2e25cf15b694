/* Draws the arguments of scripts for schedules: two names in two shards. */
#include "tests/sim/differential_args.h"

enum { SCHEDULES = 3 };

static void put_key(struct db_args *args, uint32_t schedule)
{
    static const char *const names[SCHEDULES] = {"one", "two", "three"};

    db_arg_int2(args, saga_shard(schedule));
    arg_text(args, "n");
    arg_text(args, names[schedule]);
}

void draw_schedule_put(struct db_args *args, struct chance *chance)
{
    uint32_t schedule = chance_below(chance, SCHEDULES);

    put_key(args, schedule);
    arg_id(args, holder_id(chance_below(chance, 2)));
    arg_text(args, ONE_OF("UTC", NULL));
    db_arg_bytea(args, slice_of(ONE_OF("{}", "{}", "{\"x\":1}")));
    arg_text(args, "somebody");
    db_arg_int8(args, 2 + chance_below(chance, 2));
    db_arg_null(args, DB_TEXT);
}

void draw_schedule_list(struct db_args *args, struct chance *chance)
{
    arg_text(args, ONE_OF("n", "n", "m"));
    arg_text(args, ONE_OF(NULL, "one"));
    arg_text(args, ONE_OF("", "one"));
    db_arg_int8(args, 1 + chance_below(chance, 3));
    db_arg_timestamptz(args, T0_MS);
    db_arg_timestamptz(args, T0_MS + 1000);
}

void draw_schedule_hold(struct db_args *args, struct chance *chance)
{
    const char *hold = ONE_OF("{}", NULL);

    put_key(args, chance_below(chance, SCHEDULES));
    if (hold) {
        db_arg_bytea(args, slice_of(hold));
    } else {
        db_arg_null(args, DB_BYTEA);
    }
    db_arg_null(args, DB_TEXT);
}

void draw_schedule_delete(struct db_args *args, struct chance *chance)
{
    put_key(args, chance_below(chance, SCHEDULES));
    db_arg_null(args, DB_TEXT);
}

void draw_zone(struct db_args *args, struct chance *chance)
{
    arg_text(args, ONE_OF("UTC", "Nowhere/At_all", "UTC+3"));
    db_arg_timestamptz(args, T0_MS);
    db_arg_timestamptz(args, T0_MS + 1000);
}

void draw_schedule_due(struct db_args *args, struct chance *chance)
{
    add_shards(args, some_of(chance, SHARDS));
    db_arg_timestamptz(args, chance_percent(chance, 80) ? FAR_MS : T0_MS);
    db_arg_int8(args, 100);
    db_arg_timestamptz(args, T0_MS);
    db_arg_timestamptz(args, T0_MS + 1000);
}

void draw_schedule_next(struct db_args *args, struct chance *chance)
{
    add_shards(args, some_of(chance, SHARDS));
    db_arg_timestamptz(args, chance_percent(chance, 80) ? T0_MS + 500 : FAR_MS);
}

void draw_schedule_move(struct db_args *args, struct chance *chance)
{
    uint32_t schedule = chance_below(chance, SCHEDULES);

    db_arg_int2(args, saga_shard(schedule));
    db_arg_int8(args, chance_below(chance, 3));
    arg_text(args, "n");
    arg_text(args, schedule == 0 ? "one" : schedule == 1 ? "two" : "three");
    arg_id(args, holder_id(chance_below(chance, 2)));
    db_arg_int8(args, 1 + chance_below(chance, 3));
    db_arg_timestamptz(args, T0_MS + chance_below(chance, 1000));
    db_arg_timestamptz(args, chance_percent(chance, 50) ? T0_MS + 1000 : FAR_MS + chance_below(chance, 1000));
    db_arg_bytea(args, slice_of(ONE_OF("{}", "{\"queue\":[1]}")));
}
