/* Registered versions in memory, and compiled definitions, which are remembered by their pins. */
#include "run/request/definitions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "core/saga/sensitive.h"

struct registered { /* one version */
    struct definition_row row;
    struct registered *older; /* the version before; the map has the newest */
};

struct compiled {
    struct slice key;
    const struct definition *definition;
};

struct definitions {
    struct arena arena; /* rows and compiled definitions live as long as the process */
    struct map newest;  /* "kind namespace name" -> struct registered */
    struct map pinned;  /* "namespace name version tools sagas" -> struct compiled */
    struct map current; /* "namespace name version" -> struct compiled, with the newest tools and children; emptied when
                           a version is added */
    struct map tools;   /* "namespace name version" -> struct compiled_tool */
    struct map offers;  /* namespace -> struct offers_of; emptied when anything is added */
    struct map sensitive; /* namespace -> its name: some version of a definition in it has a member `sensitive` */
    struct tool_shelf shelf;
    const struct definition *open, *run; /* the definitions that open sagas and runs begin with */
    bool (*guard_applies)(void *context, struct slice namespace, struct slice tool); /* NULL when nobody says */
    void *guard_context;
    struct buffer key;
};

struct offers_of {
    struct slice namespace;
    struct offers offers;
};

struct compiled_tool {
    struct slice key;
    const struct tool *tool;
};

static const struct tool *shelf_find(const struct tool_shelf *shelf, struct slice namespace, struct slice name,
                                     uint32_t version)
{
    /* The shelf is a part of the definitions, which grow when it is asked. */
    struct definitions *definitions = container_of((struct tool_shelf *)shelf, struct definitions, shelf);

    return definitions_tool(definitions, namespace, name, version, NULL);
}

static const struct definition *shelf_mend(const struct tool_shelf *shelf, struct slice namespace,
                                           const struct definition *definition, struct slice tool, uint32_t version,
                                           struct err *err);

struct definitions *definitions_new(void)
{
    struct definitions *definitions = memory_alloc(sizeof(*definitions));

    arena_init(&definitions->arena, 16384);
    map_init(&definitions->newest);
    map_init(&definitions->pinned);
    map_init(&definitions->current);
    map_init(&definitions->tools);
    map_init(&definitions->offers);
    map_init(&definitions->sensitive);
    buffer_init(&definitions->key, 65536);
    definitions->shelf.find = shelf_find;
    definitions->shelf.mend = shelf_mend;
    return definitions;
}

static void forget_offers(struct definitions *definitions)
{
    size_t position = 0;
    void *value;

    while (map_next(&definitions->offers, &position, &value)) {
        struct offers_of *of = value;

        offers_fini(&of->offers);
        free(of);
    }
    map_fini(&definitions->offers);
    map_init(&definitions->offers);
}

void definitions_free(struct definitions *definitions)
{
    if (!definitions) {
        return;
    }
    map_fini(&definitions->newest);
    map_fini(&definitions->pinned);
    map_fini(&definitions->current);
    map_fini(&definitions->tools);
    forget_offers(definitions);
    map_fini(&definitions->offers);
    map_fini(&definitions->sensitive);
    buffer_fini(&definitions->key);
    arena_fini(&definitions->arena);
    free(definitions);
}

void definitions_set_guard(struct definitions *definitions,
                           bool (*applies)(void *context, struct slice namespace, struct slice tool), void *context)
{
    definitions->guard_applies = applies;
    definitions->guard_context = context;
}

/* Marks a guarded tool right after it was compiled, before anybody else sees it. */
static void guard_tool(struct definitions *definitions, struct slice namespace, struct tool *tool)
{
    if (definitions->guard_applies && definitions->guard_applies(definitions->guard_context, namespace, tool->name)) {
        tool->guarded = true;
    }
}

/* Each call asks for several definitions, so keys are put together without a format. */
static void put_part(struct buffer *key, struct slice part)
{
    buffer_put_slice(key, part);
    buffer_put_char(key, '\n');
}

static struct slice row_key(struct definitions *definitions, enum definition_kind kind, struct slice namespace,
                            struct slice name)
{
    buffer_reset(&definitions->key);
    buffer_put_i64(&definitions->key, kind);
    buffer_put_char(&definitions->key, '\n');
    put_part(&definitions->key, namespace);
    buffer_put_slice(&definitions->key, name);
    return buffer_slice(&definitions->key);
}

static struct slice compiled_key(struct definitions *definitions, struct slice namespace, struct slice name,
                                 uint32_t version, struct slice tools, struct slice sagas)
{
    buffer_reset(&definitions->key);
    put_part(&definitions->key, namespace);
    put_part(&definitions->key, name);
    buffer_put_i64(&definitions->key, version);
    buffer_put_char(&definitions->key, '\n');
    put_part(&definitions->key, tools);
    buffer_put_slice(&definitions->key, sagas);
    return buffer_slice(&definitions->key);
}

static struct registered *newest(const struct definitions *definitions, enum definition_kind kind,
                                 struct slice namespace, struct slice name)
{
    struct slice key = row_key((struct definitions *)definitions, kind, namespace, name); /* the buffer is scratch */

    return map_find(&definitions->newest, key.ptr, key.len);
}

/* A step may hold its tool, so the name of the member is looked for anywhere. One that only looks like it hides more
 * than it has to. */
static void note_sensitive(struct definitions *definitions, const struct definition_row *row)
{
    static const char name[] = "\"sensitive\"";

    if (memmem(row->body.ptr, row->body.len, name, sizeof(name) - 1) &&
        !map_find(&definitions->sensitive, row->namespace.ptr, row->namespace.len)) {
        map_put(&definitions->sensitive, row->namespace.ptr, row->namespace.len, (void *)row);
    }
}

bool definitions_declare(struct definitions *definitions, struct slice namespace, struct slice saga_name)
{
    const struct definition *definition;
    struct err err = {0};

    if (!map_find(&definitions->sensitive, namespace.ptr, namespace.len)) {
        return false;
    }
    if (!saga_name.ptr) {
        return true;
    }
    definition = definitions_newest(definitions, namespace, saga_name, 0, &err);
    return definition ? definition_has_sensitive(definition) : err.code != ERR_NOT_FOUND;
}

void definitions_add(struct definitions *definitions, const struct definition_row *row)
{
    struct registered *head = newest(definitions, row->kind, row->namespace, row->name);

    for (struct registered *r = head; r; r = r->older) {
        if (r->row.version == row->version) {
            return;
        }
    }
    struct registered *added = arena_alloc(&definitions->arena, sizeof(*added));

    added->row = *row;
    added->row.namespace = arena_slice(&definitions->arena, row->namespace);
    added->row.name = arena_slice(&definitions->arena, row->name);
    added->row.body = arena_slice(&definitions->arena, row->body);
    note_sensitive(definitions, &added->row);
    if (!head || head->row.version < row->version) {
        struct slice key = arena_slice(&definitions->arena, row_key(definitions, row->kind, row->namespace, row->name));

        added->older = head;
        map_put(&definitions->newest, key.ptr, key.len, added);
    } else {
        struct registered *r = head;

        while (r->older && r->older->row.version > row->version) {
            r = r->older;
        }
        added->older = r->older;
        r->older = added;
    }
    map_fini(&definitions->current);
    map_init(&definitions->current);
    forget_offers(definitions);
}

const struct definition_row *definitions_row(const struct definitions *definitions, enum definition_kind kind,
                                             struct slice namespace, struct slice name, uint32_t version)
{
    for (const struct registered *r = newest(definitions, kind, namespace, name); r; r = r->older) {
        if (version == 0 || r->row.version == version) {
            return &r->row;
        }
    }
    return NULL;
}

bool definitions_lets_start(const struct definitions *definitions, struct slice namespace, struct slice name,
                            struct arena *arena, struct err *err)
{
    const struct definition_row *row = definitions_row(definitions, DEFINITION_SAGA, namespace, name, 0);
    struct slice why = row ? json_string(json_member(row->body, "retired"), arena) : SLICE_NONE;

    if (!why.ptr) {
        return true;
    }
    (void)err_set(err, ERR_CONFLICT, "the definition %.*s is retired: %.*s", SLICE_ARG(name),
                  (int)(why.len < 160 ? why.len : 160), why.ptr);
    err_hint(err, "what runs goes on; a version without `retired` may be started again");
    return false;
}

static int compare_rows(const void *a, const void *b)
{
    const struct definition_row *const *x = a, *const *y = b;

    return slice_compare((*x)->name, (*y)->name);
}

const struct definition_row **definitions_list(const struct definitions *definitions, enum definition_kind kind,
                                               struct slice namespace, struct arena *arena, size_t *count)
{
    const struct definition_row **rows = arena_array(arena, definitions->newest.count + 1, sizeof(*rows));
    size_t position = 0;
    void *value;

    *count = 0;
    while (map_next(&definitions->newest, &position, &value)) {
        const struct registered *r = value;

        if (r->row.kind == kind && slice_equal(r->row.namespace, namespace)) {
            rows[(*count)++] = &r->row;
        }
    }
    qsort(rows, *count, sizeof(*rows), compare_rows);
    return rows;
}

/* --- what agents are offered --- */

static struct offered *offered_list(const struct definitions *definitions, struct slice namespace, struct arena *arena,
                                    size_t *count)
{
    struct offered *list = arena_array(arena, definitions->newest.count + 1, sizeof(*list));
    size_t position = 0;
    void *value;

    *count = 0;
    while (map_next(&definitions->newest, &position, &value)) {
        const struct definition_row *row = &((const struct registered *)value)->row;

        if (slice_equal(row->namespace, namespace)) {
            list[(*count)++] = (struct offered){row->kind, row->name, row->body};
        }
    }
    return list;
}

const struct offers *definitions_offers(struct definitions *definitions, struct slice namespace)
{
    struct offers_of *of = map_find(&definitions->offers, namespace.ptr, namespace.len);
    struct offered *list;
    struct arena scratch;
    size_t count;

    if (of) {
        return &of->offers;
    }
    arena_init(&scratch, 4096);
    of = memory_alloc(sizeof(*of));
    list = offered_list(definitions, namespace, &scratch, &count);
    offers_build(list, count, &of->offers);
    arena_fini(&scratch);
    of->namespace = arena_slice(&of->offers.arena, namespace);
    map_put(&definitions->offers, of->namespace.ptr, of->namespace.len, of);
    return &of->offers;
}

void definitions_check_offers(const struct definitions *definitions, struct slice namespace,
                              const struct document *document, struct arena *arena, struct faults *faults)
{
    struct offered *fresh = arena_array(arena, document->item_count + 1, sizeof(*fresh));
    struct slice *pointers = arena_array(arena, document->item_count + 1, sizeof(*pointers));
    size_t fresh_count = 0, count;
    const struct offered *registered = offered_list(definitions, namespace, arena, &count);

    for (size_t i = 0; i < document->item_count; i++) {
        const struct document_item *item = &document->items[i];

        if (item->name.len > 0 && json_type(item->body) == JSON_OBJECT) {
            pointers[fresh_count] = item->pointer;
            fresh[fresh_count++] = (struct offered){item->kind, item->name, item->body};
        }
    }
    offers_check(fresh, pointers, fresh_count, registered, count, arena, faults);
}

static bool find_row(const struct definitions_source *source, enum definition_kind kind, struct slice pins,
                     struct slice name, uint32_t version, struct slice *body, uint32_t *version_found)
{
    if (version == 0 && pins.ptr) {
        char text[160];
        int64_t pinned;

        if (name.len >= sizeof(text)) {
            return false;
        }
        memcpy(text, name.ptr, name.len);
        text[name.len] = '\0';
        if (!json_i64(json_member(pins, text), &pinned) || pinned <= 0) {
            return false;
        }
        version = (uint32_t)pinned;
    }
    const struct definition_row *row = definitions_row(source->definitions, kind, source->namespace, name, version);

    if (!row) {
        return false;
    }
    *body = row->body;
    *version_found = row->version;
    return true;
}

static bool source_find(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found)
{
    const struct definitions_source *source = context;

    return find_row(source, DEFINITION_TOOL, source->tools, name, version, body, version_found);
}

static bool source_find_saga(void *context, struct slice name, uint32_t version, struct slice *body,
                             uint32_t *version_found)
{
    const struct definitions_source *source = context;

    return find_row(source, DEFINITION_SAGA, source->sagas, name, version, body, version_found);
}

static enum reading source_reading(void *context, enum definition_kind kind, struct slice name, uint32_t version)
{
    const struct definitions_source *source = context;

    return definitions_row(source->definitions, kind, source->namespace, name, version)
        ->reading; /* it was found a moment ago */
}

static bool source_has_body(void *context, enum definition_kind kind, struct slice name, const struct digest *identity)
{
    const struct definitions_source *source = context;
    const struct definition_row *row = definitions_row(source->definitions, kind, source->namespace, name, 0);

    return row && digest_equal(&row->identity, identity);
}

void definitions_source_init(struct definitions_source *source, struct definitions *definitions, struct slice namespace,
                             struct slice tools, struct slice sagas)
{
    source->source = (struct tool_source){.find = source_find,
                                          .context = source,
                                          .find_saga = source_find_saga,
                                          .reading = source_reading,
                                          .has_body = source_has_body};
    source->definitions = definitions;
    source->namespace = namespace;
    source->tools = tools;
    source->sagas = sagas;
}

static void write_pin(struct json_writer *w, struct slice name, uint32_t version)
{
    char text[160];

    (void)snprintf(text, sizeof(text), "%.*s", SLICE_ARG(name)); /* at most 128 bytes by definition */
    json_write_i64(w, text, version);
}

/* Writes the tools with their versions, and `version` for the tool with this name. */
static void write_tools(const struct definition *definition, struct slice tool, uint32_t version, struct buffer *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    for (uint32_t i = 0; i < definition->tool_count; i++) {
        const struct tool *pinned = definition->tools[i];

        write_pin(&w, pinned->name, slice_equal(pinned->name, tool) ? version : pinned->version);
    }
    json_object_end(&w);
}

static const struct tool *tool_of_a_step(const struct definition *definition, struct slice name)
{
    for (uint32_t i = 0; i < definition->step_count; i++) {
        const struct step_definition *step = &definition->steps[i];

        if (step->tool && slice_equal(step->tool->name, name)) {
            return step->tool;
        }
        if (step->compensate.is_set && slice_equal(step->compensate.tool->name, name)) {
            return step->compensate.tool;
        }
    }
    return NULL;
}

const struct tool *definitions_find_tool(struct definitions *definitions, struct slice namespace, struct slice name)
{
    const struct tool *tool = definitions_row(definitions, DEFINITION_TOOL, namespace, name, 0)
                                  ? definitions_tool(definitions, namespace, name, 0, NULL)
                                  : NULL;

    for (size_t i = 1; i < name.len && !tool; i++) {
        const struct definition *definition =
            name.ptr[i] == '.' ? definitions_newest(definitions, namespace, (struct slice){name.ptr, i}, 0, NULL)
                               : NULL;

        tool = definition ? tool_of_a_step(definition, name) : NULL;
    }
    return tool;
}

/* Writes the pinned tools of a compiled definition as JSON {name: version}. */
static void definition_write_tools(const struct definition *definition, struct buffer *out)
{
    write_tools(definition, SLICE_NONE, 0, out);
}

void definition_write_children(const struct definition *definition, struct buffer *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    for (uint32_t i = 0; i < definition->child_count; i++) {
        write_pin(&w, definition->children[i]->name, definition->children[i]->version);
    }
    json_object_end(&w);
}

static const struct definition *compile(struct definitions *definitions, struct slice namespace, struct slice name,
                                        uint32_t version, struct slice tools, struct slice sagas, struct err *err)
{
    const struct definition_row *row = definitions_row(definitions, DEFINITION_SAGA, namespace, name, version);

    if (!row) {
        (void)err_set(err, ERR_NOT_FOUND, "there is no saga definition \"%.*s\"", SLICE_ARG(name));
        if (version) {
            err_detail(err, "version %u is not registered", version);
        }
        err_hint(err, "`sagactl definitions` lists what is registered; `sagactl apply FILE` registers more");
        return NULL;
    }
    struct definitions_source source;
    struct faults faults;

    /* Compiles apart first. A definition that does not compile is asked for again and again, and leaves nothing
     * behind. */
    struct arena trial;

    arena_init(&trial, 16384);
    definitions_source_init(&source, definitions, namespace, tools, sagas);
    faults_init(&faults, &trial);
    const struct definition *definition =
        definition_compile_as(row->reading, row->body, row->version, &source.source, SLICE(""), &trial, &faults);

    if (definition) {
        faults_init(&faults, &definitions->arena);
        struct definition *kept = definition_compile_as(row->reading, row->body, row->version, &source.source,
                                                        SLICE(""), &definitions->arena, &faults);

        kept->shelf = &definitions->shelf; /* it compiled a moment ago */
        definition = kept;
        for (uint32_t i = 0; definition && i < definition->tool_count; i++) {
            guard_tool(definitions, namespace, (struct tool *)definition->tools[i]); /* ours, made a moment ago */
        }
    }

    if (!definition) {
        (void)err_set(
            err, ERR_INVALID,
            "the saga definition \"%.*s\" version %u does not compile with the tools and sagas as registered now",
            SLICE_ARG(name), row->version);
        if (faults.count > 0) {
            err_detail(err, "%.*s: %.*s", SLICE_ARG(faults.items[0].pointer), SLICE_ARG(faults.items[0].detail));
        }
        err_hint(err, "apply a version of the tool or child that the saga can use, or a new version of the saga");
    }
    arena_fini(&trial);
    return definition;
}

static const struct definition *remember(struct definitions *definitions, struct map *map, struct slice key,
                                         const struct definition *definition)
{
    struct compiled *compiled = arena_alloc(&definitions->arena, sizeof(*compiled));

    compiled->key = key;
    compiled->definition = definition;
    map_put(map, compiled->key.ptr, compiled->key.len, compiled);
    return definition;
}

const struct tool *definitions_tool(struct definitions *definitions, struct slice namespace, struct slice name,
                                    uint32_t version, struct err *err)
{
    const struct definition_row *row = definitions_row(definitions, DEFINITION_TOOL, namespace, name, version);

    if (!row) {
        (void)err_set(err, ERR_NOT_FOUND, "there is no tool \"%.*s\"", SLICE_ARG(name));
        if (version) {
            err_detail(err, "version %u is not registered", version);
        }
        err_hint(err, "a tool is registered before it is called: `sagactl tools` lists what is there, `sagactl apply "
                      "FILE` registers more");
        return NULL;
    }
    struct slice key = compiled_key(definitions, namespace, name, row->version, SLICE_NONE, SLICE_NONE);
    const struct compiled_tool *found = map_find(&definitions->tools, key.ptr, key.len);

    if (found) {
        return found->tool;
    }
    struct faults faults;
    struct arena trial; /* apart first, like a saga: a tool that does not compile leaves nothing behind */

    arena_init(&trial, 16384);
    faults_init(&faults, &trial);
    const struct tool *tool = tool_compile_as(row->reading, row->body, row->version, SLICE(""), &trial, &faults);

    if (tool && faults.count == 0) {
        struct faults none;

        faults_init(&none, &definitions->arena);
        struct tool *kept =
            tool_compile_as(row->reading, row->body, row->version, SLICE(""), &definitions->arena, &none);

        guard_tool(definitions, namespace, kept);
        tool = kept;
    } else {
        tool = NULL;
        (void)err_set(err, ERR_INVALID, "the tool \"%.*s\" version %u does not compile", SLICE_ARG(name), row->version);
        if (faults.count > 0) {
            err_detail(err, "%.*s: %.*s", SLICE_ARG(faults.items[0].pointer), SLICE_ARG(faults.items[0].detail));
        }
        err_hint(err, "apply a version of the tool that this release can use");
    }
    arena_fini(&trial);
    if (!tool) {
        return NULL;
    }
    struct compiled_tool *compiled = arena_alloc(&definitions->arena, sizeof(*compiled));

    compiled->key = arena_slice(&definitions->arena,
                                compiled_key(definitions, namespace, name, row->version, SLICE_NONE, SLICE_NONE));
    compiled->tool = tool;
    map_put(&definitions->tools, compiled->key.ptr, compiled->key.len, compiled);
    return tool;
}

const struct definition *definitions_open(struct definitions *definitions, enum saga_kind kind)
{
    const struct definition **known = kind == SAGA_RUN ? &definitions->run : &definitions->open;

    if (!*known) {
        *known = definition_open(kind, &definitions->shelf, &definitions->arena);
    }
    return *known;
}

static const struct definition *open_by_name(struct definitions *definitions, struct slice name)
{
    return slice_is(name, OPEN_SAGA_NAME)  ? definitions_open(definitions, SAGA_OPEN)
           : slice_is(name, RUN_SAGA_NAME) ? definitions_open(definitions, SAGA_RUN)
                                           : NULL;
}

/* Without children there is nothing to pin, so absent and {} are the same. */
static struct slice pins_of(struct slice sagas)
{
    return sagas.ptr && json_count(sagas) > 0 ? sagas : SLICE("{}");
}

const struct definition *definitions_pinned(struct definitions *definitions, struct slice namespace, struct slice name,
                                            uint32_t version, struct slice tools, struct slice sagas, struct err *err)
{
    const struct definition *open = open_by_name(definitions, name);

    if (open) {
        return open;
    }
    sagas = pins_of(sagas);
    struct slice key = compiled_key(definitions, namespace, name, version, tools, sagas);
    const struct compiled *found = map_find(&definitions->pinned, key.ptr, key.len);

    if (found) {
        return found->definition;
    }
    const struct definition *definition = compile(definitions, namespace, name, version, tools, sagas, err);

    key = compiled_key(definitions, namespace, name, version, tools, sagas); /* the buffer was used meanwhile */
    return definition ? remember(definitions, &definitions->pinned, arena_slice(&definitions->arena, key), definition)
                      : NULL;
}

/* Returns a known definition with the same pins, from a saga that was loaded, or remembers this one. */
static const struct definition *known_or_remember(struct definitions *definitions, struct slice namespace,
                                                  struct slice name, const struct definition *definition)
{
    struct buffer tools, sagas;

    buffer_init(&tools, 1 << 20);
    buffer_init(&sagas, 1 << 20);
    definition_write_tools(definition, &tools);
    definition_write_children(definition, &sagas);
    struct slice key = compiled_key(definitions, namespace, name, definition->version, buffer_slice(&tools),
                                    pins_of(buffer_slice(&sagas)));
    const struct compiled *pinned = map_find(&definitions->pinned, key.ptr, key.len);

    if (pinned) {
        definition = pinned->definition;
    } else {
        (void)remember(definitions, &definitions->pinned, arena_slice(&definitions->arena, key), definition);
    }
    buffer_fini(&tools);
    buffer_fini(&sagas);
    return definition;
}

const struct definition *definitions_newest(struct definitions *definitions, struct slice namespace, struct slice name,
                                            uint32_t version, struct err *err)
{
    const struct definition *open = open_by_name(definitions, name);

    if (open) {
        return open;
    }
    struct slice key = compiled_key(definitions, namespace, name, version, SLICE_NONE, SLICE_NONE);
    const struct compiled *found = map_find(&definitions->current, key.ptr, key.len);

    if (found) {
        return found->definition;
    }
    const struct definition *definition = compile(definitions, namespace, name, version, SLICE_NONE, SLICE_NONE, err);

    if (!definition) {
        return NULL;
    }
    definition = known_or_remember(definitions, namespace, name, definition);
    key = compiled_key(definitions, namespace, name, version, SLICE_NONE, SLICE_NONE);
    return remember(definitions, &definitions->current, arena_slice(&definitions->arena, key), definition);
}

static const struct definition *shelf_mend(const struct tool_shelf *shelf, struct slice namespace,
                                           const struct definition *definition, struct slice tool, uint32_t version,
                                           struct err *err)
{
    struct definitions *definitions = container_of((struct tool_shelf *)shelf, struct definitions, shelf);
    struct buffer tools, sagas;
    const struct definition *mended;

    if (!definitions_row(definitions, DEFINITION_TOOL, namespace, tool, version)) {
        (void)err_set(err, ERR_NOT_FOUND, "version %u of the tool %.*s is not registered", version, SLICE_ARG(tool));
        err_hint(err, "`sagactl tools` lists what is registered; `sagactl apply FILE` registers more");
        return NULL;
    }
    buffer_init(&tools, 1 << 20);
    buffer_init(&sagas, 1 << 20);
    write_tools(definition, tool, version, &tools);
    definition_write_children(definition, &sagas);
    mended = definitions_pinned(definitions, namespace, definition->name, definition->version, buffer_slice(&tools),
                                buffer_slice(&sagas), err);
    buffer_fini(&tools);
    buffer_fini(&sagas);
    if (!mended && err) {
        (void)err_context(err, "version %u of the tool %.*s", version, SLICE_ARG(tool));
        err->code = ERR_CONFLICT; /* the version exists, but cannot replace the one before */
    }
    return mended;
}
