/*
 * Registered tools and definitions. They are few, and every engine keeps all of them in memory. So there is one load
 * and one registration, and a notification when another engine registered some; a slow poll backs it up.
 */
#include <string.h>

#include "store/store_state.h"

enum { POLL_MS = 30000 };

/* --- load --- */

static void on_definitions(struct db_query *query, const struct db_rows *rows)
{
    struct job *job = query->context;
    struct load_definitions *load = job->request;

    load->count = db_row_count(rows);
    load->rows = arena_array(job->arena, load->count + 1, sizeof(*load->rows));
    for (size_t i = 0; i < load->count; i++) {
        struct definition_row *row = &load->rows[i];
        struct slice identity = db_bytes(rows, i, 4);

        row->kind = db_int(rows, i, 0) == 0 ? DEFINITION_TOOL : DEFINITION_SAGA;
        row->namespace = arena_slice(job->arena, db_bytes(rows, i, 1));
        row->name = arena_slice(job->arena, db_bytes(rows, i, 2));
        row->version = (uint32_t)db_int(rows, i, 3);
        if (identity.len == sizeof(row->identity.bytes)) {
            memcpy(row->identity.bytes, identity.ptr, identity.len);
        }
        row->body = arena_slice(job->arena, db_bytes(rows, i, 5));
        row->created_ms = db_timestamptz(rows, i, 6);
        row->reading = (enum reading)db_int(rows, i, 7);
    }
}

void store_load_definitions(struct store *store, struct load_definitions *load)
{
    struct job *job = read_job(store, &load->read, load);

    (void)job_query(job, &sql_definition_load, on_definitions); /* takes no parameters */
    job_submit(job);
}

/* --- register --- */

/* Reads the answer: its i-th row is about the i-th row of this kind. */
static void put_answered(struct job *job, const struct db_rows *rows, enum definition_kind kind)
{
    struct put_definitions *put = job->request;
    size_t answer = 0;

    for (size_t i = 0; i < put->count; i++) {
        if (put->rows[i].kind == kind && answer < db_row_count(rows)) {
            put->rows[i].version = (uint32_t)db_int(rows, answer, 1);
            put->rows[i].reading = (enum reading)db_int(rows, answer, 3);
            put->created[i] =
                put->created[i] || db_int(rows, answer, 2) != 0; /* or created by the try whose answer was lost */
            answer++;
        }
    }
}

static void on_tools_put(struct db_query *query, const struct db_rows *rows)
{
    put_answered(query->context, rows, DEFINITION_TOOL);
}

static void on_sagas_put(struct db_query *query, const struct db_rows *rows)
{
    put_answered(query->context, rows, DEFINITION_SAGA);
}

static void add_rows(struct job *job, const struct put_definitions *put, enum definition_kind kind)
{
    size_t count = 0;
    struct db_args *args;

    for (size_t i = 0; i < put->count; i++) {
        count += put->rows[i].kind == kind;
    }
    if (count == 0) {
        return;
    }
    args = job_query(job, kind == DEFINITION_TOOL ? &sql_tool_put : &sql_definition_put,
                     kind == DEFINITION_TOOL ? on_tools_put : on_sagas_put);
    for (int column = 0; column < 4; column++) {
        db_array_begin(args, column < 2 ? DB_TEXT : DB_BYTEA, count);
        for (size_t i = 0; i < put->count; i++) {
            const struct definition_row *row = &put->rows[i];
            const struct slice values[] = {
                row->namespace, row->name, {(const char *)row->identity.bytes, sizeof(row->identity.bytes)}, row->body};

            if (row->kind == kind) {
                db_item_bytes(args, values[column]);
            }
        }
        db_array_end(args);
    }
    db_arg_int4(args, READING_NEWEST);
}

static void add_act(struct job *job, const struct put_definitions *put)
{
    struct db_args *args = job_query(job, &sql_act_define, NULL);

    db_array_begin(args, DB_TEXT, put->act_count);
    for (size_t i = 0; i < put->act_count; i++) {
        db_item_bytes(args, put->acts[i]);
    }
    db_array_end(args);
    db_array_begin(args, DB_TEXT, put->act_count);
    for (size_t i = 0; i < put->act_count; i++) {
        db_item_bytes(args, put->act_namespaces[i]);
    }
    db_array_end(args);
    db_array_begin(args, DB_TEXT, put->count);
    for (size_t i = 0; i < put->count; i++) {
        db_item_bytes(args, put->rows[i].name);
    }
    db_array_end(args);
}

static void put_outrun(struct job *job)
{
    struct put_definitions *put = job->request;

    memset(put->created, 0, put->count * sizeof(*put->created));
}

/* Nothing keeps two at once apart. Of two that make the same version one fails as a whole, is done again, and then sees
 * the other one's. */
void store_put_definitions(struct store *store, struct put_definitions *put)
{
    struct job *job = read_job(store, &put->read, put);

    job->writes = true;
    job->outrun = put_outrun;
    put->created = arena_array(job->arena, put->count + 1, sizeof(*put->created));
    add_rows(job, put, DEFINITION_TOOL);
    add_rows(job, put, DEFINITION_SAGA);
    if (put->act_count > 0) {
        add_act(job, put);
    }
    (void)job_query(job, &sql_definition_notify, NULL); /* takes no parameters */
    job_submit(job);
}

/* --- watch --- */

static void changed(struct store *store)
{
    if (store->definitions.changed && !store->closing) {
        store->definitions.changed(store->definitions.context);
    }
}

static void on_state_rows(struct db_query *query, const struct db_rows *rows)
{
    struct definition_watch *watch = query->context;

    watch->state_read = db_row_count(rows) == 1 ? db_int(rows, 0, 0) : -1;
}

static void on_poll(struct timer *timer);

static void on_state_done(struct db_transaction *transaction)
{
    struct definition_watch *watch = container_of(transaction, struct definition_watch, transaction);
    struct store *store = container_of(watch, struct store, definitions);
    bool differs = transaction->outcome == DB_COMMITTED && (!watch->primed || watch->state != watch->state_read);

    watch->polling = false;
    if (store->closing) {
        return;
    }
    timer_start(store->loop, &watch->poll, POLL_MS, on_poll);
    if (transaction->outcome == DB_COMMITTED) {
        watch->state = watch->state_read;
        watch->primed = true;
    }
    if (differs) {
        changed(store);
    }
}

static void poll_now(struct store *store)
{
    struct definition_watch *watch = &store->definitions;
    struct conn *conn = store_reader(store);

    if (!watch->changed || watch->polling || store->closing) {
        return;
    }
    if (!conn) {
        timer_start(store->loop, &watch->poll, POLL_MS, on_poll); /* definitions_conn_up() comes sooner */
        return;
    }
    watch->polling = true;
    watch->query = (struct db_query){.statement = &sql_definition_state, .on_rows = on_state_rows, .context = watch};
    memset(&watch->transaction, 0, sizeof(watch->transaction));
    watch->transaction.queries = &watch->query;
    watch->transaction.count = 1;
    watch->transaction.read_only = true;
    watch->transaction.done = on_state_done;
    db_submit(conn->db, &watch->transaction);
}

static void on_poll(struct timer *timer)
{
    poll_now(container_of(container_of(timer, struct definition_watch, poll), struct store, definitions));
}

void store_watch_definitions(struct store *store, void (*on_changed)(void *context), void *context)
{
    store->definitions.changed = on_changed;
    store->definitions.context = context;
    timer_start(store->loop, &store->definitions.poll, 0, on_poll);
}

void definitions_conn_up(struct store *store)
{
    poll_now(store);
}

void definitions_notified(struct store *store)
{
    changed(store);
}

void definitions_stop(struct store *store)
{
    timer_stop(store->loop, &store->definitions.poll);
}
