/*
 * The connections of the store, and whether sagad may run on the database behind them.
 *
 * Each new connection is checked in two transactions: first the server and its durability, then the schema, and whether
 * a transaction really is one. The store is ready while a writer and a reader have passed. A fault that waiting cannot
 * cure (too old, not durable, another schema, no rights, a pooler) is reported once as a refusal, and nothing is sent
 * any more. Any other fault counts as away and is tried again.
 */
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metric.h"
#include "store/migrate.h"
#include "store/seal/payload_keys.h"
#include "store/store_state.h"
#include "store/virtual_clock.h"

enum {
    RECHECK_MS = 1000,
    WRITERS_DEFAULT = 4,
    READERS_DEFAULT = 2,
    BATCH_MAX_DEFAULT = 500,
    SECOND_BATCH_MIN_DEFAULT = 200,
    KEY_LOOK_MS_DEFAULT = 5 * 60 * 1000,
    ANSWER_MS_DEFAULT = 10000,
    READ_ANSWER_MS = 35000 /* the server itself ends a read after 30 s */
};

/*
 * Plans are made once, for tables of any size. The plans that an empty table invites (reading all of it, hashing) are
 * switched off. transaction_timeout exists from PostgreSQL 17 on. The fence needs read committed, because after waiting
 * for a takeover it has to see the takeover.
 */
const char *const store_setup[] = {
    "set default_transaction_isolation = 'read committed'",
    "set search_path = pg_catalog, pg_temp",
    "set plan_cache_mode = force_generic_plan",
    "set enable_seqscan = off",
    "set enable_hashjoin = off",
    "set enable_mergejoin = off",
    "set enable_bitmapscan = off",
    "set jit = off",
    "set lock_timeout = '5s'",
    "set idle_in_transaction_session_timeout = '10s'",
    "set idle_session_timeout = 0",
    "select set_config(name, '120s', false) from pg_settings where name = 'transaction_timeout'",
    NULL,
};

static const char *const listener_setup[] = {"listen " SQL_INBOX_CHANNEL,       "listen " SQL_ANSWERS_CHANNEL,
                                             "listen " SQL_DEFINITIONS_CHANNEL, "listen " SQL_SCHEDULES_CHANNEL,
                                             "listen " SQL_HOLDS_CHANNEL,       "listen " SQL_BULK_CHANNEL};

/* --- readiness --- */

static size_t conns_up(const struct store *store, bool writer)
{
    size_t count = 0;

    for (size_t i = 0; i < store->conn_count; i++) {
        count += store->conns[i].up && store->conns[i].writer == writer;
    }
    return count;
}

bool store_is_checked(const struct store *store)
{
    return !store->history.is_doubted && !store->history.is_other && conns_up(store, true) + conns_up(store, false) > 0;
}

void store_tell(struct store *store)
{
    bool ready = !store->refused && !store->closing && !store->trouble && !store->history.is_other &&
                 conns_up(store, true) > 0 && conns_up(store, false) > 0;

    if (store->closing || store->refused) {
        store->ready = false;
        return;
    }
    if (ready && !store->ready) {
        store->ready = store->was_ready = true;
        store->away_told = false;
        store->away_err.code = ERR_OK;
        if (store->leases) {
            leases_store_ready(store->leases);
        }
        if (store->options.on_ready) {
            store->options.on_ready(store, store->options.context);
        }
    } else if (!ready && (store->ready || (!store->away_told && store->away_err.code != ERR_OK))) {
        store->ready = false;
        store->away_told = true;
        if (store->options.on_away) {
            store->options.on_away(store, &store->away_err, store->options.context);
        }
    }
}

bool store_is_ready(const struct store *store)
{
    return store->ready;
}

bool store_is_whole(const struct store *store)
{
    return store->ready && conns_up(store, true) + conns_up(store, false) == store->conn_count;
}

bool store_has_hung(const struct store *store)
{
    return store->hung;
}

void store_refuse(struct store *store, const struct err *err)
{
    if (store->refused || store->closing) {
        return;
    }
    store->refused = true;
    store->ready = false;
    if (store->options.on_refused) {
        store->options.on_refused(store, err, store->options.context);
    }
}

/* Handles a connection that is no good now and may be later. */
static void on_recheck(struct timer *timer);

static void conn_later(struct conn *conn, const struct err *err)
{
    struct store *store = conn->store;

    conn->up = false;
    conn->checking = false;
    store->away_err = *err;
    timer_start(store->loop, &conn->recheck, RECHECK_MS, on_recheck);
    store_tell(store);
}

/* --- the checks --- */

static void on_server(struct db_query *query, const struct db_rows *rows)
{
    struct conn_facts *facts = &((struct conn *)query->context)->facts;

    if (db_row_count(rows) != 1) {
        return;
    }
    facts->have = true;
    facts->backend_pid = (int)db_int(rows, 0, 0);
    facts->backend_started_us = db_is_null(rows, 0, 1) ? 0 : db_int(rows, 0, 1);
    slice_to_text(facts->fsync, sizeof(facts->fsync), db_bytes(rows, 0, 2));
    slice_to_text(facts->full_page_writes, sizeof(facts->full_page_writes), db_bytes(rows, 0, 3));
    slice_to_text(facts->synchronous_commit, sizeof(facts->synchronous_commit), db_bytes(rows, 0, 4));
    facts->standby = db_int(rows, 0, 5);
    facts->timeline = (int)db_int(rows, 0, 6);
    slice_to_text(facts->read_only, sizeof(facts->read_only), db_bytes(rows, 0, 7));
    slice_to_text(facts->user, sizeof(facts->user), db_bytes(rows, 0, 8));
    facts->has_table = db_int(rows, 0, 9);
    facts->has_usage = db_int(rows, 0, 10);
    slice_to_text(facts->missing, sizeof(facts->missing), db_bytes(rows, 0, 11));
    facts->waits_for = db_int(rows, 0, 12);
    facts->streams = db_int(rows, 0, 13);
    facts->has_virtual_clock = db_int(rows, 0, 14);
}

static void on_schema(struct db_query *query, const struct db_rows *rows)
{
    struct conn_facts *facts = &((struct conn *)query->context)->facts;

    if (db_row_count(rows) == 1) {
        facts->schema_version = db_is_null(rows, 0, 0) ? 0 : (int)db_int(rows, 0, 0);
        facts->second_pid = (int)db_int(rows, 0, 1);
    }
}

static void on_payload_keys(struct db_query *query, const struct db_rows *rows)
{
    struct conn *conn = query->context;
    struct err *err = &conn->facts.keys_err;

    for (size_t row = 0; row < db_row_count(rows); row++) {
        if (payload_keys_check_proof(conn->store->options.payload_keys, db_bytes(rows, row, 0), db_bytes(rows, row, 1),
                                     err) != ERR_OK) {
            return;
        }
    }
}

static void on_transaction(struct db_query *query, const struct db_rows *rows)
{
    store_on_transaction(&((struct conn *)query->context)->facts.proof, rows);
}

void store_on_transaction(struct transaction_proof *proof, const struct db_rows *rows)
{
    if (proof->count < COUNT_OF(proof->seen) && db_row_count(rows) == 1) {
        proof->seen[proof->count].transaction = db_int(rows, 0, 0);
        proof->seen[proof->count].backend_pid = (int)db_int(rows, 0, 1);
        proof->count++;
    }
}

bool store_is_one_transaction(const struct transaction_proof *proof, struct err *err)
{
    if (proof->count == COUNT_OF(proof->seen) && proof->seen[0].transaction == proof->seen[1].transaction &&
        proof->seen[0].backend_pid == proof->seen[1].backend_pid) {
        return true;
    }
    err_set(err, ERR_CONFIG, "what stands between sagad and PostgreSQL makes several transactions of one");
    err_detail(err, "an append would not be atomic, and two engines could act for one saga");
    err_hint(err, "connect to PostgreSQL directly; with Citus, to the node that holds the schema, not the coordinator");
    return false;
}

static bool check_durable(const struct conn_facts *facts, struct err *err)
{
    const struct {
        const char *name, *value;
    } settings[] = {{"fsync", facts->fsync},
                    {"full_page_writes", facts->full_page_writes},
                    {"synchronous_commit", facts->synchronous_commit}};

    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        if (strcmp(settings[i].value, "off") == 0) {
            err_set(err, ERR_CONFIG, "the database runs with %s = off and would lose acknowledged work",
                    settings[i].name);
            err_detail(err, "a commit that the server confirmed is gone after a crash of it");
            err_hint(err, "set %s = on, or start with --risk-losing-acknowledged-work", settings[i].name);
            return false;
        }
    }
    if (facts->waits_for > 0 &&
        (strcmp(facts->synchronous_commit, "local") == 0 || strcmp(facts->synchronous_commit, "remote_write") == 0)) {
        err_set(err, ERR_CONFIG,
                "the database runs with synchronous_commit = %s and would lose acknowledged work in a failover",
                facts->synchronous_commit);
        err_detail(err,
                   "synchronous_standby_names is set, and commits do not wait until a standby has them on its disk");
        err_hint(err, "set synchronous_commit = on, also for the role and the database, or start with "
                      "--risk-losing-acknowledged-work");
        return false;
    }
    return true;
}

static const char asynchronous[] =
    "asynchronous: a standby streams from this PostgreSQL and no commit waits for it; promoted, it lacks what was "
    "acknowledged last; set synchronous_standby_names";

static const char lacking[] =
    "fewer standbys stream from this PostgreSQL than each commit waits for, by its synchronous_standby_names; look at "
    "the standbys and at their network";

const char *store_warning(const struct store *store)
{
    return store->is_asynchronous ? asynchronous : store->lacks_standbys ? lacking : NULL;
}

static void note_replication(struct store *store, const struct conn_facts *facts)
{
    bool is_asynchronous = facts->streams > 0 && facts->waits_for == 0;
    bool lacks_standbys = facts->streams < facts->waits_for;

    if (is_asynchronous && !store->is_asynchronous) {
        log_warn("replication_is_asynchronous", LOG_TEXT("note", asynchronous));
    }
    if (lacks_standbys && !store->lacks_standbys) {
        log_warn("standbys_are_missing", LOG_I64("stream", facts->streams), LOG_I64("waited_for", facts->waits_for));
    }
    store->is_asynchronous = is_asynchronous;
    store->lacks_standbys = lacks_standbys;
    gauge_set(GAUGE_DATABASE_SYNCHRONOUS, facts->waits_for > 0);
}

/* On a connection that breaks sessions, what was asked on one backend is answered by another. */
void store_say_pooled(struct err *err)
{
    err_set(err, ERR_CONFIG, "a pooler stands between sagad and PostgreSQL and breaks sessions");
    err_detail(err, "session locks and notifications do not hold on such connections");
    err_hint(err, "connect to PostgreSQL directly, or set the pooler to pool_mode = session");
}

/* Do sessions hold? They do not when one backend serves two of our connections, or when two transactions of one
 * connection have different backends. */
static bool check_sessions(const struct conn *conn, struct err *err)
{
    const struct store *store = conn->store;
    bool broken = conn->facts.second_pid != 0 && conn->facts.second_pid != conn->facts.backend_pid;

    for (size_t i = 0; i < store->conn_count && !broken; i++) {
        const struct conn *other = &store->conns[i];

        broken = other != conn && other->up && other->backend_pid == conn->facts.backend_pid &&
                 other->backend_started_us == conn->facts.backend_started_us;
    }
    if (broken) {
        store_say_pooled(err);
    }
    return !broken;
}

/* Time is the database's: whoever goes by its real clock must not come to one whose time was moved. */
static bool check_clock(const struct store *store, const struct conn_facts *facts, struct err *err)
{
    if (facts->has_virtual_clock == store->options.virtual_clock) {
        return true;
    }
    if (facts->has_virtual_clock) {
        err_set(err, ERR_CONFIG, "this database has the virtual clock of `sagad dev --clock virtual`");
        err_hint(err, "start it as that, or give this engine another database, or `sagad dev` another --dir");
    } else {
        err_set(err, ERR_CONFIG, "this database has no virtual clock");
        err_hint(err, "give `sagad dev --clock virtual` a folder of its own: --dir DIR");
    }
    return false;
}

static bool check_schema_there(const struct conn_facts *facts, struct err *err)
{
    if (!facts->has_table) {
        err_set(err, ERR_CONFIG, "the database has no sagad schema yet");
        err_hint(err, "run `sagad migrate` with the same --database");
    } else if (!facts->has_usage) {
        err_set(err, ERR_CONFIG, "the database role %s may not use the schema sagad", facts->user);
        err_hint(err, "grant usage on schema sagad to %s, or connect as the role that ran `sagad migrate`",
                 facts->user);
    } else if (facts->missing[0]) {
        err_set(err, ERR_CONFIG, "the database role %s lacks rights in the schema sagad", facts->user);
        err_detail(err, "%s", facts->missing);
        err_hint(err, "grant them, or connect as the role that ran `sagad migrate`");
    } else {
        return true;
    }
    return false;
}

/* A schema that is one step ahead is as good: migrations only add, and engines are replaced one after another behind
 * one. */
static bool check_version(const struct conn_facts *facts, struct err *err)
{
    if (facts->schema_version > migrate_newest() + 1) {
        err_set(err, ERR_CONFIG, "the schema of the database is newer than this program");
        err_hint(err, "run a sagad that is as new as the schema, or one release older");
    } else if (facts->schema_version < migrate_newest()) {
        err_set(err, ERR_CONFIG, "the schema of the database is older than this program");
        err_hint(err, "run `sagad migrate` with the same --database");
    } else {
        return true;
    }
    err_detail(err, "schema version %d, and this program runs on %d and %d", facts->schema_version, migrate_newest(),
               migrate_newest() + 1);
    return false;
}

static void on_schema_checked(struct db_transaction *transaction);

/* The keys that the data needs. Ours is among them before anything is sealed under it. */
static size_t put_payload_keys(struct conn *conn, size_t at)
{
    const struct payload_keys *keys = conn->store->options.payload_keys;
    struct slice active = payload_keys_active(keys);

    if (active.ptr) {
        struct db_args *args = db_args_new(&conn->arena);
        struct buffer proof;

        buffer_init(&proof, 1024);
        payload_keys_put_proof(keys, &proof);
        db_arg_text(args, active);
        db_arg_bytea(args, buffer_slice(&proof));
        db_array_begin(args, DB_TEXT, payload_keys_count(keys));
        for (size_t i = 0; i < payload_keys_count(keys); i++) {
            db_item_bytes(args, payload_keys_name(keys, i));
        }
        db_array_end(args);
        buffer_fini(&proof);
        conn->check_queries[at++] = (struct db_query){.statement = &sql_payload_key_put, .args = args, .context = conn};
    }
    conn->check_queries[at++] =
        (struct db_query){.statement = &sql_payload_keys, .on_rows = on_payload_keys, .context = conn};
    return at;
}

static void conn_submit(struct conn *conn, size_t count, bool read_only, void (*done)(struct db_transaction *))
{
    memset(&conn->check, 0, sizeof(conn->check));
    conn->check.queries = conn->check_queries;
    conn->check.count = count;
    conn->check.read_only = read_only;
    conn->check.done = done;
    db_submit(conn->db, &conn->check);
}

/*
 * A restarted primary shows commits that its synchronous standby never got. So nothing read here counts before a commit
 * of our own was confirmed behind it. A locked row makes the transaction a writing one, and its COMMIT waits until the
 * standby has everything.
 */
static void check_schema_and_commit(struct conn *conn)
{
    const struct db_query proof = {.statement = &sql_check_transaction, .on_rows = on_transaction, .context = conn};
    struct db_args *args;
    size_t count;

    arena_reset(&conn->arena);
    conn->check_queries[0] = proof;
    conn->check_queries[1] = (struct db_query){.statement = &sql_check_schema, .on_rows = on_schema, .context = conn};
    args = db_args_new(&conn->arena);
    db_array_begin(args, DB_INT2, 1);
    db_item_int(args, (int64_t)(conn - conn->store->conns));
    db_array_end(args);
    conn->check_queries[2] = (struct db_query){.statement = &sql_hold_shards, .args = args, .context = conn};
    count = put_payload_keys(conn, history_put_checks(conn, 3));
    conn->check_queries[count++] = proof;
    conn_submit(conn, count, false, on_schema_checked);
}

/* Handles a refusal of the check itself. */
static void conn_check_failed(struct conn *conn)
{
    struct err err = conn->check.err;

    conn->checking = false;
    if (conn->store->closing || db_state(conn->db) != DB_READY) {
        return; /* the connection is gone, and comes again */
    }
    if (strcmp(conn->check.sqlstate, "42P05") == 0 || strcmp(conn->check.sqlstate, "26000") == 0) {
        store_say_pooled(&err);
        store_refuse(conn->store, &err);
        return;
    }
    if ((strcmp(conn->check.sqlstate, "42P01") == 0 || strcmp(conn->check.sqlstate, "42703") == 0) &&
        conn->facts.schema_version > 0 && !check_version(&conn->facts, &err)) {
        store_refuse(conn->store, &err); /* a table or column that the check reads is missing */
        return;
    }
    (void)err_context(&err, "checking the database");
    conn_later(conn, &err);
}

static void on_schema_checked(struct db_transaction *transaction)
{
    struct conn *conn = container_of(transaction, struct conn, check);
    struct store *store = conn->store;
    struct err err = {.code = ERR_OK};

    if (transaction->outcome != DB_COMMITTED || store->closing) {
        conn_check_failed(conn);
        return;
    }
    conn->checking = false;
    if (!check_version(&conn->facts, &err) || !check_sessions(conn, &err) ||
        !store_is_one_transaction(&conn->facts.proof, &err)) {
        store_refuse(store, &err);
        return;
    }
    if (conn->facts.keys_err.code != ERR_OK) {
        store_refuse(store, &conn->facts.keys_err);
        return;
    }
    if (!history_is_good(conn, &err)) {
        conn_later(conn, &err);
        return;
    }
    conn->backend_pid = conn->facts.backend_pid;
    conn->backend_started_us = conn->facts.backend_started_us;
    conn->up = true;
    store->hung = false;
    store_tell(store);
    if (store->leases) {
        leases_store_checked(store->leases);
    }
    if (conn->writer) {
        appends_conn_up(conn);
        return;
    }
    loads_run(store);
    jobs_run(store);
    dues_conn_up(store);
    if (conn ==
        &store->conns[store->writer_count]) { /* notifications may have been missed while the connection was away */
        answers_conn_up(store);
        inbox_conn_up(store);
        definitions_conn_up(store);
        holds_notified(store);
    }
}

/* --- the proof again --- */

static void on_server_asked(struct db_transaction *transaction)
{
    struct conn *conn = container_of(transaction, struct conn, check);

    if (transaction->outcome != DB_COMMITTED || conn->store->closing) {
        conn_check_failed(conn);
        return;
    }
    conn->checking = false;
    note_replication(conn->store, &conn->facts);
}

/* Standbys come and go while connections stay. One of the connections asks, so once in a round of proofs. It asks on
 * its own, because what others send meanwhile waits behind. */
static void ask_server(struct conn *conn)
{
    conn->check_queries[0] = (struct db_query){.statement = &sql_check_server, .on_rows = on_server, .context = conn};
    conn_submit(conn, 1, false, on_server_asked);
}

static void on_proved(struct db_transaction *transaction)
{
    struct conn *conn = container_of(transaction, struct conn, check);
    struct err err = {.code = ERR_OK};

    if (transaction->outcome != DB_COMMITTED || conn->store->closing) {
        conn_check_failed(conn);
        return;
    }
    conn->checking = false;
    if (!store_is_one_transaction(&conn->facts.proof, &err)) {
        store_refuse(conn->store, &err);
    } else if (conn->facts.proof.seen[0].backend_pid != conn->backend_pid) {
        store_say_pooled(&err);
        store_refuse(conn->store, &err);
    } else {
        conn->store->proved_count++;
        if (conn == &conn->store->conns[0]) {
            conn->checking = true;
            ask_server(conn);
        }
    }
}

void store_prove_next(struct store *store)
{
    for (size_t i = 0; i < store->conn_count && !store->closing && !store->refused; i++) {
        struct conn *conn = &store->conns[store->prove_next++ % store->conn_count];
        const struct db_query proof = {.statement = &sql_check_transaction, .on_rows = on_transaction, .context = conn};

        if (conn->up && !conn->checking && db_state(conn->db) == DB_READY) {
            conn->checking = true;
            conn->facts.proof.count = 0;
            conn->check_queries[0] = conn->check_queries[1] = proof;
            conn_submit(conn, 2, false, on_proved);
            return;
        }
    }
}

bool store_prove_all(struct store *store)
{
    if (!store_is_whole(store)) {
        store->proved_count = 0;
        return false;
    }
    for (size_t i = 0; i < store->conn_count; i++) {
        if (store->conns[i].checking) {
            return false;
        }
    }
    if (store->proved_count < store->conn_count) {
        store_prove_next(store);
        return false;
    }
    return true;
}

/* --- the checks, from the first one on --- */

static void on_server_checked(struct db_transaction *transaction)
{
    struct conn *conn = container_of(transaction, struct conn, check);
    struct store *store = conn->store;
    struct conn_facts *facts = &conn->facts;
    struct err err = {.code = ERR_OK};
    int version;

    if (transaction->outcome != DB_COMMITTED || store->closing || !facts->have) {
        conn_check_failed(conn);
        return;
    }
    version = db_server_version(conn->db);
    if (version < STORE_SERVER_LEAST) {
        err_set(&err, ERR_CONFIG, "PostgreSQL %d is too old", version / 10000);
        err_hint(&err, "use PostgreSQL 15 or newer");
        store_refuse(store, &err);
    } else if (!store->options.risk_losing_acknowledged_work && !check_durable(facts, &err)) {
        store_refuse(store, &err);
    } else if (facts->standby || strcmp(facts->read_only, "on") == 0) {
        err_set(&err, ERR_STORE, facts->standby ? "this PostgreSQL is a standby" : "this PostgreSQL takes no writes");
        err_hint(&err, "name all servers in --database, and target_session_attrs=read-write");
        conn_later(conn, &err);
    } else if (facts->timeline < store->timeline) {
        err_set(&err, ERR_STORE, "this PostgreSQL is an old primary");
        err_detail(&err, "its timeline is %d, and sagad has seen %d", facts->timeline, store->timeline);
        err_hint(&err, "stop that server");
        conn_later(conn, &err);
    } else if (!check_schema_there(facts, &err) || !check_clock(store, facts, &err)) {
        store_refuse(store, &err);
    } else {
        if (store->timeline && facts->timeline > store->timeline && store->leases) {
            leases_be_patient(store->leases);
        }
        store->timeline = facts->timeline;
        note_replication(store, facts);
        check_schema_and_commit(conn);
    }
}

static void conn_check(struct conn *conn)
{
    if (conn->checking || conn->store->closing || conn->store->refused) {
        return;
    }
    conn->checking = true;
    memset(&conn->facts, 0, sizeof(conn->facts));
    arena_reset(&conn->arena);
    conn->check_queries[0] = (struct db_query){.statement = &sql_check_server, .on_rows = on_server, .context = conn};
    conn_submit(conn, 1, true, on_server_checked);
}

static void on_recheck(struct timer *timer)
{
    struct conn *conn = container_of(timer, struct conn, recheck);

    if (db_state(conn->db) == DB_READY) {
        conn_check(conn);
    }
}

/* --- connections --- */

static void on_state(struct db *db, enum db_state state, const struct err *err, void *context)
{
    struct conn *conn = context;
    struct store *store = conn->store;

    switch (state) {
    case DB_READY:
        metric_add(METRIC_DB_CONNECTS, 1);
        conn_check(conn);
        break;
    case DB_LOST:
        conn->up = false;
        conn->checking = false;
        timer_stop(store->loop, &conn->recheck);
        store->hung |= db_was_unanswered(db);
        if (err && err->code == ERR_CONFIG) { /* time does not make a connection string readable */
            store_refuse(store, err);
            break;
        }
        if (err) {
            store->away_err = *err;
            store->away_err.code = ERR_STORE;
        }
        store_tell(store);
        break;
    case DB_CONNECTING:
    case DB_CLOSED:
        break;
    }
}

static void on_notify(struct db *db, struct slice channel, struct slice payload, void *context)
{
    struct store *store = ((struct conn *)context)->store;

    (void)db;
    if (slice_is(channel, SQL_INBOX_CHANNEL)) {
        inbox_notified(store, payload);
    } else if (slice_is(channel, SQL_ANSWERS_CHANNEL)) {
        answers_notified(store, payload);
    } else if (slice_is(channel, SQL_DEFINITIONS_CHANNEL)) {
        definitions_notified(store);
    } else if (slice_is(channel, SQL_SCHEDULES_CHANNEL)) {
        schedules_notified(store);
    } else if (slice_is(channel, SQL_HOLDS_CHANNEL)) {
        holds_notified(store);
    } else if (slice_is(channel, SQL_BULK_CHANNEL)) {
        bulk_notified(store);
    }
}

void store_name_connection(const struct store *store, const char *what, char out[64])
{
    (void)snprintf(out, 64, "sagad/%s/%s", store->instance, what);
}

static void conn_open(struct store *store, size_t i)
{
    struct conn *conn = &store->conns[i];
    const char *setup[COUNT_OF(store_setup) + COUNT_OF(listener_setup) + 2];
    size_t count = 0;

    conn->store = store;
    conn->writer = i < store->writer_count;
    arena_init(&conn->arena, 256);
    store_name_connection(store, conn->writer ? "writer" : "reader", conn->name);
    for (size_t s = 0; store_setup[s]; s++) {
        setup[count++] = store_setup[s];
    }
    if (!conn->writer) {
        setup[count++] = "set statement_timeout = '30s'"; /* a list with a rare filter may have to read many rows */
    }
    for (size_t s = 0; i == store->writer_count && s < COUNT_OF(listener_setup); s++) {
        setup[count++] = listener_setup[s];
    }
    if (store->options.virtual_clock) {
        setup[count++] = VIRTUAL_CLOCK_PATH;
    }
    setup[count] = NULL;
    conn->db = db_open(store->loop, &(struct db_options){
                                        .dsn = store->options.dsn,
                                        .application_name = conn->name,
                                        .setup = setup,
                                        .answer_ms = conn->writer ? store->options.answer_ms : READ_ANSWER_MS,
                                        .reconnect = true,
                                        .on_state = on_state,
                                        .on_notify = on_notify,
                                        .context = conn,
                                    });
    store->dbs_open++;
}

void store_unanswered(struct store *store, const struct err *err)
{
    metric_add(METRIC_DB_UNANSWERED, 1);
    store->hung = true;
    for (size_t i = 0; i < store->conn_count; i++) {
        db_give_up(store->conns[i].db, err);
    }
}

struct conn *store_reader(struct store *store)
{
    struct conn *best = NULL;

    if (store->refused || store->closing || store->history.is_other) {
        return NULL; /* the connections end one after another */
    }
    for (size_t i = store->writer_count; i < store->conn_count; i++) {
        struct conn *conn = &store->conns[i];

        if (conn->up && db_state(conn->db) == DB_READY && (!best || db_pending(conn->db) < db_pending(best->db))) {
            best = conn;
        }
    }
    return best;
}

/* --- life --- */

static int within(int value, int otherwise, int max)
{
    return value <= 0 ? otherwise : value > max ? max : value;
}

struct store *store_open(struct loop *loop, const struct store_options *options)
{
    struct store *store = memory_alloc(sizeof(*store));
    uint8_t random[8];

    store->loop = loop;
    store->options = *options;
    arena_init(&store->arena, 1024);
    store->options.dsn = arena_text(&store->arena, slice_of(options->dsn ? options->dsn : ""));
    if (store->options.batch_max == 0) {
        store->options.batch_max = BATCH_MAX_DEFAULT;
    }
    if (store->options.key_look_ms == 0) {
        store->options.key_look_ms = KEY_LOOK_MS_DEFAULT;
    }
    if (store->options.answer_ms == 0) {
        store->options.answer_ms = ANSWER_MS_DEFAULT;
    }
    if (store->options.second_batch_min == 0) {
        store->options.second_batch_min = SECOND_BATCH_MIN_DEFAULT;
    }
    store->writer_count = (size_t)within(options->writers, WRITERS_DEFAULT, STORE_WRITERS_MAX);
    store->conn_count = store->writer_count + (size_t)within(options->readers, READERS_DEFAULT, STORE_READERS_MAX);
    CHECK(random_bytes(random, sizeof(random)));
    for (size_t i = 0; i < sizeof(random); i++) {
        (void)snprintf(store->instance + 2 * i, 3, "%02x", random[i]);
    }
    list_init(&store->loads);
    list_init(&store->runs.waiting);
    list_init(&store->jobs);
    list_init(&store->inbox.drops);
    appends_init(store);
    answers_init(store);
    dues_init(store);
    keys_init(store);
    history_init(store);
    for (size_t i = 0; i < store->conn_count; i++) {
        conn_open(store, i);
    }
    return store;
}

static void on_all_closed(struct deferred *deferred)
{
    struct store *store = container_of(deferred, struct store, closer);
    void (*on_closed)(void *context) = store->on_closed;
    void *context = store->closed_context;

    loads_stop(store);
    runs_stop(store);
    jobs_stop(store);
    appends_stop(store);
    appends_fini(store);
    answers_fini(store);
    dues_fini(store);
    keys_fini(store);
    history_fini(store);
    for (size_t i = 0; i < store->conn_count; i++) {
        arena_fini(&store->conns[i].arena);
    }
    leases_free(store->leases);
    arena_fini(&store->inbox.arena);
    arena_fini(&store->arena);
    free(store);
    if (on_closed) {
        on_closed(context);
    }
}

void store_db_closed(struct store *store)
{
    store->dbs_open--;
    if (store->dbs_open == 0) { /* only store_close() closes the last connections */
        loop_defer(store->loop, &store->closer, on_all_closed);
    }
}

static void on_db_closed(void *context)
{
    store_db_closed(context);
}

void store_close(struct store *store, void (*on_closed)(void *context), void *context)
{
    CHECK(!store->closing);
    store->closing = true;
    store->ready = false;
    store->on_closed = on_closed;
    store->closed_context = context;
    inbox_stop(store);
    answers_stop(store);
    keys_stop(store);
    history_stop(store);
    definitions_stop(store);
    if (store->leases) {
        leases_close(store->leases);
    }
    for (size_t i = 0; i < store->conn_count; i++) {
        timer_stop(store->loop, &store->conns[i].recheck);
        db_close(store->conns[i].db, on_db_closed, store);
    }
}
