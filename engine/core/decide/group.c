/*
 * Groups: the elements of for_each and the steps of child sagas. From step.opened on they are steps of the one saga.
 *
 * A group ends when all its members are over. A failure inside goes outwards, to the nearest child around it that is
 * not undone with the saga. That child is undone on its own (step.failing, compensation.planned, step.failed) while the
 * rest of the saga goes on. When there is no such child, the saga fails.
 */
#include <string.h>

#include "base/json.h"
#include "core/saga/machine.h"

#define RESULTS_BYTES_MAX ((size_t)16 << 20) /* the bound on the results of all elements together */

/* --- is all that belongs to it over? --- */

static const struct step_definition *definition_of(const struct saga *saga, uint32_t step)
{
    return &saga->definition->steps[step];
}

static bool is_for_each(const struct saga *saga, uint32_t step)
{
    return template_is_set(&definition_of(saga, step)->for_each);
}

static bool is_child(const struct saga *saga, uint32_t step)
{
    return definition_of(saga, step)->kind == STEP_SAGA && !is_for_each(saga, step);
}

/* Are all direct members over? Behind a terminal step, a step that a person left standing counts as over. */
static bool members_are_over(const struct saga *saga, uint32_t group)
{
    const struct step *s = &saga->steps[group];

    if (s->over == s->count) {
        return true;
    }
    if (!passed_return_in(saga, group)) {
        return false;
    }
    for (uint32_t i = s->first; i < s->first + s->count; i++) {
        if (!step_is_over(saga, i) && saga->steps[i].plan != PLAN_WAIVED) {
            return false;
        }
    }
    return true;
}

bool group_may_end(const struct saga *saga, uint32_t step)
{
    return saga->steps[step].forward.state == OP_OPEN && members_are_over(saga, step) &&
           (group_is_open(saga, step) || passed_return_in(saga, step));
}

/* --- beginning --- */

static void emit_opened(struct machine *m, uint32_t step, struct slice args, int64_t due_ms)
{
    struct record record = {.type = RECORD_STEP_OPENED, .step = step, .args = args, .due_ms = due_ms};

    machine_emit(m, &record);
}

static bool refuse_too_many(struct machine *m, uint32_t step, size_t count)
{
    uint32_t there = m->saga->definition->step_count;

    if (count <= SAGA_STEPS_MAX - there) {
        return false;
    }
    forward_refuse_arguments(m, step,
                             arena_printf(m->turn,
                                          "the saga has %u steps by now and would have %zu more; %u are allowed", there,
                                          count, SAGA_STEPS_MAX));
    return true;
}

/* Returns how many steps an element brings: itself and, if it is a child, the steps written in that child. */
static size_t steps_of_element(const struct saga *saga, uint32_t step)
{
    const struct definition *child = definition_of(saga, step)->child;

    return 1 + (definition_of(saga, step)->kind == STEP_SAGA && child ? child->written_count : 0);
}

static void begin_elements(struct machine *m, uint32_t step, struct slice items)
{
    size_t count;

    if (json_type(items) != JSON_ARRAY) {
        forward_refuse_arguments(m, step, SLICE("`for_each` did not give an array"));
        return;
    }
    count = json_count(items);
    if (count > FOR_EACH_MAX) {
        forward_refuse_arguments(
            m, step, arena_printf(m->turn, "`for_each` gave %zu elements; %u are allowed", count, FOR_EACH_MAX));
        return;
    }
    /* Checked before the first element begins, because later there would be effects to undo. */
    if (!refuse_too_many(m, step, count * steps_of_element(m->saga, step))) {
        emit_opened(m, step, items, 0);
    }
}

static void begin_child(struct machine *m, uint32_t step, struct slice input)
{
    const struct definition *child = definition_of(m->saga, step)->child;
    struct slice oversize = machine_oversize(m, "the input of the child has", input);
    struct faults faults;

    if (oversize.ptr) {
        forward_refuse_arguments(m, step, oversize);
        return;
    }
    if (child->input) {
        faults_init(&faults, m->turn);
        schema_check(child->input, input, SLICE(""), m->turn, &faults);
        if (faults.count > 0) {
            forward_refuse_arguments(m, step, machine_faults(m, &faults));
            return;
        }
    }
    if (!refuse_too_many(m, step, child->written_count)) {
        emit_opened(m, step, input, child->deadline_ms ? m->input->now_ms + child->deadline_ms : 0);
    }
}

void group_begin(struct machine *m, uint32_t step, struct slice args)
{
    if (is_for_each(m->saga, step)) {
        begin_elements(m, step, args);
    } else {
        begin_child(m, step, args);
    }
}

/* --- failing --- */

void group_fail(struct machine *m, uint32_t step, struct why why)
{
    /* The child's own policy decides about a fault of the child as a whole. */
    bool own = is_child(m->saga, step) && m->saga->steps[step].forward.state == OP_OPEN &&
               definition_of(m->saga, step)->on_failure != ON_FAILURE_COMPENSATE;
    uint32_t group = own ? step : group_that_fails(m->saga, step);
    struct record record = {.type = RECORD_STEP_FAILING, .step = group, .error = why.error, .detail = why.detail};

    if (group == STEP_NONE) {
        forward_stop(m, step, why, SLICE_NONE, SLICE_NONE);
        return;
    }
    if (group != step) {
        record.detail = why.detail.len
                            ? arena_printf(m->turn, "step %.*s: %.*s", SLICE_ARG(definition_of(m->saga, step)->id),
                                           SLICE_ARG(why.detail))
                            : arena_printf(m->turn, "step %.*s", SLICE_ARG(definition_of(m->saga, step)->id));
    }
    machine_emit(m, &record);
}

/* --- ending --- */

static void emit_completed(struct machine *m, uint32_t step, struct slice result)
{
    struct record record = {.type = RECORD_STEP_COMPLETED, .step = step, .result = result};

    machine_emit(m, &record);
}

static void end_elements(struct machine *m, uint32_t step)
{
    const struct step *s = &m->saga->steps[step];
    struct buffer out;

    buffer_init(&out, RESULTS_BYTES_MAX);
    buffer_put_char(&out, '[');
    for (uint32_t i = 0; i < s->count; i++) {
        const struct operation *op = &m->saga->steps[s->first + i].forward;
        struct slice result =
            (op->state == OP_COMPLETED || op->state == OP_SKIPPED) && op->result.ptr ? op->result : SLICE("null");

        if (i > 0) {
            buffer_put_char(&out, ',');
        }
        buffer_put(&out, result.ptr, result.len);
    }
    buffer_put_char(&out, ']');
    if (out.overflow) {
        group_fail(m, step, WHY("result", "the results of its elements are too large to be kept as one"));
    } else {
        emit_completed(m, step, arena_slice(m->turn, buffer_slice(&out)));
    }
    buffer_fini(&out);
}

static void end_child(struct machine *m, uint32_t step, struct slice output, struct slice error)
{
    if (!error.ptr) {
        emit_completed(m, step, output.ptr ? output : SLICE("null"));
    } else if (passed_return_in(m->saga, step)) { /* a terminal call has happened, whatever its output */
        emit_completed(m, step, SLICE("null"));
    } else {
        group_fail(m, step, (struct why){SLICE("output"), error});
    }
}

void group_output(struct machine *m, uint32_t step, struct slice output, struct slice error)
{
    if (is_child(m->saga, step) && group_may_end(m->saga, step) &&
        saga_output_template(m->saga, step)->program_count > 0) {
        end_child(m, step, output, error);
    }
}

/* Ends a group. Returns false when its output must be evaluated first. */
static bool group_end(struct machine *m, uint32_t step)
{
    const struct template *output;
    struct expression_context context;
    struct slice value = SLICE_NONE, error = SLICE_NONE;
    struct err err = {0};

    if (is_for_each(m->saga, step)) {
        end_elements(m, step);
        return true;
    }
    output = saga_output_template(m->saga, step);
    if (output->program_count > 0) {
        return false;
    }
    if (template_is_set(output)) {
        context = saga_inner_context(m->saga, step, m->turn);
        if (template_render(output, &context, NULL, m->turn, &value, &err) != ERR_OK) {
            error = arena_slice(m->turn, slice_of(err.message));
        }
    }
    end_child(m, step, value, error);
    return true;
}

void group_timer(struct machine *m, uint32_t step)
{
    const struct operation *op = &m->saga->steps[step].forward;

    if (group_may_end(m->saga, step)) {
        (void)group_end(m, step);
    } else if (group_is_open(m->saga, step) && op->due_ms && !m->saga->held_ms && m->input->now_ms >= op->due_ms &&
               !members_are_over(m->saga, step)) {
        group_fail(m, step, WHY("deadline", "its deadline has passed before its work was done"));
    }
}

/* Is the group settled? Nothing in it is open any more: every outcome is known, or unknown for good. */
static bool group_is_settled(const struct saga *saga, uint32_t group)
{
    for (uint32_t i = group + 1; i < saga->definition->step_count; i++) {
        const struct operation *op = &saga->steps[i].forward;

        if ((operation_is_open(op) || op->state == OP_WAITING) && step_lies_in(saga, i, group)) {
            return false;
        }
    }
    return true;
}

/* Undoes a child on its own: makes its plan, and ends it. */
static bool undo_alone(struct machine *m, uint32_t step)
{
    const struct step *s = &m->saga->steps[step];
    struct record record = {.step = step};

    if (step_phase(m->saga, step) != PHASE_FORWARD) {
        return false; /* an undo around it includes it */
    }
    if (s->group_phase == PHASE_FAILING) {
        if (!group_is_settled(m->saga, step)) {
            return false;
        }
        record.type = RECORD_COMPENSATION_PLANNED;
        record.plan = saga_make_plan(m->saga, step, m->turn, &record.plan_count);
    } else {
        if (s->undo_left > 0) {
            return false;
        }
        record.type = RECORD_STEP_FAILED;
        record.error = SLICE("child-failed");
        record.detail = s->forward.detail.len ? arena_printf(m->turn, "%.*s: %.*s", SLICE_ARG(s->forward.error),
                                                             SLICE_ARG(s->forward.detail))
                                              : s->forward.error;
    }
    machine_emit(m, &record);
    return true;
}

bool group_advance(struct machine *m)
{
    for (uint32_t i = 0; i < m->saga->definition->step_count; i++) {
        if (m->saga->steps[i].forward.state != OP_OPEN) {
            continue;
        }
        if (group_may_end(m->saga, i)) {
            if (!machine_is_full(m) && group_end(m, i)) {
                return true;
            }
        } else if (m->saga->steps[i].group_phase != PHASE_FORWARD && undo_alone(m, i)) {
            return true;
        }
    }
    return false;
}

/* --- checking --- */

static bool check_opened(const struct saga *saga, const struct record *record, struct err *err)
{
    size_t count;

    if (!step_is_ready(saga, record->step)) {
        return check_refuse(record, err, "its turn has not come");
    }
    if (!is_for_each(saga, record->step)) {
        count = definition_of(saga, record->step)->child->written_count;
    } else if (json_type(record->args) != JSON_ARRAY || (count = json_count(record->args)) > FOR_EACH_MAX) {
        return check_refuse(record, err, "its elements are no array, or too many");
    }
    return count <= SAGA_STEPS_MAX - saga->definition->step_count ||
           check_refuse(record, err, "the saga would have too many steps");
}

static bool check_ended(const struct saga *saga, const struct record *record, struct err *err)
{
    const struct step *s = &saga->steps[record->step];

    if (record->attempt || !uuid_is_nil(&record->key.uuid)) {
        return check_refuse(record, err, "a group has no call of its own");
    }
    if (record->type == RECORD_STEP_COMPLETED) {
        return (record->result.ptr && group_may_end(saga, record->step)) ||
               check_refuse(record, err, "not all that belongs to it is over");
    }
    if (s->forward.state == OP_NONE) {
        return step_is_ready(saga, record->step) || check_refuse(record, err, "its turn has not come");
    }
    return (s->forward.state == OP_OPEN && s->group_phase == PHASE_UNDO && s->undo_left == 0) ||
           check_refuse(record, err, "it is not undone");
}

bool check_group(const struct saga *saga, const struct record *record, struct err *err)
{
    if (!step_is_group(definition_of(saga, record->step))) {
        return check_refuse(record, err, "nothing belongs to this step");
    }
    if (record->type == RECORD_STEP_OPENED) {
        return check_opened(saga, record, err);
    }
    if (record->type != RECORD_STEP_FAILING) {
        return check_ended(saga, record, err);
    }
    return (is_child(saga, record->step) && group_is_open(saga, record->step) &&
            definition_of(saga, record->step)->on_failure != ON_FAILURE_COMPENSATE) ||
           check_refuse(record, err, "it is not open, or not undone on its own");
}

/* --- folding --- */

/* Makes room for `count` steps where there were `had`. */
static void grow(struct saga *saga, uint32_t had, uint32_t count)
{
    if (count > saga->step_room) {
        struct step *steps;

        while (saga->step_room < count) {
            saga->step_room = saga->step_room ? 2 * saga->step_room : 8;
        }
        steps = arena_array(saga_memory(saga), saga->step_room, sizeof(*steps));
        memcpy(steps, saga->steps, had * sizeof(*steps));
        saga->steps = steps;
        return;
    }
    if (count > had) {
        memset(saga->steps + had, 0, (count - had) * sizeof(*saga->steps));
    }
}

/* Hands out the items once, because an array may be large and each element is read more than once. */
static void hand_out_items(struct saga *saga, const struct step *group)
{
    struct json_walk walk = json_walk(group->forward.args);

    for (uint32_t i = group->first; i < group->first + group->count; i++) {
        CHECK(json_next_element(&walk, &saga->steps[i].item));
    }
}

uint32_t apply_opened_definition(struct saga *saga, const struct record *record)
{
    uint32_t before = saga->definition->step_count, first,
             elements = is_for_each(saga, record->step) ? (uint32_t)json_count(record->args) : ELEMENT_NONE;
    const struct definition *next =
        definition_with_members(saga->definition, record->step, elements, saga_memory(saga), &first);

    CHECK(next && first == before);
    saga->definition = next;
    return first;
}

void apply_opened_group(struct saga *saga, const struct record *record)
{
    uint32_t first = apply_opened_definition(saga, record), count = saga->definition->step_count;
    struct step *s;

    grow(saga, first, count);
    s = &saga->steps[record->step];
    s->first = first;
    s->count = count - first;
    s->failing_step = STEP_NONE;
    s->start_order = ++saga->started_count;
    s->started_ms = record->at_ms;
    s->begun_seq = record->seq;
    s->forward.args = apply_keep(saga, record->args);
    if (is_for_each(saga, record->step)) {
        hand_out_items(saga, s);
    }
    s->forward.due_ms = record->due_ms;
    s->forward.created_ms = s->forward.round_ms = s->forward.changed_ms = record->at_ms;
    s->forward.effect = EFFECT_READ;
    CHECK(operation_may_move(s->forward.state, OP_OPEN));
    s->forward.state = OP_OPEN;
}

/* Returns the first failed step that takes the group with it. */
static uint32_t failed_in(const struct saga *saga, uint32_t group)
{
    for (uint32_t i = group + 1; i < saga->definition->step_count; i++) {
        enum op_state state = saga->steps[i].forward.state;

        if ((state == OP_FAILED || state == OP_UNKNOWN) &&
            definition_of(saga, i)->on_failure == ON_FAILURE_COMPENSATE && group_that_fails(saga, i) == group) {
            return i;
        }
    }
    return STEP_NONE;
}

void apply_failing_group(struct saga *saga, const struct record *record)
{
    struct step *s = &saga->steps[record->step];

    s->group_phase = PHASE_FAILING;
    s->failing_step = failed_in(saga, record->step);
    s->forward.error = apply_keep(saga, record->error);
    s->forward.detail = apply_keep(saga, record->detail);
    s->forward.due_ms = 0;
    s->forward.changed_ms = record->at_ms;
}

/* Takes back the plan of a group. A terminal call in it turned out to have happened when the group was to be undone, so
 * nothing of it is undone. */
static void take_back_plan(struct saga *saga, uint32_t group)
{
    uint32_t *plan = arena_array(saga_memory(saga), saga->plan_count + 1, sizeof(*plan)), n = 0;

    for (uint32_t i = 0; i < saga->plan_count; i++) {
        uint32_t step = saga->plan[i];

        if (!step_lies_in(saga, step, group)) {
            plan[n++] = step;
        } else if (saga->steps[step].plan != PLAN_WAIVED && step_undone_alone(saga, step) == group) {
            plan_move(saga, step, PLAN_NONE);
        }
    }
    saga->plan = plan;
    saga->plan_count = n;
}

void apply_ended_group(struct saga *saga, const struct record *record)
{
    struct step *s = &saga->steps[record->step];
    struct operation *op = &s->forward;
    enum op_state to = record_leads_to(record);

    CHECK(operation_may_move(op->state, to));
    op->state = to;
    op->created_ms = op->created_ms ? op->created_ms : record->at_ms;
    op->effect = EFFECT_READ;
    op->due_ms = 0;
    op->ended_ms = op->changed_ms = record->at_ms;
    op->source = record->source;
    s->settled_seq = record->seq;
    if (to == OP_COMPLETED) {
        op->result = apply_keep(saga, record->result);
        op->error = op->detail = SLICE_NONE;
        if (s->group_phase == PHASE_UNDO && saga->phase == PHASE_FORWARD) {
            take_back_plan(saga, record->step);
        }
        s->group_phase = PHASE_FORWARD;
        s->failing_step = STEP_NONE;
    } else if (to == OP_FAILED) {
        op->error = apply_keep(saga, record->error);
        op->detail = apply_keep(saga, record->detail);
    }
}

void apply_member(struct saga *saga, uint32_t step, bool was_begun, bool was_over)
{
    uint32_t group = definition_of(saga, step)->group;

    if (group != STEP_NONE) {
        saga->steps[group].begun += (saga->steps[step].forward.state != OP_NONE) - (uint32_t)was_begun;
        saga->steps[group].over += step_is_over(saga, step) - (uint32_t)was_over;
    }
}
