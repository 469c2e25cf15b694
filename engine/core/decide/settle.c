/*
 * What the outcome of a call or of a probe means, by effect class. The same table holds for doing and for undoing.
 *
 *     class        after an unknown outcome                      when attempts or window are used up
 *     read         called again                                  failed: it has no effect
 *     idempotent   called again                                  probed, else unknown for good
 *     keyed        called again while the key is remembered      probed, else unknown for good
 *     checked      probed; called again only after `absent`      failed: the probe said that nothing happened
 *     once         probed, else unknown for good                 failed after `absent`
 *
 * A definite refusal says nothing about an earlier attempt that may have arrived. `failed` is recorded only when every
 * attempt under the key surely had no effect.
 *
 * A call or a probe whose every address is denied is no answer at all. It uses up neither attempts nor time; it is
 * tried again now and then, and a person is asked meanwhile (decide/escalation.c).
 */
#include "core/saga/machine.h"

enum next_kind {
    NEXT_COMPLETED,
    NEXT_ATTEMPT, /* now */
    NEXT_RETRY,   /* at due_ms */
    NEXT_ACCEPTED,
    NEXT_PROBE, /* begins to probe at due_ms */
    NEXT_PROBE_AGAIN,
    NEXT_FAILED, /* certainly no effect */
    NEXT_UNKNOWN /* for good */
};

struct next {
    enum next_kind kind;
    int64_t due_ms;
    bool maybe; /* the attempt that ended may have taken effect */
    struct why why;
};

static const struct retry_policy probe_policy = {
    .max_attempts = UINT32_MAX, .max_unsent = UINT32_MAX, .initial_ms = 1000, .max_ms = 300000, .factor_milli = 2000};

/* The policy of denied calls, which wait for people. Its backoff bounds the records that each adds to the log. */
static const struct retry_policy denied_policy = {
    .max_attempts = UINT32_MAX, .max_unsent = UINT32_MAX, .initial_ms = 1000, .max_ms = 3600000, .factor_milli = 2000};

static bool key_is_remembered(const struct terms *terms, int64_t at_ms)
{
    return terms->effect != EFFECT_KEYED || terms->window_end_ms == 0 || at_ms < terms->window_end_ms;
}

/* No attempt may follow, but one may have taken effect: probe, if there is a probe. */
static struct next cannot_say(const struct terms *terms, int64_t now_ms)
{
    bool over = terms->limit_ms && now_ms >= terms->limit_ms;

    return (struct next){.kind = terms->probe && !over ? NEXT_PROBE : NEXT_UNKNOWN, .due_ms = now_ms, .maybe = true};
}

/* No attempt may follow. */
static struct next give_up(const struct terms *terms, bool maybe, int64_t now_ms)
{
    return maybe ? cannot_say(terms, now_ms) : (struct next){.kind = NEXT_FAILED};
}

static int64_t within_limit(const struct terms *terms, int64_t due_ms)
{
    return terms->limit_ms && due_ms > terms->limit_ms ? terms->limit_ms : due_ms;
}

/*
 * Makes another attempt, if one may follow. `maybe`: this or an earlier attempt may have taken effect. `sent` counts
 * the attempts of this round that may have sent a byte; `unsent` counts the tries in a row that sent none.
 */
static struct next try_again(const struct terms *terms, const struct op_key *key, uint32_t sent, uint32_t unsent,
                             bool maybe, int64_t retry_after_ms, int64_t now_ms)
{
    bool used_up = unsent ? unsent >= terms->retry.max_unsent : sent >= terms->max_attempts;
    int64_t due_ms;

    /* A call that never left uses up neither `once` nor attempts. But once it has left, no more is allowed than the
     * policy says. */
    if (used_up || (terms->limit_ms && now_ms >= terms->limit_ms) || (terms->stopping && !maybe)) {
        return give_up(terms, maybe, now_ms);
    }
    due_ms = retry_due_ms(&terms->retry, unsent ? unsent : sent ? sent : 1, now_ms, retry_after_ms, key);
    if (!key_is_remembered(terms, due_ms)) {
        return give_up(terms, maybe, now_ms);
    }
    return (struct next){.kind = NEXT_RETRY, .due_ms = within_limit(terms, due_ms)};
}

static struct next after_unknown(const struct terms *terms, const struct operation *op, const struct outcome *outcome,
                                 int64_t now_ms)
{
    struct next next;

    switch (terms->effect) {
    case EFFECT_READ:
        return try_again(terms, &op->key, op->counted, 0, false, outcome->retry_after_ms, now_ms);
    case EFFECT_IDEMPOTENT:
    case EFFECT_KEYED:
        next = try_again(terms, &op->key, op->counted, 0, true, outcome->retry_after_ms, now_ms);
        next.maybe = true;
        return next;
    case EFFECT_CHECKED:
    case EFFECT_ONCE:
        next = cannot_say(terms, now_ms);
        if (next.kind ==
            NEXT_PROBE) { /* a receiver that asked for time gets it before the probe, and so before another call */
            next.due_ms += outcome->retry_after_ms < terms->probe->give_up_after_ms ? outcome->retry_after_ms
                                                                                    : terms->probe->give_up_after_ms;
        }
        return next;
    case EFFECT_COUNT:
        break;
    }
    UNREACHABLE();
}

/* What follows a denial. `maybe`: an earlier attempt may have taken effect. Otherwise, when the saga is being undone,
 * the call is not wanted any more. */
static struct next after_denial(const struct terms *terms, const struct operation *op, bool maybe, int64_t now_ms)
{
    uint32_t number = operation_unsent_next(op, SLICE(OUTCOME_EGRESS_DENIED));

    if (terms->stopping && !maybe) {
        return give_up(terms, maybe, now_ms);
    }
    return (struct next){.kind = NEXT_RETRY, .due_ms = retry_due_ms(&denied_policy, number, now_ms, 0, &op->key)};
}

/* What follows when certainly nothing happened this time. An attempt that never left counts as not made. */
static struct next after_nothing(const struct terms *terms, const struct operation *op, const struct outcome *outcome,
                                 int64_t now_ms)
{
    uint32_t unsent = outcome->unsent ? operation_unsent_next(op, outcome->error) : 0;
    uint32_t sent = op->counted - (outcome->unsent && op->counted > 0);
    struct terms without = *terms;

    if (outcome_is_egress_denied(outcome)) {
        return after_denial(terms, op, op->earlier_maybe, now_ms);
    }
    if (outcome->unsent && op->prior_window_ms == 0) {
        without.window_end_ms = 0;
    }
    return try_again(&without, &op->key, sent, unsent, op->earlier_maybe, outcome->retry_after_ms, now_ms);
}

/*
 * Does the outcome settle all attempts? A receiver that remembers the key answers a repeat like the first call, so when
 * it refuses, no attempt took effect. The tool says for which answers that holds, and it holds as long as the key is
 * remembered.
 */
static bool settles_all(const struct terms *terms, const struct outcome *outcome, int64_t now_ms)
{
    return outcome->settles && terms->effect == EFFECT_KEYED && key_is_remembered(terms, now_ms);
}

static struct next after_call(const struct terms *terms, const struct operation *op, const struct outcome *outcome,
                              int64_t now_ms)
{
    switch (outcome->kind) {
    case OUTCOME_COMPLETED:
        return (struct next){.kind = NEXT_COMPLETED};
    case OUTCOME_RUNNING:
        return terms->probe
                   ? (struct next){.kind = NEXT_ACCEPTED,
                                   .due_ms = retry_due_ms(&probe_policy, 1, now_ms, outcome->retry_after_ms, &op->key)}
                   : after_unknown(terms, op, outcome, now_ms); /* nobody could tell us when it is done */
    case OUTCOME_RETRY:
        return after_nothing(terms, op, outcome, now_ms);
    case OUTCOME_FAILED:
        return give_up(terms, op->earlier_maybe && !settles_all(terms, outcome, now_ms), now_ms);
    case OUTCOME_ABSENT: /* only a probe can say so */
    case OUTCOME_UNKNOWN:
        return after_unknown(terms, op, outcome, now_ms);
    case OUTCOME_KIND_COUNT:
        break;
    }
    UNREACHABLE();
}

static struct next after_absent(const struct terms *terms, const struct operation *op, int64_t now_ms)
{
    if (op->due_ms < terms->visible_ms) { /* the probe came too early to count */
        return (struct next){.kind = NEXT_PROBE_AGAIN,
                             .due_ms = now_ms > terms->visible_ms ? now_ms : terms->visible_ms};
    }
    if (terms->effect == EFFECT_ONCE) {
        return (struct next){.kind = NEXT_FAILED};
    }
    return try_again(terms, &op->key, op->counted, 0, false, 0, now_ms);
}

/*
 * Returns how many probes in a row were in vain, for the backoff. An engine that takes over counts anew, including what
 * was answered to the engine before it. Otherwise many takeovers would make one failed probe wait for minutes.
 */
static uint32_t questions_in_vain(const struct terms *terms, const struct operation *op, int64_t now_ms)
{
    uint32_t all = op->probes - op->other_probes + 1 + op->accepted, own = 1;

    if (terms->asking_from_ms == 0) {
        return all;
    }
    for (int64_t at_ms = probe_policy.initial_ms; own < all && at_ms <= now_ms - terms->asking_from_ms; at_ms *= 2) {
        own++;
    }
    return own;
}

static struct next after_probe(const struct terms *terms, const struct operation *op, const struct outcome *outcome,
                               int64_t now_ms)
{
    int64_t due_ms;

    if (outcome_is_egress_denied(outcome)) { /* nobody was asked, so a person still awaits the one answer */
        return (struct next){.kind = NEXT_PROBE_AGAIN,
                             .due_ms =
                                 retry_due_ms(&denied_policy, op->probes - op->other_probes + 1, now_ms, 0, &op->key)};
    }
    switch (outcome->kind) {
    case OUTCOME_COMPLETED:
        return (struct next){.kind = NEXT_COMPLETED};
    case OUTCOME_ABSENT:
        return after_absent(terms, op, now_ms);
    case OUTCOME_RUNNING:
    case OUTCOME_RETRY:
    case OUTCOME_FAILED: /* the probe itself failed, which says nothing about the operation */
    case OUTCOME_UNKNOWN:
        if (terms->one_probe || now_ms >= terms->probe_limit_ms) {
            return (struct next){.kind = NEXT_UNKNOWN, .maybe = true};
        }
        due_ms = retry_due_ms(&probe_policy, questions_in_vain(terms, op, now_ms), now_ms, outcome->retry_after_ms,
                              &op->key);
        return (struct next){.kind = NEXT_PROBE_AGAIN,
                             .due_ms = due_ms < terms->probe_limit_ms ? due_ms : terms->probe_limit_ms};
    case OUTCOME_KIND_COUNT:
        break;
    }
    UNREACHABLE();
}

/* --- as records --- */

static struct record next_record(struct machine *m, uint32_t step, enum direction direction, enum record_type forward,
                                 enum record_type undo)
{
    return machine_record(m, direction == DIRECTION_UNDO ? undo : forward, step, direction);
}

/* Returns the answer to record. `outcome` is what came in, NULL when only time has passed. A probe that gets the same
 * answer again says nothing new. */
static struct slice answer_of(const struct machine *m, const struct record *record, const struct outcome *outcome)
{
    const struct operation *op = operation_of(m->saga, record->step, record->direction);

    if (!outcome ||
        (m->input->type == SAGA_INPUT_PROBED && op->answer.ptr && slice_equal(op->answer, outcome->answer))) {
        return SLICE_NONE;
    }
    return outcome->answer;
}

/* Returns the cost of an unknown call if it has happened, by its arguments. */
static int64_t estimate_of(const struct machine *m, enum direction direction)
{
    return m->input->type == SAGA_INPUT_SETTLED && direction == DIRECTION_DO ? m->input->settled.cost_micros : 0;
}

static void emit_unknown(struct machine *m, uint32_t step, enum direction direction, const struct next *next,
                         const struct outcome *outcome)
{
    struct record record = next_record(m, step, direction, RECORD_STEP_UNKNOWN, RECORD_COMPENSATION_FAILED);

    record.error = next->why.error;
    record.detail = next->why.detail;
    record.answer = answer_of(m, &record, outcome);
    if (direction == DIRECTION_UNDO) {
        record.maybe = true;
        record.error = SLICE("unknown");
        record.detail = arena_printf(m->turn, "nobody can say whether it happened; the last answer was %.*s",
                                     SLICE_ARG(next->why.error));
    } else {
        record.cost_micros = estimate_of(m, direction);
    }
    machine_emit(m, &record);
}

/* Emits the record for `next`. `outcome` is what came in, NULL when only time has passed. */
static void emit_next(struct machine *m, uint32_t step, enum direction direction, const struct next *next,
                      const struct outcome *outcome, enum source source)
{
    struct record record;

    switch (next->kind) {
    case NEXT_COMPLETED:
        record = next_record(m, step, direction, RECORD_STEP_COMPLETED, RECORD_COMPENSATION_COMPLETED);
        record.source = source;
        record.result = outcome->result.ptr ? outcome->result : SLICE("null");
        record.cost_micros = saga_tool(m->saga, step, direction)->cost_fixed_micros;
        record.cost_micros = record.cost_micros ? record.cost_micros : m->input->settled.cost_micros;
        record.cost_unknown = m->input->settled.cost_unknown;
        record.result_error = m->input->settled.result_error;
        if (direction == DIRECTION_DO) {
            record.undo_args = m->input->settled.undo_args;
            record.undo_error = m->input->settled.undo_error;
        }
        break;
    case NEXT_ATTEMPT:
        if (call_is_held(m, step, direction)) {
            return;
        }
        record = next_record(m, step, direction, RECORD_STEP_INTENT, RECORD_COMPENSATION_INTENT);
        record.attempt++;
        break;
    case NEXT_RETRY:
        record = next_record(m, step, direction, RECORD_STEP_RETRYING, RECORD_COMPENSATION_RETRYING);
        record.due_ms = next->due_ms;
        record.maybe = next->maybe;
        record.unsent = source == SOURCE_CALL && outcome->unsent;
        record.source = source;
        break;
    case NEXT_ACCEPTED:
        record = next_record(m, step, direction, RECORD_STEP_RUNNING, RECORD_COMPENSATION_RUNNING);
        record.due_ms = next->due_ms;
        machine_emit(m, &record);
        return;
    case NEXT_PROBE:
        record = next_record(m, step, direction, RECORD_STEP_UNKNOWN, RECORD_COMPENSATION_UNKNOWN);
        record.due_ms = next->due_ms;
        record.cost_micros = estimate_of(m, direction);
        break;
    case NEXT_PROBE_AGAIN:
        record = next_record(m, step, direction, RECORD_STEP_PROBED, RECORD_COMPENSATION_PROBED);
        record.due_ms = next->due_ms;
        break;
    case NEXT_FAILED:
        record = next_record(m, step, direction, RECORD_STEP_FAILED, RECORD_COMPENSATION_FAILED);
        record.unsent = source == SOURCE_CALL && outcome && outcome->unsent;
        record.source = source;
        record.due_ms = source == SOURCE_GUARD ? next->due_ms : 0; /* when the guard would let the call pass */
        break;
    case NEXT_UNKNOWN:
        emit_unknown(m, step, direction, next, outcome);
        return;
    }
    if (next->kind != NEXT_COMPLETED && next->kind != NEXT_ATTEMPT) {
        record.error = next->why.error;
        record.detail = next->why.detail;
        record.answer = answer_of(m, &record, outcome);
    }
    machine_emit(m, &record);
}

static struct why why_of(const struct outcome *outcome)
{
    return (struct why){.error = outcome->error.len ? outcome->error : slice_of(outcome_name(outcome->kind)),
                        .detail = outcome->detail};
}

void operation_not_asked(struct machine *m, uint32_t step, struct why why, int64_t retry_after_ms)
{
    const struct operation *op = operation_of(m->saga, step, DIRECTION_DO);
    const struct outcome never_left = {.kind = OUTCOME_RETRY, .unsent = true, .error = why.error};
    struct terms terms = operation_terms(m->saga, step, DIRECTION_DO);
    bool maybe = op->took_effect == TOOK_EFFECT_MAYBE;
    struct next next = outcome_is_egress_denied(&never_left)
                           ? after_denial(&terms, op, maybe, m->input->now_ms)
                           : try_again(&terms, &op->key, op->counted, operation_unsent_next(op, why.error), maybe,
                                       retry_after_ms, m->input->now_ms);

    next.maybe = maybe;
    next.why = why;
    emit_next(m, step, DIRECTION_DO, &next, &never_left, SOURCE_CALL);
}

void operation_give_up(struct machine *m, uint32_t step, struct why why, enum source source, int64_t retry_at_ms)
{
    struct terms terms = operation_terms(m->saga, step, DIRECTION_DO);
    bool maybe = operation_of(m->saga, step, DIRECTION_DO)->took_effect == TOOK_EFFECT_MAYBE;
    struct next next = give_up(&terms, maybe, m->input->now_ms);

    next.why = why;
    next.due_ms = next.kind == NEXT_FAILED ? retry_at_ms : next.due_ms;
    emit_next(m, step, DIRECTION_DO, &next, NULL, source);
}

void operation_attempt(struct machine *m, uint32_t step, enum direction direction)
{
    const struct next next = {.kind = NEXT_ATTEMPT};

    emit_next(m, step, direction, &next, NULL, SOURCE_CALL);
}

/* --- inputs --- */

/* Does evidence count? It does until its effect is being undone, or a person has taken it on. */
static bool evidence_counts(const struct saga *saga, uint32_t step, enum direction direction)
{
    const struct step *s = &saga->steps[step];

    if (direction == DIRECTION_UNDO) {
        return s->plan == PLAN_READY || s->plan == PLAN_ACTIVE || s->plan == PLAN_FAILED;
    }
    return step_phase(saga, step) == PHASE_UNDO
               ? step_undo(s)->state == OP_NONE && (s->plan == PLAN_VERDICT || s->plan == PLAN_READY)
               : s->plan == PLAN_NONE;
}

/* Did a terminal step turn out to have happened when the rest is half undone? Then only a person can say what becomes
 * of it. */
static bool happened_too_late(const struct machine *m, uint32_t step, enum direction direction)
{
    return direction == DIRECTION_DO && m->input->settled.outcome.kind == OUTCOME_COMPLETED &&
           step_phase(m->saga, step) == PHASE_UNDO && m->saga->definition->steps[step].terminal &&
           undone_around(m->saga, step);
}

static bool is_about_operation(const struct machine *m, uint32_t step, enum direction direction)
{
    return step < m->saga->definition->step_count && direction < DIRECTION_COUNT &&
           (direction == DIRECTION_DO || m->saga->definition->steps[step].compensate.is_set) &&
           evidence_counts(m->saga, step, direction);
}

/*
 * Takes an answer that nobody awaited any more. A success always counts. A failure covers only its own attempt, so it
 * counts only when that was the one attempt under this key.
 */
static void settled_late(struct machine *m, uint32_t step, enum direction direction)
{
    const struct operation *op = operation_of(m->saga, step, direction);
    const struct outcome *outcome = &m->input->settled.outcome;
    struct next next = {.why = why_of(outcome)};

    if (op->late || happened_too_late(m, step, direction)) {
        return; /* the same answer again, and a person has been asked already */
    }
    if (outcome->kind == OUTCOME_COMPLETED &&
        (op->state == OP_PENDING || op->state == OP_IN_FLIGHT || op->state == OP_RETRYING || op->state == OP_PROBING ||
         op->state == OP_UNKNOWN)) {
        next.kind = NEXT_COMPLETED;
        emit_next(m, step, direction, &next, outcome, SOURCE_CALL);
        return;
    }
    if ((outcome->kind == OUTCOME_FAILED || outcome->kind == OUTCOME_RETRY) &&
        (op->state == OP_PROBING || op->state == OP_UNKNOWN) && m->input->settled.attempt == op->attempts &&
        op->attempts == op->other_key_attempts + 1 && !op->accepted) {
        next.kind = NEXT_FAILED;
        if (outcome_is_egress_denied(outcome) && direction == DIRECTION_UNDO &&
            m->saga->steps[step].plan == PLAN_FAILED) {
            return; /* a person has been asked about this undo, and may have it called again */
        }
        if (outcome_is_egress_denied(outcome) &&
            (direction == DIRECTION_UNDO || step_phase(m->saga, step) == PHASE_FORWARD)) {
            /* the call is made again, and a person is asked if need be */
            next.kind = NEXT_RETRY;
            next.due_ms = retry_due_ms(&denied_policy, 1, m->input->now_ms, 0, &op->key);
        }
        emit_next(m, step, direction, &next, outcome, SOURCE_CALL);
    }
}

/* Is the effect doubled? A person had ruled out the first call and had it called again. Now there may be two effects,
 * which only a person can sort out. */
static bool is_doubled(const struct machine *m, const struct operation *op)
{
    return m->input->settled.outcome.kind == OUTCOME_COMPLETED && m->input->settled.direction == DIRECTION_DO &&
           m->input->settled.attempt <= op->ruled_out && op->attempts > op->ruled_out &&
           (op->effect == EFFECT_ONCE || op->effect == EFFECT_CHECKED) && !op->duplicate_asked &&
           m->saga->phase == PHASE_FORWARD && m->saga->escalation.number == 0 && !m->opened;
}

void operation_settled(struct machine *m)
{
    uint32_t step = m->input->settled.step, attempt = m->input->settled.attempt;
    enum direction direction = m->input->settled.direction;
    const struct outcome *outcome = &m->input->settled.outcome;
    const struct operation *op;
    struct terms terms;
    struct next next;

    if (operation_is_contradicted(m)) {
        operation_contradict(m);
        return;
    }
    if (!is_about_operation(m, step, direction)) {
        return;
    }
    op = operation_of(m->saga, step, direction);
    if (attempt == 0 || attempt > op->attempts || attempt <= op->other_key_attempts) {
        return; /* another key, or no attempt at all */
    }
    if (op->state != OP_IN_FLIGHT || attempt != op->attempts) {
        bool doubled = is_doubled(m, op);

        settled_late(m, step, direction);
        if (doubled) {
            escalation_raise(m, step, direction, SLICE("late-duplicate"));
        }
        return;
    }
    terms = operation_terms(m->saga, step, direction);
    next = after_call(&terms, op, outcome, m->input->now_ms);
    next.why = why_of(outcome);
    emit_next(m, step, direction, &next, outcome, SOURCE_CALL);
}

void operation_probed(struct machine *m)
{
    uint32_t step = m->input->settled.step;
    enum direction direction = m->input->settled.direction;
    const struct outcome *outcome = &m->input->settled.outcome;
    const struct operation *op;
    struct terms terms;
    struct next next;

    if (operation_is_contradicted(m)) {
        operation_contradict(m);
        return;
    }
    if (!is_about_operation(m, step, direction)) {
        return;
    }
    op = operation_of(m->saga, step, direction);
    if (op->state == OP_PROBING && m->input->settled.attempt == op->probes + 1) {
        terms = operation_terms(m->saga, step, direction);
        if (!terms.probe) {
            return;
        }
        next = after_probe(&terms, op, outcome, m->input->now_ms);
        next.why = why_of(outcome);
        if (happened_too_late(m, step, direction)) {
            next = (struct next){.kind = NEXT_UNKNOWN,
                                 .why = WHY("too-late", "it has happened, and what came before it is being undone")};
        }
        /* A person was told of the failed undo, and decides about it now that the failure is certain. */
        if (next.kind == NEXT_RETRY && terms.one_probe && direction == DIRECTION_UNDO) {
            next.kind = NEXT_FAILED;
        }
        emit_next(m, step, direction, &next, outcome, SOURCE_PROBE);
    } else if ((op->state == OP_UNKNOWN || op->state == OP_PROBING) && outcome->kind == OUTCOME_COMPLETED &&
               !happened_too_late(m, step, direction)) {
        next = (struct next){.kind = NEXT_COMPLETED};
        emit_next(m, step, direction, &next, outcome, SOURCE_PROBE);
    }
}

/*
 * The next attempt is due. It may come late, after an outage or a wait for a person, so the conditions for the attempt
 * are checked again.
 */
void operation_due(struct machine *m, uint32_t step, enum direction direction)
{
    const struct operation *op = operation_of(m->saga, step, direction);
    struct terms terms = operation_terms(m->saga, step, direction);
    bool maybe = op->took_effect == TOOK_EFFECT_MAYBE;
    int64_t now_ms = m->input->now_ms;
    struct next next = {.kind = NEXT_ATTEMPT};

    if (terms.limit_ms && now_ms >= terms.limit_ms && !operation_is_denied(op)) {
        next = (struct next){.kind = maybe ? NEXT_UNKNOWN : NEXT_FAILED,
                             .why = {.error = maybe ? op->error : SLICE("gave-up")}};
        next.why.detail =
            arena_printf(m->turn, "the time to go on trying is over; the last answer was %.*s", SLICE_ARG(op->error));
    } else if (!key_is_remembered(&terms, now_ms)) {
        next = give_up(&terms, maybe, now_ms);
        next.why = WHY("key-window", "the receiver has forgotten the key by now");
    } else if (maybe && !op->double_accepted && (terms.effect == EFFECT_CHECKED || terms.effect == EFFECT_ONCE)) {
        next = cannot_say(
            &terms, now_ms); /* a person asked for another round, and these classes are probed before they are called */
        next.why = WHY("unsettled", "it has to be known first whether it happened");
    }
    emit_next(m, step, direction, &next, NULL, SOURCE_CALL);
}
