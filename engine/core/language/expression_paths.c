/*
 * Finds the paths that an expression follows from the root of its context, such as .input.order.id. Programs are
 * scanned, not parsed. A path counts when nothing in front of it can have given `.` another meaning, and nothing behind
 * it assigns to it. Doubtful paths are left out.
 */
#include "core/language/expression.h"

#include <string.h>

#include "core/language/expression_scan.h"

#define PARTS_MAX 32 /* longer paths are cut here */

struct path_scan {
    struct slice source, mask;
    struct slice parts[PARTS_MAX];
    size_t count;
};

static bool word_is(struct slice word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_is(word, words[i])) {
            return true;
        }
    }
    return false;
}

/* Is this a name behind which `.` is no longer the root? Arguments of functions and bindings of values change it. */
static bool rebinds(struct slice mask, size_t at, size_t end)
{
    static const char *const binds[] = {"as", "def", "catch", "reduce", "foreach", "label"};
    static const char *const harmless[] = {"if", "then", "elif", "else", "and", "or", "try", "not"};
    struct slice word = {mask.ptr + at, end - at};
    size_t next = scan_space(mask, end);

    if (at > 0 && strchr(".$@", mask.ptr[at - 1])) {
        return false; /* it is a member, a variable or a format */
    }
    return word_is(word, binds, COUNT_OF(binds)) ||
           (next < mask.len && mask.ptr[next] == '(' && !word_is(word, harmless, COUNT_OF(harmless)));
}

/* Returns the length of the beginning of the program in which `.` is the root. */
static size_t rooted_bytes(struct slice mask)
{
    size_t at = 0;

    while (at < mask.len && mask.ptr[at] != '|') {
        size_t end = scan_name(mask, at);

        if (end > at && rebinds(mask, at, end)) {
            return at;
        }
        at = end > at ? end : at + 1;
    }
    return at;
}

/* Is the dot at `at` the root, rather than a member of the term in front of it? */
static bool begins_path(struct slice mask, size_t at)
{
    static const char *const keywords[] = {"if", "then", "elif", "else", "and", "or", "try"};
    size_t end = at, begin;

    while (end > 0 && strchr(" \t\r\n", mask.ptr[end - 1]) && mask.ptr[end - 1] != '\0') {
        end--;
    }
    if (end == 0) {
        return true;
    }
    if (strchr(".])\"?}", mask.ptr[end - 1])) {
        return false;
    }
    for (begin = end; begin > 0 && scan_is_name(mask.ptr[begin - 1]);) {
        begin--;
    }
    return begin == end || ((begin == 0 || !strchr(".$@", mask.ptr[begin - 1])) &&
                            word_is((struct slice){mask.ptr + begin, end - begin}, keywords, COUNT_OF(keywords)));
}

/* Scans a quoted name; `*at` is on the quote. Returns false when it is not plain text. */
static bool scan_quoted(struct path_scan *s, size_t *at, struct slice *name)
{
    const char *close = memchr(s->mask.ptr + *at + 1, '"', s->mask.len - *at - 1);

    if (!close) {
        return false;
    }
    *name = (struct slice){s->source.ptr + *at + 1, (size_t)(close - s->mask.ptr) - *at - 1};
    *at = (size_t)(close - s->mask.ptr) + 1;
    return !memchr(name->ptr, '\\', name->len);
}

/* Scans an index or name in brackets; `*at` is on the bracket. Returns false when its content is calculated. */
static bool scan_bracket(struct path_scan *s, size_t *at, struct slice *name)
{
    size_t i = scan_space(s->mask, *at + 1);

    *name = SLICE_NONE;
    if (i < s->mask.len && s->mask.ptr[i] == '"') {
        if (!scan_quoted(s, &i, name)) {
            return false;
        }
    } else {
        while (i < s->mask.len && ((s->mask.ptr[i] >= '0' && s->mask.ptr[i] <= '9') || s->mask.ptr[i] == '-')) {
            i++;
        }
    }
    i = scan_space(s->mask, i);
    *at = i + 1;
    return i < s->mask.len && s->mask.ptr[i] == ']';
}

static bool scan_part(struct path_scan *s, size_t *at, struct slice *name)
{
    char c = *at < s->mask.len ? s->mask.ptr[*at] : '\0', next = *at + 1 < s->mask.len ? s->mask.ptr[*at + 1] : '\0';

    if (c == '[') {
        return scan_bracket(s, at, name);
    }
    if (c != '.') {
        return false;
    }
    if (scan_is_name_start(next)) {
        size_t end = scan_name(s->mask, *at + 1);

        *name = (struct slice){s->source.ptr + *at + 1, end - *at - 1};
        *at = end;
        return true;
    }
    ++*at;
    return next == '"' ? scan_quoted(s, at, name) : next == '[' && scan_bracket(s, at, name);
}

/* Scans a path; `at` is on its first dot. Returns the end of the path. */
static size_t scan_path(struct path_scan *s, size_t at)
{
    size_t behind = at;

    s->count = 0;
    while (s->count < PARTS_MAX && scan_part(s, &behind, &s->parts[s->count])) {
        s->count++;
        at = behind;
    }
    if (at < s->mask.len && s->mask.ptr[at] == '?' && s->count > 0) {
        s->count--; /* a `?` follows, so it does no harm when this part is missing */
    }
    return at;
}

/* Does an assignment follow: `=`, `|=`, `+=` and the like, but not `==`? */
static bool is_assigned(struct slice mask, size_t at)
{
    at = scan_space(mask, at);
    while (at < mask.len && strchr("|+-*/%", mask.ptr[at]) && mask.ptr[at] != '\0') {
        at++;
    }
    return at < mask.len && mask.ptr[at] == '=' && !(at + 1 < mask.len && mask.ptr[at + 1] == '=');
}

static void each_in_program(const struct expression *e, void (*found)(void *context, const struct path_use *use),
                            void *context)
{
    struct path_scan s = {.source = e->source};
    struct arena arena;
    size_t rooted, end;

    arena_init(&arena, 4096);
    s.mask = scan_mask(e->source, &arena);
    rooted = rooted_bytes(s.mask);
    for (size_t at = 0; at < rooted; at = end) {
        end = at + 1;
        if (s.mask.ptr[at] != '.' || !begins_path(s.mask, at)) {
            continue;
        }
        end = scan_path(&s, at);
        if (s.count > 0 && !is_assigned(s.mask, end)) {
            found(context, &(struct path_use){.text = {e->source.ptr + at, end - at},
                                              .pointer = e->pointer,
                                              .parts = s.parts,
                                              .part_count = s.count});
        }
        end += end == at;
    }
    arena_fini(&arena);
}

static void plain(const struct expression *e, void (*found)(void *context, const struct path_use *use), void *context)
{
    struct slice parts[PARTS_MAX];
    size_t count = e->part_count < PARTS_MAX ? e->part_count : PARTS_MAX;

    for (size_t i = 0; i < count; i++) {
        parts[i] = e->parts[i].member;
    }
    found(context, &(struct path_use){e->source, e->pointer, parts, count});
}

void template_each_path(const struct template *template, void (*found)(void *context, const struct path_use *use),
                        void *context)
{
    for (size_t i = 0; i < template->count; i++) {
        const struct expression *e = &template->expressions[i];

        switch (e->kind) {
        case EXPRESSION_PLAIN:
            plain(e, found, context);
            break;
        case EXPRESSION_PROGRAM:
            each_in_program(e, found, context);
            break;
        case EXPRESSION_SECRET:
            break;
        }
    }
}
