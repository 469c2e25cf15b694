/* The proof of small sagas, row by row: what can go wrong, how it ends, and in which order steps are undone. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/prove/prove.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

struct proof {
    struct arena arena;
    const struct definition *definition;
    struct prove_report report;
};

static void prove_text(struct proof *proof, const char *document)
{
    *proof = (struct proof){0};
    arena_init(&proof->arena, 65536);
    proof->definition = trial_compile(&proof->arena, trial_json(&proof->arena, document));
    prove_saga(proof->definition, NULL, &proof->arena, &proof->report);
}

static void proof_end(struct proof *proof)
{
    arena_fini(&proof->arena);
}

static void put_steps(struct buffer *out, const struct definition *definition, const uint32_t *steps, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        buffer_printf(out, "%s%.*s", i ? "," : "", SLICE_ARG(definition->steps[steps[i]].id));
    }
}

/* Writes "pay keyed unknown again: completed", "... undone a,b", "... standing a", "... waits a: unknown" or "...
 * VIOLATED ...". */
static void put_end(struct buffer *out, const struct definition *definition, const struct prove_end *end)
{
    const struct prove_point *point = &end->point;

    if (point->step != STEP_NONE) {
        const struct step_definition *step = &definition->steps[point->step];
        bool is_call = step->kind == STEP_CALL && !step_is_group(step);

        buffer_printf(out, "%s%.*s %s", point->direction == DIRECTION_UNDO ? "undo of " : "", SLICE_ARG(step->id),
                      is_call ? effect_name(point->effect) : "");
        buffer_put_text(out, is_call ? " " : "");
    }
    buffer_put_text(out, prove_trouble_name(point->trouble));
    if (point->answer != ANSWER_NONE) {
        buffer_printf(out, " %s", prove_answer_name(point->answer));
    }
    if (end->place.ptr) {
        buffer_printf(out, " %.*s", SLICE_ARG(end->place));
    }
    buffer_printf(out, ": %s", saga_status_name(end->status));
    if (end->undone_count) {
        buffer_put_text(out, " undone ");
        put_steps(out, definition, end->undone, end->undone_count);
    }
    if (end->standing_count) {
        buffer_put_text(out, " standing ");
        put_steps(out, definition, end->standing, end->standing_count);
    }
    if (end->waits_for.ptr) {
        buffer_printf(out, " waits %.*s", SLICE_ARG(end->waits_for));
    }
    if (end->violation.ptr) {
        buffer_printf(out, " VIOLATED %.*s", SLICE_ARG(end->violation));
    }
    buffer_put_char(out, '\n');
}

static void check_table(const char *document, const char *expected)
{
    struct proof proof;
    struct buffer out;

    prove_text(&proof, document);
    buffer_init(&out, (size_t)1 << 20);
    for (uint32_t i = 0; i < proof.report.end_count; i++) {
        put_end(&out, proof.report.definition, &proof.report.ends[i]);
    }
    assert_int_equal(proof.report.violation_count, 0);
    assert_false(proof.report.bounded);
    if (strcmp(buffer_c(&out), expected) != 0) {
        fail_msg("the table is\n%s", buffer_c(&out));
    }
    buffer_fini(&out);
    proof_end(&proof);
}

TEST(what_can_be_undone_and_a_terminal_step)
{
    check_table(TRIAL_SAGA("{'id':'pay','call':'keyed'},{'id':'post','call':'mail'}"),
                "none: completed\n"
                "pay keyed never_sent: compensated\n"
                "pay keyed refused_once: completed\n"
                "pay keyed fails: compensated\n"
                "pay keyed unknown again: completed\n"
                "pay keyed unknown nobody: escalated standing pay waits pay: unknown\n"
                "pay keyed unknown late: completed\n"
                "pay keyed unknown person_happened: completed\n"
                "pay keyed unknown person_not_happened: compensated\n"
                "pay keyed unknown person_waive: abandoned standing pay\n"
                "pay keyed undo_arguments nobody: escalated standing pay waits pay: compensation-arguments\n"
                "pay keyed undo_arguments person_retry: compensated undone pay\n"
                "pay keyed undo_arguments person_waive: abandoned standing pay\n"
                "undo of pay idempotent refused_once: compensated undone pay\n"
                "undo of pay idempotent fails nobody: escalated standing pay waits pay: compensation-failed\n"
                "undo of pay idempotent fails person_retry: compensated undone pay\n"
                "undo of pay idempotent fails person_waive: abandoned standing pay\n"
                "undo of pay idempotent unknown again: compensated undone pay\n"
                "undo of pay idempotent unknown nobody: escalated standing pay waits pay: compensation-failed\n"
                "undo of pay idempotent unknown person_happened: compensated undone pay\n"
                "undo of pay idempotent unknown person_not_happened: compensated undone pay\n"
                "undo of pay idempotent unknown person_waive: abandoned standing pay\n"
                "undo of pay idempotent unknown person_retry: compensated undone pay\n"
                "post once never_sent: compensated undone pay\n"
                "post once refused_once: compensated undone pay\n"
                "post once fails: compensated undone pay\n"
                "post once unknown nobody: escalated standing pay,post waits post: unknown\n"
                "post once unknown late: completed\n"
                "post once unknown person_happened: completed\n"
                "post once unknown person_not_happened: compensated undone pay\n"
                "post once unknown person_waive: abandoned undone pay standing post\n"
                "abort after step.intent pay: compensated undone pay\n"
                "abort after step.pending post: compensated undone pay\n"
                "abort after step.intent post: completed\n");
}

TEST(branches_with_a_probe_and_a_blind_undo)
{
    check_table(TRIAL_SAGA_WITH("'deadline':'15m'",
                                "{'id':'a','call':'checked','after':[]},{'id':'b','call':'voidable','after':[]}"),
                "none: completed\n"
                "a checked never_sent: compensated undone b\n"
                "a checked refused_once: completed\n"
                "a checked fails: compensated undone b\n"
                "a checked unknown probe_done: completed\n"
                "a checked unknown probe_absent: completed\n"
                "a checked unknown nobody: escalated undone b standing a waits a: unknown\n"
                "a checked unknown late: compensated undone b,a\n"
                "a checked unknown person_happened: compensated undone b,a\n"
                "a checked unknown person_not_happened: compensated undone b\n"
                "a checked unknown person_waive: abandoned undone b standing a\n"
                "a checked undo_arguments nobody: escalated undone b standing a waits a: compensation-arguments\n"
                "a checked undo_arguments person_retry: compensated undone b,a\n"
                "a checked undo_arguments person_waive: abandoned undone b standing a\n"
                "undo of a idempotent refused_once: compensated undone b,a\n"
                "undo of a idempotent fails nobody: escalated undone b standing a waits a: compensation-failed\n"
                "undo of a idempotent fails person_retry: compensated undone b,a\n"
                "undo of a idempotent fails person_waive: abandoned undone b standing a\n"
                "undo of a idempotent unknown again: compensated undone b,a\n"
                "undo of a idempotent unknown nobody: escalated undone b standing a waits a: compensation-failed\n"
                "undo of a idempotent unknown person_happened: compensated undone b,a\n"
                "undo of a idempotent unknown person_not_happened: compensated undone b,a\n"
                "undo of a idempotent unknown person_waive: abandoned undone b standing a\n"
                "undo of a idempotent unknown person_retry: compensated undone b,a\n"
                "b once never_sent: compensated undone a\n"
                "b once refused_once: compensated undone a\n"
                "b once fails: compensated undone a\n"
                "b once unknown nobody: compensated undone b,a\n"
                "b once unknown late: compensated undone b,a\n"
                "undo of b idempotent refused_once: compensated undone b,a\n"
                "undo of b idempotent fails nobody: escalated undone a standing b waits b: compensation-failed\n"
                "undo of b idempotent fails person_retry: compensated undone a,b\n"
                "undo of b idempotent fails person_waive: abandoned undone a standing b\n"
                "undo of b idempotent unknown again: compensated undone b,a\n"
                "undo of b idempotent unknown nobody: escalated undone a standing b waits b: compensation-failed\n"
                "undo of b idempotent unknown person_happened: compensated undone b,a\n"
                "undo of b idempotent unknown person_not_happened: compensated undone a,b\n"
                "undo of b idempotent unknown person_waive: abandoned undone a standing b\n"
                "undo of b idempotent unknown person_retry: compensated undone a,b\n"
                "abort after step.pending b: compensated\n"
                "abort after step.intent a: compensated undone a\n"
                "abort after step.intent b: compensated undone b,a\n"
                "abort after step.completed a: compensated undone b,a\n"
                "deadline after step.pending b: compensated\n"
                "deadline after step.intent a: compensated undone a\n"
                "deadline after step.intent b: compensated undone b,a\n"
                "deadline after step.completed a: compensated undone b,a\n");
}

TEST(conditions_and_what_a_failure_means)
{
    check_table(
        TRIAL_SAGA("{'id':'a','call':'by_keyed','when':'${ .input.big | not }','on_failure':'escalate'},"
                   "{'id':'b','call':'read','on_failure':'continue','with':{'n':'${ .steps.a.result.n // 1 }'}}"),
        "none: completed\n"
        "a idempotent skipped: completed\n"
        "a idempotent arguments: escalated waits a: step-failed\n"
        "a idempotent never_sent: escalated waits a: step-failed\n"
        "a idempotent refused_once: completed\n"
        "a idempotent fails nobody: escalated waits a: step-failed\n"
        "a idempotent fails person_retry: completed\n"
        "a idempotent fails person_skip: completed\n"
        "a idempotent fails person_compensate: compensated\n"
        "a idempotent unknown again: completed\n"
        "a idempotent unknown nobody: escalated standing a waits a: unknown\n"
        "a idempotent unknown late: completed\n"
        "a idempotent unknown person_happened: completed\n"
        "a idempotent unknown person_not_happened: escalated waits a: step-failed\n"
        "a idempotent unknown person_waive: abandoned standing a\n"
        "a idempotent undo_arguments nobody: escalated standing a waits a: compensation-arguments\n"
        "a idempotent undo_arguments person_retry: compensated undone a\n"
        "a idempotent undo_arguments person_waive: abandoned standing a\n"
        "undo of a keyed refused_once: compensated undone a\n"
        "undo of a keyed fails nobody: escalated standing a waits a: compensation-failed\n"
        "undo of a keyed fails person_retry: compensated undone a\n"
        "undo of a keyed fails person_waive: abandoned standing a\n"
        "undo of a keyed unknown again: compensated undone a\n"
        "undo of a keyed unknown nobody: escalated standing a waits a: compensation-failed\n"
        "undo of a keyed unknown person_happened: compensated undone a\n"
        "undo of a keyed unknown person_not_happened: compensated undone a\n"
        "undo of a keyed unknown person_waive: abandoned standing a\n"
        "undo of a keyed unknown person_retry: escalated standing a waits a: compensation-failed\n"
        "b read arguments: completed\n"
        "b read never_sent: completed\n"
        "b read refused_once: completed\n"
        "b read fails: completed\n"
        "b read unknown again: completed\n"
        "b read unknown nobody: completed\n"
        "abort after saga.started: compensated\n"
        "abort after step.intent a: compensated undone a\n"
        "abort after step.completed a: compensated undone a\n"
        "abort after step.intent b: compensated undone a\n");
}

TEST(steps_that_are_never_reached_are_named)
{
    struct proof proof;

    prove_text(&proof,
               TRIAL_SAGA_WITH("'budget':{'calls':1}",
                               "{'id':'a','call':'keyed'},{'id':'b','call':'keyed'},{'id':'c','call':'keyed'}"));
    assert_int_equal(proof.report.ends[0].status, SAGA_COMPENSATED); /* although nothing went wrong */
    assert_int_equal(proof.report.unreached_count, 2);
    assert_int_equal(proof.report.unreached[0], 1);
    assert_int_equal(proof.report.unreached[1], 2);
    assert_int_equal(proof.report.violation_count, 0);
    proof_end(&proof);
}

static void put_branches(struct buffer *out, unsigned branches, unsigned steps, const char *tool)
{
    buffer_put_text(out, "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'trial','deadline':'15m','steps':[");
    for (unsigned b = 0; b < branches; b++) {
        for (unsigned i = 0; i < steps; i++) {
            buffer_printf(out, "%s{'id':'s%u_%u','call':'%s'%s}", b || i ? "," : "", b, i, tool,
                          i ? "" : ",'after':[]");
        }
    }
    buffer_put_text(out, "]}]}");
}

/* Two branches of ten steps have 184,756 orders, but few states. */
TEST(twenty_steps_in_two_branches_take_less_than_a_second)
{
    struct buffer text;
    struct proof proof;
    struct timespec from, to;
    double seconds;

    buffer_init(&text, 65536);
    put_branches(&text, 2, 10, "checked");
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    prove_text(&proof, buffer_c(&text));
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    assert_int_equal(proof.report.violation_count, 0);
    assert_false(proof.report.bounded);
    assert_true(proof.report.states >=
                21 * 21 - 1); /* at each of its steps a branch is pending or in flight, or it is done */
    assert_true(proof.report.plays > 5000);
    assert_true(seconds < 20.0); /* takes 0.2 s, and more with a sanitizer on a busy machine */
    proof_end(&proof);
    buffer_fini(&text);
}

static void count_progress(void *context, uint32_t plays, uint32_t states)
{
    (void)states;
    assert_true(plays % 1000 == 0);
    ++*(unsigned *)context;
}

TEST(a_saga_that_is_too_wide_is_walked_as_far_as_asked_and_says_so)
{
    unsigned told = 0;
    struct prove_options options = {.states_max = 50, .on_progress = count_progress, .context = &told};
    struct buffer text;
    struct proof proof = {0};

    buffer_init(&text, 65536);
    put_branches(&text, 8, 1, "keyed");
    arena_init(&proof.arena, 65536);
    proof.definition = trial_compile(&proof.arena, trial_json(&proof.arena, buffer_c(&text)));
    prove_saga(proof.definition, &options, &proof.arena, &proof.report);
    assert_true(proof.report.bounded);
    assert_int_equal(proof.report.states, 50);
    assert_int_equal(proof.report.violation_count, 0);
    assert_int_equal(told, proof.report.plays / 1000);
    assert_true(told > 0);
    proof_end(&proof);
    buffer_fini(&text);
}

TEST(a_proof_with_a_bound_looks_at_that_many_steps_and_says_what_it_left_out)
{
    struct prove_options options = {.steps_max = 2000};
    struct proof proof = {0};
    struct buffer text;

    buffer_init(&text, 65536);
    put_branches(&text, 8, 1, "keyed");
    arena_init(&proof.arena, 65536);
    proof.definition = trial_compile(&proof.arena, trial_json(&proof.arena, buffer_c(&text)));
    prove_saga(proof.definition, &options, &proof.arena, &proof.report);
    assert_true(proof.report.cut && proof.report.bounded);
    uint32_t played = proof.report.plays, ends = proof.report.end_count;

    options.steps_max = 0;
    options.states_max = 50;
    prove_saga(proof.definition, &options, &proof.arena, &proof.report);
    assert_false(proof.report.cut);
    assert_true(played < proof.report.plays && ends < proof.report.end_count);
    proof_end(&proof);
    buffer_fini(&text);
}

/* --- groups and waits --- */

#define CHILD_SAGAS(child_members, child_steps, members, steps)                                                        \
    "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'trial'," members "'steps':[" steps                                   \
    "]},{'name':'child'," child_members "'steps':[" child_steps "]}]}"

/* Checks that each line of `rows` is in the table, in this order. */
static void check_rows(const char *document, const char *rows)
{
    struct proof proof;
    struct buffer out;
    const char *at;

    prove_text(&proof, document);
    buffer_init(&out, (size_t)1 << 20);
    for (uint32_t i = 0; i < proof.report.end_count; i++) {
        put_end(&out, proof.report.definition, &proof.report.ends[i]);
    }
    assert_int_equal(proof.report.violation_count, 0);
    assert_false(proof.report.bounded);
    at = buffer_c(&out);
    for (const char *row = rows; *row; row = strchr(row, '\n') + 1) {
        char line[256];

        (void)snprintf(line, sizeof(line), "%.*s", (int)(strchr(row, '\n') + 1 - row), row);
        at = strstr(at, line);
        if (!at) {
            (void)printf("the table is\n%s", buffer_c(&out));
            fail_msg("it has no row: %s", line);
        }
    }
    buffer_fini(&out);
    proof_end(&proof);
}

TEST(elements_are_undone_from_the_last_to_the_first)
{
    check_rows(TRIAL_SAGA("{'id':'a','call':'voidable','for_each':'${ .input.list }','with':{'n':'${ .item }'}},"
                          "{'id':'b','call':'read'}"),
               "none: completed\n"
               "a arguments: compensated\n"
               "a#0 once arguments: compensated\n"
               "a#0 once fails: compensated\n"
               "a#0 once unknown nobody: compensated undone a#0\n"
               "undo of a#0 idempotent fails nobody: escalated undone a#1 standing a#0 waits a#0: compensation-failed\n"
               "a#1 once arguments: compensated undone a#0\n"
               "undo of a#1 idempotent fails nobody: escalated standing a#0,a#1 waits a#1: compensation-failed\n"
               "b read fails: compensated undone a#1,a#0\n"
               "abort after step.opened a: compensated\n"
               "abort after step.intent a#1: compensated undone a#1,a#0\n");
}

TEST(a_child_is_undone_as_a_unit)
{
    check_rows(CHILD_SAGAS("'deadline':'5m',", "{'id':'x','call':'voidable'},{'id':'y','call':'voidable'}", "",
                           "{'id':'a','call':'voidable'},{'id':'b','saga':'child','on_failure':'continue'},"
                           "{'id':'c','call':'voidable'}"),
               "none: completed\n"
               "undo of a idempotent refused_once: compensated undone c,b/y,b/x,a\n"
               "b deadline after step.intent b/x: completed undone b/x\n"
               "b deadline after step.intent b/y: completed undone b/y,b/x\n"
               "b/x once fails: completed\n"
               "b/x once undo_arguments nobody: escalated standing a,b/x waits b/x: compensation-arguments\n"
               "b/y once fails: completed undone b/x\n"
               "b/y once unknown nobody: completed undone b/y,b/x\n"
               "c once fails: compensated undone b/y,b/x,a\n"
               "undo of c idempotent fails nobody: escalated standing a,b/x,b/y,c waits c: compensation-failed\n"
               "abort after step.intent b/y: compensated undone b/y,b/x,a\n"
               "abort after step.intent c: compensated undone c,b/y,b/x,a\n");
}

TEST(children_for_each_element_are_undone_one_after_the_other)
{
    check_rows(
        CHILD_SAGAS("", "{'id':'x','call':'voidable'},{'id':'y','call':'voidable'}", "",
                    "{'id':'b','saga':'child','for_each':'${ .input.list }','concurrency':2},{'id':'c','call':'read'}"),
        "none: completed\n"
        "b#0/x once undo_arguments person_retry: compensated undone b#1/x,b#0/x\n"
        "b#1/y once fails: compensated undone b#1/x,b#0/y,b#0/x\n"
        "c read fails: compensated undone b#1/y,b#1/x,b#0/y,b#0/x\n");
}

TEST(waits_and_locks)
{
    check_rows(TRIAL_SAGA_WITH("'locks':['order:${ .input.id }',{'key':'x','when_taken':'fail'}]",
                               "{'id':'a','call':'voidable'},{'id':'b','sleep':'30m'},"
                               "{'id':'c','signal':{'name':'paid','timeout':'1h'}},"
                               "{'id':'d','approve':{'show':'${ .input }','timeout':'1h'},'on_failure':'escalate'}"),
               "none: completed\n"
               "locked: compensated\n"
               "a once unknown nobody: compensated undone a\n"
               "c timeout: compensated undone a\n"
               "d arguments: escalated standing a waits d: step-failed\n"
               "d refused nobody: escalated standing a waits d: step-failed\n"
               "d refused person_skip: completed\n"
               "d refused person_compensate: compensated undone a\n"
               "d timeout nobody: escalated standing a waits d: step-failed\n"
               "d timeout person_skip: completed\n"
               "d timeout person_compensate: compensated undone a\n"
               "abort after lock.wanted: compensated\n"
               "abort after step.waiting b: compensated undone a\n"
               "abort after step.waiting d: compensated undone a\n");
}

/* A class that depends on the arguments is proven under both classes. */
TEST(both_classes_of_a_conditional_tool_are_played)
{
    unsigned seen[EFFECT_COUNT] = {0};
    struct proof proof;

    prove_text(&proof,
               "{'tools':[{'name':'undo','builtin':{'do':'echo'},'effect':'idempotent'},"
               "{'name':'t','builtin':{'do':'echo'},'effect':{'if':'${ .args.n }','then':'once','else':'idempotent'},"
               "'compensate':{'tool':'undo'}}],'sagas':[{'name':'trial','steps':[{'id':'a','call':'t'}]}]}");
    for (uint32_t i = 1; i < proof.report.end_count; i++) {
        const struct prove_end *end = &proof.report.ends[i];

        if (end->point.step == 0 && end->point.direction == DIRECTION_DO) {
            seen[end->point.effect]++;
            assert_false(end->point.effect == EFFECT_ONCE && end->point.answer == ANSWER_AGAIN);
        }
    }
    assert_true(seen[EFFECT_ONCE] > 5 && seen[EFFECT_IDEMPOTENT] > 5);
    assert_int_equal(proof.report.violation_count, 0);
    proof_end(&proof);
}

/* Further parts of the language, each alone and beside another one. Whatever goes wrong, no invariant is broken. */
#define MORE_TOOLS                                                                                                     \
    TRIAL_TOOLS ",{'name':'asked','builtin':{'do':'echo'},'effect':'once','compensate':{'tool':'undo'},'precheck':{'"  \
                "builtin':{'do':'echo'},"                                                                              \
                "'done':'${ .response.done }','blocked':'${ .response.no }'}},"                                        \
                "{'name':'either','builtin':{'do':'echo'},'effect':{'if':'${ .args.n > 1 "                             \
                "}','then':'once','else':'keyed'},'key':{'window':'60s'},"                                             \
                "'compensate':{'tool':'undo_either','with':{'id':'${ .result.id }'},'give_up_after':'10m'}},"          \
                "{'name':'undo_either','builtin':{'do':'echo'},'effect':{'if':'${ .args.n > 1 "                        \
                "}','then':'keyed','else':'idempotent'},'key':{'window':'60s'}},"                                      \
                "{'name':'looks','builtin':{'do':'echo'},'effect':'read','probe':{'builtin':{'do':'echo'},'outcome':{" \
                "'completed':'${ .response.ok }','absent':'${ .response.no }'}}}"
#define MORE(members, steps)                                                                                           \
    "{'tools':[" MORE_TOOLS "],'sagas':[{'name':'trial'" members ",'steps':[" steps "]},"                              \
    "{'name':'child','deadline':'10m','output':{'x':'${ .steps.x.result.id "                                           \
    "}'},'steps':[{'id':'x','call':'keyed','on_failure':'escalate'},{'id':'y','call':'once'}]},"                       \
    "{'name':'outer','steps':[{'id':'p','saga':'child','after':[]},{'id':'q','saga':'child','after':[],'on_failure':'" \
    "continue'}]},"                                                                                                    \
    "{'name':'sealing','steps':[{'id':'x','call':'keyed'},{'id':'m','call':'mail'}]}]}"

static const char *const kinds[] = {
    MORE("", "{'id':'a','call':'asked'},{'id':'b','call':'asked','on_failure':'escalate'},{'id':'c','call':'limited'},{"
             "'id':'d','call':'looks'}"),
    MORE("", "{'id':'a','call':'either','with':{'n':'${ .input.n "
             "}'}},{'id':'b','call':'either','after':[],'on_failure':'continue','with':{'n':'${ .input.n + 1 }'}}"),
    MORE(",'deadline':'1h','output':{'a':'${ .input | length }'},'then':[{'saga':'child','input':{'id':'${ .input.id "
         "}'}}]",
         "{'id':'a','call':'keyed','scope':'s-${ .input.n }','when':'${ .input.n > 1 "
         "}','after':[]},{'id':'b','call':'once_probed','after':[],'when':'${ .input.m }'},"
         "{'id':'c','call':'checked','after':['a']},{'id':'m','call':'mail_probed','after':['b','c']}"),
    MORE("", "{'id':'a','saga':'child','after':[]},{'id':'b','saga':'child','after':[],'on_failure':'continue','with':{"
             "'n':'${ .input.n + 1 }'}}"),
    MORE("", "{'id':'o','saga':'outer','after':[]},{'id':'each','call':'once','for_each':'${ .input.list "
             "}','after':[],'concurrency':2}"),
    MORE("", "{'id':'each','saga':'child','for_each':'${ .input.list "
             "}','concurrency':2,'on_failure':'continue'},{'id':'s','saga':'sealing'}"),
    MORE(",'locks':['k',{'key':'t','when_taken':'fail'}],'deadline':'1h'",
         "{'id':'nap','sleep':'${ .input.n "
         "}','after':[]},{'id':'sig','signal':{'name':'paid','timeout':'30s'},'after':[],'on_failure':'continue'},"
         "{'id':'any','signal':{'name':'x'},'after':[]},{'id':'ok','approve':{'show':'${ .input.n + 1 "
         "}','timeout':'1h'},'after':[],'on_failure':'escalate'},{'id':'z','call':'by_checked'}"),
    MORE("", "{'id':'each','for_each':'${ .input.list }','concurrency':2,'approve':{'show':'${ .item.n }'}},"
             "{'id':'waits','signal':{'name':'paid','timeout':'1h'},'for_each':'${ .input.list "
             "}','after':[]},{'id':'b','call':'idempotent_probed'},{'id':'c','call':'by_keyed'}"),
    /* An answer comes late, while a child that began earlier is being undone. The saga goes on with the child. */
    "{'tools':[" MORE_TOOLS "],'sagas':[{'name':'trial','deadline':'2m','steps':[{'id':'p','saga':'side'},"
    "{'id':'q','saga':'side','after':[]},{'id':'r','call':'once_probed'}]},"
    "{'name':'side','compensation':{'concurrency':4},'steps':[{'id':'x','call':'voidable'},{'id':'y','call':'keyed'},"
    "{'id':'z','call':'keyed','after':[]}]}]}",
};

static void told(void *context, uint32_t plays, uint32_t states)
{
    unsigned *calls = context;

    *calls += plays > 0 && states > 0;
}

TEST(every_kind_of_saga_keeps_the_invariants_whatever_goes_wrong)
{
    unsigned calls = 0;
    const struct prove_options options = {.states_max = 150, .on_progress = told, .context = &calls};

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct proof proof = {0};

        arena_init(&proof.arena, 65536);
        proof.definition = trial_compile(&proof.arena, trial_json(&proof.arena, kinds[i]));
        prove_saga(proof.definition, &options, &proof.arena, &proof.report);
        for (uint32_t k = 0; k < proof.report.end_count; k++) {
            if (proof.report.ends[k].violation.ptr) {
                fail_msg("saga %zu, %s %s: %.*s", i, prove_trouble_name(proof.report.ends[k].point.trouble),
                         prove_answer_name(proof.report.ends[k].point.answer),
                         SLICE_ARG(proof.report.ends[k].violation));
            }
        }
        assert_int_equal(proof.report.violation_count, 0);
        proof_end(&proof);
    }
    assert_true(calls > 0);
}

TEST_PROGRAM(NULL, NULL)
