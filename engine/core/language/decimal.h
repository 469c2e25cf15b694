/*
 * Numbers as decimal text: exact, whatever their size, because a limit of 9007199254740993 means that number and not
 * its neighbour.
 */
#ifndef SAGAD_CORE_LANGUAGE_DECIMAL_H
#define SAGAD_CORE_LANGUAGE_DECIMAL_H

#include "base/arena.h"

#define DIVISOR_DIGITS 18 /* a remainder and one digit more fit into 64 bits */

struct decimal {
    bool negative;
    struct slice digits; /* without leading and trailing zeros; empty for 0 */
    int64_t exponent;    /* value = 0.DIGITS * 10^exponent */
};

struct decimal decimal_of(struct slice number, struct arena *scratch); /* takes a number that json_check() accepted */
bool decimal_is_integer(const struct decimal *d);
/* Rounds up to an integer. Returns false when that integer does not lie between 0 and `max`. */
bool decimal_round_up(const struct decimal *d, int64_t max, int64_t *out);
int decimal_compare(const struct decimal *a, const struct decimal *b); /* -1, 0, 1 */
bool decimal_is_multiple(
    const struct decimal *value,
    const struct decimal *divisor); /* the divisor is not 0 and has at most DIVISOR_DIGITS digits */

#endif
