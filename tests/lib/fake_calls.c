/* The registry of the fake engine. fake_engine.h says what its tools do. */
#include "tests/lib/fake_engine_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define BYPASS_MS (15 * 60 * 1000)
#define RETRY_AFTER_MS 1500

struct fake_operation {
    struct list_link link;
    struct arena arena;
    struct op_key key;
    struct slice namespace, run, saga /* JSON */, step, tool, scope, args;
    const char *state, *took_effect;
    int64_t created_ms, ended_ms;
    uint32_t duplicates;
    bool bypassed;
};

struct fake_call_wait {
    struct list_link link;
    struct engine *engine;
    struct engine_request *request;
    struct fake_operation *operation;
    struct timer timer;
    bool duplicate;
};

void fake_calls_init(struct engine *engine)
{
    list_init(&engine->operations);
    list_init(&engine->call_waits);
}

void fake_calls_fini(struct engine *engine)
{
    struct list_link *link;

    CHECK(list_empty(&engine->call_waits));
    while ((link = list_pop(&engine->operations))) {
        struct fake_operation *operation = container_of(link, struct fake_operation, link);

        arena_fini(&operation->arena);
        free(operation);
    }
}

static struct slice operation_json(const struct fake_operation *operation, struct arena *arena)
{
    char key[UUID_TEXT_BYTES];
    bool done = strcmp(operation->state, "completed") == 0;
    bool expired = done && slice_starts_with(operation->run, "expires"); /* in such a run: as soon as it has ended */

    uuid_text(&operation->key.uuid, key);
    return arena_printf(
        arena,
        "{\"key\":\"%s\",\"state\":\"%s\",\"took_effect\":\"%s\",\"run\":%.*s,\"saga\":%.*s,\"step\":%.*s,"
        "\"tool\":%.*s,\"tool_version\":1,\"scope\":%.*s,\"generation\":0,\"class\":\"keyed\",\"attempts\":1,"
        "\"args\":%.*s,\"result\":%.*s,\"error\":null,\"cost\":null,\"duplicate\":%s,\"duplicates_seen\":%u,"
        "\"first_sent_at\":%.*s,\"last_sent_at\":%.*s,\"created_at\":%.*s,\"ended_at\":%.*s}",
        key, operation->state, operation->took_effect, SLICE_ARG(fake_quoted(arena, operation->run)),
        SLICE_ARG(operation->saga), SLICE_ARG(fake_quoted(arena, operation->step)),
        SLICE_ARG(fake_quoted(arena, operation->tool)), SLICE_ARG(fake_quoted(arena, operation->scope)),
        SLICE_ARG(expired ? SLICE("null") : operation->args),
        SLICE_ARG(done && !expired ? operation->args : SLICE("null")), operation->duplicates ? "true" : "false",
        operation->duplicates, SLICE_ARG(fake_instant(arena, operation->created_ms)),
        SLICE_ARG(fake_instant(arena, operation->created_ms)), SLICE_ARG(fake_instant(arena, operation->created_ms)),
        SLICE_ARG(fake_instant(arena, operation->ended_ms)));
}

static struct fake_operation *operation_find(const struct engine *engine, struct slice namespace, struct op_key key)
{
    struct list_link *link = list_first(&engine->operations);

    for (; link; link = list_after(&engine->operations, link)) {
        struct fake_operation *operation = container_of(link, struct fake_operation, link);

        if (uuid_equal(&operation->key.uuid, &key.uuid) && slice_equal(operation->namespace, namespace)) {
            return operation;
        }
    }
    return NULL;
}

bool fake_calls_unsettled(const struct engine *engine, const struct fake_saga *saga)
{
    struct list_link *link = list_first(&engine->operations);
    char id[UUID_TEXT_BYTES];

    uuid_text(&saga->id.uuid, id);
    for (; link; link = list_after(&engine->operations, link)) {
        const struct fake_operation *operation = container_of(link, struct fake_operation, link);

        if (slice_is(operation->run, id) && strcmp(operation->state, "in_flight") == 0) {
            return true;
        }
    }
    return false;
}

/* --- waiting --- */

bool fake_call_wait_is(const struct engine *engine, const struct engine_request *request)
{
    struct list_link *link = list_first(&engine->call_waits);

    for (; link; link = list_after(&engine->call_waits, link)) {
        if (link == &((struct fake_call_wait *)request->internal)->link) {
            return true;
        }
    }
    return false;
}

static void put_operation(struct engine_request *request, const struct fake_operation *operation)
{
    char key[UUID_TEXT_BYTES];

    uuid_text(&operation->key.uuid, key);
    request->call.key = arena_slice(request->arena, slice_of(key));
    request->call.operation = operation_json(operation, request->arena);
    request->call.first_ms = operation->created_ms;
    request->answer = request->call.operation;
}

void fake_call_wait_end(struct fake_call_wait *wait, enum err_code code)
{
    struct engine_request *request = wait->request;

    list_remove(&wait->engine->call_waits, &wait->link);
    timer_stop(wait->engine->loop, &wait->timer);
    request->internal = NULL;
    put_operation(request, wait->operation);
    request->call.replayed = wait->duplicate && code == ERR_OK;
    fake_finish(wait->engine, request, code);
}

static void on_wait_over(struct timer *timer)
{
    struct fake_call_wait *wait = container_of(timer, struct fake_call_wait, timer);

    if (wait->duplicate) {
        wait->request->call.retry_after_ms = RETRY_AFTER_MS;
        fake_call_wait_end(wait, err_set(&wait->request->err, ERR_IN_FLIGHT, "the operation is under way"));
    } else {
        wait->request->call.going_on = true;
        fake_call_wait_end(wait, ERR_OK);
    }
}

static void wait_for(struct engine *engine, struct engine_request *request, struct fake_operation *operation,
                     bool duplicate)
{
    struct fake_call_wait *wait = arena_alloc(request->arena, sizeof(*wait));

    wait->engine = engine;
    wait->request = request;
    wait->operation = operation;
    wait->duplicate = duplicate;
    request->internal = wait;
    list_push(&engine->call_waits, &wait->link);
    timer_start(engine->loop, &wait->timer, request->in.call.wait_ms, on_wait_over);
}

void fake_calls_settle(struct engine *engine)
{
    struct list_link *link = list_first(&engine->operations);

    for (; link; link = list_after(&engine->operations, link)) {
        struct fake_operation *operation = container_of(link, struct fake_operation, link);

        if (strcmp(operation->state, "in_flight") == 0) {
            operation->state = "completed";
            operation->took_effect = "yes";
            operation->ended_ms = loop_wall_ms(engine->loop);
        }
    }
    while ((link = list_first(&engine->call_waits))) {
        fake_call_wait_end(container_of(link, struct fake_call_wait, link), ERR_OK);
    }
}

/* --- calling --- */

static bool refusal_parse(struct slice tool, enum err_code *out) /* "as.NAME" */
{
    for (int code = ERR_OK + 1; code < ERR_COUNT; code++) {
        if (tool.len > 3 && slice_is((struct slice){tool.ptr + 3, tool.len - 3}, err_name((enum err_code)code))) {
            *out = (enum err_code)code;
            return slice_starts_with(tool, "as.");
        }
    }
    return false;
}

static enum err_code refuse(struct engine_request *request, struct fake_saga *saga, enum err_code code)
{
    if (code == ERR_DRIFT) {
        request->call.pointers = SLICE("[\"/amount\",\"/to/name\"]");
    } else if (code == ERR_LOOP) {
        request->call.pattern = SLICE("[{\"tool\":\"t.one\",\"step\":\"~t.one\",\"scope\":\"\"}]");
    } else if (code == ERR_PAUSED && saga) {
        saga->status = "paused";
    }
    request->call.retry_after_ms = err_retryable(code) ? RETRY_AFTER_MS : 0;
    return err_set(&request->err, code, "refused as the tool's name says");
}

static struct fake_operation *operation_new(struct engine *engine, const struct engine_request *request,
                                            struct slice run, struct slice saga, struct slice step, struct slice args)
{
    struct fake_operation *operation = memory_alloc(sizeof(*operation));
    struct arena *arena = &operation->arena;
    struct op_identity identity = {.namespace = request->namespace,
                                   .run = run,
                                   .step = step,
                                   .tool = request->in.call.tool,
                                   .scope = request->in.call.scope,
                                   .direction = DIRECTION_DO};

    arena_init(arena, 1024);
    operation->key = op_key_make(&identity);
    operation->namespace = arena_slice(arena, request->namespace);
    operation->run = arena_slice(arena, run);
    operation->saga = arena_slice(arena, saga);
    operation->step = arena_slice(arena, step);
    operation->tool = arena_slice(arena, request->in.call.tool);
    operation->scope = arena_slice(arena, request->in.call.scope.ptr ? request->in.call.scope : SLICE(""));
    operation->args = arena_slice(arena, args);
    operation->state = "in_flight";
    operation->took_effect = "maybe";
    operation->created_ms = loop_wall_ms(engine->loop);
    return operation;
}

static void operation_free(struct fake_operation *operation)
{
    arena_fini(&operation->arena);
    free(operation);
}

static void operation_begin(struct engine *engine, struct engine_request *request, struct fake_operation *operation)
{
    list_push(&engine->operations, &operation->link);
    if (slice_is(operation->tool, "t.slow")) {
        wait_for(engine, request, operation, false);
        return;
    }
    operation->state = "completed";
    operation->took_effect = "yes";
    operation->ended_ms = loop_wall_ms(engine->loop);
    put_operation(request, operation);
    fake_finish(engine, request, ERR_OK);
}

static void operation_repeat(struct engine *engine, struct engine_request *request, struct fake_operation *operation,
                             struct slice args)
{
    operation->duplicates++;
    if (!slice_equal(operation->args, args)) {
        put_operation(request, operation);
        fake_finish(engine, request, refuse(request, NULL, ERR_DRIFT));
    } else if (strcmp(operation->state, "in_flight") == 0) {
        wait_for(engine, request, operation, true);
    } else {
        put_operation(request, operation);
        request->call.replayed = true;
        fake_finish(engine, request, ERR_OK);
    }
}

static void call_in(struct engine *engine, struct engine_request *request, struct slice run, struct slice saga_id,
                    struct fake_saga *saga)
{
    struct slice tool = request->in.call.tool;
    struct slice step =
        request->in.call.step.ptr ? request->in.call.step : arena_printf(request->arena, "~%.*s", SLICE_ARG(tool));
    struct slice args = request->in.call.args.ptr ? request->in.call.args : SLICE("{}");
    enum err_code code = ERR_OK;
    bool refused = refusal_parse(tool, &code);

    if (!refused && !slice_is(tool, "t.one") && !slice_is(tool, "t.read") && !slice_is(tool, "t.slow")) {
        fake_finish(engine, request, fake_not_found(request));
        return;
    }
    if (json_type(args) != JSON_OBJECT) {
        faults_init(&request->faults, request->arena);
        faults_add(&request->faults, SLICE("/args"), "expected an object");
        fake_finish(engine, request,
                    err_set(&request->err, ERR_INVALID, "the arguments do not fit the schema of the tool"));
        return;
    }
    struct fake_operation *operation = operation_new(engine, request, run, saga_id, step, args);
    struct fake_operation *first = operation_find(engine, request->namespace, operation->key);

    if (refused) {
        put_operation(request, operation);
        fake_finish(engine, request, refuse(request, saga, code));
        operation_free(operation);
    } else if (first) {
        operation_free(operation);
        operation_repeat(engine, request, first, args);
    } else if (saga && saga->ended_ms) {
        operation_free(operation);
        fake_finish(engine, request, err_set(&request->err, ERR_CLOSED, "the saga has ended"));
    } else {
        operation_begin(engine, request, operation);
    }
}

void engine_call(struct engine *engine, struct engine_request *request)
{
    struct fake_saga *saga;

    if (uuid_is_nil(&request->in.call.saga.uuid)) {
        call_in(engine, request, request->in.call.run, SLICE("null"), NULL);
        return;
    }
    saga = fake_saga_find(engine, request->namespace, request->in.call.saga);
    if (!saga) {
        fake_finish(engine, request, fake_not_found(request));
    } else if (!slice_is(saga->name, OPEN_SAGA_NAME)) {
        fake_finish(engine, request, err_set(&request->err, ERR_CONFLICT, "this saga follows a definition"));
    } else {
        char id[UUID_TEXT_BYTES];

        uuid_text(&saga->id.uuid, id);
        call_in(engine, request, arena_slice(request->arena, slice_of(id)), fake_quoted(request->arena, slice_of(id)),
                saga);
    }
}

void fake_bypass(struct engine *engine, struct engine_request *request)
{
    struct fake_operation *operation = operation_find(engine, request->namespace, request->in.change.input.bypass.key);
    int64_t now_ms = loop_wall_ms(engine->loop);
    char key[UUID_TEXT_BYTES];

    if (!operation) {
        fake_finish(engine, request, fake_not_found(request));
        return;
    }
    if (operation->bypassed) {
        fake_finish(engine, request, err_set(&request->err, ERR_DECIDED, "one more execution is signed off already"));
        return;
    }
    operation->bypassed = true;
    uuid_text(&operation->key.uuid, key);
    fake_finish_text(
        engine, request,
        arena_printf(request->arena,
                     "{\"key\":\"%s\",\"fingerprint\":\"%064d\",\"reason\":%.*s,\"actor\":%.*s,\"expires_at\":%.*s}",
                     key, 0, SLICE_ARG(fake_quoted(request->arena, request->in.change.input.bypass.note)),
                     SLICE_ARG(fake_quoted(request->arena, request->actor)),
                     SLICE_ARG(fake_instant(request->arena, now_ms + BYPASS_MS))));
}

void fake_cost(struct engine *engine, struct engine_request *request)
{
    const struct fake_operation *operation =
        operation_find(engine, request->namespace, request->in.change.input.cost.key);
    char key[UUID_TEXT_BYTES];

    if (!operation) {
        fake_finish(engine, request, fake_not_found(request));
        return;
    }
    uuid_text(&operation->key.uuid, key);
    fake_finish_text(
        engine, request,
        arena_printf(request->arena,
                     "{\"key\":\"%s\",\"state\":\"completed\",\"took_effect\":\"yes\",\"run\":\"r\",\"step\":\"one\","
                     "\"tool\":\"t.one\",\"attempts\":1,\"cost\":%lld}",
                     key, (long long)request->in.change.input.cost.micros));
}

/* --- reading --- */

#define OPERATION                                                                                                      \
    "{\"key\":\"7c0f1a44-0000-8000-8000-000000000001\",\"state\":\"completed\",\"took_effect\":\"yes\",\"run\":\"r\"," \
    "\"saga\":\"quick\",\"step\":\"one\","                                                                             \
    "\"tool\":\"t.one\",\"tool_version\":1,\"scope\":null,\"generation\":0,\"class\":\"keyed\",\"attempts\":1,"        \
    "\"args\":{\"n\":1.0},\"result\":null,"                                                                            \
    "\"error\":null,\"cost\":null,\"duplicate\":false,\"duplicates_seen\":0,\"first_sent_at\":null,\"last_sent_at\":"  \
    "null,\"created_at\":null,\"ended_at\":null}"

void engine_list_acts(struct engine *engine, struct engine_request *request)
{
    fake_finish_text(
        engine, request,
        slice_is(request->namespace, "default")
            ? SLICE("[{\"id\":\"019b3c52-0000-7000-8000-00000000000a\",\"at\":\"2026-01-01T00:00:00.000Z\","
                    "\"actor\":\"ann\",\"role\":\"operator\",\"via\":\"session\",\"address\":\"127.0.0.1\","
                    "\"verb\":\"abort\",\"kind\":\"saga\",\"target\":\"019b3c52-0000-7000-8000-000000000001\","
                    "\"detail\":null,\"saga\":\"019b3c52-0000-7000-8000-000000000001\",\"saga_name\":\"quick\","
                    "\"business_id\":\"q-1\",\"tool\":null,\"note\":\"the customer called\",\"outcome\":\"done\","
                    "\"code\":null,\"count\":1,\"last_at\":\"2026-01-01T00:00:00.000Z\"},"
                    "{\"id\":\"019b3c52-0000-7000-8000-00000000000b\",\"at\":\"2026-01-01T00:00:00.000Z\","
                    "\"actor\":\"rob\",\"role\":\"reader\",\"via\":\"token\",\"address\":null,"
                    "\"verb\":\"abort\",\"kind\":\"saga\",\"target\":\"019b3c52-0000-7000-8000-000000000001\","
                    "\"detail\":null,\"saga\":null,\"saga_name\":null,\"business_id\":null,\"tool\":null,"
                    "\"note\":null,\"outcome\":\"refused\",\"code\":\"forbidden\",\"count\":3,"
                    "\"last_at\":\"2026-01-01T00:00:30.000Z\"}]")
            : SLICE("[]"));
}

void engine_count_refusal(struct engine *engine, const struct engine_refusal *refusal)
{
    (void)engine;
    CHECK(refusal->by.via && refusal->verb.len > 0 && refusal->namespace.ptr);
}

void engine_list_debts(struct engine *engine, struct engine_request *request)
{
    fake_finish_text(engine, request,
                     slice_is(request->namespace, "default")
                         ? SLICE("[{\"saga\":\"019b3c52-0000-7000-8000-000000000001\",\"saga_name\":\"quick\","
                                 "\"business_id\":\"=1+1\",\"tags\":{},\"step\":\"one\",\"tool\":\"t.one\","
                                 "\"operation\":\"7c0f1a44-0000-8000-8000-000000000001\",\"took_effect\":\"yes\","
                                 "\"cost\":4900,\"result\":{\"id\":\"a \\\"b\\\"\"},"
                                 "\"since\":\"2026-01-01T00:00:00.000Z\",\"ended_at\":\"2026-01-01T00:00:01.000Z\","
                                 "\"settled\":null}]")
                         : SLICE("[]"));
}

void engine_list_operations(struct engine *engine, struct engine_request *request)
{
    struct list_link *link = list_first(&engine->operations);
    struct buffer out;
    bool is_default = slice_is(request->namespace, "default");
    size_t count = is_default ? 1 : 0;

    buffer_init(&out, 1 << 20);
    buffer_put_text(&out, is_default ? "[" OPERATION : "[");
    for (; link && count < request->in.operations.limit; link = list_after(&engine->operations, link)) {
        const struct fake_operation *operation = container_of(link, struct fake_operation, link);

        if (slice_equal(operation->namespace, request->namespace)) {
            buffer_put_text(&out, count++ ? "," : "");
            buffer_put_slice(&out, operation_json(operation, request->arena));
        }
    }
    buffer_put_char(&out, ']');
    request->answer = arena_slice(request->arena, buffer_slice(&out));
    buffer_fini(&out);
    fake_finish(engine, request, ERR_OK);
}

/* Previews a single verb that leads nowhere. */
void engine_preview(struct engine *engine, struct engine_request *request)
{
    const struct op_key *key = &request->in.preview.key;
    bool known = request->in.preview.escalation
                     ? request->in.preview.escalation < 1000 && slice_is(request->namespace, "default")
                 : uuid_is_nil(&key->uuid)
                     ? fake_saga_find(engine, request->namespace, request->in.preview.id) != NULL
                     : operation_find(engine, request->namespace, *key) != NULL || key->uuid.bytes[0] == 0x7c;

    if (known) {
        fake_finish_text(engine, request,
                         SLICE("{\"assumes\":\"nothing\",\"verbs\":[{\"verb\":\"abort\",\"allowed\":false,"
                               "\"refused\":\"ended\",\"because\":\"the saga has ended\"}]}"));
    } else {
        fake_finish(engine, request, fake_not_found(request));
    }
}

void engine_get_operation(struct engine *engine, struct engine_request *request)
{
    struct fake_operation *operation = operation_find(engine, request->namespace, request->in.operation.key);

    if (operation) {
        fake_finish_text(engine, request, operation_json(operation, request->arena));
    } else if (request->in.operation.key.uuid.bytes[0] == 0x7c && request->in.operation.key.uuid.bytes[15] == 1 &&
               slice_is(request->namespace, "default")) {
        fake_finish_text(engine, request, SLICE(OPERATION));
    } else {
        fake_finish(engine, request, fake_not_found(request));
    }
}

#define FAKE_TOOL(name, more)                                                                                          \
    {                                                                                                                  \
        DEFINITION_TOOL, SLICE(name), SLICE("{\"name\":\"" name "\"," more "}")                                        \
    }
#define FAKE_REFUSING(error) FAKE_TOOL("as." error, "\"effect\":\"keyed\",\"terminal\":true")

/* The tools that it has, and the definition "quick". Every namespace but "default" is empty. */
const struct offers *engine_offers(struct engine *engine, struct slice namespace, struct err *err)
{
    const struct offered definitions[] = {
        FAKE_TOOL("t.one",
                  "\"description\":\"Charges a card.\",\"effect\":\"keyed\",\"compensate\":{\"tool\":\"t.undo\"},"
                  "\"input\":{\"$comment\":\"a\",\"properties\":{\"n\":{\"type\":\"number\"}}},"
                  "\"expose\":{\"title\":\"Charge\",\"scope\":true,\"open_world\":false}"),
        FAKE_TOOL("t.undo", "\"effect\":\"keyed\",\"terminal\":true"),
        FAKE_TOOL("t.read", "\"effect\":\"read\""),
        FAKE_TOOL("t.slow",
                  "\"effect\":\"once\",\"terminal\":true,\"expose\":{\"step\":true,\"sets\":[\"slow\",\"a_set\"],"
                  "\"output\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}}"),
        FAKE_TOOL("t.hidden", "\"effect\":\"read\",\"expose\":false"),
        FAKE_REFUSING("arguments-differ"),
        FAKE_REFUSING("loop-detected"),
        FAKE_REFUSING("budget-exhausted"),
        FAKE_REFUSING("breaker-open"),
        FAKE_REFUSING("saga-sealed"),
        FAKE_REFUSING("outcome-unknown"),
        FAKE_REFUSING("awaiting-operator"),
        {DEFINITION_SAGA, SLICE("quick"), SLICE("{\"name\":\"quick\",\"expose\":true,\"steps\":[]}")},
    };

    if (engine->away) {
        (void)err_set(err, ERR_STORE, "the database does not answer");
        return NULL;
    }
    offers_fini(&engine->offers);
    offers_build(definitions, slice_is(namespace, "default") ? COUNT_OF(definitions) : 0, &engine->offers);
    return &engine->offers;
}

void engine_write_tool_metrics(const struct engine *engine, struct slice namespace, struct buffer *out)
{
    (void)namespace;
    buffer_printf(out,
                  "# HELP sagad_tool_operations_total Operations that calls began\n"
                  "# TYPE sagad_tool_operations_total counter\n"
                  "sagad_tool_operations_total{namespace=\"default\",tool=\"t.one\"} %zu\n",
                  engine->operations.count);
}
