/* See prove_world.h. */
#include "core/prove_world.h"

#include <string.h>

#include "core/graph.h"
#include "core/saga_machine.h"

#define WORLD_START_MS INT64_C(1700000000000)
#define TURNS_MAX 3000   /* of one play: no play that ends takes as many */
#define DECISIONS_MAX 4  /* a person is asked about one thing no more often */
#define PATIENCE_PARTS 3 /* in so many silences is a receiver given up */

/* --- the definition without values --- */

static const struct tool *symbolic_tool(const struct tool *tool, enum effect effect, struct arena *arena)
{
    struct tool *copy = arena_dup(arena, tool, sizeof(*tool));

    copy->input = NULL;
    copy->conditional = false;
    copy->effect_if = (struct template){0};
    copy->effect = effect;
    return copy;
}

/* What has expressions is asked for as a want, and anything will do as the answer. */
static struct template symbolic_template(const struct template *template)
{
    return template->count ? (struct template){.json = SLICE("{}"), .program_count = 1} : *template;
}

const struct definition *prove_symbolic(const struct definition *definition, uint32_t variant, enum direction direction,
                                        enum effect effect, struct arena *arena)
{
    struct definition *copy = arena_dup(arena, definition, sizeof(*definition));

    CHECK(definition->kind == SAGA_DEFINED);
    copy->version = definition->version ? definition->version : 1; /* of a file: a run needs one */
    copy->input = NULL;
    copy->output = (struct template){0};
    copy->steps = arena_array(arena, definition->step_count ? definition->step_count : 1, sizeof(*copy->steps));
    for (uint32_t i = 0; i < definition->step_count; i++) {
        struct step_definition *step = &copy->steps[i];
        bool asked = definition->steps[i].scope.count > 0;
        enum effect of_step, of_undo;

        *step = definition->steps[i];
        of_step = i == variant && direction == DIRECTION_DO ? effect : step->tool->effect;
        step->retry = step->tool->conditional ? retry_policy_of_step(step, of_step) : step->retry;
        step->tool = symbolic_tool(step->tool, of_step, arena);
        step->with = asked ? symbolic_template(&step->scope) : symbolic_template(&step->with);
        step->scope = (struct template){0};
        step->when = symbolic_template(&step->when);
        if (!step->compensate.is_set) {
            continue;
        }
        of_undo = i == variant && direction == DIRECTION_UNDO ? effect : step->compensate.tool->effect;
        step->compensate.retry = step->compensate.tool->conditional ? retry_policy_of_undo(&step->compensate, of_undo)
                                                                    : step->compensate.retry;
        step->compensate.tool = symbolic_tool(step->compensate.tool, of_undo, arena);
        step->compensate.with = (struct template){0};
    }
    return copy;
}

/* --- books --- */

static const struct operation *op_of(const struct prove_world *w, uint32_t step, enum direction direction)
{
    return direction == DIRECTION_UNDO ? &w->saga.steps[step].undo : &w->saga.steps[step].forward;
}

static bool is_read(const struct prove_world *w, uint32_t step)
{
    return w->definition->steps[step].tool->effect == EFFECT_READ;
}

bool prove_world_stands(const struct prove_world *w, uint32_t step)
{
    return (w->books[step].did || w->books[step].maybe) && !w->books[step].undone && !is_read(w, step);
}

/* What a person left standing, or found never to have been there, holds nothing up. */
static bool is_to_be_undone(const struct prove_world *w, uint32_t step)
{
    enum plan_state plan = w->saga.steps[step].plan;

    return prove_world_stands(w, step) && plan != PLAN_WAIVED && plan != PLAN_DROPPED;
}

/* So much the saga can know: the answer of an undo, or a person's verdict, is still to come. */
static bool may_stand_yet(const struct prove_world *w, uint32_t step)
{
    enum plan_state plan = w->saga.steps[step].plan;

    return plan == PLAN_VERDICT || plan == PLAN_READY || plan == PLAN_ACTIVE || plan == PLAN_FAILED;
}

static void violate(struct prove_world *w, const char *what, uint32_t step, uint32_t other)
{
    const struct step_definition *steps = w->definition->steps;

    if (w->violation.ptr) { /* the first is the cause */
        return;
    }
    if (step == STEP_NONE) {
        w->violation = arena_slice(w->arena, slice_of(what));
    } else if (other == STEP_NONE) {
        w->violation = arena_printf(w->arena, "%.*s %s", SLICE_ARG(steps[step].id), what);
    } else {
        w->violation =
            arena_printf(w->arena, "%.*s %s %.*s", SLICE_ARG(steps[step].id), what, SLICE_ARG(steps[other].id));
    }
}

static void check_step_begins(struct prove_world *w, uint32_t step)
{
    const struct step_definition *definition = &w->definition->steps[step];

    if (w->saga.phase != PHASE_FORWARD) {
        violate(w, "is begun although the saga is being undone", step, STEP_NONE);
    }
    for (uint32_t i = 0; i < definition->after_count; i++) {
        const struct operation *before = &w->saga.steps[definition->after[i]].forward;

        if (before->state == OP_NONE || before->state == OP_UNKNOWN || operation_is_open(before)) {
            violate(w, "is begun before the end of", step, definition->after[i]);
        }
    }
}

/* Nothing that may build on it stands any more, and of what could be undone now it is what began last. */
static void check_undo_begins(struct prove_world *w, uint32_t step)
{
    const struct step_definition *definition = &w->definition->steps[step];
    struct prove_book *book = &w->books[step];
    bool blind =
        w->saga.steps[step].forward.took_effect == TOOK_EFFECT_MAYBE && definition->compensate.tolerates_absent;

    if (book->undo_begun) {
        return; /* one more round, in the order that people brought about */
    }
    book->undo_begun = true;
    if (!book->did && !book->maybe && !blind) {
        violate(w, "is undone although it did not happen", step, STEP_NONE);
    }
    for (uint32_t i = 0; i < w->definition->step_count; i++) {
        bool held = false;

        if (i == step || !is_to_be_undone(w, i)) {
            continue;
        }
        if (graph_before(w->definition, step, i)) {
            violate(w, "is undone before", step, i);
        }
        for (uint32_t k = 0; k < w->definition->step_count && !held; k++) {
            held = may_stand_yet(w, k) && graph_before(w->definition, i, k);
        }
        if (!held && !w->books[i].undo_begun && w->saga.steps[i].plan == PLAN_READY &&
            w->saga.steps[i].start_order > w->saga.steps[step].start_order) {
            violate(w, "is undone before what began later:", step, i);
        }
    }
}

static void check_record(struct prove_world *w, const struct record *record)
{
    uint32_t step = record->step;
    struct err err = {0};

    if (w->saga.phase == PHASE_ENDED) {
        violate(w, "something happens after the end", STEP_NONE, STEP_NONE);
        return;
    }
    if (!record_check(&w->saga, record, &err)) {
        violate(w, err.message, STEP_NONE, STEP_NONE);
        return;
    }
    if (record->type == RECORD_STEP_PENDING || (record->type == RECORD_STEP_INTENT && record->attempt == 1)) {
        check_step_begins(w, step);
    } else if (record->type == RECORD_COMPENSATION_INTENT && record->attempt == 1) {
        check_undo_begins(w, step);
    } else if (record->type == RECORD_COMPENSATION_COMPLETED && !w->books[step].undone) {
        violate(w, "counts as undone, and is not", step, STEP_NONE);
    } else if (record->type == RECORD_STEP_COMPLETED && record->source != SOURCE_PRECHECK && !w->books[step].did) {
        violate(w, "counts as done, and did not happen", step, STEP_NONE);
    } else if (record->type == RECORD_STEP_FAILED && w->books[step].did && !is_read(w, step)) {
        violate(w, "counts as failed, and happened", step, STEP_NONE);
    }
}

/* --- one turn --- */

/* False: refused, or nothing came of it. */
static bool feed(struct prove_world *w, struct saga_input input)
{
    struct records records;
    struct err err = {0};

    input.now_ms = ++w->now_ms; /* no two turns at the same time: whose call left first is known */
    input.escalation_number = w->next_escalation;
    arena_reset(w->turn);
    if (saga_decide(&w->saga, &input, w->turn, &records, &err) != ERR_OK) {
        return false;
    }
    for (size_t i = 0; i < records.count && !w->violation.ptr; i++) {
        check_record(w, &records.items[i]);
        if (w->violation.ptr) {
            return true;
        }
        w->next_escalation += records.items[i].type == RECORD_ESCALATION_OPENED;
        w->last_type = records.items[i].type;
        w->last_step = records.items[i].step;
        saga_apply(&w->saga, &records.items[i]);
    }
    w->turns++;
    return records.count > 0;
}

static bool is_in_trouble(const struct prove_world *w, uint32_t step, enum direction direction)
{
    return w->point.step == step && w->point.direction == direction && !w->healed;
}

static bool feed_outcome(struct prove_world *w, enum saga_input_type type, const struct want *want,
                         struct outcome outcome)
{
    struct saga_input input = {.type = type};

    input.settled.step = want->step;
    input.settled.direction = want->direction;
    input.settled.attempt = want->number;
    input.settled.outcome = outcome;
    if (outcome.kind == OUTCOME_COMPLETED && want->direction == DIRECTION_DO &&
        w->definition->steps[want->step].compensate.is_set) {
        input.settled.undo_args = SLICE("{}");
        if (w->point.trouble == TROUBLE_UNDO_ARGUMENTS && is_in_trouble(w, want->step, DIRECTION_DO)) {
            input.settled.undo_args = SLICE_NONE;
            input.settled.undo_error = SLICE("there is no such member");
            w->struck = w->healed = w->abort_next = true;
        }
    }
    return feed(w, input);
}

void prove_world_open(struct prove_world *w, const struct definition *symbolic, struct arena *arena, struct arena *turn)
{
    struct saga_input start = {.type = SAGA_INPUT_START};
    struct saga_id id = {{{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 0x01}}};

    *w = (struct prove_world){.definition = symbolic, .arena = arena, .turn = turn, .now_ms = WORLD_START_MS};
    w->next_escalation = 1;
    w->last_step = STEP_NONE;
    w->point = (struct prove_point){.step = STEP_NONE};
    w->books = arena_array(arena, symbolic->step_count ? symbolic->step_count : 1, sizeof(*w->books));
    w->undone = arena_array(arena, symbolic->step_count ? symbolic->step_count : 1, sizeof(*w->undone));
    saga_init(&w->saga, arena, id, symbolic);
    start.start.namespace = SLICE("default");
    start.start.input = SLICE("{}");
    (void)feed(w, start);
}

void prove_world_fork(struct prove_world *w, const struct prove_world *from, struct arena *arena)
{
    uint32_t count = from->definition->step_count;

    *w = *from;
    w->arena = arena;
    w->saga = *saga_copy(&from->saga, arena);
    w->saga.arena = arena; /* this copy is not a decision's: it lives on */
    w->saga.scratch = NULL;
    w->books = arena_array(arena, count ? count : 1, sizeof(*w->books));
    w->undone = arena_array(arena, count ? count : 1, sizeof(*w->undone));
    for (uint32_t i = 0; i < count; i++) {
        w->books[i] = from->books[i];
        w->undone[i] = from->undone[i];
    }
}

/* --- the other end --- */

static void take_effect(struct prove_world *w, uint32_t step, enum direction direction)
{
    struct prove_book *book = &w->books[step];

    if (direction == DIRECTION_DO) {
        book->did = true;
    } else if (!book->undone) {
        book->undone = true;
        w->undone[w->undone_count++] = step;
    }
}

/* Nobody answers for as long as it takes to be given up. */
static void let_pass(struct prove_world *w, int64_t patience_ms)
{
    w->now_ms += patience_ms / PATIENCE_PARTS + 1;
}

static struct outcome answer_unknown(struct prove_world *w, uint32_t step, enum direction direction)
{
    enum prove_answer answer = w->point.answer;

    if (answer == ANSWER_AGAIN || answer == ANSWER_PROBE_DONE || answer == ANSWER_HAPPENED || answer == ANSWER_LATE) {
        take_effect(w, step, direction);
    } else if (direction == DIRECTION_DO && (answer == ANSWER_NOBODY || answer == ANSWER_WAIVE)) {
        w->books[step].maybe = true;
    }
    w->healed = answer == ANSWER_AGAIN;
    if (direction == DIRECTION_UNDO && !w->healed) {
        let_pass(w, w->definition->steps[step].compensate.give_up_after_ms);
    }
    return (struct outcome){.kind = OUTCOME_UNKNOWN, .error = SLICE("timeout")};
}

static struct outcome answer_call(struct prove_world *w, uint32_t step, enum direction direction)
{
    struct outcome refused = {.kind = OUTCOME_RETRY, .error = SLICE("refused")};

    if (is_in_trouble(w, step, direction)) {
        w->struck = true;
        switch (w->point.trouble) {
        case TROUBLE_FAILS:
            return (struct outcome){.kind = OUTCOME_FAILED, .error = SLICE("refused")};
        case TROUBLE_UNSENT:
            refused.unsent = true;
            return refused;
        case TROUBLE_BUSY:
            w->healed = true;
            return refused;
        case TROUBLE_UNKNOWN:
            return answer_unknown(w, step, direction);
        case TROUBLE_NONE:
        case TROUBLE_ARGUMENTS:
        case TROUBLE_SKIPPED:
        case TROUBLE_BEFORE:
        case TROUBLE_BLOCKED:
        case TROUBLE_UNDO_ARGUMENTS:
        case TROUBLE_ABORT:
        case TROUBLE_DEADLINE:
        case PROVE_TROUBLE_COUNT:
            break;
        }
    }
    take_effect(w, step, direction);
    return (struct outcome){.kind = OUTCOME_COMPLETED, .result = SLICE("{}")};
}

static struct outcome answer_probe(struct prove_world *w, uint32_t step, enum direction direction)
{
    const struct prove_book *book = &w->books[step];

    if (w->point.step == step && w->point.direction == direction && w->point.trouble == TROUBLE_UNKNOWN) {
        if (w->point.answer == ANSWER_PROBE_ABSENT) {
            w->healed = true; /* called again it is taken; until then every probe says the same */
            return (struct outcome){.kind = OUTCOME_ABSENT, .error = SLICE("absent")};
        }
        if (w->point.answer != ANSWER_PROBE_DONE) {
            let_pass(w, saga_tool(&w->saga, step, direction)->probe.give_up_after_ms);
            return (struct outcome){.kind = OUTCOME_UNKNOWN, .error = SLICE("timeout")};
        }
    }
    if (direction == DIRECTION_DO ? book->did : book->undone) {
        return (struct outcome){.kind = OUTCOME_COMPLETED, .result = SLICE("{}")};
    }
    return (struct outcome){.kind = OUTCOME_ABSENT, .error = SLICE("absent")};
}

static void answer_admission(struct prove_world *w, uint32_t step)
{
    struct saga_input input = {.type = SAGA_INPUT_ADMITTED};

    input.admitted.step = step;
    if (is_in_trouble(w, step, DIRECTION_DO) &&
        (w->point.trouble == TROUBLE_BEFORE || w->point.trouble == TROUBLE_BLOCKED)) {
        w->struck = w->healed = true;
        input.admitted.admission = w->point.trouble == TROUBLE_BEFORE ? ADMISSION_DONE : ADMISSION_BLOCKED;
        input.admitted.detail = SLICE("the precheck says so");
        input.admitted.result = SLICE("{}");
    }
    (void)feed(w, input);
}

static void answer_evaluation(struct prove_world *w, const struct want *want)
{
    bool ours = want->step != STEP_NONE && want->number == EVALUATE_ARGS && is_in_trouble(w, want->step, DIRECTION_DO);
    struct saga_input input = {.type = SAGA_INPUT_EVALUATED};

    input.evaluated.what = (enum evaluation)want->number;
    input.evaluated.step = want->step;
    input.evaluated.value = SLICE("{}");
    if (ours && w->point.trouble == TROUBLE_ARGUMENTS) {
        w->struck = w->healed = true;
        input.evaluated.failed = true;
        input.evaluated.error = SLICE("there is no such member");
    } else if (ours && w->point.trouble == TROUBLE_SKIPPED) {
        w->struck = w->healed = true;
        input.evaluated.skipped = true;
    }
    (void)feed(w, input);
}

void prove_world_skip(struct prove_world *w, uint32_t step)
{
    struct saga_input input = {.type = SAGA_INPUT_EVALUATED};

    input.evaluated.what = EVALUATE_ARGS;
    input.evaluated.step = step;
    input.evaluated.skipped = true;
    (void)feed(w, input);
}

static void feed_timer(struct prove_world *w, const struct want *want)
{
    struct saga_input input = {.type = SAGA_INPUT_TIMER};

    input.timer.step = want->step;
    input.timer.direction = want->direction;
    if (want->step == STEP_NONE) {
        input.timer.timer = (enum saga_timer)want->number;
    }
    (void)feed(w, input);
}

void prove_world_do(struct prove_world *w, const struct want *want)
{
    if (want->due_ms > w->now_ms) {
        w->now_ms = want->due_ms;
    }
    switch (want->type) {
    case WANT_CALL:
        (void)feed_outcome(w, SAGA_INPUT_SETTLED, want, answer_call(w, want->step, want->direction));
        return;
    case WANT_PROBE:
        (void)feed_outcome(w, SAGA_INPUT_PROBED, want, answer_probe(w, want->step, want->direction));
        return;
    case WANT_ADMIT:
        answer_admission(w, want->step);
        return;
    case WANT_TIMER:
        feed_timer(w, want);
        return;
    case WANT_EVALUATE:
        answer_evaluation(w, want);
        return;
    }
    UNREACHABLE();
}

void prove_world_abort(struct prove_world *w)
{
    struct saga_input input = {.type = SAGA_INPUT_ABORT};

    input.abort.actor = SLICE("somebody");
    (void)feed(w, input);
}

void prove_world_deadline(struct prove_world *w)
{
    const struct want deadline = {
        .type = WANT_TIMER, .step = STEP_NONE, .number = SAGA_TIMER_DEADLINE, .due_ms = w->saga.deadline_ms};

    prove_world_do(w, &deadline);
}

/* --- people --- */

/* The verb that this play has for the open question; false: nobody answers. */
static bool choose_verb(const struct prove_world *w, struct saga_input *input)
{
    const struct escalation *open = &w->saga.escalation;
    bool ours = open->step == w->point.step;

    if (w->point.answer == ANSWER_NOBODY || w->decisions >= DECISIONS_MAX || open->step == STEP_NONE) {
        return false;
    }
    if (w->decisions == 0 && ours && open->direction == w->point.direction &&
        (w->point.answer == ANSWER_HAPPENED || w->point.answer == ANSWER_NOT_HAPPENED)) {
        input->operator.action = OPERATOR_RESOLVE;
        input->operator.happened = w->point.answer == ANSWER_HAPPENED;
        return true;
    }
    if (ours &&
        (w->point.answer == ANSWER_WAIVE || w->point.answer == ANSWER_SKIP || w->point.answer == ANSWER_COMPENSATE)) {
        input->operator.action = w->point.answer == ANSWER_WAIVE ? OPERATOR_WAIVE
        : w->point.answer == ANSWER_SKIP                         ? OPERATOR_SKIP
                                                                 : OPERATOR_COMPENSATE;
        return true;
    }
    if (open->direction == DIRECTION_UNDO || (ours && w->point.answer == ANSWER_RETRY)) {
        input->operator.action = OPERATOR_RETRY;
        return true;
    }
    if (ours && w->point.answer == ANSWER_LATE) { /* the answer is there, and contradicts what was settled */
        input->operator.action = OPERATOR_RESOLVE;
        input->operator.happened = w->books[open->step].did;
        return true;
    }
    return false;
}

static bool ask_person(struct prove_world *w)
{
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR};
    const struct escalation *open = &w->saga.escalation;

    if (!choose_verb(w, &input)) {
        return false;
    }
    w->decisions++;
    input.operator.escalation = open->number;
    input.operator.actor = SLICE("somebody");
    input.operator.note = SLICE("looked it up");
    if (input.operator.action == OPERATOR_RESOLVE && input.operator.happened) {
        input.operator.result = SLICE("{}");
        if (open->direction == DIRECTION_DO && w->definition->steps[open->step].compensate.is_set) {
            input.operator.undo_args = SLICE("{}");
        }
    }
    if (input.operator.action == OPERATOR_RETRY) {
        w->healed = true;
        if (!op_of(w, open->step, open->direction)->args.ptr) {
            input.operator.args = SLICE("{}");
        }
    }
    return feed(w, input);
}

/* --- what comes next --- */

static int rank(const struct want *want)
{
    switch (want->type) {
    case WANT_EVALUATE:
        return 0;
    case WANT_ADMIT:
        return 1;
    case WANT_TIMER:
        return 2;
    case WANT_CALL:
        return 3;
    case WANT_PROBE:
        return 4;
    }
    UNREACHABLE();
}

/* What can be done now before what needs time; calls are answered in the order in which they left. */
static bool goes_before(const struct prove_world *w, const struct want *a, const struct want *b)
{
    int64_t due_a = a->due_ms > w->now_ms ? a->due_ms : 0, due_b = b->due_ms > w->now_ms ? b->due_ms : 0;

    if (due_a != due_b) {
        return due_a < due_b;
    }
    if (rank(a) != rank(b)) {
        return rank(a) < rank(b);
    }
    if (a->type != WANT_CALL || a->direction != b->direction) {
        return false;
    }
    due_a = op_of(w, a->step, a->direction)->last_sent_ms;
    due_b = op_of(w, b->step, b->direction)->last_sent_ms;
    if (due_a == due_b && a->direction == DIRECTION_UNDO) { /* they left together, what began last in front */
        return w->saga.steps[a->step].start_order > w->saga.steps[b->step].start_order;
    }
    return due_a < due_b;
}

static bool feed_late(struct prove_world *w)
{
    const struct want call = {.step = w->point.step,
                              .number = w->point.step == STEP_NONE ? 0 : w->saga.steps[w->point.step].forward.attempts};

    if (w->point.answer != ANSWER_LATE || w->healed || !w->struck ||
        w->saga.steps[w->point.step].forward.state != OP_UNKNOWN) {
        return false;
    }
    w->healed = true;
    (void)feed_outcome(w, SAGA_INPUT_SETTLED, &call,
                       (struct outcome){.kind = OUTCOME_COMPLETED, .result = SLICE("{}")});
    return true;
}

/* An end is an end: late answers, timers and an abort lead nowhere. */
static void check_end_holds(struct prove_world *w)
{
    struct wants wants;
    uint64_t seq = w->saga.seq;

    arena_reset(w->turn);
    saga_wants(&w->saga, w->turn, &wants);
    if (wants.count > 0) {
        violate(w, "something is wanted after the end", STEP_NONE, STEP_NONE);
    }
    for (uint32_t i = 0; i < w->definition->step_count && w->saga.seq == seq; i++) {
        const struct want call = {.step = i, .number = w->saga.steps[i].forward.attempts};

        (void)feed_outcome(w, SAGA_INPUT_SETTLED, &call,
                           (struct outcome){.kind = OUTCOME_COMPLETED, .result = SLICE("{}")});
        feed_timer(w, &call);
    }
    prove_world_abort(w);
    if (w->saga.seq != seq) {
        violate(w, "something happens after the end", STEP_NONE, STEP_NONE);
    }
}

static void check_end(struct prove_world *w)
{
    for (uint32_t i = 0; i < w->definition->step_count; i++) {
        const struct operation *op = &w->saga.steps[i].forward;

        if (w->saga.end == SAGA_COMPENSATED && prove_world_stands(w, i)) {
            violate(w, "is left standing, and the saga ended compensated", i, STEP_NONE);
        } else if (w->saga.end == SAGA_COMPLETED && w->books[i].undone) {
            violate(w, "was undone, and the saga ended completed", i, STEP_NONE);
        } else if (w->saga.end == SAGA_COMPLETED &&
                   (op->state == OP_NONE || op->state == OP_UNKNOWN || operation_is_open(op) ||
                    (op->state == OP_FAILED && w->definition->steps[i].on_failure != ON_FAILURE_CONTINUE))) {
            violate(w, "is not over, and the saga ended completed", i, STEP_NONE);
        } else if (w->saga.end == SAGA_ABANDONED && prove_world_stands(w, i) && !step_may_stand(&w->saga, i)) {
            violate(w, "is left standing, and is no debt", i, STEP_NONE);
        }
    }
    if (w->saga.end == SAGA_ABANDONED && w->decisions == 0) {
        violate(w, "the saga is abandoned, and nobody has said so", STEP_NONE, STEP_NONE);
    }
    check_end_holds(w);
}

/* Not a move: there is nothing left to do, so somebody must have been asked. */
static void check_rest(struct prove_world *w)
{
    if (!w->saga.escalation.number) {
        violate(w, "the saga is stuck: nothing is wanted, and nobody is asked", STEP_NONE, STEP_NONE);
    }
}

bool prove_world_move(struct prove_world *w)
{
    const struct want *next = NULL;
    struct want chosen;
    struct wants wants;

    if (w->violation.ptr) {
        return false;
    }
    if (w->saga.phase == PHASE_ENDED) {
        check_end(w);
        return false;
    }
    if (w->turns > TURNS_MAX) {
        violate(w, "the saga does not come to an end", STEP_NONE, STEP_NONE);
        return false;
    }
    if (w->abort_next) {
        w->abort_next = false;
        prove_world_abort(w);
        return true;
    }
    if (feed_late(w)) {
        return true;
    }
    arena_reset(w->turn);
    saga_wants(&w->saga, w->turn, &wants);
    for (size_t i = 0; i < wants.count; i++) {
        if (!next || goes_before(w, &wants.items[i], next)) {
            next = &wants.items[i];
        }
    }
    if (w->saga.escalation.number && (!next || next->due_ms > w->now_ms) && ask_person(w)) {
        return true;
    }
    if (!next) {
        check_rest(w);
        return false;
    }
    chosen = *next; /* the wants lie in the arena of the turn */
    prove_world_do(w, &chosen);
    return true;
}

/* --- equal states --- */

/* A person still has something to say, or keeps silent for good: that goes on to be different. */
static bool is_answered_by_people(enum prove_answer answer)
{
    return answer != ANSWER_NONE && answer != ANSWER_AGAIN && answer != ANSWER_PROBE_DONE &&
           answer != ANSWER_PROBE_ABSENT && answer != ANSWER_LATE;
}

bool prove_world_is_spent(const struct prove_world *w)
{
    const struct operation *op;

    if (w->abort_next || is_answered_by_people(w->point.answer) || (w->point.step != STEP_NONE && !w->struck)) {
        return false;
    }
    if (w->point.step == STEP_NONE) {
        return true;
    }
    op = op_of(w, w->point.step, w->point.direction);
    return op->state == OP_COMPLETED || op->state == OP_FAILED || op->state == OP_SKIPPED;
}

static void put_operation(struct buffer *out, const struct operation *op)
{
    const uint8_t head[] = {(uint8_t)op->state, (uint8_t)op->took_effect, op->late, op->accepted};
    const uint32_t counts[] = {op->attempts, op->counted, op->unsent, op->probes};

    buffer_put(out, head, sizeof(head));
    if (operation_is_open(op)) { /* what is over may have taken any number of them */
        buffer_put(out, counts, sizeof(counts));
    }
}

/*
 * Times are left out, and so is the order of starting, but for the plan: two ways to the same state are one. Of what is
 * not to be undone any more it does not matter what became of it.
 */
struct digest prove_world_digest(const struct prove_world *w, bool exact)
{
    const struct saga *saga = &w->saga;
    const uint32_t head[] = {saga->phase, saga->end, saga->escalation.number ? saga->escalation.step : STEP_NONE - 1,
                             saga->escalation.direction, w->decisions};
    struct buffer out;
    struct digest digest;

    buffer_init(&out, (size_t)1 << 20);
    buffer_put(&out, head, sizeof(head));
    if (!prove_world_is_spent(w)) {
        const uint32_t point[] = {w->point.step, w->point.direction, w->point.trouble, w->point.answer,
                                  w->struck,     w->healed,          w->abort_next};

        buffer_put(&out, point, sizeof(point));
    }
    for (uint32_t i = 0; i < saga->plan_count; i++) {
        if (prove_world_stands(w, saga->plan[i])) {
            buffer_put(&out, &saga->plan[i], sizeof(saga->plan[i]));
        }
    }
    for (uint32_t i = 0; i < w->definition->step_count; i++) {
        const struct step *step = &saga->steps[i];
        const uint8_t flags[] = {(uint8_t)step->plan, prove_world_stands(w, i)};

        if (saga->phase == PHASE_UNDO && !flags[1] && step->plan != PLAN_VERDICT && step->plan != PLAN_READY &&
            step->plan != PLAN_ACTIVE && step->plan != PLAN_FAILED && step->plan != PLAN_WAIVED) {
            buffer_put_char(&out, '.');
            continue;
        }
        if (exact) {
            buffer_put(&out, &step->start_order, sizeof(step->start_order));
        }
        buffer_put(&out, flags, sizeof(flags));
        put_operation(&out, &step->forward);
        put_operation(&out, &step->undo);
    }
    CHECK(!out.overflow);
    digest = digest_sha256(buffer_slice(&out));
    buffer_fini(&out);
    return digest;
}
