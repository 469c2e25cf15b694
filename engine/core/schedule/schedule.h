/*
 * A schedule: what it was asked to be, which instants it has decided about, and which sagas it still has to start.
 *
 * Pure. An instant is decided about once: `last_ms` never goes back. Deciding puts an instant into the queue, skips it
 * or misses it; the caller makes that durable before it starts the saga of an instant in the queue.
 */
#ifndef SAGAD_CORE_SCHEDULE_SCHEDULE_H
#define SAGAD_CORE_SCHEDULE_SCHEDULE_H

#include "base/arena.h"
#include "base/id.h"
#include "base/instant.h"
#include "core/schedule/timetable.h"

#define SCHEDULE_QUEUE_MAX 1000 /* instants that wait, or are caught up */
#define SCHEDULE_NAME_BYTES_MAX 128
#define SCHEDULE_ID_BYTES_MAX 256             /* of the business ids that it makes */
#define SCHEDULE_LOOK_BACK_MS DURATION_MS_MAX /* older instants of a cron expression are not even counted */

enum overlap { OVERLAP_SKIP, OVERLAP_QUEUE, OVERLAP_ALL };
enum catch_up { CATCH_UP_NONE, CATCH_UP_LAST, CATCH_UP_ALL };

struct schedule {
    struct slice name, saga, input; /* input: JSON */
    struct slice cron, zone, every; /* cron and every: SLICE_NONE without one */
    struct timetable timetable;
    enum overlap overlap;
    enum catch_up catch_up;
};

/* Reads the body of a request, or the one that was stored. Adds every fault that it finds. */
bool schedule_read(struct slice body, struct arena *arena, struct faults *faults, struct schedule *out);
bool schedule_name_is_sound(struct slice name);
/* The same as JSON with every member, in one order: equal schedules give equal text. */
void schedule_write(const struct schedule *schedule, struct buffer *out);

struct schedule_state {
    int64_t last_ms;                   /* every instant up to here was decided about */
    int64_t queue[SCHEDULE_QUEUE_MAX]; /* instants whose sagas are to be started, the oldest first */
    size_t queue_count;
    int64_t started, skipped, missed, refused; /* instants, by what became of them */
    struct saga_id saga;                       /* the one that was started last; nil: none */
    int64_t saga_at_ms;                        /* its instant */
    int64_t next_ms;                           /* the next instant, as of the last look; INT64_MAX: not known */
    struct slice error, error_detail;          /* why the last start was refused; SLICE_NONE: it was not */
    int64_t error_at_ms, error_instant_ms;
};

/* What is in the table; of a state that was never written, `text` is "{}". False: it makes no sense. */
bool schedule_state_read(struct slice text, int64_t last_ms, struct arena *arena, struct schedule_state *out);
void schedule_state_write(const struct schedule_state *state, struct buffer *out);

/*
 * Decide about every instant after `last_ms` up to now. An instant that is older than `patience_ms` has been missed,
 * and `catch_up` says whether its saga is started after all. `runs`: the saga that was started last has not ended.
 */
void schedule_decide(const struct schedule *schedule, const struct zone *zone, int64_t now_ms, int64_t patience_ms,
                     bool runs, struct schedule_state *state);
/* May the first of the queue be started now? */
bool schedule_may_start(const struct schedule *schedule, const struct schedule_state *state, bool runs);
/* The first of the queue is over: its saga is there, or was refused for good. */
void schedule_drop_first(struct schedule_state *state);

/* "schedule:NAME@INSTANT": the business id of the saga of an instant, the same whoever makes it and how often. */
void schedule_business_id(struct slice name, int64_t instant_ms, char out[SCHEDULE_ID_BYTES_MAX]);

#endif
