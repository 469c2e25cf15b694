/*
 * Gathers the debts that a job settles: the sagas of the filter are walked through, their logs say what stands, and the
 * store says what of it somebody has settled already. A walk looks at a bounded number of sagas, so there may be
 * several.
 */
#include "run/bulk/freeze.h"
#include "run/query/filter.h"
#include "store/cases.h"

struct gathering { /* in the arena of its work */
    struct freeze *freeze;
    struct walk *walk;
    const struct slice *tools;
    size_t tool_count;
    struct saga_id *sagas; /* sagas that left debts, of this walk */
    size_t saga_count;
    size_t first; /* the first candidate of this walk */
    struct saga_input input;
    struct op_key *keys; /* the keys of the candidates of this walk */
    bool more;
    struct debt_settled read;
};

static bool add_debt(struct gathering *gathering, const struct saga *saga, uint32_t step)
{
    struct freeze *freeze = gathering->freeze;
    const struct operation *op = &saga->steps[step].forward;
    struct candidate candidate = {0};
    struct bulk_item item = {.saga = saga->id,
                             .saga_name = saga->definition->name,
                             .business_id = saga->business_id.len ? saga->business_id : SLICE_NONE,
                             .step = saga->definition->steps[step].id,
                             .key = op->key,
                             .attempts = operation_calls(op),
                             .verb = freeze->plan.verb,
                             .input = gathering->input};

    if (!freeze_aim(&item) || !freeze_keep(freeze, &candidate, &item)) {
        return true; /* larger than an item may be */
    }
    gathering->keys[freeze->count - gathering->first] = op->key;
    return freeze_add(freeze, candidate);
}

static bool visit_saga(struct walk *walk, const struct saga_row *row, const struct saga *saga)
{
    struct gathering *gathering = walk->context;
    struct freeze *freeze = gathering->freeze;
    size_t before = freeze->count;

    (void)row; /* the saga itself knows better */
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (saga_has_debt(saga, i) &&
            filter_has(gathering->tools, gathering->tool_count, saga_tool(saga, i, DIRECTION_DO)->name) &&
            !add_debt(gathering, saga, i)) {
            return false;
        }
    }
    if (freeze->count > before) {
        gathering->sagas[gathering->saga_count++] = saga->id;
    }
    return true;
}

static void walk_on(struct gathering *gathering);

static bool is_settled(const struct gathering *gathering, const struct op_key *key)
{
    for (size_t i = 0; i < gathering->read.count; i++) {
        if (uuid_equal(&gathering->read.rows[i].key.uuid, &key->uuid)) {
            return true;
        }
    }
    return false;
}

static void on_settled(struct store_read *read)
{
    struct gathering *gathering = read->context;
    struct freeze *freeze = gathering->freeze;
    size_t kept = gathering->first;

    if (read->code != ERR_OK) {
        freeze_fail(freeze, read->code, &read->err);
        return;
    }
    for (size_t i = gathering->first; i < freeze->count; i++) {
        if (!is_settled(gathering, &gathering->keys[i - gathering->first])) {
            freeze->candidates[kept++] = freeze->candidates[i];
        }
    }
    freeze->count = kept;
    walk_on(gathering);
}

static void on_walked(struct walk *walk, bool more)
{
    struct gathering *gathering = walk->context;
    struct freeze *freeze = gathering->freeze;

    if (freeze->over) {
        return;
    }
    gathering->more = more;
    gathering->read =
        (struct debt_settled){.read = {.arena = &walk->work->arena, .done = on_settled, .context = gathering},
                              .sagas = gathering->sagas,
                              .saga_count = gathering->saga_count};
    if (gathering->saga_count == 0) {
        walk_on(gathering);
    } else {
        store_debt_settled(walk->work->engine->store, &gathering->read);
    }
}

static void walk_on(struct gathering *gathering)
{
    struct freeze *freeze = gathering->freeze;
    struct walk *walk = gathering->walk;

    gathering->first = freeze->count;
    gathering->saga_count = 0;
    if (!gathering->more) {
        freeze_look(freeze);
        return;
    }
    if (!uuid_is_nil(&walk->last.uuid)) {
        walk->page.before = walk->last.uuid;
    }
    walk_all(walk);
}

void freeze_gather_debts(struct freeze *freeze)
{
    struct arena *arena = &freeze->work->arena;
    struct gathering *gathering = arena_alloc(arena, sizeof(*gathering));
    struct faults faults;

    faults_init(&faults, arena);
    bulk_plan_members(&freeze->plan, SLICE_NONE, arena, &gathering->input, &faults);
    gathering->freeze = freeze;
    gathering->tools = filter_split(freeze->work, freeze->plan.debt_tools, &gathering->tool_count);
    gathering->sagas = arena_array(arena, WALK_SAGAS_MAX, sizeof(*gathering->sagas));
    gathering->keys = arena_array(arena, freeze->most + 1, sizeof(*gathering->keys));
    gathering->more = true;
    gathering->walk = walk_new(freeze->work);
    gathering->walk->context = gathering;
    gathering->walk->visit = visit_saga;
    gathering->walk->done = on_walked;
    gathering->walk->page = freeze->sagas;
    walk_on(gathering);
}
