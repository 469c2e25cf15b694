/* Draws the arguments of scripts for acts. They are null, because the simulation keeps none. */
#include "tests/sim/differential_args.h"

void draw_act_put(struct db_args *args, struct chance *chance)
{
    size_t count = chance_below(chance, 3);

    db_array_begin(args, DB_TEXT, count);
    for (size_t i = 0; i < count; i++) {
        db_item_null(args);
    }
    db_array_end(args);
}

void draw_act_refuse(struct db_args *args, struct chance *chance)
{
    (void)chance;
    db_arg_text(args, SLICE("[]"));
}

void draw_act_forget(struct db_args *args, struct chance *chance)
{
    db_arg_timestamptz(args, T0_MS + chance_below(chance, 100));
}

void draw_act_list(struct db_args *args, struct chance *chance)
{
    arg_text(args, ONE_OF("n", "m"));
    db_arg_timestamptz(args, T0_MS);
    db_arg_timestamptz(args, FAR_MS);
    arg_id(args, saga_id(0));
    for (int i = 0; i < 4; i++) {
        db_array_begin(args, DB_TEXT, 0);
        db_array_end(args);
    }
    db_arg_null(args, DB_UUID);
    db_arg_null(args, DB_TEXT);
    db_arg_int8(args, 1 + chance_below(chance, 3));
    db_arg_int8(args, 1 + chance_below(chance, 3));
}
