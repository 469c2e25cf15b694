/* Shows the steps of a saga as a timeline: a tree of groups and their members, each with its bar and the lane of its
 * undo. */
#ifndef SAGACTL_SHOW_STEPS_H
#define SAGACTL_SHOW_STEPS_H

#include "tools/sagactl/command.h"

struct timeline {
    struct ctl *ctl;
    struct slice saga;       /* JSON, as the service answers it */
    struct slice operations; /* a JSON array, to count duplicates by; SLICE_NONE: none */
    bool nested;             /* ids tell the group of a step; false where an agent chose the ids */
    bool all;                /* shows each of many members */
};

void show_steps(const struct timeline *timeline);

#endif
