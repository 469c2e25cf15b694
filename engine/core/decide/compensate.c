/*
 * Undoing by the frozen plan: one step at a time, or as many as the definition allows, each when all effects that came
 * after it are gone. A step that cannot be undone keeps only those steps waiting that it depends on.
 */
#include "core/saga/machine.h"

void undo_refuse_arguments(struct machine *m, uint32_t step, struct slice detail)
{
    struct record record = machine_record(m, RECORD_COMPENSATION_FAILED, step, DIRECTION_UNDO);

    record.error = SLICE("arguments");
    record.detail = detail;
    machine_emit(m, &record);
}

static struct op_key undo_key(const struct machine *m, uint32_t step)
{
    const struct step *s = &m->saga->steps[step];
    struct op_identity identity = {
        .namespace = m->saga->namespace,
        .run = m->saga->run,
        /* The id, which no other step has: a compensator may have to undo several calls of this name and scope. */
        .step = m->saga->definition->steps[step].id,
        .tool = saga_tool(m->saga, step, DIRECTION_UNDO)->name,
        .scope = s->forward.scope,
        .direction = DIRECTION_UNDO,
        .generation = step_undo(s)->generation,
    };

    return op_key_make(&identity);
}

void undo_begin(struct machine *m, uint32_t step, struct slice args)
{
    const struct tool *tool = saga_tool(m->saga, step, DIRECTION_UNDO);
    struct record record = {
        .type = RECORD_COMPENSATION_INTENT, .step = step, .direction = DIRECTION_UNDO, .attempt = 1, .args = args};
    struct slice oversize = machine_oversize(m, "the arguments have", args);
    struct faults faults;

    if (oversize.ptr) { /* the undo is not sent and a person is asked, because the effect stands */
        undo_refuse_arguments(m, step, oversize);
        return;
    }
    faults_init(&faults, m->turn);
    schema_check(tool->input, args, SLICE(""), m->turn, &faults);
    if (faults.count > 0) {
        undo_refuse_arguments(m, step, machine_faults(m, &faults));
        return;
    }
    record.key = undo_key(m, step);
    record.scope = m->saga->steps[step].forward.scope;
    record.fingerprint = op_fingerprint(tool->name, args, &tool->volatiles, m->turn);
    machine_freeze_effect(m, tool, args, &record);
    machine_emit(m, &record);
}

/*
 * The arguments were frozen with the step's success. When its outcome is unknown, nothing was frozen, and the
 * compensator gets what is known, with `.result` null.
 */
static void render_and_begin(struct machine *m, uint32_t step)
{
    const struct step *s = &m->saga->steps[step];
    const struct template *with = &m->saga->definition->steps[step].compensate.with;
    struct expression_context context;
    struct slice args = SLICE("{}");
    struct err err = {0};
    char *key;

    if (s->undo_error.ptr) {
        undo_refuse_arguments(m, step, s->undo_error);
        return;
    }
    if (s->undo_args.ptr) {
        undo_begin(m, step, s->undo_args);
        return;
    }
    if (template_is_set(with)) {
        context = saga_expression_context(m->saga, step, m->turn);
        key = arena_alloc(m->turn, UUID_TEXT_BYTES);
        uuid_text(&s->forward.key.uuid, key);
        context.args = s->forward.args;
        context.key = slice_of(key);
        context.result = s->forward.result.ptr ? s->forward.result : SLICE("null");
        if (template_render(with, &context, NULL, m->turn, &args, &err) != ERR_OK) {
            undo_refuse_arguments(m, step, arena_slice(m->turn, slice_of(err.message)));
            return;
        }
    }
    undo_begin(m, step, args);
}

bool undo_take_turn(struct machine *m, uint32_t step)
{
    const struct operation *undo = step_undo(&m->saga->steps[step]);

    if (!undo_may_begin(m->saga, step) || call_is_held(m, step, DIRECTION_UNDO) ||
        undo_needs_evaluation(m->saga, step) || (undo->state == OP_RETRYING && undo->due_ms > m->input->now_ms)) {
        return false;
    }
    if (step_undo(&m->saga->steps[step])->state == OP_RETRYING) { /* a person gave the undo another round */
        operation_due(m, step, DIRECTION_UNDO);
    } else {
        render_and_begin(m, step);
    }
    return true;
}

bool undo_next(struct machine *m)
{
    for (uint32_t i = 0; i < m->saga->plan_count && !machine_is_full(m); i++) {
        if (undo_take_turn(m, m->saga->plan[i])) {
            return true;
        }
    }
    return false;
}

bool undo_advance(struct machine *m)
{
    struct saga *saga = m->saga;
    struct record record = {.type = RECORD_SAGA_COMPENSATED, .step = STEP_NONE};
    bool waived = false;

    if (escalation_advance(m)) {
        return true;
    }
    if (saga_passed_return(saga) &&
        !saga_has_undone(saga)) { /* a person found that the last step had happened after all */
        return group_advance(m) || finish_advance(m);
    }
    if (undo_next(m)) {
        return true;
    }
    if (!saga_undo_is_over(saga)) {
        return false;
    }
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        waived = waived || saga->steps[i].plan == PLAN_WAIVED;
    }
    if (waived) {
        record.type = RECORD_SAGA_ABANDONED;
        record.debts = saga_make_debts(saga, m->turn, &record.debt_count);
    }
    machine_emit(m, &record);
    return true;
}
