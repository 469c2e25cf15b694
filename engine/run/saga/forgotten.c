/*
 * Calls that this engine made and that a rewound log may not have.
 *
 * When another history is accepted, every saga leaves memory and is read back from the log as it is. Its memory may
 * have been ahead: calls were made whose intent the log has lost. A call that is wanted later under the same key, with
 * a number not above one that was made, counts as unknown, and its class of effect says what follows. Three places know
 * the calls that were made: the sagas in memory when the loss is found, and again when it is accepted; a ring of the
 * last calls of sagas that have left memory; and what engines wrote into the database about them
 * (store/lease/history.c). The last comes with each shard that is loaded, so that it holds for every engine and
 * outlives this one.
 */
#include "run/saga/forgotten.h"

#include <stdlib.h>

#include "base/log.h"
#include "core/saga/machine.h"
#include "run/call/activity.h"
#include "run/saga/live.h"
#include "run/saga/saga_room.h"

struct forgotten_operation {
    struct op_key key;
    uint32_t attempts;
};

/* A call of a class that must not be made twice: see forgotten_made(). */
struct made_call {
    struct saga_id saga;
    struct op_key key;
    uint64_t seq; /* the seq of its saga then, so the intent is not behind it */
    int64_t epoch, at_ms;
    uint32_t attempt;
    enum effect effect;
};

enum {
    MADE_CALLS = 16384, /* in the ring */
    KNOWN_MAX = 100000, /* the most sagas, and calls, that the database is told of at once */
    LOGGED_CALLS = 100
};

struct forgotten_saga {
    struct saga_id id;
    uint64_t seq;
};

struct forgotten {
    struct map operations; /* op_key -> struct forgotten_operation: attempts that were made */
    struct map sagas;      /* saga id -> struct forgotten_saga: sagas in memory when another history was accepted */
    struct arena arena;
    struct made_call *made; /* a ring; NULL when no call was made */
    uint64_t made_count;    /* in all */
};

void forgotten_note(struct engine *engine, const struct op_key *key, uint32_t attempts)
{
    struct forgotten_operation *kept = map_find(&engine->saga_room->forgotten->operations, key, sizeof(*key));

    if (!kept) {
        kept = arena_alloc(&engine->saga_room->forgotten->arena, sizeof(*kept));
        kept->key = *key;
        map_put(&engine->saga_room->forgotten->operations, &kept->key, sizeof(kept->key), kept);
    }
    kept->attempts = attempts > kept->attempts ? attempts : kept->attempts;
}

/* Returns the operation of a step when it was attempted, otherwise NULL. */
static const struct operation *attempted(const struct saga *saga, uint32_t step, enum direction direction)
{
    const struct operation *operation = operation_of(saga, step, direction);

    return operation && operation->state != OP_NONE && operation->attempts > 0 && !uuid_is_nil(&operation->key.uuid)
               ? operation
               : NULL;
}

static void remember_saga(struct engine *engine, const struct live *live)
{
    struct forgotten_saga *kept = arena_alloc(&engine->saga_room->forgotten->arena, sizeof(*kept));
    const struct saga *saga = &live->saga;

    kept->id = saga->id;
    kept->seq = saga->seq;
    map_put(&engine->saga_room->forgotten->sagas, &kept->id, sizeof(kept->id), kept);
    for (uint32_t step = 0; saga->definition && step < saga->definition->step_count; step++) {
        for (enum direction direction = DIRECTION_DO; direction < DIRECTION_COUNT; direction++) {
            const struct operation *operation = attempted(saga, step, direction);

            if (operation) {
                forgotten_note(engine, &operation->key, operation->attempts);
            }
        }
    }
}

void forgotten_remember(struct engine *engine)
{
    size_t position = 0;
    const struct live *live;

    while ((live = lives_next(engine, &position)) != NULL) {
        remember_saga(engine, live);
    }
}

/* --- calls of sagas that may leave memory --- */

void forgotten_made(const struct activity *activity)
{
    struct engine *engine = activity->engine;

    if (activity->effect == EFFECT_READ || activity->effect == EFFECT_IDEMPOTENT) {
        return;
    }
    if (!engine->saga_room->forgotten->made) {
        engine->saga_room->forgotten->made = memory_alloc(MADE_CALLS * sizeof(*engine->saga_room->forgotten->made));
    }
    engine->saga_room->forgotten->made[engine->saga_room->forgotten->made_count++ % MADE_CALLS] =
        (struct made_call){.saga = activity->saga,
                           .key = activity->operation_key,
                           .seq = activity->live->saga.seq,
                           .epoch = activity->live->shard->epoch,
                           .at_ms = loop_wall_ms(engine->loop),
                           .attempt = activity->want.number,
                           .effect = activity->effect};
}

static size_t made_kept(const struct engine *engine)
{
    return engine->saga_room->forgotten->made_count < MADE_CALLS ? (size_t)engine->saga_room->forgotten->made_count
                                                                 : MADE_CALLS;
}

/* Returns a call, counted back from the newest. */
static const struct made_call *made_before(const struct engine *engine, size_t back)
{
    return &engine->saga_room->forgotten->made[(engine->saga_room->forgotten->made_count - 1 - back) % MADE_CALLS];
}

void forgotten_log(struct engine *engine)
{
    char key[UUID_TEXT_BYTES];

    for (size_t i = 0; i < made_kept(engine) && i < LOGGED_CALLS; i++) {
        const struct made_call *call = made_before(engine, i);

        uuid_text(&call->key.uuid, key);
        log_error("call_may_be_forgotten", LOG_UUID("saga", &call->saga.uuid), LOG_TEXT("key", key),
                  LOG_I64("attempt", call->attempt), LOG_TEXT("effect", effect_name(call->effect)),
                  LOG_MS("ago", loop_wall_ms(engine->loop) - call->at_ms));
    }
}

/* --- what the database is told --- */

static bool has_room(struct known_work *out)
{
    bool has = out->saga_count < KNOWN_MAX && out->call_count < KNOWN_MAX;

    out->left_out += !has;
    return has;
}

static void know_call(struct known_work *out, const struct known_call *call)
{
    if (has_room(out)) {
        out->calls[out->call_count++] = *call;
    }
}

static void know_saga(const struct live *live, struct known_work *out)
{
    const struct saga *saga = &live->saga;

    if (saga->seq == 0 || !has_room(out)) {
        return; /* nothing was called for a saga whose start is not durable */
    }
    out->sagas[out->saga_count++] = (struct known_saga){saga->id, saga->seq, live->shard->epoch};
    for (uint32_t step = 0; saga->definition && step < saga->definition->step_count; step++) {
        for (enum direction direction = DIRECTION_DO; direction < DIRECTION_COUNT; direction++) {
            const struct operation *operation = attempted(saga, step, direction);

            if (operation && operation->effect != EFFECT_READ) {
                know_call(out, &(struct known_call){.saga = saga->id,
                                                    .key = operation->key,
                                                    .attempts = operation->attempts,
                                                    .effect = operation->effect,
                                                    .tool = saga_tool(saga, step, direction)->name});
            }
        }
    }
}

void forgotten_know(struct engine *engine, struct known_work *out)
{
    size_t position = 0;
    const struct live *live;

    out->sagas = arena_array(out->arena, KNOWN_MAX, sizeof(*out->sagas));
    out->calls = arena_array(out->arena, KNOWN_MAX, sizeof(*out->calls));
    for (size_t i = 0; i < made_kept(engine); i++) {
        const struct made_call *call = made_before(engine, i);

        out->sagas[out->saga_count++] = (struct known_saga){call->saga, call->seq, call->epoch};
        know_call(out, &(struct known_call){
                           .saga = call->saga, .key = call->key, .attempts = call->attempt, .effect = call->effect});
    }
    if (engine->saga_room->forgotten->made_count > MADE_CALLS) {
        out->calls_since_ms = made_before(engine, MADE_CALLS - 1)->at_ms;
    }
    while ((live = lives_next(engine, &position)) != NULL) {
        know_saga(live, out);
    }
}

/* --- what was read back --- */

void forgotten_compare(struct live *live)
{
    struct engine *engine = live->engine;
    struct forgotten_saga *kept =
        map_remove(&engine->saga_room->forgotten->sagas, &live->saga.id, sizeof(live->saga.id));

    if (kept && live->saga.seq < kept->seq) {
        log_error("saga_rewound", LOG_UUID("saga", &live->saga.id.uuid), LOG_I64("acknowledged", (int64_t)kept->seq),
                  LOG_I64("in_the_log", (int64_t)live->saga.seq));
    }
}

void forgotten_tell(struct engine *engine, uint32_t shard)
{
    size_t position = 0;
    void *value;

    while (map_next(&engine->saga_room->forgotten->sagas, &position, &value)) {
        const struct forgotten_saga *kept = value;

        if (saga_id_shard(kept->id) == shard) {
            log_error("saga_not_loaded", LOG_UUID("saga", &kept->id.uuid), LOG_I64("acknowledged", (int64_t)kept->seq),
                      LOG_TEXT("note", "it was in memory when another history was accepted; the log has it as ended, "
                                       "as parked, or not at all"));
            (void)map_remove(&engine->saga_room->forgotten->sagas, &kept->id, sizeof(kept->id));
        }
    }
}

bool forgotten_call(struct engine *engine, const struct op_key *key, uint32_t attempt)
{
    const struct forgotten_operation *kept = map_find(&engine->saga_room->forgotten->operations, key, sizeof(*key));

    return kept && attempt <= kept->attempts;
}

struct forgotten *forgotten_new(void)
{
    struct forgotten *forgotten = memory_alloc(sizeof(*forgotten));

    map_init(&forgotten->operations);
    map_init(&forgotten->sagas);
    arena_init(&forgotten->arena, 4096);
    return forgotten;
}

void forgotten_free(struct forgotten *forgotten)
{
    map_fini(&forgotten->operations);
    map_fini(&forgotten->sagas);
    arena_fini(&forgotten->arena);
    free(forgotten->made);
    free(forgotten);
}
