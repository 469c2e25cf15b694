/* The meaning of each outcome, class by class, as tables. This is the heart of the engine. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

/* --- what one outcome of the first attempt leads to --- */

static const struct {
    const char *name, *tool;
    enum outcome_kind outcome;
    const char *records, *wants;
} firsts[] = {
    {"completed settles every class: read", "read", OUTCOME_COMPLETED, "step.completed act, step.intent next",
     "call next 1"},
    {"completed settles every class: idempotent", "idempotent", OUTCOME_COMPLETED,
     "step.completed act, step.intent next", "call next 1"},
    {"completed settles every class: keyed", "keyed", OUTCOME_COMPLETED, "step.completed act, step.intent next",
     "call next 1"},
    {"completed settles every class: checked", "checked", OUTCOME_COMPLETED, "step.completed act, step.intent next",
     "call next 1"},
    {"completed settles every class: once", "once", OUTCOME_COMPLETED, "step.completed act, step.intent next",
     "call next 1"},

    {"read: called again after an unknown outcome", "read", OUTCOME_UNKNOWN, "step.retrying act", "timer act 1"},
    {"idempotent: called again after an unknown outcome", "idempotent", OUTCOME_UNKNOWN, "step.retrying act",
     "timer act 1"},
    {"idempotent: called again even where there is a probe", "idempotent_probed", OUTCOME_UNKNOWN, "step.retrying act",
     "timer act 1"},
    {"keyed: the same key again is safe", "keyed", OUTCOME_UNKNOWN, "step.retrying act", "timer act 1"},
    {"keyed: the same key again, even where there is a probe", "keyed_probed", OUTCOME_UNKNOWN, "step.retrying act",
     "timer act 1"},
    {"checked: ask before anything else", "checked", OUTCOME_UNKNOWN, "step.unknown act", "probe act 1"},
    {"once with a probe: ask", "once_probed", OUTCOME_UNKNOWN, "step.unknown act", "probe act 1"},
    {"once: a person has to say", "once", OUTCOME_UNKNOWN, "step.unknown act, escalation.opened act", ""},
    {"a maybe that can be undone blind is undone", "voidable", OUTCOME_UNKNOWN,
     "step.unknown act, saga.failing act, compensation.planned, compensation.intent act", "call undo act 1"},

    {"read: a certain nothing is worth another attempt", "read", OUTCOME_RETRY, "step.retrying act", "timer act 1"},
    {"idempotent: a certain nothing is worth another attempt", "idempotent", OUTCOME_RETRY, "step.retrying act",
     "timer act 1"},
    {"keyed: a certain nothing is worth another attempt", "keyed", OUTCOME_RETRY, "step.retrying act", "timer act 1"},
    {"checked: a certain nothing needs no probe", "checked", OUTCOME_RETRY, "step.retrying act", "timer act 1"},
    {"once: leaves once, whatever came back", "once", OUTCOME_RETRY,
     "step.failed act, saga.failing act, compensation.planned, saga.compensated", ""},

    {"read: refused for good", "read", OUTCOME_FAILED,
     "step.failed act, saga.failing act, compensation.planned, saga.compensated", ""},
    {"idempotent: refused for good", "idempotent", OUTCOME_FAILED,
     "step.failed act, saga.failing act, compensation.planned, saga.compensated", ""},
    {"keyed: refused for good", "keyed", OUTCOME_FAILED,
     "step.failed act, saga.failing act, compensation.planned, saga.compensated", ""},
    {"checked: refused for good", "checked", OUTCOME_FAILED,
     "step.failed act, saga.failing act, compensation.planned, saga.compensated", ""},
    {"once: refused for good", "once", OUTCOME_FAILED,
     "step.failed act, saga.failing act, compensation.planned, saga.compensated", ""},

    {"running: the probe completes it", "keyed_probed", OUTCOME_RUNNING, "step.accepted act", "probe act 1"},
    {"running without a probe is an unknown outcome", "keyed", OUTCOME_RUNNING, "step.retrying act", "timer act 1"},
};

static void open_act(struct trial *trial, const char *tool)
{
    char document[8192];

    (void)snprintf(document, sizeof(document), TRIAL_SAGA("{'id':'act','call':'%s'},{'id':'next','call':'idempotent'}"),
                   tool);
    trial_begin(trial, document, "{}");
    if (strncmp(trial_wants(trial), "timer", 5) == 0) { /* for checked and once, record and intent are two commits */
        assert_string_equal(trial_records(trial), "saga.started, step.pending act");
        trial_play(trial, "timer act");
    }
    assert_string_equal(trial_wants(trial), "call act 1");
}

/* Cuts the times off, which are jitter here; other tests check them. */
static void cut_times(char *wants)
{
    char *plus;

    while ((plus = strstr(wants, " +")) != NULL) {
        char *end = plus + strcspn(plus + 1, ",") + 1;

        memmove(plus, end, strlen(end) + 1);
    }
}

static const char *wants_without_times(struct trial *trial)
{
    char *wants = arena_text(&trial->arena, slice_of(trial_wants(trial)));

    cut_times(wants);
    return wants;
}

static struct trial trial;

TEST(an_outcome_leads_to_what_its_class_allows)
{
    for (size_t i = 0; i < COUNT_OF(firsts); i++) {
        open_act(&trial, firsts[i].tool);
        trial_settle(&trial, "act", firsts[i].outcome);
        if (strcmp(trial_records(&trial), firsts[i].records) != 0 ||
            strcmp(wants_without_times(&trial), firsts[i].wants) != 0) {
            fail_msg("%s:\n  records %s\n  wants   %s", firsts[i].name, trial_records(&trial), trial_wants(&trial));
        }
        trial_check_replay(&trial);
        trial_close(&trial);
    }
}

/* --- whole stories of one operation: outcomes in a row, and where they end --- */

enum { END = OUTCOME_KIND_COUNT, UNSENT, DUE, ABSENT_EARLY, PROBE_UNKNOWN, PROBE_COMPLETED, ABSENT };

static const struct {
    const char *name, *tool;
    int story[16];
    const char *status, *took_effect;
    uint32_t attempts;
} stories[] = {
    {"read: after its attempts it has failed, and never had an effect",
     "read",
     {OUTCOME_UNKNOWN, DUE, OUTCOME_UNKNOWN, DUE, OUTCOME_UNKNOWN, END},
     "failed",
     "no",
     3},
    {"idempotent: attempts used up, nobody to ask",
     "idempotent",
     {OUTCOME_UNKNOWN, DUE, OUTCOME_UNKNOWN, DUE, OUTCOME_UNKNOWN, END},
     "unknown",
     "maybe",
     3},
    {"idempotent: attempts used up, then it is asked",
     "idempotent_probed",
     {OUTCOME_UNKNOWN, DUE, OUTCOME_UNKNOWN, DUE, OUTCOME_UNKNOWN, PROBE_UNKNOWN, PROBE_COMPLETED, END},
     "completed",
     "yes",
     3},
    {"keyed: attempts used up, then absent is certain",
     "keyed_probed",
     {OUTCOME_UNKNOWN, DUE, OUTCOME_UNKNOWN, DUE, OUTCOME_UNKNOWN, ABSENT_EARLY, ABSENT, END},
     "failed",
     "no",
     3},
    {"a refusal now says nothing about an earlier attempt",
     "keyed",
     {OUTCOME_UNKNOWN, DUE, OUTCOME_FAILED, END},
     "unknown",
     "maybe",
     2},
    {"a refusal now and a probe for what was before",
     "keyed_probed",
     {OUTCOME_UNKNOWN, DUE, OUTCOME_FAILED, PROBE_COMPLETED, END},
     "completed",
     "yes",
     2},
    {"nothing happened now, but earlier perhaps",
     "idempotent",
     {OUTCOME_UNKNOWN, DUE, OUTCOME_RETRY, END},
     "retrying",
     "maybe",
     2},
    {"nothing happened, ever", "idempotent", {OUTCOME_RETRY, DUE, OUTCOME_RETRY, END}, "retrying", "no", 2},
    {"attempts used up with nothing ever happened: failed",
     "keyed",
     {OUTCOME_RETRY, DUE, OUTCOME_RETRY, DUE, OUTCOME_RETRY, END},
     "failed",
     "no",
     3},
    {"attempts used up with a maybe among them: unknown",
     "keyed",
     {OUTCOME_RETRY, DUE, OUTCOME_UNKNOWN, DUE, OUTCOME_RETRY, END},
     "unknown",
     "maybe",
     3},
    {"checked: called again only after absent",
     "checked",
     {OUTCOME_UNKNOWN, ABSENT_EARLY, ABSENT, DUE, OUTCOME_COMPLETED, END},
     "completed",
     "yes",
     2},
    {"checked: absent clears what may have happened",
     "checked",
     {OUTCOME_UNKNOWN, ABSENT_EARLY, ABSENT, DUE, OUTCOME_FAILED, END},
     "failed",
     "no",
     2},
    {"once: absent is a failure, not another call",
     "once_probed",
     {OUTCOME_UNKNOWN, ABSENT_EARLY, ABSENT, END},
     "failed",
     "no",
     1},
    {"once: what never left may be tried again",
     "once",
     {UNSENT, DUE, UNSENT, DUE, OUTCOME_COMPLETED, END},
     "completed",
     "yes",
     3},
    {"running: asked until it is done",
     "keyed_probed",
     {OUTCOME_RUNNING, PROBE_UNKNOWN, PROBE_COMPLETED, END},
     "completed",
     "yes",
     1},
    {"absent speaks for all attempts under the key",
     "keyed_probed",
     {OUTCOME_UNKNOWN, DUE, OUTCOME_RUNNING, ABSENT_EARLY, ABSENT, DUE, OUTCOME_FAILED, END},
     "failed",
     "no",
     3},
    {"running and then absent: called again while there are attempts",
     "keyed_probed",
     {OUTCOME_RUNNING, ABSENT_EARLY, ABSENT, DUE, END},
     "running",
     "maybe",
     2},
};

static void unsent(struct trial *on, const char *step)
{
    struct outcome outcome = {.kind = OUTCOME_RETRY, .unsent = true, .error = SLICE("refused")};
    uint32_t i = trial_step(on, step);

    assert_int_equal(trial_input(on, trial_outcome(on, SAGA_INPUT_SETTLED, i, DIRECTION_DO,
                                                   on->saga.steps[i].forward.attempts, outcome)),
                     ERR_OK);
}

static void tell(struct trial *on, int what)
{
    switch (what) {
    case UNSENT:
        unsent(on, "act");
        return;
    case DUE:
        trial_play(on, "timer act");
        return;
    case ABSENT_EARLY:
        trial_play_to(on, "probe act absent", "step.probed act");
        return;
    case ABSENT:
        trial_play(on, "probe act absent");
        return;
    case PROBE_UNKNOWN:
        trial_play_to(on, "probe act unknown", "step.probed act");
        return;
    case PROBE_COMPLETED:
        trial_play(on, "probe act");
        return;
    default:
        trial_settle(on, "act", (enum outcome_kind)what);
        return;
    }
}

TEST(an_operation_ends_as_its_class_allows)
{
    for (size_t i = 0; i < COUNT_OF(stories); i++) {
        const char *status, *took_effect;
        uint32_t attempts;

        open_act(&trial, stories[i].tool);
        for (size_t at = 0; stories[i].story[at] != END; at++) {
            tell(&trial, stories[i].story[at]);
        }
        status = step_status_name(saga_step_status(&trial.saga, 0));
        took_effect = took_effect_name(saga_took_effect(&trial.saga, 0));
        attempts = trial.saga.steps[0].forward.attempts;
        if (strcmp(status, stories[i].status) != 0 || strcmp(took_effect, stories[i].took_effect) != 0 ||
            attempts != stories[i].attempts) {
            fail_msg("%s: it is %s, took_effect %s, after %u attempts", stories[i].name, status, took_effect, attempts);
        }
        trial_check_replay(&trial);
        trial_close(&trial);
    }
}

/* --- bounds --- */

TEST(tries_that_never_left_are_bounded_and_not_attempts)
{
    open_act(&trial, "once");
    for (int i = 0; i < 9; i++) {
        unsent(&trial, "act");
        assert_string_equal(trial_records(&trial), "step.retrying act");
        assert_int_equal(saga_took_effect(&trial.saga, 0), TOOK_EFFECT_NO);
        assert_int_equal(trial.saga.steps[0].forward.first_sent_ms, 0);
        trial_play(&trial, "timer act");
    }
    unsent(&trial, "act");
    assert_string_equal(trial_records(&trial),
                        "step.failed act, saga.failing act, compensation.planned, saga.compensated");
    struct slice act = json_element(json_member(trial_view(&trial, &trial.arena), "steps"), 0);

    assert_true(slice_is(json_member(act, "attempts"), "0")); /* a `once` must not show ten calls */
    assert_true(slice_is(json_member(act, "unsent"), "10"));
}

TEST(an_attempt_that_left_ends_the_row_of_those_that_did_not)
{
    open_act(&trial, "keyed");
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 9; i++) {
            unsent(&trial, "act");
            trial.now_ms = trial.saga.steps[0].forward.due_ms;
            trial_play(&trial, "timer act");
        }
        assert_int_equal(trial.saga.steps[0].forward.unsent, 9);
        if (round == 0) {
            trial_play(&trial, "act retry");
            assert_int_equal(trial.saga.steps[0].forward.unsent, 0);
            trial.saga.steps[0].forward.window_from_ms =
                0; /* the row below is longer than the window, which this test is not about */
            trial_play(&trial, "timer act");
        }
    }
    trial_close(&trial); /* the state is bent on purpose */
}

TEST(a_refusal_under_the_same_key_settles_the_attempts_before_it)
{
    static const struct {
        const char *name, *tool;
        bool settles;
        int64_t after_ms;
        const char *records;
    } table[] = {
        {"what its tool says settles it", "keyed", true, 0,
         "step.failed act, saga.failing act, compensation.planned, saga.compensated"},
        {"any other refusal leaves it to a person", "keyed", false, 0, "step.unknown act, escalation.opened act"},
        {"and so does one past the window, when the key may be forgotten", "keyed", true, 60000,
         "step.unknown act, escalation.opened act"},
        {"a receiver without keys has promised nothing", "idempotent", true, 0,
         "step.unknown act, escalation.opened act"},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        const struct outcome refusal = {
            .kind = OUTCOME_FAILED, .error = SLICE("http-422"), .settles = table[i].settles};

        open_act(&trial, table[i].tool);
        trial_play(&trial, "act unknown, timer act");
        trial.now_ms += table[i].after_ms;
        assert_int_equal(trial_input(&trial, trial_outcome(&trial, SAGA_INPUT_SETTLED, 0, DIRECTION_DO, 2, refusal)),
                         ERR_OK);
        if (strcmp(trial_records(&trial), table[i].records) != 0) {
            fail_msg("%s: %s", table[i].name, trial_records(&trial));
        }
        assert_int_equal(saga_took_effect(&trial.saga, 0),
                         strncmp(table[i].records, "step.failed", 11) == 0 ? TOOK_EFFECT_NO : TOOK_EFFECT_MAYBE);
        trial_check_replay(&trial);
        trial_close(&trial);
    }
}

TEST(a_retry_never_leaves_after_the_window)
{
    struct outcome outcome = {.kind = OUTCOME_UNKNOWN, .error = SLICE("http-503"), .retry_after_ms = 60000};

    open_act(&trial, "keyed"); /* a Retry-After that ends with the window */
    trial_takes(&trial, trial_input(&trial, trial_outcome(&trial, SAGA_INPUT_SETTLED, 0, DIRECTION_DO, 1, outcome)),
                "step.unknown act, escalation.opened act");
    trial_close(&trial);

    open_act(&trial, "keyed_probed");
    trial_takes(&trial, trial_input(&trial, trial_outcome(&trial, SAGA_INPUT_SETTLED, 0, DIRECTION_DO, 1, outcome)),
                "step.unknown act");
    assert_string_equal(trial_wants(&trial), "probe act 1 +0");
    trial_close(&trial);

    open_act(&trial, "keyed"); /* the call was due inside the window, but the engine was away */
    trial_play_to(&trial, "act unknown", "step.retrying act");
    trial.now_ms = TRIAL_START_MS + 60000;
    trial_play_to(&trial, "timer act", "step.unknown act, escalation.opened act");
    trial_close(&trial);

    open_act(&trial, "keyed"); /* nothing ever happened, so no question is open */
    trial_play(&trial, "act retry");
    trial.now_ms = TRIAL_START_MS + 60000;
    trial_play_to(&trial, "timer act", "step.failed act, saga.failing act, compensation.planned, saga.compensated");
}

TEST(retry_after_is_honoured)
{
    struct outcome outcome = {.kind = OUTCOME_RETRY, .error = SLICE("http-429"), .retry_after_ms = 20000};

    open_act(&trial, "keyed");
    assert_int_equal(trial_input(&trial, trial_outcome(&trial, SAGA_INPUT_SETTLED, 0, DIRECTION_DO, 1, outcome)),
                     ERR_OK);
    assert_true(trial.saga.steps[0].forward.due_ms >= TRIAL_START_MS + 20000);
}

TEST(absent_counts_only_when_asked_late_enough)
{
    open_act(&trial, "checked");
    trial.now_ms += 3000; /* the call was out for three seconds, and may have left at their end */
    trial_play(&trial, "act unknown");
    assert_string_equal(trial_wants(&trial), "probe act 1 +0");
    trial.now_ms += 60000; /* the probe was sent at once and answered late; the time of sending counts */
    trial_play_to(&trial, "probe act absent", "step.probed act");
    trial_play_to(&trial, "probe act absent", "step.retrying act");
    trial_close(&trial);

    open_act(&trial, "checked");
    trial_play(&trial, "act unknown, probe act absent");
    assert_string_equal(trial_wants(&trial), "probe act 2 +5000");
}

/* The log tells the time of sending by another engine's clock, which may have been further behind. */
TEST(absent_counts_only_after_its_time_has_passed_here)
{
    open_act(&trial, "checked");
    trial_play(&trial, "act unknown, probe act absent");
    assert_string_equal(trial_wants(&trial), "probe act 2 +5000");
    trial.now_ms += 60000;
    trial.saga.alone_from_ms = trial.now_ms; /* the saga is taken over now, and the probe is due at once */
    trial_play_to(&trial, "probe act absent", "step.probed act");
    assert_string_equal(trial_wants(&trial), "probe act 3 +5000");
    trial_play_to(&trial, "probe act absent", "step.retrying act");
}

/* Otherwise each of many takeovers would make the next probe wait longer, in the end for minutes. */
TEST(an_engine_that_takes_over_asks_as_if_nobody_had_asked_before)
{
    open_act(&trial, "checked");
    trial_play(&trial, "act unknown");
    for (int i = 0; i < 12; i++) {
        trial.saga.alone_from_ms = trial.now_ms;
        trial_play(&trial, "probe act unknown");
        assert_true(trial.saga.steps[0].forward.due_ms <= trial.now_ms + 2000);
    }
}

TEST(probes_give_up_after_their_time)
{
    int probes = 0;

    open_act(&trial, "checked");
    trial_play(&trial, "act unknown");
    while (trial.saga.steps[0].forward.state == OP_PROBING) {
        trial_probe(&trial, "act", probes % 2 ? OUTCOME_UNKNOWN : OUTCOME_RUNNING);
        probes++;
        assert_true(probes < 200);
    }
    assert_true(probes > 12); /* an hour, at most five minutes apart */
    assert_int_equal(trial.now_ms, TRIAL_START_MS + 3600000);
    assert_string_equal(trial_records(&trial), "step.unknown act, escalation.opened act");
}

/* --- late and wrong answers --- */

static void answer(struct trial *on, uint32_t attempt, enum outcome_kind kind)
{
    struct outcome outcome = {
        .kind = kind, .error = SLICE("late"), .result = kind == OUTCOME_COMPLETED ? SLICE("1") : SLICE_NONE};

    assert_int_equal(trial_input(on, trial_outcome(on, SAGA_INPUT_SETTLED, 0, DIRECTION_DO, attempt, outcome)), ERR_OK);
}

TEST(an_answer_settles_once)
{
    open_act(&trial, "keyed");
    answer(&trial, 0, OUTCOME_COMPLETED);
    assert_string_equal(trial_records(&trial), "");
    answer(&trial, 2, OUTCOME_COMPLETED);
    assert_string_equal(trial_records(&trial), "");
    trial_play(&trial, "act unknown");
    answer(&trial, 1, OUTCOME_UNKNOWN);
    assert_string_equal(trial_records(&trial), "");
    answer(&trial, 1, OUTCOME_FAILED); /* the answer of an attempt that is over */
    assert_string_equal(trial_records(&trial), "");
    trial_play(&trial, "timer act");
    answer(&trial, 1, OUTCOME_COMPLETED); /* a success always counts */
    assert_string_equal(trial_records(&trial), "step.completed act, step.intent next");
    answer(&trial, 2, OUTCOME_FAILED);
    assert_string_equal(trial_records(&trial), "");
    answer(&trial, 2, OUTCOME_COMPLETED);
    assert_string_equal(trial_records(&trial), "");
}

TEST(late_evidence_settles_what_a_person_was_asked)
{
    open_act(&trial, "once");
    trial_play(&trial, "act unknown");
    answer(&trial, 1, OUTCOME_COMPLETED);
    assert_string_equal(trial_records(&trial), "step.completed act, escalation.resolved act, step.intent next");
    assert_true(slice_is(trial.records.items[1].action, "evidence"));
    assert_true(slice_is(trial.records.items[1].actor, "sagad"));
    trial_close(&trial);

    open_act(&trial, "once"); /* the only attempt certainly had no effect */
    trial_play(&trial, "act unknown");
    answer(&trial, 1, OUTCOME_FAILED);
    assert_string_equal(
        trial_records(&trial),
        "step.failed act, saga.failing act, escalation.resolved act, compensation.planned, saga.compensated");
    trial_close(&trial);

    open_act(&trial, "idempotent"); /* one of three attempts says nothing about the others */
    for (int i = 0; i < 3; i++) {
        trial_play(&trial, "act unknown");
        if (i < 2) {
            trial_play(&trial, "timer act");
        }
    }
    assert_int_equal(saga_status(&trial.saga), SAGA_ESCALATED);
    answer(&trial, 3, OUTCOME_FAILED);
    assert_string_equal(trial_records(&trial), "");
}

TEST(a_probe_answers_for_its_own_number_only)
{
    struct outcome absent = {.kind = OUTCOME_ABSENT};

    open_act(&trial, "checked");
    trial_play_to(&trial, "act unknown, probe act absent", "step.probed act");
    trial.now_ms += 10000;
    trial_takes(&trial, trial_input(&trial, trial_outcome(&trial, SAGA_INPUT_PROBED, 0, DIRECTION_DO, 1, absent)), "");
}

TEST(a_timer_that_comes_early_means_nothing)
{
    struct saga_input input = {.type = SAGA_INPUT_TIMER};

    open_act(&trial, "keyed");
    trial_play(&trial, "act retry");
    trial.now_ms = trial.saga.steps[0].forward.due_ms - 1;
    input.timer.step = 0;
    trial_takes(&trial, trial_input(&trial, input), "");
    assert_string_equal(trial_wants(&trial), "timer act 1 +1");
    input.timer.step = 77;
    trial_takes(&trial, trial_input(&trial, input), "");
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
