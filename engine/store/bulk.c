/* Bulk jobs. Any engine can freeze, run, stop and list them; only the owner of their shard carries them out. See
 * schema/migrations/0023_bulk.sql. */
#include "store/bulk.h"

#include <string.h>

#include "store/store_state.h"

static const char *const state_names[BULK_STATE_COUNT] = {
    [BULK_FREEZING] = "freezing", [BULK_FROZEN] = "frozen",   [BULK_RUNNING] = "running",
    [BULK_DONE] = "done",         [BULK_STOPPED] = "stopped", [BULK_EXPIRED] = "expired"};

const char *bulk_state_name(enum bulk_state state)
{
    CHECK(state < BULK_STATE_COUNT);
    return state_names[state];
}

static enum bulk_state read_state(struct slice name)
{
    for (unsigned i = 0; i < BULK_STATE_COUNT; i++) {
        if (slice_is(name, state_names[i])) {
            return (enum bulk_state)i;
        }
    }
    return BULK_STOPPED; /* a state of a later release; nothing is done for it here */
}

static struct slice open_copy(struct job *job, struct seal_place place, struct slice column)
{
    return arena_slice(job->arena, column_open(job->store, place, column, job->arena));
}

static void read_bulk(struct job *job, const struct db_rows *rows, size_t i, struct bulk_row *out)
{
    struct uuid id = db_uuid(rows, i, 1);

    *out = (struct bulk_row){.id.uuid = id,
                             .namespace = arena_slice(job->arena, db_bytes(rows, i, 2)),
                             .state = read_state(db_bytes(rows, i, 3)),
                             .body = open_copy(job, place_of_bulk(&id), db_bytes(rows, i, 4)),
                             .items = db_int(rows, i, 5),
                             .done = db_int(rows, i, 6),
                             .changed = db_int(rows, i, 7),
                             .refused = db_int(rows, i, 8),
                             .actor = arena_slice(job->arena, db_bytes(rows, i, 9)),
                             .created_ms = db_timestamptz(rows, i, 10),
                             .expires_ms = db_timestamptz(rows, i, 11),
                             .run = arena_slice(job->arena, db_bytes(rows, i, 12)),
                             .stop = arena_slice(job->arena, db_bytes(rows, i, 13)),
                             .ended_ms = db_is_null(rows, i, 14) ? 0 : db_timestamptz(rows, i, 14)};
}

#define ROW_COLUMNS 15

/* No shard has a job with an id that no job can have. */
static void put_id(struct db_args *args, struct saga_id id)
{
    uint32_t shard = saga_id_shard(id);

    db_arg_int2(args, shard < SHARD_COUNT ? (int)shard : -1);
    db_arg_uuid(args, &id.uuid);
}

/* --- by people --- */

static void on_begun(struct db_query *query, const struct db_rows *rows)
{
    struct bulk_begin *begin = ((struct job *)query->context)->request;

    begin->begun = db_int(rows, 0, 0) == 1;
}

void store_bulk_begin(struct store *store, struct bulk_begin *begin)
{
    struct job *job = read_job(store, &begin->read, begin);
    struct db_args *args = job_query(job, &sql_bulk_begin, on_begun);

    job->writes = true;
    put_id(args, begin->id);
    db_arg_text(args, begin->namespace);
    db_arg_bytea(args, column_seal(store, place_of_bulk(&begin->id.uuid), begin->body, job->arena));
    db_arg_text(args, begin->actor);
    db_arg_timestamptz(args, begin->expires_ms);
    db_arg_int8(args, (int64_t)begin->max);
    job_submit(job);
}

static void put_items(struct job *job, struct db_args *args, const struct bulk_add *add)
{
    db_array_begin(args, DB_BYTEA, add->count);
    for (size_t i = 0; i < add->count; i++) {
        struct seal_place place = place_of_bulk_item(&add->id.uuid, add->before + i + 1);

        db_item_bytes(args, column_seal(job->store, place, add->bodies[i], job->arena));
    }
    db_array_end(args);
}

void store_bulk_add(struct store *store, struct bulk_add *add)
{
    struct job *job = read_job(store, &add->read, add);
    struct db_args *args = job_query(job, &sql_bulk_add, NULL);

    job->writes = true;
    put_id(args, add->id);
    db_arg_int8(args, (int64_t)add->before);
    put_items(job, args, add);
    db_arg_timestamptz(args, add->look_ms);
    job_submit(job);
}

static void on_frozen(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;

    job->found = db_row_count(rows) == 1;
    if (job->found) {
        read_bulk(job, rows, 0, &((struct bulk_freeze *)job->request)->row);
    }
}

void store_bulk_freeze(struct store *store, struct bulk_freeze *freeze)
{
    struct job *job = read_job(store, &freeze->read, freeze);
    struct db_args *args = job_query(job, &sql_bulk_freeze, on_frozen);

    job->writes = job->wants_one = true;
    put_id(args, freeze->id);
    db_arg_bytea(args, column_seal(store, place_of_bulk(&freeze->id.uuid), freeze->body, job->arena));
    db_arg_int8(args, (int64_t)freeze->count);
    job_submit(job);
}

static void on_moved(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;

    job->found = db_row_count(rows) == 1 && !db_is_null(rows, 0, 0);
    if (job->found) {
        ((struct bulk_move *)job->request)->state = read_state(db_bytes(rows, 0, 0));
    }
}

void store_bulk_move(struct store *store, struct bulk_move *move)
{
    struct job *job = read_job(store, &move->read, move);
    struct db_args *args = job_query(job, &sql_bulk_move, on_moved);

    job->writes = job->wants_one = true;
    put_id(args, move->id);
    db_arg_text(args, move->namespace);
    db_arg_text(args, slice_of(bulk_state_name(move->to)));
    db_arg_bytea(args, move->who);
    db_arg_timestamptz(args, move->keep_ms);
    db_arg_text(args, move->act);
    job_submit(job);
}

static void on_list(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct bulk_list *list = job->request;

    list->count = db_row_count(rows);
    list->rows = arena_array(job->arena, list->count + 1, sizeof(*list->rows));
    for (size_t i = 0; i < list->count; i++) {
        read_bulk(job, rows, i, &list->rows[i]);
    }
    job->found = list->count > 0;
}

void store_bulk_list(struct store *store, struct bulk_list *list)
{
    struct job *job = read_job(store, &list->read, list);
    struct db_args *args;
    struct uuid before = list->before;

    if (!uuid_is_nil(&list->id.uuid)) {
        job->wants_one = true;
        args = job_query(job, &sql_bulk_one, on_list);
        put_id(args, list->id);
        db_arg_text(args, list->namespace);
    } else {
        if (uuid_is_nil(&before)) {
            memset(&before, 0xff, sizeof(before));
        }
        args = job_query(job, &sql_bulk_list, on_list);
        db_arg_text(args, list->namespace);
        db_arg_uuid(args, &before);
        db_arg_int8(args, (int64_t)list->limit);
    }
    job_submit(job);
}

static void on_items(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct bulk_items *items = job->request;

    items->count = db_row_count(rows);
    items->rows = arena_array(job->arena, items->count + 1, sizeof(*items->rows));
    for (size_t i = 0; i < items->count; i++) {
        uint64_t number = (uint64_t)db_int(rows, i, 0);

        items->rows[i] = (struct bulk_item_row){
            .number = number,
            .body = open_copy(job, place_of_bulk_item(&items->id.uuid, number), db_bytes(rows, i, 1)),
            .outcome = arena_slice(job->arena, db_bytes(rows, i, 2)),
            .detail = arena_slice(job->arena, db_bytes(rows, i, 3))};
    }
}

void store_bulk_items(struct store *store, struct bulk_items *items)
{
    struct job *job = read_job(store, &items->read, items);
    struct db_args *args = job_query(job, &sql_bulk_items, on_items);

    put_id(args, items->id);
    db_arg_int8(args, (int64_t)items->after);
    db_arg_text(args, items->outcome);
    db_arg_int8(args, (int64_t)items->limit);
    job_submit(job);
}

/* --- by the owner of the shard --- */

static void on_due(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct bulk_take *take = job->request;
    size_t count = db_row_count(rows);

    take->found = count > 0;
    take->count = 0;
    take->items = arena_array(job->arena, count + 1, sizeof(*take->items));
    if (take->found) {
        read_bulk(job, rows, 0, &take->row);
    }
    for (size_t i = 0; i < count; i++) {
        if (!db_is_null(rows, i, ROW_COLUMNS)) {
            uint64_t number = (uint64_t)db_int(rows, i, ROW_COLUMNS);

            take->items[take->count++] =
                (struct bulk_item_row){.number = number,
                                       .body = open_copy(job, place_of_bulk_item(&take->row.id.uuid, number),
                                                         db_bytes(rows, i, ROW_COLUMNS + 1))};
        }
    }
}

static void on_next(struct db_query *query, const struct db_rows *rows)
{
    struct bulk_take *take = ((struct job *)query->context)->request;

    take->next_ms = row_next_ms(rows);
}

void store_bulk_take(struct store *store, struct bulk_take *take)
{
    struct job *job = read_job(store, &take->read, take);
    struct db_args *args = job_query(job, &sql_bulk_due, on_due);

    arg_shards(args, take->shards);
    db_arg_timestamptz(args, take->now_ms);
    db_arg_int8(args, (int64_t)take->limit);
    args = job_query(job, &sql_bulk_next, on_next);
    arg_shards(args, take->shards);
    job_submit(job);
}

static void on_settled(struct db_query *query, const struct db_rows *rows)
{
    struct bulk_settle *settle = ((struct job *)query->context)->request;

    settle->fenced = db_int(rows, 0, 0) == 0;
}

void store_bulk_settle(struct store *store, struct bulk_settle *settle)
{
    struct job *job = read_job(store, &settle->read, settle);
    struct db_args *args = job_query(job, &sql_bulk_settle, on_settled);

    job->writes = true;
    db_arg_int2(args, (int)saga_id_shard(settle->id));
    db_arg_int8(args, settle->epoch);
    db_arg_uuid(args, &settle->id.uuid);
    db_array_begin(args, DB_INT8, settle->count);
    for (size_t i = 0; i < settle->count; i++) {
        db_item_int(args, (int64_t)settle->outcomes[i].number);
    }
    db_array_end(args);
    db_array_begin(args, DB_TEXT, settle->count);
    for (size_t i = 0; i < settle->count; i++) {
        db_item_bytes(args, settle->outcomes[i].outcome);
    }
    db_array_end(args);
    db_array_begin(args, DB_BYTEA, settle->count);
    for (size_t i = 0; i < settle->count; i++) {
        db_item_bytes(args, settle->outcomes[i].detail);
    }
    db_array_end(args);
    db_array_begin(args, DB_TIMESTAMPTZ, settle->count);
    for (size_t i = 0; i < settle->count; i++) {
        db_item_timestamptz(args, settle->outcomes[i].look_ms);
    }
    db_array_end(args);
    db_arg_timestamptz(args, settle->keep_ms);
    job_submit(job);
}

static void on_forgotten(struct db_query *query, const struct db_rows *rows)
{
    struct bulk_forget *forget = ((struct job *)query->context)->request;

    forget->fenced = db_int(rows, 0, 0) == 0;
}

void store_bulk_forget(struct store *store, struct bulk_forget *forget)
{
    struct job *job = read_job(store, &forget->read, forget);
    struct db_args *args = job_query(job, &sql_bulk_forget, on_forgotten);

    job->writes = true;
    db_arg_int2(args, (int)saga_id_shard(forget->id));
    db_arg_int8(args, forget->epoch);
    db_arg_uuid(args, &forget->id.uuid);
    db_arg_timestamptz(args, forget->now_ms);
    db_arg_int8(args, (int64_t)forget->limit);
    job_submit(job);
}

/* --- somebody ran one, or stopped one --- */

void store_watch_bulk(struct store *store, void (*changed)(void *context), void *context)
{
    store->bulk_changed = changed;
    store->bulk_context = context;
}

void bulk_notified(struct store *store)
{
    if (store->bulk_changed && !store->closing) {
        store->bulk_changed(store->bulk_context);
    }
}
