/*
 * A client that made a call waits here until its operation is settled or the patience is over. Then only the wait ends,
 * never the operation. Waiting clients are linked to the saga in memory and hold no connection; when the saga leaves
 * memory they look at its log.
 */
#include "run/request/calling.h"

#include <string.h>

#include "base/json.h"
#include "run/saga/fold.h"
#include "run/saga/live.h"
#include "run/saga/observers.h"
#include "run/shard/shard.h"

#define RETRY_AFTER_MS 1000
#define PERSON_RETRY_AFTER_MS 60000
#define LOOK_EVERY_MS 250

/* --- what came of it --- */

enum call_standing { STANDS_GOING, STANDS_PROBING, STANDS_UNKNOWN, STANDS_AWAITING, STANDS_FAILED, STANDS_COMPLETED };

static enum call_standing standing_of(const struct saga *saga, uint32_t step)
{
    bool awaits =
        saga->escalation.number != 0 && saga->escalation.step == step && saga->escalation.direction == DIRECTION_DO;

    switch (saga->steps[step].forward.state) {
    case OP_NONE:
    case OP_PENDING:
    case OP_IN_FLIGHT:
    case OP_RETRYING:
    case OP_OPEN:
    case OP_WAITING:
        return awaits ? STANDS_AWAITING : STANDS_GOING;
    case OP_PROBING:
        return awaits ? STANDS_AWAITING : saga->steps[step].forward.accepted ? STANDS_GOING : STANDS_PROBING;
    case OP_UNKNOWN:
        return awaits ? STANDS_AWAITING : STANDS_UNKNOWN;
    case OP_COMPLETED:
        return STANDS_COMPLETED;
    case OP_FAILED:
    case OP_SKIPPED:
        return STANDS_FAILED;
    case OP_STATE_COUNT:
        break;
    }
    UNREACHABLE();
}

static const struct {
    const char *error;
    enum err_code code;
} refused_by_guards[] = {
    {"rate-limited", ERR_RATE},       {"concurrency-limited", ERR_RATE}, {"breaker-open", ERR_BREAKER},
    {"budget-exhausted", ERR_BUDGET}, {"blocked", ERR_BLOCKED},
};

static enum err_code code_of_failure(struct slice error)
{
    for (size_t i = 0; i < COUNT_OF(refused_by_guards); i++) {
        if (slice_is(error, refused_by_guards[i].error)) {
            return refused_by_guards[i].code;
        }
    }
    return ERR_TOOL_FAILED;
}

/* Marks the record in this answer as a duplicate. It was written as false, and true is a byte shorter. */
static void mark_duplicate(struct buffer *out)
{
    struct slice value = json_member(buffer_slice(out), "duplicate");
    size_t at = (size_t)(value.ptr - out->ptr);

    CHECK(slice_is(value, "false"));
    memmove(out->ptr + at + 4, out->ptr + at + 5, out->len - at - 5);
    memcpy(out->ptr + at, "true", 4);
    out->len--;
}

/* May the client see the values? A client that asked with other arguments learns where they differ, but not the values
 * of another. */
static bool may_see_values(const struct work *work)
{
    return work->mail.answer.code != ERR_DRIFT;
}

/* Writes the operation into the answer; `step` is STEP_NONE when there is none. */
void caller_give_operation(struct work *work, const struct saga *saga, uint32_t step)
{
    struct engine_request *request = work->request;
    char key[UUID_TEXT_BYTES];

    if (!saga || step == STEP_NONE) {
        return;
    }
    if (may_see_values(work)) {
        saga_write_operation(saga, step, DIRECTION_DO, &work->out);
    } else {
        saga_write_operation_bare(saga, step, &work->out);
    }
    if (work->calling->duplicate && !work->out.overflow) {
        mark_duplicate(&work->out);
    }
    if (!request) {
        return;
    }
    uuid_text(&saga->steps[step].forward.key.uuid, key);
    request->call.key = arena_slice(request->arena, slice_of(key));
    request->saga = saga->id;
}

/* Refuses. A problem carries the record beside it; work_done() answers only with a success. */
void caller_refuse(struct work *work, const struct err *err, int64_t retry_after_ms)
{
    struct engine_request *request = work->request;

    if (request) {
        request->call.retry_after_ms = retry_after_ms;
        if (work->out.len > 0 && !work->out.overflow) {
            request->call.operation = arena_slice(request->arena, buffer_slice(&work->out));
        }
    }
    work_done(work, err->code, err);
}

static void refuse_with(struct work *work, enum err_code code, int64_t retry_after_ms, const char *hint,
                        const char *message)
{
    struct err err = {0};

    (void)err_set(&err, code, "%s", message);
    err_hint(&err, "%s", hint);
    caller_refuse(work, &err, retry_after_ms);
}

static int64_t until_due(const struct work *work, const struct operation *op, int64_t otherwise_ms)
{
    int64_t left = op->due_ms - loop_wall_ms(work->engine->loop);

    return left > 0 ? left : otherwise_ms;
}

/* Returns how long until the same call is worth a new attempt; 0 when the failure is stored and every repeat gets
 * it. */
static int64_t until_again(const struct work *work, const struct saga *saga, uint32_t step)
{
    int64_t again_ms = saga_call_again_ms(saga, step), left = again_ms - loop_wall_ms(work->engine->loop);

    if (again_ms == 0 ||
        work->mail.input.call.emission.ptr) { /* one request has one answer, however often it is sent */
        return 0;
    }
    return left > 1 ? left : 1;
}

static void refuse_closed(struct work *work)
{
    refuse_with(work, ERR_CLOSED, 0, "GET the saga to see how it ended; what is still wanted needs another one",
                "the saga ended before this call was made");
}

static void answer_failed(struct work *work, const struct saga *saga, const struct operation *op)
{
    enum err_code code = code_of_failure(op->error);
    bool comes_too_late = saga->phase != PHASE_FORWARD && saga->definition->kind != SAGA_RUN; /* a run is woken */
    int64_t again_ms = code == ERR_TOOL_FAILED ? until_again(work, saga, work->calling->step) : 0;
    struct err err = {0};

    if (comes_too_late && (code == ERR_RATE || code == ERR_BREAKER)) {
        refuse_closed(work); /* nothing that was refused for a while is called there any more */
        return;
    }
    (void)err_set(&err, code,
                  code == ERR_TOOL_FAILED ? "the tool failed, and nothing took effect"
                                          : "the call was refused before it was sent");
    err_detail(&err, "%.*s%s%.*s", SLICE_ARG(op->error), op->detail.len ? ": " : "", SLICE_ARG(op->detail));
    if (code == ERR_RATE || code == ERR_BREAKER) {
        err_hint(&err, "repeat the same call after the time in Retry-After");
        caller_refuse(work, &err, until_due(work, op, RETRY_AFTER_MS));
    } else {
        if (again_ms > 0) {
            err_hint(&err, "mend the cause and repeat the same call after the time in Retry-After: attempts are left");
        }
        caller_refuse(work, &err, again_ms);
    }
}

static void answer_completed(struct work *work, const struct operation *op)
{
    struct calling *calling = work->calling;

    if (work->request) {
        work->request->call.replayed = calling->duplicate;
        work->request->call.first_ms = calling->first_ms ? calling->first_ms : op->created_ms;
    }
    work_done(work, ERR_OK, NULL);
}

/* Answers when the wait is over, or nothing more will come. The client that began the operation is told that it goes
 * on; all others are told to come back. */
static void answer_going_on(struct work *work, const struct saga *saga)
{
    if (saga->phase == PHASE_ENDED) {
        refuse_closed(work);
    } else if (work->calling->duplicate) {
        refuse_with(work, ERR_IN_FLIGHT, RETRY_AFTER_MS, "repeat the same call later, or GET the operation",
                    "the same operation is under way, and the time to wait is over");
    } else {
        if (work->request) {
            work->request->call.going_on = true;
        }
        work_done(work, ERR_OK, NULL);
    }
}

/* Answers the client. Returns false when the operation is not settled and there is reason to wait. With `last` it
 * answers anyway. */
bool caller_answer(struct work *work, const struct saga *saga, bool last)
{
    uint32_t step = work->calling->step;
    const struct operation *op = &saga->steps[step].forward;
    enum call_standing standing = standing_of(saga, step);

    if (!last && (standing == STANDS_GOING || standing == STANDS_PROBING)) {
        return false;
    }
    caller_give_operation(work, saga, step);
    switch (standing) {
    case STANDS_GOING:
        answer_going_on(work, saga);
        return true;
    case STANDS_PROBING:
    case STANDS_UNKNOWN:
        refuse_with(work, ERR_OUTCOME_UNKNOWN, until_due(work, op, RETRY_AFTER_MS),
                    "it is being found out and is never sent blindly again: repeat the same call later",
                    "nobody can say yet whether it happened");
        return true;
    case STANDS_AWAITING:
        refuse_with(work, ERR_AWAITING, PERSON_RETRY_AFTER_MS,
                    "an operator resolves its escalation; repeat the same call later",
                    "a person has to say what happened");
        return true;
    case STANDS_FAILED:
        answer_failed(work, saga, op);
        return true;
    case STANDS_COMPLETED:
        answer_completed(work, op);
        return true;
    }
    UNREACHABLE();
}

/* --- waiting --- */

static void on_patience_over(struct timer *timer)
{
    struct work *work = container_of(timer, struct work, timer);

    if (work->calling->again) {
        work->calling->give_up(work);
    } else {
        (void)caller_answer(work, &work->live->saga, true);
    }
}

static int64_t left_of(const struct work *work)
{
    return work->until_boot_ms - loop_boot_ms(work->engine->loop);
}

void caller_wait(struct work *work, struct live *live)
{
    work->live = live;
    work->waits_in = &live->callers;
    list_push(&live->callers, &work->link);
    timer_start(work->engine->loop, &work->timer, left_of(work), on_patience_over);
}

bool caller_has_patience(const struct work *work)
{
    return work->request && left_of(work) > 0 && (!engine_is_draining(work->engine) || work->mail.from_inbox);
}

void callers_check(struct live *live)
{
    struct list_link *link = list_first(&live->callers);

    while (link) {
        struct work *work = container_of(link, struct work, link);
        bool ended = live->saga.phase == PHASE_ENDED;

        link = list_after(&live->callers, link); /* an answer takes it out of the list */
        if (!work->calling->again) {
            (void)caller_answer(work, &live->saga, ended);
        } else if (ended || !saga_is_unsettled(&live->saga)) {
            list_remove(&live->callers, &work->link);
            work->live = NULL;
            timer_stop(work->engine->loop, &work->timer);
            work->calling->again(work);
        }
    }
}

struct trace_context callers_trace(const struct live *live, uint32_t step)
{
    for (struct list_link *link = list_first(&live->callers); link; link = list_after(&live->callers, link)) {
        const struct calling *calling = container_of(link, struct work, link)->calling;

        if (calling->step == step && calling->trace.parent.ptr) {
            return calling->trace;
        }
    }
    return (struct trace_context){SLICE_NONE, SLICE_NONE};
}

static void look(struct timer *timer);

void caller_look_later(struct work *work)
{
    int64_t left = left_of(work);

    timer_start(work->engine->loop, &work->timer, left < LOOK_EVERY_MS ? (left > 0 ? left : 0) : LOOK_EVERY_MS, look);
}

static void on_looked(struct store_read *read)
{
    struct work *work = read->context;
    struct arena scratch;
    struct err err = {0};

    if (work_read_failed(work, read)) {
        return;
    }
    arena_init(&scratch, 16384);
    struct saga *saga =
        fold_turns(work->engine, work->saga, work->namespace, work->read.turns, work->read.turn_count, &scratch, &err);

    if (!saga) {
        work_done(work, ERR_CORRUPT, &err);
    } else if (work->calling->step >= saga->definition->step_count) {
        refuse_with(work, ERR_FENCED, RETRY_AFTER_MS, "repeat the same call: it is carried out once",
                    "another engine took this saga over before the call was durable");
    } else if (!caller_answer(work, saga, !caller_has_patience(work) || saga->phase == PHASE_ENDED)) {
        caller_look_later(work);
    }
    arena_fini(&scratch);
}

/* Looks again, because another engine has the saga now, or this one has it again. */
static void look(struct timer *timer)
{
    struct work *work = container_of(timer, struct work, timer);
    struct live *live = live_find(work->engine, work->saga);

    if (engine_is_closing(work->engine)) {
        work_fail(work, ERR_STOPPING, "this engine is stopping; what was begun goes on",
                  "repeat the same call: it is carried out once");
    } else if (live && live->shard->state == SHARD_OWNED && work->calling->step < live->saga.definition->step_count) {
        caller_wait_for_step(work, live);
    } else {
        arena_reset(&work->reading);
        work->read = (struct read_saga){.read = {.arena = &work->reading, .done = on_looked, .context = work},
                                        .id = work->saga,
                                        .namespace = work->namespace};
        store_read_saga(work->engine->store, &work->read);
    }
}

void callers_drop(struct live *live)
{
    struct list_link *link;

    while ((link = list_first(&live->callers)) != NULL) {
        struct work *work = container_of(link, struct work, link);

        if (work->mail.from_inbox) {
            /* The client waits at another engine, which sees that the shard changed hands and asks the next owner. */
            work_fail(work, ERR_FENCED, "the shard of this saga went to another engine", NULL);
            continue;
        }
        if (engine_is_draining(work->engine) && !work->calling->again) {
            (void)caller_answer(work, &live->saga, true); /* takes it out of the list */
            continue;
        }
        list_remove(&live->callers, link);
        work->live = NULL;
        timer_stop(work->engine->loop, &work->timer);
        if (work->calling->again) {
            work->calling->again(work);
        } else {
            caller_look_later(work);
        }
    }
}

/* Waits for a step; `live` is in memory and has the operation. */
void caller_wait_for_step(struct work *work, struct live *live)
{
    if (!caller_answer(work, &live->saga, !caller_has_patience(work) || live->saga.phase == PHASE_ENDED)) {
        caller_wait(work, live);
    }
}
