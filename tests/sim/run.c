/*
 * One run of a scenario. Engines start and definitions are registered. Then comes chaos, then the world is healed, and
 * everything has to end. At last the judge looks at what is left. A broken invariant ends the run at once.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/drive.h"
#include "tests/sim/hook.h"
#include "tests/sim/pg.h"
#include "tests/sim/sealing.h"

#define SETUP_MAX_US INT64_C(600000000)
#define SETTLE_MAX_US INT64_C(1800000000) /* after this time, whatever has not ended counts as lost */
#define TICK_US 100000
#define QUIET_US 500000 /* nothing more may happen after the last end */
#define EVENTS_MAX UINT64_C(20000000)
#define SHARDS 64

uint64_t run_until;
const struct scenario *scenario_now;
struct outcome_of_run *outcome_so_far;

const char *const sim_seen[SEEN_COUNT] = {
#define X(name, text) [SEEN_##name] = text,
    SEEN_MAP(X)
#undef X
};

enum phase { PHASE_STARTING, PHASE_DEFINING, PHASE_CHAOS, PHASE_SETTLING, PHASE_QUIET, PHASE_OVER };

static struct {
    struct world world;
    enum phase phase;
    int64_t begun_us, healed_us, quiet_us;
    struct event tick;
    struct event starts[NODES_MAX];
    struct inquiry define;
    bool is_defined;
    int64_t epochs[SHARDS]; /* the epoch of the newest turn of each shard */
} run;

int64_t drive_begun_us(void)
{
    return run.begun_us;
}

/* --- phases --- */

static void heal(void)
{
    world_trace("healed");
    world->is_healed = true;
    run.phase = PHASE_SETTLING;
    run.healed_us = world->now_us;
    mishaps_heal();
    tools_heal();
    clients_heal();
    clerk_heal();
}

static void begin(void)
{
    world_trace("begun");
    run.phase = PHASE_CHAOS;
    run.begun_us = world->now_us;
    clients_begin();
    people_begin();
    holders_begin();
    clerk_begin();
    jobbers_begin();
    mishaps_begin();
}

static void define_send(struct inquiry *inquiry, struct engine *engine, struct engine_request *request)
{
    (void)inquiry;
    request->actor = SLICE("admin");
    request->in.define.document = arena_slice(request->arena, scenario_now->definitions);
    engine_define(engine, request);
}

static void define_answered(struct inquiry *inquiry, const struct engine_request *request)
{
    if (request && request->code == ERR_OK) {
        run.is_defined = true; /* on_tick() goes on */
        return;
    }
    if (request && !err_retryable(request->code)) {
        struct fault first = request->faults.count ? request->faults.items[0]
                                                   : (struct fault){.pointer = SLICE("-"), .detail = SLICE("-")};

        world_violate("SIM", "the definitions are refused: %s: %.*s: %.*s", request->err.message,
                      SLICE_ARG(first.pointer), SLICE_ARG(first.detail));
    }
    inquiry_go(inquiry, 50000);
}

static bool some_are_ready(void)
{
    bool ready = false;

    for (uint32_t i = 0; i < scenario_now->node_count; i++) {
        if (nodes[i].refused) {
            world_violate("SIM", "engine %u refuses to run on this database", (unsigned)i);
        }
        ready = ready || nodes[i].ready;
    }
    return ready;
}

static bool is_at_rest(void)
{
    for (uint32_t i = 0; i < scenario_now->node_count; i++) {
        if (!node_is_running(&nodes[i]) || nodes[i].draining) {
            return false; /* the engine goes on with what it had */
        }
    }
    return clients_are_done() && people_are_done() && holders_are_done() && clerk_is_done() && jobbers_are_done() &&
           check_unfinished() == 0 && !check_untold();
}

static void too_late(void)
{
    const char *untold = check_untold();
    char what[128];

    if (untold && clients_are_done() && check_unfinished() == 0) {
        world_violate("I22", "30 minutes after the last fault no receiver was told %s", untold);
    }
    clients_describe(what, sizeof(what));
    world_violate("I6", "30 minutes after the last fault something has not ended: %s; the judge counts %zu", what,
                  check_unfinished());
}

static void on_tick(struct event *event)
{
    (void)event;
    switch (run.phase) {
    case PHASE_STARTING:
        if (some_are_ready()) {
            run.phase = PHASE_DEFINING;
            inquiry_go(&run.define, 0);
        }
        break;
    case PHASE_DEFINING:
        if (run.is_defined && (!hook_is_wanted() || hook_is_known())) {
            begin();
        }
        break;
    case PHASE_CHAOS:
        if (world->now_us - run.begun_us >= scenario_now->chaos_us) {
            heal();
        }
        break;
    case PHASE_SETTLING:
        if (is_at_rest()) {
            run.phase = PHASE_QUIET;
            run.quiet_us = world->now_us;
        } else if (world->now_us - run.healed_us > SETTLE_MAX_US) {
            too_late();
        }
        break;
    case PHASE_QUIET:
        if (!is_at_rest()) { /* an engine that was frozen still had work */
            run.phase = PHASE_SETTLING;
        } else if (world->now_us - run.quiet_us >= QUIET_US) {
            run.phase = PHASE_OVER;
        }
        break;
    case PHASE_OVER:
        break;
    }
    if (run.phase < PHASE_CHAOS && world->now_us > SETUP_MAX_US) {
        world_violate("SIM", "the engines never became ready, or never took the definitions");
    }
    world_at(&run.tick, TICK_US, on_tick);
}

/* --- what is seen on the way --- */

/* Notices a saga that no client was told of, because the answer was lost or another saga started it. It is looked
 * after, too. */
static void notice_start(const struct committed_turn *turn)
{
    static const char start[] = "[{\"type\":\"saga.started\",\"data\":{\"saga\":\"";

    if (turn->seq == 1 && slice_starts_with(turn->payload, start) && turn->payload.ptr[sizeof(start) - 1] != '~') {
        drive_follow(turn->saga, false, NOT_TOLD);
    }
}

static void notice_bulk(const struct committed_turn *turn)
{
    static const char bulk[] = "\"bulk\":\"";

    if (memmem(turn->payload.ptr, turn->payload.len, bulk, sizeof(bulk) - 1)) {
        mishaps_item_acted();
    }
}

static void see_turn(const struct committed_turn *turn)
{
    int64_t *epoch = &run.epochs[turn->shard % SHARDS];

    outcome_so_far->turns++;
    outcome_so_far->takeovers += *epoch != 0 && turn->epoch > *epoch;
    *epoch = turn->epoch;
    notice_start(turn);
    notice_bulk(turn);
    if (world->is_traced) {
        char id[UUID_TEXT_BYTES];

        uuid_text(&turn->saga.uuid, id);
        printf("    turn %u of saga %s, epoch %lld:\n    %.*s\n", (unsigned)turn->seq, id, (long long)turn->epoch,
               SLICE_ARG(turn->payload));
    }
    check_turn(turn);
}

static void on_turn(const struct committed_turn *turn)
{
    if (turn) {
        const struct committed_turn open = sealing_open_turn(turn);

        if (!slice_equal(open.payload, turn->payload)) {
            see(SEEN_SEALED);
        }
        see_turn(&open);
    } else {
        check_turn(NULL);
    }
}

static void look_at_tools(void)
{
    for (size_t i = 0; i < tool_book.count; i++) {
        const struct tool_entry *entry = &tool_book.entries[i];

        if (entry->is_probe) {
            see(SEEN_PROBED);
        }
        if (entry->is_undo && entry->effect) {
            see(SEEN_UNDONE);
        }
        if (entry->voided) {
            see(SEEN_VOIDED);
        }
        if (entry->effect && entry->answered_us == 0) {
            see(SEEN_TOOL_SILENT);
        }
    }
}

/* --- the whole --- */

static void on_start(struct event *event)
{
    ptrdiff_t i = event - run.starts;

    node_start(&nodes[i], &scenario_now->options);
}

static void live_through(void)
{
    for (uint32_t i = 0; i < scenario_now->node_count; i++) {
        world_at(&run.starts[i], i * 20000, on_start);
    }
    run.define = (struct inquiry){.patience_us = 10000000, .send = define_send, .answered = define_answered};
    world_at(&run.tick, TICK_US, on_tick);
    while (run.phase != PHASE_OVER) {
        if (run_until && world->event_count >= run_until) {
            return;
        }
        if (!world_step()) {
            world_violate("SIM", "nothing will ever happen again");
        }
        if (world->event_count > EVENTS_MAX) {
            world_violate("SIM", "more than %llu events", (unsigned long long)EVENTS_MAX);
        }
    }
    check_end();
}

static void build(const struct scenario *scenario, bool traced, struct outcome_of_run *out)
{
    memset(&run, 0, sizeof(run));
    memset(out, 0, sizeof(*out));
    memset(nodes, 0, sizeof(nodes));
    scenario_now = scenario;
    outcome_so_far = out;
    world = &run.world;
    world_init(world, scenario->seed);
    world->is_traced = traced;
    world->pg = pg_new();
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        nodes[i].index = i;
    }
    tools_init();
    check_begin(scenario->definitions);
    hook_begin(scenario->swarm >> SWARM_NOTIFY & 1 ? check_told : NULL);
    clients_init();
    pg_on_turn(world->pg, on_turn);
    pg_on_commit(world->pg, NULL);
}

static void tear_down(struct outcome_of_run *out)
{
    (void)node_enter(NULL);
    look_at_tools();
    out->failed = world->failed;
    out->hash = world->hash;
    out->events = world->event_count;
    out->commits = mishaps_commits();
    if (world->failed) {
        (void)snprintf(out->invariant, sizeof(out->invariant), "%s", world->invariant);
        (void)snprintf(out->violation, sizeof(out->violation), "%s", world->violation);
    }
    (void)snprintf(out->end, sizeof(out->end), "%lld ms, %u turns", (long long)(world->now_us / 1000),
                   (unsigned)out->turns);
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        memory_drop(&nodes[i].memory);
    }
    check_fini();
    pg_fini(world->pg);
    world_fini(world);
}

void run_scenario(const struct scenario *scenario, bool traced, struct outcome_of_run *out)
{
    build(scenario, traced, out);
    if (setjmp(world->stop) == 0) {
        live_through();
    }
    tear_down(out);
}
