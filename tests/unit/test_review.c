/* What `sagactl check` says of a document without a service: see review.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "run/review.h"

static size_t faults_of(const char *text, struct arena *arena, char *first, size_t bytes)
{
    struct tool_source none = {0};
    struct document document;
    struct faults faults;

    faults_init(&faults, arena);
    review_document(slice_of(text), &none, arena, &faults, &document);
    if (faults.count > 0) {
        (void)snprintf(first, bytes, "%.*s", (int)faults.items[0].detail.len, faults.items[0].detail.ptr);
    }
    return faults.count;
}

static void programs_and_settings_are_looked_at_without_a_service(void **state)
{
    struct arena arena;
    char first[512] = "";

    (void)state;
    arena_init(&arena, 4096);
    assert_int_equal(faults_of("{\"tools\":[{\"name\":\"t\",\"builtin\":{\"do\":\"echo\"},\"effect\":\"read\","
                               "\"result\":\"${ [.response | keys[]] }\"}]}", &arena, first, sizeof(first)), 0);
    assert_int_equal(faults_of("{\"tools\":[{\"name\":\"t\",\"builtin\":{\"do\":\"echo\"},\"effect\":\"read\","
                               "\"result\":\"${ [.response | no_such_function] }\"}]}", &arena, first, sizeof(first)), 1);
    assert_non_null(strstr(first, "no_such_function"));
    assert_true(faults_of("{\"tools\":[{\"name\":\"t\",\"builtin\":{\"do\":\"juggle\"},\"effect\":\"read\"}]}", &arena, first, sizeof(first)) > 0);
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_and_settings_are_looked_at_without_a_service),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
