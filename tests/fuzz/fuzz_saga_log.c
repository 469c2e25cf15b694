/*
 * A hostile log. The first line of the input is a definition document, or {"open": BOOL, "tools": [...]} for an open
 * saga or a run. Each further line is the payload of one turn, an array of records, as in the database.
 *
 * The log is folded as run/saga/fold.c does it: each record is read, checked and applied. The check refuses records
 * that do not fit. Whatever passes must not end the process, and the views, wants and sentences of the saga must be
 * well-formed.
 */
#include "core/saga/saga.h"
#include "tests/fuzz/definition_source.h"

#define KEPT 8
#define TOOLS_MAX 32
#define BEGIN_MS INT64_C(1700000000000)

struct subject { /* a compiled definition, kept because most mutations change only the log */
    struct tool_shelf shelf;
    struct arena arena;
    struct slice text;
    const struct definition *definition; /* NULL when it does not compile */
    const struct tool *tools[TOOLS_MAX];
    size_t tool_count;
};

static const struct tool *shelf_find(const struct tool_shelf *shelf, struct slice namespace, struct slice name,
                                     uint32_t version)
{
    const struct subject *subject = (const struct subject *)(const void *)shelf;

    (void)namespace;
    for (size_t i = 0; version <= 1 && i < subject->tool_count; i++) {
        if (slice_equal(subject->tools[i]->name, name)) {
            return subject->tools[i];
        }
    }
    return NULL;
}

/* The text of the tool is the same, whatever version a log names. */
static const struct definition *shelf_mend(const struct tool_shelf *shelf, struct slice namespace,
                                           const struct definition *definition, struct slice tool, uint32_t version,
                                           struct err *err)
{
    (void)namespace;
    (void)definition;
    (void)tool;
    (void)version;
    (void)err;
    return ((const struct subject *)(const void *)shelf)->definition;
}

static const struct definition *compile_open(struct subject *self, struct faults *faults)
{
    struct json_walk walk = json_walk(json_member(self->text, "tools"));
    struct slice body;
    bool is_open = false;

    while (json_next_element(&walk, &body) && self->tool_count < TOOLS_MAX) {
        const struct tool *tool = tool_compile(body, 1, SLICE(""), &self->arena, faults);

        if (tool) {
            self->tools[self->tool_count++] = tool;
        }
    }
    self->shelf.find = shelf_find;
    (void)json_bool(json_member(self->text, "open"), &is_open);
    return definition_open(is_open ? SAGA_OPEN : SAGA_RUN, &self->shelf, &self->arena);
}

static void compile(struct subject *self)
{
    struct slice sagas = json_member(self->text, "sagas");
    struct definition_source source;
    struct faults faults;

    faults_init(&faults, &self->arena);
    if (json_member(self->text, "open").ptr) {
        self->definition = compile_open(self, &faults);
    } else if (json_type(sagas) == JSON_ARRAY && json_count(sagas) > 0) {
        struct definition *definition = definition_compile(
            json_element(sagas, json_count(sagas) - 1), 1, definition_source_init(&source, self->text, &self->arena),
            SLICE(""), &self->arena, &faults); /* the last saga; those before it may be its children */

        if (definition) {
            self->shelf.mend = shelf_mend;
            definition->shelf = &self->shelf;
            self->definition = definition;
        }
    }
}

static const struct definition *subject_of(struct slice text)
{
    static struct subject kept[KEPT];
    static size_t next;
    struct subject *self;

    for (size_t i = 0; i < KEPT; i++) {
        if (kept[i].text.ptr && slice_equal(kept[i].text, text)) {
            return kept[i].definition;
        }
    }
    self = &kept[next++ % KEPT];
    arena_fini(&self->arena);
    *self = (struct subject){0};
    arena_init(&self->arena, 16384);
    self->text = arena_slice(&self->arena, text);
    compile(self);
    return self->definition;
}

static void look_at(const struct saga *saga, struct arena *arena, struct wants *wants)
{
    static struct buffer out;

    if (out.bytes_max == 0) {
        buffer_init(&out, (size_t)1 << 26);
    }
    MUST(saga_is_sound(saga));
    *wants = (struct wants){0};
    saga_wants(saga, arena, wants);
    for (size_t i = 0; i < wants->count; i++) {
        MUST(wants->items[i].step == STEP_NONE || wants->items[i].step < saga->definition->step_count);
        MUST(i == 0 || want_compare(&wants->items[i - 1], &wants->items[i]) <= 0);
    }
    buffer_reset(&out);
    saga_write_json(saga, &out);
    MUST(!out.overflow &&
         json_check(buffer_slice(&out), &(struct json_limits){(size_t)1 << 26, 96, 1024, 400}, NULL) == ERR_OK);
    (void)saga_rests_until(saga, arena);
    (void)saga_escalation_actions(saga);
}

/* Folds a turn. Returns false when the log makes no sense from here on. */
static bool fold(struct saga *saga, struct slice payload, struct arena *arena)
{
    struct json_walk walk = json_walk(payload);
    struct slice text;

    while (json_next_element(&walk, &text)) {
        struct record record = {0};
        struct err err = {0};

        if (record_read(text, saga->definition, arena, &record, &err) != ERR_OK) {
            MUST(err.code == ERR_CORRUPT);
            return false;
        }
        record.seq = saga->seq + 1;
        record.at_ms = record.at_ms ? record.at_ms : BEGIN_MS + (int64_t)saga->seq;
        if (!record_check(saga, &record, &err)) {
            MUST(err.code == ERR_CORRUPT && err.message[0]);
            return false;
        }
        saga_apply(saga, &record);
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice log = fuzz_input(data, size), text = fuzz_line(&log);
    struct arena *arena = fuzz_arena();
    const struct definition *definition;
    struct saga_id id = {{{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 9}}};
    struct saga *saga;
    struct wants wants;
    bool good = true;

    definition = fuzz_is_json(text) ? subject_of(text) : NULL;
    if (!definition) {
        return 0;
    }
    saga = arena_alloc(arena, sizeof(*saga));
    saga_init(saga, arena, id, definition);
    while (good && log.len > 0) {
        good = fold(saga, fuzz_line(&log), arena);
    }
    if (saga->seq > 0) {
        look_at(saga, arena, &wants);
    }
    return 0;
}
