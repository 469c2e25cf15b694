/*
 * A process that runs an engine: it starts, is killed, is frozen and wakes up, leaves. Its loop, clocks and connections
 * are in loop.c and db.c, behind the real headers io/loop/loop.h and io/postgres/db.h.
 *
 * Code outside of a node (clients, people, tools, PostgreSQL) calls into its engine only between node_enter() and
 * node_leave(), and only while node_is_running(). Callbacks of an engine run inside its node: keep there only memory
 * that may die with the node, or call node_enter(NULL) first.
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
    uint32_t bulk_rate; /* 0: the default */
    uint32_t sealing;   /* enum sealing: with which keys payloads are kept */
    int writers, readers;
    uint32_t standbys; /* bits of nodes that own shards only while no other node lives */
};

struct node {
    uint32_t index;
    uint32_t life; /* counts starts: a message to an earlier life is not delivered */
    bool up;       /* the process exists */
    bool frozen;   /* the process exists and does nothing (SIGSTOP, a pause of the machine) */
    bool draining;
    bool cut;               /* no packet passes between the node and PostgreSQL */
    int64_t wall_offset_ms; /* offset of its wall clock; a fault may change it at any time */
    int64_t boot_offset_us;
    uint32_t slow_percent; /* the percentage of its turns that begin late; 0: none */
    struct node_options options;
    struct memory_owner memory;
    struct loop *loop; /* its memory */
    struct engine *engine;
    bool ready, refused;
    uint32_t unanswered; /* outside requests without an answer: inquiry.c counts them */
    struct event turn;   /* the next turn of its loop */
    struct event thaw, later;
};

extern struct node nodes[NODES_MAX]; /* zeroed at the beginning of a run */

void node_start(struct node *node, const struct node_options *options);
void node_kill(struct node *node);                       /* SIGKILL; does nothing when the node is down */
void node_drain(struct node *node, int64_t patience_ms); /* SIGTERM; the node goes down by itself */
void node_hurry(struct node *node);                      /* SIGTERM once more: the node has no patience left */
/* Freezes the node now, or at a bad moment soon: in a turn, or before the node reads an answer. */
void node_freeze(struct node *node, int64_t for_us);
void node_freeze_now(struct node *node, int64_t for_us);
bool node_is_running(const struct node *node); /* the node is up, is not frozen, and has an engine */
struct node *node_current(void);               /* NULL: the world's own code runs */

struct node *node_enter(struct node *node);          /* returns the previous node; NULL leaves to the world */
void node_leave(struct node *before);                /* goes back to the node that node_enter() returned */
void node_wake(struct node *node, int64_t delay_us); /* the loop of the node has work after the delay */

/* In loop.c, for db.c and the tools: `run` is called in a turn of the node's loop, unless the node's life is over by
 * then. */
struct message {
    struct event event;    /* on its way */
    struct list_link link; /* the link in the inbox of the node, after the event */
    struct node *node;
    uint32_t life;
    void (*run)(struct message *message);
    void (*lost)(struct message *message); /* called instead of run() when the node's life is over; may be NULL */
};
void message_send(struct message *message, struct node *node, int64_t delay_us, void (*run)(struct message *message),
                  void (*lost)(struct message *message));

#endif
