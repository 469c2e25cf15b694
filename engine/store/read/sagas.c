/* Sagas and operations: reads one with its log, finds one by business id or by the key of an operation, lists and
 * counts. */
#include <string.h>

#include "base/json.h"
#include "store/store_state.h"

/* --- one saga --- */

static void on_saga_row(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct read_saga *read = job->request;

    if (db_row_count(rows) == 1) {
        job->found = true;
        read_row(rows, 0, job->arena, &read->row);
    }
}

static void on_turns(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct read_saga *read = job->request;

    read->turn_count = job->found ? db_row_count(rows) : 0;
    read->turns = arena_array(job->arena, read->turn_count + 1, sizeof(*read->turns));
    for (size_t i = 0; i < read->turn_count; i++) {
        read->turns[i].first_seq = (uint64_t)db_int(rows, i, 0);
        read->turns[i].at_ms = db_timestamptz(rows, i, 1);
        read->turns[i].payload = arena_slice(job->arena, db_bytes(rows, i, 2));
        read->turns[i].epoch = db_int(rows, i, 3);
        turn_open(job->store, &read->id.uuid, &read->turns[i], job->arena);
        if (!db_is_null(rows, i, 4) && !read->turns[i].fault) {
            uint64_t last_seq = read->turns[i].first_seq + json_count(read->turns[i].payload) - 1;

            read->turns[i].rest =
                arena_slice(job->arena, column_open(job->store, place_of_rest(&read->id.uuid, last_seq),
                                                    db_bytes(rows, i, 4), job->arena));
        }
    }
    if (read->after_seq == 0 && read->turn_count == 0) {
        job->found = false; /* the saga was forgotten between the two statements, since every saga has a log */
    }
}

void store_read_saga(struct store *store, struct read_saga *read)
{
    struct job *job = read_job(store, &read->read, read);
    uint32_t shard = saga_id_shard(read->id);
    struct db_args *args;

    job->wants_one = true;
    args = job_query(job, &sql_saga_row, on_saga_row);
    db_arg_int2(args, shard < SHARD_COUNT ? (int)shard : -1); /* an id that sagad did not make is not found */
    db_arg_uuid(args, &read->id.uuid);
    db_arg_text(args, read->namespace);
    args = job_query(job, &sql_saga_turns, on_turns);
    db_arg_int2(args, shard < SHARD_COUNT ? (int)shard : -1);
    db_arg_uuid(args, &read->id.uuid);
    db_arg_int8(args, (int64_t)read->after_seq);
    if (read->turns_max > 0) {
        db_arg_int8(args, (int64_t)read->turns_max);
    } else {
        db_arg_null(args, DB_INT8);
    }
    job_submit(job);
}

/* --- find --- */

static void on_business_id(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct find_saga *find = job->request;

    if (db_row_count(rows) == 1) {
        job->found = true;
        find->id.uuid = db_uuid(rows, 0, 0);
        find->has_input = find->input && input_is(job->store, find->id, db_bytes(rows, 0, 1), find->input);
    }
}

void store_find_saga(struct store *store, struct find_saga *find)
{
    struct job *job = read_job(store, &find->read, find);
    struct db_args *args = job_query(job, &sql_saga_by_business_id, on_business_id);

    job->wants_one = true;
    db_arg_int2(args, (int)find->shard);
    db_arg_bytea(args, (struct slice){(const char *)find->business_digest.bytes, 16});
    job_submit(job);
}

static void on_key(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;

    if (db_row_count(rows) == 1) {
        job->found = true;
        ((struct find_operation *)job->request)->id.uuid = db_uuid(rows, 0, 0);
    }
}

void store_find_operation(struct store *store, struct find_operation *find)
{
    struct job *job = read_job(store, &find->read, find);
    struct db_args *args = job_query(job, &sql_saga_by_key, on_key);

    job->wants_one = true;
    db_arg_int2(args, (int)store_key_shard(&find->key));
    db_arg_uuid(args, &find->key.uuid);
    db_arg_text(args, find->namespace);
    job_submit(job);
}

static void on_input(struct db_query *query, const struct db_rows *rows)
{
    ((struct job *)query->context)->found = db_row_count(rows) == 1;
}

void store_find_input(struct store *store, struct find_input *find)
{
    struct job *job = read_job(store, &find->read, find);
    struct db_args *args = job_query(job, &sql_inbox_find, on_input);

    job->wants_one = true;
    db_arg_int2(args, (int)find->shard);
    db_arg_uuid(args, &find->id);
    job_submit(job);
}

/* --- list --- */

static void on_list(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct list_sagas *list = job->request;
    size_t count = db_row_count(rows);

    list->count = 0;
    list->has_edge = false;
    list->rows = arena_array(job->arena, count + 1, sizeof(*list->rows));
    for (size_t i = 0; i < count && !list->has_edge; i++) {
        if (db_int(rows, i, 10)) {
            read_row(rows, i, job->arena, &list->rows[list->count++]);
        }
        if (db_int(rows, i, 11) && list->count < list->limit) {
            list->has_edge = true;
            list->edge = db_uuid(rows, i, 0);
        }
    }
}

/* Returns the smallest id that a saga made at `ms` can have; sagad.id_floor() in SQL. */
static struct uuid id_floor(int64_t ms)
{
    struct uuid id = {{0}};

    for (int i = 0; i < 6; i++) {
        id.bytes[i] = (uint8_t)((uint64_t)ms >> (40 - 8 * i));
    }
    return id;
}

/* Returns the next id; the largest id, which no saga has, is its own successor. */
static struct uuid id_after(struct uuid id)
{
    struct uuid next = id;

    for (size_t i = sizeof(next.bytes); i > 0; i--) {
        if (++next.bytes[i - 1] != 0) {
            return next;
        }
    }
    return id;
}

/* Only unfinished sagas are wanted. */
static bool is_unfinished(const struct list_sagas *list)
{
    return list->statuses && !(list->statuses & (BIT(SAGA_COMPLETED) | BIT(SAGA_COMPENSATED) | BIT(SAGA_ABANDONED)));
}

static struct uuid list_before(const struct list_sagas *list)
{
    struct uuid before, behind = id_after(list->last_id);

    memset(&before, 0xff, sizeof(before));
    if (list->until_ms > 0) {
        before = id_floor(list->until_ms);
    }
    if (!uuid_is_nil(&list->before) && uuid_compare(&list->before, &before) < 0) {
        before = list->before;
    }
    return list->has_ids && uuid_compare(&behind, &before) < 0 ? behind : before;
}

static struct uuid list_from(const struct list_sagas *list)
{
    struct uuid from = id_floor(list->since_ms > 0 ? list->since_ms : 0);

    return list->has_ids && uuid_compare(&list->first_id, &from) > 0 ? list->first_id : from;
}

static void arg_statuses(struct db_args *args, uint32_t statuses)
{
    size_t count = 0;

    for (unsigned i = 0; i < SAGA_STATUS_COUNT; i++) {
        count += (statuses & BIT(i)) != 0;
    }
    db_array_begin(args, DB_TEXT, count);
    for (unsigned i = 0; i < SAGA_STATUS_COUNT; i++) {
        if (statuses & BIT(i)) {
            db_item_bytes(args, slice_of(saga_status_name((enum saga_status)i)));
        }
    }
    db_array_end(args);
}

static void arg_places(struct db_args *args, const struct list_sagas *list)
{
    db_array_begin(args, DB_INT2, list->place_count);
    for (size_t i = 0; i < list->place_count; i++) {
        db_item_int(args, list->places[i].shard);
    }
    db_array_end(args);
    db_array_begin(args, DB_BYTEA, list->place_count);
    for (size_t i = 0; i < list->place_count; i++) {
        db_item_bytes(args, (struct slice){(const char *)list->places[i].digest.bytes, 16});
    }
    db_array_end(args);
}

static size_t looked_max(const struct list_sagas *list)
{
    return list->looked_max ? list->looked_max : SAGAS_LOOKED_AT;
}

/* $1 to $11 */
static void arg_list(struct db_args *args, const struct list_sagas *list, size_t limit)
{
    struct uuid before = list_before(list), from = list_from(list);

    db_arg_uuid(args, &before);
    db_arg_uuid(args, &from);
    db_arg_text(args, list->namespace);
    db_arg_bool(args, is_unfinished(list));
    arg_statuses(args, list->statuses);
    read_arg_texts(args, list->names, list->name_count);
    read_arg_texts(args, list->tags, list->tag_count);
    db_arg_bool(args, list->without_runs);
    db_array_begin(args, DB_INT8, list->version_count);
    for (size_t i = 0; i < list->version_count; i++) {
        db_item_int(args, list->versions[i]);
    }
    db_array_end(args);
    db_arg_text(args, list->business_prefix.ptr ? list->business_prefix : SLICE(""));
    db_arg_int8(args, (int64_t)limit);
}

void store_list_sagas(struct store *store, struct list_sagas *list)
{
    struct job *job = read_job(store, &list->read, list);
    struct db_args *args = job_query(job, list->has_business_id ? &sql_saga_list_of_id : &sql_saga_list, on_list);

    arg_list(args, list, list->limit);
    if (list->has_business_id) {
        arg_places(args, list);
    } else {
        db_arg_int8(args, (int64_t)looked_max(list));
    }
    job_submit(job);
}

static void on_sum(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct sum_sagas *sum = job->request;
    enum saga_status status;

    memset(sum->counts, 0, sizeof(sum->counts));
    sum->list->has_edge = false;
    for (size_t row = 0; row < db_row_count(rows); row++) {
        if (!db_is_null(rows, row, 0) && saga_status_parse(db_bytes(rows, row, 0), &status)) {
            sum->counts[status] = db_int(rows, row, 1);
        }
        sum->list->has_edge = !db_is_null(rows, row, 2);
        if (sum->list->has_edge) {
            sum->list->edge = db_uuid(rows, row, 2);
        }
    }
}

void store_sum_sagas(struct store *store, struct sum_sagas *sum)
{
    struct job *job = read_job(store, &sum->read, sum);
    struct db_args *args = job_query(job, &sql_saga_sum, on_sum);

    arg_list(args, sum->list, looked_max(sum->list));
    db_arg_int8(args, (int64_t)looked_max(sum->list));
    job_submit(job);
}

static void on_looked(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;

    ((struct count_looked *)job->request)->count = db_row_count(rows) == 1 ? db_int(rows, 0, 0) : 0;
}

void store_count_looked(struct store *store, struct count_looked *count)
{
    struct job *job = read_job(store, &count->read, count);
    struct db_args *args = job_query(job, &sql_saga_looked, on_looked);
    struct uuid before = list_before(count->list);

    db_arg_uuid(args, &before);
    db_arg_uuid(args, &count->list->edge);
    db_arg_text(args, count->list->namespace);
    db_arg_bool(args, is_unfinished(count->list));
    job_submit(job);
}

/* --- count --- */

static void on_count(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct count_sagas *count = job->request;
    enum saga_status status;
    struct uuid since;

    memset(count->counts, 0, sizeof(count->counts));
    for (size_t row = 0; row < db_row_count(rows); row++) {
        if (!db_is_null(rows, row, 0) && saga_status_parse(db_bytes(rows, row, 0), &status)) {
            count->counts[status] = db_int(rows, row, 1);
        }
        since = db_uuid(rows, row, 2);
        count->since_ms = uuid_v7_ms(&since);
    }
}

void store_count_sagas(struct store *store, struct count_sagas *count)
{
    struct job *job = read_job(store, &count->read, count);
    struct db_args *args = job_query(job, &sql_saga_count, on_count);
    struct uuid since = id_floor(count->since_ms > 0 ? count->since_ms : 0);

    db_arg_text(args, count->namespace);
    db_arg_int8(args, count->newest);
    db_arg_uuid(args, &since);
    job_submit(job);
}

static void on_versions(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct count_versions *count = job->request;

    count->count = db_row_count(rows);
    count->rows = arena_array(job->arena, count->count + 1, sizeof(*count->rows));
    for (size_t i = 0; i < count->count; i++) {
        count->rows[i].name = arena_slice(job->arena, db_bytes(rows, i, 0));
        count->rows[i].version = (uint32_t)db_int(rows, i, 1);
        count->rows[i].unfinished = db_int(rows, i, 2);
    }
}

void store_count_versions(struct store *store, struct count_versions *count)
{
    struct job *job = read_job(store, &count->read, count);

    db_arg_text(job_query(job, &sql_version_count, on_versions), count->namespace);
    job_submit(job);
}
