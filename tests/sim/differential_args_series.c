/* Draws the arguments of scripts for figures over time (a few names, four minutes in two hours) and for the feed of
 * events. */
#include "tests/sim/differential_args.h"

enum { ROWS = 4, FIGURES = 12 };

static int64_t a_minute(struct chance *chance)
{
    static const int64_t minutes[] = {58, 59, 60, 61};

    return T0_MS - T0_MS % 3600000 + minutes[chance_below(chance, 4)] * 60000;
}

void draw_series_add(struct db_args *args, struct chance *chance)
{
    struct some rows = some_of(chance, ROWS);

    arg_id(args, holder_id(chance_below(chance, 4)));
    db_arg_timestamptz(args, a_minute(chance));
    COLUMN(DB_TEXT, rows, item_text(args, x < 3 ? "n" : "m"));
    COLUMN(DB_TEXT, rows, item_text(args, x % 2 ? "tool" : "saga"));
    COLUMN(DB_TEXT, rows, item_text(args, x < 2 ? "one" : "two"));
    for (int i = 0; i < FIGURES; i++) {
        COLUMN(DB_INT8, rows, db_item_int(args, chance_below(chance, 5)));
    }
}

void draw_series_roll(struct db_args *args, struct chance *chance)
{
    db_arg_timestamptz(args, a_minute(chance) + 60000);
    db_arg_int8(args, 1000);
}

void draw_series_drop(struct db_args *args, struct chance *chance)
{
    db_arg_timestamptz(args, a_minute(chance));
    db_arg_int8(args, 1000);
}

void draw_series_list(struct db_args *args, struct chance *chance)
{
    bool by_hour = chance_percent(chance, 50);
    const char *kind = ONE_OF(NULL, "saga", "tool");

    arg_text(args, "n");
    db_arg_bool(args, by_hour);
    db_arg_timestamptz(args, chance_percent(chance, 50) ? T0_MS - T0_MS % 3600000 : a_minute(chance));
    db_arg_timestamptz(args, FAR_MS);
    arg_text(args, kind);
    arg_text(args, kind ? ONE_OF(NULL, "one") : NULL);
    db_arg_int8(args, 1 + chance_below(chance, 5));
}

/* Draws cursors before or behind all events, because the numbers of transactions differ between the two sides. */
void draw_event_list(struct db_args *args, struct chance *chance)
{
    db_arg_int8(args, chance_percent(chance, 90) ? 0 : INT64_C(1000000000000));
    db_arg_int8(args, chance_percent(chance, 50) ? 100 : 1 + chance_below(chance, 6));
    arg_text(args, ONE_OF("n", "n", "m"));
    db_arg_int8(args, chance_percent(chance, 50) ? 100000 : 200);
}
