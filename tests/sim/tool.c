/*
 * Services, their books, and the network to them. See tool.h.
 *
 * A service knows by key what it did. Its class says what it promises: a read never acts, an idempotent or keyed
 * service acts once for each key, and any other acts each time that it is asked. An undo knows the key that it undoes.
 * A service with "void" in its name also refuses that key from then on. Late requests and late answers of probes are
 * late by less than the visibility that the definitions state.
 *
 * The seed, the key and the number of requests with this key decide the fate of a request. So a request more or less
 * elsewhere changes nothing here.
 */
#include "tests/sim/tool.h"

#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "tests/sim/check.h"
#include "tests/sim/network.h"
#include "tests/sim/scenario.h"

#define ARENA_BLOCK_BYTES 16384
#define LATE_US_MAX                                                                                                    \
    3800000 /* the most that a request or the view of a probe is late; definitions state 4 s and more                  \
             */
#define DELAY_US_MIN 200
#define DELAY_US_MAX 20000
#define HEALED_US_MAX 3000
#define DUPLICATE_US_MAX 2500000
#define RUNNING_US_MAX 3000000
#define RETRY_AFTER_MS_MAX 3000

/* The fate of a request. */
enum fate {
    FATE_GOOD,
    FATE_UNSENT,       /* no connection: no byte left */
    FATE_TURNED_AWAY,  /* 429: certainly nothing happened, and a retry is welcome */
    FATE_REFUSED,      /* 422: certainly nothing happened, for good */
    FATE_REQUEST_LOST, /* the caller waits until its timeout */
    FATE_RESET_BEFORE, /* the connection breaks before the request has arrived */
    FATE_RESET_AFTER,  /* the connection breaks after the request has arrived */
    FATE_ANSWER_LOST,  /* the call is done, and the caller waits until its timeout */
    FATE_ANSWER_LATE,  /* the call is done, and the answer comes after the timeout */
    FATE_REQUEST_LATE, /* the request arrives after the timeout */
    FATE_ERROR_BEFORE, /* 500, and nothing happened */
    FATE_ERROR_AFTER,  /* 500, and the call happened */
    FATE_TWICE,        /* the network delivers the request twice */
    FATE_RUNNING,      /* 202: the call is accepted, and done some time later */
    FATE_SLOW,         /* the call succeeds and takes most of the time allowed */
    FATE_COUNT
};

/* Fates that leave a doubt are frequent, because the engine is made for them. */
static const uint8_t fate_weights[FATE_COUNT] = {
    [FATE_UNSENT] = 2,       [FATE_TURNED_AWAY] = 3,  [FATE_REFUSED] = 1,     [FATE_REQUEST_LOST] = 3,
    [FATE_RESET_BEFORE] = 2, [FATE_RESET_AFTER] = 3,  [FATE_ANSWER_LOST] = 4, [FATE_ANSWER_LATE] = 3,
    [FATE_REQUEST_LATE] = 4, [FATE_ERROR_BEFORE] = 2, [FATE_ERROR_AFTER] = 3, [FATE_TWICE] = 3,
    [FATE_RUNNING] = 2,      [FATE_SLOW] = 1,
};

struct key_state { /* the services' knowledge about one key */
    struct op_key key;
    uint32_t requests, probes;
    bool happened, undone, voided;
    int64_t visible_us, done_us; /* when a probe begins to see the effect, and when the call stops running */
};

struct request { /* a request: under way, at the service, or its answer on the way back */
    struct event event;
    struct message answer;
    struct world_call *call; /* NULL when nobody waits any more */
    struct node *node;
    uint32_t life;
    int64_t sent_us, timeout_us;
    struct op_key key, undoes;
    bool has_key, has_undoes, acts_once, is_read, is_probe, is_undo, voids, is_refused, is_copy;
    struct slice tool, args, id;
    enum fate fate;
    struct chance chance;
    size_t entry; /* index into the book; SIZE_MAX when the request has not arrived */
    /* the answer */
    enum outcome_kind kind;
    int64_t retry_after_ms;
    const char *error;
    struct slice response;
};

struct world_call { /* in the memory of the engine */
    struct call call;
    struct request *request;
    struct timer timeout;
    struct deferred settling;
};

struct tool_book tool_book;

static struct {
    struct arena arena; /* in the memory of the network */
    struct map keys;    /* of struct key_state */
    uint32_t fates;     /* bits of the fates that this run has */
    uint32_t percent;   /* the share of requests in trouble */
    bool healed;
    int64_t disturbed_until_us;
    uint32_t disturbed_fates;
} tools;

void tools_init(void)
{
    struct chance chance = chance_of(world->seed, STREAM_TOOL, 1);

    memset(&tools, 0, sizeof(tools));
    memset(&tool_book, 0, sizeof(tool_book));
    arena_init(&tools.arena, ARENA_BLOCK_BYTES); /* ends with the network */
    map_init(&tools.keys);
    tools.fates = (uint32_t)chance_next(&chance);
    tools.percent = scenario_now->tool_percent;
}

void tools_heal(void)
{
    tools.healed = true;
}

void tools_disturb(int64_t for_us, uint32_t variant)
{
    static const uint32_t troubles[] = {
        BIT(FATE_UNSENT),
        BIT(FATE_TURNED_AWAY),
        BIT(FATE_REQUEST_LOST) | BIT(FATE_RESET_BEFORE) | BIT(FATE_REQUEST_LATE),
        BIT(FATE_ANSWER_LOST) | BIT(FATE_RESET_AFTER) | BIT(FATE_ANSWER_LATE),
        BIT(FATE_ERROR_BEFORE) | BIT(FATE_ERROR_AFTER),
        BIT(FATE_REQUEST_LOST) | BIT(FATE_ANSWER_LOST),
    };

    tools.disturbed_until_us = world->now_us + for_us;
    tools.disturbed_fates = troubles[variant % COUNT_OF(troubles)];
}

/* --- what the services know --- */

static struct key_state *key_state(struct op_key key)
{
    struct key_state *state = map_find(&tools.keys, &key, sizeof(key));

    if (!state) {
        struct memory_owner *before = network_enter();

        state = memory_alloc(sizeof(*state));
        state->key = key;
        map_put(&tools.keys, &state->key, sizeof(state->key), state);
        network_leave(before);
    }
    return state;
}

bool tool_has_happened(struct op_key key, bool *is_undone)
{
    const struct key_state *state = map_find(&tools.keys, &key, sizeof(key));

    *is_undone = state && state->undone;
    return state && state->happened;
}

static size_t book_arrival(const struct request *request)
{
    struct tool_entry *entry;

    if (tool_book.count == tool_book.capacity) {
        struct memory_owner *before = network_enter();

        tool_book.capacity = tool_book.capacity > 0 ? 2 * tool_book.capacity : 64;
        tool_book.entries = memory_grow(tool_book.entries, tool_book.capacity * sizeof(*tool_book.entries));
        network_leave(before);
    }
    entry = &tool_book.entries[tool_book.count];
    *entry = (struct tool_entry){.sent_us = request->sent_us,
                                 .at_us = world->now_us,
                                 .key = request->key,
                                 .has_key = request->has_key,
                                 .tool = request->tool,
                                 .is_undo = request->is_undo,
                                 .is_probe = request->is_probe,
                                 .node = request->node->index,
                                 .life = request->life,
                                 .event = world->event_count};
    return tool_book.count++;
}

/* --- a service acts --- */

static bool acts(const struct request *request)
{
    return request->fate != FATE_TURNED_AWAY && request->fate != FATE_REFUSED && request->fate != FATE_ERROR_BEFORE &&
           !request->is_refused;
}

static void do_forward(struct request *request, struct tool_entry *entry, struct key_state *state)
{
    if (state->voided) {
        entry->voided = true;
        request->fate = FATE_REFUSED; /* the key has a tombstone */
        return;
    }
    if (!acts(request)) {
        return;
    }
    entry->effect = !state->happened || !request->acts_once;
    if (entry->effect) {
        int64_t sees_us = world->now_us + chance_between(&request->chance, 0, LATE_US_MAX);

        state->happened = true;
        state->visible_us = tools.healed ? world->now_us : sees_us;
        if (state->visible_us > request->sent_us + LATE_US_MAX) {
            state->visible_us = request->sent_us + LATE_US_MAX; /* the promise counts from the sending */
        }
        state->done_us =
            request->fate == FATE_RUNNING ? world->now_us + chance_between(&request->chance, 0, RUNNING_US_MAX) : 0;
    }
}

static void do_undo(struct request *request, struct tool_entry *entry, struct key_state *state)
{
    struct key_state *undone = request->has_undoes ? key_state(request->undoes) : NULL;
    bool again = state->happened && request->acts_once;

    if (!acts(request)) {
        return;
    }
    state->happened = true;
    state->visible_us = world->now_us;
    if (undone && !undone->happened) {
        entry->voided = request->voids; /* there is nothing to undo */
    } else if (!again) {
        entry->effect = true;
        if (undone) {
            undone->undone = true;
        }
    }
    if (undone && request->voids) {
        undone->voided = true;
    }
}

static struct slice response_of(struct request *request, bool done, bool absent, bool running)
{
    static const char *const words[] = {"false", "true"};
    struct memory_owner *before = network_enter();
    struct slice response = arena_printf(&tools.arena, "{\"id\":\"%.*s\",\"done\":%s,\"absent\":%s,\"running\":%s}",
                                         SLICE_ARG(request->id), words[done], words[absent], words[running]);

    network_leave(before);
    return response;
}

static void look(struct request *request)
{
    const struct key_state *state = key_state(request->key);
    bool seen = state->happened && world->now_us >= state->visible_us, running = seen && world->now_us < state->done_us;

    request->response = response_of(request, seen && !running, !seen, running);
}

static void request_acts(struct request *request)
{
    struct key_state *state = key_state(request->key);
    struct tool_entry *entry;

    request->entry = book_arrival(request);
    entry = &tool_book.entries[request->entry];
    world_trace("%.*s gets %s of node %u", SLICE_ARG(request->tool),
                request->is_probe  ? "a probe"
                : request->is_undo ? "an undo"
                                   : "a request",
                entry->node);
    check_call(entry, request->args);
    if (request->is_probe) {
        look(request);
    } else if (request->is_read) {
        request->response = response_of(request, true, false, false);
        entry->effect = acts(request);
    } else if (request->is_undo) {
        do_undo(request, entry, state);
    } else {
        do_forward(request, entry, state);
    }
    if (entry->effect || entry->voided) {
        world_trace("%.*s: %s", SLICE_ARG(request->tool), entry->effect ? "effect" : "voided");
    }
    check_effect(entry);
}

/* --- answers --- */

static void call_end(struct world_call *w)
{
    if (w->request) {
        w->request->call = NULL;
        w->request = NULL;
    }
    timer_stop(w->call.host->loop, &w->timeout);
    loop_defer_cancel(w->call.host->loop, &w->settling);
    call_settle(&w->call);
}

static void call_unknown(struct world_call *w, const char *error, const char *detail)
{
    w->call.outcome = (struct outcome){.kind = OUTCOME_UNKNOWN, .error = slice_of(error), .detail = slice_of(detail)};
    w->call.response = SLICE_NONE;
    call_end(w);
}

/* Runs in a turn of the node's loop. */
static void on_answer(struct message *message)
{
    struct request *request = container_of(message, struct request, answer);
    struct world_call *w = request->call;
    struct outcome *outcome;

    if (!w) {
        return; /* it gave up */
    }
    outcome = &w->call.outcome;
    *outcome = (struct outcome){.kind = request->kind, .retry_after_ms = request->retry_after_ms};
    if (request->error) {
        outcome->error = slice_of(request->error);
        outcome->detail = SLICE("so it was drawn");
        outcome->unsent = request->fate == FATE_UNSENT;
    }
    if (request->response.ptr) {
        w->call.response = arena_slice(w->call.arena, request->response);
        outcome->result = outcome->kind == OUTCOME_COMPLETED ? w->call.response : SLICE_NONE;
    }
    call_end(w);
}

static void request_answer(struct request *request, int64_t delay_us)
{
    if (request->entry != SIZE_MAX && request->fate != FATE_RESET_AFTER && request->fate != FATE_ANSWER_LATE) {
        tool_book.entries[request->entry].answered_us = world->now_us + delay_us;
    }
    if (!request->is_copy && request->node->life == request->life) {
        message_send(&request->answer, request->node, delay_us, on_answer, NULL);
    }
}

static void answer_good(struct request *request)
{
    request->kind = OUTCOME_COMPLETED;
    if (!request->response.ptr) {
        request->response = response_of(request, true, false, false);
    }
}

static void answer_bad(struct request *request, enum outcome_kind kind, const char *error)
{
    request->kind = kind;
    request->error = error;
    request->response = SLICE_NONE;
}

static int64_t delay_of(struct request *request)
{
    return chance_between(&request->chance, DELAY_US_MIN, tools.healed ? HEALED_US_MAX : DELAY_US_MAX);
}

/* Sends the caller its answer when the service has finished. */
static void request_answered(struct request *request)
{
    int64_t delay_us = delay_of(request);

    if (request->is_refused && request->fate != FATE_TURNED_AWAY) {
        request->fate = FATE_REFUSED;
    }
    switch (request->fate) {
    case FATE_GOOD:
    case FATE_TWICE:
    case FATE_REQUEST_LATE: /* nobody waits any more */
        answer_good(request);
        break;
    case FATE_SLOW:
        answer_good(request);
        delay_us += chance_between(&request->chance, 0, request->timeout_us);
        break;
    case FATE_RUNNING:
        answer_good(request);
        if (!request->is_probe && !request->is_read && !request->is_undo) {
            answer_bad(request, OUTCOME_RUNNING, "http-202");
        }
        break;
    case FATE_ANSWER_LATE:
        answer_good(request);
        delay_us += request->timeout_us;
        break;
    case FATE_TURNED_AWAY:
        answer_bad(request, OUTCOME_RETRY, "http-429");
        request->retry_after_ms =
            chance_percent(&request->chance, 60) ? chance_between(&request->chance, 1, RETRY_AFTER_MS_MAX) : 0;
        break;
    case FATE_REFUSED:
        answer_bad(request, OUTCOME_FAILED, "http-422");
        break;
    case FATE_ERROR_BEFORE:
    case FATE_ERROR_AFTER:
        answer_bad(request, OUTCOME_UNKNOWN, "http-500");
        break;
    case FATE_RESET_AFTER:
        answer_bad(request, OUTCOME_UNKNOWN, "reset");
        break;
    case FATE_UNSENT:
    case FATE_REQUEST_LOST:
    case FATE_RESET_BEFORE:
    case FATE_ANSWER_LOST:
    case FATE_COUNT:
        return;
    }
    request_answer(request, delay_us);
}

static void on_arrival(struct event *event)
{
    struct request *request = container_of(event, struct request, event);

    request_acts(request);
    request_answered(request);
}

/* --- the way there --- */

static bool is_forward(const struct request *request)
{
    return !request->is_probe && !request->is_read && !request->is_undo;
}

/* May the request meet this fate? Some fates are only for some requests. */
static bool may_meet(struct request *request, enum fate fate)
{
    switch (fate) {
    case FATE_TWICE:
        return request->acts_once && !request->is_probe && !request->is_read;
    case FATE_RUNNING:
        return is_forward(request);
    case FATE_REFUSED:
        return !request->is_probe && chance_percent(&request->chance, 50);
    case FATE_GOOD:
    case FATE_UNSENT:
    case FATE_TURNED_AWAY:
    case FATE_REQUEST_LOST:
    case FATE_RESET_BEFORE:
    case FATE_RESET_AFTER:
    case FATE_ANSWER_LOST:
    case FATE_ANSWER_LATE:
    case FATE_REQUEST_LATE:
    case FATE_ERROR_BEFORE:
    case FATE_ERROR_AFTER:
    case FATE_SLOW:
        return true;
    case FATE_COUNT:
        break;
    }
    return false;
}

/* Draws a fate. Each run has a random half of the fates, so that no fate hides another one. */
static enum fate draw_fate(struct request *request)
{
    bool disturbed = world->now_us < tools.disturbed_until_us;
    uint32_t fates = disturbed ? tools.disturbed_fates : tools.fates, total = 0, luck;
    struct chance character =
        chance_of(world->seed, request->tool.len, (uint8_t)request->tool.ptr[request->tool.len - 1]);
    uint32_t percent = tools.percent * (1 + chance_below(&character, 3));

    if (tools.healed || !chance_percent(&request->chance, disturbed ? 80 : percent)) {
        return FATE_GOOD;
    }
    for (enum fate fate = 0; fate < FATE_COUNT; fate++) {
        total += fates & BIT(fate) ? fate_weights[fate] : 0;
    }
    if (total == 0) {
        return FATE_GOOD;
    }
    luck = chance_below(&request->chance, total);
    for (enum fate fate = 0; fate < FATE_COUNT; fate++) {
        uint32_t weight = fates & BIT(fate) ? fate_weights[fate] : 0;

        if (luck < weight) {
            return may_meet(request, fate) ? fate : FATE_GOOD;
        }
        luck -= weight;
    }
    return FATE_GOOD;
}

/* Delivers the request once more. Nobody hears the answer. */
static void send_copy(const struct request *request)
{
    struct memory_owner *before = network_enter();
    struct request *copy = memory_alloc(sizeof(*copy));

    *copy = *request;
    memset(&copy->event, 0, sizeof(copy->event));
    copy->call = NULL;
    copy->is_copy = true;
    world_at(&copy->event, chance_between(&copy->chance, DELAY_US_MIN, DUPLICATE_US_MAX), on_arrival);
    network_leave(before);
}

static void request_send(struct request *request)
{
    int64_t delay_us = delay_of(request);

    request->fate = draw_fate(request);
    switch (request->fate) {
    case FATE_UNSENT:
        answer_bad(request, OUTCOME_RETRY, chance_percent(&request->chance, 30) ? OUTCOME_EGRESS_DENIED : "refused");
        request_answer(request, delay_us);
        return;
    case FATE_RESET_BEFORE:
        answer_bad(request, OUTCOME_UNKNOWN, "reset");
        request_answer(request, delay_us);
        return;
    case FATE_REQUEST_LOST:
        return; /* the timeout settles the call */
    case FATE_REQUEST_LATE:
        delay_us = chance_between(&request->chance,
                                  request->timeout_us < LATE_US_MAX ? request->timeout_us : DELAY_US_MIN, LATE_US_MAX);
        break;
    case FATE_TWICE:
        send_copy(request);
        break;
    case FATE_GOOD:
    case FATE_TURNED_AWAY:
    case FATE_REFUSED:
    case FATE_RESET_AFTER:
    case FATE_ANSWER_LOST:
    case FATE_ANSWER_LATE:
    case FATE_ERROR_BEFORE:
    case FATE_ERROR_AFTER:
    case FATE_RUNNING:
    case FATE_SLOW:
    case FATE_COUNT:
        break;
    }
    world_at(&request->event, delay_us, on_arrival);
}

/* --- the adapter --- */

static bool args_refuse(struct slice args)
{
    bool refuse = false;

    return json_bool(json_member(args, "refuse"), &refuse) && refuse;
}

static struct slice text_kept(struct slice json_text)
{
    return json_text.ptr ? arena_slice(&tools.arena, json_string(json_text, &tools.arena)) : SLICE_NONE;
}

static struct request *request_new(const struct call *call)
{
    struct memory_owner *before = network_enter();
    struct request *request = memory_alloc(sizeof(*request));
    struct slice what = json_member(call->settings, "do"), undoes;
    struct key_state *state;
    uint64_t name;

    request->node = node_current();
    request->life = request->node->life;
    request->sent_us = world->now_us;
    request->timeout_us = call->timeout_ms * 1000;
    request->entry = SIZE_MAX;
    request->tool = text_kept(json_member(call->settings, "tool"));
    request->args = arena_slice(&tools.arena, call->args);
    request->id = arena_slice(&tools.arena, call->key);
    CHECK(uuid_parse(call->key, &request->key.uuid));
    request->is_probe = json_string_is(what, "probe");
    request->is_undo = json_string_is(what, "undo");
    request->has_key = true; /* set even when the key is not sent, because our books need it */
    request->is_read = !request->is_probe && !call->send_key;
    request->acts_once = call->repeatable;
    request->is_refused = !request->is_probe && !request->is_undo && args_refuse(call->args);
    request->voids = memmem(request->tool.ptr, request->tool.len, "void", 4) != NULL;
    undoes = call->undoes.ptr ? call->undoes : text_kept(json_member(call->args, "id"));
    request->has_undoes = request->is_undo && undoes.ptr && uuid_parse(undoes, &request->undoes.uuid);
    state = key_state(request->key);
    memcpy(&name, &request->key.uuid.bytes[8], sizeof(name));
    request->chance = chance_of(world->seed, name ^ (request->is_probe ? 1 : 0),
                                request->is_probe ? state->probes++ : state->requests++);
    network_leave(before);
    return request;
}

static void on_timeout(struct timer *timer)
{
    call_unknown(container_of(timer, struct world_call, timeout), "timeout", "no answer came in time");
}

static void on_cancelled(struct deferred *deferred)
{
    call_unknown(container_of(deferred, struct world_call, settling), "cancelled",
                 "the answer is not awaited any more");
}

static void world_begin(struct call *call)
{
    struct world_call *w = container_of(call, struct world_call, call);

    w->request = request_new(call);
    w->request->call = w;
    timer_start(call->host->loop, &w->timeout, call->timeout_ms, on_timeout);
    request_send(w->request);
}

static void world_cancel_call(struct call *call)
{
    struct world_call *w = container_of(call, struct world_call, call);

    loop_defer(call->host->loop, &w->settling, on_cancelled);
}

static void world_check(struct slice settings, struct slice pointer, enum key_place place, struct faults *faults)
{
    struct slice what = json_member(settings, "do");

    (void)place;
    if (!json_member(settings, "tool").ptr ||
        (!json_string_is(what, "act") && !json_string_is(what, "undo") && !json_string_is(what, "probe"))) {
        faults_add(faults, pointer,
                   "the simulated services want {\"tool\": NAME, \"do\": \"act\", \"undo\" or \"probe\"}");
    }
}

static bool world_shares_keys(struct slice undone, struct slice settings)
{
    (void)undone;
    (void)settings;
    return true; /* all services share one memory */
}

const struct adapter adapter_world = {
    .name = "builtin", /* the language knows its adapters by name, and this one has no receiver, either */
    .call_size = sizeof(struct world_call),
    .check = world_check,
    .begin = world_begin,
    .cancel = world_cancel_call,
    .shares_keys = world_shares_keys,
};
