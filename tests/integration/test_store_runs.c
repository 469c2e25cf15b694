/* Runs are found by their names and read by what their newest turns store of them, or with their logs, several in one
 * statement. */
#include <stdio.h>
#include <string.h>

#include "tests/integration/store_host.h"
#include "tests/lib/test.h"

static struct host host;
static struct store *store;
static struct arena arena;

static void on_run_read(struct store_read *read)
{
    ++*(int *)read->context;
}

static int wanted;

static bool all_are_read(void *context)
{
    return *(int *)context == wanted;
}

TEST(runs_are_read_by_their_names_together_and_long_ones_are_only_found)
{
    static char large[RUN_TURN_BYTES_MAX + 1];
    struct read_run runs[4] = {0}; /* a short one, one of many turns, one with a large turn, one that is not there */
    struct saga_id run_ids[3];
    struct turn turn = {0};
    char name[16];
    int read = 0;

    memset(large, ' ', sizeof(large));
    memcpy(large, "[]", 2);
    for (uint32_t i = 0; i < COUNT_OF(run_ids); i++) {
        (void)snprintf(name, sizeof(name), "run-%u", i);
        run_ids[i] = host_saga(20 + i);
        turn_start(&turn, run_ids[i], 0, name);
        host_append(&host, store, &turn);
        for (uint64_t seq = 2; seq <= (i == 1 ? RUN_TURNS_MAX + 1 : 3); seq++) {
            turn_next(&turn, run_ids[i], 0, seq, "step.intent");
            if (i == 2) {
                turn.append.payload = (struct slice){large, sizeof(large) - (seq == 2)};
            }
            assert_int_equal(host_append(&host, store, &turn), ERR_OK);
        }
    }
    for (uint32_t i = 0; i < COUNT_OF(runs); i++) {
        (void)snprintf(name, sizeof(name), "run-%u", i);
        runs[i] = (struct read_run){.read = {.arena = &arena, .done = on_run_read, .context = &read},
                                    .digest = turn_business_digest(name),
                                    .shard = 20 + i};
        store_read_run(store, &runs[i]);
    }
    assert_int_equal(read, 0); /* never inside the call */
    wanted = COUNT_OF(runs);
    host_run_until(&host, all_are_read, &read);
    for (uint32_t i = 0; i < COUNT_OF(run_ids); i++) {
        assert_int_equal(runs[i].read.code, ERR_OK);
        assert_true(uuid_equal(&runs[i].id.uuid, &run_ids[i].uuid));
    }
    assert_int_equal(runs[3].read.code, ERR_NOT_FOUND);
    assert_int_equal(runs[0].turn_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(runs[0].turns[i].first_seq, i + 1);
        assert_true(runs[0].turns[i].at_ms > 0);
    }
    assert_true(slice_is(runs[0].turns[2].payload, "[{\"type\": \"step.intent\"}]"));
    assert_null(runs[1].turns);
    assert_null(runs[2].turns);
}

/* As makers of traces do. */
TEST(logs_are_read_by_ids_together_and_long_ones_are_left_to_their_reader)
{
    static char large[LOG_TURN_BYTES_MAX + 1];
    struct saga_id ids[5]; /* a short log, one of many turns, one that is not there, a large turn, a strange id */
    struct read_logs logs = {.ids = ids, .count = COUNT_OF(ids)};
    struct turn turn = {0};
    char name[16];
    int read = 0;

    memset(large, ' ', sizeof(large));
    memcpy(large, "[]", 2);
    for (uint32_t i = 0; i < COUNT_OF(ids); i++) {
        ids[i] = host_saga(20 + i);
        if (i == 2 || i == 4) {
            continue;
        }
        (void)snprintf(name, sizeof(name), "log-%u", i);
        turn_start(&turn, ids[i], 0, name);
        host_append(&host, store, &turn);
        for (uint64_t seq = 2; seq <= (i == 1 ? LOG_TURNS_MAX + 1 : 3); seq++) {
            turn_next(&turn, ids[i], 0, seq, "step.intent");
            if (i == 3) {
                turn.append.payload = (struct slice){large, sizeof(large) - (seq == 2)};
            }
            assert_int_equal(host_append(&host, store, &turn), ERR_OK);
        }
    }
    memset(ids[4].uuid.bytes, 0xff, sizeof(ids[4].uuid.bytes));
    logs.read = (struct store_read){.arena = &arena, .done = on_run_read, .context = &read};
    store_read_logs(store, &logs);
    wanted = 1;
    host_run_until(&host, all_are_read, &read);
    assert_int_equal(logs.read.code, ERR_OK);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        assert_int_equal(logs.logs[i].turn_count, i == 0 ? 3 : 0);
        assert_int_equal(logs.logs[i].is_long, i == 1 || i == 3);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(logs.logs[0].turns[i].first_seq, i + 1);
        assert_true(logs.logs[0].turns[i].at_ms > 0);
    }
    assert_true(slice_is(logs.logs[0].turns[2].payload, "[{\"type\": \"step.intent\"}]"));
}

/* Appends a turn to the run, and reads the run. `state` is what the turn stores of it; NULL: nothing. */
static struct read_run read_after(struct saga_id id, const char *name, uint64_t seq, const char *state)
{
    struct read_run run = {.digest = turn_business_digest(name), .shard = saga_id_shard(id)};
    struct turn turn = {0};
    int read = 0;

    turn_next(&turn, id, 0, seq, "run.rested");
    turn.append.rest = slice_of(state);
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    run.read = (struct store_read){.arena = &arena, .done = on_run_read, .context = &read};
    store_read_run(store, &run);
    wanted = 1;
    host_run_until(&host, all_are_read, &read);
    assert_int_equal(run.read.code, ERR_OK);
    assert_true(uuid_equal(&run.id.uuid, &id.uuid));
    return run;
}

TEST(the_state_of_a_run_is_that_of_its_newest_turn_or_none)
{
    struct turn turn = {0};
    struct saga_id id = host_saga(40);
    struct read_run run;

    turn_start(&turn, id, 0, "run-rests");
    host_append(&host, store, &turn);
    run = read_after(id, "run-rests", 2, "state at 2");
    assert_true(slice_is(run.rest, "state at 2"));
    assert_int_equal(run.rest_seq, 2);
    assert_null(run.turns);
    run = read_after(id, "run-rests", 3, "state at 3");
    assert_true(slice_is(run.rest, "state at 3"));
    assert_int_equal(run.rest_seq, 3);
    run = read_after(id, "run-rests", 4, NULL); /* what was stored before it is old now, and its log is read */
    assert_null(run.rest.ptr);
    assert_int_equal(run.turn_count, 4);
    assert_int_equal(run.turns[3].first_seq, 4);
    run = read_after(id, "run-rests", 5, "state at 5");
    assert_true(slice_is(run.rest, "state at 5"));
    assert_null(run.turns);
}

/* Both statements that may be under way are, so the last runs wait, and are read when one of those ends. */
TEST(more_runs_than_one_statement_reads_wait_for_the_next)
{
    enum { MANY = 300 };
    static struct read_run many[MANY];
    struct turn turn = {0};
    struct saga_id id = host_saga(30);
    int read = 0;

    turn_start(&turn, id, 0, "run-many");
    host_append(&host, store, &turn);
    for (int i = 0; i < MANY; i++) {
        many[i] = (struct read_run){.read = {.arena = &arena, .done = on_run_read, .context = &read},
                                    .digest = turn_business_digest(i % 3 == 0 ? "run-many" : "run-none"),
                                    .shard = 30};
        store_read_run(store, &many[i]);
    }
    wanted = MANY;
    host_run_until(&host, all_are_read, &read);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(many[i].read.code, i % 3 == 0 ? ERR_OK : ERR_NOT_FOUND);
        assert_int_equal(many[i].turn_count, i % 3 == 0 ? 1 : 0);
    }
}

HOST_PROGRAM(NULL)
