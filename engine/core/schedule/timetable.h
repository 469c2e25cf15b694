/*
 * The instants of a schedule: those of a cron expression in a time zone, or one every so often.
 *
 * A local time stands for the first instant at which the clocks of the zone show it or, where they skip it, show a
 * later one. So a local time that does not exist is the next one that does, and one that comes twice counts once.
 */
#ifndef SAGAD_CORE_SCHEDULE_TIMETABLE_H
#define SAGAD_CORE_SCHEDULE_TIMETABLE_H

#include "core/schedule/cron.h"

struct zone_offset {
    int64_t from_ms;   /* the first: everything before the next one */
    int64_t offset_ms; /* local time minus UTC, from there on */
};

struct zone { /* the offsets of a zone in a stretch of time; from PostgreSQL, which knows them all */
    const struct zone_offset *offsets;
    size_t count;     /* at least one */
    int64_t until_ms; /* beyond it nothing is known */
};

/* "SECOND:OFFSET" with spaces between, as sagad.zone_offsets() gives it. False: it makes no sense. */
bool zone_read_offsets(struct slice text, int64_t until_ms, struct arena *arena, struct zone *out);

struct timetable {
    bool is_cron;
    struct cron cron;
    int64_t every_ms, anchor_ms; /* without cron: the anchor, and every `every_ms` before and after it */
};

/* The first instant after `after_ms`; INT64_MAX: none up to the end of what is known of the zone. Only cron looks at
 * the zone. */
int64_t timetable_next(const struct timetable *timetable, const struct zone *zone, int64_t after_ms);

#endif
