/* See prove/world.h. */
#include "core/prove/world.h"

#include <stdlib.h>

#include "core/saga/machine.h"

#define WORLD_START_MS INT64_C(1700000000000)
#define TURNS_MAX 3000   /* the most turns of one play; a play that ends takes fewer */
#define DECISIONS_MAX 4  /* how often a person is asked about one thing at most */
#define PATIENCE_PARTS 3 /* a receiver is given up after this many silent periods */

static const struct step_definition *definition_of(const struct prove_world *w, uint32_t step)
{
    return &w->saga.definition->steps[step];
}

/* --- the numbers of steps --- */

/* Finds the number of a step. A step that the first play did not reach gets the number of its group. */
static uint32_t find_number(const struct prove_world *w, uint32_t step)
{
    for (uint32_t at = step; at != STEP_NONE && w->canon; at = definition_of(w, at)->group) {
        struct slice id = definition_of(w, at)->id;

        if (at < w->canon->step_count && slice_equal(w->canon->steps[at].id, id)) {
            return at; /* groups usually begin in the same order */
        }
        for (uint32_t i = 0; i < w->canon->step_count; i++) {
            if (slice_equal(w->canon->steps[i].id, id)) {
                return i;
            }
        }
    }
    return step;
}

/* Makes room for the steps that a group has added. */
static void grow_books(struct prove_world *w)
{
    uint32_t count = w->saga.definition->step_count;

    if (count > w->book_room) {
        struct prove_book *books;
        uint32_t *undone;

        w->book_room = 2 * count;
        books = arena_array(w->arena, w->book_room, sizeof(*books));
        undone = arena_array(w->arena, w->book_room, sizeof(*undone));
        for (uint32_t i = 0; i < w->book_count; i++) {
            books[i] = w->books[i];
            undone[i] = w->undone[i];
        }
        w->books = books;
        w->undone = undone;
    }
    for (; w->book_count < count; w->book_count++) {
        w->books[w->book_count] = (struct prove_book){.number = find_number(w, w->book_count)};
    }
}

uint32_t prove_world_step(const struct prove_world *w, uint32_t number)
{
    if (number < w->book_count && w->books[number].number == number) {
        return number;
    }
    for (uint32_t i = 0; i < w->book_count; i++) {
        if (w->books[i].number == number) {
            return i;
        }
    }
    return STEP_NONE;
}

/* --- one turn --- */

/* Feeds an input to the saga. Returns false when the saga refuses it or writes nothing. */
bool prove_world_feed(struct prove_world *w, struct saga_input input)
{
    struct records records;
    struct err err = {0};

    input.now_ms = ++w->now_ms; /* each turn has its own time, which tells which call left first */
    enum err_code code;

    input.escalation_number = w->next_escalation;
    input.approval_number = w->next_approval;
    input.number_stride = 1;
    arena_reset(w->turn);
    code = saga_decide(&w->saga, &input, w->turn, &records, &err);
    w->turns++;
    if (code == ERR_INTERNAL) {
        prove_violate(w, err.message, STEP_NONE, STEP_NONE);
    }
    if (code != ERR_OK) {
        return false;
    }
    for (size_t i = 0; i < records.count && !w->violation.ptr; i++) {
        if (!w->unjudged) {
            prove_check_record(w, &records.items[i]);
        }
        if (w->violation.ptr) {
            return true;
        }
        w->next_escalation += records.items[i].type == RECORD_ESCALATION_OPENED;
        w->last_type = records.items[i].type;
        w->last_step = records.items[i].step;
        w->next_approval += records.items[i].type == RECORD_STEP_WAITING && records.items[i].approval;
        saga_apply(&w->saga, &records.items[i]);
        grow_books(w);
    }
    return records.count > 0;
}

static bool is_in_trouble(const struct prove_world *w, uint32_t step, enum direction direction)
{
    return w->point.step != STEP_NONE && w->books[step].number == w->point.step && w->point.direction == direction &&
           !w->healed;
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
        definition_of(w, want->step)->compensate.is_set) {
        input.settled.undo_args = SLICE("{}");
        if (w->point.trouble == TROUBLE_UNDO_ARGUMENTS && is_in_trouble(w, want->step, DIRECTION_DO)) {
            input.settled.undo_args = SLICE_NONE;
            input.settled.undo_error = SLICE("there is no such member");
            w->struck = w->healed = w->abort_next = true;
        }
    }
    return prove_world_feed(w, input);
}

void prove_world_open(struct prove_world *w, const struct definition *symbolic, const struct definition *canon,
                      struct arena *arena, struct arena *turn)
{
    struct saga_input start = {.type = SAGA_INPUT_START};
    struct saga_id id = {{{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 0x01}}};

    *w = (struct prove_world){.canon = canon, .arena = arena, .turn = turn, .now_ms = WORLD_START_MS};
    w->next_escalation = w->next_approval = 1;
    w->last_step = STEP_NONE;
    w->point = (struct prove_point){.step = STEP_NONE};
    saga_init(&w->saga, arena, id, symbolic);
    grow_books(w);
    start.start.namespace = SLICE("default");
    start.start.input = SLICE("{}");
    (void)prove_world_feed(w, start);
}

/* Copies the saga into the arena of the play; a copy made for a decision does not last. */
static void own_saga(struct prove_world *w, const struct saga *saga)
{
    w->saga = *saga_copy(saga, w->arena);
    w->saga.arena = w->arena;
    w->saga.scratch = NULL;
}

void prove_world_adopt(struct prove_world *w, const struct saga *saga, const struct definition *symbolic,
                       int64_t now_ms, struct arena *arena, struct arena *turn)
{
    *w = (struct prove_world){.arena = arena, .turn = turn, .now_ms = now_ms, .unjudged = true};
    w->next_escalation = saga->escalation.number + 1;
    w->next_approval = UINT32_MAX; /* higher than all existing numbers, which nobody reads here */
    w->last_step = STEP_NONE;
    w->point = (struct prove_point){.step = STEP_NONE};
    own_saga(w, saga);
    w->saga.definition = symbolic;
    grow_books(w);
    for (uint32_t i = 0; i < w->book_count; i++) {
        w->saga.steps[i].forward.room = w->saga.steps[i].forward.answer_room =
            (struct room){0}; /* this memory belongs to the saga */
        enum took_effect forward = saga->steps[i].forward.took_effect;

        w->books[i].did = forward == TOOK_EFFECT_YES || forward == TOOK_EFFECT_MAYBE || forward == TOOK_EFFECT_UNDONE;
        w->books[i].undone = forward == TOOK_EFFECT_UNDONE;
    }
}

void prove_world_fork(struct prove_world *w, const struct prove_world *from, struct arena *arena)
{
    uint32_t count = from->book_count;

    *w = *from;
    w->arena = arena;
    own_saga(w, &from->saga);
    w->book_room = count ? count : 1;
    w->books = arena_array(arena, w->book_room, sizeof(*w->books));
    w->undone = arena_array(arena, w->book_room, sizeof(*w->undone));
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
        w->undone[w->undone_count++] = book->number;
    }
}

/* Lets time pass without an answer, a part of the time after which the receiver is given up. */
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
        let_pass(w, definition_of(w, step)->compensate.give_up_after_ms);
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
        case TROUBLE_TIMEOUT:
        case TROUBLE_REFUSED:
        case TROUBLE_LOCKED:
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

    if (w->point.step == book->number && w->point.direction == direction && w->point.trouble == TROUBLE_UNKNOWN) {
        if (w->point.answer == ANSWER_PROBE_ABSENT) {
            w->healed = true; /* the next call will be accepted; until then every probe answers the same */
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
    (void)prove_world_feed(w, input);
}

/* Makes a text for each lock, all of them different. */
static struct slice lock_keys(const struct prove_world *w)
{
    struct slice text = SLICE("[");

    for (uint32_t i = 0; i < w->saga.definition->lock_count; i++) {
        text = arena_printf(w->arena, "%.*s%s\"lock %02u\"", SLICE_ARG(text), i ? "," : "", (unsigned)i);
    }
    return arena_printf(w->arena, "%.*s]", SLICE_ARG(text));
}

/* Makes any value of the kind that the place wants: two elements, or a time to sleep. */
static struct slice symbolic_value(const struct prove_world *w, const struct want *want)
{
    if (want->number == EVALUATE_LOCKS) {
        return lock_keys(w);
    }
    if (want->number != EVALUATE_ARGS) {
        return SLICE("{}");
    }
    if (template_is_set(&definition_of(w, want->step)->for_each)) {
        return SLICE("[{},{}]");
    }
    return definition_of(w, want->step)->kind == STEP_SLEEP ? SLICE("\"1s\"") : SLICE("{}");
}

static void answer_evaluation(struct prove_world *w, const struct want *want)
{
    bool ours = want->step != STEP_NONE && want->number == EVALUATE_ARGS && is_in_trouble(w, want->step, DIRECTION_DO);
    struct saga_input input = {.type = SAGA_INPUT_EVALUATED};

    input.evaluated.what = (enum evaluation)want->number;
    input.evaluated.step = want->step;
    input.evaluated.value = symbolic_value(w, want);
    if (ours && w->point.trouble == TROUBLE_ARGUMENTS) {
        w->struck = w->healed = true;
        input.evaluated.failed = true;
        input.evaluated.error = SLICE("there is no such member");
    } else if (ours && w->point.trouble == TROUBLE_SKIPPED) {
        w->struck = w->healed = true;
        input.evaluated.skipped = true;
    }
    (void)prove_world_feed(w, input);
}

static void answer_lock(struct prove_world *w, const struct want *want)
{
    struct saga_input input = {.type = SAGA_INPUT_LOCKED};

    input.locked.key = w->saga.locks[want->number].key;
    if (w->point.trouble == TROUBLE_LOCKED && !w->healed && w->saga.locks[want->number].fails) {
        w->struck = w->healed = true;
        input.locked.refused = true;
    }
    (void)prove_world_feed(w, input);
}

/* Brings what the step waits for. */
static void arrive(struct prove_world *w, uint32_t step)
{
    const struct step_definition *definition = definition_of(w, step);
    struct saga_input input = {.type = SAGA_INPUT_SIGNAL};

    if (definition->kind == STEP_SIGNAL) {
        input.signal.name = definition->signal_name;
        input.signal.payload = SLICE("{}");
        (void)prove_world_feed(w, input);
        return;
    }
    input.type = SAGA_INPUT_DECISION;
    input.decision.approval = w->saga.steps[step].approval;
    input.decision.approve = true;
    input.decision.role = ROLE_ADMIN;
    input.decision.actor = SLICE("somebody");
    if (w->point.trouble == TROUBLE_REFUSED && is_in_trouble(w, step, DIRECTION_DO)) {
        w->struck = w->healed = true;
        input.decision.approve = false;
    }
    (void)prove_world_feed(w, input);
}

void prove_world_skip(struct prove_world *w, uint32_t step)
{
    struct saga_input input = {.type = SAGA_INPUT_EVALUATED};

    input.evaluated.what = EVALUATE_ARGS;
    input.evaluated.step = step;
    input.evaluated.skipped = true;
    (void)prove_world_feed(w, input);
}

static void feed_timer(struct prove_world *w, const struct want *want)
{
    struct saga_input input = {.type = SAGA_INPUT_TIMER};

    input.timer.step = want->step;
    input.timer.direction = want->direction;
    if (want->step != STEP_NONE && w->point.trouble == TROUBLE_TIMEOUT && is_in_trouble(w, want->step, DIRECTION_DO)) {
        w->struck = w->healed = true;
    }
    if (want->step == STEP_NONE) {
        input.timer.timer = (enum saga_timer)want->number;
    }
    (void)prove_world_feed(w, input);
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
        if (want->number == PROVE_ARRIVES) {
            arrive(w, want->step);
        } else {
            feed_timer(w, want);
        }
        return;
    case WANT_EVALUATE:
        answer_evaluation(w, want);
        return;
    case WANT_LOCK:
        answer_lock(w, want);
        return;
    }
    UNREACHABLE();
}

void prove_world_abort(struct prove_world *w)
{
    struct saga_input input = {.type = SAGA_INPUT_ABORT};

    input.abort.actor = SLICE("somebody");
    (void)prove_world_feed(w, input);
}

void prove_world_deadline(struct prove_world *w, uint32_t step)
{
    const struct want deadline = {.type = WANT_TIMER,
                                  .step = step,
                                  .number = SAGA_TIMER_DEADLINE,
                                  .due_ms =
                                      step == STEP_NONE ? w->saga.deadline_ms : w->saga.steps[step].forward.due_ms};

    prove_world_do(w, &deadline);
}

/* --- people --- */

/* Chooses the verb that this play has for the open question. Returns false when nobody answers. */
static bool choose_verb(const struct prove_world *w, struct saga_input *input)
{
    const struct escalation *open = &w->saga.escalation;
    bool ours = open->step != STEP_NONE && w->books[open->step].number == w->point.step;

    if (w->point.answer == ANSWER_NOBODY || w->decisions >= DECISIONS_MAX || open->step == STEP_NONE) {
        return false;
    }
    if (w->decisions == 0 && ours && open->direction == w->point.direction &&
        (w->point.answer == ANSWER_HAPPENED || w->point.answer == ANSWER_NOT_HAPPENED)) {
        input->verdict.action = OPERATOR_RESOLVE;
        input->verdict.happened = w->point.answer == ANSWER_HAPPENED;
        return true;
    }
    if (ours &&
        (w->point.answer == ANSWER_WAIVE || w->point.answer == ANSWER_SKIP || w->point.answer == ANSWER_COMPENSATE)) {
        input->verdict.action = w->point.answer == ANSWER_WAIVE  ? OPERATOR_WAIVE
                                : w->point.answer == ANSWER_SKIP ? OPERATOR_SKIP
                                                                 : OPERATOR_COMPENSATE;
        return true;
    }
    if (open->direction == DIRECTION_UNDO || (ours && w->point.answer == ANSWER_RETRY)) {
        input->verdict.action = OPERATOR_RETRY;
        return true;
    }
    if (ours && w->point.answer == ANSWER_LATE) { /* the answer has come, and it contradicts what was settled */
        input->verdict.action = OPERATOR_RESOLVE;
        input->verdict.happened = w->books[open->step].did;
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
    input.verdict.escalation = open->number;
    input.verdict.round = saga_case_round(&w->saga);
    input.verdict.actor = SLICE("somebody");
    input.verdict.note = SLICE("looked it up");
    if (input.verdict.action == OPERATOR_RESOLVE && input.verdict.happened) {
        input.verdict.result = SLICE("{}");
        if (open->direction == DIRECTION_DO && definition_of(w, open->step)->compensate.is_set) {
            input.verdict.undo_args = SLICE("{}");
        }
    }
    if (input.verdict.action == OPERATOR_RETRY) {
        w->healed = true;
        if (!prove_operation(w, open->step, open->direction)->args.ptr) {
            input.verdict.args = SLICE("{}");
        }
    }
    return prove_world_feed(w, input);
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
    case WANT_LOCK:
        return 5;
    }
    UNREACHABLE();
}

/* Orders wants: what can be done now comes before what needs time, and calls are answered in the order in which they
 * left. */
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
    due_a = prove_operation(w, a->step, a->direction)->last_sent_ms;
    due_b = prove_operation(w, b->step, b->direction)->last_sent_ms;
    if (due_a == due_b &&
        a->direction == DIRECTION_UNDO) { /* the calls left together, so the one that began last goes first */
        return w->saga.steps[a->step].start_order > w->saga.steps[b->step].start_order;
    }
    return due_a < due_b;
}

static bool feed_late(struct prove_world *w)
{
    uint32_t step = w->point.step == STEP_NONE ? STEP_NONE : prove_world_step(w, w->point.step);

    if (w->point.answer != ANSWER_LATE || w->healed || !w->struck || step == STEP_NONE ||
        w->saga.steps[step].forward.state != OP_UNKNOWN) {
        return false;
    }
    const struct want call = {.step = step, .number = w->saga.steps[step].forward.attempts};

    w->healed = true;
    (void)feed_outcome(w, SAGA_INPUT_SETTLED, &call,
                       (struct outcome){.kind = OUTCOME_COMPLETED, .result = SLICE("{}")});
    return true;
}

/* Checks that an end is final: late answers, timers and an abort change nothing. */
static void check_end_holds(struct prove_world *w)
{
    struct wants wants;
    uint64_t seq = w->saga.seq;

    arena_reset(w->turn);
    saga_wants(&w->saga, w->turn, &wants);
    if (wants.count > 0) {
        prove_violate(w, "something is wanted after the end", STEP_NONE, STEP_NONE);
    }
    for (uint32_t i = 0; i < w->saga.definition->step_count && w->saga.seq == seq; i++) {
        const struct want call = {.step = i, .number = w->saga.steps[i].forward.attempts};

        (void)feed_outcome(w, SAGA_INPUT_SETTLED, &call,
                           (struct outcome){.kind = OUTCOME_COMPLETED, .result = SLICE("{}")});
        feed_timer(w, &call);
    }
    prove_world_abort(w);
    if (w->saga.seq != seq) {
        prove_violate(w, "something happens after the end", STEP_NONE, STEP_NONE);
    }
}

/* --- what is wanted --- */

/* Is the want a deadline or a timeout? These have points of their own. */
static bool is_limit(const struct prove_world *w, const struct want *want)
{
    if (want->type != WANT_TIMER || want->due_ms <= w->now_ms) {
        return false;
    }
    if (want->step == STEP_NONE) {
        return true;
    }
    return w->saga.steps[want->step].forward.state == OP_OPEN ||
           (w->saga.steps[want->step].forward.state == OP_WAITING && definition_of(w, want->step)->kind != STEP_SLEEP &&
            !(w->point.trouble == TROUBLE_TIMEOUT && is_in_trouble(w, want->step, DIRECTION_DO)));
}

/* Collects all wants, the `limits` limits last. */
static void all_wants(const struct prove_world *w, struct arena *arena, struct wants *out, size_t *limits)
{
    struct wants wants;

    saga_wants(&w->saga, arena, &wants);
    *limits = 0;
    *out = (struct wants){.capacity = wants.count + w->saga.definition->step_count};
    out->items = arena_array(arena, out->capacity + 1, sizeof(*out->items));
    for (size_t i = 0; i < wants.count; i++) {
        if (!is_limit(w, &wants.items[i])) {
            out->items[out->count++] = wants.items[i];
        }
    }
    for (uint32_t i = 0; i < w->saga.definition->step_count && w->saga.phase == PHASE_FORWARD; i++) {
        const struct operation *op = &w->saga.steps[i].forward;

        if (op->state == OP_WAITING && definition_of(w, i)->kind != STEP_SLEEP &&
            (op->due_ms == 0 || op->due_ms > w->now_ms) && /* otherwise it is too late */
            !(w->point.trouble == TROUBLE_TIMEOUT && is_in_trouble(w, i, DIRECTION_DO))) {
            out->items[out->count++] = (struct want){.type = WANT_TIMER, .step = i, .number = PROVE_ARRIVES};
        }
    }
    for (size_t i = 0; i < wants.count; i++) {
        if (is_limit(w, &wants.items[i])) {
            out->items[out->count++] = wants.items[i];
            ++*limits;
        }
    }
}

void prove_world_wants(const struct prove_world *w, struct arena *arena, struct wants *out)
{
    size_t limits;

    all_wants(w, arena, out, &limits);
    out->count -= limits;
}

static const struct want *find_next(const struct prove_world *w, const struct wants *wants)
{
    const struct want *next = NULL;

    for (size_t i = 0; i < wants->count; i++) {
        if (!next || goes_before(w, &wants->items[i], next)) {
            next = &wants->items[i];
        }
    }
    return next;
}

bool prove_world_next(struct prove_world *w, struct want *out)
{
    const struct want *next;
    struct wants wants;

    arena_reset(w->turn);
    prove_world_wants(w, w->turn, &wants);
    next = find_next(w, &wants);
    if (next) {
        *out = *next; /* copied: the wants are in the arena of the turn */
    }
    return next != NULL;
}

bool prove_world_move(struct prove_world *w)
{
    const struct want *next;
    struct want chosen;
    struct wants wants;
    size_t limits;

    if (w->violation.ptr) {
        return false;
    }
    if (w->saga.phase == PHASE_ENDED) {
        prove_check_end(w);
        check_end_holds(w);
        return false;
    }
    if (w->turns > TURNS_MAX) {
        prove_violate(w, "the saga does not come to an end", STEP_NONE, STEP_NONE);
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
    all_wants(w, w->turn, &wants, &limits);
    next = find_next(w, &wants);
    if (wants.count == limits &&
        !w->saga.escalation.number) { /* a deadline far away does not excuse a saga that wants nothing else */
        prove_violate(w, "the saga is stuck: nothing is wanted, and nobody is asked", STEP_NONE, STEP_NONE);
        return false;
    }
    if (w->saga.escalation.number && (!next || next->due_ms > w->now_ms) && ask_person(w)) {
        return true;
    }
    if (!next) {
        return false; /* a person is asked and stays silent */
    }
    chosen = *next; /* copied: the wants are in the arena of the turn */
    prove_world_do(w, &chosen);
    return true;
}
