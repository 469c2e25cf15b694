/*
 * Agents' calls through a whole engine on a PostgreSQL of its own: what is new is carried out, what is a repeat is not, whoever
 * waits is answered, and none of it depends on the saga being in memory or on the engine staying alive.
 */
#include "tests/integration/store_host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/log.h"
#include "base/metric.h"
#include "run/engine.h"

static struct host host;
static struct engine *engine;
static bool is_ready, is_drained;

/* The wall clock can be set on: a run rests after a minute. */
static int64_t ahead_ms;
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

static void on_drained(void *context)
{
    (void)context;
    is_drained = true;
}

static bool is_so(void *context)
{
    return *(bool *)context;
}

static void begin_engine(void)
{
    struct engine_options options = {.dsn = cluster_dsn(&host.cluster), .engine_name = "one", .lease_ms = 3000, .on_ready = on_ready};

    is_ready = false;
    engine = engine_start(host.loop, &options);
    host_run_until(&host, is_so, &is_ready);
}

static void end_engine(void)
{
    is_drained = false;
    engine_drain(engine, 5000, on_drained, NULL);
    host_run_until(&host, is_so, &is_drained);
    engine_free(engine);
    engine = NULL;
}

/* --- another engine, which owns nothing as long as the first is there --- */

static struct engine *other;

static bool has_database(void *context)
{
    struct engine_health health;

    engine_health(context, &health);
    return health.database && health.schema;
}

static void begin_other(void)
{
    struct engine_options options = {.dsn = cluster_dsn(&host.cluster), .engine_name = "two", .lease_ms = 3000};

    other = engine_start(host.loop, &options);
    host_run_until(&host, has_database, other);
}

static void end_other(void)
{
    is_drained = false;
    engine_drain(other, 5000, on_drained, NULL);
    host_run_until(&host, is_so, &is_drained);
    engine_free(other);
    other = NULL;
}

/* --- requests --- */

struct ask {
    struct engine_request request;
    struct arena arena;
    bool done;
};

static void on_done(struct engine_request *request)
{
    struct ask *ask = container_of(request, struct ask, request);

    assert_false(ask->done);
    ask->done = true;
}

static void ask_begin(struct ask *ask)
{
    memset(ask, 0, sizeof(*ask));
    arena_init(&ask->arena, 4096);
    ask->request = (struct engine_request){.arena = &ask->arena, .namespace = SLICE("default"), .actor = SLICE("agent-7"), .done = on_done};
}

static void ask_wait(struct ask *ask)
{
    host_run_until(&host, is_so, &ask->done);
}

static void ask_end(struct ask *ask)
{
    arena_fini(&ask->arena);
}

static void prepare_call(struct ask *ask, const char *run, const char *step, const char *tool, const char *args, int64_t wait_ms)
{
    ask_begin(ask);
    ask->request.in.call.run = slice_of(run);
    ask->request.in.call.step = slice_of(step);
    ask->request.in.call.tool = slice_of(tool);
    ask->request.in.call.args = slice_of(args);
    ask->request.in.call.wait_ms = wait_ms;
}

static void begin_call(struct ask *ask, const char *run, const char *step, const char *tool, const char *args, int64_t wait_ms)
{
    prepare_call(ask, run, step, tool, args, wait_ms);
    engine_call(engine, &ask->request);
}

static void call(struct ask *ask, const char *run, const char *step, const char *tool, const char *args)
{
    begin_call(ask, run, step, tool, args, 20000);
    ask_wait(ask);
}

static void call_in(struct ask *ask, struct saga_id saga, const char *step, const char *tool, const char *args, int64_t wait_ms)
{
    prepare_call(ask, NULL, step, tool, args, wait_ms);
    ask->request.in.call.saga = saga;
    engine_call(engine, &ask->request);
}

static void assert_code(const struct ask *ask, enum err_code code)
{
    if (ask->request.code != code) {
        fail_msg("%s instead of %s: %s (%s)", err_name(ask->request.code), err_name(code), ask->request.err.message, ask->request.err.detail);
    }
}

static void assert_member(struct slice object, const char *name, const char *value)
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
    "{\"name\":\"nap\",\"effect\":\"idempotent\",\"builtin\":{\"do\":\"sleep\",\"for\":\"600ms\"},\"compensate\":{\"tool\":\"forget\"}},"
    "{\"name\":\"slow\",\"effect\":\"idempotent\",\"builtin\":{\"do\":\"sleep\",\"for\":\"3s\"},\"compensate\":{\"tool\":\"forget\"}},"
    "{\"name\":\"refuse\",\"effect\":\"idempotent\",\"builtin\":{\"do\":\"fail\"},\"compensate\":{\"tool\":\"forget\"}},"
    "{\"name\":\"lose\",\"effect\":\"once\",\"builtin\":{\"do\":\"fail\",\"outcome\":\"unknown\"},\"compensate\":{\"tool\":\"forget\"}},"
    "{\"name\":\"send\",\"effect\":\"once\",\"terminal\":true,\"builtin\":{\"do\":\"echo\"}}"
    "]}";

static void define(void)
{
    struct ask ask;

    ask_begin(&ask);
    ask.request.in.define.document = slice_of(document);
    engine_define(engine, &ask.request);
    ask_wait(&ask);
    for (size_t i = 0; i < ask.request.faults.count; i++) {
        print_message("%.*s: %.*s\n", SLICE_ARG(ask.request.faults.items[i].pointer), SLICE_ARG(ask.request.faults.items[i].detail));
    }
    assert_code(&ask, ERR_OK);
    ask_end(&ask);
}

static struct saga_id open_saga(const char *id, int64_t deadline_ms)
{
    struct ask ask;

    ask_begin(&ask);
    ask.request.in.open.business_id = slice_of(id);
    ask.request.in.open.deadline_ms = deadline_ms;
    engine_open_saga(engine, &ask.request);
    ask_wait(&ask);
    assert_code(&ask, ERR_OK);
    ask_end(&ask);
    return ask.request.saga;
}

static void complete(struct ask *ask, struct saga_id id, int64_t wait_ms)
{
    ask_begin(ask);
    ask->request.in.complete.id = id;
    ask->request.in.complete.wait_ms = wait_ms;
    engine_complete_saga(engine, &ask->request);
}

/* --- promises --- */

static void a_new_call_is_carried_out_and_a_repeat_is_answered_from_the_record(void **state)
{
    struct ask first, again;
    uint64_t calls = metric_value(METRIC_CALLS);

    (void)state;
    call(&first, "run-1", "hello", "greet", "{\"name\":\"Ada\"}");
    assert_code(&first, ERR_OK);
    assert_false(first.request.call.going_on);
    assert_false(first.request.call.replayed);
    assert_member(first.request.answer, "state", "\"completed\"");
    assert_member(first.request.answer, "result", "{\"name\":\"Ada\"}");
    assert_member(first.request.answer, "run", "\"run-1\"");
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 1);
    call(&again, "run-1", "hello", "greet", "{\"name\":\"Ada\"}");
    assert_code(&again, ERR_OK);
    assert_true(again.request.call.replayed);
    assert_true(again.request.call.first_ms > 0);
    assert_true(slice_equal(first.request.call.key, again.request.call.key));
    assert_member(again.request.answer, "result", "{\"name\":\"Ada\"}");
    assert_member(first.request.answer, "duplicate", "false");
    assert_member(again.request.answer, "duplicate", "true");
    assert_member(again.request.answer, "duplicates_seen", "1");
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 1);
    ask_end(&first);
    ask_end(&again);
}

static void callers_at_once_share_one_call_and_one_new_run(void **state)
{
    enum { CALLERS = 32 };
    static struct ask asks[CALLERS];
    uint64_t calls = metric_value(METRIC_CALLS);
    int replayed = 0;

    (void)state;
    for (int i = 0; i < CALLERS; i++) {
        begin_call(&asks[i], "run-race", "nap", "nap", "{}", 20000);
    }
    for (int i = 0; i < CALLERS; i++) {
        ask_wait(&asks[i]);
        assert_code(&asks[i], ERR_OK);
        assert_false(asks[i].request.call.going_on);
        replayed += asks[i].request.call.replayed;
        assert_true(slice_equal(asks[i].request.call.key, asks[0].request.call.key));
        if (i > 0) {
            ask_end(&asks[i]);
        }
    }
    ask_end(&asks[0]);
    assert_int_equal(replayed, CALLERS - 1);
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 1);
    assert_int_equal(host_number(&host, "select count(*) from sagad.saga where business_id = 'run-race'"), 1);
}

static void a_wait_that_is_over_ends_the_wait_and_not_the_operation(void **state)
{
    struct ask first, second, later;
    uint64_t calls = metric_value(METRIC_CALLS);

    (void)state;
    begin_call(&first, "run-2", "nap", "nap", "{}", 50);
    ask_wait(&first);
    assert_code(&first, ERR_OK);
    assert_true(first.request.call.going_on);
    assert_member(first.request.answer, "state", "\"in_flight\"");
    begin_call(&second, "run-2", "nap", "nap", "{}", 50);
    ask_wait(&second);
    assert_code(&second, ERR_IN_FLIGHT);
    assert_true(second.request.call.retry_after_ms > 0);
    assert_member(second.request.call.operation, "state", "\"in_flight\"");
    call(&later, "run-2", "nap", "nap", "{}");
    assert_code(&later, ERR_OK);
    assert_true(later.request.call.replayed);
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 1);
    ask_end(&first);
    ask_end(&second);
    ask_end(&later);
}

static void a_client_that_goes_away_takes_nothing_with_it(void **state)
{
    struct ask first, later;
    uint64_t calls = metric_value(METRIC_CALLS);

    (void)state;
    begin_call(&first, "run-3", "nap", "nap", "{}", 20000);
    host_run_ms(&host, 200);
    engine_cancel(engine, &first.request);
    ask_wait(&first);
    assert_code(&first, ERR_TIMEOUT);
    call(&later, "run-3", "nap", "nap", "{}");
    assert_code(&later, ERR_OK);
    assert_true(later.request.call.replayed);
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 1);
    ask_end(&first);
    ask_end(&later);
}

static void what_failed_and_what_nobody_knows_is_told_with_its_record(void **state)
{
    struct ask failed, lost, again;

    (void)state;
    call(&failed, "run-4", "no", "refuse", "{}");
    assert_code(&failed, ERR_TOOL_FAILED);
    assert_member(failed.request.call.operation, "state", "\"failed\"");
    call(&lost, "run-4", "gone", "lose", "{}");
    assert_code(&lost, ERR_AWAITING);
    assert_true(lost.request.call.operation.ptr != NULL);
    call(&again, "run-4", "gone", "lose", "{}");
    assert_code(&again, ERR_AWAITING);
    assert_true(again.request.call.retry_after_ms > 0);
    ask_end(&failed);
    ask_end(&lost);
    ask_end(&again);
}

static void what_cannot_be_called_is_refused_before_anything_is_durable(void **state)
{
    struct ask ask;

    (void)state;
    call(&ask, "run-5", "x", "nobody", "{}");
    assert_code(&ask, ERR_NOT_FOUND);
    ask_end(&ask);
    call(&ask, "run-5", "x", "greet", "{\"name\":7}");
    assert_code(&ask, ERR_INVALID);
    assert_int_equal(ask.request.faults.count, 1);
    assert_true(slice_is(ask.request.faults.items[0].pointer, "/args/name"));
    ask_end(&ask);
    assert_int_equal(host_number(&host, "select count(*) from sagad.saga where business_id = 'run-5'"), 0);
}

static void calls_of_a_run_survive_the_engine(void **state)
{
    struct ask first, again;

    (void)state;
    call(&first, "run-6", "hello", "greet", "{\"name\":\"Eve\"}");
    assert_code(&first, ERR_OK);
    end_engine();
    begin_engine();
    call(&again, "run-6", "hello", "greet", "{\"name\":\"Eve\"}");
    assert_code(&again, ERR_OK);
    assert_true(again.request.call.replayed);
    assert_true(slice_equal(first.request.call.key, again.request.call.key));
    ask_end(&first);
    ask_end(&again);
}

static bool is_at_rest(void *run)
{
    return host_number(&host, "select count(*) from sagad.saga where business_id = '%s' and ended_at is not null", (const char *)run) == 1;
}

static void a_run_that_rests_is_read_back_for_the_next_call(void **state)
{
    static char run[] = "run-7";
    struct ask ask;

    (void)state;
    call(&ask, run, "hello", "greet", "{\"name\":\"Bob\"}");
    assert_code(&ask, ERR_OK);
    ask_end(&ask);
    end_engine();
    ahead_ms += 61000;
    begin_engine();
    host_run_until(&host, is_at_rest, run);
    /* A repeat, by two at once: one load, no wakening without need, and never another call. */
    struct ask one, two;
    uint64_t calls = metric_value(METRIC_CALLS);

    prepare_call(&one, run, "hello", "greet", "{\"name\":\"Bob\"}", 20000);
    prepare_call(&two, run, "hello", "greet", "{\"name\":\"Bob\"}", 20000);
    one.request.in.call.conversation_turn = two.request.in.call.conversation_turn = SLICE("2"); /* else it were the same call three times */
    engine_call(engine, &one.request);
    engine_call(engine, &two.request);
    ask_wait(&one);
    ask_wait(&two);
    assert_code(&one, ERR_OK);
    assert_code(&two, ERR_OK);
    assert_true(one.request.call.replayed && two.request.call.replayed);
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 0);
    ask_end(&one);
    ask_end(&two);
    /* Something new wakes it; it is found after a restart, although it is old. */
    begin_call(&one, run, "long", "slow", "{}", 100);
    ask_wait(&one);
    assert_code(&one, ERR_OK);
    assert_true(one.request.call.going_on);
    assert_int_equal(host_number(&host, "select count(*) from sagad.awake"), 1);
    assert_int_equal(host_number(&host, "select count(*) from sagad.saga where business_id = '%s' and ended_at is null", run), 1);
    end_engine();
    begin_engine();
    call(&two, run, "long", "slow", "{}");
    assert_code(&two, ERR_OK);
    assert_int_equal(host_number(&host, "select count(*) from sagad.saga where business_id = '%s'", run), 1);
    ask_end(&one);
    ask_end(&two);
}

static void an_open_saga_takes_calls_until_it_is_complete_and_answers_repeats_after(void **state)
{
    struct saga_id id = open_saga("order-1", 0), again = open_saga("order-1", 0);
    struct ask ask;

    (void)state;
    call_in(&ask, id, "hello", "greet", "{\"name\":\"Kim\"}", 20000);
    ask_wait(&ask);
    assert_code(&ask, ERR_OK);
    ask_end(&ask);
    assert_true(uuid_equal(&again.uuid, &id.uuid));
    complete(&ask, id, 0);
    ask_wait(&ask);
    assert_code(&ask, ERR_OK);
    assert_member(ask.request.answer, "status", "\"completed\"");
    ask_end(&ask);
    uint64_t calls = metric_value(METRIC_CALLS);

    call_in(&ask, id, "hello", "greet", "{\"name\":\"Kim\"}", 20000);
    ask_wait(&ask);
    assert_code(&ask, ERR_OK);
    assert_true(ask.request.call.replayed);
    ask_end(&ask);
    call_in(&ask, id, "more", "greet", "{\"name\":\"Jim\"}", 20000);
    ask_wait(&ask);
    assert_code(&ask, ERR_CLOSED);
    ask_end(&ask);
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 0);
}

static void another_namespace_sees_nothing(void **state)
{
    struct saga_id id = open_saga("order-2", 0);
    struct ask ask;

    (void)state;
    prepare_call(&ask, NULL, "hello", "greet", "{}", 0);
    ask.request.in.call.saga = id;
    ask.request.namespace = SLICE("elsewhere");
    engine_call(engine, &ask.request);
    ask_wait(&ask);
    assert_code(&ask, ERR_NOT_FOUND);
    ask_end(&ask);
    ask_begin(&ask);
    ask.request.namespace = SLICE("elsewhere");
    ask.request.in.complete.id = id;
    engine_complete_saga(engine, &ask.request);
    ask_wait(&ask);
    assert_code(&ask, ERR_NOT_FOUND);
    ask_end(&ask);
}

static void completion_waits_for_what_is_not_settled(void **state)
{
    struct saga_id id = open_saga("order-3", 0);
    struct ask nap, early, late;

    (void)state;
    call_in(&nap, id, "nap", "nap", "{}", 20000);
    host_run_ms(&host, 100);
    complete(&early, id, 50);
    complete(&late, id, 20000);
    ask_wait(&early);
    assert_code(&early, ERR_UNSETTLED);
    ask_wait(&late);
    assert_code(&late, ERR_OK);
    assert_member(late.request.answer, "status", "\"completed\"");
    ask_wait(&nap);
    assert_code(&nap, ERR_OK);
    ask_end(&nap);
    ask_end(&early);
    ask_end(&late);
}

static void an_aborted_open_saga_is_undone(void **state)
{
    struct saga_id id = open_saga("order-4", 0);
    struct ask ask;

    (void)state;
    call_in(&ask, id, NULL, "greet", "{\"name\":\"Lee\"}", 20000);
    ask_wait(&ask);
    assert_code(&ask, ERR_OK);
    assert_member(ask.request.answer, "step", "\"~greet\"");
    ask_end(&ask);
    ask_begin(&ask);
    ask.request.in.abort.id = id;
    engine_abort_saga(engine, &ask.request);
    ask_wait(&ask);
    assert_code(&ask, ERR_OK);
    ask_end(&ask);
    ask_begin(&ask);
    ask.request.in.get.id = id;
    ask.request.in.get.wait_ms = 20000;
    engine_get_saga(engine, &ask.request);
    ask_wait(&ask);
    assert_code(&ask, ERR_OK);
    assert_member(ask.request.answer, "status", "\"compensated\"");
    ask_end(&ask);
}

static void an_agent_that_vanished_is_undone_at_the_deadline(void **state)
{
    struct saga_id id = open_saga("order-5", 1500);
    struct ask ask;

    (void)state;
    call_in(&ask, id, "hello", "greet", "{\"name\":\"Lee\"}", 20000);
    ask_wait(&ask);
    assert_code(&ask, ERR_OK);
    ask_end(&ask);
    ask_begin(&ask);
    ask.request.in.get.id = id;
    ask.request.in.get.wait_ms = 20000;
    engine_get_saga(engine, &ask.request);
    ask_wait(&ask);
    assert_member(ask.request.answer, "status", "\"compensated\"");
    ask_end(&ask);
}

static void a_bypass_permits_one_more_execution_and_no_second(void **state)
{
    struct ask first, ask;
    uint64_t calls = metric_value(METRIC_CALLS);
    struct op_key key;

    (void)state;
    call(&first, "run-8", "hello", "greet", "{\"name\":\"Mia\"}");
    assert_code(&first, ERR_OK);
    assert_true(uuid_parse(first.request.call.key, &key.uuid));
    ask_begin(&ask);
    ask.request.in.bypass.key = key;
    ask.request.in.bypass.reason = SLICE("the customer asked for it");
    engine_bypass(engine, &ask.request);
    ask_wait(&ask);
    assert_code(&ask, ERR_OK);
    assert_member(ask.request.answer, "reason", "\"the customer asked for it\"");
    ask_end(&ask);
    call(&ask, "run-8", "hello", "greet", "{\"name\":\"Mia\"}");
    assert_code(&ask, ERR_OK);
    assert_false(ask.request.call.replayed);
    assert_false(slice_equal(ask.request.call.key, first.request.call.key));
    ask_end(&ask);
    prepare_call(&ask, "run-8", "hello", "greet", "{\"name\":\"Mia\"}", 20000);
    ask.request.in.call.conversation_turn = SLICE("2"); /* else it is the third of the same, with the same answer */
    engine_call(engine, &ask.request);
    ask_wait(&ask);
    assert_code(&ask, ERR_OK);
    assert_true(ask.request.call.replayed);
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 2);
    ask_end(&ask);
    ask_end(&first);
}

static void runs_are_listed_only_to_who_asks_for_them(void **state)
{
    struct ask ask;

    (void)state;
    call(&ask, "run-9", "hello", "greet", "{\"name\":\"Zoe\"}");
    ask_end(&ask);
    ask_begin(&ask);
    ask.request.in.sagas.limit = 500;
    engine_list_sagas(engine, &ask.request);
    ask_wait(&ask);
    assert_code(&ask, ERR_OK);
    assert_null(memmem(ask.request.answer.ptr, ask.request.answer.len, "~run", 4));
    ask_end(&ask);
    ask_begin(&ask);
    ask.request.in.sagas.saga = SLICE("~run");
    ask.request.in.sagas.business_id = SLICE("run-9");
    engine_list_sagas(engine, &ask.request);
    ask_wait(&ask);
    assert_int_equal(json_count(ask.request.answer), 1);
    ask_end(&ask);
    ask_begin(&ask);
    ask.request.in.operations.run = SLICE("run-9");
    engine_list_operations(engine, &ask.request);
    ask_wait(&ask);
    assert_code(&ask, ERR_OK);
    assert_int_equal(json_count(ask.request.answer), 1);
    ask_end(&ask);
}

static void figures_of_tools_say_what_was_new_and_what_was_not(void **state)
{
    struct buffer text;
    struct ask ask;

    (void)state;
    buffer_init(&text, 1 << 20);
    engine_write_tool_metrics(engine, &text);
    assert_non_null(strstr(buffer_c(&text), "sagad_tool_operations_total{namespace=\"default\",tool=\"greet\"} "));
    assert_non_null(strstr(buffer_c(&text), "sagad_tool_duplicates_total{namespace=\"default\",tool=\"greet\",decision=\"replayed\"} "));
    assert_non_null(strstr(buffer_c(&text), "# TYPE sagad_tool_unknown_open gauge"));
    buffer_fini(&text);
    ask_begin(&ask);
    engine_get_stats(engine, &ask.request);
    ask_wait(&ask);
    assert_code(&ask, ERR_OK);
    assert_true(json_count(json_member(ask.request.answer, "tools")) > 0);
    ask_end(&ask);
}

static void callers_at_two_engines_share_one_call(void **state)
{
    enum { CALLERS = 32 };
    static struct ask asks[CALLERS];
    uint64_t calls = metric_value(METRIC_CALLS);
    int replayed = 0;

    (void)state;
    begin_other();
    for (int i = 0; i < CALLERS; i++) {
        prepare_call(&asks[i], "run-two", "nap", "nap", "{}", 20000);
        engine_call(i % 2 ? engine : other, &asks[i].request);
    }
    for (int i = 0; i < CALLERS; i++) {
        ask_wait(&asks[i]);
        assert_code(&asks[i], ERR_OK);
        assert_false(asks[i].request.call.going_on);
        replayed += asks[i].request.call.replayed;
    }
    for (int i = 0; i < CALLERS; i++) {
        ask_end(&asks[i]);
    }
    assert_int_equal(replayed, CALLERS - 1);
    assert_int_equal(metric_value(METRIC_CALLS) - calls, 1);
    end_other();
}

static void what_an_engine_owns_not_it_asks_the_owner_about(void **state)
{
    struct ask ask;
    struct saga_id id;

    (void)state;
    begin_other();
    ask_begin(&ask);
    ask.request.in.open.business_id = SLICE("order-remote");
    engine_open_saga(other, &ask.request);
    ask_wait(&ask);
    assert_code(&ask, ERR_OK);
    id = ask.request.saga;
    ask_end(&ask);
    prepare_call(&ask, NULL, "hello", "greet", "{\"name\":\"Ann\"}", 20000);
    ask.request.in.call.saga = id;
    engine_call(other, &ask.request);
    ask_wait(&ask);
    assert_code(&ask, ERR_OK);
    assert_member(ask.request.answer, "result", "{\"name\":\"Ann\"}");
    ask_end(&ask);
    prepare_call(&ask, NULL, "no", "refuse", "{}", 20000);
    ask.request.in.call.saga = id;
    engine_call(other, &ask.request);
    ask_wait(&ask);
    assert_code(&ask, ERR_TOOL_FAILED);
    assert_member(ask.request.call.operation, "state", "\"failed\"");
    ask_end(&ask);
    ask_begin(&ask);
    ask.request.in.complete.id = id;
    engine_complete_saga(other, &ask.request);
    ask_wait(&ask);
    assert_code(&ask, ERR_OK);
    assert_member(ask.request.answer, "status", "\"completed\"");
    ask_end(&ask);
    end_other();
}

static void callers_outlive_the_engine_that_made_their_call(void **state)
{
    struct ask here, there;

    (void)state;
    begin_other();
    begin_call(&here, "run-over", "long", "slow", "{}", 30000);
    prepare_call(&there, "run-over", "long", "slow", "{}", 30000);
    host_run_ms(&host, 300);
    engine_call(other, &there.request);
    host_run_ms(&host, 500);
    is_drained = false;
    engine_drain(engine, 100, on_drained, NULL); /* before the call is settled */
    host_run_until(&host, is_so, &is_drained);
    engine_free(engine);
    ask_wait(&here);
    assert_code(&here, ERR_OK);
    assert_true(here.request.call.going_on);
    ask_wait(&there);
    assert_code(&there, ERR_OK);
    assert_false(there.request.call.going_on);
    assert_member(there.request.answer, "state", "\"completed\"");
    ask_end(&here);
    ask_end(&there);
    engine = other;
    other = NULL;
}

static void a_caller_whose_shard_was_taken_away_is_answered_all_the_same(void **state)
{
    struct ask ask;

    (void)state;
    begin_call(&ask, "run-taken", "long", "slow", "{}", 30000);
    host_run_ms(&host, 500);
    host_sql(&host, "update sagad.shard set epoch = epoch + 1, owner = null, expires_at = now() - interval '1 s'");
    ask_wait(&ask);
    assert_code(&ask, ERR_OK);
    assert_false(ask.request.call.going_on);
    assert_member(ask.request.answer, "state", "\"completed\"");
    ask_end(&ask);
}

static int setup(void **state)
{
    (void)state;
    log_setup(LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
    host_start(&host, NULL);
    begin_engine();
    define();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    end_engine();
    host_stop(&host);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_call_is_carried_out_and_a_repeat_is_answered_from_the_record),
        cmocka_unit_test(callers_at_once_share_one_call_and_one_new_run),
        cmocka_unit_test(a_wait_that_is_over_ends_the_wait_and_not_the_operation),
        cmocka_unit_test(a_client_that_goes_away_takes_nothing_with_it),
        cmocka_unit_test(what_failed_and_what_nobody_knows_is_told_with_its_record),
        cmocka_unit_test(what_cannot_be_called_is_refused_before_anything_is_durable),
        cmocka_unit_test(an_open_saga_takes_calls_until_it_is_complete_and_answers_repeats_after),
        cmocka_unit_test(another_namespace_sees_nothing),
        cmocka_unit_test(completion_waits_for_what_is_not_settled),
        cmocka_unit_test(an_aborted_open_saga_is_undone),
        cmocka_unit_test(an_agent_that_vanished_is_undone_at_the_deadline),
        cmocka_unit_test(a_bypass_permits_one_more_execution_and_no_second),
        cmocka_unit_test(runs_are_listed_only_to_who_asks_for_them),
        cmocka_unit_test(figures_of_tools_say_what_was_new_and_what_was_not),
        cmocka_unit_test(callers_at_two_engines_share_one_call),
        cmocka_unit_test(what_an_engine_owns_not_it_asks_the_owner_about),
        cmocka_unit_test(callers_outlive_the_engine_that_made_their_call),
        cmocka_unit_test(a_caller_whose_shard_was_taken_away_is_answered_all_the_same),
        cmocka_unit_test(calls_of_a_run_survive_the_engine),
        cmocka_unit_test(a_run_that_rests_is_read_back_for_the_next_call),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
