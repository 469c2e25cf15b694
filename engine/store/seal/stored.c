/* Rows as PostgreSQL holds them: sealed when they are written, opened when they are read. */
#include "store/seal/seal.h"

#include "base/log.h"
#include "store/store_state.h"

/* The state of a run goes by the last record of its turn, because its reader knows no other number. */
static struct seal_place rest_place(const struct uuid *saga, uint64_t last_seq)
{
    return (struct seal_place){.table = "log", .id = *saga, .number = last_seq, .member = SLICE("rest")};
}

void append_seal(struct store *store, struct append *append)
{
    const struct payload_keys *keys = store->options.payload_keys;
    size_t turn_len;

    append->sealed = (struct buffer){.ptr = NULL};
    append->stored_payload = append->payload;
    append->stored_rest = append->rest;
    if (!payload_keys_active(keys).ptr) {
        return;
    }
    buffer_init(&append->sealed, SIZE_MAX / 2);
    seal_turn(keys, &append->saga.uuid, append->first_seq, append->payload, &append->sealed);
    turn_len = append->sealed.len;
    if (append->rest.ptr) {
        struct seal_place place = rest_place(&append->saga.uuid, append->first_seq + append->record_count - 1);

        seal_whole(keys, &place, append->rest, &append->sealed);
        append->stored_rest = (struct slice){append->sealed.ptr + turn_len, append->sealed.len - turn_len};
    }
    append->stored_payload = (struct slice){append->sealed.ptr, turn_len};
}

static void say(struct store *store, const char *table, const struct uuid *id, const struct err *err)
{
    if (err->code == ERR_CONFIG) {
        store_refuse(store, err);
    }
    log_error("payload_unopened", LOG_TEXT("table", table), LOG_UUID("id", id), LOG_ERR(err));
}

/* SLICE_NONE: it does not open, which was said. */
static struct slice column_open(struct store *store, const struct seal_place *place, struct slice column,
                                struct arena *arena)
{
    struct err err = {.code = ERR_OK};
    struct slice opened;

    if (unseal_whole(store->options.payload_keys, place, column, arena, &opened, &err) != ERR_OK) {
        say(store, place->table, &place->id, &err);
    }
    return opened;
}

/* --- the log --- */

void turn_open(struct store *store, const struct uuid *saga, struct stored_turn *turn, struct arena *arena)
{
    struct err err = {.code = ERR_OK};
    struct slice opened;

    turn->fault = NULL;
    if (unseal_turn(store->options.payload_keys, saga, turn->first_seq, turn->payload, arena, &opened, &err) !=
        ERR_OK) {
        say(store, "log", saga, &err);
        turn->fault = arena_text(arena, slice_of(err.message));
        opened = SLICE("[null]"); /* for readers that do not look at the fault: no record is null */
    }
    turn->payload = opened;
}

struct slice rest_open(struct store *store, const struct uuid *saga, uint64_t last_seq, struct slice rest,
                       struct arena *arena)
{
    struct seal_place place = rest_place(saga, last_seq);

    return column_open(store, &place, rest, arena);
}

/* --- between engines --- */

#define INBOX_KIND_MAX 32

/* An input is also bound to its saga and its kind: neither can be changed in the row. */
static struct seal_place inbox_place(const struct inbox_row *row, char bound[sizeof(struct uuid) + INBOX_KIND_MAX])
{
    size_t kind_len = row->kind.len <= INBOX_KIND_MAX ? row->kind.len : INBOX_KIND_MAX;

    memcpy(bound, row->saga.uuid.bytes, sizeof(row->saga.uuid.bytes));
    memcpy(bound + sizeof(row->saga.uuid.bytes), row->kind.ptr, kind_len);
    return (struct seal_place){.table = "inbox",
                               .id = row->id,
                               .number = row->shard,
                               .member = {bound, sizeof(row->saga.uuid.bytes) + kind_len}};
}

struct slice inbox_seal(struct store *store, const struct inbox_row *row, struct arena *arena)
{
    char bound[sizeof(struct uuid) + INBOX_KIND_MAX];
    struct seal_place place = inbox_place(row, bound);

    return seal_column(store->options.payload_keys, &place, row->payload, arena);
}

bool inbox_open(struct store *store, struct inbox_row *row, struct arena *arena)
{
    char bound[sizeof(struct uuid) + INBOX_KIND_MAX];
    struct seal_place place = inbox_place(row, bound);

    row->payload = column_open(store, &place, row->payload, arena);
    return row->payload.ptr != NULL;
}

static struct seal_place answer_place(const struct uuid *input)
{
    return (struct seal_place){.table = "answer", .id = *input};
}

struct slice answer_seal(struct store *store, const struct uuid *input, struct slice body, struct arena *arena)
{
    struct seal_place place = answer_place(input);

    return seal_column(store->options.payload_keys, &place, body, arena);
}

struct slice answer_open(struct store *store, const struct uuid *input, struct slice body, struct arena *arena)
{
    struct seal_place place = answer_place(input);

    return column_open(store, &place, body, arena);
}
