/*
 * Random walks: sagas of every shape against a small world that loses answers, lands effects late, refuses, forgets
 * keys and crashes the engine between any two records, with people who decide at random but tell the truth. After each
 * record the invariants of the design are held against the world's own books, not against what the machine believes.
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

#include "core/definition/graph.h"
#include "tests/lib/saga_trial.h"

#define STEPS_MAX 13
#define DEFINITIONS 200
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

/* --- definitions of every shape --- */

static const char *const tools[] = {"read",     "idempotent", "idempotent_probed", "keyed",       "keyed_probed",
                                    "checked",  "once",       "once_probed",       "voidable",    "strict",
                                    "by_keyed", "by_checked", "limited",           "limited_once"};

static void put_after(struct buffer *out, uint32_t step, bool all)
{
    bool any = false;

    buffer_put_text(out, ",'after':[");
    for (uint32_t i = 0; i < step; i++) {
        if (all || chance(50)) {
            buffer_printf(out, "%s's%u'", any ? "," : "", i);
            any = true;
        }
    }
    buffer_put_text(out, "]");
}

/* When it runs, and what its failure means. */
static void put_conditions(struct buffer *out, bool terminal)
{
    static const char *const whens[] = {"${ .input.n }", "${ .input.none }", "${ .input.n > 0 }", "${ .input.n.n }"};
    uint32_t luck = chance_below(100);

    if (chance(25)) {
        buffer_printf(out, ",'when':'%s'", whens[chance_below(chance(90) ? 3 : 4)]);
    }
    if (luck < 20) {
        buffer_put_text(out, ",'on_failure':'escalate'");
    } else if (luck < 40 && !terminal) {
        buffer_put_text(out, ",'on_failure':'continue'");
    }
}

static void put_step(struct buffer *out, uint32_t step, bool terminal)
{
    const char *tool = terminal ? (chance(50) ? "mail" : "mail_probed") : tools[chance_below(COUNT_OF(tools))];

    buffer_printf(out, "%s{'id':'s%u','call':'%s'", step ? "," : "", step, tool);
    if (terminal || chance(60)) {
        put_after(out, step, terminal);
    }
    put_conditions(out, terminal);
    if (chance(15)) {
        buffer_put_text(out, ",'with':{'n':'${ 1 + 1 }'}"); /* evaluated outside */
    } else if (chance(3)) {
        buffer_put_text(out, ",'with':{'n':'${ .input.n.n }'}"); /* cannot be followed */
    } else {
        buffer_put_text(out, ",'with':{'n':1}");
    }
    buffer_put_text(out, "}");
}

static const struct definition *definition_by_chance(struct arena *arena)
{
    struct buffer out;
    const struct definition *definition;
    uint32_t count = 1 + chance_below(STEPS_MAX - 1);
    bool terminal = chance(35);

    buffer_init(&out, 65536);
    buffer_put_text(&out, "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'walk',");
    if (chance(30)) {
        buffer_put_text(&out, "'deadline':'2m',");
    }
    if (chance(40)) {
        buffer_printf(&out, "'compensation':{'concurrency':%u},", 1 + chance_below(4));
    }
    if (chance(30)) {
        buffer_put_text(&out, chance(50) ? "'output':{'a':'${ .steps.s0.result }'},"
                                         : "'output':{'a':'${ .input | length }'},");
    }
    buffer_put_text(&out, "'steps':[");
    for (uint32_t i = 0; i < count; i++) {
        put_step(&out, i, terminal && i == count - 1);
    }
    buffer_put_text(&out, "]}]}");
    assert_false(out.overflow);
    definition = trial_compile(arena, trial_json(arena, buffer_c(&out)));
    buffer_fini(&out);
    return definition;
}

/* --- the world at the other end --- */

struct thing { /* what the receiver's books say about one operation */
    struct op_key key;
    uint32_t effects;
    uint32_t sends;   /* calls of which a byte left */
    int64_t first_ms; /* since when it remembers the key */
    int64_t lands_ms; /* a call on the wire takes effect then; 0: none */
    bool running;     /* it was accepted, and lands then */
    bool voided;
    bool doubled;           /* a person accepted a second effect */
    uint32_t asked_attempt; /* the attempt that was sent last */
    bool has_answer;
    struct outcome answer; /* on its way back */
    bool has_late;         /* the answer of an attempt that the engine has given up waiting for */
    struct outcome late;
    uint32_t late_attempt;
};

struct world {
    struct trial trial;
    struct thing things[STEPS_MAX][DIRECTION_COUNT];
    uint64_t seed;
    bool kind; /* everything works from now on, so that the walk ends */
    bool deaf; /* nobody answers probes, until everything works */
    uint32_t turns;
    uint32_t admitted[STEPS_MAX]; /* the attempt that guards and precheck were asked about last */
};

static struct world world;
static uint64_t seen_ends[SAGA_STATUS_COUNT], seen_escalations, seen_conditions, seen_undos_at_once, seen_gone_on,
    seen_records[RECORD_TYPE_COUNT], seen_actions[OPERATOR_ACTION_COUNT];

static struct thing *thing_of(uint32_t step, enum direction direction)
{
    return &world.things[step][direction];
}

static bool stands(uint32_t step)
{
    return thing_of(step, DIRECTION_DO)->effects > 0 && thing_of(step, DIRECTION_UNDO)->effects == 0 &&
           world.trial.definition->steps[step].tool->effect != EFFECT_READ;
}

static void take_effect(uint32_t step, enum direction direction)
{
    struct thing *thing = thing_of(step, direction);
    enum effect effect = saga_tool(&world.trial.saga, step, direction)->effect;
    bool knows_key =
        effect == EFFECT_IDEMPOTENT || (effect == EFFECT_KEYED && world.trial.now_ms < thing->first_ms + KEY_WINDOW_MS);

    if (thing->voided || (thing->effects > 0 && (knows_key || effect == EFFECT_READ))) {
        return;
    }
    thing->effects++;
    thing->first_ms = thing->first_ms ? thing->first_ms : world.trial.now_ms;
    if (direction == DIRECTION_UNDO && world.trial.definition->steps[step].compensate.voids_key) {
        thing_of(step, DIRECTION_DO)->voided = true;
    }
}

/* Something on the wire that will still take effect: a receiver that has the effect already, or was told to refuse,
 * knows the key. */
static bool is_on_the_wire(uint32_t step)
{
    const struct thing *thing = thing_of(step, DIRECTION_DO);

    return thing->lands_ms != 0 && thing->effects == 0 && !thing->voided;
}

/* What was on the wire at this time has arrived. */
static void land(void)
{
    for (uint32_t i = 0; i < world.trial.definition->step_count; i++) {
        for (unsigned d = 0; d < DIRECTION_COUNT; d++) {
            struct thing *thing = thing_of(i, (enum direction)d);

            if (thing->lands_ms && thing->lands_ms <= world.trial.now_ms) {
                thing->lands_ms = 0;
                thing->running = false;
                if (thing->effects == 0) { /* the receiver knows its own keys while they are young */
                    take_effect(i, (enum direction)d);
                }
            }
        }
    }
}

static struct slice some_result(void)
{
    return world.kind || chance(95) ? SLICE("{\"id\":\"r-1\"}") : SLICE("null");
}

static struct outcome completed(void)
{
    return (struct outcome){.kind = OUTCOME_COMPLETED, .result = some_result()};
}

static struct outcome other(enum outcome_kind kind, bool unsent, const char *error)
{
    return (struct outcome){.kind = kind, .unsent = unsent, .error = slice_of(error)};
}

/* A call leaves: its effect and its answer are decided now. */
static struct outcome send_call(uint32_t step, enum direction direction)
{
    struct thing *thing = thing_of(step, direction);
    uint32_t luck = world.kind ? 0 : chance_below(100);

    if (luck >= 60 && luck < 67) {
        return other(OUTCOME_RETRY, true, "refused");
    }
    thing->sends++;
    if (thing->voided) {
        return other(OUTCOME_FAILED, false, "voided");
    }
    if (luck < 60) {
        take_effect(step, direction);
        return completed();
    }
    if (luck < 74) {
        return other(OUTCOME_RETRY, false, "http-429");
    }
    if (luck < 80) {
        return other(OUTCOME_FAILED, false, "http-422");
    }
    if (luck < 88) {
        take_effect(step, direction);
        return other(OUTCOME_UNKNOWN, false, "timeout");
    }
    if (luck < 93) {
        return other(OUTCOME_UNKNOWN, false, "reset");
    }
    if (saga_tool(&world.trial.saga, step, direction)->effect == EFFECT_READ) {
        return other(OUTCOME_UNKNOWN, false, "cut");
    }
    if (luck < 96 || !saga_tool(&world.trial.saga, step, direction)->has_probe) {
        thing->lands_ms = world.trial.now_ms + 1 + chance_below(VISIBILITY_MS - 2);
        return other(OUTCOME_UNKNOWN, false, "late");
    }
    thing->lands_ms = world.trial.now_ms + 1 + chance_below(20000);
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

static void broken(const char *what)
{
    (void)fprintf(stderr, "seed %llu\n%.*s", (unsigned long long)world.seed, (int)world.trial.log.len,
                  world.trial.log.ptr);
    fail_msg("seed %llu: %s", (unsigned long long)world.seed, what);
}

static void must_hold(bool holds, const char *what)
{
    if (!holds) {
        broken(what);
    }
}

static void check_undo_begins(uint32_t step)
{
    const struct definition *definition = world.trial.definition;

    must_hold(stands(step) ||
                  (thing_of(step, DIRECTION_DO)->effects == 0 && definition->steps[step].compensate.tolerates_absent) ||
                  thing_of(step, DIRECTION_UNDO)->effects > 0,
              "what did not happen is compensated");
    for (uint32_t i = 0; i < definition->step_count; i++) {
        if (graph_before(definition, step, i)) {
            must_hold(!stands(i) || world.trial.saga.steps[i].plan == PLAN_WAIVED,
                      "compensated before what came after it");
            must_hold(world.trial.saga.steps[i].plan != PLAN_VERDICT,
                      "compensated before the verdict on what came after it");
        }
    }
}

static bool has_happened(uint32_t step)
{
    return thing_of(step, DIRECTION_DO)->effects > 0 || saga_took_effect(&world.trial.saga, step) == TOOK_EFFECT_BEFORE;
}

/* Nothing came of it, and its saga may go on all the same. */
static bool is_gone_on_without(uint32_t step)
{
    const struct operation *op = &world.trial.saga.steps[step].forward;

    return (op->state == OP_SKIPPED ||
            (op->state == OP_FAILED && world.trial.definition->steps[step].on_failure == ON_FAILURE_CONTINUE)) &&
           !stands(step) && !is_on_the_wire(step);
}

static void check_step_begins(uint32_t step)
{
    const struct step_definition *definition = &world.trial.definition->steps[step];

    must_hold(world.trial.saga.phase != PHASE_UNDO, "a forward call while undoing");
    for (uint32_t i = 0; i < definition->after_count; i++) {
        uint32_t before = definition->after[i];

        must_hold(has_happened(before) || is_gone_on_without(before),
                  "a step begins before what it comes after has happened");
        must_hold(thing_of(before, DIRECTION_UNDO)->effects == 0, "a step begins after what it builds on was undone");
    }
    must_hold(!definition->tool->guarded || world.admitted[step] == world.trial.saga.steps[step].forward.attempts,
              "an intent that no guard was asked about");
    must_hold(thing_of(step, DIRECTION_UNDO)->sends == 0, "a forward call after its own compensation");
}

static void check_end(enum saga_status end)
{
    const struct trial *trial = &world.trial;

    for (uint32_t i = 0; i < trial->definition->step_count; i++) {
        enum took_effect took_effect = saga_took_effect(&trial->saga, i);

        if (end == SAGA_COMPLETED) {
            seen_gone_on += trial->saga.steps[i].forward.state == OP_FAILED;
            must_hold((has_happened(i) || is_gone_on_without(i)) && thing_of(i, DIRECTION_UNDO)->effects == 0,
                      "completed without all of its effects");
        }
        if (end == SAGA_COMPENSATED) {
            must_hold(!stands(i) && !is_on_the_wire(i), "compensated with an effect left");
        }
        if (end == SAGA_ABANDONED && stands(i)) {
            must_hold(took_effect == TOOK_EFFECT_YES || took_effect == TOOK_EFFECT_MAYBE,
                      "abandoned with an effect that is no debt");
        }
    }
    seen_ends[end]++;
}

static void check_records(bool had_ended)
{
    const struct trial *trial = &world.trial;
    uint32_t opened = 0, active = 0;

    must_hold(!had_ended || trial->records.count == 0, "a record after the end");
    for (size_t i = 0; i < trial->records.count; i++) {
        const struct record *record = &trial->records.items[i];

        seen_records[record->type]++;
        if (record->type == RECORD_STEP_INTENT) {
            check_step_begins(record->step);
        } else if (record->type == RECORD_COMPENSATION_INTENT && record->attempt == 1) {
            check_undo_begins(record->step);
        } else if (record->type == RECORD_ESCALATION_OPENED) {
            seen_escalations++;
            opened++;
        } else if (record->type == RECORD_COMPENSATION_COMPLETED) {
            must_hold(thing_of(record->step, DIRECTION_UNDO)->effects > 0,
                      "an undo counts as done that did not happen");
        } else if (record->type == RECORD_STEP_COMPLETED && record->source == SOURCE_PRECHECK) {
            must_hold(thing_of(record->step, DIRECTION_DO)->effects == 0, "an effect of ours counts as there before");
        } else if (record->type == RECORD_STEP_COMPLETED) {
            must_hold(thing_of(record->step, DIRECTION_DO)->effects > 0, "a step counts as done that did not happen");
        } else if (record->type == RECORD_STEP_SKIPPED && record->reason.len) {
            must_hold(thing_of(record->step, DIRECTION_DO)->sends == 0, "a step is skipped that was called");
            seen_conditions++;
        } else if (record->type == RECORD_STEP_FAILED || record->type == RECORD_STEP_SKIPPED) {
            must_hold(!stands(record->step) && !is_on_the_wire(record->step),
                      "a step counts as failed that has happened");
        }
    }
    must_hold(opened <= 1, "two escalations in one turn");
    for (uint32_t i = 0; i < trial->definition->step_count; i++) {
        active += trial->saga.steps[i].plan == PLAN_ACTIVE;
    }
    must_hold(active <= trial->definition->undo_concurrency, "more undone at once than allowed");
    seen_undos_at_once += active > 1;
}

static void check_books(void)
{
    for (uint32_t i = 0; i < world.trial.definition->step_count; i++) {
        for (unsigned d = 0; d < DIRECTION_COUNT; d++) {
            const struct thing *thing = thing_of(i, (enum direction)d);
            const struct step_definition *step = &world.trial.definition->steps[i];
            enum effect effect =
                d == DIRECTION_DO || !step->compensate.is_set ? step->tool->effect : step->compensate.tool->effect;

            if (thing->doubled || effect == EFFECT_READ) {
                continue;
            }
            must_hold(thing->effects <= 1, "two effects under one key");
            must_hold(effect != EFFECT_ONCE || thing->sends <= 1, "once left twice");
        }
    }
}

/* --- inputs --- */

static enum err_code feed(struct saga_input input)
{
    bool had_ended = world.trial.saga.phase == PHASE_ENDED;
    enum err_code code;

    land();
    code = trial_input(&world.trial, input);
    if (code == ERR_OK) {
        check_records(had_ended);
    } else {
        must_hold(input.type == SAGA_INPUT_ABORT || input.type == SAGA_INPUT_OPERATOR,
                  "an input of our own is refused");
    }
    check_books();
    world.turns++;
    return code;
}

static void feed_outcome(enum saga_input_type type, uint32_t step, enum direction direction, uint32_t number,
                         struct outcome outcome)
{
    (void)feed(trial_outcome(&world.trial, type, step, direction, number, outcome));
}

/* Calls leave as soon as their intent is durable; their answers take their time. */
static void send_calls(const struct wants *wants)
{
    for (size_t i = 0; i < wants->count; i++) {
        const struct want *want = &wants->items[i];
        struct thing *thing = want->type == WANT_CALL ? thing_of(want->step, want->direction) : NULL;
        const struct operation *op;

        if (!thing || thing->asked_attempt == want->number) {
            continue;
        }
        op = want->direction == DIRECTION_UNDO ? step_undo(&world.trial.saga.steps[want->step])
                                               : &world.trial.saga.steps[want->step].forward;
        if (!uuid_equal(&thing->key.uuid, &op->key.uuid)) {
            must_hold(thing->effects == 0 || uuid_is_nil(&thing->key.uuid) ||
                          saga_tool(&world.trial.saga, want->step, want->direction)->effect == EFFECT_READ,
                      "a new key for what has happened");
            *thing = (struct thing){.key = op->key};
        }
        thing->asked_attempt = want->number;
        thing->answer = send_call(want->step, want->direction);
        thing->has_answer = true;
    }
}

static void crash(const struct wants *wants)
{
    struct want calls[2 * STEPS_MAX];
    size_t count = 0;

    trial_check_replay(&world.trial);
    for (size_t i = 0; i < wants->count; i++) {
        if (wants->items[i].type == WANT_CALL) {
            calls[count++] = wants->items[i]; /* the wants lie in the arena of the turn */
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct thing *thing = thing_of(calls[i].step, calls[i].direction);

        if (thing->has_answer && chance(30)) {
            thing->has_late = true;
            thing->late = thing->answer;
            thing->late_attempt = calls[i].number;
        }
        thing->has_answer = false;
        if (thing->running) {
            thing->running = false;
            thing->lands_ms = world.trial.now_ms + 1; /* nobody was told that it takes longer than it becomes visible */
        }
        feed_outcome(SAGA_INPUT_SETTLED, calls[i].step, calls[i].direction, calls[i].number,
                     other(OUTCOME_UNKNOWN, false, "interrupted"));
    }
}

static void late_answers(void)
{
    for (uint32_t i = 0; i < world.trial.definition->step_count; i++) {
        for (unsigned d = 0; d < DIRECTION_COUNT; d++) {
            struct thing *thing = thing_of(i, (enum direction)d);

            if (thing->has_late && thing->late.kind != OUTCOME_RUNNING) {
                thing->has_late = false;
                feed_outcome(SAGA_INPUT_SETTLED, i, (enum direction)d, thing->late_attempt, thing->late);
            }
        }
    }
}

static void evaluate(const struct want *want)
{
    struct saga_input input = {.type = SAGA_INPUT_EVALUATED};

    input.evaluated.what = (enum evaluation)want->number;
    input.evaluated.step = want->step;
    input.evaluated.failed = !world.kind && chance(5);
    input.evaluated.error = input.evaluated.failed ? SLICE("it has no length") : SLICE_NONE;
    input.evaluated.skipped = input.evaluated.what == EVALUATE_ARGS && !input.evaluated.failed &&
                              world.trial.definition->steps[want->step].when.program_count > 0 && chance(40);
    input.evaluated.value = SLICE("{\"n\":2}");
    (void)feed(input);
}

static void admit(const struct want *want)
{
    struct saga_input input = {.type = SAGA_INPUT_ADMITTED, .admitted = {.step = want->step}};
    uint32_t luck = world.kind ? 0 : chance_below(100);

    if (luck >= 60) {
        input.admitted.admission = luck < 75   ? ADMISSION_REFUSED
                                   : luck < 85 ? ADMISSION_UNASKED
                                   : luck < 95 ? ADMISSION_DONE
                                               : ADMISSION_BLOCKED;
        input.admitted.error = luck < 73 ? SLICE("rate-limited") : luck < 75 ? SLICE("budget-exhausted") : SLICE_NONE;
        input.admitted.result = SLICE("{\"id\":\"r-0\"}");
    }
    world.admitted[want->step] = want->number;
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
    case WANT_ADMIT:
        admit(want);
        return;
    case WANT_TIMER:
        timer.timer.step = want->step;
        timer.timer.direction = want->direction;
        (void)feed(timer);
        return;
    case WANT_EVALUATE:
        evaluate(want);
        return;
    case WANT_LOCK:
        must_hold(false, "a lock is wanted that nobody asked for");
        return;
    }
}

/* A person: any verb, wise or not, but the truth about what happened. */
static void decide_as_person(void)
{
    const struct saga *saga = &world.trial.saga;
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR};
    struct thing *thing = thing_of(saga->escalation.step, saga->escalation.direction);
    const struct operation *op = saga->escalation.direction == DIRECTION_UNDO
                                     ? step_undo(&saga->steps[saga->escalation.step])
                                     : &saga->steps[saga->escalation.step].forward;
    bool maybe = op->took_effect == TOOK_EFFECT_MAYBE;
    enum operator_action action = (enum operator_action)chance_below(OPERATOR_ACTION_COUNT);
    uint32_t step = saga->escalation.step;
    enum direction direction = saga->escalation.direction;
    unsigned allowed = saga_escalation_actions(saga);
    uint32_t by_hand = 0;
    enum err_code code;

    if (thing->lands_ms) {
        world.trial.now_ms = thing->lands_ms;
        land();
    }
    if (action == OPERATOR_ABANDON && chance(80)) {
        action = OPERATOR_RESOLVE;
    }
    input.operator.action = action;
    input.operator.escalation = saga->escalation.number -(chance(3) ? 64 : 0);
    input.operator.actor = SLICE("ann");
    input.operator.note = SLICE("looked it up");
    if (action == OPERATOR_RESOLVE) {
        input.operator.happened = thing->effects> 0;
        if (input.operator.happened) {
            input.operator.result = SLICE("{\"id\":\"r-1\"}");
            if (direction == DIRECTION_DO) {
                struct saga_input rendered =
                    trial_outcome(&world.trial, SAGA_INPUT_SETTLED, step, DIRECTION_DO, 1, completed());

                input.operator.undo_args = rendered.settled.undo_args;
            }
        }
    }
    if (action == OPERATOR_RESOLVE && !input.operator.happened) {
        input.operator.again = chance(30);
    }
    if (action == OPERATOR_RESOLVE && stands(step) && chance(25)) { /* somebody undoes it by hand */
        input.operator.happened = input.operator.again = false;
        input.operator.undone = true;
        input.operator.result = input.operator.undo_args = SLICE_NONE;
        by_hand = 1;
    }
    thing_of(step, DIRECTION_UNDO)->effects += by_hand;
    if (action == OPERATOR_RETRY) {
        input.operator.accept_double = chance(40);
        if (op->took_effect == TOOK_EFFECT_NO && chance(60)) {
            input.operator.args = SLICE("{\"n\":3,\"id\":\"by-hand\"}");
        }
    }
    code = feed(input);
    must_hold(code != ERR_OK || (allowed & BIT(action)), "a verb that is not allowed was taken");
    thing_of(step, DIRECTION_UNDO)->effects -= code == ERR_OK ? 0 : by_hand;
    if (code == ERR_OK) {
        seen_actions[action]++;
        if (action == OPERATOR_RESOLVE && input.operator.again) {
            thing->sends = 0;
        }
        if (action == OPERATOR_RETRY && maybe && input.operator.accept_double) {
            thing->doubled = true;
        } else if (action == OPERATOR_RETRY && !maybe) {
            thing->sends = 0; /* what surely had no effect may leave again at a person's word */
        }
    }
}

/* Inputs that come too late or make no sense: nothing may follow from them. */
static void nonsense(void)
{
    struct saga_input input = {.type = SAGA_INPUT_TIMER};
    uint32_t step = chance_below(world.trial.definition->step_count + 1);
    struct saga before = world.trial.saga;

    switch (chance_below(3)) {
    case 0:
        input.timer.step = step;
        input.timer.direction = (enum direction)chance_below(DIRECTION_COUNT);
        (void)feed(input); /* may be due */
        return;
    case 1:
        feed_outcome(SAGA_INPUT_PROBED, step < world.trial.definition->step_count ? step : 0,
                     (enum direction)chance_below(DIRECTION_COUNT), 900, other(OUTCOME_ABSENT, false, "absent"));
        break;
    default:
        feed_outcome(SAGA_INPUT_SETTLED, step < world.trial.definition->step_count ? step : 0,
                     (enum direction)chance_below(DIRECTION_COUNT), 900, other(OUTCOME_COMPLETED, false, ""));
        break;
    }
    must_hold(before.seq == world.trial.saga.seq, "nonsense was taken for something");
}

static void abort_by_chance(void)
{
    struct saga_input input = {.type = SAGA_INPUT_ABORT};

    input.abort.actor = SLICE("ann");
    input.abort.note = SLICE("enough");
    (void)feed(input);
}

/* --- one walk --- */

static void step_of_walk(void)
{
    struct wants wants;
    bool stuck;

    saga_wants(&world.trial.saga, &world.trial.turn, &wants);
    send_calls(&wants);
    stuck = world.trial.saga.escalation.number != 0;
    must_hold(wants.count > 0 || stuck, "nothing is wanted, and nobody is asked");
    if (!world.kind && chance(4)) {
        crash(&wants);
    } else if (!world.kind && chance(3)) {
        nonsense();
    } else if (!world.kind && chance(1)) {
        abort_by_chance();
    } else if (!world.kind && chance(5)) {
        late_answers();
    } else if (stuck && (wants.count == 0 || chance(20))) {
        decide_as_person();
    } else if (wants.count > 0) {
        struct want want = wants.items[chance_below((uint32_t)wants.count)];

        do_want(&want);
    }
}

static void walk(uint64_t seed, const struct definition *definition)
{
    struct saga_input start = {.type = SAGA_INPUT_START};

    chance_state = seed;
    memset(&world, 0, sizeof(world));
    world.seed = seed;
    world.deaf = chance(15);
    trial_open_compiled(&world.trial, definition, (uint32_t)seed);
    start.start.namespace = SLICE("default");
    start.start.input = SLICE("{\"n\":1}");
    (void)feed(start);
    while (world.trial.saga.phase != PHASE_ENDED) {
        world.kind = world.turns > 120;
        must_hold(world.turns < 2000, "it does not end");
        step_of_walk();
    }
    check_end(world.trial.saga.end);
    trial_check_replay(&world.trial);
    for (int i = 0; i < 3; i++) { /* nothing happens after the end */
        nonsense();
    }
    late_answers();
    trial_close(&world.trial);
}

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);

    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void random_walks_keep_every_invariant(void **state)
{
    const struct definition *definitions[DEFINITIONS];
    struct arena arena = {0};
    uint64_t walks = number_of("SAGA_WALKS", 20000);
    /* A part of them is another part in each run; all of them are the same, so that they come everywhere. */
    uint64_t first = number_of("SAGA_SEED", getenv("SAGA_WALKS") ? 1 + number_of("SAGAD_TEST_SEED", 0) * 1000 : 1);

    (void)state;
    arena_init(&arena, 65536);
    chance_state = 42;
    for (size_t i = 0; i < DEFINITIONS; i++) {
        definitions[i] = definition_by_chance(&arena);
    }
    for (uint64_t seed = first; seed < first + walks; seed++) {
        walk(seed, definitions[seed % DEFINITIONS]);
    }
    arena_fini(&arena);
}

/* A walk that never comes somewhere says nothing about it. */
static void the_walks_came_everywhere(void **state)
{
    (void)state;
    if (getenv("SAGA_WALKS")) {
        skip();
    }
    for (unsigned i = 0; i < RECORD_TYPE_COUNT; i++) {
        /* From called to woken: of agents' calls, see test_saga_random_open.c. */
        if (!(i >= RECORD_STEP_CALLED && i <= RECORD_RUN_WOKEN) &&
            i != RECORD_COMPENSATION_LATE && /* nobody lies here */
            seen_records[i] < 10) {
            fail_msg("only %llu records %s", (unsigned long long)seen_records[i],
                     record_type_name((enum record_type)i));
        }
    }
    assert_true(seen_ends[SAGA_COMPLETED] > 1000 && seen_ends[SAGA_COMPENSATED] > 1000 &&
                seen_ends[SAGA_ABANDONED] > 100);
    assert_true(seen_escalations > 1000);
    assert_true(seen_conditions > 1000 && seen_undos_at_once > 100 && seen_gone_on > 100);
    for (unsigned i = 0; i < OPERATOR_ACTION_COUNT; i++) {
        if (seen_actions[i] < 10) {
            fail_msg("only %llu times %s", (unsigned long long)seen_actions[i],
                     operator_action_name((enum operator_action)i));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_walks_keep_every_invariant),
        cmocka_unit_test(the_walks_came_everywhere),
    };

    return cmocka_run_group_tests_name("saga_random", tests, NULL, NULL);
}
