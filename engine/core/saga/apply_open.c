/*
 * Folds what only open sagas and runs have: steps that come with their calls, emissions and loops, bypasses, pauses.
 * Like saga/apply.c, of which it is a part, it decides nothing.
 */
#include "base/json.h"
#include "core/saga/machine.h"

#include <string.h>

/* --- how it begins --- */

static int64_t member_i64(struct slice json, const char *name, int64_t otherwise)
{
    int64_t value;

    return json.ptr && json_i64(json_member(json, name), &value) && value >= 0 ? value : otherwise;
}

static uint32_t within(int64_t value, uint32_t least, uint32_t most)
{
    return value < least ? least : value > most ? most : (uint32_t)value;
}

void apply_opening(struct saga *saga, const struct record *record)
{
    saga->run = apply_keep(saga, record->run);
    saga->escalate_on_timeout = slice_is(record->on_timeout, "escalate");
    saga->budget = (struct budget){.calls = member_i64(record->budget, "calls", -1),
                                   .emissions = member_i64(record->budget, "emissions", -1),
                                   .micros = member_i64(record->budget, "micros", -1)};
    loop_guard_init(saga->loop, within(member_i64(record->loop, "repeats", LOOP_REPEATS_DEFAULT), 2, LOOP_REPEATS_MAX),
                    within(member_i64(record->loop, "max_cycle", LOOP_MAX_CYCLE_DEFAULT), 1, LOOP_CYCLE_MAX));
}

/* --- emissions --- */

static void take_turn(struct saga *saga, const struct record *record)
{
    if (record->conversation_turn.ptr && !slice_equal(record->conversation_turn, saga->conversation_turn)) {
        saga->conversation_turn = apply_keep(saga, record->conversation_turn);
        loop_guard_open(saga->loop);
    }
}

/* Does the record make an alias? Only an emission that was answered with the operation's own record does; a refused one
 * is decided anew. */
static bool makes_alias(const struct record *record)
{
    return record->type != RECORD_OPERATION_DUPLICATE || slice_is(record->decision, "replayed") ||
           slice_is(record->decision, "waited") || slice_is(record->decision, "failed") ||
           slice_is(record->decision, "drift");
}

/* Was the same request here before? The network may repeat it as often as it likes. */
static bool is_known_emission(const struct saga *saga, const struct record *record)
{
    return record->emission.ptr && emissions_find(saga->emissions, record->emission);
}

static void count_emission(struct saga *saga, const struct record *record)
{
    static const struct digest none;
    const struct digest *fingerprint = memcmp(&record->fingerprint, &none, sizeof(none)) != 0
                                           ? &record->fingerprint
                                           : &saga->steps[record->step].forward.fingerprint;

    if (is_known_emission(saga, record)) {
        return;
    }
    saga->used.emissions++;
    if (record->emission.ptr && makes_alias(record)) {
        emissions_add(saga->emissions, record->emission, fingerprint, record->step, saga_memory(saga));
    }
}

static uint64_t call_of(const struct saga *saga, const struct record *record)
{
    static const struct digest none;
    const struct operation *op = &saga->steps[record->step].forward;
    bool own = memcmp(&record->fingerprint, &none, sizeof(none)) != 0;

    return loop_call(saga->definition->steps[record->step].tool->name, op->scope,
                     own ? &record->fingerprint : &op->fingerprint);
}

/* Sets the answer that callers of this step get from now on. */
void apply_answered(struct saga *saga, uint32_t step)
{
    const struct operation *op = &saga->steps[step].forward;

    /* A call that a guard refused was told to come back, which is not an answer yet. */
    if (saga_is_open(saga) && (op->state == OP_COMPLETED || op->state == OP_SKIPPED ||
                               (op->state == OP_FAILED && op->source != SOURCE_GUARD))) {
        struct slice fields[] = {slice_of(step_status_name(operation_status(op))), op->result, op->error, op->detail};
        struct digest digest = digest_fields("la1", fields, COUNT_OF(fields));

        loop_guard_answered(saga->loop, step, loop_answer(&digest));
    }
}

/* Counts a call for the loop guard. While the last call is not answered, one more is a race and does not count. */
static void count_in_loop(struct saga *saga, const struct record *record)
{
    uint64_t call = call_of(saga, record);

    take_turn(saga, record);
    if (!loop_guard_is_race(saga->loop, call)) {
        loop_guard_add(saga->loop, call, record->step);
    }
}

/* --- calls --- */

static void grow_steps(struct saga *saga)
{
    uint32_t count = saga->definition->step_count;

    if (count >= OPEN_ROOM_MIN && (count & (count - 1)) == 0) {
        struct step *steps = arena_array(saga_memory(saga), (size_t)count * 2, sizeof(*steps));

        memcpy(steps, saga->steps, count * sizeof(*steps));
        saga->steps = steps;
    }
    saga->steps[count] = (struct step){0};
}

bool apply_find_tools(const struct saga *saga, const struct record *record, struct step_definition *out)
{
    const struct tool_shelf *shelf = saga->definition->shelf;
    const struct tool *tool, *undo = NULL;

    tool = shelf ? shelf->find(shelf, saga->namespace, record->tool_name, record->tool_version) : NULL;
    if (record->undo_name.len) {
        undo = shelf ? shelf->find(shelf, saga->namespace, record->undo_name, record->undo_version) : NULL;
    }
    return tool && (undo || !record->undo_name.len) && step_definition_of_call(tool, undo, out);
}

void apply_called_definition(struct saga *saga, const struct record *record)
{
    struct step_definition definition;

    CHECK(apply_find_tools(saga, record, &definition));
    definition.terminal =
        definition.terminal && record->effect != EFFECT_READ; /* with these arguments the call has no effect */
    /* The copies are in the memory of this state, so that a definition that was only tried goes away with it. */
    definition.id = apply_keep(saga, record->label);
    definition.name = apply_keep(saga, record->call_step);
    saga->definition = definition_with_step(saga->definition, &definition, saga_memory(saga));
}

/* Makes the step. The beginning of its operation is folded afterwards, as for every other step. */
void apply_called(struct saga *saga, const struct record *record)
{
    grow_steps(saga);
    apply_called_definition(saga, record);
    saga->steps[record->step].earlier_key = record->earlier_key;
    if (slice_is(record->decision, "bypass")) {
        enum direction direction;
        uint32_t earlier = saga_find_key(saga, &record->earlier_key, &direction);

        saga->steps[earlier].bypass = NULL;
    }
}

void apply_reserved(struct saga *saga, const struct record *record)
{
    saga->used.calls++;
    saga->used.micros += record->cost_micros;
    saga->steps[record->step].forward.cost_micros = record->cost_micros;
}

void apply_emission(struct saga *saga, const struct record *record)
{
    if (!is_known_emission(saga, record)) {
        count_emission(saga, record);
        count_in_loop(saga, record);
    }
}

void apply_duplicate(struct saga *saga, const struct record *record)
{
    struct operation *op = &saga->steps[record->step].forward;
    bool known = is_known_emission(saga, record),
         settled = op->state == OP_COMPLETED || op->state == OP_FAILED || op->state == OP_SKIPPED;
    /* A caller that was told to come back does so, and a call that a loop refused is not part of the loop. */
    bool counts =
        settled && !slice_is(record->decision, "loop") && !slice_is(record->decision, "awaiting-operator") && !known;

    op->duplicates++;
    count_emission(saga, record);
    if (!counts) { /* a repeat is a race, and not a loop, until the first one is answered */
        if (!known) {
            take_turn(saga, record);
        }
        return;
    }
    count_in_loop(saga, record);
    if (makes_alias(record)) {
        apply_answered(saga, record->step);
    } else { /* the refusal is the answer */
        struct digest refusal = digest_sha256(record->decision);

        loop_guard_answered(saga->loop, record->step, loop_answer(&refusal));
    }
}

void apply_expired(struct saga *saga, const struct record *record)
{
    struct step *step = &saga->steps[record->step];

    step->forward.expired = true;
    step->forward.args = step->forward.result = SLICE_NONE;
    step->undo_args = SLICE_NONE;
}

void apply_bypass(struct saga *saga, const struct record *record)
{
    struct bypass *bypass = arena_alloc(saga_memory(saga), sizeof(*bypass));

    *bypass = (struct bypass){.actor = apply_keep(saga, record->actor),
                              .note = apply_keep(saga, record->note),
                              .fingerprint = record->fingerprint,
                              .expires_ms = record->due_ms};
    saga->steps[record->step].bypass = bypass;
}

/* --- loops and pauses --- */

/* The call that would have closed the circle is the oldest of its block one copy before, so the block is all of
 * them. */
void apply_tripped(struct saga *saga, const struct record *record)
{
    size_t length = json_count(record->pattern);
    uint32_t most;

    take_turn(saga, record);
    most = saga->loop->count < LOOP_CYCLE_MAX ? saga->loop->count : LOOP_CYCLE_MAX;
    if (most == 0) { /* no decision makes this record, but a log may hold it */
        loop_guard_close(saga->loop, NULL, 0);
        return;
    }
    loop_guard_close_block(saga->loop, within((int64_t)length, 1, most));
}

void apply_paused(struct saga *saga, const struct record *record)
{
    saga->paused = apply_keep(saga, record->reason);
    saga->paused_by = apply_keep(saga, record->actor);
    saga->paused_note = apply_keep(saga, record->note);
    saga->paused_ms = record->at_ms;
}

void apply_resumed(struct saga *saga, const struct record *record)
{
    if (pause_holds(saga)) {
        pause_end(saga, record->at_ms);
        return;
    }
    if (saga->deadline_ms && saga->paused.ptr && record->at_ms > saga->paused_ms) {
        saga->deadline_ms += record->at_ms - saga->paused_ms;
    }
    saga->paused = SLICE_NONE;
    saga->paused_ms = 0;
    if (saga->loop) {
        loop_guard_open(saga->loop);
    }
}

void apply_rested(struct saga *saga, const struct record *record)
{
    saga->phase = PHASE_ENDED;
    saga->end = SAGA_COMPLETED;
    saga->ended_ms = record->at_ms;
}

void apply_woken(struct saga *saga)
{
    saga->phase = PHASE_FORWARD;
    saga->ended_ms = 0;
}

/* --- texts that take each other's place --- */

struct slice apply_keep_in_room(const struct saga *saga, struct room *room, struct slice text)
{
    if (!saga->arena || !text.ptr) {
        return text;
    }
    if (text.len > room->bytes) {
        room->bytes = text.len > 2 * room->bytes ? text.len : 2 * room->bytes;
        room->ptr = arena_alloc(saga->arena, room->bytes);
    }
    memcpy(room->ptr, text.ptr, text.len);
    return (struct slice){room->ptr, text.len};
}
