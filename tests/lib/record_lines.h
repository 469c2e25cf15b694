/*
 * A saga's log as a test keeps it: one line a record, as the API shows it. What a trial decides is written, read back
 * and folded, so that no test depends on what only memory knew.
 */
#ifndef SAGAD_TESTS_RECORD_LINES_H
#define SAGAD_TESTS_RECORD_LINES_H

#include "core/saga/saga.h"

void record_line_put(struct buffer *log, const struct record *record, const struct definition *definition);
size_t record_line_next(const struct buffer *log, size_t from, struct slice *line); /* where the one after it begins */
/* Fails the test when the record cannot be read or does not fit, or the state is not sound after it. */
void record_line_fold(struct saga *saga, struct slice line, struct arena *arena);

#endif
