/*
 * What a turn means for the tables: its row of the log, and the rows beside it for finding, listing and waking: keys,
 * escalations, approvals, followers, locks, and when to look at the saga again. All of it is one transaction.
 */
#include <string.h>

#include "base/canon.h"
#include "base/json.h"
#include "base/metric.h"
#include "core/saga/machine.h"
#include "core/saga/rest.h"
#include "core/saga/sensitive.h"
#include "core/show/event.h"
#include "run/saga/live.h"
#include "run/saga/retention.h"
#include "run/saga/turn.h"
#include "run/saga/turn_state.h"
#include "store/acts.h"
#include "store/business.h"

static bool makes_key_known(const struct record *record)
{
    switch (record->type) {
    case RECORD_STEP_PENDING:
    case RECORD_STEP_INTENT:
    case RECORD_COMPENSATION_INTENT:
    case RECORD_STEP_REOPENED:
    case RECORD_STEP_CALLED:
    case RECORD_COMPENSATION_REOPENED:
        return record->args.ptr != NULL; /* the first record of an operation carries its arguments, and so does a retry
                                            with changed ones, under a new key */
    case RECORD_SAGA_STARTED:
    case RECORD_STEP_RETRYING:
    case RECORD_STEP_RUNNING:
    case RECORD_STEP_UNKNOWN:
    case RECORD_STEP_PROBED:
    case RECORD_STEP_COMPLETED:
    case RECORD_STEP_FAILED:
    case RECORD_STEP_SKIPPED:
    case RECORD_STEP_WAIVED:
    case RECORD_STEP_UNDONE:
    case RECORD_STEP_REPEATED:
    case RECORD_STEP_OPENED:
    case RECORD_STEP_FAILING:
    case RECORD_STEP_WAITING:
    case RECORD_SIGNAL_RECEIVED:
    case RECORD_APPROVAL_DECIDED:
    case RECORD_LOCK_WANTED:
    case RECORD_LOCK_TAKEN:
    case RECORD_STEP_LATE:
    case RECORD_COMPENSATION_LATE:
    case RECORD_OPERATION_DUPLICATE:
    case RECORD_OPERATION_PRICED:
    case RECORD_TOOL_MENDED:
    case RECORD_OPERATION_EXPIRED:
    case RECORD_BYPASS_SIGNED:
    case RECORD_LOOP_TRIPPED:
    case RECORD_SAGA_PAUSED:
    case RECORD_SAGA_RESUMED:
    case RECORD_SAGA_HELD:
    case RECORD_SAGA_RELEASED:
    case RECORD_RUN_RESTED:
    case RECORD_RUN_WOKEN:
    case RECORD_SAGA_FAILING:
    case RECORD_COMPENSATION_PLANNED:
    case RECORD_COMPENSATION_RETRYING:
    case RECORD_COMPENSATION_RUNNING:
    case RECORD_COMPENSATION_UNKNOWN:
    case RECORD_COMPENSATION_PROBED:
    case RECORD_COMPENSATION_COMPLETED:
    case RECORD_COMPENSATION_FAILED:
    case RECORD_ESCALATION_OPENED:
    case RECORD_ESCALATION_RESOLVED:
    case RECORD_SAGA_COMPLETED:
    case RECORD_SAGA_COMPENSATED:
    case RECORD_SAGA_ABANDONED:
        return false;
    case RECORD_TYPE_COUNT:
        break;
    }
    UNREACHABLE();
}

/* Makes room for one more item behind `count` of them. */
static void *with_room(struct turn *turn, void *items, uint32_t count, size_t bytes)
{
    enum { ROOM_MIN = 4 };
    void *room;

    if (count > 0 && (count < ROOM_MIN || (count & (count - 1)) != 0)) {
        return items;
    }
    room = arena_array(&turn->arena, count ? 2 * (size_t)count : ROOM_MIN, bytes);
    if (count > 0) {
        memcpy(room, items, count * bytes);
    }
    return room;
}

/* Adds a key once. An intent that follows its step.called in one turn carries the arguments again. */
static void add_key(struct turn *turn, const struct op_key *key)
{
    for (uint32_t i = 0; i < turn->key_count; i++) {
        if (uuid_equal(&turn->keys[i].uuid, &key->uuid)) {
            return;
        }
    }
    turn->keys = with_room(turn, turn->keys, turn->key_count, sizeof(*turn->keys));
    turn->keys[turn->key_count++] = *key;
}

struct slice mail_asked(const struct mail *start)
{
    struct slice input = start->input.start.input;

    return start->asked.ptr ? start->asked : input.ptr ? input : SLICE("{}");
}

/* Describes the row of a saga that begins. The caller's id finds it, or for a run its name. */
static void describe_start(struct turn *turn, const struct record *first)
{
    struct slice id = slice_is(first->saga_name, RUN_SAGA_NAME) ? first->run : first->business_id;

    turn->start = (struct append_start){.namespace = first->namespace,
                                        .saga_name = first->saga_name,
                                        .tags = first->tags,
                                        .version = first->version,
                                        .started_by = turn->mail->started_by};
    turn->start.input_digest =
        canon_digest(turn->mail->input.type == SAGA_INPUT_START ? mail_asked(turn->mail) : SLICE("{}"), &turn->arena);
    if (id.ptr) {
        turn->start.business_id = id;
        turn->start.business_digest = business_digest(first->namespace, first->saga_name, id);
    }
    if (turn->mail->input.type == SAGA_INPUT_START && turn->mail->input.start.key.ptr) {
        turn->start.has_key = true;
        turn->start.key_digest = business_digest(first->namespace, first->saga_name, turn->mail->input.start.key);
    }
    turn->append.start = &turn->start;
}

/* --- escalations --- */

static struct append_escalation *case_added(struct turn *turn)
{
    turn->escalations = with_room(turn, turn->escalations, turn->escalation_count, sizeof(*turn->escalations));
    return &turn->escalations[turn->escalation_count++];
}

/* Returns the change of a case that already has its row; there is one change in a turn. */
static struct append_escalation *change_of_case(struct turn *turn, uint64_t number)
{
    for (uint32_t i = 0; i < turn->escalation_count; i++) {
        if (turn->escalations[i].number == number && !turn->escalations[i].is_new) {
            return &turn->escalations[i];
        }
    }
    return case_added(turn);
}

static void describe_escalation(struct turn *turn, const struct saga *saga, const struct record *record, bool opened)
{
    bool is_new = opened && saga_asked(saga, record->step, record->direction)->round == 1;

    buffer_reset(&turn->body);
    if (opened) {
        saga_write_escalation(saga, &turn->body);
    } else {
        saga_write_escalation_resolved(saga, record, &turn->body);
    }
    saga_mask_in(saga, &turn->body, 0); /* what lies beside the log is masked for everybody */
    *(is_new ? case_added(turn) : change_of_case(turn, record->escalation)) = (struct append_escalation){
        .number = record->escalation,
        .is_new = is_new,
        .is_open = opened,
        .step = opened && record->step != STEP_NONE ? saga->definition->steps[record->step].id : SLICE_NONE,
        .reason = opened ? record->reason : saga->escalation.reason,
        .body = arena_slice(&turn->arena, buffer_slice(&turn->body))};
    turn->cases_new += is_new;
    turn->cases_opened += opened;
    turn->cases_resolved += !opened;
}

/* --- approvals --- */

/* Returns the number of the approval that a step waits for; 0 when it does not. */
static uint64_t approval_asked(const struct saga *saga, uint32_t step)
{
    if (step == STEP_NONE || step >= saga->definition->step_count ||
        saga->definition->steps[step].kind != STEP_APPROVE || saga->steps[step].forward.state != OP_WAITING) {
        return 0;
    }
    return saga->steps[step].approval;
}

static void add_touched(struct turn *turn, struct touched touched)
{
    turn->touched = with_room(turn, turn->touched, turn->touched_count, sizeof(*turn->touched));
    turn->touched[turn->touched_count++] = touched;
}

static void approval_touched(struct turn *turn, uint32_t step, uint64_t before, uint64_t after)
{
    if (before != 0 && before != after) {
        add_touched(turn, (struct touched){.step = step, .number = before});
    }
    if (after != 0 && before != after) {
        add_touched(turn, (struct touched){.step = step, .number = after, .opened = true});
        turn->approvals_new++;
    }
}

static const char *approval_status(const struct saga *saga, uint32_t step)
{
    const struct operation *op = &saga->steps[step].forward;

    if (op->state == OP_COMPLETED) {
        return "approved";
    }
    return op->state != OP_FAILED           ? "cancelled"
           : slice_is(op->error, "refused") ? "refused"
           : slice_is(op->error, "timeout") ? "expired"
                                            : "cancelled";
}

/* Was the approval moved? The end of a pause gives people as much more time to answer. */
static bool is_moved(const struct turn *turn, const struct saga *after, uint32_t step)
{
    const struct saga *before = &turn->live->saga;

    return before->paused.ptr && !after->paused.ptr && step < before->definition->step_count &&
           approval_asked(after, step) != 0 && approval_asked(before, step) == approval_asked(after, step);
}

/* Describes the approvals as they are when the whole turn is applied. With the end of the saga nobody is asked any
 * more. */
static void describe_approvals(struct turn *turn, const struct saga *after)
{
    size_t count = turn->touched_count;
    struct append_approval *approvals;

    for (uint32_t i = 0; i < after->definition->step_count; i++) {
        count += turn->ended ? approval_asked(after, i) != 0 : is_moved(turn, after, i);
    }
    if (count == 0) {
        return;
    }
    approvals = arena_array(&turn->arena, count, sizeof(*approvals));
    count = 0;
    for (uint32_t i = 0; i < turn->touched_count; i++) {
        const struct touched *touched = &turn->touched[i];

        buffer_reset(&turn->body);
        saga_write_approval(after, touched->step, &turn->body);
        saga_mask_in(after, &turn->body, 0);
        approvals[count++] = (struct append_approval){
            .number = touched->number,
            .opened = touched->opened,
            .step = after->definition->steps[touched->step].id,
            .status = slice_of(touched->opened ? "open" : approval_status(after, touched->step)),
            .body = arena_slice(&turn->arena, buffer_slice(&turn->body)),
            .expires_ms = touched->opened ? after->steps[touched->step].forward.due_ms : 0};
    }
    for (uint32_t i = 0; i < after->definition->step_count; i++) {
        if (turn->ended ? approval_asked(after, i) != 0 : is_moved(turn, after, i)) {
            buffer_reset(&turn->body);
            saga_write_approval(after, i, &turn->body);
            saga_mask_in(after, &turn->body, 0);
            approvals[count++] =
                (struct append_approval){.number = after->steps[i].approval,
                                         .step = after->definition->steps[i].id,
                                         .status = turn->ended ? SLICE("cancelled") : SLICE("open"),
                                         .body = arena_slice(&turn->arena, buffer_slice(&turn->body)),
                                         .expires_ms = turn->ended ? 0 : after->steps[i].forward.due_ms};
        }
    }
    turn->append.approvals = approvals;
    turn->append.approval_count = (uint32_t)count;
}

/* --- who follows --- */

/* Describes a start in the inbox as any engine puts it for another shard (exchange/errand.c), under an id of ours. */
static struct append_follower describe_follower(struct turn *turn, const struct saga *saga, struct slice follower)
{
    struct arena *arena = &turn->arena;
    struct slice name = json_string(json_member(follower, "saga"), arena);
    struct slice business_id = json_string(json_member(follower, "business_id"), arena);
    struct slice input = json_member(follower, "input");
    struct digest digest = business_digest(saga->namespace, name, business_id);
    int64_t now_ms = turn->mail->input.now_ms;
    uint32_t shard = digest_shard(&digest);
    char id[UUID_TEXT_BYTES];
    struct json_writer w;

    buffer_reset(&turn->body);
    json_writer_init(&w, &turn->body);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "namespace", saga->namespace);
    json_write_text(&w, "actor", "sagad");
    uuid_text(&saga->id.uuid, id);
    json_write_text(&w, "follows", id); /* the engine that starts it checks its input, which nobody did before */
    json_write_slice(&w, "saga", name);
    json_write_i64(&w, "version", 0); /* the newest version when it starts */
    json_write_slice(&w, "business_id", business_id);
    json_write_raw(&w, "tags", SLICE_NONE);
    json_write_raw(&w, "input", input.ptr ? input : SLICE("{}"));
    json_object_end(&w);
    return (struct append_follower){.shard = shard,
                                    .saga = saga_id_new(now_ms, shard),
                                    .input = uuid_v7(now_ms),
                                    .payload = arena_slice(arena, buffer_slice(&turn->body))};
}

static void describe_followers(struct turn *turn, const struct saga *saga, const struct record *completed)
{
    struct json_walk walk = json_walk(completed->followers);
    struct slice follower;

    turn->followers = arena_array(&turn->arena, json_count(completed->followers), sizeof(*turn->followers));
    while (json_next_element(&walk, &follower)) {
        turn->followers[turn->follower_count++] = describe_follower(turn, saga, follower);
    }
}

/* --- the whole turn --- */

/* Describes what is to be said of a record before it is applied. Its step is that of the next state, because calls of
 * an open saga, and groups, add steps. */
static void describe_before(struct witness *witness, const struct saga *next, const struct record *record)
{
    struct turn *turn = container_of(witness, struct turn, witness);

    turn->asked = approval_asked(next, record->step);
    buffer_put_char(&turn->payload, turn->payload.len == 0 ? '[' : ',');
    record_write(record, next->definition, &turn->payload);
    if (makes_key_known(record)) {
        add_key(turn, &record->key);
    }
    if (record->type == RECORD_ESCALATION_RESOLVED) {
        describe_escalation(turn, next, record, false);
    }
    turn->is_event |= event_is_in(record);
}

static void describe_after(struct witness *witness, const struct saga *next, const struct record *record)
{
    struct turn *turn = container_of(witness, struct turn, witness);

    if (record->type == RECORD_ESCALATION_OPENED) {
        describe_escalation(turn, next, record, true);
    }
    if (record->step != STEP_NONE) {
        approval_touched(turn, record->step, turn->asked, approval_asked(next, record->step));
    }
    if (record->type == RECORD_SAGA_COMPLETED && record->followers.ptr) {
        describe_followers(turn, next, record);
    }
    if (record->type == RECORD_RUN_WOKEN || record->type == RECORD_RUN_RESTED) {
        turn->awake = record->type == RECORD_RUN_WOKEN;
    }
}

void turn_describe_begin(struct turn *turn)
{
    turn->witness = (struct witness){.before = describe_before, .after = describe_after};
    turn->awake = turn->live->awake;
    turn->is_event = false;
    turn->keys = NULL;
    turn->escalations = NULL;
    turn->touched = NULL;
    turn->followers = NULL;
    turn->key_count = turn->escalation_count = turn->touched_count = turn->follower_count = 0;
    turn->cases_opened = turn->cases_resolved = turn->cases_new = turn->approvals_new = 0;
}

/* Describes the change in the table awake; for a parked saga its append does that. */
static void describe_awake(struct turn *turn)
{
    const struct live *live = turn->live;

    if (live->saga.definition->kind == SAGA_RUN) {
        turn->append.awake = turn->awake == live->awake ? AWAKE_AS_IT_WAS : turn->awake ? AWAKE_ADD : AWAKE_REMOVE;
    } else {
        /* With an unknown row the saga would move, and recovery would take it for one that waits. */
        turn->append.unparks = live->parked || live->park_refused;
        turn->append.awake = turn->ended && live->awake ? AWAKE_REMOVE : AWAKE_AS_IT_WAS;
        turn->awake = !turn->ended && (live->awake || turn->append.unparks);
    }
}

/* --- whose act it is --- */

/* Describes the act of the turn: the saga, and the tool of the first operation that it is about. */
static struct slice describe_act(struct turn *turn, const struct saga *after)
{
    struct person_act act = *turn->mail->act;

    act.saga = after->id;
    act.saga_name = after->definition->name;
    act.business_id = after->business_id;
    for (size_t i = 0; i < turn->decision.records.count && !act.tool.ptr && !slice_is(act.kind, "saga"); i++) {
        uint32_t step = turn->decision.records.items[i].step;

        if (step != STEP_NONE && step < after->definition->step_count && step_has_call(after, step)) {
            act.tool = saga_tool(after, step, DIRECTION_DO)->name;
        }
    }
    return act_text(&act, &turn->arena);
}

/* Writes the state of a run that goes to rest. The next call of it is decided from that. */
static void describe_rest(struct turn *turn, const struct saga *after)
{
    const struct records *records = &turn->decision.records;

    buffer_reset(&turn->rest);
    if (records->items[records->count - 1].type == RECORD_RUN_RESTED && saga_write_rest(after, &turn->rest)) {
        turn->append.rest = buffer_slice(&turn->rest);
    }
}

/* Only now is it certain that the turn is appended with the numbers that its decision has used. */
static void count_numbers(const struct turn *turn)
{
    turn->live->shard->escalation_counter += turn->cases_new;
    turn->live->shard->approval_counter += turn->approvals_new;
    metric_add(METRIC_ESCALATIONS, turn->cases_opened);
}

void turn_describe_end(struct turn *turn)
{
    struct live *live = turn->live;
    const struct saga *saga = &live->saga, *after = turn->decision.next;
    size_t count = turn->decision.records.count;

    count_numbers(turn);
    buffer_put_char(&turn->payload, ']');
    turn->status_after = saga_status(after);
    turn->ended = after->phase == PHASE_ENDED;
    turn->append = (struct append){.saga = saga->id,
                                   .namespace = after->namespace,
                                   .shard = live->shard->number,
                                   .epoch = live->shard->epoch,
                                   .at_ms = turn->mail->input.now_ms,
                                   .first_seq = turn->decision.records.items[0].seq,
                                   .record_count = (uint32_t)count,
                                   .payload = buffer_slice(&turn->payload),
                                   .new_keys = turn->keys,
                                   .new_key_count = turn->key_count,
                                   .status_changed = saga->seq > 0 && turn->status_after != saga_status(saga),
                                   .status = turn->status_after,
                                   .ended = turn->ended,
                                   .started_ms = after->created_ms,
                                   .escalations = turn->escalations,
                                   .escalation_count = turn->escalation_count,
                                   .followers = turn->followers,
                                   .follower_count = turn->follower_count,
                                   .is_event = turn->is_event,
                                   .from_inbox = turn->mail->from_inbox,
                                   .inbox_id = turn->mail->inbox_id,
                                   .act = turn->mail->act ? describe_act(turn, after) : SLICE_NONE};
    describe_awake(turn);
    describe_rest(turn, after);
    describe_approvals(turn, after);
    if (turn->ended && saga->phase != PHASE_ENDED) {
        turn->append.releases_locks = after->lock_count > 0;
        int64_t kept_ms = retention_of(live->engine, after);

        /* A debt keeps its saga until somebody settles it (request/debt.c). */
        turn->append.forget_ms = kept_ms > 0 && saga_debt_count(after) == 0 ? after->ended_ms + kept_ms : 0;
        turn->append.never_due = saga->seq > 0 && live->taken_in && !live->was_due;
    }
    if (turn->decision.records.items[0].type == RECORD_SAGA_STARTED) {
        describe_start(turn, &turn->decision.records.items[0]);
    }
}
