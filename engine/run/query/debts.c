/*
 * What stands: the effects of sagas that ended abandoned, which nobody will undo any more. There is no table of them;
 * abandoned sagas are walked through, newest first, and their logs say what stands.
 */
#include "base/json.h"
#include "run/query/debt_groups.h"
#include "run/query/filter.h"
#include "store/cases.h"

#define LIMIT_DEFAULT 50
#define SUMS_MS_MAX 10000

struct debt { /* one that the walk has found */
    struct saga_id saga;
    struct op_key key;
    size_t at, len; /* the place of its JSON in the text */
};

/*
 * The walk finds debts until there are as many as one page has; then the store says which of them are settled. Where
 * some are left out for that, the walk goes on.
 */
struct debts {
    struct walk *walk;
    struct debt_groups *groups; /* NULL: a list */
    struct slice tool;          /* SLICE_NONE: any */
    bool has_settled, settled;
    size_t limit, shown;
    struct buffer text;
    struct debt *found;
    struct saga_id *sagas;
    size_t count, capacity, saga_count;
    int64_t until_ms; /* the instant by the clock of this boot at which sums look no further */
    bool more;        /* the walk may find more */
    bool is_full;     /* the walk ended because there are enough for a page */
    struct debt_settled read;
};

static bool is_wanted(const struct debts *debts, const struct saga *saga, uint32_t step)
{
    return saga_has_debt(saga, step) &&
           (!debts->tool.len || slice_equal(saga_tool(saga, step, DIRECTION_DO)->name, debts->tool));
}

static void write_debt(const struct saga *saga, uint32_t step, struct buffer *out)
{
    const struct operation *op = &saga->steps[step].forward;
    char id[UUID_TEXT_BYTES], key[UUID_TEXT_BYTES];
    struct json_writer w;

    uuid_text(&saga->id.uuid, id);
    uuid_text(&op->key.uuid, key);
    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "saga", id);
    json_write_slice(&w, "saga_name", saga->definition->name);
    json_write_slice(&w, "business_id", saga->business_id);
    json_write_raw(&w, "tags", saga->tags.ptr ? saga->tags : SLICE("{}"));
    json_write_slice(&w, "step", saga->definition->steps[step].id);
    json_write_slice(&w, "tool", saga_tool(saga, step, DIRECTION_DO)->name);
    json_write_text(&w, "operation", key);
    json_write_text(&w, "took_effect", took_effect_name(saga_took_effect(saga, step)));
    if (operation_cost_is_known(saga, step, DIRECTION_DO)) {
        json_write_i64(&w, "cost", op->cost_micros);
    } else {
        json_write_null(&w, "cost");
    }
    json_write_slice(&w, "currency", saga_tool(saga, step, DIRECTION_DO)->currency);
    json_write_raw(&w, "result", op->result.ptr ? op->result : SLICE("null"));
    json_write_instant(&w, "since", op->last_sent_ms);
    json_write_instant(&w, "ended_at", saga->ended_ms);
    json_object_end(&w);
}

static void add_debt(struct debts *debts, const struct saga *saga, uint32_t step)
{
    struct arena *arena = &debts->walk->work->arena;
    size_t at = debts->text.len;

    if (debts->count == debts->capacity) {
        struct debt *found = debts->found;

        debts->capacity = debts->capacity ? 2 * debts->capacity : 64;
        debts->found = arena_array(arena, debts->capacity, sizeof(*debts->found));
        debts->sagas = arena_array(arena, debts->capacity, sizeof(*debts->sagas));
        for (size_t i = 0; i < debts->count; i++) {
            debts->found[i] = found[i];
        }
    }
    write_debt(saga, step, &debts->text);
    work_mask(debts->walk->work, saga, &debts->text, at);
    debts->found[debts->count++] = (struct debt){saga->id, saga->steps[step].forward.key, at, debts->text.len - at};
}

/* The debts of one saga are never parted: a page may be a few longer than its limit. */
static bool visit_saga(struct walk *walk, const struct saga_row *row, const struct saga *saga)
{
    struct debts *debts = walk->context;

    (void)row; /* the saga itself knows better */
    if (debts->shown + debts->count >= debts->limit && !debts->groups) {
        debts->is_full = true;
        return false;
    }
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (is_wanted(debts, saga, i)) {
            add_debt(debts, saga, i);
        }
    }
    return true;
}

static void end_list(struct debts *debts)
{
    struct walk *walk = debts->walk;
    char id[UUID_TEXT_BYTES];

    if (debts->groups) {
        debt_groups_write(debts->groups, &walk->work->out);
    } else if (debts->more && !uuid_is_nil(&walk->last.uuid)) {
        uuid_text(&walk->last.uuid, id);
        work_next_cursor(walk->work, slice_of(id));
    }
    buffer_put_char(&walk->work->out, ']');
    work_done(walk->work, ERR_OK, NULL);
}

static const struct debt_settled_row *settlement_of(const struct debts *debts, const struct debt *debt)
{
    for (size_t i = 0; i < debts->read.count; i++) {
        if (uuid_equal(&debts->read.rows[i].key.uuid, &debt->key.uuid)) {
            return &debts->read.rows[i];
        }
    }
    return NULL;
}

static void show_debts(struct debts *debts)
{
    struct buffer *out = &debts->walk->work->out;

    for (size_t i = 0; i < debts->count; i++) {
        const struct debt *debt = &debts->found[i];
        const struct debt_settled_row *row = settlement_of(debts, debt);

        if (debts->has_settled && debts->settled != (row != NULL)) {
            continue;
        }
        if (debts->groups) {
            debt_groups_add(debts->groups, (struct slice){buffer_slice(&debts->text).ptr + debt->at, debt->len});
            continue;
        }
        buffer_put_text(out, debts->shown++ > 0 ? "," : "");
        buffer_put_slice(out, (struct slice){buffer_slice(&debts->text).ptr + debt->at, debt->len - 1});
        buffer_printf(out, ",\"settled\":%.*s}", SLICE_ARG(row ? row->body : SLICE("null")));
    }
}

/* A walk ends early when it has looked at many sagas. Sums go on behind it for a while; where that is not enough, the
 * answer says how far they looked. */
static bool sums_go_on(struct debts *debts)
{
    struct work *work = debts->walk->work;

    if (!debts->more || !work->request || loop_boot_ms(work->engine->loop) >= debts->until_ms) {
        return false;
    }
    work->request->looked_ms = work->request->looked_count = 0;
    return true;
}

static void on_settled(struct store_read *read)
{
    struct debts *debts = read->context;
    struct walk *walk = debts->walk;

    if (work_read_failed(walk->work, read)) {
        return;
    }
    show_debts(debts);
    if (debts->groups ? sums_go_on(debts) : debts->is_full && debts->shown < debts->limit) {
        struct uuid begin = walk->begin;

        debts->is_full = false;
        debts->count = 0;
        buffer_reset(&debts->text);
        walk->page.before = walk->last.uuid;
        walk_all(walk);
        walk->begin = begin; /* what was looked at counts from the first page on */
    } else {
        end_list(debts);
    }
}

static void on_walked(struct walk *walk, bool more)
{
    struct debts *debts = walk->context;

    if (debts->text.overflow) {
        work_fail(walk->work, ERR_TOO_LARGE, "this page of debts is too large", "ask for fewer with `limit`");
        return;
    }
    debts->more = more;
    debts->saga_count = 0;
    for (size_t i = 0; i < debts->count; i++) {
        if (i == 0 || !uuid_equal(&debts->found[i].saga.uuid, &debts->found[i - 1].saga.uuid)) {
            debts->sagas[debts->saga_count++] = debts->found[i].saga;
        }
    }
    debts->read = (struct debt_settled){.read = {.arena = &walk->work->arena, .done = on_settled, .context = debts},
                                        .sagas = debts->sagas,
                                        .saga_count = debts->saga_count};
    if (debts->count == 0 && !(debts->groups && debts->more)) {
        end_list(debts);
    } else {
        store_debt_settled(walk->work->engine->store, &debts->read);
    }
}

static void release_text(void *object)
{
    buffer_fini(object);
}

void engine_list_debts(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct slice cursor = request->in.debts.cursor;

    if (work_refused(work)) {
        return;
    }
    struct debts *debts = arena_alloc(&work->arena, sizeof(*debts));
    struct walk *walk = walk_new(work);

    debts->walk = walk;
    debts->tool = arena_slice(&work->arena, request->in.debts.tool);
    debts->has_settled = request->in.debts.has_settled;
    debts->settled = request->in.debts.settled;
    debts->until_ms = loop_boot_ms(engine->loop) + SUMS_MS_MAX;
    if (request->in.debts.group_by.len) {
        debts->groups = debt_groups_new(work, request->in.debts.group_by);
        if (!debts->groups) {
            work_fail(work, ERR_MALFORMED, "debts are grouped by tool, saga and tag.NAME, at most 4 of them",
                      "such as group_by=tool,tag.customer");
            return;
        }
    }
    debts->limit = request->in.debts.limit ? request->in.debts.limit : LIMIT_DEFAULT;
    buffer_init(&debts->text, work->out.bytes_max);
    arena_on_release(&work->arena, release_text, &debts->text);
    walk->context = debts;
    walk->visit = visit_saga;
    walk->done = on_walked;
    walk->page.statuses = BIT(SAGA_ABANDONED);
    walk->page.names = filter_split(work, request->in.debts.saga, &walk->page.name_count);
    if (cursor.len && (!uuid_parse(cursor, &walk->page.before) || uuid_is_nil(&walk->page.before))) {
        work_bad_cursor(work);
        return;
    }
    buffer_put_char(&work->out, '[');
    walk_all(walk);
}
