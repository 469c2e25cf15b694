/* Looks secrets up when a call is made. The file has precedence over the environment. */
#include "run/call/secrets.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"

#define NAME_BYTES_MAX 144 /* the longest name of a secret in the environment */
#define SECRET_BYTES_MAX 65536
#define NAMESPACE_DEFAULT "default"

#define PREFIX "SAGAD_SECRET_"

/* Takes the secrets out of the environment into our arena. On the stack of this process, /proc would show them to every
 * process of this user. */
static void environment_take(struct secrets *secrets)
{
    size_t count = 0;

    for (char **at = environ; at && *at; at++) {
        count += strncmp(*at, PREFIX, strlen(PREFIX)) == 0;
    }
    secrets->variables = arena_array(&secrets->arena, count + 1, sizeof(*secrets->variables));
    for (size_t i = 0; environ && environ[i];) {
        char *equals = strncmp(environ[i], PREFIX, strlen(PREFIX)) == 0 ? strchr(environ[i], '=') : NULL;

        if (!equals || secrets->variable_count == count) {
            i++;
            continue;
        }
        struct secret_variable *variable = &secrets->variables[secrets->variable_count++];
        const char *name = environ[i] + strlen(PREFIX);
        char *whole = arena_text(&secrets->arena, (struct slice){environ[i], (size_t)(equals - environ[i])});

        variable->name = arena_slice(&secrets->arena, (struct slice){name, (size_t)(equals - name)});
        variable->text = arena_slice(&secrets->arena, slice_of(equals + 1));
        explicit_bzero(equals + 1, variable->text.len);
        (void)unsetenv(whole); /* cannot fail for a name that exists; the next variable moves to this place */
    }
}

enum err_code secrets_load(struct secrets *secrets, const char *path, struct err *err)
{
    arena_init(&secrets->arena, 4096);
    secrets->file = SLICE_NONE;
    secrets->variables = NULL;
    secrets->variable_count = 0;
    if (!path || !*path) {
        environment_take(secrets);
        return ERR_OK;
    }
    struct slice text;
    enum err_code code = file_read(path, "secrets", 1024, FILE_OF_ANYBODY, &secrets->arena, &text, err);

    if (code != ERR_OK) {
        err_hint(err, "give the path of a JSON object of names and texts with --secrets, readable by this user only");
        return code;
    }
    struct err fault = {0};

    if (json_check(text, &json_limits_default, &fault) != ERR_OK || json_type(text) != JSON_OBJECT) {
        code = err_set(err, ERR_CONFIG, "the secrets file %s is not a JSON object of names and texts", path);
        err_detail(err, "%s", fault.message); /* the detail could quote a secret */
        return code;
    }
    struct json_walk walk = json_walk(text);
    struct slice name, value;

    while (json_next_member(&walk, &name, &value)) {
        if (json_type(value) != JSON_STRING) {
            return err_set(err, ERR_CONFIG, "in the secrets file %s, the value of \"%.*s\" is not a text", path,
                           SLICE_ARG(name));
        }
    }
    secrets->file = text;
    environment_take(secrets);
    return ERR_OK;
}

void secrets_fini(struct secrets *secrets)
{
    if (secrets->file.ptr) {
        explicit_bzero((char *)secrets->file.ptr, secrets->file.len);
    }
    for (size_t i = 0; i < secrets->variable_count; i++) {
        explicit_bzero((char *)secrets->variables[i].text.ptr, secrets->variables[i].text.len);
    }
    arena_fini(&secrets->arena);
}

static struct slice variable_json(const struct secrets *secrets, struct slice name, struct arena *arena)
{
    struct slice json = SLICE_NONE;

    for (size_t i = 0; name.len <= NAME_BYTES_MAX && i < secrets->variable_count; i++) {
        const struct secret_variable *variable = &secrets->variables[i];
        bool same = variable->name.len == name.len;

        for (size_t k = 0; same && k < name.len; k++) {
            unsigned char c = (unsigned char)name.ptr[k];

            same = variable->name.ptr[k] == (isalnum(c) ? (char)toupper(c) : '_');
        }
        if (same) {
            struct buffer out;

            buffer_init(&out, SECRET_BYTES_MAX);
            json_put_string(&out, variable->text);
            json = out.overflow ? SLICE_NONE : arena_slice(arena, buffer_slice(&out));
            buffer_fini(&out);
        }
    }
    return json;
}

struct slice secrets_json(const struct secrets *secrets, struct slice namespace, struct slice name, struct arena *arena)
{
    bool is_default = namespace.len == 0 || slice_is(namespace, NAMESPACE_DEFAULT);
    struct slice value = SLICE_NONE;

    if (name.len == 0 || memchr(name.ptr, '/', name.len)) {
        return SLICE_NONE; /* the secret of another namespace */
    }
    if (secrets->file.ptr) {
        value = is_default ? json_member(secrets->file, arena_text(arena, name)) : SLICE_NONE;
        if (!value.ptr) {
            struct slice own = is_default ? SLICE(NAMESPACE_DEFAULT) : namespace;

            value = json_member(secrets->file,
                                arena_text(arena, arena_printf(arena, "%.*s/%.*s", SLICE_ARG(own), SLICE_ARG(name))));
        }
    }
    return value.ptr || !is_default ? value : variable_json(secrets, name, arena);
}
