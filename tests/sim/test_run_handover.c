/* An engine gives a shard away as soon as nothing of the shard is under way. It keeps a shard that does not become
 * quiet. */
#include "run/shard/handover.h"
#include "store/store.h"
#include "tests/sim/stage.h"

static const char definitions[] =
    "{'tools':[{'name':'t','builtin':{'tool':'t'},'effect':'keyed','key':{'window':'1h'},"
    "'terminal':true,'timeout':'1h'},"
    "{'name':'once','builtin':{'tool':'once'},'effect':'once','terminal':true,'timeout':'1h'}],"
    "'sagas':[{'name':'s','steps':[{'id':'a','call':'t','with':{}}]},"
    "{'name':'once','steps':[{'id':'a','call':'once','with':{}}]},"
    "{'name':'sleeps','steps':[{'id':'a','sleep':'1s'},{'id':'b','call':'once','with':{},"
    "'after':['a']}]}]}";

/* --- what the leases say and hear --- */

static uint64_t given; /* bits of the shards that the engine gave away */
static bool is_test;   /* only the test decides what the surplus is */

void __real_leases_give(struct leases *leases, uint32_t shard);
void __wrap_leases_give(struct leases *leases, uint32_t shard);
void __real_handover_surplus(size_t count, void *context);
void __wrap_handover_surplus(size_t count, void *context);

void __wrap_leases_give(struct leases *leases, uint32_t shard)
{
    given |= UINT64_C(1) << shard;
    __real_leases_give(leases, shard);
}

void __wrap_handover_surplus(size_t count, void *context)
{
    if (is_test) {
        __real_handover_surplus(count, context);
    }
}

static void surplus(size_t count)
{
    is_test = true;
    stage_give(0, count);
    is_test = false;
}

static bool is_given(uint32_t shard)
{
    return given >> shard & 1;
}

static struct shard *shard_of(uint32_t number)
{
    return &nodes[0].engine->shards[number];
}

/* Begins an engine with the first `shards` shards. */
static void begin(uint32_t shards, int64_t park_after_ms)
{
    stage_begin(&(struct stage_plan){.definitions = definitions, .node = {.park_after_ms = park_after_ms}});
    for (uint32_t i = shards; i < SHARD_COUNT; i++) {
        stage_lose(0, i);
    }
    given = 0;
}

static struct saga_id begin_saga(const char *name)
{
    struct saga_id id = stage_start(0, name, "{}");

    stage_settle();
    return id;
}

/* --- what becomes of a shard --- */

/* One shard is ours, and a call in it is under way. */
TEST(a_shard_is_kept_when_what_is_under_way_does_not_end)
{
    begin(1, 0);
    (void)begin_saga("s");
    for (int i = 0; i < 8; i++) { /* the engine tries again later, each time after twice as long */
        surplus(1);
        assert_int_equal(shard_of(0)->state, SHARD_GIVING);
        stage_run(3100);
        assert_int_equal(shard_of(0)->state, SHARD_OWNED);
        surplus(1);
        assert_int_equal(shard_of(0)->state, SHARD_OWNED); /* not yet */
        int64_t again_ms = shard_of(0)->keep_until_boot_ms - loop_boot_ms(nodes[0].engine->loop);

        assert_in_range(again_ms, i < 5 ? 9000 << i : 310000, i < 5 ? 10000 << i : 320000);
        stage_run(again_ms + 1);
    }
    assert_false(is_given(0));
    surplus(1);
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    stage_run(100);
    assert_true(is_given(0));
}

TEST(a_shard_is_kept_when_whoever_it_was_for_has_gone_again)
{
    begin(2, 0);
    while (list_empty(&shard_of(0)->sagas) || list_empty(&shard_of(1)->sagas)) {
        (void)begin_saga("s");
    }
    surplus(2);
    assert_int_equal(shard_of(0)->state, SHARD_GIVING);
    assert_int_equal(shard_of(1)->state, SHARD_GIVING);
    surplus(1);
    assert_int_equal((shard_of(0)->state == SHARD_OWNED) + (shard_of(1)->state == SHARD_OWNED), 1);
    surplus(0);
    assert_int_equal((shard_of(0)->state == SHARD_OWNED) + (shard_of(1)->state == SHARD_OWNED), 2);
}

TEST(the_shard_goes_of_which_the_least_is_under_way)
{
    begin(1, 0);
    (void)begin_saga("s");
    stage_gain(0, 1);
    surplus(1);
    stage_settle();
    assert_false(is_given(0));
    assert_true(is_given(1));
}

TEST(no_work_begins_in_a_shard_that_is_being_given)
{
    begin(1, 100000);
    struct saga_id sleeps = begin_saga("sleeps");

    (void)begin_saga("s");
    surplus(1);
    stage_run(2000); /* the saga's sleep is over */
    assert_int_equal(stage_calls(NULL), 1);
    assert_null(strstr(stage_log(sleeps), "step.running"));
    stage_run(1500); /* the shard is kept, and the saga goes on */
    assert_int_equal(shard_of(0)->state, SHARD_OWNED);
    assert_int_equal(stage_calls(NULL), 2);
}

TEST(an_answer_that_is_on_its_way_holds_the_shard)
{
    begin(1, 0);
    stage_hold(STORE_ANSWER_PUT);
    (void)stage_deliver(0, "pause", 0, saga_id_new(5, 0), "{'namespace':'default','actor':'a'}");
    assert_int_equal(stage_held(STORE_ANSWER_PUT), 1);
    surplus(1);
    stage_run(1000);
    assert_false(is_given(0));
    stage_let(STORE_ANSWER_PUT);
    stage_run(100);
    assert_true(is_given(0));
}

TEST(a_question_to_the_database_for_a_saga_holds_its_shard)
{
    static const enum store_call kinds[] = {STORE_APPEND, STORE_PARK};

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        begin(1, 1000);
        struct saga_id id = begin_saga("once");

        stage_answer_first(OUTCOME_UNKNOWN, "timeout", NULL); /* a person is asked */
        stage_run(500);
        stage_hold(kinds[i]);
        (void)stage_change(0, VERB_PAUSE, id);
        stage_run(5000);
        assert_true(stage_held(kinds[i]) > 0);
        surplus(1);
        stage_run(1000);
        assert_false(is_given(0));
        stage_release(kinds[i]);
        stage_run(100);
        assert_true(is_given(0));
        stage_end();
    }
}

TEST(a_shard_that_is_still_being_loaded_is_given_at_once_by_an_engine_that_leaves)
{
    begin(1, 0);
    (void)begin_saga("s"); /* the engine waits for this saga */
    stage_hold(STORE_LOAD_SHARD);
    stage_gain(0, 7);
    node_drain(&nodes[0], 5000);
    stage_settle();
    assert_true(is_given(7));
    assert_false(is_given(0));
    stage_gain(0, 8); /* the engine asked for the shard before it began to leave */
    assert_true(is_given(8));
    stage_release(STORE_LOAD_SHARD);
    surplus(3); /* the shards are already being given away */
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    stage_run(100);
    assert_false(nodes[0].up);
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
