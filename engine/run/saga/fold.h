/* A saga read back from its log. See fold.c. */
#ifndef SAGAD_RUN_SAGA_FOLD_H
#define SAGAD_RUN_SAGA_FOLD_H

#include "run/engine_state.h"

struct saga *fold_turns(struct engine *engine, struct saga_id id, struct slice namespace,
                        const struct stored_turn *turns, size_t count, struct arena *arena,
                        struct err *err); /* NULL with a sentence */
struct fold_watcher { /* is shown each record after it was applied; the record lives as long as the call */
    void (*applied)(struct fold_watcher *watcher, const struct saga *saga, const struct record *record, int64_t epoch);
};

/* The same, with somebody who watches. Nothing counts such a saga as unreadable. */
const struct saga *fold_turns_watched(struct engine *engine, struct saga_id id, struct slice namespace,
                                      const struct stored_turn *turns, size_t count, struct arena *arena,
                                      struct fold_watcher *watcher, struct err *err);
/* The same into a saga at hand (of a live one). */
enum err_code fold_into(struct engine *engine, struct saga *saga, struct arena *arena, struct saga_id id,
                        struct slice namespace, const struct stored_turn *turns, size_t count, struct err *err);

/* A run that rests, from what is stored of it beside its newest turn. Any error means only that its log has to be read.
 */
enum err_code fold_from_rest(struct engine *engine, struct saga *saga, struct arena *arena, struct saga_id id,
                             struct slice namespace, uint64_t seq, struct slice rest, struct err *err);

#endif
