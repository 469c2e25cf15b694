/*
 * Open sagas through a whole engine, from their first call to their end. Clients use two engines, of which one owns
 * nothing.
 */
#include "tests/integration/engine_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/metric.h"
#include "io/process/jq.h"
#include "tests/lib/test.h"

TEST(an_open_saga_takes_calls_until_it_is_complete_and_answers_repeats_after)
{
    struct saga_id id = open_saga("order-1", 0), again = open_saga("order-1", 0);
    struct ask ask;

    call_in(&ask, id, "hello", "greet", "{\"name\":\"Kim\"}", 20000);
    ask_ends(&ask, ERR_OK);
    assert_true(uuid_equal(&again.uuid, &id.uuid));
    complete(&ask, id, 0);
    ask_expect(&ask, ERR_OK);
    assert_member(ask.request.answer, "status", "\"completed\"");
    ask_end(&ask);
    uint64_t calls = metric_value(METRIC_CALLS);

    call_in(&ask, id, "hello", "greet", "{\"name\":\"Kim\"}", 20000);
    ask_expect(&ask, ERR_OK);
    assert_true(ask.request.call.replayed);
    ask_end(&ask);
    call_in(&ask, id, "more", "greet", "{\"name\":\"Jim\"}", 20000);
    ask_ends(&ask, ERR_CLOSED);
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 0);
}

TEST(another_namespace_sees_nothing)
{
    struct saga_id id = open_saga("order-2", 0);
    struct ask ask;

    prepare_call(&ask, NULL, "hello", "greet", "{}", 0);
    ask.request.in.call.saga = id;
    ask.request.namespace = SLICE("elsewhere");
    engine_call(engine, &ask.request);
    ask_ends(&ask, ERR_NOT_FOUND);
    ask_begin(&ask);
    ask.request.namespace = SLICE("elsewhere");
    ask.request.in.change.verb = VERB_COMPLETE;
    ask.request.in.change.saga = id;
    engine_change(engine, &ask.request);
    ask_ends(&ask, ERR_NOT_FOUND);
}

TEST(completion_waits_for_what_is_not_settled)
{
    struct saga_id id = open_saga("order-3", 0);
    struct ask nap, early, late;

    call_in(&nap, id, "nap", "slow", "{}", 20000);
    host_run_ms(&host, 100);
    complete(&early, id, 50);
    complete(&late, id, 20000);
    ask_expect(&early, ERR_UNSETTLED);
    ask_expect(&late, ERR_OK);
    assert_member(late.request.answer, "status", "\"completed\"");
    ask_ends(&nap, ERR_OK);
    ask_end(&early);
    ask_end(&late);
}

TEST(an_aborted_open_saga_is_undone)
{
    struct saga_id id = open_saga("order-4", 0);
    struct ask ask;

    call_in(&ask, id, NULL, "greet", "{\"name\":\"Lee\"}", 20000);
    ask_expect(&ask, ERR_OK);
    assert_member(ask.request.answer, "step", "\"~greet\"");
    ask_end(&ask);
    ask_change(&ask, VERB_ABORT, id);
    ask_ends(&ask, ERR_OK);
    ask_engine(&ask, engine_get_saga, .get = {.id = id, .wait_ms = 20000});
    ask_expect(&ask, ERR_OK);
    assert_member(ask.request.answer, "status", "\"compensated\"");
    ask_end(&ask);
}

TEST(an_agent_that_vanished_is_undone_at_the_deadline)
{
    struct saga_id id = open_saga("order-5", 5000);
    struct ask ask;

    call_in(&ask, id, "hello", "greet", "{\"name\":\"Lee\"}", 20000);
    ask_ends(&ask, ERR_OK);
    ask_engine(&ask, engine_get_saga, .get = {.id = id, .wait_ms = 20000});
    ask_wait(&ask);
    assert_member(ask.request.answer, "status", "\"compensated\"");
    ask_end(&ask);
}

TEST(the_budget_of_an_open_saga_is_never_passed)
{
    struct saga_id id = open_with_budget("{\"calls\":1}");
    struct ask one, two;

    call_in(&one, id, "one", "greet", "{\"name\":\"a\"}", 20000);
    call_in(&two, id, "two", "greet", "{\"name\":\"b\"}", 20000);
    ask_wait(&one);
    ask_wait(&two);
    assert_code(&one, ERR_OK);
    assert_code(&two, ERR_BUDGET);
    ask_end(&one);
    ask_end(&two);
}

static void say_cost(struct engine *at, struct op_key key, int64_t micros, enum err_code code)
{
    struct ask ask;

    ask_begin(&ask);
    ask.request.in.change.verb = VERB_COST;
    ask.request.in.change.input.cost.key = key;
    ask.request.in.change.input.cost.micros = micros;
    ask.request.in.change.input.cost.note = SLICE("invoice 4711");
    engine_change(at, &ask.request);
    ask_expect(&ask, code);
    if (code == ERR_OK) {
        assert_member(ask.request.answer, "cost", "120");
        assert_int_equal(json_type(json_member(ask.request.answer, "cost_unknown")), JSON_NONE);
    }
    ask_end(&ask);
}

TEST(a_budget_waits_for_a_cost_that_nobody_could_compute)
{
    struct saga_id id;
    struct op_key key;
    struct ask ask;

    ask_engine(
        &ask, engine_define,
        .define = {.document =
                       SLICE("{\"tools\":[{\"name\":\"priced\",\"effect\":\"idempotent\",\"builtin\":{\"do\":\"echo\"},"
                             "\"compensate\":{\"tool\":\"forget\"},\"cost\":\"${ .result.fee }\"},"
                             "{\"name\":\"forget\",\"effect\":\"idempotent\",\"builtin\":{\"do\":\"echo\"}}]}")});
    ask_ends(&ask, ERR_OK);
    id = open_with_budget("{\"micros\":200}");
    call_in(&ask, id, "one", "priced", "{\"fee\":\"dear\"}", 20000);
    ask_expect(&ask, ERR_OK);
    assert_int_equal(json_type(json_member(ask.request.answer, "cost_unknown")), JSON_STRING);
    assert_true(uuid_parse(ask.request.call.key, &key.uuid));
    ask_end(&ask);
    call_in(&ask, id, "two", "priced", "{\"fee\":10}", 20000);
    ask_ends(&ask, ERR_BUDGET);
    engine_rig_begin_other();
    say_cost(other, key, 120, ERR_OK);  /* through the owner */
    say_cost(engine, key, 120, ERR_OK); /* said again */
    say_cost(engine, key, 121, ERR_DECIDED);
    engine_rig_end_other();
    call_in(&ask, id, "two", "priced", "{\"fee\":10}", 20000);
    ask_ends(&ask, ERR_OK);
    assert_int_equal(
        host_number(&host,
                    "select count(*) from sagad.log where saga = '%s' and convert_from(payload, 'UTF8') like"
                    " '%%operation.priced%%invoice 4711%%'",
                    id_text(id)),
        1);
}

/* Computes the shard of a tool as guard.c does. */
static int shard_of_tool(const char *tool)
{
    const struct slice fields[] = {SLICE("default"), slice_of(tool)};

    return digest_fields("guard", fields, COUNT_OF(fields)).bytes[0] % 64;
}

TEST(only_the_budgets_of_the_settings_hear_of_a_cost_after_the_end_of_its_saga)
{
    struct saga_id id = open_with_budget("{}");
    struct op_key key;
    struct ask ask;
    char text[UUID_TEXT_BYTES];
    long records;

    call_in(&ask, id, "one", "priced", "{\"fee\":\"dear\"}", 20000);
    ask_expect(&ask, ERR_OK);
    assert_true(uuid_parse(ask.request.call.key, &key.uuid));
    ask_end(&ask);
    complete(&ask, id, 0);
    ask_ends(&ask, ERR_OK);
    records = host_number(&host, "select sum(records) from sagad.log where saga = '%s'", id_text(id));
    /* Nobody waits for the answer. */
    ask_engine(&ask, engine_change,
               .change = {.verb = VERB_COST, .input.cost = {.key = key, .note = SLICE("invoice 4712"), .micros = 120}});
    ask_ends(&ask, ERR_ENDED);
    uuid_text(&key.uuid, text);
    host_sql(
        &host,
        "insert into sagad.guard_budget (shard, name, period, micros, unpriced) values (1, 'b', '2026-01-01Z', 1, 1)");
    host_sql(&host,
             "insert into sagad.guard_reservation (shard, namespace, tool, operation, state, budget_shards, budgets, "
             "periods, micros)"
             " values (%d, 'default', 'priced', '%s', 'unpriced', '{1}', '{b}', '{2026-01-01Z}', '{1}')",
             shard_of_tool("priced"), text);
    for (int i = 0; i < 2; i++) {
        ask_engine(
            &ask, engine_change,
            .change = {.verb = VERB_COST, .input.cost = {.key = key, .note = SLICE("invoice 4712"), .micros = 120}});
        ask_ends(&ask, i ? ERR_ENDED : ERR_OK);
    }
    assert_int_equal(host_number(&host, "select micros * 10 + unpriced from sagad.guard_budget where name = 'b'"),
                     1200);
    assert_int_equal(
        host_number(&host,
                    "select count(*) from sagad.escalation where saga = '%s' and reason = 'cost' and resolved_at is not"
                    " null and convert_from(body, 'UTF8') like '%%invoice 4712%%'",
                    id_text(id)),
        1);
    assert_int_equal(host_number(&host, "select sum(records) from sagad.log where saga = '%s'", id_text(id)), records);
}

TEST(callers_at_two_engines_share_one_call)
{
    enum { CALLERS = 32 };
    static struct ask asks[CALLERS];
    uint64_t calls = metric_value(METRIC_CALLS);
    int replayed = 0;

    engine_rig_begin_other();
    for (int i = 0; i < CALLERS; i++) {
        prepare_call(&asks[i], "run-two", "nap", "nap", "{}", 20000);
        engine_call(i % 2 ? engine : other, &asks[i].request);
    }
    for (int i = 0; i < CALLERS; i++) {
        ask_expect(&asks[i], ERR_OK);
        assert_false(asks[i].request.call.going_on);
        replayed += asks[i].request.call.replayed;
    }
    for (int i = 0; i < CALLERS; i++) {
        ask_end(&asks[i]);
    }
    assert_int_equal(replayed, CALLERS - 1);
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 1);
    engine_rig_end_other();
}

TEST(an_engine_asks_the_owner_about_sagas_of_other_shards)
{
    struct ask ask;
    struct saga_id id;

    engine_rig_begin_other();
    ask_begin(&ask);
    ask.request.in.open.business_id = SLICE("order-remote");
    engine_open_saga(other, &ask.request);
    ask_expect(&ask, ERR_OK);
    id = ask.request.saga;
    ask_end(&ask);
    prepare_call(&ask, NULL, "hello", "greet", "{\"name\":\"Ann\"}", 20000);
    ask.request.in.call.saga = id;
    engine_call(other, &ask.request);
    ask_expect(&ask, ERR_OK);
    assert_member(ask.request.answer, "result", "{\"name\":\"Ann\"}");
    ask_end(&ask);
    prepare_call(&ask, NULL, "no", "refuse", "{}", 20000);
    ask.request.in.call.saga = id;
    engine_call(other, &ask.request);
    ask_expect(&ask, ERR_TOOL_FAILED);
    assert_member(ask.request.call.operation, "state", "\"failed\"");
    ask_end(&ask);
    ask_begin(&ask);
    ask.request.in.change.verb = VERB_COMPLETE;
    ask.request.in.change.saga = id;
    engine_change(other, &ask.request);
    ask_expect(&ask, ERR_OK);
    assert_member(ask.request.answer, "status", "\"completed\"");
    ask_end(&ask);
    engine_rig_end_other();
}

TEST(callers_outlive_the_engine_that_made_their_call)
{
    struct ask here, there;

    engine_rig_begin_other();
    begin_call(&here, "run-over", "long", "slow", "{}", 30000);
    prepare_call(&there, "run-over", "long", "slow", "{}", 30000);
    host_run_ms(&host, 300);
    engine_call(other, &there.request);
    host_run_ms(&host, 500);
    is_drained = false;
    engine_drain(engine, 100, on_drained, NULL); /* before the call is settled */
    host_run_until(&host, is_so, &is_drained);
    engine_free(engine);
    ask_expect(&here, ERR_OK);
    assert_true(here.request.call.going_on);
    ask_expect(&there, ERR_OK);
    assert_false(there.request.call.going_on);
    assert_member(there.request.answer, "state", "\"completed\"");
    ask_end(&here);
    ask_end(&there);
    engine = other;
    other = NULL;
}

TEST(a_caller_whose_shard_was_taken_away_is_answered_all_the_same)
{
    struct ask ask;

    begin_call(&ask, "run-taken", "long", "slow", "{}", 30000);
    host_run_ms(&host, 500);
    host_sql(&host, "update sagad.shard set epoch = epoch + 1, owner = null, expires_at = now() - interval '1 s'");
    ask_expect(&ask, ERR_OK);
    assert_false(ask.request.call.going_on);
    assert_member(ask.request.answer, "state", "\"completed\"");
    ask_end(&ask);
}

int main(void)
{
    jq_prepare(); /* while this process is small */
    return tests_run(engine_rig_setup, engine_rig_teardown);
}
