/*
 * Any input at any time. Sagas are driven through all of their states by answers to their wants. In each state they get
 * inputs that make no sense there, and are shown records that do not belong there. A refusal is a sentence, and an
 * accepted input leads to a sound state. Nothing ends the process.
 *
 * A failure prints the seed and the saga. Each run drives every saga with a third of a hundred seeds, by
 * SAGAD_TEST_SEED, and the long form with all of them. SAGA_FIRST and SAGA_SEEDS give the first, and how many.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/saga/machine.h"
#include "tests/lib/call_trial.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"
#include "tests/property/chance.h"
#include "tests/unit/anything_documents.h"

#define TURNS 120
#define AFTERWARDS 4 /* turns after the end */
#define FOREIGN 12   /* records that are shown in each state */
#define NUMBERS 64

static struct chance luck;
static uint64_t seed, inputs_taken, inputs_refused, records_taken, records_refused, ended[SAGA_STATUS_COUNT];

static uint32_t below(uint32_t n)
{
    return chance_below(&luck, n);
}

static bool often(uint32_t percent)
{
    return below(100) < percent;
}

#define ONE_OF(array) ((array)[below(COUNT_OF(array))])

/* --- what may stand anywhere --- */

static struct slice some_json(void)
{
    static const char *const texts[] = {"null",
                                        "{}",
                                        "[]",
                                        "[1,2,3]",
                                        "[\"k\",\"k2\"]",
                                        "{\"n\":1,\"id\":\"x\"}",
                                        "\"text\"",
                                        "7",
                                        "\"30s\"",
                                        "[{\"key\":\"k\",\"when_taken\":\"wait\"}]",
                                        "[{\"saga\":\"child\",\"input\":{}}]"};

    return slice_of(ONE_OF(texts));
}

static struct slice some_text(void)
{
    static const char *const texts[] = {"ann", "x", "when", "step-failed", "abort", "loop", "signal", "paid", "k"};

    return often(15) ? SLICE_NONE : slice_of(ONE_OF(texts));
}

static uint32_t some_step(const struct saga *saga)
{
    uint32_t count = saga->definition->step_count;

    return count == 0 || often(10) ? STEP_NONE : below(count);
}

static const struct operation *operation(const struct saga *saga, uint32_t step, enum direction direction)
{
    return direction == DIRECTION_UNDO ? step_undo(&saga->steps[step]) : &saga->steps[step].forward;
}

/* --- records that do not belong here --- */

/* Makes a record as it would be at this time. */
static struct record some_record(const struct saga *saga, int64_t now_ms, struct arena *arena)
{
    struct record record = {.seq = saga->seq + 1, .at_ms = now_ms, .type = (enum record_type)below(RECORD_TYPE_COUNT)};
    bool undoes = record.type >= RECORD_COMPENSATION_INTENT && record.type <= RECORD_COMPENSATION_REOPENED;
    uint32_t *plan = arena_array(arena, saga->definition->step_count + 1, sizeof(*plan)), n = 0;

    record.step = some_step(saga);
    record.direction = undoes ? DIRECTION_UNDO : DIRECTION_DO;
    if (record.step != STEP_NONE) {
        const struct operation *op = operation(saga, record.step, record.direction);
        bool begins = record_leads_to(&record) == OP_IN_FLIGHT;

        record.key = op->key;
        record.generation = op->generation;
        record.fingerprint = op->fingerprint;
        record.attempt = op->attempts + begins;
        if (op->created_ms == 0) {
            record.args = SLICE("{}");
            record.key.uuid.bytes[0] = 1;
            record.fingerprint.bytes[0] = 1;
        }
    }
    for (uint32_t i = saga->definition->step_count; i-- > 0;) {
        if (step_may_stand(saga, i) || often(10)) {
            plan[n++] = i;
        }
    }
    record.plan = record.debts = plan;
    record.plan_count = n;
    record.debt_count = n;
    record.error = SLICE("step-failed");
    record.detail = SLICE("as it is");
    record.result = record.undo_args = some_json();
    record.actor = SLICE("ann");
    record.note = SLICE("because");
    record.escalation = saga->escalation.number ? saga->escalation.number : NUMBERS * 9;
    record.reason = some_text();
    record.action = SLICE("retry");
    record.verdict = SLICE("approve");
    record.due_ms = often(50) ? now_ms + 1000 : 0;
    record.approval = record.step == STEP_NONE ? 1 : saga->steps[record.step].approval;
    record.lock = saga->lock_taken < saga->lock_count ? saga->locks[saga->lock_taken].key : SLICE("k");
    record.signal = SLICE("paid");
    record.decision = SLICE("replayed");
    record.emission = some_text();
    record.saga_name = saga->definition->name;
    record.version = saga->definition->version;
    record.effect = EFFECT_KEYED;
    return record;
}

/* Changes one member of the record. */
static void change(struct record *record, const struct saga *saga)
{
    switch (below(34)) {
    case 0:
        record->seq += often(50) ? 1 : (uint64_t)-1;
        return;
    case 1:
        record->at_ms = 0;
        return;
    case 2:
        record->type = (enum record_type)below(RECORD_TYPE_COUNT + 1);
        return;
    case 3:
        record->step = some_step(saga);
        return;
    case 4:
        record->step = saga->definition->step_count + below(2);
        return;
    case 5:
        record->key.uuid.bytes[3] ^= 1;
        return;
    case 6:
        record->key = (struct op_key){0};
        return;
    case 7:
        record->attempt++;
        return;
    case 8:
        record->attempt = 0;
        return;
    case 9:
        record->args = SLICE_NONE;
        return;
    case 10:
        record->args = some_json();
        return;
    case 11:
        record->actor = SLICE_NONE;
        return;
    case 12:
        record->note = SLICE_NONE;
        return;
    case 13:
        record->reason = often(50) ? SLICE("when") : SLICE_NONE;
        return;
    case 14:
        record->plan_count = record->plan_count ? record->plan_count - 1 : saga->definition->step_count + 1;
        return;
    case 15:
        record->plan = NULL;
        return;
    case 16:
        record->plan_count = saga->definition->step_count + 1;
        return;
    case 17:
        record->debts = NULL;
        return;
    case 18:
        record->debt_count = saga->definition->step_count + 1;
        return;
    case 19:
        record->escalation++;
        return;
    case 20:
        record->error = some_text();
        return;
    case 21:
        record->due_ms = record->due_ms ? 0 : 1;
        return;
    case 22:
        record->maybe = !record->maybe;
        return;
    case 23:
        record->result = often(50) ? SLICE_NONE : some_json();
        return;
    case 24:
        record->approval++;
        return;
    case 25:
        record->lock = some_text();
        return;
    case 26:
        record->signal = some_text();
        return;
    case 27:
        record->fingerprint.bytes[1] ^= 1;
        return;
    case 28:
        record->followers = some_json();
        return;
    case 29:
        record->saga_name = SLICE("other");
        return;
    case 30:
        record->version++;
        return;
    case 31:
        record->generation++;
        return;
    case 32:
        record->verdict = some_text();
        return;
    case 33:
        record->decision = some_text();
        return;
    }
}

/* Puts a step that does not exist into a list of steps. */
static void point_outside(struct record *record, const struct saga *saga, struct arena *arena)
{
    uint32_t *steps = arena_array(arena, record->plan_count + 1, sizeof(*steps));

    for (uint32_t i = 0; i < record->plan_count; i++) {
        steps[i] = record->plan[i];
    }
    steps[below(record->plan_count + 1)] = saga->definition->step_count;
    if (often(50)) {
        record->plan = steps;
    } else {
        record->debts = steps;
        record->debt_count = record->plan_count;
    }
}

static bool are_steps(const uint32_t *steps, uint32_t count, uint32_t step_count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!steps || i >= step_count || steps[i] >= step_count) {
            return false;
        }
    }
    return true;
}

/* Can the record be written as text? */
static bool is_writable(const struct record *record, const struct definition *definition)
{
    return record->type < RECORD_TYPE_COUNT && (record->step == STEP_NONE || record->step < definition->step_count) &&
           are_steps(record->plan, record->plan_count, definition->step_count) &&
           are_steps(record->debts, record->debt_count, definition->step_count);
}

/* Reads the record back from its text, which has only the members of its type. */
static bool read_back(struct record *record, const struct definition *definition, struct arena *arena)
{
    uint64_t seq = record->seq;
    int64_t at_ms = record->at_ms;
    struct buffer text;
    struct err err = {0};
    bool is_good;

    buffer_init(&text, (size_t)1 << 20);
    record_write(record, definition, &text);
    is_good = !text.overflow && /* a payload is missing */
              record_read(arena_slice(arena, buffer_slice(&text)), definition, arena, record, &err) == ERR_OK;
    assert_true(is_good || text.overflow || (err.code == ERR_CORRUPT && err.message[0]));
    record->seq = seq;
    record->at_ms = at_ms;
    buffer_fini(&text);
    return is_good;
}

static void show(const struct saga *saga, struct record record, struct arena *arena)
{
    struct err err = {0};
    struct saga *copy;

    if (!record_check(saga, &record, &err)) {
        assert_true(err.code == ERR_CORRUPT && err.message[0]);
        records_refused++;
    }
    if (!is_writable(&record, saga->definition) || !read_back(&record, saga->definition, arena) ||
        !record_check(saga, &record, &err)) {
        return;
    }
    records_taken++;
    copy = saga_copy(saga, arena);
    saga_apply(copy, &record);
    if (!saga_is_sound(copy)) {
        fail_msg("seed %llu: %s is taken, and the state is not sound then", (unsigned long long)seed,
                 record_type_name(record.type));
    }
}

static void show_foreign(const struct saga *saga, int64_t now_ms, const struct record *next, struct arena *arena)
{
    for (unsigned i = 0; i < FOREIGN; i++) {
        struct record record = next && often(60) ? *next : some_record(saga, now_ms, arena);

        for (uint32_t n = often(80) ? 1 : 2; n > 0 && !(next == NULL && often(30)); n--) {
            change(&record, saga);
        }
        if (often(3) && record.plan && record.plan_count < saga->definition->step_count) {
            point_outside(&record, saga, arena);
        }
        show(saga, record, arena);
    }
}

/* --- inputs --- */

static struct outcome some_outcome(bool of_probe, uint32_t good)
{
    struct outcome outcome = {.kind = often(good) ? OUTCOME_COMPLETED : (enum outcome_kind)below(OUTCOME_KIND_COUNT)};

    if (outcome.kind == OUTCOME_ABSENT && !of_probe) {
        outcome.kind = OUTCOME_UNKNOWN;
    }
    if (outcome.kind == OUTCOME_COMPLETED) {
        outcome.result = often(90) ? SLICE("{\"id\":\"r\"}") : often(50) ? SLICE_NONE : SLICE("null");
    } else {
        outcome.error = SLICE("http-500");
        outcome.unsent = (outcome.kind == OUTCOME_RETRY || outcome.kind == OUTCOME_FAILED) && often(30);
        outcome.retry_after_ms = often(10) ? 3000 : 0;
    }
    return outcome;
}

static void settle(struct saga_input *input, const struct saga *saga, uint32_t step, enum direction direction,
                   uint32_t number, uint32_t good)
{
    bool of_probe = input->type == SAGA_INPUT_PROBED;

    input->settled.step = step;
    input->settled.direction = direction;
    input->settled.attempt = number;
    input->settled.outcome = some_outcome(of_probe, good);
    if (input->settled.outcome.kind == OUTCOME_COMPLETED && direction == DIRECTION_DO &&
        saga->definition->steps[step].compensate.is_set) {
        if (often(90)) {
            input->settled.undo_args = SLICE("{\"id\":\"r\"}");
        } else {
            input->settled.undo_error = SLICE("the result has no id");
        }
    }
    input->settled.cost_micros = often(20) ? 50 : 0;
    input->settled.cost_unknown = often(5) ? SLICE("nobody could compute it") : SLICE_NONE;
}

static struct slice value_for(const struct saga *saga, uint32_t step, enum evaluation what)
{
    if (what == EVALUATE_LOCKS) {
        return saga->definition->lock_count == 2 ? SLICE("[\"k1\",\"k2\"]") : SLICE("[\"k\"]");
    }
    if (what == EVALUATE_ARGS && step != STEP_NONE && template_is_set(&saga->definition->steps[step].for_each)) {
        return often(90) ? SLICE("[{\"n\":1},{\"n\":2},{\"n\":3}]") : some_json();
    }
    if (what == EVALUATE_ARGS && step != STEP_NONE && saga->definition->steps[step].kind == STEP_SLEEP) {
        return often(80) ? SLICE("\"30s\"") : some_json();
    }
    return often(80) ? SLICE("{\"n\":1}") : some_json();
}

static void evaluate(struct saga_input *input, const struct saga *saga, uint32_t step, enum evaluation what)
{
    input->type = SAGA_INPUT_EVALUATED;
    input->evaluated.what = what;
    input->evaluated.step = step;
    input->evaluated.failed = often(6);
    input->evaluated.skipped = !input->evaluated.failed && what == EVALUATE_ARGS && often(15);
    input->evaluated.value = value_for(saga, step, what);
    input->evaluated.scope = often(80) ? SLICE_NONE : SLICE("s");
    if (what == EVALUATE_OUTPUT && step == STEP_NONE && saga->definition->follower_count) {
        static const char *const followers[] = {"[{\"saga\":\"child\",\"input\":{},\"business_id\":null}]",
                                                "[{\"saga\":\"child\",\"input\":{},\"business_id\":\"x-7\"}]",
                                                "[{\"saga\":\"child\",\"input\":{},\"business_id\":\"\"}]",
                                                "[{\"saga\":\"child\",\"input\":{},\"business_id\":7}]",
                                                "[{\"saga\":\"child\"}]",
                                                "[7]",
                                                "[]"};

        input->evaluated.followers =
            often(15) ? SLICE_NONE : slice_of(followers[often(40) ? 0 : below(COUNT_OF(followers))]);
    }
    input->evaluated.has_effect = often(50);
    input->evaluated.effect = often(50) ? EFFECT_ONCE : EFFECT_IDEMPOTENT;
    if (input->evaluated.failed) {
        input->evaluated.error = SLICE("it has no length");
    }
}

static void admit(struct saga_input *input, uint32_t step)
{
    input->type = SAGA_INPUT_ADMITTED;
    input->admitted.step = step;
    input->admitted.admission = often(60) ? ADMISSION_GRANTED : (enum admission)below(ADMISSION_UNASKED + 1);
    input->admitted.error = often(70) ? SLICE("rate-limited") : SLICE("budget-exhausted");
    input->admitted.detail = SLICE("there is too much of it");
    input->admitted.retry_after_ms = often(50) ? 1000 : 0;
    input->admitted.result = often(70) ? SLICE("{\"id\":\"before\"}") : SLICE_NONE;
}

/* Answers a want of the saga. Returns false when the saga wants nothing. */
static bool answer(struct saga_input *input, const struct saga *saga, int64_t *now_ms, struct arena *arena,
                   uint32_t good)
{
    const struct want *want;
    struct wants wants;

    saga_wants(saga, arena, &wants);
    if (wants.count == 0) {
        return false;
    }
    want = &wants.items[below((uint32_t)wants.count)];
    *now_ms = want->due_ms > *now_ms ? want->due_ms : *now_ms;
    switch (want->type) {
    case WANT_CALL:
    case WANT_PROBE:
        input->type = want->type == WANT_CALL ? SAGA_INPUT_SETTLED : SAGA_INPUT_PROBED;
        settle(input, saga, want->step, want->direction, want->number, good);
        return true;
    case WANT_ADMIT:
        admit(input, want->step);
        return true;
    case WANT_TIMER:
        input->type = SAGA_INPUT_TIMER;
        input->timer.step = want->step;
        input->timer.direction = want->direction;
        input->timer.timer = want->step == STEP_NONE ? (enum saga_timer)want->number : SAGA_TIMER_DEADLINE;
        return true;
    case WANT_EVALUATE:
        evaluate(input, saga, want->step, (enum evaluation)want->number);
        return true;
    case WANT_LOCK:
        input->type = SAGA_INPUT_LOCKED;
        input->locked.key = saga->locks[want->number].key;
        input->locked.refused = often(20);
        return true;
    }
    return false;
}

static void operate(struct saga_input *input, const struct saga *saga)
{
    unsigned allowed = saga->escalation.number ? saga_escalation_actions(saga) : 0;

    input->type = SAGA_INPUT_OPERATOR;
    do {
        input->verdict.action = (enum operator_action)below(OPERATOR_ACTION_COUNT);
    } while (allowed && !(allowed & BIT(input->verdict.action)) && often(80));
    input->verdict.escalation = often(90) ? saga->escalation.number : NUMBERS * below(3);
    input->verdict.round = often(80) ? saga_case_round(saga) : below(3);
    input->verdict.request = often(90) ? SLICE_NONE : SLICE("again");
    input->verdict.happened = often(50);
    input->verdict.accept_double = often(60);
    input->verdict.result = often(60) ? SLICE_NONE : SLICE("{\"id\":\"said\"}");
    input->verdict.undo_args = often(70) ? SLICE("{\"id\":\"said\"}") : SLICE_NONE;
    input->verdict.undo_error = input->verdict.undo_args.ptr ? SLICE_NONE : SLICE("the result has no id");
    input->verdict.args = often(80) ? SLICE_NONE : SLICE("{\"n\":2}");
    input->verdict.actor = often(95) ? SLICE("ann") : SLICE_NONE;
    input->verdict.note = often(95) ? SLICE("looked it up") : SLICE_NONE;
}

static void call(struct saga_input *input, const struct call_trial *tools)
{
    static const char *const scopes[] = {"s", "t"}, *const emissions[] = {"e1", "e2", "e3", "e4"},
                             *const turns[] = {"t1", "t2"},
                             *const args[] = {"{}", "{\"amount\":1}", "{\"amount\":2,\"x\":3}", "{\"send\":true}"};
    const struct tool *tool = tools->tools[below((uint32_t)tools->tool_count)];
    bool sends;

    input->type = SAGA_INPUT_CALL;
    input->call.namespace = SLICE("default");
    input->call.run = SLICE("run-1");
    input->call.tool = tool;
    for (size_t i = 0; tool->compensate.is_set && i < tools->tool_count; i++) {
        if (slice_equal(tools->tools[i]->name, tool->compensate.tool_name)) {
            input->call.undo = tools->tools[i];
        }
    }
    input->call.args = slice_of(ONE_OF(args));
    sends = slice_is(input->call.args, args[3]);
    input->call.effect = !tool->conditional ? tool->effect : sends ? tool->effect_then : tool->effect_else;
    input->call.step = often(70) ? SLICE_NONE : SLICE("named");
    input->call.scope = often(70) ? SLICE_NONE : slice_of(ONE_OF(scopes));
    input->call.emission = often(50) ? SLICE_NONE : slice_of(ONE_OF(emissions));
    input->call.conversation_turn = often(70) ? SLICE_NONE : slice_of(ONE_OF(turns));
    input->call.actor = SLICE("agent");
    if (often(5)) {
        input->call.unfit = ERR_INVALID;
        input->call.unfit_message = SLICE("the arguments do not fit");
    }
}

/* Makes an input of a person, a sender or an agent. */
static void say(struct saga_input *input, const struct saga *saga, const struct call_trial *tools)
{
    static const enum saga_input_type types[] = {
        SAGA_INPUT_ABORT,  SAGA_INPUT_OPERATOR, SAGA_INPUT_OPERATOR, SAGA_INPUT_OPERATOR, SAGA_INPUT_COMPLETE,
        SAGA_INPUT_BYPASS, SAGA_INPUT_RESUME,   SAGA_INPUT_RESUME,   SAGA_INPUT_PAUSE,    SAGA_INPUT_SIGNAL,
        SAGA_INPUT_SIGNAL, SAGA_INPUT_DECISION, SAGA_INPUT_DECISION, SAGA_INPUT_COST,     SAGA_INPUT_CALL};
    struct slice actor = often(95) ? SLICE("ann") : SLICE_NONE, note = often(95) ? SLICE("because") : SLICE_NONE;
    uint32_t step = some_step(saga);

    input->type = tools && often(60) ? SAGA_INPUT_CALL : ONE_OF(types);
    if (input->type == SAGA_INPUT_CALL && (!saga_is_open(saga) || !tools)) {
        input->type = SAGA_INPUT_SIGNAL;
    }
    if (input->type == SAGA_INPUT_ABORT && often(80)) {
        input->type = SAGA_INPUT_DECISION; /* otherwise the saga is over too soon */
    }
    if (input->type == SAGA_INPUT_CALL) {
        call(input, tools);
    } else if (input->type == SAGA_INPUT_OPERATOR) {
        operate(input, saga);
    } else if (input->type == SAGA_INPUT_BYPASS) {
        input->bypass.key = step == STEP_NONE ? (struct op_key){0}
                                              : operation(saga, step, often(90) ? DIRECTION_DO : DIRECTION_UNDO)->key;
        input->bypass.actor = actor;
        input->bypass.note = note;
    } else if (input->type == SAGA_INPUT_COST) {
        input->cost.key = step == STEP_NONE ? (struct op_key){0}
                                            : operation(saga, step, often(80) ? DIRECTION_DO : DIRECTION_UNDO)->key;
        input->cost.micros = often(90) ? 70 : 0;
        input->cost.actor = actor;
        input->cost.note = note;
    } else if (input->type == SAGA_INPUT_COMPLETE) {
        input->complete.actor = actor;
        input->complete.output = often(50) ? SLICE_NONE : SLICE("{\"a\":1}");
    } else if (input->type == SAGA_INPUT_SIGNAL) {
        static const char *const names[] = {"paid", "other"}, *const payloads[] = {"{}", "{\"sum\":1}", "{\"sum\":2}"},
                                 *const ids[] = {"i1", "i2"};

        input->signal.name = slice_of(ONE_OF(names));
        input->signal.payload = slice_of(ONE_OF(payloads));
        input->signal.id = often(50) ? SLICE_NONE : slice_of(ONE_OF(ids));
        input->signal.actor = SLICE("shop");
    } else if (input->type == SAGA_INPUT_DECISION) {
        for (uint32_t i = 0; i < saga->definition->step_count; i++) {
            step = saga->steps[i].approval && (often(50) || step == STEP_NONE) ? i : step;
        }
        input->decision.approval = step == STEP_NONE ? 7 : saga->steps[step].approval;
        input->decision.approve = often(60);
        input->decision.role = often(70) ? ROLE_ADMIN : (enum role)below(ROLE_COUNT);
        input->decision.hash = often(80) ? SLICE_NONE : SLICE("00");
        input->decision.actor = actor;
        input->decision.note = note;
    } else {
        input->abort.actor = actor; /* the same place for pause and resume */
        input->abort.note = note;
    }
}

/* Makes an input about something that is not asked, or no longer asked. */
static void say_nonsense(struct saga_input *input, const struct saga *saga)
{
    uint32_t step = some_step(saga);
    enum direction direction = often(50) ? DIRECTION_DO : DIRECTION_UNDO;

    switch (below(6)) {
    case 0:
    case 1:
        if (step != STEP_NONE && step_has_call(saga, step)) {
            const struct operation *op = operation(saga, step, direction);

            input->type = often(50) ? SAGA_INPUT_SETTLED : SAGA_INPUT_PROBED;
            settle(input, saga, step, direction,
                   input->type == SAGA_INPUT_PROBED ? op->probes + below(2)
                   : op->attempts                   ? 1 + below(op->attempts)
                                                    : 1,
                   50);
            return;
        }
        break;
    case 2:
        evaluate(input, saga, step, (enum evaluation)below(EVALUATE_LOCKS + 1));
        return;
    case 3:
        if (step != STEP_NONE) {
            admit(input, step);
            return;
        }
        break;
    case 4:
        input->type = SAGA_INPUT_LOCKED;
        input->locked.key = SLICE("k");
        return;
    default:
        break;
    }
    input->type = SAGA_INPUT_TIMER;
    input->timer.step = step;
    input->timer.direction = direction;
    input->timer.timer = step == STEP_NONE && often(50) ? SAGA_TIMER_REST : SAGA_TIMER_DEADLINE;
}

static void start(struct saga_input *input, const struct saga *saga, int64_t now_ms)
{
    input->type = SAGA_INPUT_START;
    input->start.namespace = SLICE("default");
    if (saga_is_open(saga)) {
        input->start.deadline_ms = often(70) ? now_ms + 60000 : 0;
        input->start.budget = often(70) ? SLICE_NONE : SLICE("{\"calls\":4,\"emissions\":9,\"cost\":250}");
        input->start.loop = often(70) ? SLICE_NONE : SLICE("{\"repeats\":2}");
        input->start.on_timeout = often(50) ? SLICE("abort") : SLICE("escalate");
    } else {
        input->start.input =
            often(95)
                ? SLICE("{\"n\":1,\"list\":[{\"n\":7},{\"n\":8},{\"n\":9}],\"to\":\"x\",\"yes\":true,\"id\":\"7\"}")
                : SLICE("{}");
    }
}

/* --- states that cannot be --- */

#define BENDS 12
static uint64_t bent_seen[BENDS];

/* Bends the state. Does the state tell that it is broken? A state that is sound by chance is as good. */
static void bend(const struct saga *saga, struct arena *arena)
{
    struct saga *copy = saga_copy(saga, arena);
    uint32_t count = saga->definition->step_count, how = below(BENDS);
    struct step *step = count ? &copy->steps[below(count)] : NULL;

    if (!step || saga->seq == 0) {
        return;
    }
    switch (how) {
    case 0:
        step->forward.took_effect = (enum took_effect)below(TOOK_EFFECT_COUNT);
        break;
    case 1:
        step->undo = arena_dup(arena, step_undo(step), sizeof(*step->undo));
        step->undo->state = (enum op_state)below(OP_STATE_COUNT);
        break;
    case 2:
        step->plan = (enum plan_state)below(PLAN_DROPPED + 1);
        break;
    case 3:
        step->forward.state = (enum op_state)below(OP_STATE_COUNT);
        break;
    case 4:
        step->start_order = 0;
        break;
    case 5:
        step->begun++;
        break;
    case 6:
        step->over++;
        break;
    case 7:
        step->undo_left++;
        break;
    case 8:
        step->group_phase = (enum saga_phase)below(PHASE_UNDO + 1);
        break;
    case 9:
        step->undo_active += 5;
        break;
    case 10:
        copy->undo_active += 7;
        break;
    case 11:
        copy->phase = PHASE_ENDED;
        copy->end = (enum saga_status)below(SAGA_STATUS_COUNT);
        copy->escalation.number = below(2);
        break;
    }
    bent_seen[how] += !saga_is_sound(copy);
}

/* --- driving --- */

static void look(const struct saga *saga)
{
    struct buffer out;

    buffer_init(&out, (size_t)8 << 20);
    saga_write_json(saga, &out);
    if (saga->escalation.number) {
        saga_write_escalation(saga, &out);
    }
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (saga->steps[i].approval) {
            saga_write_approval(saga, i, &out);
        }
        (void)step_status_name(saga_step_status(saga, i));
    }
    assert_false(out.overflow);
    buffer_fini(&out);
}

struct subject {
    struct saga saga;
    const struct call_trial *tools; /* the tools of an open saga or a run */
    int64_t now_ms;
    uint64_t next_number;
    uint32_t good; /* out of a hundred answers so many are good */
};

static void turn(struct subject *s, struct arena *arena)
{
    struct saga_input input = {0};
    struct records records;
    struct err err = {0};
    uint32_t what = below(100);
    enum err_code code;

    if (s->saga.seq == 0 && often(90) && s->saga.definition->kind != SAGA_RUN) {
        start(&input, &s->saga, s->now_ms);
    } else if (what < 5) {
        say_nonsense(&input, &s->saga);
    } else if (what < (s->tools ? 55 : 30) || !answer(&input, &s->saga, &s->now_ms, arena, s->good)) {
        say(&input, &s->saga, s->tools);
    }
    if (often(1)) {
        input = (struct saga_input){0};
        start(&input, &s->saga, s->now_ms); /* a second time */
    }
    s->now_ms += often(2) ? 5400 * 1000 : below(3) * below(2000); /* sometimes long enough for records to expire */
    input.now_ms = s->now_ms;
    input.escalation_number = input.approval_number = s->next_number;
    input.number_stride = NUMBERS;
    code = saga_decide(&s->saga, &input, arena, &records, &err);
    if (code != ERR_OK) {
        if (records.count || !err.message[0] || code == ERR_INTERNAL) {
            fail_msg("seed %llu: input %d is refused like this: %s", (unsigned long long)seed, (int)input.type,
                     err.message);
        }
        inputs_refused++;
    } else {
        inputs_taken++;
    }
    for (unsigned i = 0; i < 6; i++) {
        bend(&s->saga, arena);
    }
    show_foreign(&s->saga, s->now_ms, records.count ? &records.items[0] : NULL, arena);
    for (size_t i = 0; i < records.count; i++) {
        if (!record_check(&s->saga, &records.items[i], &err)) {
            fail_msg("seed %llu: %s", (unsigned long long)seed, err.message);
        }
        saga_apply(&s->saga, &records.items[i]);
        assert_true(saga_is_sound(&s->saga));
    }
    s->next_number += NUMBERS * (records.count + 1);
}

static void drive(struct subject *s)
{
    struct arena arena;

    arena_init(&arena, 65536);
    s->now_ms = TRIAL_START_MS;
    s->next_number = NUMBERS;
    s->good = 20 + 40 * below(3);
    for (unsigned i = 0, left = AFTERWARDS; i < TURNS && left > 0; i++) {
        left -= s->saga.phase == PHASE_ENDED;
        turn(s, &arena);
        if (i % 4 == 0) {
            look(&s->saga);
        }
        arena_reset(&arena);
    }
    ended[s->saga.phase == PHASE_ENDED ? s->saga.end : SAGA_RUNNING]++;
    arena_fini(&arena);
}

#define SEEDS 102
#define PARTS 3

static uint64_t given(const char *name, uint64_t usual)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : usual;
}

static uint64_t seed_first(void)
{
    return given("SAGA_FIRST",
                 given("SAGAD_TEST_LONG", 0) ? 1 : 1 + given("SAGAD_TEST_SEED", 0) % PARTS * SEEDS / PARTS);
}

static uint64_t seed_end(void)
{
    return seed_first() + given("SAGA_SEEDS", given("SAGAD_TEST_LONG", 0) ? SEEDS : SEEDS / PARTS);
}

/* Drives a definition with the tools of the trial. The JSON has ' for ". */
static void drive_defined(const char *document)
{
    struct arena arena;
    const struct definition *definition;

    arena_init(&arena, 65536);
    definition = trial_compile(&arena, trial_json(&arena, document));
    for (seed = seed_first(); seed < seed_end(); seed++) {
        struct saga_id id = {{{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 9}}};
        struct subject subject = {0};
        struct arena kept;

        luck = chance_of(seed, 1, 0);
        arena_init(&kept, 16384);
        saga_init(&subject.saga, &kept, id, definition);
        drive(&subject);
        arena_fini(&kept);
    }
    arena_fini(&arena);
}

static void drive_called(bool is_open, const char *budget, const char *loop, const char *on_timeout)
{
    for (seed = seed_first(); seed < seed_end(); seed++) {
        struct subject subject = {0};
        struct call_trial tools;

        luck = chance_of(seed, 2, 0);
        if (is_open) {
            call_trial_open(&tools, budget, loop, on_timeout);
        } else {
            call_trial_run(&tools);
        }
        subject.saga = tools.saga;
        subject.tools = &tools;
        drive(&subject);
        buffer_fini(&tools.log);
        arena_fini(&tools.turn);
        arena_fini(&tools.saga_arena);
        arena_fini(&tools.arena);
    }
}

TEST(any_record_or_input_is_refused_or_leads_to_a_sound_state)
{
    for (size_t i = 0; i < COUNT_OF(documents); i++) {
        drive_defined(documents[i]);
    }
}

TEST(the_same_of_what_agents_call)
{
    drive_called(false, NULL, NULL, NULL);
    drive_called(true, NULL, NULL, "abort");
    drive_called(true, "{'calls':6,'emissions':12,'cost':250}", "{'repeats':2}", "escalate");
}

TEST(a_state_that_cannot_be_is_told_from_one_that_can)
{
    for (unsigned i = 0; i < BENDS; i++) {
        if (bent_seen[i] == 0) {
            fail_msg("never seen: bend %u", i);
        }
    }
}

TEST(all_ends_are_reached)
{
    print_message("%llu inputs taken, %llu refused, %llu records taken, %llu refused; still running %llu, completed "
                  "%llu, compensated %llu, abandoned %llu\n",
                  (unsigned long long)inputs_taken, (unsigned long long)inputs_refused,
                  (unsigned long long)records_taken, (unsigned long long)records_refused,
                  (unsigned long long)ended[SAGA_RUNNING], (unsigned long long)ended[SAGA_COMPLETED],
                  (unsigned long long)ended[SAGA_COMPENSATED], (unsigned long long)ended[SAGA_ABANDONED]);
    assert_true(ended[SAGA_COMPLETED] && ended[SAGA_COMPENSATED] && ended[SAGA_ABANDONED]);
    assert_true(inputs_taken && inputs_refused && records_taken && records_refused);
}

TEST_PROGRAM(NULL, NULL)
