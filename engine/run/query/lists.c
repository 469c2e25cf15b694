/* Lists for people: sagas, definitions, and the counts of `GET /v1/stats`. */
#include <stdlib.h>

#include "base/json.h"
#include "run/query/health.h"
#include "run/query/walk.h"
#include "run/readiness.h"
#include "run/saga/live.h"
#include "store/guard.h"

#define LIMIT_DEFAULT 50

static size_t limit_of(size_t limit)
{
    return limit ? limit : LIMIT_DEFAULT;
}

/* --- sagas --- */

/* `live` is newer than the row; NULL: not in memory. */
static void write_saga(const struct saga_row *row, const struct saga *live, struct buffer *out)
{
    int64_t ended_ms = live ? live->ended_ms : row->ended_ms;
    char id[UUID_TEXT_BYTES];
    struct json_writer w;

    uuid_text(&row->id.uuid, id);
    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "id", id);
    json_write_slice(&w, "saga", row->saga_name);
    json_write_i64(&w, "version", row->version);
    json_write_slice(&w, "business_id", row->business_id.len ? row->business_id : SLICE_NONE);
    json_write_text(&w, "status", saga_status_name(live ? saga_status(live) : row->status));
    json_write_raw(&w, "tags", row->tags.len ? row->tags : SLICE("{}"));
    json_write_instant(&w, "created_at", row->created_ms);
    json_write_instant(&w, "updated_at", live ? live->updated_ms : row->updated_ms);
    if (ended_ms) {
        json_write_instant(&w, "ended_at", ended_ms);
    } else {
        json_write_null(&w, "ended_at");
    }
    json_object_end(&w);
}

static void put_saga(struct work *work, const struct saga_row *row, const struct saga *live)
{
    if (work->found++ > 0) {
        buffer_put_char(&work->out, ',');
    }
    write_saga(row, live, &work->out);
}

static void cursor_after_saga(struct work *work, struct saga_id last)
{
    char id[UUID_TEXT_BYTES];

    uuid_text(&last.uuid, id);
    work_next_cursor(work, slice_of(id));
}

static void on_sagas(struct store_read *read)
{
    struct work *work = read->context;
    const struct list_sagas *list = &work->store.sagas;
    size_t limit = list->limit - 1;

    if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
        return;
    }
    buffer_put_char(&work->out, '[');
    for (size_t i = 0; i < list->count && i < limit; i++) {
        /* What was asked for by its status is shown as it was found, even if it has moved on by a turn meanwhile. */
        put_saga(work, &list->rows[i],
                 list->has_status ? NULL : walk_live(work->engine, list->rows[i].id, work->namespace));
    }
    buffer_put_char(&work->out, ']');
    if (list->count > limit) {
        cursor_after_saga(work, list->rows[limit - 1].id);
    }
    work_done(work, ERR_OK, NULL);
}

/* `step` and `error` are in no table: the sagas are looked at one by one. */
struct saga_filter {
    struct slice step, error;
    size_t limit;
};

static bool step_has_error(const struct step *step, struct slice error)
{
    return slice_equal(step->forward.error, error) || slice_equal(step_undo(step)->error, error);
}

static bool filter_matches(const struct saga_filter *filter, const struct saga *saga)
{
    if (!filter->step.len && slice_equal(saga->failing_reason, filter->error)) {
        return true;
    }
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (filter->step.len &&
            (!slice_equal(saga->definition->steps[i].id, filter->step) || saga_step_status(saga, i) == STEP_PENDING)) {
            continue;
        }
        if (!filter->error.len || step_has_error(&saga->steps[i], filter->error)) {
            return true;
        }
    }
    return false;
}

static bool visit_saga(struct walk *walk, const struct saga_row *row, const struct saga *saga)
{
    const struct saga_filter *filter = walk->context;

    if (!filter_matches(filter, saga)) {
        return true;
    }
    if (walk->work->found == filter->limit) {
        return false;
    }
    put_saga(walk->work, row, walk->page.has_status ? NULL : saga);
    return true;
}

static void sagas_end(struct walk *walk, bool more)
{
    struct work *work = walk->work;

    if (more && !uuid_is_nil(&walk->last.uuid)) {
        cursor_after_saga(work, walk->last);
    }
    buffer_put_char(&work->out, ']');
    work_done(work, ERR_OK, NULL);
}

static struct list_sagas table_filter(struct work *work)
{
    const struct engine_request *request = work->request;
    struct arena *arena = &work->arena;

    return (struct list_sagas){
        .namespace = work->namespace,
        .saga_name = arena_slice(arena, request->in.sagas.saga),
        /* Calls outside any saga: shown to who asks for them by their name, and where a person has to do something
           about one. */
        .without_runs = request->in.sagas.saga.len == 0 && request->in.sagas.id.len == 0 &&
                        !slice_is(request->in.sagas.status, "paused") &&
                        !slice_is(request->in.sagas.status, "escalated"),
        .business_id = arena_slice(arena, request->in.sagas.business_id),
        .tag_name = arena_slice(arena, request->in.sagas.tag_name),
        .tag_value = arena_slice(arena, request->in.sagas.tag_value),
        .since_ms = request->in.sagas.since_ms,
        .until_ms = request->in.sagas.until_ms,
    };
}

static void walk_sagas(struct work *work, const struct list_sagas *list, size_t limit)
{
    struct saga_filter *filter = arena_alloc(&work->arena, sizeof(*filter));
    struct walk *walk = walk_new(work);

    filter->step = arena_slice(&work->arena, work->request->in.sagas.step);
    filter->error = arena_slice(&work->arena, work->request->in.sagas.error);
    filter->limit = limit;
    walk->context = filter;
    walk->visit = visit_saga;
    walk->done = sagas_end;
    walk->page = *list;
    buffer_put_char(&work->out, '[');
    walk_all(walk);
}

void engine_list_sagas(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    size_t limit = limit_of(request->in.sagas.limit);

    if (work_refused(work)) {
        return;
    }
    struct list_sagas list = table_filter(work);

    if (request->in.sagas.status.len) {
        list.has_status = true;
        if (!saga_status_parse(request->in.sagas.status, &list.status)) {
            work_fail(work, ERR_MALFORMED, "this is not a status of sagas",
                      "they are running, waiting, paused, compensating, escalated, completed, compensated, abandoned");
            return;
        }
    }
    if (request->in.sagas.id.len) {
        list.has_ids = true;
        if (!uuid_range_parse(request->in.sagas.id, &list.first_id, &list.last_id)) {
            work_fail(work, ERR_MALFORMED, "this is not the beginning of an id",
                      "give at least 8 characters of the id, as it is shown");
            return;
        }
    }
    if (request->in.sagas.cursor.len &&
        (!uuid_parse(request->in.sagas.cursor, &list.before) || uuid_is_nil(&list.before))) {
        work_bad_cursor(work);
        return;
    }
    if (request->in.sagas.step.len || request->in.sagas.error.len) {
        walk_sagas(work, &list, limit);
        return;
    }
    work->store.sagas = list;
    work->store.sagas.read = (struct store_read){.arena = &work->arena, .done = on_sagas, .context = work};
    work->store.sagas.limit = limit + 1; /* one more than is shown says whether there are more */
    store_list_sagas(engine->store, &work->store.sagas);
}

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

/* Not closed: more may follow. */
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
    return 0; /* versions without one are left out */
}

/* Which versions have work left, so that one can see when an old one is over with. */
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

/* `count` is NULL for tools: what runs is a saga. */
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

/* What bounds the tools of a namespace now, as all engines share it. */
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

/* What people want to know of the day, within a second or so: where more than a quarter of a million sagas start in a
 * day the counts begin later. */
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

    if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
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

    if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
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
