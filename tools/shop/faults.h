/*
 * Faults on purpose. Rules are set through the admin endpoint and apply to matching requests. Chaos adds faults by a
 * hash of the seed, the key, and how often that key was seen, so that a run can be repeated whatever its timing.
 * --chaos and --seed set how often and which faults come; PUT /settings changes that while the shop runs.
 *
 * The faults are not thread-safe: the shop holds its one lock around every call.
 */
#ifndef SHOP_FAULTS_H
#define SHOP_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/map.h"
#include "base/text.h"

#include "books.h"

/*  id                          name                    the effect happens */
#define FAULT_MAP(X)                                                                                                   \
    X(FAULT_NONE, "none", true)                                                                                        \
    X(FAULT_TIMEOUT_AFTER, "timeout-after-effect", true) /* no answer ever comes */                                    \
    X(FAULT_RESET_AFTER, "reset-after-effect", true)     /* a TCP reset comes instead of the answer */                 \
    X(FAULT_RESET_BEFORE, "reset-before-effect", false)                                                                \
    X(FAULT_500_BEFORE, "500-before", false)                                                                           \
    X(FAULT_500_AFTER, "500-after", true)                                                                              \
    X(FAULT_503, "503", false) /* with Retry-After: 1 */                                                               \
    X(FAULT_422, "422", false)                                                                                         \
    X(FAULT_429, "429", false)                /* with Retry-After: 1 */                                                \
    X(FAULT_HANG, "hang", false)              /* no answer and no effect */                                            \
    X(FAULT_GARBAGE, "garbage", true)         /* 201 and a body that is no JSON */                                     \
    X(FAULT_TRUNCATED, "truncated", true)     /* the answer ends in its middle */                                      \
    X(FAULT_HUGE, "huge", true)               /* 201 and a body of 1 GiB */                                            \
    X(FAULT_SLOW, "slow", true)               /* the answer waits `ms` */                                              \
    X(FAULT_LATE, "late", true)               /* the effect waits `ms`, whether the caller waits or not */             \
    X(FAULT_REDELIVERED, "redelivered", true) /* the request is served twice, as by a queue behind the door */

#define X(id, name, effect) id,
enum fault_mode { FAULT_MAP(X) FAULT_MODE_COUNT };
#undef X

const char *fault_mode_name(enum fault_mode mode);
bool fault_mode_has_effect(enum fault_mode mode);

#define FAULT_RULES_MAX 64

struct fault_rule {
    bool any_route;
    enum route route;
    enum fault_mode mode;
    int64_t times;   /* how often the rule still applies; -1: for ever */
    int64_t ms;      /* the time of FAULT_SLOW and FAULT_LATE */
    char match[128]; /* a part of the body; "" matches all */
    uint64_t fired;
};

struct fault_plan {
    struct fault_rule rules[FAULT_RULES_MAX];
    size_t rule_count;
    unsigned chaos_percent;
    unsigned weights[FAULT_MODE_COUNT]; /* weights of the modes in chaos */
    unsigned ms_max;                    /* the longest wait of FAULT_SLOW and FAULT_LATE in chaos */
    uint64_t seed, fired;
    struct map seen; /* for chaos: how often each key was seen */
    struct arena arena;
};

struct fault_decision {
    enum fault_mode mode;
    int64_t ms;
};

void fault_plan_init(struct fault_plan *plan, unsigned chaos_percent, uint64_t seed);
void fault_plan_fini(struct fault_plan *plan);
void fault_plan_clear(struct fault_plan *plan); /* drops the rules; chaos goes on */

/*
 * Sets a rule: {"route": "charges" | "*", "mode": NAME, "times": N, "match": TEXT | null, "ms": N}. `times` is 1 when
 * absent and -1 for ever; "slow-250" is short for {"mode": "slow", "ms": 250}. `rule` is checked JSON. Gives
 * ERR_INVALID with a sentence.
 */
/*
 * Sets chaos: {"percent": N, "seed": N, "ms": N, "modes": {NAME: WEIGHT, ...}}. Each member is optional; `modes`
 * replaces the weights. Gives ERR_INVALID with a sentence, and then changes nothing.
 */
MUST_USE enum err_code fault_plan_set_chaos(struct fault_plan *plan, struct slice chaos, struct err *err);
MUST_USE enum err_code fault_plan_add(struct fault_plan *plan, struct slice rule, struct err *err);
struct fault_decision fault_plan_take(struct fault_plan *plan, enum route route, struct slice key, struct slice body);
void fault_plan_write(const struct fault_plan *plan, struct buffer *out);

#endif
