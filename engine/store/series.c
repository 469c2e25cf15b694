/* Figures over time. Every engine writes them, one engine rolls them up and deletes them, and people read them. See
 * schema/migrations/0021_series.sql. */
#include "store/figures.h"
#include "store/store_state.h"

static const char *const kind_names[SERIES_KIND_COUNT] = {[SERIES_SAGA] = "saga", [SERIES_TOOL] = "tool"};

void store_series_add(struct store *store, struct series_add *add)
{
    struct job *job = read_job(store, &add->read, add);
    struct db_args *args = job_query(job, &sql_series_add, NULL);

    job->writes = true;
    db_arg_uuid(args, &add->part);
    db_arg_timestamptz(args, add->at_ms);
    db_array_begin(args, DB_TEXT, add->count);
    for (size_t i = 0; i < add->count; i++) {
        db_item_bytes(args, add->rows[i].namespace);
    }
    db_array_end(args);
    db_array_begin(args, DB_TEXT, add->count);
    for (size_t i = 0; i < add->count; i++) {
        db_item_bytes(args, slice_of(kind_names[add->rows[i].kind]));
    }
    db_array_end(args);
    db_array_begin(args, DB_TEXT, add->count);
    for (size_t i = 0; i < add->count; i++) {
        db_item_bytes(args, add->rows[i].name);
    }
    db_array_end(args);
    for (size_t k = 0; k < SERIES_FIGURE_COUNT; k++) {
        db_array_begin(args, DB_INT8, add->count);
        for (size_t i = 0; i < add->count; i++) {
            db_item_int(args, add->rows[i].figures[k]);
        }
        db_array_end(args);
    }
    job_submit(job);
}

static void on_rolled(struct db_query *query, const struct db_rows *rows)
{
    ((struct series_roll *)((struct job *)query->context)->request)->rolled = db_int(rows, 0, 0);
}

static void on_dropped(struct db_query *query, const struct db_rows *rows)
{
    ((struct series_roll *)((struct job *)query->context)->request)->dropped = db_int(rows, 0, 0);
}

void store_series_roll(struct store *store, struct series_roll *roll)
{
    struct job *job = read_job(store, &roll->read, roll);
    struct db_args *args = job_query(job, &sql_series_roll, on_rolled);

    job->writes = true;
    db_arg_timestamptz(args, roll->minutes_before_ms);
    db_arg_int8(args, (int64_t)roll->limit);
    args = job_query(job, &sql_series_drop, on_dropped);
    db_arg_timestamptz(args, roll->hours_before_ms);
    db_arg_int8(args, (int64_t)roll->limit);
    job_submit(job);
}

static void on_list(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct series_list *list = job->request;

    list->count = db_row_count(rows);
    list->rows = arena_array(job->arena, list->count + 1, sizeof(*list->rows));
    for (size_t i = 0; i < list->count; i++) {
        list->rows[i].at_ms = db_timestamptz(rows, i, 0);
        list->rows[i].name = arena_slice(job->arena, db_bytes(rows, i, 1));
        for (size_t k = 0; k < SERIES_FIGURE_COUNT; k++) {
            list->rows[i].figures[k] = db_int(rows, i, (int)(2 + k));
        }
    }
}

void store_series_list(struct store *store, struct series_list *list)
{
    struct job *job = read_job(store, &list->read, list);
    struct db_args *args = job_query(job, &sql_series_list, on_list);

    db_arg_text(args, list->namespace);
    db_arg_bool(args, list->by_hour);
    db_arg_timestamptz(args, list->from_ms);
    db_arg_timestamptz(args, list->until_ms);
    db_arg_text(args, list->kind < SERIES_KIND_COUNT ? slice_of(kind_names[list->kind]) : SLICE_NONE);
    db_arg_text(args, list->name);
    db_arg_int8(args, (int64_t)list->limit);
    job_submit(job);
}
