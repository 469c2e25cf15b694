/*
 * What a namespace may ask of this engine in a second, from a file of settings (--quotas), so that the flood of one
 * leaves room for the others:
 *
 *     {"quotas": [{"namespace"?, "starts_per_second"?, "calls_per_second"?}]}
 *
 * A line without namespace holds for each namespace that has none of its own: each has that much for itself. A
 * namespace that was quiet may ask for one second's worth at once. Repeats count, because to answer them costs as well;
 * what was accepted is never asked.
 *
 * This is arithmetic on rules and an instant: no clock.
 */
#ifndef SAGAD_RUN_INTAKE_QUOTAS_H
#define SAGAD_RUN_INTAKE_QUOTAS_H

#include "base/arena.h"
#include "base/errors.h"
#include "base/map.h"

enum quota_kind { QUOTA_STARTS, QUOTA_CALLS, QUOTA_KIND_COUNT };

struct quota_rule {
    struct slice namespace;               /* SLICE_NONE: each without a rule of its own */
    int64_t per_second[QUOTA_KIND_COUNT]; /* -1: unbounded */
};

struct quotas {
    struct arena arena;
    struct quota_rule *rules;
    size_t count;
    struct map buckets; /* by namespace: what is left to those that asked of late */
};

/* Both accept anything in `quotas`, and leave it empty with an error: ERR_CONFIG with the place, ERR_IO. */
MUST_USE enum err_code quotas_load(struct quotas *quotas, const char *path, struct err *err); /* path may be NULL */
MUST_USE enum err_code quotas_parse(struct quotas *quotas, struct slice text, struct err *err);
void quotas_fini(struct quotas *quotas);

/* One more, now? Else false, with ERR_QUOTA and after how long it may come again. `now_ms` never goes back. */
bool quotas_admit(struct quotas *quotas, enum quota_kind kind, struct slice namespace, int64_t now_ms, struct err *err,
                  int64_t *retry_after_ms);

#endif
