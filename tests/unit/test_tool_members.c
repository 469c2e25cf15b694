/* What a tool says about duplicates, guards and money, and how much a saga may use. */
#include "definition_texts.h"

static struct arena arena;

TEST(a_tool_has_no_guards_but_those_it_names)
{
    struct tool *tool = compiled("{'name':'t','builtin':{'do':'echo'},'effect':'idempotent'}", &arena);

    assert_false(tool->conditional || tool->has_precheck || tool->guarded || tool->has_material ||
                 tool->again_on_expired);
    assert_int_equal(tool->on_duplicate, DUPLICATE_COALESCE);
    assert_int_equal(tool->ttl_ms, 24 * 3600 * 1000);
    assert_int_equal(tool->volatiles.count, 3);
    assert_int_equal(tool->rate.limit, 0);
    assert_int_equal(tool->concurrency, 0);
    assert_int_equal(tool->breaker.failures, 0);
    assert_false(template_is_set(&tool->cost));
    tool = compiled("{'name':'t','builtin':{'do':'echo'},'effect':'idempotent','breaker':{}}", &arena);
    assert_true(tool->guarded);
    assert_int_equal(tool->breaker.failures, 5);
    assert_int_equal(tool->breaker.window_ms, 60000);
    assert_int_equal(tool->breaker.cooldown_ms, 30000);
}

TEST(a_tool_keeps_what_it_says_about_the_registry)
{
    struct tool *tool = compiled(
        "{'name':'t','http':{'url':'x'},'effect':'idempotent','terminal':true,"
        "'precheck':{'exec':{'argv':['look','${ .args.id }']},'done':'${ .response.exit == 0 "
        "}','blocked':'${ .response.stdout.why }','result':'${ .response.stdout }','timeout':'3s'},"
        "'on_duplicate':'escalate','material':['/amount','/to'],'volatile':['/asked_at','/timestamp'],'ttl':'7d',"
        "'on_expired':'again','rate':{'limit':100,'per':'1s'},'concurrency':4,"
        "'breaker':{'failures':2,'window':'10s','cooldown':'1s'},'cost':2.5e4}",
        &arena);

    assert_true(tool->has_precheck && tool->guarded && tool->has_material && tool->again_on_expired);
    assert_true(slice_is(tool->precheck.adapter, "exec"));
    assert_true(template_is_set(&tool->precheck.settings) && template_is_set(&tool->precheck.done));
    assert_true(template_is_set(&tool->precheck.blocked) && template_is_set(&tool->precheck.result));
    assert_int_equal(tool->precheck.timeout_ms, 3000);
    assert_int_equal(tool->on_duplicate, DUPLICATE_ESCALATE);
    assert_int_equal(tool->material.count, 2);
    assert_true(slice_is(tool->material.items[1], "/to"));
    assert_int_equal(tool->volatiles.count, 4); /* one of them is named, although it is always volatile */
    assert_true(slice_is(tool->volatiles.items[3], "/asked_at"));
    assert_int_equal(tool->ttl_ms, 7 * 24 * 3600 * 1000);
    assert_int_equal(tool->rate.limit, 100);
    assert_int_equal(tool->rate.per_ms, 1000);
    assert_int_equal(tool->concurrency, 4);
    assert_int_equal(tool->breaker.failures, 2);
    assert_int_equal(tool->breaker.window_ms, 10000);
    assert_int_equal(tool->breaker.cooldown_ms, 1000);
    assert_int_equal(tool->cost_fixed_micros, 25000);
    tool = compiled("{'name':'t','http':{'url':'x'},'effect':'read','cost':'${ .result.fee }'}", &arena);
    assert_true(template_is_set(&tool->cost));
    assert_int_equal(tool->cost_fixed_micros, 0);
    assert_false(tool->guarded);
}

TEST(the_class_of_a_conditional_tool_is_the_stricter_and_each_has_its_own_retries)
{
    static const struct {
        const char *then, *or_else;
        enum effect stricter;
        const char *beside;
    } cases[] = {
        {"read", "once", EFFECT_ONCE, "'terminal':true"},
        {"once", "read", EFFECT_ONCE, "'compensate':{'tool':'u'}"},
        {"checked", "keyed", EFFECT_CHECKED, "'key':{'window':'1h'},'probe':{'http':{'url':'y'}}"},
        {"idempotent", "keyed", EFFECT_KEYED, "'key':{'window':'1h'}"},
        {"read", "idempotent", EFFECT_IDEMPOTENT, "'key':{'header':'K'}"},
        {"read", "read", EFFECT_READ, "'timeout':'1s'"},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct tool *tool = compiled(
            arena_printf(&arena,
                         "{'name':'t','http':{'url':'x'},'effect':{'if':'${ .args.x }','then':'%s','else':'%s'},%s}",
                         cases[i].then, cases[i].or_else, cases[i].beside)
                .ptr,
            &arena);

        assert_true(tool->conditional && template_is_set(&tool->effect_if));
        assert_int_equal(tool->effect, cases[i].stricter);
        assert_string_equal(effect_name(tool->effect_then), cases[i].then);
        assert_string_equal(effect_name(tool->effect_else), cases[i].or_else);
    }
    struct tool *tool =
        compiled("{'name':'t','http':{'url':'x'},'effect':{'if':'${ .args.x }','then':'once','else':'keyed'},"
                 "'key':{'window':'1h'},'terminal':true,'retry':{'max_attempts':7}}",
                 &arena);

    assert_int_equal(tool->retry.max_attempts, 1);
    assert_int_equal(retry_policy_of(tool, EFFECT_ONCE).max_attempts, 1);
    assert_int_equal(retry_policy_of(tool, EFFECT_KEYED).max_attempts, 7);
    assert_int_equal(retry_policy_of(tool, EFFECT_KEYED).initial_ms, 2000);
}

TEST(programs_and_settings_of_the_registrys_members_are_left_to_check)
{
    static const struct {
        const char *pointer, *program, *adapter;
    } expected[] = {
        {"/tools/0/effect/if", ".args.x > 1", NULL},           {"/tools/0/http", NULL, "http"},
        {"/tools/0/precheck/http/url", ".args.x + 2", NULL},   {"/tools/0/precheck/http", NULL, "http"},
        {"/tools/0/precheck/done", ".response.x == 3", NULL},  {"/tools/0/precheck/blocked", ".response.x + 4", NULL},
        {"/tools/0/precheck/result", ".response.x + 5", NULL}, {"/tools/0/cost", ".result.x * 6", NULL},
    };
    struct faults faults;
    struct document document;

    faults_init(&faults, &arena);
    document_check(
        json_of(
            "{'tools':[{'name':'t','http':{'url':'x'},'effect':{'if':'${ .args.x > 1 }','then':'read','else':'once'},"
            "'terminal':true,'precheck':{'http':{'url':'http://${ .args.x + 2 }'},'done':'${ .response.x == 3 }',"
            "'blocked':'${ .response.x + 4 }','result':'${ .response.x + 5 }'},'cost':'${ .result.x * 6 }'}]}",
            &arena),
        NULL, &arena, &faults, &document);
    no_faults(&faults);
    assert_int_equal(document.check_count, COUNT_OF(expected));
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        const struct document_check *check = &document.checks[i];

        assert_string_equal(arena_text(&arena, check->pointer), expected[i].pointer);
        if (expected[i].program) {
            assert_string_equal(arena_text(&arena, check->program), expected[i].program);
        } else {
            assert_string_equal(arena_text(&arena, check->adapter), expected[i].adapter);
        }
    }
}

TEST(a_tool_with_many_conflicts_hears_of_all_of_them)
{
    static const char *const places[] = {"/key",  "",      "/terminal",         "/material/0",
                                         "/rate", "/cost", "/precheck/blocked", "/concurrency"};
    struct faults faults;

    faults_init(&faults, &arena);
    assert_null(tool_compile(
        json_of("{'name':'t','http':{'url':'x'},'effect':{'if':'${ .args.x }','then':'keyed','else':'checked'},"
                "'key':{'header':'K'},'terminal':true,'compensate':{'tool':'u'},'material':['/trace_id'],"
                "'rate':{'limit':1},'cost':-5,'concurrency':0,"
                "'precheck':{'http':{'url':'x'},'done':'${ .response.x }','blocked':'no'}}",
                &arena),
        1, SLICE(""), &arena, &faults));
    assert_int_equal(faults.count, COUNT_OF(places));
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        size_t k = 0;

        while (k < faults.count && !slice_is(faults.items[k].pointer, places[i])) {
            k++;
        }
        assert_true(k < faults.count);
    }
}

TEST(a_saga_has_the_budget_it_names_and_steps_are_named_by_their_ids)
{
    struct faults faults;
    struct tool_source source = {find_registered, &arena};
    struct budget budget;

    faults_init(&faults, &arena);
    struct definition *saga = definition_compile(
        json_of("{'name':'s','budget':{'calls':10,'micros':0},'steps':[{'id':'x','call':'pay'}]}", &arena), 1, &source,
        SLICE(""), &arena, &faults);

    no_faults(&faults);
    assert_int_equal(saga->kind, SAGA_DEFINED);
    assert_int_equal(saga->budget.calls, 10);
    assert_int_equal(saga->budget.emissions, -1);
    assert_int_equal(saga->budget.micros, 0);
    assert_true(slice_is(saga->steps[0].name, "x"));
    saga = definition_compile(json_of("{'name':'s','steps':[{'id':'x','call':'pay'}]}", &arena), 1, &source, SLICE(""),
                              &arena, &faults);
    assert_int_equal(saga->budget.calls, -1);
    assert_false(budget_read(SLICE("{}"), SLICE("/budget"), &arena, &faults, &budget));
    assert_true(slice_is(faults.items[0].pointer, "/budget"));
}

/* Putting the key into a body follows the pointer part by part. */
TEST(a_pointer_to_a_key_in_a_body_is_bounded)
{
    for (int len = 512; len <= 513; len++) {
        char pointer[514] = "";
        struct faults faults;

        memset(pointer, '/', (size_t)len);
        faults_init(&faults, &arena);
        struct slice text = arena_printf(
            &arena,
            "{'name':'t','http':{'url':'https://a.example/'},'effect':'keyed','key':{'body':'%s','window':'1h'}}",
            pointer);
        const struct tool *tool =
            tool_compile(json_of(arena_text(&arena, text), &arena), 1, SLICE(""), &arena, &faults);

        assert_int_equal(tool != NULL, len == 512);
        if (!tool) {
            assert_true(slice_is(faults.items[0].pointer, "/key/body"));
        }
    }
}

TEST_PROGRAM_ARENA(arena)
