/* Calculates with decimal text: digits and an exponent, never a binary fraction. */
#include "core/language/decimal.h"

#include <string.h>

struct decimal decimal_of(struct slice number, struct arena *scratch)
{
    char *digits = arena_alloc(scratch, number.len + 1);
    size_t len = 0, start = 0, i = 0;
    int64_t exponent = 0, written = 0;
    bool negative = number.len > 0 && number.ptr[0] == '-', fraction = false;

    for (i = negative; i < number.len && number.ptr[i] != 'e' && number.ptr[i] != 'E'; i++) {
        if (number.ptr[i] == '.') {
            fraction = true;
        } else {
            digits[len++] = number.ptr[i];
            exponent += !fraction;
        }
    }
    if (i < number.len) {
        i += 1 + (i + 1 < number.len && number.ptr[i + 1] == '+');
        (void)slice_to_i64((struct slice){number.ptr + i, number.len - i}, &written); /* json_check() bounded it */
    }
    exponent += written;
    while (start < len && digits[start] == '0') {
        start++;
        exponent--;
    }
    while (len > start && digits[len - 1] == '0') {
        len--;
    }
    if (len == start) {
        return (struct decimal){false, {digits, 0}, 0};
    }
    return (struct decimal){negative, {digits + start, len - start}, exponent};
}

bool decimal_is_integer(const struct decimal *d)
{
    return d->digits.len == 0 || (d->exponent >= 0 && (uint64_t)d->exponent >= d->digits.len);
}

bool decimal_round_up(const struct decimal *d, int64_t max, int64_t *out)
{
    int64_t whole = 0;

    if (d->digits.len > 0 && (d->negative || d->exponent > DIVISOR_DIGITS)) {
        return false;
    }
    for (int64_t i = 0; d->digits.len > 0 && i < d->exponent; i++) {
        whole = whole * 10 + ((size_t)i < d->digits.len ? d->digits.ptr[i] - '0' : 0);
    }
    whole += !decimal_is_integer(d);
    if (whole > max) {
        return false;
    }
    *out = whole;
    return true;
}

int decimal_compare(const struct decimal *a, const struct decimal *b)
{
    int sign_a = a->digits.len == 0 ? 0 : a->negative ? -1 : 1;
    int sign_b = b->digits.len == 0 ? 0 : b->negative ? -1 : 1;

    if (sign_a != sign_b) {
        return sign_a < sign_b ? -1 : 1;
    }
    if (sign_a == 0) {
        return 0;
    }
    if (a->exponent != b->exponent) {
        return a->exponent < b->exponent ? -sign_a : sign_a;
    }
    size_t common = a->digits.len < b->digits.len ? a->digits.len : b->digits.len;
    int order = memcmp(a->digits.ptr, b->digits.ptr, common);

    if (order == 0 && a->digits.len != b->digits.len) {
        order = a->digits.len < b->digits.len ? -1 : 1;
    }
    return order == 0 ? 0 : order < 0 ? -sign_a : sign_a;
}

/* The divisor has DIVISOR_DIGITS digits at most and is not 0. Both are whole numbers times a power of ten. */
bool decimal_is_multiple(const struct decimal *value, const struct decimal *divisor)
{
    int64_t zeros = (value->exponent - (int64_t)value->digits.len) - (divisor->exponent - (int64_t)divisor->digits.len);
    uint64_t by = 0, rest = 0;

    if (value->digits.len == 0) {
        return true;
    }
    if (zeros < 0) {
        return false; /* the last digit of the value is not 0, so the value is no multiple of such a power of ten */
    }
    for (size_t i = 0; i < divisor->digits.len; i++) {
        by = by * 10 + (uint64_t)(divisor->digits.ptr[i] - '0');
    }
    for (size_t i = 0; i < value->digits.len; i++) {
        rest = (rest * 10 + (uint64_t)(value->digits.ptr[i] - '0')) % by;
    }
    for (int64_t i = 0; i < zeros && rest > 0; i++) {
        rest = rest * 10 % by;
    }
    return rest == 0;
}
