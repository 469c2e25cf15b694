/* Makes tools and sagas out of a document {"tools": [...], "sagas": [...]}, for the compiler. The fuzz targets with
 * definitions share this file. */
#ifndef SAGAD_TESTS_DEFINITION_SOURCE_H
#define SAGAD_TESTS_DEFINITION_SOURCE_H

#include "core/definition/definition.h"
#include "tests/fuzz/fuzz.h"

struct definition_source {
    struct tool_source source;
    struct slice document;
    struct arena *arena;
};

static inline bool source_find(const struct definition_source *self, const char *list, struct slice name,
                               struct slice *body, uint32_t *version_found)
{
    struct json_walk walk = json_walk(json_member(self->document, list));
    struct slice item;

    while (json_next_element(&walk, &item)) {
        if (slice_equal(json_string(json_member(item, "name"), self->arena), name)) {
            *body = item;
            *version_found = 1;
            return true;
        }
    }
    return false;
}

static inline bool source_find_tool(void *context, struct slice name, uint32_t version, struct slice *body,
                                    uint32_t *version_found)
{
    (void)version;
    return source_find(context, "tools", name, body, version_found);
}

static inline bool source_find_saga(void *context, struct slice name, uint32_t version, struct slice *body,
                                    uint32_t *version_found)
{
    (void)version;
    return source_find(context, "sagas", name, body, version_found);
}

static inline const struct tool_source *definition_source_init(struct definition_source *self, struct slice document,
                                                               struct arena *arena)
{
    *self = (struct definition_source){{source_find_tool, self, source_find_saga}, document, arena};
    return &self->source;
}

#endif
