/* Turns the names of sagas into paths of the API. */
#include "tools/sagactl/saga_name.h"

#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "tools/sagactl/output.h"

#define CANDIDATES_MAX 10

/* Makes the path of a business id. The id writes a slash as %2F and a percent sign as %25, so that the text can be
 * split again. A plain slash separates: the first one ends the name. */
static struct slice by_business_id(struct ctl *ctl, const char *name, const char *slash)
{
    struct buffer id;

    buffer_init(&id, 65536);
    for (const char *at = slash + 1; *at; at++) {
        if (*at == '/') {
            buffer_put_text(&id, "%2F");
        } else {
            buffer_put_char(&id, *at);
        }
    }
    struct slice part = id.len ? url_escape(buffer_slice(&id), &ctl->arena) : SLICE("");
    struct slice path =
        arena_printf(&ctl->arena, "/v1/sagas/by-business-id/%.*s/%.*s",
                     SLICE_ARG(url_escape((struct slice){name, (size_t)(slash - name)}, &ctl->arena)), SLICE_ARG(part));

    buffer_fini(&id);
    return path;
}

static int not_found(const char *name, const char *why)
{
    (void)fprintf(stderr,
                  "sagactl: %s \"%s\"\n"
                  "  A saga is named by its id, by 8 or more characters at the beginning of it,\n"
                  "  or by NAME/BUSINESS_ID. `sagactl list --id '%s'` finds a business id.\n",
                  why, name, name);
    return EXIT_NOT_FOUND;
}

static int ambiguous(struct ctl *ctl, const char *name, struct slice items, bool more)
{
    struct json_walk walk = json_walk(items);
    struct slice item;

    (void)fprintf(stderr, "sagactl: ambiguous: several sagas have an id that begins with \"%s\"\n", name);
    while (json_next_element(&walk, &item)) {
        (void)fprintf(stderr, "  %.*s  %.*s %.*s\n", SLICE_ARG(show_member(ctl, item, "id")),
                      SLICE_ARG(show_member(ctl, item, "saga")), SLICE_ARG(show_member(ctl, item, "business_id")));
    }
    if (more) {
        (void)fprintf(stderr, "  and more\n");
    }
    return EXIT_CONFLICT;
}

static int by_prefix(struct ctl *ctl, const char *name, struct slice *path)
{
    struct answer answer;
    int code = client_get(ctl, arena_printf(&ctl->arena, "/v1/sagas?limit=%d&id=%s", CANDIDATES_MAX, name), &ctl->arena,
                          &answer);

    if (code != EXIT_OK) {
        return code;
    }
    struct slice items = json_member(answer.body, "items");
    size_t count = json_type(items) == JSON_ARRAY ? json_count(items) : 0;

    if (count == 0) {
        return not_found(name, "there is no saga with the id");
    }
    if (count > 1) {
        return ambiguous(ctl, name, items, show_member(ctl, answer.body, "next_cursor").len > 0);
    }
    *path = arena_printf(&ctl->arena, "/v1/sagas/%.*s", SLICE_ARG(show_member(ctl, json_element(items, 0), "id")));
    return EXIT_OK;
}

int saga_path(struct ctl *ctl, const char *name, struct slice *path)
{
    const char *slash = strchr(name, '/');
    struct uuid first, last;

    if (slash && slash > name && slash[1] != '\0') {
        *path = by_business_id(ctl, name, slash);
        return EXIT_OK;
    }
    if (uuid_parse(slice_of(name), &first)) {
        *path = arena_printf(&ctl->arena, "/v1/sagas/%s", name);
        return EXIT_OK;
    }
    return uuid_range_parse(slice_of(name), &first, &last) ? by_prefix(ctl, name, path)
                                                           : not_found(name, "this names no saga:");
}

int saga_id_of(struct ctl *ctl, const char *name, struct slice *id)
{
    struct answer answer;
    struct slice path;
    struct uuid uuid;
    int code;

    if (uuid_parse(slice_of(name), &uuid)) {
        *id = slice_of(name);
        return EXIT_OK;
    }
    code = saga_path(ctl, name, &path);
    code = code == EXIT_OK ? client_get(ctl, path, &ctl->arena, &answer) : code;
    if (code == EXIT_OK) {
        *id = show_member(ctl, answer.body, "id");
    }
    return code;
}
