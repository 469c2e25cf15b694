/*
 * Most repeats of a call come soon: the agent plans anew, its host begins another session, a queue delivers once more.
 * So the states of the runs that were asked for last stay in memory, as many as fit into `rests_bytes_max`. The one
 * that nobody has asked for the longest goes first, and its next repeat reads the database.
 *
 * A shard that comes back was somebody else's meanwhile, so its states carry the number of times it has left.
 */
#include "run/saga/rests.h"

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/map.h"
#include "run/saga/live.h"
#include "run/saga/saga_room.h"
#include "run/shard/shard.h"

#define ENTRY_BYTES 192 /* an entry without its state, its places in two maps, and what the allocator adds */

struct rest_entry {
    struct list_link link; /* the one that was asked for last is the last one */
    struct digest run;
    struct saga_id id;
    uint64_t seq;
    uint32_t shard, departures;
    uint32_t len;
    char bytes[];
};

struct rests {
    struct map runs, ids; /* struct rest_entry by the digest of its run, and by its id */
    struct list entries;
    size_t bytes, bytes_max;
    uint32_t departures[SHARD_COUNT]; /* how often each shard has left */
};

struct rests *rests_new(struct engine *engine)
{
    struct rests *rests = memory_alloc(sizeof(*rests));

    map_init(&rests->runs);
    map_init(&rests->ids);
    list_init(&rests->entries);
    rests->bytes_max = engine->options.rests_bytes_max;
    return rests;
}

static size_t entry_bytes(const struct rest_entry *entry)
{
    return ENTRY_BYTES + entry->len;
}

static void entry_drop(struct rests *rests, struct rest_entry *entry)
{
    list_remove(&rests->entries, &entry->link);
    (void)map_remove(&rests->runs, &entry->run, sizeof(entry->run));
    (void)map_remove(&rests->ids, &entry->id, sizeof(entry->id));
    rests->bytes -= entry_bytes(entry);
    free(entry);
}

static void make_room(struct rests *rests, size_t bytes)
{
    while (rests->bytes > bytes) {
        entry_drop(rests, container_of(list_first(&rests->entries), struct rest_entry, link));
    }
}

void rests_free(struct rests *rests)
{
    make_room(rests, 0);
    map_fini(&rests->runs);
    map_fini(&rests->ids);
    free(rests);
}

void rests_drop(struct engine *engine, struct saga_id id)
{
    struct rests *rests = engine->saga_room->rests;
    struct rest_entry *entry = map_find(&rests->ids, &id, sizeof(id));

    if (entry) {
        entry_drop(rests, entry);
    }
}

void rests_leave(struct engine *engine, uint32_t shard)
{
    engine->saga_room->rests->departures[shard]++;
}

void rests_turn(const struct live *live, struct slice bytes)
{
    struct rests *rests = live->engine->saga_room->rests;
    struct rest_entry *entry;

    rests_drop(live->engine, live->saga.id);
    if (!bytes.ptr || !live->run_digest || ENTRY_BYTES + bytes.len > rests->bytes_max) {
        return;
    }
    make_room(rests, rests->bytes_max - ENTRY_BYTES - bytes.len);
    entry = memory_alloc(sizeof(*entry) + bytes.len);
    entry->run = *live->run_digest;
    entry->id = live->saga.id;
    entry->seq = live->saga.seq;
    entry->shard = live->shard->number;
    entry->departures = rests->departures[entry->shard];
    entry->len = (uint32_t)bytes.len;
    memcpy(entry->bytes, bytes.ptr, bytes.len);
    rests->bytes += entry_bytes(entry);
    list_push(&rests->entries, &entry->link);
    map_put(&rests->runs, &entry->run, sizeof(entry->run), entry);
    map_put(&rests->ids, &entry->id, sizeof(entry->id), entry);
}

bool rests_find(struct engine *engine, const struct digest *run, struct rest_kept *out)
{
    struct rests *rests = engine->saga_room->rests;
    struct rest_entry *entry = map_find(&rests->runs, run, sizeof(*run));

    if (!entry) {
        return false;
    }
    if (entry->departures != rests->departures[entry->shard]) {
        entry_drop(rests, entry);
        return false;
    }
    list_remove(&rests->entries, &entry->link);
    list_push(&rests->entries, &entry->link);
    *out = (struct rest_kept){entry->id, entry->seq, {entry->bytes, entry->len}};
    return true;
}
