/*
 * The time as the turns of a loop see it: read once a turn and lazily, by whoever asks first. UTC is this machine's
 * until somebody else's is followed (base/followed_clock.h); from then on it does not go back. Whose clocks they are
 * the loop says: the machine's in loop.c, those of a simulated world in the simulator.
 */
#ifndef SAGAD_IO_LOOP_TURN_CLOCK_H
#define SAGAD_IO_LOOP_TURN_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/followed_clock.h"

struct turn_clock {
    void (*read)(struct turn_clock *clock); /* sets the next two */
    int64_t boot_us, wall_ms;
    bool is_fresh;
    struct followed_clock followed; /* where UTC comes from, once it is set */
    int64_t shown_ms;               /* of a clock that is followed: the last that was told */
};

void turn_clock_read(struct turn_clock *clock); /* now; what is asked from now on is at least of now */
void turn_clock_age(struct turn_clock *clock);  /* the next who asks reads */
int64_t turn_clock_boot_us(struct turn_clock *clock);
int64_t turn_clock_wall_ms(struct turn_clock *clock);

#endif
