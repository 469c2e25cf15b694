/* See registered.h. */
#include "tools/sagactl/registered.h"

#include <string.h>

#include "base/canon.h"
#include "tools/sagactl/client.h"
#include "tools/sagactl/output.h"

struct entry {               /* the newest version of a definition */
    struct slice name, body; /* body: SLICE_NONE until it was fetched */
    uint32_t version;
    enum reading reading;
};

static const char *const paths[] = {[DEFINITION_TOOL] = "/v1/tools", [DEFINITION_SAGA] = "/v1/definitions"};

static void take_names(struct registered *registered, enum definition_kind kind, struct slice items)
{
    struct arena *arena = &registered->ctl->arena;
    struct json_walk walk = json_walk(items);
    struct slice item;

    while (json_type(items) == JSON_ARRAY && json_next_element(&walk, &item)) {
        struct entry *entry = arena_alloc(arena, sizeof(*entry));

        *entry = (struct entry){.name = json_string(json_member(item, "name"), arena)};
        map_put(&registered->names[kind], entry->name.ptr, entry->name.len, entry);
    }
}

static int list_names(struct registered *registered, enum definition_kind kind)
{
    struct ctl *ctl = registered->ctl;
    struct slice cursor = SLICE_NONE;

    do {
        struct answer answer;
        int code = client_get(ctl,
                              arena_printf(&ctl->arena, "%s?limit=500%s%.*s", paths[kind], cursor.ptr ? "&cursor=" : "",
                                           SLICE_ARG(url_escape(cursor.ptr ? cursor : SLICE(""), &ctl->arena))),
                              &ctl->arena, &answer);

        if (code != EXIT_OK) {
            return code;
        }
        take_names(registered, kind, json_member(answer.body, "items"));
        cursor = json_member(answer.body, "next_cursor");
        cursor = json_type(cursor) == JSON_STRING ? json_string(cursor, &ctl->arena) : SLICE_NONE;
    } while (cursor.ptr);
    return EXIT_OK;
}

/* Returns the entry; NULL when there is none, or when it could not be fetched, which `code` tells. */
static struct entry *entry_of(struct registered *registered, enum definition_kind kind, struct slice name)
{
    struct entry *entry = map_find(&registered->names[kind], name.ptr, name.len);
    struct ctl *ctl = registered->ctl;
    int64_t version = 1, reading = READING_FIRST;
    struct answer answer;
    int code;

    if (!entry || entry->body.ptr || registered->code != EXIT_OK) {
        return registered->code == EXIT_OK ? entry : NULL;
    }
    code = client_get(ctl, arena_printf(&ctl->arena, "%s/%.*s", paths[kind], SLICE_ARG(url_escape(name, &ctl->arena))),
                      &ctl->arena, &answer);
    if (code != EXIT_OK) {
        registered->code = code;
        return NULL;
    }
    (void)json_i64(json_member(answer.body, "version"), &version); /* older services send no version */
    (void)json_i64(json_member(answer.body, "reading"), &reading);
    entry->body = json_member(answer.body, "body");
    entry->version = (uint32_t)version;
    entry->reading = (enum reading)reading;
    return entry->body.ptr ? entry : NULL;
}

static bool find(struct registered *registered, enum definition_kind kind, struct slice name, struct slice *body,
                 uint32_t *version)
{
    struct entry *entry = entry_of(registered, kind, name);

    if (!entry) {
        return false;
    }
    *body = entry->body;
    *version = entry->version;
    return true;
}

static bool find_tool(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found)
{
    struct registered *registered = context;

    return registered->files.find(registered->files.context, name, version, body, version_found) ||
           find(registered, DEFINITION_TOOL, name, body, version_found);
}

static bool find_saga(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found)
{
    struct registered *registered = context;

    return registered->files.find_saga(registered->files.context, name, version, body, version_found) ||
           find(registered, DEFINITION_SAGA, name, body, version_found);
}

/* Returns the reading of a definition. Definitions from files have the newest reading, as if they were registered
 * now. */
static enum reading reading_of(void *context, enum definition_kind kind, struct slice name, uint32_t version)
{
    struct registered *registered = context;
    struct entry *entry;
    struct slice body;
    uint32_t found;

    (void)version;
    if ((kind == DEFINITION_TOOL ? registered->files.find : registered->files.find_saga)(registered->files.context,
                                                                                         name, 0, &body, &found)) {
        return READING_NEWEST;
    }
    entry = entry_of(registered, kind, name);
    return entry ? entry->reading : READING_NEWEST;
}

static bool has_body(void *context, enum definition_kind kind, struct slice name, const struct digest *identity)
{
    struct registered *registered = context;
    struct entry *entry = entry_of(registered, kind, name);
    struct digest own;

    if (!entry) {
        return false;
    }
    own = canon_digest(entry->body, &registered->ctl->arena);
    return digest_equal(&own, identity);
}

int registered_open(struct registered *registered, struct ctl *ctl, struct tool_source *source)
{
    int code;

    *registered = (struct registered){.ctl = ctl, .files = *source, .code = EXIT_OK};
    map_init(&registered->names[DEFINITION_TOOL]);
    map_init(&registered->names[DEFINITION_SAGA]);
    *source = (struct tool_source){
        .find = find_tool, .context = registered, .find_saga = find_saga, .reading = reading_of, .has_body = has_body};
    code = list_names(registered, DEFINITION_TOOL);
    return code == EXIT_OK ? list_names(registered, DEFINITION_SAGA) : code;
}

void registered_close(struct registered *registered)
{
    map_fini(&registered->names[DEFINITION_TOOL]);
    map_fini(&registered->names[DEFINITION_SAGA]);
}
