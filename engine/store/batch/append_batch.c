/*
 * One batch is a pipeline of array statements. A statement without rows is left out. The order is:
 *
 *   fence     locks the lease rows at the epochs of the appends, or refuses the whole batch
 *   start     saga rows; those with a business id may find it taken, and then nothing of their turn may be written:
 *             what belongs to them is joined with the saga row that then is not there
 *   log, key, status, due, awake, escalation, approval, inbox, act
 *   locks     last: locks of one key wait for each other, and whoever has them needs nothing more
 *
 * All statements are in one implicit transaction, which the Sync ends.
 */
#include "store/business.h"
#include "store/store_state.h"

typedef bool (*item_filter)(const struct append *append);

static bool is_start(const struct append *append)
{
    return append->start && !append->start->business_id.ptr;
}

static bool is_unique_start(const struct append *append)
{
    return append->start && append->start->business_id.ptr;
}

static bool is_no_unique_start(const struct append *append)
{
    return !is_unique_start(append);
}

static bool is_status_change(const struct append *append)
{
    return !append->start && append->status_changed;
}

/* A parked saga may be older than the sagas that recovery reads. */
static bool is_woken(const struct append *append)
{
    return append->awake == AWAKE_ADD || (append->unparks && !append->ended);
}

static bool is_unparked(const struct append *append)
{
    return append->unparks;
}

static bool is_first_due(const struct append *append)
{
    return append->forget_ms > 0 && append->never_due;
}

static bool is_forgotten(const struct append *append)
{
    return append->forget_ms > 0 && !is_first_due(append);
}

static bool is_releasing(const struct append *append)
{
    return append->releases_locks;
}

static bool is_at_rest(const struct append *append)
{
    return append->awake == AWAKE_REMOVE;
}

static bool is_from_inbox(const struct append *append)
{
    return append->from_inbox;
}

static size_t batch_count(const struct batch *batch, item_filter filter)
{
    size_t count = 0;

    for (size_t i = 0; i < batch->count; i++) {
        count += filter(batch->items[i]);
    }
    return count;
}

struct slice digest_slice(const struct digest *digest, size_t bytes)
{
    return (struct slice){(const char *)digest->bytes, bytes};
}

/* Adds one array parameter over the appends that pass `filter`. */
#define COLUMN(args, type, batch, n, filter, put)                                                                      \
    do {                                                                                                               \
        db_array_begin((args), (type), (n));                                                                           \
        for (size_t column_i = 0; column_i < (batch)->count; column_i++) {                                             \
            const struct append *a = (batch)->items[column_i];                                                         \
            if (filter(a)) {                                                                                           \
                put;                                                                                                   \
            }                                                                                                          \
        }                                                                                                              \
        db_array_end(args);                                                                                            \
    } while (0)

void batch_clear_queries(struct batch *batch)
{
    arena_reset(&batch->arena);
    batch->query_count = 0;
}

struct db_args *batch_query(struct batch *batch, const struct db_statement *statement,
                            void (*on_rows)(struct db_query *, const struct db_rows *))
{
    struct db_query *query = &batch->queries[batch->query_count++];

    CHECK(batch->query_count <= BATCH_QUERIES_MAX);
    *query = (struct db_query){
        .statement = statement, .args = db_args_new(&batch->arena), .on_rows = on_rows, .context = batch};
    return query->args;
}

/* Names each pair of shard and epoch once. Two epochs of one shard are both named: one of them is wrong, and the fence
 * says so. */
static void add_fence(struct batch *batch)
{
    uint64_t seen = 0;
    int64_t epochs[SHARD_COUNT];
    bool *named = arena_alloc(&batch->arena, batch->count);
    size_t count = 0;
    struct db_args *args = batch_query(batch, &sql_fence, NULL);

    for (size_t i = 0; i < batch->count; i++) {
        const struct append *a = batch->items[i];
        uint64_t bit = UINT64_C(1) << a->shard;

        if (!(seen & bit) || epochs[a->shard] != a->epoch) {
            seen |= bit;
            epochs[a->shard] = a->epoch;
            named[i] = true;
            count++;
        }
    }
    db_array_begin(args, DB_INT2, count);
    for (size_t i = 0; i < batch->count; i++) {
        if (named[i]) {
            db_item_int(args, batch->items[i]->shard);
        }
    }
    db_array_end(args);
    db_array_begin(args, DB_INT8, count);
    for (size_t i = 0; i < batch->count; i++) {
        if (named[i]) {
            db_item_int(args, batch->items[i]->epoch);
        }
    }
    db_array_end(args);
}

static void saga_columns(struct batch *batch, struct db_args *args, size_t n, item_filter filter)
{
    COLUMN(args, DB_INT2, batch, n, filter, db_item_int(args, a->shard));
    COLUMN(args, DB_UUID, batch, n, filter, db_item_uuid(args, &a->saga.uuid));
    COLUMN(args, DB_TEXT, batch, n, filter, db_item_bytes(args, a->start->namespace));
    COLUMN(args, DB_TEXT, batch, n, filter, db_item_bytes(args, a->start->saga_name));
    COLUMN(args, DB_INT4, batch, n, filter, db_item_int(args, a->start->version));
    COLUMN(args, DB_TEXT, batch, n, filter, db_item_bytes(args, slice_of(saga_status_name(a->status))));
    COLUMN(args, DB_TEXT, batch, n, filter, db_item_bytes(args, a->start->tags));
    COLUMN(args, DB_BYTEA, batch, n, filter, db_item_bytes(args, a->stored_input));
    COLUMN(args, DB_TIMESTAMPTZ, batch, n, filter, db_item_timestamptz(args, a->started_ms));
    COLUMN(args, DB_TIMESTAMPTZ, batch, n, filter, db_item_timestamptz(args, a->at_ms));
    COLUMN(args, DB_TIMESTAMPTZ, batch, n, filter, a->ended ? db_item_timestamptz(args, a->at_ms) : db_item_null(args));
    COLUMN(args, DB_TEXT, batch, n, filter, db_item_bytes(args, a->start->started_by));
}

void batch_put_key(struct db_args *args, const struct append_start *start)
{
    if (start->has_key) {
        db_item_bytes(args, digest_slice(&start->key_digest, BUSINESS_DIGEST_BYTES));
    } else {
        db_item_null(args);
    }
}

/* Without its own id, the saga is the one that has the key for its business id. */
bool start_has_own_id(const struct append_start *start)
{
    return !start->has_key || !digest_equal(&start->key_digest, &start->business_digest);
}

void batch_put_key_shard(struct db_args *args, const struct append_start *start)
{
    if (start->has_key && start_has_own_id(start)) {
        db_item_int(args, digest_shard(&start->key_digest));
    } else {
        db_item_null(args);
    }
}

/* The new ids come back in the order in which they were sent, so the search begins behind the last one found. */
static void on_unique_starts(struct db_query *query, const struct db_rows *rows)
{
    struct batch *batch = query->context;

    for (size_t row = 0; row < db_row_count(rows); row++) {
        struct uuid id = db_uuid(rows, row, 0);
        size_t tried = 0;

        while (tried < batch->count && !(batch->refused[batch->unique_cursor] &&
                                         uuid_equal(&batch->items[batch->unique_cursor]->saga.uuid, &id))) {
            batch->unique_cursor = (batch->unique_cursor + 1) % batch->count;
            tried++;
        }
        if (tried < batch->count) {
            batch->refused[batch->unique_cursor] = false;
        }
    }
}

static void add_starts(struct batch *batch)
{
    size_t plain = batch_count(batch, is_start), unique = batch_count(batch, is_unique_start);
    struct db_args *args;

    if (plain > 0) {
        saga_columns(batch, batch_query(batch, &sql_start, NULL), plain, is_start);
    }
    for (size_t i = 0; i < batch->count; i++) {
        batch->refused[i] = is_unique_start(batch->items[i]); /* refused until its id comes back */
    }
    if (unique > 0) {
        batch->unique_cursor = 0;
        args = batch_query(batch, &sql_start_unique, on_unique_starts);
        saga_columns(batch, args, unique, is_unique_start);
        COLUMN(args, DB_TEXT, batch, unique, is_unique_start, db_item_bytes(args, a->start->business_id));
        COLUMN(args, DB_BYTEA, batch, unique, is_unique_start,
               db_item_bytes(args, digest_slice(&a->start->business_digest, BUSINESS_DIGEST_BYTES)));
        COLUMN(args, DB_BYTEA, batch, unique, is_unique_start, batch_put_key(args, a->start));
        COLUMN(args, DB_INT2, batch, unique, is_unique_start, batch_put_key_shard(args, a->start));
    }
}

/* A start may have an id made long ago (from an inbox, or by a clock that is behind). Recovery has to begin early
 * enough to find it. */
static void add_low(struct batch *batch)
{
    int64_t low_ms[SHARD_COUNT];
    uint64_t shards = 0;
    struct db_args *args;

    for (size_t i = 0; i < batch->count; i++) {
        const struct append *a = batch->items[i];
        int64_t id_ms = a->start ? uuid_v7_ms(&a->saga.uuid) : INT64_MAX;
        uint64_t bit = UINT64_C(1) << a->shard;

        if (id_ms <= batch->store->low_ms[a->shard] && (!(shards & bit) || id_ms < low_ms[a->shard])) {
            shards |= bit;
            low_ms[a->shard] = id_ms;
        }
    }
    if (!shards) {
        return;
    }
    args = batch_query(batch, &sql_lower_low, NULL);
    arg_shards(args, shards);
    db_array_begin(args, DB_TIMESTAMPTZ, (size_t)__builtin_popcountll(shards));
    for (uint32_t shard = 0; shard < SHARD_COUNT; shard++) {
        if (shards >> shard & 1) {
            db_item_timestamptz(args, low_ms[shard]);
        }
    }
    db_array_end(args);
}

static void put_rest(struct db_args *args, struct slice rest)
{
    if (rest.ptr) {
        db_item_bytes(args, rest);
    } else {
        db_item_null(args);
    }
}

static void add_log(struct batch *batch, const struct db_statement *statement, item_filter filter)
{
    size_t n = batch_count(batch, filter);
    struct db_args *args;

    if (n == 0) {
        return;
    }
    args = batch_query(batch, statement, NULL);
    COLUMN(args, DB_INT2, batch, n, filter, db_item_int(args, a->shard));
    COLUMN(args, DB_UUID, batch, n, filter, db_item_uuid(args, &a->saga.uuid));
    COLUMN(args, DB_INT4, batch, n, filter, db_item_int(args, (int64_t)a->first_seq));
    COLUMN(args, DB_INT2, batch, n, filter, db_item_int(args, a->record_count));
    COLUMN(args, DB_TIMESTAMPTZ, batch, n, filter, db_item_timestamptz(args, a->at_ms));
    COLUMN(args, DB_INT8, batch, n, filter, db_item_int(args, a->epoch));
    COLUMN(args, DB_BYTEA, batch, n, filter, db_item_bytes(args, a->stored_payload));
    COLUMN(args, DB_BOOL, batch, n, filter, db_item_bool(args, a->is_event));
    COLUMN(args, DB_BYTEA, batch, n, filter, put_rest(args, a->stored_rest));
}

#define KEY_COLUMN(args, type, batch, n, put)                                                                          \
    COLUMN(                                                                                                            \
        args, type, batch, n, has_keys, for (uint32_t key_i = 0; key_i < a->new_key_count; key_i++) { put; })

static bool has_keys(const struct append *append)
{
    return append->new_key_count > 0;
}

static void put_refusable(struct db_args *args, const struct append *append)
{
    if (is_unique_start(append)) {
        db_item_int(args, append->shard);
    } else {
        db_item_null(args);
    }
}

static struct db_args *add_keys_to(struct batch *batch, const struct db_statement *statement, size_t n)
{
    struct db_args *args = batch_query(batch, statement, NULL);

    KEY_COLUMN(args, DB_INT2, batch, n, db_item_int(args, store_key_shard(&a->new_keys[key_i])));
    KEY_COLUMN(args, DB_UUID, batch, n, db_item_uuid(args, &a->new_keys[key_i].uuid));
    KEY_COLUMN(args, DB_UUID, batch, n, db_item_uuid(args, &a->saga.uuid));
    KEY_COLUMN(args, DB_INT2, batch, n, put_refusable(args, a));
    return args;
}

static void add_keys(struct batch *batch)
{
    int64_t now_ms = loop_wall_ms(batch->store->loop);
    struct uuid id;
    size_t n = 0;
    struct db_args *args;

    for (size_t i = 0; i < batch->count; i++) {
        n += batch->items[i]->new_key_count;
    }
    if (n == 0) {
        return;
    }
    keys_fed(batch->store);
    args = add_keys_to(batch, &sql_key_bundle, n);
    id = uuid_v7(now_ms);
    db_arg_uuid(args, &id);
    db_arg_timestamptz(args, now_ms);
    db_arg_timestamptz(args, now_ms + batch->store->options.key_look_ms);
    if (batch->store->leases && leases_beside_older(batch->store->leases)) {
        (void)add_keys_to(batch, &sql_key_for_older, n);
    }
}

static void add_status(struct batch *batch)
{
    size_t n = batch_count(batch, is_status_change);
    struct db_args *args;

    if (n == 0) {
        return;
    }
    args = batch_query(batch, &sql_status, NULL);
    COLUMN(args, DB_INT2, batch, n, is_status_change, db_item_int(args, a->shard));
    COLUMN(args, DB_UUID, batch, n, is_status_change, db_item_uuid(args, &a->saga.uuid));
    COLUMN(args, DB_TEXT, batch, n, is_status_change, db_item_bytes(args, slice_of(saga_status_name(a->status))));
    COLUMN(args, DB_TIMESTAMPTZ, batch, n, is_status_change, db_item_timestamptz(args, a->at_ms));
    COLUMN(args, DB_TIMESTAMPTZ, batch, n, is_status_change,
           a->ended ? db_item_timestamptz(args, a->at_ms) : db_item_null(args));
}

static void put_case(struct batch *batch, struct db_args *args, const struct append *append, const char *table,
                     uint64_t number, struct slice body)
{
    db_item_bytes(args,
                  question_seal(batch->store, place_of_case(table, &append->saga.uuid, number), body, &batch->arena));
}

static bool has_escalations(const struct append *append)
{
    return append->escalation_count > 0;
}

#define ESCALATION_COLUMN(args, type, batch, n, is_wanted, put)                                                        \
    COLUMN(                                                                                                            \
        args, type, batch, n, has_escalations, for (uint32_t e_i = 0; e_i < a->escalation_count; e_i++) {              \
            const struct append_escalation *e = &a->escalations[e_i];                                                  \
            if (e->is_new == (is_wanted)) {                                                                            \
                put;                                                                                                   \
            }                                                                                                          \
        })

static void add_escalations(struct batch *batch)
{
    size_t opened = 0, changed = 0;
    struct db_args *args;

    for (size_t i = 0; i < batch->count; i++) {
        for (uint32_t e = 0; e < batch->items[i]->escalation_count; e++) {
            opened += batch->items[i]->escalations[e].is_new;
            changed += !batch->items[i]->escalations[e].is_new;
        }
    }
    if (opened > 0) {
        args = batch_query(batch, &sql_escalation_open, NULL);
        ESCALATION_COLUMN(args, DB_INT2, batch, opened, true, db_item_int(args, a->shard));
        ESCALATION_COLUMN(args, DB_INT8, batch, opened, true, db_item_int(args, (int64_t)e->number));
        ESCALATION_COLUMN(args, DB_UUID, batch, opened, true, db_item_uuid(args, &a->saga.uuid));
        ESCALATION_COLUMN(args, DB_TEXT, batch, opened, true, db_item_bytes(args, a->namespace));
        ESCALATION_COLUMN(args, DB_TIMESTAMPTZ, batch, opened, true, db_item_timestamptz(args, a->at_ms));
        ESCALATION_COLUMN(args, DB_TEXT, batch, opened, true, db_item_bytes(args, e->step));
        ESCALATION_COLUMN(args, DB_TEXT, batch, opened, true, db_item_bytes(args, e->reason));
        ESCALATION_COLUMN(args, DB_BYTEA, batch, opened, true,
                          put_case(batch, args, a, "escalation", e->number, e->body));
    }
    if (changed > 0) { /* a changed case that is open was reopened in this turn */
        args = batch_query(batch, &sql_escalation_change, NULL);
        ESCALATION_COLUMN(args, DB_INT2, batch, changed, false, db_item_int(args, a->shard));
        ESCALATION_COLUMN(args, DB_INT8, batch, changed, false, db_item_int(args, (int64_t)e->number));
        ESCALATION_COLUMN(args, DB_TIMESTAMPTZ, batch, changed, false,
                          e->is_open ? db_item_null(args) : db_item_timestamptz(args, a->at_ms));
        ESCALATION_COLUMN(args, DB_TIMESTAMPTZ, batch, changed, false,
                          e->is_open ? db_item_timestamptz(args, a->at_ms) : db_item_null(args));
        ESCALATION_COLUMN(args, DB_TEXT, batch, changed, false, db_item_bytes(args, e->reason));
        ESCALATION_COLUMN(args, DB_BYTEA, batch, changed, false,
                          put_case(batch, args, a, "escalation", e->number, e->body));
    }
}

static void add_ids(struct batch *batch, const struct db_statement *statement, item_filter filter)
{
    size_t n = batch_count(batch, filter);
    struct db_args *args;

    if (n == 0) {
        return;
    }
    args = batch_query(batch, statement, NULL);
    COLUMN(args, DB_INT2, batch, n, filter, db_item_int(args, a->shard));
    COLUMN(args, DB_UUID, batch, n, filter, db_item_uuid(args, &a->saga.uuid));
}

static bool has_approvals(const struct append *append)
{
    return append->approval_count > 0;
}

#define APPROVAL_COLUMN(args, type, batch, n, is_opened, put)                                                          \
    COLUMN(                                                                                                            \
        args, type, batch, n, has_approvals, for (uint32_t p_i = 0; p_i < a->approval_count; p_i++) {                  \
            const struct append_approval *p = &a->approvals[p_i];                                                      \
            if (p->opened == (is_opened)) {                                                                            \
                put;                                                                                                   \
            }                                                                                                          \
        })

static void add_approvals(struct batch *batch)
{
    size_t opened = 0, ended = 0;
    struct db_args *args;

    for (size_t i = 0; i < batch->count; i++) {
        for (uint32_t p = 0; p < batch->items[i]->approval_count; p++) {
            opened += batch->items[i]->approvals[p].opened;
            ended += !batch->items[i]->approvals[p].opened;
        }
    }
    if (opened > 0) {
        args = batch_query(batch, &sql_approval_open, NULL);
        APPROVAL_COLUMN(args, DB_INT2, batch, opened, true, db_item_int(args, a->shard));
        APPROVAL_COLUMN(args, DB_INT8, batch, opened, true, db_item_int(args, (int64_t)p->number));
        APPROVAL_COLUMN(args, DB_UUID, batch, opened, true, db_item_uuid(args, &a->saga.uuid));
        APPROVAL_COLUMN(args, DB_TEXT, batch, opened, true, db_item_bytes(args, a->namespace));
        APPROVAL_COLUMN(args, DB_TIMESTAMPTZ, batch, opened, true, db_item_timestamptz(args, a->at_ms));
        APPROVAL_COLUMN(args, DB_TIMESTAMPTZ, batch, opened, true,
                        p->expires_ms > 0 ? db_item_timestamptz(args, p->expires_ms) : db_item_null(args));
        APPROVAL_COLUMN(args, DB_TEXT, batch, opened, true, db_item_bytes(args, p->step));
        APPROVAL_COLUMN(args, DB_TEXT, batch, opened, true, db_item_bytes(args, p->status));
        APPROVAL_COLUMN(args, DB_BYTEA, batch, opened, true, put_case(batch, args, a, "approval", p->number, p->body));
    }
    if (ended > 0) {
        args = batch_query(batch, &sql_approval_end, NULL);
        APPROVAL_COLUMN(args, DB_INT2, batch, ended, false, db_item_int(args, a->shard));
        APPROVAL_COLUMN(args, DB_INT8, batch, ended, false, db_item_int(args, (int64_t)p->number));
        APPROVAL_COLUMN(args, DB_TIMESTAMPTZ, batch, ended, false, db_item_timestamptz(args, a->at_ms));
        APPROVAL_COLUMN(args, DB_TEXT, batch, ended, false, db_item_bytes(args, p->status));
        APPROVAL_COLUMN(args, DB_BYTEA, batch, ended, false, put_case(batch, args, a, "approval", p->number, p->body));
        APPROVAL_COLUMN(args, DB_UUID, batch, ended, false, (void)p; db_item_uuid(args, &a->saga.uuid));
        APPROVAL_COLUMN(args, DB_TIMESTAMPTZ, batch, ended, false,
                        p->expires_ms > 0 ? db_item_timestamptz(args, p->expires_ms) : db_item_null(args));
    }
}

static bool has_followers(const struct append *append)
{
    return append->follower_count > 0;
}

#define FOLLOWER_COLUMN(args, type, batch, n, put)                                                                     \
    COLUMN(                                                                                                            \
        args, type, batch, n, has_followers, for (uint32_t f_i = 0; f_i < a->follower_count; f_i++) {                  \
            const struct append_follower *f = &a->followers[f_i];                                                      \
            put;                                                                                                       \
        })

static void put_follower(struct batch *batch, struct db_args *args, const struct append_follower *f)
{
    db_item_bytes(args, column_seal(batch->store, place_of_input(&f->input, &f->saga.uuid, SLICE("start")), f->payload,
                                    &batch->arena));
}

static void add_followers(struct batch *batch)
{
    size_t n = 0;
    struct db_args *args;

    for (size_t i = 0; i < batch->count; i++) {
        n += batch->items[i]->follower_count;
    }
    if (n == 0) {
        return;
    }
    args = batch_query(batch, &sql_follow, NULL);
    FOLLOWER_COLUMN(args, DB_INT2, batch, n, (void)f; db_item_int(args, a->shard));
    FOLLOWER_COLUMN(args, DB_UUID, batch, n, (void)f; db_item_uuid(args, &a->saga.uuid));
    FOLLOWER_COLUMN(args, DB_INT2, batch, n, db_item_int(args, f->shard));
    FOLLOWER_COLUMN(args, DB_UUID, batch, n, db_item_uuid(args, &f->input));
    FOLLOWER_COLUMN(args, DB_UUID, batch, n, db_item_uuid(args, &f->saga.uuid));
    FOLLOWER_COLUMN(args, DB_BYTEA, batch, n, put_follower(batch, args, f));
}

static void add_forgetting(struct batch *batch, const struct db_statement *statement,
                           bool (*of)(const struct append *append))
{
    size_t n = batch_count(batch, of);
    struct db_args *args;

    if (n == 0) {
        return;
    }
    args = batch_query(batch, statement, NULL);
    COLUMN(args, DB_INT2, batch, n, of, db_item_int(args, a->shard));
    COLUMN(args, DB_UUID, batch, n, of, db_item_uuid(args, &a->saga.uuid));
    COLUMN(args, DB_TIMESTAMPTZ, batch, n, of, db_item_timestamptz(args, a->forget_ms));
}

static void add_inbox(struct batch *batch)
{
    size_t n = batch_count(batch, is_from_inbox);
    struct db_args *args;

    if (n == 0) {
        return;
    }
    args = batch_query(batch, &sql_inbox_consume, NULL);
    COLUMN(args, DB_INT2, batch, n, is_from_inbox, db_item_int(args, a->shard));
    COLUMN(args, DB_UUID, batch, n, is_from_inbox, db_item_uuid(args, &a->inbox_id));
    COLUMN(args, DB_UUID, batch, n, is_from_inbox, db_item_uuid(args, &a->saga.uuid));
}

static bool is_act(const struct append *append)
{
    return append->act.ptr != NULL;
}

static void add_acts(struct batch *batch)
{
    size_t n = batch_count(batch, is_act);
    struct db_args *args;

    if (n > 0) {
        args = batch_query(batch, &sql_act_put, NULL);
        COLUMN(args, DB_TEXT, batch, n, is_act, db_item_bytes(args, a->act));
    }
}

void batch_build(struct batch *batch)
{
    batch_clear_queries(batch);
    add_fence(batch);
    add_starts(batch);
    add_low(batch);
    add_log(batch, &sql_log, is_no_unique_start);
    add_log(batch, &sql_log_unique, is_unique_start);
    add_keys(batch);
    add_status(batch);
    add_ids(batch, &sql_unpark, is_unparked);
    add_forgetting(batch, &sql_forget_first, is_first_due);
    add_forgetting(batch, &sql_forget_later, is_forgotten);
    add_ids(batch, &sql_awake_add, is_woken);
    add_ids(batch, &sql_awake_remove, is_at_rest);
    add_escalations(batch);
    add_approvals(batch);
    add_followers(batch);
    add_inbox(batch);
    add_acts(batch);
    add_ids(batch, &sql_lock_release, is_releasing);
}
