#include "base/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/instant.h"
#include "base/json.h"

#define FILE_BYTES_MAX 65536

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
    }
    UNREACHABLE();
}

static enum err_code set(struct settings *settings, size_t index, struct slice text, enum setting_origin origin, struct err *err)
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
    }
    if (!good) {
        (void)err_set(err, ERR_CONFIG, "the setting \"%s\" cannot be \"%.*s\"", row->name, SLICE_ARG(row->secret ? SLICE("***") : text));
        err_detail(err, "it comes from the %s", origin_names[origin]);
        if (row->type == SETTING_DURATION) {
            char least[INSTANT_TEXT_BYTES], most[INSTANT_TEXT_BYTES];

            duration_text(row->min, least);
            duration_text(row->max, most);
            err_hint(err, "a duration such as 200ms, 10s or 15m, from %s to %s", least, most);
        } else if (row->type == SETTING_NUMBER) {
            err_hint(err, "a whole number from %lld to %lld", (long long)row->min, (long long)row->max);
        } else {
            err_hint(err, "true or false");
        }
        return ERR_CONFIG;
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

enum err_code settings_from_args(struct settings *settings, int argc, char **argv, int from, int *first_word, struct err *err)
{
    int i = from;

    for (; i < argc && strncmp(argv[i], "--", 2) == 0 && argv[i][2]; i++) {
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

enum err_code settings_from_file(struct settings *settings, const char *path, struct err *err)
{
    FILE *file = fopen(path, "re");

    if (!file) {
        (void)err_set(err, ERR_CONFIG, "the configuration file %s cannot be read", path);
        err_detail(err, "%s", strerror(errno));
        return ERR_CONFIG;
    }
    char *bytes = arena_alloc(&settings->arena, FILE_BYTES_MAX + 1);
    struct slice text = {bytes, fread(bytes, 1, FILE_BYTES_MAX + 1, file)};

    (void)fclose(file); /* only read from */
    struct json_limits limits = json_limits_default;

    limits.bytes_max = FILE_BYTES_MAX;
    if (json_check(text, &limits, err) != ERR_OK) {
        (void)err_context(err, "%s", path);
        err->code = ERR_CONFIG;
        return ERR_CONFIG;
    }
    if (json_type(text) != JSON_OBJECT) {
        return err_set(err, ERR_CONFIG, "the configuration file %s is not a JSON object of settings", path);
    }
    struct json_walk walk = json_walk(text);
    struct slice name, value;

    while (json_next_member(&walk, &name, &value)) {
        size_t index;

        if (!find(settings, name, &index)) {
            return err_set(err, ERR_CONFIG, "in %s: there is no setting \"%.*s\"", path, SLICE_ARG(name));
        }
        struct slice plain = json_type(value) == JSON_STRING ? json_string(value, &settings->arena) : value;
        enum err_code code = set(settings, index, plain, ORIGIN_FILE, err);

        if (code != ERR_OK) {
            return code;
        }
    }
    return ERR_OK;
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

void settings_help(const struct settings *settings, struct buffer *out)
{
    for (size_t i = 0; i < settings->count; i++) {
        const struct setting *row = &settings->table[i];
        char head[64];

        (void)snprintf(head, sizeof(head), "--%s %s", row->name, type_name(row->type)); /* names are short */
        buffer_printf(out, "  %-34s %s", head, row->text);
        if (row->value && row->value[0]) {
            buffer_printf(out, " (default %s%s%s)", row->value, row->unit ? " " : "", row->unit ? row->unit : "");
        }
        buffer_put_char(out, '\n');
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
