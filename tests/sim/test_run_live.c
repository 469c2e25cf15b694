/* A saga in memory: the order of its inputs, and what it does when its turns are not written. */
#include "run/saga/live.h"
#include "run/saga/summon.h"
#include "tests/sim/stage.h"

#include <stdio.h>

#include "base/json.h"

static const char definitions[] = "{'tools':[{'name':'t','builtin':{'tool':'t'},'effect':'keyed','key':{'window':'1h'},"
                                  "'terminal':true,'timeout':'1h'},"
                                  "{'name':'look','builtin':{'tool':'look'},'effect':'read','timeout':'1h'}],"
                                  "'sagas':[{'name':'s','steps':[{'id':'a','call':'t','with':{}}]}]}";

/* A turn that the database refuses as data is tried again, but not for ever. */
TEST(a_turn_that_is_refused_again_and_again_waits_for_somebody)
{
    stage_begin(&(struct stage_plan){.definitions = definitions, .is_automatic = true});
    struct saga_id id;

    stage_is_automatic = false;
    id = stage_start(0, "s", "{}");
    stage_hold(STORE_APPEND);
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    int refused = 0;

    for (; stage_held(STORE_APPEND) > 0 && refused < 100; refused++) {
        stage_fail(STORE_APPEND, ERR_CORRUPT);
        stage_run(1000);
    }
    assert_int_equal(refused, REFUSALS_MAX);
    assert_non_null(live_find(nodes[0].engine, id));
    /* The person's pause is written, and then the saga goes on. */
    struct reply *paused;

    paused = stage_change(0, VERB_PAUSE, id);
    stage_settle();
    stage_let(STORE_APPEND);
    assert_int_equal(paused->code, ERR_OK);
    assert_non_null(strstr(stage_log(id), "saga.paused"));
    stage_release(STORE_APPEND);
}

static struct saga_id early_id;
static bool early_done;

static void on_early(struct mail *mail, enum err_code code, const struct err *err)
{
    (void)mail;
    (void)err;
    assert_int_equal(code, ERR_OK);
    early_done = true;
}

static struct mail early = {.input = {.type = SAGA_INPUT_PAUSE, .pause = {.actor = SLICE("somebody")}},
                            .done = on_early};

static void send_early(struct engine *engine, void *context)
{
    (void)context;
    live_deliver(engine, early_id, SLICE("default"), &early);
}

static void break_off(void *request, enum err_code *code)
{
    (void)request;
    *code = ERR_STORE; /* some sagas were read, perhaps not all, so the shard is read again */
    stage_hold(STORE_LOAD_SHARD);
}

/* The free numbers of escalations are known only once the whole shard is read. */
TEST(a_request_waits_while_its_shard_is_being_loaded)
{
    stage_begin(&(struct stage_plan){.definitions = definitions});
    early_id = stage_start(0, "s", "{}");
    stage_lose(0, saga_id_shard(early_id));
    stage_on_answer(STORE_LOAD_SHARD, break_off);
    stage_gain(0, saga_id_shard(early_id));
    assert_int_equal(nodes[0].engine->shards[saga_id_shard(early_id)].state, SHARD_LOADING);
    assert_non_null(live_find(nodes[0].engine, early_id));
    stage_inside(0, send_early, NULL);
    stage_settle();
    assert_false(early_done);
    assert_null(strstr(stage_log(early_id), "saga.paused"));
    stage_release(STORE_LOAD_SHARD);
    assert_true(early_done);
    assert_non_null(strstr(stage_log(early_id), "saga.paused"));
}

/* Two engines began the same run. The second one uses the run of the first, which may be here by then. */
TEST(a_run_that_has_begun_elsewhere_is_the_one_that_is_called)
{
    static char first[16384];
    struct reply *called;
    struct append turn;
    struct saga_id id;

    stage_begin(&(struct stage_plan){.definitions = definitions, .is_automatic = true});
    called =
        stage_ask(0, engine_call,
                  &(struct engine_request){
                      .in.call = {.run = SLICE("r"), .tool = SLICE("look"), .args = SLICE("{}"), .wait_ms = 60000}});
    (void)stage_expect(called, ERR_OK);
    assert_true(uuid_parse(json_string(json_member(called->answer, "saga"), &world->arena), &id.uuid));
    (void)snprintf(first, sizeof(first), "%s", stage_log(id));
    *strchr(first, '\n') = '\0';
    stage_end();

    stage_begin(&(struct stage_plan){.definitions = definitions});
    (void)stage_start(0, "s", "{}"); /* ids are made anew from here on */
    stage_hold(STORE_APPEND);
    called =
        stage_ask(0, engine_call,
                  &(struct engine_request){
                      .in.call = {.run = SLICE("r"), .tool = SLICE("look"), .args = SLICE("{}"), .wait_ms = 60000}});
    stage_settle();
    assert_int_equal(stage_held(STORE_APPEND), 1);
    turn = *(const struct append *)stage_oldest(STORE_APPEND);
    turn.saga = id;
    turn.payload = slice_of(first);
    turn.new_key_count = 0;
    stage_write(0, &turn);
    /* Something comes for the second one. Only once the run is here is it known that a run cannot be paused. */
    (void)stage_change(0, VERB_PAUSE, id);
    stage_settle();
    assert_non_null(live_find(nodes[0].engine, id));
    stage_let(STORE_APPEND); /* the name is taken */
    stage_release(STORE_APPEND);
    stage_answer_all();
    (void)stage_expect(called, ERR_OK);
    assert_non_null(strstr(stage_log(id), "operation.duplicate"));
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
