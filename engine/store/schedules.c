/* Schedules. People make, list, hold and delete them through any engine; only the owner of their shard moves them. See
 * schema/migrations/0020_schedule.sql. */
#include "store/store_state.h"

static void read_row_of(struct job *job, const struct db_rows *rows, size_t i, struct schedule_row *out)
{
    struct slice namespace = db_bytes(rows, i, 1), name = db_bytes(rows, i, 2);
    struct uuid id = db_uuid(rows, i, 3);
    struct slice body =
        column_open(job->store, place_of_schedule(namespace, name, &id), db_bytes(rows, i, 5), job->arena);

    *out = (struct schedule_row){.shard = (uint32_t)db_int(rows, i, 0),
                                 .namespace = arena_slice(job->arena, namespace),
                                 .name = arena_slice(job->arena, name),
                                 .id = id,
                                 .revision = db_int(rows, i, 4),
                                 .body = arena_slice(job->arena, body),
                                 .state = arena_slice(job->arena, db_bytes(rows, i, 6)),
                                 .hold = arena_slice(job->arena, db_bytes(rows, i, 7)),
                                 .created_ms = db_timestamptz(rows, i, 8),
                                 .last_ms = db_timestamptz(rows, i, 9),
                                 .actor = arena_slice(job->arena, db_bytes(rows, i, 10)),
                                 .offsets = arena_slice(job->arena, db_bytes(rows, i, 11))};
}

/* --- by people --- */

static void on_put(struct db_query *query, const struct db_rows *rows)
{
    struct schedule_put *put = ((struct job *)query->context)->request;

    put->outcome = (enum schedule_put_outcome)db_int(rows, 0, 0);
}

/* PostgreSQL has compared the texts as they are kept, and a sealed one differs even when it says the same. This engine
 * may seal nothing and still find one that another engine has sealed. */
static void on_there(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct schedule_put *put = job->request;
    struct schedule_row row;

    if (put->outcome == SCHEDULE_OTHER && db_row_count(rows) == 1) {
        read_row_of(job, rows, 0, &row);
        put->outcome = slice_equal(row.body, put->body) ? SCHEDULE_SAME : SCHEDULE_OTHER;
    }
}

static void ask_what_is_there(struct job *job, const struct schedule_put *put)
{
    struct db_args *args = job_query(job, &sql_schedule_list, on_there);
    int64_t now_ms = loop_wall_ms(job->store->loop);

    db_arg_text(args, put->namespace);
    db_arg_text(args, put->name);
    db_arg_text(args, SLICE(""));
    db_arg_int8(args, 1);
    db_arg_timestamptz(args, now_ms);
    db_arg_timestamptz(args, now_ms);
}

void store_schedule_put(struct store *store, struct schedule_put *put)
{
    struct job *job = read_job(store, &put->read, put);
    struct db_args *args = job_query(job, &sql_schedule_put, on_put);

    CHECK(put->shard < SHARD_COUNT);
    job->writes = true;
    db_arg_int2(args, (int)put->shard);
    db_arg_text(args, put->namespace);
    db_arg_text(args, put->name);
    db_arg_uuid(args, &put->id);
    db_arg_text(args, put->zone);
    db_arg_bytea(args,
                 column_seal(store, place_of_schedule(put->namespace, put->name, &put->id), put->body, job->arena));
    db_arg_text(args, put->actor);
    db_arg_int8(args, (int64_t)put->max);
    db_arg_text(args, put->act);
    if (payload_keys_count(store->options.payload_keys) > 0) {
        ask_what_is_there(job, put);
    }
    job_submit(job);
}

static void on_list(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct schedule_list *list = job->request;

    list->count = db_row_count(rows);
    list->rows = arena_array(job->arena, list->count + 1, sizeof(*list->rows));
    for (size_t i = 0; i < list->count; i++) {
        read_row_of(job, rows, i, &list->rows[i]);
    }
    job->found = list->count > 0;
}

void store_schedule_list(struct store *store, struct schedule_list *list)
{
    struct job *job = read_job(store, &list->read, list);
    struct db_args *args = job_query(job, &sql_schedule_list, on_list);

    job->wants_one = list->name.ptr != NULL;
    db_arg_text(args, list->namespace);
    db_arg_text(args, list->name);
    db_arg_text(args, list->after.ptr ? list->after : SLICE(""));
    db_arg_int8(args, (int64_t)list->limit);
    db_arg_timestamptz(args, list->since_ms);
    db_arg_timestamptz(args, list->until_ms);
    job_submit(job);
}

static void on_changed_one(struct db_query *query, const struct db_rows *rows)
{
    ((struct job *)query->context)->found = db_row_count(rows) == 1;
}

void store_schedule_change(struct store *store, struct schedule_change *change)
{
    struct job *job = read_job(store, &change->read, change);
    struct db_args *args = job_query(job, change->removes ? &sql_schedule_delete : &sql_schedule_hold, on_changed_one);

    CHECK(change->shard < SHARD_COUNT);
    job->writes = job->wants_one = true;
    db_arg_int2(args, (int)change->shard);
    db_arg_text(args, change->namespace);
    db_arg_text(args, change->name);
    if (!change->removes) {
        db_arg_bytea(args, change->hold);
    }
    db_arg_text(args, change->act);
    job_submit(job);
}

static void on_zone(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct zone_read *zone = job->request;

    job->found =
        db_row_count(rows) == 1 && zone_read_offsets(db_bytes(rows, 0, 0), zone->until_ms, job->arena, &zone->zone);
}

void store_zone_read(struct store *store, struct zone_read *zone)
{
    struct job *job = read_job(store, &zone->read, zone);
    struct db_args *args = job_query(job, &sql_zone, on_zone);

    job->wants_one = true;
    db_arg_text(args, zone->name);
    db_arg_timestamptz(args, zone->since_ms);
    db_arg_timestamptz(args, zone->until_ms);
    job_submit(job);
}

/* --- by the owner of the shard --- */

static void schedules_on_due(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct schedule_take *take = job->request;

    take->count = db_row_count(rows);
    take->rows = arena_array(job->arena, take->count + 1, sizeof(*take->rows));
    for (size_t i = 0; i < take->count; i++) {
        read_row_of(job, rows, i, &take->rows[i]);
    }
}

static void on_next(struct db_query *query, const struct db_rows *rows)
{
    struct schedule_take *take = ((struct job *)query->context)->request;

    take->next_ms = row_next_ms(rows);
}

void store_schedule_take(struct store *store, struct schedule_take *take)
{
    struct job *job = read_job(store, &take->read, take);
    struct db_args *args = job_query(job, &sql_schedule_due, schedules_on_due);

    arg_shards(args, take->shards);
    db_arg_timestamptz(args, take->now_ms);
    db_arg_int8(args, (int64_t)take->limit);
    db_arg_timestamptz(args, take->since_ms);
    db_arg_timestamptz(args, take->until_ms);
    args = job_query(job, &sql_schedule_next, on_next);
    arg_shards(args, take->shards);
    db_arg_timestamptz(args, take->now_ms);
    job_submit(job);
}

static void on_moved(struct db_query *query, const struct db_rows *rows)
{
    struct schedule_move *move = ((struct job *)query->context)->request;
    int64_t revision = db_int(rows, 0, 0);

    move->fenced = revision == 0;
    move->moved = revision > 0;
    move->revision = move->moved ? revision : move->revision;
}

void store_schedule_move(struct store *store, struct schedule_move *move)
{
    struct job *job = read_job(store, &move->read, move);
    struct db_args *args = job_query(job, &sql_schedule_move, on_moved);

    CHECK(move->row->shard < SHARD_COUNT);
    job->writes = true;
    db_arg_int2(args, (int)move->row->shard);
    db_arg_int8(args, move->epoch);
    db_arg_text(args, move->row->namespace);
    db_arg_text(args, move->row->name);
    db_arg_uuid(args, &move->row->id);
    db_arg_int8(args, move->revision);
    db_arg_timestamptz(args, move->last_ms);
    db_arg_timestamptz(args, move->look_ms);
    db_arg_bytea(args, move->state);
    job_submit(job);
}

/* --- somebody changed one --- */

void store_watch_schedules(struct store *store, void (*changed)(void *context), void *context)
{
    store->schedules_changed = changed;
    store->schedules_context = context;
}

void schedules_notified(struct store *store)
{
    if (store->schedules_changed && !store->closing) {
        store->schedules_changed(store->schedules_context);
    }
}
