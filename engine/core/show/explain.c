/* One paragraph about a saga for people: where it stands, why, and what comes next. Built from the state alone. */
#include "core/show/explain.h"

#include "base/instant.h"
#include "base/json.h"
#include "core/saga/machine.h"

#define NAMES_MAX 40     /* the most steps in one list */
#define SENTENCES_MAX 40 /* the most sentences about work under way; for_each may have many elements */

static void put_duration(struct buffer *out, int64_t ms)
{
    char text[INSTANT_TEXT_BYTES];

    duration_text(ms > 0 ? ms : 0, text);
    buffer_put_text(out, text);
}

static void put_list(struct buffer *out, const struct saga *saga, const char *title,
                     bool (*belongs)(const struct saga *saga, uint32_t step))
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (belongs(saga, i) && count++ < NAMES_MAX) {
            buffer_put_text(out, count > 1 ? ", " : title);
            buffer_put_slice(out, saga->definition->steps[i].id);
        }
    }
    if (count > NAMES_MAX) {
        buffer_printf(out, " and %u more", count - NAMES_MAX);
    }
    if (count > 0) {
        buffer_put_text(out, ".");
    }
}

static bool is_completed(const struct saga *saga, uint32_t step)
{
    return saga_step_status(saga, step) == STEP_COMPLETED;
}

static bool is_skipped(const struct saga *saga, uint32_t step)
{
    return saga->steps[step].forward.state == OP_SKIPPED;
}

static bool is_done_without(const struct saga *saga, uint32_t step)
{
    return saga->steps[step].forward.state == OP_FAILED && step_is_over(saga, step);
}

static bool is_undone(const struct saga *saga, uint32_t step)
{
    return saga->steps[step].forward.took_effect == TOOK_EFFECT_UNDONE;
}

static bool may_stand(const struct saga *saga, uint32_t step)
{
    return step_may_stand(saga, step);
}

/* Adds " for 20m more", or nothing when no clock runs. */
static void put_left(struct buffer *out, const struct saga *saga, int64_t due_ms, int64_t now_ms)
{
    if (due_ms) { /* no clock runs during a pause */
        buffer_put_text(out, ", for ");
        put_duration(out, due_ms - (pause_holds(saga) ? saga->paused_ms : now_ms));
        buffer_put_text(out, " more");
    }
    buffer_put_text(out, ".");
}

static void put_wait(struct buffer *out, const struct saga *saga, uint32_t step, int64_t now_ms)
{
    const struct step_definition *definition = &saga->definition->steps[step];

    switch (definition->kind) {
    case STEP_SLEEP:
        buffer_printf(out, " Step %.*s sleeps", SLICE_ARG(definition->id));
        break;
    case STEP_SIGNAL:
        buffer_printf(out, " Step %.*s waits for the signal %.*s", SLICE_ARG(definition->id),
                      SLICE_ARG(definition->signal_name));
        break;
    case STEP_APPROVE:
        buffer_printf(out, " Step %.*s waits until a person decides on approval %llu", SLICE_ARG(definition->id),
                      (unsigned long long)saga->steps[step].approval);
        break;
    case STEP_CALL:
    case STEP_SAGA:
        return;
    }
    put_left(out, saga, saga->steps[step].forward.due_ms, now_ms);
}

/* Says how far a group is. Counts its own members, not those of groups inside it. */
static void put_group(struct buffer *out, const struct saga *saga, uint32_t step)
{
    const struct step *group = &saga->steps[step];
    uint32_t over = 0, count = 0;

    for (uint32_t i = group->first; i < group->first + group->count; i++) {
        if (saga->definition->steps[i].group == step) {
            count++;
            over += step_is_over(saga, i);
        }
    }
    buffer_printf(out, " Of step %.*s %u of %u %s over", SLICE_ARG(saga->definition->steps[step].id), over, count,
                  saga->definition->steps[step].kind == STEP_SAGA &&
                          !template_is_set(&saga->definition->steps[step].for_each)
                      ? "steps are"
                      : "elements are");
    buffer_put_text(out, group->group_phase == PHASE_FORWARD ? "." : "; it is being undone on its own.");
}

static void put_next(struct buffer *out, const struct saga *saga, uint32_t step, enum direction direction,
                     int64_t now_ms)
{
    const struct operation *op = operation_of(saga, step, direction);
    struct slice id = saga->definition->steps[step].id;
    const char *what = direction == DIRECTION_UNDO ? "The undo of step" : "Step";

    switch (op->state) {
    case OP_IN_FLIGHT:
        buffer_printf(out, " %s %.*s is being called (attempt %u).", what, SLICE_ARG(id), op->attempts);
        return;
    case OP_PENDING:
        buffer_printf(out, " %s %.*s is about to be called for the first time.", what, SLICE_ARG(id));
        return;
    case OP_RETRYING:
        buffer_printf(out, " %s %.*s came back with %.*s; it is tried again in ", what, SLICE_ARG(id),
                      SLICE_ARG(op->error));
        put_duration(out, op->due_ms - now_ms);
        buffer_put_text(out, ".");
        return;
    case OP_PROBING:
        buffer_printf(out,
                      op->accepted ? " %s %.*s was accepted and is not done; the receiver is asked again in "
                                   : " Nobody can say yet whether %s %.*s happened; the receiver is asked in ",
                      direction == DIRECTION_UNDO ? "the undo of step" : "step", SLICE_ARG(id));
        put_duration(out, op->due_ms - now_ms);
        buffer_put_text(out, ".");
        return;
    case OP_UNKNOWN:
        buffer_printf(out, " Nobody can say whether %s %.*s happened.",
                      direction == DIRECTION_UNDO ? "the undo of step" : "step", SLICE_ARG(id));
        return;
    case OP_OPEN:
        put_group(out, saga, step);
        return;
    case OP_WAITING:
        put_wait(out, saga, step, now_ms);
        return;
    case OP_NONE:
    case OP_COMPLETED:
    case OP_FAILED:
    case OP_SKIPPED:
        return;
    case OP_STATE_COUNT:
        break;
    }
    UNREACHABLE();
}

static void put_escalation(struct buffer *out, const struct saga *saga)
{
    unsigned actions = saga_escalation_actions(saga);
    bool any = false;

    if (!saga->escalation.number) {
        return;
    }
    buffer_printf(out, " It needs a person: escalation %llu about ", (unsigned long long)saga->escalation.number);
    if (saga->escalation.step == STEP_NONE) {
        buffer_put_text(out, "the saga as a whole");
    } else {
        buffer_printf(out, "step %.*s", SLICE_ARG(saga->definition->steps[saga->escalation.step].id));
    }
    buffer_printf(out, " (%.*s). Possible are ", SLICE_ARG(saga->escalation.reason));
    for (unsigned i = 0; i < OPERATOR_ACTION_COUNT; i++) {
        if (actions & BIT(i)) {
            buffer_put_text(out, any ? ", " : "");
            buffer_put_text(out, operator_action_name((enum operator_action)i));
            any = true;
        }
    }
    buffer_put_text(out, ".");
}

static void put_where(struct buffer *out, const struct saga *saga)
{
    switch (saga_status(saga)) {
    case SAGA_RUNNING:
        buffer_put_text(out, " is running.");
        return;
    case SAGA_WAITING:
        buffer_put_text(out, " is waiting.");
        return;
    case SAGA_PAUSED:
        buffer_put_text(out, " is paused.");
        return;
    case SAGA_COMPENSATING:
        buffer_put_text(out, " is being undone.");
        return;
    case SAGA_ESCALATED:
        buffer_put_text(out, saga->phase == PHASE_FORWARD ? " is stuck." : " is stuck while it is being undone.");
        return;
    case SAGA_COMPLETED:
        buffer_put_text(out, saga->definition->kind == SAGA_RUN ? " rests: nothing of it is going on."
                                                                : " has completed: all of its effects are there.");
        return;
    case SAGA_COMPENSATED:
        buffer_put_text(out, " was undone: none of its effects is left.");
        return;
    case SAGA_ABANDONED:
        buffer_put_text(out, " was abandoned by a person.");
        return;
    case SAGA_STATUS_COUNT:
        break;
    }
    UNREACHABLE();
}

static void put_name(struct buffer *out, const struct saga *saga)
{
    switch (saga->definition->kind) {
    case SAGA_DEFINED:
        buffer_printf(out, "Saga %.*s", SLICE_ARG(saga->definition->name));
        return;
    case SAGA_OPEN:
        buffer_put_text(out, "The open saga");
        return;
    case SAGA_RUN:
        buffer_printf(out, "Run %.*s", SLICE_ARG(saga->run));
        return;
    }
    UNREACHABLE();
}

/* Adds what an agent must know about the saga that its calls make. */
static void put_opening(struct buffer *out, const struct saga *saga)
{
    uint32_t sealed_by = saga_sealed_by(saga);

    if (pause_holds(saga)) {
        buffer_put_text(out, " A person has paused it");
        buffer_put_text(out, saga_is_open(saga)
                                 ? ": no call is taken, nothing begins and no clock runs until somebody resumes it."
                                 : ": nothing begins and no clock runs until somebody resumes it.");
    } else if (saga->paused.ptr) {
        buffer_printf(out, " No call is taken until an operator resumes it; why: %.*s.", SLICE_ARG(saga->paused));
    }
    if (sealed_by != STEP_NONE) {
        buffer_printf(out, " It is sealed by step %.*s, which cannot be undone: only reads are taken.",
                      SLICE_ARG(saga->definition->steps[sealed_by].id));
    }
}

static void put_under_way(struct buffer *out, const struct saga *saga, int64_t now_ms)
{
    uint32_t sentences = 0, left_out = 0;

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        size_t len = out->len;

        if (sentences < SENTENCES_MAX) {
            put_next(out, saga, i, DIRECTION_DO, now_ms);
            put_next(out, saga, i, DIRECTION_UNDO, now_ms);
            sentences += out->len > len;
        } else {
            left_out += operation_is_open(&saga->steps[i].forward) || operation_is_open(step_undo(&saga->steps[i]));
        }
    }
    if (left_out > 0) {
        buffer_printf(out, " %u more steps are under way.", left_out);
    }
}

static void put_followers(struct buffer *out, const struct saga *saga)
{
    size_t count = saga->followers.ptr ? json_count(saga->followers) : 0;

    if (count > 0) {
        buffer_printf(out, " %zu %s.", count, count == 1 ? "saga follows it" : "sagas follow it");
    }
}

static void put_lock(struct buffer *out, const struct saga *saga)
{
    if (saga->lock_taken < saga->lock_count) {
        buffer_printf(out, " It waits for the lock %.*s, %u of %u: no step begins before.",
                      SLICE_ARG(saga->locks[saga->lock_taken].key), saga->lock_taken + 1, saga->lock_count);
    }
}

void explain(const struct saga *saga, int64_t now_ms, struct buffer *out)
{
    put_name(out, saga);
    if (saga->seq == 0) {
        buffer_put_text(out, " has not started.");
        return;
    }
    put_where(out, saga);
    if (saga->failing_reason.len) {
        buffer_printf(out, " Why: %.*s", SLICE_ARG(saga->failing_reason));
        if (saga->failing_step != STEP_NONE) {
            buffer_printf(out, " (%.*s)", SLICE_ARG(saga->definition->steps[saga->failing_step].id));
        }
        if (saga->failing_detail.len) {
            buffer_printf(out, ", %.*s", SLICE_ARG(saga->failing_detail));
        }
        buffer_put_text(out, ".");
    }
    if (saga->phase == PHASE_ENDED) {
        put_list(out, saga, " Skipped: ", is_skipped);
        put_list(out, saga, " Undone: ", is_undone);
        put_followers(out, saga);
        if (saga->end == SAGA_ABANDONED) {
            put_list(out, saga, " Left standing: ", may_stand);
        }
        return;
    }
    put_opening(out, saga);
    put_lock(out, saga);
    put_list(out, saga, " Done: ", is_completed);
    put_list(out, saga, " Skipped: ", is_skipped);
    put_list(out, saga, " Failed, and gone on without: ", is_done_without);
    put_list(out, saga, " Undone: ", is_undone);
    put_under_way(out, saga, now_ms);
    put_escalation(out, saga);
    if (saga->phase == PHASE_FORWARD && saga->deadline_ms) {
        buffer_put_text(out, " The deadline is in ");
        put_duration(out, saga->deadline_ms - (pause_holds(saga) ? saga->paused_ms
                                               : saga->held_ms   ? saga->held_ms
                                                                 : now_ms));
        buffer_put_text(out, ".");
    }
}
