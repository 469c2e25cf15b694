/* Ids keep their order, their version bits, and their shard. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/id.h"
#include "tests/lib/test.h"

static const int64_t now_ms = INT64_C(1700000000000);

TEST(text_and_back_is_the_same_id)
{
    struct uuid uuid, back;
    char text[UUID_TEXT_BYTES];

    assert_true(uuid_parse(SLICE("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"), &uuid)); /* the example of RFC 9562, A.6 */
    uuid_text(&uuid, text);
    assert_string_equal(text, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
    assert_int_equal(uuid_v7_ms(&uuid), INT64_C(1645557742000));
    assert_true(uuid_parse(slice_of(text), &back));
    assert_true(uuid_equal(&uuid, &back));
    assert_int_equal(uuid_compare(&uuid, &back), 0);
    back.bytes[15]++;
    assert_false(uuid_equal(&uuid, &back));
    assert_true(uuid_compare(&uuid, &back) < 0);
    assert_true(uuid_is_nil(&(struct uuid){{0}}));
    assert_false(uuid_is_nil(&uuid));
}

TEST(anything_else_is_no_id)
{
    static const char *const texts[] = {
        "",
        "017f22e2",
        "017f22e279b07cc398c4dc0c0c07398f",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398f0",
        "{17f22e2-79b0-7cc3-98c4-dc0c0c07398}",
        "017f22e2x79b0-7cc3-98c4-dc0c0c07398f",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398g",
        "017f22e-279b0-7cc3-98c4-dc0c0c07398f",
        " 17f22e2-79b0-7cc3-98c4-dc0c0c07398f",
    };
    struct uuid uuid = {{7}};

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_false(uuid_parse(slice_of(texts[i]), &uuid));
    }
    assert_false(uuid_parse(SLICE_NONE, &uuid));
    assert_int_equal(uuid.bytes[0], 7);
}

TEST(a_v8_is_the_first_128_bits_with_version_and_variant)
{
    struct digest digest;
    struct uuid uuid;

    memset(digest.bytes, 0xff, sizeof(digest.bytes));
    uuid = uuid_v8(&digest);
    assert_int_equal(uuid.bytes[6], 0x8f);
    assert_int_equal(uuid.bytes[8], 0xbf);
    memset(digest.bytes, 0, sizeof(digest.bytes));
    uuid = uuid_v8(&digest);
    assert_int_equal(uuid.bytes[6], 0x80);
    assert_int_equal(uuid.bytes[8], 0x80);
    for (int i = 0; i < 32; i++) {
        digest.bytes[i] = (uint8_t)i;
    }
    uuid = uuid_v8(&digest);
    for (int i = 0; i < 16; i++) {
        if (i != 6 && i != 8) {
            assert_int_equal(uuid.bytes[i], i);
        }
    }
}

TEST(v7_rise_within_a_millisecond_and_when_the_clock_goes_back)
{
    struct uuid last = uuid_v7(now_ms);

    for (int i = 0; i < 20000; i++) { /* more than the counter of one millisecond holds */
        struct uuid uuid = uuid_v7(i < 10000 ? now_ms : now_ms - 3600000);

        assert_true(uuid_compare(&last, &uuid) < 0);
        assert_int_equal(uuid.bytes[6] >> 4, 7);
        assert_int_equal(uuid.bytes[8] >> 6, 2);
        last = uuid;
    }
    assert_in_range(uuid_v7_ms(&last), now_ms, now_ms + 5);
    last = uuid_v7(now_ms + 1000);
    assert_int_equal(uuid_v7_ms(&last), now_ms + 1000);
}

/* --- several threads --- */

enum { THREADS = 2, IDS_OF_THREAD = 40000 };

static void *make_ids(void *context)
{
    struct uuid *ids = context;

    for (size_t i = 0; i < IDS_OF_THREAD; i++) {
        ids[i] = uuid_v7(1000000);
    }
    return NULL;
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct uuid));
}

TEST(threads_that_make_ids_at_once_make_none_twice_and_share_no_random_bytes)
{
    struct uuid *ids = memory_alloc(sizeof(*ids) * THREADS * IDS_OF_THREAD);
    pthread_t threads[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, make_ids, ids + i * IDS_OF_THREAD), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (size_t i = 0; i < THREADS; i++) { /* each thread's own ids rise by one */
        for (size_t k = 1; k < IDS_OF_THREAD; k++) {
            assert_true(compare_ids(&ids[i * IDS_OF_THREAD + k - 1], &ids[i * IDS_OF_THREAD + k]) < 0);
        }
    }
    for (size_t i = 0; i < THREADS * IDS_OF_THREAD; i++) { /* what is random is different by itself */
        memset(ids[i].bytes, 0, 8);
    }
    qsort(ids, (size_t)THREADS * IDS_OF_THREAD, sizeof(*ids), compare_ids);
    for (size_t i = 1; i < (size_t)THREADS * IDS_OF_THREAD; i++) {
        assert_true(compare_ids(&ids[i - 1], &ids[i]) != 0);
    }
    free(ids);
}

TEST(a_saga_id_carries_its_shard_and_stays_a_v7)
{
    static const uint32_t shards[] = {0, 1, 63, 255, 256, 4095, 65535};

    for (size_t i = 0; i < COUNT_OF(shards); i++) {
        struct saga_id id = saga_id_new(now_ms + 10000, shards[i]);

        assert_int_equal(saga_id_shard(id), shards[i]);
        assert_int_equal(id.uuid.bytes[14], shards[i] >> 8);
        assert_int_equal(id.uuid.bytes[15], shards[i] & 255);
        assert_int_equal(id.uuid.bytes[6] >> 4, 7);
        assert_int_equal(id.uuid.bytes[8] >> 6, 2);
        assert_int_equal(uuid_v7_ms(&id.uuid), now_ms + 10000);
    }
}

TEST(the_beginning_of_an_id_is_a_range)
{
    struct uuid first, last;
    char text[UUID_TEXT_BYTES];

    assert_true(uuid_range_parse(SLICE("019b3c52"), &first, &last));
    uuid_text(&first, text);
    assert_string_equal(text, "019b3c52-0000-0000-0000-000000000000");
    uuid_text(&last, text);
    assert_string_equal(text, "019b3c52-ffff-ffff-ffff-ffffffffffff");
    assert_true(uuid_range_parse(SLICE("019b3c52-0000-7000-8000-000000000001"), &first, &last));
    assert_true(uuid_equal(&first, &last));
    assert_false(uuid_range_parse(SLICE("019b3c5"), &first, &last));
    assert_false(uuid_range_parse(SLICE("019b3c520000"), &first, &last)); /* the hyphens are part of an id */
    assert_false(uuid_range_parse(SLICE("019b3c5x"), &first, &last));
    assert_false(uuid_range_parse(SLICE("019b3c52-0000-7000-8000-0000000000010"), &first, &last));
}

TEST_PROGRAM(NULL, NULL)
