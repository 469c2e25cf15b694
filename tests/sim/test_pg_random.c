/*
 * Random work against the simulated PostgreSQL. Sessions move numbers between rows in any order, while commits end in
 * all ways, backends are ended, clients leave, and the server restarts or fails over. No transaction may ever be there
 * by half.
 */
#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"
#include "tests/sim/test_pg_trial.h"

enum { SESSIONS = 6, SHARDS = 4, ROUNDS = 300, SEEDS = 60 };

static struct client clients[SESSIONS];
static int64_t confirmed_epochs, taken;

static enum commit_fate any_fate(struct pg_session *session)
{
    (void)session;
    return world_percent(STREAM_FAULT, 30) ? (enum commit_fate)world_below(STREAM_FAULT, COMMIT_LATE + 1) : COMMIT_OK;
}

static void count_turn(const struct committed_turn *turn)
{
    confirmed_epochs += turn != NULL;
}

static void count_lost(const struct committed_turn *turn)
{
    confirmed_epochs -= turn != NULL;
}

/* Each transaction takes two shards, appends one turn, and puts and drops what others put and drop. */
static void begin(struct client *client)
{
    int64_t shard = world_below(STREAM_FAULT, SHARDS);

    client->count = 0;
    if (world_percent(STREAM_FAULT, 20)) {
        ADD(client, fence, shard, world_below(STREAM_FAULT, 4));
    }
    ADD(client, take, shard);
    if (world_percent(STREAM_FAULT, 50)) {
        ADD(client, put_inbox, 1, world_below(STREAM_FAULT, 4));
    }
    if (world_percent(STREAM_FAULT, 50)) {
        ADD(client, advisory, world_below(STREAM_FAULT, 3));
    }
    if (world_percent(STREAM_FAULT, 50)) {
        ADD(client, drop_inbox, 1, world_below(STREAM_FAULT, 4));
    }
    ADD(client, append, 1, 1 + world_below(STREAM_FAULT, 2), ++taken);
    ADD(client, take, world_below(STREAM_FAULT, SHARDS));
    if (world_percent(STREAM_FAULT, 5)) {
        go_part(client);
    } else {
        go(client);
    }
}

static void disturb(void)
{
    switch (world_below(STREAM_FAULT, 24)) {
    case 0:
        pg_restart(pg, world_between(STREAM_FAULT, 1, 100000));
        break;
    case 1:
        pg_fail_over(pg, world_between(STREAM_FAULT, 1, 100000), 0);
        break;
    case 2:
        pg_fail_over(pg, world_between(STREAM_FAULT, 1, 100000), world_between(STREAM_FAULT, 1, PG_LOSE_US_MAX));
        break;
    case 3:
    case 4:
        pg_terminate(pg, world_below(STREAM_FAULT, 100));
        break;
    case 5:
    case 6: {
        struct client *client = &clients[world_below(STREAM_FAULT, SESSIONS)];

        if (client->session) {
            pg_disconnect(client->session, world_percent(STREAM_FAULT, 50));
            client->session = NULL;
        }
        break;
    }
    default:
        break;
    }
}

static void assert_ordered(void)
{
    for (enum pg_table table = 0; table < PG_TABLE_COUNT; table++) {
        const struct pg_rows *rows = &pg->tables[table];

        for (size_t i = 0; i < rows->count; i++) {
            const struct pg_row *row = rows->sorted[i];

            assert_ptr_equal(row->previous, i > 0 ? rows->sorted[i - 1] : NULL);
            assert_ptr_equal(row->next, i + 1 < rows->count ? rows->sorted[i + 1] : NULL);
            assert_true(i == 0 || rows_compare(table, row->previous->key, row->key) < 0);
            assert_true(row->newest || (row->kept && row->locks));
        }
    }
}

static uint64_t play(uint64_t seed)
{
    world_init(&the_world, seed);
    pg = pg_new();
    the_world.pg = pg;
    pg_on_turn(pg, count_turn);
    pg_on_lost(pg, count_lost);
    pg_on_commit(pg, any_fate);
    confirmed_epochs = taken = 0;
    memset(clients, 0, sizeof(clients));
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < SESSIONS; i++) {
            struct client *client = &clients[i];

            if (client->is_gone || !client->session) {
                client_connect(client, "random");
                client->over = 1;
            }
            if (client->session && client->over) {
                client->over = 0;
                begin(client);
            }
        }
        disturb();
        run_for(world_between(STREAM_FAULT, 1, 300000));
        assert_ordered();
    }
    pg_on_commit(pg, NULL);
    run_for(30000000); /* all clients are done or were thrown out */
    assert_true(pg_is_up(pg));
    assert_null(pg->line);
    client_connect(&a, "judge");
    ADD(&a, hold, 1, PG_KEY_SHARE); /* confirms the commit that was warned about */
    go(&a);
    assert_committed(&a);
    int64_t epochs = 0, appended = 0;

    for (int64_t shard = 0; shard < SHARDS; shard++) {
        ADD(&a, hold, shard, PG_UPDATE); /* nobody holds the lock */
        ADD(&a, look, shard);
        go(&a);
        assert_committed(&a);
        epochs += a.last;
    }
    appended = log_rows(1);
    assert_int_equal(epochs, 2 * appended);
    assert_int_equal(confirmed_epochs, appended);
    for (size_t i = 0; i < pg->session_count; i++) {
        assert_null(pg->sessions[i]->held);
        assert_null(pg->sessions[i]->written);
    }
    uint64_t hash = (uint64_t)the_world.now_us * 31 + (uint64_t)epochs + pg->commits * 1000003;

    pg_fini(pg);
    world_fini(&the_world);
    return hash;
}

TEST(no_transaction_is_ever_there_by_half)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        (void)play(seed);
    }
}

TEST(the_same_seed_is_the_same_run)
{
    assert_int_equal(play(7), play(7));
}

TEST_PROGRAM(NULL, NULL)
