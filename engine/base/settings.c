/* One function sets every value; the sources differ only in how they find names and texts. */
#include "base/settings.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/instant.h"
#include "base/json.h"

#define FILE_KIB_MAX 64

static const char *const origin_names[] = {"default", "file", "environment", "flag"};

static const char *type_name(enum setting_type type)
{
    switch (type) {
    case SETTING_TEXT:
        return "TEXT";
    case SETTING_NUMBER:
        return "NUMBER";
    case SETTING_DURATION:
        return "DURATION";
    case SETTING_SWITCH:
        return "";
    case SETTING_BYTES:
        return "BYTES";
    }
    UNREACHABLE();
}

static bool bytes_parse(struct slice text, int64_t *bytes)
{
    static const struct {
        const char *unit;
        int64_t bytes;
    } units[] = {{"", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
    size_t len = 0;
    int64_t number;

    while (len < text.len && text.ptr[len] >= '0' && text.ptr[len] <= '9') {
        len++;
    }
    if (!slice_to_i64((struct slice){text.ptr, len}, &number)) {
        return false;
    }
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (slice_is((struct slice){text.ptr + len, text.len - len}, units[i].unit)) {
            return !__builtin_mul_overflow(number, units[i].bytes, bytes);
        }
    }
    return false;
}

static void say_what_is_right(const struct setting *row, struct err *err)
{
    char least[INSTANT_TEXT_BYTES], most[INSTANT_TEXT_BYTES];

    switch (row->type) {
    case SETTING_TEXT:
        err_hint(err, "a text");
        break;
    case SETTING_NUMBER:
        err_hint(err, "a whole number from %lld to %lld", (long long)row->min, (long long)row->max);
        break;
    case SETTING_DURATION:
        duration_text(row->min, least);
        duration_text(row->max, most);
        err_hint(err, "a duration such as 200ms, 10s or 15m, from %s to %s", least, most);
        break;
    case SETTING_SWITCH:
        err_hint(err, "true or false");
        break;
    case SETTING_BYTES:
        err_hint(err, "a size such as 65536, 64KiB or 16MiB, from %lld to %lld bytes", (long long)row->min,
                 (long long)row->max);
        break;
    }
}

static enum err_code refuse(const struct setting *row, struct slice text, enum setting_origin origin, struct err *err)
{
    (void)err_set(err, ERR_CONFIG, "the setting \"%s\" cannot be \"%.*s\"", row->name,
                  SLICE_ARG(row->secret ? SLICE("***") : text));
    err_detail(err, "it comes from the %s", origin_names[origin]);
    say_what_is_right(row, err);
    return ERR_CONFIG;
}

static enum err_code set(struct settings *settings, size_t index, struct slice text, enum setting_origin origin,
                         struct err *err)
{
    const struct setting *row = &settings->table[index];
    struct setting_value *value = &settings->values[index];
    int64_t number = 0;
    bool good = true;

    if (value->text.ptr && value->origin > origin) {
        return ERR_OK;
    }
    switch (row->type) {
    case SETTING_TEXT:
        break;
    case SETTING_NUMBER:
        good = slice_to_i64(text, &number) && number >= row->min && number <= row->max;
        break;
    case SETTING_DURATION:
        good = duration_parse(text, &number) && number >= row->min && number <= row->max;
        break;
    case SETTING_SWITCH:
        number = slice_is(text, "true") || slice_is(text, "1");
        good = number || slice_is(text, "false") || slice_is(text, "0");
        break;
    case SETTING_BYTES:
        good = bytes_parse(text, &number) && number >= row->min && number <= row->max;
        break;
    }
    if (!good) {
        return refuse(row, text, origin, err);
    }
    *value = (struct setting_value){.text = arena_slice(&settings->arena, text), .number = number, .origin = origin};
    return ERR_OK;
}

void settings_init(struct settings *settings, const struct setting *table, size_t count)
{
    arena_init(&settings->arena, 4096);
    settings->table = table;
    settings->count = count;
    settings->values = arena_array(&settings->arena, count, sizeof(*settings->values));
    for (size_t i = 0; i < count; i++) {
        if (table[i].value) {
            CHECK(set(settings, i, slice_of(table[i].value), ORIGIN_DEFAULT, NULL) == ERR_OK);
        }
    }
}

void settings_fini(struct settings *settings)
{
    arena_fini(&settings->arena);
}

static bool find(const struct settings *settings, struct slice name, size_t *index)
{
    for (size_t i = 0; i < settings->count; i++) {
        if (slice_is(name, settings->table[i].name)) {
            *index = i;
            return true;
        }
    }
    return false;
}

enum err_code settings_from_args(struct settings *settings, int argc, char **argv, int from, int *first_word,
                                 struct err *err)
{
    int i = from;

    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (!argv[i][2]) {
            i++; /* "--" ends the flags and is no word itself */
            break;
        }
        const char *equals = strchr(argv[i], '=');
        struct slice name = {argv[i] + 2, equals ? (size_t)(equals - argv[i]) - 2 : strlen(argv[i]) - 2};
        struct slice value;
        size_t index;

        if (!find(settings, name, &index)) {
            (void)err_set(err, ERR_CONFIG, "there is no setting --%.*s", SLICE_ARG(name));
            err_hint(err, "--help lists them");
            return ERR_CONFIG;
        }
        if (equals) {
            value = slice_of(equals + 1);
        } else if (settings->table[index].type == SETTING_SWITCH) {
            value = SLICE("true");
        } else if (i + 1 < argc) {
            value = slice_of(argv[++i]);
        } else {
            (void)err_set(err, ERR_CONFIG, "a value must follow --%.*s", SLICE_ARG(name));
            return ERR_CONFIG;
        }
        enum err_code code = set(settings, index, value, ORIGIN_FLAG, err);

        if (code != ERR_OK) {
            return code;
        }
    }
    *first_word = i;
    return ERR_OK;
}

enum err_code settings_from_environment(struct settings *settings, const char *prefix, struct err *err)
{
    for (size_t i = 0; i < settings->count; i++) {
        char name[96];
        size_t at = (size_t)snprintf(name, sizeof(name), "%s", prefix);

        for (const char *p = settings->table[i].name; *p && at + 1 < sizeof(name); p++, at++) {
            name[at] = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
        }
        name[at] = '\0';
        const char *value = getenv(name);
        enum err_code code = value ? set(settings, i, slice_of(value), ORIGIN_ENVIRONMENT, err) : ERR_OK;

        if (code != ERR_OK) {
            return code;
        }
    }
    return ERR_OK;
}

/* In a file a value has the type of its row: neither is a string taken for a number, nor a number for a string. */
static bool is_type_right(enum setting_type type, enum json_type is)
{
    switch (type) {
    case SETTING_TEXT:
    case SETTING_DURATION:
        return is == JSON_STRING;
    case SETTING_NUMBER:
        return is == JSON_NUMBER;
    case SETTING_SWITCH:
        return is == JSON_BOOL;
    case SETTING_BYTES:
        return is == JSON_NUMBER || is == JSON_STRING;
    }
    UNREACHABLE();
}

static enum err_code set_from_json(struct settings *settings, struct slice name, struct slice value,
                                   struct arena *scratch, struct err *err)
{
    size_t index;

    if (!find(settings, name, &index)) {
        (void)err_set(err, ERR_CONFIG, "there is no setting \"%.*s\"", SLICE_ARG(name));
        err_hint(err, "--help lists them");
        return ERR_CONFIG;
    }
    if (!is_type_right(settings->table[index].type, json_type(value))) {
        return refuse(&settings->table[index], value, ORIGIN_FILE, err);
    }
    int64_t number;
    struct slice text = value;

    if (json_type(value) == JSON_STRING) {
        text = json_string(value, scratch);
    } else if (json_i64(value, &number)) {
        text = arena_printf(scratch, "%lld", (long long)number); /* 1e3 is 1000 */
    }
    return set(settings, index, text, ORIGIN_FILE, err);
}

static enum err_code set_from_text(struct settings *settings, struct slice text, struct arena *scratch, struct err *err)
{
    struct json_limits limits = json_limits_default;

    limits.bytes_max = FILE_KIB_MAX * 1024;
    if (json_check(text, &limits, err) != ERR_OK) {
        return ERR_CONFIG;
    }
    if (json_type(text) != JSON_OBJECT) {
        return err_set(err, ERR_CONFIG, "a configuration is a JSON object of settings");
    }
    struct json_walk walk = json_walk(text);
    struct slice raw, value;

    while (json_next_member(&walk, &raw, &value)) {
        struct slice name = json_string((struct slice){raw.ptr - 1, raw.len + 2}, scratch);
        enum err_code code = set_from_json(settings, name, value, scratch, err);

        if (code != ERR_OK) {
            return code;
        }
    }
    return ERR_OK;
}

enum err_code settings_from_file(struct settings *settings, const char *path, struct err *err)
{
    struct arena scratch;
    struct slice text = SLICE_NONE;

    arena_init(&scratch, 4096);
    enum err_code code = file_read(path, "configuration", FILE_KIB_MAX, FILE_OF_ANYBODY, &scratch, &text, err);

    if (code == ERR_OK) {
        code = set_from_text(settings, text, &scratch, err);
        if (code != ERR_OK && err) {
            (void)err_context(err, "%s", path);
            err->code = code; /* the file is a setting, so its code wins over the code of the fault in its text */
        }
    }
    arena_fini(&scratch);
    return code;
}

static const struct setting_value *get(const struct settings *settings, const char *name)
{
    size_t index;
    bool known = find(settings, slice_of(name), &index);

    CHECK(known);
    return &settings->values[index];
}

const char *settings_text(const struct settings *settings, const char *name)
{
    return get(settings, name)->text.ptr; /* arena_slice() put a NUL behind it */
}

int64_t settings_number(const struct settings *settings, const char *name)
{
    return get(settings, name)->number;
}

bool settings_switch(const struct settings *settings, const char *name)
{
    return get(settings, name)->number != 0;
}

/* Puts words, on lines that begin at the column `indent` after the first one. A word longer than a line stays whole. */
static void put_wrapped(struct slice text, size_t indent, size_t width, struct buffer *out)
{
    size_t column = indent;

    while (text.len > 0) {
        const char *space = memchr(text.ptr, ' ', text.len);
        size_t len = space ? (size_t)(space - text.ptr) : text.len;

        if (column > indent && column + 1 + len > width) {
            buffer_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            buffer_put_char(out, ' ');
            column++;
        }
        buffer_put(out, text.ptr, len);
        column += len;
        len += space != NULL;
        text = (struct slice){text.ptr + len, text.len - len};
    }
}

void settings_help(const struct settings *settings, size_t width, struct buffer *out)
{
    enum { INDENT = 37 };

    for (size_t i = 0; i < settings->count; i++) {
        const struct setting *row = &settings->table[i];
        struct buffer text;
        char head[64];

        (void)snprintf(head, sizeof(head), "--%s %s", row->name, type_name(row->type)); /* names are short */
        buffer_printf(out, "  %-34s ", head);
        buffer_init(&text, 4096);
        buffer_put_text(&text, row->text);
        if (row->value && row->value[0]) {
            buffer_printf(&text, " (default %s%s%s)", row->value, row->unit ? " " : "", row->unit ? row->unit : "");
        }
        put_wrapped(buffer_slice(&text), INDENT, width ? width : SIZE_MAX, out);
        buffer_put_char(out, '\n');
        buffer_fini(&text);
    }
}

void settings_print(const struct settings *settings, struct buffer *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    for (size_t i = 0; i < settings->count; i++) {
        const struct setting_value *value = &settings->values[i];

        json_object_begin(&w, settings->table[i].name);
        json_write_slice(&w, "value", settings->table[i].secret && value->text.ptr ? SLICE("***") : value->text);
        json_write_text(&w, "origin", origin_names[value->origin]);
        json_object_end(&w);
    }
    json_object_end(&w);
    buffer_put_char(out, '\n');
}
