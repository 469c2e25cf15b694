/* The engines that live, as in migration 0008. */
#include "tests/sim/pg_statements.h"

enum pg_progress pg_statement_engine_put(struct pg_call *call)
{
    struct pg_touched touched = {0};
    struct pg_row *row;
    const void *current;
    int64_t now_ms = pg_clock_ms(call->pg);
    struct row_engine engine = {.instance = pg_keep(call, arg_bytes(call, 0)),
                                .identity = pg_keep(call, arg_bytes(call, 1)),
                                .name = pg_keep(call, arg_bytes(call, 2)),
                                .version = pg_keep(call, arg_bytes(call, 3)),
                                .schema = arg_int(call, 4),
                                .standby = arg_int(call, 5) != 0,
                                .leaving = arg_int(call, 6) != 0,
                                .started_ms = now_ms,
                                .expires_ms = now_ms + arg_int(call, 7),
                                .append_lag_ms = arg_int(call, 8),
                                .due_lag_ms = arg_int(call, 9),
                                .inbox_rows = arg_int(call, 10),
                                .holds = arg_int(call, 11)};

    RETURN_UNLESS_DONE(pg_insert_or_lock(call, PG_ENGINE, &engine, &touched, &row, &current));
    if (current) {
        struct row_engine changed = *(const struct row_engine *)current;

        changed.leaving = engine.leaving;
        changed.expires_ms = engine.expires_ms;
        changed.append_lag_ms = engine.append_lag_ms;
        changed.due_lag_ms = engine.due_lag_ms;
        changed.inbox_rows = engine.inbox_rows;
        changed.holds = engine.holds;
        pg_update(call, row, &changed);
    }
    return end_with_affected(call, 1);
}

enum pg_progress pg_statement_engine_table(struct pg_call *call)
{
    struct pg_row *row = pg_first(call, PG_ENGINE, &(struct row_engine){.instance = SLICE("")});

    for (; row; row = pg_next(call, PG_ENGINE, row)) {
        const struct row_engine *engine = pg_see(call, row);

        if (engine) {
            put_bytes(call, engine->instance);
            put_bytes(call, engine->identity);
            put_bytes(call, engine->name);
            put_bytes(call, engine->version);
            put_int(call, engine->schema);
            put_int(call, engine->standby);
            put_int(call, engine->leaving);
            put_time_ms(call, engine->started_ms);
            put_int(call, pg_left_ms(call, engine->expires_ms));
            put_int(call, engine->append_lag_ms);
            put_int(call, engine->due_lag_ms);
            put_int(call, engine->inbox_rows);
            put_row_end(call);
        }
    }
    return PG_DONE;
}

enum pg_progress pg_statement_engine_remove(struct pg_call *call)
{
    struct pg_touched touched = {0};
    int64_t affected = 0;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        const struct row_engine key = {.instance = item_bytes(call, 0, i)};
        bool deleted;

        RETURN_UNLESS_DONE(pg_delete_key(call, PG_ENGINE, &key, &touched, &deleted));
        affected += deleted;
    }
    return end_with_affected(call, affected);
}

enum pg_progress pg_statement_engine_tell(struct pg_call *call)
{
    pg_notify(call, "sagad_leases", SLICE(""));
    pg_put_void(call);
    return PG_DONE;
}
