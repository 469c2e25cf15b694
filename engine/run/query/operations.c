/*
 * Operations, for reading only. They have no table, so their sagas are looked at. A list goes saga by saga, the newest
 * first, and within a saga step by step, the forward operation before its undo.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "run/query/filter.h"
#include "run/saga/live.h"
#include "run/saga/summon.h"

#define LIMIT_DEFAULT 50
#define PAGE_BYTES ((size_t)16 << 20) /* a page ends early when arguments and results are large */

static const char no_such_operation[] = "there is no operation with this key";
static const char list_operations[] = "`sagactl operations` lists them";

static const struct operation *operation_of(const struct saga *saga, uint32_t step, enum direction direction)
{
    return direction == DIRECTION_UNDO ? step_undo(&saga->steps[step]) : &saga->steps[step].forward;
}

/* Is there an operation? It is a call, known by its key. A call that was refused or skipped before it had a key never
 * was an operation, and groups and waits call nothing. */
static bool operation_exists(const struct saga *saga, uint32_t step, enum direction direction)
{
    const struct operation *op = operation_of(saga, step, direction);

    return op->state != OP_NONE && !uuid_is_nil(&op->key.uuid) && saga_tool(saga, step, direction) != NULL;
}

/* --- the list --- */

struct operations {
    const struct slice *tools, *states;
    size_t tool_count, state_count;
    int64_t now_ms; /* arguments and results that have expired by then are not shown */
    size_t limit, found;
    struct saga_id from; /* the saga of the cursor, from place `from_place` on; nil without a cursor */
    uint32_t from_place;
    struct saga_id stopped; /* the saga in which the page ended; nil when it did not */
    uint32_t stopped_place; /* 2 * step + direction */
    struct buffer text;     /* the text of one operation */
    struct find_saga find;  /* finds the run that is asked for */
};

static bool cursor_parse(struct slice cursor, struct operations *out)
{
    int64_t place = 0;

    if (cursor.len < UUID_TEXT_BYTES - 1 ||
        !uuid_parse((struct slice){cursor.ptr, UUID_TEXT_BYTES - 1}, &out->from.uuid)) {
        return false;
    }
    if (cursor.len == UUID_TEXT_BYTES - 1) {
        out->from_place = UINT32_MAX; /* leaves out the rest of this saga */
        return !uuid_is_nil(&out->from.uuid);
    }
    struct slice rest = {cursor.ptr + UUID_TEXT_BYTES, cursor.len - UUID_TEXT_BYTES};

    if (cursor.ptr[UUID_TEXT_BYTES - 1] != '.' || !slice_to_i64(rest, &place) || place < 0 || place >= UINT32_MAX) {
        return false;
    }
    out->from_place = (uint32_t)place;
    return !uuid_is_nil(&out->from.uuid);
}

/* Returns the next id. Lists go on before an id, and before its successor to see that id again. */
static struct uuid successor(struct uuid id)
{
    for (size_t i = sizeof(id.bytes); i-- > 0 && ++id.bytes[i] == 0;) {
    }
    return id;
}

/* Is the operation wanted? If so, its text is in operations->text. */
static bool operation_matches(struct operations *operations, const struct saga *saga, uint32_t step,
                              enum direction direction)
{
    if (!operation_exists(saga, step, direction)) {
        return false;
    }
    if (!filter_has(operations->tools, operations->tool_count, saga_tool(saga, step, direction)->name)) {
        return false;
    }
    buffer_reset(&operations->text);
    saga_write_operation_at(saga, step, direction, operations->now_ms, &operations->text);
    struct slice state = json_member(buffer_slice(&operations->text), "state");

    return filter_has(operations->states, operations->state_count, (struct slice){state.ptr + 1, state.len - 2});
}

static bool visit_operations(struct walk *walk, const struct saga_row *row, const struct saga *saga)
{
    struct operations *operations = walk->context;
    struct buffer *out = &walk->work->out;
    bool resumes = uuid_equal(&saga->id.uuid, &operations->from.uuid);

    (void)row; /* the saga itself is newer */
    for (uint64_t place = resumes ? operations->from_place : 0; place < (uint64_t)2 * saga->definition->step_count;
         place++) {
        uint32_t step = (uint32_t)(place / 2);
        enum direction direction = place % 2 ? DIRECTION_UNDO : DIRECTION_DO;

        if (!operation_matches(operations, saga, step, direction)) {
            continue;
        }
        if (operations->found == operations->limit ||
            (operations->found > 0 && out->len + operations->text.len > PAGE_BYTES)) {
            operations->stopped = saga->id;
            operations->stopped_place = (uint32_t)place;
            return false;
        }
        if (operations->found++ > 0) {
            buffer_put_char(out, ',');
        }
        size_t from = out->len;

        buffer_put_slice(out, buffer_slice(&operations->text));
        work_mask(walk->work, saga, out, from);
    }
    return true;
}

static void operations_end(struct walk *walk, bool more)
{
    struct operations *operations = walk->context;
    struct work *work = walk->work;
    char id[UUID_TEXT_BYTES];

    if (!uuid_is_nil(&operations->stopped.uuid)) {
        uuid_text(&operations->stopped.uuid, id);
        work_next_cursor(work, arena_printf(&work->arena, "%s.%u", id, operations->stopped_place));
    } else if (more && !uuid_is_nil(&walk->last.uuid)) {
        uuid_text(&walk->last.uuid, id);
        work_next_cursor(work, slice_of(id));
    }
    buffer_put_char(&work->out, ']');
    work_done(work, ERR_OK, NULL);
}

static bool is_registry_state(struct slice text)
{
    static const char *const names[] = {"pending", "in_flight", "completed", "failed", "unknown", "escalated"};

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (slice_is(text, names[i])) {
            return true;
        }
    }
    return false;
}

static bool are_registry_states(const struct slice *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_registry_state(texts[i])) {
            return false;
        }
    }
    return true;
}

static void release_buffer(void *object)
{
    buffer_fini(object);
}

static struct operations *operations_new(struct work *work)
{
    struct operations *operations = arena_alloc(&work->arena, sizeof(*operations));
    const struct engine_request *request = work->request;

    operations->tools = filter_split(work, request->in.operations.tool, &operations->tool_count);
    operations->states = filter_split(work, request->in.operations.state, &operations->state_count);
    operations->now_ms = loop_wall_ms(work->engine->loop);
    operations->limit = request->in.operations.limit ? request->in.operations.limit : LIMIT_DEFAULT;
    buffer_init(&operations->text, work->out.bytes_max);
    arena_on_release(&work->arena, release_buffer, &operations->text);
    return operations;
}

/* The reader gave the name of a run, or else the id of a saga. */
static void on_run_found(struct store_read *read)
{
    struct walk *walk = read->context;
    struct operations *operations = walk->context;

    if (read->code == ERR_OK) {
        walk_one(walk, operations->find.id);
    } else if (read->code != ERR_NOT_FOUND) {
        work_done(walk->work, read->code, &read->err);
    } else if (!uuid_is_nil(&walk->work->saga.uuid)) {
        walk_one(walk, walk->work->saga);
    } else {
        walk->done(walk, false);
    }
}

static void find_run(struct walk *walk, struct slice run)
{
    struct work *work = walk->work;
    struct operations *operations = walk->context;

    operations->find = (struct find_saga){.read = {.arena = &work->arena, .done = on_run_found, .context = walk},
                                          .business_digest = run_digest(work->namespace, run),
                                          .shard = run_shard(work->namespace, run)};
    store_find_saga(work->engine->store, &operations->find);
}

void engine_list_operations(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    struct slice run = request->in.operations.run, cursor = request->in.operations.cursor;

    if (work_refused(work)) {
        return;
    }
    struct operations *operations = operations_new(work);
    struct walk *walk = walk_new(work);

    walk->context = operations;
    walk->visit = visit_operations;
    walk->done = operations_end;
    if (!are_registry_states(operations->states, operations->state_count)) {
        work_fail(work, ERR_MALFORMED, "this is not a state of operations",
                  "they are pending, in_flight, completed, failed, unknown, escalated");
    } else if (cursor.len && !cursor_parse(cursor, operations)) {
        work_bad_cursor(work);
    } else {
        buffer_put_char(&work->out, '[');
        if (run.len) {
            (void)uuid_parse(run, &work->saga.uuid); /* otherwise the id stays nil */
            find_run(walk, run);
        } else {
            walk->page.before = operations->from_place == UINT32_MAX || uuid_is_nil(&operations->from.uuid)
                                    ? operations->from.uuid
                                    : successor(operations->from.uuid);
            walk_all(walk);
        }
    }
}

/* --- one, by its key --- */

/* Is this the operation's key? An operation with other arguments has another key, and the key before still finds it. */
static bool is_key_of(const struct saga *saga, uint32_t step, enum direction direction, const struct op_key *key)
{
    const struct operation *op = operation_of(saga, step, direction);
    char run[UUID_TEXT_BYTES];

    if (!operation_exists(saga, step, direction)) {
        return false;
    }
    if (uuid_equal(&op->key.uuid, &key->uuid)) {
        return true;
    }
    uuid_text(&saga->id.uuid, run);
    struct op_identity identity = {.namespace = saga->namespace,
                                   .run = saga->run.len ? saga->run : slice_of(run),
                                   .step = saga->definition->steps[step].name,
                                   .tool = saga_tool(saga, step, direction)->name,
                                   .scope = saga->steps[step].forward.scope,
                                   .direction = direction};

    for (identity.generation = 0; identity.generation < op->generation; identity.generation++) {
        struct op_key earlier = op_key_make(&identity);

        if (uuid_equal(&earlier.uuid, &key->uuid)) {
            return true;
        }
    }
    return false;
}

static bool visit_operation(struct walk *walk, const struct saga_row *row, const struct saga *saga)
{
    struct work *work = walk->work;
    const struct op_key *key = &work->store.operation.key;

    (void)row;
    for (uint32_t step = 0; step < saga->definition->step_count; step++) {
        for (enum direction direction = DIRECTION_DO; direction < DIRECTION_COUNT; direction++) {
            if (work->found == 0 && is_key_of(saga, step, direction, key)) {
                saga_write_operation_at(saga, step, direction, loop_wall_ms(work->engine->loop), &work->out);
                if (!work->is_own) {
                    work_mask(work, saga, &work->out, 0);
                }
                work->found++;
            }
        }
    }
    return true;
}

static void operation_end(struct walk *walk, bool more)
{
    struct work *work = walk->work;

    (void)more; /* only one saga is looked at */
    if (work->found > 0) {
        work_done(work, ERR_OK, NULL);
    } else {
        work_fail(work, ERR_NOT_FOUND, no_such_operation, list_operations);
    }
}

void work_find_operation(struct work *work, const struct op_key *key, void (*done)(struct store_read *read))
{
    work->store.operation = (struct find_operation){
        .read = {.arena = &work->arena, .done = done, .context = work}, .key = *key, .namespace = work->namespace};
    store_find_operation(work->engine->store, &work->store.operation);
}

bool work_found_operation(struct work *work)
{
    const struct store_read *read = &work->store.operation.read;

    if (read->code == ERR_NOT_FOUND) {
        work_fail(work, ERR_NOT_FOUND, no_such_operation, list_operations);
    } else if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
    }
    return read->code == ERR_OK;
}

static void on_operation_found(struct store_read *read)
{
    struct work *work = read->context;

    if (!work_found_operation(work)) {
        return;
    }
    struct walk *walk = walk_new(work);

    walk->visit = visit_operation;
    walk->done = operation_end;
    walk_one(walk, work->store.operation.id);
}

void query_operation(struct work *work, const struct op_key *key)
{
    work_find_operation(work, key, on_operation_found);
}

void engine_get_operation(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (!work_refused(work)) {
        work->is_own = request->in.operation.is_own;
        query_operation(work, &request->in.operation.key);
    }
}
