/*
 * A saga as a trace of OpenTelemetry, made of the records of its log: one span for the saga, a client span for each
 * attempt of a call, and events for what happened beside them. The span of an undo links to the last attempt of what it
 * undoes.
 *
 * Ids are made of the saga's id, and of the key and the number of an attempt. So the same log always gives the same
 * spans, and an attempt knows its span before it is sent. Payloads stand in no span.
 */
#ifndef SAGAD_CORE_SHOW_TRACE_H
#define SAGAD_CORE_SHOW_TRACE_H

#include "base/json.h"
#include "core/saga/saga.h"

#define TRACE_ATTEMPTS_MAX 1000u /* spans of one saga; the rest is counted */
#define TRACE_EVENTS_MAX 256u
#define TRACE_PARENT_BYTES 56 /* the bytes of a traceparent, with its NUL */

struct trace_attempt {
    uint32_t step, number;
    enum direction direction;
    struct op_key key;
    struct slice step_id, tool;
    int64_t began_ms, ended_ms; /* ended 0: it is under way */
    const char *outcome;        /* "completed", "failed", "retrying", "accepted", "unknown" */
    struct slice error, detail; /* SLICE_NONE: none */
    int64_t status;             /* the status of the answer; 0: not known */
    bool unsent;
};

struct trace_event {
    int64_t at_ms;
    const char *name;              /* the type of the record, "saga.parked" or "saga.taken_over" */
    struct slice step, reason, by; /* SLICE_NONE: none */
    int64_t number;                /* the number of an event: parked for how long, taken over with which epoch */
};

struct trace {
    struct arena *arena;
    int64_t park_after_ms; /* a saga of which nothing happens for so long leaves memory */
    struct trace_attempt *attempts;
    struct trace_event *events;
    uint32_t attempt_count, attempt_room, event_count, event_room;
    uint32_t attempts_open, attempts_dropped, events_dropped;
    int64_t at_ms, epoch; /* the time and the epoch of the turn before; 0: there was none */
};

/* Empty. Everything that it keeps lies in the arena. */
struct trace trace_new(struct arena *arena, int64_t park_after_ms);
/* Takes a record that was just applied; `epoch` is that of the lease under which its turn was made. */
void trace_add(struct trace *trace, const struct saga *saga, const struct record *record, int64_t epoch);
/* Writes the spans of a saga that has ended, as elements of the array that is open in `w`. */
void trace_write(const struct trace *trace, const struct saga *saga, struct json_writer *w);

#define TRACE_SAMPLE_ALL ((uint64_t)1 << 63)

/*
 * Which traces are recorded. A number is made of the last 64 bits of the trace id, without the lowest one, as other
 * programs that speak OpenTelemetry make it: with the same ratio they record the same traces.
 */
struct trace_sampler {
    bool asks_parent; /* the flags of a traceparent decide where there is one */
    uint64_t below;   /* records a trace whose number is below this: TRACE_SAMPLE_ALL, a part of it, or 0 */
};

/* Is the trace of the saga recorded? Runs have no end, and so no trace. */
bool trace_is_wanted(const struct saga *saga, const struct trace_sampler *sampler);
/* The traceparent for the receiver of an attempt. `attempt` 0: of a probe, whose parent is the saga's span. */
struct slice trace_parent(const struct saga *saga, const struct op_key *key, uint32_t attempt,
                          const struct trace_sampler *sampler, char out[TRACE_PARENT_BYTES]);

#endif
