/* Makes the steps of a saga a tree of groups and their members, ready to be drawn line by line. */
#ifndef SAGACTL_SHOW_TREE_H
#define SAGACTL_SHOW_TREE_H

#include "tools/sagactl/show_steps.h"

#define ROW_NONE UINT32_MAX

struct row { /* a step */
    struct slice step, name, status;
    uint32_t parent, first, last, next; /* ROW_NONE: none */
    uint32_t member_count;
    bool is_group;
    bool hidden;
};

struct line { /* a row, or (ROW_NONE) the sum of the rows that are left out */
    uint32_t row;
    struct slice prefix, below; /* branches of the tree in front of the row, and of the lines below it */
    struct slice text;
};

struct tree {
    const struct timeline *of;
    struct row *rows; /* in the order of the saga */
    uint32_t count;
    struct line *lines; /* in the order in which they are shown */
    size_t line_count, line_capacity;
};

/* Fills a zeroed tree, which lies in the arena of ctl. */
void tree_grow(struct tree *tree, const struct timeline *of);

#endif
