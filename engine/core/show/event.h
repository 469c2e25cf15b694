/*
 * Events: what people and systems want to know of sagas, made of the records of the log. Nothing is stored for them:
 * the log is the outbox. Each has the shape of CloudEvents 1.0, and an id that is the same whenever it is told.
 */
#ifndef SAGAD_CORE_SHOW_EVENT_H
#define SAGAD_CORE_SHOW_EVENT_H

#include "core/record/record.h"

/* Does this record say something that is an event? Its turn is then found by those who read the feed. */
bool event_is_in(const struct record *record);

struct event_source { /* the saga that the records are of */
    struct saga_id saga;
    struct slice namespace, saga_name, business_id /* SLICE_NONE: none */, tags /* JSON or none */;
    uint32_t version;
};

struct event_sink {
    struct slice types; /* names with commas between; "case.*" are all that begin so; SLICE_NONE: every type */
    struct buffer *out; /* objects with commas between */
    size_t count;
};

/* Is each a type of events, or a beginning of some? */
bool event_types_are_known(struct slice types);

/* Puts the events of one record; `record` is its text, as it stands in the log. */
void event_put(struct event_sink *sink, const struct event_source *source, uint64_t seq, int64_t at_ms,
               struct slice record);
/* An event of a case of which no log tells. */
void event_put_case(struct event_sink *sink, const struct event_source *source, int64_t at_ms, struct slice reason,
                    uint64_t number, bool is_resolved);

struct event_beside { /* an event of which no log tells: of a hold, a breaker, a budget, a bulk job, a settled debt */
    struct uuid id;
    struct slice type, subject;
    struct slice data; /* JSON: members of the data */
};
/* `has_saga` false: it is about no saga, and of the source only the namespace counts. */
void event_put_beside(struct event_sink *sink, const struct event_source *source, bool has_saga, int64_t at_ms,
                      const struct event_beside *event);

#endif
