/*
 * A tool without a receiver: "echo" returns its arguments, "fail" fails as its settings say, "sleep" waits. It serves
 * trials of definitions, tests, and steps that only wait.
 */
#include "adapters/adapters.h"
#include "adapters/answer.h"
#include "adapters/tool_settings.h"
#include "base/instant.h"
#include "base/json.h"
#include "io/loop/loop.h"

struct builtin_call {
    struct call call;
    struct deferred deferred;
    struct timer timer;
    bool timed_out;
};

static void check_do(struct slice value, struct slice pointer, struct faults *faults)
{
    if (!json_string_is(value, "echo") && !json_string_is(value, "fail") && !json_string_is(value, "sleep")) {
        faults_add(faults, pointer, "\"do\" is %.*s; it must be \"echo\", \"fail\" or \"sleep\"", SLICE_ARG(value));
    }
}

static bool fail_outcome(struct slice value, enum outcome_kind *kind)
{
    static const struct {
        const char *name;
        enum outcome_kind kind;
    } outcomes[] = {
        {"no_effect", OUTCOME_FAILED},
        {"retry", OUTCOME_RETRY},
        {"unknown", OUTCOME_UNKNOWN},
        {"running", OUTCOME_RUNNING},
    };

    for (size_t i = 0; i < COUNT_OF(outcomes); i++) {
        if (json_string_is(value, outcomes[i].name)) {
            *kind = outcomes[i].kind;
            return true;
        }
    }
    return false;
}

static void check_outcome(struct slice value, struct slice pointer, struct faults *faults)
{
    enum outcome_kind kind;

    if (!fail_outcome(value, &kind)) {
        faults_add(faults, pointer,
                   "\"outcome\" is %.*s; it must be \"no_effect\", \"retry\", \"unknown\" or \"running\"",
                   SLICE_ARG(value));
    }
}

static void check_for(struct slice value, struct slice pointer, struct faults *faults)
{
    int64_t ms;

    if (!duration_parse(json_string(value, faults->arena), &ms)) {
        faults_add(faults, pointer, "\"for\" is %.*s; it must be a duration like \"200ms\" or \"5s\"",
                   SLICE_ARG(value));
    }
}

static const struct tool_setting settings_table[] = {
    {"do", BIT(JSON_STRING), true, check_do},
    {"outcome", BIT(JSON_STRING), false, check_outcome},
    {"for", BIT(JSON_STRING), false, check_for},
};

static void builtin_check(struct slice settings, struct slice pointer, enum key_place place, struct faults *faults)
{
    struct slice what;

    if (!settings_check(settings, pointer, settings_table, COUNT_OF(settings_table), faults)) {
        return;
    }
    what = json_member(settings, "do");
    if (!setting_is_template(what)) {
        if (json_member(settings, "outcome").ptr && !json_string_is(what, "fail")) {
            faults_add(faults, json_pointer_join(faults->arena, pointer, SLICE("outcome")),
                       "\"outcome\" goes with \"do\": \"fail\" only");
        }
        if (json_member(settings, "for").ptr && !json_string_is(what, "sleep")) {
            faults_add(faults, json_pointer_join(faults->arena, pointer, SLICE("for")),
                       "\"for\" goes with \"do\": \"sleep\" only");
        }
        if (!json_member(settings, "for").ptr && json_string_is(what, "sleep")) {
            faults_add(faults, pointer, "\"do\": \"sleep\" needs \"for\", a duration like \"200ms\"");
        }
    }
    if (place != KEY_PLACE_DEFAULT) {
        faults_add(faults, pointer, "a builtin has no receiver to give the key to: leave the place of the key out");
    }
}

static void on_settle(struct deferred *deferred)
{
    call_settle(&container_of(deferred, struct builtin_call, deferred)->call);
}

static void on_slept(struct timer *timer)
{
    struct builtin_call *b = container_of(timer, struct builtin_call, timer);

    if (b->timed_out) {
        answer_unknown(&b->call, "timeout", "It slept longer than the timeout of the tool.");
    } else {
        b->call.outcome = (struct outcome){.kind = OUTCOME_COMPLETED, .result = SLICE("null")};
        b->call.response = SLICE("null");
    }
    call_settle(&b->call);
}

static void echo_begin(struct builtin_call *b)
{
    b->call.outcome = (struct outcome){.kind = OUTCOME_COMPLETED, .result = b->call.args};
    b->call.response = b->call.args;
    loop_defer(b->call.host->loop, &b->deferred, on_settle);
}

static void fail_begin(struct builtin_call *b)
{
    struct slice outcome = json_member(b->call.settings, "outcome");
    enum outcome_kind kind = OUTCOME_FAILED;

    if (outcome.ptr && !fail_outcome(outcome, &kind)) {
        answer_unsent(&b->call, false, "bad-settings",
                      "The rendered \"outcome\" is none of no_effect, retry, unknown and running.");
    } else {
        answer_unknown(&b->call, "told-so", "The definition told this builtin to end so.");
        b->call.outcome.kind = kind;
    }
    loop_defer(b->call.host->loop, &b->deferred, on_settle);
}

static void sleep_begin(struct builtin_call *b)
{
    int64_t ms;

    if (!duration_parse(json_string(json_member(b->call.settings, "for"), b->call.arena), &ms)) {
        answer_unsent(&b->call, false, "bad-settings", "The rendered \"for\" is no duration.");
        loop_defer(b->call.host->loop, &b->deferred, on_settle);
        return;
    }
    b->timed_out = ms > b->call.timeout_ms;
    timer_start(b->call.host->loop, &b->timer, b->timed_out ? b->call.timeout_ms : ms, on_slept);
}

static void builtin_begin(struct call *call)
{
    struct builtin_call *b = container_of(call, struct builtin_call, call);
    struct slice what = json_member(call->settings, "do");

    if (json_string_is(what, "echo")) {
        echo_begin(b);
    } else if (json_string_is(what, "fail")) {
        fail_begin(b);
    } else if (json_string_is(what, "sleep")) {
        sleep_begin(b);
    } else {
        answer_unsent(call, false, "bad-settings", "The rendered \"do\" is none of echo, fail and sleep.");
        loop_defer(call->host->loop, &b->deferred, on_settle);
    }
}

static void builtin_cancel(struct call *call)
{
    struct builtin_call *b = container_of(call, struct builtin_call, call);

    if (timer_running(&b->timer)) {
        timer_stop(call->host->loop, &b->timer);
        answer_unsent(call, true, "cancelled", "The sleep was cancelled; it has no effect.");
        call->outcome.unsent = false;
        loop_defer(call->host->loop, &b->deferred, on_settle);
    }
}

const struct adapter adapter_builtin = {
    .name = "builtin",
    .call_size = sizeof(struct builtin_call),
    .check = builtin_check,
    .begin = builtin_begin,
    .cancel = builtin_cancel,
};
