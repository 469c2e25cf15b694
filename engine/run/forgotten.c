/*
 * What this engine knows to have called, and a log that was rewound may not.
 *
 * When another history is accepted every saga leaves memory and is read back from the log as it is. Its memory may have been ahead: calls were
 * made of which the log has lost the intent. So before it leaves, the number of attempts of each operation is kept here. A call that is wanted
 * later under the same key with a number not above that has been made: it counts as unknown, and its class of effect says what follows.
 */
#include <stdlib.h>

#include "base/log.h"
#include "core/saga_machine.h"
#include "run/engine_state.h"

struct forgotten_operation {
    struct op_key key;
    uint32_t attempts;
};

struct forgotten_saga {
    struct saga_id id;
    uint64_t seq;
};

static void remember_operation(struct engine *engine, const struct operation *operation)
{
    struct forgotten_operation *kept;

    if (operation->attempts == 0) {
        return;
    }
    kept = map_find(&engine->forgotten.operations, &operation->key, sizeof(operation->key));
    if (!kept) {
        kept = arena_alloc(&engine->forgotten.arena, sizeof(*kept));
        kept->key = operation->key;
        map_put(&engine->forgotten.operations, &kept->key, sizeof(kept->key), kept);
    }
    kept->attempts = operation->attempts > kept->attempts ? operation->attempts : kept->attempts;
}

static void remember_saga(struct engine *engine, const struct live *live)
{
    struct forgotten_saga *kept = arena_alloc(&engine->forgotten.arena, sizeof(*kept));
    const struct saga *saga = &live->saga;

    kept->id = saga->id;
    kept->seq = saga->seq;
    map_put(&engine->forgotten.sagas, &kept->id, sizeof(kept->id), kept);
    for (uint32_t step = 0; saga->definition && step < saga->definition->step_count; step++) {
        for (enum direction direction = DIRECTION_DO; direction < DIRECTION_COUNT; direction++) {
            const struct operation *operation = operation_of(saga, step, direction);

            if (operation && operation->state != OP_NONE && !uuid_is_nil(&operation->key.uuid)) {
                remember_operation(engine, operation);
            }
        }
    }
}

void forgotten_remember(struct engine *engine)
{
    size_t position = 0;
    void *value;

    while (map_next(&engine->sagas, &position, &value)) {
        remember_saga(engine, value);
    }
}

void forgotten_compare(struct live *live)
{
    struct engine *engine = live->engine;
    struct forgotten_saga *kept = map_remove(&engine->forgotten.sagas, &live->saga.id, sizeof(live->saga.id));

    if (kept && live->saga.seq < kept->seq) {
        log_error("saga_rewound", LOG_UUID("saga", &live->saga.id.uuid), LOG_I64("acknowledged", (int64_t)kept->seq),
                  LOG_I64("in_the_log", (int64_t)live->saga.seq));
    }
}

void forgotten_tell(struct engine *engine, uint32_t shard)
{
    size_t position = 0;
    void *value;

    while (map_next(&engine->forgotten.sagas, &position, &value)) {
        const struct forgotten_saga *kept = value;

        if (saga_id_shard(kept->id) == shard) {
            log_error("saga_not_loaded", LOG_UUID("saga", &kept->id.uuid), LOG_I64("acknowledged", (int64_t)kept->seq),
                      LOG_TEXT("note", "it was in memory when another history was accepted; the log has it as ended, as parked, or not at all"));
            (void)map_remove(&engine->forgotten.sagas, &kept->id, sizeof(kept->id));
        }
    }
}

bool forgotten_call(struct engine *engine, const struct op_key *key, uint32_t attempt)
{
    const struct forgotten_operation *kept = map_find(&engine->forgotten.operations, key, sizeof(*key));

    return kept && attempt <= kept->attempts;
}

void forgotten_init(struct engine *engine)
{
    map_init(&engine->forgotten.operations);
    map_init(&engine->forgotten.sagas);
    arena_init(&engine->forgotten.arena, 4096);
}

void forgotten_fini(struct engine *engine)
{
    map_fini(&engine->forgotten.operations);
    map_fini(&engine->forgotten.sagas);
    arena_fini(&engine->forgotten.arena);
}
