/*
 * See run.h. The judge reads the log record by record, and knows the sketch and the books of the world. It never looks
 * into the state of the machine, so it says only what an outsider could say.
 */
#include "tests/property/run.h"

#include <string.h>

#include "base/json.h"

/* --- undoing --- */

static void on_undo(struct run *run, const struct record *record, enum node_undo undo)
{
    struct node *node = &run->judge.nodes[record->step];
    bool is_intent = record->type == RECORD_COMPENSATION_INTENT;

    if (is_intent) {
        judge_undo_begins(run, record->step);
        node->intents[DIRECTION_UNDO] = record->attempt;
    }
    if (undo == UNDO_DONE && node->things[DIRECTION_UNDO].effects == 0) {
        run_violate(run, "%s counts as undone, and is not", node->id);
    }
    node->flies[DIRECTION_UNDO] = is_intent;
    node->undo = undo;
}

/* Has the deadline of the saga, or of a child that holds the step, passed? */
static bool has_passed_deadline(const struct judge *judge, const struct record *record)
{
    bool passed = record->step == STEP_NONE && judge->deadline_ms && record->at_ms >= judge->deadline_ms;

    for (uint32_t i = 0; i < judge->count && record->step != STEP_NONE; i++) {
        const struct node *node = &judge->nodes[i];

        passed = passed || ((i == record->step || node_is_within(judge, i, record->step)) && node->state == IS_OPEN &&
                            node->due_ms && record->at_ms >= node->due_ms);
    }
    return passed;
}

static void on_failing(struct run *run, const struct record *record)
{
    struct judge *judge = &run->judge;

    if (judge->is_failing) {
        run_violate(run, "the saga fails twice");
    }
    if (slice_is(record->error, "deadline") && (judge->is_held || !has_passed_deadline(judge, record))) {
        run_violate(run, "the deadline comes too early");
    }
    judge->is_failing = true;
    judge->is_paused = false;
}

static void on_group_failing(struct run *run, const struct record *record)
{
    struct judge *judge = &run->judge;
    struct node *node = &judge->nodes[record->step];

    if (!node_is_child(node) || node->state != IS_OPEN || node->is_failing || judge->is_failing ||
        node->step->on_failure == ON_FAILURE_COMPENSATE) {
        run_violate(run, "%s begins to fail on its own", node->id);
    }
    if (slice_is(record->error, "deadline") && (judge->is_held || !has_passed_deadline(judge, record))) {
        run_violate(run, "the deadline of %s comes too early", node->id);
    }
    node->is_failing = true;
}

/* --- ends --- */

static void completed_well(struct run *run)
{
    struct judge *judge = &run->judge;

    for (uint32_t i = 0; i < judge->count; i++) {
        const struct node *node = &judge->nodes[i];
        bool is_undone_group = false;

        for (uint32_t at = node->parent; at != NODE_NONE; at = judge->nodes[at].parent) {
            is_undone_group = is_undone_group || (judge->nodes[at].is_failing && judge->nodes[at].state != IS_DONE);
        }
        if (is_undone_group) {
            judge_must_not_stand(run, i, "stands, and its group was undone");
            continue;
        }
        if (!node_is_over(node) && !node->is_waived) {
            run_violate(run, "completed, and %s is not over", node->id);
        }
        if (node->undo_begun || node->things[DIRECTION_UNDO].effects > 0) {
            run_violate(run, "completed, and %s was undone", node->id);
        }
        if (node->state == IS_DONE && node_is_call(node) && node->things[DIRECTION_DO].effects == 0) {
            run_violate(run, "completed, and %s did not happen", node->id);
        }
        if (node->state == IS_FAILED || node->state == IS_SKIPPED) {
            judge_must_not_stand(run, i, "stands, and the saga completed without it");
        }
    }
}

static void on_end(struct run *run, const struct record *record)
{
    struct judge *judge = &run->judge;

    judge->is_ended = true;
    judge->end = record->type == RECORD_SAGA_COMPLETED     ? SAGA_COMPLETED
                 : record->type == RECORD_SAGA_COMPENSATED ? SAGA_COMPENSATED
                                                           : SAGA_ABANDONED;
    run->tally->ends[judge->end]++;
    if ((judge->is_paused && judge->end != SAGA_ABANDONED) || judge->escalations > 0) {
        run_violate(run, "the saga ends while it is %s", judge->is_paused ? "paused" : "escalated");
    }
    if (judge->end == SAGA_COMPLETED) {
        completed_well(run);
        if ((json_count(record->followers) != run->script->sketch.sagas[0].follower_count) && !record->error.len) {
            run_violate(run, "it is followed by %.*s", SLICE_ARG(record->followers));
        }
        return;
    }
    if (judge->end == SAGA_ABANDONED && !judge->was_decided) {
        run_violate(run, "abandoned, and nobody has said so");
    }
    if (judge->end == SAGA_ABANDONED && !judge->was_abandoned &&
        (!judge->is_planned || judge_has_passed_return(judge))) {
        completed_well(run); /* everything is done, except what a person left standing */
        return;
    }
    for (uint32_t i = 0; i < judge->count; i++) {
        bool is_debt = false;

        for (uint32_t k = 0; k < record->debt_count; k++) {
            is_debt = is_debt || record->debts[k] == i;
        }
        if (!is_debt && (world_stands(run, i) || world_is_on_the_wire(run, i))) {
            run_violate(run, "%s is left standing", judge->nodes[i].id);
        }
        if (is_debt && !node_may_stand(&judge->nodes[i]) && judge->nodes[i].state != IS_SENT) {
            run_violate(run, "%s is a debt, and does not stand", judge->nodes[i].id);
        }
    }
}

/* --- a pause --- */

static void on_resumed(struct run *run, const struct record *record)
{
    struct judge *judge = &run->judge;
    int64_t by_ms = record->at_ms - judge->paused_ms;

    if (!judge->is_paused && !judge->is_looping) {
        return; /* the operation that a loop had closed is open again */
    }
    judge->is_paused = judge->is_looping = false;
    judge->deadline_ms += judge->deadline_ms ? by_ms : 0;
    for (uint32_t i = 0; i < judge->count; i++) {
        judge->nodes[i].due_ms += judge->nodes[i].due_ms ? by_ms : 0;
    }
}

/* --- a hold --- */

static void on_held(struct run *run, const struct record *record)
{
    struct judge *judge = &run->judge;

    if (judge->is_held || judge->is_paused || run->holds.count == 0) {
        run_violate(run, "the clocks stand although %s",
                    judge->is_held     ? "they stand already"
                    : judge->is_paused ? "the saga is paused"
                                       : "nobody holds anything");
    }
    judge->is_held = true;
    judge->held_ms = record->at_ms;
}

/* The deadlines and the time for an approval end later by as long as the clocks stood since they were set. */
static void on_released(struct run *run, const struct record *record)
{
    struct judge *judge = &run->judge;

    if (!judge->is_held) {
        run_violate(run, "the clocks go on that did not stand");
    }
    judge->is_held = false;
    judge->deadline_ms += judge->deadline_ms ? record->at_ms - judge->held_ms : 0;
    for (uint32_t i = 0; i < judge->count; i++) {
        struct node *node = &judge->nodes[i];
        bool stood = node->state == IS_OPEN || (node->state == IS_WAITING && node->step->kind == STEP_APPROVE);

        if (node->due_ms && stood) {
            node->due_ms += record->at_ms - (node->due_from_ms > judge->held_ms ? node->due_from_ms : judge->held_ms);
        }
    }
}

/* --- what the guard of outgoing calls denies --- */

/* The records that tell how a try ended. */
static const enum record_type tries[DIRECTION_COUNT][7] = {
    [DIRECTION_DO] = {RECORD_STEP_INTENT, RECORD_STEP_RETRYING, RECORD_STEP_RUNNING, RECORD_STEP_UNKNOWN,
                      RECORD_STEP_PROBED, RECORD_STEP_COMPLETED, RECORD_STEP_FAILED},
    [DIRECTION_UNDO] = {RECORD_COMPENSATION_INTENT, RECORD_COMPENSATION_RETRYING, RECORD_COMPENSATION_RUNNING,
                        RECORD_COMPENSATION_UNKNOWN, RECORD_COMPENSATION_PROBED, RECORD_COMPENSATION_COMPLETED,
                        RECORD_COMPENSATION_FAILED},
};

static bool is_try(const struct record *record, enum direction direction)
{
    bool found = false;

    for (size_t i = 0; i < COUNT_OF(tries[direction]); i++) {
        found = found || record->type == tries[direction][i];
    }
    return found;
}

/* Judges a denied call. It neither fails nor is given up, however long that takes, except by a person or together with
 * its group. */
static void judge_denied(struct run *run, const struct record *record, enum direction direction)
{
    bool fails = record->type == RECORD_STEP_FAILED || record->type == RECORD_COMPENSATION_FAILED;
    bool probed = record->type == RECORD_STEP_PROBED || record->type == RECORD_COMPENSATION_PROBED;
    bool by_person = record->source == SOURCE_OPERATOR;
    bool denied = slice_is(record->error, OUTCOME_EGRESS_DENIED) && !by_person;
    struct node *node = &run->judge.nodes[record->step];

    /* The detail of an operation that was given up tells the last answer. A person who wants it tried again takes the
     * denial away: then it fails for its age. */
    denied = denied || (fails && node->denied[direction] && record->detail.len > 0 &&
                        memmem(record->detail.ptr, record->detail.len, OUTCOME_EGRESS_DENIED,
                               strlen(OUTCOME_EGRESS_DENIED)) != NULL);
    if (fails && denied && (direction == DIRECTION_UNDO || !judge_is_failing(&run->judge, record->step))) {
        run_violate(run, "%s has failed because it was denied", node->id);
    }
    if (record->type == RECORD_STEP_UNKNOWN && record->due_ms == 0 && denied) {
        run_violate(run, "%s is not asked about any more because its probe was denied", node->id);
    }
    if (record->source != SOURCE_GUARD || fails) { /* a guard that delays the operation says nothing new */
        node->denied[direction] = !fails && denied && (record->unsent || probed);
    }
}

/* Checks that a person is asked about each denied operation, or about one that comes first. */
static void judge_denied_rest(struct run *run)
{
    const struct judge *judge = &run->judge;

    for (uint32_t i = 0; i < judge->count && judge->escalations == 0 && !judge->is_paused; i++) {
        if (judge->nodes[i].denied[DIRECTION_DO] || judge->nodes[i].denied[DIRECTION_UNDO]) {
            run_violate(run, "%s was denied, and nobody is asked", judge->nodes[i].id);
        }
    }
}

/* --- the log --- */

void judge_record(struct run *run, const struct record *record)
{
    struct judge *judge = &run->judge;
    struct node *node = record->step == STEP_NONE || record->step >= judge->count ? NULL : &judge->nodes[record->step];

    run->tally->records[record->type]++;
    if (judge->is_ended && !(judge->kind == SAGA_OPEN && record->type == RECORD_OPERATION_DUPLICATE) &&
        record->type != RECORD_RUN_WOKEN) {
        run_violate(run, "%s after the end", record_type_name(record->type));
    }
    if (record->seq != ++judge->seq || (record->type == RECORD_SAGA_STARTED) != (record->seq == 1)) {
        run_violate(run, "%s has the number %llu", record_type_name(record->type), (unsigned long long)record->seq);
    }
    for (unsigned d = 0; d < DIRECTION_COUNT && node; d++) {
        if (is_try(record, (enum direction)d)) {
            judge_denied(run, record, (enum direction)d);
        }
    }
    switch (record->type) {
    case RECORD_SAGA_STARTED:
        judge->deadline_ms = record->due_ms;
        return;
    case RECORD_STEP_PENDING:
        judge_step_begins(run, record->step);
        node->effect = record->conditional ? record->effect : node->effect;
        node->state = IS_PENDING;
        return;
    case RECORD_STEP_INTENT:
        judge_intent(run, record);
        return;
    case RECORD_STEP_RETRYING:
    case RECORD_STEP_RUNNING:
    case RECORD_STEP_PROBED:
        if (record->type == RECORD_STEP_RETRYING) {
            judge_step_is_due(run, record->step); /* a guard held it back */
        }
        /* An operation that a person asked about again still waits for that person. */
        node->state = record->type == RECORD_STEP_PROBED && node->state == IS_UNKNOWN ? IS_UNKNOWN : IS_SENT;
        node->flies[DIRECTION_DO] = false;
        return;
    case RECORD_STEP_UNKNOWN:
        node->state = record->due_ms && !record->actor.len ? IS_SENT : IS_UNKNOWN;
        node->flies[DIRECTION_DO] = false;
        return;
    case RECORD_STEP_COMPLETED:
        judge_completed(run, record);
        judge_call_settled(run, record);
        return;
    case RECORD_STEP_FAILED:
        judge_failed(run, record);
        judge_call_settled(run, record);
        return;
    case RECORD_STEP_SKIPPED:
        judge_skipped(run, record);
        judge_call_settled(run, record);
        return;
    case RECORD_STEP_REOPENED:
        node->state = IS_SENT;
        node->effect = record->conditional ? record->effect : node->effect;
        return;
    case RECORD_STEP_WAIVED:
        node->is_waived = true;
        node->denied[DIRECTION_DO] = node->denied[DIRECTION_UNDO] = false;
        judge->was_decided = true;
        return;
    case RECORD_STEP_OPENED:
        judge_opened(run, record);
        return;
    case RECORD_STEP_FAILING:
        on_group_failing(run, record);
        return;
    case RECORD_STEP_WAITING:
        judge_waiting(run, record);
        return;
    case RECORD_SIGNAL_RECEIVED:
        judge_signal(run, record);
        return;
    case RECORD_APPROVAL_DECIDED:
        judge_decided(run, record);
        return;
    case RECORD_LOCK_WANTED:
        judge_locks(run, record);
        return;
    case RECORD_LOCK_TAKEN:
        if (judge->lock_taken >= judge->lock_count || !slice_equal(record->lock, judge->locks[judge->lock_taken])) {
            run_violate(run, "the lock %.*s is taken out of order", SLICE_ARG(record->lock));
        }
        judge->lock_taken++;
        return;
    case RECORD_STEP_LATE:
        if (!record->error.len && node->things[DIRECTION_DO].effects == 0) {
            run_violate(run, "%s happened after all, it says, and it did not", node->id);
        }
        judge_call_settled(run, record);
        node->is_doubted = record->error.len > 0;
        if (node->undo == UNDO_DONE) {
            node->undo = UNDO_FAILED;
        } else {
            node->state = IS_UNKNOWN;
            node->joined_late = node->joined_late || (judge->is_planned && node->undo == UNDO_NONE);
            node->undo = judge->is_planned ? UNDO_PLANNED : node->undo;
        }
        return;
    case RECORD_STEP_UNDONE:
        judge_undone(run, record);
        node->denied[DIRECTION_DO] = node->denied[DIRECTION_UNDO] = false;
        judge_call_settled(run, record);
        return;
    case RECORD_COMPENSATION_LATE:
        on_undo(run, record, UNDO_FAILED);
        return;
    case RECORD_SAGA_PAUSED:
        judge->is_paused = slice_is(record->reason, "operator");
        judge->is_looping = !judge->is_paused;
        judge->paused_ms = record->at_ms;
        return;
    case RECORD_SAGA_RESUMED:
        on_resumed(run, record);
        return;
    case RECORD_SAGA_FAILING:
        on_failing(run, record);
        return;
    case RECORD_COMPENSATION_PLANNED:
        judge_plan(run, record);
        return;
    case RECORD_COMPENSATION_INTENT:
    case RECORD_COMPENSATION_RETRYING:
    case RECORD_COMPENSATION_RUNNING:
        on_undo(run, record, UNDO_SENT);
        return;
    case RECORD_COMPENSATION_PROBED:
        on_undo(run, record, node->undo);
        return;
    case RECORD_COMPENSATION_UNKNOWN:
        on_undo(run, record, record->due_ms && !record->actor.len ? UNDO_SENT : UNDO_FAILED);
        return;
    case RECORD_COMPENSATION_COMPLETED:
        on_undo(run, record, UNDO_DONE);
        return;
    case RECORD_COMPENSATION_FAILED:
        on_undo(run, record, UNDO_FAILED);
        return;
    case RECORD_COMPENSATION_REOPENED:
        on_undo(run, record, UNDO_PLANNED);
        return;
    case RECORD_ESCALATION_OPENED:
        judge->escalation = record->escalation;
        if (slice_is(record->reason, "deadline") && record->at_ms < judge->deadline_ms) {
            run_violate(run, "somebody is asked about a deadline that has not passed");
        }
        if (judge->escalations++ > 0) {
            run_violate(run, "a second escalation is opened");
        }
        return;
    case RECORD_ESCALATION_RESOLVED:
        if (judge->escalations-- != 1 || judge->escalation != record->escalation) {
            run_violate(run, "an escalation is resolved that was not open");
        }
        judge->was_abandoned = judge->was_abandoned || slice_is(record->action, "abandon");
        judge->was_decided = judge->was_decided || judge->was_abandoned;
        return;
    case RECORD_SAGA_COMPLETED:
    case RECORD_SAGA_COMPENSATED:
    case RECORD_SAGA_ABANDONED:
        on_end(run, record);
        return;
    case RECORD_STEP_CALLED:
        judge_called(run, record);
        return;
    case RECORD_STEP_REPEATED:
        judge_repeated(run, record);
        return;
    case RECORD_OPERATION_DUPLICATE:
        judge_duplicate(run, record);
        return;
    case RECORD_OPERATION_EXPIRED:
        judge_expired(run, record);
        return;
    case RECORD_BYPASS_SIGNED:
        judge_signed(run, record);
        return;
    case RECORD_LOOP_TRIPPED:
        judge_looped(run, record);
        return;
    case RECORD_RUN_RESTED:
        judge_rested(run);
        return;
    case RECORD_RUN_WOKEN:
        judge_woken(run);
        return;
    case RECORD_SAGA_HELD:
        on_held(run, record);
        return;
    case RECORD_SAGA_RELEASED:
        on_released(run, record);
        return;
    case RECORD_TOOL_MENDED: /* the judge knows nothing that mending changes */
        return;
    case RECORD_OPERATION_PRICED: /* nobody prices operations here */
    case RECORD_TYPE_COUNT:
        break;
    }
    run_violate(run, "%s, which nobody has brought about", record_type_name(record->type));
}

/* --- between two events --- */

static bool moves_by_itself(const struct want *want, const struct judge *judge)
{
    if (want->type != WANT_TIMER || want->due_ms == 0) {
        return true;
    }
    return want->step != STEP_NONE &&
           judge->nodes[want->step].state != IS_OPEN; /* a deadline does not let the saga go on */
}

static void judge_waits(struct run *run)
{
    struct judge *judge = &run->judge;

    for (uint32_t i = 0; i < judge->count; i++) {
        const struct node *node = &judge->nodes[i];

        if (node->state != IS_WAITING) {
            continue;
        }
        if (judge->is_planned || (judge_is_failing(judge, i) && !judge->is_paused)) {
            run_violate(run, "%s still waits, and its saga is being undone", node->id);
        }
        if (node->step->kind == STEP_SIGNAL && !judge->is_paused && judge_first_kept(judge, node->step->signal)) {
            run_violate(run, "%s waits for a signal that is there", node->id);
        }
    }
}

void judge_rest(struct run *run)
{
    struct judge *judge = &run->judge;
    bool moves = false, waits = judge->is_paused || (judge_is_open(judge) && !judge->is_failing);

    for (uint32_t i = 0; i < run->want_count; i++) {
        const struct want *want = &run->wants[i];

        moves = moves || moves_by_itself(want, judge);
        if (want->type == WANT_CALL && (!judge->nodes[want->step].flies[want->direction] ||
                                        judge->nodes[want->step].intents[want->direction] != want->number)) {
            run_violate(run, "%s is to be called without an intent", judge->nodes[want->step].id);
        }
        if (judge->is_paused && want->type != WANT_CALL) {
            run_violate(run, "something is wanted while the saga is paused");
        }
    }
    if (judge->is_ended) {
        if (run->want_count > 0) {
            run_violate(run, "something is wanted after the end");
        }
        return;
    }
    for (uint32_t i = 0; i < judge->count; i++) {
        waits = waits || judge->nodes[i].state == IS_WAITING;
    }
    judge_waits(run);
    judge_undo_room(run);
    judge_denied_rest(run);
    if (!moves && !waits && judge->escalations == 0) {
        run_violate(run, "nothing is wanted, and nobody is asked");
    }
}
