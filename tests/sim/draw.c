/*
 * Draws a scenario from a seed. Each seed has a random half of the kinds of faults, so that no fault hides another one
 * ("swarm"). Settings are small, so that events that are rare with real settings are common here.
 */
#include "tests/sim/scenario.h"

#include "tests/sim/pg.h"
#include "tests/sim/sealing.h"

#define REST_US INT64_C(14000000) /* a run rests 15 s after its last record */

struct sketcher {
    struct chance chance;
    struct scenario *scenario;
    uint32_t saga_count, size;
};

static uint32_t below(struct sketcher *s, uint32_t n)
{
    return chance_below(&s->chance, n);
}

static bool percent(struct sketcher *s, uint32_t n)
{
    return chance_percent(&s->chance, n);
}

static int64_t between(struct sketcher *s, int64_t least, int64_t most)
{
    return least + (int64_t)(chance_next(&s->chance) % (uint64_t)(most - least + 1));
}

/* --- settings --- */

static void draw_options(struct sketcher *s)
{
    static const int64_t leases_ms[] = {1000, 2000, 2000, 3000, 5000, 10000}, parks_ms[] = {1, 20, 200, 1000, 2000};
    struct node_options *options = &s->scenario->options;

    options->lease_ms = leases_ms[below(s, COUNT_OF(leases_ms))];
    options->park_after_ms = parks_ms[below(s, COUNT_OF(parks_ms))];
    options->sagas_max = percent(s, 15) ? 1 + below(s, 3) : 1000;
    options->payload_bytes_max = 65536;
    options->calls_max = percent(s, 33) ? 1 + below(s, 4) : 64;
    options->writers = 1 + (int)below(s, 2);
    options->readers = 1 + (int)below(s, 2);
    options->key_look_ms = percent(s, 10) ? between(s, 100, 5000) : 0;
}

static uint32_t draw_node_count(struct sketcher *s)
{
    uint32_t luck = below(s, 100);

    return luck < 25 ? 1 : luck < 70 ? 2 : luck < 93 ? 3 : 4;
}

static void draw_swarm(struct sketcher *s)
{
    s->scenario->swarm = 0;
    if (percent(s, 5)) {
        return; /* a fine day */
    }
    for (uint32_t i = 0; i < SWARM_COUNT; i++) {
        s->scenario->swarm |= (uint64_t)percent(s, 50) << i;
    }
}

static void draw_holds(struct sketcher *s)
{
    struct chance own =
        chance_of(s->scenario->seed, 0x5ce7a, 5); /* a stream of its own, so that older scenarios stay the same */

    s->scenario->swarm |= (uint64_t)chance_percent(&own, 30) << SWARM_HOLDS;
}

static void draw_bulk(struct sketcher *s)
{
    struct chance own = chance_of(s->scenario->seed, 0x5ce7a, 6);

    s->scenario->swarm |= (uint64_t)chance_percent(&own, 50) << SWARM_BULK;
    s->scenario->options.bulk_rate = chance_percent(&own, 50) ? 0 : 2 + chance_below(&own, 20);
}

static void draw_notify(struct sketcher *s)
{
    struct chance own = chance_of(s->scenario->seed, 0x5ce7a, 7);

    s->scenario->swarm |= (uint64_t)chance_percent(&own, 30) << SWARM_NOTIFY;
}

static void draw_schedule(struct sketcher *s)
{
    struct chance own = chance_of(s->scenario->seed, 0x5ce7a, 8);

    s->scenario->swarm |= (uint64_t)chance_percent(&own, 20) << SWARM_SCHEDULE;
}

static void draw_tool_holds(struct sketcher *s)
{
    struct chance own = chance_of(s->scenario->seed, 0x5ce7a, 9);

    s->scenario->swarm |= (uint64_t)chance_percent(&own, 25) << SWARM_TOOL_HOLDS;
}

static void draw_sealing(struct sketcher *s)
{
    struct chance own = chance_of(s->scenario->seed, 0x5ce7a, 10);

    s->scenario->options.sealing = chance_percent(&own, 25) ? 1 + chance_below(&own, SEALING_COUNT - 1) : SEALING_NONE;
}

static bool swarms(const struct sketcher *s, unsigned bit)
{
    return s->scenario->swarm >> bit & 1;
}

/* --- what people and agents do --- */

static struct act *add_act(struct sketcher *s, enum act_kind kind, int64_t at_us, uint32_t saga)
{
    struct scenario *scenario = s->scenario;

    if (scenario->act_count == ACTS_MAX) {
        return &scenario->acts[ACTS_MAX - 1];
    }
    struct act *act = &scenario->acts[scenario->act_count++];

    *act = (struct act){.kind = kind,
                        .id = scenario->act_count,
                        .at_us = at_us,
                        .saga = saga,
                        .node = below(s, NODES_MAX),
                        .variant = (uint32_t)chance_next(&s->chance)};
    return act;
}

static int64_t later(struct sketcher *s, int64_t at_us)
{
    int64_t left_us = s->scenario->chaos_us - at_us;

    return at_us + between(s, 0, percent(s, 60) && left_us > 1000000 ? 1000000 : left_us > 0 ? left_us : 0);
}

/* Draws the variant of a start. A third of the starts has a step that is refused. */
static uint32_t draw_variant(struct sketcher *s)
{
    uint32_t variant = (uint32_t)chance_next(&s->chance) & ~UINT32_C(0xff);

    return percent(s, 40) ? variant | UINT32_C(1) << below(s, 4) : variant;
}

static void draw_around(struct sketcher *s, const struct act *start)
{
    static const struct {
        enum act_kind kind;
        uint32_t percent;
    } table[] = {{ACT_START_AGAIN, 20}, {ACT_SIGNAL, 35}, {ACT_SIGNAL, 25}, {ACT_ABORT, 8},
                 {ACT_PAUSE, 8},        {ACT_RESUME, 8},  {ACT_GET, 20}};
    uint32_t id = start->id;
    int64_t at_us = start->at_us;

    for (size_t i = 0; i < COUNT_OF(table); i++) {
        if (percent(s, table[i].percent)) {
            (void)add_act(s, table[i].kind, later(s, at_us), id);
        }
    }
}

static void draw_open(struct sketcher *s, int64_t at_us)
{
    const struct act *open = add_act(s, ACT_OPEN, at_us, 0);
    uint32_t id = open->id, calls = 1 + below(s, 3);

    for (uint32_t i = 0; i < calls; i++) {
        at_us = later(s, at_us);
        const struct act *call = add_act(s, ACT_CALL, at_us, id);

        if (percent(s, 30)) { /* the agent forgets that it has called */
            uint32_t variant = call->variant;

            add_act(s, ACT_CALL, later(s, at_us), id)->variant = variant;
        }
    }
    if (percent(s, 80)) {
        (void)add_act(s, percent(s, 75) ? ACT_COMPLETE : ACT_ABORT, later(s, at_us), id);
    }
}

/* An agent comes back to its run after that has rested, maybe with a call of another tool. */
static void draw_return(struct sketcher *s, const struct act *call)
{
    uint32_t variant = call->variant;
    int64_t at_us = call->at_us;

    for (uint32_t times = 1 + below(s, 3); times > 0; times--) {
        at_us += between(s, REST_US, 2 * REST_US);
        add_act(s, ACT_CALL, at_us, 0)->variant = percent(s, 70) ? variant : variant ^ below(s, 8) << 1;
    }
}

static void draw_acts(struct sketcher *s)
{
    uint32_t starts = percent(s, 25) ? 1 : 2 + below(s, 2 + s->size * 5 / 100);
    int64_t from_us = s->scenario->chaos_us * 2 / 3;

    for (uint32_t i = 0; i < starts; i++) {
        struct act *start = add_act(s, ACT_START, between(s, 0, from_us), below(s, s->saga_count));

        start->variant = draw_variant(s);
        draw_around(s, start);
    }
    if (percent(s, 25)) {
        draw_open(s, between(s, 0, from_us));
    }
    if (percent(s, 10)) {
        const struct act *call = add_act(s, ACT_CALL, between(s, 0, from_us), 0);
        uint32_t variant = call->variant;

        if (percent(s, 50)) {
            add_act(s, ACT_CALL, later(s, call->at_us), 0)->variant = variant;
        }
        if (percent(s, 40)) {
            draw_return(s, call);
        }
    }
}

/* Turns some of the plain paths of the definitions into programs, which take time to evaluate and may fail. */
static void draw_programs(struct sketcher *s, struct arena *arena, uint32_t percent_bad)
{
    struct slice text = s->scenario->definitions;
    uint32_t often = 5 + below(s, 40);
    struct buffer out;

    buffer_init(&out, 2 * text.len + 1024);
    for (size_t i = 0; i < text.len; i++) {
        bool ends = i + 1 < text.len && text.ptr[i] == ' ' && text.ptr[i + 1] == '}';

        if (ends && percent(s, often)) {
            buffer_put_text(&out, percent(s, percent_bad) ? " | error" : " | .");
        }
        buffer_put_char(&out, text.ptr[i]);
    }
    CHECK(!out.overflow);
    s->scenario->definitions = arena_slice(arena, buffer_slice(&out));
    buffer_fini(&out);
}

/* Draws the readers, last and from a stream of their own, so that the rest of the scenario stays the same. */
static void draw_asks(struct sketcher *s, struct arena *arena)
{
    struct scenario *scenario = s->scenario;
    uint32_t others = scenario->act_count, count = 3 + below(s, 20);

    if (!percent(s, 25)) {
        return;
    }
    for (uint32_t i = 0; i < count && scenario->act_count < ACTS_MAX; i++) {
        const struct act *about = &scenario->acts[below(s, others)];
        bool begins = about->kind == ACT_START || about->kind == ACT_OPEN;

        (void)add_act(s, ACT_ASK, between(s, 0, scenario->chaos_us), begins && percent(s, 80) ? about->id : 0);
    }
    if (percent(s, 50)) {
        draw_programs(s, arena, percent(s, 30) ? 12 : 0);
    }
    if (percent(s, 30)) {
        scenario->options.standbys = below(s, UINT32_C(1) << scenario->node_count);
    }
}

/* --- faults --- */

static int64_t draw_length_us(struct sketcher *s, enum fault_kind kind)
{
    int64_t lease_us = s->scenario->options.lease_ms * 1000;

    switch (kind) {
    case FAULT_KILL:
        return between(s, 1000, percent(s, 50) ? 300000 : lease_us * 2);
    case FAULT_FREEZE:
        return percent(s, 60) ? between(s, lease_us * 5 / 4, lease_us * 3) : between(s, 1000, lease_us);
    case FAULT_CUT:
        return between(s, 1000, lease_us * 2);
    case FAULT_DRAIN:
        return between(s, 0, 2000000);
    case FAULT_SLOW:
    case FAULT_PG_SLOW:
    case FAULT_TOOLS:
        return between(s, 10000, 5000000);
    case FAULT_PG_RESTART:
    case FAULT_PG_FAIL_OVER:
        return between(s, 1000, percent(s, 70) ? 500000 : 3000000);
    case FAULT_START:
    case FAULT_ENGINE_CLOCK:
    case FAULT_PG_TERMINATE:
    case FAULT_PG_CLOCK:
    case FAULT_COMMIT:
    case FAULT_PG_FULL: /* draw_full_disk() draws this one */
    case FAULT_KIND_COUNT:
        break;
    }
    return 0;
}

static void draw_faults(struct sketcher *s)
{
    static const enum fault_kind often[] = {FAULT_KILL, FAULT_COMMIT, FAULT_FREEZE, FAULT_COMMIT};
    struct scenario *scenario = s->scenario;
    uint32_t count = percent(s, 50) ? 2 + below(s, 4) : 2 + below(s, 14);

    for (uint32_t i = 0; i < count && scenario->fault_count < FAULTS_MAX; i++) {
        enum fault_kind kind =
            percent(s, 40) ? often[below(s, COUNT_OF(often))] : (enum fault_kind)below(s, FAULT_SWARM_COUNT);

        if (!swarms(s, kind)) {
            continue;
        }
        scenario->faults[scenario->fault_count++] = (struct mishap){.kind = kind,
                                                                    .at_us = between(s, 0, scenario->chaos_us),
                                                                    .for_us = draw_length_us(s, kind),
                                                                    .node = below(s, NODES_MAX),
                                                                    .variant = (uint32_t)chance_next(&s->chance)};
    }
}

static void add_fault(struct sketcher *s, enum fault_kind kind, int64_t at_us, int64_t for_us, uint32_t node)
{
    struct scenario *scenario = s->scenario;

    if (scenario->fault_count < FAULTS_MAX) {
        scenario->faults[scenario->fault_count++] = (struct mishap){
            .kind = kind, .at_us = at_us, .for_us = for_us, .node = node, .variant = (uint32_t)chance_next(&s->chance)};
    }
}

/*
 * Fills the disk for a while. Meanwhile engines lose their leases or die, with what they could not append. The drawing
 * has a stream of its own, like draw_asks().
 */
static void draw_full_disk(struct sketcher *s)
{
    struct scenario *scenario = s->scenario;
    int64_t lease_us = scenario->options.lease_ms * 1000, at_us, for_us;

    if (!percent(s, 15)) {
        return;
    }
    at_us = between(s, 0, scenario->chaos_us);
    for_us = between(s, 100000, lease_us * 4);
    if (scenario->chaos_us < at_us + for_us) {
        scenario->chaos_us = at_us + for_us; /* healing would end the fault early, so the chaos lasts as long */
    }
    add_fault(s, FAULT_PG_FULL, at_us, for_us, 0);
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        if (percent(s, 60)) {
            enum fault_kind kind = percent(s, 70) ? FAULT_FREEZE : percent(s, 60) ? FAULT_KILL : FAULT_CUT;

            add_fault(s, kind, between(s, at_us, at_us + for_us), between(s, lease_us / 2, lease_us * 2), i);
        }
    }
}

void scenario_draw(struct scenario *scenario, uint64_t seed, struct arena *arena)
{
    struct sketcher sketcher = {.chance = chance_of(seed, 0x5ce7a, 1), .scenario = scenario}, *s = &sketcher;
    struct chance definitions = chance_of(seed, 0x5ce7a, 2);
    struct buffer text;

    *scenario = (struct scenario){.seed = seed};
    s->size = percent(s, 70) ? below(s, 50) : below(s, 101);
    scenario->node_count = draw_node_count(s);
    scenario->chaos_us = between(s, 1000000, percent(s, 75) ? 4000000 : 15000000);
    draw_options(s);
    draw_swarm(s);
    draw_holds(s);
    draw_bulk(s);
    draw_notify(s);
    draw_schedule(s);
    draw_tool_holds(s);
    draw_sealing(s);
    scenario->commit_percent = swarms(s, SWARM_COMMITS) ? 1 + below(s, percent(s, 80) ? 5 : 25) : 0;
    scenario->tool_percent = swarms(s, SWARM_TOOLS) ? 5 + below(s, percent(s, 60) ? 20 : 60) : 0;
    buffer_init(&text, 262144);
    /* Calls of one saga wait for several holds only where they are to begin at once. */
    draw_definitions(&definitions, &text, &s->saga_count, s->size, swarms(s, SWARM_TOOL_HOLDS));
    scenario->definitions = arena_slice(arena, buffer_slice(&text));
    buffer_fini(&text);
    draw_acts(s);
    draw_faults(s);
    s->chance = chance_of(seed, 0x5ce7a, 3);
    draw_asks(s, arena);
    s->chance = chance_of(seed, 0x5ce7a, 4);
    draw_full_disk(s);
}
