/*
 * See strike.h. One strike is one conversation: `stage` says what it waits for, strike_advance() takes that and goes
 * on.
 *
 *     SETTINGS -> ANSWER -> MEANING -> RESULT -> OVER
 */
#include "tools/sagactl/hammer/strike.h"

#include <string.h>

#include "base/json.h"
#include "run/call/call_terms.h"

static void strike_advance(struct strike *strike);

static void on_rendered(struct rendering *rendering)
{
    strike_advance(rendering->context_of_owner);
}

static bool render(struct strike *strike, size_t count)
{
    struct rendering *rendering = &strike->rendering;

    rendering->count = count;
    rendering->context = (struct expression_context){.args = strike->args,
                                                     .key = strike->key,
                                                     .attempt = strike->attempt,
                                                     .response = strike->response,
                                                     .saga_id = strike->key,
                                                     .saga_name = SLICE("hammer")};
    rendering->arena = strike->arena;
    rendering->namespace = strike->target->namespace;
    rendering->secrets = strike->stage == STRIKE_SETTINGS ? &strike->target->secrets : NULL;
    rendering->done = on_rendered;
    rendering->context_of_owner = strike;
    return rendering_start(strike->target->loop, rendering);
}

static bool render_one(struct strike *strike, const struct template *template)
{
    strike->rendering.items[0].template = template;
    return render(strike, 1);
}

static void on_cut(struct timer *timer)
{
    struct strike *strike = container_of(timer, struct strike, cut);

    strike->call->adapter->cancel(strike->call);
}

static bool may_leave(const struct call *call)
{
    struct strike *strike = call->owner;

    if (strike->cut_ms != STRIKE_WHOLE && call->adapter->cancel && !timer_running(&strike->cut)) {
        timer_start(strike->target->loop, &strike->cut, strike->cut_ms, on_cut);
    }
    return true;
}

static void on_settled(struct call *call)
{
    strike_advance(call->owner);
}

static void refuse(struct strike *strike, const char *error, struct slice detail)
{
    strike->outcome =
        (struct outcome){.kind = OUTCOME_FAILED, .unsent = true, .error = slice_of(error), .detail = detail};
    strike->stage = STRIKE_OVER;
}

/* Returns false when nothing is sent; the outcome then says why. */
static bool send(struct strike *strike)
{
    const struct tool *tool = strike->tool;
    const struct rendering_item *settings = &strike->rendering.items[0];
    struct slice name = strike->is_probe ? tool->probe.adapter : tool->adapter, received;
    const struct adapter *adapter = adapter_find(name);
    const char *fault = NULL;
    struct call *call;

    CHECK(adapter);
    if (settings->code != ERR_OK) {
        refuse(strike, "settings",
               arena_printf(strike->arena, "the tool's settings: %.*s", SLICE_ARG(settings->error)));
        return false;
    }
    received = receiver_put(&strike->target->receiver, name, settings->value, strike->arena, &fault);
    if (!received.ptr) {
        refuse(strike, "settings", slice_of(fault));
        return false;
    }
    call = arena_alloc(strike->arena, adapter->call_size);
    call->adapter = adapter;
    call->host = &strike->target->host;
    call->arena = strike->arena;
    call->owner = strike;
    call->settings = received;
    call->args = strike->args;
    call->key = strike->key;
    call->undoes = strike->undoes;
    call_terms_fill(call, tool, strike->effect, strike->is_probe);
    call->timeout_ms = strike->is_probe ? tool->probe.timeout_ms : tool->timeout_ms;
    call->attempt = strike->attempt;
    call->may_leave = may_leave;
    call->settled = on_settled;
    strike->call = call;
    strike->stage = STRIKE_ANSWER;
    strike->target->sent += !strike->is_probe;
    adapter->begin(call);
    return true;
}

static void take_result(struct strike *strike)
{
    const struct rendering_item *item = &strike->rendering.items[0];

    if (item->code != ERR_OK) {
        strike->outcome.result = SLICE_NONE;
        strike->outcome.detail = arena_printf(strike->arena, "the result: %.*s", SLICE_ARG(item->error));
    } else if (item->value.ptr) {
        strike->outcome.result = item->value;
    }
}

static void strike_end(struct strike *strike)
{
    struct target *target = strike->target;

    strike->ended_ms = loop_boot_ms_now();
    CHECK(target->pending > 0);
    if (--target->pending == 0) {
        loop_stop(target->loop);
    }
}

static void strike_advance(struct strike *strike)
{
    for (bool is_here = true; is_here;) {
        switch (strike->stage) {
        case STRIKE_SETTINGS:
            if (send(strike)) {
                return;
            }
            break;
        case STRIKE_ANSWER:
            timer_stop(strike->target->loop, &strike->cut);
            strike->outcome = strike->call->outcome;
            strike->response = strike->call->response;
            if (!strike->response.ptr) {
                strike->stage = STRIKE_OVER;
                break;
            }
            strike->stage = STRIKE_MEANING;
            is_here = render(strike, call_terms_conditions(strike->tool, strike->is_probe, strike->rendering.items));
            break;
        case STRIKE_MEANING:
            call_terms_judge(strike->tool, strike->is_probe, strike->rendering.items, strike->arena, &strike->outcome);
            if (strike->outcome.kind != OUTCOME_COMPLETED) {
                strike->stage = STRIKE_OVER;
                break;
            }
            strike->stage = STRIKE_RESULT;
            is_here = render_one(strike, strike->is_probe ? &strike->tool->probe.result : &strike->tool->result);
            break;
        case STRIKE_RESULT:
            take_result(strike);
            strike->stage = STRIKE_OVER;
            break;
        case STRIKE_OVER:
            strike_end(strike);
            return;
        }
    }
}

struct volley { /* all strikes of one strike_all(), begun from the loop: it must run before the last of them ends */
    struct deferred begin;
    struct strike *strikes;
    size_t count;
};

static void strike_begin(struct deferred *deferred)
{
    struct volley *volley = container_of(deferred, struct volley, begin);

    for (size_t i = 0; i < volley->count; i++) {
        struct strike *strike = &volley->strikes[i];

        if (render_one(strike, strike->is_probe ? &strike->tool->probe.settings : &strike->tool->settings)) {
            strike_advance(strike);
        }
    }
}

void strike_all(struct target *target, struct strike *strikes, size_t count, struct arena *arena)
{
    struct volley volley = {.strikes = strikes, .count = count};

    CHECK(count > 0 && target->pending == 0);
    for (size_t i = 0; i < count; i++) {
        strikes[i].target = target;
        strikes[i].arena = arena;
        strikes[i].stage = STRIKE_SETTINGS;
        strikes[i].response = SLICE_NONE;
        strikes[i].began_ms = loop_boot_ms_now();
    }
    target->pending = count;
    loop_defer(target->loop, &volley.begin, strike_begin);
    while (target->pending > 0) {
        loop_run(target->loop);
    }
}

int strike_status(const struct strike *strike)
{
    int64_t status = 0;

    return strike->response.ptr && json_i64(json_member(strike->response, "status"), &status) ? (int)status : 0;
}

struct pause {
    struct timer timer;
    struct loop *loop;
    bool is_over;
};

static void on_pause_over(struct timer *timer)
{
    struct pause *pause = container_of(timer, struct pause, timer);

    pause->is_over = true;
    loop_stop(pause->loop);
}

void target_wait(struct target *target, int64_t ms)
{
    struct pause pause = {.loop = target->loop};

    if (ms <= 0) {
        return;
    }
    timer_start(target->loop, &pause.timer, ms, on_pause_over);
    while (!pause.is_over) {
        loop_run(target->loop);
    }
}
