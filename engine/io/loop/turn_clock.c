/* The clock that gives one time to a whole turn of the loop: see turn_clock.h. */
#include "io/loop/turn_clock.h"

void turn_clock_read(struct turn_clock *clock)
{
    clock->read(clock);
    clock->is_fresh = true;
}

void turn_clock_age(struct turn_clock *clock)
{
    clock->is_fresh = false;
}

int64_t turn_clock_boot_us(struct turn_clock *clock)
{
    if (!clock->is_fresh) {
        turn_clock_read(clock);
    }
    return clock->boot_us;
}

int64_t turn_clock_wall_ms(struct turn_clock *clock)
{
    int64_t boot_us = turn_clock_boot_us(clock);
    int64_t wall_ms = clock->wall_ms;

    if (!clock->followed.is_set) {
        return wall_ms;
    }
    wall_ms = followed_clock_at(&clock->followed, boot_us / 1000);
    clock->shown_ms = wall_ms > clock->shown_ms ? wall_ms : clock->shown_ms;
    return clock->shown_ms;
}
