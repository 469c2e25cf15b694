/*
 * Locks on business keys: asking for one. They are released by the append that ends their saga (append_batch.c); who
 * comes next is decided in schema/migrations/0007_waiting.sql.
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

/* A repeat takes nothing twice, and one that comes late, when the saga has ended, takes nothing. */
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
