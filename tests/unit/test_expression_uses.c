/* Which steps an expression names, and whether it bears that their result is null. */
#include <stdio.h>
#include <string.h>

#include "core/language/expression.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

static void put_use(void *context, const struct step_use *use)
{
    char *text = context;
    size_t len = strlen(text);

    (void)snprintf(text + len, 200 - len, "%s%.*s%s", len ? " " : "", SLICE_ARG(use->step_id),
                   use->takes_null ? "" : "!");
}

static struct arena arena;

TEST(null_is_welcome_where_the_text_says_what_holds_then)
{
    static const struct {
        const char *expression, *uses; /* a "!" marks a step whose null would do harm */
    } table[] = {
        {".steps.a.result", "a!"},
        {".steps.a.result.id", "a!"},
        {".steps.a.status", "a"},
        {".steps.a", "a"},
        {".input.x", ""},
        {".steps.a.result // 1", "a"},
        {".steps.a.result.id // null", "a"},
        {".steps.a.result.list[0].id? // null", "a"},
        {".steps[\\\"a\\\"].result.id // 1", "a"},
        {".steps.\\\"a\\\".result.id", "a!"},
        {"(.steps.a.result.id) // 1", "a"},
        {".steps.a | .result.id", "a!"},
        {".steps.a | .result.id // 1", "a"},
        {".steps.a.result | .id // 1", "a"},
        {".steps.a.result | length", "a!"},
        {".steps.a.result | not", "a"},
        {".steps.a.result == null", "a"},
        {".steps.a.result.n != 5", "a"},
        {".steps.a.result.n + 1 // 0", "a!"},
        {".steps.a.status == \\\"completed\\\"", "a"},
        {"if .steps.a.result then 1 else 2 end", "a"},
        {"if .input.x then .steps.a.result.n else 2 end", "a!"},
        {".steps.a.result and .steps.b.result", "a b!"},
        {".steps.a.result.id // .steps.b.result.id", "a b!"},
        {".steps.a.result.id // .steps.b.result.id // null", "a b"},
        {"{ a: .steps.a.result.id, b: .steps.b.status }", "a! b"},
        {"\\\"n \\\\(.steps.a.result.id // 0)\\\"", "a"},
        {"\\\"n \\\\(.steps.a.result.id)\\\"", "a!"},
        {"\\\".steps.a.result\\\"", ""},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct template template = {0};
        struct faults faults;
        char uses[200] = "";

        faults_init(&faults, &arena);
        template_compile(arena_printf(&arena, "\"${ %s }\"", table[i].expression), SLICE("/x"), ROOT_INPUT | ROOT_STEPS,
                         &arena, &faults, &template);
        assert_int_equal(faults.count, 0);
        template_each_use(&template, put_use, uses);
        if (strcmp(uses, table[i].uses) != 0) {
            fail_msg("%s uses \"%s\", not \"%s\"", table[i].expression, uses, table[i].uses);
        }
    }
}

TEST(a_condition_that_proves_the_result_allows_it)
{
    static const char *const whens[] = {
        "${ .input.x }", /* the same as that of the step that it names */
        "${ .steps.a.status == \\\"completed\\\" }",
        "${ .steps.a.result != null }",
        "${ .steps.a.result.id }",
    };

    for (size_t i = 0; i < COUNT_OF(whens); i++) {
        struct slice document =
            arena_printf(&arena,
                         TRIAL_SAGA("{'id':'a','call':'keyed','when':'${ .input.x }'},"
                                    "{'id':'b','call':'keyed','when':'%s','with':{'id':'${ .steps.a.result.id }'}}"),
                         whens[i]);

        (void)trial_compile(&arena, trial_json(&arena, arena_text(&arena, document)));
    }
}

TEST_PROGRAM_ARENA(arena)
