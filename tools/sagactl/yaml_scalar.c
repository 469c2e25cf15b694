/* See yaml_scalar.h. Numbers never become doubles: a number that JSON cannot write as it is gets refused. */
#include "tools/sagactl/yaml_scalar.h"

#include <string.h>

#include "base/errors.h"
#include "base/json.h"

static bool is_one_of(struct slice text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_is(text, words[i])) {
            return true;
        }
    }
    return false;
}

static size_t skip_digits(struct slice text, size_t at)
{
    while (at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9') {
        at++;
    }
    return at;
}

static bool is_json_number(struct slice text)
{
    size_t at = text.len > 0 && text.ptr[0] == '-', digits = at;

    at = skip_digits(text, at);
    if (at == digits || (text.ptr[digits] == '0' && at > digits + 1)) {
        return false;
    }
    if (at < text.len && text.ptr[at] == '.') {
        digits = ++at;
        at = skip_digits(text, at);
        if (at == digits) {
            return false;
        }
    }
    if (at < text.len && (text.ptr[at] == 'e' || text.ptr[at] == 'E')) {
        at++;
        at += at < text.len && (text.ptr[at] == '+' || text.ptr[at] == '-');
        digits = at;
        at = skip_digits(text, at);
        if (at == digits) {
            return false;
        }
    }
    return at == text.len;
}

/* Returns 16 for 0x1F and 8 for 0o17; 0 for a number without such a prefix. */
static unsigned base_of(struct slice text)
{
    unsigned base = text.len < 3 || text.ptr[0] != '0' ? 0 : text.ptr[1] == 'x' ? 16 : text.ptr[1] == 'o' ? 8 : 0;

    for (size_t i = 2; base > 0 && i < text.len; i++) {
        char c = text.ptr[i];
        bool is_digit = (c >= '0' && c <= (base == 8 ? '7' : '9')) ||
                        (base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')));

        base = is_digit ? base : 0;
    }
    return base;
}

/* Matches [-+]? ( [.][0-9]+ | [0-9]+([.][0-9]*)? ) ([eE][-+]?[0-9]+)?, and the words for infinity and NaN. */
static bool is_core_number(struct slice text)
{
    static const char *const words[] = {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"};
    size_t sign = text.len > 0 && (text.ptr[0] == '-' || text.ptr[0] == '+');
    struct slice rest = {text.ptr + sign, text.len - sign};
    size_t at = skip_digits(rest, 0), digits = at;

    if (base_of(text) > 0 || is_one_of(rest, words, sign ? 3 : COUNT_OF(words))) {
        return true;
    }
    if (at < rest.len && rest.ptr[at] == '.') {
        size_t behind = skip_digits(rest, at + 1);

        digits += behind - at - 1;
        at = behind;
    }
    if (digits == 0) {
        return false;
    }
    if (at < rest.len && (rest.ptr[at] == 'e' || rest.ptr[at] == 'E')) {
        at++;
        at += at < rest.len && (rest.ptr[at] == '+' || rest.ptr[at] == '-');
        digits = at;
        at = skip_digits(rest, at);
        return at > digits && at == rest.len;
    }
    return at == rest.len;
}

enum yaml_scalar_kind yaml_scalar_kind(struct slice text)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    static const char *const bools[] = {"true", "True", "TRUE", "false", "False", "FALSE"};

    return is_one_of(text, nulls, COUNT_OF(nulls))   ? YAML_SCALAR_NULL
           : is_one_of(text, bools, COUNT_OF(bools)) ? YAML_SCALAR_BOOL
           : is_json_number(text)                    ? YAML_SCALAR_JSON_NUMBER
           : is_core_number(text)                    ? YAML_SCALAR_OTHER_NUMBER
                                                     : YAML_SCALAR_STRING;
}

static const char *put_other_number(struct slice text, struct buffer *out)
{
    unsigned base = base_of(text);
    uint64_t number = 0;

    if (base == 0 && text.ptr[0] == '+' && is_json_number((struct slice){text.ptr + 1, text.len - 1})) {
        buffer_put(out, text.ptr + 1, text.len - 1);
        return NULL;
    }
    if (base == 0) {
        return "YAML takes this for a number, and JSON cannot write it so; write 0.5, 7 or 1.0, or put it in quotes";
    }
    for (size_t i = 2; i < text.len; i++) {
        char c = text.ptr[i];
        unsigned digit = c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a') + 10;

        if (number > (UINT64_MAX - digit) / base) {
            return "this number is larger than 64 bits; write it in decimal";
        }
        number = number * base + digit;
    }
    buffer_printf(out, "%llu", (unsigned long long)number);
    return NULL;
}

const char *yaml_scalar_put(struct slice text, struct buffer *out)
{
    switch (yaml_scalar_kind(text)) {
    case YAML_SCALAR_NULL:
        buffer_put_text(out, "null");
        return NULL;
    case YAML_SCALAR_BOOL:
        buffer_put_text(out, text.ptr[0] == 't' || text.ptr[0] == 'T' ? "true" : "false");
        return NULL;
    case YAML_SCALAR_JSON_NUMBER:
        buffer_put(out, text.ptr, text.len);
        return NULL;
    case YAML_SCALAR_OTHER_NUMBER:
        return put_other_number(text, out);
    case YAML_SCALAR_STRING:
        json_put_string(out, text);
        return NULL;
    }
    UNREACHABLE();
}

bool yaml_is_old_line_end(const char *at, size_t left)
{
    return (left >= 2 && memcmp(at, "\xc2\x85", 2) == 0) ||
           (left >= 3 && (memcmp(at, "\xe2\x80\xa8", 3) == 0 || memcmp(at, "\xe2\x80\xa9", 3) == 0));
}

bool yaml_scalar_needs_quotes(struct slice text)
{
    static const char *const words[] = {"y", "n", "yes", "no", "on", "off", "<<", "="};
    char small[4] = {0};

    if (yaml_scalar_kind(text) != YAML_SCALAR_STRING || text.len == 0) {
        return true;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (yaml_is_old_line_end(text.ptr + i, text.len - i)) {
            return true;
        }
    }
    for (size_t i = 0; i < text.len && text.len < sizeof(small); i++) {
        small[i] = (char)(text.ptr[i] >= 'A' && text.ptr[i] <= 'Z' ? text.ptr[i] | 0x20 : text.ptr[i]);
    }
    /* Dates, 1:30, 1_000 and 0b1 mean something else in YAML 1.1. All of them begin with a digit or a sign. */
    return is_one_of(slice_of(small), words, COUNT_OF(words)) || strchr("0123456789+-.", text.ptr[0]) != NULL;
}
