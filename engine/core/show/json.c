/* Writes the views of a saga that the API shows, as JSON. Payloads come back byte for byte. */
#include "base/json.h"
#include "core/saga/hold.h"
#include "core/saga/machine.h"

#define EARLIER_MAX 10 /* rounds of a case that are shown beside the last one; the log has all of them */

static const char *const registry_states[OP_STATE_COUNT] = {
#define X(id, name, registry_name) [id] = registry_name,
    OP_STATE_MAP(X)
#undef X
};

static void write_uuid(struct json_writer *w, const char *name, const struct uuid *uuid)
{
    char text[UUID_TEXT_BYTES];

    if (uuid_is_nil(uuid)) {
        json_write_null(w, name);
        return;
    }
    uuid_text(uuid, text);
    json_write_text(w, name, text);
}

/* Writes a text, or null when it is empty or missing. */
static void write_optional(struct json_writer *w, const char *name, struct slice text)
{
    json_write_slice(w, name, text.len ? text : SLICE_NONE);
}

/* Writes the answer of the receiver: status, body, and the attempt that got it. */
static void write_answer(struct json_writer *w, const struct operation *op)
{
    struct json_walk walk = json_walk(op->answer);
    struct slice name, value;

    if (json_type(op->answer) != JSON_OBJECT) {
        return;
    }
    json_write_i64(w, "attempt", op->answer_attempt);
    while (json_next_member(&walk, &name, &value)) {
        static const char *const known[] = {"status", "headers", "body", "cut", "not_utf8", "by"};

        for (size_t i = 0; i < COUNT_OF(known); i++) {
            if (slice_is(name, known[i])) {
                json_write_raw(w, known[i], value);
            }
        }
    }
}

static void write_error_as(struct json_writer *w, const char *name, const struct operation *op)
{
    if (!op->error.len) {
        json_write_null(w, name);
        return;
    }
    json_object_begin(w, name);
    json_write_slice(w, "code", op->error);
    write_optional(w, "detail", op->detail);
    write_answer(w, op);
    json_object_end(w);
}

static void write_error(struct json_writer *w, const struct operation *op)
{
    write_error_as(w, "error", op);
}

struct slice operation_error(const struct operation *op, struct arena *arena)
{
    struct json_writer w;
    struct buffer text;
    struct slice json;

    if (!op->error.len) {
        return SLICE_NONE;
    }
    buffer_init(&text, SIZE_MAX / 2); /* each part is bounded already */
    json_writer_init(&w, &text);
    write_error_as(&w, NULL, op);
    json = arena_slice(arena, buffer_slice(&text));
    buffer_fini(&text);
    return json;
}

/* Writes why a saga is undone and who asked for that, or which output or follower of a completed saga is missing. */
static void write_why(struct json_writer *w, const struct saga *saga)
{
    if (!saga->failing_reason.len) {
        json_write_null(w, "error");
        return;
    }
    json_object_begin(w, "error");
    json_write_slice(w, "code", saga->failing_reason);
    write_optional(w, "detail", saga->failing_detail);
    json_write_slice(w, "step",
                     saga->failing_step == STEP_NONE ? SLICE_NONE : saga->definition->steps[saga->failing_step].id);
    write_optional(w, "actor", saga->failing_by);
    write_optional(w, "note", saga->failing_note);
    json_object_end(w);
}

static void write_attempts(struct json_writer *w, const struct operation *op)
{
    json_write_i64(w, "attempts", operation_calls(op));
    json_write_i64(w, "unsent", op->never_left);
}

/*
 * Writes what happens while an operation is tried or probed again: how often and since when, the last result, the next
 * try, and when the engine gives up and asks a person. Writes nothing when no tries are going on.
 */
static void write_trying(struct json_writer *w, const struct saga *saga, uint32_t step, enum direction direction)
{
    const struct operation *op = operation_of(saga, step, direction);
    bool probes = op->state == OP_PROBING;
    struct terms terms;

    if ((!probes && op->state != OP_RETRYING) || saga->phase == PHASE_ENDED || pause_holds(saga)) {
        return;
    }
    terms = operation_terms(saga, step, direction);
    json_object_begin(w, "trying");
    json_write_text(w, "what", probes ? "probe" : "call");
    json_write_instant(w, "since", probes ? op->unknown_ms : op->round_ms);
    json_write_i64(w, "times", probes ? op->probes - op->other_probes : op->counted + op->unsent);
    json_write_instant(w, "last_at", probes ? op->probed_ms > op->unknown_ms ? op->probed_ms : 0 : op->settled_ms);
    write_optional(w, "last_error", op->error);
    json_write_instant(w, "next_at", op->due_ms);
    json_write_instant(w, "person_at",
                       probes && terms.one_probe ? op->due_ms
                       : saga->held_ms           ? 0
                       : probes                  ? terms.probe_limit_ms
                                                 : terms.limit_ms);
    json_object_end(w);
}

/* Writes which hold keeps an operation from beginning, or from being tried again. Writes nothing when none does. */
static void write_held(struct json_writer *w, const struct saga *saga, uint32_t step, enum direction direction)
{
    const struct operation *op = operation_of(saga, step, direction);
    bool undoes = direction == DIRECTION_UNDO && saga->steps[step].plan == PLAN_READY;
    struct arena scratch;

    if (!saga->holds || saga->phase == PHASE_ENDED ||
        (op->state != OP_PENDING && op->state != OP_RETRYING && !undoes)) {
        return;
    }
    arena_init(&scratch, 256);
    const struct hold *hold =
        hold_of_call(saga->holds, saga, saga_tool(saga, step, direction)->name, direction, &scratch);

    if (hold) {
        json_object_begin(w, "held");
        json_write_i64(w, "n", (int64_t)hold->number);
        json_write_instant(w, "since", hold->made_ms);
        json_write_instant(w, "until", hold->until_ms);
        json_write_slice(w, "actor", hold->actor);
        json_write_slice(w, "note", hold->note);
        json_object_end(w);
    }
    arena_fini(&scratch);
}

/* Writes the breaker at which a call waits. False: it waits at none. */
static bool write_breaker(struct json_writer *w, const struct breaker_waits *waits, uint32_t step,
                          enum direction direction)
{
    for (size_t i = 0; waits && i < waits->count; i++) {
        const struct breaker_wait *wait = &waits->items[i];

        if (wait->step == step && wait->direction == direction) {
            json_object_begin(w, "waits_for");
            json_write_text(w, "kind", "breaker");
            json_write_slice(w, "tool", wait->tool);
            json_write_slice(w, "endpoint", wait->endpoint);
            json_write_instant(w, "since", wait->since_ms);
            json_write_instant(w, "until", wait->until_ms);
            json_write_raw(w, "opened_by", wait->opened_by);
            json_write_text(w, "closes", wait->closes);
            json_object_end(w);
            return true;
        }
    }
    return false;
}

/* `order` is the place of the step in the undo plan, 1 for the first; 0 when it is not in the plan. */
static void write_compensation(struct json_writer *w, const struct saga *saga, const struct breaker_waits *waits,
                               uint32_t i, uint32_t order)
{
    const struct step *step = &saga->steps[i];
    bool is_planned =
        step->plan == PLAN_READY || step->plan == PLAN_ACTIVE || step->plan == PLAN_DONE || step->plan == PLAN_FAILED;

    if (!is_planned && step_undo(step)->state == OP_NONE) {
        json_write_null(w, "compensation");
        return;
    }
    json_object_begin(w, "compensation");
    json_write_text(w, "status",
                    step->undone_by.ptr ? step_status_name(STEP_COMPLETED)
                                        : step_status_name(operation_status(step_undo(step))));
    if (step->undone_by.ptr) {
        json_write_slice(w, "undone_by", step->undone_by);
        json_write_slice(w, "undone_note", step->undone_note);
    }
    write_uuid(w, "key", &step_undo(step)->key.uuid);
    write_attempts(w, step_undo(step));
    json_write_raw(w, "result", step_undo(step)->result);
    write_error(w, step_undo(step));
    write_trying(w, saga, i, DIRECTION_UNDO);
    write_held(w, saga, i, DIRECTION_UNDO);
    (void)write_breaker(w, waits, i, DIRECTION_UNDO); /* most wait at none */
    if (order) {
        json_write_i64(w, "order", order);
    } else {
        json_write_null(w, "order");
    }
    json_write_instant(w, "started_at", step_undo(step)->created_ms);
    json_write_instant(w, "ended_at", step_undo(step)->ended_ms);
    json_object_end(w);
}

static const char *kind_name(const struct step_definition *definition)
{
    if (template_is_set(&definition->for_each)) {
        return "for_each";
    }
    switch (definition->kind) {
    case STEP_CALL:
        return "call";
    case STEP_SAGA:
        return "saga";
    case STEP_SLEEP:
        return "sleep";
    case STEP_SIGNAL:
        return "signal";
    case STEP_APPROVE:
        return "approve";
    }
    UNREACHABLE();
}

/* Writes what a step waits for, while it waits. */
static void write_wait(struct json_writer *w, const struct saga *saga, const struct breaker_waits *waits, uint32_t i)
{
    const struct step_definition *definition = &saga->definition->steps[i];

    if (write_breaker(w, waits, i, DIRECTION_DO)) {
        return;
    }
    if (saga->steps[i].forward.state != OP_WAITING || saga->phase == PHASE_ENDED) {
        json_write_null(w, "waits_for");
        return;
    }
    json_object_begin(w, "waits_for");
    json_write_text(w, "kind", kind_name(definition));
    if (definition->kind == STEP_SIGNAL) {
        json_write_slice(w, "signal", definition->signal_name);
    } else if (definition->kind == STEP_APPROVE) {
        json_write_i64(w, "approval", (int64_t)saga->steps[i].approval);
        json_write_raw(w, "show", saga->steps[i].forward.args);
        json_array_begin(w, "roles");
        for (unsigned role = ROLE_READER; role < ROLE_COUNT; role++) {
            if (definition->roles & BIT(role)) {
                json_write_text(w, NULL, role_name((enum role)role));
            }
        }
        json_array_end(w);
        if (definition->not_by_starter) {
            json_write_text(w, "not_by", "starter");
        }
    }
    json_object_end(w);
}

static void write_due(struct json_writer *w, const struct saga *saga, uint32_t i)
{
    const struct operation *op = &saga->steps[i].forward;
    bool comes = op->state == OP_RETRYING || op->state == OP_PROBING || op->state == OP_WAITING || op->state == OP_OPEN;

    json_write_instant(w, "due_at", comes && saga->phase != PHASE_ENDED ? op->due_ms : 0);
}

/* Writes two members, but only for an operation that lost something. */
static void write_lost(struct json_writer *w, const struct operation *op)
{
    if (op->result_error.ptr) {
        json_write_slice(w, "result_error", op->result_error);
    }
    if (op->cost_unknown.ptr) {
        json_write_slice(w, "cost_unknown", op->cost_unknown);
    }
}

/* Writes the currency only where the tool says one, so that a text that an earlier release wrote stays the same. */
static void write_cost_terms(struct json_writer *w, const struct saga *saga, uint32_t step, enum direction direction)
{
    const struct tool *tool = saga_tool(saga, step, direction); /* NULL: a wait or a group, which costs nothing */

    if (tool && tool->currency.ptr) {
        json_write_slice(w, "currency", tool->currency);
    }
    if (operation_cost_is_estimated(saga, step, direction)) {
        json_write_bool(w, "cost_estimated", true);
    }
}

static void write_cost(struct json_writer *w, const struct saga *saga, uint32_t step, enum direction direction)
{
    json_write_i64(w, "cost", operation_of(saga, step, direction)->cost_micros);
    write_cost_terms(w, saga, step, direction);
}

/* What a person decides about costs nothing, or nobody knows what it costs: these are not the same. */
static void write_known_cost(struct json_writer *w, const struct saga *saga, uint32_t step, enum direction direction)
{
    if (operation_cost_is_known(saga, step, direction)) {
        json_write_i64(w, "cost", operation_of(saga, step, direction)->cost_micros);
    } else {
        json_write_null(w, "cost");
    }
    write_cost_terms(w, saga, step, direction);
}

static void write_step(struct json_writer *w, const struct saga *saga, const struct breaker_waits *waits, uint32_t i,
                       uint32_t order)
{
    const struct step *step = &saga->steps[i];
    const struct step_definition *definition = &saga->definition->steps[i];

    json_object_begin(w, NULL);
    json_write_slice(w, "id", definition->id);
    json_write_text(w, "kind", kind_name(definition));
    json_write_slice(w, "tool", step_has_call(saga, i) ? definition->tool->name : SLICE_NONE);
    json_write_slice(w, "group",
                     definition->group == STEP_NONE ? SLICE_NONE : saga->definition->steps[definition->group].id);
    json_write_text(w, "status", step_status_name(saga_step_status(saga, i)));
    json_write_text(w, "took_effect", took_effect_name(saga_took_effect(saga, i)));
    write_uuid(w, "key", &step->forward.key.uuid);
    write_attempts(w, &step->forward);
    json_write_raw(w, "result", step->forward.result);
    write_lost(w, &step->forward);
    write_error(w, &step->forward);
    write_wait(w, saga, waits, i);
    write_due(w, saga, i);
    if (step_has_call(saga, i)) {
        write_trying(w, saga, i, DIRECTION_DO);
        write_held(w, saga, i, DIRECTION_DO);
    }
    json_write_instant(w, "started_at", step->started_ms);
    json_write_instant(w, "ended_at", step->forward.ended_ms);
    write_compensation(w, saga, waits, i, order);
    json_object_end(w);
}

static void write_limit(struct json_writer *w, const char *name, int64_t limit)
{
    if (limit < 0) {
        json_write_null(w, name);
    } else {
        json_write_i64(w, name, limit);
    }
}

static void write_budget(struct json_writer *w, const char *name, const struct budget *budget)
{
    json_object_begin(w, name);
    write_limit(w, "calls", budget->calls);
    write_limit(w, "emissions", budget->emissions);
    write_limit(w, "micros", budget->micros);
    json_object_end(w);
}

/* Writes the members that only sagas of agents have. */
static void write_opening(struct json_writer *w, const struct saga *saga)
{
    uint32_t sealed_by = saga_sealed_by(saga);

    json_write_bool(w, "open", saga->definition->kind == SAGA_OPEN);
    if (saga->definition->kind == SAGA_RUN) {
        json_write_slice(w, "run", saga->run);
    }
    json_write_slice(w, "sealed_by", sealed_by == STEP_NONE ? SLICE_NONE : saga->definition->steps[sealed_by].id);
    write_budget(w, "budget", &saga->budget);
    write_budget(w, "used", &saga->used);
}

static void write_locks(struct json_writer *w, const struct saga *saga)
{
    json_array_begin(w, "locks");
    for (uint32_t i = 0; i < saga->lock_count; i++) {
        json_object_begin(w, NULL);
        json_write_slice(w, "key", saga->locks[i].key);
        json_write_text(w, "when_taken", saga->locks[i].fails ? "fail" : "wait");
        /* Locks are taken in this order, so the saga does not wait yet for those behind the one that it waits for. */
        json_write_text(w, "status", i < saga->lock_taken ? "held" : i == saga->lock_taken ? "waiting" : "wanted");
        json_object_end(w);
    }
    json_array_end(w);
}

static void write_steps(struct json_writer *w, const struct saga *saga, const struct breaker_waits *waits)
{
    uint32_t count = saga->definition->step_count, *order;
    struct arena scratch;

    arena_init(&scratch, 4096);
    order = arena_array(&scratch, (size_t)count + 1, sizeof(*order));
    for (uint32_t i = 0; i < saga->plan_count; i++) {
        order[saga->plan[i]] = i + 1;
    }
    json_array_begin(w, "steps");
    for (uint32_t i = 0; i < count; i++) {
        write_step(w, saga, waits, i, order[i]);
    }
    json_array_end(w);
    arena_fini(&scratch);
}

/* Writes the debts of an abandoned saga: the steps whose effects stand, or may stand. */
static void write_debts(struct json_writer *w, const struct saga *saga)
{
    json_array_begin(w, "debts");
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (step_may_stand(saga, i)) {
            json_write_slice(w, NULL, saga->definition->steps[i].id);
        }
    }
    json_array_end(w);
}

/* Writes how long holds kept calls of the saga, and since when one does. A saga may end under a hold. */
static void write_held_time(struct json_writer *w, const struct saga *saga)
{
    bool is_over = saga->phase == PHASE_ENDED;
    int64_t last_ms = is_over && saga->held_ms && saga->ended_ms > saga->held_ms ? saga->ended_ms - saga->held_ms : 0;

    if (saga->held_ms || saga->held_before_ms) {
        json_write_instant(w, "held_since", is_over ? 0 : saga->held_ms);
        json_write_i64(w, "held_ms", saga->held_before_ms + last_ms);
    }
}

void saga_write_json(const struct saga *saga, struct buffer *out)
{
    saga_write_json_waiting(saga, NULL, out);
}

void saga_write_json_waiting(const struct saga *saga, const struct breaker_waits *waits, struct buffer *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    write_uuid(&w, "id", &saga->id.uuid);
    if (saga->definition->kind == SAGA_OPEN) {
        json_write_null(&w, "saga");
    } else {
        json_write_slice(&w, "saga", saga->definition->name);
    }
    if (saga_is_open(saga)) {
        json_write_null(&w, "version");
        write_opening(&w, saga);
    } else {
        json_write_i64(&w, "version", saga->definition->version);
    }
    write_optional(&w, "business_id", saga->business_id);
    json_write_text(&w, "status", saga_status_name(saga_status(saga)));
    write_why(&w, saga);
    write_optional(&w, "paused", saga->paused);
    if (saga->paused.ptr) {
        write_optional(&w, "paused_by", saga->paused_by);
        write_optional(&w, "paused_note", saga->paused_note);
    }
    write_held_time(&w, saga);
    json_write_instant(&w, "deadline", saga->deadline_ms);
    json_write_raw(&w, "input", saga->input);
    json_write_raw(&w, "output", saga->output);
    write_steps(&w, saga, waits);
    if (saga->escalation.number) {
        json_write_i64(&w, "escalation", (int64_t)saga->escalation.number);
    } else {
        json_write_null(&w, "escalation");
    }
    if (saga->lock_count > 0 && saga->phase != PHASE_ENDED) {
        write_locks(&w, saga);
    }
    if (saga->signal_kept > 0 && saga->phase == PHASE_FORWARD) {
        json_write_i64(&w, "signals", saga->signal_kept); /* signals that no step has taken yet */
    }
    if (saga->phase == PHASE_ENDED && saga->end == SAGA_ABANDONED) {
        write_debts(&w, saga);
    }
    if (saga->followers.ptr) {
        json_write_raw(&w, "followers", saga->followers);
    }
    json_write_i64(&w, "cost", saga->used.micros);
    json_write_raw(&w, "tags", saga->tags.len ? saga->tags : SLICE("{}"));
    json_write_instant(&w, "created_at", saga->created_ms);
    json_write_instant(&w, "updated_at", saga->updated_ms);
    json_write_instant(&w, "ended_at", saga->ended_ms);
    json_object_end(&w);
}

/* --- operations --- */

static const char *registry_state(const struct saga *saga, uint32_t step, enum direction direction,
                                  const struct operation *op)
{
    const struct escalation *open = &saga->escalation;

    /* The contract has a separate state for an operation that a person is asked about. */
    if (open->number && open->step == step && open->direction == direction && op->state != OP_PROBING) {
        return "escalated";
    }
    if ((op->state == OP_RETRYING && op->took_effect == TOOK_EFFECT_MAYBE) ||
        (op->state == OP_PROBING && op->accepted)) {
        return "in_flight";
    }
    return registry_states[op->state];
}

static void write_whole(const struct saga *saga, uint32_t step, enum direction direction, bool expired,
                        struct buffer *out)
{
    const struct operation *op = operation_of(saga, step, direction);
    const struct tool *tool = saga_tool(saga, step, direction);
    struct json_writer w;

    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    write_uuid(&w, "key", &op->key.uuid);
    json_write_text(&w, "state", registry_state(saga, step, direction, op));
    json_write_text(&w, "took_effect", took_effect_name(op->took_effect));
    json_write_slice(&w, "run", saga->run);
    write_uuid(&w, "saga", &saga->id.uuid);
    json_write_slice(&w, "step", step_key_name(saga, step));
    json_write_slice(&w, "tool", tool->name);
    json_write_i64(&w, "tool_version", op->tool_version ? op->tool_version : tool->version);
    json_write_slice(&w, "scope", op->scope.ptr ? op->scope : SLICE(""));
    json_write_i64(&w, "generation", op->generation);
    json_write_text(&w, "class", effect_name(operation_effect(saga, step, direction)));
    write_attempts(&w, op);
    json_write_raw(&w, "args", expired ? SLICE_NONE : op->args); /* arguments and result that have expired are null */
    json_write_raw(&w, "result", expired ? SLICE_NONE : op->result);
    write_lost(&w, op);
    write_error(&w, op);
    write_held(&w, saga, step, direction);
    write_cost(&w, saga, step, direction);
    json_write_bool(&w, "duplicate", false);
    json_write_i64(&w, "duplicates_seen", op->duplicates);
    if (direction == DIRECTION_DO && !uuid_is_nil(&saga->steps[step].earlier_key.uuid)) {
        write_uuid(&w, "earlier_key", &saga->steps[step].earlier_key.uuid);
    }
    json_write_instant(&w, "first_sent_at", op->first_sent_ms);
    json_write_instant(&w, "last_sent_at", op->last_sent_ms);
    json_write_instant(&w, "created_at", op->created_ms);
    json_write_instant(&w, "ended_at", op->ended_ms);
    json_object_end(&w);
}

void saga_write_operation(const struct saga *saga, uint32_t step, enum direction direction, struct buffer *out)
{
    write_whole(saga, step, direction, false, out);
}

void saga_write_operation_bare(const struct saga *saga, uint32_t step, struct buffer *out)
{
    write_whole(saga, step, DIRECTION_DO, true, out);
}

/* An undo answers no repeats, but its arguments come from the result, so they are hidden with it. */
void saga_write_operation_at(const struct saga *saga, uint32_t step, enum direction direction, int64_t now_ms,
                             struct buffer *out)
{
    write_whole(saga, step, direction, operation_has_expired(saga, step, now_ms), out);
}

/* --- escalations --- */

static void write_verdicts(struct json_writer *w, const struct saga *saga)
{
    unsigned verdicts = saga_escalation_verdicts(saga);

    json_array_begin(w, "as");
    for (unsigned i = 0; i < CASE_VERDICT_COUNT; i++) {
        if (verdicts & BIT(i)) {
            json_write_text(w, NULL, case_verdict_name((enum case_verdict)i));
        }
    }
    json_array_end(w);
}

static void write_actions(struct json_writer *w, const struct saga *saga)
{
    unsigned actions = saga_escalation_actions(saga);

    json_array_begin(w, "actions");
    for (unsigned i = 0; i < OPERATOR_ACTION_COUNT; i++) {
        if (actions & BIT(i)) {
            json_object_begin(w, NULL);
            json_write_text(w, "action", operator_action_name((enum operator_action)i));
            json_write_text(w, "does", operator_action_does(saga, (enum operator_action)i));
            if (i == OPERATOR_RESOLVE) {
                write_verdicts(w, saga);
            }
            json_object_end(w);
        }
    }
    json_array_end(w);
}

static void write_decision(struct json_writer *w, const struct case_round *asked)
{
    json_write_instant(w, "resolved_at", asked->resolved_ms);
    json_write_slice(w, "action", asked->action);
    json_write_slice(w, "as", asked->verdict);
    json_write_slice(w, "actor", asked->actor);
    json_write_slice(w, "note", asked->note);
}

/* The rounds before this one, the newest first; and which round was answered under which Idempotency-Key. */
static void write_rounds(struct json_writer *w, const struct case_round *asked)
{
    uint32_t listed = 0;

    json_write_i64(w, "round", asked->round);
    json_array_begin(w, "earlier");
    for (const struct case_round *at = asked->before; at && listed++ < EARLIER_MAX; at = at->before) {
        json_object_begin(w, NULL);
        json_write_i64(w, "round", at->round);
        json_write_slice(w, "reason", at->reason);
        json_write_instant(w, "opened_at", at->opened_ms);
        write_decision(w, at);
        json_object_end(w);
    }
    json_array_end(w);
}

static void write_requests(struct json_writer *w, const struct case_round *asked, const struct record *resolved)
{
    uint32_t listed = 0;

    json_array_begin(w, CASE_REQUESTS);
    for (const struct case_round *at = asked; at && listed++ <= EARLIER_MAX; at = at->before) {
        struct slice request = at == asked && resolved ? resolved->request : at->request;

        if (request.ptr) {
            json_object_begin(w, NULL);
            json_write_i64(w, "round", at->round);
            json_write_slice(w, "request", request);
            json_object_end(w);
        }
    }
    json_array_end(w);
}

static void write_escalation(const struct saga *saga, const struct record *resolved, struct buffer *out)
{
    const struct escalation *open = &saga->escalation;
    const struct case_round *asked = saga_asked(saga, open->step, open->direction);
    struct json_writer w;

    CHECK(open->number != 0);
    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_write_i64(&w, "n", (int64_t)open->number);
    write_uuid(&w, "saga", &saga->id.uuid);
    if (open->step == STEP_NONE) { /* the case is about the saga as a whole */
        json_write_null(&w, "step");
        json_write_null(&w, "operation");
    } else {
        json_write_slice(&w, "step", saga->definition->steps[open->step].id);
        write_uuid(&w, "operation", &operation_of(saga, open->step, open->direction)->key.uuid);
    }
    json_write_slice(&w, "reason", open->reason);
    json_write_text(&w, "status", resolved ? "resolved" : "open");
    json_write_instant(&w, "opened_at", open->opened_ms);
    write_rounds(&w, asked);
    json_write_slice(&w, "asked_by", open->raised_by);
    json_write_slice(&w, "asked_note", open->raised_note);
    if (open->step == STEP_NONE) {
        json_write_null(&w, "cost");
    } else {
        write_known_cost(&w, saga, open->step, open->direction);
    }
    json_write_raw(&w, "evidence", open->evidence);
    if (resolved) {
        json_array_begin(&w, "actions");
        json_array_end(&w);
    } else {
        write_actions(&w, saga);
    }
    write_decision(&w, resolved ? &(struct case_round){.resolved_ms = resolved->at_ms,
                                                       .action = resolved->action,
                                                       .verdict = resolved->verdict,
                                                       .actor = resolved->actor,
                                                       .note = resolved->note}
                                : asked);
    write_requests(&w, asked, resolved);
    json_object_end(&w);
}

void saga_write_escalation(const struct saga *saga, struct buffer *out)
{
    write_escalation(saga, NULL, out);
}

void saga_write_escalation_resolved(const struct saga *saga, const struct record *resolved, struct buffer *out)
{
    CHECK(resolved->type == RECORD_ESCALATION_RESOLVED && resolved->escalation == saga->escalation.number);
    write_escalation(saga, resolved, out);
}
