/*
 * What passes between engines through the inbox, as its two sides share it: inbox_post.c takes a request for a shard
 * that another engine owns, inbox.c carries it out there, inbox_answer.c is the text of the answer, inbox_late.c hands
 * late evidence on.
 */
#ifndef SAGAD_RUN_EXCHANGE_INBOX_H
#define SAGAD_RUN_EXCHANGE_INBOX_H

#include "base/json.h"
#include "run/request/work.h"

/* What a request came to, as JSON: its code, err, faults, answer, saga, created and call. */
void inbox_answer_write(const struct engine_request *request, struct buffer *out);
/* The same, into the request of a work (which may be cancelled) and its `out`. Gives the code; ERR_CORRUPT for what
 * makes no sense. */
enum err_code inbox_answer_read(struct slice body, struct work *work, struct err *err);

/* Members of objects that we wrote: SLICE_NONE where there is none or null. Texts are unescaped, and copied into the
 * arena. */
struct slice inbox_text(struct slice object, const char *name, struct arena *arena);
struct slice inbox_raw(struct slice object, const char *name);
bool inbox_is_json(struct slice text);

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
void inbox_settled(struct engine *engine, const struct late_outcome *late);

/* At the engine's end: frees what still waits for its time. */
void errands_stop(struct engine *engine); /* the store closes: whoever waits for another engine is told */
void inbox_free(struct engine *engine);

void inbox_rows(const struct inbox_row *rows, size_t count, void *engine);

#endif
