/* From the key of an operation to its saga: a key that a batch makes known is found, and a key that is gone is dropped
 * in the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/sql.h"
#include "store/store_state.h"
#include "tests/integration/store_host.h"
#include "tests/lib/test.h"

enum { CROWD = 200 };

static struct host host;
static struct store *store;
static struct arena arena;
static struct leases *leases;
static bool is_released;

#define ASK(call, request) HOST_ASK(&host, store, &arena, call, request)

/* Makes keys of one shard, whose last byte is the same. */
static struct op_key key_of(uint8_t last)
{
    struct op_key key;

    assert_true(random_bytes(key.uuid.bytes, sizeof(key.uuid.bytes)));
    key.uuid.bytes[15] = last;
    return key;
}

static void prepare_start(struct turn *turn, struct saga_id id, uint8_t last, const char *business_id)
{
    turn_start(turn, id, 0, business_id);
    assert_true(lease_is_held(leases, turn->append.shard, &turn->append.epoch));
    turn->keys[0] = key_of(last);
    turn->append.new_keys = turn->keys;
    turn->append.new_key_count = 1;
}

static struct op_key start_with_key(struct saga_id id, uint8_t last, const char *business_id)
{
    struct turn turn = {0};

    prepare_start(&turn, id, last, business_id);
    host_append(&host, store, &turn);
    return turn.keys[0];
}

static bool is_of(struct op_key key, struct saga_id id)
{
    struct find_operation find = {.namespace = SLICE("default"), .key = key};

    return ASK(store_find_operation, &find) == ERR_OK && uuid_equal(&find.id.uuid, &id.uuid);
}

static bool is_unknown(struct op_key key)
{
    struct find_operation find = {.namespace = SLICE("default"), .key = key};

    return ASK(store_find_operation, &find) == ERR_NOT_FOUND;
}

static long bundles(void)
{
    return host_number(&host, "select count(*) from sagad.key_bundle");
}

static bool has_swept(void *context)
{
    return store->key_sweep.rounds > *(uint64_t *)context;
}

/* Sweeps all shards, an hour later. At that time the first saga of a bundle of 40 is looked up. */
static void sweep(void)
{
    uint64_t before = store->key_sweep.rounds;

    host_sql(&host, "update sagad.key_bundle set made_at = made_at - interval '1 hour', check_at = to_timestamp(40 * "
                    "floor(extract(epoch from now()) / 40) - 40)");
    keys_sweep(store);
    host_run_until(&host, has_swept, &before);
}

static void remove_saga(struct saga_id id)
{
    host_sql(&host, "delete from sagad.log where saga = '%s'; delete from sagad.saga where id = '%s'", id_text(id),
             id_text(id));
}

/* --- */

static bool are_all_done(void *context)
{
    return *(int *)context == CROWD;
}

TEST(keys_that_a_batch_makes_known_are_found_and_lie_together)
{
    struct turn *turns = calloc(CROWD, sizeof(*turns));
    struct saga_id *ids = calloc(CROWD, sizeof(*ids));
    int done_count = 0;

    for (int i = 0; i < CROWD; i++) {
        ids[i] = host_saga((uint32_t)i % SHARD_COUNT);
        prepare_start(&turns[i], ids[i], (uint8_t)(i % 4), NULL);
        turns[i].done_count = &done_count;
        store_append(store, &turns[i].append);
    }
    host_run_until(&host, are_all_done, &done_count);
    assert_true(bundles() < CROWD / 2); /* four rows in each batch */
    for (int i = 0; i < CROWD; i += 7) {
        assert_true(is_of(turns[i].keys[0], ids[i]));
    }
    assert_true(is_unknown(key_of(1)));
    host_sql(&host, "delete from sagad.key_bundle");
    free(turns);
    free(ids);
}

TEST(a_start_that_is_refused_makes_no_key_known)
{
    struct saga_id first = host_saga(7), second = host_saga(7);
    struct op_key taken = start_with_key(first, 9, "the-same"), refused = start_with_key(second, 9, "the-same");

    assert_true(is_of(taken, first));
    assert_true(is_unknown(refused));
    assert_int_equal(bundles(), 1);
}

TEST(small_bundles_are_put_together_and_lose_what_is_gone)
{
    struct saga_id ids[6];
    struct op_key keys[6];

    host_sql(&host, "delete from sagad.key_bundle");
    for (int i = 0; i < 6; i++) {
        ids[i] = host_saga(8);
        keys[i] = start_with_key(ids[i], 10, NULL);
    }
    assert_int_equal(bundles(), 6);
    remove_saga(ids[2]);
    sweep();
    assert_int_equal(bundles(), 1);
    assert_int_equal(host_number(&host, "select count(*) from " KNOWN_KEYS " k"), 5);
    for (int i = 0; i < 6; i++) {
        assert_true(i == 2 ? is_unknown(keys[i]) : is_of(keys[i], ids[i]));
    }
    assert_int_equal(
        host_number(&host, "select count(*) from sagad.key_bundle where check_at > now() + interval '8 hours'"), 1);
    for (int i = 0; i < 6; i++) {
        remove_saga(ids[i]);
    }
    sweep();
    assert_int_equal(bundles(), 0);
}

TEST(a_large_bundle_stays_as_long_as_a_saga_is_found)
{
    struct saga_id first = host_saga(8), other = host_saga(8);

    (void)start_with_key(first, 10, NULL);
    (void)start_with_key(other, 10, NULL);
    host_sql(&host,
             "delete from sagad.key_bundle; insert into sagad.key_bundle (shard, check_at, id, made_at, keys, sagas)"
             " select 10, now(), sagad.new_id(), now() - interval '1 hour', array_agg(gen_random_uuid()),"
             " array_agg(case when n = 1 then '%s'::uuid when n = 2 then '%s' else overlay(gen_random_uuid()::text "
             "placing '0008' from 33)::uuid end order by n)"
             " from generate_series(1, 40) as n",
             id_text(first), id_text(other));
    sweep();
    assert_int_equal(host_number(&host, "select cardinality(keys) from sagad.key_bundle"), 40);
    assert_int_equal(host_number(&host, "select count(*) from sagad.key_bundle where check_at between now() + interval "
                                        "'17 h' and now() + interval '19 h'"),
                     1);
    remove_saga(first);
    sweep();
    assert_int_equal(host_number(&host, "select count(*) from " KNOWN_KEYS " k where saga = '%s'", id_text(other)), 1);
    assert_int_equal(host_number(&host, "select cardinality(keys) from sagad.key_bundle"), 1);
    host_sql(&host, "delete from sagad.key_bundle");
}

/* There are more bundles than one statement looks at. The next rounds follow by themselves, until nothing is due. */
TEST(many_small_bundles_are_put_together_in_rounds)
{
    struct saga_id id = host_saga(8);
    uint64_t before = store->key_sweep.rounds;

    (void)start_with_key(id, 10, NULL);
    host_sql(&host,
             "delete from sagad.key_bundle; insert into sagad.key_bundle (shard, check_at, id, made_at, keys, sagas)"
             " select 10, now() - interval '1 s', sagad.new_id(), now(), array[gen_random_uuid()], array['%s'::uuid] "
             "from generate_series(1, 1300)",
             id_text(id));
    keys_sweep(store);
    for (uint64_t last = before + 2; before <= last; before++) { /* 512, 512, and the rest */
        host_run_until(&host, has_swept, &before);
    }
    assert_int_equal(bundles(), 512 / 64 + 512 / 64 + 276 / 64 + 1);
    assert_int_equal(host_number(&host, "select count(*) from " KNOWN_KEYS " k"), 1300);
    host_sql(&host, "delete from sagad.key_bundle");
}

TEST(it_rests_where_nothing_goes_on)
{
    sweep();
    assert_true(store->key_sweep.rests);
    (void)start_with_key(host_saga(8), 10, NULL);
    assert_false(store->key_sweep.rests);
    sweep();
    assert_false(store->key_sweep.rests);
    host_sql(&host, "delete from sagad.key_bundle");
}

TEST(what_comes_while_a_statement_is_under_way_starts_no_second_one)
{
    uint64_t before;

    sweep();
    assert_true(store->key_sweep.rests);
    before = store->key_sweep.rounds;
    keys_sweep(store);
    keys_fed(store);
    assert_int_equal(store->key_sweep.timer.heap_index, 0);
    host_run_until(&host, has_swept, &before);
    assert_false(store->key_sweep.rests);
}

TEST(a_round_that_is_refused_is_no_quiet_one)
{
    uint64_t before = store->key_sweep.rounds;

    host_sql(&host, "alter table sagad.key_bundle rename to elsewhere");
    keys_sweep(store);
    host_run_until(&host, has_swept, &before);
    host_sql(&host, "alter table sagad.elsewhere rename to key_bundle");
    assert_false(store->key_sweep.rests);
    assert_int_equal(store->key_sweep.bundles_max, 1);
    before = store->key_sweep.rounds;
    keys_sweep(store);
    host_run_until(&host, has_swept, &before);
    assert_true(store->key_sweep.bundles_max > 1);
}

/* The run that an agent names may be the id of a saga. */
TEST(a_key_that_two_sagas_have_is_that_of_the_older_one)
{
    struct saga_id older = host_saga(8), newer = host_saga(9);
    struct op_key key = start_with_key(newer, 10, NULL);

    (void)start_with_key(older, 10, NULL);
    host_sql(&host,
             "update sagad.key_bundle b set keys = array[k.keys[1]] from sagad.key_bundle k where k.sagas[1] = '%s'",
             id_text(newer));
    assert_true(is_of(key, older));
    assert_int_equal(
        host_number(
            &host,
            "select count(*) from (select sagad.saga_of(keys[1]) as saga from sagad.key_bundle) q where saga = '%s'",
            id_text(older)),
        2);
    sweep();
    assert_true(is_of(key, older));
    host_sql(&host, "delete from sagad.key_bundle");
}

static bool is_beside_older(void *context)
{
    return leases_beside_older(leases) == *(bool *)context;
}

TEST(an_engine_of_the_schema_before_finds_what_is_made_known_beside_it)
{
    struct saga_id id = host_saga(8);
    struct op_key key;

    (void)start_with_key(host_saga(8), 10, NULL);
    assert_int_equal(host_number(&host, "select count(*) from sagad.operation_key"), 0);
    assert_false(leases_beside_older(leases));
    host_sql(&host, "insert into sagad.engine (instance, identity, name, version, schema, expires_at) values ('old', "
                    "'', 'old', '0', 9, now() + interval '1 h');"
                    " select pg_notify('" SQL_LEASES_CHANNEL "', '')"); /* as an engine does when it comes */
    host_run_until(&host, is_beside_older, &(bool){true});
    key = start_with_key(id, 10, NULL);
    assert_int_equal(
        host_number(&host, "select count(*) from sagad.operation_key where saga = '%s' and shard = 10", id_text(id)),
        1);
    assert_true(is_of(key, id));
    host_sql(&host, "update sagad.engine set expires_at = now() - interval '2 hours' where name = 'old'; select "
                    "pg_notify('" SQL_LEASES_CHANNEL "', '')");
    host_run_until(&host, is_beside_older, &(bool){false});
    (void)start_with_key(host_saga(8), 10, NULL);
    assert_int_equal(host_number(&host, "select count(*) from sagad.operation_key"), 1);
}

/* --- */

static bool has_all(void *context)
{
    (void)context;
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        if (!lease_is_held(leases, shard, NULL)) {
            return false;
        }
    }
    return true;
}

static void on_lease(uint32_t shard, int64_t epoch, void *context)
{
    (void)shard, (void)epoch, (void)context;
}

static int64_t no_unfinished_ms(uint32_t shard, void *context)
{
    (void)shard, (void)context;
    return 0;
}

static void on_released(void *context)
{
    (void)context;
    is_released = true;
}

static int setup(void **state)
{
    (void)state;
    store = host_begin(&host, NULL, &arena);
    leases = leases_start(store, &(struct lease_options){.ttl_ms = 60000,
                                                         .engine_name = "one",
                                                         .version = "1",
                                                         .on_gained = on_lease,
                                                         .on_lost = on_lease,
                                                         .oldest_unfinished_ms = no_unfinished_ms});
    host_run_until(&host, has_all, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    leases_release(leases, on_released, NULL);
    host_run_until(&host, host_is_set, &is_released);
    host_end(&host, store, &arena);
    return 0;
}

TEST_PROGRAM(setup, teardown)
