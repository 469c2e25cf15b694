/*
 * Shows what a proof can see. One rule of the machine is broken at a time, and the proof names the invariant that does
 * not hold. The linker puts our functions in front of the machine's (-Wl,--wrap).
 */
#include <stdio.h>
#include <string.h>

#include "core/prove/prove.h"
#include "core/saga/machine.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

enum bug { BUG_NONE, BUG_FORGETS, BUG_INVENTS, BUG_ORDER, BUG_STUCK, BUG_AFTER_END, BUG_MEMBERS, BUG_LOCKS };

static enum bug bug;

bool __real_step_may_stand(const struct saga *saga, uint32_t step);
bool __wrap_step_may_stand(const struct saga *saga, uint32_t step);
bool __real_step_can_be_undone_blind(const struct saga *saga, uint32_t step);
bool __wrap_step_can_be_undone_blind(const struct saga *saga, uint32_t step);
bool __real_step_comes_before(const struct saga *saga, uint32_t a, uint32_t b);
bool __wrap_step_comes_before(const struct saga *saga, uint32_t a, uint32_t b);
bool __real_step_undone_before(const struct saga *saga, uint32_t a, uint32_t b);
bool __wrap_step_undone_before(const struct saga *saga, uint32_t a, uint32_t b);
bool __real_locks_are_held(const struct saga *saga);
bool __wrap_locks_are_held(const struct saga *saga);
bool __real_escalation_advance(struct machine *m);
bool __wrap_escalation_advance(struct machine *m);
void __real_saga_wants(const struct saga *saga, struct arena *turn, struct wants *out);
void __wrap_saga_wants(const struct saga *saga, struct arena *turn, struct wants *out);

bool __wrap_step_may_stand(const struct saga *saga, uint32_t step)
{
    if (bug == BUG_FORGETS && step == 0) {
        return false;
    }
    return __real_step_may_stand(saga, step);
}

bool __wrap_step_can_be_undone_blind(const struct saga *saga, uint32_t step)
{
    return bug == BUG_INVENTS || __real_step_can_be_undone_blind(saga, step);
}

bool __wrap_step_comes_before(const struct saga *saga, uint32_t a, uint32_t b)
{
    return bug != BUG_ORDER && __real_step_comes_before(saga, a, b);
}

bool __wrap_step_undone_before(const struct saga *saga, uint32_t a, uint32_t b)
{
    if (bug == BUG_MEMBERS) { /* the child is no unit: its steps and those beside it follow their own times */
        return saga->steps[a].start_order > saga->steps[b].start_order;
    }
    return __real_step_undone_before(saga, a, b);
}

bool __wrap_locks_are_held(const struct saga *saga)
{
    return bug == BUG_LOCKS || __real_locks_are_held(saga);
}

bool __wrap_escalation_advance(struct machine *m)
{
    return bug != BUG_STUCK && __real_escalation_advance(m);
}

void __wrap_saga_wants(const struct saga *saga, struct arena *turn, struct wants *out)
{
    __real_saga_wants(saga, turn, out);
    if (bug == BUG_AFTER_END && saga->phase == PHASE_ENDED) {
        out->items = arena_array(turn, 1, sizeof(*out->items));
        out->items[0] = (struct want){.type = WANT_CALL, .number = 1};
        out->count = out->capacity = 1;
    }
}

#define PLAIN TRIAL_SAGA("{'id':'a','call':'idempotent'},{'id':'b','call':'keyed'},{'id':'c','call':'once'}")
/* Two children side by side, behind locks. */
#define GROUPS                                                                                                         \
    "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'trial','locks':['k'],'steps':["                                      \
    "{'id':'a','saga':'child','after':[]},{'id':'b','saga':'child','after':[]}]},"                                     \
    "{'name':'child','steps':[{'id':'x','call':'keyed'},{'id':'y','call':'keyed'}]}]}"

/* Proves a document. `expected` must be among the reported violations; NULL means that there must be none. */
static void prove_document(const char *document, enum bug planted, const char *expected)
{
    struct arena arena = {0};
    struct prove_report report;
    const struct definition *definition;

    arena_init(&arena, 65536);
    definition = trial_compile(&arena, trial_json(&arena, document));
    bug = planted;
    prove_saga(definition, NULL, &arena, &report);
    bug = BUG_NONE;
    if (!expected) {
        assert_int_equal(report.violation_count, 0);
    } else {
        bool found = false;

        assert_true(report.violation_count > 0);
        for (uint32_t i = 0; i < report.end_count; i++) {
            found = found || slice_is(report.ends[i].violation, expected);
        }
        assert_true(found);
    }
    arena_fini(&arena);
}

static void prove_with(enum bug planted, const char *expected)
{
    prove_document(PLAIN, planted, expected);
}

TEST(the_machine_as_it_is_breaks_nothing)
{
    prove_with(BUG_NONE, NULL);
    prove_document(GROUPS, BUG_NONE, NULL);
}

TEST(a_step_that_is_not_undone_is_seen)
{
    prove_with(BUG_FORGETS, "a is left standing, and the saga ended compensated");
}

TEST(an_undo_of_what_did_not_happen_is_seen)
{
    prove_with(BUG_INVENTS, "b is undone although it did not happen");
}

TEST(a_wrong_order_is_seen)
{
    prove_with(BUG_ORDER, "a is undone before b");
}

TEST(a_saga_that_is_stuck_is_seen)
{
    prove_with(BUG_STUCK, "the saga is stuck: nothing is wanted, and nobody is asked");
}

TEST(something_after_the_end_is_seen)
{
    prove_with(BUG_AFTER_END, "something is wanted after the end");
}

TEST(a_child_that_is_not_undone_as_a_unit_is_seen)
{
    prove_document(GROUPS, BUG_MEMBERS, "a/y is undone before what began later: b/x");
}

TEST(a_step_that_begins_without_its_locks_is_seen)
{
    prove_document(GROUPS, BUG_LOCKS, "a is begun before the locks are taken");
}

TEST_PROGRAM(NULL, NULL)
