/*
 * The database of a trial: a log, an inbox, definitions, in memory. It knows no conditions but those which the engine
 * must meet in it: a business id that is taken, a row that is gone.
 */
#include "run/saga/live.h"
#include "tests/lib/run_trial_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/digest.h"

#define TURNS_MAX 4096
#define ROWS_MAX 8192
#define KEYS_MAX 1024

struct turn_row {
    struct saga_id saga;
    struct slice namespace;
    struct stored_turn turn;
    bool has_business_digest, has_key;
    struct digest business_digest, key_digest, input_digest;
};

struct key_row {
    struct op_key key;
    struct saga_id saga;
    struct slice namespace;
};

static struct {
    struct store_options options;
    struct lease_options leases;
    uint64_t shards; /* that come when the engine asks for leases */
    struct turn_row turns[TURNS_MAX];
    struct key_row keys[KEYS_MAX];
    size_t key_count;
    struct inbox_row rows[ROWS_MAX];
    size_t row_count;
    struct inbox_row last_put;
    bool next_put_vanishes;
    struct definition_row definitions[ROWS_MAX];
    size_t definition_count;
    void (*on_rows)(const struct inbox_row *rows, size_t count, void *context);
    void *rows_context;
    void (*definitions_changed)(void *context);
    void *definitions_context;
    struct list waits;
    void (*on_closed)(void *context);
    void *closed_context;
    struct deferred gain, release;
    void (*released)(void *context);
    void *released_context;
} db;

static char the_store, the_leases;

/* --- rows --- */

static void row_remove(const struct uuid *id)
{
    for (size_t i = 0; i < db.row_count; i++) {
        if (uuid_equal(&db.rows[i].id, id)) {
            db.rows[i] = db.rows[--db.row_count];
            return;
        }
    }
}

static const struct inbox_row *row_add(const struct inbox_row *row)
{
    struct inbox_row *kept = &db.rows[db.row_count++];

    assert_true(db.row_count <= ROWS_MAX);
    *kept = *row;
    kept->kind = trial_keep(row->kind);
    kept->payload = trial_keep(row->payload);
    return kept;
}

static struct turn_row *turn_add(struct saga_id saga, struct slice namespace, uint64_t first_seq, int64_t at_ms,
                                 struct slice payload)
{
    struct turn_row *row = &db.turns[trial.turn_count++];

    assert_true(trial.turn_count <= TURNS_MAX);
    *row = (struct turn_row){.saga = saga,
                             .namespace = trial_keep(namespace),
                             .turn = {.first_seq = first_seq, .at_ms = at_ms, .payload = trial_keep(payload)}};
    return row;
}

static const struct turn_row *turn_of(const struct digest *business)
{
    for (size_t i = 0; i < trial.turn_count; i++) {
        if (db.turns[i].has_business_digest && digest_equal(&db.turns[i].business_digest, business)) {
            return &db.turns[i];
        }
    }
    return NULL;
}

/* The saga that has one of the names of this start. */
static const struct turn_row *turn_of_start(const struct append_start *start)
{
    for (size_t i = 0; i < trial.turn_count; i++) {
        const struct turn_row *row = &db.turns[i];

        if (start->has_key && ((row->has_key && digest_equal(&row->key_digest, &start->key_digest)) ||
                               (row->has_business_digest && digest_equal(&row->business_digest, &start->key_digest)))) {
            return row;
        }
    }
    return turn_of(&start->business_digest);
}

/* --- answers --- */

static enum err_code append_turn(struct append *append)
{
    if (append->start && append->start->business_id.ptr) {
        const struct turn_row *other = turn_of_start(append->start);

        if (other) {
            append->existing = other->saga;
            append->existing_input = other->input_digest;
            append->existing_other_id = append->start->has_key &&
                                        !digest_equal(&append->start->key_digest, &append->start->business_digest) &&
                                        !digest_equal(&other->business_digest, &append->start->business_digest);
            return ERR_CONFLICT;
        }
    }
    struct turn_row *row = turn_add(append->saga, append->namespace, append->first_seq, append->at_ms, append->payload);

    if (append->start) {
        row->has_business_digest = append->start->business_id.ptr != NULL;
        row->business_digest = append->start->business_digest;
        row->has_key = append->start->has_key;
        row->key_digest = append->start->key_digest;
        row->input_digest = append->start->input_digest;
    }
    for (uint32_t i = 0; i < append->new_key_count; i++) {
        assert_true(db.key_count < KEYS_MAX);
        db.keys[db.key_count++] = (struct key_row){append->new_keys[i], append->saga, row->namespace};
    }
    if (append->from_inbox) {
        row_remove(&append->inbox_id);
    }
    return ERR_OK;
}

static enum err_code read_saga(struct read_saga *read)
{
    struct arena *arena = read->read.arena;

    read->turns = arena_array(arena, trial.turn_count + 1, sizeof(*read->turns));
    read->turn_count = 0;
    for (size_t i = 0; i < trial.turn_count; i++) {
        const struct turn_row *row = &db.turns[i];

        if (uuid_equal(&row->saga.uuid, &read->id.uuid) && slice_equal(row->namespace, read->namespace) &&
            (read->turns_max == 0 || read->turn_count < read->turns_max)) {
            read->turns[read->turn_count] = row->turn;
            read->turns[read->turn_count++].payload = arena_slice(arena, row->turn.payload);
        }
    }
    read->row = (struct saga_row){.id = read->id, .namespace = read->namespace};
    return read->turn_count > 0 ? ERR_OK : ERR_NOT_FOUND;
}

static enum err_code find_operation(struct find_operation *find)
{
    for (size_t i = 0; i < db.key_count; i++) {
        if (uuid_equal(&db.keys[i].key.uuid, &find->key.uuid) && slice_equal(db.keys[i].namespace, find->namespace)) {
            find->id = db.keys[i].saga;
            return ERR_OK;
        }
    }
    return ERR_NOT_FOUND;
}

static enum err_code find_saga(struct find_saga *find)
{
    const struct turn_row *row = turn_of(&find->business_digest);

    if (row) {
        find->id = row->saga;
        find->input_digest = row->input_digest;
    }
    return row ? ERR_OK : ERR_NOT_FOUND;
}

static enum err_code find_input(const struct find_input *find)
{
    for (size_t i = 0; i < db.row_count; i++) {
        if (uuid_equal(&db.rows[i].id, &find->id)) {
            return ERR_OK;
        }
    }
    return ERR_NOT_FOUND;
}

static void load_sagas(struct shard_load *load)
{
    for (size_t i = 0; i < trial.turn_count; i++) {
        const struct turn_row *first = &db.turns[i];
        struct stored_turn turns[64];
        size_t count = 0;

        if (first->turn.first_seq != 1 || saga_id_shard(first->saga) != load->shard) {
            continue;
        }
        for (size_t k = i; k < trial.turn_count && count < COUNT_OF(turns); k++) {
            if (uuid_equal(&db.turns[k].saga.uuid, &first->saga.uuid)) {
                turns[count++] = db.turns[k].turn;
            }
        }
        load->on_saga(load, first->saga, first->namespace, turns, count);
    }
}

static void put_row(const struct inbox_put *put, bool consumed)
{
    db.last_put = put->row;
    db.last_put.kind = trial_keep(put->row.kind);
    db.last_put.payload = trial_keep(put->row.payload);
    if (!consumed) {
        (void)row_add(&put->row);
    }
}

static void put_definitions(struct put_definitions *put)
{
    for (size_t i = 0; i < put->count; i++) {
        struct definition_row *row = &db.definitions[db.definition_count++];

        assert_true(db.definition_count <= ROWS_MAX);
        put->rows[i].version = 1;
        put->created[i] = true;
        *row = put->rows[i];
        row->namespace = trial_keep(row->namespace);
        row->name = trial_keep(row->name);
        row->body = trial_keep(row->body);
    }
}

static void load_definitions(struct load_definitions *load)
{
    load->rows = arena_array(load->read.arena, db.definition_count + 1, sizeof(*load->rows));
    memcpy(load->rows, db.definitions, db.definition_count * sizeof(*load->rows));
    load->count = db.definition_count;
}

static void read_over(struct store_read *read, enum err_code code)
{
    read->code = code;
    if (code != ERR_OK) {
        (void)err_set(&read->err, code, "the trial wants it so");
    }
    read->done(read);
}

static enum err_code told(struct err *err, enum err_code code)
{
    if (code != ERR_OK) {
        (void)err_set(err, code, "the trial wants it so");
    }
    return code;
}

static void answer_put(struct answer_put *put, enum err_code code)
{
    put->code = code;
    if (code == ERR_OK) {
        if (put->drop_input) {
            row_remove(&put->input);
        }
    }
    if (put->done) {
        put->done(put);
    }
}

static void answer_append(struct append *append, enum err_code code)
{
    append->code = told(&append->err, code == ERR_OK ? append_turn(append) : code);
    append->done(append);
}

static void answer_inbox_put(struct inbox_put *put, enum err_code code)
{
    bool consumed = db.next_put_vanishes;

    db.next_put_vanishes = false;
    if (code == ERR_OK || code == ERR_LOST_COMMIT) {
        put_row(put, consumed || code != ERR_OK);
    }
    put->code = told(&put->err, code);
    put->done(put);
}

static void answer_load(struct shard_load *load, enum err_code code)
{
    load->code = told(&load->err, code);
    if (code == ERR_OK) {
        load_sagas(load);
    }
    load->done(load);
}

static void answer_due(struct due_take *take, enum err_code code)
{
    take->rows = NULL;
    take->count = 0;
    take->more = false;
    take->next_ms = INT64_MAX;
    read_over(&take->read, code);
}

void trial_store_answer(enum asked kind, void *request, enum err_code code)
{
    switch (kind) {
    case ASKED_APPEND:
        answer_append(request, code);
        break;
    case ASKED_LOAD_SHARD:
        answer_load(request, code);
        break;
    case ASKED_INBOX_PUT:
        answer_inbox_put(request, code);
        break;
    case ASKED_ANSWER_PUT:
        answer_put(request, code);
        break;
    case ASKED_READ_SAGA:
        read_over(request, code == ERR_OK ? read_saga(request) : code);
        break;
    case ASKED_FIND_SAGA:
        read_over(request, code == ERR_OK ? find_saga(request) : code);
        break;
    case ASKED_FIND_OPERATION:
        read_over(request, code == ERR_OK ? find_operation(request) : code);
        break;
    case ASKED_FIND_INPUT:
        read_over(request, code == ERR_OK ? find_input(request) : code);
        break;
    case ASKED_LOCK:
        ((struct lock_take *)request)->held = true;
        read_over(request, code);
        break;
    case ASKED_GUARD_ASK:
    case ASKED_GUARD_TELL:
    case ASKED_CASE_PUT:
        ((struct case_put *)request)->stands_as = code == ERR_OK ? ((struct case_put *)request)->number : 0;
        read_over(request, code);
        break;
    case ASKED_GUARD_PRICE:
    case ASKED_GUARD_COUNT:
    case ASKED_GUARD_LIST:
    case ASKED_SCHEDULES:
    case ASKED_LIST: /* granted, closed, none: as zeroed */
        read_over(request, code);
        break;
    case ASKED_QUESTIONS: /* there are none */
        read_over(request, code == ERR_OK && ((struct list_questions *)request)->number ? ERR_NOT_FOUND : code);
        break;
    case ASKED_PARK:
        ((struct park *)request)->code = code;
        ((struct park *)request)->done(request);
        break;
    case ASKED_FORGET:
        ((struct forget *)request)->code = code;
        ((struct forget *)request)->done(request);
        break;
    case ASKED_DUE:
        answer_due(request, code);
        break;
    case ASKED_DEFINITIONS:
        load_definitions(request);
        read_over(request, code);
        break;
    case ASKED_PUT_DEFINITIONS:
        put_definitions(request);
        read_over(request, code);
        break;
    case ASKED_CALL:
    case ASKED_COUNT:
        fail_msg("no request of the store");
    }
}

/* --- store.h --- */

struct store *store_open(struct loop *loop, const struct store_options *options)
{
    (void)loop;
    db.options = *options;
    return (struct store *)(void *)&the_store;
}

void store_close(struct store *store, void (*on_closed)(void *context), void *context)
{
    (void)store;
    db.on_closed = on_closed;
    db.closed_context = context;
}

bool trial_store_closes(void)
{
    void (*on_closed)(void *context) = db.on_closed;

    if (!on_closed || !list_empty(&inside.pending) || !list_empty(&inside.kept)) {
        return false;
    }
    db.on_closed = NULL;
    on_closed(db.closed_context);
    return true;
}

bool store_is_ready(const struct store *store)
{
    return store != NULL;
}

size_t store_appends_waiting(const struct store *store)
{
    (void)store;
    return 0;
}

int64_t store_append_lag_ms(const struct store *store)
{
    (void)store;
    return 0;
}

#define ASK(name, type, kind)                                                                                          \
    void name(struct store *store, struct type *request)                                                               \
    {                                                                                                                  \
        (void)store;                                                                                                   \
        trial_ask(kind, request);                                                                                      \
    }
ASK(store_append, append, ASKED_APPEND)
ASK(store_load_shard, shard_load, ASKED_LOAD_SHARD)
ASK(store_inbox_put, inbox_put, ASKED_INBOX_PUT)
ASK(store_answer_put, answer_put, ASKED_ANSWER_PUT)
ASK(store_read_saga, read_saga, ASKED_READ_SAGA)
ASK(store_find_saga, find_saga, ASKED_FIND_SAGA)
ASK(store_find_operation, find_operation, ASKED_FIND_OPERATION)
ASK(store_find_input, find_input, ASKED_FIND_INPUT)
ASK(store_guard_ask, guard_ask, ASKED_GUARD_ASK)
ASK(store_guard_tell, guard_tell, ASKED_GUARD_TELL)
ASK(store_guard_price, guard_price, ASKED_GUARD_PRICE)
ASK(store_case_put, case_put, ASKED_CASE_PUT)
ASK(store_guard_count, guard_count, ASKED_GUARD_COUNT)
ASK(store_guard_list, guard_list, ASKED_GUARD_LIST)
ASK(store_park, park, ASKED_PARK)
ASK(store_forget, forget, ASKED_FORGET)
ASK(store_due_take, due_take, ASKED_DUE)
ASK(store_lock_take, lock_take, ASKED_LOCK)
ASK(store_load_definitions, load_definitions, ASKED_DEFINITIONS)
ASK(store_put_definitions, put_definitions, ASKED_PUT_DEFINITIONS)
ASK(store_list_engines, list_engines, ASKED_LIST)
ASK(store_list_sagas, list_sagas, ASKED_LIST)
ASK(store_list_questions, list_questions, ASKED_QUESTIONS)
ASK(store_count_versions, count_versions, ASKED_LIST)
ASK(store_count_sagas, count_sagas, ASKED_LIST)
ASK(store_schedule_take, schedule_take, ASKED_SCHEDULES)
ASK(store_schedule_move, schedule_move, ASKED_SCHEDULES)
ASK(store_schedule_put, schedule_put, ASKED_SCHEDULES)
ASK(store_schedule_list, schedule_list, ASKED_SCHEDULES)
ASK(store_schedule_change, schedule_change, ASKED_SCHEDULES)
ASK(store_zone_read, zone_read, ASKED_SCHEDULES)
#undef ASK

void store_inbox_watch(struct store *store, uint64_t shards,
                       void (*on_rows)(const struct inbox_row *rows, size_t count, void *context), void *context)
{
    (void)store;
    (void)shards;
    db.on_rows = on_rows;
    db.rows_context = context;
}

void store_inbox_drop(struct store *store, uint32_t shard, const struct uuid *id)
{
    (void)store;
    (void)shard;
    row_remove(id);
}

void store_answer_wait(struct store *store, struct answer_wait *wait)
{
    (void)store;
    list_push(&db.waits, &wait->link);
}

void store_answer_stop(struct store *store, struct answer_wait *wait)
{
    (void)store;
    if (list_linked(&wait->link)) {
        list_remove(&db.waits, &wait->link);
    }
}

void store_watch_schedules(struct store *store, void (*changed)(void *context), void *context)
{
    (void)store;
    (void)changed;
    (void)context;
}

void store_watch_definitions(struct store *store, void (*changed)(void *context), void *context)
{
    (void)store;
    db.definitions_changed = changed;
    db.definitions_context = context;
}

/* --- leases --- */

static void on_gain(struct deferred *deferred)
{
    (void)deferred;
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        if (db.shards >> i & 1) {
            trial_shard_comes(i, 1);
        }
    }
}

struct leases *leases_start(struct store *store, const struct lease_options *options)
{
    (void)store;
    db.leases = *options;
    agenda_defer(&inside.agenda, &db.gain, on_gain);
    return (struct leases *)(void *)&the_leases;
}

static void on_release(struct deferred *deferred)
{
    (void)deferred;
    db.released(db.released_context);
}

void leases_release(struct leases *leases, void (*done)(void *context), void *context)
{
    (void)leases;
    db.released = done;
    db.released_context = context;
    agenda_defer(&inside.agenda, &db.release, on_release);
}

void leases_leave(struct leases *leases)
{
    (void)leases;
}

void leases_give(struct leases *leases, uint32_t shard)
{
    (void)leases;
    (void)shard;
}

bool lease_is_held(const struct leases *leases, uint32_t shard, int64_t *epoch)
{
    (void)leases;
    *epoch = trial.epochs[shard];
    return true;
}

int64_t lease_last_epoch(const struct leases *leases, uint32_t shard)
{
    (void)leases;
    return trial.epochs[shard];
}

bool store_has_hung(const struct store *store)
{
    (void)store;
    return false;
}

const char *store_warning(const struct store *store)
{
    (void)store;
    return NULL;
}

bool leases_are_current(const struct leases *leases)
{
    return leases != NULL;
}

const struct err *leases_reason(const struct leases *leases)
{
    static const struct err nothing;

    (void)leases;
    return &nothing;
}

bool lease_allows_send(const struct leases *leases, uint32_t shard)
{
    (void)leases;
    (void)shard;
    return true;
}

bool lease_owner_died(const struct leases *leases, uint32_t shard)
{
    (void)leases;
    (void)shard;
    return false;
}

int64_t lease_doubt_ms(const struct leases *leases, uint32_t shard)
{
    (void)leases;
    (void)shard;
    return 0;
}

void leases_report_fenced(struct leases *leases, uint32_t shard, int64_t epoch)
{
    (void)leases;
    (void)shard;
    (void)epoch;
}

void leases_write_json(struct leases *leases, struct buffer *out)
{
    (void)leases;
    buffer_put_text(out, "[]");
}

/* --- what tests do to it --- */

void trial_store_begin(uint64_t shards)
{
    memset(&db, 0, sizeof(db));
    list_init(&db.waits);
    db.shards = shards;
}

void trial_database(bool there)
{
    struct err err = {0};

    if (there) {
        db.options.on_ready((struct store *)(void *)&the_store, db.options.context);
    } else {
        (void)err_set(&err, ERR_STORE, "the trial wants it so");
        db.options.on_away((struct store *)(void *)&the_store, &err, db.options.context);
    }
}

void trial_row_of_next_put_vanishes(void)
{
    db.next_put_vanishes = true;
}

const struct inbox_row *trial_last_put(void)
{
    return &db.last_put;
}

void trial_consume_last_put(void)
{
    row_remove(&db.last_put.id);
}

static void answer(const struct uuid *input, const char *body)
{
    row_remove(input);
    for (struct list_link *link = list_first(&db.waits); link; link = list_after(&db.waits, link)) {
        struct answer_wait *wait = container_of(link, struct answer_wait, link);

        if (uuid_equal(&wait->input, input)) {
            list_remove(&db.waits, link);
            wait->on_answer(wait, slice_of(body));
            trial_run(0);
            return;
        }
    }
    fail_msg("nobody waits for this answer");
}

void trial_answer_last_put(const char *body)
{
    answer(&db.last_put.id, body);
}

void trial_answer_put(const struct inbox_put *put, const char *body)
{
    answer(&put->row.id, body);
}

void trial_log(struct saga_id saga, const char *namespace, uint64_t first_seq, const char *payload)
{
    (void)turn_add(saga, slice_of(namespace), first_seq, loop_wall_ms(NULL), slice_of(payload));
}

void trial_shard_to(uint32_t shard, int64_t epoch)
{
    int64_t before = trial.epochs[shard];

    trial.epochs[shard] = epoch;
    db.leases.on_lost(shard, before, db.leases.context);
}

void trial_shard_comes(uint32_t shard, int64_t epoch)
{
    trial.epochs[shard] = epoch;
    db.leases.on_gained(shard, epoch, db.leases.context);
}
