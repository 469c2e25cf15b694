/* Steps that wait for a time, for a signal or for a person. */
#include <stdlib.h>
#include <string.h>

#include "base/canon.h"
#include "base/json.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define MINUTE_MS INT64_C(60000)

static void is_shown(struct trial *trial, const char *pointer, const char *json)
{
    struct slice is = trial_shown(trial, pointer), should = trial_json(&trial->arena, json);

    if (!slice_equal(is, should)) {
        fail_msg("%s is %.*s instead of %.*s", pointer, SLICE_ARG(is), SLICE_ARG(should));
    }
}

static const struct operation *forward(const struct trial *trial, const char *step)
{
    return &trial->saga.steps[trial_step(trial, step)].forward;
}

/* --- sleep --- */

#define NAP TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'nap','sleep':'30m'},{'id':'b','call':'keyed'}")

static struct trial trial;

TEST(a_saga_sleeps_as_long_as_it_says_and_goes_on)
{
    struct saga_input early = {.type = SAGA_INPUT_TIMER};

    trial_begin(&trial, NAP, "{}");
    trial_play_to(&trial, "a", "step.completed a, step.waiting nap");
    assert_string_equal(trial_wants(&trial), "timer nap 0 +1800000");
    assert_int_equal(saga_status(&trial.saga), SAGA_WAITING);
    is_shown(&trial, "/steps/1/status", "'waiting'");
    is_shown(&trial, "/steps/1/kind", "'sleep'");
    is_shown(&trial, "/steps/1/tool", "null");
    is_shown(&trial, "/steps/1/waits_for", "{'kind':'sleep'}");
    is_shown(&trial, "/steps/1/due_at", "'2023-11-14T22:43:20.000Z'");
    trial_check_replay(&trial);
    early.timer.step = trial_step(&trial, "nap");
    trial.now_ms += 30 * MINUTE_MS - 1;
    trial_takes(&trial, trial_input(&trial, early), ""); /* not a millisecond early */
    trial_play_to(&trial, "timer nap", "step.completed nap, step.intent b");
    trial_takes(&trial, trial_input(&trial, early), ""); /* and once */
    assert_int_equal(saga_status(&trial.saga), SAGA_RUNNING);
    is_shown(&trial, "/steps/1/waits_for", "null");
    is_shown(&trial, "/steps/1/due_at", "null");
    is_shown(&trial, "/steps/1/took_effect", "'no'");
    trial_play_until(&trial, "b", SAGA_COMPLETED);
}

TEST(a_sleep_may_be_a_duration_or_an_instant)
{
    static const struct {
        const char *input;
        int64_t due_ms; /* from the start; 0 for at once, -1 for refused */
    } cases[] = {
        {"{'until':'10s'}", 10000},
        {"{'until':'250ms'}", 250},
        {"{'until':'2d'}", 2 * 24 * 60 * MINUTE_MS},
        {"{'until':'2023-11-14T22:14:20Z'}", MINUTE_MS},
        {"{'until':'2023-11-14T23:14:20.5+01:00'}", MINUTE_MS + 500},
        {"{'until':'0s'}", 0},
        {"{'until':'2020-01-01T00:00:00Z'}", 0},
        {"{'until':'1945-05-08T00:00:00Z'}", 0},
        {"{'until':'tomorrow'}", -1},
        {"{'until':'-5s'}", -1},
        {"{'until':'400d'}", -1},
        {"{'until':''}", -1},
        {"{'until':10}", -1},
        {"{'until':null}", -1},
        {"{}", -1},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        trial_begin(&trial, TRIAL_SAGA("{'id':'nap','sleep':'${ .input.until }'},{'id':'b','call':'keyed'}"),
                    cases[i].input);
        if (cases[i].due_ms < 0) {
            assert_string_equal(
                trial_records(&trial),
                "saga.started, step.failed nap, saga.failing nap, compensation.planned, saga.compensated");
            assert_true(slice_is(forward(&trial, "nap")->error, "arguments"));
        } else if (cases[i].due_ms == 0) {
            assert_string_equal(trial_records(&trial),
                                "saga.started, step.waiting nap, step.completed nap, step.intent b");
        } else {
            assert_string_equal(trial_records(&trial), "saga.started, step.waiting nap");
            assert_int_equal(forward(&trial, "nap")->due_ms, TRIAL_START_MS + cases[i].due_ms);
        }
        trial_close_sound(&trial);
    }
}

TEST(a_sleep_that_is_a_program_is_evaluated_outside)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'nap','sleep':'${ .input.n + \\\"m\\\" }'}"), "{'n':'5'}");
    assert_string_equal(trial_wants(&trial), "evaluate nap 0");
    assert_int_equal(saga_status(&trial.saga), SAGA_RUNNING);
    trial_evaluated(&trial, EVALUATE_ARGS, "nap", "'5m'");
    assert_string_equal(trial_wants(&trial), "timer nap 0 +300000");
    trial_play_to(&trial, "timer nap", "step.completed nap, saga.completed");
}

TEST(a_failure_after_a_sleep_undoes_the_steps_before_it)
{
    trial_begin(&trial, NAP, "{}");
    trial_play_to(&trial, "a, timer nap, b failed",
                  "step.failed b, saga.failing b, compensation.planned, compensation.intent a");
    trial_play_until(&trial, "undo a", SAGA_COMPENSATED);
}

TEST(a_wait_whose_condition_does_not_hold_is_skipped)
{
    trial_begin(&trial,
                TRIAL_SAGA("{'id':'nap','sleep':'1h','when':'${ .input.w "
                           "}'},{'id':'sig','signal':{'name':'go'},'when':'${ .input.w }'},"
                           "{'id':'ok','approve':{},'when':'${ .input.w }'},{'id':'b','call':'keyed'}"),
                "{'w':false}");
    assert_string_equal(trial_records(&trial),
                        "saga.started, step.skipped nap, step.skipped sig, step.skipped ok, step.intent b");
}

TEST(an_abort_ends_every_wait)
{
    trial_begin(&trial,
                TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'nap','sleep':'1h','after':['a']},{'id':'sig','signal':{'"
                           "name':'go'},'after':['a']},"
                           "{'id':'ok','approve':{'timeout':'1h'},'after':['a']}"),
                "{}");
    trial_play_to(&trial, "a", "step.completed a, step.waiting nap, step.waiting sig, step.waiting ok");
    assert_int_equal(saga_status(&trial.saga), SAGA_WAITING);
    trial_takes(&trial, trial_abort(&trial),
                "saga.failing, step.failed nap, step.failed sig, step.failed ok, "
                "compensation.planned, compensation.intent a");
    assert_true(slice_is(forward(&trial, "nap")->error, "stopped"));
    assert_string_equal(trial_wants(&trial), "call undo a 1");
    assert_int_equal(trial_decide(&trial, "ok", true, ROLE_ADMIN), ERR_DECIDED);
    assert_int_equal(trial_signal(&trial, "go", "1", NULL), ERR_CLOSED);
    trial_play(&trial, "undo a");
    assert_int_equal(trial_signal(&trial, "go", "1", NULL), ERR_ENDED);
}

TEST(the_deadline_counts_while_a_saga_waits)
{
    trial_begin(&trial,
                TRIAL_SAGA_WITH("'deadline':'10m'", "{'id':'a','call':'keyed'},{'id':'sig','signal':{'name':'go'}}"),
                "{}");
    trial_play(&trial, "a");
    assert_string_equal(trial_wants(&trial), "timer - 0 +600000");
    trial_play_to(&trial, "timer -", "saga.failing, step.failed sig, compensation.planned, compensation.intent a");
}

/* --- signals --- */

#define SIGNAL                                                                                                         \
    TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'sig','signal':{'name':'paid','timeout':'1h'}},{'id':'b','call':'"     \
               "keyed','with':{'n':'${ .steps.sig.result.n }'}}")

TEST(the_payload_of_a_signal_is_the_result)
{
    trial_begin(&trial, SIGNAL, "{}");
    trial_play(&trial, "a");
    assert_string_equal(trial_wants(&trial), "timer sig 0 +3600000");
    is_shown(&trial, "/steps/1/waits_for", "{'kind':'signal','signal':'paid'}");
    trial_takes(&trial, trial_signal(&trial, "paid", "{'n':1.10}", "s-1"),
                "signal.received sig, step.completed sig, step.intent b");
    is_shown(&trial, "/steps/1/result", "{'n':1.10}");
    assert_true(slice_is(json_member(forward(&trial, "b")->args, "n"), "1.10"));
    is_shown(&trial, "/signals", ""); /* no signal is kept */
}

TEST(a_signal_that_comes_early_is_kept_and_shown)
{
    trial_begin(&trial, SIGNAL, "{}");
    trial_takes(&trial, trial_signal(&trial, "paid", "{'n':1}", "s-1"), "signal.received");
    assert_int_equal(trial_signal(&trial, "paid", "{'n':2}", "s-2"), ERR_OK);
    is_shown(&trial, "/signals", "2");
    trial_check_replay(&trial);
    trial_play_to(&trial, "a", "step.completed a, step.waiting sig, step.completed sig, step.intent b");
    is_shown(&trial, "/steps/1/result", "{'n':1}"); /* the first signal is taken first */
    is_shown(&trial, "/signals", "1");
}

TEST(what_is_decided_does_not_change_the_signals_before_it_is_durable)
{
    struct saga_input settled;
    struct records records;
    struct arena turn = {0};
    struct err err;

    trial_begin(&trial, SIGNAL, "{}");
    assert_int_equal(trial_signal(&trial, "paid", "{'n':1}", "s-1"), ERR_OK);
    settled = trial_outcome(&trial, SAGA_INPUT_SETTLED, 0, DIRECTION_DO, 1,
                            (struct outcome){.kind = OUTCOME_COMPLETED, .result = SLICE("{\"id\":\"a\"}")});
    settled.now_ms = trial.now_ms;
    arena_init(&turn, 4096);
    assert_int_equal(saga_decide(&trial.saga, &settled, &turn, &records, &err), ERR_OK);
    assert_int_equal(records.count, 4);
    arena_fini(&turn);
    assert_int_equal(trial.saga.signal_kept, 1);
    assert_false(trial.saga.signals->taken);
    assert_true(slice_is(trial.saga.signals->payload, "{\"n\":1}"));
}

TEST(the_same_signal_again_is_the_same_signal)
{
    trial_begin(&trial, SIGNAL, "{}");
    assert_int_equal(trial_signal(&trial, "paid", "{'n':1}", "s-1"), ERR_OK);
    trial_takes(&trial, trial_signal(&trial, "paid", "{ 'n' : 1.0 }", "s-1"), ""); /* the same value */
    assert_int_equal(trial_signal(&trial, "paid", "{'n':2}", "s-1"), ERR_OTHER_INPUT);
    /* Without an id each signal is a new one. */
    trial_takes(&trial, trial_signal(&trial, "paid", "{'n':1}", NULL), "signal.received");
    trial_play(&trial, "a");
    trial_takes(&trial, trial_signal(&trial, "paid", "{'n':1}", "s-1"), ""); /* also when the signal has been taken */
    trial_play_until(&trial, "b", SAGA_COMPLETED);
    assert_int_equal(trial_signal(&trial, "paid", "{'n':1}", "s-1"), ERR_OK); /* and when the saga has ended */
    assert_int_equal(trial_signal(&trial, "paid", "{'n':1}", "s-9"), ERR_ENDED);
}

/* An earlier release accepted ids that are not UTF-8. Two such ids read alike, and both were signals. */
TEST(a_log_with_two_signals_under_an_id_that_was_rewritten_is_read)
{
    struct record record;
    struct err err;

    trial_begin(&trial, SIGNAL, "{}");
    assert_int_equal(trial_signal(&trial, "paid", "{'n':1}", "a\xef\xbf\xbd"), ERR_OK);
    /* The same wait is asked for again. */
    trial_takes(&trial, trial_signal(&trial, "paid", "{'n':1}", "a\xef\xbf\xbd"), "");
    record = (struct record){.seq = trial.saga.seq + 1,
                             .at_ms = trial.now_ms,
                             .type = RECORD_SIGNAL_RECEIVED,
                             .step = STEP_NONE,
                             .signal = SLICE("paid"),
                             .emission = SLICE("a\xef\xbf\xbd"),
                             .args = SLICE("2")};
    assert_true(record_check(&trial.saga, &record, &err));
    saga_apply(&trial.saga, &record);
    assert_int_equal(trial.saga.signal_kept, 2);
    trial_close(&trial); /* the state is bent on purpose */
}

TEST(the_same_id_under_another_name_is_refused)
{
    trial_begin(
        &trial,
        TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'s','signal':{'name':'one'}},{'id':'t','signal':{'name':'two'}}"),
        "{}");
    assert_int_equal(trial_signal(&trial, "one", "1", "s-1"), ERR_OK);
    assert_int_equal(trial_signal(&trial, "two", "1", "s-1"), ERR_OTHER_INPUT);
}

TEST(a_signal_that_nothing_waits_for_is_refused_with_the_names_that_are_awaited)
{
    trial_begin(&trial, SIGNAL, "{}");
    assert_int_equal(trial_signal(&trial, "payd", "{}", NULL), ERR_INVALID);
    assert_non_null(strstr(trial.err.hint, "paid"));
    trial_close_sound(&trial);
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'}"), "{}");
    assert_int_equal(trial_signal(&trial, "paid", "{}", NULL), ERR_INVALID);
}

TEST(a_signal_that_does_not_come_in_time_fails_the_step)
{
    trial_begin(&trial, SIGNAL, "{}");
    trial_play_to(&trial, "a, timer sig",
                  "step.failed sig, saga.failing sig, compensation.planned, compensation.intent a");
    assert_true(slice_is(forward(&trial, "sig")->error, "timeout"));
    trial_play_until(&trial, "undo a", SAGA_COMPENSATED);
}

TEST(a_timeout_that_does_not_matter_is_gone_on_without)
{
    trial_begin(
        &trial,
        TRIAL_SAGA(
            "{'id':'sig','signal':{'name':'go','timeout':'1h'},'on_failure':'continue'},{'id':'b','call':'keyed'}"),
        "{}");
    trial_play_to(&trial, "timer sig", "step.failed sig, step.intent b");
    is_shown(&trial, "/steps/0/result", "null");
}

TEST(a_timeout_that_is_escalated_can_be_skipped_but_not_tried_again)
{
    trial_begin(
        &trial,
        TRIAL_SAGA(
            "{'id':'sig','signal':{'name':'go','timeout':'1h'},'on_failure':'escalate'},{'id':'b','call':'keyed'}"),
        "{}");
    trial_play_to(&trial, "timer sig", "step.failed sig, escalation.opened sig");
    assert_int_equal(saga_escalation_actions(&trial.saga),
                     BIT(OPERATOR_SKIP) | BIT(OPERATOR_COMPENSATE) | BIT(OPERATOR_ABANDON));
    assert_int_equal(trial_operator(&trial, OPERATOR_RETRY), ERR_CONFLICT);
    trial_takes(&trial, trial_operator(&trial, OPERATOR_SKIP),
                "escalation.resolved sig, step.skipped sig, step.intent b");
}

TEST(steps_side_by_side_take_signals_of_one_name_in_the_order_in_which_they_wait)
{
    trial_begin(
        &trial,
        TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'late','signal':{'name':'go'},'after':['a']},{'id':'early','"
                   "signal':{'name':'go'},'after':[]}"),
        "{}");
    trial_play(&trial, "a");
    trial_takes(&trial, trial_signal(&trial, "go", "1", NULL), "signal.received early, step.completed early");
    trial_takes(&trial, trial_signal(&trial, "go", "2", NULL),
                "signal.received late, step.completed late, saga.completed");
}

TEST(an_escalated_saga_takes_signals_and_its_timers_count_but_nothing_new_starts)
{
    trial_begin(
        &trial,
        TRIAL_SAGA("{'id':'m','call':'once','after':[]},{'id':'sig','signal':{'name':'go'},'after':[]},{'id':'b',"
                   "'call':'keyed','after':['sig']},"
                   "{'id':'nap','sleep':'1m','after':[]}"),
        "{}");
    trial_play_until(&trial, "timer m, m unknown", SAGA_ESCALATED);
    assert_string_equal(trial_wants(&trial), "timer nap 0 +60000");
    trial_takes(&trial, trial_signal(&trial, "go", "1", NULL), "signal.received sig, step.completed sig");
    trial_play_to(&trial, "timer nap", "step.completed nap");
    trial_check_replay(&trial);
    trial_takes(&trial, trial_resolve(&trial, true, "{'id':1}"),
                "escalation.resolved m, step.completed m, step.intent b");
}

TEST(no_more_signals_are_kept_than_so_many)
{
    trial_begin(&trial, SIGNAL, "{}");
    for (unsigned i = 0; i < SIGNALS_MAX; i++) {
        assert_int_equal(trial_signal(&trial, "paid", "{'n':1}", NULL), ERR_OK);
    }
    assert_int_equal(trial_signal(&trial, "paid", "{'n':1}", NULL), ERR_BUSY);
    trial_play(&trial, "a");
    assert_int_equal(trial_signal(&trial, "paid", "{'n':1}", NULL), ERR_OK); /* one signal was taken */
}

TEST(no_more_bytes_of_signals_are_kept_than_so_many)
{
    struct saga_input input = {.type = SAGA_INPUT_SIGNAL};
    size_t len = SIGNAL_BYTES_MAX / 2 + 1;
    char *payload = malloc(len);

    assert_non_null(payload);
    (void)memset(payload, 'x', len);
    payload[0] = payload[len - 1] = '"';
    trial_begin(&trial, SIGNAL, "{}");
    input.signal.name = SLICE("paid");
    input.signal.payload = (struct slice){payload, len};
    assert_int_equal(trial_signal(&trial, "paid", "1", NULL), ERR_OK);
    trial.saga.signals->payload = input.signal.payload; /* as if the kept signal had this payload */
    assert_int_equal(trial_input(&trial, input), ERR_BUSY);
    trial_close(&trial);
    free(payload);
}

#define ELEMENTS(members, step)                                                                                        \
    "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'trial','steps':[{'id':'a','call':'keyed'},"                          \
    "{'id':'each','for_each':'${ .input.list }','concurrency':3,'saga':'ask','with':{'what':'${ .item }'}" members     \
    "}]},"                                                                                                             \
    "{'name':'ask','output':'${ .steps.w.result }','steps':[" step "]}]}"

TEST(elements_take_the_signals_of_one_name_one_after_the_other)
{
    trial_begin(&trial, ELEMENTS("", "{'id':'w','signal':{'name':'go','timeout':'1h'}}"), "{'list':[1,2,3]}");
    assert_int_equal(trial_signal(&trial, "go", "'first'", "s-1"), ERR_OK); /* before there are elements */
    trial_play(&trial, "a");
    assert_true(slice_is(forward(&trial, "each#0/w")->result, "\"first\""));
    assert_int_equal(saga_status(&trial.saga), SAGA_WAITING);
    assert_string_equal(trial_wants(&trial), "timer each#1/w 0 +3600000, timer each#2/w 0 +3600000");
    trial_check_replay(&trial);
    trial_takes(&trial, trial_signal(&trial, "go", "'second'", "s-2"),
                "signal.received each#1/w, step.completed each#1/w, step.completed each#1");
    trial_takes(&trial, trial_signal(&trial, "go", "'second'", "s-2"), "");
    trial_takes(&trial, trial_signal(&trial, "go", "'third'", "s-3"),
                "signal.received each#2/w, step.completed each#2/w, step.completed each#2, "
                "step.completed each, saga.completed");
    is_shown(&trial, "/steps/1/result", "['first','second','third']");
    is_shown(&trial, "/steps/1/kind", "'for_each'");
    is_shown(&trial, "/steps/2/kind", "'saga'");
    is_shown(&trial, "/steps/2/group", "'each'");
    assert_true(json_string_is(trial_shown(&trial, "/steps/5/group"), "each#0"));
}

TEST(an_element_that_is_refused_undoes_the_saga_unless_it_does_not_matter)
{
    trial_begin(&trial, ELEMENTS("", "{'id':'w','approve':{'show':'${ .input.what }'}}"), "{'list':['x','y','z']}");
    trial_play(&trial, "a");
    assert_int_equal(trial.saga.steps[trial_step(&trial, "each#2/w")].approval, 192);
    assert_true(slice_is(forward(&trial, "each#1/w")->args, "\"y\""));
    assert_int_equal(trial_decide(&trial, "each#0/w", true, ROLE_OPERATOR), ERR_OK);
    trial_takes(&trial, trial_decide(&trial, "each#1/w", false, ROLE_OPERATOR),
                "approval.decided each#1/w, step.failed each#1/w, saga.failing each#1/w, "
                "step.failed each#2/w, compensation.planned, compensation.intent a");
    assert_int_equal(trial_decide(&trial, "each#2/w", true, ROLE_OPERATOR), ERR_DECIDED);
    trial_play(&trial, "undo a");
    trial_close_sound(&trial);
    trial_begin(&trial, ELEMENTS(",'on_failure':'continue'", "{'id':'w','approve':{'show':'${ .input.what }'}}"),
                "{'list':['x','y']}");
    trial_play(&trial, "a");
    assert_int_equal(trial_decide(&trial, "each#0/w", false, ROLE_OPERATOR), ERR_OK);
    assert_int_equal(trial_decide(&trial, "each#1/w", true, ROLE_OPERATOR), ERR_OK);
    is_shown(&trial, "/steps/1/result", "[null,{'decision':'approve','actor':'ann','note':'looked at it'}]");
}

#define CHILD                                                                                                          \
    "{'tools':[" TRIAL_TOOLS                                                                                           \
    "],'sagas':[{'name':'trial','steps':[{'id':'c','saga':'inner','after':[],'on_failure':'continue'},"                \
    "{'id':'out','signal':{'name':'go'},'after':[]}]},"                                                                \
    "{'name':'inner','deadline':'2h','steps':[{'id':'a','call':'keyed'},{'id':'in','signal':{'name':'go','timeout':'"  \
    "1h'}},"                                                                                                           \
    "{'id':'nap','sleep':'3h','after':['a']}]}]}"

TEST(waits_in_a_child_that_is_undone_on_its_own_are_stopped_and_those_outside_go_on)
{
    trial_begin(&trial, CHILD, "{}");
    trial_play_to(&trial, "c/a", "step.completed c/a, step.waiting c/in, step.waiting c/nap");
    assert_int_equal(saga_status(&trial.saga), SAGA_WAITING);
    trial_play(&trial, "timer c/in");
    assert_string_equal(
        trial_records(&trial),
        "step.failed c/in, step.failing c, step.failed c/nap, compensation.planned c, compensation.intent c/a");
    assert_true(slice_is(forward(&trial, "c/nap")->error, "stopped"));
    assert_int_equal(saga_status(&trial.saga), SAGA_RUNNING); /* a call of the saga is under way */
    trial_play_until(&trial, "undo c/a", SAGA_WAITING);
    trial_takes(&trial, trial_signal(&trial, "go", "1", NULL),
                "signal.received out, step.completed out, saga.completed");
}

TEST(the_deadline_of_a_child_counts_while_it_waits)
{
    trial_begin(&trial, CHILD, "{}");
    /* The outer step began to wait first. */
    trial_takes(&trial, trial_signal(&trial, "go", "1", NULL), "signal.received out, step.completed out");
    trial_play(&trial, "c/a");
    trial_takes(&trial, trial_signal(&trial, "go", "2", NULL), "signal.received c/in, step.completed c/in");
    trial_play_to(&trial, "timer c",
                  "step.failing c, step.failed c/nap, compensation.planned c, compensation.intent c/a");
}

/* --- approvals --- */

#define APPROVE                                                                                                        \
    TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'ok','approve':{'show':{'sum':'${ .input.sum "                         \
               "}'},'timeout':'24h'}},{'id':'b','call':'keyed','with':{'by':'${ .steps.ok.result.actor }'}}")

static struct slice approval(struct trial *on, const char *step)
{
    struct buffer out;
    struct slice text;
    struct err err;

    buffer_init(&out, 1 << 20);
    saga_write_approval(&on->saga, trial_step(on, step), &out);
    assert_int_equal(json_check(buffer_slice(&out), &json_limits_default, &err), ERR_OK);
    text = arena_slice(&on->arena, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

static void open_approval(struct trial *on)
{
    trial_begin(on, APPROVE, "{'sum':100.0}");
    trial_play_to(on, "a", "step.completed a, step.waiting ok");
}

TEST(a_person_approves_what_was_shown)
{
    struct digest digest;
    struct slice text;
    char hash[65];

    open_approval(&trial);
    assert_string_equal(trial_wants(&trial), "timer ok 0 +86400000");
    is_shown(&trial, "/steps/1/waits_for",
             "{'kind':'approve','approval':64,'show':{'sum':100.0},'roles':['operator']}");
    text = approval(&trial, "ok");
    digest = canon_digest(SLICE("{\"sum\":100}"), &trial.arena);
    digest_hex(&digest, hash);
    assert_true(json_string_is(json_member(text, "hash"), hash));
    assert_true(json_string_is(json_member(text, "status"), "open"));
    assert_true(slice_is(json_member(text, "n"), "64"));
    assert_true(json_string_is(json_member(text, "expires_at"), "2023-11-15T22:13:20.000Z"));
    assert_int_equal(json_type(json_member(text, "decided_at")), JSON_NULL);
    trial.now_ms += MINUTE_MS;
    trial_takes(&trial, trial_decide(&trial, "ok", true, ROLE_OPERATOR),
                "approval.decided ok, step.completed ok, step.intent b");
    is_shown(&trial, "/steps/1/result", "{'decision':'approve','actor':'ann','note':'looked at it'}");
    assert_true(json_string_is(json_member(forward(&trial, "b")->args, "by"), "ann"));
    text = approval(&trial, "ok");
    assert_true(json_string_is(json_member(text, "status"), "approved"));
    assert_true(json_string_is(json_member(text, "actor"), "ann"));
    assert_true(json_string_is(json_member(text, "note"), "looked at it"));
    assert_true(json_string_is(json_member(text, "decided_at"), "2023-11-14T22:14:20.000Z"));
    assert_int_equal(trial_decide(&trial, "ok", true, ROLE_OPERATOR), ERR_DECIDED);
    assert_int_equal(trial_decide(&trial, "ok", false, ROLE_OPERATOR), ERR_DECIDED);
}

TEST(a_person_refuses_and_the_saga_is_undone)
{
    struct slice text;

    open_approval(&trial);
    assert_int_equal(trial_decide(&trial, "ok", false, ROLE_OPERATOR), ERR_OK);
    assert_string_equal(
        trial_records(&trial),
        "approval.decided ok, step.failed ok, saga.failing ok, compensation.planned, compensation.intent a");
    assert_true(slice_is(forward(&trial, "ok")->error, "refused"));
    text = approval(&trial, "ok");
    assert_true(json_string_is(json_member(text, "status"), "refused"));
    assert_true(json_string_is(json_member(text, "actor"), "ann"));
    trial_play(&trial, "undo a");
}

TEST(nobody_decides_in_time)
{
    open_approval(&trial);
    trial.now_ms += 24 * 60 * MINUTE_MS;
    assert_int_equal(trial_decide(&trial, "ok", true, ROLE_OPERATOR), ERR_DECIDED); /* the timer has not fired yet */
    trial_play(&trial, "timer ok");
    assert_true(slice_is(forward(&trial, "ok")->error, "timeout"));
    assert_true(json_string_is(json_member(approval(&trial, "ok"), "status"), "expired"));
    assert_true(json_string_is(json_member(approval(&trial, "ok"), "expires_at"), "2023-11-15T22:13:20.000Z"));
    assert_int_equal(trial_decide(&trial, "ok", true, ROLE_OPERATOR), ERR_DECIDED);
}

TEST(a_decision_is_bound_to_what_was_shown)
{
    struct saga_input input = {.type = SAGA_INPUT_DECISION};
    char hash[65];

    open_approval(&trial);
    input.decision.approval = 64;
    input.decision.approve = true;
    input.decision.role = ROLE_OPERATOR;
    input.decision.hash = SLICE("00");
    assert_int_equal(trial_input(&trial, input), ERR_INVALID); /* nobody */
    input.decision.actor = SLICE("ann");
    assert_int_equal(trial_input(&trial, input), ERR_CONFLICT);
    input.decision.hash = SLICE("6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b");
    assert_int_equal(trial_input(&trial, input), ERR_CONFLICT);
    digest_hex(&forward(&trial, "ok")->fingerprint, hash);
    input.decision.hash = slice_of(hash);
    assert_int_equal(trial_input(&trial, input), ERR_OK);
    is_shown(&trial, "/steps/1/result", "{'decision':'approve','actor':'ann','note':null}");
    input.decision.approval = 65;
    assert_int_equal(trial_input(&trial, input), ERR_NOT_FOUND);
}

static bool has_plain_hash(const struct digest *key, const char *more)
{
    struct trial on;
    struct digest plain;
    bool is_plain;

    trial_open(&on, more);
    on.digest_key = key;
    trial_start(&on, "{'sum':100.0}");
    trial_play(&on, "a");
    plain = canon_digest(SLICE("{\"sum\":100}"), &on.arena);
    is_plain = digest_equal(&forward(&on, "ok")->fingerprint, &plain);
    on.digest_key = NULL; /* another key, or none, since: what was recorded holds */
    assert_int_equal(trial_decide(&on, "ok", true, ROLE_OPERATOR), ERR_OK);
    trial_close_sound(&on);
    return is_plain;
}

/* Whoever is shown it masked could try out what is missing, were the hash a plain one. */
TEST(the_hash_of_what_is_shown_is_keyed_where_something_is_sensitive)
{
    static const char masked[] =
        "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'s','sensitive':['/sum'],'steps':["
        "{'id':'a','call':'keyed'},{'id':'ok','approve':{'show':{'sum':'${ .input.sum }'}}}]}]}";
    const struct digest key = {.bytes = {7}};

    assert_true(has_plain_hash(NULL, APPROVE));
    assert_true(has_plain_hash(&key, APPROVE)); /* everybody is shown all of it: clients may compute it */
    assert_true(has_plain_hash(NULL, masked));
    assert_false(has_plain_hash(&key, masked));
}

TEST(approvals_of_one_decision_have_numbers_of_their_own)
{
    trial_begin(
        &trial,
        TRIAL_SAGA("{'id':'x','approve':{},'after':[]},{'id':'y','approve':{'show':'text'},'after':[]},{'id':'z',"
                   "'approve':{},'after':['x']}"),
        "{}");
    assert_int_equal(trial.saga.steps[0].approval, 64);
    assert_int_equal(trial.saga.steps[1].approval, 128);
    assert_true(slice_is(forward(&trial, "x")->args, "null"));
    assert_true(slice_is(forward(&trial, "y")->args, "\"text\""));
    assert_int_equal(trial_decide(&trial, "x", true, ROLE_OPERATOR), ERR_OK);
    assert_int_equal(trial.saga.steps[2].approval, 192);
    assert_int_equal(trial_decide(&trial, "y", true, ROLE_OPERATOR), ERR_OK);
    assert_int_equal(trial_decide(&trial, "z", true, ROLE_OPERATOR), ERR_OK);
    assert_int_equal(saga_status(&trial.saga), SAGA_COMPLETED);
}

TEST(an_approval_of_an_abandoned_saga_is_cancelled)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'m','call':'once','after':[]},{'id':'ok','approve':{},'after':[]}"), "{}");
    trial_play(&trial, "timer m, m unknown");
    assert_int_equal(trial_operator(&trial, OPERATOR_ABANDON), ERR_OK);
    assert_true(json_string_is(json_member(approval(&trial, "ok"), "status"), "cancelled"));
    assert_int_equal(trial_decide(&trial, "ok", true, ROLE_OPERATOR), ERR_DECIDED);
}

/* --- records that do not fit --- */

TEST(a_record_of_a_wait_that_does_not_fit_is_refused)
{
    struct record record;
    struct err err;

    open_approval(&trial);
#define NEXT .seq = trial.saga.seq + 1, .at_ms = trial.now_ms
    record = (struct record){NEXT, .type = RECORD_STEP_COMPLETED, .step = 1, .result = SLICE("{}")};
    assert_false(record_check(&trial.saga, &record, &err)); /* nobody has decided */
    record = (struct record){NEXT, .type = RECORD_STEP_WAITING, .step = 2};
    assert_false(record_check(&trial.saga, &record, &err)); /* a call */
    record = (struct record){NEXT, .type = RECORD_STEP_COMPLETED, .step = 2, .result = SLICE("{}")};
    assert_false(record_check(&trial.saga, &record, &err)); /* a call without a key */
    record = (struct record){NEXT,
                             .type = RECORD_APPROVAL_DECIDED,
                             .step = 1,
                             .approval = 65,
                             .verdict = SLICE("approve"),
                             .actor = SLICE("ann"),
                             .fingerprint = forward(&trial, "ok")->fingerprint};
    assert_false(record_check(&trial.saga, &record, &err));
    record.approval = 64;
    assert_true(record_check(&trial.saga, &record, &err));
    record.verdict = SLICE("perhaps");
    assert_false(record_check(&trial.saga, &record, &err));
    record.verdict = SLICE("approve");
    record.fingerprint.bytes[0] ^= 1;
    assert_false(record_check(&trial.saga, &record, &err));
    record = (struct record){NEXT,         .type = RECORD_STEP_INTENT, .step = 1,
                             .attempt = 1, .args = SLICE("{}"),        .key = trial.saga.steps[0].forward.key};
    assert_false(record_check(&trial.saga, &record, &err)); /* no call is made */
    record = (struct record){NEXT, .type = RECORD_SIGNAL_RECEIVED, .step = STEP_NONE, .signal = SLICE("go"),
                             .args = SLICE("1")};
    assert_false(record_check(&trial.saga, &record, &err));
    trial_close_sound(&trial);
    trial_begin(&trial, SIGNAL, "{}");
    trial_play(&trial, "a");
    record = (struct record){NEXT, .type = RECORD_STEP_COMPLETED, .step = 1, .result = SLICE("1")};
    assert_false(record_check(&trial.saga, &record, &err)); /* there is no such signal */
    record =
        (struct record){NEXT, .type = RECORD_SIGNAL_RECEIVED, .step = 0, .signal = SLICE("paid"), .args = SLICE("1")};
    assert_false(record_check(&trial.saga, &record, &err)); /* a call takes no signal */
    record.step = 1;
    assert_true(record_check(&trial.saga, &record, &err));
    record.step = STEP_NONE; /* the signal may also be kept, as in a pause */
    record.emission = SLICE("s-1");
    assert_true(record_check(&trial.saga, &record, &err));
    assert_int_equal(trial_signal(&trial, "paid", "{'n':1}", "s-1"), ERR_OK);
    record.seq = trial.saga.seq + 1;
    assert_false(record_check(&trial.saga, &record, &err)); /* once */
    trial_close_sound(&trial);
    trial_begin(&trial, NAP, "{}");
    trial_play(&trial, "a");
    record = (struct record){NEXT, .type = RECORD_STEP_COMPLETED, .step = 1, .result = SLICE("null")};
    assert_false(record_check(&trial.saga, &record, &err)); /* its time has not come */
    record.at_ms += 30 * MINUTE_MS;
    assert_true(record_check(&trial.saga, &record, &err));
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
