/*
 * A tool that is a program. It is run by its argv, never by a shell. It reads its arguments as JSON from standard input
 * and writes its result as JSON to standard output. Exit codes of sysexits.h promise that nothing took effect.
 */
#include "adapters/adapters.h"
#include "adapters/answer.h"
#include "adapters/program.h"
#include "adapters/tool_settings.h"
#include "base/json.h"
#include "base/utf8.h"
#include "io/process/process.h"
#include "io/process/programs.h"

struct exec_call {
    struct call call;
    struct process_run run;
    struct deferred refuse;
};

static const struct tool_setting settings_table[] = {
    {"argv", BIT(JSON_ARRAY), true, program_check_argv, program_refuse_template},
    {"env", BIT(JSON_OBJECT), false, program_check_env},
    {"cwd", BIT(JSON_STRING), false, NULL},
};

static void exec_check(struct slice settings, struct slice pointer, enum key_place place, struct faults *faults)
{
    /* The place of the key is checked whether or not the settings are an object. */
    (void)settings_check(settings, pointer, settings_table, COUNT_OF(settings_table), faults);
    if (place != KEY_PLACE_DEFAULT && place != KEY_PLACE_ENV) {
        faults_add(faults, pointer, "a program gets its key in the environment: {\"env\": NAME}");
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

    buffer_init(&text, SIZE_MAX / 2); /* each part is bounded already */
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
    json_write_slice(&w, "stderr", text_is_utf8(run->stderr_text) ? run->stderr_text : SLICE("(not text)"));
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

static void exec_begin(struct call *call)
{
    struct exec_call *e = container_of(call, struct exec_call, call);
    struct slice key_name = call->key_place == KEY_PLACE_ENV ? call->key_name : SLICE("IDEMPOTENCY_KEY");
    char **argv = NULL, **env = NULL;
    const char *fault = program_argv(json_member(call->settings, "argv"), call->arena, &argv);

    fault = fault ? fault
                  : program_env(json_member(call->settings, "env"), key_name, call->send_key ? call->key : SLICE_NONE,
                                &call->trace, call->host->programs, call->arena, &env);
    fault = fault ? fault : program_cwd(json_member(call->settings, "cwd"), call->arena, &e->run.cwd);
    e->run.argv = argv;
    e->run.env = env;
    if (fault) {
        answer_unsent(call, false, "bad-settings", fault);
        loop_defer(call->host->loop, &e->refuse, on_refuse);
        return;
    }
    fault = programs_refusal(call->host->programs, argv[0], program_search(env));
    if (fault) {
        answer_unsent(call, true, "not-allowed", fault);
        loop_defer(call->host->loop, &e->refuse, on_refuse);
        return;
    }
    e->run.programs = call->host->programs;
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
