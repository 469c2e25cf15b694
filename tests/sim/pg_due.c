/* Sagas that were put aside until their time comes, and the sagas that are forgotten then. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/pg_state.h"
#include "tests/sim/pg_statements.h"

#define INFINITY_MS INT64_MAX

/* --- the append's part --- */

enum pg_progress pg_statement_unpark(struct pg_call *call)
{
    struct pg_touched touched = {0};
    int64_t affected = 0;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        struct pg_row *row =
            pg_find(call, PG_DUE, &(struct row_due){.shard = item_int(call, 0, i), .saga = item_uuid(call, 1, i)});
        const struct row_due *seen = pg_see(call, row);
        const void *current = NULL;

        if (seen && !seen->is_forget) {
            RETURN_UNLESS_DONE(pg_take(call, &touched, row, PG_UPDATE, &current));
        }
        if (current && !((const struct row_due *)current)->is_forget) {
            pg_delete(call, row);
            affected++;
        }
    }
    return end_with_affected(call, affected);
}

static enum pg_progress put_due(struct pg_call *call, const struct row_due *due, struct pg_touched *touched)
{
    struct pg_row *row;
    const void *current;

    RETURN_UNLESS_DONE(pg_insert_or_lock(call, PG_DUE, due, touched, &row, &current));
    if (current) {
        pg_update(call, row, due);
    }
    return PG_DONE;
}

enum pg_progress pg_statement_forget_later(struct pg_call *call)
{
    struct pg_touched touched = {0};
    int64_t affected = 0;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        struct row_due due = {item_int(call, 0, i), item_uuid(call, 1, i), true, item_time_ms(call, 2, i)};

        if (pg_saga(call, due.shard, due.saga)) {
            RETURN_UNLESS_DONE(put_due(call, &due, &touched));
            affected++;
        }
    }
    return end_with_affected(call, affected);
}

enum pg_progress pg_statement_forget_first(struct pg_call *call)
{
    size_t count = arg_count(call, 0);

    for (size_t i = 0; i < count; i++) {
        struct row_due due = {item_int(call, 0, i), item_uuid(call, 1, i), true, item_time_ms(call, 2, i)};

        RETURN_UNLESS_DONE(pg_insert(call, PG_DUE, &due, NULL));
    }
    return end_with_affected(call, (int64_t)count);
}

/* --- park and forget: where the shard is at its epoch once its lease row is locked --- */

/* Locks the shards and marks the positions whose shard is held; `*held` is never NULL with PG_DONE. */
static enum pg_progress hold(struct pg_call *call, bool **held)
{
    size_t count = arg_count(call, 0);
    const size_t *order = pg_order_of_ints(call, 0);
    const void *current = NULL;

    *held = arena_array(call->arena, count + 1, sizeof(**held));
    for (size_t i = 0; i < count; i++) {
        int64_t shard = item_int(call, 0, order[i]);

        if (i == 0 || item_int(call, 0, order[i - 1]) != shard) {
            struct pg_row *row = pg_find(call, PG_SHARD, &(struct row_shard){.shard = shard});

            current = NULL;
            if (pg_see(call, row)) {
                RETURN_UNLESS_DONE(pg_lock(call, row, PG_KEY_SHARE, &current));
            }
        }
        (*held)[order[i]] = current && ((const struct row_shard *)current)->epoch == item_int(call, 1, order[i]);
    }
    return PG_DONE;
}

struct parking {
    struct row_due due;
    bool is_awake;
};

static int by_saga(const void *a, const void *b)
{
    const struct parking *x = a, *y = b;

    return x->due.shard != y->due.shard ? (x->due.shard < y->due.shard ? -1 : 1)
                                        : uuid_compare(&x->due.saga, &y->due.saga);
}

/* Reads the literal of an array. */
static void read_holds(struct pg_call *call, size_t i, struct row_due *due)
{
    struct slice text = item_is_null(call, 5, i) ? SLICE_NONE : item_bytes(call, 5, i);

    for (size_t at = 0; at < text.len; at++) {
        if (text.ptr[at] == '{' || text.ptr[at] == ',') {
            CHECK(due->hold_count < PARK_HOLDS_MAX);
            due->holds[due->hold_count++] = 0;
        } else if (text.ptr[at] != '}') {
            due->holds[due->hold_count - 1] = 10 * due->holds[due->hold_count - 1] + (text.ptr[at] - '0');
        }
    }
}

enum pg_progress pg_statement_park(struct pg_call *call)
{
    size_t count = arg_count(call, 0), n = 0;
    struct parking *parkings = arena_array(call->arena, count + 1, sizeof(*parkings));
    struct pg_touched dues = {0}, awakes = {0};
    bool *held;

    RETURN_UNLESS_DONE(hold(call, &held));
    for (size_t i = 0; i < count; i++) {
        if (held[i]) {
            parkings[n++] =
                (struct parking){{.shard = item_int(call, 0, i),
                                  .saga = item_uuid(call, 2, i),
                                  .at_ms = item_is_null(call, 3, i) ? INFINITY_MS : item_time_ms(call, 3, i)},
                                 item_int(call, 4, i) != 0};
            read_holds(call, i, &parkings[n - 1].due);
            put_int(call, (int64_t)i + 1);
            put_row_end(call);
        }
    }
    qsort(parkings, n, sizeof(*parkings), by_saga);
    for (size_t i = 0; i < n; i++) {
        RETURN_UNLESS_DONE(put_due(call, &parkings[i].due, &dues));
    }
    for (size_t i = 0; i < n; i++) {
        const struct row_awake key = {parkings[i].due.shard, parkings[i].due.saga};
        bool deleted;

        if (parkings[i].is_awake) {
            RETURN_UNLESS_DONE(pg_delete_key(call, PG_AWAKE, &key, &awakes, &deleted));
        }
    }
    return PG_DONE;
}

static bool parse_key(const char *at, size_t len, struct uuid *out)
{
    return len >= 37 && at[36] == '"' && uuid_parse((struct slice){at, 36}, out) &&
           memchr("0123456789abcdef", at[0], 16) != NULL;
}

/* Forgets the keys in `"key": "..."`, with or without the space, that the table knows as keys of this saga. */
static enum pg_progress forget_keys(struct pg_call *call, struct slice payload, struct uuid saga,
                                    struct pg_touched *touched)
{
    static const char before[] = "\"key\":";
    const char *at = payload.ptr, *end = payload.ptr + payload.len;

    while ((at = memmem(at, (size_t)(end - at), before, sizeof(before) - 1)) != NULL) {
        struct uuid key;
        const char *value = at + sizeof(before) - 1;

        value += value < end && *value == ' ';
        at++;
        if (value < end && *value == '"' && parse_key(value + 1, (size_t)(end - value - 1), &key)) {
            const struct row_operation_key named = {.shard = key.bytes[15] % 64, .key = key};
            const struct row_operation_key *seen = pg_see(call, pg_find(call, PG_OPERATION_KEY, &named));
            bool deleted;

            if (seen && uuid_equal(&seen->saga, &saga)) {
                RETURN_UNLESS_DONE(pg_delete_key(call, PG_OPERATION_KEY, &named, touched, &deleted));
            }
        }
    }
    return PG_DONE;
}

/* The common part of escalations and approvals. */
struct question {
    int64_t shard, number;
    struct uuid saga;
};

static struct question escalation_of(const void *row)
{
    const struct row_escalation *escalation = row;

    return (struct question){escalation->shard, escalation->number, escalation->saga};
}

static struct question approval_of(const void *row)
{
    const struct row_approval *approval = row;

    return (struct question){approval->shard, approval->number, approval->saga};
}

/* Forgets the questions of the saga from `first` on; `last` becomes the largest number that was forgotten. */
static enum pg_progress forget_those(struct pg_call *call, enum pg_table table, const void *first,
                                     struct question (*question_of)(const void *row), struct pg_touched *touched,
                                     bool *any, int64_t *last)
{
    struct question asked = question_of(first);
    struct pg_row *row = pg_first(call, table, first), *next;
    const void *current;

    for (; row; row = next) {
        const void *seen = pg_see(call, row);
        struct question question = seen ? question_of(seen) : (struct question){0};

        next = pg_next(call, table, row);
        if (seen && question.shard == asked.shard && uuid_equal(&question.saga, &asked.saga)) {
            RETURN_UNLESS_DONE(pg_take(call, touched, row, PG_UPDATE, &current));
            if (current) {
                *any = true;
                *last = question.number > *last ? question.number : *last;
                pg_delete(call, row);
            }
        }
    }
    return PG_DONE;
}

/* An ended saga that is to be forgotten. */
struct ended {
    int64_t shard;
    struct uuid saga;
    struct pg_row *row;
};

static int by_shard_and_id(const void *a, const void *b)
{
    const struct ended *x = a, *y = b;

    return x->shard != y->shard ? (x->shard < y->shard ? -1 : 1) : uuid_compare(&x->saga, &y->saga);
}

/* Is a bulk job of its namespace open, or a case of this saga? */
static bool is_pinned(struct pg_call *call, const struct row_saga *saga)
{
    const struct row_bulk first_bulk = {.shard = INT16_MIN};
    const struct row_escalation first = {.shard = saga->shard, .number = INT64_MIN};
    bool pinned = false;

    for (struct pg_row *row = pg_first(call, PG_BULK, &first_bulk); row; row = pg_next(call, PG_BULK, row)) {
        const struct row_bulk *bulk = pg_see(call, row);

        pinned |= bulk && slice_equal(bulk->namespace, saga->namespace) && pg_bulk_is_open(bulk, pg_clock_ms(call->pg));
    }
    for (struct pg_row *row = pg_first(call, PG_ESCALATION, &first); row; row = pg_next(call, PG_ESCALATION, row)) {
        const struct row_escalation *seen = pg_see(call, row);

        pinned |= seen && seen->shard == saga->shard && uuid_equal(&seen->saga, &saga->id) && !seen->is_resolved;
    }
    return pinned;
}

/* Locks the ended sagas of the held shards that nothing pins, in order. */
static enum pg_progress lock_ended(struct pg_call *call, const bool *held, struct ended **ended, size_t *ended_count)
{
    size_t count = arg_count(call, 0), n = 0;
    struct ended *found = arena_array(call->arena, count + 1, sizeof(*found));

    for (size_t i = 0; i < count; i++) {
        struct row_saga key = {.shard = item_int(call, 0, i), .id = item_uuid(call, 2, i)};
        struct pg_row *row = pg_find(call, PG_SAGA, &key);
        const struct row_saga *seen = pg_see(call, row);

        if (held[i] && seen && seen->has_ended && !is_pinned(call, seen)) {
            found[n++] = (struct ended){key.shard, key.id, row};
        }
    }
    qsort(found, n, sizeof(*found), by_shard_and_id);
    *ended = found;
    *ended_count = 0;
    for (size_t i = 0; i < n; i++) {
        const void *current = NULL;

        RETURN_UNLESS_DONE(pg_lock(call, found[i].row, PG_UPDATE, &current));
        if (current && ((const struct row_saga *)current)->has_ended) {
            found[(*ended_count)++] = found[i];
        }
    }
    return PG_DONE;
}

/* Forgets the keys of the turns of one saga (`last_tx` is NULL), or the turns themselves, and notes the last event
 * among them. */
static enum pg_progress forget_turns(struct pg_call *call, const struct ended *ended, struct pg_touched *touched,
                                     int64_t *last_tx)
{
    const struct row_log first = {.shard = ended->shard, .saga = ended->saga, .seq = INT32_MIN};
    struct pg_row *row, *next;

    for (row = pg_first(call, PG_LOG, &first); row; row = next) {
        const struct row_log *turn = pg_see(call, row);
        const void *current;

        next = pg_next(call, PG_LOG, row);
        if (turn && (turn->shard != ended->shard || !uuid_equal(&turn->saga, &ended->saga))) {
            break;
        }
        if (!last_tx) {
            if (turn) {
                RETURN_UNLESS_DONE(forget_keys(call, turn->payload, ended->saga, touched));
            }
        } else {
            RETURN_UNLESS_DONE(pg_take(call, touched, row, PG_UPDATE, &current));
            if (current) {
                int64_t tx = ((const struct row_log *)current)->event_tx;

                *last_tx = tx > *last_tx ? tx : *last_tx;
                pg_delete(call, row);
            }
        }
    }
    return PG_DONE;
}

/* Notes the forgotten sagas, in order of their shards, each namespace of a shard once. */
static enum pg_progress note_gone(struct pg_call *call, const struct ended *ended, const int64_t *last_tx, size_t count)
{
    struct pg_touched touched = {0};

    for (size_t i = 0; i < count; i++) {
        const struct row_saga *saga = pg_see(call, ended[i].row);
        struct row_event_gone key;
        struct pg_row *row;
        const void *current;

        if (last_tx[i] == 0 || !saga) {
            continue;
        }
        key = (struct row_event_gone){.shard = ended[i].shard, .namespace = saga->namespace, .tx = last_tx[i]};
        for (size_t k = 0; k < count; k++) {
            const struct row_saga *other = pg_see(call, ended[k].row);

            if (other && ended[k].shard == key.shard && slice_equal(other->namespace, key.namespace)) {
                key.tx = last_tx[k] > key.tx ? last_tx[k] : key.tx;
            }
        }
        if (pg_is_touched(&touched, pg_find(call, PG_EVENT_GONE, &key))) {
            continue;
        }
        RETURN_UNLESS_DONE(pg_insert_or_lock(call, PG_EVENT_GONE, &key, &touched, &row, &current));
        if (current && ((const struct row_event_gone *)current)->tx < key.tx) {
            pg_update(call, row, &key);
        } else if (current) {
            pg_update(call, row, current);
        }
    }
    return PG_DONE;
}

static enum pg_progress forget_questions(struct pg_call *call, const struct ended *ended, size_t count)
{
    struct pg_touched escalations = {0}, approvals = {0}, gones = {0};
    struct row_number_gone gone[64] = {0};
    bool any[64] = {0};

    for (size_t i = 0; i < count; i++) {
        const struct row_escalation first = {.shard = ended[i].shard, .number = INT64_MIN, .saga = ended[i].saga};

        RETURN_UNLESS_DONE(forget_those(call, PG_ESCALATION, &first, escalation_of, &escalations, &any[ended[i].shard],
                                        &gone[ended[i].shard].escalation));
    }
    for (size_t i = 0; i < count; i++) {
        const struct row_approval first = {.shard = ended[i].shard, .number = INT64_MIN, .saga = ended[i].saga};

        RETURN_UNLESS_DONE(forget_those(call, PG_APPROVAL, &first, approval_of, &approvals, &any[ended[i].shard],
                                        &gone[ended[i].shard].approval));
    }
    for (int64_t shard = 0; shard < 64; shard++) {
        struct pg_row *row;
        const void *current;

        if (!any[shard]) {
            continue;
        }
        gone[shard].shard = shard;
        RETURN_UNLESS_DONE(pg_insert_or_lock(call, PG_NUMBER_GONE, &gone[shard], &gones, &row, &current));
        if (current) {
            struct row_number_gone both = *(const struct row_number_gone *)current;

            both.escalation = both.escalation > gone[shard].escalation ? both.escalation : gone[shard].escalation;
            both.approval = both.approval > gone[shard].approval ? both.approval : gone[shard].approval;
            pg_update(call, row, &both);
        }
    }
    return PG_DONE;
}

static bool is_case_event_of(const void *row, const struct ended *ended)
{
    const struct row_case_event *event = row;

    return event->shard == ended->shard && uuid_equal(&event->saga, &ended->saga);
}

static bool is_remark_of(const void *row, const struct ended *ended)
{
    const struct row_case_remark *remark = row;

    return remark->shard == ended->shard && uuid_equal(&remark->saga, &ended->saga);
}

static bool is_settled_of(const void *row, const struct ended *ended)
{
    const struct row_debt_settled *settled = row;

    return settled->shard == ended->shard && uuid_equal(&settled->saga, &ended->saga);
}

/* Forgets the rows of one table that belong to these sagas. `first` is the key before all rows. */
static enum pg_progress forget_rows(struct pg_call *call, enum pg_table table, const void *first,
                                    bool (*is_of)(const void *row, const struct ended *ended),
                                    const struct ended *ended, size_t count)
{
    struct pg_touched touched = {0};
    struct pg_row *row = pg_first(call, table, first), *next;

    for (; row; row = next) {
        const void *of = pg_see(call, row), *current = NULL;

        next = pg_next(call, table, row);
        for (size_t i = 0; of && i < count; i++) {
            if (is_of(of, &ended[i])) {
                RETURN_UNLESS_DONE(pg_take(call, &touched, row, PG_UPDATE, &current));
            }
        }
        if (current) {
            pg_delete(call, row);
        }
    }
    return PG_DONE;
}

/* Forgets everything of these sagas except their rows in due, one table after the other. */
static enum pg_progress forget_ended(struct pg_call *call, const struct ended *ended, size_t count)
{
    struct pg_touched keys = {0}, turns = {0}, sagas = {0};
    int64_t *last_tx = arena_array(call->arena, count, sizeof(*last_tx));
    const void *current;

    pg_next_statement(call);
    for (size_t i = 0; i < count; i++) {
        last_tx[i] = 0;
        RETURN_UNLESS_DONE(forget_turns(call, &ended[i], &keys, NULL));
    }
    pg_next_statement(call);
    RETURN_UNLESS_DONE(forget_questions(call, ended, count));
    pg_next_statement(call);
    RETURN_UNLESS_DONE(forget_rows(call, PG_DEBT_SETTLED, &(struct row_debt_settled){.shard = INT16_MIN}, is_settled_of,
                                   ended, count));
    pg_next_statement(call);
    RETURN_UNLESS_DONE(
        forget_rows(call, PG_CASE_REMARK, &(struct row_case_remark){.shard = INT16_MIN}, is_remark_of, ended, count));
    pg_next_statement(call);
    RETURN_UNLESS_DONE(
        forget_rows(call, PG_CASE_EVENT, &(struct row_case_event){.shard = INT16_MIN}, is_case_event_of, ended, count));
    pg_next_statement(call);
    for (size_t i = 0; i < count; i++) {
        RETURN_UNLESS_DONE(forget_turns(call, &ended[i], &turns, &last_tx[i]));
    }
    RETURN_UNLESS_DONE(note_gone(call, ended, last_tx, count));
    pg_next_statement(call);
    for (size_t i = 0; i < count; i++) {
        RETURN_UNLESS_DONE(pg_take(call, &sagas, ended[i].row, PG_UPDATE, &current));
        if (current) {
            pg_delete(call, ended[i].row);
        }
    }
    return PG_DONE;
}

/* A saga that is still there although it has ended is looked at again in an hour; the others need no row in due. */
static enum pg_progress forget_due(struct pg_call *call, const bool *held, bool of_pinned)
{
    struct pg_touched dues = {0};

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        struct row_due due = {.shard = item_int(call, 0, i), .saga = item_uuid(call, 2, i)};
        const struct row_saga *saga = pg_saga(call, due.shard, due.saga);
        struct pg_row *row = pg_find(call, PG_DUE, &due);
        const struct row_due *seen = pg_see(call, row);
        const void *current = NULL;

        if (held[i] && (saga && saga->has_ended) == of_pinned && seen && seen->is_forget) {
            RETURN_UNLESS_DONE(pg_take(call, &dues, row, of_pinned ? PG_NO_KEY_UPDATE : PG_UPDATE, &current));
        }
        if (!current || !((const struct row_due *)current)->is_forget) {
            continue;
        }
        if (of_pinned) {
            due.is_forget = true;
            due.at_ms = pg_clock_ms(call->pg) + 3600000;
            pg_update(call, row, &due);
        } else {
            pg_delete(call, row);
        }
    }
    return PG_DONE;
}

/* When was the last turn of this run? INT64_MIN: it is no run, or has none. */
static int64_t run_active_ms(struct pg_call *call, int64_t shard, struct uuid saga)
{
    const struct row_log first = {.shard = shard, .saga = saga, .seq = INT32_MIN};
    const struct row_saga *seen = pg_saga(call, shard, saga);
    int64_t at_ms = INT64_MIN;

    if (!seen || !slice_is(seen->name, "~run")) {
        return at_ms;
    }
    for (struct pg_row *row = pg_first(call, PG_LOG, &first); row; row = pg_next(call, PG_LOG, row)) {
        const struct row_log *turn = pg_see(call, row);

        if (turn && (turn->shard != shard || !uuid_equal(&turn->saga, &saga))) {
            break;
        }
        at_ms = turn ? turn->at_ms : at_ms;
    }
    return at_ms;
}

/* Puts off the runs that were used since; `*young` marks them. */
static enum pg_progress put_runs_off(struct pg_call *call, bool **young)
{
    struct pg_touched dues = {0};

    *young = arena_array(call->arena, arg_count(call, 0) + 1, sizeof(**young));
    for (size_t i = 0; i < arg_count(call, 0); i++) {
        struct row_due due = {.shard = item_int(call, 0, i), .saga = item_uuid(call, 2, i), .is_forget = true};
        int64_t active_ms = run_active_ms(call, due.shard, due.saga);
        bool for_ever = item_is_null(call, 3, i);
        struct pg_row *row = pg_find(call, PG_DUE, &due);
        const struct row_due *seen = pg_see(call, row);
        const void *current = NULL;

        (*young)[i] = active_ms != INT64_MIN && (for_ever || active_ms > item_time_ms(call, 3, i));
        if ((*young)[i] && seen && seen->is_forget) {
            RETURN_UNLESS_DONE(pg_take(call, &dues, row, PG_NO_KEY_UPDATE, &current));
        }
        if (current && ((const struct row_due *)current)->is_forget) {
            due.at_ms = for_ever ? INFINITY_MS : active_ms + item_int(call, 4, i);
            pg_update(call, row, &due);
        }
    }
    return PG_DONE;
}

static void put_positions(struct pg_call *call, const bool *those, const bool *except, int64_t sign)
{
    for (size_t i = 0; i < arg_count(call, 0); i++) {
        if (those[i] && !(except && except[i])) {
            put_int(call, sign * ((int64_t)i + 1));
            put_row_end(call);
        }
    }
}

enum pg_progress pg_statement_forget(struct pg_call *call)
{
    size_t ended_count = 0;
    struct ended *ended;
    bool *held, *young;

    RETURN_UNLESS_DONE(put_runs_off(call, &young));
    pg_next_statement(call);
    RETURN_UNLESS_DONE(hold(call, &held));
    for (size_t i = 0; i < arg_count(call, 0); i++) {
        held[i] = held[i] && !young[i];
    }
    pg_next_statement(call);
    RETURN_UNLESS_DONE(lock_ended(call, held, &ended, &ended_count));
    if (ended_count > 0) {
        RETURN_UNLESS_DONE(forget_ended(call, ended, ended_count));
    }
    pg_next_statement(call);
    RETURN_UNLESS_DONE(forget_due(call, held, true));
    pg_next_statement(call);
    RETURN_UNLESS_DONE(forget_due(call, held, false));
    put_positions(call, young, NULL, -1);
    put_positions(call, held, young, 1);
    return PG_DONE;
}

/* --- whose time has come? --- */

static int by_time(const void *a, const void *b)
{
    const struct row_due *const *x = a, *const *y = b;

    return (*x)->at_ms != (*y)->at_ms ? ((*x)->at_ms < (*y)->at_ms ? -1 : 1) : uuid_compare(&(*x)->saga, &(*y)->saga);
}

/* Collects the due rows of one shard, in order, at most `of_shard`. */
static size_t dues_of_shard(struct pg_call *call, int64_t shard, bool is_forget, int64_t of_shard,
                            const struct row_due ***out)
{
    int64_t until_ms = arg_time_ms(call, 1);
    const struct row_due **found = NULL;
    size_t count = 0, capacity = 0;

    for (struct pg_row *row = pg_first(call, PG_DUE, &(struct row_due){.shard = shard}); row;
         row = pg_next(call, PG_DUE, row)) {
        const struct row_due *due = pg_see(call, row);

        if (due && due->shard != shard) {
            break;
        }
        if (!due || due->is_forget != is_forget || due->at_ms > until_ms) {
            continue;
        }
        if (count == capacity) {
            const struct row_due **larger = arena_array(call->arena, 4 * capacity + 64, sizeof(struct row_due *));

            if (count > 0) {
                memcpy(larger, found, count * sizeof(struct row_due *));
            }
            capacity = 4 * capacity + 64;
            found = larger;
        }
        found[count++] = due;
    }
    if (count > 0) {
        qsort(found, count, sizeof(struct row_due *), by_time);
    }
    *out = found;
    return (int64_t)count < of_shard ? count : (size_t)of_shard;
}

static void put_dues(struct pg_call *call, bool is_forget, int64_t limit, int64_t of_shard)
{
    size_t shards = arg_count(call, 0), count = 0;
    const struct row_due **all;

    if (limit == 0) {
        return;
    }
    const struct row_due ***found = arena_array(call->arena, shards + 1, sizeof(*found));
    size_t *counts = arena_array(call->arena, shards + 1, sizeof(*counts));

    for (size_t i = 0; i < shards; i++) {
        counts[i] = dues_of_shard(call, item_int(call, 0, i), is_forget, of_shard, &found[i]);
        count += counts[i];
    }
    all = arena_array(call->arena, count + 1, sizeof(struct row_due *));
    count = 0;
    for (size_t i = 0; i < shards; i++) {
        for (size_t k = 0; k < counts[i]; k++) {
            all[count++] = found[i][k];
        }
    }
    qsort(all, count, sizeof(struct row_due *), by_time);
    for (size_t i = 0; i < count && (int64_t)i < limit; i++) {
        const struct row_saga *saga = pg_saga(call, all[i]->shard, all[i]->saga);

        put_int(call, all[i]->shard);
        put_uuid(call, &all[i]->saga);
        put_int(call, is_forget);
        put_bytes(call, saga ? saga->namespace : SLICE_NONE);
        put_time_ms(call, all[i]->at_ms);
        put_row_end(call);
    }
}

enum pg_progress pg_statement_due(struct pg_call *call)
{
    int64_t parked = arg_int(call, 2), forget = arg_int(call, 3), shards = (int64_t)arg_count(call, 0);
    int64_t share = 2 * forget / (shards ? shards : 1);

    put_dues(call, false, parked, parked);
    put_dues(call, true, forget, share > 16 ? share : 16);
    return PG_DONE;
}

enum pg_progress pg_statement_due_next(struct pg_call *call)
{
    int64_t after_ms = arg_time_ms(call, 1), next_ms = 0;
    bool found = false;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        int64_t shard = item_int(call, 0, i);
        struct pg_row *row = pg_first(call, PG_DUE, &(struct row_due){.shard = shard});

        for (; row; row = pg_next(call, PG_DUE, row)) {
            const struct row_due *due = pg_see(call, row);

            if (due && due->shard != shard) {
                break;
            }
            if (due && arg_int(call, due->is_forget ? 3 : 2) > 0 && due->at_ms > after_ms &&
                (!found || due->at_ms < next_ms)) {
                found = true;
                next_ms = due->at_ms;
            }
        }
    }
    if (found) {
        put_time_ms(call, next_ms);
    } else {
        put_null(call);
    }
    return end_with_row(call);
}

/* --- what waits for a hold that is over --- */

static bool is_in_force(struct pg_call *call, int64_t hold)
{
    bool found = false;

    for (size_t i = 0; i < arg_count(call, 1); i++) {
        found |= hold == item_int(call, 1, i);
    }
    return found;
}

static bool one_is_over(struct pg_call *call, const struct row_due *due)
{
    bool over = false;

    for (size_t i = 0; i < due->hold_count; i++) {
        over |= !is_in_force(call, due->holds[i]);
    }
    return over;
}

static int compare_holds(const struct row_due *x, const struct row_due *y)
{
    for (size_t i = 0; i < x->hold_count && i < y->hold_count; i++) {
        if (x->holds[i] != y->holds[i]) {
            return x->holds[i] < y->holds[i] ? -1 : 1;
        }
    }
    return (x->hold_count > y->hold_count) - (x->hold_count < y->hold_count);
}

static int by_holds(const void *a, const void *b)
{
    const struct row_due *x = a, *y = b;
    int order = compare_holds(x, y);

    return order != 0             ? order
           : x->shard != y->shard ? (x->shard < y->shard ? -1 : 1)
                                  : uuid_compare(&x->saga, &y->saga);
}

static struct row_due *held_rows(struct pg_call *call, size_t *count)
{
    struct row_due *found = arena_array(call->arena, call->pg->tables[PG_DUE].count + 1, sizeof(*found));

    *count = 0;
    for (size_t i = 0; i < arg_count(call, 0); i++) {
        int64_t shard = item_int(call, 0, i);

        for (struct pg_row *row = pg_first(call, PG_DUE, &(struct row_due){.shard = shard}); row;
             row = pg_next(call, PG_DUE, row)) {
            const struct row_due *due = pg_see(call, row);

            if (due && due->shard != shard) {
                break;
            }
            if (due && one_is_over(call, due)) {
                found[(*count)++] = *due;
            }
        }
    }
    qsort(found, *count, sizeof(*found), by_holds);
    return found;
}

enum pg_progress pg_statement_due_let_go(struct pg_call *call)
{
    struct pg_touched touched = {0};
    int64_t affected = 0, limit = arg_int(call, 3);
    size_t count;
    const struct row_due *found = held_rows(call, &count);

    for (size_t i = 0; i < count && (int64_t)i < limit; i++) {
        struct pg_row *row = pg_find(call, PG_DUE, &found[i]);
        const void *current = NULL;

        if (!found[i].is_forget) {
            RETURN_UNLESS_DONE(pg_take(call, &touched, row, PG_NO_KEY_UPDATE, &current));
        }
        if (current && !((const struct row_due *)current)->is_forget &&
            ((const struct row_due *)current)->hold_count > 0) {
            struct row_due changed = *(const struct row_due *)current;

            changed.at_ms = arg_time_ms(call, 2);
            changed.hold_count = 0;
            pg_update(call, row, &changed);
            affected++;
        }
    }
    put_int(call, affected);
    return end_with_row(call);
}

bool pg_parks_under_two_holds(const struct pg *pg)
{
    const struct pg_rows *rows = &pg->tables[PG_DUE];
    bool found = false;

    for (size_t i = 0; i < rows->count; i++) {
        const struct row_due *due = pg_committed(rows->sorted[i]);

        found |= due && !due->is_forget && due->hold_count > 1;
    }
    return found;
}
