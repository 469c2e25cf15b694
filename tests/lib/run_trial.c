/* See run_trial.h: time, tools and clients. */
#include "tests/lib/run_trial_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "io/http/client.h"
#include "io/postgres/pool.h"
#include "io/process/jq.h"

#define WALL_START_MS INT64_C(1700000000000)
#define BOOT_START_US INT64_C(1000000000)
#define STEPS_MAX 100000 /* of one instant: it goes round and round */

struct trial trial;
struct trial_inside inside;

struct loop { /* there is one, and it is `inside` */
    int nothing;
};
static struct loop the_loop;

/* --- the loop --- */

int64_t loop_wall_ms(const struct loop *loop)
{
    (void)loop;
    return WALL_START_MS + trial.now_us / 1000;
}

void loop_follow(struct loop *loop, int64_t wall_ms, int64_t boot_ms)
{
    (void)loop;
    (void)wall_ms;
    (void)boot_ms;
}

int64_t loop_boot_us(const struct loop *loop)
{
    (void)loop;
    return BOOT_START_US + trial.now_us;
}

int64_t loop_boot_ms(const struct loop *loop)
{
    return loop_boot_us(loop) / 1000;
}

int64_t loop_boot_ms_now(void)
{
    return loop_boot_ms(&the_loop);
}

void loop_clock_update(struct loop *loop)
{
    (void)loop;
}

void timer_start(struct loop *loop, struct timer *timer, int64_t delay_ms, void (*fire)(struct timer *timer))
{
    agenda_timer_start(&inside.agenda, timer, loop_boot_us(loop), delay_ms, fire);
}

void timer_stop(struct loop *loop, struct timer *timer)
{
    (void)loop;
    agenda_timer_stop(&inside.agenda, timer);
}

void loop_defer(struct loop *loop, struct deferred *deferred, void (*run)(struct deferred *deferred))
{
    (void)loop;
    (void)agenda_defer(&inside.agenda, deferred, run);
}

void loop_defer_first(struct loop *loop, struct deferred *deferred, void (*run)(struct deferred *deferred))
{
    (void)loop;
    (void)agenda_defer_first(&inside.agenda, deferred, run);
}

void loop_defer_cancel(struct loop *loop, struct deferred *deferred)
{
    (void)loop;
    agenda_defer_cancel(&inside.agenda, deferred);
}

/* --- what is asked, and when it is answered --- */

void trial_ask(enum asked kind, void *request)
{
    struct pending *pending = memory_alloc(sizeof(*pending));

    trial.asked[kind]++;
    pending->kind = kind;
    pending->request = request;
    list_push(inside.holds[kind] && !inside.stops ? &inside.kept : &inside.pending, &pending->link);
}

void trial_answer_as(enum asked kind, void *request, enum err_code code)
{
    if (kind == ASKED_CALL) {
        struct call *call = request;

        call->outcome = (struct outcome){.kind = OUTCOME_COMPLETED, .result = SLICE("{}")};
        call->response = SLICE("{\"status\":200}");
        call_settle(call);
    } else {
        trial_store_answer(kind, request, code);
    }
}

static bool answer_one(void)
{
    struct list_link *link = list_pop(&inside.pending);

    if (link) {
        struct pending pending = *container_of(link, struct pending, link);

        free(container_of(link, struct pending, link));
        trial_answer_as(pending.kind, pending.request, ERR_OK);
    }
    return link != NULL;
}

static bool step(void)
{
    bool went_on = false;

    agenda_deferred_begin(&inside.agenda);
    while (agenda_deferred_next(&inside.agenda)) {
        went_on = true;
    }
    went_on = answer_one() || went_on;
    agenda_timers_begin(&inside.agenda);
    while (agenda_timers_next(&inside.agenda, loop_boot_ms(&the_loop))) {
        went_on = true;
    }
    return trial_store_closes() || went_on;
}

static void settle(void)
{
    int steps = 0;

    while (step()) {
        assert_true(++steps < STEPS_MAX);
    }
}

void trial_run(int64_t ms)
{
    int64_t until_us = trial.now_us + ms * 1000;

    settle();
    while (trial.now_us < until_us) {
        int64_t due_ms = agenda_due_ms(&inside.agenda);
        int64_t due_us = due_ms == INT64_MAX ? INT64_MAX : due_ms * 1000 - BOOT_START_US;

        trial.now_us = due_us < until_us ? (due_us > trial.now_us ? due_us : trial.now_us + 1000) : until_us;
        settle();
    }
}

void trial_hold(enum asked kind)
{
    inside.holds[kind] = true;
}

static struct pending *oldest(enum asked kind)
{
    for (struct list_link *link = list_first(&inside.kept); link; link = list_after(&inside.kept, link)) {
        struct pending *pending = container_of(link, struct pending, link);

        if (pending->kind == kind) {
            return pending;
        }
    }
    return NULL;
}

void trial_release(enum asked kind)
{
    struct pending *pending;

    inside.holds[kind] = false;
    while ((pending = oldest(kind)) != NULL) {
        list_remove(&inside.kept, &pending->link);
        list_push(&inside.pending, &pending->link);
    }
    trial_run(0);
}

size_t trial_held(enum asked kind)
{
    size_t count = 0;

    for (struct list_link *link = list_first(&inside.kept); link; link = list_after(&inside.kept, link)) {
        count += container_of(link, struct pending, link)->kind == kind;
    }
    return count;
}

void *trial_oldest(enum asked kind)
{
    struct pending *pending = oldest(kind);

    assert_non_null(pending);
    return pending->request;
}

static void *take(enum asked kind)
{
    struct pending *pending = oldest(kind);

    assert_non_null(pending);
    void *request = pending->request;

    list_remove(&inside.kept, &pending->link);
    free(pending);
    return request;
}

void trial_fail(enum asked kind, enum err_code code)
{
    trial_answer_as(kind, take(kind), code);
    trial_run(0);
}

void trial_let(enum asked kind)
{
    trial_fail(kind, ERR_OK);
}

struct slice trial_keep(struct slice text)
{
    return text.ptr ? arena_slice(&inside.arena, text) : SLICE_NONE;
}

/* --- tools --- */

static void tool_check(struct slice settings, struct slice pointer, enum key_place place, struct faults *faults)
{
    (void)settings;
    (void)pointer;
    (void)place;
    (void)faults;
}

static void tool_begin(struct call *call)
{
    trial_ask(ASKED_CALL, call);
}

static const struct adapter adapters[] = {
    {.name = "builtin", .call_size = sizeof(struct call), .check = tool_check, .begin = tool_begin},
    {.name = "http", .call_size = sizeof(struct call), .check = tool_check, .begin = tool_begin},
};

const struct adapter *adapter_find(struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(adapters); i++) {
        if (slice_is(name, adapters[i].name)) {
            return &adapters[i];
        }
    }
    return NULL;
}

const struct adapter *adapter_at(size_t index)
{
    return index < COUNT_OF(adapters) ? &adapters[index] : NULL;
}

void adapter_host_close(struct adapter_host *host)
{
    (void)host;
}

void call_settle(struct call *call)
{
    void (*settled)(struct call * call) = call->settled;

    call->settled = NULL;
    settled(call);
}

/* --- what nobody asks for here --- */

struct http_client *http_client_new(struct loop *loop, uint32_t connections_max, uint32_t connections_per_host_max)
{
    (void)loop;
    (void)connections_max;
    (void)connections_per_host_max;
    return NULL;
}

void http_client_free(struct http_client *http)
{
    (void)http;
}

void http_client_set_egress(struct http_client *http, const struct egress *egress)
{
    (void)http;
    (void)egress;
}

struct db_pool *db_pool_new(struct loop *loop, const struct db_pool_options *options)
{
    (void)loop;
    (void)options;
    return NULL;
}

void db_pool_free(struct db_pool *pool)
{
    (void)pool;
}

enum err_code jq_check(struct slice program, struct err *err)
{
    (void)program;
    return err_set(err, ERR_UNSUPPORTED, "there are no programs in a trial");
}

void jq_submit(struct loop *loop, struct jq_job *job)
{
    (void)loop;
    (void)job;
    fail_msg("there are no programs in a trial");
}

/* --- clients --- */

static void on_request_done(struct engine_request *request)
{
    container_of(request, struct trial_request, request)->done = true;
}

void trial_request_init(struct trial_request *asked)
{
    *asked = (struct trial_request){0};
    arena_init(&asked->arena, 4096);
    asked->request = (struct engine_request){
        .arena = &asked->arena, .namespace = SLICE("n"), .actor = SLICE("somebody"), .done = on_request_done};
}

void trial_request_fini(struct trial_request *asked)
{
    assert_true(asked->done);
    arena_fini(&asked->arena);
}

void trial_ask_start(struct trial_request *asked, const char *name, const char *business_id)
{
    trial_request_init(asked);
    asked->request.in.start.saga = slice_of(name);
    asked->request.in.start.input = SLICE("{}");
    asked->request.in.start.business_id = business_id ? slice_of(business_id) : SLICE_NONE;
    engine_start_saga(trial.engine, &asked->request);
}

void trial_ask_call(struct trial_request *asked, struct saga_id saga, const char *run, const char *tool,
                    const char *args)
{
    trial_request_init(asked);
    asked->request.in.call.saga = saga;
    asked->request.in.call.run = run ? slice_of(run) : SLICE_NONE;
    asked->request.in.call.tool = slice_of(tool);
    asked->request.in.call.args = args ? slice_of(args) : SLICE_NONE;
    asked->request.in.call.wait_ms = 60000;
    engine_call(trial.engine, &asked->request);
}

struct saga_id trial_start(const char *name, const char *input)
{
    struct trial_request asked;
    struct saga_id id;

    trial_request_init(&asked);
    asked.request.in.start.saga = slice_of(name);
    asked.request.in.start.input = slice_of(input);
    engine_start_saga(trial.engine, &asked.request);
    trial_run(0);
    if (asked.request.code != ERR_OK) {
        fail_msg("%s: %s", name, asked.request.err.message);
    }
    id = asked.request.saga;
    trial_request_fini(&asked);
    return id;
}

/* --- the whole --- */

static void define(const char *document)
{
    struct trial_request asked;

    trial_request_init(&asked);
    asked.request.in.define.document = slice_of(document);
    engine_define(trial.engine, &asked.request);
    trial_run(0);
    assert_true(asked.done);
    if (asked.request.code != ERR_OK) {
        struct fault first =
            asked.request.faults.count ? asked.request.faults.items[0] : (struct fault){.detail = SLICE("")};

        fail_msg("%s: %.*s: %.*s", asked.request.err.message, SLICE_ARG(first.pointer), SLICE_ARG(first.detail));
    }
    trial_request_fini(&asked);
}

void trial_begin(const struct engine_options *options, uint64_t shards, const char *definitions)
{
    static const struct engine_options usual = {0};

    trial = (struct trial){0};
    memset(&inside, 0, sizeof(inside));
    agenda_init(&inside.agenda);
    arena_init(&inside.arena, 16384);
    list_init(&inside.pending);
    list_init(&inside.kept);
    log_setup(getenv("TRIAL_LOG") ? LOG_LEVEL_INFO : LOG_LEVEL_COUNT, LOG_FORMAT_TEXT);
    trial_store_begin(shards);
    trial.engine = engine_start(&the_loop, options ? options : &usual);
    assert_non_null(trial.engine);
    trial_database(true);
    trial_run(0);
    if (definitions) {
        define(definitions);
    }
}

static void on_drained(void *context)
{
    (void)context;
    inside.drained = true;
}

void trial_drain(int64_t patience_ms)
{
    engine_drain(trial.engine, patience_ms, on_drained, NULL);
}

void trial_end(void)
{
    inside.stops = true;
    for (enum asked kind = 0; kind < ASKED_COUNT; kind++) {
        trial_release(kind);
    }
    if (!trial.engine->draining) {
        trial_drain(1000);
    }
    for (int i = 0; i < 100000 && !inside.drained; i++) {
        trial_run(1);
    }
    assert_true(inside.drained);
    trial_run(0);
    engine_free(trial.engine);
    agenda_fini(&inside.agenda);
    arena_fini(&inside.arena);
}
