/* `then`: the sagas that follow a completed one, named once, in the record of its end. */
#include <string.h>

#include "base/json.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define TWO_SAGAS(members)                                                                                             \
    "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'trial'," members                                                     \
    ",'steps':[{'id':'a','call':'keyed'},{'id':'b','call':'keyed'}]},{'name':'thank','steps':[{'id':'m','call':'mail'" \
    "}]}]}"

static void open_done(struct trial *trial, const char *document, const char *input)
{
    trial_begin(trial, document, input);
    trial_play(trial, "a, b");
}

static const struct record *last(const struct trial *trial)
{
    return &trial->records.items[trial->records.count - 1];
}

static struct trial trial;

TEST(followers_are_named_with_their_input_in_the_record_of_the_end)
{
    struct slice shown;

    open_done(&trial,
              TWO_SAGAS("'then':[{'saga':'thank','input':{'to':'${ .input.email }','charge':'${ .steps.a.result.id "
                        "}','of':'${ .saga.name }'}},"
                        "{'saga':'thank','id':'thank-${ .input.n }'},{'saga':'trial'}]"),
              "{'email':'ann@example.org','n':7}");
    assert_string_equal(trial_records(&trial), "step.completed b, saga.completed");
    assert_true(
        slice_is(last(&trial)->followers,
                 "[{\"saga\":\"thank\",\"input\":{\"to\":\"ann@example.org\",\"charge\":\"a-1\",\"of\":\"trial\"},"
                 "\"business_id\":\"then:018bcfe5-6800-7000-8000-000000000007:0\"},"
                 "{\"saga\":\"thank\",\"input\":{},\"business_id\":\"thank-7\"},"
                 "{\"saga\":\"trial\",\"input\":{},\"business_id\":\"then:018bcfe5-6800-7000-8000-000000000007:2\"}]"));
    assert_false(last(&trial)->error.ptr);
    shown = json_member(trial_view(&trial, &trial.arena), "followers");
    assert_int_equal(json_count(shown), 3);
    assert_true(json_string_is(json_at(shown, SLICE("/1/business_id")), "thank-7"));
}

TEST(no_saga_follows_one_that_is_undone_or_abandoned)
{
    trial_begin(&trial, TWO_SAGAS("'then':[{'saga':'thank'}]"), "{}");
    trial_play_until(&trial, "a, b failed, undo a", SAGA_COMPENSATED);
    assert_false(trial.saga.followers.ptr);
    assert_int_equal(json_type(json_member(trial_view(&trial, &trial.arena), "followers")), JSON_NONE);
}

TEST(a_follower_that_cannot_be_made_is_told_of_and_the_others_follow)
{
    static const char *const bad[] = {"'input':'${ .input.n.x }'", "'id':'${ .input.n }'", "'id':'${ .input.empty }'"};

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct arena arena = {0};

        arena_init(&arena, 4096);
        open_done(&trial,
                  arena_text(&arena,
                             arena_printf(
                                 &arena, "%s%s%s",
                                 "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'trial','then':[{'saga':'thank',", bad[i],
                                 "},{'saga':'thank'}],'steps':[{'id':'a','call':'keyed'},{'id':'b','call':'keyed'}]},{'"
                                 "name':'thank','steps':[{'id':'m','call':'mail'}]}]}")),
                  "{'n':7,'empty':''}");
        assert_int_equal(saga_status(&trial.saga), SAGA_COMPLETED);
        assert_true(slice_is(last(&trial)->error, "then"));
        assert_non_null(strstr(arena_text(&arena, last(&trial)->detail), "thank does not follow"));
        assert_int_equal(json_count(last(&trial)->followers), 1);
        trial_close_sound(&trial);
        arena_fini(&arena);
    }
}

TEST(an_output_that_cannot_be_rendered_does_not_keep_back_what_follows)
{
    open_done(&trial,
              TWO_SAGAS("'output':'${ .input.n.x }','then':[{'saga':'thank'},{'saga':'thank','id':'${ .input.n }'}]"),
              "{'n':7}");
    assert_true(slice_is(last(&trial)->error, "output"));
    assert_int_equal(json_count(trial.saga.followers), 1);
}

TEST(programs_in_what_follows_are_evaluated_outside)
{
    struct saga_input input = {.type = SAGA_INPUT_EVALUATED};

    open_done(
        &trial,
        TWO_SAGAS(
            "'output':'${ .input.n }','then':[{'saga':'thank','input':{'n':'${ .input.n + 1 }'}},{'saga':'thank'}]"),
        "{'n':7}");
    assert_string_equal(trial_records(&trial), "step.completed b");
    assert_string_equal(trial_wants(&trial), "evaluate - 1");
    assert_int_equal(saga_status(&trial.saga), SAGA_RUNNING);
    input.evaluated.what = EVALUATE_OUTPUT;
    input.evaluated.step = STEP_NONE;
    input.evaluated.value = SLICE("7");
    input.evaluated.followers =
        SLICE("[{\"input\":{\"n\":8},\"business_id\":null},{\"input\":{},\"business_id\":\"x\"}]");
    assert_int_equal(trial_input(&trial, input), ERR_OK);
    assert_true(slice_is(trial.saga.output, "7"));
    assert_true(slice_is(
        trial.saga.followers,
        "[{\"saga\":\"thank\",\"input\":{\"n\":8},\"business_id\":\"then:018bcfe5-6800-7000-8000-000000000007:0\"},"
        "{\"saga\":\"thank\",\"input\":{},\"business_id\":\"x\"}]"));
    trial_close_sound(&trial);
    open_done(&trial, TWO_SAGAS("'then':[{'saga':'thank','input':{'n':'${ .input.n + 1 }'}},{'saga':'thank'}]"),
              "{'n':7}");
    input.evaluated.value = SLICE_NONE;
    input.evaluated.error = SLICE("no number");
    input.evaluated.followers = SLICE("[null,{\"input\":{},\"business_id\":\"x\"}]");
    assert_int_equal(trial_input(&trial, input), ERR_OK);
    assert_true(slice_is(last(&trial)->error, "then"));
    assert_true(slice_is(last(&trial)->detail, "thank does not follow: no number"));
    assert_int_equal(json_count(trial.saga.followers), 1);
}

TEST(an_id_that_is_a_program_is_evaluated_too)
{
    open_done(&trial, TWO_SAGAS("'then':[{'saga':'thank','id':'${ .input.n + 1 }'}]"), "{'n':7}");
    assert_string_equal(trial_wants(&trial), "evaluate - 1");
}

TEST(an_end_with_other_followers_is_refused)
{
    static const char *const bad[] = {"[]", "{}", "[1]", "[{\"saga\":\"thank\",\"input\":{}}]",
                                      "[{\"saga\":\"thank\",\"input\":{},\"business_id\":\"a\"},{\"saga\":\"thank\","
                                      "\"input\":{},\"business_id\":\"b\"}]"};
    struct record record;
    struct err err;

    open_done(&trial, TWO_SAGAS("'then':[{'saga':'thank','input':{'n':'${ .input.n + 1 }'}}]"), "{'n':7}");
    record = (struct record){
        .type = RECORD_SAGA_COMPLETED, .step = STEP_NONE, .seq = trial.saga.seq + 1, .at_ms = trial.now_ms};
    assert_true(record_check(&trial.saga, &record, &err));
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        record.followers = slice_of(bad[i]);
        assert_false(record_check(&trial.saga, &record, &err));
    }
    record.followers = SLICE("[{\"saga\":\"thank\",\"input\":{},\"business_id\":\"a\"}]");
    assert_true(record_check(&trial.saga, &record, &err));
}

TEST(a_saga_starts_with_the_versions_of_its_children)
{
    trial_begin(&trial,
                "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'trial','steps':[{'id':'c','saga':'inner'}]},{'"
                "name':'inner','steps':[{'id':'a','call':'keyed'}]}]}",
                "{}");
    assert_true(slice_is(trial.records.items[0].sagas, "{\"inner\":1}"));
    assert_true(slice_is(json_member(trial.records.items[0].tools, "keyed"), "1"));
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
