/*
 * The instants of a schedule: those of a cron expression in a time zone, or one in each fixed interval.
 *
 * A local time means the first instant at which the clocks of the zone show it. When the clocks skip it, it means the
 * first instant at which they show a later time. A local time that comes twice counts once.
 */
#ifndef SAGAD_CORE_SCHEDULE_TIMETABLE_H
#define SAGAD_CORE_SCHEDULE_TIMETABLE_H

#include "core/schedule/cron.h"

struct zone_offset {
    int64_t from_ms;   /* the first offset also holds for all earlier instants */
    int64_t offset_ms; /* local time minus UTC from that instant on */
};

struct zone { /* the offsets of a zone within a span of time, as PostgreSQL knows them */
    const struct zone_offset *offsets;
    size_t count;     /* at least one */
    int64_t until_ms; /* the offsets are known up to here */
};

/* Reads "SECOND:OFFSET" pairs, divided by spaces, as sagad.zone_offsets() returns them. Returns false when the text
 * makes no sense. */
bool zone_read_offsets(struct slice text, int64_t until_ms, struct arena *arena, struct zone *out);

struct timetable {
    bool is_cron;
    struct cron cron;
    int64_t every_ms,
        anchor_ms; /* without cron the instants are the anchor and all others a multiple of `every_ms` away */
};

/* Returns the first instant after `after_ms`, or INT64_MAX when there is none within the known span of the zone. Only
 * cron uses the zone. */
int64_t timetable_next(const struct timetable *timetable, const struct zone *zone, int64_t after_ms);

#endif
