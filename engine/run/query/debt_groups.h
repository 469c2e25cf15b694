/* Debts, counted in groups: by tool, by definition, by tags of their sagas. Sums of money are for each currency. */
#ifndef SAGAD_RUN_QUERY_DEBT_GROUPS_H
#define SAGAD_RUN_QUERY_DEBT_GROUPS_H

#include "run/request/work.h"

struct debt_groups;

/* `by`: tool, saga, tag.NAME, with commas between. NULL: it cannot be read. Lies in the arena of the work. */
struct debt_groups *debt_groups_new(struct work *work, struct slice by);
void debt_groups_add(struct debt_groups *groups, struct slice debt); /* as the list shows it */
/* The groups, the largest first, with commas between. */
void debt_groups_write(const struct debt_groups *groups, struct buffer *out);

#endif
