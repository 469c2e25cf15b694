/*
 * Bulk jobs: what happens to an item while a call of its operation is out, and when the engine dies between the turn of
 * the saga and the outcome of the item (bulk/bulker.c).
 */
#include "tests/sim/stage.h"

#include "base/json.h"

#include "store/bulk.h"

static uint32_t settled; /* batches whose outcomes were to be written */

void __real_store_bulk_settle(struct store *store, struct bulk_settle *settle);
void __wrap_store_bulk_settle(struct store *store, struct bulk_settle *settle);

void __wrap_store_bulk_settle(struct store *store, struct bulk_settle *settle)
{
    settled++;
    __real_store_bulk_settle(store, settle);
}

static const char document[] = "{'tools':[{'name':'pay','builtin':{'tool':'pay'},'effect':'once','terminal':true,"
                               "'timeout':'5m'}],"
                               "'sagas':[{'name':'pays','steps':[{'id':'a','call':'pay','with':{}}]},"
                               "{'name':'waits','steps':[{'id':'a','signal':{'name':'go'}}]}]}";

static struct reply *ask(request_verb *verb, struct saga_id job, struct slice body)
{
    struct engine_request request = {
        .in.bulk = {.id = job, .body = body, .note = SLICE("the bank"), .role = ROLE_ADMIN}};

    return stage_expect(stage_ask(0, verb, &request), ERR_OK);
}

/* Makes a job with this verb and these items, and runs it. */
static struct saga_id run_job(struct slice verb_and_items)
{
    struct slice body = arena_printf(&world->arena, "{\"note\":\"the bank\",%.*s}", SLICE_ARG(verb_and_items));
    struct reply *frozen = ask(engine_freeze_bulk, (struct saga_id){0}, body);
    struct saga_id job = {0};

    assert_true(uuid_parse(json_string(json_member(frozen->answer, "bulk"), &world->arena), &job.uuid));
    (void)ask(engine_run_bulk, job, SLICE_NONE);
    return job;
}

static bool has_outcome(struct saga_id job, const char *outcome)
{
    struct slice shown = ask(engine_get_bulk, job, SLICE_NONE)->answer;
    int64_t count = 0;

    return json_i64(json_member(json_member(shown, "outcomes"), outcome), &count) && count == 1;
}

static void until_outcome(struct saga_id job, const char *outcome)
{
    for (int i = 0; i < 200 && !has_outcome(job, outcome); i++) {
        stage_run(100);
    }
    assert_true(has_outcome(job, outcome));
}

TEST(an_item_waits_while_a_call_of_its_operation_is_out)
{
    struct saga_id saga = stage_start(0, "pays", "{}"), job;

    (void)stage_until_call("pay");
    job = run_job(
        arena_printf(&world->arena, "\"action\":\"resolve\",\"as\":\"happened\",\"items\":[{\"operation\":%.*s}]",
                     SLICE_ARG(json_member(json_element(json_member(stage_saga(0, saga), "steps"), 0), "key"))));
    stage_run(5000);
    assert_true(has_outcome(job, "open"));
    stage_answer_first(OUTCOME_UNKNOWN, "reset", NULL);
    until_outcome(job, "done");
    stage_until_saga(0, saga, "completed");
    assert_int_equal(stage_calls("pay"), 1);
}

static void die(void)
{
    node_kill(&nodes[0]);
}

/* The next owner asks the saga again, which has ended by then. The log of the saga says that this item ended it. */
TEST(an_item_that_acted_counts_as_done_when_its_engine_died_before_it_said_so)
{
    struct saga_id saga = stage_start(0, "pays", "{}"), job;

    stage_answer_first(OUTCOME_UNKNOWN, "reset", NULL);
    stage_until_saga(0, saga, "escalated");
    stage_commit(5, COMMIT_OK, die); /* the job, its items, the frozen set, the run, and the turn of the saga */
    job = run_job(SLICE("\"action\":\"abandon\",\"filter\":{\"tool\":\"pay\"}"));
    stage_run(1000);
    assert_false(nodes[0].up);
    assert_non_null(strstr(stage_log(saga), "\"bulk\":"));
    stage_again(0);
    until_outcome(job, "done");
    stage_until_saga(0, saga, "abandoned");
}

static void pause_or_resume(struct saga_id saga, enum verb_id verb)
{
    struct engine_request request = {.in.change = {.verb = verb, .saga = saga}};

    if (verb == VERB_PAUSE) {
        request.in.change.input.pause.note = SLICE("a look at it");
    } else {
        request.in.change.input.resume.note = SLICE("it is well");
    }
    (void)stage_expect(stage_ask(0, engine_change, &request), ERR_OK);
}

/*
 * At a thousand items a second, the end of the first item sometimes comes when the second one may begin, and just
 * before the timer for that. The second item changes nothing and ends at once. Then the timer comes behind the last
 * item.
 */
TEST_BETWEEN(a_batch_is_settled_once, NULL, stage_teardown)
{
    struct saga_id paused, waits;

    stage_begin(&(struct stage_plan){.definitions = document, .node = {.lease_ms = 3000, .bulk_rate = 1000}});
    paused = stage_start(0, "waits", "{}");
    stage_run(10);
    waits = stage_start(0, "waits", "{}"); /* the newest is the first item */
    pause_or_resume(paused, VERB_PAUSE);
    settled = 0;
    for (uint32_t round = 1; round <= 300; round++) {
        (void)run_job(SLICE("\"action\":\"pause\",\"filter\":{\"saga\":\"waits\"}"));
        stage_run(200);
        assert_int_equal(settled, round);
        pause_or_resume(waits, VERB_RESUME);
    }
}

static int64_t outcomes(struct saga_id job, const char *outcome)
{
    struct slice shown = ask(engine_get_bulk, job, SLICE_NONE)->answer;
    int64_t count = 0;

    (void)json_i64(json_member(json_member(shown, "outcomes"), outcome), &count);
    return count;
}

/* At one item a second a batch of ten takes ten seconds. */
TEST_BETWEEN(a_stop_ends_the_batch_behind_the_items_that_have_begun, NULL, stage_teardown)
{
    struct saga_id job;
    int64_t done;

    stage_begin(&(struct stage_plan){.definitions = document, .node = {.lease_ms = 3000, .bulk_rate = 1}});
    for (int i = 0; i < 10; i++) {
        (void)stage_start(0, "waits", "{}");
    }
    settled = 0;
    job = run_job(SLICE("\"action\":\"pause\",\"filter\":{\"saga\":\"waits\"}"));
    stage_run(2500);
    assert_int_equal(settled, 0);
    (void)ask(engine_stop_bulk, job, SLICE_NONE);
    stage_run(500);
    assert_int_equal(settled, 1);
    done = outcomes(job, "done");
    assert_true(done > 0 && done < 5);
    assert_int_equal(outcomes(job, "open"), 10 - done);
    stage_run(30000);
    assert_int_equal(settled, 1);
    assert_int_equal(outcomes(job, "done"), done);
}

STAGE_PROGRAM(.definitions = document, .node = {.lease_ms = 3000})
