/*
 * The keys of payloads that the engines of a run have, in some of the runs. All engines can open what is sealed under
 * either of two keys; which one is active, and whether one is, differs from node to node, as while keys are changed.
 */
#ifndef SAGAD_TESTS_SIM_SEALING_H
#define SAGAD_TESTS_SIM_SEALING_H

#include "tests/sim/node.h"
#include "tests/sim/pg.h"

enum sealing {
    SEALING_NONE,
    SEALING_ALL,     /* all nodes seal under one key */
    SEALING_CHANGES, /* the key is being changed: each second node has the other one */
    SEALING_BEGINS,  /* each second node does not seal yet */
    SEALING_COUNT
};

struct payload_keys *sealing_keys(const struct node *node); /* NULL: it has none */

/* What was written, opened. The texts lie in world->arena. A text that does not open is a violation. */
struct committed_turn sealing_open_turn(const struct committed_turn *turn);
struct slice sealing_open_item(const struct committed_item *item);

#endif
