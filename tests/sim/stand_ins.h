/* Replacements in the simulation for a kernel, a process, worker threads and other services. */
#ifndef SAGAD_TESTS_SIM_STAND_INS_H
#define SAGAD_TESTS_SIM_STAND_INS_H

#include "tests/sim/node.h"

void stand_ins_begin(struct node *node); /* the node starts: its life has begun */

#endif
