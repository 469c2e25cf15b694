/*
 * See check.h. Judges bulk jobs (I21): an item acts once, nothing of a job acts that nobody ran or that was stopped,
 * and the outcome of an item says what its saga knows.
 */
#include "tests/sim/check_state.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/scenario.h"
#include "tests/sim/sealing.h"

#define BULK_ID_BYTES 64
/* Items may be under way when a stop is answered, also by way of an engine that is frozen or of the inbox of a shard
 * that nobody owns. */
#define UNDER_WAY_US INT64_C(60000000)

struct judged_act { /* a turn that an item of a bulk job asked for */
    struct slice id;
    struct saga_id saga;
    int64_t at_us;
};

void check_bulk_act(const struct judged_saga *saga, struct slice id)
{
    struct judged_act *act = map_find(&world->check->acts, id.ptr, id.len);

    if (act && !world->check->may_lose) { /* a primary may be gone with the first turn */
        world_violate("I21", "item %.*s of a bulk job acts a second time", SLICE_ARG(id));
    }
    act = arena_alloc(&world->arena, sizeof(*act));
    act->id = arena_slice(&world->arena, id);
    act->saga = saga->id;
    act->at_us = world->now_us;
    map_put(&world->check->acts, act->id.ptr, act->id.len, act);
    see(SEEN_BULK_ACTS);
}

/* --- the end --- */

static struct {
    size_t acts;                              /* acts of items that exist */
    int64_t open, done, changed, refused, of; /* items of one job */
} found;

static void judge_act(const struct committed_item *item, struct slice body, const struct judged_act *act,
                      const char *id)
{
    int64_t stopped_us = jobber_stopped_us(item->job->id);
    struct slice saga = json_string(json_member(body, "saga"), &world->arena);
    struct saga_id of = {0};

    found.acts++;
    if (!uuid_parse(saga, &of.uuid) || !uuid_equal(&of.uuid, &act->saga.uuid)) {
        world_violate("I21", "item %s is about saga %.*s, and acts on another one", id, SLICE_ARG(saga));
    }
    if (!item->job->was_run) {
        world_violate("I21", "item %s acts although nobody has run its job", id);
    }
    if (stopped_us > 0 && act->at_us > stopped_us + UNDER_WAY_US) {
        world_violate("I21", "item %s acts %lld ms after its job was stopped", id,
                      (long long)(act->at_us - stopped_us) / 1000);
    }
    if (slice_is(item->outcome, "changed") || slice_is(item->outcome, "refused")) {
        world_violate("I21", "item %s counts as %.*s, and has acted", id, SLICE_ARG(item->outcome));
    }
}

static void judge_item(const struct committed_item *item)
{
    char id[BULK_ID_BYTES], job[UUID_TEXT_BYTES];
    struct slice body = sealing_open_item(item);
    const struct judged_act *act;

    uuid_text(&item->job->id.uuid, job);
    (void)snprintf(id, sizeof(id), "%s/%llu", job, (unsigned long long)item->number);
    act = map_find(&world->check->acts, id, strlen(id));
    found.of++;
    found.open += !item->outcome.ptr;
    found.done += slice_is(item->outcome, "done");
    found.changed += slice_is(item->outcome, "changed");
    found.refused += slice_is(item->outcome, "refused");
    if (act) {
        judge_act(item, body, act, id);
    } else if (slice_is(item->outcome, "done") && json_string_is(json_member(body, "verb"), "resolve")) {
        world_violate("I21", "item %s counts as done, and its saga knows nothing of it", id);
    }
}

static void judge_job(const struct committed_job *job)
{
    char id[UUID_TEXT_BYTES];
    size_t acts = found.acts;

    uuid_text(&job->id.uuid, id);
    memset(&found, 0, sizeof(found));
    found.acts = acts;
    pg_each_bulk_item(world->pg, job, judge_item);
    if (slice_is(job->state, "freezing")) {
        return; /* whoever wanted it was not answered; its items were not counted yet */
    }
    if (found.of != job->items || found.done != job->done || found.changed != job->changed ||
        found.refused != job->refused) {
        world_violate("I21",
                      "bulk job %s counts %lld done, %lld changed and %lld refused of %lld, its items %lld, %lld "
                      "and %lld of %lld",
                      id, (long long)job->done, (long long)job->changed, (long long)job->refused, (long long)job->items,
                      (long long)found.done, (long long)found.changed, (long long)found.refused, (long long)found.of);
    }
    if (slice_is(job->state, "done") && found.open > 0) {
        world_violate("I21", "bulk job %s is done, and %lld items have no outcome", id, (long long)found.open);
    }
}

void check_bulk_end(void)
{
    found.acts = 0;
    pg_each_bulk_job(world->pg, judge_job);
    if (found.acts != world->check->acts.count) {
        world_violate("I21", "%zu items of bulk jobs act, and %zu of them exist", world->check->acts.count, found.acts);
    }
}
