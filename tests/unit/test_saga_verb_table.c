/*
 * Every verb in every state of an operation: what follows, or which sentence refuses the verb. engine/verbs.md prints
 * the whole table, and this test checks each of its lines against the machine. WRITE_VERBS=1 writes the page anew.
 */
#include <stdio.h>
#include <string.h>

#include "base/errors.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

static struct trial trial;

/* --- the states of the operation `act` --- */

static void open_with(const char *tool, const char *rest)
{
    char document[8192];

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
    trial_begin(&trial, TRIAL_SAGA("{'id':'act','call':'keyed','on_failure':'escalate'},{'id':'next','call':'keyed'}"),
                "{}");
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
    {"failed, a person is asked", failed, false},
    {"completed, the saga goes on", completed, false},
    {"its undo is in flight", undo_in_flight, true},
    {"its undo is retrying", undo_retrying, true},
    {"its undo is being probed", undo_probed, true},
    {"its undo has failed, a person is asked", undo_failed, true},
    {"undone, the saga has ended", undone, true},
};

/* --- the verbs --- */

static struct saga_input of_saga(enum saga_input_type type)
{
    struct saga_input input = {.type = type};

    switch ((int)type) {
    case SAGA_INPUT_PAUSE:
        input.pause.actor = SLICE("ann");
        input.pause.note = SLICE("why");
        break;
    case SAGA_INPUT_ABORT:
        input.abort.actor = SLICE("ann");
        input.abort.note = SLICE("why");
        break;
    case SAGA_INPUT_ESCALATE:
        input.escalate.actor = SLICE("ann");
        input.escalate.note = SLICE("why");
        break;
    default:
        fail();
    }
    return input;
}

static const struct {
    const char *name;
    enum saga_input_type type;
    enum operator_action action;
    bool by_key, happened, undone, again;
} verbs[] = {
    {"pause", SAGA_INPUT_PAUSE, .action = OPERATOR_RESOLVE},
    {"abort", SAGA_INPUT_ABORT, .action = OPERATOR_RESOLVE},
    {"escalate", SAGA_INPUT_ESCALATE, .action = OPERATOR_RESOLVE},
    {"resolve as happened", SAGA_INPUT_OPERATOR, OPERATOR_RESOLVE, true, .happened = true},
    {"resolve as not_happened", SAGA_INPUT_OPERATOR, OPERATOR_RESOLVE, true},
    {"resolve as not_happened, then retry", SAGA_INPUT_OPERATOR, OPERATOR_RESOLVE, true, .again = true},
    {"resolve as undone", SAGA_INPUT_OPERATOR, OPERATOR_RESOLVE, true, .happened = true, .undone = true},
    {"retry", SAGA_INPUT_OPERATOR, OPERATOR_RETRY},
    {"probe", SAGA_INPUT_OPERATOR, OPERATOR_PROBE},
    {"waive", SAGA_INPUT_OPERATOR, OPERATOR_WAIVE},
    {"skip", SAGA_INPUT_OPERATOR, OPERATOR_SKIP},
    {"compensate", SAGA_INPUT_OPERATOR, OPERATOR_COMPENSATE},
    {"abandon", SAGA_INPUT_OPERATOR, OPERATOR_ABANDON},
};

static enum err_code say(size_t verb, bool undo)
{
    struct saga_input input;

    if (verbs[verb].type != SAGA_INPUT_OPERATOR) {
        return trial_input(&trial, of_saga(verbs[verb].type));
    }
    input = (struct saga_input){.type = SAGA_INPUT_OPERATOR};
    input.verdict.action = verbs[verb].action;
    input.verdict.happened = verbs[verb].happened;
    input.verdict.undone = verbs[verb].undone;
    input.verdict.again = verbs[verb].again;
    input.verdict.actor = SLICE("ann");
    input.verdict.note = SLICE("why");
    if (verbs[verb].by_key) {
        const struct step *act = &trial.saga.steps[0];

        input.verdict.key = undo ? step_undo(act)->key : act->forward.key;
    } else {
        input.verdict.escalation = trial.saga.escalation.number ? trial.saga.escalation.number : 64;
        input.verdict.round = saga_case_round(&trial.saga);
    }
    if (verbs[verb].happened && !undo) {
        input.verdict.result = SLICE("{\"id\":1}");
        input.verdict.undo_args = SLICE("{\"id\":1}");
    }
    return trial_input(&trial, input);
}

/* --- the page --- */

#define WIDTH 118

static const char head[] =
    "# Every verb in every state\n\n"
    "What a person may say of an operation depends on its state. Each line is what the machine does: the records that\n"
    "follow, or the sentence that refuses the verb. `act` is the operation, `next` the step behind it. The test\n"
    "`saga_verb_table` holds this page against the machine; `WRITE_VERBS=1` writes it anew.\n";

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

static void put_cell(struct buffer *out, size_t state, size_t verb)
{
    char text[1024];
    enum err_code code;

    states[state].make();
    code = say(verb, states[state].undo);
    if (code == ERR_OK) {
        (void)snprintf(text, sizeof(text), "- %s: %s", verbs[verb].name,
                       trial.records.count ? trial_records(&trial) : "nothing changes");
    } else {
        (void)snprintf(text, sizeof(text), "- %s: refused, `%s`: %s", verbs[verb].name, err_name(code),
                       trial.err.message);
    }
    assert_true(saga_is_sound(&trial.saga));
    trial_check_replay(&trial);
    trial_close(&trial);
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
        for (size_t v = 0; v < COUNT_OF(verbs); v++) {
            put_cell(&out, s, v);
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

TEST_PROGRAM(NULL, NULL)
