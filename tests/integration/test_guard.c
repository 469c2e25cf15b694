/* Bounds over all engines. Two stores on one database race: no bound is passed, nothing is taken twice, and nothing is
 * lost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/guard.h"
#include "tests/integration/store_host.h"
#include "tests/lib/test.h"

enum { ENGINES = 2, RACERS = 60, PLACE_MS = 60000 };

static struct host host;
static struct store *engines[ENGINES];
static struct arena arena;
static int done_count;

static void on_done(struct store_read *read)
{
    (void)read;
    done_count++;
}

static bool all_done(void *context)
{
    return done_count == *(const int *)context;
}

static void wait_for(int count)
{
    host_run_until(&host, all_done, &count);
    done_count = 0;
}

static struct uuid holder(uint8_t number)
{
    struct uuid uuid;

    memset(uuid.bytes, number, sizeof(uuid.bytes));
    return uuid;
}

/* Makes an ask about a tool without bounds; the test adds the bounds. */
static struct guard_ask asking(const char *tool, uint8_t number)
{
    return (struct guard_ask){.read = {.arena = &arena, .done = on_done},
                              .namespace = SLICE("default"),
                              .tool = slice_of(tool),
                              .endpoint = SLICE("http://127.0.0.1:9001"),
                              .place_ms = PLACE_MS,
                              .holder = holder(number),
                              .operation = holder(number)};
}

static struct guard_tell telling(const struct guard_ask *ask)
{
    return (struct guard_tell){.read = {.arena = &arena, .done = on_done},
                               .namespace = ask->namespace,
                               .tool = ask->tool,
                               .endpoint = ask->endpoint,
                               .rate = ask->rate,
                               .breaker = ask->breaker,
                               .holder = ask->holder,
                               .operation = ask->operation};
}

static enum guard_verdict ask_one(struct guard_ask *ask, int engine)
{
    store_guard_ask(engines[engine], ask);
    wait_for(1);
    if (ask->read.code != ERR_OK) {
        fail_msg("%s (%s)", ask->read.err.message, ask->read.err.detail);
    }
    return ask->verdict;
}

static void tell_one(struct guard_tell *tell, int engine)
{
    store_guard_tell(engines[engine], tell);
    wait_for(1);
    if (tell->read.code != ERR_OK) {
        fail_msg("%s (%s)", tell->read.err.message, tell->read.err.detail);
    }
}

/* Sends all asks at once, in turn over the engines. Returns how many were granted. */
static int race(struct guard_ask *asks, int count)
{
    int granted = 0;

    for (int i = 0; i < count; i++) {
        store_guard_ask(engines[i % ENGINES], &asks[i]);
    }
    wait_for(count);
    for (int i = 0; i < count; i++) {
        assert_int_equal(asks[i].read.code, ERR_OK);
        granted += asks[i].verdict == GUARD_GRANTED;
    }
    return granted;
}

TEST(places_are_never_more_than_there_are)
{
    static struct guard_ask asks[RACERS];
    struct guard_tell tell;

    for (int i = 0; i < RACERS; i++) {
        asks[i] = asking("places", (uint8_t)(i + 1));
        asks[i].concurrency = 7;
    }
    assert_int_equal(race(asks, RACERS), 7);
    assert_int_equal(host_number(&host, "select count(*) from sagad.guard_place where tool = 'places'"), 7);
    for (int i = 0; i < RACERS; i++) {
        if (asks[i].verdict == GUARD_GRANTED) {
            struct guard_ask again = asks[i];

            assert_int_equal(ask_one(&again, 1), GUARD_GRANTED); /* asked twice, taken once */
            assert_int_equal(host_number(&host, "select count(*) from sagad.guard_place where tool = 'places'"), 7);
            tell = telling(&asks[i]);
            tell_one(&tell, 0);
            tell_one(&tell, 1); /* told twice, given back once */
            break;
        }
        assert_int_equal(asks[i].verdict, GUARD_CONCURRENCY);
    }
    for (int i = 0; i < RACERS; i++) {
        asks[i].holder = holder((uint8_t)(100 + i));
    }
    assert_int_equal(race(asks, RACERS), 1);
}

TEST(a_place_of_an_engine_that_is_gone_comes_back_by_itself)
{
    struct guard_ask first = asking("expiry", 1), second = asking("expiry", 2);

    first.concurrency = second.concurrency = 1;
    first.place_ms = 3000;
    assert_int_equal(ask_one(&first, 0), GUARD_GRANTED);
    assert_int_equal(ask_one(&second, 1), GUARD_CONCURRENCY);
    host_run_ms(&host, 3050);
    assert_int_equal(ask_one(&second, 1), GUARD_GRANTED);
    assert_int_equal(ask_one(&first, 0), GUARD_CONCURRENCY);
}

TEST(a_rate_holds_over_both_engines_and_says_when)
{
    static struct guard_ask asks[RACERS];
    int granted, later = 0;

    for (int i = 0; i < RACERS; i++) {
        asks[i] = asking("rate", (uint8_t)(i + 1));
        asks[i].rate = (struct rate_limit){.limit = 20, .per_ms = 1000000}; /* one in 50 s, 20 at once */
    }
    granted = race(asks, RACERS);
    assert_int_equal(granted, 20);
    for (int i = 0; i < RACERS; i++) {
        if (asks[i].verdict == GUARD_RATE) {
            assert_true(asks[i].retry_after_ms > 30000 && asks[i].retry_after_ms <= 50000);
            later++;
        } else {
            struct guard_ask again = asks[i];

            assert_int_equal(ask_one(&again, i % 2), GUARD_GRANTED); /* a repeat of a granted ask */
        }
    }
    assert_int_equal(later, RACERS - granted);
    /* Unused grants are given back. */
    for (int i = 0; i < RACERS; i++) {
        if (asks[i].verdict == GUARD_GRANTED) {
            struct guard_tell tell = telling(&asks[i]);
            struct guard_ask next = asking("rate", 200), last = asking("rate", 201);

            next.rate = last.rate = asks[i].rate;
            tell.never_called = true;
            tell_one(&tell, 0);
            tell_one(&tell, 0);
            assert_int_equal(ask_one(&next, 1), GUARD_GRANTED);
            assert_int_equal(ask_one(&last, 0), GUARD_RATE);
            break;
        }
    }
}

TEST(calls_go_on_as_the_rate_refills)
{
    struct guard_ask ask;
    int granted = 0;

    for (int i = 0; i < 12; i++) {
        ask = asking("refill", (uint8_t)(i + 1));
        ask.rate = (struct rate_limit){.limit = 2, .per_ms = 200};
        if (ask_one(&ask, i % 2) == GUARD_GRANTED) {
            granted++;
        } else {
            assert_true(ask.retry_after_ms > 0 && ask.retry_after_ms <= 101);
            host_run_ms(&host, ask.retry_after_ms);
        }
    }
    assert_true(granted >= 6); /* two at once, then one every 100 ms */
}

TEST(a_pause_that_the_tool_asked_for_holds_for_all)
{
    struct guard_ask first = asking("pause", 1), second = asking("pause", 2);
    struct guard_tell tell;

    first.concurrency = second.concurrency = 5;
    assert_int_equal(ask_one(&first, 0), GUARD_GRANTED);
    tell = telling(&first);
    tell.pause_ms = 4000;
    tell_one(&tell, 0);
    assert_int_equal(ask_one(&second, 1), GUARD_PAUSED);
    assert_true(second.retry_after_ms > 2000 && second.retry_after_ms <= 4000);
    host_run_ms(&host, second.retry_after_ms + 50);
    assert_int_equal(ask_one(&second, 1), GUARD_GRANTED);
}

/* --- the breaker --- */

static struct guard_ask breaker_ask(const char *tool, uint8_t number)
{
    struct guard_ask ask = asking(tool, number);

    ask.breaker = (struct breaker_policy){.failures = 3, .window_ms = 60000, .cooldown_ms = 2000};
    ask.safe_to_repeat = true;
    return ask;
}

static struct guard_tell tell_of(const char *tool, uint8_t number, bool failed)
{
    struct guard_ask ask = breaker_ask(tool, number);
    struct guard_tell tell = telling(&ask);

    tell.failed = failed;
    return tell;
}

static void open_breaker(const char *tool)
{
    for (uint8_t i = 1; i <= 3; i++) {
        struct guard_ask ask = breaker_ask(tool, i);
        struct guard_tell tell = tell_of(tool, i, true);

        assert_int_equal(ask_one(&ask, i % 2), GUARD_GRANTED);
        tell_one(&tell, i % 2);
        assert_int_equal(tell.breaker_state, i < 3 ? BREAKER_CLOSED : BREAKER_OPEN);
        assert_int_equal(tell.breaker_changed, i == 3);
    }
}

static void set_breaker(const char *tool, struct slice open, int engine)
{
    struct guard_breaker_set set = {.read = {.arena = &arena, .done = on_done},
                                    .namespace = SLICE("default"),
                                    .tool = slice_of(tool),
                                    .open = open};

    store_guard_breaker_set(engines[engine], &set);
    wait_for(1);
    assert_int_equal(set.read.code, ERR_OK);
}

/* Which is what closes that of a tool whose calls may not be repeated. */
TEST(a_person_closes_a_breaker_and_what_failed_before_is_forgotten)
{
    struct guard_ask ask = breaker_ask("closed", 9);

    open_breaker("closed");
    ask.safe_to_repeat = false;
    assert_int_equal(ask_one(&ask, 1), GUARD_BREAKER);
    set_breaker("closed", SLICE_NONE, 0);
    assert_int_equal(ask_one(&ask, 1), GUARD_GRANTED);
    assert_false(ask.is_breaker_probe);
    assert_int_equal(host_number(&host, "select cardinality(failures) from sagad.guard_breaker where tool = 'closed'"),
                     0);
}

TEST(a_breaker_that_a_person_opened_stays_open_until_a_person_closes_it)
{
    struct guard_ask ask = breaker_ask("opened", 9), other = asking("opened", 8);
    struct guard_tell tell = tell_of("opened", 9, false);

    set_breaker("opened", SLICE("{\"actor\":\"ops\"}"), 0);
    assert_int_equal(ask_one(&ask, 1), GUARD_BREAKER);
    assert_int_equal(ask.retry_after_ms, 5000);
    assert_int_equal(ask_one(&other, 1), GUARD_GRANTED); /* of a version that has no breaker */
    tell_one(&tell, 0);
    assert_int_equal(ask_one(&ask, 1), GUARD_BREAKER);
    set_breaker("opened", SLICE("{}"), 0); /* twice is once */
    set_breaker("opened", SLICE_NONE, 1);
    set_breaker("opened", SLICE_NONE, 0);
    assert_int_equal(ask_one(&ask, 1), GUARD_GRANTED);
}

TEST(a_breaker_opens_and_one_probe_over_both_engines_closes_it)
{
    static struct guard_ask asks[RACERS];
    struct guard_ask ask = breaker_ask("breaker", 9);
    struct guard_tell tell;
    int probes = 0, probe = -1;

    open_breaker("breaker");
    assert_int_equal(ask_one(&ask, 1), GUARD_BREAKER);
    assert_true(ask.retry_after_ms > 1000 && ask.retry_after_ms <= 2400);
    host_run_ms(&host, 2500);
    ask.safe_to_repeat = false;
    assert_int_equal(ask_one(&ask, 1), GUARD_BREAKER); /* only a call that is safe to repeat may try */
    for (int i = 0; i < RACERS; i++) {
        asks[i] = breaker_ask("breaker", (uint8_t)(20 + i));
    }
    assert_int_equal(race(asks, RACERS), 1);
    for (int i = 0; i < RACERS; i++) {
        if (asks[i].is_breaker_probe) {
            probes++;
            probe = i;
        }
    }
    assert_int_equal(probes, 1);
    tell = telling(&asks[(probe + 1) % RACERS]); /* a late success of another call does not close the breaker */
    tell_one(&tell, 0);
    assert_int_equal(tell.breaker_state, BREAKER_HALF_OPEN);
    tell = telling(&asks[probe]);
    tell_one(&tell, 0);
    assert_int_equal(tell.breaker_state, BREAKER_CLOSED);
    assert_true(tell.breaker_changed);
    assert_int_equal(race(asks, RACERS), RACERS);
}

TEST(a_probe_that_fails_doubles_the_rest)
{
    struct guard_ask ask = breaker_ask("doubling", 9);
    struct guard_tell tell;

    open_breaker("doubling");
    host_run_ms(&host, 2500);
    assert_int_equal(ask_one(&ask, 0), GUARD_GRANTED);
    assert_true(ask.is_breaker_probe);
    tell = tell_of("doubling", 9, true);
    tell_one(&tell, 0);
    assert_int_equal(tell.breaker_state, BREAKER_OPEN);
    assert_int_equal(ask_one(&ask, 1), GUARD_BREAKER);
    assert_true(ask.retry_after_ms > 3000 && ask.retry_after_ms <= 4800);
    /* The cooldown ends at 10 minutes. */
    host_sql(&host, "update sagad.guard_breaker set cooldown_ms = 500000, open_until = now() - interval '1 s' where "
                    "tool = 'doubling'");
    assert_int_equal(ask_one(&ask, 0), GUARD_GRANTED);
    tell_one(&tell, 0);
    assert_int_equal(host_number(&host, "select cooldown_ms from sagad.guard_breaker where tool = 'doubling'"), 600000);
}

TEST(a_probe_that_never_comes_back_makes_room_for_another)
{
    struct guard_ask first = breaker_ask("lost", 8), second = breaker_ask("lost", 9);
    struct guard_tell tell;

    open_breaker("lost");
    host_run_ms(&host, 2500);
    first.place_ms = 2000;
    assert_int_equal(ask_one(&first, 0), GUARD_GRANTED);
    assert_int_equal(ask_one(&second, 1), GUARD_BREAKER);
    host_run_ms(&host, 2200);
    assert_int_equal(ask_one(&second, 1), GUARD_GRANTED);
    assert_true(second.is_breaker_probe);
    tell = telling(&second);
    tell.never_called = true; /* given back, so the next call may try at once */
    tell_one(&tell, 1);
    assert_int_equal(ask_one(&first, 0), GUARD_GRANTED);
    assert_true(first.is_breaker_probe);
}

TEST(another_endpoint_has_a_breaker_of_its_own)
{
    struct guard_ask ask = breaker_ask("places-breaker", 9);

    open_breaker("places-breaker");
    assert_int_equal(ask_one(&ask, 0), GUARD_BREAKER);
    ask.endpoint = SLICE("https://other:443");
    assert_int_equal(ask_one(&ask, 0), GUARD_GRANTED);
}

/* --- budgets --- */

static struct guard_budget budget(const char *name, int64_t calls_max, int64_t micros_max, int64_t micros)
{
    return (struct guard_budget){.name = slice_of(name),
                                 .calls_max = calls_max,
                                 .emissions_max = -1,
                                 .micros_max = micros_max,
                                 .calls = 1,
                                 .emissions = 1,
                                 .micros = micros};
}

static long used(const char *name, const char *what)
{
    return host_number(&host, "select %s from sagad.guard_budget where name = '%s'", what, name);
}

TEST(a_budget_is_never_passed_however_many_race)
{
    static struct guard_ask asks[RACERS];
    struct guard_budget both[] = {budget("race-all", -1, 1000, 100), budget("race-tool", 25, -1, 100)};

    for (int i = 0; i < RACERS; i++) {
        asks[i] = asking("budget", (uint8_t)(i + 1));
        asks[i].budgets = both;
        asks[i].budget_count = 2;
    }
    assert_int_equal(race(asks, RACERS), 10); /* 1000 at 100 each */
    assert_int_equal(used("race-all", "micros"), 1000);
    assert_int_equal(used("race-all", "calls"), 10);
    assert_int_equal(used("race-tool", "calls"), 10); /* all budgets or none */
    for (int i = 0; i < RACERS; i++) {
        if (asks[i].verdict == GUARD_GRANTED) {
            struct guard_ask again = asks[i];

            again.holder = holder((uint8_t)(100 + i)); /* the next attempt of the same operation */
            assert_int_equal(ask_one(&again, 1), GUARD_GRANTED);
        } else {
            assert_int_equal(asks[i].verdict, GUARD_BUDGET);
        }
    }
    assert_int_equal(used("race-all", "calls"), 10);
}

TEST(a_cost_is_booked_once_and_a_certain_failure_gives_it_back)
{
    struct guard_budget one[] = {budget("settle", 3, -1, 50)};
    struct guard_ask asks[4];
    struct guard_tell tell;

    for (int i = 0; i < 4; i++) {
        asks[i] = asking("settle", (uint8_t)(i + 1));
        asks[i].budgets = one;
        asks[i].budget_count = 1;
        assert_int_equal(ask_one(&asks[i], i % 2), i < 3 ? GUARD_GRANTED : GUARD_BUDGET);
    }
    assert_int_equal(used("settle", "micros"), 150);
    tell = telling(&asks[0]);
    tell.charge = CHARGE_SETTLE;
    tell.cost_micros = 70;
    tell_one(&tell, 0);
    tell_one(&tell, 1);
    assert_int_equal(used("settle", "micros"), 170);
    tell = telling(&asks[1]);
    tell.charge = CHARGE_GIVE_BACK;
    tell_one(&tell, 1);
    tell_one(&tell, 0);
    assert_int_equal(used("settle", "micros"), 120);
    assert_int_equal(used("settle", "calls"), 2);
    tell = telling(&asks[2]); /* the outcome is unknown, so the attempt keeps its share */
    tell_one(&tell, 0);
    assert_int_equal(used("settle", "micros"), 120);
    assert_int_equal(ask_one(&asks[3], 1), GUARD_GRANTED);
    assert_int_equal(used("settle", "calls"), 3);
    assert_int_equal(used("settle", "emissions"), 4);
    assert_int_equal(used("settle", "micros"), 170);
    tell = telling(&asks[1]); /* late evidence: the call happened after all */
    tell.charge = CHARGE_SETTLE;
    tell.cost_micros = 5;
    tell_one(&tell, 0);
    tell_one(&tell, 1);
    assert_int_equal(used("settle", "calls"), 4);
    assert_int_equal(used("settle", "micros"), 175);
}

TEST(a_cost_that_nobody_knows_is_not_counted_as_nothing)
{
    struct guard_budget one[] = {budget("unpriced", 10, 1000, 1)};
    struct guard_ask asks[3];
    struct guard_tell tell;
    struct guard_price price = {
        .read = {.arena = &arena, .done = on_done}, .namespace = SLICE("default"), .cost_micros = 300};

    for (int i = 0; i < 3; i++) {
        asks[i] = asking("unpriced", (uint8_t)(i + 1));
        asks[i].budgets = one;
        asks[i].budget_count = 1;
    }
    assert_int_equal(ask_one(&asks[0], 0), GUARD_GRANTED);
    tell = telling(&asks[0]);
    tell.charge = CHARGE_UNPRICED;
    tell_one(&tell, 0);
    tell_one(&tell, 1); /* told twice */
    assert_int_equal(ask_one(&asks[1], 1), GUARD_UNPRICED);
    assert_true(asks[1].retry_after_ms > 0);
    assert_int_equal(ask_one(&asks[0], 1), GUARD_UNPRICED); /* nor the same ask again */
    one[0].micros = 0;
    assert_int_equal(ask_one(&asks[2], 1), GUARD_GRANTED); /* a call without cost */
    one[0].micros = 1;
    price.tool = asks[0].tool;
    price.operation = asks[0].operation;
    for (int i = 0; i < 2; i++) { /* said twice */
        store_guard_price(engines[i], &price);
        wait_for(1);
        assert_int_equal(price.read.code, ERR_OK);
        assert_int_equal(used("unpriced", "micros"), 300);
    }
    assert_int_equal(used("unpriced", "calls"), 2);
    assert_int_equal(ask_one(&asks[1], 1), GUARD_GRANTED);
    tell = telling(&asks[1]); /* the call certainly did not happen; then late evidence says that it did */
    tell.charge = CHARGE_GIVE_BACK;
    tell_one(&tell, 0);
    assert_int_equal(used("unpriced", "micros"), 300);
    tell.charge = CHARGE_UNPRICED;
    tell_one(&tell, 1);
    assert_int_equal(used("unpriced", "micros"), 301);
    assert_int_equal(used("unpriced", "calls"), 3);
    assert_int_equal(used("unpriced", "unpriced"), 1);
    price.operation = asks[1].operation;
    price.cost_micros = 0;
    store_guard_price(engines[0], &price);
    wait_for(1);
    assert_int_equal(used("unpriced", "micros"), 300);
    assert_int_equal(used("unpriced", "unpriced"), 0);
}

TEST(another_period_begins_anew)
{
    struct guard_budget one[] = {budget("days", 1, -1, 0)};
    struct guard_ask first = asking("days", 1), second = asking("days", 2);

    first.budgets = second.budgets = one;
    first.budget_count = second.budget_count = 1;
    assert_int_equal(ask_one(&first, 0), GUARD_GRANTED);
    assert_int_equal(ask_one(&second, 1), GUARD_BUDGET);
    one[0].period_start_ms = INT64_C(86400000) * 20000;
    assert_int_equal(ask_one(&second, 1), GUARD_GRANTED);
}

TEST(duplicates_are_counted_without_being_asked)
{
    struct guard_budget add[] = {{.name = SLICE("count-a"), .emissions = 5},
                                 {.name = SLICE("count-b"), .emissions = 1, .micros = 9}};
    struct guard_count count = {.read = {.arena = &arena, .done = on_done}, .budgets = add, .budget_count = 2};

    for (int i = 0; i < 2; i++) {
        store_guard_count(engines[i], &count);
        wait_for(1);
        assert_int_equal(count.read.code, ERR_OK);
    }
    assert_int_equal(used("count-a", "emissions"), 10);
    assert_int_equal(used("count-b", "micros"), 18);
}

/* --- */

TEST(a_refusal_takes_nothing)
{
    struct guard_budget one[] = {budget("nothing", 10, -1, 5)};
    struct guard_ask first = asking("nothing", 1), second = asking("nothing", 2);

    first.concurrency = second.concurrency = 1;
    second.rate = (struct rate_limit){.limit = 1, .per_ms = 1000};
    second.budgets = one;
    second.budget_count = 1;
    assert_int_equal(ask_one(&first, 0), GUARD_GRANTED);
    assert_int_equal(ask_one(&second, 0), GUARD_CONCURRENCY);
    assert_int_equal(used("nothing", "calls"), 0);
    assert_int_equal(
        host_number(&host, "select count(*) from sagad.guard where tool = 'nothing' and rate_at = '-infinity'"), 1);
}

TEST(what_there_is_can_be_listed)
{
    struct guard_list list = {.read = {.arena = &arena, .done = on_done}, .namespace = SLICE("default")};
    struct guard_list other = {.read = {.arena = &arena, .done = on_done}, .namespace = SLICE("other")};
    bool seen = false;

    store_guard_list(engines[0], &list);
    wait_for(1);
    assert_int_equal(list.read.code, ERR_OK);
    for (size_t i = 0; i < list.count; i++) {
        if (slice_is(list.rows[i].tool, "doubling")) {
            seen = true;
            assert_int_equal(list.rows[i].breaker_state, BREAKER_OPEN);
            assert_true(list.rows[i].open_until_ms > 0);
            assert_int_equal(list.rows[i].opened, 3);
        }
    }
    assert_true(seen);
    store_guard_list(engines[1], &other);
    wait_for(1);
    assert_int_equal(other.count, 0);
}

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, 65536);
    host_start(&host, NULL);
    for (int i = 0; i < ENGINES; i++) {
        engines[i] = host_store(&host, NULL);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < ENGINES; i++) {
        host_store_close(&host, engines[i]);
    }
    host_stop(&host);
    arena_fini(&arena);
    return 0;
}

TEST_PROGRAM(setup, teardown)
