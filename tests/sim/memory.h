/*
 * Whose memory is it? An engine that is killed leaves everything as it was: its memory is thrown away as a whole.
 *
 * The linker puts these in front of malloc() and its family (-Wl,--wrap) in all that is linked statically; cJSON gets
 * them by cJSON_InitHooks(). Each allocation belongs to the owner that was set when it was made, and is freed whoever
 * frees it.
 */
#ifndef SAGAD_TESTS_SIM_MEMORY_H
#define SAGAD_TESTS_SIM_MEMORY_H

#include <stddef.h>

struct memory_owner { /* zeroed: owns nothing */
    struct memory_block *first;
    size_t bytes, count;
};

void memory_setup(void); /* once, before anything else */
struct memory_owner *
memory_switch(struct memory_owner *owner);    /* NULL: nobody's, the simulation's own; returns the one before */
void memory_drop(struct memory_owner *owner); /* frees all of it */
extern size_t memory_given_back;              /* how often the engines have called memory_give_back() */

#endif
