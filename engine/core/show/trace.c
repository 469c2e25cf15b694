/* From records to attempts and events: see trace.h. What is written of them stands in trace_text.c. */
#include "core/show/trace.h"

#include <string.h>

struct trace trace_new(struct arena *arena, int64_t park_after_ms)
{
    return (struct trace){.arena = arena, .park_after_ms = park_after_ms};
}

/* Makes room for one more. Returns NULL at the bound. */
static void *grow(struct arena *arena, void *items, size_t size, uint32_t count, uint32_t *room, uint32_t max)
{
    if (count < *room) {
        return items;
    }
    if (count >= max) {
        return NULL;
    }
    uint32_t wider = *room ? *room * 2 : 16;
    void *moved = arena_alloc(arena, wider * size);

    if (count > 0) {
        memcpy(moved, items, count * size);
    }
    *room = wider;
    return moved;
}

static struct trace_event *add_event(struct trace *trace, int64_t at_ms, const char *name)
{
    struct trace_event *events =
        grow(trace->arena, trace->events, sizeof(*events), trace->event_count, &trace->event_room, TRACE_EVENTS_MAX);

    if (!events || trace->event_count >= TRACE_EVENTS_MAX) {
        trace->events_dropped++;
        return NULL;
    }
    trace->events = events;
    trace->events[trace->event_count] = (struct trace_event){.at_ms = at_ms, .name = name};
    return &trace->events[trace->event_count++];
}

/* --- what lies between two turns --- */

/* Nothing was under way and nothing happened: then the saga has left memory, and came back for this turn. */
static bool was_parked(const struct trace *trace, int64_t at_ms)
{
    return trace->at_ms > 0 && trace->attempts_open == 0 && at_ms - trace->at_ms > trace->park_after_ms;
}

static void look_between(struct trace *trace, int64_t at_ms, int64_t epoch)
{
    struct trace_event *event;

    if (was_parked(trace, at_ms) && (event = add_event(trace, trace->at_ms, "saga.parked")) != NULL) {
        event->number = at_ms - trace->at_ms;
    }
    if (trace->epoch > 0 && epoch != trace->epoch && (event = add_event(trace, at_ms, "saga.taken_over")) != NULL) {
        event->number = epoch;
    }
    trace->at_ms = at_ms;
    trace->epoch = epoch;
}

/* --- attempts --- */

static struct trace_attempt *find_open(struct trace *trace, const struct record *record, enum direction direction)
{
    for (uint32_t i = trace->attempt_count; i > 0; i--) {
        struct trace_attempt *attempt = &trace->attempts[i - 1];

        if (attempt->step == record->step && attempt->direction == direction) {
            return attempt->ended_ms == 0 ? attempt : NULL; /* one attempt of an operation at a time */
        }
    }
    return NULL;
}

static void begin(struct trace *trace, const struct saga *saga, const struct record *record, enum direction direction)
{
    struct trace_attempt *attempts = grow(trace->arena, trace->attempts, sizeof(*attempts), trace->attempt_count,
                                          &trace->attempt_room, TRACE_ATTEMPTS_MAX);
    const struct tool *tool = saga_tool(saga, record->step, direction);

    if (!attempts || trace->attempt_count >= TRACE_ATTEMPTS_MAX) {
        trace->attempts_dropped++;
        return;
    }
    trace->attempts = attempts;
    trace->attempts[trace->attempt_count++] =
        (struct trace_attempt){.step = record->step,
                               .number = record->attempt,
                               .direction = direction,
                               .key = record->key,
                               .step_id = arena_slice(trace->arena, saga->definition->steps[record->step].id),
                               .tool = tool ? arena_slice(trace->arena, tool->name) : SLICE_NONE,
                               .began_ms = record->at_ms,
                               .outcome = "unknown"};
    trace->attempts_open++;
}

/* Returns false when no attempt is under way: then a probe, a person or the end of a wait has said so. */
static bool end(struct trace *trace, const struct record *record, enum direction direction, const char *outcome)
{
    struct trace_attempt *attempt = find_open(trace, record, direction);

    if (!attempt) {
        return false;
    }
    attempt->ended_ms = record->at_ms > attempt->began_ms ? record->at_ms : attempt->began_ms;
    attempt->outcome = outcome;
    attempt->error = arena_slice(trace->arena, record->error);
    attempt->detail = arena_slice(trace->arena, record->detail);
    attempt->unsent = record->unsent;
    if (record->answer.ptr) {
        (void)json_i64(json_member(record->answer, "status"), &attempt->status);
    }
    trace->attempts_open--;
    return true;
}

static void tell(struct trace *trace, const struct saga *saga, const struct record *record)
{
    struct trace_event *event = add_event(trace, record->at_ms, record_type_name(record->type));

    if (!event) {
        return;
    }
    if (record->step < saga->definition->step_count) {
        event->step = arena_slice(trace->arena, saga->definition->steps[record->step].id);
    }
    event->reason = arena_slice(trace->arena, record->reason.len   ? record->reason
                                              : record->action.len ? record->action
                                                                   : record->error);
    event->by = arena_slice(trace->arena, record->actor);
}

void trace_add(struct trace *trace, const struct saga *saga, const struct record *record, int64_t epoch)
{
    bool is_told = false;

    if (record->at_ms != trace->at_ms || epoch != trace->epoch) {
        look_between(trace, record->at_ms, epoch);
    }
    switch (record->type) {
    case RECORD_STEP_INTENT:
    case RECORD_COMPENSATION_INTENT:
        begin(trace, saga, record, record->type == RECORD_STEP_INTENT ? DIRECTION_DO : DIRECTION_UNDO);
        return;
    case RECORD_STEP_COMPLETED:
        is_told = end(trace, record, DIRECTION_DO, "completed");
        break;
    case RECORD_STEP_FAILED:
        is_told = end(trace, record, DIRECTION_DO, "failed");
        break;
    case RECORD_STEP_RETRYING:
        is_told = end(trace, record, DIRECTION_DO, "retrying");
        break;
    case RECORD_STEP_RUNNING:
        is_told = end(trace, record, DIRECTION_DO, "accepted");
        break;
    case RECORD_STEP_UNKNOWN:
        is_told = end(trace, record, DIRECTION_DO, "unknown");
        break;
    case RECORD_COMPENSATION_COMPLETED:
        is_told = end(trace, record, DIRECTION_UNDO, "completed");
        break;
    case RECORD_COMPENSATION_FAILED:
        is_told = end(trace, record, DIRECTION_UNDO, "failed");
        break;
    case RECORD_COMPENSATION_RETRYING:
        is_told = end(trace, record, DIRECTION_UNDO, "retrying");
        break;
    case RECORD_COMPENSATION_RUNNING:
        is_told = end(trace, record, DIRECTION_UNDO, "accepted");
        break;
    case RECORD_COMPENSATION_UNKNOWN:
        is_told = end(trace, record, DIRECTION_UNDO, "unknown");
        break;
    case RECORD_SAGA_STARTED:
    case RECORD_SAGA_COMPLETED:
    case RECORD_SAGA_COMPENSATED:
    case RECORD_SAGA_ABANDONED: /* the span of the saga says so */
    case RECORD_STEP_PENDING:
    case RECORD_STEP_CALLED:
    case RECORD_STEP_REPEATED:
    case RECORD_STEP_OPENED:
    case RECORD_OPERATION_DUPLICATE:
    case RECORD_OPERATION_EXPIRED:
    case RECORD_RUN_RESTED:
    case RECORD_RUN_WOKEN:
    case RECORD_TYPE_COUNT:
        return;
    case RECORD_STEP_PROBED:
    case RECORD_STEP_SKIPPED:
    case RECORD_STEP_REOPENED:
    case RECORD_STEP_WAIVED:
    case RECORD_STEP_UNDONE:
    case RECORD_STEP_FAILING:
    case RECORD_STEP_WAITING:
    case RECORD_STEP_LATE:
    case RECORD_SIGNAL_RECEIVED:
    case RECORD_APPROVAL_DECIDED:
    case RECORD_LOCK_WANTED:
    case RECORD_LOCK_TAKEN:
    case RECORD_OPERATION_PRICED:
    case RECORD_TOOL_MENDED:
    case RECORD_BYPASS_SIGNED:
    case RECORD_LOOP_TRIPPED:
    case RECORD_SAGA_PAUSED:
    case RECORD_SAGA_RESUMED:
    case RECORD_SAGA_HELD:
    case RECORD_SAGA_RELEASED:
    case RECORD_SAGA_FAILING:
    case RECORD_COMPENSATION_PLANNED:
    case RECORD_COMPENSATION_PROBED:
    case RECORD_COMPENSATION_REOPENED:
    case RECORD_COMPENSATION_LATE:
    case RECORD_ESCALATION_OPENED:
    case RECORD_ESCALATION_RESOLVED:
        break;
    }
    if (!is_told) {
        tell(trace, saga, record);
    }
}
