/* See expect.h. */
#include "tools/sagactl/scenario/expect.h"

#include "base/canon.h"
#include "base/json.h"
#include "core/language/place.h"

#define DIFFERENCES_MAX 32

static void differ(struct differences *out, struct slice pointer, struct slice expected, struct slice found)
{
    if (out->count < DIFFERENCES_MAX) {
        out->items[out->count++] = (struct difference){pointer, expected, found};
    }
}

static struct slice place(struct stage *stage, const char *member)
{
    return place_join(&stage->arena, stage->scenario->expect.pointer, slice_of(member));
}

static bool same_json(struct stage *stage, struct slice a, struct slice b)
{
    struct digest left = canon_digest(a, &stage->arena), right = canon_digest(b, &stage->arena);

    return digest_equal(&left, &right);
}

/* --- calls --- */

static struct slice call_text(struct stage *stage, const struct stage_call *call)
{
    return arena_printf(&stage->arena, "%s%.*s", call->direction == DIRECTION_UNDO ? "undo " : "", SLICE_ARG(call->id));
}

static struct slice expected_text(struct stage *stage, const struct expected_call *call)
{
    return arena_printf(&stage->arena, "%s%.*s", call->direction == DIRECTION_UNDO ? "undo " : "",
                        SLICE_ARG(call->step));
}

static void compare_call(struct stage *stage, const struct expected_call *expected, const struct stage_call *call,
                         struct differences *out)
{
    struct arena *arena = &stage->arena;
    struct slice key = stage_key(stage, &call->key);

    if (expected->direction != call->direction || !slice_equal(expected->step, call->id)) {
        differ(out, expected->pointer, expected_text(stage, expected), call_text(stage, call));
        return;
    }
    if (expected->tool.ptr && !slice_equal(expected->tool, call->tool)) {
        differ(out, place_join(arena, expected->pointer, SLICE("tool")), expected->tool, call->tool);
    }
    if (expected->scope.ptr && !slice_equal(expected->scope, call->scope)) {
        differ(out, place_join(arena, expected->pointer, SLICE("scope")), expected->scope,
               call->scope.len ? call->scope : SLICE("none"));
    }
    if (expected->args.ptr && !same_json(stage, expected->args, call->args)) {
        differ(out, place_join(arena, expected->pointer, SLICE("args")), json_trim(expected->args), call->args);
    }
    if (expected->key.ptr && !slice_equal(expected->key, key)) {
        differ(out, place_join(arena, expected->pointer, SLICE("key")), expected->key, key);
    }
}

static struct slice all_calls(struct stage *stage)
{
    struct slice text = SLICE("");

    for (size_t i = 0; i < stage->call_count; i++) {
        text = arena_printf(&stage->arena, "%.*s%s%.*s", SLICE_ARG(text), i ? ", " : "",
                            SLICE_ARG(call_text(stage, &stage->calls[i])));
    }
    return stage->call_count ? text : SLICE("none");
}

static void compare_calls(struct stage *stage, struct differences *out)
{
    const struct expectation *expect = &stage->scenario->expect;

    if (!expect->has_calls) {
        return;
    }
    if (expect->call_count != stage->call_count) {
        differ(out, place(stage, "calls"), arena_printf(&stage->arena, "%zu calls", expect->call_count),
               arena_printf(&stage->arena, "%zu: %.*s", stage->call_count, SLICE_ARG(all_calls(stage))));
    }
    for (size_t i = 0; i < expect->call_count && i < stage->call_count; i++) {
        compare_call(stage, &expect->calls[i], &stage->calls[i], out);
    }
}

/* --- steps --- */

static struct slice list_text(struct stage *stage, const struct slice *items, size_t count)
{
    struct slice text = SLICE("");

    for (size_t i = 0; i < count; i++) {
        text = arena_printf(&stage->arena, "%.*s%s%.*s", SLICE_ARG(text), i ? ", " : "", SLICE_ARG(items[i]));
    }
    return count ? text : SLICE("none");
}

static void compare_list(struct stage *stage, const char *member, const struct slice *expected, size_t expected_count,
                         const struct slice *found, size_t found_count, struct differences *out)
{
    bool same = expected_count == found_count;

    for (size_t i = 0; same && i < found_count; i++) {
        same = slice_equal(expected[i], found[i]);
    }
    if (!same) {
        differ(out, place(stage, member), list_text(stage, expected, expected_count),
               list_text(stage, found, found_count));
    }
}

/* Steps whose undo has completed, in the order of the plan. What a person undid by hand is none of them. */
static size_t undone_of(struct stage *stage, struct slice *out)
{
    const struct saga *saga = &stage->saga;
    size_t count = 0;

    for (size_t i = 0; i < stage->call_count; i++) {
        const struct stage_call *call = &stage->calls[i];
        bool again = false;

        for (size_t k = 0; k < i; k++) {
            again = again || (stage->calls[k].step == call->step && stage->calls[k].direction == DIRECTION_UNDO);
        }
        if (call->direction == DIRECTION_UNDO && !again && saga->steps[call->step].plan == PLAN_DONE &&
            !saga->steps[call->step].undone_by.ptr) {
            out[count++] = call->id;
        }
    }
    return count;
}

/* Steps whose effect is there, or may be, although the saga was not completed. */
static size_t standing_of(struct stage *stage, struct slice *out)
{
    const struct saga *saga = &stage->saga;
    size_t count = 0;

    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        const struct step_definition *step = &saga->definition->steps[i];
        enum took_effect took = saga->steps[i].forward.took_effect;
        bool reads = step->tool && saga->steps[i].forward.effect == EFFECT_READ;

        if (!step_is_group(step) && step->kind == STEP_CALL && !reads &&
            (took == TOOK_EFFECT_YES || took == TOOK_EFFECT_MAYBE) && saga->steps[i].plan != PLAN_DONE) {
            out[count++] = step->id;
        }
    }
    return count;
}

static void compare_steps(struct stage *stage, struct differences *out)
{
    const struct expectation *expect = &stage->scenario->expect;
    struct slice *steps =
        arena_array(&stage->arena, stage->call_count + stage->saga.definition->step_count + 1, sizeof(*steps));

    if (expect->has_undone) {
        compare_list(stage, "undone", expect->undone, expect->undone_count, steps, undone_of(stage, steps), out);
    }
    if (expect->has_standing) {
        compare_list(stage, "standing", expect->standing, expect->standing_count, steps, standing_of(stage, steps),
                     out);
    }
    for (size_t i = 0; i < expect->step_count; i++) {
        uint32_t step = stage_find_step(stage, expect->steps[i].step);
        struct slice pointer = place_join(&stage->arena, place(stage, "steps"), expect->steps[i].step);
        struct slice status = step == STEP_NONE ? SLICE("there is no such step")
                                                : slice_of(step_status_name(saga_step_status(&stage->saga, step)));

        if (!slice_equal(status, expect->steps[i].status)) {
            differ(out, pointer, expect->steps[i].status, status);
        }
    }
}

/* --- the end --- */

static struct slice why(struct stage *stage)
{
    const struct saga *saga = &stage->saga;

    if (!saga->failing_reason.ptr) {
        return SLICE("");
    }
    return arena_printf(&stage->arena, " (%.*s%s%.*s)", SLICE_ARG(saga->failing_reason),
                        saga->failing_detail.len ? ": " : "", SLICE_ARG(saga->failing_detail));
}

static void compare_end(struct stage *stage, struct differences *out)
{
    const struct expectation *expect = &stage->scenario->expect;
    const struct escalation *open = &stage->saga.escalation;
    struct slice status = slice_of(saga_status_name(saga_status(&stage->saga)));
    struct slice step = open->number && open->step != STEP_NONE ? stage->saga.definition->steps[open->step].id
                                                                : SLICE("the saga itself");

    if (!slice_equal(status, expect->status)) {
        differ(out, place(stage, "status"), expect->status,
               arena_printf(&stage->arena, "%.*s%.*s", SLICE_ARG(status), SLICE_ARG(why(stage))));
    }
    if (expect->output.ptr && (!stage->saga.output.ptr || !same_json(stage, expect->output, stage->saga.output))) {
        differ(out, place(stage, "output"), json_trim(expect->output),
               stage->saga.output.ptr ? stage->saga.output : SLICE("none"));
    }
    if (!expect->has_escalation) {
        return;
    }
    if (!open->number) {
        differ(out, place(stage, "escalation"), SLICE("an open case"), SLICE("none"));
        return;
    }
    if (expect->escalation_step.ptr && !slice_equal(expect->escalation_step, step)) {
        differ(out, place(stage, "escalation"), expect->escalation_step, step);
    }
    if (expect->escalation_reason.ptr && !slice_equal(expect->escalation_reason, open->reason)) {
        differ(out, place(stage, "escalation"), expect->escalation_reason, open->reason);
    }
}

void expect_compare(struct stage *stage, struct differences *out)
{
    *out = (struct differences){arena_array(&stage->arena, DIFFERENCES_MAX, sizeof(*out->items)), 0};
    if (stage->failure.ptr) {
        differ(out, stage->scenario->pointer, SLICE_NONE, stage->failure);
        return;
    }
    compare_end(stage, out);
    compare_calls(stage, out);
    compare_steps(stage, out);
}
