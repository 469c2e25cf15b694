/*
 * From the key of an operation to its saga. Keys are kept in bundles. A batch puts its new keys into one row for each
 * shard of keys (append_batch.c), and a question reads the bundles of one shard. This file sweeps the bundles from time
 * to time: it joins small ones, and drops keys of sagas that are gone.
 *
 * There are fewer shards of keys than shards of sagas. The engine that holds the shard of sagas with the same number
 * does the work. It sweeps one shard after the other, some bundles in each statement and with a tenth of the time,
 * because questions and loads wait on the same connections.
 */
#include "base/log.h"
#include "store/store_state.h"

enum {
    KEY_SHARD_COUNT = 16, /* the shards of bundles; sql_key_bundle and sagad.saga_of() use the same number */
    STAYS_MIN = 32,       /* a bundle with this many keys is large enough */
    PACKED_MAX = 64,      /* the most keys that are joined; with their sagas they fit into the row itself */
    BUNDLES_MAX = 512,    /* the most bundles of one shard in one statement */
    KEYS_MAX = 4096,      /* the most keys; they take some ten milliseconds, for which questions wait */
    SHARE = 10,           /* the sweep takes one part of this many of the time */
    REST = 12,            /* the next round comes this many times later when nothing goes on */
    PAUSE_MS_MIN = 20,
    PAUSE_MS_MAX = 30 * 1000
};

uint32_t store_key_shard(const struct op_key *key)
{
    return key->uuid.bytes[15] % SHARD_COUNT;
}

static void on_sweep(struct timer *timer);

static void sweep_later(struct key_sweep *sweep, int64_t ms)
{
    if (!sweep->store->closing) {
        timer_start(sweep->store->loop, &sweep->timer, ms, on_sweep);
    }
}

static void on_looked(struct db_query *query, const struct db_rows *rows)
{
    struct key_sweep *sweep = ((struct job *)query->context)->request;

    if (db_row_count(rows) == 1) {
        sweep->bundles = db_int(rows, 0, 0);
        sweep->keys = db_int(rows, 0, 1);
    }
}

static void on_swept(struct job *job)
{
    struct key_sweep *sweep = job->request;
    int64_t took_ms = loop_boot_ms(sweep->store->loop) - sweep->began_boot_ms, pause_ms = (SHARE - 1) * took_ms;
    int64_t bundles_max = sweep->bundles_max;

    sweep->under_way = false;
    if (job->code == ERR_OK) {
        sweep->is_fed |= sweep->bundles > 0;
        sweep->is_behind |= sweep->bundles == bundles_max || sweep->keys >= KEYS_MAX;
        sweep->bundles_max = bundles_max < BUNDLES_MAX ? 2 * bundles_max : bundles_max;
    } else { /* the other shards go on; this one comes again in its turn, with a smaller part in case that was too much
              */
        sweep->bundles_max = bundles_max > 1 ? bundles_max / 2 : 1;
        sweep->is_fed = true; /* nobody knows what is due there */
        if (!sweep->store->closing) {
            log_warn("key_sweep_failed", LOG_I64("shard", sweep->shard), LOG_ERR(&job->err));
        }
    }
    sweep->shard++;
    arena_reset(&sweep->arena);
    sweep_later(sweep, pause_ms < PAUSE_MS_MIN ? PAUSE_MS_MIN : pause_ms > PAUSE_MS_MAX ? PAUSE_MS_MAX : pause_ms);
}

static bool is_ours(const struct store *store, uint32_t shard)
{
    return store->leases && lease_is_held(store->leases, shard, NULL);
}

void keys_sweep(struct store *store)
{
    struct key_sweep *sweep = &store->key_sweep;
    struct job *job;
    struct db_args *args;

    CHECK(!sweep->under_way);
    timer_stop(store->loop, &sweep->timer);
    sweep->rests = false;
    while (sweep->shard < KEY_SHARD_COUNT && !is_ours(store, sweep->shard)) {
        sweep->shard++;
    }
    if (sweep->shard >= KEY_SHARD_COUNT) {
        sweep->rests = !sweep->is_fed;
        sweep_later(sweep, sweep->is_behind ? PAUSE_MS_MIN : store->options.key_look_ms * (sweep->rests ? REST : 1));
        sweep->shard = 0;
        sweep->is_behind = sweep->is_fed = false;
        sweep->rounds++;
        return;
    }
    sweep->under_way = true;
    sweep->bundles = sweep->keys = 0;
    sweep->began_boot_ms = loop_boot_ms(store->loop);
    job = job_new(store, &sweep->arena, sweep, on_swept);
    job->writes = true;
    args = job_query(job, &sql_key_sweep, on_looked);
    db_arg_int2(args, (int)sweep->shard);
    db_arg_timestamptz(args, loop_wall_ms(store->loop));
    db_arg_int8(args, sweep->bundles_max);
    db_arg_int8(args, STAYS_MIN);
    db_arg_int8(args, PACKED_MAX);
    db_arg_int8(args, KEYS_MAX);
    job_submit(job);
}

void keys_fed(struct store *store)
{
    struct key_sweep *sweep = &store->key_sweep;

    sweep->is_fed = true;
    if (sweep->rests) {
        sweep->rests = false;
        sweep_later(sweep, store->options.key_look_ms);
    }
}

static void on_sweep(struct timer *timer)
{
    keys_sweep(container_of(timer, struct key_sweep, timer)->store);
}

void keys_init(struct store *store)
{
    struct key_sweep *sweep = &store->key_sweep;

    sweep->store = store;
    sweep->bundles_max = BUNDLES_MAX;
    arena_init(&sweep->arena, 1024);
    sweep_later(sweep, store->options.key_look_ms);
}

void keys_stop(struct store *store)
{
    timer_stop(store->loop, &store->key_sweep.timer);
}

void keys_fini(struct store *store)
{
    arena_fini(&store->key_sweep.arena);
}
