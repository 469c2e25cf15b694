/* Decisions of people (run/request/change.c): the first decision holds, and a later one never replaces it. */
#include "tests/sim/stage.h"

#include "base/json.h"
#include "run/engine_state.h"

#define ASKED                                                                                                          \
    "{'tools':[{'name':'look','builtin':{'tool':'look'},'effect':'read'}],"                                            \
    "'sagas':[{'name':'s','steps':[{'id':'a','approve':{}},{'id':'b','call':'look','after':['a']}]},"                  \
    "{'name':'four_eyes','steps':[{'id':'a','approve':{'not_by':'starter'}}]}]}"

static struct saga_id begin_saga(const char *name, uint64_t *number)
{
    struct reply *reply;
    struct slice first;
    struct saga_id saga;
    int64_t given = 0;

    stage_begin(&(struct stage_plan){.definitions = ASKED});
    saga = stage_start(0, name, "{}");
    stage_run(100);
    reply =
        stage_wait(stage_ask(0, engine_get_approvals, &(struct engine_request){.in.approvals = {.open_only = true}}));
    assert_int_equal(reply->code, ERR_OK);
    first = json_element(reply->answer, 0);
    assert_true(json_i64(json_member(first, "n"), &given));
    *number = (uint64_t)given;
    return saga;
}

static struct saga_id begin(uint64_t *number)
{
    return begin_saga("s", number);
}

static struct reply *decide(uint64_t number, bool approve, const char *hash)
{
    return stage_ask(
        0, engine_change,
        &(struct engine_request){.in.change = {.verb = VERB_DECIDE,
                                               .input.decision = {.approval = number,
                                                                  .approve = approve,
                                                                  .role = ROLE_ADMIN,
                                                                  .hash = hash ? slice_of(hash) : SLICE_NONE}}});
}

TEST(the_first_of_two_decisions_at_once_holds)
{
    struct reply *yes, *no;
    struct saga_id saga;
    uint64_t number;

    saga = begin(&number);
    stage_is_automatic = true;
    yes = decide(number, true, NULL);
    no = decide(number, false, NULL);
    stage_wait(yes);
    stage_wait(no);
    assert_true((yes->code == ERR_OK) != (no->code == ERR_OK));
    assert_int_equal(yes->code == ERR_OK ? no->code : yes->code, ERR_DECIDED);
    stage_until_saga(0, saga, yes->code == ERR_OK ? "completed" : "compensated");
    (void)stage_expect(decide(number, true, NULL), ERR_DECIDED);
}

/* The starter of the saga is read with the approval, so that the rule holds on whichever engine decides. */
TEST(the_starter_of_a_saga_does_not_approve_it)
{
    struct reply *another;
    struct saga_id saga;
    uint64_t number;

    saga = begin_saga("four_eyes", &number);
    stage_is_automatic = true;
    (void)stage_expect(decide(number, true, NULL), ERR_FORBIDDEN);
    another =
        stage_ask(0, engine_change,
                  &(struct engine_request){
                      .actor = SLICE("another"),
                      .in.change = {.verb = VERB_DECIDE,
                                    .input.decision = {.approval = number, .approve = true, .role = ROLE_OPERATOR}}});
    (void)stage_expect(another, ERR_OK);
    stage_until_saga(0, saga, "completed");
}

/* The saga has ended before the decision reached it, so no decision is wanted any more. */
TEST(a_decision_that_comes_after_the_end_is_too_late)
{
    struct reply *abort, *decision;
    struct saga_id saga;
    uint64_t number;

    saga = begin(&number);
    pg_set_slow(world->pg, 1);
    decision = decide(number, true, NULL);
    abort = stage_change(0, VERB_ABORT, saga);
    (void)stage_expect(abort, ERR_OK);
    (void)stage_expect(decision, ERR_DECIDED);
    assert_int_equal(stage_calls("look"), 0);
}

/* An engine that was frozen for longer than its lease must not refuse by what it remembers, because another engine may
 * accept. */
TEST(a_decision_is_not_refused_by_who_may_have_lost_the_shard)
{
    struct reply *reply;
    uint64_t number;

    (void)begin(&number);
    pg_set_slow(world->pg, 1000000);
    do {
        reply = decide(number, true, "another");
        stage_run(5);
    } while (reply->done);
    pg_set_slow(world->pg, 0);
    /* The row that it looked up is already there, unread, when the engine goes on, before it hears about its lease. */
    node_freeze_now(&nodes[0], 20000000);
    stage_run(21000);
    (void)stage_expect(reply, ERR_FENCED);
    assert_false(err_retryable(stage_wait(decide(number, true, "another"))->code)); /* now the engine is sure */
}

/* The pages begin with the newest approval and go on until there are no more. */
TEST(approvals_are_listed_page_after_page)
{
    struct slice cursor = SLICE_NONE;
    uint64_t number;
    int64_t last = INT64_MAX;
    size_t count = 0;

    (void)begin(&number);
    for (int i = 0; i < 2; i++) {
        (void)stage_start(0, "s", "{}");
    }
    stage_run(100);
    do {
        struct reply *page = stage_wait(stage_ask(
            0, engine_get_approvals, &(struct engine_request){.in.approvals = {.limit = 1, .cursor = cursor}}));
        int64_t n = 0;

        assert_int_equal(page->code, ERR_OK);
        assert_true(json_i64(json_member(json_element(page->answer, 0), "n"), &n));
        assert_true(n < last);
        last = n;
        count++;
        cursor = page->next_cursor;
    } while (cursor.ptr);
    assert_int_equal(count, 3);
}

TEST(an_unknown_approval_is_not_found)
{
    uint64_t number;

    (void)begin(&number);
    (void)stage_expect(decide(number + 64, true, NULL), ERR_NOT_FOUND);
    (void)stage_expect(decide(0, true, NULL), ERR_NOT_FOUND); /* 0 does not mean the newest one */
    (void)stage_expect(
        stage_ask(0, engine_get_approvals, &(struct engine_request){.in.approvals = {.number = number + 64}}),
        ERR_NOT_FOUND);
    (void)stage_expect(stage_ask(0, engine_get_approvals, &(struct engine_request){.in.approvals = {.number = number}}),
                       ERR_OK);
}

TEST_PROGRAM_EACH(NULL, stage_teardown)
