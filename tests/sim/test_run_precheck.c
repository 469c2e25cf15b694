/*
 * Prechecks: what is already done is not done again, and what is forbidden is not done. In doubt the call is tried
 * again later, and it is never made because of an answer that nobody understood.
 */
#include "run/call/activity.h"
#include "run/call/call_queue.h"
#include "run/shard/shard.h"
#include "tests/sim/stage.h"

#include <stdio.h>

#include "base/json.h"

#define LOOKED(name, done, blocked, result)                                                                            \
    "{'name':'" name "','builtin':{'tool':'act'},'effect':'idempotent','retry':{'max_attempts':2,'initial':'1s'},"     \
    "'precheck':{'builtin':{'tool':'look'},'done':'" done "'" blocked result "},'compensate':{'tool':'undo'}},"

static const char document[] = "{'tools':[" LOOKED(
    "looked", "${ .response.done }", ",'blocked':'${ .response.blocked }'",
    ",'result':{'id':'${ .response.id }'}") LOOKED("programs", "${ .response.done | . }",
                                                   ",'blocked':'${ .response.blocked | . }'",
                                                   ",'result':{'id':'${ .response.id | . }'}")
    LOOKED("bare", "${ .response.done }", "", "") LOOKED("broken_done", "${ .response.done | error }", "", "")
        LOOKED("broken_blocked", "${ .response.done }", ",'blocked':'${ .response.id.deeper }'", "") LOOKED(
            "broken_result", "${ .response.done }", "",
            ",'result':{'id':'${ .response.id | error }'}") "{'name':'checked','builtin':{'tool':'act'},'effect':'"
                                                            "checked','retry':{'max_attempts':3,'initial':'1s'},"
                                                            "'breaker':{'failures':2,'window':'60s','cooldown':'1s'},"
                                                            "'probe':{'builtin':{'tool':'probe'},'outcome':{'completed'"
                                                            ":'${ .response.done }','absent':'${ .response.absent "
                                                            "}'},'visibility':'1s',"
                                                            "'give_up_after':'1m'},'compensate':{'tool':'undo'}},"
                                                            "{'name':'plain','builtin':{'tool':'plain'},'effect':'"
                                                            "idempotent','compensate':{'tool':'undo'}},"
                                                            "{'name':'undo','builtin':{'tool':'undo'},'effect':'"
                                                            "idempotent'}],"
                                                            "'sagas':["
                                                            "{'name':'looked','steps':[{'id':'a','call':'looked','with'"
                                                            ":{}}]},"
                                                            "{'name':'later','steps':[{'id':'a','call':'plain','with':{"
                                                            "}},{'id':'b','call':'programs','with':{}}]},"
                                                            "{'name':'programs','steps':[{'id':'a','call':'programs','"
                                                            "with':{}}]},"
                                                            "{'name':'bare','steps':[{'id':'a','call':'bare','with':{}}"
                                                            "]},"
                                                            "{'name':'broken_done','steps':[{'id':'a','call':'broken_"
                                                            "done','with':{}}]},"
                                                            "{'name':'broken_blocked','steps':[{'id':'a','call':'"
                                                            "broken_blocked','with':{}}]},"
                                                            "{'name':'broken_result','steps':[{'id':'a','call':'broken_"
                                                            "result','with':{}}]},"
                                                            "{'name':'checked','steps':[{'id':'a','call':'checked','"
                                                            "with':{}}]}"
                                                            "]}";

static struct slice step_of(struct saga_id id)
{
    return json_element(json_member(stage_saga(0, id), "steps"), 0);
}

TEST(an_effect_that_is_there_already_is_not_made_again)
{
    static const struct {
        const char *saga, *result;
    } table[] = {{"looked", "{\"id\":7}"}, {"programs", "{\"id\":7}"}, {"bare", "null"}, {"broken_blocked", "null"}};

    stage_says("look", OUTCOME_COMPLETED, NULL, "{\"done\":true,\"id\":7}");
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct saga_id id = stage_start(0, table[i].saga, "{}");

        stage_until_saga(0, id, "completed");
        assert_true(slice_is(json_member(step_of(id), "result"), table[i].result));
    }
    assert_int_equal(stage_calls("act"), 0);
}

TEST(a_forbidden_call_is_not_made)
{
    static const char *const sagas[] = {"looked", "programs"};

    for (size_t i = 0; i < COUNT_OF(sagas); i++) {
        stage_says("look", OUTCOME_COMPLETED, NULL, "{\"done\":false,\"blocked\":\"it is closed\"}");
        struct saga_id id = stage_start(0, sagas[i], "{}");

        stage_until_saga(0, id, "compensated");
        assert_non_null(memmem(stage_saga(0, id).ptr, stage_saga(0, id).len, "it is closed", 12));
        stage_says("look", OUTCOME_COMPLETED, NULL, "{\"done\":false,\"blocked\": {\"why\":5} }");
        stage_until_saga(0, stage_start(0, sagas[i], "{}"), "compensated");
    }
    assert_int_equal(stage_calls("act"), 0);
}

TEST(a_call_that_is_neither_done_nor_forbidden_is_made_once)
{
    static const struct {
        enum outcome_kind kind;
        const char *error, *response;
    } table[] = {
        {OUTCOME_COMPLETED, NULL, "{\"done\":false,\"blocked\":null}"},
        {OUTCOME_COMPLETED, NULL, "{\"done\":null,\"blocked\":false}"},
        {OUTCOME_FAILED, "http-404", "{}"}, /* the thing does not exist yet */
        {OUTCOME_FAILED, "http-410", "{}"},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        stage_says("look", table[i].kind, table[i].error, table[i].response);
        stage_until_saga(0, stage_start(0, "looked", "{}"), "completed");
        assert_int_equal(stage_calls("act"), i + 1);
    }
    stage_says("look", OUTCOME_COMPLETED, NULL, "{\"done\":false}");
    stage_until_saga(0, stage_start(0, "bare", "{}"), "completed");
    assert_int_equal(stage_calls("act"), COUNT_OF(table) + 1);
}

static bool has_tried(void *tries)
{
    return stage_calls("look") + stage_calls("act") >= *(const uint32_t *)tries;
}

/* A denied precheck or call says nothing about its receiver. A person is asked, and no breaker opens. */
TEST(a_denied_precheck_waits_for_a_person_until_it_is_allowed)
{
    static const char *const sagas[] = {"looked", "bare", "checked"};

    for (size_t i = 0; i < COUNT_OF(sagas); i++) {
        uint32_t acts = stage_calls("act"), tries = stage_calls("look") + acts + 6;
        const char *tool = strcmp(sagas[i], "checked") == 0 ? "act" : "look";

        stage_says(tool, OUTCOME_RETRY, OUTCOME_EGRESS_DENIED, NULL);
        struct saga_id id = stage_start(0, sagas[i], "{}");

        stage_until(has_tried, &tries, "it is tried again");
        stage_until_saga(0, id, "escalated");
        assert_true(strcmp(tool, "act") == 0 || stage_calls("act") == acts);
        stage_says(tool, OUTCOME_COMPLETED, NULL, "{\"done\":false}");
        stage_until_saga(0, id, "completed");
    }
    assert_int_equal(stage_calls("probe"), 0);
}

TEST(an_answer_that_nobody_understands_is_asked_again_and_not_acted_on)
{
    static char large[80000];
    static const struct {
        const char *saga;
        enum outcome_kind kind;
        const char *error, *response;
    } table[] = {
        {"looked", OUTCOME_UNKNOWN, "http-500", "{}"},
        {"looked", OUTCOME_UNKNOWN, "timeout", NULL},
        {"looked", OUTCOME_RETRY, "http-503", "{}"},
        {"looked", OUTCOME_FAILED, "http-403", "{\"done\":false}"},
        {"broken_done", OUTCOME_COMPLETED, NULL, "{\"done\":false}"},
        {"broken_blocked", OUTCOME_COMPLETED, NULL, "{\"done\":false,\"id\":\"x\"}"},
        {"broken_result", OUTCOME_COMPLETED, NULL, "{\"done\":true}"},
        {"looked", OUTCOME_COMPLETED, NULL, large}, /* the result is larger than allowed */
    };

    (void)snprintf(large, sizeof(large), "{\"done\":true,\"id\":\"%070000d\"}", 1);
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        uint32_t looks = stage_calls("look");

        stage_says("look", table[i].kind, table[i].error, table[i].response);
        stage_tool("look")->outcome.detail = i % 3 == 0 ? SLICE("so it is") : SLICE_NONE;
        struct saga_id id = stage_start(0, table[i].saga, "{}");

        stage_run(10000);
        if (stage_calls("act") != 0 || stage_calls("look") < looks + 2) {
            fail_msg("line %zu: %u looks, %u calls: %.*s", i, stage_calls("look") - looks, stage_calls("act"),
                     SLICE_ARG(stage_saga(0, id)));
        }

        /* The precheck would be asked for ever. */
        (void)stage_wait(stage_change(0, VERB_ABORT, id));
        stage_run(5000);
    }
}

/* A saga is aborted or leaves memory while its precheck is under way or being judged. The call is not made. */
TEST(a_call_that_is_not_wanted_any_more_is_not_made)
{
    static const char *const sagas[] = {"looked", "programs", "later", "broken_result"};

    stage_tool("undo")->delay_ms = 500; /* the saga is still in memory while a step is undone */
    stage_says("look", OUTCOME_COMPLETED, NULL, "{\"done\":false}");
    for (int64_t after_ms = 0; after_ms < 80; after_ms += 2) {
        stage_tool("look")->delay_ms = 20;
        stage_says("look", after_ms % 6 ? OUTCOME_COMPLETED : OUTCOME_UNKNOWN, after_ms % 6 ? NULL : "http-500",
                   after_ms % 4 ? "{'done':true,'id':1}" : "{'done':false}");
        struct saga_id id = stage_start(0, sagas[(after_ms / 2) % 4], "{}");

        stage_run(after_ms);
        (void)stage_wait(stage_change(0, VERB_ABORT, id));
        stage_run(3000);
    }
    assert_int_equal(renderings_under_way(nodes[0].engine), 0);
    assert_int_equal(calls_under_way(nodes[0].engine), 0);
}

static void lose_shard(struct engine *engine, void *context)
{
    const struct shard *shard = context;

    shard_lost(shard->number, shard->epoch, engine);
    shard_gained(shard->number, shard->epoch, engine);
}

TEST(the_next_owner_looks_again)
{
    static const char *const sagas[] = {"looked", "programs", "broken_result"};

    for (int64_t after_ms = 0; after_ms < 60; after_ms += 3) {
        stage_says("look", OUTCOME_COMPLETED, NULL, after_ms % 2 ? "{\"done\":true,\"id\":1}" : "{\"done\":false}");
        stage_tool("look")->delay_ms = 20;
        struct saga_id id = stage_start(0, sagas[(after_ms / 3) % 2], "{}");
        struct shard *shard = &nodes[0].engine->shards[saga_id_shard(id)];

        stage_run(after_ms);
        stage_inside(0, lose_shard, shard);
        stage_run(3000);
        stage_until_saga(0, id, "completed");
    }
}

/* A status read finds out whether the tool is well again, when one more call would do harm. */
TEST(a_tool_whose_calls_are_not_harmless_is_tried_by_a_read)
{
    stage_says("act", OUTCOME_UNKNOWN, "http-500", NULL);
    stage_says("probe", OUTCOME_COMPLETED, NULL, "{'absent':true}");
    for (int i = 0; i < 4; i++) {
        (void)stage_start(0, "checked", "{}");
    }
    stage_run(20000);
    stage_says("probe", OUTCOME_UNKNOWN, "timeout", NULL);
    stage_run(20000);
    stage_says("act", OUTCOME_COMPLETED, NULL, "{}");
    stage_says("probe", OUTCOME_COMPLETED, NULL, "{\"absent\":true}");
    stage_until_saga(0, stage_start(0, "checked", "{}"), "completed");
    assert_true(stage_calls("probe") > 0);
}

/* A read that was denied says nothing of the tool: its breaker does not rest longer, and a person hears of it. */
TEST(a_denied_status_read_asks_a_person_and_leaves_the_breaker_to_the_next_try)
{
    uint32_t probes;

    stage_says("act", OUTCOME_UNKNOWN, "http-500", NULL);
    stage_says("probe", OUTCOME_COMPLETED, NULL, "{'absent':true}");
    for (int i = 0; i < 4; i++) {
        (void)stage_start(0, "checked", "{}");
    }
    stage_run(20000);
    stage_says("probe", OUTCOME_RETRY, OUTCOME_EGRESS_DENIED, NULL);
    struct saga_id id = stage_start(0, "checked", "{}");

    stage_until_saga(0, id, "escalated");
    probes = stage_calls("probe");
    stage_says("act", OUTCOME_COMPLETED, NULL, "{}");
    stage_says("probe", OUTCOME_COMPLETED, NULL, "{\"absent\":true}");
    stage_until_saga(0, id, "completed");
    assert_true(stage_calls("probe") > probes);
}

STAGE_PROGRAM(.definitions = document, .is_automatic = true)
