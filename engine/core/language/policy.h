/*
 * Effect classes and the delays of retries. Jitter is a hash of key and attempt, so that a replay shows the same
 * delays.
 */
#ifndef SAGAD_CORE_LANGUAGE_POLICY_H
#define SAGAD_CORE_LANGUAGE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "base/text.h"

#define EFFECT_MAP(X)                                                                                                  \
    /* id               name          attempts  initial_ms   after an unknown outcome */                               \
    X(EFFECT_READ, "read", 3, 1000)             /* called again; it only reads */                                      \
    X(EFFECT_IDEMPOTENT, "idempotent", 3, 1000) /* called again: the same call twice is harmless */                    \
    X(EFFECT_KEYED, "keyed", 3, 2000)           /* called again with the same key inside the window */                 \
    X(EFFECT_CHECKED, "checked", 5, 5000)       /* probed first; called again only after absent */                     \
    X(EFFECT_ONCE, "once", 1, 1000)             /* never called again: probed, else escalated */

#define X(id, name, attempts, initial_ms) id,
enum effect { EFFECT_MAP(X) EFFECT_COUNT };
#undef X

const char *effect_name(enum effect effect);
bool effect_parse(struct slice name, enum effect *out);

struct retry_policy {
    uint32_t max_attempts; /* counts calls of which a byte may have left */
    uint32_t max_unsent;   /* counts tries in a row that never left */
    int64_t initial_ms, max_ms;
    uint32_t factor_milli; /* 2000 is factor 2 */
};

struct retry_policy retry_policy_default(enum effect effect); /* max 5 minutes, factor 2, max_unsent 10 */

/* Returns `policy` with the members of `own` that are not 0. A default never cuts a delay that `own` asks for. */
struct retry_policy retry_policy_with(struct retry_policy policy, const struct retry_policy *own);
/* Returns the class that allows less after an unknown outcome. From strict to free: once, checked, keyed, idempotent,
 * read. */
enum effect effect_stricter(enum effect a, enum effect b);

/*
 * When to try again after try number `number` (1 is the first) ended at `now_ms`: exponential backoff with full jitter
 * (Brooker, "Exponential Backoff And Jitter", 2015), at least `retry_after_ms`, which may exceed max_ms.
 * Full jitter here is uniform in (0, backoff], never 0.
 */
int64_t retry_due_ms(const struct retry_policy *policy, uint32_t number, int64_t now_ms, int64_t retry_after_ms,
                     const struct op_key *key);

#endif
