/* Templates: which expressions are plain, which are programs, which are refused, and which bytes come out. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "core/language/expression.h"
#include "tests/lib/test.h"

#define ROOTS_ALL                                                                                                      \
    (ROOT_INPUT | ROOT_STEPS | ROOT_SAGA | ROOT_ARGS | ROOT_KEY | ROOT_ATTEMPT | ROOT_RESULT | ROOT_RESPONSE |         \
     ROOT_ITEM)

static const struct expression_step steps[] = {
    {SLICE("reserve"), SLICE("{\"id\": \"r-1\", \"lines\": [10, 20, 30]}"), SLICE("completed")},
    {SLICE("skipped"), SLICE_NONE, SLICE("skipped")},
};

static struct expression_context context_of_test(void)
{
    return (struct expression_context){
        .input = SLICE("{ \"n\": 123456789012345678901234567890.10, \"s\": \"a\\\"\\u00e4\\n\", \"o\": {\"x y\": [1, "
                       "{\"z\": null}]},"
                       " \"e\": [], \"t\": true, \"b\\u0061\": 7 }"),
        .args = SLICE("[1,2,3]"),
        .response = SLICE("{\"status\":200}"),
        .item = SLICE(" {\"n\": 1.0}"),
        .saga_id = SLICE("0190b2f4-6c1e-7d3a-8f00-5e6f7a8b0007"),
        .saga_name = SLICE("order"),
        .key = SLICE("e6a78304-1c9d-8e21-b047-932c686fd0a3"),
        .attempt = 2,
        .steps = steps,
        .step_count = COUNT_OF(steps),
    };
}

static struct template compile(const char *json, unsigned roots, struct arena *arena, struct faults *faults)
{
    struct template template;
    struct err err;

    if (json_check(slice_of(json), &json_limits_default, &err) != ERR_OK) {
        fail_msg("the test is no JSON: %s: %s", json, err.message);
    }
    faults_init(faults, arena);
    template_compile(slice_of(json), SLICE("/with"), roots, arena, faults, &template);
    return template;
}

/* --- rendering --- */

static const struct {
    const char *template, *rendered;
} renderings[] = {
    {"{ \"as\" : [ \"it\", 1.50 ] }", "{ \"as\" : [ \"it\", 1.50 ] }"},
    {"\"${ .input.n }\"", "123456789012345678901234567890.10"},
    {"\"${.input.s}\"", "\"a\\\"\\u00e4\\n\""},
    {"\"${ .input.o }\"", "{\"x y\": [1, {\"z\": null}]}"},
    {"\"${ .input.o[\\\"x y\\\"][0] }\"", "1"},
    {"\"${ .input.o.\\\"x y\\\"[1].z }\"", "null"},
    {"\"${ .input[\\\"o\\\"][\\\"x y\\\"][-1] }\"", "{\"z\": null}"},
    {"\"${ .input.ba }\"", "7"},
    {"\"${ .input.missing.deeper[3].x }\"", "null"},
    {"\"${ .args[0] }\"", "1"},
    {"\"${ .args[-3] }\"", "1"},
    {"\"${ .args[-4] }\"", "null"},
    {"\"${ .args[ 2 ] }\"", "3"},
    {"\"${ .args[3] }\"", "null"},
    {"\"${ .input.e[-1] }\"", "null"},
    {"\"${ .key }\"", "\"e6a78304-1c9d-8e21-b047-932c686fd0a3\""},
    {"\"${ .attempt }\"", "2"},
    {"\"${ .result }\"", "null"},
    {"\"${ .response.status }\"", "200"},
    {"\"${ .item.n }\"", "1.0"},
    {"\"n ${ .item }\"", "\"n {\\\"n\\\":1.0}\""},
    {"\"${ .saga.id }\"", "\"0190b2f4-6c1e-7d3a-8f00-5e6f7a8b0007\""},
    {"\"${ .saga.name }\"", "\"order\""},
    {"\"${ .saga }\"", "{\"id\":\"0190b2f4-6c1e-7d3a-8f00-5e6f7a8b0007\",\"name\":\"order\"}"},
    {"\"${ .steps.reserve.result.id }\"", "\"r-1\""},
    {"\"${ .steps.reserve.result.lines[1] }\"", "20"},
    {"\"${ .steps.reserve.status }\"", "\"completed\""},
    {"\"${ .steps.skipped.result.id }\"", "null"},
    {"\"${ .steps.skipped }\"", "{\"result\":null,\"status\":\"skipped\"}"},
    {"\"${ .steps.later.result }\"", "null"},
    {"\"${ .steps[\\\"reserve\\\"][\\\"result\\\"].id }\"", "\"r-1\""},
    {"{\"a\":\"${ .args }\",\"b\":[\"${ .attempt }\", 2.0]}", "{\"a\":[1,2,3],\"b\":[2, 2.0]}"},
    {"\"order ${ .steps.reserve.result.id }, try ${ .attempt }.\"", "\"order r-1, try 2.\""},
    {"\"${ .attempt }${ .attempt }\"", "\"22\""},
    {"\" ${ .attempt }\"", "\" 2\""},
    {"\"<${ .input.s }>\"", "\"<a\\\"\\u00e4\\n>\""},
    {"\"<${ .input.o }>\"", "\"<{\\\"x y\\\":[1,{\\\"z\\\":null}]}>\""},
    {"\"<${ .input.missing }>\"", "\"<null>\""},
    {"\"<${ .input.n }>\"", "\"<123456789012345678901234567890.10>\""},
    {"\"$${ .attempt }\"", "\"${ .attempt }\""},
    {"\"$${ ${ .attempt }\"", "\"${ 2\""},
    {"\"5 $ and } and $\"", "\"5 $ and } and $\""},
    {"\"\\u0024{ .attempt }\"", "2"},
    {"\"tab\\t\\u0001\\\\ ${ .attempt }\"", "\"tab\\t\\u0001\\\\ 2\""},
};

static struct arena arena;

TEST(a_value_that_is_put_into_a_url_is_no_part_of_its_syntax)
{
    static const struct {
        const char *template, *rendered;
    } urls[] = {
        {"{\"url\":\"http://h/a/${ .input.path }?q=${ .input.o.a }#${ .args }\",\"b\":\"<${ .input.path }>\"}",
         "{\"url\":\"http://h/a/"
         "..%2F..%2Fadmin%3Fx%3D1%26%40%23%25%C3%A4%20%0A?q=%7B%22x%20y%22%3A%5B1%5D%7D#%5B1%2C2%5D\","
         "\"b\":\"<../../admin?x=1&@#%\\u00e4 \\n>\"}"},
        {"{\"url\":\"http://h/${ .input.plain }/${ .input.n }\"}", "{\"url\":\"http://h/a-b_c.d~9/1.50\"}"},
        {"{\"url\":\"${ secret(\\\"base\\\") }/${ .input.o }\"}",
         "{\"url\":\"https://x:1/y/%7B%22a%22%3A%7B%22x%20y%22%3A%5B1%5D%7D%7D\"}"},
        {"{\"url\":\"http://h/${ secret(\\\"base\\\") }\"}", "{\"url\":\"http://h/https%3A%2F%2Fx%3A1%2Fy\"}"},
        {"{\"url\":\"${ secret(\\\"base\\\") }\"}", "{\"url\":\"https://x:1/y\"}"},
        {"{\"url\":\"http://h/${ .input.path | @uri }\"}",
         "{\"url\":\"http://h/https://x:1/y\"}"}, /* the bytes that the program makes, see below */
        {"{\"url\":\"http://h/${ .input.path | @uri # | @uri\\n }\"}",
         "{\"url\":\"http://h/https%3A%2F%2Fx%3A1%2Fy\"}"},
        {"{\"url\":\"http://h/${ (.input.path | @uri) + .args }\"}", "{\"url\":\"http://h/https%3A%2F%2Fx%3A1%2Fy\"}"},
    };
    const struct expression_context context = {
        .input = SLICE("{\"path\":\"../../admin?x=1&@#%\\u00e4 \\n\",\"plain\":\"a-b_c.d~9\",\"n\":1.50,\"o\":{\"a\": "
                       "{\"x y\": [1]}}}"),
        .args = SLICE("[1, 2]")};
    const struct slice values[] = {SLICE("\"https://x:1/y\""), SLICE("\"https://x:1/y\"")};

    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        struct faults faults;
        struct slice out;
        struct err err = {0};

        arena_reset(&arena);
        struct template template = compile(urls[i].template, ROOTS_ALL | ROOT_SECRET, &arena, &faults);

        assert_int_equal(faults.count, 0);
        template_encode_url(&template, SLICE("/with/url"));
        if (template_render(&template, &context, values, &arena, &out, &err) != ERR_OK) {
            fail_msg("%s: %s", urls[i].template, err.message);
        }
        assert_string_equal(arena_text(&arena, out), urls[i].rendered);
    }
}

TEST(values_are_put_in_as_the_bytes_they_are)
{
    struct expression_context context = context_of_test();

    for (size_t i = 0; i < COUNT_OF(renderings); i++) {
        struct faults faults;
        struct slice out;
        struct err err;

        arena_reset(&arena);
        struct template template = compile(renderings[i].template, ROOTS_ALL, &arena, &faults);

        if (faults.count > 0) {
            fail_msg("%s: %.*s", renderings[i].template, SLICE_ARG(faults.items[0].detail));
        }
        assert_int_equal(template.program_count, 0);
        if (template_render(&template, &context, NULL, &arena, &out, &err) != ERR_OK) {
            fail_msg("%s: %s", renderings[i].template, err.message);
        }
        assert_string_equal(arena_text(&arena, out), renderings[i].rendered);
    }
}

static const struct {
    const char *template, *detail;
} unfollowed[] = {
    {"\"${ .args.id }\"", "cannot index array with \"id\""},
    {"\"${ .input[0] }\"", "cannot index object with a number"},
    {"\"${ .input.s.x }\"", "cannot index string with \"x\""},
    {"\"${ .input.t[0] }\"", "cannot index boolean with a number"},
    {"\"${ .attempt.x }\"", "cannot index number with \"x\""},
    {"\"${ .key.x }\"", "cannot index string with \"x\""},
    {"\"${ .steps.reserve.result.id.x }\"", "cannot index string with \"x\""},
};

TEST(a_path_that_jq_could_not_follow_says_why_and_where)
{
    struct expression_context context = context_of_test();

    for (size_t i = 0; i < COUNT_OF(unfollowed); i++) {
        struct faults faults;
        struct slice out;
        struct err err = {0};

        arena_reset(&arena);
        struct template template = compile(unfollowed[i].template, ROOTS_ALL, &arena, &faults);

        assert_int_equal(template_render(&template, &context, NULL, &arena, &out, &err), ERR_INVALID);
        assert_string_equal(err.detail, unfollowed[i].detail);
        assert_non_null(strstr(err.message, "/with"));
    }
}

TEST(programs_and_secrets_get_their_values_from_outside)
{
    struct expression_context context = context_of_test();
    struct slice values[] = {SLICE_NONE, SLICE("\"s3\\\"cret\""), SLICE(" 42 ")};
    struct faults faults;
    struct slice out;
    struct err err;

    struct template template = compile(
        "{\"a\":\"${ .attempt }\",\"h\":\"Bearer ${ secret( \\\"pay.token-1\\\" ) }\",\"n\":\"${ .args | add * 7 }\"}",
        ROOTS_ALL | ROOT_SECRET, &arena, &faults);

    assert_int_equal(faults.count, 0);
    assert_int_equal(template.count, 3);
    assert_int_equal(template.program_count, 1);
    assert_int_equal(template.expressions[1].kind, EXPRESSION_SECRET);
    assert_string_equal(arena_text(&arena, template.expressions[1].secret), "pay.token-1");
    assert_string_equal(arena_text(&arena, template.expressions[1].pointer), "/with/h");
    assert_int_equal(template.expressions[2].kind, EXPRESSION_PROGRAM);
    assert_string_equal(arena_text(&arena, template.expressions[2].source), ".args | add * 7");
    assert_int_equal(template_render(&template, &context, values, &arena, &out, &err), ERR_OK);
    assert_string_equal(arena_text(&arena, out), "{\"a\":2,\"h\":\"Bearer s3\\\"cret\",\"n\":42}");
}

TEST(the_template_outlives_its_text)
{
    struct expression_context context = context_of_test();
    char text[] = "{\"a\":\"x ${ .attempt } y\",\"b\":\"${ .args[0] }\"}";
    struct faults faults;
    struct slice out;
    struct err err;

    struct template template = compile(text, ROOTS_ALL, &arena, &faults);

    memset(text, '!', sizeof(text) - 1);
    assert_int_equal(template_render(&template, &context, NULL, &arena, &out, &err), ERR_OK);
    assert_string_equal(arena_text(&arena, out), "{\"a\":\"x 2 y\",\"b\":1}");
}

/* --- kinds --- */

static const struct {
    const char *source;
    enum expression_kind kind;
} kinds[] = {
    {".", EXPRESSION_PLAIN},
    {".input", EXPRESSION_PLAIN},
    {".input.and.if", EXPRESSION_PLAIN},
    {".input.a_1[12].b", EXPRESSION_PLAIN},
    {".[\\\"input\\\"]", EXPRESSION_PLAIN},
    {".\\\"input\\\"", EXPRESSION_PLAIN},
    {".input.a?", EXPRESSION_PROGRAM},
    {".input[]", EXPRESSION_PROGRAM},
    {".input[1:2]", EXPRESSION_PROGRAM},
    {".input[.attempt]", EXPRESSION_PROGRAM},
    {".input[1.5]", EXPRESSION_PROGRAM},
    {".input[\\r1]", EXPRESSION_PROGRAM}, /* libjq may refuse this */
    {".input[\\n\\t1 ]", EXPRESSION_PLAIN},
    {".input[\\\"a\\\\(1)\\\"]", EXPRESSION_PROGRAM},
    {".input.a-b", EXPRESSION_PROGRAM},
    {".input.", EXPRESSION_PROGRAM},
    {"..", EXPRESSION_PROGRAM},
    {"1", EXPRESSION_PROGRAM},
    {"{a: .input, b: {c: \\\"}\\\"}}", EXPRESSION_PROGRAM},
    {"\\\"\\\\(\\\"}\\\") {\\\" | length", EXPRESSION_PROGRAM},
    {".input # a comment with }\\n", EXPRESSION_PROGRAM},
    {".input | .secret", EXPRESSION_PROGRAM},
    {"\\\"secret(1)\\\"", EXPRESSION_PROGRAM},
};

TEST(plain_paths_are_told_from_programs)
{
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct faults faults;

        arena_reset(&arena);
        struct slice json = arena_printf(&arena, "\"${ %s }\"", kinds[i].source);
        struct template template = compile(json.ptr, ROOTS_ALL, &arena, &faults);

        if (faults.count > 0) {
            fail_msg("%s: %.*s", kinds[i].source, SLICE_ARG(faults.items[0].detail));
        }
        assert_int_equal(template.count, 1);
        if (template.expressions[0].kind != kinds[i].kind) {
            fail_msg("%s is taken for kind %d", kinds[i].source, (int)template.expressions[0].kind);
        }
    }
}

/* --- faults --- */

static const struct {
    const char *json;
    unsigned roots;
    const char *pointer, *part;
} faulty[] = {
    {"\"${ .input\"", ROOT_INPUT, "/with", "without the `}`"},
    {"[1,\"a ${ \\\"}\\\" b\"]", ROOT_INPUT, "/with/1", "without the `}`"},
    {"{\"a/b\":\"${  }\"}", ROOT_INPUT, "/with/a~1b", "no expression"},
    {"\"${ .imput.x }\"", ROOT_INPUT, "/with", "it sees .input"},
    {"\"${ .response.status }\"", ROOT_INPUT | ROOT_SAGA, "/with", "it sees .input .saga"},
    {"\"${ .[0] }\"", ROOT_INPUT, "/with", "it sees"},
    {"\"${ .item }\"", ROOTS_ALL & ~ROOT_ITEM, "/with", "there is no element here"},
    {"\"${ ( .item.x + 1) }\"", ROOTS_ALL & ~ROOT_ITEM, "/with", "there is no element here"},
    {"\"${ .steps.a.reslt }\"", ROOT_STEPS, "/with", "`result` and `status`"},
    {"\"${ .saga.nme }\"", ROOT_SAGA, "/with", "`id` and `name`"},
    {"\"${ secret(\\\"x\\\") }\"", ROOT_INPUT, "/with", "only in the settings of an adapter"},
    {"\"${ \\\"a\\\" + secret(\\\"x\\\") }\"", ROOT_SECRET, "/with", "must stand alone"},
    {"\"${ \\\"a\\\\(secret(\\\"x\\\"))\\\" }\"", ROOT_SECRET, "/with", "must stand alone"},
    {"\"${ secret(.args.x) }\"", ROOT_SECRET, "/with", "must stand alone"},
    {"\"${ secret(\\\"a b\\\") }\"", ROOT_SECRET, "/with", "letters, digits"},
    {"{\"${ .input }\":1}", ROOT_INPUT, "/with/${ .input }", "name of a member"},
};

TEST(an_expression_that_cannot_be_meant_is_a_fault_at_its_place)
{
    for (size_t i = 0; i < COUNT_OF(faulty); i++) {
        struct faults faults;

        arena_reset(&arena);
        (void)compile(faulty[i].json, faulty[i].roots, &arena, &faults);
        if (faults.count != 1) {
            fail_msg("%s: %zu faults", faulty[i].json, faults.count);
        }
        assert_string_equal(arena_text(&arena, faults.items[0].pointer), faulty[i].pointer);
        if (!strstr(arena_text(&arena, faults.items[0].detail), faulty[i].part)) {
            fail_msg("%s: \"%.*s\" has no \"%s\"", faulty[i].json, SLICE_ARG(faults.items[0].detail), faulty[i].part);
        }
    }
}

TEST(hostile_nesting_is_a_fault_and_no_crash)
{
    enum { DEEP = 20000 };
    struct faults faults;
    struct template template;

    char *json = arena_alloc(&arena, 8 * DEEP + 64);
    size_t len = 0;

    len += (size_t)snprintf(json, 16, "\"${ ");
    for (int i = 0; i < DEEP; i++) { /* makes "\("\("\(... */
        memcpy(json + len, "\\\"\\\\(", 5);
        len += 5;
    }
    memcpy(json + len, " }\"", 3);
    len += 3;
    faults_init(&faults, &arena);
    template_compile((struct slice){json, len}, SLICE(""), ROOTS_ALL, &arena, &faults, &template);
    assert_int_equal(faults.count, 1);
}

TEST(a_condition_is_one_whole_expression)
{
    static const char *const wrong[] = {"true",        "\"true\"", "\"a ${ .input }\"", "{}", "\"${ .input\"",
                                        "\"$${ x }\"", "null"};
    struct faults faults;
    struct template template;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        faults_init(&faults, &arena);
        expression_compile(slice_of(wrong[i]), SLICE("/c"), ROOTS_ALL, &arena, &faults, &template);
        assert_int_equal(faults.count, 1);
        assert_non_null(strstr(arena_text(&arena, faults.items[0].detail), "is not an expression"));
        assert_false(template_is_set(&template));
    }
    faults_init(&faults, &arena);
    expression_compile(SLICE("\"${ .response.status == 200 }\""), SLICE("/c"), ROOTS_ALL, &arena, &faults, &template);
    assert_int_equal(faults.count, 0);
    assert_true(template_is_set(&template));
    assert_int_equal(template.program_count, 1);
}

TEST(truth_is_that_of_jq)
{
    assert_false(expression_true(SLICE("false")));
    assert_false(expression_true(SLICE(" null ")));
    assert_true(expression_true(SLICE("0")));
    assert_true(expression_true(SLICE("\"\"")));
    assert_true(expression_true(SLICE("[]")));
    assert_true(expression_true(SLICE("true")));
}

/* --- which steps --- */

static void on_found(void *context, struct slice id, struct slice pointer)
{
    struct buffer *out = context;

    (void)pointer;
    buffer_printf(out, "%.*s ", SLICE_ARG(id));
}

TEST(steps_are_found_in_paths_and_in_programs)
{
    static const struct {
        const char *source, *found;
    } cases[] = {
        {".steps.a.result", "a "},
        {".steps[\\\"b\\\"].status", "b "},
        {".steps", ""},
        {".input.steps.a", ""},
        {".steps.a.result + .steps.b2.result", "a b2 "},
        {"{x: .steps[\\\"c\\\"], y: .steps.\\\"d\\\"}", "c d "},
        {"\\\"text .steps.a and \\\\(.steps.b.result)\\\"", "b "},
        {".input.steps.a | .x", ""},
        {".stepsx.a | 1", ""},
        {"1 # .steps.a\\n", ""},
        {".steps | .a", ""},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct faults faults;
        struct buffer found;

        arena_reset(&arena);
        buffer_init(&found, 4096);
        struct slice json = arena_printf(&arena, "\"${ %s }\"", cases[i].source);
        struct template template = compile(json.ptr, ROOTS_ALL, &arena, &faults);

        template_each_step(&template, on_found, &found);
        if (strcmp(buffer_c(&found), cases[i].found) != 0) {
            fail_msg("%s: found \"%s\"", cases[i].source, buffer_c(&found));
        }
        buffer_fini(&found);
    }
}

TEST(programs_see_the_context_as_one_object)
{
    struct expression_context context = context_of_test(), empty = {0};
    struct err err;

    struct slice json = expression_context_json(&context, &arena);

    assert_int_equal(json_check(json, &json_limits_default, &err), ERR_OK);
    assert_true(json_string_is(json_at(json, SLICE("/steps/reserve/result/id")), "r-1"));
    assert_true(json_string_is(json_at(json, SLICE("/steps/reserve/status")), "completed"));
    assert_int_equal(json_type(json_at(json, SLICE("/steps/skipped/result"))), JSON_NULL);
    assert_true(slice_is(json_at(json, SLICE("/input/n")), "123456789012345678901234567890.10"));
    assert_true(slice_is(json_at(json, SLICE("/item/n")), "1.0"));
    assert_int_equal(json_type(json_member(json, "result")), JSON_NONE);
    assert_string_equal(arena_text(&arena, expression_context_json(&empty, &arena)), "{}");
}

TEST_PROGRAM_ARENA(arena)
