/* How a call ended whose saga another engine has. The engine tells the owner, for as long as it lives. */
#include "tests/sim/stage.h"

#include "base/json.h"

static const char definitions[] = "{'tools':[{'name':'t','builtin':{'tool':'t'},'effect':'once',"
                                  "'terminal':true,'timeout':'1h'}],"
                                  "'sagas':[{'name':'s','steps':[{'id':'a','call':'t','with':{}}]}]}";

/* Begins a saga whose call is under way at node 0 when its shard goes to node 1. */
static struct saga_id begin(void)
{
    struct saga_id id;

    stage_begin(&(struct stage_plan){.node_count = 2, .definitions = definitions});
    id = stage_start(0, "s", "{}");
    (void)stage_until_call("t");
    nodes[0].cut = true;
    stage_until_owner(1, saga_id_shard(id));
    nodes[0].cut = false;
    stage_until_no_owner(0, saga_id_shard(id));
    stage_run(5000);
    assert_int_equal(stage_open_calls(), 1);
    return id;
}

TEST(the_owner_is_told_how_the_call_ended)
{
    struct saga_id id = begin();
    const struct inbox_put *put;

    stage_hold(STORE_INBOX_PUT);
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    assert_int_equal(stage_asked(STORE_INBOX_PUT), 1);
    put = stage_oldest(STORE_INBOX_PUT);
    assert_true(slice_is(put->row.kind, "settled"));
    assert_true(uuid_equal(&put->row.saga.uuid, &id.uuid));
    assert_true(json_string_is(json_member(put->row.payload, "outcome"), "completed"));
    stage_let(STORE_INBOX_PUT);
    stage_until_saga(1, id, "completed");
}

TEST(it_is_told_again_until_the_database_has_it)
{
    struct saga_id id = begin();

    stage_hold(STORE_INBOX_PUT);
    stage_answer_first(OUTCOME_FAILED, "http-422", "{'status':422}");
    for (uint32_t i = 1; i <= 3; i++) {
        assert_int_equal(stage_asked(STORE_INBOX_PUT), i);
        stage_fail(STORE_INBOX_PUT, ERR_STORE);
        stage_run(3000);
    }
    stage_let(STORE_INBOX_PUT);
    stage_run(10000);
    assert_int_equal(stage_asked(STORE_INBOX_PUT), 4);
    stage_until_saga(1, id, "compensated");
}

/* The next owner counts the call as unknown, and settles it as the tool allows. */
TEST(an_engine_that_leaves_does_not_wait_for_the_database)
{
    (void)begin();
    stage_hold(STORE_INBOX_PUT);
    stage_answer_first(OUTCOME_FAILED, "http-422", "{'status':422}");
    stage_fail(STORE_INBOX_PUT, ERR_STORE); /* the time to tell it again comes while the engine leaves */
    node_drain(&nodes[0], 600000);
    stage_run(3000);
    assert_int_equal(stage_asked(STORE_INBOX_PUT), 2);
    stage_fail(STORE_INBOX_PUT, ERR_STORE);
    stage_run(10000);
    assert_int_equal(stage_asked(STORE_INBOX_PUT), 2);
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
