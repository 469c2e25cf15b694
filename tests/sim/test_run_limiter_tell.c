/* What the guards are told after a call, also while the database is away: what is given back, kept and counted. */
#include "run/call/call_room.h"
#include "run/call/limiter_state.h"
#include "tests/lib/scratch.h"
#include "tests/lib/usual_options.h"
#include "tests/sim/limiter_stage.h"

static void with_budgets(struct engine_options *options)
{
    options->budgets_file = scratch_file;
}

static void write_budgets(const char *budgets) /* writes text with ' for " */
{
    char text[1024];

    assert_in_range(snprintf(text, sizeof(text), "%s", budgets), 1, sizeof(text) - 1);
    for (char *c = text; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    scratch_write(text, 1);
}

static void begin_with_budgets(const char *budgets)
{
    write_budgets(budgets);
    stage_begin(&(struct stage_plan){.definitions = definitions, .tweak = with_budgets, .is_automatic = true});
}

static void begin_telling(const char *budgets)
{
    begin_with_budgets(budgets);
    stage_hold(STORE_GUARD_TELL);
    stage_is_automatic = false;
}

TEST(the_outcome_of_a_call_decides_about_its_reservation)
{
    static const struct {
        enum outcome_kind kind;
        const char *error;
        enum guard_charge charge;
    } cases[] = {
        {OUTCOME_COMPLETED, NULL, CHARGE_SETTLE},
        {OUTCOME_FAILED, "http-422", CHARGE_GIVE_BACK},
        {OUTCOME_RETRY, "refused", CHARGE_GIVE_BACK},
        {OUTCOME_UNKNOWN, "timeout", CHARGE_KEEP}, /* the outcome is not known yet */
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin_telling("{'budgets':[{'per':'day','tool':'fixed','micros':100}]}");
        begin_saga("run_fixed");
        stage_answer_first(cases[i].kind, cases[i].error, NULL);
        assert_int_equal(told_now()->charge, cases[i].charge);
        stage_end();
    }
}

TEST(a_cost_is_reserved_as_far_as_it_is_known)
{
    static const struct {
        const char *saga;
        int64_t micros;
    } cases[] = {{"run_fixed", 7}, {"run_costly", 1}, {"run_plain", 0}};

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        begin_telling("{'budgets':[{'per':'day','micros':100},{'per':'ever','calls':100}]}");
        stage_hold(STORE_GUARD_ASK);
        begin_saga(cases[i].saga);
        assert_int_equal(asked_now()->budget_count, 2);
        assert_int_equal(asked_now()->budgets[0].calls, 1);
        assert_int_equal(asked_now()->budgets[0].emissions, 1);
        assert_int_equal(asked_now()->budgets[0].micros, cases[i].micros);
        say(GUARD_GRANTED, 0);
        if (i == 2) { /* another attempt is not another emission */
            stage_answer_first(OUTCOME_RETRY, "refused", NULL);
            stage_run(2000);
            assert_int_equal(asked_now()->budgets[0].emissions, 0);
        }
        stage_end();
    }
}

TEST(a_tool_s_own_wish_is_told_to_all_engines)
{
    begin_telling("{'budgets':[]}");
    begin_saga("run_rated");
    answer_late(429, 2500);
    assert_int_equal(told_now()->pause_ms, 2500);
    assert_false(told_now()->failed);
    stage_end();
}

TEST(a_wish_counts_only_with_the_status_that_says_so)
{
    static const int statuses[] = {0, 200, 503};

    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        begin_telling("{'budgets':[]}");
        begin_saga("run_rated");
        answer_late(statuses[i], 2500);
        assert_int_equal(told_now()->pause_ms, 0);
        stage_end();
    }
}

TEST(a_call_that_never_left_by_our_own_doing_gives_its_rate_back)
{
    begin_telling("{'budgets':[]}");
    begin_saga("run_rated");
    answer_unsent("withheld");
    assert_true(told_now()->never_called && told_now()->no_verdict && !told_now()->failed);
    stage_let(STORE_GUARD_TELL);
    stage_run(1000);
    answer_unsent("refused"); /* the tool is failing */
    assert_true(!told_now()->never_called && !told_now()->no_verdict && told_now()->failed);
    stage_let(STORE_GUARD_TELL);
    stage_run(2000);
    stage_answer_first(OUTCOME_UNKNOWN, "cancelled", NULL); /* the request has left, and we did not wait */
    assert_true(!told_now()->never_called && told_now()->no_verdict);
    stage_end();
}

TEST(the_finding_of_a_read_settles_the_reservation)
{
    static const char *const found[] = {"{'done':true}", "{'absent':true}", "{}"};

    for (size_t i = 0; i < COUNT_OF(found); i++) {
        begin_telling("{'budgets':[{'per':'day','tool':'asked','calls':100}]}");
        begin_saga("run_asked");
        stage_answer_first(OUTCOME_UNKNOWN, "timeout", NULL);
        assert_int_equal(told_now()->charge, CHARGE_KEEP);
        stage_let(STORE_GUARD_TELL);
        stage_run(1000);
        stage_answer_first(OUTCOME_COMPLETED, NULL, found[i]);
        assert_int_equal(stage_held(STORE_GUARD_TELL), i == 0);
        if (i == 0) {
            assert_int_equal(told_now()->charge, CHARGE_SETTLE);
            assert_true(told_now()->no_verdict);
        }
        stage_end();
    }
}

TEST(a_failed_undo_is_not_counted_as_done)
{
    begin_telling("{'budgets':[{'per':'day','tool':'unpaid','calls':100}]}");
    begin_saga("unpaid");
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    stage_answer_first(OUTCOME_FAILED, "http-422", "{'status':422}");
    stage_answer_first(OUTCOME_RETRY, "http-503", "{'status':503}");
    stage_run(5000);
    assert_int_equal(stage_asked(STORE_GUARD_COUNT), 0);
    stage_end();
}

TEST(an_outcome_that_was_not_told_is_told_when_the_database_is_back)
{
    begin_telling("{'budgets':[]}");
    begin_saga("run_rated");
    begin_saga("run_rated");
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(stage_held(STORE_GUARD_TELL), 2);
        stage_fail(STORE_GUARD_TELL, ERR_STORE);
        stage_fail(STORE_GUARD_TELL, ERR_STORE);
        stage_run(1000);
    }
    assert_int_equal(stage_held(STORE_GUARD_TELL), 2);
    stage_fail(STORE_GUARD_TELL, ERR_CORRUPT); /* refused as data: another try would be refused, too */
    stage_run(5000);
    assert_int_equal(stage_held(STORE_GUARD_TELL), 1);
    stage_end();
}

TEST(a_reservation_that_is_not_told_when_the_engine_ends_expires_by_itself)
{
    for (int i = 0; i < 3; i++) {
        begin_telling("{'budgets':[]}");
        begin_saga("run_rated");
        begin_saga("run_narrow");
        stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
        stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
        if (i == 0) { /* the engine is gone before it tells again */
            stage_fail(STORE_GUARD_TELL, ERR_STORE);
            stage_fail(STORE_GUARD_TELL, ERR_STORE);
        } else { /* or it leaves while the database does not answer */
            if (i == 1) {
                stage_fail(STORE_GUARD_TELL, ERR_STORE);
            }
            nodes[0].cut = true;
            stage_release(STORE_GUARD_TELL);
            node_drain(&nodes[0], 100);
            stage_run(3000);
        }
        stage_end();
    }
}

/* Sets the state of the breaker, whatever the database would say. */
static void breaker_is_now(enum breaker_state breaker_state)
{
    told_now()->breaker_state = breaker_state;
    told_now()->breaker_changed = true;
    stage_fail(STORE_GUARD_TELL, ERR_OK);
}

TEST(a_breaker_that_opens_is_counted_and_one_that_closes_lets_all_go_on)
{
    begin_telling("{'budgets':[]}");
    stage_hold(STORE_GUARD_ASK);
    begin_saga("run_broken");
    say(GUARD_GRANTED, 0);
    stage_answer_first(OUTCOME_RETRY, "http-503", "{'status':503}");
    assert_true(told_now()->failed);
    breaker_is_now(BREAKER_OPEN);
    assert_int_equal(health("broken")->breaker_opened, 1);
    assert_int_equal(health("broken")->breaker_state, BREAKER_OPEN);
    stage_run(1000);
    say(GUARD_BREAKER, 60000);
    begin_saga("run_broken");
    assert_int_equal(stage_held(STORE_GUARD_ASK), 0);
    /* A call that began before fails, and the next one, elsewhere, half-opens the breaker. No call goes on because of
     * that. */
    for (enum breaker_state now = BREAKER_HALF_OPEN;; now = BREAKER_CLOSED) {
        limiter_gate(nodes[0].engine->call_room->limiter, SLICE("default"), SLICE("broken"))->pace.closed_until_ms = 0;
        (void)call_tool(now == BREAKER_CLOSED ? "closes" : "half", "broken");
        say(GUARD_GRANTED, 0);
        stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
        breaker_is_now(now);
        if (now == BREAKER_CLOSED) {
            break;
        }
    }
    stage_run(10);
    assert_true(stage_held(STORE_GUARD_ASK) > 0);
    stage_end();
}

/* --- what is counted without asking --- */

static const struct guard_count *counted(void)
{
    return container_of((struct store_read *)stage_oldest(STORE_GUARD_COUNT), struct guard_count, read);
}

static const char budgets_of_many[] =
    "{'budgets':[{'per':'day','calls':100},{'per':'month','calls':100},{'per':'ever','calls':100},"
    "{'per':'day','namespace':'default','calls':100},{'per':'month','namespace':'default','calls':100},{"
    "'per':'ever','namespace':'default','calls':100},"
    "{'per':'day','tool':'unpaid','calls':100},{'per':'month','tool':'unpaid','calls':100},{"
    "'per':'ever','tool':'unpaid','calls':100}]}";

static void undo(void)
{
    begin_saga("unpaid");
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
    stage_answer_first(OUTCOME_FAILED, "http-422", "{'status':422}");
    stage_answer_first(OUTCOME_COMPLETED, NULL, "{'status':200}");
}

TEST(costs_of_undoing_are_counted_together_a_second_later)
{
    begin_telling(budgets_of_many);
    stage_release(STORE_GUARD_TELL);
    stage_hold(STORE_GUARD_COUNT);
    undo();
    int64_t since_us = world->now_us;

    undo();
    stage_run(900 - (world->now_us - since_us) / 1000);
    assert_int_equal(stage_held(STORE_GUARD_COUNT), 0);
    stage_run(200);
    assert_int_equal(stage_held(STORE_GUARD_COUNT), 1);
    assert_int_equal(counted()->budget_count, 9);
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(counted()->budgets[i].calls, 2);
    }
    stage_end();
}

TEST(a_cost_that_certainly_was_not_counted_is_counted_with_the_next)
{
    begin_telling(budgets_of_many);
    stage_release(STORE_GUARD_TELL);
    stage_hold(STORE_GUARD_COUNT);
    undo();
    stage_run(1500);
    undo();
    stage_fail(STORE_GUARD_COUNT, ERR_STORE);
    stage_run(1500);
    assert_int_equal(counted()->budget_count, 9);
    assert_int_equal(counted()->budgets[0].calls, 2);
    stage_fail(STORE_GUARD_COUNT, ERR_LOST_COMMIT); /* the count may be missing, but is never made twice */
    stage_run(5000);
    assert_int_equal(stage_held(STORE_GUARD_COUNT), 0);
    /* The next day is another period of the same name. */
    int64_t day_ms = INT64_C(86400000);

    stage_run(day_ms - (WORLD_START_MS + world->now_us / 1000) % day_ms - 300);
    undo();
    assert_int_equal(stage_held(STORE_GUARD_COUNT), 0);
    stage_run(300);
    undo();
    stage_run(1500);
    assert_int_equal(counted()->budget_count, 9 + 3);
    stage_end();
}

TEST(an_engine_that_leaves_counts_what_is_left)
{
    for (int i = 0; i < 2; i++) {
        begin_telling(budgets_of_many);
        stage_release(STORE_GUARD_TELL);
        undo();
        assert_int_equal(stage_asked(STORE_GUARD_COUNT), 0);
        nodes[0].cut = i == 1; /* the store closes without an answer, and nothing more can be done */
        node_drain(&nodes[0], 1000);
        stage_settle();
        assert_int_equal(stage_asked(STORE_GUARD_COUNT), 1);
        stage_end();
    }
}

TEST(a_repeat_counts_as_an_emission)
{
    struct reply *second;

    begin_with_budgets("{'budgets':[{'per':'day','emissions':100}]}");
    stage_hold(STORE_GUARD_COUNT);
    (void)stage_expect(call_tool("r", "plain"), ERR_OK);
    second = call_tool("r", "plain");
    stage_run(1500);
    assert_true(second->call.replayed);
    assert_int_equal(counted()->budgets[0].emissions, 1);
    assert_int_equal(counted()->budgets[0].calls, 0);
    stage_end();
}

static void look_for_gates(struct engine *engine, void *context)
{
    char name[400];

    (void)context;
    memset(name, 'x', sizeof(name));
    struct slice longest = {name, sizeof(name)};
    struct gate *gate = limiter_gate(engine->call_room->limiter, SLICE("default"), longest);

    assert_ptr_equal(limiter_gate(engine->call_room->limiter, SLICE("default"), longest), gate);
    assert_ptr_not_equal(limiter_gate(engine->call_room->limiter, SLICE("m"), longest), gate);
}

TEST(a_name_of_any_length_has_its_gate)
{
    begin_with_budgets("{'budgets':[]}");
    stage_inside(0, look_for_gates, NULL);
    stage_end();
}

TEST(budgets_that_make_no_sense_are_refused_before_anything_starts)
{
    struct engine_options options = usual_options;
    struct memory_owner owner = {0}, *before;

    stage_begin(&(struct stage_plan){0});
    write_budgets("{'budgets':[{'per':'week','calls':1}]}");
    options.budgets_file = scratch_file;
    before = memory_switch(&owner);
    assert_null(engine_start(nodes[0].loop, &options));
    (void)memory_switch(before);
    stage_end();
}

TEST_PROGRAM(scratch_make_file, scratch_remove_file)
