/* Renews the leases of our shards, and moves `low` along, the time from which recovery has to read. */
#include "base/log.h"
#include "store/lease/lease_state.h"

enum {
    LOW_QUIET_MS = 60000, /* `low` stays this far behind the clock when nothing is unfinished */
    LOW_MARGIN_MS = 1000,
    LOOK_MS = 30000,  /* an engine that is alone looks this seldom for others, because newcomers say so */
    PATIENT_MS = 2500 /* after this time, engines with new connections are back */
};

/* Returns the time before which no unfinished saga of the shard was made. We know it, because only we start sagas in
 * the shard. */
static int64_t low_now(struct leases *leases, uint32_t shard, int64_t starting_ms)
{
    int64_t low_ms = loop_wall_ms(leases->store->loop) - LOW_QUIET_MS;
    int64_t oldest_ms =
        leases->options.oldest_unfinished_ms ? leases->options.oldest_unfinished_ms(shard, leases->options.context) : 0;

    low_ms = oldest_ms < low_ms ? oldest_ms : low_ms;
    low_ms = starting_ms < low_ms ? starting_ms : low_ms;
    /* 0 leaves `low` as it is, because the owner does not know, or has not loaded the unfinished sagas. */
    return oldest_ms <= 0 || !leases->store->loaded[shard] ? 0 : low_ms - LOW_MARGIN_MS;
}

static void put_lows(struct leases *leases, struct db_args *args)
{
    int64_t starting_ms[SHARD_COUNT];

    appends_oldest_starts(leases->store, starting_ms);
    db_array_begin(args, DB_TIMESTAMPTZ, lease_asked_count(leases));
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        int64_t low_ms;

        if (!leases->shards[shard].asked) {
            continue;
        }
        low_ms = low_now(leases, shard, starting_ms[shard]);
        if (low_ms > 0) {
            db_item_timestamptz(args, low_ms);
            if (low_ms > leases->store->low_ms[shard]) {
                leases->store->low_ms[shard] = low_ms;
            }
        } else {
            db_item_null(args);
        }
    }
    db_array_end(args);
    db_array_begin(args, DB_TIMESTAMPTZ, lease_asked_count(leases));
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        if (leases->shards[shard].asked) {
            if (leases->shards[shard].has_low) {
                db_item_timestamptz(args, leases->shards[shard].low_ms);
            } else {
                db_item_null(args);
            }
        }
    }
    db_array_end(args);
}

static void put_turns(struct leases *leases, struct db_args *args)
{
    db_array_begin(args, DB_INT8, lease_asked_count(leases));
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        if (leases->shards[shard].asked) {
            db_item_int(args, leases->store->history.turns[shard]);
        }
    }
    db_array_end(args);
}

/* Notes the expiry of our row as we have just written it. The rest of the row has not changed. */
static void note_expiry(struct leases *leases, uint32_t shard, int64_t expires_ms)
{
    leases->table[shard].has_expiry = true;
    leases->table[shard].expires_ms = expires_ms;
    leases->table[shard].left_ms = leases->options.ttl_ms;
}

static void on_renewed(struct db_query *query, const struct db_rows *rows)
{
    struct leases *leases = query->context;
    int64_t database_ms = 0;

    for (size_t row = 0; row < db_row_count(rows); row++) {
        struct lease *lease = lease_of_row(leases, rows, row);

        if (lease) {
            lease->answered = true;
            lease->answered_has_low = !db_is_null(rows, row, 1);
            lease->answered_low_ms = lease->answered_has_low ? db_timestamptz(rows, row, 1) : 0;
            note_expiry(leases, (uint32_t)(lease - leases->shards), db_timestamptz(rows, row, 2));
            database_ms = db_timestamptz(rows, row, 2) - leases->options.ttl_ms;
        }
    }
    if (database_ms && !leases->looks) { /* otherwise the table has a later one */
        lease_follow(leases, database_ms);
    }
}

/* On a new connection, the old one may still hang on the server with our locks. */
static void add_relock(struct leases *leases)
{
    struct db_args *args;
    const struct slice own = slice_of(leases->store->instance);

    args = lease_query(leases, &sql_lease_end_backends, NULL);
    db_array_begin(args, DB_TEXT, 1);
    db_item_bytes(args, own);
    db_array_end(args);
    db_arg_text(args, SLICE("lease"));
    args = lease_query(leases, &sql_lease_lock,
                       NULL); /* not granted when another engine waits for us to be late; the row decides */
    db_arg_int4(args, STORE_ADVISORY_SHARDS);
    lease_put_asked(leases, args);
}

/* Unlocks shards that we lost or did not get. */
static void add_unlock(struct leases *leases)
{
    struct db_args *args;
    size_t count = 0;

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        count += leases->shards[shard].locked && !leases->shards[shard].held;
    }
    if (count == 0) {
        return;
    }
    args = lease_query(leases, &sql_lease_unlock, NULL);
    db_arg_int4(args, STORE_ADVISORY_SHARDS);
    db_array_begin(args, DB_INT2, count);
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        if (leases->shards[shard].locked && !leases->shards[shard].held) {
            leases->shards[shard].locked =
                false; /* if this fails, the lock is ignored sooner or later, because it is only a hint */
            db_item_int(args, shard);
        }
    }
    db_array_end(args);
}

/* Releases the shards given away since: the table no longer has them as ours, and others are told. */
static void add_release(struct leases *leases)
{
    struct db_args *args;

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        leases->shards[shard].asked = leases->shards[shard].given = leases->shards[shard].giving;
    }
    if (lease_asked_count(leases) > 0) {
        args = lease_query(leases, &sql_lease_release, NULL);
        lease_put_asked(leases, args);
        lease_put_epochs(leases, args);
        db_arg_text(args, slice_of(leases->identity));
    }
}

/*
 * Must the engine look at the tables? An engine that is alone and has every shard learns from its own renewals whether
 * that is still so, because a taker raises the epoch. Engines that come or leave say so. After the loss of our
 * connection this is no longer believed.
 */
static bool has_to_look(const struct leases *leases)
{
    size_t held = 0;

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        held += leases->shards[shard].held;
    }
    return leases->look_due || held < SHARD_COUNT || !fleet_is_alone(leases) ||
           loop_boot_ms_now() - leases->looked_ms >= LOOK_MS;
}

/* Was the engine away? Usually leases are renewed twice as often. Others that look meanwhile may believe that we are
 * dead. */
static bool was_away(const struct leases *leases, int64_t now_ms)
{
    return leases->renewed_ms && now_ms - leases->renewed_ms > leases->options.ttl_ms * 2 / 3;
}

static void on_transaction(struct db_query *query, const struct db_rows *rows)
{
    store_on_transaction(&((struct leases *)query->context)->proof, rows);
}

static void on_holds(struct db_query *query, const struct db_rows *rows)
{
    struct leases *leases = query->context;

    if (leases->options.on_holds && db_row_count(rows) == 1) {
        leases->options.on_holds(db_int(rows, 0, 0), leases->options.context);
    }
}

void leases_renew(struct leases *leases)
{
    struct db_args *args;

    leases->told = leases->told && !was_away(leases, loop_boot_ms_now()); /* the others must hear that we are back */
    leases->looks = has_to_look(leases);
    leases->look_due = false;
    lease_begin(leases);
    (void)lease_query(leases, &sql_check_transaction, on_transaction);
    add_unlock(leases);
    /* The row of the engine comes before the leases, so that it never outlives them, and before the shards that are
     * given away: a migration locks the two tables in this order (migrate.c). */
    fleet_put(leases);
    add_release(leases);
    (void)lease_query(leases, &sql_hold_renewed, on_holds); /* takes no parameters */
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        leases->shards[shard].asked = leases->shards[shard].held;
    }
    if (lease_asked_count(leases) > 0) {
        if (leases->relock) {
            add_relock(leases);
        }
        args = lease_query(leases, &sql_lease_renew, on_renewed);
        lease_put_asked(leases, args);
        lease_put_epochs(leases, args);
        put_lows(leases, args);
        db_arg_int8(args, leases->options.ttl_ms);
        db_arg_text(args, slice_of(leases->identity));
        put_turns(leases, args);
    }
    if (leases->looks) {
        fleet_read(leases);
        (void)lease_query(leases, &sql_lease_table, lease_on_table); /* takes no parameters */
    }
    (void)lease_query(leases, &sql_check_transaction, on_transaction);
    lease_submit(leases, TALK_RENEW, false);
}

/*
 * Is patient with others. We could not renew for longer than usual, and perhaps neither could the others, whose leases
 * are over in the table. They are about to come back, and a takeover would lose their calls under way.
 */
static void be_patient(struct leases *leases)
{
    int64_t until_ms = loop_boot_ms_now() + PATIENT_MS;

    if (was_away(leases, leases->sent_ms) && leases->patient_until_ms < until_ms) {
        leases->patient_until_ms = until_ms;
    }
    leases->renewed_ms = leases->sent_ms;
    leases->reason.code = ERR_OK;
}

void leases_renewed(struct leases *leases)
{
    size_t lost = 0;

    leases->relock = false;
    leases->looked_ms = leases->looks ? leases->sent_ms : leases->looked_ms;
    be_patient(leases);
    fleet_written(leases);
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        struct lease *lease = &leases->shards[shard];

        if (lease->given) {
            lease->given = lease->giving = false;
        }
        if (!lease->asked || !lease->held || lease->epoch != lease->asked_epoch) {
            continue;
        }
        if (lease->answered) {
            lease->deadline_ms = leases->sent_ms + leases->options.ttl_ms - leases->options.margin_ms;
            lease->has_low = lease->answered_has_low;
            lease->low_ms = lease->answered_low_ms;
        } else {
            lost++;
            leases_lose(leases, shard);
        }
    }
    if (lost > 0 && !leases->looks) {
        leases->look_due = leases->tick_due = true; /* the next look finds the owner */
    }
    if (lost > 0) {
        log_warn("leases_lost", LOG_I64("shards", lost), LOG_TEXT("why", "another engine has taken them over"));
    }
}
