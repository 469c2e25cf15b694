/*
 * Reads the logs of several sagas that are known by their ids, by one statement: the makers of traces read the log of
 * each saga that has ended, and one statement a saga would be a trip to the database for each.
 *
 * What one statement brings is bounded. A longer log is not brought, and its reader asks for it by itself.
 */
#include "store/store_state.h"

static void on_logs(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct read_logs *read = job->request;

    read->logs = arena_array(job->arena, read->count, sizeof(*read->logs)); /* zeroed: no turns */
    for (size_t row = 0; row < db_row_count(rows);) {
        int64_t number = db_int(rows, row, 0);
        size_t first = row, count = 0;
        bool fits = true;

        CHECK(number >= 1 && (size_t)number <= read->count);
        for (; row < db_row_count(rows) && db_int(rows, row, 0) == number; row++) {
            fits = fits && !db_is_null(rows, row, 3);
            count++;
        }
        struct saga_log *log = &read->logs[number - 1];

        if (!fits || count > LOG_TURNS_MAX) {
            log->is_long = true;
            continue;
        }
        log->turns = arena_array(job->arena, count, sizeof(*log->turns));
        log->turn_count = count;
        for (size_t i = 0; i < count; i++) {
            log->turns[i].first_seq = (uint64_t)db_int(rows, first + i, 1);
            log->turns[i].at_ms = db_timestamptz(rows, first + i, 2);
            log->turns[i].payload = arena_slice(job->arena, db_bytes(rows, first + i, 3));
            log->turns[i].epoch = db_int(rows, first + i, 4);
            turn_open(job->store, &read->ids[number - 1].uuid, &log->turns[i], job->arena);
        }
    }
}

void store_read_logs(struct store *store, struct read_logs *read)
{
    struct job *job = read_job(store, &read->read, read);
    struct db_args *args = job_query(job, &sql_saga_logs, on_logs);

    CHECK(read->count > 0 && read->count <= LOGS_MAX);
    db_array_begin(args, DB_INT2, read->count);
    for (size_t i = 0; i < read->count; i++) {
        uint32_t shard = saga_id_shard(read->ids[i]);

        db_item_int(args, shard < SHARD_COUNT ? (int64_t)shard : -1); /* an id that sagad did not make is not found */
    }
    db_array_end(args);
    db_array_begin(args, DB_UUID, read->count);
    for (size_t i = 0; i < read->count; i++) {
        db_item_uuid(args, &read->ids[i].uuid);
    }
    db_array_end(args);
    db_arg_int8(args, LOG_TURNS_MAX + 1);
    db_arg_int8(args, LOG_TURN_BYTES_MAX);
    job_submit(job);
}
