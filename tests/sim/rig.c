/* See rig.h. */
#include "tests/sim/rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

#define RIG_NAMESPACE SLICE("sim")
#define PATIENCE_MS 60000
#define DRAIN_MS 2000
#define TOOLS_MAX 16

struct node_options rig_options;

static struct world rig_world;
static struct rig_tool tools[TOOLS_MAX];
static struct arena texts; /* the world's */
static struct buffer shown;

/* What must not be in this world (a broken CHECK, memory that was not freed) fails the test. */
#define GUARDED()                                                                                                      \
    do {                                                                                                               \
        if (setjmp(world->stop)) {                                                                                     \
            (void)node_enter(NULL);                                                                                    \
            fail_msg("%s: %s", world->invariant, world->violation);                                                    \
        }                                                                                                              \
    } while (0)

/* --- time --- */

bool rig_is_so(bool (*is)(void *context), void *context, int64_t ms)
{
    int64_t until_us = world->now_us + ms * 1000;

    GUARDED();
    while (!is(context)) {
        if (world->now_us > until_us || !world_step()) {
            return false;
        }
    }
    return true;
}

static bool is_never(void *context)
{
    (void)context;
    return false;
}

void rig_for(int64_t ms)
{
    (void)rig_is_so(is_never, NULL, ms);
}

void rig_until(bool (*is)(void *context), void *context)
{
    assert_true(rig_is_so(is, context, PATIENCE_MS));
}

void rig_inside(uint32_t node, void (*run)(struct engine *engine, void *context), void *context)
{
    struct node *before;

    GUARDED();
    before = node_enter(&nodes[node]);
    run(nodes[node].engine, context);
    node_leave(before);
    node_wake(&nodes[node], 0);
}

/* --- tools --- */

struct rig_call { /* in the engine's memory */
    struct call call;
    struct timer timer;
    struct rig_tool *tool;
    bool cancelled;
};

struct rig_tool *rig_tool(const char *name)
{
    for (size_t i = 0; i < TOOLS_MAX; i++) {
        if (!tools[i].name) {
            tools[i] = (struct rig_tool){.name = name, .response = "{}", .delay_ms = 1};
        }
        if (strcmp(tools[i].name, name) == 0) {
            return &tools[i];
        }
    }
    CHECK(false); /* too many */
    return NULL;
}

static void on_time(struct timer *timer)
{
    struct rig_call *r = container_of(timer, struct rig_call, timer);
    const struct rig_tool *tool = r->tool;
    struct outcome *outcome = &r->call.outcome;

    r->tool->under_way--;
    *outcome = (struct outcome){.kind = tool->kind, .unsent = tool->unsent, .retry_after_ms = tool->retry_after_ms};
    if (r->cancelled) {
        *outcome = (struct outcome){
            .kind = OUTCOME_UNKNOWN, .error = SLICE("cancelled"), .detail = SLICE("it is not awaited any more")};
    } else {
        outcome->error = tool->error ? slice_of(tool->error) : SLICE_NONE;
        outcome->detail = tool->detail ? slice_of(tool->detail) : SLICE_NONE;
        r->call.response = tool->response ? slice_of(tool->response) : SLICE_NONE;
        outcome->result = outcome->kind == OUTCOME_COMPLETED ? r->call.response : SLICE_NONE;
    }
    call_settle(&r->call);
}

static void tool_begin(struct call *call)
{
    struct rig_call *r = container_of(call, struct rig_call, call);
    struct slice name = json_string(json_member(call->settings, "tool"), call->arena);
    struct node *node = node_enter(NULL); /* its name is the rig's */

    r->tool = rig_tool(arena_text(&texts, name));
    node_leave(node);
    r->tool->calls++;
    r->tool->under_way++;
    if (r->tool->on_call) {
        r->tool->on_call(call);
    }
    timer_start(call->host->loop, &r->timer, r->tool->delay_ms, on_time);
}

static void tool_cancel(struct call *call)
{
    struct rig_call *r = container_of(call, struct rig_call, call);

    r->cancelled = true;
    timer_start(call->host->loop, &r->timer, 0, on_time);
}

static void tool_check(struct slice settings, struct slice pointer, enum key_place place, struct faults *faults)
{
    (void)place;
    if (!json_member(settings, "tool").ptr) {
        faults_add(faults, pointer, "the tools of the rig want {\"tool\": NAME}");
    }
}

static bool tool_shares_keys(struct slice undone, struct slice settings)
{
    (void)undone;
    (void)settings;
    return true;
}

static const struct adapter adapter_rig = {.name = "builtin",
                                           .call_size = sizeof(struct rig_call),
                                           .check = tool_check,
                                           .begin = tool_begin,
                                           .cancel = tool_cancel,
                                           .shares_keys = tool_shares_keys};

const struct adapter *__wrap_adapter_find(struct slice name);

const struct adapter *__wrap_adapter_find(struct slice name)
{
    return slice_is(name, adapter_rig.name) ? &adapter_rig : NULL;
}

/* --- the world --- */

void rig_begin(void)
{
    static bool is_set_up;

    if (!is_set_up) {
        memory_setup();
        is_set_up = true;
    }
    (void)node_enter(NULL);
    if (world) { /* the test before has failed */
        world_fini(world);
    }
    memset(nodes, 0, sizeof(nodes));
    memset(tools, 0, sizeof(tools));
    stage_store_reset();
    world = &rig_world;
    world_init(world, 1);
    world->is_healed = true; /* nothing goes wrong by chance */
    world->is_traced = getenv("RIG_TRACE") != NULL;
    world->pg = pg_new();
    arena_init(&texts, 4096);
    buffer_init(&shown, 1 << 20);
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        nodes[i].index = i;
    }
    rig_options = (struct node_options){.lease_ms = 5000,
                                        .park_after_ms = 60000,
                                        .sagas_max = 1000,
                                        .payload_bytes_max = 65536,
                                        .calls_max = 64,
                                        .writers = 1,
                                        .readers = 2};
}

static bool is_ready(void *context)
{
    const struct node *node = context;

    if (node->options.standbys >> node->index & 1) { /* it owns nothing while another lives */
        return node->engine->database_ready && node->engine->definitions_loaded && engine_is_current(node->engine);
    }
    return node->ready || node->refused;
}

void rig_start(uint32_t node)
{
    GUARDED();
    node_start(&nodes[node], &rig_options);
    rig_until(is_ready, &nodes[node]);
}

static bool is_down(void *context)
{
    const struct node *node = context;

    return !node->up;
}

static void drain(uint32_t node)
{
    GUARDED();
    node_drain(&nodes[node], DRAIN_MS);
}

void rig_end(void)
{
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        if (nodes[i].up) {
            drain(i);
            rig_until(is_down, &nodes[i]);
        }
    }
    (void)node_enter(NULL);
    stage_store_reset();
    buffer_fini(&shown);
    arena_fini(&texts);
    pg_fini(world->pg);
    world_fini(world);
    world = NULL;
}

/* --- requests --- */

static void on_done(struct engine_request *request)
{
    struct ask *ask = request->context;

    CHECK(!ask->done);
    ask->done = true;
}

void ask_begin(struct ask *ask, uint32_t node)
{
    struct node *before = node_enter(&nodes[node]);

    *ask = (struct ask){.node = node, .life = nodes[node].life};
    arena_init(&ask->arena, 2048);
    ask->request = (struct engine_request){
        .arena = &ask->arena, .namespace = RIG_NAMESPACE, .actor = SLICE("somebody"), .done = on_done, .context = ask};
    node_leave(before);
}

struct sending {
    struct ask *ask;
    request_verb *verb;
};

static void send_it(struct engine *engine, void *context)
{
    struct sending *sending = context;

    sending->ask->request.context = sending->ask;
    sending->verb(engine, &sending->ask->request);
    CHECK(!sending->ask->done); /* never inside the call */
}

void ask_send(struct ask *ask, request_verb *verb)
{
    rig_inside(ask->node, send_it, &(struct sending){ask, verb});
}

static bool is_done(void *context)
{
    const struct ask *ask = context;

    return ask->done;
}

void ask_wait(struct ask *ask)
{
    rig_until(is_done, ask);
}

enum err_code ask(struct ask *a, request_verb *verb)
{
    ask_send(a, verb);
    ask_wait(a);
    return a->request.code;
}

static void hang_up(struct engine *engine, void *context)
{
    struct ask *ask = context;

    if (!ask->done) {
        engine_cancel(engine, &ask->request);
    }
}

void ask_cancel(struct ask *ask)
{
    rig_inside(ask->node, hang_up, ask);
}

void ask_end(struct ask *ask)
{
    if (nodes[ask->node].up && nodes[ask->node].life == ask->life) { /* else its memory is gone */
        struct node *before = node_enter(&nodes[ask->node]);

        arena_fini(&ask->arena);
        node_leave(before);
    }
}

void assert_code(const struct ask *ask, enum err_code code)
{
    if (ask->request.code != code) {
        for (size_t i = 0; i < ask->request.faults.count; i++) {
            print_message("%.*s: %.*s\n", SLICE_ARG(ask->request.faults.items[i].pointer),
                          SLICE_ARG(ask->request.faults.items[i].detail));
        }
        fail_msg("%s instead of %s: %s (%s)", err_name(ask->request.code), err_name(code), ask->request.err.message,
                 ask->request.err.detail);
    }
}

void rig_define(const char *document)
{
    struct ask a;
    char *text = arena_text(&texts, slice_of(document));

    for (char *c = text; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    ask_begin(&a, 0);
    a.request.in.define.document = slice_of(text);
    (void)ask(&a, engine_define);
    assert_code(&a, ERR_OK);
    ask_end(&a);
    for (uint32_t i = 1; i < NODES_MAX; i++) { /* the others hear of it */
        if (nodes[i].up) {
            rig_for(2000);
            break;
        }
    }
}

struct saga_id rig_saga(uint32_t node, const char *saga, const char *input)
{
    struct ask a;

    ask_begin(&a, node);
    a.request.in.start.saga = slice_of(saga);
    a.request.in.start.input = slice_of(input);
    (void)ask(&a, engine_start_saga);
    assert_code(&a, ERR_OK);
    ask_end(&a);
    return a.request.saga;
}

struct saga_id rig_open(uint32_t node, const char *business_id)
{
    struct ask a;

    ask_begin(&a, node);
    a.request.in.open.business_id = slice_of(business_id);
    (void)ask(&a, engine_open_saga);
    assert_code(&a, ERR_OK);
    ask_end(&a);
    return a.request.saga;
}

struct slice rig_show(uint32_t node, struct saga_id id)
{
    struct ask a;

    ask_begin(&a, node);
    a.request.in.get.id = id;
    (void)ask(&a, engine_get_saga);
    assert_code(&a, ERR_OK);
    buffer_reset(&shown);
    buffer_put_slice(&shown, a.request.answer);
    ask_end(&a);
    return buffer_slice(&shown);
}

void rig_until_status(uint32_t node, struct saga_id id, const char *status)
{
    for (int64_t waited_ms = 0; waited_ms < PATIENCE_MS; waited_ms += 100) {
        if (json_string_is(json_member(rig_show(node, id), "status"), status)) {
            return;
        }
        rig_for(100);
    }
    fail_msg("it is not %s: %.*s", status, SLICE_ARG(rig_show(node, id)));
}
