/*
 * What a namespace may ask of this engine, from a file of settings (--quotas), so that the flood of one leaves room for
 * the others:
 *
 *     {"quotas": [{"namespace"?, "starts_per_second"?, "calls_per_second"?, "payload_bytes_per_day"?,
 *                  "sagas_in_flight"?, "definitions"?}]}
 *
 * A line without namespace holds for each namespace that has none of its own: each has that much for itself. A
 * namespace that was quiet may ask for one second's, or day's, worth at once; it comes back by and by. Repeats count,
 * because to answer them costs as well; what was accepted is never asked.
 *
 * This is arithmetic on rules and an instant: no clock.
 */
#ifndef SAGAD_RUN_INTAKE_QUOTAS_H
#define SAGAD_RUN_INTAKE_QUOTAS_H

#include "base/arena.h"
#include "base/errors.h"
#include "base/map.h"

enum quota_kind {
    QUOTA_STARTS,
    QUOTA_CALLS,
    QUOTA_BYTES, /* the bytes of the inputs of starts and the arguments of calls */
    QUOTA_RATES, /* so many kinds are rates; of the others there may be so many at a time */
    QUOTA_SAGAS = QUOTA_RATES,
    QUOTA_DEFINITIONS,
    QUOTA_KIND_COUNT
};

struct quota_rule {
    struct slice namespace;         /* SLICE_NONE: each without a rule of its own */
    int64_t most[QUOTA_KIND_COUNT]; /* -1: unbounded */
};

struct quotas {
    struct arena arena;
    struct quota_rule *rules;
    size_t count;
    struct map buckets; /* the buckets by namespace: what is left to those that asked of late */
};

/* Both accept anything in `quotas`, and leave it empty with an error: ERR_CONFIG with the place, ERR_IO. */
MUST_USE enum err_code quotas_load(struct quotas *quotas, const char *path, struct err *err); /* path may be NULL */
MUST_USE enum err_code quotas_parse(struct quotas *quotas, struct slice text, struct err *err);
void quotas_fini(struct quotas *quotas);

/* So many more of a rate, now? Else false, with ERR_QUOTA and after how long they may come again. `now_ms` never goes
 * back. */
bool quotas_admit(struct quotas *quotas, enum quota_kind kind, struct slice namespace, int64_t amount, int64_t now_ms,
                  struct err *err, int64_t *retry_after_ms);
/* May there be `count` of them at a time? Else false, as above. */
bool quotas_allow(const struct quotas *quotas, enum quota_kind kind, struct slice namespace, int64_t count,
                  struct err *err, int64_t *retry_after_ms);
bool quotas_bound(const struct quotas *quotas, enum quota_kind kind, struct slice namespace); /* does a rule? */
/* One more saga in flight? `count` counts those that there are, now and then: what was admitted since is added. */
struct quota_sagas {
    int64_t (*count)(void *context, struct slice namespace);
    void *context;
};
bool quotas_admit_saga(struct quotas *quotas, struct slice namespace, const struct quota_sagas *sagas, int64_t now_ms,
                       struct err *err, int64_t *retry_after_ms);

#endif
