/* Processes that run engines, and the messages that reach them. See node.h. */
#include "tests/sim/node.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/usual_options.h"
#include "tests/sim/network.h"
#include "tests/sim/sealing.h"
#include "tests/sim/stand_ins.h"

#define FREEZE_CALLBACKS_MAX 12
#define FREEZE_MESSAGES_MAX 6
#define DAWDLE_US_MAX 300000
#define TURN_US_MAX 20 /* the pause between two turns when nothing else asks for one */

struct node nodes[NODES_MAX];

static struct {
    struct list inbox;
    bool interrupt;     /* a freeze comes in the middle of a turn */
    uint32_t callbacks; /* until then */
    int64_t freeze_us;
    uint32_t
        messages; /* a freeze comes after this many more messages, before the last of them is looked at; 0 for none */
    bool left;    /* the node is drained, and ends when its turn is over */
} processes[NODES_MAX];

static struct node *current;
static struct memory_owner network;

/* --- whose code runs --- */

struct node *node_current(void)
{
    return current;
}

struct node *node_enter(struct node *node)
{
    struct node *before = current;

    current = node;
    (void)memory_switch(node ? &node->memory : NULL);
    return before;
}

void node_leave(struct node *before)
{
    current = before;
    (void)memory_switch(before ? &before->memory : NULL);
}

bool node_is_running(const struct node *node)
{
    return node->up && !node->frozen && node->engine;
}

struct memory_owner *network_enter(void)
{
    return memory_switch(&network);
}

void network_leave(struct memory_owner *before)
{
    (void)memory_switch(before);
}

void network_forget(void)
{
    connections_forget();
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        memory_drop(&nodes[i].memory);
    }
    memory_drop(&network);
    memset(nodes, 0, sizeof(nodes));
    memset(processes, 0, sizeof(processes));
    current = NULL;
}

/* --- messages --- */

static void node_freezes(struct node *node, int64_t for_us);

static void message_end(struct message *message, void (*how)(struct message *message))
{
    if (how) {
        how(message);
    }
}

static void message_arrives(struct message *message)
{
    struct node *node = message->node;

    if (!node->up || node->life != message->life) {
        struct node *before = node_enter(NULL);

        message_end(message, message->lost);
        node_leave(before);
        return;
    }
    list_push(&processes[node->index].inbox, &message->link);
    if (processes[node->index].messages > 0 && !node->frozen && --processes[node->index].messages == 0 &&
        !world->is_healed) {
        node_freezes(node, processes[node->index].freeze_us);
    }
    node_wake(node, 0);
}

static void on_message(struct event *event)
{
    message_arrives(container_of(event, struct message, event));
}

void message_send(struct message *message, struct node *node, int64_t delay_us, void (*run)(struct message *message),
                  void (*lost)(struct message *message))
{
    *message = (struct message){.node = node, .life = node->life, .run = run, .lost = lost};
    world_at(&message->event, delay_us, on_message);
}

void message_deliver(struct message *message, struct node *node, uint32_t life, void (*run)(struct message *message),
                     void (*lost)(struct message *message))
{
    *message = (struct message){.node = node, .life = life, .run = run, .lost = lost};
    message_arrives(message);
}

struct message *node_next_message(struct node *node)
{
    return LIST_ITEM(list_pop(&processes[node->index].inbox), struct message, link);
}

size_t node_message_count(const struct node *node)
{
    return processes[node->index].inbox.count;
}

static void inbox_lose(struct node *node)
{
    struct message *message;

    while ((message = node_next_message(node)) != NULL) {
        message_end(message, message->lost);
    }
}

/* --- turns --- */

static void node_goes(struct node *node)
{
    node->up = node->ready = node->draining = node->frozen = false;
    node->loop = NULL;
    node->engine = NULL;
    world_cancel(&node->turn);
    world_cancel(&node->thaw);
    world_cancel(&node->later);
    processes[node->index].interrupt = processes[node->index].left = false;
    processes[node->index].messages = 0;
}

/* Ends a node. The engine must have freed all its memory, because a leak would grow for ever in a process that lives
 * long, and must have stopped its timers, which would run in memory that is gone. */
static void node_ends(struct node *node)
{
    struct node *before = node_enter(node);
    bool has_work;

    engine_free(node->engine);
    has_work = loop_has_work(node->loop);
    loop_free(node->loop);
    node_leave(before);
    if (has_work) {
        world_violate("SIM", "node %u left, and a timer or deferred work of its engine would still run", node->index);
    }
    if (node->memory.count > 0) {
        world_violate(
            "SIM",
            "node %u left without an answer to %u requests, and %zu blocks with %zu bytes of its memory are not freed",
            node->index, node->unanswered, node->memory.count, node->memory.bytes);
    }
    node_goes(node);
    inbox_lose(node);
    world_trace("node %u is gone", node->index);
}

static void on_thaw(struct event *event)
{
    struct node *node = container_of(event, struct node, thaw);

    node->frozen = false;
    world_trace("node %u thaws", node->index);
    node_wake(node, 0);
}

static void node_freezes(struct node *node, int64_t for_us)
{
    node->frozen = true;
    world_trace("node %u freezes for %lld us", node->index, (long long)for_us);
    world_at(&node->thaw, for_us, on_thaw);
}

static void on_turn(struct event *event)
{
    struct node *node = container_of(event, struct node, turn);
    bool interrupted = processes[node->index].interrupt && !world->is_healed;
    uint32_t callbacks = interrupted ? processes[node->index].callbacks : UINT32_MAX;
    struct node *before;
    bool complete;

    if (node->frozen) {
        return; /* the node goes on when it thaws */
    }
    before = node_enter(node);
    complete = loop_turn(node->loop, &callbacks);
    node_leave(before);
    if (!complete) {
        processes[node->index].interrupt = false;
        node_freezes(node, processes[node->index].freeze_us);
        return;
    }
    processes[node->index].callbacks = callbacks;
    if (processes[node->index].left) {
        node_ends(node);
        return;
    }
    if (node_message_count(node) > 0) {
        node_wake(node, 0);
    } else if (loop_rest_us(node->loop) < INT64_MAX) {
        node_wake(node, loop_rest_us(node->loop));
    }
}

void node_wake(struct node *node, int64_t delay_us)
{
    if (!node->up || node->frozen) {
        return;
    }
    if (delay_us <= 0) {
        delay_us = world_below(STREAM_ENGINE, TURN_US_MAX);
        if (node->slow_percent > 0 && world_percent(STREAM_ENGINE, node->slow_percent)) {
            delay_us += world_between(STREAM_ENGINE, 0, DAWDLE_US_MAX);
        }
    }
    if (node->turn.heap_index == 0 || node->turn.at_us > world->now_us + delay_us) {
        world_at(&node->turn, delay_us, on_turn);
    }
}

/* --- starting and ending --- */

static void on_ready(struct engine *engine, void *context)
{
    struct node *node = context;

    (void)engine;
    node->ready = true;
    world_trace("node %u is ready", node->index);
}

static void on_refused(struct engine *engine, const struct err *err, void *context)
{
    struct node *node = context;

    (void)engine;
    node->refused = true;
    world_trace("node %u must not run: %s", node->index, err->message);
}

void node_start(struct node *node, const struct node_options *options)
{
    char name[32];
    struct engine_options settings;
    struct node *before;

    CHECK(!node->up && node >= nodes && node < nodes + NODES_MAX);
    node->index = (uint32_t)(node - nodes);
    node->life++;
    node->up = true;
    node->ready = node->refused = node->draining = node->frozen = false;
    node->unanswered = 0;
    node->options = *options;
    if (node->boot_offset_us == 0) { /* the machine has been up for some time, and its processes come and go */
        node->boot_offset_us = INT64_C(3600000000) * (1 + node->index) + world_below(STREAM_ENGINE, 1000000000);
    }
    list_init(&processes[node->index].inbox);
    world_trace("node %u starts, life %u", node->index, node->life);
    (void)snprintf(name, sizeof(name), "sim %u", node->index);
    stand_ins_begin(node);
    before = node_enter(node);
    node->loop = loop_new();
    settings = usual_options;
    settings.engine_name = name;
    settings.lease_ms = options->lease_ms;
    settings.standby = options->standbys >> node->index & 1;
    settings.writers = options->writers;
    settings.readers = options->readers;
    settings.sagas_max = options->sagas_max;
    settings.payload_bytes_max = options->payload_bytes_max;
    settings.memory_bytes_max = SIZE_MAX / 2; /* independent of the memory of this machine */
    settings.calls_max = options->calls_max;
    settings.park_after_ms = options->park_after_ms;
    settings.key_look_ms = options->key_look_ms;
    settings.bulk_rate = options->bulk_rate ? options->bulk_rate : settings.bulk_rate;
    settings.payload_keys = sealing_keys(node);
    settings.on_ready = on_ready;
    settings.on_refused = on_refused;
    settings.context = node;
    node->engine = engine_start(node->loop, &settings);
    CHECK(node->engine);
    node_leave(before);
    node_wake(node, 0);
}

void node_kill(struct node *node)
{
    if (!node->up) {
        return;
    }
    CHECK(current != node);
    world_trace("node %u is killed", node->index);
    node_goes(node);
    connections_orphan(node);
    inbox_lose(node);
    memory_drop(&node->memory);
}

static void on_drained(void *context)
{
    struct node *node = context;

    processes[node->index].left = true;
}

static void drain(struct node *node, int64_t patience_ms)
{
    struct node *before = node_enter(node);

    engine_drain(node->engine, patience_ms, on_drained, node);
    node_leave(before);
    node_wake(node, 0);
}

void node_drain(struct node *node, int64_t patience_ms)
{
    if (!node_is_running(node) || node->draining) {
        return;
    }
    node->draining = true;
    world_trace("node %u leaves", node->index);
    drain(node, patience_ms);
}

void node_hurry(struct node *node)
{
    CHECK(node->draining);
    drain(node, 0);
}

void node_freeze_now(struct node *node, int64_t for_us)
{
    if (node_is_running(node)) {
        node_freezes(node, for_us);
    }
}

void node_freeze(struct node *node, int64_t for_us)
{
    if (!node_is_running(node)) {
        return;
    }
    processes[node->index].freeze_us = for_us;
    switch (world_below(STREAM_FAULT, 3)) {
    case 0:
        node_freezes(node, for_us);
        break;
    case 1: /* somewhere in a turn, so that its clocks are old when it goes on */
        processes[node->index].interrupt = true;
        processes[node->index].callbacks = 1 + world_below(STREAM_FAULT, FREEZE_CALLBACKS_MAX);
        break;
    case 2: /* with an answer that it has not read */
        processes[node->index].messages = 1 + world_below(STREAM_FAULT, FREEZE_MESSAGES_MAX);
        break;
    }
}
