/* Payloads lie sealed in PostgreSQL, come back as they were beside plain ones, open only in their own rows, and need
 * their keys. */
#include <stdio.h>
#include <string.h>

#include "io/postgres/db.h"
#include "store/bulk.h"
#include "store/seal/payload_keys.h"
#include "store/seal/rekey.h"
#include "store/store_state.h"
#include "tests/integration/store_host.h"
#include "tests/lib/test.h"

static struct host host;
static struct store *store; /* without keys */
static struct arena arena;

static void quiet(const char *line)
{
    (void)line;
}

/* --- the log --- */

static const char sealed_turn[] = "[{\"type\":\"step.intent\",\"step\":\"pay\","
                                  "\"key\":\"0b0b0b0b-0b0b-8b0b-8b0b-0b0b0b0b0b0b\","
                                  "\"data\":{\"args\":{\"card\":\"canary\"}}}]";

/* A saga of two turns in shard 51: a plain one, as a sagad without keys has written it, and one of this store. */
static struct saga_id write_mixed(struct store *with)
{
    struct turn turn = {0};
    struct saga_id id = host_saga(51);

    turn_start(&turn, id, 0, NULL);
    host_append(&host, store, &turn);
    turn_next(&turn, id, 0, 2, "step.intent");
    turn.append.payload = slice_of(sealed_turn);
    turn.append.rest = SLICE("\x01 canary");
    host_append(&host, with, &turn);
    assert_int_equal(turn.append.code, ERR_OK);
    return id;
}

static void reads_whole(struct store *with, struct saga_id id)
{
    struct read_saga read = {.id = id, .namespace = SLICE("default")};

    assert_int_equal(HOST_ASK(&host, with, &arena, store_read_saga, &read), ERR_OK);
    assert_int_equal(read.turn_count, 2);
    assert_true(slice_is(read.turns[0].payload, "[{\"type\": \"saga.started\"}]"));
    assert_true(slice_is(read.turns[1].payload, sealed_turn));
    assert_null(read.turns[1].fault);
    assert_true(slice_is(read.turns[1].rest, "\x01 canary"));
}

static bool was_refused(void *context)
{
    return ((struct host *)context)->refused_count > 0;
}

static void is_refused_with(const char *keys_text, const char *why)
{
    struct payload_keys *keys = keys_text ? host_payload_keys(keys_text) : NULL;
    struct store_options options = {.payload_keys = keys};
    struct store *other = host_store_begin(&host, &options);

    host_run_until(&host, was_refused, &host);
    assert_false(store_is_ready(other));
    if (!strstr(host.err.message, why)) {
        fail_msg("%s", host.err.message);
    }
    host_store_close(&host, other);
    payload_keys_free(keys);
}

TEST(payloads_lie_sealed_in_the_log_and_come_back_beside_plain_ones)
{
    struct payload_keys *keys = host_payload_keys("{\"active\": \"k1\", \"keys\": {" HOST_KEY_1 "}}");
    struct payload_keys *newer = host_payload_keys("{\"active\": \"k2\", \"keys\": {" HOST_KEY_1 "," HOST_KEY_2 "}}");
    struct store *sealing = host_store(&host, &(struct store_options){.payload_keys = keys});
    struct saga_id id = write_mixed(sealing), other = write_mixed(sealing);
    struct read_saga read = {.id = other, .namespace = SLICE("default")};

    reads_whole(sealing, id);
    assert_int_equal(host_number(&host,
                                 "select count(*) from sagad.log l where position('canary'::bytea in payload) > 0"
                                 " or position('canary'::bytea in rest) > 0"),
                     0);
    assert_int_equal(host_number(&host,
                                 "select count(*) from sagad.log_entry where saga = '%s' and step = 'pay' and"
                                 " key is not null and data ? '~args'",
                                 id_text(id)),
                     1);
    /* A row that was copied from another saga does not open, and says so instead of its records. */
    host_sql(&host,
             "update sagad.log l set payload = o.payload from sagad.log o where l.saga = '%s' and o.saga = '%s'"
             " and l.seq = 2 and o.seq = 2",
             id_text(other), id_text(id));
    assert_int_equal(HOST_ASK(&host, sealing, &arena, store_read_saga, &read), ERR_OK);
    assert_non_null(read.turns[1].fault);
    assert_non_null(strstr(read.turns[1].fault, "belongs to another row"));
    assert_true(slice_is(read.turns[1].payload, "[null]"));
    assert_true(store_is_ready(sealing)); /* one bad row does not stop the others */
    host_store_close(&host, sealing);

    sealing = host_store(&host, &(struct store_options){.payload_keys = newer});
    reads_whole(sealing, id);
    assert_int_equal(host_number(&host, "select count(*) from sagad.payload_key"), 2);
    host_store_close(&host, sealing);
    payload_keys_free(keys);
    payload_keys_free(newer);
}

TEST(a_database_with_sealed_rows_needs_its_keys)
{
    is_refused_with(NULL, "sealed under the key k1");
    is_refused_with("{\"active\": \"k2\", \"keys\": {" HOST_KEY_2 "}}", "sealed under the key k1");
    is_refused_with("{\"active\": \"k1\", \"keys\": {" HOST_KEY_1_OTHER "," HOST_KEY_2 "}}", "another one");
    /* A file without the old key does not make its new key one that the database needs. */
    is_refused_with("{\"active\": \"k9\", \"keys\": {\"k9\": \"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\"}}",
                    "sealed under the key k1");
    assert_int_equal(host_number(&host, "select count(*) from sagad.payload_key"), 2);
    host_sql(&host, "delete from sagad.payload_key");
}

static void on_saga(struct shard_load *load, struct saga_id id, struct slice namespace, const struct stored_turn *turns,
                    size_t count)
{
    (void)load;
    (void)id;
    (void)namespace;
    assert_true(count == 2 && turns[1].fault);
}

static void on_loaded(struct shard_load *load)
{
    *(bool *)load->context = true;
}

/* The database did not say that it needs the key, but a row does. */
TEST(a_sealed_row_without_its_key_stops_the_engine)
{
    struct store *other = host_store(&host, NULL);
    bool is_loaded = false;
    struct shard_load load = {.shard = 51, .on_saga = on_saga, .done = on_loaded, .context = &is_loaded};

    store_load_shard(other, &load);
    host_run_until(&host, host_is_set, &is_loaded);
    assert_int_equal(load.code, ERR_STORE); /* nobody is to give up what another engine can read */
    assert_int_equal(host.refused_count, 1);
    assert_non_null(strstr(host.err.message, "sealed under the key k1"));
    host_store_close(&host, other);
    host_sql(&host, "delete from sagad.log where shard = 51; delete from sagad.saga where shard = 51");
}

/* A store is ready with two connections. The others come later, and by then there may be a key that it does not have. A
 * lock on the row of shard 3 holds up the check of the connection with that number. */
TEST(an_engine_without_keys_stops_when_a_later_connection_finds_one)
{
    struct payload_keys *keys = host_payload_keys("{\"active\": \"k1\", \"keys\": {" HOST_KEY_1 "}}");
    struct err err = {.code = ERR_OK};
    struct db_session *session = NULL;
    struct store *other, *sealing;

    assert_int_equal(db_session_open(cluster_dsn(&host.cluster), "test", &session, &err), ERR_OK);
    assert_int_equal(
        db_session_run(session, "begin; select 1 from sagad.shard s where s.shard = 3 for update", NULL, NULL, &err),
        ERR_OK);
    other = host_store(&host, NULL);
    sealing = host_store(&host, &(struct store_options){.payload_keys = keys});
    assert_true(store_is_ready(other) && !store_is_whole(other));
    db_session_close(session);
    host_run_until(&host, was_refused, &host);
    assert_non_null(strstr(host.err.message, "sealed under the key k1"));
    assert_false(store_is_ready(other));
    assert_true(store_is_ready(sealing));
    host_store_close(&host, other);
    host_store_close(&host, sealing);
    payload_keys_free(keys);
    host_sql(&host, "delete from sagad.payload_key");
}

/* --- the input of a start --- */

/* A start with this input under the business id "order-1". */
static enum err_code start_again(struct store *with, const char *input, bool *is_same)
{
    struct turn turn = {0};
    enum err_code code;

    turn_start(&turn, host_saga(7), 0, "order-1");
    turn.start.input_digest = digest_sha256(slice_of(input));
    host_append(&host, with, &turn);
    code = turn.append.code;
    *is_same = turn.append.existing_same_input;
    return code;
}

static void knows_its_start(struct store *with)
{
    struct digest input = digest_sha256(SLICE("4711")), other = digest_sha256(SLICE("4712"));
    struct find_saga find = {.business_digest = turn_business_digest("order-1"), .shard = 7, .input = &input};
    bool is_same = false;

    assert_int_equal(start_again(with, "4711", &is_same), ERR_CONFLICT);
    assert_true(is_same);
    assert_int_equal(start_again(with, "4712", &is_same), ERR_CONFLICT);
    assert_false(is_same);
    assert_int_equal(HOST_ASK(&host, with, &arena, store_find_saga, &find), ERR_OK);
    assert_true(find.has_input);
    find.input = &other;
    assert_int_equal(HOST_ASK(&host, with, &arena, store_find_saga, &find), ERR_OK);
    assert_false(find.has_input);
}

/* An input of few possible values could be tried out against its digest. */
TEST(the_digest_of_an_input_lies_sealed_and_a_repeated_start_is_known_under_every_key)
{
    struct payload_keys *keys = host_payload_keys("{\"active\": \"k1\", \"keys\": {" HOST_KEY_1 "}}");
    struct payload_keys *newer = host_payload_keys("{\"active\": \"k2\", \"keys\": {" HOST_KEY_1 "," HOST_KEY_2 "}}");
    struct payload_keys *newest = host_payload_keys("{\"active\": \"k2\", \"keys\": {" HOST_KEY_2 "}}");
    struct store *sealing = host_store(&host, &(struct store_options){.payload_keys = keys});
    const char *plain = "select count(*) from sagad.saga where input_digest = sha256('4711')";
    struct err err = {.code = ERR_OK};
    bool is_same;

    assert_int_equal(start_again(store, "4711", &is_same), ERR_OK); /* by an engine without keys */
    assert_int_equal(host_number(&host, "%s", plain), 1);
    knows_its_start(sealing);
    host_sql(&host, "delete from sagad.log; delete from sagad.saga");

    assert_int_equal(start_again(sealing, "4711", &is_same), ERR_OK);
    assert_int_equal(host_number(&host, "%s", plain), 0);
    knows_its_start(sealing);
    host_store_close(&host, sealing);

    sealing = host_store(&host, &(struct store_options){.payload_keys = newer});
    knows_its_start(sealing);
    assert_int_equal(rekey(cluster_dsn(&host.cluster), newer, quiet, &err), ERR_OK);
    assert_int_equal(
        host_number(&host, "select count(*) from sagad.saga where position('~k2.'::bytea in input_digest) = 1"), 1);
    knows_its_start(sealing);
    host_store_close(&host, sealing);
    host_sql(&host, "delete from sagad.payload_key where name = 'k1'");

    sealing = host_store(&host, &(struct store_options){.payload_keys = newest}); /* the old key is gone */
    knows_its_start(sealing);
    host_store_close(&host, sealing);
    payload_keys_free(keys);
    payload_keys_free(newer);
    payload_keys_free(newest);
    host_sql(&host, "delete from sagad.payload_key; delete from sagad.log; delete from sagad.saga");
}

/* --- between engines --- */

struct arrived {
    struct inbox_row row;
    int count;
};

static void on_rows(const struct inbox_row *rows, size_t count, void *context)
{
    struct arrived *arrived = context;

    for (size_t i = 0; i < count; i++) {
        arrived->row = rows[i];
        arrived->row.payload = arena_slice(&arena, rows[i].payload);
        arrived->count++;
    }
}

struct putting {
    struct inbox_put put;
    bool is_done;
};

static void on_put(struct inbox_put *put)
{
    container_of(put, struct putting, put)->is_done = true;
}

static struct uuid put_input(struct store *with, struct saga_id saga)
{
    struct putting putting = {
        .put = {.row = {.shard = 7, .saga = saga, .kind = SLICE("start"), .payload = SLICE("{\"input\":\"canary\"}")},
                .done = on_put}};

    store_inbox_put(with, &putting.put);
    host_run_until(&host, host_is_set, &putting.is_done);
    assert_int_equal(putting.put.code, ERR_OK);
    return putting.put.row.id;
}

static bool has_arrived(void *context)
{
    return ((struct arrived *)context)->count > 0;
}

TEST(an_input_lies_sealed_in_the_inbox_and_is_taken_as_what_it_was_put_for_only)
{
    struct payload_keys *keys = host_payload_keys("{\"active\": \"k1\", \"keys\": {" HOST_KEY_1 "}}");
    struct payload_keys *reading = host_payload_keys("{\"active\": null, \"keys\": {" HOST_KEY_1 "}}");
    struct store *sealing = host_store(&host, &(struct store_options){.payload_keys = keys});
    struct store *owner = host_store(&host, &(struct store_options){.payload_keys = reading});
    struct saga_id saga = host_saga(7);
    struct uuid bent = put_input(sealing, host_saga(7)), good;
    struct arrived arrived = {.count = 0};
    char id[UUID_TEXT_BYTES];

    host_sql(&host, "update sagad.inbox set kind = 'abort'");
    good = put_input(sealing, saga);
    assert_int_equal(
        host_number(&host, "select count(*) from sagad.inbox where position('canary'::bytea in payload) > 0"), 0);
    store_inbox_watch(owner, UINT64_C(1) << 7, on_rows, &arrived);
    host_run_until(&host, has_arrived, &arrived);
    assert_int_equal(arrived.count, 1);
    assert_true(uuid_equal(&arrived.row.id, &good));
    assert_true(uuid_equal(&arrived.row.saga.uuid, &saga.uuid));
    assert_true(slice_is(arrived.row.payload, "{\"input\":\"canary\"}"));
    uuid_text(&bent, id);
    assert_int_equal(host_number(&host, "select count(*) from sagad.inbox where id = '%s'", id), 1); /* not lost */
    arrived.count = 0;
    (void)put_input(store, saga); /* of an engine without keys */
    host_run_until(&host, has_arrived, &arrived);
    assert_true(slice_is(arrived.row.payload, "{\"input\":\"canary\"}"));
    store_inbox_watch(owner, 0, on_rows, &arrived);
    host_store_close(&host, sealing);
    host_store_close(&host, owner);
    payload_keys_free(keys);
    payload_keys_free(reading);
    host_sql(&host, "delete from sagad.inbox");
}

struct asked {
    struct answer_wait wait;
    struct slice body;
    int count;
};

static void on_answer(struct answer_wait *wait, struct slice body)
{
    struct asked *asked = container_of(wait, struct asked, wait);

    asked->body = arena_slice(&arena, body);
    asked->count++;
}

static bool is_answered(void *context)
{
    return ((struct asked *)context)->count > 0;
}

static struct slice taken_answer(struct store *from, struct store *to, const char *bend)
{
    struct asked asked = {.wait = {.shard = 7, .input = uuid_v7(1), .on_answer = on_answer}};
    struct answer_put put = {.shard = 7, .input = asked.wait.input, .body = SLICE("{\"result\":\"canary\"}")};

    store_answer_put(from, &put);
    host_until_number(&host, 1, "select count(*) from sagad.answer");
    assert_int_equal(
        host_number(&host, "select count(*) from sagad.answer where position('canary'::bytea in body) > 0"), 0);
    host_sql(&host, "%s", bend);
    store_answer_wait(to, &asked.wait);
    if (bend[0]) {
        host_until_number(&host, 0, "select count(*) from sagad.answer");
        host_run_ms(&host, 50);
        store_answer_stop(to, &asked.wait);
    } else {
        host_run_until(&host, is_answered, &asked);
    }
    return asked.body;
}

TEST(an_answer_lies_sealed_until_it_is_taken_and_one_that_was_changed_is_none)
{
    struct payload_keys *keys = host_payload_keys("{\"active\": \"k1\", \"keys\": {" HOST_KEY_1 "}}");
    struct store *owner = host_store(&host, &(struct store_options){.payload_keys = keys});
    struct store *taker = host_store(&host, &(struct store_options){.payload_keys = keys});

    assert_true(slice_is(taken_answer(owner, taker, ""), "{\"result\":\"canary\"}"));
    assert_null(
        taken_answer(owner, taker, "update sagad.answer set body = set_byte(body, 20, 255 - get_byte(body, 20))").ptr);
    host_store_close(&host, owner);
    host_store_close(&host, taker);
    payload_keys_free(keys);
}

/* --- bulk jobs and schedules --- */

TEST(bulk_jobs_and_their_items_lie_sealed)
{
    struct payload_keys *keys = host_payload_keys("{\"active\": \"k1\", \"keys\": {" HOST_KEY_1 "}}");
    struct store *sealing = host_store(&host, &(struct store_options){.payload_keys = keys});
    const struct slice items[] = {SLICE("{\"change\":\"canary-1\"}"), SLICE("{\"change\":\"canary-2\"}")};
    struct saga_id id = host_saga(8);
    struct bulk_begin begin = {.id = id,
                               .namespace = SLICE("default"),
                               .body = SLICE("{\"result\":\"canary\"}"),
                               .actor = SLICE("ada"),
                               .expires_ms = INT64_C(4000000000000),
                               .max = 10};
    struct bulk_add add = {.id = id, .bodies = items, .count = 2, .look_ms = 1};
    struct bulk_freeze freeze = {.id = id, .body = SLICE("{\"result\":\"canary\",\"found\":2}"), .count = 2};
    struct bulk_items read = {.id = id, .limit = 10};
    struct bulk_list list = {.id = id, .namespace = SLICE("default"), .limit = 1};

    assert_int_equal(HOST_ASK(&host, sealing, &arena, store_bulk_begin, &begin), ERR_OK);
    assert_int_equal(HOST_ASK(&host, sealing, &arena, store_bulk_add, &add), ERR_OK);
    assert_int_equal(HOST_ASK(&host, sealing, &arena, store_bulk_freeze, &freeze), ERR_OK);
    assert_int_equal(host_number(&host,
                                 "select (select count(*) from sagad.bulk where position('canary'::bytea in body) > 0)"
                                 " + (select count(*) from sagad.bulk_item where"
                                 " position('canary'::bytea in body) > 0)"),
                     0);
    assert_int_equal(HOST_ASK(&host, sealing, &arena, store_bulk_list, &list), ERR_OK);
    assert_true(slice_equal(list.rows[0].body, freeze.body));
    assert_int_equal(HOST_ASK(&host, sealing, &arena, store_bulk_items, &read), ERR_OK);
    assert_true(read.count == 2 && slice_equal(read.rows[1].body, items[1]));
    host_sql(&host, "update sagad.bulk_item i set body = o.body from sagad.bulk_item o where i.n = 1 and o.n = 2");
    assert_int_equal(HOST_ASK(&host, sealing, &arena, store_bulk_items, &read), ERR_OK);
    assert_null(read.rows[0].body.ptr); /* an item in place of another one is none */
    host_store_close(&host, sealing);
    payload_keys_free(keys);
    host_sql(&host, "delete from sagad.bulk_item; delete from sagad.bulk");
}

static enum schedule_put_outcome put_schedule(struct store *with, const char *body)
{
    struct schedule_put put = {.shard = 9,
                               .namespace = SLICE("default"),
                               .name = SLICE("nightly"),
                               .id = uuid_v7(1),
                               .body = slice_of(body),
                               .actor = SLICE("ada"),
                               .max = 10};

    assert_int_equal(HOST_ASK(&host, with, &arena, store_schedule_put, &put), ERR_OK);
    return put.outcome;
}

TEST(a_schedule_lies_sealed_and_the_same_again_is_the_same)
{
    struct payload_keys *keys = host_payload_keys("{\"active\": \"k1\", \"keys\": {" HOST_KEY_1 "}}");
    struct store *sealing = host_store(&host, &(struct store_options){.payload_keys = keys});
    struct schedule_list list = {.namespace = SLICE("default"), .name = SLICE("nightly"), .limit = 1};

    assert_int_equal(put_schedule(sealing, "{\"input\":\"canary\"}"), SCHEDULE_MADE);
    assert_int_equal(put_schedule(sealing, "{\"input\":\"canary\"}"), SCHEDULE_SAME);
    assert_int_equal(put_schedule(sealing, "{\"input\":\"other\"}"), SCHEDULE_OTHER);
    assert_int_equal(
        host_number(&host, "select count(*) from sagad.schedule where position('canary'::bytea in body) > 0"), 0);
    assert_int_equal(HOST_ASK(&host, sealing, &arena, store_schedule_list, &list), ERR_OK);
    assert_true(slice_is(list.rows[0].body, "{\"input\":\"canary\"}"));
    host_sql(&host, "delete from sagad.schedule");
    assert_int_equal(put_schedule(store, "{\"input\":\"canary\"}"), SCHEDULE_MADE); /* by an engine without keys */
    assert_int_equal(put_schedule(sealing, "{\"input\":\"canary\"}"), SCHEDULE_SAME);
    host_store_close(&host, sealing);
    payload_keys_free(keys);
    host_sql(&host, "delete from sagad.schedule");
}

/* --- rekey --- */

static long under(const char *key)
{
    return host_number(&host, "select count(*) from sagad.log where position('\"%s.'::bytea in payload) > 0", key);
}

/* Rows under the old key, plain ones, and a page that fails in the middle of the walk: the next run goes on. */
TEST(rekeying_goes_on_where_it_was_stopped_and_leaves_nothing_under_the_old_key)
{
    struct payload_keys *keys = host_payload_keys("{\"active\": \"k1\", \"keys\": {" HOST_KEY_1 "}}");
    struct payload_keys *newer = host_payload_keys("{\"active\": \"k2\", \"keys\": {" HOST_KEY_1 "," HOST_KEY_2 "}}");
    struct payload_keys *newest = host_payload_keys("{\"active\": \"k2\", \"keys\": {" HOST_KEY_2 "}}");
    struct store *sealing = host_store(&host, &(struct store_options){.payload_keys = keys});
    struct saga_id id = write_mixed(sealing);
    struct payload_keys *newer_again;
    struct err err = {.code = ERR_OK};

    (void)put_input(sealing, host_saga(7));
    assert_int_equal(put_schedule(sealing, "{\"input\":\"canary\"}"), SCHEDULE_MADE);
    host_store_close(&host, sealing);
    host_sql(&host,
             "insert into sagad.log (shard, saga, seq, records, at, epoch, payload)"
             " select 52, '%s', n, 1, now(), 0, '[{\"type\":\"step.intent\",\"data\":{\"args\":\"canary\"}}]' from"
             " generate_series(1, 250) n; alter table sagad.log add constraint not_now check (shard <> 52 or seq <> 150"
             " or position('canary'::bytea in payload) > 0)",
             id_text(id));
    host_sql(
        &host,
        "insert into sagad.escalation (shard, number, saga, namespace, opened_at, reason, body) values (52, 116, '%s',"
        " 'default', now(), 'unknown', '{\"n\":116,\"evidence\":{\"tool\":\"pay\",\"detail\":\"canary\"}}')",
        id_text(id));
    assert_int_not_equal(rekey(cluster_dsn(&host.cluster), newer, quiet, &err), ERR_OK);
    assert_int_equal(under("k2"),
                     99); /* one page: two turns of the one saga, one without a payload, and 98 of the other */
    host_sql(&host, "alter table sagad.log drop constraint not_now");
    err = (struct err){.code = ERR_OK};
    assert_int_equal(rekey(cluster_dsn(&host.cluster), newer, quiet, &err), ERR_OK);
    assert_int_equal(under("k2"), 251);
    assert_int_equal(under("k1"), 0);
    assert_int_equal(host_number(&host,
                                 "select count(*) from sagad.log where position('canary'::bytea in payload) > 0 or"
                                 " position('~k1'::bytea in rest) > 0"),
                     0);
    assert_int_equal(
        host_number(&host, "select (select count(*) from sagad.inbox where position('~k2.'::bytea in payload) = 1)"
                           " + (select count(*) from sagad.schedule where position('~k2.'::bytea in body) = 1)"),
        2);
    assert_int_equal(host_number(&host,
                                 "select count(*) from sagad.escalation where tool = 'pay' and"
                                 " position('canary'::bytea in body) = 0 and position('\"k2.'::bytea in body) > 0"),
                     1);
    /* Nothing needs the old key any more. */
    host_sql(&host, "delete from sagad.payload_key where name = 'k1'");
    sealing = host_store(&host, &(struct store_options){.payload_keys = newest});
    reads_whole(sealing, id);
    assert_int_equal(put_schedule(sealing, "{\"input\":\"canary\"}"), SCHEDULE_SAME);
    host_store_close(&host, sealing);

    /* A row that does not open, and one in which nobody finds the payloads, stay as they are, and are told. */
    host_sql(&host, "update sagad.escalation set body = '{\"evidence\":{\"args\"'");
    host_sql(&host, "update sagad.log set payload = (select payload from sagad.log where shard = 52 and seq = 1)"
                    " where shard = 52 and seq = 2");
    newer_again = host_payload_keys("{\"active\": \"k1\", \"keys\": {" HOST_KEY_1 "," HOST_KEY_2 "}}");
    assert_int_equal(rekey(cluster_dsn(&host.cluster), newer_again, quiet, &err), ERR_CORRUPT);
    assert_int_equal(under("k2"), 1);
    assert_int_equal(host_number(&host, "select count(*) from sagad.escalation where length(body) = 19"), 1);
    assert_non_null(strstr(err.message, "2 rows do not open"));
    payload_keys_free(newer_again);
    assert_int_equal(rekey(cluster_dsn(&host.cluster), keys, quiet, &err), ERR_CONFIG); /* k2 is missing */
    payload_keys_free(keys);
    payload_keys_free(newer);
    payload_keys_free(newest);
    host_sql(&host,
             "delete from sagad.log; delete from sagad.saga; delete from sagad.inbox; delete from sagad.schedule;"
             " delete from sagad.payload_key; delete from sagad.escalation");
}

HOST_PROGRAM(NULL)
