/* See check.h. Says what each record of the log may say after the records before it, beside the books of the tools. */
#include "tests/sim/check_state.h"

#include <string.h>

#include "base/instant.h"
#include "core/definition/definition.h"
#include "tests/sim/scenario.h"

#define VISIBILITY_US_MIN                                                                                              \
    4000000 /* the visibility of all definitions: a call takes effect within this time, or never */

struct line { /* a record as text */
    enum record_type type;
    uint64_t seq;
    int64_t at_ms;
    struct slice step, data, actor;
    struct op_key key;
    bool has_key;
    const struct committed_turn *turn;
};

static struct slice text_of(struct slice value)
{
    return json_string(value, &world->arena);
}

static struct slice member(const struct line *line, const char *name)
{
    return text_of(json_member(line->data, name));
}

static bool flag(const struct line *line, const char *name)
{
    bool value = false;

    return json_bool(json_member(line->data, name), &value) && value;
}

static uint64_t number(const struct line *line, const char *name)
{
    int64_t value = 0;

    return json_i64(json_member(line->data, name), &value) ? (uint64_t)value : 0;
}

static int64_t due_ms(const struct line *line)
{
    int64_t ms = 0;
    struct slice text = member(line, "due_at");

    return text.ptr && instant_parse(text, &ms) ? ms : 0;
}

static struct line line_of(const struct committed_turn *turn, uint64_t seq, struct slice text)
{
    struct line line = {.seq = seq, .at_ms = turn->at_ms, .turn = turn};
    struct json_walk walk = json_walk(text);
    struct slice name, value, type = SLICE_NONE, key = SLICE_NONE;

    while (json_next_member(&walk, &name, &value)) {
        if (slice_is(name, "type")) {
            type = text_of(value);
        } else if (slice_is(name, "step")) {
            line.step = text_of(value);
        } else if (slice_is(name, "key")) {
            key = text_of(value);
        } else if (slice_is(name, "actor")) {
            line.actor = text_of(value);
        } else if (slice_is(name, "data")) {
            line.data = value;
        }
    }
    line.has_key = key.ptr && uuid_parse(key, &line.key.uuid);
    if (!record_type_parse(type, &line.type)) {
        world_violate("I9", "a record of type %.*s", SLICE_ARG(type));
    }
    return line;
}

/* --- steps and operations --- */

static struct judged_step *step_of(struct judged_saga *saga, struct slice name)
{
    struct judged_step *step = saga->steps;

    while (step && !slice_equal(step->name, name)) {
        step = step->next;
    }
    if (!step) {
        step = arena_alloc(&world->arena, sizeof(*step));
        step->name = arena_slice(&world->arena, name);
        step->next = saga->steps;
        saga->steps = step;
    }
    return step;
}

static struct judged_op *op_of(struct judged_saga *saga, const struct line *line, bool is_undo)
{
    struct judged_step *step = step_of(saga, line->step);
    struct judged_op *op = line->has_key ? check_op_of(line->key) : is_undo ? step->undo : step->forward;

    if (!op && line->has_key) {
        op = arena_alloc(&world->arena, sizeof(*op));
        op->key = line->key;
        op->saga = saga;
        op->step = step;
        op->is_undo = is_undo;
        op->next = saga->ops;
        saga->ops = op;
        map_put(&world->check->ops, &op->key, sizeof(op->key), op);
    }
    if (op && (op->saga != saga || op->step != step || op->is_undo != is_undo)) {
        world_violate("I1", "two operations have one key: %.*s and %.*s", SLICE_ARG(op->step->name),
                      SLICE_ARG(step->name));
    }
    if (op && is_undo) {
        step->undo = op;
    } else if (op) {
        step->forward = op;
    }
    return op;
}

/* --- forward and undo alike --- */

static void on_intent(struct judged_saga *saga, struct judged_op *op, const struct line *line)
{
    bool is_careful = op_is_class(op, "once") || op_is_class(op, "checked") || op_is_class(op, "undo_checked");

    if (op->surely_failed && op->state == JUDGED_FAILED) {
        world_violate("I11", "%.*s is called although it has failed for good", SLICE_ARG(op->step->name));
    }
    if (is_careful && op->may_have_left && !op->double_accepted) {
        world_violate("I12", "%.*s (%.*s) may have left, and is called again", SLICE_ARG(op->step->name),
                      SLICE_ARG(op->tool));
    }
    if (op->intent_us && op->ruled_out_us > op->intent_us && !op->double_accepted && !world->check->clocks_jump &&
        world->now_us - op->intent_us < VISIBILITY_US_MIN) {
        world_violate("I12", "%.*s is called again by a person's word %lld ms after a call that may still take effect",
                      SLICE_ARG(op->step->name), (long long)(world->now_us - op->intent_us) / 1000);
    }
    if (op->state == JUDGED_RETRYING && line->at_ms < op->due_ms && !saga->was_paused) {
        world_violate("I13", "attempt of %.*s at %lld, due at %lld", SLICE_ARG(op->step->name), (long long)line->at_ms,
                      (long long)op->due_ms);
    }
    op->state = JUDGED_SENT;
    op->may_have_left = true;
    op->epoch = line->turn->epoch;
    op->intent_us = world->now_us;
    op->first_seq = op->first_seq ? op->first_seq : line->seq;
    op->intents++;
}

static void on_retrying(struct judged_op *op, const struct line *line)
{
    op->state = JUDGED_RETRYING;
    op->due_ms = due_ms(line);
    if (!flag(line, "maybe")) { /* certainly no effect: the call was not sent, was refused, or a probe has said so */
        op->may_have_left = false;
        op->intent_us = 0;
    }
}

static bool by_person(const struct line *line)
{
    return slice_is(member(line, "source"), "operator") || line->actor.len > 0;
}

static void on_completed(struct judged_op *op, const struct line *line)
{
    bool is_told = by_person(line) || slice_is(member(line, "source"), "precheck");

    if (op->state == JUDGED_COMPLETED) {
        world_violate("I11", "%.*s completes twice", SLICE_ARG(op->step->name));
    }
    op->state = JUDGED_COMPLETED;
    op->surely_failed = false;
    if (is_told) {
        op->judged_by_person = true;
    } else if (!op->is_undo && op->effects == 0 && !op_is_class(op, "read")) {
        world_violate("I11", "%.*s counts as completed, and never took effect", SLICE_ARG(op->step->name));
    } else if (op->is_undo && op->step->forward && op_stands(op->step->forward) &&
               !op->step->forward->judged_by_person) {
        world_violate("I3", "%.*s counts as undone, and stands", SLICE_ARG(op->step->name));
    }
}

/* Is the operation given up? When the saga, or a child around the step, goes back, a call that never left is no longer
 * wanted. */
static bool is_given_up(const struct judged_op *op)
{
    struct slice name = op->step->name;
    bool failing = op->saga->is_failing;

    for (size_t i = 1; i < name.len; i++) {
        failing = failing || (name.ptr[i] == '/' && step_of(op->saga, (struct slice){name.ptr, i})->is_failing);
    }
    return failing;
}

static void on_failed(struct judged_op *op, const struct line *line)
{
    op->state = JUDGED_FAILED;
    op->may_have_left &= flag(line, "maybe"); /* otherwise it is certain that no attempt under this key had an effect */
    if (by_person(line)) {
        op->judged_by_person = true;
        op->ruled_out_us = world->now_us;
        op->effects_ruled_out = op->effects; /* also counts an effect that came while the person spoke */
        return;
    }
    if (slice_is(member(line, "error"), OUTCOME_EGRESS_DENIED) && (op->is_undo || !is_given_up(op))) {
        world_violate("I3", "%.*s has failed because the settings denied it", SLICE_ARG(op->step->name));
    }
    op->intent_us = op->may_have_left ? op->intent_us : 0;
    if (!op->is_undo) {
        op->surely_failed = true;
        if (op->effects > op->effects_ruled_out && !op_is_class(op, "read")) {
            world_violate("I11", "%.*s counts as failed for certain, and took effect", SLICE_ARG(op->step->name));
        }
    }
}

/* --- undoing --- */

static void on_plan(struct judged_saga *saga, const struct line *line)
{
    struct json_walk walk = json_walk(json_member(line->data, "plan"));
    struct slice name;
    uint64_t before = UINT64_MAX;

    saga->plans++;
    saga->is_planned |= line->step.len == 0;
    for (uint32_t at = 0; json_next_element(&walk, &name); at++) {
        struct judged_step *step = step_of(saga, text_of(name));

        if (step->plan == saga->plans) {
            world_violate("I3", "%.*s is in the plan twice", SLICE_ARG(step->name));
        }
        step->plan = saga->plans;
        step->plan_at = at;
        step->plan_seq = line->seq;
        if (!step->forward || (step->forward->surely_failed && step->forward->state == JUDGED_FAILED)) {
            world_violate("I3", "%.*s is to be undone, and surely did not happen", SLICE_ARG(step->name));
        }
        /* Elements and members of children have their own order, which the property tests judge. */
        if (!memchr(step->name.ptr, '#', step->name.len) && !memchr(step->name.ptr, '/', step->name.len) &&
            line->step.len == 0) {
            if (step->first_seq > before) {
                world_violate("I3", "the plan has %.*s behind one that began before it", SLICE_ARG(step->name));
            }
            before = step->first_seq;
        }
    }
}

/* Is the outcome unknown, or was the undo given up? Such a step waits for a person, and keeps only those steps waiting
 * that it depends on. */
static bool is_uncertain(const struct judged_step *step)
{
    return (step->forward && (step->forward->state == JUDGED_UNKNOWN || step->forward->state == JUDGED_SENT)) ||
           (step->undo && step->undo->state == JUDGED_FAILED) || (!step->undo && step->undo_refused);
}

/* Does `later` certainly depend on `earlier`? Steps that stand side by side may begin in any order. */
static bool builds_on(const struct judged_saga *saga, const struct judged_step *later,
                      const struct judged_step *earlier)
{
    return saga->is_open_kind ? earlier->ended_seq > 0 && later->first_seq > earlier->ended_seq
                              : !world->check->has_branches;
}

/* Does the other step lie outside of the innermost child that is undone on its own and holds this step? Such a child
 * goes on in its own order when the saga fails. What lies outside ran beside it, or is over. */
static bool is_outside_of_child(struct judged_saga *saga, struct slice step, struct slice other)
{
    for (size_t i = step.len; i-- > 0;) {
        if (step.ptr[i] == '/' && step_of(saga, (struct slice){step.ptr, i})->is_failing) {
            return other.len <= i || memcmp(other.ptr, step.ptr, i + 1) != 0;
        }
    }
    return false;
}

static size_t element_end(struct slice name, size_t at)
{
    while (at < name.len && name.ptr[at] != '/') {
        at++;
    }
    return at;
}

/* Do the two lie in elements of one for_each that were under way at the same time? */
static bool ran_side_by_side(struct judged_saga *saga, struct slice a, struct slice b)
{
    size_t at = 0, number = 0;

    for (; at < a.len && at < b.len && a.ptr[at] == b.ptr[at]; at++) {
        number = a.ptr[at] == '#' ? at + 1 : a.ptr[at] == '/' ? 0 : number;
    }
    if (number == 0) {
        return false;
    }
    const struct judged_step *of_a = step_of(saga, (struct slice){a.ptr, element_end(a, number)}),
                             *of_b = step_of(saga, (struct slice){b.ptr, element_end(b, number)});

    return of_a->first_seq > 0 && of_b->first_seq > 0 && (of_a->ended_seq == 0 || of_b->first_seq < of_a->ended_seq) &&
           (of_b->ended_seq == 0 || of_a->first_seq < of_b->ended_seq);
}

static void on_undo_intent(struct judged_saga *saga, const struct judged_op *op)
{
    const struct judged_op *forward = op->step->forward;
    bool is_held = false;

    if (op->step->plan == 0) {
        world_violate("I3", "%.*s is undone, and is in no plan", SLICE_ARG(op->step->name));
    }
    if (!forward || forward->intents == 0 || (forward->surely_failed && forward->state == JUDGED_FAILED)) {
        world_violate("I3", "%.*s is undone, and surely did not happen", SLICE_ARG(op->step->name));
    }
    for (const struct judged_step *other = saga->steps; other; other = other->next) {
        is_held |= other->plan == op->step->plan && other->plan_at < op->step->plan_at && is_uncertain(other);
    }
    for (const struct judged_step *other = saga->steps; other && !world->check->has_parallel_undo;
         other = other->next) {
        const struct judged_op *undo = other->undo;

        if (other->plan != op->step->plan || other->plan_at >= op->step->plan_at || !other->forward ||
            !op_stands(other->forward) || other->forward->waived || other->forward->judged_by_person ||
            is_outside_of_child(saga, op->step->name, other->name) ||
            (is_outside_of_child(saga, other->name, op->step->name) &&
             ran_side_by_side(saga, op->step->name, other->name)) ||
            (is_held && !builds_on(saga, other, op->step))) {
            continue;
        }
        if (undo && undo->first_seq > 0 && undo->first_seq < other->plan_seq) {
            continue; /* a child that was undone on its own began this before the saga failed */
        }
        if (undo ? undo->state != JUDGED_COMPLETED && undo->state != JUDGED_FAILED : !other->undo_refused) {
            world_violate("I3", "%.*s is undone before %.*s, which comes first in the plan", SLICE_ARG(op->step->name),
                          SLICE_ARG(other->name));
        }
    }
}

/* --- ends --- */

static void on_end(struct judged_saga *saga, const struct line *line, enum saga_status end)
{
    saga->is_ended = true;
    saga->end = end;
    if (saga->escalation) {
        world_violate("I14", "a saga ends while its escalation %llu is open", (unsigned long long)saga->escalation);
    }
    for (const struct judged_op *op = saga->ops; op; op = op->next) {
        const char *name = op->step->name.ptr;
        bool is_over = op->state == JUDGED_COMPLETED || op->state == JUDGED_FAILED || op->state == JUDGED_SKIPPED;

        if (op->is_undo || op->step->forward != op) {
            continue;
        }
        if (end == SAGA_COMPENSATED && op_stands(op) && !op->judged_by_person && !op->waived) {
            world_violate("I3", "compensated, and %s is left standing", name);
        }
        if (end == SAGA_COMPLETED && !is_over && op->intents > 0 && !op->waived && !op->step->undo) {
            world_violate("I6", "completed, and %s is not over", name);
        }
    }
    if (end == SAGA_ABANDONED && saga->is_planned) {
        for (const struct judged_op *op = saga->ops; op; op = op->next) {
            struct json_walk walk = json_walk(json_member(line->data, "debts"));
            struct slice debt;
            bool is_debt = false;

            while (json_next_element(&walk, &debt)) {
                is_debt |= slice_equal(text_of(debt), op->step->name);
            }
            if (!op->is_undo && op->step->forward == op && op_stands(op) && !is_debt && !op->judged_by_person) {
                world_violate("I3", "abandoned, %.*s stands and is no debt", SLICE_ARG(op->step->name));
            }
        }
    }
}

static void on_start(struct judged_saga *saga, const struct line *line)
{
    struct slice key;

    if (line->seq != 1) {
        world_violate("I9", "a saga starts twice");
    }
    saga->namespace = arena_slice(&world->arena, member(line, "namespace"));
    saga->name = arena_slice(&world->arena, member(line, "saga"));
    saga->business_id = arena_slice(&world->arena, member(line, "business_id"));
    saga->is_open_kind = slice_is(saga->name, OPEN_SAGA_NAME) || slice_is(saga->name, RUN_SAGA_NAME);
    if (!saga->business_id.ptr) {
        return;
    }
    key = arena_printf(&world->arena, "%.*s\n%.*s\n%.*s", SLICE_ARG(saga->namespace), SLICE_ARG(saga->name),
                       SLICE_ARG(saga->business_id));
    if (map_find(&world->check->starts, key.ptr, key.len)) {
        world_violate("I10", "two sagas %.*s have the business id %.*s", SLICE_ARG(saga->name),
                      SLICE_ARG(saga->business_id));
    }
    map_put(&world->check->starts, key.ptr, key.len, saga);
    check_scheduled(saga->business_id);
}

/* --- waits and people --- */

static void on_wait_over(struct judged_step *step, const struct line *line)
{
    bool is_timeout = line->type == RECORD_STEP_FAILED && slice_is(member(line, "error"), "timeout");

    if (!step->is_waiting) {
        return;
    }
    step->is_waiting = false;
    step->approval = 0;
    if (step->wait_due_ms && line->at_ms < step->wait_due_ms &&
        (is_timeout || (line->type == RECORD_STEP_COMPLETED && check_is_sleep(step->name)))) {
        world_violate("I18", "the time of %.*s comes %lld ms early", SLICE_ARG(step->name),
                      (long long)(step->wait_due_ms - line->at_ms));
    }
}

static void person_said(const struct line *line)
{
    if (line->actor.len == 0) {
        world_violate("I19", "%s says nobody's name", record_type_name(line->type));
    }
}

static void *kept(uint64_t value)
{
    return arena_dup(&world->arena, &value, sizeof(value));
}

static void on_escalation(struct judged_saga *saga, const struct line *line)
{
    if (saga->escalation) {
        world_violate("I14", "escalation %llu is opened while %llu is open",
                      (unsigned long long)number(line, "escalation"), (unsigned long long)saga->escalation);
    }
    saga->escalation = number(line, "escalation");
    saga->escalation_step = arena_slice(&world->arena, line->step);
    saga->escalation_of_undo = slice_is(member(line, "direction"), "undo");
}

static void on_resolved(struct judged_saga *saga, const struct line *line)
{
    uint64_t *place = kept(number(line, "escalation"));

    if (saga->escalation != number(line, "escalation")) {
        world_violate("I14", "escalation %llu is resolved, and is not open",
                      (unsigned long long)number(line, "escalation"));
    }
    saga->escalation = 0;
    map_put(&world->check->decisions, place, sizeof(*place), saga);
    for (struct judged_op *op = saga->ops; op; op = op->next) {
        if (slice_equal(op->step->name, saga->escalation_step) && line->actor.len > 0) {
            op->judged_by_person = true;
        }
    }
}

/* --- all of them --- */

static void check_step_record(struct judged_saga *saga, const struct line *line, bool is_undo)
{
    struct judged_op *op = line->has_key || is_undo ? op_of(saga, line, is_undo) : NULL;
    struct judged_step *step = step_of(saga, line->step);

    switch ((int)line->type) { /* the other records are not about operations */
    case RECORD_STEP_OPENED:
        step->first_seq = step->first_seq ? step->first_seq : line->seq;
        break;
    case RECORD_STEP_REPEATED: /* the outcome now depends on all that was settled before */
        op->state = JUDGED_PENDING;
        step->first_seq = line->seq;
        step->ended_seq = 0;
        break;
    case RECORD_STEP_PENDING:
    case RECORD_STEP_CALLED:
        op->state = JUDGED_PENDING;
        step->first_seq = step->first_seq ? step->first_seq : line->seq;
        break;
    case RECORD_STEP_INTENT:
        if (saga->is_planned) {
            world_violate("I4", "%.*s begins while the saga is undone", SLICE_ARG(step->name));
        }
        step->first_seq = step->first_seq ? step->first_seq : line->seq;
        on_intent(saga, op, line);
        break;
    case RECORD_COMPENSATION_INTENT:
        on_undo_intent(saga, op);
        on_intent(saga, op, line);
        break;
    case RECORD_STEP_RETRYING:
    case RECORD_COMPENSATION_RETRYING:
        on_retrying(op, line);
        break;
    case RECORD_STEP_UNKNOWN:
    case RECORD_COMPENSATION_UNKNOWN:
    case RECORD_STEP_RUNNING:
    case RECORD_COMPENSATION_RUNNING:
        op->state = JUDGED_UNKNOWN;
        break;
    case RECORD_STEP_COMPLETED:
    case RECORD_COMPENSATION_COMPLETED:
        on_wait_over(step, line);
        step->ended_seq = is_undo ? step->ended_seq : line->seq;
        if (op) {
            on_completed(op, line);
        }
        break;
    case RECORD_STEP_FAILED:
    case RECORD_COMPENSATION_FAILED:
        on_wait_over(step, line);
        if (op) {
            on_failed(op, line);
        } else {
            step->undo_refused = is_undo;
        }
        break;
    case RECORD_STEP_REOPENED:
    case RECORD_COMPENSATION_REOPENED:
        person_said(line);
        if (op) {
            op->state = JUDGED_PENDING;
            op->surely_failed = false;
            op->double_accepted |= flag(line, "accept_double");
            op->has_args = false;
            op->requests =
                op->may_have_left ? op->requests : 0; /* a person may have repeated a call that surely had no effect */
        }
        break;
    case RECORD_STEP_WAIVED: /* carries the key of the undo when the undo was given up: the effect still stands */
        if (op && !is_undo) {
            op->waived = true;
        } else if (step->forward) {
            step->forward->waived = true;
        }
        break;
    case RECORD_STEP_SKIPPED:
        if (op) {
            op->state = JUDGED_SKIPPED;
        }
        break;
    case RECORD_STEP_LATE: /* the step was undone although its effect was not known; a person finds out which came first
                            */
        if (step->undo && step->undo->state == JUDGED_COMPLETED) {
            step->undo->state = JUDGED_UNKNOWN;
        } else if (op && member(line, "error").len > 0) { /* a person had said that the call happened */
            op->state = JUDGED_UNKNOWN;
        }
        break;
    case RECORD_COMPENSATION_LATE:
        if (op) {
            op->state = JUDGED_UNKNOWN;
        }
        break;
    default:
        break;
    }
}

void check_record(struct judged_saga *saga, const struct committed_turn *turn, uint64_t seq, struct slice text)
{
    struct line line = line_of(turn, seq, text);

    if ((seq == 1) != (line.type == RECORD_SAGA_STARTED)) {
        world_violate("I9", "record %llu is %s", (unsigned long long)seq, record_type_name(line.type));
    }
    if (saga->is_ended && !saga->is_open_kind && line.type != RECORD_OPERATION_DUPLICATE &&
        line.type != RECORD_OPERATION_EXPIRED) {
        world_violate("I5", "%s after the end of the saga", record_type_name(line.type));
    }
    if (saga->is_ended && saga->is_open_kind && saga->end != SAGA_STATUS_COUNT &&
        line.type != RECORD_OPERATION_DUPLICATE && line.type != RECORD_OPERATION_EXPIRED &&
        line.type != RECORD_RUN_WOKEN) {
        world_violate("I5", "%s after the end of an open saga", record_type_name(line.type));
    }
    if (member(&line, "bulk").ptr) {
        check_bulk_act(saga, member(&line, "bulk"));
    }
    switch ((int)line.type) { /* the records that are not about a step */
    case RECORD_SAGA_STARTED:
        on_start(saga, &line);
        return;
    case RECORD_SAGA_FAILING:
        if (saga->is_failing) {
            world_violate("I3", "the saga fails twice");
        }
        saga->is_failing = true;
        saga->is_paused = false;
        return;
    case RECORD_COMPENSATION_PLANNED:
        on_plan(saga, &line);
        return;
    case RECORD_ESCALATION_OPENED:
        on_escalation(saga, &line);
        return;
    case RECORD_ESCALATION_RESOLVED:
        on_resolved(saga, &line);
        return;
    case RECORD_SAGA_PAUSED:
        if (slice_is(member(&line, "reason"), "operator")) {
            person_said(&line);
        }
        if (saga->is_paused) { /* a repeated pause writes no record */
            world_violate("I5", "a saga that is paused is paused again");
        }
        saga->is_paused = saga->was_paused = true;
        return;
    case RECORD_SAGA_RESUMED:
        person_said(&line);
        if (!saga->is_paused && !saga->is_open_kind) { /* an open saga that a loop had closed goes on without a pause */
            world_violate("I5", "a saga goes on that nobody has paused");
        }
        saga->is_paused = false;
        return;
    case RECORD_APPROVAL_DECIDED: {
        uint64_t *place = kept(number(&line, "approval"));

        person_said(&line);
        map_put(&world->check->decisions, place, sizeof(*place), saga);
        return;
    }
    case RECORD_SIGNAL_RECEIVED: {
        uint64_t *place = kept(check_place_of_signal(saga->id, member(&line, "signal")));

        map_put(&world->check->signals, place, sizeof(*place), saga);
        return;
    }
    case RECORD_STEP_WAITING: {
        struct judged_step *step = step_of(saga, line.step);

        step->is_waiting = true;
        step->wait_due_ms = due_ms(&line);
        step->approval = number(&line, "approval");
        step->approval_hash = arena_slice(&world->arena, member(&line, "fingerprint"));
        return;
    }
    case RECORD_STEP_FAILING:
        step_of(saga, line.step)->is_failing = true;
        check_step_record(saga, &line, false);
        return;
    case RECORD_RUN_RESTED:
        return;
    case RECORD_SAGA_COMPLETED:
        on_end(saga, &line, SAGA_COMPLETED);
        return;
    case RECORD_SAGA_COMPENSATED:
        on_end(saga, &line, SAGA_COMPENSATED);
        return;
    case RECORD_SAGA_ABANDONED: /* earlier records say who left what standing */
        on_end(saga, &line, SAGA_ABANDONED);
        return;
    case RECORD_COMPENSATION_INTENT:
    case RECORD_COMPENSATION_RETRYING:
    case RECORD_COMPENSATION_RUNNING:
    case RECORD_COMPENSATION_UNKNOWN:
    case RECORD_COMPENSATION_PROBED:
    case RECORD_COMPENSATION_COMPLETED:
    case RECORD_COMPENSATION_FAILED:
    case RECORD_COMPENSATION_REOPENED:
    case RECORD_COMPENSATION_LATE:
        check_step_record(saga, &line, true);
        return;
    case RECORD_STEP_WAIVED: {
        const struct judged_op *op = line.has_key ? check_op_of(line.key) : NULL;

        check_step_record(saga, &line, op && op->is_undo);
        return;
    }
    default:
        if (line.step.len > 0 || line.has_key) {
            check_step_record(saga, &line, false);
        }
        return;
    }
}
