/*
 * Verbs of people and agents while the database does not answer, while the shard moves to another engine, or while the
 * saga moves on. A verb that was not done is reported as not done. A durable verb is never reported as lost.
 */
#include "run/saga/live.h"
#include "run/shard/shard.h"
#include "tests/sim/stage.h"

#include <stdio.h>

#include "base/json.h"
#include "run/request/work.h"

static const char document[] =
    "{'tools':["
    "{'name':'act','builtin':{'tool':'act'},'effect':'once','compensate':{'tool':'undo','with':{'id':'${ .result.id "
    "}'}}},"
    "{'name':'lose','builtin':{'tool':'lose'},'effect':'once','compensate':{'tool':'undo','with':{'id':'${ .result.id "
    "| . }'}}},"
    "{'name':'lose_broken','builtin':{'tool':'lose'},'effect':'once','compensate':{'tool':'undo','with':{'id':'${ "
    ".result.id | error }'}}},"
    "{'name':'lose_plain','builtin':{'tool':'lose'},'effect':'once','compensate':{'tool':'undo','with':{'id':'${ "
    ".result.id }'}}},"
    "{'name':'lose_by_key','builtin':{'tool':'lose'},'effect':'once','compensate':{'tool':'undo','with':{'id':'${ .key "
    "}'}}},"
    "{'name':'lose_bare','builtin':{'tool':'lose'},'effect':'once','compensate':{'tool':'undo'}},"
    "{'name':'lose_for_good','builtin':{'tool':'lose'},'effect':'once','terminal':true},"
    "{'name':'lose_wrong','builtin':{'tool':'lose'},'effect':'once','compensate':{'tool':'undo','with':{'id':'${ "
    ".result.id.deeper }'}}},"
    "{'name':'undo','builtin':{'tool':'undo'},'effect':'idempotent'}],"
    "'sagas':["
    "{'name':'listens','steps':[{'id':'a','signal':{'name':'paid'}}]},"
    "{'name':'stuck','steps':[{'id':'a','call':'lose','with':{}},{'id':'b','signal':{'name':'paid'}}]},"
    "{'name':'stuck_broken','steps':[{'id':'a','call':'lose_broken','with':{}},{'id':'b','signal':{'name':'paid'}}]},"
    "{'name':'stuck_plain','steps':[{'id':'a','call':'lose_plain','with':{}},{'id':'b','signal':{'name':'paid'}}]},"
    "{'name':'stuck_by_key','steps':[{'id':'a','call':'lose_by_key','with':{}},{'id':'b','signal':{'name':'paid'}}]},"
    "{'name':'stuck_bare','steps':[{'id':'a','call':'lose_bare','with':{}},{'id':'b','signal':{'name':'paid'}}]},"
    "{'name':'stuck_wrong','steps':[{'id':'a','call':'lose_wrong','with':{}},{'id':'b','signal':{'name':'paid'}}]},"
    "{'name':'stuck_for_good','steps':[{'id':'a','call':'lose_for_good','with':{}}]}"
    "]}";

static int setup(void **state)
{
    (void)state;
    stage_begin(&(struct stage_plan){.definitions = document, .is_automatic = true});
    stage_says("lose", OUTCOME_UNKNOWN, "timeout", NULL);
    return 0;
}

/* --- who asks --- */

static struct op_key key_now; /* the key of the operation that a bypass is for */
static uint64_t number_now;   /* the number of the escalation that is resolved */
static enum operator_action action_now;

static request_verb *to_abort(struct engine_request *what, struct saga_id id)
{
    what->in.change.verb = VERB_ABORT;
    what->in.change.saga = id;
    return engine_change;
}

static request_verb *to_pause(struct engine_request *what, struct saga_id id)
{
    what->in.change.verb = VERB_PAUSE;
    what->in.change.saga = id;
    return engine_change;
}

static request_verb *to_resume(struct engine_request *what, struct saga_id id)
{
    what->in.change.verb = VERB_RESUME;
    what->in.change.saga = id;
    return engine_change;
}

static request_verb *to_signal(struct engine_request *what, struct saga_id id)
{
    what->in.change.verb = VERB_SIGNAL;
    what->in.change.saga = id;
    what->in.change.input.signal.name = SLICE("paid");
    what->in.change.input.signal.id = SLICE("k1");
    return engine_change;
}

static request_verb *to_complete(struct engine_request *what, struct saga_id id)
{
    what->in.change.verb = VERB_COMPLETE;
    what->in.change.saga = id;
    return engine_change;
}

static request_verb *to_sign(struct engine_request *what, struct saga_id id)
{
    (void)id;
    what->in.change.verb = VERB_BYPASS;
    what->in.change.input.bypass.key = key_now;
    what->in.change.input.bypass.note = SLICE("again");
    return engine_change;
}

static request_verb *to_call(struct engine_request *what, struct saga_id id)
{
    what->in.call.saga = id;
    what->in.call.tool = SLICE("act");
    what->in.call.step = SLICE("one");
    what->in.call.wait_ms = 5000;
    return engine_call;
}

static request_verb *to_resolve(struct engine_request *what, struct saga_id id)
{
    (void)id;
    what->in.change.verb = VERB_RESOLVE;
    what->in.change.input.verdict.escalation = number_now;
    what->in.change.input.verdict.action = action_now;
    what->in.change.input.verdict.happened = true;
    what->in.change.input.verdict.result = SLICE("{\"id\":\"r1\"}");
    what->in.change.input.verdict.note = SLICE("looked it up");
    return engine_change;
}

typedef request_verb *intention(struct engine_request *what, struct saga_id id);

static struct reply *does(intention *intent, struct saga_id id)
{
    struct engine_request what = {0};
    request_verb *verb = intent(&what, id);

    return stage_wait(stage_ask(0, verb, &what));
}

static void assert_does(intention *intent, struct saga_id id, enum err_code code)
{
    (void)stage_expect(does(intent, id), code);
}

/* Opens a saga with one completed call, whose key goes to key_now. */
static struct saga_id open_with_a_call(const char *business_id)
{
    struct saga_id id = stage_open(0, business_id);

    assert_true(uuid_parse(stage_expect(does(to_call, id), ERR_OK)->call.key, &key_now.uuid));
    return id;
}

/* Starts a saga whose first step has an unknown outcome, and waits for its escalation: number_now. */
static struct saga_id stuck(const char *saga)
{
    struct saga_id id = stage_start(0, saga, "{}");
    struct slice item;
    struct reply *a;
    int64_t number = 0;
    char text[UUID_TEXT_BYTES];

    uuid_text(&id.uuid, text);
    stage_until_saga(0, id, "escalated");
    a = stage_expect(stage_ask(0, engine_get_escalations, &(struct engine_request){.in.escalations.open_only = true}),
                     ERR_OK);
    for (struct json_walk walk = json_walk(a->answer); json_next_element(&walk, &item);) {
        if (json_string_is(json_member(item, "saga"), text)) {
            assert_true(json_i64(json_member(item, "n"), &number));
        }
    }
    assert_true(number > 0);
    number_now = (uint64_t)number;
    action_now = OPERATOR_RESOLVE;
    return id;
}

/* --- the shard goes while it is asked for --- */

static struct {
    const char *what;
    intention *intent;
    bool opens, paused;
} const intents[] = {
    {"abort", to_abort, false, false},   {"pause", to_pause, false, false},      {"resume", to_resume, false, true},
    {"signal", to_signal, false, false}, {"complete", to_complete, true, false}, {"bypass", to_sign, true, false},
};

static struct saga_id begin_for(size_t i)
{
    struct saga_id id = intents[i].opens ? open_with_a_call("o1") : stage_start(0, "listens", "{}");

    if (intents[i].paused) {
        assert_does(to_pause, id, ERR_OK);
    }
    return id;
}

TEST(a_fenced_request_goes_to_the_next_owner_of_the_shard)
{
    for (size_t i = 0; i < COUNT_OF(intents); i++) {
        struct saga_id id = begin_for(i);

        stage_refuse(STORE_APPEND, ERR_FENCED, 1);
        assert_does(intents[i].intent, id, ERR_OK);
        stage_teardown(state);
        setup(state);
    }
}

static void lose_shard(void *request, enum err_code *code)
{
    const struct append *append = request;

    assert_int_equal(*code, ERR_OK);
    shard_lost(append->shard, append->epoch, nodes[0].engine);
}

/* A verb that became durable in the moment in which the shard was lost is reported as done, from the log when the saga
 * has left memory. */
TEST(a_durable_turn_is_told_as_done_though_the_shard_is_lost_in_that_moment)
{
    for (size_t i = 0; i < COUNT_OF(intents); i++) {
        struct saga_id id = begin_for(i);
        struct reply *a;

        stage_on_answer(STORE_APPEND, lose_shard);
        a = does(intents[i].intent, id);
        if (intents[i].intent == to_sign) { /* the new owner knows the fingerprint */
            (void)stage_expect(a, ERR_FENCED);
            assert_non_null(strstr(a->err.message, "it is signed"));
        } else {
            (void)stage_expect(a, ERR_OK);
        }
        if (intents[i].intent == to_signal) {
            assert_true(slice_is(json_trim(json_member(a->answer, "taken")), "null")); /* this engine cannot know */
        }
        node_kill(&nodes[0]); /* the engine believes that it has lost what it holds */
        stage_teardown(state);
        setup(state);
    }
}

TEST(an_unreadable_saga_is_told_as_such_and_nothing_is_done)
{
    static const struct {
        intention *intent;
        enum store_call call;
        enum err_code code;
    } table[] = {
        {to_sign, STORE_FIND_OPERATION, ERR_STORE},
        {to_sign, STORE_FIND_OPERATION, ERR_NOT_FOUND},
        {to_resolve, STORE_LIST_QUESTIONS, ERR_STORE},
        {to_resolve, STORE_LIST_QUESTIONS, ERR_NOT_FOUND},
    };
    struct saga_id id = stuck("stuck");

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        uint32_t appends = stage_asked(STORE_APPEND);

        stage_refuse(table[i].call, table[i].code, 1);
        assert_does(table[i].intent, id, table[i].code);
        assert_int_equal(stage_asked(STORE_APPEND), appends);
    }
    /* The saga is not in memory, and its row cannot be read. */
    struct saga_id nobody = saga_id_new(WORLD_START_MS, 3);

    stage_refuse(STORE_READ_SAGA, ERR_STORE, 1);
    assert_does(to_abort, nobody, ERR_STORE);
    assert_does(to_abort, nobody, ERR_NOT_FOUND);
}

TEST(a_fenced_resolution_goes_to_the_next_owner_of_the_shard)
{
    struct saga_id id = stuck("stuck");

    stage_refuse(STORE_APPEND, ERR_FENCED, 1);
    assert_does(to_resolve, id, ERR_OK);
    stage_until_saga(0, id, "waiting");
}

TEST(a_person_has_to_say_what_came_of_it_where_an_undo_needs_that)
{
    static const struct {
        const char *saga;
        enum err_code code;
    } table[] = {{"stuck_plain", ERR_INVALID}, {"stuck_by_key", ERR_OK}};

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct saga_id id = stuck(table[i].saga);
        struct engine_request what = {0};

        (void)to_resolve(&what, id);
        what.in.change.input.verdict.result = SLICE_NONE;
        (void)stage_expect(stage_ask(0, engine_change, &what), table[i].code);
    }
}

/* --- resolving --- */

/* A person says that the call happened, and what its result was. The undo gets its arguments from that result, as it
 * would from the tool's answer. */
TEST(an_undo_gets_its_arguments_from_what_a_person_said)
{
    static const struct {
        const char *saga, *undone_with; /* NULL when it cannot be rendered and a person has to act */
    } table[] = {
        {"stuck", "{\"id\":\"r1\"}"}, {"stuck_plain", "{\"id\":\"r1\"}"}, {"stuck_bare", "{}"}, {"stuck_broken", NULL},
        {"stuck_wrong", NULL},
    };

    for (size_t rests = 0; rests < 2; rests++) {
        for (size_t i = 0; i < COUNT_OF(table); i++) {
            struct saga_id id = stuck(table[i].saga);

            if (rests) {
                stage_run(3 * stage_options.park_after_ms);
                assert_int_equal(lives_count(nodes[0].engine), 0);
            }
            assert_does(to_resolve, id, ERR_OK);
            stage_until_saga(0, id, "waiting");
            stage_tool("undo")->args = SLICE("");
            assert_does(to_abort, id, ERR_OK);
            stage_until_saga(0, id, table[i].undone_with ? "compensated" : "escalated");
            assert_true(slice_is(stage_tool("undo")->args, table[i].undone_with ? table[i].undone_with : ""));
        }
    }
}

TEST(a_step_that_cannot_be_undone_needs_no_arguments_for_it)
{
    struct saga_id id = stuck("stuck_for_good");

    assert_does(to_resolve, id, ERR_OK);
    stage_until_saga(0, id, "completed");
}

TEST(a_resolution_that_is_too_large_or_of_nothing_is_refused)
{
    static char large[100000];
    struct engine_request what = {0};

    (void)stuck("stuck");
    memset(large, ' ', sizeof(large) - 1);
    for (int i = 0; i < 2; i++) {
        (void)to_resolve(&what, (struct saga_id){0});
        *(i ? &what.in.change.input.verdict.args : &what.in.change.input.verdict.result) = slice_of(large);
        (void)stage_expect(stage_ask(0, engine_change, &what), ERR_TOO_LARGE);
    }
    number_now = 0; /* 0 never means all of them or the newest one */
    assert_does(to_resolve, (struct saga_id){0}, ERR_NOT_FOUND);
    number_now = 64 * 77;
    assert_does(to_resolve, (struct saga_id){0}, ERR_NOT_FOUND);
}

static void spoil_turn(void *request, enum err_code *code)
{
    struct read_saga *read = container_of(request, struct read_saga, read);

    assert_int_equal(*code, ERR_OK);
    read->turns[0].payload = SLICE("[7]");
}

TEST(a_resting_saga_that_cannot_be_read_is_not_resolved)
{
    struct saga_id id = stuck("stuck");

    stage_run(3 * stage_options.park_after_ms);
    assert_null(live_find(nodes[0].engine, id));
    stage_refuse(STORE_READ_SAGA, ERR_STORE, 1);
    assert_does(to_resolve, id, ERR_STORE);
    stage_on_answer(STORE_READ_SAGA, spoil_turn);
    assert_does(to_resolve, id, ERR_CORRUPT);
    assert_does(to_resolve, id, ERR_OK); /* nothing is lost */
}

static void forget_question(void *request, enum err_code *code)
{
    (void)request;
    (void)code;
    stage_refuse(STORE_LIST_QUESTIONS, ERR_NOT_FOUND, 1); /* the saga of the next one is removed meanwhile */
}

/* The awaited turn has written the escalation. A second read, which would fail here, is not made. */
TEST(a_resolution_is_answered_from_its_turn)
{
    struct saga_id id = stuck("stuck");
    struct reply *a;

    stage_on_answer(STORE_LIST_QUESTIONS, forget_question);
    a = stage_expect(does(to_resolve, id), ERR_OK);
    assert_true(json_string_is(json_member(a->answer, "status"), "resolved"));
    assert_true(json_string_is(json_member(a->answer, "saga_name"), "stuck"));
    assert_true(json_string_is(json_member(a->answer, "tool"), "lose"));
    assert_does(to_resolve, id, ERR_NOT_FOUND); /* the second read fails */
    assert_does(to_resolve, id, ERR_DECIDED);
}

static void other_saga(void *request, enum err_code *code)
{
    struct list_questions *list = container_of(request, struct list_questions, read);

    (void)code;
    list->rows[0].saga.uuid.bytes[14] = 0xff; /* an id of a shard that does not exist */
}

TEST(an_escalation_of_a_saga_that_cannot_be_is_not_found)
{
    (void)stuck("stuck");
    stage_on_answer(STORE_LIST_QUESTIONS, other_saga);
    assert_does(to_resolve, (struct saga_id){0}, ERR_NOT_FOUND);
}

/* --- while it leaves --- */

typedef void delivery(struct engine *engine, struct engine_request *request, const struct uuid *inbox_id);

static delivery *deliver_now;

static void deliver(struct engine *engine, struct engine_request *request)
{
    const struct uuid row = {{1}};

    engine->phase = ENGINE_DRAINING;
    deliver_now(engine, request, &row);
}

TEST(a_row_of_the_inbox_is_for_the_next_owner_while_an_engine_leaves)
{
    static delivery *const deliveries[] = {call_deliver, change_deliver};
    struct reply *asks[COUNT_OF(deliveries)];
    struct saga_id id = stage_start(0, "listens", "{}");

    for (size_t i = 0; i < COUNT_OF(asks); i++) {
        deliver_now = deliveries[i];
        asks[i] = stage_ask(0, deliver, &(struct engine_request){.in.change = {.verb = VERB_ABORT, .saga = id}});
    }
    for (size_t i = 0; i < COUNT_OF(asks); i++) {
        (void)stage_expect(asks[i], ERR_FENCED);
    }
    nodes[0].engine->phase = ENGINE_RUNNING;
    assert_true(json_string_is(json_member(stage_saga(0, id), "status"), "waiting"));
}

TEST_PROGRAM_EACH(setup, stage_teardown)
