/*
 * The time as the turns of a loop see it: it is read at most once a turn, when somebody first asks. UTC is this
 * machine's until another clock is followed (base/followed_clock.h); from then on it does not go back. The clocks are
 * the machine's in loop.c, and those of a simulated world in the simulator.
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
    struct followed_clock followed; /* the source of UTC, once it is set */
    int64_t shown_ms;               /* with a followed clock: the last time that was returned */
};

void turn_clock_read(struct turn_clock *clock); /* reads at once; later answers are at least as new */
void turn_clock_age(struct turn_clock *clock);  /* the next question reads the clocks again */
int64_t turn_clock_boot_us(struct turn_clock *clock);
int64_t turn_clock_wall_ms(struct turn_clock *clock);

#endif
