/* Escalations and approvals as appends left them (append_batch.c writes them): one by number, or a page of them, newest
 * first. */
#include <string.h>

#include "store/store_state.h"

static const struct statements {
    const struct db_statement *one, *list, *list_open;
} statements[] = {
    [QUESTION_ESCALATION] = {&sql_escalation_one, &sql_escalation_list, &sql_escalation_list_open},
    [QUESTION_APPROVAL] = {&sql_approval_one, &sql_approval_list, &sql_approval_list_open},
};

static void on_questions(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct list_questions *list = job->request;

    list->count = db_row_count(rows);
    list->rows = arena_array(job->arena, list->count + 1, sizeof(*list->rows));
    for (size_t i = 0; i < list->count; i++) {
        list->rows[i].number = (uint64_t)db_int(rows, i, 0);
        list->rows[i].saga.uuid = db_uuid(rows, i, 1);
        list->rows[i].body = arena_slice(job->arena, db_bytes(rows, i, 2));
        list->rows[i].open = db_int(rows, i, 3) != 0;
        list->rows[i].opened_ms = db_timestamptz(rows, i, 4);
        list->rows[i].saga_name = arena_slice(job->arena, db_bytes(rows, i, 5));
        list->rows[i].business_id = arena_slice(job->arena, db_bytes(rows, i, 6));
        list->rows[i].tags = arena_slice(job->arena, db_bytes(rows, i, 7));
        list->rows[i].started_by = arena_slice(job->arena, db_bytes(rows, i, 8));
    }
    job->found = list->count > 0;
}

enum { STATUSES_MAX = 8 };

static size_t statuses_of(struct slice list, struct slice out[STATUSES_MAX])
{
    size_t count = 0;

    while (list.len > 0 && count < STATUSES_MAX) {
        const char *comma = memchr(list.ptr, ',', list.len);
        size_t len = comma ? (size_t)(comma - list.ptr) : list.len;

        out[count++] = (struct slice){list.ptr, len};
        list = (struct slice){list.ptr + len + (comma != NULL), list.len - len - (comma != NULL)};
    }
    return count;
}

static void arg_statuses(struct db_args *args, struct slice list)
{
    struct slice statuses[STATUSES_MAX];
    size_t count = statuses_of(list, statuses);

    db_array_begin(args, DB_TEXT, count);
    for (size_t i = 0; i < count; i++) {
        db_item_bytes(args, statuses[i]);
    }
    db_array_end(args);
}

void store_list_questions(struct store *store, struct list_questions *list)
{
    const struct statements *of = &statements[list->kind];
    struct job *job = read_job(store, &list->read, list);
    struct db_args *args;

    if (list->number > 0) {
        job->wants_one = true;
        args = job_query(job, of->one, on_questions);
        db_arg_int2(args, (int)(list->number % SHARD_COUNT));
        db_arg_int8(args, list->number <= INT64_MAX ? (int64_t)list->number : 0);
        db_arg_text(args, list->namespace);
    } else {
        args = job_query(job, list->open_only ? of->list_open : of->list, on_questions);
        if (list->before > 0) {
            db_arg_timestamptz(args, list->before_ms);
            db_arg_int8(args, (int64_t)list->before);
        } else {
            db_arg_null(args, DB_TIMESTAMPTZ);
            db_arg_null(args, DB_INT8);
        }
        db_arg_text(args, list->namespace);
        db_arg_int8(args, (int64_t)list->limit);
        if (!list->open_only) {
            arg_statuses(args, list->status);
        }
    }
    job_submit(job);
}
