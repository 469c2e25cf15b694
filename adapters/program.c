/* Reads the settings that every adapter of programs has: argv, environment, directory. */
#include "adapters/program.h"

#include <stdlib.h>
#include <string.h>

#include "adapters/tool_settings.h"
#include "base/json.h"
#include "io/process/programs.h"

/* The variables that a program inherits from us: enough to run, none of our secrets. */
static const char *const inherited[] = {"PATH", "HOME", "LANG"};

static bool name_is_variable(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!(c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (i > 0 && c >= '0' && c <= '9'))) {
            return false;
        }
    }
    return name.len > 0;
}

static void check_variable(struct slice name, struct slice pointer, struct faults *faults)
{
    if (!name_is_variable(name)) {
        faults_add(faults, pointer, "\"%.*s\" cannot be the name of an environment variable", SLICE_ARG(name));
    }
}

void program_check_argv(struct slice value, struct slice pointer, struct faults *faults)
{
    struct json_walk walk = json_walk(value);
    struct slice element;
    int i = 0;

    if (json_count(value) == 0) {
        faults_add(faults, pointer, "\"argv\" is empty; its first element names the program");
    }
    for (; json_next_element(&walk, &element); i++) {
        struct slice place = json_pointer_join(faults->arena, pointer, arena_printf(faults->arena, "%d", i));

        if (json_type(element) != JSON_STRING) {
            faults_add(faults, place, "found %s; an argument is a string", json_type_name(json_type(element)));
        } else if (i == 0 && json_string_is(element, "")) {
            faults_add(faults, place, "the name of the program is empty");
        } else if (i == 0 && setting_is_template(element)) {
            faults_add(faults, place, "the program may not come from a template; write its name or path");
        }
    }
}

void program_refuse_template(struct slice value, struct slice pointer, struct faults *faults)
{
    (void)value; /* a template may become anything */
    faults_add(faults, pointer,
               "the program may not come from a template; write the array, with a template for each argument "
               "that changes");
}

void program_check_env(struct slice value, struct slice pointer, struct faults *faults)
{
    settings_check_scalars(value, pointer, faults, check_variable);
}

const char *program_argv(struct slice given, struct arena *arena, char ***out)
{
    struct json_walk walk = json_walk(given);
    struct slice element;
    size_t count = 0;
    char **argv;

    if (json_type(given) != JSON_ARRAY || json_count(given) == 0) {
        return "The rendered \"argv\" is no array with at least the name of a program.";
    }
    argv = arena_array(arena, json_count(given) + 1, sizeof(*argv));
    while (json_next_element(&walk, &element)) {
        struct slice text = setting_text(element, arena);

        if (!text.ptr || (count == 0 && text.len == 0)) {
            return "An element of the rendered \"argv\" is null, an array or an object, or the name of the program is "
                   "empty.";
        }
        argv[count++] = arena_text(arena, text);
    }
    *out = argv;
    return NULL;
}

/* Adds a variable, or replaces the one of the same name. Our own come first, then `env`, then the key. */
static void env_put(char **env, size_t *count, struct slice name, struct slice value, struct arena *arena)
{
    char *entry = arena_text(arena, arena_printf(arena, "%.*s=%.*s", SLICE_ARG(name), SLICE_ARG(value)));

    for (size_t i = 0; i < *count; i++) {
        if (strncmp(env[i], entry, name.len + 1) == 0) {
            env[i] = entry;
            return;
        }
    }
    env[(*count)++] = entry;
}

const char *program_search(char *const *env)
{
    for (size_t i = 0; env[i]; i++) {
        if (strncmp(env[i], "PATH=", 5) == 0) {
            return env[i] + 5;
        }
    }
    return NULL;
}

const char *program_env(struct slice given, struct slice key_name, struct slice key, const struct trace_context *trace,
                        const struct programs *programs, struct arena *arena, char ***out)
{
    struct json_walk walk = json_walk(given);
    struct slice name, value;
    size_t count = 0;
    char **env;

    if (given.ptr && json_type(given) != JSON_OBJECT && json_type(given) != JSON_NULL) {
        return "The rendered \"env\" is no object.";
    }
    env = arena_array(arena, COUNT_OF(inherited) + json_count(given) + 4, sizeof(*env));
    for (size_t i = 0; i < COUNT_OF(inherited); i++) {
        bool of_user = programs && programs->as_user && strcmp(inherited[i], "HOME") == 0;
        const char *ours = of_user ? programs->home : getenv(inherited[i]);

        if (ours) {
            env_put(env, &count, slice_of(inherited[i]), slice_of(ours), arena);
        }
    }
    while (json_type(given) == JSON_OBJECT && json_next_member(&walk, &name, &value)) {
        struct slice text = setting_text(value, arena);

        if (json_type(value) == JSON_NULL) {
            continue;
        }
        if (!text.ptr || !name_is_variable(name)) {
            return "A rendered variable of \"env\" is an array or an object, or its name cannot be one.";
        }
        env_put(env, &count, name, text, arena);
    }
    if (key.ptr) {
        env_put(env, &count, key_name, key, arena);
    }
    if (trace && trace->parent.ptr && !json_member(given, "TRACEPARENT").ptr) {
        env_put(env, &count, SLICE("TRACEPARENT"), trace->parent, arena);
        if (trace->state.ptr) {
            env_put(env, &count, SLICE("TRACESTATE"), trace->state, arena);
        }
    }
    *out = env;
    return NULL;
}

const char *program_cwd(struct slice given, struct arena *arena, const char **out)
{
    if (!given.ptr || json_type(given) == JSON_NULL) {
        return NULL;
    }
    if (json_type(given) != JSON_STRING) {
        return "The rendered \"cwd\" is no text.";
    }
    *out = arena_text(arena, json_string(given, arena));
    return NULL;
}
