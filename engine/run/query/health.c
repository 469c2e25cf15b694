/*
 * The health of tools, counted from the records of durable turns, for the stats and for Prometheus. Counters hold what
 * this process has seen since its start. Unknown outcomes are counted by looking at the sagas in memory that may have
 * one; those of sagas that went to rest here are kept. (A saga that was at rest when its shard came here counts once it
 * has been in memory.)
 */
#include "run/query/health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric.h"
#include "run/call/call_queue.h"
#include "run/call/limiter.h"
#include "run/intake/measures.h"
#include "run/query/query_room.h"
#include "run/query/saga_health.h"
#include "run/saga/live.h"

#define HEALTH_NAME_BYTES 128 /* no namespace and no tool has a longer name */
#define TOOLS_SHOWN_MAX 500   /* the most tools in the metrics; the rest is one sum, so that labels stay bounded */

static const char *const decisions[DUPLICATE_DECISIONS] = {
    "replayed",          "waited", "refused",       "escalated", "failed", "unknown",
    "awaiting-operator", "drift",  "drift-refused", "expired",   "loop",
};

struct health {
    struct arena arena;
    struct map tools;     /* namespace, newline and name -> struct tool_health */
    struct list doubtful; /* sagas in memory that may have an unknown outcome */
    struct map resting;   /* saga id -> struct resting: the unknown outcomes of a saga that left memory */
};

struct tool_health *tool_health_of(struct engine *engine, struct slice namespace, struct slice name)
{
    char key[2 * HEALTH_NAME_BYTES + 1];
    size_t before = namespace.len < HEALTH_NAME_BYTES ? namespace.len : HEALTH_NAME_BYTES;
    size_t behind = name.len < HEALTH_NAME_BYTES ? name.len : HEALTH_NAME_BYTES, len = before + 1 + behind;

    memcpy(key, namespace.ptr, before);
    key[before] = '\n';
    memcpy(key + before + 1, name.ptr, behind);
    struct tool_health *health = map_find(&engine->query_room->health->tools, key, len);

    if (!health) {
        struct slice kept = arena_slice(&engine->query_room->health->arena, (struct slice){key, len});

        health = arena_alloc(&engine->query_room->health->arena, sizeof(*health));
        health->namespace = arena_slice(&engine->query_room->health->arena, namespace);
        health->name = arena_slice(&engine->query_room->health->arena, name);
        call_lines_init(health->lines);
        map_put(&engine->query_room->health->tools, kept.ptr, kept.len, health);
    }
    return health;
}

struct tool_health *tool_health_next(struct health *health, size_t *position)
{
    void *value;

    return map_next(&health->tools, position, &value) ? value : NULL;
}

/* --- counting --- */

static void count_duplicate(struct tool_health *health, struct slice decision)
{
    for (size_t i = 0; i < DUPLICATE_DECISIONS; i++) {
        health->duplicates[i] += slice_is(decision, decisions[i]);
    }
    health->drift += slice_is(decision, "drift") || slice_is(decision, "drift-refused");
}

/* Counts a guard's refusal of an agent's call. */
static void count_refusal(struct tool_health *health, struct slice error)
{
    health->budget_refusals += slice_is(error, "budget-exhausted");
    health->rate_refusals += slice_is(error, "rate-limited") || slice_is(error, "concurrency-limited");
    health->breaker_refusals += slice_is(error, "breaker-open");
}

/* Counts a record for the tool of its step; groups and waits have no tool. */
static void count_step(struct live *live, const struct record *record, enum direction direction)
{
    const struct tool *tool =
        record->step < live->saga.definition->step_count ? saga_tool(&live->saga, record->step, direction) : NULL;

    if (!tool) {
        return;
    }
    struct tool_health *health = tool_health_of(live->engine, live->saga.namespace, tool->name);

    if (record->type == RECORD_OPERATION_DUPLICATE || record->type == RECORD_STEP_REPEATED) {
        if (record->type == RECORD_OPERATION_DUPLICATE) {
            count_duplicate(health, record->decision);
        }
        limiter_count_emission(live->engine, live->saga.namespace, health->name);
    } else if (record->type == RECORD_STEP_FAILED) {
        if (record->source == SOURCE_GUARD) {
            count_refusal(health, record->error);
        }
    } else if (record->args.ptr) { /* only the first record of an operation has its arguments */
        health->operations++;
    }
}

/* The types of most records. After them nothing is unknown that was not so before. */
static const bool is_certain[RECORD_TYPE_COUNT] = {
    [RECORD_SAGA_STARTED] = true,        [RECORD_STEP_PENDING] = true,           [RECORD_STEP_INTENT] = true,
    [RECORD_STEP_CALLED] = true,         [RECORD_STEP_COMPLETED] = true,         [RECORD_COMPENSATION_PLANNED] = true,
    [RECORD_COMPENSATION_INTENT] = true, [RECORD_COMPENSATION_COMPLETED] = true, [RECORD_SAGA_COMPLETED] = true,
    [RECORD_SAGA_COMPENSATED] = true,
};

void health_doubts(struct live *live)
{
    if (!list_linked(&live->doubt_link)) {
        list_push(&live->engine->query_room->health->doubtful, &live->doubt_link);
    }
}

void health_forgets(struct live *live)
{
    if (list_linked(&live->doubt_link)) {
        list_remove(&live->engine->query_room->health->doubtful, &live->doubt_link);
    }
}

static void count_record(struct live *live, const struct record *record)
{
    switch (record->type) {
    case RECORD_COMPENSATION_INTENT:
        count_step(live, record, DIRECTION_UNDO);
        break;
    case RECORD_STEP_PENDING:
    case RECORD_STEP_INTENT:
        if (!saga_is_open(&live->saga)) { /* in an open saga it was counted when it was called */
            count_step(live, record, DIRECTION_DO);
        }
        break;
    case RECORD_STEP_CALLED:
    case RECORD_OPERATION_DUPLICATE:
    case RECORD_STEP_REPEATED:
    case RECORD_STEP_FAILED:
        count_step(live, record, DIRECTION_DO);
        break;
    case RECORD_LOOP_TRIPPED:
        if (record->tool_name.ptr) { /* the tool of the call that closed the loop */
            tool_health_of(live->engine, live->saga.namespace, record->tool_name)->loop_trips++;
        }
        break;
    case RECORD_SAGA_STARTED:
    case RECORD_ESCALATION_OPENED:
    case RECORD_SAGA_COMPLETED:
    case RECORD_SAGA_COMPENSATED:
    case RECORD_SAGA_ABANDONED:
        saga_health_count(live, record->type);
        break;
    case RECORD_STEP_RETRYING:
    case RECORD_STEP_RUNNING:
    case RECORD_STEP_UNKNOWN:
    case RECORD_STEP_PROBED:
    case RECORD_STEP_COMPLETED:
    case RECORD_STEP_SKIPPED:
    case RECORD_STEP_REOPENED:
    case RECORD_STEP_WAIVED:
    case RECORD_STEP_UNDONE:
    case RECORD_STEP_OPENED:
    case RECORD_STEP_FAILING:
    case RECORD_STEP_WAITING:
    case RECORD_SIGNAL_RECEIVED:
    case RECORD_APPROVAL_DECIDED:
    case RECORD_LOCK_WANTED:
    case RECORD_LOCK_TAKEN:
    case RECORD_STEP_LATE:
    case RECORD_COMPENSATION_LATE:
    case RECORD_OPERATION_PRICED:
    case RECORD_TOOL_MENDED:
    case RECORD_OPERATION_EXPIRED:
    case RECORD_BYPASS_SIGNED:
    case RECORD_SAGA_PAUSED:
    case RECORD_SAGA_RESUMED:
    case RECORD_SAGA_HELD:
    case RECORD_SAGA_RELEASED:
    case RECORD_RUN_RESTED:
    case RECORD_RUN_WOKEN:
    case RECORD_SAGA_FAILING:
    case RECORD_COMPENSATION_PLANNED:
    case RECORD_COMPENSATION_RETRYING:
    case RECORD_COMPENSATION_RUNNING:
    case RECORD_COMPENSATION_UNKNOWN:
    case RECORD_COMPENSATION_PROBED:
    case RECORD_COMPENSATION_COMPLETED:
    case RECORD_COMPENSATION_FAILED:
    case RECORD_COMPENSATION_REOPENED:
    case RECORD_ESCALATION_RESOLVED:
    case RECORD_TYPE_COUNT:
        break;
    }
}

void health_count(struct live *live, const struct records *records)
{
    for (size_t i = 0; i < records->count; i++) {
        count_record(live, &records->items[i]);
        if (!is_certain[records->items[i].type]) {
            health_doubts(live);
        }
    }
}

/* --- what is unknown now --- */

/* Returns the tool of an operation with an unknown outcome, and since when it is unknown; otherwise NULL. */
static const struct tool *unknown_tool(const struct saga *saga, uint32_t step, enum direction direction, int64_t *since)
{
    const struct step *at = &saga->steps[step];
    const struct operation *op = direction == DIRECTION_UNDO ? step_undo(at) : &at->forward;

    if (op->state != OP_UNKNOWN && (op->state != OP_PROBING || op->accepted)) {
        return NULL;
    }
    *since = op->unknown_ms ? op->unknown_ms : op->last_sent_ms;
    return saga_tool(saga, step, direction);
}

static void count_unknown(struct tool_health *health, int64_t since)
{
    health->unknown_open++;
    health->unknown_oldest_ms =
        health->unknown_oldest_ms == 0 || since < health->unknown_oldest_ms ? since : health->unknown_oldest_ms;
}

struct unknown { /* an operation of a saga at rest */
    struct tool_health *health;
    int64_t since_ms;
};

struct resting { /* a saga that left memory with such operations */
    struct saga_id id;
    uint32_t shard;
    size_t count;
    struct unknown items[];
};

static size_t collect_unknown(struct live *live, struct unknown *items)
{
    const struct saga *saga = &live->saga;
    size_t count = 0;

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        for (enum direction direction = DIRECTION_DO; direction < DIRECTION_COUNT; direction++) {
            int64_t since = 0;
            const struct tool *tool = unknown_tool(saga, i, direction, &since);

            if (tool && items) {
                items[count] = (struct unknown){tool_health_of(live->engine, saga->namespace, tool->name), since};
            }
            count += tool != NULL;
        }
    }
    return count;
}

void health_rests(struct live *live)
{
    size_t count = collect_unknown(live, NULL);

    health_wakes(live->engine, live->saga.id);
    if (count == 0) {
        return;
    }
    struct resting *resting = memory_alloc(sizeof(*resting) + count * sizeof(resting->items[0]));

    resting->id = live->saga.id;
    resting->shard = live->shard->number;
    resting->count = collect_unknown(live, resting->items);
    map_put(&live->engine->query_room->health->resting, &resting->id, sizeof(resting->id), resting);
}

void health_wakes(struct engine *engine, struct saga_id id)
{
    free(map_remove(&engine->query_room->health->resting, &id, sizeof(id)));
}

void health_leaves(struct engine *engine, uint32_t shard)
{
    size_t position = 0;
    void *value;

    while (map_next(&engine->query_room->health->resting, &position, &value)) {
        struct resting *resting = value;

        if (resting->shard == shard) {
            health_wakes(engine, resting->id);
        }
    }
}

/* Looks at a saga. Returns false when nothing of it is unknown. */
static bool look_at(struct engine *engine, const struct saga *saga)
{
    bool found = false;

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        for (enum direction direction = DIRECTION_DO; direction < DIRECTION_COUNT; direction++) {
            int64_t since = 0;
            const struct tool *tool = unknown_tool(saga, i, direction, &since);

            if (tool) {
                count_unknown(tool_health_of(engine, saga->namespace, tool->name), since);
                found = true;
            }
        }
    }
    return found;
}

static void look_at_all(struct engine *engine)
{
    size_t position = 0;
    void *value;

    while (map_next(&engine->query_room->health->tools, &position, &value)) {
        struct tool_health *health = value;

        health->unknown_open = health->unknown_oldest_ms = 0;
    }
    for (struct list_link *link = list_first(&engine->query_room->health->doubtful), *next; link; link = next) {
        struct live *live = container_of(link, struct live, doubt_link);

        next = list_after(&engine->query_room->health->doubtful, link);
        if (!look_at(engine, &live->saga)) {
            health_forgets(live);
        }
    }
    position = 0;
    while (map_next(&engine->query_room->health->resting, &position, &value)) {
        const struct resting *resting = value;

        for (size_t i = 0; i < resting->count; i++) {
            count_unknown(resting->items[i].health, resting->items[i].since_ms);
        }
    }
}

static int compare_health(const void *a, const void *b)
{
    const struct tool_health *const *x = a, *const *y = b;
    int order = slice_compare((*x)->namespace, (*y)->namespace);

    return order ? order : slice_compare((*x)->name, (*y)->name);
}

/* Returns the healths in order, in the arena; with `namespace` only those of one. */
static const struct tool_health **health_list(const struct engine *engine, struct slice namespace, struct arena *arena,
                                              size_t *count)
{
    const struct tool_health **tools = arena_array(arena, engine->query_room->health->tools.count + 1, sizeof(*tools));
    size_t position = 0;
    void *value;

    *count = 0;
    while (map_next(&engine->query_room->health->tools, &position, &value)) {
        const struct tool_health *health = value;

        if (!namespace.ptr || slice_equal(health->namespace, namespace)) {
            tools[(*count)++] = health;
        }
    }
    qsort(tools, *count, sizeof(*tools), compare_health);
    return tools;
}

static int64_t age_ms(const struct engine *engine, const struct tool_health *health)
{
    int64_t age = health->unknown_oldest_ms ? loop_wall_ms(engine->loop) - health->unknown_oldest_ms : 0;

    return age > 0 ? age : 0;
}

static const char *breaker_name(int state)
{
    return state == 1 ? "open" : state == 2 ? "half_open" : "closed";
}

static uint64_t duplicates_of(const struct tool_health *health)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < DUPLICATE_DECISIONS; i++) {
        sum += health->duplicates[i];
    }
    return sum;
}

/* Writes a share in thousandths, which is enough for people and needs no floating point in the JSON. */
static void write_rate(struct json_writer *w, const char *name, uint64_t part, uint64_t whole)
{
    char text[32];
    uint64_t milli = whole ? (part * 1000 + whole / 2) / whole : 0;

    (void)snprintf(text, sizeof(text), "%llu.%03llu", (unsigned long long)(milli / 1000),
                   (unsigned long long)(milli % 1000));
    json_write_raw(w, name, slice_of(text));
}

void health_write_json(struct engine *engine, struct slice namespace, struct json_writer *w)
{
    struct arena arena;
    size_t count = 0;

    look_at_all(engine);
    arena_init(&arena, 4096);
    const struct tool_health **tools = health_list(engine, namespace, &arena, &count);

    json_array_begin(w, "tools");
    for (size_t i = 0; i < count; i++) {
        const struct tool_health *tool = tools[i];
        uint64_t duplicates = duplicates_of(tool);

        json_object_begin(w, NULL);
        json_write_slice(w, "name", tool->name);
        json_write_i64(w, "calls", (int64_t)tool->calls);
        json_write_i64(w, "retries", (int64_t)tool->retries);
        json_write_i64(w, "completed", (int64_t)tool->completed);
        json_write_i64(w, "failed", (int64_t)tool->failed);
        json_write_i64(w, "unknown", (int64_t)tool->unknown);
        json_write_i64(w, "operations", (int64_t)tool->operations);
        json_object_begin(w, "duplicates");
        for (size_t k = 0; k < DUPLICATE_DECISIONS; k++) {
            json_write_i64(w, decisions[k], (int64_t)tool->duplicates[k]);
        }
        json_object_end(w);
        write_rate(w, "retry_rate", tool->retries, tool->calls);
        write_rate(w, "duplicate_rate", duplicates, duplicates + tool->operations);
        write_rate(w, "unknown_rate", tool->unknown, tool->calls);
        json_write_i64(w, "unknown_open", tool->unknown_open);
        json_write_i64(w, "unknown_oldest_ms", age_ms(engine, tool));
        json_write_i64(w, "drift", (int64_t)tool->drift);
        json_write_i64(w, "loop_trips", (int64_t)tool->loop_trips);
        json_write_i64(w, "budget_refusals", (int64_t)tool->budget_refusals);
        json_write_i64(w, "rate_refusals", (int64_t)tool->rate_refusals);
        json_write_i64(w, "breaker_refusals", (int64_t)tool->breaker_refusals);
        json_write_text(w, "breaker", breaker_name(tool->breaker_state));
        json_object_end(w);
    }
    json_array_end(w);
    arena_fini(&arena);
}

/* --- Prometheus --- */

struct metric_series {
    const char *name, *help;
    bool gauge;
    uint64_t (*value)(const struct engine *engine, const struct tool_health *health);
};

static uint64_t get_operations(const struct engine *engine, const struct tool_health *health)
{
    (void)engine;
    return health->operations;
}

static uint64_t get_calls(const struct engine *engine, const struct tool_health *health)
{
    (void)engine;
    return health->calls;
}

static uint64_t get_retries(const struct engine *engine, const struct tool_health *health)
{
    (void)engine;
    return health->retries;
}

static uint64_t get_unknown(const struct engine *engine, const struct tool_health *health)
{
    (void)engine;
    return (uint64_t)health->unknown_open;
}

static uint64_t get_oldest(const struct engine *engine, const struct tool_health *health)
{
    return (uint64_t)(age_ms(engine, health) / 1000);
}

static uint64_t get_drift(const struct engine *engine, const struct tool_health *health)
{
    (void)engine;
    return health->drift;
}

static uint64_t get_trips(const struct engine *engine, const struct tool_health *health)
{
    (void)engine;
    return health->loop_trips;
}

static uint64_t get_budget(const struct engine *engine, const struct tool_health *health)
{
    (void)engine;
    return health->budget_refusals;
}

static uint64_t get_rate(const struct engine *engine, const struct tool_health *health)
{
    (void)engine;
    return health->rate_refusals;
}

static uint64_t get_breaker_refusals(const struct engine *engine, const struct tool_health *health)
{
    (void)engine;
    return health->breaker_refusals;
}

static uint64_t get_opened(const struct engine *engine, const struct tool_health *health)
{
    (void)engine;
    return health->breaker_opened;
}

static uint64_t get_pauses(const struct engine *engine, const struct tool_health *health)
{
    (void)engine;
    return health->pauses;
}

static uint64_t get_breaker(const struct engine *engine, const struct tool_health *health)
{
    (void)engine;
    return (uint64_t)health->breaker_state;
}

static const struct metric_series all_series[] = {
    {"sagad_tool_operations_total", "Operations that were new", false, get_operations},
    {"sagad_tool_calls_total", "Calls handed to the adapter, retries among them", false, get_calls},
    {"sagad_tool_retries_total", "Calls that were not the first attempt of their operation", false, get_retries},
    {"sagad_tool_drift_total", "Repeats of a call with other arguments", false, get_drift},
    {"sagad_tool_loop_trips_total", "Loops of calls that were stopped", false, get_trips},
    {"sagad_tool_budget_refusals_total", "Calls refused for want of budget", false, get_budget},
    {"sagad_tool_rate_refusals_total", "Calls refused by a rate or a concurrency limit", false, get_rate},
    {"sagad_tool_breaker_refusals_total", "Calls refused by an open circuit breaker", false, get_breaker_refusals},
    {"sagad_tool_breaker_opened_total", "Times that a circuit breaker was seen to open", false, get_opened},
    {"sagad_tool_pauses_total", "Times that the tool asked to be left alone", false, get_pauses},
    {"sagad_tool_unknown_open", "Operations of which nobody can say yet whether they happened", true, get_unknown},
    {"sagad_tool_unknown_oldest_seconds", "Age of the oldest of them", true, get_oldest},
    {"sagad_tool_breaker_state", "Circuit breaker: 0 closed, 1 open, 2 half open", true, get_breaker},
};

static void put_value(struct buffer *out, const char *name, const struct tool_health *health, const char *decision,
                      uint64_t value)
{
    buffer_printf(out, "%s{namespace=\"", name);
    metric_put_label(out, health->namespace);
    buffer_put_text(out, "\",tool=\"");
    metric_put_label(out, health->name);
    buffer_put_char(out, '"');
    if (decision) {
        buffer_printf(out, ",decision=\"%s\"", decision);
    }
    buffer_printf(out, "} %llu\n", (unsigned long long)value);
}

static void put_series(const struct engine *engine, const struct metric_series *series,
                       const struct tool_health *const *tools, size_t count, struct buffer *out)
{
    static const struct tool_health other = {.namespace = {"~other", 6}, .name = {"~other", 6}};
    uint64_t rest = 0;

    metric_put_head(out, series->name, series->help, series->gauge ? "gauge" : "counter");
    for (size_t i = 0; i < count; i++) {
        uint64_t value = series->value(engine, tools[i]);

        if (i < TOOLS_SHOWN_MAX) {
            put_value(out, series->name, tools[i], NULL, value);
        } else {
            rest = series->gauge ? (value > rest ? value : rest) : rest + value;
        }
    }
    if (count > TOOLS_SHOWN_MAX) {
        put_value(out, series->name, &other, NULL, rest);
    }
}

static void put_duplicates(const struct tool_health *const *tools, size_t count, struct buffer *out)
{
    static const char name[] = "sagad_tool_duplicates_total";

    metric_put_head(out, name, "Emissions of calls that began nothing, by what they got", "counter");
    for (size_t i = 0; i < count && i < TOOLS_SHOWN_MAX; i++) {
        for (size_t k = 0; k < DUPLICATE_DECISIONS; k++) {
            if (tools[i]->duplicates[k] > 0) { /* most tools have two or three of these */
                put_value(out, name, tools[i], decisions[k], tools[i]->duplicates[k]);
            }
        }
    }
}

void engine_write_tool_metrics(const struct engine *engine, struct slice namespace, struct buffer *out)
{
    struct arena arena;
    size_t count = 0;

    look_at_all((struct engine *)engine); /* writes only the scratch of the figures */
    intake_show((struct engine *)engine);
    arena_init(&arena, 4096);
    const struct tool_health **tools = health_list(engine, namespace, &arena, &count);

    for (size_t i = 0; i < COUNT_OF(all_series); i++) {
        put_series(engine, &all_series[i], (const struct tool_health *const *)tools, count, out);
    }
    put_duplicates((const struct tool_health *const *)tools, count, out);
    arena_fini(&arena);
    saga_health_write_metrics(engine, namespace, out);
}

/* --- its own life --- */

struct health *health_new(void)
{
    struct health *health = memory_alloc(sizeof(*health));

    arena_init(&health->arena, 4096);
    map_init(&health->tools);
    list_init(&health->doubtful);
    map_init(&health->resting);
    return health;
}

void health_free(struct health *health)
{
    size_t position = 0;
    void *value;

    while (map_next(&health->resting, &position, &value)) {
        free(value);
    }
    map_fini(&health->resting);
    map_fini(&health->tools);
    arena_fini(&health->arena);
    free(health);
}

size_t health_doubt_count(const struct engine *engine)
{
    return engine->query_room->health->doubtful.count;
}
