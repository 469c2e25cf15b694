/*
 * What belongs neither to a node nor to the simulation: messages, connections and requests on their way. Their memory
 * lasts as long as the run, whichever node dies. node.c, db.c and the tools share this file.
 */
#ifndef SAGAD_TESTS_SIM_NETWORK_H
#define SAGAD_TESTS_SIM_NETWORK_H

#include "tests/sim/node.h"

/* The memory of the network is current between the two calls. Pass what network_enter() gave to network_leave(). */
struct memory_owner *network_enter(void);
void network_leave(struct memory_owner *before);
void network_forget(void); /* the run is over: frees the memory */

int64_t chance_between(struct chance *chance, int64_t least, int64_t most); /* works as world_between() does */

/* Puts the message into the inbox of the node now. */
void message_deliver(struct message *message, struct node *node, uint32_t life, void (*run)(struct message *message),
                     void (*lost)(struct message *message));

/* In db.c: a node was killed. Chance decides what becomes of its connections. */
void connections_orphan(struct node *node);
void connections_forget(void); /* the run is over: frees the connections */
struct pg_session;
struct node *connection_node(const struct pg_session *session); /* the node at the other end; NULL: the node is gone */

/* In loop.c: makes a turn of the node's loop. False: the turn was stopped in its middle, after as many callbacks as
 * were left in `*callbacks`. */
bool loop_turn(struct loop *loop, uint32_t *callbacks);
bool loop_has_work(const struct loop *loop);   /* is a timer, deferred work or a hook left? */
int64_t loop_rest_us(const struct loop *loop); /* time until the next turn; INT64_MAX: nothing to do */
/* Messages that have come; the turn takes them. */
struct message *node_next_message(struct node *node);
size_t node_message_count(const struct node *node);

#endif
