/*
 * Spans as JSON of OTLP (opentelemetry-proto, encoding JSON): ids in lower-case hexadecimal digits, 64-bit numbers as
 * text, enumerations as numbers, names in lower camel case.
 */
#include <stdio.h>
#include <string.h>

#include "core/show/trace.h"

#define TRACE_ID_BYTES 16
#define SPAN_ID_BYTES 8
#define TRACE_ID_AT 3 /* in a traceparent */
#define SPAN_ID_AT 36
#define FLAGS_AT 53
#define TEXT_BYTES_MAX 256 /* the bytes of a text in a span, which may be an error of a stranger */

enum { KIND_INTERNAL = 1, KIND_CLIENT = 3, STATUS_ERROR = 2 };

struct ids {
    char trace[2 * TRACE_ID_BYTES + 1], span[2 * SPAN_ID_BYTES + 1];
};

static void put_hex(char *out, const struct digest *digest, size_t bytes)
{
    char hex[65];

    digest_hex(digest, hex);
    memcpy(out, hex, 2 * bytes);
    out[2 * bytes] = '\0';
    if (strspn(out, "0") == 2 * bytes) {
        out[2 * bytes - 1] = '1'; /* zeros alone are no id */
    }
}

static void put_ids(const struct saga *saga, const struct op_key *key, uint32_t attempt, struct ids *out)
{
    const struct slice id = {(const char *)saga->id.uuid.bytes, sizeof(saga->id.uuid.bytes)};
    const struct slice of_saga[] = {id};

    if (saga->trace.parent.ptr) {
        memcpy(out->trace, saga->trace.parent.ptr + TRACE_ID_AT, sizeof(out->trace) - 1);
        out->trace[sizeof(out->trace) - 1] = '\0';
    } else {
        struct digest digest = digest_fields("trace", of_saga, 1);

        put_hex(out->trace, &digest, TRACE_ID_BYTES);
    }
    char number[16];
    int len = snprintf(number, sizeof(number), "%u", attempt);
    const struct slice of_attempt[] = {
        id, {(const char *)key->uuid.bytes, sizeof(key->uuid.bytes)}, {number, (size_t)len}};
    struct digest digest =
        attempt ? digest_fields("span", of_attempt, COUNT_OF(of_attempt)) : digest_fields("span", of_saga, 1);

    put_hex(out->span, &digest, SPAN_ID_BYTES);
}

static const struct op_key no_key;

static uint64_t trace_number(const char *trace_id)
{
    uint64_t number = 0;

    for (size_t i = TRACE_ID_BYTES; i < 2 * (size_t)TRACE_ID_BYTES; i++) {
        number = number << 4 | (uint64_t)hex_digit(trace_id[i]);
    }
    return number >> 1;
}

bool trace_is_wanted(const struct saga *saga, const struct trace_sampler *sampler)
{
    const char *parent = saga->trace.parent.ptr;
    struct ids ids;

    if (saga->definition->kind == SAGA_RUN) {
        return false;
    }
    if (parent && sampler->asks_parent) {
        /* The lowest bit of the flags says that it is recorded. */
        return strchr("13579bdf", parent[FLAGS_AT + 1]) != NULL;
    }
    if (sampler->below == 0 || sampler->below >= TRACE_SAMPLE_ALL) {
        return sampler->below > 0;
    }
    put_ids(saga, &no_key, 0, &ids);
    return trace_number(ids.trace) < sampler->below;
}

struct slice trace_parent(const struct saga *saga, const struct op_key *key, uint32_t attempt,
                          const struct trace_sampler *sampler, char out[TRACE_PARENT_BYTES])
{
    bool is_wanted = trace_is_wanted(saga, sampler);
    struct ids ids;

    put_ids(saga, attempt ? key : &no_key, attempt, &ids);
    (void)snprintf(out, TRACE_PARENT_BYTES, "00-%s-%s-%s", ids.trace, ids.span, is_wanted ? "01" : "00");
    return slice_of(out);
}

/* --- attributes --- */

/* Cuts a long text, but not inside a character. */
static struct slice shortened(struct slice text)
{
    size_t len = text.len;

    if (len > TEXT_BYTES_MAX) {
        len = TEXT_BYTES_MAX;
        while (len > 0 && ((unsigned char)text.ptr[len] & 0xc0) == 0x80) {
            len--;
        }
    }
    return (struct slice){text.ptr, len};
}

static void begin_value(struct json_writer *w, const char *name)
{
    json_object_begin(w, NULL);
    json_write_text(w, "key", name);
    json_object_begin(w, "value");
}

static void end_value(struct json_writer *w)
{
    json_object_end(w);
    json_object_end(w);
}

static void write_text(struct json_writer *w, const char *name, struct slice text)
{
    if (text.len > 0) {
        begin_value(w, name);
        json_write_slice(w, "stringValue", shortened(text));
        end_value(w);
    }
}

static void write_i64_text(struct json_writer *w, const char *name, int64_t number, const char *zeros)
{
    char text[40];

    (void)snprintf(text, sizeof(text), "%lld%s", (long long)number, zeros);
    json_write_text(w, name, text);
}

static void write_number(struct json_writer *w, const char *name, int64_t number)
{
    if (number != 0) {
        begin_value(w, name);
        write_i64_text(w, "intValue", number, "");
        end_value(w);
    }
}

static void write_time(struct json_writer *w, const char *name, int64_t ms)
{
    write_i64_text(w, name, ms, "000000");
}

static void write_key(struct json_writer *w, const struct op_key *key)
{
    char text[UUID_TEXT_BYTES];

    if (!uuid_is_nil(&key->uuid)) {
        uuid_text(&key->uuid, text);
        write_text(w, "sagad.key", slice_of(text));
    }
}

/* --- spans --- */

static void begin_span(struct json_writer *w, const struct saga *saga, const struct ids *ids, struct slice parent,
                       struct slice name, int kind)
{
    json_object_begin(w, NULL);
    json_write_text(w, "traceId", ids->trace);
    json_write_text(w, "spanId", ids->span);
    if (parent.ptr) {
        json_write_slice(w, "parentSpanId", parent);
    }
    if (saga->trace.state.ptr) {
        json_write_slice(w, "traceState", saga->trace.state);
    }
    json_write_slice(w, "name", shortened(name));
    json_write_i64(w, "kind", kind);
}

static void write_status(struct json_writer *w, bool is_error, struct slice message)
{
    if (is_error) {
        json_object_begin(w, "status");
        json_write_i64(w, "code", STATUS_ERROR);
        json_write_slice(w, "message", shortened(message));
        json_object_end(w);
    }
}

static void write_event(struct json_writer *w, const struct trace_event *event)
{
    bool is_parked = strcmp(event->name, "saga.parked") == 0;

    json_object_begin(w, NULL);
    write_time(w, "timeUnixNano", event->at_ms);
    json_write_text(w, "name", event->name);
    json_array_begin(w, "attributes");
    write_text(w, "sagad.step", event->step);
    write_text(w, "sagad.reason", event->reason);
    write_text(w, "sagad.actor", event->by);
    write_number(w, is_parked ? "sagad.parked_ms" : "sagad.epoch", event->number);
    json_array_end(w);
    json_object_end(w);
}

static void write_saga(const struct trace *trace, const struct saga *saga, const struct ids *ids, struct json_writer *w)
{
    const struct slice parent =
        saga->trace.parent.ptr ? (struct slice){saga->trace.parent.ptr + SPAN_ID_AT, 2 * SPAN_ID_BYTES} : SLICE_NONE;
    const char *end = saga_status_name(saga->end);
    char id[UUID_TEXT_BYTES];

    uuid_text(&saga->id.uuid, id);
    begin_span(w, saga, ids, parent, saga->definition->name, KIND_INTERNAL);
    write_time(w, "startTimeUnixNano", saga->created_ms);
    write_time(w, "endTimeUnixNano", saga->ended_ms > saga->created_ms ? saga->ended_ms : saga->created_ms);
    json_array_begin(w, "attributes");
    write_text(w, "sagad.saga", slice_of(id));
    write_text(w, "sagad.definition", saga->definition->name);
    write_number(w, "sagad.version", saga->definition->version);
    write_text(w, "sagad.namespace", saga->namespace);
    write_text(w, "sagad.business_id", saga->business_id);
    write_text(w, "sagad.end", slice_of(end));
    write_text(w, "sagad.reason", saga->failing_reason);
    write_number(w, "sagad.attempts_dropped", trace->attempts_dropped);
    json_array_end(w);
    json_array_begin(w, "events");
    for (uint32_t i = 0; i < trace->event_count; i++) {
        write_event(w, &trace->events[i]);
    }
    json_array_end(w);
    if (trace->events_dropped > 0) {
        json_write_i64(w, "droppedEventsCount", trace->events_dropped);
    }
    write_status(w, saga->end != SAGA_COMPLETED, slice_of(end));
    json_object_end(w);
}

/* The last attempt before this one to do what it undoes. */
static const struct trace_attempt *undone_by(const struct trace *trace, uint32_t undo)
{
    for (uint32_t i = undo; i > 0; i--) {
        const struct trace_attempt *attempt = &trace->attempts[i - 1];

        if (attempt->step == trace->attempts[undo].step && attempt->direction == DIRECTION_DO) {
            return attempt;
        }
    }
    return NULL;
}

static void write_link(const struct trace *trace, const struct saga *saga, uint32_t i, struct json_writer *w)
{
    const struct trace_attempt *done = undone_by(trace, i);
    struct ids ids;

    if (trace->attempts[i].direction != DIRECTION_UNDO || !done) {
        return;
    }
    put_ids(saga, &done->key, done->number, &ids);
    json_array_begin(w, "links");
    json_object_begin(w, NULL);
    json_write_text(w, "traceId", ids.trace);
    json_write_text(w, "spanId", ids.span);
    json_array_begin(w, "attributes");
    write_text(w, "sagad.link", SLICE("undoes"));
    json_array_end(w);
    json_object_end(w);
    json_array_end(w);
}

static bool is_good(const struct trace_attempt *attempt)
{
    return strcmp(attempt->outcome, "completed") == 0 || strcmp(attempt->outcome, "accepted") == 0;
}

static void write_attempt(const struct trace *trace, const struct saga *saga, uint32_t i, const struct ids *of_saga,
                          struct json_writer *w)
{
    const struct trace_attempt *attempt = &trace->attempts[i];
    int64_t ended_ms = attempt->ended_ms ? attempt->ended_ms : saga->ended_ms;
    struct ids ids;

    put_ids(saga, &attempt->key, attempt->number, &ids);
    begin_span(w, saga, &ids, slice_of(of_saga->span), attempt->tool.len ? attempt->tool : attempt->step_id,
               KIND_CLIENT);
    write_time(w, "startTimeUnixNano", attempt->began_ms);
    write_time(w, "endTimeUnixNano", ended_ms > attempt->began_ms ? ended_ms : attempt->began_ms);
    json_array_begin(w, "attributes");
    write_text(w, "sagad.step", attempt->step_id);
    write_text(w, "sagad.tool", attempt->tool);
    write_text(w, "sagad.direction", slice_of(direction_name(attempt->direction)));
    write_number(w, "sagad.attempt", attempt->number);
    write_key(w, &attempt->key);
    write_text(w, "sagad.outcome", slice_of(attempt->outcome));
    write_text(w, "error.type", attempt->error);
    write_number(w, "http.response.status_code", attempt->status);
    if (attempt->unsent) {
        begin_value(w, "sagad.unsent");
        json_write_bool(w, "boolValue", true);
        end_value(w);
    }
    json_array_end(w);
    write_link(trace, saga, i, w);
    write_status(w, !is_good(attempt), attempt->detail.len ? attempt->detail : slice_of(attempt->outcome));
    json_object_end(w);
}

void trace_write(const struct trace *trace, const struct saga *saga, struct json_writer *w)
{
    struct ids ids;

    put_ids(saga, &no_key, 0, &ids);
    write_saga(trace, saga, &ids, w);
    for (uint32_t i = 0; i < trace->attempt_count; i++) {
        write_attempt(trace, saga, i, &ids, w);
    }
}
