/* Holds what happened on stage against what the scenario expects. */
#ifndef SAGACTL_SCENARIO_EXPECT_H
#define SAGACTL_SCENARIO_EXPECT_H

#include "tools/sagactl/scenario/stage.h"

struct difference {
    struct slice pointer;         /* the pointer of the expectation; of the scenario where the play could not go on */
    struct slice expected, found; /* found alone: a sentence */
};

struct differences { /* in the arena of the stage */
    struct difference *items;
    size_t count;
};

void expect_compare(struct stage *stage, struct differences *out);

#endif
