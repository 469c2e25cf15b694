/* Grants: migration 0031. */
#include "tests/sim/pg_statements.h"

#include "base/json.h"

static void put_columns(struct pg_call *call, const struct row_grant *grant)
{
    put_uuid(call, &grant->id);
    put_bytes(call, grant->secret);
    put_bytes(call, grant->namespace);
    put_bytes(call, grant->body);
    put_time_ms(call, grant->made_ms);
    put_time_ms(call, grant->expires_ms);
    if (grant->revoked_ms) {
        put_time_ms(call, grant->revoked_ms);
    } else {
        put_null(call);
    }
    put_bytes(call, grant->revocation);
}

static enum pg_progress put_grant(struct pg_call *call, const struct row_grant *grant)
{
    put_columns(call, grant);
    return end_with_row(call);
}

static bool holds(struct pg_call *call, const struct row_grant *grant)
{
    return !grant->revoked_ms && grant->expires_ms > pg_clock_ms(call->pg);
}

/* No grant has ended 7 days ago here: none is removed. */
enum pg_progress pg_statement_grant_put(struct pg_call *call)
{
    struct row_grant row = {.id = arg_uuid(call, 0),
                            .secret = pg_keep(call, arg_bytes(call, 1)),
                            .namespace = pg_keep(call, arg_bytes(call, 2)),
                            .body = pg_keep(call, arg_bytes(call, 3)),
                            .made_ms = pg_clock_ms(call->pg),
                            .expires_ms = arg_time_ms(call, 4),
                            .revocation = SLICE_NONE};
    bool inserted;

    pg_next_statement(call);
    if (!arg_is_null(call, 6)) {
        const struct row_saga *saga = pg_saga(call, arg_int(call, 5), arg_uuid(call, 6));

        if (!saga || saga->has_ended || !slice_equal(saga->namespace, row.namespace)) {
            put_null(call);
            return end_with_row(call);
        }
    }
    pg_next_statement(call);
    RETURN_UNLESS_DONE(pg_insert_new(call, PG_GRANT, &row, &inserted));
    put_time_ms(call, row.made_ms);
    return end_with_row(call);
}

enum pg_progress pg_statement_grant_read(struct pg_call *call)
{
    for (size_t i = 0; i < arg_count(call, 0); i++) {
        const struct row_grant key = {.id = item_uuid(call, 0, i)};
        const struct row_grant *grant = pg_see(call, pg_find(call, PG_GRANT, &key));
        bool is_new = true;

        for (size_t k = 0; k < i; k++) {
            struct uuid other = item_uuid(call, 0, k);

            is_new = is_new && !uuid_equal(&other, &key.id);
        }
        if (is_new && grant && holds(call, grant)) {
            (void)put_grant(call, grant);
        }
    }
    return PG_DONE;
}

enum pg_progress pg_statement_grant_list(struct pg_call *call)
{
    struct uuid before = arg_uuid(call, 1);

    for (int64_t left = arg_int(call, 3); left > 0; left--) { /* newest first */
        const struct row_grant *next = NULL;
        struct pg_row *row = pg_first(call, PG_GRANT, &(struct row_grant){.id = {{0}}});

        for (; row; row = pg_next(call, PG_GRANT, row)) {
            const struct row_grant *grant = pg_see(call, row);

            if (grant && uuid_compare(&grant->id, &before) < 0 && slice_equal(grant->namespace, arg_bytes(call, 0)) &&
                (arg_int(call, 2) || holds(call, grant))) {
                next = grant;
            }
        }
        if (!next) {
            break;
        }
        (void)put_grant(call, next);
        before = next->id;
    }
    return PG_DONE;
}

static bool is_made_by(const struct row_grant *grant, struct slice token)
{
    struct slice text = json_member(grant->body, "issuer_token");

    return json_type(text) == JSON_STRING && slice_equal((struct slice){text.ptr + 1, text.len - 2}, token);
}

enum pg_progress pg_statement_grant_revoke(struct pg_call *call)
{
    struct pg_row *row = pg_find(call, PG_GRANT, &(struct row_grant){.id = arg_uuid(call, 0)});
    const struct row_grant *seen = pg_see(call, row);
    struct pg_touched touched = {0};
    const void *current = NULL;

    if (seen && slice_equal(seen->namespace, arg_bytes(call, 1)) &&
        (arg_is_null(call, 3) || is_made_by(seen, arg_bytes(call, 3)))) {
        RETURN_UNLESS_DONE(pg_take(call, &touched, row, PG_NO_KEY_UPDATE, &current));
    }
    if (current) {
        struct row_grant changed = *(const struct row_grant *)current;

        changed.revoked_ms = changed.revoked_ms ? changed.revoked_ms : pg_clock_ms(call->pg);
        changed.revocation = changed.revocation.ptr ? changed.revocation : pg_keep(call, arg_bytes(call, 2));
        pg_update(call, row, &changed);
        put_columns(call, &changed);
        put_int(call, true);
        put_row_end(call);
    }
    return PG_DONE;
}
