/* What expressions see: the input and the steps of the saga that the step is written in, and the element that the step
 * is for. */
#include "base/json.h"
#include "core/saga/machine.h"

static struct slice result_of(const struct operation *forward)
{
    return (forward->state == OP_COMPLETED || forward->state == OP_SKIPPED) && forward->result.ptr ? forward->result
                                                                                                   : SLICE("null");
}

/* Says why the result of a step, or that of one of its elements or steps, could not be made. */
static struct slice lost_of(const struct saga *saga, uint32_t i)
{
    const struct step *step = &saga->steps[i];
    struct slice lost = step->forward.result_error;

    for (uint32_t k = 0; !lost.ptr && step_is_group(&saga->definition->steps[i]) && k < step->count; k++) {
        lost = lost_of(saga, step->first + k);
    }
    return lost;
}

/* Finds the steps of the saga whose group is `scope`. */
static void scope_steps(const struct saga *saga, uint32_t scope, uint32_t *first, uint32_t *count)
{
    *first = scope == STEP_NONE ? 0 : saga->steps[scope].first;
    *count = scope == STEP_NONE
                 ? saga->definition->written_count ? saga->definition->written_count : saga->definition->step_count
                 : saga->steps[scope].count;
}

struct expression_context saga_inner_context(const struct saga *saga, uint32_t scope, struct arena *arena)
{
    uint32_t first, count;
    struct expression_step *steps;
    char *id = arena_alloc(arena, UUID_TEXT_BYTES);

    scope_steps(saga, scope, &first, &count);
    steps = arena_array(arena, count ? count : 1, sizeof(*steps));
    uuid_text(&saga->id.uuid, id);
    for (uint32_t i = 0; i < count; i++) {
        const struct step_definition *definition = &saga->definition->steps[first + i];

        /* The step has the id that it is written with. */
        steps[i].id = definition->written_in ? definition->written_in->steps[definition->member].id : definition->id;
        steps[i].result = result_of(&saga->steps[first + i].forward);
        steps[i].error = operation_error(&saga->steps[first + i].forward, arena);
        steps[i].lost = lost_of(saga, first + i);
        steps[i].status = slice_of(step_status_name(saga_step_status(saga, first + i)));
    }
    return (struct expression_context){
        .input = scope == STEP_NONE ? saga->input : saga->steps[scope].forward.args,
        .saga_id = slice_of(id),
        .saga_name = scope == STEP_NONE ? saga->definition->name : saga->definition->steps[scope].child_name,
        .steps = steps,
        .step_count = count,
    };
}

struct expression_context saga_expression_context(const struct saga *saga, uint32_t step, struct arena *arena)
{
    struct expression_context context;

    context = saga_inner_context(saga, step == STEP_NONE ? STEP_NONE : step_scope(saga, step), arena);
    context.item = step == STEP_NONE ? SLICE_NONE : saga->steps[step].item;
    return context;
}

const struct template *saga_main_template(const struct saga *saga, uint32_t step)
{
    const struct step_definition *definition = &saga->definition->steps[step];

    if (template_is_set(&definition->for_each)) {
        return &definition->for_each;
    }
    switch (definition->kind) {
    case STEP_CALL:
    case STEP_SAGA:
    case STEP_SIGNAL: /* a signal is given nothing */
        return &definition->with;
    case STEP_SLEEP:
        return &definition->sleep;
    case STEP_APPROVE:
        return &definition->show;
    }
    UNREACHABLE();
}

const struct template *saga_output_template(const struct saga *saga, uint32_t step)
{
    return step == STEP_NONE ? &saga->definition->output : &saga->definition->steps[step].child->output;
}
