/* Parts of what `stats` prints, for `top` as well. */
#ifndef SAGACTL_STATS_H
#define SAGACTL_STATS_H

#include "tools/sagactl/command.h"

void stats_print_counts(struct ctl *ctl, struct slice sagas); /* what somebody has to do something about stands first */
/* Those with most that nobody knows come first, `most` of them. `sagactl tools` has the other figures. */
void stats_print_tools(struct ctl *ctl, struct slice tools, size_t most);
/* `stats --since`: over time, or with `by` a line for each saga or tool. NULL: an hour; over time. */
int stats_series(struct ctl *ctl, const char *since, const char *by);

#endif
