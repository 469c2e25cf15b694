/* Reads an SQL statement without its database: finds its parameters and its first word. */
#ifndef SAGAD_ADAPTERS_SQL_TEXT_H
#define SAGAD_ADAPTERS_SQL_TEXT_H

#include "base/arena.h"
#include "base/text.h"

#define SQL_PARAMS_MAX 64

struct sql_text {
    struct slice text;    /* the text that the server gets: $key is $N, the number behind the last parameter */
    struct slice command; /* the command's first word, in capitals */
    uint64_t used;        /* bit n - 1 is set when the text has $n */
    int highest;          /* the highest n of a $n */
    bool has_key;         /* the text has $key */
};

/*
 * `param_count` is the number of parameters given; $key becomes the one behind them. Returns NULL, or a sentence that
 * says what is wrong with the statement. Texts, quoted names and comments hold no parameters.
 */
const char *sql_text_read(struct slice statement, int param_count, struct arena *arena, struct sql_text *out);

#endif
