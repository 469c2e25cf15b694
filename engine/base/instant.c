/* Our own calendar arithmetic: the C library would ask for a time zone. */
#include "base/instant.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"

#define YEAR_0_MS INT64_C(-62167219200000)
#define YEAR_9999_END_MS INT64_C(253402300799999)

/* Days since 1970-01-01 of a civil date and back: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms". */
static int64_t days_from_civil(int64_t y, int m, int d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;

    return era * 146097 + doe - 719468;
}

void instant_date(int64_t z, int64_t *y, int *m, int *d)
{
    z += 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;

    *d = (int)(doy - (153 * mp + 2) / 5 + 1);
    *m = (int)(mp < 10 ? mp + 3 : mp - 9);
    *y = yoe + era * 400 + (*m <= 2);
}

static char *put_digits(char *out, int value, int count)
{
    for (int i = count - 1; i >= 0; i--, value /= 10) {
        out[i] = (char)('0' + value % 10);
    }
    return out + count;
}

void instant_text(int64_t ms, char out[INSTANT_TEXT_BYTES])
{
    static const char form[INSTANT_TEXT_BYTES] = "0000-00-00T00:00:00.000Z";

    int64_t days = ms / 86400000, rest = ms % 86400000, year;
    int month, day;

    if (rest < 0) {
        rest += 86400000;
        days--;
    }
    instant_date(days, &year, &month, &day);
    year = year < 0 ? 0 : year > 9999 ? 9999 : year; /* the earliest and the latest year are stretched */
    memcpy(out, form, sizeof(form)); /* not printf(): a saga writes ten instants, and it takes twenty times as long */
    out = put_digits(out, (int)year, 4) + 1;
    out = put_digits(out, month, 2) + 1;
    out = put_digits(out, day, 2) + 1;
    out = put_digits(out, (int)(rest / 3600000), 2) + 1;
    out = put_digits(out, (int)(rest / 60000 % 60), 2) + 1;
    out = put_digits(out, (int)(rest / 1000 % 60), 2) + 1;
    put_digits(out, (int)(rest % 1000), 3);
}

static bool digits(const char **at, const char *end, int count, int *value)
{
    *value = 0;
    for (int i = 0; i < count; i++, (*at)++) {
        if (*at >= end || **at < '0' || **at > '9') {
            return false;
        }
        *value = *value * 10 + (**at - '0');
    }
    return true;
}

static bool one_of(const char **at, const char *end, const char *set)
{
    if (*at >= end || !**at || !strchr(set, **at)) {
        return false;
    }
    (*at)++;
    return true;
}

static bool is_date(int y, int m, int d)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;

    return m >= 1 && m <= 12 && d >= 1 && d <= days[m - 1] + (m == 2 && leap);
}

bool instant_parse(struct slice text, int64_t *ms)
{
    const char *at = text.ptr, *end = text.ptr + text.len;
    int y, mo, d, h, mi, s, millis = 0, offset = 0;

    if (!text.ptr || !digits(&at, end, 4, &y) || !one_of(&at, end, "-") || !digits(&at, end, 2, &mo) ||
        !one_of(&at, end, "-") || !digits(&at, end, 2, &d) || !one_of(&at, end, "Tt ") || !digits(&at, end, 2, &h) ||
        !one_of(&at, end, ":") || !digits(&at, end, 2, &mi) || !one_of(&at, end, ":") || !digits(&at, end, 2, &s)) {
        return false;
    }
    if (!is_date(y, mo, d) || h > 23 || mi > 59 || s > 59) {
        return false;
    }
    if (at < end && *at == '.') {
        int count = 0, scale = 100;

        for (at++; at < end && *at >= '0' && *at <= '9' && count < 9; at++, count++, scale /= 10) {
            millis += (*at - '0') * scale;
        }
        if (count == 0) {
            return false;
        }
    }
    if (!one_of(&at, end, "Zz")) {
        int oh, om;
        bool minus = at < end && *at == '-';

        if (!one_of(&at, end, "+-") || !digits(&at, end, 2, &oh) || !one_of(&at, end, ":") ||
            !digits(&at, end, 2, &om) || oh > 23 || om > 59) {
            return false;
        }
        offset = (oh * 60 + om) * (minus ? -1 : 1);
    }
    if (at != end) {
        return false;
    }
    int64_t instant = days_from_civil(y, mo, d) * INT64_C(86400000) + h * INT64_C(3600000) +
                      (mi - offset) * INT64_C(60000) + s * INT64_C(1000) + millis;

    if (instant < YEAR_0_MS ||
        instant > YEAR_9999_END_MS) { /* an offset moved it beyond what instant_text() can write */
        return false;
    }
    *ms = instant;
    return true;
}

static const struct {
    const char *unit;
    int64_t ms;
} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};

bool duration_parse(struct slice text, int64_t *ms)
{
    size_t len = 0;
    int64_t number, total;

    while (len < text.len && text.ptr[len] >= '0' && text.ptr[len] <= '9') {
        len++;
    }
    if (len == 0 || len > 15 || !slice_to_i64((struct slice){text.ptr, len}, &number)) {
        return false;
    }
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (slice_is((struct slice){text.ptr + len, text.len - len}, units[i].unit)) {
            if (__builtin_mul_overflow(number, units[i].ms, &total) || total > DURATION_MS_MAX) {
                return false;
            }
            *ms = total;
            return true;
        }
    }
    return false;
}

void duration_text(int64_t ms, char out[INSTANT_TEXT_BYTES])
{
    if (ms < 0) {
        ms = 0;
    }
    if (ms < 1000) {
        (void)snprintf(out, INSTANT_TEXT_BYTES, "%dms", (int)ms);
    } else if (ms < 10000) {
        (void)snprintf(out, INSTANT_TEXT_BYTES, "%d.%ds", (int)(ms / 1000), (int)(ms / 100 % 10));
    } else if (ms < 60000) {
        (void)snprintf(out, INSTANT_TEXT_BYTES, "%ds", (int)(ms / 1000));
    } else if (ms < 3600000) {
        (void)snprintf(out, INSTANT_TEXT_BYTES, "%dm %ds", (int)(ms / 60000), (int)(ms / 1000 % 60));
    } else if (ms < 86400000) {
        (void)snprintf(out, INSTANT_TEXT_BYTES, "%dh %dm", (int)(ms / 3600000), (int)(ms / 60000 % 60));
    } else {
        (void)snprintf(out, INSTANT_TEXT_BYTES, "%lldd %dh", (long long)(ms / 86400000), (int)(ms / 3600000 % 24));
    }
}
