/*
 * Due sagas: those that are put aside until their time comes, those whose time has come, and those that are forgotten
 * then. Parking and forgetting change the database in batches of due_queue.c.
 */
#include <inttypes.h>
#include <stdio.h>

#include "store/store_state.h"

enum { PARKS_MAX = 500, FORGETS_MAX = 500 };

#define HOLDS_TEXT_BYTES (PARK_HOLDS_MAX * sizeof("18446744073709551615") + sizeof("{}"))

/* --- parking and forgetting --- */

static struct park *park_of(struct list_link *link)
{
    return LIST_ITEM(link, struct park, link);
}

static struct due_item park_item(struct list_link *link)
{
    const struct park *park = park_of(link);

    return (struct due_item){park->shard, park->epoch, park->saga.uuid};
}

/* Returns the holds as the literal of an array, because PostgreSQL has no arrays of arrays that differ in length;
 * SLICE_NONE: there are none. */
static struct slice holds_text(const struct park *park, char text[HOLDS_TEXT_BYTES])
{
    size_t length = 0;

    CHECK(park->hold_count <= PARK_HOLDS_MAX);
    for (size_t i = 0; i < park->hold_count; i++) {
        length += (size_t)snprintf(text + length, HOLDS_TEXT_BYTES - length, "%c%" PRIu64, i == 0 ? '{' : ',',
                                   park->holds[i]);
    }
    if (length == 0) {
        return SLICE_NONE;
    }
    text[length++] = '}';
    return (struct slice){text, length};
}

static void park_args(struct db_args *args, struct list_link *const *links, size_t count)
{
    db_array_begin(args, DB_TIMESTAMPTZ, count);
    for (size_t i = 0; i < count; i++) {
        if (park_of(links[i])->due_ms == INT64_MAX) {
            db_item_null(args);
        } else {
            db_item_timestamptz(args, park_of(links[i])->due_ms);
        }
    }
    db_array_end(args);
    db_array_begin(args, DB_BOOL, count);
    for (size_t i = 0; i < count; i++) {
        db_item_bool(args, park_of(links[i])->awake);
    }
    db_array_end(args);
    db_array_begin(args, DB_TEXT, count);
    for (size_t i = 0; i < count; i++) {
        char text[HOLDS_TEXT_BYTES];

        db_item_bytes(args, holds_text(park_of(links[i]), text));
    }
    db_array_end(args);
}

static void park_tell(struct list_link *link, enum err_code code)
{
    struct park *park = park_of(link);

    park->code = code;
    park->done(park);
}

static const struct due_write_kind parking = {"park_refused", &sql_park, PARKS_MAX, park_item,
                                              park_args,      park_tell, NULL};

static struct forget *forget_of(struct list_link *link)
{
    return LIST_ITEM(link, struct forget, link);
}

static struct due_item forget_item(struct list_link *link)
{
    const struct forget *forget = forget_of(link);

    return (struct due_item){forget->shard, forget->epoch, forget->saga.uuid};
}

static void forget_args(struct db_args *args, struct list_link *const *links, size_t count)
{
    db_array_begin(args, DB_TIMESTAMPTZ, count);
    for (size_t i = 0; i < count; i++) {
        const struct forget *forget = forget_of(links[i]);

        if (forget->kept_ms > 0) {
            db_item_timestamptz(args, forget->now_ms - forget->kept_ms);
        } else {
            db_item_null(args);
        }
    }
    db_array_end(args);
    db_array_begin(args, DB_INT8, count);
    for (size_t i = 0; i < count; i++) {
        if (forget_of(links[i])->kept_ms > 0) {
            db_item_int(args, forget_of(links[i])->kept_ms);
        } else {
            db_item_null(args);
        }
    }
    db_array_end(args);
}

static void forget_tell(struct list_link *link, enum err_code code)
{
    struct forget *forget = forget_of(link);

    forget->code = code;
    forget->done(forget);
}

static const struct due_write_kind forgetting = {"forget_refused", &sql_forget, FORGETS_MAX,      forget_item,
                                                 forget_args,      forget_tell, &sql_forget_later};

void store_park(struct store *store, struct park *park)
{
    CHECK(park->shard < SHARD_COUNT && park->done);
    park->link = (struct list_link){NULL, NULL};
    due_queue_add(&store->parks, &park->link);
}

void store_forget(struct store *store, struct forget *forget)
{
    CHECK(forget->shard < SHARD_COUNT && forget->done);
    history_forget(store, forget->shard, forget->saga);
    forget->link = (struct list_link){NULL, NULL};
    due_queue_add(&store->forgets, &forget->link);
}

void dues_init(struct store *store)
{
    due_queue_init(&store->parks, store, &parking);
    due_queue_init(&store->forgets, store, &forgetting);
}

void dues_conn_up(struct store *store)
{
    due_queue_go(&store->parks);
    due_queue_go(&store->forgets);
}

void dues_fini(struct store *store)
{
    due_queue_fini(&store->parks);
    due_queue_fini(&store->forgets);
}

/* --- whose time has come? --- */

/* Returns the same limit as sql_due has. */
static size_t forgets_of_shard_max(const struct due_take *take)
{
    size_t shards = (size_t)__builtin_popcountll(take->shards), share = 2 * take->forget_limit / (shards ? shards : 1);

    return share > 16 ? share : 16;
}

static void due_on_rows(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct due_take *take = job->request;
    size_t forgets = 0, of_shard[SHARD_COUNT] = {0}, of_shard_max = forgets_of_shard_max(take);
    bool more = false;

    take->count = db_row_count(rows);
    take->rows = arena_array(job->arena, take->count + 1, sizeof(*take->rows));
    for (size_t i = 0; i < take->count; i++) {
        take->rows[i].shard = (uint32_t)db_int(rows, i, 0);
        take->rows[i].saga.uuid = db_uuid(rows, i, 1);
        take->rows[i].forget = db_int(rows, i, 2) != 0;
        take->rows[i].namespace = arena_slice(job->arena, db_bytes(rows, i, 3));
        take->rows[i].at_ms = db_timestamptz(rows, i, 4);
        if (take->rows[i].forget && take->rows[i].shard < SHARD_COUNT) {
            forgets++;
            more |= ++of_shard[take->rows[i].shard] >= of_shard_max;
        }
    }
    take->more = more || (take->forget_limit > 0 && forgets >= take->forget_limit) ||
                 (take->limit > 0 && take->count - forgets >= take->limit);
}

static void on_next(struct db_query *query, const struct db_rows *rows)
{
    struct due_take *take = ((struct job *)query->context)->request;

    take->next_ms = row_next_ms(rows);
}

static void due_query(struct job *job, const struct due_take *take, const struct db_statement *statement,
                      void (*on_rows)(struct db_query *, const struct db_rows *))
{
    struct db_args *args = job_query(job, statement, on_rows);

    arg_shards(args, take->shards);
    db_arg_timestamptz(args, take->now_ms);
    db_arg_int8(args, (int64_t)take->limit);
    db_arg_int8(args, (int64_t)take->forget_limit);
}

void store_due_take(struct store *store, struct due_take *take)
{
    struct job *job = read_job(store, &take->read, take);

    take->next_ms = INT64_MAX;
    due_query(job, take, &sql_due, due_on_rows);
    due_query(job, take, &sql_due_next, on_next);
    job_submit(job);
}

/* --- which holds are over? --- */

static void on_let_go(struct db_query *query, const struct db_rows *rows)
{
    ((struct due_let_go *)((struct job *)query->context)->request)->count = (size_t)db_int(rows, 0, 0);
}

void store_due_let_go(struct store *store, struct due_let_go *let_go)
{
    struct job *job = read_job(store, &let_go->read, let_go);
    struct db_args *args = job_query(job, &sql_due_let_go, on_let_go);

    job->writes = true;
    arg_shards(args, let_go->shards);
    db_array_begin(args, DB_INT8, let_go->in_force_count);
    for (size_t i = 0; i < let_go->in_force_count; i++) {
        db_item_int(args, (int64_t)let_go->in_force[i]);
    }
    db_array_end(args);
    db_arg_timestamptz(args, let_go->now_ms);
    db_arg_int8(args, (int64_t)let_go->limit);
    job_submit(job);
}
