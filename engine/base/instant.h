/* Instants and durations as text. Nothing here reads a clock: io/loop/loop.h does. */
#ifndef SAGAD_BASE_INSTANT_H
#define SAGAD_BASE_INSTANT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

#define INSTANT_TEXT_BYTES 32
#define DURATION_MS_MAX (INT64_C(366) * 24 * 3600 * 1000)

/* RFC 3339, UTC, milliseconds: 2026-01-31T09:05:00.250Z. Both directions; parsing takes any offset and up to 9
 * decimals. */
void instant_text(int64_t ms, char out[INSTANT_TEXT_BYTES]);
bool instant_parse(struct slice text, int64_t *ms);

/* The date of a day; day 0 is 1970-01-01. */
void instant_date(int64_t day, int64_t *year, int *month, int *month_day);

/* "200ms", "10s", "15m", "24h", "7d": one positive whole number and a unit, at most
 * DURATION_MS_MAX. "0s" is allowed. */
bool duration_parse(struct slice text, int64_t *ms);
void duration_text(int64_t ms, char out[INSTANT_TEXT_BYTES]); /* for people: "1m 20s" */

#endif
