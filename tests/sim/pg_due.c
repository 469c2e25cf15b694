/* What is due: sagas put aside until their time comes, and those that are forgotten then. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/pg_statements.h"

#define INFINITY_MS INT64_MAX

/* --- the append's part --- */

enum pg_progress pg_statement_unpark(struct pg_call *call)
{
    struct pg_touched touched = {0};
    int64_t affected = 0;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        struct pg_row *row = pg_find(call, PG_DUE, &(struct row_due){.shard = item_int(call, 0, i), .saga = item_uuid(call, 1, i)});
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
    put_affected(call, affected);
    return PG_DONE;
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
    put_affected(call, affected);
    return PG_DONE;
}

/* --- park and forget: where the shard is at its epoch once its lease row is locked --- */

/* Which positions those are; NULL in *held with PG_DONE never. */
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

    return x->due.shard != y->due.shard ? (x->due.shard < y->due.shard ? -1 : 1) : uuid_compare(&x->due.saga, &y->due.saga);
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
            parkings[n++] = (struct parking){{item_int(call, 0, i), item_uuid(call, 2, i), false,
                                              item_is_null(call, 3, i) ? INFINITY_MS : item_time_ms(call, 3, i)},
                                             item_int(call, 4, i) != 0};
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

/* `"key": "..."` with or without the space, of whatever is a key of this saga by the table. */
static enum pg_progress forget_keys(struct pg_call *call, struct slice payload, struct uuid saga, struct pg_touched *touched)
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

/* What escalations and approvals have in common: somebody is asked. */
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

/* Those of the saga from `first` on; `last` becomes the largest number that went. */
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

static enum pg_progress forget_questions(struct pg_call *call, int64_t shard, struct uuid saga)
{
    const struct row_escalation escalation = {.shard = shard, .number = INT64_MIN, .saga = saga};
    const struct row_approval approval = {.shard = shard, .number = INT64_MIN, .saga = saga};
    struct pg_touched touched = {0};
    struct row_number_gone gone = {.shard = shard};
    bool any = false;
    struct pg_row *row;
    const void *current;

    RETURN_UNLESS_DONE(forget_those(call, PG_ESCALATION, &escalation, escalation_of, &touched, &any, &gone.escalation));
    RETURN_UNLESS_DONE(forget_those(call, PG_APPROVAL, &approval, approval_of, &touched, &any, &gone.approval));
    if (any) {
        RETURN_UNLESS_DONE(pg_insert_or_lock(call, PG_NUMBER_GONE, &gone, &touched, &row, &current));
        if (current) {
            struct row_number_gone both = *(const struct row_number_gone *)current;

            both.escalation = both.escalation > gone.escalation ? both.escalation : gone.escalation;
            both.approval = both.approval > gone.approval ? both.approval : gone.approval;
            pg_update(call, row, &both);
        }
    }
    return PG_DONE;
}

/* Log and row of one that has ended. */
static enum pg_progress forget_saga(struct pg_call *call, int64_t shard, struct uuid saga)
{
    struct pg_row *found = pg_find(call, PG_SAGA, &(struct row_saga){.shard = shard, .id = saga}), *row, *next;
    const struct row_saga *seen = pg_see(call, found);
    const struct row_log first = {.shard = shard, .saga = saga, .seq = INT32_MIN};
    const void *current = NULL;
    struct pg_touched keys = {0}, turns = {0};

    if (seen && seen->has_ended) {
        RETURN_UNLESS_DONE(pg_lock(call, found, PG_UPDATE, &current));
    }
    if (!current || !((const struct row_saga *)current)->has_ended) {
        return PG_DONE;
    }
    pg_next_statement(call);
    for (row = pg_first(call, PG_LOG, &first); row; row = pg_next(call, PG_LOG, row)) {
        const struct row_log *turn = pg_see(call, row);

        if (turn && (turn->shard != shard || !uuid_equal(&turn->saga, &saga))) {
            break;
        }
        if (turn) {
            RETURN_UNLESS_DONE(forget_keys(call, turn->payload, saga, &keys));
        }
    }
    pg_next_statement(call);
    RETURN_UNLESS_DONE(forget_questions(call, shard, saga));
    pg_next_statement(call);
    for (row = pg_first(call, PG_LOG, &first); row; row = next) {
        const struct row_log *turn = pg_see(call, row);

        next = pg_next(call, PG_LOG, row);
        if (turn && (turn->shard != shard || !uuid_equal(&turn->saga, &saga))) {
            break;
        }
        RETURN_UNLESS_DONE(pg_take(call, &turns, row, PG_UPDATE, &current));
        if (current) {
            pg_delete(call, row);
        }
    }
    pg_next_statement(call);
    if (pg_see(call, found)) {
        RETURN_UNLESS_DONE(pg_lock(call, found, PG_UPDATE, &current));
        if (current) {
            pg_delete(call, found);
        }
    }
    return PG_DONE;
}

enum pg_progress pg_statement_forget(struct pg_call *call)
{
    size_t count = arg_count(call, 0);
    bool *held;

    RETURN_UNLESS_DONE(hold(call, &held));
    for (size_t i = 0; i < count; i++) {
        const struct row_due key = {.shard = item_int(call, 0, i), .saga = item_uuid(call, 2, i)};
        const struct row_due *seen;
        struct pg_row *row;
        const void *current = NULL;

        if (!held[i]) {
            continue;
        }
        pg_next_statement(call);
        RETURN_UNLESS_DONE(forget_saga(call, key.shard, key.saga));
        pg_next_statement(call);
        row = pg_find(call, PG_DUE, &key);
        seen = pg_see(call, row);
        if (seen && seen->is_forget) {
            RETURN_UNLESS_DONE(pg_lock(call, row, PG_UPDATE, &current));
        }
        if (current && ((const struct row_due *)current)->is_forget) {
            pg_delete(call, row);
        }
        put_int(call, (int64_t)i + 1);
        put_row_end(call);
    }
    return PG_DONE;
}

/* --- whose time has come? --- */

static int by_time(const void *a, const void *b)
{
    const struct row_due *const *x = a, *const *y = b;

    return (*x)->at_ms != (*y)->at_ms ? ((*x)->at_ms < (*y)->at_ms ? -1 : 1) : uuid_compare(&(*x)->saga, &(*y)->saga);
}

static void put_dues(struct pg_call *call, bool is_forget, int64_t limit)
{
    int64_t until_ms = arg_time_ms(call, 1);
    const struct row_due **found = NULL;
    size_t count = 0, capacity = 0;

    for (size_t i = 0; i < arg_count(call, 0); i++) {
        int64_t shard = item_int(call, 0, i);
        struct pg_row *row = pg_first(call, PG_DUE, &(struct row_due){.shard = shard});

        for (; row; row = pg_next(call, PG_DUE, row)) {
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
    }
    if (count > 0) {
        qsort(found, count, sizeof(struct row_due *), by_time);
    }
    for (size_t i = 0; i < count && (int64_t)i < limit; i++) {
        const struct row_saga *saga = pg_saga(call, found[i]->shard, found[i]->saga);

        put_int(call, found[i]->shard);
        put_uuid(call, &found[i]->saga);
        put_int(call, is_forget);
        put_bytes(call, saga ? saga->namespace : SLICE_NONE);
        put_row_end(call);
    }
}

enum pg_progress pg_statement_due(struct pg_call *call)
{
    put_dues(call, false, arg_int(call, 2));
    put_dues(call, true, arg_int(call, 3));
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
            if (due && due->at_ms > after_ms && (!found || due->at_ms < next_ms)) {
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
    put_row_end(call);
    return PG_DONE;
}
