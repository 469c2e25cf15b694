/*
 * Somebody who keeps a schedule: a saga for each instant, until the world is healed. The judge counts those sagas
 * (I23): each instant of the schedule, from the first to the last, has one.
 */
#include "tests/sim/drive.h"

#include <string.h>

#include "base/instant.h"

#define EVERY_MS 1000
#define ANCHOR_MS (WORLD_START_MS - WORLD_START_MS % EVERY_MS)
#define NAME SLICE("tick")
#define LATE_US 3000000 /* an instant that came right before the hold may still be started */

static struct {
    struct inquiry inquiry;
    bool is_made, is_held;
    int64_t held_us;
} clerk;

static void clerk_send(struct inquiry *inquiry, struct engine *engine, struct engine_request *request)
{
    char anchor[INSTANT_TEXT_BYTES];

    (void)inquiry;
    request->actor = SLICE("kim");
    request->in.schedule.name = NAME;
    if (clerk.is_made) {
        request->in.schedule.act = SCHEDULE_HOLD;
        request->in.schedule.note = SLICE("enough");
        engine_change_schedule(engine, request);
        return;
    }
    instant_text(ANCHOR_MS, anchor);
    request->in.schedule.body = arena_printf(
        request->arena,
        "{\"name\":\"tick\",\"saga\":\"s0\",\"every\":\"1s\",\"anchor\":\"%s\",\"overlap\":\"all\","
        "\"catch_up\":\"all\",\"input\":{\"n\":1,\"t\":true,\"f\":false,\"l0\":[],\"l1\":[1],\"l2\":[1,\"b\"],"
        "\"l3\":[3,2,1]}}",
        anchor);
    engine_put_schedule(engine, request);
}

static void clerk_answered(struct inquiry *inquiry, const struct engine_request *request)
{
    bool went_well = request && request->code == ERR_OK;

    if (request && !went_well && !err_may_pass(request->code) && request->code != ERR_NOT_FOUND) {
        world_violate("SIM", "the schedule is refused: %s", request->err.message);
    }
    if (!went_well) {
        inquiry_go(inquiry, 300000);
    } else if (!clerk.is_made) {
        clerk.is_made = true;
        if (world->is_healed) {
            inquiry_go(inquiry, 0);
        }
    } else {
        clerk.is_held = true;
        clerk.held_us = world->now_us;
    }
}

void clerk_begin(void)
{
    memset(&clerk, 0, sizeof(clerk));
    clerk.inquiry = (struct inquiry){.patience_us = 15000000, .send = clerk_send, .answered = clerk_answered};
    clerk.is_held = !(scenario_now->swarm >> SWARM_SCHEDULE & 1);
    if (!clerk.is_held) {
        inquiry_go(&clerk.inquiry, 0);
    }
}

void clerk_heal(void)
{
    if (!clerk.is_held && clerk.is_made) {
        inquiry_go(&clerk.inquiry, 0);
    }
}

bool clerk_is_done(void)
{
    return clerk.is_held && (clerk.held_us == 0 || world->now_us > clerk.held_us + LATE_US);
}

/* --- the judge --- */

static struct {
    int64_t first_ms, last_ms, count;
} seen;

void check_scheduled(struct slice business_id)
{
    static const char before[] = "schedule:tick@";
    int64_t at_ms = 0;

    if (!slice_starts_with(business_id, before)) {
        return;
    }
    struct slice text = {business_id.ptr + sizeof(before) - 1, business_id.len - (sizeof(before) - 1)};

    if (!instant_parse(text, &at_ms) || (at_ms - ANCHOR_MS) % EVERY_MS != 0) {
        world_violate("I23", "a saga of the schedule for %.*s, which is none of its instants", SLICE_ARG(text));
    }
    seen.first_ms = seen.count == 0 || at_ms < seen.first_ms ? at_ms : seen.first_ms;
    seen.last_ms = seen.count == 0 || at_ms > seen.last_ms ? at_ms : seen.last_ms;
    seen.count++;
    see(SEEN_SCHEDULED);
}

void check_schedule_begin(void)
{
    memset(&seen, 0, sizeof(seen));
}

/* That no instant has two sagas is I10: they would have one business id. */
void check_schedule_end(void)
{
    int64_t instants = seen.count == 0 ? 0 : (seen.last_ms - seen.first_ms) / EVERY_MS + 1;

    if (seen.count != instants) {
        world_violate("I23", "the schedule has %lld instants, and %lld sagas", (long long)instants,
                      (long long)seen.count);
    }
}
