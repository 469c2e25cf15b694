/* Cases: a person has a case opened, the case keeps its number, each question is a round, and an answer to an earlier
 * round is refused. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

static struct trial trial;
static enum operator_action action = OPERATOR_RESOLVE; /* the action of answers() */

static void open_at(const char *steps)
{
    char document[8192];

    (void)snprintf(document, sizeof(document), TRIAL_SAGA("%s"), steps);
    trial_begin(&trial, document, "{}");
}

static void close_sound(void)
{
    assert_true(saga_is_sound(&trial.saga));
    trial_check_replay(&trial);
    trial_close(&trial);
}

static enum err_code asks(const char *note)
{
    struct saga_input input = {.type = SAGA_INPUT_ESCALATE};

    input.escalate.actor = SLICE("ann");
    input.escalate.note = slice_of(note);
    return trial_input(&trial, input);
}

static enum err_code answers(uint64_t round, const char *request, bool again)
{
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR};

    input.verdict.action = action;
    input.verdict.escalation = 64;
    input.verdict.round = round;
    input.verdict.request = request ? slice_of(request) : SLICE_NONE;
    input.verdict.again = again;
    input.verdict.actor = SLICE("ann");
    input.verdict.note = SLICE("looked it up");
    return trial_input(&trial, input);
}

/* Opens a saga in which `act` is unknown for good, so that a person is asked. */
static void open_stuck(void)
{
    open_at("{'id':'act','call':'once'}");
    trial_play(&trial, "timer act, act unknown");
    assert_int_equal(trial.saga.escalation.number, 64);
    assert_int_equal(saga_case_round(&trial.saga), 1);
}

/* Makes `act` unknown once more after another call. */
static void is_stuck_again(void)
{
    trial_play_to(&trial, "timer act, act unknown", "step.unknown act, escalation.opened act");
}

TEST(asked_again_it_is_the_same_case_in_another_round)
{
    struct buffer out;

    open_stuck();
    assert_int_equal(answers(0, NULL, true), ERR_OK); /* the question was asked once, so the answer needs no round */
    assert_int_equal(trial.saga.escalation.number, 0);
    is_stuck_again();
    assert_int_equal(trial.saga.escalation.number, 64);
    assert_int_equal(saga_case_round(&trial.saga), 2);
    assert_int_equal(answers(0, NULL, true), ERR_INVALID);
    assert_non_null(strstr(trial.err.hint, "round"));
    assert_int_equal(answers(1, NULL, true), ERR_DECIDED);
    assert_int_equal(answers(3, NULL, true), ERR_DECIDED);
    buffer_init(&out, 1 << 20);
    saga_write_escalation(&trial.saga, &out);
    struct slice earlier = json_element(json_member(buffer_slice(&out), "earlier"), 0);

    assert_true(json_string_is(json_member(earlier, "as"), "not_happened"));
    assert_true(json_string_is(json_member(earlier, "note"), "looked it up"));
    assert_true(json_string_is(json_member(earlier, "actor"), "ann"));
    buffer_fini(&out);
    assert_int_equal(answers(2, NULL, true), ERR_OK);
    is_stuck_again();
    assert_int_equal(saga_case_round(&trial.saga), 3);
    close_sound();
}

TEST(the_same_answer_again_under_its_key_changes_nothing)
{
    open_stuck();
    assert_int_equal(answers(0, "k1", true), ERR_OK);
    assert_int_equal(answers(0, "k1", true), ERR_OK);
    assert_int_equal(trial.records.count, 0);
    is_stuck_again();
    assert_int_equal(answers(0, "k1", true), ERR_OK); /* a repeat from the round before */
    assert_int_equal(trial.records.count, 0);
    assert_int_equal(trial.saga.escalation.number, 64);
    action = OPERATOR_ABANDON;
    assert_int_equal(answers(0, "k1", false), ERR_OTHER_INPUT);
    action = OPERATOR_RESOLVE;
    assert_int_equal(answers(1, "k2", true), ERR_DECIDED); /* a key does not turn an old round into a new one */
    assert_int_equal(answers(0, "k2", true), ERR_OK);
    assert_int_not_equal(trial.records.count, 0);
    close_sound();
}

TEST(another_operation_is_another_case)
{
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR};

    open_at("{'id':'act','call':'keyed','on_failure':'escalate'}");
    trial_play(&trial, "act failed");
    input.verdict.action = OPERATOR_RETRY;
    input.verdict.escalation = 64;
    input.verdict.args = SLICE("{\"n\":2}");
    input.verdict.actor = SLICE("ann");
    input.verdict.note = SLICE("with another number");
    assert_int_equal(trial_input(&trial, input), ERR_OK);
    trial_play(&trial, "timer act, act failed");
    assert_int_equal(trial.saga.escalation.number, 128);
    assert_int_equal(saga_case_round(&trial.saga), 1);
    close_sound();
}

/* --- a person has it asked --- */

TEST(a_person_is_asked_about_what_is_waited_for)
{
    static const struct {
        const char *steps, *about;
        enum outcome_kind outcome;
        unsigned actions; /* without abandon and compensate, which all cases have */
    } rows[] = {
        {"{'id':'act','call':'keyed'}", "act", OUTCOME_RETRY, BIT(OPERATOR_RESOLVE)},
        {"{'id':'act','call':'once_probed'}", "act", OUTCOME_UNKNOWN, BIT(OPERATOR_RESOLVE) | BIT(OPERATOR_WAIVE)},
        {"{'id':'act','call':'keyed'}", "act", OUTCOME_KIND_COUNT, BIT(OPERATOR_RESOLVE)}, /* under way */
        {"{'id':'act','sleep':'1h'}", NULL, OUTCOME_KIND_COUNT, BIT(OPERATOR_RESOLVE)},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        open_at(rows[i].steps);
        if (rows[i].outcome == OUTCOME_UNKNOWN) {
            trial_play(&trial, "timer act"); /* the intent has its own turn */
        }
        if (rows[i].outcome != OUTCOME_KIND_COUNT) {
            trial_settle(&trial, "act", rows[i].outcome);
        }
        assert_int_equal(asks("it takes long"), ERR_OK);
        assert_true(slice_is(trial.saga.escalation.reason, "asked"));
        assert_int_equal(trial.saga.escalation.step, rows[i].about ? 0 : STEP_NONE);
        assert_int_equal(saga_status(&trial.saga), SAGA_ESCALATED);
        if (saga_escalation_actions(&trial.saga) !=
            (rows[i].actions | BIT(OPERATOR_ABANDON) | BIT(OPERATOR_COMPENSATE))) {
            fail_msg("%zu: %x", i, saga_escalation_actions(&trial.saga));
        }
        assert_int_equal(asks("it takes long"), ERR_OK); /* a repeat */
        assert_int_equal(trial.records.count, 0);
        assert_int_equal(asks("and longer"), ERR_CONFLICT);
        assert_non_null(strstr(trial.err.message, "64"));
        close_sound();
    }
}

TEST(a_step_that_is_tried_again_goes_on_and_closes_the_case)
{
    open_at("{'id':'act','call':'keyed'},{'id':'next','call':'keyed'}");
    trial_play(&trial, "act retry");
    assert_int_equal(asks("it takes long"), ERR_OK);
    trial_play_to(&trial, "timer act", "step.intent act");
    assert_int_equal(answers(1, NULL, false), ERR_CALL_OUT); /* the call under way is not cut off */
    trial_play_to(&trial, "act", "step.completed act, escalation.resolved act, step.intent next");
    close_sound();
}

TEST(a_case_is_asked_anew_when_nothing_else_will_answer_it)
{
    open_at("{'id':'act','call':'once'}");
    trial_play(&trial, "timer act");
    assert_int_equal(asks("the bank is down"), ERR_OK);
    trial_play_to(&trial, "act unknown", "step.unknown act, escalation.resolved act, escalation.opened act");
    assert_int_equal(trial.saga.escalation.number, 64);
    assert_int_equal(saga_case_round(&trial.saga), 2);
    assert_true(slice_is(trial.saga.escalation.reason, "unknown"));
    close_sound();
}

TEST(an_undo_that_is_tried_again_can_be_asked_about)
{
    open_at("{'id':'act','call':'by_keyed'},{'id':'next','call':'keyed'}");
    trial_play(&trial, "act, next failed, undo act retry");
    assert_int_equal(asks("the refund hangs"), ERR_OK);
    assert_int_equal(trial.saga.escalation.direction, DIRECTION_UNDO);
    assert_int_equal(saga_escalation_actions(&trial.saga), BIT(OPERATOR_RESOLVE) | BIT(OPERATOR_ABANDON));
    assert_int_equal(trial_resolve(&trial, true, NULL), ERR_OK);
    assert_int_equal(trial.saga.end, SAGA_COMPENSATED);
    close_sound();
}

TEST(asked_about_the_saga_itself_nothing_new_begins_until_a_person_has_looked)
{
    open_at("{'id':'rest','sleep':'1h'},{'id':'act','call':'keyed'}");
    assert_int_equal(asks("is this right?"), ERR_OK);
    trial_play_to(&trial, "timer rest", "step.completed rest");
    assert_int_equal(answers(1, NULL, false), ERR_OK);
    assert_string_equal(trial_records(&trial), "escalation.resolved, step.intent act");
    close_sound();
}

TEST(nobody_is_asked_where_nothing_can_be_asked)
{
    open_at("{'id':'act','call':'keyed'}");
    assert_int_equal(asks(""), ERR_INVALID);
    assert_int_equal(trial_pause(&trial), ERR_OK);
    assert_int_equal(asks("why"), ERR_PAUSED);
    assert_int_equal(trial_resume(&trial), ERR_OK);
    trial_play(&trial, "act");
    assert_int_equal(asks("why"), ERR_ENDED);
    close_sound();
    open_stuck();
    assert_int_equal(asks("why"), ERR_CONFLICT);
    close_sound();
}

TEST_PROGRAM(NULL, NULL)
