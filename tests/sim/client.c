/*
 * Clients. Each act of the scenario is one client that wants one thing. It asks an engine. When no answer comes, or the
 * answer is "not now", it asks any engine again with the same business id, emission or key. It tells the judge all
 * answers.
 *
 * In the end the clients look after every saga that they were told of: they send the signals that it waits for, resume
 * it when it is paused, and complete it when it is open.
 */
#include "tests/sim/drive.h"

#include <stdio.h>

#include "base/json.h"

#define TRIES_MAX_OF_CALLS 40
#define TOOLS_MAX 32
#define ROOM_FOR_ALL 100 /* the most sagas for which there is room in memory */

struct affair { /* an act and how it went */
    struct inquiry inquiry;
    const struct act *act;
    bool over, known;
    uint32_t tries;
    struct saga_id saga; /* the saga that the act began, or is about */
};

struct ward { /* a saga that a client was told of, and looks after in the end */
    struct inquiry inquiry;
    struct saga_id saga;
    bool is_open, ended, is_watched;
    uint32_t
        act; /* NOT_TOLD: an engine that does not yet know whether the start was committed does not find the saga */
    uint32_t rounds;
    enum ward_verb { WARD_LOOK, WARD_RESUME, WARD_SIGNAL, WARD_COMPLETE, WARD_ABORT } verb;
    char signal[8];
};

#define WARDS_MAX (ACTS_MAX * 4)

static struct {
    struct affair affairs[ACTS_MAX];
    struct ward wards[WARDS_MAX];
    uint32_t ward_count;
    struct slice tools[TOOLS_MAX]; /* the tools that an agent may call */
    uint32_t tool_count;
} clients;

static struct affair *affair_of(uint32_t id)
{
    for (uint32_t i = 0; i < scenario_now->act_count; i++) {
        if (clients.affairs[i].act->id == id) {
            return &clients.affairs[i];
        }
    }
    return NULL;
}

static const char *const act_names[ACT_KIND_COUNT] = {
    [ACT_START] = "start",       [ACT_START_AGAIN] = "start again",
    [ACT_OPEN] = "open",         [ACT_CALL] = "call",
    [ACT_COMPLETE] = "complete", [ACT_SIGNAL] = "signal",
    [ACT_ABORT] = "abort",       [ACT_PAUSE] = "pause",
    [ACT_RESUME] = "resume",     [ACT_GET] = "get",
    [ACT_ASK] = "ask",
};

/* --- what is asked --- */

/* Returns the act that gives a start its name and input: for a repeat, the repeated act. */
static const struct act *origin_of(const struct act *act)
{
    const struct affair *first = act->kind == ACT_START_AGAIN ? affair_of(act->saga) : NULL;

    return first ? first->act : act;
}

static bool has_business_id(const struct act *act)
{
    return (origin_of(act)->variant >> 9 & 7) != 0;
}

/* Returns the input of a start. A repeat may have another input: then the repeat is refused, or it came first and the
 * other start is refused. */
static struct slice input_of(const struct act *act, struct arena *arena)
{
    const struct act *origin = origin_of(act);
    bool other = origin != act && (act->variant >> 8 & 3) == 0;
    struct buffer out;
    struct slice text;

    buffer_init(&out, 4096);
    buffer_printf(&out, "{\"n\":%u,\"t\":true,\"f\":false,\"l0\":[],\"l1\":[1],\"l2\":[1,\"b\"],\"l3\":[3,2,1]",
                  (unsigned)((origin->variant >> 12) % 3 + (other ? 10 : 0)));
    for (uint32_t i = 0; i < VARIANT_REFUSALS; i++) {
        if (origin->variant >> i & 1) {
            buffer_printf(&out, ",\"r%u\":true", (unsigned)i);
        }
    }
    buffer_put_char(&out, '}');
    text = arena_slice(arena, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

static struct slice business_id_of(const struct act *act, struct arena *arena)
{
    return has_business_id(act) ? arena_printf(arena, "b%u", (unsigned)origin_of(act)->id) : SLICE_NONE;
}

static struct slice key_of(const struct act *act, struct arena *arena)
{
    uint32_t key = act->variant >> 4 & 3; /* few keys, so that another act may well use the same one */

    return key ? arena_printf(arena, "key-%u", (unsigned)key) : SLICE_NONE;
}

static struct slice signal_of(const struct act *act)
{
    return act->variant & 1 ? SLICE("g1") : SLICE("g0");
}

static void ask_call(const struct affair *affair, struct engine_request *request)
{
    static const int64_t waits_ms[] = {0, 300, 3000, 3000};
    const struct act *act = affair->act;
    uint32_t variant = act->variant;
    struct arena *arena = request->arena;

    request->in.call.saga = affair->saga;
    request->in.call.run = act->saga ? SLICE_NONE : arena_printf(arena, "run-%u", (unsigned)(variant & 1));
    request->in.call.tool = clients.tools[(variant >> 1) % clients.tool_count];
    request->in.call.step =
        variant >> 8 & 1 ? arena_printf(arena, "step_%u", (unsigned)(variant >> 9 & 1)) : SLICE_NONE;
    request->in.call.scope =
        variant >> 10 & 1 ? arena_printf(arena, "scope-%u", (unsigned)(variant >> 11 & 1)) : SLICE_NONE;
    request->in.call.args = (variant >> 12 & 7) == 0 ? SLICE("{\"n\":1,\"refuse\":true}") : SLICE("{\"n\":1}");
    request->in.call.emission = arena_printf(arena, "emission-%u", (unsigned)act->id);
    request->in.call.wait_ms = waits_ms[variant >> 15 & 3];
}

static void affair_send(struct inquiry *inquiry, struct engine *engine, struct engine_request *request)
{
    struct affair *affair = container_of(inquiry, struct affair, inquiry);
    const struct act *act = affair->act;
    struct arena *arena = request->arena;

    request->actor = SLICE("client");
    switch (act->kind) {
    case ACT_START:
    case ACT_START_AGAIN:
        request->in.start.saga = arena_printf(arena, "s%u", (unsigned)origin_of(act)->saga);
        request->in.start.input = input_of(act, arena);
        request->in.start.business_id = business_id_of(act, arena);
        engine_start_saga(engine, request);
        return;
    case ACT_OPEN:
        request->in.open.business_id = business_id_of(act, arena);
        request->in.open.deadline_ms = act->variant & 1 ? 60000 : 10000;
        engine_open_saga(engine, request);
        return;
    case ACT_CALL:
        ask_call(affair, request);
        engine_call(engine, request);
        return;
    case ACT_COMPLETE:
        request->in.change.verb = VERB_COMPLETE;
        request->in.change.saga = affair->saga;
        request->in.change.wait_ms = 2000;
        engine_change(engine, request);
        return;
    case ACT_SIGNAL:
        request->in.change.verb = VERB_SIGNAL;
        request->in.change.saga = affair->saga;
        request->in.change.input.signal.name = signal_of(act);
        request->in.change.input.signal.payload = arena_printf(arena, "{\"act\":%u}", (unsigned)act->id);
        request->in.change.input.signal.id = key_of(act, arena);
        engine_change(engine, request);
        return;
    case ACT_ABORT:
        request->in.change.verb = VERB_ABORT;
        request->in.change.saga = affair->saga;
        request->in.change.input.abort.note = SLICE("not wanted any more");
        engine_change(engine, request);
        return;
    case ACT_PAUSE:
        request->in.change.verb = VERB_PAUSE;
        request->in.change.saga = affair->saga;
        request->in.change.input.pause.note = SLICE("something is odd");
        engine_change(engine, request);
        return;
    case ACT_RESUME:
        request->in.change.verb = VERB_RESUME;
        request->in.change.saga = affair->saga;
        request->in.change.input.resume.note = SLICE("it is well");
        engine_change(engine, request);
        return;
    case ACT_GET:
        request->in.get.id = affair->saga;
        request->in.get.wait_ms = act->variant & 1 ? 2000 : 0;
        engine_get_saga(engine, request);
        return;
    case ACT_ASK:
        curious_send(act, affair->saga, engine, request);
        return;
    case ACT_KIND_COUNT:
        break;
    }
    UNREACHABLE();
}

/* --- what was answered --- */

void drive_follow(struct saga_id saga, bool is_open, uint32_t act)
{
    for (uint32_t i = 0; i < clients.ward_count; i++) {
        struct ward *ward = &clients.wards[i];

        if (uuid_equal(&ward->saga.uuid, &saga.uuid)) {
            ward->act = ward->act == NOT_TOLD ? act : ward->act;
            return;
        }
    }
    CHECK(clients.ward_count < WARDS_MAX);
    clients.wards[clients.ward_count++] = (struct ward){.saga = saga, .is_open = is_open, .act = act};
}

static void note_start(struct affair *affair, const struct engine_request *request)
{
    struct arena *arena = &world->arena;
    struct ack_start ack = {.namespace = NAMESPACE, .saga = request->saga, .created = request->created};

    ack.business_id = business_id_of(affair->act, arena);
    ack.input = affair->act->kind == ACT_OPEN ? SLICE_NONE : input_of(affair->act, arena);
    affair->known = true;
    affair->saga = request->saga;
    drive_follow(request->saga, affair->act->kind == ACT_OPEN, affair->act->id);
    check_acknowledged_start(&ack);
    if (!request->created) {
        see(SEEN_START_AGAIN);
    }
}

static void note_signal(const struct affair *affair, const struct engine_request *request)
{
    struct slice key = key_of(affair->act, &world->arena);
    bool created = true;

    see(SEEN_SIGNAL);
    if (json_bool(json_member(request->answer, "created"), &created) && !created) {
        see(SEEN_SIGNAL_AGAIN);
    }
    check_acknowledged_signal(affair->saga, signal_of(affair->act), key);
}

/* Tells the judge about a good answer. */
static void note(struct affair *affair, const struct engine_request *request)
{
    switch (affair->act->kind) {
    case ACT_START:
    case ACT_START_AGAIN:
    case ACT_OPEN:
        note_start(affair, request);
        return;
    case ACT_CALL:
        see(request->call.replayed ? SEEN_CALL_AGAIN : SEEN_CALL);
        return;
    case ACT_SIGNAL:
        note_signal(affair, request);
        return;
    case ACT_COMPLETE:
        see(SEEN_OPEN_COMPLETED);
        check_seen(affair->saga, request->answer);
        return;
    case ACT_ABORT:
        see(SEEN_ABORTED);
        check_seen(affair->saga, request->answer);
        return;
    case ACT_PAUSE:
        see(SEEN_PAUSED);
        check_seen(affair->saga, request->answer);
        return;
    case ACT_RESUME:
    case ACT_GET:
        check_seen(affair->saga, request->answer);
        return;
    case ACT_ASK:
        return; /* curious_answered() takes the answer */
    case ACT_KIND_COUNT:
        break;
    }
    UNREACHABLE();
}

static bool is_start(const struct act *act)
{
    return act->kind == ACT_START || act->kind == ACT_START_AGAIN || act->kind == ACT_OPEN;
}

/* Is another try worthwhile? `request` is NULL when no answer came. */
static bool asks_again(const struct affair *affair, const struct engine_request *request)
{
    const struct act *act = affair->act;

    if (act->kind == ACT_ASK) {
        return false;
    }
    if (!request) {
        /* Without an id a repeat would start another saga, or send another signal. */
        return is_start(act) ? has_business_id(act) : act->kind != ACT_SIGNAL || (act->variant >> 4 & 3) != 0;
    }
    if (request->code == ERR_OK) {
        return act->kind == ACT_CALL && request->call.going_on && affair->tries < TRIES_MAX_OF_CALLS;
    }
    if (act->kind == ACT_CALL || act->kind == ACT_COMPLETE) {
        return err_retryable(request->code) && affair->tries < TRIES_MAX_OF_CALLS;
    }
    /* A start that may have been accepted before the trouble is not repeated without an id, as above. */
    return err_may_pass(request->code) &&
           (request->code == ERR_BUSY || request->code == ERR_STOPPING || asks_again(affair, NULL));
}

static void affair_answered(struct inquiry *inquiry, const struct engine_request *request)
{
    struct affair *affair = container_of(inquiry, struct affair, inquiry);
    const struct act *act = affair->act;

    world_trace("client %u %s: %s %s", (unsigned)act->id, act_names[act->kind],
                request ? err_name(request->code) : "no answer",
                request && request->code != ERR_OK ? request->err.message : "");
    affair->tries++;
    if (act->kind == ACT_ASK) {
        curious_answered(act, request);
    }
    if (request && request->code == ERR_OK) {
        note(affair, request);
    } else if (request && request->code == ERR_OTHER_INPUT) {
        see(SEEN_START_OTHER);
    } else if (request && request->code == ERR_INVALID && act->kind == ACT_START) {
        world_violate("SIM", "the start of s%u is refused: %s %s", (unsigned)act->saga, request->err.message,
                      request->err.detail);
    }
    if (asks_again(affair, request)) {
        inquiry->node = affair->tries + act->node;
        inquiry_go(inquiry, world_between(STREAM_CLIENT, 10000, world->is_healed ? 1000000 : 400000));
        return;
    }
    if (request && request->code != ERR_OK && act->kind == ACT_CALL) {
        see(SEEN_CALL_REFUSED);
    }
    affair->over = true;
}

/* --- in time --- */

/* Runs an act. An act about a saga that has not begun yet waits for the saga. */
static void affair_due(struct event *event)
{
    struct affair *affair = container_of(event, struct affair, inquiry.timer);
    const struct act *act = affair->act;

    if (!is_start(act) && act->saga != 0) {
        const struct affair *first = affair_of(act->saga);

        if (!first || (first->over && !first->known)) {
            affair->over = true;
            return;
        }
        if (!first->known) {
            world_at(&affair->inquiry.timer, 50000, affair_due);
            return;
        }
        affair->saga = first->saga;
    }
    inquiry_go(&affair->inquiry, 0);
}

static bool may_be_called(struct slice tool)
{
    bool terminal = false;

    return json_member(tool, "compensate").ptr || json_string_is(json_member(tool, "effect"), "read") ||
           (json_bool(json_member(tool, "terminal"), &terminal) && terminal);
}

static void list_tools(void)
{
    struct json_walk walk = json_walk(json_member(scenario_now->definitions, "tools"));
    struct slice tool;

    clients.tool_count = 0;
    while (json_next_element(&walk, &tool) && clients.tool_count < TOOLS_MAX) {
        if (may_be_called(tool)) {
            clients.tools[clients.tool_count++] = json_string(json_member(tool, "name"), &world->arena);
        }
    }
    if (clients.tool_count == 0) {
        clients.tools[clients.tool_count++] = SLICE("none");
    }
}

void clients_init(void)
{
    clients.ward_count = 0;
    list_tools();
    curious_begin();
    for (uint32_t i = 0; i < scenario_now->act_count; i++) {
        clients.affairs[i] = (struct affair){.act = &scenario_now->acts[i]};
    }
}

void clients_begin(void)
{
    for (uint32_t i = 0; i < scenario_now->act_count; i++) {
        struct affair *affair = &clients.affairs[i];

        affair->inquiry.node = affair->act->node;
        affair->inquiry.patience_us = world_between(STREAM_CLIENT, 4000000, 8000000);
        if (affair->act->kind == ACT_ASK) {
            affair->inquiry.patience_us = curious_patience_us(affair->act, affair->inquiry.patience_us);
        }
        affair->inquiry.send = affair_send;
        affair->inquiry.answered = affair_answered;
        world_at(&affair->inquiry.timer, affair->act->at_us, affair_due);
    }
}

/* --- looking after --- */

static void ward_send(struct inquiry *inquiry, struct engine *engine, struct engine_request *request)
{
    struct ward *ward = container_of(inquiry, struct ward, inquiry);
    struct arena *arena = request->arena;

    request->actor = SLICE("keeper");
    switch (ward->verb) {
    case WARD_LOOK:
        request->in.get.id = ward->saga;
        /* A saga with a waiting client stays in memory. When there is room for only a few, no other saga would get
         * in. */
        request->in.get.wait_ms = scenario_now->options.sagas_max > ROOM_FOR_ALL ? 1000 : 0;
        engine_get_saga(engine, request);
        return;
    case WARD_RESUME:
        request->in.change.verb = VERB_RESUME;
        request->in.change.saga = ward->saga;
        request->in.change.input.resume.note = SLICE("it is well");
        engine_change(engine, request);
        return;
    case WARD_SIGNAL:
        request->in.change.verb = VERB_SIGNAL;
        request->in.change.saga = ward->saga;
        request->in.change.input.signal.name = arena_slice(arena, slice_of(ward->signal));
        request->in.change.input.signal.payload = SLICE("{\"keeper\":true}");
        engine_change(engine, request);
        return;
    case WARD_COMPLETE:
        request->in.change.verb = VERB_COMPLETE;
        request->in.change.saga = ward->saga;
        request->in.change.wait_ms = 1000;
        engine_change(engine, request);
        return;
    case WARD_ABORT:
        request->in.change.verb = VERB_ABORT;
        request->in.change.saga = ward->saga;
        request->in.change.input.abort.note = SLICE("nobody wants it any more");
        engine_change(engine, request);
        return;
    }
    UNREACHABLE();
}

/* Does a step of the saga wait for a signal? */
static bool awaits(struct slice saga, char signal[8])
{
    struct json_walk walk = json_walk(json_member(saga, "steps"));
    struct slice step, name;

    while (json_next_element(&walk, &step)) {
        name = json_member(json_member(step, "waits_for"), "signal");
        if (json_type(name) == JSON_STRING && name.len >= 2 && name.len < 10) {
            (void)snprintf(signal, 8, "%.*s", (int)name.len - 2, name.ptr + 1);
            return true;
        }
    }
    return false;
}

static bool is_final(struct slice status, enum seen *what)
{
    *what = json_string_is(status, "completed")     ? SEEN_COMPLETED
            : json_string_is(status, "compensated") ? SEEN_COMPENSATED
                                                    : SEEN_ABANDONED;
    return *what != SEEN_ABANDONED || json_string_is(status, "abandoned");
}

static void ward_looked(struct ward *ward, struct slice answer)
{
    struct slice status = json_member(answer, "status");
    enum seen what;

    check_seen(ward->saga, answer);
    ward->verb = WARD_LOOK;
    if (is_final(status, &what)) {
        ward->ended = true;
        see(what);
    } else if (json_string_is(status, "paused")) {
        ward->verb = WARD_RESUME;
    } else if (awaits(answer, ward->signal)) {
        ward->verb = WARD_SIGNAL;
    } else if (ward->is_open && !json_string_is(status, "escalated") && !json_string_is(status, "compensating")) {
        ward->verb = ward->rounds++ < 3 ? WARD_COMPLETE : WARD_ABORT;
    }
}

static void ward_answered(struct inquiry *inquiry, const struct engine_request *request)
{
    struct ward *ward = container_of(inquiry, struct ward, inquiry);

    if (request && request->code == ERR_OK && ward->verb == WARD_LOOK) {
        ward_looked(ward, request->answer);
    } else if (request && request->code == ERR_NOT_FOUND && ward->verb == WARD_LOOK && ward->act != NOT_TOLD) {
        world_violate("I7", "a saga of act %u that was acknowledged is not to be found", (unsigned)ward->act);
    } else {
        ward->verb = WARD_LOOK;
    }
    if (!ward->ended) {
        inquiry->node = world_below(STREAM_CLIENT, NODES_MAX);
        inquiry_go(inquiry, world_between(STREAM_CLIENT, 50000, 1000000));
    }
}

static void watch(struct ward *ward)
{
    ward->is_watched = true;
    ward->inquiry = (struct inquiry){.patience_us = 5000000, .send = ward_send, .answered = ward_answered};
    inquiry_go(&ward->inquiry, world_between(STREAM_CLIENT, 1000, 500000));
}

void clients_heal(void)
{
    for (uint32_t i = 0; i < clients.ward_count; i++) {
        if (!clients.wards[i].is_watched) {
            watch(&clients.wards[i]);
        }
    }
}

bool clients_are_done(void)
{
    bool done = true;

    for (uint32_t i = 0; i < scenario_now->act_count; i++) {
        done = done && clients.affairs[i].over;
    }
    for (uint32_t i = 0; i < clients.ward_count; i++) {
        if (world->is_healed && !clients.wards[i].is_watched) {
            watch(&clients.wards[i]); /* the saga has begun in the meantime */
        }
        done = done && clients.wards[i].ended;
    }
    return done;
}

void clients_describe(char *out, size_t bytes)
{
    char id[UUID_TEXT_BYTES];

    (void)snprintf(out, bytes, "nothing");
    for (uint32_t i = 0; i < scenario_now->act_count; i++) {
        if (!clients.affairs[i].over) {
            (void)snprintf(out, bytes, "act %u (%s) after %u tries", (unsigned)clients.affairs[i].act->id,
                           act_names[clients.affairs[i].act->kind], (unsigned)clients.affairs[i].tries);
            return;
        }
    }
    for (uint32_t i = 0; i < clients.ward_count; i++) {
        if (!clients.wards[i].ended) {
            uuid_text(&clients.wards[i].saga.uuid, id);
            (void)snprintf(out, bytes, "saga %s of act %u", id, (unsigned)clients.wards[i].act);
            return;
        }
    }
}
