/* See run.h. The receivers know their keys as far as their class promises, lose answers, and are slow. */
#include "tests/property/run.h"

struct thing *world_thing(struct run *run, uint32_t node, enum direction direction)
{
    CHECK(node < run->judge.count);
    return &run->judge.nodes[node].things[direction];
}

enum effect node_undo_effect(const struct node *node)
{
    return node->step->own_undo ? EFFECT_KEYED : node->kit->undo_effect;
}

bool node_tolerates_absent(const struct node *node)
{
    return !node->step->own_undo && node->kit->tolerates_absent;
}

static enum effect class_of(const struct node *node, enum direction direction)
{
    return direction == DIRECTION_UNDO ? node_undo_effect(node) : node->effect;
}

bool world_stands(const struct run *run, uint32_t node)
{
    const struct node *n = &run->judge.nodes[node];

    return n->things[DIRECTION_DO].effects > 0 && !n->things[DIRECTION_DO].hidden &&
           n->things[DIRECTION_UNDO].effects == 0 && n->effect != EFFECT_READ;
}

/* Can something on the wire still take effect? A receiver that already has the effect, or was told to refuse it, knows
 * the key. */
bool world_is_on_the_wire(const struct run *run, uint32_t node)
{
    const struct thing *thing = &run->judge.nodes[node].things[DIRECTION_DO];

    return thing->lands_ms != 0 && thing->effects == 0 && !thing->voided;
}

static void take_effect(struct run *run, struct node *node, enum direction direction)
{
    struct thing *thing = &node->things[direction];
    enum effect effect = class_of(node, direction);
    bool knows_key =
        effect == EFFECT_IDEMPOTENT || (effect == EFFECT_KEYED && run->now_ms < thing->first_ms + KEY_WINDOW_MS);

    if (thing->voided || (thing->effects > 0 && (knows_key || effect == EFFECT_READ))) {
        return;
    }
    thing->doubled = thing->doubled || thing->hidden; /* no class protects against a receiver that lies */
    thing->effects++;
    thing->first_ms = thing->first_ms ? thing->first_ms : run->now_ms;
    if (direction == DIRECTION_DO && effect != EFFECT_READ && !thing->doubled && node->things[DIRECTION_UNDO].effects) {
        run_violate(run, "%s takes effect after its own compensation", node->id);
    }
    if (thing->effects > 1 && effect != EFFECT_READ) {
        if (!thing->doubled) {
            run_violate(run, "%s: two effects under one key", node->id);
        }
        run->tally->doubles++;
    }
    if (direction == DIRECTION_UNDO && !node->step->own_undo && node->kit->voids_key) {
        node->things[DIRECTION_DO].voided = true;
    }
}

void world_land(struct run *run)
{
    for (uint32_t i = 0; i < run->judge.count; i++) {
        for (unsigned d = 0; d < DIRECTION_COUNT; d++) {
            struct thing *thing = &run->judge.nodes[i].things[d];

            if (thing->lands_ms && thing->lands_ms <= run->now_ms) {
                thing->lands_ms = 0;
                thing->running = false;
                if (thing->effects == 0) { /* the receiver knows its own keys while they are young */
                    take_effect(run, &run->judge.nodes[i], (enum direction)d);
                }
            }
        }
    }
}

/* Answers a completed call. Sometimes the receiver returns no result, and then an undo that needs the result needs a
 * person. */
struct outcome world_completed(struct run *run)
{
    struct chance chance = chance_of(run->script->seed, 22, run->results);

    if (!run->is_kind && !judge_is_open(&run->judge) && chance_percent(&chance, 4)) {
        run->results++;
        return (struct outcome){.kind = OUTCOME_COMPLETED, .result = SLICE("null")};
    }
    return (struct outcome){.kind = OUTCOME_COMPLETED,
                            .result = arena_printf(&run->kept, "{\"id\":\"r-%u\"}", (unsigned)++run->results)};
}

struct outcome world_completed_late(struct run *run, uint32_t node, enum direction direction)
{
    take_effect(run, &run->judge.nodes[node], direction);
    return world_completed(run);
}

struct outcome world_trouble(enum outcome_kind kind, bool unsent, const char *error)
{
    return (struct outcome){.kind = kind, .unsent = unsent, .error = slice_of(error)};
}

static bool is_calm(const struct run *run, uint64_t name)
{
    for (uint32_t i = 0; i < run->script->calm_count; i++) {
        if (run->script->calm[i] == name) {
            return true;
        }
    }
    return false;
}

/* Lies: the receiver refuses and does the work all the same, and its success arrives later. Agents meet such
 * receivers. */
static struct outcome lie(struct run *run, struct node *node, uint32_t attempt)
{
    struct thing *thing = &node->things[DIRECTION_DO];

    take_effect(run, node, DIRECTION_DO);
    thing->lied = thing->hidden = thing->has_late = true;
    thing->late = world_completed(run);
    thing->late_attempt = attempt;
    return world_trouble(OUTCOME_FAILED, false, "http-422");
}

/* Sends a call, and decides its effect and its answer now. */
static struct outcome send_call(struct run *run, struct node *node, enum direction direction, uint32_t attempt)
{
    struct chance chance = chance_of(run->script->seed, node->name + direction, attempt);
    struct thing *thing = &node->things[direction];
    enum effect effect = class_of(node, direction);
    bool is_well = run->is_kind || is_calm(run, node->name) || !chance_percent(&chance, run->trouble);
    uint32_t luck = is_well ? 0 : 1 + chance_below(&chance, 99);

    if (luck > 0 && luck < 15) {
        return world_trouble(OUTCOME_RETRY, true, luck < 6 ? OUTCOME_EGRESS_DENIED : "refused");
    }
    if (thing->sends++ > 0 && effect == EFFECT_ONCE && !thing->doubled) {
        run_violate(run, "%s: once left twice", node->id);
    }
    if (thing->voided) {
        return world_trouble(OUTCOME_FAILED, false, "voided");
    }
    if (luck == 0) {
        take_effect(run, node, direction);
        return world_completed(run);
    }
    if (luck < 28) {
        return world_trouble(OUTCOME_RETRY, false, "http-429");
    }
    if (luck < 46) {
        if (luck > 36 && judge_is_open(&run->judge) && direction == DIRECTION_DO && effect != EFFECT_READ) {
            return lie(run, node, attempt);
        }
        return world_trouble(OUTCOME_FAILED, false, "http-422");
    }
    if (luck < 64) {
        take_effect(run, node, direction);
        if (chance_percent(&chance, 60)) { /* the answer comes when nobody waits for it any more */
            thing->has_late = true;
            thing->late = world_completed(run);
            thing->late_attempt = attempt;
        }
        return world_trouble(OUTCOME_UNKNOWN, false, "timeout");
    }
    if (luck < 78 || effect == EFFECT_READ) {
        return world_trouble(OUTCOME_UNKNOWN, false, "reset");
    }
    if (luck < 90 || !(direction == DIRECTION_DO ? node->kit->probed : effect == EFFECT_CHECKED)) {
        thing->lands_ms = run->now_ms + 1 + chance_below(&chance, VISIBILITY_MS - 2);
        return world_trouble(OUTCOME_UNKNOWN, false, "late");
    }
    thing->lands_ms = run->now_ms + 1 + chance_below(&chance, 20000);
    thing->running = true;
    return world_trouble(OUTCOME_RUNNING, false, "running");
}

/* Renews the key. Nothing may have happened under the old one. */
static void renew_key(struct run *run, struct node *node, enum direction direction, const struct op_key *key)
{
    struct thing *thing = &node->things[direction];

    if (uuid_equal(&thing->key.uuid, &key->uuid)) {
        return;
    }
    if (thing->effects > 0 && !thing->lied && class_of(node, direction) != EFFECT_READ) {
        run_violate(run, "%s: a new key for what has happened", node->id);
    }
    for (uint32_t i = 0; i < run->judge.count; i++) {
        for (unsigned d = 0; d < DIRECTION_COUNT; d++) {
            if (uuid_equal(&run->judge.nodes[i].things[d].key.uuid, &key->uuid)) {
                run_violate(run, "%s has the key of %s", node->id, run->judge.nodes[i].id);
            }
        }
    }
    *thing = (struct thing){.key = *key};
}

/* Sends calls as soon as their intents are durable. Their answers take time. */
void world_send_calls(struct run *run)
{
    for (uint32_t i = 0; i < run->want_count; i++) {
        const struct want *want = &run->wants[i];
        const struct operation *op;
        struct node *node;

        if (want->type != WANT_CALL || world_thing(run, want->step, want->direction)->asked_attempt == want->number) {
            continue;
        }
        node = &run->judge.nodes[want->step];
        op = want->direction == DIRECTION_UNDO ? step_undo(&run->live.steps[want->step])
                                               : &run->live.steps[want->step].forward;
        renew_key(run, node, want->direction, &op->key);
        node->things[want->direction].asked_attempt = want->number;
        node->things[want->direction].answer = send_call(run, node, want->direction, want->number);
        node->things[want->direction].has_answer = true;
    }
}

struct outcome world_answer_probe(struct run *run, uint32_t node, enum direction direction, struct chance *chance)
{
    const struct thing *thing = world_thing(run, node, direction);

    if (!run->is_kind && chance_percent(chance, run->is_deaf ? 97 : 20)) {
        return chance_percent(chance, 30) ? world_trouble(OUTCOME_RETRY, true, OUTCOME_EGRESS_DENIED)
                                          : world_trouble(OUTCOME_UNKNOWN, false, "http-500");
    }
    if (thing->effects > 0) {
        return world_completed(run);
    }
    return thing->running ? world_trouble(OUTCOME_RUNNING, false, "running")
                          : world_trouble(OUTCOME_ABSENT, false, "absent");
}

/* --- as the engine hands it in: with the compensator's arguments rendered --- */

static void render_undo(struct run *run, uint32_t node, struct slice result, struct saga_input *input)
{
    const struct compensator *compensate = &run->live.definition->steps[node].compensate;
    struct expression_context context;
    struct err err;
    char *key;

    if (!compensate->is_set) {
        return;
    }
    if (judge_is_open(&run->judge)) {
        input->settled.undo_args = SLICE("{\"id\":1}");
        return;
    }
    if (!template_is_set(&compensate->with)) {
        input->settled.undo_args = SLICE("{}");
        return;
    }
    if (compensate->with.program_count > 0) {
        input->settled.undo_args = SLICE("{\"evaluated\":true}");
        return;
    }
    context = saga_expression_context(&run->live, node, &run->scratch);
    key = arena_alloc(&run->scratch, UUID_TEXT_BYTES);
    uuid_text(&run->live.steps[node].forward.key.uuid, key);
    context.args = run->live.steps[node].forward.args;
    context.key = slice_of(key);
    context.result = result.ptr ? result : SLICE("null");
    if (template_render(&compensate->with, &context, NULL, &run->scratch, &input->settled.undo_args, &err) != ERR_OK) {
        input->settled.undo_args = SLICE_NONE;
        input->settled.undo_error = arena_slice(&run->scratch, slice_of(err.message));
    }
}

struct saga_input world_outcome(struct run *run, enum saga_input_type type, uint32_t node, enum direction direction,
                                uint32_t attempt, struct outcome outcome)
{
    struct saga_input input = {.type = type};

    input.settled.step = node;
    input.settled.direction = direction;
    input.settled.attempt = attempt;
    input.settled.outcome = outcome;
    if (outcome.kind == OUTCOME_COMPLETED && direction == DIRECTION_DO) {
        render_undo(run, node, outcome.result, &input);
    }
    return input;
}
