/* The server as a whole: it starts, ends, comes back, and has a clock. See pg.h. */
#include <string.h>

#include "tests/sim/pg_state.h"

enum { BLOCK_BYTES = 1 << 20, SLOW_US = 200 };

/* A process has one server. The memory that it took from malloc() serves the next run. */
static struct pg server;

struct pg *pg_new(void)
{
    struct pg *pg = &server;
    struct arena arena = pg->arena;
    struct pg_work *works = pg->all_works;

    if (arena.block_bytes == 0) {
        arena_init(&arena, BLOCK_BYTES);
    }
    arena_reset(&arena); /* a run that ended by a violation left the arena as it was */
    memset(pg, 0, offsetof(struct pg, cache));
    pg->fate = NULL;
    pg->on_turn = pg->on_lost = NULL;
    pg->arena = arena;
    pg->all_works = works;
    for (struct pg_work *work = works; work; work = work->all) {
        arena_reset(&work->arena);
        work->next = pg->spare_work;
        pg->spare_work = work;
    }
    pg->up = true;
    pg->slow_us = SLOW_US;
    pg->timeline = 1;
    pg->last_pid = 1000;
    rows_init(pg);
    return pg;
}

void pg_fini(struct pg *pg)
{
    pg->up = false; /* pg_new() takes the memory back */
    pg->session_count = 0;
}

int64_t pg_clock_us(const struct pg *pg)
{
    return (WORLD_START_MS + pg->clock_offset_ms) * 1000 + world->now_us;
}

int64_t pg_clock_ms(const struct pg *pg)
{
    return pg_clock_us(pg) / 1000;
}

bool pg_is_up(const struct pg *pg)
{
    return pg->up;
}

size_t pg_session_count(const struct pg *pg)
{
    return pg->session_count;
}

void pg_on_commit(struct pg *pg, enum commit_fate (*fate)(struct pg_session *session))
{
    pg->fate = fate;
}

void pg_on_turn(struct pg *pg, void (*confirmed)(const struct committed_turn *turn))
{
    pg->on_turn = confirmed;
}

void pg_on_lost(struct pg *pg, void (*lost)(const struct committed_turn *turn))
{
    pg->on_lost = lost;
}

void pg_set_clock(struct pg *pg, int64_t offset_ms)
{
    pg->clock_offset_ms = offset_ms;
}

void pg_set_slow(struct pg *pg, int64_t statement_us_max)
{
    pg->slow_us = statement_us_max;
}

void pg_set_full(struct pg *pg, void (*refused)(void))
{
    pg->full = refused;
}

/* --- faults --- */

static void on_back(struct event *event)
{
    container_of(event, struct pg, back)->up = true;
}

static void go_down(struct pg *pg, int64_t down_us)
{
    pg->up = false;
    for (size_t i = pg->session_count; i-- > 0;) {
        if (i < pg->session_count) { /* a client that was told may have ended other sessions */
            session_end(pg->sessions[i], true);
        }
    }
    if (pg->back.heap_index == 0 || pg->back.at_us < world->now_us + down_us) {
        world_at(&pg->back, down_us, on_back);
    }
}

void pg_restart(struct pg *pg, int64_t down_us)
{
    go_down(pg, down_us);
    rows_lose(pg, INT64_MAX, true);
}

void pg_fail_over(struct pg *pg, int64_t down_us, int64_t lose_us)
{
    CHECK(lose_us >= 0 && lose_us <= PG_LOSE_US_MAX);
    go_down(pg, down_us);
    rows_lose(pg, lose_us > 0 ? world->now_us - lose_us : INT64_MAX, false);
    pg->timeline++;
}

void pg_terminate(struct pg *pg, uint32_t which)
{
    if (pg->session_count > 0) {
        session_terminate(pg->sessions[which % pg->session_count]);
    }
}

/* --- what statements ask of the server --- */

enum pg_progress pg_fail(struct pg_call *call, const char *sqlstate)
{
    call->sqlstate = sqlstate;
    return PG_ERROR;
}

int pg_timeline(const struct pg_call *call)
{
    return call->pg->timeline;
}

int64_t pg_random(struct pg_call *call, int64_t below)
{
    (void)call;
    CHECK(below > 0);
    return below <= UINT32_MAX ? world_below(STREAM_POSTGRES, (uint32_t)below)
                               : (int64_t)(chance_next(&world->streams[STREAM_POSTGRES]) % (uint64_t)below);
}

struct uuid pg_new_id(struct pg_call *call)
{
    int64_t ms = pg_clock_ms(call->pg);
    struct uuid id;

    for (size_t i = 0; i < 16; i += 8) {
        uint64_t chance = chance_next(&world->streams[STREAM_POSTGRES]);

        memcpy(id.bytes + i, &chance, 8);
    }
    for (size_t i = 0; i < 6; i++) {
        id.bytes[i] = (uint8_t)(ms >> (40 - 8 * i));
    }
    id.bytes[6] = (uint8_t)((id.bytes[6] & 15) | 112);
    id.bytes[8] = (uint8_t)((id.bytes[8] & 63) | 128);
    return id;
}
