/* Notifications: see notify.h. */
#include "store/notify.h"

#include "store/store_state.h"

uint32_t notify_shard(const struct notify_name *of)
{
    const struct slice fields[] = {of->namespace, of->name};

    return digest_fields("notify", fields, COUNT_OF(fields)).bytes[0] % SHARD_COUNT;
}

static void arg_name(struct db_args *args, const struct notify_name *of)
{
    db_arg_text(args, of->namespace);
    db_arg_text(args, of->name);
}

static void read_notification(struct job *job, const struct db_rows *rows, size_t i, struct notification_row *out)
{
    *out = (struct notification_row){.name = arena_slice(job->arena, db_bytes(rows, i, 0)),
                                     .number = (uint64_t)db_int(rows, i, 1),
                                     .event = arena_slice(job->arena, db_bytes(rows, i, 2)),
                                     .body = arena_slice(job->arena, db_bytes(rows, i, 3)),
                                     .state = slice_is(db_bytes(rows, i, 4), "dead") ? NOTIFICATION_DEAD
                                                                                     : NOTIFICATION_PENDING,
                                     .attempts = (uint32_t)db_int(rows, i, 5),
                                     .since_ms = db_timestamptz(rows, i, 6),
                                     .until_ms = db_timestamptz(rows, i, 7),
                                     .look_ms = db_timestamptz(rows, i, 8),
                                     .error = arena_slice(job->arena, db_bytes(rows, i, 9))};
}

/* --- by the owner of the shard --- */

static void on_cursor(struct db_query *query, const struct db_rows *rows)
{
    struct notify_take *take = ((struct job *)query->context)->request;

    take->is_known = !db_is_null(rows, 0, 0);
    take->tx = take->is_known ? db_int(rows, 0, 0) : 0;
    take->next_ms = db_is_null(rows, 0, 1) ? INT64_MAX : db_timestamptz(rows, 0, 1);
}

static void on_due(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct notify_take *take = job->request;

    take->count = db_row_count(rows);
    take->rows = arena_array(job->arena, take->count + 1, sizeof(*take->rows));
    for (size_t i = 0; i < take->count; i++) {
        read_notification(job, rows, i, &take->rows[i]);
    }
}

void store_notify_take(struct store *store, struct notify_take *take)
{
    struct job *job = read_job(store, &take->read, take);
    struct db_args *args = job_query(job, &sql_notify_cursor, on_cursor);

    db_arg_int2(args, (int)notify_shard(&take->of));
    arg_name(args, &take->of);
    args = job_query(job, &sql_notify_due, on_due);
    db_arg_int2(args, (int)notify_shard(&take->of));
    arg_name(args, &take->of);
    db_arg_timestamptz(args, take->now_ms);
    db_arg_int8(args, (int64_t)take->limit);
    job_submit(job);
}

static void on_put(struct db_query *query, const struct db_rows *rows)
{
    struct notify_put *put = ((struct job *)query->context)->request;
    int64_t answer = db_int(rows, 0, 0);

    put->end = answer == 0 ? NOTIFY_FENCED : answer == 1 ? NOTIFY_PUT : NOTIFY_MOVED;
}

void store_notify_put(struct store *store, struct notify_put *put)
{
    struct job *job = read_job(store, &put->read, put);
    struct db_args *args = job_query(job, &sql_notify_put, on_put);

    job->writes = true;
    db_arg_int2(args, (int)notify_shard(&put->of));
    db_arg_int8(args, put->epoch);
    arg_name(args, &put->of);
    if (put->is_known) {
        db_arg_int8(args, put->before);
    } else {
        db_arg_null(args, DB_INT8);
    }
    db_arg_int8(args, put->tx);
    db_array_begin(args, DB_TEXT, put->count);
    for (size_t i = 0; i < put->count; i++) {
        db_item_bytes(args, put->events[i].id);
    }
    db_array_end(args);
    db_array_begin(args, DB_BYTEA, put->count);
    for (size_t i = 0; i < put->count; i++) {
        db_item_bytes(args, put->events[i].body);
    }
    db_array_end(args);
    db_arg_timestamptz(args, put->now_ms);
    db_arg_timestamptz(args, put->until_ms);
    job_submit(job);
}

static void on_settled(struct db_query *query, const struct db_rows *rows)
{
    struct notify_settle *settle = ((struct job *)query->context)->request;

    settle->fenced = db_int(rows, 0, 0) == 0;
}

static struct slice state_of(const struct notify_outcome *outcome)
{
    return outcome->done ? SLICE("done") : outcome->state == NOTIFICATION_DEAD ? SLICE("dead") : SLICE("pending");
}

void store_notify_settle(struct store *store, struct notify_settle *settle)
{
    struct job *job = read_job(store, &settle->read, settle);
    struct db_args *args = job_query(job, &sql_notify_settle, on_settled);
    const struct notify_outcome *outcomes = settle->outcomes;

    job->writes = true;
    db_arg_int2(args, (int)notify_shard(&settle->of));
    db_arg_int8(args, settle->epoch);
    arg_name(args, &settle->of);
    db_array_begin(args, DB_INT8, settle->count);
    for (size_t i = 0; i < settle->count; i++) {
        db_item_int(args, (int64_t)outcomes[i].number);
    }
    db_array_end(args);
    db_array_begin(args, DB_TEXT, settle->count);
    for (size_t i = 0; i < settle->count; i++) {
        db_item_bytes(args, state_of(&outcomes[i]));
    }
    db_array_end(args);
    db_array_begin(args, DB_TIMESTAMPTZ, settle->count);
    for (size_t i = 0; i < settle->count; i++) {
        db_item_timestamptz(args, outcomes[i].look_ms);
    }
    db_array_end(args);
    db_array_begin(args, DB_INT4, settle->count);
    for (size_t i = 0; i < settle->count; i++) {
        db_item_int(args, outcomes[i].attempts);
    }
    db_array_end(args);
    db_array_begin(args, DB_TEXT, settle->count);
    for (size_t i = 0; i < settle->count; i++) {
        db_item_bytes(args, outcomes[i].error);
    }
    db_array_end(args);
    job_submit(job);
}

/* --- by people --- */

static void on_list(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct notification_list *list = job->request;

    list->count = db_row_count(rows);
    list->rows = arena_array(job->arena, list->count + 1, sizeof(*list->rows));
    for (size_t i = 0; i < list->count; i++) {
        read_notification(job, rows, i, &list->rows[i]);
    }
}

void store_notification_list(struct store *store, struct notification_list *list)
{
    struct job *job = read_job(store, &list->read, list);
    struct db_args *args = job_query(job, &sql_notification_list, on_list);

    db_arg_text(args, list->namespace);
    db_arg_text(args, list->name);
    db_arg_text(args, list->state);
    db_arg_text(args, list->after_name.ptr ? list->after_name : SLICE(""));
    db_arg_int8(args, (int64_t)list->after);
    db_arg_int8(args, (int64_t)list->limit);
    job_submit(job);
}

static void on_replayed(struct db_query *query, const struct db_rows *rows)
{
    struct notification_replay *replay = ((struct job *)query->context)->request;

    replay->count = (uint64_t)db_int(rows, 0, 0);
}

void store_notification_replay(struct store *store, struct notification_replay *replay)
{
    struct job *job = read_job(store, &replay->read, replay);
    struct db_args *args = job_query(job, &sql_notification_replay, on_replayed);

    job->writes = true;
    db_arg_text(args, replay->namespace);
    db_arg_text(args, replay->name);
    db_array_begin(args, DB_TEXT, replay->event_count);
    for (size_t i = 0; i < replay->event_count; i++) {
        db_item_bytes(args, replay->events[i]);
    }
    db_array_end(args);
    db_arg_text(args, replay->act);
    job_submit(job);
}
