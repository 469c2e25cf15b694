/* Templates with programs (evaluation.c, rendering.c): their values, and what happens when they fail or come too
 * late. */
#include "tests/sim/stage.h"

#include <stdio.h>

#include "base/json.h"
#include "run/call/activity.h"
#include "run/engine_state.h"

#define TOOLS                                                                                                          \
    "'tools':[{'name':'undo','builtin':{'tool':'undo'},'effect':'idempotent'},"                                        \
    "{'name':'either','builtin':{'tool':'either'},'effect':{'if':'${ .args.safe | . }','then':'read','else':'once'},"  \
    "'compensate':{'tool':'undo'}},"                                                                                   \
    "{'name':'broken','builtin':{'tool':'broken'},'effect':{'if':'${ .args.safe | error "                              \
    "}','then':'read','else':'once'},"                                                                                 \
    "'compensate':{'tool':'undo'}},"                                                                                   \
    "{'name':'look','builtin':{'tool':'look'},'effect':'read'}]"
#define SAGA(members) "{" TOOLS ",'sagas':[{'name':'s'," members "}]}"

static void begin(const char *definitions)
{
    stage_begin(&(struct stage_plan){.definitions = definitions, .is_automatic = true});
}

static struct saga_id start(const char *input)
{
    return stage_start(0, "s", input);
}

static struct slice step_member(struct saga_id saga, size_t step, const char *member)
{
    return json_trim(json_member(json_element(json_member(stage_saga(0, saga), "steps"), step), member));
}

/* The saga ends compensated or waits for a person. In either case it has not gone on. */
static void stops(const char *definitions, const char *input)
{
    struct saga_id saga;
    struct slice shown;

    begin(definitions);
    saga = start(input);
    stage_run(5000);
    shown = stage_saga(0, saga);
    if (json_string_is(json_member(shown, "status"), "completed")) {
        fail_msg("it went on: %.*s", SLICE_ARG(shown));
    }
    assert_int_equal(stage_calls("look"), 0);
    stage_end();
}

/* --- arguments, scopes and conditions --- */

TEST(arguments_that_are_programs_are_rendered_before_the_call)
{
    struct saga_id saga;
    struct staged_call *call;

    begin(SAGA("'steps':[{'id':'a','call':'look','with':{'n':'${ .input.n | . }'},'scope':'of-${ .input.n | . }'}]"));
    stage_is_automatic = false;
    saga = start("{'n':7}");
    call = stage_until_call("look");
    assert_true(slice_equal(call->args, stage_json("{'n':7}")));
    stage_complete(call, "{}");
    stage_until_saga(0, saga, "completed");
}

TEST(arguments_or_a_scope_that_cannot_be_had_stop_the_saga)
{
    stops(SAGA("'steps':[{'id':'a','call':'look','with':{'n':'${ .input.n | error }'}}]"), "{'n':1}");
    stops(SAGA("'steps':[{'id':'a','call':'look','with':{'n':'${ .input.n | . }'},'scope':'${ .input.n | error }'}]"),
          "{'n':1}");
    stops(SAGA("'steps':[{'id':'a','call':'look','when':'${ .input.n | error }'}]"), "{'n':1}");
}

TEST(a_step_whose_condition_does_not_hold_is_skipped)
{
    struct saga_id saga;

    begin(SAGA("'steps':[{'id':'a','call':'look','when':'${ .input.yes | . }'},{'id':'b','call':'look','when':'${ "
               ".input.no | . }'}]"));
    saga = start("{'yes':true,'no':false}");
    stage_until_saga(0, saga, "completed");
    assert_int_equal(stage_calls("look"), 1);
    assert_true(slice_is(step_member(saga, 1, "status"), "\"skipped\""));
}

/* --- the class of a call --- */

TEST(a_tool_of_two_classes_gets_the_one_that_its_arguments_say)
{
    struct saga_id saga;

    begin(SAGA("'steps':[{'id':'a','call':'either','with':{'safe':'${ .input.safe | . }'}}]"));
    saga = start("{'safe':true}");
    stage_until_saga(0, saga, "completed");
    saga = start("{'safe':false}");
    stage_until_saga(0, saga, "completed");
    assert_int_equal(stage_calls("either"), 2);
    stage_end();
    begin(SAGA(
        "'steps':[{'id':'a','call':'either','when':'${ .input.safe | . }'}]")); /* the condition has no arguments */
    saga = start("{'safe':true}");
    stage_until_saga(0, saga, "completed");
    assert_int_equal(stage_calls("either"), 1);
}

/* When the condition fails, the stricter class holds: a call whose answer is lost is not made again. */
TEST(a_class_that_cannot_be_told_is_the_stricter_one)
{
    struct saga_id saga;

    begin(SAGA("'steps':[{'id':'a','call':'broken','with':{'safe':'${ .input.safe | . }'}}]"));
    stage_is_automatic = false;
    saga = start("{'safe':true}");
    stage_answer(stage_until_call("broken"), (struct outcome){.kind = OUTCOME_UNKNOWN, .error = SLICE("reset")}, NULL);
    stage_run(60000);
    assert_int_equal(stage_calls("broken"), 1);
    assert_int_equal(json_type(json_member(stage_saga(0, saga), "escalation")), JSON_NUMBER);
    stage_end();
    begin(SAGA("'steps':[{'id':'a','call':'look'}]"));
    stage_is_automatic = false;
    (void)stage_ask(0, engine_call, stage_call_of("r", "broken", "{'safe':true}", 0));
    stage_answer(stage_until_call("broken"), (struct outcome){.kind = OUTCOME_UNKNOWN, .error = SLICE("reset")}, NULL);
    stage_run(60000);
    assert_int_equal(stage_calls("broken"), 1);
}

/* --- locks --- */

TEST(the_keys_of_locks_may_be_numbers_and_texts)
{
    struct saga_id first, second;

    begin(SAGA("'locks':['${ .input.n | . }','x-${ .input.n | . }'],'steps':[{'id':'a','call':'look'}]"));
    stage_is_automatic = false;
    first = start("{'n':7}");
    second = start("{'n':7}");
    (void)stage_until_call("look");
    stage_run(2000);
    assert_int_equal(stage_calls("look"), 1); /* the second call waits for the first */
    stage_complete(stage_call("look"), "{}");
    stage_complete(stage_until_call("look"), "{}");
    stage_until_saga(0, first, "completed");
    stage_until_saga(0, second, "completed");
}

TEST(keys_of_locks_that_cannot_be_had_stop_the_saga)
{
    static char large[20000];

    stops(SAGA("'locks':['${ .input.n | error }'],'steps':[{'id':'a','call':'look'}]"), "{'n':1}");
    stops(SAGA("'locks':['${ .input.n | . }'],'steps':[{'id':'a','call':'look'}]"), "{'n':{'x':1}}");
    memset(large, 'x', sizeof(large) - 1);
    memcpy(large, "{'n':'", 6);
    memcpy(large + sizeof(large) - 3, "'}", 2);
    stage_begin(
        &(struct stage_plan){.definitions = SAGA("'locks':['${ .input.n | . }','${ .input.n | . }','${ .input.n | . "
                                                 "}','${ .input.n | . }'],'steps':[{'id':'a','call':'look'}]")});
    nodes[0].engine->options.payload_bytes_max = 40000;
    {
        struct saga_id saga = start(large);

        stage_run(5000);
        assert_int_equal(stage_calls("look"), 0);
        assert_false(json_string_is(json_member(stage_saga(0, saga), "status"), "completed"));
    }
}

TEST(arguments_larger_than_allowed_are_not_sent)
{
    static const char *const sagas[] = {
        SAGA("'steps':[{'id':'a','call':'look','with':['${ .input.n }','${ .input.n }']}]"),
        SAGA("'steps':[{'id':'a','call':'look','with':['${ .input.n | . }','${ .input.n | . }']}]")};

    for (size_t i = 0; i < COUNT_OF(sagas); i++) {
        struct saga_id saga;
        struct slice error;

        begin(sagas[i]);
        nodes[0].engine->options.payload_bytes_max = 60;
        saga = start("{'n':'0123456789012345678901234567890123456789'}");
        stage_until_saga(0, saga, "compensated");
        assert_int_equal(stage_calls("look"), 0);
        error = step_member(saga, 0, "error");
        assert_true(json_string_is(json_member(error, "code"), "arguments"));
        assert_true(json_string_is(json_member(error, "detail"),
                                   "the arguments have 87 bytes, and at most 60 are allowed: pass "
                                   "references instead of large values"));
        stage_end();
    }
}

/* --- the end --- */

#define FOLLOWED                                                                                                       \
    "{" TOOLS ",'sagas':[{'name':'next','steps':[{'id':'a','call':'look'}]},{'name':'s','steps':[{'id':'a','call':'"   \
    "look'}],%s}]}"

TEST(an_output_that_cannot_be_had_does_not_undo_what_is_done)
{
    char text[2048];
    struct saga_id saga;

    begin(SAGA("'output':'${ .input.n | error }','steps':[{'id':'a','call':'look'}]"));
    saga = start("{'n':1}");
    stage_run(5000);
    assert_int_equal(stage_calls("look"), 1);
    assert_false(json_string_is(json_member(stage_saga(0, saga), "status"), "compensated"));
    stage_end();
    (void)snprintf(text, sizeof(text), FOLLOWED,
                   "'output':'${ .input.n | error }','then':[{'saga':'next','input':{'n':'${ .input.n }'}}]");
    begin(text);
    (void)start("{'n':1}");
    stage_run(5000);
    assert_true(stage_calls("look") >= 1);
}

/* Of several followers, one that cannot be started is left out and reported; the others are started. */
TEST(a_saga_that_follows_is_begun_unless_its_input_or_id_cannot_be_had)
{
    static const struct {
        const char *then;
        uint32_t calls;
    } all[] = {
        {"'then':[{'saga':'next','input':{'n':'${ .input.n | . }'}}]", 2},
        {"'then':[{'saga':'next','id':'after-${ .input.n | . }'}]", 2},
        {"'then':[{'saga':'next','input':{'n':'${ .input.n | error }'}}]", 1},
        {"'then':[{'saga':'next','id':'${ .input.n | error }'}]", 1},
    };

    for (size_t i = 0; i < COUNT_OF(all); i++) {
        char text[2048];

        (void)snprintf(text, sizeof(text), FOLLOWED, all[i].then);
        begin(text);
        (void)start("{'n':1}");
        stage_run(5000);
        assert_int_equal(stage_calls("look"), all[i].calls);
        stage_end();
    }
}

TEST(followers_whose_inputs_are_too_large_are_not_begun)
{
    static char large[20000];
    char text[8192], *at = text;
    struct saga_id saga;

    at += snprintf(at, sizeof(text),
                   "{" TOOLS ",'sagas':[{'name':'next','steps':[{'id':'a','call':'look'}]},{'name':'s','steps':[{'id':'"
                   "a','call':'look'}],'then':[");
    for (int i = 0; i < 8; i++) {
        at += snprintf(at, sizeof(text) - (size_t)(at - text),
                       "%s{'saga':'next','input':{'a':'${ .input.n | . }','b':'${ .input.n }','c':'${ .input.n "
                       "}','d':'${ .input.n }','e':'${ .input.n }','f':'${ .input.n }'}}",
                       i ? "," : "");
    }
    (void)snprintf(at, sizeof(text) - (size_t)(at - text), "]}]}");
    memset(large, 'x', sizeof(large) - 1);
    memcpy(large, "{'n':'", 6);
    memcpy(large + sizeof(large) - 3, "'}", 2);
    begin(text);
    nodes[0].engine->options.payload_bytes_max = 20100;
    saga = start(large);
    stage_until_saga(0, saga, "completed");
    stage_run(2000);
    assert_int_equal(stage_calls("look"), 1);
}

/* --- too late --- */

static bool is_evaluating(void *context)
{
    (void)context;
    return renderings_under_way(nodes[0].engine) > 0;
}

/* An evaluation is forgotten when the saga leaves memory. The next owner evaluates again. */
TEST(an_evaluation_that_loses_its_shard_is_made_by_the_next_owner)
{
    static const char *const sagas[] = {
        SAGA("'steps':[{'id':'a','call':'look','with':{'n':'${ .input.n | . }'}}]"),
        SAGA("'steps':[{'id':'a','call':'either','with':{'safe':'${ .input.n | . "
             "}'}},{'id':'b','call':'look','after':['a']}]"),
        SAGA("'steps':[{'id':'a','call':'look','when':'${ .input.n | . }'}]"),
        SAGA("'locks':['k-${ .input.n | . }'],'steps':[{'id':'a','call':'look'}]"),
    };

    for (size_t i = 0; i < COUNT_OF(sagas); i++) {
        struct saga_id saga;

        stage_begin(&(struct stage_plan){
            .definitions = sagas[i], .node_count = 2, .node = {.lease_ms = 2000}, .is_automatic = true});
        stage_program_ms = 12000;
        saga = start("{'n':true}");
        stage_until(is_evaluating, NULL, "an evaluation");
        stage_program_ms = 100;
        nodes[0].cut = true;
        stage_run(8000);
        nodes[0].cut = false;
        stage_run(8000);
        stage_until_saga(1, saga, "completed");
        assert_int_equal(stage_calls("look"), 1);
        stage_end();
    }
}

/* The saga is paused during the evaluation. The value is not used, and the saga evaluates again when it goes on. */
TEST(an_evaluation_in_a_pause_is_made_again_after_it)
{
    static const char *const sagas[] = {
        SAGA("'steps':[{'id':'a','call':'look','with':{'n':'${ .input.n | . }'}}]"),
        SAGA("'steps':[{'id':'a','call':'either','with':{'safe':'${ .input.n | . "
             "}'}},{'id':'b','call':'look','after':['a']}]"),
        SAGA("'steps':[{'id':'a','call':'look','when':'${ .input.n | . }'}]"),
    };

    for (size_t i = 0; i < COUNT_OF(sagas); i++) {
        struct saga_id saga;

        begin(sagas[i]);
        stage_program_ms = 500;
        saga = start("{'n':true}");
        stage_until(is_evaluating, NULL, "an evaluation");
        (void)stage_expect(stage_change(0, VERB_PAUSE, saga), ERR_OK);
        stage_run(3000);
        assert_int_equal(stage_calls("look") + stage_calls("either"), 0);
        (void)stage_expect(stage_change(0, VERB_RESUME, saga), ERR_OK);
        stage_until_saga(0, saga, "completed");
        assert_int_equal(stage_calls("look"), 1);
        stage_end();
    }
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
