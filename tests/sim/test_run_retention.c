/* How long the calls of a run are kept: for as long as --retention says after the last of them, repeats included. */
#include "run/saga/summon.h"
#include "tests/sim/pg.h"
#include "tests/sim/stage.h"

#define MINUTE_MS (INT64_C(60) * 1000)

static const char definitions[] =
    "{'tools':[{'name':'undo','builtin':{'tool':'undo'},'effect':'idempotent'},"
    "{'name':'pay','builtin':{'tool':'pay'},'effect':'keyed','key':{'window':'1h'},'compensate':{'tool':'undo'}},"
    "{'name':'bet','builtin':{'tool':'bet'},'effect':'once','compensate':{'tool':'undo'}}],"
    "'sagas':[]}";

static void ten_minutes(struct engine_options *options)
{
    options->retention = "10m";
}

static void ten_minutes_elsewhere(struct engine_options *options)
{
    options->retention = "elsewhere=10m";
}

static void begin(void (*tweak)(struct engine_options *options))
{
    stage_begin(&(struct stage_plan){.definitions = definitions, .is_automatic = true, .tweak = tweak});
}

/* Each call is of another turn of its conversation, so that the loop guard has nothing against it. */
static void call_is_answered(const char *tool)
{
    struct engine_request *request = stage_call_of("r", tool, "{}", 60000);

    request->in.call.conversation_turn = arena_printf(&world->arena, "%u", stage_asked(STORE_APPEND));
    (void)stage_expect(stage_ask(0, engine_call, request), ERR_OK);
}

TEST(a_run_is_kept_for_so_long_after_its_last_call_also_where_that_was_a_repeat)
{
    begin(ten_minutes);
    call_is_answered("pay");
    for (int i = 0; i < 4; i++) {
        stage_run(7 * MINUTE_MS);
        call_is_answered("pay");
        assert_int_equal(stage_calls("pay"), 1);
    }
    stage_run(12 * MINUTE_MS);
    call_is_answered("pay"); /* nothing is known of the call any more, so it is a new one */
    assert_int_equal(stage_calls("pay"), 2);
}

TEST(a_run_whose_namespace_has_no_retention_is_kept)
{
    begin(ten_minutes_elsewhere);
    call_is_answered("pay");
    stage_run(100 * MINUTE_MS);
    call_is_answered("pay");
    assert_int_equal(stage_calls("pay"), 1);
}

/* The setting was longer when the run went to rest, and there is none now. */
TEST(a_run_is_kept_as_the_setting_says_when_its_time_has_come)
{
    begin(ten_minutes);
    call_is_answered("pay");
    stage_run(1 * MINUTE_MS);
    nodes[0].engine->options.retention = NULL;
    stage_run(100 * MINUTE_MS);
    call_is_answered("pay");
    assert_int_equal(stage_calls("pay"), 1);
}

/* While nobody knows whether a call took effect, the run does not rest. */
TEST(a_run_with_a_question_stays)
{
    begin(ten_minutes);
    stage_says("bet", OUTCOME_UNKNOWN, "timeout", NULL);
    (void)stage_expect(stage_ask(0, engine_call, stage_call_of("r", "bet", "{}", 60000)), ERR_AWAITING);
    stage_run(100 * MINUTE_MS);
    (void)stage_expect(stage_ask(0, engine_call, stage_call_of("r", "bet", "{}", 60000)), ERR_AWAITING);
    assert_int_equal(stage_calls("bet"), 1);
}

/* Its answer might be written after the look at its last turn. The next repeat would then be done a second time. */
TEST(no_call_reaches_a_run_while_it_is_removed)
{
    struct reply *asked;

    begin(ten_minutes);
    call_is_answered("pay");
    stage_hold(STORE_FORGET);
    stage_run(12 * MINUTE_MS);
    assert_int_equal(stage_held(STORE_FORGET), 1);
    asked = stage_ask(0, engine_call, stage_call_of("r", "pay", "{}", 60000));
    stage_settle();
    (void)stage_expect(asked, ERR_BUSY);
    assert_int_equal(stage_calls("pay"), 1);
    stage_release(STORE_FORGET);
    stage_settle();
    call_is_answered("pay");
    assert_int_equal(stage_calls("pay"), 2);
}

/* The owner was told that the run is due before the repeat came. */
TEST(a_repeat_that_comes_just_before_the_removal_keeps_the_run)
{
    begin(ten_minutes);
    call_is_answered("pay");
    stage_hold(STORE_DUE_TAKE);
    stage_run(12 * MINUTE_MS);
    call_is_answered("pay");
    stage_release(STORE_DUE_TAKE);
    stage_run(5 * MINUTE_MS);
    call_is_answered("pay");
    assert_int_equal(stage_calls("pay"), 1);
}

TEST(a_removal_that_the_database_refuses_leaves_the_run_usable)
{
    begin(ten_minutes);
    call_is_answered("pay");
    stage_refuse(STORE_FORGET, ERR_STORE, 1);
    stage_run(10 * MINUTE_MS + 20000);
    assert_int_equal(stage_asked(STORE_FORGET), 1);
    call_is_answered("pay");
    assert_int_equal(stage_calls("pay"), 1);
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
