/*
 * Random walks of open sagas and runs: an agent that repeats itself, changes arguments, goes round in circles,
 * double-clicks and never looks back, against a world that loses answers, lands effects late, lies about failures and
 * crashes the engine between any two records, with people who decide at random but tell the truth. After each record
 * the rules are held against the world's own books, not against what the machine believes.
 *
 * A failure prints the seed and the log. SAGA_WALKS and SAGA_SEED change what is walked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/call_trial.h"

#define STEPS_MAX 96
#define VISIBILITY_MS 5000
#define KEY_WINDOW_MS 60000

/* --- chance --- */

static uint64_t chance_state;

static uint64_t chance_next(void) /* splitmix64 */
{
    uint64_t z = (chance_state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint32_t chance_below(uint32_t n)
{
    return (uint32_t)(chance_next() % n);
}

static bool chance(uint32_t percent)
{
    return chance_below(100) < percent;
}

/* --- the world at the other end --- */

struct thing { /* what the receiver's books say about one operation */
    uint32_t effects, sends;
    int64_t first_ms; /* since when it remembers the key */
    int64_t lands_ms; /* a call on the wire takes effect then; 0: none */
    bool running;     /* it was accepted, and lands then */
    bool doubled;     /* a person accepted a second effect */
    bool lied;        /* it said that nothing happened, and it had */
    uint32_t asked_attempt, granted_attempt;
    bool has_answer, has_late;
    struct outcome answer, late;
    uint32_t late_attempt;
};

struct world {
    struct call_trial trial;
    struct thing things[STEPS_MAX][DIRECTION_COUNT];
    uint64_t begun[STEPS_MAX], settled[STEPS_MAX]; /* in records, by our own count */
    uint64_t seed, records;
    uint32_t bypasses; /* signed */
    bool kind;         /* everything works from now on, so that the walk ends */
    bool stubborn;     /* the agent knows two calls only, and makes them again and again */
    bool deaf;         /* nobody answers probes, until everything works */
    uint32_t turns, steps, calls;
    struct wish wish; /* the last call */
    char emission[16];
};

static struct world world;
static uint64_t seen_ends[SAGA_STATUS_COUNT], seen_records[RECORD_TYPE_COUNT], seen_answers[ERR_COUNT];

static const struct saga *saga_now(void)
{
    return &world.trial.saga;
}

static uint32_t step_count(void)
{
    return saga_now()->definition->step_count;
}

static struct thing *thing_of(uint32_t step, enum direction direction)
{
    return &world.things[step][direction];
}

static enum effect class_of(uint32_t step, enum direction direction)
{
    const struct step_definition *definition = &saga_now()->definition->steps[step];

    return direction == DIRECTION_UNDO ? definition->compensate.tool->effect : definition->tool->effect;
}

static bool stands(uint32_t step)
{
    return thing_of(step, DIRECTION_DO)->effects > 0 && thing_of(step, DIRECTION_UNDO)->effects == 0 &&
           class_of(step, DIRECTION_DO) != EFFECT_READ;
}

static void take_effect(uint32_t step, enum direction direction)
{
    struct thing *thing = thing_of(step, direction);
    enum effect effect = class_of(step, direction);
    bool knows_key = effect == EFFECT_IDEMPOTENT || effect == EFFECT_READ ||
                     (effect == EFFECT_KEYED && world.trial.now_ms < thing->first_ms + KEY_WINDOW_MS);

    if (thing->effects > 0 && knows_key) {
        return;
    }
    thing->effects++;
    thing->first_ms = thing->first_ms ? thing->first_ms : world.trial.now_ms;
}

static void land(void)
{
    for (uint32_t i = 0; i < step_count(); i++) {
        for (unsigned d = 0; d < DIRECTION_COUNT; d++) {
            struct thing *thing = thing_of(i, (enum direction)d);

            if (thing->lands_ms && thing->lands_ms <= world.trial.now_ms) {
                thing->lands_ms = 0;
                thing->running = false;
                if (thing->effects == 0) {
                    take_effect(i, (enum direction)d);
                }
            }
        }
    }
}

static struct outcome completed(void)
{
    return (struct outcome){.kind = OUTCOME_COMPLETED,
                            .result = chance(50) ? SLICE("{\"id\":\"r-1\"}") : SLICE("{\"id\":\"r-2\"}")};
}

static struct outcome other(enum outcome_kind kind, bool unsent, const char *error)
{
    return (struct outcome){.kind = kind, .unsent = unsent, .error = slice_of(error)};
}

/* It says no, and did it all the same; later its success arrives. Against that nothing helps but to notice. */
static struct outcome lie(uint32_t step)
{
    struct thing *thing = thing_of(step, DIRECTION_DO);

    take_effect(step, DIRECTION_DO);
    thing->lied = thing->has_late = true;
    thing->late = completed();
    thing->late_attempt = saga_now()->steps[step].forward.attempts;
    return other(OUTCOME_FAILED, false, "http-422");
}

static struct outcome send_call(uint32_t step, enum direction direction)
{
    struct thing *thing = thing_of(step, direction);
    const struct tool *tool = saga_tool(saga_now(), step, direction);
    uint32_t luck = world.kind ? 0 : chance_below(100);

    if (luck >= 60 && luck < 67) {
        return other(OUTCOME_RETRY, true, "refused");
    }
    thing->sends++;
    if (luck < 60) {
        take_effect(step, direction);
        return completed();
    }
    if (luck < 72) {
        return other(OUTCOME_RETRY, false, "http-429");
    }
    if (luck < 80) {
        return other(OUTCOME_FAILED, false, "http-422");
    }
    if (luck < 82 && direction == DIRECTION_DO && tool->effect != EFFECT_READ) {
        return lie(step);
    }
    if (luck < 88) {
        take_effect(step, direction);
        return other(OUTCOME_UNKNOWN, false, "timeout");
    }
    if (luck < 93 || tool->effect == EFFECT_READ) {
        return other(OUTCOME_UNKNOWN, false, "reset");
    }
    thing->lands_ms = world.trial.now_ms + 1 + chance_below(VISIBILITY_MS - 2);
    if (luck < 96 || !tool->has_probe) {
        return other(OUTCOME_UNKNOWN, false, "late");
    }
    thing->running = true;
    return other(OUTCOME_RUNNING, false, "running");
}

static struct outcome ask(uint32_t step, enum direction direction)
{
    const struct thing *thing = thing_of(step, direction);

    if (!world.kind && chance(world.deaf ? 97 : 25)) {
        return other(OUTCOME_UNKNOWN, false, "http-500");
    }
    if (thing->effects > 0) {
        return completed();
    }
    return thing->running ? other(OUTCOME_RUNNING, false, "running") : other(OUTCOME_ABSENT, false, "absent");
}

/* --- what must hold after each record --- */

static void must_hold(bool holds, const char *what)
{
    if (!holds) {
        (void)fprintf(stderr, "seed %llu\n%.*s", (unsigned long long)world.seed, (int)world.trial.log.len,
                      world.trial.log.ptr);
        fail_msg("seed %llu: %s", (unsigned long long)world.seed, what);
    }
}

static bool is_run(void)
{
    return saga_now()->definition->kind == SAGA_RUN;
}

/* The terminal call that was made and has not certainly failed. */
static uint32_t sealed_by(void)
{
    for (uint32_t i = 0; i < step_count(); i++) {
        if (saga_now()->definition->steps[i].terminal && world.begun[i] &&
            saga_now()->steps[i].forward.state != OP_FAILED) {
            return i;
        }
    }
    return STEP_NONE;
}

static bool is_read(uint32_t step)
{
    return class_of(step, DIRECTION_DO) == EFFECT_READ;
}

static void check_begins(const struct record *record)
{
    uint32_t sealed = sealed_by();

    world.begun[record->step] = world.records;
    world.settled[record->step] = 0;
    if (is_run()) {
        return;
    }
    must_hold(saga_now()->plan_count == 0, "a call after the plan to undo");
    must_hold(sealed == STEP_NONE || sealed == record->step || is_read(record->step),
              "an effect after what sealed the saga");
    if (saga_now()->definition->steps[record->step].terminal) {
        for (uint32_t i = 0; i < step_count(); i++) {
            must_hold(i == record->step || !world.begun[i] || world.settled[i],
                      "a terminal call while something is not settled");
        }
    }
}

static void check_undo_begins(uint32_t step)
{
    must_hold(!is_run(), "a run is undone");
    must_hold(stands(step) || thing_of(step, DIRECTION_UNDO)->effects > 0, "what did not happen is compensated");
    for (uint32_t i = 0; i < step_count(); i++) {
        if (world.settled[step] && world.settled[step] < world.begun[i] && !thing_of(i, DIRECTION_DO)->lied) {
            must_hold(!stands(i) || saga_now()->steps[i].plan == PLAN_WAIVED, "compensated before what came after it");
            must_hold(saga_now()->steps[i].plan != PLAN_VERDICT,
                      "compensated before the verdict on what came after it");
        }
    }
}

static void check_record(const struct record *record)
{
    bool lied = record->step != STEP_NONE && thing_of(record->step, DIRECTION_DO)->lied;

    world.records++;
    seen_records[record->type]++;
    if (record->type == RECORD_STEP_CALLED || record->type == RECORD_STEP_REPEATED) {
        check_begins(record);
    } else if (record->type == RECORD_STEP_INTENT) {
        must_hold(saga_now()->phase == PHASE_FORWARD || saga_now()->phase == PHASE_FAILING,
                  "a forward call while undoing");
        must_hold(!saga_now()->definition->steps[record->step].tool->guarded ||
                      thing_of(record->step, DIRECTION_DO)->granted_attempt == record->attempt,
                  "an intent that no guard has let pass");
    } else if (record->type == RECORD_COMPENSATION_INTENT && record->attempt == 1) {
        check_undo_begins(record->step);
    } else if (record->type == RECORD_STEP_COMPLETED) {
        world.settled[record->step] = world.records;
        must_hold(record->source == SOURCE_PRECHECK || thing_of(record->step, DIRECTION_DO)->effects > 0,
                  "a step counts as done that did not happen");
    } else if (record->type == RECORD_STEP_FAILED) {
        world.settled[record->step] = world.records;
        must_hold(lied || (!stands(record->step) && thing_of(record->step, DIRECTION_DO)->lands_ms == 0),
                  "a step counts as failed that has happened");
    } else if (record->type == RECORD_STEP_LATE) {
        must_hold(lied, "late evidence that contradicts nothing");
        world.settled[record->step] = 0;
    } else if (record->type == RECORD_COMPENSATION_COMPLETED) {
        must_hold(thing_of(record->step, DIRECTION_UNDO)->effects > 0, "an undo counts as done that did not happen");
    } else if (record->type == RECORD_BYPASS_SIGNED) {
        world.bypasses++;
    }
}

static bool may_stand_after_end(enum record_type type)
{
    return type == RECORD_OPERATION_DUPLICATE || type == RECORD_OPERATION_EXPIRED;
}

static void check_records(bool had_ended)
{
    const struct records *records = &world.trial.records;
    uint32_t opened = 0;

    for (size_t i = 0; i < records->count; i++) {
        const struct record *record = &records->items[i];

        must_hold(!had_ended ||
                      (is_run() ? i > 0 || record->type == RECORD_RUN_WOKEN : may_stand_after_end(record->type)),
                  "a record after the end");
        check_record(record);
        opened += record->type == RECORD_ESCALATION_OPENED;
    }
    must_hold(opened <= 1, "two escalations in one turn");
}

/* One effect for each thing that was asked for, and one more for each signature. */
static void check_identities(void)
{
    const struct saga *saga = saga_now();
    uint32_t spare = world.bypasses;

    for (uint32_t i = 0; i < step_count(); i++) {
        const struct tool *tool = saga->definition->steps[i].tool;

        if (tool->effect == EFFECT_READ || tool->on_duplicate == DUPLICATE_ALLOW || tool->again_on_expired) {
            continue;
        }
        for (uint32_t j = 0; j < i; j++) {
            if (slice_equal(saga->definition->steps[j].name, saga->definition->steps[i].name) &&
                saga->definition->steps[j].tool == tool &&
                slice_equal(saga->steps[j].forward.scope, saga->steps[i].forward.scope)) {
                must_hold(spare > 0, "one more operation of the same, and nobody has signed it off");
                spare--;
                break;
            }
        }
    }
}

static bool any_has_lied(void)
{
    bool lied = false;

    for (uint32_t i = 0; i < step_count(); i++) {
        lied = lied || thing_of(i, DIRECTION_DO)->lied;
    }
    return lied;
}

static void check_books(void)
{
    const struct saga *saga = saga_now();

    for (uint32_t i = 0; i < step_count(); i++) {
        for (unsigned d = 0; d < DIRECTION_COUNT; d++) {
            const struct thing *thing = thing_of(i, (enum direction)d);

            if (d == DIRECTION_UNDO && !saga->definition->steps[i].compensate.is_set) {
                continue;
            }
            if (thing->doubled || thing->lied || class_of(i, (enum direction)d) == EFFECT_READ) {
                continue;
            }
            must_hold(thing->effects <= 1, "two effects under one key");
        }
    }
    check_identities();
    must_hold(saga->budget.calls < 0 || saga->used.calls <= saga->budget.calls, "more calls than the budget has");
    /* Who lied about a failure had its money given back. */
    must_hold(saga->budget.micros < 0 || any_has_lied() || saga->used.micros <= saga->budget.micros,
              "more money than the budget has");
    must_hold(saga->budget.emissions < 0 || saga->used.calls <= saga->used.emissions, "more calls than emissions");
    must_hold(saga->used.micros >= 0 && saga->used.calls >= 0, "a budget that was given back twice");
}

static void check_end(void)
{
    const struct saga *saga = saga_now();

    for (uint32_t i = 0; i < step_count(); i++) {
        const struct thing *thing = thing_of(i, DIRECTION_DO);
        enum took_effect took_effect = saga->steps[i].forward.took_effect;

        if (thing->lied) {
            continue;
        }
        if (saga->end == SAGA_COMPLETED) {
            must_hold(thing->effects == 0 || class_of(i, DIRECTION_DO) == EFFECT_READ || took_effect == TOOK_EFFECT_YES,
                      "completed with an effect that it does not know of");
            must_hold(thing->lands_ms == 0 || thing->effects > 0, "completed with something on the wire");
        } else if (saga->end == SAGA_COMPENSATED) {
            must_hold(!stands(i) && (thing->lands_ms == 0 || thing->effects > 0), "compensated with an effect left");
        } else {
            must_hold(!stands(i) || took_effect == TOOK_EFFECT_YES || took_effect == TOOK_EFFECT_MAYBE,
                      "abandoned with an effect that is no debt");
        }
    }
    seen_ends[saga->end]++;
}

/* --- inputs --- */

static enum err_code feed(struct saga_input input)
{
    bool had_ended = saga_now()->phase == PHASE_ENDED;
    enum err_code code;

    land();
    code = call_trial_input(&world.trial, input);
    if (code == ERR_OK) {
        check_records(had_ended);
    } else {
        must_hold(input.type != SAGA_INPUT_SETTLED && input.type != SAGA_INPUT_PROBED &&
                      input.type != SAGA_INPUT_TIMER && input.type != SAGA_INPUT_ADMITTED,
                  "an input of our own is refused");
    }
    check_books();
    world.turns++;
    return code;
}

static void feed_outcome(enum saga_input_type type, uint32_t step, enum direction direction, uint32_t number,
                         struct outcome outcome)
{
    struct saga_input input = {.type = type};

    input.settled.step = step;
    input.settled.direction = direction;
    input.settled.attempt = number;
    input.settled.outcome = outcome;
    if (outcome.kind == OUTCOME_COMPLETED && direction == DIRECTION_DO &&
        saga_now()->definition->steps[step].compensate.is_set) {
        input.settled.undo_args = SLICE("{\"id\":1}");
    }
    (void)feed(input);
}

/* Calls leave as soon as their intent is durable; their answers take their time. */
static void send_calls(const struct wants *wants)
{
    for (size_t i = 0; i < wants->count; i++) {
        const struct want *want = &wants->items[i];
        struct thing *thing = want->type == WANT_CALL ? thing_of(want->step, want->direction) : NULL;

        if (thing && thing->asked_attempt != want->number) {
            must_hold(saga_now()->phase != PHASE_ENDED, "a call after the end");
            thing->asked_attempt = want->number;
            thing->answer = send_call(want->step, want->direction);
            thing->has_answer = true;
        }
    }
}

/* The engine that made these calls is gone, and the next one reads the log. */
static void crash(const struct wants *wants)
{
    struct want calls[2 * STEPS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < wants->count; i++) {
        if (wants->items[i].type == WANT_CALL) {
            calls[count++] = wants->items[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct thing *thing = thing_of(calls[i].step, calls[i].direction);

        if (thing->has_answer && !thing->has_late && chance(40)) {
            thing->has_late = true;
            thing->late = thing->answer;
            thing->late_attempt = calls[i].number;
        }
        thing->has_answer = false;
        if (thing->running) {
            thing->running = false;
            thing->lands_ms = world.trial.now_ms + 1;
        }
        feed_outcome(SAGA_INPUT_SETTLED, calls[i].step, calls[i].direction, calls[i].number,
                     other(OUTCOME_UNKNOWN, false, "interrupted"));
    }
}

static void late_answers(void)
{
    for (uint32_t i = 0; i < step_count(); i++) {
        for (unsigned d = 0; d < DIRECTION_COUNT; d++) {
            struct thing *thing = thing_of(i, (enum direction)d);

            if (thing->has_late && thing->late.kind != OUTCOME_RUNNING && chance(50)) {
                thing->has_late = false;
                feed_outcome(SAGA_INPUT_SETTLED, i, (enum direction)d, thing->late_attempt, thing->late);
            }
        }
    }
}

static void admit(const struct want *want)
{
    struct saga_input input = {.type = SAGA_INPUT_ADMITTED, .admitted = {.step = want->step}};
    uint32_t luck = world.kind ? 0 : chance_below(100);

    if (luck >= 60) {
        input.admitted.admission = luck < 75   ? ADMISSION_REFUSED
                                   : luck < 85 ? ADMISSION_UNASKED
                                   : luck < 92 ? ADMISSION_DONE
                                               : ADMISSION_BLOCKED;
        input.admitted.error = luck < 72 ? SLICE("rate-limited") : luck < 75 ? SLICE("budget-exhausted") : SLICE_NONE;
        input.admitted.retry_after_ms = 1000;
    }
    /* Whatever it says leads to an intent only where it may: what was done before may be our own, and is found out by
     * key. */
    thing_of(want->step, DIRECTION_DO)->granted_attempt =
        input.admitted.admission == ADMISSION_GRANTED ||
                saga_now()->steps[want->step].forward.took_effect == TOOK_EFFECT_MAYBE
            ? want->number
            : 0;
    (void)feed(input);
}

static void do_want(const struct want *want)
{
    struct saga_input timer = {.type = SAGA_INPUT_TIMER};
    struct thing *thing;

    if (want->due_ms > world.trial.now_ms) {
        world.trial.now_ms = want->due_ms + (chance(10) ? chance_below(100000) : 0);
        land();
    }
    switch (want->type) {
    case WANT_ADMIT:
        admit(want);
        return;
    case WANT_CALL:
        thing = thing_of(want->step, want->direction);
        must_hold(thing->has_answer, "a call is wanted that nobody has made");
        thing->has_answer = false;
        world.trial.now_ms += chance_below(300);
        feed_outcome(SAGA_INPUT_SETTLED, want->step, want->direction, want->number, thing->answer);
        return;
    case WANT_PROBE:
        feed_outcome(SAGA_INPUT_PROBED, want->step, want->direction, want->number, ask(want->step, want->direction));
        return;
    case WANT_TIMER:
        timer.timer.step = want->step;
        timer.timer.timer = want->step == STEP_NONE ? (enum saga_timer)want->number : SAGA_TIMER_DEADLINE;
        timer.timer.direction = want->direction;
        (void)feed(timer);
        must_hold(want->step != STEP_NONE || world.trial.records.count > 0,
                  "a timer of the saga that changes nothing is wanted again");
        return;
    case WANT_LOCK:
    case WANT_EVALUATE:
        must_hold(false, "an evaluation without a program");
        return;
    }
}

/* --- the agent --- */

static const char *new_emission(void)
{
    (void)snprintf(world.emission, sizeof(world.emission), "e%u", world.calls);
    return world.emission;
}

static void call_something(void)
{
    static const char *const tools[] = {"look", "coalesce", "strict",  "refuse",     "escalate", "allow",  "again",
                                        "mail", "once",     "checked", "idempotent", "paid",     "limited"};
    static const char *const steps[] = {"a", "b", "c", NULL};
    static const char *const args[] = {"{'amount':1}", "{'amount':2}", "{'amount':1,'memo':'x'}",
                                       "{'amount':1,'timestamp':7}"};
    static const char *const scopes[] = {NULL, NULL, "x"};
    static const char *const turns[] = {NULL, NULL, "1", "2", "3"};
    bool had_ended = saga_now()->phase == PHASE_ENDED;
    struct wish *wish = &world.wish;
    enum err_code code;

    land();
    if (world.stubborn) {
        *wish = (struct wish){.tool = chance(50) ? "look" : "strict", .step = "a", .args = args[0]};
    } else if (!wish->tool || chance(85)) { /* else the network repeats the last one */
        *wish = (struct wish){.tool = tools[chance_below(COUNT_OF(tools))],
                              .step = steps[chance_below(COUNT_OF(steps))],
                              .args = args[chance(60) ? 0 : chance_below(COUNT_OF(args))],
                              .scope = scopes[chance_below(COUNT_OF(scopes))],
                              .emission = chance(50)  ? NULL
                                          : chance(3) ? "e1"
                                                      : new_emission(),
                              .turn = turns[chance_below(COUNT_OF(turns))]};
        if (strcmp(wish->tool, "mail") == 0 && chance(50)) {
            wish->tool = "strict";
        }
    }
    code = call_trial_call(&world.trial, *wish);
    seen_answers[code]++;
    check_records(had_ended);
    check_books();
    world.turns++;
    world.calls++;
    must_hold(code != ERR_OK || world.trial.records.answer.step < step_count(), "an answer about nothing");
}

static void end_by_chance(void)
{
    struct saga_input input = {.type = chance(70) ? SAGA_INPUT_COMPLETE : SAGA_INPUT_ABORT};

    if (input.type == SAGA_INPUT_COMPLETE) {
        input.complete.actor = SLICE("agent");
    } else {
        input.abort.actor = SLICE("agent");
    }
    if (!is_run()) {
        (void)feed(input);
    }
}

/* --- people --- */

static void sign_by_chance(void)
{
    if (step_count() > 0) {
        struct saga_input input = {.type = SAGA_INPUT_BYPASS};

        input.bypass.key = saga_now()->steps[chance_below(step_count())].forward.key;
        input.bypass.actor = SLICE("ann");
        input.bypass.note = SLICE("once more");
        (void)feed(input);
    }
}

static void resume_by_chance(void)
{
    struct saga_input input = {.type = SAGA_INPUT_RESUME};

    input.resume.actor = SLICE("ann");
    (void)feed(input);
}

/* Any verb, wise or not, but the truth about what happened. */
static void decide_as_person(void)
{
    const struct escalation *open = &saga_now()->escalation;
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR};
    struct thing none = {0}, *thing = open->step == STEP_NONE ? &none : thing_of(open->step, open->direction);
    const struct operation *op = open->step == STEP_NONE             ? NULL
                                 : open->direction == DIRECTION_UNDO ? step_undo(&saga_now()->steps[open->step])
                                                                     : &saga_now()->steps[open->step].forward;
    bool maybe = op && op->took_effect == TOOK_EFFECT_MAYBE;
    unsigned allowed = saga_escalation_actions(saga_now());
    enum err_code code;

    if (thing->lands_ms) {
        world.trial.now_ms = thing->lands_ms;
        land();
    }
    input.operator.action =(enum operator_action) chance_below(OPERATOR_ACTION_COUNT);
    if ((input.operator.action == OPERATOR_ABANDON || world.kind) && chance(80)) {
        input.operator.action = OPERATOR_RESOLVE;
    }
    input.operator.escalation = open->number;
    input.operator.actor = SLICE("ann");
    input.operator.note = SLICE("looked it up");
    if (input.operator.action == OPERATOR_RESOLVE) {
        input.operator.happened = thing->effects> 0;
        input.operator.result = input.operator.happened ? SLICE("{\"id\":\"r-1\"}") : SLICE_NONE;
        input.operator.undo_args = SLICE("{\"id\":1}");
    }
    input.operator.accept_double = input.operator.action == OPERATOR_RETRY && chance(40);
    code = feed(input);
    must_hold(code != ERR_OK || (allowed & BIT(input.operator.action)), "a verb that is not allowed was taken");
    if (code == ERR_OK && input.operator.accept_double && maybe) {
        thing->doubled = true;
    }
}

/* --- one walk --- */

static void step_of_walk(void)
{
    struct wants wants;
    bool stuck = saga_now()->escalation.number != 0,
         forward = saga_now()->phase == PHASE_FORWARD || saga_now()->seq == 0;

    saga_wants(saga_now(), &world.trial.turn, &wants);
    send_calls(&wants);
    must_hold(wants.count > 0 || stuck || saga_now()->paused.ptr || forward || saga_now()->phase == PHASE_ENDED,
              "nothing is wanted, and nobody is asked");
    if (!world.kind && chance(4)) {
        crash(&wants);
    } else if (chance(6)) {
        late_answers();
    } else if (!world.kind && chance(3)) {
        sign_by_chance();
    } else if (world.calls < 60 && step_count() < STEPS_MAX - 1 && chance(forward ? 45 : 5)) {
        call_something();
    } else if (stuck && (wants.count == 0 || chance(20))) {
        decide_as_person();
    } else if (saga_now()->paused.ptr && (wants.count == 0 || chance(20))) {
        resume_by_chance();
    } else if (is_run() && chance(1)) {
        world.trial.now_ms += INT64_C(25) * 3600 * 1000; /* the agent comes back the day after */
    } else if (forward && chance(world.kind ? 30 : 4)) {
        end_by_chance();
    } else if (wants.count > 0) {
        struct want want = wants.items[chance_below((uint32_t)wants.count)];

        do_want(&want);
    }
}

static void walk(uint64_t seed)
{
    static const char *const budgets[] = {NULL, NULL, "{'calls':4}", "{'micros':250}", "{'emissions':20,'calls':9}"};
    static const char *const loops[] = {NULL, "{'repeats':2,'max_cycle':3}"};
    static const char *const timeouts[] = {NULL, "escalate"};

    chance_state = seed;
    memset(&world, 0, sizeof(world));
    world.seed = seed;
    world.deaf = chance(15);
    world.stubborn = chance(15);
    if (seed % 3 == 0) {
        call_trial_run(&world.trial);
    } else {
        call_trial_open(&world.trial, budgets[chance_below(COUNT_OF(budgets))], loops[chance_below(2)],
                        timeouts[chance_below(2)]);
        seen_records[RECORD_SAGA_STARTED]++;
    }
    while (saga_now()->phase != PHASE_ENDED || (is_run() && !world.kind)) {
        world.kind = ++world.steps > 250;
        must_hold(world.steps < 8000, "it does not end");
        if (world.kind && !is_run() && saga_now()->phase == PHASE_FORWARD && world.steps > 4000) {
            end_by_chance();
        }
        step_of_walk();
    }
    check_end();
    for (int i = 0; i < 5; i++) { /* what comes after the end */
        call_something();
        late_answers();
    }
    call_trial_close(&world.trial);
}

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);

    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void random_walks_keep_every_rule(void **state)
{
    uint64_t walks = number_of("SAGA_WALKS", 1500);
    /* A part of them is another part in each run; all of them are the same, so that they come everywhere. */
    uint64_t first = number_of("SAGA_SEED", getenv("SAGA_WALKS") ? 1 + number_of("SAGAD_TEST_SEED", 0) * 1000 : 1);

    (void)state;
    for (uint64_t seed = first; seed < first + walks; seed++) {
        walk(seed);
    }
}

/* A walk that never comes somewhere says nothing about it. */
static void the_walks_came_everywhere(void **state)
{
    static const enum record_type must_be_seen[] = {RECORD_STEP_CALLED,
                                                    RECORD_STEP_REPEATED,
                                                    RECORD_STEP_LATE,
                                                    RECORD_OPERATION_DUPLICATE,
                                                    RECORD_BYPASS_SIGNED,
                                                    RECORD_LOOP_TRIPPED,
                                                    RECORD_SAGA_PAUSED,
                                                    RECORD_SAGA_RESUMED,
                                                    RECORD_RUN_RESTED,
                                                    RECORD_RUN_WOKEN,
                                                    RECORD_SAGA_FAILING,
                                                    RECORD_COMPENSATION_PLANNED,
                                                    RECORD_COMPENSATION_COMPLETED,
                                                    RECORD_ESCALATION_OPENED,
                                                    RECORD_SAGA_COMPLETED,
                                                    RECORD_SAGA_COMPENSATED,
                                                    RECORD_SAGA_ABANDONED,
                                                    RECORD_STEP_UNKNOWN,
                                                    RECORD_STEP_PROBED,
                                                    RECORD_STEP_RETRYING,
                                                    RECORD_STEP_WAIVED,
                                                    RECORD_OPERATION_EXPIRED,
                                                    RECORD_STEP_RUNNING};
    static const enum err_code must_be_answered[] = {ERR_OK,     ERR_DUPLICATE,   ERR_AWAITING, ERR_LOOP,
                                                     ERR_SEALED, ERR_UNSETTLED,   ERR_BUDGET,   ERR_PAUSED,
                                                     ERR_DRIFT,  ERR_OTHER_INPUT, ERR_CLOSED,   ERR_OUTCOME_UNKNOWN};

    (void)state;
    if (getenv("SAGA_WALKS")) {
        skip();
    }
    for (unsigned i = 0; getenv("SAGA_SHOW") && i < RECORD_TYPE_COUNT; i++) {
        printf("%llu %s\n", (unsigned long long)seen_records[i], record_type_name((enum record_type)i));
    }
    for (unsigned i = 0; getenv("SAGA_SHOW") && i < ERR_COUNT; i++) {
        printf("%llu %s\n", (unsigned long long)seen_answers[i], err_name((enum err_code)i));
    }
    for (size_t i = 0; i < COUNT_OF(must_be_seen); i++) {
        if (seen_records[must_be_seen[i]] < 10) {
            fail_msg("only %llu records %s", (unsigned long long)seen_records[must_be_seen[i]],
                     record_type_name(must_be_seen[i]));
        }
    }
    for (size_t i = 0; i < COUNT_OF(must_be_answered); i++) {
        if (seen_answers[must_be_answered[i]] < 10) {
            fail_msg("only %llu answers %s", (unsigned long long)seen_answers[must_be_answered[i]],
                     err_name(must_be_answered[i]));
        }
    }
    assert_true(seen_ends[SAGA_COMPLETED] > 100 && seen_ends[SAGA_COMPENSATED] > 100 && seen_ends[SAGA_ABANDONED] > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_walks_keep_every_rule),
        cmocka_unit_test(the_walks_came_everywhere),
    };

    return cmocka_run_group_tests_name("saga_random_open", tests, NULL, NULL);
}
