/* Draws the arguments of scripts for notifications: two receivers of one namespace, in two shards. */
#include "tests/sim/differential_args.h"

#include <stdio.h>

enum { NUMBERS = 2 };

/* Draws the first one more often, so that something happens to it. */
static uint32_t a_receiver(struct chance *chance)
{
    return chance_percent(chance, 75) ? 0 : 1;
}

static void put_receiver(struct db_args *args, uint32_t receiver, struct chance *chance, bool with_epoch)
{
    db_arg_int2(args, saga_shard(receiver));
    if (with_epoch) {
        arg_epoch(args, chance);
    }
    arg_text(args, "n");
    arg_text(args, receiver ? "ops" : "audit");
}

void draw_notify_cursor(struct db_args *args, struct chance *chance)
{
    put_receiver(args, a_receiver(chance), chance, false);
}

void draw_notify_due(struct db_args *args, struct chance *chance)
{
    put_receiver(args, a_receiver(chance), chance, false);
    db_arg_timestamptz(args, chance_percent(chance, 70) ? FAR_MS : T0_MS + chance_below(chance, 100));
    db_arg_int8(args, 1 + chance_below(chance, 3));
}

/* The id of each event is drawn from so many that none comes twice. */
void draw_notify_put(struct db_args *args, struct chance *chance)
{
    uint32_t count = chance_below(chance, 3), first = (uint32_t)chance_next(chance);
    char id[32];

    put_receiver(args, a_receiver(chance), chance, true);
    if (chance_percent(chance, 30)) {
        db_arg_null(args, DB_INT8);
        count = 0;
    } else {
        db_arg_int8(args, chance_percent(chance, 80) ? 1 : 2);
    }
    db_arg_int8(args, chance_percent(chance, 80) ? 1 : 2);
    db_array_begin(args, DB_TEXT, count);
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(id, sizeof(id), "e-%u-%u", first, i);
        db_item_bytes(args, slice_of(id));
    }
    db_array_end(args);
    db_array_begin(args, DB_BYTEA, count);
    for (uint32_t i = 0; i < count; i++) {
        db_item_bytes(args, SLICE("{\"event\":1}"));
    }
    db_array_end(args);
    db_arg_timestamptz(args, T0_MS + chance_below(chance, 100));
    db_arg_timestamptz(args, T0_MS + 1000);
}

void draw_notify_settle(struct db_args *args, struct chance *chance)
{
    put_receiver(args, a_receiver(chance), chance, true);
    db_array_begin(args, DB_INT8, 1);
    db_item_int(args, 1 + chance_below(chance, NUMBERS));
    db_array_end(args);
    db_array_begin(args, DB_TEXT, 1);
    db_item_bytes(args, slice_of(ONE_OF("done", "dead", "dead", "pending")));
    db_array_end(args);
    db_array_begin(args, DB_TIMESTAMPTZ, 1);
    db_item_timestamptz(args, T0_MS + chance_below(chance, 100));
    db_array_end(args);
    db_array_begin(args, DB_INT4, 1);
    db_item_int(args, chance_below(chance, 2));
    db_array_end(args);
    db_array_begin(args, DB_TEXT, 1);
    if (chance_percent(chance, 50)) {
        db_item_bytes(args, SLICE("the status 500"));
    } else {
        db_item_null(args);
    }
    db_array_end(args);
}

void draw_notification_list(struct db_args *args, struct chance *chance)
{
    arg_text(args, ONE_OF("n", "n", "m"));
    arg_text(args, ONE_OF(NULL, NULL, "ops"));
    arg_text(args, ONE_OF(NULL, NULL, "dead", "pending"));
    arg_text(args, ONE_OF("", "", "audit"));
    db_arg_int8(args, chance_below(chance, 2));
    db_arg_int8(args, 1 + chance_below(chance, 4));
}

void draw_notification_replay(struct db_args *args, struct chance *chance)
{
    arg_text(args, ONE_OF("n", "n", "m"));
    arg_text(args, ONE_OF(NULL, "ops", "audit"));
    db_array_begin(args, DB_TEXT, 0);
    db_array_end(args);
    arg_text(args, NULL);
}
