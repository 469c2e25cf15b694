/*
 * A person enters the cost of an operation that could not be computed. The log has it first. Then the budgets of the
 * settings are told, which know nothing of logs. Both recognise a repeat: a person who got no answer enters it again.
 *
 * After the end of a saga nothing is added to its log. Budgets of the settings may still wait for the cost, and are
 * told. Then a row of its own says who entered it (cases.c).
 */
#include "run/request/act.h"
#include "run/request/calling.h"
#include "run/saga/cases.h"
#include "run/saga/live.h"
#include "run/shard/shard.h"
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
    if (work->act) {
        work->act->saga = work->saga;
        work->act->tool = price->tool;
    }
    const struct late_cost cost = {.saga = work->saga,
                                   .namespace = work->namespace,
                                   .tool = price->tool,
                                   .actor = input->cost.actor,
                                   .note = input->cost.note,
                                   .key = input->cost.key,
                                   .micros = input->cost.micros,
                                   .act = act_of_work(work)};

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

static struct slice tool_of(const struct work *work)
{
    const struct saga *saga = &work->mail.live->saga;
    enum direction direction = DIRECTION_DO;
    uint32_t step = saga_find_key(saga, &work->mail.input.cost.key, &direction);

    CHECK(step != STEP_NONE); /* otherwise that would have been the answer */
    return saga_tool(saga, step, direction)->name;
}

bool cost_ended(struct work *work)
{
    const struct live *live = work->mail.live;

    if (!live || live->dropped) {
        return false;
    }
    tell_budgets(work, tool_of(work), on_priced_late);
    return true;
}

void cost_answer(struct work *work)
{
    if (work->mail.live->dropped) { /* it was not applied here */
        work_fail(work, ERR_FENCED, "it is in the log, but another engine took the saga over in this moment",
                  "say it again");
    } else {
        tell_budgets(work, tool_of(work), on_priced);
    }
}
