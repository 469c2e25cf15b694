/* The rows that an engine reads of a new shard, and the rows of one saga. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/pg_statements.h"

static bool is_parked(struct pg_call *call, int64_t shard, struct uuid saga)
{
    const struct row_due *due = pg_see(call, pg_find(call, PG_DUE, &(struct row_due){.shard = shard, .saga = saga}));

    return due && !due->is_forget;
}

struct wanted {
    const struct row_saga *saga;
    bool is_awake;
};

static int by_id(const void *a, const void *b)
{
    return uuid_compare(&((const struct wanted *)a)->saga->id, &((const struct wanted *)b)->saga->id);
}

/* Finds unfinished sagas behind `low` and `after`, at most `limit`, and returns how many. */
static size_t find_unfinished(struct pg_call *call, int64_t shard, struct uuid after, size_t limit, struct wanted *out)
{
    const struct row_shard *lease = pg_shard(call, shard);
    struct uuid from = lease && lease->has_low ? pg_id_floor(lease->low_ms) : after;
    struct pg_row *row;
    size_t count = 0;

    from = uuid_compare(&from, &after) < 0 ? after : from;
    row = pg_first(call, PG_SAGA, &(struct row_saga){.shard = shard, .id = from});
    for (; row && count < limit; row = pg_next(call, PG_SAGA, row)) {
        const struct row_saga *saga = pg_see(call, row);

        if (saga && saga->shard != shard) {
            break;
        }
        if (saga && !uuid_equal(&saga->id, &after) && !saga->has_ended && !is_parked(call, shard, saga->id)) {
            out[count++] = (struct wanted){saga, false};
        }
    }
    return count;
}

static size_t find_awake(struct pg_call *call, int64_t shard, struct uuid after, size_t limit, struct wanted *out)
{
    struct pg_row *row = pg_first(call, PG_AWAKE, &(struct row_awake){shard, after});
    size_t count = 0;

    for (; row && count < limit; row = pg_next(call, PG_AWAKE, row)) {
        const struct row_awake *awake = pg_see(call, row);
        const struct row_saga *saga;

        if (awake && awake->shard != shard) {
            break;
        }
        saga = awake && !uuid_equal(&awake->saga, &after) ? pg_saga(call, shard, awake->saga) : NULL;
        if (saga && !saga->has_ended) {
            out[count++] = (struct wanted){saga, true};
        }
    }
    return count;
}

/* Puts the turns of a saga from `seq` on. */
static void put_turns(struct pg_call *call, const struct wanted *wanted)
{
    struct row_log key = {.shard = wanted->saga->shard, .saga = wanted->saga->id, .seq = INT32_MIN};

    for (struct pg_row *row = pg_first(call, PG_LOG, &key); row; row = pg_next(call, PG_LOG, row)) {
        const struct row_log *turn = pg_see(call, row);

        if (turn && (turn->shard != key.shard || !uuid_equal(&turn->saga, &key.saga))) {
            break;
        }
        if (turn) {
            put_uuid(call, &wanted->saga->id);
            put_bytes(call, wanted->saga->namespace);
            put_int(call, turn->seq);
            put_time_ms(call, turn->at_ms);
            put_bytes(call, turn->payload);
            put_int(call, wanted->is_awake);
            put_row_end(call);
        }
    }
}

enum pg_progress pg_statement_load(struct pg_call *call)
{
    int64_t shard = arg_int(call, 0);
    struct uuid after = arg_uuid(call, 1);
    size_t limit = (size_t)arg_int(call, 2), count, told = 0;
    struct wanted *wanted = arena_array(call->arena, 2 * limit + 1, sizeof(*wanted));

    count = find_unfinished(call, shard, after, limit, wanted);
    for (size_t i = 0; i < count; i++) {
        wanted[i].is_awake =
            pg_see(call, pg_find(call, PG_AWAKE, &(struct row_awake){shard, wanted[i].saga->id})) != NULL;
    }
    count += find_awake(call, shard, after, limit, wanted + count);
    qsort(wanted, count, sizeof(*wanted), by_id);
    for (size_t i = 0; i < count && told < limit; i++) {
        if (i == 0 || !uuid_equal(&wanted[i].saga->id, &wanted[i - 1].saga->id)) {
            put_turns(call, &wanted[i]);
            told++;
        }
    }
    return PG_DONE;
}

/* No history is rewound here, so nothing was forgotten. */
enum pg_progress pg_statement_load_forgotten(struct pg_call *call)
{
    (void)call;
    return PG_DONE;
}

enum pg_progress pg_statement_load_numbers(struct pg_call *call)
{
    int64_t shard = arg_int(call, 0), escalation = 0, approval = 0, open = 0;
    const struct row_number_gone *gone =
        pg_see(call, pg_find(call, PG_NUMBER_GONE, &(struct row_number_gone){.shard = shard}));
    struct pg_row *row = pg_first(call, PG_ESCALATION, &(struct row_escalation){.shard = shard, .number = INT64_MIN});

    if (gone) {
        escalation = gone->escalation > 0 ? gone->escalation : 0;
        approval = gone->approval > 0 ? gone->approval : 0;
    }
    for (; row; row = pg_next(call, PG_ESCALATION, row)) {
        const struct row_escalation *e = pg_see(call, row);

        if (e && e->shard != shard) {
            break;
        }
        if (e) {
            escalation = e->number > escalation ? e->number : escalation;
            open += !e->is_resolved;
        }
    }
    row = pg_first(call, PG_APPROVAL, &(struct row_approval){.shard = shard, .number = INT64_MIN});
    for (; row; row = pg_next(call, PG_APPROVAL, row)) {
        const struct row_approval *a = pg_see(call, row);

        if (a && a->shard != shard) {
            break;
        }
        approval = a && a->number > approval ? a->number : approval;
    }
    put_int(call, escalation);
    put_int(call, approval);
    put_int(call, open);
    return end_with_row(call);
}

/* --- one saga --- */

enum pg_progress pg_statement_saga_row(struct pg_call *call)
{
    const struct row_saga *saga = pg_saga(call, arg_int(call, 0), arg_uuid(call, 1));

    if (saga && slice_equal(saga->namespace, arg_bytes(call, 2))) {
        pg_put_saga(call, saga);
    }
    return PG_DONE;
}

enum pg_progress pg_statement_saga_turns(struct pg_call *call)
{
    struct row_log key = {.shard = arg_int(call, 0), .saga = arg_uuid(call, 1), .seq = INT32_MIN};
    int64_t after = arg_int(call, 2), limit = arg_is_null(call, 3) ? INT64_MAX : arg_int(call, 3);

    for (struct pg_row *row = pg_first(call, PG_LOG, &key); row && limit > 0; row = pg_next(call, PG_LOG, row)) {
        const struct row_log *turn = pg_see(call, row);

        if (turn && (turn->shard != key.shard || !uuid_equal(&turn->saga, &key.saga))) {
            break;
        }
        if (turn && turn->seq + turn->records - 1 > after) {
            put_int(call, turn->seq);
            put_time_ms(call, turn->at_ms);
            put_bytes(call, turn->payload);
            put_int(call, turn->epoch);
            put_bytes(call, turn->rest);
            put_row_end(call);
            limit--;
        }
    }
    return PG_DONE;
}

enum pg_progress pg_statement_saga_by_business_id(struct pg_call *call)
{
    const struct row_saga *saga = pg_saga_of_business(call, arg_int(call, 0), arg_bytes(call, 1));

    if (saga) {
        put_uuid(call, &saga->id);
        put_bytes(call, saga->input_digest);
        put_row_end(call);
    }
    return PG_DONE;
}

static const struct row_log *newest_turn(struct pg_call *call, const struct row_log *key)
{
    const struct row_log *newest = NULL;

    for (struct pg_row *row = pg_first(call, PG_LOG, key); row; row = pg_next(call, PG_LOG, row)) {
        const struct row_log *turn = pg_see(call, row);

        if (turn && (turn->shard != key->shard || !uuid_equal(&turn->saga, &key->saga))) {
            break;
        }
        newest = turn ? turn : newest;
    }
    return newest;
}

/* Puts turns of the run with this number in the arrays. */
static void put_run_turns(struct pg_call *call, int64_t number, const struct row_log *key)
{
    int64_t left = arg_int(call, 2), bytes_max = arg_int(call, 3);

    for (struct pg_row *row = pg_first(call, PG_LOG, key); row && left > 0; row = pg_next(call, PG_LOG, row)) {
        const struct row_log *turn = pg_see(call, row);

        if (turn && (turn->shard != key->shard || !uuid_equal(&turn->saga, &key->saga))) {
            break;
        }
        if (turn) {
            put_int(call, number);
            put_uuid(call, &key->saga);
            put_int(call, turn->seq);
            put_time_ms(call, turn->at_ms);
            put_bytes(call, (int64_t)turn->payload.len <= bytes_max ? turn->payload : SLICE_NONE);
            put_null(call);
            put_row_end(call);
            left--;
        }
    }
}

static void put_run(struct pg_call *call, int64_t number, const struct row_saga *saga)
{
    struct row_log key = {.shard = saga->shard, .saga = saga->id, .seq = INT32_MIN};
    const struct row_log *newest = newest_turn(call, &key);

    if (newest && newest->rest.ptr) {
        put_int(call, number);
        put_uuid(call, &saga->id);
        put_int(call, newest->seq + newest->records - 1);
        put_null(call);
        put_null(call);
        put_bytes(call, newest->rest);
        put_row_end(call);
    } else {
        put_run_turns(call, number, &key);
    }
}

enum pg_progress pg_statement_run_turns(struct pg_call *call)
{
    for (size_t i = 0; i < arg_count(call, 0); i++) {
        const struct row_saga *saga = pg_saga_of_business(call, item_int(call, 0, i), item_bytes(call, 1, i));

        if (saga) {
            put_run(call, (int64_t)i + 1, saga);
        }
    }
    return PG_DONE;
}
