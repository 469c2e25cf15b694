/* From an operation to its outcome (dispatch.c, rendering.c): the meaning of answers, what is kept of them, and calls
 * that do not leave. */
#include "run/call/call_queue.h"
#include "tests/sim/stage.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "run/engine_state.h"

#define UNDO "{'name':'undo','builtin':{'tool':'undo'},'effect':'idempotent'}"
#define KEYED "'effect':'keyed','key':{'window':'10m'}"
#define ONE_STEP(tool) "'sagas':[{'name':'s','steps':[{'id':'a','call':'" tool "','with':{'n':1}}]}]"
/* Makes one tool and a saga that calls it. */
#define ONE(members) "{'tools':[" UNDO ",{'name':'t','builtin':{'tool':'t'}," members "}]," ONE_STEP("t") "}"

static void begin(const char *definitions)
{
    stage_begin(&(struct stage_plan){.definitions = definitions});
}

static struct saga_id start(void)
{
    return stage_start(0, "s", "{'a':1}");
}

/* Returns a member of the first step's operation, as GET shows it. */
static struct slice of_step(struct saga_id saga, const char *member)
{
    struct slice steps = json_member(stage_saga(0, saga), "steps");

    return json_trim(json_member(json_element(steps, 0), member));
}

static bool result_is(struct saga_id saga, const char *json)
{
    return slice_equal(of_step(saga, "result"), stage_json(json));
}

/* A place was given to a call, and its settings are being rendered. */
static bool has_begun(void *context)
{
    (void)context;
    return calls_under_way(nodes[0].engine) > 0;
}

/* --- what an answer means --- */

/* A rule of the tool has precedence over the adapter's view of the answer. */
TEST(a_rule_of_the_tool_makes_a_failure_of_a_good_answer)
{
    struct saga_id saga;

    begin(ONE(
        KEYED
        ",'compensate':{'tool':'undo'},'outcome':{'completed':'${ .response.done }','no_effect':'${ .response.no }'}"));
    saga = start();
    stage_complete(stage_until_call("t"), "{'done':false,'no':true}");
    stage_until_saga(0, saga, "compensated");
    assert_int_equal(stage_calls("t"), 1);
}

/* No rule matches, so the outcome is unknown. */
TEST(an_answer_that_no_rule_knows_is_unknown)
{
    struct reply *reply;

    begin(ONE("'effect':'once','compensate':{'tool':'undo'},'outcome':{'completed':'${ .response.done }'}"));
    reply = stage_ask(0, engine_call, stage_call_of("r", "t", "{}", 10000));
    stage_complete(stage_until_call("t"), "{'done':false}");
    (void)stage_expect(reply, ERR_AWAITING);
}

/* It is unknown which rule would have matched. That is not a failure, and the call is not sent again. */
TEST(a_rule_that_cannot_be_evaluated_leaves_it_unknown)
{
    struct reply *reply;

    begin(ONE("'effect':'once','compensate':{'tool':'undo'},'outcome':{'completed':'${ .response.done | error }'}"));
    reply = stage_ask(0, engine_call, stage_call_of("r", "t", "{}", 10000));
    stage_complete(stage_until_call("t"), "{'done':true}");
    (void)stage_expect(reply, ERR_AWAITING);
    assert_int_equal(stage_calls("t"), 1);
}

/* The adapter's own error stays beside the class that the rule gives. */
TEST(a_rule_that_agrees_with_a_failure_keeps_its_reason)
{
    struct reply *reply;

    begin(ONE(KEYED ",'compensate':{'tool':'undo'},'outcome':{'no_effect':'${ .response.no }'}"));
    reply = stage_ask(0, engine_call, stage_call_of("r", "t", "{}", 10000));
    stage_answer(stage_until_call("t"), (struct outcome){.kind = OUTCOME_UNKNOWN, .error = SLICE("http-500")},
                 "{'no':true}");
    (void)stage_expect(reply, ERR_TOOL_FAILED);
    assert_string_equal(reply->err.detail, "http-500");
}

/* The service says "accepted" and cannot be asked later, so this is all that will ever be heard. */
TEST(accepted_without_a_probe_is_done)
{
    struct saga_id saga;

    begin(ONE(KEYED ",'compensate':{'tool':'undo'}"));
    saga = start();
    stage_answer(stage_until_call("t"), (struct outcome){.kind = OUTCOME_RUNNING, .error = SLICE("http-202")}, "{}");
    stage_until_saga(0, saga, "completed");
}

/* --- what is kept of it --- */

TEST(an_answer_without_a_body_completes_without_a_result)
{
    struct saga_id saga;

    begin(ONE(KEYED ",'compensate':{'tool':'undo','with':{'of':'${ .result }'}},'cost':'${ .result }'"));
    saga = start();
    stage_complete(stage_until_call("t"), NULL);
    stage_until_saga(0, saga, "completed");
    assert_true(result_is(saga, "null"));
}

TEST(a_result_that_is_too_large_is_not_kept_and_the_step_is_done)
{
    struct saga_id saga;

    stage_begin(&(struct stage_plan){.definitions = ONE("'effect':'read'"), .node = {.payload_bytes_max = 200}});
    saga = start();
    stage_complete(
        stage_until_call("t"),
        "{'x':'0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789'}");
    stage_until_saga(0, saga, "completed");
    assert_true(result_is(saga, "null"));
}

TEST(the_result_of_a_tool_is_kept_unless_it_is_too_large)
{
    struct saga_id saga;

    stage_begin(&(struct stage_plan){
        .definitions = ONE(KEYED ",'cost':5,'result':{'x':'${ .response.x }'},'compensate':{'tool':'undo'}"),
        .node = {.payload_bytes_max = 100}});
    saga = start();
    stage_complete(stage_until_call("t"), "{'x':7,'y':8}");
    stage_until_saga(0, saga, "completed");
    assert_true(result_is(saga, "{'x':7}"));
    saga = start();
    stage_complete(stage_until_call("t"), "{'x':'"
                                          "0123456789012345678901234567890123456789012345678901234567890123456789012345"
                                          "6789012345678901234567890123456789'}");
    stage_until_saga(0, saga, "completed");
    assert_false(json_type(of_step(saga, "result")) == JSON_OBJECT);
    assert_true(json_string_is(of_step(saga, "result_error"), "the result is larger than allowed"));
}

/* The precheck comes before a call that may be made only once. What the precheck finds done is not done again. */
TEST(a_call_that_a_precheck_finds_done_is_not_made)
{
    struct saga_id saga;

    begin(ONE("'effect':'once','compensate':{'tool':'undo'},'precheck':{'builtin':{'tool':'pre'},'done':'${ "
              ".response.done }','blocked':'${ .response.no }'}"));
    saga = start();
    stage_complete(stage_until_call("pre"), "{'done':true,'no':false}");
    stage_until_saga(0, saga, "completed");
    assert_int_equal(stage_calls("t"), 0);
}

/* The call has happened, and its result cannot be rendered. An undo may not guess the result. */
TEST(a_result_that_cannot_be_rendered_is_lost_and_its_undo_is_a_persons)
{
    struct saga_id saga;

    begin("{'tools':[" UNDO ",{'name':'t','builtin':{'tool':'t'}," KEYED
          ",'result':'${ .response.x | error }','compensate':{'tool':'undo','with':{'id':'${ .result.id }'}}},"
          "{'name':'no','builtin':{'tool':'no'},'effect':'idempotent','compensate':{'tool':'undo'}}],"
          "'sagas':[{'name':'s','steps':[{'id':'a','call':'t'},{'id':'b','call':'no','after':['a']}]}]}");
    saga = start();
    stage_complete(stage_until_call("t"), "{'x':1}");
    stage_answer(stage_until_call("no"), (struct outcome){.kind = OUTCOME_FAILED, .error = SLICE("http-422")}, NULL);
    stage_run(5000);
    assert_int_equal(stage_calls("undo"), 0);
    assert_int_equal(json_type(json_member(stage_saga(0, saga), "escalation")), JSON_NUMBER);
}

/* The result of a read and of an undo is lost. There is nothing to undo after them, and the saga goes on. */
TEST(a_lost_result_of_a_read_or_an_undo_stops_nothing)
{
    struct saga_id saga;

    begin(
        "{'tools':[{'name':'undo','builtin':{'tool':'undo'},'effect':'idempotent','result':'${ .response.x | error }'},"
        "{'name':'r','builtin':{'tool':'r'},'effect':'read','result':'${ .response.x | error }'},"
        "{'name':'t','builtin':{'tool':'t'}," KEYED ",'compensate':{'tool':'undo'}},"
        "{'name':'no','builtin':{'tool':'no'},'effect':'idempotent','compensate':{'tool':'undo'}}],"
        "'sagas':[{'name':'s','steps':[{'id':'r','call':'r'},{'id':'a','call':'t'},{'id':'b','call':'no'}]}]}");
    saga = start();
    stage_complete(stage_until_call("r"), "{'x':1}");
    stage_complete(stage_until_call("t"), "{'x':1}");
    stage_answer(stage_until_call("no"), (struct outcome){.kind = OUTCOME_FAILED, .error = SLICE("http-422")}, NULL);
    stage_complete(stage_until_call("undo"), "{'x':1}");
    stage_until_saga(0, saga, "compensated");
}

TEST(the_arguments_of_an_undo_that_cannot_be_had_are_a_persons)
{
    struct saga_id saga;

    begin("{'tools':[" UNDO ",{'name':'t','builtin':{'tool':'t'}," KEYED
          ",'compensate':{'tool':'undo','with':{'id':'${ .result.id | error }'}}},"
          "{'name':'no','builtin':{'tool':'no'},'effect':'idempotent','compensate':{'tool':'undo'}}],"
          "'sagas':[{'name':'s','steps':[{'id':'a','call':'t'},{'id':'b','call':'no','after':['a']}]}]}");
    saga = start();
    stage_complete(stage_until_call("t"), "{'id':1}");
    stage_answer(stage_until_call("no"), (struct outcome){.kind = OUTCOME_FAILED, .error = SLICE("http-422")}, NULL);
    stage_run(5000);
    assert_int_equal(stage_calls("undo"), 0);
    assert_int_equal(json_type(json_member(stage_saga(0, saga), "escalation")), JSON_NUMBER);
}

/* --- what it cost --- */

TEST(a_cost_is_rounded_up_and_one_that_is_none_is_told_as_unknown)
{
    static const struct {
        const char *answer;
        int64_t micros; /* -1: unknown */
    } answers[] = {{"{'fee':12}", 12},
                   {"{'fee':2009999.9999999998}", 2010000},
                   {"{'fee':1.5}", 2},
                   {"{'fee':1e-9}", 1},
                   {"{'fee':0.0}", 0},
                   {"{'fee':1000000000000000}", 1000000000000000},
                   {"{'fee':-1}", -1},
                   {"{'fee':-0.1}", -1},
                   {"{'fee':2000000000000000}", -1},
                   {"{'fee':1000000000000000.5}", -1},
                   {"{'fee':1e300}", -1},
                   {"{'fee':'x'}", -1},
                   {"{'fee':null}", -1}};

    begin(ONE("'effect':'read','cost':'${ .result.fee }'"));
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        struct saga_id saga = start();
        int64_t micros = -1;

        stage_complete(stage_until_call("t"), answers[i].answer);
        stage_until_saga(0, saga, "completed");
        assert_true(json_i64(json_member(stage_saga(0, saga), "cost"), &micros));
        assert_int_equal(micros, answers[i].micros < 0 ? 0 : answers[i].micros);
        assert_int_equal(json_type(of_step(saga, "cost_unknown")), answers[i].micros < 0 ? JSON_STRING : JSON_NONE);
    }
    stage_end();
    begin(ONE("'effect':'read','cost':'${ .result.fee | error }'"));
    stage_until_saga(0, (stage_is_automatic = true, start()), "completed");
}

TEST(a_budget_takes_no_call_that_costs_while_a_cost_is_unknown)
{
    struct saga_id saga;

    begin("{'tools':[{'name':'t','builtin':{'tool':'t'},'effect':'read','cost':'${ .result.fee }'}],"
          "'sagas':[{'name':'s','budget':{'micros':100},'steps':[{'id':'a','call':'t'},{'id':'b','call':'t'}]}]}");
    saga = start();
    stage_complete(stage_until_call("t"), "{'fee':'x'}");
    stage_until_saga(0, saga, "compensated");
    assert_int_equal(stage_calls("t"), 1);
}

/* --- what does not leave --- */

/* The definition names the secret, and the settings of the engine have its value. Without the value nothing is sent. */
TEST(a_call_without_its_secret_is_not_sent_and_fails)
{
    struct saga_id saga;

    begin("{'tools':[" UNDO ",{'name':'t','builtin':{'tool':'t','token':'${ secret(\\\"nobody_knows\\\") }'}," KEYED
          ",'compensate':{'tool':'undo'}}]," ONE_STEP("t") "}");
    saga = start();
    stage_until_saga(0, saga, "compensated");
    assert_int_equal(stage_calls("t"), 0);
    assert_true(json_string_is(json_member(of_step(saga, "error"), "code"), "settings"));
}

TEST(a_secret_is_rendered_into_what_is_sent)
{
    struct saga_id saga;
    struct staged_call *call;

    assert_int_equal(setenv("SAGAD_SECRET_KNOWN", "s3cret", 1), 0);
    begin(
        "{'tools':[{'name':'t','builtin':{'tool':'t','token':'${ secret(\\\"KNOWN\\\") }'},'effect':'read'}]," ONE_STEP(
            "t") "}");
    saga = start();
    call = stage_until_call("t");
    assert_true(json_string_is(json_member(call->call->settings, "token"), "s3cret"));
    stage_complete(call, "{}");
    stage_until_saga(0, saga, "completed");
}

/* The engine is frozen for longer than its lease between rendering a call and sending it. By then another engine owns
 * the call. */
TEST(a_call_whose_lease_ends_while_it_is_rendered_does_not_leave)
{
    struct saga_id saga;

    begin("{'tools':[" UNDO ",{'name':'t','builtin':{'tool':'t','n':'${ .args.n | . "
          "}'},'effect':'once','compensate':{'tool':'undo'}}]," ONE_STEP("t") "}");
    saga = start();
    stage_until(has_begun, NULL, "a call that is being rendered");
    assert_int_equal(stage_calls("t"), 0);
    node_freeze_now(&nodes[0], 20000000);
    stage_is_automatic = true;
    stage_run(20500);
    stage_until_saga(0, saga, "completed");
    assert_int_equal(stage_calls("t"), 1);
}

TEST(a_call_whose_shard_is_lost_while_it_is_rendered_is_the_next_owners)
{
    struct stage_plan plan = {.node_count = 2, .node = {.lease_ms = 2000}};
    const char *run;
    struct reply *reply;

    plan.definitions = "{'tools':[" UNDO ",{'name':'t','builtin':{'tool':'t','n':'${ .args.n | . "
                       "}'},'effect':'keyed','key':{'window':'10m'},'compensate':{'tool':'undo'}}]}";
    stage_begin(&plan);
    run = stage_run_at(0);
    reply = stage_ask(0, engine_call, stage_call_of(run, "t", "{'n':1}", 60000));
    stage_until(has_begun, NULL, "a call that is being rendered");
    node_freeze_now(&nodes[0], 9000000);
    stage_until_has(1, run);
    stage_is_automatic = true;
    (void)stage_expect(reply, ERR_OK);
    assert_int_equal(stage_calls("t"), 1);
}

/* The saga is paused while a probe is being rendered. The probe is sent after the pause. */
TEST(a_probe_that_is_not_wanted_any_more_while_it_is_rendered_does_not_leave)
{
    struct saga_id saga;

    begin(ONE("'effect':'once','compensate':{'tool':'undo'},'probe':{'builtin':{'tool':'probe','n':'${ .args.n | . }'},"
              "'outcome':{'completed':'${ .response.done }','absent':'${ .response.absent "
              "}'},'visibility':'1s','give_up_after':'1m'}"));
    saga = start();
    stage_program_ms = 500;
    stage_answer(stage_until_call("t"), (struct outcome){.kind = OUTCOME_UNKNOWN, .error = SLICE("reset")}, NULL);
    stage_run(100);
    stage_until(has_begun, NULL, "a probe that is being rendered");
    (void)stage_expect(stage_change(0, VERB_PAUSE, saga), ERR_OK);
    stage_run(5000);
    assert_int_equal(stage_calls("probe"), 0);
    (void)stage_expect(stage_change(0, VERB_RESUME, saga), ERR_OK);
    stage_complete(stage_until_call("probe"), "{'done':true}");
    stage_until_saga(0, saga, "completed");
}

/* A probe whose settings cannot be rendered says nothing. The outcome stays unknown until a person is asked. */
TEST(a_probe_that_cannot_be_asked_leaves_it_unknown)
{
    struct reply *reply;

    begin(ONE(
        "'effect':'once','compensate':{'tool':'undo'},'probe':{'builtin':{'tool':'probe','n':'${ .args.n | error }'},"
        "'outcome':{'completed':'${ .response.done }','absent':'${ .response.absent "
        "}'},'visibility':'1s','give_up_after':'10s'}"));
    reply = stage_ask(0, engine_call, stage_call_of("r", "t", "{'n':1}", 60000));
    stage_answer(stage_until_call("t"), (struct outcome){.kind = OUTCOME_UNKNOWN, .error = SLICE("reset")}, NULL);
    (void)stage_expect(reply, ERR_AWAITING);
    assert_int_equal(stage_calls("probe"), 0);
    assert_int_equal(stage_calls("t"), 1);
}

/* The engine asks an abandoned call once to settle. An adapter without cancel() settles in its own time. */
TEST(a_call_under_way_at_the_end_is_cancelled_where_its_adapter_can)
{
    static const char *const adapters[] = {"builtin", "exec"};

    for (size_t i = 0; i < COUNT_OF(adapters); i++) {
        char text[512];
        struct staged_call *call;

        (void)snprintf(text, sizeof(text),
                       "{'tools':[{'name':'t','%s':{'tool':'t'},'effect':'read'}]," ONE_STEP("t") "}", adapters[i]);
        begin(text);
        (void)start();
        call = stage_until_call("t");
        node_drain(&nodes[0], 100);
        stage_run(50);
        assert_true(nodes[0].up);
        stage_run(5000);
        if (i == 1) {
            assert_true(nodes[0].up);
            stage_complete(call, "{}");
            stage_run(1000);
        }
        assert_false(nodes[0].up);
        assert_int_equal(call->cancelled, i == 0);
        stage_end();
    }
}

/* A precheck that cannot be rendered is no reason to call blindly, nor to fail for good. */
TEST(a_precheck_that_cannot_be_asked_holds_the_call_up)
{
    struct saga_id saga;

    begin(ONE("'effect':'once','compensate':{'tool':'undo'},'precheck':{'builtin':{'tool':'pre','n':'${ .args.n | "
              "error }'},'done':'${ .response.done }','blocked':'${ .response.no }'}"));
    saga = start();
    stage_run(3000);
    assert_int_equal(stage_calls("pre"), 0);
    assert_int_equal(stage_calls("t"), 0);
    assert_false(json_string_is(json_member(stage_saga(0, saga), "status"), "completed"));
}

/* --- what a compensator is told --- */

TEST(a_compensator_learns_what_it_undoes_where_both_have_one_memory_of_keys)
{
    static const struct {
        const char *forward, *undo;
        bool told;
    } pairs[] = {
        {"'builtin':{'tool':'t','memory':'a'}", "'builtin':{'tool':'undo','memory':'a'}", true},
        {"'builtin':{'tool':'t','memory':'a'}", "'builtin':{'tool':'undo','memory':'b'}", false},
        {"'exec':{'tool':'t','memory':'a'}", "'builtin':{'tool':'undo','memory':'a'}", false},
        {"'builtin':{'tool':'t','memory':'a'}", "'exec':{'tool':'undo','memory':'a'}", false},
    };

    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        char text[1024];
        struct saga_id saga;
        struct staged_call *call;

        (void)snprintf(text, sizeof(text),
                       "{'tools':[{'name':'undo',%s,'effect':'idempotent'},{'name':'t',%s,'effect':'idempotent','"
                       "compensate':{'tool':'undo'}},"
                       "{'name':'no','builtin':{'tool':'no'},'effect':'idempotent','compensate':{'tool':'undo'}}],"
                       "'sagas':[{'name':'s','steps':[{'id':'a','call':'t'},{'id':'b','call':'no'}]}]}",
                       pairs[i].undo, pairs[i].forward);
        begin(text);
        saga = start();
        stage_complete(stage_until_call("t"), "{}");
        stage_answer(stage_until_call("no"), (struct outcome){.kind = OUTCOME_FAILED, .error = SLICE("http-422")},
                     NULL);
        call = stage_until_call("undo");
        assert_int_equal(call->call->undoes.ptr != NULL, pairs[i].told);
        stage_complete(call, "{}");
        stage_until_saga(0, saga, "compensated");
        stage_end();
    }
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
