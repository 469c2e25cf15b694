/*
 * What passes between engines through the inbox: errand.c takes a request for a shard that another engine owns,
 * delivery.c carries it out there, answer.c is the text of the answer, late.c hands late evidence on.
 */
#ifndef SAGAD_RUN_EXCHANGE_EXCHANGE_H
#define SAGAD_RUN_EXCHANGE_EXCHANGE_H

#include "base/json.h"
#include "run/request/work.h"

/* What a request came to, as JSON: its code, err, faults, answer, saga, created and call. */
void exchange_answer_write(const struct engine_request *request, struct buffer *out);
/* The same, into the request of a work (which may be cancelled) and its `out`. Gives the code; ERR_CORRUPT for what
 * makes no sense. */
enum err_code exchange_answer_read(struct slice body, struct work *work, struct err *err);

/* Members of objects that we wrote: SLICE_NONE where there is none or null. Texts are unescaped, and copied into the
 * arena. */
struct slice exchange_text(struct slice object, const char *name, struct arena *arena);
struct slice exchange_raw(struct slice object, const char *name);
bool exchange_is_json(struct slice text);

/* How a call ended whose saga is not ours any more. */
struct late_outcome {
    struct saga_id saga;
    struct slice namespace;
    uint32_t step, attempt;
    enum direction direction;
    struct outcome outcome;
    struct slice undo_args, undo_error, result_error, cost_unknown;
    int64_t cost_micros;
};

/* Puts it into the inbox for whoever owns the saga now; all of it is copied. Tried again while the database is away. */
void late_send(struct engine *engine, const struct late_outcome *late);

/*
 * A request (its work->mail.input, checked) for a shard that this engine does not own. Durable there, then answered
 * when its owner has applied it. work->until_boot_ms is when the caller's patience ends. Ends the work; fills
 * request->call and the rest like the owner would.
 */
void errand_start(struct work *work, uint32_t shard);
void errand_call(struct work *work, uint32_t shard);
void errand_change(struct work *work, uint32_t shard);
size_t errands_count(const struct engine *engine);

/* The shards that are ours have changed: soon, once for all changes in this turn of the loop, their inbox is watched.
 */
void deliveries_watch(struct engine *engine);
size_t deliveries_count(const struct engine *engine); /* inputs of other engines that are carried out here */

struct exchange_room *exchange_new(struct engine *engine);
bool exchange_sends_late(const struct engine *engine); /* evidence is on its way: the store must not close */
void exchange_stop(struct engine *engine);             /* the store closes: whoever waits for another engine is told */
void exchange_closed(struct engine *engine);           /* the store has closed: nothing is asked of it any more */
void exchange_free(struct exchange_room *exchange);

#endif
