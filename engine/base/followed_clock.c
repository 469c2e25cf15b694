/* See followed_clock.h. */
#include "base/followed_clock.h"

#include "base/check.h"

#define PART 50 /* one part in this many of the time that passes corrects the clock */

void followed_clock_set(struct followed_clock *clock, int64_t theirs_ms, int64_t ours_ms)
{
    clock->ahead_ms = clock->is_set ? followed_clock_at(clock, ours_ms) - ours_ms : theirs_ms - ours_ms;
    clock->target_ms = theirs_ms - ours_ms;
    clock->ours_ms = ours_ms;
    clock->is_set = true;
}

void followed_clock_step(struct followed_clock *clock, int64_t theirs_ms, int64_t ours_ms)
{
    int64_t now_ms = clock->is_set ? followed_clock_at(clock, ours_ms) : theirs_ms;

    *clock = (struct followed_clock){.is_set = false};
    followed_clock_set(clock, theirs_ms > now_ms ? theirs_ms : now_ms, ours_ms);
}

int64_t followed_clock_at(const struct followed_clock *clock, int64_t ours_ms)
{
    int64_t missing_ms = clock->target_ms - clock->ahead_ms, most_ms = (ours_ms - clock->ours_ms) / PART;

    CHECK(clock->is_set);
    most_ms = most_ms < 0 ? 0 : most_ms;
    missing_ms = missing_ms > most_ms ? most_ms : missing_ms < -most_ms ? -most_ms : missing_ms;
    return ours_ms + clock->ahead_ms + missing_ms;
}
