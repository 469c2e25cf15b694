/* What people do to a saga: abort it, resolve its escalation. Durable before it is acknowledged, first one wins. */
#include "run/request/calling.h"
#include "run/saga/cases.h"

#include <stdio.h>

#include "base/json.h"

void answer_saga(struct work *work)
{
    const struct live *live = live_find(work->engine, work->saga);

    if (live) {
        saga_write_json(&live->saga, &work->out);
        work_done(work, ERR_OK, NULL);
    } else {
        query_saga_from_store(work);
    }
}

static void on_aborted(struct mail *mail, enum err_code code, const struct err *err)
{
    struct work *work = container_of(mail, struct work, mail);

    if (code == ERR_OK) {
        /* The turn is applied, and this saga may leave memory right after: answer from what is here now. */
        answer_saga(work);
    } else if (!route_again(work, code, inbox_abort)) {
        work_done(work, code, err);
    }
}

/* One that is not in memory has ended, or rests, or another engine has it. */
static void on_abort_read(struct store_read *read)
{
    struct work *work = read->context;

    if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
    } else if (work->read.row.status == SAGA_COMPLETED) {
        work_fail(work, ERR_PAST_RETURN, "the saga has completed: nothing of it can be undone any more", NULL);
    } else if (saga_status_is_final(work->read.row.status)) {
        work_fail(work, ERR_ENDED, "the saga has ended", "GET it to see how");
    } else {
        route_send(work, inbox_abort);
    }
}

static void abort_begin(struct work *work)
{
    struct engine *engine = work->engine;
    const struct engine_request *request = work->request;

    route_prepare(work, request->in.abort.id, 0);
    work->mail.input =
        (struct saga_input){.type = SAGA_INPUT_ABORT,
                            .abort = {.actor = work->actor, .note = arena_slice(&work->arena, request->in.abort.note)}};
    work->mail.done = on_aborted;
    const struct live *live = live_find(engine, work->saga);

    if (live && live->saga.seq > 0) {
        live_deliver(engine, work->saga, work->namespace, &work->mail);
        return;
    }
    work->read = (struct read_saga){.read = {.arena = &work->arena, .done = on_abort_read, .context = work},
                                    .id = work->saga,
                                    .namespace = work->namespace,
                                    .turns_max = 1};
    store_read_saga(engine->store, &work->read);
}

void engine_abort_saga(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (!work_refused(work)) {
        abort_begin(work);
    }
}

void abort_deliver(struct engine *engine, struct engine_request *request, const struct uuid *inbox_id)
{
    struct work *work = work_of_delivery(engine, request, inbox_id);

    if (work) {
        abort_begin(work);
    }
}

/* --- resolve --- */

/* What is asked for by its number is there, or it is ERR_NOT_FOUND. */
static void escalation_missing(struct work *work, const struct store_read *read)
{
    if (read->code == ERR_NOT_FOUND) {
        work_fail(work, ERR_NOT_FOUND, "there is no escalation with this number",
                  "`sagactl escalations` lists the open ones");
    } else {
        work_done(work, read->code, &read->err);
    }
}

static void on_escalation_again(struct store_read *read)
{
    struct work *work = read->context;

    if (read->code != ERR_OK) {
        escalation_missing(work, read);
    } else {
        work_show_question(work, &work->store.escalations.rows[0]);
    }
}

static void read_escalation(struct work *work, uint64_t number, void (*done)(struct store_read *read))
{
    work->store.escalations = (struct list_questions){.read = {.arena = &work->arena, .done = done, .context = work},
                                                      .kind = QUESTION_ESCALATION,
                                                      .namespace = work->namespace,
                                                      .number = number,
                                                      .limit = 1};
    store_list_questions(work->engine->store, &work->store.escalations);
}

static void on_resolved(struct mail *mail, enum err_code code, const struct err *err)
{
    struct work *work = container_of(mail, struct work, mail);

    bool by_key = !uuid_is_nil(&mail->input.operator.key.uuid);

    if (code == ERR_OK && by_key) {
        query_operation(work, &mail->input.operator.key);
    } else if (code == ERR_OK) {
        read_escalation(work, mail->input.operator.escalation, on_escalation_again);
    } else if (!route_again(work, code, inbox_resolve)) {
        work_done(work, code == ERR_ENDED && !by_key ? ERR_DECIDED : code, err);
    }
}

static void send_resolution(struct work *work)
{
    work->mail.done = on_resolved;
    route_send(work, inbox_resolve);
}

static void keep_undo_args(struct work *work, const struct eval_item *item)
{
    struct saga_input *input = &work->mail.input;

    if (item->code == ERR_OK) {
        input->operator.undo_args = item->value;
    } else {
        input->operator.undo_error = item->error;
    }
}

static void on_undo_args(struct eval *eval)
{
    struct work *work = eval->context_of_owner;

    keep_undo_args(work, &eval->items[0]);
    send_resolution(work);
}

/* The saga may leave memory while a program runs: what the context shows of it is kept. */
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

/* An operator says that it happened: what an undo will need is rendered from the result given, as after a call. */
static bool render_undo_args(struct work *work, const struct saga *saga)
{
    struct saga_input *input = &work->mail.input;

    uint32_t step = saga->escalation.step;
    enum direction direction = saga->escalation.direction;

    if (!uuid_is_nil(&input->operator.key.uuid)) {
        step = saga_find_key(saga, &input->operator.key, &direction);
    } else if (saga->escalation.number != input->operator.escalation) {
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
        input->operator.undo_args = SLICE("{}");
        return true;
    }
    struct eval *eval = arena_alloc(&work->arena, sizeof(*eval));
    char key[UUID_TEXT_BYTES];

    uuid_text(&forward->key.uuid, key);
    eval->count = 1;
    eval->items[0].template = arena_dup(&work->arena, &compensator->with, sizeof(compensator->with));
    eval->arena = &work->arena;
    eval->context = saga_expression_context(saga, step, &work->arena);
    keep_context(&eval->context, &work->arena);
    eval->context.args = arena_slice(&work->arena, forward->args);
    eval->context.key = arena_slice(&work->arena, slice_of(key));
    eval->context.result = input->operator.result.ptr ? input->operator.result : SLICE("null");
    eval->context_of_owner = work;
    eval->done = on_undo_args;
    if (!eval_start(work->engine->loop, eval)) {
        return false;
    }
    keep_undo_args(work, &eval->items[0]);
    return true;
}

/* It rests: what the undo needs stands in its log. Until the person's word reaches it, it has not moved. */
static void on_resting_read(struct store_read *read)
{
    struct work *work = read->context;
    struct err err = {0};

    if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
        return;
    }
    const struct saga *saga = fold_turns(work->engine, work->saga, work->namespace, work->read.turns,
                                         work->read.turn_count, &work->reading, &err);

    if (!saga) {
        work_done(work, ERR_CORRUPT, &err);
    } else if (render_undo_args(work, saga)) {
        send_resolution(work);
    }
}

/* Only the owner needs them, and only where something happened that has to be undone one day. */
static bool needs_undo_args(const struct work *work)
{
    const struct saga_input *input = &work->mail.input;
    uint32_t shard = saga_id_shard(work->saga);

    return input->operator.action == OPERATOR_RESOLVE && input->operator.happened && shard<SHARD_COUNT &&
        work->engine->shards[shard]
            .state == SHARD_OWNED;
}

/* The saga is known: what its undo may need is made first. */
static void resolve_in_saga(struct work *work)
{
    const struct live *live = live_find(work->engine, work->saga);

    if (!needs_undo_args(work)) {
        send_resolution(work);
    } else if (!live) {
        work->read = (struct read_saga){.read = {.arena = &work->reading, .done = on_resting_read, .context = work},
                                        .id = work->saga,
                                        .namespace = work->namespace};
        store_read_saga(work->engine->store, &work->read);
    } else if (render_undo_args(work, &live->saga)) {
        send_resolution(work);
    }
}

/* The owner of the shard of its number has it, wherever its saga lies. */
static void resolve_case(struct work *work, const struct question_row *row)
{
    uint32_t shard = (uint32_t)(row->number % SHARD_COUNT);

    if (work->engine->shards[shard].state == SHARD_OWNED || work->mail.from_inbox) {
        case_resolve(work, row);
    } else if (work->engine->draining || !work->request) {
        work_fail(work, ERR_STOPPING, "this engine is stopping", "ask another engine, or again in a moment");
    } else {
        inbox_resolve(work, shard);
    }
}

static void on_escalation_found(struct store_read *read)
{
    struct work *work = read->context;

    if (read->code != ERR_OK) {
        escalation_missing(work, read);
        return;
    }
    const struct question_row *row = &work->store.escalations.rows[0];

    if (!row->open) {
        work_fail(work, ERR_DECIDED, "this escalation has been resolved already",
                  "`sagactl escalations N` shows by whom and how");
        return;
    }
    work->saga = row->saga;
    if (question_is_case(row)) {
        resolve_case(work, row);
    } else {
        resolve_in_saga(work);
    }
}

static void on_operation_found(struct store_read *read)
{
    struct work *work = read->context;

    if (read->code == ERR_NOT_FOUND) {
        work_fail(work, ERR_NOT_FOUND, "there is no operation with this key", "`sagactl operations` lists them");
    } else if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
    } else {
        work->saga = work->store.operation.id;
        resolve_in_saga(work);
    }
}

static void resolve_begin(struct work *work)
{
    struct engine *engine = work->engine;
    const struct engine_request *request = work->request;

    if (request->in.resolve.result.len > engine->options.payload_bytes_max ||
        request->in.resolve.args.len > engine->options.payload_bytes_max) {
        work_fail(work, ERR_TOO_LARGE, "the result or the arguments are larger than allowed", NULL);
        return;
    }
    bool by_key = !uuid_is_nil(&request->in.resolve.key.uuid);

    if (request->in.resolve.number == 0 && !by_key) { /* that would ask for all of them */
        work_fail(work, ERR_NOT_FOUND, "there is no escalation with this number", NULL);
        return;
    }
    route_prepare(work, (struct saga_id){0}, 0);
    work->mail.input = (struct saga_input){.type = SAGA_INPUT_OPERATOR,
                                           .operator= {.action = request->in.resolve.action,
                                                       .key = request->in.resolve.key,
                                                       .undone = request->in.resolve.undone,
                                                       .again = request->in.resolve.again,
                                                       .escalation = request->in.resolve.number,
                                                       .happened = request->in.resolve.happened,
                                                       .accept_double = request->in.resolve.accept_double,
                                                       .result = arena_slice(&work->arena, request->in.resolve.result),
                                                       .args = arena_slice(&work->arena, request->in.resolve.args),
                                                       .actor = work->actor,
                                                       .note = arena_slice(&work->arena, request->in.resolve.note)} };
    if (!by_key) {
        read_escalation(work, request->in.resolve.number, on_escalation_found);
        return;
    }
    work->store.operation =
        (struct find_operation){.read = {.arena = &work->arena, .done = on_operation_found, .context = work},
                                .key = request->in.resolve.key,
                                .namespace = work->namespace};
    store_find_operation(engine->store, &work->store.operation);
}

void engine_resolve(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (!work_refused(work)) {
        resolve_begin(work);
    }
}

void resolve_deliver(struct engine *engine, struct engine_request *request, const struct uuid *inbox_id)
{
    struct work *work = work_of_delivery(engine, request, inbox_id);

    if (work) {
        resolve_begin(work);
    }
}
