/*
 * Strings of jq may hold programs, "\(.a + "\(.b)")", and these may hold strings again. So the search for a bracket is
 * recursive. Its depth has a bound, because definitions come from outside.
 */
#include "core/language/expression_scan.h"

#include <string.h>

#define NESTED_MAX 32

bool scan_is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool scan_is_name(char c)
{
    return scan_is_name_start(c) || (c >= '0' && c <= '9');
}

size_t scan_name(struct slice text, size_t at)
{
    if (at < text.len && scan_is_name_start(text.ptr[at])) {
        while (at < text.len && scan_is_name(text.ptr[at])) {
            at++;
        }
    }
    return at;
}

size_t scan_space(struct slice text, size_t at)
{
    while (at < text.len && strchr(" \t\r\n", text.ptr[at]) && text.ptr[at] != '\0') {
        at++;
    }
    return at;
}

static void blank(char *mask, size_t at)
{
    if (mask) {
        mask[at] = 1;
    }
}

static bool scan_code(struct slice text, size_t *at, char open, char close, char *mask, int depth);

/* Moves `*at` from behind the opening quote to behind the closing one. */
static bool scan_string(struct slice text, size_t *at, char *mask, int depth)
{
    if (depth > NESTED_MAX) {
        return false;
    }
    while (*at < text.len) {
        char c = text.ptr[*at];

        if (c == '"') {
            ++*at;
            return true;
        }
        blank(mask, *at);
        ++*at;
        if (c != '\\' || *at == text.len) {
            continue;
        }
        bool interpolated = text.ptr[*at] == '(';

        blank(mask, *at);
        ++*at;
        if (interpolated) {
            if (!scan_code(text, at, '(', ')', mask, depth + 1)) {
                return false;
            }
            blank(mask, *at);
            ++*at;
        }
    }
    return false;
}

/* Moves `*at` onto the first `close` without an `open`. */
static bool scan_code(struct slice text, size_t *at, char open, char close, char *mask, int depth)
{
    size_t opened = 0;

    while (*at < text.len) {
        char c = text.ptr[*at];

        if (c == '"') {
            ++*at;
            if (!scan_string(text, at, mask, depth + 1)) {
                return false;
            }
            continue;
        }
        if (c == '#') {
            while (*at < text.len && text.ptr[*at] != '\n') {
                blank(mask, *at);
                ++*at;
            }
            continue;
        }
        if (c == close && opened-- == 0) {
            return true;
        }
        if (c == open) {
            opened++;
        }
        ++*at;
    }
    return false;
}

bool scan_close(struct slice text, size_t *at)
{
    return scan_code(text, at, '{', '}', NULL, 0);
}

struct slice scan_mask(struct slice program, struct arena *arena)
{
    char *mask = arena_text(arena, program);
    size_t at = 0;

    while (at < program.len) {
        if (scan_code(program, &at, '{', '}', mask,
                      0)) { /* a brace without a partner; a template cannot have one, so the scan just goes on */
            at++;
        } else if (at < program.len) { /* the program is too deep: the rest is not scanned */
            memset(mask + at, 1, program.len - at);
            break;
        }
    }
    return (struct slice){mask, program.len};
}
