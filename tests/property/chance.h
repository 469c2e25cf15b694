/* Reproducible chance: the same seed gives the same run on every machine. */
#ifndef SAGAD_TESTS_CHANCE_H
#define SAGAD_TESTS_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

struct chance {
    uint64_t state;
};

static inline uint64_t chance_next(struct chance *chance) /* splitmix64 */
{
    uint64_t z = (chance->state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint32_t chance_below(struct chance *chance, uint32_t n)
{
    return (uint32_t)((chance_next(chance) >> 32) * n >> 32);
}

static inline bool chance_percent(struct chance *chance, uint32_t percent)
{
    return chance_below(chance, 100) < percent;
}

/* Makes chance from a name instead of a sequence: it stays the same when something before it is left out. */
static inline struct chance chance_of(uint64_t seed, uint64_t name, uint64_t number)
{
    struct chance chance = {seed ^ (name * UINT64_C(0xff51afd7ed558ccd)) ^ (number * UINT64_C(0xc4ceb9fe1a85ec53))};

    (void)chance_next(&chance);
    return chance;
}

#endif
