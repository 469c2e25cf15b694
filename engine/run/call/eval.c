/* Plain templates are rendered at once; programs go to a worker thread and are rendered when their values are back. */
#include "run/call/eval.h"

#include "base/json.h"
#include "run/call/secrets.h"

/* The values that template_render() needs from outside: outputs of programs and secrets, at the index of their
 * expression. */
static enum err_code eval_values(struct eval *eval, const struct template *template, const struct slice *outputs,
                                 struct slice **values, struct err *err)
{
    *values = arena_array(eval->arena, template->count + 1, sizeof(struct slice));
    for (size_t i = 0; i < template->count; i++) {
        const struct expression *expression = &template->expressions[i];

        switch (expression->kind) {
        case EXPRESSION_PLAIN:
            break;
        case EXPRESSION_PROGRAM:
            (*values)[i] = *outputs++;
            break;
        case EXPRESSION_SECRET:
            CHECK(eval->secrets); /* it compiles in the settings of an adapter only */
            (*values)[i] = secrets_json(eval->secrets, eval->namespace, expression->secret, eval->arena);
            if (!(*values)[i].ptr) {
                (void)err_set(err, ERR_INVALID, "there is no secret named \"%.*s\"", SLICE_ARG(expression->secret));
                err_detail(err, "in the namespace \"%.*s\"", SLICE_ARG(eval->namespace));
                err_hint(err, "put it into the file named by --secrets, or into the environment as SAGAD_SECRET_NAME");
                return ERR_INVALID;
            }
            break;
        }
    }
    return ERR_OK;
}

static struct eval_item *eval_items(struct eval *eval)
{
    return eval->many ? eval->many : eval->items;
}

static struct slice eval_sentence(struct arena *arena, const struct err *err)
{
    return arena_printf(arena, "%s%s%s", err->message, err->detail[0] ? ": " : "", err->detail);
}

static void eval_render(struct eval *eval)
{
    const struct slice *outputs = eval->outputs;

    for (size_t i = 0; i < eval->count; i++) {
        struct eval_item *item = &eval_items(eval)[i];
        struct slice *values = NULL;
        struct err err = {0};

        if (!template_is_set(item->template)) {
            item->value = SLICE_NONE;
            continue;
        }
        if (item->code == ERR_OK) {
            item->code = eval_values(eval, item->template, outputs, &values, &err);
        }
        outputs += item->template->program_count;
        if (item->code == ERR_OK) {
            item->code = template_render(item->template, &eval->context, values, eval->arena, &item->value, &err);
        }
        if (item->code != ERR_OK && !item->error.ptr) {
            item->error = eval_sentence(eval->arena, &err);
        }
    }
}

struct eval_job {
    struct jq_job job;
    struct eval *eval;
};

static void eval_on_jq(struct jq_job *job)
{
    struct eval *eval = container_of(job, struct eval_job, job)->eval;

    if (eval->abandoned) {
        for (size_t i = 0; i < eval->count; i++) {
            eval_items(eval)[i].code = ERR_FENCED;
        }
        eval->done(eval);
        return;
    }
    if (job->code != ERR_OK) {
        size_t index = 0;

        for (size_t i = 0; i < eval->count; i++) {
            struct eval_item *item = &eval_items(eval)[i];

            if (!template_is_set(item->template)) {
                continue;
            }
            size_t next = index + item->template->program_count;

            /* Which program failed is known; what the others would have given is not: all with programs from there on
             * fail with it. */
            if (item->template->program_count > 0 && next > job->failed_index) {
                item->code = job->code;
                item->error = eval_sentence(eval->arena, &job->err);
            }
            index = next;
        }
    }
    eval_render(eval);
    eval->done(eval);
}

static bool eval_submit(struct loop *loop, struct eval *eval)
{
    size_t count = 0;

    for (size_t i = 0; i < eval->count; i++) {
        if (template_is_set(eval_items(eval)[i].template)) {
            count += eval_items(eval)[i].template->program_count;
        }
    }
    if (count == 0) {
        return false;
    }
    struct slice *programs = arena_array(eval->arena, count, sizeof(struct slice));
    struct eval_job *job = arena_alloc(eval->arena, sizeof(*job));

    eval->outputs = arena_array(eval->arena, count, sizeof(struct slice));
    size_t n = 0;

    for (size_t i = 0; i < eval->count; i++) {
        const struct template *template = eval_items(eval)[i].template;

        for (size_t k = 0; template_is_set(template) && k < template->count; k++) {
            if (template->expressions[k].kind == EXPRESSION_PROGRAM) {
                programs[n++] = template->expressions[k].source;
            }
        }
    }
    job->eval = eval;
    job->job = (struct jq_job){.programs = programs,
                               .count = count,
                               .input_json = expression_context_json(&eval->context, eval->arena),
                               .arena = eval->arena,
                               .outputs = eval->outputs,
                               .done = eval_on_jq};
    eval->job = &job->job;
    jq_submit(loop, eval->job);
    return true;
}

bool eval_start(struct loop *loop, struct eval *eval)
{
    for (size_t i = 0; i < eval->count; i++) {
        eval_items(eval)[i].code = ERR_OK;
        eval_items(eval)[i].value = eval_items(eval)[i].error = SLICE_NONE;
    }
    eval->outputs = NULL;
    if (eval_submit(loop, eval)) {
        return false;
    }
    eval_render(eval);
    return true;
}

static void on_effect(struct eval *eval)
{
    struct effect_of_call *effect = container_of(eval, struct effect_of_call, eval);
    const struct eval_item *item = &eval->items[0];

    if (item->code == ERR_OK) { /* else it stays the stricter one */
        effect->effect = expression_true(item->value) ? effect->tool->effect_then : effect->tool->effect_else;
    }
    effect->done(effect);
}

void effect_of_call(struct loop *loop, struct effect_of_call *effect)
{
    effect->effect = effect->tool->effect;
    if (!effect->tool->conditional) {
        effect->done(effect);
        return;
    }
    effect->eval =
        (struct eval){.count = 1, .context = {.args = effect->args}, .arena = effect->arena, .done = on_effect};
    effect->eval.items[0].template = &effect->tool->effect_if;
    if (eval_start(loop, &effect->eval)) {
        on_effect(&effect->eval);
    }
}
