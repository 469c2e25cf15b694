/* Appends: which of them share a commit, which are refused without harm to others, and what the tables hold
 * afterwards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric.h"
#include "store/store_state.h"
#include "tests/integration/store_host.h"
#include "tests/lib/test.h"

static struct host host;
static struct store *store;

struct many {
    struct turn *turns;
    int count, done;
};

static bool all_done(void *context)
{
    struct many *many = context;

    return many->done >= many->count;
}

static struct many many_new(int count)
{
    return (struct many){.turns = calloc((size_t)count, sizeof(struct turn)), .count = count};
}

static void many_run(struct many *many)
{
    for (int i = 0; i < many->count; i++) {
        many->turns[i].done_count = &many->done;
        turn_submit(store, &many->turns[i]);
    }
    host_run_until(&host, all_done, many);
    for (int i = 0; i < many->count; i++) {
        assert_int_equal(many->turns[i].done, 1);
    }
}

static int count_code(const struct many *many, enum err_code code)
{
    int count = 0;

    for (int i = 0; i < many->count; i++) {
        count += many->turns[i].append.code == code;
    }
    return count;
}

static struct op_key new_key(void)
{
    struct op_key key;

    assert_true(random_bytes(key.uuid.bytes, sizeof(key.uuid.bytes)));
    key.uuid.bytes[6] = 0x80;
    key.uuid.bytes[8] = 0x80;
    return key;
}

/* --- */

TEST(a_saga_is_a_row_and_each_turn_is_one)
{
    struct turn turn = {0};
    struct saga_id id = host_saga(5);

    turn_start(&turn, id, 0, "order-1");
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);

    turn_next(&turn, id, 0, 2, "step.intent");
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);

    turn_next(&turn, id, 0, 3, "saga.completed");
    turn.append.status_changed = turn.append.ended = true;
    turn.append.status = SAGA_COMPLETED;
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);

    assert_string_equal(
        host_text(
            &host,
            "select shard, namespace, name, version, status, tags, business_id, length(business_digest),"
            " length(input_digest), ended_at is not null, updated_at >= created_at from sagad.saga where id = '%s'",
            id_text(id)),
        "5|default|order|1|completed|{\"shop\": \"north\"}|order-1|16|32|t|t\n");
    assert_string_equal(
        host_text(
            &host,
            "select shard, seq, records, epoch, convert_from(payload, 'UTF8') from sagad.log where saga = '%s' order "
            "by seq",
            id_text(id)),
        "5|1|1|0|[{\"type\": \"saga.started\"}]\n"
        "5|2|1|0|[{\"type\": \"step.intent\"}]\n"
        "5|3|1|0|[{\"type\": \"saga.completed\"}]\n");
}

TEST(turns_that_are_ready_at_once_share_commits)
{
    struct many many = many_new(1000);
    uint64_t batches = metric_value(METRIC_BATCHES);

    for (int i = 0; i < many.count; i++) {
        turn_start(&many.turns[i], host_saga(32 + (uint32_t)i % 32), 0, NULL);
    }
    many_run(&many);
    assert_int_equal(count_code(&many, ERR_OK), 1000);
    assert_true(metric_value(METRIC_BATCHES) - batches <= 4);
    assert_int_equal(store_appends_waiting(store), 0);
    free(many.turns);
}

struct ready { /* a turn that another finds ready, in a round of the loop */
    struct deferred deferred;
    struct turn *turn;
    size_t *under_way; /* the batches under way when it was found */
};

static void on_ready(struct deferred *deferred)
{
    struct ready *ready = container_of(deferred, struct ready, deferred);

    *ready->under_way = store->batches_sent;
    turn_submit(store, ready->turn);
}

/* Otherwise either the engine or the database would be at work, and never both. */
TEST(the_first_half_of_a_crowd_leaves_while_the_other_is_still_decided)
{
    enum { CROWD = 300 };
    struct many many = many_new(CROWD);
    struct ready *ready = calloc(CROWD, sizeof(*ready));
    size_t under_way[CROWD] = {0};

    for (int round = 0; round < 2; round++) { /* all in one batch, twice, with no more batches because of that */
        for (int i = 0; i < CROWD; i++) {
            turn_start(&many.turns[i], host_saga(32 + (uint32_t)i % 32), 0, NULL);
        }
        many_run(&many);
        free(many.turns);
        many = many_new(CROWD);
    }
    for (int i = 0; i < CROWD; i++) {
        turn_start(&many.turns[i], host_saga(32 + (uint32_t)i % 32), 0, NULL);
        many.turns[i].done_count = &many.done;
        ready[i] = (struct ready){.turn = &many.turns[i], .under_way = &under_way[i]};
        loop_defer(host.loop, &ready[i].deferred, on_ready);
    }
    host_run_until(&host, all_done, &many);
    assert_int_equal(count_code(&many, ERR_OK), CROWD);
    assert_int_equal(under_way[CROWD / 2 - 1], 0);
    assert_int_equal(under_way[CROWD / 2], 1); /* in the same round */
    assert_true(under_way[CROWD - 1] >= 1);
    free(many.turns);
    free(ready);
}

/* Notes the most batches that were under way right after a send. Its hook runs behind the store's. */
struct watch {
    struct loop_hook hook;
    size_t most;
};

static void on_watch(struct loop_hook *hook)
{
    struct watch *watch = container_of(hook, struct watch, hook);

    watch->most = store->batches_sent > watch->most ? store->batches_sent : watch->most;
}

static size_t most_under_way(int count)
{
    struct many many = many_new(count);
    struct watch watch = {0};

    loop_hook_add(host.loop, &watch.hook, on_watch);
    for (int i = 0; i < count; i++) {
        turn_start(&many.turns[i], host_saga(32 + (uint32_t)i % 32), 0, NULL);
    }
    many_run(&many);
    loop_hook_remove(host.loop, &watch.hook);
    assert_int_equal(count_code(&many, ERR_OK), count);
    free(many.turns);
    return watch.most;
}

static bool all_writers_up(void *context)
{
    const struct store *of = context;
    size_t up = 0;

    for (size_t i = 0; i < of->writer_count; i++) {
        up += of->conns[i].up;
    }
    return up == of->writer_count;
}

/* Small batches cost the database more than more batches at once gain. */
TEST(a_third_batch_leaves_beside_two_only_when_it_is_full)
{
    enum { FULL = 100 };
    struct store *before = store;
    size_t nearly, full, many;

    store = host_store(&host, &(struct store_options){.batch_max = FULL});
    host_run_until(&host, all_writers_up, store); /* the store is ready with the first connection */
    nearly = most_under_way(3 * FULL - 1);
    full = most_under_way(3 * FULL);
    many = most_under_way(6 * FULL);
    host_store_close(&host, store);
    store = before;
    assert_int_equal(nearly, 2);
    assert_int_equal(full, 3);
    assert_int_equal(many, 4);
}

static int turns_over;

static void note_order(struct turn *turn)
{
    *(int *)turn->context = turns_over++;
}

/* Runs many turns. `order` gets for each turn the place at which it ended. */
static void many_run_noting(struct many *many, int *order)
{
    turns_over = 0;
    for (int i = 0; i < many->count; i++) {
        many->turns[i].after = note_order;
        many->turns[i].context = &order[i];
    }
    many_run(many);
    assert_int_equal(count_code(many, ERR_OK), many->count);
}

/* There are two batches of 500. Of the first, an eighth goes to turns that begin a saga. The rest goes to sagas that
 * have begun, although these turns came later. */
TEST(turns_of_begun_sagas_go_before_starts)
{
    enum { BEGUN = 450, BEGINNING = 600 };
    struct many first = many_new(BEGUN), both = many_new(BEGUN + BEGINNING);
    const char *with_the_first = "select count(*) from sagad.log where seq = %d and xmin = (select xmin from sagad.log "
                                 "where saga = '%s' and seq = 2)";

    for (int i = 0; i < BEGUN; i++) {
        turn_start(&first.turns[i], host_saga(32 + (uint32_t)i % 32), 0, NULL);
    }
    many_run(&first);
    for (int i = 0; i < BEGINNING; i++) {
        turn_start(&both.turns[i], host_saga(32 + (uint32_t)i % 32), 0, NULL);
    }
    for (int i = 0; i < BEGUN; i++) {
        turn_next(&both.turns[BEGINNING + i], first.turns[i].append.saga, 0, 2, "step.intent");
    }
    many_run(&both);
    assert_int_equal(count_code(&both, ERR_OK), both.count);
    /* The check looks at transactions, because two are under way at once and either may end first. */
    assert_int_equal(host_number(&host, with_the_first, 2, id_text(first.turns[0].append.saga)), 500 - 500 / 8);
    assert_int_equal(host_number(&host, with_the_first, 1, id_text(first.turns[0].append.saga)), 500 / 8);
    free(first.turns);
    free(both.turns);
}

/* Fills a payload: a JSON string of `len` bytes. */
static void fill_payload(struct turn *turn, char *text, size_t len)
{
    memset(text, 'x', len);
    memcpy(text, "[\"", 2);
    memcpy(text + len - 2, "\"]", 2);
    turn->append.payload = (struct slice){text, len};
}

/* A batch has 4 MiB. Ten turns of sagas that have begun fill one, and behind them there is no room for such large
 * starts. */
TEST(neither_large_starts_nor_what_was_begun_wait_behind_each_other_for_ever)
{
    enum { BEGUN = 18, BEGINNING = 3, BEGUN_BYTES = 400000, BEGINNING_BYTES = 3900000 };
    struct many first = many_new(BEGUN), both = many_new(BEGINNING + BEGUN);
    int order[BEGINNING + BEGUN];
    char *large = malloc(BEGINNING_BYTES), *middling = malloc(BEGUN_BYTES);

    for (int i = 0; i < BEGUN; i++) {
        turn_start(&first.turns[i], host_saga(32 + (uint32_t)i), 0, NULL);
    }
    many_run(&first);
    for (int i = 0; i < BEGINNING; i++) {
        turn_start(&both.turns[i], host_saga(32 + (uint32_t)i), 0, NULL);
        fill_payload(&both.turns[i], large, BEGINNING_BYTES);
    }
    for (int i = 0; i < BEGUN; i++) {
        turn_next(&both.turns[BEGINNING + i], first.turns[i].append.saga, 0, 2, "step.intent");
        fill_payload(&both.turns[BEGINNING + i], middling, BEGUN_BYTES);
    }
    many_run_noting(&both, order);
    assert_int_equal(order[0], 0);
    assert_int_equal(order[1], 1 + 9);
    assert_int_equal(order[2], 1 + 9 + 1 + 9);
    free(large);
    free(middling);
    free(first.turns);
    free(both.turns);
}

TEST(a_turn_alone_leaves_at_once)
{
    struct turn turn = {0};
    uint64_t batches = metric_value(METRIC_BATCHES);

    turn_start(&turn, host_saga(1), 0, NULL);
    host_append(&host, store, &turn);
    assert_int_equal(metric_value(METRIC_BATCHES) - batches, 1);
}

TEST(only_the_turns_of_a_lost_shard_are_fenced)
{
    struct many many = many_new(200);

    host_sql(&host, "update sagad.shard set epoch = epoch + 1 where shard = 9");
    for (int i = 0; i < many.count; i++) {
        turn_start(&many.turns[i], host_saga(i % 4 == 0 ? 9 : 10), 0, NULL);
    }
    many_run(&many);
    for (int i = 0; i < many.count; i++) {
        assert_int_equal(many.turns[i].append.code, i % 4 == 0 ? ERR_FENCED : ERR_OK);
    }
    assert_int_equal(host_number(&host, "select count(*) from sagad.log where shard = 9 and epoch = 0"), 0);
    host_sql(&host, "update sagad.shard set epoch = 0 where shard = 9");
    free(many.turns);
}

TEST(one_of_32_starts_with_one_business_id_wins_and_the_others_learn_who)
{
    struct many many = many_new(32);
    struct saga_id winner = {{{0}}};

    for (int i = 0; i < many.count; i++) {
        turn_start(&many.turns[i], host_saga(7), 0, "the-same");
        many.turns[i].keys[0] = new_key();
        many.turns[i].append.new_keys = many.turns[i].keys;
        many.turns[i].append.new_key_count = 1;
        if (i == 15) {
            host_run_ms(&host, 20); /* some in one batch, some in another, on two connections */
        }
        many.turns[i].done_count = &many.done;
        turn_submit(store, &many.turns[i]);
    }
    host_run_until(&host, all_done, &many);
    assert_int_equal(count_code(&many, ERR_OK), 1);
    assert_int_equal(count_code(&many, ERR_CONFLICT), 31);
    for (int i = 0; i < many.count; i++) {
        if (many.turns[i].append.code == ERR_OK) {
            winner = many.turns[i].append.saga;
        }
    }
    for (int i = 0; i < many.count; i++) {
        if (many.turns[i].append.code == ERR_CONFLICT) {
            assert_true(uuid_equal(&many.turns[i].append.existing.uuid, &winner.uuid));
            assert_true(many.turns[i].append.existing_same_input);
        }
    }
    assert_int_equal(host_number(&host, "select count(*) from sagad.saga where business_id = 'the-same'"), 1);
    assert_int_equal(host_number(&host, "select count(*) from sagad.log where shard = 7"), 1);
    assert_int_equal(host_number(&host, "select count(*) from " KNOWN_KEYS
                                        " k join sagad.saga s on s.id = k.saga where s.shard = 7"),
                     1);
    assert_int_equal(host_number(&host, "select count(*) from " KNOWN_KEYS " k where sagad.shard_of(k.saga) = 7"), 1);
    free(many.turns);
}

TEST(one_bad_turn_among_many_is_found_and_the_others_are_kept)
{
    struct many many = many_new(100);

    for (int i = 0; i < many.count; i++) {
        turn_start(&many.turns[i], host_saga(11), 0, NULL);
        if (i == 37 || i == 38 || i == 99) {
            many.turns[i].start.saga_name = (struct slice){"\xff\xfe", 2}; /* no UTF-8 */
        }
    }
    many_run(&many);
    for (int i = 0; i < many.count; i++) {
        assert_int_equal(many.turns[i].append.code, i == 37 || i == 38 || i == 99 ? ERR_CORRUPT : ERR_OK);
    }
    assert_true(many.turns[37].append.err.message[0] != '\0');
    assert_int_equal(host_number(&host, "select count(*) from sagad.log where shard = 11"), 97);
    free(many.turns);
}

TEST(the_same_place_in_the_log_is_taken_once)
{
    struct turn turn = {0};
    struct saga_id id = host_saga(12);

    turn_start(&turn, id, 0, NULL);
    host_append(&host, store, &turn);
    turn_next(&turn, id, 0, 2, "step.intent");
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    turn_next(&turn, id, 0, 2, "step.failed");
    assert_int_equal(host_append(&host, store, &turn), ERR_FENCED);
    assert_int_equal(host_number(&host, "select count(*) from sagad.log where saga = '%s'", id_text(id)), 2);
}

TEST(a_key_that_is_known_already_is_no_error)
{
    struct many many = many_new(50);
    struct op_key key = new_key();

    for (int i = 0; i < many.count; i++) {
        turn_start(&many.turns[i], host_saga(21), 0, NULL);
        many.turns[i].keys[0] = i == 20 || i == 30 ? key : new_key();
        many.turns[i].append.new_keys = many.turns[i].keys;
        many.turns[i].append.new_key_count = 1;
    }
    many.turns[40].start.saga_name = (struct slice){"\xff", 1};
    many_run(&many);
    assert_int_equal(count_code(&many, ERR_OK), 49);
    assert_int_equal(many.turns[40].append.code, ERR_CORRUPT);
    assert_int_equal(
        host_number(&host, "select count(distinct key) from " KNOWN_KEYS " k where sagad.shard_of(saga) = 21"), 48);
    free(many.turns);
}

TEST(a_status_of_a_saga_that_is_not_there_is_refused)
{
    struct turn turn = {0};
    struct saga_id id = host_saga(13);

    host_sql(
        &host,
        "insert into sagad.log (shard, saga, seq, records, at, epoch, payload) values (13, '%s', 1, 1, now(), 1, '[]')",
        id_text(id));
    turn_next(&turn, id, 0, 2, "saga.completed");
    turn.append.status_changed = true;
    assert_int_equal(host_append(&host, store, &turn), ERR_CORRUPT);
    assert_int_equal(host_number(&host, "select count(*) from sagad.log where saga = '%s'", id_text(id)), 1);
}

TEST(an_input_of_the_inbox_is_consumed_with_its_turn_and_only_once)
{
    struct turn turn = {0};
    struct saga_id id = host_saga(14);
    struct uuid input = uuid_v7(1);
    char text[UUID_TEXT_BYTES];

    uuid_text(&input, text);
    host_sql(&host, "insert into sagad.inbox (shard, id, saga, kind, payload) values (14, '%s', '%s', 'start', '{}')",
             text, id_text(id));
    turn_start(&turn, id, 0, NULL);
    turn.append.from_inbox = true;
    turn.append.inbox_id = input;
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    assert_int_equal(host_number(&host, "select count(*) from sagad.inbox"), 0);

    turn_next(&turn, id, 0, 2, "saga.failing");
    turn.append.from_inbox = true;
    turn.append.inbox_id = input;
    assert_int_equal(host_append(&host, store, &turn), ERR_DECIDED);
    assert_int_equal(host_number(&host, "select count(*) from sagad.log where saga = '%s'", id_text(id)), 1);
}

TEST(a_refused_start_leaves_its_input_in_the_inbox)
{
    struct turn turn = {0};
    struct uuid input = uuid_v7(2);
    char text[UUID_TEXT_BYTES];

    uuid_text(&input, text);
    host_sql(&host, "insert into sagad.inbox (shard, id, saga, kind, payload) values (7, '%s', '%s', 'start', '{}')",
             text, text);
    turn_start(&turn, host_saga(7), 0, "the-same");
    turn.append.from_inbox = true;
    turn.append.inbox_id = input;
    assert_int_equal(host_append(&host, store, &turn), ERR_CONFLICT);
    assert_int_equal(host_number(&host, "select count(*) from sagad.inbox"), 1);
    store_inbox_drop(store, 7, &input);
    host_run_ms(&host, 200);
    assert_int_equal(host_number(&host, "select count(*) from sagad.inbox"), 0);
}

TEST(an_escalation_is_opened_resolved_and_asked_again_with_its_turn)
{
    struct turn turn = {0};
    struct saga_id id = host_saga(15);

    turn_start(&turn, id, 0, NULL);
    host_append(&host, store, &turn);
    turn_next(&turn, id, 0, 2, "escalation.opened");
    turn.escalation = (struct append_escalation){.number = 3 * SHARD_COUNT + 15,
                                                 .is_new = true,
                                                 .is_open = true,
                                                 .step = SLICE("charge"),
                                                 .reason = SLICE("unknown"),
                                                 .body = SLICE("{\"n\": 207}")};
    turn.append.escalations = &turn.escalation;
    turn.append.escalation_count = 1;
    turn.append.status_changed = true;
    turn.append.status = SAGA_ESCALATED;
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    assert_string_equal(
        host_text(&host,
                  "select shard, number, namespace, step, reason, resolved_at is null, convert_from(body, 'UTF8') from "
                  "sagad.escalation"),
        "15|207|default|charge|unknown|t|{\"n\": 207}\n");

    turn_next(&turn, id, 0, 3, "escalation.resolved");
    turn.escalation = (struct append_escalation){.number = 3 * SHARD_COUNT + 15,
                                                 .reason = SLICE("unknown"),
                                                 .body = SLICE("{\"n\": 207, \"status\": \"resolved\"}")};
    turn.append.escalations = &turn.escalation;
    turn.append.escalation_count = 1;
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    assert_string_equal(
        host_text(&host, "select step, resolved_at is null, convert_from(body, 'UTF8') from sagad.escalation"),
        "charge|f|{\"n\": 207, \"status\": \"resolved\"}\n");

    host_sql(&host, "update sagad.escalation set opened_at = '2001-01-01'");
    turn_next(&turn, id, 0, 4, "escalation.opened");
    turn.escalation = (struct append_escalation){.number = 3 * SHARD_COUNT + 15,
                                                 .is_open = true,
                                                 .reason = SLICE("late-success"),
                                                 .body = SLICE("{\"n\": 207, \"round\": 2}")};
    turn.append.escalations = &turn.escalation;
    turn.append.escalation_count = 1;
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    /* The same row. */
    assert_string_equal(
        host_text(
            &host,
            "select number, step, reason, resolved_at is null, opened_at > '2001-01-02', convert_from(body, 'UTF8')"
            " from sagad.escalation"),
        "207|charge|late-success|t|t|{\"n\": 207, \"round\": 2}\n");
}

TEST(a_start_with_an_old_id_moves_recovery_back)
{
    struct turn turn = {0};
    struct saga_id old = host_saga(16);
    const uint8_t november_2023[] = {0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00}; /* 1700000000000 ms */

    memcpy(old.uuid.bytes, november_2023, sizeof(november_2023));
    host_sql(&host, "update sagad.shard set low = '2024-01-01Z' where shard = 16");
    store->low_ms[16] = INT64_C(1704067200000);
    turn_start(&turn, old, 0, NULL);
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    assert_int_equal(host_number(&host,
                                 "select count(*) from sagad.saga s join sagad.shard h using (shard) where s.id = '%s' "
                                 "and s.id >= sagad.id_floor(h.low)",
                                 id_text(old)),
                     1);
    assert_int_equal(host_number(&host, "select extract(epoch from low)::int8 from sagad.shard where shard = 16"),
                     1700000000);
    store->low_ms[16] = 0;
}

TEST(changing_a_status_touches_no_index)
{
    struct many many = many_new(300);
    struct saga_id *ids = calloc(300, sizeof(*ids));

    host_run_ms(&host, 1500); /* counters are reported about once a second */
    host_sql(&host, "select pg_stat_reset()");
    for (int i = 0; i < many.count; i++) {
        ids[i] = host_saga(17);
        turn_start(&many.turns[i], ids[i], 0, NULL);
    }
    many_run(&many);
    many.done = 0;
    for (int i = 0; i < many.count; i++) {
        turn_next(&many.turns[i], ids[i], 0, 2, "saga.completed");
        many.turns[i].append.status_changed = many.turns[i].append.ended = true;
        many.turns[i].append.status = SAGA_COMPLETED;
    }
    many_run(&many);
    assert_int_equal(count_code(&many, ERR_OK), 300);
    for (int i = 0;
         i < 300 && host_number(&host, "select n_tup_upd from pg_stat_user_tables where relname = 'saga'") < 300; i++) {
        host_run_ms(&host, 200);
    }
    assert_true(
        host_number(&host, "select n_tup_hot_upd * 100 / n_tup_upd from pg_stat_user_tables where relname = 'saga'") >=
        95);
    free(ids);
    free(many.turns);
}

TEST(a_large_payload_comes_back_byte_for_byte)
{
    struct turn turn = {0};
    struct saga_id id = host_saga(18);
    size_t len = 300 * 1024;
    char *payload = malloc(len);
    struct digest digest;
    char hex[65];

    memset(payload, 'x', len);
    memcpy(payload, "[\"", 2);
    memcpy(payload + len - 2, "\"]", 2);
    turn_start(&turn, id, 0, NULL);
    turn.append.payload = (struct slice){payload, len};
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    digest = digest_sha256(turn.append.payload);
    digest_hex(&digest, hex);
    assert_memory_equal(
        host_text(&host, "select encode(sha256(payload), 'hex') from sagad.log where saga = '%s'", id_text(id)), hex,
        64);
    free(payload);
}

/* --- runs that rest and are woken --- */

static long unfinished(struct saga_id id)
{
    return host_number(&host, "select count(*) from sagad.saga where id = '%s' and ended_at is null", id_text(id));
}

static long awake(struct saga_id id)
{
    return host_number(&host, "select count(*) from sagad.awake where shard = sagad.shard_of('%s') and saga = '%s'",
                       id_text(id), id_text(id));
}

TEST(a_run_that_rested_is_woken_and_rests_again)
{
    struct turn turn = {0};
    struct saga_id id = host_saga(19);

    turn_start(&turn, id, 0, "run-1");
    turn.start.saga_name = SLICE("~run");
    host_append(&host, store, &turn);
    turn_next(&turn, id, 0, 2, "run.rested");
    turn.append.status_changed = turn.append.ended = true;
    turn.append.status = SAGA_COMPLETED;
    host_append(&host, store, &turn);
    assert_int_equal(unfinished(id), 0);
    for (int round = 0; round < 2; round++) {
        turn_next(&turn, id, 0, (uint64_t)(3 + 2 * round), "run.woken");
        turn.append.status_changed = true;
        turn.append.awake = AWAKE_ADD;
        assert_int_equal(host_append(&host, store, &turn), ERR_OK);
        assert_int_equal(unfinished(id), 1);
        assert_int_equal(awake(id), 1);
        turn_next(&turn, id, 0, (uint64_t)(4 + 2 * round), "run.rested");
        turn.append.status_changed = turn.append.ended = true;
        turn.append.status = SAGA_COMPLETED;
        turn.append.awake = AWAKE_REMOVE;
        assert_int_equal(host_append(&host, store, &turn), ERR_OK);
        assert_int_equal(unfinished(id), 0);
        assert_int_equal(awake(id), 0);
    }
}

TEST(a_record_after_the_end_of_a_saga_leaves_its_end_as_it_was)
{
    struct turn turn = {0};
    struct saga_id id = host_saga(21);
    long ended;

    turn_start(&turn, id, 0, NULL);
    turn.append.ended = true;
    turn.append.status = SAGA_COMPLETED;
    host_append(&host, store, &turn);
    ended = host_number(&host, "select (extract(epoch from ended_at) * 1000)::int8 from sagad.saga where id = '%s'",
                        id_text(id));
    turn_next(&turn, id, 0, 2, "operation.duplicate");
    turn.append.ended = true;
    turn.append.status = SAGA_COMPLETED;
    turn.append.at_ms += 60000;
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
    assert_int_equal(host_number(&host,
                                 "select (extract(epoch from ended_at) * 1000)::int8 from sagad.saga where id = '%s'",
                                 id_text(id)),
                     ended);
}

/* --- SQL for people --- */

static void append_payload(struct saga_id id, uint64_t seq, uint32_t records, const char *payload)
{
    struct turn turn = {0};

    if (seq == 1) {
        turn_start(&turn, id, 0, NULL);
    } else {
        turn_next(&turn, id, 0, seq, "");
    }
    turn.append.payload = slice_of(payload);
    turn.append.record_count = records;
    assert_int_equal(host_append(&host, store, &turn), ERR_OK);
}

TEST(steps_and_operations_can_be_read_in_sql)
{
    struct saga_id id = host_saga(20);

    append_payload(id, 1, 2,
                   "[{\"type\":\"saga.started\",\"data\":{\"saga\":\"order\"}},"
                   "{\"type\":\"step.intent\",\"step\":\"reserve\",\"key\":\"00000000-0000-8000-8000-000000000001\","
                   "\"attempt\":1,\"data\":{}}]");
    append_payload(id, 3, 2,
                   "[{\"type\":\"step.completed\",\"step\":\"reserve\",\"key\":\"00000000-0000-8000-8000-"
                   "000000000001\",\"attempt\":1,\"data\":{\"result\":{\"id\":7}}},"
                   "{\"type\":\"step.intent\",\"step\":\"charge\",\"key\":\"00000000-0000-8000-8000-000000000002\","
                   "\"attempt\":1,\"data\":{}}]");
    append_payload(id, 5, 1,
                   "[{\"type\":\"step.unknown\",\"step\":\"charge\",\"key\":\"00000000-0000-8000-8000-000000000002\","
                   "\"attempt\":1,\"data\":{\"error\":\"timeout\"}}]");
    append_payload(id, 6, 1,
                   "[{\"type\":\"compensation.intent\",\"step\":\"reserve\",\"key\":\"00000000-0000-8000-8000-"
                   "000000000003\",\"attempt\":1,\"data\":{}}]");

    assert_string_equal(
        host_text(
            &host,
            "select seq, type, step, attempt, data from sagad.log_entry where shard = sagad.shard_of('%s') and saga "
            "= '%s' order by seq",
            id_text(id), id_text(id)),
        "1|saga.started|null|null|{\"saga\": \"order\"}\n"
        "2|step.intent|reserve|1|{}\n"
        "3|step.completed|reserve|1|{\"result\": {\"id\": 7}}\n"
        "4|step.intent|charge|1|{}\n"
        "5|step.unknown|charge|1|{\"error\": \"timeout\"}\n"
        "6|compensation.intent|reserve|1|{}\n");
    assert_string_equal(
        host_text(&host,
                  "select step, status, error from sagad.saga_step where shard = 20 and saga = '%s' order by step",
                  id_text(id)),
        "charge|unknown|timeout\nreserve|compensating|null\n");
    assert_string_equal(
        host_text(&host,
                  "select right(key::text, 1), step, direction, state from sagad.operation where shard = 20 and saga = "
                  "'%s' order by key",
                  id_text(id)),
        "1|reserve|do|completed\n2|charge|do|unknown\n3|reserve|undo|in_flight\n");
    append_payload(
        id, 7, 2,
        "[{\"type\":\"step.called\",\"step\":\"~pay\",\"key\":\"00000000-0000-8000-8000-000000000004\",\"data\":{}},"
        "{\"type\":\"operation.duplicate\",\"step\":\"reserve\",\"key\":\"00000000-0000-8000-8000-000000000001\","
        "\"data\":{}}]");
    append_payload(
        id, 9, 1,
        "[{\"type\":\"step.late\",\"step\":\"charge\",\"key\":\"00000000-0000-8000-8000-000000000002\",\"data\":{}}]");
    assert_string_equal(
        host_text(&host, "select step, status from sagad.saga_step where shard = 20 and saga = '%s' order by step",
                  id_text(id)),
        "charge|unknown\nreserve|compensating\n~pay|pending\n");
    assert_string_equal(
        host_text(
            &host,
            "select right(key::text, 1), state from sagad.operation where shard = 20 and saga = '%s' order by key",
            id_text(id)),
        "1|completed\n2|unknown\n3|in_flight\n4|pending\n");
    assert_non_null(strstr(
        host_text(&host, "explain select * from sagad.log_entry where shard = sagad.shard_of('%s') and saga = '%s'",
                  id_text(id), id_text(id)),
        "log_pk"));
}

/* --- plans --- */

/* Explains a statement with the plan that a connection of the store would use, whatever the parameters are. */
static char *explain(const struct db_statement *statement)
{
    char sql[16000];
    int parameters = 0, len = 0;

    for (const char *at = statement->sql; (at = strchr(at, '$')) != NULL; at++) {
        int number = atoi(at + 1);

        parameters = number > parameters ? number : parameters;
    }
    for (size_t i = 0; store_setup[i]; i++) {
        if (strncmp(store_setup[i], "set ", 4) == 0) {
            len += snprintf(sql + len, sizeof(sql) - (size_t)len, "%s; ", store_setup[i]);
        }
    }
    len += snprintf(sql + len, sizeof(sql) - (size_t)len, "prepare p as %s; explain execute p", statement->sql);
    for (int i = 0; i < parameters; i++) {
        len += snprintf(sql + len, sizeof(sql) - (size_t)len, "%snull%s", i == 0 ? " (" : ", ",
                        i + 1 == parameters ? ")" : "");
    }
    assert_true((size_t)len < sizeof(sql));
    return host_text(&host, "%s", sql);
}

/* Does this line of the plan read a whole table or a whole index? The 64 rows of table shard may be read, and the few
 * of table engine. */
static bool reads_all(const char *line, const char *next)
{
    bool is_small =
        strstr(line, " on shard ") || strstr(line, " on engine ") ||
        strstr(line, " using hold_in_force "); /* there are only as many holds as people make, and all are wanted */

    return strstr(line, "Hash Join") || strstr(line, "Merge Join") || (strstr(line, "Seq Scan") && !is_small) ||
           (strstr(line, "Index ") && strstr(line, "Scan ") && !is_small && !strstr(next, "Index Cond"));
}

TEST(statements_of_every_turn_go_by_the_index)
{
    for (size_t i = 0; sql_hot[i]; i++) {
        char *line, *next;

        for (line = explain(sql_hot[i]); (next = strchr(line, '\n')) != NULL; line = next + 1) {
            char two[2000];

            *next = '\0';
            (void)snprintf(two, sizeof(two), "%.*s", (int)strcspn(next + 1, "\n"), next + 1);
            if (reads_all(line, two)) {
                fail_msg("%s: %s", sql_hot[i]->name, line);
            }
        }
    }
}

/* --- */

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
    host_store_close(&host, store);
    host_stop(&host);
    return 0;
}

TEST_PROGRAM(setup, teardown)
