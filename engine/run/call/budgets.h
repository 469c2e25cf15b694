/*
 * Budgets of tools and namespaces by day, by month and for ever, from a file of settings (--budgets):
 *
 *     {"budgets": [{"namespace"?, "tool"?, "per": "day" | "month" | "ever", "calls"?, "emissions"?, "micros"?}]}
 *
 * A line without namespace (or tool) is one budget for all of them together. Days and months begin at midnight UTC.
 * What is used of them is kept in PostgreSQL, for all engines; all engines should be given the same file.
 */
#ifndef SAGAD_RUN_CALL_BUDGETS_H
#define SAGAD_RUN_CALL_BUDGETS_H

#include "store/guard.h"

enum budget_period { BUDGET_DAY, BUDGET_MONTH, BUDGET_EVER };

struct budget_rule {
    struct slice namespace, tool; /* SLICE_NONE: any */
    enum budget_period per;
    int64_t calls, emissions, micros; /* -1: unbounded */
    struct slice name;                /* the name of the counter */
};

struct budgets {
    struct arena arena;
    struct budget_rule *rules; /* in order of name */
    size_t count;
};

MUST_USE enum err_code budgets_load(struct budgets *budgets, const char *path, struct err *err); /* path may be NULL */
MUST_USE enum err_code budgets_parse(struct budgets *budgets, struct slice text, struct err *err);
void budgets_fini(struct budgets *budgets);
/* Is there a budget that calls of this tool count against? Such a tool is guarded. */
bool budgets_apply(const struct budgets *budgets, struct slice namespace, struct slice tool);
/* Counters that match, in order of name, with their limits and periods; what is to be reserved is 0. */
size_t budgets_match(const struct budgets *budgets, struct slice namespace, struct slice tool, int64_t now_ms,
                     struct guard_budget out[GUARD_BUDGETS_MAX]);
int64_t budget_period_start(enum budget_period per, int64_t now_ms); /* 0: for ever */

#endif
