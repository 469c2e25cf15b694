/*
 * Whose memory is it? An engine that is killed leaves everything as it was: the simulation throws its memory away as a
 * whole.
 *
 * The linker puts these functions in front of malloc() and its family (-Wl,--wrap) in all that is linked statically;
 * cJSON gets them by cJSON_InitHooks(). Each allocation belongs to the owner that was set when it was made, whoever
 * frees it.
 */
#ifndef SAGAD_TESTS_SIM_MEMORY_H
#define SAGAD_TESTS_SIM_MEMORY_H

#include <stddef.h>

struct memory_owner { /* zeroed: the owner has no memory */
    struct memory_block *first;
    size_t bytes, count;
};

void memory_setup(void); /* must be called once, before everything else */
struct memory_owner *
memory_switch(struct memory_owner *owner);    /* NULL: the simulation's own memory; returns the previous owner */
void memory_drop(struct memory_owner *owner); /* frees all memory of the owner */
extern size_t memory_given_back;              /* how often the engines have called memory_give_back() */

#endif
