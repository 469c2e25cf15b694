/* The steps of a saga as a timeline: a tree of groups and their members, each with its bar and the lane of its undo. */
#ifndef SAGACTL_SHOW_STEPS_H
#define SAGACTL_SHOW_STEPS_H

#include "tools/sagactl/command.h"

struct timeline {
    struct ctl *ctl;
    struct slice saga;       /* JSON, as the service answers it */
    struct slice operations; /* JSON array, to count duplicates by; SLICE_NONE: none */
    bool nested;             /* ids tell which group a step belongs to: not so where an agent chose them */
    bool all;                /* of many members show each */
};

void show_steps(const struct timeline *timeline);

#endif
