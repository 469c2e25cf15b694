/*
 * Any value in any place. The documents use every member that exists. Each value is replaced by values of every kind,
 * cut short, renamed and left out. The result is compiled, or refused with sentences that say where. Expressions are
 * treated in the same way and then rendered.
 */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "tests/fuzz/definition_source.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define VALUES_MAX 600
#define CUT_BYTES_MAX 26 /* longer strings are expressions, see below */

struct values { /* the values of a document at every depth, and the names of members */
    struct slice items[VALUES_MAX];
    bool is_name[VALUES_MAX];
    size_t count;
};

static uint64_t compiled, refused;
static char last_fault[400];

static void collect(struct slice value, struct values *out)
{
    struct json_walk walk = json_walk(value);
    enum json_type type = json_type(value);
    struct slice name, item;

    assert_true(out->count < VALUES_MAX);
    out->items[out->count++] = json_trim(value);
    while (type == JSON_OBJECT && json_next_member(&walk, &name, &item)) {
        assert_true(out->count < VALUES_MAX);
        out->is_name[out->count] = true;
        out->items[out->count++] = name;
        collect(item, out);
    }
    while (type == JSON_ARRAY && json_next_element(&walk, &item)) {
        collect(item, out);
    }
}

static void check_faults(const struct faults *faults)
{
    for (size_t i = 0; i < faults->count; i++) {
        assert_true(faults->items[i].detail.len > 0);
        assert_true(faults->items[i].pointer.len == 0 || faults->items[i].pointer.ptr[0] == '/');
    }
}

static void compile(struct slice document, struct arena *arena)
{
    struct definition_source source;
    struct faults faults;
    struct slice body;

    if (json_check(document, &json_limits_default, NULL) != ERR_OK ||
        json_type(json_member(document, "tools")) != JSON_ARRAY ||
        (json_member(document, "sagas").ptr && json_type(json_member(document, "sagas")) != JSON_ARRAY)) {
        return; /* skips repeated members, and lists that are no lists */
    }
    faults_init(&faults, arena);
    for (struct json_walk walk = json_walk(json_member(document, "tools")); json_next_element(&walk, &body);) {
        (void)tool_compile(body, 1, SLICE("/tools"), arena, &faults);
    }
    check_faults(&faults);
    for (struct json_walk walk = json_walk(json_member(document, "sagas")); json_next_element(&walk, &body);) {
        size_t before = faults.count;
        struct definition *definition = definition_compile(body, 1, definition_source_init(&source, document, arena),
                                                           SLICE("/sagas"), arena, &faults);

        assert_true((definition != NULL) == (faults.count == before));
    }
    check_faults(&faults);
    compiled += faults.count == 0;
    refused += faults.count > 0;
    if (faults.count > 0) {
        (void)snprintf(last_fault, sizeof(last_fault), "%.*s: %.*s", SLICE_ARG(faults.items[0].pointer),
                       SLICE_ARG(faults.items[0].detail));
    }
}

/* Compiles the document with `text` in the place of `gone`. */
static void compile_with(struct slice document, struct slice gone, struct slice text, struct arena *arena)
{
    struct buffer out;

    buffer_init(&out, 65536);
    buffer_put(&out, document.ptr, (size_t)(gone.ptr - document.ptr));
    buffer_put(&out, text.ptr, text.len);
    buffer_put(&out, gone.ptr + gone.len, (size_t)(document.ptr + document.len - gone.ptr - gone.len));
    compile(buffer_slice(&out), arena);
    buffer_fini(&out);
    arena_reset(arena);
}

static const char *const replacements[] = {
    "null",
    "true",
    "0",
    "1",
    "-1",
    "1.5",
    "1e3",
    "9007199254740993",
    "99999999999999999999",
    "\"\"",
    "\"x\"",
    "\"X_9\"",
    "\"9\"",
    "\" \"",
    "\"a b\"",
    "\"a/b\"",
    "\"a.b-c/d\"",
    "\"mcp.io/x\"",
    "\"-\"",
    "\"a\\u00e9\"",
    "\"\\u0001\"",
    "\"Content-Type\"",
    "\"30s\"",
    "\"0s\"",
    "\"400d\"",
    "\"1\"",
    "\"once\"",
    "\"read\"",
    "\"checked\"",
    "\"keyed\"",
    "\"header\"",
    "\"header:Idempotency-Key\"",
    "\"argument:/a\"",
    "\"env:KEY\"",
    "\"meta:a.b/c\"",
    "\"meta:mcp/c\"",
    "\"param:1\"",
    "\"compensate\"",
    "\"continue\"",
    "\"escalate\"",
    "\"refuse\"",
    "\"fail\"",
    "\"wait\"",
    "\"undo\"",
    "\"other\"",
    "\"child\"",
    "\"a\"",
    "\"z\"",
    "\"${ .input }\"",
    "\"${ .args.n }\"",
    "\"${ .result.id }\"",
    "\"${ .steps.a.result }\"",
    "\"${ .steps.nope }\"",
    "\"${ .item }\"",
    "\"${ .key }\"",
    "\"${ .response.ok }\"",
    "\"${ 1 + 1 }\"",
    "\"${ \"",
    "\"${ secret(\\\"a\\\") }\"",
    "\"${ 1 + secret(\\\"a\\\") }\"",
    "\"x ${ .input.a } y\"",
    "\"$${ x }\"",
    "[]",
    "[1]",
    "[\"a\"]",
    "[\"a\",\"a\"]",
    "[\"nope\"]",
    "[null]",
    "[{}]",
    "{}",
    "{\"x\":1}",
    "{\"if\":\"${ .args.n }\",\"then\":\"once\",\"else\":\"read\"}",
    "{\"if\":\"x\",\"then\":\"once\"}",
    "{\"tool\":\"undo\"}",
    "{\"limit\":1,\"per\":\"1s\"}",
    "{\"key\":\"x\",\"when_taken\":\"fail\"}",
    "{\"type\":\"object\"}",
    "{\"type\":\"string\",\"pattern\":\"(\"}",
    "{\"$ref\":\"#/$defs/x\"}",
    "{\"saga\":\"child\"}",
    "{\"name\":\"x\"}",
};

/* Tries every beginning of a string. */
static void cut(struct slice document, struct slice value, struct arena *arena)
{
    for (size_t len = 1; len + 1 < value.len; len++) {
        if (value.ptr[len - 1] != '\\' || (len > 1 && value.ptr[len - 2] == '\\')) {
            char text[512];

            assert_true(len + 1 < sizeof(text));
            memcpy(text, value.ptr, len);
            text[len] = '"';
            compile_with(document, value, (struct slice){text, len + 1}, arena);
        }
    }
}

/* Tries all replacements, or every third one. */
static void change_everything(const char *text, size_t stride)
{
    struct arena kept, arena;
    struct values values = {0};
    struct slice document;
    uint64_t before = refused;

    arena_init(&kept, 65536);
    arena_init(
        &arena,
        (size_t)1 << 20); /* one block is enough for most documents; otherwise each one would return its memory */
    document = trial_json(&kept, text);
    assert_int_equal(json_check(document, &json_limits_default, NULL), ERR_OK);
    compile(document, &arena);
    if (refused != before) {
        fail_msg("the document of the test is refused: %s", last_fault);
    }
    collect(document, &values);
    for (size_t i = 1; i < values.count; i++) {
        if (values.is_name[i]) {
            compile_with(document, values.items[i], SLICE("nope"), &arena);
            continue;
        }
        for (size_t r = i % stride; r < COUNT_OF(replacements); r += stride) {
            compile_with(document, values.items[i], slice_of(replacements[r]), &arena);
        }
        if (values.items[i].ptr[0] == '"' && values.items[i].len <= CUT_BYTES_MAX) {
            cut(document, values.items[i], &arena);
        }
    }
    arena_fini(&arena);
    arena_fini(&kept);
}

#define UNDO "{'name':'undo','builtin':{'do':'echo'},'effect':'idempotent'}"

static const char *const tools[] = {
    "{'tools':[" UNDO ",{'name':'a','description':'does "
    "a','http':{'url':'http://localhost/"
    "a','method':'POST'},'effect':'keyed','key':{'window':'60s','header':'Idempotency-Key'},"
    "'timeout':'5s','retry':{'max_attempts':3,'initial':'1s','max':'30s','factor':2,'max_unsent':9},'rate':{'limit':5,'"
    "per':'1s'},'concurrency':2,"
    "'breaker':{'failures':3,'window':'1m','cooldown':'10s'},'cost':100,'compensate':{'tool':'undo','with':{'id':'${ "
    ".result.id }'},'tolerates_absent':true,'voids_key':true,'give_up_after':'1h'},"
    "'outcome':{'completed':'${ .response.status == 200 }','retry':'${ .response.status == 503 }','no_effect':'${ "
    ".response.status == 404 }'},'result':'${ .response.body }',"
    "'input':{'type':'object','required':['n'],'properties':{'n':{'type':'integer','minimum':1},'s':{'enum':['a','b'],'"
    "maxLength':3}},'additionalProperties':false}}]}",
    "{'tools':[" UNDO ",{'name':'a','builtin':{'do':'echo'},'effect':{'if':'${ .args.n > 1 "
    "}','then':'checked','else':'read'},'ttl':'1h','on_duplicate':'refuse','on_expired':'again','material':['/amount'],"
    "'probe':{'builtin':{'do':'echo'},'outcome':{'completed':'${ .response.ok }','absent':'${ .response.no "
    "}','running':'${ .response.busy }'},'result':'${ .response.r "
    "}','visibility':'5s','timeout':'2s','give_up_after':'1h'},"
    "'precheck':{'builtin':{'do':'echo'},'done':'${ .response.done }','blocked':'${ .response.no }','result':'${ "
    ".response.r }','timeout':'2s'},'compensate':{'tool':'undo'}}]}",
    "{'tools':[{'name':'a','mcp':{'server':'http://localhost/"
    "mcp','tool':'x'},'effect':'keyed','key':{'window':'1d','meta':'example.com/key'},'volatile':['/at']},"
    "{'name':'b','exec':{'run':['/bin/"
    "b']},'effect':'keyed','key':{'window':'1d','env':'KEY'}},{'name':'c','builtin':{'do':'echo'},'effect':'once','"
    "terminal':true},"
    "{'name':'d','http':{'url':'http://localhost/"
    "d'},'effect':'keyed','key':{'window':'1d','query':'k'}},{'name':'e','http':{'url':'http://localhost/"
    "d'},'effect':'keyed','key':{'window':'1d','body':'/k'}}]}",
};

#define SMALL_TOOLS                                                                                                    \
    UNDO ",{'name':'keyed','builtin':{'do':'echo'},'effect':'keyed','key':{'window':'60s'},'compensate':{'tool':'"     \
         "undo','with':{'id':'${ .result.id }'}}},"                                                                    \
         "{'name':'mail','builtin':{'do':'echo'},'effect':'once','terminal':true}"
#define CHILD "{'name':'child','output':{'x':'${ .steps.x.result }'},'steps':[{'id':'x','call':'keyed'}]}"

static const char *const sagas[] = {
    "{'tools':[" SMALL_TOOLS "],'sagas':[{'name':'s','description':'all of "
    "it','tags':{'x':'y'},'budget':{'calls':9},'deadline':'1h','retention':'30d','input':{'"
    "type':'object'},'compensation':{'concurrency':2},"
    "'locks':['k:${ .input.id }',{'key':'till','when_taken':'fail'}],'then':[{'saga':'child','input':{'id':'${ "
    ".input.id }'},'id':'x-${ .input.id }'}],'output':{'a':'${ .steps.a.result.id }'},"
    "'steps':[{'id':'a','call':'keyed','with':{'n':'${ .input.n }'},'scope':'s-${ .input.n }','when':'${ .input.n > 0 "
    "}','after':[],'on_failure':'escalate',"
    "'compensate':{'tool':'undo','with':{'id':'${ .result.id }','k':'${ .key }'},'give_up_after':'10m'}},"
    "{'id':'each','call':'keyed','for_each':'${ .input.list }','concurrency':2,'with':{'n':'${ .item.n "
    "}'},'on_failure':'continue','after':['a']},"
    "{'id':'m','call':'mail','after':['a','each']}]}," CHILD "]}",
    "{'tools':[" SMALL_TOOLS "],'sagas':[{'name':'s','steps':[{'id':'nap','sleep':'30m'},{'id':'then','sleep':'${ "
    ".input.at }'},{'id':'at','sleep':'2030-01-31T09:00:00+01:00'},"
    "{'id':'paid','signal':{'name':'paid.now','timeout':'2d'},'on_failure':'continue'},{'id':'ok','approve':{'show':{'"
    "sum':'${ .steps.paid.result.sum // 0 }'},'timeout':'1h','roles':['agent','admin']}},"
    "{'id':'c','saga':'child','with':{'n':'${ .input.n }'},'for_each':'${ .input.list "
    "}'},{'id':'a','call':'keyed','with':'${ .steps.c.result[0].x }'}]}," CHILD "]}",
};

TEST(a_tool_with_anything_anywhere_is_compiled_or_refused)
{
    for (size_t i = 0; i < COUNT_OF(tools); i++) {
        change_everything(tools[i], 1);
    }
    assert_true(compiled > 0 && refused > 0);
}

TEST(a_saga_with_anything_anywhere_is_compiled_or_refused)
{
    for (size_t i = 0; i < COUNT_OF(sagas); i++) {
        change_everything(sagas[i], 3);
    }
}

/* --- expressions --- */

static const char *const expressions[] = {
    "${ . }",
    "${ .input }",
    "${ .input.n.o }",
    "${ .input[0] }",
    "${ .input[-1].x }",
    "${ .input[ 12345678901 ] }",
    "${ .input[\"o\"][\"x y\"][1] }",
    "${ .input.\"x y\".z }",
    "${ .[\"input\"] }",
    "${ .[0] }",
    "${ .steps }",
    "${ .steps.reserve }",
    "${ .steps.reserve.result.lines[1] }",
    "${ .steps.reserve.status }",
    "${ .steps.nope.result }",
    "${ .steps[\"reserve\"].result }",
    "${ .steps[0] }",
    "${ .steps.skipped.result.x }",
    "${ .steps.\"reserve\".result }",
    "${ .saga }",
    "${ .saga.id }",
    "${ .saga.nope }",
    "${ .attempt }",
    "${ .key.x }",
    "${ .response.status }",
    "${ .item.n }",
    "${ .nope }",
    "${ secret(\"a.b-c\") }",
    "${ secret ( \"a\" ) }",
    "${ secret(\"a\") + 1 }",
    "x ${ .input.s } y ${ .input.o } $${ z } ${ .args[0] }",
    "${ .input | length }",
    "${ .steps.reserve.result // 1 }",
    "${ .steps.reserve.result == null }",
    "${ if .steps.reserve.result then 1 else 2 end }",
    "${ [.steps[\"a\\\"b\"].x] }",
    "${ .steps[\"reserve\"].result[0][\"x\"] | not }",
    "${ .steps.reserve.\"result\" and .steps.skipped.status or false }",
    "${ (.steps.reserve).result? != 1 }",
    "${ .steps.reserve.result |= 1 }",
    "${ \"a\\(.input)\" }",
    "${ \"}\" }",
    "${ # x\n 1 }",
    "${ {a: .input} }",
    "${ .input.text }",
    "x ${ .input.text } y",
    "x ${ .input.deep }",
    "${ .. }",
    "${ .input.e[-1] }",
    "${ .steps [ \"reserve\" ] }",
    "${ .steps.reserve.result.a[1:2] }",
    "${ .item.a , item }",
    "${ ( [ .item ] ) }",
    "${ .input[\"a\\u0041\"] }",
    "${ .input.\"a\\u0041\" }",
    "${ "
    "secret("
    "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    "aaaaaaaaaaaaaaaaaaaaaaaaa\") }",
    "${ secret(\"a\") x }",
    "${ secret(\"a!\") }",
    "${ .input[99999999999999999999] }",
    "${ .input[123456789] }",
    "${ .steps.reserve.result.lines }",
    "${ .steps.skipped.status }",
    "${ .steps[\"a\", \"b\"] }",
    "${ .steps[.input.x].result }",
    "${ .steps.a.b.c? }",
};

static void nothing(void *context, const struct step_use *use)
{
    unsigned *uses = context;

    *uses += use->step_id.len > 0;
}

static void nobody(void *context, struct slice step_id, struct slice pointer)
{
    unsigned *uses = context;

    (void)pointer;
    *uses += step_id.len > 0;
}

static void render(struct slice json, unsigned roots, const struct expression_context *context, struct arena *arena)
{
    struct template template = {0};
    struct slice values[8], out;
    struct faults faults;
    struct err err = {0};
    unsigned uses = 0;

    faults_init(&faults, arena);
    template_compile(json, SLICE("/with"), roots, arena, &faults, &template);
    check_faults(&faults);
    if (faults.count > 0) {
        refused++;
        return;
    }
    template_each_use(&template, nothing, &uses);
    template_each_step(&template, nobody, &uses);
    assert_true(template.count <= COUNT_OF(values));
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        values[i] = i % 2 ? SLICE("\"a \\\"quoted\\\" one\\n\"") : SLICE("{\"s\":\"a \\\" } b\",\"n\":[1,null]}");
    }
    if (template_render(&template, context, values, arena, &out, &err) == ERR_OK) {
        assert_int_equal(json_check(out, &json_limits_default, NULL), ERR_OK);
        compiled++;
    } else {
        assert_true(err.message[0]);
        refused++;
    }
}

TEST(every_beginning_of_an_expression_is_rendered_or_refused)
{
    static const struct expression_step steps[] = {
        {SLICE("reserve"), SLICE("{\"id\": \"r-1\", \"lines\": [10, 20, 30]}"), SLICE("completed")},
        {SLICE("skipped"), SLICE_NONE, SLICE("skipped")},
        {SLICE("open"), SLICE_NONE, SLICE_NONE},
    };
    const struct expression_context contexts[] = {
        {.input = SLICE("{\"n\":1,\"s\":\"a\\\"b\\\\c\\u0001\",\"o\":{\"x y\":[1,{\"z\":null}]},\"e\":[],\"text\":\"a "
                        "\\\"q\\\" \\\\ b\\u0007\",\"deep\":[[[[\"\\\\\"]]]]}"),
         .args = SLICE("[1,2,3]"),
         .response = SLICE("{\"status\":200}"),
         .item = SLICE(" {\"n\": 1.0}"),
         .result = SLICE("7"),
         .saga_id = SLICE("0190b2f4"),
         .saga_name = SLICE("or\"der\\\x01"),
         .key = SLICE("e6a7"),
         .attempt = 2,
         .steps = steps,
         .step_count = COUNT_OF(steps)},
        {.input = SLICE("[1,{\"x\":2}]"), .saga_name = SLICE("order")},
        {.attempt = 0},
    };
    struct arena arena;

    arena_init(&arena, 65536);
    for (size_t i = 0; i < COUNT_OF(expressions); i++) {
        for (size_t len = 0; len <= strlen(expressions[i]); len++) {
            for (unsigned closed = 0; closed < 2; closed++) { /* cut in the middle, and cut but with its end */
                struct buffer text;

                buffer_init(&text, 4096);
                json_put_string(&text, closed ? arena_printf(&arena, "%.*s }", (int)len, expressions[i])
                                              : (struct slice){expressions[i], len});
                for (size_t c = 0; c < COUNT_OF(contexts); c++) {
                    render(buffer_slice(&text), ~0u, &contexts[c], &arena);
                }
                render(buffer_slice(&text), ROOT_INPUT, &contexts[0], &arena);
                render(buffer_slice(&text), 0, &contexts[0], &arena);
                buffer_fini(&text);
                arena_reset(&arena);
            }
        }
    }
    assert_true(compiled > 0 && refused > 0);
    arena_fini(&arena);
}

/* --- what is too much --- */

static enum err_code render_one(const char *text, struct slice input, struct arena *arena, struct err *err)
{
    const struct expression_context context = {.input = input};
    struct template template = {0};
    struct faults faults;
    struct slice out;

    faults_init(&faults, arena);
    template_compile(slice_of(text), SLICE("/with"), ROOT_INPUT, arena, &faults, &template);
    assert_int_equal(faults.count, 0);
    return template_render(&template, &context, NULL, arena, &out, err);
}

static struct slice nested(struct arena *arena, size_t depth)
{
    char *text = arena_alloc(arena, 2 * depth + 1);

    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    return slice_of(text);
}

TEST(what_would_become_too_large_or_too_deep_is_not_rendered)
{
    struct arena arena;
    struct err err = {0};
    char *large;

    arena_init(&arena, 65536);
    large = arena_alloc(&arena, ((size_t)17 << 20) + 3);
    memset(large, 'x', ((size_t)17 << 20) + 2);
    large[0] = large[((size_t)17 << 20) + 1] = '"';
    assert_int_equal(render_one("{\"a\":\"${ .input }\"}", slice_of(large), &arena, &err), ERR_INVALID);
    assert_non_null(strstr(err.message, "bytes"));
    assert_int_equal(render_one("{\"a\":\"${ .input }\"}", nested(&arena, 8), &arena, &err), ERR_OK);
    assert_int_equal(render_one("{\"a\":\"${ .input }\"}", nested(&arena, 5000), &arena, &err), ERR_INVALID);
    arena_fini(&arena);
}

TEST(more_expressions_than_a_place_may_have_are_told_once)
{
    struct template template = {0};
    struct buffer text;
    struct faults faults;
    struct arena arena;

    arena_init(&arena, 65536);
    buffer_init(&text, (size_t)8 << 20);
    buffer_put_char(&text, '[');
    for (unsigned i = 0; i < 5000; i++) {
        buffer_printf(&text, "%s\"${ .input }\"", i ? "," : "");
    }
    buffer_put_char(&text, ']');
    faults_init(&faults, &arena);
    template_compile(buffer_slice(&text), SLICE("/with"), ROOT_INPUT, &arena, &faults, &template);
    assert_int_equal(faults.count + faults.dropped, 1);
    check_faults(&faults);
    buffer_fini(&text);
    arena_fini(&arena);
}

int main(void)
{
    (void)mallopt(M_TRIM_THRESHOLD, 64 << 20); /* the next compilation needs the memory that this one frees */
    return tests_run(NULL, NULL);
}
