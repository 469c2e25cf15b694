/*
 * Every verb in every state of an operation: what follows, or which sentence refuses the verb. engine/verbs.md prints
 * the whole table, and this test checks each of its lines against the machine. WRITE_VERBS=1 writes the page anew.
 */
#include <stdio.h>
#include <string.h>

#include "base/errors.h"
#include "run/request/verbs.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

static struct trial trial;
static char document[8192];

/* --- the states of the operation `act` --- */

static void open_with(const char *tool, const char *rest)
{
    (void)snprintf(document, sizeof(document), TRIAL_SAGA("{'id':'act','call':'%s'}%s"), tool, rest);
    trial_begin(&trial, document, "{}");
}

static void pending(void)
{
    open_with("once", ",{'id':'next','call':'keyed'}");
}

static void in_flight(void)
{
    open_with("keyed", ",{'id':'next','call':'keyed'}");
}

static void retrying(void)
{
    in_flight();
    trial_play(&trial, "act retry");
}

static void probed(void)
{
    open_with("once_probed", ",{'id':'next','call':'keyed'}");
    trial_play(&trial, "timer act, act unknown, probe act unknown"); /* the first probe is due at once */
}

static void probe_out(void)
{
    probed();
    trial.now_ms = trial.saga.steps[0].forward.due_ms;
}

static void unknown(void)
{
    open_with("once", ",{'id':'next','call':'keyed'}");
    trial_play(&trial, "timer act, act unknown");
}

static void asked_early(void)
{
    struct saga_input input = {.type = SAGA_INPUT_ESCALATE};

    retrying();
    input.escalate.actor = SLICE("ann");
    input.escalate.note = SLICE("it takes long");
    assert_int_equal(trial_input(&trial, input), ERR_OK);
}

static void failed(void)
{
    (void)snprintf(document, sizeof(document),
                   TRIAL_SAGA("{'id':'act','call':'keyed','on_failure':'escalate'},{'id':'next','call':'keyed'}"));
    trial_begin(&trial, document, "{}");
    trial_play(&trial, "act failed");
}

static void completed(void)
{
    in_flight();
    trial_play(&trial, "act");
}

static void undo_in_flight(void)
{
    open_with("by_checked", ",{'id':'next','call':'keyed'}");
    trial_play(&trial, "act, next failed, timer undo act");
}

static void undo_retrying(void)
{
    open_with("by_keyed", ",{'id':'next','call':'keyed'}");
    trial_play(&trial, "act, next failed, undo act retry");
}

static void undo_probed(void)
{
    undo_in_flight();
    trial_play(&trial, "undo act unknown, probe undo act unknown");
}

static void undo_failed(void)
{
    undo_in_flight();
    trial_play(&trial, "undo act failed");
}

static void undone(void)
{
    undo_in_flight();
    trial_play(&trial, "undo act");
}

static void paused(void)
{
    retrying();
    assert_int_equal(trial_pause(&trial), ERR_OK);
}

static void waived(void)
{
    undo_failed();
    assert_int_equal(trial_operator(&trial, OPERATOR_WAIVE), ERR_OK);
}

static const struct {
    const char *name;
    void (*make)(void);
    bool undo; /* the verbs are about the undo operation */
} states[] = {
    {"pending", pending, false},
    {"in flight", in_flight, false},
    {"retrying", retrying, false},
    {"being probed, the next probe is due later", probed, false},
    {"being probed, a probe is out", probe_out, false},
    {"unknown, a person is asked", unknown, false},
    {"retrying, a person was asked early", asked_early, false},
    {"retrying, the saga is paused", paused, false},
    {"failed, a person is asked", failed, false},
    {"completed, the saga goes on", completed, false},
    {"its undo is in flight", undo_in_flight, true},
    {"its undo is retrying", undo_retrying, true},
    {"its undo is being probed", undo_probed, true},
    {"its undo has failed, a person is asked", undo_failed, true},
    {"undone, the saga has ended", undone, true},
    {"waived, the saga has ended", waived, true},
};

/* --- another version of its tool --- */

static const struct definition *mended;

static const struct definition *mend(const struct tool_shelf *shelf, struct slice namespace,
                                     const struct definition *definition, struct slice tool, uint32_t version,
                                     struct err *err)
{
    (void)shelf, (void)namespace, (void)definition, (void)tool, (void)version, (void)err;
    return mended;
}

static const struct tool_shelf shelf = {.mend = mend};

static void make(size_t state)
{
    states[state].make();
    mended = trial_compile(&trial.arena, trial_json(&trial.arena, document));
    ((struct definition *)(uintptr_t)mended)->shelf = &shelf;
    ((struct definition *)(uintptr_t)trial.definition)->shelf = &shelf;
}

/* --- the verbs --- */

static const struct {
    const char *name;
    enum saga_input_type type;
    enum operator_action action;
    bool by_key, happened, undone, again;
    bool many;        /* a bulk job has it, too */
    const char *then; /* what follows outside of the saga; NULL: its records say it */
} rows[] = {
    {"pause", SAGA_INPUT_PAUSE, .many = true},
    {"resume", SAGA_INPUT_RESUME, .many = true},
    {"abort", SAGA_INPUT_ABORT, .many = true},
    {"escalate", SAGA_INPUT_ESCALATE, .many = true},
    {"mend, another version of its tool", SAGA_INPUT_MEND, .many = true},
    {"rerun", SAGA_INPUT_RERUN, .many = true, .then = "the same input is started as a saga of its own"},
    {"resolve as happened", SAGA_INPUT_OPERATOR, OPERATOR_RESOLVE, true, .happened = true, .many = true},
    {"resolve as not_happened", SAGA_INPUT_OPERATOR, OPERATOR_RESOLVE, true, .many = true},
    {"resolve as not_happened, then retry", SAGA_INPUT_OPERATOR, OPERATOR_RESOLVE, true, .again = true, .many = true},
    {"resolve as undone", SAGA_INPUT_OPERATOR, OPERATOR_RESOLVE, true, .happened = true, .undone = true, .many = true},
    {"retry", SAGA_INPUT_OPERATOR, OPERATOR_RETRY, .many = true},
    {"probe", SAGA_INPUT_OPERATOR, OPERATOR_PROBE, .many = true},
    {"waive", SAGA_INPUT_OPERATOR, OPERATOR_WAIVE, .many = true},
    {"skip", SAGA_INPUT_OPERATOR, OPERATOR_SKIP, .many = true},
    {"compensate", SAGA_INPUT_OPERATOR, OPERATOR_COMPENSATE, .many = true},
    {"abandon", SAGA_INPUT_OPERATOR, OPERATOR_ABANDON, .many = true},
    {"acknowledge, assign", SAGA_INPUT_REMARK, .many = true, .then = "the remark stands beside the case"},
    {"comment", SAGA_INPUT_REMARK, .then = "the remark stands beside the case"},
    {"signal", SAGA_INPUT_SIGNAL},
    {"decide an approval", SAGA_INPUT_DECISION},
    {"complete", SAGA_INPUT_COMPLETE},
    {"bypass", SAGA_INPUT_BYPASS},
    {"cost", SAGA_INPUT_COST},
};

#define SIGNED(of)                                                                                                     \
    do {                                                                                                               \
        (of).actor = SLICE("ann");                                                                                     \
        (of).note = SLICE("why");                                                                                      \
    } while (0)

static struct saga_input of_operator(size_t row, struct op_key key, bool undo)
{
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR};

    input.verdict.action = rows[row].action;
    input.verdict.happened = rows[row].happened;
    input.verdict.undone = rows[row].undone;
    input.verdict.again = rows[row].again;
    SIGNED(input.verdict);
    if (rows[row].by_key) {
        input.verdict.key = key;
    } else {
        input.verdict.escalation = trial.saga.escalation.number ? trial.saga.escalation.number : 64;
        input.verdict.round = saga_case_round(&trial.saga);
    }
    if (rows[row].happened && !undo) {
        input.verdict.result = SLICE("{\"id\":1}");
        input.verdict.undo_args = SLICE("{\"id\":1}");
    }
    return input;
}

/* Says the verb of a row about the operation `key`. */
static struct saga_input said(size_t row, struct op_key key, bool undo)
{
    struct saga_input input = {.type = rows[row].type};

    switch ((int)rows[row].type) {
    case SAGA_INPUT_PAUSE:
        SIGNED(input.pause);
        break;
    case SAGA_INPUT_RESUME:
        SIGNED(input.resume);
        break;
    case SAGA_INPUT_ABORT:
        SIGNED(input.abort);
        break;
    case SAGA_INPUT_ESCALATE:
        SIGNED(input.escalate);
        break;
    case SAGA_INPUT_MEND:
        SIGNED(input.mend);
        input.mend.tool = trial.saga.definition->steps[0].tool->name;
        input.mend.version = 2;
        break;
    case SAGA_INPUT_RERUN:
        SIGNED(input.rerun);
        input.rerun.id = SLICE("again-1");
        break;
    case SAGA_INPUT_REMARK:
        SIGNED(input.remark);
        input.remark.escalation = trial.saga.escalation.number ? trial.saga.escalation.number : 64;
        break;
    case SAGA_INPUT_SIGNAL:
        input.signal.name = SLICE("paid");
        input.signal.payload = SLICE("{}");
        input.signal.actor = SLICE("ann");
        break;
    case SAGA_INPUT_DECISION:
        SIGNED(input.decision);
        input.decision.approval = 64;
        input.decision.approve = true;
        input.decision.role = ROLE_OPERATOR;
        break;
    case SAGA_INPUT_COMPLETE:
        input.complete.actor = SLICE("ann");
        break;
    case SAGA_INPUT_BYPASS:
        SIGNED(input.bypass);
        input.bypass.key = key;
        break;
    case SAGA_INPUT_COST:
        SIGNED(input.cost);
        input.cost.key = key;
        break;
    case SAGA_INPUT_OPERATOR:
        return of_operator(row, key, undo);
    default:
        fail();
    }
    return input;
}

static const struct operation *operation_in(size_t state)
{
    const struct step *act = &trial.saga.steps[0];

    return states[state].undo ? step_undo(act) : &act->forward;
}

static enum err_code say(size_t state, size_t row, struct bulk_act bulk)
{
    struct saga_input input = said(row, operation_in(state)->key, states[state].undo);

    input.bulk = bulk;
    return trial_input(&trial, input);
}

/* --- the page --- */

#define WIDTH 118

static const char head[] =
    "# Every verb in every state\n\n"
    "What a person may say of an operation depends on its state. Each line is what the machine does: the records that\n"
    "follow, or the sentence that refuses the verb. `act` is the operation, `next` the step behind it. A bulk job "
    "does\n"
    "the same to each of many, once, and leaves alone what was called again since its set was frozen. What stands "
    "after\n"
    "the end of its saga is settled as a debt, which changes no log.\n\n"
    "The test `saga_verb_table` holds this page against the machine, one and many; `WRITE_VERBS=1` writes it anew.\n";

/* Writes a list item, broken at blanks. */
static void put_item(struct buffer *out, const char *text)
{
    size_t width = 0, len;

    for (const char *at = text; *at; at += len) {
        len = 1 + strcspn(at + 1, " ");
        if (width > 0 && width + len > WIDTH) {
            buffer_put_text(out, "\n ");
            width = 1;
        }
        buffer_put_slice(out, (struct slice){at, len});
        width += len;
    }
    buffer_put_char(out, '\n');
}

static void close_sound(void)
{
    assert_true(saga_is_sound(&trial.saga));
    trial_check_replay(&trial);
    trial_close(&trial);
}

static void put_cell(struct buffer *out, size_t state, size_t row)
{
    char text[1024];
    enum err_code code;

    make(state);
    code = say(state, row, (struct bulk_act){0});
    if (code == ERR_OK) {
        bool has_case = trial.saga.escalation.number != 0;

        (void)snprintf(text, sizeof(text), "- %s: %s", rows[row].name,
                       rows[row].type == SAGA_INPUT_REMARK && !has_case ? "there is no case that it could stand beside"
                       : rows[row].then                                 ? rows[row].then
                       : trial.records.count > 0                        ? trial_records(&trial)
                                                                        : "nothing changes");
    } else {
        (void)snprintf(text, sizeof(text), "- %s: refused, `%s`: %s", rows[row].name, err_name(code),
                       trial.err.message);
    }
    close_sound();
    put_item(out, text);
}

TEST(each_verb_in_each_state_does_what_the_page_says)
{
    const char *folder = getenv("SCHEMA_DIR");
    char path[512], *text = NULL;
    struct buffer out;
    size_t len = 0;
    FILE *file;

    buffer_init(&out, 1 << 20);
    buffer_put_text(&out, head);
    for (size_t s = 0; s < COUNT_OF(states); s++) {
        buffer_printf(&out, "\n## Its state: %s\n\n", states[s].name);
        for (size_t row = 0; row < COUNT_OF(rows); row++) {
            put_cell(&out, s, row);
        }
    }
    (void)snprintf(path, sizeof(path), "%s/../engine/verbs.md", folder ? folder : "schema");
    if (getenv("WRITE_VERBS")) {
        file = fopen(path, "we");
        assert_non_null(file);
        assert_int_equal(fwrite(buffer_slice(&out).ptr, 1, out.len, file), out.len);
        assert_int_equal(fclose(file), 0);
    }
    file = fopen(path, "re");
    assert_non_null(file);
    text = malloc(out.len + 2);
    assert_non_null(text);
    len = fread(text, 1, out.len + 1, file);
    assert_int_equal(fclose(file), 0);
    text[len] = '\0';
    assert_string_equal(buffer_c(&out), text);
    free(text);
    buffer_fini(&out);
}

/* --- many --- */

#define ITEM SLICE("019b3c60-4a00-7000-8000-00000000002a/7")

/* An item of a bulk job does what the verb does to one; asked again it does nothing; and it is refused where the
 * operation was called since. */
static void check_many(size_t state, size_t row)
{
    char alone[1024], text[128];
    struct bulk_act item = {.id = ITEM};
    enum err_code code;

    make(state);
    code = say(state, row, (struct bulk_act){0});
    (void)snprintf(alone, sizeof(alone), "%s", code == ERR_OK ? trial_records(&trial) : trial.err.message);
    close_sound();

    (void)snprintf(text, sizeof(text), "%s: %s", states[state].name, rows[row].name);
    make(state);
    item.key = operation_in(state)->key;
    item.attempts = operation_calls(operation_in(state));
    if (say(state, row, item) != code) {
        fail_msg("%s: other for many", text);
    }
    assert_string_equal(code == ERR_OK ? trial_records(&trial) : trial.err.message, alone);
    if (code == ERR_OK && trial.records.count > 0) {
        assert_true(slice_equal(trial.records.items[0].bulk, ITEM));
        assert_int_equal(say(state, row, item), ERR_OK);
        assert_int_equal(trial.records.count, 0);
    }
    close_sound();

    make(state);
    item.attempts++;
    assert_int_equal(say(state, row, item), ERR_DECIDED);
    assert_int_equal(trial.records.count, 0);
    close_sound();
}

TEST(an_item_of_many_is_treated_as_one)
{
    for (size_t s = 0; s < COUNT_OF(states); s++) {
        for (size_t row = 0; row < COUNT_OF(rows); row++) {
            if (rows[row].many) {
                check_many(s, row);
            }
        }
    }
}

/* --- is each verb there? --- */

TEST(the_table_has_each_verb_of_the_engine_and_each_action_of_a_case)
{
    for (size_t v = 0; v < VERB_COUNT; v++) {
        bool found = false;

        for (size_t row = 0; row < COUNT_OF(rows); row++) {
            found |= rows[row].type == verbs[v].input;
        }
        if (!found) {
            fail_msg("%s is not in the table", verbs[v].name);
        }
    }
    for (int action = 0; action < OPERATOR_ACTION_COUNT; action++) {
        bool found = false;

        for (size_t row = 0; row < COUNT_OF(rows); row++) {
            found |= rows[row].type == SAGA_INPUT_OPERATOR && (int)rows[row].action == action;
        }
        if (!found) {
            fail_msg("%s is not in the table", operator_action_name((enum operator_action)action));
        }
    }
}

TEST_PROGRAM(NULL, NULL)
