/*
 * The way of all requests other than appends: one transaction on the least busy reader, with answers copied into the
 * request's arena. When that connection is lost, another one that is up is tried; without one the request ends with
 * ERR_STORE. A write whose answer was lost waits for a connection and is repeated. A write that must not be repeated
 * ends with ERR_LOST_COMMIT.
 */
#include <string.h>

#include "store/store_state.h"

enum { JOB_TRIES_MAX = 5, OUTRUN_MAX = 20 };

struct job *job_new(struct store *store, struct arena *arena, void *request, void (*finish)(struct job *job))
{
    struct job *job = arena_alloc(arena, sizeof(*job));

    job->store = store;
    job->arena = arena;
    job->request = request;
    job->finish = finish;
    return job;
}

struct db_args *job_query(struct job *job, const struct db_statement *statement,
                          void (*on_rows)(struct db_query *, const struct db_rows *))
{
    struct db_query *query = &job->queries[job->query_count++];

    CHECK(job->query_count <= JOB_QUERIES_MAX);
    *query =
        (struct db_query){.statement = statement, .args = db_args_new(job->arena), .on_rows = on_rows, .context = job};
    return query->args;
}

void arg_shards(struct db_args *args, uint64_t shards)
{
    db_array_begin(args, DB_INT2, (size_t)__builtin_popcountll(shards));
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        if (shards >> shard & 1) {
            db_item_int(args, shard);
        }
    }
    db_array_end(args);
}

int64_t row_next_ms(const struct db_rows *rows)
{
    return db_row_count(rows) == 1 && !db_is_null(rows, 0, 0) ? db_timestamptz(rows, 0, 0) : INT64_MAX;
}

/* What was read without a key that it needs is no answer: nobody may take its sagas for unreadable ones. */
static void job_end(struct job *job, enum err_code code)
{
    if (code == ERR_OK && job->store->refused && !job->writes) {
        code = err_set(&job->err, ERR_STORE, "sagad must not run on this database");
    }
    job->code = code;
    job->finish(job);
}

static void on_job_done(struct db_transaction *transaction);

static void job_send(struct job *job, struct conn *conn)
{
    job->found = false;
    memset(&job->transaction, 0, sizeof(job->transaction));
    job->transaction.queries = job->queries;
    job->transaction.count = job->query_count;
    job->transaction.read_only = !job->writes;
    job->transaction.done = on_job_done;
    db_submit(conn->db, &job->transaction);
}

/* A version that another transaction has made, or one that each of two waits for: unique_violation,
 * deadlock_detected. */
static bool was_outrun(const struct job *job, const struct db_transaction *transaction)
{
    return job->outrun && (strcmp(transaction->sqlstate, "23505") == 0 || strcmp(transaction->sqlstate, "40P01") == 0);
}

static void on_job_done(struct db_transaction *transaction)
{
    struct job *job = container_of(transaction, struct job, transaction);
    struct conn *conn;

    switch (transaction->outcome) {
    case DB_COMMITTED:
        if (job->wants_one && !job->found) {
            job_end(job, err_set(&job->err, ERR_NOT_FOUND, "there is no such thing"));
        } else {
            job_end(job, ERR_OK);
        }
        break;
    case DB_REFUSED:
        conn = store_reader(job->store);
        if (!transaction->sqlstate[0] && conn && !job->store->closing && ++job->tries <= JOB_TRIES_MAX) {
            job_send(job, conn); /* only this connection is gone */
            return;
        }
        if (was_outrun(job, transaction) && conn && !job->store->closing && ++job->tries <= OUTRUN_MAX) {
            job->outrun(job);
            job_send(job, conn);
            return;
        }
        job->err = transaction->err;
        job->err.code = ERR_STORE;
        job_end(job, ERR_STORE);
        break;
    case DB_UNKNOWN:
        job->err = transaction->err;
        if (job->once || job->store->closing || ++job->tries > JOB_TRIES_MAX) {
            job_end(job, ERR_LOST_COMMIT);
            return;
        }
        list_push(&job->store->jobs, &job->link);
        jobs_run(job->store);
        break;
    }
}

static void on_job_unsent(struct deferred *deferred)
{
    struct job *job = container_of(deferred, struct job, deferred);

    err_set(&job->err, ERR_STORE, "the database does not answer");
    err_detail(&job->err, "%s", job->store->away_err.message);
    job_end(job, ERR_STORE);
}

void job_submit(struct job *job)
{
    struct conn *conn = job->store->closing ? NULL : store_reader(job->store);

    if (conn) {
        job_send(job, conn);
    } else {
        loop_defer(job->store->loop, &job->deferred, on_job_unsent);
    }
}

void jobs_run(struct store *store)
{
    struct conn *conn;

    while (!list_empty(&store->jobs) && (conn = store_reader(store)) != NULL) {
        job_send(LIST_ITEM(list_pop(&store->jobs), struct job, link), conn);
    }
}

void jobs_stop(struct store *store)
{
    struct list_link *link;

    while ((link = list_pop(&store->jobs)) != NULL) {
        job_end(container_of(link, struct job, link), ERR_LOST_COMMIT);
    }
}

/* --- struct store_read --- */

void read_finished(struct job *job)
{
    struct store_read *read = job->request;

    read->code = job->code;
    read->err = job->err;
    read->internal = NULL;
    read->done(read);
}

struct job *read_job(struct store *store, struct store_read *read, void *request)
{
    struct job *job = job_new(store, read->arena, read, read_finished);

    CHECK(request == (void *)read && read->done); /* each request has struct store_read as its first member */
    read->internal = job;
    return job;
}

void read_row(const struct db_rows *rows, size_t row, struct arena *arena, struct saga_row *out)
{
    out->id.uuid = db_uuid(rows, row, 0);
    out->namespace = arena_slice(arena, db_bytes(rows, row, 1));
    out->saga_name = arena_slice(arena, db_bytes(rows, row, 2));
    out->version = (uint32_t)db_int(rows, row, 3);
    if (!saga_status_parse(db_bytes(rows, row, 4), &out->status)) {
        out->status = SAGA_RUNNING; /* the check of the table allows no other status */
    }
    out->tags = arena_slice(arena, db_bytes(rows, row, 5));
    out->business_id = arena_slice(arena, db_bytes(rows, row, 6));
    out->created_ms = db_timestamptz(rows, row, 7);
    out->updated_ms = db_timestamptz(rows, row, 8);
    out->ended_ms = db_is_null(rows, row, 9) ? 0 : db_timestamptz(rows, row, 9);
}

void read_arg_texts(struct db_args *args, const struct slice *texts, size_t count)
{
    db_array_begin(args, DB_TEXT, count);
    for (size_t i = 0; i < count; i++) {
        db_item_bytes(args, texts[i]);
    }
    db_array_end(args);
}
