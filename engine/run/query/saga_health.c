/* The health of definitions, by their sagas: counted from the records of durable turns since this process started. */
#include "run/query/saga_health.h"

#include <stdlib.h>
#include <string.h>

#include "base/metric.h"
#include "run/engine_state.h"
#include "run/query/query_room.h"

#define NAME_BYTES 256 /* no namespace and no definition has a longer name */
#define DEFINITIONS_MAX                                                                                                \
    500 /* the most definitions in the metrics; the rest is one sum, so that labels stay bounded                       \
         */

struct saga_healths {
    struct arena arena;
    struct map all; /* namespace, newline and name -> struct saga_health */
};

struct saga_healths *saga_healths_new(void)
{
    struct saga_healths *healths = memory_alloc(sizeof(*healths));

    arena_init(&healths->arena, 4096);
    map_init(&healths->all);
    return healths;
}

void saga_healths_free(struct saga_healths *healths)
{
    map_fini(&healths->all);
    arena_fini(&healths->arena);
    free(healths);
}

static struct saga_health *health_of(struct saga_healths *healths, struct slice namespace, struct slice name)
{
    char key[2 * NAME_BYTES + 1];
    size_t before = namespace.len < NAME_BYTES ? namespace.len : NAME_BYTES;
    size_t behind = name.len < NAME_BYTES ? name.len : NAME_BYTES, len = before + 1 + behind;

    memcpy(key, namespace.ptr, before);
    key[before] = '\n';
    memcpy(key + before + 1, name.ptr, behind);
    struct saga_health *health = map_find(&healths->all, key, len);

    if (!health) {
        struct slice kept = arena_slice(&healths->arena, (struct slice){key, len});

        health = arena_alloc(&healths->arena, sizeof(*health));
        health->namespace = (struct slice){kept.ptr, before};
        health->name = (struct slice){kept.ptr + before + 1, behind};
        map_put(&healths->all, kept.ptr, kept.len, health);
    }
    return health;
}

void saga_health_count(struct live *live, enum record_type type)
{
    const struct saga *saga = &live->saga;

    if (saga->definition->kind == SAGA_RUN) {
        return; /* a run is no saga that anybody started or waits for */
    }
    struct saga_health *health =
        health_of(live->engine->query_room->saga_healths, saga->namespace, saga->definition->name);

    health->started += type == RECORD_SAGA_STARTED;
    health->completed += type == RECORD_SAGA_COMPLETED;
    health->compensated += type == RECORD_SAGA_COMPENSATED;
    health->abandoned += type == RECORD_SAGA_ABANDONED;
    health->cases_opened += type == RECORD_ESCALATION_OPENED;
}

struct saga_health *saga_health_next(struct saga_healths *healths, size_t *position)
{
    void *value;

    return map_next(&healths->all, position, &value) ? value : NULL;
}

/* --- Prometheus --- */

static const struct {
    const char *name, *help;
    size_t at;
} families[] = {
    {"sagad_definition_started_total", "Sagas of a definition that started", offsetof(struct saga_health, started)},
    {"sagad_definition_completed_total", "Sagas of a definition that ended completed",
     offsetof(struct saga_health, completed)},
    {"sagad_definition_compensated_total", "Sagas of a definition that ended compensated",
     offsetof(struct saga_health, compensated)},
    {"sagad_definition_abandoned_total", "Sagas of a definition that ended abandoned",
     offsetof(struct saga_health, abandoned)},
    {"sagad_definition_cases_opened_total", "Cases that sagas of a definition opened",
     offsetof(struct saga_health, cases_opened)},
};

static int compare_health(const void *a, const void *b)
{
    const struct saga_health *const *x = a, *const *y = b;
    int order = slice_compare((*x)->namespace, (*y)->namespace);

    return order ? order : slice_compare((*x)->name, (*y)->name);
}

static void put_value(struct buffer *out, const char *name, const struct saga_health *health, uint64_t value)
{
    buffer_printf(out, "%s{namespace=\"", name);
    metric_put_label(out, health->namespace);
    buffer_put_text(out, "\",saga=\"");
    metric_put_label(out, health->name);
    buffer_printf(out, "\"} %llu\n", (unsigned long long)value);
}

void saga_health_write_metrics(const struct engine *engine, struct slice namespace, struct buffer *out)
{
    static const struct saga_health other = {.namespace = {"~other", 6}, .name = {"~other", 6}};
    struct saga_healths *healths = engine->query_room->saga_healths;
    struct arena arena;
    struct saga_health *health;
    size_t count = 0, position = 0;

    arena_init(&arena, 4096);
    struct saga_health **sorted = arena_array(&arena, healths->all.count + 1, sizeof(struct saga_health *));

    while ((health = saga_health_next(healths, &position)) != NULL) {
        if (!namespace.ptr || slice_equal(health->namespace, namespace)) {
            sorted[count++] = health;
        }
    }
    qsort(sorted, count, sizeof(struct saga_health *), compare_health);
    for (size_t i = 0; i < COUNT_OF(families); i++) {
        uint64_t rest = 0;

        metric_put_head(out, families[i].name, families[i].help, "counter");
        for (size_t k = 0; k < count; k++) {
            uint64_t value = *(const uint64_t *)((const char *)sorted[k] + families[i].at);

            if (k < DEFINITIONS_MAX) {
                put_value(out, families[i].name, sorted[k], value);
            } else {
                rest += value;
            }
        }
        if (count > DEFINITIONS_MAX) {
            put_value(out, families[i].name, &other, rest);
        }
    }
    arena_fini(&arena);
}
