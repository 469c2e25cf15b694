/*
 * Golden histories: input -> records -> wants -> final state, as text files under tests/golden. They show a reader what
 * the machine does, and they hold the next release to the logs of this one.
 *
 * A file begins with comments and a definition: one JSON document with tools and one saga, between `definition` and
 * `end`. A line that begins with `>` is an input. This program writes the lines behind an input, up to the next one.
 * REGENERATE=1 writes the files anew; do that only on purpose, and explain each changed line in the commit. The view of
 * the saga at the end of a file may lack members that the API has gained since. All members in the file must still be
 * the same.
 *
 *     > [+MS] start JSON
 *     > [+MS] settled|probed STEP do|undo NUMBER OUTCOME [unsent] [after MS] [JSON|CODE]
 *     > [+MS] timer STEP|- do|undo
 *     > [+MS] evaluated args|output|undo|locks STEP|- JSON
 *     > [+MS] abort NOTE
 *     > [+MS] signal NAME ID|- JSON
 *     > [+MS] decide NUMBER approve|refuse ROLE
 *     > [+MS] pause|resume NOTE
 *     > [+MS] hold TOOL|-    from here on this tool is held; -: no tool is
 *     > [+MS] locked KEY [refused]
 *     > [+MS] operator NUMBER ACTION [happened|not_happened] [accept_double] [result JSON|args JSON]
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/saga/hold.h"
#include "tests/lib/json_holds.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#define FILES_MAX 64
#define FILE_BYTES_MAX ((size_t)1 << 20)

struct history {
    struct trial trial;
    struct hold hold;
    struct hold_set holds; /* the hold above, while it is in force */
    struct buffer out;     /* the file as it should be */
};

/* --- reading --- */

static struct slice word(struct slice *rest)
{
    struct slice text = slice_trim(*rest), first = text;
    size_t len = 0;

    while (len < text.len && text.ptr[len] != ' ') {
        len++;
    }
    first.len = len;
    *rest = slice_trim((struct slice){text.ptr + len, text.len - len});
    return first;
}

static bool take_word(struct slice *rest, const char *expected)
{
    struct slice before = *rest;

    if (slice_is(word(rest), expected)) {
        return true;
    }
    *rest = before;
    return false;
}

static int64_t number(struct slice text)
{
    int64_t value;

    if (!slice_to_i64(text, &value)) {
        fail_msg("no number: %.*s", SLICE_ARG(text));
    }
    return value;
}

static uint32_t step_of(struct history *history, struct slice name)
{
    return trial_step(&history->trial, arena_text(&history->trial.arena, name));
}

static enum direction direction_of(struct slice name)
{
    return slice_is(name, "undo") ? DIRECTION_UNDO : DIRECTION_DO;
}

/* --- inputs --- */

static struct saga_input read_outcome(struct history *history, enum saga_input_type type, struct slice rest)
{
    uint32_t step = step_of(history, word(&rest));
    enum direction direction = direction_of(word(&rest));
    uint32_t attempt = (uint32_t)number(word(&rest));
    struct outcome outcome = {0};

    assert_true(outcome_parse(word(&rest), &outcome.kind));
    outcome.unsent = take_word(&rest, "unsent");
    if (take_word(&rest, "after")) {
        outcome.retry_after_ms = number(word(&rest));
    }
    if (outcome.kind == OUTCOME_COMPLETED) {
        outcome.result = rest.len ? rest : SLICE_NONE;
    } else {
        outcome.error = rest;
    }
    return trial_outcome(&history->trial, type, step, direction, attempt, outcome);
}

static struct saga_input read_operator(struct history *history, struct slice rest)
{
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR};

    input.verdict.escalation = (uint64_t)number(word(&rest));
    assert_true(operator_action_parse(word(&rest), &input.verdict.action));
    input.verdict.happened = take_word(&rest, "happened");
    (void)take_word(&rest, "not_happened");
    input.verdict.accept_double = take_word(&rest, "accept_double");
    if (take_word(&rest, "result")) {
        input.verdict.result = rest;
    } else if (take_word(&rest, "args")) {
        input.verdict.args = rest;
    }
    if (input.verdict.happened && history->trial.saga.escalation.direction == DIRECTION_DO) {
        struct outcome outcome = {.kind = OUTCOME_COMPLETED, .result = input.verdict.result};
        struct saga_input rendered = trial_outcome(&history->trial, SAGA_INPUT_SETTLED,
                                                   history->trial.saga.escalation.step, DIRECTION_DO, 1, outcome);

        input.verdict.undo_args = rendered.settled.undo_args;
        input.verdict.undo_error = rendered.settled.undo_error;
    }
    input.verdict.actor = SLICE("ann");
    input.verdict.note = SLICE("looked it up");
    return input;
}

/* Reads the inputs of sagas with waits, locks and pauses. Returns false for any other input. */
static bool read_message(struct slice verb, struct slice rest, struct saga_input *input)
{
    if (slice_is(verb, "signal")) {
        input->type = SAGA_INPUT_SIGNAL;
        input->signal.name = word(&rest);
        input->signal.id = word(&rest);
        input->signal.id = slice_is(input->signal.id, "-") ? SLICE_NONE : input->signal.id;
        input->signal.payload = rest;
        input->signal.actor = SLICE("shop");
    } else if (slice_is(verb, "decide")) {
        input->type = SAGA_INPUT_DECISION;
        input->decision.approval = (uint64_t)number(word(&rest));
        input->decision.approve = slice_is(word(&rest), "approve");
        assert_true(role_parse(word(&rest), &input->decision.role));
        input->decision.actor = SLICE("ann");
        input->decision.note = SLICE("looked it up");
    } else if (slice_is(verb, "pause")) {
        input->type = SAGA_INPUT_PAUSE;
        input->pause.actor = SLICE("ann");
        input->pause.note = rest;
    } else if (slice_is(verb, "resume")) {
        input->type = SAGA_INPUT_RESUME;
        input->resume.actor = SLICE("ann");
        input->resume.note = rest;
    } else if (slice_is(verb, "locked")) {
        input->type = SAGA_INPUT_LOCKED;
        input->locked.key = word(&rest);
        input->locked.refused = slice_is(rest, "refused");
    } else {
        return false;
    }
    return true;
}

/* What an engine does when a hold comes or goes: it has the saga look. */
static struct saga_input read_hold(struct history *history, struct slice tool)
{
    history->hold =
        (struct hold){.number = 1, .namespace = SLICE("default"), .kind = HOLD_TOOL, .name = tool, .pace = 1};
    history->holds = (struct hold_set){&history->hold, !slice_is(tool, "-")};
    history->trial.holds = &history->holds;
    return (struct saga_input){.type = SAGA_INPUT_TIMER, .timer = {.step = STEP_NONE, .timer = SAGA_TIMER_HOLD}};
}

static struct saga_input read_input(struct history *history, struct slice rest)
{
    struct saga_input input = {.type = SAGA_INPUT_START};
    struct slice verb = word(&rest), name;

    if (slice_starts_with(verb, "+")) {
        history->trial.now_ms += number((struct slice){verb.ptr + 1, verb.len - 1});
        verb = word(&rest);
    }
    if (slice_is(verb, "settled") || slice_is(verb, "probed")) {
        return read_outcome(history, slice_is(verb, "probed") ? SAGA_INPUT_PROBED : SAGA_INPUT_SETTLED, rest);
    }
    if (slice_is(verb, "operator")) {
        return read_operator(history, rest);
    }
    if (slice_is(verb, "hold")) {
        return read_hold(history, word(&rest));
    }
    if (read_message(verb, rest, &input)) {
        return input;
    }
    if (slice_is(verb, "timer")) {
        input.type = SAGA_INPUT_TIMER;
        input.timer.step = step_of(history, word(&rest));
        input.timer.direction = direction_of(word(&rest));
    } else if (slice_is(verb, "evaluated")) {
        input.type = SAGA_INPUT_EVALUATED;
        name = word(&rest);
        input.evaluated.what = slice_is(name, "args")     ? EVALUATE_ARGS
                               : slice_is(name, "output") ? EVALUATE_OUTPUT
                               : slice_is(name, "locks")  ? EVALUATE_LOCKS
                                                          : EVALUATE_UNDO;
        input.evaluated.step = step_of(history, word(&rest));
        input.evaluated.skipped = slice_is(rest, "skipped");
        input.evaluated.value = input.evaluated.skipped ? SLICE_NONE : rest;
    } else if (slice_is(verb, "abort")) {
        input.type = SAGA_INPUT_ABORT;
        input.abort.actor = SLICE("ann");
        input.abort.note = rest;
    } else {
        assert_true(slice_is(verb, "start"));
        input.start.namespace = SLICE("default");
        input.start.input = rest;
    }
    return input;
}

/* --- writing --- */

static void write_turn(struct history *history, struct slice line)
{
    struct trial *trial = &history->trial;
    size_t from = trial->log.len;
    enum err_code code = trial_input(trial, read_input(history, (struct slice){line.ptr + 1, line.len - 1}));

    buffer_put_slice(&history->out, line);
    buffer_put_char(&history->out, '\n');
    if (code != ERR_OK) {
        buffer_printf(&history->out, "refused %s: %s%s%s\n", err_name(code), trial->err.message,
                      trial->err.detail[0] ? " " : "", trial->err.detail);
    }
    buffer_put(&history->out, trial->log.ptr + from, trial->log.len - from);
    buffer_printf(&history->out, "wants: %s\n\n", trial_wants(trial));
}

static void write_state(struct history *history)
{
    struct trial *trial = &history->trial;

    buffer_put_text(&history->out, "state\n");
    saga_write_json(&trial->saga, &history->out);
    buffer_put_text(&history->out, "\n");
    if (trial->saga.escalation.number) {
        buffer_put_text(&history->out, "escalation\n");
        saga_write_escalation(&trial->saga, &history->out);
        buffer_put_text(&history->out, "\n");
    }
    for (uint32_t i = 0; i < trial->saga.definition->step_count; i++) {
        for (unsigned d = 0; d < DIRECTION_COUNT; d++) {
            const struct operation *op =
                d == DIRECTION_UNDO ? step_undo(&trial->saga.steps[i]) : &trial->saga.steps[i].forward;

            if (!uuid_is_nil(&op->key.uuid)) {
                buffer_put_text(&history->out, "operation\n");
                saga_write_operation(&trial->saga, i, (enum direction)d, &history->out);
                buffer_put_text(&history->out, "\n");
            }
        }
    }
    for (uint32_t i = 0; i < trial->saga.definition->step_count; i++) {
        if (trial->saga.steps[i].approval) {
            buffer_put_text(&history->out, "approval\n");
            saga_write_approval(&trial->saga, i, &history->out);
            buffer_put_text(&history->out, "\n");
        }
    }
}

static void run(struct history *history, struct slice text)
{
    struct slice definition = SLICE_NONE;
    bool generated = false;

    buffer_init(&history->out, FILE_BYTES_MAX);
    while (text.len > 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        struct slice line = {text.ptr, end ? (size_t)(end - text.ptr) : text.len};

        text.ptr += line.len + (end != NULL);
        text.len -= line.len + (end != NULL);
        if (slice_is(line, "definition")) {
            definition.ptr = text.ptr;
        } else if (slice_is(line, "end") && !generated) {
            definition.len = (size_t)(line.ptr - definition.ptr);
            trial_open_text(&history->trial, definition);
            generated = true;
            buffer_put_text(&history->out, "end\n\n");
            continue;
        }
        if (!generated) {
            buffer_put_slice(&history->out, line);
            buffer_put_char(&history->out, '\n');
        } else if (slice_starts_with(line, ">")) {
            write_turn(history, line);
        } else if (slice_starts_with(line, "#")) {
            buffer_put_slice(&history->out, line);
            buffer_put_char(&history->out, '\n');
        }
    }
    assert_true(generated);
    write_state(history);
    assert_false(history->out.overflow);
    trial_check_replay(&history->trial);
}

/* --- files --- */

static char *read_file(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, FILE_BYTES_MAX + 1);

    assert_non_null(text);
    if (!file) {
        fail_msg("cannot open %s", path);
    }
    *len = fread(text, 1, FILE_BYTES_MAX, file);
    (void)fclose(file);
    return text;
}

static void write_file(const char *path, struct slice text)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(text.ptr, 1, text.len, file), text.len);
    assert_int_equal(fclose(file), 0);
}

static struct slice next_line(struct slice *text)
{
    const char *end = memchr(text->ptr, '\n', text->len);
    struct slice line = {text->ptr, end ? (size_t)(end - text->ptr) : text->len};

    text->ptr += line.len + (end != NULL);
    text->len -= line.len + (end != NULL);
    return line;
}

static bool is_as_it_was(struct slice is, struct slice should)
{
    bool is_view = false; /* the line before says that a view follows */

    while (is.len > 0 && should.len > 0) {
        struct slice now = next_line(&is), before = next_line(&should);

        if (!slice_equal(now, before) && !(is_view && json_holds(now, before))) {
            return false;
        }
        is_view = slice_is(now, "state") || slice_is(now, "escalation") || slice_is(now, "operation") ||
                  slice_is(now, "approval");
    }
    return is.len == 0 && should.len == 0;
}

static void first_difference(const char *path, struct slice is, struct slice should)
{
    size_t at = 0, line = 1, begin = 0;

    while (at < is.len && at < should.len && is.ptr[at] == should.ptr[at]) {
        if (is.ptr[at] == '\n') {
            line++;
            begin = at + 1;
        }
        at++;
    }
    fail_msg("%s:%zu differs:\n  now  %.200s\n  file %.200s\nREGENERATE=1 writes it anew, if that is what you mean.",
             path, line, is.ptr + begin, should.ptr + begin);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct trial trial;

TEST(every_history_is_as_it_was)
{
    const char *dir_name = getenv("GOLDEN_DIR");
    char *names[FILES_MAX];
    size_t count = 0;
    DIR *dir;
    struct dirent *entry;

    assert_non_null(dir_name);
    dir = opendir(dir_name);
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        size_t len = strlen(entry->d_name);

        if (len > 4 && strcmp(entry->d_name + len - 4, ".txt") == 0) {
            assert_true(count < FILES_MAX);
            names[count++] = strdup(entry->d_name);
        }
    }
    (void)closedir(dir);
    assert_true(count > 0);
    qsort(names, count, sizeof(names[0]), by_name);
    for (size_t i = 0; i < count; i++) {
        struct history history = {0};
        char path[4096];
        size_t len;
        char *text;
        struct slice now;

        (void)snprintf(path, sizeof(path), "%s/%s", dir_name, names[i]);
        text = read_file(path, &len);
        run(&history, (struct slice){text, len});
        now = buffer_slice(&history.out);
        if (getenv("REGENERATE")) {
            write_file(path, now);
        } else if (!is_as_it_was(now, (struct slice){text, len})) {
            (void)buffer_c(&history.out); /* ends with a NUL, as the message needs it */
            now = buffer_slice(&history.out);
            first_difference(path, now, (struct slice){text, len});
        }
        free(text);
        free(names[i]);
        trial_close(&history.trial);
        buffer_fini(&history.out);
    }
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
