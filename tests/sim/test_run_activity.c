/*
 * The activities that a saga wants, while places are short, shards are given away and the engine leaves (activity.c).
 * Nothing begins that the next owner will begin, nothing that waits is forgotten, and nothing is sent twice.
 */
#include "run/shard/shard.h"
#include "tests/sim/stage.h"

#include <stdio.h>

#include "base/json.h"
#include "run/engine_state.h"

#define TOOLS                                                                                                          \
    "'tools':[{'name':'undo','builtin':{'tool':'undo'},'effect':'idempotent'},"                                        \
    "{'name':'slow_undo','builtin':{'tool':'slow_undo'},'effect':'idempotent','concurrency':1},"                       \
    "{'name':'pay','builtin':{'tool':'pay'},'effect':'keyed','key':{'window':'1d'},'compensate':{'tool':'undo'}},"     \
    "{'name':'rent','builtin':{'tool':'rent'},'effect':'keyed','key':{'window':'1d'},'compensate':{'tool':'slow_undo'" \
    "}},"                                                                                                              \
    "{'name':'no','builtin':{'tool':'no'},'effect':'idempotent','compensate':{'tool':'undo'}},"                        \
    "{'name':'ask','builtin':{'tool':'ask'},'effect':'once','compensate':{'tool':'undo'}},"                            \
    "{'name':'one','builtin':{'tool':'one'},'effect':'keyed','key':{'window':'1d'},'compensate':{'tool':'undo'},'"     \
    "concurrency':1},"                                                                                                 \
    "{'name':'one_once','builtin':{'tool':'one_once'},'effect':'once','compensate':{'tool':'undo'},'concurrency':2},"  \
    "{'name':'child','exec':{'tool':'child'},'effect':'read','timeout':'10m'},"                                        \
    "{'name':'seen','builtin':{'tool':'seen'},'effect':'once','compensate':{'tool':'undo'},'probe':{"                  \
    "'builtin':{'tool':'probe'},'outcome':{'completed':'${ .response.done }','absent':'${ .response.absent }'},"       \
    "'visibility':'1s','give_up_after':'1h'}},"                                                                        \
    "{'name':'judged','builtin':{'tool':'judged'},'effect':'read','outcome':{'completed':'${ .response.ok | . }'}},"   \
    "{'name':'bent','builtin':{'tool':'bent','at':'${ .args.n | error }'},'effect':'read'},"                           \
    "{'name':'look','builtin':{'tool':'look'},'effect':'read','timeout':'10m'}]"
#define STEP(saga, tool) "{'name':'" saga "','steps':[{'id':'a','call':'" tool "'}]}"
/* clang-format off */
#define ALL \
    "{" TOOLS ",'sagas':[" STEP("look", "look") "," STEP("pay", "pay") "," STEP("ask", "ask") "," \
    STEP("bent", "bent") "," STEP("child", "child") "," STEP("one", "one") "," STEP("one_once", "one_once") "," \
    STEP("judged", "judged") "," STEP("seen", "seen") "," STEP("rent", "rent") "," \
    "{'name':'undone','steps':[{'id':'a','call':'pay'},{'id':'b','call':'no','after':['a']}]}," \
    "{'name':'returned','steps':[{'id':'a','call':'rent'},{'id':'b','call':'no','after':['a']}]}," \
    "{'name':'both','steps':[{'id':'a','call':'look','after':[]},{'id':'b','call':'one_once','after':[]}]}," \
    "{'name':'two','steps':[{'id':'a','call':'pay','after':[]},{'id':'b','call':'ask','after':[]}]}," \
    "{'name':'naps','steps':[{'id':'a','call':'look','after':[]},{'id':'b','sleep':'4s','after':[]},{'id':'c'," \
    "'call':'pay','after':['b']}]}," \
    "{'name':'pair','steps':[{'id':'a','call':'look','after':[]},{'id':'b','call':'pay','after':[]}]}," \
    "{'name':'then','steps':[{'id':'a','call':'look','after':[]},{'id':'b','call':'pay'," \
    "'after':['a'],'with':{'n':'${ .input.n | . }'}},{'id':'c','call':'child','after':[]}]}]}"
/* clang-format on */

static struct saga_id start(const char *saga)
{
    return stage_start(0, saga, "{'n':1}");
}

static void refuse(const char *tool)
{
    stage_answer(stage_until_call(tool), (struct outcome){.kind = OUTCOME_FAILED, .error = SLICE("http-422")}, NULL);
}

static struct stage_plan narrow(uint32_t calls_max)
{
    return (struct stage_plan){.definitions = ALL, .node = {.calls_max = calls_max, .lease_ms = 60000}};
}

/* --- a shard that is being given --- */

static void give_all(void)
{
    stage_give(0, SHARD_COUNT);
}

/* The intent became durable, and at once the shard is to go. The call is not sent, the log says so, and the next owner
 * sends it. */
TEST(a_call_that_may_be_sent_once_is_not_sent_by_an_engine_that_gives_its_shard)
{
    struct saga_id saga;

    stage_begin(&(struct stage_plan){.definitions = ALL, .is_automatic = true});
    stage_commit(2, COMMIT_OK, give_all);
    saga = start("ask");
    stage_until_saga(0, saga, "completed");
    assert_int_equal(stage_calls("ask"), 1);
}

static bool is_giving(void *context)
{
    (void)context;
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        if (nodes[0].engine->shards[i].state == SHARD_GIVING) {
            return true;
        }
    }
    return false;
}

/* Starts one saga in each shard, all with a call under way. Then another engine comes, and half of the shards are to be
 * given to it. */
static void begin_everywhere_and_join(const char *saga, struct saga_id ids[SHARD_COUNT])
{
    stage_begin(&(struct stage_plan){.definitions = ALL, .node = {.lease_ms = 3000, .calls_max = 256}});
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        ids[i] = start(saga);
    }
    node_start(&nodes[1], &stage_options);
    stage_until(is_giving, NULL, "shards that are being given");
}

static void complete_everywhere(const struct saga_id ids[SHARD_COUNT])
{
    stage_is_automatic = true;
    stage_complete_all("look", "{'ok':true}");
    stage_complete_all("child", "{'ok':true}");
    stage_complete_all("pay", "{'ok':true}");
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        stage_until_saga(0, ids[i], "completed");
    }
    assert_int_equal(stage_calls("pay"), SHARD_COUNT);
    assert_int_equal(stage_calls("look"), SHARD_COUNT);
}

/* Timers that come due meanwhile, and the work that they would begin, wait for the next owner or until the shard is
 * kept. */
TEST(a_timer_that_is_due_while_its_shard_is_given_goes_on_when_it_is_kept)
{
    struct saga_id ids[SHARD_COUNT];

    begin_everywhere_and_join("naps", ids);
    while (stage_calls("pay") == 0) {
        stage_run(10);
    }
    stage_run(100);
    assert_in_range(stage_calls("pay"), 1, SHARD_COUNT - 1); /* no call of the shards that are given has a place */
    stage_run(6000);
    assert_int_equal(stage_calls("pay"), SHARD_COUNT);
    complete_everywhere(ids);
}

/* Work that follows from a result does not begin, either. */
TEST(the_next_step_waits_while_its_shard_is_given)
{
    struct saga_id ids[SHARD_COUNT];

    begin_everywhere_and_join("then", ids);
    stage_complete_all("look", "{'ok':true}");
    stage_run(1000);
    assert_in_range(stage_calls("pay"), 1, SHARD_COUNT - 1);
    stage_run(6000);
    assert_int_equal(stage_calls("pay"), SHARD_COUNT);
    complete_everywhere(ids);
}

/* A call in the queue of a shard that is given away waits, and does not hold up the calls behind it. */
TEST(a_call_that_waits_for_a_place_stays_while_its_shard_is_given)
{
    struct saga_id ids[SHARD_COUNT];

    stage_begin(&(struct stage_plan){.definitions = ALL, .node = {.lease_ms = 3000, .calls_max = SHARD_COUNT + 8}});
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        ids[i] = start("pair");
    }
    stage_run(100);
    assert_int_equal(stage_calls("look") + stage_calls("pay"), SHARD_COUNT + 8);
    node_start(&nodes[1], &stage_options);
    stage_until(is_giving, NULL, "shards that are being given");
    (void)start("look"); /* this start makes the engine check how long calls wait for a place */
    stage_run(200);
    (void)start("look");
    for (int i = 0; i < 8; i++) {
        stage_complete(stage_call(stage_call("pay") ? "pay" : "look"), "{}");
    }
    stage_run(6000);
    stage_is_automatic = true;
    stage_complete_all("look", "{'ok':true}");
    stage_complete_all("pay", "{'ok':true}");
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        stage_until_saga(0, ids[i], "completed");
    }
    assert_int_equal(stage_calls("pay"), SHARD_COUNT);
}

/* Calls, compensations and probes wait for a place, each in a shard that is given away. None is made twice, and none is
 * forgotten. */
TEST(work_that_waits_in_shards_that_go_is_done_by_their_next_owner)
{
    static const char *const names[] = {"pay", "undone", "seen", "ask", "one", "pay", "look"};
    struct stage_plan plan = narrow(64);
    struct saga_id sagas[COUNT_OF(names)], hung;
    uint32_t pays, undos;

    stage_begin(&plan);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        sagas[i] = start(names[i]);
        if (i == 1) {
            stage_run(50);
            while (!stage_call("no")) {
                stage_complete_all("pay", "{'ok':true}");
                stage_run(10);
            }
        } else if (i == 2) {
            stage_answer(stage_until_call("seen"), (struct outcome){.kind = OUTCOME_UNKNOWN, .error = SLICE("reset")},
                         NULL);
        }
        if (i == 2) {
            stage_run(100);
            hung = start("child"); /* the only place is taken from now on */
            (void)stage_until_call("child");
            nodes[0].engine->options.calls_max = 1;
            refuse("no"); /* an undo waits for a place */
        }
    }
    stage_run(4000); /* the probe waits for a place */
    pays = stage_calls("pay");
    undos = stage_calls("undo");
    assert_int_equal(undos, 0);
    give_all();
    stage_run(1000);
    assert_int_equal(stage_calls("pay"), pays);
    nodes[0].engine->options.calls_max = 64;
    stage_is_automatic = true;
    stage_complete_all("child", "{'ok':true}");
    stage_run(10000);
    stage_is_automatic = false;
    stage_complete_all("probe", "{'done':true}");
    stage_is_automatic = true;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (i != 2) {
            stage_until_saga(0, sagas[i], i == 1 ? "compensated" : "completed");
        }
    }
    stage_until_saga(0, hung, "completed");
    assert_int_equal(stage_calls("ask"), 1);
    assert_int_equal(stage_calls("undo"), 1);
}

/* --- an engine that leaves --- */

TEST(a_call_that_waits_for_a_place_when_the_engine_leaves_was_never_sent)
{
    static const char *const names[] = {"pay", "ask", "look", "one", "one_once"};
    struct stage_plan plan = narrow(64);
    struct saga_id sagas[COUNT_OF(names)], undone, hung;

    stage_begin(&plan);
    undone = start("undone");
    stage_complete(stage_until_call("pay"), "{}");
    (void)stage_until_call("no");
    hung = start("child");
    (void)stage_until_call("child");
    nodes[0].engine->options.calls_max = 1;
    refuse("no");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        sagas[i] = start(names[i]);
    }
    stage_run(500);
    node_drain(&nodes[0], 5000);
    stage_run(1000);
    assert_int_equal(stage_calls("undo"), 0);
    stage_complete(stage_call("child"), "{}");
    stage_run(10000);
    assert_false(nodes[0].up);
    stage_is_automatic = true;
    stage_again(0);
    stage_until_saga(0, hung, "completed");
    stage_until_saga(0, undone, "compensated");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        stage_until_saga(0, sagas[i], "completed");
    }
    assert_int_equal(stage_calls("ask"), 1);
    assert_int_equal(stage_calls("one_once"), 1);
    assert_int_equal(stage_calls("pay"), 2);
    assert_int_equal(stage_calls("undo"), 1);
}

/* A timer that comes due while the engine leaves belongs to the next owner. */
TEST(a_timer_that_is_due_while_the_engine_leaves_goes_off_elsewhere)
{
    struct saga_id saga;

    stage_begin(&(struct stage_plan){.definitions = ALL});
    saga = start("naps");
    (void)stage_until_call("look");
    stage_run(2000);
    node_drain(&nodes[0], 5000);
    stage_run(3000);
    assert_true(nodes[0].up);
    assert_int_equal(stage_calls("pay"), 0);
    stage_complete(stage_call("look"), "{}");
    stage_run(5000);
    assert_false(nodes[0].up);
    stage_is_automatic = true;
    stage_again(0);
    stage_until_saga(0, saga, "completed");
    assert_int_equal(stage_calls("pay"), 1);
    assert_int_equal(stage_calls("look"), 1);
}

/* A guard's permission arrives when the engine is already leaving. The engine gives it back, and the next owner asks
 * again. */
TEST(a_permission_that_comes_while_the_engine_leaves_is_not_used)
{
    struct saga_id saga;

    stage_begin(&(struct stage_plan){.definitions = ALL});
    saga = start("both");
    pg_set_slow(world->pg, 2000000);
    stage_run(1);
    node_drain(&nodes[0], 30000);
    stage_run(4000);
    pg_set_slow(world->pg, 200);
    assert_true(nodes[0].up);
    stage_complete(stage_until_call("look"), "{}");
    stage_run(10000);
    assert_false(nodes[0].up);
    assert_int_equal(stage_calls("one_once"), 0);
    stage_is_automatic = true;
    stage_again(0);
    stage_until_saga(0, saga, "completed");
    assert_int_equal(stage_calls("one_once"), 1);
}

/* Calls whose shard was lost run on as evidence for the new owner. When the engine ends, it ends these calls, or lets
 * them be judged. */
TEST(calls_of_lost_shards_are_ended_with_the_engine)
{
    static const char *const tools[] = {"look", "judged"};

    for (size_t i = 0; i < COUNT_OF(tools); i++) {
        struct saga_id saga;
        struct staged_call *call;

        stage_begin(&(struct stage_plan){.definitions = ALL, .node_count = 2, .node = {.lease_ms = 2000}});
        saga = start(tools[i]);
        call = stage_until_call(tools[i]);
        assert_ptr_equal(call->node, &nodes[0]);
        nodes[0].cut = true;
        stage_run(8000);
        nodes[0].cut = false;
        stage_run(2000);
        if (i == 1) {
            stage_program_ms = 3000;
            stage_complete(call, "{'ok':true}");
            stage_run(100);
        }
        node_drain(&nodes[0], 0);
        stage_run(500);
        assert_int_equal(call->cancelled, i == 0);
        stage_is_automatic = true;
        stage_program_ms = 0;
        stage_complete_all(tools[i], "{'ok':true}");
        stage_until_saga(1, saga, "completed");
        stage_end();
    }
}

/* --- places --- */

static void one_child(struct engine_options *options)
{
    options->exec_max = 1;
}

static bool is_completed(struct saga_id id)
{
    return json_string_is(json_member(stage_saga(0, id), "status"), "completed");
}

TEST(the_calls_of_one_tool_hold_up_another_tool_for_one_turn_only)
{
    enum { LOOKS = 6 };
    struct saga_id looks[LOOKS];
    struct stage_plan plan = narrow(2);

    stage_begin(&plan);
    for (int i = 0; i < LOOKS; i++) {
        looks[i] = start("look");
    }
    struct saga_id pay = start("pay");

    stage_run(100);
    assert_int_equal(stage_calls("look"), 2);
    assert_int_equal(stage_calls("pay"), 0);
    for (int answered = 1; answered <= 2; answered++) { /* it is each one's turn once */
        stage_complete(stage_until_call("look"), "{'ok':true}");
        stage_run(100);
    }
    assert_int_equal(stage_calls("look"), 3);
    assert_int_equal(stage_calls("pay"), 1);
    stage_complete(stage_until_call("pay"), "{'ok':true}");
    stage_until_saga(0, pay, "completed");
    for (int i = 2; i < LOOKS; i++) { /* calls of one tool are served in the order in which they came */
        assert_false(is_completed(looks[i]));
        stage_complete(stage_until_call("look"), "{'ok':true}");
        stage_until_saga(0, looks[i], "completed");
    }
}

TEST(child_processes_have_places_of_their_own)
{
    struct saga_id first, second, other;

    stage_begin(&(struct stage_plan){.definitions = ALL, .tweak = one_child});
    first = start("child");
    (void)stage_until_call("child");
    second = start("child");
    other = start("look");
    stage_complete(stage_until_call("look"), "{}"); /* this call is no child, and goes past */
    stage_until_saga(0, other, "completed");
    stage_run(2000);
    assert_int_equal(stage_calls("child"), 1);
    other = start("look"); /* a call that waits for it is no sign of too much work */
    stage_complete(stage_until_call("look"), "{}");
    stage_until_saga(0, other, "completed");
    stage_complete(stage_call("child"), "{}");
    stage_complete(stage_until_call("child"), "{}");
    stage_until_saga(0, first, "completed");
    stage_until_saga(0, second, "completed");
}

static void two_places_one_child(struct engine_options *options)
{
    options->exec_max = 1;
    options->calls_max = 2;
}

/* Starts are refused while calls wait too long for places. A call that waits for a child process does not count. */
TEST(waiting_for_a_child_process_is_no_sign_of_too_much_work)
{
    struct saga_id first, second, other;

    stage_begin(&(struct stage_plan){.definitions = ALL, .tweak = two_places_one_child});
    first = start("child");
    (void)stage_until_call("child");
    other = start("look");
    (void)stage_until_call("look");
    second = start("child");
    for (int i = 0; i < 10; i++) {
        stage_run(1000);
        (void)stage_start(0, "child", "{}");
    }
    stage_is_automatic = true;
    stage_complete_all("look", "{'ok':true}");
    stage_complete_all("child", "{'ok':true}");
    stage_until_saga(0, first, "completed");
    stage_until_saga(0, second, "completed");
    stage_until_saga(0, other, "completed");
}

/* When a shard goes, a waiting call with an intent in the log is recorded as unsent. A call without an intent is
 * forgotten here. */
TEST(an_intent_that_is_not_made_yet_goes_with_its_shard)
{
    struct stage_plan plan = narrow(1);
    struct saga_id hung, saga;

    stage_begin(&plan);
    hung = start("child");
    (void)stage_until_call("child");
    saga = start("two");
    stage_run(500);
    give_all();
    stage_run(500);
    assert_int_equal(stage_calls("pay") + stage_calls("ask"), 0);
    stage_is_automatic = true;
    stage_complete_all("child", "{'ok':true}");
    stage_until_saga(0, hung, "completed");
    stage_until_saga(0, saga, "completed");
    assert_int_equal(stage_calls("pay"), 1);
    assert_int_equal(stage_calls("ask"), 1);
}

/* A service that said when to come again gets no call until then. Other services are called meanwhile. */
TEST(a_service_that_asks_for_a_pause_gets_it)
{
    struct saga_id first, second, third, other;
    int64_t asked_us;

    stage_begin(&(struct stage_plan){.definitions = ALL});
    first = start("pay");
    asked_us = world->now_us;
    stage_answer(stage_until_call("pay"),
                 (struct outcome){.kind = OUTCOME_RETRY, .error = SLICE("http-429"), .retry_after_ms = 5000},
                 "{'status':429}");
    third = start("rent");
    stage_answer(stage_until_call("rent"),
                 (struct outcome){.kind = OUTCOME_RETRY, .error = SLICE("http-429"), .retry_after_ms = 3000},
                 "{'status':429}");
    stage_run(100);
    second = start("pay");
    other = start("rent");
    stage_run(1000);
    assert_int_equal(stage_calls("pay"), 1);
    assert_int_equal(stage_calls("rent"), 1);
    (void)start("look");
    (void)stage_until_call("look");
    stage_is_automatic = true;
    (void)stage_until_saga(0, third, "completed");
    assert_in_range(world->now_us - asked_us, 3000000, 4900000);
    (void)stage_until_saga(0, first, "completed");
    assert_true(world->now_us - asked_us >= 5000000);
    stage_until_saga(0, second, "completed");
    stage_until_saga(0, other, "completed");
    stage_complete_all("look", "{'ok':true}");
}

/* Guards are asked shortly before a call leaves. A permission that is old when a place becomes free is asked for
 * again. */
TEST(a_permission_that_waited_for_too_long_is_asked_for_again)
{
    struct stage_plan plan = narrow(1);
    struct saga_id hung, one, once;

    stage_begin(&plan);
    hung = start("look");
    (void)stage_until_call("look");
    one = start("one");
    once = start("one_once");
    stage_run(60000);
    assert_int_equal(stage_calls("one") + stage_calls("one_once"), 0);
    stage_is_automatic = true;
    stage_complete_all("look", "{'ok':true}");
    stage_until_saga(0, hung, "completed");
    stage_until_saga(0, one, "completed");
    stage_until_saga(0, once, "completed");
    assert_int_equal(stage_calls("one"), 1);
    assert_int_equal(stage_calls("one_once"), 1);
}

/* Compensations also keep to the places of their tool. */
TEST(compensations_keep_to_the_places_of_their_tool)
{
    struct saga_id first, second;

    stage_begin(&(struct stage_plan){.definitions = ALL});
    first = start("returned");
    second = start("returned");
    stage_complete(stage_until_call("rent"), "{}");
    stage_complete(stage_until_call("rent"), "{}");
    refuse("no");
    refuse("no");
    (void)stage_until_call("slow_undo");
    stage_run(1000);
    assert_int_equal(stage_calls("slow_undo"), 1);
    stage_complete(stage_call("slow_undo"), "{}");
    stage_complete(stage_until_call("slow_undo"), "{}");
    stage_until_saga(0, first, "compensated");
    stage_until_saga(0, second, "compensated");
}

/* The settings of the call could not be rendered, so that no byte left. The next waiting call gets the place. */
TEST(a_call_that_was_never_sent_leaves_its_place_to_who_waits)
{
    struct stage_plan plan = narrow(1);
    struct saga_id first, bent, looks;

    stage_begin(&plan);
    first = start("pay");
    (void)stage_until_call("pay");
    bent = start("bent");
    looks = start("look");
    stage_run(500);
    stage_complete(stage_call("pay"), "{}");
    stage_complete(stage_until_call("look"), "{}");
    stage_until_saga(0, first, "completed");
    stage_until_saga(0, looks, "completed");
    stage_until_saga(0, bent, "compensated");
    assert_int_equal(stage_calls("bent"), 0);
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
