/* Debts that somebody has settled: rows beside the logs of sagas that have ended. */
#include "store/cases.h"

#include "store/store_state.h"

static void on_settle(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct debt_settle *settle = job->request;

    job->found = db_row_count(rows) == 1 && !db_is_null(rows, 0, 0);
    if (job->found) {
        settle->body = arena_slice(job->arena, db_bytes(rows, 0, 0));
    }
}

void store_debt_settle(struct store *store, struct debt_settle *settle)
{
    struct job *job = read_job(store, &settle->read, settle);
    struct db_args *args = job_query(job, &sql_debt_settle, on_settle);

    job->writes = true;
    job->wants_one = true;
    db_arg_int2(args, (int)saga_id_shard(settle->saga));
    db_arg_uuid(args, &settle->saga.uuid);
    db_arg_text(args, settle->namespace);
    db_arg_uuid(args, &settle->key.uuid);
    db_arg_bytea(args, settle->body);
    db_arg_int4(args, (int)settle->debt_count);
    if (settle->forget_ms > 0) {
        db_arg_timestamptz(args, settle->forget_ms);
    } else {
        db_arg_null(args, DB_TIMESTAMPTZ);
    }
    db_arg_text(args, settle->act);
    job_submit(job);
}

static void on_settled(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct debt_settled *settled = job->request;

    settled->count = db_row_count(rows);
    settled->rows = arena_array(job->arena, settled->count + 1, sizeof(*settled->rows));
    for (size_t i = 0; i < settled->count; i++) {
        settled->rows[i] = (struct debt_settled_row){.saga = db_uuid(rows, i, 0),
                                                     .key = {db_uuid(rows, i, 1)},
                                                     .body = arena_slice(job->arena, db_bytes(rows, i, 2))};
    }
}

void store_debt_settled(struct store *store, struct debt_settled *settled)
{
    struct job *job = read_job(store, &settled->read, settled);
    struct db_args *args = job_query(job, &sql_debt_settled, on_settled);

    db_array_begin(args, DB_INT2, settled->saga_count);
    for (size_t i = 0; i < settled->saga_count; i++) {
        db_item_int(args, saga_id_shard(settled->sagas[i]));
    }
    db_array_end(args);
    db_array_begin(args, DB_UUID, settled->saga_count);
    for (size_t i = 0; i < settled->saga_count; i++) {
        db_item_uuid(args, &settled->sagas[i].uuid);
    }
    db_array_end(args);
    job_submit(job);
}
