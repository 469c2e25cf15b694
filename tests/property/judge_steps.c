/* Judges which steps may begin, and how they end: steps, groups, waits and locks are checked against the sketch and the
 * books of the world. */
#include "tests/property/run.h"

#include <string.h>

#include "base/json.h"

/* --- nodes --- */

bool node_is_fan(const struct node *node)
{
    return node->step->each != EACH_NONE && node->element == ELEMENT_NONE;
}

bool node_is_child(const struct node *node)
{
    return node->step->kind == STEP_SAGA && !node_is_fan(node);
}

bool node_is_call(const struct node *node)
{
    return node->step->kind == STEP_CALL && !node_is_fan(node);
}

bool node_is_over(const struct node *node)
{
    return node->state == IS_DONE || node->state == IS_BEFORE || node->state == IS_SKIPPED ||
           (node->state == IS_FAILED && node->step->on_failure == ON_FAILURE_CONTINUE);
}

uint64_t node_name_of(const char *id)
{
    uint64_t name = UINT64_C(0xcbf29ce484222325);

    for (; *id; id++) {
        name = (name ^ (uint8_t)*id) * UINT64_C(0x100000001b3);
    }
    return name;
}

static struct node *add_node(struct run *run, const struct sketch_saga *saga, uint32_t member, uint32_t parent,
                             uint32_t element)
{
    struct judge *judge = &run->judge;
    struct node *node;
    struct slice id = SLICE("");

    CHECK(judge->count < NODES_MAX);
    node = &judge->nodes[judge->count++];
    *node = (struct node){
        .step = &saga->steps[member], .saga = saga, .parent = parent, .element = element, .member = member};
    node->kit = &kits[node->step->kit];
    node->effect = node->step->kind == STEP_CALL ? node->kit->effect : EFFECT_READ;
    if (element != ELEMENT_NONE) {
        id = arena_printf(&run->kept, "%s#%u", judge->nodes[parent].id, (unsigned)element);
    } else if (parent != NODE_NONE) {
        id = arena_printf(&run->kept, "%s/%s", judge->nodes[parent].id, node->step->id);
    } else {
        id = slice_of(node->step->id);
    }
    node->id = id.ptr;
    node->name = node_name_of(node->id);
    return node;
}

void judge_open(struct run *run)
{
    const struct sketch_saga *saga = &run->script->sketch.sagas[0];

    memset(&run->judge, 0, offsetof(struct judge, nodes));
    run->judge.kind = run->script->sketch.kind;
    for (uint32_t i = 0; i < saga->step_count; i++) {
        (void)add_node(run, saga, i, NODE_NONE, ELEMENT_NONE);
    }
}

/* Adds the members in the order in which the log says that they become steps. The machine must use the same ids. */
static void add_members(struct run *run, uint32_t group, uint32_t count)
{
    struct judge *judge = &run->judge;
    struct node *node = &judge->nodes[group];
    const struct sketch *sketch = &run->script->sketch;

    node->first = judge->count;
    node->count = node_is_fan(node) ? count : sketch->sagas[node->step->child].step_count;
    for (uint32_t i = 0; i < node->count; i++) {
        if (node_is_fan(node)) {
            (void)add_node(run, node->saga, node->member, group, i);
        } else {
            (void)add_node(run, &sketch->sagas[node->step->child], i, group, ELEMENT_NONE);
        }
    }
    if (run->shadow.definition->step_count != judge->count) {
        run_violate(run, "%s brings %u steps and not %u", node->id,
                    (unsigned)(run->shadow.definition->step_count - node->first), (unsigned)node->count);
    }
    for (uint32_t i = node->first; i < judge->count; i++) {
        if (!slice_is(run->shadow.definition->steps[i].id, judge->nodes[i].id)) {
            run_violate(run, "a step is called %.*s and not %s", SLICE_ARG(run->shadow.definition->steps[i].id),
                        judge->nodes[i].id);
        }
    }
}

/* --- beginning --- */

/* Has the saga, or a child around the node, begun to fail? */
bool judge_is_failing(const struct judge *judge, uint32_t node)
{
    bool failing = judge->is_failing;

    for (uint32_t at = judge->nodes[node].parent; at != NODE_NONE; at = judge->nodes[at].parent) {
        failing = failing || judge->nodes[at].is_failing;
    }
    return failing;
}

static void must_be_over(struct run *run, const struct node *node, uint32_t before)
{
    const struct node *other = &run->judge.nodes[before];

    if (!node_is_over(other)) {
        run_violate(run, "%s begins before %s is over", node->id, other->id);
    }
    if (other->things[DIRECTION_UNDO].effects > 0) {
        run_violate(run, "%s begins after %s was undone, which it builds on", node->id, other->id);
    }
}

static void element_begins(struct run *run, uint32_t at)
{
    struct judge *judge = &run->judge;
    const struct node *node = &judge->nodes[at], *fan = &judge->nodes[node->parent];
    uint32_t under_way = 0, room = node->step->concurrency ? node->step->concurrency : 1;

    for (uint32_t i = fan->first; i < fan->first + fan->count; i++) {
        const struct node *other = &judge->nodes[i];

        if (i < at && other->state == IS_NOTHING) {
            run_violate(run, "%s begins before %s", node->id, other->id);
        }
        under_way += i != at && other->state != IS_NOTHING && !node_is_over(other);
    }
    if (under_way >= room) {
        run_violate(run, "%s begins beside %u others", node->id, (unsigned)under_way);
    }
}

bool judge_is_held(const struct run *run, uint32_t node, enum direction direction)
{
    return run->holds.count > 0 && (direction == DIRECTION_DO || run->hold.undo) &&
           (run->hold.kind == HOLD_NAMESPACE ||
            slice_equal(run->hold.name, saga_tool(&run->shadow, node, direction)->name));
}

/* Checks that it is the step's turn. A step that fails or is skipped on the spot has not begun. */
void judge_step_is_due(struct run *run, uint32_t at)
{
    struct judge *judge = &run->judge;
    struct node *node = &judge->nodes[at];

    if (node->order > 0) {
        return;
    }
    if (judge_is_failing(judge, at)) {
        run_violate(run, "%s begins although it is to be undone", node->id);
    }
    /* A step that a person had tried again goes on, even when another question is open. */
    if (judge->is_paused || (judge->escalations > 0 && node->state == IS_NOTHING)) {
        run_violate(run, "%s begins while the saga is %s", node->id, judge->is_paused ? "paused" : "escalated");
    }
    if (run->script->sketch.sagas[0].lock_count > 0 &&
        (!judge->locks_wanted || judge->lock_taken < judge->lock_count)) {
        run_violate(run, "%s begins before all locks are taken", node->id);
    }
    if (node->parent != NODE_NONE && judge->nodes[node->parent].state != IS_OPEN) {
        run_violate(run, "%s begins, and what it belongs to is not open", node->id);
    }
    if (node->element != ELEMENT_NONE) {
        element_begins(run, at);
        return;
    }
    for (uint32_t i = 0, after = sketch_after(node->saga, node->member); i < node->saga->step_count; i++) {
        if (after & BIT(i)) {
            must_be_over(run, node, (node->parent == NODE_NONE ? 0 : judge->nodes[node->parent].first) + i);
        }
    }
}

void judge_step_begins(struct run *run, uint32_t at)
{
    struct node *node = &run->judge.nodes[at];

    judge_step_is_due(run, at);
    node->order = node->order ? node->order : ++run->judge.begun;
}

/* Must the node wait for people? While a person is asked, no new call leaves. An agent goes on all the same, except
 * with a call that ends the work of an open saga. */
static bool waits_for_people(const struct judge *judge, const struct node *node)
{
    return !judge_is_open(judge) || (judge->kind == SAGA_OPEN && node->kit->terminal && node->effect != EFFECT_READ);
}

void judge_intent(struct run *run, const struct record *record)
{
    struct judge *judge = &run->judge;
    struct node *node = &judge->nodes[record->step];
    bool is_first = node->state == IS_NOTHING || node->state == IS_PENDING;

    if (record->conditional) {
        node->effect = record->effect;
    }
    judge_step_begins(run, record->step);
    if (is_first &&
        (judge_is_failing(judge, record->step) || (judge->escalations > 0 && waits_for_people(judge, node)))) {
        run_violate(run, "%s leaves although %s", node->id,
                    judge->escalations ? "somebody is asked" : "it is to be undone");
    }
    if (judge->is_paused) {
        run_violate(run, "%s leaves while the saga is paused", node->id);
    }
    if (judge_is_held(run, record->step, DIRECTION_DO)) {
        run_violate(run, "%s leaves while it is held", node->id);
    }
    if (judge->is_planned || node->undo != UNDO_NONE || node->things[DIRECTION_UNDO].sends > 0) {
        run_violate(run, "%s leaves although it is being undone", node->id);
    }
    if (node->kit->guarded && node->admitted != record->attempt) {
        run_violate(run, "%s leaves, and no guard was asked", node->id);
    }
    if (node->flies[DIRECTION_DO]) {
        run_violate(run, "%s leaves twice at once", node->id);
    }
    node->state = IS_SENT;
    node->flies[DIRECTION_DO] = true;
    node->intents[DIRECTION_DO] = record->attempt;
}

/* --- ends of steps --- */

/* Has a terminal step happened? Then the saga completes, whatever else is under way. */
bool judge_has_passed_return(const struct judge *judge)
{
    for (uint32_t i = 0; i < judge->count; i++) {
        if (node_is_call(&judge->nodes[i]) && judge->nodes[i].kit->terminal && judge->nodes[i].effect != EFFECT_READ &&
            judge->nodes[i].state == IS_DONE) {
            return true;
        }
    }
    return false;
}

static void end_of_group(struct run *run, const struct record *record)
{
    struct judge *judge = &run->judge;
    struct node *node = &judge->nodes[record->step];
    struct json_walk walk = json_walk(record->result);
    struct slice result;

    if (node->state != IS_OPEN) {
        run_violate(run, "%s is completed and was not open", node->id);
    }
    if ((judge_is_failing(judge, record->step) || node->is_failing) && !judge_has_passed_return(judge)) {
        run_violate(run, "%s is completed although it is to be undone", node->id);
    }
    if (node_is_fan(node) && (json_type(record->result) != JSON_ARRAY || json_count(record->result) != node->count)) {
        run_violate(run, "%s has %.*s as its result", node->id, SLICE_ARG(record->result));
    }
    for (uint32_t i = node->first; i < node->first + node->count; i++) {
        const struct node *member = &judge->nodes[i];

        if (!node_is_over(member)) {
            run_violate(run, "%s is completed, and %s is not over", node->id, member->id);
        }
        if (node_is_fan(node) && json_next_element(&walk, &result) &&
            !slice_equal(json_trim(result), member->result.ptr ? member->result : SLICE("null"))) {
            run_violate(run, "%s has %.*s for %s, which gave %.*s", node->id, SLICE_ARG(result), member->id,
                        SLICE_ARG(member->result));
        }
    }
}

struct kept *judge_first_kept(struct judge *judge, uint32_t name)
{
    for (uint32_t i = 0; i < judge->signal_count; i++) {
        if (judge->signals[i].name == name && !judge->signals[i].taken) {
            return &judge->signals[i];
        }
    }
    return NULL;
}

static void end_of_wait(struct run *run, struct node *node, const struct record *record)
{
    struct kept *kept;

    switch (node->step->kind) {
    case STEP_SLEEP:
        if (node->due_ms > record->at_ms) {
            run_violate(run, "%s is over too early", node->id);
        }
        return;
    case STEP_SIGNAL:
        kept = node->handed ? NULL : judge_first_kept(&run->judge, node->step->signal);
        if (!node->handed && !kept) {
            run_violate(run, "%s is over, and nobody has signalled", node->id);
        }
        if (!slice_equal(record->result, node->handed ? node->payload : kept->payload)) {
            run_violate(run, "%s got %.*s", node->id, SLICE_ARG(record->result));
        }
        if (kept) {
            kept->taken = true;
            run->tally->kept_signals_taken++;
        }
        return;
    case STEP_APPROVE:
        if (node->decided != 1) {
            run_violate(run, "%s is over, and nobody has approved", node->id);
        }
        return;
    case STEP_CALL:
    case STEP_SAGA:
        return;
    }
}

void judge_completed(struct run *run, const struct record *record)
{
    struct node *node = &run->judge.nodes[record->step];
    struct thing *thing = &node->things[DIRECTION_DO];

    judge_step_is_due(run, record->step);
    if (node_is_fan(node) || node_is_child(node)) {
        end_of_group(run, record);
    } else if (!node_is_call(node)) {
        end_of_wait(run, node, record);
    } else if (record->source == SOURCE_PRECHECK) {
        if (thing->effects > 0 && !thing->lied) {
            run_violate(run, "%s counts as done before, and we have done it", node->id);
        }
        *thing = (struct thing){.key = thing->key}; /* nothing that a lying receiver did counts */
    } else if (thing->effects == 0) {
        run_violate(run, "%s counts as done, and did not happen", node->id);
    }
    node->state = node_is_call(node) && record->source == SOURCE_PRECHECK ? IS_BEFORE : IS_DONE;
    node->is_doubted = node->things[DIRECTION_DO].hidden = false;
    node->flies[DIRECTION_DO] = false;
    node->result = arena_slice(&run->kept, record->result);
}

void judge_must_not_stand(struct run *run, uint32_t at, const char *what)
{
    if (!run->judge.nodes[at].is_waived && (world_stands(run, at) || world_is_on_the_wire(run, at))) {
        run_violate(run, "%s %s", run->judge.nodes[at].id, what);
    }
}

static void failed_wait(struct run *run, const struct node *node, const struct record *record)
{
    bool timeout = slice_is(record->error, "timeout"), refused = slice_is(record->error, "refused");

    bool stands = run->judge.is_held && node->step->kind == STEP_APPROVE;

    if (timeout && (stands || !node->due_ms || record->at_ms < node->due_ms)) {
        run_violate(run, "%s times out too early", node->id);
    }
    if (refused && node->decided != -1) {
        run_violate(run, "%s is refused, and nobody has refused it", node->id);
    }
    if (node->state == IS_WAITING && !timeout && !refused && !judge_is_failing(&run->judge, record->step)) {
        run_violate(run, "%s fails while it waits: %.*s", node->id, SLICE_ARG(record->error));
    }
}

void judge_failed(struct run *run, const struct record *record)
{
    struct judge *judge = &run->judge;
    struct node *node = &judge->nodes[record->step];

    if (node->state == IS_NOTHING && !judge_is_failing(judge, record->step)) {
        judge_step_is_due(run, record->step);
    }
    if (node_is_call(node)) {
        judge_must_not_stand(run, record->step, "counts as failed, and has happened or may yet");
    } else if (!node_is_fan(node) && !node_is_child(node)) {
        failed_wait(run, node, record);
    } else if (node->is_failing) {
        for (uint32_t i = 0; i < judge->count; i++) {
            if (node_is_within(judge, i, record->step)) {
                judge_must_not_stand(run, i, "stands, and its group counts as undone");
            }
        }
    }
    node->state = IS_FAILED;
    node->is_doubted = false;
    node->flies[DIRECTION_DO] = false;
}

void judge_skipped(struct run *run, const struct record *record)
{
    struct node *node = &run->judge.nodes[record->step];

    if (record->reason.len) {
        /* A condition that is true in the saga may be false in a child, which sees only its own input. */
        if (node->step->when == WHEN_NONE || (node->step->when == WHEN_TRUE && node->parent == NODE_NONE)) {
            run_violate(run, "%s is skipped", node->id);
        }
        judge_step_is_due(run, record->step);
    }
    judge_must_not_stand(run, record->step, "is skipped, and has happened or may yet");
    node->state = IS_SKIPPED;
}

/* --- groups and waits --- */

void judge_opened(struct run *run, const struct record *record)
{
    struct node *node = &run->judge.nodes[record->step];

    judge_step_begins(run, record->step);
    if (node->state != IS_NOTHING || !(node_is_fan(node) || node_is_child(node))) {
        run_violate(run, "%s is opened", node->id);
    }
    node->state = IS_OPEN;
    node->due_ms = record->due_ms;
    node->due_from_ms = record->at_ms;
    if (node_is_fan(node) && json_count(record->args) != node->step->elements) {
        run_violate(run, "%s has %zu elements", node->id, json_count(record->args));
    }
    add_members(run, record->step, node->step->elements);
}

void judge_waiting(struct run *run, const struct record *record)
{
    struct node *node = &run->judge.nodes[record->step];

    judge_step_begins(run, record->step);
    if (node->state != IS_NOTHING) {
        run_violate(run, "%s waits again", node->id);
    }
    if (node->step->kind == STEP_SIGNAL || node->step->kind == STEP_APPROVE) {
        int64_t due_ms = node->step->timeout_s ? record->at_ms + (int64_t)node->step->timeout_s * 1000 : 0;

        if (record->due_ms != due_ms) {
            run_violate(run, "%s waits until another time than it says", node->id);
        }
    }
    node->state = IS_WAITING;
    node->due_ms = record->due_ms;
    node->due_from_ms = record->at_ms;
    node->approval = record->approval;
    node->hash = record->fingerprint;
}

void judge_signal(struct run *run, const struct record *record)
{
    struct judge *judge = &run->judge;
    uint32_t name = slice_is(record->signal, "g0") ? 0 : 1;
    struct node *node = record->step == STEP_NONE ? NULL : &judge->nodes[record->step];

    if (node) {
        if (node->state != IS_WAITING || node->step->signal != name || judge_first_kept(judge, name)) {
            run_violate(run, "%s takes a signal", node->id);
        }
        node->handed = true;
        node->payload = arena_slice(&run->kept, record->args);
        return;
    }
    CHECK(judge->signal_count < SIGNALS_KEPT_MAX);
    judge->signals[judge->signal_count++] = (struct kept){name, arena_slice(&run->kept, record->args), false};
}

void judge_decided(struct run *run, const struct record *record)
{
    struct node *node = &run->judge.nodes[record->step];

    if (node->state != IS_WAITING || node->approval != record->approval || node->decided) {
        run_violate(run, "%s is decided, and does not wait for it", node->id);
    }
    if (judge_is_failing(&run->judge, record->step)) {
        run_violate(run, "%s is decided although it is to be undone", node->id);
    }
    node->decided = slice_is(record->verdict, "approve") ? 1 : -1;
}

void judge_locks(struct run *run, const struct record *record)
{
    struct judge *judge = &run->judge;
    struct json_walk walk = json_walk(record->args);
    struct slice item;

    if (judge->locks_wanted || judge->begun > 0) {
        run_violate(run, "locks are wanted late");
    }
    judge->locks_wanted = true;
    while (json_next_element(&walk, &item)) {
        struct slice key = arena_slice(&run->kept, json_string(json_member(item, "key"), &run->kept));

        if (judge->lock_count == SKETCH_LOCKS_MAX ||
            (judge->lock_count > 0 && slice_compare(judge->locks[judge->lock_count - 1], key) >= 0)) {
            run_violate(run, "the locks are not in order: %.*s", SLICE_ARG(record->args));
        }
        judge->locks[judge->lock_count++] = key;
    }
}
