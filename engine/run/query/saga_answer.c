/* See saga_answer.h. */
#include "run/query/saga_answer.h"

#include "base/instant.h"
#include "base/json.h"
#include "run/call/activity.h"
#include "run/call/call_terms.h"
#include "run/request/calling.h"
#include "run/saga/live.h"
#include "store/cases.h"
#include "store/guard.h"

struct settlements { /* read for a saga that left debts, in the arena of its work */
    struct work *work;
    struct debt_settled read;
    struct saga_id saga;
    struct op_key *keys;
    struct slice *steps;
    uint32_t count;
};

/* --- what was settled since its end --- */

static void write_settled(const struct settlements *settlements, const struct debt_settled_row *row,
                          struct json_writer *w)
{
    struct json_walk walk = json_walk(row->body);
    struct slice name, value;

    for (uint32_t i = 0; i < settlements->count; i++) {
        if (uuid_equal(&settlements->keys[i].uuid, &row->key.uuid)) {
            json_object_begin(w, NULL);
            json_write_slice(w, "step", settlements->steps[i]);
            while (json_next_member(&walk, &name, &value)) {
                json_write_raw(w, arena_text(&settlements->work->arena, name), value);
            }
            json_object_end(w);
        }
    }
}

static void on_settlements(struct store_read *read)
{
    const struct settlements *settlements = read->context;
    struct work *work = settlements->work;
    struct json_writer w;

    if (work_read_failed(work, read)) {
        return;
    }
    work->out.len--; /* the brace that ends the saga */
    buffer_put_text(&work->out, ",\"settled\":");
    json_writer_init(&w, &work->out);
    json_array_begin(&w, NULL);
    for (size_t i = 0; i < settlements->read.count; i++) {
        write_settled(settlements, &settlements->read.rows[i], &w);
    }
    json_array_end(&w);
    buffer_put_char(&work->out, '}');
    work_done(work, ERR_OK, NULL);
}

/* The log ends with the saga, so the store is asked which debts somebody has settled since. */
static void ask_for_settlements(struct work *work, const struct saga *saga, uint32_t count)
{
    struct settlements *settlements = arena_alloc(&work->arena, sizeof(*settlements));

    settlements->work = work;
    settlements->saga = saga->id;
    settlements->keys = arena_array(&work->arena, count, sizeof(*settlements->keys));
    settlements->steps = arena_array(&work->arena, count, sizeof(*settlements->steps));
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (saga_has_debt(saga, i)) {
            settlements->keys[settlements->count] = saga->steps[i].forward.key;
            settlements->steps[settlements->count++] = arena_slice(&work->arena, saga->definition->steps[i].id);
        }
    }
    settlements->read =
        (struct debt_settled){.read = {.arena = &work->arena, .done = on_settlements, .context = settlements},
                              .sagas = &settlements->saga,
                              .saga_count = 1};
    store_debt_settled(work->engine->store, &settlements->read);
}

/* --- the breakers that its calls wait at --- */

struct waiting { /* in the arena of its work */
    struct work *work;
    const struct saga *saga; /* read from its log for this work; NULL: it was in memory */
    struct guard_list list;
};

/* Is this a call that has been decided, and waits at the gate of its tool? */
static bool is_at_gate(const struct live *live, const struct want *want)
{
    for (struct list_link *link = live ? list_first(&live->activities) : NULL; link;
         link = list_after(&live->activities, link)) {
        const struct activity *activity = container_of(link, struct activity, link);

        if (want_compare(&activity->want, want) == 0) {
            return activity->state == ACTIVITY_WAITING && activity->admitting;
        }
    }
    return false;
}

/* Would it begin now if the breaker of its tool allowed that? */
static bool may_wait(const struct saga *saga, const struct live *live, const struct want *want, int64_t now_ms)
{
    bool is_call = want->type == WANT_CALL && want->direction == DIRECTION_UNDO && is_at_gate(live, want);

    return (is_call || (want->type == WANT_ADMIT && want->due_ms <= now_ms)) &&
           saga_tool(saga, want->step, want->direction)->breaker.failures > 0;
}

static struct wants wants_of(const struct saga *saga, struct arena *arena)
{
    struct wants wants = {0};

    saga_wants(saga, arena, &wants);
    return wants;
}

/* Returns the breaker at which this want waits; NULL when it waits at none. */
static const struct guard_row *breaker_before(const struct saga *saga, const struct live *live, const struct want *want,
                                              const struct guard_list *list, int64_t now_ms)
{
    if (!may_wait(saga, live, want, now_ms)) {
        return NULL;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (list->rows[i].breaker_state != BREAKER_CLOSED &&
            slice_equal(list->rows[i].tool, saga_tool(saga, want->step, want->direction)->name)) {
            return &list->rows[i];
        }
    }
    return NULL;
}

bool saga_waits_at_breaker(const struct saga *saga, const struct live *live, const struct guard_list *list,
                           int64_t now_ms, struct arena *scratch)
{
    struct wants wants = saga->phase == PHASE_ENDED ? (struct wants){0} : wants_of(saga, scratch);

    for (size_t i = 0; i < wants.count; i++) {
        if (breaker_before(saga, live, &wants.items[i], list, now_ms)) {
            return true;
        }
    }
    return false;
}

static const char *closed_by(const struct saga *saga, const struct want *want, const struct guard_row *row)
{
    const struct tool *tool = saga_tool(saga, want->step, want->direction);
    const struct step *step = &saga->steps[want->step];

    if (row->opened_by.ptr) {
        return "person";
    }
    if (tool->test.ptr) {
        return "test";
    }
    return want->direction == DIRECTION_UNDO || tool->has_probe || effect_is_safe(step->forward.effect) ? "call"
                                                                                                        : "person";
}

static struct breaker_wait wait_at(struct work *work, const struct saga *saga, const struct want *want,
                                   const struct guard_row *row)
{
    struct breaker_wait wait = {.step = want->step,
                                .direction = want->direction,
                                .tool = row->tool,
                                .endpoint = row->endpoint,
                                .since_ms = row->open_since_ms,
                                .until_ms = row->open_until_ms,
                                .opened_by = row->opened_by,
                                .closes = closed_by(saga, want, row)};
    struct slice at = json_string(json_member(row->opened_by, "at"), &work->arena);

    if (at.ptr && !instant_parse(at, &wait.since_ms)) {
        wait.since_ms = 0;
    }
    return wait;
}

static struct breaker_waits find_waits(struct work *work, const struct saga *saga, const struct live *live,
                                       const struct guard_list *list)
{
    struct wants wants = wants_of(saga, &work->arena);
    struct breaker_wait *items = arena_array(&work->arena, wants.count + 1, sizeof(*items));
    size_t count = 0;

    for (size_t i = 0; i < wants.count; i++) {
        const struct want *want = &wants.items[i];
        const struct guard_row *row = breaker_before(saga, live, want, list, loop_wall_ms(work->engine->loop));

        if (row) {
            items[count++] = wait_at(work, saga, want, row);
        }
    }
    return (struct breaker_waits){items, count};
}

static void on_guards(struct store_read *read)
{
    struct waiting *waiting = read->context;
    struct work *work = waiting->work;
    const struct live *live = waiting->saga ? NULL : live_shown(work->engine, work->saga);
    const struct saga *saga = live ? &live->saga : waiting->saga;

    if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
    } else if (!saga || saga->seq == 0) {
        query_saga_from_store(work); /* it has left memory meanwhile */
    } else {
        struct breaker_waits waits = find_waits(work, saga, live, &waiting->list);

        saga_write_json_waiting(saga, &waits, &work->out);
        work_mask(work, saga, &work->out, 0);
        work_done(work, ERR_OK, NULL);
    }
}

static bool may_wait_somewhere(struct work *work, const struct saga *saga, const struct live *live)
{
    struct wants wants = wants_of(saga, &work->arena);

    for (size_t i = 0; i < wants.count; i++) {
        if (may_wait(saga, live, &wants.items[i], loop_wall_ms(work->engine->loop))) {
            return true;
        }
    }
    return false;
}

static void ask_for_breakers(struct work *work, const struct saga *saga, const struct live *live)
{
    struct waiting *waiting = arena_alloc(&work->arena, sizeof(*waiting));

    waiting->work = work;
    waiting->saga = live ? NULL : saga;
    waiting->list = (struct guard_list){.read = {.arena = &work->arena, .done = on_guards, .context = waiting},
                                        .namespace = work->namespace};
    store_guard_list(work->engine->store, &waiting->list);
}

void saga_answer(struct work *work, const struct saga *saga, const struct live *live)
{
    uint32_t debts = saga_debt_count(saga);

    if (saga->phase != PHASE_ENDED && may_wait_somewhere(work, saga, live)) {
        ask_for_breakers(work, saga, live);
        return;
    }
    saga_write_json(saga, &work->out);
    work_mask(work, saga, &work->out, 0);
    if (debts == 0 || work->out.overflow) {
        work_done(work, ERR_OK, NULL);
    } else {
        ask_for_settlements(work, saga, debts);
    }
}
