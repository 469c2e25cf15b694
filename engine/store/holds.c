/* Holds. People make, list and release them through any engine; every engine reads them and reports which version it
 * has. See holds.h. */
#include "store/holds.h"

#include "store/store_state.h"

static int64_t instant_at(const struct db_rows *rows, size_t i, int column)
{
    return db_is_null(rows, i, column) ? 0 : db_timestamptz(rows, i, column);
}

static void read_rows(struct job *job, const struct db_rows *rows, struct hold_row **out, size_t *count)
{
    *count = db_row_count(rows);
    *out = arena_array(job->arena, *count + 1, sizeof(**out));
    for (size_t i = 0; i < *count; i++) {
        (*out)[i] = (struct hold_row){.number = (uint64_t)db_int(rows, i, 0),
                                      .namespace = arena_slice(job->arena, db_bytes(rows, i, 1)),
                                      .body = arena_slice(job->arena, db_bytes(rows, i, 2)),
                                      .made_ms = db_timestamptz(rows, i, 3),
                                      .until_ms = instant_at(rows, i, 4),
                                      .released_ms = instant_at(rows, i, 5),
                                      .release = arena_slice(job->arena, db_bytes(rows, i, 6))};
    }
}

/* --- by people --- */

static void on_put(struct db_query *query, const struct db_rows *rows)
{
    struct hold_put *put = ((struct job *)query->context)->request;
    int64_t number = db_int(rows, 0, 0);

    put->number = number > 0 ? (uint64_t)number : 0;
}

void store_hold_put(struct store *store, struct hold_put *put)
{
    struct job *job = read_job(store, &put->read, put);
    struct db_args *args = job_query(job, &sql_hold_put, on_put);

    job->writes = true;
    db_arg_uuid(args, &put->id);
    db_arg_text(args, put->namespace);
    db_arg_bytea(args, put->body);
    if (put->until_ms) {
        db_arg_timestamptz(args, put->until_ms);
    } else {
        db_arg_null(args, DB_TIMESTAMPTZ);
    }
    db_arg_int8(args, (int64_t)put->max);
    db_arg_text(args, put->act);
    job_submit(job);
}

static void on_released(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    int64_t answer = db_int(rows, 0, 0);

    job->found = answer >= 0;
    ((struct hold_release *)job->request)->version = answer > 0 ? (uint64_t)answer : 0;
}

void store_hold_release(struct store *store, struct hold_release *release)
{
    struct job *job = read_job(store, &release->read, release);
    struct db_args *args = job_query(job, &sql_hold_release, on_released);

    job->writes = job->wants_one = true;
    db_arg_int8(args, (int64_t)release->number);
    db_arg_text(args, release->namespace);
    db_arg_bytea(args, release->body);
    db_arg_text(args, release->act);
    job_submit(job);
}

static void on_list(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct hold_list *list = job->request;

    read_rows(job, rows, &list->rows, &list->count);
    job->found = list->count > 0;
}

void store_hold_list(struct store *store, struct hold_list *list)
{
    struct job *job = read_job(store, &list->read, list);
    struct db_args *args = job_query(job, list->number ? &sql_hold_one : &sql_hold_list, on_list);

    job->wants_one = list->number != 0;
    db_arg_text(args, list->namespace);
    if (list->number) {
        db_arg_int8(args, (int64_t)list->number);
    } else {
        db_arg_int8(args, list->before ? (int64_t)list->before : INT64_MAX);
        db_arg_bool(args, list->with_ended);
        db_arg_int8(args, (int64_t)list->limit);
    }
    job_submit(job);
}

static void on_unseen(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct hold_unseen *unseen = job->request;

    unseen->count = db_row_count(rows);
    unseen->engines = arena_array(job->arena, unseen->count + 1, sizeof(*unseen->engines));
    for (size_t i = 0; i < unseen->count; i++) {
        unseen->engines[i].name = arena_slice(job->arena, db_bytes(rows, i, 0));
        unseen->engines[i].knows_none = db_int(rows, i, 1) != 0;
    }
}

void store_hold_unseen(struct store *store, struct hold_unseen *unseen)
{
    struct job *job = read_job(store, &unseen->read, unseen);

    db_arg_int8(job_query(job, &sql_hold_unseen, on_unseen), (int64_t)unseen->version);
    job_submit(job);
}

/* --- by engines --- */

static void on_version(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;

    job->found = db_row_count(rows) == 1;
    ((struct hold_load *)job->request)->version = job->found ? db_int(rows, 0, 0) : 0;
}

static void on_in_force(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct hold_load *load = job->request;

    read_rows(job, rows, &load->rows, &load->count);
}

void store_hold_load(struct store *store, struct hold_load *load)
{
    struct job *job = read_job(store, &load->read, load);

    job->wants_one = true;
    (void)job_query(job, &sql_hold_version, on_version); /* this statement and the next take no parameters */
    (void)job_query(job, &sql_hold_in_force, on_in_force);
    job_submit(job);
}

void store_hold_seen(struct store *store, struct hold_seen *seen)
{
    struct job *job = read_job(store, &seen->read, seen);
    struct db_args *args = job_query(job, &sql_hold_seen, NULL);

    job->writes = true;
    db_arg_text(args, slice_of(store->instance));
    db_arg_int8(args, seen->version);
    job_submit(job);
}

static void on_ended(struct db_query *query, const struct db_rows *rows)
{
    ((struct hold_tell_ended *)((struct job *)query->context)->request)->left_ms = db_int(rows, 0, 0);
}

void store_hold_tell_ended(struct store *store, struct hold_tell_ended *tell)
{
    struct job *job = read_job(store, &tell->read, tell);

    job->writes = true;
    (void)job_query(job, &sql_hold_tell_ended, on_ended); /* this statement takes no parameters */
    job_submit(job);
}

void store_watch_holds(struct store *store, void (*changed)(void *context), void *context)
{
    store->holds_changed = changed;
    store->holds_context = context;
}

void holds_notified(struct store *store)
{
    if (store->holds_changed && !store->closing) {
        store->holds_changed(store->holds_context);
    }
}
