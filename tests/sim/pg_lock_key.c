/* Locks on business keys: sagad.lock_take() and sagad.lock_release() of migration 0007, statement by statement. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/pg_statements.h"

enum { LATCH_CLASS = 1397178694 };

/* Runs sagad.lock_guard() of migration 0038. Nobody reads or changes the row that it locks, so a lock stands for it. */
static enum pg_progress guard(struct pg_call *call, struct slice digest)
{
    return pg_advisory_xact(call, LATCH_CLASS, digest.len > 0 ? (uint8_t)digest.ptr[0] : 0);
}

static const struct row_lock *lock_of(struct pg_call *call, struct pg_row *row, int64_t shard, struct slice digest)
{
    const struct row_lock *lock = pg_see(call, row);

    return lock && lock->shard == shard && slice_equal(lock->digest, digest) ? lock : NULL;
}

static struct pg_row *first_of(struct pg_call *call, int64_t shard, struct slice digest)
{
    return pg_first(call, PG_LOCK, &(struct row_lock){.shard = shard, .digest = digest, .ticket = INT64_MIN});
}

/* Is this a row of another key, so that no more rows follow? */
static bool is_behind(struct pg_call *call, struct pg_row *row, int64_t shard, struct slice digest)
{
    return pg_see(call, row) && !lock_of(call, row, shard, digest);
}

enum pg_progress pg_statement_lock_take(struct pg_call *call)
{
    int64_t shard = arg_int(call, 0), saga_shard = arg_int(call, 4), mine = 0, oldest = 0, newest = 0;
    struct slice digest = arg_bytes(call, 1);
    struct uuid saga = arg_uuid(call, 5);
    struct pg_row *row = pg_find(call, PG_SAGA, &(struct row_saga){.shard = saga_shard, .id = saga});
    const struct row_saga *seen = pg_see(call, row);
    const void *current = NULL;
    bool has_mine = false, has_oldest = false;

    if (seen && !seen->has_ended) {
        RETURN_UNLESS_DONE(pg_lock(call, row, PG_SHARE, &current));
    }
    if (!current || ((const struct row_saga *)current)->has_ended) {
        return PG_DONE; /* held is null, so the statement leaves the row out */
    }
    RETURN_UNLESS_DONE(guard(call, digest));
    pg_next_statement(call);
    for (row = first_of(call, shard, digest); row && !is_behind(call, row, shard, digest);
         row = pg_next(call, PG_LOCK, row)) {
        const struct row_lock *lock = lock_of(call, row, shard, digest);

        if (!lock) {
            continue;
        }
        if (lock->saga_shard == saga_shard && uuid_equal(&lock->saga, &saga)) {
            has_mine = true;
            mine = lock->ticket;
        }
        oldest = has_oldest ? oldest : lock->ticket;
        has_oldest = true;
        newest = lock->ticket;
    }
    if (!has_mine && (!has_oldest || !arg_int(call, 6))) {
        struct row_lock lock = {.shard = shard,
                                .digest = pg_keep(call, digest),
                                .ticket = newest + 1,
                                .saga_shard = saga_shard,
                                .saga = saga,
                                .namespace = pg_keep(call, arg_bytes(call, 2)),
                                .key = pg_keep(call, arg_bytes(call, 3)),
                                .at_ms = pg_clock_ms(call->pg)};

        pg_next_statement(call);
        RETURN_UNLESS_DONE(pg_insert(call, PG_LOCK, &lock, NULL));
        has_mine = true;
        mine = lock.ticket;
    }
    put_int(call, has_mine && (!has_oldest || mine == oldest));
    return end_with_row(call);
}

/* --- release --- */

struct given { /* a key that was given back, with its smallest ticket */
    int64_t shard, ticket;
    struct slice digest;
};

static int by_digest(const void *a, const void *b)
{
    const struct given *x = a, *y = b;
    int order = slice_compare(x->digest, y->digest);

    return order != 0 ? order : x->shard < y->shard ? -1 : x->shard > y->shard;
}

static bool is_of_sagas(struct pg_call *call, const struct row_lock *lock)
{
    for (size_t i = 0; i < arg_count(call, 0); i++) {
        struct uuid saga = item_uuid(call, 1, i);

        if (lock->saga_shard == item_int(call, 0, i) && uuid_equal(&lock->saga, &saga)) {
            return true;
        }
    }
    return false;
}

static struct pg_row *first_lock(struct pg_call *call)
{
    return pg_first(call, PG_LOCK, &(struct row_lock){.shard = INT16_MIN, .digest = SLICE(""), .ticket = INT64_MIN});
}

/* Finds the keys of these sagas as the statement sees them, each once, in order of their digests. Returns how many. */
static size_t find_given(struct pg_call *call, struct given **out)
{
    size_t count = 0, n = 0;
    struct given *found;

    for (struct pg_row *row = first_lock(call); row; row = pg_next(call, PG_LOCK, row)) {
        count++;
    }
    found = arena_array(call->arena, count + 1, sizeof(*found));
    for (struct pg_row *row = first_lock(call); row; row = pg_next(call, PG_LOCK, row)) {
        const struct row_lock *lock = pg_see(call, row);

        if (lock && is_of_sagas(call, lock) &&
            (n == 0 || found[n - 1].shard != lock->shard || !slice_equal(found[n - 1].digest, lock->digest))) {
            found[n++] = (struct given){lock->shard, lock->ticket, lock->digest}; /* tickets come in order */
        }
    }
    qsort(found, n, sizeof(*found), by_digest);
    *out = found;
    return n;
}

static enum pg_progress tell_heir(struct pg_call *call, const struct given *given)
{
    struct pg_row *row = first_of(call, given->shard, given->digest);
    struct buffer payload;
    struct row_inbox input;

    while (row && !pg_see(call, row)) {
        row = pg_next(call, PG_LOCK, row);
    }
    const struct row_lock *heir = row ? lock_of(call, row, given->shard, given->digest) : NULL;

    if (!heir || heir->ticket <= given->ticket) {
        return PG_DONE;
    }
    buffer_init(&payload, 1024 * 1024);
    buffer_put_text(&payload, "{\"namespace\" : ");
    pg_escape_json(&payload, heir->namespace);
    buffer_put_text(&payload, ", \"key\" : ");
    pg_escape_json(&payload, heir->key);
    buffer_put_char(&payload, '}');
    input = (struct row_inbox){.shard = heir->saga_shard,
                               .id = pg_new_id(call),
                               .at_ms = pg_clock_ms(call->pg),
                               .saga = heir->saga,
                               .kind = SLICE("locked"),
                               .payload = pg_keep(call, buffer_slice(&payload))};
    buffer_fini(&payload);
    pg_next_statement(call);
    RETURN_UNLESS_DONE(pg_insert(call, PG_INBOX, &input, NULL));
    pg_notify(call, "sagad_inbox", pg_number_text(call, input.shard));
    return PG_DONE;
}

enum pg_progress pg_statement_lock_release(struct pg_call *call)
{
    struct pg_touched touched = {0};
    struct given *given;
    size_t count = find_given(call, &given);
    struct pg_row *row, *next;

    for (size_t i = 0; i < count; i++) {
        RETURN_UNLESS_DONE(guard(call, given[i].digest));
    }
    pg_next_statement(call); /* sees what was committed while the statement above waited */
    count = find_given(call, &given);
    for (row = first_lock(call); row; row = next) {
        const struct row_lock *lock = pg_see(call, row);
        const void *current = NULL;

        next = pg_next(call, PG_LOCK, row);
        if (lock && is_of_sagas(call, lock)) {
            RETURN_UNLESS_DONE(pg_take(call, &touched, row, PG_UPDATE, &current));
        }
        if (current) {
            pg_delete(call, row);
        }
    }
    for (size_t i = 0; i < count; i++) {
        pg_next_statement(call);
        RETURN_UNLESS_DONE(tell_heir(call, &given[i]));
    }
    pg_put_void(call);
    return PG_DONE;
}
