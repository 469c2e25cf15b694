/*
 * Waiting sagas: parked ones and their recovery, due ones, lists and counts of them, and follow-up sagas. The
 * connections go through a proxy that can cut a transaction off at its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric.h"
#include "store/store_state.h"
#include "tests/integration/store_host.h"
#include "tests/lib/commit_cutter.h"
#include "tests/lib/test.h"

static struct host host;
static struct store *store;
static struct commit_cutter cutter;
static struct arena arena;

#define ASK(call, request) HOST_ASK(&host, store, &arena, call, request)

static bool is_ready(void *context)
{
    (void)context;
    return store_is_ready(store);
}

/* --- turns --- */

static struct saga_id start(uint32_t shard)
{
    return host_start_at(&host, store, host_saga(shard), "default");
}

static struct saga_id start_old(uint32_t shard, const char *namespace)
{
    static int64_t years_ago = INT64_C(1600000000000);

    return host_start_at(&host, store, saga_id_new(years_ago++, shard), namespace);
}

static void next(struct saga_id id, uint64_t seq, bool unparks)
{
    struct turn turn = {0};

    turn_next(&turn, id, 0, seq, "step.completed");
    turn.append.unparks = unparks;
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
}

static void ending(struct turn *turn, struct saga_id id, uint64_t seq)
{
    turn_next(turn, id, 0, seq, "saga.completed");
    turn->append.status_changed = turn->append.ended = true;
    turn->append.status = SAGA_COMPLETED;
}

/* --- parks --- */

static int parks_done;

static void on_parked(struct park *park)
{
    (void)park;
    parks_done++;
}

static bool are_parked(void *context)
{
    return parks_done >= *(int *)context;
}

static struct park park_of(struct saga_id id, int64_t due_ms)
{
    return (struct park){.saga = id, .shard = saga_id_shard(id), .due_ms = due_ms, .done = on_parked};
}

static void parks_run(struct park *parks, int count)
{
    parks_done = 0;
    for (int i = 0; i < count; i++) {
        store_park(store, &parks[i]);
    }
    assert_int_equal(parks_done, 0); /* never inside the call */
    host_run_until(&host, are_parked, &count);
    assert_int_equal(parks_done, count);
}

static void park(struct saga_id id, int64_t due_ms)
{
    struct park one = park_of(id, due_ms);

    parks_run(&one, 1);
    assert_int_equal(one.code, ERR_OK);
}

static long parked(struct saga_id id)
{
    return host_number(
        &host, "select count(*) from sagad.due where shard = sagad.shard_of('%s') and saga = '%s' and what = 'parked'",
        id_text(id), id_text(id));
}

static long awake(struct saga_id id)
{
    return host_number(&host, "select count(*) from sagad.awake where shard = sagad.shard_of('%s') and saga = '%s'",
                       id_text(id), id_text(id));
}

/* --- loads --- */

struct loaded {
    struct shard_load load;
    struct saga_id first;
    int sagas, turns, awake;
    bool done;
};

static void on_saga(struct shard_load *load, struct saga_id id, struct slice namespace, const struct stored_turn *turns,
                    size_t count)
{
    struct loaded *loaded = container_of(load, struct loaded, load);

    (void)namespace;
    (void)turns;
    loaded->first = loaded->sagas == 0 ? id : loaded->first;
    loaded->sagas++;
    loaded->turns += (int)count;
    loaded->awake += load->is_awake;
}

static void on_loaded(struct shard_load *load)
{
    container_of(load, struct loaded, load)->done = true;
}

static bool is_loaded(void *context)
{
    return ((struct loaded *)context)->done;
}

static struct loaded load(uint32_t shard)
{
    struct loaded loaded = {.load = {.shard = shard, .on_saga = on_saga, .done = on_loaded}};

    store_load_shard(store, &loaded.load);
    host_run_until(&host, is_loaded, &loaded);
    assert_int_equal(loaded.load.code, ERR_OK);
    return loaded;
}

/* --- parking and recovery --- */

TEST(recovery_leaves_the_parked_alone_until_they_move)
{
    struct saga_id stays = start(1), waits = start(1);
    struct loaded loaded;

    park(waits, INT64_MAX);
    assert_int_equal(parked(waits), 1);
    assert_int_equal(
        host_number(&host, "select count(*) from sagad.due where saga = '%s' and at = 'infinity'", id_text(waits)), 1);
    loaded = load(1);
    assert_int_equal(loaded.sagas, 1);
    assert_true(uuid_equal(&loaded.first.uuid, &stays.uuid));
    next(waits, 2, true);
    assert_int_equal(parked(waits), 0);
    assert_int_equal(awake(waits), 1);
    loaded = load(1);
    assert_int_equal(loaded.sagas, 2); /* once, though the saga is behind the mark and also awake */
    assert_int_equal(loaded.turns, 3);
    assert_int_equal(loaded.awake, 1);
}

TEST(a_saga_that_moved_is_found_however_old_it_is)
{
    struct saga_id old = start_old(2, "default");
    struct park again = park_of(old, 1);

    park(old, INT64_MAX);
    host_sql(&host, "update sagad.shard set low = now() where shard = 2"); /* nothing else is unfinished there */
    assert_int_equal(load(2).sagas, 0);
    next(old, 2, true);
    assert_int_equal(load(2).sagas, 1); /* as after a crash right behind that commit */
    again.awake = true;
    parks_run(&again, 1);
    assert_int_equal(again.code, ERR_OK);
    assert_int_equal(awake(old), 0);
    assert_int_equal(parked(old), 1);
    assert_int_equal(load(2).sagas, 0);
    host_sql(&host, "update sagad.shard set low = null where shard = 2");
}

TEST(a_saga_that_moves_to_its_end_is_neither_parked_nor_awake)
{
    struct saga_id id = start(3), kept = start(3);
    struct turn turn = {0};

    park(id, INT64_MAX);
    ending(&turn, id, 2);
    turn.append.unparks = true;
    turn.append.forget_ms = turn.append.at_ms + 3600000;
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    assert_int_equal(awake(id), 0);
    assert_int_equal(host_number(&host,
                                 "select count(*) from sagad.due where saga = '%s' and what = 'forget' and at between "
                                 "now() and now() + interval '61 minutes'",
                                 id_text(id)),
                     1);
    park(kept, INT64_MAX);
    ending(&turn, kept, 2);
    turn.append.unparks = true;
    host_append(&host, store, &turn);
    assert_int_equal(host_number(&host, "select count(*) from sagad.due where saga = '%s'", id_text(kept)), 0);
    assert_int_equal(load(3).sagas, 0);
}

/* Ends sagas together, in one transaction or in `transactions`. `never_due` says which of them were never due. */
static void end_together(const struct saga_id *ending_ids, const bool *never_due, int count, int transactions)
{
    struct turn turns[3];
    uint64_t before = metric_value(METRIC_BATCHES);

    memset(turns, 0, sizeof(turns));
    for (int i = 0; i < count; i++) {
        ending(&turns[i], ending_ids[i], 2);
        turns[i].append.forget_ms = 5000000 + i;
        turns[i].append.never_due = never_due[i];
        store_append(store, &turns[i].append);
    }
    for (int i = 0; i < count; i++) {
        host_run_until(&host, turn_is_done, &turns[i]);
        assert_int_equal(turns[i].append.code, ERR_OK);
        assert_int_equal(host_number(&host,
                                     "select count(*) from sagad.due where saga = '%s' and what = 'forget'"
                                     " and at = to_timestamp(5000 + %d / 1000.0)",
                                     id_text(ending_ids[i]), i),
                         1);
    }
    assert_int_equal(metric_value(METRIC_BATCHES) - before, transactions);
}

TEST(a_saga_that_was_never_due_needs_no_look_and_a_mistake_is_mended)
{
    struct saga_id good[] = {start(3), start(3), start(3)}, bad[] = {start(3), start(3), start(3)}, alone = start(3);

    end_together(good, (const bool[]){true, false, true}, 3, 1);
    park(bad[2], INT64_MAX);
    park(alone, INT64_MAX);
    end_together(bad, (const bool[]){true, false, true}, 3, 1); /* the transaction is committed all the same */
    end_together(&alone, (const bool[]){true}, 1, 1);
    host_sql(&host, "delete from sagad.due where shard = 3");
}

TEST(parks_that_are_ready_at_once_share_a_transaction)
{
    enum { COUNT = 600 };
    struct park *parks = calloc(COUNT, sizeof(*parks));

    for (int i = 0; i < COUNT; i++) {
        parks[i] = park_of(host_saga((uint32_t)i % 8 + 4), INT64_MAX);
    }
    parks_run(parks, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(parks[i].code, ERR_OK);
    }
    assert_int_equal(
        host_number(&host, "select count(distinct xmin::text) from sagad.due where shard between 4 and 11"), 2);
    assert_int_equal(host_number(&host, "select count(*) from sagad.due where shard between 4 and 11"), COUNT);
    host_sql(&host, "delete from sagad.due where shard between 4 and 11");
    free(parks);
}

TEST(a_park_under_another_epoch_is_refused_and_takes_nobody_with_it)
{
    struct park parks[3] = {park_of(host_saga(4), 1), park_of(host_saga(5), 1), park_of(host_saga(4), 1)};

    parks[1].epoch = 1;
    parks_run(parks, 3);
    assert_int_equal(parks[0].code, ERR_OK);
    assert_int_equal(parks[1].code, ERR_FENCED);
    assert_int_equal(parks[2].code, ERR_OK);
    assert_int_equal(parked(parks[1].saga), 0);
    assert_int_equal(parked(parks[2].saga), 1);
}

TEST(a_park_waits_for_a_takeover_under_way_and_is_refused_then)
{
    struct park one = park_of(host_saga(12), 1);
    struct db_session *taker = NULL;
    struct err err = {.code = ERR_OK};
    int count = 1;

    assert_int_equal(db_session_open(cluster_dsn(&host.cluster), "taker", &taker, &err), ERR_OK);
    assert_int_equal(db_session_run(taker,
                                    "begin; select 1 from sagad.shard where shard = 12 for update;"
                                    " update sagad.shard set epoch = epoch + 1 where shard = 12",
                                    NULL, NULL, &err),
                     ERR_OK);
    parks_done = 0;
    store_park(store, &one);
    host_run_ms(&host, 200);
    assert_int_equal(parks_done, 0);
    assert_int_equal(db_session_run(taker, "commit", NULL, NULL, &err), ERR_OK);
    host_run_until(&host, are_parked, &count);
    assert_int_equal(one.code, ERR_FENCED);
    assert_int_equal(parked(one.saga), 0);
    db_session_close(taker);
    host_sql(&host, "update sagad.shard set epoch = 0 where shard = 12");
}

/* Waits with a bound; the next line of the caller reports when the proxy did not strike. */
static void wait_for_strike(int strikes)
{
    for (int i = 0; i < 600 && commit_cutter_strikes(&cutter) == strikes; i++) {
        host_run_ms(&host, 50);
    }
}

TEST(a_park_whose_answer_is_lost_is_repeated_and_never_overtakes_the_saga)
{
    const enum cut cuts[] = {CUT_BEFORE_COMMIT, CUT_AFTER_COMMIT, CUT_HOLD_COMMIT};

    for (size_t i = 0; i < COUNT_OF(cuts); i++) {
        struct saga_id id = start(13);
        int strikes;

        host_run_until(&host, is_ready, NULL);
        for (int warm = 0; warm < 6;
             warm++) { /* so that the connection has prepared the statement, and the next Sync is that of the park */
            park(host_saga(4), 1);
        }
        strikes = commit_cutter_strikes(&cutter);
        commit_cutter_set(&cutter, cuts[i]);
        park(id, INT64_MAX);
        next(id, 2, true); /* before the held one reaches the server */
        wait_for_strike(strikes);
        host_run_ms(&host, 800);
        assert_int_equal(commit_cutter_strikes(&cutter), strikes + 1);
        assert_int_equal(parked(id), 0);
        assert_int_equal(awake(id), 1);
    }
}

TEST(parks_wait_while_the_database_is_away)
{
    struct park one = park_of(start(14), 1);
    int count = 1;

    cluster_kill(&host.cluster);
    host_run_ms(&host, 300);
    parks_done = 0;
    store_park(store, &one);
    host_run_ms(&host, 300);
    assert_int_equal(parks_done, 0);
    cluster_resume(&host.cluster);
    host_run_until(&host, are_parked, &count);
    assert_int_equal(one.code, ERR_OK);
    assert_int_equal(parked(one.saga), 1);
    host_run_until(&host, is_ready, NULL);
}

TEST(a_store_that_closes_says_so)
{
    struct store *mine = host_store(&host, NULL);
    struct park one = park_of(host_saga(14), 1);

    parks_done = 0;
    host_sql(&host, "select 1");
    store_park(mine, &one);
    host_store_close(&host, mine);
    assert_int_equal(parks_done, 1);
    assert_int_equal(one.code, ERR_STOPPING);
}

/* --- what is due --- */

TEST(due_sagas_come_in_order_and_the_next_time_is_known)
{
    struct saga_id ids[6];
    struct due_take take = {.shards = UINT64_C(3) << 20, .now_ms = 5000, .limit = 10, .forget_limit = 10};
    struct turn turns[3];

    memset(turns, 0, sizeof(turns));
    for (int i = 0; i < 6; i++) {
        ids[i] = host_start_at(&host, store, host_saga(20 + (uint32_t)i % 3), i == 4 ? "other" : "default");
    }
    park(ids[0], 4000);                /* shard 20 */
    park(ids[1], 3000);                /* 21 */
    park(ids[2], 2000);                /* 22, which is not asked about */
    park(ids[3], 5001);                /* 20 */
    park(ids[4], 5000);                /* 21 */
    for (uint32_t i = 0; i < 3; i++) { /* due for longer than all parked ones */
        ending(&turns[i], start(20 + i % 2), 2);
        turns[i].append.forget_ms = 1000 + i;
        host_append(&host, store, &turns[i]);
    }
    assert_int_equal(ASK(store_due_take, &take), ERR_OK);
    assert_int_equal(take.count, 6);
    assert_false(take.more);
    assert_true(!take.rows[0].forget && uuid_equal(&take.rows[0].saga.uuid, &ids[1].uuid) && take.rows[0].shard == 21);
    assert_true(uuid_equal(&take.rows[1].saga.uuid, &ids[0].uuid) && slice_is(take.rows[1].namespace, "default"));
    assert_true(uuid_equal(&take.rows[2].saga.uuid, &ids[4].uuid) && slice_is(take.rows[2].namespace, "other"));
    for (int i = 0; i < 3; i++) {
        assert_true(take.rows[3 + i].forget && uuid_equal(&take.rows[3 + i].saga.uuid, &turns[i].append.saga.uuid));
    }
    for (int i = 0; i < 6; i++) {
        assert_int_equal(take.rows[i].at_ms, ((const int64_t[]){3000, 4000, 5000, 1000, 1001, 1002})[i]);
    }
    assert_int_equal(take.next_ms, 5001);
    assert_int_equal(parked(ids[1]), 1); /* the statement only reads */
    take.limit = 2;
    take.forget_limit = 1; /* sagas to be forgotten take no place of the others */
    assert_int_equal(ASK(store_due_take, &take), ERR_OK);
    assert_int_equal(take.count, 3);
    assert_true(take.more);
    assert_true(uuid_equal(&take.rows[1].saga.uuid, &ids[0].uuid));
    assert_true(take.rows[2].forget && uuid_equal(&take.rows[2].saga.uuid, &turns[0].append.saga.uuid));
    take.forget_limit = 0; /* a request for one kind hears nothing of the other, nor when that one is due */
    take.now_ms = 1001;
    assert_int_equal(ASK(store_due_take, &take), ERR_OK);
    assert_true(take.count == 0 && !take.more && take.next_ms == 3000);
    take.limit = 0;
    take.forget_limit = 2;
    assert_int_equal(ASK(store_due_take, &take), ERR_OK);
    assert_true(take.count == 2 && take.more && take.rows[0].forget && take.rows[1].forget && take.next_ms == 1002);
    take.limit = 2;
    take.forget_limit = 1;
    take.now_ms = 5001;
    park(ids[5], INT64_MAX); /* 22 */
    take.shards = UINT64_C(1) << 20 | UINT64_C(1) << 22;
    assert_int_equal(ASK(store_due_take, &take), ERR_OK);
    assert_int_equal(take.next_ms, INT64_MAX); /* a saga that only an input moves is never due */
    take.shards = 0;
    assert_int_equal(ASK(store_due_take, &take), ERR_OK);
    assert_int_equal(take.count, 0);
    host_sql(&host, "delete from sagad.due");
}

TEST(each_shard_gives_about_its_share_of_a_million_due_sagas)
{
    struct due_take take = {.shards = ~UINT64_C(0), .now_ms = 5000, .limit = 10, .forget_limit = 100};

    host_sql(&host, "insert into sagad.due (shard, saga, what, at) select 25, gen_random_uuid(), 'forget', "
                    "to_timestamp(i / 1000.0) from generate_series(1, 300) as i");
    host_sql(&host, "insert into sagad.due (shard, saga, what, at) select 26 + i %% 3, gen_random_uuid(), 'forget', "
                    "to_timestamp(2) from generate_series(1, 30) as i");
    assert_int_equal(ASK(store_due_take, &take), ERR_OK);
    assert_int_equal(take.count, 16 + 30);
    assert_true(take.more); /* although there were fewer than asked for */
    take.shards = UINT64_C(1) << 25;
    assert_int_equal(ASK(store_due_take, &take), ERR_OK);
    assert_true(take.count == 100 && take.more);
    host_sql(&host, "delete from sagad.due");
    take.shards = ~UINT64_C(0);
    assert_int_equal(ASK(store_due_take, &take), ERR_OK);
    assert_true(take.count == 0 && !take.more);
}

static void park_under(struct saga_id id, uint64_t first, uint64_t second)
{
    struct park one = park_of(id, INT64_MAX);

    one.holds[one.hold_count++] = first;
    if (second) {
        one.holds[one.hold_count++] = second;
    }
    parks_run(&one, 1);
    assert_int_equal(one.code, ERR_OK);
}

static size_t let_go(const uint64_t *in_force, size_t count, size_t limit)
{
    struct due_let_go let_go = {
        .shards = ~UINT64_C(0), .in_force = in_force, .in_force_count = count, .now_ms = 5000, .limit = limit};

    assert_int_equal(ASK(store_due_let_go, &let_go), ERR_OK);
    return let_go.count;
}

static bool is_let_go(struct saga_id id)
{
    return host_number(&host, "select count(*) from sagad.due where saga = '%s' and holds is null and at = %s",
                       id_text(id), "to_timestamp(5)") == 1;
}

TEST(a_saga_that_waits_for_holds_is_let_go_when_one_of_them_has_ended)
{
    struct saga_id both = start(30), same = start(30), other = start(31), one = start(31), plain = start(31);

    park_under(both, 7, 9);
    park_under(same, 7, 9);
    park_under(other, 9, 11);
    park_under(one, 9, 0);
    park(plain, INT64_MAX);
    assert_int_equal(let_go((const uint64_t[]){7, 9, 11}, 3, 10), 0);
    assert_int_equal(let_go((const uint64_t[]){7, 9}, 2, 10), 1);
    assert_true(is_let_go(other)); /* 11 has ended: the call that it kept goes on, whatever 9 still keeps */
    assert_int_equal(let_go((const uint64_t[]){9}, 1, 1), 1);
    assert_int_equal(let_go((const uint64_t[]){9}, 1, 1), 1);
    assert_true(is_let_go(both) && is_let_go(same));
    assert_int_equal(let_go((const uint64_t[]){9}, 1, 10), 0);
    assert_int_equal(let_go(NULL, 0, 10), 1);
    assert_true(is_let_go(one));
    assert_false(is_let_go(plain)); /* nothing but mail moves it */
    host_sql(&host, "delete from sagad.due");
}

/* --- lists and counts --- */

TEST(parked_and_woken_sagas_are_listed_and_counted_once_however_old)
{
    struct saga_id old[4], young;
    struct list_sagas list = {.namespace = SLICE("old"), .limit = 10, .statuses = BIT(SAGA_RUNNING)};
    struct count_sagas count = {.namespace = SLICE("old"), .newest = 1000};
    struct count_versions versions = {.namespace = SLICE("old")}, foreign = {.namespace = SLICE("nobody")};
    struct turn turn = {0};

    for (int i = 0; i < 4; i++) {
        old[i] = start_old(24, "old");
    }
    young = host_start_at(&host, store, host_saga(24), "old");
    park(old[0], INT64_MAX);
    park(old[1], 7);
    park(old[2], 7);
    next(old[2], 2, true);
    ending(&turn, old[3], 2); /* years ago, for all that a list of unfinished sagas needs to know */
    turn.append.namespace = SLICE("old");
    host_append(&host, store, &turn);
    park(young, INT64_MAX);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(ASK(store_list_sagas, &list), ERR_OK);
        assert_int_equal(list.count, 4);
        assert_true(uuid_equal(&list.rows[0].id.uuid, &young.uuid));
        assert_true(uuid_equal(&list.rows[1].id.uuid, &old[2].uuid));
        assert_true(uuid_equal(&list.rows[3].id.uuid, &old[0].uuid));
        assert_int_equal(ASK(store_count_sagas, &count), ERR_OK);
        assert_int_equal(count.counts[SAGA_RUNNING], 4);
        assert_int_equal(ASK(store_count_versions, &versions), ERR_OK);
        assert_int_equal(versions.count, 1);
        assert_true(slice_is(versions.rows[0].name, "order") && versions.rows[0].version == 1);
        assert_int_equal(versions.rows[0].unfinished, 4);
        host_sql(&host,
                 "update sagad.shard set low = now() - interval '1 minute' where shard = 24"); /* and once more behind
                                                                                                  the mark */
    }
    list.limit = 2;
    assert_int_equal(ASK(store_list_sagas, &list), ERR_OK);
    assert_int_equal(list.count, 2);
    list.before = list.rows[1].id.uuid;
    assert_int_equal(ASK(store_list_sagas, &list), ERR_OK);
    assert_true(list.count == 2 && uuid_equal(&list.rows[0].id.uuid, &old[1].uuid) &&
                uuid_equal(&list.rows[1].id.uuid, &old[0].uuid));
    assert_int_equal(ASK(store_count_versions, &foreign), ERR_OK);
    assert_int_equal(foreign.count, 0);
    host_sql(&host, "update sagad.shard set low = null where shard = 24");
}

TEST(versions_are_counted_apart_and_agents_have_none)
{
    const char *const names[] = {"order", "trip", "~open", "~run"};
    struct count_versions versions = {.namespace = SLICE("versions")};

    for (uint32_t i = 0; i < 12; i++) {
        struct turn turn = {0};

        turn_start(&turn, host_saga(25 + i % 2), 0, NULL);
        turn.start.namespace = turn.append.namespace = SLICE("versions");
        turn.start.saga_name = slice_of(names[i % 4]);
        turn.start.version = 1 + i / 8;
        if (i == 1) {
            turn.append.ended = true;
            turn.append.status = SAGA_COMPLETED;
        }
        assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    }
    assert_int_equal(ASK(store_count_versions, &versions), ERR_OK);
    assert_int_equal(versions.count, 4);
    assert_true(slice_is(versions.rows[0].name, "order") && versions.rows[0].version == 1 &&
                versions.rows[0].unfinished == 2);
    assert_true(slice_is(versions.rows[1].name, "order") && versions.rows[1].version == 2 &&
                versions.rows[1].unfinished == 1);
    assert_true(slice_is(versions.rows[2].name, "trip") && versions.rows[2].version == 1 &&
                versions.rows[2].unfinished == 1);
    assert_true(slice_is(versions.rows[3].name, "trip") && versions.rows[3].version == 2 &&
                versions.rows[3].unfinished == 1);
}

TEST(the_newest_ended_sagas_of_a_shard_are_counted)
{
    struct count_sagas all = {.namespace = SLICE("ended"), .newest = 1000},
                       newest = {.namespace = SLICE("ended"), .newest = 2};
    struct count_sagas later = {.namespace = SLICE("ended"), .newest = 1000},
                       none = {.namespace = SLICE("nobody"), .newest = 0};
    struct saga_id id[5];
    struct turn turn = {0};

    for (int i = 0; i < 5; i++) { /* the oldest saga does not end */
        id[i] = host_saga(54);
        turn_start(&turn, id[i], 0, NULL);
        turn.start.namespace = turn.append.namespace = SLICE("ended");
        host_append(&host, store, &turn);
        if (i > 0) {
            turn_next(&turn, id[i], 0, 2, "saga.completed");
            turn.append.status_changed = turn.append.ended = true;
            turn.append.status = SAGA_COMPLETED;
            host_append(&host, store, &turn);
        }
        assert_int_equal(turn.append.code, ERR_OK);
    }
    assert_int_equal(ASK(store_count_sagas, &all), ERR_OK);
    assert_true(all.counts[SAGA_RUNNING] == 1 && all.counts[SAGA_COMPLETED] == 4);
    assert_int_equal(all.since_ms, 0);
    assert_int_equal(ASK(store_count_sagas, &newest), ERR_OK);
    assert_true(newest.counts[SAGA_RUNNING] == 1 && newest.counts[SAGA_COMPLETED] == 3);
    assert_int_equal(newest.since_ms, uuid_v7_ms(&id[2].uuid));
    later.since_ms = uuid_v7_ms(&id[4].uuid) + 1;
    assert_int_equal(ASK(store_count_sagas, &later), ERR_OK);
    assert_true(later.counts[SAGA_RUNNING] == 1 && later.counts[SAGA_COMPLETED] == 0 &&
                later.since_ms == uuid_v7_ms(&id[4].uuid) + 1);
    assert_int_equal(ASK(store_count_sagas, &none), ERR_OK);
    assert_true(none.counts[SAGA_RUNNING] == 0 && none.counts[SAGA_COMPLETED] == 0);
    assert_int_equal(none.since_ms, uuid_v7_ms(&id[4].uuid));
}

/* --- follow-up sagas --- */

static uint64_t starts_seen; /* one bit for each shard */

static void on_rows(const struct inbox_row *rows, size_t count, void *context)
{
    (void)context;
    for (size_t i = 0; i < count; i++) {
        assert_true(slice_is(rows[i].kind, "start"));
        assert_true(slice_is(rows[i].payload, "{\"saga\":\"next\"}"));
        store_inbox_drop(store, rows[i].shard, &rows[i].id);
        starts_seen |= UINT64_C(1) << rows[i].shard;
    }
}

static bool saw_both(void *context)
{
    (void)context;
    return starts_seen == UINT64_C(3) << 30;
}

static struct append_follower follower(uint32_t shard)
{
    return (struct append_follower){.shard = shard,
                                    .saga = host_saga(shard),
                                    .input = uuid_v7(1700000000000),
                                    .payload = SLICE("{\"saga\":\"next\"}")};
}

TEST(a_following_saga_is_started_with_the_commit_that_ends_the_first)
{
    struct append_follower followers[2] = {follower(30), follower(31)};
    struct turn turn = {0};
    struct saga_id id = start(29);
    int64_t began;

    store_inbox_watch(store, UINT64_C(3) << 30, on_rows, NULL);
    host_run_ms(&host, 300);
    began = loop_boot_ms_now();
    ending(&turn, id, 2);
    turn.append.followers = followers;
    turn.append.follower_count = 2;
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    assert_string_equal(host_text(&host, "select count(*) from sagad.inbox where saga not in ('%s', '%s')",
                                  id_text(followers[0].saga), id_text(followers[1].saga)),
                        "0\n");
    host_run_until(&host, saw_both, NULL);
    assert_true(loop_boot_ms_now() - began < 5000); /* by the notification, because the poll takes ten seconds */
    host_until_number(&host, 0, "select count(*) from sagad.inbox");
    store_inbox_watch(store, 0, on_rows, NULL);
}

TEST(a_following_saga_is_there_once_whatever_comes_of_the_answer)
{
    const enum cut cuts[] = {CUT_BEFORE_COMMIT, CUT_AFTER_COMMIT, CUT_HOLD_COMMIT};

    host_sql(&host, "delete from sagad.inbox");
    for (size_t i = 0; i < COUNT_OF(cuts); i++) {
        struct append_follower warm[3] = {follower(32), follower(32), follower(32)}, one = follower(33);
        struct saga_id id = start(29);
        struct turn turn = {0};
        int strikes;

        host_run_until(&host, is_ready, NULL);
        for (int w = 0; w < 3; w++) {
            ending(&turn, start(29), 2);
            turn.append.followers = &warm[w];
            turn.append.follower_count = 1;
            turn.append.forget_ms = 1;
            turn.append.releases_locks = true;
            assert_int_equal(host_append(&host, store, &turn), ERR_OK);
        }
        strikes = commit_cutter_strikes(&cutter);
        commit_cutter_set(&cutter, cuts[i]);
        ending(&turn, id, 2);
        turn.append.followers = &one;
        turn.append.follower_count = 1;
        turn.append.forget_ms = 1;
        turn.append.releases_locks = true;
        assert_int_equal(host_append(&host, store, &turn), ERR_OK);
        wait_for_strike(strikes);
        host_run_ms(&host, 700); /* the held one has reached the server, or its backend has ended */
        assert_int_equal(commit_cutter_strikes(&cutter), strikes + 1);
        assert_int_equal(
            host_number(&host, "select count(*) from sagad.inbox where shard = 33 and kind = 'start' and saga = '%s'",
                        id_text(one.saga)),
            1);
        assert_int_equal(host_number(&host, "select count(*) from sagad.due where saga = '%s'", id_text(id)), 1);
        assert_int_equal(host_number(&host, "select count(*) from sagad.log where saga = '%s'", id_text(id)), 2);
    }
    host_sql(&host, "delete from sagad.inbox; delete from sagad.due");
}

TEST(a_refused_start_leaves_nothing_of_what_would_wait_or_follow)
{
    struct append_follower one = follower(35);
    struct append_approval approvals[] = {
        {.number = 64 + 34, .opened = true, .step = SLICE("ask"), .status = SLICE("open"), .body = SLICE("{}")},
        {.number = 64 + 34,
         .step = SLICE("ask"),
         .status = SLICE("cancelled"),
         .body = SLICE("{}")}}; /* over at once */
    struct turn turn = {0};

    turn_start(&turn, host_saga(34), 0, "taken-already");
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    turn_start(&turn, host_saga(34), 0, "taken-already");
    turn.append.followers = &one;
    turn.append.follower_count = 1;
    turn.append.approvals = approvals;
    turn.append.approval_count = 2;
    turn.append.forget_ms = 1;
    assert_int_equal(host_append(&host, store, &turn), ERR_CONFLICT);
    assert_int_equal(host_number(&host, "select (select count(*) from sagad.inbox) + (select count(*) from "
                                        "sagad.approval) + (select count(*) from sagad.due)"),
                     0);
}

/* --- */

static int setup(void **state)
{
    char socket_path[128], dsn[160];

    (void)state;
    host_start(&host, NULL);
    arena_init(&arena, 64 * 1024);
    (void)snprintf(socket_path, sizeof(socket_path), "%s/.s.PGSQL.5432", host.cluster.directory);
    commit_cutter_start(&cutter, socket_path);
    __atomic_store_n(&cutter.any_sync, true, __ATOMIC_SEQ_CST);
    (void)snprintf(dsn, sizeof(dsn), "host=%s port=5432 user=postgres dbname=postgres", cutter.directory);
    store = host_store(&host, &(struct store_options){.dsn = dsn});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    host_store_close(&host, store);
    commit_cutter_stop(&cutter);
    arena_fini(&arena);
    host_stop(&host);
    return 0;
}

TEST_PROGRAM(setup, teardown)
