/*
 * The leases of shards, on a connection of their own.
 *
 * Truth is the epoch in the lease table, and every append asks it; what is in memory here only says when to stop sending. An advisory
 * lock per shard keeps engines from stepping on each other, no more. One conversation with the database at a time:
 *
 *   RENEW   our rows, at our epochs; and the whole table is read. A row that is not ours any more: the shard is lost.
 *   LOOK    the same without renewing: which shards are free, expired, or held by a process that is surely dead?
 *   END     the backends of their old owners, so that nothing of them hangs in a transaction
 *   LOCK    the advisory locks
 *   TAKE    the rows FOR UPDATE, which waits for appends under way; epoch + 1. From here on the old owner is fenced.
 *   RELEASE rows and locks, and tell others
 *
 * The deadline of a lease is counted from before the statement was sent, on a clock that counts suspend, and ends a margin
 * early; past it nothing is sent to the world. But the shard is not dropped then: while nobody has raised the epoch it is still ours, and what came
 * back from calls can still be appended when the database is there again. It is dropped when the table says that it is lost.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/instant.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metric.h"
#include "store/lease_identity.h"
#include "store/store_state.h"

enum {
    TTL_MS_DEFAULT = 10000,
    LOCK_TRIES = 5,           /* then an advisory lock that nobody lets go is ignored: it is a hint */
    AGAIN_MS = 100,
    RELEASE_PATIENCE_MS = 2000,
    LOW_QUIET_MS = 60000,     /* `low` stays so far behind the clock where nothing is unfinished */
    LOW_MARGIN_MS = 1000,
    LEASE_QUERIES_MAX = 5
};

enum lease_talk { TALK_IDLE, TALK_RENEW, TALK_LOOK, TALK_END, TALK_LOCK, TALK_TAKE, TALK_RELEASE };

struct lease {
    bool held;
    int64_t epoch;
    int64_t deadline_ms;      /* boot-time clock: sends stop */
    bool has_low;
    int64_t low_ms;           /* as last seen in the table */
    /* of the conversation under way */
    bool asked, answered, wanted, locked;
    int64_t answered_epoch, asked_epoch;
    bool answered_has_low;
    int64_t answered_low_ms;
    int lock_tries;
};

struct lease_row { /* the table as last read */
    int64_t epoch, expires_ms, left_ms; /* left: until expiry, by the database's clock; below 0: over */
    bool has_owner, has_expiry;
    char owner[96], identity[LEASE_IDENTITY_BYTES];
};

struct leases {
    struct store *store;
    struct lease_options options;
    struct db *db;
    struct arena arena, names;
    char identity[LEASE_IDENTITY_BYTES];
    char connection_name[64];
    struct lease shards[SHARD_COUNT];
    struct lease_row table[SHARD_COUNT];
    enum lease_talk talk;
    struct db_query queries[LEASE_QUERIES_MAX];
    size_t query_count;
    struct db_transaction transaction;
    int64_t sent_ms;
    bool advancing;           /* inside lease_advance() */
    bool relock;              /* the connection is new: its locks have to be taken again */
    bool tick_due;
    struct timer tick;
    struct deferred report;
    uint64_t fenced;          /* shards reported by appends, not yet told as lost */
    bool releasing, released, closing;
    struct timer patience;
    void (*on_released)(void *context);
    void *released_context;
};

static void leases_tick(struct leases *leases);
static void release_send(struct leases *leases);
static void release_end(struct leases *leases);

/* --- what others ask --- */

bool lease_is_held(const struct leases *leases, uint32_t shard, int64_t *epoch)
{
    CHECK(shard < SHARD_COUNT);
    if (leases->shards[shard].held && epoch) {
        *epoch = leases->shards[shard].epoch;
    }
    return leases->shards[shard].held;
}

bool lease_allows_send(const struct leases *leases, uint32_t shard)
{
    CHECK(shard < SHARD_COUNT);
    return leases->shards[shard].held && loop_boot_ms_now() < leases->shards[shard].deadline_ms;
}

static void write_group(const struct leases *leases, struct json_writer *w, const char *identity)
{
    int64_t epoch_min = INT64_MAX, epoch_max = 0, expires_ms = INT64_MAX;
    const char *owner = "";
    char text[INSTANT_TEXT_BYTES];

    json_object_begin(w, NULL);
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        const struct lease_row *row = &leases->table[shard];

        if (row->has_owner && strcmp(row->identity, identity) == 0) {
            owner = row->owner;
            epoch_min = row->epoch < epoch_min ? row->epoch : epoch_min;
            epoch_max = row->epoch > epoch_max ? row->epoch : epoch_max;
            expires_ms = row->expires_ms < expires_ms ? row->expires_ms : expires_ms;
        }
    }
    json_write_text(w, "engine", owner);
    json_array_begin(w, "shards");
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        if (leases->table[shard].has_owner && strcmp(leases->table[shard].identity, identity) == 0) {
            json_write_i64(w, NULL, shard);
        }
    }
    json_array_end(w);
    json_write_i64(w, "epoch_min", epoch_min);
    json_write_i64(w, "epoch_max", epoch_max);
    instant_text(expires_ms, text);
    json_write_text(w, "expires_at", text);
    json_object_end(w);
}

void leases_write_json(struct leases *leases, struct buffer *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    json_array_begin(&w, NULL);
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        bool first = leases->table[shard].has_owner;

        for (uint32_t before = 0; before < shard && first; before++) {
            first = !leases->table[before].has_owner || strcmp(leases->table[before].identity, leases->table[shard].identity) != 0;
        }
        if (first) {
            write_group(leases, &w, leases->table[shard].identity);
        }
    }
    json_array_end(&w);
}

/* --- losing --- */

static void lose(struct leases *leases, uint32_t shard)
{
    struct lease *lease = &leases->shards[shard];

    if (!lease->held) {
        return;
    }
    lease->held = false;
    metric_add(METRIC_LEASES_LOST, 1);
    leases->options.on_lost(shard, lease->epoch, leases->options.context);
}

static void on_report(struct deferred *deferred)
{
    struct leases *leases = container_of(deferred, struct leases, report);
    uint64_t fenced = leases->fenced;

    leases->fenced = 0;
    log_warn("leases_lost", LOG_I64("shards", __builtin_popcountll(fenced)), LOG_TEXT("why", "an append was fenced"));
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        if (fenced >> shard & 1) {
            lose(leases, shard);
        }
    }
    leases_tick(leases);
}

void leases_report_fenced(struct leases *leases, uint32_t shard, int64_t epoch)
{
    CHECK(shard < SHARD_COUNT);
    if (leases->shards[shard].held && leases->shards[shard].epoch == epoch) {
        leases->fenced |= UINT64_C(1) << shard;
        loop_defer(leases->store->loop, &leases->report, on_report);
    }
}

/* --- one conversation --- */

static struct db_args *lease_query(struct leases *leases, const struct db_statement *statement,
                                   void (*on_rows)(struct db_query *, const struct db_rows *))
{
    struct db_query *query = &leases->queries[leases->query_count++];

    CHECK(leases->query_count <= LEASE_QUERIES_MAX);
    *query = (struct db_query){
        .statement = statement, .args = db_args_new(&leases->arena), .on_rows = on_rows, .context = leases};
    return query->args;
}

static void lease_begin(struct leases *leases)
{
    arena_reset(&leases->arena);
    leases->query_count = 0;
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        leases->shards[shard].asked = leases->shards[shard].answered = false;
    }
}

static void on_lease_done(struct db_transaction *transaction);

static void lease_submit(struct leases *leases, enum lease_talk talk, bool read_only)
{
    leases->talk = talk;
    leases->sent_ms = loop_boot_ms_now(); /* before it leaves: the deadline can only be early */
    memset(&leases->transaction, 0, sizeof(leases->transaction));
    leases->transaction.queries = leases->queries;
    leases->transaction.count = leases->query_count;
    leases->transaction.read_only = read_only;
    leases->transaction.done = on_lease_done;
    db_submit(leases->db, &leases->transaction);
}

/* The numbers of the shards that were `asked`. */
static void put_asked(struct leases *leases, struct db_args *args)
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

static size_t asked_count(const struct leases *leases)
{
    size_t count = 0;

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        count += leases->shards[shard].asked;
    }
    return count;
}

static void put_epochs(struct leases *leases, struct db_args *args)
{
    db_array_begin(args, DB_INT8, asked_count(leases));
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        if (leases->shards[shard].asked) {
            leases->shards[shard].asked_epoch = leases->shards[shard].epoch;
            db_item_int(args, leases->shards[shard].epoch);
        }
    }
    db_array_end(args);
}

static struct lease *lease_of_row(struct leases *leases, const struct db_rows *rows, size_t row)
{
    int64_t shard = db_int(rows, row, 0);

    return shard >= 0 && shard < SHARD_COUNT ? &leases->shards[shard] : NULL;
}

static void copy_text(char *out, size_t out_bytes, struct slice text)
{
    size_t len = text.len < out_bytes ? text.len : out_bytes - 1;

    if (text.ptr) {
        memcpy(out, text.ptr, len);
    }
    out[text.ptr ? len : 0] = '\0';
}

static void on_table(struct db_query *query, const struct db_rows *rows)
{
    struct leases *leases = query->context;

    for (size_t i = 0; i < db_row_count(rows); i++) {
        int64_t shard = db_int(rows, i, 0);
        struct lease_row *row;

        if (shard < 0 || shard >= SHARD_COUNT) {
            continue;
        }
        row = &leases->table[shard];
        row->epoch = db_int(rows, i, 1);
        row->has_owner = !db_is_null(rows, i, 2);
        copy_text(row->owner, sizeof(row->owner), db_bytes(rows, i, 2));
        copy_text(row->identity, sizeof(row->identity), db_bytes(rows, i, 3));
        row->has_expiry = !db_is_null(rows, i, 4);
        row->expires_ms = row->has_expiry ? db_timestamptz(rows, i, 4) : 0;
        row->left_ms = db_int(rows, i, 6);
    }
}

/* --- renew --- */

/* The instant before which no unfinished saga of the shard was made; ours to say, because only we start sagas in it. */
static int64_t low_now(struct leases *leases, uint32_t shard)
{
    int64_t low_ms = loop_wall_ms(leases->store->loop) - LOW_QUIET_MS;
    int64_t oldest_ms = leases->options.oldest_unfinished_ms ? leases->options.oldest_unfinished_ms(shard, leases->options.context) : 0;
    int64_t starting_ms = appends_oldest_start_ms(leases->store, shard);

    low_ms = oldest_ms < low_ms ? oldest_ms : low_ms;
    low_ms = starting_ms < low_ms ? starting_ms : low_ms;
    /* 0: it stays as it is, because the owner does not know, or has not loaded what is unfinished. */
    return oldest_ms <= 0 || !leases->store->loaded[shard] ? 0 : low_ms - LOW_MARGIN_MS;
}

static void put_lows(struct leases *leases, struct db_args *args)
{
    db_array_begin(args, DB_TIMESTAMPTZ, asked_count(leases));
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        int64_t low_ms;

        if (!leases->shards[shard].asked) {
            continue;
        }
        low_ms = low_now(leases, shard);
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
    db_array_begin(args, DB_TIMESTAMPTZ, asked_count(leases));
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

static void on_renewed(struct db_query *query, const struct db_rows *rows)
{
    struct leases *leases = query->context;

    for (size_t row = 0; row < db_row_count(rows); row++) {
        struct lease *lease = lease_of_row(leases, rows, row);

        if (lease) {
            lease->answered = true;
            lease->answered_has_low = !db_is_null(rows, row, 1);
            lease->answered_low_ms = lease->answered_has_low ? db_timestamptz(rows, row, 1) : 0;
        }
    }
}

/* On a new connection our old one may still hang on the server with our locks. */
static void add_relock(struct leases *leases)
{
    struct db_args *args;
    const struct slice own = slice_of(leases->store->instance);

    args = lease_query(leases, &sql_lease_end_backends, NULL);
    db_array_begin(args, DB_TEXT, 1);
    db_item_bytes(args, own);
    db_array_end(args);
    db_arg_text(args, SLICE("lease"));
    args = lease_query(leases, &sql_lease_lock, NULL); /* not given: somebody waits for us to be late; the row decides */
    db_arg_int4(args, STORE_ADVISORY_SHARDS);
    put_asked(leases, args);
}

/* Locks of shards that we lost or did not get. */
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
            leases->shards[shard].locked = false; /* if this fails the lock is ignored sooner or later: it is a hint */
            db_item_int(args, shard);
        }
    }
    db_array_end(args);
}

static void renew(struct leases *leases)
{
    struct db_args *args;

    lease_begin(leases);
    add_unlock(leases);
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        leases->shards[shard].asked = leases->shards[shard].held;
    }
    if (asked_count(leases) > 0) {
        if (leases->relock) {
            add_relock(leases);
        }
        args = lease_query(leases, &sql_lease_renew, on_renewed);
        put_asked(leases, args);
        put_epochs(leases, args);
        put_lows(leases, args);
        db_arg_int8(args, leases->options.ttl_ms);
        db_arg_text(args, slice_of(leases->identity));
    }
    (void)lease_query(leases, &sql_lease_table, on_table); /* it takes no parameters */
    lease_submit(leases, asked_count(leases) > 0 ? TALK_RENEW : TALK_LOOK, asked_count(leases) == 0);
}

static void renewed(struct leases *leases)
{
    size_t lost = 0;

    leases->relock = false;
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        struct lease *lease = &leases->shards[shard];

        if (!lease->asked || !lease->held || lease->epoch != lease->asked_epoch) {
            continue;
        }
        if (lease->answered) {
            lease->deadline_ms = leases->sent_ms + leases->options.ttl_ms - leases->options.margin_ms;
            lease->has_low = lease->answered_has_low;
            lease->low_ms = lease->answered_low_ms;
        } else {
            lost++;
            lose(leases, shard);
        }
    }
    if (lost > 0) {
        log_warn("leases_lost", LOG_I64("shards", lost), LOG_TEXT("why", "another engine has taken them over"));
    }
}

/* --- take over --- */

/* How many shards this engine should own. All that are free, until engines share fairly. */
static size_t wanted_count(const struct leases *leases)
{
    (void)leases;
    return SHARD_COUNT;
}

/* Marks the shards that may be taken now; how many. */
static size_t choose(struct leases *leases)
{
    size_t held = 0, chosen = 0;
    const char *last_identity = NULL;
    bool last_dead = false;

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        held += leases->shards[shard].held;
    }
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        const struct lease_row *row = &leases->table[shard];
        struct lease *lease = &leases->shards[shard];
        bool own = strcmp(row->identity, leases->identity) == 0; /* and not held: the answer to our TAKE was lost */

        lease->wanted = false;
        if (lease->held || held + chosen >= wanted_count(leases)) {
            continue;
        }
        if (row->has_owner && (!last_identity || strcmp(last_identity, row->identity) != 0)) {
            last_identity = row->identity;
            last_dead = lease_identity_is_dead(slice_of(row->identity), leases->identity);
        }
        lease->wanted = !row->has_owner || !row->has_expiry || row->left_ms < 0 || own || last_dead;
        chosen += lease->wanted;
    }
    return chosen;
}

/* Each old owner once: its instance (end their backends) or its identity (take its rows, though they have not expired). */
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

static void end_old_owners(struct leases *leases)
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

static void lock(struct leases *leases)
{
    struct db_args *args;

    lease_begin(leases);
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        leases->shards[shard].asked = leases->shards[shard].wanted && !leases->shards[shard].locked;
    }
    args = lease_query(leases, &sql_lease_lock, on_locked);
    db_arg_int4(args, STORE_ADVISORY_SHARDS);
    put_asked(leases, args);
    lease_submit(leases, TALK_LOCK, false); /* a lock is an effect: its answer matters */
}

static void locked(struct leases *leases)
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

static void on_taken(struct db_query *query, const struct db_rows *rows)
{
    struct leases *leases = query->context;

    for (size_t row = 0; row < db_row_count(rows); row++) {
        struct lease *lease = lease_of_row(leases, rows, row);

        if (lease) {
            lease->answered = true;
            lease->answered_epoch = db_int(rows, row, 1);
            lease->answered_has_low = !db_is_null(rows, row, 2);
            lease->answered_low_ms = lease->answered_has_low ? db_timestamptz(rows, row, 2) : 0;
        }
    }
}

static bool take(struct leases *leases)
{
    struct db_args *args;

    lease_begin(leases);
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        leases->shards[shard].asked = leases->shards[shard].wanted;
    }
    if (asked_count(leases) == 0) {
        return false;
    }
    args = lease_query(leases, &sql_lease_take, on_taken);
    put_asked(leases, args);
    put_old_owners(leases, args, false);
    db_arg_text(args, slice_of(leases->options.engine_name));
    db_arg_text(args, slice_of(leases->identity));
    db_arg_int8(args, leases->options.ttl_ms);
    (void)lease_query(leases, &sql_lease_table, on_table);
    lease_submit(leases, TALK_TAKE, false);
    return true;
}

static void taken(struct leases *leases)
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
        leases->store->loads_due[shard]++;
        leases->store->loaded[shard] = false;
        count++;
    }
    if (count > 0) {
        log_info("leases_taken", LOG_I64("shards", count));
    }
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        if (leases->shards[shard].asked && leases->shards[shard].answered && leases->shards[shard].held && !leases->releasing) {
            leases->options.on_gained(shard, leases->shards[shard].epoch, leases->options.context);
        }
    }
}

/* --- the round --- */

static bool can_talk(const struct leases *leases)
{
    return leases->talk == TALK_IDLE && !leases->releasing && !leases->closing && leases->db &&
           db_state(leases->db) == DB_READY && !leases->store->refused;
}

static void on_tick(struct timer *timer)
{
    leases_tick(container_of(timer, struct leases, tick));
}

static void tick_in(struct leases *leases, int64_t ms)
{
    if (leases->tick_due) {
        leases->tick_due = false;
        ms = 0;
    }
    timer_start(leases->store->loop, &leases->tick, ms, on_tick);
}

/* After what was not taken now: at its expiry, or at the next renewal. */
static int64_t next_tick_ms(const struct leases *leases)
{
    int64_t ms = leases->options.ttl_ms / 3;

    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        const struct lease_row *row = &leases->table[shard];

        if (!leases->shards[shard].held && row->left_ms + AGAIN_MS < ms) {
            ms = row->left_ms > 0 ? row->left_ms + AGAIN_MS : AGAIN_MS;
        }
    }
    return ms;
}

static void leases_tick(struct leases *leases)
{
    if (!can_talk(leases)) {
        leases->tick_due = leases->talk != TALK_IDLE; /* on_state() and leases_store_ready() tick too */
        return;
    }
    if (!leases->store->was_ready) {
        return; /* nobody has looked yet what is behind the connections: leases_store_ready() */
    }
    renew(leases);
}

/* The next step after the one that is over. False: the conversation has ended. */
static bool lease_advance(struct leases *leases, enum lease_talk over)
{
    switch (over) {
    case TALK_RENEW:
        renewed(leases);
        break;
    case TALK_LOOK:
        break;
    case TALK_END:
        lock(leases);
        return true;
    case TALK_LOCK:
        locked(leases);
        return take(leases);
    case TALK_TAKE:
        taken(leases);
        return false;
    case TALK_IDLE:
    case TALK_RELEASE:
        UNREACHABLE();
    }
    if (leases->releasing || leases->closing || !store_is_ready(leases->store) || choose(leases) == 0) {
        return false;
    }
    end_old_owners(leases);
    return true;
}

static void on_lease_done(struct db_transaction *transaction)
{
    struct leases *leases = container_of(transaction, struct leases, transaction);
    enum lease_talk over = leases->talk;
    bool good = transaction->outcome == DB_COMMITTED || over == TALK_END; /* backends that we may not end: the locks decide */
    int64_t pause_ms = AGAIN_MS;

    leases->talk = TALK_IDLE;
    if (leases->closing || leases->released) {
        return;
    }
    if (over == TALK_RELEASE) {
        release_end(leases); /* if it failed they expire by themselves */
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
    } else if (transaction->sqlstate[0] && strcmp(transaction->sqlstate, "55P03") != 0) {
        log_warn("lease_statement_failed", LOG_ERR(&transaction->err));
    }
    if (leases->closing) {
        return;
    }
    if (leases->releasing) {
        release_send(leases);
    } else {
        tick_in(leases, pause_ms); /* without a connection on_state() ticks */
    }
}

/* --- release --- */

static void on_released_closed(void *context)
{
    struct leases *leases = context;

    store_db_closed(leases->store);
    if (leases->on_released) {
        leases->on_released(leases->released_context);
    }
}

static void release_end(struct leases *leases)
{
    leases->released = true;
    timer_stop(leases->store->loop, &leases->patience);
    timer_stop(leases->store->loop, &leases->tick);
    if (leases->db) {
        struct db *db = leases->db;

        leases->db = NULL;
        db_close(db, on_released_closed, leases);
    }
}

static void on_patience_over(struct timer *timer)
{
    struct leases *leases = container_of(timer, struct leases, patience);

    if (!leases->released) {
        release_end(leases);
    }
}

static void release_send(struct leases *leases)
{
    struct db_args *args;

    lease_begin(leases);
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        leases->shards[shard].asked = leases->shards[shard].held;
    }
    if (db_state(leases->db) != DB_READY || asked_count(leases) == 0) {
        release_end(leases);
        return;
    }
    args = lease_query(leases, &sql_lease_release, NULL);
    put_asked(leases, args);
    put_epochs(leases, args);
    db_arg_text(args, slice_of(leases->identity));
    (void)lease_query(leases, &sql_lease_unlock_all, NULL); /* it takes no parameters */
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        leases->shards[shard].held = false;
    }
    lease_submit(leases, TALK_RELEASE, false);
}

void leases_release(struct leases *leases, void (*done)(void *context), void *context)
{
    CHECK(!leases->releasing && !leases->closing);
    leases->releasing = true;
    leases->on_released = done;
    leases->released_context = context;
    timer_stop(leases->store->loop, &leases->tick);
    loop_defer_cancel(leases->store->loop, &leases->report);
    timer_start(leases->store->loop, &leases->patience, RELEASE_PATIENCE_MS, on_patience_over);
    if (leases->talk == TALK_IDLE && !leases->advancing) {
        release_send(leases);
    }
}

/* --- life --- */

static void on_state(struct db *db, enum db_state state, const struct err *err, void *context)
{
    struct leases *leases = context;

    (void)db;
    (void)err; /* the store's own connections tell it */
    if (leases->closing || leases->releasing) {
        return;
    }
    if (state == DB_READY) {
        leases->relock = true;
        for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
            leases->shards[shard].locked = leases->shards[shard].held;
        }
        leases_tick(leases);
    } else if (state == DB_LOST) {
        timer_stop(leases->store->loop, &leases->tick);
        for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
            leases->shards[shard].locked = false;
        }
    }
}

static void on_notify(struct db *db, struct slice channel, struct slice payload, void *context)
{
    (void)db;
    (void)payload;
    if (slice_is(channel, SQL_LEASES_CHANNEL)) {
        leases_tick(context);
    }
}

void leases_store_ready(struct leases *leases)
{
    leases_tick(leases);
}

struct leases *leases_start(struct store *store, const struct lease_options *options)
{
    struct leases *leases = memory_alloc(sizeof(*leases));
    const char *setup[32];
    size_t count = 0;

    CHECK(!store->leases && options->on_gained && options->on_lost);
    leases->store = store;
    leases->options = *options;
    leases->options.ttl_ms = options->ttl_ms > 0 ? options->ttl_ms : TTL_MS_DEFAULT;
    leases->options.margin_ms = options->margin_ms > 0 ? options->margin_ms : leases->options.ttl_ms / 5;
    arena_init(&leases->arena, 16 * 1024);
    arena_init(&leases->names, 256);
    leases->options.engine_name = arena_text(&leases->names, slice_of(options->engine_name ? options->engine_name : "sagad"));
    lease_identity_own(store->instance, leases->identity);
    store_name_connection(store, "lease", leases->connection_name);
    for (size_t i = 0; store_setup[i]; i++) {
        CHECK(count < COUNT_OF(setup) - 3);
        setup[count++] = store_setup[i];
    }
    setup[count++] = "set lock_timeout = '1s'";
    setup[count++] = "listen " SQL_LEASES_CHANNEL;
    setup[count] = NULL;
    store->leases = leases;
    store->dbs_open++;
    leases->db = db_open(store->loop, &(struct db_options){
                                          .dsn = store->options.dsn,
                                          .application_name = leases->connection_name,
                                          .setup = setup,
                                          .reconnect = true,
                                          .on_state = on_state,
                                          .on_notify = on_notify,
                                          .context = leases,
                                      });
    return leases;
}

static void on_closed(void *context)
{
    struct leases *leases = context;

    store_db_closed(leases->store);
    if (leases->releasing && !leases->released && leases->on_released) {
        leases->on_released(leases->released_context);
    }
}

void leases_close(struct leases *leases)
{
    leases->closing = true;
    timer_stop(leases->store->loop, &leases->tick);
    timer_stop(leases->store->loop, &leases->patience);
    loop_defer_cancel(leases->store->loop, &leases->report);
    if (leases->db) {
        struct db *db = leases->db;

        leases->db = NULL;
        db_close(db, on_closed, leases);
    }
}

void leases_free(struct leases *leases)
{
    if (leases) {
        arena_fini(&leases->arena);
        arena_fini(&leases->names);
        free(leases);
    }
}
