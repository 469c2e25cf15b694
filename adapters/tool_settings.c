/* Checks the settings of tools by tables, so that all adapters report faults alike. */
#include "adapters/tool_settings.h"

#include <stdio.h>
#include <string.h>

bool setting_is_template(struct slice value)
{
    return json_type(value) == JSON_STRING && memmem(value.ptr, value.len, "${", 2) != NULL;
}

static void types_text(uint32_t types, struct buffer *out)
{
    for (uint32_t type = JSON_NULL; type <= JSON_OBJECT; type++) {
        if (types & BIT(type)) {
            buffer_put_text(out, out->len ? " or " : "");
            buffer_put_text(out, json_type_name((enum json_type)type));
        }
    }
}

static void setting_check(const struct tool_setting *setting, struct slice value, struct slice pointer,
                          struct faults *faults)
{
    enum json_type type = json_type(value);

    if (setting_is_template(value)) {
        if (setting->check_template) {
            setting->check_template(value, pointer, faults);
        }
        return;
    }
    if (setting->types && !(setting->types & BIT(type))) {
        struct buffer wanted;

        buffer_init(&wanted, 200);
        types_text(setting->types, &wanted);
        faults_add(faults, pointer, "\"%s\" is of type %s; it must be of type %s", setting->name, json_type_name(type),
                   buffer_c(&wanted));
        buffer_fini(&wanted);
        return;
    }
    if (setting->check) {
        setting->check(value, pointer, faults);
    }
}

static void unknown_add(struct slice name, struct slice pointer, const struct tool_setting *table, size_t count,
                        struct faults *faults)
{
    struct buffer known;

    buffer_init(&known, 400);
    for (size_t i = 0; i < count; i++) {
        buffer_printf(&known, "%s%s", i ? ", " : "", table[i].name);
    }
    faults_add(faults, pointer, "there is no setting \"%.*s\" here; the settings are %s", SLICE_ARG(name),
               buffer_c(&known));
    buffer_fini(&known);
}

bool settings_check(struct slice settings, struct slice pointer, const struct tool_setting *table, size_t count,
                    struct faults *faults)
{
    struct json_walk walk;
    struct slice name, value;

    if (json_type(settings) != JSON_OBJECT) {
        faults_add(faults, pointer, "the settings of an adapter are an object, found %s",
                   json_type_name(json_type(settings)));
        return false;
    }
    walk = json_walk(settings);
    while (json_next_member(&walk, &name, &value)) {
        struct slice place = json_pointer_join(faults->arena, pointer, name);
        size_t i = 0;

        while (i < count && !slice_is(name, table[i].name)) {
            i++;
        }
        if (i == count) {
            unknown_add(name, place, table, count, faults);
        } else {
            setting_check(&table[i], value, place, faults);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (table[i].required && !json_member(settings, table[i].name).ptr) {
            faults_add(faults, pointer, "the setting \"%s\" is missing", table[i].name);
        }
    }
    return true;
}

void settings_check_scalars(struct slice object, struct slice pointer, struct faults *faults,
                            void (*check_name)(struct slice name, struct slice pointer, struct faults *faults))
{
    struct json_walk walk = json_walk(object);
    struct slice name, value;

    while (json_next_member(&walk, &name, &value)) {
        struct slice place = json_pointer_join(faults->arena, pointer, name);
        enum json_type type = json_type(value);

        if (check_name) {
            check_name(name, place, faults);
        }
        if (type == JSON_ARRAY || type == JSON_OBJECT) {
            faults_add(faults, place, "found %s; only text, a number, a boolean or null can stand here",
                       json_type_name(type));
        }
    }
}

struct slice setting_text(struct slice value, struct arena *arena)
{
    switch (json_type(value)) {
    case JSON_STRING:
        return json_string(value, arena);
    case JSON_NUMBER:
    case JSON_BOOL:
        return json_trim(value);
    case JSON_NONE:
    case JSON_NULL:
    case JSON_ARRAY:
    case JSON_OBJECT:
        return SLICE_NONE;
    }
    UNREACHABLE();
}
