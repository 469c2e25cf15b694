/* The parts of the guards that need no database: how waiting calls are let go, what a call tells about its tool, and
 * budgets from the settings. */
#include <string.h>

#include "base/instant.h"
#include "run/call/budgets.h"
#include "run/call/limiter.h"
#include "run/call/pace.h"
#include "tests/lib/test.h"

/* --- the pace --- */

/* A gate with only a clock. It lets `waiting` calls go as fast as the pace allows; each question lets `grants` calls
 * through. */
struct trial {
    struct pace pace;
    int64_t now_ms;
    uint32_t waiting, asks, largest_group;
};

static void run_group(struct trial *trial, bool granted)
{
    uint32_t group = pace_begin_group(&trial->pace, trial->waiting);
    int64_t delay = 0;

    trial->largest_group = group > trial->largest_group ? group : trial->largest_group;
    trial->asks += group;
    for (uint32_t i = 0; i < group; i++) {
        if (!granted) {
            pace_close(&trial->pace, PACE_BREAKER, 1000, trial->now_ms, i * 77);
        }
        assert_int_equal(pace_end_one(&trial->pace, granted, trial->now_ms, 13, &delay), i + 1 == group);
    }
    trial->waiting -= granted ? group : 0;
    trial->now_ms += delay;
    assert_int_equal(pace_closed_ms(&trial->pace, trial->now_ms), 0);
}

TEST(waiting_calls_are_let_go_in_growing_groups_after_a_breaker_closes)
{
    struct trial trial = {.now_ms = 5000, .waiting = 1000};
    int64_t closed_ms;
    int groups = 0;

    pace_close(&trial.pace, PACE_BREAKER, 2000, trial.now_ms, 500);
    closed_ms = pace_closed_ms(&trial.pace, trial.now_ms);
    assert_true(closed_ms >= 2000 && closed_ms <= 2200);
    pace_open(&trial.pace);
    assert_int_equal(pace_closed_ms(&trial.pace, trial.now_ms), 0);
    run_group(&trial, true);
    assert_int_equal(trial.waiting, 999);
    assert_true(trial.now_ms >= 5000 + PACE_GAP_MS);
    run_group(&trial, true);
    assert_int_equal(trial.waiting, 997);
    run_group(&trial, true);
    assert_int_equal(trial.waiting, 993);
    for (; trial.waiting > 0; groups++) {
        run_group(&trial, true);
    }
    assert_int_equal(trial.largest_group, PACE_WIDTH_MAX);
    assert_true(groups > 10 && trial.now_ms - 5000 >= 10 * PACE_GAP_MS);
}

TEST(a_refusal_lets_only_one_ask_again_and_not_too_early)
{
    struct trial trial = {.now_ms = 1, .waiting = 1000};

    for (int i = 0; i < 6; i++) {
        run_group(&trial, true);
    }
    assert_int_equal(trial.asks, 63);
    run_group(&trial, false);
    assert_int_equal(trial.asks, 127);
    assert_true(trial.now_ms >= 1000);
    run_group(&trial, false);
    assert_int_equal(trial.asks, 128); /* one */
    assert_true(trial.now_ms >= 2000);
}

TEST(a_shorter_wait_does_not_shorten_a_longer_one)
{
    struct pace pace = {0};

    pace_close(&pace, PACE_PAUSED, 60000, 1000, 0);
    pace_close(&pace, PACE_RATE, 10, 1000, 0);
    assert_int_equal(pace_closed_ms(&pace, 1000), 60000);
    assert_int_equal(pace.why, PACE_PAUSED);
}

/* --- what a call says about its tool --- */

static const struct {
    const char *name;
    enum outcome_kind kind;
    bool unsent;
    const char *error, *response;
    enum call_verdict verdict;
} verdicts[] = {
    {"success", OUTCOME_COMPLETED, false, NULL, "{\"status\": 200}", CALL_WELL},
    {"accepted", OUTCOME_RUNNING, false, NULL, "{\"status\": 202}", CALL_WELL},
    {"refused as data", OUTCOME_FAILED, false, "http-422", "{\"status\": 422}", CALL_WELL},
    {"too many requests", OUTCOME_RETRY, false, "http-429", "{\"status\": 429}", CALL_WELL},
    {"conflict: unknown, but an answer", OUTCOME_UNKNOWN, false, "http-409", "{\"status\": 409}", CALL_WELL},
    {"server error", OUTCOME_UNKNOWN, false, "http-503", "{\"status\": 503}", CALL_FAILED},
    {"server error that the tool calls harmless", OUTCOME_RETRY, false, "outcome-rule", "{\"status\": 503}",
     CALL_FAILED},
    {"timeout", OUTCOME_UNKNOWN, false, "timeout", NULL, CALL_FAILED},
    {"refused connection", OUTCOME_RETRY, true, "refused", NULL, CALL_FAILED},
    {"unreadable answer", OUTCOME_UNKNOWN, false, "unreadable", "{\"status\": 200}", CALL_FAILED},
    {"program failed", OUTCOME_UNKNOWN, false, "exit-1", "{\"exit\": 1}", CALL_FAILED},
    {"wrong settings of ours", OUTCOME_FAILED, true, "bad-settings", NULL, CALL_NO_VERDICT},
    {"our lease", OUTCOME_RETRY, true, "lease", NULL, CALL_NO_VERDICT},
    {"our lease, when there was a connection", OUTCOME_RETRY, true, "withheld", NULL, CALL_NO_VERDICT},
    {"we did not want it any more", OUTCOME_UNKNOWN, false, "cancelled", NULL, CALL_NO_VERDICT},
};

TEST(only_the_tool_s_own_trouble_counts_against_it)
{
    for (size_t i = 0; i < COUNT_OF(verdicts); i++) {
        struct outcome outcome = {
            .kind = verdicts[i].kind, .unsent = verdicts[i].unsent, .error = slice_of(verdicts[i].error)};

        if (call_verdict(&outcome, slice_of(verdicts[i].response)) != verdicts[i].verdict) {
            fail_msg("%s", verdicts[i].name);
        }
    }
}

TEST(an_endpoint_is_what_stands_plainly_in_the_url)
{
    static const struct {
        const char *adapter, *settings, *endpoint;
    } cases[] = {
        {"http", "{\"url\": \"http://127.0.0.1:9001/charges?x=1\"}", "http://127.0.0.1:9001"},
        {"http", "{\"url\": \"https://api.example.com\"}", "https://api.example.com"},
        {"http", "{\"url\": \"https://name:word@api.example.com/x\"}", "https://api.example.com"},
        {"http", "{\"url\": \"http://one.example/${ .args.id }\"}", "http://one.example"},
        {"http", "{\"url\": \"http://${ .args.host }/x\"}", ""},
        {"http", "{\"url\": \"${ .args.url }\"}", ""},
        {"exec", "{\"argv\": [\"true\"]}", ""},
    };
    struct arena arena;

    arena_init(&arena, 1024);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct tool tool = {.adapter = slice_of(cases[i].adapter), .settings = {.json = slice_of(cases[i].settings)}};

        assert_true(slice_is(tool_endpoint(&tool, &arena), cases[i].endpoint));
    }
    arena_fini(&arena);
}

/* --- budgets of the settings --- */

static int64_t instant(const char *text)
{
    int64_t ms = 0;

    assert_true(instant_parse(slice_of(text), &ms));
    return ms;
}

TEST(days_and_months_begin_at_midnight_utc)
{
    assert_int_equal(budget_period_start(BUDGET_DAY, instant("2026-02-28T23:59:59.999Z")),
                     instant("2026-02-28T00:00:00Z"));
    assert_int_equal(budget_period_start(BUDGET_DAY, instant("2026-03-01T00:00:00Z")), instant("2026-03-01T00:00:00Z"));
    assert_int_equal(budget_period_start(BUDGET_MONTH, instant("2026-02-28T23:59:59.999Z")),
                     instant("2026-02-01T00:00:00Z"));
    assert_int_equal(budget_period_start(BUDGET_MONTH, instant("2024-12-31T12:00:00Z")),
                     instant("2024-12-01T00:00:00Z"));
    assert_int_equal(budget_period_start(BUDGET_EVER, instant("2026-02-28T23:59:59Z")), 0);
}

TEST(each_budget_that_names_a_call_or_nobody_applies_to_it)
{
    static const char text[] = "{\"budgets\": [{\"per\": \"day\", \"calls\": 100},"
                               " {\"namespace\": \"shop\", \"per\": \"month\", \"micros\": 5000000},"
                               " {\"tool\": \"mail.send\", \"per\": \"ever\", \"emissions\": 7},"
                               " {\"namespace\": \"shop\", \"tool\": \"mail.send\", \"per\": \"day\", \"calls\": 3}]}";
    struct guard_budget found[GUARD_BUDGETS_MAX];
    struct budgets budgets;
    struct err err = {0};
    int64_t now = instant("2026-02-28T10:00:00Z");

    assert_int_equal(budgets_parse(&budgets, slice_of(text), &err), ERR_OK);
    assert_int_equal(budgets_match(&budgets, SLICE("other"), SLICE("pay"), now, found), 1);
    assert_true(slice_is(found[0].name, "*/*/day"));
    assert_int_equal(found[0].calls_max, 100);
    assert_int_equal(found[0].micros_max, -1);
    assert_int_equal(budgets_match(&budgets, SLICE("shop"), SLICE("mail.send"), now, found), 4);
    for (size_t i = 1; i < 4; i++) {
        assert_true(slice_compare(found[i - 1].name, found[i].name) <
                    0); /* all calls use one order, so no calls wait in a ring */
    }
    assert_true(budgets_apply(&budgets, SLICE("any"), SLICE("any")));
    budgets_fini(&budgets);
    assert_int_equal(budgets_load(&budgets, NULL, &err), ERR_OK);
    assert_false(budgets_apply(&budgets, SLICE("any"), SLICE("any")));
    budgets_fini(&budgets);
}

TEST(a_misspelt_budget_is_refused_with_its_place)
{
    static const struct {
        const char *text, *place;
    } cases[] = {
        {"[]", "\"budgets\""},
        {"{\"budgets\": [], \"more\": 1}", "\"budgets\""},
        {"{\"budgets\": [{\"per\": \"week\", \"calls\": 1}]}", "/budgets/0/per"},
        {"{\"budgets\": [{\"per\": \"day\"}]}", "limits nothing"},
        {"{\"budgets\": [{\"per\": \"day\", \"call\": 1}]}", "/budgets/0/call"},
        {"{\"budgets\": [{\"per\": \"day\", \"calls\": -1}]}", "/budgets/0/calls"},
        {"{\"budgets\": [{\"per\": \"day\", \"micros\": 1.5}]}", "/budgets/0/micros"},
        {"{\"budgets\": [{\"per\": \"day\", \"calls\": 1}, {\"per\": \"day\", \"calls\": 2}]}", "/budgets/1"},
        {"{\"budgets\": [{\"tool\": \"\", \"per\": \"day\", \"calls\": 1}]}", "/budgets/0/tool"},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct budgets budgets;
        struct err err = {0};

        assert_int_equal(budgets_parse(&budgets, slice_of(cases[i].text), &err), ERR_CONFIG);
        if (!strstr(err.detail, cases[i].place)) {
            fail_msg("%s: %s", cases[i].text, err.detail);
        }
    }
    struct budgets none;
    struct err err = {0};

    assert_int_equal(budgets_load(&none, "/nowhere/budgets.json", &err), ERR_CONFIG);
    assert_int_equal(budgets_parse(&none, SLICE("{"), &err), ERR_CONFIG);
}

TEST_PROGRAM(NULL, NULL)
