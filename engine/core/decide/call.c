/*
 * Decides about an agent's call: is it a repeat, may it come in, and what does it begin? The order of the questions is
 * the contract: the same emission, paused, loop, duplicate, the saga's rules, its budget. A refusal of a new call
 * leaves no record; a decision about a duplicate does.
 *
 * Reads have no effect that could happen twice. They are also told apart by their arguments, and called again each
 * time. So one step may read two things at once, and neither gets the answer of the other.
 *
 * A repeat that is answered from the record of a run that slept lets the run rest again in the same turn: the run does
 * not become unfinished for one answer. When the next repeat comes soon, the run stays awake, so that an agent that
 * repeats many calls has the run read once.
 */
#include "core/decide/call.h"

#include <string.h>

#include "base/json.h"
#include "core/saga/hold.h"

struct slice call_name(const struct call_case *call)
{
    return call->step.ptr[0] == '~' ? call->tool->name : call->step;
}

/* Refuses without a record. */
static void call_refuse(struct call_case *call, enum err_code code, struct slice message, struct slice hint)
{
    call->m->out->answer = (struct call_answer){.code = code, .step = call->found, .message = message, .hint = hint};
}

static void refuse_for_now(struct call_case *call, enum err_code code, int64_t retry_after_ms, struct slice message,
                           struct slice hint)
{
    call_refuse(call, code, message, hint);
    call->m->out->answer.retry_after_ms = retry_after_ms;
}

/* --- the saga's rules --- */

static bool is_paused(struct call_case *call)
{
    const struct saga *saga = call->m->saga;

    if (saga->paused.ptr) {
        refuse_for_now(
            call, ERR_PAUSED, CALL_RETRY_PERSON_MS,
            arena_printf(call->m->turn,
                         "nothing is called here until an operator resumes it; it is paused because of: %.*s",
                         SLICE_ARG(saga->paused)),
            SLICE("An operator can see why in the log, and resume it."));
    }
    return saga->paused.ptr != NULL;
}

static bool is_held(struct call_case *call, const struct tool *tool)
{
    struct machine *m = call->m;
    const struct hold *hold = hold_of_call(m->input->holds, m->saga, tool->name, DIRECTION_DO, m->turn);
    int64_t left_ms;

    if (!hold) {
        return false;
    }
    left_ms = hold->until_ms ? hold->until_ms - m->input->now_ms : CALL_RETRY_PERSON_MS;
    refuse_for_now(call, ERR_HELD, left_ms > CALL_RETRY_LEAST_MS ? left_ms : CALL_RETRY_LEAST_MS,
                   arena_printf(m->turn, "%.*s is held by %.*s: %.*s", SLICE_ARG(call_name(call)),
                                SLICE_ARG(hold->actor), SLICE_ARG(hold->note)),
                   SLICE("Nothing was recorded. Call it again when the hold is released."));
    return true;
}

static bool let_in_by_phase(struct call_case *call)
{
    struct machine *m = call->m;
    const struct saga *saga = m->saga;

    if (saga->phase == PHASE_ENDED) {
        call_refuse(call, ERR_CLOSED,
                    arena_printf(m->turn, "the saga has ended %s and takes no new calls", saga_status_name(saga->end)),
                    SLICE("Open another saga. What was called before can still be asked for."));
        return false;
    }
    if (saga->phase != PHASE_FORWARD) {
        call_refuse(call, ERR_CLOSED, SLICE("the saga is being undone and takes no new calls"),
                    SLICE("Wait for its end, then open another saga."));
        return false;
    }
    if (saga->escalation.number && saga->escalation.step == STEP_NONE) {
        refuse_for_now(call, ERR_AWAITING, CALL_RETRY_PERSON_MS,
                       arena_printf(m->turn, "a person has to decide first how the saga goes on: %.*s",
                                    SLICE_ARG(saga->escalation.reason)),
                       SLICE("Ask again later, or see GET /v1/escalations."));
        return false;
    }
    return true;
}

static bool let_in_by_order(struct call_case *call, const struct tool *tool, enum effect effect, uint32_t except)
{
    struct machine *m = call->m;
    const struct saga *saga = m->saga;
    enum err_code code = saga_admits(saga, tool, effect, except);
    struct slice open;

    if (code == ERR_SEALED) {
        open = saga->definition->steps[saga_sealed_by(saga)].id;
        call_refuse(call, ERR_SEALED,
                    arena_printf(m->turn, "%.*s cannot be undone and was the last effect of the saga", SLICE_ARG(open)),
                    SLICE("Complete the saga. Reads still pass; more effects need another saga."));
        return false;
    }
    if (code == ERR_UNSETTLED) {
        open = unsettled_list(saga, m->turn);
        refuse_for_now(
            call, ERR_UNSETTLED, CALL_RETRY_LEAST_MS,
            arena_printf(m->turn,
                         "%.*s cannot be undone and so comes last, but not everything before it is settled: %.*s",
                         SLICE_ARG(call_name(call)), SLICE_ARG(open)),
            SLICE("Call it again when the others have their results."));
        return false;
    }
    if (saga->definition->kind == SAGA_OPEN && tool->terminal && effect != EFFECT_READ && saga->escalation.number) {
        refuse_for_now(
            call, ERR_UNSETTLED, CALL_RETRY_PERSON_MS,
            arena_printf(
                m->turn,
                "%.*s cannot be undone and so comes last, but a person is still asked about something before it",
                SLICE_ARG(call_name(call))),
            SLICE("Call it again when that is decided; see GET /v1/escalations."));
        return false;
    }
    return true;
}

static bool let_in_by_budget(struct call_case *call, const struct tool *tool)
{
    struct machine *m = call->m;
    const char *what = saga_over_budget(m->saga, tool, !call->same_emission, true);

    if (what) {
        call_refuse(call, ERR_BUDGET,
                    arena_printf(m->turn, "the budget of %s is used up: %s",
                                 m->saga->definition->kind == SAGA_RUN ? "the run" : "the saga", what),
                    SLICE("End the work here, with what was reached or by an abort."));
    }
    return !what;
}

/* May the call come in? `except` is the operation that is called again, or STEP_NONE for a new one. */
static bool let_in(struct call_case *call, const struct tool *tool, enum effect effect, uint32_t except)
{
    return !is_paused(call) && !is_held(call, tool) && let_in_by_phase(call) &&
           let_in_by_order(call, tool, effect, except) && let_in_by_budget(call, tool);
}

/* --- beginning --- */

/* Lets the call leave. Reads and calls that may be repeated under their key leave with the record. Other calls must be
 * known as not sent in between, or have a guard. */
static void leave(struct machine *m, uint32_t step)
{
    enum effect effect = operation_effect(m->saga, step, DIRECTION_DO);

    if (!m->saga->definition->steps[step].tool->guarded &&
        (effect == EFFECT_READ || effect == EFFECT_IDEMPOTENT || effect == EFFECT_KEYED)) {
        operation_attempt(m, step, DIRECTION_DO);
    }
}

/* Does the newest version accept the call? The question is asked only when that version, or a read, would be sent
 * now. */
static bool fits(struct call_case *call)
{
    const struct saga_input *input = call->m->input;

    if (input->call.unfit == ERR_OK) {
        return true;
    }
    call_refuse(call, input->call.unfit, input->call.unfit_message,
                input->call.unfit_hint.ptr ? input->call.unfit_hint
                                           : SLICE("See the tool's definition: GET /v1/tools."));
    return false;
}

static bool may_be_called(struct call_case *call)
{
    struct step_definition definition;

    if (!fits(call)) {
        return false;
    }
    if (step_definition_of_call(call->tool, call->m->input->call.undo, &definition)) {
        return true;
    }
    call_refuse(call, ERR_INVALID,
                arena_printf(call->m->turn,
                             "%.*s can only be a compensator: it has neither `compensate` nor `terminal`",
                             SLICE_ARG(call->tool->name)),
                SLICE("Its definition has to say how its effect is undone, or that it cannot be."));
    return false;
}

bool call_log_is_full(const struct call_case *call)
{
    return call->m->saga->seq >= CALL_RECORDS_MAX;
}

/* Refuses a call when the log is full. Returns true after the refusal. An earlier call is still answered when that
 * needs no record. */
static bool log_is_full(struct call_case *call)
{
    if (!call_log_is_full(call)) {
        return false;
    }
    call_refuse(
        call, ERR_CONFLICT,
        arena_printf(call->m->turn, "the log of this has %d records already, and calls add no more", CALL_RECORDS_MAX),
        SLICE("Use another run, or another saga, for what comes next."));
    return true;
}

static bool there_is_room(struct call_case *call)
{
    if (call->m->saga->definition->step_count < CALL_OPERATIONS_MAX) {
        return true;
    }
    call_refuse(call, ERR_CONFLICT,
                arena_printf(call->m->turn, "there are %d operations in this already, and there may be no more",
                             CALL_OPERATIONS_MAX),
                SLICE("Use another run, or another saga, for what comes next."));
    return false;
}

/* Returns the name under which the step is shown: its own, or with a number when another scope, tool or generation has
 * that name. */
static struct slice unique_label(const struct call_case *call)
{
    const struct saga *saga = call->m->saga;
    uint32_t others = 0;

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        others += slice_equal(step_key_name(saga, i), call->step);
    }
    return others == 0 ? call->step : arena_printf(call->m->turn, "%.*s~%u", SLICE_ARG(call->step), others + 1);
}

static void identify(const struct call_case *call, struct record *record)
{
    const struct saga *saga = call->m->saga;
    struct op_identity identity = {
        .namespace = saga->namespace,
        .run = saga->run,
        .step = call->step,
        .tool = call->tool->name,
        .scope = record->scope,
        .direction = DIRECTION_DO,
        .generation = saga_next_generation(saga, call->step, call->tool->name, record->scope),
    };

    record->generation = identity.generation;
    record->key = op_key_make(&identity);
    if (call->newest != STEP_NONE) {
        record->earlier_key = saga->steps[call->found != STEP_NONE ? call->found : call->newest].forward.key;
    }
}

void call_begin(struct call_case *call, const char *decision)
{
    struct machine *m = call->m;
    const struct saga_input *input = m->input;
    const struct tool *tool = call->tool, *undo = input->call.undo;
    struct record record = {.type = RECORD_STEP_CALLED, .step = m->saga->definition->step_count};

    if (!may_be_called(call) || !let_in(call, tool, input->call.effect, STEP_NONE) || !there_is_room(call)) {
        return;
    }
    record.args = input->call.args;
    record.scope = input->call.scope;
    /* A signed call is told by the members that counted when it was signed, even when the tool has changed since. */
    record.fingerprint = decision && strcmp(decision, "bypass") == 0
                             ? call->fingerprint
                             : op_fingerprint(tool->name, input->call.args, &tool->volatiles, m->turn);
    record.effect = input->call.effect;
    record.conditional = tool->conditional;
    record.cost_micros = tool->cost_fixed_micros;
    record.emission = input->call.emission;
    record.conversation_turn = input->call.conversation_turn;
    record.actor = input->call.actor;
    record.call_step = call->step;
    record.label = unique_label(call);
    record.tool_name = tool->name;
    record.tool_version = tool->version;
    if (undo) {
        record.undo_name = undo->name;
        record.undo_version = undo->version;
    }
    record.decision = slice_of(decision);
    identify(call, &record);
    m->out->answer = (struct call_answer){.step = record.step};
    machine_emit(m, &record);
    leave(m, record.step);
}

void call_repeat(struct call_case *call)
{
    struct machine *m = call->m;
    const struct tool *tool = m->saga->definition->steps[call->found].tool;
    const struct operation *op = &m->saga->steps[call->found].forward;
    struct record record = {.type = RECORD_STEP_REPEATED, .step = call->found};

    if (log_is_full(call) || (op->effect == EFFECT_READ && !fits(call)) ||
        !let_in(call, tool, op->effect, call->found)) {
        return;
    }
    record.key = op->key;
    record.fingerprint = call->fingerprint;
    record.cost_micros = tool->cost_fixed_micros;
    record.emission = m->input->call.emission;
    record.conversation_turn = m->input->call.conversation_turn;
    record.actor = m->input->call.actor;
    m->out->answer = (struct call_answer){.step = call->found};
    machine_emit(m, &record);
    leave(m, record.step);
}

/* --- which operation it is about --- */

static bool is_of_identity(const struct call_case *call, uint32_t step)
{
    const struct saga *saga = call->m->saga;

    return slice_equal(step_key_name(saga, step), call->step) &&
           slice_equal(saga->definition->steps[step].tool->name, call->tool->name) &&
           slice_equal(saga->steps[step].forward.scope, call->m->input->call.scope);
}

static struct digest fingerprint_under(const struct call_case *call, const struct tool *tool)
{
    return op_fingerprint(tool->name, call->m->input->call.args, &tool->volatiles, call->m->turn);
}

/*
 * Is the call a repeat of this operation, of the same identity? The class with which the operation began decides,
 * whatever the tool has become since. Only a tool of two classes tells its reads from its effects by the arguments.
 */
static bool is_repeat_of(const struct call_case *call, uint32_t step, const struct digest *fingerprint)
{
    const struct saga *saga = call->m->saga;
    const struct operation *op = &saga->steps[step].forward;
    const struct tool *tool = saga->definition->steps[step].tool;
    bool same = digest_equal(fingerprint, &op->fingerprint);
    bool told_apart = tool->conditional && call->tool->conditional && (tool->version == call->tool->version || !same);
    bool reads = (told_apart ? call->m->input->call.effect : op->effect) == EFFECT_READ;

    if (reads != (op->effect == EFFECT_READ)) {
        return false;
    }
    return !reads || (same && !op->expired); /* an expired operation has lost its arguments, so a read begins anew */
}

/* Finds the newest operation of this identity; for reads, the newest with these arguments. */
static void find_operation(struct call_case *call)
{
    const struct saga *saga = call->m->saga;

    call->newest = call->found = STEP_NONE;
    call->fingerprint = fingerprint_under(call, call->tool);
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        struct digest fingerprint;

        if (!is_of_identity(call, i)) {
            continue;
        }
        call->newest = i;
        fingerprint = fingerprint_under(call, saga->definition->steps[i].tool);
        if (is_repeat_of(call, i, &fingerprint)) {
            call->found = i;
            call->fingerprint = fingerprint;
        }
    }
}

/* Is the request the same, to the last byte that counts? A signed one is told by the members that counted before, see
 * call_begin(). */
static bool is_same_request(const struct call_case *call, const struct emission *known)
{
    const struct saga *saga = call->m->saga;
    enum direction direction;
    uint32_t earlier = saga_find_key(saga, &saga->steps[known->step].earlier_key, &direction);
    struct digest fingerprint = fingerprint_under(call, saga->definition->steps[known->step].tool);

    if (!is_of_identity(call, known->step)) {
        return false;
    }
    if (!digest_equal(&fingerprint, &known->fingerprint) && earlier != STEP_NONE) {
        fingerprint = fingerprint_under(call, saga->definition->steps[earlier].tool);
    }
    return digest_equal(&fingerprint, &known->fingerprint);
}

/* Decides a known emission. Returns true when nothing else is left to decide. */
static bool decide_by_emission(struct call_case *call)
{
    struct machine *m = call->m;
    struct slice id = m->input->call.emission;
    const struct emission *known = id.ptr ? emissions_find(m->saga->emissions, id) : NULL;

    if (!known) {
        return false;
    }
    call->same_emission = true;
    call->found = known->step;
    if (!is_same_request(call, known)) {
        call_refuse(call, ERR_OTHER_INPUT, SLICE("this Idempotency-Key came with another call before"),
                    SLICE("Each call that is not a repeat needs a new one."));
        return true;
    }
    call->fingerprint = known->fingerprint;
    duplicate_decide(call);
    return true;
}

/* --- loops --- */

static bool is_new_turn(const struct machine *m)
{
    struct slice turn = m->input->call.conversation_turn;

    return turn.ptr && !slice_equal(turn, m->saga->conversation_turn);
}

/* Is the answer still awaited? Asking for it again is no loop. */
static bool is_awaited(const struct call_case *call)
{
    const struct saga *saga = call->m->saga;
    const struct operation *op;

    if (call->found == STEP_NONE) {
        return false;
    }
    op = &saga->steps[call->found].forward;
    return operation_is_open(op) || op->state == OP_UNKNOWN ||
           (saga->escalation.number && saga->escalation.step == call->found);
}

static bool is_signed_for(const struct call_case *call)
{
    const struct bypass *bypass = call->found == STEP_NONE ? NULL : call->m->saga->steps[call->found].bypass;

    return bypass && bypass->expires_ms > call->m->input->now_ms &&
           digest_equal(&bypass->fingerprint, &call->fingerprint);
}

static void write_call(struct json_writer *w, struct slice tool, struct slice step, struct slice scope)
{
    json_object_begin(w, NULL);
    json_write_slice(w, "tool", tool);
    json_write_slice(w, "step", step);
    json_write_slice(w, "scope", scope);
    json_object_end(w);
}

/* Returns the calls of the round, with this one last. */
static struct slice pattern_json(const struct call_case *call, uint32_t length)
{
    const struct saga *saga = call->m->saga;
    struct buffer out;
    struct json_writer w;
    struct slice text;

    buffer_init(&out, (size_t)64 * 1024);
    json_writer_init(&w, &out);
    json_array_begin(&w, NULL);
    for (uint32_t back = length - 1; back > 0; back--) {
        uint32_t step = saga->loop->entries[saga->loop->count - back].step;

        write_call(&w, saga->definition->steps[step].tool->name, step_key_name(saga, step),
                   saga->steps[step].forward.scope);
    }
    write_call(&w, call->tool->name, call->step, call->m->input->call.scope);
    json_array_end(&w);
    CHECK(!out.overflow);
    text = arena_slice(call->m->turn, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

static void refuse_loop(struct call_case *call, struct slice pattern)
{
    struct slice message = arena_printf(call->m->turn, "the same calls went round %u times with the same answers",
                                        call->m->saga->loop->repeats);
    struct slice hint = SLICE("Do not repeat them: use the answers, do something else, or ask the user. A new turn or "
                              "an operator lets them pass again.");
    struct call_decision decision = {.decision = "loop", .code = ERR_LOOP, .message = message, .hint = hint};

    if (call->found != STEP_NONE && pattern.ptr) {
        duplicate_emit(call, &decision);
    } else {
        call_refuse(call, ERR_LOOP, message, hint);
        call->m->out->answer.decision = "loop";
    }
    call->m->out->answer.pattern = pattern;
}

static void trip(struct call_case *call, uint32_t length)
{
    struct machine *m = call->m;
    struct saga *saga = m->saga;
    struct record record = {.type = RECORD_LOOP_TRIPPED,
                            .step = call->found,
                            .scope = m->input->call.scope,
                            .fingerprint = call->fingerprint,
                            .tool_name = call->tool->name,
                            .pattern = pattern_json(call, length),
                            .repeats = saga->loop->repeats,
                            .emission = m->input->call.emission,
                            .conversation_turn = m->input->call.conversation_turn,
                            .actor = m->input->call.actor};

    if (call->found != STEP_NONE) {
        record.key = saga->steps[call->found].forward.key;
    }
    refuse_loop(call, record.pattern);
    if (saga->phase != PHASE_FORWARD) {
        return; /* nothing can be closed there any more */
    }
    machine_emit(m, &record);
    if (saga->loop->trips >= 2) {
        machine_emit(m, &(struct record){.type = RECORD_SAGA_PAUSED, .step = STEP_NONE, .reason = SLICE("loop")});
        m->out->answer.hint = SLICE("It was the second loop: nothing is called any more until an operator resumes it.");
    }
}

/* Decides a loop. Returns true when the call goes round in circles and was answered with that. */
static bool decide_by_loop(struct call_case *call)
{
    struct machine *m = call->m;
    uint64_t signature = loop_call(call->tool->name, m->input->call.scope, &call->fingerprint);
    uint32_t length;

    if (is_new_turn(m) || is_awaited(call) || is_signed_for(call)) {
        return false;
    }
    if (loop_guard_is_closed(m->saga->loop, signature)) {
        refuse_loop(call, SLICE_NONE);
        return true;
    }
    length = loop_guard_trips(m->saga->loop, signature);
    if (length > 0) {
        trip(call, length);
    }
    return length > 0;
}

/* --- the order of the questions --- */

static bool aliases_are_full(struct call_case *call)
{
    if (!call->m->input->call.emission.ptr || call->m->saga->emissions->count < EMISSIONS_MAX) {
        return false;
    }
    call_refuse(call, ERR_CONFLICT,
                arena_printf(call->m->turn, "%d requests were answered in this already, and more cannot be told apart",
                             EMISSIONS_MAX),
                SLICE("Use another run, or another saga, for what comes next."));
    return true;
}

static void decide_in_order(struct call_case *call)
{
    if (decide_by_emission(call)) {
        return;
    }
    find_operation(call);
    if (is_paused(call) || aliases_are_full(call) || log_is_full(call) || decide_by_loop(call)) {
        return;
    }
    if (call->found != STEP_NONE) {
        duplicate_decide(call);
    } else {
        call_begin(call, call->newest == STEP_NONE ? NULL : "allow");
    }
}

bool call_step_is_good(struct slice name)
{
    static const char others[] = "._:/-";

    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr(others, c)))) {
            return false;
        }
    }
    return name.len > 0 && name.len <= CALL_STEP_BYTES_MAX;
}

enum err_code call_decide(struct machine *m)
{
    const struct saga_input *input = m->input;
    struct call_case call = {.m = m, .tool = input->call.tool, .found = STEP_NONE, .newest = STEP_NONE};
    bool slept = run_sleeps(m);
    size_t begun;

    CHECK(call.tool);
    CHECK(input->call.scope.len <= CALL_SCOPE_BYTES_MAX);
    CHECK(!input->call.step.ptr || call_step_is_good(input->call.step));
    call.step = input->call.step.ptr ? input->call.step : arena_printf(m->turn, "~%.*s", SLICE_ARG(call.tool->name));
    if (!saga_is_open(m->saga) || (m->saga->definition->kind == SAGA_OPEN && m->saga->seq == 0)) {
        call_refuse(&call, ERR_CONFLICT, SLICE("only open sagas and runs take calls"),
                    SLICE("Open one with POST /v1/sagas {\"open\": true}, or call POST /v1/operations with a run."));
        return ERR_OK;
    }
    run_begin(m);
    begun = m->out->count;
    decide_in_order(&call);
    if (m->out->count == begun) { /* a refusal that leaves no trace does not wake anyone, either */
        m->out->count = 0;
    } else if (slept) {
        run_rest_again(m);
    }
    return ERR_OK;
}
