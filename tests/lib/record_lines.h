/*
 * A saga's log as a test keeps it: each line is one record, as the API shows it. A trial writes what it decides as
 * text, reads the text back and folds it. So no test depends on what only memory knew.
 */
#ifndef SAGAD_TESTS_RECORD_LINES_H
#define SAGAD_TESTS_RECORD_LINES_H

#include "core/saga/saga.h"

void record_line_put(struct buffer *log, const struct record *record, const struct definition *definition);
/* Gives the line at `from`, and the place where the line after it begins. */
size_t record_line_next(const struct buffer *log, size_t from, struct slice *line);
/* Applies one line. Fails the test when the record cannot be read or does not fit, or when the state is not sound after
 * it. */
void record_line_fold(struct saga *saga, struct slice line, struct arena *arena);

#endif
