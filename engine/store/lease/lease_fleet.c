/*
 * The engines on this database, and what follows for the shards: how many are ours, and how many of ours other engines
 * should have.
 *
 * Each engine computes this for itself from the two tables that it reads with each renewal. The engines need not agree:
 * the row of a shard alone decides who owns it, and a result from old rows is corrected by the next one.
 */
#include <string.h>

#include "store/lease/lease_state.h"
#include "store/migrate.h"

enum { STALE_MS = 3600 * 1000, LOOK_AFTER_MS = 100, BUNDLES_SINCE = 10 /* BUNDLES_SINCE: the version of the schema */ };

/* --- our row --- */

static void put_instances(struct db_args *args, const struct leases *leases, bool own)
{
    db_array_begin(args, DB_TEXT, leases->stale_count + own);
    for (size_t i = 0; i < leases->stale_count; i++) {
        db_item_bytes(args, slice_of(leases->stale[i]));
    }
    if (own) {
        db_item_bytes(args, slice_of(leases->store->instance));
    }
    db_array_end(args);
}

void fleet_put(struct leases *leases)
{
    struct db_args *args = lease_query(leases, &sql_engine_put, NULL);
    struct engine_lags lags = {0};

    if (leases->options.lags) {
        leases->options.lags(&lags, leases->options.context);
    }
    db_arg_text(args, slice_of(leases->store->instance));
    db_arg_text(args, slice_of(leases->identity));
    db_arg_text(args, slice_of(leases->options.engine_name));
    db_arg_text(args, slice_of(leases->options.version));
    db_arg_int4(args, migrate_newest());
    db_arg_bool(args, leases->options.standby);
    db_arg_bool(args, leases->leaving);
    db_arg_int8(args, leases->options.ttl_ms);
    db_arg_int8(args, lags.append_ms);
    db_arg_int8(args, lags.due_ms);
    db_arg_int8(args, lags.inbox_rows);
    db_arg_int8(args, lags.holds);
    leases->says_leaving = leases->leaving;
    if (!leases->told && !leases->options.standby) {       /* a standby changes nobody's share */
        (void)lease_query(leases, &sql_engine_tell, NULL); /* takes no parameters */
    }
    if (leases->stale_count > 0) {
        put_instances(lease_query(leases, &sql_engine_remove, NULL), leases, false);
    }
}

void fleet_put_gone(struct leases *leases)
{
    put_instances(lease_query(leases, &sql_engine_remove, NULL), leases, true);
}

void fleet_written(struct leases *leases)
{
    leases->in_fleet = true;
    leases->stale_count = leases->looks ? leases->stale_count : 0; /* these rows are removed now */
    leases->told =
        leases->says_leaving == leases->leaving; /* otherwise the wish came meanwhile, and the next renewal says it */
}

/* --- all rows --- */

static void on_fleet(struct db_query *query, const struct db_rows *rows)
{
    struct leases *leases = query->context;

    leases->fleet_count = leases->stale_count = 0;
    leases->beside_older = false;
    for (size_t i = 0; i < db_row_count(rows); i++) {
        struct slice instance = db_bytes(rows, i, 0), identity = db_bytes(rows, i, 1);
        int64_t left_ms = db_int(rows, i, 8);

        if (slice_is(instance, leases->store->instance)) {
            left_ms = leases->options.ttl_ms;
        }
        leases->beside_older |= db_int(rows, i, 4) < BUNDLES_SINCE && left_ms > -STALE_MS;
        if (left_ms > 0 && leases->fleet_count < FLEET_MAX && !lease_identity_is_dead(identity, leases->identity)) {
            struct fleet_row *row = &leases->fleet[leases->fleet_count++];

            slice_to_text(row->identity, sizeof(row->identity), identity);
            row->standby = db_int(rows, i, 5);
            row->leaving = db_int(rows, i, 6);
            row->left_ms = left_ms;
        } else if (left_ms < -STALE_MS && leases->stale_count < FLEET_STALE_MAX) {
            slice_to_text(leases->stale[leases->stale_count++], STORE_INSTANCE_BYTES, instance);
        }
    }
}

bool leases_beside_older(const struct leases *leases)
{
    return leases->beside_older;
}

void fleet_read(struct leases *leases)
{
    (void)lease_query(leases, &sql_engine_table, on_fleet); /* takes no parameters */
}

/* --- what follows --- */

static bool is_self(const struct leases *leases, const struct fleet_row *row)
{
    return strcmp(row->identity, leases->identity) == 0;
}

/* Does the engine have a share beside the others? */
static bool counts(const struct fleet_row *row)
{
    return !row->standby && !row->leaving;
}

/* Counts the engines that have a share, and those of them before us, whether or not our own row was read. */
static size_t count_engines(const struct leases *leases, size_t *before)
{
    size_t count = 0;
    bool passed = false;

    *before = 0;
    for (size_t i = 0; i < leases->fleet_count; i++) {
        const struct fleet_row *row = &leases->fleet[i];

        if (is_self(leases, row)) {
            passed = true;
        } else if (counts(row)) {
            count++;
            *before += !passed;
        }
    }
    return count + (!leases->options.standby && !leases->leaving);
}

bool fleet_is_alone(const struct leases *leases)
{
    return leases->fleet_count == 1 && is_self(leases, &leases->fleet[0]) && counts(&leases->fleet[0]) &&
           !leases->leaving;
}

/* When the shards cannot be divided evenly, the first engines take one more. */
size_t fleet_share(const struct leases *leases)
{
    size_t before, count = count_engines(leases, &before);

    if (leases->leaving || leases->releasing) {
        return 0;
    }
    if (leases->options.standby) {
        return count > 0 ? 0 : SHARD_COUNT;
    }
    return SHARD_COUNT / count + (before < SHARD_COUNT % count);
}

size_t fleet_first(const struct leases *leases)
{
    size_t before, count = count_engines(leases, &before);

    return count > 0 ? before * SHARD_COUNT / count % SHARD_COUNT : 0;
}

static size_t held_by(const struct leases *leases, const char *identity)
{
    size_t count = 0;

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        const struct lease_row *row = &leases->table[shard];

        count += row->has_owner && row->left_ms > 0 && strcmp(row->identity, identity) == 0;
    }
    return count;
}

/*
 * Returns the surplus of an engine that has one shard more than an even part. Any engine may keep the one more that it
 * has, so that no shard moves only because another engine came that is earlier in the order. It is given away only when
 * an engine has less than its part and nothing is free: the last engines in the order give it, because they do not take
 * it back.
 */
static size_t surplus_of_one(const struct leases *leases, size_t count)
{
    size_t smaller = SHARD_COUNT / count, owned = 0, lacking = 0, after = 0;
    bool passed = false;

    for (size_t i = 0; i < leases->fleet_count; i++) {
        const struct fleet_row *row = &leases->fleet[i];
        size_t held = held_by(leases, row->identity);

        owned += held;
        if (!counts(row)) {
            continue;
        }
        if (held > smaller + 1) {
            return 0; /* that engine gives first */
        }
        lacking += held < smaller ? smaller - held : 0;
        after += passed && held > smaller;
        passed = passed || is_self(leases, row);
    }
    return passed && owned == SHARD_COUNT && after < lacking ? 1 : 0;
}

size_t fleet_surplus(const struct leases *leases)
{
    size_t before, count = count_engines(leases, &before), held = 0, most;

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        held += leases->shards[shard].held;
    }
    if (leases->leaving || leases->releasing || count == 0) {
        return 0; /* it gives all shards anyway, or it is a standby that nobody waits for */
    }
    most = leases->options.standby ? 0 : (SHARD_COUNT + count - 1) / count;
    if (held > most) {
        return held - most;
    }
    return held > SHARD_COUNT / count ? surplus_of_one(leases, count) : 0;
}

int64_t fleet_next_ms(const struct leases *leases, int64_t ms)
{
    for (size_t i = 0; i < leases->fleet_count; i++) {
        int64_t left_ms = leases->fleet[i].left_ms + LOOK_AFTER_MS;

        ms = !is_self(leases, &leases->fleet[i]) && left_ms < ms ? left_ms : ms;
    }
    return ms;
}
