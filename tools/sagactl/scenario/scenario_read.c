/* Reads files of scenarios. See scenario.h. */
#include <string.h>

#include "base/canon.h"
#include "base/json.h"
#include "core/language/members.h"
#include "tools/sagactl/scenario/scenario.h"

#define TIMES_MAX 1000000
#define DURATION_MAX_MS (INT64_C(400) * 24 * 3600 * 1000)

#define X(id, word) word,
static const char *const reply_words[] = {REPLY_MAP(X)};
static const char *const event_names[] = {EVENT_MAP(X)};
#undef X

const char *reply_word(enum reply_kind kind)
{
    return reply_words[kind];
}

const char *event_name(enum event_kind kind)
{
    return event_names[kind];
}

struct reader {
    struct arena *arena;
    struct faults *faults;
};

static size_t count_of(struct slice array)
{
    return json_type(array) == JSON_ARRAY ? json_count(array) : 0;
}

/* Takes an array. Returns false, after a fault, when the member is there and is something else. */
static bool array_take(const struct members *m, const char *name, struct slice *out)
{
    *out = members_at(m, name);
    if (out->ptr && json_type(*out) != JSON_ARRAY) {
        faults_add(m->faults, members_pointer(m, name), "found %s, expected an array", json_type_name(json_type(*out)));
        *out = SLICE_NONE;
        return false;
    }
    return out->ptr != NULL;
}

/* --- replies --- */

/* Which replies a list may have. */
#define BITS_CALLS                                                                                                     \
    (1u << REPLY_DONE | 1u << REPLY_RESPONSE | 1u << REPLY_FAILS | 1u << REPLY_BUSY | 1u << REPLY_UNSENT |             \
     1u << REPLY_UNKNOWN | 1u << REPLY_ACCEPTED | 1u << REPLY_CRASH)
#define BITS_PROBES                                                                                                    \
    (1u << REPLY_DONE | 1u << REPLY_RESPONSE | 1u << REPLY_ABSENT | 1u << REPLY_UNKNOWN | 1u << REPLY_ACCEPTED)
#define BITS_PRECHECKS (1u << REPLY_GO | 1u << REPLY_DONE | 1u << REPLY_BLOCKED | 1u << REPLY_UNKNOWN)

static void reply_word_take(const struct reader *r, struct slice word, struct slice pointer, unsigned allowed,
                            struct reply *out)
{
    struct slice list = SLICE("");

    for (int i = 0; i < REPLY_COUNT; i++) {
        if (!(allowed & 1u << i)) {
            continue;
        }
        if (slice_is(word, reply_words[i])) {
            out->kind = (enum reply_kind)i;
            return;
        }
        list = arena_printf(r->arena, "%.*s%s%s", SLICE_ARG(list), list.len ? ", " : "", reply_words[i]);
    }
    faults_add(r->faults, pointer, "found \"%.*s\", expected one of: %.*s", SLICE_ARG(word), SLICE_ARG(list));
}

static struct reply reply_read(const struct reader *r, struct slice value, struct slice pointer, unsigned allowed)
{
    struct reply reply = {.kind = REPLY_DONE, .times = 1};
    struct slice word = SLICE_NONE;
    struct members m;

    if (json_type(value) == JSON_STRING) {
        reply_word_take(r, json_string(value, r->arena), pointer, allowed, &reply);
        return reply;
    }
    if (!members_open(&m, value, pointer, "a reply",
                      "reply result response error detail retry_after took_effect args times", "", r->arena,
                      r->faults)) {
        return reply;
    }
    reply.result = members_at(&m, "result");
    reply.response = members_at(&m, "response");
    reply.args = members_at(&m, "args");
    if (members_text(&m, "reply", &word)) {
        reply_word_take(r, word, members_pointer(&m, "reply"), allowed, &reply);
    } else if (reply.response.ptr) {
        reply.kind = REPLY_RESPONSE;
    } else if (!reply.result.ptr) {
        faults_add(r->faults, pointer, "the reply says nothing; expected `reply`, `result` or `response`");
    }
    if (reply.kind == REPLY_RESPONSE && json_type(reply.response) != JSON_OBJECT) {
        faults_add(r->faults, pointer, "a reply `response` needs the object \"response\", as expressions see it");
    }
    (void)members_text(&m, "error", &reply.error);
    (void)members_text(&m, "detail", &reply.detail);
    (void)members_duration(&m, "retry_after", 0, DURATION_MAX_MS, &reply.retry_after_ms);
    (void)members_bool(&m, "took_effect", &reply.took_effect);
    (void)members_count(&m, "times", 1, TIMES_MAX, &reply.times);
    return reply;
}

static struct replies replies_read(const struct reader *r, struct slice value, struct slice pointer, unsigned allowed)
{
    size_t count = count_of(value);
    struct reply *items = arena_array(r->arena, count + 1, sizeof(*items));

    if (value.ptr && json_type(value) != JSON_ARRAY) {
        faults_add(r->faults, pointer, "found %s, expected an array of replies", json_type_name(json_type(value)));
    }
    struct json_walk walk = json_walk(value);
    struct slice element;

    for (size_t i = 0; i < count && json_next_element(&walk, &element); i++) {
        items[i] = reply_read(r, element, place_join_index(r->arena, pointer, i), allowed);
    }
    return (struct replies){items, count};
}

static struct tool_replies tool_read(const struct reader *r, struct slice name, struct slice value,
                                     struct slice pointer)
{
    struct tool_replies tool = {.tool = name};
    struct members m;

    if (json_type(value) == JSON_ARRAY) {
        tool.calls = replies_read(r, value, pointer, BITS_CALLS);
    } else if (members_open(&m, value, pointer, "the replies of a tool", "calls probes precheck", "", r->arena,
                            r->faults)) {
        tool.calls = replies_read(r, members_at(&m, "calls"), members_pointer(&m, "calls"), BITS_CALLS);
        tool.probes = replies_read(r, members_at(&m, "probes"), members_pointer(&m, "probes"), BITS_PROBES);
        tool.prechecks = replies_read(r, members_at(&m, "precheck"), members_pointer(&m, "precheck"), BITS_PRECHECKS);
    }
    return tool;
}

static void tools_read(const struct reader *r, struct slice value, struct slice pointer, struct scenario *out)
{
    struct json_walk walk = json_walk(value);
    struct slice name, replies;

    if (!value.ptr) {
        return;
    }
    if (json_type(value) != JSON_OBJECT) {
        faults_add(r->faults, pointer, "found %s, expected an object: what each tool answers",
                   json_type_name(json_type(value)));
        return;
    }
    struct tool_replies *tools = arena_array(r->arena, json_count(value) + 1, sizeof(*tools));

    while (json_next_member(&walk, &name, &replies)) {
        tools[out->tool_count++] = tool_read(r, name, replies, place_join(r->arena, pointer, name));
    }
    out->tools = tools;
}

/* --- events --- */

#define EVENT_MEMBERS                                                                                                  \
    "signal approve refuse late resolve retry skip waive probe compensate abandon abort escalate pause resume pass "   \
    "after during by note payload result args error as then accept_double"

static void verdict_read(const struct members *m, struct event *event)
{
    struct slice as = SLICE_NONE, then = SLICE_NONE;

    (void)members_text(m, "as", &as);
    (void)members_text(m, "then", &then);
    event->undone = slice_is(as, "undone");
    event->happened = slice_is(as, "happened") || event->undone;
    event->again = slice_is(then, "retry");
    if (!event->happened && !slice_is(as, "not_happened")) {
        faults_add(m->faults, members_pointer(m, "as"), "expected \"happened\", \"not_happened\" or \"undone\"");
    }
    if (then.ptr && !event->again) {
        faults_add(m->faults, members_pointer(m, "then"), "found \"%.*s\", expected \"retry\"", SLICE_ARG(then));
    }
}

static struct event event_read(const struct reader *r, struct slice value, struct slice pointer)
{
    struct event event = {.kind = EVENT_COUNT, .pointer = pointer, .after_ms = -1};
    struct members m;

    if (!members_open(&m, value, pointer, "an event", EVENT_MEMBERS, "", r->arena, r->faults)) {
        return event;
    }
    for (int i = 0; i < EVENT_COUNT; i++) {
        if (!members_at(&m, event_names[i]).ptr) {
            continue;
        }
        if (event.kind != EVENT_COUNT) {
            faults_add(r->faults, pointer, "`%s` and `%s` are two events; write one after the other",
                       event_names[event.kind], event_names[i]);
        }
        event.kind = (enum event_kind)i;
    }
    if (event.kind == EVENT_COUNT) {
        faults_add(r->faults, pointer, "the event says nothing, such as `signal`, `abort` or `pass`");
        return event;
    }
    if (event.kind == EVENT_PASS) {
        (void)members_duration(&m, "pass", 0, DURATION_MAX_MS, &event.pass_ms);
    } else {
        (void)members_text(&m, event_names[event.kind], &event.text);
    }
    (void)members_duration(&m, "after", 0, DURATION_MAX_MS, &event.after_ms);
    (void)members_text(&m, "by", &event.by);
    (void)members_text(&m, "note", &event.note);
    (void)members_text(&m, "during", &event.during);
    if (event.during.ptr && event.after_ms >= 0) {
        faults_add(r->faults, pointer, "`during` and `after` are two times; one event has one");
    }
    event.payload = members_at(&m, "payload");
    event.result = members_at(&m, "result");
    event.args = members_at(&m, "args");
    (void)members_text(&m, "error", &event.error);
    (void)members_bool(&m, "accept_double", &event.accept_double);
    if (event.kind == EVENT_RESOLVE) {
        verdict_read(&m, &event);
    }
    return event;
}

/* --- what is expected --- */

static struct slice *texts_read(const struct reader *r, const struct members *m, const char *name, bool *given,
                                size_t *count)
{
    struct slice array;

    *given = array_take(m, name, &array);
    *count = count_of(array);
    struct slice *texts = arena_array(r->arena, *count + 1, sizeof(*texts));

    struct json_walk walk = json_walk(array);
    struct slice element;

    for (size_t i = 0; i < *count && json_next_element(&walk, &element); i++) {
        texts[i] = json_string(element, r->arena);
        if (!texts[i].ptr) {
            faults_add(r->faults, place_join_index(r->arena, members_pointer(m, name), i), "expected the id of a step");
        }
    }
    return texts;
}

static struct expected_call expected_call_read(const struct reader *r, struct slice value, struct slice pointer)
{
    static const char undo_prefix[] = "undo ";
    struct expected_call call = {.pointer = pointer, .direction = DIRECTION_DO};
    struct members m;
    bool undo = false;

    if (json_type(value) == JSON_STRING) {
        call.step = json_string(value, r->arena);
        if (slice_starts_with(call.step, undo_prefix)) {
            call.step.ptr += sizeof(undo_prefix) - 1;
            call.step.len -= sizeof(undo_prefix) - 1;
            call.direction = DIRECTION_UNDO;
        }
        return call;
    }
    if (!members_open(&m, value, pointer, "a call", "step tool args scope undo key", "", r->arena, r->faults)) {
        return call;
    }
    if (!members_text(&m, "step", &call.step)) {
        faults_add(r->faults, pointer, "the call names no `step`");
    }
    (void)members_text(&m, "tool", &call.tool);
    (void)members_text(&m, "scope", &call.scope);
    (void)members_text(&m, "key", &call.key);
    (void)members_bool(&m, "undo", &undo);
    call.args = members_at(&m, "args");
    call.direction = undo ? DIRECTION_UNDO : DIRECTION_DO;
    return call;
}

static void expected_calls_read(const struct reader *r, const struct members *m, struct expectation *out)
{
    struct slice array;

    out->has_calls = array_take(m, "calls", &array);
    out->call_count = count_of(array);
    struct expected_call *calls = arena_array(r->arena, out->call_count + 1, sizeof(*calls));

    struct json_walk walk = json_walk(array);
    struct slice element;

    for (size_t i = 0; i < out->call_count && json_next_element(&walk, &element); i++) {
        calls[i] = expected_call_read(r, element, place_join_index(r->arena, members_pointer(m, "calls"), i));
    }
    out->calls = calls;
}

static void expected_steps_read(const struct reader *r, const struct members *m, struct expectation *out)
{
    struct slice object = members_at(m, "steps"), name, status;
    struct json_walk walk = json_walk(object);

    if (!object.ptr) {
        return;
    }
    if (json_type(object) != JSON_OBJECT) {
        faults_add(r->faults, members_pointer(m, "steps"), "expected an object: the status of each step");
        return;
    }
    struct expected_step *steps = arena_array(r->arena, json_count(object) + 1, sizeof(*steps));

    while (json_next_member(&walk, &name, &status)) {
        steps[out->step_count++] = (struct expected_step){name, json_string(status, r->arena)};
    }
    out->steps = steps;
}

static void expected_escalation_read(const struct reader *r, const struct members *m, struct expectation *out)
{
    struct slice value = members_at(m, "escalation");
    struct members inner;

    if (value.ptr && members_open(&inner, value, members_pointer(m, "escalation"), "`escalation`", "step reason", "",
                                  r->arena, r->faults)) {
        out->has_escalation = true;
        (void)members_text(&inner, "step", &out->escalation_step);
        (void)members_text(&inner, "reason", &out->escalation_reason);
    }
}

static void expectation_read(const struct reader *r, struct slice value, struct slice pointer, struct expectation *out)
{
    struct members m;

    out->pointer = pointer;
    if (!value.ptr) {
        faults_add(r->faults, pointer, "the scenario expects nothing; `expect` has at least a `status`");
        return;
    }
    if (!members_open(&m, value, pointer, "`expect`", "status calls undone standing output steps escalation", "",
                      r->arena, r->faults)) {
        return;
    }
    enum saga_status status;

    if (!members_text(&m, "status", &out->status)) {
        faults_add(r->faults, pointer, "`expect` needs a `status`: \"completed\", \"compensated\", \"escalated\", ...");
    } else if (!saga_status_parse(out->status, &status)) {
        faults_add(r->faults, members_pointer(&m, "status"), "\"%.*s\" is no status of a saga", SLICE_ARG(out->status));
    }
    expected_calls_read(r, &m, out);
    out->undone = texts_read(r, &m, "undone", &out->has_undone, &out->undone_count);
    out->standing = texts_read(r, &m, "standing", &out->has_standing, &out->standing_count);
    out->output = members_at(&m, "output");
    expected_steps_read(r, &m, out);
    expected_escalation_read(r, &m, out);
}

/* --- a scenario --- */

static struct scenario scenario_read(const struct reader *r, struct slice value, struct slice pointer)
{
    struct scenario scenario = {.pointer = pointer, .input = SLICE("{}")};
    struct slice locks = SLICE_NONE, events;
    struct members m;

    if (!members_open(&m, value, pointer, "a scenario", "name description saga input id tools events locks expect", "",
                      r->arena, r->faults)) {
        return scenario;
    }
    if (!members_text(&m, "name", &scenario.name)) {
        faults_add(r->faults, pointer, "the scenario has no `name`: a few words about what happens in it");
    }
    if (!members_text(&m, "saga", &scenario.saga)) {
        faults_add(r->faults, pointer, "the scenario has no `saga`: the name of the definition");
    }
    scenario.input = members_at(&m, "input").ptr ? members_at(&m, "input") : scenario.input;
    (void)members_text(&m, "id", &scenario.business_id);
    tools_read(r, members_at(&m, "tools"), members_pointer(&m, "tools"), &scenario);
    if (members_text(&m, "locks", &locks)) {
        scenario.locks_taken = slice_is(locks, "taken");
        if (!scenario.locks_taken) {
            faults_add(r->faults, members_pointer(&m, "locks"), "found \"%.*s\", expected \"taken\"", SLICE_ARG(locks));
        }
    }
    (void)array_take(&m, "events", &events);
    scenario.event_count = count_of(events);
    struct event *list = arena_array(r->arena, scenario.event_count + 1, sizeof(*list));

    struct json_walk walk = json_walk(events);
    struct slice element;

    for (size_t i = 0; i < scenario.event_count && json_next_element(&walk, &element); i++) {
        list[i] = event_read(r, element, place_join_index(r->arena, members_pointer(&m, "events"), i));
    }
    scenario.events = list;
    expectation_read(r, members_at(&m, "expect"), members_pointer(&m, "expect"), &scenario.expect);
    return scenario;
}

bool scenarios_are_in(struct slice json)
{
    return json_type(json) == JSON_OBJECT && json_member(json, "scenarios").ptr;
}

void scenarios_read(struct slice json, struct arena *arena, struct faults *faults, struct scenarios *out)
{
    const struct reader r = {arena, faults};
    struct slice array;
    struct members m;
    bool given;

    *out = (struct scenarios){0};
    if (!members_open(&m, json, SLICE(""), "a file of scenarios", "definitions scenarios", "", arena, faults)) {
        return;
    }
    out->definitions = texts_read(&r, &m, "definitions", &given, &out->definition_count);
    (void)array_take(&m, "scenarios", &array);
    out->count = count_of(array);
    struct scenario *items = arena_array(arena, out->count + 1, sizeof(*items));

    struct json_walk walk = json_walk(array);
    struct slice element;

    for (size_t i = 0; i < out->count && json_next_element(&walk, &element); i++) {
        items[i] = scenario_read(&r, element, place_join_index(arena, members_pointer(&m, "scenarios"), i));
    }
    out->items = items;
}

/* --- comparing --- */

static bool object_has(struct slice whole, struct slice part, struct arena *arena)
{
    struct json_walk walk = json_walk(part);
    struct slice name, value;

    while (json_next_member(&walk, &name, &value)) {
        struct json_walk inner = json_walk(whole);
        struct slice other, theirs;
        bool found = false;

        while (!found && json_next_member(&inner, &other, &theirs)) {
            found = slice_equal(name, other) && json_has(theirs, value, arena);
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

bool json_has(struct slice whole, struct slice part, struct arena *arena)
{
    if (json_type(part) == JSON_OBJECT && json_type(whole) == JSON_OBJECT) {
        return object_has(whole, part, arena);
    }
    if (json_type(part) != json_type(whole)) {
        return false;
    }
    struct digest a = canon_digest(whole, arena), b = canon_digest(part, arena);

    return digest_equal(&a, &b);
}
