/*
 * A schedule: its definition, the instants that it has decided about, and the sagas that it still has to start.
 *
 * Each instant is decided about once: `last_ms` never goes back. A decision puts an instant into the queue, skips it or
 * misses it. The caller makes the decision durable before it starts the saga of an instant in the queue.
 */
#ifndef SAGAD_CORE_SCHEDULE_SCHEDULE_H
#define SAGAD_CORE_SCHEDULE_SCHEDULE_H

#include "base/arena.h"
#include "base/id.h"
#include "base/instant.h"
#include "core/schedule/timetable.h"

#define SCHEDULE_QUEUE_MAX 1000 /* the most instants that wait for their sagas */
#define SCHEDULE_NAME_BYTES_MAX 128
#define SCHEDULE_ID_BYTES_MAX 256             /* the longest business id that a schedule makes */
#define SCHEDULE_LOOK_BACK_MS DURATION_MS_MAX /* older instants of a cron expression are not counted */

enum overlap { OVERLAP_SKIP, OVERLAP_QUEUE, OVERLAP_ALL };
enum catch_up { CATCH_UP_NONE, CATCH_UP_LAST, CATCH_UP_ALL };

struct schedule {
    struct slice name, saga, input; /* input: JSON */
    struct slice cron, zone, every; /* cron and every: SLICE_NONE without one */
    struct timetable timetable;
    enum overlap overlap;
    enum catch_up catch_up;
};

/* Reads the body of a request, or a stored one. Adds every fault that it finds. */
bool schedule_read(struct slice body, struct arena *arena, struct faults *faults, struct schedule *out);
/* Writes a schedule as JSON, with every member and in a fixed order: equal schedules give equal text. */
void schedule_write(const struct schedule *schedule, struct buffer *out);

struct schedule_state {
    int64_t last_ms;                   /* all instants up to this one are decided */
    int64_t queue[SCHEDULE_QUEUE_MAX]; /* the instants whose sagas must be started, the oldest first */
    size_t queue_count;
    int64_t started, skipped, missed, refused; /* the number of instants by their end */
    struct saga_id saga;                       /* the saga that was started last; nil: none */
    int64_t saga_at_ms;                        /* the instant of that saga */
    int64_t next_ms;                           /* the next instant, as of the last look; INT64_MAX: not known */
    struct slice error, error_detail;          /* why the last start was refused; SLICE_NONE when it was not */
    int64_t error_at_ms, error_instant_ms;
};

/* Reads a state from the table; a state that was never written is "{}". Returns false when the text makes no sense. */
bool schedule_state_read(struct slice text, int64_t last_ms, struct arena *arena, struct schedule_state *out);
void schedule_state_write(const struct schedule_state *state, struct buffer *out);

/*
 * Decide about every instant after `last_ms` up to now. An instant that is older than `patience_ms` has been missed,
 * and `catch_up` says whether its saga is started after all. `runs` says that the saga which was started last has not
 * ended.
 */
void schedule_decide(const struct schedule *schedule, const struct zone *zone, int64_t now_ms, int64_t patience_ms,
                     bool runs, struct schedule_state *state);
/* May the saga of the first instant in the queue be started now? */
bool schedule_may_start(const struct schedule *schedule, const struct schedule_state *state, bool runs);
/* Removes the first instant of the queue: its saga was started, or refused for good. */
void schedule_drop_first(struct schedule_state *state);

/* Writes "schedule:NAME@INSTANT", the business id of the saga of an instant. It is the same whoever starts the saga and
 * how often. */
void schedule_business_id(struct slice name, int64_t instant_ms, char out[SCHEDULE_ID_BYTES_MAX]);

#endif
