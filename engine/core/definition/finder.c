/* Finds the registered tools and sagas that a saga names and that its own document does not have. */
#include <string.h>

#include "core/definition/parts.h"

/* Doubles a full array. Returns NULL while the array has room. */
static void *grown(struct arena *arena, const void *items, size_t count, size_t *capacity, size_t item_bytes)
{
    if (count < *capacity) {
        return NULL;
    }
    *capacity = *capacity ? 2 * *capacity : 16;
    void *more = arena_array(arena, *capacity, item_bytes);

    if (count > 0) {
        memcpy(more, items, count * item_bytes);
    }
    return more;
}

static enum reading reading_of(const struct source_finder *self, enum definition_kind kind, struct slice name,
                               uint32_t version)
{
    return self->source->reading ? self->source->reading(self->source->context, kind, name, version) : READING_NEWEST;
}

static enum tool_lookup source_find(struct tool_finder *finder, struct slice name, struct slice pointer,
                                    const struct tool **out)
{
    struct source_finder *self = container_of(finder, struct source_finder, finder);
    struct slice body;
    uint32_t version;

    for (size_t i = 0; i < self->tool_count; i++) {
        if (slice_equal(self->tools[i]->name, name)) {
            *out = self->tools[i];
            return TOOL_FOUND;
        }
    }
    if (!self->source || !self->source->find(self->source->context, name, 0, &body, &version)) {
        return TOOL_MISSING;
    }
    size_t before = reader_faults(self->reader);
    bool collects = self->reader->collects, holds = self->reader->holds;
    enum reading reading = self->reader->reading;

    self->reader->holds = false;
    self->reader->collects = false; /* settings and programs were checked when the tool was registered */
    self->reader->reading = reading_of(self, DEFINITION_TOOL, name, version);
    struct tool *tool = tool_read(self->reader, body, SLICE_NONE, version, pointer);

    self->reader->collects = collects;
    self->reader->holds = holds;
    self->reader->reading = reading;
    if (reader_faults(self->reader) != before) {
        return TOOL_BROKEN;
    }
    void *more = grown(self->reader->arena, self->tools, self->tool_count, &self->tool_capacity, sizeof(*self->tools));

    self->tools = more ? more : self->tools;
    self->tools[self->tool_count++] = tool;
    *out = tool;
    return TOOL_FOUND;
}

/*
 * Reads a registered saga. Such a saga was sound when it was registered, so a fault comes from what the document
 * changes. The fault is reported at the step that names the saga, because the pointers of the saga lead into a text
 * that the reader of the message does not have.
 */
static struct found_saga read_registered(struct source_finder *self, struct slice name, struct slice body,
                                         uint32_t version)
{
    struct reader *reader = self->reader;
    struct faults unheard, *heard = reader->faults;
    bool collects = reader->collects, holds = reader->holds;
    enum reading reading = reader->reading;
    struct found_saga found = {.name = arena_slice(reader->arena, name)};

    faults_init(&unheard, reader->arena);
    reader->faults = &unheard;
    reader->collects = reader->holds = false;
    reader->reading = reading_of(self, DEFINITION_SAGA, name, version);
    found.saga = saga_read(reader, body, version, self->outermost, SLICE(""));
    reader->faults = heard;
    reader->collects = collects;
    reader->holds = holds;
    reader->reading = reading;
    if (unheard.count > 0) {
        found.why =
            arena_printf(reader->arena, "its version %u does not compile here: at %.*s: %.*s", (unsigned)version,
                         SLICE_ARG(unheard.items[0].pointer), SLICE_ARG(unheard.items[0].detail));
    }
    return found;
}

static enum tool_lookup source_find_saga(struct tool_finder *finder, struct slice name, const struct definition **out,
                                         struct slice *why)
{
    struct source_finder *self = container_of(finder, struct source_finder, finder);
    size_t at = 0;
    struct slice body;
    uint32_t version;

    while (at < self->saga_count && !slice_equal(self->sagas[at].name, name)) {
        at++;
    }
    if (at == self->saga_count) {
        if (!self->source || !self->source->find_saga ||
            !self->source->find_saga(self->source->context, name, 0, &body, &version)) {
            return TOOL_MISSING;
        }
        struct found_saga found = read_registered(self, name, body, version);
        void *more =
            grown(self->reader->arena, self->sagas, self->saga_count, &self->saga_capacity, sizeof(*self->sagas));

        self->sagas = more ? more : self->sagas;
        at = self->saga_count++; /* the count may have grown while the saga was read */
        self->sagas[at] = found;
    }
    *out = self->sagas[at].saga;
    *why = self->sagas[at].why;
    return why->ptr ? TOOL_BROKEN : TOOL_FOUND;
}

static bool source_has_saga(struct tool_finder *finder, struct slice name)
{
    struct source_finder *self = container_of(finder, struct source_finder, finder);
    struct slice body;
    uint32_t version;

    return self->source && self->source->find_saga &&
           self->source->find_saga(self->source->context, name, 0, &body, &version);
}

void source_finder_init(struct source_finder *self, struct reader *reader, const struct tool_source *source)
{
    *self = (struct source_finder){
        .finder = {.find = source_find, .find_saga = source_find_saga, .has_saga = source_has_saga},
        .outermost = &self->finder,
        .reader = reader,
        .source = source};
}

struct definition *definition_compile(struct slice body, uint32_t version, const struct tool_source *source,
                                      struct slice pointer, struct arena *arena, struct faults *faults)
{
    return definition_compile_as(READING_NEWEST, body, version, source, pointer, arena, faults);
}

struct definition *definition_compile_as(enum reading reading, struct slice body, uint32_t version,
                                         const struct tool_source *source, struct slice pointer, struct arena *arena,
                                         struct faults *faults)
{
    struct reader reader = {.arena = arena, .faults = faults, .reading = reading};
    struct source_finder self;
    size_t before = reader_faults(&reader);

    source_finder_init(&self, &reader, source);
    struct definition *definition = saga_read(&reader, body, version, &self.finder, pointer);

    return reader_faults(&reader) == before ? definition : NULL;
}
