/*
 * Appends while connections are cut and the server is killed. An acknowledged turn is in the log once. A turn that was
 * not acknowledged is appended once its outcome is known. A worker is a saga that appends turn after turn.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric.h"
#include "store/seal/payload_keys.h"
#include "store/store_state.h"
#include "tests/integration/store_host.h"
#include "tests/lib/test.h"

enum { WORKERS = 300 };

static struct host host;
static struct store *store;

struct worker {
    struct turn turn;
    struct saga_id id;
    uint64_t acknowledged; /* turns */
};

static struct worker workers[WORKERS];
static bool stopping;
static int under_way;
static uint64_t acknowledged;

static void next_turn(struct turn *turn)
{
    struct worker *worker = container_of(turn, struct worker, turn);

    if (turn->append.code != ERR_OK) {
        (void)fprintf(stderr, "a turn ended with %s: %s (%s)\n", err_name(turn->append.code), turn->append.err.message,
                      turn->append.err.detail);
        abort();
    }
    worker->acknowledged++;
    acknowledged++;
    if (stopping) {
        under_way--;
        return;
    }
    turn_next(turn, worker->id, 0, worker->acknowledged + 1, "step.intent");
    turn_submit(store, turn);
}

static void workers_start(void)
{
    memset(workers, 0, sizeof(workers));
    stopping = false;
    acknowledged = 0;
    under_way = WORKERS;
    for (int i = 0; i < WORKERS; i++) {
        workers[i].id = host_saga((uint32_t)i % SHARD_COUNT);
        workers[i].turn.after = next_turn;
        turn_start(&workers[i].turn, workers[i].id, 0, NULL);
        turn_submit(store, &workers[i].turn);
    }
}

static bool are_idle(void *context)
{
    (void)context;
    return under_way == 0;
}

static void workers_stop_and_check(void)
{
    char id[UUID_TEXT_BYTES];

    stopping = true;
    host_run_until(&host, are_idle, NULL);
    assert_int_equal(store_appends_waiting(store), 0);
    for (int i = 0; i < WORKERS; i += 17) {
        uuid_text(&workers[i].id.uuid, id);
        assert_int_equal(
            host_number(&host, "select count(*) from sagad.log where shard = %d and saga = '%s'", i % SHARD_COUNT, id),
            (long)workers[i].acknowledged);
    }
    /* The turns are dense from 1 (the key forbids doubles), and as many as were acknowledged: none is missing, and none
     * is extra. */
    assert_int_equal(
        host_number(
            &host,
            "select count(*) from (select 1 from sagad.log group by shard, saga having max(seq) <> count(*)) gaps"),
        0);
    assert_int_equal(host_number(&host, "select count(*) from sagad.log"), (long)acknowledged);
    host_sql(&host, "truncate sagad.log, sagad.saga");
}

static int rounds(int quick, int full)
{
    const char *setting = getenv("SAGAD_TEST_LONG");

    return setting && strcmp(setting, "1") == 0 ? full : quick;
}

/* --- */

TEST(connections_cut_at_any_moment_lose_nothing)
{
    uint64_t lost = metric_value(METRIC_BATCHES_LOST);

    workers_start();
    for (int i = 0; i < rounds(20, 60) || (metric_value(METRIC_BATCHES_LOST) == lost && i < 600); i++) {
        host_run_ms(&host, 30 + i % 7 * 11);
        host_sql(
            &host,
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'sagad/%%/writer'");
    }
    host_run_ms(&host, 300);
    workers_stop_and_check();
    assert_true(metric_value(METRIC_BATCHES_LOST) > lost); /* the fault did strike */
}

TEST(a_server_that_crashes_loses_nothing_acknowledged)
{
    uint64_t lost = metric_value(METRIC_BATCHES_LOST);

    workers_start();
    for (int i = 0; i < rounds(3, 10) || (metric_value(METRIC_BATCHES_LOST) == lost && i < 60); i++) {
        host_run_ms(&host, 300 + i % 5 * 40);
        cluster_restart_immediate(&host.cluster);
    }
    host_run_ms(&host, 500);
    workers_stop_and_check();
    assert_true(metric_value(METRIC_BATCHES_LOST) > lost);
}

static bool went_away(void *context)
{
    (void)context;
    return host.away_count > 0;
}

static bool is_ready(void *context)
{
    (void)context;
    return store_is_ready(store);
}

TEST(appends_wait_while_the_server_is_away_and_the_owner_is_told)
{
    uint64_t before;

    host_run_until(&host, is_ready, NULL);
    host.away_count = host.ready_count = 0;
    workers_start();
    host_run_ms(&host, 200);
    cluster_kill(&host.cluster);
    host_run_until(&host, went_away, NULL);
    assert_false(store_is_ready(store));
    host_run_ms(&host, 200);
    before = acknowledged;
    host_run_ms(&host, 1000);
    assert_int_equal(acknowledged, before);
    assert_int_equal(store_appends_waiting(store), WORKERS);
    cluster_resume(&host.cluster);
    host_run_until(&host, is_ready, NULL);
    workers_stop_and_check();
    assert_int_equal(host.away_count, 1);
    assert_int_equal(host.ready_count, 1);
}

/* Sends the turn in a batch of its own whose connection is lost while that backend commits it, and waits for the end.
 */
static void lose(struct store *of, struct turn *turn, int backend_pid, int64_t backend_started_us)
{
    struct batch *batch = of->conns[0].batch;

    assert_int_equal(batch->phase, BATCH_IDLE);
    batch->items[0] = &turn->append;
    batch->count = 1;
    of->append_count++;
    batch->backend_pid = backend_pid;
    batch->backend_started_us = backend_started_us;
    batch_lost(batch);
    host_run_until(&host, turn_is_done, turn);
}

TEST(a_backend_that_hangs_in_its_commit_is_ended_before_anybody_looks)
{
    struct turn turn = {0};
    struct saga_id id = host_saga(1);
    struct db_session *other = NULL;
    struct err err = {.code = ERR_OK};
    char text[UUID_TEXT_BYTES];

    /* A batch is "lost" while its backend still holds the row in an open transaction. A row that is not visible yet may
     * still be committed. */
    uuid_text(&id.uuid, text);
    host_run_until(&host, is_ready, NULL);
    assert_int_equal(db_session_open(cluster_dsn(&host.cluster), "sagad/other/writer", &other, &err), ERR_OK);
    {
        char sql[600];

        (void)snprintf(sql, sizeof(sql),
                       "begin; insert into sagad.log (shard, saga, seq, records, at, epoch, payload)"
                       " values (1, '%s', 1, 1, now(), 0, '[{\"type\": \"saga.started\"}]')",
                       text);
        assert_int_equal(db_session_run(other, sql, NULL, NULL, &err), ERR_OK);
    }
    turn_start(&turn, id, 0, NULL);
    append_seal(store, &turn.append);
    lose(store, &turn,
         (int)host_number(&host, "select pid from pg_stat_activity where application_name = 'sagad/other/writer'"),
         host_number(&host, "select (extract(epoch from backend_start) * 1000000)::int8 from "
                            "pg_stat_activity where application_name = 'sagad/other/writer'"));
    assert_int_equal(turn.append.code, ERR_OK);
    assert_int_equal(
        host_number(&host, "select count(*) from pg_stat_activity where application_name = 'sagad/other/writer'"), 0);
    assert_int_equal(host_number(&host, "select count(*) from sagad.log where saga = '%s'", text), 1);
    /* Our own turn, appended again. */
    assert_int_equal(host_number(&host, "select count(*) from sagad.saga where id = '%s'", text), 1);
    db_session_close(other);
    host_sql(&host, "truncate sagad.log, sagad.saga");
}

/* The COMMIT happened and its answer was lost, so the row is there. */
static enum err_code resolve_against(const char *payload_there, struct saga_id id)
{
    struct turn turn = {0};
    char text[UUID_TEXT_BYTES];

    uuid_text(&id.uuid, text);
    host_run_until(&host, is_ready, NULL);
    host_sql(
        &host,
        "insert into sagad.log (shard, saga, seq, records, at, epoch, payload) values (1, '%s', 2, 1, now(), 0, '%s')",
        text, payload_there);
    turn_next(&turn, id, 0, 2, "step.intent");
    append_seal(store, &turn.append);
    lose(store, &turn, 1, 1); /* the backend is gone */
    assert_int_equal(host_number(&host, "select count(*) from sagad.log where saga = '%s'", text), 1);
    return turn.append.code;
}

TEST(a_commit_that_did_happen_is_not_repeated)
{
    assert_int_equal(resolve_against("[{\"type\": \"step.intent\"}]", host_saga(1)), ERR_OK);
    /* The turn belongs to another engine. */
    assert_int_equal(resolve_against("[{\"type\": \"step.failed\"}]", host_saga(1)), ERR_FENCED);
    host_sql(&host, "truncate sagad.log");
}

/* Each sealing of a turn gives another text. So the text that is in the log is known only if it was kept. */
TEST(a_sealed_commit_that_did_happen_is_not_repeated)
{
    struct payload_keys *keys = host_payload_keys("{\"active\": \"k1\", \"keys\": {" HOST_KEY_1 "}}");
    struct store_options options = {.payload_keys = keys};
    struct store *sealing = host_store(&host, &options);
    struct turn turn = {0};
    struct saga_id id = host_saga(1);

    turn_next(&turn, id, 0, 2, "step.intent");
    turn.append.payload = SLICE("[{\"type\":\"step.intent\",\"data\":{\"args\":\"canary\"}}]");
    append_seal(sealing, &turn.append);
    assert_null(memmem(turn.append.stored_payload.ptr, turn.append.stored_payload.len, "canary", 6));
    host_sql(&host,
             "insert into sagad.log (shard, saga, seq, records, at, epoch, payload) values (1, '%s', 2, 1, now(), 0, "
             "'%.*s')",
             id_text(id), SLICE_ARG(turn.append.stored_payload));
    lose(sealing, &turn, 1, 1); /* the backend is gone */
    assert_int_equal(turn.append.code, ERR_OK);
    assert_int_equal(host_number(&host, "select count(*) from sagad.log where saga = '%s'", id_text(id)), 1);
    host_store_close(&host, sealing);
    payload_keys_free(keys);
    host_sql(&host, "truncate sagad.log; delete from sagad.payload_key");
}

TEST(a_database_that_takes_no_appends_is_away_and_tried_again)
{
    struct turn turn = {0};
    struct saga_id id = host_saga(1);

    host_run_until(&host, is_ready, NULL);
    host.away_count = host.ready_count = 0;
    host_sql(&host, "alter table sagad.log rename to log_elsewhere");
    turn_start(&turn, id, 0, NULL);
    turn_submit(store, &turn);
    host_run_until(&host, went_away, NULL);
    assert_true(host.err.message[0] != '\0');
    host_run_ms(&host, 500);
    assert_int_equal(turn.done, 0);
    host_sql(&host, "alter table sagad.log_elsewhere rename to log");
    host_run_until(&host, turn_is_done, &turn);
    assert_int_equal(turn.append.code, ERR_OK);
    assert_true(store_is_ready(store));
    assert_int_equal(host.ready_count, 1);
    host_sql(&host, "truncate sagad.log, sagad.saga");
}

TEST(closing_ends_what_waits)
{
    struct turn turn = {0};

    cluster_stop(&host.cluster);
    host_run_ms(&host, 200);
    turn_start(&turn, host_saga(1), 0, NULL);
    turn_submit(store, &turn);
    host_store_close(&host, store);
    store = NULL;
    assert_int_equal(turn.done, 1);
    assert_int_equal(turn.append.code, ERR_STOPPING);
}

static int setup(void **state)
{
    (void)state;
    host_start(&host, NULL);
    store = host_store(&host, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (store) {
        host_store_close(&host, store);
    }
    host_stop(&host);
    return 0;
}

TEST_PROGRAM(setup, teardown)
