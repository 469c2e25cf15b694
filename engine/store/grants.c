/* Grants are read from the database with each use, so that one that was revoked is refused by every engine. */
#include "store/grants.h"

#include <string.h>

#include "store/store_state.h"

static void read_rows(struct job *job, const struct db_rows *rows, struct grant_row **out, size_t *count)
{
    *count = db_row_count(rows);
    *out = arena_array(job->arena, *count + 1, sizeof(**out));
    for (size_t i = 0; i < *count; i++) {
        struct grant_row *row = &(*out)[i];
        struct slice secret = db_bytes(rows, i, 1);

        *row = (struct grant_row){.id = db_uuid(rows, i, 0),
                                  .namespace = arena_slice(job->arena, db_bytes(rows, i, 2)),
                                  .body = arena_slice(job->arena, db_bytes(rows, i, 3)),
                                  .made_ms = db_timestamptz(rows, i, 4),
                                  .expires_ms = db_timestamptz(rows, i, 5),
                                  .revoked_ms = db_is_null(rows, i, 6) ? 0 : db_timestamptz(rows, i, 6),
                                  .revocation = arena_slice(job->arena, db_bytes(rows, i, 7))};
        if (secret.len == sizeof(row->secret.bytes)) { /* no token has this digest */
            memcpy(row->secret.bytes, secret.ptr, secret.len);
        }
    }
}

static void on_put(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;

    job->found = db_row_count(rows) == 1 && !db_is_null(rows, 0, 0);
    ((struct grant_put *)job->request)->made_ms = job->found ? db_timestamptz(rows, 0, 0) : 0;
}

void store_grant_put(struct store *store, struct grant_put *put)
{
    struct job *job = read_job(store, &put->read, put);
    struct db_args *args = job_query(job, &sql_grant_put, on_put);

    job->writes = job->wants_one = true;
    db_arg_uuid(args, &put->id);
    db_arg_bytea(args, (struct slice){(const char *)put->secret.bytes, sizeof(put->secret.bytes)});
    db_arg_text(args, put->namespace);
    db_arg_bytea(args, put->body);
    db_arg_timestamptz(args, put->expires_ms);
    if (uuid_is_nil(&put->saga.uuid)) {
        db_arg_null(args, DB_INT2);
        db_arg_null(args, DB_UUID);
    } else { /* no shard has a saga with an id that no saga can have */
        uint32_t shard = saga_id_shard(put->saga);

        db_arg_int2(args, shard < SHARD_COUNT ? (int)shard : -1);
        db_arg_uuid(args, &put->saga.uuid);
    }
    db_arg_text(args, put->act);
    job_submit(job);
}

static void on_read(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct grant_read *grants = job->request;

    read_rows(job, rows, &grants->rows, &grants->count);
}

void store_grant_read(struct store *store, struct grant_read *grants)
{
    struct job *job = read_job(store, &grants->read, grants);
    struct db_args *args = job_query(job, &sql_grant_read, on_read);

    db_array_begin(args, DB_UUID, grants->id_count);
    for (size_t i = 0; i < grants->id_count; i++) {
        db_item_uuid(args, &grants->ids[i]);
    }
    db_array_end(args);
    job_submit(job);
}

static void on_list(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct grant_list *list = job->request;

    read_rows(job, rows, &list->rows, &list->count);
}

void store_grant_list(struct store *store, struct grant_list *list)
{
    struct job *job = read_job(store, &list->read, list);
    struct db_args *args = job_query(job, &sql_grant_list, on_list);
    struct uuid last;

    memset(&last, 0xff, sizeof(last));
    db_arg_text(args, list->namespace);
    db_arg_uuid(args, uuid_is_nil(&list->before) ? &last : &list->before);
    db_arg_bool(args, list->with_ended);
    db_arg_int8(args, (int64_t)list->limit);
    job_submit(job);
}

static void on_revoked(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    size_t count;

    read_rows(job, rows, &((struct grant_revoke *)job->request)->row, &count);
    job->found = count == 1;
}

void store_grant_revoke(struct store *store, struct grant_revoke *revoke)
{
    struct job *job = read_job(store, &revoke->read, revoke);
    struct db_args *args = job_query(job, &sql_grant_revoke, on_revoked);

    job->writes = job->wants_one = true;
    db_arg_uuid(args, &revoke->id);
    db_arg_text(args, revoke->namespace);
    db_arg_bytea(args, revoke->revocation);
    db_arg_text(args, revoke->issuer_token);
    db_arg_text(args, revoke->act);
    job_submit(job);
}
