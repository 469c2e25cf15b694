/*
 * A person has undone by hand what stood after the end of a saga, or has found that what might stand never took effect:
 * its debt is settled. Nothing enters the log of a saga that has ended, so a settlement is a row beside it, and the
 * status of the saga stays. The first who settles a debt holds; whoever says the same again gets the same answer.
 *
 * An open debt keeps its saga. With the last one its retention begins.
 */
#include "base/json.h"
#include "run/request/act.h"
#include "run/request/calling.h"
#include "run/saga/live.h"
#include "run/saga/retention.h"
#include "store/cases.h"

struct settling { /* lies in the arena of its work */
    struct work *work;
    struct debt_settle put;
    struct slice operation; /* JSON, as the answer shows it */
};

static struct slice verdict_of(const struct saga_input *input)
{
    return slice_of(case_verdict_name(input->verdict.undone ? CASE_UNDONE : CASE_NOT_HAPPENED));
}

/* A settlement without a verdict was written when `undone` was the only one. */
static bool says_the_same(struct work *work, struct slice settled)
{
    struct slice as = json_member(settled, "as");

    return slice_equal(as.ptr ? json_string(as, &work->arena) : slice_of(case_verdict_name(CASE_UNDONE)),
                       verdict_of(&work->mail.input)) &&
           slice_equal(json_string(json_member(settled, "actor"), &work->arena), work->actor) &&
           slice_equal(json_string(json_member(settled, "note"), &work->arena), work->mail.input.verdict.note);
}

static void on_settled(struct store_read *read)
{
    struct settling *settling = read->context;
    struct work *work = settling->work;

    if (read->code == ERR_NOT_FOUND) {
        work_fail(work, ERR_NOT_FOUND, "the saga has been removed", NULL);
        return;
    }
    if (work_read_failed(work, read)) {
        return;
    }
    if (!says_the_same(work, settling->put.body)) {
        work_fail(work, ERR_DECIDED, "this debt has been settled already",
                  "`sagactl debts --settled true` shows by whom");
        return;
    }
    if (settling->put.forget_ms > 0) {
        retention_due(work->engine, settling->put.forget_ms);
    }
    buffer_put_slice(&work->out, (struct slice){settling->operation.ptr, settling->operation.len - 1});
    buffer_printf(&work->out, ",\"settled\":%.*s}", SLICE_ARG(settling->put.body));
    work_done(work, ERR_OK, NULL);
}

static struct slice operation_text(struct work *work, const struct saga *saga, uint32_t step)
{
    struct buffer text;
    struct slice operation;

    buffer_init(&text, work->out.bytes_max);
    saga_write_operation_at(saga, step, DIRECTION_DO, loop_wall_ms(work->engine->loop), &text);
    work_mask(work, saga, &text, 0);
    operation = arena_slice(&work->arena, buffer_slice(&text));
    buffer_fini(&text);
    return operation;
}

static struct slice settlement(struct work *work)
{
    struct slice signature = work_signature(work, work->mail.input.verdict.note);

    return arena_printf(&work->arena, "{\"as\":\"%.*s\",%.*s", SLICE_ARG(verdict_of(&work->mail.input)),
                        (int)signature.len - 1, signature.ptr + 1);
}

static void settle(struct work *work, const struct saga *saga, uint32_t step)
{
    int64_t retention_ms = retention_of(work->engine, saga);
    struct settling *settling = arena_alloc(&work->arena, sizeof(*settling));

    if (work->act) {
        work->act->saga = work->saga;
        work->act->saga_name = saga->definition->name;
        work->act->business_id = saga->business_id;
        work->act->tool = saga_tool(saga, step, DIRECTION_DO)->name;
    }
    settling->work = work;
    settling->operation = operation_text(work, saga, step);
    settling->put =
        (struct debt_settle){.read = {.arena = &work->arena, .done = on_settled, .context = settling},
                             .saga = work->saga,
                             .namespace = work->namespace,
                             .key = saga->steps[step].forward.key,
                             .body = settlement(work),
                             .act = act_of_work(work),
                             .debt_count = saga_debt_count(saga),
                             .forget_ms = retention_ms > 0 ? loop_wall_ms(work->engine->loop) + retention_ms : 0};
    store_debt_settle(work->engine->store, &settling->put);
}

bool debt_ended(struct work *work)
{
    const struct saga_input *input = &work->mail.input;
    const struct live *live = work->mail.live;
    enum direction direction = DIRECTION_DO;
    uint32_t step;

    if (!live || live->dropped || input->verdict.action != OPERATOR_RESOLVE || input->verdict.happened ||
        input->verdict.again) {
        return false;
    }
    step = saga_find_key(&live->saga, &input->verdict.key, &direction);
    if (step == STEP_NONE || !saga_has_debt(&live->saga, step)) {
        return false;
    }
    if (!input->verdict.undone && !saga_debt_in_doubt(&live->saga, step)) {
        work_fail(work, ERR_CONFLICT, "it took effect for certain: its debt is settled as undone only",
                  "Undo it by hand, then resolve it as undone.");
        return true;
    }
    settle(work, &live->saga, step);
    return true;
}
