/* What the lists of sagas, cases and operations share of their filters. Everything is copied into the arena of the
 * work. */
#ifndef SAGAD_RUN_QUERY_FILTER_H
#define SAGAD_RUN_QUERY_FILTER_H

#include "run/query/walk.h"

/* The values between the commas. SLICE_NONE has no value, an empty text has one that is empty. */
const struct slice *filter_split(struct work *work, struct slice list, size_t *count);
/* Is the text one of the values? Without values everything is. SLICE_NONE is the empty text. */
bool filter_has(const struct slice *values, size_t count, struct slice text);
/*
 * Each way to take one value of each name, as a JSON object of texts: a saga is wanted when it has all tags of one of
 * them. False: there are too many ways, and the work has been ended.
 */
bool filter_tags(struct work *work, const struct engine_tag *tags, size_t tag_count, const struct slice **out,
                 size_t *out_count);
/* sagas.c: which sagas are wanted, as far as the tables know. False: it cannot be read, and the work has been ended. */
bool work_read_sagas(struct work *work, const struct engine_sagas *wanted, struct list_sagas *list);

#endif
