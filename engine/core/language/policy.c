/* Calculates retries. Jitter is a hash and not a random number, so that a replay shows the same delays. */
#include "core/language/policy.h"

#include <string.h>

#include "base/check.h"

#define RETRY_MAX_MS (INT64_C(5) * 60 * 1000)
#define RETRY_FACTOR_MILLI 2000
#define RETRY_UNSENT_MAX 10

static const struct {
    const char *name;
    uint32_t max_attempts;
    int64_t initial_ms;
} effects[EFFECT_COUNT] = {
#define X(id, text, attempts, initial) [id] = {text, attempts, initial},
    EFFECT_MAP(X)
#undef X
};

const char *effect_name(enum effect effect)
{
    CHECK((unsigned)effect < EFFECT_COUNT);
    return effects[effect].name;
}

bool effect_parse(struct slice name, enum effect *out)
{
    for (unsigned i = 0; i < EFFECT_COUNT; i++) {
        if (slice_is(name, effects[i].name)) {
            *out = (enum effect)i;
            return true;
        }
    }
    return false;
}

struct retry_policy retry_policy_default(enum effect effect)
{
    CHECK((unsigned)effect < EFFECT_COUNT);
    return (struct retry_policy){
        .max_attempts = effects[effect].max_attempts,
        .max_unsent = RETRY_UNSENT_MAX,
        .initial_ms = effects[effect].initial_ms,
        .max_ms = RETRY_MAX_MS,
        .factor_milli = RETRY_FACTOR_MILLI,
    };
}

struct retry_policy retry_policy_with(struct retry_policy policy, const struct retry_policy *own)
{
    policy.max_attempts = own->max_attempts ? own->max_attempts : policy.max_attempts;
    policy.max_unsent = own->max_unsent ? own->max_unsent : policy.max_unsent;
    policy.factor_milli = own->factor_milli ? own->factor_milli : policy.factor_milli;
    policy.initial_ms = own->initial_ms ? own->initial_ms : policy.initial_ms;
    policy.max_ms = own->max_ms ? own->max_ms : policy.max_ms;
    if (own->initial_ms && !own->max_ms && policy.max_ms < policy.initial_ms) {
        policy.max_ms = policy.initial_ms;
    }
    return policy;
}

enum effect effect_stricter(enum effect a, enum effect b)
{
    CHECK((unsigned)a < EFFECT_COUNT && (unsigned)b < EFFECT_COUNT);
    return a > b ? a : b; /* EFFECT_MAP lists the classes in this order */
}

static int64_t backoff_ms(const struct retry_policy *policy, uint32_t number)
{
    int64_t backoff = policy->initial_ms;

    for (uint32_t i = 1; i < number && backoff < policy->max_ms; i++) {
        if (backoff > INT64_MAX / policy->factor_milli) {
            return policy->max_ms;
        }
        int64_t next = backoff * policy->factor_milli / 1000;

        if (next == backoff) { /* the factor is 1, or the delay is too small to grow by whole milliseconds */
            break;
        }
        backoff = next;
    }
    return backoff < policy->max_ms ? backoff : policy->max_ms;
}

/* The finalizer of splitmix64 (Steele, Lea, Flood, 2014). The key is a SHA-256 already, so only the number has to be
 * spread. */
static uint64_t jitter(const struct op_key *key, uint32_t number)
{
    uint64_t halves[2];

    memcpy(halves, key->uuid.bytes, sizeof(halves));
    uint64_t z = halves[0] ^ halves[1] ^ ((uint64_t)number * UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t retry_due_ms(const struct retry_policy *policy, uint32_t number, int64_t now_ms, int64_t retry_after_ms,
                     const struct op_key *key)
{
    CHECK(policy->initial_ms > 0 && policy->max_ms > 0 && policy->factor_milli >= 1000);
    int64_t backoff = backoff_ms(policy, number);
    int64_t delay = 1 + (int64_t)(jitter(key, number) % (uint64_t)backoff);

    if (delay < retry_after_ms) {
        delay = retry_after_ms;
    }
    return now_ms > INT64_MAX - delay ? INT64_MAX : now_ms + delay;
}
