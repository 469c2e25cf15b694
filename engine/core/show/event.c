/* See event.h. One table says which record becomes which event. */
#include "core/show/event.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

enum event_type {
    EVENT_SAGA_COMPLETED,
    EVENT_SAGA_COMPENSATED,
    EVENT_SAGA_ABANDONED,
    EVENT_SAGA_PAUSED,
    EVENT_SAGA_RESUMED,
    EVENT_CASE_OPENED,
    EVENT_CASE_RESOLVED,
    EVENT_APPROVAL_REQUESTED,
    EVENT_APPROVAL_DECIDED,
    EVENT_OPERATION_UNKNOWN,
    EVENT_LOOP_TRIPPED,
    EVENT_DEBT_OPENED,
    EVENT_FOLLOWER_REFUSED,
    EVENT_DEBT_SETTLED,
    EVENT_HOLD_PLACED,
    EVENT_HOLD_RELEASED,
    EVENT_HOLD_ENDED,
    EVENT_BREAKER_OPENED,
    EVENT_BREAKER_CLOSED,
    EVENT_BUDGET_REACHED,
    EVENT_BULK_ENDED,
    EVENT_TYPE_COUNT
};

static const char *const names[EVENT_TYPE_COUNT] = {
    [EVENT_SAGA_COMPLETED] = "saga.completed",
    [EVENT_SAGA_COMPENSATED] = "saga.compensated",
    [EVENT_SAGA_ABANDONED] = "saga.abandoned",
    [EVENT_SAGA_PAUSED] = "saga.paused",
    [EVENT_SAGA_RESUMED] = "saga.resumed",
    [EVENT_CASE_OPENED] = "case.opened",
    [EVENT_CASE_RESOLVED] = "case.resolved",
    [EVENT_APPROVAL_REQUESTED] = "approval.requested",
    [EVENT_APPROVAL_DECIDED] = "approval.decided",
    [EVENT_OPERATION_UNKNOWN] = "operation.unknown",
    [EVENT_LOOP_TRIPPED] = "loop.tripped",
    [EVENT_DEBT_OPENED] = "debt.opened", /* one event for each effect that an abandoned saga leaves standing */
    [EVENT_FOLLOWER_REFUSED] = "follower.refused",
    [EVENT_DEBT_SETTLED] = "debt.settled", /* this one and those below have rows of their own */
    [EVENT_HOLD_PLACED] = "hold.placed",
    [EVENT_HOLD_RELEASED] = "hold.released",
    [EVENT_HOLD_ENDED] = "hold.ended",
    [EVENT_BREAKER_OPENED] = "breaker.opened",
    [EVENT_BREAKER_CLOSED] = "breaker.closed",
    [EVENT_BUDGET_REACHED] = "budget.reached",
    [EVENT_BULK_ENDED] = "bulk.ended",
};

static const struct {
    enum record_type record;
    enum event_type event;
} events[] = {
    {RECORD_SAGA_COMPLETED, EVENT_SAGA_COMPLETED},
    {RECORD_SAGA_COMPENSATED, EVENT_SAGA_COMPENSATED},
    {RECORD_SAGA_ABANDONED, EVENT_SAGA_ABANDONED},
    {RECORD_SAGA_PAUSED, EVENT_SAGA_PAUSED},
    {RECORD_SAGA_RESUMED, EVENT_SAGA_RESUMED},
    {RECORD_ESCALATION_OPENED, EVENT_CASE_OPENED},
    {RECORD_ESCALATION_RESOLVED, EVENT_CASE_RESOLVED},
    {RECORD_STEP_WAITING, EVENT_APPROVAL_REQUESTED}, /* only a step that waits for a person */
    {RECORD_APPROVAL_DECIDED, EVENT_APPROVAL_DECIDED},
    {RECORD_STEP_UNKNOWN, EVENT_OPERATION_UNKNOWN},
    {RECORD_COMPENSATION_UNKNOWN, EVENT_OPERATION_UNKNOWN},
    {RECORD_LOOP_TRIPPED, EVENT_LOOP_TRIPPED},
};

/* Returns the type of event for a type of record; EVENT_TYPE_COUNT when there is none. */
static enum event_type event_of(enum record_type type)
{
    for (size_t i = 0; i < COUNT_OF(events); i++) {
        if (events[i].record == type) {
            return events[i].event;
        }
    }
    return EVENT_TYPE_COUNT;
}

bool event_is_in(const struct record *record)
{
    return event_of(record->type) != EVENT_TYPE_COUNT && (record->type != RECORD_STEP_WAITING || record->approval > 0);
}

/* --- which are wanted --- */

static bool part_fits(struct slice part, struct slice name)
{
    if (part.len > 1 && part.ptr[part.len - 1] == '*') {
        return name.len >= part.len - 1 && memcmp(part.ptr, name.ptr, part.len - 1) == 0;
    }
    return slice_equal(part, name);
}

static bool next_part(struct slice *types, struct slice *part)
{
    const char *comma = memchr(types->ptr, ',', types->len);
    size_t len = comma ? (size_t)(comma - types->ptr) : types->len;

    if (!types->ptr) {
        return false;
    }
    *part = (struct slice){types->ptr, len};
    *types = comma ? (struct slice){comma + 1, types->len - len - 1} : SLICE_NONE;
    return true;
}

bool event_types_are_known(struct slice types)
{
    struct slice part;

    while (types.ptr && next_part(&types, &part)) {
        bool is_known = false;

        for (size_t i = 0; i < EVENT_TYPE_COUNT; i++) {
            is_known |= part_fits(part, slice_of(names[i]));
        }
        if (!is_known) {
            return false;
        }
    }
    return true;
}

static bool is_wanted(const struct event_sink *sink, enum event_type type)
{
    struct slice types = sink->types, part;

    while (types.ptr && next_part(&types, &part)) {
        if (part_fits(part, slice_of(names[type]))) {
            return true;
        }
    }
    return !sink->types.ptr;
}

/* --- one event --- */

/* Writes an event up to its data, which stays open. */
static void begin(struct json_writer *w, struct event_sink *sink, const struct event_source *source, const char *type,
                  struct slice id, struct slice subject, int64_t at_ms)
{
    struct buffer out;

    if (sink->count++ > 0) {
        buffer_put_char(sink->out, ',');
    }
    json_writer_init(w, sink->out);
    json_object_begin(w, NULL);
    json_write_text(w, "specversion", "1.0");
    json_write_slice(w, "id", id);
    buffer_init(&out, 128 + source->namespace.len);
    buffer_printf(&out, "/sagad/%.*s", SLICE_ARG(source->namespace));
    json_write_slice(w, "source", buffer_slice(&out));
    buffer_fini(&out);
    json_write_text(w, "type", type);
    json_write_slice(w, "subject", subject);
    json_write_instant(w, "time", at_ms);
    json_write_text(w, "datacontenttype", "application/json");
    json_object_begin(w, "data");
}

static void put_saga(struct json_writer *w, const struct event_source *source)
{
    char id[UUID_TEXT_BYTES];

    uuid_text(&source->saga.uuid, id);
    json_write_text(w, "saga", id);
    json_write_slice(w, "saga_name", source->saga_name);
    json_write_i64(w, "version", source->version);
    json_write_slice(w, "business_id", source->business_id.len ? source->business_id : SLICE_NONE);
    json_write_raw(w, "tags", source->tags.len ? source->tags : SLICE("{}"));
}

/* Begins an event that stands at a place of the log of its saga, or beside it. */
static void begin_of_saga(struct json_writer *w, struct event_sink *sink, const struct event_source *source,
                          enum event_type type, const char *place, int64_t at_ms)
{
    char saga[UUID_TEXT_BYTES], id[UUID_TEXT_BYTES + 64];

    uuid_text(&source->saga.uuid, saga);
    (void)snprintf(id, sizeof(id), "%s/%s", saga, place);
    begin(w, sink, source, names[type], slice_of(id), slice_of(saga), at_ms);
    put_saga(w, source);
}

static void end(struct json_writer *w)
{
    json_object_end(w);
    json_object_end(w);
}

static void copy(struct json_writer *w, const char *name, struct slice value)
{
    if (value.ptr) {
        json_write_raw(w, name, value);
    }
}

/* Copies members under their own names. Payloads may be large or secret, so they stay in the log. */
static void copy_data(struct json_writer *w, struct slice data)
{
    static const char *const members[] = {"reason", "error",   "detail",  "action", "as",       "note",
                                          "tool",   "repeats", "pattern", "due_at", "direction"};

    for (size_t i = 0; i < COUNT_OF(members); i++) {
        copy(w, members[i], json_member(data, members[i]));
    }
    copy(w, "n", json_member(data, "escalation"));
    copy(w, "n", json_member(data, "approval"));
}

static void put_one(struct event_sink *sink, const struct event_source *source, enum event_type type, uint64_t seq,
                    int64_t at_ms, struct slice record)
{
    struct slice data = json_member(record, "data"), evidence = json_member(data, "evidence");
    struct json_writer w;
    char place[32];

    if (!is_wanted(sink, type)) {
        return;
    }
    (void)snprintf(place, sizeof(place), "%llu", (unsigned long long)seq);
    begin_of_saga(&w, sink, source, type, place, at_ms);
    json_write_i64(&w, "seq", (int64_t)seq);
    copy(&w, "step", json_member(record, "step"));
    copy(&w, "operation", json_member(record, "key"));
    copy(&w, "actor", json_member(record, "actor"));
    copy_data(&w, data);
    if (type == EVENT_CASE_OPENED) {
        copy(&w, "tool", json_member(evidence, "tool"));
        copy(&w, "error", json_member(evidence, "last_error"));
    }
    end(&w);
}

/* Writes one event for each effect that stands; the record names their steps. */
static void put_debts(struct event_sink *sink, const struct event_source *source, uint64_t seq, int64_t at_ms,
                      struct slice steps)
{
    struct json_walk walk = json_walk(steps);
    struct json_writer w;
    struct slice step;
    int number = 0;

    while (json_type(steps) == JSON_ARRAY && json_next_element(&walk, &step)) {
        char place[48];

        (void)snprintf(place, sizeof(place), "%llu/debt/%d", (unsigned long long)seq, ++number);
        if (is_wanted(sink, EVENT_DEBT_OPENED)) {
            begin_of_saga(&w, sink, source, EVENT_DEBT_OPENED, place, at_ms);
            json_write_i64(&w, "seq", (int64_t)seq);
            json_write_raw(&w, "step", step);
            end(&w);
        }
    }
}

void event_put(struct event_sink *sink, const struct event_source *source, uint64_t seq, int64_t at_ms,
               struct slice record)
{
    struct slice type_text = json_member(record, "type"), data = json_member(record, "data");
    enum record_type type;

    if (type_text.len < 2 || !record_type_parse((struct slice){type_text.ptr + 1, type_text.len - 2}, &type)) {
        return; /* a newer engine wrote this record, and writes its events too */
    }
    enum event_type event = event_of(type);

    if (event == EVENT_TYPE_COUNT || (event == EVENT_APPROVAL_REQUESTED && !json_member(data, "approval").ptr)) {
        return;
    }
    put_one(sink, source, event, seq, at_ms, record);
    if (event == EVENT_SAGA_ABANDONED) {
        put_debts(sink, source, seq, at_ms, json_member(data, "debts"));
    }
}

void event_put_case(struct event_sink *sink, const struct event_source *source, int64_t at_ms, struct slice reason,
                    uint64_t number, bool is_resolved)
{
    enum event_type type = is_resolved                    ? EVENT_CASE_RESOLVED
                           : slice_is(reason, "follower") ? EVENT_FOLLOWER_REFUSED
                                                          : EVENT_CASE_OPENED;
    struct json_writer w;
    char place[48];

    if (!is_wanted(sink, type)) {
        return;
    }
    (void)snprintf(place, sizeof(place), "case/%llu%s", (unsigned long long)number, is_resolved ? "/resolved" : "");
    begin_of_saga(&w, sink, source, type, place, at_ms);
    json_write_slice(&w, "reason", reason);
    json_write_i64(&w, "n", (int64_t)number);
    end(&w);
}

void event_put_beside(struct event_sink *sink, const struct event_source *source, bool has_saga, int64_t at_ms,
                      const struct event_beside *event)
{
    struct json_walk walk = json_walk(event->data);
    enum event_type type = 0;
    struct json_writer w;
    struct slice name, value;
    char id[UUID_TEXT_BYTES];

    while (type < EVENT_TYPE_COUNT && !slice_is(event->type, names[type])) {
        type++;
    }
    if (type == EVENT_TYPE_COUNT || !is_wanted(sink, type)) {
        return; /* a newer engine knows types that this one does not, and tells them */
    }
    uuid_text(&event->id, id);
    begin(&w, sink, source, names[type], slice_of(id), event->subject, at_ms);
    if (has_saga) {
        put_saga(&w, source);
    }
    while (json_type(event->data) == JSON_OBJECT && json_next_member(&walk, &name, &value)) {
        char member[32];

        (void)snprintf(member, sizeof(member), "%.*s",
                       SLICE_ARG(name)); /* our own names are short and need no escapes */
        json_write_raw(&w, member, value);
    }
    end(&w);
}
