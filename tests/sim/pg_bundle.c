/* Bundles of operation keys, which say which saga has the operation with a key. */
#include <string.h>

#include "tests/sim/pg_state.h"
#include "tests/sim/pg_statements.h"

#define HOUR_MS INT64_C(3600000)
#define MINUTE_MS INT64_C(60000)

enum { UUID_BYTES = 16, SMALL_BELOW = 16, KEY_SHARDS = 16 };

/* A bundle that is being put together. */
struct pairs {
    struct uuid *keys, *sagas;
    size_t count;
    int64_t made_ms;
};

static struct pairs pairs_new(struct pg_call *call, size_t capacity)
{
    return (struct pairs){.keys = arena_array(call->arena, capacity + 1, sizeof(struct uuid)),
                          .sagas = arena_array(call->arena, capacity + 1, sizeof(struct uuid)),
                          .made_ms = INT64_MAX};
}

static void pairs_add(struct pairs *pairs, struct uuid key, struct uuid saga)
{
    pairs->keys[pairs->count] = key;
    pairs->sagas[pairs->count++] = saga;
}

static struct slice keep_ids(struct pg_call *call, const struct uuid *ids, size_t count)
{
    return pg_keep(call, (struct slice){(const char *)ids, count * UUID_BYTES});
}

static size_t pair_count(const struct row_key_bundle *bundle)
{
    return bundle->keys.len / UUID_BYTES;
}

static struct uuid id_at(struct slice ids, size_t i)
{
    struct uuid id;

    memcpy(&id, ids.ptr + i * UUID_BYTES, UUID_BYTES);
    return id;
}

static const struct row_saga *saga_of(struct pg_call *call, struct uuid id)
{
    return pg_saga(call, (int16_t)(id.bytes[14] * 256 + id.bytes[15]), id);
}

static enum pg_progress put_bundle(struct pg_call *call, int64_t shard, int64_t check_ms, struct uuid id,
                                   const struct pairs *pairs)
{
    struct row_key_bundle row = {shard,
                                 check_ms,
                                 id,
                                 pairs->made_ms,
                                 keep_ids(call, pairs->keys, pairs->count),
                                 keep_ids(call, pairs->sagas, pairs->count)};

    return pg_insert(call, PG_KEY_BUNDLE, &row, NULL);
}

static bool is_there(struct pg_call *call, size_t i)
{
    return item_is_null(call, 3, i) || pg_saga(call, item_int(call, 3, i), item_uuid(call, 2, i));
}

enum pg_progress pg_statement_key_for_older(struct pg_call *call)
{
    int64_t affected = 0;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        struct row_operation_key row = {item_int(call, 0, i), item_uuid(call, 1, i), item_uuid(call, 2, i)};
        bool inserted = false;

        if (is_there(call, i)) {
            RETURN_UNLESS_DONE(pg_insert_new(call, PG_OPERATION_KEY, &row, &inserted));
        }
        affected += inserted;
    }
    return end_with_affected(call, affected);
}

enum pg_progress pg_statement_key_bundle(struct pg_call *call)
{
    size_t count = arg_count(call, 0);
    int64_t now_ms = arg_time_ms(call, 5), soon_ms = arg_time_ms(call, 6), affected = 0;

    for (int64_t shard = 0; shard < KEY_SHARDS; shard++) {
        struct pairs pairs = {.count = 0};

        for (size_t i = 0; i < count; i++) {
            if (item_int(call, 0, i) % KEY_SHARDS == shard && is_there(call, i)) {
                pairs = pairs.keys ? pairs : pairs_new(call, count);
                pairs_add(&pairs, item_uuid(call, 1, i), item_uuid(call, 2, i));
            }
        }
        if (pairs.count > 0) {
            pairs.made_ms = now_ms;
            RETURN_UNLESS_DONE(put_bundle(call, shard,
                                          pairs.count < SMALL_BELOW ? soon_ms : now_ms + 12 * (soon_ms - now_ms),
                                          arg_uuid(call, 4), &pairs));
            affected++;
        }
    }
    return end_with_affected(call, affected);
}

/* --- the question --- */

/* Looks at a saga; the oldest one counts. */
static void consider(struct pg_call *call, struct uuid id, const struct row_saga **oldest)
{
    const struct row_saga *saga = saga_of(call, id);

    if (saga && slice_equal(saga->namespace, arg_bytes(call, 2)) &&
        (!*oldest || uuid_compare(&saga->id, &(*oldest)->id) < 0)) {
        *oldest = saga;
    }
}

enum pg_progress pg_statement_saga_by_key(struct pg_call *call)
{
    struct uuid key = arg_uuid(call, 1);
    struct row_operation_key by_key = {.shard = arg_int(call, 0), .key = key};
    const struct row_operation_key *alone = pg_see(call, pg_find(call, PG_OPERATION_KEY, &by_key));
    int64_t shard = arg_int(call, 0) % KEY_SHARDS;
    const struct row_saga *oldest = NULL;

    if (alone) {
        consider(call, alone->saga, &oldest);
    }
    for (struct pg_row *row =
             pg_first(call, PG_KEY_BUNDLE, &(struct row_key_bundle){.shard = shard, .check_ms = INT64_MIN});
         row; row = pg_next(call, PG_KEY_BUNDLE, row)) {
        const struct row_key_bundle *bundle = pg_see(call, row);

        if (bundle && bundle->shard != shard) {
            break;
        }
        for (size_t i = 0; bundle && i < pair_count(bundle); i++) {
            struct uuid own = id_at(bundle->keys, i);

            if (uuid_equal(&own, &key)) {
                consider(call, id_at(bundle->sagas, i), &oldest);
            }
        }
    }
    if (oldest) {
        put_uuid(call, &oldest->id);
        put_row_end(call);
    }
    return PG_DONE;
}

bool pg_knows_key(const struct pg *pg, struct op_key key, struct saga_id saga)
{
    const struct pg_rows *rows = &pg->tables[PG_KEY_BUNDLE];
    int64_t shard = key.uuid.bytes[15] % KEY_SHARDS;

    for (size_t n = 0; n < rows->count; n++) {
        const struct row_key_bundle *bundle = pg_committed(rows->sorted[n]);

        for (size_t i = 0; bundle && bundle->shard == shard && i < pair_count(bundle); i++) {
            struct uuid own = id_at(bundle->keys, i), named = id_at(bundle->sagas, i);

            if (uuid_equal(&own, &key.uuid) && uuid_equal(&named, &saga.uuid)) {
                return true;
            }
        }
    }
    return false;
}

/* --- the sweep --- */

static int64_t looked_at_ms(int64_t now_ms, int64_t made_ms)
{
    int64_t after_ms = 9 * (now_ms - made_ms);

    return now_ms + (after_ms < 5 * MINUTE_MS ? 5 * MINUTE_MS : after_ms > 720 * HOUR_MS ? 720 * HOUR_MS : after_ms);
}

static enum pg_progress put_packed(struct pg_call *call, int64_t shard, int64_t now_ms, struct pairs *pairs)
{
    if (pairs->count > 0) {
        RETURN_UNLESS_DONE(put_bundle(call, shard, looked_at_ms(now_ms, pairs->made_ms), pg_new_id(call), pairs));
    }
    *pairs = pairs_new(call, (size_t)arg_int(call, 4));
    return PG_DONE;
}

static enum pg_progress sweep_bundle(struct pg_call *call, const struct row_key_bundle *bundle, int64_t now_ms,
                                     struct pairs *packed)
{
    size_t count = pair_count(bundle);

    if ((int64_t)count >= arg_int(call, 3) &&
        saga_of(call, id_at(bundle->sagas, (size_t)(bundle->check_ms / 1000) % count))) {
        struct row_key_bundle later = *bundle;

        later.check_ms = looked_at_ms(now_ms, bundle->made_ms);
        return pg_insert(call, PG_KEY_BUNDLE, &later, NULL);
    }
    for (size_t i = 0; i < count; i++) {
        if (bundle->made_ms > now_ms - 15 * MINUTE_MS || saga_of(call, id_at(bundle->sagas, i))) {
            packed->made_ms = bundle->made_ms < packed->made_ms ? bundle->made_ms : packed->made_ms;
            pairs_add(packed, id_at(bundle->keys, i), id_at(bundle->sagas, i));
        }
        if ((int64_t)packed->count == arg_int(call, 4)) {
            RETURN_UNLESS_DONE(put_packed(call, bundle->shard, now_ms, packed));
        }
    }
    return PG_DONE;
}

static enum pg_progress sweep_shard(struct pg_call *call, int64_t shard, struct pg_touched *touched, int64_t *looked,
                                    int64_t *keys)
{
    struct pg_row *row = pg_first(call, PG_KEY_BUNDLE, &(struct row_key_bundle){.shard = shard, .check_ms = INT64_MIN}),
                  *next;
    int64_t now_ms = arg_time_ms(call, 1), left = arg_int(call, 2), seen = 0;
    struct pairs packed = pairs_new(call, (size_t)arg_int(call, 4));

    for (; row && left > 0 && seen < arg_int(call, 5); row = next) {
        const struct row_key_bundle *bundle = pg_see(call, row);
        const void *current = NULL;

        next = pg_next(call, PG_KEY_BUNDLE, row);
        if (bundle && (bundle->shard != shard || bundle->check_ms > now_ms)) {
            break;
        }
        if (bundle) {
            RETURN_UNLESS_DONE(pg_take(call, touched, row, PG_UPDATE, &current));
            left--;
            seen += (int64_t)pair_count(bundle);
        }
        if (current) {
            pg_delete(call, row);
            RETURN_UNLESS_DONE(sweep_bundle(call, current, now_ms, &packed));
            ++*looked;
            *keys += (int64_t)pair_count(current);
        }
    }
    return put_packed(call, shard, now_ms, &packed);
}

enum pg_progress pg_statement_key_sweep(struct pg_call *call)
{
    struct pg_touched touched = {0};
    int64_t looked = 0, keys = 0;

    RETURN_UNLESS_DONE(sweep_shard(call, arg_int(call, 0), &touched, &looked, &keys));
    put_int(call, looked);
    put_int(call, keys);
    return end_with_row(call);
}
