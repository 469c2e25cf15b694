/* What can be known of an SQL statement without its database: where its parameters stand, and how it begins. */
#ifndef SAGAD_ADAPTERS_SQL_TEXT_H
#define SAGAD_ADAPTERS_SQL_TEXT_H

#include "base/arena.h"
#include "base/text.h"

#define SQL_PARAMS_MAX 64

struct sql_text {
    struct slice text;    /* as the server gets it: $key is $N, the number behind the last parameter */
    struct slice command; /* its first word, in capitals */
    uint64_t used;        /* bit n - 1: $n stands in it */
    int highest;          /* the highest n */
    bool has_key;         /* $key stands in it */
};

/*
 * `param_count` is the number of parameters given; $key becomes the one behind them. NULL, or a sentence on what is
 * wrong with the statement. What stands in texts, quoted names and comments is none of a parameter's.
 */
const char *sql_text_read(struct slice statement, int param_count, struct arena *arena, struct sql_text *out);

#endif
