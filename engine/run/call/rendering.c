/* Renders templates. Plain ones are rendered at once; programs go to a worker thread, and the template is rendered when
 * their values are back. */
#include "run/call/rendering.h"

#include "base/json.h"
#include "run/call/secrets.h"

/* Collects the values that template_render() needs from outside: outputs of programs and secrets, at the index of their
 * expression. */
static enum err_code rendering_values(struct rendering *rendering, const struct template *template,
                                      const struct slice *outputs, struct slice **values, struct err *err)
{
    *values = arena_array(rendering->arena, template->count + 1, sizeof(struct slice));
    for (size_t i = 0; i < template->count; i++) {
        const struct expression *expression = &template->expressions[i];

        switch (expression->kind) {
        case EXPRESSION_PLAIN:
            break;
        case EXPRESSION_PROGRAM:
            (*values)[i] = *outputs++;
            break;
        case EXPRESSION_SECRET:
            CHECK(rendering->secrets); /* secrets are allowed only in the settings of an adapter */
            (*values)[i] = secrets_json(rendering->secrets, rendering->namespace, expression->secret, rendering->arena);
            if (!(*values)[i].ptr) {
                (void)err_set(err, ERR_INVALID, "there is no secret named \"%.*s\"", SLICE_ARG(expression->secret));
                err_detail(err, "in the namespace \"%.*s\"", SLICE_ARG(rendering->namespace));
                err_hint(err, "put it into the file named by --secrets, or into the environment as SAGAD_SECRET_NAME");
                return ERR_INVALID;
            }
            break;
        }
    }
    return ERR_OK;
}

static struct rendering_item *rendering_items(struct rendering *rendering)
{
    return rendering->many ? rendering->many : rendering->items;
}

static struct slice rendering_sentence(struct arena *arena, const struct err *err)
{
    return arena_printf(arena, "%s%s%s", err->message, err->detail[0] ? ": " : "", err->detail);
}

static void rendering_make(struct rendering *rendering)
{
    const struct slice *outputs = rendering->outputs;

    for (size_t i = 0; i < rendering->count; i++) {
        struct rendering_item *item = &rendering_items(rendering)[i];
        struct slice *values = NULL;
        struct err err = {0};

        if (!template_is_set(item->template)) {
            item->value = SLICE_NONE;
            continue;
        }
        if (item->code == ERR_OK) {
            item->code = rendering_values(rendering, item->template, outputs, &values, &err);
        }
        outputs += item->template->program_count;
        if (item->code == ERR_OK) {
            item->code =
                template_render(item->template, &rendering->context, values, rendering->arena, &item->value, &err);
        }
        if (item->code != ERR_OK && !item->error.ptr) {
            item->error = rendering_sentence(rendering->arena, &err);
        }
    }
}

struct rendering_job {
    struct jq_job job;
    struct rendering *rendering;
};

static void rendering_on_jq(struct jq_job *job)
{
    struct rendering *rendering = container_of(job, struct rendering_job, job)->rendering;

    if (rendering->abandoned) {
        for (size_t i = 0; i < rendering->count; i++) {
            rendering_items(rendering)[i].code = ERR_FENCED;
        }
        rendering->done(rendering);
        return;
    }
    if (job->code != ERR_OK) {
        size_t index = 0;

        for (size_t i = 0; i < rendering->count; i++) {
            struct rendering_item *item = &rendering_items(rendering)[i];

            if (!template_is_set(item->template)) {
                continue;
            }
            size_t next = index + item->template->program_count;

            /* The first program that failed is known, but not what the later ones would have given. So all templates
             * with programs from there on fail with it. */
            if (item->template->program_count > 0 && next > job->failed_index) {
                item->code = job->code;
                item->error = rendering_sentence(rendering->arena, &job->err);
            }
            index = next;
        }
    }
    rendering_make(rendering);
    rendering->done(rendering);
}

static bool rendering_submit(struct loop *loop, struct rendering *rendering)
{
    size_t count = 0;

    for (size_t i = 0; i < rendering->count; i++) {
        if (template_is_set(rendering_items(rendering)[i].template)) {
            count += rendering_items(rendering)[i].template->program_count;
        }
    }
    if (count == 0) {
        return false;
    }
    struct slice *programs = arena_array(rendering->arena, count, sizeof(struct slice));
    struct rendering_job *job = arena_alloc(rendering->arena, sizeof(*job));

    rendering->outputs = arena_array(rendering->arena, count, sizeof(struct slice));
    size_t n = 0;

    for (size_t i = 0; i < rendering->count; i++) {
        const struct template *template = rendering_items(rendering)[i].template;

        for (size_t k = 0; template_is_set(template) && k < template->count; k++) {
            if (template->expressions[k].kind == EXPRESSION_PROGRAM) {
                programs[n++] = template->expressions[k].source;
            }
        }
    }
    job->rendering = rendering;
    job->job = (struct jq_job){.programs = programs,
                               .count = count,
                               .input_json = expression_context_json(&rendering->context, rendering->arena),
                               .arena = rendering->arena,
                               .outputs = rendering->outputs,
                               .done = rendering_on_jq};
    rendering->job = &job->job;
    jq_submit(loop, rendering->job);
    return true;
}

bool rendering_start(struct loop *loop, struct rendering *rendering)
{
    for (size_t i = 0; i < rendering->count; i++) {
        rendering_items(rendering)[i].code = ERR_OK;
        rendering_items(rendering)[i].value = rendering_items(rendering)[i].error = SLICE_NONE;
    }
    rendering->outputs = NULL;
    if (rendering_submit(loop, rendering)) {
        return false;
    }
    rendering_make(rendering);
    return true;
}

static void on_effect(struct rendering *rendering)
{
    struct effect_of_call *effect = container_of(rendering, struct effect_of_call, rendering);
    const struct rendering_item *item = &rendering->items[0];

    if (item->code == ERR_OK) { /* otherwise it stays the stricter class */
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
    effect->rendering =
        (struct rendering){.count = 1, .context = {.args = effect->args}, .arena = effect->arena, .done = on_effect};
    effect->rendering.items[0].template = &effect->tool->effect_if;
    if (rendering_start(loop, &effect->rendering)) {
        on_effect(&effect->rendering);
    }
}
