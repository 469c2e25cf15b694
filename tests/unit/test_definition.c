/* Definitions: every fault is reported at its place in helpful words, and definitions without faults give the expected
 * result. */
#include "definition_faults.h"
#include "definition_texts.h"

static struct arena arena;

TEST(each_fault_is_found_at_its_place_and_says_what_would_be_right)
{
    int wrong = 0;

    for (size_t i = 0; i < COUNT_OF(definition_faults); i++) {
        struct faults faults;
        struct document document;

        arena_reset(&arena);
        faults_init(&faults, &arena);
        document_check(json_of(definition_faults[i].document, &arena), NULL, &arena, &faults, &document);
        if (faults.count != 1) {
            print_error("%s: %zu faults\n", definition_faults[i].says, faults.count);
            wrong++;
        }
        for (size_t k = 0; k < faults.count; k++) {
            struct slice pointer = faults.items[k].pointer, detail = faults.items[k].detail;

            if (faults.count > 1) {
                print_error("  %.*s: %.*s\n", SLICE_ARG(pointer), SLICE_ARG(detail));
            } else if (!slice_is(pointer, definition_faults[i].pointer)) {
                print_error("%s: at \"%.*s\", not \"%s\"\n", definition_faults[i].says, SLICE_ARG(pointer),
                            definition_faults[i].pointer);
                wrong++;
            } else if (!strstr(arena_text(&arena, detail), definition_faults[i].part)) {
                print_error("%s: \"%.*s\" has no \"%s\"\n", definition_faults[i].says, SLICE_ARG(detail),
                            definition_faults[i].part);
                wrong++;
            }
        }
    }
    assert_int_equal(wrong, 0);
}

TEST(a_document_with_fifty_faults_reports_fifty)
{
    struct faults faults;
    struct document document;
    struct buffer text;

    faults_init(&faults, &arena);
    buffer_init(&text, 1 << 16);
    buffer_put_text(&text, "{'tools':[");
    for (int i = 0; i < 10; i++) { /* each of these makes five faults */
        buffer_printf(&text,
                      "%s{'name':'t%d','builtin':{'do':'echo'},'effect':'sometimes','timeout':'9','bogus':1,'ttl':'1',"
                      "'retry':{'factor':99}}",
                      i ? "," : "", i);
    }
    buffer_put_text(&text, "]}");
    document_check(json_of(buffer_c(&text), &arena), NULL, &arena, &faults, &document);
    assert_int_equal(faults.count, 50);
    for (size_t i = 0; i < faults.count; i++) {
        assert_true(slice_starts_with(faults.items[i].pointer, "/tools/"));
        assert_true(faults.items[i].detail.len > 0);
    }
    buffer_fini(&text);
}

TEST(faults_of_one_tool_are_not_repeated_by_the_sagas_that_use_it)
{
    struct faults faults;
    struct document document;

    faults_init(&faults, &arena);
    document_check(json_of("{'tools':[{'name':'t','builtin':{'do':'echo'},'effect':'never'},"
                           "{'name':'u','builtin':{'do':'echo'},'effect':'once','compensate':{'tool':'zzz'}}],"
                           "'sagas':[{'name':'s','steps':[{'id':'x','call':'t'},{'id':'y','call':'u'}]}]}",
                           &arena),
                   NULL, &arena, &faults, &document);
    assert_int_equal(faults.count, 2);
}

TEST(a_hostile_document_is_refused_in_bounded_memory)
{
    struct faults faults;
    struct document document;
    struct buffer text;

    faults_init(&faults, &arena);
    buffer_init(&text, 1 << 20);
    buffer_put_text(&text, "{'tools':[{'name':'t','builtin':{'do':'echo'},'effect':'read','input':{'properties':{'");
    for (int i = 0; i < 400000; i++) { /* a long name above very many faults, whose pointers would take gigabytes */
        buffer_put_char(&text, 'n');
    }
    buffer_put_text(&text, "':{");
    for (int i = 0; i < 40000; i++) {
        buffer_printf(&text, "%s'k%d':1", i ? "," : "", i);
    }
    buffer_put_text(&text, "}}}}]}");
    assert_false(text.overflow);
    document_check(json_of(buffer_c(&text), &arena), NULL, &arena, &faults, &document);
    assert_int_equal(faults.count + faults.dropped, 40000);
    assert_true(arena.used_bytes < 32u << 20);
    buffer_fini(&text);
}

/* --- documents without a fault --- */

static struct slice read_example(const char *name, struct arena *in)
{
    const char *dir = getenv("SCHEMA_DIR");
    struct slice path = arena_printf(in, "%s/examples/%s", dir ? dir : "schema", name);
    FILE *file = fopen(path.ptr, "rb");
    char *text = arena_alloc(in, 1 << 16);

    assert_non_null(file);
    size_t len = fread(text, 1, 1 << 16, file);

    assert_int_equal(fclose(file), 0);
    return (struct slice){text, len};
}

TEST(the_examples_have_no_fault)
{
    static const char *const names[] = {"shop.json",     "first.json", "bench.json",      "registry.json",
                                        "transfer.json", "trip.json",  "onboarding.json", "language.json"};

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct faults faults;
        struct document document;

        arena_reset(&arena);
        faults_init(&faults, &arena);
        document_check(read_example(names[i], &arena), NULL, &arena, &faults, &document);
        no_faults(&faults);
        assert_true(document.item_count > 0 && document.check_count > 0);
    }
}

TEST(a_document_lists_items_and_what_is_left_to_check)
{
    static const char text[] =
        "{'$schema':'definition.schema.json','tools':[" UNDO_
        ",{'name':'t','http':{'url':'http://x/${ .args.a + 1 }','headers':{'A':'${ secret(\\\"k\\\") }'}},"
        "'effect':'keyed','key':{'query':'k','window':'1h'},'outcome':{'completed':'${ .response.status == 200 "
        "}'},'terminal':true,"
        "'probe':{'exec':{'argv':['ask','${ .key }']}}}],"
        "'sagas':[{'name':'s','steps':[{'id':'x','call':{'builtin':{'do':'echo'},'effect':'read'},'with':'${ .input "
        "}'},"
        "{'id':'y','call':'t','with':{'v':'${ [.steps.x.result] }'}}]}]}";
    static const struct {
        const char *pointer, *program, *adapter;
        enum key_place place;
    } expected[] = {
        {"/tools/0/builtin", NULL, "builtin", KEY_PLACE_DEFAULT},
        {"/tools/1/http/url", ".args.a + 1", NULL, KEY_PLACE_DEFAULT},
        {"/tools/1/http", NULL, "http", KEY_PLACE_QUERY},
        {"/tools/1/probe/exec", NULL, "exec", KEY_PLACE_DEFAULT},
        {"/tools/1/outcome/completed", ".response.status == 200", NULL, KEY_PLACE_DEFAULT},
        {"/sagas/0/steps/0/call/builtin", NULL, "builtin", KEY_PLACE_DEFAULT},
        {"/sagas/0/steps/1/with/v", "[.steps.x.result]", NULL, KEY_PLACE_DEFAULT},
    };
    struct faults faults;
    struct document document;

    faults_init(&faults, &arena);
    document_check(json_of(text, &arena), NULL, &arena, &faults, &document);
    no_faults(&faults);
    assert_int_equal(document.item_count, 3);
    assert_int_equal(document.items[1].kind, DEFINITION_TOOL);
    assert_true(slice_is(document.items[1].name, "t"));
    assert_true(slice_is(document.items[1].pointer, "/tools/1"));
    struct digest identity = canon_digest(document.items[1].body, &arena);

    assert_true(digest_equal(&identity, &document.items[1].identity));
    assert_int_equal(document.items[2].kind, DEFINITION_SAGA);
    assert_true(slice_is(document.items[2].saga->steps[0].tool->name, "s.x"));
    assert_int_equal(document.items[2].saga->tool_count, 1);
    assert_int_equal(document.check_count, COUNT_OF(expected));
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        const struct document_check *check = &document.checks[i];

        assert_string_equal(arena_text(&arena, check->pointer), expected[i].pointer);
        if (expected[i].program) {
            assert_string_equal(arena_text(&arena, check->program), expected[i].program);
        } else {
            assert_null(check->program.ptr);
            assert_string_equal(arena_text(&arena, check->adapter), expected[i].adapter);
            assert_int_equal(json_type(check->settings), JSON_OBJECT);
            assert_int_equal(check->key_place, expected[i].place);
        }
    }
}

TEST(identity_depends_on_meaning_and_not_on_notation)
{
    static const char *const texts[] = {
        "{'tools':[{'name':'t','builtin':{'do':'echo'},'effect':'read','retry':{'factor':2}}]}",
        "{ 'tools' : [ { 'effect':'re\\u0061d', 'retry':{'factor':2.0}, 'builtin':{'do':'echo'}, 'name':'t' } ] }",
        "{'tools':[{'name':'t','builtin':{'do':'echo'},'effect':'read','retry':{'factor':3}}]}",
    };
    struct digest identity[COUNT_OF(texts)];

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct faults faults;
        struct document document;

        faults_init(&faults, &arena);
        document_check(json_of(texts[i], &arena), NULL, &arena, &faults, &document);
        no_faults(&faults);
        identity[i] = document.items[0].identity;
    }
    assert_true(digest_equal(&identity[0], &identity[1]));
    assert_false(digest_equal(&identity[0], &identity[2]));
}

/* --- compiling --- */

TEST(a_tool_has_the_defaults_of_the_contract)
{
    struct faults faults;

    faults_init(&faults, &arena);
    struct tool *tool =
        tool_compile(json_of("{'name':'t','http':{'url':'x'},'effect':'checked','probe':{'http':{'url':'y'}},"
                             "'compensate':{'tool':'u'}}",
                             &arena),
                     7, SLICE(""), &arena, &faults);

    no_faults(&faults);
    assert_int_equal(tool->version, 7);
    assert_true(slice_is(tool->adapter, "http"));
    assert_int_equal(tool->timeout_ms, 30000);
    assert_int_equal(tool->probe.visibility_ms, 5000);
    assert_int_equal(tool->probe.give_up_after_ms, 24 * 3600 * 1000);
    assert_int_equal(tool->compensate.give_up_after_ms, 24 * 3600 * 1000);
    assert_false(tool->compensate.tolerates_absent || tool->compensate.voids_key || tool->terminal || tool->has_retry);
    assert_null(tool->compensate.tool);
    assert_false(template_is_set(&tool->result) || template_is_set(&tool->compensate.with));
    assert_int_equal(tool->retry.max_attempts, 5);
}

TEST(a_tool_keeps_all_it_was_given)
{
    struct faults faults;

    faults_init(&faults, &arena);
    struct tool *tool = tool_compile(
        json_of("{'name':'t','description':'d','http':{'url':'x'},'effect':'keyed','key':{'body':'/a/"
                "b','window':'2h'},'input':{'type':'object'},"
                "'outcome':{'completed':'${ .response.a }','retry':'${ .response.b }'},'result':{'id':'${ "
                ".response.body.id }'},"
                "'compensate':{'tool':'u','with':{'id':'${ .result.id "
                "}'},'tolerates_absent':true,'voids_key':true,'give_up_after':'1h',"
                "'retry':{'max_attempts':9}},'retry':{'initial':'10m','factor':1.5,'max_unsent':4},'timeout':'1h'}",
                &arena),
        1, SLICE(""), &arena, &faults);

    no_faults(&faults);
    assert_int_equal(tool->key_place, KEY_PLACE_BODY);
    assert_true(slice_is(tool->key_name, "/a/b"));
    assert_int_equal(tool->key_window_ms, 7200000);
    assert_non_null(tool->input);
    assert_true(template_is_set(&tool->outcome.completed) && template_is_set(&tool->outcome.retry));
    assert_false(template_is_set(&tool->outcome.no_effect));
    assert_true(tool->compensate.tolerates_absent && tool->compensate.voids_key && tool->compensate.has_retry);
    assert_int_equal(tool->compensate.give_up_after_ms, 3600000);
    assert_int_equal(tool->compensate.retry.max_attempts, 9);
    assert_int_equal(tool->retry.max_attempts, 3);
    assert_int_equal(tool->retry.max_unsent, 4);
    assert_int_equal(tool->retry.factor_milli, 1500);
    assert_int_equal(tool->retry.initial_ms, 600000);
    assert_int_equal(tool->retry.max_ms, 600000); /* the default of 5 minutes does not cut a delay that was written */
    assert_int_equal(tool->timeout_ms, 3600000);
}

TEST(a_saga_is_compiled_against_registered_tools_and_borrows_nothing)
{
    struct arena borrowed;
    struct faults faults;
    struct tool_source source = {find_registered, &borrowed};

    arena_init(&borrowed, 1 << 14);
    faults_init(&faults, &arena);
    struct slice body = json_of(
        "{'name':'trip','deadline':'1h','steps':["
        "{'id':'room','call':'book','with':{'n':'${ .input.n }'}},"
        "{'id':'car','call':'book','after':[],'timeout':'9s','compensate':{'tool':'pay','give_up_after':'5m'}},"
        "{'id':'look','call':{'builtin':{'do':'echo'},'effect':'read'},'after':['car']},"
        "{'id':'pay','call':'pay','after':['look','room'],'retry':{'max_attempts':2},'scope':'trip ${ .input.id }'},"
        "{'id':'mail','call':'mail','with':{'r':'${ .steps.room.result }'}}],"
        "'output':{'paid':'${ .steps.pay.result }'}}",
        &borrowed);
    struct definition *trip = definition_compile(body, 3, &source, SLICE(""), &arena, &faults);

    no_faults(&faults);
    arena_fini(&borrowed);
    assert_true(slice_is(trip->name, "trip"));
    assert_int_equal(trip->version, 3);
    assert_int_equal(trip->deadline_ms, 3600000);
    assert_int_equal(trip->step_count, 5);
    assert_true(slice_starts_with(trip->body, "{\"name\":\"trip\""));

    const struct step_definition *room = &trip->steps[0], *car = &trip->steps[1], *look = &trip->steps[2],
                                 *pay = &trip->steps[3], *mail = &trip->steps[4];

    assert_int_equal(room->after_count, 0);
    assert_int_equal(car->after_count, 0);
    assert_int_equal(pay->after_count, 2);
    assert_int_equal(mail->after_count, 1);
    assert_true(graph_before(trip, 1, 4) && graph_before(trip, 0, 4) && !graph_before(trip, 0, 2));
    assert_ptr_equal(room->tool, car->tool);
    assert_int_equal(room->tool->version, 12);
    assert_true(slice_is(look->tool->name, "trip.look"));
    assert_int_equal(look->tool->version, 0);

    assert_true(slice_is(room->compensate.tool->name, "refund"));
    assert_int_equal(room->compensate.retry.initial_ms, 4000); /* the policy of the compensator's own tool */
    assert_true(slice_is(car->compensate.tool->name, "pay"));
    assert_int_equal(car->compensate.give_up_after_ms, 300000);
    assert_int_equal(car->compensate.retry.max_attempts, 7);
    assert_int_equal(car->timeout_ms, 9000);
    assert_int_equal(pay->timeout_ms, 3000);
    assert_int_equal(pay->retry.max_attempts, 2);  /* the step */
    assert_int_equal(pay->retry.initial_ms, 1000); /* replaces the policy of the tool */
    assert_int_equal(pay->retry.max_ms, 300000);   /* the class gives the rest */
    assert_int_equal(pay->compensate.retry.max_attempts, 50);
    assert_int_equal(pay->compensate.retry.initial_ms, 4000);
    assert_true(mail->terminal && !mail->compensate.is_set && !pay->terminal);

    static const char *const names[] = {"book", "mail", "pay", "refund"};

    assert_int_equal(trip->tool_count, COUNT_OF(names));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_true(slice_is(trip->tools[i]->name, names[i]));
    }
}

TEST(a_document_may_use_registered_tools)
{
    struct faults faults;
    struct document document;
    struct tool_source source = {find_registered, &arena};

    faults_init(&faults, &arena);
    document_check(
        json_of("{'tools':[{'name':'own','builtin':{'do':'echo'},'effect':'once','compensate':{'tool':'refund'}}],"
                "'sagas':[{'name':'s','steps':[{'id':'x','call':'own'},{'id':'y','call':'pay'}]}]}",
                &arena),
        &source, &arena, &faults, &document);
    no_faults(&faults);
    assert_int_equal(document.check_count, 1); /* registered tools were checked when they were registered */
    assert_int_equal(document.items[1].saga->tool_count, 3);
}

TEST(a_saga_with_a_fault_is_not_compiled)
{
    struct faults faults;
    struct tool_source source = {find_registered, &arena};

    faults_init(&faults, &arena);
    assert_null(definition_compile(json_of("{'name':'s','steps':[{'id':'x','call':'pai'}]}", &arena), 1, &source,
                                   SLICE("/body"), &arena, &faults));
    assert_int_equal(faults.count, 1);
    assert_true(slice_is(faults.items[0].pointer, "/body/steps/0/call"));
    assert_null(tool_compile(json_of("{'name':'s'}", &arena), 1, SLICE(""), &arena, &faults));
}

TEST(the_largest_saga_compiles_and_one_step_more_does_not)
{
    for (int extra = 0; extra < 2; extra++) {
        struct faults faults;
        struct buffer text;
        struct tool_source source = {find_registered, &arena};

        arena_reset(&arena);
        faults_init(&faults, &arena);
        buffer_init(&text, 1 << 20);
        buffer_put_text(&text, "{'name':'s','steps':[");
        for (int i = 0; i < DEFINITION_STEPS_MAX + extra; i++) {
            buffer_printf(&text, "%s{'id':'s%d','call':'pay'}", i ? "," : "", i);
        }
        buffer_put_text(&text, "]}");
        struct definition *definition =
            definition_compile(json_of(buffer_c(&text), &arena), 1, &source, SLICE(""), &arena, &faults);

        assert_int_equal(definition != NULL, extra == 0);
        assert_int_equal(faults.count, extra);
        buffer_fini(&text);
    }
}

TEST_PROGRAM_ARENA(arena)
