/* The setting --retention: which sagas are kept for how long, and the sentence for each fault. */
#include <string.h>

#include "run/saga/retention_rules.h"
#include "tests/lib/test.h"

#define DAY INT64_C(86400000)

TEST(a_rule_holds_for_its_namespace_and_the_one_without_for_all_others)
{
    static const struct {
        const char *rules, *namespace;
        int64_t ms;
    } cases[] = {
        {NULL, "a", 0},
        {"30d", "a", 30 * DAY},
        {"30d,a=60d", "a", 60 * DAY},
        {"a=60d,30d", "a", 60 * DAY},
        {"a=60d,30d", "b", 30 * DAY},
        {"a=1h", "b", 0},
        {"a=1h", "aa", 0},
        {"aa=1h,a=2h", "a", 7200000},
        {"1500ms", "a", 1500},
    };
    struct err err = {0};

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(retention_rules_check(cases[i].rules, &err), ERR_OK);
        assert_int_equal(retention_rules_ms(cases[i].rules, slice_of(cases[i].namespace)), cases[i].ms);
    }
}

TEST(what_cannot_be_read_is_refused)
{
    static const struct {
        const char *rules, *why;
    } cases[] = {
        {"", "cannot be read at \"\""},
        {"soon", "cannot be read at \"soon\""},
        {"0s", "cannot be read at \"0s\""},
        {"400d", "cannot be read at \"400d\""},
        {"30d,", "cannot be read at \"\""},
        {"a=", "cannot be read at \"\""},
        {"=1h", "without the name of its namespace"},
        {"a=1h=2h", "cannot be read at \"1h=2h\""},
        {"30d,20d", "two rules for the same sagas"},
        {"a=1h,30d,a=2h", "two rules for the same sagas"},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct err err = {0};

        assert_int_equal(retention_rules_check(cases[i].rules, &err), ERR_CONFIG);
        if (!strstr(err.message, cases[i].why)) {
            fail_msg("%s: %s", cases[i].rules, err.message);
        }
    }
}

TEST_PROGRAM(NULL, NULL)
