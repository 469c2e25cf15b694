/*
 * The inbox at the engine that owns the shard. Requests that reached another engine are carried out as if they had come
 * here, and their answers go back. The turn that an input leads to removes its row in the same transaction, so that it
 * is consumed once. A row that led to no turn (it was refused, or meant nothing) is removed together with its answer. A
 * row that cannot be consumed now stays, for us or the next owner.
 */
#include "run/exchange/exchange_state.h"
#include "run/intake/measures.h"
#include "run/saga/cases.h"

#include <stdlib.h>

#include "base/canon.h"
#include "base/log.h"
#include "base/metric.h"
#include "run/leaving.h"
#include "run/readiness.h"
#include "run/request/start.h"
#include "run/saga/live.h"
#include "run/saga/summon.h"
#include "run/saga/turn.h"
#include "run/shard/shard.h"
#include "run/trace/exporter.h"

#define ANSWER_BYTES_MAX (64u << 20)
#define HELD_MS 60000     /* a row whose saga cannot be read is tried again after this time */
#define NEWS_MS 200       /* a row whose tool this engine does not know yet is tried again after this time */
#define NEWS_LAST_MS 5000 /* a row this old is not tried again for its tool */

struct delivery { /* a row that is being delivered */
    struct engine *engine;
    struct arena arena;
    struct mail mail;              /* a start or late evidence */
    struct engine_request request; /* all other requests; the answer is made from its `out`, for a start, too */
    struct answer_put answer;
    struct buffer body;
    struct timer timer;
    uint32_t shard;
    int64_t epoch; /* the epoch at which the row was taken up */
    struct uuid id;
    bool is_call;
    bool may_be_decided;  /* "decided before" is an answer to it, and need not mean that the row was consumed before */
    bool keep;            /* the row stays although it was answered */
    struct slice name;    /* the name of the definition of a start */
    struct slice follows; /* the saga whose `then` asks for the start; nobody waits for an answer */
};

static void delivery_end(struct delivery *delivery)
{
    timer_stop(delivery->engine->loop, &delivery->timer);
    (void)map_remove(&delivery->engine->exchange->deliveries, &delivery->id, sizeof(delivery->id));
    buffer_fini(&delivery->body);
    arena_fini(&delivery->arena);
    free(delivery);
}

static void delivery_drop(struct delivery *delivery)
{
    store_inbox_drop(delivery->engine->store, delivery->shard, &delivery->id);
    delivery_end(delivery);
}

static void on_held(struct timer *timer)
{
    delivery_end(container_of(timer, struct delivery, timer)); /* the row comes again */
}

static void delivery_hold(struct delivery *delivery)
{
    timer_start(delivery->engine->loop, &delivery->timer, HELD_MS, on_held);
}

/* --- answers --- */

/* Is the row for later? Nothing happened, and the row is not at fault. It is for the next owner, or for us when the
 * database is back. */
static bool is_for_later(enum err_code code)
{
    return code == ERR_FENCED || code == ERR_STORE || code == ERR_STOPPING || code == ERR_LOST_COMMIT;
}

static void on_answered(struct answer_put *put)
{
    struct delivery *delivery = container_of(put, struct delivery, answer);
    struct engine *engine = delivery->engine;

    engine->shards[delivery->shard].answers--;
    if (delivery->keep && put->code == ERR_OK) {
        delivery_hold(delivery);
    } else {
        delivery_end(delivery); /* if it was not written, the row is still there and comes again */
    }
    engine_check_drained(engine);
}

static void delivery_answer(struct delivery *delivery)
{
    const struct engine_request *request = &delivery->request;

    if (request->code != ERR_OK && !delivery->is_call) { /* the log of the saga has what calls are told */
        log_info("inbox_refused", LOG_UUID("input", &delivery->id), LOG_ERR(&request->err));
    }
    /* The input was consumed before, by an append of the owner at that time, which has answered. */
    if (request->code == ERR_DECIDED && !delivery->may_be_decided) {
        delivery_end(delivery);
        return;
    }
    /* A program that can read the saga will find the input. A call of an agent is not made after such a time. */
    delivery->keep = request->code == ERR_CORRUPT && !delivery->is_call;
    exchange_answer_write(request, &delivery->body);
    if (delivery->body.overflow) {
        delivery_drop(delivery);
        return;
    }
    delivery->answer = (struct answer_put){.shard = delivery->shard,
                                           .input = delivery->id,
                                           .body = buffer_slice(&delivery->body),
                                           .drop_input = !delivery->keep,
                                           .done = on_answered};
    delivery->engine->shards[delivery->shard].answers++;
    store_answer_put(delivery->engine->store, &delivery->answer);
}

/* May we refuse the row? The next owner finds it, and may carry out what we would refuse. Then the caller would have
 * been told something wrong. */
static bool is_ours_to_refuse(const struct delivery *delivery)
{
    const struct engine *engine = delivery->engine;
    const struct shard *shard = &engine->shards[delivery->shard];

    return shard->epoch == delivery->epoch && (shard->state == SHARD_OWNED || shard->state == SHARD_GIVING) &&
           lease_allows_send(engine->leases, delivery->shard); /* the lease lasts long enough for the answer */
}

static void delivery_ended(struct delivery *delivery)
{
    enum err_code code = delivery->request.code;

    if (is_for_later(code) || engine_is_closing(delivery->engine) || (code != ERR_OK && !is_ours_to_refuse(delivery))) {
        delivery_end(delivery);
    } else {
        delivery_answer(delivery);
    }
}

static void on_request_done(struct engine_request *request)
{
    delivery_ended(container_of(request, struct delivery, request));
}

/* --- start --- */

/* Without ERR_OK the row is still there, and comes again. */
static void on_case_opened(void *context, enum err_code code)
{
    (void)code;
    delivery_end(context);
}

/* Refuses a follower. Its saga has completed and stays so. The follower becomes a case, which a person settles. */
static void follower_refuse(struct delivery *delivery, const struct err *err)
{
    struct refused_follower refused = {.namespace = delivery->request.namespace,
                                       .name = delivery->name,
                                       .business_id = delivery->mail.input.start.business_id,
                                       .input = delivery->mail.input.start.input,
                                       .input_id = delivery->id,
                                       .err = err};

    metric_add(METRIC_FOLLOWERS_REFUSED, 1);
    log_error("follower_refused", LOG_SLICE("saga", delivery->follows), LOG_SLICE("follower", delivery->name),
              LOG_SLICE("business_id", delivery->mail.input.start.business_id), LOG_ERR(err));
    if (uuid_parse(delivery->follows, &refused.parent.uuid)) {
        case_follower(&delivery->engine->shards[delivery->shard], &refused, on_case_opened, delivery);
    } else {
        delivery_drop(delivery);
    }
}

/* The follower was started before, by this saga or by hand, with the same input. That is no refusal. */
static void follower_exists(struct delivery *delivery)
{
    const struct append *append = delivery->mail.live ? turn_append(delivery->mail.live) : NULL;
    struct saga_id existing;
    struct err err = {0};

    CHECK(append); /* only the database knows which saga has this id */
    if (start_repeated(append, &existing, &err) != ERR_OK) {
        follower_refuse(delivery, &err);
        return;
    }
    log_info("follower_exists", LOG_SLICE("saga", delivery->follows), LOG_SLICE("follower", delivery->name),
             LOG_SLICE("business_id", delivery->mail.input.start.business_id));
    delivery_drop(delivery);
}

static void follower_started(struct delivery *delivery, enum err_code code, const struct err *err)
{
    if (code == ERR_OK || code == ERR_DECIDED || is_for_later(code)) {
        delivery_end(delivery); /* the append has removed the row, or the row comes again */
    } else if (code == ERR_CONFLICT) {
        follower_exists(delivery);
    } else {
        follower_refuse(delivery, err);
    }
}

static void on_started(struct mail *mail, enum err_code code, const struct err *err)
{
    struct delivery *delivery = container_of(mail, struct delivery, mail);
    struct engine_request *request = &delivery->request;
    const struct append *append = mail->live ? turn_append(mail->live) : NULL;

    if (delivery->follows.ptr) {
        follower_started(delivery, code, err);
        return;
    }
    request->code = code;
    if (code == ERR_OK) {
        request->created = true;
    } else if (code == ERR_CONFLICT && append) {
        request->code = start_repeated(append, &request->saga, &request->err);
    } else {
        request->err = *err;
    }
    delivery_ended(delivery);
}

/* Is the row so old that whatever was registered elsewhere is known here, too? */
static bool is_old(const struct delivery *delivery)
{
    int64_t age_ms = loop_wall_ms(delivery->engine->loop) - uuid_v7_ms(&delivery->id);

    return age_ms > NEWS_LAST_MS || age_ms < -NEWS_LAST_MS;
}

/* Checks a follower as a person's start is checked before it is accepted, against the definition as it is now. */
static bool follower_fits(struct delivery *delivery, const struct definition *definition)
{
    struct err *err = &delivery->request.err;
    struct faults faults;

    faults_init(&faults, &delivery->arena);
    if (definition->input) {
        schema_check(definition->input, mail_asked(&delivery->mail), SLICE("/input"), &delivery->arena, &faults);
    }
    if (faults.count == 0) {
        return true;
    }
    (void)err_set(err, ERR_INVALID, "the input does not fit the schema of this saga");
    if (!definitions_declare(delivery->engine->definitions, delivery->request.namespace, SLICE_NONE)) {
        err_detail(err, "%.*s: %.*s", SLICE_ARG(faults.items[0].pointer), SLICE_ARG(faults.items[0].detail));
    } else { /* the detail may show the value */
        err_detail(err, "%.*s", SLICE_ARG(faults.items[0].pointer));
    }
    err_hint(err, "start it by hand with an input that fits, and mend `then` of the saga that it follows");
    return false;
}

static struct trace_context read_trace(struct slice payload, struct arena *arena)
{
    return trace_context_read(exchange_text(payload, "traceparent", arena),
                              exchange_text(payload, "tracestate", arena));
}

static void deliver_start(struct delivery *delivery, const struct inbox_row *row, struct slice payload)
{
    struct engine *engine = delivery->engine;
    struct arena *arena = &delivery->arena;
    struct saga_input *input = &delivery->mail.input;
    struct engine_request *request = &delivery->request;
    int64_t version = 0;

    if (live_find(engine, row->saga)) {
        delivery_drop(delivery); /* applied before */
        return;
    }
    *input = (struct saga_input){.type = SAGA_INPUT_START,
                                 .start = {.namespace = request->namespace,
                                           .business_id = exchange_text(payload, "business_id", arena),
                                           .key = exchange_text(payload, "key", arena),
                                           .tags = exchange_raw(payload, "tags"),
                                           .input = exchange_raw(payload, "input"),
                                           .budget = exchange_raw(payload, "budget"),
                                           .loop = exchange_raw(payload, "loop"),
                                           .on_timeout = exchange_text(payload, "on_timeout", arena)}};
    (void)json_i64(json_member(payload, "deadline_ms"), &input->start.deadline_ms);
    if (exporter_is_on(engine->exporter)) {
        input->start.trace = read_trace(payload, arena);
    }
    delivery->mail.asked = exchange_raw(payload, "asked");
    (void)json_i64(json_member(payload, "version"), &version); /* 0 is the newest version */
    delivery->name = exchange_text(payload, "saga", arena);
    delivery->follows = exchange_text(payload, "follows", arena);
    if (delivery->follows.ptr) { /* the way back, as the tag of a rerun is */
        input->start.tags = arena_printf(arena, "{\"follows\":\"%.*s\"}", SLICE_ARG(delivery->follows));
    }
    delivery->mail.started_by = delivery->follows.ptr ? SLICE_NONE : request->actor; /* no person starts a follower */
    const struct definition *definition =
        definitions_newest(engine->definitions, request->namespace, delivery->name, (uint32_t)version, &request->err);
    if (!definition && request->err.code == ERR_NOT_FOUND && !(delivery->follows.ptr && is_old(delivery))) {
        /* Definitions are never removed, so an unknown one was registered elsewhere a moment ago. The row comes
         * again. */
        log_warn("inbox_start_refused", LOG_UUID("saga", &row->saga.uuid), LOG_ERR(&request->err));
        engine_reload_definitions(engine);
        delivery_end(delivery);
        return;
    }
    if (delivery->follows.ptr &&
        (!definition ||
         !definitions_lets_start(engine->definitions, request->namespace, delivery->name, arena, &request->err) ||
         !follower_fits(delivery, definition))) {
        follower_refuse(delivery, &request->err);
        return;
    }
    if (!definition) {
        request->code = request->err.code;
        delivery_ended(delivery);
        return;
    }
    request->saga = row->saga;
    if (!delivery->follows.ptr && !intake_admits(engine, &request->err, &request->call.retry_after_ms)) {
        request->code = ERR_BUSY; /* the client was promised nothing yet */
        delivery_ended(delivery);
        return;
    }
    delivery->mail.done = on_started;
    live_send(live_new(engine, &engine->shards[delivery->shard], row->saga, definition), &delivery->mail);
}

/* --- requests --- */

/* Returns what is left of the caller's patience, and never more than it was, because the clocks of engines may
 * differ. */
static int64_t wait_left(const struct delivery *delivery, struct slice payload)
{
    int64_t wait_ms = 0, passed_ms = loop_wall_ms(delivery->engine->loop) - uuid_v7_ms(&delivery->id);

    (void)json_i64(json_member(payload, "wait_ms"), &wait_ms);
    passed_ms = passed_ms < 0 ? 0 : passed_ms;
    return wait_ms > passed_ms ? wait_ms - passed_ms : 0;
}

static void on_news(struct timer *timer);

/* Does the row wait for news? Its tool may have been registered elsewhere a moment ago. A tool that is unknown after a
 * while does not exist. */
static bool waits_for_news(struct delivery *delivery)
{
    struct engine *engine = delivery->engine;
    struct err err = {0};

    if (definitions_tool(engine->definitions, delivery->request.namespace, delivery->request.in.call.tool, 0, &err) ||
        err.code != ERR_NOT_FOUND || is_old(delivery)) {
        return false;
    }
    engine_reload_definitions(engine);
    timer_start(engine->loop, &delivery->timer, NEWS_MS, on_news);
    return true;
}

static void call_now(struct delivery *delivery)
{
    if (!waits_for_news(delivery)) {
        call_deliver(delivery->engine, &delivery->request, &delivery->id);
    }
}

static void on_news(struct timer *timer)
{
    call_now(container_of(timer, struct delivery, timer));
}

static void deliver_call(struct delivery *delivery, const struct inbox_row *row, struct slice payload)
{
    struct engine_request *request = &delivery->request;
    struct arena *arena = &delivery->arena;

    (void)row; /* nobody knew the saga of a run */
    delivery->is_call = true;
    request->in.call.run = exchange_text(payload, "run", arena);
    request->in.call.tool = exchange_text(payload, "tool", arena);
    request->in.call.step = exchange_text(payload, "step", arena);
    request->in.call.scope = exchange_text(payload, "scope", arena);
    request->in.call.args = exchange_raw(payload, "args");
    request->in.call.emission = exchange_text(payload, "emission", arena);
    request->in.call.conversation_turn = exchange_text(payload, "turn", arena);
    request->in.call.trace = read_trace(payload, arena);
    request->in.call.wait_ms = wait_left(delivery, payload);
    (void)uuid_parse(exchange_text(payload, "saga", arena), &request->in.call.saga.uuid);
    call_now(delivery);
}

/* Who acts; an engine of an earlier release does not say so. */
static struct act_by read_by(struct slice object, struct arena *arena)
{
    static const char *const ways[] = {"token", "session", "local"};
    struct act_by by = {.address = json_string(json_member(object, "address"), arena)};

    for (size_t i = 0; i < COUNT_OF(ways) && object.ptr; i++) {
        if (json_string_is(json_member(object, "via"), ways[i]) &&
            role_parse(json_string(json_member(object, "role"), arena), &by.role)) {
            by.via = ways[i];
        }
    }
    return by;
}

static bool deliver_change(struct delivery *delivery, const struct inbox_row *row, struct slice payload)
{
    struct change *change = &delivery->request.in.change;
    const struct verb *verb = verb_read(row->kind, payload, &delivery->arena, &change->input);

    if (!verb) {
        return false;
    }
    delivery->request.by = read_by(json_member(payload, "by"), &delivery->arena);
    delivery->request.sees_sensitive = delivery->request.by.role >= ROLE_ADMIN; /* masked where nobody says the role */
    change->verb = (enum verb_id)(verb - verbs);
    change->saga = row->saga;
    change->wait_ms = verb->wait_ms ? wait_left(delivery, payload) : 0;
    delivery->may_be_decided = verb->on != ON_SAGA;
    change_deliver(delivery->engine, &delivery->request, &delivery->id);
    return true;
}

/* --- late evidence --- */

static void on_settled(struct mail *mail, enum err_code code, const struct err *err)
{
    struct delivery *delivery = container_of(mail, struct delivery, mail);

    if (is_for_later(code) || code == ERR_BUSY) {
        delivery_end(delivery);
    } else if (code == ERR_CORRUPT) {
        log_error("late_evidence_waits", LOG_UUID("input", &delivery->id), LOG_ERR(err));
        delivery_hold(delivery); /* held for a program that can read the saga */
    } else {
        if (code != ERR_OK || !mail->live || !turn_append(mail->live)) {
            /* The evidence was known already, or its saga has ended. Then an effect may stand that the log does not
             * show. */
            log_warn("late_evidence_unused", LOG_UUID("saga", &delivery->request.saga.uuid),
                     LOG_I64("step", mail->input.settled.step),
                     LOG_TEXT("outcome", outcome_name(mail->input.settled.outcome.kind)),
                     LOG_TEXT("why", code == ERR_OK ? "it changes nothing" : err->message));
        }
        delivery_drop(delivery); /* when no turn consumed it, it meant nothing any more */
    }
}

static void deliver_settled(struct delivery *delivery, const struct inbox_row *row, struct slice payload)
{
    struct arena *arena = &delivery->arena;
    struct saga_input *input = &delivery->mail.input;
    struct outcome *outcome;
    int64_t step = -1, attempt = 0;

    *input = (struct saga_input){
        .type = SAGA_INPUT_SETTLED,
        .settled = {.direction = json_string_is(json_member(payload, "direction"), direction_name(DIRECTION_UNDO))
                                     ? DIRECTION_UNDO
                                     : DIRECTION_DO,
                    .undo_args = exchange_raw(payload, "undo_args"),
                    .undo_error = exchange_text(payload, "undo_error", arena)}};
    outcome = &input->settled.outcome;
    (void)json_i64(json_member(payload, "step"), &step);
    (void)json_i64(json_member(payload, "attempt"), &attempt);
    (void)json_i64(json_member(payload, "cost_micros"), &input->settled.cost_micros);
    input->settled.cost_unknown = exchange_text(payload, "cost_unknown", arena);
    input->settled.result_error = exchange_text(payload, "result_error", arena);
    (void)json_bool(json_member(payload, "unsent"), &outcome->unsent);
    (void)json_i64(json_member(payload, "retry_after_ms"), &outcome->retry_after_ms);
    outcome->result = exchange_raw(payload, "result");
    outcome->error = exchange_text(payload, "error", arena);
    outcome->detail = exchange_text(payload, "detail", arena);
    outcome->answer = exchange_raw(payload, "answer");
    if (step < 0 || step >= STEP_NONE || attempt <= 0 ||
        !outcome_parse(exchange_text(payload, "outcome", arena), &outcome->kind) || outcome->kind == OUTCOME_ABSENT) {
        log_warn("inbox_input_unknown", LOG_UUID("input", &delivery->id));
        delivery_drop(delivery);
        return;
    }
    input->settled.step = (uint32_t)step;
    input->settled.attempt = (uint32_t)attempt;
    delivery->request.saga = row->saga;
    delivery->mail.done = on_settled;
    live_deliver(delivery->engine, row->saga, delivery->request.namespace, &delivery->mail);
}

/* --- a lock that has become free --- */

static void on_locked(struct mail *mail, enum err_code code, const struct err *err)
{
    struct delivery *delivery = container_of(mail, struct delivery, mail);

    if (is_for_later(code) || code == ERR_BUSY) {
        delivery_end(delivery);
    } else if (code == ERR_CORRUPT) {
        log_error("lock_waits", LOG_UUID("input", &delivery->id), LOG_ERR(err));
        delivery_hold(delivery); /* held for a program that can read the saga */
    } else {
        /* No turn consumed it: the saga has ended, asked by itself meanwhile, or is paused and will ask again. */
        delivery_drop(delivery);
    }
}

static void deliver_locked(struct delivery *delivery, const struct inbox_row *row, struct slice payload)
{
    delivery->mail.input = (struct saga_input){.type = SAGA_INPUT_LOCKED,
                                               .locked = {.key = exchange_text(payload, "key", &delivery->arena)}};
    delivery->mail.done = on_locked;
    live_deliver(delivery->engine, row->saga, delivery->request.namespace, &delivery->mail);
}

/* --- rows --- */

static const struct {
    const char *kind;
    void (*deliver)(struct delivery *delivery, const struct inbox_row *row, struct slice payload);
} kinds[] = {
    {"call", deliver_call},
    {"start", deliver_start},
    {"settled", deliver_settled},
    {"locked", deliver_locked},
};

static void deliver(struct engine *engine, const struct inbox_row *row)
{
    struct delivery *delivery = memory_alloc(sizeof(*delivery));
    struct slice payload;

    delivery->engine = engine;
    delivery->shard = row->shard;
    delivery->epoch = engine->shards[row->shard].epoch;
    delivery->id = row->id;
    map_put(&engine->exchange->deliveries, &delivery->id, sizeof(delivery->id), delivery);
    arena_init(&delivery->arena, 2048);
    buffer_init(&delivery->body, ANSWER_BYTES_MAX);
    delivery->mail.from_inbox = true;
    delivery->mail.inbox_id = row->id;
    payload = arena_slice(&delivery->arena, row->payload);
    if (exchange_is_json(payload)) {
        delivery->request = (struct engine_request){.arena = &delivery->arena,
                                                    .namespace = exchange_text(payload, "namespace", &delivery->arena),
                                                    .actor = exchange_text(payload, "actor", &delivery->arena),
                                                    .done = on_request_done};
        for (size_t i = 0; i < COUNT_OF(kinds); i++) {
            if (slice_is(row->kind, kinds[i].kind)) {
                kinds[i].deliver(delivery, row, payload);
                return;
            }
        }
        if (deliver_change(delivery, row, payload)) {
            return;
        }
    }
    log_warn("inbox_input_unknown", LOG_UUID("input", &delivery->id), LOG_SLICE("kind", row->kind));
    delivery_drop(delivery);
}

static void on_rows(const struct inbox_row *rows, size_t count, void *context)
{
    struct engine *engine = context;

    for (size_t i = 0; i < count && !engine_is_draining(engine); i++) {
        const struct inbox_row *row = &rows[i];

        if (row->shard < SHARD_COUNT && engine->shards[row->shard].state == SHARD_OWNED &&
            !map_find(&engine->exchange->deliveries, &row->id,
                      sizeof(row->id))) { /* otherwise its append is under way and removes the row */
            deliver(engine, row);
        }
    }
}

static void on_watch(struct deferred *deferred)
{
    struct engine *engine = container_of(deferred, struct exchange_room, watch)->engine;

    if (!engine_is_closing(engine)) { /* a closed inbox does not call this any more */
        store_inbox_watch(engine->store, shards_owned_set(engine), on_rows, engine);
    }
}

void deliveries_watch(struct engine *engine)
{
    loop_defer(engine->loop, &engine->exchange->watch, on_watch);
}

size_t deliveries_count(const struct engine *engine)
{
    return engine->exchange->deliveries.count;
}

/* --- the whole --- */

struct exchange_room *exchange_new(struct engine *engine)
{
    struct exchange_room *exchange = memory_alloc(sizeof(*exchange));

    exchange->engine = engine;
    list_init(&exchange->errands);
    list_init(&exchange->late_outcomes);
    map_init(&exchange->deliveries);
    return exchange;
}

bool exchange_sends_late(const struct engine *engine)
{
    return !list_empty(&engine->exchange->late_outcomes);
}

void exchange_closed(struct engine *engine)
{
    loop_defer_cancel(engine->loop, &engine->exchange->watch);
}

void exchange_free(struct exchange_room *exchange)
{
    size_t position = 0;
    void *value;

    CHECK(list_empty(&exchange->late_outcomes)); /* the store has closed */
    while (map_next(&exchange->deliveries, &position, &value)) {
        struct delivery *delivery = value;

        if (timer_running(&delivery->timer)) { /* a held row; the others end with their work, or with the process */
            delivery_end(delivery);
        }
    }
    map_fini(&exchange->deliveries);
    free(exchange);
}
