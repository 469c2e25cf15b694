/* See check.h. Judges each request that reaches a tool, against the log as it is committed at that instant. */
#include "tests/sim/check_state.h"

static uint64_t hash_of(struct slice text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < text.len; i++) {
        hash = (hash ^ (uint8_t)text.ptr[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static struct judged_op *op_of(const struct tool_entry *entry)
{
    struct judged_op *op = entry->has_key ? check_op_of(entry->key) : NULL;
    char key[UUID_TEXT_BYTES];

    if (world->check->may_lose && !op) {
        return NULL; /* the primary that had the record is gone with all that it had not passed on */
    }
    if (!op || op->intents == 0) {
        uuid_text(&entry->key.uuid, key);
        world_violate("I2", "%.*s is called under %s, of which no intent is committed", SLICE_ARG(entry->tool), key);
    }
    return op;
}

/* Judges the sender. Sends stop before a lease ends, so no engine sends when another one has taken its shard. */
static void judge_sender(const struct judged_op *op, const struct tool_entry *entry)
{
    int64_t since_us = 0, epoch = pg_epoch(world->pg, saga_id_shard(op->saga->id), &since_us);

    if (!world->check->clocks_jump && !world->check->may_lose && epoch > op->epoch && entry->sent_us > since_us) {
        world_violate("I8", "%.*s of epoch %lld is sent although the shard is at epoch %lld", SLICE_ARG(op->step->name),
                      (long long)op->epoch, (long long)epoch);
    }
}

/* Did the request leave before a person said that nothing of this operation happened? */
static bool is_ruled_out(const struct judged_op *op, const struct tool_entry *entry)
{
    return entry->sent_us < op->ruled_out_us;
}

/* Judges a send during a hold. Clocks that step end a hold early or late, and a primary may be gone with what it had
 * not passed on. */
static void judge_held(const struct judged_op *op, const struct tool_entry *entry)
{
    if (!world->check->clocks_jump && !world->check->may_lose &&
        holders_forbid(op->saga->namespace, entry->tool, entry->is_undo, entry->sent_us)) {
        world_violate("I20", "%.*s leaves although it is held", SLICE_ARG(entry->tool));
    }
}

void check_call(const struct tool_entry *entry, struct slice args)
{
    struct judged_op *op;

    if (entry->is_probe || (!entry->has_key && slice_starts_with(entry->tool, "read"))) {
        return;
    }
    op = op_of(entry);
    if (!op) {
        return;
    }
    judge_held(op, entry);
    op->tool = entry->tool;
    op->requests += !is_ruled_out(op, entry);
    judge_sender(op, entry);
    if (op->is_undo != entry->is_undo) {
        world_violate("I3", "%.*s is called with the key of %.*s", SLICE_ARG(entry->tool), SLICE_ARG(op->step->name));
    }
    if (op_is_class(op, "once") && op->requests > 1 && !op->double_accepted) {
        world_violate("I12", "%.*s leaves %u times", SLICE_ARG(op->step->name), op->requests);
    }
    if (op->has_args && op->args_hash != hash_of(args)) {
        world_violate("I2", "%.*s is called with other arguments under the same key", SLICE_ARG(op->step->name));
    }
    op->has_args = true;
    op->args_hash = hash_of(args);
}

void check_effect(const struct tool_entry *entry)
{
    struct judged_op *op = entry->has_key ? check_op_of(entry->key) : NULL;

    if (!op || entry->is_probe) {
        return;
    }
    op->voided |= entry->voided;
    if (!entry->effect) {
        return;
    }
    op->effects++;
    if (op_is_class(op, "read")) {
        return;
    }
    op->effects_ruled_out += is_ruled_out(op, entry);
    if (op->effects - op->effects_ruled_out > 1 && !op->double_accepted) {
        world_violate("I1", "%.*s takes effect %u times under one key", SLICE_ARG(op->step->name), op->effects);
    }
    if (op->surely_failed && op->state == JUDGED_FAILED && !is_ruled_out(op, entry)) {
        world_violate("I11", "%.*s counts as failed for certain, and takes effect now", SLICE_ARG(op->step->name));
    }
    if (!op->is_undo && op->step->undo && op->step->undo->effects > 0 && !op->double_accepted &&
        !op->judged_by_person) {
        world_violate("I4", "%.*s takes effect after its own compensation", SLICE_ARG(op->step->name));
    }
    if (op->saga->is_ended && !op->saga->is_open_kind && op->saga->end == SAGA_COMPENSATED && !op->is_undo &&
        !op->judged_by_person) {
        world_violate("I5", "%.*s takes effect after its saga was compensated", SLICE_ARG(op->step->name));
    }
}
