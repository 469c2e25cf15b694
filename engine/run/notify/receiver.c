/* See receiver.h. */
#include "run/notify/receiver.h"

#include "base/json.h"
#include "base/log.h"
#include "base/metric.h"
#include "run/leaving.h"

#define POLL_MS 500          /* when the feed had nothing */
#define AGAIN_MS 1000        /* after a failure of the database */
#define READ_LIMIT 200       /* turns of one page of the feed */
#define WRITE_EVERY_MS 60000 /* how far a cursor may be behind while no event is wanted */
#define FAILURES_MAX 5       /* in a row, before the receiver rests */
#define REST_FIRST_MS 5000
#define REST_MAX_MS 300000

static void receiver_advance(struct receiver *receiver);

static bool is_ours(const struct receiver *receiver)
{
    return receiver->engine->shards[receiver->shard].state == SHARD_OWNED;
}

static void on_time(struct timer *timer)
{
    receiver_advance(container_of(timer, struct receiver, timer));
}

static void on_next(struct deferred *deferred)
{
    receiver_advance(container_of(deferred, struct receiver, next));
}

/* Goes on later in this turn of the loop: the caller still uses memory of the round. */
static void go_on(struct receiver *receiver, enum receiver_stage stage)
{
    receiver->stage = stage;
    loop_defer(receiver->engine->loop, &receiver->next, on_next);
}

/* Ends the round: it begins anew after so long. */
static void wait_for(struct receiver *receiver, int64_t ms)
{
    receiver->stage = RECEIVER_WAITING;
    if (!receiver->stopped) {
        timer_start_by_day(receiver->engine->loop, &receiver->timer, ms < 0 ? 0 : ms, on_time);
    }
}

static void fenced(struct receiver *receiver)
{
    shard_fenced(receiver->engine, receiver->shard, receiver->epoch);
    receiver->is_known = false;
    wait_for(receiver, AGAIN_MS);
}

static struct notify_name name_of(const struct receiver *receiver)
{
    return (struct notify_name){receiver->target->namespace, receiver->target->name};
}

/* --- the breaker --- */

static bool rests(const struct receiver *receiver)
{
    return receiver->rests_until_boot_ms > loop_boot_ms(receiver->engine->loop);
}

static void note_failure(struct receiver *receiver)
{
    int64_t rest_ms = receiver->rest_ms;

    metric_add(METRIC_NOTIFICATION_FAILURES, 1);
    if (++receiver->failures < FAILURES_MAX || rests(receiver)) {
        return;
    }
    rest_ms = rest_ms == 0 ? REST_FIRST_MS : rest_ms * 2 < REST_MAX_MS ? rest_ms * 2 : REST_MAX_MS;
    receiver->rest_ms = rest_ms;
    receiver->rests_until_boot_ms = loop_boot_ms(receiver->engine->loop) + rest_ms;
    log_warn("notify_receiver_rests", LOG_SLICE("namespace", receiver->target->namespace),
             LOG_SLICE("receiver", receiver->target->name), LOG_MS("rest", rest_ms));
}

static void note_success(struct receiver *receiver)
{
    metric_add(METRIC_NOTIFICATIONS_DELIVERED, 1);
    receiver->failures = 0;
    receiver->rest_ms = receiver->rests_until_boot_ms = 0;
}

/* --- sending --- */

static void send_some(struct receiver *receiver);

void attempt_over(struct attempt *attempt, bool is_delivered)
{
    struct receiver *receiver = attempt->receiver;

    receiver->under_way--;
    if (receiver->stopped) { /* nothing is known of what was cancelled: the next owner sends it again */
        engine_check_drained(receiver->engine);
        return;
    }
    if (is_delivered) {
        note_success(receiver);
    } else {
        note_failure(receiver);
    }
    send_some(receiver);
}

/* While the receiver rests: what has been late for too long is a dead letter, and the rest stays as it is. */
static void leave(struct receiver *receiver, const struct notification_row *row, struct notify_outcome *outcome)
{
    *outcome = (struct notify_outcome){.number = row->number, .look_ms = row->look_ms};
    if (row->until_ms <= receiver->take.now_ms) {
        outcome->state = NOTIFICATION_DEAD;
        outcome->look_ms = receiver->take.now_ms;
        outcome->error = row->error.ptr ? SLICE_NONE : SLICE("the receiver rests, because it failed too often");
    }
}

static void settle(struct receiver *receiver);

static void send_some(struct receiver *receiver)
{
    struct notify_take *take = &receiver->take;

    while (receiver->begun < take->count && receiver->under_way < RECEIVER_AT_ONCE) {
        size_t i = receiver->begun++;
        struct attempt *attempt = &receiver->attempts[i];

        if (i >= receiver->may_begin || rests(receiver) || !is_ours(receiver)) {
            leave(receiver, &take->rows[i], &receiver->outcomes[i]);
            continue;
        }
        receiver->outcomes[i] = (struct notify_outcome){.number = take->rows[i].number, .look_ms = take->now_ms};
        *attempt = (struct attempt){.receiver = receiver, .outcome = &receiver->outcomes[i], .row = &take->rows[i]};
        receiver->under_way++;
        attempt_begin(attempt);
    }
    if (receiver->under_way == 0) {
        go_on(receiver, RECEIVER_SETTLING);
    }
}

static void send_begin(struct receiver *receiver)
{
    receiver->begun = receiver->under_way = 0;
    /* After a rest one is tried first. */
    receiver->may_begin = rests(receiver) ? 0 : receiver->rest_ms > 0 ? 1 : RECEIVER_BATCH;
    send_some(receiver);
}

static void on_settled(struct store_read *read)
{
    struct receiver *receiver = read->context;

    if (receiver->stopped) {
        return;
    }
    if (read->code == ERR_OK && receiver->settle.fenced) {
        fenced(receiver);
        return;
    }
    receiver->again = read->code != ERR_OK; /* what was delivered is sent once more, under the same id */
    go_on(receiver, RECEIVER_READING);
}

static bool is_changed(const struct receiver *receiver, size_t i)
{
    const struct notify_outcome *outcome = &receiver->outcomes[i];

    return outcome->done || outcome->attempts > 0 || outcome->state == NOTIFICATION_DEAD ||
           outcome->look_ms != receiver->take.rows[i].look_ms;
}

static void settle(struct receiver *receiver)
{
    size_t count = 0;

    for (size_t i = 0; i < receiver->take.count; i++) {
        if (!is_changed(receiver, i)) {
            continue;
        }
        if (receiver->outcomes[i].state == NOTIFICATION_DEAD) {
            metric_add(METRIC_NOTIFICATIONS_DEAD, 1);
            log_warn("notification_dead", LOG_SLICE("namespace", receiver->target->namespace),
                     LOG_SLICE("receiver", receiver->target->name), LOG_SLICE("event", receiver->take.rows[i].event));
        }
        receiver->outcomes[count++] = receiver->outcomes[i];
    }
    receiver->more = count == RECEIVER_BATCH;
    if (count == 0) {
        go_on(receiver, RECEIVER_READING);
        return;
    }
    receiver->settle =
        (struct notify_settle){.read = {.arena = &receiver->arena, .done = on_settled, .context = receiver},
                               .of = name_of(receiver),
                               .epoch = receiver->epoch,
                               .outcomes = receiver->outcomes,
                               .count = count};
    store_notify_settle(receiver->engine->store, &receiver->settle);
}

/* --- the feed --- */

static void end_of_round(struct receiver *receiver)
{
    wait_for(receiver, receiver->again ? AGAIN_MS : receiver->more ? 0 : POLL_MS);
}

static void on_put(struct store_read *read)
{
    struct receiver *receiver = read->context;

    if (receiver->stopped) {
        return;
    }
    if (read->code == ERR_OK && receiver->put.end == NOTIFY_FENCED) {
        fenced(receiver);
        return;
    }
    if (read->code != ERR_OK || receiver->put.end == NOTIFY_MOVED) {
        receiver->is_known = false; /* the row says where the cursor is */
        receiver->again = read->code != ERR_OK;
    } else {
        receiver->read_tx = receiver->written_tx = receiver->put.tx;
        receiver->written_boot_ms = loop_boot_ms(receiver->engine->loop);
        receiver->is_known = true;
        receiver->more = receiver->more || receiver->put.count > 0;
    }
    end_of_round(receiver);
}

static void put(struct receiver *receiver, bool is_known, int64_t tx, const struct notify_event *events, size_t count)
{
    int64_t now_ms = loop_wall_ms(receiver->engine->loop);

    receiver->stage = RECEIVER_PUTTING;
    receiver->put = (struct notify_put){.read = {.arena = &receiver->arena, .done = on_put, .context = receiver},
                                        .of = name_of(receiver),
                                        .epoch = receiver->epoch,
                                        .is_known = is_known,
                                        .before = receiver->written_tx,
                                        .tx = tx,
                                        .events = events,
                                        .count = count,
                                        .now_ms = now_ms,
                                        .until_ms = now_ms + receiver->target->give_up_ms};
    store_notify_put(receiver->engine->store, &receiver->put);
}

static void take_events(struct receiver *receiver, struct slice answer, int64_t tx)
{
    struct json_walk walk = json_walk(answer);
    size_t count = json_count(answer), i = 0;
    struct notify_event *events = arena_array(&receiver->arena, count + 1, sizeof(*events));
    struct slice event;

    while (json_next_element(&walk, &event)) {
        event = json_trim(event);
        events[i++] = (struct notify_event){json_string(json_member(event, "id"), &receiver->arena), event};
    }
    put(receiver, true, tx, events, count);
}

static void on_events(struct engine_request *asked)
{
    struct receiver *receiver = container_of(asked, struct receiver, asked);
    int64_t tx = 0;
    bool has_tx = asked->next_cursor.ptr && slice_to_i64(asked->next_cursor, &tx);

    if (receiver->stopped) {
        return;
    }
    if (asked->code == ERR_GONE && has_tx) { /* nobody was there for as long as events are kept */
        log_error("notify_events_missed", LOG_SLICE("namespace", receiver->target->namespace),
                  LOG_SLICE("receiver", receiver->target->name));
        put(receiver, true, tx, NULL, 0);
    } else if (asked->code != ERR_OK || !has_tx) {
        receiver->again = true;
        end_of_round(receiver);
    } else if (!receiver->is_known) {
        put(receiver, false, tx, NULL, 0); /* a new receiver begins here */
    } else if (json_count(asked->answer) > 0 ||
               loop_boot_ms(receiver->engine->loop) - receiver->written_boot_ms > WRITE_EVERY_MS) {
        take_events(receiver, asked->answer, tx);
    } else {
        receiver->read_tx = tx;
        end_of_round(receiver);
    }
}

static void read_events(struct receiver *receiver)
{
    struct engine_request *asked = &receiver->asked;

    if (!is_ours(receiver)) {
        receiver->is_known = false;
        end_of_round(receiver);
        return;
    }
    *asked =
        (struct engine_request){.arena = &receiver->arena,
                                .namespace = receiver->target->namespace,
                                .actor = SLICE("notify"),
                                .done = on_events,
                                .in.events = {.cursor = receiver->is_known ? arena_printf(&receiver->arena, "%lld",
                                                                                          (long long)receiver->read_tx)
                                                                           : SLICE("now"),
                                              .types = receiver->target->events,
                                              .limit = READ_LIMIT}};
    engine_get_events(receiver->engine, asked);
}

/* --- a round --- */

static void on_taken(struct store_read *read)
{
    struct receiver *receiver = read->context;
    const struct notify_take *take = &receiver->take;

    if (receiver->stopped) {
        return;
    }
    if (read->code != ERR_OK) {
        receiver->again = true;
        end_of_round(receiver);
        return;
    }
    if (!take->is_known) {
        receiver->is_known = false;
    } else if (!receiver->is_known || receiver->written_tx != take->tx) {
        receiver->is_known = true;
        receiver->read_tx = receiver->written_tx = take->tx;
        receiver->written_boot_ms = loop_boot_ms(receiver->engine->loop);
    }
    go_on(receiver, RECEIVER_SENDING);
}

static void take(struct receiver *receiver)
{
    const struct engine *engine = receiver->engine;

    arena_reset(&receiver->arena);
    if (!is_ours(receiver)) {
        receiver->is_known = false;
        receiver->stage = RECEIVER_WAITING; /* receiver_look() comes with the shard */
        return;
    }
    receiver->epoch = engine->shards[receiver->shard].epoch;
    receiver->more = receiver->again = false;
    receiver->stage = RECEIVER_TAKING;
    receiver->take = (struct notify_take){.read = {.arena = &receiver->arena, .done = on_taken, .context = receiver},
                                          .of = name_of(receiver),
                                          .now_ms = loop_wall_ms(engine->loop),
                                          .limit = RECEIVER_BATCH};
    store_notify_take(engine->store, &receiver->take);
}

static void receiver_advance(struct receiver *receiver)
{
    if (receiver->stopped) {
        return;
    }
    switch (receiver->stage) {
    case RECEIVER_WAITING:
        take(receiver);
        return;
    case RECEIVER_SENDING:
        send_begin(receiver);
        return;
    case RECEIVER_SETTLING:
        settle(receiver);
        return;
    case RECEIVER_READING:
        read_events(receiver);
        return;
    case RECEIVER_TAKING:
    case RECEIVER_PUTTING: /* the store answers */
        return;
    }
    UNREACHABLE();
}

/* --- its life --- */

void receiver_init(struct receiver *receiver, struct engine *engine, const struct notify_target *target)
{
    receiver->engine = engine;
    receiver->target = target;
    arena_init(&receiver->arena, 16384);
    struct notify_name name = name_of(receiver);

    receiver->shard = notify_shard(&name);
}

void receiver_look(struct receiver *receiver)
{
    if (receiver->stage == RECEIVER_WAITING) {
        wait_for(receiver, 0);
    }
}

void receiver_stop(struct receiver *receiver)
{
    receiver->stopped = true;
    timer_stop(receiver->engine->loop, &receiver->timer);
    for (size_t i = 0; i < receiver->begun && receiver->stage == RECEIVER_SENDING; i++) {
        attempt_cancel(&receiver->attempts[i]);
    }
}

bool receiver_sends(const struct receiver *receiver)
{
    return receiver->stage == RECEIVER_SENDING && receiver->under_way > 0;
}

void receiver_fini(struct receiver *receiver)
{
    loop_defer_cancel(receiver->engine->loop, &receiver->next);
    arena_fini(&receiver->arena);
}
