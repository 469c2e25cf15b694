/* What was written comes back: sagas and their logs, each filter of lists, unfinished sagas, the inbox and
 * definitions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_state.h"
#include "tests/integration/store_host.h"
#include "tests/lib/test.h"

enum { SAGAS = 40 };

static struct host host;
static struct store *store;
static struct arena arena;
static struct saga_id ids[SAGAS];
static bool done;

#define ASK(call, request) HOST_ASK(&host, store, &arena, call, request)

/* Writes forty sagas, the i-th in shard i. Every fourth is completed, every tenth is in another namespace, and one has
 * a business id. */
static void write_sagas(void)
{
    for (int i = 0; i < SAGAS; i++) {
        struct turn turn = {0};

        ids[i] = host_saga((uint32_t)i);
        turn_start(&turn, ids[i], 0, i == 5 ? "order-5" : NULL);
        if (i % 10 == 9) {
            turn.start.namespace = turn.append.namespace = SLICE("other");
        }
        if (i % 2 == 1) {
            turn.start.saga_name = SLICE("trip");
        }
        if (i == 3) {
            turn.start.tags = SLICE("{\"shop\": \"south\", \"n\": \"3\"}");
        }
        memset(turn.keys[0].uuid.bytes, i + 1, sizeof(turn.keys[0].uuid.bytes));
        turn.append.new_keys = turn.keys;
        turn.append.new_key_count = 1;
        assert_int_equal(host_append(&host, store, &turn), ERR_OK);
        turn_next(&turn, ids[i], 0, 2, "step.intent");
        turn.append.record_count = 3;
        host_append(&host, store, &turn);
        if (i % 4 == 0) {
            turn_next(&turn, ids[i], 0, 5, "saga.completed");
            turn.append.status_changed = turn.append.ended = true;
            turn.append.status = SAGA_COMPLETED;
            host_append(&host, store, &turn);
        }
        assert_int_equal(turn.append.code, ERR_OK);
    }
}

TEST(a_saga_comes_back_with_its_log)
{
    struct read_saga read = {.id = ids[4], .namespace = SLICE("default")};

    assert_int_equal(ASK(store_read_saga, &read), ERR_OK);
    assert_true(uuid_equal(&read.row.id.uuid, &ids[4].uuid));
    assert_int_equal(read.row.status, SAGA_COMPLETED);
    assert_true(slice_is(read.row.saga_name, "order"));
    assert_true(read.row.ended_ms >= read.row.created_ms && read.row.created_ms > 0);
    assert_null(read.row.business_id.ptr);
    assert_int_equal(read.turn_count, 3);
    assert_int_equal(read.turns[1].first_seq, 2);
    assert_true(slice_is(read.turns[2].payload, "[{\"type\": \"saga.completed\"}]"));

    read = (struct read_saga){.id = ids[4], .namespace = SLICE("default"), .after_seq = 3, .turns_max = 1};
    assert_int_equal(ASK(store_read_saga, &read), ERR_OK);
    assert_int_equal(read.turn_count, 1);
    assert_int_equal(read.turns[0].first_seq, 2); /* the turn holds record 4 */
    read = (struct read_saga){.id = ids[4], .namespace = SLICE("default"), .after_seq = 4};
    assert_int_equal(ASK(store_read_saga, &read), ERR_OK);
    assert_int_equal(read.turn_count, 1);
    assert_int_equal(read.turns[0].first_seq, 5);
}

TEST(another_namespace_does_not_see_it)
{
    struct read_saga read = {.id = ids[4], .namespace = SLICE("other")};
    struct read_saga none = {.id = host_saga(4), .namespace = SLICE("default")};
    struct read_saga foreign = {.namespace = SLICE("default")};

    assert_int_equal(ASK(store_read_saga, &read), ERR_NOT_FOUND);
    assert_int_equal(ASK(store_read_saga, &none), ERR_NOT_FOUND);
    memset(foreign.id.uuid.bytes, 0xff, 16); /* its shard would be 65535 */
    assert_int_equal(ASK(store_read_saga, &foreign), ERR_NOT_FOUND);
}

TEST(a_saga_is_found_by_business_id_and_by_the_key_of_an_operation)
{
    struct digest input = digest_sha256(SLICE("input")), other_input = digest_sha256(SLICE("other"));
    struct find_saga find = {.business_digest = turn_business_digest("order-5"), .shard = 5, .input = &input};
    struct find_saga other = {.business_digest = turn_business_digest("order-5"), .shard = 5, .input = &other_input};
    struct find_saga none = {.business_digest = turn_business_digest("order-6"), .shard = 5};
    struct find_operation operation = {.namespace = SLICE("default")};

    assert_int_equal(ASK(store_find_saga, &find), ERR_OK);
    assert_true(uuid_equal(&find.id.uuid, &ids[5].uuid));
    assert_true(find.has_input);
    assert_int_equal(ASK(store_find_saga, &other), ERR_OK);
    assert_false(other.has_input);
    assert_int_equal(ASK(store_find_saga, &none), ERR_NOT_FOUND);

    memset(operation.key.uuid.bytes, 12, 16);
    assert_int_equal(ASK(store_find_operation, &operation), ERR_OK);
    assert_true(uuid_equal(&operation.id.uuid, &ids[11].uuid));
    operation.namespace = SLICE("other");
    assert_int_equal(ASK(store_find_operation, &operation), ERR_NOT_FOUND);
    memset(operation.key.uuid.bytes, 99, 16);
    operation.namespace = SLICE("default");
    assert_int_equal(ASK(store_find_operation, &operation), ERR_NOT_FOUND);
}

TEST(a_list_is_newest_first_and_goes_on_where_it_ended)
{
    struct uuid before = {{0}};
    size_t count = 0;

    for (int page = 0; page < 10; page++) {
        struct list_sagas list = {.namespace = SLICE("default"), .limit = 7, .before = before};

        assert_int_equal(ASK(store_list_sagas, &list), ERR_OK);
        for (size_t i = 0; i < list.count; i++) {
            assert_true(count == 0 || uuid_compare(&list.rows[i].id.uuid, &before) < 0);
            before = list.rows[i].id.uuid;
            count++;
        }
        if (list.count < 7) {
            break;
        }
    }
    assert_int_equal(count, 36);
}

/* A sum counts what the list has, by status. */
static void expect_sum(struct list_sagas *list, const char *name, size_t wanted, bool has_edge)
{
    struct sum_sagas sum = {.list = list};
    size_t count = 0;

    assert_int_equal(ASK(store_sum_sagas, &sum), ERR_OK);
    for (size_t status = 0; status < SAGA_STATUS_COUNT; status++) {
        count += (size_t)sum.counts[status];
        assert_true(sum.counts[status] == 0 || !list->statuses || list->statuses & BIT(status));
    }
    if (count != wanted || list->has_edge != has_edge) {
        fail_msg("%s: %zu were counted instead of %zu, to an edge: %d", name, count, wanted, list->has_edge);
    }
}

/* Pages of a list that looks at one saga of each shard only: each saga comes once, and each page says how far it is. */
TEST(a_list_that_looks_no_further_says_where_it_ended)
{
    const struct slice trip[] = {SLICE("trip")};
    size_t found = 0, pages = 0;
    int64_t looked = 0;
    struct list_sagas list = {.namespace = SLICE("short"), .names = trip, .name_count = 1, .limit = 50};
    struct turn turn = {0};

    for (int i = 0; i < 12; i++) { /* of each three one is wanted */
        turn_start(&turn, host_saga(i % 2 ? 54 : 55), 0, NULL);
        turn.start.namespace = turn.append.namespace = SLICE("short");
        turn.start.saga_name = i % 3 == 0 ? SLICE("trip") : SLICE("order");
        assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    }
    for (list.has_edge = true; list.has_edge; pages++) {
        struct count_looked count = {.list = &list};

        list.before = list.edge;
        list.looked_max = 2;
        assert_int_equal(ASK(store_list_sagas, &list), ERR_OK);
        for (size_t i = 0; i < list.count; i++) {
            assert_true(slice_is(list.rows[i].saga_name, "trip"));
            assert_true(!list.has_edge || uuid_compare(&list.rows[i].id.uuid, &list.edge) >= 0);
        }
        found += list.count;
        if (list.has_edge) {
            assert_int_equal(ASK(store_count_looked, &count), ERR_OK);
            assert_in_range(count.count, 2, 4);
            looked += count.count;
        }
    }
    assert_int_equal(found, 4);
    assert_in_range(pages, 3, 7);
    assert_in_range(looked, 8, 12);
    list = (struct list_sagas){.namespace = SLICE("short"), .limit = 3, .looked_max = 2};
    assert_int_equal(ASK(store_list_sagas, &list), ERR_OK);
    assert_true(list.count == 3 && !list.has_edge); /* full before it had to stop */
    list = (struct list_sagas){.namespace = SLICE("short"), .looked_max = 2};
    expect_sum(&list, "two of each shard", 3, true);
    list.before = list.edge;
    expect_sum(&list, "those before", 3, true);
}

TEST(each_filter_of_a_list_holds)
{
    const struct slice trip[] = {SLICE("trip")}, order[] = {SLICE("order")}, both[] = {SLICE("trip"), SLICE("order")},
                       none[] = {SLICE("stay")}, south[] = {SLICE("{\"shop\":\"south\"}")},
                       east[] = {SLICE("{\"shop\":\"east\"}")},
                       either[] = {SLICE("{\"shop\":\"east\"}"), SLICE("{\"shop\":\"south\"}")},
                       third[] = {SLICE("{\"shop\":\"south\",\"n\":\"4\"}")};
    const struct business_place places[] = {{5, turn_business_digest("order-5")}, {6, turn_business_digest("order-6")}};
    const int64_t first[] = {1}, others[] = {7, 8};
    const struct {
        const char *name;
        struct list_sagas list;
        size_t count;
    } cases[] = {
        {"all", {.namespace = SLICE("default")}, 36},
        {"another namespace", {.namespace = SLICE("other")}, 4},
        {"no such namespace", {.namespace = SLICE("third")}, 0},
        {"completed", {.namespace = SLICE("default"), .statuses = BIT(SAGA_COMPLETED)}, 10},
        {"running", {.namespace = SLICE("default"), .statuses = BIT(SAGA_RUNNING)}, 26},
        {"escalated", {.namespace = SLICE("default"), .statuses = BIT(SAGA_ESCALATED)}, 0},
        {"by name", {.namespace = SLICE("default"), .names = trip, .name_count = 1}, 16},
        {"by either name", {.namespace = SLICE("default"), .names = both, .name_count = 2}, 36},
        {"by a name that nothing has", {.namespace = SLICE("default"), .names = none, .name_count = 1}, 0},
        {"by either status", {.namespace = SLICE("default"), .statuses = BIT(SAGA_COMPLETED) | BIT(SAGA_RUNNING)}, 36},
        {"by two statuses of which nothing has one",
         {.namespace = SLICE("default"), .statuses = BIT(SAGA_COMPLETED) | BIT(SAGA_ABANDONED)},
         10},
        {"by name and status",
         {.namespace = SLICE("default"), .names = order, .name_count = 1, .statuses = BIT(SAGA_COMPLETED)},
         10},
        {"by business id",
         {.namespace = SLICE("default"), .has_business_id = true, .places = places, .place_count = 2},
         1},
        {"by business id and a name that it has not",
         {.namespace = SLICE("default"),
          .has_business_id = true,
          .places = places,
          .place_count = 2,
          .names = order,
          .name_count = 1},
         0},
        {"by its version", {.namespace = SLICE("default"), .versions = first, .version_count = 1}, 36},
        {"by versions that nothing has", {.namespace = SLICE("default"), .versions = others, .version_count = 2}, 0},
        {"by the beginning of a business id", {.namespace = SLICE("default"), .business_prefix = SLICE("order-")}, 1},
        {"by the end of a business id", {.namespace = SLICE("default"), .business_prefix = SLICE("rder-5")}, 0},
        {"by a business id that is nowhere", {.namespace = SLICE("default"), .has_business_id = true}, 0},
        {"by a business id of another namespace",
         {.namespace = SLICE("other"), .has_business_id = true, .places = places, .place_count = 2},
         0},
        {"by tag", {.namespace = SLICE("default"), .tags = south, .tag_count = 1}, 1},
        {"by either value of a tag", {.namespace = SLICE("default"), .tags = either, .tag_count = 2}, 1},
        {"by two tags of which it has one", {.namespace = SLICE("default"), .tags = third, .tag_count = 1}, 0},
        {"by another value of the tag", {.namespace = SLICE("default"), .tags = east, .tag_count = 1}, 0},
        {"since long ago", {.namespace = SLICE("default"), .since_ms = INT64_C(1600000000000)}, 36},
        {"since the far future", {.namespace = SLICE("default"), .since_ms = INT64_C(4000000000000)}, 0},
        {"until long ago", {.namespace = SLICE("default"), .until_ms = INT64_C(1600000000000)}, 0},
        {"until the far future", {.namespace = SLICE("default"), .until_ms = INT64_C(4000000000000)}, 36},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct list_sagas list = cases[i].list;

        list.limit = 500;
        assert_int_equal(ASK(store_list_sagas, &list), ERR_OK);
        if (list.count != cases[i].count) {
            fail_msg("%s: %zu rows instead of %zu", cases[i].name, list.count, cases[i].count);
        }
        if (!list.has_business_id) {
            expect_sum(&list, cases[i].name, cases[i].count, false);
        }
    }
}

TEST(sagas_are_counted_by_status)
{
    struct count_sagas count = {.namespace = SLICE("default"), .newest = 1000};

    assert_int_equal(ASK(store_count_sagas, &count), ERR_OK);
    assert_int_equal(count.counts[SAGA_COMPLETED], 10);
    assert_int_equal(count.counts[SAGA_RUNNING], 26);
    assert_int_equal(count.counts[SAGA_ESCALATED], 0);
}

/* --- loading --- */

struct loaded {
    struct shard_load load;
    int sagas, turns;
    bool done;
};

static void on_saga(struct shard_load *load, struct saga_id id, struct slice namespace, const struct stored_turn *turns,
                    size_t count)
{
    struct loaded *loaded = container_of(load, struct loaded, load);

    assert_int_equal(saga_id_shard(id), load->shard);
    assert_true(slice_is(namespace, "default"));
    assert_int_equal(turns[0].first_seq, 1);
    loaded->sagas++;
    loaded->turns += (int)count;
}

static void on_loaded(struct shard_load *load)
{
    container_of(load, struct loaded, load)->done = true;
}

static bool is_loaded(void *context)
{
    return ((struct loaded *)context)->done;
}

TEST(a_shard_is_loaded_with_its_unfinished_sagas_and_no_others)
{
    struct loaded loaded = {.load = {.shard = 50, .on_saga = on_saga, .done = on_loaded}};
    struct turn *turns = calloc(500, sizeof(*turns));
    int finished = 0;

    for (int i = 0; i < 500; i++) {
        turns[i].done_count = &finished;
        turn_start(&turns[i], host_saga(50), 0, NULL);
        if (i % 5 == 0) {
            turns[i].append.ended = true;
            turns[i].append.status = SAGA_COMPLETED;
        }
        turn_submit(store, &turns[i]);
    }
    for (int i = 0; i < 500; i++) {
        host_run_until(&host, turn_is_done, &turns[i]);
        assert_int_equal(turns[i].append.code, ERR_OK);
    }
    host_sql(&host, "insert into sagad.log (shard, saga, seq, records, at, epoch, payload)"
                    " select shard, id, 2, 1, now(), 0, '[{}]' from sagad.saga where shard = 50");
    host_sql(&host, "insert into sagad.escalation (shard, number, saga, namespace, opened_at, reason, body)"
                    " select 50, 64 * n + 50, gen_random_uuid(), 'default', date_trunc('milliseconds', now()), "
                    "'unknown', '{}' from generate_series(1, 9) n");
    store_load_shard(store, &loaded.load);
    assert_false(loaded.done);
    host_run_until(&host, is_loaded, &loaded);
    assert_int_equal(loaded.load.code, ERR_OK);
    assert_int_equal(loaded.sagas, 400);
    assert_int_equal(loaded.turns, 800);
    assert_int_equal(loaded.load.escalation_number_max, 64 * 9 + 50);
    free(turns);

    loaded = (struct loaded){.load = {.shard = 51, .on_saga = on_saga, .done = on_loaded}};
    store_load_shard(store, &loaded.load);
    host_run_until(&host, is_loaded, &loaded);
    assert_int_equal(loaded.sagas, 0);
    assert_int_equal(loaded.load.escalation_number_max, 0);
}

enum { MANY_SHARDS = 8, MANY_SAGAS = 100 };

struct crowd {
    struct loaded shards[MANY_SHARDS];
    int ended, begun_at_first_end; /* shards; a shard has begun when something of it has arrived */
};
static struct crowd crowd;

static void on_one_of_many(struct shard_load *load)
{
    on_loaded(load);
    if (crowd.ended++ > 0) {
        return;
    }
    for (size_t i = 0; i < MANY_SHARDS; i++) {
        crowd.begun_at_first_end += crowd.shards[i].sagas > 0;
    }
}

static bool are_loaded(void *context)
{
    (void)context;
    return crowd.ended == MANY_SHARDS;
}

static void load_many_begin(void)
{
    crowd = (struct crowd){0};
    for (uint32_t i = 0; i < MANY_SHARDS; i++) {
        crowd.shards[i].load = (struct shard_load){.shard = 10 + i, .on_saga = on_saga, .done = on_one_of_many};
        store_load_shard(store, &crowd.shards[i].load);
    }
}

/* Loads many shards. While they load, the backends that `where` names are ended. */
static void load_many(const char *where)
{
    load_many_begin();
    if (where[0]) {
        host_sql(&host, "select pg_terminate_backend(pid) from pg_stat_activity where %s", where);
    }
    host_run_until(&host, are_loaded, NULL);
    for (size_t i = 0; i < MANY_SHARDS; i++) {
        assert_int_equal(crowd.shards[i].load.code, ERR_OK);
        assert_true(crowd.shards[i].sagas >= MANY_SAGAS); /* and what other tests left there */
    }
}

/* A shard is of no use before all of it is loaded, so the first shards must not wait for the last. */
TEST(a_few_of_many_shards_are_loaded_at_once)
{
    struct turn *turns = calloc((size_t)MANY_SHARDS * MANY_SAGAS, sizeof(*turns));
    int finished = 0;

    for (int i = 0; i < MANY_SHARDS * MANY_SAGAS; i++) {
        turns[i].done_count = &finished;
        turn_start(&turns[i], host_saga(10 + i % MANY_SHARDS), 0, NULL);
        turn_submit(store, &turns[i]);
    }
    for (int i = 0; i < MANY_SHARDS * MANY_SAGAS; i++) {
        host_run_until(&host, turn_is_done, &turns[i]);
    }
    load_many("");
    assert_in_range(crowd.begun_at_first_end, 1, 4);
    load_many("application_name like 'sagad/%/reader'"); /* all backends that read; other shards wait behind them */
    load_many("pid = (select min(pid) from pg_stat_activity where application_name like 'sagad/%/reader')");
    free(turns);
}

/* These shards are loaded anew, and rows under way are for nobody. For the first, a page had been asked for; for the
 * last, nothing. */
TEST(a_load_of_a_shard_that_was_taken_again_ends)
{
    load_many_begin();
    store->loads_due[10]++;
    store->loads_due[10 + MANY_SHARDS - 1]++;
    host_run_until(&host, are_loaded, NULL);
    for (size_t i = 0; i < MANY_SHARDS; i++) {
        bool taken_again = i == 0 || i == MANY_SHARDS - 1;

        assert_int_equal(crowd.shards[i].load.code, taken_again ? ERR_FENCED : ERR_OK);
    }
    assert_in_range(crowd.shards[0].sagas, 1, MANY_SAGAS - 1);
    assert_int_equal(crowd.shards[MANY_SHARDS - 1].sagas, 0);
    load_many("");
}

TEST(a_run_that_was_woken_is_loaded_however_old_and_once)
{
    struct loaded loaded = {.load = {.shard = 52, .on_saga = on_saga, .done = on_loaded}};
    struct turn turn = {0};
    struct saga_id old = saga_id_new(INT64_C(1700000000000), 52), older = saga_id_new(INT64_C(1600000000000), 52),
                   asleep = saga_id_new(INT64_C(1600000000000), 52);
    struct saga_id ids_here[] = {old, older, asleep};

    for (size_t i = 0; i < COUNT_OF(ids_here); i++) {
        turn_start(&turn, ids_here[i], 0, NULL);
        turn.append.ended = uuid_equal(&ids_here[i].uuid, &asleep.uuid);
        turn.append.status = turn.append.ended ? SAGA_COMPLETED : SAGA_RUNNING;
        turn.append.awake = turn.append.ended ? AWAKE_AS_IT_WAS : AWAKE_ADD;
        assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    }
    host_sql(&host, "update sagad.shard set low = '2023-01-01Z' where shard = 52"); /* before one of the sagas and
                                                                                       behind the other */
    store_load_shard(store, &loaded.load);
    host_run_until(&host, is_loaded, &loaded);
    assert_int_equal(loaded.sagas, 2);
    assert_int_equal(loaded.turns, 2);
    host_sql(&host, "update sagad.shard set low = null where shard = 52");
}

TEST(runs_can_be_left_out_of_a_list)
{
    struct turn turn = {0};
    struct list_sagas all = {.namespace = SLICE("runs"), .limit = 9},
                      sagas = {.namespace = SLICE("runs"), .limit = 9, .without_runs = true},
                      runs = {.namespace = SLICE("runs"),
                              .limit = 9,
                              .names = &(struct slice){"~run", 4},
                              .name_count = 1,
                              .statuses = BIT(SAGA_RUNNING)};
    struct count_sagas count = {.namespace = SLICE("runs"), .newest = 1000};

    for (int i = 0; i < 3; i++) {
        turn_start(&turn, host_saga(53), 0, NULL);
        turn.start.namespace = turn.append.namespace = SLICE("runs");
        turn.start.saga_name = i == 0 ? SLICE("~open") : SLICE("~run");
        assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    }
    assert_int_equal(ASK(store_list_sagas, &all), ERR_OK);
    assert_int_equal(all.count, 3);
    assert_int_equal(ASK(store_list_sagas, &sagas), ERR_OK);
    assert_int_equal(sagas.count, 1);
    assert_int_equal(ASK(store_list_sagas, &runs), ERR_OK);
    assert_int_equal(runs.count, 2);
    /* But for those that want a person, where that is asked for. */
    host_sql(&host, "update sagad.saga set status = 'escalated' where namespace = 'runs' and name = '~run'");
    sagas.statuses = BIT(SAGA_RUNNING) | BIT(SAGA_ESCALATED);
    assert_int_equal(ASK(store_list_sagas, &sagas), ERR_OK);
    assert_int_equal(sagas.count, 3);
    sagas.statuses = 0;
    assert_int_equal(ASK(store_list_sagas, &sagas), ERR_OK);
    assert_int_equal(sagas.count, 1);
    host_sql(&host, "update sagad.saga set status = 'running' where namespace = 'runs'");
    assert_int_equal(ASK(store_count_sagas, &count), ERR_OK);
    assert_int_equal(count.counts[SAGA_RUNNING], 1);
}

TEST(a_load_goes_on_over_lost_connections)
{
    struct loaded loaded = {.load = {.shard = 50, .on_saga = on_saga, .done = on_loaded}};

    store_load_shard(store, &loaded.load);
    host_sql(&host,
             "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'sagad/%%/reader'");
    host_run_until(&host, is_loaded, &loaded);
    assert_int_equal(loaded.load.code, ERR_OK);
    assert_int_equal(loaded.sagas, 400);
}

/* --- escalations --- */

TEST(escalations_are_listed_newest_first_and_read_by_number)
{
    static const struct slice statuses[] = {{"resolved", 8}, {"open", 4}};
    struct list_questions list = {.namespace = SLICE("default"), .limit = 4, .open_only = true};
    struct list_questions one = {.namespace = SLICE("default"), .number = 64 * 3 + 50};
    struct list_questions foreign = {.namespace = SLICE("other"), .number = 64 * 3 + 50};

    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    assert_int_equal(list.count, 4);
    assert_int_equal(list.rows[0].number, 64 * 9 + 50);
    assert_true(list.rows[0].open && slice_is(list.rows[0].body, "{}"));
    list.before = list.rows[3].number;
    list.before_ms = list.rows[3].opened_ms;
    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    assert_int_equal(list.rows[0].number, 64 * 5 + 50);
    host_sql(&host, "update sagad.escalation set resolved_at = now() where number > 64 * 4");
    list = (struct list_questions){.namespace = SLICE("default"), .limit = 50, .open_only = true};
    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    assert_int_equal(list.count, 3);
    list = (struct list_questions){.namespace = SLICE("default"), .limit = 50};
    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    assert_int_equal(list.count, 9);
    list = (struct list_questions){
        .namespace = SLICE("default"), .limit = 50, .filter = {.statuses = statuses, .status_count = 1}};
    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    assert_int_equal(list.count, 6);
    assert_false(list.rows[0].open || list.rows[5].open);
    list = (struct list_questions){
        .namespace = SLICE("default"), .limit = 50, .filter = {.statuses = statuses, .status_count = 2}};
    assert_int_equal(ASK(store_list_questions, &list), ERR_OK);
    assert_int_equal(list.count, 9);
    assert_int_equal(ASK(store_list_questions, &one), ERR_OK);
    assert_int_equal(one.count, 1);
    assert_int_equal(ASK(store_list_questions, &foreign), ERR_NOT_FOUND);
}

/* --- inbox --- */

static struct inbox_row last_row;
static size_t rows_seen;

static void on_rows(const struct inbox_row *rows, size_t count, void *context)
{
    (void)context;
    rows_seen += count;
    last_row = rows[count - 1];
    assert_true(slice_is(last_row.kind, "abort"));
    assert_true(slice_is(last_row.payload, "{\"note\": \"x\"}"));
    last_row.kind = last_row.payload = SLICE_NONE; /* borrowed */
}

static void on_put(struct inbox_put *put)
{
    (void)put;
    done = true;
}

static void put_input(uint32_t shard)
{
    struct inbox_put put = {
        .row = {.shard = shard, .saga = ids[1], .kind = SLICE("abort"), .payload = SLICE("{\"note\": \"x\"}")},
        .done = on_put};

    done = false;
    store_inbox_put(store, &put);
    assert_false(done);
    host_run_until(&host, host_is_set, &done);
    assert_int_equal(put.code, ERR_OK);
    assert_false(uuid_is_nil(&put.row.id));
}

static bool saw_rows(void *context)
{
    (void)context;
    return rows_seen > 0;
}

static bool saw_it_again(void *context)
{
    (void)context;
    return rows_seen > 1;
}

TEST(an_input_of_the_inbox_reaches_its_owner_until_it_is_consumed)
{
    int64_t began;
    size_t seen;

    store_inbox_watch(store, UINT64_C(1) << 1 | UINT64_C(1) << 2, on_rows, NULL);
    host_run_ms(&host, 200);
    began = loop_boot_ms_now();
    put_input(3); /* an input of another owner */
    host_run_ms(&host, 200);
    assert_int_equal(rows_seen, 0);
    put_input(1);
    host_run_until(&host, saw_rows, NULL);
    assert_true(loop_boot_ms_now() - began < 8000); /* by the notification, because the poll takes ten seconds */
    assert_int_equal(rows_seen, 1);
    assert_int_equal(last_row.shard, 1);
    host_run_until(&host, saw_it_again, NULL); /* because nobody consumed it */
    store_inbox_drop(store, last_row.shard, &last_row.id);
    host_until_number(&host, 1, "select count(*) from sagad.inbox");
    host_run_ms(&host, 700);
    seen = rows_seen;
    host_run_ms(&host, 1200);
    assert_int_equal(rows_seen, seen);
    assert_int_equal(host_number(&host, "select count(*) from sagad.inbox"), 1);

    rows_seen = 0;
    store_inbox_watch(store, UINT64_C(1) << 3, on_rows, NULL); /* inputs that waited for a new owner come at once */
    host_run_until(&host, saw_rows, NULL);
    store_inbox_drop(store, last_row.shard, &last_row.id);
}

static uint64_t kinds_seen; /* one bit for each shard */

static void on_crowd(const struct inbox_row *rows, size_t count, void *context)
{
    (void)context;
    for (size_t i = 0; i < count; i++) {
        rows_seen++;
        kinds_seen |= UINT64_C(1) << rows[i].shard;
    }
}

static bool saw_the_last(void *context)
{
    (void)context;
    return kinds_seen >> 5 & 1;
}

static bool drop_waits(void *context)
{
    (void)context;
    return host_number(&host, "select count(*) from pg_stat_activity where wait_event = 'PgSleep'") > 0;
}

static bool saw_another(void *context)
{
    (void)context;
    return kinds_seen >> 2 & 1;
}

/*
 * Between the report and the commit the row still exists, and an engine that got it then would refuse it a second time.
 * The drop waits for a table to be empty: it would wait for a lock only as long as lock_timeout, and then the row may
 * come again. The other row is written beside the store, whose connections are used by the drop and the look.
 */
TEST(an_input_does_not_come_again_while_it_is_being_dropped)
{
    host_sql(&host, "delete from sagad.inbox");
    rows_seen = 0;
    store_inbox_watch(store, UINT64_C(1) << 1 | UINT64_C(1) << 2, on_rows, NULL);
    put_input(1);
    host_run_until(&host, saw_rows, NULL);
    kinds_seen = 0;
    store_inbox_watch(store, UINT64_C(1) << 1 | UINT64_C(1) << 2, on_crowd, NULL);
    host_sql(
        &host,
        "create table public.gate (); insert into public.gate default values;"
        " create function public.wait_at_gate() returns trigger language plpgsql as $$ begin"
        " for i in 1 .. 2000 loop exit when not exists (select from public.gate); perform pg_sleep(0.01); end loop;"
        " return old; end $$;"
        " create trigger gate before delete on sagad.inbox for each row when (old.shard = 1) execute function "
        "public.wait_at_gate()");
    store_inbox_drop(store, last_row.shard, &last_row.id);
    host_run_until(&host, drop_waits, NULL);
    host_sql(&host, "insert into sagad.inbox (shard, id, saga, kind, payload)"
                    " values (2, '22222222-0000-7000-8000-000000000001', gen_random_uuid(), 'call', '{}');"
                    " select pg_notify('sagad_inbox', '2')");
    host_run_until(&host, saw_another, NULL); /* by a read that began while the drop waited */
    assert_int_equal(kinds_seen, UINT64_C(1) << 2);
    host_sql(&host, "delete from public.gate");
    host_until_number(&host, 1, "select count(*) from sagad.inbox");
    host_run_ms(&host, 1200);
    assert_int_equal(kinds_seen, UINT64_C(1) << 2);
    assert_int_equal(host_number(&host, "select count(*) from sagad.inbox"), 1);
    store_inbox_watch(store, 0, on_crowd, NULL);
    host_sql(&host, "drop trigger gate on sagad.inbox; drop function public.wait_at_gate(); drop table public.gate; "
                    "delete from sagad.inbox");
    kinds_seen = 0;
}

TEST(inputs_that_wait_for_long_do_not_hide_those_behind_them)
{
    host_sql(&host, "insert into sagad.inbox (shard, id, saga, kind, payload) select 4, ('00000000-0000-7000-8000-' || "
                    "lpad(n::text, 12, '0'))::uuid,"
                    " gen_random_uuid(), 'complete', '{}' from generate_series(1, 600) n;"
                    " insert into sagad.inbox (shard, id, saga, kind, payload) values (5, "
                    "'ffffffff-0000-7000-8000-000000000000', gen_random_uuid(), 'call', '{}')");
    rows_seen = 0;
    store_inbox_watch(store, UINT64_C(1) << 4 | UINT64_C(1) << 5, on_crowd, NULL);
    host_run_until(&host, saw_the_last, NULL);
    assert_int_equal(rows_seen, 601);
    store_inbox_watch(store, 0, on_crowd, NULL);
    host_sql(&host, "delete from sagad.inbox where shard in (4, 5)");
}

static void on_crowd_gain(const struct inbox_row *rows, size_t count, void *context)
{
    on_crowd(rows, count, context);
    store_inbox_watch(store, UINT64_C(1) << 4 | UINT64_C(1) << 5, on_crowd, NULL);
}

/* A page is full to its last row, and nothing is behind it. The next look by itself would come after ten seconds. */
TEST(inputs_of_a_shard_gained_within_a_look_are_seen_at_once)
{
    int64_t began = loop_boot_ms_now();

    host_sql(&host, "insert into sagad.inbox (shard, id, saga, kind, payload) select 4, ('11111111-0000-7000-8000-' || "
                    "lpad(n::text, 12, '0'))::uuid,"
                    " gen_random_uuid(), 'complete', '{}' from generate_series(1, 256) n;"
                    " insert into sagad.inbox (shard, id, saga, kind, payload) values (5, "
                    "'00000000-0000-7000-8000-000000000001', gen_random_uuid(), 'call', '{}')");
    kinds_seen = 0;
    store_inbox_watch(store, UINT64_C(1) << 4, on_crowd_gain, NULL);
    host_run_until(&host, saw_the_last, NULL);
    assert_true(loop_boot_ms_now() - began < 5000);
    store_inbox_watch(store, 0, on_crowd, NULL);
    host_sql(&host, "delete from sagad.inbox where shard in (4, 5)");
}

TEST(an_input_is_found_while_it_is_in_the_inbox)
{
    struct find_input find = {.shard = 6, .id = uuid_v7(1)}, elsewhere = {.shard = 7, .id = find.id};
    char text[UUID_TEXT_BYTES];

    uuid_text(&find.id, text);
    host_sql(
        &host,
        "insert into sagad.inbox (shard, id, saga, kind, payload) values (6, '%s', gen_random_uuid(), 'call', '{}')",
        text);
    assert_int_equal(ASK(store_find_input, &find), ERR_OK);
    assert_int_equal(ASK(store_find_input, &elsewhere), ERR_NOT_FOUND);
    host_sql(&host, "delete from sagad.inbox where shard = 6");
    assert_int_equal(ASK(store_find_input, &find), ERR_NOT_FOUND);
}

/* --- definitions --- */

static int changes;

static void on_changed(void *context)
{
    (void)context;
    changes++;
}

static bool has_changed(void *context)
{
    return changes > *(int *)context;
}

static struct definition_row row(const char *namespace, enum definition_kind kind, const char *name, const char *body)
{
    return (struct definition_row){.namespace = slice_of(namespace),
                                   .kind = kind,
                                   .name = slice_of(name),
                                   .body = slice_of(body),
                                   .identity = digest_sha256(slice_of(name))};
}

TEST(definitions_get_versions_all_or_nothing)
{
    struct definition_row rows[] = {row("default", DEFINITION_TOOL, "echo", "{\"a\": 1}"),
                                    row("default", DEFINITION_SAGA, "order", "{\"b\": 1}"),
                                    row("default", DEFINITION_TOOL, "fail", "{\"c\": 1}")};
    struct put_definitions put = {.rows = rows, .count = 3};
    struct load_definitions load = {0};
    int before = 0;

    store_watch_definitions(store, on_changed, NULL);
    host_run_until(&host, has_changed, &before); /* rows from before the watch */
    before = changes;
    assert_int_equal(ASK(store_put_definitions, &put), ERR_OK);
    for (int i = 0; i < 3; i++) {
        assert_true(put.created[i]);
        assert_int_equal(rows[i].version, 1);
    }
    host_run_until(&host, has_changed, &before);
    assert_int_equal(ASK(store_put_definitions, &put), ERR_OK);
    assert_false(put.created[0] || put.created[1] || put.created[2]);
    assert_int_equal(rows[1].version, 1);
    rows[2].identity = digest_sha256(SLICE("4"));
    rows[2].body = SLICE("{\"c\": 2}");
    assert_int_equal(ASK(store_put_definitions, &put), ERR_OK);
    assert_true(put.created[2] && !put.created[0]);
    assert_int_equal(rows[2].version, 2);

    assert_int_equal(ASK(store_load_definitions, &load), ERR_OK);
    assert_int_equal(load.count, 4);
    assert_true(slice_is(load.rows[0].name, "echo") && load.rows[0].kind == DEFINITION_TOOL);
    assert_true(slice_is(load.rows[2].name, "fail") && load.rows[2].version == 2 &&
                slice_is(load.rows[2].body, "{\"c\": 2}"));
    assert_true(digest_equal(&load.rows[2].identity, &rows[2].identity));
    assert_true(slice_is(load.rows[3].name, "order") && load.rows[3].kind == DEFINITION_SAGA &&
                load.rows[3].created_ms > 0);
}

TEST(the_same_text_under_a_newer_reading_is_a_next_version)
{
    struct definition_row rows[] = {row("read", DEFINITION_TOOL, "t", "{}")};
    struct put_definitions put = {.rows = rows, .count = 1};
    struct load_definitions load = {0};
    size_t seen = 0;

    /* The release before wrote this row without a reading. */
    host_sql(
        &host,
        "insert into sagad.tool (namespace, name, version, identity, body) select 'read', 't', 1, sha256('t'), '{}'");
    assert_int_equal(ASK(store_put_definitions, &put), ERR_OK);
    assert_true(put.created[0] && rows[0].version == 2 && rows[0].reading == READING_NEWEST);
    assert_int_equal(ASK(store_put_definitions, &put), ERR_OK);
    assert_true(!put.created[0] && rows[0].version == 2 && rows[0].reading == READING_NEWEST);
    host_sql(&host, "insert into sagad.tool (namespace, name, version, identity, body, reading) select 'read', 't', 3, "
                    "sha256('t'), '{}', 99");
    assert_int_equal(ASK(store_put_definitions, &put), ERR_OK);
    /* A reading of a later release is kept. */
    assert_true(!put.created[0] && rows[0].version == 3 && rows[0].reading == 99);
    assert_int_equal(ASK(store_load_definitions, &load), ERR_OK);
    for (size_t i = 0; i < load.count; i++) {
        if (slice_is(load.rows[i].namespace, "read")) {
            const int readings[] = {READING_FIRST, READING_NEWEST, 99};

            assert_true(seen < COUNT_OF(readings));
            assert_int_equal(load.rows[i].reading, readings[seen++]);
        }
    }
    assert_int_equal(seen, 3);
    host_sql(&host, "delete from sagad.tool where namespace = 'read'");
}

TEST(a_read_without_the_database_says_so)
{
    struct read_saga read = {.id = ids[4], .namespace = SLICE("default")};

    cluster_stop(&host.cluster);
    host_run_ms(&host, 200);
    assert_int_equal(ASK(store_read_saga, &read), ERR_STORE);
    assert_true(read.read.err.message[0] != '\0');
}

static int setup(void **state)
{
    (void)state;
    store = host_begin(&host, NULL, &arena);
    write_sagas();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    host_end(&host, store, &arena);
    return 0;
}

TEST_PROGRAM(setup, teardown)
