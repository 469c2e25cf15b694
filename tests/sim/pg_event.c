/* The feed of events, as in migrations 0024 and 0030. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/pg_state.h"
#include "tests/sim/pg_statements.h"

/* --- what no log tells of --- */

struct slice pg_keep_printed(struct pg_call *call, const char *format, ...)
{
    char text[4096];
    va_list args;

    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);

    va_end(args);
    CHECK(len >= 0 && (size_t)len < sizeof(text));
    return pg_keep(call, (struct slice){text, (size_t)len});
}

static bool is_told(struct pg_call *call, const struct row_event *event)
{
    for (struct pg_row *row = pg_first(call, PG_EVENT, &(struct row_event){.shard = event->shard}); row;
         row = pg_next(call, PG_EVENT, row)) {
        const struct row_event *seen = pg_see(call, row);

        if (seen && seen->shard == event->shard && slice_equal(seen->namespace, event->namespace) && seen->once.ptr &&
            slice_equal(seen->once, event->once)) {
            return true;
        }
    }
    return false;
}

enum pg_progress pg_event_add(struct pg_call *call, const struct row_event *event)
{
    struct row_event row = *event;
    bool inserted;

    pg_next_statement(call);
    if (row.once.ptr && is_told(call, event)) { /* whoever tells it has locked what it is about */
        return PG_DONE;
    }
    row.id = pg_new_id(call);
    row.event_tx = pg_tx(call);
    row.at_ms = pg_clock_ms(call->pg);
    row.namespace = pg_keep(call, row.namespace);
    return pg_insert_new(call, PG_EVENT, &row, &inserted);
}

/* --- the feed --- */

struct found {
    int64_t tx, shard, seq, number, bytes;
    struct uuid saga, event;
    int kind; /* 0: a turn, which has a seq; 1: a case; 2: an event that is about a saga; 3: one that is about none */
    const struct row_log *turn;
    const struct row_case_event *of;
    const struct row_event *beside;
};

static int compare(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    int order = x->tx != y->tx ? (x->tx > y->tx) - (x->tx < y->tx) : (x->shard > y->shard) - (x->shard < y->shard);

    order = order ? order : (x->kind == 3) - (y->kind == 3); /* nulls last */
    order = order ? order : uuid_compare(&x->saga, &y->saga);
    order = order ? order : (x->kind > 0) - (y->kind > 0);
    order = order ? order : (x->seq > y->seq) - (x->seq < y->seq);
    order = order ? order : (x->kind < 2) - (y->kind < 2);
    return order ? order : uuid_compare(&x->event, &y->event);
}

struct found_list {
    struct found *all;
    size_t count, room;
};

static void found_add(struct pg_call *call, struct found_list *list, struct found found)
{
    if (list->count == list->room) {
        struct found *before = list->all;

        list->room = list->room ? list->room * 2 : 64;
        list->all = arena_array(call->arena, list->room, sizeof(*list->all));
        if (list->count > 0) {
            memcpy(list->all, before, list->count * sizeof(*before));
        }
    }
    list->all[list->count++] = found;
}

static struct found_list find(struct pg_call *call)
{
    int64_t after = arg_int(call, 0), edge = pg_edge(call);
    struct pg_row *row;
    struct found_list list = {0};

    for (row = pg_first(call, PG_LOG, &(struct row_log){.shard = INT16_MIN}); row; row = pg_next(call, PG_LOG, row)) {
        const struct row_log *turn = pg_see(call, row);

        if (turn && turn->event_tx > after && turn->event_tx < edge) {
            found_add(call, &list,
                      (struct found){.tx = turn->event_tx,
                                     .shard = turn->shard,
                                     .seq = turn->seq,
                                     .bytes = (int64_t)turn->payload.len,
                                     .saga = turn->saga,
                                     .turn = turn});
        }
    }
    for (row = pg_first(call, PG_CASE_EVENT, &(struct row_case_event){.shard = INT16_MIN}); row;
         row = pg_next(call, PG_CASE_EVENT, row)) {
        const struct row_case_event *of = pg_see(call, row);

        if (of && of->event_tx > after && of->event_tx < edge) {
            found_add(call, &list,
                      (struct found){.tx = of->event_tx,
                                     .shard = of->shard,
                                     .number = of->number,
                                     .saga = of->saga,
                                     .kind = 1,
                                     .of = of});
        }
    }
    for (row = pg_first(call, PG_EVENT, &(struct row_event){.shard = INT16_MIN}); row;
         row = pg_next(call, PG_EVENT, row)) {
        const struct row_event *beside = pg_see(call, row);

        if (beside && beside->event_tx > after && beside->event_tx < edge) {
            found_add(call, &list,
                      (struct found){.tx = beside->event_tx,
                                     .shard = beside->shard,
                                     .saga = beside->saga,
                                     .event = beside->id,
                                     .bytes = (int64_t)beside->data.len,
                                     .kind = beside->has_saga ? 2 : 3,
                                     .beside = beside});
        }
    }
    return list;
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

static const struct row_saga *saga_of(struct pg_call *call, const struct found *found)
{
    struct uuid id = found->saga;

    return found->kind < 3 ? pg_saga(call, id.bytes[14] * 256 + id.bytes[15], id) : NULL;
}

static void put_saga(struct pg_call *call, const struct row_saga *saga)
{

    put_bytes(call, saga ? saga->name : SLICE_NONE);
    put_int_or_null(call, saga != NULL, saga ? saga->version : 0);
    put_bytes(call, saga ? saga->business_id : SLICE_NONE);
    put_bytes(call, saga ? saga->tags : SLICE_NONE);
}

static void put_turn(struct pg_call *call, const struct found *found)
{
    const struct row_saga *saga = saga_of(call, found);
    const struct row_case_event *of = found->of;

    if (found->turn) {
        put_time_ms(call, found->turn->at_ms);
        put_bytes(call, saga && slice_equal(saga->namespace, arg_bytes(call, 2)) ? found->turn->payload : SLICE_NONE);
    } else {
        put_null(call);
        put_null(call);
    }
    put_saga(call, saga);
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

static void put_beside(struct pg_call *call, const struct row_event *beside)
{
    if (!beside) {
        for (int i = 0; i < 5; i++) {
            put_null(call);
        }
        return;
    }
    put_uuid(call, &beside->id);
    put_time_ms(call, beside->at_ms);
    put_bytes(call, slice_equal(beside->namespace, arg_bytes(call, 2)) ? beside->type : SLICE_NONE);
    put_bytes(call, beside->subject);
    put_bytes(call, beside->data);
}

static void put_nothing(struct pg_call *call)
{
    put_int(call, pg_edge(call) - 1);
    put_gone(call);
    for (int i = 2; i < 21; i++) {
        put_null(call);
    }
    put_row_end(call);
}

enum pg_progress pg_statement_event_list(struct pg_call *call)
{
    struct found_list list = find(call);
    struct found *found = list.all;
    size_t count = list.count, limit = (size_t)arg_int(call, 1);
    bool is_cut = count >= limit;
    int64_t through = 0;

    if (count == 0) {
        put_nothing(call);
        return PG_DONE;
    }
    qsort(found, count, sizeof(*found), compare);
    count = is_cut ? limit : count;
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
            if (found[i].kind < 3) {
                put_uuid(call, &found[i].saga);
            } else {
                put_null(call);
            }
            put_int_or_null(call, found[i].turn, found[i].seq);
            put_turn(call, &found[i]);
            put_beside(call, found[i].beside);
            put_row_end(call);
        }
    }
    return PG_DONE;
}

/* --- for the checker --- */

static void see_beside(const struct row_event *row, void (*seen)(const struct committed_event *event))
{
    char id[UUID_TEXT_BYTES];

    uuid_text(&row->id, id);
    seen(&(struct committed_event){row->namespace, row->type, slice_of(id)});
}

static void see_case(const struct row_case_event *row, void (*seen)(const struct committed_event *event))
{
    char saga[UUID_TEXT_BYTES], id[UUID_TEXT_BYTES + 64];

    uuid_text(&row->saga, saga);
    (void)snprintf(id, sizeof(id), "%s/case/%lld%s", saga, (long long)row->number, row->is_resolved ? "/resolved" : "");
    seen(&(struct committed_event){row->namespace,
                                   row->is_resolved                    ? SLICE("case.resolved")
                                   : slice_is(row->reason, "follower") ? SLICE("follower.refused")
                                                                       : SLICE("case.opened"),
                                   slice_of(id)});
}

void pg_each_event(const struct pg *pg, void (*seen)(const struct committed_event *event))
{
    const struct pg_rows *rows = &pg->tables[PG_EVENT], *cases = &pg->tables[PG_CASE_EVENT];

    for (size_t i = 0; i < rows->count; i++) {
        const struct row_event *row = pg_committed(rows->sorted[i]);

        if (row) {
            see_beside(row, seen);
        }
    }
    for (size_t i = 0; i < cases->count; i++) {
        const struct row_case_event *row = pg_committed(cases->sorted[i]);

        if (row) {
            see_case(row, seen);
        }
    }
}

bool pg_has_receiver(const struct pg *pg)
{
    const struct pg_rows *rows = &pg->tables[PG_NOTIFY];

    for (size_t i = 0; i < rows->count; i++) {
        if (pg_committed(rows->sorted[i])) {
            return true;
        }
    }
    return false;
}
