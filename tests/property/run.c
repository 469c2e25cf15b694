/* See run.h. A turn decides, writes the records as text, folds both the records and the text, compares the two states,
 * and calls the judge. */
#include "tests/property/run.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LOG_BYTES_MAX ((size_t)16 << 20)

static struct run *in_play; /* lets a broken CHECK of the machine count as a finding */

_Noreturn void run_violate(struct run *run, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    run->violation = arena_slice(&run->kept, slice_of(text));
    longjmp(run->failed, 1);
}

static void on_abort(int number)
{
    (void)number;
    if (in_play) {
        in_play->violation = SLICE("a condition of the machine is broken");
        longjmp(in_play->failed, 1);
    }
}

void run_init(struct run *run, struct tally *tally)
{
    struct arena *arenas[] = {&run->kept,        &run->live_arena, &run->shadow_arena,
                              &run->again_arena, &run->turn,       &run->scratch};

    memset(run, 0, sizeof(*run));
    run->tally = tally;
    for (size_t i = 0; i < COUNT_OF(arenas); i++) {
        arena_init(arenas[i], (size_t)64 << 10);
    }
    buffer_init(&run->log, LOG_BYTES_MAX);
    buffer_init(&run->view, LOG_BYTES_MAX);
    buffer_init(&run->view_of_shadow, LOG_BYTES_MAX);
    (void)signal(SIGABRT, on_abort);
}

void run_fini(struct run *run)
{
    struct arena *arenas[] = {&run->kept,        &run->live_arena, &run->shadow_arena,
                              &run->again_arena, &run->turn,       &run->scratch};

    for (size_t i = 0; i < COUNT_OF(arenas); i++) {
        arena_fini(arenas[i]);
    }
    buffer_fini(&run->log);
    buffer_fini(&run->view);
    buffer_fini(&run->view_of_shadow);
}

/* --- folding --- */

static void fold_line(struct run *run, struct saga *saga, uint32_t line, struct record *record)
{
    struct slice text = {run->log.ptr + run->lines[line].from, run->lines[line].len};
    struct err err = {0};

    if (record_read(text, saga->definition, &run->scratch, record, &err) != ERR_OK) {
        run_violate(run, "cannot be read: %s: %.*s", err.message, SLICE_ARG(text));
    }
    record->seq = line + 1;
    record->at_ms = run->lines[line].at_ms;
    if (!record_check(saga, record, &err)) {
        run_violate(run, "does not fit when read: %s: %.*s", err.message, SLICE_ARG(text));
    }
    saga_apply(saga, record);
}

static void compare(struct run *run, const struct saga *a, const struct saga *b, const char *what)
{
    buffer_reset(&run->view);
    buffer_reset(&run->view_of_shadow);
    saga_write_json(a, &run->view);
    saga_write_json(b, &run->view_of_shadow);
    if (saga_is_open(a) &&
        (memcmp(a->loop, b->loop, sizeof(*a->loop)) != 0 || memcmp(&a->used, &b->used, sizeof(a->used)) != 0 ||
         a->emissions->count != b->emissions->count)) {
        run_violate(run, "%s another in what it remembers of calls", what);
    }
    if (run->view.overflow || !slice_equal(buffer_slice(&run->view), buffer_slice(&run->view_of_shadow))) {
        run_violate(run, "%s:\n%.*s\nand not\n%.*s", what, (int)run->view.len, run->view.ptr,
                    (int)run->view_of_shadow.len, run->view_of_shadow.ptr);
    }
}

void run_fold_again(struct run *run)
{
    struct arena old = run->live_arena;
    struct record record;

    arena_reset(&run->again_arena);
    run->live_arena = run->again_arena;
    run->again_arena = old;
    saga_init(&run->live, &run->live_arena, run->shadow.id, run->definition);
    for (uint32_t i = 0; i < run->line_count; i++) {
        arena_reset(&run->scratch); /* everything that the state keeps is in its own arena */
        fold_line(run, &run->live, i, &record);
    }
    compare(run, &run->live, &run->shadow, "folded again it is");
}

/* --- one turn --- */

static void take_record(struct run *run, const struct record *record)
{
    struct record read;
    struct err err = {0};

    if (run->line_count == RECORDS_MAX) {
        run_violate(run, "the log does not end");
    }
    if (record->type == RECORD_ESCALATION_OPENED) {
        run->next_escalation += 64;
    }
    run->next_approval += record->approval && record->type == RECORD_STEP_WAITING ? 64 : 0;
    run->lines[run->line_count].from = run->log.len;
    run->lines[run->line_count].at_ms = record->at_ms;
    record_write(record, run->shadow.definition, &run->log);
    CHECK(!run->log.overflow);
    run->lines[run->line_count].len = run->log.len - run->lines[run->line_count].from;
    buffer_put_char(&run->log, '\n');
    if (run->is_told) {
        (void)printf("    %.*s\n", (int)run->lines[run->line_count].len,
                     run->log.ptr + run->lines[run->line_count].from);
    }
    if (!record_check(&run->shadow, record, &err)) {
        run_violate(run, "does not fit as decided: %s", err.message);
    }
    fold_line(run, &run->shadow, run->line_count++, &read);
    judge_record(run, &read);
}

static bool is_of_a_person(enum saga_input_type type)
{
    return type == SAGA_INPUT_ABORT || type == SAGA_INPUT_OPERATOR || type == SAGA_INPUT_PAUSE ||
           type == SAGA_INPUT_RESUME || type == SAGA_INPUT_SIGNAL || type == SAGA_INPUT_DECISION ||
           type == SAGA_INPUT_COMPLETE || type == SAGA_INPUT_BYPASS || type == SAGA_INPUT_MEND ||
           type == SAGA_INPUT_ESCALATE;
}

enum err_code run_feed(struct run *run, struct saga_input input)
{
    struct decision decision = {0};
    const struct records *records = &decision.records;
    struct err err = {0};
    enum err_code code;

    world_land(run);
    input.now_ms = run->now_ms;
    input.escalation_number = run->next_escalation;
    input.approval_number = run->next_approval;
    input.number_stride = 64;
    input.holds = run->holds.count > 0 ? &run->holds : NULL;
    arena_reset(&run->turn);
    code = saga_decide_next(&run->live, &input, &run->turn, &decision, &err);
    run->agent.answer = records->answer;
    run->turns++;
    if (code == ERR_INTERNAL) {
        run_violate(run, "decided what does not fit: %s %s", err.message, err.detail);
    }
    if (code != ERR_OK) {
        if (!is_of_a_person(input.type) || records->count > 0) {
            run_violate(run, "refused: %s %s", err.message, err.detail);
        }
        return code;
    }
    for (size_t i = 0; i < records->count; i++) {
        take_record(run, &records->items[i]);
    }
    if (records->count > 0) { /* what was decided is the state, as engines have it; the shadow is folded from its log */
        saga_become(&run->live, decision.next, records);
        if (arena_points_into(&run->live_arena, &run->turn) || arena_points_into(&run->live_arena, &run->scratch)) {
            run_violate(run, "the state points at what ends with the turn or with its input");
        }
        compare(run, &run->live, &run->shadow, "live it is");
    }
    return ERR_OK;
}

static void play(struct run *run, uint64_t seed)
{
    struct saga_input start = {.type = SAGA_INPUT_START};
    struct saga_id id = {{{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 0x07}}};

    for (unsigned i = 0; i < 6; i++) {
        id.uuid.bytes[9 + i] = (uint8_t)(seed >> (8 * i));
    }
    saga_init(&run->live, &run->live_arena, id, run->definition);
    saga_init(&run->shadow, &run->shadow_arena, id, run->definition);
    judge_open(run);
    if (run->judge.kind == SAGA_OPEN) {
        start = agent_start(run);
    }
    start.start.namespace = SLICE("default");
    start.start.input = SLICE(SKETCH_INPUT);
    if (run->judge.kind != SAGA_RUN) { /* a run begins with its first call */
        (void)run_feed(run, start);
    }
    walk(run);
    run_fold_again(run);
}

bool run_play(struct run *run, struct script *script)
{
    static const uint32_t troubles[] = {0, 3, 8, 15, 30, 50};
    struct arena *arenas[] = {&run->live_arena, &run->shadow_arena, &run->again_arena, &run->turn, &run->scratch};
    struct chance mood = chance_of(script->seed, 77, 0);

    for (size_t i = 0; i < COUNT_OF(arenas); i++) {
        arena_reset(arenas[i]);
    }
    buffer_reset(&run->log);
    run->script = script;
    run->line_count = 0;
    run->now_ms = RUN_START_MS;
    run->next_escalation = run->next_approval = 64;
    run->signalled[0] = run->signalled[1] = 0;
    run->turns = run->results = run->signals_sent = run->want_count = 0;
    run->trouble = troubles[chance_below(&mood, COUNT_OF(troubles))];
    run->is_kind = run->has_stale = false;
    run->is_deaf = chance_percent(&mood, 15);
    run->violation = SLICE_NONE;
    run->holds = (struct hold_set){&run->hold, 0};
    run->agent = (struct agent){.shelf = run->agent.shelf};
    in_play = run;
    if (setjmp(run->failed) == 0) {
        play(run, script->seed);
    }
    in_play = NULL;
    run->tally->runs++;
    run->tally->turns += run->turns;
    return run->violation.ptr == NULL;
}
