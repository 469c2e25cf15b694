/* Plays a scenario: what comes next, and what becomes of it. See stage.h. */
#include "tools/sagactl/scenario/stage.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/instant.h"
#include "base/json.h"

#define STAGE_START_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */
#define TURNS_MAX 200000                      /* the most turns of one play */
#define LOG_BYTES_MAX ((size_t)256 << 20)

/* The same in each play, so that keys are the same, too. */
static const struct saga_id stage_id = {{{0x01, 0x9b, 0x76, 0xda, 0xa8, 0x00, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 0x01}}};

void stage_fail(struct stage *stage, const char *format, ...)
{
    char text[512];
    va_list args;

    if (stage->failure.ptr) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    stage->failure = arena_slice(&stage->arena, slice_of(text));
}

const struct operation *stage_operation(const struct stage *stage, uint32_t step, enum direction direction)
{
    const struct step *of = &stage->saga.steps[step];

    return direction == DIRECTION_UNDO ? step_undo(of) : &of->forward;
}

struct slice stage_key(struct stage *stage, const struct op_key *key)
{
    char text[UUID_TEXT_BYTES];

    uuid_text(&key->uuid, text);
    return arena_slice(&stage->arena, slice_of(text));
}

uint32_t stage_find_step(const struct stage *stage, struct slice id)
{
    for (uint32_t i = 0; i < stage->saga.definition->step_count; i++) {
        if (slice_equal(stage->saga.definition->steps[i].id, id)) {
            return i;
        }
    }
    return STEP_NONE;
}

struct stage_truth *stage_truth_of(struct stage *stage, uint32_t step)
{
    if (step >= stage->truth_count) {
        uint32_t count = 2 * (step + 1);

        stage->truths = memory_grow(stage->truths, count * sizeof(*stage->truths));
        memset(stage->truths + stage->truth_count, 0, (count - stage->truth_count) * sizeof(*stage->truths));
        stage->truth_count = count;
    }
    return &stage->truths[step];
}

void stage_strike(struct stage *stage, uint32_t step, enum direction direction, enum prove_trouble trouble)
{
    if (stage->struck_count == stage->struck_room) {
        stage->struck_room = stage->struck_room ? 2 * stage->struck_room : 8;
        stage->struck = memory_grow(stage->struck, stage->struck_room * sizeof(*stage->struck));
    }
    stage->struck[stage->struck_count++] =
        (struct stage_struck){.step = step == STEP_NONE ? SLICE_NONE : stage->saga.definition->steps[step].id,
                              .direction = direction,
                              .trouble = trouble};
}

/* --- a turn --- */

static void log_put(struct stage *stage, const struct record *record)
{
    struct buffer text;
    char at[INSTANT_TEXT_BYTES];

    buffer_init(&text, LOG_BYTES_MAX);
    record_write(record, stage->saga.definition, &text);
    instant_text(record->at_ms, at);
    buffer_printf(&stage->log, "{\"seq\":%llu,\"at\":\"%s\",", (unsigned long long)record->seq, at);
    buffer_put(&stage->log, text.ptr + 1, text.len - 1); /* without its opening brace */
    buffer_put_char(&stage->log, '\0');                  /* payloads may have line ends in them */
    buffer_fini(&text);
}

/* Notes a failure point that the log shows, whether the machine or the stage came upon it. */
static void strike_record(struct stage *stage, const struct record *record)
{
    if (record->type == RECORD_STEP_FAILED && slice_is(record->error, "arguments")) {
        stage_strike(stage, record->step, DIRECTION_DO, TROUBLE_ARGUMENTS);
    } else if (record->type == RECORD_STEP_SKIPPED && slice_is(record->reason, "when")) {
        stage_strike(stage, record->step, DIRECTION_DO, TROUBLE_SKIPPED);
    } else if (record->type == RECORD_STEP_COMPLETED && record->undo_error.ptr) {
        stage_strike(stage, record->step, DIRECTION_DO, TROUBLE_UNDO_ARGUMENTS);
    }
}

enum err_code stage_feed(struct stage *stage, struct saga_input input, struct err *err)
{
    struct records records;
    enum err_code code;

    input.now_ms = ++stage->now_ms; /* each turn has its own time, which tells which call left first */
    input.escalation_number = stage->next_escalation;
    input.approval_number = stage->next_approval;
    input.number_stride = 1;
    arena_reset(&stage->turn);
    code = saga_decide(&stage->saga, &input, &stage->turn, &records, err);
    stage->turns++;
    if (code == ERR_INTERNAL) {
        stage_fail(stage, "this is a mistake of sagad: %s: %s", err->message, err->detail);
    }
    for (size_t i = 0; code == ERR_OK && i < records.count; i++) {
        const struct record *record = &records.items[i];

        stage->next_escalation += record->type == RECORD_ESCALATION_OPENED;
        stage->next_approval += record->type == RECORD_STEP_WAITING && record->approval;
        if (stage->keeps_log) {
            log_put(stage, record);
        }
        saga_apply(&stage->saga, record);
        strike_record(stage, record);
    }
    return code;
}

static bool fold_line(struct stage *stage, struct slice line)
{
    struct record record;
    struct err err = {0};

    arena_reset(&stage->turn);
    if (record_read(line, stage->saga.definition, &stage->turn, &record, &err) != ERR_OK ||
        !record_check(&stage->saga, &record, &err)) {
        stage_fail(stage, "this is a mistake of sagad: the log does not fold: %s: %s", err.message, err.detail);
        return false;
    }
    saga_apply(&stage->saga, &record);
    return true;
}

static void refold(struct stage *stage)
{
    const char *at = stage->log.ptr, *end = at + stage->log.len;

    arena_fini(&stage->saga_arena);
    arena_init(&stage->saga_arena, 16384);
    saga_init(&stage->saga, &stage->saga_arena, stage_id, stage->definition);
    while (at < end) {
        const char *record_end = memchr(at, '\0', (size_t)(end - at));

        if (!fold_line(stage, (struct slice){at, (size_t)(record_end - at)})) {
            return;
        }
        at = record_end + 1;
    }
}

void stage_crash(struct stage *stage)
{
    struct wants wants;
    struct want *calls;
    size_t count = 0;

    refold(stage);
    if (stage->failure.ptr) {
        return;
    }
    arena_reset(&stage->turn);
    saga_wants(&stage->saga, &stage->turn, &wants);
    calls = arena_array(&stage->arena, wants.count + 1, sizeof(*calls));
    for (size_t i = 0; i < wants.count; i++) {
        if (wants.items[i].type == WANT_CALL) {
            calls[count++] = wants.items[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct saga_input input = {.type = SAGA_INPUT_SETTLED};
        struct err err = {0};

        input.settled.step = calls[i].step;
        input.settled.direction = calls[i].direction;
        input.settled.attempt = calls[i].number;
        input.settled.outcome = (struct outcome){
            .kind = OUTCOME_UNKNOWN, .error = SLICE("interrupted"), .detail = SLICE("The engine was killed.")};
        (void)stage_feed(stage, input, &err);
    }
}

/* --- what the saga wants --- */

static void take_timer(struct stage *stage, const struct want *want)
{
    struct saga_input input = {.type = SAGA_INPUT_TIMER};
    bool is_wait = want->step != STEP_NONE && stage_operation(stage, want->step, DIRECTION_DO)->state == OP_WAITING;
    struct err err = {0};

    input.timer.step = want->step;
    input.timer.direction = want->direction;
    if (want->step == STEP_NONE) {
        input.timer.timer = (enum saga_timer)want->number;
        if (input.timer.timer == SAGA_TIMER_DEADLINE) {
            stage_strike(stage, STEP_NONE, DIRECTION_DO, TROUBLE_DEADLINE);
        }
    } else if (is_wait && stage->saga.definition->steps[want->step].kind != STEP_SLEEP) {
        stage_strike(stage, want->step, DIRECTION_DO, TROUBLE_TIMEOUT);
    } else if (stage_operation(stage, want->step, DIRECTION_DO)->state == OP_OPEN) {
        stage_strike(stage, want->step, DIRECTION_DO, TROUBLE_DEADLINE);
    }
    (void)stage_feed(stage, input, &err);
}

static void take_lock(struct stage *stage, const struct want *want)
{
    struct saga_input input = {.type = SAGA_INPUT_LOCKED};
    struct err err = {0};

    input.locked.key = arena_slice(&stage->arena, stage->saga.locks[want->number].key);
    input.locked.refused = stage->scenario->locks_taken && stage->saga.locks[want->number].fails;
    if (input.locked.refused) {
        stage_strike(stage, STEP_NONE, DIRECTION_DO, TROUBLE_LOCKED);
    }
    (void)stage_feed(stage, input, &err);
}

static void take_event(struct stage *stage, const struct event *event)
{
    if (event->after_ms >= 0 && stage->now_ms < STAGE_START_MS + event->after_ms) {
        stage->now_ms = STAGE_START_MS + event->after_ms;
    }
    stage->next_event++;
    if (event->kind == EVENT_PASS) {
        stage->pass_until_ms = stage->now_ms + event->pass_ms;
    } else {
        stage_event(stage, event);
    }
}

/* What comes from outside while the call is out, before it is answered. */
static void events_during(struct stage *stage, const struct want *call)
{
    while (!stage->failure.ptr && stage->next_event < stage->scenario->event_count) {
        const struct event *event = &stage->scenario->events[stage->next_event];

        if (!event->during.ptr || !slice_equal(event->during, stage->saga.definition->steps[call->step].id)) {
            return;
        }
        take_event(stage, event);
    }
}

static void take_want(struct stage *stage, const struct want *want)
{
    if (want->due_ms > stage->now_ms) {
        stage->now_ms = want->due_ms;
    }
    switch (want->type) {
    case WANT_CALL:
        events_during(stage, want);
        stage_answer_call(stage, want);
        return;
    case WANT_PROBE:
        stage_answer_probe(stage, want);
        return;
    case WANT_ADMIT:
        stage_answer_admission(stage, want->step);
        return;
    case WANT_TIMER:
        take_timer(stage, want);
        return;
    case WANT_EVALUATE:
        stage_evaluate(stage, want);
        return;
    case WANT_LOCK:
        take_lock(stage, want);
        return;
    }
    UNREACHABLE();
}

/* Orders what is wanted at the same time: nothing is called before all that may leave has left. */
static int rank(enum want_type type)
{
    switch (type) {
    case WANT_EVALUATE:
        return 0;
    case WANT_ADMIT:
        return 1;
    case WANT_LOCK:
        return 2;
    case WANT_TIMER:
        return 3;
    case WANT_CALL:
        return 4;
    case WANT_PROBE:
        return 5;
    }
    UNREACHABLE();
}

static bool goes_before(const struct stage *stage, const struct want *a, const struct want *b)
{
    int64_t due_a = a->due_ms > stage->now_ms ? a->due_ms : 0, due_b = b->due_ms > stage->now_ms ? b->due_ms : 0;

    if (due_a != due_b) {
        return due_a < due_b;
    }
    return rank(a->type) < rank(b->type);
}

/* Does the lock of this want stay with another saga for ever? */
static bool is_stuck(const struct stage *stage, const struct want *want)
{
    return want->type == WANT_LOCK && stage->scenario->locks_taken && !stage->saga.locks[want->number].fails;
}

static bool find_next(struct stage *stage, struct want *out)
{
    const struct want *next = NULL;
    struct wants wants;

    arena_reset(&stage->turn);
    saga_wants(&stage->saga, &stage->turn, &wants);
    for (size_t i = 0; i < wants.count; i++) {
        if (!is_stuck(stage, &wants.items[i]) && (!next || goes_before(stage, &wants.items[i], next))) {
            next = &wants.items[i];
        }
    }
    if (next) {
        *out = *next; /* copied: the wants lie in the arena of the turn */
    }
    return next != NULL;
}

/* --- what comes next --- */

/* Is only a clock running out next, for something that comes from outside or for the saga as a whole? */
static bool is_limit(const struct stage *stage, const struct want *next)
{
    const struct operation *forward;

    if (next->type != WANT_TIMER || next->due_ms <= stage->now_ms) {
        return false;
    }
    if (next->step == STEP_NONE) {
        return true;
    }
    forward = stage_operation(stage, next->step, DIRECTION_DO);
    return forward->state == OP_OPEN ||
           (forward->state == OP_WAITING && stage->saga.definition->steps[next->step].kind != STEP_SLEEP);
}

/* Does the next event come before what is wanted next? */
static bool event_is_next(const struct stage *stage, const struct want *next)
{
    const struct event *event = &stage->scenario->events[stage->next_event];
    int64_t at_ms;

    if (stage->next_event == stage->scenario->event_count || event->during.ptr) {
        return false;
    }
    if (event->after_ms < 0) {
        return !next || is_limit(stage, next);
    }
    at_ms = STAGE_START_MS + event->after_ms;
    return !next || (next->due_ms > stage->now_ms ? at_ms <= next->due_ms : at_ms <= stage->now_ms);
}

/* One move. Returns false when the play is over. */
static bool stage_move(struct stage *stage)
{
    struct want next;

    if (stage->failure.ptr || stage->saga.phase == PHASE_ENDED) {
        return false;
    }
    if (stage->turns > TURNS_MAX) {
        stage_fail(stage, "the saga comes to no end within %d turns", TURNS_MAX);
        return false;
    }
    bool wanted = find_next(stage, &next);

    if (stage->pass_until_ms) {
        if (wanted && next.due_ms <= stage->pass_until_ms) {
            take_want(stage, &next);
        } else {
            stage->now_ms = stage->pass_until_ms;
            stage->pass_until_ms = 0;
        }
        return true;
    }
    if (event_is_next(stage, wanted ? &next : NULL)) {
        take_event(stage, &stage->scenario->events[stage->next_event]);
        return true;
    }
    if (!wanted || (stage->saga.escalation.number && is_limit(stage, &next))) {
        return false; /* a person is asked, and the scenario has none */
    }
    take_want(stage, &next);
    return true;
}

/* --- the start --- */

static bool input_fits(struct stage *stage)
{
    struct faults faults;
    struct slice tags;
    struct err err = {0};

    faults_init(&faults, &stage->arena);
    schema_check(stage->definition->input, stage->scenario->input, SLICE("/input"), &stage->arena, &faults);
    if (faults.count > 0) {
        stage_fail(stage, "the input does not fit the schema of the saga: %.*s: %.*s",
                   SLICE_ARG(faults.items[0].pointer), SLICE_ARG(faults.items[0].detail));
        return false;
    }
    if (definition_tags(stage->definition, stage->scenario->input, &stage->arena, &tags, &err) != ERR_OK) {
        stage_fail(stage, "%s: %s", err.message, err.detail);
        return false;
    }
    return true;
}

static bool step_calls_tool(const struct definition *definition, struct slice name)
{
    for (uint32_t i = 0; i < definition->step_count; i++) { /* a tool that is written in its step stands in no list */
        if (definition->steps[i].tool && slice_equal(definition->steps[i].tool->name, name)) {
            return true;
        }
    }
    return false;
}

static bool has_tool(const struct definition *definition, struct slice name)
{
    for (uint32_t i = 0; i < definition->tool_count; i++) {
        if (slice_equal(definition->tools[i]->name, name)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < definition->child_count; i++) {
        if (step_calls_tool(definition->children[i], name)) {
            return true;
        }
    }
    return step_calls_tool(definition, name);
}

/* A misspelt name would leave its replies unsaid, and nobody would notice. */
static bool tools_fit(struct stage *stage)
{
    for (size_t i = 0; i < stage->scenario->tool_count; i++) {
        if (!has_tool(stage->definition, stage->scenario->tools[i].tool)) {
            stage_fail(stage, "the saga calls no tool \"%.*s\"", SLICE_ARG(stage->scenario->tools[i].tool));
            return false;
        }
    }
    return true;
}

static void start(struct stage *stage)
{
    struct saga_input input = {.type = SAGA_INPUT_START};
    struct err err = {0};

    input.start.namespace = SLICE("default");
    input.start.business_id = stage->scenario->business_id;
    input.start.key = stage->scenario->business_id;
    input.start.input = stage->scenario->input;
    if (stage_feed(stage, input, &err) != ERR_OK) {
        stage_fail(stage, "the saga cannot start: %s: %s", err.message, err.detail);
    }
}

static bool kills(const struct scenario *scenario)
{
    for (size_t i = 0; i < scenario->tool_count; i++) {
        for (size_t k = 0; k < scenario->tools[i].calls.count; k++) {
            if (scenario->tools[i].calls.items[k].kind == REPLY_CRASH) {
                return true;
            }
        }
    }
    return false;
}

/* A file has no version, and a run needs one. */
static const struct definition *with_version(const struct definition *definition, struct arena *arena)
{
    struct definition *copy = arena_dup(arena, definition, sizeof(*definition));

    copy->version = definition->version ? definition->version : 1;
    return copy;
}

void stage_play(const struct scenario *scenario, const struct definition *definition, struct stage *out)
{
    *out = (struct stage){.scenario = scenario,
                          .now_ms = STAGE_START_MS,
                          .next_escalation = 1,
                          .next_approval = 1,
                          .keeps_log = kills(scenario)};
    arena_init(&out->arena, 8192);
    arena_init(&out->saga_arena, 8192);
    arena_init(&out->turn, 8192);
    buffer_init(&out->log, LOG_BYTES_MAX);
    out->definition = with_version(definition, &out->arena);
    saga_init(&out->saga, &out->saga_arena, stage_id, out->definition);
    if (tools_fit(out) && input_fits(out)) {
        start(out);
        while (stage_move(out)) {
        }
    }
    if (!out->failure.ptr && out->next_event < scenario->event_count) {
        stage_fail(out, "the saga had ended before event %zu (%s)", out->next_event + 1,
                   event_name(scenario->events[out->next_event].kind));
    }
}

void stage_fini(struct stage *stage)
{
    buffer_fini(&stage->log);
    arena_fini(&stage->turn);
    arena_fini(&stage->saga_arena);
    arena_fini(&stage->arena);
    free(stage->truths);
    free(stage->calls);
    free(stage->struck);
}
