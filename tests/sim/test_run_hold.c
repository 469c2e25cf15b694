/* Holds: after the answer no engine begins anything that is held. Work that waited goes on after the release. */
#include "base/instant.h"
#include "run/call/holds.h"
#include "run/saga/live.h"
#include "tests/sim/stage.h"

#include <stdio.h>

static const char document[] =
    "{'tools':["
    "{'name':'pay','builtin':{'tool':'pay'},'effect':'keyed','key':{'window':'24h'},'compensate':{'tool':'refund'}},"
    "{'name':'refund','builtin':{'tool':'refund'},'effect':'idempotent'},"
    "{'name':'note','builtin':{'tool':'note'},'effect':'once','terminal':true},"
    "{'name':'mail','builtin':{'tool':'mail'},'effect':'keyed','key':{'window':'24h'},'rate':{'limit':1000,'per':'1s'},"
    "'compensate':{'tool':'refund'}},"
    "{'name':'bill','builtin':{'tool':'bill','at':'${ .args.n | . }'},'effect':'keyed','key':{'window':'24h'},"
    "'compensate':{'tool':'refund'}},"
    "{'name':'ship','builtin':{'tool':'ship'},'effect':'idempotent','compensate':{'tool':'refund'}}],"
    "'sagas':["
    "{'name':'pays','steps':[{'id':'pay','call':'pay','with':{}}]},"
    "{'name':'notes','steps':[{'id':'note','call':'note','with':{}}]},"
    "{'name':'bills','steps':[{'id':'bill','call':'bill','with':{'n':1}}]},"
    "{'name':'mails','steps':[{'id':'mail','call':'mail','with':{}}]},"
    "{'name':'hurries','deadline':'10m','steps':[{'id':'pay','call':'pay','with':{}},"
    "{'id':'ok','approve':{'timeout':'5m'},'after':[]}]},"
    "{'name':'ships','steps':[{'id':'pay','call':'pay','with':{}},{'id':'ship','call':'ship','with':{}}]},"
    "{'name':'both','steps':[{'id':'pay','call':'pay','with':{}},{'id':'ship','call':'ship','with':{},'after':[]}]}"
    "]}";

static int setup_of(uint32_t nodes_wanted)
{
    stage_begin(&(struct stage_plan){.definitions = document, .node_count = nodes_wanted});
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return setup_of(1);
}

static int setup_two(void **state)
{
    (void)state;
    return setup_of(2);
}

static struct reply *ask_for_hold(uint32_t node, const char *body)
{
    return stage_ask(node, engine_put_hold, &(struct engine_request){.in.hold = {.body = stage_json(body)}});
}

static uint64_t hold(uint32_t node, const char *body)
{
    struct reply *reply = stage_expect(ask_for_hold(node, body), ERR_OK);
    int64_t number = 0;

    assert_true(json_i64(json_member(reply->answer, "n"), &number));
    assert_true(slice_is(json_member(reply->answer, "in_force"), "true"));
    return (uint64_t)number;
}

static struct reply *release(uint32_t node, uint64_t number)
{
    return stage_wait(stage_ask(node, engine_release_hold,
                                &(struct engine_request){.in.hold = {.number = number, .note = SLICE("it is over")}}));
}

TEST(a_held_saga_waits_and_goes_on_when_it_is_released)
{
    static const char *const sagas[] = {"pays", "notes", "mails"}, *const tools[] = {"pay", "note", "mail"};
    struct saga_id ids[3];
    uint64_t numbers[3];
    char body[64];

    for (int i = 0; i < 3; i++) {
        (void)snprintf(body, sizeof(body), "{'tool':'%s','note':'down'}", tools[i]);
        numbers[i] = hold(0, body);
        ids[i] = stage_start(0, sagas[i], "{}");
    }
    stage_run(60000);
    assert_int_equal(stage_calls(NULL), 0);
    stage_is_automatic = true;
    for (int i = 0; i < 3; i++) {
        struct slice held = json_member(json_element(json_member(stage_saga(0, ids[i]), "steps"), 0), "held");

        assert_true(json_string_is(json_member(held, "note"), "down"));
        assert_int_equal(release(0, numbers[i])->code, ERR_OK);
        stage_until_saga(0, ids[i], "completed");
        assert_null(json_member(json_element(json_member(stage_saga(0, ids[i]), "steps"), 0), "held").ptr);
        assert_int_equal(stage_calls(tools[i]), 1);
    }
}

/* On the engine that takes the saga over, too. */
TEST_BETWEEN(the_clocks_of_a_saga_stand_while_a_hold_keeps_a_call_of_it, setup_two, stage_teardown)
{
    stage_is_automatic = true;
    uint64_t number = hold(0, "{'tool':'pay','note':'down'}");
    struct saga_id id = stage_start(0, "hurries", "{}");

    stage_run(INT64_C(3600) * 1000);
    node_kill(&nodes[0]);
    stage_run(INT64_C(3600) * 1000);
    assert_true(json_string_is(json_member(stage_saga(1, id), "status"), "running"));
    assert_int_equal(stage_calls("pay"), 0);
    assert_int_equal(release(1, number)->code, ERR_OK);
    stage_run(INT64_C(60) * 1000);
    assert_int_equal(stage_calls("pay"), 1);
    assert_true(json_string_is(json_member(stage_saga(1, id), "status"), "waiting"));
    stage_run(INT64_C(300) * 1000); /* nobody approves it in the time that was left */
    stage_until_saga(1, id, "compensated");
    assert_non_null(strstr(stage_log(id), "saga.released"));
}

/* A call whose guards are asked, and one that began to wait before the hold was there. */
TEST(a_saga_is_held_from_the_moment_on_at_which_a_call_waits)
{
    struct saga_id id = stage_start(0, "pays", "{}");

    stage_answer(stage_until_call(NULL),
                 (struct outcome){.kind = OUTCOME_RETRY, .unsent = true, .error = SLICE("refused")}, NULL);
    uint64_t number = hold(0, "{'tool':'pay','note':'down'}");

    stage_run(60000);
    assert_non_null(strstr(stage_log(id), "saga.held"));
    assert_null(strstr(stage_log(id), "saga.released"));
    stage_is_automatic = true;
    assert_int_equal(release(0, number)->code, ERR_OK);
    stage_until_saga(0, id, "completed");
    assert_non_null(strstr(stage_log(id), "saga.released"));
}

TEST_BETWEEN(a_hold_is_seen_by_every_engine_before_it_is_answered, setup_two, stage_teardown)
{
    stage_is_automatic = true;
    for (uint32_t i = 0; i < 40; i++) {
        (void)stage_start(i % 2, "ships", "{}");
    }
    stage_tool("pay")->delay_ms = 3;
    uint64_t number = hold(1, "{'tool':'ship','note':'no vans'}");
    uint32_t shipped = stage_calls("ship");

    for (uint32_t i = 0; i < 40; i++) {
        (void)stage_start(i % 2, "ships", "{}");
    }
    stage_run(30000);
    assert_int_equal(stage_calls("ship"), shipped);
    assert_int_equal(stage_calls("pay"), 80);
    assert_int_equal(release(0, number)->code, ERR_OK);
    stage_run(10000);
    assert_int_equal(stage_calls("ship"), 80);
}

TEST_BETWEEN(an_engine_that_does_not_hear_sends_nothing_once_a_lease_has_passed, setup_two, stage_teardown)
{
    stage_is_automatic = true;
    node_freeze_now(&nodes[1], 60000000);
    (void)hold(0, "{'namespace':'default','note':'stop'}");
    uint32_t calls = stage_calls(NULL);

    for (uint32_t i = 0; i < 10; i++) {
        (void)stage_start(0, "pays", "{}");
    }
    stage_run(90000);
    assert_int_equal(stage_calls(NULL), calls);
}

/* The engine leaves at any moment: between two looks at the engines that know the hold, or during one. */
TEST_BETWEEN(a_client_that_waits_for_a_hold_is_answered_when_the_engine_leaves, setup_two, stage_teardown)
{
    for (int64_t ms = 0; ms < 60; ms++) {
        node_freeze_now(&nodes[1], 5000000);
        struct reply *reply = ask_for_hold(0, "{'namespace':'default','note':'stop'}");

        stage_run(20 + ms);
        node_drain(&nodes[0], 0);
        (void)stage_expect(reply, ERR_STOPPING);
        stage_run(6000); /* the other engine goes on, so that it can leave, too */
        stage_end();
        (void)setup_of(2);
    }
}

TEST_BETWEEN(a_call_that_waits_for_its_place_comes_back_when_it_is_held, NULL, stage_teardown)
{
    struct saga_id id;

    stage_begin(&(struct stage_plan){.definitions = document, .node = {.calls_max = 1}});
    (void)stage_start(0, "pays", "{}");
    struct staged_call *first = stage_until_call("pay");

    id = stage_start(0, "pays", "{}"); /* the intent is durable, and the call has no place */
    stage_settle();
    uint64_t number = hold(0, "{'tool':'pay','note':'down'}");

    stage_complete(first, "{'ok':true}");
    stage_run(20000);
    assert_int_equal(stage_calls("pay"), 1);
    assert_non_null(strstr(stage_log(id), "\"held\""));
    stage_is_automatic = true;
    assert_int_equal(release(0, number)->code, ERR_OK);
    stage_until_saga(0, id, "completed");
}

/* The intent is durable and the call has a place. A program is still rendering its settings when the hold is
 * answered. */
TEST(a_call_that_is_being_prepared_does_not_leave_after_the_answer)
{
    struct saga_id id;

    stage_program_ms = 3000;
    id = stage_start(0, "bills", "{}");
    stage_settle();
    assert_non_null(strstr(stage_log(id), "step.intent"));
    uint64_t number = hold(0, "{'tool':'bill','note':'down'}");

    stage_program_ms = 0;
    stage_run(20000);
    assert_int_equal(stage_calls("bill"), 0);
    stage_is_automatic = true;
    assert_int_equal(release(0, number)->code, ERR_OK);
    stage_until_saga(0, id, "completed");
    assert_int_equal(stage_calls("bill"), 1);
}

TEST(compensations_go_on_unless_they_are_held_too)
{
    static const char *const holds[] = {"{'saga':'ships','note':'x'}", "{'saga':'ships','note':'x','undo':true}"};

    for (int i = 0; i < 2; i++) {
        struct saga_id id = stage_start(0, "ships", "{}");

        stage_complete(stage_until_call("pay"), "{'ok':true}");
        struct staged_call *ship = stage_until_call("ship");
        uint64_t number = hold(0, holds[i]);

        stage_answer(ship, (struct outcome){.kind = OUTCOME_FAILED, .error = SLICE("no")}, "{'no':1}");
        if (i == 0) {
            stage_complete(stage_until_call("refund"), "{'ok':true}");
            stage_until_saga(0, id, "compensated");
        } else {
            stage_run(30000);
            assert_null(stage_call("refund"));
        }
        assert_int_equal(release(0, number)->code, ERR_OK);
        if (i == 1) {
            stage_complete(stage_until_call("refund"), "{'ok':true}");
            stage_until_saga(0, id, "compensated");
        }
    }
}

TEST(a_call_of_an_agent_is_refused_and_leaves_no_trace)
{
    stage_is_automatic = true;
    stage_expect(stage_ask(0, engine_call, stage_call_of("r", "pay", "{'a':1}", 1000)), ERR_OK);
    uint64_t number = hold(0, "{'tool':'pay','note':'the bank is down'}");
    struct reply *held = stage_expect(stage_ask(0, engine_call, stage_call_of("s", "pay", "{'a':1}", 1000)), ERR_HELD);

    assert_non_null(strstr(held->err.message, "the bank is down"));
    assert_true(held->call.retry_after_ms > 0);
    /* A call that was made before is answered. */
    assert_true(
        stage_expect(stage_ask(0, engine_call, stage_call_of("r", "pay", "{'a':1}", 1000)), ERR_OK)->call.replayed);
    assert_int_equal(release(0, number)->code, ERR_OK);
    stage_expect(stage_ask(0, engine_call, stage_call_of("s", "pay", "{'a':1}", 1000)), ERR_OK);
    assert_int_equal(stage_calls("pay"), 2);
}

static struct reply *start(const char *saga, const char *tags)
{
    return stage_wait(
        stage_ask(0, engine_start_saga,
                  &(struct engine_request){.in.start = {.saga = slice_of(saga), .tags = stage_json(tags)}}));
}

TEST(starts_wait_or_are_refused)
{
    stage_is_automatic = true;
    uint64_t waits = hold(0, "{'tag':{'customer':'ada'},'note':'x'}");
    struct saga_id id = start("pays", "{'customer':'ada'}")->saga;
    struct saga_id other = start("pays", "{'customer':'bob'}")->saga;

    stage_until_saga(0, other, "completed");
    stage_run(5000);
    assert_int_equal(stage_calls("pay"), 1);
    uint64_t refuses = hold(0, "{'tag':{'customer':'ada'},'note':'y','starts':'refuse'}");

    assert_int_equal(start("pays", "{'customer':'ada'}")->code, ERR_HELD);
    assert_int_equal(start("pays", "{'customer':'bob'}")->code, ERR_OK);
    assert_int_equal(release(0, refuses)->code, ERR_OK);
    assert_int_equal(start("pays", "{'customer':'ada'}")->code, ERR_OK);
    assert_int_equal(release(0, waits)->code, ERR_OK);
    stage_until_saga(0, id, "completed");
}

TEST(held_sagas_are_let_go_at_a_pace)
{
    stage_is_automatic = true;
    uint64_t number = hold(0, "{'saga':'pays','note':'x','pace':2}");

    for (int i = 0; i < 20; i++) {
        (void)stage_start(0, "pays", "{}");
    }
    assert_int_equal(release(0, number)->code, ERR_OK);
    stage_run(3000);
    assert_in_range(stage_calls("pay"), 4, 9);
    stage_run(10000);
    assert_int_equal(stage_calls("pay"), 20);
}

TEST(a_hold_ends_by_its_time)
{
    char until[INSTANT_TEXT_BYTES], body[128];

    stage_is_automatic = true;
    instant_text(loop_wall_ms(nodes[0].engine->loop) + 60000, until);
    (void)snprintf(body, sizeof(body), "{'tool':'pay','note':'x','until':'%s'}", until);
    uint64_t number = hold(0, body);
    struct saga_id id = stage_start(0, "pays", "{}");

    stage_run(55000);
    assert_int_equal(stage_calls("pay"), 0);
    stage_run(6000);
    assert_int_equal(stage_calls("pay"), 1);
    stage_until_saga(0, id, "completed");
    assert_int_equal(release(0, number)->code, ERR_DECIDED);
}

TEST(a_hold_survives_its_engine)
{
    uint64_t number = hold(0, "{'tool':'note','note':'x'}");
    struct saga_id id = stage_start(0, "notes", "{}");

    stage_run(1000);
    node_kill(&nodes[0]);
    stage_again(0);
    stage_run(30000);
    assert_int_equal(stage_calls("note"), 0);
    stage_is_automatic = true;
    assert_int_equal(release(0, number)->code, ERR_OK);
    stage_until_saga(0, id, "completed");
    assert_int_equal(stage_calls("note"), 1);
}

TEST(a_hold_of_nothing_is_refused)
{
    static const char *const bodies[] = {
        "{'note':'x'}",
        "{'tool':'nothing','note':'x'}",
        "{'saga':'nothing','note':'x'}",
        "{'namespace':'other','note':'x'}",
        "{'tag':{},'note':'x'}",
        "{'tool':'pay','saga':'pays','note':'x'}",
        "{'tool':'pay'}",
        "{'tool':'pay','note':' '}",
        "{'tool':'pay','note':'x','until':'2020-01-01T00:00:00Z'}",
        "{'tool':'pay','note':'x','starts':'refuse'}",
        "{'saga':'pays','note':'x','starts':'never'}",
        "{'tool':'pay','note':'x','pace':0}",
        "{'tool':'pay','note':'x','actor':'me'}",
    };

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct reply *reply = stage_expect(ask_for_hold(0, bodies[i]), ERR_INVALID);

        assert_int_equal(reply->faults, 1);
    }
    assert_int_equal(release(0, 17)->code, ERR_NOT_FOUND);
}

/* --- what waits for a hold leaves memory --- */

static int setup_parking(void **state)
{
    (void)state;
    stage_begin(&(struct stage_plan){
        .definitions = document, .node_count = 2, .node = {.park_after_ms = 1000}, .is_automatic = true});
    return 0;
}

static bool is_in_memory(struct saga_id id)
{
    bool found = false;

    for (uint32_t i = 0; i < 2; i++) {
        found = found || (nodes[i].engine && live_find(nodes[i].engine, id));
    }
    return found;
}

TEST_BETWEEN(a_held_saga_leaves_memory_and_goes_on_at_the_release, setup_parking, stage_teardown)
{
    uint64_t number = hold(0, "{'tool':'pay','note':'down'}");
    struct saga_id ids[10];

    for (int i = 0; i < 10; i++) {
        ids[i] = stage_start(0, i % 2 ? "pays" : "hurries", "{}");
    }
    stage_run(10000);
    for (int i = 0; i < 10; i++) {
        assert_false(is_in_memory(ids[i]));
        assert_true(json_string_is(
            json_member(json_member(json_element(json_member(stage_saga(1, ids[i]), "steps"), 0), "held"), "note"),
            "down"));
    }
    (void)hold(0, "{'tool':'ship','note':'another one'}");
    (void)release(1, 17); /* there is none of this number */
    stage_run(10000);
    assert_int_equal(stage_calls("pay"), 0);
    assert_int_equal(release(1, number)->code, ERR_OK);
    stage_run(5000);
    assert_int_equal(stage_calls("pay"), 10);
    for (int i = 1; i < 10; i += 2) {
        stage_until_saga(0, ids[i], "completed");
    }
}

TEST_BETWEEN(parked_sagas_are_let_go_at_the_pace_of_their_hold, setup_parking, stage_teardown)
{
    uint64_t number = hold(0, "{'tool':'pay','note':'down','pace':5}");

    for (int i = 0; i < 40; i++) {
        (void)stage_start(0, "pays", "{}");
    }
    stage_run(10000);
    assert_int_equal(release(0, number)->code, ERR_OK);
    stage_run(2500);
    assert_in_range(stage_calls("pay"), 5, 30); /* two engines, five a second each */
    stage_run(20000);
    assert_int_equal(stage_calls("pay"), 40);
}

TEST_BETWEEN(a_parked_saga_goes_on_when_its_hold_ends_by_time_and_its_engine_is_dead, setup_parking, stage_teardown)
{
    char until[INSTANT_TEXT_BYTES], body[128];
    struct saga_id id;

    instant_text(WORLD_START_MS + world->now_us / 1000 + 60000, until);
    (void)snprintf(body, sizeof(body), "{'tool':'pay','note':'down','until':'%s'}", until);
    (void)hold(0, body);
    id = stage_start(0, "pays", "{}");
    stage_run(10000);
    assert_false(is_in_memory(id));
    node_kill(&nodes[0]);
    node_kill(&nodes[1]);
    stage_run(100000); /* the hold ends while nobody lives */
    stage_again(1);
    stage_until_saga(1, id, "completed");
    assert_int_equal(stage_calls("pay"), 1);
}

TEST_BETWEEN(a_saga_that_two_holds_keep_goes_on_after_both, setup_parking, stage_teardown)
{
    uint64_t first = hold(0, "{'tool':'pay','note':'down'}"), second = hold(0, "{'saga':'pays','note':'too'}");
    struct saga_id id = stage_start(0, "pays", "{}");

    stage_run(10000);
    assert_int_equal(release(0, first)->code, ERR_OK);
    stage_run(10000);
    assert_int_equal(stage_calls("pay"), 0);
    assert_false(is_in_memory(id));
    assert_int_equal(release(0, second)->code, ERR_OK);
    stage_until_saga(0, id, "completed");
}

/* Whichever of two holds ends first: the call that it kept goes on, the other one waits, out of memory. */
TEST_BETWEEN(a_saga_whose_calls_wait_for_two_holds_leaves_memory_and_each_goes_on_with_its_hold, setup_parking,
             stage_teardown)
{
    static const char *const tools[] = {"pay", "ship"};

    for (int first = 0; first < 2; first++) {
        const char *freed = tools[first], *held = tools[1 - first];
        uint64_t numbers[] = {hold(0, "{'tool':'pay','note':'down'}"), hold(0, "{'tool':'ship','note':'no vans'}")};
        uint32_t freed_before = stage_calls(freed), held_before = stage_calls(held);
        struct saga_id id = stage_start(0, "both", "{}");

        stage_run(10000);
        assert_false(is_in_memory(id));
        assert_int_equal(release(1, numbers[first])->code, ERR_OK);
        stage_run(10000);
        assert_int_equal(stage_calls(freed), freed_before + 1);
        assert_int_equal(stage_calls(held), held_before);
        assert_false(is_in_memory(id));
        assert_int_equal(release(0, numbers[1 - first])->code, ERR_OK);
        stage_until_saga(0, id, "completed");
        assert_int_equal(stage_calls(held), held_before + 1);
    }
}

/* The definition of a saga with a call of each of so many tools, all at once. */
static const char *tools_and_a_saga(int count, struct buffer *out)
{
    buffer_printf(out, "{'tools':[");
    for (int i = 0; i < count; i++) {
        buffer_printf(out, "%s{'name':'t%d','builtin':{'tool':'t%d'},'effect':'read'}", i ? "," : "", i, i);
    }
    buffer_printf(out, "],'sagas':[{'name':'asks','steps':[");
    for (int i = 0; i < count; i++) {
        buffer_printf(out, "%s{'id':'s%d','call':'t%d','with':{},'after':[]}", i ? "," : "", i, i);
    }
    buffer_printf(out, "]}]}");
    buffer_put_char(out, '\0');
    return buffer_slice(out).ptr;
}

/* The row of a parked saga has a bound. A saga that waits for more holds stays in memory until there are fewer. */
TEST_BETWEEN(a_saga_leaves_memory_under_as_many_holds_as_its_row_can_name, NULL, stage_teardown)
{
    enum { COUNT = PARK_HOLDS_MAX + 1 };
    struct buffer text;
    uint64_t numbers[COUNT];
    char body[64];

    buffer_init(&text, 65536);
    stage_begin(&(struct stage_plan){.definitions = tools_and_a_saga(COUNT, &text),
                                     .node_count = 2,
                                     .node = {.park_after_ms = 1000},
                                     .is_automatic = true});
    for (int i = COUNT - 1; i >= 0; i--) { /* the numbers do not rise with the steps */
        (void)snprintf(body, sizeof(body), "{'tool':'t%d','note':'down'}", i);
        numbers[i] = hold(0, body);
    }
    struct saga_id id = stage_start(0, "asks", "{}");

    stage_run(10000);
    assert_true(is_in_memory(id));
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(stage_calls(NULL), i);
        assert_int_equal(release(0, numbers[i])->code, ERR_OK);
        stage_run(10000);
        assert_false(is_in_memory(id));
    }
    stage_until_saga(0, id, "completed");
    buffer_fini(&text);
}

TEST_PROGRAM_EACH(setup, stage_teardown)
