/* Lists the engines, what each of them holds, and how their database is: `GET /v1/engines`. */
#include "run/query/engines.h"
#include "base/instant.h"
#include "base/json.h"
#include "run/request/work.h"

static bool holds(const struct shard_row *shard, const struct engine_row *row)
{
    return shard->left_ms > 0 && shard->identity.ptr && slice_equal(shard->identity, row->identity);
}

/* Writes the shards that the row holds, or with NULL those that nobody holds. */
static void write_shards(struct json_writer *w, const char *name, const struct list_engines *list,
                         const struct engine_row *row)
{
    json_array_begin(w, name);
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        const struct shard_row *shard = &list->shards[i];

        if (row ? holds(shard, row) : !shard->identity.ptr || shard->left_ms <= 0) {
            json_write_i64(w, NULL, i);
        }
    }
    json_array_end(w);
}

/* Writes the epochs of all its shards; null without shards. The time left is that of the lease that ends first. */
static void write_epochs(struct json_writer *w, const struct list_engines *list, const struct engine_row *row)
{
    int64_t low = INT64_MAX, high = 0, left_ms = row->left_ms;

    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        const struct shard_row *shard = &list->shards[i];

        if (holds(shard, row)) {
            low = shard->epoch < low ? shard->epoch : low;
            high = shard->epoch > high ? shard->epoch : high;
            left_ms = shard->left_ms < left_ms ? shard->left_ms : left_ms;
        }
    }
    if (high > 0) {
        json_write_i64(w, "epoch_min", low);
        json_write_i64(w, "epoch_max", high);
    } else {
        json_write_null(w, "epoch_min");
        json_write_null(w, "epoch_max");
    }
    json_write_i64(w, "lease_left_ms", left_ms);
}

static void write_engine(struct json_writer *w, const struct list_engines *list, const struct engine_row *row)
{
    char started[INSTANT_TEXT_BYTES];

    instant_text(row->started_ms, started);
    json_object_begin(w, NULL);
    json_write_slice(w, "name", row->name);
    json_write_slice(w, "instance", row->instance);
    json_write_slice(w, "version", row->version);
    json_write_i64(w, "schema", row->schema);
    json_write_text(w, "state", row->left_ms <= 0 ? "expired" : row->leaving ? "leaving" : "alive");
    json_write_bool(w, "standby", row->standby);
    json_write_text(w, "started_at", started);
    write_shards(w, "shards", list, row);
    write_epochs(w, list, row);
    json_object_begin(w, "lags");
    json_write_i64(w, "append_ms", row->lags.append_ms);
    json_write_i64(w, "due_ms", row->lags.due_ms);
    json_write_i64(w, "inbox_rows", row->lags.inbox_rows);
    json_object_end(w);
    json_object_end(w);
}

static void write_database(struct json_writer *w, const struct database_facts *facts)
{
    char now[INSTANT_TEXT_BYTES];

    instant_text(facts->now_ms, now);
    json_object_begin(w, "database");
    json_write_slice(w, "version", facts->version);
    json_write_text(w, "now", now);
    json_write_i64(w, "engine_ahead_ms", facts->clock_ahead_ms);
    json_write_i64(w, "schema", facts->schema);
    json_write_i64(w, "timeline", facts->timeline);
    json_write_i64(w, "losses_open", facts->losses_open);
    json_write_i64(w, "connections", facts->connections);
    json_write_i64(w, "connections_max", facts->connections_max);
    json_write_i64(w, "standbys", facts->standbys);
    if (facts->standby_lag_ms >= 0) {
        json_write_i64(w, "standby_lag_ms", facts->standby_lag_ms);
    } else {
        json_write_null(w, "standby_lag_ms");
    }
    json_object_begin(w, "settings");
    json_write_slice(w, "fsync", facts->fsync);
    json_write_slice(w, "full_page_writes", facts->full_page_writes);
    json_write_slice(w, "synchronous_commit", facts->synchronous_commit);
    json_write_slice(w, "synchronous_standby_names", facts->synchronous_standby_names);
    json_object_end(w);
    json_object_end(w);
}

void engines_write(struct json_writer *w, const struct list_engines *list)
{
    json_object_begin(w, NULL);
    json_array_begin(w, "items");
    for (size_t i = 0; i < list->count; i++) {
        write_engine(w, list, &list->rows[i]);
    }
    json_array_end(w);
    write_shards(w, "unowned", list, NULL);
    write_database(w, &list->database);
    json_object_end(w);
}

static void on_listed(struct store_read *read)
{
    struct work *work = read->context;
    const struct list_engines *list = container_of(read, struct list_engines, read);
    struct json_writer w;

    if (work_read_failed(work, read)) {
        return;
    }
    json_writer_init(&w, &work->out);
    engines_write(&w, list);
    work_done(work, ERR_OK, NULL);
}

void engine_get_engines(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (work_refused(work)) {
        return;
    }
    struct list_engines *list = arena_alloc(&work->arena, sizeof(*list));

    list->read = (struct store_read){.arena = &work->arena, .done = on_listed, .context = work};
    store_list_engines(engine->store, list);
}
