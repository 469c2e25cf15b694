/*
 * The leases of shards, on their own connection.
 *
 * The epoch in the lease table is the truth, and every append checks it. The state in memory only says when to stop
 * sending. An advisory lock for each shard only keeps engines out of each other's way. There is one conversation with
 * the database at a time:
 *
 *   RENEW   our rows, at our epochs, and our row among the engines; what was given away is released; both tables are
 *           read, but for an engine that is alone and has every shard: others tell it when they come. A row that is not
 *           ours any more: the shard is lost. Which shards are free, expired, or held by a process that is surely dead?
 *           How many of them are our share, how many of ours are beyond it?
 *   END     the backends of their old owners, so that nothing of them hangs in a transaction
 *   LOCK    the advisory locks
 *   TAKE    the rows FOR UPDATE, which waits for appends under way; epoch + 1. From here on the old owner is fenced.
 *   RELEASE rows and locks, and tell others
 *
 * The deadline of a lease counts from before the statement was sent, on a clock that counts suspend, and ends a margin
 * early. After the deadline nothing is sent to the world. But the shard is not dropped then. While nobody has raised
 * the epoch the shard is still ours, and answers of calls can still be appended when the database is back. The shard is
 * dropped when the table says that it is lost.
 */
#include <stdlib.h>
#include <string.h>

#include "base/instant.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metric.h"
#include "store/lease/lease_state.h"
#include "store/virtual_clock.h"

enum { TTL_MS_DEFAULT = 10000, RELEASE_PATIENCE_MS = 2000 };

/* --- what others ask --- */

bool lease_is_held(const struct leases *leases, uint32_t shard, int64_t *epoch)
{
    CHECK(shard < SHARD_COUNT);
    if (leases->shards[shard].held && epoch) {
        *epoch = leases->shards[shard].epoch;
    }
    return leases->shards[shard].held;
}

int64_t lease_last_epoch(const struct leases *leases, uint32_t shard)
{
    CHECK(shard < SHARD_COUNT);
    return leases->shards[shard].held ? leases->shards[shard].epoch : leases->table[shard].epoch;
}

bool lease_allows_send(const struct leases *leases, uint32_t shard)
{
    CHECK(shard < SHARD_COUNT);
    return leases->shards[shard].held && loop_boot_ms_now() < leases->shards[shard].deadline_ms;
}

bool leases_are_current(const struct leases *leases)
{
    return leases->renewed_ms &&
           loop_boot_ms(leases->store->loop) < leases->renewed_ms + leases->options.ttl_ms - leases->options.margin_ms;
}

const struct err *leases_reason(const struct leases *leases)
{
    return &leases->reason;
}

int64_t lease_doubt_ms(const struct leases *leases, uint32_t shard)
{
    CHECK(shard < SHARD_COUNT);
    return leases->shards[shard].expired ? leases->options.ttl_ms : 0;
}

bool lease_owner_died(const struct leases *leases, uint32_t shard)
{
    CHECK(shard < SHARD_COUNT);
    return leases->shards[shard].owner_died;
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
            first = !leases->table[before].has_owner ||
                    strcmp(leases->table[before].identity, leases->table[shard].identity) != 0;
        }
        if (first) {
            write_group(leases, &w, leases->table[shard].identity);
        }
    }
    json_array_end(&w);
}

/* --- losing --- */

void leases_lose(struct leases *leases, uint32_t shard)
{
    struct lease *lease = &leases->shards[shard];

    if (!lease->held) {
        return;
    }
    lease->held = false;
    leases->told = false; /* the new owner took us for dead */
    leases->options.on_lost(shard, lease->epoch, leases->options.context);
}

void leases_lose_all(struct leases *leases)
{
    log_warn("leases_lost", LOG_I64("shards", SHARD_COUNT), LOG_TEXT("why", "another history was accepted"));
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        leases_lose(leases, shard);
    }
    leases_tick(leases);
}

void leases_be_patient(struct leases *leases)
{
    leases->patient_until_ms = loop_boot_ms_now() + leases->options.ttl_ms;
}

void leases_reconnect(struct leases *leases, const struct err *reason)
{
    leases->relock = true; /* nothing is written before another connection has looked */
    if (leases->db) {
        db_give_up(leases->db, reason);
    }
}

static void on_report(struct deferred *deferred)
{
    struct leases *leases = container_of(deferred, struct leases, report);
    uint64_t fenced = leases->fenced;

    leases->fenced = 0;
    log_warn("leases_lost", LOG_I64("shards", __builtin_popcountll(fenced)), LOG_TEXT("why", "an append was fenced"));
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        if (fenced >> shard & 1) {
            leases_lose(leases, shard);
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

/* --- giving, and leaving --- */

static void on_give(struct deferred *deferred)
{
    leases_tick(container_of(deferred, struct leases, give));
}

void leases_give(struct leases *leases, uint32_t shard)
{
    struct lease *lease = &leases->shards[shard];

    CHECK(shard < SHARD_COUNT);
    if (lease->held) {
        lease->held = false;
        lease->giving = true; /* the shard stays marked until its row says so: by then nobody else can have it, and we
                                 do not want it back */
        loop_defer(leases->store->loop, &leases->give, on_give);
    }
}

void leases_leave(struct leases *leases)
{
    if (!leases->leaving) {
        leases->leaving = true;
        leases->told = false;
        loop_defer(leases->store->loop, &leases->give, on_give);
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

void leases_release_end(struct leases *leases)
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
        leases_release_end(leases);
    }
}

void leases_release_send(struct leases *leases)
{
    struct db_args *args;

    lease_begin(leases);
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        leases->shards[shard].asked = leases->shards[shard].held || leases->shards[shard].giving;
    }
    /* With another history, nobody may have our shards before our knowledge is written down; then they are marked
     * anyway. */
    if (db_state(leases->db) != DB_READY || leases->store->history.is_other ||
        (lease_asked_count(leases) == 0 && !leases->in_fleet)) {
        leases_release_end(leases);
        return;
    }
    fleet_put_gone(leases); /* the row is removed before others are told of the shards */
    args = lease_query(leases, &sql_lease_release, NULL);
    lease_put_asked(leases, args);
    lease_put_epochs(leases, args);
    db_arg_text(args, slice_of(leases->identity));
    (void)lease_query(leases, &sql_lease_unlock_all, NULL); /* takes no parameters */
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
    loop_defer_cancel(leases->store->loop, &leases->give);
    timer_start(leases->store->loop, &leases->patience, RELEASE_PATIENCE_MS, on_patience_over);
    if (leases->talk == TALK_IDLE && !leases->advancing) {
        leases_release_send(leases);
    }
}

/* --- life --- */

static void on_state(struct db *db, enum db_state state, const struct err *err, void *context)
{
    struct leases *leases = context;

    if (leases->closing || leases->releasing) {
        return;
    }
    if (state == DB_LOST && err) {
        leases->reason = *err;
        if (db_was_unanswered(db)) {
            store_unanswered(leases->store, err);
        }
    }
    if (state == DB_READY) {
        metric_add(METRIC_DB_CONNECTS, 1);
        leases->relock = true;
        leases->backend_pid = 0;
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

/* A new connection writes nothing before another one has found the history that we know. */
void leases_store_checked(struct leases *leases)
{
    if (leases->relock) {
        leases_tick(leases);
    }
}

int64_t leases_ttl_ms(const struct leases *leases)
{
    return leases->options.ttl_ms;
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
    leases->options.engine_name =
        arena_text(&leases->names, slice_of(options->engine_name ? options->engine_name : "sagad"));
    leases->options.version = arena_text(&leases->names, slice_of(options->version ? options->version : "?"));
    lease_identity_own(store->instance, leases->identity);
    store_name_connection(store, "lease", leases->connection_name);
    leases->beside_older = true; /* assumed until the table was read */
    for (size_t i = 0; store_setup[i]; i++) {
        CHECK(count < COUNT_OF(setup) - 4);
        setup[count++] = store_setup[i];
    }
    setup[count++] = "set lock_timeout = '1s'";
    setup[count++] = "listen " SQL_LEASES_CHANNEL;
    if (store->options.virtual_clock) {
        setup[count++] = VIRTUAL_CLOCK_PATH;
    }
    setup[count] = NULL;
    store->leases = leases;
    store->dbs_open++;
    leases->db = db_open(store->loop, &(struct db_options){
                                          .dsn = store->options.dsn,
                                          .application_name = leases->connection_name,
                                          .setup = setup,
                                          .answer_ms = leases->options.ttl_ms,
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
    loop_defer_cancel(leases->store->loop, &leases->give);
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
