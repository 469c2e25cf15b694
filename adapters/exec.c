/*
 * A tool that is a program: an argv and never a shell, arguments as JSON on standard input, the result as JSON on
 * standard output. The exit codes that promise "nothing took effect" are those of sysexits.h.
 */
#include <stdlib.h>
#include <string.h>

#include "adapters/adapters.h"
#include "adapters/answer.h"
#include "adapters/settings.h"
#include "base/json.h"
#include "io/process.h"

/* What a program gets of our own environment: enough to run, none of our secrets. */
static const char *const inherited[] = {"PATH", "HOME", "LANG"};

struct exec_call {
    struct call call;
    struct process_run run;
    struct deferred refuse;
};

static bool name_is_variable(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!(c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (i > 0 && c >= '0' && c <= '9'))) {
            return false;
        }
    }
    return name.len > 0;
}

static void check_variable(struct slice name, struct slice pointer, struct faults *faults)
{
    if (!name_is_variable(name)) {
        faults_add(faults, pointer, "\"%.*s\" cannot be the name of an environment variable", SLICE_ARG(name));
    }
}

static void check_argv(struct slice value, struct slice pointer, struct faults *faults)
{
    struct json_walk walk = json_walk(value);
    struct slice element;
    int i = 0;

    if (json_count(value) == 0) {
        faults_add(faults, pointer, "\"argv\" is empty; its first element names the program");
    }
    for (; json_next_element(&walk, &element); i++) {
        struct slice place = json_pointer_join(faults->arena, pointer, arena_printf(faults->arena, "%d", i));

        if (json_type(element) != JSON_STRING) {
            faults_add(faults, place, "Found %s; an argument is a string", json_type_name(json_type(element)));
        } else if (i == 0 && json_string_is(element, "")) {
            faults_add(faults, place, "The name of the program is empty");
        }
    }
}

static void check_env(struct slice value, struct slice pointer, struct faults *faults)
{
    settings_check_scalars(value, pointer, faults, check_variable);
}

static const struct setting settings_table[] = {
    {"argv", BIT(JSON_ARRAY), true, check_argv},
    {"env", BIT(JSON_OBJECT), false, check_env},
    {"cwd", BIT(JSON_STRING), false, NULL},
};

static void exec_check(struct slice settings, struct slice pointer, enum key_place place, struct faults *faults)
{
    (void)settings_check(settings, pointer, settings_table, COUNT_OF(settings_table), faults); /* there is nothing to check behind it */
    if (place != KEY_PLACE_DEFAULT && place != KEY_PLACE_ENV) {
        faults_add(faults, pointer, "A program gets its key in the environment: {\"env\": NAME}");
    }
}

/* --- the answer ---------------------------------------------------------------------------------------------- */

static enum outcome_kind exit_outcome(int code)
{
    if (code == 0) {
        return OUTCOME_COMPLETED;
    }
    if (code == 75) {
        return OUTCOME_RETRY; /* EX_TEMPFAIL */
    }
    return (code >= 64 && code <= 69) || (code >= 76 && code <= 78) ? OUTCOME_FAILED : OUTCOME_UNKNOWN;
}

static struct slice response_json(const struct process_run *run, struct slice output, struct arena *arena)
{
    struct buffer text;
    struct json_writer w;
    struct slice result;

    buffer_init(&text, SIZE_MAX / 2); /* its parts are bounded already */
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    if (run->signal_number) {
        json_write_null(&w, "exit");
        json_write_i64(&w, "signal", run->signal_number);
    } else {
        json_write_i64(&w, "exit", run->exit_code);
        json_write_null(&w, "signal");
    }
    json_write_raw(&w, "stdout", output);
    json_write_slice(&w, "stderr", answer_is_text(run->stderr_text) ? run->stderr_text : SLICE("(not text)"));
    json_object_end(&w);
    result = arena_slice(arena, buffer_slice(&text));
    buffer_fini(&text);
    return result;
}

static void answer_take(struct exec_call *e)
{
    struct call *call = &e->call;
    const struct process_run *run = &e->run;
    enum outcome_kind kind = run->signal_number ? OUTCOME_UNKNOWN : exit_outcome(run->exit_code);
    struct slice output;
    enum answer_kind form = answer_json(run->stdout_text, call->host->response_bytes_max, call->arena, &output);

    if (kind == OUTCOME_COMPLETED && form == ANSWER_BINARY) {
        answer_unknown(call, "unreadable", "The program ended well, but what it wrote is neither JSON nor text.");
        return;
    }
    call->response = response_json(run, output, call->arena);
    call->outcome = (struct outcome){.kind = kind};
    if (kind == OUTCOME_COMPLETED) {
        call->outcome.result = output;
    } else if (run->signal_number) {
        call->outcome.error = arena_printf(call->arena, "signal-%d", run->signal_number);
        call->outcome.detail = arena_printf(call->arena, "The program was ended by signal %d.", run->signal_number);
    } else {
        call->outcome.error = arena_printf(call->arena, "exit-%d", run->exit_code);
        call->outcome.detail = arena_printf(call->arena, "The program ended with exit code %d.", run->exit_code);
    }
}

static void on_done(struct process_run *run)
{
    struct exec_call *e = container_of(run, struct exec_call, run);

    if (!run->started) {
        answer_unsent(&e->call, true, "not-started", run->error);
    } else if (run->timed_out) {
        answer_unknown(&e->call, "timeout", "The program was ended because its time was over.");
    } else if (run->too_large) {
        answer_unknown(&e->call, "too-large", "The program was ended because it wrote more than allowed.");
    } else if (run->cancelled) {
        answer_unknown(&e->call, "cancelled", "The program was ended because its answer is not wanted any more.");
    } else {
        answer_take(e);
    }
    call_settle(&e->call);
}

/* --- the start ----------------------------------------------------------------------------------------------- */

static void on_refuse(struct deferred *deferred)
{
    call_settle(&container_of(deferred, struct exec_call, refuse)->call);
}

/* Each of these gives NULL, or a sentence on what the rendered settings lack. */
static const char *argv_take(struct exec_call *e)
{
    struct call *call = &e->call;
    struct slice given = json_member(call->settings, "argv");
    struct json_walk walk = json_walk(given);
    struct slice element;
    size_t count = 0;
    char **argv;

    if (json_type(given) != JSON_ARRAY || json_count(given) == 0) {
        return "The rendered \"argv\" is no array with at least the name of a program.";
    }
    argv = arena_array(call->arena, json_count(given) + 1, sizeof(*argv));
    while (json_next_element(&walk, &element)) {
        struct slice text = setting_text(element, call->arena);

        if (!text.ptr || (count == 0 && text.len == 0)) {
            return "An element of the rendered \"argv\" is null, an array or an object, or the name of the program is empty.";
        }
        argv[count++] = arena_text(call->arena, text);
    }
    e->run.argv = argv;
    return NULL;
}

/* Later wins, as for a reader of the definition: ours, then `env`, then the key, each name once. */
static void env_put(char **env, size_t *count, struct slice name, struct slice value, struct arena *arena)
{
    char *entry = arena_text(arena, arena_printf(arena, "%.*s=%.*s", SLICE_ARG(name), SLICE_ARG(value)));

    for (size_t i = 0; i < *count; i++) {
        if (strncmp(env[i], entry, name.len + 1) == 0) {
            env[i] = entry;
            return;
        }
    }
    env[(*count)++] = entry;
}

static const char *env_take(struct exec_call *e)
{
    struct call *call = &e->call;
    struct slice given = json_member(call->settings, "env");
    struct json_walk walk = json_walk(given);
    struct slice name, value;
    size_t count = 0;
    char **env;

    if (given.ptr && json_type(given) != JSON_OBJECT && json_type(given) != JSON_NULL) {
        return "The rendered \"env\" is no object.";
    }
    env = arena_array(call->arena, COUNT_OF(inherited) + json_count(given) + 2, sizeof(*env));
    for (size_t i = 0; i < COUNT_OF(inherited); i++) {
        const char *ours = getenv(inherited[i]);

        if (ours) {
            env_put(env, &count, slice_of(inherited[i]), slice_of(ours), call->arena);
        }
    }
    while (json_type(given) == JSON_OBJECT && json_next_member(&walk, &name, &value)) {
        struct slice text = setting_text(value, call->arena);

        if (json_type(value) == JSON_NULL) {
            continue;
        }
        if (!text.ptr || !name_is_variable(name)) {
            return "A rendered variable of \"env\" is an array or an object, or its name cannot be one.";
        }
        env_put(env, &count, name, text, call->arena);
    }
    if (call->send_key) {
        env_put(env, &count, call->key_place == KEY_PLACE_ENV ? call->key_name : SLICE("IDEMPOTENCY_KEY"), call->key, call->arena);
    }
    e->run.env = env;
    return NULL;
}

static const char *cwd_take(struct exec_call *e)
{
    struct slice given = json_member(e->call.settings, "cwd");

    if (!given.ptr || json_type(given) == JSON_NULL) {
        return NULL;
    }
    if (json_type(given) != JSON_STRING) {
        return "The rendered \"cwd\" is no text.";
    }
    e->run.cwd = arena_text(e->call.arena, json_string(given, e->call.arena));
    return NULL;
}

static void exec_begin(struct call *call)
{
    struct exec_call *e = container_of(call, struct exec_call, call);
    const char *fault = argv_take(e);

    fault = fault ? fault : env_take(e);
    fault = fault ? fault : cwd_take(e);
    if (fault) {
        answer_unsent(call, false, "bad-settings", fault);
        loop_defer(call->host->loop, &e->refuse, on_refuse);
        return;
    }
    e->run.input = call->args;
    e->run.timeout_ms = call->timeout_ms;
    e->run.output_bytes_max = call->host->response_bytes_max;
    e->run.arena = call->arena;
    e->run.done = on_done;
    process_start(call->host->loop, &e->run);
}

static void exec_cancel(struct call *call)
{
    process_cancel(&container_of(call, struct exec_call, call)->run);
}

const struct adapter adapter_exec = {
    .name = "exec",
    .call_size = sizeof(struct exec_call),
    .check = exec_check,
    .begin = exec_begin,
    .cancel = exec_cancel,
};
