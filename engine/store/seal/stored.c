/* Rows as PostgreSQL holds them: sealed when they are written, opened when they are read. */
#include "store/seal/seal.h"

#include "base/log.h"
#include "store/store_state.h"

enum { SEALED_MORE_BYTES = 256 }; /* what a few small payloads grow by: key, nonce and tag */

void append_seal(struct store *store, struct append *append)
{
    const struct payload_keys *keys = store->options.payload_keys;
    struct seal_place place = place_of_turn(&append->saga.uuid, append->first_seq);
    size_t turn_end, rest_end;

    append->sealed = (struct buffer){.ptr = NULL};
    append->stored_payload = append->payload;
    append->stored_rest = append->rest;
    append->stored_input = append->start
                               ? digest_slice(&append->start->input_digest, sizeof(append->start->input_digest.bytes))
                               : SLICE_NONE;
    if (!payload_keys_active(keys).ptr) {
        return;
    }
    buffer_init(&append->sealed, SIZE_MAX / 2);
    /* Room for most turns at once: to grow is to copy. */
    CHECK(buffer_extend(&append->sealed, append->payload.len + append->payload.len / 2 + SEALED_MORE_BYTES));
    buffer_reset(&append->sealed);
    seal_members(keys, SEAL_TURN, &place, append->payload, &append->sealed);
    turn_end = rest_end = append->sealed.len;
    if (append->rest.ptr) {
        place = place_of_rest(&append->saga.uuid, append->first_seq + append->record_count - 1);
        seal_whole(keys, &place, append->rest, &append->sealed);
        rest_end = append->sealed.len;
    }
    if (append->start) {
        place = place_of_digest(&append->saga.uuid);
        seal_whole(keys, &place, append->stored_input, &append->sealed);
    }
    /* Only now does the buffer stay where it is. */
    append->stored_payload = (struct slice){append->sealed.ptr, turn_end};
    if (append->rest.ptr) {
        append->stored_rest = (struct slice){append->sealed.ptr + turn_end, rest_end - turn_end};
    }
    if (append->start) {
        append->stored_input = (struct slice){append->sealed.ptr + rest_end, append->sealed.len - rest_end};
    }
}

static void say(struct store *store, const char *table, const struct uuid *id, const struct err *err)
{
    if (err->code == ERR_CONFIG) {
        store_refuse(store, err);
    }
    log_error("payload_unopened", LOG_TEXT("table", table), LOG_UUID("id", id), LOG_ERR(err));
}

struct slice column_seal(struct store *store, struct seal_place place, struct slice text, struct arena *arena)
{
    return seal_column(store->options.payload_keys, &place, text, arena);
}

struct slice column_open(struct store *store, struct seal_place place, struct slice column, struct arena *arena)
{
    struct err err = {.code = ERR_OK};
    struct slice opened;

    if (unseal_whole(store->options.payload_keys, &place, column, arena, &opened, &err) != ERR_OK) {
        say(store, place.table, &place.id, &err);
    }
    return opened;
}

bool input_is(struct store *store, struct saga_id saga, struct slice column, const struct digest *digest)
{
    struct seal_place place = place_of_digest(&saga.uuid);
    struct err err = {.code = ERR_OK};
    struct digest kept;

    if (unseal_digest(store->options.payload_keys, &place, column, &kept, &err) != ERR_OK) {
        say(store, place.table, &place.id, &err);
        return false;
    }
    return digest_equal(&kept, digest);
}

void turn_open(struct store *store, const struct uuid *saga, struct stored_turn *turn, struct arena *arena)
{
    struct seal_place place = place_of_turn(saga, turn->first_seq);
    struct err err = {.code = ERR_OK};
    struct slice opened;

    turn->fault = NULL;
    if (unseal_members(store->options.payload_keys, SEAL_TURN, &place, turn->payload, arena, &opened, &err) != ERR_OK) {
        say(store, "log", saga, &err);
        turn->fault = arena_text(arena, slice_of(err.message));
        opened = SLICE("[null]"); /* for readers that do not look at the fault: no record is null */
    }
    turn->payload = opened;
}

struct slice question_seal(struct store *store, struct seal_place place, struct slice body, struct arena *arena)
{
    const struct payload_keys *keys = store->options.payload_keys;
    struct buffer out;
    struct slice sealed;

    if (!body.ptr || !payload_keys_active(keys).ptr) {
        return body;
    }
    buffer_init(&out, SIZE_MAX / 2);
    seal_members(keys, SEAL_CASE, &place, body, &out);
    sealed = arena_slice(arena, buffer_slice(&out));
    buffer_fini(&out);
    return sealed;
}

struct slice question_open(struct store *store, struct seal_place place, struct slice body, struct arena *arena)
{
    struct err err = {.code = ERR_OK};
    struct slice opened;

    if (unseal_members(store->options.payload_keys, SEAL_CASE, &place, body, arena, &opened, &err) != ERR_OK) {
        say(store, place.table, &place.id, &err);
        opened = body;
    }
    return opened;
}
