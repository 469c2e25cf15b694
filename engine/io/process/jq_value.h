/*
 * JSON in and out of libjq without rounding a number.
 *
 * libjq 1.6 holds a number as a double and prints the shortest decimal of that. A number whose value that would change
 * (9007199254740993, 1e400, more than 17 digits) goes in as a mark: a signalling NaN that holds its place in a table of
 * texts, and the sign of the number. Copying moves the mark, and its text comes out again, byte for byte. A change
 * of the sign (`-x`, `fabs`, `length`) is a change of the mark's sign, and so is exact, too. Any other use (arithmetic,
 * a comparison, sorting, an index, tostring, interpolation, a conversion) makes the processor raise FE_INVALID, which
 * it does for no other operand of a quiet kind; the caller looks at that flag after the program has run.
 *
 * No text from outside can be taken for a mark: JSON has no NaN, jq's own `nan` is a quiet one, arithmetic gives quiet
 * ones only, and a mark of an earlier evaluation has another generation.
 *
 * A number of which only the spelling would change (2.50, 1e2) is marked as well in a first run, so that a copy keeps
 * its bytes. A program that calculates with it runs again with its double, which holds its value.
 */
#ifndef SAGAD_IO_PROCESS_JQ_VALUE_H
#define SAGAD_IO_PROCESS_JQ_VALUE_H

#include <jq.h>

#include "base/arena.h"

enum jq_marking {
    JQ_MARK_SPELLING, /* every number that libjq would print with other bytes */
    JQ_MARK_VALUE     /* every number that libjq would print as another number */
};

struct jq_marks { /* the marks of one evaluation */
    enum jq_marking marking;
    uint32_t generation;
    struct arena arena;
    struct slice *texts; /* without sign */
    size_t count, capacity;
    size_t spelling_count; /* marks of JQ_MARK_SPELLING, whose value a double holds */
    struct slice sample;   /* the first one that a double does not hold, for a message */
};

/* Is this processor one on which marks work? Checked once, when a helper begins. */
bool jq_marks_work(void);
void jq_marks_init(struct jq_marks *marks, enum jq_marking marking);
void jq_marks_fini(struct jq_marks *marks);

/* Forget what was raised before; then say whether a number was used since, other than by copying it. */
void jq_marks_watch(void);
bool jq_marks_touched(const struct jq_marks *marks);

/* The value of a JSON text, which is borrowed until jq_marks_fini(). Invalid, without a message, where
 * it is no JSON. */
jv jq_value_read(struct slice json, struct jq_marks *marks);
/* The number that jq's `tonumber` makes of a text: as jq reads it, but never another number. Invalid: it is none. */
jv jq_value_number(struct slice text, struct jq_marks *marks);

enum jq_written { JQ_WRITTEN, JQ_WRITTEN_TOO_LARGE, JQ_WRITTEN_TOO_DEEP, JQ_WRITTEN_NO_NUMBER, JQ_WRITTEN_NAN };

/*
 * Appends the JSON of a value, which is consumed. JQ_WRITTEN_NO_NUMBER: it holds an infinite number, or what once was a
 * mark. JQ_WRITTEN_NAN: it holds NaN, which libjq would print as null.
 */
enum jq_written jq_value_write(jv value, const struct jq_marks *marks, size_t bytes_max, struct buffer *out);

#endif
