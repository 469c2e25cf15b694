/*
 * The JSON scanner, against cJSON and against itself. cJSON must understand all accepted text in the same way. Text
 * that is written from it must be accepted again and mean the same. Every place must be found by its pointer.
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>

#include "base/canon.h"
#include "tests/fuzz/fuzz.h"

#define CJSON_NUMBER_BYTES 63 /* cJSON 1.7.15 cuts longer numbers */
#define POINTERS_MAX 16
#define LEVELS_COUNTED 90 /* deeper brackets are only counted, from the whole text on */

static bool has_long_number(struct slice value)
{
    struct json_walk walk = json_walk(value);
    struct slice name, inner;

    switch (json_type(value)) {
    case JSON_NUMBER:
        return json_trim(value).len >= CJSON_NUMBER_BYTES;
    case JSON_ARRAY:
        while (json_next_element(&walk, &inner)) {
            if (has_long_number(inner)) {
                return true;
            }
        }
        return false;
    case JSON_OBJECT:
        while (json_next_member(&walk, &name, &inner)) {
            if (has_long_number(inner)) {
                return true;
            }
        }
        return false;
    case JSON_NONE:
    case JSON_NULL:
    case JSON_BOOL:
    case JSON_STRING:
        return false;
    }
    UNREACHABLE();
}

static struct slice unquote(struct slice name_raw, struct arena *arena)
{
    return json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, arena);
}

static void check_number(struct slice value, const cJSON *node, struct arena *arena)
{
    double number = strtod(arena_text(arena, json_trim(value)), NULL);
    int64_t whole;

    MUST(cJSON_IsNumber(node));
    MUST(number == node->valuedouble);
    if (json_i64(value, &whole) && fabs(number) < 9e15) {
        MUST((double)whole == number);
    }
}

static void check_same(struct slice value, const cJSON *node, struct arena *arena)
{
    struct json_walk walk = json_walk(value);
    struct slice name, inner, text;
    const cJSON *child = node->child;
    size_t count = 0;
    bool truth;

    switch (json_type(value)) {
    case JSON_NULL:
        MUST(cJSON_IsNull(node));
        break;
    case JSON_BOOL:
        MUST(json_bool(value, &truth) && cJSON_IsBool(node) && truth == (cJSON_IsTrue(node) != 0));
        break;
    case JSON_NUMBER:
        check_number(value, node, arena);
        break;
    case JSON_STRING:
        text = json_string(value, arena);
        MUST(text.ptr && cJSON_IsString(node));
        MUST(slice_is(text, node->valuestring) && json_string_is(value, node->valuestring));
        break;
    case JSON_ARRAY:
        MUST(cJSON_IsArray(node));
        for (; json_next_element(&walk, &inner); child = child->next, count++) {
            MUST(child);
            check_same(inner, child, arena);
        }
        MUST(!child && count == json_count(value));
        break;
    case JSON_OBJECT:
        MUST(cJSON_IsObject(node));
        for (; json_next_member(&walk, &name, &inner); child = child->next, count++) {
            MUST(child && slice_is(unquote(name, arena), child->string));
            check_same(inner, child, arena);
        }
        MUST(!child && count == json_count(value));
        break;
    case JSON_NONE:
        UNREACHABLE();
    }
}

/* Writes the same value with the writer. */
static void write_again(struct json_writer *w, const char *name, struct slice value, struct arena *arena)
{
    struct json_walk walk = json_walk(value);
    struct slice name_raw, inner;
    int64_t whole;
    bool truth;

    switch (json_type(value)) {
    case JSON_NULL:
        json_write_null(w, name);
        break;
    case JSON_BOOL:
        MUST(json_bool(value, &truth));
        json_write_bool(w, name, truth);
        break;
    case JSON_NUMBER:
        if (json_i64(value, &whole)) {
            json_write_i64(w, name, whole);
        } else {
            json_write_raw(w, name, value);
        }
        break;
    case JSON_STRING:
        json_write_slice(w, name, json_string(value, arena));
        break;
    case JSON_ARRAY:
        json_array_begin(w, name);
        while (json_next_element(&walk, &inner)) {
            write_again(w, NULL, inner, arena);
        }
        json_array_end(w);
        break;
    case JSON_OBJECT:
        json_object_begin(w, name);
        while (json_next_member(&walk, &name_raw, &inner)) {
            write_again(w, arena_text(arena, unquote(name_raw, arena)), inner, arena);
        }
        json_object_end(w);
        break;
    case JSON_NONE:
        UNREACHABLE();
    }
}

static void check_pointers(struct slice whole, struct slice value, struct slice pointer, size_t *left,
                           struct arena *arena)
{
    struct json_walk walk = json_walk(value);
    struct slice name_raw, inner;
    size_t index = 0;

    if (*left == 0) {
        return;
    }
    --*left;
    MUST(slice_equal(json_trim(json_at(whole, pointer)), json_trim(value)));
    if (json_type(value) == JSON_OBJECT) {
        while (json_next_member(&walk, &name_raw, &inner)) {
            check_pointers(whole, inner, json_pointer_join(arena, pointer, unquote(name_raw, arena)), left, arena);
        }
    } else if (json_type(value) == JSON_ARRAY) {
        while (json_next_element(&walk, &inner)) {
            check_pointers(whole, inner, arena_printf(arena, "%.*s/%zu", SLICE_ARG(pointer), index++), left, arena);
        }
    }
}

static void check_round_trip(struct slice text, struct arena *arena)
{
    static struct buffer out;
    struct json_writer w;

    if (out.bytes_max == 0) {
        buffer_init(&out, (size_t)1 << 24);
    }
    buffer_reset(&out);
    json_writer_init(&w, &out);
    write_again(&w, NULL, text, arena);
    MUST(!out.overflow && fuzz_is_json(buffer_slice(&out)));
    MUST(slice_equal(canon(text, NULL, 0, arena), canon(buffer_slice(&out), NULL, 0, arena)));
}

/* Checks the syntax. An array falls into elements that lie side by side, whatever each of them is. */
static void check_syntax(struct slice text, bool is_good)
{
    struct err err = {0};
    enum err_code code = json_check_syntax(text, &err);
    struct json_walk walk = json_walk(text);
    const char *end = text.ptr;
    struct slice element;

    MUST(code == ERR_OK || (code == ERR_MALFORMED && err.message[0] && !is_good));
    while (code == ERR_OK && json_type(text) == JSON_ARRAY && json_next_element(&walk, &element)) {
        MUST(element.ptr > end && element.len > 0 && element.ptr + element.len < text.ptr + text.len);
        MUST(json_check_syntax(element, &err) == ERR_OK || element.len > LEVELS_COUNTED);
        end = element.ptr + element.len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = fuzz_input(data, size);
    struct arena *arena = fuzz_arena();
    struct err err = {0};
    enum err_code code = json_check(text, &json_limits_default, &err);
    size_t pointers_left = POINTERS_MAX;
    struct cJSON *tree;

    check_syntax(text, code == ERR_OK);
    if (code != ERR_OK) {
        MUST((code == ERR_MALFORMED || code == ERR_TOO_LARGE) && err.code == code && err.message[0]);
        return 0;
    }
    tree = json_tree(text, arena);
    MUST(tree || has_long_number(text));
    if (tree) {
        check_same(text, tree, arena);
    }
    check_pointers(text, text, SLICE(""), &pointers_left, arena);
    check_round_trip(text, arena);
    return 0;
}
