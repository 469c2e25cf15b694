/*
 * Inputs that reached an engine which does not own their shard: durable in the inbox, applied once by the owner, whose
 * append removes the row in the same transaction.
 */
#include "run/work.h"

#include <stdlib.h>

#include "base/canon.h"
#include "base/json.h"
#include "base/log.h"

#define APPLIED_WITHIN_MS 10000
#define LOOK_EVERY_MS 100

/* --- the engine that took it --- */

static void on_found(struct store_read *read);

static void look(struct timer *timer)
{
    struct work *work = container_of(timer, struct work, timer);

    work->read = (struct read_saga){.read = {.arena = &work->arena, .done = on_found, .context = work}, .id = work->saga, .namespace = work->namespace};
    store_read_saga(work->engine->store, &work->read);
}

/* Has the owner applied it? A start: the saga is there. Another input: the log grew beyond what it was. */
static void on_found(struct store_read *read)
{
    struct work *work = read->context;
    bool there = read->code == ERR_OK && (work->mail.input.type == SAGA_INPUT_START || work->read.turn_count > work->next);

    if (there) {
        if (work->mail.input.type == SAGA_INPUT_START && work->request) {
            work->request->saga = work->saga;
            work->request->created = true;
            work_done(work, ERR_OK, NULL);
        } else {
            work->until_boot_ms = 0;
            query_saga_from_store(work);
        }
    } else if (read->code != ERR_OK && read->code != ERR_NOT_FOUND) {
        work_done(work, read->code, &read->err);
    } else if (loop_boot_ms(work->engine->loop) >= work->until_boot_ms) {
        work_fail(work, ERR_BUSY, "it is durable, but the engine that owns this shard has not applied it yet",
                  "repeat it with the same id: it is applied once");
    } else {
        timer_start(work->engine->loop, &work->timer, LOOK_EVERY_MS, look);
    }
}

static void on_put(struct inbox_put *put)
{
    struct work *work = container_of(put, struct work, store.inbox);

    if (put->code != ERR_OK) {
        work_done(work, put->code, &put->err);
        return;
    }
    work->until_boot_ms = loop_boot_ms(work->engine->loop) + APPLIED_WITHIN_MS;
    look(&work->timer);
}

static void put_row(struct work *work, const char *kind, struct buffer *payload)
{
    work->store.inbox = (struct inbox_put){.row = {.shard = saga_id_shard(work->saga), .saga = work->saga, .kind = slice_of(kind),
                                                   .payload = arena_slice(&work->arena, buffer_slice(payload))}, .done = on_put};
    buffer_fini(payload);
    store_inbox_put(work->engine->store, &work->store.inbox);
}

static void on_existing(struct store_read *read)
{
    struct work *work = read->context;
    const struct saga_input *input = &work->mail.input;
    struct find_saga *find = container_of(read, struct find_saga, read);

    if (read->code == ERR_OK) {
        struct digest digest = canon_digest(input->start.input, &work->arena);

        if (!digest_equal(&digest, &find->input_digest)) {
            work_fail(work, ERR_OTHER_INPUT, "this id was used before, with other input", NULL);
            return;
        }
        if (work->request) {
            work->request->saga = find->id;
            work->request->created = false;
        }
        work_done(work, ERR_OK, NULL);
        return;
    }
    if (read->code != ERR_NOT_FOUND) {
        work_done(work, read->code, &read->err);
        return;
    }
    struct buffer payload;
    struct json_writer w;

    buffer_init(&payload, 4u << 20);
    json_writer_init(&w, &payload);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "namespace", work->namespace);
    json_write_slice(&w, "saga", work->definition->name);
    json_write_i64(&w, "version", work->definition->version);
    json_write_slice(&w, "business_id", input->start.business_id);
    json_write_raw(&w, "tags", input->start.tags);
    json_write_raw(&w, "input", input->start.input);
    json_object_end(&w);
    put_row(work, "start", &payload);
}

void inbox_start(struct work *work, uint32_t shard)
{
    struct slice fields[] = {work->namespace, work->definition->name, work->mail.input.start.business_id};
    struct find_saga *find = arena_alloc(&work->arena, sizeof(*find));

    find->read = (struct store_read){.arena = &work->arena, .done = on_existing, .context = work};
    find->shard = shard;
    if (!work->mail.input.start.business_id.ptr) {
        find->read.code = ERR_NOT_FOUND;
        on_existing(&find->read);
        return;
    }
    find->business_digest = digest_fields("business", fields, COUNT_OF(fields));
    store_find_saga(work->engine->store, find);
}

static void on_counted(struct store_read *read)
{
    struct work *work = read->context;
    const struct saga_input *input = &work->mail.input;
    bool resolve = input->type == SAGA_INPUT_OPERATOR;
    struct buffer payload;
    struct json_writer w;

    if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
        return;
    }
    work->next = work->read.turn_count;
    buffer_init(&payload, 4u << 20);
    json_writer_init(&w, &payload);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "actor", work->actor);
    json_write_slice(&w, "note", resolve ? input->operator.note : input->abort.note);
    if (resolve) {
        json_write_i64(&w, "escalation", (int64_t)input->operator.escalation);
        json_write_text(&w, "action", operator_action_name(input->operator.action));
        json_write_bool(&w, "happened", input->operator.happened);
        json_write_bool(&w, "accept_double", input->operator.accept_double);
        json_write_raw(&w, "result", input->operator.result);
        json_write_raw(&w, "args", input->operator.args);
    }
    json_object_end(&w);
    put_row(work, resolve ? "resolve" : "abort", &payload);
}

void inbox_input(struct work *work, const char *kind)
{
    (void)kind; /* the input says what it is */
    work->read = (struct read_saga){.read = {.arena = &work->arena, .done = on_counted, .context = work}, .id = work->saga, .namespace = work->namespace};
    store_read_saga(work->engine->store, &work->read);
}

/* --- the engine that owns the shard --- */

struct delivery { /* a row on its way into a mailbox */
    struct engine *engine;
    struct arena arena;
    struct mail mail;
    uint32_t shard;
    struct uuid id;
};

static void delivery_end(struct delivery *delivery, bool drop)
{
    if (drop) {
        store_inbox_drop(delivery->engine->store, delivery->shard, &delivery->id);
    }
    (void)map_remove(&delivery->engine->deliveries, &delivery->id, sizeof(delivery->id));
    arena_fini(&delivery->arena);
    free(delivery);
}

static void on_delivered(struct mail *mail, enum err_code code, const struct err *err)
{
    struct delivery *delivery = container_of(mail, struct delivery, mail);

    if (code != ERR_OK) {
        log_info("inbox_refused", LOG_UUID("input", &delivery->id), LOG_ERR(err));
    }
    /* Fenced: the next owner finds the row. Else it was consumed by its append, or meant nothing and goes here. */
    delivery_end(delivery, code != ERR_FENCED);
}

static struct slice text_of(struct slice object, const char *name, struct arena *arena)
{
    struct slice text = json_string(json_member(object, name), arena);

    return text.ptr ? arena_slice(arena, text) : SLICE_NONE;
}

static struct slice raw_of(struct slice object, const char *name)
{
    struct slice value = json_member(object, name);

    return json_type(value) == JSON_NULL ? SLICE_NONE : value;
}

static void deliver_start(struct delivery *delivery, struct saga_id id, struct slice payload)
{
    struct engine *engine = delivery->engine;
    struct saga_input *input = &delivery->mail.input;
    struct err err = {0};
    int64_t version = 0;

    input->type = SAGA_INPUT_START;
    input->start.namespace = text_of(payload, "namespace", &delivery->arena);
    input->start.business_id = text_of(payload, "business_id", &delivery->arena);
    input->start.tags = raw_of(payload, "tags");
    input->start.input = raw_of(payload, "input");
    (void)json_i64(json_member(payload, "version"), &version); /* 0 is the newest */
    const struct definition *definition = definitions_newest(engine->definitions, input->start.namespace, text_of(payload, "saga", &delivery->arena),
                                                             (uint32_t)version, &err);
    if (!definition) {
        /* What is registered is never removed: one that is not known here was registered elsewhere a moment ago. The row comes again. */
        bool unknown = err.code == ERR_NOT_FOUND;

        log_warn("inbox_start_refused", LOG_UUID("saga", &id.uuid), LOG_ERR(&err));
        if (unknown) {
            engine_reload_definitions(engine);
        }
        delivery_end(delivery, !unknown);
        return;
    }
    live_send(live_new(engine, &engine->shards[delivery->shard], id, definition), &delivery->mail);
}

static void deliver_input(struct delivery *delivery, struct live *live, struct slice kind, struct slice payload)
{
    struct saga_input *input = &delivery->mail.input;
    struct slice actor = text_of(payload, "actor", &delivery->arena), note = text_of(payload, "note", &delivery->arena);

    if (slice_is(kind, "abort")) {
        *input = (struct saga_input){.type = SAGA_INPUT_ABORT, .abort = {.actor = actor, .note = note}};
    } else {
        int64_t number = 0;

        *input = (struct saga_input){.type = SAGA_INPUT_OPERATOR, .operator = {.actor = actor, .note = note,
            .result = raw_of(payload, "result"), .args = raw_of(payload, "args")}};
        (void)json_i64(json_member(payload, "escalation"), &number);
        input->operator.escalation = (uint64_t)number;
        (void)json_bool(json_member(payload, "happened"), &input->operator.happened);
        (void)json_bool(json_member(payload, "accept_double"), &input->operator.accept_double);
        if (!operator_action_parse(text_of(payload, "action", &delivery->arena), &input->operator.action)) {
            log_warn("inbox_input_unknown", LOG_UUID("input", &delivery->id));
            delivery_end(delivery, true);
            return;
        }
        if (input->operator.action == OPERATOR_RESOLVE && input->operator.happened) {
            /* Rendered by the owner in the same way as behind a call would need another turn of the loop; a person sees it in the escalation that follows. */
            input->operator.undo_error = SLICE("the compensator's arguments were not rendered: the verdict reached an engine that did not own the saga");
        }
    }
    live_send(live, &delivery->mail);
}

void inbox_rows(const struct inbox_row *rows, size_t count, void *context)
{
    struct engine *engine = context;

    for (size_t i = 0; i < count; i++) {
        const struct inbox_row *row = &rows[i];
        struct live *live = live_find(engine, row->saga);

        if (row->shard >= SHARD_COUNT || engine->shards[row->shard].state != SHARD_OWNED) {
            continue;
        }
        if (map_find(&engine->deliveries, &row->id, sizeof(row->id))) {
            continue; /* on its way; its append removes the row */
        }
        if (slice_is(row->kind, "start") ? live != NULL : live == NULL) {
            store_inbox_drop(engine->store, row->shard, &row->id); /* applied before, or its saga has ended */
            continue;
        }
        struct delivery *delivery = memory_alloc(sizeof(*delivery));

        delivery->engine = engine;
        delivery->shard = row->shard;
        delivery->id = row->id;
        map_put(&engine->deliveries, &delivery->id, sizeof(delivery->id), delivery);
        arena_init(&delivery->arena, 1024);
        delivery->mail.done = on_delivered;
        delivery->mail.from_inbox = true;
        delivery->mail.inbox_id = row->id;
        struct slice payload = arena_slice(&delivery->arena, row->payload);

        if (slice_is(row->kind, "start")) {
            deliver_start(delivery, row->saga, payload);
        } else {
            deliver_input(delivery, live, row->kind, payload);
        }
    }
}
