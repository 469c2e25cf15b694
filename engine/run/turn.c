/*
 * A turn: decide, append, apply. The only code that changes a saga, and the only place where the log and memory meet:
 * memory changes after the commit, so it is never ahead of the log.
 */
#include <stdlib.h>
#include <string.h>

#include "run/engine_state.h"

#include "base/canon.h"
#include "base/log.h"
#include "base/metric.h"

#define TURN_BLOCK_BYTES 8192
#define TURN_PAYLOAD_BYTES_MAX (64u << 20)
#define IDLE_TURNS_MAX 512
#define IDLE_ARENA_BYTES_MAX 65536

struct turn {
    struct list_link link; /* among the idle ones */
    struct live *live;
    struct mail *mail;
    struct arena arena;
    struct buffer payload, body;
    struct records records;
    struct append append;
    struct append_start start;
    enum saga_status status_after;
    bool ended, awake;
    int64_t began_us;
};

static struct turn *turn_new(struct engine *engine)
{
    struct list_link *link = list_pop(&engine->idle_turns);

    engine->turns_under_way++;
    if (link) {
        return container_of(link, struct turn, link);
    }
    struct turn *turn = memory_alloc(sizeof(*turn));

    arena_init(&turn->arena, TURN_BLOCK_BYTES);
    buffer_init(&turn->payload, TURN_PAYLOAD_BYTES_MAX);
    buffer_init(&turn->body, TURN_PAYLOAD_BYTES_MAX);
    return turn;
}

static void turn_free(struct turn *turn)
{
    buffer_fini(&turn->payload);
    buffer_fini(&turn->body);
    arena_fini(&turn->arena);
    free(turn);
}

void turns_free(struct engine *engine)
{
    struct list_link *link;

    while ((link = list_pop(&engine->idle_turns)) != NULL) {
        turn_free(container_of(link, struct turn, link));
    }
}

static void turn_end(struct engine *engine, struct turn *turn)
{
    engine->turns_under_way--;
    if (engine->idle_turns.count >= IDLE_TURNS_MAX || turn->arena.used_bytes > IDLE_ARENA_BYTES_MAX ||
        turn->payload.capacity > IDLE_ARENA_BYTES_MAX) {
        turn_free(turn);
        return;
    }
    arena_reset(&turn->arena);
    buffer_reset(&turn->payload);
    buffer_reset(&turn->body);
    turn->live = NULL;
    turn->mail = NULL;
    turn->records = (struct records){0};
    list_push(&engine->idle_turns, &turn->link);
}

static bool makes_key_known(const struct record *record)
{
    switch (record->type) {
    case RECORD_STEP_PENDING:
    case RECORD_STEP_INTENT:
    case RECORD_COMPENSATION_INTENT:
    case RECORD_STEP_REOPENED:
    case RECORD_STEP_CALLED:
    case RECORD_COMPENSATION_REOPENED:
        return record->args.ptr != NULL; /* the first record of an operation carries its arguments; so does a retry with
                                            changed ones, under a new key */
    case RECORD_SAGA_STARTED:
    case RECORD_STEP_RETRYING:
    case RECORD_STEP_RUNNING:
    case RECORD_STEP_UNKNOWN:
    case RECORD_STEP_PROBED:
    case RECORD_STEP_COMPLETED:
    case RECORD_STEP_FAILED:
    case RECORD_STEP_SKIPPED:
    case RECORD_STEP_WAIVED:
    case RECORD_STEP_REPEATED:
    case RECORD_STEP_LATE:
    case RECORD_OPERATION_DUPLICATE:
    case RECORD_OPERATION_EXPIRED:
    case RECORD_BYPASS_SIGNED:
    case RECORD_LOOP_TRIPPED:
    case RECORD_SAGA_PAUSED:
    case RECORD_SAGA_RESUMED:
    case RECORD_RUN_RESTED:
    case RECORD_RUN_WOKEN:
    case RECORD_SAGA_FAILING:
    case RECORD_COMPENSATION_PLANNED:
    case RECORD_COMPENSATION_RETRYING:
    case RECORD_COMPENSATION_RUNNING:
    case RECORD_COMPENSATION_UNKNOWN:
    case RECORD_COMPENSATION_PROBED:
    case RECORD_COMPENSATION_COMPLETED:
    case RECORD_COMPENSATION_FAILED:
    case RECORD_ESCALATION_OPENED:
    case RECORD_ESCALATION_RESOLVED:
    case RECORD_SAGA_COMPLETED:
    case RECORD_SAGA_COMPENSATED:
    case RECORD_SAGA_ABANDONED:
    case RECORD_TYPE_COUNT:
        return false;
    }
    return false;
}

/* An intent that follows its step.called in one turn carries the arguments again: the key is known once. */
static uint32_t add_key(struct op_key *keys, uint32_t count, const struct op_key *key)
{
    for (uint32_t i = 0; i < count; i++) {
        if (uuid_equal(&keys[i].uuid, &key->uuid)) {
            return count;
        }
    }
    keys[count] = *key;
    return count + 1;
}

struct slice mail_asked(const struct mail *start)
{
    struct slice input = start->input.start.input;

    return start->asked.ptr ? start->asked : input.ptr ? input : SLICE("{}");
}

/* The row of a saga that begins. What it is found by is the caller's id, for a run its name. */
static void describe_start(struct turn *turn, const struct record *first)
{
    struct slice id = slice_is(first->saga_name, RUN_SAGA_NAME) ? first->run : first->business_id;

    turn->start = (struct append_start){
        .namespace = first->namespace, .saga_name = first->saga_name, .tags = first->tags, .version = first->version};
    turn->start.input_digest =
        canon_digest(turn->mail->input.type == SAGA_INPUT_START ? mail_asked(turn->mail) : SLICE("{}"), &turn->arena);
    if (id.ptr) {
        struct slice fields[] = {first->namespace, first->saga_name, id};

        turn->start.business_id = id;
        turn->start.business_digest = digest_fields("business", fields, COUNT_OF(fields));
    }
    turn->append.start = &turn->start;
}

/* Writes the payload and everything the tables beside the log need, by applying the records to a copy. */
static void turn_describe(struct turn *turn)
{
    struct live *live = turn->live;
    const struct saga *saga = &live->saga;
    struct saga *after = saga_copy(saga, &turn->arena);
    struct op_key *keys = arena_array(&turn->arena, turn->records.count, sizeof(*keys));
    struct append_escalation *escalations = arena_array(&turn->arena, turn->records.count, sizeof(*escalations));
    uint32_t key_count = 0, escalation_count = 0;

    turn->awake = live->awake;
    buffer_put_char(&turn->payload, '[');
    for (size_t i = 0; i < turn->records.count; i++) {
        const struct record *record = &turn->records.items[i];

        if (i > 0) {
            buffer_put_char(&turn->payload, ',');
        }
        record_write(record, after->definition,
                     &turn->payload); /* of the copy: what an open saga calls adds to its steps */
        if (makes_key_known(record)) {
            key_count = add_key(keys, key_count, &record->key);
        }
        if (record->type == RECORD_ESCALATION_RESOLVED) {
            buffer_reset(&turn->body);
            saga_write_escalation_resolved(after, record, &turn->body);
            escalations[escalation_count++] = (struct append_escalation){.number = record->escalation, .opened = false,
                .reason = after->escalation.reason, .body = arena_slice(&turn->arena, buffer_slice(&turn->body))};
        }
        saga_apply(after, record);
        if (record->type == RECORD_ESCALATION_OPENED) {
            buffer_reset(&turn->body);
            saga_write_escalation(after, &turn->body);
            escalations[escalation_count++] = (struct append_escalation){
                .number = record->escalation,
                .opened = true,
                .step = record->step == STEP_NONE ? SLICE_NONE : after->definition->steps[record->step].id,
                .reason = record->reason,
                .body = arena_slice(&turn->arena, buffer_slice(&turn->body))};
            live->shard->escalation_counter++;
            metric_add(METRIC_ESCALATIONS, 1);
        }
        if (record->type == RECORD_RUN_WOKEN || record->type == RECORD_RUN_RESTED) {
            turn->awake = record->type == RECORD_RUN_WOKEN;
        }
    }
    buffer_put_char(&turn->payload, ']');
    turn->status_after = saga_status(after);
    turn->ended = after->phase == PHASE_ENDED;
    turn->append = (struct append){.saga = saga->id,
                                   .namespace = after->namespace,
                                   .shard = live->shard->number,
                                   .epoch = live->shard->epoch,
                                   .at_ms = turn->mail->input.now_ms,
                                   .first_seq = turn->records.items[0].seq,
                                   .record_count = (uint32_t)turn->records.count,
                                   .payload = buffer_slice(&turn->payload),
                                   .new_keys = keys,
                                   .new_key_count = key_count,
                                   .status_changed = saga->seq > 0 && turn->status_after != saga_status(saga),
                                   .status = turn->status_after,
                                   .ended = turn->ended,
                                   .awake = turn->awake == live->awake ? AWAKE_AS_IT_WAS
                                            : turn->awake              ? AWAKE_ADD
                                                                       : AWAKE_REMOVE,
                                   .started_ms = after->created_ms,
                                   .escalations = escalations,
                                   .escalation_count = escalation_count,
                                   .from_inbox = turn->mail->from_inbox,
                                   .inbox_id = turn->mail->inbox_id};
    if (turn->records.items[0].type == RECORD_SAGA_STARTED) {
        describe_start(turn, &turn->records.items[0]);
    }
}

static void count_ended(const struct saga *saga)
{
    metric_add(saga->end == SAGA_COMPLETED     ? METRIC_SAGAS_COMPLETED
               : saga->end == SAGA_COMPENSATED ? METRIC_SAGAS_COMPENSATED
                                               : METRIC_SAGAS_ABANDONED,
               1);
    histogram_observe_us(HISTOGRAM_SAGA, (saga->ended_ms - saga->created_ms) * 1000);
}

static void tell_watches(struct live *live)
{
    struct engine *engine = live->engine;
    struct list_link *link = list_first(&engine->watches);

    while (link) {
        struct engine_watch *watch = container_of(link, struct engine_watch, link);

        link = list_after(&engine->watches, link); /* the watch may remove itself */
        if (uuid_equal(&watch->id.uuid, &live->saga.id.uuid)) {
            watch->changed(watch, live->saga.seq, live->saga.phase == PHASE_ENDED);
        }
    }
}

/* From an activity of the saga, which asks for the same again when its turn was not written; else somebody is told. */
static bool is_own(enum saga_input_type type)
{
    switch (type) {
    case SAGA_INPUT_SETTLED:
    case SAGA_INPUT_PROBED:
    case SAGA_INPUT_EVALUATED:
    case SAGA_INPUT_TIMER:
    case SAGA_INPUT_ADMITTED:
        return true;
    case SAGA_INPUT_START:
    case SAGA_INPUT_ABORT:
    case SAGA_INPUT_OPERATOR:
    case SAGA_INPUT_CALL:
    case SAGA_INPUT_COMPLETE:
    case SAGA_INPUT_BYPASS:
    case SAGA_INPUT_RESUME:
        return false;
    }
    return false;
}

/* The records are durable: fold them, and count what they mean. */
static void turn_apply(struct turn *turn)
{
    struct live *live = turn->live;
    bool ended_before = live->saga.phase == PHASE_ENDED;

    for (size_t i = 0; i < turn->records.count; i++) {
        saga_apply(&live->saga, &turn->records.items[i]);
    }
    live->refusals = 0;
    live->awake = turn->awake;
    metric_add(METRIC_TURNS, 1);
    metric_add(METRIC_RECORDS, turn->records.count);
    health_count(live, &turn->records);
    if (live->saga.definition->kind == SAGA_RUN) {
        return; /* it is no saga that anybody started or waits for */
    }
    if (turn->append.start) {
        metric_add(METRIC_SAGAS_STARTED, 1);
    }
    if (live->saga.phase == PHASE_ENDED && !ended_before) {
        count_ended(&live->saga);
    }
}

static void on_appended(struct append *append)
{
    struct turn *turn = container_of(append, struct turn, append);
    struct live *live = turn->live;
    struct engine *engine = live->engine;
    struct mail *mail = turn->mail;

    histogram_observe_us(HISTOGRAM_COMMIT, loop_boot_us(engine->loop) - turn->began_us);
    if (append->code == ERR_OK && !live->dropped) {
        turn_apply(turn);
    } else if (append->code == ERR_FENCED && !live->dropped) {
        /* The shard is dropped, and this saga with it: now, because what it still wants is for the new
         * owner to start. */
        leases_report_fenced(engine->leases, live->shard->number, append->epoch);
        shard_lost(live->shard->number, append->epoch, engine);
    } else if (append->code != ERR_OK && append->code != ERR_FENCED && append->code != ERR_CONFLICT) {
        log_error("append_refused", LOG_UUID("saga", &live->saga.id.uuid), LOG_ERR(&append->err));
        if (is_own(mail->input.type)) {
            /* What it was about is still wanted. A call must not be made twice for it: its outcome counts as unknown
             * from now on. */
            live->interrupted = true;
            live->refusals += live->refusals < REFUSALS_MAX;
        }
    }
    /* The mail's owner may free it, and read `append` through the turn's arena only until it returns. */
    live->busy = true;
    mail->answer = turn->records.answer;
    mail->done(mail, append->code, &append->err);
    live->turn = NULL;
    if (append->code == ERR_OK && !live->dropped) {
        tell_watches(live);
    }
    live->busy = false;
    turn_end(engine, turn);
    live_after_turn(live);
    engine_check_drained(engine);
}

void turn_begin(struct live *live, struct mail *mail)
{
    struct engine *engine = live->engine;
    struct turn *turn = turn_new(engine);
    struct err err = {0};

    mail->input.now_ms = loop_wall_ms(engine->loop);
    mail->input.escalation_number = (live->shard->escalation_counter + 1) * SHARD_COUNT + live->shard->number;
    enum err_code code = saga_decide(&live->saga, &mail->input, &turn->arena, &turn->records, &err);

    if (code != ERR_OK || turn->records.count == 0) {
        bool busy = live->busy;

        if (code == ERR_INTERNAL) {
            log_error("decision_refused", LOG_UUID("saga", &live->saga.id.uuid), LOG_ERR(&err));
            if (is_own(mail->input.type)) { /* as when the database refuses it as data */
                live->interrupted = true;
                live->refusals += live->refusals < REFUSALS_MAX;
            }
        }

        live->busy = true; /* whoever is told may send the next input */
        mail->answer = turn->records.answer;
        mail->done(mail, code, &err);
        live->busy = busy;
        turn_end(engine, turn);
        return;
    }
    turn->live = live;
    turn->mail = mail;
    turn->began_us = loop_boot_us(engine->loop);
    turn_describe(turn);
    CHECK(!turn->payload.overflow);
    turn->append.done = on_appended;
    live->turn = turn;
    store_append(engine->store, &turn->append);
}

const struct append *turn_append(const struct live *live)
{
    return live->turn ? &live->turn->append : NULL;
}
