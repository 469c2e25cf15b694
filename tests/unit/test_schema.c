/* The subset of JSON Schema: which values pass, which do not and where, and that no unknown keyword is ignored. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "core/language/schema.h"
#include "tests/lib/test.h"

/* Reads JSON with ' for ", which is easier to read in C. */
static struct slice json_of(const char *text, struct arena *arena)
{
    char *copy = arena_text(arena, slice_of(text));
    struct err err;

    for (char *c = copy; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    if (json_check(slice_of(copy), &json_limits_default, &err) != ERR_OK) {
        fail_msg("the test is no JSON: %s: %s", copy, err.message);
    }
    return slice_of(copy);
}

static const struct {
    const char *schema, *value;
    const char *pointer, *part; /* the place and a part of the one fault; NULL when the value passes */
} cases[] = {
    {"true", "[1]", NULL, NULL},
    {"false", "1", "", "nothing is allowed"},
    {"{}", "{'a':null}", NULL, NULL},
    {"{'type':'string'}", "'x'", NULL, NULL},
    {"{'type':'string'}", "1", "", "of type string"},
    {"{'type':['string','null']}", "null", NULL, NULL},
    {"{'type':['string','null']}", "true", "", "string or null"},
    {"{'type':'integer'}", "1", NULL, NULL},
    {"{'type':'integer'}", "1.0", NULL, NULL},
    {"{'type':'integer'}", "150e-1", NULL, NULL},
    {"{'type':'integer'}", "15e-1", "", "integer"},
    {"{'type':'integer'}", "10e-1", NULL, NULL},
    {"{'type':'integer'}", "-0.0", NULL, NULL},
    {"{'type':'integer'}", "1e300", NULL, NULL},
    {"{'type':'number'}", "0.5", NULL, NULL},
    {"{'type':'boolean'}", "false", NULL, NULL},
    {"{'type':'array'}", "{}", "", "array"},
    {"{'enum':['a',1,{'x':[1,2]}]}", "{ 'x': [1.0, 2] }", NULL, NULL},
    {"{'enum':['a',1]}", "'b'", "", "one of [\"a\",1]"},
    {"{'const':9007199254740993}", "9007199254740992", "", "must be 9007199254740993"},
    {"{'const':9007199254740993}", "9007199254740993.0", NULL, NULL},
    {"{'const':null}", "null", NULL, NULL},
    {"{'required':['a']}", "{'a':null}", NULL, NULL},
    {"{'required':['a','b']}", "{'a':1}", "", "`b` is missing"},
    {"{'required':['a']}", "[]", NULL, NULL},
    {"{'required':['']}", "{'a':1}", "", "`` is missing"},
    {"{'not':{'required':['']}}", "{'a':1}", NULL, NULL},
    {"{'contains':false,'prefixItems':[false]}", "[]", "", "at least 1"},
    {"{'contains':{'const':2},'prefixItems':[{'const':1}]}", "[1,2]", NULL, NULL},
    {"{'contains':{'const':2},'prefixItems':[{'const':1}]}", "[1,1]", "", "at least 1"},
    {"{'not':{'contains':{'const':1},'prefixItems':[{'maxItems':3}],'maxContains':2}}", "[]", NULL, NULL},
    {"{'properties':{'a':{'type':'string'}}}", "{'b':1}", NULL, NULL},
    {"{'properties':{'a':{'type':'string'}}}", "{'a':1}", "/a", "of type string"},
    {"{'properties':{'\\u0061':{'type':'string'}}}", "{'a':1}", "/a", "of type string"},
    {"{'properties':{'a':true},'additionalProperties':false}", "{'a':1}", NULL, NULL},
    {"{'properties':{'a':true},'additionalProperties':false}", "{'b/c':1}", "/b~1c", "not allowed"},
    {"{'properties':{'a':false}}", "{'a':1}", "/a", "nothing is allowed"},
    {"{'additionalProperties':{'type':'number'}}", "{'b':'x'}", "/b", "number"},
    {"{'items':{'type':'string'}}", "['a',2]", "/1", "string"},
    {"{'items':{'items':{'maximum':3}}}", "[[1],[2,4]]", "/1/1", "at most 3"},
    {"{'minItems':2}", "[1]", "", "at least 2"},
    {"{'maxItems':1}", "[1,2]", "", "at most 1"},
    {"{'minLength':2}", "'\xc3\xa4'", "", "1 characters"},
    {"{'maxLength':1}", "'\xf0\x9f\x99\x82'", NULL, NULL},
    {"{'maxLength':1}", "'ab'", "", "at most 1"},
    {"{'minProperties':1}", "{}", "", "at least 1"},
    {"{'maxProperties':1}", "{'a':1,'b':2}", "", "at most 1"},
    {"{'minItems':2}", "'x'", NULL, NULL},
    {"{'minimum':1}", "1", NULL, NULL},
    {"{'minimum':1}", "0.999", "", "at least 1"},
    {"{'minimum':-1}", "-2", "", "at least -1"},
    {"{'maximum':9007199254740992}", "9007199254740993", "", "at most"},
    {"{'maximum':1e2}", "100", NULL, NULL},
    {"{'exclusiveMinimum':0}", "0", "", "greater than 0"},
    {"{'exclusiveMinimum':0}", "1e-300", NULL, NULL},
    {"{'exclusiveMaximum':0.1}", "0.10", "", "less than 0.1"},
    {"{'exclusiveMaximum':0.1}", "0.09999999999999999999999999999", NULL, NULL},
    {"{'maximum':-5}", "-4.9", "", "at most -5"},
    {"{'multipleOf':0.01}", "19.99", NULL, NULL},
    {"{'multipleOf':0.01}", "19.999", "", "multiple of 0.01"},
    {"{'multipleOf':0.0001}", "0.0075", NULL, NULL},
    {"{'multipleOf':3}", "900719925474099300000000000000000003", NULL, NULL},
    {"{'multipleOf':3}", "900719925474099300000000000000000004", "", "multiple of 3"},
    {"{'multipleOf':7}", "7e300", NULL, NULL},
    {"{'multipleOf':7}", "1e300", "", "multiple of 7"},
    {"{'multipleOf':10}", "-0", NULL, NULL},
    {"{'multipleOf':10}", "25", "", "multiple of 10"},
    {"{'propertyNames':{'maxLength':2}}", "{'ab':1}", NULL, NULL},
    {"{'propertyNames':{'maxLength':2}}", "{'a':{},'abc':1}", "/abc", "at most 2"},
    {"{'prefixItems':[{'type':'string'},true],'items':{'type':'null'}}", "['a',1,null]", NULL, NULL},
    {"{'prefixItems':[{'type':'string'},true],'items':{'type':'null'}}", "['a',1,2]", "/2", "null"},
    {"{'prefixItems':[{'type':'string'}]}", "[1,2]", "/0", "string"},
    {"{'uniqueItems':true}", "[1,'1',[1],{'a':1,'b':2}]", NULL, NULL},
    {"{'uniqueItems':true}", "[{'a':1,'b':2},{'b':2.0,'a':1}]", "", "more than once"},
    {"{'uniqueItems':false}", "[1,1]", NULL, NULL},
    {"{'contains':{'type':'string'}}", "[1,'a']", NULL, NULL},
    {"{'contains':{'type':'string'}}", "[1]", "", "at least 1"},
    {"{'contains':true,'minContains':0}", "[]", NULL, NULL},
    {"{'contains':{'minimum':5},'maxContains':1}", "[5,6]", "", "at most 1"},
    {"{'allOf':[{'minimum':1},{'maximum':3}]}", "4", "", "at most 3"},
    {"{'anyOf':[{'type':'string'},{'minimum':2}]}", "2", NULL, NULL},
    {"{'anyOf':[{'type':'string'},{'minimum':2}]}", "1", "", "none of the 2"},
    {"{'oneOf':[{'minimum':1},{'minimum':2}]}", "1", NULL, NULL},
    {"{'oneOf':[{'minimum':1},{'minimum':2}]}", "2", "", "fits 2 of the 2"},
    {"{'not':{'type':'string'}}", "1", NULL, NULL},
    {"{'properties':{'a':{'not':{'type':'string'}}}}", "{'a':'x'}", "/a", "must not fit"},
    {"{'if':{'required':['card']},'then':{'required':['expiry']},'else':{'required':['iban']}}", "{'card':1}", "",
     "`expiry`"},
    {"{'if':{'required':['card']},'then':{'required':['expiry']},'else':{'required':['iban']}}", "{}", "", "`iban`"},
    {"{'if':{'required':['card']},'then':{'required':['expiry']}}", "{}", NULL, NULL},
    {"{'$defs':{'n':{'minimum':1}},'properties':{'a':{'$ref':'#/$defs/n','maximum':9}}}", "{'a':0}", "/a",
     "at least 1"},
    {"{'$defs':{'n':{'minimum':1}},'properties':{'a':{'$ref':'#/$defs/n','maximum':9}}}", "{'a':10}", "/a",
     "at most 9"},
    {"{'$defs':{'a':{'$ref':'#/$defs/b'},'b':{'type':'null'}},'items':{'$ref':'#/$defs/a'}}", "[null,1]", "/1", "null"},
    {"{'format':'email'}", "'no address'", NULL, NULL},
    {"{'title':'t','description':'d','default':1,'examples':[1],'$comment':'c',"
     "'$schema':'https://json-schema.org/draft/2020-12/schema'}",
     "1", NULL, NULL},
};

static struct arena arena;

TEST(values_pass_or_fail_where_the_schema_says)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct faults faults;

        arena_reset(&arena);
        faults_init(&faults, &arena);
        const struct schema *schema = schema_compile(json_of(cases[i].schema, &arena), SLICE(""), &arena, &faults);

        if (!schema) {
            fail_msg("case %zu does not compile: %.*s", i, SLICE_ARG(faults.items[0].detail));
        }
        schema_check(schema, json_of(cases[i].value, &arena), SLICE(""), &arena, &faults);
        if (faults.count != (cases[i].pointer ? 1 : 0)) {
            fail_msg("case %zu, %s of %s: %zu faults", i, cases[i].schema, cases[i].value, faults.count);
        }
        if (cases[i].pointer) {
            assert_string_equal(arena_text(&arena, faults.items[0].pointer), cases[i].pointer);
            if (!strstr(arena_text(&arena, faults.items[0].detail), cases[i].part)) {
                fail_msg("case %zu: \"%.*s\" has no \"%s\"", i, SLICE_ARG(faults.items[0].detail), cases[i].part);
            }
        }
    }
}

static const struct {
    const char *schema, *pointer, *part;
    bool not_supported;
} refused[] = {
    {"1", "/s", "a schema must be an object", false},
    {"{'typ':'string'}", "/s/typ", "did you mean `type`?", false},
    {"{'pattern':'x'}", "/s/pattern", "pattern", true},
    {"{'patternProperties':{}}", "/s/patternProperties", "patternProperties", true},
    {"{'properties':{'a':{'$id':'x'}}}", "/s/properties/a/$id", "$id", true},
    {"{'$ref':'#'}", "/s/$ref", "must be \"#/$defs/NAME\"", false},
    {"{'$ref':'http://example.com/a.json'}", "/s/$ref", "must be", false},
    {"{'$ref':'#/$defs/a/items'}", "/s/$ref", "must be", false},
    {"{'$ref':'#/$defs/a'}", "/s/$ref", "no `a` in `$defs`", false},
    {"{'$defs':{'a':{'items':{'$ref':'#/$defs/a'}}},'$ref':'#/$defs/a'}", "/s/$defs/a/items/$ref", "leads back", false},
    {"{'$defs':{'a':{'$ref':'#/$defs/b'},'b':{'$ref':'#/$defs/a'}}}", "/s/$defs/b/$ref", "leads back", false},
    {"{'items':{'$defs':{}}}", "/s/items/$defs", "at the top", false},
    {"{'allOf':[]}", "/s/allOf", "at least one", false},
    {"{'anyOf':{}}", "/s/anyOf", "array of schemas", false},
    {"{'oneOf':[true,1]}", "/s/oneOf/1", "a schema must be", false},
    {"{'then':true}", "/s/then", "without `if`", false},
    {"{'if':true}", "/s/if", "without `then`", false},
    {"{'minContains':1}", "/s/minContains", "without `contains`", false},
    {"{'multipleOf':0}", "/s/multipleOf", "greater than 0", false},
    {"{'multipleOf':-2}", "/s/multipleOf", "greater than 0", false},
    {"{'multipleOf':1234567890123456789}", "/s/multipleOf", "18 digits", false},
    {"{'uniqueItems':1}", "/s/uniqueItems", "true or false", false},
    {"{'format':1}", "/s/format", "string", false},
    {"{'type':'strin'}", "/s/type", "did you mean `string`?", false},
    {"{'type':['string',1]}", "/s/type/1", "not a type", false},
    {"{'type':[]}", "/s/type", "empty", false},
    {"{'enum':[]}", "/s/enum", "array of the values", false},
    {"{'enum':'a'}", "/s/enum", "array of the values", false},
    {"{'enum':[1],'const':1}", "/s/const", "keep one", false},
    {"{'required':'a'}", "/s/required", "array of names", false},
    {"{'required':['a',1]}", "/s/required/1", "not the name", false},
    {"{'properties':[]}", "/s/properties", "object of schemas", false},
    {"{'minItems':-1}", "/s/minItems", "whole number", false},
    {"{'minLength':1.5}", "/s/minLength", "whole number", false},
    {"{'minimum':'1'}", "/s/minimum", "must be a number", false},
    {"{'items':[{}]}", "/s/items", "must be an object", false},
    {"{'$schema':'http://json-schema.org/draft-07/schema#'}", "/s/$schema", "2020-12", false},
    {"{'title':1}", "/s/title", "string", false},
    {"{'examples':1}", "/s/examples", "array", false},
};

TEST(a_keyword_outside_the_subset_is_refused_and_never_ignored)
{
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct faults faults;

        arena_reset(&arena);
        faults_init(&faults, &arena);
        assert_null(schema_compile(json_of(refused[i].schema, &arena), SLICE("/s"), &arena, &faults));
        assert_int_equal(faults.count, 1);
        assert_string_equal(arena_text(&arena, faults.items[0].pointer), refused[i].pointer);
        assert_int_equal(faults.items[0].not_supported, refused[i].not_supported);
        if (!strstr(arena_text(&arena, faults.items[0].detail), refused[i].part)) {
            fail_msg("%s: \"%.*s\" has no \"%s\"", refused[i].schema, SLICE_ARG(faults.items[0].detail),
                     refused[i].part);
        }
    }
}

TEST(all_violations_are_reported_at_once)
{
    struct faults faults;

    faults_init(&faults, &arena);
    const struct schema *schema = schema_compile(
        json_of(
            "{'required':['a','b'],'properties':{'c':{'type':'string','minLength':3},'d':{'items':{'type':'null'}}}}",
            &arena),
        SLICE(""), &arena, &faults);

    schema_check(schema, json_of("{'c':'x','d':[null,1,2]}", &arena), SLICE("/input"), &arena, &faults);
    assert_int_equal(faults.count, 5);
    assert_string_equal(arena_text(&arena, faults.items[2].pointer), "/input/d/2");
}

TEST(everything_passes_without_a_schema)
{
    struct faults faults;

    faults_init(&faults, &arena);
    schema_check(NULL, SLICE("1"), SLICE(""), &arena, &faults);
    assert_int_equal(faults.count, 0);
}

/* Compiles `def_count` definitions; each of them refers to the next one twice. */
static const struct schema *compile_doubling(size_t def_count, struct arena *in, struct faults *faults)
{
    struct slice text = SLICE("{'$ref':'#/$defs/d0','$defs':{");

    for (size_t i = 0; i < def_count; i++) {
        text = arena_printf(in, "%.*s'd%zu':{'allOf':[{'$ref':'#/$defs/d%zu'},{'$ref':'#/$defs/d%zu'}]},",
                            SLICE_ARG(text), i, i + 1, i + 1);
    }
    text = arena_printf(in, "%.*s'd%zu':{'type':'object'}}}", SLICE_ARG(text), def_count);
    return schema_compile(json_of(arena_text(in, text), in), SLICE("/s"), in, faults);
}

TEST(a_check_that_would_take_for_ever_is_given_up_and_says_so)
{
    struct faults faults;

    faults_init(&faults, &arena);
    const struct schema *schema = compile_doubling(40, &arena, &faults);

    assert_non_null(schema);
    schema_check(schema, SLICE("{}"), SLICE("/input"), &arena, &faults);
    assert_int_equal(faults.count, 1);
    assert_non_null(strstr(arena_text(&arena, faults.items[0].detail), "too much work"));
}

TEST(references_do_not_nest_without_end)
{
    struct faults faults;

    faults_init(&faults, &arena);
    assert_null(compile_doubling(200, &arena, &faults));
    assert_int_equal(faults.count, 1);
    assert_non_null(strstr(arena_text(&arena, faults.items[0].detail), "128 levels"));
}

TEST(a_long_name_does_not_make_a_place_the_top)
{
    struct faults faults;
    char name[1200];

    memset(name, 'n', sizeof(name));
    faults_init(&faults, &arena);
    struct slice text = arena_printf(&arena, "{\"properties\":{\"%.*s\":{\"$defs\":{}}}}", (int)sizeof(name), name);

    assert_null(schema_compile(text, SLICE(""), &arena, &faults));
    assert_int_equal(faults.count, 1);
    assert_non_null(strstr(arena_text(&arena, faults.items[0].detail), "at the top"));
}

TEST_PROGRAM_ARENA(arena)
