/*
 * A running saga goes on with another version of a tool, wherever that version was registered, whichever engine is
 * asked, and whichever engine owns the saga later. An operation that has begun keeps its key.
 */
#include "run/shard/shard.h"
#include "tests/sim/stage.h"

#define PAY(service)                                                                                                   \
    "{'name':'pay','builtin':{'tool':'" service "'},'effect':'keyed','key':{'window':'1h'},'terminal':true,"           \
    "'retry':{'initial':'5s','max':'5s','max_attempts':9}}"
#define DOCUMENT(tool) "{'tools':[" tool "],'sagas':[{'name':'pays','steps':[{'id':'a','call':'pay','with':{}}]}]}"

static struct reply *mend(uint32_t node, struct saga_id id, const char *tool, uint32_t version)
{
    return stage_ask(node, engine_change,
                     &(struct engine_request){.in.change = {.verb = VERB_MEND,
                                                            .saga = id,
                                                            .input.mend = {.tool = slice_of(tool),
                                                                           .version = version,
                                                                           .note = SLICE("it asked with POST")}}});
}

static uint32_t owner_of(struct saga_id id)
{
    return nodes[0].engine->shards[saga_id_shard(id)].state == SHARD_OWNED ? 0 : 1;
}

/* Starts a saga whose payment the broken service refused and which is to be tried again. Also returns the key. */
static struct saga_id start_broken(struct slice *key)
{
    struct saga_id id = stage_start(0, "pays", "{}");
    struct staged_call *call = stage_until_call("broken");

    *key = arena_slice(&world->arena, call->key);
    stage_answer(call, (struct outcome){.kind = OUTCOME_RETRY, .error = SLICE("http-503")}, NULL);
    stage_settle();
    return id;
}

TEST(the_next_call_is_of_the_new_version_and_has_the_same_key)
{
    struct slice key;
    struct saga_id id = start_broken(&key);

    (void)stage_expect(stage_define(0, DOCUMENT(PAY("mended"))), ERR_OK);
    (void)stage_expect(mend(owner_of(id), id, "pay", 2), ERR_OK);
    struct staged_call *call = stage_until_call("mended");

    assert_true(slice_equal(call->key, key));
    (void)stage_expect(mend(owner_of(id), id, "pay", 1), ERR_CALL_OUT);
    stage_complete(call, "{'id':7}");
    stage_until_saga(0, id, "completed");
    assert_non_null(strstr(stage_log(id), "tool.mended"));
    assert_int_equal(stage_calls("broken"), 1);
}

TEST(a_version_that_was_registered_elsewhere_a_moment_ago_is_found)
{
    struct slice key;
    struct saga_id id = start_broken(&key);
    uint32_t owner = owner_of(id);

    stage_refuse(STORE_LOAD_DEFINITIONS, ERR_STORE, 1); /* neither engine hears of the version in time by itself */
    (void)stage_expect(stage_define(1 - owner, DOCUMENT(PAY("mended"))), ERR_OK);
    (void)stage_expect(mend(1 - owner, id, "pay", 2), ERR_OK);
    stage_complete(stage_until_call("mended"), "{'id':7}");
    stage_until_saga(0, id, "completed");
}

TEST(the_next_owner_goes_on_with_the_new_version)
{
    struct slice key;
    struct saga_id id = start_broken(&key);
    uint32_t owner = owner_of(id);

    (void)stage_expect(stage_define(owner, DOCUMENT(PAY("mended"))), ERR_OK);
    (void)stage_expect(mend(owner, id, "pay", 2), ERR_OK);
    node_kill(&nodes[owner]);
    struct staged_call *call = stage_until_call("mended");

    assert_true(call->node == &nodes[1 - owner]);
    assert_true(slice_equal(call->key, key));
    stage_complete(call, "{'id':7}");
    stage_until_saga(1 - owner, id, "completed");
}

TEST(what_cannot_be_is_refused)
{
    struct slice key;
    struct saga_id id = start_broken(&key);

    (void)stage_expect(mend(0, id, "pay", 9), ERR_NOT_FOUND);
    (void)stage_expect(mend(1, id, "other", 1), ERR_INVALID);
    stage_refuse(STORE_LOAD_DEFINITIONS, ERR_STORE, 1);
    (void)stage_expect(mend(0, id, "pay", 8), ERR_STORE);
    stage_complete(stage_until_call("broken"), "{'id':7}");
    stage_until_saga(0, id, "completed");
    (void)stage_expect(mend(0, id, "pay", 1), ERR_ENDED);
}

STAGE_PROGRAM(.node_count = 2, .definitions = DOCUMENT(PAY("broken")))
