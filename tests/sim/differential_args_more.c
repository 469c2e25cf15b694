/* Draws the arguments of all scripts but those of the append: see differential_args.c. There are two locks, two tools
 * and two engines. */
#include <string.h>

#include "tests/sim/differential_args.h"

enum { TRY_CLASS = 55 };

/* --- leases and engines --- */

/* Ends no backend; test_pg_ends.c shows how backends are ended. */
void draw_end_backends(struct db_args *args, struct chance *chance)
{
    struct some some = some_of(chance, 2);

    COLUMN(DB_TEXT, some, item_text(args, "nobody"));
    arg_text(args, ONE_OF("lease", NULL));
}

void draw_end_backend(struct db_args *args, struct chance *chance)
{
    db_arg_int4(args, 1);
    db_arg_int8(args, chance_below(chance, 2));
}

void draw_lease_lock(struct db_args *args, struct chance *chance)
{
    db_arg_int4(args, TRY_CLASS);
    add_shards(args, some_of(chance, SHARDS));
}

static int64_t ttl_ms(struct chance *chance)
{
    return chance_percent(chance, 50) ? LONG_MS : -1000000000;
}

void draw_lease_take(struct db_args *args, struct chance *chance)
{
    struct some identities = {.count = chance_below(chance, 2)};

    add_shards(args, some_of(chance, SHARDS));
    COLUMN(DB_TEXT, identities, item_text(args, ONE_OF("engine a", "engine b")));
    arg_text(args, ONE_OF("a", "b"));
    arg_text(args, ONE_OF("engine a", "engine b"));
    db_arg_int8(args, ttl_ms(chance));
}

void draw_lease_renew(struct db_args *args, struct chance *chance)
{
    struct some some = some_of(chance, SHARDS);

    add_shards(args, some);
    COLUMN(DB_INT8, some, db_item_int(args, chance_percent(chance, 70) ? 1 : 2));
    COLUMN(DB_TIMESTAMPTZ, some,
           chance_percent(chance, 30) ? db_item_null(args)
                                      : db_item_timestamptz(args, T0_MS + chance_below(chance, 8) * 1000));
    COLUMN(DB_TIMESTAMPTZ, some,
           chance_percent(chance, 50) ? db_item_null(args)
                                      : db_item_timestamptz(args, T0_MS + chance_below(chance, 8) * 1000));
    db_arg_int8(args, ttl_ms(chance));
    arg_text(args, ONE_OF("engine a", "engine b"));
    COLUMN(DB_INT8, some, db_item_int(args, chance_below(chance, 3)));
}

void draw_take_all(struct db_args *args, struct chance *chance)
{
    struct some all = {{0, 1, 2}, SHARDS}, none = {.count = 0};

    add_shards(args, all);
    COLUMN(DB_TEXT, none, item_text(args, ""));
    arg_text(args, "a");
    arg_text(args, "engine a");
    db_arg_int8(args, ttl_ms(chance));
}

void draw_renew_all(struct db_args *args, struct chance *chance)
{
    struct some all = {{0, 1, 2}, SHARDS};

    add_shards(args, all);
    COLUMN(DB_INT8, all, db_item_int(args, 1));
    COLUMN(DB_TIMESTAMPTZ, all, db_item_timestamptz(args, T0_MS + chance_below(chance, 8) * 1000));
    COLUMN(DB_TIMESTAMPTZ, all, db_item_null(args));
    db_arg_int8(args, ttl_ms(chance));
    arg_text(args, "engine a");
    COLUMN(DB_INT8, all, db_item_int(args, chance_below(chance, 3)));
}

void draw_lease_release(struct db_args *args, struct chance *chance)
{
    struct some some = some_of(chance, SHARDS);

    add_shards(args, some);
    COLUMN(DB_INT8, some, db_item_int(args, 1 + chance_below(chance, 2)));
    arg_text(args, ONE_OF("engine a", "engine b"));
}

void draw_engine(struct db_args *args, struct chance *chance)
{
    arg_text(args, ONE_OF("i1", "i2"));
    arg_text(args, "identity");
    arg_text(args, ONE_OF("a", "b"));
    arg_text(args, "0.1");
    db_arg_int4(args, 9 + (int)chance_below(chance, 2));
    db_arg_bool(args, chance_percent(chance, 20));
    db_arg_bool(args, chance_percent(chance, 20));
    db_arg_int8(args, ttl_ms(chance));
    db_arg_int8(args, chance_below(chance, 5));
    db_arg_int8(args, chance_below(chance, 5));
    db_arg_int8(args, chance_below(chance, 5));
    db_arg_int8(args, chance_below(chance, 3));
}

void draw_engine_remove(struct db_args *args, struct chance *chance)
{
    struct some some = some_of(chance, 2);

    COLUMN(DB_TEXT, some, item_text(args, x ? "i1" : "i2"));
}

/* --- reads --- */

void draw_load(struct db_args *args, struct chance *chance)
{
    uint32_t saga = a_saga(chance);

    db_arg_int2(args, saga_shard(saga));
    arg_id(args, chance_percent(chance, 60) ? (struct uuid){{0}} : saga_id(saga));
    db_arg_int8(args, 1 + chance_below(chance, 3));
}

void draw_one_shard(struct db_args *args, struct chance *chance)
{
    db_arg_int2(args, saga_shard(chance_below(chance, SHARDS)));
}

void draw_saga_row(struct db_args *args, struct chance *chance)
{
    uint32_t saga = a_saga(chance);

    db_arg_int2(args, saga_shard(saga));
    arg_id(args, saga_id(saga));
    arg_text(args, ONE_OF("n", "n", "m"));
}

void draw_saga_turns(struct db_args *args, struct chance *chance)
{
    uint32_t saga = a_saga(chance);

    db_arg_int2(args, saga_shard(saga));
    arg_id(args, saga_id(saga));
    db_arg_int8(args, chance_below(chance, 3));
    if (chance_percent(chance, 50)) {
        db_arg_null(args, DB_INT8);
    } else {
        db_arg_int8(args, 1 + chance_below(chance, 2));
    }
}

void draw_by_business_id(struct db_args *args, struct chance *chance)
{
    uint32_t x = chance_below(chance, SHARDS);

    db_arg_int2(args, saga_shard(x));
    db_arg_bytea(args, slice_of((const char *const[]){"digest 1", "digest 2", "digest 3"}[x]));
}

void draw_run_turns(struct db_args *args, struct chance *chance)
{
    static const char *const digests[] = {"digest 1", "digest 2", "digest 3"};
    uint32_t first = chance_below(chance, SHARDS), count = 1 + chance_below(chance, SHARDS);

    db_array_begin(args, DB_INT2, count);
    for (uint32_t i = 0; i < count; i++) {
        db_item_int(args, saga_shard((first + i) % SHARDS));
    }
    db_array_end(args);
    db_array_begin(args, DB_BYTEA, count);
    for (uint32_t i = 0; i < count; i++) {
        db_item_bytes(args, slice_of(digests[(first + i) % SHARDS]));
    }
    db_array_end(args);
    db_arg_int8(args, 1 + chance_below(chance, 3));
    db_arg_int8(args, chance_percent(chance, 50) ? 8192 : 2);
}

void draw_by_key(struct db_args *args, struct chance *chance)
{
    uint32_t key = chance_below(chance, KEYS);

    db_arg_int2(args, key_shard(key));
    arg_id(args, key_id(key));
    arg_text(args, ONE_OF("n", "n", "m"));
}

static void add_few(struct db_args *args, struct chance *chance, uint32_t percent, const char *one, const char *other)
{
    struct some few = {{0, 1}, chance_percent(chance, percent) ? 1 + chance_below(chance, 2) : 0};

    COLUMN(DB_TEXT, few, item_text(args, x ? one : ONE_OF(one, other)));
}

static void draw_list_range(struct db_args *args, struct chance *chance)
{
    struct uuid last;

    memset(&last, 0xff, sizeof(last));
    arg_id(args, chance_percent(chance, 70) ? last : saga_id(a_saga(chance)));
    arg_id(args, chance_percent(chance, 70) ? (struct uuid){{0}} : saga_id(a_saga(chance)));
    arg_text(args, ONE_OF("n", "n", "m"));
    db_arg_bool(args, chance_percent(chance, 50));
}

static void draw_list_filter(struct db_args *args, struct chance *chance)
{
    struct some versions = {{0, 1}, chance_percent(chance, 30) ? 1 + chance_below(chance, 2) : 0};

    draw_list_range(args, chance);
    add_few(args, chance, 30, "running", "completed");
    add_few(args, chance, 30, "order", "trip");
    add_few(args, chance, 30, "{\"team\":\"one\"}", ONE_OF("{\"b\":\"x\",\"aa\":\"y\"}", "{\"a\":\"\u00e9\"}"));
    db_arg_bool(args, chance_percent(chance, 50));
    COLUMN(DB_INT8, versions, db_item_int(args, 1 + x));
    arg_text(args, ONE_OF("", "", "t"));
}

void draw_list(struct db_args *args, struct chance *chance)
{
    draw_list_filter(args, chance);
    db_arg_int8(args, 1 + chance_below(chance, 10));
    db_arg_int8(args, chance_percent(chance, 50) ? 256 : 1 + chance_below(chance, 3));
}

void draw_sum(struct db_args *args, struct chance *chance)
{
    draw_list_filter(args, chance);
    db_arg_int8(args, 256);
    db_arg_int8(args, chance_percent(chance, 50) ? 256 : 1 + chance_below(chance, 3));
}

void draw_looked(struct db_args *args, struct chance *chance)
{
    draw_list_range(args, chance);
}

void draw_list_of_id(struct db_args *args, struct chance *chance)
{
    struct some some = some_of(chance, SHARDS);

    draw_list_filter(args, chance);
    db_arg_int8(args, 1 + chance_below(chance, 10));
    add_shards(args, some);
    COLUMN(DB_BYTEA, some, item_text(args, (const char *const[]){"digest 1", "digest 2", "digest 3"}[x]));
}

void draw_namespace(struct db_args *args, struct chance *chance)
{
    arg_text(args, ONE_OF("n", "n", "m"));
}

void draw_count(struct db_args *args, struct chance *chance)
{
    draw_namespace(args, chance);
    db_arg_int8(args, chance_percent(chance, 50) ? 16384 : chance_below(chance, 4));
    arg_id(args, chance_percent(chance, 50) ? (struct uuid){{0}} : saga_id(a_saga(chance)));
}

static void draw_questions(struct db_args *args, struct chance *chance)
{
    if (chance_percent(chance, 60)) {
        db_arg_null(args, DB_TIMESTAMPTZ);
        db_arg_null(args, DB_INT8);
    } else {
        db_arg_timestamptz(args, T0_MS + chance_below(chance, 100));
        db_arg_int8(args, 64 + chance_below(chance, 200));
    }
    arg_text(args, ONE_OF("n", "n", "m"));
    db_arg_int8(args, 1 + chance_below(chance, 5));
}

static void time_or_null(struct db_args *args, struct chance *chance, int64_t ms)
{
    if (chance_percent(chance, 70)) {
        db_arg_null(args, DB_TIMESTAMPTZ);
    } else {
        db_arg_timestamptz(args, ms + chance_below(chance, 50));
    }
}

/* Draws how many questions are looked at, and which fit. */
void draw_questions_filtered(struct db_args *args, struct chance *chance)
{
    draw_questions(args, chance);
    db_arg_int8(args, chance_percent(chance, 70) ? 20000 : 1 + chance_below(chance, 4));
    time_or_null(args, chance, T0_MS);
    time_or_null(args, chance, T0_MS + 50);
    add_few(args, chance, 20, "open", "resolved");
    add_few(args, chance, 15, "bank", "");
    add_few(args, chance, 15, "order", "trip");
    add_few(args, chance, 15, "pay", "");
    add_few(args, chance, 15, "unknown", "");
    add_few(args, chance, 15, "timeout", "");
    add_few(args, chance, 15, "{\"team\":\"one\"}", "{\"b\":\"x\",\"aa\":\"y\"}");
    if (chance_percent(chance, 80)) {
        db_arg_null(args, DB_INT8);
    } else {
        db_arg_int8(args, chance_below(chance, 8));
    }
    if (chance_percent(chance, 70)) {
        db_arg_null(args, DB_BOOL);
    } else {
        db_arg_bool(args, chance_percent(chance, 50));
    }
    db_arg_timestamptz(args, T0_MS + chance_below(chance, 100));
    add_few(args, chance, 15, "ada", "");
}

void draw_debt_settle(struct db_args *args, struct chance *chance)
{
    uint32_t saga = a_saga(chance);

    db_arg_int2(args, saga_shard(saga));
    arg_id(args, saga_id(saga));
    arg_text(args, ONE_OF("n", "n", "m"));
    arg_id(args, saga_id(a_saga(chance)));
    db_arg_bytea(args, slice_of(ONE_OF("{}", "[]")));
    db_arg_int4(args, (int)chance_below(chance, 3));
    time_or_null(args, chance, T0_MS + 50);
    db_arg_null(args, DB_TEXT);
}

void draw_debt_settled(struct db_args *args, struct chance *chance)
{
    struct some sagas = some_sagas(chance);

    add_sagas(args, sagas);
}

void draw_case_remark(struct db_args *args, struct chance *chance)
{
    uint32_t saga = a_saga(chance);

    db_arg_int2(args, saga_shard(saga));
    db_arg_int8(args, saga_shard(saga) + 64 * (1 + saga / SHARDS));
    arg_text(args, ONE_OF("n", "n", "m"));
    arg_id(args, saga_id(a_saga(chance)));
    arg_text(args, ONE_OF("acknowledge", "assign", "comment"));
    arg_text(args, ONE_OF("ada", "bob"));
    time_or_null(args, chance, T0_MS + 50);
    if (chance_percent(chance, 30)) {
        db_arg_null(args, DB_TEXT);
    } else {
        arg_text(args, ONE_OF("ada", "bob"));
    }
    arg_text(args, ONE_OF("{\"kind\":\"comment\"}", "{}"));
    db_arg_int4(args, 1 + (int)chance_below(chance, 3));
    db_arg_null(args, DB_TEXT);
}

void draw_questions_grouped(struct db_args *args, struct chance *chance)
{
    draw_questions_filtered(args, chance);
    for (int i = 0; i < 5; i++) {
        db_arg_bool(args, chance_percent(chance, 40));
    }
    add_few(args, chance, 40, "team", "a");
}

void draw_case(struct db_args *args, struct chance *chance)
{
    uint32_t saga = a_saga(chance);

    db_arg_int2(args, saga_shard(saga));
    db_arg_int8(args, chance_below(chance, 3));
    db_arg_int8(args, saga_shard(saga) + 64 * (1 + chance_below(chance, 6)));
    arg_id(args, saga_id(saga));
    arg_text(args, "n");
    db_arg_timestamptz(args, T0_MS + chance_below(chance, 100));
    if (chance_percent(chance, 50)) {
        db_arg_null(args, DB_TIMESTAMPTZ);
    } else {
        db_arg_timestamptz(args, T0_MS + 100 + chance_below(chance, 100));
    }
    arg_text(args, ONE_OF("unreadable", "follower"));
    db_arg_bytea(args, slice_of(ONE_OF("{}", "[]")));
    arg_id(args, saga_id(a_saga(chance)));
    db_arg_bool(args, false);
    db_arg_null(args, DB_TEXT);
}

void draw_question(struct db_args *args, struct chance *chance)
{
    uint32_t saga = a_saga(chance);

    db_arg_int2(args, saga_shard(saga));
    db_arg_int8(args, saga_shard(saga) + 64 * (1 + saga / SHARDS));
    arg_text(args, ONE_OF("n", "n", "m"));
}

/* --- due, locks, inbox, answers --- */

void draw_park(struct db_args *args, struct chance *chance)
{
    struct some sagas = some_sagas(chance);

    add_shards(args, sagas);
    add_epochs(args, chance, sagas.count);
    COLUMN(DB_UUID, sagas, item_id(args, saga_id(x)));
    COLUMN(DB_TIMESTAMPTZ, sagas,
           chance_percent(chance, 30) ? db_item_null(args)
                                      : db_item_timestamptz(args, T0_MS + 200 + x * 10 + chance_below(chance, 10)));
    COLUMN(DB_BOOL, sagas, db_item_bool(args, chance_percent(chance, 50)));
    COLUMN(DB_TEXT, sagas,
           db_item_bytes(args, chance_percent(chance, 40)
                                   ? SLICE_NONE
                                   : slice_of(ONE_OF("{1}", "{2}", "{3}", "{1,2}", "{1,3}", "{2,3}", "{1,2,3}"))));
}

/* All sagas wait, each for several of the holds 1, 2 and 3: so one of these ends while others are in force. */
void draw_park_all(struct db_args *args, struct chance *chance)
{
    struct some all = {{0, 1, 2, 3, 4, 5, 6, 7, 8}, SAGAS};

    add_shards(args, all);
    COLUMN(DB_INT8, all, db_item_int(args, epoch_of_most()));
    COLUMN(DB_UUID, all, item_id(args, saga_id(x)));
    COLUMN(DB_TIMESTAMPTZ, all, item_time_or_null(args, chance, 80));
    COLUMN(DB_BOOL, all, db_item_bool(args, chance_percent(chance, 20)));
    COLUMN(DB_TEXT, all, db_item_bytes(args, slice_of(ONE_OF("{1,2}", "{1,3}", "{2,3}", "{1,2,3}"))));
}

void draw_forget(struct db_args *args, struct chance *chance)
{
    struct some sagas = some_sagas(chance);

    add_shards(args, sagas);
    add_epochs(args, chance, sagas.count);
    COLUMN(DB_UUID, sagas, item_id(args, saga_id(x)));
    COLUMN(DB_TIMESTAMPTZ, sagas, item_time_or_null(args, chance, 30));
    COLUMN(DB_INT8, sagas, db_item_int(args, 1000));
}

void draw_due(struct db_args *args, struct chance *chance)
{
    add_shards(args, some_of(chance, SHARDS));
    db_arg_timestamptz(args, T0_MS + (chance_percent(chance, 50) ? 250 : 100000));
    /* All that are parked, or none: due_let_go gives many the same instant, and which of these a limit cuts off is
     * decided by their places in the table, which the simulation does not have. */
    db_arg_int8(args, chance_percent(chance, 50) ? 0 : 1000);
    db_arg_int8(args, chance_below(chance, 4));
}

/* Of the holds 1, 2 and 3 some are in force. */
void draw_due_let_go(struct db_args *args, struct chance *chance)
{
    uint32_t in_force = chance_below(chance, 8);

    add_shards(args, some_of(chance, SHARDS));
    db_array_begin(args, DB_INT8, (size_t)__builtin_popcount(in_force));
    for (int hold = 1; hold <= 3; hold++) {
        if (in_force & BIT(hold - 1)) {
            db_item_int(args, hold);
        }
    }
    db_array_end(args);
    db_arg_timestamptz(args, T0_MS + 300);
    db_arg_int8(args, 1 + chance_below(chance, 3));
}

void draw_lock_take(struct db_args *args, struct chance *chance)
{
    uint32_t key = chance_below(chance, 2), saga = a_saga(chance);

    db_arg_int2(args, key ? 9 : 11);
    db_arg_bytea(args, key ? SLICE("\xff\x01 the first key") : SLICE("\x01\x02 the other key"));
    arg_text(args, "n");
    arg_text(args, key ? "car \"7\"\n" : "seat \u00e9");
    db_arg_int2(args, saga_shard(saga));
    arg_id(args, saga_id(saga));
    db_arg_bool(args, chance_percent(chance, 30));
}

void draw_inbox(struct db_args *args, struct chance *chance)
{
    uint32_t input = chance_below(chance, INPUTS);

    db_arg_int2(args, saga_shard(input));
    arg_id(args, input_id(input));
    arg_id(args, saga_id(input));
    arg_text(args, "abort");
    db_arg_bytea(args, slice_of(ONE_OF("{}", "{\"reason\":\"x\"}")));
}

void draw_inbox_read(struct db_args *args, struct chance *chance)
{
    add_shards(args, some_of(chance, SHARDS));
    db_arg_int8(args, 100);
    arg_id(args, chance_percent(chance, 70) ? (struct uuid){{0}} : input_id(chance_below(chance, INPUTS)));
}

void draw_input(struct db_args *args, struct chance *chance)
{
    uint32_t input = chance_below(chance, INPUTS);

    db_arg_int2(args, saga_shard(input));
    arg_id(args, input_id(input));
}

void draw_inputs(struct db_args *args, struct chance *chance)
{
    struct some inputs = some_of(chance, INPUTS);

    add_shards(args, inputs);
    COLUMN(DB_UUID, inputs, item_id(args, input_id(x)));
}

void draw_answers(struct db_args *args, struct chance *chance)
{
    struct some inputs = some_of(chance, INPUTS);

    add_shards(args, inputs);
    COLUMN(DB_UUID, inputs, item_id(args, input_id(x)));
    add_bytes(args, chance, inputs.count, false);
}

/* --- definitions, guards --- */

void draw_definitions(struct db_args *args, struct chance *chance)
{
    struct some some = some_of(chance, 4);

    COLUMN(DB_TEXT, some, item_text(args, "n"));
    COLUMN(DB_TEXT, some, item_text(args, (const char *const[]){"a", "b", "c", "d"}[x]));
    COLUMN(DB_BYTEA, some, item_text(args, ONE_OF("one", "two")));
    add_bytes(args, chance, some.count, false);
    db_arg_int4(args, 1 + (int)chance_below(chance, 2));
}

void draw_tool(struct db_args *args, struct chance *chance)
{
    db_arg_int2(args, 20);
    arg_text(args, "n");
    arg_text(args, ONE_OF("x", "x", "y"));
    arg_text(args, ONE_OF("", "e"));
}

static void put_budget_keys(struct db_args *args, struct chance *chance, struct some budgets)
{
    COLUMN(DB_INT2, budgets, db_item_int(args, 5 + (int)x));
    COLUMN(DB_TEXT, budgets, item_text(args, x ? "q" : "p"));
    COLUMN(DB_TIMESTAMPTZ, budgets,
           db_item_timestamptz(args, chance_percent(chance, 70) ? T0_MS : T0_MS - INT64_C(500) * 86400000));
}

void draw_guard_ask(struct db_args *args, struct chance *chance)
{
    struct some budgets = {{0, 1}, chance_below(chance, 3)};

    draw_tool(args, chance);
    db_arg_int8(args, chance_below(chance, 3));
    db_arg_int8(args, LONG_MS);
    db_arg_int8(args, chance_below(chance, 3));
    db_arg_int8(args, chance_below(chance, 3));
    db_arg_int8(args, LONG_MS);
    arg_id(args, holder_id(chance_below(chance, 4)));
    db_arg_bool(args, chance_percent(chance, 60));
    arg_id(args, holder_id(10 + chance_below(chance, 4)));
    put_budget_keys(args, chance, budgets);
    for (int i = 0; i < 3; i++) {
        COLUMN(DB_INT8, budgets,
               db_item_int(args, chance_percent(chance, 40) ? -1 : 1 + (int64_t)chance_below(chance, 3)));
    }
    COLUMN(DB_INT8, budgets, db_item_int(args, 1));
    COLUMN(DB_INT8, budgets, db_item_int(args, chance_below(chance, 2)));
    COLUMN(DB_INT8, budgets, db_item_int(args, chance_below(chance, 3)));
}

void draw_guard_tell(struct db_args *args, struct chance *chance)
{
    draw_tool(args, chance);
    db_arg_int8(args, chance_below(chance, 3));
    db_arg_int8(args, LONG_MS);
    db_arg_int8(args, chance_percent(chance, 50) ? 0 : LONG_MS);
    arg_id(args, holder_id(chance_below(chance, 4)));
    arg_id(args, holder_id(10 + chance_below(chance, 4)));
    arg_text(args, ONE_OF("failed", "failed", "well", "none"));
    db_arg_bool(args, chance_percent(chance, 30));
    db_arg_int8(args, chance_percent(chance, 50) ? 0 : LONG_MS * 1000);
    db_arg_int8(args, chance_percent(chance, 90) ? 0 : LONG_MS);
    arg_text(args, ONE_OF("keep", "give_back", "settle", "settle", "unpriced"));
    db_arg_int8(args, chance_below(chance, 5));
}

void draw_guard_price(struct db_args *args, struct chance *chance)
{
    db_arg_int2(args, 20);
    arg_text(args, "n");
    arg_text(args, ONE_OF("x", "x", "y"));
    arg_id(args, holder_id(10 + chance_below(chance, 4)));
    db_arg_int8(args, chance_below(chance, 5));
}

void draw_guard_breaker_set(struct db_args *args, struct chance *chance)
{
    db_arg_int2(args, 20);
    arg_text(args, "n");
    arg_text(args, ONE_OF("x", "x", "y"));
    if (chance_percent(chance, 50)) {
        db_arg_bytea(args, SLICE("{}"));
    } else {
        db_arg_null(args, DB_BYTEA);
    }
    db_arg_null(args, DB_TEXT);
}

void draw_guard_count(struct db_args *args, struct chance *chance)
{
    struct some budgets = some_of(chance, 2);

    put_budget_keys(args, chance, budgets);
    for (int i = 0; i < 3; i++) {
        COLUMN(DB_INT8, budgets, db_item_int(args, chance_below(chance, 3)));
    }
}

void draw_namespace_or_null(struct db_args *args, struct chance *chance)
{
    arg_text(args, ONE_OF("n", "n", "m", NULL));
}

void draw_gate(struct db_args *args, struct chance *chance)
{
    db_arg_int4(args, 78);
    db_arg_int4(args, (int)chance_below(chance, 2));
}
