/* Looked up at call time; the file goes before the environment. */
#include "run/secrets.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define SECRETS_FILE_BYTES_MAX (1 << 20)

static enum err_code secrets_read(const char *path, struct arena *arena, struct slice *text, struct err *err)
{
    FILE *file = fopen(path, "re");

    if (!file) {
        enum err_code code = err_set(err, ERR_CONFIG, "the secrets file %s cannot be read", path);
        err_detail(err, "%s", strerror(errno));
        err_hint(err, "give the path of a JSON object of names and texts with --secrets, readable by this user only");
        return code;
    }
    char *bytes = arena_alloc(arena, SECRETS_FILE_BYTES_MAX + 1);
    size_t len = fread(bytes, 1, SECRETS_FILE_BYTES_MAX + 1, file);
    bool failed = ferror(file) != 0;

    (void)fclose(file); /* only read from */
    if (failed || len > SECRETS_FILE_BYTES_MAX) {
        return err_set(err, ERR_CONFIG, "the secrets file %s cannot be read, or is larger than 1 MiB", path);
    }
    *text = (struct slice){bytes, len};
    return ERR_OK;
}

enum err_code secrets_load(struct secrets *secrets, const char *path, struct err *err)
{
    arena_init(&secrets->arena, 4096);
    secrets->file = SLICE_NONE;
    if (!path || !*path) {
        return ERR_OK;
    }
    struct slice text;
    enum err_code code = secrets_read(path, &secrets->arena, &text, err);

    if (code != ERR_OK) {
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
            return err_set(err, ERR_CONFIG, "in the secrets file %s, the value of \"%.*s\" is not a text", path, SLICE_ARG(name));
        }
    }
    secrets->file = text;
    return ERR_OK;
}

void secrets_fini(struct secrets *secrets)
{
    if (secrets->file.ptr) {
        explicit_bzero((char *)secrets->file.ptr, secrets->file.len);
    }
    arena_fini(&secrets->arena);
}

struct slice secrets_json(const struct secrets *secrets, struct slice name, struct arena *arena)
{
    if (secrets->file.ptr) {
        struct slice value = json_member(secrets->file, arena_text(arena, name));

        if (value.ptr) {
            return value;
        }
    }
    char variable[160] = "SAGAD_SECRET_";
    size_t at = strlen(variable);

    for (size_t i = 0; i < name.len && at + 1 < sizeof(variable); i++, at++) {
        variable[at] = isalnum((unsigned char)name.ptr[i]) ? (char)toupper((unsigned char)name.ptr[i]) : '_';
    }
    variable[at] = '\0';
    const char *text = getenv(variable);

    if (!text || at - strlen("SAGAD_SECRET_") < name.len) {
        return SLICE_NONE;
    }
    struct buffer out;

    buffer_init(&out, 65536);
    json_put_string(&out, slice_of(text));
    struct slice json = out.overflow ? SLICE_NONE : arena_slice(arena, buffer_slice(&out));

    buffer_fini(&out);
    return json;
}
