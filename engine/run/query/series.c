/*
 * Figures over time, for an overview without Prometheus: the events of each minute of a day, and of each hour of 90
 * days, by saga and by tool.
 *
 *     counters of this process -> once a minute: what came since the last write, as rows of one part -> the table
 *     the owner of shard 0     -> once a minute: minutes older than a day become hours, old hours are deleted
 *
 * A row says what was counted between two writes, and not what a counter shows. So all rows add up, and none counts
 * twice: those of several engines, of an engine that was started anew, and of a minute that came twice because a clock
 * was set back. A write that may have happened already is repeated under the same part, which adds nothing. A process
 * that dies loses what it counted since its last write: these are only figures, and the log is the truth.
 *
 * A write has at most ROWS_MAX rows, which bounds the table. When there are more sagas and tools, the others follow a
 * minute later.
 */
#include "run/query/series.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "run/query/health.h"
#include "run/query/query_room.h"
#include "run/query/saga_health.h"
#include "run/readiness.h"
#include "run/request/work.h"

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)
#define HOURS_KEPT_MS (90 * DAY_MS)
#define MINUTES_KEPT_MS (DAY_MS + HOUR_MS) /* so that a day of whole minutes is always there */
#define SLACK_MS (10 * MINUTE_MS)          /* "a day ago" by the reader's clock is still answered by the minute */
#define ROWS_MAX 500
#define ROLL_MAX 20000 /* rows in one statement */
#define PAGE_ROWS 10000
#define ANSWER_BYTES_MAX ((size_t)8 << 20)

struct told_part { /* the part of a counter that a row of the write under way has */
    uint64_t *at;
    uint64_t value;
};

struct series {
    struct engine *engine;
    struct timer timer;
    struct arena arena; /* holds the part under way */
    struct series_add add;
    struct series_row *rows;
    struct told_part *told;
    size_t told_count;
    bool adding;
    size_t tool_position, saga_position; /* where the next part begins */
    int64_t since_ms;                    /* when the counting of the next part began */
    struct series_roll roll;
    struct arena roll_arena;
    bool rolling;
    bool stopped;
};

static int64_t minute_of(int64_t ms)
{
    return ms - ms % MINUTE_MS;
}

static void on_time(struct timer *timer);

static void arm(struct series *series)
{
    struct loop *loop = series->engine->loop;

    if (!series->stopped && !timer_running(&series->timer)) {
        timer_start(loop, &series->timer, MINUTE_MS - loop_wall_ms(loop) % MINUTE_MS, on_time);
    }
}

/* --- what was counted --- */

static bool put_row(struct series *series, enum series_kind kind, struct slice namespace, struct slice name,
                    uint64_t *told, const uint64_t now[SERIES_FIGURE_COUNT])
{
    struct series_row *row = &series->rows[series->add.count];
    bool is_new = false;

    if (memcmp(told, now, SERIES_FIGURE_COUNT * sizeof(*told)) == 0) {
        return true;
    }
    if (series->add.count == ROWS_MAX) {
        return false;
    }
    *row = (struct series_row){.namespace = namespace, .name = name, .kind = kind};
    for (size_t i = 0; i < SERIES_FIGURE_COUNT; i++) {
        row->figures[i] = (int64_t)(now[i] - told[i]);
        if (now[i] != told[i]) {
            series->told[series->told_count++] = (struct told_part){&told[i], now[i]};
            is_new = true;
        }
    }
    series->add.count += is_new;
    return true;
}

static bool put_tool(struct series *series, struct tool_health *tool)
{
    uint64_t duplicates = 0;

    for (size_t i = 0; i < DUPLICATE_DECISIONS; i++) {
        duplicates += tool->duplicates[i];
    }
    const uint64_t now[SERIES_FIGURE_COUNT] = {
        [SERIES_OPERATIONS] = tool->operations, [SERIES_CALLS] = tool->calls,
        [SERIES_RETRIES] = tool->retries,       [SERIES_CALLS_COMPLETED] = tool->completed,
        [SERIES_CALLS_FAILED] = tool->failed,   [SERIES_CALLS_UNKNOWN] = tool->unknown,
        [SERIES_DUPLICATES] = duplicates};

    return put_row(series, SERIES_TOOL, tool->namespace, tool->name, tool->told, now);
}

static bool put_saga(struct series *series, struct saga_health *saga)
{
    const uint64_t now[SERIES_FIGURE_COUNT] = {[SERIES_STARTED] = saga->started,
                                               [SERIES_COMPLETED] = saga->completed,
                                               [SERIES_COMPENSATED] = saga->compensated,
                                               [SERIES_ABANDONED] = saga->abandoned,
                                               [SERIES_ESCALATED] = saga->cases_opened};

    return put_row(series, SERIES_SAGA, saga->namespace, saga->name, saga->told, now);
}

/* Collects from where the last part ended, so that everything has its turn. */
static void collect(struct series *series)
{
    struct tool_health *tool;
    struct saga_health *saga;
    bool fits = true;

    while (fits &&
           (saga = saga_health_next(series->engine->query_room->saga_healths, &series->saga_position)) != NULL) {
        fits = put_saga(series, saga);
    }
    series->saga_position = fits ? 0 : series->saga_position - 1; /* the one that did not fit comes first */
    if (!fits) {
        return;
    }
    while (fits && (tool = tool_health_next(series->engine->query_room->health, &series->tool_position)) != NULL) {
        fits = put_tool(series, tool);
    }
    series->tool_position = fits ? 0 : series->tool_position - 1;
}

/* --- writing --- */

static void on_added(struct store_read *read)
{
    struct series *series = read->context;

    series->adding = false;
    if (read->code !=
        ERR_OK) { /* the same part is written again in a minute, because nobody knows whether it is there */
        log_warn("series_not_written", LOG_ERR(&read->err));
        return;
    }
    for (size_t i = 0; i < series->told_count; i++) {
        *series->told[i].at = series->told[i].value;
    }
    series->add.count = series->told_count = 0;
    arena_reset(&series->arena);
}

static void make_part(struct series *series)
{
    int64_t now_ms = loop_wall_ms(series->engine->loop), at_ms = minute_of(series->since_ms);

    series->rows = arena_array(&series->arena, ROWS_MAX, sizeof(*series->rows));
    series->told = arena_array(&series->arena, (size_t)ROWS_MAX * SERIES_FIGURE_COUNT, sizeof(*series->told));
    collect(series);
    /* After a step of the clock, or a long time without a database, the counts belong to the minute that has just
     * ended. */
    at_ms = at_ms > now_ms || now_ms - at_ms > 2 * MINUTE_MS ? minute_of(now_ms - 1) : at_ms;
    series->since_ms = now_ms;
    series->add.part = uuid_v7(now_ms);
    series->add.at_ms = at_ms;
    series->add.rows = series->rows;
    series->add.read = (struct store_read){.arena = &series->arena, .done = on_added, .context = series};
}

static void write_part(struct series *series)
{
    struct engine *engine = series->engine;

    if (series->adding || !engine_has_database(engine)) {
        return;
    }
    if (series->add.count == 0) {
        arena_reset(&series->arena);
        make_part(series);
    }
    if (series->add.count > 0) {
        series->adding = true;
        store_series_add(engine->store, &series->add);
    }
}

static void on_rolled(struct store_read *read)
{
    struct series *series = read->context;

    series->rolling = false;
    if (read->code != ERR_OK) {
        log_warn("series_not_rolled", LOG_ERR(&read->err));
    }
    arena_reset(&series->roll_arena);
}

static void roll(struct series *series)
{
    struct engine *engine = series->engine;
    int64_t now_ms = loop_wall_ms(engine->loop);

    if (series->rolling || !engine_has_database(engine) || engine->shards[0].state != SHARD_OWNED) {
        return;
    }
    series->rolling = true;
    series->roll = (struct series_roll){.read = {.arena = &series->roll_arena, .done = on_rolled, .context = series},
                                        .minutes_before_ms = minute_of(now_ms) - MINUTES_KEPT_MS,
                                        .hours_before_ms = minute_of(now_ms) - HOURS_KEPT_MS,
                                        .limit = ROLL_MAX};
    store_series_roll(engine->store, &series->roll);
}

static void on_time(struct timer *timer)
{
    struct series *series = container_of(timer, struct series, timer);

    write_part(series);
    roll(series);
    arm(series);
}

void series_begin(struct engine *engine)
{
    struct series *series = engine->query_room->series;

    series->since_ms = series->since_ms ? series->since_ms : loop_wall_ms(series->engine->loop);
    arm(series);
}

void series_stop(struct engine *engine)
{
    struct series *series = engine->query_room->series;

    timer_stop(series->engine->loop, &series->timer);
    if (!series->stopped) {
        write_part(series);
    }
    series->stopped = true;
}

struct series *series_new(struct engine *engine)
{
    struct series *series = memory_alloc(sizeof(*series));

    series->engine = engine;
    arena_init(&series->arena, 4096);
    arena_init(&series->roll_arena, 4096);
    return series;
}

void series_free(struct series *series)
{
    arena_fini(&series->arena);
    arena_fini(&series->roll_arena);
    free(series);
}

/* --- as people read them --- */

struct asked {
    struct work *work;
    struct series_list list;
};

static const char *const figure_names[SERIES_FIGURE_COUNT] = {
#define X(id, name) [SERIES_##id] = (name),
    SERIES_FIGURES(X)
#undef X
};

static void write_row(struct json_writer *w, const struct asked *asked, const struct series_row *row)
{
    size_t first = asked->list.kind == SERIES_TOOL ? SERIES_ESCALATED + 1 : 0;
    size_t behind = asked->list.kind == SERIES_SAGA ? SERIES_ESCALATED + 1 : SERIES_FIGURE_COUNT;

    json_object_begin(w, NULL);
    json_write_instant(w, "at", row->at_ms);
    if (asked->list.kind < SERIES_KIND_COUNT) {
        json_write_slice(w, asked->list.kind == SERIES_SAGA ? "saga" : "tool", row->name);
    }
    for (size_t i = first; i < behind; i++) {
        json_write_i64(w, figure_names[i], row->figures[i]);
    }
    json_object_end(w);
}

static void on_listed(struct store_read *read)
{
    struct asked *asked = read->context;
    const struct series_list *list = &asked->list;
    struct work *work = asked->work;
    size_t count = list->count;
    struct json_writer w;

    if (work_read_failed(work, read)) {
        return;
    }
    if (count == list->limit) { /* only whole minutes; the next page begins with the incomplete one */
        int64_t last_ms = list->rows[count - 1].at_ms;

        while (count > 0 && list->rows[count - 1].at_ms == last_ms) {
            count--;
        }
        count = count ? count : list->count; /* no minute has so many names, but if one had, they would be enough */
    }
    json_writer_init(&w, &work->out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "step", list->by_hour ? "hour" : "minute");
    json_write_instant(&w, "from", list->from_ms);
    json_write_instant(&w, "to", list->until_ms);
    json_array_begin(&w, "items");
    for (size_t i = 0; i < count; i++) {
        write_row(&w, asked, &list->rows[i]);
    }
    json_array_end(&w);
    if (count < list->count) {
        json_write_instant(&w, "next_from", list->rows[count].at_ms);
    } else {
        json_write_null(&w, "next_from");
    }
    json_object_end(&w);
    work_done(work, ERR_OK, NULL);
}

void engine_get_series(struct engine *engine, struct engine_request *request)
{
    static const enum series_kind kinds[] = {
        [SERIES_BY_ALL] = SERIES_KIND_COUNT, [SERIES_BY_SAGA] = SERIES_SAGA, [SERIES_BY_TOOL] = SERIES_TOOL};
    struct work *work = work_new(engine, request);
    int64_t now_ms = loop_wall_ms(engine->loop), from_ms = request->in.series.from_ms;

    if (work_refused(work)) {
        return;
    }
    struct asked *asked = arena_alloc(&work->arena, sizeof(*asked));

    asked->work = work;
    from_ms = from_ms ? from_ms : now_ms - HOUR_MS;
    bool by_hour = from_ms < now_ms - DAY_MS - SLACK_MS;

    asked->list = (struct series_list){.read = {.arena = &work->arena, .done = on_listed, .context = asked},
                                       .namespace = work->namespace,
                                       .by_hour = by_hour,
                                       .from_ms = by_hour ? from_ms - from_ms % HOUR_MS : minute_of(from_ms),
                                       .until_ms = request->in.series.until_ms ? request->in.series.until_ms : now_ms,
                                       .kind = kinds[request->in.series.by],
                                       .name = arena_slice(&work->arena, request->in.series.name),
                                       .limit = PAGE_ROWS};
    store_series_list(engine->store, &asked->list);
}
