/*
 * Reads a saga back from its log: the start record and the definition, then every record checked and applied. These are
 * the functions that ran live; there is no other recovery.
 */
#include "run/saga/fold.h"

#include "base/json.h"
#include "base/metric.h"
#include "core/saga/rest.h"
#include "run/call/holds.h"
#include "run/engine_state.h"

/* Applies one turn. The first record of the log is `start`, which was read before there was a saga. */
static enum err_code apply_turn(struct saga *saga, const struct stored_turn *turn, const struct record *start,
                                struct fold_watcher *watcher, struct arena *arena, struct err *err)
{
    struct json_walk walk = json_walk(turn->payload);
    struct slice text;
    uint64_t seq = turn->first_seq;

    if (turn->fault) {
        err_set(err, ERR_CORRUPT, "%s", turn->fault);
        return err_context(err, "record %llu", (unsigned long long)seq);
    }
    while (json_next_element(&walk, &text)) {
        struct record record = *start;
        enum err_code code = seq == 1 ? ERR_OK : record_read(text, saga->definition, arena, &record, err);

        if (code == ERR_OK) {
            record.seq = seq++;
            record.at_ms = turn->at_ms;
            if (!record_check(saga, &record, err)) {
                code = ERR_CORRUPT;
            }
        }
        if (code != ERR_OK) {
            err->code = ERR_CORRUPT;
            (void)err_context(err, "record %llu", (unsigned long long)(saga->seq + 1));
            return ERR_CORRUPT;
        }
        saga_apply(saga, &record);
        if (watcher) {
            watcher->applied(watcher, saga, &record, turn->epoch);
        }
    }
    return ERR_OK;
}

static enum err_code fold(struct engine *engine, struct saga *saga, struct arena *arena, struct saga_id id,
                          struct slice namespace, const struct stored_turn *turns, size_t count,
                          struct fold_watcher *watcher, struct err *err)
{
    struct arena scratch;
    struct record start = {0};
    struct slice first;
    enum err_code code = ERR_OK;

    arena_init(&scratch, 4096);
    if (count > 0 && turns[0].fault) {
        err_set(err, ERR_CORRUPT, "%s", turns[0].fault);
        code = err_context(err, "record %llu", (unsigned long long)turns[0].first_seq);
    } else if (count == 0 || turns[0].first_seq != 1 || !(first = json_element(turns[0].payload, 0)).ptr) {
        code = err_set(err, ERR_CORRUPT, "the log of this saga has no beginning");
    } else {
        code = record_read_start(first, &scratch, &start, err);
    }
    if (code == ERR_OK) {
        const struct definition *definition = definitions_pinned(engine->definitions, namespace, start.saga_name,
                                                                 start.version, start.tools, start.sagas, err);

        if (!definition) {
            code = err->code = ERR_CORRUPT; /* a missing definition must not look like a missing saga */
        } else {
            saga_init(saga, arena, id, definition);
            saga->holds = holds_in_force(engine->holds);
        }
    }
    for (size_t i = 0; i < count && code == ERR_OK; i++) {
        code = apply_turn(saga, &turns[i], &start, watcher, &scratch, err);
    }
    arena_fini(&scratch);
    return code;
}

enum err_code fold_into(struct engine *engine, struct saga *saga, struct arena *arena, struct saga_id id,
                        struct slice namespace, const struct stored_turn *turns, size_t count, struct err *err)
{
    enum err_code code = fold(engine, saga, arena, id, namespace, turns, count, NULL, err);

    metric_add(METRIC_SAGAS_UNREADABLE, code != ERR_OK);
    return code;
}

enum err_code fold_from_rest(struct engine *engine, struct saga *saga, struct arena *arena, struct saga_id id,
                             struct slice namespace, uint64_t seq, struct slice rest, struct err *err)
{
    const struct definition *definition = definitions_open(engine->definitions, SAGA_RUN);
    enum err_code code = saga_read_rest(saga, arena, id, definition, namespace, seq, rest, err);

    if (code == ERR_OK) {
        saga->holds = holds_in_force(engine->holds);
    }
    return code;
}

const struct saga *fold_turns_watched(struct engine *engine, struct saga_id id, struct slice namespace,
                                      const struct stored_turn *turns, size_t count, struct arena *arena,
                                      struct fold_watcher *watcher, struct err *err)
{
    struct saga *saga = arena_alloc(arena, sizeof(*saga));

    return fold(engine, saga, arena, id, namespace, turns, count, watcher, err) == ERR_OK ? saga : NULL;
}

struct saga *fold_turns(struct engine *engine, struct saga_id id, struct slice namespace,
                        const struct stored_turn *turns, size_t count, struct arena *arena, struct err *err)
{
    struct saga *saga = arena_alloc(arena, sizeof(*saga));

    return fold_into(engine, saga, arena, id, namespace, turns, count, err) == ERR_OK ? saga : NULL;
}
