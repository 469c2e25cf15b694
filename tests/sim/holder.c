/*
 * People who hold the whole namespace now and then for some seconds, or a tool, and sometimes release it early. From
 * the answer until the end of the hold no call that it is about may leave. The judge asks here about each call that
 * reaches a tool.
 *
 * Holds of tools are made in a short time, so that calls of one saga wait for several. A hold of a compensator holds
 * what undoes, too.
 */
#include "tests/sim/drive.h"

#include "base/instant.h"
#include "base/json.h"
#include "run/engine_state.h"

#define HOLDS 3      /* of the namespace */
#define TOOL_HOLDS 6 /* behind these */
#define TOOL_HOLDS_WITHIN_MS 300
#define STREAM_OF_HOLDS UINT64_C(0x686f6c64)
#define MARGIN_US 500000 /* engines follow the clock of the database, but not to the millisecond */

struct holder {
    struct inquiry inquiry;
    struct event timer; /* fires when the hold is made, then in the midst of it */
    bool releases, is_made, is_over;
    struct slice tool; /* SLICE_NONE: the whole namespace */
    bool undo;
    int64_t lasts_us, until_us; /* the wanted duration; then the end, by the clock of the world */
    uint64_t number;
    int64_t from_us, to_us; /* the time in which the hold was certainly in force; 0 for never */
};

static struct holder holders[HOLDS + TOOL_HOLDS];

static struct slice body_of(const struct holder *holder, struct arena *arena)
{
    char until[INSTANT_TEXT_BYTES];

    /* The clock of an engine that was frozen is late, so the world's clock counts here. */
    instant_text(WORLD_START_MS + holder->until_us / 1000, until);
    return arena_printf(arena, "{\"%s\":\"%.*s\",\"note\":\"wait\",\"undo\":%s,\"until\":\"%s\"}",
                        holder->tool.ptr ? "tool" : "namespace", SLICE_ARG(holder->tool.ptr ? holder->tool : NAMESPACE),
                        holder->undo ? "true" : "false", until);
}

static void holder_send(struct inquiry *inquiry, struct engine *engine, struct engine_request *request)
{
    struct holder *holder = container_of(inquiry, struct holder, inquiry);

    request->actor = SLICE("eve");
    if (holder->is_made) {
        holder->to_us = holder->to_us < world->now_us ? holder->to_us : world->now_us;
        request->in.hold.number = holder->number;
        request->in.hold.note = SLICE("seen enough");
        engine_release_hold(engine, request);
        return;
    }
    holder->until_us = world->now_us + holder->lasts_us;
    request->in.hold.body = body_of(holder, request->arena);
    engine_put_hold(engine, request);
}

static void on_midst(struct event *event)
{
    (void)event;
    if (pg_parks_under_two_holds(world->pg)) {
        see(SEEN_TWO_HOLDS);
    }
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
    see(holder->tool.ptr ? SEEN_TOOL_HELD : SEEN_HELD);
    world_trace("eve holds %.*s: %lld", SLICE_ARG(holder->tool.ptr ? holder->tool : SLICE("everything")),
                (long long)number);
    world_at(&holder->timer, holder->lasts_us / 4, on_midst);
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

/* Has the hold made within so many milliseconds after `first_us`. */
static void holder_begin(struct holder *holder, struct chance *chance, int64_t first_us, uint32_t within_ms)
{
    holder->is_over = false;
    holder->releases = chance_percent(chance, 50);
    holder->lasts_us = 1000000 + 1000 * (int64_t)chance_below(chance, 6000);
    world_at(&holder->timer, first_us + 1000 * (int64_t)chance_below(chance, within_ms + 1), on_time);
}

static struct slice tool_at(size_t i)
{
    struct slice tools = json_member(scenario_now->definitions, "tools");

    return json_string(json_member(json_element(tools, i % json_count(tools)), "name"), &world->arena);
}

void holders_begin(void)
{
    struct chance chance = chance_of(scenario_now->seed, STREAM_OF_HOLDS, 1);
    struct chance of_tools = chance_of(scenario_now->seed, STREAM_OF_HOLDS, 2);
    uint32_t chaos_ms = (uint32_t)(scenario_now->chaos_us / 1000);
    int64_t first_us = 1000 * (int64_t)chance_below(&of_tools, chaos_ms / 2 + 1);
    uint32_t first_tool = chance_below(&of_tools, 64);

    for (uint32_t i = 0; i < HOLDS + TOOL_HOLDS; i++) {
        struct holder *holder = &holders[i];

        *holder = (struct holder){
            .inquiry = {.patience_us = 15000000, .send = holder_send, .answered = holder_answered, .node = i},
            .is_over = true};
        if (i < HOLDS && (scenario_now->swarm >> SWARM_HOLDS & 1)) {
            holder_begin(holder, &chance, 0, chaos_ms);
        } else if (i >= HOLDS && (scenario_now->swarm >> SWARM_TOOL_HOLDS & 1)) {
            holder->tool = tool_at(first_tool + i);
            holder->undo = slice_starts_with(holder->tool, "undo_");
            holder_begin(holder, &of_tools, first_us, TOOL_HOLDS_WITHIN_MS);
        }
    }
}

bool holders_are_done(void)
{
    bool done = true;

    for (uint32_t i = 0; i < HOLDS + TOOL_HOLDS; i++) {
        done = done && holders[i].is_over && holders[i].until_us < world->now_us;
    }
    return done;
}

static bool is_about(const struct holder *holder, struct slice tool, bool is_undo)
{
    return holder->tool.ptr ? slice_equal(holder->tool, tool) && is_undo <= holder->undo : !is_undo;
}

bool holders_forbid(struct slice namespace, struct slice tool, bool is_undo, int64_t at_us)
{
    for (uint32_t i = 0; i < HOLDS + TOOL_HOLDS && slice_equal(namespace, NAMESPACE); i++) {
        const struct holder *holder = &holders[i];

        if (holder->from_us > 0 && at_us > holder->from_us && at_us < holder->to_us &&
            is_about(holder, tool, is_undo)) {
            return true;
        }
    }
    return false;
}
