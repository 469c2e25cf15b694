/*
 * Retention: what is left of an ended saga is removed when its time is over, in small batches, each a transaction.
 *
 *     something is due -> read a batch -> one transaction that removes it -> a pause -> the next, until nothing is due
 *
 * Nobody waits for it, and those who wait for something share the database with it. So a batch at whose end turns wait
 * for their commit is followed by a pause that leaves this work its share of the time (`forget_share` percent); where
 * none do there is no pause. So a database that is never idle gives that share and one that often is gives more,
 * without a measure of load. And one that is slow is left alone for longer. What has not gone yet stays in the table
 * due, however much it is; memory holds one batch.
 *
 * Where sagas end faster than that share removes them, what is overdue grows older, and the share with its age: it
 * comes to rest where as many go as come, or where half of the time goes into it. Else the tables of a database that
 * always has something to do would grow for ever.
 *
 *     overdue     less than 10 minutes ..... an hour and more
 *     share       forget_share ............. 50 %, or forget_share where that is more
 */
#include "run/saga/retention.h"

#include <stdlib.h>

#include "base/metric.h"
#include "run/saga/due.h"
#include "run/saga/live.h"
#include "run/shard/shard.h"

#define BATCH_MAX 500
#define BATCH_MIN 20
#define BATCH_MS 100   /* a batch that takes longer is too large: reads of others wait behind it */
#define GATHER_MS 1000 /* so long after one that was not full: what ends bit by bit goes together */
#define PAUSE_MS_MAX 30000
#define PATIENCE_MS 600000 /* what is overdue by less than this has time */
#define OVERDUE_MS 3600000 /* by as much as this it has the largest share */
#define SHARE_MAX 50       /* percent */
#define AGAIN_MS 1000      /* there was no database */
#define REFUSED_MS 60000   /* it does not want to, as the store has told in the log */

struct retention {
    struct engine *engine;
    struct due due;
    struct due_take take;
    size_t batch_max, asked, gone, refused;
    int64_t begun_boot_ms;
    int64_t overdue_ms; /* by which the last of the batch is; OVERDUE_MS: that or more */
};

struct removal { /* of one saga */
    struct forget forget;
    struct retention *retention;
};

void retention_due(struct retention *retention, int64_t at_ms)
{
    due_at(&retention->due, at_ms);
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

/* As many percent of the time as are ours, unless nobody else wants any. */
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

    if (forget->code == ERR_OK) {
        metric_add(METRIC_FORGOTTEN, 1);
        retention->gone++;
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
        /* Its end is being made sure of, after a COMMIT whose answer was lost; or somebody looks at it. */
        due_at(due, loop_wall_ms(engine->loop) + AGAIN_MS);
    } else if (shard->state == SHARD_OWNED) {
        struct removal *removal = arena_alloc(&due->arena, sizeof(*removal));

        removal->retention = retention;
        removal->forget =
            (struct forget){.saga = row->saga, .shard = row->shard, .epoch = shard->epoch, .done = on_forgotten};
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
    /* Of the last: one that stays for long for a reason of its own is among the first, and says
     * nothing of the others. */
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
    due_init(&retention->due, engine, &retention_kind);
    return retention;
}

void retention_free(struct retention *retention)
{
    due_fini(&retention->due);
    free(retention);
}
