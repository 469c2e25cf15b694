/*
 * A person who holds the whole namespace now and then for some seconds, and sometimes releases it early. From the
 * answer until the end of the hold no forward call may leave. The judge asks here about each call that reaches a tool.
 */
#include "tests/sim/drive.h"

#include "base/instant.h"
#include "base/json.h"
#include "run/engine_state.h"

#define HOLDS 3
#define STREAM_OF_HOLDS UINT64_C(0x686f6c64)
#define MARGIN_US 500000 /* engines follow the clock of the database, but not to the millisecond */

struct holder {
    struct inquiry inquiry;
    struct event timer;
    bool releases, is_made, is_over;
    int64_t lasts_us, until_us; /* the wanted duration; then the end, by the clock of the world */
    uint64_t number;
    int64_t from_us, to_us; /* the time in which the hold was certainly in force; 0 for never */
};

static struct holder holders[HOLDS];

static void holder_send(struct inquiry *inquiry, struct engine *engine, struct engine_request *request)
{
    struct holder *holder = container_of(inquiry, struct holder, inquiry);
    char until[INSTANT_TEXT_BYTES];

    request->actor = SLICE("eve");
    if (holder->is_made) {
        holder->to_us = holder->to_us < world->now_us ? holder->to_us : world->now_us;
        request->in.hold.number = holder->number;
        request->in.hold.note = SLICE("seen enough");
        engine_release_hold(engine, request);
        return;
    }
    holder->until_us = world->now_us + holder->lasts_us;
    /* The clock of an engine that was frozen is late, so the world's clock counts here. */
    instant_text(WORLD_START_MS + holder->until_us / 1000, until);
    request->in.hold.body = arena_printf(request->arena, "{\"namespace\":\"%.*s\",\"note\":\"wait\",\"until\":\"%s\"}",
                                         SLICE_ARG(NAMESPACE), until);
    engine_put_hold(engine, request);
}

static void on_made(struct holder *holder, struct slice answer)
{
    int64_t number;

    CHECK(json_i64(json_member(answer, "n"), &number));
    if (!slice_is(json_member(answer, "in_force"), "true")) {
        world_violate("I20", "hold %lld is not in force although every engine knows holds", (long long)number);
    }
    holder->number = (uint64_t)number;
    holder->is_made = true;
    holder->from_us = world->now_us;
    holder->to_us = holder->until_us - MARGIN_US;
    see(SEEN_HELD);
    world_trace("eve holds everything: %lld", (long long)number);
}

static void holder_answered(struct inquiry *inquiry, const struct engine_request *request)
{
    struct holder *holder = container_of(inquiry, struct holder, inquiry);
    bool went_well = request && request->code == ERR_OK;

    if (!holder->is_made && went_well) {
        on_made(holder, request->answer);
        holder->is_over = !holder->releases;
        if (holder->releases) {
            inquiry_go(inquiry, holder->lasts_us / 3);
        }
    } else if ((!request || err_may_pass(request->code)) && !world->is_healed) {
        inquiry_go(inquiry, 300000); /* a hold whose answer was lost ends at its time */
    } else {
        holder->is_over = true;
    }
}

static void on_time(struct event *event)
{
    inquiry_go(&container_of(event, struct holder, timer)->inquiry, 0);
}

void holders_begin(void)
{
    struct chance chance = chance_of(scenario_now->seed, STREAM_OF_HOLDS, 1);
    uint32_t chaos_ms = (uint32_t)(scenario_now->chaos_us / 1000);

    for (uint32_t i = 0; i < HOLDS; i++) {
        struct holder *holder = &holders[i];

        *holder = (struct holder){
            .inquiry = {.patience_us = 15000000, .send = holder_send, .answered = holder_answered, .node = i},
            .is_over = !(scenario_now->swarm >> SWARM_HOLDS & 1)};
        if (!holder->is_over) {
            holder->releases = chance_percent(&chance, 50);
            holder->lasts_us = 1000000 + 1000 * (int64_t)chance_below(&chance, 6000);
            world_at(&holder->timer, 1000 * (int64_t)chance_below(&chance, chaos_ms + 1), on_time);
        }
    }
}

bool holders_are_done(void)
{
    bool done = true;

    for (uint32_t i = 0; i < HOLDS; i++) {
        done = done && holders[i].is_over && holders[i].until_us < world->now_us;
    }
    return done;
}

bool holders_forbid(struct slice namespace, int64_t at_us)
{
    for (uint32_t i = 0; i < HOLDS && slice_equal(namespace, NAMESPACE); i++) {
        if (holders[i].from_us > 0 && at_us > holders[i].from_us && at_us < holders[i].to_us) {
            return true;
        }
    }
    return false;
}
