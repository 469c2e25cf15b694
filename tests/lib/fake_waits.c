/* The fake engine's pauses, signals and approvals, and a saga that has steps of every kind. */
#include "tests/lib/fake_engine_state.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

void fake_pause(struct engine *engine, struct engine_request *request)
{
    struct fake_saga *saga = fake_saga_find(engine, request->namespace, request->in.change.saga);

    if (!saga) {
        fake_finish(engine, request, fake_not_found(request));
    } else if (saga->ended_ms) {
        fake_finish(engine, request, err_set(&request->err, ERR_ENDED, "the saga has ended %s", saga->status));
    } else {
        saga->status = "paused"; /* the saga may be paused already */
        fake_finish_text(engine, request, fake_saga_json(saga, request->arena));
    }
}

/* Mends a saga. Every saga calls the tool `quick`, which has two versions, and a call of version 2 is always under
 * way. */
void fake_mend(struct engine *engine, struct engine_request *request)
{
    const struct saga_input *input = &request->in.change.input;
    struct fake_saga *saga = fake_saga_find(engine, request->namespace, request->in.change.saga);

    if (!saga) {
        fake_finish(engine, request, fake_not_found(request));
    } else if (saga->ended_ms) {
        fake_finish(engine, request, err_set(&request->err, ERR_ENDED, "the saga has ended %s", saga->status));
    } else if (!slice_is(input->mend.tool, "quick")) {
        fake_finish(engine, request, err_set(&request->err, ERR_INVALID, "this saga calls no such tool"));
    } else if (input->mend.version == 2 && !input->mend.accept_double) {
        fake_finish(engine, request, err_set(&request->err, ERR_CALL_OUT, "a call of this tool is under way"));
    } else {
        fake_finish_text(engine, request, fake_saga_json(saga, request->arena));
    }
}

/* Reruns a saga. A saga that has ended left nothing standing, and its rerun is the saga itself. Under the key "taken"
 * the business id is taken. */
void fake_rerun(struct engine *engine, struct engine_request *request)
{
    const struct saga_input *input = &request->in.change.input;
    struct fake_saga *saga = fake_saga_find(engine, request->namespace, request->in.change.saga);

    if (!saga) {
        fake_finish(engine, request, fake_not_found(request));
    } else if (!saga->ended_ms) {
        fake_finish(engine, request, err_set(&request->err, ERR_CONFLICT, "the saga has not ended"));
    } else if (!input->rerun.id.ptr) {
        fake_finish(engine, request, err_set(&request->err, ERR_INVALID, "a rerun needs an Idempotency-Key"));
    } else if (slice_is(input->rerun.id, "taken")) {
        fake_finish(engine, request, err_set(&request->err, ERR_TAKEN, "the business id belongs to another saga"));
    } else {
        request->created = !slice_is(input->rerun.id, "again");
        fake_finish_text(engine, request, fake_saga_json(saga, request->arena));
    }
}

void fake_resume(struct engine *engine, struct engine_request *request)
{
    struct fake_saga *saga = fake_saga_find(engine, request->namespace, request->in.change.saga);

    if (!saga) {
        fake_finish(engine, request, fake_not_found(request));
    } else if (strcmp(saga->status, "paused") != 0) {
        fake_finish(engine, request, err_set(&request->err, ERR_CONFLICT, "the saga is not paused"));
    } else {
        saga->status = "running";
        fake_finish_text(engine, request, fake_saga_json(saga, request->arena));
    }
}

/* --- signals: every saga waits for "paid" once; one signal a saga is remembered by its key --- */

void fake_signal(struct engine *engine, struct engine_request *request)
{
    struct fake_saga *saga = fake_saga_find(engine, request->namespace, request->in.change.saga);
    struct slice payload =
        request->in.change.input.signal.payload.ptr ? request->in.change.input.signal.payload : SLICE("null");
    char id[UUID_TEXT_BYTES];

    if (!saga) {
        fake_finish(engine, request, fake_not_found(request));
        return;
    }
    if (saga->ended_ms) {
        fake_finish(engine, request, err_set(&request->err, ERR_ENDED, "the saga has ended %s", saga->status));
        return;
    }
    if (!slice_is(request->in.change.input.signal.name, "paid")) {
        fake_finish(
            engine, request,
            err_set(&request->err, ERR_INVALID, "no step of this saga waits for this signal; one waits for paid"));
        return;
    }
    bool repeat =
        request->in.change.input.signal.id.ptr && slice_equal(saga->signal_key, request->in.change.input.signal.id);

    if (repeat && !slice_equal(saga->signal_payload, payload)) {
        fake_finish(engine, request, err_set(&request->err, ERR_OTHER_INPUT, "this key came with another payload"));
        return;
    }
    if (!repeat) {
        saga->signal_key = arena_slice(&saga->arena, request->in.change.input.signal.id);
        saga->signal_payload = arena_slice(&saga->arena, payload);
    }
    request->created = !repeat;
    uuid_text(&saga->id.uuid, id);
    fake_finish_text(engine, request,
                     arena_printf(request->arena, "{\"saga\":\"%s\",\"name\":\"paid\",\"taken\":true,\"created\":%s}",
                                  id, repeat ? "false" : "true"));
}

/* --- approvals: number 1 asks anybody, number 2 was decided long ago, number 3 asks an operator --- */

#define SAGA "019b3c52-0000-7000-8000-000000000001"
#define HASH "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"

static struct slice approval(const struct engine *engine, uint64_t n, struct arena *arena)
{
    const char *status = n == 2 ? "approved" : n == 1 && engine->decided ? engine->decided : "open";
    bool open = strcmp(status, "open") == 0;

    return arena_printf(arena,
                        "{\"n\":%llu,\"saga\":\"" SAGA "\",\"saga_name\":\"quick\",\"business_id\":null,\"tags\":{},"
                        "\"step\":\"boss\",\"show\":{\"amount\":250},\"hash\":\"" HASH
                        "\",\"roles\":[\"%s\"],\"opened_at\":\"2026-01-31T09:05:00.250Z\",\"expires_at\":null,"
                        "\"status\":\"%s\",\"decided_at\":%s,\"actor\":%s,\"note\":%s}",
                        (unsigned long long)n, n == 3 ? "operator" : "agent", status,
                        open ? "null" : "\"2026-01-31T09:06:00.250Z\"", open ? "null" : "\"boss\"",
                        open ? "null" : "\"fine\"");
}

static bool knows(const struct engine_request *request, uint64_t n)
{
    return slice_is(request->namespace, "default") && n >= 1 && n <= 3;
}

void engine_get_approvals(struct engine *engine, struct engine_request *request)
{
    uint64_t n = request->in.approvals.number;
    struct arena *arena = request->arena;

    if (n) {
        if (knows(request, n)) {
            fake_finish_text(engine, request, approval(engine, n, arena));
        } else {
            fake_finish(engine, request, fake_not_found(request));
        }
    } else if (!slice_is(request->namespace, "default") || (request->in.approvals.open_only && engine->decided)) {
        fake_finish_text(engine, request, SLICE("[]"));
    } else if (request->in.approvals.open_only) {
        fake_finish_text(engine, request, arena_printf(arena, "[%.*s]", SLICE_ARG(approval(engine, 1, arena))));
    } else {
        fake_finish_text(engine, request,
                         arena_printf(arena, "[%.*s,%.*s]", SLICE_ARG(approval(engine, 2, arena)),
                                      SLICE_ARG(approval(engine, 1, arena))));
    }
}

void fake_decide(struct engine *engine, struct engine_request *request)
{
    uint64_t n = request->in.change.input.decision.approval;

    if (!knows(request, n)) {
        fake_finish(engine, request, fake_not_found(request));
    } else if (n == 3 && request->in.change.input.decision.role < ROLE_OPERATOR) {
        fake_finish(engine, request, err_set(&request->err, ERR_FORBIDDEN, "this is for the role operator"));
    } else if (n == 2 || (n == 1 && engine->decided)) {
        fake_finish(engine, request,
                    err_set(&request->err, ERR_DECIDED, "approval %llu was decided before", (unsigned long long)n));
    } else if (request->in.change.input.decision.hash.ptr && !slice_is(request->in.change.input.decision.hash, HASH)) {
        fake_finish(engine, request, err_set(&request->err, ERR_CONFLICT, "something else is shown by now"));
    } else if (n == 3) {
        fake_finish_text(engine, request, approval(engine, n, request->arena));
    } else {
        engine->decided = request->in.change.input.decision.approve ? "approved" : "refused";
        fake_finish_text(engine, request, approval(engine, n, request->arena));
    }
}

/* --- what a saga shows of its steps --- */

struct fake_step {
    const char *id, *kind, *tool, *status;
    int from_ms, to_ms;                   /* times since the saga began; -1 for "not yet" */
    const char *error, *waits_for, *undo; /* JSON; NULL for null */
    const char *trying;                   /* JSON; NULL when the member is missing */
};

static const struct fake_step tree[] = {
    {"reserve", "call", "stock.take", "compensated", 0, 400, NULL, NULL,
     "{\"status\":\"completed\",\"order\":2,\"key\":null,\"attempts\":3,\"result\":null,\"error\":null"},
    {"hotels", "for_each", "hotel.book", "running", 400, -1, NULL, NULL, NULL},
    {"pay", "saga", NULL, "failed", 500, 900, "{\"code\":\"child-failed\",\"detail\":\"capture failed\"}", NULL, NULL},
    {"pay/hold", "call", "bank.hold", "compensated", 500, 600, NULL, NULL,
     "{\"status\":\"completed\",\"order\":1,\"key\":null,\"attempts\":1,\"result\":null,\"error\":null"},
    {"pay/capture", "call", "bank.capture", "failed", 600, 800, "{\"code\":\"http-402\",\"detail\":\"no money\"}", NULL,
     NULL},
    {"nap", "sleep", NULL, "waiting", 900, -1, NULL, "{\"kind\":\"sleep\"}", NULL},
    {"paid", "signal", NULL, "waiting", 900, -1, NULL, "{\"kind\":\"signal\",\"signal\":\"paid\"}", NULL},
    {"boss", "approve", NULL, "waiting", 900, -1, NULL,
     "{\"kind\":\"approve\",\"approval\":1,\"show\":{\"amount\":250},\"roles\":[\"operator\"]}", NULL},
    {"held", "call", "bank.hold", "retrying", 900, -1, "{\"code\":\"breaker-open\",\"detail\":\"its breaker is open\"}",
     NULL, NULL,
     "{\"what\":\"call\",\"since\":\"2026-01-31T09:05:00.250Z\",\"times\":0,\"last_at\":null,\"last_error\":\"breaker-"
     "open\","
     "\"next_at\":\"2026-01-31T09:06:00.250Z\",\"person_at\":null}"},
    {"again", "call", "bank.hold", "retrying", 900, -1,
     "{\"code\":\"rate-limited\",\"detail\":\"its rate is used up\"}", NULL, NULL,
     "{\"what\":\"call\",\"since\":\"2026-01-31T09:05:00.250Z\",\"times\":2,\"last_at\":null,\"last_error\":\"rate-"
     "limited\","
     "\"next_at\":\"2026-01-31T09:06:00.250Z\",\"person_at\":null}"},
};

#define ELEMENTS 1000

static void put_instant(struct buffer *out, struct arena *arena, const char *name, int64_t ms)
{
    buffer_printf(out, ",\"%s\":%.*s", name, SLICE_ARG(fake_instant(arena, ms)));
}

static void put_step(struct buffer *out, struct arena *arena, int64_t began_ms, const struct fake_step *step)
{
    bool waits = step->waits_for != NULL;

    buffer_printf(
        out, "%s{\"id\":\"%s\",\"kind\":\"%s\",\"tool\":%.*s,\"status\":\"%s\",\"took_effect\":\"no\",\"key\":null",
        out->len ? "," : "", step->id, step->kind,
        SLICE_ARG(fake_quoted(arena, step->tool ? slice_of(step->tool) : SLICE_NONE)), step->status);
    buffer_printf(out, ",\"attempts\":%d,\"waits_for\":%s,\"result\":null,\"error\":%s", step->tool ? 1 : 0,
                  waits ? step->waits_for : "null", step->error ? step->error : "null");
    if (step->trying) {
        buffer_printf(out, ",\"trying\":%s", step->trying);
    }
    put_instant(out, arena, "due_at", waits ? began_ms + 3600000 : 0);
    put_instant(out, arena, "started_at", step->from_ms < 0 ? 0 : began_ms + step->from_ms);
    put_instant(out, arena, "ended_at", step->to_ms < 0 ? 0 : began_ms + step->to_ms);
    buffer_printf(out, ",\"compensation\":%s", step->undo ? step->undo : "null");
    if (step->undo) {
        put_instant(out, arena, "started_at", began_ms + 900);
        put_instant(out, arena, "ended_at", began_ms + 1000);
        buffer_put_char(out, '}');
    }
    buffer_put_char(out, '}');
}

static void put_elements(struct buffer *out, struct arena *arena, int64_t began_ms)
{
    for (int i = 0; i < ELEMENTS; i++) {
        char id[32];
        struct fake_step step = {id,   "call", "hotel.book", i == 700 ? "unknown" : "completed", 400, 450,
                                 NULL, NULL,   NULL};

        (void)snprintf(id, sizeof(id), "hotels#%d", i);
        put_step(out, arena, began_ms, &step);
    }
}

struct slice fake_steps(const struct fake_saga *saga, struct arena *arena)
{
    struct buffer out;

    if (!slice_is(saga->name, "tree")) {
        return SLICE("{\"id\":\"one\",\"tool\":\"t.one\",\"status\":\"running\",\"took_effect\":\"maybe\",\"key\":"
                     "\"7c0f1a44-0000-8000-8000-000000000001\","
                     "\"attempts\":1,\"result\":null,\"error\":null,\"started_at\":null,\"ended_at\":null,"
                     "\"compensation\":null}");
    }
    buffer_init(&out, 4 << 20);
    for (size_t i = 0; i < COUNT_OF(tree); i++) {
        put_step(&out, arena, saga->created_ms, &tree[i]);
        if (strcmp(tree[i].id, "hotels") == 0) {
            put_elements(&out, arena, saga->created_ms);
        }
    }
    struct slice steps = arena_slice(arena, buffer_slice(&out));

    buffer_fini(&out);
    return steps;
}

struct slice fake_more(const struct fake_saga *saga)
{
    return slice_is(saga->name, "tree")
               ? SLICE(
                     "\"locks\":[{\"key\":\"order:7\",\"when_taken\":\"wait\",\"status\":\"held\"},{\"key\":\"stock:"
                     "9\","
                     "\"when_taken\":\"wait\",\"status\":\"waiting\"}],\"followers\":[{\"saga\":\"quick\",\"input\":{},"
                     "\"business_id\":\"then:7\"}],\"signals\":2,")
               : SLICE("");
}
