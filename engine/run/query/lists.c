/* Lists for people: definitions, and the counts of `GET /v1/stats`. */
#include <stdlib.h>

#include "base/json.h"
#include "run/query/health.h"
#include "run/query/walk.h"
#include "run/readiness.h"
#include "store/guard.h"

/* --- definitions --- */

static const char *kind_name(enum definition_kind kind)
{
    switch (kind) {
    case DEFINITION_TOOL:
        return "tool";
    case DEFINITION_SAGA:
        return "saga";
    }
    UNREACHABLE();
}

/* Begins a definition, which stays open for more members. */
static void begin_definition(struct json_writer *w, const struct definition_row *row)
{
    char identity[65];

    digest_hex(&row->identity, identity);
    json_object_begin(w, NULL);
    json_write_text(w, "kind", kind_name(row->kind));
    json_write_slice(w, "name", row->name);
    json_write_i64(w, "version", row->version);
    json_write_i64(w, "reading", row->reading);
    json_write_text(w, "identity", identity);
    json_write_instant(w, "created_at", row->created_ms);
}

static void get_definition(struct work *work)
{
    const struct engine_request *request = work->request;
    enum definition_kind kind = request->in.definitions.kind;
    const struct definition_row *row = definitions_row(work->engine->definitions, kind, work->namespace,
                                                       request->in.definitions.name, request->in.definitions.version);
    struct json_writer w;
    struct err err = {0};

    if (row) {
        json_writer_init(&w, &work->out);
        begin_definition(&w, row);
        json_write_raw(&w, "body", row->body);
        json_object_end(&w);
        work_done(work, ERR_OK, NULL);
        return;
    }
    (void)err_set(&err, ERR_NOT_FOUND, "there is no %s \"%.*s\"", kind == DEFINITION_TOOL ? "tool" : "definition",
                  SLICE_ARG(request->in.definitions.name));
    if (request->in.definitions.version) {
        err_detail(&err, "version %u was asked for", request->in.definitions.version);
    }
    work_done(work, ERR_NOT_FOUND, &err);
}

static int64_t unfinished_of(const struct count_versions *count, const struct definition_row *row)
{
    for (size_t i = 0; i < count->count; i++) {
        if (count->rows[i].version == row->version && slice_equal(count->rows[i].name, row->name)) {
            return count->rows[i].unfinished;
        }
    }
    return 0; /* versions that are missing are left out */
}

/* Writes the versions and which of them have work left, so that people see when an old one is no longer used. */
static void write_versions(struct json_writer *w, struct work *work, const struct definition_row *newest,
                           const struct count_versions *count)
{
    json_array_begin(w, "versions");
    for (uint32_t version = newest->version; version > 0; version--) {
        const struct definition_row *row =
            definitions_row(work->engine->definitions, newest->kind, work->namespace, newest->name, version);

        if (!row) {
            continue; /* not known here yet */
        }
        json_object_begin(w, NULL);
        json_write_i64(w, "version", version);
        json_write_instant(w, "created_at", row->created_ms);
        json_write_i64(w, "unfinished", unfinished_of(count, row));
        json_object_end(w);
    }
    json_array_end(w);
}

/* Lists definitions. `count` is NULL for tools, because only sagas run. */
static void list_definitions(struct work *work, enum definition_kind kind, const struct count_versions *count)
{
    size_t row_count = 0;
    struct json_writer w;
    const struct definition_row **rows =
        definitions_list(work->engine->definitions, kind, work->namespace, &work->arena, &row_count);

    json_writer_init(&w, &work->out);
    json_array_begin(&w, NULL);
    for (size_t i = 0; i < row_count; i++) {
        begin_definition(&w, rows[i]);
        if (count) {
            write_versions(&w, work, rows[i], count);
        }
        json_object_end(&w);
    }
    json_array_end(&w);
    work_done(work, ERR_OK, NULL);
}

static void on_versions(struct store_read *read)
{
    struct work *work = read->context;

    if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
    } else {
        list_definitions(work, DEFINITION_SAGA, container_of(read, struct count_versions, read));
    }
}

void engine_get_definitions(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (work_refused(work)) {
        return;
    }
    if (request->in.definitions.name.ptr) {
        get_definition(work);
    } else if (request->in.definitions.kind == DEFINITION_TOOL) {
        list_definitions(work, DEFINITION_TOOL, NULL);
    } else {
        struct count_versions *count = arena_alloc(&work->arena, sizeof(*count));

        *count = (struct count_versions){.read = {.arena = &work->arena, .done = on_versions, .context = work},
                                         .namespace = work->namespace};
        store_count_versions(engine->store, count);
    }
}

const struct offers *engine_offers(struct engine *engine, struct slice namespace, struct err *err)
{
    if (!engine_has_database(engine) || !engine_knows_definitions(engine)) {
        engine_reason(engine, err);
        err->code = ERR_STORE;
        return NULL;
    }
    return definitions_offers(engine->definitions, namespace);
}

/* --- stats --- */

static void write_engines(struct json_writer *w, const struct engine *engine)
{
    struct buffer text;

    buffer_init(&text, 1 << 20);
    if (engine->leases) {
        leases_write_json(engine->leases, &text);
    }
    json_write_raw(w, "engines", text.len && !text.overflow ? buffer_slice(&text) : SLICE("[]"));
    buffer_fini(&text);
}

/* Writes the guards of a namespace as they are now; all engines share them. */
static void write_guards(struct json_writer *w, const struct guard_list *list)
{
    static const char *const states[] = {
        [BREAKER_CLOSED] = "closed", [BREAKER_OPEN] = "open", [BREAKER_HALF_OPEN] = "half_open"};

    json_array_begin(w, "guards");
    for (size_t i = 0; i < list->count; i++) {
        const struct guard_row *row = &list->rows[i];

        json_object_begin(w, NULL);
        json_write_slice(w, "tool", row->tool);
        json_write_slice(w, "endpoint", row->endpoint);
        json_write_text(w, "breaker", states[row->breaker_state]);
        if (row->open_until_ms) {
            json_write_instant(w, "open_until", row->open_until_ms);
        }
        if (row->opened_by.ptr) {
            json_write_raw(w, "opened_by", row->opened_by);
        }
        if (row->paused_until_ms) {
            json_write_instant(w, "paused_until", row->paused_until_ms);
        }
        json_write_i64(w, "places_taken", row->places_taken);
        json_object_end(w);
    }
    json_array_end(w);
}

/* The counts of the day that people want within a second or so. When more than a quarter of a million sagas start in a
 * day, the counts begin later. */
enum { STATS_NEWEST = (1 << 18) / SHARD_COUNT, STATS_DAY_MS = 24 * 3600 * 1000 };

struct stats {
    bool engines;
    struct count_sagas sagas;
    struct guard_list guards;
};

static void on_guards(struct store_read *read)
{
    struct work *work = read->context;
    const struct stats *stats = container_of(read, struct stats, guards.read);
    struct json_writer w;

    if (work_read_failed(work, read)) {
        return;
    }
    json_writer_init(&w, &work->out);
    json_object_begin(&w, NULL);
    json_object_begin(&w, "sagas");
    for (size_t i = 0; i < SAGA_STATUS_COUNT; i++) {
        json_write_i64(&w, saga_status_name((enum saga_status)i), stats->sagas.counts[i]);
    }
    json_object_end(&w);
    json_write_instant(&w, "ended_since", stats->sagas.since_ms);
    health_write_json(work->engine, work->namespace, &w);
    write_guards(&w, &stats->guards);
    if (stats->engines) {
        write_engines(&w, work->engine);
    }
    json_object_end(&w);
    work_done(work, ERR_OK, NULL);
}

static void on_counted(struct store_read *read)
{
    struct work *work = read->context;
    struct stats *stats = container_of(read, struct stats, sagas.read);

    if (work_read_failed(work, read)) {
        return;
    }
    stats->guards = (struct guard_list){.read = {.arena = &work->arena, .done = on_guards, .context = work},
                                        .namespace = work->namespace};
    store_guard_list(work->engine->store, &stats->guards);
}

void engine_get_stats(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (work_refused(work)) {
        return;
    }
    struct stats *stats = arena_alloc(&work->arena, sizeof(*stats));

    stats->engines = request->in.stats.engines;
    stats->sagas = (struct count_sagas){.read = {.arena = &work->arena, .done = on_counted, .context = work},
                                        .namespace = work->namespace,
                                        .newest = STATS_NEWEST,
                                        .since_ms = loop_wall_ms(engine->loop) - STATS_DAY_MS};
    store_count_sagas(engine->store, &stats->sagas);
}
