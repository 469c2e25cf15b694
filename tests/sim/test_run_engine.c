/* The engine as a whole (engine.c): how it starts, when it is ready, what it does without its database, and how it
 * leaves. */
#include "tests/sim/stage.h"

#include <stdio.h>

#include "base/json.h"
#include "run/engine_state.h"
#include "store/seal/payload_keys.h"
#include "tests/lib/scratch.h"
#include "tests/lib/usual_options.h"

#define LOOK                                                                                                           \
    "{'tools':[{'name':'look','builtin':{'tool':'look'},'effect':'read','timeout':'10m'}],'sagas':[{'name':'s','"      \
    "steps':[{'id':'a','call':'look'}]}]}"

static struct engine_health health(void)
{
    struct engine_health out;

    engine_health(nodes[0].engine, &out);
    return out;
}

/* --- beginning --- */

static void nobody_is_told(struct engine_options *options)
{
    options->on_ready = NULL;
    options->on_refused = NULL;
}

static bool is_loaded(void *context)
{
    (void)context;
    return health().loaded;
}

TEST(an_engine_that_is_ready_need_not_tell_anybody)
{
    stage_begin(&(struct stage_plan){.tweak = nobody_is_told, .unready = true});
    stage_until(is_loaded, NULL, "an engine that is ready, and tells nobody");
}

static void all_given(struct engine_options *options)
{
    options->version = "7.0";
    options->response_bytes_max = 4096;
    options->commit_delay_ms = 100;
    options->call_delay_ms = 500;
    options->memory_bytes_max = 0;
    options->on_ready = NULL;
}

TEST(an_engine_starts_with_what_it_is_given)
{
    const struct engine_options *options;

    stage_begin(&(struct stage_plan){.tweak = all_given, .unready = true});
    options = &nodes[0].engine->options;
    assert_string_equal(options->version, "7.0");
    assert_int_equal(options->response_bytes_max, 4096);
    assert_int_equal(options->commit_delay_ms, 100);
    assert_int_equal(options->call_delay_ms, 500);
    assert_true(options->memory_bytes_max > 0); /* half of the machine's memory */
    assert_int_equal(nodes[0].engine->host.response_bytes_max, 4096);
}

/* A server that acknowledges nothing safely, or is too old, is reported once, whether it was so from the beginning or
 * has become so. */
TEST(an_engine_refuses_a_database_that_it_cannot_use)
{
    for (int late = 0; late < 2; late++) {
        stage_begin(&(struct stage_plan){.unready = !late, .definitions = late ? LOOK : NULL});
        stage_server_version = 140011;
        if (late) {
            pg_restart(world->pg, 100000);
        }
        stage_run(5000);
        assert_true(nodes[0].refused);
        assert_false(health().database);
        assert_false(health().schema);
        assert_int_equal(health().err.code, ERR_CONFIG);
        stage_end();
    }
    stage_begin(&(struct stage_plan){.unready = true, .tweak = nobody_is_told});
    stage_server_version = 140011;
    stage_run(5000);
    assert_false(health().schema); /* the engine is not ready, either, when no one listens */
}

/* Settings that cannot be read are reported before anything has begun, and nothing of the engine is left. */
TEST(an_engine_with_settings_that_cannot_be_read_does_not_start)
{
    struct engine_options settings[] = {usual_options, usual_options};

    settings[0].secrets_file = "/nowhere/secrets.json";
    settings[1].budgets_file = "/nowhere/budgets.json";
    stage_begin(&(struct stage_plan){0});
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        struct memory_owner owner = {0}, *before = memory_switch(&owner);

        assert_null(engine_start(nodes[0].loop, &settings[i]));
        (void)memory_switch(before);
        assert_int_equal(owner.count, 0);
    }
    engine_free(NULL);
}

/* The database comes late. The engine is not ready until then, and a sentence says why. */
TEST(an_engine_waits_for_its_database)
{
    stage_begin(&(struct stage_plan){.unready = true});
    pg_restart(world->pg, 20000000);
    stage_run(10000);
    assert_true(health().alive);
    assert_false(health().database);
    assert_false(health().loaded);
    assert_int_equal(health().err.code, ERR_STORE);
    stage_until(is_loaded, NULL, "an engine that is ready");
    assert_int_equal(health().err.code, ERR_OK);
}

TEST(an_engine_that_leaves_before_it_is_ready_has_nothing_to_give_back)
{
    for (int64_t ms = 0; ms < 40; ms++) {
        stage_begin(&(struct stage_plan){.unready = true});
        stage_run(ms);
        node_drain(&nodes[0], 1000);
        stage_run(5000);
        assert_false(nodes[0].up);
        stage_end();
    }
}

TEST(an_engine_that_leaves_with_its_database_slow_or_away_ends_all_the_same)
{
    for (int64_t ms = 0; ms < 2000; ms += 100) {
        stage_begin(&(struct stage_plan){.unready = true, .node = {.readers = 2}});
        pg_set_slow(world->pg, 600000);
        stage_run(ms);
        if (ms % 200 == 0) {
            pg_restart(world->pg, 300000);
        }
        stage_run(500);
        node_drain(&nodes[0], 100);
        stage_run(30000);
        assert_false(nodes[0].up);
        stage_end();
    }
}

/* --- while it runs --- */

TEST(an_engine_without_its_database_is_not_ready_and_comes_back)
{
    stage_begin(&(struct stage_plan){.definitions = LOOK});
    assert_true(health().database);
    pg_restart(world->pg, 3000000);
    stage_run(1000);
    assert_false(health().database);
    (void)stage_expect(stage_ask(0, engine_start_saga, &(struct engine_request){.in.start.saga = SLICE("s")}),
                       ERR_STORE);
    stage_run(10000);
    assert_true(health().database);
    stage_is_automatic = true;
    stage_until_saga(0, stage_start(0, "s", "{}"), "completed");
}

/* Definitions that another engine registers are soon known here, however many come at once. */
TEST(definitions_of_another_engine_are_known_soon)
{
    char text[256];

    stage_begin(&(struct stage_plan){.definitions = LOOK, .node_count = 2});
    pg_set_slow(world->pg, 50000);
    for (int i = 0; i < 5; i++) {
        (void)snprintf(text, sizeof(text), "{'tools':[{'name':'t%d','builtin':{'tool':'t'},'effect':'read'}]}", i);
        assert_int_equal(stage_define(0, text)->code, ERR_OK);
    }
    pg_set_slow(world->pg, 200);
    stage_run(1000);
    stage_is_automatic = true;
    (void)stage_expect(stage_ask(1, engine_call, stage_call_of("r", "t4", "{}", 10000)), ERR_OK);
}

/* All programs of a document that do not compile are reported at once, and nothing of the document is registered. */
TEST(programs_that_do_not_compile_are_told_all_at_once)
{
    static const char document[] =
        "{'tools':[{'name':'a','builtin':{'tool':'a','x':'${ .args.x | bogus }'},'effect':'read'},"
        "{'name':'b','builtin':{'tool':'b','x':'${ .args.x | . }','y':'${ .args.y }'},'effect':'read'},"
        "{'name':'c','builtin':{'tool':'c','x':'${ .args.x | bogus }'},'effect':'read'}]}";
    struct reply *reply;

    stage_begin(&(struct stage_plan){.definitions = LOOK});
    reply = stage_define(0, document);
    assert_int_equal(reply->code, ERR_INVALID);
    assert_int_equal(reply->faults, 2);
    assert_true(slice_starts_with(reply->fault, "/tools/0/"));
    (void)stage_expect(stage_ask(0, engine_call, stage_call_of("r", "b", "{}", 0)), ERR_NOT_FOUND);
}

/* The engine begins to leave while programs are compiled. Nothing is registered, and the client is told to ask
 * elsewhere. */
TEST(definitions_that_were_being_checked_when_the_engine_leaves_are_not_registered)
{
    struct reply *reply, *gone;
    struct engine_request request = {0};

    stage_begin(&(struct stage_plan){.definitions = LOOK});
    stage_program_ms = 500;
    request.in.define.document =
        stage_json("{'tools':[{'name':'a','builtin':{'tool':'a','x':'${ .args.x | . }'},'effect':'read'}]}");
    reply = stage_ask(0, engine_define, &request);
    request.in.define.document =
        stage_json("{'tools':[{'name':'a','builtin':{'tool':'a','x':'${ .args.x | bogus }'},'effect':'read'}]}");
    gone = stage_ask(0, engine_define, &request);
    stage_hang_up(gone);
    node_drain(&nodes[0], 5000);
    (void)stage_expect(reply, ERR_STOPPING);
    (void)stage_expect(gone, ERR_TIMEOUT);
}

/* A client that left is not told of faults. */
TEST(a_client_who_left_is_not_told_of_faults)
{
    struct reply *gone;
    struct engine_request request = {0};

    stage_begin(&(struct stage_plan){.definitions = LOOK});
    stage_program_ms = 500;
    request.in.define.document =
        stage_json("{'tools':[{'name':'a','builtin':{'tool':'a','x':'${ .args.x | bogus }'},'effect':'read'}]}");
    gone = stage_ask(0, engine_define, &request);
    stage_hang_up(gone);
    (void)stage_expect(gone, ERR_TIMEOUT);
    stage_run(2000);
}

static struct payload_keys *payload_keys;

static void with_payload_keys(struct engine_options *options)
{
    options->payload_keys = payload_keys;
}

/* Sensitive members are kept sealed only, so there has to be a key, and an active one. */
TEST(a_document_with_sensitive_members_is_refused_while_there_is_no_active_key)
{
    static const struct {
        const char *keys;
        const char *document, *fault;
    } cases[] = {
        {NULL, "{'tools':[{'name':'a','builtin':{'tool':'a'},'effect':'read','sensitive':['/card']}]}",
         "/tools/0/sensitive"},
        {"{\"active\": null, \"keys\": {\"k\": \"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\"}}",
         "{'sagas':[{'name':'x','sensitive':['/card'],'steps':[{'id':'a','call':'look'}]}]}", "/sagas/0/sensitive"},
        {NULL,
         "{'sagas':[{'name':'x','steps':[{'id':'a','call':{'builtin':{'tool':'a'},'effect':'read',"
         "'sensitive':['/card']}}]}]}",
         "/sagas/0"},
        {"{\"active\": \"k\", \"keys\": {\"k\": \"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\"}}",
         "{'tools':[{'name':'a','builtin':{'tool':'a'},'effect':'read','sensitive':['/card']}]}", NULL},
    };

    assert_int_equal(scratch_make_file(NULL), 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct reply *reply;
        struct err err = {0};

        scratch_write(cases[i].keys ? cases[i].keys : "", 1);
        payload_keys = cases[i].keys ? payload_keys_new(scratch_file, &err) : NULL;
        assert_true(payload_keys || !cases[i].keys);
        stage_begin(&(struct stage_plan){.definitions = LOOK, .tweak = with_payload_keys});
        reply = stage_define(0, cases[i].document);
        assert_int_equal(reply->code, cases[i].fault ? ERR_INVALID : ERR_OK);
        if (cases[i].fault) {
            assert_true(slice_starts_with(reply->fault, cases[i].fault));
        }
        stage_end();
        payload_keys_free(payload_keys);
    }
    assert_int_equal(scratch_remove_file(NULL), 0);
}

/* --- watching --- */

static struct watcher {
    struct engine_watch watch;
    uint64_t seq;
    uint32_t times;
    bool ended;
} watcher;

static void on_changed(struct engine_watch *watch, uint64_t seq, bool ended)
{
    assert_ptr_equal(watch, &watcher.watch);
    assert_true(seq > watcher.seq);
    watcher.seq = seq;
    watcher.times++;
    watcher.ended = ended;
}

TEST(a_watcher_of_a_saga_hears_of_each_turn_until_its_end)
{
    struct saga_id saga, other;
    uint32_t times;

    stage_begin(&(struct stage_plan){.definitions = LOOK});
    saga = stage_start(0, "s", "{}");
    other = stage_start(0, "s", "{}");
    watcher = (struct watcher){.watch = {.id = saga, .changed = on_changed}};
    engine_watch_add(nodes[0].engine, &watcher.watch);
    stage_is_automatic = true;
    stage_complete(stage_until_call("look"), "{}");
    stage_until_saga(0, saga, "completed");
    assert_true(watcher.times > 0);
    assert_true(watcher.ended);
    times = watcher.times;
    stage_complete_all("look", "{}");
    stage_until_saga(0, other, "completed");
    assert_int_equal(watcher.times, times);
    engine_watch_remove(nodes[0].engine, &watcher.watch);
    engine_watch_remove(nodes[0].engine, &watcher.watch); /* a second removal changes nothing */
}

/* --- leaving --- */

/* A second signal with less patience counts. An end that has begun does not begin again. */
TEST(an_engine_that_leaves_may_be_told_to_hurry)
{
    struct staged_call *call;

    stage_begin(&(struct stage_plan){.definitions = LOOK});
    (void)stage_start(0, "s", "{}");
    call = stage_until_call("look");
    node_drain(&nodes[0], 600000);
    stage_run(5000);
    assert_true(nodes[0].up);
    stage_cancels = false; /* the call takes its time after that */
    for (int i = 0; i < 2; i++) {
        node_hurry(&nodes[0]);
        stage_run(1000);
    }
    assert_true(nodes[0].up);
    stage_complete(call, "{}");
    stage_run(5000);
    assert_false(nodes[0].up);
}

/* The engine waits for evaluations and evidence under way, because their answers arrive in its memory. */
TEST(an_engine_does_not_end_before_what_it_has_asked_is_answered)
{
    struct saga_id saga;

    stage_begin(&(struct stage_plan){
        .node_count = 2,
        .node = {.lease_ms = 2000},
        .definitions = "{'tools':[{'name':'undo','builtin':{'tool':'undo'},'effect':'idempotent'},"
                       "{'name':'pay','builtin':{'tool':'pay'},'effect':'keyed','key':{'window':'1d'},'compensate':{'"
                       "tool':'undo'},'timeout':'10m'}],"
                       "'sagas':[{'name':'s','steps':[{'id':'a','call':'pay','with':{'n':'${ .input.n | . }'}}]}]}"});
    stage_program_ms = 3000;
    (void)stage_start(0, "s", "{'n':1}");
    stage_run(500);
    node_drain(&nodes[0], 0);
    stage_run(1000);
    assert_true(nodes[0].up);
    stage_run(5000);
    assert_false(nodes[0].up);
    stage_program_ms = 0;
    stage_again(0);
    stage_run(15000);
    saga = stage_start(0, "s", "{'n':1}");
    while (!stage_call("pay") || stage_call("pay")->node != &nodes[0]) {
        stage_run(100);
        if (stage_call("pay") && stage_call("pay")->node == &nodes[1]) {
            stage_complete(stage_call("pay"), "{}");
        }
    }
    nodes[0].cut = true;
    stage_run(8000);
    pg_set_slow(world->pg, 1000000);
    nodes[0].cut = false;
    stage_run(2000);
    if (stage_call("pay")) {
        stage_complete(stage_call("pay"), "{}"); /* evidence for the next owner, sent through a slow database */
    }
    stage_run(1);
    node_drain(&nodes[0], 0);
    stage_run(30000);
    assert_false(nodes[0].up);
    pg_set_slow(world->pg, 200);
    stage_is_automatic = true;
    stage_complete_all("pay", "{}");
    stage_until_saga(1, saga, "completed");
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
