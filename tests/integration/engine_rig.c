/* See engine_rig.h. */
#include "tests/integration/engine_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/metric.h"
#include "tests/lib/test.h"
#include "tests/lib/usual_options.h"

struct host host;
struct engine *engine;
bool is_drained;
static bool is_ready;

/* The test can set the wall clock forward: a run rests after a minute. */
int64_t ahead_ms;
int64_t park_after_ms;
int64_t park_ahead_ms;
int64_t __real_loop_wall_ms(const struct loop *loop);
int64_t __wrap_loop_wall_ms(const struct loop *loop);

int64_t __wrap_loop_wall_ms(const struct loop *loop)
{
    return __real_loop_wall_ms(loop) + ahead_ms;
}

/* --- the engine --- */

static void on_ready(struct engine *given, void *context)
{
    (void)given;
    (void)context;
    is_ready = true;
}

void on_drained(void *context)
{
    (void)context;
    is_drained = true;
}

bool is_so(void *context)
{
    return *(bool *)context;
}

static struct engine_options options_of(const char *name)
{
    struct engine_options options = usual_options;

    options.dsn = cluster_dsn(&host.cluster);
    options.engine_name = name;
    options.lease_ms = 3000;
    options.park_after_ms = park_after_ms ? park_after_ms : usual_options.park_after_ms;
    options.park_ahead_ms = park_ahead_ms ? park_ahead_ms : usual_options.park_ahead_ms;
    return options;
}

void engine_rig_begin(void)
{
    struct engine_options options = options_of("one");

    options.on_ready = on_ready;
    is_ready = false;
    engine = engine_start(host.loop, &options);
    host_run_until(&host, is_so, &is_ready);
}

void engine_rig_end(void)
{
    is_drained = false;
    engine_drain(engine, 5000, on_drained, NULL);
    host_run_until(&host, is_so, &is_drained);
    engine_free(engine);
    engine = NULL;
}

/* --- another engine, which owns nothing as long as the first is there --- */

struct engine *other;

static bool has_database(void *context)
{
    struct engine_health health;

    engine_health(context, &health);
    return health.database && health.schema;
}

void engine_rig_begin_other(void)
{
    struct engine_options options = options_of("two");

    other = engine_start(host.loop, &options);
    host_run_until(&host, has_database, other);
}

void engine_rig_end_other(void)
{
    is_drained = false;
    engine_drain(other, 5000, on_drained, NULL);
    host_run_until(&host, is_so, &is_drained);
    engine_free(other);
    other = NULL;
}

/* --- requests --- */

static void on_done(struct engine_request *request)
{
    struct ask *ask = container_of(request, struct ask, request);

    assert_false(ask->done);
    ask->done = true;
}

void ask_begin(struct ask *ask)
{
    memset(ask, 0, sizeof(*ask));
    arena_init(&ask->arena, 4096);
    ask->request = (struct engine_request){
        .arena = &ask->arena, .namespace = SLICE("default"), .actor = SLICE("agent-7"), .done = on_done};
}

void ask_engine_for(struct ask *ask, void (*verb)(struct engine *, struct engine_request *),
                    const struct engine_request *what)
{
    ask_begin(ask);
    ask->request.in = what->in;
    verb(engine, &ask->request);
}

void ask_wait(struct ask *ask)
{
    host_run_until(&host, is_so, &ask->done);
}

void ask_end(struct ask *ask)
{
    arena_fini(&ask->arena);
}

void prepare_call(struct ask *ask, const char *run, const char *step, const char *tool, const char *args,
                  int64_t wait_ms)
{
    ask_begin(ask);
    ask->request.in.call.run = slice_of(run);
    ask->request.in.call.step = slice_of(step);
    ask->request.in.call.tool = slice_of(tool);
    ask->request.in.call.args = slice_of(args);
    ask->request.in.call.wait_ms = wait_ms;
}

void begin_call(struct ask *ask, const char *run, const char *step, const char *tool, const char *args, int64_t wait_ms)
{
    prepare_call(ask, run, step, tool, args, wait_ms);
    engine_call(engine, &ask->request);
}

void call(struct ask *ask, const char *run, const char *step, const char *tool, const char *args)
{
    begin_call(ask, run, step, tool, args, 20000);
    ask_wait(ask);
}

void call_in(struct ask *ask, struct saga_id saga, const char *step, const char *tool, const char *args,
             int64_t wait_ms)
{
    prepare_call(ask, NULL, step, tool, args, wait_ms);
    ask->request.in.call.saga = saga;
    engine_call(engine, &ask->request);
}

void assert_code_at(const char *file, int line, const struct ask *ask, enum err_code code)
{
    if (ask->request.code != code) {
        print_error("ERROR: %s instead of %s: %s (%s)\n", err_name(ask->request.code), err_name(code),
                    ask->request.err.message, ask->request.err.detail);
        _fail(file, line);
    }
}

void assert_member(struct slice object, const char *name, const char *value)
{
    struct slice found = json_member(object, name);

    if (!slice_is(found, value)) {
        fail_msg("%s is %.*s instead of %s in %.*s", name, SLICE_ARG(found), value, SLICE_ARG(object));
    }
}

/* --- tools --- */

static const char document[] =
    "{\"tools\":["
    "{\"name\":\"greet\",\"effect\":\"idempotent\",\"builtin\":{\"do\":\"echo\"},\"compensate\":{\"tool\":\"forget\"},"
    "\"input\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}},"
    "{\"name\":\"forget\",\"effect\":\"idempotent\",\"builtin\":{\"do\":\"echo\"}},"
    "{\"name\":\"nap\",\"effect\":\"idempotent\",\"builtin\":{\"do\":\"sleep\",\"for\":\"600ms\"},\"compensate\":{"
    "\"tool\":\"forget\"}},"
    "{\"name\":\"slow\",\"effect\":\"idempotent\",\"builtin\":{\"do\":\"sleep\",\"for\":\"3s\"},\"compensate\":{"
    "\"tool\":\"forget\"}},"
    "{\"name\":\"refuse\",\"effect\":\"idempotent\",\"builtin\":{\"do\":\"fail\"},\"compensate\":{\"tool\":\"forget\"}}"
    ","
    "{\"name\":\"lose\",\"effect\":\"once\",\"builtin\":{\"do\":\"fail\",\"outcome\":\"unknown\"},\"compensate\":{"
    "\"tool\":\"forget\"}},"
    "{\"name\":\"rare\",\"effect\":\"idempotent\",\"builtin\":{\"do\":\"echo\"},\"compensate\":{\"tool\":\"forget\"},"
    "\"rate\":{\"limit\":1,\"per\":\"30s\"}},"
    "{\"name\":\"either\",\"effect\":{\"if\":\"${ .args.dry | not "
    "}\",\"then\":\"once\",\"else\":\"read\"},\"builtin\":{\"do\":\"echo\"},"
    "\"compensate\":{\"tool\":\"forget\"}},"
    "{\"name\":\"send\",\"effect\":\"once\",\"terminal\":true,\"builtin\":{\"do\":\"echo\"}}"
    "]}";

void engine_rig_define_text(const char *text)
{
    struct ask ask;

    ask_engine(&ask, engine_define, .define = {.document = slice_of(text)});
    ask_wait(&ask);
    for (size_t i = 0; i < ask.request.faults.count; i++) {
        print_message("%.*s: %.*s\n", SLICE_ARG(ask.request.faults.items[i].pointer),
                      SLICE_ARG(ask.request.faults.items[i].detail));
    }
    ask_ends(&ask, ERR_OK);
}

void engine_rig_define(void)
{
    engine_rig_define_text(document);
}

struct saga_id open_with_budget(const char *budget)
{
    struct ask ask;

    ask_engine(&ask, engine_open_saga, .open = {.budget = slice_of(budget)});
    ask_ends(&ask, ERR_OK);
    return ask.request.saga;
}

struct saga_id open_saga(const char *id, int64_t deadline_ms)
{
    struct ask ask;

    ask_engine(&ask, engine_open_saga, .open = {.business_id = slice_of(id), .deadline_ms = deadline_ms});
    ask_ends(&ask, ERR_OK);
    return ask.request.saga;
}

struct saga_id start_saga(const char *saga, const char *input)
{
    struct ask ask;

    ask_engine(&ask, engine_start_saga, .start = {.saga = slice_of(saga), .input = slice_of(input)});
    ask_ends(&ask, ERR_OK);
    return ask.request.saga;
}

static bool memory_is_empty(void *context)
{
    (void)context;
    return gauge_value(GAUGE_SAGAS_LOADED) == 0;
}

void rig_until_memory_is_empty(void)
{
    host_run_until(&host, memory_is_empty, NULL);
}

static bool owns_shards(void *count)
{
    return gauge_value(GAUGE_SHARDS_OWNED) == *(int *)count;
}

void rig_take_shards_away(void)
{
    int none = 0, all = 64;

    host_sql(&host, "update sagad.shard set epoch = epoch + 1, owner = null, expires_at = now() - interval '1 s'");
    host_run_until(&host, owns_shards, &none);
    host_run_until(&host, owns_shards, &all);
}

void complete(struct ask *ask, struct saga_id id, int64_t wait_ms)
{
    ask_change(ask, VERB_COMPLETE, id, .wait_ms = wait_ms);
}

int engine_rig_setup(void **state)
{
    static const char *const settings[] = {"autovacuum=off",
                                           NULL}; /* the transactions of autovacuum would count as ours */

    (void)state;
    log_setup(LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
    host_start(&host, settings);
    engine_rig_begin();
    engine_rig_define();
    return 0;
}

int engine_rig_teardown(void **state)
{
    (void)state;
    engine_rig_end();
    host_stop(&host);
    return 0;
}
