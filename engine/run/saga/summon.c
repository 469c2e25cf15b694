/*
 * Brings a saga into memory because there is mail for it, or a client needs to look at it. A saga of our shard that is
 * not in memory has ended, is parked, or is a run that rests. All mail that comes meanwhile shares one summoning.
 */
#include "run/saga/summon.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/metric.h"
#include "run/call/activity.h"
#include "run/saga/cases.h"
#include "run/saga/live.h"
#include "run/saga/park.h"
#include "run/saga/rests.h"
#include "run/saga/retention.h"
#include "run/saga/saga_room.h"
#include "run/shard/shard.h"
#include "store/business.h"

struct summoning {
    struct engine *engine;
    struct arena arena;
    struct digest key; /* the key among those under way: for a run its digest, otherwise one of the saga's id and the
                          namespace that asks */
    struct slice namespace;
    struct saga_id id;
    struct shard *shard;
    int64_t epoch; /* the epoch under which it was asked */
    struct list mails, summons;
    struct deferred deferred;
    struct read_saga read;
    struct read_run run;
    bool is_stale; /* the run was here and left since it was asked for: what is read may be from before its last turn */
};

struct summoner {
    struct map under_way; /* struct summoning by its key */
};

struct summoner *summoner_new(void)
{
    struct summoner *summoner = memory_alloc(sizeof(*summoner));

    map_init(&summoner->under_way);
    return summoner;
}

void summoner_free(struct summoner *summoner)
{
    map_fini(&summoner->under_way);
    free(summoner);
}

size_t summons_under_way(const struct engine *engine)
{
    return engine->saga_room->summoner->under_way.count;
}

struct digest run_digest(struct slice namespace, struct slice run)
{
    return business_digest(namespace, SLICE(RUN_SAGA_NAME), run);
}

uint32_t run_shard(struct slice namespace, struct slice run)
{
    struct digest digest = run_digest(namespace, run);

    return digest_shard(&digest);
}

static void mail_refuse(struct mail *mail, enum err_code code, const char *message)
{
    struct err err = {0};

    (void)err_set(&err, code, "%s", message);
    mail->done(mail, code, &err);
}

static const char shard_elsewhere[] = "another engine owns the shard of this saga";
static const char is_removed[] = "this saga is being removed, because its retention is over";
static const char no_such_saga[] = "there is no saga with this id";

/* Makes a key with the namespace. A namespace that does not have the saga is told that there is none, and that must not
 * be told to another one. */
static struct digest key_of_id(struct saga_id id, struct slice namespace)
{
    struct slice fields[] = {namespace, {(const char *)&id, sizeof(id)}};

    return digest_fields("saga", fields, COUNT_OF(fields));
}

static struct summoning *summoning_new(struct engine *engine, struct shard *shard, const struct digest *key,
                                       struct slice namespace)
{
    struct summoning *summoning = memory_alloc(sizeof(*summoning));

    summoning->engine = engine;
    summoning->shard = shard;
    summoning->epoch = shard->epoch;
    summoning->key = *key;
    arena_init(&summoning->arena, 4096);
    summoning->namespace = arena_slice(&summoning->arena, namespace);
    list_init(&summoning->mails);
    list_init(&summoning->summons);
    map_put(&engine->saga_room->summoner->under_way, &summoning->key, sizeof(summoning->key), summoning);
    return summoning;
}

static void summoning_on_end(struct deferred *deferred)
{
    struct summoning *summoning = container_of(deferred, struct summoning, deferred);

    arena_fini(&summoning->arena);
    free(summoning);
}

/* Frees a summoning later in this turn of the loop, when nobody is inside the read's `done` any more. */
static void summoning_free(struct summoning *summoning)
{
    loop_defer(summoning->engine->loop, &summoning->deferred, summoning_on_end);
}

/* Is the summoning good? If the shard changed hands during the read, what was read may be old. */
static bool is_good(const struct summoning *summoning)
{
    return summoning->shard->state == SHARD_OWNED && summoning->shard->epoch == summoning->epoch;
}

/* Removed from the map first, because a mail's `done` may ask for the same saga again. */
static void summoning_refuse(struct summoning *summoning, enum err_code code, const struct err *err)
{
    struct list_link *link;

    (void)map_remove(&summoning->engine->saga_room->summoner->under_way, &summoning->key, sizeof(summoning->key));
    while ((link = list_pop(&summoning->mails)) != NULL) {
        struct mail *mail = container_of(link, struct mail, link);

        mail->done(mail, code, err);
    }
    while ((link = list_pop(&summoning->summons)) != NULL) {
        struct summons *summons = container_of(link, struct summons, link);

        summons->done(summons, NULL, code, err);
    }
    summoning_free(summoning);
}

static void summoning_lost(struct summoning *summoning)
{
    struct err err = {0};

    (void)err_set(&err, ERR_FENCED, "%s", shard_elsewhere);
    summoning_refuse(summoning, ERR_FENCED, &err);
}

/* Refuses to make a saga that is being removed. Whoever asks comes again, and finds it gone, or put off. */
static void summoning_removed(struct summoning *summoning)
{
    struct err err = {0};

    (void)err_set(&err, ERR_BUSY, "%s", is_removed);
    summoning_refuse(summoning, ERR_BUSY, &err);
}

/* Refuses a call of a run by its id. A run is called by its name, from which the keys of its operations and the right
 * to call it are made. Returns true after the refusal. */
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

static void summoning_deliver(struct summoning *summoning, struct live *live)
{
    struct list_link *link;

    (void)map_remove(&summoning->engine->saga_room->summoner->under_way, &summoning->key, sizeof(summoning->key));
    if (live->interrupted) {
        activities_reconcile(live); /* before anything new, because an engine that is gone began what is wanted now */
    }
    while ((link = list_pop(&summoning->mails)) != NULL) {
        struct mail *mail = container_of(link, struct mail, link);

        if (!refuses_call_by_id(live, mail)) {
            live_send(live, mail);
        }
    }
    while ((link = list_pop(&summoning->summons)) != NULL) {
        struct summons *summons = container_of(link, struct summons, link);

        summons->done(summons, live, ERR_OK, NULL);
    }
    summoning_free(summoning);
    live_ready(live);
}

static void live_has_come(struct engine *engine, struct live *live)
{
    case_readable(engine, live->saga.id);
    live->interrupted = live->saga.phase != PHASE_ENDED;
    live_enter(live);
    /* All other sagas that have not ended are in memory since the shard was gained. */
    park_set_parked(live, live->saga.phase != PHASE_ENDED && live->saga.definition->kind != SAGA_RUN);
}

/* Makes a saga that is not in memory from its log. Returns NULL with a sentence. */
static struct live *live_read(struct summoning *summoning, const struct stored_turn *turns, size_t count,
                              struct err *err)
{
    struct live *live =
        live_from_log(summoning->engine, summoning->shard, summoning->id, summoning->namespace, turns, count, err);

    if (live) {
        live_has_come(summoning->engine, live);
    }
    return live;
}

/* Makes a run that rests from what its newest turn has stored of it. Returns NULL when its log has to be read: another
 * release may have written it, or it is damaged, which is told because the disk or the database has done that. */
static struct live *live_read_rest(struct summoning *summoning)
{
    const struct read_run *run = &summoning->run;
    struct err err = {0};
    struct live *live = live_from_rest(summoning->engine, summoning->shard, summoning->id, summoning->namespace,
                                       run->rest_seq, run->rest, &err);

    if (live) {
        live_has_come(summoning->engine, live);
    } else if (err.code == ERR_CORRUPT) {
        metric_add(METRIC_RESTS_DAMAGED, 1);
        log_warn("rest_damaged", LOG_UUID("saga", &summoning->id.uuid), LOG_I64("seq", run->rest_seq), LOG_ERR(&err));
    }
    return live;
}

static void summoning_on_read(struct store_read *read)
{
    struct summoning *summoning = read->context;
    struct engine *engine = summoning->engine;
    struct err err = {0};

    if (!is_good(summoning)) {
        summoning_lost(summoning);
        return;
    }
    if (read->code != ERR_OK) {
        err = read->err;
        if (read->code == ERR_NOT_FOUND) {
            (void)err_set(&err, ERR_NOT_FOUND, "%s", no_such_saga);
        }
        summoning_refuse(summoning, read->code, &err);
        return;
    }
    struct live *live = live_find(engine, summoning->id);

    if (!live && retention_removes(engine, summoning->id)) {
        summoning_removed(summoning);
        return;
    }
    if (!live) {
        live = live_read(summoning, summoning->read.turns, summoning->read.turn_count, &err);
        if (!live) {
            if (!saga_status_is_final(summoning->read.row.status)) {
                case_unreadable(summoning->shard, summoning->id, summoning->namespace, summoning->read.turns,
                                summoning->read.turn_count);
            }
            summoning_refuse(summoning, ERR_CORRUPT, &err);
            return;
        }
    }
    summoning_deliver(summoning, live);
}

enum { PRESSING_SHARE = 8, PRESSING_LEAST = 64 };

/*
 * Is memory full? Due sagas, verbs of people and signals move what is already here, and may be all that ever frees
 * memory (the holder of a lock that all others wait for). They have room beyond what reads and new work may use.
 */
static bool is_full(const struct engine *engine, bool presses)
{
    size_t max = engine->options.sagas_max;

    return lives_count(engine) + summons_under_way(engine) >=
           (presses ? max + max / PRESSING_SHARE + PRESSING_LEAST : max);
}

static const char too_many[] = "this engine has as many sagas in memory as it may keep";

/* Returns the summoning of a saga that is not in memory: one under way, or a new one. Returns NULL with a sentence. */
static struct summoning *summoning_of(struct engine *engine, struct saga_id id, struct slice namespace, bool presses,
                                      struct err *err)
{
    uint32_t number = saga_id_shard(id);
    struct digest key = key_of_id(id, namespace);
    struct summoning *summoning = map_find(&engine->saga_room->summoner->under_way, &key, sizeof(key));

    if (summoning) {
        return summoning;
    }
    if (is_full(engine, presses)) {
        (void)err_set(err, ERR_BUSY, "%s", too_many);
        return NULL;
    }
    summoning = summoning_new(engine, &engine->shards[number], &key, namespace);
    summoning->id = id;
    summoning->read =
        (struct read_saga){.read = {.arena = &summoning->arena, .done = summoning_on_read, .context = summoning},
                           .id = id,
                           .namespace = summoning->namespace};
    store_read_saga(engine->store, &summoning->read);
    return summoning;
}

void live_summon(struct engine *engine, struct saga_id id, struct slice namespace, struct summons *summons)
{
    struct live *live = live_find(engine, id);
    uint32_t number = saga_id_shard(id);
    struct summoning *summoning = NULL;
    struct err err = {0};

    if (number >= SHARD_COUNT || (live && live->saga.seq > 0 && !slice_equal(live->saga.namespace, namespace))) {
        (void)err_set(&err, ERR_NOT_FOUND, "%s", no_such_saga);
    } else if (engine->shards[number].state != SHARD_OWNED) {
        (void)err_set(&err, ERR_FENCED, "%s", shard_elsewhere);
    } else if (live && live->saga.seq == 0) {
        (void)err_set(&err, ERR_NOT_FOUND, "%s", no_such_saga); /* the start is not durable yet */
    } else if (live) {
        summons->done(summons, live, ERR_OK, NULL);
        live_ready(live);
        return;
    } else {
        summoning = summoning_of(engine, id, namespace, summons->presses, &err);
    }
    if (summoning) {
        list_push(&summoning->summons, &summons->link);
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
            mail_refuse(mail, ERR_NOT_FOUND, no_such_saga);
        } else if (!refuses_call_by_id(live, mail)) {
            live_send(live, mail);
        }
        return;
    }
    if (number >= SHARD_COUNT) {
        mail_refuse(mail, ERR_NOT_FOUND, no_such_saga);
        return;
    }
    if (engine->shards[number].state != SHARD_OWNED) {
        mail_refuse(mail, ERR_FENCED, shard_elsewhere);
        return;
    }
    if (live) { /* the start is being made durable, and later mail is decided after it */
        live_send(live, mail);
        return;
    }
    struct summoning *summoning = summoning_of(engine, id, namespace, mail->input.type != SAGA_INPUT_CALL, &err);

    if (summoning) {
        list_push(&summoning->mails, &mail->link);
    } else {
        mail->done(mail, err.code, &err);
    }
}

/* --- runs, by their name --- */

static void run_new(struct summoning *summoning)
{
    struct engine *engine = summoning->engine;
    struct saga_id id = saga_id_new(loop_wall_ms(engine->loop), summoning->shard->number);
    struct live *live = live_new(engine, summoning->shard, id, definitions_open(engine->definitions, SAGA_RUN));

    live_set_run(live, &summoning->key);
    summoning_deliver(summoning, live);
}

static void summoning_on_namesake(struct store_read *read)
{
    struct summoning *summoning = read->context;
    struct err err = {0};

    if (!is_good(summoning)) {
        summoning_lost(summoning);
    } else if (read->code == ERR_NOT_FOUND) {
        run_new(summoning);
    } else if (read->code != ERR_OK) {
        summoning_refuse(summoning, read->code, &read->err);
    } else {
        (void)err_set(&err, ERR_INVALID, "this run has the name of a saga");
        err_hint(&err, "call it in that saga, with POST /v1/sagas/ID/calls, or name the run differently");
        summoning_refuse(summoning, ERR_INVALID, &err);
    }
}

/* Begins a new run, unless its name is the id of a saga. The keys are made of either, so what was called there would be
 * called again here. */
static void run_begin_new(struct summoning *summoning)
{
    struct engine *engine = summoning->engine;
    struct slice run = container_of(list_first(&summoning->mails), struct mail, link)->input.call.run;

    if (!uuid_parse(run, &summoning->id.uuid) || saga_id_shard(summoning->id) >= SHARD_COUNT) {
        run_new(summoning);
        return;
    }
    summoning->read =
        (struct read_saga){.read = {.arena = &summoning->arena, .done = summoning_on_namesake, .context = summoning},
                           .id = summoning->id,
                           .namespace = summoning->namespace,
                           .turns_max = 1};
    store_read_saga(engine->store, &summoning->read);
}

/* With its id the run is summoned as every saga is. */
static void run_by_id(struct summoning *summoning)
{
    struct engine *engine = summoning->engine;
    struct list_link *link;

    (void)map_remove(&engine->saga_room->summoner->under_way, &summoning->key, sizeof(summoning->key));
    while ((link = list_pop(&summoning->mails)) != NULL) {
        live_deliver(engine, summoning->run.id, summoning->namespace, container_of(link, struct mail, link));
    }
    summoning_free(summoning);
}

/* Is the run in memory, or being read, without its name? */
static bool is_here_by_id(const struct engine *engine, struct saga_id id, struct slice namespace)
{
    const struct map *under_way = &engine->saga_room->summoner->under_way;
    struct digest by_id;

    if (live_find(engine, id)) {
        return true;
    }
    if (under_way->count == 0) {
        return false;
    }
    by_id = key_of_id(id, namespace);
    return map_find(under_way, &by_id, sizeof(by_id)) != NULL;
}

/*
 * May the run be made from what was read? It was read after its last turn of ours was told as durable, if it has
 * not been here meanwhile. A summoning by its id reads the log, too: then that one makes the run, and this one nothing.
 */
static bool may_be_made(const struct summoning *summoning)
{
    return (summoning->run.turns || summoning->run.rest.ptr) && !summoning->is_stale &&
           !is_here_by_id(summoning->engine, summoning->run.id, summoning->namespace);
}

static void summoning_on_run(struct store_read *read)
{
    struct summoning *summoning = read->context;
    struct engine *engine = summoning->engine;
    struct err err = {0};

    if (!is_good(summoning)) {
        summoning_lost(summoning);
        return;
    }
    if (read->code != ERR_OK && read->code != ERR_NOT_FOUND) {
        summoning_refuse(summoning, read->code, &read->err);
        return;
    }
    struct live *live = live_find_run(engine, &summoning->key);

    if (!live && read->code == ERR_NOT_FOUND) {
        run_begin_new(summoning);
        return;
    }
    if (!live && retention_removes(engine, summoning->run.id)) {
        summoning_removed(summoning);
        return;
    }
    if (!live && may_be_made(summoning)) {
        summoning->id = summoning->run.id;
        live = summoning->run.rest.ptr ? live_read_rest(summoning)
                                       : live_read(summoning, summoning->run.turns, summoning->run.turn_count, &err);
    }
    if (live) {
        summoning_deliver(summoning, live);
    } else {
        run_by_id(summoning);
    }
}

void summoner_run_left(const struct engine *engine, const struct digest *run)
{
    struct summoning *summoning = map_find(&engine->saga_room->summoner->under_way, run, sizeof(*run));

    if (summoning) {
        summoning->is_stale = true;
    }
}

/* Makes a run from the state that this engine keeps of it. Returns NULL when it has to be read. */
static struct live *live_kept(struct engine *engine, struct shard *shard, const struct digest *key,
                              struct slice namespace)
{
    struct rest_kept kept;
    struct err err = {0};
    struct live *live;

    if (!rests_find(engine, key, &kept) || is_here_by_id(engine, kept.id, namespace)) {
        return NULL;
    }
    live = live_from_rest(engine, shard, kept.id, namespace, kept.seq, kept.bytes, &err);
    if (live) {
        metric_add(METRIC_RESTS_KEPT_USED, 1);
        live_has_come(engine, live);
    } else {
        rests_drop(engine, kept.id);
    }
    return live;
}

void live_deliver_run(struct engine *engine, struct slice namespace, struct slice run, struct mail *mail)
{
    struct digest key = run_digest(namespace, run);
    uint32_t number = digest_shard(&key);
    struct live *live = live_find_run(engine, &key);

    mail->live = NULL;
    if (engine->shards[number].state != SHARD_OWNED) {
        mail_refuse(mail, ERR_FENCED, shard_elsewhere);
        return;
    }
    if (live) {
        live_send(live, mail);
        return;
    }
    struct summoning *summoning = map_find(&engine->saga_room->summoner->under_way, &key, sizeof(key));

    if (!summoning) {
        if (is_full(engine, false)) {
            mail_refuse(mail, ERR_BUSY, too_many);
            return;
        }
        live = live_kept(engine, &engine->shards[number], &key, namespace);
        if (live) {
            live_send(live, mail);
            return;
        }
        summoning = summoning_new(engine, &engine->shards[number], &key, namespace);
        summoning->run =
            (struct read_run){.read = {.arena = &summoning->arena, .done = summoning_on_run, .context = summoning},
                              .digest = key,
                              .shard = number};
        store_read_run(engine->store, &summoning->run);
    }
    list_push(&summoning->mails, &mail->link);
}
