/*
 * The strict scanner that all JSON from outside passes: RFC 8259, and only texts that every reader reads the same way.
 * It makes one pass with bounded depth and builds no tree. When an object ends, its names are compared: a few by pairs,
 * many after sorting.
 */
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/utf8.h"

const struct json_limits json_limits_default = {
    .bytes_max = 1 << 20, .depth_max = 64, .number_bytes_max = 1024, .exponent_max = 400};

#define PAIRWISE_MAX 8
#define LEVELS_MAX 96 /* bounds the recursion; the limits may ask for fewer */

struct scan_name { /* the unescaped name of a member */
    const char *ptr;
    size_t len;
    struct slice raw; /* the name in the text, between its quotes */
};

struct scan_level { /* one step of the JSON Pointer in a message */
    enum { LEVEL_ARRAY, LEVEL_OBJECT /* between its members */, LEVEL_MEMBER } in;
    struct slice name; /* raw */
    size_t index;
};

struct scan {
    const char *start, *at, *end;
    const struct json_limits *limits;
    bool syntax_only; /* json_check_syntax() */
    int depth;
    struct scan_level *levels; /* one for each open array or object; [0] is not used */
    struct scan_name *names;   /* a stack: the names of the open objects */
    size_t name_count, name_capacity;
    struct arena arena; /* unescaped names */
    const char *fault;  /* the sentence; NULL while all is well */
    const char *fault_at;
    bool too_large;
};

static bool scan_fault(struct scan *scan, const char *at, const char *fault)
{
    if (!scan->fault) {
        scan->fault = fault;
        scan->fault_at = at;
    }
    return false;
}

static void skip_space(struct scan *scan)
{
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\r' || *scan->at == '\t')) {
        scan->at++;
    }
}

static int hex4(const char *p, const char *end)
{
    int value = 0;

    if (end - p < 4) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p[i]);

        if (digit < 0) {
            return -1;
        }
        value = value << 4 | digit;
    }
    return value;
}

static bool scan_escape(struct scan *scan) /* at the backslash */
{
    const char *at = scan->at;

    if (at + 1 >= scan->end) {
        return scan_fault(scan, at, "the text ends within a string");
    }
    if (at[1] != 'u') {
        if (!at[1] || !strchr("\"\\/bfnrt", at[1])) {
            return scan_fault(scan, at, "this escape is not known to JSON");
        }
        scan->at += 2;
        return true;
    }
    int unit = hex4(at + 2, scan->end);

    if (unit < 0) {
        return scan_fault(scan, at, "\\u is followed by four hexadecimal digits");
    }
    if (scan->syntax_only) {
        scan->at += 6;
        return true;
    }
    if (unit == 0) {
        return scan_fault(scan, at, "U+0000 is not allowed in strings");
    }
    scan->at += 6;
    if (unit >= 0xdc00 && unit <= 0xdfff) {
        return scan_fault(scan, at, "a lone low surrogate stands for no character");
    }
    if (unit >= 0xd800 && unit <= 0xdbff) {
        int low =
            scan->end - scan->at >= 6 && scan->at[0] == '\\' && scan->at[1] == 'u' ? hex4(scan->at + 2, scan->end) : -1;

        if (low < 0xdc00 || low > 0xdfff) {
            return scan_fault(scan, at, "a lone high surrogate stands for no character");
        }
        scan->at += 6;
    }
    return true;
}

/* Are all eight bytes ASCII without quote, backslash or control character? All eight are checked at once. */
static bool is_plain8(const char *at)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones * 0x80;
    uint64_t bytes;

    memcpy(&bytes, at, sizeof(bytes));
    uint64_t quote = bytes ^ (ones * '"'), backslash = bytes ^ (ones * '\\');
    uint64_t found = (bytes - ones * 0x20) | (quote - ones) | (backslash - ones); /* exact where no high bit is set */

    return ((found | bytes) & highs) == 0;
}

static bool scan_string(struct scan *scan, struct slice *raw, bool *escaped) /* at the opening quote */
{
    const char *first = ++scan->at;

    *escaped = false;
    for (;;) {
        while (scan->end - scan->at >= 8 && is_plain8(scan->at)) {
            scan->at += 8;
        }
        while (scan->at < scan->end && (unsigned char)*scan->at >= 0x20 && (unsigned char)*scan->at < 0x80 &&
               *scan->at != '"' && *scan->at != '\\') {
            scan->at++;
        }
        if (scan->at >= scan->end) {
            return scan_fault(scan, first - 1, "this string has no end");
        }
        if (*scan->at == '"') {
            *raw = (struct slice){first, (size_t)(scan->at - first)};
            scan->at++;
            return true;
        }
        if (*scan->at == '\\') {
            *escaped = true;
            if (!scan_escape(scan)) {
                return false;
            }
        } else if ((unsigned char)*scan->at < 0x20) {
            return scan_fault(scan, scan->at, "a control character in a string must be escaped");
        } else {
            size_t len = scan->syntax_only ? 1 : utf8_length(scan->at, (size_t)(scan->end - scan->at));

            if (len == 0) {
                return scan_fault(scan, scan->at, "these bytes are not UTF-8");
            }
            scan->at += len;
        }
    }
}

static bool scan_digits(struct scan *scan)
{
    const char *first = scan->at;

    while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9') {
        scan->at++;
    }
    return scan->at > first;
}

static bool scan_number(struct scan *scan)
{
    const char *first = scan->at;

    if (*scan->at == '-') {
        scan->at++;
    }
    if (scan->at < scan->end && *scan->at == '0') {
        scan->at++;
        if (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9') {
            return scan_fault(scan, first, "a number has no leading zeros");
        }
    } else if (!scan_digits(scan)) {
        return scan_fault(scan, first, "this is no number");
    }
    if (scan->at < scan->end && *scan->at == '.') {
        scan->at++;
        if (!scan_digits(scan)) {
            return scan_fault(scan, first, "digits must follow the decimal point");
        }
    }
    if (scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
        int64_t exponent = 0;

        scan->at++;
        if (scan->at < scan->end && (*scan->at == '+' || *scan->at == '-')) {
            scan->at++;
        }
        const char *digits = scan->at;

        if (!scan_digits(scan)) {
            return scan_fault(scan, first, "digits must follow the exponent sign");
        }
        for (const char *p = digits; p < scan->at && exponent <= scan->limits->exponent_max; p++) {
            exponent = exponent * 10 + (*p - '0');
        }
        if (exponent > scan->limits->exponent_max && !scan->syntax_only) {
            return scan_fault(scan, first, "the exponent of this number is beyond what is allowed");
        }
    }
    if ((size_t)(scan->at - first) > scan->limits->number_bytes_max && !scan->syntax_only) {
        scan->too_large = true;
        return scan_fault(scan, first, "this number has more digits than allowed");
    }
    return true;
}

static bool scan_value(struct scan *scan);

/* Finds the end of a value that nests deeper than LEVELS_MAX. It counts brackets, because recursion has a bound. */
static bool scan_to_end(struct scan *scan)
{
    const char *first = scan->at;
    struct slice raw;
    size_t open = 0;
    bool escaped;

    do {
        if (scan->at >= scan->end) {
            return scan_fault(scan, first, "the text ends within this value");
        }
        char c = *scan->at;

        if (c == '"') {
            if (!scan_string(scan, &raw, &escaped)) {
                return false;
            }
            continue;
        }
        open += c == '[' || c == '{';
        open -= c == ']' || c == '}';
        scan->at++;
    } while (open > 0);
    return true;
}

static bool scan_open(struct scan *scan, struct scan_level level)
{
    if (scan->depth == scan->limits->depth_max) {
        return scan_fault(scan, scan->at, "arrays and objects are nested deeper than allowed");
    }
    scan->levels[++scan->depth] = level;
    scan->at++;
    return true;
}

static bool scan_array(struct scan *scan)
{
    if (scan->syntax_only && scan->depth == scan->limits->depth_max) {
        return scan_to_end(scan);
    }
    if (!scan_open(scan, (struct scan_level){.in = LEVEL_ARRAY})) {
        return false;
    }
    skip_space(scan);
    if (scan->at < scan->end && *scan->at == ']') {
        scan->at++;
        scan->depth--;
        return true;
    }
    for (;;) {
        if (!scan_value(scan)) {
            return false;
        }
        skip_space(scan);
        if (scan->at >= scan->end) {
            return scan_fault(scan, scan->at, "the text ends within an array");
        }
        char c = *scan->at++;

        if (c == ']') {
            scan->depth--;
            return true;
        }
        if (c != ',') {
            return scan_fault(scan, scan->at - 1, "a comma or ] must follow an element");
        }
        scan->levels[scan->depth].index++;
    }
}

static struct slice unescape(struct slice raw, struct arena *arena);

static int compare_names(const void *a, const void *b)
{
    const struct scan_name *x = a, *y = b;
    int order = slice_compare((struct slice){x->ptr, x->len}, (struct slice){y->ptr, y->len});

    return order != 0 ? order : (x->raw.ptr > y->raw.ptr) - (x->raw.ptr < y->raw.ptr);
}

static bool is_same_name(const struct scan_name *a, const struct scan_name *b)
{
    return slice_equal((struct slice){a->ptr, a->len}, (struct slice){b->ptr, b->len});
}

/* The fault is the repetition that stands first in the text, whichever way it was found. */
static bool check_names(struct scan *scan, size_t first)
{
    size_t count = scan->name_count - first;
    struct slice twice = SLICE_NONE;

    if (count < 2) { /* or names are not kept */
        return true;
    }
    struct scan_name *names = scan->names + first;

    if (count > PAIRWISE_MAX) {
        qsort(names, count, sizeof(*names), compare_names);
        for (size_t i = 1; i < count; i++) {
            if (is_same_name(&names[i], &names[i - 1]) && (!twice.ptr || names[i].raw.ptr < twice.ptr)) {
                twice = names[i].raw;
            }
        }
    } else {
        for (size_t i = 1; i < count && !twice.ptr; i++) {
            for (size_t k = 0; k < i && !twice.ptr; k++) {
                twice = is_same_name(&names[i], &names[k]) ? names[i].raw : SLICE_NONE;
            }
        }
    }
    if (!twice.ptr) {
        return true;
    }
    scan->levels[scan->depth].in = LEVEL_MEMBER;
    scan->levels[scan->depth].name = twice;
    return scan_fault(scan, twice.ptr - 1, "this member stands twice in its object");
}

static bool scan_name(struct scan *scan)
{
    struct slice raw, name;
    bool escaped;

    scan->levels[scan->depth].in = LEVEL_OBJECT;
    if (scan->at >= scan->end || *scan->at != '"') {
        return scan_fault(scan, scan->at, "the name of a member, in double quotes, must stand here");
    }
    if (!scan_string(scan, &raw, &escaped)) {
        return false;
    }
    if (scan->syntax_only) {
        return true; /* names are not compared here, and some may not unescape */
    }
    name = escaped ? unescape(raw, &scan->arena) : raw;
    if (scan->name_count == scan->name_capacity) {
        scan->name_capacity = scan->name_capacity ? scan->name_capacity * 2 : 32;
        scan->names = memory_grow(scan->names, scan->name_capacity * sizeof(*scan->names));
    }
    scan->names[scan->name_count++] = (struct scan_name){name.ptr, name.len, raw};
    scan->levels[scan->depth].in = LEVEL_MEMBER;
    scan->levels[scan->depth].name = raw;
    return true;
}

static bool scan_object(struct scan *scan)
{
    size_t first = scan->name_count;

    if (scan->syntax_only && scan->depth == scan->limits->depth_max) {
        return scan_to_end(scan);
    }
    if (!scan_open(scan, (struct scan_level){.in = LEVEL_OBJECT})) {
        return false;
    }
    skip_space(scan);
    if (scan->at < scan->end && *scan->at == '}') {
        scan->at++;
        scan->depth--;
        return true;
    }
    for (;;) {
        skip_space(scan);
        if (!scan_name(scan)) {
            return false;
        }
        skip_space(scan);
        if (scan->at >= scan->end || *scan->at != ':') {
            return scan_fault(scan, scan->at, "a colon must follow the name of a member");
        }
        scan->at++;
        if (!scan_value(scan)) {
            return false;
        }
        skip_space(scan);
        if (scan->at >= scan->end) {
            return scan_fault(scan, scan->at, "the text ends within an object");
        }
        char c = *scan->at++;

        if (c == '}') {
            bool good = check_names(scan, first);

            scan->name_count = first;
            scan->depth -= good;
            return good;
        }
        if (c != ',') {
            return scan_fault(scan, scan->at - 1, "a comma or } must follow a member");
        }
    }
}

static bool scan_word(struct scan *scan, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(scan->end - scan->at) < len || memcmp(scan->at, word, len) != 0) {
        return scan_fault(scan, scan->at, "this is no JSON value");
    }
    scan->at += len;
    return true;
}

static bool scan_value(struct scan *scan)
{
    struct slice raw;
    bool escaped;

    skip_space(scan);
    if (scan->at >= scan->end) {
        return scan_fault(scan, scan->at, "the text ends where a value must stand");
    }
    switch (*scan->at) {
    case '{':
        return scan_object(scan);
    case '[':
        return scan_array(scan);
    case '"':
        return scan_string(scan, &raw, &escaped);
    case 't':
        return scan_word(scan, "true");
    case 'f':
        return scan_word(scan, "false");
    case 'n':
        return scan_word(scan, "null");
    default:
        if (*scan->at == '-' || (*scan->at >= '0' && *scan->at <= '9')) {
            return scan_number(scan);
        }
        return scan_fault(scan, scan->at, "this is no JSON value");
    }
}

/* Puts whole characters. A character that could move a terminal's cursor (C0, DEL, C1) becomes a question mark. */
static void put_part(struct buffer *out, struct slice name)
{
    const unsigned char *at = (const unsigned char *)name.ptr, *end = at + name.len;

    while (at < end) {
        size_t len = utf8_length((const char *)at, (size_t)(end - at));

        CHECK(len > 0); /* names were scanned */
        if (*at == '~' || *at == '/') {
            buffer_put_text(out, *at == '~' ? "~0" : "~1");
        } else if (*at < 0x20 || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0)) {
            buffer_put_char(out, '?');
        } else {
            buffer_put(out, at, len);
        }
        at += len;
    }
}

static void put_pointer(struct scan *scan, struct buffer *out)
{
    for (int i = 1; i <= scan->depth; i++) {
        const struct scan_level *level = &scan->levels[i];

        if (level->in == LEVEL_ARRAY) {
            buffer_printf(out, "/%zu", level->index);
        } else if (level->in == LEVEL_MEMBER) {
            buffer_put_char(out, '/');
            put_part(out, unescape(level->name, &scan->arena));
        }
    }
}

static enum err_code check(struct slice text, const struct json_limits *limits, bool syntax_only, struct err *err)
{
    if (text.len > limits->bytes_max) {
        (void)err_set(err, ERR_TOO_LARGE, "the JSON text is larger than allowed");
        err_detail(err, "%zu bytes, at most %zu are taken", text.len, limits->bytes_max);
        return ERR_TOO_LARGE;
    }
    if (!text.ptr) {
        text = SLICE("");
    }
    struct scan_level levels[LEVELS_MAX + 1];
    struct scan scan = {.start = text.ptr,
                        .at = text.ptr,
                        .end = text.ptr + text.len,
                        .limits = limits,
                        .syntax_only = syntax_only,
                        .levels = levels};

    CHECK(limits->depth_max > 0 && limits->depth_max <= LEVELS_MAX);
    arena_init(&scan.arena, 1024);
    bool good = text.len > 0 ? scan_value(&scan) : scan_fault(&scan, scan.at, "there is no text");

    if (good) {
        skip_space(&scan);
        if (scan.at != scan.end) {
            good = scan_fault(&scan, scan.at, "something follows the end of the value");
        }
    }
    enum err_code code = ERR_OK;

    if (!good) {
        struct buffer pointer;

        buffer_init(&pointer, 200);
        put_pointer(&scan, &pointer);
        code = err_set(err, scan.too_large ? ERR_TOO_LARGE : ERR_MALFORMED, "this is not the JSON that sagad takes");
        err_detail(err, "%s, at byte %zu, near \"%s\"", scan.fault, (size_t)(scan.fault_at - scan.start),
                   buffer_c(&pointer));
        if (!syntax_only) {
            err_hint(err, "RFC 8259 with unique members, valid UTF-8, at most %d levels and exponents within +-%d",
                     limits->depth_max, limits->exponent_max);
        }
        buffer_fini(&pointer);
    }
    free(scan.names);
    arena_fini(&scan.arena);
    return code;
}

enum err_code json_check(struct slice text, const struct json_limits *limits, struct err *err)
{
    return check(text, limits, false, err);
}

enum err_code json_check_syntax(struct slice text, struct err *err)
{
    static const struct json_limits limits = {.bytes_max = SIZE_MAX, .depth_max = LEVELS_MAX};

    return check(text, &limits, true, err);
}

static struct slice unescape(struct slice raw, struct arena *arena)
{
    /* json_string() takes a value with its quotes, and they stand around the raw text. */
    return json_string((struct slice){raw.ptr - 1, raw.len + 2}, arena);
}
