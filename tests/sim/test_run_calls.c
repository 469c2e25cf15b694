/* Calls, decisions and definitions whose turn, read or write fails: what each client is told (call.c, approval.c,
 * define.c). */
#include "run/readiness_state.h"
#include "run/saga/summon.h"
#include "tests/sim/stage.h"

#define WHO "'namespace':'default','actor':'somebody'"

static const char definitions[] =
    "{'tools':[{'name':'undo','builtin':{'tool':'undo'},'effect':'idempotent'},"
    "{'name':'pay','builtin':{'tool':'pay'},'effect':'keyed','key':{'window':'1h'},'compensate':{"
    "'tool':'undo'},"
    "'timeout':'1h'},"
    "{'name':'strict','builtin':{'tool':'strict'},'effect':'keyed','key':{'window':'1h'},'compensate':"
    "{'tool':'undo'},"
    "'on_duplicate':'refuse'}],"
    "'sagas':[{'name':'s','steps':[{'id':'a','approve':{}},{'id':'b','call':'pay'}]}]}";

static void begin(void)
{
    stage_begin(&(struct stage_plan){.definitions = definitions, .is_automatic = true});
}

static struct reply *call_of(const char *tool, int64_t wait_ms)
{
    struct reply *asked = stage_ask(0, engine_call, stage_call_of("r", tool, "{}", wait_ms));

    stage_settle();
    return asked;
}

/* --- the first call of a run --- */

/* Two engines began the run at the same time, and the other one was first. The call goes to the run that exists. */
TEST(a_run_that_has_begun_elsewhere_takes_the_call_that_would_have_begun_it)
{
    struct reply *asked;

    begin();
    stage_is_automatic = false;
    stage_hold(STORE_APPEND);
    asked = call_of("pay", 60000);
    assert_int_equal(stage_held(STORE_APPEND), 1);
    stage_fail(STORE_APPEND, ERR_CONFLICT);
    stage_release(STORE_APPEND);
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{}");
    stage_answer_all();
    (void)stage_expect(asked, ERR_OK);
}

/* The owner was superseded twice, or no time is left. The client is told to come again, and nothing has begun. */
TEST(a_call_whose_owner_was_superseded_again_is_told_to_come_again)
{
    for (int waits = 0; waits < 2; waits++) {
        struct reply *asked;

        begin();
        stage_hold(STORE_APPEND);
        asked = call_of("pay", waits ? 60000 : 0);
        while (!asked->done) {
            if (stage_held(STORE_APPEND) > 0) {
                stage_fail(STORE_APPEND, ERR_FENCED);
            }
            stage_run(1000);
        }
        assert_true(err_retryable(asked->code));
        assert_int_equal(stage_calls(NULL), 0);
        stage_end();
    }
}

/* A call without a written turn does not count. The client hears why, and may repeat it. */
TEST(a_call_that_could_not_be_written_is_refused_with_the_reason)
{
    static const enum err_code codes[] = {ERR_STORE, ERR_LOST_COMMIT, ERR_TOO_LARGE};

    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        struct reply *asked;

        begin();
        stage_hold(STORE_APPEND);
        asked = call_of("pay", 60000);
        stage_fail(STORE_APPEND, codes[i]);
        stage_release(STORE_APPEND);
        (void)stage_expect(asked, codes[i]);
        assert_int_equal(asked->call.retry_after_ms > 0, err_retryable(codes[i]));
        assert_int_equal(stage_calls(NULL), 0);
        stage_end();
    }
}

/* The refusal is in the log, and the engine lost the shard before it heard so. The call is refused all the same. */
TEST(a_refusal_that_is_durable_holds_also_where_its_shard_was_lost)
{
    struct reply *first, *again;

    begin();
    first = call_of("strict", 60000);
    stage_run(1000);
    (void)stage_expect(first, ERR_OK);
    stage_hold(STORE_APPEND);
    again = call_of("strict", 60000);
    assert_int_equal(stage_held(STORE_APPEND), 1);
    stage_lose(0, run_shard(SLICE("default"), SLICE("r")));
    stage_let(STORE_APPEND);
    stage_release(STORE_APPEND);
    (void)stage_expect(again, ERR_DUPLICATE);
    assert_int_equal(stage_calls(NULL), 1);
}

/* --- through the inbox --- */

#define CALL "{" WHO ",'run':'r','tool':'pay','args':{},'wait_ms':10000}"

/* The input is not consumed: the row stays for an engine that can. */
TEST(a_call_of_the_inbox_waits_while_the_database_is_away)
{
    uint32_t shard = run_shard(SLICE("default"), SLICE("r"));

    begin();
    nodes[0].engine->readiness->database = false;
    (void)stage_deliver(0, "call", shard, (struct saga_id){0}, CALL);
    stage_run(1000);
    assert_int_equal(pg_inbox_rows(world->pg), 1);
    assert_int_equal(stage_calls(NULL), 0);
    nodes[0].engine->readiness->database = true; /* and the row is read again */
    stage_run(1000);
    assert_int_equal(stage_calls(NULL), 1);
}

/* The turn is fenced, and that owner does nothing more. */
TEST(a_call_of_the_inbox_whose_owner_was_superseded_is_left_for_the_next)
{
    uint32_t shard = run_shard(SLICE("default"), SLICE("r"));

    begin();
    stage_hold(STORE_APPEND);
    (void)stage_deliver(0, "call", shard, (struct saga_id){0}, CALL);
    assert_int_equal(stage_held(STORE_APPEND), 1);
    stage_fail(STORE_APPEND, ERR_FENCED);
    assert_int_equal(pg_inbox_rows(world->pg), 1);
    assert_int_equal(stage_calls(NULL), 0);
    stage_release(STORE_APPEND);
    stage_run(10000); /* this engine is the next owner, because its lease was good */
    assert_int_equal(pg_inbox_rows(world->pg), 0);
    assert_int_equal(stage_calls(NULL), 1);
}

/* --- decisions --- */

static struct reply *decide(uint64_t number)
{
    struct reply *asked =
        stage_ask(0, engine_change,
                  &(struct engine_request){
                      .in.change = {.verb = VERB_DECIDE,
                                    .input.decision = {.approval = number, .approve = true, .role = ROLE_ADMIN}}});

    stage_settle();
    return asked;
}

TEST(a_decision_that_cannot_be_looked_up_says_why)
{
    static const struct {
        enum err_code read, told;
    } cases[] = {{ERR_STORE, ERR_STORE}, {ERR_NOT_FOUND, ERR_NOT_FOUND}};

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct reply *asked;

        begin();
        stage_hold(STORE_LIST_QUESTIONS);
        asked = decide(64);
        stage_fail(STORE_LIST_QUESTIONS, cases[i].read);
        stage_release(STORE_LIST_QUESTIONS);
        (void)stage_expect(asked, cases[i].told);
        stage_end();
    }
}

TEST(approvals_that_cannot_be_read_say_why)
{
    static const char *const cursors[] = {"x", "0", "-3"};
    struct reply *asked;

    begin();
    stage_hold(STORE_LIST_QUESTIONS);
    asked = stage_ask(0, engine_get_approvals, &(struct engine_request){.in.approvals.number = 64});
    stage_settle();
    stage_fail(STORE_LIST_QUESTIONS, ERR_STORE);
    (void)stage_expect(asked, ERR_STORE);
    for (size_t i = 0; i < COUNT_OF(cursors); i++) {
        asked =
            stage_ask(0, engine_get_approvals, &(struct engine_request){.in.approvals.cursor = slice_of(cursors[i])});
        (void)stage_expect(asked, ERR_MALFORMED);
    }
    stage_release(STORE_LIST_QUESTIONS);
}

TEST(a_decision_of_the_inbox_waits_while_the_database_is_away)
{
    begin();
    nodes[0].engine->readiness->database = false;
    (void)stage_deliver(0, "decide", 0, (struct saga_id){0}, "{" WHO ",'approval':64,'approve':true,'role':'admin'}");
    stage_run(1000);
    assert_int_equal(pg_inbox_rows(world->pg), 1);
    nodes[0].engine->readiness->database = true; /* and the row is read again */
    stage_run(1000);
    assert_int_equal(pg_inbox_rows(world->pg), 0); /* no such approval exists, which is the answer */
}

TEST(nobody_decides_or_lists_while_the_database_is_away)
{
    begin();
    pg_restart(world->pg, 3000000);
    stage_run(1000);
    (void)stage_expect(decide(64), ERR_STORE);
    (void)stage_expect(stage_ask(0, engine_get_approvals, &(struct engine_request){0}), ERR_STORE);
    stage_run(10000);
}

/* --- definitions --- */

TEST(definitions_that_could_not_be_written_are_not_known)
{
    static const char document[] = "{'tools':[{'name':'new','builtin':{'tool':'new'},'effect':'read'}]}";
    struct reply *asked;
    struct err err = {0};

    begin();
    stage_hold(STORE_PUT_DEFINITIONS);
    asked = stage_ask(0, engine_define, &(struct engine_request){.in.define.document = stage_json(document)});
    stage_fail(STORE_PUT_DEFINITIONS, ERR_STORE);
    stage_release(STORE_PUT_DEFINITIONS);
    (void)stage_expect(asked, ERR_STORE);
    assert_null(definitions_tool(nodes[0].engine->definitions, SLICE("default"), SLICE("new"), 0, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
}

static struct slice key_of(const struct reply *reply)
{
    return arena_slice(&world->arena, reply->call.key);
}

static struct reply *call_about(const char *args, const char *scope)
{
    struct engine_request *request = stage_call_of("run-1", "about", args, 2000);

    request->in.call.scope = slice_of(scope);
    return stage_expect(stage_ask(0, engine_call, request), ERR_OK);
}

TEST(the_owner_of_a_tool_says_what_its_calls_are_about)
{
    struct slice ann, bob, own;
    struct engine_request *bad;

    stage_begin(&(struct stage_plan){.definitions = "{'tools':[{'name':'about','builtin':{'tool':'about'},"
                                                    "'effect':'keyed','key':{'window':'1h'},'terminal':true,"
                                                    "'scope':'${ .args.who }'}]}",
                                     .is_automatic = true});
    ann = key_of(call_about("{'who':'ann','n':1}", NULL));
    own = key_of(call_about("{'who':'ann','n':1}", "mine"));
    bob = key_of(call_about("{'who':'bob','n':1}", NULL));
    assert_false(slice_equal(ann, bob) || slice_equal(ann, own));
    assert_true(slice_equal(key_of(call_about("{'who':'ann','n':1}", "ann")), ann));
    assert_int_equal(stage_calls("about"), 3);
    bad = stage_call_of("run-1", "about", "['ann']", 2000);
    (void)stage_expect(stage_ask(0, engine_call, bad), ERR_INVALID);
}

TEST(a_dry_run_says_what_would_change_and_writes_nothing)
{
    static const char first[] = "{'tools':[{'name':'pay','builtin':{'tool':'pay'},'effect':'once','terminal':true}]}",
                      other[] = "{'tools':[{'name':'pay','builtin':{'tool':'pay'},'effect':'once','terminal':true,"
                                "'timeout':'9s'},{'name':'more','builtin':{'tool':'pay'},'effect':'read'}]}",
                      wrong[] = "{'tools':[{'name':'pay','builtin':{'tool':'pay'},'effect':'often'}]}";
    const char *const documents[] = {first, other, wrong};
    struct reply *replies[COUNT_OF(documents)];

    stage_begin(&(struct stage_plan){.definitions = first});
    for (size_t i = 0; i < COUNT_OF(documents); i++) {
        replies[i] = stage_wait(
            stage_ask(0, engine_define,
                      &(struct engine_request){.in.define = {.document = stage_json(documents[i]), .dry_run = true}}));
    }
    assert_true(slice_is(replies[0]->answer, "[{\"kind\":\"tool\",\"name\":\"pay\",\"version\":1,\"change\":"
                                             "\"unchanged\",\"registered\":1,\"differs\":[]}]"));
    assert_true(slice_is(replies[1]->answer,
                         "[{\"kind\":\"tool\",\"name\":\"pay\",\"version\":2,\"change\":\"created\",\"registered\":1,"
                         "\"differs\":[\"/timeout\"]},{\"kind\":\"tool\",\"name\":\"more\",\"version\":1,\"change\":"
                         "\"created\",\"registered\":null,\"differs\":[]}]"));
    assert_int_equal(replies[2]->code, ERR_INVALID);
    assert_null(definitions_row(nodes[0].engine->definitions, DEFINITION_TOOL, SLICE("default"), SLICE("pay"), 2));
    assert_null(definitions_row(nodes[0].engine->definitions, DEFINITION_TOOL, SLICE("default"), SLICE("more"), 0));
}

static struct reply *start_under(const char *business_id)
{
    return stage_wait(stage_ask(0, engine_start_saga,
                                &(struct engine_request){.in.start = {.saga = SLICE("old"),
                                                                      .version = 1,
                                                                      .business_id = slice_of(business_id),
                                                                      .key = slice_of(business_id)}}));
}

#define OLD(members) "{'name':'old'," members "'steps':[{'id':'a','signal':{'name':'go'}}]}"

TEST(a_definition_that_is_retired_starts_nothing_new_and_what_runs_goes_on)
{
    struct saga_id id;
    struct reply *refused, *repeat;

    stage_begin(&(struct stage_plan){.definitions = "{'sagas':[" OLD("") "]}"});
    id = start_under("o-1")->saga;
    (void)stage_expect(stage_define(0, "{'sagas':[" OLD("'retired':'use new',") "]}"), ERR_OK);
    refused = start_under("o-2");
    assert_int_equal(refused->code, ERR_CONFLICT);
    assert_string_equal(refused->err.message, "the definition old is retired: use new");
    assert_int_equal(start_under(NULL)->code, ERR_CONFLICT);
    repeat = start_under("o-1"); /* the saga was started before that */
    assert_int_equal(repeat->code, ERR_OK);
    assert_false(repeat->created);
    assert_memory_equal(&repeat->saga, &id, sizeof(id));
    (void)stage_expect(
        stage_ask(0, engine_change,
                  &(struct engine_request){
                      .in.change = {.verb = VERB_SIGNAL, .saga = id, .input.signal = {.name = SLICE("go")}}}),
        ERR_OK);
    stage_until_saga(0, id, "completed");
    (void)stage_expect(stage_define(0, "{'sagas':[" OLD("") "]}"), ERR_OK);
    assert_int_equal(start_under("o-2")->code, ERR_OK);
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
