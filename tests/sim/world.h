/*
 * The simulated world: one thread, one heap of things that will happen, virtual time, and chance from one seed.
 *
 * Everything that a run does is an event of this heap. Two events of one instant happen in an order that chance
 * decides, so that no run depends on who asked first. Nothing here reads a real clock or an address.
 */
#ifndef SAGAD_TESTS_SIM_WORLD_H
#define SAGAD_TESTS_SIM_WORLD_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "tests/property/chance.h"

#define WORLD_START_MS INT64_C(1700000000000) /* UTC, at world->now_us == 0 */

/* Each part draws from a stream of its own, so that a change of one leaves the others' draws as they were. */
enum stream {
    STREAM_ORDER,    /* ties */
    STREAM_NETWORK,  /* delays and cuts between engines and PostgreSQL */
    STREAM_POSTGRES, /* how long statements take, what becomes of a COMMIT */
    STREAM_TOOL,
    STREAM_CLIENT,
    STREAM_PERSON,
    STREAM_FAULT,
    STREAM_ENGINE, /* random_bytes() of the engines */
    STREAM_COUNT
};

struct event { /* lies in its owner; zeroed is not scheduled */
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
    uint64_t event_count; /* that have happened */
    struct chance streams[STREAM_COUNT];
    uint64_t hash;      /* of the trace: two runs of a seed must end with the same */
    bool is_traced;     /* print each line of the trace */
    bool is_healed;     /* no more faults: everything must come to its end */
    struct arena arena; /* for the whole run */
    struct pg *pg;
    struct check *check;
    /* what must not be: the run ends there */
    bool failed;
    char invariant[16]; /* "I3" */
    char violation[1024];
    jmp_buf stop;
};

extern struct world *world; /* the run that is going on: the root of everything here */

void world_init(struct world *w, uint64_t seed);
void world_fini(struct world *w);
void world_at(struct event *event, int64_t delay_us,
              void (*run)(struct event *event)); /* moves it if it is scheduled */
void world_cancel(struct event *event);
bool world_step(void); /* the next event; false: nothing will ever happen again */

uint32_t world_below(enum stream stream, uint32_t n);
bool world_percent(enum stream stream, uint32_t percent);
int64_t world_between(enum stream stream, int64_t least,
                      int64_t most); /* both included; small ones are more likely when the range is wide */

/* One line of what happens; it goes into the hash, and is printed where the world is traced. No addresses in it. */
void world_trace(const char *format, ...) PRINTF_LIKE(1, 2);

/* An invariant ("I1" to "I20", see check.h) or a CHECK of the simulation ("SIM") is broken: does not return. */
_Noreturn void world_violate(const char *invariant, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
