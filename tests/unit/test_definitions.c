/* Registered versions in memory: the children and tools with which a saga is compiled, and when it is compiled
 * again. */
#include "definition_texts.h"
#include "run/request/definitions.h"

static void add(struct definitions *definitions, enum definition_kind kind, const char *name, uint32_t version,
                const char *body, struct arena *arena)
{
    struct definition_row row = {.kind = kind,
                                 .namespace = SLICE("default"),
                                 .name = slice_of(name),
                                 .version = version,
                                 .reading = READING_NEWEST,
                                 .body = json_of(body, arena)};

    definitions_add(definitions, &row);
}

#define CHILD_WITH(members) "{'name':'child','steps':[{'id':'a','call':'look'}]" members "}"
#define PARENT                                                                                                         \
    "{'name':'parent','steps':[{'id':'x','saga':'child'},{'id':'y','call':'look','with':'${ .steps.x.result.v }'}]}"

static struct definitions *registered(struct arena *arena)
{
    struct definitions *definitions = definitions_new();

    add(definitions, DEFINITION_TOOL, "look", 1, "{'name':'look','builtin':{'do':'echo'},'effect':'read'}", arena);
    add(definitions, DEFINITION_SAGA, "parent", 1, PARENT,
        arena); /* the saga comes before its child, since one transaction may store them in this order */
    add(definitions, DEFINITION_SAGA, "child", 1, CHILD_WITH(",'output':{'v':1}"), arena);
    return definitions;
}

static struct slice children_text(const struct definition *definition, struct arena *arena)
{
    struct buffer out;

    buffer_init(&out, 4096);
    definition_write_children(definition, &out);
    struct slice text = arena_slice(arena, buffer_slice(&out));

    buffer_fini(&out);
    return text;
}

static struct arena arena;

TEST(a_definition_is_read_as_it_was_registered_for_ever)
{
    static const char body[] = "{'name':'pay','http':{'url':'http://a/${ .args.id }'},'effect':'once','terminal':true}";
    static const char saga[] =
        "{'name':'s','steps':[{'id':'a','call':{'http':{'url':'http://a/${ .args.id }'},'effect':'read'}},"
        "{'id':'b','call':'pay'}]}";
    struct err err = {0};

    struct definitions *definitions = definitions_new();

    for (uint32_t version = 1; version <= 3; version++) {
        const enum definition_kind kinds[] = {DEFINITION_TOOL, DEFINITION_SAGA};

        for (size_t i = 0; i < COUNT_OF(kinds); i++) {
            const struct definition_row row = {.kind = kinds[i],
                                               .namespace = SLICE("default"),
                                               .name = i ? SLICE("s") : SLICE("pay"),
                                               .version = version,
                                               .reading = (enum reading)version,
                                               .body = json_of(i ? saga : body, &arena)};

            definitions_add(definitions, &row);
        }
    }
    const struct tool *first = definitions_tool(definitions, SLICE("default"), SLICE("pay"), 1, &err);
    const struct tool *second = definitions_tool(definitions, SLICE("default"), SLICE("pay"), 2, &err);

    assert_int_equal(first->reading, READING_FIRST);
    assert_false(template_encodes_url(&first->settings));
    assert_int_equal(second->reading, READING_SECOND);
    assert_true(template_encodes_url(&second->settings));
    assert_null(
        definitions_tool(definitions, SLICE("default"), SLICE("pay"), 3, &err)); /* the version of a later release */
    assert_non_null(strstr(err.detail, "later release"));

    const struct definition *mixed =
        definitions_pinned(definitions, SLICE("default"), SLICE("s"), 1, SLICE("{\"pay\":2}"), SLICE_NONE, &err);

    assert_non_null(mixed);
    assert_int_equal(mixed->steps[1].tool->reading, READING_SECOND);
    assert_int_equal(mixed->steps[0].tool->reading, READING_FIRST); /* an inline tool has the reading of its saga */
    definitions_free(definitions);
}

TEST(a_new_version_of_a_child_makes_the_parent_anew_and_running_sagas_keep_theirs)
{
    struct err err = {0};

    struct definitions *definitions = registered(&arena);
    const struct definition *first = definitions_newest(definitions, SLICE("default"), SLICE("parent"), 0, &err);

    assert_non_null(first);
    assert_int_equal(first->steps[0].child->version, 1);
    assert_true(slice_is(children_text(first, &arena), "{\"child\":1}"));
    assert_ptr_equal(definitions_newest(definitions, SLICE("default"), SLICE("parent"), 0, &err), first);

    add(definitions, DEFINITION_SAGA, "child", 2, CHILD_WITH(",'output':{'v':2}"), &arena);
    const struct definition *second = definitions_newest(definitions, SLICE("default"), SLICE("parent"), 0, &err);

    assert_int_equal(second->steps[0].child->version, 2);
    assert_int_equal(second->version, 1);
    assert_int_equal(first->steps[0].child->version, 1);
    struct slice tools = SLICE("{\"look\":1}");

    assert_ptr_equal(
        definitions_pinned(definitions, SLICE("default"), SLICE("parent"), 1, tools, SLICE("{\"child\":1}"), &err),
        first);
    assert_ptr_equal(
        definitions_pinned(definitions, SLICE("default"), SLICE("parent"), 1, tools, SLICE("{\"child\":2}"), &err),
        second);
    definitions_free(definitions);

    definitions = registered(&arena); /* as after a restart */
    add(definitions, DEFINITION_SAGA, "child", 2, CHILD_WITH(",'output':{'v':2}"), &arena);
    first = definitions_pinned(definitions, SLICE("default"), SLICE("parent"), 1, tools, SLICE("{\"child\":1}"), &err);
    assert_int_equal(first->steps[0].child->version, 1);
    assert_null(definitions_pinned(definitions, SLICE("default"), SLICE("parent"), 1, tools, SLICE("{}"), &err));
    assert_int_equal(err.code, ERR_INVALID);
    definitions_free(definitions);
}

TEST(a_parent_that_its_childs_new_version_breaks_is_not_started_but_goes_on)
{
    struct err err = {0};

    struct definitions *definitions = registered(&arena);

    add(definitions, DEFINITION_SAGA, "child", 2, CHILD_WITH(",'locks':['x'],'output':1"), &arena);
    assert_null(definitions_newest(definitions, SLICE("default"), SLICE("parent"), 0, &err));
    assert_non_null(strstr(err.detail, "has `locks`, which does not work in a child"));
    assert_non_null(definitions_pinned(definitions, SLICE("default"), SLICE("parent"), 1, SLICE("{\"look\":1}"),
                                       SLICE("{\"child\":1}"), &err));
    definitions_free(definitions);
}

TEST(a_saga_without_children_is_the_same_whether_none_are_pinned_or_nothing_is)
{
    struct err err = {0};
    struct slice tools = SLICE("{\"look\":1}");

    struct definitions *definitions = registered(&arena);
    const struct definition *child = definitions_newest(definitions, SLICE("default"), SLICE("child"), 0, &err);

    assert_true(slice_is(children_text(child, &arena), "{}"));
    assert_ptr_equal(definitions_pinned(definitions, SLICE("default"), SLICE("child"), 1, tools, SLICE_NONE, &err),
                     child);
    assert_ptr_equal(definitions_pinned(definitions, SLICE("default"), SLICE("child"), 1, tools, SLICE("{}"), &err),
                     child);
    definitions_free(definitions);
}

TEST(a_document_may_bring_a_new_child_of_what_is_registered)
{
    struct faults faults;
    struct document document;
    struct definitions_source source;

    struct definitions *definitions = registered(&arena);

    definitions_source_init(&source, definitions, SLICE("default"), SLICE_NONE, SLICE_NONE);
    faults_init(&faults, &arena);
    document_check(
        json_of("{'sagas':[{'name':'top','steps':[{'id':'p','saga':'parent'}],'then':[{'saga':'child'}]}," CHILD_WITH(
                    ",'output':{'v':3}") "]}",
                &arena),
        &source.source, &arena, &faults, &document);
    no_faults(&faults);
    assert_ptr_equal(document.items[0].saga->steps[0].child->steps[0].child, document.items[1].saga);
    faults_init(&faults, &arena);
    document_check(
        json_of("{'sagas':[{'name':'top','steps':[{'id':'p','saga':'parent'}]},{'name':'child','steps':[{'id':"
                "'a','saga':'parent'}]}]}",
                &arena),
        &source.source, &arena, &faults, &document);
    assert_true(faults.count > 0); /* the definitions form a circle through registered ones */
    definitions_free(definitions);
}

/* Rows come in any order and repeatedly. Each version exists once, and the newest version is the newest. */
TEST(versions_may_come_in_any_order_and_twice)
{
    static const uint32_t order[] = {5, 2, 9, 1, 3, 2, 9, 4};
    size_t count;

    struct definitions *definitions = definitions_new();

    for (size_t i = 0; i < COUNT_OF(order); i++) {
        add(definitions, DEFINITION_TOOL, "look", order[i], "{'name':'look','builtin':{'do':'echo'},'effect':'read'}",
            &arena);
    }
    for (uint32_t version = 1; version <= 9; version++) {
        const struct definition_row *row =
            definitions_row(definitions, DEFINITION_TOOL, SLICE("default"), SLICE("look"), version);

        assert_int_equal(row != NULL, version <= 5 || version == 9);
        assert_true(!row || row->version == version);
    }
    assert_int_equal(definitions_row(definitions, DEFINITION_TOOL, SLICE("default"), SLICE("look"), 0)->version, 9);
    (void)definitions_list(definitions, DEFINITION_TOOL, SLICE("default"), &arena, &count);
    assert_int_equal(count, 1);
    (void)definitions_list(definitions, DEFINITION_TOOL, SLICE("other"), &arena, &count);
    assert_int_equal(count, 0);
    (void)definitions_list(definitions, DEFINITION_SAGA, SLICE("default"), &arena, &count);
    assert_int_equal(count, 0);
    definitions_free(definitions);
    definitions_free(NULL);
}

TEST(a_missing_definition_is_told_with_its_name_and_version)
{
    struct err err = {0};

    struct definitions *definitions = registered(&arena);

    assert_null(definitions_tool(definitions, SLICE("default"), SLICE("nobody"), 0, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_string_equal(err.detail, "");
    assert_null(definitions_tool(definitions, SLICE("default"), SLICE("look"), 7, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_string_equal(err.detail, "version 7 is not registered");
    assert_null(definitions_newest(definitions, SLICE("default"), SLICE("nobody"), 0, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_string_equal(err.detail, "");
    assert_null(definitions_newest(definitions, SLICE("default"), SLICE("parent"), 7, &err));
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_string_equal(err.detail, "version 7 is not registered");
    definitions_free(definitions);
}

/* A newer release may have registered the tool. */
TEST(a_tool_that_this_release_cannot_use_is_told_with_the_reason)
{
    struct err err = {0};

    struct definitions *definitions = registered(&arena);

    add(definitions, DEFINITION_TOOL, "look", 2, "{'name':'look','telepathy':{},'effect':'read'}", &arena);
    assert_null(definitions_tool(definitions, SLICE("default"), SLICE("look"), 0, &err));
    assert_int_equal(err.code, ERR_INVALID);
    assert_non_null(strstr(err.message, "version 2 does not compile"));
    assert_true(err.detail[0] != '\0');
    assert_non_null(definitions_tool(definitions, SLICE("default"), SLICE("look"), 1,
                                     &err)); /* the older version is still usable */
    add(definitions, DEFINITION_TOOL, "look", 3, "7", &arena);
    assert_null(definitions_tool(definitions, SLICE("default"), SLICE("look"), 0, &err));
    definitions_free(definitions);
}

/* A log may name anything as the versions that its saga began with. Only registered versions are used. */
TEST(pins_that_make_no_sense_do_not_compile)
{
    static const char *const pins[] = {"{'look':'1'}", "{'look':0}", "{'look':-1}", "{'look':7}", "{'other':1}", "{}"};
    static const char long_name[] =
        "{'name':'long','steps':[{'id':'a','call':'"
        "x01234567890123456789012345678901234567890123456789012345678901234567890123456789"
        "01234567890123456789012345678901234567890123456789012345678901234567890123456789'}]}";
    struct err err = {0};

    struct definitions *definitions = registered(&arena);

    for (size_t i = 0; i < COUNT_OF(pins); i++) {
        assert_null(definitions_pinned(definitions, SLICE("default"), SLICE("child"), 1, json_of(pins[i], &arena),
                                       SLICE_NONE, &err));
        assert_int_equal(err.code, ERR_INVALID);
    }
    add(definitions, DEFINITION_SAGA, "long", 1, long_name, &arena);
    assert_null(
        definitions_pinned(definitions, SLICE("default"), SLICE("long"), 1, SLICE("{\"look\":1}"), SLICE_NONE, &err));
    assert_non_null(
        definitions_pinned(definitions, SLICE("default"), SLICE("child"), 1, SLICE("{\"look\":1}"), SLICE_NONE, &err));
    definitions_free(definitions);
}

/* Open sagas and runs have definitions of their own, which all of them share. */
TEST(open_sagas_and_runs_are_there_without_being_registered)
{
    struct err err = {0};

    struct definitions *definitions = definitions_new();
    const struct definition *open = definitions_open(definitions, SAGA_OPEN),
                            *run = definitions_open(definitions, SAGA_RUN);

    assert_ptr_not_equal(open, run);
    assert_ptr_equal(definitions_open(definitions, SAGA_OPEN), open);
    assert_ptr_equal(definitions_newest(definitions, SLICE("n"), SLICE(RUN_SAGA_NAME), 0, &err), run);
    assert_ptr_equal(
        definitions_pinned(definitions, SLICE("n"), SLICE(OPEN_SAGA_NAME), 1, SLICE("{}"), SLICE("{}"), &err), open);
    definitions_free(definitions);
}

static bool guards_look(void *context, struct slice namespace, struct slice tool)
{
    (void)context;
    return slice_is(namespace, "default") && slice_is(tool, "look");
}

/* A budget in the settings puts a guard in front of the tool's calls, wherever the tool is compiled. */
TEST(a_tool_with_a_budget_is_guarded)
{
    struct err err = {0};

    struct definitions *definitions = registered(&arena);

    add(definitions, DEFINITION_TOOL, "free", 1, "{'name':'free','builtin':{'do':'echo'},'effect':'read'}", &arena);
    definitions_set_guard(definitions, guards_look, NULL);
    assert_true(definitions_tool(definitions, SLICE("default"), SLICE("look"), 0, &err)->guarded);
    assert_false(definitions_tool(definitions, SLICE("default"), SLICE("free"), 0, &err)->guarded);
    assert_true(definitions_newest(definitions, SLICE("default"), SLICE("child"), 0, &err)->steps[0].tool->guarded);
    definitions_free(definitions);
}

TEST_PROGRAM_ARENA(arena)
