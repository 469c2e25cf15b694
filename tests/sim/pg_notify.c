/* Notifications, as in migration 0030. */
#include "tests/sim/pg_statements.h"

static struct row_notify receiver_of(struct pg_call *call, int shard_arg, int name_arg)
{
    return (struct row_notify){.shard = arg_int(call, shard_arg),
                               .namespace = arg_bytes(call, name_arg),
                               .name = arg_bytes(call, name_arg + 1)};
}

static bool is_of(const struct row_notification *row, const struct row_notify *of)
{
    return row->shard == of->shard && slice_equal(row->namespace, of->namespace) && slice_equal(row->name, of->name);
}

/* Gives the notification of this receiver that is due first behind `last` (NULL: of all); NULL: none. */
static const struct row_notification *next_pending(struct pg_call *call, const struct row_notify *of, int64_t now_ms,
                                                   const struct row_notification *last)
{
    const struct row_notification first = {.shard = of->shard, .namespace = of->namespace, .name = of->name};
    const struct row_notification *best = NULL;

    for (struct pg_row *row = pg_first(call, PG_NOTIFICATION, &first); row; row = pg_next(call, PG_NOTIFICATION, row)) {
        const struct row_notification *seen = pg_see(call, row);

        if (!seen || !is_of(seen, of) || seen->is_dead || seen->look_ms > now_ms ||
            (last &&
             (seen->look_ms < last->look_ms || (seen->look_ms == last->look_ms && seen->number <= last->number)))) {
            continue;
        }
        if (!best || seen->look_ms < best->look_ms) { /* rows come in the order of their numbers */
            best = seen;
        }
    }
    return best;
}

static void put_notification(struct pg_call *call, const struct row_notification *row)
{
    put_bytes(call, row->name);
    put_int(call, row->number);
    put_bytes(call, row->event);
    put_bytes(call, row->body);
    put_bytes(call, row->is_dead ? SLICE("dead") : SLICE("pending"));
    put_int(call, row->attempts);
    put_time_ms(call, row->since_ms);
    put_time_ms(call, row->until_ms);
    put_time_ms(call, row->look_ms);
    put_bytes(call, row->error);
    put_row_end(call);
}

/* --- by the owner of the shard --- */

enum pg_progress pg_statement_notify_cursor(struct pg_call *call)
{
    const struct row_notify of = receiver_of(call, 0, 1);
    const struct row_notify *receiver = pg_see(call, pg_find(call, PG_NOTIFY, &of));
    const struct row_notification *next = next_pending(call, &of, INT64_MAX, NULL);

    if (receiver) {
        put_int(call, receiver->tx);
    } else {
        put_null(call);
    }
    if (next) {
        put_time_ms(call, next->look_ms);
    } else {
        put_null(call);
    }
    return end_with_row(call);
}

enum pg_progress pg_statement_notify_due(struct pg_call *call)
{
    const struct row_notify of = receiver_of(call, 0, 1);
    const struct row_notification *at = NULL;

    for (int64_t left = arg_int(call, 4); left > 0; left--) {
        at = next_pending(call, &of, arg_time_ms(call, 3), at);
        if (!at) {
            break;
        }
        put_notification(call, at);
    }
    return PG_DONE;
}

/* Takes the lease of the shard; `*held` is false when another engine has it. */
static enum pg_progress hold_shard(struct pg_call *call, bool *held)
{
    struct pg_row *shard = pg_find(call, PG_SHARD, &(struct row_shard){.shard = arg_int(call, 0)});
    const struct row_shard *seen = pg_see(call, shard);
    const void *current = NULL;

    if (seen && seen->epoch == arg_int(call, 1)) { /* at another epoch the statement waits for nobody */
        RETURN_UNLESS_DONE(pg_lock(call, shard, PG_KEY_SHARE, &current));
    }
    *held = current && ((const struct row_shard *)current)->epoch == arg_int(call, 1);
    return PG_DONE;
}

static void put_answer(struct pg_call *call, int64_t answer)
{
    put_int(call, answer);
    put_row_end(call);
}

static enum pg_progress put_first_cursor(struct pg_call *call, struct row_notify receiver)
{
    bool inserted;

    receiver.tx = arg_int(call, 5);
    return pg_insert_new(call, PG_NOTIFY, &receiver, &inserted);
}

/* No event of the scripts comes twice, and none is 30 days old. */
static enum pg_progress put_events(struct pg_call *call, const struct row_notify *receiver, int64_t begun)
{
    for (size_t i = 0; i < arg_count(call, 6); i++) {
        struct row_notification row = {.shard = receiver->shard,
                                       .namespace = receiver->namespace,
                                       .name = receiver->name,
                                       .number = begun + (int64_t)i + 1,
                                       .event = pg_keep(call, item_bytes(call, 6, i)),
                                       .body = pg_keep(call, item_bytes(call, 7, i)),
                                       .since_ms = arg_time_ms(call, 8),
                                       .until_ms = arg_time_ms(call, 9),
                                       .look_ms = arg_time_ms(call, 8)};

        RETURN_UNLESS_DONE(pg_insert(call, PG_NOTIFICATION, &row, NULL));
    }
    return PG_DONE;
}

enum pg_progress pg_statement_notify_put(struct pg_call *call)
{
    struct row_notify receiver = receiver_of(call, 0, 2);
    struct pg_touched touched = {0};
    const struct row_notify *seen;
    const void *current = NULL;
    struct pg_row *row;
    bool held;

    RETURN_UNLESS_DONE(hold_shard(call, &held));
    if (!held) {
        put_answer(call, 0);
        return PG_DONE;
    }
    receiver.namespace = pg_keep(call, receiver.namespace);
    receiver.name = pg_keep(call, receiver.name);
    pg_next_statement(call);
    if (arg_is_null(call, 4)) {
        RETURN_UNLESS_DONE(put_first_cursor(call, receiver));
        put_answer(call, 1);
        return PG_DONE;
    }
    row = pg_find(call, PG_NOTIFY, &receiver);
    seen = pg_see(call, row);
    if (seen && seen->tx == arg_int(call, 4)) {
        RETURN_UNLESS_DONE(pg_take(call, &touched, row, PG_NO_KEY_UPDATE, &current));
    }
    if (!current || ((const struct row_notify *)current)->tx != arg_int(call, 4)) {
        put_answer(call, 2);
        return PG_DONE;
    }
    receiver = *(const struct row_notify *)current;
    int64_t begun = receiver.last;

    receiver.tx = arg_int(call, 5);
    receiver.last += (int64_t)arg_count(call, 6);
    pg_update(call, row, &receiver);
    pg_next_statement(call);
    RETURN_UNLESS_DONE(put_events(call, &receiver, begun));
    put_answer(call, 1);
    return PG_DONE;
}

static enum pg_progress settle(struct pg_call *call, size_t i, bool deletes)
{
    const struct row_notify of = receiver_of(call, 0, 2);
    const struct row_notification key = {
        .shard = of.shard, .namespace = of.namespace, .name = of.name, .number = item_int(call, 4, i)};
    bool is_done = slice_is(item_bytes(call, 5, i), "done");
    struct pg_row *row = pg_find(call, PG_NOTIFICATION, &key);
    const void *current = NULL;

    if (is_done != deletes || !pg_see(call, row)) {
        return PG_DONE;
    }
    RETURN_UNLESS_DONE(pg_lock(call, row, deletes ? PG_UPDATE : PG_NO_KEY_UPDATE, &current));
    if (current && deletes) {
        pg_delete(call, row);
    } else if (current) {
        struct row_notification changed = *(const struct row_notification *)current;

        changed.is_dead = slice_is(item_bytes(call, 5, i), "dead");
        changed.look_ms = item_time_ms(call, 6, i);
        changed.attempts += item_int(call, 7, i);
        if (!item_is_null(call, 8, i)) {
            changed.error = pg_keep(call, item_bytes(call, 8, i));
        }
        pg_update(call, row, &changed);
    }
    return PG_DONE;
}

enum pg_progress pg_statement_notify_settle(struct pg_call *call)
{
    bool held;

    RETURN_UNLESS_DONE(hold_shard(call, &held));
    for (int round = 0; held && round < 2; round++) { /* first those that are done */
        pg_next_statement(call);
        for (size_t i = 0; i < arg_count(call, 4); i++) {
            RETURN_UNLESS_DONE(settle(call, i, round == 0));
        }
    }
    put_answer(call, held);
    return PG_DONE;
}

/* --- by people --- */

static bool comes_before(const struct row_notification *a, const struct row_notification *b)
{
    int order = slice_compare(a->name, b->name);

    return order != 0 ? order < 0 : a->number < b->number;
}

/* Gives the notification of the namespace that comes next behind `after`, by receiver and number; NULL: none. */
static const struct row_notification *next_of(struct pg_call *call, struct slice namespace,
                                              const struct row_notification *after, struct pg_row **found)
{
    const struct row_notification *best = NULL;
    struct pg_row *row = pg_first(call, PG_NOTIFICATION, &(struct row_notification){.shard = INT16_MIN});

    for (; row; row = pg_next(call, PG_NOTIFICATION, row)) {
        const struct row_notification *seen = pg_see(call, row);

        if (seen && slice_equal(seen->namespace, namespace) && comes_before(after, seen) &&
            (!best || comes_before(seen, best))) {
            best = seen;
            *found = row;
        }
    }
    return best;
}

enum pg_progress pg_statement_notification_list(struct pg_call *call)
{
    struct slice name = arg_bytes(call, 1), state = arg_bytes(call, 2);
    struct row_notification after = {.name = arg_bytes(call, 3), .number = arg_int(call, 4)};
    const struct row_notification *at = &after;
    int64_t left = arg_int(call, 5);
    struct pg_row *row;

    while (left > 0 && (at = next_of(call, arg_bytes(call, 0), at, &row)) != NULL) {
        if ((!name.ptr || slice_equal(name, at->name)) && (!state.ptr || slice_is(state, "dead") == at->is_dead)) {
            put_notification(call, at);
            left--;
        }
    }
    return PG_DONE;
}

static bool is_meant(struct pg_call *call, const struct row_notification *row)
{
    size_t count = arg_count(call, 2);
    struct slice name = arg_bytes(call, 1);
    bool is_named = count == 0;

    for (size_t i = 0; i < count; i++) {
        is_named = is_named || slice_equal(item_bytes(call, 2, i), row->event);
    }
    return row->is_dead && is_named && (!name.ptr || slice_equal(name, row->name));
}

enum pg_progress pg_statement_notification_replay(struct pg_call *call)
{
    struct row_notification none = {.name = SLICE(""), .number = INT64_MIN};
    const struct row_notification *at = &none;
    int64_t moment_ms = pg_clock_ms(call->pg), count = 0;
    struct pg_row *row;

    pg_next_statement(call);
    while ((at = next_of(call, arg_bytes(call, 0), at, &row)) != NULL) {
        const void *current = NULL;

        if (!is_meant(call, at)) {
            continue;
        }
        RETURN_UNLESS_DONE(pg_lock(call, row, PG_NO_KEY_UPDATE, &current));
        if (current && is_meant(call, current)) {
            struct row_notification changed = *(const struct row_notification *)current;

            changed.is_dead = false;
            changed.until_ms = moment_ms + changed.until_ms - changed.since_ms;
            changed.since_ms = changed.look_ms = moment_ms;
            pg_update(call, row, &changed);
            count++;
        }
    }
    put_answer(call, count);
    return PG_DONE;
}
