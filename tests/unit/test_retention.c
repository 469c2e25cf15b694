/*
 * The pace of forgetting: one batch at a time, a tenth of the time while turns wait for their commit, and all of the
 * time while none does. The database and the clock are stand-ins: due sagas are only a number, and a batch takes as
 * long as the test says.
 */
#include <stdlib.h>
#include <string.h>

#include "base/metric.h"
#include "run/engine_state.h"
#include "run/saga/due.h"
#include "run/saga/live.h"
#include "run/saga/rests.h"
#include "run/saga/retention.h"
#include "run/saga/saga_room.h"
#include "run/shard/shard.h"
#include "tests/lib/test.h"
#include "tests/unit/stand_in_loop.h"

enum { EPOCH = 7 };

static struct saga_room room;
static struct engine engine;

static size_t due_count;                     /* sagas whose time is over */
static int64_t overdue_ms, first_overdue_ms; /* how long they are overdue, and the first of them */
static int64_t later_ms;                     /* when the next saga becomes due; INT64_MAX for never */
static int64_t read_ms, forget_ms;           /* how long the database takes */
static size_t turns_waiting;                 /* turns of other sagas that wait at any time */
static bool store_is_gone;
static bool is_in_memory; /* the saga of every row is in memory */
static enum err_code read_code, forget_code;

static struct due_take *reading;
static struct forget *forgetting[512];
static size_t forgetting_count;

static size_t reads, most_at_once, forgotten;
static int64_t working_ms;
static size_t lost_shards;

/* --- stand-ins --- */

void __wrap_store_due_take(struct store *store, struct due_take *take);
void __wrap_store_forget(struct store *store, struct forget *forget);
size_t __wrap_store_appends_waiting(const struct store *store);
void __wrap_shard_fenced(struct engine *of, uint32_t shard, int64_t epoch);
struct live *__wrap_live_find(const struct engine *of, struct saga_id id);

void __wrap_store_due_take(struct store *store, struct due_take *take)
{
    (void)store;
    assert_true(!reading && forgetting_count == 0); /* one batch at a time */
    assert_int_equal(take->limit, 0);
    assert_in_range(take->forget_limit, 1, 500);
    reads++;
    reading = take;
}

void __wrap_store_forget(struct store *store, struct forget *forget)
{
    (void)store;
    assert_true(forgetting_count < 500 && forget->epoch == EPOCH);
    forgetting[forgetting_count++] = forget;
}

size_t __wrap_store_appends_waiting(const struct store *store)
{
    (void)store;
    assert_false(store_is_gone);
    return turns_waiting;
}

struct live *__wrap_live_find(const struct engine *of, struct saga_id id)
{
    static struct live here;

    (void)of;
    (void)id;
    return is_in_memory ? &here : NULL;
}

void __wrap_shard_fenced(struct engine *of, uint32_t shard, int64_t epoch)
{
    assert_ptr_equal(of, &engine);
    assert_int_equal(epoch, EPOCH);
    lost_shards += engine.shards[shard].state != SHARD_NONE;
    engine.shards[shard].state = SHARD_NONE;
}

/* --- the database answers --- */

static void run_deferred(void)
{
    struct deferred *run = deferred;

    if (run) {
        deferred = NULL;
        run->run(run);
    }
}

static void answer_read(void)
{
    struct due_take *take = reading;
    struct due_row rows[500];

    reading = NULL;
    now_ms += read_ms;
    working_ms += read_ms;
    memset(rows, 0, sizeof(rows));
    take->read.code = read_code;
    if (read_code == ERR_OK) {
        take->count = due_count < take->forget_limit ? due_count : take->forget_limit;
        take->more = take->count == take->forget_limit;
        take->next_ms = later_ms;
        take->rows = rows;
        for (size_t i = 0; i < take->count; i++) {
            rows[i] = (struct due_row){
                .shard = (uint32_t)(i % 2), .forget = true, .at_ms = now_ms - (i == 0 ? first_overdue_ms : overdue_ms)};
        }
    }
    take->read.done(&take->read);
    run_deferred();
}

static void answer_forgets(void)
{
    size_t count = forgetting_count;

    now_ms += forget_ms;
    working_ms += forget_ms;
    most_at_once = count > most_at_once ? count : most_at_once;
    forgetting_count = 0;
    if (forget_code == ERR_OK) {
        due_count -= count;
        forgotten += count;
    }
    for (size_t i = 0; i < count; i++) {
        forgetting[i]->code = forget_code;
        forgetting[i]->done(forgetting[i]);
    }
    run_deferred();
}

/* Runs until nothing more happens before `until_ms`. */
static void run_until(int64_t until_ms)
{
    for (;;) {
        if (reading) {
            answer_read();
        } else if (forgetting_count > 0) {
            answer_forgets();
        } else if (timer && timer_at_ms <= until_ms) {
            struct timer *fired = timer;

            now_ms = timer_at_ms > now_ms ? timer_at_ms : now_ms;
            timer = NULL;
            fired->fire(fired);
        } else {
            break;
        }
    }
    now_ms = until_ms > now_ms ? until_ms : now_ms;
}

static int setup(void **state)
{
    (void)state;
    memset(&engine, 0, sizeof(engine));
    engine.saga_room = &room;
    engine.options.forget_share = 10;
    for (uint32_t i = 0; i < 2; i++) {
        engine.shards[i] = (struct shard){.engine = &engine, .number = i, .state = SHARD_OWNED, .epoch = EPOCH};
    }
    now_ms = 1000000;
    timer = NULL;
    deferred = NULL;
    due_count = 0;
    overdue_ms = first_overdue_ms = 0;
    later_ms = INT64_MAX;
    read_ms = 2;
    forget_ms = 18;
    turns_waiting = 0;
    read_code = forget_code = ERR_OK;
    store_is_gone = false;
    reading = NULL;
    forgetting_count = 0;
    reads = most_at_once = forgotten = lost_shards = 0;
    working_ms = 0;
    list_init(&room.dues);
    room.rests = rests_new(&engine);
    room.retention = retention_new(&engine);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dues_stop(&engine);
    retention_free(room.retention);
    rests_free(room.rests);
    return 0;
}

/* --- the promises --- */

TEST(a_million_that_are_due_at_once_take_a_tenth_of_the_time_while_turns_wait)
{
    int64_t begun_ms = now_ms;

    due_count = 1000000;
    turns_waiting = 1;
    dues_look(&engine);
    run_until(begun_ms + 60000);
    assert_int_equal(most_at_once, 500);
    assert_in_range(working_ms, 5900, 6020);
    assert_int_equal(forgotten, reads * 500);
}

TEST(the_share_is_a_setting)
{
    int64_t begun_ms = now_ms;

    engine.options.forget_share = 50;
    due_count = 1000000;
    turns_waiting = 1;
    dues_look(&engine);
    run_until(begun_ms + 60000);
    assert_in_range(working_ms, 29900, 30020);
}

TEST(what_is_overdue_for_long_gets_more_of_the_time_up_to_half)
{
    const struct {
        int64_t share, overdue_ms, least_ms, most_ms; /* of a minute */
    } cases[] = {
        {10, 600000, 5900, 6020},     {10, 1200000, 10500, 10900},  {10, 2100000, 17900, 18300},
        {10, 3600000, 29900, 30020},  {10, 86400000, 29900, 30020}, {40, 86400000, 29900, 30020},
        {60, 86400000, 35900, 36600},
    };

    turns_waiting = 1;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        engine.options.forget_share = cases[i].share;
        overdue_ms = first_overdue_ms = cases[i].overdue_ms;
        due_count = 4000000;
        dues_look(&engine);
        run_until(now_ms + 60000); /* the batch that began with the old share ends */
        working_ms = 0;
        run_until(now_ms + 60000);
        assert_in_range(working_ms, cases[i].least_ms, cases[i].most_ms);
    }
}

TEST(one_that_stays_for_long_gives_the_others_no_larger_share)
{
    turns_waiting = 1;
    first_overdue_ms = 86400000;
    due_count = 1000000;
    dues_look(&engine);
    run_until(now_ms + 60000);
    assert_in_range(working_ms, 5900, 6020);
}

TEST(nothing_holds_it_back_while_no_turn_waits)
{
    int64_t begun_ms = now_ms;

    due_count = 1000000;
    dues_look(&engine);
    run_until(begun_ms + 60000);
    assert_int_equal(due_count, 0);
    assert_int_equal(forgotten, 1000000);
    assert_int_equal(working_ms, 2000 * 20 + 2); /* 2000 batches, and one look that found nothing */
}

TEST(what_ends_bit_by_bit_goes_together)
{
    int64_t begun_ms = now_ms;

    for (int i = 0; i < 1000; i++) { /* one saga every 10 ms */
        due_count++;
        retention_due(&engine, now_ms);
        run_until(begun_ms + (i + 1) * 10);
    }
    assert_in_range(reads, 9, 11);
    run_until(now_ms + 2000);
    assert_int_equal(forgotten, 1000);
}

TEST(a_slow_database_gets_smaller_batches_and_longer_pauses)
{
    int64_t begun_ms = now_ms;
    size_t size;

    due_count = 1000000;
    turns_waiting = 1;
    forget_ms = 400;
    dues_look(&engine);
    run_until(begun_ms + 60000);
    assert_in_range(working_ms, 5600, 6400);
    most_at_once = 0;
    run_until(now_ms + 10000);
    assert_in_range(most_at_once, 1, 20);
    forget_ms = 5;
    run_until(now_ms + 60000);
    size = most_at_once;
    assert_int_equal(size, 500); /* and large batches again */
}

TEST(nothing_is_asked_while_nothing_is_due)
{
    later_ms = now_ms + 3600000;
    dues_look(&engine);
    run_until(now_ms + 3590000);
    assert_int_equal(reads, 1);
    due_count = 1;
    later_ms = INT64_MAX;
    run_until(now_ms + 11000);
    assert_int_equal(forgotten, 1);
    reads = 0;
    run_until(now_ms + 3600000);
    assert_int_equal(reads, 0);
}

TEST(what_could_not_be_read_or_was_refused_is_tried_again_and_not_at_once)
{
    due_count = 3;
    read_code = ERR_STORE;
    dues_look(&engine);
    run_until(now_ms + 10000);
    assert_in_range(reads, 8, 11);
    read_code = ERR_OK;
    forget_code = ERR_STORE;
    run_until(now_ms + 2000);
    reads = 0;
    run_until(now_ms + 120000);
    assert_in_range(reads, 1, 3);
    forget_code = ERR_OK;
    run_until(now_ms + 61000);
    assert_int_equal(due_count, 0);
}

TEST(a_shard_that_is_not_ours_any_more_is_told_of_and_left_alone)
{
    due_count = 100;
    forget_code = ERR_FENCED;
    dues_look(&engine);
    run_until(now_ms + 100);
    assert_int_equal(lost_shards, 2);
    reads = 0;
    run_until(now_ms + 600000);
    assert_int_equal(reads, 0);
}

/* All due sagas are one and the same here. */
TEST(what_is_in_memory_is_not_removed_before_it_has_left)
{
    due_count = 100;
    is_in_memory = true;
    dues_look(&engine);
    run_until(now_ms + 5000);
    assert_int_equal(forgotten, 0);
    assert_true(reads > 1 && reads < 20); /* retention looks again, but not all the time */
    is_in_memory = false;
    run_until(now_ms + 5000);
    assert_int_equal(forgotten, 100);
}

TEST(who_leaves_begins_no_batch)
{
    due_count = 10000;
    dues_look(&engine);
    assert_non_null(timer);
    now_ms = timer_at_ms;
    timer->fire(timer);
    answer_read();
    assert_true(forgetting_count > 0);
    dues_stop(&engine);
    store_is_gone = true;
    forget_code =
        ERR_STOPPING; /* while the store closes, a hanging request ends with this code and tells retention later */
    answer_forgets();
    reads = 0;
    run_until(now_ms + 60000);
    dues_look(&engine);
    assert_null(timer);
    run_until(now_ms + 60000);
    assert_int_equal(reads, 0);
}

TEST_PROGRAM_EACH(setup, teardown)
