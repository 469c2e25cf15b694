/*
 * Carries out what a saga wants: calls, probes, timers, evaluations, locks. After each turn the wants are compared with
 * the activities under way. Both are sorted alike, so the comparison is one merge that starts the missing and cancels
 * the surplus.
 */
#include "run/call/activity.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "run/call/call_queue.h"
#include "run/call/call_room.h"
#include "run/call/holds.h"
#include "run/call/limiter.h"
#include "run/exchange/exchange.h"
#include "run/query/health.h"
#include "run/saga/forgotten.h"
#include "run/saga/live.h"
#include "run/shard/shard.h"

#define ACTIVITY_BLOCK_BYTES 2048 /* the block from its act on; before that it needs less: */
#define ACTIVITY_FIRST_BYTES (sizeof(struct activity) + 32)
#define TIMER_MS_MAX 60000 /* the clock is read again after this time, as in due.c, because it may be set forward */

struct activities {
    struct list detached; /* calls under way whose saga left memory */
    uint32_t renderings;  /* renderings for wants, and of the answers of calls, which are not in the log yet */
};

struct activities *activities_new(void)
{
    struct activities *activities = memory_alloc(sizeof(*activities));

    list_init(&activities->detached);
    return activities;
}

void activities_free(struct activities *activities)
{
    free(activities);
}

void rendering_begins(struct engine *engine)
{
    engine->call_room->activities->renderings++;
}

void rendering_ends(struct engine *engine)
{
    engine->call_room->activities->renderings--;
}

uint32_t renderings_under_way(const struct engine *engine)
{
    return engine->call_room->activities->renderings;
}

void activity_end(struct activity *activity)
{
    struct engine *engine = activity->engine;
    struct arena arena;

    call_promise_give_back(activity);
    if (list_linked(&activity->link)) {
        list_remove(activity->live ? &activity->live->activities : &engine->call_room->activities->detached,
                    &activity->link);
    }
    call_queue_leave(activity);
    limiter_leave(activity);
    timer_stop(engine->loop, &activity->timer);
    arena = activity->arena;
    arena_fini(&arena); /* the arena holds the activity itself */
}

void activity_act(struct activity *activity)
{
    if (!activity->act) {
        activity->act = arena_alloc(&activity->arena, sizeof(*activity->act));
        activity->act->activity = activity;
    }
}

/* Hands a call that ended to the owner of its saga, as late evidence, because the saga is no longer ours. */
static void hand_over(struct activity *activity)
{
    const struct saga_input *input = &activity->act->mail.input;

    if (activity->want.type != WANT_CALL || input->type != SAGA_INPUT_SETTLED ||
        input->settled.outcome.kind == OUTCOME_UNKNOWN || engine_is_closing(activity->engine)) {
        return; /* an unknown outcome is no evidence, and a probe is made again */
    }
    struct late_outcome late = {.saga = activity->saga,
                                .namespace = activity->namespace,
                                .step = input->settled.step,
                                .attempt = input->settled.attempt,
                                .direction = input->settled.direction,
                                .outcome = input->settled.outcome,
                                .undo_args = input->settled.undo_args,
                                .undo_error = input->settled.undo_error,
                                .cost_micros = input->settled.cost_micros,
                                .cost_unknown = input->settled.cost_unknown,
                                .result_error = input->settled.result_error};

    late_send(activity->engine, &late);
}

static void on_mail_done(struct mail *mail, enum err_code code, const struct err *err)
{
    struct activity *activity = container_of(mail, struct act, mail)->activity;

    (void)err; /* refused only when the saga left memory, and then its next owner asks for the same want */
    if (code != ERR_OK && code != ERR_ENDED && !activity->live) {
        hand_over(activity); /* also when it is in doubt whether the turn was written: evidence may come twice */
    } else if (code == ERR_OK && mail->input.type == SAGA_INPUT_ADMITTED) {
        limiter_admitted(activity);
    }
    activity_end(activity);
}

void activity_report(struct activity *activity)
{
    if (!activity->live) {
        hand_over(activity);
        activity_end(activity);
        return;
    }
    activity->state = ACTIVITY_REPORTING;
    activity->act->mail.done = on_mail_done;
    live_send(activity->live, &activity->act->mail);
}

void activity_report_timer(struct activity *activity)
{
    activity_act(activity);
    activity->act->mail.input =
        (struct saga_input){.type = SAGA_INPUT_TIMER,
                            .timer = {.step = activity->want.step,
                                      .direction = activity->want.direction,
                                      .timer = activity->want.step == STEP_NONE ? (enum saga_timer)activity->want.number
                                                                                : SAGA_TIMER_DEADLINE}};
    activity_report(activity);
}

void activity_unsent(struct activity *activity, struct slice error, struct slice detail)
{
    limiter_forgo(activity);
    activity_act(activity);
    activity->act->mail.input = (struct saga_input){
        .type = SAGA_INPUT_SETTLED,
        .settled = {.step = activity->want.step,
                    .direction = activity->want.direction,
                    .attempt = activity->want.number,
                    .outcome = {.kind = OUTCOME_RETRY, .unsent = true, .error = error, .detail = detail}}};
    activity_report(activity);
}

void activity_return(struct activity *activity)
{
    activity_unsent(activity, SLICE("stopping"),
                    engine_is_draining(activity->engine)
                        ? SLICE("the engine stopped before this call was sent")
                        : SLICE("the shard went to another engine before this call was sent"));
}

void activity_return_held(struct activity *activity)
{
    activity_unsent(activity, SLICE("held"), SLICE("a person held it before this call was sent"));
}

static void timer_is_due(struct activity *activity)
{
    if (holds_keep(activity)) {
        return;
    }
    if (call_queue_holds_intent(activity)) {
        call_queue_push(activity);
    } else {
        activity_report_timer(activity);
    }
}

static void timer_on_due(struct timer *timer);

static void arm(struct activity *activity)
{
    int64_t delay = activity->want.due_ms - loop_wall_ms(activity->engine->loop);

    delay = delay < 0 ? 0 : delay > TIMER_MS_MAX ? TIMER_MS_MAX : delay;
    timer_start_by_day(activity->engine->loop, &activity->timer, delay, timer_on_due);
}

static void timer_on_due(struct timer *timer)
{
    struct activity *activity = container_of(timer, struct activity, timer);

    if (live_stops(activity->live)) {
        activity->held = true;
        return; /* the next owner goes on from here */
    }
    if (activity->want.due_ms > loop_wall_ms(activity->engine->loop)) {
        arm(activity); /* a long wait, or a wall clock that was set back; the timer never fires early */
    } else if (activity->want.type == WANT_PROBE) {
        call_queue_push(activity);
    } else if (activity->want.type == WANT_ADMIT) {
        limiter_enter(activity);
    } else {
        timer_is_due(activity);
    }
}

/* Reports a call with a durable intent whose engine is gone, or whose history is gone: its outcome is unknown. */
static void report_interrupted(struct activity *activity, bool forgotten)
{
    if (activity->live->maker_died) {
        limiter_interrupted(activity);
    }
    activity_act(activity);
    activity->act->mail.input = (struct saga_input){
        .type = SAGA_INPUT_SETTLED,
        .settled = {
            .step = activity->want.step,
            .direction = activity->want.direction,
            .attempt = activity->want.number,
            .outcome = {
                .kind = OUTCOME_UNKNOWN,
                .error = SLICE("interrupted"),
                .detail = forgotten
                              ? SLICE("this call was made, and the log lost what came of it with a part of its history")
                              : SLICE("the engine that made this call ended before the answer was logged")}}};
    activity_report(activity);
}

/* Keeps what is needed of the operation when the saga has left memory. */
static void identify(struct activity *activity)
{
    const struct saga *saga = &activity->live->saga;
    const struct step *step = &saga->steps[activity->want.step];
    const struct operation *operation = activity->want.direction == DIRECTION_UNDO ? step_undo(step) : &step->forward;

    activity->saga = saga->id;
    activity->shard = activity->live->shard->number;
    activity->namespace = arena_slice(&activity->arena, saga->namespace);
    activity->operation_key = operation->key;
    /* A wait or a group has no call, so nothing could be sent twice. */
    activity->effect = !step_calls(&saga->definition->steps[activity->want.step]) ? EFFECT_READ
                       : operation->created_ms                                    ? operation->effect
                                               : saga_tool(saga, activity->want.step, activity->want.direction)->effect;
    activity->maybe_before = operation->earlier_maybe;
}

static void activity_start(struct activity *activity, bool interrupted);

static void begin(struct live *live, const struct want *want, bool interrupted, struct list_link *before)
{
    struct arena arena;

    arena_init(&arena, ACTIVITY_BLOCK_BYTES);
    arena_reserve(&arena, ACTIVITY_FIRST_BYTES);
    struct activity *activity = arena_alloc(&arena, sizeof(*activity));

    activity->arena = arena;
    activity->engine = live->engine;
    activity->live = live;
    activity->want = *want;
    /* The activities are kept in the order of wants. */
    activity->link.next = before;
    activity->link.prev = before->prev;
    before->prev->next = &activity->link;
    before->prev = &activity->link;
    live->activities.count++;
    if (live_stops(live) && want->type != WANT_CALL) {
        activity->held = true;
        return; /* running activities end and no new one begins, because the next owner goes on from here */
    }
    activity_start(activity, interrupted);
}

void activities_resume(struct shard *shard)
{
    for (struct list_link *next = list_first(&shard->sagas); next; next = list_after(&shard->sagas, next)) {
        struct live *live = container_of(next, struct live, link);

        for (struct list_link *link = list_first(&live->activities); link;) {
            struct activity *activity = container_of(link, struct activity, link);

            link = list_after(&live->activities, link);
            if (activity->held) {
                activity->held = false;
                activity_start(activity, false);
            }
        }
        live_ready(live);
    }
}

void activities_let_go(struct live *live)
{
    for (struct list_link *link = list_first(&live->activities); link;) {
        struct activity *activity = container_of(link, struct activity, link);

        link = list_after(&live->activities, link);
        if (!activity->on_hold) {
            continue;
        }
        activity->on_hold = false;
        if (live_stops(live)) {
            activity->held = true; /* the next owner goes on from here */
        } else {
            activity_start(activity, false);
        }
    }
}

static void activity_start(struct activity *activity, bool interrupted)
{
    struct live *live = activity->live;
    const struct want *want = &activity->want;

    switch (want->type) {
    case WANT_ADMIT:
        identify(activity);
        if (want->due_ms <= loop_wall_ms(live->engine->loop)) {
            limiter_enter(activity);
        } else {
            arm(activity);
        }
        break;
    case WANT_CALL:
        identify(activity);
        bool forgotten = forgotten_call(live->engine, &activity->operation_key, want->number);

        if (interrupted || forgotten) {
            report_interrupted(activity, forgotten);
        } else if (!engine_is_draining(live->engine) && limiter_holds_undo(activity)) {
            limiter_enter(activity);
        } else {
            call_queue_push(activity);
        }
        break;
    case WANT_PROBE:
        identify(activity);
        arm(activity);
        break;
    case WANT_TIMER:
        if (want->step != STEP_NONE) {
            identify(activity);
        }
        if (want->due_ms <= loop_wall_ms(live->engine->loop)) {
            timer_is_due(activity);
        } else {
            arm(activity);
        }
        break;
    case WANT_EVALUATE:
        if (!holds_keep(activity)) {
            evaluation_begin(activity);
        }
        break;
    case WANT_LOCK:
        lock_begin(activity);
        break;
    }
}

/* Cancels an activity that is not wanted any more. A call under way is asked to settle soon; its answer is still heard,
 * as late evidence. */
static void cancel(struct activity *activity)
{
    switch (activity->state) {
    case ACTIVITY_WAITING:
        limiter_forgo(activity);
        activity_end(activity);
        break;
    case ACTIVITY_CALLING:
        dispatch_cancel(activity);
        break;
    case ACTIVITY_ASKING:
    case ACTIVITY_RENDERING:
        activity->cancelled = true;
        /* An evaluation reads the memory of the saga, which goes away with the saga. */
        if (!activity->live && activity->want.type == WANT_EVALUATE) {
            activity->act->rendering.abandoned = true;
        }
        break;
    case ACTIVITY_JUDGING:
    case ACTIVITY_REPORTING:
        break;
    }
}

void activities_reconcile(struct live *live)
{
    struct arena arena;
    struct wants wants = {0};
    bool interrupted = live->interrupted;

    live->interrupted = false;
    arena_init(&arena, 1024);
    saga_wants(&live->saga, &arena, &wants);
    struct list_link *link = live->activities.head.next;
    size_t i = 0;

    while (i < wants.count || link != &live->activities.head) {
        struct activity *activity = link == &live->activities.head ? NULL : container_of(link, struct activity, link);
        int order = !activity ? -1 : i == wants.count ? 1 : want_compare(&wants.items[i], &activity->want);

        if (order < 0) {
            begin(live, &wants.items[i++], interrupted, link);
        } else {
            link = link->next;
            if (order > 0) {
                cancel(activity);
            } else {
                if (activity->state == ACTIVITY_ASKING || activity->state == ACTIVITY_RENDERING) {
                    activity->cancelled = false; /* wanted again before the answer came, after a pause and a resume */
                }
                i++;
            }
        }
    }
    arena_fini(&arena);
    live->maker_died = false;
}

void activities_detach(struct live *live)
{
    struct list_link *link;

    while ((link = list_pop(&live->activities)) != NULL) {
        struct activity *activity = container_of(link, struct activity, link);

        activity->live = NULL;
        if (activity->state != ACTIVITY_CALLING || activity->want.type != WANT_CALL ||
            engine_is_draining(activity->engine)) {
            cancel(activity);
        } else { /* the call's answer is evidence for the new owner, so the call may take its time */
            list_push(&activity->engine->call_room->activities->detached, &activity->link);
        }
    }
}

void activities_cancel_detached(struct engine *engine)
{
    struct list_link *link;

    while ((link = list_pop(&engine->call_room->activities->detached)) != NULL) {
        struct activity *activity = container_of(link, struct activity, link);

        if (activity->state == ACTIVITY_CALLING) { /* otherwise the call is being judged and ends by itself */
            dispatch_cancel(activity);
        }
    }
}
