/*
 * Figures over time, as the store keeps them.
 *
 * Every engine adds its own counts; a figure is the sum over all engines.
 */
#ifndef SAGAD_STORE_FIGURES_H
#define SAGAD_STORE_FIGURES_H

#include "store/store.h"

enum series_kind { SERIES_SAGA, SERIES_TOOL, SERIES_KIND_COUNT };

/* The columns of the table, and the members of the API. */
#define SERIES_FIGURES(X)                                                                                              \
    X(STARTED, "started")                                                                                              \
    X(COMPLETED, "completed")                                                                                          \
    X(COMPENSATED, "compensated")                                                                                      \
    X(ABANDONED, "abandoned")                                                                                          \
    X(ESCALATED, "escalated") /* the last figure of a saga; those of a tool follow */                                  \
    X(OPERATIONS, "operations")                                                                                        \
    X(CALLS, "calls")                                                                                                  \
    X(RETRIES, "retries")                                                                                              \
    X(CALLS_COMPLETED, "calls_completed")                                                                              \
    X(CALLS_FAILED, "calls_failed")                                                                                    \
    X(CALLS_UNKNOWN, "calls_unknown")                                                                                  \
    X(DUPLICATES, "duplicates")
#define X(id, name) SERIES_##id,
enum series_figure { SERIES_FIGURES(X) SERIES_FIGURE_COUNT };
#undef X

struct series_row {
    struct slice namespace, name;
    enum series_kind kind;
    int64_t at_ms;
    int64_t figures[SERIES_FIGURE_COUNT];
};

struct series_add {
    struct store_read read;
    struct uuid part;              /* in: the id of this part; a part is never added twice */
    int64_t at_ms;                 /* in: the minute of all rows */
    const struct series_row *rows; /* in: one row for each saga or tool */
    size_t count;                  /* in */
};
void store_series_add(struct store *store, struct series_add *add);

struct series_roll { /* adds minutes up to hours, and deletes old hours; two engines may do so at once */
    struct store_read read;
    int64_t minutes_before_ms, hours_before_ms; /* in */
    size_t limit;                               /* in: rows of each */
    int64_t rolled, dropped;                    /* out: numbers of rows; when one is `limit`, there may be more */
};
void store_series_roll(struct store *store, struct series_roll *roll);

struct series_list { /* lists figures by time and name */
    struct store_read read;
    struct slice namespace;    /* in */
    bool by_hour;              /* in; false: by minute */
    int64_t from_ms, until_ms; /* in */
    enum series_kind kind;     /* in; SERIES_KIND_COUNT: the sums over the namespace, without names */
    struct slice name;         /* in; SLICE_NONE: any */
    size_t limit;              /* in */
    struct series_row *rows;   /* out */
    size_t count;              /* out */
};
void store_series_list(struct store *store, struct series_list *list);

#endif
