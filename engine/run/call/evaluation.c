/*
 * WANT_EVALUATE: templates with programs are rendered outside of the saga, and their values come back as an input. An
 * evaluation reads the saga's memory; when that goes away meanwhile, nothing is rendered any more.
 */
#include "base/json.h"
#include "run/call/activity.h"
#include "run/engine_state.h"
#include "run/leaving.h"
#include "run/saga/live.h"

static const struct template no_template;

/* --- arguments of a step --- */

static void on_evaluated(struct rendering *rendering);
static void evaluate_args(struct activity *activity);

/* Takes the class of a step whose tool decides it from the arguments, once these are known. */
static void on_effect(struct effect_of_call *effect)
{
    struct activity *activity = effect->context;

    activity->effect = effect->effect;
    on_evaluated(&activity->act->rendering);
}

static void on_args(struct rendering *rendering)
{
    struct activity *activity = activity_of(rendering);
    const struct saga *saga = activity->live && !activity->cancelled ? &activity->live->saga : NULL;
    const struct step_definition *step = saga ? &saga->definition->steps[activity->want.step] : NULL;

    if (!step || !step_calls(step) || !step->tool->conditional || rendering->items[0].code != ERR_OK) {
        on_evaluated(rendering);
        return;
    }
    struct effect_of_call *effect = arena_alloc(&activity->arena, sizeof(*effect));

    activity->act->tool = step->tool;
    *effect = (struct effect_of_call){.tool = step->tool,
                                      .args = rendering->items[0].value.ptr ? rendering->items[0].value : SLICE("{}"),
                                      .arena = &activity->arena,
                                      .done = on_effect,
                                      .context = activity};
    effect_of_call(activity->engine->loop, effect);
}

/* Takes a condition that is a program. The rest is evaluated only when the condition holds. */
static void on_when(struct rendering *rendering)
{
    struct activity *activity = activity_of(rendering);

    if (!activity->live || activity->cancelled || rendering->items[0].code != ERR_OK) {
        on_evaluated(rendering);
        return;
    }
    if (!expression_true(rendering->items[0].value)) {
        on_evaluated(rendering); /* it sees that only the condition was evaluated */
        return;
    }
    evaluate_args(activity);
}

static void evaluate_args(struct activity *activity)
{
    const struct saga *saga = &activity->live->saga;
    const struct step_definition *step = &saga->definition->steps[activity->want.step];
    struct rendering *rendering = &activity->act->rendering;

    rendering->items[0].template = saga_main_template(saga, activity->want.step);
    /* The scope of a for_each belongs to each element, and may name it. */
    rendering->items[1].template = step_calls(step) ? &step->scope : &no_template;
    rendering->count = 2;
    rendering->done = on_args;
    if (rendering_start(activity->engine->loop, rendering)) {
        on_args(rendering);
    }
}

/* --- what came of it --- */

static void begin_input(struct activity *activity)
{
    activity->act->mail.input =
        (struct saga_input){.type = SAGA_INPUT_EVALUATED,
                            .evaluated = {.what = (enum evaluation)activity->want.number, .step = activity->want.step}};
}

static void fail_input(struct activity *activity, struct slice error)
{
    activity->act->mail.input.evaluated.failed = true;
    activity->act->mail.input.evaluated.error = error;
}

static void report(struct activity *activity)
{
    struct engine *engine = activity->engine;

    rendering_ends(engine);
    activity_report(activity);
    engine_check_drained(engine);
}

static struct slice text_of(struct slice value, struct arena *arena)
{
    return json_type(value) == JSON_STRING ? json_string(value, arena) : json_trim(value);
}

static void on_evaluated(struct rendering *rendering)
{
    struct activity *activity = activity_of(rendering);
    const struct rendering_item *value = &rendering->items[0], *scope = &rendering->items[1];
    struct saga_input *input = &activity->act->mail.input;

    begin_input(activity);
    if (value->code != ERR_OK || (rendering->count > 1 && scope->code != ERR_OK)) {
        fail_input(activity, value->code != ERR_OK ? value->error : scope->error);
    } else if (input->evaluated.what == EVALUATE_ARGS && rendering->count == 1) {
        input->evaluated.skipped = true;
    } else {
        input->evaluated.value = value->value;
        input->evaluated.has_effect = activity->act->tool != NULL;
        input->evaluated.effect = activity->effect;
        if (rendering->count > 1 && scope->value.ptr) {
            input->evaluated.scope = text_of(scope->value, &activity->arena);
        }
    }
    report(activity);
}

/* --- the keys of locks --- */

/* Writes an array of texts. A value that is no text stays as it is, and its reader refuses it. */
static void on_locks(struct rendering *rendering)
{
    struct activity *activity = activity_of(rendering);
    struct buffer text;
    struct json_writer w;

    begin_input(activity);
    buffer_init(&text, activity->engine->options.payload_bytes_max);
    json_writer_init(&w, &text);
    json_array_begin(&w, NULL);
    for (size_t i = 0; i < rendering->count; i++) {
        const struct rendering_item *key = &rendering->many[i];

        if (key->code != ERR_OK) {
            fail_input(activity, key->error);
            break;
        }
        if (json_type(key->value) == JSON_NUMBER) {
            json_write_slice(&w, NULL, json_trim(key->value));
        } else {
            json_write_raw(&w, NULL, key->value);
        }
    }
    json_array_end(&w);
    if (text.overflow) {
        fail_input(activity, SLICE("the keys of its locks are larger than allowed"));
    } else if (!activity->act->mail.input.evaluated.failed) {
        activity->act->mail.input.evaluated.value = arena_slice(&activity->arena, buffer_slice(&text));
    }
    buffer_fini(&text);
    report(activity);
}

static void evaluate_locks(struct activity *activity, const struct definition *definition)
{
    struct rendering *rendering = &activity->act->rendering;

    rendering->count = definition->lock_count;
    rendering->many = arena_array(&activity->arena, rendering->count + 1, sizeof(*rendering->many));
    for (size_t i = 0; i < rendering->count; i++) {
        rendering->many[i].template = &definition->locks[i].key;
    }
    rendering->done = on_locks;
}

/* --- the output of a saga, and who follows it --- */

/* Writes one element for each follower; null for one that cannot be started, with the reason as the result. */
static struct slice write_followers(struct activity *activity, size_t count, struct buffer *out)
{
    struct slice error = SLICE_NONE;
    const struct rendering_item *item = &activity->act->rendering.many[1];
    struct json_writer w;

    json_writer_init(&w, out);
    json_array_begin(&w, NULL);
    for (size_t i = 0; i < count; i++, item += 2) {
        if (item[0].code != ERR_OK || item[1].code != ERR_OK) {
            error = item[0].code != ERR_OK ? item[0].error : item[1].error;
            json_write_null(&w, NULL);
            continue;
        }
        json_object_begin(&w, NULL);
        json_write_raw(&w, "input", item[0].value.ptr ? item[0].value : SLICE("{}"));
        json_write_raw(&w, "business_id", item[1].value);
        json_object_end(&w);
    }
    json_array_end(&w);
    return out->overflow ? SLICE("the inputs of the sagas that follow are larger than allowed") : error;
}

static void on_output(struct rendering *rendering)
{
    struct activity *activity = activity_of(rendering);
    struct saga_input *input = &activity->act->mail.input;
    struct buffer text;

    begin_input(activity);
    if (rendering->many[0].code != ERR_OK) {
        fail_input(activity, rendering->many[0].error);
    } else {
        input->evaluated.value = rendering->many[0].value;
    }
    if (rendering->count > 1) {
        buffer_init(&text, activity->engine->options.payload_bytes_max * FOLLOWERS_MAX);
        struct slice error = write_followers(activity, (rendering->count - 1) / 2, &text);

        input->evaluated.error = input->evaluated.failed ? input->evaluated.error : error;
        input->evaluated.followers = text.overflow ? SLICE_NONE : arena_slice(&activity->arena, buffer_slice(&text));
        buffer_fini(&text);
    }
    report(activity);
}

static void evaluate_output(struct activity *activity, const struct definition *definition)
{
    struct rendering *rendering = &activity->act->rendering;

    rendering->count = 1 + 2 * (size_t)definition->follower_count;
    rendering->many = arena_array(&activity->arena, rendering->count, sizeof(*rendering->many));
    rendering->many[0].template = &definition->output;
    for (uint32_t i = 0; i < definition->follower_count; i++) {
        rendering->many[1 + 2 * i].template = &definition->followers[i].input;
        rendering->many[2 + 2 * i].template = &definition->followers[i].id;
    }
    rendering->done = on_output;
}

/* --- the arguments of an undo, where nobody knows whether there is anything to undo --- */

static void evaluate_undo(struct activity *activity, const struct saga *saga)
{
    const struct operation *forward = &saga->steps[activity->want.step].forward;
    struct rendering *rendering = &activity->act->rendering;
    char key[UUID_TEXT_BYTES];

    uuid_text(&forward->key.uuid, key);
    rendering->context.key = arena_slice(&activity->arena, slice_of(key));
    rendering->context.args = arena_slice(&activity->arena, forward->args);
    rendering->context.result = arena_slice(&activity->arena, forward->result);
    rendering->items[0].template = &saga->definition->steps[activity->want.step].compensate.with;
    rendering->count = 1;
}

void evaluation_begin(struct activity *activity)
{
    const struct saga *saga = &activity->live->saga;
    const struct definition *definition = saga->definition;
    uint32_t step = activity->want.step;

    activity_act(activity);
    struct rendering *rendering = &activity->act->rendering;

    activity->state = ACTIVITY_RENDERING;
    rendering_begins(activity->engine);
    rendering->arena = &activity->arena;
    rendering->context = activity->want.number == EVALUATE_OUTPUT
                             ? saga_inner_context(saga, step, &activity->arena)
                             : saga_expression_context(saga, step, &activity->arena);
    rendering->done = on_evaluated;
    switch ((enum evaluation)activity->want.number) {
    case EVALUATE_ARGS:
        if (definition->steps[step].when.program_count == 0) {
            evaluate_args(activity);
            return;
        }
        rendering->items[0].template = &definition->steps[step].when;
        rendering->count = 1;
        rendering->done = on_when;
        break;
    case EVALUATE_OUTPUT:
        if (step == STEP_NONE) {
            evaluate_output(activity, definition);
        } else {
            rendering->items[0].template = saga_output_template(saga, step);
            rendering->count = 1;
        }
        break;
    case EVALUATE_LOCKS:
        evaluate_locks(activity, definition);
        break;
    case EVALUATE_UNDO:
        evaluate_undo(activity, saga);
        break;
    }
    if (rendering_start(activity->engine->loop, rendering)) {
        rendering->done(rendering);
    }
}
