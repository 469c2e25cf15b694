/*
 * Inputs that are large but allowed. No input may end the engine, and none may hold up its saga for good. Each of these
 * texts is longer than a record of the other tests may be, so the machine is driven without a written log.
 */
#include "tests/unit/group_trial.h"

static struct slice text_of(struct arena *arena, size_t bytes)
{
    char *text = arena_alloc(arena, bytes);

    memset(text, 'x', bytes);
    return (struct slice){text, bytes};
}

/* Decides and applies an input without writing it down. */
static enum err_code drive(struct trial *trial, struct saga_input input)
{
    struct records *out = &trial->records;
    enum err_code code;

    input.now_ms = trial->now_ms;
    input.escalation_number = trial->next_escalation;
    input.approval_number = trial->next_approval;
    input.number_stride = 64;
    arena_reset(&trial->turn);
    code = saga_decide(&trial->saga, &input, &trial->turn, out, &trial->err);
    for (size_t i = 0; code == ERR_OK && i < out->count; i++) {
        trial->next_escalation += out->items[i].type == RECORD_ESCALATION_OPENED ? 64 : 0;
        trial->next_approval += out->items[i].type == RECORD_STEP_WAITING ? 64 : 0;
        saga_apply(&trial->saga, &out->items[i]);
    }
    return code;
}

static enum err_code start(struct trial *trial, struct slice input, struct slice tags)
{
    struct saga_input start = {.type = SAGA_INPUT_START};

    start.start.namespace = SLICE("default");
    start.start.input = input;
    start.start.tags = tags;
    return drive(trial, start);
}

TEST(a_saga_of_very_many_tools_starts)
{
    struct trial trial;
    struct definition definition;
    const struct tool **tools;

    trial_open(&trial, TRIAL_SAGA("{'id':'a','call':'keyed'}"));
    definition = *trial.definition; /* as if the children had 10,000 steps with their own tools */
    definition.tool_count = 20000;
    tools = arena_array(&trial.arena, definition.tool_count, sizeof(*tools));
    for (uint32_t i = 0; i < definition.tool_count; i++) {
        struct tool *tool = arena_dup(&trial.arena, definition.tools[0], sizeof(*tool));

        tool->name = arena_printf(&trial.arena, "%.*s.%05u", 120, text_of(&trial.arena, 120).ptr, i);
        tools[i] = tool;
    }
    definition.tools = tools;
    trial.saga.definition = &definition;
    assert_int_equal(start(&trial, SLICE("{}"), SLICE_NONE), ERR_OK);
    assert_true(trial.records.items[0].tools.len > (size_t)2 << 20);
    assert_int_equal(json_count(trial.records.items[0].tools), 20000);
    trial_close(&trial);
}

TEST(a_saga_with_long_tags_starts)
{
    struct trial trial;
    struct slice long_text, document, tags;

    *(&trial) = (struct trial){0};
    arena_init(&trial.arena, 4096);
    long_text = text_of(&trial.arena, 700000);
    document = arena_printf(&trial.arena,
                            "{'tools':[" TRIAL_TOOLS "],'sagas':[{'name':'trial','tags':{'mine':'%.*s'},'steps':["
                            "{'id':'a','call':'keyed'}]}]}",
                            SLICE_ARG(long_text));
    document = trial_json(&trial.arena, arena_text(&trial.arena, document));
    tags = trial_json(&trial.arena,
                      arena_text(&trial.arena, arena_printf(&trial.arena, "{'theirs':'%.*s'}", SLICE_ARG(long_text))));
    struct arena kept = trial.arena;

    trial_open_text(&trial, document);
    assert_int_equal(start(&trial, SLICE("{}"), tags), ERR_OK);
    assert_int_equal(json_count(trial.saga.tags), 2);
    trial_close(&trial);
    arena_fini(&kept);
}

TEST(a_person_is_shown_the_beginning_of_a_very_long_reason)
{
    struct saga_input input = {.type = SAGA_INPUT_ADMITTED};
    struct trial trial;
    struct slice detail;

    trial_open(&trial, TRIAL_SAGA("{'id':'a','call':'limited','on_failure':'escalate'}"));
    assert_int_equal(start(&trial, SLICE("{}"), SLICE_NONE), ERR_OK);
    input.admitted.step = trial_step(&trial, "a");
    input.admitted.admission = ADMISSION_BLOCKED;
    input.admitted.detail = text_of(&trial.arena, (size_t)4 << 20);
    memset((char *)(uintptr_t)input.admitted.detail.ptr, '\1',
           input.admitted.detail.len); /* each byte takes six bytes as JSON */
    memcpy((char *)(uintptr_t)input.admitted.detail.ptr + 16383, "\xc3\xa4", 2);
    assert_int_equal(drive(&trial, input), ERR_OK);
    is(&trial, SAGA_ESCALATED);
    detail = json_string(json_member(trial.saga.escalation.evidence, "detail"), &trial.arena);
    assert_int_equal(detail.len, 16383); /* cut between characters */
    assert_int_equal(trial.saga.steps[0].forward.detail.len, (size_t)4 << 20);
    trial_close(&trial);
}

static struct slice nested(struct arena *arena, unsigned levels, const char *inside)
{
    struct slice text = slice_of(inside);

    for (unsigned i = 0; i < levels; i++) {
        text = arena_printf(arena, "[%.*s]", SLICE_ARG(text));
    }
    return text;
}

/* A value that could be written but not read back would be lost with the engine that wrote it. */
TEST(a_rendered_document_is_not_deeper_than_can_be_read_back)
{
    const struct {
        unsigned around, input;
        bool fits;
    } cases[] = {{1, 10, true}, {30, 40, true}, {30, 43, false}, {50, 60, false}};

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct trial trial;
        struct arena arena;
        struct slice with, input;

        arena_init(&arena, 4096);
        with = nested(&arena, cases[i].around - 1, "'${ .input.in }'");
        input = nested(&arena, cases[i].input - 1, "'[\\\\'");
        trial_open_text(
            &trial, trial_json(&arena, arena_text(&arena, arena_printf(&arena,
                                                                       "{'tools':[" TRIAL_TOOLS
                                                                       "],'sagas':[{'name':'trial','steps':[{'id':'a',"
                                                                       "'call':'keyed','with':{'deep':%.*s}}]}]}",
                                                                       SLICE_ARG(with)))));
        input = arena_printf(&arena, "{'in':[%.*s]}", SLICE_ARG(input));
        trial_start(&trial, arena_text(&arena, input)); /* reads each record back */
        is(&trial, cases[i].fits ? SAGA_RUNNING : SAGA_COMPENSATED);
        if (!cases[i].fits) {
            same(trial.saga.steps[0].forward.error, "arguments");
        }
        trial_close_sound(&trial);
        arena_fini(&arena);
    }
}

/* --- what is sent --- */

#define LONG_VALUE "0123456789012345678901234567890123456789"
#define LONG_INPUT                                                                                                     \
    "{'text':'" LONG_VALUE "'}" /* with the member of `with` around it, the input has more than 60 bytes */
#define TWICE "{'one':'${ .input.text }','two':'${ .input.text }'}"

static void open_bounded(struct trial *trial, const char *document)
{
    trial_open(trial, document);
    trial->payload_bytes_max = 60;
    trial_start(trial, LONG_INPUT);
}

TEST(arguments_beyond_the_bound_are_not_sent)
{
    struct saga_input evaluated = {.type = SAGA_INPUT_EVALUATED};
    struct trial trial;

    open_bounded(&trial, TRIAL_SAGA("{'id':'a','call':'keyed','with':" TWICE "}"));
    assert_string_equal(trial_records(&trial), "saga.started, step.failed a, saga.failing a, compensation.planned, "
                                               "saga.compensated");
    same(trial.saga.steps[0].forward.error, "arguments");
    same(trial.saga.steps[0].forward.detail,
         "the arguments have 99 bytes, and at most 60 are allowed: pass references instead of large values");
    trial_close_sound(&trial);

    open_bounded(&trial, TRIAL_SAGA("{'id':'a','call':'keyed','with':{'n':'${ 1 + 1 }'}}"));
    evaluated.evaluated.what = EVALUATE_ARGS;
    evaluated.evaluated.value = SLICE("{\"n\":\"" LONG_VALUE LONG_VALUE "\"}");
    assert_int_equal(trial_input(&trial, evaluated), ERR_OK);
    same(trial.saga.steps[0].forward.error, "arguments");
    is(&trial, SAGA_COMPENSATED);
    trial_close_sound(&trial);
}

TEST(arguments_of_just_the_bound_are_sent)
{
    struct trial trial;

    trial_open(&trial, TRIAL_SAGA("{'id':'a','call':'keyed','with':" TWICE "}"));
    trial.payload_bytes_max = 99;
    trial_start(&trial, LONG_INPUT);
    assert_string_equal(trial_records(&trial), "saga.started, step.intent a");
    trial_close_sound(&trial);
}

TEST(an_undo_with_arguments_beyond_the_bound_is_asked_about)
{
    const char *frozen = TRIAL_SAGA("{'id':'a','call':'keyed','compensate':{'tool':'undo','with':" TWICE
                                    "}},{'id':'z','call':'keyed'}"),
               *evaluated = TRIAL_SAGA("{'id':'a','call':'keyed','compensate':{'tool':'undo','tolerates_absent':true,"
                                       "'voids_key':true,'with':{'n':'${ 1 + 1 }'}}}");
    struct saga_input answer = {.type = SAGA_INPUT_EVALUATED};
    struct trial trial;

    open_bounded(&trial, frozen);
    trial_play(&trial, "a, z failed");
    assert_string_equal(
        trial_records(&trial),
        "step.failed z, saga.failing z, compensation.planned, compensation.failed a, escalation.opened a");
    is(&trial, SAGA_ESCALATED);
    same(step_undo(&trial.saga.steps[0])->detail,
         "the arguments have 99 bytes, and at most 60 are allowed: pass references instead of large values");
    assert_int_equal(trial_operator(&trial, OPERATOR_WAIVE), ERR_OK);
    is(&trial, SAGA_ABANDONED);
    trial_close_sound(&trial);

    open_bounded(&trial, evaluated);
    for (int i = 0; i < 3; i++) {
        trial_play(&trial, "a unknown");
        if (i < 2) {
            trial_play(&trial, "timer a");
        }
    }
    answer.evaluated.what = EVALUATE_UNDO;
    answer.evaluated.value = SLICE("{\"n\":\"" LONG_VALUE LONG_VALUE "\"}");
    trial_takes(&trial, trial_input(&trial, answer), "compensation.failed a, escalation.opened a");
    trial_close_sound(&trial);
}

TEST(a_child_with_an_input_beyond_the_bound_does_not_begin)
{
    struct trial trial;

    open_bounded(&trial,
                 SAGAS("{'id':'c','saga':'c','with':" TWICE "}", "{'name':'c','steps':[{'id':'b','call':'keyed'}]}"));
    assert_string_equal(trial_records(&trial), "saga.started, step.failed c, saga.failing c, compensation.planned, "
                                               "saga.compensated");
    same(trial.saga.steps[0].forward.detail,
         "the input of the child has 99 bytes, and at most 60 are allowed: pass references instead of large values");
    trial_close_sound(&trial);
}

TEST(a_follower_with_an_input_beyond_the_bound_is_told_of)
{
    struct trial trial;

    open_bounded(&trial, ROOT("'then':[{'saga':'f','input':" TWICE "},{'saga':'f','input':{}}]",
                              "{'id':'a','call':'keyed'}", "{'name':'f','steps':[{'id':'b','call':'keyed'}]}"));
    trial_play_until(&trial, "a", SAGA_COMPLETED);
    same(trial.saga.failing_reason, "then");
    same(trial.saga.failing_detail, "f does not follow: its input has 99 bytes, and at most 60 are allowed: pass "
                                    "references instead of large values");
    assert_int_equal(json_count(trial.saga.followers), 1);
    trial_close_sound(&trial);
}

/* --- turns --- */

static struct saga_input timer_of(struct trial *trial)
{
    struct saga_input input = {.type = SAGA_INPUT_TIMER};
    struct wants wants;

    saga_wants(&trial->saga, &trial->arena, &wants);
    for (size_t i = 0; i < wants.count; i++) {
        if (wants.items[i].type == WANT_TIMER && wants.items[i].due_ms == 0) {
            input.timer.step = wants.items[i].step;
            input.timer.direction = wants.items[i].direction;
            return input;
        }
    }
    fail_msg("there is no timer for what is left over");
    return input;
}

static size_t bytes_of(const struct records *records)
{
    size_t bytes = 0;

    for (size_t i = 0; i < records->count; i++) {
        bytes += records->items[i].args.len + records->items[i].result.len;
    }
    return bytes;
}

#define TURN_MAX ((size_t)13 << 20) /* 8 MiB and one more payload */

static struct slice large_input(struct arena *arena, unsigned elements)
{
    struct slice text = arena_printf(arena, "{\"text\":\"%.*s\",\"list\":[0", SLICE_ARG(text_of(arena, 1000000)));

    for (unsigned i = 1; i < elements; i++) {
        text = arena_printf(arena, "%.*s,%u", SLICE_ARG(text), i);
    }
    return arena_printf(arena, "%.*s]}", SLICE_ARG(text));
}

/* None of these elements makes a call that would bring the next turn. */
TEST(elements_that_wait_begin_in_as_many_turns_as_they_need)
{
    struct trial trial;
    unsigned turns = 0;

    trial_open(&trial, TRIAL_SAGA("{'id':'each','for_each':'${ .input.list }','concurrency':100,"
                                  "'approve':{'show':'${ .input.text }'}}"));
    assert_int_equal(start(&trial, large_input(&trial.arena, 40), SLICE_NONE), ERR_OK);
    while (trial.saga.steps[0].begun < 40) {
        uint32_t begun = trial.saga.steps[0].begun;

        assert_true(bytes_of(&trial.records) < TURN_MAX);
        assert_int_equal(saga_rests_until(&trial.saga, &trial.arena),
                         0); /* the saga does not leave memory in this state */
        assert_int_equal(drive(&trial, timer_of(&trial)), ERR_OK);
        assert_true(trial.saga.steps[0].begun > begun);
        turns++;
    }
    assert_true(turns >= 3);
    assert_string_equal(trial_wants(&trial), "");
    is(&trial, SAGA_WAITING);
    trial_close(&trial);
}

TEST(undoing_begins_in_as_many_turns_as_it_needs)
{
    struct trial trial;
    unsigned turns = 0, undone = 0;
    uint32_t step;

    trial_open(&trial,
               ROOT("'compensation':{'concurrency':100}",
                    "{'id':'each','for_each':'${ .input.list }','concurrency':100,'call':'keyed',"
                    "'compensate':{'tool':'undo','with':{'text':'${ .input.text }'}}},{'id':'z','call':'keyed'}",
                    "{'name':'unused','steps':[{'id':'a','call':'keyed'}]}"));
    assert_int_equal(start(&trial, large_input(&trial.arena, 40), SLICE_NONE), ERR_OK);
    while ((step = wanted_call(&trial, DIRECTION_DO)) != STEP_NONE) {
        struct outcome outcome = {.kind = step == 1 ? OUTCOME_FAILED : OUTCOME_COMPLETED};

        assert_int_equal(drive(&trial, trial_outcome(&trial, SAGA_INPUT_SETTLED, step, DIRECTION_DO, 1, outcome)),
                         ERR_OK);
    }
    while (trial.saga.undo_active < 40) {
        uint32_t active = trial.saga.undo_active;

        assert_true(bytes_of(&trial.records) < TURN_MAX);
        assert_int_equal(drive(&trial, timer_of(&trial)), ERR_OK);
        assert_true(trial.saga.undo_active > active);
        turns++;
    }
    assert_true(turns >= 3);
    for (; (step = wanted_call(&trial, DIRECTION_UNDO)) != STEP_NONE; undone++) {
        struct outcome outcome = {.kind = OUTCOME_COMPLETED};

        assert_int_equal(drive(&trial, trial_outcome(&trial, SAGA_INPUT_SETTLED, step, DIRECTION_UNDO, 1, outcome)),
                         ERR_OK);
    }
    assert_int_equal(undone, 40);
    is(&trial, SAGA_COMPENSATED);
    trial_close(&trial);
}

/* Elements that a full turn left over are evaluated in the next turn, and their condition is asked all the same. */
TEST(a_condition_is_asked_of_what_a_full_turn_left_over)
{
    struct saga_input evaluated = {.type = SAGA_INPUT_EVALUATED};
    struct trial trial;

    trial_open(&trial, SAGAS("{'id':'each','for_each':'${ .input.list }','concurrency':100,'call':'keyed',"
                             "'with':{'text':'${ .input.text }'},'after':[]},{'id':'c','saga':'c','after':[]}",
                             "{'name':'c','steps':[{'id':'b','call':'keyed','when':'${ .input.no }',"
                             "'with':{'n':'${ 1 + 1 }'}}]}"));
    assert_int_equal(start(&trial, large_input(&trial.arena, 40), SLICE_NONE), ERR_OK);
    assert_true(trial.saga.steps[0].begun < 40);
    evaluated.evaluated.what = EVALUATE_ARGS;
    evaluated.evaluated.step = trial_step(&trial, "c/b");
    evaluated.evaluated.value = SLICE("{\"n\":2}");
    assert_int_equal(drive(&trial, evaluated), ERR_OK);
    assert_string_equal(trial_status(&trial, "c/b"), "skipped");
    trial_close(&trial);
}

/* Children in children, each with a result as large as that of its child. */
TEST(groups_end_in_as_many_turns_as_they_need)
{
    struct outcome outcome = {.kind = OUTCOME_COMPLETED};
    struct trial trial;
    unsigned turns = 0;

#define CHILD_OF(name, inner)                                                                                          \
    "{'name':'" name "','output':'${ .steps.s.result }','steps':[{'id':'s','saga':'" inner "'}]}"
    trial_open(
        &trial,
        SAGAS("{'id':'s','saga':'c1'}",
              CHILD_OF("c1", "c2") "," CHILD_OF("c2", "c3") "," CHILD_OF(
                  "c3", "c4") ","
                              "{'name':'c4','output':'${ .steps.s.result }','steps':[{'id':'s','call':'keyed'}]}"));
    assert_int_equal(start(&trial, SLICE("{}"), SLICE_NONE), ERR_OK);
    outcome.result = arena_printf(&trial.arena, "\"%.*s\"", SLICE_ARG(text_of(&trial.arena, (size_t)4 << 20 >> 1)));
    outcome.result = arena_printf(&trial.arena, "[%.*s,1]", SLICE_ARG(outcome.result));
    assert_int_equal(drive(&trial, trial_outcome(&trial, SAGA_INPUT_SETTLED, trial_step(&trial, "s/s/s/s/s"),
                                                 DIRECTION_DO, 1, outcome)),
                     ERR_OK);
    while (saga_status(&trial.saga) != SAGA_COMPLETED) {
        assert_true(bytes_of(&trial.records) < TURN_MAX);
        assert_int_equal(drive(&trial, timer_of(&trial)), ERR_OK);
        assert_true(trial.records.count > 0);
        turns++;
    }
    assert_true(turns >= 1);
    trial_close(&trial);
}

TEST_PROGRAM(NULL, NULL)
