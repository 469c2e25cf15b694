/* Debts that were settled: migration 0027, with the events of 0030. */
#include "tests/sim/pg_statements.h"

static int64_t settled_count(struct pg_call *call, int64_t shard, struct uuid saga)
{
    const struct row_debt_settled first = {.shard = shard, .saga = saga};
    int64_t count = 0;

    for (struct pg_row *row = pg_first(call, PG_DEBT_SETTLED, &first); row; row = pg_next(call, PG_DEBT_SETTLED, row)) {
        const struct row_debt_settled *seen = pg_see(call, row);

        count += seen && seen->shard == shard && uuid_equal(&seen->saga, &saga);
    }
    return count;
}

static enum pg_progress forget_then(struct pg_call *call)
{
    struct row_due due = {
        .shard = arg_int(call, 0), .saga = arg_uuid(call, 1), .is_forget = true, .at_ms = arg_time_ms(call, 6)};
    bool inserted;

    return pg_insert_new(call, PG_DUE, &due, &inserted);
}

static enum pg_progress tell(struct pg_call *call, const struct row_debt_settled *row)
{
    char saga[UUID_TEXT_BYTES], operation[UUID_TEXT_BYTES];

    uuid_text(&row->saga, saga);
    uuid_text(&row->operation, operation);
    return pg_event_add(call,
                        &(struct row_event){.shard = row->shard,
                                            .namespace = arg_bytes(call, 2),
                                            .has_saga = true,
                                            .saga = row->saga,
                                            .type = SLICE("debt.settled"),
                                            .subject = pg_keep_printed(call, "%s", saga),
                                            .data = pg_keep_printed(call, "{\"operation\":\"%s\",\"settled\":%.*s}",
                                                                    operation, SLICE_ARG(row->body))});
}

enum pg_progress pg_statement_debt_settle(struct pg_call *call)
{
    const struct row_saga key = {.shard = arg_int(call, 0), .id = arg_uuid(call, 1)};
    struct row_debt_settled row = {
        .shard = key.shard, .saga = key.id, .operation = arg_uuid(call, 3), .body = pg_keep(call, arg_bytes(call, 4))};
    struct pg_row *saga = pg_find(call, PG_SAGA, &key);
    const struct row_saga *seen = pg_see(call, saga);
    const struct row_debt_settled *known;
    const void *current = NULL;
    bool inserted;

    if (seen && seen->has_ended && slice_equal(seen->namespace, arg_bytes(call, 2))) {
        RETURN_UNLESS_DONE(pg_lock(call, saga, PG_NO_KEY_UPDATE, &current));
    }
    if (!current) {
        put_null(call);
        return end_with_row(call);
    }
    pg_next_statement(call);
    RETURN_UNLESS_DONE(pg_insert_new(call, PG_DEBT_SETTLED, &row, &inserted));
    if (inserted) {
        RETURN_UNLESS_DONE(tell(call, &row));
    }
    pg_next_statement(call);
    known = pg_see(call, pg_find(call, PG_DEBT_SETTLED, &row));
    CHECK(known); /* it goes with its saga, which is locked */
    if (!arg_is_null(call, 6) && settled_count(call, key.shard, key.id) >= arg_int(call, 5)) {
        pg_next_statement(call);
        RETURN_UNLESS_DONE(forget_then(call));
    }
    put_bytes(call, known->body);
    return end_with_row(call);
}

enum pg_progress pg_statement_debt_settled(struct pg_call *call)
{
    for (size_t i = 0; i < arg_count(call, 0); i++) {
        const struct row_debt_settled first = {.shard = item_int(call, 0, i), .saga = item_uuid(call, 1, i)};

        for (struct pg_row *row = pg_first(call, PG_DEBT_SETTLED, &first); row;
             row = pg_next(call, PG_DEBT_SETTLED, row)) {
            const struct row_debt_settled *seen = pg_see(call, row);

            if (seen && seen->shard == first.shard && uuid_equal(&seen->saga, &first.saga)) {
                put_uuid(call, &seen->saga);
                put_uuid(call, &seen->operation);
                put_bytes(call, seen->body);
                put_row_end(call);
            }
        }
    }
    return PG_DONE;
}
