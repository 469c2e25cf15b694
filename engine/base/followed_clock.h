/*
 * An estimate of another machine's clock of the day. Between two readings of it, our own monotonic clock carries on.
 *
 * When the other clock steps, the estimate does not: it runs a fiftieth faster or slower until it agrees. It never goes
 * back, and an activity that has just begun does not age at once. The module is pure: it reads no clock.
 */
#ifndef SAGAD_BASE_FOLLOWED_CLOCK_H
#define SAGAD_BASE_FOLLOWED_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct followed_clock { /* zeroed: the other clock was never read */
    bool is_set;
    int64_t ours_ms, ahead_ms; /* at `ours_ms` of our clock, the estimate was `ahead_ms` ahead */
    int64_t target_ms;         /* how far ahead the other clock really was */
};

void followed_clock_set(struct followed_clock *clock, int64_t theirs_ms,
                        int64_t ours_ms); /* both read at one instant; the first reading is taken as it is */
/* The other clock was moved on purpose: the estimate agrees at once. It does not go back all the same. */
void followed_clock_step(struct followed_clock *clock, int64_t theirs_ms, int64_t ours_ms);
int64_t followed_clock_at(const struct followed_clock *clock, int64_t ours_ms); /* `is_set`; ours_ms does not go back */

#endif
