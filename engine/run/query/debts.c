/*
 * What stands: the effects of sagas that ended abandoned, which nobody will undo any more. There is no table of them;
 * abandoned sagas are walked through, newest first, and their logs say what stands.
 */
#include "base/json.h"
#include "run/query/filter.h"

#define LIMIT_DEFAULT 50

struct debts {
    struct slice tool; /* SLICE_NONE: any */
    size_t limit, found;
};

static bool is_debt(const struct debts *debts, const struct saga *saga, uint32_t step)
{
    const struct tool *tool = saga_tool(saga, step, DIRECTION_DO);
    enum took_effect took_effect = saga_took_effect(saga, step);

    return tool && saga->steps[step].forward.effect != EFFECT_READ && saga->steps[step].forward.attempts > 0 &&
           (took_effect == TOOK_EFFECT_YES || took_effect == TOOK_EFFECT_MAYBE) &&
           (!debts->tool.len || slice_equal(tool->name, debts->tool));
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
    if (op->cost_unknown.ptr) {
        json_write_null(&w, "cost");
    } else {
        json_write_i64(&w, "cost", op->cost_micros);
    }
    json_write_raw(&w, "result", op->result.ptr ? op->result : SLICE("null"));
    json_write_instant(&w, "since", op->last_sent_ms);
    json_write_instant(&w, "ended_at", saga->ended_ms);
    json_object_end(&w);
}

/* The debts of one saga are never parted: a page may be a few longer than its limit. */
static bool visit_saga(struct walk *walk, const struct saga_row *row, const struct saga *saga)
{
    struct debts *debts = walk->context;

    (void)row; /* the saga itself knows better */
    if (debts->found >= debts->limit) {
        return false;
    }
    for (uint32_t i = 0; i < saga->definition->step_count; i++) {
        if (is_debt(debts, saga, i)) {
            if (debts->found++ > 0) {
                buffer_put_char(&walk->work->out, ',');
            }
            write_debt(saga, i, &walk->work->out);
        }
    }
    return true;
}

static void on_walked(struct walk *walk, bool more)
{
    char id[UUID_TEXT_BYTES];

    if (more && !uuid_is_nil(&walk->last.uuid)) {
        uuid_text(&walk->last.uuid, id);
        work_next_cursor(walk->work, slice_of(id));
    }
    buffer_put_char(&walk->work->out, ']');
    work_done(walk->work, ERR_OK, NULL);
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

    debts->tool = arena_slice(&work->arena, request->in.debts.tool);
    debts->limit = request->in.debts.limit ? request->in.debts.limit : LIMIT_DEFAULT;
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
