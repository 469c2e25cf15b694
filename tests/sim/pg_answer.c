/* Answers to inputs of the inbox whose sender waits. */
#include "tests/sim/pg_statements.h"

enum { NOTIFY_BYTES_MAX = 8000, SWEEP_MS = 10 * 60 * 1000 };

enum pg_progress pg_statement_answer_put(struct pg_call *call)
{
    struct buffer ids;
    bool any = false;

    buffer_init(&ids, 1024 * 1024);
    for (size_t i = 0; i < arg_count(call, 0); i++) {
        struct row_answer row = {.shard = item_int(call, 0, i),
                                 .input = item_uuid(call, 1, i),
                                 .at_ms = pg_clock_ms(call->pg),
                                 .body = pg_keep(call, item_bytes(call, 2, i))};
        char text[UUID_TEXT_BYTES];
        bool inserted = false;
        enum pg_progress progress = pg_insert_new(call, PG_ANSWER, &row, &inserted);

        if (progress != PG_DONE) {
            buffer_fini(&ids);
            return progress;
        }
        if (inserted) {
            uuid_text(&row.input, text);
            buffer_put_text(&ids, any ? " " : "");
            buffer_put_text(&ids, text);
            any = true;
        }
    }
    if (ids.len >= NOTIFY_BYTES_MAX) {
        buffer_fini(&ids);
        return pg_fail(call, "22023");
    }
    if (any) {
        pg_notify(call, "sagad_answers", buffer_slice(&ids));
        pg_put_void(call);
    }
    buffer_fini(&ids);
    return PG_DONE;
}

enum pg_progress pg_statement_answer_drop_inputs(struct pg_call *call)
{
    struct pg_touched touched = {0};
    int64_t affected = 0;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        const struct row_inbox key = {.shard = item_int(call, 0, i), .id = item_uuid(call, 1, i)};
        bool deleted;

        RETURN_UNLESS_DONE(pg_delete_key(call, PG_INBOX, &key, &touched, &deleted));
        affected += deleted;
    }
    return end_with_affected(call, affected);
}

enum pg_progress pg_statement_answer_take(struct pg_call *call)
{
    struct pg_touched touched = {0};
    int64_t affected = 0;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        const struct row_answer key = {.shard = item_int(call, 0, i), .input = item_uuid(call, 1, i)};
        struct pg_row *row = pg_find(call, PG_ANSWER, &key);
        const void *current;

        RETURN_UNLESS_DONE(pg_take(call, &touched, row, PG_UPDATE, &current));
        if (current) {
            put_uuid(call, &key.input);
            put_bytes(call, ((const struct row_answer *)current)->body);
            put_row_end(call);
            pg_delete(call, row);
            affected++;
        }
    }
    return end_with_affected(call, affected);
}

enum pg_progress pg_statement_answer_sweep(struct pg_call *call)
{
    int64_t before_ms = pg_clock_ms(call->pg) - SWEEP_MS, affected = 0;
    struct pg_touched touched = {0};
    struct pg_row *row = pg_first(call, PG_ANSWER, &(struct row_answer){.shard = INT16_MIN}), *next;

    for (; row; row = next) {
        const struct row_answer *seen = pg_see(call, row);
        const void *current = NULL;

        next = pg_next(call, PG_ANSWER, row);
        if (seen && seen->at_ms < before_ms) {
            RETURN_UNLESS_DONE(pg_take(call, &touched, row, PG_UPDATE, &current));
        }
        if (current) {
            pg_delete(call, row);
            affected++;
        }
    }
    return end_with_affected(call, affected);
}
