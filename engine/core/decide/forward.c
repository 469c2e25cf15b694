/* Forward work: starting, beginning steps whose turn has come, stopping, and the end when all is done. */
#include "base/json.h"
#include "core/saga/machine.h"

/* More than any text that is joined from bounded texts. */
#define TEXT_BYTES_MAX ((size_t)64 << 20)

/* Writes {name: version} of the tools, or of the sagas in it. */
static struct slice pins_json(struct machine *m, bool sagas)
{
    const struct definition *definition = m->saga->definition;
    struct buffer out;
    struct json_writer w;
    struct slice text;

    buffer_init(&out, TEXT_BYTES_MAX);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    for (uint32_t i = 0; i < (sagas ? definition->child_count : definition->tool_count); i++) {
        struct slice name = sagas ? definition->children[i]->name : definition->tools[i]->name;

        json_write_i64(&w, arena_text(m->turn, name),
                       sagas ? definition->children[i]->version : definition->tools[i]->version);
    }
    json_object_end(&w);
    CHECK(!out.overflow);
    text = arena_slice(m->turn, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

/* Joins the tags of the definition with those of the start, which win. */
static struct slice tags_json(struct machine *m, struct slice ours)
{
    struct slice theirs = m->input->start.tags, name_raw, value, text;
    struct buffer out;
    struct json_writer w;

    if (!ours.ptr || !theirs.ptr) {
        return ours.ptr ? ours : theirs;
    }
    buffer_init(&out, TEXT_BYTES_MAX);
    json_writer_init(&w, &out);
    json_object_begin(&w, NULL);
    for (int i = 0; i < 2; i++) {
        struct json_walk walk = json_walk(i == 0 ? ours : theirs);

        while (json_next_member(&walk, &name_raw, &value)) {
            struct slice name = json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, m->turn);
            char *name_text = arena_text(m->turn, name);

            if (i == 1 || !json_member(theirs, name_text).ptr) {
                json_write_raw(&w, name_text, value);
            }
        }
    }
    json_object_end(&w);
    CHECK(!out.overflow);
    text = arena_slice(m->turn, buffer_slice(&out));
    buffer_fini(&out);
    return text;
}

enum err_code forward_start(struct machine *m)
{
    const struct saga_input *input = m->input;
    const struct definition *definition = m->saga->definition;
    struct record record = {.type = RECORD_SAGA_STARTED, .step = STEP_NONE};
    struct slice tags;
    enum err_code code;

    if (m->saga->seq != 0) {
        return err_set(m->err, ERR_CONFLICT, "the saga has started already");
    }
    code = definition_tags(definition, input->start.input, m->turn, &tags, m->err);
    if (code != ERR_OK) {
        return code;
    }
    record.saga_name = definition->name;
    record.version = definition->version;
    record.tools = pins_json(m, false);
    record.sagas = definition->child_count > 0 ? pins_json(m, true) : SLICE_NONE;
    record.namespace = input->start.namespace.len ? input->start.namespace : SLICE("default");
    record.business_id = input->start.business_id;
    record.tags = tags_json(m, tags);
    record.input = input->start.input.len ? input->start.input : SLICE("{}");
    record.traceparent = input->start.trace.parent;
    record.tracestate = input->start.trace.state;
    record.due_ms = definition->deadline_ms ? input->now_ms + definition->deadline_ms : 0;
    if (definition->kind == SAGA_OPEN) {
        record.due_ms = input->start.deadline_ms;
        record.budget = input->start.budget;
        record.loop = input->start.loop;
        record.on_timeout = input->start.on_timeout;
    }
    machine_emit(m, &record);
    return ERR_OK;
}

void forward_start_run(struct machine *m)
{
    const struct definition *definition = m->saga->definition;
    struct record record = {.type = RECORD_SAGA_STARTED, .step = STEP_NONE, .input = SLICE("{}"), .tools = SLICE("{}")};

    record.saga_name = definition->name;
    record.version = definition->version;
    record.namespace = m->input->call.namespace.len ? m->input->call.namespace : SLICE("default");
    record.run = m->input->call.run;
    machine_emit(m, &record);
}

/* --- beginning a step --- */

void forward_refuse_arguments(struct machine *m, uint32_t step, struct slice detail)
{
    struct record record = {.type = RECORD_STEP_FAILED, .step = step, .error = SLICE("arguments"), .detail = detail};

    machine_emit(m, &record); /* nothing was sent, so there is no key */
}

void forward_skip(struct machine *m, uint32_t step)
{
    struct record record = {.type = RECORD_STEP_SKIPPED, .step = step, .reason = SLICE("when")};

    machine_emit(m, &record);
}

static struct op_key forward_key(const struct machine *m, uint32_t step, struct slice scope)
{
    struct op_identity identity = {
        .namespace = m->saga->namespace,
        .run = m->saga->run,
        .step = step_key_name(m->saga, step),
        .tool = m->saga->definition->steps[step].tool->name,
        .scope = scope,
        .direction = DIRECTION_DO,
    };

    return op_key_make(&identity);
}

void machine_freeze_effect(const struct machine *m, const struct tool *tool, struct slice args, struct record *record)
{
    struct expression_context context = {.args = args};
    struct slice value;
    struct err err = {0};

    record->effect = tool->effect;
    if (!tool->conditional) {
        return;
    }
    record->conditional = true;
    if (m->input->type == SAGA_INPUT_EVALUATED && m->input->evaluated.what == EVALUATE_ARGS &&
        m->input->evaluated.has_effect && m->input->evaluated.step == record->step &&
        record->direction == DIRECTION_DO) {
        record->effect = m->input->evaluated.effect;
    } else if (tool->effect_if.program_count == 0 &&
               template_render(&tool->effect_if, &context, NULL, m->turn, &value, &err) == ERR_OK) {
        record->effect = expression_true(value) ? tool->effect_then : tool->effect_else;
    } /* otherwise nobody can say, and the stricter class holds */
}

static bool refuse_over_budget(struct machine *m, uint32_t step)
{
    const char *what = saga_over_budget(m->saga, m->saga->definition->steps[step].tool, false, true);
    struct record record = {
        .type = RECORD_STEP_FAILED, .step = step, .error = SLICE("budget-exhausted"), .source = SOURCE_GUARD};

    if (!what) {
        return false;
    }
    record.detail = arena_printf(m->turn, "the saga's budget of %s is used up", what);
    machine_emit(m, &record);
    return true;
}

static struct slice scope_text(struct slice json, struct arena *arena)
{
    if (json_type(json) == JSON_STRING) {
        return json_string(json, arena);
    }
    return json_type(json) == JSON_NULL ? SLICE_NONE : json_trim(json);
}

bool tool_scope(const struct tool *tool, struct slice args, struct arena *arena, struct slice *scope, struct err *err)
{
    struct expression_context context = {.args = args};
    struct slice json;

    if (template_render(&tool->scope, &context, NULL, arena, &json, err) != ERR_OK) {
        return false;
    }
    *scope = scope_text(json, arena);
    return true;
}

void forward_begin(struct machine *m, uint32_t step, struct slice args, struct slice scope)
{
    const struct tool *tool = m->saga->definition->steps[step].tool;
    struct record record = {.step = step, .direction = DIRECTION_DO, .args = args, .scope = scope};
    struct slice oversize;
    struct faults faults;

    if (step_is_group(&m->saga->definition->steps[step])) {
        group_begin(m, step, args);
        return;
    }
    if (step_is_wait(m->saga, step)) {
        wait_begin(m, step, args);
        return;
    }
    oversize = machine_oversize(m, "the arguments have", args);
    if (oversize.ptr) {
        forward_refuse_arguments(m, step, oversize);
        return;
    }
    faults_init(&faults, m->turn);
    schema_check(tool->input, args, SLICE(""), m->turn, &faults);
    if (faults.count > 0) {
        forward_refuse_arguments(m, step, machine_faults(m, &faults));
        return;
    }
    if (template_is_set(&tool->scope) && !template_is_set(&m->saga->definition->steps[step].scope)) {
        struct err err = {0};

        if (!tool_scope(tool, args, m->turn, &scope, &err)) {
            forward_refuse_arguments(m, step, arena_slice(m->turn, slice_of(err.message)));
            return;
        }
        record.scope = scope;
    }
    if (refuse_over_budget(m, step)) {
        return;
    }
    record.key = forward_key(m, step, scope);
    record.fingerprint = op_fingerprint(tool->name, args, &tool->volatiles, m->turn);
    machine_freeze_effect(m, tool, args, &record);
    /* A call that must not leave twice gets its record and its intent in two commits, so that after a crash between
     * them it is known as not sent. The guard is asked in between, and a held call waits there. */
    if (tool->guarded || call_is_held(m, step, DIRECTION_DO) || record.effect == EFFECT_CHECKED ||
        record.effect == EFFECT_ONCE) {
        record.type = RECORD_STEP_PENDING;
    } else {
        record.type = RECORD_STEP_INTENT;
        record.attempt = 1;
    }
    machine_emit(m, &record);
}

/* --- the guards' answer --- */

/* Settles a step by its precheck. Nothing was sent, and nothing will be. */
static void forward_found(struct machine *m, uint32_t step)
{
    const struct saga_input *input = m->input;
    bool done = input->admitted.admission == ADMISSION_DONE;
    struct record record = machine_record(m, done ? RECORD_STEP_COMPLETED : RECORD_STEP_FAILED, step, DIRECTION_DO);

    record.source = SOURCE_PRECHECK;
    if (done) {
        record.result = input->admitted.result.ptr ? input->admitted.result : SLICE("null");
    } else {
        record.error = SLICE("blocked");
        record.detail = input->admitted.detail;
    }
    machine_emit(m, &record);
}

static void refuse_admission(struct machine *m, uint32_t step)
{
    const struct saga_input *input = m->input;
    struct why why = {input->admitted.error.len ? input->admitted.error : SLICE("refused"), input->admitted.detail};
    bool exhausted = slice_is(why.error, "budget-exhausted"),
         maybe = m->saga->steps[step].forward.took_effect == TOOK_EFFECT_MAYBE;

    /* Only a caller can come back later. An attempt that may have taken effect is followed up, and work that the engine
     * drives itself waits. */
    if (!exhausted && (maybe || !saga_is_open(m->saga))) {
        struct record record = machine_record(m, RECORD_STEP_RETRYING, step, DIRECTION_DO);

        record.due_ms = input->now_ms + (input->admitted.retry_after_ms > 0 ? input->admitted.retry_after_ms : 1000);
        record.maybe = maybe;
        record.error = why.error;
        record.detail = why.detail;
        record.source = SOURCE_GUARD;
        machine_emit(m, &record);
        return;
    }
    operation_give_up(m, step, why, SOURCE_GUARD,
                      input->admitted.retry_after_ms > 0 ? input->now_ms + input->admitted.retry_after_ms : 0);
}

/* Takes the answer of the guards. They were asked about an attempt that has not sent a byte; an earlier attempt may
 * have. */
void forward_admitted(struct machine *m)
{
    const struct saga_input *input = m->input;
    struct saga *saga = m->saga;
    uint32_t step = input->admitted.step;
    const struct operation *op;
    bool maybe;

    if (step >= saga->definition->step_count) {
        return;
    }
    op = &saga->steps[step].forward;
    maybe = op->took_effect == TOOK_EFFECT_MAYBE;
    if ((op->state != OP_PENDING || !step_may_leave(saga, step)) &&
        (op->state != OP_RETRYING || input->now_ms < op->due_ms)) {
        return;
    }
    switch (input->admitted.admission) {
    case ADMISSION_DONE:
    case ADMISSION_BLOCKED:
        if (!maybe) {
            forward_found(m, step);
            return;
        }
        /* The precheck may have found our own effect. Classes that may be called again find out under the same key. */
        if (op->effect == EFFECT_CHECKED || op->effect == EFFECT_ONCE) {
            operation_give_up(m, step, WHY("precheck", "the precheck found what an earlier attempt may have done"),
                              SOURCE_PRECHECK, 0);
            return;
        }
        break;
    case ADMISSION_GRANTED:
        break;
    case ADMISSION_REFUSED:
        refuse_admission(m, step);
        return;
    case ADMISSION_UNASKED:
        operation_not_asked(
            m, step,
            (struct why){input->admitted.error.len ? input->admitted.error : SLICE("precheck"), input->admitted.detail},
            input->admitted.retry_after_ms);
        return;
    }
    if (op->state == OP_PENDING) {
        operation_attempt(m, step, DIRECTION_DO);
    } else {
        operation_due(m, step, DIRECTION_DO);
    }
}

bool forward_condition_stops(struct machine *m, uint32_t step)
{
    const struct template *when = &m->saga->definition->steps[step].when;
    struct expression_context context;
    struct slice value;
    struct err err = {0};

    if (!template_is_set(when) || when->program_count > 0) {
        return false;
    }
    context = saga_expression_context(m->saga, step, m->turn);
    if (template_render(when, &context, NULL, m->turn, &value, &err) != ERR_OK) {
        forward_refuse_arguments(m, step, arena_slice(m->turn, slice_of(err.message)));
        return true;
    }
    if (!expression_true(value)) {
        forward_skip(m, step);
        return true;
    }
    return false;
}

static void render_and_begin(struct machine *m, uint32_t step)
{
    const struct step_definition *definition = &m->saga->definition->steps[step];
    const struct template *main = saga_main_template(m->saga, step);
    struct expression_context context = {0};
    struct slice args = SLICE("{}"), scope = SLICE_NONE;
    struct err err = {0};

    if (main->count > 0 || definition->scope.count > 0) {
        context = saga_expression_context(m->saga, step, m->turn);
    }
    if (template_is_set(main) && template_render(main, &context, NULL, m->turn, &args, &err) != ERR_OK) {
        forward_refuse_arguments(m, step, arena_slice(m->turn, slice_of(err.message)));
        return;
    }
    if (template_is_set(&definition->scope) && !step_is_group(definition)) { /* otherwise each element has its own */
        if (template_render(&definition->scope, &context, NULL, m->turn, &scope, &err) != ERR_OK) {
            forward_refuse_arguments(m, step, arena_slice(m->turn, slice_of(err.message)));
            return;
        }
        scope = scope_text(scope, m->turn);
    }
    forward_begin(m, step, args, scope);
}

bool forward_take_turn(struct machine *m, uint32_t step)
{
    if (!step_is_ready(m->saga, step)) {
        return false;
    }
    if (forward_condition_stops(m, step)) {
        return true;
    }
    if (step_needs_evaluation(m->saga, step)) {
        return false;
    }
    render_and_begin(m, step);
    return true;
}

/* --- ending forward work --- */

void forward_stop(struct machine *m, uint32_t step, struct why why, struct slice actor, struct slice note)
{
    struct record record = {.type = RECORD_SAGA_FAILING,
                            .step = step,
                            .error = why.error,
                            .detail = why.detail,
                            .actor = actor,
                            .note = note};

    machine_emit(m, &record);
}

/* Puts the debts. All is done, but a person has left a step standing whose effect nobody can be sure of. */
static bool put_waived(struct machine *m, struct record *record)
{
    const struct saga *saga = m->saga;
    uint32_t *debts = arena_array(m->turn, saga->definition->step_count, sizeof(*debts)), count = 0;

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (saga->steps[i].plan == PLAN_WAIVED) {
            debts[count++] = i;
        }
    }
    if (count > 0) {
        *record =
            (struct record){.type = RECORD_SAGA_ABANDONED, .step = STEP_NONE, .debts = debts, .debt_count = count};
    }
    return count > 0;
}

void forward_finish(struct machine *m, struct slice output, struct slice error)
{
    struct record record = {.type = RECORD_SAGA_COMPLETED, .step = STEP_NONE, .result = output};

    if (!saga_is_open(m->saga) && put_waived(m, &record)) {
        machine_emit(m, &record);
        return;
    }
    if (error.ptr) { /* all effects are there and wanted, so an output that cannot be rendered undoes none of them */
        record.result = SLICE("null");
        record.error = SLICE("output");
        record.detail = error;
    }
    followers_put(m, &record);
    machine_emit(m, &record);
}

bool finish_advance(struct machine *m)
{
    const struct template *output = &m->saga->definition->output;
    struct expression_context context;
    struct slice value = SLICE_NONE, error = SLICE_NONE;
    struct err err = {0};

    if (!saga_is_finished(m->saga) || finish_needs_evaluation(m->saga) || m->saga->escalation.number) {
        return false;
    }
    if (template_is_set(output)) {
        context = saga_expression_context(m->saga, STEP_NONE, m->turn);
        if (template_render(output, &context, NULL, m->turn, &value, &err) != ERR_OK) {
            error = arena_slice(m->turn, slice_of(err.message));
        }
    }
    forward_finish(m, value, error);
    return true;
}

/* Returns the first step that has failed and takes the saga or a child with it; STEP_NONE when there is none. */
static uint32_t step_that_failed(const struct saga *saga)
{
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (saga->steps[i].forward.state == OP_FAILED &&
            saga->definition->steps[i].on_failure == ON_FAILURE_COMPENSATE && step_phase(saga, i) == PHASE_FORWARD) {
            return i;
        }
    }
    return STEP_NONE;
}

static struct slice failure_detail(struct machine *m, uint32_t step)
{
    const struct operation *op = &m->saga->steps[step].forward;

    if (op->detail.len) {
        return arena_printf(m->turn, "%.*s: %.*s", SLICE_ARG(op->error), SLICE_ARG(op->detail));
    }
    return op->error;
}

/* Returns a step with an unknown outcome that may be undone although nobody knows whether there is anything to undo.
 * When evidence contradicts a person, that person is asked first. */
static uint32_t step_to_undo_blind(const struct saga *saga)
{
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (saga->steps[i].forward.state == OP_UNKNOWN && !saga->steps[i].forward.late &&
            step_can_be_undone_blind(saga, i) && saga->definition->steps[i].on_failure == ON_FAILURE_COMPENSATE &&
            step_phase(saga, i) == PHASE_FORWARD) {
            return i;
        }
    }
    return STEP_NONE;
}

/* Returns a step that surely did not happen and has no call under way, in a part that is being undone. It is not wanted
 * any more. */
static uint32_t step_to_give_up(const struct saga *saga)
{
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        const struct operation *op = &saga->steps[i].forward;

        if ((op->state == OP_PENDING || op->state == OP_WAITING ||
             (op->state == OP_RETRYING && op->took_effect == TOOK_EFFECT_NO)) &&
            step_phase(saga, i) == PHASE_FAILING) {
            return i;
        }
    }
    return STEP_NONE;
}

static bool give_up_unsent(struct machine *m)
{
    const struct saga *saga = m->saga;
    uint32_t step = step_to_give_up(saga);
    const char *what = saga->phase == PHASE_FORWARD ? "child" : "saga";
    struct record record;

    if (step == STEP_NONE) {
        return false;
    }
    record = machine_record(m, RECORD_STEP_FAILED, step, DIRECTION_DO);
    record.error = SLICE("stopped");
    record.detail = saga->steps[step].forward.state == OP_WAITING
                        ? arena_printf(m->turn, "the %s is being undone, and does not wait for this any more", what)
                        : arena_printf(m->turn, "the %s is being undone, and this was not sent", what);
    machine_emit(m, &record);
    return true;
}

bool forward_advance(struct machine *m)
{
    struct saga *saga = m->saga;
    uint32_t step = step_that_failed(saga);

    if (saga_is_open(saga)) { /* the agent judges a failure; only an unknown outcome needs a person */
        return escalation_advance(m);
    }
    if (step != STEP_NONE) {
        group_fail(m, step, (struct why){SLICE("step-failed"), failure_detail(m, step)});
        return true;
    }
    step = step_to_undo_blind(saga);
    if (step != STEP_NONE) {
        group_fail(m, step, (struct why){SLICE("step-unknown"), failure_detail(m, step)});
        return true;
    }
    if (give_up_unsent(m)) { /* in children that are undone on their own */
        return true;
    }
    if (wait_advance(m) || escalation_advance(m) || group_advance(m) || undo_next(m) || finish_advance(m) ||
        lock_advance(m)) {
        return true;
    }
    for (uint32_t i = 0; i < saga->definition->step_count && !machine_is_full(m); i++) {
        if (forward_take_turn(m, i)) {
            return true;
        }
    }
    return false;
}

/* True when no forward operation is open: what is left is known, or unknown for good. */
static bool everything_is_settled(const struct saga *saga)
{
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (operation_is_open(&saga->steps[i].forward)) {
            return false;
        }
    }
    return true;
}

bool failing_advance(struct machine *m)
{
    struct saga *saga = m->saga;
    struct record record = {.type = RECORD_COMPENSATION_PLANNED, .step = STEP_NONE};

    if (give_up_unsent(m) || escalation_advance(m)) {
        return true;
    }
    if (saga_passed_return(saga)) {
        return group_advance(m) || finish_advance(m);
    }
    if (undo_next(m)) { /* children that were being undone on their own go on */
        return true;
    }
    if (!everything_is_settled(saga)) {
        return false;
    }
    record.plan = saga_make_plan(saga, STEP_NONE, m->turn, &record.plan_count);
    machine_emit(m, &record);
    return true;
}
