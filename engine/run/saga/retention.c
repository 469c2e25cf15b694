/*
 * Retention: the rows of an ended saga are removed when its time is over, in small batches, each a transaction.
 *
 *     something is due -> read a batch -> one transaction that removes it -> a pause -> the next, until nothing is due
 *
 * Nobody waits for a removal, but others that wait share the database with it. When turns wait for their commit at the
 * end of a batch, a pause follows, which leaves the removals their share of the time (`forget_share` percent).
 * Otherwise there is no pause. So a database that is never idle gives that share, and one that is often idle gives
 * more, without a measure of load. A slow database is left alone for longer. Rows that are not yet removed stay in the
 * table due, however many they are; memory holds one batch.
 *
 * When sagas end faster than that share removes them, overdue rows grow older, and the share grows with their age. It
 * settles when as many rows go as come, or at half of the time. Otherwise the tables of a busy database would grow for
 * ever.
 *
 * A run goes when its last turn is older than its retention. A repeat of a call is a turn and writes nothing beside it,
 * so the removal looks at the log, and puts off a run that was used. No call reaches a run whose removal is under way:
 * its answer might be written after the look, and its next repeat would then be done a second time.
 *
 *     overdue     less than 10 minutes ..... an hour and more
 *     share       forget_share ............. 50 %, or forget_share where that is more
 */
#include "run/saga/retention.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/metric.h"
#include "run/saga/due.h"
#include "run/saga/live.h"
#include "run/saga/rests.h"
#include "run/saga/retention_rules.h"
#include "run/saga/saga_room.h"
#include "run/shard/shard.h"

#define BATCH_MAX 500
#define BATCH_MIN 20
#define BATCH_MS 100   /* a batch that takes longer is too large, because reads of others wait behind it */
#define GATHER_MS 1000 /* this long after a batch that was not full, so that single ends are removed together */
#define PAUSE_MS_MAX 30000
#define PATIENCE_MS 600000 /* rows that are overdue by less than this are not urgent */
#define OVERDUE_MS 3600000 /* rows that are overdue by this much get the largest share */
#define SHARE_MAX 50       /* percent */
#define AGAIN_MS 1000      /* after a failure of the database */
#define REFUSED_MS 60000   /* after a refusal, which the store has logged */

struct retention {
    struct engine *engine;
    struct due due;
    struct due_take take;
    struct map going; /* saga id -> struct removal, while that is under way */
    size_t batch_max, asked, gone, refused;
    int64_t begun_boot_ms;
    int64_t overdue_ms; /* the time by which the last row of the batch is overdue; OVERDUE_MS means that or more */
};

struct removal { /* the removal of one saga, in the arena of the look */
    struct forget forget;
    struct retention *retention;
};

int64_t retention_of(const struct engine *engine, const struct saga *saga)
{
    return saga->definition->retention_ms > 0 ? saga->definition->retention_ms
                                              : retention_rules_ms(engine->options.retention, saga->namespace);
}

void retention_due(struct engine *engine, int64_t at_ms)
{
    due_at(&engine->saga_room->retention->due, at_ms);
}

bool retention_removes(const struct engine *engine, struct saga_id id)
{
    return map_find(&engine->saga_room->retention->going, &id, sizeof(id)) != NULL;
}

/* --- a batch --- */

static int64_t share_percent(const struct retention *retention)
{
    int64_t share = retention->engine->options.forget_share, over_ms = retention->overdue_ms - PATIENCE_MS;

    if (share >= SHARE_MAX || over_ms <= 0) {
        return share;
    }
    return share + (SHARE_MAX - share) * over_ms / (OVERDUE_MS - PATIENCE_MS);
}

/* Returns the pause that leaves our share of the time, or 0 when nobody else needs the database. */
static int64_t pause_ms(const struct retention *retention, int64_t took_ms)
{
    int64_t share = share_percent(retention);

    if (store_appends_waiting(retention->engine->store) == 0) {
        return 0;
    }
    int64_t pause = (took_ms > 0 ? took_ms : 1) * (100 - share) / share;

    return pause < PAUSE_MS_MAX ? pause : PAUSE_MS_MAX;
}

static void fit_size(struct retention *retention, int64_t took_ms)
{
    size_t size = retention->batch_max;

    if (took_ms > BATCH_MS) {
        size /= 2;
    } else if (retention->asked >= size) {
        size *= 2;
    }
    retention->batch_max = size < BATCH_MIN ? BATCH_MIN : size > BATCH_MAX ? BATCH_MAX : size;
}

static void retention_over(struct due *due)
{
    struct retention *retention = container_of(due, struct retention, due);
    struct loop *loop = due->engine->loop;
    int64_t now_ms = loop_boot_ms(loop), took_ms = now_ms - retention->begun_boot_ms,
            pause = pause_ms(retention, took_ms);

    if (retention->take.more || retention->refused > 0) {
        due_at(due, retention->gone > 0 ? 0 : loop_wall_ms(loop) + (retention->refused > 0 ? REFUSED_MS : AGAIN_MS));
    }
    if (!retention->take.more && pause < GATHER_MS) {
        pause = GATHER_MS;
    }
    fit_size(retention, took_ms);
    due->pause_boot_ms = now_ms + pause;
}

static void on_forgotten(struct forget *forget)
{
    struct retention *retention = container_of(forget, struct removal, forget)->retention;

    (void)map_remove(&retention->going, &forget->saga, sizeof(forget->saga));
    if (forget->code == ERR_OK) {
        metric_add(METRIC_FORGOTTEN, 1);
        retention->gone++;
    } else if (forget->code == ERR_CONFLICT) { /* only the database knows when it is due now */
        due_at(&retention->due, 0);
    } else if (forget->code == ERR_FENCED) {
        shard_fenced(retention->engine, forget->shard, forget->epoch);
    } else if (forget->code != ERR_STOPPING) {
        retention->refused++;
    }
    due_ended(&retention->due);
}

static int64_t overdue_ms(int64_t at_ms, int64_t now_ms)
{
    return at_ms > now_ms - OVERDUE_MS ? now_ms - at_ms : OVERDUE_MS;
}

static void retention_begin(struct due *due, size_t i)
{
    struct retention *retention = container_of(due, struct retention, due);
    struct engine *engine = due->engine;
    const struct due_row *row = &retention->take.rows[i];
    const struct shard *shard = &engine->shards[row->shard];

    if (live_find(engine, row->saga)) {
        /* The end is being made sure of, after a COMMIT whose answer was lost, or a client is looking at it. */
        due_at(due, loop_wall_ms(engine->loop) + AGAIN_MS);
    } else if (shard->state == SHARD_OWNED) {
        struct removal *removal = arena_alloc(&due->arena, sizeof(*removal));

        rests_drop(engine, row->saga);
        removal->retention = retention;
        removal->forget = (struct forget){.saga = row->saga,
                                          .shard = row->shard,
                                          .epoch = shard->epoch,
                                          .now_ms = loop_wall_ms(engine->loop),
                                          .kept_ms = retention_rules_ms(engine->options.retention, row->namespace),
                                          .done = on_forgotten};
        map_put(&retention->going, &removal->forget.saga, sizeof(removal->forget.saga), removal);
        retention->asked++;
        due_begun(due);
        store_forget(engine->store, &removal->forget);
    }
}

static void retention_on_taken(struct store_read *read)
{
    struct retention *retention = read->context;
    const struct due_take *take = &retention->take;
    int64_t now_ms = loop_wall_ms(retention->engine->loop);

    if (read->code != ERR_OK) {
        retention->take.more = false;
        due_at(&retention->due, now_ms + AGAIN_MS);
        due_rows(&retention->due, 0);
        return;
    }
    due_at(&retention->due, take->next_ms);
    /* The last row counts. A row that stays long for its own reason is among the first, and says nothing about the
     * others. */
    retention->overdue_ms = take->count > 0 ? overdue_ms(take->rows[take->count - 1].at_ms, now_ms) : 0;
    due_rows(&retention->due, take->count);
}

static void retention_take(struct due *due, uint64_t shards, int64_t now_ms)
{
    struct retention *retention = container_of(due, struct retention, due);

    retention->asked = retention->gone = retention->refused = 0;
    retention->begun_boot_ms = loop_boot_ms(due->engine->loop);
    retention->take =
        (struct due_take){.read = {.arena = &due->arena, .done = retention_on_taken, .context = retention},
                          .shards = shards,
                          .now_ms = now_ms,
                          .forget_limit = retention->batch_max,
                          .next_ms = INT64_MAX};
    store_due_take(due->engine->store, &retention->take);
}

/* --- its own life --- */

static const struct due_kind retention_kind = {
    .under_way_max = BATCH_MAX, .take = retention_take, .begin = retention_begin, .over = retention_over};

struct retention *retention_new(struct engine *engine)
{
    struct retention *retention = memory_alloc(sizeof(*retention));

    retention->engine = engine;
    retention->batch_max = BATCH_MAX;
    map_init(&retention->going);
    due_init(&retention->due, engine, &retention_kind);
    return retention;
}

void retention_free(struct retention *retention)
{
    due_fini(&retention->due);
    map_fini(&retention->going);
    free(retention);
}
