/* Judges what is undone, and in which order, against the sketch, the log and the books of the world. */
#include "tests/property/run.h"

/* --- the tree of steps --- */

static uint32_t depth_of(const struct judge *judge, uint32_t node)
{
    uint32_t depth = 0;

    for (uint32_t at = judge->nodes[node].parent; at != NODE_NONE; at = judge->nodes[at].parent) {
        depth++;
    }
    return depth;
}

bool node_is_within(const struct judge *judge, uint32_t node, uint32_t group)
{
    uint32_t at = judge->nodes[node].parent;

    while (at != NODE_NONE && at != group) {
        at = judge->nodes[at].parent;
    }
    return at == group; /* NODE_NONE is the saga, which holds all nodes */
}

/* Replaces a and b by the nodes below their lowest common group that hold them. */
static void lift(const struct judge *judge, uint32_t *a, uint32_t *b)
{
    uint32_t depth_a = depth_of(judge, *a), depth_b = depth_of(judge, *b);

    while (depth_a > depth_b) {
        *a = judge->nodes[*a].parent;
        depth_a--;
    }
    while (depth_b > depth_a) {
        *b = judge->nodes[*b].parent;
        depth_b--;
    }
    while (judge->nodes[*a].parent != judge->nodes[*b].parent) {
        *a = judge->nodes[*a].parent;
        *b = judge->nodes[*b].parent;
    }
}

/* Must a be undone before b? Elements are undone from the last to the first, other nodes in reverse order of their
 * beginning. */
static bool is_undone_before(const struct judge *judge, uint32_t a, uint32_t b)
{
    if (judge_is_open(judge)) {
        return judge->nodes[a].order > judge->nodes[b].order;
    }
    lift(judge, &a, &b);
    if (judge->nodes[a].element != ELEMENT_NONE) {
        return judge->nodes[a].element > judge->nodes[b].element;
    }
    return judge->nodes[a].order > judge->nodes[b].order;
}

/* Does b depend on a? */
static bool comes_before(const struct judge *judge, uint32_t a, uint32_t b)
{
    if (judge_is_open(judge)) {
        return judge->nodes[a].called.settled_seq > 0 &&
               judge->nodes[a].called.settled_seq < judge->nodes[b].called.begun_seq;
    }
    lift(judge, &a, &b);
    if (a == b) {
        return false;
    }
    if (judge->nodes[a].element != ELEMENT_NONE) {
        return judge->nodes[a].element < judge->nodes[b].element && judge->nodes[a].step->concurrency <= 1;
    }
    return sketch_comes_before(judge->nodes[a].saga, judge->nodes[a].member, judge->nodes[b].member);
}

/* Returns the group of the child that the node is written in; NODE_NONE for the saga. */
static uint32_t scope_of(const struct judge *judge, uint32_t node)
{
    uint32_t group = judge->nodes[node].parent;

    while (group != NODE_NONE && node_is_fan(&judge->nodes[group])) {
        group = judge->nodes[group].parent;
    }
    return group;
}

/* Returns the unit of the node in this scope: the step itself, or the child in the scope that holds the step. */
static uint32_t unit_of(const struct judge *judge, uint32_t node, uint32_t scope)
{
    while (scope_of(judge, node) != scope) {
        node = scope_of(judge, node);
    }
    return node;
}

static uint32_t concurrency_of(const struct run *run, uint32_t scope)
{
    const struct sketch *sketch = &run->script->sketch;
    uint32_t saga = scope == NODE_NONE ? 0 : run->judge.nodes[scope].step->child;

    return sketch->sagas[saga].undo_concurrency ? sketch->sagas[saga].undo_concurrency : 1;
}

/* --- the plan --- */

bool node_may_stand(const struct node *node)
{
    return node_is_call(node) && (node->state == IS_DONE || node->state == IS_UNKNOWN) && node->effect != EFFECT_READ &&
           node->undo != UNDO_DONE;
}

static bool is_left(const struct node *node)
{
    return node->undo != UNDO_NONE && node->undo != UNDO_DONE && !node->is_waived &&
           (node->state == IS_DONE || node->state == IS_UNKNOWN);
}

static bool is_blind(const struct node *node)
{
    return !node->step->own_undo && node->kit->tolerates_absent && node->kit->voids_key;
}

void judge_plan(struct run *run, const struct record *record)
{
    struct judge *judge = &run->judge;
    uint32_t scope = record->step;
    bool is_in[NODES_MAX] = {false};

    if (judge->kind == SAGA_RUN) {
        run_violate(run, "a run is undone");
    }
    for (uint32_t i = 0; i < record->plan_count; i++) {
        uint32_t node = record->plan[i];

        if (is_in[node]) {
            run_violate(run, "%s is in the plan twice", judge->nodes[node].id);
        }
        is_in[node] = true;
        if (i > 0 && !is_undone_before(judge, record->plan[i - 1], node)) {
            run_violate(run, "the plan has %s before %s", judge->nodes[record->plan[i - 1]].id, judge->nodes[node].id);
        }
    }
    for (uint32_t i = 0; i < judge->count; i++) {
        struct node *node = &judge->nodes[i];

        if (scope != STEP_NONE && !node_is_within(judge, i, scope)) {
            if (is_in[i]) {
                run_violate(run, "%s is in the plan of %s", node->id, judge->nodes[scope].id);
            }
            continue;
        }
        if (!node->is_waived && (node->state == IS_SENT || node->state == IS_PENDING || node->state == IS_WAITING)) {
            run_violate(run, "planned while %s is not settled", node->id);
        }
        if (is_in[i] != (node_may_stand(node) && !node->is_waived)) {
            run_violate(
                run, is_in[i] ? "%s is in the plan, and surely does not stand" : "%s may stand, and is not in the plan",
                node->id);
        }
        if (!is_in[i] && !node->is_waived && (world_stands(run, i) || world_is_on_the_wire(run, i))) {
            run_violate(run, "%s stands, and is not in the plan", node->id);
        }
        if (is_in[i]) {
            node->undo = node->undo == UNDO_NONE ? UNDO_PLANNED : node->undo;
            run->tally->scoped_undos += scope != STEP_NONE;
            run->tally->element_undos += node->element != ELEMENT_NONE;
            run->tally->child_undos += scope_of(judge, i) != NODE_NONE;
        }
    }
    if (scope == STEP_NONE) {
        judge->is_planned = true;
    } else {
        judge->nodes[scope].is_planned = true;
    }
}

/* --- beginning --- */

/* Does the node belong to a child in this scope that is undone on its own? Such a child goes at its own pace. */
static bool is_undone_alone_in(const struct judge *judge, uint32_t node, uint32_t scope)
{
    for (uint32_t at = judge->nodes[node].parent; at != scope; at = judge->nodes[at].parent) {
        if (judge->nodes[at].is_planned) {
            return true;
        }
    }
    return false;
}

/* Counts the units of a scope that are being undone, without `except`. */
static uint32_t active_in(const struct judge *judge, uint32_t scope, uint32_t except)
{
    bool is_counted[NODES_MAX] = {false};
    uint32_t active = 0;

    for (uint32_t i = 0; i < judge->count; i++) {
        uint32_t unit;

        if (judge->nodes[i].undo != UNDO_SENT || judge->nodes[i].is_waived ||
            (scope != NODE_NONE && !node_is_within(judge, i, scope)) || is_undone_alone_in(judge, i, scope)) {
            continue;
        }
        unit = unit_of(judge, i, scope);
        active += !is_counted[unit] && unit != except;
        is_counted[unit] = true;
    }
    return active;
}

/* Does the node, but not `other`, belong to a child that is undone on its own? */
static bool is_undone_apart(const struct judge *judge, uint32_t node, uint32_t other)
{
    for (uint32_t at = judge->nodes[node].parent; at != NODE_NONE && !node_is_within(judge, other, at);
         at = judge->nodes[at].parent) {
        if (judge->nodes[at].is_planned) {
            return true;
        }
    }
    return false;
}

/* Is there no room for the node in a child that does not hold `other`? */
static bool has_no_room_within(const struct run *run, uint32_t node, uint32_t other)
{
    const struct judge *judge = &run->judge;

    for (uint32_t scope = scope_of(judge, node); scope != NODE_NONE && !node_is_within(judge, other, scope);
         scope = scope_of(judge, scope)) {
        if (active_in(judge, scope, unit_of(judge, node, scope)) >= concurrency_of(run, scope)) {
            return true;
        }
    }
    return false;
}

/* Does the node wait for another round in a child that does not hold `other`? A person gave that round to a node that
 * is undone first, and it has its own room. */
static bool waits_for_a_round_within(const struct judge *judge, uint32_t node, uint32_t other)
{
    for (uint32_t scope = scope_of(judge, node); scope != NODE_NONE && !node_is_within(judge, other, scope);
         scope = scope_of(judge, scope)) {
        for (uint32_t i = 0; i < judge->count; i++) {
            if (i != node && judge->nodes[i].undo == UNDO_PLANNED && judge->nodes[i].undo_begun &&
                node_is_within(judge, i, scope) && is_undone_before(judge, i, node)) {
                return true;
            }
        }
    }
    return false;
}

/* Is the child that holds the node, but not `other`, being undone already? Then that child goes on, even when other
 * nodes have become ready. */
static bool is_under_way_beside(const struct judge *judge, uint32_t node, uint32_t other)
{
    uint32_t unit = node;

    for (uint32_t scope = scope_of(judge, node); scope != NODE_NONE && !node_is_within(judge, other, scope);
         scope = scope_of(judge, scope)) {
        unit = scope;
    }
    for (uint32_t i = 0; i < judge->count && unit != node; i++) {
        if (i != node && judge->nodes[i].undo == UNDO_SENT && node_is_within(judge, i, unit)) {
            return true;
        }
    }
    return false;
}

static bool is_held(const struct judge *judge, uint32_t node)
{
    for (uint32_t i = 0; i < judge->count; i++) {
        if (i != node && is_left(&judge->nodes[i]) && comes_before(judge, node, i)) {
            return true;
        }
    }
    return false;
}

void judge_undo_begins(struct run *run, uint32_t at)
{
    struct judge *judge = &run->judge;
    struct node *node = &judge->nodes[at];
    const struct thing *thing = &node->things[DIRECTION_DO];

    if (node->undo == UNDO_NONE || node->undo == UNDO_DONE || node->is_waived) {
        run_violate(run, "%s is undone without a plan", node->id);
    }
    if (!world_stands(run, at) && !node_tolerates_absent(node) && node->things[DIRECTION_UNDO].effects == 0) {
        run_violate(run, "%s is undone, and did not happen", node->id);
    }
    if (thing->doubled == false && thing->effects > 1) {
        run_violate(run, "%s happened more than once", node->id);
    }
    if (judge->is_paused) {
        run_violate(run, "%s is undone while the saga is paused", node->id);
    }
    if (judge_is_held(run, at, DIRECTION_UNDO)) {
        run_violate(run, "%s is undone while that is held", node->id);
    }
    for (uint32_t i = 0; i < judge->count; i++) {
        const struct node *other = &judge->nodes[i];

        if (i == at || !is_left(other)) {
            continue;
        }
        if (!node->undo_begun &&
            comes_before(judge, at, i)) { /* another round follows the order that people brought about */
            run_violate(run, "%s is undone before %s, which came after it", node->id, other->id);
        }
        if (!node->undo_begun && !node->joined_late && other->undo == UNDO_PLANNED && !other->undo_begun &&
            (other->state == IS_DONE || is_blind(other)) && !other->is_doubted && is_undone_before(judge, i, at) &&
            !is_held(judge, i) && !judge_is_held(run, i, DIRECTION_UNDO) && !has_no_room_within(run, i, at) &&
            !waits_for_a_round_within(judge, i, at) && !is_undone_apart(judge, at, i) &&
            !is_under_way_beside(judge, at, i)) {
            run_violate(run, "%s is undone before %s, which began later", node->id, other->id);
        }
    }
    node->undo_begun = true;
}

/* Checks that no more nodes are undone at once than the saga or the child allows. */
void judge_undo_room(struct run *run)
{
    const struct judge *judge = &run->judge;
    uint32_t active = active_in(judge, NODE_NONE, NODE_NONE);

    run->tally->undos_at_once += active > 1;
    if (judge->is_planned && active > concurrency_of(run, NODE_NONE)) {
        run_violate(run, "%u are undone at once", (unsigned)active);
    }
    for (uint32_t i = 0; i < judge->count; i++) {
        if (judge->nodes[i].state != IS_NOTHING && judge->nodes[i].step->kind == STEP_SAGA &&
            !node_is_fan(&judge->nodes[i]) && active_in(judge, i, NODE_NONE) > concurrency_of(run, i)) {
            run_violate(run, "too many of %s are undone at once", judge->nodes[i].id);
        }
    }
}

/* Judges an undo by hand: the effect was gone before the log said so, and nothing of the node is under way. */
void judge_undone(struct run *run, const struct record *record)
{
    struct node *node = &run->judge.nodes[record->step];

    if (!record->actor.len || node->things[DIRECTION_UNDO].effects == 0) {
        run_violate(run, "%s counts as undone by hand, and is not", node->id);
    }
    if (node->flies[DIRECTION_DO] || node->flies[DIRECTION_UNDO] || world_is_on_the_wire(run, record->step)) {
        run_violate(run, "%s counts as undone by hand while a call of it is under way", node->id);
    }
    node->state = IS_DONE;
    node->undo = UNDO_DONE;
    node->is_doubted = false;
}
