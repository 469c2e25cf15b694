/*
 * The seed of a run of tests. Each run draws another one, so that many short runs add up to a long one; tools/test
 * prints it, and `tools/test --seed N` repeats it.
 */
#ifndef SAGAD_TESTS_TEST_SEED_H
#define SAGAD_TESTS_TEST_SEED_H

#include <stdbool.h>
#include <stdint.h>

/* SAGAD_TEST_SEED where it is set, else one made from the clock. */
uint64_t test_seed(void);

/* Reads a number, or "new" for test_seed() spread out so that the ranges of neighbouring seeds do not overlap. False:
 * neither. */
bool test_seed_read(const char *text, uint64_t *out);

#endif
