/* Runs that went to rest and are called again: from what the engine keeps of them (rests.c), or from the database. */
#include "tests/sim/stage.h"

static const char definitions[] =
    "{'tools':[{'name':'undo','builtin':{'tool':'undo'},'effect':'idempotent'},"
    "{'name':'pay','builtin':{'tool':'pay'},'effect':'keyed','key':{'window':'10m'},'compensate':{'tool':'undo'}},"
    "{'name':'send','builtin':{'tool':'send'},'effect':'keyed','key':{'window':'10m'},'compensate':{'tool':'undo'}}]}";

static void begin_with(uint32_t nodes_wanted, void (*tweak)(struct engine_options *options))
{
    stage_begin(&(struct stage_plan){.definitions = definitions,
                                     .node_count = nodes_wanted,
                                     .node = {.lease_ms = 2000},
                                     .tweak = tweak,
                                     .is_automatic = true});
}

static struct reply *call_at(uint32_t node, const char *run, const char *tool)
{
    return stage_ask(node, engine_call, stage_call_of(run, tool, "{'a':1}", 10000));
}

/* Makes the call at a node, which has the shard or asks who has it, and waits until its run has left memory. */
static void call_and_rest(uint32_t node, const char *run, const char *tool)
{
    (void)stage_expect(call_at(node, run, tool), ERR_OK);
    stage_run(40000);
}

static void assert_repeat(uint32_t node, const char *run, const char *tool)
{
    assert_true(stage_expect(call_at(node, run, tool), ERR_OK)->call.replayed);
}

TEST(a_repeat_to_a_run_that_went_to_rest_here_reads_nothing)
{
    uint32_t read;

    begin_with(1, NULL);
    call_and_rest(0, "r", "pay");
    read = stage_asked(STORE_READ_RUN);
    for (int i = 0; i < 3; i++) {
        struct engine_request *request = stage_call_of("r", "pay", "{'a':1}", 10000);

        request->in.call.conversation_turn = i ? SLICE("later") : SLICE("soon");
        assert_true(stage_expect(stage_ask(0, engine_call, request), ERR_OK)->call.replayed);
        stage_run(40000);
    }
    assert_int_equal(stage_asked(STORE_READ_RUN), read);
    assert_int_equal(stage_calls("pay"), 1);
}

/* The state is that of the last turn, also where the run was called anew after its rest. */
TEST(a_run_that_was_called_anew_is_kept_as_it_is_then)
{
    begin_with(1, NULL);
    call_and_rest(0, "r", "pay");
    call_and_rest(0, "r", "send");
    assert_repeat(0, "r", "send");
    assert_repeat(0, "r", "pay");
    assert_int_equal(stage_calls(NULL), 2);
}

/* Another engine had the shard meanwhile and took a call. What was kept from before is not believed: the log would
 * refuse what follows from it. */
TEST(a_state_from_before_another_engine_had_the_shard_is_not_used)
{
    const char *run;
    uint32_t appended;

    begin_with(2, NULL);
    run = stage_run_at(0);
    call_and_rest(0, run, "pay");
    node_freeze_now(&nodes[0], 8000000);
    stage_until_has(1, run);
    stage_until_lost(0, run);
    call_and_rest(1, run, "send");
    node_kill(&nodes[1]);
    stage_until_has(0, run);
    appended = stage_asked(STORE_APPEND);
    assert_repeat(0, run, "send");
    assert_int_equal(stage_asked(STORE_APPEND), appended + 1);
    assert_int_equal(stage_calls("send"), 1);
    assert_int_equal(stage_calls("pay"), 1);
}

static void keep_shortly(struct engine_options *options)
{
    options->retention = "1m";
}

/* The run is removed while its state is kept. The same call is then a new one, as after a restart. */
TEST(a_run_that_is_removed_is_answered_from_memory_no_more)
{
    begin_with(1, keep_shortly);
    call_and_rest(0, "r", "pay");
    assert_repeat(0, "r", "pay");
    stage_run(180000);
    assert_false(stage_expect(call_at(0, "r", "pay"), ERR_OK)->call.replayed);
    assert_int_equal(stage_calls("pay"), 2);
}

static void keep_one(struct engine_options *options)
{
    options->rests_bytes_max = 800; /* a state has some 300 bytes, and what belongs to it 200 */
}

static void keep_none(struct engine_options *options)
{
    options->rests_bytes_max = 0;
}

/* What does not fit is read, the one first that nobody has asked for the longest. */
TEST(only_as_much_is_kept_as_may_be)
{
    uint32_t read;

    begin_with(1, keep_one);
    call_and_rest(0, "r1", "pay");
    call_and_rest(0, "r2", "pay");
    read = stage_asked(STORE_READ_RUN);
    assert_repeat(0, "r2", "pay");
    assert_int_equal(stage_asked(STORE_READ_RUN), read);
    assert_repeat(0, "r1", "pay");
    assert_int_equal(stage_asked(STORE_READ_RUN), read + 1);
    stage_end();

    begin_with(1, keep_none);
    call_and_rest(0, "r1", "pay");
    read = stage_asked(STORE_READ_RUN);
    assert_repeat(0, "r1", "pay");
    assert_int_equal(stage_asked(STORE_READ_RUN), read + 1);
    assert_int_equal(stage_calls("pay"), 1);
}

/* The database refuses the turn of a repeat, and what it has of the run is asked of it. */
TEST(after_a_turn_that_was_not_written_the_run_is_read)
{
    uint32_t read;

    begin_with(1, NULL);
    call_and_rest(0, "r", "pay");
    stage_refuse(STORE_APPEND, ERR_TOO_LARGE, 1);
    (void)stage_wait(call_at(0, "r", "pay"));
    stage_run(40000);
    read = stage_asked(STORE_READ_RUN);
    assert_repeat(0, "r", "pay");
    assert_int_equal(stage_asked(STORE_READ_RUN), read + 1);
    assert_int_equal(stage_calls("pay"), 1);
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
