/* What servers say in Retry-After, and what is made of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "adapters/http_parts.h"

#define NOW_MS INT64_C(1700000000000) /* Tue, 14 Nov 2023 22:13:20 GMT */
#define WEEK_MS (INT64_C(7) * 24 * 3600 * 1000)

static const struct {
    const char *name, *value;
    int64_t ms;
} table[] = {
    {"seconds", "120", 120000},
    {"none", "", 0},
    {"zero", "0", 0},
    {"more than a week is a week", "604801", WEEK_MS},
    {"as many as there are", "9223372036854775807", WEEK_MS},
    {"the past is now", "-1", 0},
    {"the far past too", "-9223372036854775808", 0},
    {"a date", "Tue, 14 Nov 2023 22:13:30 GMT", 10000},
    {"a date in the past", "Tue, 14 Nov 2023 22:13:10 GMT", 0},
    {"a date in ten years", "Mon, 14 Nov 2033 22:13:20 GMT", WEEK_MS},
    {"words", "soon", 0},
    {"a date with more behind it", "Tue, 14 Nov 2023 22:13:30 GMT;", 0},
};

static void retry_after_is_honoured_within_bounds(void **state)
{
    struct arena arena;

    (void)state;
    arena_init(&arena, 1024);
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        int64_t ms = http_retry_after_ms(slice_of(table[i].value), NOW_MS, &arena);

        if (ms != table[i].ms) {
            fail_msg("%s: %lld", table[i].name, (long long)ms);
        }
    }
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retry_after_is_honoured_within_bounds),
    };

    return cmocka_run_group_tests_name("http_parts", tests, NULL, NULL);
}
