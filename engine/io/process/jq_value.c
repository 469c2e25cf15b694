/* Reads and writes values of libjq. The reader knows the place of each number, which the reader of libjq does not tell.
 * The writer puts marked texts back. */
#include "io/process/jq_value.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/canon.h"

#define DEPTH_MAX 256 /* the same bound as libjq's own parser */
#define NUMBER_BYTES_MAX 4096
#define SAFE_DIGITS 15 /* a double keeps an integer of this many digits and prints it the same way */

/* A mark is a NaN: sign 1, exponent 11 (all ones), quiet 1 (zero), generation 23, index 28. The last two are never both
 * zero, which would mean infinity. */
#define MARK_BITS (UINT64_C(0x7ff) << 52)
#define QUIET_BIT (UINT64_C(1) << 51)
#define SIGN_BIT (UINT64_C(1) << 63)
#define INDEX_BITS 28
#define GENERATION_MAX ((UINT32_C(1) << 23) - 1)

static uint64_t bits_of(double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

static double number_of(uint64_t bits)
{
    double number;

    memcpy(&number, &bits, sizeof(number));
    return number;
}

/* --- marks --- */

static uint64_t mark_bits(uint32_t generation, size_t index, bool negative)
{
    return MARK_BITS | (negative ? SIGN_BIT : 0) | (uint64_t)generation << INDEX_BITS | (uint64_t)index;
}

bool jq_marks_work(void)
{
    volatile double copied = jv_number_value(jv_number(number_of(mark_bits(1, 1, true))));
    volatile double sum;

    (void)feclearexcept(FE_INVALID); /* cannot fail */
    if (bits_of(copied) != mark_bits(1, 1, true) || fetestexcept(FE_INVALID)) {
        return false;
    }
    sum = copied + 1;
    return fetestexcept(FE_INVALID) && (bits_of(sum) & QUIET_BIT);
}

void jq_marks_init(struct jq_marks *marks, enum jq_marking marking)
{
    static uint32_t generation; /* the generation of this helper, which has one thread */

    generation = generation == GENERATION_MAX ? 1 : generation + 1;
    *marks = (struct jq_marks){.marking = marking, .generation = generation};
    arena_init(&marks->arena, 4096);
}

void jq_marks_fini(struct jq_marks *marks)
{
    arena_fini(&marks->arena);
}

void jq_marks_watch(void)
{
    (void)feclearexcept(FE_INVALID); /* cannot fail */
}

bool jq_marks_touched(const struct jq_marks *marks)
{
    return marks->count > 0 && fetestexcept(FE_INVALID);
}

static jv mark_new(struct jq_marks *marks, struct slice number)
{
    bool negative = number.ptr[0] == '-';

    if (marks->count == marks->capacity) {
        size_t capacity = marks->capacity > 0 ? 2 * marks->capacity : 16;
        struct slice *texts = arena_array(&marks->arena, capacity, sizeof(*texts));

        if (marks->count > 0) {
            memcpy(texts, marks->texts, marks->count * sizeof(*texts));
        }
        marks->texts = texts;
        marks->capacity = capacity;
    }
    CHECK(marks->count < (size_t)1 << INDEX_BITS); /* the bytes of so many marks would exceed any input */
    marks->texts[marks->count] = (struct slice){number.ptr + negative, number.len - negative};
    return jv_number(number_of(mark_bits(marks->generation, marks->count++, negative)));
}

/* --- numbers in --- */

static bool is_plain_integer(struct slice number)
{
    size_t sign = number.ptr[0] == '-';

    if (number.len - sign > SAFE_DIGITS) {
        return false;
    }
    for (size_t i = sign; i < number.len; i++) {
        if (number.ptr[i] < '0' || number.ptr[i] > '9') {
            return false;
        }
    }
    return true;
}

static jv number_read(struct slice number, struct jq_marks *marks)
{
    char few[64];
    char *text = number.len < sizeof(few) ? few : arena_text(&marks->arena, number);
    double value;
    bool held;
    jv printed;

    slice_to_text(text, number.len + 1, number);
    value = strtod(text, NULL);
    if (is_plain_integer(number)) {
        return jv_number(value);
    }
    printed = jv_dump_string(jv_number(value), 0);
    struct slice shown = slice_of(jv_string_value(printed));
    bool same = slice_equal(shown, number);

    held = same || (isfinite(value) &&
                    slice_equal(canon(shown, NULL, 0, &marks->arena), canon(number, NULL, 0, &marks->arena)));
    jv_free(printed);
    if (same || (held && marks->marking == JQ_MARK_VALUE)) {
        return jv_number(value);
    }
    marks->spelling_count += held;
    if (!held && !marks->sample.ptr) {
        marks->sample = number;
    }
    return mark_new(marks, number);
}

/* Scans the number that begins at `*at`, by the grammar of JSON. Returns false when there is none. */
static bool number_end(struct slice json, size_t *at)
{
    size_t i = *at, digits;

    i += i < json.len && json.ptr[i] == '-';
    digits = i;
    for (; i < json.len && json.ptr[i] >= '0' && json.ptr[i] <= '9'; i++) {
    }
    if (i == digits || (json.ptr[digits] == '0' && i > digits + 1)) {
        return false;
    }
    if (i < json.len && json.ptr[i] == '.') {
        for (digits = ++i; i < json.len && json.ptr[i] >= '0' && json.ptr[i] <= '9'; i++) {
        }
        if (i == digits) {
            return false;
        }
    }
    if (i < json.len && (json.ptr[i] == 'e' || json.ptr[i] == 'E')) {
        i++;
        i += i < json.len && (json.ptr[i] == '-' || json.ptr[i] == '+');
        for (digits = i; i < json.len && json.ptr[i] >= '0' && json.ptr[i] <= '9'; i++) {
        }
        if (i == digits || i - digits > 9) {
            return false;
        }
    }
    if (i - *at > NUMBER_BYTES_MAX) {
        return false;
    }
    *at = i;
    return true;
}

jv jq_value_number(struct slice text, struct jq_marks *marks)
{
    struct slice number =
        arena_slice(&marks->arena, slice_trim(text)); /* copied: the caller's text may be freed before the mark */
    size_t at = 0;
    char *end, *copy;
    double value;

    if (number.len > 0 && number_end(number, &at) && at == number.len) {
        return number_read(number, marks);
    }
    /* jq also accepts 007, .5 and 5.; with few digits it reads them exactly */
    if (number.len == 0 || number.len > SAFE_DIGITS ||
        strspn(copy = arena_text(&marks->arena, number), "0123456789.eE+-") != number.len) {
        return jv_invalid();
    }
    value = strtod(copy, &end);
    return *end == '\0' && isfinite(value) ? jv_number(value) : jv_invalid();
}

/* --- values in --- */

struct jq_reader {
    struct slice json;
    size_t at;
    int depth;
    struct jq_marks *marks;
};

static char peek(struct jq_reader *r)
{
    while (r->at < r->json.len && strchr(" \t\r\n", r->json.ptr[r->at]) && r->json.ptr[r->at] != '\0') {
        r->at++;
    }
    return r->at < r->json.len ? r->json.ptr[r->at] : '\0';
}

static bool take(struct jq_reader *r, char c)
{
    if (peek(r) != c || r->at == r->json.len) {
        return false;
    }
    r->at++;
    return true;
}

static bool take_word(struct jq_reader *r, const char *word)
{
    size_t len = strlen(word);

    if (r->json.len - r->at < len || memcmp(r->json.ptr + r->at, word, len) != 0) {
        return false;
    }
    r->at += len;
    return true;
}

static jv string_read(struct jq_reader *r)
{
    size_t begin = r->at;
    bool escaped = false;

    if (!take(r, '"')) {
        return jv_invalid();
    }
    begin = r->at;
    while (r->at < r->json.len && r->json.ptr[r->at] != '"') {
        escaped |= r->json.ptr[r->at] == '\\';
        r->at += r->json.ptr[r->at] == '\\' ? 2 : 1;
    }
    if (r->at >= r->json.len) {
        return jv_invalid();
    }
    r->at++;
    if (escaped) { /* libjq decodes the escapes */
        return jv_parse_sized(r->json.ptr + begin - 1, (int)(r->at - begin + 1));
    }
    return jv_string_sized(r->json.ptr + begin, (int)(r->at - 1 - begin));
}

static jv value_read(struct jq_reader *r);

static jv array_read(struct jq_reader *r)
{
    jv array = jv_array();

    r->at++;
    if (take(r, ']')) {
        return array;
    }
    do {
        jv value = value_read(r);

        if (!jv_is_valid(value)) {
            jv_free(array);
            return value;
        }
        array = jv_array_append(array, value);
    } while (take(r, ','));
    if (!take(r, ']')) {
        jv_free(array);
        return jv_invalid();
    }
    return array;
}

static jv object_read(struct jq_reader *r)
{
    jv object = jv_object();

    r->at++;
    if (take(r, '}')) {
        return object;
    }
    do {
        jv name = peek(r) == '"' ? string_read(r) : jv_invalid();
        jv value = jv_get_kind(name) == JV_KIND_STRING && take(r, ':') ? value_read(r) : jv_invalid();

        if (!jv_is_valid(value)) {
            jv_free(name);
            jv_free(value);
            jv_free(object);
            return jv_invalid();
        }
        object = jv_object_set(object, name, value);
    } while (take(r, ','));
    if (!take(r, '}')) {
        jv_free(object);
        return jv_invalid();
    }
    return object;
}

static jv value_read(struct jq_reader *r)
{
    char c = peek(r);
    size_t begin = r->at;
    jv value;

    if (c == '"') {
        return string_read(r);
    }
    if (c == '[' || c == '{') {
        if (++r->depth > DEPTH_MAX) {
            return jv_invalid();
        }
        value = c == '[' ? array_read(r) : object_read(r);
        r->depth--;
        return value;
    }
    if (take_word(r, "null")) {
        return jv_null();
    }
    if (take_word(r, "true")) {
        return jv_true();
    }
    if (take_word(r, "false")) {
        return jv_false();
    }
    if (!number_end(r->json, &r->at)) {
        return jv_invalid();
    }
    return number_read((struct slice){r->json.ptr + begin, r->at - begin}, r->marks);
}

jv jq_value_read(struct slice json, struct jq_marks *marks)
{
    struct jq_reader reader = {.json = json, .marks = marks};
    jv value = value_read(&reader);

    if (jv_is_valid(value) && (peek(&reader) != '\0' || reader.at != json.len)) {
        jv_free(value);
        return jv_invalid();
    }
    return value;
}

/* --- values out --- */

struct jq_writer {
    const struct jq_marks *marks;
    struct buffer *out;
    size_t end_max; /* the bound of the buffer's length */
    int depth;
};

static enum jq_written put(struct jq_writer *w, const void *bytes, size_t len)
{
    if (len > w->end_max - w->out->len) {
        return JQ_WRITTEN_TOO_LARGE;
    }
    buffer_put(w->out, bytes, len);
    return JQ_WRITTEN;
}

static enum jq_written put_dumped(struct jq_writer *w, jv value)
{
    jv text = jv_dump_string(value, 0);
    enum jq_written written = put(w, jv_string_value(text), (size_t)jv_string_length_bytes(jv_copy(text)));

    jv_free(text);
    return written;
}

static enum jq_written put_number(struct jq_writer *w, double number)
{
    uint64_t bits = bits_of(number);
    size_t index = bits & ((UINT64_C(1) << INDEX_BITS) - 1);

    if ((bits & MARK_BITS) != MARK_BITS) {
        return put_dumped(w, jv_number(number));
    }
    if (bits & QUIET_BIT) {
        return JQ_WRITTEN_NAN; /* jq prints null for NaN */
    }
    if (index >= w->marks->count || (bits & ~SIGN_BIT) != mark_bits(w->marks->generation, index, false)) {
        return JQ_WRITTEN_NO_NUMBER; /* infinite */
    }
    enum jq_written written = bits & SIGN_BIT ? put(w, "-", 1) : JQ_WRITTEN;

    return written == JQ_WRITTEN ? put(w, w->marks->texts[index].ptr, w->marks->texts[index].len) : written;
}

static enum jq_written put_value(struct jq_writer *w, jv value);

static enum jq_written put_elements(struct jq_writer *w, jv array)
{
    enum jq_written written = put(w, "[", 1);
    int count = jv_array_length(jv_copy(array));

    for (int i = 0; i < count && written == JQ_WRITTEN; i++) {
        written = i > 0 ? put(w, ",", 1) : JQ_WRITTEN;
        written = written == JQ_WRITTEN ? put_value(w, jv_array_get(jv_copy(array), i)) : written;
    }
    return written == JQ_WRITTEN ? put(w, "]", 1) : written;
}

static enum jq_written put_members(struct jq_writer *w, jv object)
{
    enum jq_written written = put(w, "{", 1);
    bool first = true;

    for (int i = jv_object_iter(object); written == JQ_WRITTEN && jv_object_iter_valid(object, i);
         i = jv_object_iter_next(object, i)) {
        written = first ? JQ_WRITTEN : put(w, ",", 1);
        first = false;
        written = written == JQ_WRITTEN ? put_dumped(w, jv_object_iter_key(object, i)) : written;
        written = written == JQ_WRITTEN ? put(w, ":", 1) : written;
        written = written == JQ_WRITTEN ? put_value(w, jv_object_iter_value(object, i)) : written;
    }
    return written == JQ_WRITTEN ? put(w, "}", 1) : written;
}

static enum jq_written put_value(struct jq_writer *w, jv value)
{
    jv_kind kind = jv_get_kind(value);
    enum jq_written written;

    if (kind == JV_KIND_NUMBER) {
        return put_number(w, jv_number_value(value));
    }
    if (kind != JV_KIND_ARRAY && kind != JV_KIND_OBJECT) {
        return put_dumped(w, value);
    }
    if (++w->depth > DEPTH_MAX) {
        jv_free(value);
        return JQ_WRITTEN_TOO_DEEP;
    }
    written = kind == JV_KIND_ARRAY ? put_elements(w, value) : put_members(w, value);
    w->depth--;
    jv_free(value);
    return written;
}

enum jq_written jq_value_write(jv value, const struct jq_marks *marks, size_t bytes_max, struct buffer *out)
{
    struct jq_writer writer = {.marks = marks, .out = out, .end_max = out->len + bytes_max};

    return put_value(&writer, value);
}
