/* What the kernel says of our memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/resident.h"

static void memory_that_is_used_is_seen(void **state)
{
    enum { MORE = 64 << 20 };
    size_t before = resident_bytes();
    char *memory = malloc(MORE);

    (void)state;
    assert_non_null(memory);
    memset(memory, 1, MORE);
    assert_true(before > 0);
    assert_true(resident_bytes() >= before + MORE / 2);
    assert_int_equal(memory[MORE / 2], 1);
    free(memory);
}

static void there_is_more_than_we_have(void **state)
{
    (void)state;
    assert_true(resident_bytes_there() > resident_bytes());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_is_used_is_seen),
        cmocka_unit_test(there_is_more_than_we_have),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
