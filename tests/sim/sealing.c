/* See sealing.h. The keys live as long as the process: the nonces are random, and no run depends on them. */
#include "tests/sim/sealing.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/seal/places.h"
#include "store/seal/seal.h"

#define KEYS                                                                                                           \
    "\"keys\":{\"k1\":\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\","                                               \
    "\"k2\":\"ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=\"}}"

enum active { ACTIVE_K1, ACTIVE_K2, ACTIVE_NONE, ACTIVE_COUNT };

static struct payload_keys *keys_with(enum active active)
{
    static const char *const texts[ACTIVE_COUNT] = {
        [ACTIVE_K1] = "{\"active\":\"k1\"," KEYS,
        [ACTIVE_K2] = "{\"active\":\"k2\"," KEYS,
        [ACTIVE_NONE] = "{\"active\":null," KEYS,
    };
    static struct payload_keys *keys[ACTIVE_COUNT];

    if (!keys[active]) {
        char path[] = "/tmp/sagad-sim-keys-XXXXXX";
        struct node *before = node_enter(NULL); /* they outlive every node */
        struct err err = {.code = ERR_OK};
        int file = mkstemp(path);

        CHECK(file >= 0 && write(file, texts[active], strlen(texts[active])) == (ssize_t)strlen(texts[active]));
        CHECK(close(file) == 0);
        keys[active] = payload_keys_new(path, &err);
        CHECK(unlink(path) == 0 && keys[active]);
        node_leave(before);
    }
    return keys[active];
}

struct payload_keys *sealing_keys(const struct node *node)
{
    bool is_odd = node->index % 2 != 0;

    switch ((enum sealing)node->options.sealing) {
    case SEALING_NONE:
        return NULL;
    case SEALING_ALL:
        return keys_with(ACTIVE_K1);
    case SEALING_CHANGES:
        return keys_with(is_odd ? ACTIVE_K2 : ACTIVE_K1);
    case SEALING_BEGINS:
        return keys_with(is_odd ? ACTIVE_NONE : ACTIVE_K1);
    case SEALING_COUNT:
        break;
    }
    UNREACHABLE();
}

struct committed_turn sealing_open_turn(const struct committed_turn *turn)
{
    struct seal_place place = place_of_turn(&turn->saga.uuid, turn->seq),
                      of_rest = place_of_rest(&turn->saga.uuid, turn->seq + turn->records - 1);
    struct committed_turn open = *turn;
    struct err err = {.code = ERR_OK};

    if (unseal_members(keys_with(ACTIVE_NONE), SEAL_TURN, &place, turn->payload, &world->arena, &open.payload, &err) !=
            ERR_OK ||
        (turn->rest.ptr &&
         unseal_whole(keys_with(ACTIVE_NONE), &of_rest, turn->rest, &world->arena, &open.rest, &err) != ERR_OK)) {
        world_violate("I9", "turn %u was written so that it does not open: %s", (unsigned)turn->seq, err.message);
    }
    return open;
}

struct slice sealing_open_item(const struct committed_item *item)
{
    struct seal_place place = place_of_bulk_item(&item->job->id.uuid, item->number);
    struct err err = {.code = ERR_OK};
    struct slice body = item->body;

    if (unseal_whole(keys_with(ACTIVE_NONE), &place, item->body, &world->arena, &body, &err) != ERR_OK) {
        world_violate("I9", "item %llu was written so that it does not open: %s", (unsigned long long)item->number,
                      err.message);
    }
    return body;
}
