/* Effect classes and the arithmetic of retries. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/language/policy.h"
#include "tests/lib/test.h"

static struct op_key key_of(uint8_t n)
{
    struct op_key key = {0};

    for (size_t i = 0; i < sizeof(key.uuid.bytes); i++) {
        key.uuid.bytes[i] = (uint8_t)(n * 31 + i * 7);
    }
    return key;
}

TEST(each_class_has_the_attempts_of_the_contract)
{
    static const struct {
        const char *name;
        uint32_t attempts;
        int64_t initial_ms;
    } cases[] = {
        {"read", 3, 1000}, {"idempotent", 3, 1000}, {"keyed", 3, 2000}, {"checked", 5, 5000}, {"once", 1, 1000}};

    assert_int_equal(COUNT_OF(cases), EFFECT_COUNT);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        enum effect effect;

        assert_true(effect_parse(slice_of(cases[i].name), &effect));
        assert_string_equal(effect_name(effect), cases[i].name);
        struct retry_policy policy = retry_policy_default(effect);

        assert_int_equal(policy.max_attempts, cases[i].attempts);
        assert_int_equal(policy.initial_ms, cases[i].initial_ms);
        assert_int_equal(policy.max_ms, 5 * 60 * 1000);
        assert_int_equal(policy.factor_milli, 2000);
        assert_int_equal(policy.max_unsent, 10);
    }
}

TEST(an_unknown_class_is_no_class)
{
    enum effect effect;

    assert_false(effect_parse(SLICE("Keyed"), &effect));
    assert_false(effect_parse(SLICE(""), &effect));
    assert_false(effect_parse(SLICE_NONE, &effect));
}

TEST(a_delay_lies_above_zero_and_within_the_backoff)
{
    struct retry_policy policy = retry_policy_default(EFFECT_READ);

    for (uint8_t k = 0; k < 50; k++) {
        struct op_key key = key_of(k);
        int64_t backoff = 1000;

        for (uint32_t number = 1; number < 40; number++) {
            int64_t due = retry_due_ms(&policy, number, 1000000, 0, &key);

            assert_true(due > 1000000);
            assert_true(due <= 1000000 + backoff);
            backoff = backoff * 2 < policy.max_ms ? backoff * 2 : policy.max_ms;
        }
    }
}

TEST(jitter_is_the_same_in_a_replay_and_differs_between_keys_and_attempts)
{
    struct retry_policy policy = retry_policy_default(EFFECT_KEYED);
    struct op_key a = key_of(1), b = key_of(2);

    assert_int_equal(retry_due_ms(&policy, 3, 5, 0, &a), retry_due_ms(&policy, 3, 5, 0, &a));
    assert_int_not_equal(retry_due_ms(&policy, 3, 5, 0, &a), retry_due_ms(&policy, 3, 5, 0, &b));
    assert_int_not_equal(retry_due_ms(&policy, 9, 5, 0, &a), retry_due_ms(&policy, 10, 5, 0, &a));
}

TEST(jitter_is_spread_over_the_whole_backoff)
{
    struct retry_policy policy = {.max_attempts = 3, .initial_ms = 1000, .max_ms = 1000, .factor_milli = 2000};
    int quarters[4] = {0};

    for (int k = 0; k < 200; k++) {
        struct op_key key = key_of((uint8_t)k);

        quarters[(retry_due_ms(&policy, 1, 0, 0, &key) - 1) / 250]++;
    }
    for (int i = 0; i < 4; i++) {
        assert_true(quarters[i] > 20);
    }
}

TEST(a_receivers_wish_is_honoured_even_beyond_the_longest_delay)
{
    struct retry_policy policy = retry_policy_default(EFFECT_READ);
    struct op_key key = key_of(3);

    assert_int_equal(retry_due_ms(&policy, 1, 1000, 3600000, &key), 3601000);
    assert_true(retry_due_ms(&policy, 1, INT64_MAX - 5, 3600000, &key) == INT64_MAX);
}

TEST(a_huge_number_of_tries_or_a_factor_of_one_does_not_overflow)
{
    struct retry_policy flat = {.max_attempts = 1000, .initial_ms = 100, .max_ms = 300000, .factor_milli = 1000};
    struct retry_policy steep = {
        .max_attempts = 1000, .initial_ms = INT64_MAX / 4000, .max_ms = INT64_MAX / 2, .factor_milli = 10000};
    struct op_key key = key_of(4);

    assert_true(retry_due_ms(&flat, UINT32_MAX, 0, 0, &key) <= 100);
    assert_true(retry_due_ms(&steep, UINT32_MAX, 0, 0, &key) > 0);
}

TEST(what_is_written_lies_on_top_of_what_is_not)
{
    struct retry_policy own = {.max_attempts = 9, .factor_milli = 1000};
    struct retry_policy policy = retry_policy_with(retry_policy_default(EFFECT_KEYED), &own);

    assert_int_equal(policy.max_attempts, 9);
    assert_int_equal(policy.factor_milli, 1000);
    assert_int_equal(policy.initial_ms, 2000);
    assert_int_equal(policy.max_unsent, 10);
    assert_int_equal(policy.max_ms, 300000);
    own = (struct retry_policy){.initial_ms = 600000};
    assert_int_equal(retry_policy_with(retry_policy_default(EFFECT_KEYED), &own).max_ms, 600000);
    own.max_ms = 700000;
    assert_int_equal(retry_policy_with(retry_policy_default(EFFECT_KEYED), &own).max_ms, 700000);
}

TEST(the_stricter_of_two_classes_allows_less)
{
    static const enum effect order[] = {EFFECT_READ, EFFECT_IDEMPOTENT, EFFECT_KEYED, EFFECT_CHECKED, EFFECT_ONCE};

    for (size_t i = 0; i < COUNT_OF(order); i++) {
        for (size_t k = 0; k < COUNT_OF(order); k++) {
            assert_int_equal(effect_stricter(order[i], order[k]), order[i > k ? i : k]);
        }
    }
}

TEST(the_page_about_tools_has_the_attempts_of_each_class)
{
    static char text[64 << 10];
    char path[512], row[64];
    const char *folder = getenv("SCHEMA_DIR");

    (void)snprintf(path, sizeof(path), "%s/tools.md", folder ? folder : "schema");
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    for (enum effect effect = 0; effect < EFFECT_COUNT; effect++) {
        struct retry_policy policy = retry_policy_default(effect);

        (void)snprintf(row, sizeof(row), "\n| `%s` | %u | %llds | ", effect_name(effect), policy.max_attempts,
                       (long long)policy.initial_ms / 1000);
        if (!strstr(text, row)) {
            fail_msg("schema/tools.md has no row %s", row + 1);
        }
    }
}

TEST_PROGRAM(NULL, NULL)
