/*
 * What an engine keeps about calls that a rewound history may have forgotten: the ring of the calls made, what the
 * database is told about it, and what is looked up later. The clock and the log are stand-ins.
 */
#include <string.h>

#include "base/log.h"
#include "run/call/activity.h"
#include "run/saga/forgotten.h"
#include "run/saga/live.h"
#include "run/saga/saga_room.h"
#include "run/shard/shard.h"
#include "tests/lib/test.h"

enum { RING = 16384, LOGGED = 100, EPOCH = 7, SHARD = 3, REMEMBERED_MAX = 8 };
#define WALL_MS INT64_C(1700000000000)

static struct saga_room room;
static struct engine engine;
static struct shard shard;
static struct live live;
static int64_t now_ms;
static struct arena arena;

static struct live *in_memory[REMEMBERED_MAX];
static size_t remembered_count;

static size_t lines;
static const char *last_event;
static int64_t first_attempt; /* the attempt in the first line */

/* --- stand-ins --- */

int64_t __wrap_loop_wall_ms(const struct loop *loop);
void __wrap_log_write(enum log_level level, const char *event, const struct log_field *fields);
struct live *__wrap_lives_next(const struct engine *of, size_t *position);

struct live *__wrap_lives_next(const struct engine *of, size_t *position)
{
    assert_ptr_equal(of, &engine);
    return *position < remembered_count ? in_memory[(*position)++] : NULL;
}

int64_t __wrap_loop_wall_ms(const struct loop *loop)
{
    (void)loop;
    return now_ms;
}

void __wrap_log_write(enum log_level level, const char *event, const struct log_field *fields)
{
    assert_int_equal(level, LOG_LEVEL_ERROR);
    last_event = event;
    for (const struct log_field *field = fields; lines == 0 && field->type != LOG_FIELD_END; field++) {
        if (strcmp(field->name, "attempt") == 0) {
            first_attempt = field->value.i64;
        }
    }
    lines++;
}

/* --- the trial --- */

static int setup(void **state)
{
    (void)state;
    memset(&engine, 0, sizeof(engine));
    engine.saga_room = &room;
    memset(&live, 0, sizeof(live));
    now_ms = WALL_MS;
    lines = 0;
    last_event = NULL;
    first_attempt = 0;
    shard = (struct shard){.number = SHARD, .epoch = EPOCH};
    live.engine = &engine;
    live.shard = &shard;
    remembered_count = 0;
    arena_init(&arena, 4096);
    room.forgotten = forgotten_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    forgotten_free(room.forgotten);
    arena_fini(&arena);
    return 0;
}

static struct op_key key_of(uint32_t number)
{
    struct op_key key = {0};

    memset(&key, 0x5a, sizeof(key));
    memcpy(&key, &number, sizeof(number));
    return key;
}

/* Makes call `number`, counted from 1, a millisecond after the one before. The number is also that of its attempt and
 * of its record. */
static void make(uint32_t number, enum effect effect)
{
    struct activity activity = {.engine = &engine, .live = &live, .effect = effect, .operation_key = key_of(number)};

    activity.want.number = number;
    live.saga.seq = number;
    now_ms = WALL_MS + number;
    forgotten_made(&activity);
}

static void make_all(uint32_t count)
{
    for (uint32_t number = 1; number <= count; number++) {
        make(number, EFFECT_ONCE);
    }
}

static struct known_work know(void)
{
    struct known_work out = {.arena = &arena};

    forgotten_know(&engine, &out);
    return out;
}

/* Checks that the database is told of the calls `last` down to `first`, the newest first, and of no others. */
static void assert_knows(const struct known_work *out, uint32_t first, uint32_t last)
{
    assert_int_equal(out->call_count, last - first + 1);
    assert_int_equal(out->saga_count, out->call_count);
    assert_int_equal(out->left_out, 0);
    for (uint32_t i = 0; i < out->call_count; i++) {
        struct op_key key = key_of(last - i);

        assert_memory_equal(&out->calls[i].key, &key, sizeof(key));
        assert_int_equal(out->calls[i].attempts, last - i);
        assert_int_equal(out->calls[i].effect, EFFECT_ONCE);
        assert_int_equal(out->sagas[i].seq, last - i);
        assert_int_equal(out->sagas[i].epoch, EPOCH);
    }
}

/* --- the ring --- */

TEST(nothing_is_known_before_the_first_call)
{
    struct known_work out = know();

    assert_int_equal(out.call_count + out.saga_count + out.left_out, 0);
    assert_int_equal(out.calls_since_ms, 0);
    forgotten_log(&engine);
    assert_int_equal(lines, 0);
}

TEST(only_calls_that_must_not_be_made_twice_are_kept)
{
    struct known_work out;

    make(1, EFFECT_READ);
    make(2, EFFECT_IDEMPOTENT);
    make(3, EFFECT_KEYED);
    make(4, EFFECT_CHECKED);
    make(5, EFFECT_ONCE);
    out = know();
    assert_int_equal(out.call_count, 3);
    assert_int_equal(out.calls[0].effect, EFFECT_ONCE);
    assert_int_equal(out.calls[1].effect, EFFECT_CHECKED);
    assert_int_equal(out.calls[2].effect, EFFECT_KEYED);
}

/* The database is never told of a place to which no call was written. */
TEST(a_ring_with_one_free_place_tells_only_what_was_made)
{
    struct known_work out;

    make_all(RING - 1);
    out = know();
    assert_knows(&out, 1, RING - 1);
    assert_int_equal(out.calls_since_ms, 0);
}

/* While the ring has room for all calls, none is dropped, and calls are known from the beginning. */
TEST(a_ring_that_is_just_full_has_dropped_nothing)
{
    struct known_work out;

    make_all(RING);
    out = know();
    assert_knows(&out, 1, RING);
    assert_int_equal(out.calls_since_ms, 0);
}

/* One more call drops only the oldest, and the database is told since when calls are known. */
TEST(a_further_call_drops_the_oldest_and_the_answer_says_since_when_it_knows)
{
    struct known_work out;

    make_all(RING + 1);
    out = know();
    assert_knows(&out, 2, RING + 1);
    assert_int_equal(out.calls_since_ms, WALL_MS + 2);
}

TEST(a_ring_that_went_round_twice_keeps_the_newest)
{
    struct known_work out;

    make_all(2 * RING + 5);
    out = know();
    assert_knows(&out, RING + 6, 2 * RING + 5);
    assert_int_equal(out.calls_since_ms, WALL_MS + RING + 6);
}

/* No call is too old: only newer calls drop it. */
TEST(time_alone_drops_nothing)
{
    struct known_work out;

    make_all(3);
    now_ms += INT64_C(365) * 24 * 3600 * 1000;
    out = know();
    assert_knows(&out, 1, 3);
    assert_int_equal(out.calls_since_ms, 0);
}

TEST(people_are_told_of_the_last_calls_the_newest_first)
{
    make_all(3);
    forgotten_log(&engine);
    assert_int_equal(lines, 3);
    assert_string_equal(last_event, "call_may_be_forgotten");
    assert_int_equal(first_attempt, 3);
    lines = 0;
    make_all(RING + 1);
    forgotten_log(&engine);
    assert_int_equal(lines, LOGGED);
    assert_int_equal(first_attempt, RING + 1);
}

/* --- what is looked up --- */

TEST(a_call_counts_as_made_up_to_the_highest_attempt_noted)
{
    struct op_key key = key_of(1), other = key_of(2);

    assert_false(forgotten_call(&engine, &key, 1));
    forgotten_note(&engine, &key, 3);
    forgotten_note(&engine, &key, 2); /* two engines that knew less may tell it twice */
    assert_true(forgotten_call(&engine, &key, 1));
    assert_true(forgotten_call(&engine, &key, 3));
    assert_false(forgotten_call(&engine, &key, 4));
    assert_false(forgotten_call(&engine, &other, 1));
    forgotten_note(&engine, &key, 5);
    assert_true(forgotten_call(&engine, &key, 5));
    assert_false(forgotten_call(&engine, &key, 6));
}

/* --- sagas that were in memory --- */

static void remember(struct live *remembered, uint32_t of_shard, uint64_t seq)
{
    *remembered = (struct live){.engine = &engine, .shard = &shard};
    remembered->saga.id = saga_id_new(WALL_MS, of_shard);
    remembered->saga.seq = seq;
    assert_true(remembered_count < REMEMBERED_MAX);
    in_memory[remembered_count++] = remembered;
}

TEST(a_saga_that_is_read_back_shorter_than_it_was_is_told_once)
{
    struct live saga;

    remember(&saga, SHARD, 9);
    forgotten_remember(&engine);
    saga.saga.seq = 8;
    forgotten_compare(&saga);
    assert_int_equal(lines, 1);
    assert_string_equal(last_event, "saga_rewound");
    forgotten_compare(&saga);
    forgotten_tell(&engine, SHARD);
    assert_int_equal(lines, 1);
}

TEST(a_saga_that_is_read_back_whole_is_not_told)
{
    struct live saga;

    remember(&saga, SHARD, 9);
    forgotten_remember(&engine);
    forgotten_compare(&saga);
    forgotten_tell(&engine, SHARD);
    assert_int_equal(lines, 0);
}

TEST(sagas_not_read_back_are_told_with_their_shard_and_once)
{
    struct live sagas[3];

    remember(&sagas[0], SHARD, 9);
    remember(&sagas[1], SHARD, 9);
    remember(&sagas[2], SHARD + 1, 9);
    forgotten_remember(&engine);
    forgotten_tell(&engine, SHARD);
    assert_int_equal(lines, 2);
    assert_string_equal(last_event, "saga_not_loaded");
    forgotten_tell(&engine, SHARD);
    assert_int_equal(lines, 2);
    forgotten_tell(&engine, SHARD + 1);
    assert_int_equal(lines, 3);
}

TEST_PROGRAM_EACH(setup, teardown)
