/*
 * The simulated world: one thread, one heap of future events, virtual time, and chance from one seed.
 *
 * Everything that a run does is an event of this heap. Chance decides the order of two events of one instant, so that
 * no run depends on who asked first. No code of the world reads a real clock or an address.
 */
#ifndef SAGAD_TESTS_SIM_WORLD_H
#define SAGAD_TESTS_SIM_WORLD_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "tests/property/chance.h"

#define WORLD_START_MS INT64_C(1700000000000) /* the UTC time at world->now_us == 0 */

/* Each part draws from a stream of its own, so that a change of one part leaves the draws of the others as they
 * were. */
enum stream {
    STREAM_ORDER,    /* ties */
    STREAM_NETWORK,  /* delays and cuts between engines and PostgreSQL */
    STREAM_POSTGRES, /* how long statements take, and what becomes of a COMMIT */
    STREAM_TOOL,
    STREAM_CLIENT,
    STREAM_PERSON,
    STREAM_FAULT,
    STREAM_ENGINE, /* random_bytes() of the engines */
    STREAM_COUNT
};

struct event { /* an event lies in its owner; a zeroed event is not scheduled */
    int64_t at_us;
    uint64_t order;
    size_t heap_index; /* 0: not scheduled */
    void (*run)(struct event *event);
};

struct world {
    int64_t now_us;
    uint64_t seed;
    struct event **heap; /* from 1 */
    size_t heap_count, heap_capacity;
    uint64_t event_count; /* the number of events that have happened */
    struct chance streams[STREAM_COUNT];
    uint64_t hash;      /* the hash of the trace: two runs of a seed must end with the same hash */
    bool is_traced;     /* the world prints each line of the trace */
    bool is_healed;     /* no more faults: everything must come to its end */
    struct arena arena; /* memory for the whole run */
    struct pg *pg;
    struct check *check;
    /* A broken rule ends the run at that point. */
    bool failed;
    char invariant[16]; /* "I3" */
    char violation[1024];
    jmp_buf stop;
};

extern struct world *world; /* the run that is going on: the root of everything in this file */

void world_init(struct world *w, uint64_t seed);
void world_fini(struct world *w);
/* Schedules the event, or moves a scheduled event. */
void world_at(struct event *event, int64_t delay_us, void (*run)(struct event *event));
void world_cancel(struct event *event);
bool world_step(void); /* runs the next event; false: nothing will ever happen again */

uint32_t world_below(enum stream stream, uint32_t n);
bool world_percent(enum stream stream, uint32_t percent);
/* Draws a number; both bounds are included. Small values are more likely in a wide range. */
int64_t world_between(enum stream stream, int64_t least, int64_t most);

/* Adds one line to the trace; the hash covers it, and a traced world prints it. Lines must not have addresses. */
void world_trace(const char *format, ...) PRINTF_LIKE(1, 2);

/* Reports that an invariant ("I1" to "I23", see check.h) or a CHECK of the simulation ("SIM") is broken. Does not
 * return. */
_Noreturn void world_violate(const char *invariant, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
