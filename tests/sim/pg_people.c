/* Escalations and approvals, which wait for a person. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/pg_statements.h"

static struct slice keep_item(struct pg_call *call, int arg, size_t i)
{
    return pg_keep(call, item_bytes(call, arg, i));
}

/* --- opened and ended by appends --- */

enum pg_progress pg_statement_escalation_open(struct pg_call *call)
{
    int64_t affected = 0;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        struct row_escalation row = {
            .shard = item_int(call, 0, i), .number = item_int(call, 1, i), .saga = item_uuid(call, 2, i)};

        if (!pg_saga(call, row.shard, row.saga)) {
            continue;
        }
        row.namespace = keep_item(call, 3, i);
        row.opened_ms = item_time_ms(call, 4, i);
        row.step = keep_item(call, 5, i);
        row.reason = keep_item(call, 6, i);
        row.body = keep_item(call, 7, i);
        RETURN_UNLESS_DONE(pg_insert(call, PG_ESCALATION, &row, NULL));
        affected++;
    }
    return end_with_affected(call, affected);
}

enum pg_progress pg_statement_escalation_change(struct pg_call *call)
{
    struct pg_touched touched = {0};
    size_t count = arg_count(call, 0), changed = 0;

    for (size_t i = 0; i < count; i++) {
        struct pg_row *found =
            pg_find(call, PG_ESCALATION,
                    &(struct row_escalation){.shard = item_int(call, 0, i), .number = item_int(call, 1, i)});
        const void *current;

        RETURN_UNLESS_DONE(pg_take(call, &touched, found, PG_NO_KEY_UPDATE, &current));
        if (current) {
            struct row_escalation row = *(const struct row_escalation *)current;

            row.is_resolved = !item_is_null(call, 2, i);
            row.resolved_ms = row.is_resolved ? item_time_ms(call, 2, i) : 0;
            row.opened_ms = item_is_null(call, 3, i) ? row.opened_ms : item_time_ms(call, 3, i);
            row.reason = keep_item(call, 4, i);
            row.body = item_is_null(call, 5, i) ? row.body : keep_item(call, 5, i);
            pg_update(call, found, &row);
            changed++;
        }
    }
    return pg_expect(call, changed, count);
}

static bool is_approval_status(struct slice status)
{
    return slice_is(status, "open") || slice_is(status, "approved") || slice_is(status, "refused") ||
           slice_is(status, "expired") || slice_is(status, "cancelled");
}

enum pg_progress pg_statement_approval_open(struct pg_call *call)
{
    int64_t affected = 0;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        struct row_approval row = {
            .shard = item_int(call, 0, i), .number = item_int(call, 1, i), .saga = item_uuid(call, 2, i)};

        if (!pg_saga(call, row.shard, row.saga)) {
            continue;
        }
        row.namespace = keep_item(call, 3, i);
        row.opened_ms = item_time_ms(call, 4, i);
        row.has_expiry = !item_is_null(call, 5, i);
        row.expires_ms = row.has_expiry ? item_time_ms(call, 5, i) : 0;
        row.step = keep_item(call, 6, i);
        row.status = keep_item(call, 7, i);
        row.body = keep_item(call, 8, i);
        if (!is_approval_status(row.status)) {
            return pg_fail(call, ERROR_CHECK);
        }
        RETURN_UNLESS_DONE(pg_insert(call, PG_APPROVAL, &row, NULL));
        affected++;
    }
    return end_with_affected(call, affected);
}

enum pg_progress pg_statement_approval_end(struct pg_call *call)
{
    struct pg_touched touched = {0};
    size_t due = 0, changed = 0;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        int64_t shard = item_int(call, 0, i);
        struct pg_row *found;
        const void *current;

        if (!pg_saga(call, shard, item_uuid(call, 5, i))) {
            continue;
        }
        due++;
        found = pg_find(call, PG_APPROVAL, &(struct row_approval){.shard = shard, .number = item_int(call, 1, i)});
        if (pg_see(call, found) && !pg_is_touched(&touched, found) && !is_approval_status(item_bytes(call, 3, i))) {
            return pg_fail(call, ERROR_CHECK); /* PostgreSQL checks this before it waits */
        }
        RETURN_UNLESS_DONE(pg_take(call, &touched, found, PG_NO_KEY_UPDATE, &current));
        if (current) {
            struct row_approval row = *(const struct row_approval *)current;

            row.status = keep_item(call, 3, i);
            row.has_ended = !slice_is(row.status, "open") && !item_is_null(call, 2, i);
            row.ended_ms = row.has_ended ? item_time_ms(call, 2, i) : 0;
            if (!item_is_null(call, 6, i)) {
                row.has_expiry = true;
                row.expires_ms = item_time_ms(call, 6, i);
            }
            row.body = item_is_null(call, 4, i) ? row.body : keep_item(call, 4, i);
            pg_update(call, found, &row);
            changed++;
        }
    }
    return pg_expect(call, changed, due);
}

/* --- case_put() of migration 0016 --- */

static const struct row_escalation *open_unreadable(struct pg_call *call)
{
    const struct row_escalation *found = NULL;
    struct uuid saga = arg_uuid(call, 3);

    for (struct pg_row *row =
             pg_first(call, PG_ESCALATION, &(struct row_escalation){.shard = arg_int(call, 0), .number = INT64_MIN});
         row; row = pg_next(call, PG_ESCALATION, row)) {
        const struct row_escalation *e = pg_see(call, row);

        if (e && e->shard != arg_int(call, 0)) {
            break;
        }
        if (e && !found && !e->is_resolved && slice_is(e->reason, "unreadable") && uuid_equal(&e->saga, &saga) &&
            slice_equal(e->namespace, arg_bytes(call, 4))) {
            found = e;
        }
    }
    return found;
}

static enum pg_progress resolve_case(struct pg_call *call, struct pg_row *row, const struct row_escalation *wanted,
                                     bool *done)
{
    const struct row_escalation *seen;
    const void *current = NULL;

    *done = false;
    pg_next_statement(call);
    seen = pg_see(call, row);
    if (!seen || (seen->is_resolved && !slice_equal(seen->body, wanted->body))) {
        return PG_DONE;
    }
    RETURN_UNLESS_DONE(pg_lock(call, row, PG_NO_KEY_UPDATE, &current));
    seen = current;
    if (seen && (!seen->is_resolved || slice_equal(seen->body, wanted->body))) {
        struct row_escalation changed = *seen;

        changed.is_resolved = *done = true;
        changed.resolved_ms = wanted->resolved_ms;
        changed.body = wanted->body;
        pg_update(call, row, &changed);
    }
    return PG_DONE;
}

static enum pg_progress put_case(struct pg_call *call, int64_t *answer, bool *written)
{
    struct row_escalation row = {.shard = arg_int(call, 0),
                                 .number = arg_int(call, 2),
                                 .saga = arg_uuid(call, 3),
                                 .opened_ms = arg_time_ms(call, 5)};
    const struct row_escalation *known = NULL;
    struct pg_row *existing = NULL;
    bool done = true;

    row.is_resolved = !arg_is_null(call, 6);
    row.resolved_ms = row.is_resolved ? arg_time_ms(call, 6) : 0;
    row.namespace = pg_keep(call, arg_bytes(call, 4));
    row.step = SLICE_NONE;
    row.reason = pg_keep(call, arg_bytes(call, 7));
    row.body = pg_keep(call, arg_bytes(call, 8));
    pg_next_statement(call);
    known = row.is_resolved || !slice_is(row.reason, "unreadable") ? NULL : open_unreadable(call);
    if (known) {
        *answer = known->number;
        return PG_DONE;
    }
    pg_next_statement(call);
    RETURN_UNLESS_DONE(pg_insert(call, PG_ESCALATION, &row, &existing));
    if (existing && row.is_resolved) {
        RETURN_UNLESS_DONE(resolve_case(call, existing, &row, &done));
    }
    *answer = done ? row.number : -1;
    *written = done;
    return PG_DONE;
}

static enum pg_progress tell_case(struct pg_call *call)
{
    bool is_resolved = !arg_is_null(call, 6), inserted;

    return pg_insert_new(call, PG_CASE_EVENT,
                         &(struct row_case_event){.shard = arg_int(call, 0),
                                                  .number = arg_int(call, 2),
                                                  .is_resolved = is_resolved,
                                                  .event_tx = pg_tx(call),
                                                  .at_ms = arg_time_ms(call, is_resolved ? 6 : 5),
                                                  .saga = arg_uuid(call, 3),
                                                  .namespace = pg_keep(call, arg_bytes(call, 4)),
                                                  .reason = pg_keep(call, arg_bytes(call, 7))},
                         &inserted);
}

enum pg_progress pg_statement_case_put(struct pg_call *call)
{
    struct pg_row *shard = pg_find(call, PG_SHARD, &(struct row_shard){.shard = arg_int(call, 0)});
    struct row_inbox input = {.shard = arg_int(call, 0), .id = arg_uuid(call, 9)};
    struct pg_touched touched = {0};
    int64_t answer = 0;
    const struct row_shard *seen = pg_see(call, shard);
    const void *current = NULL;
    bool written = false, deleted;

    CHECK(!arg_int(call, 10));                     /* no log becomes unreadable here */
    if (seen && seen->epoch == arg_int(call, 1)) { /* at another epoch the statement waits for nobody */
        RETURN_UNLESS_DONE(pg_lock(call, shard, PG_KEY_SHARE, &current));
    }
    if (current && ((const struct row_shard *)current)->epoch == arg_int(call, 1)) {
        RETURN_UNLESS_DONE(put_case(call, &answer, &written));
    }
    if (written) {
        pg_next_statement(call);
        RETURN_UNLESS_DONE(pg_delete_key(call, PG_INBOX, &input, &touched, &deleted));
        pg_next_statement(call);
        RETURN_UNLESS_DONE(tell_case(call));
    }
    put_int(call, answer);
    return end_with_row(call);
}

/* --- remarks on a case --- */

static bool has_id(struct slice ids, struct uuid id)
{
    for (size_t at = 0; at < ids.len; at += sizeof(id)) {
        if (memcmp(ids.ptr + at, &id, sizeof(id)) == 0) {
            return true;
        }
    }
    return false;
}

/* array_append() */
static void add_remark(struct pg_call *call, struct row_case_remark *row, struct slice remark, struct uuid id)
{
    char *ids = arena_alloc(call->arena, row->ids.len + sizeof(id));

    if (row->ids.len > 0) {
        memcpy(ids, row->ids.ptr, row->ids.len);
    }
    memcpy(ids + row->ids.len, &id, sizeof(id));
    row->ids = pg_keep(call, (struct slice){ids, row->ids.len + sizeof(id)});
    row->remarks = pg_keep(call, arena_printf(call->arena, "%.*s%s%.*s", SLICE_ARG(row->remarks),
                                              row->remark_count ? "," : "", SLICE_ARG(remark)));
    row->remark_count++;
}

static void change_remark(struct pg_call *call, struct row_case_remark *row, int64_t opened_ms)
{
    if (slice_is(arg_bytes(call, 4), "acknowledge")) {
        row->acknowledged_by = pg_keep(call, arg_bytes(call, 5));
        row->has_until = !arg_is_null(call, 6);
        row->acknowledged_until_ms = row->has_until ? arg_time_ms(call, 6) : 0;
        row->acknowledged_case_ms = opened_ms;
    }
    if (slice_is(arg_bytes(call, 4), "assign")) {
        row->assigned_to = arg_is_null(call, 7) ? SLICE_NONE : pg_keep(call, arg_bytes(call, 7));
    }
    add_remark(call, row, arg_bytes(call, 8), arg_uuid(call, 3));
}

static enum pg_progress put_remark(struct pg_call *call, const struct row_escalation *of, int64_t *answer)
{
    struct row_case_remark row = {.shard = of->shard, .number = of->number, .saga = of->saga};
    struct pg_touched touched = {0};
    struct pg_row *existing;
    const void *current = NULL;
    bool inserted;

    pg_next_statement(call);
    RETURN_UNLESS_DONE(pg_insert_new(call, PG_CASE_REMARK, &row, &inserted));
    pg_next_statement(call);
    existing = pg_find(call, PG_CASE_REMARK, &row);
    RETURN_UNLESS_DONE(pg_take(call, &touched, existing, PG_NO_KEY_UPDATE, &current));
    CHECK(current); /* it goes with its case, which is locked */
    row = *(const struct row_case_remark *)current;
    *answer = has_id(row.ids, arg_uuid(call, 3)) || row.remark_count < arg_int(call, 9);
    if (*answer && !has_id(row.ids, arg_uuid(call, 3))) {
        pg_next_statement(call);
        change_remark(call, &row, of->opened_ms);
        pg_update(call, existing, &row);
    }
    return PG_DONE;
}

enum pg_progress pg_statement_case_remark(struct pg_call *call)
{
    const struct row_escalation key = {.shard = arg_int(call, 0), .number = arg_int(call, 1)};
    struct pg_row *found = pg_find(call, PG_ESCALATION, &key);
    const struct row_escalation *seen = pg_see(call, found);
    const void *current = NULL;
    int64_t answer;

    if (seen && slice_equal(seen->namespace, arg_bytes(call, 2))) {
        RETURN_UNLESS_DONE(pg_lock(call, found, PG_KEY_SHARE, &current));
    }
    if (current) {
        RETURN_UNLESS_DONE(put_remark(call, current, &answer));
        put_int(call, answer);
    } else {
        put_null(call);
    }
    return end_with_row(call);
}
