/* Keys of payloads, as in migration 0036. */
#include "tests/sim/pg_statements.h"

static const struct row_payload_key first = {.name = {"", 0}};

static bool is_among(struct pg_call *call, struct slice name)
{
    for (size_t i = 0; i < arg_count(call, 2); i++) {
        if (slice_equal(name, item_bytes(call, 2, i))) {
            return true;
        }
    }
    return false;
}

enum pg_progress pg_statement_payload_key_put(struct pg_call *call)
{
    struct row_payload_key row = {.name = pg_keep(call, arg_bytes(call, 0)),
                                  .proof = pg_keep(call, arg_bytes(call, 1))};
    bool inserted = false;

    for (struct pg_row *at = pg_first(call, PG_PAYLOAD_KEY, &first); at; at = pg_next(call, PG_PAYLOAD_KEY, at)) {
        const struct row_payload_key *other = pg_see(call, at);

        if (other && !is_among(call, other->name)) {
            put_affected(call, 0);
            return PG_DONE;
        }
    }
    RETURN_UNLESS_DONE(pg_insert_new(call, PG_PAYLOAD_KEY, &row, &inserted));
    put_affected(call, inserted);
    return PG_DONE;
}

enum pg_progress pg_statement_payload_keys(struct pg_call *call)
{
    for (struct pg_row *at = pg_first(call, PG_PAYLOAD_KEY, &first); at; at = pg_next(call, PG_PAYLOAD_KEY, at)) {
        const struct row_payload_key *row = pg_see(call, at);

        if (row) {
            put_bytes(call, row->name);
            put_bytes(call, row->proof);
            put_row_end(call);
        }
    }
    return PG_DONE;
}
