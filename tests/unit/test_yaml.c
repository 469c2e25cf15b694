/* How YAML is read as JSON, what is refused and where, and how YAML is written. */
#include <string.h>

#include "tests/lib/test.h"
#include "tools/sagactl/yaml_text.h"

static const struct {
    const char *yaml, *json;
} meanings[] = {
    {"a: 1\nb: [x, 'y', \"z\"]\n", "{\"a\":1,\"b\":[\"x\",\"y\",\"z\"]}"},
    {"- amount: 12.50\n- 123456789012345678901234567890\n- -0\n- 1e400\n",
     "[{\"amount\":12.50},123456789012345678901234567890,-0,1e400]"},
    {"{\"a\": [1, {\"b\": null}]}", "{\"a\":[1,{\"b\":null}]}"},
    {"a: ~\nb:\nc: Null\nd: TRUE\ne: False\n", "{\"a\":null,\"b\":null,\"c\":null,\"d\":true,\"e\":false}"},
    {"a: yes\nb: no\nc: on\nd: 2026-01-31\ne: 1:30\nf: 1_000\n",
     "{\"a\":\"yes\",\"b\":\"no\",\"c\":\"on\",\"d\":\"2026-01-31\",\"e\":\"1:30\",\"f\":\"1_000\"}"},
    {"a: 0x1F\nb: 0o17\nc: +5\nd: 0xffffffffffffffff\n", "{\"a\":31,\"b\":15,\"c\":5,\"d\":18446744073709551615}"},
    {"a: !!str 5\nb: '5'\nc: \"0123\"\n", "{\"a\":\"5\",\"b\":\"5\",\"c\":\"0123\"}"},
    {"a: |\n  one\n  two\nb: >\n  one\n  two\n", "{\"a\":\"one\\ntwo\\n\",\"b\":\"one two\\n\"}"},
    {"1: a\ntrue: b\n", "{\"1\":\"a\",\"true\":\"b\"}"},
    {"# only a remark\n5\n", "5"},
    {"{}", "{}"},
};

static const struct {
    const char *yaml;
    unsigned line, column;
    const char *says;
} faults[] = {
    {"", 1, 1, "there is nothing in it"},
    {"a: 1\nb: 2\na: 3\n", 3, 1, "this member stands twice, first in line 1"},
    {"x:\n  b: &c 1\n", 2, 6, "anchors"},
    {"- &c [1]\n- *c\n", 1, 3, "anchors"},
    {"- *c\n", 1, 3, "aliases"},
    {"- !!int 5\n", 1, 3, "tags"},
    {"- !mine {}\n", 1, 3, "tags"},
    {"a: 1\n---\nb: 2\n", 2, 1, "a second document"},
    {"? [1]\n: 2\n", 1, 3, "a key is a text"},
    {"{~: 2}\n", 1, 2, "a key is missing"},
    {"a:\n  - 007\n", 2, 5, "in quotes"},
    {"a: .5\n", 1, 4, "in quotes"},
    {"a: .inf\n", 1, 4, "in quotes"},
    {"a: 0x10000000000000000\n", 1, 4, "larger than 64 bits"},
    {"a: b: c\n", 1, 5, "no YAML"},
    {"a: [1,\nb", 3, 1, "no YAML"},
    {"a: \"\xff\"", 1, 1, "no YAML"},
    {"a: 1\nb: \"\xe2\x80\xa8\"", 2, 5, "a line end that YAML 1.2 does not know"},
    {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 1, 65, "64 levels"},
};

static struct arena arena;

TEST(yaml_says_what_json_says)
{
    for (size_t i = 0; i < COUNT_OF(meanings); i++) {
        struct yaml_text text;
        struct yaml_fault fault = {0};

        if (!yaml_read(slice_of(meanings[i].yaml), &arena, &text, &fault)) {
            fail_msg("%s: %u:%u: %s", meanings[i].yaml, fault.position.line, fault.position.column, fault.detail);
        }
        assert_string_equal(text.json.ptr, meanings[i].json);
    }
}

TEST(yaml_that_json_cannot_say_is_refused_with_its_place)
{
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        struct yaml_text text;
        struct yaml_fault fault = {0};

        if (yaml_read(slice_of(faults[i].yaml), &arena, &text, &fault) || !strstr(fault.detail, faults[i].says) ||
            fault.position.line != faults[i].line || fault.position.column != faults[i].column) {
            fail_msg("%s: %u:%u: %s", faults[i].yaml, fault.position.line, fault.position.column, fault.detail);
        }
    }
}

TEST(a_value_of_the_json_has_its_place_in_the_yaml)
{
    struct yaml_text text;
    struct yaml_fault fault;

    assert_true(yaml_read(SLICE("# first\na: 1\nb:\n  - x\n  - \xc3\xa4: y\n"), &arena, &text, &fault));
    assert_string_equal(text.json.ptr, "{\"a\":1,\"b\":[\"x\",{\"\xc3\xa4\":\"y\"}]}");
    struct text_position position = yaml_position(&text, (size_t)(strstr(text.json.ptr, "\"y\"") - text.json.ptr));

    assert_int_equal(position.line, 5);
    assert_int_equal(position.column, 8);
}

TEST(json_is_written_as_yaml_that_reads_alike)
{
    struct buffer out;

    buffer_init(&out, 4096);
    assert_true(yaml_write(SLICE("{\"a\":12.50,\"b\":[\"yes\",\"0123\",\"1:30\",\"\",\"plain text\",null,true],"
                                 "\"c\":{},\"d\":[],\"e\":\"one\\ntwo\\n\",\"on\":[{\"f\":1,\"g\":2}]}"),
                           &out));
    assert_string_equal(buffer_c(&out), "a: 12.50\n"
                                        "b:\n- \"yes\"\n- \"0123\"\n- \"1:30\"\n- \"\"\n- plain text\n- null\n- true\n"
                                        "c: {}\nd: []\n"
                                        "e: |\n  one\n  two\n"
                                        "\"on\":\n- f: 1\n  g: 2\n");
    buffer_fini(&out);
}

int main(void)
{
    arena_init(&arena, 65536);
    int failed = tests_run(NULL, NULL);

    arena_fini(&arena);
    return failed;
}
