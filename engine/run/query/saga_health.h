/* How the sagas of each definition fare, for Prometheus and for the figures over time. */
#ifndef SAGAD_RUN_QUERY_SAGA_HEALTH_H
#define SAGAD_RUN_QUERY_SAGA_HEALTH_H

#include "run/saga/live.h"
#include "store/figures.h"

struct saga_healths;

struct saga_health { /* the health of one definition; counters of this process */
    struct slice namespace, name;
    uint64_t started, completed, compensated, abandoned, cases_opened;
    uint64_t told[SERIES_FIGURE_COUNT]; /* series.c: of these, what stands in the table */
};

struct saga_healths *saga_healths_new(void);
void saga_healths_free(struct saga_healths *healths);

/* One record of a durable turn; most mean nothing here. */
void saga_health_count(struct live *live, enum record_type type);
/* The next one in no particular order, from `*position`, which begins at 0; NULL: no more. */
struct saga_health *saga_health_next(struct saga_healths *healths, size_t *position);
void saga_health_write_metrics(const struct engine *engine, struct slice namespace, struct buffer *out);

#endif
