/* Cases that no log tells of. Only the owner of the shard writes them, beside the log. See
 * schema/migrations/0016_case.sql. */
#include "store/cases.h"

#include "store/store_state.h"

static void on_put(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct case_put *put = job->request;
    int64_t number = db_row_count(rows) == 1 ? db_int(rows, 0, 0) : 0;

    put->fenced = number == 0;
    put->decided = number < 0;
    put->stands_as = number > 0 ? (uint64_t)number : 0;
}

/* Ends a read, and consumes the input that belongs to it. */
static void on_finished(struct job *job)
{
    const struct case_put *put = job->request;

    if (job->code == ERR_OK && put->stands_as > 0 && !uuid_is_nil(&put->input)) {
        inbox_consumed(job->store, &put->input); /* a poll that began meanwhile may still have seen the row */
    }
    read_finished(job);
}

void store_case_put(struct store *store, struct case_put *put)
{
    struct job *job = read_job(store, &put->read, put);
    struct db_args *args = job_query(job, &sql_case_put, on_put);

    CHECK(put->shard < SHARD_COUNT && put->number % SHARD_COUNT == put->shard && put->number > 0);
    job->writes = true;
    job->finish = on_finished;
    if (put->sealed_of.ptr != put->body.ptr || put->sealed_of.len != put->body.len) {
        put->sealed =
            question_seal(store, place_of_case("escalation", &put->saga.uuid, put->number), put->body, job->arena);
        put->sealed_of = put->body;
    }
    db_arg_int2(args, (int)put->shard);
    db_arg_int8(args, put->epoch);
    db_arg_int8(args, (int64_t)put->number);
    db_arg_uuid(args, &put->saga.uuid);
    db_arg_text(args, put->namespace);
    db_arg_timestamptz(args, put->opened_ms);
    if (put->resolved_ms > 0) {
        db_arg_timestamptz(args, put->resolved_ms);
    } else {
        db_arg_null(args, DB_TIMESTAMPTZ);
    }
    db_arg_text(args, put->reason);
    db_arg_bytea(args, put->sealed);
    db_arg_uuid(args, &put->input);
    db_arg_bool(args, put->ends_saga);
    db_arg_text(args, put->act);
    job_submit(job);
}

const char *remark_kind_name(enum remark_kind kind)
{
    static const char *const names[] = {
        [REMARK_ACKNOWLEDGE] = "acknowledge", [REMARK_ASSIGN] = "assign", [REMARK_COMMENT] = "comment"};

    return names[kind];
}

static void on_remark(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct case_remark *remark = job->request;

    job->found = db_row_count(rows) == 1 && !db_is_null(rows, 0, 0);
    remark->full = job->found && db_int(rows, 0, 0) == 0;
}

void store_case_remark(struct store *store, struct case_remark *remark)
{
    struct job *job = read_job(store, &remark->read, remark);
    struct db_args *args = job_query(job, &sql_case_remark, on_remark);

    job->writes = true;
    job->wants_one = true;
    db_arg_int2(args, (int)(remark->number % SHARD_COUNT));
    db_arg_int8(args, remark->number <= INT64_MAX ? (int64_t)remark->number : 0);
    db_arg_text(args, remark->namespace);
    db_arg_uuid(args, &remark->id);
    db_arg_text(args, slice_of(remark_kind_name(remark->kind)));
    db_arg_text(args, remark->by);
    if (remark->until_ms > 0) {
        db_arg_timestamptz(args, remark->until_ms);
    } else {
        db_arg_null(args, DB_TIMESTAMPTZ);
    }
    if (remark->to.len > 0) {
        db_arg_text(args, remark->to);
    } else {
        db_arg_null(args, DB_TEXT);
    }
    db_arg_text(args, remark->text);
    db_arg_int4(args, CASE_REMARKS_MAX);
    db_arg_text(args, remark->act);
    job_submit(job);
}
