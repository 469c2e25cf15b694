/*
 * A person's decision about an open escalation. The person says what happened to one effect, or what shall be tried.
 * What follows for the saga is decided here as for every other input. The verb is recorded first, then what it led to.
 */
#include "base/json.h"
#include "core/saga/machine.h"

#define OPERATOR (m->input->verdict)

struct record operator_record(const struct machine *m, enum record_type type)
{
    struct record record = machine_record(m, type, m->about, m->direction);

    record.actor = OPERATOR.actor;
    record.note = OPERATOR.note;
    return record;
}

static struct slice verdict_name(const struct saga_input *input)
{
    return input->verdict.action != OPERATOR_RESOLVE ? SLICE_NONE
           : input->verdict.undone                   ? SLICE("undone")
           : input->verdict.happened                 ? SLICE("happened")
                                                     : SLICE("not_happened");
}

/*
 * Records the resolution. Records that follow from it are made before, because they name the subject of the escalation.
 * A verdict on an operation also answers the question about it.
 */
void operator_resolved(struct machine *m)
{
    const struct escalation *open = &m->saga->escalation;
    struct record record = {.type = RECORD_ESCALATION_RESOLVED,
                            .step = open->step,
                            .direction = open->direction,
                            .actor = OPERATOR.actor,
                            .note = OPERATOR.note,
                            .escalation = open->number};
    bool by_key = !uuid_is_nil(&OPERATOR.key.uuid);

    if (by_key && (open->number == 0 || open->step != m->about || escalation_is_raised(open))) {
        return;
    }
    if (open->step != STEP_NONE) {
        record.key = operation_of(m->saga, open->step, open->direction)->key;
    }
    record.action = slice_of(operator_action_name(OPERATOR.action));
    record.request = OPERATOR.request;
    record.verdict = verdict_name(m->input);
    machine_emit(m, &record);
}

static void resolved_and(struct machine *m, struct record record)
{
    operator_resolved(m);
    machine_emit(m, &record);
}

static void stop_forward(struct machine *m, const char *detail)
{
    forward_stop(m, STEP_NONE, (struct why){SLICE("operator"), slice_of(detail)}, OPERATOR.actor, OPERATOR.note);
}

/* --- is the result of a step needed later? --- */

struct mention {
    struct slice step;
    bool needed;
};

static void on_use(void *context, const struct step_use *use)
{
    struct mention *mention = context;

    mention->needed = mention->needed || (!use->takes_null && slice_equal(use->step_id, mention->step));
}

static bool template_needs_result(const struct template *template, struct slice step_id)
{
    struct mention mention = {.step = step_id};

    template_each_use(template, on_use, &mention);
    return mention.needed;
}

static bool step_needs_result(const struct step_definition *step, struct slice id)
{
    const struct template *templates[] = {&step->when,     &step->with,  &step->scope, &step->compensate.with,
                                          &step->for_each, &step->sleep, &step->show};

    for (size_t i = 0; i < COUNT_OF(templates); i++) {
        if (template_needs_result(templates[i], id)) {
            return true;
        }
    }
    return false;
}

static bool followers_need_result(const struct definition *definition, struct slice id)
{
    for (uint32_t i = 0; i < definition->follower_count; i++) {
        if (template_needs_result(&definition->followers[i].input, id) ||
            template_needs_result(&definition->followers[i].id, id)) {
            return true;
        }
    }
    return false;
}

/* Returns the step, or the member of the saga, that would miss the result; SLICE_NONE when there is none. */
static struct slice who_needs_result(const struct saga *saga, uint32_t step, bool happened)
{
    const struct definition *definition = saga->definition;
    const struct step_definition *self = &definition->steps[step];
    uint32_t scope = step_scope(saga, step), first = scope == STEP_NONE ? 0 : saga->steps[scope].first,
             count = scope == STEP_NONE ? definition->written_count : saga->steps[scope].count;
    struct slice id = saga_is_open(saga) ? self->id
                      : self->written_in ? self->written_in->steps[self->member].id
                                         : definition->steps[self->member].id;

    if (happened && definition->steps[step].compensate.is_set &&
        template_uses_result(&definition->steps[step].compensate.with)) {
        return SLICE("its own compensator");
    }
    if (step_phase(saga, step) != PHASE_FORWARD && !definition->steps[step].terminal) {
        return SLICE_NONE; /* the step is undone next, and nothing else will read the result */
    }
    /* Only the saga or child in which the step is written can name it, by the id written there; an element by the id of
     * its for_each. */
    for (uint32_t i = 0; i < count; i++) {
        const struct step_definition *other = &definition->steps[first + i];

        if (first + i != step && !step_is_over(saga, first + i) && step_needs_result(other, id)) {
            return other->id;
        }
    }
    if (scope == STEP_NONE && followers_need_result(definition, id)) {
        return SLICE("then");
    }
    return template_needs_result(saga_output_template(saga, scope), id) ? SLICE("output") : SLICE_NONE;
}

/* Refuses with ERR_INVALID when a later expression would get null where it needs a result that the person did not
 * give. */
static enum err_code check_result_given(const struct machine *m, uint32_t step, bool happened)
{
    struct slice needs = OPERATOR.result.ptr ? SLICE_NONE : who_needs_result(m->saga, step, happened);

    if (!needs.ptr) {
        return ERR_OK;
    }
    (void)err_set(m->err, ERR_INVALID, "the result of step %.*s is needed later, by %.*s",
                  SLICE_ARG(m->saga->definition->steps[step].id), SLICE_ARG(needs));
    err_hint(m->err, "Give \"result\" as the tool would have answered it; null if there is none.");
    return ERR_INVALID;
}

/* --- the verbs --- */

/* Resolves a question that does not follow from the state of an operation. What was settled stands, and the person has
 * seen it. */
static enum err_code resolve_raised(struct machine *m)
{
    uint32_t step = m->saga->escalation.step;
    const struct operation *op = step == STEP_NONE ? NULL : &m->saga->steps[step].forward;

    if (OPERATOR.again || OPERATOR.undone) {
        (void)err_set(m->err, ERR_CONFLICT, "this question is about what was settled: nothing follows from its answer");
        err_hint(m->err, "Resolve the operation itself, by its key.");
        return ERR_CONFLICT;
    }

    if (op && (OPERATOR.happened ? op->state == OP_FAILED : op->state == OP_COMPLETED)) {
        (void)err_set(m->err, ERR_CONFLICT, "it is settled already: it %s",
                      op->state == OP_COMPLETED ? "has happened" : "has not happened");
        err_hint(m->err, "Resolve it as it was settled. One more execution is signed off with a bypass.");
        return ERR_CONFLICT;
    }
    operator_resolved(m);
    return ERR_OK;
}

enum err_code operator_happened(struct machine *m)
{
    bool undo = m->direction == DIRECTION_UNDO;
    struct record record = operator_record(m, undo ? RECORD_COMPENSATION_COMPLETED : RECORD_STEP_COMPLETED);

    if (!undo && step_phase(m->saga, record.step) == PHASE_UNDO && m->saga->definition->steps[record.step].terminal &&
        undone_around(m->saga, record.step)) {
        (void)err_set(m->err, ERR_CONFLICT, "it cannot be undone, and what came before it has been");
        err_hint(m->err, "Waive it: it is then listed as a debt.");
        return ERR_CONFLICT;
    }
    if (!undo && check_result_given(m, record.step, true) != ERR_OK) {
        return ERR_INVALID;
    }
    record.source = SOURCE_OPERATOR;
    record.result = OPERATOR.result.ptr ? OPERATOR.result : SLICE("null");
    const struct tool *tool = saga_tool(m->saga, record.step, record.direction);

    record.cost_micros = tool->cost_fixed_micros;
    if (operation_cost_is_estimated(m->saga, record.step, record.direction)) {
        record.cost_micros = operation_of(m->saga, record.step, record.direction)->cost_micros;
    } else if (tool->cost.count > 0) {
        record.cost_unknown = SLICE("a person said that it happened, and nobody evaluated its cost");
    }
    if (!undo) {
        record.undo_args = OPERATOR.undo_args;
        record.undo_error = OPERATOR.undo_error;
    }
    resolved_and(m, record);
    return ERR_OK;
}

enum err_code operator_did_not_happen(struct machine *m)
{
    bool undo = m->direction == DIRECTION_UNDO;
    struct record record = operator_record(m, undo ? RECORD_COMPENSATION_FAILED : RECORD_STEP_FAILED);

    record.source = SOURCE_OPERATOR;
    record.error = SLICE("not-happened");
    record.detail = SLICE("a person has stated that it did not happen");
    resolved_and(m, record);
    return ERR_OK;
}

static enum err_code check_changed_arguments(struct machine *m, const struct operation *op, const struct tool *tool)
{
    struct faults faults;

    if (op->took_effect != TOOK_EFFECT_NO) {
        (void)err_set(m->err, ERR_CONFLICT, "its arguments may be changed only where it certainly had no effect");
        err_hint(m->err, "Retry without \"args\", or resolve it as not_happened first.");
        return ERR_CONFLICT;
    }
    faults_init(&faults, m->turn);
    schema_check(tool->input, OPERATOR.args, SLICE("/args"), m->turn, &faults);
    if (faults.count > 0) {
        struct slice text = machine_faults(m, &faults);

        return err_set(m->err, ERR_INVALID, "the tool does not take these arguments: %.*s", SLICE_ARG(text));
    }
    return ERR_OK;
}

static enum err_code check_retry(struct machine *m, const struct operation *op, const struct terms *terms)
{
    bool maybe = op->took_effect == TOOK_EFFECT_MAYBE;

    if (maybe && terms->effect == EFFECT_ONCE && !OPERATOR.accept_double) {
        (void)err_set(m->err, ERR_CONFLICT,
                      "a tool of class once may have taken effect already: another call may be a second effect");
        err_hint(m->err, "Set \"accept_double\": true to take that upon yourself, or resolve it.");
        return ERR_CONFLICT;
    }
    if (maybe && !OPERATOR.accept_double && !terms->probe && terms->window_end_ms &&
        m->input->now_ms >= terms->window_end_ms) {
        (void)err_set(m->err, ERR_CONFLICT,
                      "the receiver has forgotten the key by now: another call may be a second effect");
        err_hint(m->err, "Set \"accept_double\": true to take that upon yourself, or resolve it.");
        return ERR_CONFLICT;
    }
    if (!OPERATOR.args.ptr && !op->args.ptr) {
        (void)err_set(m->err, ERR_INVALID, "its arguments could not be made: %.*s", SLICE_ARG(op->detail));
        err_hint(m->err, "Give \"args\".");
        return ERR_INVALID;
    }
    return ERR_OK;
}

static void change_arguments(const struct machine *m, const struct operation *op, const struct tool *tool,
                             struct record *record)
{
    const struct saga *saga = m->saga;
    struct op_identity identity = {
        .namespace = saga->namespace,
        .run = saga->run,
        .step = record->direction == DIRECTION_UNDO ? saga->definition->steps[record->step].id
                                                    : step_key_name(saga, record->step),
        .tool = tool->name,
        .scope = saga->steps[record->step].forward.scope,
        .direction = record->direction,
    };

    /* Other arguments make another operation; when there was none yet, it is the first. */
    if (uuid_is_nil(&op->key.uuid)) {
        record->generation = op->generation;
    } else if (record->direction == DIRECTION_UNDO) {
        record->generation = op->generation + 1;
    } else { /* an agent may have called it once more meanwhile */
        record->generation = saga_next_generation(saga, identity.step, tool->name, identity.scope);
    }
    identity.generation = record->generation;
    record->key = op_key_make(&identity);
    record->args = OPERATOR.args;
    record->fingerprint = op_fingerprint(tool->name, OPERATOR.args, &tool->volatiles, m->turn);
    machine_freeze_effect(m, tool, OPERATOR.args, record);
}

/* Retries a denied operation. No try was used up, so it needs no other round. It only becomes due now. */
static enum err_code retry_denied(struct machine *m)
{
    bool undo = m->direction == DIRECTION_UNDO;
    struct record record =
        machine_record(m, undo ? RECORD_COMPENSATION_RETRYING : RECORD_STEP_RETRYING, m->about, m->direction);
    const struct operation *op = operation_of(m->saga, m->about, m->direction);

    if (OPERATOR.args.ptr) {
        (void)err_set(m->err, ERR_CONFLICT, "it was never sent: its arguments stay as they are");
        err_hint(m->err, "Retry without \"args\", or resolve it as not_happened first.");
        return ERR_CONFLICT;
    }
    record.due_ms = m->input->now_ms;
    record.maybe = op->took_effect == TOOK_EFFECT_MAYBE;
    record.source = SOURCE_OPERATOR;
    record.error = op->error;
    record.detail = op->detail;
    resolved_and(m, record);
    return ERR_OK;
}

static enum err_code retry(struct machine *m)
{
    const struct saga *saga = m->saga;
    uint32_t step = m->about;
    enum direction direction = m->direction;
    const struct operation *op = operation_of(saga, step, direction);
    const struct tool *tool = saga_tool(saga, step, direction);
    struct terms terms = operation_terms(saga, step, direction);
    struct record record =
        operator_record(m, direction == DIRECTION_UNDO ? RECORD_COMPENSATION_REOPENED : RECORD_STEP_REOPENED);
    enum err_code code = check_retry(m, op, &terms);

    if (code == ERR_OK && OPERATOR.args.ptr) {
        code = check_changed_arguments(m, op, tool);
    }
    if (code != ERR_OK) {
        return code;
    }
    record.attempt = 0;
    record.accept_double = OPERATOR.accept_double && op->took_effect == TOOK_EFFECT_MAYBE;
    if (op->state == OP_FAILED && op->source == SOURCE_OPERATOR) {
        /* A person has stated that it did not happen. The call may still be under way, and other arguments would not
         * even have its key. So the next call waits as after `not_happened` with `then: retry`. */
        int64_t quiet_ms = operation_quiet_ms(saga, step, direction);

        record.due_ms = quiet_ms > m->input->now_ms ? quiet_ms : 0;
    }
    if (OPERATOR.args.ptr) {
        change_arguments(m, op, tool, &record);
    }
    resolved_and(m, record);
    return ERR_OK;
}

static enum err_code probe(struct machine *m)
{
    bool undo = m->direction == DIRECTION_UNDO;
    struct record record = operator_record(m, undo ? RECORD_COMPENSATION_UNKNOWN : RECORD_STEP_UNKNOWN);
    const struct operation *op = operation_of(m->saga, record.step, record.direction);

    record.due_ms = m->input->now_ms;
    record.error = op->error;
    record.detail = op->detail;
    machine_emit(m, &record); /* the escalation stays open until the answer is there */
    return ERR_OK;
}

static enum err_code waive(struct machine *m)
{
    struct record record = operator_record(m, RECORD_STEP_WAIVED);

    record.attempt = 0;
    resolved_and(m, record);
    if (step_phase(m->saga, record.step) == PHASE_FORWARD) {
        stop_forward(m, "a person left an effect standing and had the rest undone");
    }
    return ERR_OK;
}

static enum err_code skip(struct machine *m)
{
    struct record record = operator_record(m, RECORD_STEP_SKIPPED);

    if (check_result_given(m, record.step, false) != ERR_OK) {
        return ERR_INVALID;
    }
    record.attempt = 0;
    record.result = OPERATOR.result;
    resolved_and(m, record);
    return ERR_OK;
}

static enum err_code compensate(struct machine *m)
{
    operator_resolved(m);
    stop_forward(m, "a person had the saga undone");
    return ERR_OK;
}

static enum err_code abandon(struct machine *m)
{
    struct record record = {
        .type = RECORD_SAGA_ABANDONED, .step = STEP_NONE, .actor = OPERATOR.actor, .note = OPERATOR.note};

    record.debts = saga_make_debts(m->saga, m->turn, &record.debt_count);
    resolved_and(m, record);
    return ERR_OK;
}

/* --- the door --- */

/* Is the action a verdict on what happened, or a new attempt? The answer of a call that is out may soon differ, so it
 * is awaited and not cut off. */
static bool is_verdict(enum operator_action action)
{
    switch (action) {
    case OPERATOR_RETRY:
    case OPERATOR_PROBE:
    case OPERATOR_RESOLVE:
    case OPERATOR_WAIVE:
    case OPERATOR_SKIP:
        return true;
    case OPERATOR_COMPENSATE:
    case OPERATOR_ABANDON:
        return false;
    case OPERATOR_ACTION_COUNT:
        break;
    }
    UNREACHABLE();
}

static enum err_code refuse_verb(struct machine *m, unsigned allowed)
{
    struct slice names = SLICE("");

    for (unsigned i = 0; i < OPERATOR_ACTION_COUNT; i++) {
        if (allowed & BIT(i)) {
            names = arena_printf(m->turn, "%.*s%s%s", SLICE_ARG(names), names.len ? ", " : "",
                                 operator_action_name((enum operator_action)i));
        }
    }
    (void)err_set(m->err, ERR_CONFLICT, "%s is not possible here", operator_action_name(OPERATOR.action));
    err_detail(m->err, "possible are %.*s", SLICE_ARG(names));
    return ERR_CONFLICT;
}

/* Returns the answer of an earlier request under the same key to the case of this number; NULL when there is none. */
static const struct case_round *answered_before(const struct saga *saga, uint64_t number, struct slice request)
{
    for (uint32_t i = 0; request.ptr && i <= saga->definition->step_count; i++) {
        for (unsigned d = 0; d < DIRECTION_COUNT; d++) {
            const struct case_round *asked =
                saga_asked(saga, i < saga->definition->step_count ? i : STEP_NONE, (enum direction)d);

            for (; asked && asked->number == number; asked = asked->before) {
                if (slice_equal(asked->request, request)) {
                    return asked;
                }
            }
        }
    }
    return NULL;
}

/* Checks the round. A person who has seen an earlier round has not seen what happened since. */
enum err_code operator_check_round(struct machine *m, uint32_t step, enum direction direction)
{
    const struct case_round *asked = saga_asked(m->saga, step, direction);
    uint64_t round = asked ? asked->round : 0;

    if (OPERATOR.round != 0 && OPERATOR.round != round) {
        (void)err_set(m->err, ERR_DECIDED, "round %llu is over: it is round %llu by now",
                      (unsigned long long)OPERATOR.round, (unsigned long long)round);
        err_hint(m->err, "Look at what happened since, and decide about that.");
        return ERR_DECIDED;
    }
    if (OPERATOR.round == 0 && round > 1 && asked->resolved_ms == 0 && !OPERATOR.request.ptr) {
        (void)err_set(m->err, ERR_INVALID, "it was asked again: say which round you decide about");
        err_hint(m->err, "Give \"round\" as the case shows it.");
        return ERR_INVALID;
    }
    return ERR_OK;
}

static enum err_code check_escalation(struct machine *m)
{
    if (m->saga->escalation.number == 0 || m->saga->escalation.number != OPERATOR.escalation) {
        return err_set(m->err, ERR_DECIDED, "escalation %llu is not open any more",
                       (unsigned long long)OPERATOR.escalation);
    }
    if (!escalation_stands(
            m->saga)) { /* the answer came in a pause, and nothing follows from it before the pause ends */
        (void)err_set(m->err, ERR_DECIDED, "escalation %llu was settled without a person",
                      (unsigned long long)OPERATOR.escalation);
        err_hint(m->err, "Resume the saga: it is closed then.");
        return ERR_DECIDED;
    }
    return operator_check_round(m, m->saga->escalation.step, m->saga->escalation.direction);
}

static enum err_code check_request(struct machine *m)
{
    enum err_code code = uuid_is_nil(&OPERATOR.key.uuid) ? check_escalation(m) : ERR_OK;

    if (code != ERR_OK) {
        return code;
    }
    if (!OPERATOR.actor.len || !OPERATOR.note.len) {
        (void)err_set(m->err, ERR_INVALID, "a decision needs an actor and a note");
        err_hint(m->err, "Say in \"note\" why.");
        return ERR_INVALID;
    }
    if (OPERATOR.args.ptr && OPERATOR.action != OPERATOR_RETRY) {
        return err_set(m->err, ERR_INVALID, "\"args\" goes with retry only");
    }
    if (OPERATOR.result.ptr && !(OPERATOR.action == OPERATOR_RESOLVE && OPERATOR.happened) &&
        OPERATOR.action != OPERATOR_SKIP) {
        return err_set(m->err, ERR_INVALID, "\"result\" goes with resolve as happened, and with skip, only");
    }
    if (OPERATOR.again && (OPERATOR.action != OPERATOR_RESOLVE || OPERATOR.happened || OPERATOR.undone)) {
        return err_set(m->err, ERR_INVALID, "\"then\": \"retry\" goes with resolve as not_happened only");
    }
    return ERR_OK;
}

/* Decides a repeat. The first answer holds, and a repeat of it changes nothing. */
static enum err_code repeat(struct machine *m, const struct case_round *asked)
{
    if (slice_is(asked->action, operator_action_name(OPERATOR.action)) &&
        slice_equal(asked->verdict, verdict_name(m->input))) {
        return ERR_OK;
    }
    return err_set(m->err, ERR_OTHER_INPUT, "another answer was given under this key");
}

enum err_code operator_decide(struct machine *m)
{
    bool by_key = !uuid_is_nil(&OPERATOR.key.uuid);
    const struct case_round *before = answered_before(m->saga, OPERATOR.escalation, OPERATOR.request);
    unsigned allowed = by_key ? BIT(OPERATOR_RESOLVE) : saga_escalation_actions(m->saga);
    enum err_code code = check_request(m);

    if (before) {
        return repeat(m, before);
    }
    m->about = m->saga->escalation.step;
    m->direction = m->saga->escalation.direction;
    if (code != ERR_OK) {
        return code;
    }
    CHECK((unsigned)OPERATOR.action < OPERATOR_ACTION_COUNT);
    if (by_key || (is_verdict(OPERATOR.action) && !escalation_is_raised(&m->saga->escalation))) {
        code = verdict_find(m);
        if (code != ERR_OK) {
            return code;
        }
    }
    if (!(allowed & BIT(OPERATOR.action))) {
        return refuse_verb(m, allowed);
    }
    switch (OPERATOR.action) {
    case OPERATOR_RETRY:
        return operation_is_denied(operation_of(m->saga, m->about, m->direction)) ? retry_denied(m) : retry(m);
    case OPERATOR_PROBE:
        return probe(m);
    case OPERATOR_RESOLVE:
        if (!by_key && escalation_is_raised(&m->saga->escalation)) {
            return resolve_raised(m);
        }
        return verdict_decide(m);
    case OPERATOR_WAIVE:
        return waive(m);
    case OPERATOR_SKIP:
        return skip(m);
    case OPERATOR_COMPENSATE:
        return compensate(m);
    case OPERATOR_ABANDON:
        return abandon(m);
    case OPERATOR_ACTION_COUNT:
        break;
    }
    UNREACHABLE();
}
