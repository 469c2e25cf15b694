/* The feed of events, as in migration 0024. */
#include <stdlib.h>

#include "tests/sim/pg_statements.h"

struct found {
    int64_t tx, shard, seq, number, bytes;
    struct uuid saga;
    bool is_case; /* the event has a number and no seq */
    const struct row_log *turn;
    const struct row_case_event *of;
};

static int compare(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    int order = x->tx != y->tx ? (x->tx > y->tx) - (x->tx < y->tx) : (x->shard > y->shard) - (x->shard < y->shard);

    order = order ? order : uuid_compare(&x->saga, &y->saga);
    order = order ? order : x->is_case - y->is_case; /* nulls last */
    return order ? order : (x->seq > y->seq) - (x->seq < y->seq);
}

static size_t find(struct pg_call *call, struct found *found, size_t most)
{
    int64_t after = arg_int(call, 0), edge = pg_edge(call);
    struct pg_row *row;
    size_t count = 0;

    for (row = pg_first(call, PG_LOG, &(struct row_log){.shard = INT16_MIN}); row; row = pg_next(call, PG_LOG, row)) {
        const struct row_log *turn = pg_see(call, row);

        if (turn && turn->event_tx > after && turn->event_tx < edge && count < most) {
            found[count++] = (struct found){.tx = turn->event_tx,
                                            .shard = turn->shard,
                                            .seq = turn->seq,
                                            .bytes = (int64_t)turn->payload.len,
                                            .saga = turn->saga,
                                            .turn = turn};
        }
    }
    for (row = pg_first(call, PG_CASE_EVENT, &(struct row_case_event){.shard = INT16_MIN}); row;
         row = pg_next(call, PG_CASE_EVENT, row)) {
        const struct row_case_event *of = pg_see(call, row);

        if (of && of->event_tx > after && of->event_tx < edge && count < most) {
            found[count++] = (struct found){.tx = of->event_tx,
                                            .shard = of->shard,
                                            .number = of->number,
                                            .saga = of->saga,
                                            .is_case = true,
                                            .of = of};
        }
    }
    return count;
}

static void put_int_or_null(struct pg_call *call, bool is_there, int64_t value)
{
    if (is_there) {
        put_int(call, value);
    } else {
        put_null(call);
    }
}

static void put_gone(struct pg_call *call)
{
    struct pg_row *row =
        pg_first(call, PG_EVENT_GONE, &(struct row_event_gone){.shard = INT16_MIN, .namespace = SLICE("")});
    int64_t gone = 0;

    for (; row; row = pg_next(call, PG_EVENT_GONE, row)) {
        const struct row_event_gone *of = pg_see(call, row);

        gone = of && slice_equal(of->namespace, arg_bytes(call, 2)) && of->tx > gone ? of->tx : gone;
    }
    put_int_or_null(call, gone > 0, gone);
}

static void put_saga(struct pg_call *call, struct uuid id)
{
    const struct row_saga *saga = pg_saga(call, id.bytes[14] * 256 + id.bytes[15], id);

    put_bytes(call, saga ? saga->name : SLICE_NONE);
    put_int_or_null(call, saga != NULL, saga ? saga->version : 0);
    put_bytes(call, saga ? saga->business_id : SLICE_NONE);
    put_bytes(call, saga ? saga->tags : SLICE_NONE);
}

static void put_turn(struct pg_call *call, const struct found *found)
{
    const struct row_saga *saga = pg_saga(call, found->saga.bytes[14] * 256 + found->saga.bytes[15], found->saga);
    const struct row_case_event *of = found->of;

    if (found->turn) {
        put_time_ms(call, found->turn->at_ms);
        put_bytes(call, saga && slice_equal(saga->namespace, arg_bytes(call, 2)) ? found->turn->payload : SLICE_NONE);
    } else {
        put_null(call);
        put_null(call);
    }
    put_saga(call, found->saga);
    if (!of) {
        put_null(call);
        put_null(call);
        put_null(call);
        put_null(call);
        return;
    }
    put_int(call, of->number);
    put_int(call, of->is_resolved);
    put_time_ms(call, of->at_ms);
    put_bytes(call, slice_equal(of->namespace, arg_bytes(call, 2)) ? of->reason : SLICE_NONE);
}

static void put_nothing(struct pg_call *call)
{
    put_int(call, pg_edge(call) - 1);
    put_gone(call);
    for (int i = 2; i < 16; i++) {
        put_null(call);
    }
    put_row_end(call);
}

enum pg_progress pg_statement_event_list(struct pg_call *call)
{
    enum { MOST = 65536 };
    struct found *found = arena_array(call->arena, MOST, sizeof(*found));
    size_t count = find(call, found, MOST), limit = (size_t)arg_int(call, 1);
    bool is_cut = count >= limit;
    int64_t through = 0;

    qsort(found, count, sizeof(*found), compare);
    count = is_cut ? limit : count;
    if (count == 0) {
        put_nothing(call);
        return PG_DONE;
    }
    for (size_t i = 0; i < count;) {
        size_t behind = i;

        for (; behind < count && found[behind].tx == found[i].tx; behind++) {
            through += found[behind].bytes;
        }
        if (through > arg_int(call, 3) && i > 0) {
            break;
        }
        for (; i < behind; i++) {
            put_int(call, pg_edge(call) - 1);
            put_gone(call);
            put_int_or_null(call, is_cut, found[count - 1].tx);
            put_int(call, found[i].tx);
            put_uuid(call, &found[i].saga);
            put_int_or_null(call, !found[i].is_case, found[i].seq);
            put_turn(call, &found[i]);
            put_row_end(call);
        }
    }
    return PG_DONE;
}
