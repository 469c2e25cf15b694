/*
 * Loop detection for callers that go round in circles: the tail of a run's emissions being `repeats` copies of a block
 * of at most `max_cycle` calls. A signature is a call (tool, scope, fingerprint) and the digest of the answer it was
 * given last, so that polling with changing answers is no loop. Pure: part of a saga's state, copied
 * by value.
 */
#ifndef SAGAD_CORE_RECORD_LOOP_GUARD_H
#define SAGAD_CORE_RECORD_LOOP_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/text.h"

#define LOOP_REPEATS_DEFAULT 3
#define LOOP_MAX_CYCLE_DEFAULT 2
#define LOOP_REPEATS_MAX 10
#define LOOP_CYCLE_MAX 8
#define LOOP_ENTRIES_MAX (LOOP_REPEATS_MAX * LOOP_CYCLE_MAX)

struct loop_entry {
    uint64_t call;   /* the digest of tool, scope and fingerprint */
    uint64_t answer; /* the digest of what it was given; 0: not answered yet */
    uint32_t step;   /* the step whose operation it was about */
};

struct loop_guard {
    uint32_t repeats, max_cycle;
    struct loop_entry entries[LOOP_ENTRIES_MAX]; /* the newest, oldest first */
    uint32_t count;
    uint64_t closed[LOOP_CYCLE_MAX]; /* calls that are refused until a new turn, or a person */
    uint32_t closed_count;
    uint32_t trips;
};

uint64_t loop_call(struct slice tool, struct slice scope, const struct digest *fingerprint);
uint64_t loop_answer(const struct digest *answer);

void loop_guard_init(struct loop_guard *guard, uint32_t repeats, uint32_t max_cycle);
bool loop_guard_is_closed(const struct loop_guard *guard, uint64_t call);
/* Would one more emission of this call, given the answer that it was given last, close a loop? The length of the block,
 * or 0. The block is the tail of `entries` with this call as its last. */
uint32_t loop_guard_trips(const struct loop_guard *guard, uint64_t call);
/* Has the last emission of this call not been answered yet? One more is a race then, and is not to be added. */
bool loop_guard_is_race(const struct loop_guard *guard, uint64_t call);
void loop_guard_add(struct loop_guard *guard, uint64_t call, uint32_t step);
void loop_guard_answered(struct loop_guard *guard, uint32_t step,
                         uint64_t answer); /* entries about this operation that have no answer yet */
void loop_guard_close(struct loop_guard *guard, const uint64_t *calls, uint32_t count); /* one trip more */
/* The same for the block of this length that loop_guard_trips() found: the call that would have been its last is, one
 * copy before, the oldest of these entries. */
void loop_guard_close_block(struct loop_guard *guard, uint32_t length);
void loop_guard_open(
    struct loop_guard *guard); /* a new turn, or a person: nothing is closed, nothing is counted; trips stay */

#endif
