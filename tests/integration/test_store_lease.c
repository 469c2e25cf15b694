/*
 * Leases between engines on one database. A shard has one owner at a time. When the owner is gone, another engine takes
 * over, and from then on the old owner writes nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"
#include <sys/wait.h>
#include <unistd.h>

#include "store/lease/accept_history.h"
#include "store/lease/lease_state.h"
#include "store/migrate.h"
#include "tests/integration/store_host.h"

static struct host host;

struct engine { /* an engine as far as leases go */
    struct store *store;
    struct leases *leases;
    int gained, lost;
    int64_t oldest_ms; /* what it answers about its oldest unfinished saga */
    bool released;
    size_t surplus; /* the surplus as it was told last */
    bool keeps;     /* it gives nothing away */
};

static void on_gained(uint32_t shard, int64_t epoch, void *context)
{
    int64_t held = 0;
    struct engine *engine = context;

    assert_true(lease_is_held(engine->leases, shard, &held));
    assert_int_equal(held, epoch);
    /* By now the time may have passed, because tests are stopped, too. */
    assert_true(engine->leases->shards[shard].deadline_ms > engine->leases->sent_ms);
    engine->gained++;
}

static void on_lost(uint32_t shard, int64_t epoch, void *context)
{
    struct engine *engine = context;

    (void)epoch;
    assert_false(lease_is_held(engine->leases, shard, NULL));
    engine->lost++;
}

static int64_t oldest_unfinished_ms(uint32_t shard, void *context)
{
    (void)shard;
    return ((struct engine *)context)->oldest_ms;
}

/* Gives shards away at once, the highest numbers first. */
static void on_surplus(size_t count, void *context)
{
    struct engine *engine = context;

    engine->surplus = count;
    for (uint32_t shard = SHARD_COUNT; shard-- > 0 && count > 0 && !engine->keeps;) {
        if (lease_is_held(engine->leases, shard, NULL)) {
            leases_give(engine->leases, shard);
            assert_false(lease_is_held(engine->leases, shard, NULL));
            assert_false(lease_allows_send(engine->leases, shard));
            count--;
        }
    }
}

static void lags(struct engine_lags *out, void *context)
{
    (void)context;
    *out = (struct engine_lags){.append_ms = 5, .due_ms = 6, .inbox_rows = 7};
}

static void engine_begin_on(struct engine *engine, struct store *store, const char *name, int64_t ttl_ms, bool standby)
{
    memset(engine, 0, sizeof(*engine));
    engine->store = store;
    engine->leases = leases_start(engine->store, &(struct lease_options){
                                                     .ttl_ms = ttl_ms,
                                                     .engine_name = name,
                                                     .version = "1.2.3",
                                                     .standby = standby,
                                                     .on_surplus = on_surplus,
                                                     .lags = lags,
                                                     .on_gained = on_gained,
                                                     .on_lost = on_lost,
                                                     .oldest_unfinished_ms = oldest_unfinished_ms,
                                                     .context = engine,
                                                 });
}

static void engine_begin_as(struct engine *engine, const char *name, int64_t ttl_ms, bool standby)
{
    engine_begin_on(engine, host_store(&host, NULL), name, ttl_ms, standby);
}

/* Begins an engine that has no share beside others: of two engines, the first one has all shards. */
static void engine_begin(struct engine *engine, const char *name, int64_t ttl_ms)
{
    engine_begin_as(engine, name, ttl_ms, true);
}

static int held_count(const struct engine *engine)
{
    int count = 0;

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        count += lease_is_held(engine->leases, shard, NULL);
    }
    return count;
}

static bool is_owner(void *context)
{
    return held_count(context) == SHARD_COUNT;
}

static bool has_lost_all(void *context)
{
    return ((struct engine *)context)->lost >= SHARD_COUNT;
}

static bool has_looked(void *context)
{
    return ((struct engine *)context)->leases->looked_ms > 0;
}

static bool has_surplus(void *context)
{
    return ((struct engine *)context)->surplus > 0;
}

static bool has_no_surplus(void *context)
{
    return ((struct engine *)context)->surplus == 0;
}

static bool may_send(void *context)
{
    return lease_allows_send(((struct engine *)context)->leases, 8);
}

static bool has_lost_one(void *context)
{
    return ((struct engine *)context)->lost >= 1;
}

struct renewals { /* the renewals since the test began to look */
    struct engine *engine;
    int64_t renewed_ms, looked_ms;
    int count;
};

static struct renewals renewals_of(struct engine *engine)
{
    return (struct renewals){
        .engine = engine, .renewed_ms = engine->leases->renewed_ms, .looked_ms = engine->leases->looked_ms};
}

static bool has_renewed_twice(void *context)
{
    struct renewals *renewals = context;

    if (renewals->engine->leases->renewed_ms > renewals->renewed_ms) {
        renewals->renewed_ms = renewals->engine->leases->renewed_ms;
        renewals->count++;
    }
    return renewals->count >= 2;
}

/* Has the engine renewed twice, without looking for other engines in between? */
static bool has_renewed_without_a_look(void *context)
{
    struct renewals *renewals = context;

    if (renewals->engine->leases->looked_ms != renewals->looked_ms) {
        *renewals = renewals_of(renewals->engine);
    }
    return has_renewed_twice(renewals);
}

static void on_released(void *context)
{
    ((struct engine *)context)->released = true;
}

static bool is_released(void *context)
{
    return ((struct engine *)context)->released;
}

static void engine_release(struct engine *engine)
{
    leases_release(engine->leases, on_released, engine);
    host_run_until(&host, is_released, engine);
}

static void engine_end(struct engine *engine)
{
    host_store_close(&host, engine->store);
}

static int64_t boot_ms(void)
{
    return loop_boot_ms_now();
}

/* --- */

TEST(one_engine_owns_all_shards_and_the_other_waits_until_it_lets_go)
{
    struct engine one, two;
    struct buffer json;
    int64_t began, epoch = 0;

    engine_begin(&one, "one", 60000);
    host_run_until(&host, is_owner, &one);
    engine_begin(&two, "two", 60000);
    host_run_until(&host, has_looked, &two);
    host_run_ms(&host, 500);
    assert_int_equal(held_count(&two), 0);
    assert_int_equal(host_number(&host, "select count(*) from sagad.shard where owner = 'one' and expires_at > now()"),
                     SHARD_COUNT);
    assert_int_equal(host_number(&host, "select count(*) from pg_locks where locktype = 'advisory' and granted"),
                     SHARD_COUNT);

    buffer_init(&json, 1 << 16);
    leases_write_json(two.leases, &json);
    assert_non_null(strstr(buffer_c(&json), "\"engine\":\"one\",\"shards\":[0,1,2"));
    buffer_fini(&json);

    assert_true(lease_is_held(one.leases, 3, &epoch));
    began = boot_ms();
    engine_release(&one);
    assert_false(lease_is_held(one.leases, 3, NULL));
    host_run_until(&host, is_owner, &two);
    assert_true(boot_ms() - began < 15000); /* it was told, and did not wait for its next look or for an expiry */
    assert_int_equal(host_number(&host, "select min(epoch) from sagad.shard"), epoch + 1);
    assert_int_equal(lease_doubt_ms(two.leases, 3), 0);
    assert_int_equal(one.lost, 0);
    engine_release(&two);
    engine_end(&one);
    engine_end(&two);
    assert_int_equal(host_number(&host, "select count(*) from sagad.shard where owner is not null"), 0);
}

TEST(a_lease_that_an_engine_did_not_release_is_taken_when_it_expires)
{
    struct engine one, two;
    int64_t began;

    engine_begin(&one, "one", 3000);
    host_run_until(&host, is_owner, &one);
    engine_end(&one); /* no release, as if the engine had crashed on another machine */
    began = boot_ms();
    engine_begin(&two, "two", 3000);
    host_run_until(&host, is_owner, &two);
    assert_true(boot_ms() - began > 1000); /* the process was alive, so the other engine had to wait */
    assert_true(boot_ms() - began < 30000);
    assert_int_equal(lease_doubt_ms(two.leases, 3), 3000); /* nobody knows where the process is */
    engine_release(&two);
    engine_end(&two);
}

TEST(leases_of_a_process_that_is_gone_are_taken_at_once)
{
    struct engine one;
    char own[LEASE_IDENTITY_BYTES], dead[300];
    pid_t child = fork();
    int pipe_status;
    int64_t began;

    if (child == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(child, &pipe_status, 0), child);
    lease_identity_own("0123456789abcdef", own);
    {
        char host_name[80], boot[80], space[80];

        assert_int_equal(sscanf(own, "%79s %79s %79s", host_name, boot, space), 3);
        (void)snprintf(dead, sizeof(dead), "%s %s %s %d 12345 0123456789abcdef", host_name, boot, space, (int)child);
    }
    assert_false(lease_identity_is_dead(slice_of(own), own));
    assert_true(lease_identity_is_dead(slice_of(dead), own));
    /* On another machine, so nobody knows. */
    assert_false(lease_identity_is_dead(SLICE("other 1-2-3 pid:[1] 99999999 12345 0123456789abcdef"), own));
    assert_false(lease_identity_is_dead(SLICE(""), own));
    assert_false(lease_identity_is_dead(SLICE("a b c"), own));

    host_sql(&host,
             "update sagad.shard set owner = 'killed', owner_identity = '%s', expires_at = now() + interval '1 hour'",
             dead);
    began = boot_ms();
    engine_begin(&one, "one", 0);
    host_run_until(&host, is_owner, &one);
    assert_true(boot_ms() - began < 30000);
    assert_int_equal(lease_doubt_ms(one.leases, 3), 0);
    engine_release(&one);
    engine_end(&one);
}

TEST(the_old_owner_writes_nothing_after_a_takeover_and_learns_of_it)
{
    struct engine one, two;
    struct turn turn = {0};
    struct saga_id id = host_saga(4);
    int64_t epoch = 0;

    engine_begin(&one, "one", 30000); /* its next renewal comes only after the other engine has read that it is late */
    host_run_until(&host, is_owner, &one);
    assert_true(lease_is_held(one.leases, 4, &epoch));
    turn_start(&turn, id, epoch, NULL);
    assert_int_equal(host_append(&host, one.store, &turn), ERR_OK);

    host_sql(&host, "update sagad.shard set expires_at = now() - interval '1 second'"); /* as if its renewals had not
                                                                                           come for a while */
    engine_begin(&two, "two", 3000);
    host_run_until(&host, is_owner, &two);
    turn_next(&turn, id, epoch, 2, "step.intent");
    assert_int_equal(host_append(&host, one.store, &turn), ERR_FENCED);
    assert_int_equal(host_number(&host, "select count(*) from sagad.log where shard = 4"), 1);

    if (lease_is_held(one.leases, 4, NULL)) {
        leases_report_fenced(one.leases, 4, epoch);
        assert_true(lease_is_held(one.leases, 4, NULL)); /* told later, not inside the call */
    }
    host_run_until(&host, has_lost_one, &one);
    host_run_until(&host, has_lost_all, &one); /* the other shards by the next renewal */
    assert_int_equal(one.lost, SHARD_COUNT);
    assert_false(lease_allows_send(one.leases, 4));

    assert_true(lease_is_held(two.leases, 4, &epoch));
    turn_next(&turn, id, epoch, 2, "step.intent");
    assert_int_equal(host_append(&host, two.store, &turn), ERR_OK);
    engine_release(&two);
    engine_release(&one);
    engine_end(&one);
    engine_end(&two);
}

TEST(a_takeover_waits_for_an_append_under_way)
{
    struct engine one;

    /* An open transaction holds the fence, as an append does between its first statement and its COMMIT. */
    engine_begin(&one, "one", 0);
    host_run_until(&host, is_owner, &one);
    engine_release(&one);
    {
        struct db_session *append = NULL;
        struct err err = {.code = ERR_OK};

        assert_int_equal(db_session_open(cluster_dsn(&host.cluster), "append", &append, &err), ERR_OK);
        assert_int_equal(
            db_session_run(
                append,
                "begin; select sagad.fence(array[6]::int2[], array[(select epoch from sagad.shard where shard = 6)])",
                NULL, NULL, &err),
            ERR_OK);
        {
            struct engine two;

            engine_begin(&two, "two", 0);
            host_run_ms(&host, 1500);
            assert_false(lease_is_held(two.leases, 6, NULL));
            assert_int_equal(db_session_run(append, "commit", NULL, NULL, &err), ERR_OK);
            host_run_until(&host, is_owner, &two);
            assert_int_equal(db_session_run(append, "begin", NULL, NULL, &err), ERR_OK);
            assert_int_equal(
                db_session_run(
                    append,
                    "select sagad.fence(array[6]::int2[], array[(select epoch - 1 from sagad.shard where shard = 6)])",
                    NULL, NULL, &err),
                ERR_FENCED);
            engine_release(&two);
            engine_end(&two);
        }
        db_session_close(append);
    }
    engine_end(&one);
}

TEST(a_lost_connection_costs_no_lease)
{
    struct engine one;
    int64_t epoch = 0, after = 0;

    engine_begin(&one, "one", 3000);
    host_run_until(&host, is_owner, &one);
    assert_true(lease_is_held(one.leases, 8, &epoch));
    for (int i = 0; i < 5; i++) {
        host_sql(&host,
                 "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'sagad/%%'");
        host_run_ms(&host, 700);
    }
    struct renewals renewals = renewals_of(&one);

    host_run_until(&host, has_renewed_twice, &renewals);
    assert_true(lease_is_held(one.leases, 8, &after));
    assert_int_equal(epoch, after);
    host_run_until(&host, may_send, &one);
    host_until_number(&host, SHARD_COUNT, "select count(*) from pg_locks where locktype = 'advisory' and granted");
    assert_int_equal(one.lost, 0);
    assert_int_equal(one.gained, SHARD_COUNT);
    engine_release(&one);
    engine_end(&one);
}

TEST(sending_stops_in_time_without_the_database_and_goes_on_after)
{
    struct engine one;
    int64_t epoch = 0, after = 0;

    engine_begin(&one, "one", 2000);
    host_run_until(&host, is_owner, &one);
    assert_true(lease_is_held(one.leases, 8, &epoch));
    cluster_stop(&host.cluster);
    host_run_ms(&host, 1700);
    assert_false(lease_allows_send(one.leases, 8)); /* a margin before the 2 s are over */
    host_run_ms(&host, 1500);
    /* Nobody can have taken the shard: answers that came meanwhile can still be appended. */
    assert_int_equal(one.lost, 0);
    cluster_resume(&host.cluster);
    host_run_until(&host, may_send, &one);
    assert_true(lease_is_held(one.leases, 8, &after));
    assert_int_equal(epoch, after);
    engine_release(&one);
    engine_end(&one);
}

static bool load_done;

static void on_no_saga(struct shard_load *load, struct saga_id id, struct slice namespace,
                       const struct stored_turn *turns, size_t count)
{
    (void)load, (void)id, (void)namespace, (void)turns, (void)count;
}

static void on_load_done(struct shard_load *load)
{
    (void)load;
    load_done = true;
}

static bool is_loaded(void *context)
{
    (void)context;
    return load_done;
}

TEST(low_follows_the_oldest_unfinished_saga_once_the_shard_is_loaded)
{
    struct engine one;
    struct shard_load load = {.shard = 2, .on_saga = on_no_saga, .done = on_load_done};

    host_sql(&host, "update sagad.shard set low = null");
    engine_begin(&one, "one", 3000);
    one.oldest_ms = INT64_MAX; /* nothing is unfinished */
    host_run_until(&host, is_owner, &one);
    struct renewals renewals = renewals_of(&one);

    host_run_until(&host, has_renewed_twice, &renewals);
    assert_int_equal(host_number(&host, "select count(*) from sagad.shard where low is not null"), 0);
    store_load_shard(one.store, &load);
    host_run_until(&host, is_loaded, NULL);
    host_until_number(&host, 1,
                      "select count(*) from sagad.shard where shard = 2 and low between now() - interval '70 s' and "
                      "now() - interval '55 s'");
    assert_int_equal(host_number(&host, "select count(*) from sagad.shard where low is not null"), 1);
    one.oldest_ms = INT64_C(1700000000000);
    host_until_number(&host, 1699999999, "select extract(epoch from low)::int8 from sagad.shard where shard = 2");
    engine_release(&one);
    engine_end(&one);
}

/* --- fair shares --- */

struct fleet {
    struct engine *engines;
    int count, held[4]; /* how many shards each is to have in the end */
};

static bool is_shared(void *context)
{
    const struct fleet *fleet = context;

    for (int i = 0; i < fleet->count; i++) {
        if (held_count(&fleet->engines[i]) != fleet->held[i]) {
            return false;
        }
    }
    return true;
}

static bool is_shared_by_three(void *context)
{
    const struct fleet *fleet = context;
    int all = 0;

    for (int i = 0; i < 3; i++) {
        int held = held_count(&fleet->engines[i]);

        all += held >= 21 && held <= 22 ? held : 0;
    }
    return all == SHARD_COUNT;
}

static int owned_twice(void)
{
    return host_number(&host, "select count(*) from pg_locks where locktype = 'advisory' and granted") - SHARD_COUNT;
}

TEST(engines_share_equally_as_they_come_and_go)
{
    struct engine engines[3];
    struct fleet fleet = {.engines = engines, .count = 1, .held = {SHARD_COUNT}};
    int64_t began, epochs;

    engine_begin_as(&engines[0], "one", 3000, false);
    host_run_until(&host, is_shared, &fleet);
    assert_int_equal(
        host_number(&host, "select count(*) from sagad.engine where name = 'one' and version = '1.2.3' and not standby"
                           " and not leaving and append_lag_ms = 5 and due_lag_ms = 6 and inbox_rows = 7"
                           " and expires_at between clock_timestamp() and clock_timestamp() + interval '3 s'"),
        1);
    assert_int_equal(host_number(&host, "select min(schema) from sagad.engine"), migrate_newest());
    epochs = host_number(&host, "select sum(epoch) from sagad.shard");

    began = boot_ms();
    engine_begin_as(&engines[1], "two", 3000, false);
    fleet = (struct fleet){.engines = engines, .count = 2, .held = {32, 32}};
    host_run_until(&host, is_shared, &fleet);
    assert_true(boot_ms() - began < 15000); /* it was told; an engine that is alone looks only every half minute */
    assert_int_equal(engines[0].lost, 0);
    assert_int_equal(host_number(&host, "select sum(epoch) from sagad.shard"), epochs + 32); /* each shard moved once */

    engine_begin_as(&engines[2], "three", 3000, false);
    fleet.count = 3;
    host_run_until(&host, is_shared_by_three, &fleet);
    for (int i = 0; i < 3; i++) {
        fleet.held[i] = held_count(&engines[i]);
    }
    epochs = host_number(&host, "select sum(epoch) from sagad.shard");
    host_run_ms(&host, 2500);
    assert_true(is_shared(&fleet)); /* and it stays so */
    assert_int_equal(host_number(&host, "select sum(epoch) from sagad.shard"), epochs);
    assert_int_equal(owned_twice(), 0);

    leases_leave(engines[1].leases);
    host_until_number(&host, 1, "select count(*) from sagad.engine where leaving and name = 'two'");
    assert_int_equal(held_count(&engines[1]), fleet.held[1]); /* ours until given away */
    began = boot_ms();
    engine_release(&engines[1]);
    assert_int_equal(host_number(&host, "select count(*) from sagad.engine where name = 'two'"), 0);
    while (held_count(&engines[0]) + held_count(&engines[2]) < SHARD_COUNT) {
        host_run_ms(&host, 20);
    }
    assert_true(boot_ms() - began < 20000);
    assert_in_range(held_count(&engines[0]), 32, 32);

    engine_end(&engines[1]);
    engine_end(&engines[2]); /* no release, as if the engine had crashed on another machine */
    fleet = (struct fleet){.engines = engines, .count = 1, .held = {SHARD_COUNT}};
    began = boot_ms();
    host_run_until(&host, is_shared, &fleet);
    assert_true(boot_ms() - began < 3000 + 20000);
    assert_int_equal(engines[0].lost, 0);
    host_sql(&host, "update sagad.engine set expires_at = expires_at - interval '2 hours' where name = 'three'");
    host_sql(&host, "notify sagad_leases"); /* an engine that is alone seldom looks by itself */
    host_until_number(
        &host, 0,
        "select count(*) from sagad.engine where name = 'three'"); /* rows of dead engines are removed in the end */
    engine_release(&engines[0]);
    engine_end(&engines[0]);
    assert_int_equal(host_number(&host, "select count(*) from sagad.engine where expires_at > now()"), 0);
}

TEST(an_engine_that_is_alone_renews_and_seldom_looks_who_else_is_there)
{
    struct engine engines[2];
    struct fleet fleet = {.engines = engines, .count = 1, .held = {SHARD_COUNT}};
    struct renewals renewals;
    int64_t began, epoch = 0;

    engine_begin_as(&engines[0], "one", 3000, false);
    host_run_until(&host, is_shared, &fleet);
    renewals = renewals_of(&engines[0]); /* it looks once more when it hears its own message */
    host_run_until(&host, has_renewed_without_a_look, &renewals);
    assert_int_equal(held_count(&engines[0]), SHARD_COUNT);
    assert_true(lease_allows_send(engines[0].leases, 0));
    assert_int_equal(host_number(&host, "select count(*) from sagad.shard where expires_at > clock_timestamp()"),
                     SHARD_COUNT);

    /* Its own renewal tells that a shard was taken, and it looks at once. */
    assert_true(lease_is_held(engines[0].leases, 7, &epoch));
    host_sql(&host, "update sagad.shard set epoch = epoch + 1, owner_identity = 'else', expires_at = clock_timestamp() "
                    "+ interval '1 s' where shard = 7");
    host_run_until(&host, has_lost_one, &engines[0]);
    host_run_until(&host, is_shared, &fleet); /* the shard is free again when that engine has not renewed */
    assert_int_equal(host_number(&host, "select epoch from sagad.shard where shard = 7"), epoch + 2);

    began = boot_ms();
    engine_begin_as(&engines[1], "two", 3000, false);
    fleet = (struct fleet){.engines = engines, .count = 2, .held = {32, 32}};
    host_run_until(&host, is_shared, &fleet);
    assert_true(boot_ms() - began < 15000); /* an engine that comes says so */
    engine_release(&engines[1]);
    engine_end(&engines[1]);
    fleet = (struct fleet){.engines = engines, .count = 1, .held = {SHARD_COUNT}};
    host_run_until(&host, is_shared, &fleet);
    engine_release(&engines[0]);
    engine_end(&engines[0]);
}

/* A migration locks the table of engines first and then the one of shards. A renewal that had shards and waited for the
 * engines would wait for it in a circle. */
TEST(a_renewal_that_gives_shards_away_waits_for_the_engines_before_it_has_a_shard)
{
    static const char waiting[] = /* 1 while a renewal waits for the table of engines, 2 when it has shards meanwhile */
        "select coalesce(max(1 + (exists (select from pg_locks h where h.pid = w.pid and h.granted"
        " and h.relation = 'sagad.shard'::regclass and h.mode = 'RowExclusiveLock'))::int), 0)"
        " from pg_locks w where not w.granted and w.relation = 'sagad.engine'::regclass";
    struct engine one;
    struct db_session *migration = NULL;
    struct err err = {.code = ERR_OK};
    char sql[160];
    int64_t epoch = 0;

    engine_begin_as(&one, "one", 0, false);
    host_run_until(&host, is_owner, &one);
    assert_int_equal(db_session_open(cluster_dsn(&host.cluster), "migration", &migration, &err), ERR_OK);
    assert_int_equal(
        db_session_run(migration, "begin; lock table sagad.engine in access exclusive mode", NULL, NULL, &err), ERR_OK);
    assert_true(lease_is_held(one.leases, 7, &epoch));
    leases_give(one.leases, 7);
    for (int seen = 0; seen < 30;) { /* several renewals: the first may have been sent before the shard was given */
        long locks = host_number(&host, waiting);

        assert_int_not_equal(locks, 2);
        seen += locks == 1;
        host_run_ms(&host, 50);
    }
    assert_int_equal(db_session_run(migration, "rollback", NULL, NULL, &err), ERR_OK);
    db_session_close(migration);
    (void)snprintf(sql, sizeof(sql),
                   "select count(*) from sagad.shard where shard = 7 and (owner is null or epoch > %lld)",
                   (long long)epoch);
    host_until_number(&host, 1, sql); /* it was given, and may be taken again */
    engine_release(&one);
    engine_end(&one);
}

TEST(an_engine_that_cannot_give_keeps_its_shards_and_the_others_live_with_it)
{
    struct engine engines[2];

    engine_begin_as(&engines[0], "one", 1500, false);
    host_run_until(&host, is_owner, &engines[0]);
    engines[0].keeps = true;
    engine_begin_as(&engines[1], "two", 1500, false);
    host_run_until(&host, has_surplus, &engines[0]);
    assert_int_equal(engines[0].surplus, 32);
    host_run_ms(&host, 1000);
    assert_int_equal(held_count(&engines[0]), SHARD_COUNT);
    assert_int_equal(held_count(&engines[1]), 0);
    engine_release(&engines[1]);
    engine_end(&engines[1]);
    host_run_until(&host, has_no_surplus, &engines[0]);
    engine_release(&engines[0]);
    engine_end(&engines[0]);
}

TEST(a_standby_takes_over_and_gives_all_back)
{
    struct engine engines[2];
    struct fleet fleet = {.engines = engines, .count = 2, .held = {SHARD_COUNT, 0}};

    engine_begin_as(&engines[0], "standby", 1500, true);
    host_run_until(&host, is_owner, &engines[0]);
    engine_begin_as(&engines[1], "regular", 1500, false);
    fleet.held[0] = 0;
    fleet.held[1] = SHARD_COUNT;
    host_run_until(&host, is_shared, &fleet);
    engine_release(&engines[1]);
    engine_end(&engines[1]);
    host_run_until(&host, is_owner, &engines[0]);
    engine_release(&engines[0]);
    engine_end(&engines[0]);
}

/* The database was away for longer than a lease. The first of the two engines that comes back leaves the other one its
 * shards. */
TEST(a_shard_whose_lease_expired_while_the_database_was_away_stays_with_its_owner)
{
    struct engine engines[2];
    struct fleet fleet = {.engines = engines, .count = 2, .held = {32, 32}};

    engine_begin_as(&engines[0], "one", 1500, false);
    host_run_until(&host, is_owner, &engines[0]);
    engine_begin_as(&engines[1], "two", 1500, false);
    host_run_until(&host, is_shared, &fleet);
    for (int i = 0; i < 2; i++) {
        int64_t epochs = host_number(&host, "select sum(epoch) from sagad.shard");

        cluster_stop(&host.cluster);
        host_run_ms(&host, 2000);
        cluster_resume(&host.cluster);
        for (int k = 0; k < 2; k++) {
            struct renewals renewals = renewals_of(&engines[k]);

            host_run_until(&host, has_renewed_twice, &renewals);
        }
        assert_true(is_shared(&fleet));
        assert_int_equal(engines[0].lost + engines[1].lost, 0);
        assert_int_equal(host_number(&host, "select sum(epoch) from sagad.shard"), epochs);
    }
    engine_release(&engines[0]);
    engine_release(&engines[1]);
    engine_end(&engines[0]);
    engine_end(&engines[1]);
}

static int setup(void **state)
{
    (void)state;
    host_start(&host, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    host_stop(&host);
    return 0;
}

/* --- a history that was rewound --- */

/* Has one of the two engines found the loss? Once the shard is marked, the other one need not find it. */
static bool one_has_found_a_loss(void *context)
{
    struct engine *const *engines = context;

    return engines[0]->store->history.is_written || engines[1]->store->history.is_written;
}

static void say_nothing(const char *line)
{
    (void)line;
}

/* The history looks as if the takeover of a shard, and the turns since, were forgotten. */
TEST(a_shard_whose_history_was_rewound_is_nobodys_until_a_person_accepts_it)
{
    struct engine one, two;
    struct renewals renewals;
    struct err err = {.code = ERR_OK};
    int64_t epoch = 0;

    engine_begin(&one, "one", 3000);
    host_run_until(&host, is_owner, &one);
    engine_begin(&two, "two", 3000);
    host_run_until(&host, has_looked, &two);
    assert_true(lease_is_held(one.leases, 5, &epoch));
    host_sql(&host, "update sagad.shard set epoch = epoch - 1 where shard = 5");
    host_run_until(&host, one_has_found_a_loss, (struct engine *[]){&one, &two}); /* both engines have seen the epoch */
    assert_int_equal(host_number(&host,
                                 "select count(*) from sagad.history_shard h where h.shard = 5 and h.epoch >= %lld",
                                 (long long)epoch),
                     host_number(&host, "select count(*) from sagad.history_loss"));
    assert_int_equal(host_number(&host, "select count(*) from sagad.history_shard h where h.shard <> 5"), 0);
    host_store_close(&host, one.store); /* its knowledge stays, and the shard is not free when its lease is over */
    host_store_close(&host, two.store);
    engine_begin_on(&one, host_store_begin(&host, NULL), "three", 3000, true);
    host_run_ms(&host, 4000);
    assert_int_equal(held_count(&one), 0); /* the engine comes after the loss, and waits */
    assert_int_equal(
        host_number(
            &host,
            "select count(*) from sagad.shard where owner_identity like 'loss/%%' and shard = 5 and epoch > %lld",
            (long long)epoch),
        1);
    assert_int_equal(accept_history(host.cluster.dsn, "a person", "for the test", say_nothing, &err), ERR_OK);
    host_run_until(&host, is_owner, &one);
    assert_true(host_number(&host, "select epoch from sagad.shard where shard = 5") > epoch + 1);
    renewals = renewals_of(&one);
    host_run_until(&host, has_renewed_twice, &renewals); /* and the engine misses nothing of what it reads now */
    assert_int_equal(host_number(&host, "select count(*) from sagad.history_loss where accepted_at is null"), 0);
    engine_release(&one);
    engine_end(&one);
}

TEST_PROGRAM(setup, teardown)
