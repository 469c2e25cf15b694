/* Reads a cron expression and finds the next minute that fits it. timetable.c handles time zones. */
#include "core/schedule/cron.h"

#include <string.h>

#include "base/instant.h"

#define MINUTE_MS 60000
#define DAY_MS INT64_C(86400000)
#define FIELDS 5
#define THURSDAY 4 /* 1970-01-01 */

static const struct field {
    const char *name;
    int min, max;
    const char *names; /* names of three letters each, from `min` on; "" for a field without names */
} fields[FIELDS] = {
    {"minute", 0, 59, ""},
    {"hour", 0, 23, ""},
    {"day of the month", 1, 31, ""},
    {"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
    {"day of the week", 0, 7, "sunmontuewedthufrisat"},
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool read_number(struct slice *text, int *out)
{
    size_t at = 0;

    *out = 0;
    while (at < text->len && at < 3 && is_digit(text->ptr[at])) {
        *out = *out * 10 + (text->ptr[at++] - '0');
    }
    *text = (struct slice){text->ptr + at, text->len - at};
    return at > 0;
}

static bool read_name(struct slice *text, const struct field *field, int *out)
{
    for (size_t i = 0; text->len >= 3 && field->names[i]; i += 3) {
        if ((text->ptr[0] | 0x20) == field->names[i] && (text->ptr[1] | 0x20) == field->names[i + 1] &&
            (text->ptr[2] | 0x20) == field->names[i + 2]) {
            *out = field->min + (int)(i / 3);
            *text = (struct slice){text->ptr + 3, text->len - 3};
            return true;
        }
    }
    return false;
}

static bool read_value(struct slice *text, const struct field *field, int *out)
{
    return (read_number(text, out) || read_name(text, field, out)) && *out >= field->min && *out <= field->max;
}

static bool skip(struct slice *text, char c)
{
    if (text->len == 0 || text->ptr[0] != c) {
        return false;
    }
    *text = (struct slice){text->ptr + 1, text->len - 1};
    return true;
}

static enum err_code wrong(const struct field *field, struct slice item, struct err *err)
{
    (void)err_set(err, ERR_INVALID, "the field for the %s of this cron expression cannot be read", field->name);
    err_detail(err, "`%.*s`; values are %d to %d%s", item.len > 40 ? 40 : SLICE_ARG(item), field->min, field->max,
               field->names[0] ? " or names of three letters" : "");
    err_hint(err, "write *, a value, a range such as 1-5, a step such as */15 or 10-40/10, or several with commas");
    return ERR_INVALID;
}

static enum err_code read_item(struct slice item, const struct field *field, uint64_t *bits, struct err *err)
{
    struct slice rest = item;
    int from, to, step = 1;
    bool is_range = true;

    if (skip(&rest, '*')) {
        from = field->min;
        to = field->max;
    } else {
        if (!read_value(&rest, field, &from)) {
            return wrong(field, item, err);
        }
        is_range = skip(&rest, '-');
        to = from;
        if (is_range && !read_value(&rest, field, &to)) {
            return wrong(field, item, err);
        }
        if (to == 0 && from > 0) { /* the range ends with Sunday; other fields refuse this below */
            to = field->max == 7 ? 7 : 0;
        }
    }
    if (skip(&rest, '/') && (!is_range || !read_number(&rest, &step) || step < 1)) {
        return wrong(field, item, err);
    }
    if (rest.len > 0 || from > to) {
        return wrong(field, item, err);
    }
    for (int value = from; value <= to; value += step) {
        *bits |= UINT64_C(1) << value;
    }
    return ERR_OK;
}

static enum err_code read_field(struct slice text, const struct field *field, uint64_t *bits, struct err *err)
{
    struct slice items[64];
    size_t count = slice_split(text, ',', items, COUNT_OF(items));

    *bits = 0;
    if (count >= COUNT_OF(items)) {
        return wrong(field, text, err);
    }
    for (size_t i = 0; i < count; i++) {
        enum err_code code = read_item(items[i], field, bits, err);

        if (code != ERR_OK) {
            return code;
        }
    }
    return ERR_OK;
}

/* Is there a day that fits? Every month has each day of the week, so only a day of the month can be missing. */
static bool has_a_day(const struct cron *cron)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    if (!cron->any_week_day && !cron->any_month_day) {
        return true;
    }
    for (int month = 1; month <= 12; month++) {
        if (cron->months >> month & 1 && (cron->month_days & ((UINT64_C(1) << (days[month - 1] + 1)) - 1)) != 0) {
            return true;
        }
    }
    return false;
}

static size_t split_fields(struct slice text, struct slice parts[FIELDS])
{
    size_t count = 0, at = 0;

    while (at < text.len) {
        size_t begin = at;

        while (at < text.len && text.ptr[at] != ' ' && text.ptr[at] != '\t') {
            at++;
        }
        if (at > begin) {
            if (count < FIELDS) {
                parts[count] = (struct slice){text.ptr + begin, at - begin};
            }
            count++;
        }
        at += at < text.len;
    }
    return count;
}

enum err_code cron_parse(struct slice text, struct cron *out, struct err *err)
{
    struct slice parts[FIELDS];
    uint64_t bits[FIELDS];
    size_t count = split_fields(text, parts);

    if (count != FIELDS || text.len > CRON_BYTES_MAX) {
        (void)err_set(err, ERR_INVALID, "a cron expression has five fields in at most %d bytes", CRON_BYTES_MAX);
        err_detail(err, "this one has %zu fields in %zu bytes", count, text.len);
        err_hint(err, "write minute, hour, day of the month, month and day of the week: 30 2 * * MON-FRI");
        return ERR_INVALID;
    }
    for (size_t i = 0; i < FIELDS; i++) {
        enum err_code code = read_field(parts[i], &fields[i], &bits[i], err);

        if (code != ERR_OK) {
            return code;
        }
    }
    struct cron cron = {.minutes = bits[0],
                        .hours = (uint32_t)bits[1],
                        .month_days = (uint32_t)bits[2],
                        .months = (uint32_t)bits[3],
                        .week_days = (uint32_t)(bits[4] | bits[4] >> 7) & 0x7f,
                        .any_month_day = parts[2].ptr[0] == '*',
                        .any_week_day = parts[4].ptr[0] == '*'};

    if (!has_a_day(&cron)) {
        (void)err_set(err, ERR_INVALID, "no day ever fits this cron expression");
        err_hint(err, "look at the day of the month and the month: February has 29 days at most");
        return ERR_INVALID;
    }
    *out = cron;
    return ERR_OK;
}

static bool day_fits(const struct cron *cron, int64_t day)
{
    int64_t year;
    int month, month_day;

    instant_date(day, &year, &month, &month_day);
    bool of_month = cron->month_days >> month_day & 1, of_week = cron->week_days >> ((day + THURSDAY) % 7) & 1;

    if (!(cron->months >> month & 1)) {
        return false;
    }
    return cron->any_month_day || cron->any_week_day ? of_month && of_week : of_month || of_week;
}

/* Returns the first bit that is set from `from` on, or -1. */
static int bit_from(uint64_t bits, int from)
{
    uint64_t left = from < 64 ? bits >> from << from : 0;

    return left ? __builtin_ctzll(left) : -1;
}

/* Returns the first minute of the day, out of 1,440, that fits and is not before `minute`, or -1. */
static int minute_of_day(const struct cron *cron, int minute)
{
    int hour = bit_from(cron->hours, minute / 60);

    if (hour == minute / 60) {
        int within = bit_from(cron->minutes, minute % 60);

        if (within >= 0) {
            return hour * 60 + within;
        }
        hour = bit_from(cron->hours, hour + 1);
    }
    return hour < 0 ? -1 : hour * 60 + bit_from(cron->minutes, 0);
}

int64_t cron_next_local(const struct cron *cron, int64_t local_ms, int64_t until_ms)
{
    int64_t minute = (local_ms + MINUTE_MS - 1) / MINUTE_MS, day = minute / (24 * 60);
    int of_day = (int)(minute % (24 * 60));

    CHECK(local_ms >= 0);
    for (; day * DAY_MS < until_ms; day++, of_day = 0) {
        int found = day_fits(cron, day) ? minute_of_day(cron, of_day) : -1;

        if (found >= 0) {
            int64_t at_ms = day * DAY_MS + (int64_t)found * MINUTE_MS;

            return at_ms < until_ms ? at_ms : INT64_MAX;
        }
    }
    return INT64_MAX;
}
