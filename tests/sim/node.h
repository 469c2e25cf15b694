/*
 * A process that runs an engine: it starts, is killed, is frozen and wakes up, leaves. Its loop, clocks and connections
 * are in loop.c and db.c, behind the real headers io/loop/loop.h and io/postgres/db.h.
 *
 * Whoever is outside of a node (clients, people, tools, PostgreSQL) and calls into its engine does it between
 * node_enter() and node_leave(), and only while node_is_running(). What an engine calls back runs inside its node:
 * keep there only what may die with it, or node_enter(NULL) first.
 */
#ifndef SAGAD_TESTS_SIM_NODE_H
#define SAGAD_TESTS_SIM_NODE_H

#include "run/engine.h"
#include "tests/sim/memory.h"
#include "tests/sim/world.h"

#define NODES_MAX 4

struct node_options {
    int64_t lease_ms;
    int64_t park_after_ms;
    int64_t key_look_ms; /* 0: the default, which no run lives to see */
    size_t sagas_max, payload_bytes_max;
    uint32_t calls_max;
    int writers, readers;
    uint32_t standbys; /* bits: these nodes own shards only while no other lives */
};

struct node {
    uint32_t index;
    uint32_t life; /* counts starts: a message to an earlier life is not delivered */
    bool up;       /* the process exists */
    bool frozen;   /* it exists and does nothing (SIGSTOP, a pause of the machine) */
    bool draining;
    bool cut;               /* from PostgreSQL: nothing passes in either direction */
    int64_t wall_offset_ms; /* of its clock of the day; may be moved by a fault at any time */
    int64_t boot_offset_us;
    uint32_t slow_percent; /* 0: each turn of its loop takes no time to begin; else it dawdles */
    struct node_options options;
    struct memory_owner memory;
    struct loop *loop; /* its memory */
    struct engine *engine;
    bool ready, refused;
    uint32_t unanswered; /* requests of outside that it has and has not answered: counted by inquiry.c */
    struct event turn;   /* its next loop turn */
    struct event thaw, later;
};

extern struct node nodes[NODES_MAX]; /* zeroed at the beginning of a run */

void node_start(struct node *node, const struct node_options *options);
void node_kill(struct node *node);                       /* SIGKILL; a no-op when it is down */
void node_drain(struct node *node, int64_t patience_ms); /* SIGTERM; it goes down by itself */
void node_hurry(struct node *node);                      /* SIGTERM once more, with no patience left */
void node_freeze(struct node *node,
                 int64_t for_us); /* now, or at a bad moment soon: in a turn, or before it reads an answer */
void node_freeze_now(struct node *node, int64_t for_us);
bool node_is_running(const struct node *node); /* up and not frozen, and it has an engine */
struct node *node_current(void);               /* NULL: the world's own code runs */

struct node *node_enter(struct node *node);          /* returns the one before; NULL leaves to the world */
void node_leave(struct node *before);                /* back to what node_enter() gave */
void node_wake(struct node *node, int64_t delay_us); /* its loop has something to do then */

/* loop.c, for db.c and the tools: `run` happens in a turn of the node's loop, unless its life is over by then. */
struct message {
    struct event event;    /* on its way */
    struct list_link link; /* then in the inbox of the node */
    struct node *node;
    uint32_t life;
    void (*run)(struct message *message);
    void (*lost)(struct message *message); /* the node's life is over; may be NULL. One of both, exactly once */
};
void message_send(struct message *message, struct node *node, int64_t delay_us, void (*run)(struct message *message),
                  void (*lost)(struct message *message));

#endif
