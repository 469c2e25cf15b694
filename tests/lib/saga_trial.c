/* See saga_trial.h. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/record_lines.h"
#include "tests/lib/saga_trial.h"
#include "tests/lib/test.h"

#include "base/json.h"

/* --- definitions --- */

struct slice trial_json(struct arena *arena, const char *text)
{
    char *copy = arena_text(arena, slice_of(text));

    for (char *c = copy; *c; c++) {
        if (*c == '\'') {
            *c = '"';
        }
    }
    return slice_of(copy);
}

static bool find_named(struct slice items, struct slice name, struct slice *body, uint32_t *version_found)
{
    struct json_walk walk = json_walk(items);
    struct slice item;

    while (json_next_element(&walk, &item)) {
        char text[160];

        (void)snprintf(text, sizeof(text), "%.*s", SLICE_ARG(name));
        if (json_string_is(json_member(item, "name"), text)) {
            *body = item;
            *version_found = 1;
            return true;
        }
    }
    return false;
}

static bool find_tool(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found)
{
    const struct slice *document = context;

    (void)version;
    return find_named(json_member(*document, "tools"), name, body, version_found);
}

static bool find_saga(void *context, struct slice name, uint32_t version, struct slice *body, uint32_t *version_found)
{
    const struct slice *document = context;

    (void)version;
    return find_named(json_member(*document, "sagas"), name, body, version_found);
}

const struct definition *trial_compile(struct arena *arena, struct slice document)
{
    struct slice body;
    struct tool_source source = {find_tool, &document, find_saga};
    struct definition *definition;
    struct faults faults;
    struct err err;

    if (json_check(document, &json_limits_default, &err) != ERR_OK) {
        fail_msg("the document of the test is no JSON: %s %s", err.message, err.detail);
    }
    body = json_element(json_member(document, "sagas"), 0);
    faults_init(&faults, arena);
    definition = definition_compile(body, 1, &source, SLICE("/sagas/0"), arena, &faults);
    if (faults.count > 0) {
        fail_msg("the definition of the test is wrong at %.*s: %.*s", SLICE_ARG(faults.items[0].pointer),
                 SLICE_ARG(faults.items[0].detail));
    }
    assert_non_null(definition);
    return definition;
}

/* --- life --- */

#define NUMBERS 64 /* the stride of the numbers of escalations and approvals, as between shards */

static struct saga_id trial_id(uint32_t number)
{
    struct saga_id id = {{{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 0x07}}};

    id.uuid.bytes[10] = (uint8_t)(number >> 24);
    id.uuid.bytes[11] = (uint8_t)(number >> 16);
    id.uuid.bytes[12] = (uint8_t)(number >> 8);
    id.uuid.bytes[13] = (uint8_t)number;
    return id;
}

static void open_on(struct trial *trial, const struct definition *definition, uint32_t number)
{
    trial->definition = definition;
    arena_init(&trial->saga_arena, 16384);
    arena_init(&trial->turn, 16384);
    buffer_init(&trial->log, (size_t)64 << 20);
    trial->now_ms = TRIAL_START_MS;
    trial->next_escalation = trial->next_approval = NUMBERS;
    saga_init(&trial->saga, &trial->saga_arena, trial_id(number), definition);
}

void trial_open_text(struct trial *trial, struct slice document)
{
    *trial = (struct trial){0};
    arena_init(&trial->arena, 16384);
    open_on(trial, trial_compile(&trial->arena, arena_slice(&trial->arena, document)), 0);
}

void trial_open(struct trial *trial, const char *document)
{
    *trial = (struct trial){0};
    arena_init(&trial->arena, 16384);
    open_on(trial, trial_compile(&trial->arena, trial_json(&trial->arena, document)), 0);
}

void trial_open_compiled(struct trial *trial, const struct definition *definition, uint32_t number)
{
    *trial = (struct trial){0};
    arena_init(&trial->arena, 4096);
    open_on(trial, definition, number);
}

void trial_close(struct trial *trial)
{
    buffer_fini(&trial->log);
    arena_fini(&trial->turn);
    arena_fini(&trial->saga_arena);
    arena_fini(&trial->arena);
    *trial = (struct trial){0};
}

void trial_close_sound(struct trial *trial)
{
    if (trial->definition) {
        assert_true(saga_is_sound(&trial->saga));
        trial_check_replay(trial);
    }
    trial_close(trial);
}

/* --- one turn --- */

enum err_code trial_input(struct trial *trial, struct saga_input input)
{
    enum err_code code;

    input.now_ms = trial->now_ms;
    input.escalation_number = trial->next_escalation;
    input.approval_number = trial->next_approval;
    input.number_stride = NUMBERS;
    input.payload_bytes_max = trial->payload_bytes_max;
    input.holds = input.holds ? input.holds : trial->holds;
    input.digest_key = trial->digest_key;
    arena_reset(&trial->turn);
    trial->err = (struct err){0};
    code = saga_decide(&trial->saga, &input, &trial->turn, &trial->records, &trial->err);
    if (code == ERR_INTERNAL) { /* decided records fit the state */
        fail_msg("%s: %s", trial->err.message, trial->err.detail);
    }
    if (code != ERR_OK) {
        assert_int_equal(trial->records.count, 0);
        assert_true(trial->err.message[0] != '\0');
        return code;
    }
    /* The records are folded one by one, because a record may add the steps that the next one names. */
    for (size_t i = 0; i < trial->records.count; i++) {
        const struct record *record = &trial->records.items[i];
        size_t from = trial->log.len;
        struct slice line;

        trial->next_escalation += record->type == RECORD_ESCALATION_OPENED ? NUMBERS : 0;
        trial->next_approval += record->type == RECORD_STEP_WAITING && record->approval ? NUMBERS : 0;
        record_line_put(&trial->log, record, trial->saga.definition);
        (void)record_line_next(&trial->log, from, &line);
        record_line_fold(&trial->saga, line, &trial->turn);
    }
    return ERR_OK;
}

/* Gives STEP_NONE where there is no such step. */
static uint32_t find_step(const struct trial *trial, const char *id)
{
    for (uint32_t i = 0; i < trial->saga.definition->step_count; i++) {
        if (slice_is(trial->saga.definition->steps[i].id, id)) {
            return i;
        }
    }
    return STEP_NONE;
}

uint32_t trial_step(const struct trial *trial, const char *id)
{
    uint32_t step = find_step(trial, id);

    if (step == STEP_NONE) {
        assert_string_equal(id, "-");
    }
    return step;
}

static void must(struct trial *trial, struct saga_input input)
{
    if (trial_input(trial, input) != ERR_OK) {
        fail_msg("refused: %s %s", trial->err.message, trial->err.detail);
    }
}

/* --- inputs --- */

static void render_undo_args(struct trial *trial, uint32_t step, struct slice result, struct slice *undo_args,
                             struct slice *undo_error)
{
    const struct compensator *compensate = &trial->saga.definition->steps[step].compensate;
    struct expression_context context;
    struct err err;
    char *key;

    if (!compensate->is_set) {
        return;
    }
    if (!template_is_set(&compensate->with)) {
        *undo_args = SLICE("{}");
        return;
    }
    if (compensate->with.program_count > 0) {
        *undo_args = SLICE("{\"evaluated\":true}");
        return;
    }
    context = saga_expression_context(&trial->saga, step, &trial->arena);
    key = arena_alloc(&trial->arena, UUID_TEXT_BYTES);
    uuid_text(&trial->saga.steps[step].forward.key.uuid, key);
    context.args = trial->saga.steps[step].forward.args;
    context.key = slice_of(key);
    context.result = result.ptr ? result : SLICE("null");
    if (template_render(&compensate->with, &context, NULL, &trial->arena, undo_args, &err) != ERR_OK) {
        *undo_args = SLICE_NONE;
        *undo_error = arena_slice(&trial->arena, slice_of(err.message));
    }
}

struct saga_input trial_outcome(struct trial *trial, enum saga_input_type type, uint32_t step, enum direction direction,
                                uint32_t attempt, struct outcome outcome)
{
    struct saga_input input = {.type = type};

    input.settled.step = step;
    input.settled.direction = direction;
    input.settled.attempt = attempt;
    input.settled.outcome = outcome;
    if (outcome.kind == OUTCOME_COMPLETED && direction == DIRECTION_DO) {
        render_undo_args(trial, step, outcome.result, &input.settled.undo_args, &input.settled.undo_error);
    }
    return input;
}

void trial_start(struct trial *trial, const char *input)
{
    struct saga_input start = {.type = SAGA_INPUT_START};

    start.start.namespace = SLICE("default");
    start.start.input = trial_json(&trial->arena, input);
    must(trial, start);
}

void trial_begin(struct trial *trial, const char *document, const char *input)
{
    trial_open(trial, document);
    trial_start(trial, input);
}

static struct outcome plain_outcome(struct trial *trial, const char *step, enum outcome_kind kind)
{
    struct outcome outcome = {.kind = kind};

    if (kind == OUTCOME_COMPLETED) {
        outcome.result = arena_printf(&trial->arena, "{\"id\":\"%s-1\"}", step);
    } else {
        outcome.error = kind == OUTCOME_UNKNOWN  ? SLICE("timeout")
                        : kind == OUTCOME_FAILED ? SLICE("http-422")
                                                 : SLICE("http-429");
        outcome.detail = SLICE("as the test has it");
    }
    return outcome;
}

static const struct operation *operation(const struct trial *trial, uint32_t step, enum direction direction)
{
    return direction == DIRECTION_UNDO ? step_undo(&trial->saga.steps[step]) : &trial->saga.steps[step].forward;
}

static struct saga_input settled(struct trial *trial, const char *id, enum direction direction, enum outcome_kind kind)
{
    uint32_t step = trial_step(trial, id);

    return trial_outcome(trial, SAGA_INPUT_SETTLED, step, direction, operation(trial, step, direction)->attempts,
                         plain_outcome(trial, id, kind));
}

void trial_settle(struct trial *trial, const char *step, enum outcome_kind kind)
{
    must(trial, settled(trial, step, DIRECTION_DO, kind));
}

void trial_settle_undo(struct trial *trial, const char *step, enum outcome_kind kind)
{
    must(trial, settled(trial, step, DIRECTION_UNDO, kind));
}

static void wait_for(struct trial *trial, int64_t due_ms)
{
    trial->now_ms = due_ms > trial->now_ms ? due_ms : trial->now_ms;
}

static struct saga_input probed(struct trial *trial, const char *id, enum direction direction, enum outcome_kind kind)
{
    uint32_t step = trial_step(trial, id);
    const struct operation *op = operation(trial, step, direction);

    wait_for(trial, op->due_ms);
    return trial_outcome(trial, SAGA_INPUT_PROBED, step, direction, op->probes + 1, plain_outcome(trial, id, kind));
}

void trial_probe(struct trial *trial, const char *step, enum outcome_kind kind)
{
    must(trial, probed(trial, step, DIRECTION_DO, kind));
}

static struct saga_input due(struct trial *trial, const char *id, enum direction direction)
{
    struct saga_input input = {.type = SAGA_INPUT_TIMER};

    input.timer.step = trial_step(trial, id);
    input.timer.direction = direction;
    wait_for(trial, input.timer.step == STEP_NONE ? trial->saga.deadline_ms
                                                  : operation(trial, input.timer.step, direction)->due_ms);
    return input;
}

void trial_timer(struct trial *trial, const char *step)
{
    must(trial, due(trial, step, DIRECTION_DO));
}

void trial_timer_undo(struct trial *trial, const char *step)
{
    must(trial, due(trial, step, DIRECTION_UNDO));
}

/* Gives OUTCOME_KIND_COUNT where there is no such outcome. */
static enum outcome_kind outcome_of(const char *word)
{
    static const char *const words[OUTCOME_KIND_COUNT] = {
        [OUTCOME_COMPLETED] = "completed", [OUTCOME_RUNNING] = "running", [OUTCOME_RETRY] = "retry",
        [OUTCOME_FAILED] = "failed",       [OUTCOME_ABSENT] = "absent",   [OUTCOME_UNKNOWN] = "unknown",
    };
    enum outcome_kind kind = 0;

    while (kind < OUTCOME_KIND_COUNT && strcmp(words[kind], word) != 0) {
        kind++;
    }
    return kind;
}

/* Takes `word` from the beginning of the event. */
static bool takes(const char **event, const char *word)
{
    size_t len = strlen(word);
    bool is_there = strncmp(*event, word, len) == 0 && (*event)[len] == ' ';

    *event += is_there ? len + 1 : 0;
    return is_there;
}

/* False: the event names no step of the saga, or no outcome. */
static bool read_event(struct trial *trial, const char *event, struct saga_input *input)
{
    bool is_timer = takes(&event, "timer"), is_probe = takes(&event, "probe");
    enum direction direction = takes(&event, "undo") ? DIRECTION_UNDO : DIRECTION_DO;
    const char *end = strchr(event, ' ');
    const char *step = arena_text(&trial->arena, end ? (struct slice){event, (size_t)(end - event)} : slice_of(event));
    enum outcome_kind kind = end ? outcome_of(end + 1) : OUTCOME_COMPLETED;

    if (kind == OUTCOME_KIND_COUNT || (find_step(trial, step) == STEP_NONE && !(is_timer && strcmp(step, "-") == 0))) {
        return false;
    }
    *input = is_timer   ? due(trial, step, direction)
             : is_probe ? probed(trial, step, direction, kind)
                        : settled(trial, step, direction, kind);
    return true;
}

void trial_takes_at(const char *file, int line, struct trial *trial, enum err_code code, const char *records)
{
    if (code != ERR_OK) {
        print_error("ERROR: %s: %s %s\n", err_name(code), trial->err.message, trial->err.detail);
        _fail(file, line);
    }
    _assert_string_equal(trial_records(trial), records, file, line);
}

void trial_play_until_at(const char *file, int line, struct trial *trial, const char *events, enum saga_status status)
{
    trial_play_at(file, line, trial, events, NULL);
    _assert_string_equal(saga_status_name(saga_status(&trial->saga)), saga_status_name(status), file, line);
}

void trial_play_at(const char *file, int line, struct trial *trial, const char *events, const char *records)
{
    while (*events) {
        size_t len = strcspn(events, ",");
        const char *event = arena_text(&trial->arena, (struct slice){events, len});

        struct saga_input input;

        if (!read_event(trial, event, &input)) {
            print_error("ERROR: \"%s\" names no step of this saga, or no outcome\n", event);
            _fail(file, line);
        }
        if (trial_input(trial, input) != ERR_OK) {
            print_error("ERROR: \"%s\" was refused: %s %s\n", event, trial->err.message, trial->err.detail);
            _fail(file, line);
        }
        events += len + strspn(events + len, ", ");
    }
    if (records) {
        _assert_string_equal(trial_records(trial), records, file, line);
    }
}

enum err_code trial_abort(struct trial *trial)
{
    struct saga_input input = {.type = SAGA_INPUT_ABORT};

    input.abort.actor = SLICE("ann");
    input.abort.note = SLICE("changed my mind");
    return trial_input(trial, input);
}

enum err_code trial_signal(struct trial *trial, const char *name, const char *payload, const char *id)
{
    struct saga_input input = {.type = SAGA_INPUT_SIGNAL};

    input.signal.name = slice_of(name);
    input.signal.payload = trial_json(&trial->arena, payload);
    input.signal.id = slice_of(id);
    input.signal.actor = SLICE("shop");
    return trial_input(trial, input);
}

enum err_code trial_decide(struct trial *trial, const char *step, bool approve, enum role role)
{
    struct saga_input input = {.type = SAGA_INPUT_DECISION};

    input.decision.approval = trial->saga.steps[trial_step(trial, step)].approval;
    input.decision.approve = approve;
    input.decision.role = role;
    input.decision.actor = SLICE("ann");
    input.decision.note = SLICE("looked at it");
    return trial_input(trial, input);
}

enum err_code trial_pause(struct trial *trial)
{
    struct saga_input input = {.type = SAGA_INPUT_PAUSE};

    input.pause.actor = SLICE("ann");
    input.pause.note = SLICE("the warehouse burns");
    return trial_input(trial, input);
}

enum err_code trial_resume(struct trial *trial)
{
    struct saga_input input = {.type = SAGA_INPUT_RESUME};

    input.resume.actor = SLICE("ann");
    input.resume.note = SLICE("it is out");
    return trial_input(trial, input);
}

void trial_locked(struct trial *trial, bool refused)
{
    struct saga_input input = {.type = SAGA_INPUT_LOCKED};

    assert_true(trial->saga.lock_taken < trial->saga.lock_count);
    input.locked.key = trial->saga.locks[trial->saga.lock_taken].key;
    input.locked.refused = refused;
    must(trial, input);
}

void trial_evaluated(struct trial *trial, enum evaluation what, const char *step, const char *value)
{
    struct saga_input input = {.type = SAGA_INPUT_EVALUATED};

    input.evaluated.what = what;
    input.evaluated.step = trial_step(trial, step);
    input.evaluated.failed = value == NULL;
    input.evaluated.value = value ? trial_json(&trial->arena, value) : SLICE_NONE;
    input.evaluated.error = value ? SLICE_NONE : SLICE("as the test has it");
    must(trial, input);
}

static struct saga_input operator_input(const struct trial *trial, enum operator_action action)
{
    struct saga_input input = {.type = SAGA_INPUT_OPERATOR};

    input.verdict.action = action;
    input.verdict.escalation = trial->saga.escalation.number;
    input.verdict.round = saga_case_round(&trial->saga);
    input.verdict.actor = SLICE("ann");
    input.verdict.note = SLICE("looked it up");
    return input;
}

enum err_code trial_operator(struct trial *trial, enum operator_action action)
{
    return trial_input(trial, operator_input(trial, action));
}

enum err_code trial_resolve(struct trial *trial, bool happened, const char *result)
{
    struct saga_input input = operator_input(trial, OPERATOR_RESOLVE);

    input.verdict.happened = happened;
    if (result) {
        input.verdict.result = trial_json(&trial->arena, result);
    }
    if (happened && trial->saga.escalation.number && trial->saga.escalation.direction == DIRECTION_DO) {
        render_undo_args(trial, trial->saga.escalation.step, input.verdict.result, &input.verdict.undo_args,
                         &input.verdict.undo_error);
    }
    return trial_input(trial, input);
}

/* --- looking --- */

const char *trial_records(struct trial *trial)
{
    struct slice text = SLICE("");

    for (size_t i = 0; i < trial->records.count; i++) {
        const struct record *record = &trial->records.items[i];
        struct slice step = record->step == STEP_NONE ? SLICE("") : trial->saga.definition->steps[record->step].id;

        text = arena_printf(&trial->arena, "%.*s%s%s%s%.*s", SLICE_ARG(text), i ? ", " : "",
                            record_type_name(record->type), step.len ? " " : "", SLICE_ARG(step));
    }
    return arena_text(&trial->arena, text);
}

const char *trial_wants(struct trial *trial)
{
    static const char *const names[] = {[WANT_ADMIT] = "admit", [WANT_CALL] = "call",         [WANT_PROBE] = "probe",
                                        [WANT_TIMER] = "timer", [WANT_EVALUATE] = "evaluate", [WANT_LOCK] = "lock"};
    struct wants wants;
    struct slice text = SLICE("");

    saga_wants(&trial->saga, &trial->arena, &wants);
    for (size_t i = 0; i < wants.count; i++) {
        const struct want *want = &wants.items[i];
        struct slice step = want->step == STEP_NONE ? SLICE("-") : trial->saga.definition->steps[want->step].id;

        assert_true(i == 0 || want_compare(want - 1, want) < 0);
        text = arena_printf(&trial->arena, "%.*s%s%s %s%.*s %u", SLICE_ARG(text), i ? ", " : "", names[want->type],
                            want->direction == DIRECTION_UNDO ? "undo " : "", SLICE_ARG(step), want->number);
        if (want->due_ms) {
            text =
                arena_printf(&trial->arena, "%.*s +%lld", SLICE_ARG(text), (long long)(want->due_ms - trial->now_ms));
        }
    }
    return arena_text(&trial->arena, text);
}

struct slice trial_view(struct trial *trial, struct arena *arena)
{
    struct buffer out;
    struct slice text;

    buffer_init(&out, (size_t)8 << 20);
    saga_write_json(&trial->saga, &out);
    assert_false(out.overflow);
    text = arena_slice(arena, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

struct slice trial_shown(struct trial *trial, const char *pointer)
{
    return json_at(trial_view(trial, &trial->arena), slice_of(pointer));
}

const char *trial_status(const struct trial *trial, const char *step)
{
    return step_status_name(saga_step_status(&trial->saga, trial_step(trial, step)));
}

struct operation *trial_forward(struct trial *trial, const char *step)
{
    return &trial->saga.steps[trial_step(trial, step)].forward;
}

/* --- replay --- */

static void same_slice(const char *what, struct slice a, struct slice b)
{
    if (!slice_equal(a, b) || (a.ptr == NULL) != (b.ptr == NULL)) {
        fail_msg("replay: %s is \"%.*s\", was \"%.*s\"", what, SLICE_ARG(b), SLICE_ARG(a));
    }
}

static void same_rounds(const struct case_round *a, const struct case_round *b)
{
    for (; a && b; a = a->before, b = b->before) {
        assert_int_equal(a->number, b->number);
        assert_int_equal(a->round, b->round);
        assert_int_equal(a->opened_ms, b->opened_ms);
        assert_int_equal(a->resolved_ms, b->resolved_ms);
        same_slice("reason", a->reason, b->reason);
        same_slice("action", a->action, b->action);
        same_slice("verdict", a->verdict, b->verdict);
        same_slice("actor", a->actor, b->actor);
        same_slice("note", a->note, b->note);
        same_slice("request", a->request, b->request);
    }
    assert_true(!a && !b);
}

static void same_operation(const struct operation *a, const struct operation *b)
{
    struct operation x = *a, y = *b;

    same_rounds(a->asked, b->asked);
    x.asked = y.asked = NULL;
    assert_int_equal(a->never_left, b->never_left);
    same_slice("args", a->args, b->args);
    same_slice("scope", a->scope, b->scope);
    same_slice("result", a->result, b->result);
    same_slice("error", a->error, b->error);
    same_slice("detail", a->detail, b->detail);
    same_slice("answer", a->answer, b->answer);
    same_slice("result_error", a->result_error, b->result_error);
    same_slice("cost_unknown", a->cost_unknown, b->cost_unknown);
    x.args = x.scope = x.result = x.error = x.detail = x.answer = x.result_error = x.cost_unknown = SLICE_NONE;
    y.args = y.scope = y.result = y.error = y.detail = y.answer = y.result_error = y.cost_unknown = SLICE_NONE;
    x.answer_room = y.answer_room = (struct room){0}; /* where the answer lies */
    /* Compares whole structs, because a comparison of fields would forget new ones. Both are copied from zeroed memory,
     * so their padding is equal. */
    assert_memory_equal(&x, &y, sizeof(x));
}

static void same_signals(const struct saga *a, const struct saga *b)
{
    const struct kept_signal *x = a->signals, *y = b->signals;

    assert_int_equal(a->signal_count, b->signal_count);
    assert_int_equal(a->signal_kept, b->signal_kept);
    while (x && y) {
        same_slice("signal", x->name, y->name);
        same_slice("payload", x->payload, y->payload);
        same_slice("signal's id", x->id, y->id);
        assert_memory_equal(&x->digest, &y->digest, sizeof(x->digest));
        assert_int_equal(x->taken, y->taken);
        x = x->next;
        y = y->next;
    }
    assert_true(!x && !y);
}

static void same_saga(const struct saga *a, const struct saga *b)
{
    assert_int_equal(a->phase, b->phase);
    assert_int_equal(a->end, b->end);
    assert_int_equal(a->seq, b->seq);
    assert_int_equal(a->plan_count, b->plan_count);
    assert_int_equal(a->started_count, b->started_count);
    assert_int_equal(a->deadline_ms, b->deadline_ms);
    assert_int_equal(a->failing_step, b->failing_step);
    assert_int_equal(a->escalation.number, b->escalation.number);
    assert_int_equal(a->escalation.step, b->escalation.step);
    assert_int_equal(a->escalation.direction, b->escalation.direction);
    assert_int_equal(a->escalation_count, b->escalation_count);
    assert_memory_equal(&a->budget, &b->budget, sizeof(a->budget));
    assert_memory_equal(&a->used, &b->used, sizeof(a->used));
    assert_int_equal(a->definition->step_count, b->definition->step_count);
    assert_int_equal(a->paused_ms, b->paused_ms);
    assert_int_equal(a->locks_wanted, b->locks_wanted);
    assert_int_equal(a->lock_count, b->lock_count);
    assert_int_equal(a->lock_taken, b->lock_taken);
    for (uint32_t i = 0; i < a->lock_count; i++) {
        assert_int_equal(a->locks[i].fails, b->locks[i].fails);
        assert_int_equal(a->locks[i].taken, b->locks[i].taken);
        same_slice("lock", a->locks[i].key, b->locks[i].key);
    }
    same_signals(a, b);
    same_slice("paused", a->paused, b->paused);
    same_slice("paused_by", a->paused_by, b->paused_by);
    same_slice("paused_note", a->paused_note, b->paused_note);
    same_slice("followers", a->followers, b->followers);
    same_slice("run", a->run, b->run);
    same_rounds(a->asked, b->asked);
    same_slice("raised_by", a->escalation.raised_by, b->escalation.raised_by);
    same_slice("raised_note", a->escalation.raised_note, b->escalation.raised_note);
    same_slice("asked_by", a->escalation.asked_by, b->escalation.asked_by);
    same_slice("evidence", a->escalation.evidence, b->escalation.evidence);
    same_slice("failing_reason", a->failing_reason, b->failing_reason);
    same_slice("failing_by", a->failing_by, b->failing_by);
    same_slice("failing_note", a->failing_note, b->failing_note);
    for (uint32_t i = 0; i < a->plan_count; i++) {
        assert_int_equal(a->plan[i], b->plan[i]);
    }
    for (uint32_t i = 0; i < a->definition->step_count; i++) {
        assert_int_equal(a->steps[i].plan, b->steps[i].plan);
        assert_int_equal(a->steps[i].start_order, b->steps[i].start_order);
        assert_int_equal(a->steps[i].begun_seq, b->steps[i].begun_seq);
        assert_int_equal(a->steps[i].settled_seq, b->steps[i].settled_seq);
        assert_int_equal(a->steps[i].approval, b->steps[i].approval);
        assert_int_equal(a->steps[i].first, b->steps[i].first);
        assert_int_equal(a->steps[i].count, b->steps[i].count);
        assert_int_equal(a->steps[i].group_phase, b->steps[i].group_phase);
        assert_int_equal(a->steps[i].failing_step, b->steps[i].failing_step);
        same_slice("undo_args", a->steps[i].undo_args, b->steps[i].undo_args);
        same_slice("undo_error", a->steps[i].undo_error, b->steps[i].undo_error);
        same_operation(&a->steps[i].forward, &b->steps[i].forward);
        same_operation(step_undo(&a->steps[i]), step_undo(&b->steps[i]));
    }
}

void trial_check_replay(struct trial *trial)
{
    struct arena arena = {0}, scratch = {0};
    struct saga again;
    struct buffer before, after;
    size_t from = 0;

    arena_init(&arena, 16384);
    arena_init(&scratch, 16384);
    saga_init(&again, &arena, trial->saga.id, trial->definition);
    while (from < trial->log.len) {
        struct slice line;

        from = record_line_next(&trial->log, from, &line);
        record_line_fold(&again, line, &scratch);
        arena_reset(&scratch); /* everything that the state keeps is in its own arena */
    }
    same_saga(&trial->saga, &again);
    buffer_init(&before, (size_t)8 << 20);
    buffer_init(&after, (size_t)8 << 20);
    saga_write_json(&trial->saga, &before);
    saga_write_json(&again, &after);
    assert_true(slice_equal(buffer_slice(&before), buffer_slice(&after)));
    buffer_fini(&before);
    buffer_fini(&after);
    arena_fini(&arena);
    arena_fini(&scratch);
}
