/* What definitions offer to agents over the Model Context Protocol, and under which names. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "core/definition/exposure.h"
#include "tests/lib/test.h"

#define ROWS_MAX 8
#define UNDO_OF_IT "\"effect\":\"keyed\",\"compensate\":{\"tool\":\"a.undo\"}"

struct row {
    const char *name, *body;
    bool is_saga;
};

static struct offered offered_of(const struct row *row)
{
    return (struct offered){row->is_saga ? DEFINITION_SAGA : DEFINITION_TOOL, slice_of(row->name), slice_of(row->body)};
}

static size_t build(const struct row *rows, struct offers *out)
{
    struct offered definitions[ROWS_MAX];
    size_t count = 0;

    while (count < ROWS_MAX && rows[count].name) {
        definitions[count] = offered_of(&rows[count]);
        count++;
    }
    offers_build(definitions, count, out);
    return out->count;
}

static const struct {
    const char *says;
    struct row rows[ROWS_MAX];
    const char *names; /* of what is offered, each followed by a blank */
} cases[] = {
    {"a tool that reads", {{"a.read", "{\"effect\":\"read\"}"}}, "a_read "},
    {"a tool that can be undone, and not what undoes it",
     {{"a.do", "{" UNDO_OF_IT "}"}, {"a.undo", "{\"effect\":\"keyed\",\"terminal\":true}"}},
     "a_do "},
    {"what undoes, where it says so",
     {{"a.do", "{" UNDO_OF_IT "}"}, {"a.undo", "{\"effect\":\"keyed\",\"terminal\":true,\"expose\":true}"}},
     "a_do a_undo "},
    {"what undoes a step of a saga is not offered",
     {{"a.undo", "{\"effect\":\"keyed\",\"terminal\":true}"},
      {"s", "{\"steps\":[{\"call\":\"x\",\"compensate\":{\"tool\":\"a.\\u0075ndo\"}}]}", true}},
     ""},
    {"what undoes a tool written in place is not offered",
     {{"a.undo", "{\"effect\":\"keyed\",\"terminal\":true}"}, {"s", "{\"steps\":[{\"call\":{" UNDO_OF_IT "}}]}", true}},
     ""},
    {"what can only undo is not offered, whatever it says", {{"a.undo", "{\"effect\":\"keyed\",\"expose\":true}"}}, ""},
    {"what is kept out", {{"a.read", "{\"effect\":\"read\",\"expose\":false}"}}, ""},
    {"arguments that are no object", {{"a.read", "{\"effect\":\"read\",\"input\":{\"type\":\"string\"}}"}}, ""},
    {"arguments that may be an object",
     {{"a.read", "{\"effect\":\"read\",\"input\":{\"type\":[\"null\",\"object\"]}}"}},
     "a_read "},
    {"a saga only where it says so",
     {{"s", "{\"expose\":true,\"steps\":[]}", true}, {"t", "{\"steps\":[]}", true}},
     "start_s "},
    {"a saga that is retired", {{"s", "{\"expose\":true,\"retired\":\"why\",\"steps\":[]}", true}}, ""},
    {"two of one name: neither",
     {{"a.b", "{\"effect\":\"read\"}"}, {"a_b", "{\"effect\":\"read\"}"}, {"a.c", "{\"effect\":\"read\"}"}},
     "a_c "},
    {"a tool and a saga of one name: neither",
     {{"start.s", "{\"effect\":\"read\"}"}, {"s", "{\"expose\":true,\"steps\":[]}", true}},
     ""},
    {"two of one name, of which one is kept out",
     {{"a.b", "{\"effect\":\"read\"}"}, {"a_b", "{\"effect\":\"read\",\"expose\":false}"}},
     "a_b "},
    {"a name of sagad's own", {{"saga.open", "{\"effect\":\"read\"}"}}, ""},
};

TEST(offers_follow_from_the_definitions)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct offers offers;
        char names[256] = "";
        size_t len = 0;

        (void)build(cases[i].rows, &offers);
        for (size_t k = 0; k < offers.count; k++) {
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%.*s ", SLICE_ARG(offers.items[k].name));
            assert_ptr_equal(offers_find(&offers, offers.items[k].name), &offers.items[k]);
        }
        if (strcmp(names, cases[i].names) != 0) {
            fail_msg("%s: offered is \"%s\"", cases[i].says, names);
        }
        assert_null(offers_find(&offers, SLICE("nothing")));
        offers_fini(&offers);
    }
}

TEST(a_long_name_is_cut_and_stays_one_of_its_own)
{
    static const char a[] = "a.23456789a123456789a123456789a123456789a123456789a12345678a.345678",
                      b[] = "a.23456789a123456789a123456789a123456789a123456789a12345678a.345679";
    const struct row rows[] = {{a, "{\"effect\":\"read\"}"}, {b, "{\"effect\":\"read\"}"}, {NULL}};
    struct offers offers;

    assert_int_equal(build(rows, &offers), 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(offers.items[i].name.len, OFFER_NAME_BYTES_MAX);
        assert_int_equal(memcmp(offers.items[i].name.ptr, "a_23456789a123456789a123456789a123456789a123456789a_", 52),
                         0);
    }
    offers_fini(&offers);
}

/* What the member `expose` may be. */
static const struct {
    const char *name, *expose, *pointer; /* pointer NULL: it is good */
} members[] = {
    {"sets", "{\"sets\":[\"a_Set-1\",\"b\"]}", NULL},
    {"no set", "{\"sets\":[]}", "/expose/sets"},
    {"a text", "{\"sets\":\"a\"}", "/expose/sets"},
    {"a number among them", "{\"sets\":[\"a\",7]}", "/expose/sets"},
    {"a slash", "{\"sets\":[\"a/b\"]}", "/expose/sets"},
    {"an empty name", "{\"sets\":[\"\"]}", "/expose/sets"},
    {"too many",
     "{\"sets\":[\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\"]"
     "}",
     "/expose/sets"},
    {"a schema", "{\"output\":{\"properties\":{}}}", NULL},
    {"a schema of an object", "{\"output\":{\"type\":\"object\"}}", NULL},
    {"a schema of a list", "{\"output\":{\"type\":\"array\"}}", "/expose/output"},
    {"a schema that is a list", "{\"output\":[]}", "/expose/output"},
    {"another member", "{\"set\":[\"a\"]}", "/expose/set"},
};

TEST(sets_and_the_schema_of_a_result_are_checked)
{
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        struct arena arena;
        struct faults faults;
        struct members tool;
        char body[512];

        arena_init(&arena, 1024);
        faults_init(&faults, &arena);
        (void)snprintf(body, sizeof(body), "{\"expose\":%s}", members[i].expose);
        assert_true(members_open(&tool, slice_of(body), SLICE(""), "a tool", "expose", "", &arena, &faults));
        exposure_check(&tool);
        if (faults.count != (members[i].pointer ? 1 : 0) ||
            (members[i].pointer && !slice_is(faults.items[0].pointer, members[i].pointer))) {
            fail_msg("%s: %zu faults", members[i].name, faults.count);
        }
        arena_fini(&arena);
    }
}

TEST(a_definition_is_in_the_sets_that_it_names)
{
    const struct row rows[] = {{"a", "{\"effect\":\"read\",\"expose\":{\"sets\":[\"cards\",\"b\"]}}"},
                               {"b", "{\"effect\":\"read\",\"expose\":{}}"},
                               {NULL}};
    struct offers offers;

    assert_int_equal(build(rows, &offers), 2);
    assert_true(exposure_is_in_set(&offers.items[0].exposure, SLICE("cards")));
    assert_true(exposure_is_in_set(&offers.items[0].exposure, SLICE("b")));
    assert_false(exposure_is_in_set(&offers.items[0].exposure, SLICE("card")));
    assert_false(exposure_is_in_set(&offers.items[0].exposure, SLICE("")));
    assert_false(exposure_is_in_set(&offers.items[1].exposure, SLICE("cards")));
    offers_fini(&offers);
}

TEST(an_offer_says_what_the_definition_says)
{
    const struct row rows[] = {
        {"a", "{\"effect\":\"read\"}"},
        {"b", "{\"effect\":\"once\",\"terminal\":true,\"on_duplicate\":\"allow\"}"},
        {"c", "{\"effect\":{\"if\":\"x\",\"then\":\"read\",\"else\":\"read\"},\"terminal\":true,\"expose\":{"
              "\"title\":\"C\",\"step\":true,\"scope\":true,\"open_world\":false}}"},
        {"d",
         "{\"effect\":\"once\",\"terminal\":true,\"input\":{\"properties\":{\"saga\":{}}},\"expose\":{\"step\":true}}"},
        {"e", "{\"effect\":\"once\",\"terminal\":true,\"input\":{\"anyOf\":[{}]},\"expose\":{\"scope\":true}}"},
        {NULL}};
    struct offers offers;

    assert_int_equal(build(rows, &offers), 5);
    const struct offer *a = &offers.items[0], *b = a + 1, *c = a + 2, *d = a + 3, *e = a + 4;

    assert_true(a->reads && !a->is_terminal && a->coalesces && !a->takes_saga && a->exposure.is_open_world);
    assert_true(!b->reads && b->is_terminal && !b->coalesces && b->takes_saga && !b->takes_step && !b->takes_scope);
    assert_true(!c->reads && c->takes_step && c->takes_scope && !c->exposure.is_open_world);
    assert_true(slice_is(c->exposure.title, "C"));
    assert_true(!d->takes_saga && d->takes_step);   /* it has an argument `saga` of its own */
    assert_true(!e->takes_saga && !e->takes_scope); /* its schema does not say which arguments there are */
    offers_fini(&offers);
}

static const struct {
    const char *says;
    struct row fresh[ROWS_MAX], registered[ROWS_MAX];
    const char *fault; /* NULL: none */
} checks[] = {
    {"one beside another", {{"a.b", "{}"}}, {{"a.c", "{}"}}, NULL},
    {"two of the document", {{"a.b", "{}"}, {"a_b", "{}"}}, {{NULL}}, "the tool `a.b` would both be `a_b`"},
    {"one of the document, and a registered one", {{"a_b", "{}"}}, {{"a.b", "{}"}}, "the tool `a.b` would both be"},
    {"the next version of a registered one", {{"a.b", "{}"}}, {{"a.b", "{}"}}, NULL},
    {"a registered one that the document keeps out",
     {{"a.b", "{\"expose\":false}"}, {"a_b", "{}"}},
     {{"a.b", "{}"}},
     NULL},
    {"a registered one that is kept out", {{"a.b", "{}"}}, {{"a_b", "{\"expose\":false}"}}, NULL},
    {"a saga that is not offered", {{"start.s", "{}"}}, {{"s", "{}", true}}, NULL},
    {"a tool, and a registered saga",
     {{"start.s", "{}"}},
     {{"s", "{\"expose\":true}", true}},
     "the saga `s` would both be `start_s`"},
    {"a name of sagad's own", {{"operation.status", "{}"}}, {{NULL}}, "a tool that sagad has itself"},
    {"a name of sagad's own that is kept out", {{"saga.open", "{\"expose\":false}"}}, {{NULL}}, NULL},
};

TEST(two_definitions_of_one_name_are_refused)
{
    for (size_t i = 0; i < COUNT_OF(checks); i++) {
        struct offered fresh[ROWS_MAX], registered[ROWS_MAX];
        struct slice pointers[ROWS_MAX];
        size_t fresh_count = 0, count = 0;
        struct faults faults;
        struct arena arena;

        for (; checks[i].fresh[fresh_count].name; fresh_count++) {
            fresh[fresh_count] = offered_of(&checks[i].fresh[fresh_count]);
            pointers[fresh_count] = SLICE("/tools/0");
        }
        for (; checks[i].registered[count].name; count++) {
            registered[count] = offered_of(&checks[i].registered[count]);
        }
        arena_init(&arena, 1024);
        faults_init(&faults, &arena);
        offers_check(fresh, pointers, fresh_count, registered, count, &arena, &faults);
        if (faults.count != (checks[i].fault ? 1 : 0)) {
            fail_msg("%s: %zu faults", checks[i].says, faults.count);
        }
        if (checks[i].fault) {
            assert_true(slice_is(faults.items[0].pointer, "/tools/0/name"));
            assert_non_null(strstr(arena_text(&arena, faults.items[0].detail), checks[i].fault));
        }
        arena_fini(&arena);
    }
}

TEST_PROGRAM(NULL, NULL)
