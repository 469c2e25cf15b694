/*
 * Requests that reached an engine which does not own their shard. The engine puts them into the durable inbox, and the
 * owner carries them out as if they had come to it. The answer comes back through the table of answers.
 *
 *   put -> waiting -> answered
 *             |
 *             +-- the shard has another owner, or the answer to the put was lost, and no row is there: whoever consumed
 *             |   it died, or answered nobody, or it never came. A call is put again under the emission it had: it is
 *             |   recognised. A start is looked for by its id first. What a second one would do again is not put again.
 *             +-- its time is over: the log says whether it was taken up
 */
#include "run/exchange/exchange_state.h"
#include "run/intake/measures.h"
#include "run/request/calling.h"
#include "run/saga/fold.h"
#include "run/saga/live.h"
#include "run/saga/summon.h"

#include <stdio.h>

#define ANSWERED_WITHIN_MS 10000 /* the time beyond the caller's own wait; about as long as a takeover */
#define LOOK_EVERY_MS 1000
#define TRIES_MAX 5
#define EPOCH_NONE (-1)
#define PAYLOAD_BYTES_MAX (64u << 20)

struct errand {            /* an errand, in the arena of its work */
    struct list_link link; /* links exchange->errands */
    struct work *work;
    struct answer_wait wait;
    struct timer timer;
    const char *kind;
    struct buffer text; /* the payload, while it is written */
    struct json_writer w;
    struct slice payload, emission;
    uint32_t shard;
    struct saga_id saga; /* the saga of the row */
    int64_t epoch;       /* the epoch of the shard when the row was certainly there */
    int64_t until_boot_ms;
    bool busy;     /* the store is working for us, so nothing may end */
    bool answered; /* answered meanwhile; the answer is kept */
    bool gone;     /* the row was missing once, so its answer may be on the way */
    bool lost;     /* the answer to the put was lost, so the row may never have been there */
    int tries;
    struct slice answer;
    struct inbox_put put;
    struct find_input input;
    struct find_saga run;
    struct read_saga log;
};

static const char repeat_it[] = "repeat it as it was: it is carried out once";

static bool is_start(const struct errand *errand)
{
    return errand->work->mail.input.type == SAGA_INPUT_START;
}

static bool is_call(const struct errand *errand)
{
    return errand->work->mail.input.type == SAGA_INPUT_CALL;
}

static bool is_stopping(const struct errand *errand)
{
    return engine_is_closing(errand->work->engine);
}

static void errand_stop(struct errand *errand)
{
    struct engine *engine = errand->work->engine;

    timer_stop(engine->loop, &errand->timer);
    list_remove(&engine->exchange->errands, &errand->link);
    store_answer_stop(engine->store, &errand->wait);
}

static void errand_fail(struct errand *errand, enum err_code code, const char *message, const char *hint)
{
    errand_stop(errand);
    work_fail(errand->work, code, message, hint);
}

static void errand_answer(struct errand *errand, struct slice body)
{
    struct work *work = errand->work;
    struct err err = {0};

    errand_stop(errand);
    enum err_code code = exchange_answer_read(body, work, &err);

    if (code == ERR_BUSY && (is_start(errand) || is_call(errand)) && work->request) {
        intake_elsewhere(&work->engine->shards[errand->shard], work->request->call.retry_after_ms);
    }
    work_done(work, code, &err);
}

/* The store has finished its work for us. Returns true when the work is over, too. */
static bool errand_is_over(struct errand *errand)
{
    errand->busy = false;
    if (errand->answered) {
        errand_answer(errand, errand->answer);
    } else if (is_stopping(errand)) {
        errand_fail(errand, ERR_STOPPING, "this engine is stopping; what was begun goes on", repeat_it);
    } else {
        return false;
    }
    return true;
}

static void on_answer(struct answer_wait *wait, struct slice body)
{
    struct errand *errand = container_of(wait, struct errand, wait);

    if (errand->busy) {
        errand->answered = true;
        errand->answer = arena_slice(&errand->work->arena, body);
    } else {
        errand_answer(errand, body);
    }
}

static void on_look(struct timer *timer);

static void look_later(struct errand *errand)
{
    int64_t left = errand->until_boot_ms - loop_boot_ms(errand->work->engine->loop);

    timer_start(errand->work->engine->loop, &errand->timer,
                left < 0               ? 0
                : left < LOOK_EVERY_MS ? left
                                       : LOOK_EVERY_MS,
                on_look);
}

/* --- put --- */

static int64_t epoch_of(const struct errand *errand)
{
    const struct leases *leases = errand->work->engine->leases;

    return leases ? lease_last_epoch(leases, errand->shard) : 0;
}

static void on_put(struct inbox_put *put)
{
    struct errand *errand = container_of(put, struct errand, put);

    if (errand_is_over(errand)) {
        return;
    }
    if (put->code == ERR_LOST_COMMIT) {
        errand->epoch = EPOCH_NONE; /* makes the engine look for the row */
        errand->lost = true;
    } else if (put->code != ERR_OK) {
        errand_stop(errand);
        work_done(errand->work, put->code, &put->err);
        return;
    }
    look_later(errand);
}

static void errand_put(struct errand *errand)
{
    struct engine *engine = errand->work->engine;

    store_answer_stop(engine->store, &errand->wait);
    errand->put = (struct inbox_put){.row = {.id = uuid_v7(loop_wall_ms(engine->loop)),
                                             .shard = errand->shard,
                                             .saga = errand->saga,
                                             .kind = slice_of(errand->kind),
                                             .payload = errand->payload},
                                     .once = true,
                                     .done = on_put};
    errand->wait = (struct answer_wait){.shard = errand->shard, .input = errand->put.row.id, .on_answer = on_answer};
    errand->epoch = epoch_of(errand);
    errand->gone = errand->lost = false;
    errand->busy = true;
    errand->tries++;
    store_answer_wait(engine->store, &errand->wait);
    store_inbox_put(engine->store, &errand->put);
}

/* --- its time is over --- */

static const char not_taken_up[] = "it is durable, but the engine that owns this shard has not answered yet";

static void on_log_read(struct store_read *read)
{
    struct errand *errand = container_of(container_of(read, struct read_saga, read), struct errand, log);
    struct work *work = errand->work;
    struct err err = {0};

    if (errand_is_over(errand)) {
        return;
    }
    errand_stop(errand);
    if (read->code != ERR_OK) {
        work_fail(work, ERR_BUSY, not_taken_up, repeat_it);
        return;
    }
    struct saga *saga = fold_turns(work->engine, work->saga, work->namespace, errand->log.turns, errand->log.turn_count,
                                   &work->arena, &err);
    const struct emission *emission =
        saga && saga->emissions ? emissions_find(saga->emissions, errand->emission) : NULL;

    if (!emission || emission->step >= saga->definition->step_count) {
        work_fail(work, ERR_BUSY, not_taken_up, repeat_it);
        return;
    }
    work->calling->step = emission->step;
    (void)caller_answer(work, saga, true);
}

static void read_log(struct errand *errand)
{
    struct work *work = errand->work;

    errand->busy = true;
    errand->log = (struct read_saga){.read = {.arena = &work->arena, .done = on_log_read, .context = work},
                                     .id = work->saga,
                                     .namespace = work->namespace};
    store_read_saga(work->engine->store, &errand->log);
}

static void on_run_found(struct store_read *read)
{
    struct errand *errand = container_of(container_of(read, struct find_saga, read), struct errand, run);

    if (errand_is_over(errand)) {
        return;
    }
    if (read->code != ERR_OK) {
        errand_fail(errand, ERR_BUSY, not_taken_up, repeat_it);
        return;
    }
    errand->work->saga = errand->run.id;
    read_log(errand);
}

static void on_start_read(struct store_read *read)
{
    struct errand *errand = container_of(container_of(read, struct read_saga, read), struct errand, log);
    struct work *work = errand->work;

    if (errand_is_over(errand)) {
        return;
    }
    if (read->code == ERR_OK) {
        errand_stop(errand);
        if (work->request) {
            work->request->saga = work->saga;
            work->request->created = true;
        }
        work_done(work, ERR_OK, NULL);
    } else if (read->code != ERR_NOT_FOUND || loop_boot_ms(work->engine->loop) >= errand->until_boot_ms ||
               errand->tries >= TRIES_MAX) {
        errand_fail(errand, ERR_BUSY, not_taken_up, "repeat it with the same id: it is started once");
    } else {
        errand_put(errand);
    }
}

static void read_start(struct errand *errand)
{
    struct work *work = errand->work;

    errand->busy = true;
    errand->log = (struct read_saga){.read = {.arena = &work->arena, .done = on_start_read, .context = work},
                                     .id = errand->saga,
                                     .namespace = work->namespace,
                                     .turns_max = 1};
    store_read_saga(work->engine->store, &errand->log);
}

static void look_a_last_time(struct errand *errand)
{
    struct work *work = errand->work;

    if (is_start(errand)) {
        read_start(errand);
    } else if (!is_call(errand)) {
        errand_fail(errand, ERR_BUSY, not_taken_up, "GET it to see, and repeat it where it is still wanted");
    } else if (!uuid_is_nil(&work->calling->saga.uuid)) {
        work->saga = work->calling->saga;
        read_log(errand);
    } else {
        errand->busy = true;
        errand->run = (struct find_saga){.read = {.arena = &work->arena, .done = on_run_found, .context = work},
                                         .business_digest = run_digest(work->namespace, work->mail.input.call.run),
                                         .shard = errand->shard};
        store_find_saga(work->engine->store, &errand->run);
    }
}

/* --- whoever consumed it is gone --- */

static void put_again(struct errand *errand)
{
    struct work *work = errand->work;

    if (errand->tries >= TRIES_MAX) {
        look_a_last_time(errand);
        return;
    }
    if (is_start(errand)) {
        read_start(errand);
    } else if (is_call(errand) || work->verb->repeatable || work->mail.input.bulk.id.ptr) {
        errand_put(errand);
    } else if (errand->lost) { /* a second row, put after the first was consumed, would repeat the verb */
        errand_fail(errand, ERR_LOST_COMMIT, "the connection to the database was lost: this was taken up, or not",
                    "look at the saga, and repeat it when it is not so");
    } else {
        /* The verb was most likely applied. The saga tells, and the client sees whether it is what was wanted. */
        errand_stop(errand);
        work->until_boot_ms = 0;
        query_saga_from_store(work);
    }
}

static void on_input_found(struct store_read *read)
{
    struct errand *errand = container_of(container_of(read, struct find_input, read), struct errand, input);

    if (errand_is_over(errand)) {
        return;
    }
    if (read->code == ERR_OK) { /* the next owner has not consumed it yet */
        errand->epoch = epoch_of(errand);
        errand->gone = errand->lost = false;
    } else if (read->code == ERR_NOT_FOUND && errand->gone) {
        put_again(errand);
        return;
    } else if (read->code == ERR_NOT_FOUND) {
        errand->gone = true;
    }
    look_later(errand);
}

static void on_look(struct timer *timer)
{
    struct errand *errand = container_of(timer, struct errand, timer);
    struct work *work = errand->work;

    CHECK(!is_stopping(errand)); /* exchange_stop() has ended the waiting errands */
    if (!work->request) {
        errand_fail(errand, ERR_TIMEOUT, "nobody waits for it any more", NULL);
    } else if (loop_boot_ms(work->engine->loop) >= errand->until_boot_ms) {
        look_a_last_time(errand);
    } else if (epoch_of(errand) != errand->epoch) {
        errand->busy = true;
        errand->input = (struct find_input){.read = {.arena = &work->arena, .done = on_input_found, .context = work},
                                            .shard = errand->shard,
                                            .id = errand->wait.input};
        store_find_input(work->engine->store, &errand->input);
    } else {
        look_later(errand);
    }
}

/* --- what is put --- */

/* Begins an errand and its payload. The caller writes the rest of the payload into `w`, and sends it. */
static struct errand *errand_new(struct work *work, const char *kind, uint32_t shard)
{
    struct errand *errand = arena_alloc(&work->arena, sizeof(*errand));

    errand->work = work;
    errand->kind = kind;
    errand->shard = shard;
    errand->saga = work->saga;
    buffer_init(&errand->text, PAYLOAD_BYTES_MAX);
    json_writer_init(&errand->w, &errand->text);
    json_object_begin(&errand->w, NULL);
    json_write_slice(&errand->w, "namespace", work->namespace);
    json_write_slice(&errand->w, "actor", work->actor);
    return errand;
}

static void errand_send(struct errand *errand, bool waits)
{
    struct work *work = errand->work;
    int64_t now = loop_boot_ms(work->engine->loop);

    errand->until_boot_ms = (waits && work->until_boot_ms > now ? work->until_boot_ms : now) + ANSWERED_WITHIN_MS;
    json_object_end(&errand->w);
    errand->payload = arena_slice(&work->arena, buffer_slice(&errand->text));
    bool overflow = errand->text.overflow;

    buffer_fini(&errand->text);
    if (overflow) {
        work_fail(work, ERR_TOO_LARGE, "the request is larger than what passes between engines", NULL);
    } else {
        list_push(&work->engine->exchange->errands, &errand->link);
        errand_put(errand);
    }
}

/* Errands for which the store is working end when it answers. */
void exchange_stop(struct engine *engine)
{
    struct list_link *next;

    for (struct list_link *link = list_first(&engine->exchange->errands); link; link = next) {
        struct errand *errand = container_of(link, struct errand, link);

        next = list_after(&engine->exchange->errands, link);
        if (!errand->busy) {
            errand_fail(errand, ERR_STOPPING, "this engine is stopping; what was begun goes on", repeat_it);
        }
    }
}

size_t errands_count(const struct engine *engine)
{
    return engine->exchange->errands.count;
}

static int64_t wait_of(const struct work *work)
{
    int64_t left = work->until_boot_ms - loop_boot_ms(work->engine->loop);

    return left > 0 ? left : 0;
}

static void write_trace(struct json_writer *w, const struct trace_context *trace)
{
    if (trace->parent.ptr) {
        json_write_slice(w, "traceparent", trace->parent);
        json_write_slice(w, "tracestate", trace->state);
    }
}

void errand_start(struct work *work, uint32_t shard)
{
    const struct saga_input *input = &work->mail.input;
    struct errand *errand = errand_new(work, "start", shard);
    struct json_writer *w = &errand->w;

    json_write_slice(w, "saga", work->definition->name);
    json_write_i64(w, "version", work->definition->version);
    json_write_slice(w, "business_id", input->start.business_id);
    if (input->start.key.ptr) {
        json_write_slice(w, "key", input->start.key);
    }
    json_write_raw(w, "tags", input->start.tags);
    json_write_raw(w, "input", input->start.input);
    json_write_i64(w, "deadline_ms", input->start.deadline_ms);
    json_write_raw(w, "budget", input->start.budget);
    json_write_raw(w, "loop", input->start.loop);
    json_write_slice(w, "on_timeout", input->start.on_timeout);
    json_write_raw(w, "asked", work->mail.asked);
    write_trace(w, &input->start.trace);
    errand_send(errand, false);
}

void errand_call(struct work *work, uint32_t shard)
{
    const struct saga_input *input = &work->mail.input;
    struct errand *errand = errand_new(work, "call", shard);
    struct json_writer *w = &errand->w;
    struct uuid made = uuid_v7(loop_wall_ms(work->engine->loop));
    char id[UUID_TEXT_BYTES];

    /* An emission without a name gets one here, so that a second put is the same emission and not one more. */
    uuid_text(&made, id);
    errand->emission = input->call.emission.ptr ? input->call.emission : arena_printf(&work->arena, "~%s", id);
    errand->saga = work->calling->saga;
    uuid_text(&work->calling->saga.uuid, id);
    json_write_text(w, "saga", id);
    json_write_slice(w, "run", input->call.run);
    json_write_slice(w, "tool", input->call.tool->name);
    json_write_slice(w, "step", input->call.step);
    json_write_slice(w, "scope", input->call.scope);
    json_write_raw(w, "args", input->call.args);
    json_write_slice(w, "emission", errand->emission);
    json_write_slice(w, "turn", input->call.conversation_turn);
    write_trace(w, &work->calling->trace);
    json_write_i64(w, "wait_ms", wait_of(work));
    errand_send(errand, true);
}

/* Writes whose act it is, for the owner, who writes the act down. */
static void write_by(struct json_writer *w, const struct act_by *by)
{
    if (by->via) {
        json_object_begin(w, "by");
        json_write_text(w, "role", role_name(by->role));
        json_write_text(w, "via", by->via);
        json_write_slice(w, "address", by->address);
        json_object_end(w);
    }
}

/* Writes a verb of the table as the engines before this release wrote it. */
void errand_change(struct work *work, uint32_t shard)
{
    const struct verb *verb = work->verb;
    struct errand *errand = errand_new(work, verb->name, shard);

    write_by(&errand->w, &work->by);
    verb_write(verb, &work->mail.input, loop_wall_ms(work->engine->loop), &work->arena, &errand->w);
    if (verb->wait_ms) {
        json_write_i64(&errand->w, "wait_ms", wait_of(work));
    }
    errand_send(errand, verb->wait_ms > 0);
}
