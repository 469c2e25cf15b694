/*
 * Random agents against the machine: whatever they call, in whatever order things settle, no operation is begun twice,
 * nothing follows what cannot be undone, no budget is overdrawn, and the log folds to the same state again. A failure
 * prints its seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/call_trial.h"

#define WALKS 300
#define TURNS 160

#define READS "'builtin':{'do':'echo'},'effect':'read'"
#define UNDONE ",'compensate':{'tool':'undo','with':{'id':'${ .result.id }'}}"
#define KEYED_NOW "'builtin':{'do':'echo'},'effect':'keyed','key':{'window':'60s'}" UNDONE

struct walk {
    struct call_trial t;
    uint64_t random, seed;
    unsigned seen[RECORD_TYPE_COUNT];
    struct wish last;
};

static uint32_t pick(struct walk *w, uint32_t count)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (uint32_t)(w->random >> 33) % count;
}

#define PICK(w, ...) ((const char *const[]){__VA_ARGS__})[pick(w, COUNT_OF(((const char *const[]){__VA_ARGS__})))]

static void broken(const struct walk *w, const char *rule)
{
    fail_msg("seed %llu: %s", (unsigned long long)w->seed, rule);
}

static const char *random_step(struct walk *w)
{
    const struct definition *definition = w->t.saga.definition;

    return definition->step_count ? arena_text(&w->t.turn, definition->steps[pick(w, definition->step_count)].id)
                                  : NULL;
}

/* --- rules --- */

static bool same_identity(const struct saga *saga, uint32_t a, uint32_t b)
{
    const struct step_definition *x = &saga->definition->steps[a], *y = &saga->definition->steps[b];

    return slice_equal(x->name, y->name) && slice_equal(x->tool->name, y->tool->name) &&
           slice_equal(saga->steps[a].forward.scope, saga->steps[b].forward.scope);
}

static void check_called(const struct walk *w, const struct record *record, bool emission_known, bool sealed,
                         bool unsettled, enum saga_phase phase)
{
    const struct saga *saga = &w->t.saga;
    const struct tool *tool = saga->definition->steps[record->step].tool;
    bool read = record->effect == EFFECT_READ;

    for (uint32_t i = 0; i < record->step; i++) {
        if (uuid_equal(&saga->steps[i].forward.key.uuid, &record->key.uuid)) {
            broken(w, "two operations have one key");
        }
        if (same_identity(saga, i, record->step) && saga->steps[i].forward.effect != EFFECT_READ && !read &&
            tool->on_duplicate != DUPLICATE_ALLOW && !slice_is(record->decision, "bypass") &&
            !slice_is(record->decision, "again")) {
            broken(w, "an operation was begun a second time");
        }
    }
    if (emission_known) {
        broken(w, "a repeat of a request has begun something");
    }
    if (saga->definition->kind == SAGA_OPEN && !read && (sealed || (tool->terminal && unsettled))) {
        broken(w, "something follows what cannot be undone, or that came too early");
    }
    if (saga->definition->kind == SAGA_OPEN && phase != PHASE_FORWARD) {
        broken(w, "something was begun in a saga that is over");
    }
}

static void call(struct walk *w)
{
    struct call_trial *t = &w->t;
    struct wish wish = {
        .tool = PICK(w, "look", "coalesce", "strict", "refuse", "escalate", "allow", "again", "mail", "once", "checked",
                     "idempotent", "paid", "limited", "fetch", "announce"),
        .step = PICK(w, NULL, "a", "b", "c"),
        .args = PICK(w, "{'amount':1}", "{'amount':1,'memo':'x'}", "{'amount':2}", "{'send':true}"),
        .scope = PICK(w, NULL, NULL, "s"),
        .emission = PICK(w, NULL, NULL, "e1", "e2", "e3", "e4", "e5", "e6"),
        .turn = PICK(w, NULL, NULL, NULL, "1", "2", "3", "4"),
        .unfit = pick(w, 12) ? ERR_OK : ERR_INVALID,
    };
    if (w->last.tool && pick(w, 3) == 0) { /* agents like to say things again */
        wish = w->last;
        wish.emission = pick(w, 3) ? NULL : wish.emission;
    }
    w->last = wish;

    bool known = wish.emission && emissions_find(t->saga.emissions, slice_of(wish.emission));
    bool sealed = saga_sealed_by(&t->saga) != STEP_NONE, unsettled = saga_is_unsettled(&t->saga);
    enum saga_phase phase = t->saga.phase;

    call_trial_call(t, wish);
    for (size_t i = 0; i < t->records.count; i++) {
        const struct record *record = &t->records.items[i];

        if (record->type == RECORD_STEP_CALLED && wish.unfit != ERR_OK) {
            broken(w, "what does not fit has begun something");
        }
        if (record->type == RECORD_STEP_CALLED) {
            check_called(w, record, known, sealed, unsettled, phase);
        }
        if (record->type == RECORD_STEP_REPEATED && sealed &&
            t->saga.steps[record->step].forward.effect != EFFECT_READ && t->saga.definition->kind == SAGA_OPEN) {
            broken(w, "something was tried again after what cannot be undone");
        }
    }
}

/* --- what happens besides --- */

static void settle(struct walk *w)
{
    static const enum outcome_kind kinds[] = {OUTCOME_COMPLETED, OUTCOME_COMPLETED, OUTCOME_COMPLETED, OUTCOME_FAILED,
                                              OUTCOME_RETRY,     OUTCOME_UNKNOWN,   OUTCOME_RUNNING};
    static const enum outcome_kind probed[] = {OUTCOME_COMPLETED, OUTCOME_ABSENT, OUTCOME_UNKNOWN, OUTCOME_UNKNOWN};
    const char *step = random_step(w);
    const struct step *s = step ? call_trial_step(&w->t, step) : NULL;

    if (!s) {
        return;
    }
    switch (s->forward.state) {
    case OP_PENDING:
    case OP_RETRYING:
        if (w->t.saga.definition->steps[s - w->t.saga.steps].tool->guarded) {
            w->t.now_ms = s->forward.due_ms > w->t.now_ms ? s->forward.due_ms : w->t.now_ms;
            call_trial_admit(&w->t, step, pick(w, 2) ? ADMISSION_GRANTED : ADMISSION_REFUSED);
        } else {
            call_trial_timer(&w->t, step);
        }
        return;
    case OP_IN_FLIGHT:
        call_trial_settle(&w->t, step, kinds[pick(w, COUNT_OF(kinds))], PICK(w, NULL, "{'other':1}"));
        return;
    case OP_PROBING:
        call_trial_probe(&w->t, step, probed[pick(w, COUNT_OF(probed))]);
        return;
    case OP_NONE:
    case OP_OPEN:
    case OP_WAITING:
    case OP_UNKNOWN:
    case OP_COMPLETED:
    case OP_FAILED:
    case OP_SKIPPED:
    case OP_STATE_COUNT:
        break;
    }
    if (step_undo(s)->state == OP_IN_FLIGHT) {
        call_trial_settle_undo(&w->t, step);
    }
}

/* Whoever owns a tool makes of it what they like. */
static void register_anew(struct walk *w)
{
    if (w->t.tool_count < CALL_TRIAL_TOOLS_MAX) {
        call_trial_register(
            &w->t, PICK(w, "{'name':'coalesce'," READS "}", "{'name':'coalesce'," KEYED_NOW ",'volatile':['/memo']}",
                        "{'name':'look'," KEYED_NOW "}", "{'name':'look'," READS "}", "{'name':'once'," READS "}",
                        "{'name':'strict'," KEYED_NOW ",'on_duplicate':'escalate'}", "{'name':'fetch'," READS "}",
                        "{'name':'fetch','builtin':{'do':'echo'},'effect':{'if':'${ .args.send "
                        "}','then':'read','else':'keyed'},"
                        "'key':{'window':'60s'}" UNDONE "}"));
    }
}

static void something_else(struct walk *w)
{
    struct call_trial *t = &w->t;
    const char *step = random_step(w);

    switch (pick(w, 11)) {
    case 10:
        register_anew(w);
        return;
    case 0:
        t->now_ms += pick(w, 3) ? 61000 : 25 * 3600 * 1000;
        return;
    case 1:
    case 2:
        t->now_ms += 61000;
        call_trial_due(t, SAGA_TIMER_REST);
        return;
    case 3:
    case 4:
        if (step) {
            (void)call_trial_bypass(t, step); /* refused or not: the rules are checked afterwards */
        }
        return;
    case 5:
        (void)call_trial_resume(t);
        return;
    case 6:
        (void)call_trial_operator(t, pick(w, 2) ? OPERATOR_RESOLVE : OPERATOR_RETRY);
        return;
    case 7:
        if (pick(w, 4) == 0) {
            (void)call_trial_complete(t);
        }
        return;
    case 8:
        if (pick(w, 8) == 0) {
            (void)call_trial_abort(t);
        }
        return;
    default:
        call_trial_due(t, SAGA_TIMER_DEADLINE);
        return;
    }
}

static void check_state(struct walk *w)
{
    const struct saga *saga = &w->t.saga;

    for (size_t i = 0; i < w->t.records.count; i++) {
        w->seen[w->t.records.items[i].type]++;
    }
    if (saga->budget.calls >= 0 && saga->used.calls > saga->budget.calls) {
        broken(w, "the budget of calls is overdrawn");
    }
    if (saga->budget.micros >= 0 && saga->used.micros > saga->budget.micros) {
        broken(w, "the budget of money is overdrawn");
    }
    if (saga->used.micros < 0) {
        broken(w, "more was given back than was taken");
    }
    if (saga->end == SAGA_COMPENSATED && saga->phase == PHASE_ENDED) {
        for (uint32_t i = 0; i < saga->definition->step_count; i++) {
            enum took_effect took_effect = saga->steps[i].forward.took_effect;

            if (saga->steps[i].forward.effect != EFFECT_READ &&
                (took_effect == TOOK_EFFECT_YES || took_effect == TOOK_EFFECT_MAYBE)) {
                broken(w, "compensated, but something stands");
            }
        }
    }
}

static void no_agent_can_make_anything_happen_twice(void **state)
{
    static struct walk w;
    static const enum record_type wanted[] = {
        RECORD_STEP_CALLED,      RECORD_STEP_REPEATED, RECORD_OPERATION_DUPLICATE, RECORD_OPERATION_EXPIRED,
        RECORD_BYPASS_SIGNED,    RECORD_LOOP_TRIPPED,  RECORD_SAGA_PAUSED,         RECORD_SAGA_RESUMED,
        RECORD_RUN_RESTED,       RECORD_RUN_WOKEN,     RECORD_SAGA_COMPLETED,      RECORD_SAGA_COMPENSATED,
        RECORD_ESCALATION_OPENED};
    const char *first = getenv("SEED"), *walks = getenv("SAGA_WALKS");
    unsigned seen[RECORD_TYPE_COUNT] = {0};

    (void)state;
    for (uint64_t seed = first ? strtoull(first, NULL, 10) : 1, end = seed + (walks   ? strtoull(walks, NULL, 10)
                                                                              : first ? 1
                                                                                      : WALKS);
         seed < end; seed++) {
        memset(&w, 0, sizeof(w));
        w.seed = seed;
        w.random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
        switch (seed % 3) {
        case 0:
            call_trial_run(&w.t);
            break;
        case 1:
            call_trial_open(&w.t, "{'calls':30,'micros':450}", NULL, pick(&w, 2) ? "abort" : "escalate");
            break;
        default:
            call_trial_open(&w.t, NULL, "{'repeats':2,'max_cycle':3}", NULL);
            break;
        }
        for (int turn = 0; turn < TURNS; turn++) {
            uint32_t what = pick(&w, 10);

            if (what < (turn % 40 < 20 ? 6 : 2)) { /* busy times and quiet ones */
                call(&w);
            } else if (what < 9) {
                settle(&w);
            } else {
                something_else(&w);
            }
            check_state(&w);
        }
        for (unsigned i = 0; i < RECORD_TYPE_COUNT; i++) {
            seen[i] += w.seen[i];
        }
        call_trial_close(&w.t);
    }
    for (size_t i = 0; i < COUNT_OF(wanted) && !first && !walks; i++) {
        if (!seen[wanted[i]]) {
            fail_msg("no walk came to %s", record_type_name(wanted[i]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_agent_can_make_anything_happen_twice)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
