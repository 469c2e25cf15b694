/* Registered versions in memory: which children and tools a saga is compiled with, and when it is compiled anew. */
#include "definition_texts.h"
#include "run/definitions.h"

static void add(struct definitions *definitions, enum definition_kind kind, const char *name, uint32_t version,
                const char *body, struct arena *arena)
{
    struct definition_row row = {.kind = kind,
                                 .namespace = SLICE("default"),
                                 .name = slice_of(name),
                                 .version = version,
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
        arena); /* before its child, as one transaction may store them */
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

static void a_new_version_of_a_child_makes_the_parent_anew_and_running_sagas_keep_theirs(void **state)
{
    struct arena arena;
    struct err err = {0};

    (void)state;
    arena_init(&arena, 1 << 14);
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

    definitions = registered(&arena); /* after a restart */
    add(definitions, DEFINITION_SAGA, "child", 2, CHILD_WITH(",'output':{'v':2}"), &arena);
    first = definitions_pinned(definitions, SLICE("default"), SLICE("parent"), 1, tools, SLICE("{\"child\":1}"), &err);
    assert_int_equal(first->steps[0].child->version, 1);
    assert_null(definitions_pinned(definitions, SLICE("default"), SLICE("parent"), 1, tools, SLICE("{}"), &err));
    assert_int_equal(err.code, ERR_INVALID);
    definitions_free(definitions);
    arena_fini(&arena);
}

static void a_parent_that_its_childs_new_version_breaks_is_not_started_but_goes_on(void **state)
{
    struct arena arena;
    struct err err = {0};

    (void)state;
    arena_init(&arena, 1 << 14);
    struct definitions *definitions = registered(&arena);

    add(definitions, DEFINITION_SAGA, "child", 2, CHILD_WITH(",'locks':['x'],'output':1"), &arena);
    assert_null(definitions_newest(definitions, SLICE("default"), SLICE("parent"), 0, &err));
    assert_non_null(strstr(err.detail, "has `locks`, which does not work in a child"));
    assert_non_null(definitions_pinned(definitions, SLICE("default"), SLICE("parent"), 1, SLICE("{\"look\":1}"),
                                       SLICE("{\"child\":1}"), &err));
    definitions_free(definitions);
    arena_fini(&arena);
}

static void a_saga_without_children_is_the_same_whether_none_are_pinned_or_nothing_is(void **state)
{
    struct arena arena;
    struct err err = {0};
    struct slice tools = SLICE("{\"look\":1}");

    (void)state;
    arena_init(&arena, 1 << 14);
    struct definitions *definitions = registered(&arena);
    const struct definition *child = definitions_newest(definitions, SLICE("default"), SLICE("child"), 0, &err);

    assert_true(slice_is(children_text(child, &arena), "{}"));
    assert_ptr_equal(definitions_pinned(definitions, SLICE("default"), SLICE("child"), 1, tools, SLICE_NONE, &err),
                     child);
    assert_ptr_equal(definitions_pinned(definitions, SLICE("default"), SLICE("child"), 1, tools, SLICE("{}"), &err),
                     child);
    definitions_free(definitions);
    arena_fini(&arena);
}

static void a_document_may_bring_a_new_child_of_what_is_registered(void **state)
{
    struct arena arena;
    struct faults faults;
    struct document document;
    struct definitions_source source;

    (void)state;
    arena_init(&arena, 1 << 14);
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
    assert_true(faults.count > 0); /* round in a circle, through what is registered */
    definitions_free(definitions);
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_version_of_a_child_makes_the_parent_anew_and_running_sagas_keep_theirs),
        cmocka_unit_test(a_parent_that_its_childs_new_version_breaks_is_not_started_but_goes_on),
        cmocka_unit_test(a_saga_without_children_is_the_same_whether_none_are_pinned_or_nothing_is),
        cmocka_unit_test(a_document_may_bring_a_new_child_of_what_is_registered),
    };

    return cmocka_run_group_tests_name("definitions", tests, NULL, NULL);
}
