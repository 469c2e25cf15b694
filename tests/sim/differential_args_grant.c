/* Arguments of scripts for grants: five of them, in two namespaces. */
#include "tests/sim/differential_args.h"

enum { GRANTS = 5, FAR_AHEAD_MS = 1000 };

static struct uuid grant_id(struct chance *chance)
{
    return holder_id(20 + chance_below(chance, GRANTS));
}

void draw_grant_put(struct db_args *args, struct chance *chance)
{
    uint32_t saga = a_saga(chance);

    arg_id(args, grant_id(chance));
    db_arg_bytea(args, slice_of(ONE_OF("secret", "another")));
    arg_text(args, ONE_OF("n", "n", "m"));
    db_arg_bytea(args, slice_of(ONE_OF("{\"issuer_token\":\"a\"}", "{\"x\":1}")));
    db_arg_timestamptz(args, FAR_MS + FAR_AHEAD_MS);
    if (chance_percent(chance, 70)) {
        db_arg_null(args, DB_INT2);
        db_arg_null(args, DB_UUID);
    } else {
        db_arg_int2(args, saga_shard(saga));
        arg_id(args, saga_id(saga));
    }
    db_arg_null(args, DB_TEXT);
}

void draw_grant_read(struct db_args *args, struct chance *chance)
{
    struct some grants = some_of(chance, GRANTS);

    COLUMN(DB_UUID, grants, item_id(args, holder_id(20 + x)));
}

void draw_grant_list(struct db_args *args, struct chance *chance)
{
    arg_text(args, ONE_OF("n", "n", "m"));
    arg_id(args, chance_percent(chance, 70) ? holder_id(40) : grant_id(chance));
    db_arg_bool(args, chance_percent(chance, 50));
    db_arg_int8(args, 1 + chance_below(chance, 3));
}

void draw_grant_revoke(struct db_args *args, struct chance *chance)
{
    arg_id(args, grant_id(chance));
    arg_text(args, ONE_OF("n", "n", "m"));
    db_arg_bytea(args, slice_of(ONE_OF("{}", "{\"by\":1}")));
    if (chance_percent(chance, 60)) {
        db_arg_null(args, DB_TEXT);
    } else {
        arg_text(args, ONE_OF("a", "a", "b"));
    }
    db_arg_null(args, DB_TEXT);
}
