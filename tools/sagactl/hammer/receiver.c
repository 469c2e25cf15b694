/* See receiver.h. */
#include "tools/sagactl/hammer/receiver.h"

#include <string.h>

#include "base/json.h"

enum reach receiver_reach(struct slice adapter, struct slice settings)
{
    if (slice_is(adapter, "http")) {
        return REACH_HTTP;
    }
    if (slice_is(adapter, "sql")) {
        return REACH_DATABASE;
    }
    if (slice_is(adapter, "exec")) {
        return REACH_PROGRAM;
    }
    if (slice_is(adapter, "mcp")) {
        return json_member(json_member(settings, "server"), "argv").ptr ? REACH_PROGRAM : REACH_HTTP;
    }
    return REACH_NOTHING;
}

bool receiver_has(const struct receiver *receiver, enum reach reach)
{
    switch (reach) {
    case REACH_HTTP:
        return receiver->http.ptr != NULL;
    case REACH_DATABASE:
        return receiver->database.ptr != NULL;
    case REACH_PROGRAM:
        return receiver->programs;
    case REACH_NOTHING:
        return false;
    }
    UNREACHABLE();
}

struct slice receiver_url(struct slice url, struct slice against, struct arena *arena)
{
    size_t at = slice_starts_with(url, "http://") ? 7 : slice_starts_with(url, "https://") ? 8 : 0;

    if (at == 0) {
        return SLICE_NONE;
    }
    while (at < url.len && url.ptr[at] != '/' && url.ptr[at] != '?' && url.ptr[at] != '#') {
        at++;
    }
    return arena_printf(arena, "%.*s%s%.*s", SLICE_ARG(against), at < url.len && url.ptr[at] == '/' ? "" : "/",
                        (int)(url.len - at), url.ptr + at);
}

/* Returns the object with another value in the place of one of its members. */
static struct slice with_member(struct slice object, const char *name, struct slice json, struct arena *arena)
{
    struct json_walk walk = json_walk(object);
    struct slice member, value, result;
    struct json_writer w;
    struct buffer text;

    buffer_init(&text, object.len + json.len + 1024);
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    while (json_next_member(&walk, &member, &value)) {
        const char *called = arena_text(arena, member);

        json_write_raw(&w, called, strcmp(called, name) == 0 ? json : value);
    }
    json_object_end(&w);
    CHECK(!text.overflow);
    result = arena_slice(arena, buffer_slice(&text));
    buffer_fini(&text);
    return result;
}

static struct slice quoted(struct slice text, struct arena *arena)
{
    struct json_writer w;
    struct buffer out;
    struct slice result;

    buffer_init(&out, 6 * text.len + 16);
    json_writer_init(&w, &out);
    json_write_slice(&w, NULL, text);
    CHECK(!out.overflow);
    result = arena_slice(arena, buffer_slice(&out));
    buffer_fini(&out);
    return result;
}

/* The object with the receiver's address in its `url`; SLICE_NONE: it has no URL. */
static struct slice with_url(const struct receiver *receiver, struct slice object, struct arena *arena)
{
    struct slice url = json_member(object, "url");

    url = json_type(url) == JSON_STRING ? receiver_url(json_string(url, arena), receiver->http, arena) : SLICE_NONE;
    return url.ptr ? with_member(object, "url", quoted(url, arena), arena) : SLICE_NONE;
}

struct slice receiver_put(const struct receiver *receiver, struct slice adapter, struct slice settings,
                          struct arena *arena, const char **fault)
{
    enum reach reach = receiver_reach(adapter, settings);
    struct slice server, result = SLICE_NONE;

    *fault = "the tool's \"url\" begins with neither http:// nor https://";
    if (!receiver_has(receiver, reach)) { /* rendered settings may reach something else than those of the definition */
        *fault = "the tool's settings name a receiver of another kind than was given";
        return SLICE_NONE;
    }
    switch (reach) {
    case REACH_HTTP:
        if (slice_is(adapter, "http")) {
            return with_url(receiver, settings, arena);
        }
        server = with_url(receiver, json_member(settings, "server"), arena);
        return server.ptr ? with_member(settings, "server", server, arena) : SLICE_NONE;
    case REACH_DATABASE:
        return with_member(settings, "database", quoted(receiver->database, arena), arena);
    case REACH_PROGRAM:
        result = settings;
        break;
    case REACH_NOTHING:
        break;
    }
    return result;
}

/* postgresql://user:password@host/name?options: user, password and options are nobody's business. */
static struct slice database_text(struct slice database, struct arena *arena)
{
    const char *slashes = memmem(database.ptr, database.len, "//", 2), *end = database.ptr + database.len;
    const char *from = slashes ? slashes + 2 : database.ptr;
    const char *question = memchr(from, '?', (size_t)(end - from));

    end = question ? question : end;
    const char *at = memrchr(from, '@', (size_t)(end - from));

    from = at ? at + 1 : from;
    return arena_printf(arena, "postgresql://%.*s", (int)(end - from), from);
}

struct slice receiver_text(const struct receiver *receiver, struct arena *arena)
{
    struct slice text = receiver->http;

    if (receiver->database.ptr) {
        struct slice database = database_text(receiver->database, arena);

        text = arena_printf(arena, "%.*s%s%.*s", SLICE_ARG(text), text.len ? " and " : "", SLICE_ARG(database));
    }
    if (receiver->programs) {
        text = arena_printf(arena, "%.*s%sprograms of this machine", SLICE_ARG(text), text.len ? " and " : "");
    }
    return text;
}
