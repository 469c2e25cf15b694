/* The inbox: rows are put, read, and consumed together with their effect. */
#include <stdlib.h>

#include "tests/sim/pg_statements.h"

#define INBOX_CHANNEL "sagad_inbox"

enum pg_progress pg_statement_inbox_put(struct pg_call *call)
{
    struct row_inbox row = {.shard = arg_int(call, 0),
                            .id = arg_uuid(call, 1),
                            .at_ms = pg_clock_ms(call->pg),
                            .saga = arg_uuid(call, 2),
                            .kind = pg_keep(call, arg_bytes(call, 3)),
                            .payload = pg_keep(call, arg_bytes(call, 4))};
    bool inserted;

    RETURN_UNLESS_DONE(pg_insert_new(call, PG_INBOX, &row, &inserted));
    if (inserted) {
        pg_notify(call, INBOX_CHANNEL, pg_number_text(call, row.shard));
        pg_put_void(call);
    }
    return PG_DONE;
}

/* --- read --- */

static int by_id(const void *a, const void *b)
{
    const struct row_inbox *const *x = a, *const *y = b;

    return uuid_compare(&(*x)->id, &(*y)->id);
}

enum pg_progress pg_statement_inbox_read(struct pg_call *call)
{
    int64_t limit = arg_int(call, 1);
    struct uuid after = arg_uuid(call, 2);
    size_t shard_count = arg_count(call, 0), count = 0, capacity = 0;
    const struct row_inbox **found = NULL;

    for (size_t i = 0; i < shard_count; i++) {
        int64_t shard = item_int(call, 0, i), of_shard = 0;
        struct pg_row *row = pg_first(call, PG_INBOX, &(struct row_inbox){.shard = shard, .id = after});

        for (; row && of_shard < limit; row = pg_next(call, PG_INBOX, row)) {
            const struct row_inbox *seen = pg_see(call, row);

            if (seen && seen->shard != shard) {
                break;
            }
            if (!seen || uuid_equal(&seen->id, &after)) {
                continue;
            }
            if (count == capacity) {
                const struct row_inbox **larger =
                    arena_array(call->arena, 4 * capacity + 64, sizeof(struct row_inbox *));

                for (size_t k = 0; k < count; k++) {
                    larger[k] = found[k];
                }
                capacity = 4 * capacity + 64;
                found = larger;
            }
            found[count++] = seen;
            of_shard++;
        }
    }
    if (count > 0) {
        qsort(found, count, sizeof(struct row_inbox *), by_id);
    }
    for (size_t i = 0; i < count && (int64_t)i < limit; i++) {
        put_int(call, found[i]->shard);
        put_uuid(call, &found[i]->id);
        put_uuid(call, &found[i]->saga);
        put_bytes(call, found[i]->kind);
        put_bytes(call, found[i]->payload);
        put_row_end(call);
    }
    return PG_DONE;
}

enum pg_progress pg_statement_inbox_find(struct pg_call *call)
{
    const struct row_inbox key = {.shard = arg_int(call, 0), .id = arg_uuid(call, 1)};

    if (pg_see(call, pg_find(call, PG_INBOX, &key))) {
        put_int(call, 1);
        put_row_end(call);
    }
    return PG_DONE;
}

/* --- removed --- */

enum pg_progress pg_statement_inbox_drop(struct pg_call *call)
{
    const struct row_inbox key = {.shard = arg_int(call, 0), .id = arg_uuid(call, 1)};
    struct pg_touched touched = {0};
    bool deleted;

    RETURN_UNLESS_DONE(pg_delete_key(call, PG_INBOX, &key, &touched, &deleted));
    return end_with_affected(call, deleted);
}

enum pg_progress pg_statement_inbox_consume(struct pg_call *call)
{
    struct pg_touched touched = {0};
    size_t due = 0, consumed = 0;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        const struct row_inbox key = {.shard = item_int(call, 0, i), .id = item_uuid(call, 1, i)};
        bool deleted = false;

        if (pg_saga(call, key.shard, item_uuid(call, 2, i))) {
            due++;
            RETURN_UNLESS_DONE(pg_delete_key(call, PG_INBOX, &key, &touched, &deleted));
        }
        consumed += deleted;
    }
    return pg_expect(call, consumed, due);
}

enum pg_progress pg_statement_follow(struct pg_call *call)
{
    size_t count = arg_count(call, 0);
    int64_t *shards = arena_array(call->arena, count + 1, sizeof(*shards));
    size_t shard_count = 0;

    for (size_t i = 0; i < count; i++) {
        struct row_inbox row = {.shard = item_int(call, 2, i),
                                .id = item_uuid(call, 3, i),
                                .at_ms = pg_clock_ms(call->pg),
                                .saga = item_uuid(call, 4, i),
                                .kind = SLICE("start")};
        bool inserted = false, is_known = false;

        if (pg_saga(call, item_int(call, 0, i), item_uuid(call, 1, i))) {
            row.payload = pg_keep(call, item_bytes(call, 5, i));
            RETURN_UNLESS_DONE(pg_insert_new(call, PG_INBOX, &row, &inserted));
        }
        for (size_t k = 0; k < shard_count; k++) {
            is_known = is_known || shards[k] == row.shard;
        }
        if (inserted && !is_known) {
            shards[shard_count++] = row.shard;
        }
    }
    for (size_t k = 0; k < shard_count; k++) {
        pg_notify(call, INBOX_CHANNEL, pg_number_text(call, shards[k]));
        pg_put_void(call);
    }
    return PG_DONE;
}
