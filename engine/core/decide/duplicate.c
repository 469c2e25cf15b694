/*
 * A call whose operation already exists is decided by the table below.
 *
 *     operation is              coalesce          refuse      escalate      allow
 *     pending, in flight        waits             refused     a person      one more operation
 *     completed                 stored result     refused     a person      one more
 *     failed, attempts left     a new attempt     the same    the same      one more
 *     failed for good           the failure       the same    a person      one more
 *     unknown                   refused, whatever the policy: nothing is called blindly
 *
 * The same emission again gets the record of its operation, whatever the policy, and a read is called again each time.
 * A person is asked once; after that a repeat is answered as with `coalesce`. Arguments with a material difference are
 * refused first, whatever the state of the operation, unless each call is an operation of its own. A retry sends the
 * first arguments.
 */
#include "core/decide/call.h"
#include "core/definition/drift.h"

static const struct operation *operation_found(const struct call_case *call)
{
    return &call->m->saga->steps[call->found].forward;
}

static const struct tool *tool_found(const struct call_case *call)
{
    return call->m->saga->definition->steps[call->found].tool;
}

static bool is_under_way(const struct operation *op)
{
    return op->state == OP_PENDING || op->state == OP_IN_FLIGHT || op->state == OP_RETRYING ||
           (op->state == OP_PROBING && op->accepted);
}

static bool is_unknown(const struct operation *op)
{
    return op->state == OP_UNKNOWN || (op->state == OP_PROBING && !op->accepted);
}

static bool is_settled(const struct operation *op)
{
    return !is_under_way(op) && !is_unknown(op);
}

/* Returns when it may be worthwhile to ask again. */
static int64_t retry_after_ms(const struct call_case *call)
{
    const struct operation *op = operation_found(call);
    int64_t left = op->due_ms - call->m->input->now_ms;

    return op->state == OP_UNKNOWN ? CALL_RETRY_PERSON_MS : left > CALL_RETRY_LEAST_MS ? left : CALL_RETRY_LEAST_MS;
}

void duplicate_emit(struct call_case *call, const struct call_decision *decision)
{
    struct machine *m = call->m;
    struct call_answer *answer = &m->out->answer;
    struct record record = {.type = RECORD_OPERATION_DUPLICATE,
                            .step = call->found,
                            .key = operation_found(call)->key,
                            .fingerprint = call->fingerprint,
                            .decision = slice_of(decision->decision),
                            .pointers = decision->pointers,
                            .emission = m->input->call.emission,
                            .conversation_turn = m->input->call.conversation_turn,
                            .actor = m->input->call.actor};

    *answer = (struct call_answer){
        .code = decision->code,
        .step = call->found,
        .duplicate = true,
        .replay = decision->replay,
        .first_ms = operation_found(call)->created_ms,
        .original_ms = operation_found(call)->created_ms,
        .retry_after_ms = decision->retry_after_ms,
        .message = decision->message,
        .hint = decision->hint,
        .pointers = decision->pointers,
        .decision = decision->decision,
    };
    if (!call_log_is_full(call)) {
        machine_emit(m, &record);
    }
}

/* --- the cells --- */

static const char *state_words(const struct call_case *call)
{
    const struct operation *op = operation_found(call);

    switch (op->state) {
    case OP_PENDING:
    case OP_IN_FLIGHT:
    case OP_RETRYING:
    case OP_PROBING:
        return "is under way";
    case OP_COMPLETED:
        return op->took_effect == TOOK_EFFECT_UNDONE ? "was completed, and undone since" : "was completed";
    case OP_FAILED:
    case OP_SKIPPED:
        return "failed";
    case OP_NONE:
    case OP_OPEN:
    case OP_WAITING:
    case OP_UNKNOWN:
    case OP_STATE_COUNT:
        break;
    }
    UNREACHABLE();
}

static void refuse_duplicate(struct call_case *call)
{
    struct call_decision decision = {.decision = "refused", .code = ERR_DUPLICATE};

    decision.message = arena_printf(call->m->turn, "%.*s was called before and %s; its tool refuses duplicates",
                                    SLICE_ARG(call_name(call)), state_words(call));
    decision.hint = SLICE("Use the record in `operation`. What is meant to happen a second time needs another step or "
                          "scope, or an operator's bypass.");
    duplicate_emit(call, &decision);
}

static bool person_is_asked(const struct call_case *call)
{
    const struct escalation *open = &call->m->saga->escalation;

    return open->number && open->step == call->found && open->direction == DIRECTION_DO;
}

static void await_person(struct call_case *call, const char *word)
{
    struct call_decision decision = {.decision = word, .code = ERR_AWAITING, .retry_after_ms = CALL_RETRY_PERSON_MS};

    decision.message = arena_printf(call->m->turn, "%.*s was called before and awaits the decision of a person",
                                    SLICE_ARG(call_name(call)));
    decision.hint = SLICE("Do not call it in another way. Ask again later, or see GET /v1/escalations.");
    duplicate_emit(call, &decision);
}

static void wait_for_it(struct call_case *call)
{
    if (operation_is_denied(operation_found(call)) && person_is_asked(call)) {
        await_person(call, "awaiting-operator");
        return;
    }
    duplicate_emit(call, &(struct call_decision){.decision = "waited", .retry_after_ms = retry_after_ms(call)});
}

/* Answers with the stored result or failure. `drift` says in what the arguments differ, which did not matter. */
static void replay(struct call_case *call, const struct drift *drift)
{
    bool failed = operation_found(call)->state != OP_COMPLETED;
    struct call_decision decision = {.decision = failed ? "failed" : "replayed", .replay = true};

    if (drift && drift->differs) {
        decision.decision = failed ? "failed" : "drift";
        decision.pointers = drift->pointers;
    }
    duplicate_emit(call, &decision);
}

static struct drift drift_of(const struct call_case *call)
{
    const struct operation *op = operation_found(call);

    if (digest_equal(&op->fingerprint, &call->fingerprint)) {
        return (struct drift){0};
    }
    return drift_find(tool_found(call), op->args.ptr ? op->args : SLICE("{}"), call->m->input->call.args,
                      call->m->turn);
}

/* Answers a repeat after the question. The question is asked once. A repeat after the person's answer gets what the
 * operation has become. */
static void share_after_question(struct call_case *call, const struct drift *drift)
{
    if (is_settled(operation_found(call))) {
        replay(call, drift);
    } else {
        wait_for_it(call);
    }
}

static void escalate_duplicate(struct call_case *call, const struct drift *drift)
{
    struct machine *m = call->m;

    if (operation_found(call)->duplicate_asked && !person_is_asked(call)) {
        share_after_question(call, drift);
        return;
    }
    if (m->saga->phase != PHASE_FORWARD) { /* too late for questions about more work */
        refuse_duplicate(call);
        return;
    }
    if (m->saga->escalation.number) { /* one question at a time: this one, or another that comes first */
        await_person(call, "awaiting-operator");
        return;
    }
    await_person(call, "escalated");
    escalation_raise(m, call->found, DIRECTION_DO, SLICE("duplicate"));
}

/*
 * Probes again. What the probes have given up on may be known by now, so a repeat has the operation probed once more,
 * as a person could. The question to that person stays open until there is an answer.
 */
static void probe_again(struct call_case *call)
{
    struct machine *m = call->m;
    const struct saga *saga = m->saga;
    const struct operation *op = operation_found(call);
    struct record record = machine_record(m, RECORD_STEP_UNKNOWN, call->found, DIRECTION_DO);
    bool is_open = saga->phase == PHASE_FORWARD || (person_is_asked(call) && !escalation_is_raised(&saga->escalation));

    if (op->state != OP_UNKNOWN || op->late || saga->steps[call->found].plan == PLAN_WAIVED || !is_open ||
        saga->paused.ptr || !tool_found(call)->has_probe || m->input->now_ms < op->probed_ms + CALL_PROBE_MS ||
        call_log_is_full(call)) {
        return;
    }
    record.due_ms = m->input->now_ms;
    record.error = op->error;
    record.detail = op->detail;
    record.actor = m->input->call.actor.len ? m->input->call.actor : SLICE("agent");
    record.note = SLICE("a repeat of the call had it asked about once more");
    machine_emit(m, &record);
}

static void refuse_unknown(struct call_case *call)
{
    struct call_decision decision = {
        .decision = "unknown", .code = ERR_OUTCOME_UNKNOWN, .retry_after_ms = retry_after_ms(call)};

    if (person_is_asked(call)) {
        await_person(call, "awaiting-operator");
        probe_again(call);
        return;
    }
    decision.message = arena_printf(call->m->turn, "%.*s was called before, and nobody can say yet whether it happened",
                                    SLICE_ARG(call_name(call)));
    decision.hint =
        operation_found(call)->state == OP_PROBING
            ? SLICE("It is being asked about. Ask again later; it is not called again before that is known.")
            : SLICE("A person has to find out. Ask again later; it is not called again before that is known.");
    duplicate_emit(call, &decision);
    probe_again(call);
}

/* Refuses a call whose arguments differ where they must not. Returns true after the refusal. */
static bool refuse_drift(struct call_case *call, const struct drift *drift)
{
    struct call_decision decision = {.decision = "drift-refused", .code = ERR_DRIFT, .pointers = drift->pointers};

    if (!drift->material) {
        return false;
    }
    decision.message =
        arena_printf(call->m->turn, "%.*s was called before with other arguments", SLICE_ARG(call_name(call)));
    decision.hint = SLICE("Call it with the first arguments to get its result; what is meant to be another effect "
                          "needs another step or scope.");
    duplicate_emit(call, &decision);
    return true;
}

/* --- the table --- */

/* Decides about an operation that is under way or completed. */
static void decide_by_policy(struct call_case *call, const struct drift *drift)
{
    switch (tool_found(call)->on_duplicate) {
    case DUPLICATE_COALESCE:
        if (is_settled(operation_found(call))) {
            replay(call, drift);
        } else {
            wait_for_it(call);
        }
        return;
    case DUPLICATE_REFUSE:
        refuse_duplicate(call);
        return;
    case DUPLICATE_ESCALATE:
        escalate_duplicate(call, drift);
        return;
    case DUPLICATE_ALLOW:
        call_begin(call, "allow");
        return;
    }
    UNREACHABLE();
}

int64_t saga_call_again_ms(const struct saga *saga, uint32_t step)
{
    const struct operation *op = &saga->steps[step].forward;
    struct terms terms;

    if (op->state != OP_FAILED || saga->phase != PHASE_FORWARD) { /* not when a person has skipped it */
        return 0;
    }
    terms = operation_terms(saga, step, DIRECTION_DO);
    if (op->counted >= terms.max_attempts) {
        return 0;
    }
    return retry_due_ms(&terms.retry, op->counted ? op->counted : 1, op->ended_ms, 0, &op->key);
}

static void decide_failed(struct call_case *call, const struct drift *drift)
{
    enum on_duplicate policy = tool_found(call)->on_duplicate;

    if (policy == DUPLICATE_ALLOW) {
        call_begin(call, "allow");
    } else if (saga_call_again_ms(call->m->saga, call->found) != 0) {
        call_repeat(call);
    } else if (policy == DUPLICATE_ESCALATE) {
        escalate_duplicate(call, drift);
    } else {
        replay(call, drift);
    }
}

/* Decides by the table, whatever the state of the operation. A call with a material difference is no repeat. Each call
 * of `allow` is an operation of its own. */
static void decide_by_table(struct call_case *call)
{
    const struct operation *op = operation_found(call);
    struct drift drift = drift_of(call);

    if (tool_found(call)->on_duplicate != DUPLICATE_ALLOW && refuse_drift(call, &drift)) {
        return;
    }
    if (is_unknown(op)) {
        refuse_unknown(call);
    } else if (op->state == OP_FAILED || op->state == OP_SKIPPED) {
        decide_failed(call, &drift);
    } else {
        decide_by_policy(call, &drift);
    }
}

/* --- what comes before the table --- */

static void decide_expired(struct call_case *call)
{
    struct machine *m = call->m;
    struct call_decision decision = {.decision = "expired", .code = ERR_EXPIRED};

    if (m->saga->definition->kind == SAGA_RUN && !operation_found(call)->expired) {
        machine_emit(m, &(struct record){
                            .type = RECORD_OPERATION_EXPIRED, .step = call->found, .key = operation_found(call)->key});
    }
    /* A repeat of the old request does not ask for another effect, however late it comes. */
    if (tool_found(call)->again_on_expired && !call->same_emission) {
        call_begin(call, "again");
        return;
    }
    decision.message =
        arena_printf(m->turn, "%.*s was called before; its result is not kept any more", SLICE_ARG(call_name(call)));
    decision.hint = SLICE("GET /v1/operations/KEY tells what is known of it. What is meant to happen again needs "
                          "another run, step or scope.");
    duplicate_emit(call, &decision);
}

static bool is_signed(const struct call_case *call)
{
    const struct bypass *bypass = call->m->saga->steps[call->found].bypass;

    return bypass && bypass->expires_ms > call->m->input->now_ms &&
           digest_equal(&bypass->fingerprint, &call->fingerprint);
}

static void decide_same_emission(struct call_case *call)
{
    const struct operation *op = operation_found(call);

    if (is_under_way(op)) {
        wait_for_it(call);
    } else if (is_unknown(op)) {
        refuse_unknown(call);
    } else if (op->state == OP_FAILED && op->source == SOURCE_GUARD && call->m->saga->phase == PHASE_FORWARD) {
        call_repeat(call); /* the caller was told to come back */
    } else {
        replay(call, NULL);
    }
}

void duplicate_decide(struct call_case *call)
{
    const struct operation *op = operation_found(call);

    if (!call->same_emission && !is_under_way(op) && !is_unknown(op) && is_signed(call)) {
        call_begin(call, "bypass");
    } else if (op->effect == EFFECT_READ && !call->same_emission && call->m->saga->phase == PHASE_FORWARD) {
        if (is_under_way(op)) {
            wait_for_it(call);
        } else {
            call_repeat(call);
        }
    } else if (operation_has_expired(call->m->saga, call->found, call->m->input->now_ms)) {
        decide_expired(call);
    } else if (call->same_emission) {
        decide_same_emission(call);
    } else {
        decide_by_table(call);
    }
}
