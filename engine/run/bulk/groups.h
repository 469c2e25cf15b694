/* Items that have a reason in common: how many, and the names of some. */
#ifndef SAGAD_RUN_BULK_GROUPS_H
#define SAGAD_RUN_BULK_GROUPS_H

#include "base/arena.h"
#include "base/json.h"

#define GROUPS_MAX 20
#define EXAMPLES_MAX 3

struct group { /* items that have a reason in common */
    struct slice reason;
    uint64_t count;
    struct slice examples[EXAMPLES_MAX]; /* what they are called */
};

struct groups {
    struct group items[GROUPS_MAX + 1]; /* the last one takes what is too many */
    size_t count;
};

/* One more item; copies what it keeps. */
void groups_add(struct groups *groups, struct slice reason, struct slice example, struct arena *arena);
/* A member `name`: an array of {`key`: the reason, count, examples}, the largest first. */
void groups_write(struct groups *groups, const char *name, const char *key, bool examples, struct json_writer *w);

#endif
