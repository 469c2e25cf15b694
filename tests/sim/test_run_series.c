/* Figures over time. What the engines have counted is in the table once, however their writes end. */
#include "tests/sim/stage.h"

#include <stdio.h>
#include <stdlib.h>

#define MINUTE_MS 60000
#define DAY_MS (INT64_C(24) * 60 * MINUTE_MS)

static const char definitions[] = "{'tools':[{'name':'t','builtin':{'tool':'t'},'effect':'once',"
                                  "'terminal':true,'timeout':'1h'}],"
                                  "'sagas':[{'name':'s','steps':[{'id':'a','call':'t','with':{}}]}]}";

static struct slice asked(enum series_by by, int64_t from_ms)
{
    struct engine_request what = {.in.series = {.from_ms = from_ms, .by = by}};

    return stage_expect(stage_ask(0, engine_get_series, &what), ERR_OK)->answer;
}

/* Adds up all rows. */
static int64_t sum(enum series_by by, int64_t from_ms, const char *figure)
{
    struct json_walk walk = json_walk(json_member(asked(by, from_ms), "items"));
    struct slice row;
    int64_t all = 0, one;

    while (json_next_element(&walk, &row)) {
        one = 0;
        assert_true(json_i64(json_member(row, figure), &one));
        all += one;
    }
    return all;
}

static size_t row_count(int64_t from_ms)
{
    return json_count(json_member(asked(SERIES_BY_SAGA, from_ms), "items"));
}

static int64_t now_ms(void)
{
    return pg_clock_ms(world->pg);
}

static void start_some(uint32_t node, int count)
{
    for (int i = 0; i < count; i++) {
        (void)stage_start(node, "s", "{}");
    }
}

TEST(counts_stand_in_their_minute_after_the_minute)
{
    int64_t from_ms = now_ms() - MINUTE_MS;

    start_some(0, 3);
    assert_int_equal(row_count(from_ms), 0);
    stage_run(MINUTE_MS + 1000);
    assert_int_equal(sum(SERIES_BY_SAGA, from_ms, "started"), 3);
    assert_int_equal(sum(SERIES_BY_SAGA, from_ms, "completed"), 3);
    assert_int_equal(sum(SERIES_BY_TOOL, from_ms, "calls"), 3);
    assert_int_equal(sum(SERIES_BY_ALL, from_ms, "calls_completed"), 3);
    assert_int_equal(sum(SERIES_BY_ALL, from_ms, "escalated"), 0);
    stage_run(3 * MINUTE_MS); /* nothing happens any more, so nothing is written */
    assert_int_equal(sum(SERIES_BY_SAGA, from_ms, "started"), 3);
    assert_non_null(strstr(asked(SERIES_BY_TOOL, from_ms).ptr, "\"tool\":\"t\""));
    assert_non_null(strstr(asked(SERIES_BY_SAGA, from_ms).ptr, "\"saga\":\"s\""));
}

TEST(cases_are_counted_with_the_saga_that_opened_them)
{
    int64_t from_ms = now_ms() - MINUTE_MS;

    stage_says("t", OUTCOME_UNKNOWN, "timeout", NULL);
    start_some(0, 1);
    stage_run(MINUTE_MS + 1000);
    assert_int_equal(sum(SERIES_BY_SAGA, from_ms, "escalated"), 1);
    assert_int_equal(sum(SERIES_BY_TOOL, from_ms, "calls_unknown"), 1);
    assert_int_equal(sum(SERIES_BY_SAGA, from_ms, "completed"), 0);
}

TEST(the_parts_of_two_engines_add_up)
{
    int64_t from_ms = now_ms() - MINUTE_MS;

    for (int i = 0; i < 4; i++) {
        start_some(0, 1);
        start_some(1, 2);
    }
    stage_run(MINUTE_MS + 1000);
    assert_int_equal(sum(SERIES_BY_SAGA, from_ms, "started"), 12);
    assert_int_equal(sum(SERIES_BY_TOOL, from_ms, "calls"), 12);
}

TEST(counts_of_another_namespace_are_not_shown)
{
    struct engine_request what = {.namespace = SLICE("another")};

    start_some(0, 2);
    stage_run(MINUTE_MS + 1000);
    struct slice answer = stage_expect(stage_ask(0, engine_get_series, &what), ERR_OK)->answer;

    assert_int_equal(json_count(json_member(answer, "items")), 0);
}

static void lose(void *request, enum err_code *code)
{
    (void)request;
    *code = ERR_LOST_COMMIT;
}

TEST(a_write_whose_answer_was_lost_counts_once)
{
    int64_t from_ms = now_ms() - MINUTE_MS;

    for (int i = 0; i < 4; i++) {
        start_some(0, 2);
        stage_on_answer(STORE_SERIES_ADD, lose);
        stage_run(MINUTE_MS);
        start_some(0, 1); /* waits for the next part */
        stage_run(MINUTE_MS);
    }
    stage_run(3 * MINUTE_MS);
    assert_int_equal(sum(SERIES_BY_SAGA, from_ms, "started"), 12);
    assert_int_equal(sum(SERIES_BY_TOOL, from_ms, "calls"), 12);
}

TEST(counts_wait_without_a_database)
{
    int64_t from_ms = now_ms() - MINUTE_MS;

    start_some(0, 2);
    stage_refuse(STORE_SERIES_ADD, ERR_STORE, 5);
    stage_run(3 * MINUTE_MS);
    start_some(0, 2);
    stage_run(5 * MINUTE_MS);
    assert_int_equal(sum(SERIES_BY_SAGA, from_ms, "started"), 4);
}

TEST(a_clock_that_steps_doubles_nothing)
{
    static const int64_t offsets[] = {-3000, 3000, -2500, 0};
    int64_t from_ms = now_ms() - 10 * MINUTE_MS;

    for (size_t i = 0; i < COUNT_OF(offsets); i++) {
        start_some(0, 1);
        stage_run(MINUTE_MS - 1000 - now_ms() % MINUTE_MS);
        pg_set_clock(world->pg, offsets[i]);
        start_some(1, 1);
        stage_run(5000);
    }
    stage_run(3 * MINUTE_MS);
    assert_int_equal(sum(SERIES_BY_SAGA, from_ms, "started"), 8);
}

/* All engines are away for this many days. */
static void sleep_days(int64_t days)
{
    node_kill(&nodes[0]);
    node_kill(&nodes[1]);
    pg_set_clock(world->pg, days * DAY_MS);
    stage_again(0);
    stage_again(1);
    stage_run(3 * MINUTE_MS);
}

TEST(minutes_become_hours_and_hours_go)
{
    int64_t from_ms = now_ms() - MINUTE_MS;

    for (int i = 0; i < 3; i++) {
        start_some(0, 1);
        stage_run(MINUTE_MS + 1000);
    }
    size_t minutes = row_count(from_ms);

    assert_true(minutes >= 3);
    sleep_days(2);
    assert_int_equal(sum(SERIES_BY_SAGA, from_ms, "started"), 3);
    assert_true(row_count(from_ms) <= 2); /* the rows are in one hour, or in two */
    assert_non_null(strstr(asked(SERIES_BY_SAGA, from_ms).ptr, "\"step\":\"hour\""));
    sleep_days(89);
    assert_int_equal(sum(SERIES_BY_SAGA, from_ms, "started"), 3);
    sleep_days(92);
    assert_int_equal(row_count(from_ms), 0);
}

static bool left;

static void on_left(void *context)
{
    (void)context;
    left = true;
}

static void leave(struct engine *engine, void *context)
{
    (void)context;
    engine_drain(engine, 0, on_left, NULL);
}

static bool has_left(void *context)
{
    (void)context;
    return left;
}

TEST(an_engine_that_leaves_writes_what_it_has_counted)
{
    int64_t from_ms = now_ms() - MINUTE_MS;

    start_some(1, 2);
    stage_inside(1, leave, NULL);
    stage_until(has_left, NULL, "an engine that has left");
    node_kill(&nodes[1]);
    stage_run(1000);
    assert_true(sum(SERIES_BY_SAGA, from_ms, "started") > 0);
}

STAGE_PROGRAM(.definitions = definitions, .node_count = 2, .is_automatic = true)
