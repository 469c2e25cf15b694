/*
 * A turn: decide, append, apply. Only this code changes a saga, and only here the log and memory meet: memory changes
 * after the commit, so it is never ahead of the log.
 */
#include "run/saga/turn.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metric.h"
#include "core/saga/rest.h"
#include "run/call/holds.h"
#include "run/intake/measures.h"
#include "run/leaving.h"
#include "run/query/health.h"
#include "run/saga/live.h"
#include "run/saga/park.h"
#include "run/saga/rests.h"
#include "run/saga/retention.h"
#include "run/saga/saga_room.h"
#include "run/saga/turn_state.h"
#include "run/shard/shard.h"
#include "run/trace/exporter.h"
#include "store/seal/payload_keys.h"

#define TURN_BLOCK_BYTES 8192
#define TURN_PAYLOAD_BYTES_MAX (64u << 20)
#define IDLE_TURNS_MAX 512
#define IDLE_ARENA_BYTES_MAX 65536

static struct turn *turn_new(struct engine *engine)
{
    struct list_link *link = list_pop(&engine->saga_room->turns->idle);

    engine->saga_room->turns->under_way++;
    if (link) {
        return container_of(link, struct turn, link);
    }
    struct turn *turn = memory_alloc(sizeof(*turn));

    arena_init(&turn->arena, TURN_BLOCK_BYTES);
    buffer_init(&turn->payload, TURN_PAYLOAD_BYTES_MAX);
    buffer_init(&turn->body, TURN_PAYLOAD_BYTES_MAX);
    buffer_init(&turn->rest, REST_BYTES_MAX);
    return turn;
}

static void turn_free(struct turn *turn)
{
    buffer_fini(&turn->payload);
    buffer_fini(&turn->body);
    buffer_fini(&turn->rest);
    arena_fini(&turn->arena);
    free(turn);
}

struct turns *turns_new(void)
{
    struct turns *turns = memory_alloc(sizeof(*turns));

    list_init(&turns->idle);
    list_init(&turns->watches);
    return turns;
}

void turns_free(struct turns *turns)
{
    struct list_link *link;

    while ((link = list_pop(&turns->idle)) != NULL) {
        turn_free(container_of(link, struct turn, link));
    }
    free(turns);
}

size_t turns_under_way(const struct engine *engine)
{
    return engine->saga_room->turns->under_way;
}

static void turn_end(struct engine *engine, struct turn *turn)
{
    engine->saga_room->turns->under_way--;
    if (engine->saga_room->turns->idle.count >= IDLE_TURNS_MAX || turn->arena.used_bytes > IDLE_ARENA_BYTES_MAX ||
        turn->payload.capacity > IDLE_ARENA_BYTES_MAX) {
        turn_free(turn);
        return;
    }
    arena_reset(&turn->arena);
    buffer_reset(&turn->payload);
    buffer_reset(&turn->body);
    turn->live = NULL;
    turn->mail = NULL;
    turn->decision = (struct decision){0};
    list_push(&engine->saga_room->turns->idle, &turn->link);
}

static void count_ended(const struct saga *saga)
{
    metric_add(saga->end == SAGA_COMPLETED     ? METRIC_SAGAS_COMPLETED
               : saga->end == SAGA_COMPENSATED ? METRIC_SAGAS_COMPENSATED
                                               : METRIC_SAGAS_ABANDONED,
               1);
    histogram_observe_us(HISTOGRAM_SAGA, (saga->ended_ms - saga->created_ms) * 1000);
}

void engine_watch_add(struct engine *engine, struct engine_watch *watch)
{
    list_push(&engine->saga_room->turns->watches, &watch->link);
}

void engine_watch_remove(struct engine *engine, struct engine_watch *watch)
{
    if (list_linked(&watch->link)) {
        list_remove(&engine->saga_room->turns->watches, &watch->link);
    }
}

static void tell_watches(struct live *live)
{
    struct engine *engine = live->engine;
    struct list_link *link = list_first(&engine->saga_room->turns->watches);

    while (link) {
        struct engine_watch *watch = container_of(link, struct engine_watch, link);

        link = list_after(&engine->saga_room->turns->watches, link); /* the watch may remove itself */
        if (uuid_equal(&watch->id.uuid, &live->saga.id.uuid)) {
            watch->changed(watch, live->saga.seq, live->saga.phase == PHASE_ENDED);
        }
    }
}

/* Does the input come from an activity of the saga? An activity asks again when its turn was not written; any other
 * sender is told. */
static bool is_own(enum saga_input_type type)
{
    switch (type) {
    case SAGA_INPUT_SETTLED:
    case SAGA_INPUT_PROBED:
    case SAGA_INPUT_EVALUATED:
    case SAGA_INPUT_TIMER:
    case SAGA_INPUT_ADMITTED:
    case SAGA_INPUT_LOCKED:
        return true;
    case SAGA_INPUT_START:
    case SAGA_INPUT_ABORT:
    case SAGA_INPUT_OPERATOR:
    case SAGA_INPUT_ESCALATE:
    case SAGA_INPUT_REMARK:
    case SAGA_INPUT_CALL:
    case SAGA_INPUT_COMPLETE:
    case SAGA_INPUT_BYPASS:
    case SAGA_INPUT_COST:
    case SAGA_INPUT_MEND:
    case SAGA_INPUT_RERUN:
    case SAGA_INPUT_RESUME:
    case SAGA_INPUT_PAUSE:
    case SAGA_INPUT_SIGNAL:
    case SAGA_INPUT_DECISION:
        return false;
    }
    UNREACHABLE();
}

/* Counts a refusal. Activities ask again, but not for ever. */
static void count_refusal(struct live *live, const struct mail *mail)
{
    if (is_own(mail->input.type)) {
        live->interrupted = true;
        live->refusals += live->refusals < REFUSALS_MAX;
    }
}

static void count_escalations(const struct turn *turn)
{
    int64_t more = (int64_t)turn->cases_opened - turn->cases_resolved;

    turn->live->shard->escalations_open += more;
    gauge_add(GAUGE_ESCALATIONS_OPEN, more);
}

/* Makes the state of the decision, now that its records are durable, the saga's, and counts what they mean. */
static void turn_apply(struct turn *turn)
{
    struct live *live = turn->live;
    bool ended_before = live->saga.phase == PHASE_ENDED;

    saga_become(&live->saga, turn->decision.next, &turn->decision.records);
    count_escalations(turn);
    live->refusals = 0;
    live->begun |= turn->mail->input.type == SAGA_INPUT_SETTLED || turn->mail->input.type == SAGA_INPUT_PROBED;
    live->park_refused = false;
    live->awake = turn->awake;
    metric_add(METRIC_UNPARKED, live->parked);
    park_set_parked(live, false);
    if (turn->append.forget_ms) {
        live->was_due = true;
        retention_due(live->engine, turn->append.forget_ms);
    }
    metric_add(METRIC_TURNS, 1);
    metric_add(METRIC_RECORDS, turn->decision.records.count);
    health_count(live, &turn->decision.records);
    if (saga_is_open(&live->saga) && turn->mail->input.type == SAGA_INPUT_SETTLED &&
        turn->mail->input.settled.direction == DIRECTION_DO) {
        intake_work_ended(live->engine); /* an accepted call has ended */
    }
    if (live->saga.definition->kind == SAGA_RUN) {
        rests_turn(live, turn->append.rest);
        return; /* a run is no saga that anybody started or waits for */
    }
    if (turn->append.start) {
        metric_add(METRIC_SAGAS_STARTED, 1);
    }
    if (live->saga.phase == PHASE_ENDED && !ended_before) {
        count_ended(&live->saga);
        exporter_ended(live->engine->exporter, &live->saga);
        intake_work_ended(live->engine);
    }
}

static void on_appended(struct append *append)
{
    struct turn *turn = container_of(append, struct turn, append);
    struct live *live = turn->live;
    struct engine *engine = live->engine;
    struct mail *mail = turn->mail;

    int64_t us = loop_boot_us(engine->loop) - turn->began_us;

    histogram_observe_us(HISTOGRAM_COMMIT, us);
    intake_turn_over(engine, &turn->link, append->start && !append->from_inbox, us);
    if (append->code != ERR_OK) {
        rests_drop(engine, live->saga.id); /* nobody knows for sure what the database has of the run */
    }
    if (append->code == ERR_OK && !live->dropped) {
        turn_apply(turn);
    } else if (append->code == ERR_FENCED && !live->dropped) {
        /* The shard is dropped now, and this saga with it, because the new owner starts what it still wants. */
        shard_fenced(engine, live->shard->number, append->epoch);
    } else if (append->code != ERR_OK && append->code != ERR_FENCED && append->code != ERR_CONFLICT) {
        log_error("append_refused", LOG_UUID("saga", &live->saga.id.uuid), LOG_ERR(&append->err));
        /* What the input was about is still wanted. But a call must not be made twice for it, so its outcome counts as
         * unknown from now on. */
        count_refusal(live, mail);
    }
    /* The mail's owner may free the mail, and may read `append` through the turn's arena only until it returns. */
    mail->answer = turn->decision.records.answer;
    mail->done(mail, append->code, &append->err);
    live->turn = NULL;
    if (append->code == ERR_OK && !live->dropped) {
        tell_watches(live);
    }
    turn_end(engine, turn);
    live_after_turn(live);
    engine_check_drained(engine);
}

/* Refuses a turn. No row may be so large, so nothing of it is written, as if the database had refused it as data. */
static void turn_refuse(struct turn *turn)
{
    struct live *live = turn->live;
    struct mail *mail = turn->mail;
    struct err err = {0};

    (void)err_set(&err, ERR_TOO_LARGE, "what this leads to is larger than one turn of a saga may be");
    err_hint(&err, "pass references instead of large bodies, or begin fewer elements at once");
    log_error("turn_too_large", LOG_UUID("saga", &live->saga.id.uuid),
              LOG_I64("records", (int64_t)turn->decision.records.count));
    count_refusal(live, mail);
    mail->answer = (struct call_answer){.step = STEP_NONE};
    mail->done(mail, ERR_TOO_LARGE, &err);
    turn_end(live->engine, turn);
}

void turn_begin(struct live *live, struct mail *mail)
{
    struct engine *engine = live->engine;
    struct turn *turn = turn_new(engine);
    struct err err = {0};

    mail->input.now_ms = loop_wall_ms(engine->loop);
    mail->input.escalation_number = (live->shard->escalation_counter + 1) * SHARD_COUNT + live->shard->number;
    mail->input.approval_number = (live->shard->approval_counter + 1) * SHARD_COUNT + live->shard->number;
    mail->input.number_stride = SHARD_COUNT;
    mail->input.holds = holds_in_force(engine->holds);
    mail->input.digest_key = payload_keys_digest_key(engine->options.payload_keys);
    mail->input.payload_bytes_max = engine->options.payload_bytes_max;
    turn->live = live;
    turn->mail = mail;
    turn_describe_begin(turn);
    turn->decision.witness = &turn->witness;
    enum err_code code = saga_decide_next(&live->saga, &mail->input, &turn->arena, &turn->decision, &err);

    if (code != ERR_OK || turn->decision.records.count == 0) {
        if (code == ERR_INTERNAL) {
            log_error("decision_refused", LOG_UUID("saga", &live->saga.id.uuid), LOG_ERR(&err));
            count_refusal(live, mail); /* like a refusal of the database as data */
        }

        mail->answer = turn->decision.records.answer;
        mail->done(mail, code, &err);
        turn_end(engine, turn);
        return;
    }
    park_forget(live);
    turn->began_us = loop_boot_us(engine->loop);
    turn_describe_end(turn);
    if (turn->payload.overflow) {
        turn_refuse(turn);
        return;
    }
    turn->append.done = on_appended;
    live->turn = turn;
    intake_turn_begun(engine, &turn->link);
    store_append(engine->store, &turn->append);
}

int64_t turn_began_us(const struct list_link *turn)
{
    return container_of(turn, struct turn, link)->began_us;
}

const struct append *turn_append(const struct live *live)
{
    return live->turn ? &live->turn->append : NULL;
}
