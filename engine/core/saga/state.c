/* What follows from the state of a saga: names, statuses, and the questions that deciding, checking and wanting
 * share. */
#include "core/saga/machine.h"

#include <string.h>

/* --- names --- */

static const char *const saga_status_names[SAGA_STATUS_COUNT] = {
#define X(id, name) [id] = name,
    SAGA_STATUS_MAP(X)
#undef X
};
static const char *const step_status_names[STEP_STATUS_COUNT] = {
#define X(id, name) [id] = name,
    STEP_STATUS_MAP(X)
#undef X
};
static const char *const took_effect_names[TOOK_EFFECT_COUNT] = {
#define X(id, name) [id] = name,
    TOOK_EFFECT_MAP(X)
#undef X
};
static const char *const operator_action_names[OPERATOR_ACTION_COUNT] = {
    [OPERATOR_RETRY] = "retry",     [OPERATOR_PROBE] = "probe", [OPERATOR_RESOLVE] = "resolve",
    [OPERATOR_WAIVE] = "waive",     [OPERATOR_SKIP] = "skip",   [OPERATOR_COMPENSATE] = "compensate",
    [OPERATOR_ABANDON] = "abandon",
};

const char *saga_status_name(enum saga_status status)
{
    CHECK(status < SAGA_STATUS_COUNT);
    return saga_status_names[status];
}

bool saga_status_parse(struct slice name, enum saga_status *out)
{
    for (unsigned i = 0; i < SAGA_STATUS_COUNT; i++) {
        if (slice_is(name, saga_status_names[i])) {
            *out = (enum saga_status)i;
            return true;
        }
    }
    return false;
}

bool saga_status_is_final(enum saga_status status)
{
    return status == SAGA_COMPLETED || status == SAGA_COMPENSATED || status == SAGA_ABANDONED;
}

const char *step_status_name(enum step_status status)
{
    CHECK(status < STEP_STATUS_COUNT);
    return step_status_names[status];
}

const char *took_effect_name(enum took_effect took_effect)
{
    CHECK(took_effect < TOOK_EFFECT_COUNT);
    return took_effect_names[took_effect];
}

const char *operator_action_name(enum operator_action action)
{
    CHECK(action < OPERATOR_ACTION_COUNT);
    return operator_action_names[action];
}

bool operator_action_parse(struct slice name, enum operator_action *out)
{
    for (unsigned i = 0; i < OPERATOR_ACTION_COUNT; i++) {
        if (slice_is(name, operator_action_names[i])) {
            *out = (enum operator_action)i;
            return true;
        }
    }
    return false;
}

/* --- statuses --- */

/* Does the saga only wait? Nothing of it is under way or about to begin, and it waits for something. */
static bool only_waits(const struct saga *saga)
{
    bool waits = saga->lock_taken < saga->lock_count;

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (operation_is_open(&saga->steps[i].forward) || operation_is_open(step_undo(&saga->steps[i])) ||
            step_is_ready(saga, i) || group_may_end(saga, i)) {
            return false;
        }
        waits = waits || saga->steps[i].forward.state == OP_WAITING;
    }
    return waits;
}

enum saga_status saga_status(const struct saga *saga)
{
    if (saga->phase == PHASE_ENDED) {
        return saga->end;
    }
    if (pause_holds(saga)) { /* the pause comes first, whatever else the saga waits for */
        return SAGA_PAUSED;
    }
    if (saga->escalation.number) {
        return SAGA_ESCALATED;
    }
    if (saga->phase != PHASE_FORWARD) {
        return SAGA_COMPENSATING;
    }
    return saga->paused.ptr ? SAGA_PAUSED : only_waits(saga) ? SAGA_WAITING : SAGA_RUNNING;
}

bool saga_did_bulk(const struct saga *saga, struct slice id)
{
    for (const struct bulk_done *done = saga->bulk_done; id.ptr && done; done = done->before) {
        if (slice_equal(done->id, id)) {
            return true;
        }
    }
    return false;
}

enum step_status operation_status(const struct operation *operation)
{
    switch (operation->state) {
    case OP_NONE:
    case OP_PENDING:
        return STEP_PENDING;
    case OP_IN_FLIGHT:
        return STEP_RUNNING;
    case OP_RETRYING:
        return STEP_RETRYING;
    case OP_PROBING:
        return operation->accepted ? STEP_RUNNING : STEP_UNKNOWN;
    case OP_UNKNOWN:
        return STEP_UNKNOWN;
    case OP_COMPLETED:
        return STEP_COMPLETED;
    case OP_FAILED:
        return STEP_FAILED;
    case OP_SKIPPED:
        return STEP_SKIPPED;
    case OP_OPEN:
        return STEP_RUNNING;
    case OP_WAITING:
        return STEP_WAITING;
    case OP_STATE_COUNT:
        break;
    }
    UNREACHABLE();
}

static enum step_status group_status(const struct saga *saga, uint32_t step)
{
    const struct step *s = &saga->steps[step];
    bool went_well = saga->phase == PHASE_ENDED && saga->end == SAGA_COMPLETED;
    enum saga_phase phase = went_well ? PHASE_FORWARD : saga->phase;

    /* What a child has undone on its own stays undone, however the saga ends. */
    for (uint32_t at = step; at != STEP_NONE; at = saga->definition->steps[at].group) {
        phase = saga->steps[at].group_phase > phase ? saga->steps[at].group_phase : phase;
    }
    if (s->forward.state != OP_OPEN && (s->forward.state != OP_COMPLETED || s->undo_count == 0)) {
        return operation_status(&s->forward);
    }
    if (phase == PHASE_FORWARD) {
        return operation_status(&s->forward);
    }
    if (s->undo_left > 0 || phase == PHASE_FAILING) {
        return phase == PHASE_ENDED ? STEP_COMPENSATION_FAILED : STEP_COMPENSATING;
    }
    return s->undo_waived > 0 ? STEP_COMPENSATION_FAILED : STEP_COMPENSATED;
}

enum step_status saga_step_status(const struct saga *saga, uint32_t step)
{
    const struct step *s = &saga->steps[step];

    if (step_is_group(&saga->definition->steps[step])) {
        return group_status(saga, step);
    }
    switch (s->plan) {
    case PLAN_ACTIVE:
        return STEP_COMPENSATING;
    case PLAN_DONE:
        return STEP_COMPENSATED;
    case PLAN_FAILED:
        return STEP_COMPENSATION_FAILED;
    case PLAN_WAIVED:
        return step_undo(s)->state == OP_NONE ? operation_status(&s->forward) : STEP_COMPENSATION_FAILED;
    case PLAN_NONE:
    case PLAN_VERDICT:
    case PLAN_READY:
    case PLAN_DROPPED:
        return operation_status(&s->forward);
    }
    UNREACHABLE();
}

bool operation_cost_is_estimated(const struct saga *saga, uint32_t step, enum direction direction)
{
    const struct operation *op = operation_of(saga, step, direction);
    const struct tool *tool;

    if (direction != DIRECTION_DO || op->state == OP_COMPLETED || op->cost_micros == 0) {
        return false; /* a wait costs nothing and calls no tool */
    }
    tool = saga_tool(saga, step, direction);
    return tool->cost.count > 0 && !template_uses_result(&tool->cost);
}

bool operation_cost_is_known(const struct saga *saga, uint32_t step, enum direction direction)
{
    const struct operation *op = operation_of(saga, step, direction);
    const struct tool *tool = saga_tool(saga, step, direction);

    if (op->cost_unknown.ptr || op->cost_micros != 0) {
        return !op->cost_unknown.ptr;
    }
    return tool && template_is_set(&tool->cost) &&
           (op->took_effect == TOOK_EFFECT_YES || (op->attempts > 0 && !template_uses_result(&tool->cost)));
}

enum took_effect saga_took_effect(const struct saga *saga, uint32_t step)
{
    CHECK(step < saga->definition->step_count);
    return saga->steps[step].forward.took_effect;
}

bool saga_has_debt(const struct saga *saga, uint32_t step)
{
    const struct operation *op = &saga->steps[step].forward;

    return saga_status(saga) == SAGA_ABANDONED && saga_tool(saga, step, DIRECTION_DO) && op->effect != EFFECT_READ &&
           op->attempts > 0 && (op->took_effect == TOOK_EFFECT_YES || op->took_effect == TOOK_EFFECT_MAYBE);
}

bool saga_debt_in_doubt(const struct saga *saga, uint32_t step)
{
    return saga_has_debt(saga, step) && saga->steps[step].forward.took_effect == TOOK_EFFECT_MAYBE;
}

uint32_t saga_debt_count(const struct saga *saga)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        count += saga_has_debt(saga, i);
    }
    return count;
}

/* --- operations --- */

const struct operation operation_none;

const struct operation *operation_of(const struct saga *saga, uint32_t step, enum direction direction)
{
    CHECK(step < saga->definition->step_count);
    return direction == DIRECTION_UNDO ? step_undo(&saga->steps[step]) : &saga->steps[step].forward;
}

bool operation_is_open(const struct operation *operation)
{
    return operation->state == OP_PENDING || operation->state == OP_IN_FLIGHT || operation->state == OP_RETRYING ||
           operation->state == OP_PROBING;
}

bool operation_is_denied(const struct operation *operation)
{
    if (!slice_is(operation->error, OUTCOME_EGRESS_DENIED)) {
        return false;
    }
    return operation->state == OP_PROBING
               ? operation->probes > operation->other_probes
               : (operation->state == OP_RETRYING || operation->state == OP_IN_FLIGHT) && operation->unsent > 0;
}

uint32_t operation_unsent_next(const struct operation *operation, struct slice error)
{
    bool alike = slice_is(operation->error, OUTCOME_EGRESS_DENIED) == slice_is(error, OUTCOME_EGRESS_DENIED);

    return alike ? operation->unsent + 1 : 1;
}

bool operation_is_asked_now(const struct saga *saga, const struct operation *operation, int64_t now_ms)
{
    return operation->state == OP_PROBING && now_ms >= operation->due_ms && !pause_holds(saga);
}

const struct tool *saga_tool(const struct saga *saga, uint32_t step, enum direction direction)
{
    CHECK(step < saga->definition->step_count);
    if (direction == DIRECTION_UNDO) {
        CHECK(saga->definition->steps[step].compensate.is_set);
        return saga->definition->steps[step].compensate.tool;
    }
    return saga->definition->steps[step].tool;
}

enum effect operation_effect(const struct saga *saga, uint32_t step, enum direction direction)
{
    const struct operation *op = operation_of(saga, step, direction);

    if (direction == DIRECTION_DO && !step_has_call(saga, step)) {
        return EFFECT_READ; /* groups and waits have no effect of their own */
    }
    return op->created_ms ? op->effect : saga_tool(saga, step, direction)->effect;
}

struct slice step_key_name(const struct saga *saga, uint32_t step)
{
    const struct step_definition *definition = &saga->definition->steps[step];

    return definition->name.ptr ? definition->name : definition->id;
}

struct arena *saga_memory(const struct saga *saga)
{
    return saga->arena ? saga->arena : saga->scratch;
}

static int64_t later_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static uint32_t or_endless(uint32_t count)
{
    return count ? count : UINT32_MAX;
}

/* Returns since when the receiver knows the key; 0 when it does not. Another round begins with a key under which
 * nothing was done. When late evidence then says that something was done, the key is as old as the first call, in all
 * later rounds. */
static int64_t key_known_from(const struct operation *op)
{
    if ((op->window_from_ms && !op->known_before) || op->took_effect != TOOK_EFFECT_MAYBE || op->double_accepted) {
        return op->window_from_ms;
    }
    return op->first_sent_ms;
}

struct terms operation_terms(const struct saga *saga, uint32_t step, enum direction direction)
{
    const struct step_definition *definition = &saga->definition->steps[step];
    const struct operation *op = operation_of(saga, step, direction);
    const struct tool *tool = saga_tool(saga, step, direction);
    const struct escalation *open = &saga->escalation;
    struct terms terms = {.effect = operation_effect(saga, step, direction),
                          .probe = tool->has_probe ? &tool->probe : NULL};

    if (direction == DIRECTION_UNDO) {
        terms.retry = tool->conditional ? retry_policy_of_undo(&definition->compensate, terms.effect)
                                        : definition->compensate.retry;
        /* Undoing ends by the clock, and earlier only when `compensate` itself bounds the tries. The retry policy of
         * the tool for its own calls is no reason to leave an effect standing. */
        terms.max_attempts = or_endless(definition->compensate.own_retry.max_attempts);
        terms.retry.max_unsent = or_endless(definition->compensate.own_retry.max_unsent);
        terms.limit_ms = saga->held_ms ? 0 : op->round_ms + definition->compensate.give_up_after_ms;
    } else {
        terms.retry = tool->conditional ? retry_policy_of_step(definition, terms.effect) : definition->retry;
        /* `once` leaves once, whatever its retry policy says. */
        terms.max_attempts = terms.effect == EFFECT_ONCE ? 1 : terms.retry.max_attempts;
        terms.stopping = step_phase(saga, step) != PHASE_FORWARD;
    }
    if (terms.effect == EFFECT_KEYED && key_known_from(op)) {
        terms.window_end_ms = key_known_from(op) + tool->key_window_ms;
    }
    if (terms.probe) {
        terms.probe_limit_ms = saga->held_ms ? INT64_MAX : op->unknown_ms + terms.probe->give_up_after_ms;
        if (terms.limit_ms && terms.limit_ms < terms.probe_limit_ms) {
            terms.probe_limit_ms = terms.limit_ms;
        }
        /*
         * The intent may be older than the sending, but no byte left after the attempt had ended. Times of another
         * engine are from another clock, and a clock that has stepped since does not tell how long ago they were. Only
         * time that has passed on the reading engine counts.
         */
        terms.visible_ms =
            later_of(later_of(op->last_sent_ms, op->settled_ms), saga->alone_from_ms) + terms.probe->visibility_ms;
        terms.asking_from_ms = saga->alone_from_ms > op->unknown_ms ? saga->alone_from_ms : 0;
    }
    terms.one_probe =
        op->one_probe || (open->number && open->asked_by.ptr && open->step == step && open->direction == direction);
    return terms;
}

int64_t operation_quiet_ms(const struct saga *saga, uint32_t step, enum direction direction)
{
    const struct operation *op = operation_of(saga, step, direction);
    const struct tool *tool = saga_tool(saga, step, direction);
    int64_t sent_ms = later_of(op->last_sent_ms, saga->alone_from_ms);

    return op->last_sent_ms == 0 ? 0
                                 : later_of(sent_ms + op->call_timeout_ms, op->settled_ms) +
                                       (tool->has_probe ? tool->probe.visibility_ms : PROBE_VISIBILITY_DEFAULT_MS);
}

/* --- steps --- */

bool step_is_over(const struct saga *saga, uint32_t step)
{
    enum op_state state = saga->steps[step].forward.state;

    return state == OP_COMPLETED || state == OP_SKIPPED ||
           (state == OP_FAILED && saga->definition->steps[step].on_failure == ON_FAILURE_CONTINUE);
}

bool step_is_ready(const struct saga *saga, uint32_t step)
{
    const struct step_definition *definition = &saga->definition->steps[step];

    if (saga->steps[step].forward.state != OP_NONE || saga->phase != PHASE_FORWARD || saga->seq == 0 ||
        saga->escalation.number || saga_is_open(saga) || !locks_are_held(saga) || pause_holds(saga) ||
        !group_lets_begin(saga, step)) {
        return false;
    }
    for (uint32_t i = 0; i < definition->after_count; i++) {
        if (!step_is_over(saga, definition->after[i])) {
            return false;
        }
    }
    return true;
}

bool step_needs_evaluation(const struct saga *saga, uint32_t step)
{
    const struct step_definition *definition = &saga->definition->steps[step];

    return saga_main_template(saga, step)->program_count > 0 ||
           (definition->scope.program_count > 0 && !step_is_group(definition)) || definition->when.program_count > 0 ||
           (definition->tool && definition->tool->conditional && definition->tool->effect_if.program_count > 0);
}

bool step_may_stand(const struct saga *saga, uint32_t step)
{
    enum took_effect took_effect = saga->steps[step].forward.took_effect;

    return took_effect == TOOK_EFFECT_YES || took_effect == TOOK_EFFECT_MAYBE;
}

bool step_can_be_undone_blind(const struct saga *saga, uint32_t step)
{
    const struct step_definition *definition = &saga->definition->steps[step];

    return !definition->terminal && definition->compensate.is_set && definition->compensate.tolerates_absent &&
           definition->compensate.voids_key;
}

bool saga_passed_return(const struct saga *saga)
{
    if (!saga_is_open(saga)) {
        return passed_return_in(saga, STEP_NONE);
    }
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (saga->definition->steps[i].terminal && saga->steps[i].forward.state == OP_COMPLETED) {
            return true;
        }
    }
    return false;
}

/* Is a member of an ended group unsettled? Late evidence may open it again until that is settled, or until it is undone
 * when its child was undone. */
static bool member_is_unsettled(const struct saga *saga, uint32_t step)
{
    const struct step *s = &saga->steps[step];

    if (operation_is_open(&s->forward)) {
        return true;
    }
    if (s->forward.state == OP_UNKNOWN && s->plan == PLAN_NONE) {
        return true;
    }
    return plan_is_left(s->plan) && step_undone_alone(saga, step) != STEP_NONE;
}

bool saga_is_finished(const struct saga *saga)
{
    if (saga->seq == 0 || saga->phase == PHASE_ENDED) {
        return false;
    }
    /* When forward work ended for another reason, only the terminal step, which comes last, can turn that. */
    if (saga->phase != PHASE_FORWARD && !saga_passed_return(saga)) {
        return false;
    }
    if (saga_is_open(saga)) { /* only its agent can say that it is done, unless a terminal call has happened */
        return saga_passed_return(saga) && !saga_is_unsettled(saga) && saga->phase != PHASE_FORWARD;
    }
    for (uint32_t i = 0; i < saga->definition->written_count; i++) {
        /* Behind a terminal step nothing is undone any more, and a step that a person left standing is a debt. */
        if (!step_is_over(saga, i) && !(saga->steps[i].plan == PLAN_WAIVED && saga_passed_return(saga))) {
            return false;
        }
    }
    for (uint32_t i = saga->definition->written_count; i < saga->definition->step_count; i++) {
        if (member_is_unsettled(saga, i)) {
            return false;
        }
    }
    return true;
}

/* Has the saga undone anything? What a child has undone on its own does not count, because the saga went on. */
bool saga_has_undone(const struct saga *saga)
{
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if ((step_undo(&saga->steps[i])->attempts > 0 || saga->steps[i].undone_by.ptr) &&
            step_undone_alone(saga, i) == STEP_NONE) {
            return true;
        }
    }
    return false;
}

bool step_may_leave(const struct saga *saga, uint32_t step)
{
    const struct step_definition *definition = &saga->definition->steps[step];

    for (uint32_t i = 0; i < definition->after_count; i++) {
        if (!step_is_over(saga, definition->after[i])) { /* the step was over, and then late evidence came */
            return false;
        }
    }
    return !saga->escalation.number || (saga_is_open(saga) && !definition->terminal);
}

/* --- open sagas and runs --- */

bool saga_is_open(const struct saga *saga)
{
    return saga->definition->kind != SAGA_DEFINED;
}

uint32_t saga_sealed_by(const struct saga *saga)
{
    if (saga->definition->kind != SAGA_OPEN) {
        return STEP_NONE;
    }
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        enum op_state state = saga->steps[i].forward.state;

        if (saga->definition->steps[i].terminal && state != OP_NONE && state != OP_FAILED && state != OP_SKIPPED) {
            return i;
        }
    }
    return STEP_NONE;
}

static bool is_unsettled(const struct saga *saga, uint32_t step)
{
    const struct step *s = &saga->steps[step];

    return operation_is_open(&s->forward) || operation_is_open(step_undo(s)) ||
           (s->plan != PLAN_WAIVED && (s->forward.state == OP_UNKNOWN || step_undo(s)->state == OP_UNKNOWN));
}

bool saga_is_unsettled(const struct saga *saga)
{
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (is_unsettled(saga, i)) {
            return true;
        }
    }
    return false;
}

enum err_code saga_admits(const struct saga *saga, const struct tool *tool, enum effect effect, uint32_t except)
{
    uint32_t sealed_by = saga_sealed_by(saga);

    if (saga->definition->kind != SAGA_OPEN) {
        return ERR_OK;
    }
    if (sealed_by != STEP_NONE && sealed_by != except && effect != EFFECT_READ) {
        return ERR_SEALED;
    }
    if (!tool->terminal || effect == EFFECT_READ) {
        return ERR_OK;
    }
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (i != except && is_unsettled(saga, i)) {
            return ERR_UNSETTLED;
        }
    }
    return ERR_OK;
}

bool saga_rests(const struct saga *saga)
{
    return saga->definition->kind == SAGA_RUN && saga->phase == PHASE_FORWARD && saga->seq > 0 &&
           !saga->escalation.number && !saga->paused.ptr && !saga_is_unsettled(saga);
}

/* Returns the newest operation of this identity (highest generation), or STEP_NONE. */
static uint32_t saga_find_call(const struct saga *saga, struct slice step, struct slice tool, struct slice scope)
{
    uint32_t found = STEP_NONE;

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        const struct step_definition *definition = &saga->definition->steps[i];

        if (step_has_call(saga, i) && slice_equal(step_key_name(saga, i), step) &&
            slice_equal(definition->tool->name, tool) && slice_equal(saga->steps[i].forward.scope, scope) &&
            (found == STEP_NONE || saga->steps[i].forward.generation >= saga->steps[found].forward.generation)) {
            found = i;
        }
    }
    return found;
}

/* Has the record expired? Its time counts from the saga's end; in a run, which does not end, from the operation's own
 * end. An unsettled record never expires. */
bool operation_has_expired(const struct saga *saga, uint32_t step, int64_t now_ms)
{
    const struct operation *op = operation_of(saga, step, DIRECTION_DO);
    bool is_settled = op->state == OP_COMPLETED || op->state == OP_FAILED || op->state == OP_SKIPPED;
    int64_t from_ms = saga->definition->kind == SAGA_RUN ? op->ended_ms
                      : saga->phase == PHASE_ENDED       ? saga->ended_ms
                                                         : 0;

    return saga_is_open(saga) && is_settled &&
           (op->expired || (from_ms && now_ms >= from_ms + saga_tool(saga, step, DIRECTION_DO)->ttl_ms));
}

uint32_t saga_next_generation(const struct saga *saga, struct slice step, struct slice tool, struct slice scope)
{
    uint32_t newest = saga_find_call(saga, step, tool, scope);

    return newest == STEP_NONE ? 0 : saga->steps[newest].forward.generation + 1;
}

uint32_t saga_find_key(const struct saga *saga, const struct op_key *key, enum direction *direction)
{
    for (uint32_t i = 0; i < saga->definition->step_count && !uuid_is_nil(&key->uuid); i++) {
        for (unsigned d = 0; d < DIRECTION_COUNT; d++) {
            if (uuid_equal(&operation_of(saga, i, (enum direction)d)->key.uuid, &key->uuid)) {
                *direction = (enum direction)d;
                return i;
            }
        }
    }
    return STEP_NONE;
}

const char *saga_over_budget(const struct saga *saga, const struct tool *tool, bool is_emission, bool begins)
{
    const struct budget *limit = &saga->budget, *used = &saga->used;
    bool costs = tool->cost_fixed_micros > 0 || tool->cost.count > 0;

    if (begins && limit->calls >= 0 && used->calls >= limit->calls) {
        return "calls";
    }
    if (is_emission && limit->emissions >= 0 && used->emissions >= limit->emissions) {
        return "emissions";
    }
    /* The cost may be known only afterwards, so such a call is accepted while anything is left. */
    if (begins && costs && limit->micros >= 0 &&
        (saga_has_unknown_cost(saga) || used->micros >= limit->micros ||
         tool->cost_fixed_micros > limit->micros - used->micros)) {
        return "micros";
    }
    return NULL;
}
