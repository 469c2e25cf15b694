/* See fake_engine.h. The answers follow schema/openapi.json, so that the API can be checked against it. */
#include "tests/lib/fake_engine_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/instant.h"
#include "base/json.h"

struct fake_done { /* a request whose answer is still to come */
    struct deferred deferred;
    struct engine_request *request;
    struct engine *engine;
    struct fake_saga *ends;
};

struct engine *fake_engine_new(struct loop *loop)
{
    struct engine *engine = memory_alloc(sizeof(*engine));

    engine->loop = loop;
    list_init(&engine->sagas);
    map_init(&engine->by_id);
    list_init(&engine->waits);
    fake_calls_init(engine);
    list_init(&engine->watches);
    arena_init(&engine->grant_arena, 1024);
    return engine;
}

void fake_engine_free(struct engine *engine)
{
    struct list_link *link;

    CHECK(list_empty(&engine->waits) && list_empty(&engine->watches) && engine->pending == 0);
    while ((link = list_pop(&engine->sagas))) {
        struct fake_saga *saga = container_of(link, struct fake_saga, link);

        arena_fini(&saga->arena);
        free(saga);
    }
    fake_calls_fini(engine);
    map_fini(&engine->by_id);
    offers_fini(&engine->offers);
    arena_fini(&engine->grant_arena);
    free(engine);
}

size_t fake_engine_waiting(const struct engine *engine)
{
    return engine->waits.count;
}

size_t fake_engine_cancelled(const struct engine *engine)
{
    return engine->cancelled;
}

size_t fake_engine_watches(const struct engine *engine)
{
    return engine->watches.count;
}

void fake_engine_set_busy(struct engine *engine, bool busy)
{
    engine->busy = busy;
}

bool engine_refuses_new(struct engine *engine, struct err *err, int64_t *retry_after_ms)
{
    if (engine->busy) {
        *retry_after_ms = 6500;
        (void)err_set(err, ERR_BUSY, "more is asked for than this engine gets done");
        err_hint(err, "try again later");
    }
    return engine->busy;
}

void fake_engine_set_away(struct engine *engine, bool away)
{
    engine->away = away;
}

/* --- answering --- */

static void on_done(struct deferred *deferred)
{
    struct fake_done *done = container_of(deferred, struct fake_done, deferred);
    struct fake_saga *ends = done->ends;
    struct engine *engine = done->engine;

    engine->pending--;
    done->request->done(done->request);
    if (ends) {
        fake_engine_end(engine, ends->id);
    }
}

static void finish_and_end(struct engine *engine, struct engine_request *request, enum err_code code,
                           struct fake_saga *ends)
{
    struct fake_done *done = arena_alloc(request->arena, sizeof(*done));

    if (engine->away) {
        code = err_set(&request->err, ERR_STORE, "the database does not answer");
    }
    request->code = code;
    done->request = request;
    done->engine = engine;
    done->ends = ends;
    engine->pending++;
    loop_defer(engine->loop, &done->deferred, on_done);
}

void fake_finish(struct engine *engine, struct engine_request *request, enum err_code code)
{
    finish_and_end(engine, request, code, NULL);
}

void fake_finish_text(struct engine *engine, struct engine_request *request, struct slice text)
{
    request->answer = text;
    fake_finish(engine, request, ERR_OK);
}

struct fake_saga *fake_saga_find(const struct engine *engine, struct slice namespace, struct saga_id id)
{
    struct fake_saga *saga = map_find(&engine->by_id, id.uuid.bytes, sizeof(id.uuid.bytes));

    return saga && slice_equal(saga->namespace, namespace) ? saga : NULL;
}

struct slice fake_instant(struct arena *arena, int64_t ms)
{
    char text[INSTANT_TEXT_BYTES];

    if (ms == 0) {
        return SLICE("null");
    }
    instant_text(ms, text);
    return arena_printf(arena, "\"%s\"", text);
}

struct slice fake_quoted(struct arena *arena, struct slice text)
{
    struct buffer out;

    if (!text.ptr) {
        return SLICE("null");
    }
    buffer_init(&out, 4096);
    json_put_string(&out, text);
    struct slice json = arena_slice(arena, buffer_slice(&out));

    buffer_fini(&out);
    return json;
}

struct slice fake_saga_json(const struct fake_saga *saga, struct arena *arena)
{
    char id[UUID_TEXT_BYTES];

    uuid_text(&saga->id.uuid, id);
    return arena_printf(arena,
                        "{\"id\":\"%s\",\"saga\":\"%.*s\",\"version\":1,\"business_id\":%.*s,\"status\":\"%s\","
                        "\"input\":%.*s,\"output\":null,"
                        "\"steps\":[%.*s],%.*s"
                        "\"escalation\":null,\"cost\":null,"
                        "\"tags\":%.*s,\"created_at\":%.*s,\"updated_at\":%.*s,\"ended_at\":%.*s}",
                        id, SLICE_ARG(saga->name), SLICE_ARG(fake_quoted(arena, saga->business_id)), saga->status,
                        SLICE_ARG(saga->input), SLICE_ARG(fake_steps(saga, arena)), SLICE_ARG(fake_more(saga)),
                        SLICE_ARG(saga->tags), SLICE_ARG(fake_instant(arena, saga->created_ms)),
                        SLICE_ARG(fake_instant(arena, saga->created_ms)),
                        SLICE_ARG(fake_instant(arena, saga->ended_ms)));
}

enum err_code fake_not_found(struct engine_request *request)
{
    return err_set(&request->err, ERR_NOT_FOUND, "there is no such thing in this namespace");
}

/* --- sagas --- */

static struct fake_saga *saga_of_business_id(const struct engine *engine, struct slice namespace, struct slice name,
                                             struct slice business_id)
{
    struct list_link *link = list_first(&engine->sagas);

    for (; business_id.ptr && link; link = list_after(&engine->sagas, link)) {
        struct fake_saga *saga = container_of(link, struct fake_saga, link);

        if (slice_equal(saga->business_id, business_id) && slice_equal(saga->namespace, namespace) &&
            slice_equal(saga->name, name)) {
            return saga;
        }
    }
    return NULL;
}

static struct fake_saga *saga_new(struct engine *engine, const struct engine_request *request, struct slice name,
                                  struct slice business_id, struct slice input, struct slice tags)
{
    struct fake_saga *saga = memory_alloc(sizeof(*saga));

    arena_init(&saga->arena, 1024);
    saga->id = saga_id_new(loop_wall_ms(engine->loop), 1);
    saga->namespace = arena_slice(&saga->arena, request->namespace);
    saga->name = arena_slice(&saga->arena, name);
    saga->business_id = arena_slice(&saga->arena, business_id);
    saga->input = arena_slice(&saga->arena, input);
    saga->tags = arena_slice(&saga->arena, tags.ptr ? tags : SLICE("null"));
    saga->status = slice_is(saga->name, "stuck") ? "escalated" : "running";
    saga->created_ms = loop_wall_ms(engine->loop);
    saga->seq = 2;
    list_push(&engine->sagas, &saga->link);
    map_put(&engine->by_id, saga->id.uuid.bytes, sizeof(saga->id.uuid.bytes), saga);
    return saga;
}

void engine_start_saga(struct engine *engine, struct engine_request *request)
{
    struct slice name = request->in.start.saga;
    struct slice input = request->in.start.input.ptr ? request->in.start.input : SLICE("{}");
    struct fake_saga *saga;

    if (engine->busy) {
        request->call.retry_after_ms = 6500;
        fake_finish(engine, request, err_set(&request->err, ERR_BUSY, "more is asked for than this engine gets done"));
        return;
    }
    if (!slice_is(name, "quick") && !slice_is(name, "slow") && !slice_is(name, "stuck") && !slice_is(name, "tree")) {
        fake_finish(engine, request, fake_not_found(request));
        return;
    }
    saga = saga_of_business_id(engine, request->namespace, name, request->in.start.business_id);
    request->created = saga == NULL;
    if (saga && !slice_equal(saga->input, input)) {
        fake_finish(engine, request, err_set(&request->err, ERR_OTHER_INPUT, "this id was started with other input"));
        return;
    }
    saga = saga ? saga : saga_new(engine, request, name, request->in.start.business_id, input, request->in.start.tags);
    request->saga = saga->id;
    finish_and_end(engine, request, ERR_OK, request->created && slice_is(name, "quick") ? saga : NULL);
}

void engine_open_saga(struct engine *engine, struct engine_request *request)
{
    struct slice input = arena_printf(
        request->arena, "{\"deadline_ms\":%lld,\"on_timeout\":%.*s,\"budget\":%.*s,\"loop\":%.*s}",
        (long long)request->in.open.deadline_ms, SLICE_ARG(fake_quoted(request->arena, request->in.open.on_timeout)),
        SLICE_ARG(request->in.open.budget.ptr ? request->in.open.budget : SLICE("null")),
        SLICE_ARG(request->in.open.loop.ptr ? request->in.open.loop : SLICE("null")));
    struct fake_saga *saga =
        saga_of_business_id(engine, request->namespace, SLICE(OPEN_SAGA_NAME), request->in.open.business_id);

    request->created = saga == NULL;
    if (saga && !slice_equal(saga->input, input)) {
        fake_finish(engine, request, err_set(&request->err, ERR_OTHER_INPUT, "this id was opened otherwise"));
        return;
    }
    saga = saga ? saga
                : saga_new(engine, request, SLICE(OPEN_SAGA_NAME), request->in.open.business_id, input,
                           request->in.open.tags);
    request->saga = saga->id;
    fake_finish(engine, request, ERR_OK);
}

static void wait_end(struct fake_wait *wait, enum err_code code)
{
    struct engine_request *request = wait->request;

    list_remove(&wait->engine->waits, &wait->link);
    timer_stop(wait->engine->loop, &wait->timer);
    request->internal = NULL;
    request->answer = fake_saga_json(wait->saga, request->arena);
    fake_finish(wait->engine, request, code);
}

/* Answers a request that waits for a change of a saga. */
static void wait_begin(struct engine *engine, struct engine_request *request, struct fake_saga *saga, int64_t wait_ms,
                       void (*over)(struct timer *timer))
{
    struct fake_wait *wait = arena_alloc(request->arena, sizeof(*wait));

    wait->engine = engine;
    wait->request = request;
    wait->saga = saga;
    request->internal = wait;
    list_push(&engine->waits, &wait->link);
    timer_start(engine->loop, &wait->timer, wait_ms, over);
}

static void on_wait_over(struct timer *timer)
{
    wait_end(container_of(timer, struct fake_wait, timer), ERR_OK);
}

void engine_get_saga(struct engine *engine, struct engine_request *request)
{
    struct fake_saga *saga = fake_saga_find(engine, request->namespace, request->in.get.id);

    if (!saga) {
        fake_finish(engine, request, fake_not_found(request));
    } else if (request->in.get.wait_ms > 0 && saga->ended_ms == 0 && !engine->away) {
        wait_begin(engine, request, saga, request->in.get.wait_ms, on_wait_over);
    } else {
        fake_finish_text(engine, request, fake_saga_json(saga, request->arena));
    }
}

void engine_find_saga(struct engine *engine, struct engine_request *request)
{
    struct list_link *link = list_first(&engine->sagas);

    for (; link; link = list_after(&engine->sagas, link)) {
        struct fake_saga *saga = container_of(link, struct fake_saga, link);

        if (slice_equal(saga->namespace, request->namespace) && slice_equal(saga->name, request->in.find.name) &&
            saga->business_id.ptr && slice_equal(saga->business_id, request->in.find.business_id)) {
            request->saga = saga->id;
            fake_finish(engine, request, ERR_OK);
            return;
        }
    }
    fake_finish(engine, request, fake_not_found(request));
}

void engine_cancel(struct engine *engine, struct engine_request *request)
{
    engine->cancelled++;
    if (request->internal) {
        (void)err_set(&request->err, ERR_TIMEOUT, "the wait was broken off");
        if (fake_call_wait_is(engine, request)) {
            fake_call_wait_end(request->internal, ERR_TIMEOUT);
        } else {
            wait_end(request->internal, ERR_TIMEOUT);
        }
    }
}

/* --- open sagas --- */

static void on_complete_over(struct timer *timer)
{
    struct fake_wait *wait = container_of(timer, struct fake_wait, timer);

    wait->request->call.retry_after_ms = 2000;
    wait_end(wait, err_set(&wait->request->err, ERR_UNSETTLED, "1 operation is not settled yet"));
}

static void fake_complete(struct engine *engine, struct engine_request *request)
{
    struct fake_saga *saga = fake_saga_find(engine, request->namespace, request->in.change.saga);

    if (!saga) {
        fake_finish(engine, request, fake_not_found(request));
    } else if (!slice_is(saga->name, OPEN_SAGA_NAME)) {
        fake_finish(engine, request,
                    err_set(&request->err, ERR_CONFLICT, "only an open saga is completed by its caller"));
    } else if (fake_calls_unsettled(engine, saga)) {
        wait_begin(engine, request, saga, request->in.change.wait_ms, on_complete_over);
    } else {
        fake_engine_end(engine, saga->id);
        fake_finish_text(engine, request, fake_saga_json(saga, request->arena));
    }
}

void fake_engine_end(struct engine *engine, struct saga_id id)
{
    struct fake_saga *saga = map_find(&engine->by_id, id.uuid.bytes, sizeof(id.uuid.bytes));
    struct list_link *link, *next;

    if (!saga || saga->ended_ms) {
        return;
    }
    saga->status = saga->aborted ? "compensated" : "completed";
    saga->ended_ms = loop_wall_ms(engine->loop);
    saga->seq = 3;
    for (link = list_first(&engine->waits); link; link = next) {
        struct fake_wait *wait = container_of(link, struct fake_wait, link);

        next = list_after(&engine->waits, link);
        if (wait->saga == saga) {
            wait_end(wait, ERR_OK);
        }
    }
    for (link = list_first(&engine->watches); link; link = next) {
        struct engine_watch *watch = container_of(link, struct engine_watch, link);

        next = list_after(&engine->watches, link);
        if (uuid_equal(&watch->id.uuid, &id.uuid)) {
            watch->changed(watch, saga->seq, true);
        }
    }
}

void fake_engine_end_all(struct engine *engine)
{
    struct list_link *link = list_first(&engine->sagas);

    fake_calls_settle(engine);
    for (; link; link = list_after(&engine->sagas, link)) {
        fake_engine_end(engine, container_of(link, struct fake_saga, link)->id);
    }
}

static void fake_abort(struct engine *engine, struct engine_request *request)
{
    struct fake_saga *saga = fake_saga_find(engine, request->namespace, request->in.change.saga);

    if (!saga) {
        fake_finish(engine, request, fake_not_found(request));
    } else if (saga->ended_ms) {
        fake_finish(engine, request, err_set(&request->err, ERR_ENDED, "the saga has ended %s", saga->status));
    } else {
        saga->aborted = true;
        saga->status = "compensating";
        fake_finish_text(engine, request, fake_saga_json(saga, request->arena));
    }
}

static void fake_escalate(struct engine *engine, struct engine_request *request)
{
    struct fake_saga *saga = fake_saga_find(engine, request->namespace, request->in.change.saga);

    if (!saga) {
        fake_finish(engine, request, fake_not_found(request));
    } else if (saga->ended_ms) {
        fake_finish(engine, request, err_set(&request->err, ERR_ENDED, "the saga has ended %s", saga->status));
    } else {
        saga->status = "escalated";
        fake_finish_text(engine, request, fake_saga_json(saga, request->arena));
    }
}

void engine_get_log(struct engine *engine, struct engine_request *request)
{
    static const char *const types[] = {"saga.started", "step.intent", "saga.completed"};
    struct fake_saga *saga = fake_saga_find(engine, request->namespace, request->in.log.id);
    struct buffer out;
    size_t count = 0;

    if (!saga) {
        fake_finish(engine, request, fake_not_found(request));
        return;
    }
    buffer_init(&out, 65536);
    buffer_put_char(&out, '[');
    for (uint64_t seq = request->in.log.after_seq + 1; seq <= saga->seq && count < request->in.log.limit; seq++) {
        buffer_printf(&out, "%s{\"seq\":%llu,\"at\":%.*s,\"type\":\"%s\",\n \"data\":{\"input\":%.*s}}",
                      count++ ? "," : "", (unsigned long long)seq,
                      SLICE_ARG(fake_instant(request->arena, saga->created_ms)), types[seq - 1],
                      SLICE_ARG(saga->input));
    }
    buffer_put_char(&out, ']');
    request->answer = arena_slice(request->arena, buffer_slice(&out));
    buffer_fini(&out);
    fake_finish(engine, request, ERR_OK);
}

static bool has_prefix(const struct fake_saga *saga, struct slice prefix)
{
    char id[UUID_TEXT_BYTES];

    uuid_text(&saga->id.uuid, id);
    return memcmp(id, prefix.ptr, prefix.len < sizeof(id) ? prefix.len : sizeof(id)) == 0;
}

void engine_list_sagas(struct engine *engine, struct engine_request *request)
{
    struct list_link *link = list_first(&engine->sagas);
    struct buffer out;
    size_t count = 0;

    if (request->in.sagas.by_status) {
        request->answer = SLICE("[{\"group\":{\"status\":\"waiting\"},\"count\":2}]");
        fake_finish(engine, request, ERR_OK);
        return;
    }
    buffer_init(&out, 1 << 20);
    buffer_put_char(&out, '[');
    for (; link && count < request->in.sagas.limit; link = list_after(&engine->sagas, link)) {
        struct fake_saga *saga = container_of(link, struct fake_saga, link);

        if (slice_equal(saga->namespace, request->namespace) &&
            (!request->in.sagas.id.ptr || has_prefix(saga, request->in.sagas.id)) &&
            (!request->in.sagas.business_id.ptr || slice_equal(saga->business_id, request->in.sagas.business_id))) {
            buffer_put_text(&out, count++ ? "," : "");
            buffer_put_slice(&out, fake_saga_json(saga, request->arena));
        }
    }
    buffer_put_char(&out, ']');
    request->next_cursor = link ? SLICE("more") : SLICE_NONE;
    request->answer = arena_slice(request->arena, buffer_slice(&out));
    buffer_fini(&out);
    fake_finish(engine, request, ERR_OK);
}

/* --- the rest: fixed answers of the right shape --- */

#define ESCALATION(status)                                                                                             \
    "{\"n\":1,\"saga\":\"019b3c52-0000-7000-8000-000000000001\",\"step\":\"one\",\"operation\":null,\"reason\":"       \
    "\"unknown\",\"status\":\"" status "\","                                                                           \
    "\"opened_at\":\"2026-01-31T09:05:00.250Z\",\"evidence\":{\"open\":[{\"step\":\"one\",\"status\":\"unknown\","     \
    "\"took_effect\":\"unknown\",\"needs_person\":true}]},\"actions\":[{\"action\":\"retry\",\"does\":\"tries "        \
    "again\"}],\"resolved_at\":null,"                                                                                  \
    "\"action\":null,\"actor\":null,\"note\":null,\"saga_name\":\"checkout\",\"business_id\":\"order-2026-000042\","   \
    "\"tags\":{},"                                                                                                     \
    "\"tool\":\"payments.charge\",\"error\":\"timeout\",\"cost\":12500000}"

void engine_define(struct engine *engine, struct engine_request *request)
{
    struct slice tools = json_member(request->in.define.document, "tools");

    if (json_type(tools) != JSON_ARRAY) {
        faults_init(&request->faults, request->arena);
        faults_add(&request->faults, SLICE("/tools"), "expected an array");
        fake_finish(engine, request, err_set(&request->err, ERR_INVALID, "the document has 1 fault"));
        return;
    }
    fake_finish_text(engine, request,
                     request->in.define.dry_run
                         ? SLICE("[{\"kind\":\"tool\",\"name\":\"t.one\",\"version\":2,\"change\":\"created\","
                                 "\"registered\":1,\"differs\":[\"/breaker/failures\",\"/description\"]}]")
                         : SLICE("[{\"kind\":\"tool\",\"name\":\"t.one\",\"version\":1,\"change\":\"created\"}]"));
}

static void get_tools(struct engine *engine, struct engine_request *request)
{
    static const char one[] =
        "{\"kind\":\"tool\",\"name\":\"t.one\",\"version\":1,\"body\":{\"name\":\"t.one\",\"effect\":"
        "{\"if\":\"${ .args.n > 1 }\",\"then\":\"once\",\"else\":\"keyed\"},\"breaker\":{\"failures\":3}}}";
    static const char read[] = "{\"kind\":\"tool\",\"name\":\"t.read\",\"version\":2,\"body\":{\"name\":\"t.read\","
                               "\"builtin\":{\"do\":\"echo\"},\"effect\":\"read\"}}";

    if (!request->in.definitions.name.ptr) {
        fake_finish_text(engine, request,
                         SLICE("[{\"kind\":\"tool\",\"name\":\"t.one\",\"version\":1},{\"kind\":\"tool\",\"name\":\"t."
                               "read\",\"version\":2}]"));
    } else if (slice_is(request->in.definitions.name, "t.one")) {
        fake_finish_text(engine, request, slice_of(one));
    } else if (slice_is(request->in.definitions.name, "t.read") || slice_is(request->in.definitions.name, "quick")) {
        fake_finish_text(engine, request, slice_of(read));
    } else {
        fake_finish(engine, request, fake_not_found(request));
    }
}

void engine_prove(struct engine *engine, struct engine_request *request)
{
    if (slice_is(request->in.definitions.name, "quick") && slice_is(request->namespace, "default")) {
        fake_finish_text(engine, request,
                         SLICE("{\"saga\":\"quick\",\"ok\":true,\"violations\":0,\"covered\":{\"points\":1,\"plays\":2,"
                               "\"states\":1,\"all_states\":true,\"all_points\":true,\"unreached\":[]},\"ends\":["
                               "{\"step\":\"work\",\"direction\":\"do\",\"effect\":\"read\",\"happens\":\"fails\","
                               "\"then\":\"none\",\"what\":\"fails for certain\",\"settled\":\"\",\"place\":null,"
                               "\"end\":\"compensated\",\"waits_for\":null,\"undone\":[],\"standing\":[],"
                               "\"violation\":null}]}"));
    } else {
        fake_finish(engine, request, fake_not_found(request));
    }
}

#define VERSION(n, unfinished)                                                                                         \
    "{\"version\":" n ",\"created_at\":\"2026-01-31T09:05:00.250Z\",\"unfinished\":" unfinished "}"
#define SAGA_OF(name, version, newer)                                                                                  \
    "{\"kind\":\"saga\",\"name\":\"" name "\",\"version\":" version ",\"versions\":[" newer VERSION("1", "0") "]}"

void engine_get_definitions(struct engine *engine, struct engine_request *request)
{
    if (request->in.definitions.kind == DEFINITION_TOOL && slice_is(request->namespace, "default")) {
        get_tools(engine, request);
    } else if (!request->in.definitions.name.ptr) {
        fake_finish_text(engine, request,
                         SLICE("[" SAGA_OF("a", "1", "") "," SAGA_OF("b", "2", VERSION("2", "3") ",") "," SAGA_OF(
                             "c", "1", "") "]"));
    } else if (slice_is(request->in.definitions.name, "quick") && slice_is(request->namespace, "default")) {
        fake_finish_text(
            engine, request,
            SLICE("{\"kind\":\"saga\",\"name\":\"quick\",\"version\":1,\"body\":{\"name\":\"quick\",\"steps\":["
                  "{},{},{}]}}"));
    } else {
        fake_finish(engine, request, fake_not_found(request));
    }
}

static bool is_default(const struct engine_request *request) /* all fixed answers belong to this namespace */
{
    return slice_is(request->namespace, "default");
}

#define CASE_GROUP                                                                                                     \
    "{\"group\":{\"tool\":\"payments.charge\",\"error\":\"timeout\"},\"count\":312,\"oldest\":\"2026-01-31T02:14:00."  \
    "000Z\","                                                                                                          \
    "\"newest\":\"2026-01-31T03:00:00.000Z\",\"costs\":[{\"currency\":\"EUR\",\"micros\":4130000,\"cases\":309},"      \
    "{\"currency\":null,\"micros\":70,\"cases\":1}],\"without_cost\":2}"

void engine_get_escalations(struct engine *engine, struct engine_request *request)
{
    if (request->in.escalations.number == 0 && request->in.escalations.group_by.len > 0) {
        request->looked_ms = request->in.escalations.has_cost ? 1769850000000 : 0;
        request->looked_count = 20000;
        fake_finish_text(engine, request, SLICE("[" CASE_GROUP "]"));
    } else if (request->in.escalations.number == 0) {
        fake_finish_text(engine, request, is_default(request) ? SLICE("[" ESCALATION("open") "]") : SLICE("[]"));
    } else if (request->in.escalations.number == 1 && is_default(request)) {
        fake_finish_text(engine, request, engine->resolved ? SLICE(ESCALATION("resolved")) : SLICE(ESCALATION("open")));
    } else {
        fake_finish(engine, request, fake_not_found(request));
    }
}

static void fake_remark(struct engine *engine, struct engine_request *request)
{
    if (request->in.change.input.remark.escalation != 1 || !is_default(request)) {
        fake_finish(engine, request, fake_not_found(request));
    } else {
        fake_finish_text(engine, request, engine->resolved ? SLICE(ESCALATION("resolved")) : SLICE(ESCALATION("open")));
    }
}

static void fake_resolve(struct engine *engine, struct engine_request *request)
{
    struct op_key key = request->in.change.input.verdict.key;

    if (!uuid_is_nil(&key.uuid)) {
        request->in.operation.key = key;
        engine_get_operation(engine, request);
    } else if (request->in.change.input.verdict.escalation != 1 || !is_default(request)) {
        fake_finish(engine, request, fake_not_found(request));
    } else if (engine->resolved) {
        fake_finish(engine, request, err_set(&request->err, ERR_DECIDED, "escalation 1 was resolved before"));
    } else {
        engine->resolved = true;
        fake_finish_text(engine, request, SLICE(ESCALATION("resolved")));
    }
}

void engine_change(struct engine *engine, struct engine_request *request)
{
    static void (*const verbs_here[VERB_COUNT])(struct engine *, struct engine_request *) = {
        [VERB_PAUSE] = fake_pause,        [VERB_RESUME] = fake_resume,
        [VERB_MEND] = fake_mend,          [VERB_RERUN] = fake_rerun,
        [VERB_ABORT] = fake_abort,        [VERB_COMPLETE] = fake_complete,
        [VERB_SIGNAL] = fake_signal,      [VERB_DECIDE] = fake_decide,
        [VERB_RESOLVE] = fake_resolve,    [VERB_RESOLVE_OPERATION] = fake_resolve,
        [VERB_BYPASS] = fake_bypass,      [VERB_COST] = fake_cost,
        [VERB_ACKNOWLEDGE] = fake_remark, [VERB_ASSIGN] = fake_remark,
        [VERB_COMMENT] = fake_remark,     [VERB_ESCALATE] = fake_escalate};

    verbs_here[request->in.change.verb](engine, request);
}

/* --- schedules: one, "nightly", which is always there --- */

#define SCHEDULE                                                                                                       \
    "{\"name\":\"nightly\",\"saga\":\"order\",\"input\":{},\"cron\":\"30 2 * * *\",\"zone\":\"Europe/Berlin\","        \
    "\"overlap\":\"skip\",\"catch_up\":\"none\",\"status\":\"held\",\"created_at\":\"2026-01-01T00:00:00.000Z\","      \
    "\"created_by\":\"ops\",\"last_at\":\"2026-01-02T01:30:00.000Z\",\"next_at\":null,\"queued\":1,\"started\":1,"     \
    "\"skipped\":2,\"missed\":3,\"refused\":0,\"last_saga\":{\"saga\":\"01890a5d-ac96-774b-bcce-b302099a0007\","       \
    "\"instant\":\"2026-01-01T01:30:00.000Z\"},\"hold\":{\"note\":\"moving\",\"actor\":\"ops\","                       \
    "\"at\":\"2026-01-02T02:00:00.000Z\"},\"error\":{\"message\":\"no\",\"detail\":null,"                              \
    "\"instant\":\"2026-01-02T01:30:00.000Z\",\"at\":\"2026-01-02T01:30:01.000Z\"}}"

static bool is_nightly(struct engine *engine, struct engine_request *request)
{
    if (is_default(request) && slice_is(request->in.schedule.name, "nightly")) {
        return true;
    }
    fake_finish(engine, request, fake_not_found(request));
    return false;
}

void engine_put_schedule(struct engine *engine, struct engine_request *request)
{
    struct slice name = json_string(json_member(request->in.schedule.body, "name"), request->arena);

    if (!slice_is(name, "nightly")) {
        faults_init(&request->faults, request->arena);
        faults_add(&request->faults, SLICE("/name"), "not nightly");
        fake_finish(engine, request, err_set(&request->err, ERR_INVALID, "this schedule is not right"));
        return;
    }
    request->created = true;
    fake_finish_text(engine, request, SLICE(SCHEDULE));
}

void engine_get_schedules(struct engine *engine, struct engine_request *request)
{
    if (!request->in.schedule.name.ptr) {
        fake_finish_text(engine, request, SLICE("[" SCHEDULE "]"));
    } else if (is_nightly(engine, request)) {
        fake_finish_text(engine, request, SLICE(SCHEDULE));
    }
}

void engine_get_schedule_next(struct engine *engine, struct engine_request *request)
{
    if (is_nightly(engine, request)) {
        fake_finish_text(engine, request, SLICE("{\"items\":[\"2026-01-03T01:30:00.000Z\"]}"));
    }
}

void engine_change_schedule(struct engine *engine, struct engine_request *request)
{
    if (is_nightly(engine, request)) {
        fake_finish_text(engine, request, SLICE(SCHEDULE));
    }
}

void engine_get_stats(struct engine *engine, struct engine_request *request)
{
    fake_finish_text(
        engine, request,
        SLICE("{\"sagas\":{\"running\":1},\"tools\":[{\"name\":\"t.one\",\"calls\":10,\"retries\":3,\"completed\":6,"
              "\"failed\":1,"
              "\"unknown\":3,\"operations\":7,\"duplicates\":{\"replayed\":2,\"waited\":1},\"unknown_open\":2,"
              "\"unknown_oldest_ms\":1200000,\"drift\":1,\"loop_trips\":4,\"budget_refusals\":0,\"rate_refusals\":0,"
              "\"breaker_refusals\":0,\"breaker\":\"open\"}],"
              "\"guards\":[{\"tool\":\"t.one\",\"endpoint\":\"http://"
              "x\",\"breaker\":\"open\",\"places_taken\":1}],\"engines\":[]}"));
}

/* The feed has two events behind the cursor 7 and none behind 9. Events before 5 are gone. */
void engine_get_events(struct engine *engine, struct engine_request *request)
{
    static const char two[] =
        "[{\"specversion\":\"1.0\",\"id\":\"01920000-0000-7000-8000-000000000001/9\",\"source\":\"/sagad/defau"
        "lt\",\"type\":\"case.opened\",\"subject\":\"01920000-0000-7000-8000-000000000001\",\"time\":\"2026-01-"
        "02T03:04:05.000Z\",\"datacontenttype\":\"application/json\",\"data\":{\"saga\":\"01920000-0000-7000-"
        "8000-000000000001\",\"saga_name\":\"order\",\"version\":1,\"business_id\":\"o-1\",\"tags\":{},\"seq\":9,\""
        "step\":\"charge\",\"reason\":\"unknown\",\"n\":64}},{\"specversion\":\"1.0\",\"id\":\"01920000-0000-7000-8"
        "000-000000000002/7\",\"source\":\"/sagad/default\",\"type\":\"saga.completed\",\"subject\":\"01920000-"
        "0000-7000-8000-000000000002\",\"time\":\"2026-01-02T03:04:06.000Z\",\"datacontenttype\":\"applicat"
        "ion/json\",\"data\":{\"saga\":\"01920000-0000-7000-8000-000000000002\",\"saga_name\":\"order\",\"versi"
        "on\":1,\"business_id\":null,\"tags\":{},\"seq\":7}}]";
    struct slice cursor = request->in.events.cursor;
    int64_t after = 7;

    request->next_cursor = SLICE("9");
    if (cursor.ptr && !slice_is(cursor, "now") && !slice_to_i64(cursor, &after)) {
        fake_finish(engine, request, err_set(&request->err, ERR_MALFORMED, "this cursor is none"));
    } else if (after < 5) {
        request->next_cursor = SLICE("5");
        fake_finish(engine, request,
                    err_set(&request->err, ERR_GONE, "events behind this cursor are not kept any more"));
    } else {
        fake_finish_text(engine, request, after < 9 && !slice_is(cursor, "now") ? slice_of(two) : SLICE("[]"));
    }
}

void engine_get_series(struct engine *engine, struct engine_request *request)
{
    static const char *const rows[] = {
        [SERIES_BY_ALL] = "\"started\":3,\"completed\":2,\"compensated\":1,\"abandoned\":0,\"escalated\":4,"
                          "\"operations\":5,\"calls\":9,\"retries\":2,\"calls_completed\":6,\"calls_failed\":1,"
                          "\"calls_unknown\":2,\"duplicates\":0",
        [SERIES_BY_SAGA] = "\"saga\":\"order\",\"started\":3,\"completed\":2,\"compensated\":1,\"abandoned\":0,"
                           "\"escalated\":4",
        [SERIES_BY_TOOL] = "\"tool\":\"card.pay\",\"operations\":5,\"calls\":9,\"retries\":2,\"calls_completed\":6,"
                           "\"calls_failed\":1,\"calls_unknown\":2,\"duplicates\":0"};

    fake_finish_text(engine, request,
                     arena_printf(request->arena,
                                  "{\"step\":\"minute\",\"from\":\"2026-01-02T03:00:00.000Z\",\"to\":"
                                  "\"2026-01-02T03:20:00.000Z\",\"items\":[{\"at\":\"2026-01-02T03:14:00.000Z\",%s},"
                                  "{\"at\":\"2026-01-02T03:15:00.000Z\",%s}],\"next_from\":null}",
                                  rows[request->in.series.by], rows[request->in.series.by]));
}

void engine_get_clock(struct engine *engine, struct engine_request *request)
{
    fake_finish_text(engine, request, SLICE("{\"now\":\"2026-01-01T00:00:00.000Z\",\"ahead_ms\":0,\"next_at\":null}"));
}

void engine_move_clock(struct engine *engine, struct engine_request *request)
{
    fake_finish_text(
        engine, request,
        SLICE(
            "{\"now\":\"2026-01-04T00:00:00.000Z\",\"ahead_ms\":259200000,\"next_at\":\"2026-01-05T00:00:00.000Z\"}"));
}

void engine_get_engines(struct engine *engine, struct engine_request *request)
{
    fake_finish_text(
        engine, request,
        SLICE("{\"items\":[{\"name\":\"host:1\",\"instance\":\"0123456789abcdef\",\"version\":\"0.1.0\",\"schema\":8,"
              "\"state\":\"alive\",\"standby\":false,\"started_at\":\"2026-01-01T00:00:00.000Z\",\"shards\":[0,1,2,5,7,"
              "8],"
              "\"epoch_min\":3,\"epoch_max\":4,\"lease_left_ms\":9000,\"lags\":{\"append_ms\":1,\"due_ms\":0,"
              "\"inbox_rows\":2}}],\"unowned\":[63],\"database\":{\"version\":\"15.14\",\"now\":"
              "\"2026-01-01T00:00:05.000Z\",\"engine_ahead_ms\":1,\"schema\":8,\"timeline\":1,\"losses_open\":0,"
              "\"connections\":9,\"connections_max\":97,\"standbys\":0,\"standby_lag_ms\":null,\"settings\":{"
              "\"fsync\":\"on\",\"full_page_writes\":\"on\",\"synchronous_commit\":\"on\","
              "\"synchronous_standby_names\":\"\"}}}"));
}

void engine_health(const struct engine *engine, struct engine_health *out)
{
    *out = (struct engine_health){
        .alive = true, .database = !engine->away, .schema = true, .leases = true, .loaded = true};
    if (engine->away) {
        (void)err_set(&out->err, ERR_STORE, "the database does not answer");
    }
}

void engine_watch_add(struct engine *engine, struct engine_watch *watch)
{
    list_push(&engine->watches, &watch->link);
}

void engine_watch_remove(struct engine *engine, struct engine_watch *watch)
{
    list_remove(&engine->watches, &watch->link);
}
