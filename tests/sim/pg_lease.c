/* Leases: the owner of a shard, the end of the lease, and the epoch that proves it. */
#include <string.h>

#include "tests/sim/pg_statements.h"

static void put_time_or_null(struct pg_call *call, bool is_there, int64_t ms)
{
    if (is_there) {
        put_time_ms(call, ms);
    } else {
        put_null(call);
    }
}

enum pg_progress pg_statement_lease_table(struct pg_call *call)
{
    struct pg_row *row = pg_first(call, PG_SHARD, &(struct row_shard){.shard = INT16_MIN});

    for (; row; row = pg_next(call, PG_SHARD, row)) {
        const struct row_shard *shard = pg_see(call, row);

        if (shard) {
            put_int(call, shard->shard);
            put_int(call, shard->epoch);
            put_bytes(call, shard->owner);
            put_bytes(call, shard->owner_identity);
            put_time_or_null(call, shard->has_expiry, shard->expires_ms);
            put_time_or_null(call, shard->has_low, shard->low_ms);
            put_int(call, shard->has_expiry ? pg_left_ms(call, shard->expires_ms) : -1);
            put_int(call, shard->turns);
            put_row_end(call);
        }
    }
    return PG_DONE;
}

static bool is_among(struct pg_call *call, int arg, struct slice text)
{
    for (size_t i = 0; text.ptr && i < arg_count(call, arg); i++) {
        if (slice_equal(item_bytes(call, arg, i), text)) {
            return true;
        }
    }
    return false;
}

/* Computes split_part(text, '/', n), which is empty when there are fewer parts. */
static struct slice part_of(const char *text, int n)
{
    for (; n > 1; n--) {
        const char *slash = strchr(text, '/');

        if (!slash) {
            return SLICE("");
        }
        text = slash + 1;
    }
    return (struct slice){text, strcspn(text, "/")};
}

static bool is_backend_to_end(int pid, int64_t started_us, const char *application_name, void *context)
{
    struct pg_call *call = context;

    (void)pid;
    (void)started_us;
    return strncmp(application_name, "sagad/", 6) == 0 && is_among(call, 0, part_of(application_name, 2)) &&
           (arg_is_null(call, 1) || slice_equal(part_of(application_name, 3), arg_bytes(call, 1)));
}

enum pg_progress pg_statement_lease_end_backends(struct pg_call *call)
{
    put_int(call, (int64_t)pg_end_sessions(call, is_backend_to_end, call));
    return end_with_row(call);
}

enum pg_progress pg_statement_lease_lock(struct pg_call *call)
{
    for (size_t i = 0; i < arg_count(call, 1); i++) {
        put_int(call, item_int(call, 1, i));
        put_int(call, pg_advisory_try(call, arg_int(call, 0), item_int(call, 1, i)));
        put_row_end(call);
    }
    return PG_DONE;
}

enum pg_progress pg_statement_lease_unlock(struct pg_call *call)
{
    for (size_t i = 0; i < arg_count(call, 1); i++) {
        put_int(call, pg_advisory_unlock(call, arg_int(call, 0), item_int(call, 1, i)));
        put_row_end(call);
    }
    return PG_DONE;
}

enum pg_progress pg_statement_lease_unlock_all(struct pg_call *call)
{
    pg_advisory_unlock_all(call);
    pg_put_void(call);
    return PG_DONE;
}

static bool is_free(struct pg_call *call, const struct row_shard *shard)
{
    return !shard->has_expiry || shard->expires_ms * 1000 < pg_clock_us(call->pg) ||
           is_among(call, 1, shard->owner_identity);
}

static int64_t next_epoch(struct pg_call *call, int64_t epoch)
{
    int64_t first = (int64_t)(pg_timeline(call) - 1) << 32;

    return epoch + 1 > first ? epoch + 1 : first;
}

enum pg_progress pg_statement_lease_take(struct pg_call *call)
{
    size_t count = arg_count(call, 0);
    const size_t *order = pg_order_of_ints(call, 0);
    struct pg_touched touched = {0};

    for (size_t i = 0; i < count; i++) {
        struct pg_row *row = pg_find(call, PG_SHARD, &(struct row_shard){.shard = item_int(call, 0, order[i])});
        const struct row_shard *seen = pg_see(call, row);
        const void *current = NULL;

        if (seen && is_free(call, seen)) {
            RETURN_UNLESS_DONE(pg_take(call, &touched, row, PG_UPDATE, &current));
        }
        if (current && is_free(call, current)) {
            struct row_shard shard = *(const struct row_shard *)current;

            shard.epoch = next_epoch(call, shard.epoch);
            shard.owner = pg_keep(call, arg_bytes(call, 2));
            shard.owner_identity = pg_keep(call, arg_bytes(call, 3));
            shard.has_expiry = true;
            shard.expires_ms = pg_clock_ms(call->pg) + arg_int(call, 4);
            pg_update(call, row, &shard);
            put_int(call, shard.shard);
            put_int(call, shard.epoch);
            put_time_or_null(call, shard.has_low, shard.low_ms);
            put_int(call, shard.turns);
            put_row_end(call);
        }
    }
    return end_with_affected(call, (int64_t)touched.count);
}

/* Is the shard held in this epoch by this owner? */
static bool is_held(struct pg_call *call, const struct row_shard *shard, size_t i, int identity_arg)
{
    return shard->epoch == item_int(call, 1, i) && slice_equal(shard->owner_identity, arg_bytes(call, identity_arg)) &&
           shard->owner_identity.ptr;
}

static void move_low(struct pg_call *call, struct row_shard *shard, size_t i)
{
    bool has_seen = !item_is_null(call, 3, i);
    int64_t low_ms;

    if (item_is_null(call, 2, i)) {
        return;
    }
    low_ms = item_time_ms(call, 2, i);
    if (shard->has_low == has_seen && (!has_seen || shard->low_ms == item_time_ms(call, 3, i))) {
        shard->has_low = true;
        shard->low_ms = low_ms;
    } else if (shard->has_low && shard->low_ms > low_ms) {
        shard->low_ms = low_ms;
    }
}

enum pg_progress pg_statement_lease_renew(struct pg_call *call)
{
    struct pg_touched touched = {0};
    const size_t *order = pg_order_of_ints(call, 0); /* the table drives the join */
    int64_t affected = 0;

    for (size_t k = 0; k < arg_count(call, 0); k++) {
        size_t i = order[k];
        struct pg_row *row = pg_find(call, PG_SHARD, &(struct row_shard){.shard = item_int(call, 0, i)});
        const struct row_shard *seen = pg_see(call, row);
        const void *current = NULL;

        if (seen && is_held(call, seen, i, 5)) {
            RETURN_UNLESS_DONE(pg_take(call, &touched, row, PG_NO_KEY_UPDATE, &current));
        }
        if (current && is_held(call, current, i, 5)) {
            struct row_shard shard = *(const struct row_shard *)current;

            shard.has_expiry = true;
            shard.expires_ms = pg_clock_ms(call->pg) + arg_int(call, 4);
            move_low(call, &shard, i);
            shard.turns = item_int(call, 6, i) > shard.turns ? item_int(call, 6, i) : shard.turns;
            pg_update(call, row, &shard);
            put_int(call, shard.shard);
            put_time_or_null(call, shard.has_low, shard.low_ms);
            put_time_or_null(call, true, shard.expires_ms);
            put_row_end(call);
            affected++;
        }
    }
    return end_with_affected(call, affected);
}

enum pg_progress pg_statement_lease_release(struct pg_call *call)
{
    struct pg_touched touched = {0};
    const size_t *order = pg_order_of_ints(call, 0); /* the table drives the join */
    int64_t count = 0;

    for (size_t k = 0; k < arg_count(call, 0); k++) {
        size_t i = order[k];
        struct pg_row *row = pg_find(call, PG_SHARD, &(struct row_shard){.shard = item_int(call, 0, i)});
        const struct row_shard *seen = pg_see(call, row);
        const void *current = NULL;

        if (seen && is_held(call, seen, i, 2)) {
            RETURN_UNLESS_DONE(pg_take(call, &touched, row, PG_NO_KEY_UPDATE, &current));
        }
        if (current && is_held(call, current, i, 2)) {
            struct row_shard shard = *(const struct row_shard *)current;

            shard.owner = shard.owner_identity = SLICE_NONE;
            shard.has_expiry = false;
            shard.expires_ms = 0;
            pg_update(call, row, &shard);
            count++;
        }
    }
    pg_notify(call, "sagad_leases", SLICE(""));
    put_int(call, count);
    put_bytes(call, SLICE(""));
    return end_with_row(call);
}
