/* Clients that wait for their calls (caller.c): the state of their operation, and where they wait when its shard
 * moves. */
#include "run/shard/shard.h"
#include "tests/sim/stage.h"

#include <stdio.h>

#include "base/json.h"
#include "run/engine_state.h"

#define TOOLS                                                                                                          \
    "{'tools':["                                                                                                       \
    "{'name':'undo','builtin':{'tool':'undo'},'effect':'idempotent'},"                                                 \
    "{'name':'pay','builtin':{'tool':'pay'},'effect':'keyed','key':{'window':'10m'},'compensate':{'tool':'undo'},"     \
    "'retry':{'max_attempts':9,'initial':'100ms'},'timeout':'5s'},"                                                    \
    "{'name':'twice','builtin':{'tool':'twice'},'effect':'keyed','key':{'window':'10m'},'compensate':{'tool':'undo'}," \
    "'on_duplicate':'escalate'},"                                                                                      \
    "{'name':'strict','builtin':{'tool':'strict'},'effect':'keyed','key':{'window':'10m'},"                            \
    "'compensate':{'tool':'undo'},'on_duplicate':'refuse'},"                                                           \
    "{'name':'ask','builtin':{'tool':'ask'},'effect':'once','compensate':{'tool':'undo'}},"                            \
    "{'name':'seen','builtin':{'tool':'seen'},'effect':'once','compensate':{'tool':'undo'},'probe':{"                  \
    "'builtin':{'tool':'probe'},'outcome':{'completed':'${ .response.done }','absent':'${ .response.absent }',"        \
    "'running':'${ .response.running }'},'visibility':'1s','give_up_after':'10s'}},"                                   \
    "{'name':'look','builtin':{'tool':'look'},'effect':'read'}]}"

static void unknown(struct staged_call *call)
{
    stage_answer(call, (struct outcome){.kind = OUTCOME_UNKNOWN, .error = SLICE("reset")}, NULL);
}

static struct saga_id open_saga(uint32_t node)
{
    struct reply *reply =
        stage_wait(stage_ask(node, engine_open_saga, &(struct engine_request){.in.open = {.deadline_ms = 600000}}));

    assert_int_equal(reply->code, ERR_OK);
    return reply->saga;
}

/* --- what an operation has come to --- */

TEST(a_client_that_waits_for_a_persons_decision_is_told_so)
{
    struct reply *first;

    stage_begin(&(struct stage_plan){.definitions = TOOLS});
    first = stage_call_begin(0, "r", "twice", "{}", 60000);
    (void)stage_expect(stage_ask(0, engine_call, stage_call_of("r", "twice", "{}", 60000)), ERR_AWAITING);
    stage_run(100);
    assert_true(first->done); /* the first client, too, because the tool alone no longer decides the outcome */
    assert_int_equal(first->code, ERR_AWAITING);
    assert_true(first->call.retry_after_ms > 0);
    stage_complete(stage_call("twice"), "{}");
}

/* Two operations of one saga are unknown. A person is asked about one at a time. The other one stays unknown meanwhile,
 * and no client waits in vain. */
TEST(an_outcome_that_nobody_knows_is_unknown_until_a_person_is_asked)
{
    struct engine_request *request;
    struct reply *first, *second;
    struct saga_id saga;

    stage_begin(&(struct stage_plan){.definitions = TOOLS});
    saga = open_saga(0);
    first = stage_ask(0, engine_call, stage_call_in(saga, "ask", "{'a':1}", 60000));
    unknown(stage_until_call("ask"));
    (void)stage_expect(first, ERR_AWAITING);
    request = stage_call_in(saga, "ask", "{'a':2}", 60000);
    request->in.call.scope = SLICE("other");
    second = stage_ask(0, engine_call, request);
    unknown(stage_until_call("ask"));
    (void)stage_expect(second, ERR_OUTCOME_UNKNOWN);
    (void)stage_expect(stage_ask(0, engine_call, stage_call_in(saga, "ask", "{'a':1}", 0)), ERR_AWAITING);
    assert_int_equal(stage_calls("ask"), 2);
}

/* The service has accepted the call and is still working. The operation goes on, and so does the wait. */
TEST(a_call_that_the_service_has_accepted_goes_on_until_a_probe_sees_it)
{
    struct reply *reply;

    stage_begin(&(struct stage_plan){.definitions = TOOLS});
    reply = stage_ask(0, engine_call, stage_call_of("r", "seen", "{}", 60000));
    stage_answer(stage_until_call("seen"), (struct outcome){.kind = OUTCOME_RUNNING, .error = SLICE("http-202")}, "{}");
    stage_run(300);
    assert_false(reply->done);
    (void)stage_expect(stage_ask(0, engine_call, stage_call_of("r", "seen", "{}", 100)), ERR_IN_FLIGHT);
    stage_complete(stage_until_call("probe"), "{'done':true}");
    (void)stage_expect(reply, ERR_OK);
}

/* The answer was lost. The client waits while probes ask, and is told that the outcome is unknown when the wait is
 * over. */
TEST(a_call_that_is_being_probed_is_unknown_when_the_wait_is_over)
{
    struct reply *reply;

    stage_begin(&(struct stage_plan){.definitions = TOOLS});
    reply = stage_ask(0, engine_call, stage_call_of("r", "seen", "{}", 400));
    unknown(stage_until_call("seen"));
    (void)stage_expect(reply, ERR_OUTCOME_UNKNOWN);
    assert_true(reply->call.retry_after_ms > 0);
    stage_complete(stage_until_call("probe"), "{'done':true}");
    stage_run(1000);
    (void)stage_expect(stage_ask(0, engine_call, stage_call_of("r", "seen", "{}", 0)), ERR_OK);
}

/* --- where they wait --- */

/* Begins with two engines. Gives the name of a run whose shard node 0 has. */
static const char *two(void)
{
    stage_begin(&(struct stage_plan){.definitions = TOOLS, .node_count = 2, .node = {.lease_ms = 2000}});
    return stage_run_at(0);
}

/* Node 0 has lost the shard of the run to node 1, and knows it. */
static void take_away(const char *run)
{
    nodes[0].cut = true;
    stage_until_has(1, run);
    nodes[0].cut = false;
    stage_until_lost(0, run);
}

/* The client leaves before the log is read, at any moment of the read, or too late. */
TEST(a_client_that_left_while_the_log_is_read_is_not_missed)
{
    uint32_t left = 0;
    bool is_late = false;

    for (int64_t ms = 0; ms <= 2000 && !is_late; ms += 20) {
        const char *run = two();
        struct reply *reply;

        reply = stage_call_begin(0, run, "pay", "{'a':1}", 60000);
        stage_is_automatic = true; /* the next owner settles the call by the time the log is read */
        take_away(run);
        pg_set_slow(world->pg, 300000);
        stage_run(ms);
        is_late = reply->done;
        if (is_late) {
            assert_int_equal(reply->code, ERR_OK);
        } else {
            stage_hang_up(reply);
            (void)stage_expect(reply, ERR_TIMEOUT);
            left++;
        }
        stage_run(2000);
        pg_set_slow(world->pg, 200);
        stage_complete_all("pay", "{}");
        (void)stage_expect(stage_ask(1, engine_call, stage_call_of(run, "pay", "{'a':1}", 60000)), ERR_OK);
        stage_end();
    }
    assert_true(is_late && left >= 10); /* every moment of the read, which takes some 300 ms, was tried */
}

/* The other engine settled the call, and the saga completed. A client that waited at the first engine hears so; a
 * client that left is not told. */
TEST(a_waiting_client_hears_what_became_of_its_saga_elsewhere)
{
    for (int leaves = 0; leaves < 2; leaves++) {
        struct reply *reply;
        struct saga_id saga;

        (void)two();
        saga = open_saga(0);
        reply = stage_ask(0, engine_call, stage_call_in(saga, "pay", "{'a':1}", 60000));
        (void)stage_until_call("pay");
        node_freeze_now(&nodes[0], 10000000);
        stage_is_automatic = true;
        stage_run(8000); /* the next owner makes the call and has its answer */
        assert_int_equal(stage_calls("pay"), 2);
        (void)stage_expect(stage_change(1, VERB_COMPLETE, saga, .wait_ms = 5000), ERR_OK);
        assert_true(nodes[0].frozen);
        while (nodes[0].engine->shards[saga_id_shard(saga)].state == SHARD_OWNED) {
            stage_run(1);
        }
        assert_false(reply->done);
        if (leaves) {
            stage_run(200);
            nodes[0].cut = true; /* the log is being read when the client goes */
            stage_run(200);
            stage_hang_up(reply);
            nodes[0].cut = false;
        }
        (void)stage_expect(reply, leaves ? ERR_TIMEOUT : ERR_OK);
        stage_run(5000);
        stage_end();
    }
}

/* The log cannot be read. The answer says so, and does not say that nothing was there. */
TEST(a_log_that_makes_no_sense_is_told_as_that)
{
    struct reply *reply;
    const char *run = two();

    reply = stage_call_begin(0, run, "pay", "{'a':1}", 60000);
    stage_logs_are_corrupt = true;
    take_away(run);
    (void)stage_expect(reply, ERR_CORRUPT);
}

/* The next owner is soon gone, and the shard comes back. The client waits for the saga in memory again. */
TEST(a_waiting_client_comes_back_to_a_saga_whose_shard_comes_back)
{
    struct reply *reply;
    const char *run = two();

    reply = stage_call_begin(0, run, "pay", "{'a':1}", 60000);
    take_away(run);
    node_kill(&nodes[1]);
    stage_until_has(0, run);
    stage_run(5000);
    assert_false(reply->done);
    stage_is_automatic = true;
    stage_complete_all("pay", "{'id':7}");
    (void)stage_expect(reply, ERR_OK);
}

/* The client is at another engine, which asks the next owner when this one has lost the shard. */
TEST(a_call_through_another_engine_outlives_the_owner_it_was_sent_to)
{
    struct reply *reply;
    const char *run = two();

    reply = stage_call_begin(1, run, "pay", "{'a':1}", 60000);
    assert_ptr_equal(stage_call("pay")->node, &nodes[0]);
    take_away(run);
    stage_is_automatic = true;
    stage_complete_all("pay", "{'id':7}");
    (void)stage_expect(reply, ERR_OK);
}

/* A client that waits at an engine that leaves is told the state of its call. A client that wants to complete the saga
 * is told that something is not settled. */
TEST(a_client_of_an_engine_that_leaves_is_answered_before_it_goes)
{
    struct reply *call, *complete;
    struct saga_id saga;

    stage_begin(&(struct stage_plan){.definitions = TOOLS});
    saga = open_saga(0);
    call = stage_ask(0, engine_call, stage_call_in(saga, "pay", "{'a':1}", 60000));
    (void)stage_until_call("pay");
    complete = stage_change(0, VERB_COMPLETE, saga, .wait_ms = 60000);
    stage_run(100);
    assert_false(complete->done);
    node_drain(&nodes[0], 500);
    (void)stage_expect(call, ERR_OK);
    assert_true(call->call.going_on);
    stage_wait(complete);
    assert_true(err_retryable(complete->code));
}

static void leave(void)
{
    node_drain(&nodes[0], 0);
}

/* The call becomes durable, and in the same moment the engine leaves at once. The client is told to ask elsewhere,
 * where the call is carried out. */
TEST(a_call_that_becomes_durable_while_its_engine_goes_is_not_lost)
{
    struct reply *reply;
    const char *run = two();

    stage_is_automatic = true;
    reply = stage_ask(0, engine_call, stage_call_of(run, "pay", "{'a':1}", 60000));
    stage_commit(1, COMMIT_OK, leave);
    stage_wait(reply);
    assert_true(reply->code == ERR_OK || err_retryable(reply->code));
    (void)stage_expect(stage_ask(1, engine_call, stage_call_of(run, "pay", "{'a':1}", 60000)), ERR_OK);
}

/* The standby that took over did not have the call: an asynchronous one may lose what was acknowledged to the engine.
 * The client hears that nothing is there. A repeat carries the call out once a person has accepted the loss, which
 * happens at once here. */
TEST(a_call_that_a_fail_over_took_back_is_told_to_be_repeated)
{
    struct reply *reply, *again = NULL;
    const char *run = two();

    (void)stage_expect(stage_ask(0, engine_call, stage_call_of(run, "look", "{}", 0)), ERR_OK);
    stage_complete(stage_until_call("look"), "{}");
    stage_run(10000);
    reply = stage_call_begin(0, run, "pay", "{'a':1}", 60000);
    pg_fail_over(world->pg, 100000, 1000000);
    nodes[0].cut = true;
    stage_until_has(1, run);
    nodes[0].cut = false;
    stage_wait(reply);
    assert_true(err_retryable(reply->code));
    stage_is_automatic = true;
    for (int tries = 0; tries == 0 || (err_retryable(again->code) && tries < 20);
         tries++) { /* until the engine has dropped what is gone */
        stage_run(500);
        again = stage_wait(stage_ask(0, engine_call, stage_call_of(run, "pay", "{'a':1}", 60000)));
    }
    assert_int_equal(again->code, ERR_OK);
}

static void leave_slowly(void)
{
    node_drain(&nodes[0], 30000);
}

/* The call came through the inbox and became durable while its owner leaves. The sender gets its answer, from this
 * owner or the next. */
TEST(a_call_from_another_engine_is_answered_while_its_owner_leaves)
{
    struct reply *reply;
    const char *run = two();

    reply = stage_ask(1, engine_call, stage_call_of(run, "pay", "{'a':1}", 60000));
    stage_commit(2, COMMIT_OK, leave_slowly);
    (void)stage_until_call("pay");
    while (!reply->done) {
        stage_complete_all("pay", "{'id':7}");
        stage_run(100);
    }
    assert_int_equal(reply->code, ERR_OK);
}

/* --- guards --- */

/* A tool that keeps failing gets no call. The call is not made, and the client is told when to come again. */
TEST(a_call_that_a_guard_refuses_says_when_to_come_again)
{
    static const struct {
        const char *run, *tool;
        enum err_code code;
    } calls[] = {{"r1", "fragile", ERR_BREAKER}, {"r2", "seldom", ERR_RATE}};

    stage_begin(&(struct stage_plan){
        .definitions =
            "{'tools':[{'name':'fragile','builtin':{'tool':'fragile'},'effect':'read','retry':{'max_attempts':1},"
            "'breaker':{'failures':2,'window':'1m','cooldown':'10s'}},"
            "{'name':'seldom','builtin':{'tool':'seldom'},'effect':'read','retry':{'max_attempts':1},'rate':{'limit':1,"
            "'per':'10s'}}]}"});
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        struct reply *reply = NULL;

        for (int n = 0; n < 4; n++) {
            char args[32];

            (void)snprintf(args, sizeof(args), "{'n':%d}", n);
            reply = stage_ask(0, engine_call, stage_call_of(calls[i].run, calls[i].tool, args, 5000));
            stage_run(1000);
            if (!reply->done && stage_call(calls[i].tool)) {
                stage_answer(stage_call(calls[i].tool),
                             (struct outcome){.kind = OUTCOME_UNKNOWN, .error = SLICE("http-500")}, NULL);
            }
            stage_wait(reply);
        }
        assert_int_equal(reply->code, calls[i].code);
        assert_true(reply->call.retry_after_ms > 0);
        assert_true(stage_calls(calls[i].tool) < 4);
    }
}

/* A guard refused the call for a while, and the saga was undone meanwhile. Whoever comes again is told that it is over,
 * however the call is repeated, and not to come again for ever. */
TEST(a_call_that_a_guard_refused_is_over_when_its_saga_is)
{
    struct engine_request abort = {.in.change.verb = VERB_ABORT}, *request;
    struct saga_id saga;
    struct reply *reply;

    stage_begin(&(struct stage_plan){
        .definitions =
            "{'tools':[{'name':'undo','builtin':{'tool':'undo'},'effect':'idempotent'},{'name':'seldom','builtin':{"
            "'tool':'seldom'},'effect':'idempotent','compensate':{'tool':'undo'},'rate':{'limit':1,'per':'1h'}}]}",
        .is_automatic = true});
    saga = open_saga(0);
    assert_int_equal(stage_wait(stage_ask(0, engine_call, stage_call_in(saga, "seldom", "{}", 5000)))->code, ERR_OK);
    request = stage_call_in(saga, "seldom", "{}", 5000);
    request->in.call.step = SLICE("again");
    request->in.call.emission = SLICE("one");
    reply = stage_wait(stage_ask(0, engine_call, request));
    assert_int_equal(reply->code, ERR_RATE);
    assert_true(reply->call.retry_after_ms > 0);
    abort.in.change.saga = saga;
    abort.in.change.input.abort.note = SLICE("not wanted any more");
    (void)stage_expect(stage_ask(0, engine_change, &abort), ERR_OK);
    for (int other = 0; other < 2; other++) {
        stage_run(10000);
        request = stage_call_in(saga, "seldom", "{}", 5000);
        request->in.call.step = SLICE("again");
        request->in.call.emission = other ? SLICE("two") : SLICE("one");
        reply = stage_wait(stage_ask(0, engine_call, request));
        assert_int_equal(reply->code, ERR_CLOSED);
        assert_int_equal(reply->call.retry_after_ms, 0);
    }
}

/* A person gives up a saga while one of its calls is under way. Nobody waits for that call any more. */
TEST(a_client_of_a_saga_that_is_given_up_is_told_that_it_ended)
{
    struct reply *first, *second;
    struct engine_request *request;
    struct saga_id saga;
    struct slice shown;
    int64_t number = 0;

    stage_begin(&(struct stage_plan){.definitions = TOOLS});
    saga = open_saga(0);
    first = stage_ask(0, engine_call, stage_call_in(saga, "ask", "{'a':1}", 60000));
    unknown(stage_until_call("ask"));
    request = stage_call_in(saga, "pay", "{'a':2}", 60000);
    second = stage_ask(0, engine_call, request);
    (void)stage_until_call("pay");
    (void)stage_expect(first, ERR_AWAITING);
    shown = json_member(stage_saga(0, saga), "escalation");
    assert_true(json_i64(shown, &number));
    (void)stage_expect(stage_resolve(0, (uint64_t)number, OPERATOR_ABANDON, .note = SLICE("let it be")), ERR_OK);
    stage_run(100);
    assert_true(second->done);
    assert_int_equal(second->code, ERR_CLOSED);
    stage_complete(stage_call("pay"), "{}");
}

/* A call whose saga has ended, or which is being undone and is stuck, is still answered from its record. */
TEST(a_repeat_is_answered_after_the_end_and_while_its_undo_is_a_persons)
{
    struct saga_id done, undone;
    struct reply *reply;

    stage_begin(&(struct stage_plan){.definitions = TOOLS});
    done = open_saga(0);
    undone = open_saga(0);
    for (int i = 0; i < 2; i++) {
        reply = stage_ask(0, engine_call, stage_call_in(i ? undone : done, "pay", "{'a':1}", 60000));
        stage_complete(stage_until_call("pay"), "{'id':7}");
        (void)stage_expect(reply, ERR_OK);
    }
    (void)stage_expect(stage_change(0, VERB_COMPLETE, done), ERR_OK);
    (void)stage_expect(stage_change(0, VERB_ABORT, undone), ERR_OK);
    stage_answer(stage_until_call("undo"), (struct outcome){.kind = OUTCOME_FAILED, .error = SLICE("http-422")}, NULL);
    stage_run(1000);
    for (int i = 0; i < 2; i++) {
        reply =
            stage_expect(stage_ask(0, engine_call, stage_call_in(i ? undone : done, "pay", "{'a':1}", 1000)), ERR_OK);
        assert_true(reply->call.replayed);
    }
    assert_int_equal(stage_calls("pay"), 2);
}

/* The refusal is in the log, and the engine lost the shard before it heard so. The client is refused, or told to come
 * again. */
TEST(a_refusal_that_became_durable_with_its_shard_lost_begins_nothing)
{
    struct reply *reply;
    const char *run = two();

    reply = stage_ask(0, engine_call, stage_call_of(run, "strict", "{'a':1}", 60000));
    stage_complete(stage_until_call("strict"), "{}");
    (void)stage_expect(reply, ERR_OK);
    stage_commit(1, COMMIT_LOST_AFTER, stage_freeze_first);
    reply = stage_ask(0, engine_call, stage_call_of(run, "strict", "{'a':1}", 60000));
    stage_until_has(1, run);
    stage_wait(reply);
    assert_true(reply->code == ERR_DUPLICATE || reply->code == ERR_FENCED);
    assert_int_equal(stage_calls("strict"), 1);
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
