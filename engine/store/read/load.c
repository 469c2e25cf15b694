/*
 * Loads the unfinished sagas of a shard that are not parked, with their logs, in order of id, some at a time so that
 * memory stays bounded. A lost connection does not end the load: it goes on behind the last saga that was handed over.
 *
 * Nothing of a shard goes on before all of the shard is loaded. So few shards are read at once. With all shards of a
 * takeover side by side, the first call would leave only when the last saga is read, and so many rows would arrive
 * meanwhile that nothing else got its turn of the loop.
 */
#include <stdlib.h>
#include <string.h>

#include "store/store_state.h"

enum {
    LOAD_SAGAS = 64,
    LOADS_AT_ONCE =
        4 /* two for each default reader: while the engine handles one answer, the reader has the next request */
};

struct loading {
    struct list_link link; /* links store->loads, which wait for their turn or for a connection */
    bool begun;            /* this load is one of the few that are read, and goes first */
    struct store *store;
    struct shard_load *load;
    struct arena arena, opened; /* `opened`: payloads of one saga that were sealed */
    struct uuid after;          /* the last saga that was handed over */
    size_t count;               /* the sagas of the current answer */
    struct saga_id last;
    bool asked_max;
    unsigned due;              /* the value of store->loads_due when the load began */
    struct stored_turn *turns; /* the turns of one saga */
    size_t turn_capacity;
    struct db_query queries[3];
    struct db_transaction transaction;
};

/* Is the load outdated? The shard was lost meanwhile and taken again. It is loaded anew, and nobody needs this load. */
static bool is_outdated(const struct loading *loading)
{
    return loading->due != loading->store->loads_due[loading->load->shard];
}

static void loading_end(struct loading *loading, enum err_code code, const struct err *err)
{
    struct store *store = loading->store;
    struct shard_load *load = loading->load;

    load->code = code;
    memset(&load->err, 0, sizeof(load->err));
    if (err) {
        load->err = *err;
        load->err.code = code;
    }
    load->internal = NULL;
    if (code == ERR_OK && !is_outdated(loading)) {
        store->loaded[load->shard] = true;
    }
    store->loads_begun -= loading->begun;
    arena_fini(&loading->arena);
    arena_fini(&loading->opened);
    free(loading->turns);
    free(loading);
    load->done(load);
    loads_run(store);
}

static struct stored_turn *next_turn(struct loading *loading, size_t count)
{
    if (count == loading->turn_capacity) {
        loading->turn_capacity = loading->turn_capacity ? 2 * loading->turn_capacity : 16;
        loading->turns = memory_grow(loading->turns, loading->turn_capacity * sizeof(*loading->turns));
    }
    return &loading->turns[count];
}

/* Hands sagas over, whose rows are side by side. This may happen before the Sync, because a read decides nothing and
 * has no other half. */
static void on_sagas(struct db_query *query, const struct db_rows *rows)
{
    struct loading *loading = query->context;
    size_t row_count = db_row_count(rows), row = 0;

    while (row < row_count) {
        struct saga_id id = {db_uuid(rows, row, 0)};
        struct slice namespace = db_bytes(rows, row, 1);
        size_t count = 0;

        arena_reset(&loading->opened);
        for (; row < row_count; row++) {
            struct uuid other = db_uuid(rows, row, 0);
            struct stored_turn *turn;

            if (!uuid_equal(&other, &id.uuid)) {
                break;
            }
            turn = next_turn(loading, count);
            turn->first_seq = (uint64_t)db_int(rows, row, 2);
            turn->at_ms = db_timestamptz(rows, row, 3);
            turn->payload = db_bytes(rows, row, 4);
            turn_open(loading->store, &id.uuid, turn, &loading->opened);
            count++;
        }
        loading->count++;
        loading->after = id.uuid;
        loading->load->is_awake = db_int(rows, row - 1, 5) != 0;
        loading->load->on_saga(loading->load, id, namespace, loading->turns, count);
    }
}

static void on_max(struct db_query *query, const struct db_rows *rows)
{
    struct loading *loading = query->context;

    if (db_row_count(rows) == 1) {
        loading->load->escalation_number_max = (uint64_t)db_int(rows, 0, 0);
        loading->load->approval_number_max = (uint64_t)db_int(rows, 0, 1);
        loading->load->escalations_open = db_int(rows, 0, 2);
    }
}

static void on_forgotten(struct db_query *query, const struct db_rows *rows)
{
    struct shard_load *load = ((struct loading *)query->context)->load;

    for (size_t row = 0; row < db_row_count(rows); row++) {
        struct op_key key = {db_uuid(rows, row, 0)};

        load->on_forgotten(load, &key, (uint32_t)db_int(rows, row, 1));
    }
}

static void loading_next(struct loading *loading);

static void on_load_done(struct db_transaction *transaction)
{
    struct loading *loading = container_of(transaction, struct loading, transaction);

    if (transaction->outcome == DB_COMMITTED && loading->store->refused) {
        struct err err = {.code = ERR_OK};

        err_set(&err, ERR_STORE, "sagad must not run on this database");
        loading_end(loading, ERR_STORE, &err); /* sagas without their key are no unreadable sagas */
    } else if (transaction->outcome == DB_COMMITTED) {
        loading->asked_max = true; /* not sooner: a connection may break between the numbers and what was forgotten */
        if (loading->count < LOAD_SAGAS) {
            loading_end(loading, ERR_OK, NULL);
        } else {
            loading_next(loading);
        }
    } else if (loading->store->closing) {
        loading_end(loading, ERR_STOPPING, &transaction->err);
    } else if (transaction->sqlstate[0]) {
        loading_end(loading, ERR_STORE, &transaction->err);
    } else {
        list_push_front(&loading->store->loads, &loading->link);
        loads_run(loading->store); /* on another connection, or when one is up again */
    }
}

static void loading_next(struct loading *loading)
{
    struct conn *conn = store_reader(loading->store);
    struct db_args *args;
    size_t count = 0;

    if (is_outdated(loading)) {
        struct err err = {.code = ERR_OK};

        err_set(&err, ERR_FENCED, "the shard was lost while it was loaded");
        loading_end(loading, ERR_FENCED, &err);
        return;
    }
    if (!conn) {
        list_push_front(&loading->store->loads, &loading->link);
        return;
    }
    arena_reset(&loading->arena);
    loading->count = 0;
    args = db_args_new(&loading->arena);
    db_arg_int2(args, (int)loading->load->shard);
    db_arg_uuid(args, &loading->after);
    db_arg_int8(args, LOAD_SAGAS);
    loading->queries[count++] =
        (struct db_query){.statement = &sql_load, .args = args, .on_rows = on_sagas, .context = loading};
    if (!loading->asked_max) {
        args = db_args_new(&loading->arena);
        db_arg_int2(args, (int)loading->load->shard);
        loading->queries[count++] =
            (struct db_query){.statement = &sql_load_numbers, .args = args, .on_rows = on_max, .context = loading};
    }
    if (!loading->asked_max && loading->load->on_forgotten) {
        args = db_args_new(&loading->arena);
        db_arg_int2(args, (int)loading->load->shard);
        loading->queries[count++] = (struct db_query){
            .statement = &sql_load_forgotten, .args = args, .on_rows = on_forgotten, .context = loading};
    }
    memset(&loading->transaction, 0, sizeof(loading->transaction));
    loading->transaction.queries = loading->queries;
    loading->transaction.count = count;
    loading->transaction.read_only = true;
    loading->transaction.done = on_load_done;
    db_submit(conn->db, &loading->transaction);
}

void store_load_shard(struct store *store, struct shard_load *load)
{
    struct loading *loading = memory_alloc(sizeof(*loading));

    CHECK(load->shard < SHARD_COUNT && load->on_saga && load->done);
    loading->store = store;
    loading->load = load;
    loading->due = store->loads_due[load->shard];
    arena_init(&loading->arena, 1024);
    arena_init(&loading->opened, 16384);
    load->internal = loading;
    load->escalation_number_max = load->approval_number_max = 0;
    load->escalations_open = 0;
    list_push(&store->loads, &loading->link);
    loads_run(store);
}

void loads_run(struct store *store)
{
    struct loading *loading;

    while (store_reader(store) && (loading = LIST_ITEM(list_first(&store->loads), struct loading, link)) != NULL &&
           (loading->begun || store->loads_begun < LOADS_AT_ONCE)) {
        list_remove(&store->loads, &loading->link);
        store->loads_begun += !loading->begun;
        loading->begun = true;
        loading_next(loading);
    }
}

void loads_stop(struct store *store)
{
    struct list_link *link;
    struct err err = {.code = ERR_OK};

    err_set(&err, ERR_STOPPING, "the engine is stopping");
    while ((link = list_pop(&store->loads)) != NULL) {
        loading_end(container_of(link, struct loading, link), ERR_STOPPING, &err);
    }
}
