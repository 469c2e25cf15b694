/*
 * Turns and requests of a saga: a turn that is too large for one row, a turn that the saga itself refuses, followers of
 * a log, requests while the engine leaves, and repeated requests.
 */
#include "run/saga/live.h"
#include "tests/sim/stage.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "run/request/work.h"
#include "run/saga/saga_room.h"
#include "run/saga/turn_state.h"

static const char document[] =
    "{'tools':["
    "{'name':'act','builtin':{'tool':'act'},'effect':'idempotent','compensate':{'tool':'undo'}},"
    "{'name':'lose','builtin':{'tool':'lose'},'effect':'once','compensate':{'tool':'undo'}},"
    "{'name':'undo','builtin':{'tool':'undo'},'effect':'idempotent'}],"
    "'sagas':["
    "{'name':'acts','steps':[{'id':'a','call':'act','with':{}}]},"
    "{'name':'listens','steps':[{'id':'a','signal':{'name':'paid'}}]},"
    "{'name':'asks','steps':[{'id':'lost','call':'lose','with':{}},{'id':'ok','after':[],'approve':{'show':{'n':1}}}]}"
    "]}";

static int setup(void **state)
{
    (void)state;
    stage_begin(&(struct stage_plan){.definitions = document, .is_automatic = true});
    stage_says("lose", OUTCOME_UNKNOWN, "timeout", NULL);
    return 0;
}

static struct engine *engine_now(void)
{
    return nodes[0].engine;
}

static struct reply *send_signal(uint32_t node, struct saga_id id)
{
    return stage_change(node, VERB_SIGNAL, id, .input.signal = {.name = SLICE("paid"), .id = SLICE("k")});
}

/* --- size --- */

/* Limits the size of the next turns, which is 64 MiB otherwise. */
static void limit_turns(struct engine *engine, void *context)
{
    struct list_link *link = list_first(&engine->saga_room->turns->idle);

    for (; link; link = list_after(&engine->saga_room->turns->idle, link)) {
        container_of(link, struct turn, link)->payload.bytes_max = *(const size_t *)context;
    }
}

TEST(a_turn_that_is_too_large_for_a_row_is_not_written_and_stands_still)
{
    size_t small = 64, usual = 64u << 20;

    stage_tool("act")->delay_ms = 500;
    struct saga_id id = stage_start(0, "acts", "{}");

    stage_inside(0, limit_turns, &small);
    uint32_t appends = stage_asked(STORE_APPEND);

    stage_run(20000);
    assert_int_equal(stage_asked(STORE_APPEND), appends);
    assert_int_equal(live_find(engine_now(), id)->refusals, REFUSALS_MAX); /* the turn is not tried for ever */
    (void)stage_expect(stage_ask(0, engine_start_saga, &(struct engine_request){.in.start.saga = SLICE("acts")}),
                       ERR_TOO_LARGE); /* the client is told */
    stage_inside(0, limit_turns, &usual);
    /* A person can still end the saga. */
    (void)stage_expect(stage_change(0, VERB_ABORT, id), ERR_OK);
}

TEST(many_turns_and_large_ones_leave_no_memory_behind)
{
    enum { MANY = 600 };
    static struct reply *asks[MANY];
    static char input[66000];

    (void)snprintf(input, sizeof(input), "{\"text\":\"%065500d\"}", 1);
    (void)stage_start(0, "listens", input);
    assert_int_equal(engine_now()->saga_room->turns->idle.count, 0); /* so large a turn is not kept */
    for (size_t i = 0; i < MANY; i++) {
        asks[i] = stage_ask(0, engine_start_saga, &(struct engine_request){.in.start.saga = SLICE("listens")});
    }
    for (size_t i = 0; i < MANY; i++) {
        (void)stage_expect(asks[i], ERR_OK);
    }
    assert_true(engine_now()->saga_room->turns->idle.count <= 512);
}

/* --- what the core refuses of itself --- */

/* The number of decisions that are refused when their records were made and described: nothing of them may be left. */
static int bent;

enum err_code __real_saga_decide_next(const struct saga *saga, const struct saga_input *input, struct arena *arena,
                                      struct decision *decision, struct err *err);
enum err_code __wrap_saga_decide_next(const struct saga *saga, const struct saga_input *input, struct arena *arena,
                                      struct decision *decision, struct err *err);

enum err_code __wrap_saga_decide_next(const struct saga *saga, const struct saga_input *input, struct arena *arena,
                                      struct decision *decision, struct err *err)
{
    enum err_code code = __real_saga_decide_next(saga, input, arena, decision, err);

    if (bent > 0 && saga->seq > 0) {
        bent--;
        decision->records = (struct records){0};
        decision->next = NULL;
        return err_set(err, ERR_INTERNAL, "a record of its own does not fit");
    }
    return code;
}

TEST(a_decision_that_the_core_itself_refuses_is_tried_again_but_not_for_ever)
{
    stage_tool("act")->delay_ms = 100;
    struct saga_id id = stage_start(0, "acts", "{}");

    bent = 1;
    stage_until_saga(0, id, "completed");
    id = stage_start(0, "asks", "{}"); /* the first turn opens an approval, the second one a case */
    bent = 1;
    stage_until_saga(0, id, "escalated");
    assert_int_equal(engine_now()->shards[saga_id_shard(id)].escalation_counter, 1);
    id = stage_start(0, "acts", "{}");
    bent = 1000;
    stage_run(30000);
    assert_int_equal(live_find(engine_now(), id)->refusals, REFUSALS_MAX);
    assert_true(bent > 900);

    (void)stage_expect(send_signal(0, id), ERR_INTERNAL); /* another client's request is refused, and not counted */
    bent = 0;
    node_kill(&nodes[0]);
    stage_again(0);
    stage_until_saga(0, id, "completed");
}

/* --- who follows --- */

static struct follower {
    struct engine_watch watch;
    uint64_t seq;
    bool ended;
} followers[3];

static void on_changed(struct engine_watch *watch, uint64_t seq, bool ended)
{
    struct follower *follower = container_of(watch, struct follower, watch);

    assert_true(seq > follower->seq);
    follower->seq = seq;
    follower->ended = ended;
    if (follower == &followers[1]) { /* this follower has seen enough */
        engine_watch_remove(engine_now(), watch);
    }
}

static void follow(struct engine *engine, void *context)
{
    const struct saga_id *id = context;

    memset(followers, 0, sizeof(followers));
    for (size_t i = 0; i < COUNT_OF(followers); i++) {
        followers[i].watch = (struct engine_watch){.id = *id, .changed = on_changed};
        if (i == 2) {
            followers[i].watch.id.uuid.bytes[0] ^= 1; /* the id of another saga */
        }
        engine_watch_add(engine, &followers[i].watch);
    }
}

static void unfollow(struct engine *engine, void *context)
{
    (void)context;
    for (size_t i = 0; i < COUNT_OF(followers); i++) {
        engine_watch_remove(engine, &followers[i].watch);
    }
}

TEST(each_turn_is_told_to_those_who_follow_that_saga)
{
    struct saga_id id = stage_open(0, "o1");

    stage_inside(0, follow, &id);
    for (int i = 0; i < 2; i++) {
        (void)stage_expect(stage_ask(0, engine_call,
                                     &(struct engine_request){.in.call = {.saga = id,
                                                                          .tool = SLICE("act"),
                                                                          .step = i ? SLICE("two") : SLICE("one"),
                                                                          .wait_ms = 1000}}),
                           ERR_OK);
        assert_false(followers[0].ended);
    }
    uint64_t seq = followers[0].seq;

    (void)stage_expect(stage_change(0, VERB_COMPLETE, id), ERR_OK);
    assert_true(followers[0].seq > seq && followers[0].ended);
    assert_true(followers[1].seq > 0 && followers[1].seq < seq && !followers[1].ended);
    assert_int_equal(followers[2].seq, 0);
    stage_inside(0, unfollow, NULL);
}

/* --- signals --- */

static void spoil_turn(void *request, enum err_code *code)
{
    struct read_saga *read = container_of(request, struct read_saga, read);

    assert_int_equal(*code, ERR_OK);
    read->turns[0].payload = SLICE("[7]");
}

TEST(a_repeat_of_a_signal_to_what_has_ended_is_answered_from_its_log)
{
    struct saga_id id = stage_start(0, "listens", "{}");
    struct reply *a;

    a = stage_expect(send_signal(0, id), ERR_OK);
    assert_true(a->created);
    stage_until_saga(0, id, "completed");
    a = stage_expect(send_signal(0, id), ERR_OK);
    assert_false(a->created);
}

static uint32_t reads_left;

static void spoil_later(void *request, enum err_code *code)
{
    if (reads_left-- > 0) {
        stage_on_answer(STORE_READ_SAGA, spoil_later);
    } else {
        spoil_turn(request, code);
    }
}

static void refuse_later(void *request, enum err_code *code)
{
    (void)request;
    if (reads_left-- > 0) {
        stage_on_answer(STORE_READ_SAGA, refuse_later);
    } else {
        *code = ERR_STORE;
    }
}

TEST(a_repeat_of_a_signal_that_cannot_be_looked_up_is_told_so)
{
    struct saga_id id = stage_start(0, "listens", "{}");

    (void)stage_expect(send_signal(0, id), ERR_OK);
    stage_until_saga(0, id, "completed");
    uint32_t reads = stage_asked(STORE_READ_SAGA);

    (void)stage_expect(send_signal(0, id), ERR_OK);
    reads = stage_asked(STORE_READ_SAGA) - reads;
    assert_true(reads >= 1);
    reads_left = reads - 1;
    stage_on_answer(STORE_READ_SAGA, spoil_later);
    (void)stage_expect(send_signal(0, id), ERR_CORRUPT);
    reads_left = reads - 1;
    stage_on_answer(STORE_READ_SAGA, refuse_later);
    (void)stage_expect(send_signal(0, id), ERR_STORE);
}

TEST(a_signal_whose_sender_has_gone_is_taken_all_the_same)
{
    struct saga_id id = stage_start(0, "listens", "{}");
    struct reply *a;

    a = send_signal(0, id);
    stage_hang_up(a);
    (void)stage_expect(a, ERR_TIMEOUT);
    stage_until_saga(0, id, "completed");
}

/* --- the way to a saga --- */

TEST(a_request_that_is_fenced_twice_is_told_so)
{
    struct saga_id id = stage_start(0, "listens", "{}");
    struct reply *a;

    stage_refuse(STORE_APPEND, ERR_FENCED, 1000);
    a = send_signal(0, id);
    stage_run(30000);
    stage_refuse(STORE_APPEND, ERR_OK, 0);
    (void)stage_wait(a);
    assert_true(err_retryable(a->code) || a->code == ERR_OK);
}

TEST(a_client_that_has_hung_up_when_the_shard_goes_has_nothing_begun_elsewhere)
{
    struct saga_id id = stage_start(0, "listens", "{}");
    uint32_t puts = stage_asked(STORE_INBOX_PUT);
    struct reply *a;

    stage_refuse(STORE_APPEND, ERR_FENCED, 1);
    a = send_signal(0, id);
    stage_hang_up(a);
    (void)stage_wait(a);
    stage_run(10000);
    assert_int_equal(stage_asked(STORE_INBOX_PUT), puts);
}

static uint64_t escalated(struct saga_id *id)
{
    int64_t number = 0;
    struct reply *a;

    *id = stage_start(0, "asks", "{}");
    stage_until_saga(0, *id, "escalated");
    a = stage_expect(stage_ask(0, engine_get_escalations, &(struct engine_request){0}), ERR_OK);
    assert_true(json_i64(json_member(json_element(a->answer, 0), "n"), &number));
    return (uint64_t)number;
}

static struct reply *send_resolution(uint32_t node, uint64_t number, enum operator_action action)
{
    return stage_resolve(node, number, action, .happened = true, .note = SLICE("looked it up"));
}

TEST(work_that_a_leaving_engine_has_not_begun_is_for_another_one)
{
    struct saga_id id;
    uint64_t number = escalated(&id);
    struct reply *a;

    a = send_resolution(0, number, OPERATOR_RESOLVE);
    node_drain(&nodes[0], 5000); /* before the database has said which saga the id belongs to */
    (void)stage_expect(a, ERR_STOPPING);
    stage_run(10000);
    assert_false(nodes[0].up);
    stage_again(0);
    (void)stage_expect(send_resolution(0, number, OPERATOR_RESOLVE), ERR_OK);
}

TEST(an_approval_ends_with_the_saga_that_is_abandoned)
{
    struct saga_id id;
    uint64_t number = escalated(&id);
    struct reply *a;

    (void)stage_expect(send_resolution(0, number, OPERATOR_ABANDON), ERR_OK);
    stage_until_saga(0, id, "abandoned");
    a = stage_expect(stage_ask(0, engine_get_approvals, &(struct engine_request){.in.approvals.open_only = true}),
                     ERR_OK);
    assert_true(slice_is(a->answer, "[]"));
}

/* Another engine has the saga. A request here goes through the inbox and is answered as if it had been sent there. */
TEST(a_resolution_through_another_engine_is_the_same)
{
    struct saga_id id;
    uint64_t number;

    stage_options.standbys = 2;
    stage_again(1);
    number = escalated(&id);
    (void)stage_expect(send_resolution(1, number, OPERATOR_RESOLVE), ERR_OK);
    (void)stage_expect(send_resolution(1, number, OPERATOR_RESOLVE), ERR_DECIDED);
}

TEST(every_door_is_closed_while_an_engine_leaves)
{
    static request_verb *const doors[] = {
        engine_define,     engine_get_definitions, engine_start_saga,    engine_open_saga,
        engine_call,       engine_change,          engine_get_approvals, engine_get_saga,
        engine_get_log,    engine_preview,         engine_list_acts,     engine_list_debts,
        engine_list_sagas, engine_list_operations, engine_get_operation, engine_get_escalations,
        engine_get_stats,  engine_get_engines,
    };

    stage_tool("act")->delay_ms = 3000;
    (void)stage_start(0, "acts", "{}");
    stage_run(100);
    node_drain(&nodes[0], 10000);
    for (size_t i = 0; i < COUNT_OF(doors); i++) {
        (void)stage_expect(stage_ask(0, doors[i], &(struct engine_request){0}), ERR_STOPPING);
    }
}

TEST(a_fenced_request_of_another_engine_stays_for_the_next_owner)
{
    struct saga_id id;
    struct reply *a;

    stage_options.standbys = 2;
    stage_again(1);
    id = stage_start(0, "listens", "{}");
    stage_refuse(STORE_APPEND, ERR_FENCED, 1);
    a = send_signal(1, id);
    stage_until_saga(0, id, "completed");
    (void)stage_wait(a);
    assert_true(a->code == ERR_OK || err_retryable(a->code));
}

TEST(a_request_that_is_fenced_while_an_engine_leaves_is_told_so)
{
    struct saga_id id = stage_start(0, "listens", "{}");
    struct reply *a;

    stage_refuse(STORE_APPEND, ERR_FENCED, 1);
    a = send_signal(0, id);
    node_drain(&nodes[0], 1000);
    (void)stage_expect(a, ERR_FENCED);
    stage_run(3000);
    stage_again(0);
    (void)stage_expect(send_signal(0, id), ERR_OK);
}

/* --- runs --- */

TEST(a_run_that_rests_is_woken_by_its_next_call_and_found_again_after_a_crash)
{
    static const char *const steps[] = {"one", "two", "three"};
    struct reply *a;

    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        stage_tool("act")->delay_ms = i == 2 ? 5000 : 1;
        (void)stage_expect(
            stage_ask(0, engine_call,
                      &(struct engine_request){.in.call = {.run = SLICE("run-1"),
                                                           .step = slice_of(steps[i]),
                                                           .tool = SLICE("act"),
                                                           .args = arena_printf(&world->arena, "{\"n\":%d}", (int)i),
                                                           .wait_ms = i == 2 ? 0 : 1000}}),
            ERR_OK);
        if (i < 2) {
            stage_run(200000);
            assert_int_equal(lives_count(engine_now()), 0); /* it rests */
        }
    }
    node_kill(&nodes[0]); /* the engine dies with a call under way */
    stage_tool("act")->delay_ms = 1;
    stage_again(0);
    stage_run(2000);
    a = stage_expect(
        stage_ask(0, engine_list_operations,
                  &(struct engine_request){.in.operations = {.run = SLICE("run-1"), .state = SLICE("completed")}}),
        ERR_OK);
    assert_int_equal(json_count(a->answer), COUNT_OF(steps));
}

/* --- what this program does not have --- */

TEST(a_tool_of_an_adapter_that_is_not_there_is_refused)
{
    struct reply *a;

    a = stage_expect(stage_ask(0, engine_define,
                               &(struct engine_request){.in.define.document = SLICE(
                                                            "{\"tools\":[{\"name\":\"t\",\"effect\":\"read\",\"http\":{"
                                                            "\"method\":\"GET\",\"url\":\"http://t/\"}}]}")}),
                     ERR_INVALID);
    assert_int_equal(a->faults, 1);
    assert_true(slice_is(a->fault, "/tools/0/http: there is no adapter named \"http\""));
}

/* --- completing --- */

TEST(a_saga_with_something_unsettled_is_completed_when_that_is_settled_or_not_at_all)
{
    struct saga_id id = stage_open(0, "o1");
    static char large[100000];
    struct reply *call;

    stage_tool("act")->delay_ms = 5000;
    call = stage_ask(0, engine_call,
                     &(struct engine_request){
                         .in.call = {.saga = id, .tool = SLICE("act"), .step = SLICE("one"), .wait_ms = 20000}});
    stage_run(500);
    (void)stage_expect(stage_change(0, VERB_COMPLETE, id), ERR_UNSETTLED); /* the client does not want to wait */
    (void)stage_expect(stage_change(0, VERB_COMPLETE, id, .wait_ms = 1000),
                       ERR_UNSETTLED); /* the client does not wait long enough */
    memset(large, ' ', sizeof(large) - 1);
    (void)stage_expect(stage_change(0, VERB_COMPLETE, id, .input.complete = {.output = slice_of(large)}),
                       ERR_TOO_LARGE);
    (void)stage_expect(stage_change(0, VERB_COMPLETE, id, .wait_ms = 20000), ERR_OK);
    (void)stage_expect(call, ERR_OK);
}

/* --- aborting what is not in memory --- */

static void abort_says(struct saga_id id, enum err_code code)
{
    (void)stage_expect(stage_change(0, VERB_ABORT, id), code);
}

TEST(an_ended_saga_cannot_be_aborted_and_a_resting_one_can)
{
    struct saga_id id = stage_start(0, "acts", "{}");

    stage_until_saga(0, id, "completed");
    abort_says(id, ERR_PAST_RETURN);
    id = stage_start(0, "listens", "{}");
    abort_says(id, ERR_OK);
    stage_run(100);
    abort_says(id, ERR_ENDED);
    id = stage_start(0, "listens", "{}");
    stage_run(3 * stage_options.park_after_ms);
    assert_null(live_find(engine_now(), id));
    abort_says(id, ERR_OK);
    stage_until_saga(0, id, "compensated");
}

TEST_PROGRAM_EACH(setup, stage_teardown)
