/* Due sagas come in time, in order and in bounded batches. The test provides the clock and the loop. */
#include <string.h>

#include "run/engine_state.h"
#include "run/saga/due.h"
#include "run/saga/saga_room.h"
#include "tests/lib/test.h"
#include "tests/unit/stand_in_loop.h"

#define MINUTE_MS 60000
#define AT_ONCE_MAX 3

static struct saga_room room;
static struct engine engine;
static struct due due;
static int takes, overs;
static size_t begun[16], begun_count;
static bool ends_at_once;

/* --- the loop --- */

static void fire(void)
{
    struct timer *fired = timer;

    assert_non_null(fired);
    now_ms = timer_at_ms;
    timer = NULL;
    fired->fire(fired);
}

static void run_deferred(void)
{
    struct deferred *run = deferred;

    assert_non_null(run);
    deferred = NULL;
    run->run(run);
}

/* --- a table --- */

static void take(struct due *of, uint64_t shards, int64_t at_ms)
{
    assert_ptr_equal(of, &due);
    assert_int_equal(shards, 1);
    assert_int_equal(at_ms, now_ms);
    takes++;
}

static void begin(struct due *of, size_t row)
{
    begun[begun_count++] = row;
    due_begun(of);
    if (ends_at_once) {
        due_ended(of);
    }
}

static void over(struct due *of)
{
    (void)of;
    overs++;
}

static int setup(void **state)
{
    static const struct due_kind kind = {.under_way_max = AT_ONCE_MAX, .take = take, .begin = begin, .over = over};

    (void)state;
    memset(&engine, 0, sizeof(engine));
    engine.saga_room = &room;
    memset(&due, 0, sizeof(due));
    engine.shards[0].state = SHARD_OWNED;
    list_init(&room.dues);
    now_ms = 1000000;
    timer = NULL;
    deferred = NULL;
    takes = overs = 0;
    begun_count = 0;
    ends_at_once = false;
    due_init(&due, &engine, &kind);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    due_fini(&due);
    return 0;
}

static void take_now(void)
{
    dues_look(&engine);
    fire();
    assert_int_equal(takes, 1);
}

/* --- when --- */

TEST(the_first_instant_counts)
{
    due_at(&due, now_ms + 500);
    due_at(&due, now_ms + 9000);
    assert_int_equal(timer_at_ms, now_ms + 500);
    due_at(&due, now_ms + 20);
    fire();
    assert_int_equal(takes, 1);
}

TEST(the_clock_is_looked_at_each_minute)
{
    int64_t at_ms = now_ms + 10 * MINUTE_MS;

    due_at(&due, at_ms);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(timer_at_ms, now_ms + MINUTE_MS);
        fire();
        assert_int_equal(takes, 0);
    }
    now_ms = at_ms; /* the clock was set forward */
    fire();
    assert_int_equal(takes, 1);
}

TEST(no_start_begins_within_a_pause)
{
    due.pause_boot_ms = now_ms + 2 * MINUTE_MS;
    dues_look(&engine);
    fire();
    assert_int_equal(takes, 0);
    fire();
    assert_int_equal(takes, 1);
}

TEST(an_engine_without_shards_does_not_look)
{
    engine.shards[0].state = SHARD_NONE;
    dues_look(&engine);
    fire();
    assert_int_equal(takes, 0);
    assert_null(timer);
    engine.shards[0].state = SHARD_OWNED;
    take_now();
}

/* --- a batch --- */

TEST(rows_begin_in_order_and_no_more_at_once_than_may)
{
    take_now();
    due_rows(&due, 5);
    assert_int_equal(begun_count, AT_ONCE_MAX);
    due_ended(&due);
    assert_int_equal(begun_count, 4);
    for (int i = 0; i < 4; i++) {
        assert_null(deferred);
        due_ended(&due);
    }
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(begun[i], i);
    }
    run_deferred();
    assert_int_equal(overs, 1);
}

TEST(rows_that_end_at_once_end_the_batch_once_and_later)
{
    ends_at_once = true;
    take_now();
    due_rows(&due, 10);
    assert_int_equal(begun_count, 10);
    assert_int_equal(overs, 0);
    run_deferred();
    assert_int_equal(overs, 1);
}

TEST(a_batch_is_over_before_the_next_is_looked_for)
{
    take_now();
    due_rows(&due, 1);
    dues_look(&engine);
    assert_null(timer);
    due_ended(&due);
    run_deferred();
    fire();
    assert_int_equal(takes, 2);
}

TEST(once_stopped_no_row_begins_and_nothing_is_looked_for)
{
    take_now();
    due_rows(&due, 10);
    dues_stop(&engine);
    for (int i = 0; i < AT_ONCE_MAX; i++) {
        due_ended(&due);
    }
    assert_int_equal(begun_count, AT_ONCE_MAX);
    run_deferred();
    assert_int_equal(overs, 0); /* the store may be gone */
    dues_look(&engine);
    assert_null(timer);
}

TEST_PROGRAM_EACH(setup, teardown)
