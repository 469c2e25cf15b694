/* Starts a saga: checks the input, chooses the shard, and makes the first turn durable. */
#include "run/request/calling.h"

#include "base/canon.h"
#include "base/json.h"
#include "base/metric.h"
#include "run/call/holds.h"
#include "run/exchange/exchange.h"
#include "run/request/start.h"
#include "run/saga/live.h"
#include "run/saga/turn.h"
#include "run/shard/shard.h"
#include "run/trace/exporter.h"
#include "store/business.h"

#define SHOWN_STEPS_MAX                                                                                                \
    32 /* a thousand starts of a batch are answered at once; larger sagas are read back, a few at a time */

/* Chooses the shard. That of a business id comes from the id, so that every engine finds it; any owned shard does for
 * other sagas. */
static uint32_t choose_shard(struct engine *engine, const struct work *work)
{
    const struct saga_input *input = &work->mail.input;

    if (input->start.business_id.ptr) {
        struct digest digest = business_digest(work->namespace, work->definition->name, input->start.business_id);

        return digest_shard(&digest);
    }
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        uint32_t shard = engine->works->next_shard++ % SHARD_COUNT;

        if (engine->shards[shard].state == SHARD_OWNED) {
            return shard;
        }
    }
    return engine->works->next_shard++ %
           SHARD_COUNT; /* a different shard each time, so that the owners share the load */
}

enum err_code start_repeated(const struct append *append, struct saga_id *saga, struct err *err)
{
    metric_add(METRIC_DUPLICATE_STARTS, 1);
    if (append->existing_other_id) {
        (void)err_set(err, ERR_OTHER_INPUT, "this Idempotency-Key was used before, for another id");
        err_hint(err, "send the id that went with this key before, or choose another key");
        return ERR_OTHER_INPUT;
    }
    if (!append->existing_same_input) {
        (void)err_set(err, ERR_OTHER_INPUT, "this id was used before, with other input");
        err_hint(err, "repeat a start with exactly the input it had, or choose another id");
        return ERR_OTHER_INPUT;
    }
    *saga = append->existing;
    return ERR_OK;
}

static void on_started(struct mail *mail, enum err_code code, const struct err *err)
{
    struct work *work = container_of(mail, struct work, mail);
    /* Not by its id, because a saga that is dropped, when its shard was lost meanwhile, is no longer found. */
    const struct append *append = turn_append(mail->live);

    if (code == ERR_OK) {
        if (work->request) {
            work->request->saga = work->saga;
            work->request->created = true;
            if (work->request->wants_saga && !mail->live->dropped && work->definition->step_count <= SHOWN_STEPS_MAX) {
                saga_write_json(&mail->live->saga, &work->out);
                work_mask(work, &mail->live->saga, &work->out, 0);
            }
        }
        work_done(work, ERR_OK, NULL);
        return;
    }
    if (code != ERR_CONFLICT) {
        work_done(work, code, err);
        return;
    }
    CHECK(append); /* only the database knows which saga has this id */
    struct saga_id existing;
    struct err refused = {0};

    if (start_repeated(append, &existing, &refused) != ERR_OK) {
        work_done(work, refused.code, &refused);
        return;
    }
    if (work->request) {
        work->request->saga = existing;
        work->request->created = false;
    }
    work_done(work, ERR_OK, NULL);
}

/* Does a person hold the start? Returns true after the work was ended with a refusal. */
static bool is_held(struct work *work, struct slice saga, struct slice definition_tags, struct slice tags)
{
    const struct hold *hold =
        hold_of_start(holds_in_force(work->engine->holds), work->namespace, saga, definition_tags, tags, &work->arena);
    struct err err = {0};

    if (!hold) {
        return false;
    }
    (void)err_set(&err, ERR_HELD, "starts are refused since a person holds this");
    err_detail(&err, "hold %llu by %.*s: %.*s", (unsigned long long)hold->number, SLICE_ARG(hold->actor),
               SLICE_ARG(hold->note));
    err_hint(&err, "start it again when the hold is released");
    if (work->request && hold->until_ms) {
        work->request->call.retry_after_ms = hold->until_ms - loop_wall_ms(work->engine->loop);
    }
    work_done(work, ERR_HELD, &err);
    return true;
}

struct retired { /* a refusal, in the arena of its work */
    struct work *work;
    struct find_saga find;
    struct digest input;
    struct err err;
};

static void on_retired_found(struct store_read *read)
{
    struct retired *retired = read->context;
    struct work *work = retired->work;

    if (read->code == ERR_OK && retired->find.has_input) {
        if (work->request) {
            work->request->saga = retired->find.id;
            work->request->created = false;
        }
        work_done(work, ERR_OK, NULL);
    } else if (read->code == ERR_OK || read->code == ERR_NOT_FOUND) {
        work_done(work, ERR_CONFLICT, &retired->err);
    } else {
        work_done(work, read->code, &read->err);
    }
}

/* Refuses the start of a retired saga. A repeat of a start from before it was retired is still answered. */
static void refuse_retired(struct work *work, const struct engine_request *request, struct slice input,
                           const struct err *err)
{
    struct retired *retired = arena_alloc(&work->arena, sizeof(*retired));

    if (!request->in.start.business_id.ptr) {
        work_done(work, ERR_CONFLICT, err);
        return;
    }
    struct digest digest = business_digest(work->namespace, request->in.start.saga, request->in.start.business_id);

    *retired = (struct retired){.work = work, .input = canon_digest(input, &work->arena), .err = *err};
    retired->find = (struct find_saga){.read = {.arena = &work->arena, .done = on_retired_found, .context = retired},
                                       .business_digest = digest,
                                       .shard = digest_shard(&digest),
                                       .input = &retired->input};
    store_find_saga(work->engine->store, &retired->find);
}

static bool start_is_good(struct work *work, const struct engine_request *request)
{
    struct engine *engine = work->engine;
    struct slice input = request->in.start.input.ptr ? request->in.start.input : SLICE("{}");
    struct err err = {0};
    struct faults faults;
    struct slice tags;

    if (input.len > engine->options.payload_bytes_max) {
        (void)err_set(&err, ERR_TOO_LARGE, "the input is larger than allowed");
        err_detail(&err, "%zu bytes, at most %zu are taken", input.len, engine->options.payload_bytes_max);
        err_hint(&err, "keep large bodies elsewhere and pass a reference");
        work_done(work, ERR_TOO_LARGE, &err);
        return false;
    }
    if (request->in.start.business_id.ptr &&
        (request->in.start.business_id.len == 0 || request->in.start.business_id.len > BUSINESS_ID_BYTES_MAX)) {
        work_fail(work, ERR_INVALID, "an id has 1 to 256 bytes", NULL);
        return false;
    }
    if (slice_starts_with(request->in.start.saga, "~")) {
        work_fail(work, ERR_NOT_FOUND, "there is no saga definition with this name",
                  "an open saga is started with \"open\": true instead of \"saga\"");
        return false;
    }
    work->definition = definitions_newest(engine->definitions, work->namespace, request->in.start.saga,
                                          request->in.start.version, &err);
    if (!work->definition) {
        work_done(work, err.code, &err);
        return false;
    }
    if (!definitions_lets_start(engine->definitions, work->namespace, request->in.start.saga, &work->arena, &err)) {
        refuse_retired(work, request, input, &err);
        return false;
    }
    faults_init(&faults, request->arena);
    schema_check(work->definition->input, input, SLICE("/input"), &work->arena, &faults);
    if (faults.count > 0) {
        work_fail_by_faults(work, &faults, "the input does not fit the schema of this saga");
        return false;
    }
    if (definition_tags(work->definition, input, &work->arena, &tags, &err) != ERR_OK) {
        work_done(work, err.code, &err);
        return false;
    }
    return !is_held(work, work->definition->name, tags, request->in.start.tags) && !work_is_not_taken_in(work) &&
           !work_is_over_sagas(work);
}

/* The trace is kept in the log only where traces are sent: an engine of 0.1 does not know these members. */
static struct trace_context trace_kept(struct work *work, const struct trace_context *trace)
{
    return exporter_is_on(work->engine->exporter) ? (struct trace_context){arena_slice(&work->arena, trace->parent),
                                                                           arena_slice(&work->arena, trace->state)}
                                                  : (struct trace_context){SLICE_NONE, SLICE_NONE};
}

static void send_start(struct work *work)
{
    struct engine *engine = work->engine;
    uint32_t shard = choose_shard(engine, work);

    work->saga = saga_id_new(loop_wall_ms(engine->loop), shard);
    if (route_elsewhere(work, shard, errand_start)) {
        return;
    }
    struct live *live = live_new(engine, &engine->shards[shard], work->saga, work->definition);

    work->mail.done = on_started;
    live_send(live, &work->mail);
}

void engine_start_saga(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (work_refused(work) || work_is_over_quota(work, QUOTA_STARTS, request->in.start.input.len) ||
        !start_is_good(work, request)) {
        return;
    }
    struct saga_input *input = &work->mail.input;

    input->type = SAGA_INPUT_START;
    input->start.namespace = work->namespace;
    input->start.business_id = arena_slice(&work->arena, request->in.start.business_id);
    input->start.key = arena_slice(&work->arena, request->in.start.key);
    input->start.tags = arena_slice(&work->arena, request->in.start.tags);
    input->start.input = arena_slice(&work->arena, request->in.start.input.ptr ? request->in.start.input : SLICE("{}"));
    input->start.trace = trace_kept(work, &request->in.start.trace);
    work->mail.started_by = work->actor;
    send_start(work);
}

#define DEADLINE_DEFAULT_MS (INT64_C(24) * 3600 * 1000)

/* Returns what was asked for. A repeat would have another instant, so the deadline counts as the given duration. A wish
 * for the default counts as no wish. */
static struct slice asked_of(struct work *work, int64_t deadline_ms)
{
    const struct saga_input *input = &work->mail.input;
    struct buffer text;
    struct json_writer w;

    buffer_init(&text, input->start.budget.len + input->start.loop.len + 6 * input->start.on_timeout.len + 1024);
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    if (input->start.budget.ptr) {
        json_write_raw(&w, "budget", input->start.budget);
    }
    if (input->start.loop.ptr) {
        json_write_raw(&w, "loop", input->start.loop);
    }
    if (deadline_ms != DEADLINE_DEFAULT_MS) {
        json_write_i64(&w, "deadline_ms", deadline_ms);
    }
    if (input->start.on_timeout.ptr && !slice_is(input->start.on_timeout, "abort")) {
        json_write_slice(&w, "on_timeout", input->start.on_timeout);
    }
    json_object_end(&w);
    CHECK(!text.overflow);
    struct slice kept = arena_slice(&work->arena, buffer_slice(&text));

    buffer_fini(&text);
    return kept;
}

void engine_open_saga(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct arena *arena = &work->arena;
    int64_t deadline_ms = request->in.open.deadline_ms ? request->in.open.deadline_ms : DEADLINE_DEFAULT_MS;

    if (work_refused(work) || work_is_over_quota(work, QUOTA_STARTS, 0)) {
        return;
    }
    if (request->in.open.business_id.ptr &&
        (request->in.open.business_id.len == 0 || request->in.open.business_id.len > BUSINESS_ID_BYTES_MAX)) {
        work_fail(work, ERR_INVALID, "an id has 1 to 256 bytes", NULL);
        return;
    }
    work->definition = definitions_open(engine->definitions, SAGA_OPEN);
    if (is_held(work, work->definition->name, SLICE_NONE, request->in.open.tags) || work_is_not_taken_in(work) ||
        work_is_over_sagas(work)) {
        return;
    }
    work->mail.input = (struct saga_input){.type = SAGA_INPUT_START,
                                           .start = {.namespace = work->namespace,
                                                     .business_id = arena_slice(arena, request->in.open.business_id),
                                                     .key = arena_slice(arena, request->in.open.key),
                                                     .tags = arena_slice(arena, request->in.open.tags),
                                                     .input = SLICE("{}"),
                                                     .deadline_ms = loop_wall_ms(engine->loop) + deadline_ms,
                                                     .budget = arena_slice(arena, request->in.open.budget),
                                                     .loop = arena_slice(arena, request->in.open.loop),
                                                     .on_timeout = arena_slice(arena, request->in.open.on_timeout)}};
    work->mail.input.start.trace = trace_kept(work, &request->in.open.trace);
    work->mail.asked = asked_of(work, deadline_ms);
    work->mail.started_by = work->actor;
    send_start(work);
}
