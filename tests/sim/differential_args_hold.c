/* Draws the arguments of scripts for holds: three holds in two namespaces. */
#include "tests/sim/differential_args.h"

enum { HOLDS = 4, FAR_AHEAD_MS = 1000 };

void draw_hold_put(struct db_args *args, struct chance *chance)
{
    arg_id(args, holder_id(chance_below(chance, HOLDS)));
    arg_text(args, ONE_OF("n", "n", "m"));
    db_arg_bytea(args, slice_of(ONE_OF("{}", "{\"x\":1}")));
    if (chance_percent(chance,
                       60)) { /* one of two has ended, so long ago that the next one of its namespace removes it */
        db_arg_timestamptz(args, chance_percent(chance, 50) ? FAR_MS + FAR_AHEAD_MS : T0_MS);
    } else {
        db_arg_null(args, DB_TIMESTAMPTZ);
    }
    db_arg_int8(args, 1 + chance_below(chance, 3));
    db_arg_null(args, DB_TEXT);
}

void draw_hold_release(struct db_args *args, struct chance *chance)
{
    db_arg_int8(args, 1 + chance_below(chance, HOLDS));
    arg_text(args, ONE_OF("n", "n", "m"));
    db_arg_bytea(args, SLICE("{}"));
    db_arg_null(args, DB_TEXT);
}

void draw_hold_list(struct db_args *args, struct chance *chance)
{
    arg_text(args, ONE_OF("n", "n", "m"));
    db_arg_int8(args, chance_percent(chance, 70) ? INT64_MAX : 2);
    db_arg_bool(args, chance_percent(chance, 50));
    db_arg_int8(args, 1 + chance_below(chance, 3));
}

void draw_hold_one(struct db_args *args, struct chance *chance)
{
    arg_text(args, ONE_OF("n", "n", "m"));
    db_arg_int8(args, 1 + chance_below(chance, HOLDS));
}

void draw_hold_seen(struct db_args *args, struct chance *chance)
{
    arg_text(args, ONE_OF("i1", "i2"));
    db_arg_int8(args, chance_below(chance, HOLDS));
}

void draw_hold_unseen(struct db_args *args, struct chance *chance)
{
    db_arg_int8(args, chance_below(chance, HOLDS));
}
