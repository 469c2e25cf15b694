/*
 * How fast those who wait for a guarded tool may ask again. Pure, so that a test can be its clock.
 *
 * One at a time asks after a refusal; each group that is let through doubles the next, so that a tool which has just
 * come back is not met by everybody at once. After a breaker or a pause there is a gap between the groups too.
 */
#ifndef SAGAD_RUN_CALL_PACE_H
#define SAGAD_RUN_CALL_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum pace_why { PACE_OPEN, PACE_RATE, PACE_CONCURRENCY, PACE_BREAKER, PACE_PAUSED, PACE_AWAY, PACE_UNPRICED };

#define PACE_WIDTH_MAX 64
#define PACE_GAP_MS 100

struct pace {                /* zeroed: open, nobody was refused */
    int64_t closed_until_ms; /* the gate is closed until then, by the boot clock */
    enum pace_why why;       /* it was closed last */
    uint32_t width;          /* how many may ask together; 0 counts as 1 */
    uint32_t asking;         /* the calls that ask, of the group under way */
    bool refused;            /* somebody of it was */
};

int64_t pace_closed_ms(const struct pace *pace, int64_t now_ms); /* how long yet; 0: open */
/* Nobody asks before `retry_after_ms` and up to a tenth more (by `salt`, any number) have passed; 0: nobody can say
 * when. Only ever later than it was. */
void pace_close(struct pace *pace, enum pace_why why, int64_t retry_after_ms, int64_t now_ms, uint32_t salt);
void pace_open(struct pace *pace); /* the breaker closed, or a place is free again: the first group may ask now */
uint32_t pace_begin_group(struct pace *pace, uint32_t waiting); /* how many ask now; each ends with pace_end_one() */
/* One of the group has its answer. True: it was the last one, and the next group may begin in `delay_ms`. */
bool pace_end_one(struct pace *pace, bool granted, int64_t now_ms, uint32_t salt, int64_t *delay_ms);

#endif
