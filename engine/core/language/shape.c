/* See shape.h. Programs are scanned, not parsed: only an object that is written out has known members. */
#include "core/language/shape.h"

#include <string.h>

#include "base/json.h"
#include "core/language/expression_scan.h"
#include "core/language/members.h"

static enum shape_says no_such_member(struct slice member, struct slice near, struct arena *arena, struct slice *why)
{
    *why = arena_printf(arena, "there is no `%.*s` in it%.*s", SLICE_ARG(member), SLICE_ARG(did_you_mean(near, arena)));
    return SHAPE_FORBIDS;
}

static enum shape_says no_parts(const char *what, struct arena *arena, struct slice *why)
{
    *why = arena_printf(arena, "it is %s", what);
    return SHAPE_FORBIDS;
}

/* --- a schema --- */

static enum shape_says follow_schema(struct shape *shape, struct slice member, struct arena *arena, struct slice *why)
{
    const struct schema *schema = shape->schema, *next;
    enum schema_says says = member.ptr ? schema_member(schema, member, &next) : schema_element(schema, &next);

    *shape = (struct shape){.kind = next ? SHAPE_SCHEMA : SHAPE_ANY, .schema = next};
    switch (says) {
    case SCHEMA_ALLOWS:
        return SHAPE_ALLOWS;
    case SCHEMA_OMITS:
        (void)no_such_member(member, schema_near_member(schema, member), arena, why);
        return SHAPE_OMITS;
    case SCHEMA_FORBIDS:
        return no_such_member(member, schema_near_member(schema, member), arena, why);
    case SCHEMA_MISFITS:
        return no_parts(arena_printf(arena, "of type %.*s", SLICE_ARG(schema_types_text(schema))).ptr, arena, why);
    }
    UNREACHABLE();
}

/* --- a program --- */

/* Returns the part of a program that gives its value: the text behind the last pipe outside of brackets. */
static struct slice last_stage(struct slice mask)
{
    size_t depth = 0, begin = 0;

    for (size_t i = 0; i < mask.len; i++) {
        depth += strchr("([{", mask.ptr[i]) && mask.ptr[i] ? 1 : 0;
        depth -= strchr(")]}", mask.ptr[i]) && mask.ptr[i] && depth > 0 ? 1 : 0;
        if (depth == 0 && mask.ptr[i] == '|') {
            begin = i + 1;
        }
    }
    return (struct slice){mask.ptr + begin, mask.len - begin};
}

/* Returns the place where the bracket at `at` closes, or mask.len when it does not close. */
static size_t closing(struct slice mask, size_t at)
{
    size_t depth = 0;

    for (; at < mask.len; at++) {
        depth += strchr("([{", mask.ptr[at]) && mask.ptr[at] ? 1 : 0;
        depth -= strchr(")]}", mask.ptr[at]) && mask.ptr[at] && depth > 0 ? 1 : 0;
        if (depth == 0) {
            return at;
        }
    }
    return at;
}

struct entry {                /* a member of an object that is written out */
    struct slice name, value; /* a value of SLICE_NONE comes from the input */
};

/* Reads the entry between two commas, `mask`. Returns false when its name is calculated. */
static bool read_entry(struct slice source, struct slice mask, struct entry *out)
{
    size_t at = scan_space(mask, 0), end;

    *out = (struct entry){.name = SLICE_NONE};
    if (at < mask.len && mask.ptr[at] == '"') {
        const char *close = memchr(mask.ptr + at + 1, '"', mask.len - at - 1);

        if (!close) {
            return false;
        }
        end = (size_t)(close - mask.ptr) + 1;
        out->name = (struct slice){source.ptr + at + 1, end - at - 2};
        if (memchr(out->name.ptr, '\\', out->name.len)) {
            return false;
        }
    } else {
        at += at < mask.len && mask.ptr[at] == '$';
        end = scan_name(mask, at);
        out->name = (struct slice){source.ptr + at, end - at};
    }
    at = scan_space(mask, end);
    if (at < mask.len && mask.ptr[at] == ':') {
        out->value = slice_trim((struct slice){source.ptr + at + 1, source.len - at - 1});
        return out->name.len > 0;
    }
    return at == mask.len && out->name.len > 0;
}

/* Finds the entry of a name. Returns true with it, or with the name SLICE_NONE when there is none. Returns false when
 * not all names are written out. */
static bool find_entry(struct slice source, struct slice mask, struct slice member, struct entry *found)
{
    size_t begin = 0;

    *found = (struct entry){.name = SLICE_NONE};
    while (begin < mask.len) {
        size_t end = begin, depth = 0;
        struct entry entry;

        for (; end < mask.len && (depth > 0 || mask.ptr[end] != ','); end++) {
            depth += strchr("([{", mask.ptr[end]) && mask.ptr[end] ? 1 : 0;
            depth -= strchr(")]}", mask.ptr[end]) && mask.ptr[end] && depth > 0 ? 1 : 0;
        }
        if (!read_entry((struct slice){source.ptr + begin, end - begin}, (struct slice){mask.ptr + begin, end - begin},
                        &entry)) {
            return false;
        }
        if (slice_equal(entry.name, member)) {
            *found = entry;
        }
        begin = end + 1;
    }
    return true;
}

static enum shape_says follow_program(struct shape *shape, struct slice member, struct arena *arena, struct slice *why)
{
    struct slice source = shape->text, mask = scan_mask(source, arena), stage = last_stage(mask);
    size_t begin = (size_t)(stage.ptr - mask.ptr), at = scan_space(stage, 0), end;
    struct entry entry;

    *shape = (struct shape){.kind = SHAPE_ANY};
    stage = slice_trim(stage);
    begin += at;
    if (!member.ptr || stage.len < 2) {
        return SHAPE_ALLOWS;
    }
    end = closing(stage, 0);
    if (stage.ptr[0] == '"' && memchr(stage.ptr + 1, '"', stage.len - 1) == stage.ptr + stage.len - 1) {
        return no_parts("a text", arena, why);
    }
    if (stage.ptr[0] != '{' || end + 1 != stage.len ||
        !find_entry((struct slice){source.ptr + begin + 1, end - 1}, (struct slice){stage.ptr + 1, end - 1}, member,
                    &entry)) {
        return SHAPE_ALLOWS;
    }
    if (!entry.name.ptr) {
        return no_such_member(member, SLICE_NONE, arena, why);
    }
    if (entry.value.ptr) {
        *shape = (struct shape){.kind = SHAPE_PROGRAM, .text = entry.value};
    }
    return SHAPE_ALLOWS;
}

/* --- a template --- */

static enum shape_says follow_object(struct shape *shape, struct slice member, struct arena *arena, struct slice *why)
{
    struct json_walk walk = json_walk(shape->text);
    struct slice name_raw, value;

    while (member.ptr && json_next_member(&walk, &name_raw, &value)) {
        if (slice_equal(json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, arena), member)) {
            shape->text = json_trim(value);
            return SHAPE_ALLOWS;
        }
    }
    *shape = (struct shape){.kind = SHAPE_ANY};
    return member.ptr ? no_such_member(member, SLICE_NONE, arena, why) : SHAPE_ALLOWS;
}

static enum shape_says follow_text(struct shape *shape, struct slice member, struct arena *arena, struct slice *why)
{
    struct slice text = json_string(shape->text, arena);
    size_t at = 2;

    if (slice_starts_with(text, "${") && scan_close(text, &at) && at + 1 == text.len) {
        *shape = (struct shape){.kind = SHAPE_PROGRAM, .text = slice_trim((struct slice){text.ptr + 2, text.len - 3})};
        return shape->text.len > 0 ? follow_program(shape, member, arena, why) : SHAPE_ALLOWS;
    }
    *shape = (struct shape){.kind = SHAPE_ANY};
    return no_parts("a text", arena, why);
}

static enum shape_says follow_json(struct shape *shape, struct slice member, struct arena *arena, struct slice *why)
{
    switch (json_type(shape->text)) {
    case JSON_OBJECT:
        return follow_object(shape, member, arena, why);
    case JSON_STRING:
        return follow_text(shape, member, arena, why);
    case JSON_ARRAY:
        *shape = (struct shape){.kind = SHAPE_ANY};
        return member.ptr ? no_parts("an array", arena, why) : SHAPE_ALLOWS;
    case JSON_NUMBER:
    case JSON_BOOL:
        *shape = (struct shape){.kind = SHAPE_ANY};
        return no_parts("no object", arena, why);
    case JSON_NULL: /* a member of null is null */
    case JSON_NONE:
        *shape = (struct shape){.kind = SHAPE_ANY};
        return SHAPE_ALLOWS;
    }
    UNREACHABLE();
}

static bool is_word(struct slice member, const char *words)
{
    while (*words) {
        size_t len = strcspn(words, " ");

        if (slice_equal(member, (struct slice){words, len})) {
            return true;
        }
        words += len + (words[len] == ' ');
    }
    return false;
}

static enum shape_says follow_words(struct shape *shape, struct slice member, struct arena *arena, struct slice *why)
{
    const char *words = shape->words;

    *shape = (struct shape){.kind = SHAPE_ANY};
    return !member.ptr || is_word(member, words) ? SHAPE_ALLOWS
                                                 : no_such_member(member, word_near(member, words), arena, why);
}

enum shape_says shape_follow(struct shape *shape, struct slice member, struct arena *arena, struct slice *why)
{
    switch (shape->kind) {
    case SHAPE_ANY:
        return SHAPE_ALLOWS;
    case SHAPE_SCHEMA:
        return follow_schema(shape, member, arena, why);
    case SHAPE_JSON:
        return follow_json(shape, member, arena, why);
    case SHAPE_PROGRAM:
        return follow_program(shape, member, arena, why);
    case SHAPE_WORDS:
        return follow_words(shape, member, arena, why);
    }
    UNREACHABLE();
}
