/* See record.h. */
#include "tools/sagactl/scenario/record.h"

#include <string.h>

#include "base/json.h"

enum reply_list { LIST_CALLS, LIST_PROBES, LIST_PRECHECK, LIST_COUNT };

struct taken { /* a reply, in the order of the log */
    struct slice tool, args;
    enum reply_list list;
    struct reply reply;
};

struct happened { /* an event, in the order of the log */
    struct event event;
    struct slice as; /* the role of EVENT_RESOLVE */
};

struct out_call { /* a call that is out */
    struct slice step;
    enum direction direction;
    struct slice tool, args;
    bool is_out;
};

struct tape {
    struct recording *recording;
    struct arena *arena;
    struct taken *replies;
    size_t reply_count;
    struct happened *events;
    size_t event_count;
    struct out_call *calls; /* one for each operation */
    size_t call_count;
    struct expected_call *made;
    size_t made_count;
    struct slice *undone;
    size_t undone_count;
    size_t out_count;  /* calls that are out now */
    bool side_by_side; /* two were out at once: their order on stage may differ */
    bool locks_taken;  /* another saga has them */
};

static struct slice text_at(struct tape *tape, struct slice object, const char *name)
{
    return json_string(json_member(object, name), tape->arena);
}

static struct out_call *call_of(struct tape *tape, struct slice entry, enum direction direction)
{
    struct slice step = text_at(tape, entry, "step"), key = text_at(tape, entry, "key");

    for (size_t i = 0; i < tape->call_count; i++) {
        if (slice_equal(tape->calls[i].step, step) && tape->calls[i].direction == direction) {
            return &tape->calls[i];
        }
    }
    struct out_call *call = &tape->calls[tape->call_count++];

    *call = (struct out_call){.step = step, .direction = direction, .args = SLICE("{}")};
    call->tool = key.ptr ? tape->recording->tool_of(tape->recording, key) : SLICE_NONE;
    return call;
}

static void take_reply(struct tape *tape, const struct out_call *call, enum reply_list list, struct reply reply)
{
    if (call->tool.ptr) {
        tape->replies[tape->reply_count++] =
            (struct taken){.tool = call->tool, .args = call->args, .list = list, .reply = reply};
    }
}

static struct happened *take_event(struct tape *tape, enum event_kind kind, struct slice text)
{
    struct happened *happened = &tape->events[tape->event_count++];

    *happened = (struct happened){.event = {.kind = kind, .text = text, .after_ms = -1}};
    return happened;
}

/* The call that is out now, where there is one: what people do meanwhile comes during it. */
static struct slice out_now(const struct tape *tape)
{
    for (size_t i = 0; i < tape->call_count; i++) {
        if (tape->calls[i].is_out) {
            return tape->calls[i].step;
        }
    }
    return SLICE_NONE;
}

/* --- about an operation --- */

static void take_intent(struct tape *tape, struct slice entry, enum direction direction)
{
    struct out_call *call = call_of(tape, entry, direction);

    tape->side_by_side = tape->side_by_side || tape->out_count > 0;
    tape->out_count++;
    call->is_out = true;
    tape->made[tape->made_count++] =
        (struct expected_call){.step = call->step, .tool = call->tool, .args = call->args, .direction = direction};
}

static void come_back(struct tape *tape, struct out_call *call)
{
    tape->out_count -= call->is_out;
    call->is_out = false;
}

static struct reply reply_of(struct tape *tape, enum reply_kind kind, struct slice data)
{
    struct reply reply = {.kind = kind, .result = json_member(data, "result")};

    reply.error = text_at(tape, data, "error");
    reply.detail = text_at(tape, data, "detail");
    return reply;
}

static enum reply_kind unclear_kind(struct tape *tape, struct slice data)
{
    return slice_is(text_at(tape, data, "error"), "interrupted") ? REPLY_CRASH : REPLY_UNKNOWN;
}

/* What a person said about a step, whether or not a case was open: one event. */
static struct happened *verdict_of(struct tape *tape, struct slice step, const char *as)
{
    struct happened *last = tape->event_count > 0 ? &tape->events[tape->event_count - 1] : NULL;

    if (!last || last->event.kind != EVENT_RESOLVE || !slice_equal(last->event.text, step) || !slice_is(last->as, as)) {
        last = take_event(tape, EVENT_RESOLVE, step);
        last->as = slice_of(as);
    }
    return last;
}

static void take_completed(struct tape *tape, struct slice entry, struct slice data, enum direction direction)
{
    struct out_call *call = call_of(tape, entry, direction);
    struct slice source = text_at(tape, data, "source");
    struct reply done = {.kind = REPLY_DONE, .result = json_member(data, "result")};

    come_back(tape, call);
    if (!source.ptr || slice_is(source, "call")) {
        take_reply(tape, call, LIST_CALLS, done);
    } else if (slice_is(source, "probe")) {
        take_reply(tape, call, LIST_PROBES, done);
    } else if (slice_is(source, "precheck")) {
        take_reply(tape, call, LIST_PRECHECK, done);
    } else {
        verdict_of(tape, call->step, "happened")->event.result = done.result;
    }
    if (direction == DIRECTION_UNDO) {
        tape->undone[tape->undone_count++] = call->step;
    }
}

static void take_failed(struct tape *tape, struct slice entry, struct slice data, enum direction direction)
{
    struct out_call *call = call_of(tape, entry, direction);
    struct slice source = text_at(tape, data, "source");
    bool was_out = call->is_out, unsent = false;

    (void)json_bool(json_member(data, "unsent"), &unsent);
    come_back(tape, call);
    if (slice_is(source, "probe")) {
        take_reply(tape, call, LIST_PROBES, reply_of(tape, REPLY_ABSENT, data));
    } else if (slice_is(source, "operator")) {
        (void)verdict_of(tape, call->step, "not_happened");
    } else if (slice_is(source, "guard")) {
        take_reply(tape, call, LIST_PRECHECK, reply_of(tape, REPLY_BLOCKED, data));
    } else if (was_out) {
        take_reply(tape, call, LIST_CALLS, reply_of(tape, unsent ? REPLY_UNSENT : REPLY_FAILS, data));
    }
}

static void take_retrying(struct tape *tape, struct slice entry, struct slice data, enum direction direction)
{
    struct out_call *call = call_of(tape, entry, direction);
    bool unsent = false, maybe = false;

    (void)json_bool(json_member(data, "unsent"), &unsent);
    (void)json_bool(json_member(data, "maybe"), &maybe);
    if (slice_is(text_at(tape, data, "source"), "probe")) {
        take_reply(tape, call, LIST_PROBES, reply_of(tape, REPLY_ABSENT, data));
    } else if (call->is_out) {
        take_reply(tape, call, LIST_CALLS,
                   reply_of(tape,
                            unsent  ? REPLY_UNSENT
                            : maybe ? unclear_kind(tape, data)
                                    : REPLY_BUSY,
                            data));
    }
    come_back(tape, call);
}

static void take_probed(struct tape *tape, struct slice entry, struct slice data, enum direction direction)
{
    struct slice error = text_at(tape, data, "error");

    take_reply(tape, call_of(tape, entry, direction), LIST_PROBES,
               reply_of(tape, slice_is(error, "absent") ? REPLY_ABSENT : REPLY_UNKNOWN, data));
}

/* Returns false for a type that is not about an operation. */
static bool take_operation(struct tape *tape, struct slice type, struct slice entry, struct slice data)
{
    enum direction direction = slice_starts_with(type, "compensation.") ? DIRECTION_UNDO : DIRECTION_DO;
    struct slice what = type, args = json_member(data, "args");
    struct out_call *call;

    if (!slice_starts_with(type, "step.") && direction == DIRECTION_DO) {
        return false;
    }
    what.ptr = (const char *)memchr(type.ptr, '.', type.len) + 1;
    what.len = type.len - (size_t)(what.ptr - type.ptr);
    if (args.ptr && (slice_is(what, "pending") || slice_is(what, "intent") || slice_is(what, "reopened"))) {
        call_of(tape, entry, direction)->args = args;
    }
    if (slice_is(what, "intent")) {
        take_intent(tape, entry, direction);
    } else if (slice_is(what, "completed") && text_at(tape, entry, "key").ptr) {
        take_completed(tape, entry, data, direction);
    } else if (slice_is(what, "failed") && text_at(tape, entry, "key").ptr) {
        take_failed(tape, entry, data, direction);
    } else if (slice_is(what, "retrying")) {
        take_retrying(tape, entry, data, direction);
    } else if (slice_is(what, "unknown") || slice_is(what, "accepted")) {
        call = call_of(tape, entry, direction);
        if (call->is_out) {
            take_reply(tape, call, LIST_CALLS,
                       reply_of(tape, slice_is(what, "accepted") ? REPLY_ACCEPTED : unclear_kind(tape, data), data));
        }
        come_back(tape, call);
    } else if (slice_is(what, "probed")) {
        take_probed(tape, entry, data, direction);
    } else if (slice_is(what, "late")) {
        struct happened *late = take_event(tape, EVENT_LATE, text_at(tape, entry, "step"));

        late->event.result = json_member(data, "result");
        late->event.error = text_at(tape, data, "error");
    }
    return true;
}

/* --- what people and others did --- */

static void take_resolved(struct tape *tape, struct slice entry, struct slice data)
{
    static const enum event_kind kinds[] = {EVENT_RESOLVE, EVENT_RETRY,      EVENT_SKIP,   EVENT_WAIVE,
                                            EVENT_PROBE,   EVENT_COMPENSATE, EVENT_ABANDON};
    struct slice action = text_at(tape, data, "action"), step = text_at(tape, entry, "step");

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (slice_is(action, event_name(kinds[i]))) {
            bool is_whole = kinds[i] == EVENT_COMPENSATE || kinds[i] == EVENT_ABANDON;
            struct happened *happened = take_event(tape, kinds[i], is_whole ? text_at(tape, data, "note") : step);

            happened->as = text_at(tape, data, "as");
        }
    }
}

static bool is_reopened(struct slice type)
{
    return slice_is(type, "step.reopened") || slice_is(type, "compensation.reopened");
}

static void take_other(struct tape *tape, struct slice type, struct slice entry, struct slice data)
{
    struct slice error = text_at(tape, data, "error");

    if (slice_is(type, "signal.received")) {
        take_event(tape, EVENT_SIGNAL, text_at(tape, data, "signal"))->event.payload = json_member(data, "args");
    } else if (slice_is(type, "approval.decided")) {
        bool yes = slice_is(text_at(tape, data, "as"), "approve");

        struct happened *decided = take_event(tape, yes ? EVENT_APPROVE : EVENT_REFUSE, text_at(tape, entry, "step"));

        decided->event.by = text_at(tape, entry, "actor");
        decided->event.note = text_at(tape, data, "note");
    } else if (slice_is(type, "escalation.opened") && slice_is(text_at(tape, data, "reason"), "asked")) {
        take_event(tape, EVENT_ESCALATE, text_at(tape, data, "note"))->event.during = out_now(tape);
    } else if (slice_is(type, "escalation.resolved")) {
        take_resolved(tape, entry, data);
    } else if (slice_is(type, "saga.failing") && slice_is(error, "abort")) {
        take_event(tape, EVENT_ABORT, text_at(tape, data, "note"))->event.during = out_now(tape);
    } else if (slice_is(type, "saga.failing") && slice_is(error, "locked")) {
        tape->locks_taken = true;
    } else if (slice_is(type, "saga.paused")) {
        take_event(tape, EVENT_PAUSE, text_at(tape, data, "note"))->event.during = out_now(tape);
    } else if (slice_is(type, "saga.resumed")) {
        (void)take_event(tape, EVENT_RESUME, text_at(tape, data, "note"));
    } else if (is_reopened(type) && tape->event_count > 0) {
        struct event *last = &tape->events[tape->event_count - 1].event;

        last->again = last->kind == EVENT_RESOLVE;
        if (last->kind == EVENT_RETRY) {
            (void)json_bool(json_member(data, "accept_double"), &last->accept_double);
            last->args = json_member(data, "args");
        }
    }
}

static void play_tape(struct tape *tape)
{
    const struct recording *recording = tape->recording;

    for (size_t i = 0; i < recording->entry_count; i++) {
        struct slice entry = recording->entries[i], type = text_at(tape, entry, "type");
        struct slice data = json_member(entry, "data");

        if (!take_operation(tape, type, entry, data) || is_reopened(type)) {
            take_other(tape, type, entry, data);
        }
    }
}

/* --- writing --- */

static bool several_operations(const struct tape *tape, struct slice tool)
{
    size_t count = 0;

    for (size_t i = 0; i < tape->call_count; i++) {
        count += tape->calls[i].tool.ptr && slice_equal(tape->calls[i].tool, tool);
    }
    return count > 1;
}

static void write_reply(struct json_writer *w, const struct taken *taken, bool names_args)
{
    const struct reply *reply = &taken->reply;

    json_object_begin(w, NULL);
    if (names_args) {
        json_write_raw(w, "args", taken->args);
    }
    if (reply->kind != REPLY_DONE) {
        json_write_text(w, "reply", reply_word(reply->kind));
        if (reply->error.ptr) {
            json_write_slice(w, "error", reply->error);
        }
        if (reply->detail.ptr) {
            json_write_slice(w, "detail", reply->detail);
        }
    } else {
        json_write_raw(w, "result", reply->result);
    }
    json_object_end(w);
}

static void write_list(struct tape *tape, struct json_writer *w, struct slice tool, enum reply_list list)
{
    static const char *const names[] = {"calls", "probes", "precheck"};
    bool begun = false, names_args = several_operations(tape, tool);

    for (size_t i = 0; i < tape->reply_count; i++) {
        if (tape->replies[i].list != list || !slice_equal(tape->replies[i].tool, tool)) {
            continue;
        }
        if (!begun) {
            json_array_begin(w, names[list]);
            begun = true;
        }
        write_reply(w, &tape->replies[i], names_args);
    }
    if (begun) {
        json_array_end(w);
    }
}

static void write_tools(struct tape *tape, struct json_writer *w)
{
    json_object_begin(w, "tools");
    for (size_t i = 0; i < tape->reply_count; i++) {
        struct slice tool = tape->replies[i].tool;
        bool again = false;

        for (size_t k = 0; k < i; k++) {
            again = again || slice_equal(tape->replies[k].tool, tool);
        }
        if (again) {
            continue;
        }
        json_object_begin(w, arena_text(tape->arena, tool));
        for (int list = 0; list < LIST_COUNT; list++) {
            write_list(tape, w, tool, (enum reply_list)list);
        }
        json_object_end(w);
    }
    json_object_end(w);
}

static void write_event(struct json_writer *w, const struct happened *happened)
{
    const struct event *event = &happened->event;

    json_object_begin(w, NULL);
    json_write_slice(w, event_name(event->kind), event->text.ptr ? event->text : SLICE(""));
    if (event->by.ptr) {
        json_write_slice(w, "by", event->by);
    }
    if (event->note.ptr) {
        json_write_slice(w, "note", event->note);
    }
    if (event->during.ptr) {
        json_write_slice(w, "during", event->during);
    }
    if (event->kind == EVENT_SIGNAL) {
        json_write_raw(w, "payload", event->payload);
    }
    if (event->kind == EVENT_RESOLVE) {
        json_write_slice(w, "as", happened->as);
        if (event->again) {
            json_write_text(w, "then", "retry");
        }
    }
    if (event->accept_double) {
        json_write_bool(w, "accept_double", true);
    }
    if (event->args.ptr) {
        json_write_raw(w, "args", event->args);
    }
    if (event->result.ptr) {
        json_write_raw(w, "result", event->result);
    }
    if (event->kind == EVENT_LATE && event->error.ptr) {
        json_write_slice(w, "error", event->error);
    }
    json_object_end(w);
}

/* In the order of their first calls, as the stage lists them. */
static void write_undone(struct tape *tape, struct json_writer *w)
{
    json_array_begin(w, "undone");
    for (size_t i = 0; i < tape->made_count; i++) {
        const struct expected_call *call = &tape->made[i];
        bool again = false, completed = false;

        for (size_t k = 0; k < i; k++) {
            again = again || (tape->made[k].direction == DIRECTION_UNDO && slice_equal(tape->made[k].step, call->step));
        }
        for (size_t k = 0; k < tape->undone_count; k++) {
            completed = completed || slice_equal(tape->undone[k], call->step);
        }
        if (call->direction == DIRECTION_UNDO && !again && completed) {
            json_write_slice(w, NULL, call->step);
        }
    }
    json_array_end(w);
}

static void write_expectation(struct tape *tape, struct json_writer *w)
{
    struct slice saga = tape->recording->saga;

    json_object_begin(w, "expect");
    json_write_slice(w, "status", text_at(tape, saga, "status"));
    if (!tape->side_by_side) {
        json_array_begin(w, "calls");
        for (size_t i = 0; i < tape->made_count; i++) {
            const struct expected_call *call = &tape->made[i];

            json_object_begin(w, NULL);
            json_write_slice(w, "step", call->step);
            if (call->direction == DIRECTION_UNDO) {
                json_write_bool(w, "undo", true);
            }
            json_write_raw(w, "args", call->args);
            json_object_end(w);
        }
        json_array_end(w);
        write_undone(tape, w);
    }
    if (json_type(json_member(saga, "output")) != JSON_NULL) {
        json_write_raw(w, "output", json_member(saga, "output"));
    }
    json_object_end(w);
}

static void write_scenario(struct tape *tape, struct json_writer *w)
{
    struct slice saga = tape->recording->saga;
    struct slice id = text_at(tape, saga, "business_id");

    json_object_begin(w, NULL);
    json_write_slice(w, "name", arena_printf(tape->arena, "recorded from %.*s", SLICE_ARG(text_at(tape, saga, "id"))));
    json_write_slice(w, "saga", text_at(tape, saga, "saga"));
    json_write_raw(w, "input", json_member(saga, "input"));
    if (id.ptr) {
        json_write_slice(w, "id", id);
    }
    if (tape->locks_taken) {
        json_write_text(w, "locks", "taken");
    }
    write_tools(tape, w);
    json_array_begin(w, "events");
    for (size_t i = 0; i < tape->event_count; i++) {
        write_event(w, &tape->events[i]);
    }
    json_array_end(w);
    write_expectation(tape, w);
    json_object_end(w);
}

enum err_code recording_write(struct recording *recording, struct buffer *out, struct err *err)
{
    size_t room = recording->entry_count + 1;
    struct arena *arena = recording->arena;
    struct tape tape = {.recording = recording,
                        .arena = arena,
                        .replies = arena_array(arena, room, sizeof(*tape.replies)),
                        .events = arena_array(arena, room, sizeof(*tape.events)),
                        .calls = arena_array(arena, room, sizeof(*tape.calls)),
                        .made = arena_array(arena, room, sizeof(*tape.made)),
                        .undone = arena_array(arena, room, sizeof(*tape.undone))};
    struct json_writer w;

    if (json_type(json_member(recording->saga, "saga")) != JSON_STRING) {
        return err_set(err, ERR_UNSUPPORTED, "an open saga cannot be recorded: its steps are the calls of an agent");
    }
    play_tape(&tape);
    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_array_begin(&w, "scenarios");
    write_scenario(&tape, &w);
    json_array_end(&w);
    json_object_end(&w);
    return ERR_OK;
}
