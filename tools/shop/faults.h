/*
 * What goes wrong on purpose. Rules are set through the admin endpoint and fire on matching requests; chaos adds
 * faults by a hash of seed, key and how often that key was seen, so that a run can be repeated whatever its timing.
 * How often and which is set by --chaos and --seed, and while it runs through PUT /settings.
 *
 * Not thread-safe: the shop holds its one lock around every call.
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
    X(FAULT_TIMEOUT_AFTER, "timeout-after-effect", true) /* no answer, ever */                                         \
    X(FAULT_RESET_AFTER, "reset-after-effect", true)     /* a TCP reset instead of the answer */                       \
    X(FAULT_RESET_BEFORE, "reset-before-effect", false)                                                                \
    X(FAULT_500_BEFORE, "500-before", false)                                                                           \
    X(FAULT_500_AFTER, "500-after", true)                                                                              \
    X(FAULT_503, "503", false) /* with Retry-After: 1 */                                                               \
    X(FAULT_422, "422", false)                                                                                         \
    X(FAULT_429, "429", false)                /* with Retry-After: 1 */                                                \
    X(FAULT_HANG, "hang", false)              /* no answer and no effect */                                            \
    X(FAULT_GARBAGE, "garbage", true)         /* 201 and something that is no JSON */                                  \
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
    int64_t times;   /* left; -1: for ever */
    int64_t ms;      /* FAULT_SLOW, FAULT_LATE */
    char match[128]; /* a part of the body; "" matches all */
    uint64_t fired;
};

struct fault_plan {
    struct fault_rule rules[FAULT_RULES_MAX];
    size_t rule_count;
    unsigned chaos_percent;
    unsigned weights[FAULT_MODE_COUNT]; /* of the modes in chaos */
    unsigned ms_max;                    /* chaos: the longest wait of slow and late */
    uint64_t seed, fired;
    struct map seen; /* key -> how often, for chaos */
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
 * {"route": "charges" | "*", "mode": NAME, "times": N, "match": TEXT | null, "ms": N}. `times` is 1 when absent and -1
 * for ever; "slow-250" is short for {"mode": "slow", "ms": 250}. `rule` is checked JSON. ERR_INVALID with a sentence.
 */
/*
 * {"percent": N, "seed": N, "ms": N, "modes": {NAME: WEIGHT, ...}}, each of them optional; `modes` replaces the
 * weights. ERR_INVALID with a sentence, and nothing is changed.
 */
MUST_USE enum err_code fault_plan_set_chaos(struct fault_plan *plan, struct slice chaos, struct err *err);
MUST_USE enum err_code fault_plan_add(struct fault_plan *plan, struct slice rule, struct err *err);
struct fault_decision fault_plan_take(struct fault_plan *plan, enum route route, struct slice key, struct slice body);
void fault_plan_write(const struct fault_plan *plan, struct buffer *out);

#endif
