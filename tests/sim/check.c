/* See check.h. This file holds the judge's memory, the facts that the judge is told, and the invariants of the end. */
#include "tests/sim/check_state.h"

#include <string.h>

#include "tests/sim/scenario.h"

/* --- what the definitions say --- */

static char sleeps, is_other; /* values of check->kinds */

static void read_steps(struct check *check, struct slice steps)
{
    struct json_walk walk = json_walk(steps);
    struct slice step;

    while (json_next_element(&walk, &step)) {
        struct slice id = json_string(json_member(step, "id"), &world->arena);
        bool is_sleep = json_member(step, "sleep").ptr != NULL;

        check->has_branches |= json_member(step, "after").ptr || json_member(step, "concurrency").ptr;
        if (is_sleep && !map_find(&check->kinds, id.ptr, id.len)) {
            map_put(&check->kinds, id.ptr, id.len, &sleeps);
        } else if (!is_sleep) {
            map_put(&check->kinds, id.ptr, id.len, &is_other);
        }
    }
}

static void read_definitions(struct check *check)
{
    struct json_walk walk = json_walk(json_member(check->definitions, "sagas"));
    struct slice saga;
    int64_t at_once;

    while (json_next_element(&walk, &saga)) {
        check->has_parallel_undo |=
            json_i64(json_member(json_member(saga, "compensation"), "concurrency"), &at_once) && at_once > 1;
        read_steps(check, json_member(saga, "steps"));
    }
}

/* Is the step a sleep? In "a", "trip/a", "each#2" and "each#2/a" the id is behind the last slash and before the number
 * of the element. */
bool check_is_sleep(struct slice step)
{
    const char *from = step.ptr, *end = step.ptr + step.len;

    for (const char *at = step.ptr; at < step.ptr + step.len; at++) {
        if (*at == '/') {
            from = at + 1;
            end = step.ptr + step.len;
        } else if (*at == '#') {
            end = at;
        }
    }
    return map_find(&world->check->kinds, from, (size_t)(end - from)) == &sleeps;
}

/* --- memory --- */

void check_begin(struct slice definitions)
{
    struct check *check = arena_alloc(&world->arena, sizeof(*check));

    map_init(&check->sagas);
    map_init(&check->ops);
    map_init(&check->starts);
    map_init(&check->signals);
    map_init(&check->decisions);
    map_init(&check->acts);
    map_init(&check->events);
    map_init(&check->kinds);
    check->last = &check->first;
    check->definitions = definitions;
    for (uint32_t i = 0; i < scenario_now->fault_count; i++) {
        const struct mishap *mishap = &scenario_now->faults[i];

        check->clocks_jump |= mishap->kind == FAULT_ENGINE_CLOCK || mishap->kind == FAULT_PG_CLOCK;
        check->may_lose |= mishap->kind == FAULT_PG_FAIL_OVER && mishap->variant != 0;
    }
    world->check = check;
    check_schedule_begin();
    read_definitions(check);
}

void check_fini(void)
{
    struct check *check = world->check;

    if (!check) {
        return;
    }
    map_fini(&check->sagas);
    map_fini(&check->ops);
    map_fini(&check->starts);
    map_fini(&check->signals);
    map_fini(&check->decisions);
    map_fini(&check->acts);
    map_fini(&check->events);
    map_fini(&check->kinds);
    world->check = NULL;
}

struct judged_op *check_op_of(struct op_key key)
{
    return map_find(&world->check->ops, &key, sizeof(key));
}

bool op_is_class(const struct judged_op *op, const char *class)
{
    return slice_starts_with(op->tool, class);
}

bool op_stands(const struct judged_op *forward)
{
    const struct judged_op *undo = forward->step->undo;

    return !forward->is_undo && forward->effects > 0 && !op_is_class(forward, "read") && (!undo || undo->effects == 0);
}

/* --- turns --- */

static struct judged_saga *saga_of(const struct committed_turn *turn)
{
    struct check *check = world->check;
    struct judged_saga *saga = map_find(&check->sagas, &turn->saga, sizeof(turn->saga));

    if (!saga) {
        saga = arena_alloc(&world->arena, sizeof(*saga));
        saga->id = turn->saga;
        map_put(&check->sagas, &saga->id, sizeof(saga->id), saga);
        *check->last = saga;
        check->last = &saga->next;
    }
    return saga;
}

void check_turn(const struct committed_turn *turn)
{
    struct judged_saga *saga;
    struct json_walk walk;
    struct slice text;
    uint32_t count = 0;

    if (!turn) {
        return; /* the commit is complete */
    }
    saga = saga_of(turn);
    world->check->turns++;
    if (turn->shard != saga_id_shard(turn->saga)) {
        world_violate("I8", "a turn of a saga of shard %u was written under shard %u",
                      (unsigned)saga_id_shard(turn->saga), (unsigned)turn->shard);
    }
    if (turn->epoch < saga->epoch) {
        world_violate("I8", "epoch %lld writes after epoch %lld", (long long)turn->epoch, (long long)saga->epoch);
    }
    if (turn->epoch != turn->shard_epoch) {
        world_violate("I8", "a turn of epoch %lld was committed while shard %u was at epoch %lld",
                      (long long)turn->epoch, (unsigned)turn->shard, (long long)turn->shard_epoch);
    }
    saga->epoch = turn->epoch;
    if (turn->seq != saga->seq + 1) {
        world_violate("I9", "record %u comes after record %llu", turn->seq, (unsigned long long)saga->seq);
    }
    walk = json_walk(turn->payload);
    while (json_next_element(&walk, &text)) {
        count++;
        check_record(saga, turn, ++saga->seq, text);
        check_happened(saga, saga->seq, text);
    }
    if (count != turn->records || count == 0) {
        world_violate("I9", "a turn says that it has %u records, and has %u", turn->records, count);
    }
    check_rest(saga, turn);
}

/* --- what people and clients were told --- */

static struct noted *note(void)
{
    struct noted *noted = arena_alloc(&world->arena, sizeof(*noted));

    noted->next = world->check->noted;
    world->check->noted = noted;
    return noted;
}

void check_acknowledged_start(const struct ack_start *ack)
{
    struct node *before = node_enter(NULL);
    struct noted *noted = note();

    noted->kind = NOTED_START;
    noted->saga = ack->saga;
    noted->key = arena_slice(&world->arena, ack->business_id);
    for (const struct noted *other = noted->next; other && ack->business_id.ptr; other = other->next) {
        if (other->kind == NOTED_START && slice_equal(other->key, ack->business_id) &&
            !uuid_equal(&other->saga.uuid, &ack->saga.uuid)) {
            world_violate("I10", "the same start was answered with two sagas");
        }
    }
    node_leave(before);
}

void check_acknowledged_signal(struct saga_id saga, struct slice name, struct slice key)
{
    struct node *before = node_enter(NULL);
    struct noted *noted = note();

    noted->kind = NOTED_SIGNAL;
    noted->saga = saga;
    noted->name = arena_slice(&world->arena, name);
    noted->key = arena_slice(&world->arena, key);
    node_leave(before);
}

void check_acknowledged_decision(uint64_t approval, bool approved)
{
    struct node *before = node_enter(NULL);
    struct noted *noted = note();

    noted->kind = NOTED_DECISION;
    noted->number = approval;
    noted->approved = approved;
    node_leave(before);
}

void check_acknowledged_resolution(uint64_t escalation)
{
    struct node *before = node_enter(NULL);
    struct noted *noted = note();

    noted->kind = NOTED_RESOLUTION;
    noted->number = escalation;
    node_leave(before);
}

static uint64_t hash_of(struct slice text, uint64_t hash)
{
    for (size_t i = 0; i < text.len; i++) {
        hash = (hash ^ (uint8_t)text.ptr[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

uint64_t check_place_of_signal(struct saga_id saga, struct slice name)
{
    return hash_of(name, hash_of((struct slice){(const char *)&saga, sizeof(saga)}, 1));
}

void check_seen(struct saga_id id, struct slice answer)
{
    struct judged_saga *saga = map_find(&world->check->sagas, &id, sizeof(id));
    struct slice status = json_member(answer, "status");
    enum saga_status shown;
    struct node *before;
    uint64_t hash;

    if (world->check->may_lose || !saga || !saga_status_parse((struct slice){status.ptr + 1, status.len - 2}, &shown)) {
        return;
    }
    before = node_enter(NULL);
    if (pg_is_ahead(world->pg, id)) {
        node_leave(before);
        return; /* an engine that reads the tables may show a turn that never reached the standby, because its COMMIT
                   was given up with a warning */
    }
    if (saga_status_is_final(shown) && (!saga->is_ended || saga->end != shown)) {
        world_violate("I7", "a client was shown the end %.*s, which is not in the log", SLICE_ARG(status));
    }
    if (saga_status_is_final(shown) && !saga->is_open_kind) {
        hash = hash_of(json_member(answer, "output"), hash_of(status, UINT64_C(0xcbf29ce484222325)));
        if (saga->seen_hash && saga->seen_hash != hash) {
            world_violate("I7", "the answer about an ended saga has changed");
        }
        saga->seen_hash = hash;
    }
    node_leave(before);
}

/* --- for the driver --- */

size_t check_unfinished(void)
{
    size_t count = 0;

    for (const struct judged_saga *saga = world->check->first; saga; saga = saga->next) {
        count += !saga->is_ended && !saga->is_open_kind;
    }
    for (const struct noted *noted = world->check->noted; noted; noted = noted->next) {
        count += noted->kind == NOTED_START && !map_find(&world->check->sagas, &noted->saga, sizeof(noted->saga));
    }
    return count;
}

bool check_escalation_at(size_t i, uint64_t *number, struct saga_id *saga, struct slice *step, struct op_key *key,
                         bool *of_undo)
{
    for (struct judged_saga *one = world->check->first; one; one = one->next) {
        if (one->escalation && i-- == 0) {
            *number = one->escalation;
            *saga = one->id;
            *step = one->escalation_step;
            *of_undo = one->escalation_of_undo;
            *key = (struct op_key){0};
            for (const struct judged_step *at = one->steps; at; at = at->next) {
                const struct judged_op *op = one->escalation_of_undo ? at->undo : at->forward;

                if (slice_equal(at->name, one->escalation_step) && op) {
                    *key = op->key;
                }
            }
            return true;
        }
    }
    return false;
}

bool check_approval_at(size_t i, uint64_t *number, struct saga_id *saga, struct slice *hash)
{
    for (struct judged_saga *one = world->check->first; one; one = one->next) {
        for (const struct judged_step *step = one->is_ended ? NULL : one->steps; step; step = step->next) {
            if (step->approval && i-- == 0) {
                *number = step->approval;
                *saga = one->id;
                *hash = step->approval_hash;
                return true;
            }
        }
    }
    return false;
}

/* --- the end --- */

static void judge_noted(const struct noted *noted)
{
    const struct judged_saga *saga = map_find(&world->check->sagas, &noted->saga, sizeof(noted->saga));
    char text[UUID_TEXT_BYTES];

    uuid_text(&noted->saga.uuid, text);
    switch (noted->kind) {
    case NOTED_START:
        if (!saga) {
            world_violate("I7", "saga %s was acknowledged, and is not in the log", text);
        }
        break;
    case NOTED_SIGNAL: {
        uint64_t place = check_place_of_signal(noted->saga, noted->name);

        if (saga && !saga->is_failing && !map_find(&world->check->signals, &place, sizeof(place))) {
            world_violate("I7", "signal %.*s to saga %s was acknowledged, and is not in the log",
                          SLICE_ARG(noted->name), text);
        }
        break;
    }
    case NOTED_DECISION:
    case NOTED_RESOLUTION:
        if (!map_find(&world->check->decisions, &noted->number, sizeof(noted->number))) {
            world_violate("I7", "a person's word about %s %llu was acknowledged, and is not in the log",
                          noted->kind == NOTED_DECISION ? "approval" : "escalation", (unsigned long long)noted->number);
        }
        break;
    }
}

static void judge_end(const struct judged_saga *saga)
{
    char text[UUID_TEXT_BYTES];

    uuid_text(&saga->id.uuid, text);
    if (!saga->is_ended && !saga->is_open_kind && !saga->escalation) {
        world_violate("I6", "saga %s (%.*s) neither ended nor waits for a person", text, SLICE_ARG(saga->name));
    }
    for (const struct judged_op *op = saga->ops; op; op = op->next) {
        if (!pg_knows_key(world->pg, op->key, saga->id)) {
            world_violate("I7", "the operation of %.*s of saga %s is not found by its key", SLICE_ARG(op->step->name),
                          text);
        }
        if (saga->is_ended && op->state == JUDGED_FAILED && op->surely_failed && op->effects > op->effects_ruled_out &&
            !op_is_class(op, "read")) {
            world_violate("I11", "%.*s of saga %s took effect, and counts as failed", SLICE_ARG(op->step->name), text);
        }
    }
}

void check_end(void)
{
    if (world->check->may_lose) {
        return;
    }
    for (const struct noted *noted = world->check->noted; noted; noted = noted->next) {
        judge_noted(noted);
    }
    for (const struct judged_saga *saga = world->check->first; saga; saga = saga->next) {
        judge_end(saga);
    }
    check_bulk_end();
    check_schedule_end();
}
