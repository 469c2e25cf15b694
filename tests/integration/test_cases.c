/*
 * Cases that no log tells of: a saga whose log cannot be read, and a follower that is refused after its saga has ended.
 * A person hears of them and can end them.
 */
#include "tests/integration/engine_rig.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/metric.h"
#include "io/process/jq.h"
#include "tests/lib/test.h"

#define STRICT(required)                                                                                               \
    "{\"name\":\"strict\",\"input\":{\"type\":\"object\",\"required\":[" required                                      \
    "]},\"steps\":[{\"id\":\"b\",\"call\":\"greet\",\"with\":{}}]}"

static const char document[] =
    "{\"sagas\":["
    "{\"name\":\"acts\",\"steps\":[{\"id\":\"a\",\"call\":\"greet\",\"with\":{}},{\"id\":\"paid\",\"signal\":{\"name\":"
    "\"paid\"}}]}," STRICT("\"n\"") ","
                                    "{\"name\":\"leads\",\"steps\":[{\"id\":\"a\",\"call\":\"greet\",\"with\":{}}],"
                                    "\"then\":[{\"saga\":\"strict\",\"id\":\"f-${ .input.of }\",\"input\":{\"m\":1}}]}"
                                    "]}";

static struct saga_id start(const char *saga, const char *id, const char *input)
{
    struct ask ask;

    ask_engine(
        &ask, engine_start_saga,
        .start = {.saga = slice_of(saga), .business_id = id ? slice_of(id) : SLICE_NONE, .input = slice_of(input)});
    ask_ends(&ask, ERR_OK);
    return ask.request.saga;
}

/* --- waiting for what the database says, which is asked some times a second --- */

struct wanted {
    const char *sql;
    long number;
    int64_t looked_ms;
    bool so; /* the test asks more than once in a turn of the loop */
};

static bool is_there(void *context)
{
    struct wanted *wanted = context;

    if (!wanted->so && loop_boot_ms(host.loop) - wanted->looked_ms >= 50) {
        wanted->looked_ms = loop_boot_ms(host.loop);
        wanted->so = host_number(&host, "%s", wanted->sql) == wanted->number;
    }
    return wanted->so;
}

static void wait_for(long number, const char *sql)
{
    struct wanted wanted = {.sql = sql, .number = number};

    host_run_until(&host, is_there, &wanted);
}

static const char *about(const char *sql, struct saga_id id)
{
    static char text[512];

    (void)snprintf(text, sizeof(text), sql, id_text(id));
    return text;
}

#define OPEN_CASES "select count(*) from sagad.escalation where saga = '%s' and resolved_at is null"

/* --- what a person says --- */

static void resolve(struct engine *at, long number, enum operator_action action, enum err_code code, struct ask *ask)
{
    ask_begin(ask);
    ask->request.in.change.verb = VERB_RESOLVE;
    ask->request.in.change.input.verdict.escalation = (uint64_t)number;
    ask->request.in.change.input.verdict.action = action;
    ask->request.in.change.input.verdict.note = SLICE("seen by ann");
    engine_change(at, &ask->request);
    ask_expect(ask, code);
}

static void resolved(struct engine *at, long number, enum operator_action action, enum err_code code)
{
    struct ask ask;

    resolve(at, number, action, code, &ask);
    ask_end(&ask);
}

static long number_of(struct saga_id id)
{
    return host_number(&host, "select max(number) from sagad.escalation where saga = '%s' and resolved_at is null",
                       id_text(id));
}

static struct slice shown(long number, struct ask *ask)
{
    ask_begin(ask);
    ask->request.in.escalations.number = (uint64_t)number;
    engine_get_escalations(engine, &ask->request);
    ask_expect(ask, ERR_OK);
    return ask->request.answer;
}

static enum err_code signal_it(struct saga_id id)
{
    struct ask ask;

    ask_begin(&ask);
    ask.request.in.change.verb = VERB_SIGNAL;
    ask.request.in.change.saga = id;
    ask.request.in.change.input.signal.name = SLICE("paid");
    engine_change(engine, &ask.request);
    ask_wait(&ask);
    ask_end(&ask);
    return ask.request.code;
}

/* Makes a saga that waits, with a standing effect, and with a last record of an unknown kind. */
static struct saga_id spoilt(void)
{
    struct saga_id id = start("acts", NULL, "{}");

    rig_until_memory_is_empty();
    host_sql(&host, "drop table if exists kept; create table kept as select * from sagad.log where saga = '%s'",
             id_text(id));
    host_sql(&host,
             "insert into sagad.log select shard, saga, (select max(seq + records) from sagad.log where saga = '%s'), "
             "1, at, epoch,"
             " '[{\"type\":\"saga.sung\",\"data\":{}}]' from sagad.log where saga = '%s' and seq = 1",
             id_text(id), id_text(id));
    assert_int_equal(signal_it(id), ERR_CORRUPT);
    return id;
}

TEST(a_saga_that_cannot_be_read_is_a_case_and_ends_by_it)
{
    struct saga_id id = spoilt();
    long number;
    int64_t gauge;
    struct ask ask;
    struct slice evidence;

    wait_for(1, about(OPEN_CASES, id));
    assert_int_equal(signal_it(id), ERR_CORRUPT); /* the engine looks again, and the case is the same */
    number = number_of(id);
    gauge = gauge_value(GAUGE_ESCALATIONS_OPEN);
    assert_member(shown(number, &ask), "reason", "\"unreadable\"");
    assert_member(ask.request.answer, "saga_name", "\"acts\"");
    evidence = json_member(ask.request.answer, "evidence");
    assert_non_null(strstr(arena_text(&ask.arena, json_member(evidence, "detail")), "saga.sung"));
    assert_member(json_at(evidence, SLICE("/open/0")), "step", "\"a\"");
    assert_member(json_at(evidence, SLICE("/open/0")), "took_effect", "\"yes\"");
    assert_member(json_at(ask.request.answer, SLICE("/actions/0")), "action", "\"abandon\"");
    ask_end(&ask);
    engine_rig_end();
    engine_rig_begin(); /* an owner that has never seen the saga */
    assert_int_equal(signal_it(id), ERR_CORRUPT);
    host_run_ms(&host, 300);
    assert_int_equal(host_number(&host, about(OPEN_CASES, id)), 1);
    resolved(engine, number, OPERATOR_RETRY, ERR_CONFLICT);
    engine_rig_begin_other();
    resolve(other, number, OPERATOR_ABANDON, ERR_OK, &ask); /* through the owner */
    assert_member(ask.request.answer, "status", "\"resolved\"");
    assert_member(ask.request.answer, "action", "\"abandon\"");
    assert_member(ask.request.answer, "note", "\"seen by ann\"");
    ask_end(&ask);
    engine_rig_end_other();
    resolved(engine, number, OPERATOR_ABANDON, ERR_DECIDED);
    assert_int_equal(gauge_value(GAUGE_ESCALATIONS_OPEN), gauge - 1);
    assert_int_equal(
        host_number(
            &host,
            about("select count(*) from sagad.saga where id = '%s' and status = 'abandoned' and ended_at is not null",
                  id)),
        1);
    assert_int_equal(host_number(&host, about("select count(*) from sagad.due where saga = '%s'", id)), 0);
    /* Nothing was appended. */
    assert_int_equal(host_number(&host, about("select count(*) from sagad.log where saga = '%s'", id)),
                     host_number(&host, about("select count(*) + 1 from kept where saga = '%s'", id)));
    uint64_t unreadable = metric_value(METRIC_SAGAS_UNREADABLE);

    engine_rig_end();
    engine_rig_begin(); /* not loaded again */
    host_run_ms(&host, 300);
    assert_int_equal(metric_value(METRIC_SAGAS_UNREADABLE), unreadable);
    assert_int_equal(signal_it(id), ERR_CORRUPT);
    host_run_ms(&host, 300);
    assert_int_equal(host_number(&host, about(OPEN_CASES, id)), 0);
}

TEST(a_saga_that_can_be_read_again_closes_its_case)
{
    struct saga_id id = spoilt();
    struct ask ask;
    long number;

    wait_for(1, about(OPEN_CASES, id));
    number = number_of(id);
    host_sql(&host,
             "delete from sagad.log l using kept k where l.saga = k.saga; insert into sagad.log select * from kept");
    assert_int_equal(signal_it(id), ERR_OK);
    wait_for(0, about(OPEN_CASES, id));
    assert_member(shown(number, &ask), "action", "\"evidence\"");
    ask_end(&ask);
    /* Where nobody has looked yet, a person's verdict ends nothing. */
    id = spoilt();
    wait_for(1, about(OPEN_CASES, id));
    number = number_of(id);
    host_sql(&host,
             "delete from sagad.log l using kept k where l.saga = k.saga; insert into sagad.log select * from kept");
    resolve(engine, number, OPERATOR_ABANDON, ERR_OK, &ask);
    assert_member(ask.request.answer, "action", "\"evidence\"");
    ask_end(&ask);
    assert_int_equal(signal_it(id), ERR_OK);
}

/* --- followers --- */

TEST(a_follower_that_is_refused_is_a_case_on_the_saga_that_has_completed)
{
    struct saga_id id = start("leads", NULL, "{\"of\":\"one\"}");
    struct ask ask;
    long number;

    wait_for(1, about(OPEN_CASES, id));
    number = number_of(id);
    assert_member(shown(number, &ask), "reason", "\"follower\"");
    assert_member(ask.request.answer, "saga_name", "\"leads\"");
    assert_member(json_at(ask.request.answer, SLICE("/evidence/follower")), "business_id", "\"f-one\"");
    assert_member(json_at(ask.request.answer, SLICE("/evidence/follower")), "input", "{\"m\":1}");
    ask_end(&ask);
    resolved(engine, number, OPERATOR_PROBE, ERR_CONFLICT);
    resolved(engine, number, OPERATOR_RETRY, ERR_OK); /* nothing has changed, so the follower is refused again */
    wait_for(1, about(OPEN_CASES, id));
    assert_true(number_of(id) > number);
    number = number_of(id);
    engine_rig_define_text("{\"sagas\":[" STRICT("\"m\"") "]}");
    resolved(engine, number, OPERATOR_RETRY, ERR_OK);
    wait_for(1, "select count(*) from sagad.saga where business_id = 'f-one' and status = 'completed'");
    assert_int_equal(host_number(&host, about(OPEN_CASES, id)), 0);
    resolved(engine, number, OPERATOR_RETRY, ERR_DECIDED);
    assert_int_equal(
        host_number(&host, about("select count(*) from sagad.saga where id = '%s' and status = 'completed'", id)), 1);
}

TEST(a_follower_whose_id_another_saga_has_with_other_input_is_a_case_too)
{
    struct saga_id id;

    engine_rig_define_text("{\"sagas\":[" STRICT("\"m\"") "]}");
    (void)start("strict", "f-two", "{\"m\":1}"); /* the same saga started by hand is no refusal */
    (void)start("strict", "f-three", "{\"m\":2}");
    (void)start("leads", NULL, "{\"of\":\"two\"}");
    id = start("leads", NULL, "{\"of\":\"three\"}");
    wait_for(1, about(OPEN_CASES, id));
    wait_for(0, "select count(*) from sagad.inbox");
    assert_int_equal(host_number(&host, "select count(*) from sagad.escalation where resolved_at is null"), 1);
    resolved(engine, number_of(id), OPERATOR_ABANDON, ERR_OK);
    assert_int_equal(host_number(&host, about(OPEN_CASES, id)), 0);
}

ENGINE_RIG_PROGRAM(document, 200, 0)
