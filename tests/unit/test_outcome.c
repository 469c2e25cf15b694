/* Each outcome has a name, and the name finds the outcome. */
#include "base/outcome.h"
#include "tests/lib/test.h"

TEST(each_outcome_is_found_by_its_name_and_nothing_else_is)
{
    enum outcome_kind kind;

    for (int i = 0; i < OUTCOME_KIND_COUNT; i++) {
        assert_true(outcome_parse(slice_of(outcome_name((enum outcome_kind)i)), &kind));
        assert_int_equal(kind, i);
    }
    assert_false(outcome_parse(SLICE("Completed"), &kind));
    assert_false(outcome_parse(SLICE(""), &kind));
    assert_false(outcome_parse(SLICE_NONE, &kind));
}

TEST_PROGRAM(NULL, NULL)
