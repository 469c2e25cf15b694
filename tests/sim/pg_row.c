/*
 * Rows and their versions: how they are made, which transaction sees which version, and what statements do with them. A
 * table is an array in the order of its key, because tables are small here.
 */
#include <string.h>

#include "tests/sim/pg_state.h"

/* Returns the place of the first row whose key is not below `key`. */
static size_t place_of(const struct pg_rows *rows, enum pg_table table, const void *key)
{
    size_t low = 0, high = rows->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (rows_compare(table, rows->sorted[middle]->key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* --- making and removing --- */

static struct pg_row *row_at(struct pg *pg, enum pg_table table, const void *key)
{
    struct pg_rows *rows = &pg->tables[table];
    size_t place = place_of(rows, table, key);

    return place < rows->count && rows_compare(table, rows->sorted[place]->key, key) == 0 ? rows->sorted[place] : NULL;
}

static struct pg_row *row_new(struct pg *pg, enum pg_table table, const void *key)
{
    struct pg_rows *rows = &pg->tables[table];
    size_t place = place_of(rows, table, key);
    struct pg_row *row = pg->spare_row;

    if (row) {
        pg->spare_row = row->next;
    } else {
        row = arena_alloc(&pg->arena, sizeof(*row));
    }
    if (rows->count == rows->capacity) {
        size_t capacity = rows->capacity > 0 ? 2 * rows->capacity : 64;
        struct pg_row **larger = arena_array(&pg->arena, capacity, sizeof(struct pg_row *));

        if (rows->count > 0) {
            memcpy(larger, rows->sorted, rows->count * sizeof(struct pg_row *));
        }
        rows->sorted = larger;
        rows->capacity = capacity;
    }
    *row = (struct pg_row){
        .previous = place > 0 ? rows->sorted[place - 1] : NULL,
        .next = place < rows->count ? rows->sorted[place] : NULL,
        .key = key,
        .table = table,
    };
    if (row->previous) {
        row->previous->next = row;
    }
    if (row->next) {
        row->next->previous = row;
    }
    memmove(rows->sorted + place + 1, rows->sorted + place, (rows->count - place) * sizeof(struct pg_row *));
    rows->sorted[place] = row;
    rows->count++;
    return row;
}

/* Removes a row without versions. Its `key` is still readable. */
void row_remove(struct pg *pg, struct pg_row *row)
{
    struct pg_rows *rows = &pg->tables[row->table];
    size_t place = place_of(rows, row->table, row->key);

    CHECK(place < rows->count && rows->sorted[place] == row);
    memmove(rows->sorted + place, rows->sorted + place + 1, (rows->count - place - 1) * sizeof(struct pg_row *));
    rows->count--;
    if (row->previous) {
        row->previous->next = row->next;
    }
    if (row->next) {
        row->next->previous = row->previous;
    }
    locks_drop_of_row(pg, row);
    row->newest = NULL;
    row->key = NULL;
    row->next = pg->spare_row;
    pg->spare_row = row;
}

static struct pg_version *version_new(struct pg *pg, struct pg_row *row, enum pg_table table)
{
    struct pg_rows *rows = &pg->tables[table];
    struct pg_version *version = rows->spare;

    if (version) {
        rows->spare = version->older;
    } else {
        version = arena_alloc(&pg->arena, sizeof(*version) + rows_bytes[table]);
    }
    *version = (struct pg_version){.row = row};
    return version;
}

void version_free(struct pg *pg, struct pg_version *version)
{
    struct pg_rows *rows = &pg->tables[version->row->table];

    version->row = NULL;
    version->older = rows->spare;
    rows->spare = version;
}

static void row_rekey(struct pg_row *row)
{
    row->key = row->newest->gone ? row->newest->older->data : row->newest->data;
}

void row_unlocked(struct pg *pg, struct pg_row *row)
{
    struct pg_version *kept = row->kept;

    if (kept && !row->locks) {
        row_remove(pg, row); /* the key is in `kept` */
        row->kept = NULL;
        version_free(pg, kept);
    }
}

/* Takes back the newest version. */
void row_pop(struct pg *pg, struct pg_row *row)
{
    struct pg_version *version = row->newest;

    if (version->older) {
        row->newest = version->older;
        row_rekey(row);
    } else {
        row_remove(pg, row);
    }
    version_free(pg, version);
}

static void write_version(struct pg_call *call, struct pg_row *row, struct pg_version *version)
{
    struct pg_session *session = call->session;

    session_number(session);
    version->owner = session;
    version->command = session->command;
    version->older = row->newest;
    version->written = session->written;
    session->written = version;
    row->newest = version;
    row_rekey(row);
    if (row->kept) {
        version_free(session->pg, row->kept);
        row->kept = NULL;
    }
}

/* Makes the rows that migrations insert: 64 shards, and the version of the holds. */
void rows_init(struct pg *pg)
{
    pg->commits = 1;
    memset(pg->epochs, 0, sizeof(pg->epochs));
    for (int64_t shard = 0; shard < 64; shard++) {
        struct pg_version *version = version_new(pg, NULL, PG_SHARD);
        struct row_shard *data = (void *)version->data;

        *data = (struct row_shard){.shard = shard};
        version->commit = 1;
        version->row = row_new(pg, PG_SHARD, data);
        version->row->newest = version;
    }
    struct pg_version *holds = version_new(pg, NULL, PG_HOLD_VERSION);

    holds->commit = 1;
    holds->row = row_new(pg, PG_HOLD_VERSION, holds->data);
    holds->row->newest = holds;
}

/* --- what statements do --- */

struct pg_row *pg_first(struct pg_call *call, enum pg_table table, const void *from)
{
    struct pg_rows *rows = &call->pg->tables[table];
    size_t place = place_of(rows, table, from);

    return place < rows->count ? rows->sorted[place] : NULL;
}

struct pg_row *pg_next(struct pg_call *call, enum pg_table table, struct pg_row *row)
{
    (void)call;
    CHECK(row->table == table);
    return row->next;
}

struct pg_row *pg_find(struct pg_call *call, enum pg_table table, const void *key)
{
    return row_at(call->pg, table, key);
}

static const struct pg_version *seen_version(const struct pg_session *session, const struct pg_row *row)
{
    for (const struct pg_version *version = row->newest; version; version = version->older) {
        if (version->owner ? version->owner == session && version->command < session->command
                           : version->commit <= session->snapshot) {
            return version;
        }
    }
    return NULL;
}

const void *pg_see(struct pg_call *call, struct pg_row *row)
{
    const struct pg_version *version = row ? seen_version(call->session, row) : NULL;

    CHECK(!version || version->row == row);
    return version && !version->gone ? version->data : NULL;
}

/*
 * Returns the row as it is now, committed by anybody or written by us. Returns NULL when the version that was seen is
 * gone, or when this statement has changed it (`changed`). Of a row that was not seen only the newest version counts.
 */
const void *row_now(const struct pg_session *session, const struct pg_row *row, bool *unseen, bool *changed)
{
    const struct pg_version *seen = seen_version(session, row), *now = NULL;

    *unseen = !seen || seen->gone || row == session->conflict;
    *changed = false;
    for (const struct pg_version *version = row->newest; version; version = version->older) {
        if (version->owner && version->owner != session) {
            continue; /* its commit is still open; its locks say who has to wait */
        }
        if (version->owner && version->command >= session->command) {
            *changed = true;
            return NULL;
        }
        if (version->gone) {
            return NULL; /* the version above it is another row with the same key */
        }
        now = now ? now : version;
        if (*unseen || version == seen) {
            break;
        }
    }
    return now ? now->data : NULL;
}

uint64_t row_last_commit(const struct pg_row *row)
{
    const struct pg_version *version = row->newest;

    while (version && version->owner) {
        version = version->older;
    }
    return version ? version->commit : 0;
}

/* --- insert, update, delete --- */

static bool has_same_second_key(enum pg_table table, const void *left, const void *right, bool by_key)
{
    if (table == PG_SAGA) {
        const struct row_saga *a = left, *b = right;

        return by_key ? a->key_digest.ptr && slice_equal(a->key_digest, b->key_digest)
                      : a->shard == b->shard && a->business_digest.ptr &&
                            slice_equal(a->business_digest, b->business_digest);
    }
    const struct row_lock *a = left, *b = right;

    return a->saga_shard == b->saga_shard && uuid_equal(&a->saga, &b->saga) && slice_equal(a->digest, b->digest);
}

/* Looks for a row with this key. After PG_DONE `in_the_way` is that row or NULL. */
static enum pg_progress look_at_rival(struct pg_call *call, struct pg_row *row, struct pg_row **in_the_way)
{
    struct pg_session *rival = NULL;

    if (row->newest && row->newest->owner) {
        rival = row->newest->owner;
    } else if ((!row->newest || row->newest->gone) && row->locks) {
        rival = row->locks->session; /* the session that took the key, and waits */
    } else {
        for (const struct pg_row_lock *lock = row->locks; lock && !rival; lock = lock->next) {
            rival = lock->is_written && lock->session != call->session ? lock->session : NULL;
        }
    }
    if (rival && rival != call->session) {
        call->session->wait_session = rival;
        call->session->wait_transaction = rival->transaction;
        return lock_wait(call, PG_WAIT_TRANSACTION);
    }
    *in_the_way = !row->newest || row->newest->gone ? NULL : row;
    return PG_DONE;
}

/* Looks at the index on the key of a lock, on the business id of a saga, or, with `by_key`, on the key that a saga was
 * started with. */
static enum pg_progress look_at_second_key(struct pg_call *call, enum pg_table table, const void *data, bool by_key,
                                           struct pg_row **in_the_way)
{
    const struct row_saga *saga = data;
    const struct pg_rows *rows = &call->pg->tables[table];
    bool is_of_shard = table == PG_SAGA && !by_key;
    size_t i = is_of_shard ? place_of(rows, table, &(struct row_saga){.shard = saga->shard}) : 0;

    for (; i < rows->count && !*in_the_way; i++) {
        struct pg_row *row = rows->sorted[i];

        if (is_of_shard && ((const struct row_saga *)row->key)->shard != saga->shard) {
            break;
        }
        if (has_same_second_key(table, row->key, data, by_key)) {
            RETURN_UNLESS_DONE(look_at_rival(call, row, in_the_way));
        }
    }
    return PG_DONE;
}

/* Looks at the indexes of a saga in the order in which they were made. Each index is looked at only when the earlier
 * ones had no row. */
static enum pg_progress look_at_saga(struct pg_call *call, const struct row_saga *saga, struct pg_row *row,
                                     struct pg_row **in_the_way)
{
    if (row) {
        RETURN_UNLESS_DONE(look_at_rival(call, row, in_the_way));
    }
    if (!*in_the_way && saga->business_digest.ptr) {
        RETURN_UNLESS_DONE(look_at_second_key(call, PG_SAGA, saga, false, in_the_way));
    }
    if (!*in_the_way && saga->key_digest.ptr) {
        RETURN_UNLESS_DONE(look_at_second_key(call, PG_SAGA, saga, true, in_the_way));
    }
    return PG_DONE;
}

/* A row that DO NOTHING has met stays left out, even if it is gone when the statement is called again. */
static struct pg_row **met_next(struct pg_session *session)
{
    if (session->met_index == session->met_capacity) {
        size_t capacity = session->met_capacity > 0 ? 4 * session->met_capacity : 16;
        struct pg_row **larger = arena_array(&session->pg->arena, capacity, sizeof(struct pg_row *));

        if (session->met_index > 0) {
            memcpy(larger, session->met, session->met_index * sizeof(struct pg_row *));
        }
        session->met = larger; /* the session keeps the larger array */
        session->met_capacity = capacity;
    }
    if (session->met_index == session->met_count) {
        session->met[session->met_count++] = NULL;
    }
    return &session->met[session->met_index++];
}

/* Looks for a row in the way. When the second key is the arbiter, a row with the same primary key is an error
 * instead. */
static enum pg_progress look_for_conflict(struct pg_call *call, enum pg_table table, const void *data,
                                          struct pg_row *row, bool has_arbiter, struct pg_row **in_the_way)
{
    if (table == PG_SAGA) { /* each key of a saga is an arbiter */
        RETURN_UNLESS_DONE(look_at_saga(call, data, row, in_the_way));
        return *in_the_way && !has_arbiter ? pg_fail(call, "23505") : PG_DONE;
    }
    if (table == PG_LOCK) {
        RETURN_UNLESS_DONE(look_at_second_key(call, table, data, false, in_the_way));
        has_arbiter = has_arbiter && *in_the_way;
    }
    if (!*in_the_way && row) {
        RETURN_UNLESS_DONE(look_at_rival(call, row, in_the_way));
    }
    return *in_the_way && !has_arbiter ? pg_fail(call, "23505") : PG_DONE;
}

enum pg_progress pg_insert(struct pg_call *call, enum pg_table table, const void *data, struct pg_row **existing)
{
    struct pg_row *row = row_at(call->pg, table, data), *in_the_way = NULL;
    struct pg_row **met = existing ? met_next(call->session) : NULL;
    struct pg_version *version;

    if (met && *met) {
        in_the_way = *met;
        CHECK(in_the_way->table == table);
    } else {
        RETURN_UNLESS_DONE(look_for_conflict(call, table, data, row, existing != NULL, &in_the_way));
    }
    if (existing) {
        *existing = *met = in_the_way;
    }
    if (in_the_way) {
        call->session->conflict = in_the_way;
        return PG_DONE;
    }
    if (call->pg->full) {
        call->pg->full();
        return pg_fail(call, "53100");
    }
    version = version_new(call->pg, NULL, table);
    memcpy(version->data, data, rows_bytes[table]);
    if (!row) {
        row = row_new(call->pg, table, version->data);
    }
    version->row = row;
    write_version(call, row, version);
    return PG_DONE;
}

void pg_update(struct pg_call *call, struct pg_row *row, const void *data)
{
    struct pg_version *version = version_new(call->pg, row, row->table);

    CHECK(lock_is_held(call->session, row, PG_NO_KEY_UPDATE) && row->newest && !row->newest->gone);
    memcpy(version->data, data, rows_bytes[row->table]);
    CHECK(rows_compare(row->table, row->key, version->data) == 0);
    write_version(call, row, version);
}

void pg_delete(struct pg_call *call, struct pg_row *row)
{
    struct pg_version *version = version_new(call->pg, row, row->table);

    CHECK(lock_is_held(call->session, row, PG_UPDATE) && row->newest && !row->newest->gone);
    version->gone = true;
    write_version(call, row, version);
}

struct slice pg_keep(struct pg_call *call, struct slice bytes)
{
    return arena_slice(&call->pg->arena, bytes);
}
