/* The places in which two sets of arguments differ, and whether the difference matters. */
#include <stdio.h>
#include <string.h>

#include "base/canon.h"
#include "base/json.h"
#include "core/definition/drift.h"
#include "tests/lib/test.h"

static struct slice volatile_items[] = {{"/request_id", 11}, {"/meta/at", 8}, {"/lines/*/at", 11}};
static struct slice material_items[] = {{"/amount", 7}, {"/to/name", 8}, {"/lines/*/sku", 12}};

static struct tool tool_with(bool has_material)
{
    return (struct tool){
        .has_material = has_material,
        .material = {material_items, has_material ? COUNT_OF(material_items) : 0},
        .volatiles = {volatile_items, COUNT_OF(volatile_items)},
    };
}

static struct slice plain(struct arena *arena, const char *text)
{
    char *copy = arena_text(arena, slice_of(text));

    for (char *c = copy; *c; c++) {
        if (*c == '\'') {
            *c = '"';
        }
    }
    return slice_of(copy);
}

static const struct {
    const char *name;
    bool has_material;
    const char *first, *second;
    const char *pointers; /* NULL when the sets do not differ */
    bool material;
} cases[] = {
    {"the same", false, "{'a':1}", "{'a':1}", NULL, false},
    {"the order of members and the way a number is written do not count", false, "{'a':1,'b':100}",
     "{'b':1e2, 'a':1.0}", NULL, false},
    {"nor does the way a string is written", false, "{'a':'x'}", "{'a':'\\u0078'}", NULL, false},
    {"numbers beyond what a double holds are told apart", false, "{'a':9007199254740993}", "{'a':9007199254740992}",
     "['/a']", true},
    {"nothing is material but what is volatile", false, "{'a':1}", "{'a':2}", "['/a']", true},
    {"a volatile member may differ", false, "{'a':1,'request_id':'x'}", "{'a':1,'request_id':'y'}", NULL, false},
    {"or be missing", false, "{'a':1,'request_id':'x'}", "{'a':1}", NULL, false},
    {"also further down", false, "{'meta':{'at':1,'by':2}}", "{'meta':{'at':3,'by':2}}", NULL, false},
    {"its neighbour may not", false, "{'meta':{'at':1,'by':2}}", "{'meta':{'at':3,'by':3}}", "['/meta/by']", true},
    {"what is not material is named, but does not matter", true, "{'amount':1,'memo':'a'}", "{'amount':1,'memo':'b'}",
     "['/memo']", false},
    {"what is material matters, and only that is named", true, "{'amount':1,'memo':'a'}", "{'amount':2,'memo':'b'}",
     "['/amount']", true},
    {"what lies in a material place is material", true, "{'amount':{'value':1}}", "{'amount':{'value':2}}",
     "['/amount/value']", true},
    {"a name that only begins like it is not", true, "{'amounts':1}", "{'amounts':2}", "['/amounts']", false},
    {"a material place whose surroundings are gone is missing", true, "{'amount':1,'to':{'name':'a','x':1}}",
     "{'amount':1}", "['/to']", true},
    {"but surroundings without it are not material", true, "{'amount':1,'to':{'x':1}}", "{'amount':1}", "['/to']",
     false},
    {"null is not the same as missing", true, "{'amount':null}", "{}", "['/amount']", true},
    {"a text is not a number", true, "{'amount':'1'}", "{'amount':1}", "['/amount']", true},
    {"elements are compared one by one", false, "{'a':[1,2,3]}", "{'a':[1,5,3,4]}", "['/a/1','/a/3']", true},
    {"names are escaped as pointers are", false, "{'a/b':1,'c~d':1}", "{'a/b':2,'c~d':2}", "['/a~1b','/c~0d']", true},
    {"a star stands for every element", true, "{'lines':[{'sku':1,'at':1},{'sku':2,'at':2}]}",
     "{'lines':[{'sku':1,'at':3},{'sku':3,'at':4}]}", "['/lines/1/sku']", true},
    {"and not for what stands beside", true, "{'lines':[{'sku':1,'n':1}]}", "{'lines':[{'sku':1,'n':2}]}",
     "['/lines/0/n']", false},
    {"an element more may hold something material", true, "{'lines':[]}", "{'lines':[{'n':2}]}", "['/lines/0']", true},
    {"all of it", false, "[1]", "{'a':1}", "['']", true},
};

static struct arena arena;

TEST(differences_are_found_as_the_fingerprint_sees_them)
{
    arena_init(&arena, 4096);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct tool tool = tool_with(cases[i].has_material);
        struct drift drift = drift_find(&tool, plain(&arena, cases[i].first), plain(&arena, cases[i].second), &arena);
        struct drift back = drift_find(&tool, plain(&arena, cases[i].second), plain(&arena, cases[i].first), &arena);

        if (drift.differs != (cases[i].pointers != NULL) || drift.material != cases[i].material ||
            (drift.differs && !slice_equal(drift.pointers, plain(&arena, cases[i].pointers)))) {
            fail_msg("%s: %.*s", cases[i].name, SLICE_ARG(drift.pointers));
        }
        assert_true(drift.differs == back.differs && drift.material == back.material);
        assert_true(
            drift.differs !=
            slice_equal(canon(plain(&arena, cases[i].first), volatile_items, COUNT_OF(volatile_items), &arena),
                        canon(plain(&arena, cases[i].second), volatile_items, COUNT_OF(volatile_items), &arena)));
        assert_true(slice_equal(drift.pointers, back.pointers));
    }
}

TEST(a_long_list_is_cut_off_but_a_material_place_behind_the_cut_counts)
{
    struct buffer first, second;
    struct tool tool = tool_with(true);
    struct drift drift;

    arena_init(&arena, 4096);
    buffer_init(&first, 65536);
    buffer_init(&second, 65536);
    buffer_put_text(&first, "{\"amount\":1");
    buffer_put_text(&second, "{\"amount\":1");
    for (int i = 0; i < 100; i++) {
        buffer_printf(&first, ",\"a%d\":1", i);
        buffer_printf(&second, ",\"a%d\":2", i);
    }
    buffer_put_char(&first, '}');
    buffer_put_text(&second, ",\"to\":{\"name\":1}}");
    drift = drift_find(&tool, buffer_slice(&first), buffer_slice(&second), &arena);
    assert_true(drift.material);
    assert_true(slice_is(drift.pointers, "[\"/to\"]"));
    second.len -= strlen(",\"to\":{\"name\":1}}");
    buffer_put_char(&second, '}');
    drift = drift_find(&tool, buffer_slice(&first), buffer_slice(&second), &arena);
    assert_true(drift.differs && !drift.material);
    assert_int_equal(json_count(drift.pointers), DRIFT_POINTERS_MAX);
    buffer_fini(&first);
    buffer_fini(&second);
}

TEST(values_are_never_named)
{
    struct tool tool = tool_with(false);
    struct drift drift;

    arena_init(&arena, 4096);
    drift = drift_find(&tool, plain(&arena, "{'card':'4111'}"), plain(&arena, "{'card':'4222'}"), &arena);
    assert_true(slice_is(drift.pointers, "[\"/card\"]"));
}

TEST_PROGRAM_CLOSING(arena, arena_fini)
