/* Takes shards over that nobody holds: ends the backends of the old owner, locks, and raises the epoch. */
#include <string.h>

#include "base/log.h"
#include "store/lease/lease_state.h"

enum { LOCK_TRIES = 5 }; /* after so many tries an advisory lock is ignored, because it is only a hint */

/* Marks the shards that may be taken now, and returns how many. */
size_t leases_choose(struct leases *leases)
{
    size_t held = 0, chosen = 0, share = fleet_share(leases), first = fleet_first(leases);
    const char *last_identity = NULL;
    bool last_dead = false, patient = loop_boot_ms_now() < leases->patient_until_ms;

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        held += leases->shards[shard].held;
    }
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        size_t shard = (first + i) % SHARD_COUNT;
        const struct lease_row *row = &leases->table[shard];
        struct lease *lease = &leases->shards[shard];
        bool own = strcmp(row->identity, leases->identity) ==
                   0; /* the row is ours but not held: the answer to our TAKE was lost */

        lease->wanted = false;
        if (lease->held || lease->giving || held + chosen >= share) {
            continue;
        }
        if (row->has_owner && (!last_identity || strcmp(last_identity, row->identity) != 0)) {
            last_identity = row->identity;
            last_dead = lease_identity_is_dead(slice_of(row->identity), leases->identity);
        }
        lease->wanted = !row->has_owner || !row->has_expiry || (row->left_ms < 0 && !patient) || own || last_dead;
        lease->expired = own ? lease->expired : row->has_owner && !last_dead;
        lease->owner_died = own ? lease->owner_died : row->has_owner && last_dead;
        chosen += lease->wanted;
    }
    return chosen;
}

/* Puts each old owner once: its instance (to end its backends) or its identity (to take its rows before they
 * expire). */
static void put_old_owners(struct leases *leases, struct db_args *args, bool instances)
{
    const struct slice own = slice_of(leases->identity);
    struct slice found[SHARD_COUNT];
    size_t count = 0;

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        const struct lease_row *row = &leases->table[shard];
        struct slice identity = slice_of(row->identity);
        bool known = !leases->shards[shard].wanted || !row->has_owner || (instances && slice_equal(identity, own)) ||
                     (!instances && !slice_equal(identity, own) && !lease_identity_is_dead(identity, leases->identity));

        for (size_t i = 0; i < count && !known; i++) {
            known = slice_equal(found[i], identity);
        }
        if (!known) {
            found[count++] = identity;
        }
    }
    db_array_begin(args, DB_TEXT, count);
    for (size_t i = 0; i < count; i++) {
        struct slice instance = lease_identity_instance(found[i]);

        db_item_bytes(args, !instances ? found[i] : instance.ptr ? instance : SLICE(""));
    }
    db_array_end(args);
}

void leases_end_old_owners(struct leases *leases)
{
    struct db_args *args;

    lease_begin(leases);
    args = lease_query(leases, &sql_lease_end_backends, NULL);
    put_old_owners(leases, args, true);
    db_arg_null(args, DB_TEXT);
    lease_submit(leases, TALK_END, true);
}

static void on_locked(struct db_query *query, const struct db_rows *rows)
{
    struct leases *leases = query->context;

    for (size_t row = 0; row < db_row_count(rows); row++) {
        struct lease *lease = lease_of_row(leases, rows, row);

        if (lease && db_int(rows, row, 1)) {
            lease->answered = true;
        }
    }
}

void leases_lock(struct leases *leases)
{
    struct db_args *args;

    lease_begin(leases);
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        leases->shards[shard].asked = leases->shards[shard].wanted && !leases->shards[shard].locked;
    }
    args = lease_query(leases, &sql_lease_lock, on_locked);
    db_arg_int4(args, STORE_ADVISORY_SHARDS);
    lease_put_asked(leases, args);
    lease_submit(leases, TALK_LOCK, false); /* a lock is an effect, so its answer matters */
}

void leases_locked(struct leases *leases)
{
    size_t ignored = 0;

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        struct lease *lease = &leases->shards[shard];

        if (!lease->asked) {
            continue;
        }
        if (lease->answered) {
            lease->locked = true;
            lease->lock_tries = 0;
        } else if (++lease->lock_tries < LOCK_TRIES) {
            lease->wanted = false;
        } else {
            ignored++;
        }
    }
    if (ignored > 0) {
        log_warn("advisory_locks_ignored", LOG_I64("shards", ignored));
    }
}

static void lease_on_taken(struct db_query *query, const struct db_rows *rows)
{
    struct leases *leases = query->context;

    for (size_t row = 0; row < db_row_count(rows); row++) {
        struct lease *lease = lease_of_row(leases, rows, row);

        if (lease) {
            lease->answered = true;
            lease->answered_epoch = db_int(rows, row, 1);
            lease->answered_has_low = !db_is_null(rows, row, 2);
            lease->answered_low_ms = lease->answered_has_low ? db_timestamptz(rows, row, 2) : 0;
            lease->answered_turns = db_int(rows, row, 3);
        }
    }
}

bool leases_take(struct leases *leases)
{
    struct db_args *args;

    lease_begin(leases);
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        leases->shards[shard].asked = leases->shards[shard].wanted;
    }
    if (lease_asked_count(leases) == 0) {
        return false;
    }
    args = lease_query(leases, &sql_lease_take, lease_on_taken);
    lease_put_asked(leases, args);
    put_old_owners(leases, args, false);
    db_arg_text(args, slice_of(leases->options.engine_name));
    db_arg_text(args, slice_of(leases->identity));
    db_arg_int8(args, leases->options.ttl_ms);
    (void)lease_query(leases, &sql_lease_table, lease_on_table);
    lease_submit(leases, TALK_TAKE, false);
    return true;
}

void leases_taken(struct leases *leases)
{
    size_t count = 0;

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        struct lease *lease = &leases->shards[shard];

        if (!lease->asked || !lease->answered || lease->held) {
            continue;
        }
        lease->held = true;
        lease->epoch = lease->answered_epoch;
        lease->deadline_ms = leases->sent_ms + leases->options.ttl_ms - leases->options.margin_ms;
        lease->has_low = lease->answered_has_low;
        lease->low_ms = lease->answered_low_ms;
        leases->store->low_ms[shard] = lease->low_ms;
        leases->store->history.turns[shard] = lease->answered_turns;
        leases->store->loads_due[shard]++;
        leases->store->loaded[shard] = false;
        count++;
    }
    if (count > 0) {
        log_info("leases_taken", LOG_I64("shards", count));
    }
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        if (leases->shards[shard].asked && leases->shards[shard].answered && leases->shards[shard].held &&
            !leases->releasing) {
            leases->options.on_gained(shard, leases->shards[shard].epoch, leases->options.context);
        }
    }
}
