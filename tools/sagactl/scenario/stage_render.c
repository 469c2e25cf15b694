/* Renders templates of a saga on stage as the engine does, but on this thread. See stage.h. */
#include "base/json.h"
#include "io/process/jq.h"
#include "tools/sagactl/scenario/stage.h"

#define OUTPUT_BYTES_MAX ((size_t)16 << 20)

static struct slice sentence(struct stage *stage, const struct err *err)
{
    return arena_printf(&stage->arena, "%s%s%s", err->message, err->detail[0] ? ": " : "", err->detail);
}

/* Evaluates the programs of a template, each at the index of its expression. */
static enum err_code evaluate(struct stage *stage, const struct template *template,
                              const struct expression_context *context, struct slice *values, struct err *err)
{
    struct slice *programs = arena_array(&stage->arena, template->program_count + 1, sizeof(*programs));
    struct slice *outputs = arena_array(&stage->arena, template->program_count + 1, sizeof(*outputs));
    size_t count = 0, failed_index;

    for (size_t i = 0; i < template->count; i++) {
        if (template->expressions[i].kind == EXPRESSION_PROGRAM) {
            programs[count++] = template->expressions[i].source;
        } else if (template->expressions[i].kind == EXPRESSION_SECRET) {
            return err_set(err, ERR_INVALID, "a scenario has no secrets");
        }
    }
    if (count > 0 && jq_evaluate(programs, count, expression_context_json(context, &stage->arena), NULL, &stage->arena,
                                 outputs, &failed_index, err) != ERR_OK) {
        return err->code;
    }
    count = 0;
    for (size_t i = 0; i < template->count; i++) {
        if (template->expressions[i].kind == EXPRESSION_PROGRAM) {
            values[i] = outputs[count++];
        }
    }
    return ERR_OK;
}

bool stage_render(struct stage *stage, const struct template *template, const struct expression_context *context,
                  struct slice *value, struct slice *error)
{
    struct err err = {0};

    *value = SLICE_NONE;
    if (!template_is_set(template)) {
        return true;
    }
    struct slice *values = arena_array(&stage->arena, template->count + 1, sizeof(*values));

    if (evaluate(stage, template, context, values, &err) == ERR_OK &&
        template_render(template, context, values, &stage->arena, value, &err) == ERR_OK) {
        return true;
    }
    *error = sentence(stage, &err);
    return false;
}

void stage_undo_args(struct stage *stage, uint32_t step, struct slice result, struct slice *args, struct slice *error)
{
    const struct compensator *compensate = &stage->saga.definition->steps[step].compensate;
    const struct operation *forward = &stage->saga.steps[step].forward;
    struct expression_context context;
    struct slice why = SLICE_NONE;

    if (!compensate->is_set) {
        return;
    }
    context = saga_expression_context(&stage->saga, step, &stage->arena);
    context.args = forward->args;
    context.key = stage_key(stage, &forward->key);
    context.result = result.ptr ? result : SLICE("null");
    if (!stage_render(stage, &compensate->with, &context, args, &why)) {
        *args = SLICE_NONE;
        *error = arena_printf(&stage->arena, "the compensator's arguments: %.*s", SLICE_ARG(why));
    } else if (!args->ptr) {
        *args = SLICE("{}");
    }
}

/* --- what the saga wants evaluated --- */

static void evaluate_args(struct stage *stage, uint32_t step, const struct expression_context *context,
                          struct saga_input *input)
{
    const struct step_definition *definition = &stage->saga.definition->steps[step];
    struct slice value, scope = SLICE_NONE, error = SLICE_NONE, decided;

    if (template_is_set(&definition->when) && definition->when.program_count > 0) {
        if (!stage_render(stage, &definition->when, context, &value, &error)) {
            input->evaluated.failed = true;
            input->evaluated.error = error;
            return;
        }
        if (!expression_true(value)) {
            input->evaluated.skipped = true;
            return;
        }
    }
    bool calls = definition->kind == STEP_CALL && !step_is_group(definition);

    if (!stage_render(stage, saga_main_template(&stage->saga, step), context, &value, &error) ||
        (calls && !stage_render(stage, &definition->scope, context, &scope, &error))) {
        input->evaluated.failed = true;
        input->evaluated.error = error;
        return;
    }
    input->evaluated.value = value;
    if (scope.ptr) {
        input->evaluated.scope = json_type(scope) == JSON_STRING ? json_string(scope, &stage->arena) : json_trim(scope);
    }
    if (calls && definition->tool->conditional) {
        const struct expression_context of_args = {.args = value.ptr ? value : SLICE("{}")};

        input->evaluated.has_effect = true;
        input->evaluated.effect = definition->tool->effect;
        if (stage_render(stage, &definition->tool->effect_if, &of_args, &decided, &error)) {
            input->evaluated.effect =
                expression_true(decided) ? definition->tool->effect_then : definition->tool->effect_else;
        }
    }
}

static void evaluate_locks(struct stage *stage, const struct expression_context *context, struct saga_input *input)
{
    const struct definition *definition = stage->saga.definition;
    struct slice key, error = SLICE_NONE;
    struct buffer text;
    struct json_writer w;

    buffer_init(&text, OUTPUT_BYTES_MAX);
    json_writer_init(&w, &text);
    json_array_begin(&w, NULL);
    for (uint32_t i = 0; i < definition->lock_count; i++) {
        if (!stage_render(stage, &definition->locks[i].key, context, &key, &error)) {
            input->evaluated.failed = true;
            input->evaluated.error = error;
            break;
        }
        if (json_type(key) == JSON_NUMBER) {
            json_write_slice(&w, NULL, json_trim(key));
        } else {
            json_write_raw(&w, NULL, key);
        }
    }
    json_array_end(&w);
    if (!input->evaluated.failed) {
        input->evaluated.value = arena_slice(&stage->arena, buffer_slice(&text));
    }
    buffer_fini(&text);
}

static void evaluate_followers(struct stage *stage, const struct expression_context *context, struct saga_input *input)
{
    const struct definition *definition = stage->saga.definition;
    struct slice given, id, error = SLICE_NONE;
    struct buffer text;
    struct json_writer w;

    buffer_init(&text, OUTPUT_BYTES_MAX);
    json_writer_init(&w, &text);
    json_array_begin(&w, NULL);
    for (uint32_t i = 0; i < definition->follower_count; i++) {
        if (!stage_render(stage, &definition->followers[i].input, context, &given, &error) ||
            !stage_render(stage, &definition->followers[i].id, context, &id, &error)) {
            input->evaluated.error = error;
            json_write_null(&w, NULL);
            continue;
        }
        json_object_begin(&w, NULL);
        json_write_raw(&w, "input", given.ptr ? given : SLICE("{}"));
        json_write_raw(&w, "business_id", id);
        json_object_end(&w);
    }
    json_array_end(&w);
    input->evaluated.followers = arena_slice(&stage->arena, buffer_slice(&text));
    buffer_fini(&text);
}

static void evaluate_one(struct stage *stage, const struct template *template, const struct expression_context *context,
                         struct saga_input *input)
{
    struct slice error = SLICE_NONE;

    if (!stage_render(stage, template, context, &input->evaluated.value, &error)) {
        input->evaluated.failed = true;
        input->evaluated.error = error;
    }
}

void stage_evaluate(struct stage *stage, const struct want *want)
{
    const struct definition *definition = stage->saga.definition;
    struct saga_input input = {.type = SAGA_INPUT_EVALUATED};
    struct expression_context context = want->number == EVALUATE_OUTPUT
                                            ? saga_inner_context(&stage->saga, want->step, &stage->arena)
                                            : saga_expression_context(&stage->saga, want->step, &stage->arena);
    struct err err = {0};

    input.evaluated.what = (enum evaluation)want->number;
    input.evaluated.step = want->step;
    switch (input.evaluated.what) {
    case EVALUATE_ARGS:
        evaluate_args(stage, want->step, &context, &input);
        break;
    case EVALUATE_OUTPUT:
        evaluate_one(stage, saga_output_template(&stage->saga, want->step), &context, &input);
        if (want->step == STEP_NONE && definition->follower_count > 0) {
            evaluate_followers(stage, &context, &input);
        }
        break;
    case EVALUATE_LOCKS:
        evaluate_locks(stage, &context, &input);
        break;
    case EVALUATE_UNDO: {
        const struct operation *forward = &stage->saga.steps[want->step].forward;

        context.key = stage_key(stage, &forward->key);
        context.args = forward->args;
        context.result = forward->result;
        evaluate_one(stage, &definition->steps[want->step].compensate.with, &context, &input);
        break;
    }
    }
    (void)stage_feed(stage, input, &err);
}
