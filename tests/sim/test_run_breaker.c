/* Breakers that a person opens and closes, on every engine; and those of tools whose calls may not be repeated. */
#include "tests/sim/stage.h"

#define BREAKER "'breaker':{'failures':2,'window':'60s','cooldown':'60s'}"
#define ONE(name) "{'name':'" name "s','steps':[{'id':'a','call':'" name "','with':{}}]}"

static const char document[] =
    "{'tools':["
    "{'name':'note','builtin':{'tool':'note'},'effect':'once','terminal':true," BREAKER "},"
    "{'name':'pay','builtin':{'tool':'pay'},'effect':'keyed','key':{'window':'24h'},'terminal':true," BREAKER "},"
    "{'name':'sure','builtin':{'tool':'sure'},'effect':'once','terminal':true," BREAKER ",'test':'ping'},"
    "{'name':'ping','builtin':{'tool':'ping'},'effect':'read'},"
    "{'name':'free','builtin':{'tool':'free'},'effect':'keyed','key':{'window':'24h'},'terminal':true}],"
    "'sagas':[" ONE("note") "," ONE("pay") "," ONE(
        "sure") ",{'name':'inline','steps':[{'id':'a','call':{'builtin':{'tool':'in'},"
                "'effect':'once','terminal':true," BREAKER "},'with':{}}]}]}";

static struct reply *set_breaker(uint32_t node, const char *tool, bool is_open)
{
    return stage_wait(
        stage_ask(node, engine_set_breaker,
                  &(struct engine_request){
                      .in.breaker = {.tool = slice_of(tool), .is_open = is_open, .note = SLICE("the bank says so")}}));
}

static struct reply *call_tool(uint32_t node, const char *run, const char *tool)
{
    return stage_wait(stage_ask(node, engine_call, stage_call_of(run, tool, "{}", 60000)));
}

static void fail_twice(const char *tool, const char *saga)
{
    stage_says(tool, OUTCOME_UNKNOWN, "http-500", "{'status':500}");
    for (int i = 0; i < 2; i++) {
        stage_until_saga(0, stage_start(0, saga, "{}"), "escalated");
    }
    stage_says(tool, OUTCOME_COMPLETED, NULL, "{'status':200}");
}

TEST(the_breaker_of_a_tool_that_may_not_be_repeated_is_closed_by_a_person)
{
    static const struct {
        const char *name, *tool, *saga;
    } table[] = {{"note", "note", "notes"}, {"inline.a", "in", "inline"}};

    for (uint32_t i = 0; i < COUNT_OF(table); i++) {
        fail_twice(table[i].tool, table[i].saga);
        struct saga_id waits = stage_start(i, table[i].saga, "{}");

        stage_run(INT64_C(1200) * 1000);
        assert_int_equal(stage_calls(table[i].tool), 2);
        assert_int_equal(set_breaker(1 - i, table[i].name, false)->code, ERR_OK); /* where it does not wait */
        stage_run(6000);
        assert_int_equal(stage_calls(table[i].tool), 3);
        stage_until_saga(0, waits, "completed");
    }
}

/* Engines look at a breaker that rests, too: somebody may have closed it elsewhere. */
TEST(a_breaker_that_is_closed_while_it_rests_lets_calls_go_on_every_engine)
{
    struct saga_id ids[2];

    fail_twice("note", "notes");
    for (uint32_t i = 0; i < 2; i++) {
        ids[i] = stage_start(i, "notes", "{}");
    }
    stage_run(2000);
    assert_int_equal(set_breaker(1, "note", false)->code, ERR_OK);
    stage_run(7000); /* of the minute that it would rest */
    assert_int_equal(stage_calls("note"), 4);
    for (uint32_t i = 0; i < 2; i++) {
        stage_until_saga(i, ids[i], "completed");
    }
}

/* Where nobody answers the test, or refuses it, the tool rests on. */
TEST(the_test_of_a_tool_closes_its_breaker)
{
    static const struct {
        enum outcome_kind kind;
        const char *error, *response;
    } not_well[] = {{OUTCOME_UNKNOWN, "timeout", NULL}, {OUTCOME_FAILED, "http-404", "{'status':404}"}};

    fail_twice("sure", "sures");
    struct saga_id waits = stage_start(0, "sures", "{'much':'to say'}");

    for (size_t i = 0; i < COUNT_OF(not_well); i++) {
        uint32_t tests = stage_calls("ping");

        stage_says("ping", not_well[i].kind, not_well[i].error, not_well[i].response);
        stage_run(INT64_C(700) * 1000);
        assert_true(stage_calls("ping") > tests);
        assert_int_equal(stage_calls("sure"), 2);
    }
    stage_says("ping", OUTCOME_COMPLETED, NULL, "{'status':200}");
    stage_run(INT64_C(700) * 1000);
    stage_until_saga(0, waits, "completed");
    assert_int_equal(stage_calls("sure"), 3);
    assert_true(stage_calls("ping") < 20); /* it rests between the tries */
}

/* A later version of the test that changes something is not called. */
TEST(a_test_that_does_not_read_any_more_is_not_called)
{
    fail_twice("sure", "sures");
    struct saga_id waits = stage_start(0, "sures", "{}");

    stage_define(0, "{'tools':[{'name':'ping','builtin':{'tool':'ping'},'effect':'once','terminal':true}]}");
    stage_run(INT64_C(700) * 1000);
    assert_int_equal(stage_calls("ping"), 0);
    assert_int_equal(set_breaker(1, "sure", false)->code, ERR_OK);
    stage_until_saga(0, waits, "completed");
}

TEST(a_breaker_that_a_person_opened_stays_open_on_every_engine_until_a_person_closes_it)
{
    struct saga_id ids[2];

    struct reply *set = set_breaker(0, "pay", true);

    assert_int_equal(set->code, ERR_OK);
    assert_true(json_string_is(json_member(set->answer, "breaker"), "open"));
    assert_true(json_string_is(json_member(json_member(set->answer, "by"), "note"), "the bank says so"));
    for (uint32_t i = 0; i < 2; i++) {
        ids[i] = stage_start(i, "pays", "{}");
        assert_int_equal(call_tool(i, i ? "r1" : "r0", "pay")->code, ERR_BREAKER);
    }
    stage_run(INT64_C(1200) * 1000);
    assert_int_equal(stage_calls("pay"), 0);
    struct slice stats = stage_wait(stage_ask(0, engine_get_stats, &(struct engine_request){0}))->answer;
    struct slice guard = json_element(json_member(stats, "guards"), 0);

    assert_true(json_string_is(json_member(guard, "breaker"), "open"));
    assert_true(json_string_is(json_member(json_member(guard, "opened_by"), "note"), "the bank says so"));
    assert_int_equal(set_breaker(1, "pay", false)->code, ERR_OK);
    for (uint32_t i = 0; i < 2; i++) {
        stage_until_saga(0, ids[i], "completed");
    }
    stats = stage_wait(stage_ask(0, engine_get_stats, &(struct engine_request){0}))->answer;
    guard = json_element(json_member(stats, "guards"), 0);
    assert_true(json_string_is(json_member(guard, "breaker"), "closed"));
    assert_null(json_member(guard, "opened_by").ptr);
}

TEST(a_breaker_that_is_not_there_is_not_opened)
{
    assert_int_equal(set_breaker(0, "free", true)->code, ERR_INVALID);
    assert_int_equal(set_breaker(0, "free", false)->code, ERR_OK); /* a version before may have had one */
    assert_int_equal(set_breaker(0, "nothing", false)->code, ERR_NOT_FOUND);
    assert_int_equal(set_breaker(0, "inline.b", false)->code, ERR_NOT_FOUND);
}

/* Callers hear how long the tool rests, not when the engine looks next. */
TEST(a_caller_hears_how_long_the_tool_rests)
{
    fail_twice("note", "notes");
    for (int i = 0; i < 2; i++) { /* the database says so, and then the engine by itself */
        struct reply *refused = call_tool(0, i ? "r1" : "r0", "note");

        assert_int_equal(refused->code, ERR_BREAKER);
        assert_in_range(refused->call.retry_after_ms, 55000, 80000);
    }
}

STAGE_PROGRAM(.definitions = document, .node_count = 2, .is_automatic = true)
