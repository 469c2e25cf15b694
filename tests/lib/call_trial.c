/* See call_trial.h. */
#include <string.h>

#include "tests/lib/call_trial.h"
#include "tests/lib/record_lines.h"
#include "tests/lib/test.h"

#include "base/json.h"
#include "core/saga/rest.h"

#define COMPENSATED ",'compensate':{'tool':'undo','with':{'id':'${ .result.id }'}}"
#define KEYED_IF_SENT                                                                                                  \
    "'builtin':{'do':'echo'},'effect':{'if':'${ .args.send }','then':'keyed','else':'read'},'key':{'window':'60s'}"
#define KEYED "'builtin':{'do':'echo'},'effect':'keyed','key':{'window':'60s'}" COMPENSATED
#define PROBED                                                                                                         \
    ",'probe':{'builtin':{'do':'echo'},'outcome':{'completed':'${ .response.ok }','absent':'${ .response.no "          \
    "}'},'visibility':'5s','give_up_after':'1h'}"

static const char *const tool_texts[] = {
    "{'name':'undo','builtin':{'do':'echo'},'effect':'idempotent'}",
    "{'name':'look','builtin':{'do':'echo'},'effect':'read'}",
    "{'name':'coalesce'," KEYED ",'material':['/amount']}",
    "{'name':'strict'," KEYED "}",
    "{'name':'refuse'," KEYED ",'on_duplicate':'refuse'}",
    "{'name':'escalate'," KEYED ",'on_duplicate':'escalate'}",
    "{'name':'allow'," KEYED ",'on_duplicate':'allow'}",
    "{'name':'again'," KEYED ",'ttl':'1h','on_expired':'again'}",
    "{'name':'mail','builtin':{'do':'echo'},'effect':'once','terminal':true}",
    "{'name':'announce','builtin':{'do':'echo'},'effect':{'if':'${ .args.send "
    "}','then':'once','else':'read'},'terminal':true}",
    "{'name':'fetch'," KEYED_IF_SENT COMPENSATED "}",
    "{'name':'once','builtin':{'do':'echo'},'effect':'once'" COMPENSATED "}",
    "{'name':'checked','builtin':{'do':'echo'},'effect':'checked'" COMPENSATED PROBED "}",
    "{'name':'idempotent','builtin':{'do':'echo'},'effect':'idempotent'" COMPENSATED "}",
    "{'name':'paid'," KEYED ",'cost':100}",
    "{'name':'limited'," KEYED ",'rate':{'limit':1,'per':'1s'}}",
};

static struct slice plain(struct arena *arena, const char *text)
{
    char *copy;

    if (!text) {
        return SLICE_NONE;
    }
    copy = arena_text(arena, slice_of(text));
    for (char *c = copy; *c; c++) {
        if (*c == '\'') {
            *c = '"';
        }
    }
    return slice_of(copy);
}

/* Finds a version of a tool; version 0 is the newest. */
static const struct tool *find_version(const struct call_trial *t, struct slice name, uint32_t version)
{
    for (size_t i = t->tool_count; i-- > 0;) {
        if ((version == 0 || t->tools[i]->version == version) && slice_equal(t->tools[i]->name, name)) {
            return t->tools[i];
        }
    }
    return NULL;
}

static const struct tool *find_tool(const struct call_trial *t, struct slice name)
{
    const struct tool *tool = find_version(t, name, 0);

    if (!tool) {
        fail_msg("there is no tool %.*s", SLICE_ARG(name));
    }
    return tool;
}

static const struct tool *shelf_find(const struct tool_shelf *shelf, struct slice namespace, struct slice name,
                                     uint32_t version)
{
    (void)namespace;
    return find_version((const struct call_trial *)shelf, name, version);
}

static const struct definition *definition_of(struct call_trial *t, struct arena *arena)
{
    return definition_open(t->kind, &t->shelf, arena);
}

void call_trial_register(struct call_trial *t, const char *text)
{
    struct slice json = plain(&t->arena, text);
    const struct tool *before = find_version(t, json_string(json_member(json, "name"), &t->arena), 0);
    struct faults faults;

    CHECK(t->tool_count < CALL_TRIAL_TOOLS_MAX);
    faults_init(&faults, &t->arena);
    t->tools[t->tool_count++] = tool_compile(json, before ? before->version + 1 : 1, SLICE(""), &t->arena, &faults);
    if (faults.count > 0) {
        fail_msg("%s: %.*s", text, SLICE_ARG(faults.items[0].detail));
    }
}

static const struct saga_id id = {{{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 0x09}}};

static void trial_init(struct call_trial *t, enum saga_kind kind)
{
    *t = (struct call_trial){
        .shelf = {.find = shelf_find}, .kind = kind, .now_ms = CALL_TRIAL_START_MS, .next_escalation = 64};
    arena_init(&t->arena, 16384);
    arena_init(&t->saga_arena, 16384);
    arena_init(&t->turn, 16384);
    buffer_init(&t->log, (size_t)64 << 20);
    for (size_t i = 0; i < COUNT_OF(tool_texts); i++) {
        call_trial_register(t, tool_texts[i]);
    }
    saga_init(&t->saga, &t->saga_arena, id, definition_of(t, &t->saga_arena));
}

void call_trial_run(struct call_trial *t)
{
    trial_init(t, SAGA_RUN);
}

void call_trial_open(struct call_trial *t, const char *budget, const char *loop, const char *on_timeout)
{
    struct saga_input input = {.type = SAGA_INPUT_START};

    trial_init(t, SAGA_OPEN);
    input.start.namespace = SLICE("default");
    input.start.deadline_ms = t->now_ms + 3600 * 1000;
    input.start.budget = plain(&t->arena, budget);
    input.start.loop = plain(&t->arena, loop);
    input.start.on_timeout = slice_of(on_timeout);
    assert_int_equal(call_trial_input(t, input), ERR_OK);
}

/* --- a run that rests, and the same run from its few bytes --- */

static void write_all(const struct saga *saga, struct buffer *out)
{
    saga_write_json(saga, out);
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        saga_write_operation(saga, i, DIRECTION_DO, out);
    }
}

/* Makes the run again from what is stored of it at rest. Returns NULL when it does not rest, or is not stored. */
static struct saga *from_rest(struct call_trial *t)
{
    struct saga *saga = arena_alloc(&t->turn, sizeof(*saga));
    struct buffer bytes, again, shown, should;
    bool is_stored;

    buffer_init(&bytes, (size_t)1 << 20);
    is_stored = saga_write_rest(&t->saga, &bytes);
    if (is_stored) {
        buffer_init(&again, (size_t)1 << 20);
        buffer_init(&shown, (size_t)64 << 20);
        buffer_init(&should, (size_t)64 << 20);
        assert_int_equal(saga_read_rest(saga, &t->turn, t->saga.id, definition_of(t, &t->turn), t->saga.namespace,
                                        t->saga.seq, buffer_slice(&bytes), &t->err),
                         ERR_OK);
        assert_true(saga_write_rest(saga, &again));
        assert_true(slice_equal(buffer_slice(&bytes), buffer_slice(&again)));
        write_all(&t->saga, &should);
        write_all(saga, &shown);
        assert_string_equal(buffer_c(&shown), buffer_c(&should));
        buffer_fini(&again);
        buffer_fini(&shown);
        buffer_fini(&should);
        t->rests++;
    }
    buffer_fini(&bytes);
    return is_stored ? saga : NULL;
}

static void write_turn(struct call_trial *t, const struct saga *saga, const struct records *records, struct buffer *out)
{
    struct saga *after = saga_copy(saga, &t->turn);

    for (size_t i = 0; i < records->count; i++) {
        record_line_put(out, &records->items[i], after->definition);
        saga_apply(after, &records->items[i]);
    }
    write_all(after, out);
}

/* What the run decides from its log, it also decides from those bytes. */
static void decide_alike(struct call_trial *t, const struct saga_input *input, enum err_code should)
{
    const struct saga *saga = from_rest(t);
    struct records records = {0};
    struct buffer is, was;
    struct err err = {0};

    if (!saga) {
        return;
    }
    assert_int_equal(saga_decide(saga, input, &t->turn, &records, &err), should);
    assert_string_equal(err.message, t->err.message);
    assert_int_equal(records.count, t->records.count);
    assert_int_equal(records.answer.code, t->records.answer.code);
    assert_int_equal(records.answer.step, t->records.answer.step);
    assert_int_equal(records.answer.first_ms, t->records.answer.first_ms);
    assert_int_equal(records.answer.duplicate, t->records.answer.duplicate);
    buffer_init(&is, (size_t)64 << 20);
    buffer_init(&was, (size_t)64 << 20);
    write_turn(t, saga, &records, &is);
    write_turn(t, &t->saga, &t->records, &was);
    assert_string_equal(buffer_c(&is), buffer_c(&was));
    buffer_fini(&is);
    buffer_fini(&was);
}

/* --- one turn --- */

enum err_code call_trial_input(struct call_trial *t, struct saga_input input)
{
    size_t from = t->log.len;
    enum err_code code;
    struct slice line;

    input.now_ms = t->now_ms;
    input.escalation_number = t->next_escalation;
    t->err = (struct err){0};
    code = saga_decide(&t->saga, &input, &t->turn, &t->records, &t->err);
    CHECK(code != ERR_INTERNAL); /* decided records fit the state */
    decide_alike(t, &input, code);
    if (code != ERR_OK) {
        assert_int_equal(t->records.count, 0);
        assert_true(t->err.message[0] != '\0');
        return code;
    }
    for (size_t i = 0; i < t->records.count; i++) {
        if (t->records.items[i].type == RECORD_ESCALATION_OPENED) {
            t->next_escalation += 64;
        }
        /* The records are folded one by one, because a call makes the step that the next record is about. */
        record_line_put(&t->log, &t->records.items[i], t->saga.definition);
        from = record_line_next(&t->log, from, &line);
        record_line_fold(&t->saga, line, &t->turn);
    }
    return ERR_OK;
}

static void must(struct call_trial *t, struct saga_input input)
{
    if (call_trial_input(t, input) != ERR_OK) {
        fail_msg("refused: %s %s", t->err.message, t->err.detail);
    }
}

void call_trial_close(struct call_trial *t)
{
    struct arena arena, scratch;
    struct buffer before, after;
    struct saga again;
    struct slice line;

    if (!t->saga.definition) {
        return; /* the saga is closed */
    }
    arena_init(&arena, 16384);
    arena_init(&scratch, 16384);
    saga_init(&again, &arena, id, definition_of(t, &arena));
    for (size_t from = 0; from < t->log.len; arena_reset(&scratch)) {
        from = record_line_next(&t->log, from, &line);
        record_line_fold(&again, line, &scratch);
    }
    buffer_init(&before, (size_t)64 << 20);
    buffer_init(&after, (size_t)64 << 20);
    saga_write_json(&t->saga, &before);
    saga_write_json(&again, &after);
    for (uint32_t i = 0; i < t->saga.definition->step_count; i++) {
        saga_write_operation(&t->saga, i, DIRECTION_DO, &before);
        saga_write_operation(&again, i, DIRECTION_DO, &after);
    }
    assert_true(slice_equal(buffer_slice(&before), buffer_slice(&after)));
    assert_memory_equal(t->saga.loop, again.loop, sizeof(*again.loop));
    assert_memory_equal(&t->saga.used, &again.used, sizeof(again.used));
    assert_int_equal(t->saga.emissions->count, again.emissions->count);
    assert_int_equal(t->saga.phase, again.phase);
    buffer_fini(&before);
    buffer_fini(&after);
    arena_fini(&arena);
    arena_fini(&scratch);
    buffer_fini(&t->log);
    arena_fini(&t->turn);
    arena_fini(&t->saga_arena);
    arena_fini(&t->arena);
    *t = (struct call_trial){0};
}

/* --- inputs --- */

enum err_code call_trial_call(struct call_trial *t, struct wish wish)
{
    struct saga_input input = {.type = SAGA_INPUT_CALL};
    const struct tool *tool = find_tool(t, slice_of(wish.tool));
    bool sends = false;

    input.call.namespace = SLICE("default");
    input.call.run = SLICE("run-1");
    input.call.tool = tool;
    input.call.undo = tool->compensate.is_set ? find_tool(t, tool->compensate.tool_name) : NULL;
    input.call.step = slice_of(wish.step);
    input.call.args = wish.args ? plain(&t->turn, wish.args) : SLICE("{}");
    (void)json_bool(json_member(input.call.args, "send"),
                    &sends); /* the argument that decides the class in tools of two classes */
    input.call.effect = !tool->conditional ? tool->effect : sends ? tool->effect_then : tool->effect_else;
    input.call.scope = slice_of(wish.scope);
    input.call.emission = slice_of(wish.emission);
    input.call.conversation_turn = slice_of(wish.turn);
    input.call.actor = SLICE("agent");
    input.call.unfit = wish.unfit;
    input.call.unfit_message = wish.unfit == ERR_OK ? SLICE_NONE : SLICE("the arguments do not fit");
    must(t, input);
    if (t->records.answer.code != ERR_OK) {
        assert_true(t->records.answer.message.len > 0 && t->records.answer.hint.len > 0);
    }
    return t->records.answer.code;
}

static uint32_t index_of(const struct call_trial *t, const char *label)
{
    for (uint32_t i = 0; i < t->saga.definition->step_count; i++) {
        if (slice_is(t->saga.definition->steps[i].id, label)) {
            return i;
        }
    }
    fail_msg("there is no step %s", label);
    return STEP_NONE;
}

const struct step *call_trial_step(const struct call_trial *t, const char *label)
{
    return &t->saga.steps[index_of(t, label)];
}

static void outcome(struct call_trial *t, enum saga_input_type type, uint32_t step, enum direction direction,
                    uint32_t number, enum outcome_kind kind, const char *result)
{
    struct saga_input input = {.type = type};
    struct outcome *out = &input.settled.outcome;

    input.settled.step = step;
    input.settled.direction = direction;
    input.settled.attempt = number;
    out->kind = kind;
    if (kind == OUTCOME_COMPLETED) {
        out->result = result
                          ? plain(&t->turn, result)
                          : arena_printf(&t->turn, "{\"id\":\"%.*s\"}", SLICE_ARG(t->saga.definition->steps[step].id));
        if (direction == DIRECTION_DO && t->saga.definition->steps[step].compensate.is_set) {
            input.settled.undo_args = SLICE("{\"id\":1}");
        }
        input.settled.cost_micros = t->saga.definition->steps[step].tool->cost_fixed_micros;
    } else {
        out->error = SLICE("trial");
    }
    must(t, input);
}

void call_trial_settle(struct call_trial *t, const char *label, enum outcome_kind kind, const char *result)
{
    uint32_t step = index_of(t, label);

    outcome(t, SAGA_INPUT_SETTLED, step, DIRECTION_DO, t->saga.steps[step].forward.attempts, kind, result);
}

void call_trial_settle_undo(struct call_trial *t, const char *label)
{
    uint32_t step = index_of(t, label);

    outcome(t, SAGA_INPUT_SETTLED, step, DIRECTION_UNDO, step_undo(&t->saga.steps[step])->attempts, OUTCOME_COMPLETED,
            NULL);
}

void call_trial_probe(struct call_trial *t, const char *label, enum outcome_kind kind)
{
    uint32_t step = index_of(t, label);
    const struct operation *op = &t->saga.steps[step].forward;

    t->now_ms = op->due_ms > t->now_ms ? op->due_ms : t->now_ms;
    outcome(t, SAGA_INPUT_PROBED, step, DIRECTION_DO, op->probes + 1, kind, NULL);
}

void call_trial_timer(struct call_trial *t, const char *label)
{
    struct saga_input input = {.type = SAGA_INPUT_TIMER};

    input.timer.step = index_of(t, label);
    if (t->saga.steps[input.timer.step].forward.due_ms > t->now_ms) {
        t->now_ms = t->saga.steps[input.timer.step].forward.due_ms;
    }
    must(t, input);
}

void call_trial_due(struct call_trial *t, enum saga_timer timer)
{
    struct saga_input input = {.type = SAGA_INPUT_TIMER};

    input.timer.step = STEP_NONE;
    input.timer.timer = timer;
    must(t, input);
}

void call_trial_admit(struct call_trial *t, const char *label, enum admission admission)
{
    struct saga_input input = {.type = SAGA_INPUT_ADMITTED};

    input.admitted.step = index_of(t, label);
    input.admitted.admission = admission;
    if (admission == ADMISSION_REFUSED) {
        input.admitted.error = SLICE("rate-limited");
        input.admitted.retry_after_ms = 1000;
    }
    must(t, input);
}

enum err_code call_trial_bypass(struct call_trial *t, const char *label)
{
    struct saga_input input = {.type = SAGA_INPUT_BYPASS};

    input.bypass.key = call_trial_step(t, label)->forward.key;
    input.bypass.actor = SLICE("ann");
    input.bypass.note = SLICE("the customer asked for it");
    return call_trial_input(t, input);
}

enum err_code call_trial_resume(struct call_trial *t)
{
    struct saga_input input = {.type = SAGA_INPUT_RESUME};

    input.resume.actor = SLICE("ann");
    return call_trial_input(t, input);
}

enum err_code call_trial_complete(struct call_trial *t)
{
    struct saga_input input = {.type = SAGA_INPUT_COMPLETE};

    input.complete.actor = SLICE("agent");
    return call_trial_input(t, input);
}

enum err_code call_trial_abort(struct call_trial *t)
{
    struct saga_input input = {.type = SAGA_INPUT_ABORT};

    input.abort.actor = SLICE("agent");
    return call_trial_input(t, input);
}

enum err_code call_trial_operator(struct call_trial *t, enum operator_action action)
{
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR};

    input.verdict.action = action;
    input.verdict.happened = true;
    input.verdict.escalation = t->saga.escalation.number;
    input.verdict.round = saga_case_round(&t->saga);
    input.verdict.actor = SLICE("ann");
    input.verdict.note = SLICE("looked");
    return call_trial_input(t, input);
}

const char *call_trial_records(struct call_trial *t)
{
    struct slice all = SLICE("");

    for (size_t i = 0; i < t->records.count; i++) {
        const struct record *record = &t->records.items[i];

        all = arena_printf(&t->turn, "%.*s%s%s", SLICE_ARG(all), i ? ", " : "", record_type_name(record->type));
        if (record->step != STEP_NONE) {
            all = arena_printf(&t->turn, "%.*s %.*s", SLICE_ARG(all),
                               SLICE_ARG(t->saga.definition->steps[record->step].id));
        }
        if (record->decision.len) {
            all = arena_printf(&t->turn, "%.*s (%.*s)", SLICE_ARG(all), SLICE_ARG(record->decision));
        }
    }
    return all.ptr;
}

void call_trial_takes_at(const char *file, int line, struct call_trial *t, enum err_code code, enum err_code expected,
                         const char *records)
{
    if (code != expected) {
        print_error("ERROR: %s, not %s: %s %s\n", err_name(code), err_name(expected), t->err.message, t->err.detail);
        _fail(file, line);
    }
    _assert_string_equal(call_trial_records(t), records, file, line);
}
