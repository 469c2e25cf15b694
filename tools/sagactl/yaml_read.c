/* Reads YAML. libyaml reports the parts of the text as events, and this file writes them as JSON text. */
#include "tools/sagactl/yaml_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/json.h"
#include "tools/sagactl/yaml_scalar.h"

#define DEPTH_MAX 64
#define YAML_BYTES_MAX (4 << 20)
#define STRING_TAG "tag:yaml.org,2002:str"

struct key { /* a key of an open mapping */
    struct slice text;
    struct text_position position;
};

struct reader {
    yaml_parser_t parser;
    struct arena *arena;
    struct yaml_fault *fault;
    struct buffer json;
    struct buffer marks; /* a buffer of struct yaml_mark */
    struct key *keys;    /* the keys of all open mappings, the innermost mapping last */
    size_t key_count, key_capacity;
    size_t first_key[DEPTH_MAX]; /* the first key of the mapping at each depth */
    bool is_mapping[DEPTH_MAX], has_items[DEPTH_MAX], wants_value[DEPTH_MAX];
    size_t depth;
};

static struct text_position position_of(yaml_mark_t mark)
{
    return (struct text_position){(unsigned)mark.line + 1, (unsigned)mark.column + 1};
}

static bool refuse(struct reader *r, struct text_position position, const char *detail)
{
    r->fault->position = position;
    (void)snprintf(r->fault->detail, sizeof(r->fault->detail), "%s", detail);
    return false;
}

static bool wants_key(const struct reader *r)
{
    return r->depth > 0 && r->is_mapping[r->depth - 1] && !r->wants_value[r->depth - 1];
}

/* Writes the separator before a value and marks the value's place. */
static void begin_value(struct reader *r, yaml_mark_t mark)
{
    if (r->depth > 0) {
        if (!r->is_mapping[r->depth - 1] && r->has_items[r->depth - 1]) {
            buffer_put_char(&r->json, ',');
        }
        r->has_items[r->depth - 1] = true;
        r->wants_value[r->depth - 1] = false;
    }
    struct yaml_mark at = {r->json.len, position_of(mark)};

    buffer_put(&r->marks, &at, sizeof(at));
}

static void keep_key(struct reader *r, struct slice text, struct text_position position)
{
    if (r->key_count == r->key_capacity) {
        size_t capacity = r->key_capacity ? r->key_capacity * 2 : 64;
        struct key *keys = arena_array(r->arena, capacity, sizeof(*keys));

        if (r->key_count > 0) {
            memcpy(keys, r->keys, r->key_count * sizeof(*keys));
        }
        r->keys = keys;
        r->key_capacity = capacity;
    }
    r->keys[r->key_count++] = (struct key){arena_slice(r->arena, text), position};
}

static bool take_key(struct reader *r, const yaml_event_t *event, struct slice text)
{
    struct text_position position = position_of(event->start_mark);
    bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

    if (is_plain && yaml_scalar_kind(text) == YAML_SCALAR_NULL) {
        return refuse(r, position, "a key is missing here, or null; write it in quotes if that is its name");
    }
    buffer_put_text(&r->json, r->has_items[r->depth - 1] ? "," : "");
    json_put_string(&r->json, text);
    buffer_put_char(&r->json, ':');
    keep_key(r, text, position);
    r->has_items[r->depth - 1] = r->wants_value[r->depth - 1] = true;
    return true;
}

static bool take_scalar(struct reader *r, const yaml_event_t *event)
{
    struct slice text = {(const char *)event->data.scalar.value, event->data.scalar.length};
    const char *tag = (const char *)event->data.scalar.tag;
    bool is_text = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE || tag;

    if (event->data.scalar.anchor) {
        return refuse(r, position_of(event->start_mark), "anchors are not read; write the value out where it is used");
    }
    if (tag && strcmp(tag, STRING_TAG) != 0 && strcmp(tag, "!") != 0) {
        return refuse(r, position_of(event->start_mark), "tags are not read, but for !!str");
    }
    if (wants_key(r)) {
        return take_key(r, event, text);
    }
    begin_value(r, event->start_mark);
    if (is_text) {
        json_put_string(&r->json, text);
        return true;
    }
    const char *why = yaml_scalar_put(text, &r->json);

    return why ? refuse(r, position_of(event->start_mark), why) : true;
}

static bool begin_container(struct reader *r, const yaml_event_t *event, bool is_mapping, const yaml_char_t *anchor,
                            const yaml_char_t *tag)
{
    struct text_position position = position_of(event->start_mark);

    if (anchor) {
        return refuse(r, position, "anchors are not read; write the value out where it is used");
    }
    if (tag) {
        return refuse(r, position, "tags are not read, but for !!str");
    }
    if (wants_key(r)) {
        return refuse(r, position, "a key is a text; this one is a mapping or a sequence");
    }
    if (r->depth == DEPTH_MAX) {
        return refuse(r, position, "nested deeper than 64 levels");
    }
    begin_value(r, event->start_mark);
    buffer_put_char(&r->json, is_mapping ? '{' : '[');
    r->first_key[r->depth] = r->key_count;
    r->is_mapping[r->depth] = is_mapping;
    r->has_items[r->depth] = r->wants_value[r->depth] = false;
    r->depth++;
    return true;
}

static int by_name(const void *left, const void *right)
{
    const struct key *a = left, *b = right;
    int order = memcmp(a->text.ptr, b->text.ptr, a->text.len < b->text.len ? a->text.len : b->text.len);

    if (order != 0 || a->text.len != b->text.len) {
        return order != 0 ? order : a->text.len < b->text.len ? -1 : 1;
    }
    if (a->position.line != b->position.line) {
        return a->position.line < b->position.line ? -1 : 1;
    }
    return a->position.column < b->position.column ? -1 : 1;
}

static bool end_container(struct reader *r)
{
    size_t first = r->first_key[--r->depth], count = r->key_count - first;

    buffer_put_char(&r->json, r->is_mapping[r->depth] ? '}' : ']');
    if (r->is_mapping[r->depth] && count > 1) {
        qsort(r->keys + first, count, sizeof(*r->keys), by_name);
        for (size_t i = first + 1; i < r->key_count; i++) {
            if (slice_equal(r->keys[i].text, r->keys[i - 1].text)) {
                char detail[sizeof(r->fault->detail)];

                (void)snprintf(detail, sizeof(detail), "this member stands twice, first in line %u",
                               r->keys[i - 1].position.line);
                return refuse(r, r->keys[i].position, detail);
            }
        }
    }
    r->key_count = first;
    return true;
}

/* Reports a syntax fault in the words of libyaml. */
static bool refuse_syntax(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    char detail[sizeof(r->fault->detail)];

    if (p->error == YAML_READER_ERROR) {
        (void)snprintf(detail, sizeof(detail), "no YAML: %s at byte %zu", p->problem, p->problem_offset);
        return refuse(r, position_of(p->mark), detail);
    }
    (void)snprintf(detail, sizeof(detail), "no YAML: %s%s%s", p->context ? p->context : "", p->context ? ", " : "",
                   p->problem ? p->problem : "it cannot be read");
    return refuse(r, position_of(p->problem_mark), detail);
}

static bool take_event(struct reader *r, const yaml_event_t *event, size_t *documents)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return ++*documents == 1 || refuse(r, position_of(event->start_mark), "a second document; one is read");
    case YAML_ALIAS_EVENT:
        return refuse(r, position_of(event->start_mark), "aliases are not read; write the value out");
    case YAML_SCALAR_EVENT:
        return take_scalar(r, event);
    case YAML_SEQUENCE_START_EVENT:
        return begin_container(r, event, false, event->data.sequence_start.anchor, event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return begin_container(r, event, true, event->data.mapping_start.anchor, event->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return end_container(r);
    case YAML_STREAM_END_EVENT:
        return *documents > 0 || refuse(r, (struct text_position){1, 1}, "there is nothing in it");
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return true;
    }
    UNREACHABLE();
}

static bool read_all(struct reader *r)
{
    size_t documents = 0;

    for (bool ended = false; !ended;) {
        yaml_event_t event;

        if (!yaml_parser_parse(&r->parser, &event)) {
            return refuse_syntax(r);
        }
        ended = event.type == YAML_STREAM_END_EVENT;
        bool good = take_event(r, &event, &documents);

        yaml_event_delete(&event);
        if (!good) {
            return false;
        }
    }
    return true;
}

/* Refuses the line ends that YAML 1.1 had and libyaml would fold into blanks. */
static bool refuse_old_line_ends(struct reader *r, struct slice yaml)
{
    struct text_position position = {1, 1};

    for (size_t i = 0; i < yaml.len; i++) {
        if (yaml_is_old_line_end(yaml.ptr + i, yaml.len - i)) {
            return refuse(r, position, "a line end that YAML 1.2 does not know; write \"\\N\", \"\\L\" or \"\\P\"");
        }
        position.column += ((unsigned char)yaml.ptr[i] & 0xc0) != 0x80;
        if (yaml.ptr[i] == '\n') {
            position = (struct text_position){position.line + 1, 1};
        }
    }
    return true;
}

bool yaml_read(struct slice yaml, struct arena *arena, struct yaml_text *out, struct yaml_fault *fault)
{
    struct reader r = {.arena = arena, .fault = fault};

    if (yaml.len > YAML_BYTES_MAX) {
        return refuse(&r, (struct text_position){1, 1}, "larger than 4 MiB");
    }
    if (!refuse_old_line_ends(&r, yaml)) {
        return false;
    }
    CHECK(yaml_parser_initialize(&r.parser)); /* fails only without memory */
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)yaml.ptr, yaml.len);
    buffer_init(&r.json, SIZE_MAX / 2); /* a byte of YAML becomes only a few bytes of JSON */
    buffer_init(&r.marks, SIZE_MAX / 2);

    bool good = read_all(&r);

    if (good) {
        *out = (struct yaml_text){arena_slice(arena, buffer_slice(&r.json)),
                                  arena_dup(arena, buffer_slice(&r.marks).ptr, r.marks.len),
                                  r.marks.len / sizeof(struct yaml_mark)};
    }
    buffer_fini(&r.json);
    buffer_fini(&r.marks);
    yaml_parser_delete(&r.parser);
    return good;
}

struct text_position yaml_position(const struct yaml_text *text, size_t offset)
{
    size_t low = 0, high = text->mark_count;

    while (low < high) { /* finds the first mark behind the place */
        size_t middle = low + (high - low) / 2;

        if (text->marks[middle].offset <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? text->marks[low - 1].position : (struct text_position){1, 1};
}
