/* Reads which engines are there and which shards each holds, together. lease_fleet.c does the reckoning of the engines
 * themselves. */
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

void store_list_engines(struct store *store, struct list_engines *list)
{
    struct job *job = read_job(store, &list->read, list);

    (void)job_query(job, &sql_engine_table, on_engines);
    (void)job_query(job, &sql_lease_table, on_shards);
    job_submit(job);
}
