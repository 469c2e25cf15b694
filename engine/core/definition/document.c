/* Reads documents of definitions. Tools are read first, because sagas and compensators may use tools that stand further
 * down. */
#include "base/canon.h"
#include "base/json.h"
#include "core/definition/parts.h"

#define ITEMS_MAX 1000 /* the most tools, and the most sagas, of a document; names are compared in pairs */
#define SHARES_MAX 8   /* each is a copy, and is compiled once more */

struct tool_entry { /* it belongs to one tool of the document */
    const struct tool *tool;
    bool is_broken, is_graded; /* is_graded: see reader.tool_is_graded */
};

struct saga_entry { /* one saga of this document; a saga that is a child of an earlier one is read before its turn */
    struct slice name, body, pointer;
    struct digest identity;
    const struct definition *saga; /* NULL until the saga is read */
    bool is_broken;
};

struct document_finder {
    struct tool_finder finder;
    struct source_finder registered;
    struct tool_entry *entries;
    size_t entry_count;
    struct saga_entry *sagas;
    size_t saga_count;
    struct faults *faults; /* the faults of the document */
};

static enum tool_lookup find_tool(struct tool_finder *finder, struct slice name, struct slice pointer,
                                  const struct tool **out)
{
    struct document_finder *self = container_of(finder, struct document_finder, finder);

    for (size_t i = 0; i < self->entry_count; i++) {
        if (slice_equal(self->entries[i].tool->name, name)) {
            *out = self->entries[i].tool;
            return !self->entries[i].is_broken ? TOOL_FOUND : self->entries[i].is_graded ? TOOL_FLAWED : TOOL_BROKEN;
        }
    }
    return self->registered.finder.find(&self->registered.finder, name, pointer, out);
}

static struct slice near_tool(struct tool_finder *finder, struct slice name)
{
    const struct document_finder *self = container_of(finder, struct document_finder, finder);
    struct slice best = SLICE_NONE;
    unsigned best_distance = 3;

    for (size_t i = 0; reader_has_time(self->registered.reader) && i < self->entry_count; i++) {
        unsigned distance = word_distance(self->entries[i].tool->name, name);

        if (distance < best_distance && distance < name.len) {
            best = self->entries[i].tool->name;
            best_distance = distance;
        }
    }
    return best;
}

static bool is_of_document(struct tool_finder *finder, const struct tool *tool)
{
    const struct document_finder *self = container_of(finder, struct document_finder, finder);

    for (size_t i = 0; i < self->entry_count; i++) {
        if (self->entries[i].tool == tool) {
            return true;
        }
    }
    return false;
}

/* Is this body not registered yet? A registered body stays valid: newer rules do not refuse it. */
static bool is_new(const struct document_finder *self, enum definition_kind kind, struct slice name,
                   const struct digest *identity)
{
    const struct tool_source *source = self->registered.source;

    return !source || !source->has_body || !source->has_body(source->context, kind, name, identity);
}

static void read_saga(struct document_finder *self, struct saga_entry *entry)
{
    struct reader *reader = self->registered.reader;
    struct faults *around = reader->faults;
    bool collects = reader->collects;
    bool holds = reader->holds;
    enum reading reading = reader->reading;

    reader->faults = self->faults; /* the document's faults, even when a registered saga names this one */
    reader->collects = true;
    reader->reading = READING_NEWEST;
    reader->holds = is_new(self, DEFINITION_SAGA, entry->name, &entry->identity);
    size_t before = reader_faults(reader);

    entry->saga = saga_read(reader, entry->body, 0, &self->finder, entry->pointer);
    entry->is_broken = reader_faults(reader) != before;
    reader->faults = around;
    reader->collects = collects;
    reader->holds = holds;
    reader->reading = reading;
}

static struct saga_entry *saga_entry_of(struct document_finder *self, struct slice name)
{
    for (size_t i = 0; i < self->saga_count; i++) {
        if (name.len > 0 && slice_equal(self->sagas[i].name, name)) {
            return &self->sagas[i];
        }
    }
    return NULL;
}

static enum tool_lookup find_saga(struct tool_finder *finder, struct slice name, const struct definition **out,
                                  struct slice *why)
{
    struct document_finder *self = container_of(finder, struct document_finder, finder);
    struct saga_entry *entry = saga_entry_of(self, name);

    if (!entry) {
        return self->registered.finder.find_saga(&self->registered.finder, name, out, why);
    }
    if (!entry->saga) {
        read_saga(self, entry);
    }
    *out = entry->saga;
    *why = SLICE_NONE;
    return entry->is_broken ? TOOL_BROKEN : TOOL_FOUND;
}

static bool has_saga(struct tool_finder *finder, struct slice name)
{
    struct document_finder *self = container_of(finder, struct document_finder, finder);

    return saga_entry_of(self, name) || self->registered.finder.has_saga(&self->registered.finder, name);
}

static struct slice near_saga(struct tool_finder *finder, struct slice name)
{
    const struct document_finder *self = container_of(finder, struct document_finder, finder);
    struct slice best = SLICE_NONE;
    unsigned best_distance = 3;

    for (size_t i = 0; reader_has_time(self->registered.reader) && i < self->saga_count; i++) {
        unsigned distance = word_distance(self->sagas[i].name, name);

        if (distance < best_distance && distance < name.len) {
            best = self->sagas[i].name;
            best_distance = distance;
        }
    }
    return best;
}

static struct slice array_at(struct reader *reader, const struct members *m, const char *name)
{
    struct slice value = members_at(m, name);

    if (value.ptr && json_type(value) != JSON_ARRAY) {
        faults_add(reader->faults, members_pointer(m, name), "`%s` is %.*s; it must be an array", name,
                   SLICE_ARG(value_excerpt(value, reader->arena)));
        return SLICE_NONE;
    }
    if (value.ptr && json_count(value) > ITEMS_MAX) {
        faults_add(reader->faults, members_pointer(m, name), "`%s` has %zu elements; one document has %d at most", name,
                   json_count(value), ITEMS_MAX);
        return SLICE_NONE;
    }
    return value;
}

/* Refuses a second definition of one kind and name. Otherwise the order in the document would decide which is the newer
 * version. */
static void check_unique(struct reader *reader, const struct document *document, const struct document_item *item)
{
    for (size_t i = 0; i < document->item_count; i++) {
        const struct document_item *other = &document->items[i];

        if (other->kind == item->kind && item->name.len > 0 && slice_equal(other->name, item->name)) {
            faults_add(reader->faults, place_join(reader->arena, item->pointer, SLICE("name")),
                       "the name `%.*s` is taken by %.*s "
                       "of this document; each %s needs a name of its own",
                       SLICE_ARG(item->name), SLICE_ARG(other->pointer),
                       item->kind == DEFINITION_TOOL ? "tool" : "saga");
            return;
        }
    }
}

/* Only sagad says who shares a definition: what a person writes there would be believed. */
static void check_shared_by(struct reader *reader, const struct document_finder *finder,
                            const struct document_item *item)
{
    const struct tool_source *source = finder->registered.source;

    if (json_type(item->body) == JSON_OBJECT && json_member(item->body, "shared_by").ptr &&
        !(source && source->is_shared)) {
        faults_add(reader->faults, place_join(reader->arena, item->pointer, SLICE("shared_by")),
                   "`shared_by` is written by sagad, where another namespace shares this definition; leave it out");
    }
}

static void add_item(struct reader *reader, const struct document_finder *finder, struct document *document,
                     struct document_item item)
{
    check_unique(reader, document, &item);
    check_shared_by(reader, finder, &item);
    document->items[document->item_count++] = item;
}

static struct slice name_of(struct slice body, struct arena *arena)
{
    struct slice name = json_type(body) == JSON_OBJECT ? json_member(body, "name") : SLICE_NONE;

    return name.ptr && json_type(name) == JSON_STRING ? json_string(name, arena) : SLICE("");
}

static void read_tools(struct reader *reader, struct slice array, struct slice pointer, struct document_finder *finder,
                       struct document *document)
{
    struct json_walk walk = json_walk(array);
    struct slice body;

    finder->entries = arena_array(reader->arena, json_count(array) + 1, sizeof(*finder->entries));
    for (size_t i = 0; json_next_element(&walk, &body); i++) {
        struct slice place = reader_element_pointer(reader, pointer, i);
        struct digest identity = canon_digest(json_trim(body), reader->arena);
        size_t before = reader_faults(reader);

        reader->holds = is_new(finder, DEFINITION_TOOL, name_of(body, reader->arena), &identity);
        const struct tool *tool = tool_read(reader, body, SLICE_NONE, 0, place);

        finder->entries[finder->entry_count++] =
            (struct tool_entry){tool, reader_faults(reader) != before, reader->tool_is_graded};
        add_item(reader, finder, document,
                 (struct document_item){.kind = DEFINITION_TOOL,
                                        .name = tool->name,
                                        .body = json_trim(body),
                                        .identity = identity,
                                        .pointer = place,
                                        .tool = tool});
    }
    reader->holds = false;
    for (size_t i = 0; i < finder->entry_count; i++) {
        const struct compensator *compensate = &finder->entries[i].tool->compensate;

        tool_check_test(reader, finder->entries[i].tool, &finder->finder, document->items[i].pointer);

        if (compensate->is_set) {
            (void)compensator_find(reader, compensate,
                                   &finder->finder, /* only the faults matter here; each saga finds the tool again */
                                   place_join(reader->arena, compensate->pointer, SLICE("tool")));
        }
    }
}

static void read_sagas(struct reader *reader, struct slice array, struct slice pointer, struct document_finder *finder,
                       struct document *document)
{
    struct json_walk walk = json_walk(array);
    struct slice body;

    finder->sagas = arena_array(reader->arena, json_count(array) + 1, sizeof(*finder->sagas));
    for (size_t i = 0; json_next_element(&walk, &body); i++) {
        finder->sagas[finder->saga_count++] =
            (struct saga_entry){.name = name_of(body, reader->arena),
                                .body = json_trim(body),
                                .identity = canon_digest(json_trim(body), reader->arena),
                                .pointer = reader_element_pointer(reader, pointer, i)};
    }
    for (size_t i = 0; i < finder->saga_count; i++) {
        struct saga_entry *entry = &finder->sagas[i];

        if (!entry->saga) {
            read_saga(finder, entry);
        }
        add_item(reader, finder, document,
                 (struct document_item){.kind = DEFINITION_SAGA,
                                        .name = entry->saga->name,
                                        .body = entry->body,
                                        .identity = entry->identity,
                                        .pointer = entry->pointer,
                                        .saga = entry->saga});
    }
}

/* --- sharing --- */

static bool namespace_is_sound(struct slice name)
{
    bool is_sound = name.len > 0 && name.len <= NAME_BYTES_MAX && !slice_is(name, "*");

    for (size_t i = 0; i < name.len; i++) {
        is_sound = is_sound && name.ptr[i] > ' ' && name.ptr[i] < 0x7f;
    }
    return is_sound;
}

static void read_share(struct reader *reader, const struct members *m, struct document *document)
{
    struct slice value = members_at(m, "share"), place = members_pointer(m, "share"), item;
    struct json_walk walk = json_walk(value);

    if (!value.ptr) {
        return;
    }
    if (json_type(value) != JSON_ARRAY || json_count(value) > SHARES_MAX) {
        faults_add(reader->faults, place, "`share` is an array of up to %d namespaces, each of which gets a copy",
                   SHARES_MAX);
        return;
    }
    document->shares = arena_array(reader->arena, SHARES_MAX, sizeof(*document->shares));
    for (size_t i = 0; json_next_element(&walk, &item); i++) {
        struct slice name = json_type(item) == JSON_STRING ? json_string(item, reader->arena) : SLICE_NONE;
        bool is_new = true;

        for (size_t k = 0; k < document->share_count; k++) {
            is_new = is_new && !slice_equal(document->shares[k], name);
        }
        if (!name.ptr || !namespace_is_sound(name)) {
            faults_add(reader->faults, reader_element_pointer(reader, place, i),
                       "%.*s cannot be a namespace: that is a name of 1 to %d printable characters without blanks",
                       SLICE_ARG(value_excerpt(item, reader->arena)), NAME_BYTES_MAX);
        } else if (!is_new) {
            faults_add(reader->faults, reader_element_pointer(reader, place, i), "this namespace is named twice");
        } else {
            document->shares[document->share_count++] = name;
        }
    }
}

void document_check(struct slice text, const struct tool_source *registered, struct arena *arena, struct faults *faults,
                    struct document *out)
{
    struct reader reader = {.arena = arena, .faults = faults, .collects = true, .reading = READING_NEWEST};
    struct document_finder finder = {.finder = {find_tool, near_tool, is_of_document, find_saga, has_saga, near_saga}};
    struct slice document_text = arena_slice(arena, text), unread = SLICE_NONE;
    struct err err = {0};
    struct members m;

    *out = (struct document){.warnings = arena_alloc(arena, sizeof(*out->warnings))};
    faults_init(out->warnings, arena);
    reader.warnings = out->warnings;
    reader.offline = registered && registered->is_offline;
    if (json_check(document_text, &json_limits_default, &err) != ERR_OK) {
        faults_add(faults, SLICE(""), "%s%s%s", err.message, err.detail[0] ? ": " : "", err.detail);
        return;
    }
    source_finder_init(&finder.registered, &reader, registered);
    finder.registered.outermost = &finder.finder;
    finder.faults = faults;
    if (!members_open(&m, document_text, SLICE(""), "a definition document", "tools sagas share $schema", "", arena,
                      faults)) {
        return;
    }
    (void)members_text(&m, "$schema", &unread); /* editors read which schema the document follows */
    if (!members_at(&m, "tools").ptr && !members_at(&m, "sagas").ptr) {
        faults_add(faults, SLICE(""),
                   "there is nothing to register; a definition document has `tools` or `sagas` or both");
        return;
    }
    read_share(&reader, &m, out);

    struct slice tools = array_at(&reader, &m, "tools"), sagas = array_at(&reader, &m, "sagas");

    out->items = arena_array(arena, (tools.ptr ? json_count(tools) : 0) + (sagas.ptr ? json_count(sagas) : 0) + 1,
                             sizeof(*out->items));
    if (tools.ptr) {
        read_tools(&reader, tools, members_pointer(&m, "tools"), &finder, out);
    }
    if (sagas.ptr) {
        read_sagas(&reader, sagas, members_pointer(&m, "sagas"), &finder, out);
    }
    out->checks = reader.checks;
    out->check_count = reader.check_count;
}
