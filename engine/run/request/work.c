/* The life of a request. It is answered once, later in the turn of the loop, whether or not anybody still listens. */
#include "run/request/work.h"
#include "run/readiness.h"
#include "run/request/act.h"
#include "run/saga/fold.h"
#include "run/saga/live.h"
#include "run/saga/park.h"

#include <stdlib.h>

#include "base/json.h"
#include "core/saga/sensitive.h"

#define ANSWER_BYTES_MAX (64u << 20)
#define WORK_TEXT_BYTES 1024 /* enough for a request with a small body */

struct works *works_new(struct engine *engine)
{
    struct works *works = memory_alloc(sizeof(*works));

    list_init(&works->all);
    works->acts = acts_new(engine);
    return works;
}

void works_free(struct works *works)
{
    acts_free(works->acts);
    free(works);
}

struct work *work_new(struct engine *engine, struct engine_request *request)
{
    struct arena arena;

    arena_init(&arena, 4096);
    arena_reserve(&arena, sizeof(struct work) + WORK_TEXT_BYTES);
    struct work *work = arena_alloc(&arena, sizeof(*work));

    work->arena = arena;
    work->engine = engine;
    work->request = request;
    arena_init(&work->reading, 16384);
    buffer_init(&work->out, ANSWER_BYTES_MAX);
    work->namespace = arena_slice(&work->arena, request->namespace);
    work->actor = arena_slice(&work->arena, request->actor);
    work->by = request->by;
    work->sees_sensitive = request->sees_sensitive;
    work->by.address = arena_slice(&work->arena, request->by.address);
    request->internal = work;
    list_push(&engine->works->all, &work->of_engine);
    return work;
}

static void on_deferred(struct deferred *deferred)
{
    struct work *work = container_of(deferred, struct work, deferred);
    struct engine_request *request = work->request;
    struct arena arena;

    if (request) {
        request->internal = NULL;
        request->code = work->code;
        request->err = work->err;
        if (work->code == ERR_OK) {
            request->answer = work->out.ptr ? arena_slice(request->arena, buffer_slice(&work->out)) : SLICE_NONE;
        }
    }
    list_remove(&work->engine->works->all, &work->of_engine);
    buffer_fini(&work->out);
    arena_fini(&work->reading);
    arena = work->arena;
    arena_fini(&arena); /* the arena holds the work itself */
    if (request) {
        request->done(request);
    }
}

void work_done(struct work *work, enum err_code code, const struct err *err)
{
    timer_stop(work->engine->loop, &work->timer);
    if (work->live) {
        struct live *live = work->live;

        list_remove(work->waits_in, &work->link);
        work->live = NULL;
        park_consider(live);
    }
    if (code == ERR_OK && work->out.overflow) {
        code = err_set(&work->err, ERR_TOO_LARGE, "the answer is larger than 64 MiB");
        err_hint(&work->err, "ask for fewer items with `limit`");
    } else if (code != ERR_OK && err) {
        work->err = *err;
    }
    work->code = code;
    loop_defer(work->engine->loop, &work->deferred, on_deferred);
}

void work_fail(struct work *work, enum err_code code, const char *message, const char *hint)
{
    struct err err = {0};

    (void)err_set(&err, code, "%s", message);
    if (hint) {
        err_hint(&err, "%s", hint);
    }
    work_done(work, code, &err);
}

bool work_read_failed(struct work *work, const struct store_read *read)
{
    if (read->code == ERR_OK) {
        return false;
    }
    work_done(work, read->code, &read->err);
    return true;
}

void work_no_saga(struct work *work)
{
    work_fail(work, ERR_NOT_FOUND, "there is no saga with this id", NULL);
}

bool work_saga_read_failed(struct work *work, const struct store_read *read)
{
    if (read->code == ERR_NOT_FOUND) {
        work_no_saga(work);
        return true;
    }
    return work_read_failed(work, read);
}

struct saga *work_fold(struct work *work)
{
    struct err err = {0};
    struct saga *saga = fold_turns(work->engine, work->saga, work->namespace, work->read.turns, work->read.turn_count,
                                   &work->reading, &err);

    if (!saga) {
        work_done(work, ERR_CORRUPT, &err);
    }
    return saga;
}

void work_fail_by_faults(struct work *work, const struct faults *faults, const char *message)
{
    if (work->request) {
        work->request->faults = *faults;
    }
    work_fail(work, ERR_INVALID, message, "see `errors` for each place");
}

void work_mask(const struct work *work, const struct saga *saga, struct buffer *out, size_t from)
{
    if (!work->sees_sensitive) {
        saga_mask_in(saga, out, from);
    }
}

bool work_hides(const struct work *work, struct slice saga_name)
{
    return !work->sees_sensitive && definitions_declare(work->engine->definitions, work->namespace, saga_name);
}

struct slice work_signature(struct work *work, struct slice note)
{
    struct buffer text;
    struct json_writer w;

    buffer_init(&text, 6 * (note.len + work->actor.len) + 1024);
    json_writer_init(&w, &text);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "actor", work->actor);
    json_write_instant(&w, "at", loop_wall_ms(work->engine->loop));
    if (note.ptr) {
        json_write_slice(&w, "note", note);
    }
    json_object_end(&w);
    CHECK(!text.overflow);
    struct slice signature = arena_slice(&work->arena, buffer_slice(&text));

    buffer_fini(&text);
    return signature;
}

/* While its timer runs, nobody else refers to it. */
void works_stop(struct engine *engine)
{
    for (struct list_link *link = list_first(&engine->works->all); link; link = list_after(&engine->works->all, link)) {
        struct work *work = container_of(link, struct work, of_engine);

        if (timer_running(&work->timer)) {
            work_fail(work, ERR_STOPPING, "this engine is stopping", "ask another engine, or again in a moment");
        }
    }
}

bool work_refused(struct work *work)
{
    struct engine *engine = work->engine;

    if (engine_is_draining(engine)) {
        work_fail(work, ERR_STOPPING, "this engine is stopping", "ask another engine, or again in a moment");
        return true;
    }
    if (!engine_has_database(engine) || !engine_knows_definitions(engine) || !engine_is_current(engine)) {
        struct err err = {0};

        engine_reason(engine, &err);
        err.code = ERR_STORE;
        work_done(work, ERR_STORE, &err);
        return true;
    }
    return false;
}

struct cancelled {
    struct deferred deferred;
    struct engine_request *request;
};

static void on_cancelled(struct deferred *deferred)
{
    struct cancelled *cancelled = container_of(deferred, struct cancelled, deferred);
    struct engine_request *request = cancelled->request;

    free(cancelled);
    request->done(request);
}

/* Tells the request now, with its code and sentence. The work goes on without a listener. */
static void work_leave(struct work *work)
{
    struct engine_request *request = work->request;
    struct cancelled *cancelled = memory_alloc(sizeof(*cancelled));

    cancelled->request = request;
    work->request = NULL;
    request->internal = NULL;
    loop_defer(work->engine->loop, &cancelled->deferred, on_cancelled);
    if (work->live) {
        work_done(work, request->code, NULL); /* it was only waiting */
    }
}

void engine_cancel(struct engine *engine, struct engine_request *request)
{
    struct work *work = request->internal;

    (void)engine; /* the work knows the engine */
    if (work) {   /* otherwise its `done` is about to be called */
        request->code = err_set(&request->err, ERR_TIMEOUT, "the time to wait is over");
        work_leave(work);
    }
}

void works_away(struct engine *engine)
{
    struct list_link *link = list_first(&engine->works->all), *next;

    for (; link; link = next) {
        struct work *work = container_of(link, struct work, of_engine);

        next = list_after(&engine->works->all, link); /* works leave the list later in this turn, never inside */
        if (work->request && !work->mail.from_inbox && !list_linked(&work->deferred.link)) {
            struct err *err = &work->request->err;

            if (work->live) { /* it only waits, for an end or an operation */
                work->request->code = err_set(err, ERR_STORE, "the database does not answer");
            } else {
                work->request->code = err_set(err, ERR_LOST_COMMIT,
                                              "the database does not answer; whether this was done is not known yet");
                err_hint(err, "ask again: under the same id or Idempotency-Key a repeat is not done twice");
            }
            work_leave(work);
        }
    }
}
