/* What people do to a saga: abort it, resolve its escalation. Durable before it is acknowledged, first one wins. */
#include "run/calling.h"

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

    if (code != ERR_OK) {
        work_done(work, code, err);
    } else {
        /* The turn is applied, and this saga may leave memory right after: answer from what is here now. */
        answer_saga(work);
    }
}

static bool is_ours(const struct work *work, const struct live *live)
{
    return slice_equal(live->saga.namespace, work->namespace);
}

static void on_abort_read(struct store_read *read)
{
    struct work *work = read->context;

    if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
    } else if (saga_status_is_final(work->read.row.status)) {
        if (work->read.row.status == SAGA_COMPLETED) {
            work_fail(work, ERR_PAST_RETURN, "the saga has completed: nothing of it can be undone any more", NULL);
        } else {
            work_fail(work, ERR_ENDED, "the saga has ended", "GET it to see how");
        }
    } else if (work->mail.from_inbox) {
        live_deliver(work->engine, work->saga, work->namespace,
                     &work->mail); /* it is loaded, or was lost, or cannot be read */
    } else {
        inbox_input(work, "abort");
    }
}

static void abort_begin(struct work *work)
{
    struct engine *engine = work->engine;
    const struct engine_request *request = work->request;

    work->saga = request->in.abort.id;
    work->mail.input = (struct saga_input){.type = SAGA_INPUT_ABORT, .abort = {
        .actor = work->actor, .note = arena_slice(&work->arena, request->in.abort.note)}};
    work->mail.done = on_aborted;
    struct live *live = live_find(engine, work->saga);

    if (live && live->saga.seq > 0) {
        if (is_ours(work, live)) {
            live_send(live, &work->mail);
        } else {
            work_fail(work, ERR_NOT_FOUND, "there is no saga with this id", NULL);
        }
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

struct resolution { /* the escalation as the table has it, before and after */
    struct eval eval;
};

static void on_escalation_again(struct store_read *read)
{
    struct work *work = read->context;

    if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
    } else if (work->store.escalations.count == 0) {
        work_fail(work, ERR_NOT_FOUND, "there is no escalation with this number", NULL);
    } else {
        buffer_put_slice(&work->out, work->store.escalations.rows[0].body);
        work_done(work, ERR_OK, NULL);
    }
}

static void read_escalation(struct work *work, uint64_t number, void (*done)(struct store_read *read))
{
    work->store.escalations = (struct list_escalations){.read = {.arena = &work->arena, .done = done, .context = work},
                                                        .namespace = work->namespace, .number = number, .limit = 1};
    store_list_escalations(work->engine->store, &work->store.escalations);
}

static void on_resolved(struct mail *mail, enum err_code code, const struct err *err)
{
    struct work *work = container_of(mail, struct work, mail);

    if (code != ERR_OK) {
        work_done(work, code == ERR_ENDED ? ERR_DECIDED : code, err);
    } else {
        read_escalation(work, mail->input.operator.escalation, on_escalation_again);
    }
}

static void send_resolution(struct work *work)
{
    struct live *live = live_find(work->engine, work->saga);

    work->mail.done = on_resolved;
    if (live) {
        live_send(live, &work->mail);
    } else if (work->mail.from_inbox) {
        live_deliver(work->engine, work->saga, work->namespace, &work->mail);
    } else {
        inbox_input(work, "resolve");
    }
}

static void on_undo_args(struct eval *eval)
{
    struct resolution *resolution = container_of(eval, struct resolution, eval);
    struct work *work = eval->context_of_owner;
    struct saga_input *input = &work->mail.input;

    if (resolution->eval.items[0].code == ERR_OK) {
        input->operator.undo_args = eval->items[0].value.ptr ? eval->items[0].value : SLICE("{}");
    } else {
        input->operator.undo_error = eval->items[0].error;
    }
    send_resolution(work);
}

/* The saga may leave memory while a program runs: what the context shows of it is kept. */
static void keep_context(struct expression_context *context, struct arena *arena)
{
    struct expression_step *steps = arena_array(arena, context->step_count + 1, sizeof(*steps));

    for (size_t i = 0; i < context->step_count; i++) {
        steps[i] = (struct expression_step){.id = arena_slice(arena, context->steps[i].id),
                                            .result = arena_slice(arena, context->steps[i].result),
                                            .status = arena_slice(arena, context->steps[i].status)};
    }
    context->steps = steps;
    context->input = arena_slice(arena, context->input);
    context->saga_id = arena_slice(arena, context->saga_id);
    context->saga_name = arena_slice(arena, context->saga_name);
}

/* An operator says that it happened: what an undo will need is rendered from the result given, as after a call. */
static bool render_undo_args(struct work *work, const struct live *live)
{
    const struct saga *saga = &live->saga;
    struct saga_input *input = &work->mail.input;

    if (input->operator.action != OPERATOR_RESOLVE || !input->operator.happened ||
        saga->escalation.number != input->
        operator.escalation || saga->escalation.step == STEP_NONE || saga->escalation.direction != DIRECTION_DO) {
        return true;
    }
    const struct compensator *compensator = &saga->definition->steps[saga->escalation.step].compensate;
    const struct operation *forward = &saga->steps[saga->escalation.step].forward;

    if (!compensator->is_set) {
        return true;
    }
    if (!template_is_set(&compensator->with)) {
        input->operator.undo_args = SLICE("{}");
        return true;
    }
    struct resolution *resolution = arena_alloc(&work->arena, sizeof(*resolution));
    struct eval *eval = &resolution->eval;
    char key[UUID_TEXT_BYTES];

    uuid_text(&forward->key.uuid, key);
    eval->count = 1;
    eval->items[0].template = arena_dup(&work->arena, &compensator->with, sizeof(compensator->with));
    eval->arena = &work->arena;
    eval->context = saga_expression_context(saga, &work->arena);
    keep_context(&eval->context, &work->arena);
    eval->context.args = arena_slice(&work->arena, forward->args);
    eval->context.key = arena_slice(&work->arena, slice_of(key));
    eval->context.result = input->operator.result.ptr ? input->operator.result : SLICE("null");
    eval->context_of_owner = work;
    eval->done = on_undo_args;
    if (!eval_start(work->engine->loop, eval)) {
        return false;
    }
    if (eval->items[0].code == ERR_OK) {
        input->operator.undo_args = eval->items[0].value.ptr ? eval->items[0].value : SLICE("{}");
    } else {
        input->operator.undo_error = eval->items[0].error;
    }
    return true;
}

static void on_escalation_found(struct store_read *read)
{
    struct work *work = read->context;

    if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
        return;
    }
    if (work->store.escalations.count == 0) {
        work_fail(work, ERR_NOT_FOUND, "there is no escalation with this number",
                  "`sagactl escalations` lists the open ones");
        return;
    }
    const struct escalation_row *row = &work->store.escalations.rows[0];

    if (!row->open) {
        work_fail(work, ERR_DECIDED, "this escalation has been resolved already", "GET it to see by whom and how");
        return;
    }
    work->saga = row->saga;
    const struct live *live = live_find(work->engine, work->saga);

    if (!live || render_undo_args(work, live)) {
        send_resolution(work);
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
    work->mail.input = (struct saga_input){.type = SAGA_INPUT_OPERATOR,
                                           .operator= {.action = request->in.resolve.action,
                                                       .escalation = request->in.resolve.number,
                                                       .happened = request->in.resolve.happened,
                                                       .accept_double = request->in.resolve.accept_double,
                                                       .result = arena_slice(&work->arena, request->in.resolve.result),
                                                       .args = arena_slice(&work->arena, request->in.resolve.args),
                                                       .actor = work->actor,
                                                       .note = arena_slice(&work->arena, request->in.resolve.note)} };
    read_escalation(work, request->in.resolve.number, on_escalation_found);
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
