/*
 * Asks for locks on business keys. The append that ends a saga releases its locks (append_batch.c).
 * schema/migrations/0007_waiting.sql decides who comes next.
 */
#include "store/store_state.h"

#define LOCK_DIGEST_BYTES 16

static void locks_on_taken(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct lock_take *take = job->request;

    job->found = db_row_count(rows) == 1;
    take->held = job->found && db_int(rows, 0, 0) != 0;
}

/* A repeated request takes nothing twice. A late one, after the saga has ended, takes nothing. */
void store_lock_take(struct store *store, struct lock_take *take)
{
    struct job *job = read_job(store, &take->read, take);
    struct db_args *args = job_query(job, &sql_lock_take, locks_on_taken);
    const struct slice fields[] = {take->namespace, take->key};
    struct digest digest = digest_fields("lock", fields, COUNT_OF(fields));

    CHECK(take->shard < SHARD_COUNT);
    take->held = false;
    job->writes = job->wants_one = true;
    db_arg_int2(args, digest.bytes[LOCK_DIGEST_BYTES - 1] % SHARD_COUNT);
    db_arg_bytea(args, (struct slice){(const char *)digest.bytes, LOCK_DIGEST_BYTES});
    db_arg_text(args, take->namespace);
    db_arg_text(args, take->key);
    db_arg_int2(args, (int)take->shard);
    db_arg_uuid(args, &take->saga.uuid);
    db_arg_bool(args, take->fails);
    job_submit(job);
}
