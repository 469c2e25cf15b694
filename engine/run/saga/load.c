/*
 * Bringing a saga into memory because somebody has a mail for it, or needs to look at it. What is not there, of a shard
 * that is ours, has ended, is parked, or is a run that rests. All that comes meanwhile shares one load.
 */
#include <stdlib.h>

#include "run/saga/cases.h"

struct loading {
    struct engine *engine;
    struct arena arena;
    struct digest key; /* in engine->loadings: of a run its digest, else of the saga's id and who asks for it */
    struct slice namespace;
    struct saga_id id;
    struct shard *shard;
    int64_t epoch; /* under which it was asked */
    struct list mails, summons;
    struct deferred deferred;
    struct read_saga read;
    struct find_saga find;
};

struct digest run_digest(struct slice namespace, struct slice run)
{
    struct slice fields[] = {namespace, SLICE(RUN_SAGA_NAME), run};

    return digest_fields("business", fields, COUNT_OF(fields));
}

uint32_t run_shard(struct slice namespace, struct slice run)
{
    struct digest digest = run_digest(namespace, run);

    return digest.bytes[31] % SHARD_COUNT;
}

static void refuse(struct mail *mail, enum err_code code, const char *message)
{
    struct err err = {0};

    (void)err_set(&err, code, "%s", message);
    mail->done(mail, code, &err);
}

static const char shard_elsewhere[] = "another engine owns the shard of this saga";
static const char no_such_saga[] = "there is no saga with this id";

/* With the namespace: to one whose it is not there is no such saga, and that must not be told to another one. */
static struct digest key_of_id(struct saga_id id, struct slice namespace)
{
    struct slice fields[] = {namespace, {(const char *)&id, sizeof(id)}};

    return digest_fields("saga", fields, COUNT_OF(fields));
}

static struct loading *loading_new(struct engine *engine, struct shard *shard, const struct digest *key,
                                   struct slice namespace)
{
    struct loading *loading = memory_alloc(sizeof(*loading));

    loading->engine = engine;
    loading->shard = shard;
    loading->epoch = shard->epoch;
    loading->key = *key;
    arena_init(&loading->arena, 4096);
    loading->namespace = arena_slice(&loading->arena, namespace);
    list_init(&loading->mails);
    list_init(&loading->summons);
    map_put(&engine->loadings, &loading->key, sizeof(loading->key), loading);
    return loading;
}

static void on_over(struct deferred *deferred)
{
    struct loading *loading = container_of(deferred, struct loading, deferred);

    arena_fini(&loading->arena);
    free(loading);
}

/* Later in this turn of the loop: what the read answered with is freed when nobody is inside its `done` any more. */
static void loading_free(struct loading *loading)
{
    loop_defer(loading->engine->loop, &loading->deferred, on_over);
}

/* Nothing changed hands while it was read? Else what was read may be old. */
static bool is_good(const struct loading *loading)
{
    return loading->shard->state == SHARD_OWNED && loading->shard->epoch == loading->epoch;
}

/* Out of the map first: a mail's done may ask for the same saga again. */
static void loading_refuse(struct loading *loading, enum err_code code, const struct err *err)
{
    struct list_link *link;

    (void)map_remove(&loading->engine->loadings, &loading->key, sizeof(loading->key));
    while ((link = list_pop(&loading->mails)) != NULL) {
        struct mail *mail = container_of(link, struct mail, link);

        mail->done(mail, code, err);
    }
    while ((link = list_pop(&loading->summons)) != NULL) {
        struct summons *summons = container_of(link, struct summons, link);

        summons->done(summons, NULL, code, err);
    }
    loading_free(loading);
}

static void loading_lost(struct loading *loading)
{
    struct err err = {0};

    (void)err_set(&err, ERR_FENCED, "%s", shard_elsewhere);
    loading_refuse(loading, ERR_FENCED, &err);
}

/* A run is called by its name: the keys of its operations are made of that, and so is the right to call it. True: it
 * was refused. */
static bool refuses_call_by_id(const struct live *live, struct mail *mail)
{
    struct err err = {0};

    if (mail->input.type != SAGA_INPUT_CALL || mail->input.call.run.ptr || !live->run_digest) {
        return false;
    }
    (void)err_set(&err, ERR_CONFLICT, "this is a run, and a run is called by its name");
    err_hint(&err, "call it with POST /v1/operations and its name as \"run\"");
    mail->done(mail, ERR_CONFLICT, &err);
    return true;
}

static void loading_deliver(struct loading *loading, struct live *live)
{
    struct list_link *link;

    (void)map_remove(&loading->engine->loadings, &loading->key, sizeof(loading->key));
    if (live->interrupted) {
        activities_reconcile(live); /* before anything new: what is wanted now was begun by somebody who is gone */
    }
    while ((link = list_pop(&loading->mails)) != NULL) {
        struct mail *mail = container_of(link, struct mail, link);

        if (!refuses_call_by_id(live, mail)) {
            live_send(live, mail);
        }
    }
    while ((link = list_pop(&loading->summons)) != NULL) {
        struct summons *summons = container_of(link, struct summons, link);

        summons->done(summons, live, ERR_OK, NULL);
    }
    loading_free(loading);
    live_ready(live);
}

static void on_read(struct store_read *read)
{
    struct loading *loading = read->context;
    struct engine *engine = loading->engine;
    struct err err = {0};

    if (!is_good(loading)) {
        loading_lost(loading);
        return;
    }
    if (read->code != ERR_OK) {
        err = read->err;
        if (read->code == ERR_NOT_FOUND) {
            (void)err_set(&err, ERR_NOT_FOUND, "%s", no_such_saga);
        }
        loading_refuse(loading, read->code, &err);
        return;
    }
    struct live *live = live_find(engine, loading->id);

    if (!live) {
        live = live_from_log(engine, loading->shard, loading->id, loading->namespace, loading->read.turns,
                             loading->read.turn_count, &err);
        if (!live) {
            if (!saga_status_is_final(loading->read.row.status)) {
                case_unreadable(loading->shard, loading->id, loading->namespace, loading->read.turns,
                                loading->read.turn_count);
            }
            loading_refuse(loading, ERR_CORRUPT, &err);
            return;
        }
        case_readable(engine, loading->id);
        live->interrupted = live->saga.phase != PHASE_ENDED;
        live_enter(live);
        /* All others that have not ended are in memory since the shard was gained. */
        park_set_parked(live, live->saga.phase != PHASE_ENDED && live->saga.definition->kind != SAGA_RUN);
    }
    loading_deliver(loading, live);
}

enum { PRESSING_SHARE = 8, PRESSING_LEAST = 64 };

/*
 * What is due, and what people and signals have to say, moves what is here already, and may be all that ever frees
 * memory (the holder of a lock that all others wait for): it has room beyond what is kept for reads and for new work.
 */
static bool is_full(const struct engine *engine, bool presses)
{
    size_t max = engine->options.sagas_max;

    return engine->sagas.count + engine->loadings.count >=
           (presses ? max + max / PRESSING_SHARE + PRESSING_LEAST : max);
}

static const char too_many[] = "this engine has as many sagas in memory as it may keep";

/* The load of a saga that is not in memory: one under way, or a new one. NULL with a sentence. */
static struct loading *loading_of(struct engine *engine, struct saga_id id, struct slice namespace, bool presses,
                                  struct err *err)
{
    uint32_t number = saga_id_shard(id);
    struct digest key = key_of_id(id, namespace);
    struct loading *loading = map_find(&engine->loadings, &key, sizeof(key));

    if (loading) {
        return loading;
    }
    if (is_full(engine, presses)) {
        (void)err_set(err, ERR_BUSY, "%s", too_many);
        return NULL;
    }
    loading = loading_new(engine, &engine->shards[number], &key, namespace);
    loading->id = id;
    loading->read = (struct read_saga){.read = {.arena = &loading->arena, .done = on_read, .context = loading},
                                       .id = id,
                                       .namespace = loading->namespace};
    store_read_saga(engine->store, &loading->read);
    return loading;
}

void live_summon(struct engine *engine, struct saga_id id, struct slice namespace, struct summons *summons)
{
    struct live *live = live_find(engine, id);
    uint32_t number = saga_id_shard(id);
    struct loading *loading = NULL;
    struct err err = {0};

    if (number >= SHARD_COUNT || (live && live->saga.seq > 0 && !slice_equal(live->saga.namespace, namespace))) {
        (void)err_set(&err, ERR_NOT_FOUND, "%s", no_such_saga);
    } else if (engine->shards[number].state != SHARD_OWNED) {
        (void)err_set(&err, ERR_FENCED, "%s", shard_elsewhere);
    } else if (live && live->saga.seq == 0) {
        (void)err_set(&err, ERR_NOT_FOUND, "%s", no_such_saga); /* its start is not durable yet */
    } else if (live) {
        summons->done(summons, live, ERR_OK, NULL);
        live_ready(live);
        return;
    } else {
        loading = loading_of(engine, id, namespace, summons->presses, &err);
    }
    if (loading) {
        list_push(&loading->summons, &summons->link);
    } else {
        summons->done(summons, NULL, err.code, &err);
    }
}

void live_deliver(struct engine *engine, struct saga_id id, struct slice namespace, struct mail *mail)
{
    struct live *live = live_find(engine, id);
    uint32_t number = saga_id_shard(id);
    struct err err = {0};

    mail->live = NULL;
    if (live && live->saga.seq > 0) {
        if (!slice_equal(live->saga.namespace, namespace)) {
            refuse(mail, ERR_NOT_FOUND, no_such_saga);
        } else if (!refuses_call_by_id(live, mail)) {
            live_send(live, mail);
        }
        return;
    }
    if (number >= SHARD_COUNT) {
        refuse(mail, ERR_NOT_FOUND, no_such_saga);
        return;
    }
    if (engine->shards[number].state != SHARD_OWNED) {
        refuse(mail, ERR_FENCED, shard_elsewhere);
        return;
    }
    if (live) { /* its start is being made durable: what comes now is decided after it */
        live_send(live, mail);
        return;
    }
    struct loading *loading = loading_of(engine, id, namespace, mail->input.type != SAGA_INPUT_CALL, &err);

    if (loading) {
        list_push(&loading->mails, &mail->link);
    } else {
        mail->done(mail, err.code, &err);
    }
}

/* --- runs, by their name --- */

static void run_new(struct loading *loading)
{
    struct engine *engine = loading->engine;
    struct saga_id id = saga_id_new(loop_wall_ms(engine->loop), loading->shard->number);
    struct live *live = live_new(engine, loading->shard, id, definitions_open(engine->definitions, SAGA_RUN));

    live_set_run(live, &loading->key);
    loading_deliver(loading, live);
}

static void on_namesake_read(struct store_read *read)
{
    struct loading *loading = read->context;
    struct err err = {0};

    if (!is_good(loading)) {
        loading_lost(loading);
    } else if (read->code == ERR_NOT_FOUND) {
        run_new(loading);
    } else if (read->code != ERR_OK) {
        loading_refuse(loading, read->code, &read->err);
    } else {
        (void)err_set(&err, ERR_INVALID, "this run has the name of a saga");
        err_hint(&err, "call it in that saga, with POST /v1/sagas/ID/calls, or name the run differently");
        loading_refuse(loading, ERR_INVALID, &err);
    }
}

/* A new one, unless its name is the id of a saga: the keys are made of either, so that what was called there would be
 * called again here. */
static void run_begin_new(struct loading *loading)
{
    struct engine *engine = loading->engine;
    struct slice run = container_of(list_first(&loading->mails), struct mail, link)->input.call.run;

    if (!uuid_parse(run, &loading->id.uuid) || saga_id_shard(loading->id) >= SHARD_COUNT) {
        run_new(loading);
        return;
    }
    loading->read = (struct read_saga){.read = {.arena = &loading->arena, .done = on_namesake_read, .context = loading},
                                       .id = loading->id,
                                       .namespace = loading->namespace,
                                       .turns_max = 1};
    store_read_saga(engine->store, &loading->read);
}

static void on_found(struct store_read *read)
{
    struct loading *loading = read->context;
    struct engine *engine = loading->engine;

    if (!is_good(loading)) {
        loading_lost(loading);
        return;
    }
    if (read->code != ERR_OK && read->code != ERR_NOT_FOUND) {
        loading_refuse(loading, read->code, &read->err);
        return;
    }
    struct live *live = map_find(&engine->runs, &loading->key, sizeof(loading->key));

    if (live) {
        loading_deliver(loading, live);
    } else if (read->code == ERR_NOT_FOUND) {
        run_begin_new(loading);
    } else {
        /* Now that it has an id the rest is as for every saga. */
        struct list_link *link;

        (void)map_remove(&engine->loadings, &loading->key, sizeof(loading->key));
        while ((link = list_pop(&loading->mails)) != NULL) {
            live_deliver(engine, loading->find.id, loading->namespace, container_of(link, struct mail, link));
        }
        loading_free(loading);
    }
}

void live_deliver_run(struct engine *engine, struct slice namespace, struct slice run, struct mail *mail)
{
    struct digest key = run_digest(namespace, run);
    uint32_t number = key.bytes[31] % SHARD_COUNT;
    struct live *live = map_find(&engine->runs, &key, sizeof(key));

    mail->live = NULL;
    if (engine->shards[number].state != SHARD_OWNED) {
        refuse(mail, ERR_FENCED, shard_elsewhere);
        return;
    }
    if (live) {
        live_send(live, mail);
        return;
    }
    struct loading *loading = map_find(&engine->loadings, &key, sizeof(key));

    if (!loading) {
        if (is_full(engine, false)) {
            refuse(mail, ERR_BUSY, too_many);
            return;
        }
        loading = loading_new(engine, &engine->shards[number], &key, namespace);
        loading->find = (struct find_saga){.read = {.arena = &loading->arena, .done = on_found, .context = loading},
                                           .business_digest = key,
                                           .shard = number};
        store_find_saga(engine->store, &loading->find);
    }
    list_push(&loading->mails, &mail->link);
}
