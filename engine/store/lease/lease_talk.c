/* The conversation with the database about leases, one transaction after another: see the picture in lease.c. */
#include <string.h>

#include "base/log.h"
#include "store/lease/lease_state.h"

enum { AGAIN_MS = 100, FOLLOW_WITHIN_MS = 300 };

static void on_lease_done(struct db_transaction *transaction);

/* --- one conversation --- */

struct db_args *lease_query(struct leases *leases, const struct db_statement *statement,
                            void (*on_rows)(struct db_query *, const struct db_rows *))
{
    struct db_query *query = &leases->queries[leases->query_count++];

    CHECK(leases->query_count <= LEASE_QUERIES_MAX);
    *query = (struct db_query){
        .statement = statement, .args = db_args_new(&leases->arena), .on_rows = on_rows, .context = leases};
    return query->args;
}

void lease_begin(struct leases *leases)
{
    arena_reset(&leases->arena);
    leases->query_count = 0;
    leases->proof.count = 0;
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        leases->shards[shard].asked = leases->shards[shard].answered = false;
    }
}

void lease_submit(struct leases *leases, enum lease_talk talk, bool read_only)
{
    leases->talk = talk;
    leases->sent_ms = loop_boot_ms_now(); /* the time before it leaves, so that the deadline can only be early */
    memset(&leases->transaction, 0, sizeof(leases->transaction));
    leases->transaction.queries = leases->queries;
    leases->transaction.count = leases->query_count;
    leases->transaction.read_only = read_only;
    leases->transaction.done = on_lease_done;
    db_submit(leases->db, &leases->transaction);
}

/* Puts the numbers of the shards that were `asked`. */
void lease_put_asked(struct leases *leases, struct db_args *args)
{
    size_t count = 0;

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        count += leases->shards[shard].asked;
    }
    db_array_begin(args, DB_INT2, count);
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        if (leases->shards[shard].asked) {
            db_item_int(args, shard);
        }
    }
    db_array_end(args);
}

size_t lease_asked_count(const struct leases *leases)
{
    size_t count = 0;

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        count += leases->shards[shard].asked;
    }
    return count;
}

void lease_put_epochs(struct leases *leases, struct db_args *args)
{
    db_array_begin(args, DB_INT8, lease_asked_count(leases));
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        if (leases->shards[shard].asked) {
            leases->shards[shard].asked_epoch = leases->shards[shard].epoch;
            db_item_int(args, leases->shards[shard].epoch);
        }
    }
    db_array_end(args);
}

struct lease *lease_of_row(struct leases *leases, const struct db_rows *rows, size_t row)
{
    int64_t shard = db_int(rows, row, 0);

    return shard >= 0 && shard < SHARD_COUNT ? &leases->shards[shard] : NULL;
}

/*
 * Follows the database's clock. Engines decide one after another about the same saga, and the age of a sending must not
 * depend on whose clock is right. The database read its clock before the answer came, so our time is late by the
 * answer's way at most, and never early. An answer that took long is left out.
 */
void lease_follow(struct leases *leases, int64_t database_ms)
{
    int64_t now_ms = loop_boot_ms_now();

    if (!leases->follows || now_ms - leases->sent_ms <= FOLLOW_WITHIN_MS) {
        leases->follows = true;
        loop_follow(leases->store->loop, database_ms, now_ms);
    }
}

void lease_on_table(struct db_query *query, const struct db_rows *rows)
{
    struct leases *leases = query->context;
    int64_t database_ms = 0;

    for (size_t i = 0; i < db_row_count(rows); i++) {
        int64_t shard = db_int(rows, i, 0);
        struct lease_row *row;

        if (shard < 0 || shard >= SHARD_COUNT) {
            continue;
        }
        row = &leases->table[shard];
        row->epoch = db_int(rows, i, 1);
        row->has_owner = !db_is_null(rows, i, 2);
        slice_to_text(row->owner, sizeof(row->owner), db_bytes(rows, i, 2));
        slice_to_text(row->identity, sizeof(row->identity), db_bytes(rows, i, 3));
        row->has_expiry = !db_is_null(rows, i, 4);
        row->expires_ms = row->has_expiry ? db_timestamptz(rows, i, 4) : 0;
        row->left_ms = db_int(rows, i, 6);
        row->turns = db_int(rows, i, 7);
        database_ms = row->has_expiry ? row->expires_ms - row->left_ms : database_ms;
    }
    if (database_ms) {
        lease_follow(leases, database_ms);
    }
}

/* --- the round --- */

static bool can_talk(const struct leases *leases)
{
    return leases->talk == TALK_IDLE && !leases->releasing && !leases->closing && leases->db &&
           db_state(leases->db) == DB_READY && !leases->store->refused && !leases->store->history.is_other &&
           !leases->store->history.is_doubted && (!leases->relock || store_is_checked(leases->store));
}

static void tick(struct leases *leases);

static void on_tick(struct timer *timer)
{
    tick(container_of(timer, struct leases, tick));
}

static void tick_in(struct leases *leases, int64_t ms)
{
    if (leases->tick_due) {
        leases->tick_due = false;
        ms = 0;
    }
    timer_start(leases->store->loop, &leases->tick, ms, on_tick);
}

/* Returns when to look again for a shard that was not taken: at its expiry, or at the next renewal. */
static int64_t next_tick_ms(const struct leases *leases)
{
    int64_t ms = fleet_next_ms(leases, leases->options.ttl_ms / 3);
    size_t held = 0;

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        held += leases->shards[shard].held;
    }
    for (uint32_t shard = 0; shard < SHARD_COUNT && held < fleet_share(leases); shard++) {
        const struct lease_row *row = &leases->table[shard];

        if (!leases->shards[shard].held && row->left_ms + AGAIN_MS < ms) {
            ms = row->left_ms > 0 ? row->left_ms + AGAIN_MS : AGAIN_MS;
        }
    }
    return ms;
}

static void tick(struct leases *leases)
{
    if (!can_talk(leases)) {
        leases->tick_due = leases->talk != TALK_IDLE; /* on_state() and leases_store_ready() also start a tick */
        return;
    }
    if (!leases->store->was_ready) {
        return; /* nobody has checked yet what is behind the connections; leases_store_ready() goes on */
    }
    leases_renew(leases);
}

void leases_tick(struct leases *leases)
{
    leases->look_due = true;
    tick(leases);
}

/* Does the table that was read have what we have seen before? Our own write was confirmed behind the read, so the read
 * counts. */
static bool knows_the_table(struct leases *leases, enum lease_talk over)
{
    struct shard_mark table[SHARD_COUNT];

    if (over != TALK_TAKE && !(over == TALK_RENEW && leases->looks)) {
        return true;
    }
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        table[shard] = (struct shard_mark){.epoch = leases->table[shard].epoch, .turns = leases->table[shard].turns};
    }
    return history_saw(leases->store, table);
}

/* Was it one transaction, on the backend that this connection has had before? */
static bool is_proved(struct leases *leases, enum lease_talk over)
{
    const struct transaction_proof *proof = &leases->proof;
    struct err err;

    if (over != TALK_RENEW) {
        return true;
    }
    if (!store_is_one_transaction(proof, &err)) {
        store_refuse(leases->store, &err);
        return false;
    }
    if (leases->backend_pid != 0 && leases->backend_pid != proof->seen[0].backend_pid) {
        store_say_pooled(&err);
        store_refuse(leases->store, &err);
        return false;
    }
    leases->backend_pid = proof->seen[0].backend_pid;
    store_prove_next(leases->store);
    return true;
}

/* Takes the next step of the conversation. Returns false when it has ended. */
static bool lease_advance(struct leases *leases, enum lease_talk over)
{
    if (!is_proved(leases, over) || !knows_the_table(leases, over)) {
        return false; /* no part of the answer is believed, and our shards are not lost */
    }
    switch (over) {
    case TALK_RENEW:
        leases_renewed(leases);
        if (!leases->looks) {
            return false; /* nothing was read from which more could follow */
        }
        break;
    case TALK_END:
        leases_lock(leases);
        return true;
    case TALK_LOCK:
        leases_locked(leases);
        return leases_take(leases);
    case TALK_TAKE:
        leases_taken(leases);
        return false;
    case TALK_IDLE:
    case TALK_RELEASE:
        UNREACHABLE();
    }
    if (leases->options.on_surplus && !leases->releasing && !leases->closing) {
        leases->options.on_surplus(fleet_surplus(leases), leases->options.context);
    }
    if (leases->releasing || leases->closing || !store_is_ready(leases->store) || leases_choose(leases) == 0) {
        return false;
    }
    leases_end_old_owners(leases);
    return true;
}

static void on_lease_done(struct db_transaction *transaction)
{
    struct leases *leases = container_of(transaction, struct leases, transaction);
    enum lease_talk over = leases->talk;
    bool good = transaction->outcome == DB_COMMITTED ||
                over == TALK_END; /* we may not end these backends, so the locks decide */
    int64_t pause_ms = AGAIN_MS;

    leases->talk = TALK_IDLE;
    if (leases->closing || leases->released) {
        return;
    }
    if (over == TALK_RELEASE) {
        leases_release_end(leases); /* if this failed, the leases expire by themselves */
        return;
    }
    if (good && (!leases->releasing || over == TALK_TAKE)) {
        leases->advancing = true; /* on_gained and on_lost may call leases_release() */
        if (lease_advance(leases, over)) {
            leases->advancing = false;
            return;
        }
        leases->advancing = false;
        pause_ms = next_tick_ms(leases);
    } else {
        leases->look_due = true;
    }
    if (!good && transaction->sqlstate[0] && strcmp(transaction->sqlstate, "55P03") != 0) {
        log_warn("lease_statement_failed", LOG_ERR(&transaction->err));
        leases->reason = transaction->err;
    }
    if (leases->closing) {
        return;
    }
    if (leases->releasing) {
        leases_release_send(leases);
    } else {
        tick_in(leases, pause_ms); /* without a connection on_state() starts the tick */
    }
}
