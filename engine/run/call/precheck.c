/*
 * Reads before a call: the tool's precheck (is the wanted state there already, or does it forbid the call?), and the
 * read that tries a half-open breaker: the status of an operation that is not safe to repeat, or the test of its tool.
 * Sent by dispatch.c like a probe; judged here.
 *
 * In doubt a precheck was not asked: the call is tried again later, like one that never left.
 */
#include "base/json.h"
#include "run/call/activity.h"
#include "run/call/limiter.h"
#include "run/leaving.h"

static void finish(struct activity *activity)
{
    rendering_ends(activity->engine);
}

static bool is_over(struct activity *activity)
{
    if (activity->live && !activity->cancelled) {
        return false;
    }
    if (activity->live) {
        limiter_admission(activity, ADMISSION_UNASKED, SLICE("cancelled"), SLICE("the call was not wanted any more"), 0,
                          SLICE_NONE);
    } else {
        activity_end(activity); /* the next owner asks again, for the same attempt */
    }
    return true;
}

void precheck_unasked(struct activity *activity, struct slice error, struct slice detail)
{
    if (is_over(activity)) {
        return;
    }
    if (activity->inquiry != INQUIRY_PRECHECK) {
        limiter_status_read(activity);
    } else {
        limiter_admission(activity, ADMISSION_UNASKED, error, detail, activity->act->outcome.retry_after_ms,
                          SLICE_NONE);
    }
}

static void unclear(struct activity *activity, struct slice why)
{
    precheck_unasked(activity, SLICE("precheck"),
                     arena_printf(activity->act->arena, "the precheck gave no clear answer: %.*s", SLICE_ARG(why)));
}

static void unclear_outcome(struct activity *activity)
{
    const struct outcome *outcome = &activity->act->outcome;

    if (outcome_is_egress_denied(outcome)) { /* a person is asked, as for a call */
        precheck_unasked(activity, outcome->error, outcome->detail);
        return;
    }
    unclear(activity, outcome->detail.ptr ? outcome->detail : outcome->error);
}

/* --- its result, where the wanted state holds already --- */

static void done_before(struct activity *activity, struct slice result)
{
    if (!is_over(activity)) {
        limiter_admission(activity, ADMISSION_DONE, SLICE_NONE, SLICE_NONE, 0, result);
    }
}

static void on_result(struct rendering *rendering)
{
    struct activity *activity = activity_of(rendering);
    struct engine *engine = activity->engine;
    struct rendering_item *item = &rendering->items[0];

    finish(activity);
    if (item->code != ERR_OK) {
        unclear(activity, item->error);
    } else if (item->value.len > engine->options.payload_bytes_max) {
        unclear(activity, SLICE("its result is larger than allowed"));
    } else {
        done_before(activity, item->value);
    }
    engine_check_drained(engine);
}

static void render_result(struct activity *activity)
{
    struct rendering *rendering = &activity->act->rendering;

    if (!template_is_set(&activity->act->tool->precheck.result)) {
        done_before(activity, SLICE("null"));
        return;
    }
    rendering_begins(activity->engine);
    *rendering = (struct rendering){
        .count = 1, .context = activity->act->context, .arena = activity->act->arena, .done = on_result};
    rendering->items[0].template = &activity->act->tool->precheck.result;
    rendering->context.response = activity->act->response;
    if (rendering_start(activity->engine->loop, rendering)) {
        on_result(rendering);
    }
}

/* --- what the answer means --- */

static bool is_http_absence(struct slice error)
{
    return slice_is(error, "http-404") || slice_is(error, "http-410");
}

static void on_conditions(struct rendering *rendering)
{
    struct activity *activity = activity_of(rendering);
    struct engine *engine = activity->engine;
    struct rendering_item *done = &rendering->items[0], *blocked = &rendering->items[1];

    finish(activity);
    if (is_over(activity)) {
        ;
    } else if (done->code != ERR_OK) {
        unclear(activity, done->error);
    } else if (expression_true(done->value)) {
        render_result(activity);
    } else if (blocked->code != ERR_OK) {
        unclear(activity, blocked->error);
    } else if (blocked->value.ptr && expression_true(blocked->value)) {
        struct slice reason = json_type(blocked->value) == JSON_STRING
                                  ? json_string(blocked->value, activity->act->arena)
                                  : json_trim(blocked->value);

        limiter_admission(activity, ADMISSION_BLOCKED, SLICE("blocked"), reason, 0, SLICE_NONE);
    } else if (activity->act->outcome.kind != OUTCOME_COMPLETED && !is_http_absence(activity->act->outcome.error)) {
        unclear_outcome(activity);
    } else {
        limiter_let_through(activity);
    }
    engine_check_drained(engine);
}

void precheck_settled(struct activity *activity)
{
    struct rendering *rendering = &activity->act->rendering;

    if (is_over(activity)) {
        return;
    }
    if (activity->inquiry != INQUIRY_PRECHECK) {
        limiter_status_read(activity);
        return;
    }
    if (!activity->act->response.ptr || activity->act->outcome.kind == OUTCOME_UNKNOWN ||
        activity->act->outcome.kind == OUTCOME_RETRY) {
        unclear_outcome(activity);
        return;
    }
    activity->state = ACTIVITY_JUDGING;
    rendering_begins(activity->engine);
    *rendering = (struct rendering){
        .count = 2, .context = activity->act->context, .arena = activity->act->arena, .done = on_conditions};
    rendering->items[0].template = &activity->act->tool->precheck.done;
    rendering->items[1].template = &activity->act->tool->precheck.blocked;
    rendering->context.response = activity->act->response;
    if (rendering_start(activity->engine->loop, rendering)) {
        on_conditions(rendering);
    }
}
