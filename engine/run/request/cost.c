/*
 * A person says what an operation cost, where that could not be computed. The log has it first; then the budgets of the
 * settings are told, which know nothing of logs. Both take a repeat for what it is: who got no answer says it again.
 *
 * After the end of a saga nothing enters its log. Budgets of the settings may wait all the same, and are told; who said
 * it stands in a row of its own (cases.c).
 */
#include "run/request/calling.h"
#include "run/saga/cases.h"
#include "store/guard.h"

static void on_priced(struct store_read *read)
{
    struct work *work = read->context;

    if (read->code != ERR_OK) {
        work_fail(work, read->code, "the cost is in the log, but the budgets of the settings have not heard of it",
                  "say it again");
    } else {
        query_operation(work, &work->mail.input.cost.key);
    }
}

static void on_noted(void *context, enum err_code code)
{
    struct work *work = context;

    if (code != ERR_OK) {
        work_fail(work, code, "the budgets go on with this amount, but who said it could not be written", NULL);
    } else {
        query_operation(work, &work->mail.input.cost.key);
    }
}

static void on_priced_late(struct store_read *read)
{
    struct work *work = read->context;
    const struct guard_price *price = container_of(read, struct guard_price, read);
    struct shard *shard = &work->engine->shards[saga_id_shard(work->saga)];
    const struct saga_input *input = &work->mail.input;
    const struct late_cost cost = {.saga = work->saga,
                                   .namespace = work->namespace,
                                   .tool = price->tool,
                                   .actor = input->cost.actor,
                                   .note = input->cost.note,
                                   .key = input->cost.key,
                                   .micros = input->cost.micros};

    if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
    } else if (!price->booked) {
        work_fail(work, ERR_ENDED, "the saga has ended, and no budget waits for this amount", NULL);
    } else {
        case_cost(shard, &cost, on_noted, work);
    }
}

static void tell_budgets(struct work *work, struct slice tool, void (*done)(struct store_read *read))
{
    struct guard_price *price = arena_alloc(&work->arena, sizeof(*price));

    *price = (struct guard_price){.read = {.arena = &work->arena, .done = done, .context = work},
                                  .namespace = work->namespace,
                                  .tool = arena_slice(&work->arena, tool),
                                  .operation = work->mail.input.cost.key.uuid,
                                  .cost_micros = work->mail.input.cost.micros};
    store_guard_price(work->engine->store, price);
}

static void on_said(struct mail *mail, enum err_code code, const struct err *err)
{
    struct work *work = container_of(mail, struct work, mail);
    const struct live *live = mail->live;
    enum direction direction = DIRECTION_DO;

    if (code == ERR_ENDED && live && !live->dropped) {
        uint32_t step = saga_find_key(&live->saga, &mail->input.cost.key, &direction);

        CHECK(step != STEP_NONE); /* else that would have been the answer */
        tell_budgets(work, saga_tool(&live->saga, step, direction)->name, on_priced_late);
    } else if (code != ERR_OK) {
        if (!route_again(work, code, inbox_cost)) {
            work_done(work, code, err);
        }
    } else if (live->dropped) { /* it has not been applied here */
        work_fail(work, ERR_FENCED, "it is in the log, but another engine took the saga over in this moment",
                  "say it again");
    } else {
        uint32_t step = saga_find_key(&live->saga, &mail->input.cost.key, &direction);

        CHECK(step != STEP_NONE); /* else it would not have been taken */
        tell_budgets(work, saga_tool(&live->saga, step, direction)->name, on_priced);
    }
}

static void on_operation(struct store_read *read)
{
    struct work *work = read->context;

    if (read->code == ERR_NOT_FOUND) {
        work_fail(work, ERR_NOT_FOUND, "there is no operation with this key", "`sagactl operations` lists them");
    } else if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
    } else {
        work->saga = work->store.operation.id;
        route_send(work, inbox_cost);
    }
}

static void cost_begin(struct work *work)
{
    const struct engine_request *request = work->request;

    route_prepare(work, (struct saga_id){0}, 0);
    work->mail.input = (struct saga_input){.type = SAGA_INPUT_COST,
                                           .cost = {.key = request->in.cost.key,
                                                    .micros = request->in.cost.micros,
                                                    .actor = work->actor,
                                                    .note = arena_slice(&work->arena, request->in.cost.note)}};
    work->mail.done = on_said;
    work->store.operation =
        (struct find_operation){.read = {.arena = &work->arena, .done = on_operation, .context = work},
                                .key = request->in.cost.key,
                                .namespace = work->namespace};
    store_find_operation(work->engine->store, &work->store.operation);
}

void engine_say_cost(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (!work_refused(work)) {
        cost_begin(work);
    }
}

void cost_deliver(struct engine *engine, struct engine_request *request, const struct uuid *inbox_id)
{
    struct work *work = work_of_delivery(engine, request, inbox_id);

    if (work) {
        cost_begin(work);
    }
}
