/*
 * The seed of a run of tests. Each run draws another seed, so that many short runs add up to a long one. tools/test
 * prints the seed, and `tools/test --seed N` repeats it.
 */
#ifndef SAGAD_TESTS_TEST_SEED_H
#define SAGAD_TESTS_TEST_SEED_H

#include <stdbool.h>
#include <stdint.h>

/* Gives SAGAD_TEST_SEED where that is set, else a seed made from the clock. */
uint64_t test_seed(void);

/* Reads a number, or "new". "new" gives test_seed(), spread out so that the ranges of neighbouring seeds do not
 * overlap. False: the text is neither. */
bool test_seed_read(const char *text, uint64_t *out);

#endif
