/* See test_pg_trial.h. */
#include "tests/sim/test_pg_trial.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"
#include "tests/sim/memory.h"
#include "tests/sim/network.h"

/* One owner of memory is enough here. */
struct memory_owner *memory_switch(struct memory_owner *owner)
{
    (void)owner;
    return NULL;
}

void network_forget(void)
{
}

/* --- statements --- */

static struct row_shard *shard_row(struct pg_call *call, struct pg_row **row)
{
    struct row_shard key = {.shard = arg_int(call, 0)};
    const struct row_shard *seen;
    static struct row_shard copy;

    *row = pg_find(call, PG_SHARD, &key);
    seen = pg_see(call, *row);
    assert_non_null(seen);
    copy = *seen;
    return &copy;
}

/* Takes shard and epoch, and locks for key share as sagad.fence() does. */
enum pg_progress say_fence(struct pg_call *call)
{
    struct pg_row *row;
    const void *current = NULL;

    if (shard_row(call, &row)->epoch == arg_int(call, 1)) {
        RETURN_UNLESS_DONE(pg_lock(call, row, PG_KEY_SHARE, &current));
    }
    if (!current || ((const struct row_shard *)current)->epoch != arg_int(call, 1)) {
        return pg_fail(call, "SG001");
    }
    return PG_DONE;
}

enum pg_progress say_glance(struct pg_call *call)
{
    struct pg_row *row;

    return shard_row(call, &row)->epoch == arg_int(call, 1) ? PG_DONE : pg_fail(call, "SG001");
}

enum pg_progress say_take(struct pg_call *call)
{
    struct pg_row *row;
    const void *current;
    struct row_shard next;

    (void)shard_row(call, &row);
    RETURN_UNLESS_DONE(pg_lock(call, row, PG_UPDATE, &current));
    next = *(const struct row_shard *)current;
    next.epoch++;
    pg_update(call, row, &next);
    put_int(call, next.epoch);
    return end_with_row(call);
}

enum pg_progress say_renew(struct pg_call *call)
{
    struct pg_row *row;
    const void *current;
    struct row_shard next;

    (void)shard_row(call, &row);
    RETURN_UNLESS_DONE(pg_lock(call, row, PG_NO_KEY_UPDATE, &current));
    next = *(const struct row_shard *)current;
    next.has_expiry = true;
    next.expires_ms += 1;
    pg_update(call, row, &next);
    return PG_DONE;
}

enum pg_progress say_hold(struct pg_call *call) /* shard, mode */
{
    struct pg_row *row;
    const void *current;

    (void)shard_row(call, &row);
    return pg_lock(call, row, (enum pg_lock_mode)arg_int(call, 1), &current);
}

enum pg_progress
say_look(struct pg_call *call) /* takes a shard; reads its epoch and expiry in two statements of plpgsql */
{
    struct pg_row *row;

    put_int(call, shard_row(call, &row)->epoch);
    pg_next_statement(call);
    put_int(call, shard_row(call, &row)->epoch);
    return end_with_row(call);
}

static struct uuid uuid_of(int64_t number)
{
    struct uuid uuid = {{0}};

    uuid.bytes[15] = (uint8_t)number;
    return uuid;
}

enum pg_progress say_append(struct pg_call *call) /* takes shard, saga and seq */
{
    struct row_log log = {
        .shard = arg_int(call, 0), .saga = uuid_of(arg_int(call, 1)), .seq = arg_int(call, 2), .records = 1};

    log.payload = pg_keep(call, SLICE("[]"));
    return pg_insert(call, PG_LOG, &log, NULL);
}

enum pg_progress say_count_log(struct pg_call *call) /* shard */
{
    struct row_log key = {.shard = arg_int(call, 0)};
    int64_t count = 0;

    for (struct pg_row *row = pg_first(call, PG_LOG, &key); row; row = pg_next(call, PG_LOG, row)) {
        const struct row_log *log = pg_see(call, row);

        count += log && log->shard == key.shard;
    }
    put_int(call, count);
    return end_with_row(call);
}

enum pg_progress
say_put_inbox(struct pg_call *call) /* takes shard and id; on conflict do nothing; returns whether the row was put */
{
    struct row_inbox inbox = {.shard = arg_int(call, 0), .id = uuid_of(arg_int(call, 1))};
    struct pg_row *existing;

    RETURN_UNLESS_DONE(pg_insert(call, PG_INBOX, &inbox, &existing));
    put_int(call, existing == NULL);
    put_int(call, pg_see(call, pg_find(call, PG_INBOX, &inbox)) != NULL); /* never its own row */
    return end_with_row(call);
}

enum pg_progress say_drop_inbox(struct pg_call *call) /* takes shard and id; returns how many rows were dropped */
{
    struct row_inbox key = {.shard = arg_int(call, 0), .id = uuid_of(arg_int(call, 1))};
    struct pg_row *row = pg_find(call, PG_INBOX, &key);
    const void *current = NULL;

    if (pg_see(call, row)) {
        RETURN_UNLESS_DONE(pg_lock(call, row, PG_UPDATE, &current));
        if (current) {
            pg_delete(call, row);
        }
    }
    put_int(call, current != NULL);
    return end_with_row(call);
}

enum pg_progress say_start(struct pg_call *call) /* takes saga and digest; on conflict do nothing */
{
    struct row_saga saga = {
        .shard = 1, .id = uuid_of(arg_int(call, 0)), .business_digest = pg_keep(call, arg_bytes(call, 1))};
    struct pg_row *existing;

    RETURN_UNLESS_DONE(pg_insert(call, PG_SAGA, &saga, &existing));
    put_int(call, existing == NULL);
    return end_with_row(call);
}

enum pg_progress say_advisory(struct pg_call *call) /* object */
{
    return pg_advisory_xact(call, 7, arg_int(call, 0));
}

enum pg_progress say_try_lock(struct pg_call *call) /* object */
{
    put_int(call, pg_advisory_try(call, 7, arg_int(call, 0)));
    return end_with_row(call);
}

enum pg_progress say_unlock(struct pg_call *call) /* object */
{
    put_int(call, pg_advisory_unlock(call, 7, arg_int(call, 0)));
    return end_with_row(call);
}

enum pg_progress say_tell(struct pg_call *call) /* payload */
{
    pg_notify(call, "news", arg_bytes(call, 0));
    pg_notify(call, "news", arg_bytes(call, 0));
    pg_notify(call, "other", arg_bytes(call, 0));
    return PG_DONE;
}

static bool is_it(int pid, int64_t started_us, const char *application_name, void *context)
{
    (void)pid;
    (void)started_us;
    return strcmp(application_name, context) == 0;
}

enum pg_progress say_end_b(struct pg_call *call)
{
    char name[] = "b";

    put_int(call, (int64_t)pg_end_sessions(call, is_it, name));
    return end_with_row(call);
}

enum pg_progress say_nothing(struct pg_call *call)
{
    (void)call;
    return PG_DONE;
}

/* Takes a shard, a saga and the next shard. It writes and then waits for a lock, in one statement. */
enum pg_progress say_write_and_hold(struct pg_call *call)
{
    struct row_log log = {.shard = arg_int(call, 0), .saga = uuid_of(arg_int(call, 1)), .seq = 1, .records = 1};
    const void *current;

    RETURN_UNLESS_DONE(pg_insert(call, PG_LOG, &log, NULL));
    pg_notify(call, "news", SLICE("held"));
    RETURN_UNLESS_DONE(
        pg_lock(call, pg_find(call, PG_SHARD, &(struct row_shard){.shard = arg_int(call, 0)}), PG_UPDATE, &current));
    return PG_DONE;
}

/* Takes shard and id; on conflict do update. Returns whether the row existed. */
enum pg_progress say_upsert(struct pg_call *call)
{
    struct row_inbox inbox = {.shard = arg_int(call, 0), .id = uuid_of(arg_int(call, 1))};
    struct pg_row *existing;
    const void *current;

    RETURN_UNLESS_DONE(pg_insert(call, PG_INBOX, &inbox, &existing));
    if (existing) {
        RETURN_UNLESS_DONE(pg_lock(call, existing, PG_NO_KEY_UPDATE, &current));
        assert_non_null(current);
        pg_update(call, existing, current);
    }
    put_int(call, existing != NULL);
    return end_with_row(call);
}

static pg_statement *const functions[] = {say_upsert,     say_fence, say_glance,   say_take,          say_renew,
                                          say_hold,       say_look,  say_append,   say_count_log,     say_put_inbox,
                                          say_drop_inbox, say_start, say_advisory, say_try_lock,      say_unlock,
                                          say_tell,       say_end_b, say_nothing,  say_write_and_hold};
static struct db_statement statements[COUNT_OF(functions)];

pg_statement *pg_statement_of(const struct db_statement *statement)
{
    return functions[statement - statements];
}

const struct db_statement *statement_for(pg_statement *function)
{
    for (size_t i = 0; i < COUNT_OF(functions); i++) {
        if (functions[i] == function) {
            return &statements[i];
        }
    }
    UNREACHABLE();
}

/* --- clients --- */

struct world the_world;
struct pg *pg;
struct client a, b, c;
enum commit_fate next_fate;
int fates_asked;
char turns[256];

static void on_rows(struct pg_session *session, size_t query, const struct db_rows *rows)
{
    struct client *client = pg_context(session);

    assert_int_equal(query, client->answered);
    client->answered++;
    if (db_row_count(rows) > 0) {
        client->last = db_int(rows, 0, 0);
        client->second = rows->column_count > 1 ? db_int(rows, 0, 1) : 0;
    }
}

static void on_over(struct pg_session *session, enum db_outcome outcome, bool warned, const char *sqlstate,
                    size_t failed_query)
{
    struct client *client = pg_context(session);

    client->over++;
    client->outcome = outcome;
    client->warned = warned;
    client->failed_query = failed_query;
    (void)snprintf(client->sqlstate, sizeof(client->sqlstate), "%s", sqlstate);
}

static void on_notify(struct pg_session *session, struct slice channel, struct slice payload)
{
    struct client *client = pg_context(session);
    size_t len = strlen(client->heard);

    (void)snprintf(client->heard + len, sizeof(client->heard) - len, "%.*s=%.*s ", SLICE_ARG(channel),
                   SLICE_ARG(payload));
}

static void on_gone(struct pg_session *session)
{
    struct client *client = pg_context(session);

    client->is_gone = true;
    client->session = NULL;
}

const struct pg_client client_calls = {on_rows, on_over, on_notify, on_gone};

static void on_turn(const struct committed_turn *turn)
{
    size_t len = strlen(turns);

    if (turn) {
        (void)snprintf(turns + len, sizeof(turns) - len, "%d/%u@%lld ", turn->saga.uuid.bytes[15], turn->seq,
                       (long long)turn->shard_epoch);
    } else {
        (void)snprintf(turns + len, sizeof(turns) - len, "| ");
    }
}

static enum commit_fate on_commit(struct pg_session *session)
{
    enum commit_fate fate = next_fate;

    (void)session;
    fates_asked++;
    next_fate = COMMIT_OK;
    return fate;
}

void client_connect(struct client *client, const char *name)
{
    const char *const setup[] = {"set lock_timeout = '5s'",
                                 "set statement_timeout = '8s'",
                                 "set idle_in_transaction_session_timeout = '10s'",
                                 "set jit = off",
                                 "listen news",
                                 NULL};

    *client = (struct client){.name = name};
    client->session = pg_connect(pg, name, setup, &client_calls, client);
}

int trial_setup(void **state)
{
    static uint64_t seed;

    (void)state;
    world_init(&the_world, ++seed);
    pg = pg_new();
    the_world.pg = pg;
    pg_on_turn(pg, on_turn);
    pg_on_commit(pg, on_commit);
    next_fate = COMMIT_OK;
    fates_asked = 0;
    turns[0] = '\0';
    client_connect(&a, "a");
    client_connect(&b, "b");
    client_connect(&c, "c");
    return 0;
}

int trial_teardown(void **state)
{
    (void)state;
    pg_fini(pg);
    world_fini(&the_world);
    return 0;
}

void add(struct client *client, pg_statement *function, const int64_t *numbers, size_t count)
{
    struct db_args *args = db_args_new(&the_world.arena);

    for (size_t i = 0; i < count; i++) {
        db_arg_int8(args, numbers[i]);
    }
    client->queries[client->count++] = (struct db_query){.statement = statement_for(function), .args = args};
}

void go(struct client *client)
{
    client->over = 0;
    client->answered = 0;
    client->sqlstate[0] = '\0';
    pg_submit(client->session, client->queries, client->count);
    client->count = 0;
}

void go_part(struct client *client)
{
    client->answered = 0;
    pg_submit_part(client->session, client->queries, client->count);
    client->count = 0;
}

void run_to(struct client *client, size_t answered)
{
    while (client->answered < answered) {
        assert_true(world_step());
    }
}

void run_for(int64_t us)
{
    int64_t until = the_world.now_us + us;

    while (the_world.heap_count > 0 && the_world.heap[1]->at_us <= until) {
        assert_true(world_step());
    }
    the_world.now_us = until;
}

void run_out(struct client *client)
{
    while (!client->over && !client->is_gone) {
        assert_true(world_step());
    }
}

void assert_committed(struct client *client)
{
    run_out(client);
    assert_string_equal(client->sqlstate, "");
    assert_int_equal(client->outcome, DB_COMMITTED);
}

void assert_refused(struct client *client, const char *sqlstate)
{
    run_out(client);
    assert_string_equal(client->sqlstate, sqlstate);
    assert_int_equal(client->outcome, DB_REFUSED);
}

int64_t log_rows(int64_t shard)
{
    struct client reader;

    client_connect(&reader, "reader");
    ADD(&reader, count_log, shard);
    go(&reader);
    assert_committed(&reader);
    pg_disconnect(reader.session, false);
    return reader.last;
}
