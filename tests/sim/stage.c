/* See stage.h. */
#include "tests/sim/stage.h"
#include "run/saga/live.h"
#include "run/saga/summon.h"
#include "run/shard/handover.h"
#include "run/shard/shard.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "io/process/jq.h"
#include "run/engine_state.h"
#include "run/readiness.h"
#include "tests/sim/memory.h"
#include "tests/sim/network.h"
#include "tests/sim/tool.h"

#define UNTIL_MS 120000
#define SETTLE_MS 20
#define ANSWER_US 100 /* the time from a tool's answer to the engine */

const struct adapter *__wrap_adapter_find(struct slice name);
struct engine *__real_engine_start(struct loop *loop, const struct engine_options *options);
struct engine *__wrap_engine_start(struct loop *loop, const struct engine_options *options);

void __real_jq_submit(struct loop *loop, struct jq_job *job);
void __wrap_jq_submit(struct loop *loop, struct jq_job *job);

struct saga *__real_fold_turns(struct engine *engine, struct saga_id id, struct slice namespace,
                               const struct stored_turn *turns, size_t count, struct arena *arena, struct err *err);
struct saga *__wrap_fold_turns(struct engine *engine, struct saga_id id, struct slice namespace,
                               const struct stored_turn *turns, size_t count, struct arena *arena, struct err *err);
int __real_db_server_version(const struct db *db);
int __wrap_db_server_version(const struct db *db);

bool stage_is_automatic, stage_cancels;
struct node_options stage_options;
int stage_server_version;
bool stage_logs_are_corrupt;
int64_t stage_program_ms;

static struct {
    struct world world;
    struct stage_plan plan;
    struct list calls;
    struct stage_tool tools[32];
    struct list turns;
    uint32_t commits, commit_at;
    enum commit_fate commit_fate;
    void (*at_commit)(void);
} stage;

/* --- time --- */

/*
 * Catches a broken invariant or CHECK of the engine, which ends the test. Each function that makes an engine work
 * begins with this macro. The jump target of an earlier function is a frame that is gone. Only a test that asks inside
 * a node keeps the target, because it runs in the frame of an outer function.
 */
#define GUARDED()                                                                                                      \
    do {                                                                                                               \
        if (!node_current() && setjmp(world->stop)) {                                                                  \
            (void)node_enter(NULL);                                                                                    \
            fail_msg("%s: %s", world->invariant, world->violation);                                                    \
        }                                                                                                              \
    } while (0)

static bool step(void) /* one event */
{
    GUARDED();
    return world_step();
}

void stage_run(int64_t ms)
{
    int64_t until_us = world->now_us + ms * 1000;

    while (world->heap_count > 0 && world->heap[1]->at_us <= until_us) {
        (void)step();
    }
    world->now_us = until_us;
}

void stage_settle(void)
{
    stage_run(SETTLE_MS);
}

void stage_inside(uint32_t node, void (*run)(struct engine *engine, void *context), void *context)
{
    struct node *before;

    GUARDED();
    before = node_enter(&nodes[node]);
    run(nodes[node].engine, context);
    node_leave(before);
    node_wake(&nodes[node], 0);
}

void stage_until(bool (*is_so)(void *context), void *context, const char *what)
{
    int64_t until_us = world->now_us + INT64_C(1000) * UNTIL_MS;

    while (!is_so(context)) {
        if (world->now_us > until_us || !step()) {
            fail_msg("it never came to this: %s", what);
        }
    }
}

struct slice stage_json(const char *text)
{
    char *copy = arena_text(&world->arena, slice_of(text));

    for (char *c = copy; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    return slice_of(copy);
}

/* --- requests --- */

struct ticket { /* in the memory of the node */
    struct engine_request request;
    struct arena arena;
    struct reply *reply;
};

static struct slice keep(struct slice text)
{
    return text.ptr ? arena_slice(&world->arena, text) : SLICE_NONE;
}

/* Runs inside the node. */
static void on_done(struct engine_request *request)
{
    struct ticket *ticket = request->context;
    struct reply *reply = ticket->reply;
    struct node *before = node_enter(NULL);

    before->unanswered--;
    *reply = (struct reply){.done = true,
                            .code = request->code,
                            .err = request->err,
                            .answer = keep(request->answer),
                            .next_cursor = keep(request->next_cursor),
                            .looked_ms = request->looked_ms,
                            .looked_count = request->looked_count,
                            .saga = request->saga,
                            .created = request->created,
                            .call = request->call,
                            .faults = request->faults.count};
    if (request->faults.count > 0) {
        reply->fault = arena_printf(&world->arena, "%.*s: %.*s", SLICE_ARG(request->faults.items[0].pointer),
                                    SLICE_ARG(request->faults.items[0].detail));
    }
    reply->call.key = keep(request->call.key);
    reply->call.operation = keep(request->call.operation);
    reply->call.pointers = keep(request->call.pointers);
    reply->call.pattern = keep(request->call.pattern);
    node_leave(before);
    arena_fini(&ticket->arena);
    free(ticket);
}

struct reply *stage_ask(uint32_t node, request_verb *verb, const struct engine_request *what)
{
    struct node *before = node_current();
    struct reply *reply;
    struct ticket *ticket;

    assert_true(node_is_running(&nodes[node]));
    GUARDED();
    (void)node_enter(NULL);
    reply = arena_alloc(&world->arena, sizeof(*reply));
    (void)node_enter(&nodes[node]);
    ticket = memory_alloc(sizeof(*ticket));
    arena_init(&ticket->arena, 2048);
    ticket->reply = reply;
    ticket->request = *what;
    ticket->request.arena = &ticket->arena;
    ticket->request.done = on_done;
    ticket->request.context = ticket;
    ticket->request.namespace = what->namespace.ptr ? what->namespace : SLICE("default");
    ticket->request.actor = what->actor.ptr ? what->actor : SLICE("tester");
    reply->node = &nodes[node];
    reply->life = nodes[node].life;
    reply->request = &ticket->request;
    nodes[node].unanswered++;
    verb(nodes[node].engine, &ticket->request);
    CHECK(!reply->done); /* never called inside the request itself */
    node_leave(before);
    node_wake(&nodes[node], 0);
    return reply;
}

static bool is_done(void *context)
{
    return ((const struct reply *)context)->done;
}

struct reply *stage_wait(struct reply *reply)
{
    stage_until(is_done, reply, "an answer");
    return reply;
}

struct reply *stage_expect_at(const char *file, int line, struct reply *reply, enum err_code code)
{
    if (stage_wait(reply)->code != code) {
        print_error("ERROR: %s instead of %s: %s (%s) %.*s\n", err_name(reply->code), err_name(code),
                    reply->err.message, reply->err.detail, SLICE_ARG(reply->fault));
        _fail(file, line);
    }
    return reply;
}

void stage_hang_up(struct reply *reply)
{
    struct node *before;

    assert_false(reply->done);
    GUARDED();
    before = node_enter(reply->node);
    engine_cancel(reply->node->engine, reply->request);
    node_leave(before);
    node_wake(reply->node, 0);
}

struct saga_id stage_start(uint32_t node, const char *saga, const char *input)
{
    struct engine_request what = {.in.start = {.saga = slice_of(saga), .input = stage_json(input)}};

    return stage_expect(stage_ask(node, engine_start_saga, &what), ERR_OK)->saga;
}

struct saga_id stage_open(uint32_t node, const char *business_id)
{
    struct engine_request what = {.in.open.business_id = arena_slice(&world->arena, slice_of(business_id))};

    return stage_expect(stage_ask(node, engine_open_saga, &what), ERR_OK)->saga;
}

struct reply *stage_define(uint32_t node, const char *document)
{
    return stage_wait(
        stage_ask(node, engine_define, &(struct engine_request){.in.define = {.document = stage_json(document)}}));
}

struct slice stage_saga(uint32_t node, struct saga_id id)
{
    struct reply *reply = stage_wait(stage_ask(node, engine_get_saga, &(struct engine_request){.in.get = {.id = id}}));

    return reply->code == ERR_OK ? reply->answer : SLICE_NONE;
}

struct turn_text { /* one turn of the log */
    struct list_link link;
    struct saga_id saga;
    struct slice payload;
};

static void on_turn(const struct committed_turn *turn)
{
    if (turn) {
        struct turn_text *text = arena_alloc(&world->arena, sizeof(*text));

        text->saga = turn->saga;
        text->payload = arena_slice(&world->arena, turn->payload);
        list_push(&stage.turns, &text->link);
    }
}

const char *stage_log(struct saga_id id)
{
    struct slice all = SLICE("");

    for (struct list_link *link = list_first(&stage.turns); link; link = list_after(&stage.turns, link)) {
        const struct turn_text *text = container_of(link, struct turn_text, link);

        if (uuid_equal(&text->saga.uuid, &id.uuid)) {
            all = arena_printf(&world->arena, "%.*s%.*s\n", SLICE_ARG(all), SLICE_ARG(text->payload));
        }
    }
    return arena_text(&world->arena, all);
}

void stage_until_saga(uint32_t node, struct saga_id id, const char *status)
{
    for (int i = 0; i < 2000; i++) {
        struct slice saga = stage_saga(node, id);

        if (json_string_is(json_member(saga, "status"), status)) {
            return;
        }
        stage_run(50);
    }
    fail_msg("it never became %s: %.*s", status, SLICE_ARG(stage_saga(node, id)));
}

struct engine_request *stage_call_of(const char *run, const char *tool, const char *args, int64_t wait_ms)
{
    static struct engine_request request;

    request = (struct engine_request){.in.call = {.run = arena_slice(&world->arena, slice_of(run)),
                                                  .tool = slice_of(tool),
                                                  .args = stage_json(args),
                                                  .wait_ms = wait_ms}};
    return &request;
}

struct engine_request *stage_call_in(struct saga_id saga, const char *tool, const char *args, int64_t wait_ms)
{
    struct engine_request *request = stage_call_of("", tool, args, wait_ms);

    request->in.call.run = SLICE_NONE;
    request->in.call.saga = saga;
    return request;
}

struct reply *stage_call_begin(uint32_t node, const char *run, const char *tool, const char *args, int64_t wait_ms)
{
    struct reply *reply = stage_ask(node, engine_call, stage_call_of(run, tool, args, wait_ms));

    (void)stage_until_call(tool);
    return reply;
}

/* --- whose is it? --- */

struct ownership {
    uint32_t node, shard;
};

static bool is_owner(void *context)
{
    const struct ownership *o = context;

    return nodes[o->node].engine->shards[o->shard].state == SHARD_OWNED;
}

static bool is_no_owner(void *context)
{
    return !is_owner(context);
}

void stage_until_owner(uint32_t node, uint32_t shard)
{
    stage_until(is_owner, &(struct ownership){node, shard}, "a takeover");
}

void stage_until_no_owner(uint32_t node, uint32_t shard)
{
    stage_until(is_no_owner, &(struct ownership){node, shard}, "the loss of a shard");
}

static uint32_t shard_of_run(const char *run)
{
    return run_shard(SLICE("default"), slice_of(run));
}

static void lose_shard(struct engine *engine, void *context)
{
    const struct shard *shard = context;

    shard_lost(shard->number, shard->epoch, engine);
}

void stage_lose(uint32_t node, uint32_t shard)
{
    stage_inside(node, lose_shard, &nodes[node].engine->shards[shard]);
}

static void gain_shard(struct engine *engine, void *context)
{
    const struct shard *shard = context;

    shard_gained(shard->number, shard->epoch, engine);
}

void stage_gain(uint32_t node, uint32_t shard)
{
    stage_inside(node, gain_shard, &nodes[node].engine->shards[shard]);
    stage_settle();
}

void stage_give(uint32_t node, size_t count)
{
    struct node *before;

    GUARDED();
    before = node_enter(&nodes[node]);
    handover_surplus(count, nodes[node].engine);
    node_leave(before);
    node_wake(&nodes[node], 0);
}

const char *stage_run_at(uint32_t node)
{
    for (int i = 0; i < 10000; i++) {
        const char *run = arena_printf(&world->arena, "run-%d", i).ptr;

        if (is_owner(&(struct ownership){node, shard_of_run(run)})) {
            return run;
        }
    }
    fail_msg("node %u has no shard", (unsigned)node);
    return NULL;
}

void stage_until_has(uint32_t node, const char *run)
{
    stage_until_owner(node, shard_of_run(run));
}

void stage_until_lost(uint32_t node, const char *run)
{
    stage_until_no_owner(node, shard_of_run(run));
}

/* --- tools --- */

struct stage_tool *stage_tool(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(stage.tools); i++) {
        struct stage_tool *tool = &stage.tools[i];

        if (!tool->name[0]) {
            assert_true(strlen(name) < sizeof(tool->name));
            *tool = (struct stage_tool){.outcome = {.kind = OUTCOME_COMPLETED}, .response = SLICE("{\"ok\":true}")};
            memcpy(tool->name, name, strlen(name) + 1);
        }
        if (strcmp(tool->name, name) == 0) {
            return tool;
        }
    }
    fail_msg("more tools than a stage has room for");
    return NULL;
}

void stage_says(const char *name, enum outcome_kind kind, const char *error, const char *response)
{
    struct stage_tool *tool = stage_tool(name);

    tool->outcome = (struct outcome){.kind = kind, .error = error ? slice_of(error) : SLICE_NONE};
    tool->outcome.unsent = slice_is(tool->outcome.error, OUTCOME_EGRESS_DENIED);
    tool->response = response ? stage_json(response) : SLICE_NONE;
}

uint32_t stage_calls(const char *tool)
{
    uint32_t count = 0;

    for (size_t i = 0; i < COUNT_OF(stage.tools); i++) {
        count += !tool || strcmp(stage.tools[i].name, tool) == 0 ? stage.tools[i].calls : 0;
    }
    return count;
}

struct staged { /* in the memory of the node */
    struct call call;
    struct staged_call *staged;
    struct deferred leaving, settling;
};

static void forget(struct staged_call *staged)
{
    if (list_linked(&staged->link)) {
        list_remove(&stage.calls, &staged->link);
    }
}

static void settle(struct staged *staged, struct outcome outcome, struct slice response)
{
    forget(staged->staged);
    staged->staged->call = NULL;
    loop_defer_cancel(staged->call.host->loop, &staged->leaving);
    loop_defer_cancel(staged->call.host->loop, &staged->settling);
    staged->call.outcome = outcome;
    staged->call.response = response;
    call_settle(&staged->call);
}

/* Runs in a turn of the node's loop. */
static void on_answer(struct message *message)
{
    struct staged_call *call = container_of(message, struct staged_call, answer);

    if (call->call) {
        if (call->is_automatic) {
            call->outcome = call->tool->outcome;
            call->response = call->tool->response;
            call->outcome.result = call->outcome.kind == OUTCOME_COMPLETED ? call->response : SLICE_NONE;
        }
        settle(container_of(call->call, struct staged, call), call->outcome,
               call->response.ptr ? arena_slice(call->call->arena, call->response) : SLICE_NONE);
    }
}

void stage_answer(struct staged_call *call, struct outcome outcome, const char *response)
{
    forget(call);
    if (response) {
        call->response = stage_json(response);
        outcome.result = outcome.kind == OUTCOME_COMPLETED ? call->response : SLICE_NONE;
    }
    call->outcome = outcome;
    message_send(&call->answer, call->node, ANSWER_US, on_answer, NULL);
}

void stage_complete(struct staged_call *call, const char *response)
{
    stage_answer(call, (struct outcome){.kind = OUTCOME_COMPLETED}, response);
}

void stage_complete_all(const char *tool, const char *response)
{
    struct staged_call *call;

    while ((call = stage_call(tool)) != NULL) {
        stage_complete(call, response);
    }
}

static bool is_open(const struct staged_call *call, const char *tool)
{
    return call->node->up && call->node->life == call->life && (!tool || strcmp(call->tool->name, tool) == 0);
}

struct staged_call *stage_call(const char *tool)
{
    for (struct list_link *link = list_first(&stage.calls); link; link = list_after(&stage.calls, link)) {
        struct staged_call *call = container_of(link, struct staged_call, link);

        if (is_open(call, tool)) {
            return call;
        }
    }
    return NULL;
}

size_t stage_open_calls(void)
{
    size_t count = 0;

    for (struct list_link *link = list_first(&stage.calls); link; link = list_after(&stage.calls, link)) {
        count += is_open(container_of(link, struct staged_call, link), NULL);
    }
    return count;
}

static bool has_call(void *context)
{
    return stage_call(context) != NULL;
}

struct staged_call *stage_until_call(const char *tool)
{
    stage_until(has_call, (void *)tool, tool ? tool : "a call");
    return stage_call(tool);
}

void stage_answer_first(enum outcome_kind kind, const char *error, const char *response)
{
    stage_answer(stage_until_call(NULL), (struct outcome){.kind = kind, .error = error ? slice_of(error) : SLICE_NONE},
                 response);
    stage_settle();
}

void stage_answer_all(void)
{
    stage_is_automatic = true;
    stage_complete_all(NULL, "{'ok':true}");
    stage_settle();
}

static void on_leaving(struct deferred *deferred)
{
    struct staged *staged = container_of(deferred, struct staged, leaving);
    struct staged_call *call = staged->staged;

    if (!call_may_leave(&staged->call)) {
        settle(staged, (struct outcome){.kind = OUTCOME_RETRY, .unsent = true, .error = SLICE("withheld")}, SLICE_NONE);
        return;
    }
    call->tool->calls++;
    call->tool->args = call->args;
    call->is_automatic = stage_is_automatic;
    if (call->is_automatic) {
        int64_t delay_ms = call->tool->delay_ms;

        message_send(&call->answer, call->node, delay_ms > 0 ? delay_ms * 1000 : ANSWER_US, on_answer, NULL);
    } else {
        list_push(&stage.calls, &call->link);
    }
}

static void on_settling(struct deferred *deferred)
{
    settle(container_of(deferred, struct staged, settling),
           (struct outcome){.kind = OUTCOME_UNKNOWN, .error = SLICE("cancelled")}, SLICE_NONE);
}

static void staged_begin(struct call *call)
{
    struct staged *staged = container_of(call, struct staged, call);
    struct node *before = node_enter(NULL);

    staged->staged = arena_alloc(&world->arena, sizeof(*staged->staged));
    *staged->staged = (struct staged_call){
        .node = before,
        .life = before->life,
        .call = call,
        .tool = stage_tool(arena_text(&world->arena, json_string(json_member(call->settings, "tool"), &world->arena))),
        .args = keep(call->args),
        .key = keep(call->key)};
    node_leave(before);
    loop_defer(call->host->loop, &staged->leaving, on_leaving);
}

static void staged_cancel(struct call *call)
{
    struct staged *staged = container_of(call, struct staged, call);

    staged->staged->cancelled = true;
    if (stage_cancels) {
        loop_defer(call->host->loop, &staged->settling, on_settling);
    }
}

static void staged_check(struct slice settings, struct slice pointer, enum key_place place, struct faults *faults)
{
    (void)settings;
    (void)pointer;
    (void)place;
    (void)faults;
}

static bool staged_shares_keys(struct slice undone, struct slice settings)
{
    return slice_equal(json_member(undone, "memory"), json_member(settings, "memory"));
}

/* Replaces the services of tool.c. */
const struct adapter adapter_world = {
    .name = "builtin",
    .call_size = sizeof(struct staged),
    .check = staged_check,
    .begin = staged_begin,
    .cancel = staged_cancel,
    .shares_keys = staged_shares_keys,
};

static const struct adapter adapter_child = {
    /* The real one has no memory of keys, either. */
    .name = "exec",
    .call_size = sizeof(struct staged),
    .check = staged_check,
    .begin = staged_begin, /* no cancel(), which an adapter need not have */
};

const struct adapter *__wrap_adapter_find(struct slice name)
{
    return slice_is(name, adapter_world.name)   ? &adapter_world
           : slice_is(name, adapter_child.name) ? &adapter_child
                                                : NULL;
}

/* --- programs --- */

struct held_program {
    struct message message;
    struct loop *loop;
    struct jq_job *job;
};

static void on_held(struct message *message)
{
    struct held_program *held = container_of(message, struct held_program, message);

    __real_jq_submit(held->loop, held->job);
}

void __wrap_jq_submit(struct loop *loop, struct jq_job *job)
{
    struct node *before;
    struct held_program *held;

    if (stage_program_ms == 0) {
        __real_jq_submit(loop, job);
        return;
    }
    before = node_enter(NULL);
    held = arena_alloc(&world->arena, sizeof(*held));
    held->loop = loop;
    held->job = job;
    message_send(&held->message, before, stage_program_ms * 1000, on_held, NULL);
    node_leave(before);
}

/* --- what goes wrong --- */

static enum commit_fate on_commit(struct pg_session *session)
{
    (void)session;
    if (++stage.commits != stage.commit_at) {
        return COMMIT_OK;
    }
    if (stage.at_commit) {
        stage.at_commit();
    }
    return stage.commit_fate;
}

void stage_commit(uint32_t n, enum commit_fate fate, void (*then)(void))
{
    stage.commits = 0;
    stage.commit_at = n;
    stage.commit_fate = fate;
    stage.at_commit = then;
}

void stage_freeze_first(void)
{
    node_freeze_now(&nodes[0], 8000000);
}

int __wrap_db_server_version(const struct db *db)
{
    return stage_server_version ? stage_server_version : __real_db_server_version(db);
}

struct saga *__wrap_fold_turns(struct engine *engine, struct saga_id id, struct slice namespace,
                               const struct stored_turn *turns, size_t count, struct arena *arena, struct err *err)
{
    if (stage_logs_are_corrupt) {
        (void)err_set(err, ERR_CORRUPT, "the log of this saga has no beginning");
        return NULL;
    }
    return __real_fold_turns(engine, id, namespace, turns, count, arena, err);
}

/* --- begin and end --- */

struct engine *__wrap_engine_start(struct loop *loop, const struct engine_options *given)
{
    struct engine_options options = *given;

    if (stage.plan.tweak) {
        stage.plan.tweak(&options);
    }
    return __real_engine_start(loop, &options);
}

static bool is_ready(void *context)
{
    const struct node *node = context;

    if (node->options.standbys >> node->index & 1) { /* a standby owns nothing while another node lives */
        return engine_has_database(node->engine) && engine_knows_definitions(node->engine) &&
               engine_is_current(node->engine);
    }
    return node->ready || node->refused;
}

void stage_begin(const struct stage_plan *plan)
{
    struct node_options *options = &stage_options;

    (void)node_enter(NULL);
    if (world) { /* the test before has failed */
        world_fini(world);
    }
    memset(&stage, 0, sizeof(stage));
    memset(nodes, 0, sizeof(nodes));
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        nodes[i].index = i;
    }
    stage_store_reset();
    stage_is_automatic = plan->is_automatic;
    stage_logs_are_corrupt = false;
    stage_program_ms = 0;
    stage_server_version = 0;
    stage_cancels = true;
    stage.plan = *plan;
    stage.plan.node_count = plan->node_count ? plan->node_count : 1;
    *options = plan->node;
    options->lease_ms = options->lease_ms ? options->lease_ms : 5000;
    options->park_after_ms = options->park_after_ms ? options->park_after_ms : 60000;
    options->sagas_max = options->sagas_max ? options->sagas_max : 1000;
    options->payload_bytes_max = options->payload_bytes_max ? options->payload_bytes_max : 65536;
    options->calls_max = options->calls_max ? options->calls_max : 64;
    options->writers = options->writers ? options->writers : 1;
    options->readers = options->readers ? options->readers : 2;
    memory_setup();
    world_init(&stage.world, 1);
    world->is_traced = getenv("STAGE_TRACE") != NULL;
    world->pg = pg_new();
    list_init(&stage.calls);
    list_init(&stage.turns);
    pg_on_turn(world->pg, on_turn);
    pg_on_commit(world->pg, on_commit);
    GUARDED();
    for (uint32_t i = 0; i < stage.plan.node_count; i++) {
        node_start(&nodes[i], options);
    }
    if (plan->unready) {
        return;
    }
    for (uint32_t i = 0; i < stage.plan.node_count; i++) {
        stage_until(is_ready, &nodes[i], "engines that are ready");
    }
    if (plan->definitions) {
        struct reply *reply = stage_define(0, plan->definitions);

        if (reply->code != ERR_OK) {
            fail_msg("the definitions are refused: %s: %.*s", reply->err.message, SLICE_ARG(reply->fault));
        }
    }
    if (stage.plan.node_count > 1) {
        stage_run(4 * options->lease_ms); /* shards are shared out, and all engines know the definitions */
    }
}

void stage_again(uint32_t node)
{
    GUARDED();
    node_start(&nodes[node], &stage_options);
    stage_until(is_ready, &nodes[node], "an engine that is ready");
}

static bool are_gone(void *context)
{
    (void)context;
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        if (nodes[i].up) {
            return false;
        }
    }
    return true;
}

void stage_end(void)
{
    stage_cancels = true;
    stage_commit(0, COMMIT_OK, NULL);
    stage_store_release();
    GUARDED();
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        nodes[i].cut = false;
        if (nodes[i].up) {
            node_drain(&nodes[i], 1000);
        }
    }
    stage_until(are_gone, NULL, "engines that have left");
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        memory_drop(&nodes[i].memory);
    }
    stage_store_reset();
    pg_fini(world->pg);
    world_fini(world);
    world = NULL;
}

int stage_teardown(void **state)
{
    (void)state;
    if (world) {
        stage_end();
    }
    return 0;
}
