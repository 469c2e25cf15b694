/*
 * Finds the instants of local times.
 *
 * The instant of a local time is the first one at which the clocks show that time or a later one. Instants never go
 * back when local time goes on. So the next instant belongs to the next local time that no clock of the zone has shown
 * by then.
 */
#include "core/schedule/timetable.h"

#include "base/check.h"

#define OFFSETS_MAX 1000
#define OFFSET_S_MAX 172800 /* two days; no zone has a larger offset */

bool zone_read_offsets(struct slice text, int64_t until_ms, struct arena *arena, struct zone *out)
{
    struct slice *parts = arena_array(arena, OFFSETS_MAX, sizeof(*parts));
    size_t count = text.len ? slice_split(text, ' ', parts, OFFSETS_MAX) : 0;
    struct zone_offset *offsets = arena_array(arena, count + 1, sizeof(*offsets));

    for (size_t i = 0; i < count; i++) {
        struct slice pair[2];

        if (slice_split(parts[i], ':', pair, 2) != 2 || !slice_to_i64(pair[0], &offsets[i].from_ms) ||
            !slice_to_i64(pair[1], &offsets[i].offset_ms) || offsets[i].from_ms > INT64_MAX / 1000 ||
            offsets[i].from_ms < 0 || offsets[i].offset_ms < -OFFSET_S_MAX || offsets[i].offset_ms > OFFSET_S_MAX) {
            return false;
        }
        offsets[i].from_ms *= 1000;
        offsets[i].offset_ms *= 1000;
    }
    *out = (struct zone){offsets, count, until_ms};
    return count > 0 && count < OFFSETS_MAX;
}

static int64_t end_of(const struct zone *zone, size_t i)
{
    return i + 1 < zone->count ? zone->offsets[i + 1].from_ms : zone->until_ms;
}

/* Returns the earliest local time that the clocks have not shown up to this instant. */
static int64_t local_unseen(const struct zone *zone, int64_t at_ms)
{
    int64_t unseen = 0;

    for (size_t i = 0; i < zone->count; i++) {
        if (i > 0 && zone->offsets[i].from_ms > at_ms) {
            break;
        }
        int64_t end_ms = end_of(zone, i) <= at_ms ? end_of(zone, i) : at_ms + 1;

        unseen = end_ms + zone->offsets[i].offset_ms > unseen ? end_ms + zone->offsets[i].offset_ms : unseen;
    }
    return unseen;
}

static int64_t instant_of(const struct zone *zone, int64_t local_ms)
{
    for (size_t i = 0; i < zone->count; i++) {
        const struct zone_offset *offset = &zone->offsets[i];

        if (end_of(zone, i) + offset->offset_ms > local_ms) {
            int64_t at_ms = local_ms - offset->offset_ms;

            return i > 0 && at_ms < offset->from_ms ? offset->from_ms : at_ms;
        }
    }
    return INT64_MAX;
}

static int64_t next_every(const struct timetable *timetable, int64_t after_ms)
{
    int64_t passed = after_ms - timetable->anchor_ms, rest = passed % timetable->every_ms;

    return after_ms - (rest < 0 ? rest + timetable->every_ms : rest) + timetable->every_ms;
}

int64_t timetable_next(const struct timetable *timetable, const struct zone *zone, int64_t after_ms)
{
    if (!timetable->is_cron) {
        return next_every(timetable, after_ms);
    }
    CHECK(zone->count > 0);
    int64_t local_end_ms = zone->until_ms + zone->offsets[zone->count - 1].offset_ms;
    int64_t local_ms = cron_next_local(&timetable->cron, local_unseen(zone, after_ms), local_end_ms);

    return local_ms == INT64_MAX ? INT64_MAX : instant_of(zone, local_ms);
}
