/* See pace.h. */
#include "run/call/pace.h"

#include "base/check.h"

#define UNSAID_MS 250 /* when to ask again if nobody can say, because a place may become free at any time */

int64_t pace_closed_ms(const struct pace *pace, int64_t now_ms)
{
    return pace->closed_until_ms > now_ms ? pace->closed_until_ms - now_ms : 0;
}

void pace_close(struct pace *pace, enum pace_why why, int64_t retry_after_ms, int64_t now_ms, uint32_t salt)
{
    int64_t wait = retry_after_ms > 0 ? retry_after_ms : UNSAID_MS;
    int64_t until = now_ms + wait + (int64_t)(salt % 1000) * wait / 10000;

    if (until > pace->closed_until_ms) {
        pace->closed_until_ms = until;
        pace->why = why;
    }
    pace->width = 1;
    pace->refused = true;
}

void pace_open(struct pace *pace)
{
    pace->closed_until_ms = 0;
    pace->width = 1;
}

uint32_t pace_begin_group(struct pace *pace, uint32_t waiting)
{
    uint32_t width = pace->width > 0 ? pace->width : 1;

    CHECK(pace->asking == 0);
    pace->refused = false;
    pace->asking = waiting < width ? waiting : width;
    return pace->asking;
}

bool pace_end_one(struct pace *pace, bool granted, int64_t now_ms, uint32_t salt, int64_t *delay_ms)
{
    int64_t gap = 0;

    CHECK(pace->asking > 0);
    pace->refused = pace->refused || !granted;
    if (--pace->asking > 0) {
        return false;
    }
    if (!pace->refused) {
        uint32_t width = pace->width > 0 ? pace->width : 1;

        pace->width = width >= PACE_WIDTH_MAX / 2 ? PACE_WIDTH_MAX : width * 2;
        gap = pace->why == PACE_BREAKER || pace->why == PACE_PAUSED || pace->why == PACE_AWAY
                  ? PACE_GAP_MS + (int64_t)(salt % PACE_GAP_MS)
                  : 0;
    }
    *delay_ms = pace_closed_ms(pace, now_ms);
    *delay_ms = *delay_ms > gap ? *delay_ms : gap;
    return true;
}
