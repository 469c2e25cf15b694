/* The list of sagas: which ones, and a page of them. What the tables do not know is read off the sagas themselves. */
#include "base/json.h"
#include "core/show/waits.h"
#include "run/query/filter.h"
#include "run/query/saga_answer.h"
#include "run/saga/live.h"
#include "store/business.h"

#define LIMIT_DEFAULT 50

/* --- a page from the tables --- */

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

/* Not all was looked at, and how many were is counted now. */
struct cut {
    struct work *work;
    struct count_looked looked;
};

static void on_looked(struct store_read *read)
{
    struct cut *cut = read->context;
    struct work *work = cut->work;
    struct saga_id edge = {cut->looked.list->edge};

    if (work_read_failed(work, read)) {
        return;
    }
    cursor_after_saga(work, edge);
    work_looked(work, uuid_v7_ms(&edge.uuid), cut->looked.count);
    work_done(work, ERR_OK, NULL);
}

static void count_looked(struct work *work)
{
    struct cut *cut = arena_alloc(&work->arena, sizeof(*cut));

    cut->work = work;
    cut->looked = (struct count_looked){.read = {.arena = &work->arena, .done = on_looked, .context = cut},
                                        .list = &work->store.sagas};
    store_count_looked(work->engine->store, &cut->looked);
}

/* A group for each status that any of them has, as other lists write their groups. */
static void put_counts(struct work *work, const int64_t *counts)
{
    struct json_writer w;
    bool is_first = true;

    for (size_t i = 0; i < SAGA_STATUS_COUNT; i++) {
        if (counts[i] > 0) {
            buffer_put_text(&work->out, is_first ? "" : ",");
            is_first = false;
            json_writer_init(&w, &work->out);
            json_object_begin(&w, NULL);
            json_object_begin(&w, "group");
            json_write_text(&w, "status", saga_status_name((enum saga_status)i));
            json_object_end(&w);
            json_write_i64(&w, "count", counts[i]);
            json_object_end(&w);
        }
    }
}

static void on_sum(struct store_read *read)
{
    struct work *work = read->context;
    const struct sum_sagas *sum = container_of(read, struct sum_sagas, read);

    if (work_read_failed(work, read)) {
        return;
    }
    buffer_put_char(&work->out, '[');
    put_counts(work, sum->counts);
    buffer_put_char(&work->out, ']');
    if (sum->list->has_edge) {
        count_looked(work);
    } else {
        work_done(work, ERR_OK, NULL);
    }
}

static void sum_sagas(struct work *work, struct list_sagas *list)
{
    struct sum_sagas *sum = arena_alloc(&work->arena, sizeof(*sum));

    *sum = (struct sum_sagas){.read = {.arena = &work->arena, .done = on_sum, .context = work}, .list = list};
    store_sum_sagas(work->engine->store, sum);
}

static void on_sagas(struct store_read *read)
{
    struct work *work = read->context;
    const struct list_sagas *list = &work->store.sagas;
    size_t limit = list->limit - 1;

    if (work_read_failed(work, read)) {
        return;
    }
    buffer_put_char(&work->out, '[');
    for (size_t i = 0; i < list->count && i < limit; i++) {
        /* What was asked for by its status is shown as it was found, even if it has moved on by a turn meanwhile. */
        put_saga(work, &list->rows[i],
                 list->statuses ? NULL : walk_live(work->engine, list->rows[i].id, work->namespace));
    }
    buffer_put_char(&work->out, ']');
    if (list->has_edge) {
        count_looked(work);
        return;
    }
    if (list->count > limit) {
        cursor_after_saga(work, list->rows[limit - 1].id);
    }
    work_done(work, ERR_OK, NULL);
}

/* --- `step`, `error` and `waits_for` are in no table: the sagas are looked at one by one --- */

struct saga_filter {
    bool by_status; /* counted instead of shown */
    int64_t counts[SAGA_STATUS_COUNT];
    const struct slice *steps, *errors;
    size_t step_count, error_count;
    uint32_t waits; /* a bit for each enum saga_wait */
    size_t limit;
    struct guard_list guards; /* with SAGA_WAIT_BREAKER: the breakers as they were when the list began */
};

static bool step_has_error(const struct step *step, const struct saga_filter *filter)
{
    struct slice own = step->forward.error, undo = step_undo(step)->error;

    return filter->error_count == 0 || (own.ptr && filter_has(filter->errors, filter->error_count, own)) ||
           (undo.ptr && filter_has(filter->errors, filter->error_count, undo));
}

static bool has_step(const struct saga_filter *filter, const struct saga *saga)
{
    if (filter->step_count == 0 && filter->error_count > 0 && saga->failing_reason.ptr &&
        filter_has(filter->errors, filter->error_count, saga->failing_reason)) {
        return true;
    }
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (filter->step_count > 0 && (!filter_has(filter->steps, filter->step_count, saga->definition->steps[i].id) ||
                                       saga_step_status(saga, i) == STEP_PENDING)) {
            continue;
        }
        if (step_has_error(&saga->steps[i], filter)) {
            return true;
        }
    }
    return filter->step_count + filter->error_count == 0;
}

static bool waits_so(struct walk *walk, const struct saga_filter *filter, const struct saga *saga)
{
    struct engine *engine = walk->work->engine;
    const struct live *live = live_shown(engine, saga->id);

    return !filter->waits || (saga_waits(saga) & filter->waits) ||
           (filter->waits & BIT(SAGA_WAIT_BREAKER) &&
            saga_waits_at_breaker(saga, live && &live->saga == saga ? live : NULL, &filter->guards,
                                  loop_wall_ms(engine->loop), &walk->arena));
}

static bool visit_saga(struct walk *walk, const struct saga_row *row, const struct saga *saga)
{
    struct saga_filter *filter = walk->context;

    if (!has_step(filter, saga) || !waits_so(walk, filter, saga)) {
        return true;
    }
    if (filter->by_status) {
        filter->counts[walk->page.statuses ? row->status : saga_status(saga)]++;
        return true;
    }
    if (walk->work->found == filter->limit) {
        return false;
    }
    put_saga(walk->work, row, walk->page.statuses ? NULL : saga);
    return true;
}

static void sagas_end(struct walk *walk, bool more)
{
    struct work *work = walk->work;
    const struct saga_filter *filter = walk->context;

    if (filter->by_status) {
        put_counts(work, filter->counts);
    }
    if (more && !uuid_is_nil(&walk->last.uuid)) {
        cursor_after_saga(work, walk->last);
    }
    buffer_put_char(&work->out, ']');
    work_done(work, ERR_OK, NULL);
}

static void on_guards(struct store_read *read)
{
    struct walk *walk = read->context;

    if (read->code != ERR_OK) {
        work_done(walk->work, read->code, &read->err);
    } else {
        walk_all(walk);
    }
}

static void walk_sagas(struct work *work, const struct saga_filter *wanted, const struct list_sagas *list)
{
    struct walk *walk = walk_new(work);
    struct saga_filter *filter = arena_dup(&work->arena, wanted, sizeof(*wanted));

    walk->context = filter;
    walk->visit = visit_saga;
    walk->done = sagas_end;
    walk->page = *list;
    buffer_put_char(&work->out, '[');
    if (filter->waits & BIT(SAGA_WAIT_BREAKER)) { /* no log tells of breakers */
        filter->guards = (struct guard_list){.read = {.arena = &work->arena, .done = on_guards, .context = walk},
                                             .namespace = work->namespace};
        store_guard_list(work->engine->store, &filter->guards);
    } else {
        walk_all(walk);
    }
}

/* --- which ones --- */

/* None: any. */
static const struct slice *values_of(struct work *work, struct slice text, size_t *count)
{
    return filter_split(work, text.len ? text : SLICE_NONE, count);
}

static void place_business_id(struct work *work, struct slice business_id, struct list_sagas *list)
{
    static const struct slice no_definitions[] = {
        {OPEN_SAGA_NAME, sizeof(OPEN_SAGA_NAME) - 1},
        {RUN_SAGA_NAME, sizeof(RUN_SAGA_NAME) - 1}}; /* the names of sagas, too */
    size_t known_count = 0, count = list->name_count;
    const struct definition_row **known =
        definitions_list(work->engine->definitions, DEFINITION_SAGA, work->namespace, &work->arena, &known_count);
    struct business_place *places =
        arena_array(&work->arena, count + known_count + COUNT_OF(no_definitions), sizeof(*places));

    list->has_business_id = true;
    if (list->name_count == 0) {
        count = known_count + COUNT_OF(no_definitions);
    }
    for (size_t i = 0; i < count; i++) {
        struct slice name = list->name_count > 0 ? list->names[i]
                            : i < known_count    ? known[i]->name
                                                 : no_definitions[i - known_count];

        places[i].digest = business_digest(work->namespace, name, business_id);
        places[i].shard = digest_shard(&places[i].digest);
    }
    list->places = places;
    list->place_count = count;
}

static bool read_statuses(struct work *work, struct slice text, uint32_t *out)
{
    size_t count = 0;
    const struct slice *names = filter_split(work, text, &count);

    for (size_t i = 0; i < count; i++) {
        enum saga_status status;

        if (!saga_status_parse(names[i], &status)) {
            work_fail(work, ERR_MALFORMED, "this is not a status of sagas",
                      "they are running, waiting, paused, compensating, escalated, completed, compensated, abandoned");
            return false;
        }
        *out |= BIT(status);
    }
    return true;
}

static bool read_waits(struct work *work, struct slice text, struct saga_filter *filter, struct list_sagas *list)
{
    size_t count = 0;
    const struct slice *names = filter_split(work, text, &count);

    for (size_t i = 0; i < count; i++) {
        enum saga_wait wait;

        if (!saga_wait_parse(names[i], &wait)) {
            work_fail(work, ERR_MALFORMED, "this is nothing that sagas wait for",
                      "they wait for: retry, probe, hold, person, approval, signal, time, lock, breaker");
            return false;
        }
        filter->waits |= BIT(wait);
    }
    if (count > 0 && !list->statuses) { /* nothing that has ended waits */
        list->statuses = BIT(SAGA_STATUS_COUNT) - 1;
        list->statuses &= ~(BIT(SAGA_COMPLETED) | BIT(SAGA_COMPENSATED) | BIT(SAGA_ABANDONED));
    }
    return true;
}

static bool read_versions(struct work *work, struct slice text, struct list_sagas *list)
{
    size_t count = 0;
    const struct slice *texts = values_of(work, text, &count);
    int64_t *versions = arena_array(&work->arena, count + 1, sizeof(*versions));

    for (size_t i = 0; i < count; i++) {
        if (!slice_to_i64(texts[i], &versions[i]) || versions[i] < 1) {
            work_fail(work, ERR_MALFORMED, "this is not a version of a definition",
                      "versions are whole numbers from 1 on, with commas between several");
            return false;
        }
    }
    list->versions = versions;
    list->version_count = count;
    return true;
}

static bool read_place(struct work *work, const struct engine_sagas *wanted, struct list_sagas *list)
{
    if (wanted->id.len) {
        list->has_ids = true;
        if (!uuid_range_parse(wanted->id, &list->first_id, &list->last_id)) {
            work_fail(work, ERR_MALFORMED, "this is not the beginning of an id",
                      "give at least 8 characters of the id, as it is shown");
            return false;
        }
    }
    if (wanted->cursor.len && (!uuid_parse(wanted->cursor, &list->before) || uuid_is_nil(&list->before))) {
        work_bad_cursor(work);
        return false;
    }
    return true;
}

bool work_read_sagas(struct work *work, const struct engine_sagas *wanted, struct list_sagas *list)
{
    *list =
        (struct list_sagas){.namespace = work->namespace, .since_ms = wanted->since_ms, .until_ms = wanted->until_ms};
    list->names = values_of(work, wanted->saga, &list->name_count);
    list->without_runs = list->name_count == 0 && wanted->id.len == 0;
    list->business_prefix = arena_slice(&work->arena, wanted->business_prefix);
    if (!read_statuses(work, wanted->status, &list->statuses) || !read_place(work, wanted, list) ||
        !read_versions(work, wanted->version, list) ||
        !filter_tags(work, wanted->tags, wanted->tag_count, &list->tags, &list->tag_count)) {
        return false;
    }
    if (wanted->business_id.len) {
        place_business_id(work, wanted->business_id, list);
    }
    return true;
}

/* False: as above. */
static bool read_filter(struct work *work, const struct engine_sagas *wanted, struct saga_filter *filter,
                        struct list_sagas *list)
{
    *filter =
        (struct saga_filter){.limit = wanted->limit ? wanted->limit : LIMIT_DEFAULT, .by_status = wanted->by_status};
    filter->steps = values_of(work, wanted->step, &filter->step_count);
    filter->errors = values_of(work, wanted->error, &filter->error_count);
    return work_read_sagas(work, wanted, list) && read_waits(work, wanted->waits_for, filter, list);
}

void engine_list_sagas(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct list_sagas *list = &work->store.sagas;
    struct saga_filter filter;

    if (work_refused(work) || !read_filter(work, &request->in.sagas, &filter, list)) {
        return;
    }
    if (filter.step_count + filter.error_count > 0 || filter.waits || (filter.by_status && list->has_business_id)) {
        walk_sagas(work, &filter, list);
        return;
    }
    if (filter.by_status) {
        sum_sagas(work, list);
        return;
    }
    list->read = (struct store_read){.arena = &work->arena, .done = on_sagas, .context = work};
    list->limit = filter.limit + 1; /* one more than is shown says whether there are more */
    store_list_sagas(engine->store, list);
}
