/* Calls of agents and the clients that wait for them (call.c, caller.c): cases that campaigns and the tests of the API
 * meet too seldom. */
#include "run/query/health.h"
#include "run/saga/live.h"
#include "tests/sim/stage.h"

#include <stdio.h>

#include "base/json.h"
#include "run/engine_state.h"

#define TOOLS                                                                                                          \
    "{'tools':["                                                                                                       \
    "{'name':'undo','builtin':{'tool':'undo'},'effect':'idempotent'},"                                                 \
    "{'name':'pay','builtin':{'tool':'pay'},'effect':'keyed','key':{'window':'10m'},'compensate':{'tool':'undo'},"     \
    "'retry':{'max_attempts':2,'initial':'100ms'},'timeout':'5s'},"                                                    \
    "{'name':'either','builtin':{'tool':'either'},'effect':{'if':'${ .args.safe | . }','then':'read','else':'keyed'}," \
    "'key':{'window':'10m'},'compensate':{'tool':'undo'}},"                                                            \
    "{'name':'ask','builtin':{'tool':'ask'},'effect':'once','compensate':{'tool':'undo'}},"                            \
    "{'name':'shaped','builtin':{'tool':'shaped'},'effect':'read','input':{'type':'object','required':['a']}},"        \
    "{'name':'look','builtin':{'tool':'look'},'effect':'read'}],"                                                      \
    "'sagas':[{'name':'s','steps':[{'id':'a','call':'look'}]}]}"

/* --- repeats --- */

TEST(a_call_is_answered_and_its_repeat_gets_the_record)
{
    struct reply *first, *again;

    stage_begin(&(struct stage_plan){.definitions = TOOLS});
    first = stage_ask(0, engine_call, stage_call_of("r1", "pay", "{'a':1}", 10000));
    stage_complete(stage_until_call("pay"), "{'id':7}");
    (void)stage_expect(first, ERR_OK);
    again = stage_expect(stage_ask(0, engine_call, stage_call_of("r1", "pay", "{'a':1}", 10000)), ERR_OK);
    assert_true(again->call.replayed);
    assert_true(slice_is(json_trim(json_member(again->answer, "duplicate")), "true"));
    assert_int_equal(stage_calls("pay"), 1);
}

TEST(a_repeat_in_an_open_saga_gets_the_record_too)
{
    struct reply *opened, *again;

    stage_begin(&(struct stage_plan){.definitions = TOOLS, .is_automatic = true});
    opened = stage_expect(stage_ask(0, engine_open_saga, &(struct engine_request){.in.open = {.deadline_ms = 60000}}),
                          ERR_OK);
    (void)stage_expect(stage_ask(0, engine_call, stage_call_in(opened->saga, "pay", "{'a':1}", 10000)), ERR_OK);
    again = stage_expect(stage_ask(0, engine_call, stage_call_in(opened->saga, "pay", "{'a':1}", 10000)), ERR_OK);
    assert_true(again->call.replayed);
    assert_int_equal(stage_calls("pay"), 1);
}

/* An agent makes the same call under one name after another. Only the first rounds are made, and the refusal says that
 * it is a loop. */
TEST(calls_that_go_round_are_stopped_whatever_their_steps_are_called)
{
    uint32_t refused = 0;

    stage_begin(&(struct stage_plan){.definitions = TOOLS, .is_automatic = true});
    for (int i = 0; i < 5; i++) {
        char step[8];
        struct engine_request *request;
        struct reply *reply;

        (void)snprintf(step, sizeof(step), "s%d", i);
        request = stage_call_of("round", "look", "{'a':1}", 10000);
        request->in.call.step = slice_of(step);
        reply = stage_wait(stage_ask(0, engine_call, request));
        if (reply->code != ERR_OK) {
            assert_int_equal(reply->code, i < 4 ? ERR_LOOP : reply->code);
            refused++;
        }
    }
    assert_in_range(refused, 1, 3);
    assert_int_equal(stage_calls("look"), 5 - refused);
}

/* An agent asks for one step again and again. */
TEST(a_step_that_is_repeated_for_ever_is_refused_as_a_loop)
{
    enum err_code last = ERR_OK;

    stage_begin(&(struct stage_plan){.definitions = TOOLS, .is_automatic = true});
    for (int i = 0; i < 5; i++) {
        last = stage_wait(stage_ask(0, engine_call, stage_call_of("round", "pay", "{'a':1}", 10000)))->code;
    }
    assert_int_equal(last, ERR_LOOP);
    assert_int_equal(stage_calls("pay"), 1);
}

/* --- what comes of it --- */

TEST(a_tool_that_fails_says_why_with_and_without_detail)
{
    struct reply *reply;

    stage_begin(&(struct stage_plan){.definitions = TOOLS});
    reply = stage_ask(0, engine_call, stage_call_of("r1", "pay", "{'a':1}", 10000));
    stage_answer(stage_until_call("pay"), (struct outcome){.kind = OUTCOME_FAILED, .error = SLICE("no-money")}, NULL);
    (void)stage_expect(reply, ERR_TOOL_FAILED);
    assert_string_equal(reply->err.detail, "no-money");
    assert_non_null(reply->call.operation.ptr);
    reply = stage_ask(0, engine_call, stage_call_of("r2", "pay", "{'a':1}", 10000));
    stage_answer(stage_until_call("pay"),
                 (struct outcome){.kind = OUTCOME_FAILED, .error = SLICE("no-money"), .detail = SLICE("none at all")},
                 NULL);
    stage_wait(reply);
    assert_string_equal(reply->err.detail, "no-money: none at all");
}

/* A client that left is told nothing. The operation is carried out, and a repeat of the call gets its record. */
TEST(a_caller_who_leaves_takes_nothing_along)
{
    struct reply *left, *again;

    stage_begin(&(struct stage_plan){.definitions = TOOLS});
    left = stage_call_begin(0, "r1", "pay", "{'a':1}", 10000);
    stage_hang_up(left);
    (void)stage_expect(left, ERR_TIMEOUT);
    again = stage_ask(0, engine_call, stage_call_of("r1", "pay", "{'a':1}", 10000));
    stage_run(1000);
    assert_false(again->done);
    stage_complete(stage_call("pay"), "{'id':7}");
    (void)stage_expect(again, ERR_OK);
}

static bool is_committing(void *context)
{
    return *(const bool *)context;
}

static bool committed;

static void on_committed(void)
{
    committed = true;
}

/* The client goes while its call becomes durable. Nobody waits any more, and nothing is lost. */
TEST(a_caller_may_leave_while_the_call_becomes_durable)
{
    struct reply *left, *again;

    stage_begin(&(struct stage_plan){.definitions = TOOLS});
    committed = false;
    left = stage_ask(0, engine_call, stage_call_of("r1", "pay", "{'a':1}", 10000));
    stage_commit(1, COMMIT_OK, on_committed);
    stage_until(is_committing, &committed, "the commit");
    stage_hang_up(left);
    stage_complete(stage_until_call("pay"), "{'id':7}");
    stage_run(100);
    again = stage_wait(stage_ask(0, engine_call, stage_call_of("r1", "pay", "{'a':1}", 10000)));
    assert_true(again->call.replayed);
    assert_int_equal(stage_calls("pay"), 1);
}

/* --- a shard that changes hands --- */

/* Begins with two engines. Gives the name of a run whose shard node 0 has. */
static const char *two(void)
{
    stage_begin(&(struct stage_plan){.definitions = TOOLS, .node_count = 2, .node = {.lease_ms = 2000}});
    return stage_run_at(0);
}

/* Waits as a client does: when the engine had to say that it does not know, the other engine is asked. */
static struct reply *stage_wait_for_call(struct reply *reply, const char *run, const char *tool)
{
    stage_wait(reply);
    for (int i = 0; i < 10 && (reply->code == ERR_STORE || reply->code == ERR_LOST_COMMIT || reply->code == ERR_FENCED);
         i++) {
        reply = stage_wait(stage_ask(1, engine_call, stage_call_of(run, tool, "{'a':1}", 60000)));
    }
    return reply;
}

/* The owner is frozen for longer than its lease while it has a call. Nothing of the call is durable, and the next owner
 * carries it out. */
TEST(a_call_whose_owner_was_superseded_is_asked_of_the_next_owner)
{
    struct reply *reply;
    const char *run = two();

    (void)stage_expect(stage_ask(0, engine_call, stage_call_of(run, "look", "{}", 0)),
                       ERR_OK); /* the run is in memory */
    stage_run(200);
    reply = stage_ask(0, engine_call, stage_call_of(run, "pay", "{'a':1}", 60000));
    node_freeze_now(&nodes[0], 8000000);
    stage_until_has(1, run);
    stage_is_automatic = true;
    stage_complete_all("look", "{}");
    reply = stage_wait_for_call(reply, run, "pay");
    assert_int_equal(reply->code, ERR_OK);
    assert_int_equal(stage_calls("pay"), 1);
}

/* The call is durable, and the owner was frozen before it heard so. When it hears, another engine has the shard, and
 * the log has the answer. */
TEST(a_call_that_became_durable_with_its_shard_lost_is_answered_from_the_log)
{
    const char *run = two();
    struct reply *reply;

    stage_is_automatic = true;
    reply = stage_ask(0, engine_call, stage_call_of(run, "pay", "{'a':1}", 60000));
    stage_commit(1, COMMIT_LOST_AFTER, stage_freeze_first);
    stage_until_has(1, run);
    reply = stage_wait_for_call(reply, run, "pay");
    assert_int_equal(reply->code, ERR_OK);
    assert_int_equal(stage_calls("pay"), 1);
}

/* A client waits at an engine that loses the shard. It goes on waiting, for the log. */
TEST(a_client_of_a_saga_that_moves_gets_its_answer_from_the_log)
{
    struct reply *reply, *known;
    const char *run = two();

    reply = stage_call_begin(0, run, "pay", "{'a':1}", 60000);
    node_freeze_now(&nodes[0], 6000000); /* the engine loses the shard, and the call goes on */
    stage_until_has(1, run);
    stage_run(3000);
    assert_true(nodes[0].frozen);
    stage_until_lost(0, run);
    stage_run(3000);
    assert_false(reply->done);
    known = stage_ask(1, engine_call, stage_call_of(run, "pay", "{'a':1}", 60000));
    stage_is_automatic = true;
    stage_complete_all("pay", "{'id':7}");
    (void)stage_expect(reply, ERR_OK);
    (void)stage_expect(known, ERR_OK);
}

/* The wait ends while another engine has the saga. The client is told that the saga goes on there. */
TEST(a_wait_that_ends_after_the_shard_was_lost_is_told_that_it_goes_on)
{
    struct reply *reply;
    const char *run = two();

    reply = stage_call_begin(0, run, "pay", "{'a':1}", 12000);
    node_freeze_now(&nodes[0], 4000000);
    stage_until_has(1, run);
    (void)stage_expect(reply, ERR_OK);
    assert_true(reply->call.going_on);
}

/* The owner hears nothing of the database for a lease, and other engines go on without it. The waiting client is told
 * by then, and a repeat gets the answer that exists meanwhile. */
TEST(a_client_of_an_engine_that_is_cut_off_is_told_within_two_leases)
{
    struct reply *reply;
    const char *run = two();

    reply = stage_call_begin(0, run, "pay", "{'a':1}", 60000);
    stage_is_automatic = true; /* for the calls of the next owner */
    nodes[0].cut = true;
    stage_run(4000);
    assert_true(reply->done);
    assert_int_equal(reply->code, ERR_STORE);
    (void)stage_expect(stage_ask(0, engine_call, stage_call_of(run, "pay", "{'a':1}", 60000)), ERR_STORE);
    nodes[0].cut = false;
    stage_run(4000);
    reply = stage_expect(stage_ask(0, engine_call, stage_call_of(run, "pay", "{'a':1}", 60000)), ERR_OK);
    assert_true(reply->call.replayed);
}

/* The database is away, too, and still the wait ends. */
TEST(a_wait_whose_log_cannot_be_read_ends_with_that)
{
    struct reply *reply;
    const char *run = two();

    reply = stage_call_begin(0, run, "pay", "{'a':1}", 60000);
    nodes[0].cut = true;
    stage_until_has(1, run);
    nodes[0].cut = false;
    stage_until_lost(0, run);
    pg_restart(world->pg, 3000000);
    (void)stage_expect(reply, ERR_STORE);
}

/* A client leaves while its call, for a shard of another engine, is still being classified. The call is not sent to
 * that engine. */
TEST(a_call_that_nobody_waits_for_any_more_is_not_sent_to_another_engine)
{
    struct reply *left;

    (void)two();
    left = stage_ask(0, engine_call, stage_call_of(stage_run_at(1), "either", "{'safe':true}", 10000));
    stage_hang_up(left);
    (void)stage_expect(left, ERR_TIMEOUT);
    stage_run(5000);
    assert_int_equal(stage_calls("either"), 0);
}

/* --- too much --- */

static void few_words(const struct reply *reply)
{
    assert_int_equal(reply->code, ERR_BUSY);
    assert_true(reply->err.message[0] != '\0');
    assert_true(reply->call.retry_after_ms > 0);
}

/*
 * While the engine accepts no new work, it reads sagas back to see whether a call is a repeat, but only a bounded
 * number at once. Sagas in memory are always checked.
 */
TEST(while_it_is_busy_repeats_are_answered_and_only_so_many_logs_read)
{
    struct reply *first, *again, *waits[80];
    struct reply *open, *more;
    char name[16];

    stage_begin(&(struct stage_plan){.definitions = TOOLS});
    open = stage_wait(stage_ask(0, engine_open_saga, &(struct engine_request){.in.open = {.deadline_ms = 600000}}));
    first = stage_ask(0, engine_call, stage_call_in(open->saga, "pay", "{'a':1}", 60000));
    (void)stage_until_call("pay");
    nodes[0].engine->options.memory_bytes_max = 1;
    stage_run(2000);
    (void)stage_expect(stage_ask(0, engine_start_saga, &(struct engine_request){.in.start.saga = SLICE("s")}),
                       ERR_BUSY);
    stage_hold(STORE_READ_RUN);
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        (void)snprintf(name, sizeof(name), "new-%zu", i);
        waits[i] = stage_ask(0, engine_call, stage_call_of(name, "pay", "{'a':1}", 1000));
    }
    stage_run(50);
    for (size_t i = 64; i < COUNT_OF(waits); i++) {
        assert_true(waits[i]->done);
        few_words(waits[i]);
    }
    for (size_t i = 0; i < 64; i++) {
        assert_false(waits[i]->done);
    }
    again = stage_ask(0, engine_call, stage_call_in(open->saga, "pay", "{'a':1}", 60000)); /* the saga is in memory */
    more = stage_ask(0, engine_call, stage_call_in((struct saga_id){waits[0]->saga.uuid}, "pay", "{'a':1}", 1000));
    stage_run(50);
    assert_false(again->done);
    stage_release(STORE_READ_RUN);
    stage_complete(stage_call("pay"), "{'id':7}");
    (void)stage_expect(first, ERR_OK);
    (void)stage_expect(again, ERR_OK);
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        few_words(stage_wait(waits[i]));
    }
    (void)stage_wait(more);
    assert_int_equal(stage_calls("pay"), 1);
}

/* --- what a call may be --- */

TEST(a_malformed_call_is_refused_with_a_sentence)
{
    static char long_name[300];
    struct engine_request *request;

    stage_begin(&(struct stage_plan){.definitions = TOOLS, .node = {.payload_bytes_max = 64}});
    memset(long_name, 'x', sizeof(long_name) - 1);
    (void)stage_expect(
        stage_ask(
            0, engine_call,
            stage_call_of("r", "pay", "{'a':'0123456789012345678901234567890123456789012345678901236789012345'}", 0)),
        ERR_TOO_LARGE);
    (void)stage_expect(stage_ask(0, engine_call, stage_call_of(long_name, "pay", "{}", 0)), ERR_INVALID);
    (void)stage_expect(stage_ask(0, engine_call, stage_call_of("", "pay", "{}", 0)), ERR_INVALID);
    request = stage_call_of("r", "pay", "{}", 0);
    request->in.call.scope = slice_of(long_name);
    (void)stage_expect(stage_ask(0, engine_call, request), ERR_INVALID);
    request = stage_call_of("r", "pay", "{}", 0);
    request->in.call.emission = slice_of(long_name);
    (void)stage_expect(stage_ask(0, engine_call, request), ERR_INVALID);
    request = stage_call_of("r", "pay", "{}", 0);
    request->in.call.conversation_turn = slice_of(long_name);
    (void)stage_expect(stage_ask(0, engine_call, request), ERR_INVALID);
    request = stage_call_of("r", "pay", "{}", 0);
    request->in.call.run = SLICE_NONE;
    (void)stage_expect(stage_ask(0, engine_call, request), ERR_INVALID);
    request = stage_call_of("r", "pay", "{}", 0);
    request->in.call.step = SLICE("a b");
    (void)stage_expect(stage_ask(0, engine_call, request), ERR_INVALID);
    (void)stage_expect(stage_ask(0, engine_call, stage_call_of("r", "nobody", "{}", 0)), ERR_NOT_FOUND);
    assert_int_equal(stage_calls("pay"), 0);
}

TEST(arguments_that_do_not_fit_are_told_place_by_place_and_change_nothing)
{
    struct reply *reply;

    stage_begin(&(struct stage_plan){.definitions = TOOLS});
    reply = stage_expect(stage_ask(0, engine_call, stage_call_of("r", "shaped", "{'b':1}", 1000)), ERR_INVALID);
    assert_int_equal(reply->faults, 1);
    assert_int_equal(stage_calls("shaped"), 0);
    stage_is_automatic = true;
    (void)stage_expect(stage_ask(0, engine_call, stage_call_of("r", "shaped", "{'a':1}", 1000)), ERR_OK);
}

TEST(a_budget_that_is_used_up_refuses_and_is_counted)
{
    struct reply *opened;
    struct tool_health *health;
    struct node *before;

    stage_begin(&(struct stage_plan){.definitions = TOOLS, .is_automatic = true});
    opened = stage_expect(
        stage_ask(0, engine_open_saga,
                  &(struct engine_request){.in.open = {.deadline_ms = 60000, .budget = stage_json("{'calls':1}")}}),
        ERR_OK);
    (void)stage_expect(stage_ask(0, engine_call, stage_call_in(opened->saga, "pay", "{'a':1}", 1000)), ERR_OK);
    (void)stage_expect(stage_ask(0, engine_call, stage_call_in(opened->saga, "look", "{'a':2}", 1000)), ERR_BUDGET);
    before = node_enter(&nodes[0]);
    health = tool_health_of(nodes[0].engine, SLICE("default"), SLICE("look"));
    node_leave(before);
    assert_int_equal(health->budget_refusals, 1);
}

/* A newer release may have registered this tool. This engine cannot use its compensator, so it begins nothing that it
 * could not undo. */
TEST(a_tool_whose_compensator_cannot_be_used_here_is_not_called)
{
    struct definition_row row = {
        .namespace = SLICE("default"), .kind = DEFINITION_TOOL, .name = SLICE("newer"), .version = 1, .created_ms = 1};
    struct node *before;
    struct reply *reply;

    stage_begin(&(struct stage_plan){.definitions = TOOLS});
    row.body =
        stage_json("{'name':'newer','builtin':{'tool':'newer'},'effect':'idempotent','compensate':{'tool':'nobody'}}");
    before = node_enter(&nodes[0]);
    definitions_add(nodes[0].engine->definitions, &row);
    node_leave(before);
    reply = stage_expect(stage_ask(0, engine_call, stage_call_of("r", "newer", "{}", 1000)), ERR_NOT_FOUND);
    assert_non_null(strstr(reply->err.message, "the compensator of \"newer\""));
    assert_int_equal(stage_calls("newer"), 0);
}

/* The last two bytes of an id are its shard. An id with a shard that does not exist belongs to no saga. */
TEST(a_call_in_a_saga_that_cannot_be_is_refused)
{
    struct saga_id none;

    stage_begin(&(struct stage_plan){.definitions = TOOLS});
    memset(&none, 0xff, sizeof(none));
    (void)stage_expect(stage_ask(0, engine_call, stage_call_in(none, "look", "{}", 0)), ERR_NOT_FOUND);
}

/* The saga is paused, and the call came without a wait. The refusal says who can resume the saga. */
TEST(a_call_in_a_paused_saga_is_refused_and_says_how_it_goes_on)
{
    struct reply *opened, *reply;

    stage_begin(&(struct stage_plan){.definitions = TOOLS});
    opened = stage_wait(stage_ask(0, engine_open_saga, &(struct engine_request){.in.open = {.deadline_ms = 60000}}));
    (void)stage_expect(stage_change(0, VERB_PAUSE, opened->saga), ERR_OK);
    reply = stage_expect(stage_ask(0, engine_call, stage_call_in(opened->saga, "look", "{}", 0)), ERR_PAUSED);
    assert_non_null(strstr(reply->err.hint, "sagactl resume"));
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
