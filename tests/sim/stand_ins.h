/* What engines have instead of a kernel, a process, worker threads and other services. */
#ifndef SAGAD_TESTS_SIM_STAND_INS_H
#define SAGAD_TESTS_SIM_STAND_INS_H

#include "tests/sim/node.h"

void stand_ins_begin(struct node *node); /* it starts: its life has begun */

#endif
