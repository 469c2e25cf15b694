/* Escalations and approvals as appends wrote them (append_batch.c): one by number, a page of them with the newest
 * first, or counts. */
#include "store/store_state.h"

static const struct statements {
    const struct db_statement *one, *list, *list_open, *group, *group_open;
} statements[] = {
    [QUESTION_ESCALATION] = {&sql_escalation_one, &sql_escalation_list, &sql_escalation_list_open, &sql_escalation_sum,
                             &sql_escalation_sum_open},
    [QUESTION_APPROVAL] = {&sql_approval_one, &sql_approval_list, &sql_approval_list_open, &sql_approval_sum,
                           &sql_approval_sum_open},
};

static void on_questions(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct list_questions *list = job->request;
    size_t count = db_row_count(rows);

    list->count = 0;
    list->has_edge = false;
    list->rows = arena_array(job->arena, count + 1, sizeof(*list->rows));
    for (size_t i = 0; i < count; i++) {
        struct question_row *row = &list->rows[list->count];

        if (db_int(rows, i, 10)) { /* the last row looked at, whether or not it fits */
            list->has_edge = true;
            list->edge = (uint64_t)db_int(rows, i, 0);
            list->edge_ms = db_timestamptz(rows, i, 4);
        }
        if (!db_int(rows, i, 9)) {
            continue;
        }
        row->number = (uint64_t)db_int(rows, i, 0);
        row->saga.uuid = db_uuid(rows, i, 1);
        row->body = arena_slice(
            job->arena, question_open(job->store,
                                      place_of_case(list->kind == QUESTION_ESCALATION ? "escalation" : "approval",
                                                    &row->saga.uuid, row->number),
                                      db_bytes(rows, i, 2), job->arena));
        row->open = db_int(rows, i, 3) != 0;
        row->opened_ms = db_timestamptz(rows, i, 4);
        row->saga_name = arena_slice(job->arena, db_bytes(rows, i, 5));
        row->business_id = arena_slice(job->arena, db_bytes(rows, i, 6));
        row->tags = arena_slice(job->arena, db_bytes(rows, i, 7));
        row->started_by = arena_slice(job->arena, db_bytes(rows, i, 8));
        row->is_read = list->kind == QUESTION_ESCALATION;
        row->acknowledged_by = arena_slice(job->arena, db_bytes(rows, i, 11));
        row->acknowledged_until_ms = db_is_null(rows, i, 12) ? 0 : db_timestamptz(rows, i, 12);
        row->assigned_to = arena_slice(job->arena, db_bytes(rows, i, 13));
        row->remark_count = db_int(rows, i, 14);
        row->remarks = arena_slice(job->arena, db_bytes(rows, i, 15));
        list->count++;
    }
    job->found = list->count > 0;
}

static void on_groups(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct list_questions *list = job->request;
    size_t count = db_row_count(rows);

    list->count = 0;
    list->has_edge = false;
    list->groups = arena_array(job->arena, count + 1, sizeof(*list->groups));
    for (size_t i = 0; i < count; i++) {
        struct question_group *group = &list->groups[list->count];

        if (db_int(rows, i, 12)) { /* the last row looked at is in this group, or fits none */
            list->has_edge = true;
            list->edge_ms = db_timestamptz(rows, i, 8);
        }
        if (!db_int(rows, i, 0)) {
            continue;
        }
        *group = (struct question_group){.tool = arena_slice(job->arena, db_bytes(rows, i, 1)),
                                         .saga = arena_slice(job->arena, db_bytes(rows, i, 2)),
                                         .step = arena_slice(job->arena, db_bytes(rows, i, 3)),
                                         .reason = arena_slice(job->arena, db_bytes(rows, i, 4)),
                                         .error = arena_slice(job->arena, db_bytes(rows, i, 5)),
                                         .tags = arena_slice(job->arena, db_bytes(rows, i, 6)),
                                         .count = (uint64_t)db_int(rows, i, 7),
                                         .oldest_ms = db_timestamptz(rows, i, 8),
                                         .newest_ms = db_timestamptz(rows, i, 9),
                                         .costs = arena_slice(job->arena, db_bytes(rows, i, 10)),
                                         .costless = (uint64_t)db_int(rows, i, 11)};
        list->count++;
    }
}

static void arg_instant(struct db_args *args, int64_t ms)
{
    if (ms > 0) {
        db_arg_timestamptz(args, ms);
    } else {
        db_arg_null(args, DB_TIMESTAMPTZ);
    }
}

static size_t looked_max(const struct list_questions *list)
{
    const struct question_filter *filter = &list->filter;
    bool reads_sagas =
        filter->saga_count + filter->tag_count > 0 || (list->by && (list->by->saga || list->by->tag_count > 0));

    return list->looked_max ? list->looked_max : reads_sagas ? QUESTIONS_LOOKED_AT_BY_SAGA : QUESTIONS_LOOKED_AT;
}

/* $5 to $18 */
static void arg_filter(struct db_args *args, const struct list_questions *list)
{
    const struct question_filter *filter = &list->filter;

    db_arg_int8(args, (int64_t)looked_max(list));
    arg_instant(args, filter->since_ms);
    arg_instant(args, filter->until_ms);
    read_arg_texts(args, filter->statuses, list->open_only ? 0 : filter->status_count);
    read_arg_texts(args, filter->tools, filter->tool_count);
    read_arg_texts(args, filter->sagas, filter->saga_count);
    read_arg_texts(args, filter->steps, filter->step_count);
    read_arg_texts(args, filter->reasons, filter->reason_count);
    read_arg_texts(args, filter->errors, filter->error_count);
    read_arg_texts(args, filter->tags, filter->tag_count);
    if (filter->has_cost) {
        db_arg_int8(args, filter->cost_above);
    } else {
        db_arg_null(args, DB_INT8);
    }
    if (filter->has_acknowledged) {
        db_arg_bool(args, filter->acknowledged);
    } else {
        db_arg_null(args, DB_BOOL);
    }
    db_arg_timestamptz(args, filter->now_ms);
    read_arg_texts(args, filter->assigned, filter->assigned_count);
}

/* $19 to $24 */
static void arg_grouping(struct db_args *args, const struct question_grouping *by)
{
    db_arg_bool(args, by->tool);
    db_arg_bool(args, by->saga);
    db_arg_bool(args, by->step);
    db_arg_bool(args, by->reason);
    db_arg_bool(args, by->error);
    read_arg_texts(args, by->tags, by->tag_count);
}

static void ask_one(struct job *job, const struct list_questions *list)
{
    struct db_args *args = job_query(job, statements[list->kind].one, on_questions);

    job->wants_one = true;
    db_arg_int2(args, (int)(list->number % SHARD_COUNT));
    db_arg_int8(args, list->number <= INT64_MAX ? (int64_t)list->number : 0);
    db_arg_text(args, list->namespace);
}

static void ask_many(struct job *job, struct list_questions *list)
{
    const struct statements *of = &statements[list->kind];
    struct db_args *args = list->by ? job_query(job, list->open_only ? of->group_open : of->group, on_groups)
                                    : job_query(job, list->open_only ? of->list_open : of->list, on_questions);

    arg_instant(args, list->before > 0 ? list->before_ms : 0);
    if (list->before > 0) {
        db_arg_int8(args, (int64_t)list->before);
    } else {
        db_arg_null(args, DB_INT8);
    }
    db_arg_text(args, list->namespace);
    db_arg_int8(args, (int64_t)list->limit);
    list->looked = looked_max(list);
    arg_filter(args, list);
    if (list->by) {
        arg_grouping(args, list->by);
    }
}

void store_list_questions(struct store *store, struct list_questions *list)
{
    struct job *job = read_job(store, &list->read, list);

    if (list->number > 0) {
        ask_one(job, list);
    } else {
        ask_many(job, list);
    }
    job_submit(job);
}
