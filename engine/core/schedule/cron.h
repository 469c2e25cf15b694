/*
 * A cron expression of five fields: minute, hour, day of the month, month, day of the week.
 *
 * A field is a list of values, ranges and steps: `*`, `5`, `1-5`, `10-40/10`, `*` with a step, `1,15`. Months and days
 * of the week have English names of three letters, in any case. 0 and 7 are Sunday, and a range may end with Sunday:
 * `FRI-SUN`. When both days are restricted (neither field begins with `*`), a day that fits one of them is enough, as
 * in Vixie's cron.
 */
#ifndef SAGAD_CORE_SCHEDULE_CRON_H
#define SAGAD_CORE_SCHEDULE_CRON_H

#include "base/errors.h"

#define CRON_BYTES_MAX 256

struct cron {
    uint64_t minutes; /* one bit for each minute */
    uint32_t hours, month_days, months, week_days;
    bool any_month_day, any_week_day; /* the field begins with `*` */
};

/* Ends with ERR_INVALID and a sentence when a field is wrong. An expression that no day ever fits is refused, too. */
MUST_USE enum err_code cron_parse(struct slice text, struct cron *out, struct err *err);

/* Returns the first minute that fits and is not before `local_ms`, or INT64_MAX when there is none before `until_ms`.
 * All are local times in milliseconds, counted as if they were UTC, and lie after 1970. */
int64_t cron_next_local(const struct cron *cron, int64_t local_ms, int64_t until_ms);

#endif
