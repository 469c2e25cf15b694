/* What verbs of people do besides: an abort says why it comes too late, and a verdict renders the arguments of an
 * undo. */
#include "run/request/calling.h"
#include "run/saga/cases.h"

#include "base/json.h"
#include "run/exchange/exchange.h"
#include "run/saga/live.h"
#include "run/saga/summon.h"
#include "run/shard/shard.h"

/* --- abort --- */

/* A saga that is not in memory has ended, or rests, or is at another engine. */
static void on_abort_read(struct store_read *read)
{
    struct work *work = read->context;

    if (read->code == ERR_NOT_FOUND) {
        work_no_saga(work);
    } else if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
    } else if (work->read.row.status == SAGA_COMPLETED) {
        work_fail(work, ERR_PAST_RETURN, "the saga has completed: nothing of it can be undone any more", NULL);
    } else if (saga_status_is_final(work->read.row.status)) {
        work_fail(work, ERR_ENDED, "the saga has ended", "GET it to see how");
    } else {
        route_send(work);
    }
}

/* The saga of another namespace is looked for like one that is not there, so that nothing tells the two apart. */
void abort_send(struct work *work)
{
    struct engine *engine = work->engine;
    const struct live *live = live_find(engine, work->saga);

    if (live && live->saga.seq > 0 && slice_equal(live->saga.namespace, work->namespace)) {
        live_deliver(engine, work->saga, work->namespace, &work->mail);
        return;
    }
    work->read = (struct read_saga){.read = {.arena = &work->arena, .done = on_abort_read, .context = work},
                                    .id = work->saga,
                                    .namespace = work->namespace,
                                    .turns_max = 1};
    store_read_saga(engine->store, &work->read);
}

/* --- verdicts --- */

static void keep_undo_args(struct work *work, const struct rendering_item *item)
{
    struct saga_input *input = &work->mail.input;

    if (item->code == ERR_OK) {
        input->verdict.undo_args = item->value;
    } else {
        input->verdict.undo_error = item->error;
    }
}

static void on_undo_args(struct rendering *rendering)
{
    struct work *work = rendering->context_of_owner;

    keep_undo_args(work, &rendering->items[0]);
    route_send(work);
}

/* Copies what the context shows, because the saga may leave memory while a program runs. */
static void keep_context(struct expression_context *context, struct arena *arena)
{
    struct expression_step *steps = arena_array(arena, context->step_count + 1, sizeof(*steps));

    for (size_t i = 0; i < context->step_count; i++) {
        steps[i] = (struct expression_step){.id = arena_slice(arena, context->steps[i].id),
                                            .lost = arena_slice(arena, context->steps[i].lost),
                                            .result = arena_slice(arena, context->steps[i].result),
                                            .error = arena_slice(arena, context->steps[i].error),
                                            .status = arena_slice(arena, context->steps[i].status)};
    }
    context->steps = steps;
    context->input = arena_slice(arena, context->input);
    context->item = arena_slice(arena, context->item);
    context->saga_id = arena_slice(arena, context->saga_id);
    context->saga_name = arena_slice(arena, context->saga_name);
}

/* Renders the arguments of an undo. A person says that the call happened, so they are rendered from the given result,
 * as after a call. */
static bool render_undo_args(struct work *work, const struct saga *saga)
{
    struct saga_input *input = &work->mail.input;

    uint32_t step = saga->escalation.step;
    enum direction direction = saga->escalation.direction;

    if (!uuid_is_nil(&input->verdict.key.uuid)) {
        step = saga_find_key(saga, &input->verdict.key, &direction);
    } else if (saga->escalation.number != input->verdict.escalation) {
        return true;
    }
    if (step == STEP_NONE || direction != DIRECTION_DO) {
        return true;
    }
    const struct compensator *compensator = &saga->definition->steps[step].compensate;
    const struct operation *forward = &saga->steps[step].forward;

    if (!compensator->is_set) {
        return true;
    }
    if (!template_is_set(&compensator->with)) {
        input->verdict.undo_args = SLICE("{}");
        return true;
    }
    struct rendering *rendering = arena_alloc(&work->arena, sizeof(*rendering));
    char key[UUID_TEXT_BYTES];

    uuid_text(&forward->key.uuid, key);
    rendering->count = 1;
    rendering->items[0].template = arena_dup(&work->arena, &compensator->with, sizeof(compensator->with));
    rendering->arena = &work->arena;
    rendering->context = saga_expression_context(saga, step, &work->arena);
    keep_context(&rendering->context, &work->arena);
    rendering->context.args = arena_slice(&work->arena, forward->args);
    rendering->context.key = arena_slice(&work->arena, slice_of(key));
    rendering->context.result = input->verdict.result.ptr ? input->verdict.result : SLICE("null");
    rendering->context_of_owner = work;
    rendering->done = on_undo_args;
    if (!rendering_start(work->engine->loop, rendering)) {
        return false;
    }
    keep_undo_args(work, &rendering->items[0]);
    return true;
}

/* The saga rests, and its log has what the undo needs. Until the verdict reaches the saga, it has not moved. */
static void on_resting_read(struct store_read *read)
{
    struct work *work = read->context;

    if (work_read_failed(work, read)) {
        return;
    }
    const struct saga *saga = work_fold(work);

    if (saga && render_undo_args(work, saga)) {
        route_send(work);
    }
}

/* Are the undo's arguments needed? Only the owner needs them, and only when an effect may have to be undone one day. */
static bool needs_undo_args(const struct work *work)
{
    const struct saga_input *input = &work->mail.input;
    uint32_t shard = saga_id_shard(work->saga);

    return input->verdict.action == OPERATOR_RESOLVE && input->verdict.happened && shard < SHARD_COUNT &&
           work->engine->shards[shard].state == SHARD_OWNED;
}

/* The saga is known. What its undo may need is made first. */
void verdict_send(struct work *work)
{
    const struct live *live = live_find(work->engine, work->saga);

    if (!needs_undo_args(work)) {
        route_send(work);
    } else if (!live) {
        work->read = (struct read_saga){.read = {.arena = &work->reading, .done = on_resting_read, .context = work},
                                        .id = work->saga,
                                        .namespace = work->namespace};
        store_read_saga(work->engine->store, &work->read);
    } else if (render_undo_args(work, &live->saga)) {
        route_send(work);
    }
}

/* Sends an answer about a case to the owner of the shard of its number, wherever its saga is. Returns false when the
 * question is no such case. */
bool case_takes(struct work *work, const struct question_row *row)
{
    uint32_t shard = (uint32_t)(row->number % SHARD_COUNT);

    if (work->verb->on != ON_ESCALATION || !question_is_case(row)) {
        return false;
    }
    if (work->engine->shards[shard].state == SHARD_OWNED || work->mail.from_inbox) {
        case_resolve(work, row);
    } else if (engine_is_draining(work->engine) || !work->request) {
        work_fail(work, ERR_STOPPING, "this engine is stopping", "ask another engine, or again in a moment");
    } else {
        errand_change(work, shard);
    }
    return true;
}

/* --- bypass --- */

static void write_bypass(const struct saga *saga, uint32_t step, struct buffer *out)
{
    const struct bypass *bypass = saga->steps[step].bypass;
    char key[UUID_TEXT_BYTES], fingerprint[65], at[INSTANT_TEXT_BYTES];
    struct json_writer w;

    CHECK(bypass); /* folded in the turn that has just ended; only a later turn can use it up */
    uuid_text(&saga->steps[step].forward.key.uuid, key);
    digest_hex(&bypass->fingerprint, fingerprint);
    instant_text(bypass->expires_ms, at);
    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "key", key);
    json_write_text(&w, "fingerprint", fingerprint);
    json_write_slice(&w, "reason", bypass->note);
    json_write_slice(&w, "actor", bypass->actor);
    json_write_text(&w, "expires_at", at);
    json_object_end(&w);
}

void bypass_answer(struct work *work)
{
    const struct live *live = work->mail.live;
    enum direction direction = DIRECTION_DO;

    if (live->dropped) { /* it was not applied here */
        work_fail(work, ERR_FENCED, "it is signed, but another engine took the saga over in this moment",
                  "GET the operation to see it");
    } else {
        uint32_t step = saga_find_key(&live->saga, &work->mail.input.bypass.key, &direction);

        CHECK(step != STEP_NONE && direction == DIRECTION_DO); /* otherwise it would not have been signed */
        write_bypass(&live->saga, step, &work->out);
        work_mask(work, &live->saga, &work->out, 0);
        work_done(work, ERR_OK, NULL);
    }
}
