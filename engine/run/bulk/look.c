/*
 * Looks at the candidates of a set, some at a time. An element of a request finds its saga and operation here, and the
 * preview says how the saga would answer the item now.
 */
#include "run/bulk/freeze.h"

#include "base/json.h"
#include "run/saga/fold.h"
#include "store/business.h"

#define LOOKS_MAX 2000 /* the most candidates of a filter; the elements of a request are all looked at */
#define LOOK_MS_MAX 15000
#define NAMES_MAX 50 /* the definitions under which a business id is looked for */

static void look_end(struct look *look);

/* Ends a look at an element that matches nothing, or too much, or cannot be read. It is reported and never acted on. */
static void look_unmatched(struct look *look, struct slice reason)
{
    groups_add(&look->freeze->unmatched, reason, look->name, &look->freeze->work->arena);
    look_end(look);
}

/* Returns the only operation of the saga with an unknown outcome, or NULL. `count` becomes the number of such
 * operations. */
static const struct operation *in_doubt(const struct saga *saga, uint32_t *step, size_t *count)
{
    const struct operation *found = NULL;

    *count = 0;
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        const struct operation *both[] = {&saga->steps[i].forward, step_undo(&saga->steps[i])};

        for (size_t k = 0; k < COUNT_OF(both); k++) {
            if (both[k]->state == OP_UNKNOWN || both[k]->state == OP_PROBING ||
                (both[k]->state == OP_RETRYING && both[k]->earlier_maybe)) {
                found = both[k];
                *step = i;
                ++*count;
            }
        }
    }
    return found;
}

/* Chooses the operation of a saga named by its business id: the one of the open case, or the only one in doubt. */
static const char *choose_operation(struct bulk_item *item, const struct saga *saga)
{
    const struct operation *op;
    uint32_t step = STEP_NONE;
    size_t count;

    if (saga->escalation.number) {
        item->escalation = saga->escalation.number;
        bulk_item_set_round(item, saga_case_round(saga));
        step = saga->escalation.step;
        if (step != STEP_NONE) {
            op = saga->escalation.direction == DIRECTION_UNDO ? step_undo(&saga->steps[step])
                                                              : &saga->steps[step].forward;
            item->key = op->key;
            item->attempts = operation_calls(op);
        }
    } else {
        op = in_doubt(saga, &step, &count);
        if (count > 1) {
            return "several operations of the saga are in doubt: name one by its key";
        }
        if (!op) {
            return "nothing of the saga is in doubt";
        }
        item->key = op->key;
        item->attempts = operation_calls(op);
    }
    item->step = step == STEP_NONE ? SLICE_NONE : saga->definition->steps[step].id;
    return NULL;
}

/* Compares by the key. */
static const char *find_operation(struct bulk_item *item, const struct saga *saga)
{
    enum direction direction = DIRECTION_DO;
    uint32_t step = saga_find_key(saga, &item->key, &direction);
    const struct operation *op;

    if (step == STEP_NONE) {
        return "the operation has another key by now";
    }
    op = direction == DIRECTION_UNDO ? step_undo(&saga->steps[step]) : &saga->steps[step].forward;
    item->attempts = operation_calls(op);
    item->step = saga->definition->steps[step].id;
    if (saga->escalation.number && saga->escalation.step == step && saga->escalation.direction == direction) {
        item->escalation = saga->escalation.number;
        bulk_item_set_round(item, saga_case_round(saga));
    }
    return NULL;
}

/* A verdict without a case about it becomes a verdict on the operation. */
static void choose_verb(struct bulk_item *item)
{
    if (item->verb == VERB_RESOLVE && item->escalation == 0 && item->input.verdict.action == OPERATOR_RESOLVE) {
        item->verb = VERB_RESOLVE_OPERATION;
    }
}

/* A person who settles debts means what has ended. The same verdict would have a running saga undone. */
static bool is_debt(const struct bulk_item *item, const struct saga *saga)
{
    enum direction direction = DIRECTION_DO;
    uint32_t step = saga_find_key(saga, &item->key, &direction);

    return step != STEP_NONE && direction == DIRECTION_DO && saga_has_debt(saga, step);
}

static const char *resolve_asked(struct look *look, const struct saga *saga)
{
    struct bulk_item *item = &look->item;
    const char *why = NULL;

    item->saga = saga->id;
    item->saga_name = saga->definition->name;
    item->business_id = saga->business_id.len ? saga->business_id : SLICE_NONE;
    if (verbs[item->verb].on != ON_SAGA) {
        why = uuid_is_nil(&item->key.uuid) ? choose_operation(item, saga) : find_operation(item, saga);
        choose_verb(item);
    }
    if (!why && look->freeze->plan.settles && !is_debt(item, saga)) {
        why = "it is no debt: nothing of it stands since the end of its saga";
    }
    return why ? why : freeze_aim(item) ? NULL : "no case is open about it";
}

static void look_at_answer(struct look *look, const struct saga *saga)
{
    struct freeze *freeze = look->freeze;
    struct candidate *candidate = look->candidate;
    struct bulk_answer answer;

    bulk_preview(saga, &look->item, freeze->plan.note, loop_wall_ms(freeze->work->engine->loop), &look->arena, &answer);
    candidate->applies = answer.code == ERR_OK;
    candidate->says = arena_slice(&freeze->work->arena, candidate->applies ? answer.leads_to : answer.refusal);
}

static void on_read(struct store_read *read)
{
    struct look *look = read->context;
    struct freeze *freeze = look->freeze;
    const struct saga *saga = NULL;
    const char *why = NULL;
    struct err err = {0};

    if (freeze->over) {
        look_end(look);
        return;
    }
    if (read->code == ERR_OK) {
        saga = fold_turns(freeze->work->engine, look->read.id, freeze->work->namespace, look->read.turns,
                          look->read.turn_count, &look->arena, &err);
    } else if (read->code != ERR_NOT_FOUND) {
        freeze_fail(freeze, read->code, &read->err);
        look_end(look);
        return;
    }
    if (!saga) {
        look->candidate->body = SLICE_NONE;
        look_unmatched(look, read->code == ERR_NOT_FOUND ? SLICE("there is no such saga")
                                                         : SLICE("the log of the saga cannot be read"));
        return;
    }
    if (look->candidate->asked.ptr) {
        why = resolve_asked(look, saga);
        look->name = freeze_name(&look->item, &look->arena);
        if (!why && !freeze_keep(freeze, look->candidate, &look->item)) {
            why = "it is larger than allowed";
        }
        why = why ? why : freeze_repeats(freeze, look->candidate, &look->item);
    }
    look->candidate->name = arena_slice(&freeze->work->arena, look->name);
    if (why) {
        look_unmatched(look, slice_of(why));
    } else {
        look_at_answer(look, saga);
        look_end(look);
    }
}

static void read_saga(struct look *look, struct saga_id id)
{
    look->read = (struct read_saga){.read = {.arena = &look->arena, .done = on_read, .context = look},
                                    .id = id,
                                    .namespace = look->freeze->work->namespace};
    store_read_saga(look->freeze->work->engine->store, &look->read);
}

static void on_operation(struct store_read *read)
{
    struct look *look = read->context;

    if (look->freeze->over) {
        look_end(look);
    } else if (read->code == ERR_NOT_FOUND) {
        look_unmatched(look, SLICE("there is no operation with this key"));
    } else if (read->code != ERR_OK) {
        freeze_fail(look->freeze, read->code, &read->err);
        look_end(look);
    } else {
        read_saga(look, look->operation.id);
    }
}

/* --- look: a business id, under every name --- */

static void try_name(struct look *look);

static void on_named(struct store_read *read)
{
    struct look *look = read->context;

    if (look->freeze->over) {
        look_end(look);
    } else if (read->code == ERR_OK || read->code == ERR_NOT_FOUND) {
        if (read->code == ERR_OK) {
            look->names_found++;
            look->item.saga = look->find.id;
        }
        try_name(look);
    } else {
        freeze_fail(look->freeze, read->code, &read->err);
        look_end(look);
    }
}

static void find_by_name(struct look *look, struct slice name)
{
    struct digest digest = business_digest(look->freeze->work->namespace, name, look->item.business_id);

    look->find = (struct find_saga){.read = {.arena = &look->arena, .done = on_named, .context = look},
                                    .business_digest = digest,
                                    .shard = digest_shard(&digest)};
    store_find_saga(look->freeze->work->engine->store, &look->find);
}

static void try_name(struct look *look)
{
    const struct freeze *freeze = look->freeze;
    struct slice named = json_string(json_member(look->candidate->asked, "saga"), &look->arena);
    size_t count = named.ptr ? 1 : freeze->name_count + 1;

    if (look->names_tried < count) {
        size_t i = look->names_tried++;

        find_by_name(look, named.ptr ? named : i < freeze->name_count ? freeze->names[i]->name : SLICE(OPEN_SAGA_NAME));
    } else if (look->names_found == 0) {
        look_unmatched(look, SLICE("there is no saga with this business id"));
    } else if (look->names_found > 1) {
        look_unmatched(look, SLICE("several sagas have this business id: name the definition in \"saga\""));
    } else {
        read_saga(look, look->item.saga);
    }
}

static void look_at_asked(struct look *look)
{
    struct freeze *freeze = look->freeze;
    struct slice asked = look->candidate->asked;
    struct slice key = json_string(json_member(asked, "operation"), &look->arena);
    struct slice business_id = json_string(json_member(asked, "business_id"), &look->arena);
    struct slice id = json_string(json_member(asked, "id"), &look->arena), names[] = {key, business_id, id};
    struct faults faults;
    size_t named = 0;

    look->name = SLICE("an item without a name");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        look->name = names[i].ptr ? names[i] : look->name;
        named += names[i].ptr != NULL;
    }
    look->item = (struct bulk_item){.verb = freeze->plan.verb, .business_id = business_id};
    faults_init(&faults, &look->arena);
    if (json_type(asked) == JSON_OBJECT) {
        bulk_plan_members(&freeze->plan, asked, &look->arena, &look->item.input, &faults);
    }
    if (named != 1) {
        look_unmatched(look, SLICE("an item has \"operation\", \"business_id\" or \"id\""));
    } else if (faults.count > 0) {
        struct slice at = faults.items[0].pointer;

        look_unmatched(look, arena_printf(&look->arena, "%.*s%s%.*s", SLICE_ARG(at), at.len ? ": " : "",
                                          SLICE_ARG(faults.items[0].detail)));
    } else if (key.ptr && !uuid_parse(key, &look->item.key.uuid)) {
        look_unmatched(look, SLICE("this is not the key of an operation"));
    } else if (id.ptr && !uuid_parse(id, &look->item.saga.uuid)) {
        look_unmatched(look, SLICE("this is not the id of a saga"));
    } else if (id.ptr) {
        read_saga(look, look->item.saga);
    } else if (key.ptr) {
        look->operation =
            (struct find_operation){.read = {.arena = &look->arena, .done = on_operation, .context = look},
                                    .key = look->item.key,
                                    .namespace = freeze->work->namespace};
        store_find_operation(freeze->work->engine->store, &look->operation);
    } else if (freeze->name_count > NAMES_MAX && !json_member(asked, "saga").ptr) {
        look_unmatched(look, SLICE("this namespace has many definitions: name the one that is meant in \"saga\""));
    } else {
        try_name(look);
    }
}

/* --- look: all of them, some at a time --- */

static void look_begin(struct look *look, struct candidate *candidate)
{
    struct arena arena = look->arena;

    *look = (struct look){.freeze = look->freeze, .candidate = candidate, .arena = arena, .busy = true};
    look->freeze->under_way++;
    if (candidate->asked.ptr) {
        look_at_asked(look);
    } else if (bulk_item_read(candidate->body, &look->arena, &look->item)) {
        look->name = freeze_name(&look->item, &look->arena);
        read_saga(look, look->item.saga);
    } else {
        candidate->body = SLICE_NONE;
        look_unmatched(look, SLICE("it is larger than allowed"));
    }
}

/* Comes from the loop, so that a look that ends at once does not end inside its caller. */
static void on_look_end(struct deferred *deferred)
{
    struct look *look = container_of(deferred, struct look, deferred);
    struct freeze *freeze = look->freeze;

    arena_reset(&look->arena);
    look->busy = false;
    freeze->under_way--;
    if (!freeze->over) {
        freeze_look(freeze);
    } else if (freeze->under_way == 0) {
        work_done(freeze->work, freeze->work->code, &freeze->work->err);
    }
}

static void look_end(struct look *look)
{
    loop_defer(look->freeze->work->engine->loop, &look->deferred, on_look_end);
}

static bool looks_are_enough(const struct freeze *freeze)
{
    return freeze->next == freeze->count ||
           (freeze->plan.of != BULK_OF_ITEMS &&
            (freeze->next >= LOOKS_MAX || loop_boot_ms(freeze->work->engine->loop) >= freeze->looks_until_ms));
}

void freeze_look(struct freeze *freeze)
{
    struct err err = {0};

    if (freeze->looks_until_ms == 0) {
        freeze->looks_until_ms = loop_boot_ms(freeze->work->engine->loop) + LOOK_MS_MAX;
    }
    if (!freeze->work->request) {
        freeze_fail(freeze, err_set(&err, ERR_TIMEOUT, "nobody waits for it any more"), &err);
        return;
    }
    for (size_t i = 0; i < LOOKS_AT_ONCE && !looks_are_enough(freeze); i++) {
        if (!freeze->looks[i].busy) {
            freeze->looks[i].freeze = freeze;
            look_begin(&freeze->looks[i], &freeze->candidates[freeze->next++]);
        }
    }
    if (freeze->under_way == 0) {
        freeze_write(freeze);
    }
}
