/*
 * Late evidence. A call was sent while its saga was ours, and its answer comes when another engine has the saga. What
 * really happened is worth more than a guess, so the answer goes to the owner through the inbox, where it settles what
 * is unknown.
 */
#include "run/exchange/exchange_state.h"
#include "run/leaving.h"

#include <stdlib.h>

#include "base/log.h"

#define PUT_AGAIN_MS 2000
#define PAYLOAD_BYTES_MAX (64u << 20)

struct late {
    struct list_link link; /* links exchange->late_outcomes */
    struct engine *engine;
    struct arena arena;
    struct inbox_put put;
    struct timer timer;
};

static void late_end(struct late *late)
{
    struct engine *engine = late->engine;

    timer_stop(engine->loop, &late->timer);
    list_remove(&engine->exchange->late_outcomes, &late->link);
    arena_fini(&late->arena);
    free(late);
}

static void on_put(struct inbox_put *put);

static void send_late(struct late *late)
{
    late->put.done = on_put;
    store_inbox_put(late->engine->store, &late->put);
}

static void on_again(struct timer *timer)
{
    send_late(container_of(timer, struct late, timer)); /* the store does not close before the last of them has ended */
}

static void on_put(struct inbox_put *put)
{
    struct late *late = container_of(put, struct late, put);
    struct engine *engine = late->engine;

    if (put->code == ERR_OK) {
        late_end(late);
        engine_check_drained(engine);
    } else if (engine_is_draining(engine)) {
        /* The saga's next owner counts the outcome as unknown, and settles that as its tool allows. */
        log_warn("late_evidence_lost", LOG_UUID("saga", &put->row.saga.uuid), LOG_ERR(&put->err));
        late_end(late);
        engine_check_drained(engine);
    } else {
        timer_start(engine->loop, &late->timer, PUT_AGAIN_MS, on_again); /* evidence may come twice */
    }
}

static void write_late(const struct late_outcome *evidence, struct buffer *out)
{
    const struct outcome *outcome = &evidence->outcome;
    struct json_writer w;

    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "namespace", evidence->namespace);
    json_write_i64(&w, "step", evidence->step);
    json_write_text(&w, "direction", direction_name(evidence->direction));
    json_write_i64(&w, "attempt", evidence->attempt);
    json_write_text(&w, "outcome", outcome_name(outcome->kind));
    json_write_bool(&w, "unsent", outcome->unsent);
    json_write_i64(&w, "retry_after_ms", outcome->retry_after_ms);
    json_write_raw(&w, "result", outcome->result);
    json_write_slice(&w, "error", outcome->error);
    json_write_slice(&w, "detail", outcome->detail);
    json_write_raw(&w, "answer", outcome->answer);
    json_write_raw(&w, "undo_args", evidence->undo_args);
    json_write_slice(&w, "undo_error", evidence->undo_error);
    json_write_i64(&w, "cost_micros", evidence->cost_micros);
    json_write_slice(&w, "cost_unknown", evidence->cost_unknown);
    json_write_slice(&w, "result_error", evidence->result_error);
    json_object_end(&w);
}

void late_send(struct engine *engine, const struct late_outcome *evidence)
{
    struct late *late;
    struct buffer payload;

    CHECK(!engine_is_closing(engine)); /* the caller has checked this */
    late = memory_alloc(sizeof(*late));
    late->engine = engine;
    arena_init(&late->arena, 2048);
    buffer_init(&payload, PAYLOAD_BYTES_MAX);
    write_late(evidence, &payload);
    late->put.row = (struct inbox_row){.shard = saga_id_shard(evidence->saga),
                                       .saga = evidence->saga,
                                       .kind = SLICE("settled"),
                                       .payload = arena_slice(&late->arena, buffer_slice(&payload))};
    buffer_fini(&payload);
    list_push(&engine->exchange->late_outcomes, &late->link);
    send_late(late);
}
