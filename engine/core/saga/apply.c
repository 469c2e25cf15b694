/*
 * Folds a record into the state. Nothing else writes the state: live, in recovery and in replay. Nothing is decided
 * here; record_check() has refused any record that does not fit.
 */
#include "core/saga/machine.h"

#include <string.h>

uint32_t open_step_room(uint32_t count)
{
    uint32_t room = OPEN_ROOM_MIN;

    while (room < count) {
        room *= 2;
    }
    return room;
}

void saga_init(struct saga *saga, struct arena *arena, struct saga_id id, const struct definition *definition)
{
    *saga = (struct saga){.id = id,
                          .definition = definition,
                          .arena = arena,
                          .failing_step = STEP_NONE,
                          .escalation = {.step = STEP_NONE}};
    saga->budget = (struct budget){-1, -1, -1};
    if (saga_is_open(saga)) {
        saga->step_room = open_step_room(definition->step_count);
        saga->loop = arena_alloc(arena, sizeof(*saga->loop));
        saga->emissions = arena_alloc(arena, sizeof(*saga->emissions));
    } else {
        saga->step_room = definition->step_count;
    }
    saga->steps = arena_array(arena, saga->step_room, sizeof(*saga->steps));
}

struct saga *saga_copy(const struct saga *saga, struct arena *arena)
{
    struct saga *copy = arena_dup(arena, saga, sizeof(*saga));
    uint32_t count = saga->definition->step_count;

    copy->arena = NULL;
    copy->scratch = arena;
    copy->step_room = saga_is_open(saga) ? open_step_room(count) : count ? count : 1;
    copy->steps = copy->step_room == count ? arena_dup(arena, saga->steps, count * sizeof(*saga->steps))
                                           : arena_array(arena, copy->step_room, sizeof(*saga->steps));
    if (copy->step_room != count && count > 0) {
        memcpy(copy->steps, saga->steps, count * sizeof(*saga->steps));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (copy->steps[i].undo) {
            copy->steps[i].undo = arena_dup(arena, copy->steps[i].undo, sizeof(*copy->steps[i].undo));
        }
    }
    copy->signals_borrowed = true;
    if (saga->loop) {
        copy->loop = arena_dup(arena, saga->loop, sizeof(*saga->loop));
        copy->emissions = arena_alloc(arena, sizeof(*copy->emissions));
        *copy->emissions = emissions_share(saga->emissions);
    }
    return copy;
}

struct slice apply_keep(const struct saga *saga, struct slice text)
{
    return saga->arena ? arena_slice(saga->arena, text) : text;
}

struct operation *apply_undo_room(struct saga *saga, uint32_t step)
{
    struct step *s = &saga->steps[step];

    if (!s->undo) {
        s->undo = arena_alloc(saga_memory(saga), sizeof(*s->undo));
    }
    return s->undo;
}

static struct slice keep(const struct saga *saga, struct slice text)
{
    return apply_keep(saga, text);
}

/* --- operations --- */

static bool is_read(const struct saga *saga, const struct record *record, enum direction direction)
{
    return operation_effect(saga, record->step, direction) == EFFECT_READ;
}

static enum effect effect_of(const struct saga *saga, const struct record *record, enum direction direction)
{
    return record->conditional || record->type == RECORD_STEP_CALLED ? record->effect
                                                                     : saga_tool(saga, record->step, direction)->effect;
}

/* --- the budget: reserved when an operation begins, corrected when it is over --- */

void apply_book(struct saga *saga, struct operation *op, int64_t micros)
{
    saga->used.micros += micros - op->cost_micros;
    op->cost_micros = micros;
}

static void reserve(struct saga *saga, struct operation *op, int64_t micros)
{
    op->cost_micros = 0; /* the cost of an earlier round stays spent */
    apply_book(saga, op, micros);
}

static void reserve_defined(struct saga *saga, struct operation *op, uint32_t step)
{
    if (!saga_is_open(saga)) {
        saga->used.calls++;
        reserve(saga, op, saga->definition->steps[step].tool->cost_fixed_micros);
    }
}

static void take_arguments(const struct saga *saga, struct operation *op, const struct record *record)
{
    op->asked = uuid_equal(&op->key.uuid, &record->key.uuid) ? op->asked : NULL; /* another operation is another case */
    op->key = record->key;
    op->generation = record->generation;
    op->args = keep(saga, record->args);
    op->scope = keep(saga, record->scope);
    op->fingerprint = record->fingerprint;
}

static void create(struct saga *saga, struct operation *op, const struct record *record, enum direction direction)
{
    if (op->created_ms == 0) {
        op->created_ms = op->round_ms = record->at_ms;
        op->effect = effect_of(saga, record, direction);
        take_arguments(saga, op, record);
        if (direction == DIRECTION_DO) {
            reserve_defined(saga, op, record->step);
        }
    }
}

static int64_t longer_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t timeout_of(const struct saga *saga, uint32_t step, enum direction direction)
{
    return direction == DIRECTION_UNDO ? saga_tool(saga, step, direction)->timeout_ms
                                       : saga->definition->steps[step].timeout_ms;
}

static void begin_attempt(const struct saga *saga, struct operation *op, const struct record *record,
                          enum direction direction)
{
    op->tool_version = saga_tool(saga, record->step, direction)->version;
    op->call_timeout_ms = longer_of(op->call_timeout_ms, timeout_of(saga, record->step, direction));
    op->attempts++;
    op->counted++; /* counted unless it turns out that the attempt never left */
    op->earlier_maybe = op->took_effect == TOOK_EFFECT_MAYBE;
    op->took_effect = is_read(saga, record, direction) ? TOOK_EFFECT_NO : TOOK_EFFECT_MAYBE;
    op->prior_sent_ms = op->last_sent_ms;
    op->prior_window_ms = op->window_from_ms;
    op->last_sent_ms = record->at_ms;
    op->first_sent_ms = op->first_sent_ms ? op->first_sent_ms : record->at_ms;
    op->window_from_ms = op->window_from_ms ? op->window_from_ms : record->at_ms;
    op->due_ms = 0;
}

/* Takes back the current attempt, which is over and never sent a byte, as if it had not been made. */
static void take_back_attempt(struct operation *op, struct slice error)
{
    op->counted -= op->counted > 0;
    op->unsent = operation_unsent_next(op, error);
    op->never_left++;
    op->last_sent_ms = op->prior_sent_ms;
    op->window_from_ms = op->prior_window_ms;
    if (op->last_sent_ms == 0) {
        op->first_sent_ms = 0;
    }
}

static void remember_why(const struct saga *saga, struct operation *op, const struct record *record)
{
    op->error = keep(saga, record->error);
    op->detail = keep(saga, record->detail);
    if (record->answer.ptr) {
        op->answer = apply_keep_in_room(saga, &op->answer_room, record->answer);
        op->answer_attempt = record->attempt;
    }
}

/* Does a guard keep a denied call waiting? The person is still asked for the first reason. */
static bool is_kept_waiting(const struct operation *op, const struct record *record)
{
    return record->source == SOURCE_GUARD && record_leads_to(record) == OP_RETRYING && operation_is_denied(op);
}

static void end_attempt(const struct saga *saga, struct operation *op, const struct record *record)
{
    if (op->state == OP_IN_FLIGHT) {
        if (record->unsent) {
            take_back_attempt(op, record->error);
        } else {
            op->unsent = 0;
            op->settled_ms = record->at_ms;
            op->double_accepted = false; /* the acceptance was for an attempt that leaves */
        }
    }
    if ((op->state == OP_UNKNOWN || op->state == OP_PROBING) && record->unsent &&
        record_leads_to(record) == OP_RETRYING) {
        take_back_attempt(op, record->error); /* nobody awaited the end of the attempt any more */
    }
    if ((op->state == OP_PENDING || op->state == OP_RETRYING) && record->unsent) {
        op->unsent = operation_unsent_next(
            op, record->error); /* the guard or the precheck could not be asked whether the call may leave */
    }
    if (op->state == OP_PROBING) {
        op->probes++;
        op->probed_ms = record->at_ms;
    }
    if (!is_kept_waiting(op, record)) {
        remember_why(saga, op, record);
    }
    op->due_ms = record->due_ms;
    op->accepted = false;
}

static void retry(const struct saga *saga, struct operation *op, const struct record *record, enum direction direction)
{
    end_attempt(saga, op, record);
    if (record->source == SOURCE_PROBE) { /* the probe said that nothing has happened under this key */
        op->earlier_maybe = false;
    } else if (record->source == SOURCE_OPERATOR) { /* a person has a denied call tried now */
        op->unsent = 0;
        op->round_ms = record->at_ms;
    }
    op->took_effect =
        !is_read(saga, record, direction) && (record->maybe || op->earlier_maybe) ? TOOK_EFFECT_MAYBE : TOOK_EFFECT_NO;
}

static void reopen(struct saga *saga, struct operation *op, const struct record *record, enum direction direction)
{
    if (op->state == OP_FAILED && direction == DIRECTION_DO) {
        reserve(saga, op, saga_tool(saga, record->step, DIRECTION_DO)->cost_fixed_micros);
    }
    op->late = false;
    if (record->args.ptr) {
        struct slice scope = op->scope;

        take_arguments(saga, op, record);
        op->effect = effect_of(saga, record, direction);
        op->scope = scope;
        op->other_key_attempts = op->attempts;
        op->known_before = false;
        op->first_sent_ms = op->last_sent_ms = 0;
        op->created_ms = op->created_ms ? op->created_ms : record->at_ms;
    }
    op->counted = op->unsent = 0;
    op->round_ms = record->at_ms;
    op->due_ms = record->due_ms ? record->due_ms : record->at_ms;
    op->ended_ms = 0;
    op->double_accepted = record->accept_double;
    if (op->took_effect == TOOK_EFFECT_NO || record->accept_double) {
        op->window_from_ms = 0;
        op->known_before = false;
    }
}

static void ask(const struct saga *saga, struct operation *op, const struct record *record)
{
    bool was_probing = op->state == OP_PROBING;

    end_attempt(saga, op, record);
    if (!was_probing && record->due_ms) {
        op->unknown_ms = record->at_ms;
        op->other_probes = op->probes;
        op->one_probe = record->actor.ptr != NULL;
    }
}

static void fail(struct saga *saga, struct operation *op, const struct record *record, enum direction direction)
{
    end_attempt(saga, op, record);
    if (op->created_ms == 0) {
        op->effect = saga_tool(saga, record->step, direction)->effect;
    }
    if (direction == DIRECTION_DO && op->created_ms) {
        bool begun = record->source != SOURCE_GUARD && record->source != SOURCE_PRECHECK;

        apply_book(saga, op, 0);
        saga->used.calls -= !begun && saga->used.calls > 0;
    }
    op->late = false;
    op->known_before = op->known_before && record->maybe;
    op->source = record->source;
    op->ruled_out = record->source == SOURCE_OPERATOR ? op->attempts : op->ruled_out;
    op->ended_ms = record->at_ms;
    op->earlier_maybe = record->maybe;
    op->took_effect = record->maybe ? TOOK_EFFECT_MAYBE : TOOK_EFFECT_NO;
    op->created_ms = op->created_ms ? op->created_ms : record->at_ms;
}

static void complete(struct saga *saga, struct operation *op, const struct record *record, enum direction direction)
{
    end_attempt(saga, op, record);
    op->answer = SLICE_NONE;
    apply_book(saga, op, record->cost_micros);
    op->cost_unknown = keep(saga, record->cost_unknown);
    op->result_error = keep(saga, record->result_error);
    op->late = false;
    op->before = record->source == SOURCE_PRECHECK;
    op->result = saga_is_open(saga) && is_read(saga, record, direction)
                     ? apply_keep_in_room(saga, &op->room, record->result)
                     : keep(saga, record->result);
    op->source = record->source;
    op->ended_ms = record->at_ms;
    op->earlier_maybe = false;
    op->took_effect = is_read(saga, record, direction) ? TOOK_EFFECT_NO
                      : op->before                     ? TOOK_EFFECT_BEFORE
                                                       : TOOK_EFFECT_YES;
}

/* Begins another round of the same operation, because an agent calls again what failed or what only reads. */
static void repeat(struct saga *saga, struct operation *op, const struct record *record)
{
    if (op->state == OP_COMPLETED) {
        op->counted = 0;
        op->round_ms = record->at_ms;
    }
    op->unsent = 0;
    op->due_ms = op->ended_ms = 0;
    op->result = op->result_error = op->error = op->detail = SLICE_NONE;
    op->answer = SLICE_NONE;
    op->window_from_ms = 0; /* nothing was done under this key, or nothing that counts */
    saga->used.calls++;
    reserve(saga, op, record->cost_micros);
}

static void apply_operation(struct saga *saga, struct operation *op, const struct record *record,
                            enum direction direction)
{
    enum op_state to = record_leads_to(record);

    switch (to) {
    case OP_PENDING:
        if (record->type == RECORD_STEP_REPEATED) {
            repeat(saga, op, record);
        } else {
            create(saga, op, record, direction);
        }
        break;
    case OP_IN_FLIGHT:
        create(saga, op, record, direction);
        begin_attempt(saga, op, record, direction);
        break;
    case OP_RETRYING:
        if (record->type == RECORD_STEP_REOPENED || record->type == RECORD_COMPENSATION_REOPENED) {
            reopen(saga, op, record, direction);
        } else {
            retry(saga, op, record, direction);
        }
        break;
    case OP_PROBING:
    case OP_UNKNOWN:
        if (record->type == RECORD_COMPENSATION_FAILED) {
            fail(saga, op, record, direction);
        } else {
            bool accepted =
                record->type == RECORD_STEP_RUNNING || record->type == RECORD_COMPENSATION_RUNNING ||
                (op->accepted && (record->type == RECORD_STEP_PROBED || record->type == RECORD_COMPENSATION_PROBED));

            ask(saga, op, record);
            op->accepted = accepted;
            if (record->type == RECORD_STEP_UNKNOWN && record->cost_micros > 0) {
                apply_book(saga, op, record->cost_micros); /* the amount may have been spent */
            }
        }
        break;
    case OP_COMPLETED:
        complete(saga, op, record, direction);
        break;
    case OP_FAILED:
        fail(saga, op, record, direction);
        break;
    case OP_SKIPPED:
        op->result = keep(saga, record->result); /* later steps work with the result that the person gives */
        op->ended_ms = record->at_ms;
        break;
    case OP_NONE:
    case OP_OPEN:
    case OP_WAITING:
    case OP_STATE_COUNT:
        UNREACHABLE();
    }
    CHECK(operation_may_move(op->state, to));
    op->state = to;
    op->changed_ms = record->at_ms;
}

/* --- steps --- */

static void apply_forward(struct saga *saga, const struct record *record)
{
    struct step *step = &saga->steps[record->step];

    apply_operation(saga, &step->forward, record, DIRECTION_DO);
    if ((step->start_order == 0 && (step->forward.state == OP_PENDING || step->forward.state == OP_IN_FLIGHT)) ||
        record->type == RECORD_STEP_REPEATED) { /* the outcome now depends on all that was settled before */
        step->start_order = ++saga->started_count;
        step->started_ms = step->started_ms ? step->started_ms : record->at_ms;
        step->begun_seq = record->seq;
        step->settled_seq = 0;
    }
    if (step->forward.state == OP_COMPLETED || step->forward.state == OP_FAILED || step->forward.state == OP_SKIPPED) {
        step->settled_seq = record->seq;
        apply_answered(saga, record->step);
    }
    if (step->forward.state == OP_COMPLETED) {
        step->undo_args = keep(saga, record->undo_args);
        step->undo_error = keep(saga, record->undo_error);
        if (step->plan == PLAN_VERDICT && step->forward.took_effect == TOOK_EFFECT_YES &&
            !saga->definition->steps[record->step].terminal) {
            plan_move(saga, record->step, PLAN_READY);
        }
    }
    if (step->forward.state == OP_FAILED && (step->plan == PLAN_VERDICT || step->plan == PLAN_READY)) {
        plan_move(saga, record->step, PLAN_DROPPED);
    }
}

static void apply_undo(struct saga *saga, const struct record *record)
{
    struct step *step = &saga->steps[record->step];
    struct operation *undo = apply_undo_room(saga, record->step);
    enum op_state before = undo->state;

    apply_operation(saga, undo, record, DIRECTION_UNDO);
    if (record->type == RECORD_COMPENSATION_COMPLETED) {
        plan_move(saga, record->step, PLAN_DONE);
        step->forward.took_effect = TOOK_EFFECT_UNDONE;
    } else if (record->type == RECORD_COMPENSATION_FAILED) {
        plan_move(saga, record->step, PLAN_FAILED);
    } else if (record->type == RECORD_COMPENSATION_REOPENED) {
        plan_move(saga, record->step, PLAN_READY); /* the step takes its turn again */
    } else if (step->plan == PLAN_READY) {
        plan_move(saga, record->step, PLAN_ACTIVE);
    }
    /* The undo was given up before it had a key. A person may hand in the arguments, and then the key is made. */
    if (before == OP_NONE && undo->state == OP_FAILED) {
        undo->ended_ms = record->at_ms;
    }
}

/* Joins plans. The plan of a child stands beside those of other children that are undone on their own. The saga's own
 * plan holds everything that still stands. */
static uint32_t *join_plans(const struct saga *saga, const struct record *record, uint32_t *count)
{
    uint32_t *plan = arena_array(saga_memory(saga), (size_t)saga->plan_count + record->plan_count + 1, sizeof(*plan)),
             n = 0;

    for (uint32_t i = 0; i < saga->plan_count; i++) {
        if (!step_lies_in(saga, saga->plan[i], record->step)) {
            plan[n++] = saga->plan[i];
        }
    }
    for (uint32_t i = 0; i < record->plan_count; i++) {
        plan[n++] = record->plan[i];
    }
    *count = n;
    return plan;
}

static void apply_plan(struct saga *saga, const struct record *record)
{
    if (record->step == STEP_NONE) {
        saga->phase = PHASE_UNDO;
    } else {
        saga->steps[record->step].group_phase = PHASE_UNDO;
    }
    saga->plan = join_plans(saga, record, &saga->plan_count);
    for (uint32_t i = 0; i < record->plan_count; i++) {
        uint32_t step = record->plan[i];
        bool known = saga->steps[step].forward.took_effect == TOOK_EFFECT_YES || step_can_be_undone_blind(saga, step);

        if (saga->steps[step].plan == PLAN_NONE) { /* otherwise the step is already being undone with its child */
            plan_move(saga, step, known ? PLAN_READY : PLAN_VERDICT);
        }
    }
}

static void apply_waived(struct saga *saga, const struct record *record)
{
    struct step *step = &saga->steps[record->step];

    plan_move(saga, record->step, PLAN_WAIVED);
    /* A person took it on, so nobody probes any more. */
    if (step->forward.state == OP_PROBING) {
        step->forward.state = OP_UNKNOWN;
    }
    if (step->undo && step->undo->state == OP_PROBING) {
        step->undo->state = OP_UNKNOWN;
    }
}

/* --- the saga --- */

static void apply_started(struct saga *saga, const struct record *record)
{
    saga->phase = PHASE_FORWARD;
    saga->namespace = keep(saga, record->namespace);
    saga->business_id = keep(saga, record->business_id);
    saga->tags = keep(saga, record->tags);
    saga->input = keep(saga, record->input);
    saga->trace = trace_context_read(keep(saga, record->traceparent), keep(saga, record->tracestate));
    saga->created_ms = record->at_ms;
    saga->deadline_ms = record->due_ms;
    if (saga_is_open(saga)) {
        apply_opening(saga, record);
    } else {
        saga->budget = saga->definition->budget;
    }
    if (!saga->run.ptr) {
        char *id = arena_alloc(saga_memory(saga), UUID_TEXT_BYTES);

        uuid_text(&saga->id.uuid, id);
        saga->run = slice_of(id);
    }
}

static void apply_failing(struct saga *saga, const struct record *record)
{
    saga->phase = PHASE_FAILING;
    saga->failing_reason = keep(saga, record->error);
    saga->failing_detail = keep(saga, record->detail);
    saga->failing_by = keep(saga, record->actor);
    saga->failing_note = keep(saga, record->note);
    saga->failing_step = record->step;
    pause_end(saga, record->at_ms);
    saga->deadline_ms = 0;
    saga->paused = SLICE_NONE; /* that pause stopped the agent, and does not stop the undo */
}

static void apply_end(struct saga *saga, const struct record *record, enum saga_status end)
{
    saga->phase = PHASE_ENDED;
    saga->end = end;
    saga->ended_ms = record->at_ms;
    saga->deadline_ms = 0;
    if (end == SAGA_COMPLETED) {
        saga->output = keep(saga, record->result);
        saga->followers = keep(saga, record->followers);
        saga->failing_reason = keep(
            saga,
            record->error); /* the reason is about the output and the followers, if anything; an abort came too late */
        saga->failing_detail = keep(saga, record->detail);
        saga->failing_by = saga->failing_note = SLICE_NONE;
        saga->failing_step = STEP_NONE;
    }
}

static void apply_by_type(struct saga *saga, const struct record *record)
{
    switch (record->type) {
    case RECORD_SAGA_STARTED:
        apply_started(saga, record);
        return;
    case RECORD_STEP_UNKNOWN:
        apply_forward(saga, record);
        apply_asked(saga, record, DIRECTION_DO);
        return;
    case RECORD_STEP_PENDING:
    case RECORD_STEP_INTENT:
    case RECORD_STEP_RETRYING:
    case RECORD_STEP_RUNNING:
    case RECORD_STEP_PROBED:
    case RECORD_STEP_SKIPPED:
    case RECORD_STEP_REOPENED:
        apply_forward(saga, record);
        return;
    case RECORD_STEP_COMPLETED:
    case RECORD_STEP_FAILED:
        if (step_is_wait(saga, record->step)) {
            apply_ended_wait(saga, record);
        } else if (step_is_group(&saga->definition->steps[record->step])) {
            apply_ended_group(saga, record);
        } else {
            apply_forward(saga, record);
        }
        return;
    case RECORD_STEP_WAIVED:
        apply_waived(saga, record);
        return;
    case RECORD_STEP_UNDONE:
        apply_undone(saga, record);
        return;
    case RECORD_STEP_CALLED:
        apply_called(saga, record);
        apply_forward(saga, record);
        apply_reserved(saga, record);
        apply_emission(saga, record);
        return;
    case RECORD_STEP_REPEATED:
        apply_forward(saga, record);
        apply_emission(saga, record);
        return;
    case RECORD_STEP_OPENED:
        apply_opened_group(saga, record);
        return;
    case RECORD_STEP_FAILING:
        apply_failing_group(saga, record);
        return;
    case RECORD_STEP_WAITING:
        apply_waiting(saga, record);
        return;
    case RECORD_SIGNAL_RECEIVED:
        apply_signal(saga, record);
        return;
    case RECORD_APPROVAL_DECIDED: /* the next record says what the decision leads to */
        apply_decided(saga, record);
        return;
    case RECORD_LOCK_WANTED:
    case RECORD_LOCK_TAKEN:
        apply_lock(saga, record);
        return;
    case RECORD_STEP_LATE:
    case RECORD_COMPENSATION_LATE:
        apply_late(saga, record);
        return;
    case RECORD_OPERATION_DUPLICATE:
        apply_duplicate(saga, record);
        return;
    case RECORD_OPERATION_PRICED:
        apply_priced(saga, record);
        return;
    case RECORD_TOOL_MENDED:
        apply_mended(saga, record);
        return;
    case RECORD_OPERATION_EXPIRED:
        apply_expired(saga, record);
        return;
    case RECORD_BYPASS_SIGNED:
        apply_bypass(saga, record);
        return;
    case RECORD_LOOP_TRIPPED:
        apply_tripped(saga, record);
        return;
    case RECORD_SAGA_PAUSED:
        apply_paused(saga, record);
        return;
    case RECORD_SAGA_RESUMED:
        apply_resumed(saga, record);
        return;
    case RECORD_SAGA_HELD:
        saga->held_ms = record->at_ms;
        return;
    case RECORD_SAGA_RELEASED:
        hold_end(saga, record->at_ms);
        return;
    case RECORD_RUN_RESTED:
        apply_rested(saga, record);
        return;
    case RECORD_RUN_WOKEN:
        apply_woken(saga);
        return;
    case RECORD_SAGA_FAILING:
        apply_failing(saga, record);
        return;
    case RECORD_COMPENSATION_PLANNED:
        apply_plan(saga, record);
        return;
    case RECORD_COMPENSATION_UNKNOWN:
    case RECORD_COMPENSATION_FAILED:
        apply_undo(saga, record);
        apply_asked(saga, record, DIRECTION_UNDO);
        return;
    case RECORD_COMPENSATION_INTENT:
    case RECORD_COMPENSATION_RETRYING:
    case RECORD_COMPENSATION_RUNNING:
    case RECORD_COMPENSATION_PROBED:
    case RECORD_COMPENSATION_COMPLETED:
    case RECORD_COMPENSATION_REOPENED:
        apply_undo(saga, record);
        return;
    case RECORD_ESCALATION_OPENED:
        apply_opened(saga, record);
        return;
    case RECORD_ESCALATION_RESOLVED:
        apply_resolved(saga, record);
        return;
    case RECORD_SAGA_COMPLETED:
        apply_end(saga, record, SAGA_COMPLETED);
        return;
    case RECORD_SAGA_COMPENSATED:
        apply_end(saga, record, SAGA_COMPENSATED);
        return;
    case RECORD_SAGA_ABANDONED:
        apply_end(saga, record, SAGA_ABANDONED);
        return;
    case RECORD_TYPE_COUNT:
        break;
    }
    UNREACHABLE();
}

void saga_apply(struct saga *saga, const struct record *record)
{
    bool is_about_step = record->step < saga->definition->step_count, begun, over;

    /* Whoever makes or reads a record checks it. It is not checked again here. */
    CHECK(record->seq == saga->seq + 1);
    INVARIANT(record_check(saga, record, NULL));
    begun = is_about_step && saga->steps[record->step].forward.state != OP_NONE;
    over = is_about_step && step_is_over(saga, record->step);
    apply_by_type(saga, record);
    if (is_about_step) {
        apply_member(saga, record->step, begun, over);
    }
    if (record->bulk.ptr) {
        struct bulk_done *done = arena_alloc(saga_memory(saga), sizeof(*done));

        *done = (struct bulk_done){.id = keep(saga, record->bulk), .before = saga->bulk_done};
        saga->bulk_done = done;
    }
    saga->seq = record->seq;
    saga->updated_ms = record->at_ms;
    saga->active_ms = record->type == RECORD_RUN_RESTED ? saga->active_ms : record->at_ms;
    INVARIANT(saga_is_sound(saga));
}
