/*
 * What each verb would lead to, saga by saga. The tests read a preview as lines:
 *   "resolve happened -> completed: calls c"    "retry refused conflict"
 * with "undoes a,b", "leaves a" and "waits ..." behind the calls. "(unless b)" means that the condition of b is false.
 */
#include <stdio.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/json.h"
#include "core/prove/preview.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

static const char *text_of(const cJSON *object, const char *name)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* Writes " calls a,b", with "!" behind the name of a step that is undone; writes nothing for an empty list. */
static void put_list(struct buffer *out, const char *word, const cJSON *list)
{
    const cJSON *item;
    const char *before = word;

    cJSON_ArrayForEach(item, list)
    {
        const char *direction = text_of(item, "direction");

        buffer_printf(out, "%s%s%s%s", before == word ? " " : "", before == word ? word : "",
                      before == word ? " " : ",", cJSON_IsString(item) ? item->valuestring : text_of(item, "step"));
        buffer_put_text(out, direction && strcmp(direction, "undo") == 0 ? "!" : "");
        before = ",";
    }
}

static void put_end(struct buffer *out, const cJSON *end)
{
    const char *branch = text_of(end, "if");

    buffer_printf(out, " ->%s%s %s", branch ? " " : "", branch ? branch : "", text_of(end, "status"));
    put_list(out, "calls", cJSON_GetObjectItemCaseSensitive(end, "calls"));
    put_list(out, "undoes", cJSON_GetObjectItemCaseSensitive(end, "undone"));
    put_list(out, "leaves", cJSON_GetObjectItemCaseSensitive(end, "standing"));
    if (text_of(end, "waits_for")) {
        buffer_printf(out, " waits for %s", text_of(end, "waits_for"));
    }
    if (text_of(end, "unless_begins")) {
        buffer_printf(out, " (unless %s)", text_of(end, "unless_begins"));
    }
}

static unsigned slices; /* the slices of the last preview */

/* Returns the line of a verb. `name` is for example "resolve"; the next two are "happened" or NULL and "retry" or NULL.
 * The line is in the arena of the trial. */
static const char *preview_of(struct trial *trial, const struct preview_question *question, const char *name,
                              const char *as, const char *then)
{
    struct buffer json, line;
    const cJSON *verb, *end;

    buffer_init(&json, SIZE_MAX / 2);
    buffer_init(&line, SIZE_MAX / 2);
    struct preview *preview = preview_new(&trial->saga, question, trial->now_ms, &trial->arena, &json);

    for (slices = 1; !preview_play(preview, 1); slices++) { /* one turn in each slice */
    }
    cJSON *tree = cJSON_Parse(buffer_c(&json));

    assert_non_null(tree);
    cJSON_ArrayForEach(verb, cJSON_GetObjectItemCaseSensitive(tree, "verbs"))
    {
        const char *its_as = text_of(verb, "as"), *its_then = text_of(verb, "then");

        if (strcmp(text_of(verb, "verb"), name) != 0 || (as == NULL) != (its_as == NULL) ||
            (as && strcmp(as, its_as) != 0) || (then == NULL) != (its_then == NULL)) {
            continue;
        }
        if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(verb, "allowed"))) {
            buffer_printf(&line, "refused %s", text_of(verb, "refused"));
        }
        buffer_put_text(&line, cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(verb, "accept_double")) ? "double" : "");
        cJSON_ArrayForEach(end, cJSON_GetObjectItemCaseSensitive(verb, "ends"))
        {
            put_end(&line, end);
        }
    }
    const char *text = arena_printf(&trial->arena, "%s", buffer_c(&line)).ptr;

    cJSON_Delete(tree);
    buffer_fini(&json);
    buffer_fini(&line);
    return text;
}

static struct preview_question about_case(const struct trial *trial)
{
    return (struct preview_question){.escalation = trial->saga.escalation.number, .steps_max = PREVIEW_STEPS_MAX};
}

static struct preview_question about_operation(const struct trial *trial, const char *step)
{
    return (struct preview_question){.key = trial->saga.steps[trial_step(trial, step)].forward.key,
                                     .steps_max = PREVIEW_STEPS_MAX};
}

#define ASSERT_PREVIEW(trial, question, name, as, then, line)                                                          \
    assert_string_equal(preview_of((trial), &(question), (name), (as), (then)), (line))

static void open_stuck(struct trial *trial)
{
    trial_open(trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'pay','call':'once'},{'id':'c','call':'keyed'}"));
    trial_start(trial, "{}");
    trial_play(trial, "a, timer pay, pay unknown");
}

static struct trial trial;

TEST(a_verdict_on_a_case_leads_on_or_back)
{
    open_stuck(&trial);
    struct preview_question question = about_case(&trial);

    assert_int_not_equal(question.escalation, 0);
    ASSERT_PREVIEW(&trial, question, "resolve", "happened", NULL, " -> completed calls c leaves a,pay,c");
    ASSERT_PREVIEW(&trial, question, "resolve", "not_happened", NULL, " -> compensated calls a! undoes a");
    ASSERT_PREVIEW(&trial, question, "resolve", "not_happened", "retry", " -> completed calls pay,c leaves a,pay,c");
    ASSERT_PREVIEW(&trial, question, "resolve", "undone", NULL, " -> compensated calls a! undoes a,pay");
    ASSERT_PREVIEW(&trial, question, "retry", NULL, NULL, "double -> completed calls pay,c leaves a,pay,c");
    ASSERT_PREVIEW(&trial, question, "abandon", NULL, NULL, " -> abandoned leaves a,pay");
    ASSERT_PREVIEW(&trial, question, "probe", NULL, NULL, "refused conflict");
}

TEST(a_preview_changes_nothing_of_the_saga)
{
    struct arena arena;

    open_stuck(&trial);
    arena_init(&arena, 65536);
    struct preview_question question = about_case(&trial);
    struct slice before = trial_view(&trial, &arena);
    uint64_t seq = trial.saga.seq;

    ASSERT_PREVIEW(&trial, question, "resolve", "happened", NULL, " -> completed calls c leaves a,pay,c");
    assert_int_equal(trial.saga.seq, seq);
    assert_true(slice_equal(before, trial_view(&trial, &arena)));
    trial_check_replay(&trial);
    /* The preview says what then happens. */
    assert_int_equal(trial_resolve(&trial, true, "{'id':'x'}"), ERR_OK);
    trial_play_until(&trial, "c", SAGA_COMPLETED);
    arena_fini(&arena);
}

TEST(an_operation_has_a_preview_before_anybody_is_asked)
{
    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'pay','call':'once_probed'}"), "{}");
    trial_play(&trial, "a, timer pay, pay unknown, probe pay unknown");
    assert_int_equal(trial.saga.escalation.number, 0);
    struct preview_question question = about_operation(&trial, "pay"), other = about_operation(&trial, "a");

    ASSERT_PREVIEW(&trial, question, "resolve", "happened", NULL, " -> completed leaves a,pay");
    ASSERT_PREVIEW(&trial, question, "resolve", "not_happened", NULL, " -> compensated calls a! undoes a");
    ASSERT_PREVIEW(&trial, question, "resolve", "undone", NULL, " -> compensated calls a! undoes a,pay");
    ASSERT_PREVIEW(&trial, other, "resolve", "not_happened", NULL, "refused already-decided");
}

TEST(an_open_condition_has_both_ends)
{
    trial_begin(&trial,
                TRIAL_SAGA("{'id':'pay','call':'once'},"
                           "{'id':'gift','call':'keyed','when':'${ .input.gift }'},{'id':'c','call':'keyed'}"),
                "{}");
    trial_play(&trial, "timer pay, pay unknown");
    struct preview_question question = about_case(&trial);

    ASSERT_PREVIEW(&trial, question, "resolve", "happened", NULL,
                   " -> completed calls gift,c leaves pay,gift,c"
                   " -> completed calls c leaves pay,c (unless gift)");
}

TEST(a_compensation_that_failed_can_be_retried_or_left)
{
    trial_begin(&trial,
                TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'b','call':'by_checked'},{'id':'c','call':'keyed'}"), "{}");
    trial_play(&trial, "a, b, c failed, timer undo b, undo b failed");
    while (trial.saga.escalation.number == 0) { /* until its tries are used up */
        trial_play(&trial, "timer undo b");
        if (trial.saga.escalation.number == 0) {
            trial_play(&trial, "undo b failed");
        }
    }
    struct preview_question question = about_case(&trial);

    ASSERT_PREVIEW(&trial, question, "retry", NULL, NULL, " -> compensated calls b!,a! undoes b,a");
    ASSERT_PREVIEW(&trial, question, "waive", NULL, NULL, " -> abandoned calls a! undoes a leaves b");
    ASSERT_PREVIEW(&trial, question, "skip", NULL, NULL, "refused conflict");
}

TEST(an_abort_undoes_what_stands)
{
    static const struct preview_question saga = {.steps_max = PREVIEW_STEPS_MAX};

    trial_begin(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'},{'id':'s','sleep':'1h'},{'id':'m','call':'mail'}"), "{}");
    trial_play(&trial, "a");
    ASSERT_PREVIEW(&trial, saga, "abort", NULL, NULL, " -> compensated calls a! undoes a");
    trial_play(&trial, "timer s, timer m, m");
    ASSERT_PREVIEW(&trial, saga, "abort", NULL, NULL, "refused past-point-of-no-return");
}

/* A turn of a large saga takes long. The caller must be able to do other work between any two turns. */
TEST(a_long_play_is_played_in_slices_and_has_a_bound)
{
    static const struct preview_question whole = {.steps_max = PREVIEW_STEPS_MAX}, bounded = {.steps_max = 100};
    struct buffer steps;

    buffer_init(&steps, SIZE_MAX / 2);
    buffer_put_text(&steps, "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'trial','steps':[");
    for (unsigned i = 0; i < 20; i++) {
        buffer_printf(&steps, "{'id':'s%u','call':'keyed'},", i);
    }
    buffer_put_text(&steps, "{'id':'z','sleep':'1h'}]}]}");
    trial_begin(&trial, buffer_c(&steps), "{}");
    for (unsigned i = 0; i < 20; i++) {
        char name[8];

        (void)snprintf(name, sizeof(name), "s%u", i);
        trial_settle(&trial, name, OUTCOME_COMPLETED);
    }
    assert_non_null(strstr(preview_of(&trial, &whole, "abort", NULL, NULL), "-> compensated calls s19!,s18!,"));
    assert_true(slices > 20);
    const char *line = preview_of(&trial, &bounded, "abort", NULL, NULL);

    assert_non_null(strstr(line, "-> compensating"));
    assert_non_null(strstr(line, " waits for more than a preview plays"));
    trial_close(&trial);
    buffer_fini(&steps);
}

TEST_PROGRAM_CLOSING(trial, trial_close_sound)
