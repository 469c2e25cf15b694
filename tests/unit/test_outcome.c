/* Names of outcomes go both ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/outcome.h"

static void each_outcome_is_found_by_its_name_and_nothing_else_is(void **state)
{
    enum outcome_kind kind;

    (void)state;
    for (int i = 0; i < OUTCOME_KIND_COUNT; i++) {
        assert_true(outcome_parse(slice_of(outcome_name((enum outcome_kind)i)), &kind));
        assert_int_equal(kind, i);
    }
    assert_false(outcome_parse(SLICE("Completed"), &kind));
    assert_false(outcome_parse(SLICE(""), &kind));
    assert_false(outcome_parse(SLICE_NONE, &kind));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_outcome_is_found_by_its_name_and_nothing_else_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
