/* Plain paths give the same values and errors as libjq. */
#include <stdio.h>
#include <string.h>

#include "base/canon.h"
#include "base/json.h"
#include "core/language/expression.h"
#include "io/process/jq.h"
#include "tests/lib/test.h"

#define PATHS 40
#define SEEN_MIN 15

static const char *const inputs[] = {
    "{\"a\":{\"b\":[1,2,{\"c\":null}],\"b c\":\"x\"},\"0\":false}",
    "[[],[1],{\"a\":[[-1.5]]}]",
    "\"text\"",
    "17",
    "null",
    "true",
    "{}",
    "{\"\\u0061\":{\"b\":{\"c\":[{\"a\":1},{\"a\":2}]}}}",
};

static const char *const parts[] = {".a",  ".b",   ".c",  "[\"b c\"]", "[\"a\"]", "[0]",
                                    "[1]", "[-1]", "[7]", "[-7]",      ".\"b\"",  "[ 2 ]"};

static uint64_t next_random(uint64_t *seed) /* xorshift64* draws the same paths in every run */
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return *seed * UINT64_C(2685821657736338717);
}

static struct slice random_path(uint64_t *seed, struct arena *arena)
{
    struct slice path = SLICE(".input");
    size_t count = next_random(seed) % 4;

    for (size_t i = 0; i < count; i++) {
        path = arena_printf(arena, "%.*s%s", SLICE_ARG(path), parts[next_random(seed) % COUNT_OF(parts)]);
    }
    return path;
}

static void compare(const struct expression *e, struct slice input, struct arena *arena, int *errors)
{
    struct expression_context context = {.input = input};
    struct slice program = e->source, direct, by_jq = SLICE_NONE;
    struct err err = {0}, jq_err = {0};
    size_t failed_index;
    bool is_ok = expression_follow(e, &context, arena, &direct, &err);
    enum err_code code = jq_evaluate(&program, 1, expression_context_json(&context, arena), &jq_limits_default, arena,
                                     &by_jq, &failed_index, &jq_err);

    if (is_ok != (code == ERR_OK)) {
        fail_msg("%.*s of %.*s: here %s, jq %s %s", SLICE_ARG(program), SLICE_ARG(input),
                 is_ok ? "a value" : err.detail, code == ERR_OK ? "a value" : jq_err.message, jq_err.detail);
    }
    if (!is_ok) {
        ++*errors;
        return;
    }
    assert_string_equal(arena_text(arena, canon(direct, NULL, 0, arena)),
                        arena_text(arena, canon(by_jq, NULL, 0, arena)));
}

TEST(plain_paths_give_what_jq_gives)
{
    uint64_t seed = UINT64_C(0x5a6a9d1234567);
    int errors = 0, compared = 0;

    for (int i = 0; i < PATHS; i++) {
        struct arena arena;
        struct faults faults;
        struct template template;

        arena_init(&arena, 1 << 14);
        faults_init(&faults, &arena);
        struct slice path = random_path(&seed, &arena);
        struct buffer json;

        buffer_init(&json, 1024);
        json_put_string(&json, arena_printf(&arena, "${ %.*s }", SLICE_ARG(path)));
        template_compile(buffer_slice(&json), SLICE(""), ROOT_INPUT, &arena, &faults, &template);
        assert_int_equal(faults.count, 0);
        assert_int_equal(template.expressions[0].kind, EXPRESSION_PLAIN);
        for (size_t k = 0; k < COUNT_OF(inputs); k++) {
            compare(&template.expressions[0], slice_of(inputs[k]), &arena, &errors);
            compared++;
        }
        buffer_fini(&json);
        arena_fini(&arena);
    }
    assert_true(errors > SEEN_MIN && compared - errors > SEEN_MIN); /* both values and errors were compared */
}

TEST_PROGRAM(NULL, NULL)
