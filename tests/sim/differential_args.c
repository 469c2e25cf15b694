/*
 * Draws the arguments of scripts from small sets, so that sessions meet: nine sagas in three shards, three business
 * ids, six keys. This file draws those of the append.
 */
#include "tests/sim/differential_args.h"

#include <string.h>

#include "core/definition/definition.h"

static const int shards[SHARDS] = {3, 4, 60};
static int epoch_expected;

void draw_begin(int epoch)
{
    epoch_expected = epoch;
}

int saga_shard(uint32_t saga)
{
    return shards[saga % SHARDS];
}

static struct uuid id_of(int64_t ms, uint8_t mark, int last)
{
    struct uuid id = {{0}};

    for (int i = 0; i < 6; i++) {
        id.bytes[i] = (uint8_t)((uint64_t)ms >> (40 - 8 * i));
    }
    id.bytes[6] = 0x70;
    id.bytes[8] = 0x80;
    id.bytes[9] = mark;
    id.bytes[14] = (uint8_t)(last >> 8);
    id.bytes[15] = (uint8_t)last;
    return id;
}

struct uuid saga_id(uint32_t saga)
{
    return id_of(T0_MS + (int64_t)saga * 1000, (uint8_t)saga, saga_shard(saga));
}

/* The shards of keys: one with keys of its own, and one whose bundles hold several keys. */
int key_shard(uint32_t key)
{
    return key % 2 ? 17 : 0;
}

struct uuid key_id(uint32_t key)
{
    return id_of(T0_MS, (uint8_t)(0x40 + key), key_shard(key));
}

struct uuid input_id(uint32_t input)
{
    return id_of(T0_MS + 50000 + (int64_t)input * 7, (uint8_t)(0x60 + input), 0);
}

struct uuid holder_id(uint32_t holder)
{
    return id_of(T0_MS, 0x90, (int)holder);
}

/* --- some of a set: as a rule each once, in any order --- */

uint32_t a_saga(struct chance *chance)
{
    static const uint32_t often[] = {0, 3, 1}; /* two of these are in one shard */

    return chance_percent(chance, 60) ? often[chance_below(chance, COUNT_OF(often))] : chance_below(chance, SAGAS);
}

struct some some_of(struct chance *chance, uint32_t of)
{
    struct some some = {.count = 1 + chance_below(chance, chance_percent(chance, 40) ? 3 : 1)};
    bool twice = chance_percent(chance, 4), in_order = chance_percent(chance, 70);

    some.count = some.count > of ? of : some.count;

    for (size_t i = 0; i < some.count; i++) {
        bool again;

        do {
            some.item[i] = chance_below(chance, of);
            again = false;
            for (size_t k = 0; k < i; k++) {
                again = again || some.item[k] == some.item[i];
            }
        } while (again && !twice);
        for (size_t k = i; in_order && k > 0 && some.item[k - 1] > some.item[k]; k--) {
            uint32_t larger = some.item[k - 1];

            some.item[k - 1] = some.item[k];
            some.item[k] = larger;
        }
    }
    return some;
}

struct some some_sagas(struct chance *chance)
{
    struct some some = some_of(chance, SAGAS);

    if (some.count == 1) {
        some.item[0] = a_saga(chance);
    }
    return some;
}

void item_id(struct db_args *args, struct uuid id)
{
    db_item_uuid(args, &id);
}

void arg_id(struct db_args *args, struct uuid id)
{
    db_arg_uuid(args, &id);
}

void item_text(struct db_args *args, const char *text)
{
    db_item_bytes(args, slice_of(text));
}

void arg_text(struct db_args *args, const char *text)
{
    db_arg_text(args, slice_of(text));
}

const char *one_of(struct chance *chance, const char *const *texts, uint32_t count)
{
    return texts[chance_below(chance, count)];
}

void item_time_or_null(struct db_args *args, struct chance *chance, uint32_t null_percent)
{
    if (chance_percent(chance, null_percent)) {
        db_item_null(args);
    } else {
        db_item_timestamptz(args, chance_percent(chance, 30) ? FAR_MS : T0_MS + chance_below(chance, 12) * 1000 + 500);
    }
}

void add_shards(struct db_args *args, struct some sagas)
{
    COLUMN(DB_INT2, sagas, db_item_int(args, saga_shard(x)));
}

void add_sagas(struct db_args *args, struct some sagas)
{
    add_shards(args, sagas);
    COLUMN(DB_UUID, sagas, item_id(args, saga_id(x)));
}

int epoch_of_most(void)
{
    return epoch_expected;
}

void arg_epoch(struct db_args *args, struct chance *chance)
{
    db_arg_int8(args, chance_percent(chance, 80) ? epoch_expected : 1 - epoch_expected);
}

void add_epochs(struct db_args *args, struct chance *chance, size_t count)
{
    struct some some = {.count = count};

    COLUMN(DB_INT8, some, db_item_int(args, chance_percent(chance, 80) ? epoch_expected : 1 - epoch_expected));
}

#define A_CASE "{\"cost\":5,\"evidence\":{\"tool\":\"bank\",\"last_error\":\"timeout\"}}"
#define A_CASE_IN(currency) "{\"cost\":7,\"currency\":\"" currency "\",\"evidence\":{\"tool\":\"bank\"}}"

void add_bytes(struct db_args *args, struct chance *chance, size_t count, bool may_be_null)
{
    struct some some = {.count = count};

    COLUMN(DB_BYTEA, some,
           may_be_null && chance_percent(chance, 40)
               ? db_item_null(args)
               : item_text(args, ONE_OF("{\"a\":1}", "{}", "\\x\"\n", A_CASE, A_CASE_IN("EUR"), A_CASE_IN("CHF"))));
}

/* --- the append --- */

/* Draws a value that a check of the table refuses, but only in a statement with one row: the planner decides which of
 * several rows is checked first. */
static bool is_wrong(struct chance *chance, struct some some)
{
    return chance_percent(chance, 3) && some.count == 1;
}

void draw_fence(struct db_args *args, struct chance *chance)
{
    struct some some = some_of(chance, SHARDS);

    add_shards(args, some);
    add_epochs(args, chance, some.count);
}

static const char *const digests[] = {"digest 1", "digest 2", "digest 3"};

/* Draws the key of a request: no key, a key that is no id, the id of another saga, or the saga's own id, which needs no
 * shard. */
static void put_start_keys(struct db_args *args, struct chance *chance, struct some some)
{
    uint32_t keys[ITEMS_MAX];

    for (size_t i = 0; i < some.count; i++) {
        keys[i] = (uint32_t)chance_below(chance, SHARDS + 3);
    }
    db_array_begin(args, DB_BYTEA, some.count);
    for (size_t i = 0; i < some.count; i++) {
        item_text(args, keys[i] < SHARDS ? digests[keys[i]] : keys[i] == SHARDS ? "digest 4" : NULL);
    }
    db_array_end(args);
    db_array_begin(args, DB_INT2, some.count);
    for (size_t i = 0; i < some.count; i++) {
        if (keys[i] > SHARDS || keys[i] == some.item[i] % SHARDS) {
            db_item_null(args);
        } else {
            db_item_int(args, keys[i] < SHARDS ? keys[i] : 0);
        }
    }
    db_array_end(args);
}

static void put_starts(struct db_args *args, struct chance *chance, struct some sagas, bool unique)
{
    add_sagas(args, sagas);
    COLUMN(DB_TEXT, sagas, item_text(args, chance_percent(chance, 80) ? "n" : "m"));
    COLUMN(DB_TEXT, sagas, item_text(args, ONE_OF("order", "order", "trip", RUN_SAGA_NAME, OPEN_SAGA_NAME)));
    COLUMN(DB_INT4, sagas, db_item_int(args, 1 + chance_below(chance, 2)));
    COLUMN(DB_TEXT, sagas, item_text(args, !is_wrong(chance, sagas) ? ONE_OF("running", "waiting") : "bogus"));
    COLUMN(DB_TEXT, sagas,
           item_text(args, ONE_OF(NULL, "{}", "{\"b\":\"x\",\"aa\":\"y\", \"a\" : \"\\u00e9\\n\\u0001/\"}",
                                  "{\"team\":\"one\"}")));
    COLUMN(DB_BYTEA, sagas, item_text(args, ONE_OF("digest of an input", "digest of another")));
    COLUMN(DB_TIMESTAMPTZ, sagas, db_item_timestamptz(args, T0_MS + chance_below(chance, 100)));
    COLUMN(DB_TIMESTAMPTZ, sagas, db_item_timestamptz(args, T0_MS + chance_below(chance, 100)));
    COLUMN(DB_TIMESTAMPTZ, sagas, item_time_or_null(args, chance, 80));
    COLUMN(DB_TEXT, sagas, item_text(args, ONE_OF(NULL, "ann", "bob")));
    if (unique) {
        COLUMN(DB_TEXT, sagas, item_text(args, (const char *const[]){"one", "two", "three"}[x % SHARDS]));
        COLUMN(DB_BYTEA, sagas, item_text(args, digests[x % SHARDS]));
        put_start_keys(args, chance, sagas);
    }
}

void draw_start(struct db_args *args, struct chance *chance)
{
    put_starts(args, chance, some_sagas(chance), false);
}

void draw_start_all(struct db_args *args, struct chance *chance)
{
    put_starts(args, chance, (struct some){{0, 1, 2, 3, 4, 5, 6, 7, 8}, SAGAS}, false);
}

void draw_start_unique(struct db_args *args, struct chance *chance)
{
    put_starts(args, chance, some_sagas(chance), true);
}

void draw_lower_low(struct db_args *args, struct chance *chance)
{
    struct some some = some_of(chance, SHARDS);

    add_shards(args, some);
    COLUMN(DB_TIMESTAMPTZ, some, db_item_timestamptz(args, T0_MS + chance_below(chance, 10) * 1000));
}

void draw_log(struct db_args *args, struct chance *chance)
{
    struct some sagas = some_sagas(chance);

    add_sagas(args, sagas);
    COLUMN(DB_INT4, sagas, db_item_int(args, !is_wrong(chance, sagas) ? 1 + chance_below(chance, 3) : 0));
    COLUMN(DB_INT2, sagas, db_item_int(args, 1 + chance_below(chance, 2)));
    COLUMN(DB_TIMESTAMPTZ, sagas, db_item_timestamptz(args, T0_MS + chance_below(chance, 1000)));
    add_epochs(args, chance, sagas.count);
    db_array_begin(args, DB_BYTEA, sagas.count);
    for (size_t i = 0; i < sagas.count; i++) {
        struct uuid key = key_id(chance_percent(chance, 60) ? sagas.item[i] % KEYS : chance_below(chance, KEYS));
        char id[UUID_TEXT_BYTES];
        struct buffer text;

        uuid_text(&key, id);
        buffer_init(&text, 4096);
        buffer_printf(&text, "[{\"type\":\"t\",%s\"%s\"}, \"key\": 7]",
                      ONE_OF("\"key\":", "\"key\": ", "\"key\":  ", "\\\"key\":"), id);
        db_item_bytes(args, buffer_slice(&text));
        buffer_fini(&text);
    }
    db_array_end(args);
    COLUMN(DB_BOOL, sagas, db_item_bool(args, chance_percent(chance, 60)));
    db_array_begin(args, DB_BYTEA, sagas.count);
    for (size_t i = 0; i < sagas.count; i++) {
        if (chance_percent(chance, 40)) {
            db_item_bytes(args, slice_of(ONE_OF("rest", "other rest")));
        } else {
            db_item_null(args);
        }
    }
    db_array_end(args);
}

/* Draws keys. `own_percent` is the share of keys that the log of the saga names. */
static struct some put_keys(struct db_args *args, struct chance *chance, uint32_t own_percent)
{
    struct some keys = some_of(chance, KEYS), sagas = {.count = keys.count};

    COLUMN(DB_INT2, keys, db_item_int(args, key_shard(x)));
    COLUMN(DB_UUID, keys, item_id(args, key_id(x)));
    for (size_t i = 0; i < sagas.count; i++) {
        sagas.item[i] = chance_percent(chance, own_percent) ? keys.item[i] : a_saga(chance);
    }
    COLUMN(DB_UUID, sagas, item_id(args, saga_id(x)));
    return sagas;
}

static int64_t some_time_ms(struct chance *chance)
{
    static const int64_t minutes[] = {0, 5, 60, 120, 720, 30000, 120000};

    return T0_MS + minutes[chance_below(chance, COUNT_OF(minutes))] * 60 * 1000;
}

static void put_known_keys(struct db_args *args, struct chance *chance)
{
    struct some sagas = put_keys(args, chance, 80);
    bool may_be_refused = chance_percent(chance, 50);

    db_array_begin(args, DB_INT2, sagas.count);
    for (size_t i = 0; i < sagas.count; i++) {
        if (may_be_refused) {
            db_item_int(args, saga_shard(sagas.item[i]));
        } else {
            db_item_null(args);
        }
    }
    db_array_end(args);
}

void draw_key_for_older(struct db_args *args, struct chance *chance)
{
    put_known_keys(args, chance);
}

void draw_key_bundle(struct db_args *args, struct chance *chance)
{
    int64_t now_ms = some_time_ms(chance);

    put_known_keys(args, chance);
    arg_id(args, id_of(T0_MS, (uint8_t)(0x70 + chance_below(chance, 3)), 0));
    db_arg_timestamptz(args, now_ms);
    db_arg_timestamptz(args, now_ms + 60000 * (1 + chance_below(chance, 6)));
}

void draw_key_sweep(struct db_args *args, struct chance *chance)
{
    db_arg_int2(args, (int)chance_below(chance, 2));
    db_arg_timestamptz(args, some_time_ms(chance));
    db_arg_int8(args, 1 + chance_below(chance, 3));
    db_arg_int8(args, 2 + chance_below(chance, 3));
    db_arg_int8(args, 2 + chance_below(chance, 3));
    db_arg_int8(args, 1 + chance_below(chance, 8));
}

void draw_old_key(struct db_args *args, struct chance *chance)
{
    (void)put_keys(args, chance, 60);
}

void draw_status(struct db_args *args, struct chance *chance)
{
    struct some sagas = some_sagas(chance);

    add_sagas(args, sagas);
    COLUMN(DB_TEXT, sagas,
           item_text(args, !is_wrong(chance, sagas) ? ONE_OF("running", "completed", "escalated") : "bogus"));
    COLUMN(DB_TIMESTAMPTZ, sagas, db_item_timestamptz(args, T0_MS + 100 + chance_below(chance, 100)));
    COLUMN(DB_TIMESTAMPTZ, sagas, item_time_or_null(args, chance, 40));
}

void draw_some_sagas(struct db_args *args, struct chance *chance)
{
    add_sagas(args, some_sagas(chance));
}

static void item_number(struct db_args *args, uint32_t saga)
{
    db_item_int(args, saga_shard(saga) + 64 * (1 + saga / SHARDS));
}

void draw_escalation_open(struct db_args *args, struct chance *chance)
{
    struct some sagas = some_sagas(chance);

    add_shards(args, sagas);
    COLUMN(DB_INT8, sagas, item_number(args, x));
    COLUMN(DB_UUID, sagas, item_id(args, saga_id(x)));
    COLUMN(DB_TEXT, sagas, item_text(args, chance_percent(chance, 80) ? "n" : "m"));
    COLUMN(DB_TIMESTAMPTZ, sagas, db_item_timestamptz(args, T0_MS + chance_below(chance, 100)));
    COLUMN(DB_TEXT, sagas, item_text(args, ONE_OF("pay", NULL)));
    COLUMN(DB_TEXT, sagas, item_text(args, "unknown"));
    add_bytes(args, chance, sagas.count, false);
}

void draw_escalation_change(struct db_args *args, struct chance *chance)
{
    struct some sagas = some_sagas(chance);

    add_shards(args, sagas);
    COLUMN(DB_INT8, sagas, item_number(args, x));
    COLUMN(DB_TIMESTAMPTZ, sagas, item_time_or_null(args, chance, 30));
    COLUMN(DB_TIMESTAMPTZ, sagas, item_time_or_null(args, chance, 60));
    COLUMN(DB_TEXT, sagas, item_text(args, ONE_OF("unknown", "late-success")));
    add_bytes(args, chance, sagas.count, true);
}

void draw_approval_open(struct db_args *args, struct chance *chance)
{
    struct some sagas = some_sagas(chance);

    add_shards(args, sagas);
    COLUMN(DB_INT8, sagas, item_number(args, x));
    COLUMN(DB_UUID, sagas, item_id(args, saga_id(x)));
    COLUMN(DB_TEXT, sagas, item_text(args, chance_percent(chance, 80) ? "n" : "m"));
    COLUMN(DB_TIMESTAMPTZ, sagas, db_item_timestamptz(args, T0_MS + chance_below(chance, 100)));
    COLUMN(DB_TIMESTAMPTZ, sagas, item_time_or_null(args, chance, 50));
    COLUMN(DB_TEXT, sagas, item_text(args, "ask"));
    COLUMN(DB_TEXT, sagas, item_text(args, !is_wrong(chance, sagas) ? "open" : "bogus"));
    add_bytes(args, chance, sagas.count, false);
}

void draw_approval_end(struct db_args *args, struct chance *chance)
{
    struct some sagas = some_sagas(chance);

    add_shards(args, sagas);
    COLUMN(DB_INT8, sagas, item_number(args, x));
    COLUMN(DB_TIMESTAMPTZ, sagas, db_item_timestamptz(args, T0_MS + 100 + chance_below(chance, 100)));
    COLUMN(DB_TEXT, sagas,
           item_text(args, !is_wrong(chance, sagas) ? ONE_OF("open", "approved", "refused", "cancelled") : "bogus"));
    add_bytes(args, chance, sagas.count, true);
    COLUMN(DB_UUID, sagas, item_id(args, saga_id(x)));
    COLUMN(DB_TIMESTAMPTZ, sagas, item_time_or_null(args, chance, 50));
}

void draw_consume(struct db_args *args, struct chance *chance)
{
    struct some inputs = some_of(chance, INPUTS);

    add_shards(args, inputs);
    COLUMN(DB_UUID, inputs, item_id(args, input_id(x)));
    COLUMN(DB_UUID, inputs, item_id(args, saga_id(x))); /* an id of the same shard */
}

void draw_follow(struct db_args *args, struct chance *chance)
{
    struct some sagas = some_sagas(chance);

    add_sagas(args, sagas);
    add_shards(args, sagas); /* never one input for two sagas, because the planner decides which comes first */
    COLUMN(DB_UUID, sagas, item_id(args, input_id(x)));
    COLUMN(DB_UUID, sagas, item_id(args, saga_id(x)));
    add_bytes(args, chance, sagas.count, false);
}

void draw_forget_later(struct db_args *args, struct chance *chance)
{
    struct some sagas = some_sagas(chance);

    add_sagas(args, sagas);
    COLUMN(DB_TIMESTAMPTZ, sagas, db_item_timestamptz(args, T0_MS + x * 10 + chance_below(chance, 10)));
}

void draw_taken(struct db_args *args, struct chance *chance)
{
    struct some some = some_of(chance, SHARDS);

    add_shards(args, some);
    COLUMN(DB_BYTEA, some, item_text(args, digests[x]));
    put_start_keys(args, chance, some);
}

void draw_some_shards(struct db_args *args, struct chance *chance)
{
    add_shards(args, some_of(chance, SHARDS));
}

void draw_look(struct db_args *args, struct chance *chance)
{
    struct some sagas = some_sagas(chance);

    add_sagas(args, sagas);
    COLUMN(DB_INT4, sagas, db_item_int(args, 1 + chance_below(chance, 3)));
}
