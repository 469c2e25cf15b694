/* Reads comma-separated values (RFC 4180): a head and rows. */
#ifndef SAGACTL_CSV_H
#define SAGACTL_CSV_H

#include "base/arena.h"

#define CSV_COLUMNS_MAX 200

struct csv {
    struct slice rest; /* the text that is not read yet */
    struct arena *arena;
    struct slice head[CSV_COLUMNS_MAX];
    size_t column_count;
    size_t row;        /* the number of the last row that was read; the first row after the head is 1 */
    const char *fault; /* why that row or the head cannot be read; NULL: no fault */
};

void csv_begin(struct csv *csv, struct slice text, struct arena *arena); /* reads the head */
/* Reads the cells of the next row, as many as the head has; missing cells are empty. False: there are no more rows, or
 * there is a fault. */
bool csv_next(struct csv *csv, struct slice cells[CSV_COLUMNS_MAX]);
bool csv_find(const struct csv *csv, struct slice name, size_t *column);

#endif
