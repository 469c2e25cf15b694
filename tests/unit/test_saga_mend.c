/* A saga that goes on with another version of a tool. Keys stay, and a call that may have had an effect restricts the
 * change. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/call_trial.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

/* --- a shelf with several versions of the tool `pay`, or of `refund`, which undoes it --- */

#define PROBE(url) "'probe':{'http':{'url':'" url "'},'outcome':{'completed':'${ true }'},'visibility':'5s'}"
#define UNDO "'compensate':{'tool':'refund','with':{'id':'${ .result.id }'}}"
#define UNDONE "'compensate':{'tool':'undo','with':{'id':'${ .result.id }'}}" /* as in call_trial.h */
#define PAY_OF(url, rest) "{'name':'pay','http':{'method':'POST','url':'" url "'}," rest "}"
#define PAY(rest) PAY_OF("https://bank.test/pay", rest)
#define KEYED "'effect':'keyed','key':{'window':'60s'}"
#define REFUND "{'name':'refund','builtin':{'do':'echo'},'effect':'idempotent'}"
#define CALLS_PAY "{'id':'a','call':'pay','with':{'n':1},'retry':{'initial':'1s','max':'1s'}}"

struct shelf {
    struct tool_shelf shelf; /* first, so that mend() finds this struct */
    struct arena arena;
    struct slice saga, child;
    const char *tool;         /* the tool that has versions */
    const char *const *texts; /* the texts of its versions, from 1 on */
    uint32_t count, version;  /* version: the one that is being compiled */
    const struct definition *compiled[8];
};

static bool find_tool(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *found)
{
    struct shelf *shelf = context;
    const char *text = NULL;

    (void)version;
    *found = slice_is(name, shelf->tool) ? shelf->version : 1;
    if (slice_is(name, shelf->tool)) {
        text = shelf->texts[shelf->version - 1];
    } else if (slice_is(name, "pay")) {
        text = PAY(KEYED "," UNDO);
    } else if (slice_is(name, "refund")) {
        text = REFUND;
    }
    *body = text ? trial_json(&shelf->arena, text) : SLICE_NONE;
    return text != NULL;
}

static bool find_saga(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *found)
{
    struct shelf *shelf = context;

    (void)version;
    *found = 1;
    *body = shelf->child;
    return slice_is(name, "child");
}

static const struct definition *compile(struct shelf *shelf, uint32_t version, struct err *err)
{
    struct tool_source source = {find_tool, shelf, find_saga};
    struct faults faults;

    if (version < 1 || version > shelf->count) {
        (void)err_set(err, ERR_NOT_FOUND, "there is no such version");
        return NULL;
    }
    if (!shelf->compiled[version]) {
        struct definition *definition;

        faults_init(&faults, &shelf->arena);
        shelf->version = version;
        definition = definition_compile(shelf->saga, 1, &source, SLICE(""), &shelf->arena, &faults);
        if (!definition) {
            (void)err_set(err, ERR_CONFLICT, "%.*s", SLICE_ARG(faults.items[0].detail));
            return NULL;
        }
        definition->shelf = &shelf->shelf;
        shelf->compiled[version] = definition;
    }
    return shelf->compiled[version];
}

static const struct definition *mend(const struct tool_shelf *self, struct slice namespace,
                                     const struct definition *definition, struct slice tool, uint32_t version,
                                     struct err *err)
{
    struct shelf *shelf = (struct shelf *)(uintptr_t)self;

    (void)namespace;
    return slice_is(tool, shelf->tool) ? compile(shelf, version, err) : definition;
}

#define SHELF_OPEN(shelf, trial, steps, of, ...)                                                                       \
    do {                                                                                                               \
        static const char *const its[] = {__VA_ARGS__};                                                                \
        shelf_open(&(shelf), &(trial), steps, of, its, COUNT_OF(its));                                                 \
    } while (0)

static void shelf_open(struct shelf *shelf, struct trial *trial, const char *steps, const char *tool,
                       const char *const *texts, uint32_t count)
{
    char text[2048];
    struct err err = {0};

    *shelf = (struct shelf){.shelf = {.mend = mend}, .tool = tool, .texts = texts, .count = count};
    arena_init(&shelf->arena, 16384);
    (void)snprintf(text, sizeof(text), "{'name':'trial','steps':[%s]}", steps);
    shelf->saga = trial_json(&shelf->arena, text);
    shelf->child = trial_json(&shelf->arena, "{'name':'child','steps':[" CALLS_PAY "]}");
    const struct definition *definition = compile(shelf, 1, &err);

    if (!definition) {
        fail_msg("%s", err.message);
    }
    trial_open_compiled(trial, definition, 0);
    trial_start(trial, "{}");
}

static void shelf_close(struct shelf *shelf, struct trial *trial)
{
    trial_check_replay(trial);
    trial_close(trial);
    arena_fini(&shelf->arena);
}

static enum err_code say(struct trial *trial, const char *tool, uint32_t version, bool accept_double)
{
    struct saga_input input = {.type = SAGA_INPUT_MEND};

    input.mend.tool = slice_of(tool);
    input.mend.version = version;
    input.mend.accept_double = accept_double;
    input.mend.actor = SLICE("ann");
    input.mend.note = SLICE("its probe asked with POST");
    return trial_input(trial, input);
}

static const struct operation *forward(const struct trial *trial, const char *step)
{
    return &trial->saga.steps[trial_step(trial, step)].forward;
}

/* --- what it is for --- */

TEST(the_next_attempt_is_of_the_new_version_under_the_same_key)
{
    struct shelf shelf;
    struct trial trial;
    struct op_key key;

    SHELF_OPEN(shelf, trial, CALLS_PAY, "pay", PAY(KEYED "," UNDO), PAY(KEYED "," UNDO ",'timeout':'2s'"));
    key = forward(&trial, "a")->key;
    trial_play(&trial, "a retry");
    assert_int_equal(say(&trial, "pay", 2, false), ERR_OK);
    assert_string_equal(trial_records(&trial), "tool.mended");
    assert_true(slice_is(trial.records.items[0].tool_name, "pay"));
    assert_int_equal(trial.records.items[0].tool_version, 2);
    assert_true(slice_is(trial.records.items[0].actor, "ann"));
    assert_true(slice_is(trial.records.items[0].note, "its probe asked with POST"));
    assert_int_equal(forward(&trial, "a")->tool_version, 1); /* the version of the attempt that was made */
    trial_play_to(&trial, "timer a", "step.intent a");
    assert_memory_equal(&forward(&trial, "a")->key, &key, sizeof(key));
    assert_int_equal(forward(&trial, "a")->tool_version, 2);
    assert_int_equal(trial.saga.definition->steps[0].timeout_ms, 2000);
    assert_int_equal(say(&trial, "pay", 2, false), ERR_OK); /* a repeat */
    assert_int_equal(trial.records.count, 0);
    trial_play(&trial, "a");
    assert_int_equal(say(&trial, "pay", 1, false), ERR_ENDED);
    shelf_close(&shelf, &trial);
}

TEST(a_compensator_that_is_refused_for_ever_goes_on_mended)
{
    struct shelf shelf;
    struct trial trial;
    struct op_key key;

    SHELF_OPEN(shelf, trial, CALLS_PAY ",{'id':'b','sleep':'1h'}", "refund", REFUND,
               "{'name':'refund','builtin':{'do':'echo'},'effect':'idempotent','timeout':'2s'}");
    trial_play(&trial, "a");
    assert_int_equal(trial_abort(&trial), ERR_OK);
    key = step_undo(&trial.saga.steps[0])->key;
    trial_play(&trial, "undo a retry");
    assert_int_equal(say(&trial, "refund", 2, false), ERR_OK);
    trial_play(&trial, "timer undo a");
    assert_memory_equal(&step_undo(&trial.saga.steps[0])->key, &key, sizeof(key));
    assert_int_equal(step_undo(&trial.saga.steps[0])->tool_version, 2);
    trial_play(&trial, "undo a");
    assert_int_equal(trial.saga.end, SAGA_COMPENSATED);
    shelf_close(&shelf, &trial);
}

TEST(elements_and_the_steps_of_children_stay_where_they_are)
{
    struct shelf shelf;
    struct trial trial;
    struct op_key key;

    SHELF_OPEN(shelf, trial,
               "{'id':'each','for_each':'${ .input.no // [1,2,3] }','call':'pay','with':{'n':'${ .item }'},"
               "'concurrency':3},{'id':'whole','saga':'child','with':{}}",
               "pay", PAY(KEYED "," UNDO), PAY(KEYED "," UNDO ",'timeout':'2s'"));
    trial_evaluated(&trial, EVALUATE_ARGS, "each", "[1,2,3]");
    trial_evaluated(&trial, EVALUATE_ARGS, "each#0", "{\"n\":1}");
    for (int i = 0; i < 3; i++) {
        static const char *const elements[] = {"each#0", "each#1", "each#2"};

        if (forward(&trial, elements[i])->state == OP_NONE) {
            trial_timer(&trial, elements[i]);
        }
        trial_settle(&trial, elements[i], i < 2 ? OUTCOME_COMPLETED : OUTCOME_RETRY);
    }
    key = forward(&trial, "each#2")->key;
    assert_int_equal(say(&trial, "pay", 2, false), ERR_OK);
    assert_int_equal(trial.saga.definition->steps[trial_step(&trial, "each#2")].timeout_ms, 2000);
    trial_play(&trial, "timer each#2");
    assert_memory_equal(&forward(&trial, "each#2")->key, &key, sizeof(key));
    assert_int_equal(forward(&trial, "each#0")->tool_version, 1);
    trial_play(&trial, "each#2");
    assert_int_equal(forward(&trial, "whole/a")->state, OP_IN_FLIGHT);
    assert_int_equal(forward(&trial, "whole/a")->tool_version, 2);
    trial_play(&trial, "whole/a retry");
    assert_int_equal(say(&trial, "pay", 1, false), ERR_OK); /* and back */
    trial_play(&trial, "timer whole/a");
    assert_int_equal(forward(&trial, "whole/a")->tool_version, 1);
    shelf_close(&shelf, &trial);
}

/* --- what binds --- */

#define IN "'effect':'checked'," PROBE("https://bank.test/paid") "," UNDO

static const struct {
    const char *name;
    const char *before, *after;
    enum err_code code, accepted; /* the codes without and with accept_double, once a byte may have left */
} cases[] = {
    {"a higher number of attempts", PAY(KEYED "," UNDO), PAY(KEYED "," UNDO ",'retry':{'max_attempts':9}"), ERR_OK,
     ERR_OK},
    {"a weaker class", PAY("'effect':'once'," UNDO), PAY(KEYED "," UNDO), ERR_CONFLICT, ERR_CONFLICT},
    {"a stricter class", PAY(KEYED "," UNDO), PAY("'effect':'once'," UNDO), ERR_CONFLICT, ERR_CONFLICT},
    {"a class with as little of a key", PAY("'effect':'once'," UNDO), PAY("'effect':'idempotent'," UNDO), ERR_CONFLICT,
     ERR_CONFLICT},
    {"another window of the key", PAY(KEYED "," UNDO), PAY("'effect':'keyed','key':{'window':'90s'}," UNDO),
     ERR_CONFLICT, ERR_CONFLICT},
    {"another place of the key", PAY(KEYED "," UNDO),
     PAY("'effect':'keyed','key':{'window':'60s','header':'X-Key'}," UNDO), ERR_CONFLICT, ERR_CONFLICT},
    {"refusals that settle", PAY(KEYED "," UNDO), PAY("'effect':'keyed','key':{'window':'60s','settles':[402]}," UNDO),
     ERR_CONFLICT, ERR_CONFLICT},
    {"terminal", PAY(KEYED "," UNDO), PAY(KEYED ",'terminal':true"), ERR_CONFLICT, ERR_CONFLICT},
    {"another argument of the compensator", PAY(KEYED "," UNDO),
     PAY(KEYED ",'compensate':{'tool':'refund','with':{'id':'${ .key }'}}"), ERR_CONFLICT, ERR_CONFLICT},
    {"another scope", PAY(KEYED "," UNDO), PAY(KEYED "," UNDO ",'scope':'${ .args.n }'"), ERR_CONFLICT, ERR_CONFLICT},
    {"another path", PAY(KEYED "," UNDO), PAY_OF("HTTPS://Bank.test:443/v2/pay", KEYED "," UNDO), ERR_OK, ERR_OK},
    {"another host", PAY(KEYED "," UNDO), PAY_OF("https://other.test/pay", KEYED "," UNDO), ERR_CONFLICT, ERR_OK},
    {"another port", PAY(KEYED "," UNDO), PAY_OF("https://bank.test:8443/pay", KEYED "," UNDO), ERR_CONFLICT, ERR_OK},
    {"another scheme", PAY(KEYED "," UNDO), PAY_OF("http://bank.test:443/pay", KEYED "," UNDO), ERR_CONFLICT, ERR_OK},
    {"another secret", PAY_OF("${ secret(\\\"a\\\") }/pay", KEYED "," UNDO),
     PAY_OF("${ secret(\\\"b\\\") }/pay", KEYED "," UNDO), ERR_CONFLICT, ERR_OK},
    {"the same secret", PAY_OF("${ secret(\\\"a\\\") }/pay", KEYED "," UNDO),
     PAY_OF("${ secret(\\\"a\\\") }/v2/pay", KEYED "," UNDO), ERR_OK, ERR_OK},
    {"another adapter", PAY(KEYED "," UNDO), "{'name':'pay','builtin':{'do':'echo'}," KEYED "," UNDO "}", ERR_CONFLICT,
     ERR_OK},
    {"a probe elsewhere", PAY(KEYED "," PROBE("https://bank.test/paid") "," UNDO),
     PAY(KEYED "," PROBE("https://other.test/paid") "," UNDO), ERR_CONFLICT, ERR_OK},
    {"a first probe", PAY(KEYED "," UNDO), PAY(KEYED "," PROBE("https://bank.test/paid") "," UNDO), ERR_OK, ERR_OK},
    {"a first probe elsewhere", PAY(KEYED "," UNDO), PAY(KEYED "," PROBE("https://other.test/paid") "," UNDO),
     ERR_CONFLICT, ERR_OK},
};

TEST(once_a_byte_may_have_left_these_bind)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *const texts[] = {cases[i].before, cases[i].after};
        struct shelf shelf;
        struct trial trial;

        shelf_open(&shelf, &trial, CALLS_PAY, "pay", texts, 2);
        if (forward(&trial, "a")->state == OP_PENDING) {
            trial_play(&trial, "timer a");
        }
        trial_play(&trial, "a unknown");
        if (say(&trial, "pay", 2, false) != cases[i].code) {
            fail_msg("%s: %s", cases[i].name, trial.err.message);
        }
        if (cases[i].code != ERR_OK && say(&trial, "pay", 2, true) != cases[i].accepted) {
            fail_msg("%s, accepted: %s", cases[i].name, trial.err.message);
        }
        shelf_close(&shelf, &trial);
    }
}

TEST(before_anything_began_nothing_binds_but_that_it_compiles)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *const texts[] = {cases[i].before, cases[i].after};
        struct shelf shelf;
        struct trial trial;

        shelf_open(&shelf, &trial, "{'id':'first','sleep':'1h'}," CALLS_PAY, "pay", texts, 2);
        if (say(&trial, "pay", 2, false) != ERR_OK) {
            fail_msg("%s: %s", cases[i].name, trial.err.message);
        }
        trial_play(&trial, "timer first");
        assert_int_not_equal(forward(&trial, "a")->state, OP_NONE);
        shelf_close(&shelf, &trial);
    }
}

TEST(another_receiver_is_no_matter_when_the_outcome_is_known)
{
    struct shelf shelf;
    struct trial trial;

    SHELF_OPEN(shelf, trial, CALLS_PAY ",{'id':'b','sleep':'1h'}", "pay", PAY(KEYED "," UNDO),
               PAY_OF("https://other.test/pay", KEYED "," UNDO), PAY(KEYED ",'terminal':true"));
    trial_play(&trial, "a");
    assert_int_equal(say(&trial, "pay", 2, false), ERR_OK);
    assert_int_equal(say(&trial, "pay", 3, true), ERR_CONFLICT); /* its undo was promised */
    shelf_close(&shelf, &trial);
}

TEST(a_call_or_a_probe_that_is_out_is_awaited)
{
    struct shelf shelf;
    struct trial trial;

    SHELF_OPEN(shelf, trial, CALLS_PAY, "pay", PAY(IN), PAY(IN ",'timeout':'2s'"));
    assert_int_equal(say(&trial, "pay", 2, false), ERR_OK); /* pending, so it certainly was not sent */
    assert_int_equal(say(&trial, "pay", 1, false), ERR_OK);
    trial_play(&trial, "timer a");
    assert_int_equal(say(&trial, "pay", 2, true), ERR_CALL_OUT);
    trial_play(&trial, "a unknown");
    trial.now_ms = forward(&trial, "a")->due_ms;
    assert_int_equal(say(&trial, "pay", 2, true), ERR_PROBE_OUT);
    trial_play(&trial, "probe a unknown");
    assert_int_equal(say(&trial, "pay", 2, false), ERR_OK);
    shelf_close(&shelf, &trial);
}

TEST(a_probed_step_is_not_left_without_a_probe)
{
    struct shelf shelf;
    struct trial trial;

    SHELF_OPEN(shelf, trial, CALLS_PAY, "pay", PAY("'effect':'once'," PROBE("https://bank.test/paid") "," UNDO),
               PAY("'effect':'once'," UNDO));
    trial_play(&trial, "timer a, a unknown, probe a unknown");
    assert_int_equal(forward(&trial, "a")->state, OP_PROBING);
    assert_int_equal(say(&trial, "pay", 2, true), ERR_CONFLICT);
    shelf_close(&shelf, &trial);
}

TEST(a_shorter_timeout_does_not_make_the_last_call_shorter)
{
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR};
    struct shelf shelf;
    struct trial trial;
    int64_t sent_ms;

    SHELF_OPEN(shelf, trial, CALLS_PAY, "pay", PAY("'effect':'once'," UNDO ",'timeout':'60s'"),
               PAY("'effect':'once'," UNDO ",'timeout':'1s'"));
    trial_play(&trial, "timer a");
    sent_ms = trial.now_ms;
    trial_play(&trial, "a unknown");
    assert_int_equal(say(&trial, "pay", 2, false), ERR_OK);
    input.verdict.action = OPERATOR_RESOLVE;
    input.verdict.key = forward(&trial, "a")->key;
    input.verdict.again = true;
    input.verdict.actor = SLICE("ann");
    input.verdict.note = SLICE("the bank says no");
    assert_int_equal(trial_input(&trial, input), ERR_OK);
    assert_true(forward(&trial, "a")->due_ms >= sent_ms + 60000);
    shelf_close(&shelf, &trial);
}

TEST(what_cannot_be_is_refused_with_a_sentence)
{
    struct saga_input nobody = {.type = SAGA_INPUT_MEND, .mend = {.tool = SLICE("pay"), .version = 2}};
    struct shelf shelf;
    struct trial trial;

    SHELF_OPEN(shelf, trial, "{'id':'first','sleep':'1h'}," CALLS_PAY, "pay", PAY(KEYED "," UNDO),
               PAY("'effect':'read'"), PAY(KEYED));
    assert_int_equal(say(&trial, "other", 2, false), ERR_INVALID);
    assert_int_equal(say(&trial, "pay", 9, false), ERR_NOT_FOUND);
    assert_int_equal(say(&trial, "pay", 3, false), ERR_CONFLICT); /* the tool has no compensator and is not terminal */
    assert_non_null(strstr(trial.err.message, "compensate"));
    assert_int_equal(trial_input(&trial, nobody), ERR_INVALID);
    shelf_close(&shelf, &trial);
}

/* --- open sagas and runs --- */

TEST(calls_of_an_agent_go_on_mended)
{
    struct saga_input input = {.type = SAGA_INPUT_MEND};
    struct call_trial t;
    struct op_key key;

    call_trial_open(&t, NULL, NULL, NULL);
    call_trial_register(&t, "{'name':'ask','builtin':{'do':'echo'},'effect':'checked'," UNDONE
                            "," PROBE("https://bank.test/paid") "}");
    assert_int_equal(CALL(&t, "ask", "a"), ERR_OK);
    call_trial_timer(&t, "a");
    call_trial_settle(&t, "a", OUTCOME_UNKNOWN, NULL);
    call_trial_probe(&t, "a", OUTCOME_UNKNOWN);
    key = call_trial_step(&t, "a")->forward.key;
    call_trial_register(&t, "{'name':'ask','builtin':{'do':'echo'},'effect':'checked'," UNDONE
                            "," PROBE("https://bank.test/v2/paid") "}");
    call_trial_register(&t, "{'name':'ask','builtin':{'do':'echo'}," KEYED "," UNDONE "}");
    input.mend.tool = SLICE("ask");
    input.mend.version = 3;
    input.mend.actor = SLICE("ann");
    input.mend.note = SLICE("it asked with POST");
    assert_int_equal(call_trial_input(&t, input), ERR_CONFLICT);
    input.mend.version = 2;
    assert_int_equal(call_trial_input(&t, input), ERR_OK);
    assert_int_equal(t.saga.definition->steps[0].tool->version, 2);
    assert_int_equal(CALL(&t, "paid", "b"), ERR_OK); /* steps are added as before */
    call_trial_probe(&t, "a", OUTCOME_COMPLETED);
    assert_memory_equal(&call_trial_step(&t, "a")->forward.key, &key, sizeof(key));
    assert_int_equal(call_trial_step(&t, "a")->forward.state, OP_COMPLETED);
    call_trial_close(&t);
}

TEST_PROGRAM(NULL, NULL)
