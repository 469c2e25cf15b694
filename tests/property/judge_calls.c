/* Judges which calls of an agent may begin, and how they are answered, against earlier calls, the log and the books of
 * the world. */
#include "tests/property/run.h"

#define HOUR_MS (INT64_C(3600) * 1000)

bool judge_is_open(const struct judge *judge)
{
    return judge->kind != SAGA_DEFINED;
}

/* --- what is known of earlier calls --- */

static struct slice step_of(struct run *run, const struct request *request)
{
    return request->step.ptr ? request->step : arena_printf(&run->kept, "~%s", request->ware->kit.name);
}

static bool is_read(const struct node *node)
{
    return node->effect == EFFECT_READ;
}

static bool is_settled(const struct node *node)
{
    return node->state == IS_DONE || node->state == IS_BEFORE || node->state == IS_FAILED || node->state == IS_SKIPPED;
}

static bool is_unsettled(const struct node *node)
{
    return !node->is_waived && (!is_settled(node) || node->undo == UNDO_SENT || node->flies[DIRECTION_UNDO]);
}

/* Finds the newest effect of this name, tool and scope. Returns NODE_NONE when there is none. */
static uint32_t find_effect(const struct run *run, const struct node *node)
{
    uint32_t found = NODE_NONE;

    for (uint32_t i = 0; i < run->judge.count; i++) {
        const struct node *other = &run->judge.nodes[i];

        if (other != node && !is_read(other) && slice_equal(other->called.step, node->called.step) &&
            slice_equal(other->called.scope, node->called.scope) &&
            slice_equal(slice_of(other->kit->name), slice_of(node->kit->name))) {
            found = i;
        }
    }
    return found;
}

static bool is_known(const struct judge *judge, struct slice emission)
{
    for (uint32_t i = 0; i < judge->alias_count && emission.ptr; i++) {
        if (slice_equal(judge->aliases[i].emission, emission)) {
            return true;
        }
    }
    return false;
}

/* Finds the terminal call that was made and has not certainly failed. */
static uint32_t sealed_by(const struct judge *judge)
{
    for (uint32_t i = 0; i < judge->count; i++) {
        const struct node *node = &judge->nodes[i];

        if (node->kit->terminal && !is_read(node) && node->state != IS_FAILED && node->state != IS_SKIPPED) {
            return i;
        }
    }
    return NODE_NONE;
}

/* --- emissions, and what a budget is spent on --- */

static void count_emission(struct run *run, const struct record *record, uint32_t node)
{
    struct judge *judge = &run->judge;

    if (is_known(judge, record->emission)) {
        return;
    }
    judge->emissions++;
    if (record->emission.ptr && (record->type != RECORD_OPERATION_DUPLICATE || slice_is(record->decision, "replayed") ||
                                 slice_is(record->decision, "waited") || slice_is(record->decision, "failed") ||
                                 slice_is(record->decision, "drift"))) {
        CHECK(judge->alias_count < ALIASES_MAX);
        judge->aliases[judge->alias_count++] = (struct alias){arena_slice(&run->kept, record->emission), node};
    }
}

static void book(struct judge *judge, struct node *node, int64_t micros)
{
    judge->micros += micros - node->called.booked;
    node->called.booked = micros;
}

static void spend(struct run *run, const struct record *record, struct node *node)
{
    struct judge *judge = &run->judge;
    const struct sketch *sketch = &run->script->sketch;
    int64_t costs = node->kit->costs ? 100 : 0;

    if (sketch->calls >= 0 && judge->calls >= sketch->calls) {
        run_violate(run, "%s is one call more than the budget has", node->id);
    }
    if (sketch->emissions >= 0 && judge->emissions >= sketch->emissions && !is_known(judge, record->emission)) {
        run_violate(run, "%s is one emission more than the budget has", node->id);
    }
    if (costs && sketch->micros >= 0 && judge->micros + costs > sketch->micros) {
        run_violate(run, "%s costs more than the budget has", node->id);
    }
    judge->calls++;
    judge->micros += costs;
    node->called.booked += costs;
}

/* --- beginning --- */

/* Repeats an earlier call, where that is allowed. */
static void once_more(struct run *run, struct node *node, const struct request *request)
{
    uint32_t earlier = find_effect(run, node);
    struct node *other;

    if (earlier == NODE_NONE) {
        return;
    }
    other = &run->judge.nodes[earlier];
    if (other->state == IS_UNKNOWN && !other->is_waived) {
        run_violate(run, "%s is called once more, and nobody knows whether it happened", other->id);
    }
    if (other->called.signed_until_ms > run->now_ms && other->called.amount == request->amount && is_settled(other)) {
        other->called.signed_until_ms = 0; /* the signature is used up */
        return;
    }
    if (other->called.ware->allows ||
        (other->called.ware->comes_back && is_settled(other) && run->now_ms >= other->called.settled_ms + HOUR_MS)) {
        return;
    }
    run_violate(run, "%s is called once more, and nobody has signed it off", other->id);
}

/* Checks that `node` may be called, or called again. */
static void must_be_let_in(struct run *run, const struct node *node)
{
    const struct judge *judge = &run->judge;
    uint32_t at = (uint32_t)(node - judge->nodes), sealed = sealed_by(judge);

    if (judge->is_paused || judge->is_looping) {
        run_violate(run, "%s is called while all is paused", node->id);
    }
    if (judge->is_failing || judge->is_planned || judge->is_ended) {
        run_violate(run, "%s is called in a saga that is over", node->id);
    }
    if (judge->kind != SAGA_OPEN || is_read(node)) {
        return;
    }
    if (sealed != NODE_NONE && sealed != at) {
        run_violate(run, "%s is called after %s, which cannot be undone", node->id, judge->nodes[sealed].id);
    }
    for (uint32_t i = 0; node->kit->terminal && i < judge->count; i++) {
        if (i != at && is_unsettled(&judge->nodes[i])) {
            run_violate(run, "%s cannot be undone, and %s is not settled", node->id, judge->nodes[i].id);
        }
    }
    if (node->kit->terminal && judge->escalations > 0) {
        run_violate(run, "%s cannot be undone, and somebody is asked", node->id);
    }
}

static void begins_now(struct run *run, struct node *node)
{
    node->order = ++run->judge.begun;
    node->called.begun_seq = run->judge.seq;
    node->called.settled_seq = 0;
    node->state = IS_PENDING;
}

static void must_be_calling(struct run *run, const struct record *record)
{
    if (!run->agent.is_calling) {
        run_violate(run, "%s, and nobody has called", record_type_name(record->type));
    }
}

void judge_called(struct run *run, const struct record *record)
{
    struct judge *judge = &run->judge;
    const struct request *request = &run->agent.request;
    const struct ware *ware = agent_ware(record->tool_name, record->tool_version);
    struct node *node = &judge->nodes[judge->count];

    must_be_calling(run, record);
    if (ware != request->ware || record->effect != request->effect) {
        run_violate(run, "%.*s is called, and nobody has called that", SLICE_ARG(record->label));
    }
    CHECK(record->step == judge->count && judge->count + 1 < NODES_MAX);
    judge->called = (struct sketch_step){.kind = STEP_CALL, .on_failure = ON_FAILURE_CONTINUE};
    *node = (struct node){.step = &judge->called,
                          .saga = &run->script->sketch.sagas[0],
                          .kit = &ware->kit,
                          .effect = record->effect,
                          .parent = NODE_NONE,
                          .element = ELEMENT_NONE,
                          .id = arena_text(&run->kept, record->label)};
    node->name = node_name_of(node->id);
    node->called = (struct called){
        .ware = ware, .step = step_of(run, request), .scope = request->scope, .amount = request->amount};
    node->things[DIRECTION_DO].key = record->key;
    for (uint32_t i = 0; i < judge->count; i++) {
        if (uuid_equal(&judge->nodes[i].things[DIRECTION_DO].key.uuid, &record->key.uuid)) {
            run_violate(run, "%s has the key of %s", node->id, judge->nodes[i].id);
        }
    }
    if (is_known(judge, record->emission)) {
        run_violate(run, "%s is called by a repeat of a request", node->id);
    }
    if (request->unfit) {
        run_violate(run, "%s is called, and does not fit", node->id);
    }
    if (!is_read(node)) {
        once_more(run, node, request);
    }
    must_be_let_in(run, node);
    spend(run, record, node);
    count_emission(run, record, judge->count++);
    begins_now(run, node);
}

void judge_repeated(struct run *run, const struct record *record)
{
    struct judge *judge = &run->judge;
    struct node *node = &judge->nodes[record->step];

    must_be_calling(run, record);
    if (is_read(node) ? !is_settled(node) : node->state != IS_FAILED) {
        run_violate(run, "%s is called again, and has not failed", node->id);
    }
    if (is_read(node) && run->agent.request.unfit) {
        run_violate(run, "%s is called again, and does not fit any more", node->id);
    }
    must_be_let_in(run, node);
    spend(run, record, node);
    count_emission(run, record, record->step);
    begins_now(run, node);
    node->things[DIRECTION_DO].sends = 0; /* a call that surely had no effect may leave again */
}

/* --- what else the log has of agents --- */

void judge_signed(struct run *run, const struct record *record)
{
    struct node *node = &run->judge.nodes[record->step];

    if (!judge_is_open(&run->judge) || !record->actor.len || is_read(node) || !is_settled(node)) {
        run_violate(run, "one more of %s is signed off", node->id);
    }
    if (find_effect(run, node) != NODE_NONE && find_effect(run, node) > record->step) {
        run_violate(run, "one more of %s is signed off, which was called once more already", node->id);
    }
    node->called.signed_until_ms = record->due_ms;
}

void judge_woken(struct run *run)
{
    if (!run->judge.is_ended || run->judge.kind != SAGA_RUN) {
        run_violate(run, "what is woken does not rest");
    }
    run->judge.is_ended = false;
}

void judge_expired(struct run *run, const struct record *record)
{
    const struct node *node = &run->judge.nodes[record->step];

    if (run->judge.kind != SAGA_RUN || !is_settled(node)) {
        run_violate(run, "%s expires, and is not settled, or belongs to others", node->id);
    }
}

void judge_rested(struct run *run)
{
    struct judge *judge = &run->judge;

    for (uint32_t i = 0; i < judge->count; i++) {
        if (is_unsettled(&judge->nodes[i])) {
            run_violate(run, "the run rests, and %s is not settled", judge->nodes[i].id);
        }
    }
    if (judge->escalations > 0 || judge->is_looping || judge->kind != SAGA_RUN) {
        run_violate(run, "a run rests that is stuck");
    }
    judge->is_ended = true;
    judge->end = SAGA_COMPLETED;
}

void judge_duplicate(struct run *run, const struct record *record)
{
    must_be_calling(run, record);
    count_emission(run, record, record->step);
}

void judge_looped(struct run *run, const struct record *record)
{
    must_be_calling(run, record);
}

/* Judges a settled call. The order of undoing and the budget depend on it. */
void judge_call_settled(struct run *run, const struct record *record)
{
    struct judge *judge = &run->judge;
    struct node *node = &judge->nodes[record->step];

    if (!judge_is_open(judge)) {
        return;
    }
    node->called.settled_seq = record->type == RECORD_STEP_LATE ? 0 : record->seq;
    node->called.settled_ms = record->at_ms;
    if (record->type == RECORD_STEP_LATE && !record->error.len) {
        book(judge, node, node->kit->costs ? 100 : 0);
    } else if (record->type == RECORD_STEP_COMPLETED) {
        book(judge, node, node->kit->costs ? 100 : 0);
    } else if (record->type == RECORD_STEP_FAILED) {
        book(judge, node, 0);
        judge->calls -= record->source == SOURCE_GUARD || record->source == SOURCE_PRECHECK;
    }
    if (judge->calls < 0 || judge->micros < 0) {
        run_violate(run, "a budget is given back twice");
    }
}

/* --- what the caller is told --- */

void judge_answer(struct run *run, const struct request *request, const struct call_answer *answer)
{
    const struct node *node;

    if (answer->code != ERR_OK) {
        if (!answer->message.len || !answer->hint.len) {
            run_violate(run, "a call is refused, and not told why");
        }
        return;
    }
    if (answer->step >= run->judge.count) {
        run_violate(run, "an answer is about nothing");
    }
    node = &run->judge.nodes[answer->step];
    if (answer->replay && !is_settled(node)) {
        run_violate(run, "the result of %s is told, and there is none", node->id);
    }
    if (!slice_equal(node->called.step, step_of(run, request)) ||
        !slice_equal(slice_of(node->kit->name), slice_of(request->ware->kit.name)) ||
        !slice_equal(node->called.scope, request->scope)) {
        run_violate(run, "a call is answered with %s", node->id);
    }
    if (!is_read(node) && node->called.amount != request->amount) {
        run_violate(run, "a call with other arguments is answered with %s", node->id);
    }
}
