/* Walks over many sagas one after the other. Each one comes from memory when it is there, and is otherwise folded from
 * its log. */
#include "run/query/walk.h"

#include "base/log.h"
#include "run/saga/fold.h"
#include "run/saga/live.h"

#define PAGE_SAGAS 50

static void walk_step(struct deferred *deferred);

struct walk *walk_new(struct work *work)
{
    struct walk *walk = arena_alloc(&work->arena, sizeof(*walk));

    walk->work = work;
    arena_init(&walk->arena, 16384);
    arena_tie(&work->arena, &walk->arena);
    return walk;
}

const struct saga *walk_live(struct engine *engine, struct saga_id id, struct slice namespace)
{
    const struct live *live = live_shown(engine, id);

    if (!live || live->saga.seq == 0 || live->shard->state == SHARD_LOADING ||
        !slice_equal(live->saga.namespace, namespace)) {
        return NULL;
    }
    return &live->saga;
}

/* Each step comes from the loop, so that the answer of the last read is freed only when nobody is inside its `done` any
 * more. */
static void walk_on(struct walk *walk)
{
    loop_defer(walk->work->engine->loop, &walk->deferred, walk_step);
}

/* --- pages of the table --- */

static void on_page(struct store_read *read)
{
    struct walk *walk = read->context;

    if (work_read_failed(walk->work, read)) {
        return;
    }
    walk->at = 0;
    walk_on(walk);
}

/* --- the end, where not all was looked at --- */

static void on_looked(struct store_read *read)
{
    struct walk *walk = read->context;

    if (work_read_failed(walk->work, read)) {
        return;
    }
    work_looked(walk->work, uuid_v7_ms(&walk->last.uuid), walk->looked.count);
    walk->done(walk, true);
}

static void walk_cut(struct walk *walk)
{
    walk->page.before = walk->begin;
    walk->page.edge = walk->last.uuid;
    walk->looked = (struct count_looked){.read = {.arena = &walk->work->arena, .done = on_looked, .context = walk},
                                         .list = &walk->page};
    store_count_looked(walk->work->engine->store, &walk->looked);
}

static void walk_page(struct walk *walk)
{
    struct work *work = walk->work;

    walk->page.read = (struct store_read){.arena = &work->arena, .done = on_page, .context = walk};
    walk->page.namespace = work->namespace;
    walk->page.limit = PAGE_SAGAS;
    store_list_sagas(work->engine->store, &walk->page);
}

/* --- one saga --- */

/* Visits a saga. Returns false when the walk has ended. */
static bool walk_visit(struct walk *walk, const struct saga *saga)
{
    if (!walk->visit(walk, walk->one ? NULL : &walk->page.rows[walk->at], saga)) {
        walk->done(walk, true);
        return false;
    }
    return true;
}

/* Goes on to the next saga, whether or not this one was visited. */
static void walk_next(struct walk *walk, struct saga_id id)
{
    walk->last = id;
    walk->at++;
    walk->looked_at++;
    walk_on(walk);
}

static void on_read(struct store_read *read)
{
    struct walk *walk = read->context;
    struct work *work = walk->work;
    const struct saga *saga = NULL;
    struct err err = {0};

    if (read->code == ERR_OK) {
        saga = fold_turns(work->engine, walk->read.id, work->namespace, walk->read.turns, walk->read.turn_count,
                          &walk->arena, &err);
        if (!saga && walk->one) {
            work_done(work, ERR_CORRUPT, &err);
            return;
        }
        if (!saga) {
            log_error("saga_unreadable", LOG_UUID("saga", &walk->read.id.uuid), LOG_ERR(&err));
        }
    } else if (read->code != ERR_NOT_FOUND) {
        work_done(work, read->code, &read->err);
        return;
    }
    if (!saga || walk_visit(walk, saga)) {
        walk_next(walk, walk->read.id);
    }
}

static void walk_look(struct walk *walk, struct saga_id id)
{
    struct work *work = walk->work;
    const struct saga *live = walk_live(work->engine, id, work->namespace);

    if (live) {
        if (walk_visit(walk, live)) {
            walk_next(walk, id);
        }
        return;
    }
    walk->read = (struct read_saga){
        .read = {.arena = &walk->arena, .done = on_read, .context = walk}, .id = id, .namespace = work->namespace};
    store_read_saga(work->engine->store, &walk->read);
}

static void walk_step(struct deferred *deferred)
{
    struct walk *walk = container_of(deferred, struct walk, deferred);

    arena_reset(&walk->arena);
    if (!walk->work->request) {
        work_done(walk->work, ERR_TIMEOUT, NULL); /* nobody waits for the result any more */
    } else if (walk->one) {
        walk->done(walk, false);
    } else if (walk->at < walk->page.count) {
        if (walk->looked_at >= WALK_SAGAS_MAX) {
            walk_cut(walk);
        } else {
            walk_look(walk, walk->page.rows[walk->at].id);
        }
    } else if (walk->page.has_edge) {
        walk->last.uuid = walk->page.edge;
        walk_cut(walk);
    } else if (walk->page.count < PAGE_SAGAS) {
        walk->done(walk, false);
    } else {
        walk->page.before = walk->page.rows[walk->page.count - 1].id.uuid;
        walk_page(walk);
    }
}

void walk_all(struct walk *walk)
{
    walk->begin = walk->page.before;
    walk_page(walk);
}

void walk_one(struct walk *walk, struct saga_id id)
{
    walk->one = true;
    walk_look(walk, id);
}

/* --- cursors --- */

void work_next_cursor(struct work *work, struct slice cursor)
{
    if (work->request) {
        work->request->next_cursor = arena_slice(work->request->arena, cursor);
    }
}

void work_looked(struct work *work, int64_t back_to_ms, int64_t count)
{
    if (work->request) {
        work->request->looked_ms = back_to_ms;
        work->request->looked_count = count;
    }
}

void work_bad_cursor(struct work *work)
{
    work_fail(work, ERR_MALFORMED, "the cursor is not one that this list has answered with",
              "leave it out to begin at the newest; then pass on `next_cursor` as it is");
}
