/* See exhaustive.c. */
#ifndef SAGAD_TESTS_SIM_EXHAUSTIVE_H
#define SAGAD_TESTS_SIM_EXHAUSTIVE_H

#include "tests/sim/campaign.h"

/* Tries each commit of each scenario with each fate, singly or in pairs. False: a run broke an invariant, and exhaust()
 * has reported it. */
bool exhaust(const struct campaign *how, const struct scenario *scenarios, uint32_t count, bool pairs);

#endif
