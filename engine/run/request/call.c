/*
 * The way of an agent's call. Tool, arguments and effect class are looked up here, and the owner of its shard is found.
 * The core decides what the call means. Then the client waits (caller.c).
 */
#include "run/intake/measures.h"
#include "run/query/health.h"
#include "run/request/calling.h"

#include "base/log.h"
#include "base/metric.h"
#include "run/exchange/exchange.h"
#include "run/readiness.h"
#include "run/saga/live.h"
#include "run/saga/summon.h"
#include "run/shard/shard.h"

#define NAME_BYTES_MAX 256
#define RETRY_AFTER_MS 1000
#define LOOKS_WHILE_BUSY 64

/* --- what the core said --- */

static void log_deduplicated(const struct work *work, const struct mail *mail, const struct saga *saga)
{
    const struct call_answer *answer = &mail->answer;
    char key[UUID_TEXT_BYTES], id[UUID_TEXT_BYTES], at[INSTANT_TEXT_BYTES];
    bool has = answer->step != STEP_NONE; /* a loop of new calls has no step */
    int64_t original = answer->original_ms ? answer->original_ms
                       : has               ? saga->steps[answer->step].forward.created_ms
                                           : 0;

    uuid_text(&saga->id.uuid, id);
    key[0] = at[0] = '\0';
    if (has) {
        uuid_text(&saga->steps[answer->step].forward.key.uuid, key);
    }
    if (original) {
        instant_text(original, at);
    }
    log_info("tool_call_deduplicated", LOG_SLICE("tool", mail->input.call.tool->name), LOG_TEXT("key", key),
             LOG_SLICE("run", saga->run.len ? saga->run : slice_of(id)), LOG_TEXT("saga", id),
             LOG_SLICE("step", has ? saga->definition->steps[answer->step].name : mail->input.call.step),
             LOG_SLICE("scope", mail->input.call.scope), LOG_SLICE("agent", work->actor),
             LOG_TEXT("decision", answer->decision), LOG_TEXT("original_at", at),
             LOG_MS("delay", original ? mail->input.now_ms - original : 0));
}

static void give_lists(struct work *work, const struct call_answer *answer)
{
    if (work->request) {
        work->request->call.pointers = arena_slice(work->request->arena, answer->pointers);
        work->request->call.pattern = arena_slice(work->request->arena, answer->pattern);
    }
}

static void refuse_by_core(struct work *work, const struct mail *mail, const struct saga *saga)
{
    const struct call_answer *answer = &mail->answer;
    struct err err = {0};
    int64_t retry_after_ms = answer->retry_after_ms;

    (void)err_set(&err, answer->code, "%.*s", SLICE_ARG(answer->message));
    err_hint(&err, "%.*s", SLICE_ARG(answer->hint));
    if (answer->code == ERR_PAUSED &&
        saga) { /* a reader of this needs the saga's id, and a run is known to the caller only by its name */
        char id[UUID_TEXT_BYTES];

        uuid_text(&saga->id.uuid, id);
        err_hint(&err, "an operator lets it go on: sagactl resume %s", id);
    }
    if (answer->code == ERR_BUSY) { /* all other errors bring their own time */
        retry_after_ms = work->calling->busy_ms;
    }
    if (work->request && answer->code == mail->input.call.unfit) {
        work->request->faults = work->calling->faults;
    }
    work->calling->duplicate = answer->duplicate;
    caller_give_operation(work, saga, answer->step);
    give_lists(work, answer);
    caller_refuse(work, &err, retry_after_ms);
}

static void send_call(struct work *work);

static void on_decided(struct mail *mail, enum err_code code, const struct err *err)
{
    struct work *work = container_of(mail, struct work, mail);
    struct calling *calling = work->calling;
    struct live *live = mail->live && !mail->live->dropped ? mail->live : NULL;

    if (code == ERR_CONFLICT && mail->live && mail->live->saga.seq == 0) {
        live_leave_run(mail->live); /* another engine has begun this run, so the call goes to that one */
        send_call(work);
        return;
    }
    if (code == ERR_FENCED && !mail->from_inbox && !calling->rerouted && caller_has_patience(work)) {
        calling->rerouted = true; /* nothing happened, and the owner is asked */
        send_call(work);
        return;
    }
    if (mail->live && (mail->live->saga.seq > 0 || (code == ERR_OK && mail->answer.code == ERR_OK))) {
        work->saga = mail->live->saga.id; /* also for a run whose first turn is durable and was not folded here, because
                                             its shard was lost meanwhile */
    }
    if (code != ERR_OK) {
        give_lists(work, &mail->answer);
        caller_refuse(work, err, err_retryable(code) ? RETRY_AFTER_MS : 0);
        return;
    }
    if (mail->answer.code != ERR_OK && !err_retryable(mail->answer.code) && live && !mail->from_inbox &&
        !shard_is_surely_ours(work->engine, live->shard->number)) {
        struct err outdated = {0}; /* another engine may accept what we refuse by what we remember */

        (void)err_set(&outdated, ERR_FENCED, "the shard of this saga may have gone to another engine");
        caller_refuse(work, &outdated, RETRY_AFTER_MS);
        return;
    }
    calling->step = mail->answer.step;
    calling->duplicate = mail->answer.duplicate;
    calling->first_ms = mail->answer.first_ms;
    if (live && mail->answer.decision) {
        log_deduplicated(work, mail, &live->saga);
    }
    CHECK(mail->answer.code != ERR_OK || calling->step != STEP_NONE); /* an accepted call has an operation */
    if (mail->answer.code != ERR_OK) {
        if (mail->answer.code == ERR_BUDGET) {
            tool_health_of(work->engine, work->namespace, mail->input.call.tool->name)->budget_refusals++;
        }
        refuse_by_core(work, mail, live ? &live->saga : NULL);
    } else if (live) {
        caller_wait_for_step(work, live);
    } else {
        caller_look_later(work); /* durable, and the shard was lost in the same moment */
    }
}

/* --- before the core --- */

/*
 * Is the call not looked for? While nothing new is accepted, a repeat is still answered. Only the core can tell a
 * repeat, so its saga is read back, unless many are being read back already.
 */
static bool is_not_looked_for(struct work *work, bool of_run)
{
    struct engine *engine = work->engine;
    struct digest run;
    struct err err = {0};

    if (work->calling->busy_ms == 0 || summons_under_way(engine) < LOOKS_WHILE_BUSY) {
        return false;
    }
    if (of_run) {
        run = run_digest(work->namespace, work->mail.input.call.run);
    }
    if (of_run ? live_find_run(engine, &run) != NULL : live_find(engine, work->calling->saga) != NULL) {
        return false;
    }
    (void)err_set(&err, ERR_BUSY, "%.*s", SLICE_ARG(work->mail.input.call.unfit_message));
    err_hint(&err, "%.*s", SLICE_ARG(work->mail.input.call.unfit_hint));
    caller_refuse(work, &err, work->calling->busy_ms);
    return true;
}

static void send_call(struct work *work)
{
    struct engine *engine = work->engine;
    const struct saga_input *input = &work->mail.input;
    bool of_run = uuid_is_nil(&work->calling->saga.uuid);
    uint32_t shard = of_run ? run_shard(work->namespace, input->call.run) : saga_id_shard(work->calling->saga);

    if (route_elsewhere(work, shard, errand_call) || is_not_looked_for(work, of_run)) {
        return;
    }
    work->mail.done = on_decided;
    if (of_run) {
        live_deliver_run(engine, work->namespace, input->call.run, &work->mail);
    } else {
        live_deliver(engine, work->calling->saga, work->namespace, &work->mail);
    }
}

static void on_effect(struct effect_of_call *effect)
{
    struct work *work = effect->context;

    work->mail.input.call.effect = effect->effect;
    send_call(work);
}

static void resolve_effect(struct work *work)
{
    struct effect_of_call *effect = &work->calling->effect;

    *effect = (struct effect_of_call){.tool = work->mail.input.call.tool,
                                      .args = work->mail.input.call.args,
                                      .arena = &work->arena,
                                      .done = on_effect,
                                      .context = work};
    effect_of_call(work->engine->loop, effect);
}

/* Marks a call as unfit. Only the core can tell whether it is a repeat, and a repeat is answered whatever has become of
 * its tool since. */
static void call_is_unfit(struct work *work, enum err_code code, struct slice message, struct slice hint)
{
    struct saga_input *input = &work->mail.input;

    if (input->call.unfit == ERR_OK) {
        input->call.unfit = code;
        input->call.unfit_message = arena_slice(&work->arena, message);
        input->call.unfit_hint = arena_slice(&work->arena, hint);
    }
}

static bool find_tools(struct work *work)
{
    struct saga_input *input = &work->mail.input;
    struct engine_request *request = work->request;
    struct definitions *definitions = work->engine->definitions;
    struct step_definition step;
    struct err err = {0};

    input->call.tool = definitions_tool(definitions, work->namespace, request->in.call.tool, 0, &err);
    if (input->call.tool && input->call.tool->compensate.is_set) {
        input->call.undo =
            definitions_tool(definitions, work->namespace, input->call.tool->compensate.tool_name, 0, &err);
    }
    if (!input->call.tool) {
        work_done(work, err.code, &err);
        return false;
    }
    if (input->call.tool->compensate.is_set && !input->call.undo) {
        (void)err_context(&err, "the compensator of \"%.*s\"", SLICE_ARG(request->in.call.tool));
        call_is_unfit(work, err.code, slice_of(err.message), slice_of(err.hint));
    } else if (!step_definition_of_call(input->call.tool, input->call.undo, &step)) {
        call_is_unfit(
            work, ERR_INVALID,
            SLICE("this tool can only be a compensator: it has an effect, no compensator, and is not terminal"),
            SLICE("give it `compensate`, or `terminal` where it cannot be undone"));
    }
    return true;
}

static bool is_name(struct slice text)
{
    return !text.ptr || (text.len > 0 && text.len <= NAME_BYTES_MAX);
}

/* Finds the scope of a call when the caller has not given one: the owner of the tool has defined it. */
static bool find_scope(struct work *work)
{
    struct saga_input *input = &work->mail.input;
    struct err err = {0};

    if (work->request->in.call.scope.ptr || !template_is_set(&input->call.tool->scope)) {
        return true;
    }
    if (!tool_scope(input->call.tool, input->call.args, &work->arena, &input->call.scope, &err)) {
        (void)err_context(&err, "the scope of this tool");
        work_done(work, ERR_INVALID, &err);
        return false;
    }
    if (input->call.scope.len > NAME_BYTES_MAX) {
        work_fail(work, ERR_INVALID, "the scope that this tool makes of the arguments has more than 256 bytes",
                  "give a shorter one with the call");
        return false;
    }
    return true;
}

static bool call_is_good(struct work *work)
{
    struct engine_request *request = work->request;
    struct slice args = request->in.call.args.ptr ? request->in.call.args : SLICE("{}");
    struct err err = {0};
    struct faults faults;

    if (args.len > work->engine->options.payload_bytes_max) {
        (void)err_set(&err, ERR_TOO_LARGE, "the arguments are larger than allowed");
        err_detail(&err, "%zu bytes, at most %zu are taken", args.len, work->engine->options.payload_bytes_max);
        err_hint(&err, "keep large bodies elsewhere and pass a reference");
        work_done(work, ERR_TOO_LARGE, &err);
        return false;
    }
    if ((uuid_is_nil(&request->in.call.saga.uuid) && !request->in.call.run.ptr) || !is_name(request->in.call.run) ||
        request->in.call.scope.len > NAME_BYTES_MAX || !is_name(request->in.call.emission) ||
        !is_name(request->in.call.conversation_turn)) {
        work_fail(work, ERR_INVALID,
                  "run, scope, turn and Idempotency-Key have at most 256 bytes, and only the scope may be empty", NULL);
        return false;
    }
    if (request->in.call.step.ptr && !call_step_is_good(request->in.call.step)) {
        work_fail(work, ERR_INVALID, "a step has 1 to 128 of the characters A-Z a-z 0-9 . _ : / -",
                  "leave it out for one step a tool and scope");
        return false;
    }
    if (!find_tools(work) || !find_scope(work)) {
        return false;
    }
    faults_init(&faults, request->arena);
    if (work->mail.input.call.tool->input) {
        schema_check(work->mail.input.call.tool->input, args, SLICE("/args"), &work->arena, &faults);
    }
    if (faults.count > 0) {
        work->calling->faults = faults;
        call_is_unfit(work, ERR_INVALID, SLICE("the arguments do not fit the schema of this tool"),
                      SLICE("see `errors` for each place"));
    }
    return true;
}

static void look_at_intake(struct work *work)
{
    struct err err = {0};

    if (!intake_admits(work->engine, &err, &work->calling->busy_ms)) {
        call_is_unfit(work, ERR_BUSY, slice_of(err.message), slice_of(err.hint));
    }
}

static void call_begin(struct work *work)
{
    const struct engine_request *request = work->request;
    struct arena *arena = &work->arena;
    struct saga_input *input = &work->mail.input;

    work->request->call = (struct call_result){0};
    work->calling = arena_alloc(arena, sizeof(*work->calling));
    work->calling->saga = work->saga = request->in.call.saga;
    work->calling->step = STEP_NONE;
    work->calling->trace = (struct trace_context){arena_slice(arena, request->in.call.trace.parent),
                                                  arena_slice(arena, request->in.call.trace.state)};
    work->until_boot_ms = loop_boot_ms(work->engine->loop) + request->in.call.wait_ms;
    *input = (struct saga_input){
        .type = SAGA_INPUT_CALL,
        .call = {.namespace = work->namespace,
                 .actor = work->actor,
                 .run = arena_slice(arena, request->in.call.run),
                 .step = arena_slice(arena, request->in.call.step),
                 .args = arena_slice(arena, request->in.call.args.ptr ? request->in.call.args : SLICE("{}")),
                 .scope = arena_slice(arena, request->in.call.scope),
                 .emission = arena_slice(arena, request->in.call.emission),
                 .conversation_turn = arena_slice(arena, request->in.call.conversation_turn)}};
    if (call_is_good(work)) {
        look_at_intake(work);
        resolve_effect(work);
    }
}

void engine_call(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (!work_refused(work) && !work_is_over_quota(work, QUOTA_CALLS, request->in.call.args.len)) {
        call_begin(work);
    }
}

struct work *work_of_delivery(struct engine *engine, struct engine_request *request, const struct uuid *inbox_id)
{
    struct work *work = work_new(engine, request);

    work->mail.from_inbox = true;
    work->mail.inbox_id = *inbox_id;
    if (engine_is_draining(engine) || !engine_has_database(engine)) { /* without definitions the call had no shard */
        work_fail(work, ERR_FENCED, "this engine cannot take it now: the row stays for the next owner", NULL);
        return NULL;
    }
    return work;
}

void call_deliver(struct engine *engine, struct engine_request *request, const struct uuid *inbox_id)
{
    struct work *work = work_of_delivery(engine, request, inbox_id);

    if (work) {
        call_begin(work);
    }
}
