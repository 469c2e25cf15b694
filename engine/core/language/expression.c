/*
 * Compiles templates. Each expression is parsed once, here. Rendering only joins the literal pieces with the values
 * between them.
 */
#include "core/language/expression.h"

#include <string.h>

#include "base/json.h"
#include "core/language/expression_scan.h"
#include "core/language/place.h"

#define EXPRESSIONS_MAX 1024
#define SECRET_NAME_MAX 128

static const struct {
    const char *name;
    unsigned root;
} roots_known[] = {
    {"input", ROOT_INPUT},   {"steps", ROOT_STEPS},       {"saga", ROOT_SAGA},
    {"args", ROOT_ARGS},     {"key", ROOT_KEY},           {"attempt", ROOT_ATTEMPT},
    {"result", ROOT_RESULT}, {"response", ROOT_RESPONSE}, {"item", ROOT_ITEM},
};

struct compiler {
    struct arena *arena;
    struct faults *faults;
    unsigned roots;
    struct slice json;
    size_t copied; /* bytes of json that are in the literal text */
    char *literal; /* NULL before the first spot: most settings have none */
    size_t literal_len;
    struct expression *expressions;
    struct {
        size_t end;
        bool inside;
    } * cuts; /* each says where the literal text before a spot ends */
    size_t count, capacity;
    bool too_many;
};

/* --- one expression --- */

static struct slice roots_text(unsigned roots, struct arena *arena)
{
    struct slice text = SLICE_NONE;

    for (size_t i = 0; i < COUNT_OF(roots_known); i++) {
        if (roots & roots_known[i].root) {
            text = text.ptr ? arena_printf(arena, "%.*s .%s", SLICE_ARG(text), roots_known[i].name)
                            : arena_printf(arena, ".%s", roots_known[i].name);
        }
    }
    return text.ptr ? text : SLICE("nothing");
}

/* Parses the part that begins at `*at` with "[". Returns false when it is not a plain index or member. */
static bool parse_bracket(struct slice source, size_t *at, struct arena *arena, struct expression_part *part)
{
    size_t i = scan_space(source, *at + 1);

    if (i < source.len && source.ptr[i] == '"') {
        size_t start = ++i;

        while (i < source.len && source.ptr[i] != '"' && source.ptr[i] != '\\') {
            i++;
        }
        if (i == source.len || source.ptr[i] == '\\') { /* escapes and interpolation are left to jq */
            return false;
        }
        part->member = arena_slice(arena, (struct slice){source.ptr + start, i - start});
        i++;
    } else {
        size_t start = i;

        i += i < source.len && source.ptr[i] == '-';
        size_t digits = i;

        while (i < source.len && source.ptr[i] >= '0' && source.ptr[i] <= '9') {
            i++;
        }
        if (i == digits || i - digits > 9 ||
            !slice_to_i64((struct slice){source.ptr + start, i - start}, &part->index)) {
            return false;
        }
        part->member = SLICE_NONE;
    }
    i = scan_space(source, i);
    if (i == source.len || source.ptr[i] != ']') {
        return false;
    }
    *at = i + 1;
    return true;
}

/* Parses a path that consists only of members and indexes. Returns false for a program. */
static bool parse_plain(struct slice source, struct arena *arena, struct expression *out)
{
    size_t part_max = 0, at = 0, count = 0;

    if (source.ptr[0] != '.' || memchr(source.ptr, '\r', source.len)) {
        return false; /* a carriage return is no white space to libjq 1.6 */
    }
    for (size_t i = 0; i < source.len; i++) {
        part_max += source.ptr[i] == '.' || source.ptr[i] == '[';
    }
    struct expression_part *parts = arena_array(arena, part_max, sizeof(*parts));

    while (at < source.len) {
        if (source.ptr[at] != '.' && source.ptr[at] != '[') {
            return false;
        }
        CHECK(count < part_max);
        struct expression_part *part = &parts[count];

        if (source.ptr[at] == '[') {
            if (!parse_bracket(source, &at, arena, part)) {
                return false;
            }
            count++;
            continue;
        }
        size_t end = scan_name(source, at + 1);

        if (end > at + 1) {
            part->member = arena_slice(arena, (struct slice){source.ptr + at + 1, end - at - 1});
            at = end;
        } else if (source.len == 1) {
            break; /* `.` alone */
        } else if (at == 0 && source.ptr[1] == '[') {
            at++;
            if (!parse_bracket(source, &at, arena, part)) {
                return false;
            }
        } else if (at + 1 < source.len && source.ptr[at + 1] == '"') {
            const char *close = memchr(source.ptr + at + 2, '"', source.len - at - 2);
            struct slice name = {source.ptr + at + 2, close ? (size_t)(close - source.ptr) - at - 2 : 0};

            if (!close || memchr(name.ptr, '\\', name.len)) {
                return false;
            }
            part->member = arena_slice(arena, name);
            at += name.len + 3;
        } else {
            return false;
        }
        count++;
    }
    out->parts = parts;
    out->part_count = count;
    return true;
}

/* Parses secret("name") with nothing around it. */
static bool parse_secret(struct slice source, struct slice *name)
{
    size_t at = scan_name(source, 0);

    if (!slice_is((struct slice){source.ptr, at}, "secret")) {
        return false;
    }
    at = scan_space(source, at);
    if (at == source.len || source.ptr[at] != '(') {
        return false;
    }
    at = scan_space(source, at + 1);
    if (at == source.len || source.ptr[at] != '"') {
        return false;
    }
    size_t start = ++at;

    while (at < source.len && (scan_is_name(source.ptr[at]) || source.ptr[at] == '.' || source.ptr[at] == '-')) {
        at++;
    }
    *name = (struct slice){source.ptr + start, at - start};
    if (at == source.len || source.ptr[at] != '"' || name->len == 0 || name->len > SECRET_NAME_MAX) {
        return false;
    }
    at = scan_space(source, at + 1);
    return at + 1 == source.len && source.ptr[at] == ')';
}

static bool calls_secret(struct slice mask)
{
    for (size_t at = 0; at < mask.len;) {
        size_t end = scan_name(mask, at);

        if (end == at) {
            at++;
            continue;
        }
        if (slice_is((struct slice){mask.ptr + at, end - at}, "secret") && (at == 0 || mask.ptr[at - 1] != '.')) {
            size_t next = scan_space(mask, end);

            if (next < mask.len && mask.ptr[next] == '(') {
                return true;
            }
        }
        at = end;
    }
    return false;
}

static void refuse_item(struct compiler *c, const struct expression *e)
{
    faults_add(c->faults, e->pointer,
               "`%.*s`: there is no element here; `.item` is seen by `with`, `scope`, `sleep`, `show` and the own "
               "`compensate.with` of a step with `for_each`. Which elements there are is said in `for_each`, as in "
               "${ .input.list | map(select(.open)) }",
               SLICE_ARG(e->source));
}

/* Does a program begin with .item? Behind its beginning, the same letters may be a member of anything. */
static bool begins_with_item(struct slice source)
{
    size_t at = 0;

    while (at < source.len && strchr(" \t\r\n([", source.ptr[at])) {
        at++;
    }
    return at < source.len && source.ptr[at] == '.' &&
           slice_is((struct slice){source.ptr + at + 1, scan_name(source, at + 1) - at - 1}, "item");
}

/* Reports misspelt members now: at run time they would silently be null. */
static void check_plain(struct compiler *c, const struct expression *e)
{
    static const struct {
        unsigned root;
        size_t part;
        const char *first, *second, *third;
    } fixed[] = {{ROOT_SAGA, 1, "id", "name", NULL}, {ROOT_STEPS, 2, "result", "status", "error"}};

    if (e->part_count == 0) {
        return;
    }
    struct slice root = e->parts[0].member;
    unsigned bit = 0;

    for (size_t i = 0; i < COUNT_OF(roots_known); i++) {
        bit |= root.ptr && slice_is(root, roots_known[i].name) ? roots_known[i].root : 0;
    }
    if (bit == ROOT_ITEM && !(bit & c->roots)) {
        refuse_item(c, e);
        return;
    }
    if (!(bit & c->roots)) {
        faults_add(c->faults, e->pointer, "`%.*s` names nothing that an expression sees here; it sees %.*s",
                   SLICE_ARG(e->source), SLICE_ARG(roots_text(c->roots, c->arena)));
        return;
    }
    for (size_t i = 0; i < COUNT_OF(fixed); i++) {
        if (bit == fixed[i].root && e->part_count > fixed[i].part) {
            struct slice member = e->parts[fixed[i].part].member;

            if (!member.ptr || (!slice_is(member, fixed[i].first) && !slice_is(member, fixed[i].second) &&
                                !(fixed[i].third && slice_is(member, fixed[i].third)))) {
                faults_add(c->faults, e->pointer, "`%.*s` is always null: %s has the members `%s` and `%s`%s",
                           SLICE_ARG(e->source), bit == ROOT_SAGA ? ".saga" : "a step in .steps", fixed[i].first,
                           fixed[i].second, fixed[i].third ? ", and `error` where it has failed" : "");
            }
        }
    }
}

/* Checks a path below `.steps.ID.error`. The error is what the engine knows of a failure; the receiver's own words are
 * in its `body`. */
static void check_error_path(struct compiler *c, const struct expression *e)
{
    static const char *const known[] = {"code",    "detail", "status",   "headers", "body",
                                        "attempt", "cut",    "not_utf8", "by"};

    if (e->part_count < 4 || !slice_is(e->parts[0].member, "steps") || !slice_is(e->parts[2].member, "error")) {
        return;
    }
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (e->parts[3].member.ptr && slice_is(e->parts[3].member, known[i])) {
            return;
        }
    }
    faults_add(c->faults, e->pointer,
               "`%.*s` is always null: an error has the members `code`, `detail`, `status`, `headers` and `body`",
               SLICE_ARG(e->source));
}

static void compile_source(struct compiler *c, struct slice source, struct slice pointer, struct expression *e)
{
    *e = (struct expression){.source = slice_trim(source), .pointer = pointer, .kind = EXPRESSION_PROGRAM};
    if (e->source.len == 0) {
        faults_add(c->faults, pointer,
                   "there is no expression between `${` and `}`; write one, or `$${` for the characters `${`");
        return;
    }
    if (parse_plain(e->source, c->arena, e)) {
        e->kind = EXPRESSION_PLAIN;
        check_plain(c, e);
        check_error_path(c, e);
        return;
    }
    if (parse_secret(e->source, &e->secret)) {
        e->kind = EXPRESSION_SECRET;
        e->secret = arena_slice(c->arena, e->secret);
        if (!(c->roots & ROOT_SECRET)) {
            faults_add(c->faults, pointer,
                       "secret() works only in the settings of an adapter, where it is resolved at "
                       "call time; anywhere else the secret would be stored");
        }
        return;
    }
    if (!(c->roots & ROOT_ITEM) && begins_with_item(e->source)) {
        refuse_item(c, e);
        return;
    }
    if (calls_secret(scan_mask(e->source, c->arena))) {
        faults_add(c->faults, pointer,
                   "secret() is called in `%.*s`; it must stand alone, as ${ secret(\"name\") }, and its "
                   "name is 1 to %d letters, digits, `_`, `.` or `-`",
                   SLICE_ARG(e->source), SECRET_NAME_MAX);
    }
}

/* --- literal text and spots --- */

static void literal_put(struct compiler *c, const char *bytes, size_t len)
{
    if (!c->literal) { /* the literal text is never longer than the template: an escape is at most as long as what it
                          replaces */
        c->literal = arena_alloc(c->arena, c->json.len + 1);
    }
    CHECK(c->literal_len + len <= c->json.len);
    memcpy(c->literal + c->literal_len, bytes, len);
    c->literal_len += len;
}

static void literal_put_until(struct compiler *c, const char *end)
{
    literal_put(c, c->json.ptr + c->copied, (size_t)(end - c->json.ptr) - c->copied);
    c->copied = (size_t)(end - c->json.ptr);
}

static void literal_put_escaped(struct compiler *c, struct slice text)
{
    static const char shorts[32] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    static const char hex[] = "0123456789abcdef";

    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];

        if (byte == '"' || byte == '\\') {
            literal_put(c, (char[]){'\\', (char)byte}, 2);
        } else if (byte < 0x20 && shorts[byte]) {
            literal_put(c, (char[]){'\\', shorts[byte]}, 2);
        } else if (byte < 0x20) {
            literal_put(c, (char[]){'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]}, 6);
        } else {
            literal_put(c, text.ptr + i, 1);
        }
    }
}

static void add_spot(struct compiler *c, struct slice source, struct slice pointer, bool inside)
{
    if (c->count == EXPRESSIONS_MAX) {
        if (!c->too_many) {
            faults_add(c->faults, pointer, "more than %d expressions in one place", EXPRESSIONS_MAX);
        }
        c->too_many = true;
        return;
    }
    if (c->count == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 8;
        struct expression *expressions = arena_array(c->arena, capacity, sizeof(*expressions));
        void *cuts = arena_array(c->arena, capacity, sizeof(*c->cuts));

        if (c->count > 0) {
            memcpy(expressions, c->expressions, c->count * sizeof(*expressions));
            memcpy(cuts, c->cuts, c->count * sizeof(*c->cuts));
        }
        c->expressions = expressions;
        c->cuts = cuts;
        c->capacity = capacity;
    }
    if (!c->literal) {
        literal_put(c, "", 0);
    }
    c->cuts[c->count].end = c->literal_len;
    c->cuts[c->count].inside = inside;
    compile_source(c, arena_slice(c->arena, source), pointer, &c->expressions[c->count]);
    c->count++;
}

static const char unbalanced[] = "`${` without the `}` that closes it; write `$${` for the characters `${`";

/* Is this text one ${ } and nothing else? Then `*source` is the expression in it. */
static bool is_wholly_expression(struct slice text, struct slice *source)
{
    size_t at = 2;

    if (!slice_starts_with(text, "${") || !scan_close(text, &at) || at + 1 != text.len) {
        return false;
    }
    *source = (struct slice){text.ptr + 2, at - 2};
    return true;
}

static void compile_string(struct compiler *c, struct slice value, const struct place *place)
{
    if (!memchr(value.ptr, '$', value.len) && !memchr(value.ptr, '\\', value.len)) {
        return;
    }
    struct slice text = json_string(value, c->arena), source;
    size_t done = 0;

    if (!text.ptr || !memmem(text.ptr, text.len, "${", 2)) {
        return;
    }
    struct slice pointer = place_pointer(place, c->arena);

    literal_put_until(c, value.ptr);
    c->copied += value.len;
    if (is_wholly_expression(text, &source)) {
        add_spot(c, source, pointer, false);
        return;
    }
    literal_put(c, "\"", 1);
    for (size_t at = 0; at + 1 < text.len;) {
        if (text.ptr[at] == '$' && at + 2 < text.len && text.ptr[at + 1] == '$' && text.ptr[at + 2] == '{') {
            literal_put_escaped(c, (struct slice){text.ptr + done, at - done});
            done = at + 1; /* drops one of the two dollars */
            at += 3;
        } else if (text.ptr[at] == '$' && text.ptr[at + 1] == '{') {
            size_t end = at + 2;

            if (!scan_close(text, &end)) {
                faults_add(c->faults, pointer, unbalanced);
                break;
            }
            literal_put_escaped(c, (struct slice){text.ptr + done, at - done});
            add_spot(c, (struct slice){text.ptr + at + 2, end - at - 2}, pointer, true);
            at = done = end + 1;
        } else {
            at++;
        }
    }
    literal_put_escaped(c, (struct slice){text.ptr + done, text.len - done});
    literal_put(c, "\"", 1);
}

static void compile_value(struct compiler *c, struct slice value, const struct place *place)
{
    struct place below = {.up = place};
    struct json_walk walk;
    struct slice name_raw, item;

    switch (json_type(value)) {
    case JSON_STRING:
        compile_string(c, json_trim(value), place);
        break;
    case JSON_ARRAY:
        walk = json_walk(value);
        for (; json_next_element(&walk, &item); below.index++) {
            compile_value(c, item, &below);
        }
        break;
    case JSON_OBJECT:
        walk = json_walk(value);
        while (json_next_member(&walk, &name_raw, &item)) {
            below.name = json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, c->arena);
            if (memmem(below.name.ptr, below.name.len, "${", 2)) {
                faults_add(c->faults, place_pointer(&below, c->arena),
                           "the name of a member cannot hold ${ }; only values can");
            }
            compile_value(c, item, &below);
        }
        break;
    case JSON_NONE:
    case JSON_NULL:
    case JSON_BOOL:
    case JSON_NUMBER:
        break;
    }
}

void template_compile(struct slice json, struct slice pointer, unsigned roots, struct arena *arena,
                      struct faults *faults, struct template *out)
{
    struct compiler c = {.arena = arena, .faults = faults, .roots = roots};
    struct place root = {.name = arena_slice(arena, pointer)};

    c.json = arena_slice(arena, json_trim(json));
    compile_value(&c, c.json, &root);
    *out = (struct template){.json = c.json, .expressions = c.expressions, .count = c.count};
    if (!c.literal) {
        return;
    }
    literal_put_until(&c, c.json.ptr + c.json.len);
    struct template_spot *spots = arena_array(arena, c.count + 1, sizeof(*spots));
    size_t start = 0;

    for (size_t i = 0; i <= c.count; i++) {
        size_t end = i < c.count ? c.cuts[i].end : c.literal_len;

        spots[i].before = (struct slice){c.literal + start, end - start};
        spots[i].inside = i < c.count && c.cuts[i].inside;
        start = end;
        out->program_count += i < c.count && c.expressions[i].kind == EXPRESSION_PROGRAM;
    }
    out->spots = spots;
}

/* Does the program end in `| @uri`? A pipe binds weaker than everything in front of it. */
static bool ends_encoded(struct slice source)
{
    static const char word[] = "@uri";
    struct slice text = slice_trim(source);
    size_t at = text.len >= strlen(word) ? text.len - strlen(word) : 0;

    if (at == 0 || memcmp(text.ptr + at, word, strlen(word)) != 0 || memchr(text.ptr, '#', text.len)) {
        return false; /* behind a `#` it may be a comment */
    }
    while (at > 0 && strchr(" \t\r\n", text.ptr[at - 1])) {
        at--;
    }
    return at > 0 && text.ptr[at - 1] == '|';
}

void template_encode_url(const struct template *template, struct slice pointer)
{
    bool first = true;

    for (size_t i = 0; template->spots && i < template->count; i++) {
        const struct expression *e = &template->expressions[i];
        struct template_spot *spot = &template->spots[i];

        if (!slice_equal(e->pointer, pointer)) {
            continue;
        }
        bool begins = first && spot->before.len > 0 && spot->before.ptr[spot->before.len - 1] == '"' &&
                      (spot->before.len == 1 || spot->before.ptr[spot->before.len - 2] != '\\');

        first = false;
        spot->of_url = spot->inside && !(begins && e->kind == EXPRESSION_SECRET) &&
                       !(e->kind == EXPRESSION_PROGRAM && ends_encoded(e->source));
    }
}

bool template_encodes_url(const struct template *template)
{
    for (size_t i = 0; template->spots && i < template->count; i++) {
        struct slice source = template->expressions[i].source;

        if (template->spots[i].of_url && !slice_is(source, ".key") && !slice_is(source, ".attempt")) {
            return true;
        }
    }
    return false;
}

void expression_compile(struct slice json, struct slice pointer, unsigned roots, struct arena *arena,
                        struct faults *faults, struct template *out)
{
    struct slice text = json_type(json) == JSON_STRING ? json_string(json, arena) : SLICE_NONE, source;

    if (!text.ptr || !is_wholly_expression(text, &source)) {
        struct slice found = json_trim(json);

        faults_add(faults, pointer, "%.*s%s is not an expression; write it as \"${ EXPR }\", the whole string",
                   (int)(found.len < 60 ? found.len : 60), found.ptr, found.len < 60 ? "" : "...");
        *out = (struct template){0};
        return;
    }
    template_compile(json, pointer, roots, arena, faults, out);
}

bool template_is_set(const struct template *template)
{
    return template->json.ptr != NULL;
}
