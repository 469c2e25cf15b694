/* Registered tools and definitions, whose versions never change. */
#include "tests/sim/pg_statements.h"

static const struct row_definition *newest(struct pg_call *call, enum pg_table table, struct slice namespace,
                                           struct slice name)
{
    struct pg_row *row = pg_first(call, table, &(struct row_definition){.namespace = namespace, .name = name});
    const struct row_definition *last = NULL;

    for (; row; row = pg_next(call, table, row)) {
        const struct row_definition *seen = pg_see(call, row);

        if (seen && (!slice_equal(seen->namespace, namespace) || !slice_equal(seen->name, name))) {
            break;
        }
        last = seen ? seen : last;
    }
    return last;
}

static enum pg_progress put(struct pg_call *call, enum pg_table table)
{
    size_t count = arg_count(call, 0);
    const struct row_definition **old = arena_array(call->arena, count + 1, sizeof(struct row_definition *));

    for (size_t i = 0; i < count; i++) { /* all of them before the first is made */
        old[i] = newest(call, table, item_bytes(call, 0, i), item_bytes(call, 1, i));
    }
    for (size_t i = 0; i < count; i++) {
        int64_t reading = arg_int(call, 4);
        bool is_new = !old[i] || !slice_equal(old[i]->identity, item_bytes(call, 2, i)) || old[i]->reading < reading;
        int64_t version = is_new ? (old[i] ? old[i]->version : 0) + 1 : old[i]->version;

        if (is_new) {
            struct row_definition row = {.namespace = pg_keep(call, item_bytes(call, 0, i)),
                                         .name = pg_keep(call, item_bytes(call, 1, i)),
                                         .version = version,
                                         .identity = pg_keep(call, item_bytes(call, 2, i)),
                                         .body = pg_keep(call, item_bytes(call, 3, i)),
                                         .created_ms = pg_clock_ms(call->pg),
                                         .reading = reading};

            RETURN_UNLESS_DONE(pg_insert(call, table, &row, NULL));
        }
        put_int(call, (int64_t)i + 1);
        put_int(call, version);
        put_int(call, is_new);
        put_int(call, is_new ? reading : old[i]->reading);
        put_row_end(call);
    }
    return PG_DONE;
}

enum pg_progress pg_statement_definition_put(struct pg_call *call)
{
    return put(call, PG_DEFINITION);
}

enum pg_progress pg_statement_tool_put(struct pg_call *call)
{
    return put(call, PG_TOOL);
}

enum pg_progress pg_statement_definition_notify(struct pg_call *call)
{
    pg_notify(call, "sagad_definitions", SLICE(""));
    pg_put_void(call);
    return PG_DONE;
}

static struct pg_row *first_of(struct pg_call *call, enum pg_table table)
{
    return pg_first(call, table, &(struct row_definition){.namespace = SLICE(""), .name = SLICE("")});
}

static void put_all(struct pg_call *call, enum pg_table table, int kind)
{
    for (struct pg_row *row = first_of(call, table); row; row = pg_next(call, table, row)) {
        const struct row_definition *definition = pg_see(call, row);

        if (definition) {
            put_int(call, kind);
            put_bytes(call, definition->namespace);
            put_bytes(call, definition->name);
            put_int(call, definition->version);
            put_bytes(call, definition->identity);
            put_bytes(call, definition->body);
            put_time_ms(call, definition->created_ms);
            put_int(call, definition->reading);
            put_row_end(call);
        }
    }
}

enum pg_progress pg_statement_definition_load(struct pg_call *call)
{
    put_all(call, PG_TOOL, 0);
    put_all(call, PG_DEFINITION, 1);
    return PG_DONE;
}

enum pg_progress pg_statement_definition_state(struct pg_call *call)
{
    int64_t count = 0;

    for (struct pg_row *row = first_of(call, PG_TOOL); row; row = pg_next(call, PG_TOOL, row)) {
        count += pg_see(call, row) != NULL;
    }
    for (struct pg_row *row = first_of(call, PG_DEFINITION); row; row = pg_next(call, PG_DEFINITION, row)) {
        count += pg_see(call, row) != NULL;
    }
    put_int(call, count);
    return end_with_row(call);
}
