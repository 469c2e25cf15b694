/*
 * What a newer program, a hand in the tables or a broken disk leaves behind: a log that cannot be read, an input that
 * nobody understands, a definition that does not compile. Clients are told so, nothing is done because of it, and
 * everything else goes on. What becomes readable again goes on where it was.
 */
#include "tests/integration/engine_rig.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/metric.h"
#include "io/process/jq.h"
#include "tests/lib/test.h"

static const char document[] = "{\"sagas\":["
                               "{\"name\":\"listens\",\"steps\":[{\"id\":\"paid\",\"signal\":{\"name\":\"paid\"}},{"
                               "\"id\":\"b\",\"call\":\"greet\",\"with\":{}}]},"
                               "{\"name\":\"stuck\",\"steps\":[{\"id\":\"lost\",\"call\":\"lose\",\"with\":{}}]},"
                               "{\"name\":\"asks\",\"steps\":[{\"id\":\"ok\",\"approve\":{\"show\":{\"sum\":1}}}]},"
                               "{\"name\":\"strict\",\"input\":{\"type\":\"object\",\"required\":[\"n\"]},\"steps\":[{"
                               "\"id\":\"b\",\"call\":\"greet\",\"with\":{}}]}"
                               "]}";

static const char *const ways[] = {
    /* The payload is no record. */
    "update sagad.log set payload = '[7]' where saga = '%s' and seq = (select max(seq) from sagad.log where saga = "
    "'%s')",
    /* The record has an unknown kind. */
    "update sagad.log set payload = '[{\"type\":\"saga.sung\",\"data\":{}}]' where saga = '%s'"
    " and seq = (select max(seq) from sagad.log where saga = '%s')",
    /* The record cannot come at this place. */
    "insert into sagad.log select shard, saga, (select max(seq + records) from sagad.log where saga = '%s'), records, "
    "at, epoch,"
    " payload from sagad.log where saga = '%s' and seq = 1",
    /* The log has no beginning. */
    "update sagad.log set seq = seq + 100 where saga = '%s' and saga = '%s' and seq = 1",
    /* The definition that began the saga is missing. */
    "update sagad.log set payload = convert_to(replace(convert_from(payload, 'UTF8'), '\"version\":1', "
    "'\"version\":77'), 'UTF8')"
    " where saga = '%s' and saga = '%s' and seq = 1",
};

static void begin_and_wait(struct ask *ask, void (*verb)(struct engine *engine, struct engine_request *request))
{
    verb(engine, &ask->request);
    ask_wait(ask);
}

static void keep_log(void)
{
    host_sql(&host, "drop table if exists kept; create table kept as select * from sagad.log");
}

static void mend(void)
{
    host_sql(&host,
             "delete from sagad.log l using kept k where l.saga = k.saga; insert into sagad.log select * from kept");
}

static void spoil(struct saga_id id, size_t way)
{
    char sql[512];

    (void)snprintf(sql, sizeof(sql), ways[way], id_text(id), id_text(id));
    host_sql(&host, "%s", sql);
}

/* --- who asks --- */

static void get(struct ask *ask, struct saga_id id)
{
    ask->request.in.get.id = id;
    begin_and_wait(ask, engine_get_saga);
}

static void get_log(struct ask *ask, struct saga_id id)
{
    ask->request.in.log.id = id;
    begin_and_wait(ask, engine_get_log);
}

static void signal_it(struct ask *ask, struct saga_id id)
{
    ask->request.in.change.verb = VERB_SIGNAL;
    ask->request.in.change.saga = id;
    ask->request.in.change.input.signal.name = SLICE("paid");
    begin_and_wait(ask, engine_change);
}

static void abort_it(struct ask *ask, struct saga_id id)
{
    ask->request.in.change.verb = VERB_ABORT;
    ask->request.in.change.saga = id;
    begin_and_wait(ask, engine_change);
}

static void pause_it(struct ask *ask, struct saga_id id)
{
    ask->request.in.change.verb = VERB_PAUSE;
    ask->request.in.change.saga = id;
    begin_and_wait(ask, engine_change);
}

static void resume_it(struct ask *ask, struct saga_id id)
{
    ask->request.in.change.verb = VERB_RESUME;
    ask->request.in.change.saga = id;
    begin_and_wait(ask, engine_change);
}

static void complete_it(struct ask *ask, struct saga_id id)
{
    ask->request.in.change.verb = VERB_COMPLETE;
    ask->request.in.change.saga = id;
    begin_and_wait(ask, engine_change);
}

static void call_it(struct ask *ask, struct saga_id id)
{
    ask->request.in.call.saga = id;
    ask->request.in.call.tool = SLICE("greet");
    begin_and_wait(ask, engine_call);
}

static void list_its_operations(struct ask *ask, struct saga_id id)
{
    ask->request.in.operations.run = slice_of(id_text(id));
    begin_and_wait(ask, engine_list_operations);
}

static void (*const doors[])(struct ask *ask, struct saga_id id) = {
    get, signal_it, abort_it, pause_it, resume_it, complete_it, call_it, list_its_operations};

static void assert_corrupt(void (*verb)(struct ask *ask, struct saga_id id), struct saga_id id)
{
    struct ask ask;

    ask_begin(&ask);
    verb(&ask, id);
    ask_ends(&ask, ERR_CORRUPT);
}

TEST(a_saga_that_cannot_be_read_is_said_to_be_so_whatever_is_wanted_of_it)
{
    struct saga_id id = start_saga("listens", "{\"n\":1}");

    rig_until_memory_is_empty();
    keep_log();
    for (size_t way = 0; way < COUNT_OF(ways); way++) {
        spoil(id, way);
        for (size_t i = 0; i < COUNT_OF(doors); i++) {
            assert_corrupt(doors[i], id);
        }
        if (way == 0) {
            assert_corrupt(get_log, id);
        }
        mend();
    }
    struct ask ask;

    ask_begin(&ask);
    signal_it(&ask, id); /* nothing of the saga is lost */
    ask_ends(&ask, ERR_OK);
}

TEST(a_list_shows_the_others)
{
    struct saga_id bad = start_saga("listens", "{\"n\":1}"), good = start_saga("listens", "{\"n\":1}");
    struct ask ask;

    rig_until_memory_is_empty();
    keep_log();
    spoil(bad, 0);
    ask_engine(&ask, engine_list_sagas, .sagas = {.step = SLICE("paid")});
    ask_expect(&ask, ERR_OK);
    assert_non_null(strstr(arena_text(&ask.arena, ask.request.answer), id_text(good)));
    assert_null(strstr(arena_text(&ask.arena, ask.request.answer), id_text(bad)));
    ask_end(&ask);
    ask_engine(&ask, engine_list_operations);
    ask_ends(&ask, ERR_OK);
    mend();
}

TEST(a_persons_decision_about_an_unreadable_saga_waits)
{
    struct saga_id stuck = start_saga("stuck", "{\"n\":1}"), asks = start_saga("asks", "{\"n\":1}");
    struct ask ask;

    rig_until_memory_is_empty();
    keep_log();
    spoil(stuck, 0);
    spoil(asks, 0);
    for (int happened = 0; happened < 2; happened++) {
        ask_engine(
            &ask, engine_change,
            .change = {
                .verb = VERB_RESOLVE,
                .input.verdict = {
                    .escalation = (uint64_t)host_number(
                        &host, "select max(number) from sagad.escalation where saga = '%s' and reason = 'unknown'",
                        id_text(stuck)),
                    .action = OPERATOR_RESOLVE,
                    .happened = happened,
                    .note = SLICE("seen in the books")}});
        ask_ends(&ask, ERR_CORRUPT);
    }
    ask_engine(&ask, engine_change,
               .change = {.verb = VERB_DECIDE,
                          .input.decision = {
                              .approval = (uint64_t)host_number(
                                  &host, "select max(number) from sagad.approval where saga = '%s'", id_text(asks)),
                              .approve = true,
                              .role = ROLE_ADMIN}});
    ask_ends(&ask, ERR_CORRUPT);
    mend();
    assert_int_equal(host_number(&host, "select count(*) from sagad.escalation where resolved_at is null and reason "
                                        "not in ('unreadable', 'follower')"),
                     1);
}

TEST(an_operation_of_it_is_not_shown_and_not_signed_for)
{
    struct saga_id id = open_saga("signed", 60000);
    struct op_key key;
    struct ask ask;

    call_in(&ask, id, "greet", "greet", "{}", 20000);
    ask_expect(&ask, ERR_OK);
    assert_true(uuid_parse(ask.request.call.key, &key.uuid));
    ask_end(&ask);
    rig_until_memory_is_empty();
    keep_log();
    spoil(id, 0);
    ask_engine(&ask, engine_get_operation, .operation = {.key = key});
    ask_ends(&ask, ERR_CORRUPT);
    ask_engine(&ask, engine_change,
               .change = {.verb = VERB_BYPASS, .input.bypass = {.key = key, .note = SLICE("again")}});
    ask_ends(&ask, ERR_CORRUPT);
    mend();
    ask_begin(&ask);
    abort_it(&ask, id);
    ask_ends(&ask, ERR_OK);
}

/* --- timers and takeovers --- */

TEST(its_time_comes_and_a_shard_is_taken_over_without_it)
{
    struct saga_id parked = start_saga("listens", "{\"n\":1}"), awake;
    struct ask ask;

    rig_until_memory_is_empty();
    awake = start_saga("listens", "{\"n\":1}");
    keep_log();
    host_sql(&host, "update sagad.due set at = now() - interval '1 s' where saga = '%s'", id_text(parked));
    spoil(parked, 0);
    spoil(awake, 0);
    host_sql(&host, "delete from sagad.due where saga = '%s'", id_text(awake));
    rig_take_shards_away();
    host_run_ms(&host, 2500);
    assert_corrupt(get, parked);
    assert_corrupt(get, awake);
    mend();
    rig_take_shards_away();
    for (int i = 0; i < 2; i++) {
        ask_begin(&ask);
        signal_it(&ask, i ? awake : parked);
        ask_ends(&ask, ERR_OK);
    }
}

/* --- the inbox --- */

static long inputs(void)
{
    return host_number(&host, "select count(*) from sagad.inbox");
}

static void send_input(struct saga_id id, const char *kind, const char *payload)
{
    uint32_t shard = saga_id_shard(id);
    struct uuid input = uuid_v7(loop_wall_ms(host.loop));
    char text[UUID_TEXT_BYTES];

    uuid_text(&input, text);
    host_sql(&host,
             "insert into sagad.inbox (shard, id, saga, kind, payload) values (%u, '%s', '%s', '%s', convert_to('%s', "
             "'UTF8'))",
             shard, text, id_text(id), kind, payload);
    host_sql(&host, "select pg_notify('sagad_inbox', '%u')", shard);
}

struct empty {
    int64_t looked_ms;
    bool so;
};

/* Called in every turn of the loop; asks the database. */
static bool no_inputs(void *context)
{
    struct empty *empty = context;

    if (!empty->so && loop_boot_ms(host.loop) - empty->looked_ms >= 50) {
        empty->looked_ms = loop_boot_ms(host.loop);
        empty->so = inputs() == 0;
    }
    return empty->so;
}

static void wait_until_no_inputs(void)
{
    struct empty empty = {0};

    host_run_until(&host, no_inputs, &empty);
}

TEST(an_input_that_nobody_understands_is_dropped)
{
    static const struct {
        const char *kind, *payload;
    } rows[] = {
        {"sing", "{}"},
        {"abort", "no JSON"},
        {"resolve", "{\"namespace\":\"default\",\"escalation\":1,\"action\":\"guess\"}"},
        {"settled", "{\"namespace\":\"default\"}"},
        {"settled", "{\"namespace\":\"default\",\"step\":0,\"attempt\":0,\"outcome\":\"completed\"}"},
        {"settled", "{\"namespace\":\"default\",\"step\":-1,\"attempt\":1,\"outcome\":\"completed\"}"},
        {"settled", "{\"namespace\":\"default\",\"step\":4294967295,\"attempt\":1,\"outcome\":\"completed\"}"},
        {"settled", "{\"namespace\":\"default\",\"step\":0,\"attempt\":1,\"outcome\":\"sung\"}"},
        {"settled", "{\"namespace\":\"default\",\"step\":0,\"attempt\":1,\"outcome\":\"absent\"}"},
        {"settled", "{\"namespace\":\"default\",\"step\":0,\"attempt\":1,\"outcome\":\"completed\",\"result\":1}"},
        {"settled", "{\"namespace\":\"another\",\"step\":0,\"attempt\":1,\"outcome\":\"completed\",\"result\":1}"},
        {"locked", "{\"namespace\":\"default\",\"key\":\"k\"}"},
        {"locked", "{\"namespace\":\"another\",\"key\":\"k\"}"},
        {"signal", "{\"namespace\":\"default\",\"name\":\"unheard\"}"},
        {"call", "{\"namespace\":\"default\",\"tool\":\"greet\",\"run\":\"x\",\"step\":\"no step\",\"wait_ms\":9}"},
    };
    struct saga_id id = start_saga("listens", "{\"n\":1}");

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        send_input(id, rows[i].kind, rows[i].payload);
    }
    wait_until_no_inputs();
    struct ask ask;

    ask_begin(&ask);
    get(&ask, id);
    assert_code(&ask, ERR_OK);
    assert_member(ask.request.answer, "status", "\"waiting\"");
    ask_end(&ask);
    ask_begin(&ask);
    signal_it(&ask, id);
    ask_ends(&ask, ERR_OK);
}

TEST(an_input_for_a_saga_that_cannot_be_read_waits)
{
    struct saga_id id = start_saga("listens", "{\"n\":1}");

    rig_until_memory_is_empty();
    keep_log();
    spoil(id, 0);
    send_input(id, "settled",
               "{\"namespace\":\"default\",\"step\":0,\"attempt\":1,\"outcome\":\"completed\",\"result\":1}");
    send_input(id, "locked", "{\"namespace\":\"default\",\"key\":\"k\"}");
    send_input(id, "abort", "{\"namespace\":\"default\",\"actor\":\"kim\",\"note\":\"not wanted\"}");
    send_input(id, "call",
               "{\"namespace\":\"default\",\"tool\":\"nothing\",\"run\":\"x\"}"); /* such a tool may have been
                                                                                     registered elsewhere */
    host_run_ms(&host, 1500);
    assert_int_equal(inputs(), 4);
    engine_rig_end(); /* the engine ends with the inputs in its hands */
    mend();
    engine_rig_begin();
    wait_until_no_inputs(); /* the tool is still missing, which is an answer by now */
    struct ask ask;

    ask_engine(&ask, engine_get_saga, .get = {.id = id, .wait_ms = 20000});
    ask_wait(&ask);
    assert_member(ask.request.answer, "status", "\"compensated\"");
    ask_end(&ask);
}

TEST(a_follower_that_cannot_begin_is_told_to_people_and_holds_nobody_up)
{
    uint64_t refused = metric_value(METRIC_FOLLOWERS_REFUSED);
    struct saga_id ids[2] = {host_saga(1), host_saga(2)};

    send_input(ids[0], "start",
               "{\"namespace\":\"default\",\"saga\":\"strict\",\"follows\":\"00000000-0000-7000-8000-000000000001\","
               "\"input\":{}}");
    wait_until_no_inputs();
    assert_int_equal(metric_value(METRIC_FOLLOWERS_REFUSED), refused + 1);
    /* A saga that is not registered may be registered in a moment. After a while it counts as missing. */
    send_input(ids[1], "start",
               "{\"namespace\":\"default\",\"saga\":\"nothing\",\"follows\":\"00000000-0000-7000-8000-000000000001\","
               "\"input\":{}}");
    host_run_ms(&host, 500);
    assert_int_equal(inputs(), 1);
    ahead_ms += 6000;
    wait_until_no_inputs();
    assert_int_equal(metric_value(METRIC_FOLLOWERS_REFUSED), refused + 2);
    /* A follower that exists already was started before, by this saga or by hand. That is no refusal. */
    struct ask ask;

    ask_engine(&ask, engine_start_saga, .start = {.saga = SLICE("listens"), .business_id = SLICE("taken")});
    ask_ends(&ask, ERR_OK);
    send_input(host_saga(saga_id_shard(ask.request.saga)), "start",
               "{\"namespace\":\"default\",\"saga\":\"listens\",\"business_id\":\"taken\","
               "\"follows\":\"00000000-0000-7000-8000-000000000001\",\"input\":{}}");
    wait_until_no_inputs();
    assert_int_equal(metric_value(METRIC_FOLLOWERS_REFUSED), refused + 2);
}

/* --- definitions --- */

TEST(a_definition_that_does_not_compile_here_is_not_called_and_not_started)
{
    struct ask ask;

    host_sql(
        &host,
        "insert into sagad.tool (namespace, name, version, identity, body) select namespace, 'newer', 1, identity,"
        " convert_to('{\"name\":\"newer\",\"effect\":\"telepathic\"}', 'UTF8') from sagad.tool where name = 'greet'");
    host_sql(&host,
             "insert into sagad.definition (namespace, name, version, identity, body) select namespace, 'newer', 1, "
             "identity,"
             " convert_to('{\"name\":\"newer\",\"steps\":[{\"id\":\"a\",\"dream\":1}]}', 'UTF8') from sagad.definition"
             " where name = 'listens'");
    host_sql(&host, "insert into sagad.definition (namespace, name, version, identity, body) select namespace, "
                    "'newer_call', 1, identity,"
                    " convert_to('{\"name\":\"newer_call\",\"steps\":[{\"id\":\"a\",\"call\":\"newer\",\"with\":{}}]}',"
                    " 'UTF8') from"
                    " sagad.definition where name = 'listens'");
    host_sql(&host,
             "insert into sagad.tool (namespace, name, version, identity, body) select namespace, 'half', 1, identity,"
             " convert_to('{\"name\":\"half\",\"effect\":\"idempotent\",\"builtin\":{\"do\":\"echo\"},"
             "\"compensate\":{\"tool\":\"newer\"}}', 'UTF8') from sagad.tool where name = 'greet'");
    host_sql(&host, "select pg_notify('sagad_definitions', '')");
    host_run_ms(&host, 1500);
    ask_engine(&ask, engine_call, .call = {.run = SLICE("run-of-newer"), .tool = SLICE("newer")});
    ask_ends(&ask, ERR_INVALID);
    /* This engine does not understand the tool that would undo the call. */
    ask_engine(&ask, engine_call, .call = {.run = SLICE("run-of-half"), .tool = SLICE("half")});
    ask_ends(&ask, ERR_INVALID);
    for (int i = 0; i < 2; i++) {
        ask_engine(&ask, engine_start_saga, .start = {.saga = i ? SLICE("newer_call") : SLICE("newer")});
        ask_ends(&ask, ERR_INVALID);
    }
    /* The saga is shown all the same. */
    ask_engine(&ask, engine_get_definitions, .definitions = {.kind = DEFINITION_TOOL, .name = SLICE("newer")});
    ask_ends(&ask, ERR_OK);
}

ENGINE_RIG_PROGRAM(document, 200, 0)
