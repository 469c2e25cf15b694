/* The append and the questions about it. store/batch/append_batch.c has the order of its statements. */
#include <string.h>

#include "base/digest.h"
#include "base/json.h"
#include "tests/sim/pg_statements.h"

/* --- the fence --- */

enum pg_progress pg_statement_fence(struct pg_call *call)
{
    size_t count = arg_count(call, 0), held = 0;
    const size_t *order = pg_order_of_ints(call, 0);

    for (size_t i = 0; i < count; i++) {
        int64_t epoch = item_int(call, 1, order[i]);
        struct pg_row *row = pg_find(call, PG_SHARD, &(struct row_shard){.shard = item_int(call, 0, order[i])});
        const struct row_shard *seen = pg_see(call, row);
        const void *current = NULL;

        if (seen && seen->epoch == epoch) {
            RETURN_UNLESS_DONE(pg_lock(call, row, PG_KEY_SHARE, &current));
            held += current && ((const struct row_shard *)current)->epoch == epoch;
        }
    }
    return held == count ? PG_DONE : pg_fail(call, ERROR_FENCE);
}

/* --- sagas --- */

struct tag {
    struct slice name, value; /* the name is unescaped, the value raw */
};

/* Prints an object as jsonb does, with shorter names first. Tags are an object of texts; any other value stays as it
 * is. */
static struct slice jsonb_text(struct pg_call *call, struct slice text)
{
    struct json_walk walk = json_walk(text);
    size_t count = json_count(text), n = 0;
    struct tag *tags = arena_array(call->arena, count + 1, sizeof(*tags));
    struct slice name_raw, value, out;
    struct buffer buffer;

    while (n < count && json_next_member(&walk, &name_raw, &value)) {
        struct tag tag = {json_string((struct slice){name_raw.ptr - 1, name_raw.len + 2}, call->arena), value};
        size_t at = n++;

        for (; at > 0 && (tags[at - 1].name.len > tag.name.len ||
                          (tags[at - 1].name.len == tag.name.len && slice_compare(tags[at - 1].name, tag.name) > 0));
             at--) {
            tags[at] = tags[at - 1];
        }
        tags[at] = tag;
    }
    buffer_init(&buffer, 64 * 1024 + text.len * 2);
    buffer_put_char(&buffer, '{');
    for (size_t i = 0; i < n; i++) {
        struct slice string = json_string(tags[i].value, call->arena);

        buffer_put_text(&buffer, i > 0 ? ", " : "");
        pg_escape_json(&buffer, tags[i].name);
        buffer_put_text(&buffer, ": ");
        if (string.ptr) {
            pg_escape_json(&buffer, string);
        } else {
            buffer_put_slice(&buffer, tags[i].value);
        }
    }
    buffer_put_char(&buffer, '}');
    out = pg_keep(call, buffer_slice(&buffer));
    buffer_fini(&buffer);
    return out;
}

static bool is_saga_status(struct slice status)
{
    static const char *const known[] = {"running",   "waiting",   "paused",      "compensating",
                                        "escalated", "completed", "compensated", "abandoned"};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (slice_is(status, known[i])) {
            return true;
        }
    }
    return false;
}

static struct slice keep_item(struct pg_call *call, int arg, size_t i)
{
    return pg_keep(call, item_bytes(call, arg, i));
}

static struct row_saga saga_item(struct pg_call *call, size_t i)
{
    struct slice tags = item_bytes(call, 6, i);
    struct row_saga row = {.shard = item_int(call, 0, i),
                           .id = item_uuid(call, 1, i),
                           .namespace = keep_item(call, 2, i),
                           .name = keep_item(call, 3, i),
                           .version = item_int(call, 4, i),
                           .status = keep_item(call, 5, i),
                           .tags = tags.ptr ? jsonb_text(call, tags) : SLICE_NONE,
                           .input_digest = keep_item(call, 7, i),
                           .created_ms = item_time_ms(call, 8, i),
                           .updated_ms = item_time_ms(call, 9, i),
                           .has_ended = !item_is_null(call, 10, i)};

    row.ended_ms = row.has_ended ? item_time_ms(call, 10, i) : 0;
    row.started_by = keep_item(call, 11, i);
    return row;
}

enum pg_progress pg_statement_start(struct pg_call *call)
{
    size_t count = arg_count(call, 0);

    for (size_t i = 0; i < count; i++) {
        struct row_saga row = saga_item(call, i);

        if (!is_saga_status(row.status)) {
            return pg_fail(call, ERROR_CHECK);
        }
        RETURN_UNLESS_DONE(pg_insert(call, PG_SAGA, &row, NULL));
    }
    return end_with_affected(call, (int64_t)count);
}

enum pg_progress pg_statement_start_unique(struct pg_call *call)
{
    size_t count = arg_count(call, 0);
    int64_t affected = 0;

    for (size_t i = 0; i < count; i++) {
        struct row_saga row = saga_item(call, i);
        bool inserted;

        row.business_id = keep_item(call, 12, i);
        row.business_digest = keep_item(call, 13, i);
        row.key_digest = keep_item(call, 14, i);
        if (!item_is_null(call, 15, i) && pg_saga_of_business(call, item_int(call, 15, i), item_bytes(call, 14, i))) {
            continue;
        }
        if (!is_saga_status(row.status)) {
            return pg_fail(call, ERROR_CHECK);
        }
        RETURN_UNLESS_DONE(pg_insert_new(call, PG_SAGA, &row, &inserted));
        if (inserted) {
            put_uuid(call, &row.id);
            put_row_end(call);
            affected++;
        }
    }
    return end_with_affected(call, affected);
}

enum pg_progress pg_statement_lower_low(struct pg_call *call)
{
    struct pg_touched touched = {0};
    int64_t affected = 0;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        struct pg_row *row = pg_find(call, PG_SHARD, &(struct row_shard){.shard = item_int(call, 0, i)});
        const struct row_shard *seen = pg_see(call, row);
        int64_t low_ms = item_time_ms(call, 1, i);
        const void *current = NULL;

        if (seen && seen->has_low && seen->low_ms > low_ms) {
            RETURN_UNLESS_DONE(pg_take(call, &touched, row, PG_NO_KEY_UPDATE, &current));
        }
        if (current) {
            struct row_shard shard = *(const struct row_shard *)current;

            if (shard.has_low && shard.low_ms > low_ms) {
                shard.low_ms = low_ms;
                pg_update(call, row, &shard);
                affected++;
            }
        }
    }
    return end_with_affected(call, affected);
}

enum pg_progress pg_statement_status(struct pg_call *call)
{
    struct pg_touched touched = {0};
    size_t count = arg_count(call, 0), changed = 0;

    for (size_t i = 0; i < count; i++) {
        struct pg_row *row =
            pg_find(call, PG_SAGA, &(struct row_saga){.shard = item_int(call, 0, i), .id = item_uuid(call, 1, i)});
        const void *current;

        if (pg_see(call, row) && !pg_is_touched(&touched, row) && !is_saga_status(item_bytes(call, 2, i))) {
            return pg_fail(call, ERROR_CHECK); /* PostgreSQL checks this before it waits */
        }
        RETURN_UNLESS_DONE(pg_take(call, &touched, row, PG_NO_KEY_UPDATE, &current));
        if (current) {
            struct row_saga saga = *(const struct row_saga *)current;

            saga.status = keep_item(call, 2, i);
            saga.updated_ms = item_time_ms(call, 3, i);
            saga.has_ended = !item_is_null(call, 4, i);
            saga.ended_ms = saga.has_ended ? item_time_ms(call, 4, i) : 0;
            pg_update(call, row, &saga);
            changed++;
        }
    }
    return pg_expect(call, changed, count);
}

/* --- the log, and the keys of operations --- */

/* Is the turn before there? */
static bool follows(struct pg_call *call, size_t i)
{
    struct row_log key = {.shard = item_int(call, 0, i), .saga = item_uuid(call, 1, i), .seq = INT32_MIN};
    int64_t seq = item_int(call, 2, i), next = INT64_MIN; /* no such row exists */

    for (struct pg_row *at = pg_first(call, PG_LOG, &key); at; at = pg_next(call, PG_LOG, at)) {
        const struct row_log *turn = pg_see(call, at);

        if (turn && (turn->shard != key.shard || !uuid_equal(&turn->saga, &key.saga) || turn->seq >= seq)) {
            break;
        }
        next = turn ? turn->seq + turn->records : next;
    }
    return seq == 1 || next == seq;
}

static enum pg_progress put_log(struct pg_call *call, bool joined)
{
    int64_t affected = 0;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        if (!joined && !follows(call, i)) {
            return pg_fail(call, ERROR_TORN);
        }
        struct row_log row = {.shard = item_int(call, 0, i),
                              .saga = item_uuid(call, 1, i),
                              .seq = item_int(call, 2, i),
                              .records = item_int(call, 3, i),
                              .at_ms = item_time_ms(call, 4, i),
                              .epoch = item_int(call, 5, i)};

        if (joined && !pg_saga(call, row.shard, row.saga)) {
            continue;
        }
        if (row.seq <= 0 || row.records <= 0) {
            return pg_fail(call, ERROR_CHECK);
        }
        row.payload = keep_item(call, 6, i);
        row.event_tx = item_int(call, 7, i) ? pg_tx(call) : 0;
        row.rest = keep_item(call, 8, i);
        RETURN_UNLESS_DONE(pg_insert(call, PG_LOG, &row, NULL));
        affected++;
    }
    return end_with_affected(call, affected);
}

enum pg_progress pg_statement_log(struct pg_call *call)
{
    return put_log(call, false);
}

enum pg_progress pg_statement_log_unique(struct pg_call *call)
{
    return put_log(call, true);
}

/* --- awake --- */

enum pg_progress pg_statement_awake_add(struct pg_call *call)
{
    int64_t affected = 0;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        struct row_awake row = {item_int(call, 0, i), item_uuid(call, 1, i)};
        bool inserted = false;

        if (pg_saga(call, row.shard, row.saga)) {
            RETURN_UNLESS_DONE(pg_insert_new(call, PG_AWAKE, &row, &inserted));
        }
        affected += inserted;
    }
    return end_with_affected(call, affected);
}

enum pg_progress pg_statement_awake_remove(struct pg_call *call)
{
    struct pg_touched touched = {0};
    int64_t affected = 0;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        struct row_awake key = {item_int(call, 0, i), item_uuid(call, 1, i)};
        bool deleted;

        RETURN_UNLESS_DONE(pg_delete_key(call, PG_AWAKE, &key, &touched, &deleted));
        affected += deleted;
    }
    return end_with_affected(call, affected);
}

/* --- what is asked about an append --- */

static void put_taken(struct pg_call *call, size_t i, const struct row_saga *saga, int64_t found)
{
    if (saga) {
        put_int(call, (int64_t)i + 1);
        put_uuid(call, &saga->id);
        put_bytes(call, saga->input_digest);
        put_bytes(call, saga->business_digest);
        put_int(call, found);
        put_row_end(call);
    }
}

enum pg_progress pg_statement_taken(struct pg_call *call)
{
    for (size_t i = 0; i < arg_count(call, 0); i++) {
        struct slice key = item_bytes(call, 2, i);

        put_taken(call, i, pg_saga_of_business(call, item_int(call, 0, i), item_bytes(call, 1, i)), 1);
        if (!item_is_null(call, 3, i)) {
            put_taken(call, i, pg_saga_of_business(call, item_int(call, 3, i), key), 2);
        }
        if (key.ptr) {
            put_taken(call, i, pg_saga_of_start_key(call, key), 3);
        }
    }
    return PG_DONE;
}

enum pg_progress pg_statement_epochs(struct pg_call *call)
{
    const size_t *order = pg_order_of_ints(call, 0);

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        const struct row_shard *shard = pg_shard(call, item_int(call, 0, order[i]));

        if (shard && (i == 0 || item_int(call, 0, order[i - 1]) != shard->shard)) {
            put_int(call, shard->shard);
            put_int(call, shard->epoch);
            put_row_end(call);
        }
    }
    return PG_DONE;
}

enum pg_progress pg_statement_hold_shards(struct pg_call *call)
{
    const size_t *order = pg_order_of_ints(call, 0);

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        int64_t shard = item_int(call, 0, order[i]);
        struct pg_row *row = pg_find(call, PG_SHARD, &(struct row_shard){.shard = shard});
        const void *current = NULL;

        if (pg_see(call, row) && (i == 0 || item_int(call, 0, order[i - 1]) != shard)) {
            RETURN_UNLESS_DONE(pg_lock(call, row, PG_KEY_SHARE, &current));
        }
        if (current) {
            put_int(call, shard);
            put_row_end(call);
        }
    }
    return PG_DONE;
}

enum pg_progress pg_statement_history_missing(struct pg_call *call)
{
    for (size_t i = 0; i < arg_count(call, 0); i++) {
        struct row_log key = {
            .shard = item_int(call, 0, i), .saga = item_uuid(call, 1, i), .seq = item_int(call, 2, i)};
        const struct row_log *row = pg_see(call, pg_find(call, PG_LOG, &key));

        if (!row || row->epoch != item_int(call, 3, i) || row->at_ms != item_time_ms(call, 4, i)) {
            put_uuid(call, &key.saga);
            put_int(call, key.seq);
            put_time_ms(call, item_time_ms(call, 4, i));
            put_row_end(call);
        }
    }
    return PG_DONE;
}

enum pg_progress pg_statement_history_marks(struct pg_call *call)
{
    struct pg_row *row = pg_first(call, PG_SHARD, &(struct row_shard){.shard = INT16_MIN});

    for (; row; row = pg_next(call, PG_SHARD, row)) {
        const struct row_shard *shard = pg_see(call, row);

        if (shard) {
            put_int(call, shard->shard);
            put_int(call, shard->epoch);
            put_int(call, shard->turns);
            put_row_end(call);
        }
    }
    return PG_DONE;
}

/* No history is rewound here: confirmed commits stay, and no person has to accept a loss. */
enum pg_progress pg_statement_history_open(struct pg_call *call)
{
    put_int(call, 0);
    return end_with_row(call);
}

enum pg_progress pg_statement_history_found(struct pg_call *call)
{
    return end_with_affected(call, 1);
}

enum pg_progress pg_statement_history_sagas(struct pg_call *call)
{
    return end_with_affected(call, 0);
}

enum pg_progress pg_statement_history_shards(struct pg_call *call)
{
    return end_with_affected(call, 0);
}

enum pg_progress pg_statement_history_mark(struct pg_call *call)
{
    return end_with_affected(call, 0);
}

enum pg_progress pg_statement_history_calls(struct pg_call *call)
{
    return end_with_affected(call, 0);
}

enum pg_progress pg_statement_history_accepted(struct pg_call *call)
{
    put_int(call, true);
    return end_with_row(call);
}

enum pg_progress pg_statement_look(struct pg_call *call)
{
    for (size_t i = 0; i < arg_count(call, 0); i++) {
        struct row_log key = {
            .shard = item_int(call, 0, i), .saga = item_uuid(call, 1, i), .seq = item_int(call, 2, i)};
        const struct row_log *row = pg_see(call, pg_find(call, PG_LOG, &key));

        if (row) {
            struct digest digest = digest_sha256(row->payload);

            put_int(call, (int64_t)i + 1);
            put_bytes(call, (struct slice){(const char *)digest.bytes, sizeof(digest.bytes)});
            put_int(call, row->epoch);
            put_row_end(call);
        }
    }
    return PG_DONE;
}
