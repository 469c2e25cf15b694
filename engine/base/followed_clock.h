/*
 * Somebody else's clock of the day, believed in between by a clock of ours that only counts on.
 *
 * When the other one steps, ours does not: it runs a fiftieth faster or slower until it has got there. So it never goes
 * back, and what was just begun is not old at once. Pure: no clock is read here.
 */
#ifndef SAGAD_BASE_FOLLOWED_CLOCK_H
#define SAGAD_BASE_FOLLOWED_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct followed_clock { /* zeroed: nothing was heard of the other one yet */
    bool is_set;
    int64_t ours_ms, ahead_ms; /* at that instant of ours it was so far ahead, as we believe */
    int64_t target_ms;         /* and in truth */
};

void followed_clock_set(struct followed_clock *clock, int64_t theirs_ms,
                        int64_t ours_ms); /* at one instant; the first is believed at once */
int64_t followed_clock_at(const struct followed_clock *clock, int64_t ours_ms); /* `is_set`; ours_ms does not go back */

#endif
