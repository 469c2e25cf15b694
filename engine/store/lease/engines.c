/* Reads which engines are there, which shards each holds and how the database is, together. lease_fleet.c does the
 * reckoning of the engines themselves. */
#include "store/store_state.h"

static void on_engines(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct list_engines *list = job->request;

    list->count = db_row_count(rows);
    list->rows = arena_array(job->arena, list->count + 1, sizeof(*list->rows));
    for (size_t i = 0; i < list->count; i++) {
        list->rows[i] = (struct engine_row){.instance = arena_slice(job->arena, db_bytes(rows, i, 0)),
                                            .identity = arena_slice(job->arena, db_bytes(rows, i, 1)),
                                            .name = arena_slice(job->arena, db_bytes(rows, i, 2)),
                                            .version = arena_slice(job->arena, db_bytes(rows, i, 3)),
                                            .schema = (int)db_int(rows, i, 4),
                                            .standby = db_int(rows, i, 5) != 0,
                                            .leaving = db_int(rows, i, 6) != 0,
                                            .started_ms = db_timestamptz(rows, i, 7),
                                            .left_ms = db_int(rows, i, 8),
                                            .lags = {.append_ms = db_int(rows, i, 9),
                                                     .due_ms = db_int(rows, i, 10),
                                                     .inbox_rows = db_int(rows, i, 11)}};
    }
}

static void on_shards(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct list_engines *list = job->request;

    for (size_t i = 0; i < db_row_count(rows); i++) {
        int64_t shard = db_int(rows, i, 0);

        if (shard >= 0 && shard < SHARD_COUNT) {
            list->shards[shard] = (struct shard_row){.epoch = db_int(rows, i, 1),
                                                     .identity = arena_slice(job->arena, db_bytes(rows, i, 3)),
                                                     .left_ms = db_int(rows, i, 6)};
        }
    }
}

static void on_facts(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct list_engines *list = job->request;

    if (db_row_count(rows) != 1) {
        return;
    }
    list->database = (struct database_facts){.now_ms = db_int(rows, 0, 0),
                                             .clock_ahead_ms = loop_wall_ms(job->store->loop) - db_int(rows, 0, 0),
                                             .version = arena_slice(job->arena, db_bytes(rows, 0, 1)),
                                             .timeline = db_int(rows, 0, 2),
                                             .schema = db_is_null(rows, 0, 3) ? 0 : db_int(rows, 0, 3),
                                             .fsync = arena_slice(job->arena, db_bytes(rows, 0, 4)),
                                             .full_page_writes = arena_slice(job->arena, db_bytes(rows, 0, 5)),
                                             .synchronous_commit = arena_slice(job->arena, db_bytes(rows, 0, 6)),
                                             .synchronous_standby_names = arena_slice(job->arena, db_bytes(rows, 0, 7)),
                                             .connections_max = db_int(rows, 0, 8),
                                             .connections = db_int(rows, 0, 9),
                                             .standbys = db_int(rows, 0, 10),
                                             .standby_lag_ms = db_is_null(rows, 0, 11) ? -1 : db_int(rows, 0, 11),
                                             .losses_open = db_int(rows, 0, 12)};
}

void store_list_engines(struct store *store, struct list_engines *list)
{
    struct job *job = read_job(store, &list->read, list);

    (void)job_query(job, &sql_engine_table, on_engines);
    (void)job_query(job, &sql_lease_table, on_shards);
    (void)job_query(job, &sql_database_facts, on_facts);
    job_submit(job);
}
