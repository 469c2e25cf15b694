/* Lets things go wrong at the times of the scenario. Each mishap ends by itself, at the latest when the world is
 * healed. */
#include "tests/sim/drive.h"

#include <string.h>

#include "tests/sim/network.h"
#include "tests/sim/pg.h"

struct trouble {
    struct event begin, end;
    const struct mishap *mishap;
};

static struct {
    struct trouble troubles[FAULTS_MAX];
    uint64_t commits;     /* commits since the beginning */
    uint64_t next_commit; /* the commit that next_fate is for; 0 for none */
    int next_fate;
    struct event strike; /* fires right after a commit */
    int strike_fate;
    uint32_t strike_node;
    int64_t strike_us; /* the length of the freeze */
    struct event revival;
    bool are_begun;
} mishaps;

static struct node *node_of(const struct mishap *mishap)
{
    return &nodes[mishap->node % scenario_now->node_count];
}

/* --- engines --- */

static void start(struct node *node)
{
    if (!node->up) {
        outcome_so_far->restarts++;
        node_start(node, &scenario_now->options);
    }
}

static void on_restart(struct event *event)
{
    start(node_of(container_of(event, struct trouble, end)->mishap));
}

/* Lets an engine leave as soon as it can, and starts it again. */
static void on_drained(struct event *event)
{
    struct trouble *trouble = container_of(event, struct trouble, end);
    struct node *node = node_of(trouble->mishap);

    if (node->up) {
        world_at(&trouble->end, 100000, on_drained);
    } else {
        start(node);
    }
}

static void on_mended(struct event *event)
{
    const struct trouble *trouble = container_of(event, struct trouble, end);
    struct node *node = node_of(trouble->mishap);

    if (trouble->mishap->kind == FAULT_CUT) {
        node->cut = false;
    } else if (trouble->mishap->kind == FAULT_SLOW) {
        node->slow_percent = 0;
    } else if (trouble->mishap->kind == FAULT_PG_SLOW) {
        pg_set_slow(world->pg, 200);
    } else if (trouble->mishap->kind == FAULT_PG_FULL) {
        pg_set_full(world->pg, NULL);
    }
}

static void freeze(struct node *node, int64_t for_us, bool now)
{
    if (!node_is_running(node)) {
        return;
    }
    outcome_so_far->freezes++;
    if (for_us > scenario_now->options.lease_ms * 1000) {
        see(SEEN_FREEZE);
    }
    (now ? node_freeze_now : node_freeze)(node, for_us);
}

static void kill(struct node *node)
{
    if (node->up) {
        outcome_so_far->kills++;
        see(SEEN_KILL);
        node_kill(node);
    }
}

static void drain(struct trouble *trouble, struct node *node)
{
    if (node_is_running(node) && !node->draining) {
        outcome_so_far->drains++;
        see(SEEN_DRAIN);
        node_drain(node, trouble->mishap->for_us / 1000);
    }
    world_at(&trouble->end, trouble->mishap->for_us + 100000, on_drained);
}

/* --- the other things --- */

static const int fates[] = {COMMIT_FAILS, COMMIT_WARNS, COMMIT_LOST_BEFORE, COMMIT_LOST_AFTER,
                            COMMIT_LATE,  POINT_FREEZE, POINT_KILL,         POINT_KILL_LATE};

static void shift_clock(struct node *node, uint32_t variant)
{
    int64_t shift_ms = (int64_t)(variant >> 2) % 10000;

    if (variant & 1) {
        node->wall_offset_ms += variant & 2 ? shift_ms : -shift_ms;
    } else { /* the machine is suspended; CLOCK_BOOTTIME counts that time, so this equals a freeze */
        freeze(node, shift_ms * 500, true);
    }
}

static void commit_soon(uint32_t variant)
{
    mishaps.next_commit = mishaps.commits + 1 + variant % 8;
    mishaps.next_fate = fates[(variant >> 8) % COUNT_OF(fates)];
    mishaps.strike_us = scenario_now->options.lease_ms * (1200 + (variant >> 16) % 1800);
}

static void on_no_room(void)
{
    see(SEEN_PG_FULL);
}

static void on_trouble(struct event *event)
{
    struct trouble *trouble = container_of(event, struct trouble, begin);
    const struct mishap *mishap = trouble->mishap;
    struct node *node = node_of(mishap);

    switch (mishap->kind) {
    case FAULT_KILL:
        kill(node);
        world_at(&trouble->end, mishap->for_us, on_restart);
        return;
    case FAULT_FREEZE:
        freeze(node, mishap->for_us, false);
        return;
    case FAULT_DRAIN:
        drain(trouble, node);
        return;
    case FAULT_START:
        start(node);
        return;
    case FAULT_CUT:
        node->cut = true;
        see(SEEN_CUT);
        world_at(&trouble->end, mishap->for_us, on_mended);
        return;
    case FAULT_SLOW:
        node->slow_percent = 1 + mishap->variant % 400;
        world_at(&trouble->end, mishap->for_us, on_mended);
        return;
    case FAULT_ENGINE_CLOCK:
        shift_clock(node, mishap->variant);
        return;
    case FAULT_PG_RESTART:
        see(SEEN_PG_RESTART);
        pg_restart(world->pg, mishap->for_us);
        return;
    case FAULT_PG_FAIL_OVER:
        see(SEEN_PG_FAIL_OVER);
        pg_fail_over(world->pg, mishap->for_us, 0); /* the standby is synchronous: nothing acknowledged may be lost */
        return;
    case FAULT_PG_TERMINATE:
        if (pg_session_count(world->pg) > 0) {
            see(SEEN_PG_TERMINATE);
            pg_terminate(world->pg, mishap->variant);
        }
        return;
    case FAULT_PG_SLOW:
        pg_set_slow(world->pg, 1000 + mishap->variant % 300000);
        world_at(&trouble->end, mishap->for_us, on_mended);
        return;
    case FAULT_PG_CLOCK:
        pg_set_clock(world->pg, (mishap->variant & 1 ? 1 : -1) * (int64_t)(mishap->variant >> 1) % 3000);
        return;
    case FAULT_COMMIT:
        commit_soon(mishap->variant);
        return;
    case FAULT_TOOLS:
        tools_disturb(mishap->for_us, mishap->variant);
        return;
    case FAULT_PG_FULL:
        pg_set_full(world->pg, on_no_room);
        world_at(&trouble->end, mishap->for_us, on_mended);
        return;
    case FAULT_KIND_COUNT:
        break;
    }
    UNREACHABLE();
}

/* --- commits --- */

static void on_revival(struct event *event)
{
    (void)event;
    for (uint32_t i = 0; i < scenario_now->node_count; i++) {
        start(&nodes[i]);
    }
}

static void on_strike(struct event *event)
{
    struct node *node = &nodes[mishaps.strike_node];

    (void)event;
    if (mishaps.strike_fate == POINT_FREEZE) {
        freeze(node, mishaps.strike_us, true);
        return;
    }
    for (uint32_t i = 0; i < scenario_now->node_count; i++) {
        if (mishaps.strike_fate == POINT_CRASH || &nodes[i] == node) {
            kill(&nodes[i]);
        }
    }
    world_at(&mishaps.revival, 100000, on_revival);
}

/* Strikes after a commit that is done, before its answer arrives. */
static void strike(const struct pg_session *session, int fate)
{
    const struct node *node = connection_node(session);

    if (node) {
        mishaps.strike_fate = fate;
        mishaps.strike_node = node->index;
        world_at(&mishaps.strike, 0, on_strike);
    }
}

void mishaps_item_acted(void)
{
    bool kills = scenario_now->swarm >> FAULT_KILL & 1 && scenario_now->point_count == 0;

    if (mishaps.are_begun && !world->is_healed && kills && world_percent(STREAM_FAULT, 60)) {
        mishaps.strike_fate = POINT_CRASH;
        world_at(&mishaps.strike, 0, on_strike);
    }
}

static enum commit_fate saw_fate(enum commit_fate fate)
{
    static const enum seen seen[] = {
        [COMMIT_OK] = SEEN_COUNT,
        [COMMIT_FAILS] = SEEN_COMMIT_FAILS,
        [COMMIT_WARNS] = SEEN_COMMIT_WARNS,
        [COMMIT_LOST_BEFORE] = SEEN_COMMIT_LOST_BEFORE,
        [COMMIT_LOST_AFTER] = SEEN_COMMIT_LOST_AFTER,
        [COMMIT_LATE] = SEEN_COMMIT_LATE,
    };

    if (fate != COMMIT_OK) {
        see(seen[fate]);
    }
    return fate;
}

static int fate_of_point(void)
{
    for (uint32_t i = 0; i < scenario_now->point_count; i++) {
        if (scenario_now->points[i].commit == mishaps.commits) {
            return scenario_now->points[i].fate;
        }
    }
    return COMMIT_OK;
}

static int draw_fate(void)
{
    if (scenario_now->point_count > 0) {
        mishaps.strike_us = scenario_now->options.lease_ms * 1500;
        return fate_of_point();
    }
    if (world->is_healed) {
        return COMMIT_OK;
    }
    if (mishaps.commits == mishaps.next_commit) {
        return mishaps.next_fate;
    }
    return world_percent(STREAM_FAULT, scenario_now->commit_percent)
               ? COMMIT_FAILS + (int)world_below(STREAM_FAULT, COMMIT_LATE - COMMIT_FAILS + 1)
               : COMMIT_OK;
}

static enum commit_fate on_commit(struct pg_session *session)
{
    int fate;

    if (!mishaps.are_begun) {
        return COMMIT_OK;
    }
    mishaps.commits++;
    fate = draw_fate();
    if (fate < 0) {
        strike(session, fate);
        return fate == POINT_KILL_LATE ? saw_fate(COMMIT_LATE) : COMMIT_OK;
    }
    return saw_fate((enum commit_fate)fate);
}

uint64_t mishaps_commits(void)
{
    return mishaps.commits;
}

/* --- in time --- */

void mishaps_begin(void)
{
    memset(&mishaps, 0, sizeof(mishaps));
    mishaps.are_begun = true;
    pg_on_commit(world->pg, on_commit);
    for (uint32_t i = 0; i < scenario_now->fault_count; i++) {
        mishaps.troubles[i].mishap = &scenario_now->faults[i];
        world_at(&mishaps.troubles[i].begin, scenario_now->faults[i].at_us, on_trouble);
    }
}

/* Heals the world. Frozen engines wake up by themselves; an engine that leaves is started once it has left. */
void mishaps_heal(void)
{
    for (uint32_t i = 0; i < scenario_now->fault_count; i++) {
        world_cancel(&mishaps.troubles[i].begin);
        if (mishaps.troubles[i].mishap->kind != FAULT_DRAIN) {
            world_cancel(&mishaps.troubles[i].end);
        }
    }
    for (uint32_t i = 0; i < scenario_now->node_count; i++) {
        nodes[i].cut = false;
        nodes[i].slow_percent = 0;
        start(&nodes[i]);
    }
    pg_set_full(world->pg, NULL);
    pg_set_slow(world->pg, 200);
}
