/* Registration refuses paths to values that can never exist, and no other paths. */
#include "definition_texts.h"

#define STRICT                                                                                                         \
    "'input':{'type':'object','additionalProperties':false,'properties':{'to':{'type':'string'},"                      \
    "'list':{'type':'array','items':{'type':'object','additionalProperties':false,'properties':{'n':{}}}},"            \
    "'any':{'type':'object'},'maybe':{'type':['object','null'],'properties':{'a':{'type':'integer'}}},'off':false}}"
#define LISTED                                                                                                         \
    "'input':{'type':'object','required':['there'],'properties':{'list':{},'customer':{'type':'object','properties':{" \
    "'id':{}}}}}"
#define TOOLS                                                                                                          \
    "'tools':[{'name':'undo','builtin':{'do':'echo'},'effect':'idempotent'},"                                          \
    "{'name':'plain','builtin':{'do':'echo'},'effect':'idempotent','compensate':{'tool':'undo'}},"                     \
    "{'name':'made','builtin':{'do':'echo'},'effect':'idempotent','compensate':{'tool':'undo'},"                       \
    "'result':'${ {id: .response.id, \\u0022at\\u0022: {day: .response.d}, text: \\u0022x\\u0022} }'},"                \
    "{'name':'json','builtin':{'do':'echo'},'effect':'idempotent','compensate':{'tool':'undo'},'result':{'id':"        \
    "'${ .response.id }','of':{'a':1}}},"                                                                              \
    "{'name':'free','builtin':{'do':'echo'},'effect':'idempotent','compensate':{'tool':'undo'},"                       \
    "'result':'${ .response.body }'},"                                                                                 \
    "{'name':'probed','builtin':{'do':'echo'},'effect':'idempotent','compensate':{'tool':'undo'},'result':{'id':1},"   \
    "'probe':{'builtin':{'do':'echo'},'outcome':{'completed':'${ .response.ok }','absent':'${ .response.no }'},"       \
    "'result':{'id':1,'extra':2}}}]"
#define SAGA(members, with)                                                                                            \
    "{" TOOLS ",'sagas':[{'name':'c','output':{'x':1},'steps':[{'id':'r','call':'plain'}]},{'name':'s'," members       \
    ",'steps':[{'id':'p','call':'plain'},{'id':'m','call':'made'},{'id':'j','call':'json'},{'id':'f','call':'free'},"  \
    "{'id':'pr','call':'probed'},{'id':'e','for_each':'${ .input.list }','call':'json'},{'id':'k','saga':'c'},"        \
    "{'id':'ok','approve':{}},{'id':'z','call':'plain','with':{'v':'${ " with " }'}}]}]}"
#define TOOL(members)                                                                                                  \
    "{'tools':[{'name':'undo','builtin':{'do':'echo'},'effect':'idempotent'},{'name':'t','builtin':{'do':'echo'},"     \
    "'effect':'idempotent'," members "}]}"

struct outcome_of_check {
    struct arena arena;
    struct faults faults;
    struct document document;
};

static void check(struct outcome_of_check *c, const char *document, const struct tool_source *source)
{
    arena_init(&c->arena, 1 << 14);
    faults_init(&c->faults, &c->arena);
    document_check(json_of(document, &c->arena), source, &c->arena, &c->faults, &c->document);
}

static void says_once(const struct faults *faults, const char *part)
{
    if (faults->count != 1) {
        fail_msg("%s: %zu instead of 1, the first: %.*s", part, faults->count,
                 faults->count ? (int)faults->items[0].detail.len : 0,
                 faults->count ? faults->items[0].detail.ptr : "");
    }
    if (!memmem(faults->items[0].detail.ptr, faults->items[0].detail.len, part, strlen(part))) {
        fail_msg("\"%.*s\" has no \"%s\"", SLICE_ARG(faults->items[0].detail), part);
    }
}

TEST(a_path_that_never_leads_anywhere_is_refused)
{
    static const struct {
        const char *document, *part;
    } table[] = {
        {SAGA(STRICT, ".input.too"),
         "`.input.too` is never there, by the `input` of the saga: there is no `too` in it (did you mean `to`?)"},
        {SAGA(STRICT, ".input.to.name"), "it is of type string"},
        {SAGA(STRICT, ".input.to[0]"), "it is of type string"},
        {SAGA(STRICT, ".input.list.n"), "it is of type array"},
        {SAGA(STRICT, ".input.list[0].m"), "there is no `m` in it"},
        {SAGA(STRICT, "[.input.list[].m]"), "`.input.list[].m` is never there"},
        {SAGA(STRICT, ".input.maybe.a.b"), "it is of type integer"},
        {SAGA(STRICT, ".input.off"), "there is no `off`"},
        {SAGA(STRICT, ".input.too // 1"), "there is no `too`"},
        {SAGA(STRICT, "{a: .input.to, b: [.input.too]}"), "there is no `too`"},
        {SAGA(STRICT, "if .input.to then .input.too else 1 end"), "there is no `too`"},
        {SAGA(STRICT, "\\u0022to \\\\(.input.too)\\u0022"), "there is no `too`"},
        {SAGA(LISTED, ".steps.m.result.idd"), "by the `result` of the tool `made`: there is no `idd` in it"},
        {SAGA(LISTED, ".steps.m.result.at.hour"), "there is no `hour` in it"},
        {SAGA(LISTED, ".steps.m.result.text.x"), "it is a text"},
        {SAGA(LISTED, ".steps.j.result.ID"), "by the `result` of the tool `json`"},
        {SAGA(LISTED, ".steps.j.result.of.b"), "there is no `b` in it"},
        {SAGA(LISTED, ".steps.j.result.of.a.b"), "it is no object"},
        {SAGA(LISTED, "[.steps.j.result.nope]"), "there is no `nope`"},
        {SAGA(LISTED, ".steps.e.result.id"), "it is an array, one result for each element"},
        {SAGA(LISTED, ".steps.e.result[0].nope"), "there is no `nope`"},
        {SAGA(LISTED, ".steps.k.result.y"), "by the `output` of the saga `c`"},
        {SAGA(LISTED, ".steps.ok.result.by"), "by the result of an approval"},
        {SAGA(LISTED, "[.steps.m.reslut]"),
         "by what is known of a step: there is no `reslut` in it (did you mean `result`?)"},
        {SAGA(LISTED, ".steps.pr.result.nope"), "there is no `nope`"},
        {TOOL("'result':{'id':1},'compensate':{'tool':'undo','with':{'x':'${ .result.ID }'}}"),
         "by the `result` of the tool `t`"},
        {TOOL("'input':{'properties':{'a':{}},'additionalProperties':false},'compensate':{'tool':'undo','with':'${ "
              ".args.b }'}"),
         "by the `input` of the tool `t`: there is no `b`"},
        {SAGA("'tags':{'team':'${ .input.list | length }'}," LISTED, ".saga.id"), "a tag takes plain paths"},
        {SAGA("'tags':{'team':'${ .input.team }'}," STRICT, ".saga.id"), "there is no `team`"},
        {SAGA("'retired':''", ".saga.id"), "`retired` says why"},
        {TOOL("'compensate':{'tool':'undo'},'scope':'${ .args.a | length }'"),
         "the `scope` of a tool takes plain paths"},
        {TOOL("'compensate':{'tool':'undo'},'scope':5"), "`scope` is 5; it must be a string"},
        {TOOL("'input':{'properties':{'a':{}},'additionalProperties':false},'compensate':{'tool':'undo'},"
              "'scope':'${ .args.b }'"),
         "by the `input` of the tool `t`: there is no `b`"},
        {"{" TOOLS ",'sagas':[{'name':'s','steps':[{'id':'p','call':'plain','with':{'a':[{'${ .input.k }':1}]}}]}]}",
         "the name of a member cannot hold ${ }"},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct outcome_of_check c;

        check(&c, table[i].document, NULL);
        says_once(&c.faults, table[i].part);
        arena_fini(&c.arena);
    }
}

TEST(a_path_that_may_lead_somewhere_is_let_through)
{
    static const char *const table[] = {
        SAGA(STRICT, ".input.to"),
        SAGA(STRICT, ".input.any.thing.else"),
        SAGA(STRICT, ".input.list[0].n.m"),
        SAGA(STRICT, ".input.maybe.a"),
        SAGA(STRICT, "[.input[]]"),
        SAGA(STRICT, ".input.to.name?"),
        SAGA(STRICT, ".input | .too"),
        SAGA(STRICT, ".input.any | .input.too"),
        SAGA(STRICT, "[.input.list[] | .input.too]"),
        SAGA(STRICT, "(.input.too = 1) | .input"),
        SAGA(STRICT, ".input.too |= 1"),
        SAGA(STRICT, "[.input.list[] as $i | .input.too]"),
        SAGA(STRICT, "try error(1) catch .input.too"),
        SAGA(STRICT, "reduce .input.list[] as $i (0; .input.too)"),
        SAGA(STRICT, "def f: .input.too; 1"),
        SAGA(STRICT, ".input.list | map(.input.too)"),
        SAGA(STRICT, "first(.input.too)"),
        SAGA(STRICT, "\\u0022.input.too\\u0022 + .input.to"),
        SAGA(STRICT, "1 # .input.too\\n"),
        SAGA(STRICT, "{input: {too: 1}}.input.too"),
        SAGA(STRICT, "[1][.input.list[0].n:]"),
        SAGA("'input':{'type':'object','$ref':'#/$defs/a','$defs':{'a':{'properties':{'b':{},'list':{}}}}}",
             ".input.b"),
        SAGA("'input':{'allOf':[{'properties':{'b':{}}}],'properties':{'c':{}}}", ".input.b"),
        SAGA("'input':{'additionalProperties':{'type':'object'},'properties':{'c':{}}}", ".input.b.d"),
        SAGA(LISTED, ".input.there"),
        SAGA(LISTED, ".input.customer.id.of"),
        SAGA(LISTED, ".steps.p.result.anything"),
        SAGA(LISTED, ".steps.m.result.id.of.it"),
        SAGA(LISTED, ".steps.m.result.at.day.x"),
        SAGA(LISTED, ".steps.j.result.id.x"),
        SAGA(LISTED, ".steps.f.result.x"),
        SAGA(LISTED, "[.steps.e.result[].id]"),
        SAGA(LISTED, ".steps.e.result | map(.id)"),
        SAGA(LISTED, ".steps.ok.result.actor"),
        SAGA(LISTED, ".steps.k.result.x"),
        SAGA(LISTED, "[.steps.m.error, .steps.m.status]"),
        SAGA("'tags':{'team':'$${x}'}", ".saga.id"),
        SAGA("'tags':{'to':'to ${ .input.to }'},'retired':'use another'," STRICT, ".saga.id"),
        TOOL("'input':{'properties':{'a':{}},'additionalProperties':false},'compensate':{'tool':'undo'},"
             "'scope':'${ .args.a }'"),
        TOOL("'result':'${ {(.response.k): 1} }','compensate':{'tool':'undo','with':'${ .result.x }'}"),
        TOOL("'result':'${ {a: 1} + .response }','compensate':{'tool':'undo','with':'${ .result.x }'}"),
        TOOL("'result':'${ if .response.a then {a: 1} else {x: 1} end }','compensate':{'tool':'undo','with':'${ "
             ".result.x }'}"),
        TOOL("'result':'${ .response | {a, x} }','compensate':{'tool':'undo','with':'${ .result.x }'}"),
        TOOL("'result':'${ .response.x as $x | {a: 1, $x} }','compensate':{'tool':'undo','with':'${ .result.x }'}"),
        TOOL("'result':'${ .response.list | map({a: 1}) }','compensate':{'tool':'undo','with':'${ .result[0].x }'}"),
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct outcome_of_check c;

        check(&c, table[i], NULL);
        if (c.faults.count > 0 || c.document.warnings->count > 0) {
            struct fault *first = c.faults.count > 0 ? &c.faults.items[0] : &c.document.warnings->items[0];

            fail_msg("%zu: %.*s: %.*s", i, SLICE_ARG(first->pointer), SLICE_ARG(first->detail));
        }
        arena_fini(&c.arena);
    }
}

TEST(a_member_that_an_open_schema_does_not_list_is_a_warning)
{
    static const struct {
        const char *document, *part;
    } table[] = {
        {SAGA(LISTED, ".input.custmer"),
         "`.input.custmer` may never be there, by the `input` of the saga: there is no `custmer` in it "
         "(did you mean `customer`?)"},
        {SAGA(LISTED, ".input.customer.name"), "there is no `name` in it"},
        {SAGA(LISTED, ".steps.pr.result.extra"), "by the `result` of the tool `probed`"},
    };

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct outcome_of_check c;

        check(&c, table[i].document, NULL);
        no_faults(&c.faults);
        says_once(c.document.warnings, table[i].part);
        arena_fini(&c.arena);
    }
}

/* --- what is registered already --- */

#define OLD "{'name':'old'," STRICT ",'steps':[{'id':'a','call':'echo','with':'${ .input.too }'}]}"

static bool find_tool(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found)
{
    (void)version;
    *body = json_of("{'name':'echo','builtin':{'do':'echo'},'effect':'read'}", context);
    *version_found = 1;
    return slice_is(name, "echo");
}

static bool find_saga(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found)
{
    (void)version;
    *body = json_of(OLD, context);
    *version_found = 1;
    return slice_is(name, "old");
}

static bool has_body(void *context, enum definition_kind kind, struct slice name, const struct digest *identity)
{
    struct digest old = canon_digest(json_of(OLD, context), context);

    return kind == DEFINITION_SAGA && slice_is(name, "old") && digest_equal(identity, &old);
}

TEST(registered_definitions_stay_good)
{
    struct arena arena;
    struct tool_source source = {.find = find_tool, .find_saga = find_saga, .has_body = has_body, .context = &arena};
    struct outcome_of_check c;

    arena_init(&arena, 1 << 14);
    check(&c, "{'sagas':[" OLD "]}", &source); /* the same saga again */
    no_faults(&c.faults);
    arena_fini(&c.arena);
    check(&c, "{'sagas':[{'name':'new','steps':[{'id':'b','saga':'old'}]}]}",
          &source); /* the old saga is a child of the new one */
    no_faults(&c.faults);
    arena_fini(&c.arena);
    check(&c,
          "{'sagas':[{'name':'old','description':'changed'," STRICT
          ",'steps':[{'id':'a','call':'echo','with':'${ .input.too }'}]}]}",
          &source);
    says_once(&c.faults, "`.input.too` is never there");
    arena_fini(&c.arena);

    struct faults faults;

    faults_init(&faults, &arena);
    assert_non_null(definition_compile(json_of(OLD, &arena), 1, &source, SLICE(""), &arena, &faults));
    no_faults(&faults);
    arena_fini(&arena);
}

/* --- all faults at once --- */

TEST(a_tool_with_a_fault_is_still_held_against_the_others)
{
    struct outcome_of_check c;

    check(&c,
          "{'tools':[{'name':'pay','builtin':{'do':'echo'},'effect':'idempotent','timeout':'soon','compensate':{'tool':"
          "'back'}},"
          "{'name':'back','builtin':{'do':'echo'},'effect':'once','retry':{'max_attempts':3}},"
          "{'name':'last','builtin':{'do':'echo'},'effect':'once','terminal':true,'bogus':1}],"
          "'sagas':[{'name':'s','steps':[{'id':'l','call':'last'},{'id':'p','call':'pay'}]}]}",
          NULL);
    static const char *const parts[] = {"`timeout`", "`max_attempts` is 3", "`bogus`",
                                        "the effect of the compensator `back` is `once`",
                                        "comes after the terminal step `l`"};

    assert_int_equal(c.faults.count, COUNT_OF(parts));
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        bool found = false;

        for (size_t k = 0; k < c.faults.count; k++) {
            found |=
                memmem(c.faults.items[k].detail.ptr, c.faults.items[k].detail.len, parts[i], strlen(parts[i])) != NULL;
        }
        if (!found) {
            fail_msg("nothing says %s", parts[i]);
        }
    }
    arena_fini(&c.arena);
}

/* When the class or the undo of a tool is unknown, no further faults follow from it. */
TEST(a_tool_whose_class_or_undo_is_wrong_makes_no_further_faults)
{
    static const char *const tools[] = {
        "{'name':'t','builtin':{'do':'echo'},'effect':'never'}",
        "{'name':'t','builtin':{'do':'echo'}}",
        "{'name':'t','builtin':{'do':'echo'},'effect':'idempotent','compensate':{'tol':'x'},'terminal':false}",
        "{'name':'t','builtin':{'do':'echo'},'effect':'once','terminal':1}",
        "{'name':'t','builtin':{'do':'echo'},'effect':'once','terminal':true,'compensate':{'tool':'undo'}}",
    };

    for (size_t i = 0; i < COUNT_OF(tools); i++) {
        struct outcome_of_check with, without;
        struct arena arena;

        arena_init(&arena, 4096);
        check(&without,
              arena_printf(&arena, "{'tools':[%s,{'name':'undo','builtin':{'do':'echo'},'effect':'idempotent'}]}",
                           tools[i])
                  .ptr,
              NULL);
        check(&with,
              arena_printf(
                  &arena,
                  "{'tools':[%s,{'name':'undo','builtin':{'do':'echo'},'effect':'idempotent'},"
                  "{'name':'u','builtin':{'do':'echo'},'effect':'idempotent','compensate':{'tool':'t'}}],"
                  "'sagas':[{'name':'s','steps':[{'id':'a','call':'t'},{'id':'b','call':'t'},{'id':'c','call':'u'}]}]}",
                  tools[i])
                  .ptr,
              NULL);
        assert_true(without.faults.count > 0);
        if (with.faults.count != without.faults.count) {
            fail_msg("%s: %zu faults, %zu without the rest, the last: %.*s", tools[i], with.faults.count,
                     without.faults.count, SLICE_ARG(with.faults.items[with.faults.count - 1].detail));
        }
        arena_fini(&with.arena);
        arena_fini(&without.arena);
        arena_fini(&arena);
    }
}

TEST_PROGRAM(NULL, NULL)
