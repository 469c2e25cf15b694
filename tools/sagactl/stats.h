/* Parts of the output of `stats`, which `top` prints as well. */
#ifndef SAGACTL_STATS_H
#define SAGACTL_STATS_H

#include "tools/sagactl/command.h"

/* Prints at most `most` tools, those with the most unknown outcomes first. `sagactl tools` has the other figures. */
void stats_print_tools(struct ctl *ctl, struct slice tools, size_t most);
/* Does `stats --since`: figures over time, or with `by` a line for each saga or tool. NULL: the last hour; figures over
 * time. */
int stats_series(struct ctl *ctl, const char *since, const char *by);

#endif
