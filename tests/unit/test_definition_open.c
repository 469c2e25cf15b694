/* Open sagas grow by one step with each call. */
#include "definition_texts.h"

static void same_retry(const struct retry_policy *a, const struct retry_policy *b)
{
    assert_int_equal(a->max_attempts, b->max_attempts);
    assert_int_equal(a->max_unsent, b->max_unsent);
    assert_int_equal(a->initial_ms, b->initial_ms);
    assert_int_equal(a->max_ms, b->max_ms);
    assert_int_equal(a->factor_milli, b->factor_milli);
}

static struct arena arena;

TEST(a_call_brings_its_compensator_and_retries_like_a_step_that_was_written)
{
    struct faults faults;
    struct tool_source source = {find_registered, &arena};
    struct step_definition step;

    faults_init(&faults, &arena);
    struct definition *saga = definition_compile(json_of("{'name':'s','steps':[{'id':'x','call':'pay'}]}", &arena), 1,
                                                 &source, SLICE(""), &arena, &faults);
    const struct step_definition *written = &saga->steps[0];
    const struct tool *pay = written->tool, *refund = written->compensate.tool;

    assert_true(step_definition_of_call(pay, refund, &step));
    assert_ptr_equal(step.tool, pay);
    assert_ptr_equal(step.compensate.tool, refund);
    same_retry(&step.retry, &written->retry);
    same_retry(&step.compensate.retry, &written->compensate.retry);
    assert_int_equal(step.timeout_ms, 3000);
    assert_false(step.terminal);
    assert_int_equal(step.compensate.retry.max_attempts, 50);
    assert_int_equal(step.compensate.retry.initial_ms, 4000);
    assert_int_equal(retry_policy_of_step(&step, EFFECT_KEYED).max_attempts, 7);
    assert_int_equal(retry_policy_of_undo(&step.compensate, EFFECT_IDEMPOTENT).max_attempts, 50);

    assert_false(step_definition_of_call(pay, NULL, &step));
    assert_false(step_definition_of_call(refund, NULL, &step)); /* the tool can only undo */
    struct tool *mail = compiled("{'name':'m','builtin':{'do':'echo'},'effect':'once','terminal':true}", &arena);
    struct tool *look = compiled("{'name':'l','builtin':{'do':'echo'},'effect':'read'}", &arena);

    assert_true(step_definition_of_call(mail, NULL, &step) && step.terminal);
    assert_true(step_definition_of_call(look, NULL, &step) && !step.terminal && !step.compensate.is_set);
    assert_false(step_definition_of_call(pay, mail, &step)); /* an undo may never be a `once` */
    assert_false(step_definition_of_call(pay, look, &step));
}

TEST(an_open_definition_grows_and_a_copy_for_trying_disturbs_nobody)
{
    struct arena trial;
    struct tool_shelf shelf = {0};
    char name[16];

    arena_init(&trial, 1 << 14);
    struct tool *look = compiled("{'name':'l','builtin':{'do':'echo'},'effect':'read'}", &arena);
    struct definition *first = definition_open(SAGA_OPEN, &shelf, &arena);
    const struct definition *definition = first;

    assert_ptr_equal(first->shelf, &shelf);
    assert_int_equal(first->budget.calls, -1);
    for (uint32_t i = 0; i < 300; i++) {
        struct step_definition step, other;

        assert_true(step_definition_of_call(look, NULL, &step));
        other = step;
        (void)snprintf(name, sizeof(name), "s%u", (unsigned)i);
        step.id = step.name = arena_slice(&arena, slice_of(name));
        other.id = SLICE("other");

        const struct definition *tried = definition_with_step(definition, &other, &trial);
        const struct definition *before = definition;

        if (i % 7 == 0) { /* also in the arena of the saga itself */
            (void)definition_with_step(definition, &other, &arena);
        }
        definition = definition_with_step(definition, &step, &arena);
        const struct definition *again = definition_with_step(before, &other, &arena);

        assert_int_equal(before->step_count, i);
        assert_int_equal(definition->step_count, i + 1);
        assert_int_equal(definition->steps[i].index, i);
        assert_true(slice_is(definition->steps[i].id, name));
        assert_true(slice_is(tried->steps[i].id, "other"));
        assert_true(slice_is(again->steps[i].id, "other"));
        if (i > 0) {
            assert_false(graph_before(definition, 0, i) || graph_before(definition, i, 0));
        }
    }
    for (uint32_t i = 0; i < 300; i++) {
        (void)snprintf(name, sizeof(name), "s%u", (unsigned)i);
        assert_true(slice_is(definition->steps[i].id, name));
    }
    assert_int_equal(first->step_count, 0);
    arena_fini(&trial);
}

TEST_PROGRAM_ARENA(arena)
