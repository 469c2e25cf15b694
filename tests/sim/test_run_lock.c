/* Locks on business keys: refused requests for a lock are repeated, and no lock is taken twice or forgotten. */
#include "run/saga/live.h"
#include "run/shard/shard.h"
#include "tests/sim/stage.h"

#include <stdio.h>

static const char document[] =
    "{'tools':["
    "{'name':'act','builtin':{'tool':'act'},'effect':'idempotent','compensate':{'tool':'undo'}},"
    "{'name':'undo','builtin':{'tool':'undo'},'effect':'idempotent'}],"
    "'sagas':["
    "{'name':'acts','steps':[{'id':'a','call':'act','with':{}}]},"
    "{'name':'holds','locks':[{'key':'till'}],'steps':[{'id':'go','signal':{'name':'paid'}}]}"
    "]}";

static struct engine *engine_now(void)
{
    return nodes[0].engine;
}

static enum err_code signal_it(struct saga_id id)
{
    struct reply *a;

    a = stage_wait(stage_change(0, VERB_SIGNAL, id, .input.signal = {.name = SLICE("paid")}));
    return a->code;
}

TEST(a_lock_that_could_not_be_asked_for_is_asked_for_again)
{
    stage_refuse(STORE_LOCK_TAKE, ERR_STORE, 2);
    struct saga_id id = stage_start(0, "holds", "{}");

    assert_int_equal(stage_asked(STORE_LOCK_TAKE), 1);
    stage_run(5000);
    assert_int_equal(stage_asked(STORE_LOCK_TAKE), 3);
    assert_int_equal(signal_it(id), ERR_OK);
    stage_until_saga(0, id, "completed");
}

TEST(no_lock_is_asked_for_by_an_engine_that_leaves)
{
    stage_refuse(STORE_LOCK_TAKE, ERR_STORE, 1);
    struct saga_id id = stage_start(0, "holds", "{}");

    stage_tool("act")->delay_ms = 20000;
    for (uint32_t i = 0; i < SHARD_COUNT; i++) { /* that shard is not given away, either, before this is over */
        (void)stage_start(0, "acts", "{}");
    }
    node_drain(&nodes[0], 3000);
    stage_run(2500);
    assert_non_null(live_find(engine_now(), id));
    assert_int_equal(stage_asked(STORE_LOCK_TAKE), 1);
    stage_run(2500);
    assert_false(nodes[0].up);
    stage_again(0);
    assert_int_equal(signal_it(id), ERR_OK);
    stage_until_saga(0, id, "completed");
}

static void lose_shard_of_lock(void *request, enum err_code *code)
{
    const struct lock_take *take = container_of(request, struct lock_take, read);

    (void)code;
    shard_lost(take->shard, engine_now()->shards[take->shard].epoch, engine_now());
}

TEST(a_lock_that_is_given_to_a_saga_whose_shard_was_lost_is_for_its_next_owner)
{
    stage_on_answer(STORE_LOCK_TAKE, lose_shard_of_lock);
    struct saga_id id = stage_start(0, "holds", "{}");

    stage_run(1000);
    assert_null(live_find(engine_now(), id));
    node_kill(&nodes[0]);
    stage_again(0);
    assert_int_equal(signal_it(id), ERR_OK);
    stage_until_saga(0, id, "completed");
}

/* The saga asks for the lock again while a turn is under way after which the lock is not wanted for now. The lock is
 * neither taken twice nor forgotten. */
TEST(a_saga_that_is_paused_while_it_asks_stands_in_line_all_the_same)
{
    enum { MANY = 8 };
    struct saga_id first = stage_start(0, "holds", "{}"), ids[MANY];

    stage_run(100);
    for (size_t i = 0; i < MANY; i++) {
        stage_refuse(STORE_LOCK_TAKE, ERR_STORE, 1);
        ids[i] = stage_start(0, "holds", "{}");
        stage_run(960 + 5 * (int64_t)i);
        pg_set_slow(world->pg, 100000);
        (void)stage_expect(stage_change(0, VERB_PAUSE, ids[i]), ERR_OK);
        pg_set_slow(world->pg, 1000);
        stage_run(2000);
    }
    for (size_t i = 0; i < MANY; i++) {
        (void)stage_expect(stage_change(0, VERB_RESUME, ids[i]), ERR_OK);
        stage_run(1000);
    }
    assert_int_equal(signal_it(first), ERR_OK);
    for (size_t i = 0; i < MANY; i++) {
        stage_run(5000);
        assert_int_equal(signal_it(ids[i]), ERR_OK);
    }
    for (size_t i = 0; i < MANY; i++) {
        stage_until_saga(0, ids[i], "completed");
    }
}

STAGE_PROGRAM(.definitions = document, .node = {.park_after_ms = 1000}, .is_automatic = true)
