/* A person's word on the breaker of a tool: open, so that no call of it begins, or closed, so that calls are made. */
#include "run/request/act.h"

#include "base/json.h"
#include "base/log.h"
#include "run/call/limiter.h"
#include "store/guard.h"

struct asked { /* for a work of this file */
    struct work *work;
    struct slice tool, signature;
    bool is_open, has_none; /* has_none: the tool, as it is now, has no breaker */
    struct guard_breaker_set set;
};

static void on_set(struct store_read *read)
{
    struct asked *asked = read->context;
    struct work *work = asked->work;
    struct json_writer w;

    if (work_read_failed(work, read)) {
        return;
    }
    log_info("breaker_set", LOG_SLICE("namespace", work->namespace), LOG_SLICE("tool", asked->tool),
             LOG_TEXT("state", asked->is_open ? "open" : "closed"), LOG_SLICE("actor", work->actor));
    limiter_breaker_set(work->engine, work->namespace, asked->tool, asked->is_open);
    json_writer_init(&w, &work->out);
    json_object_begin(&w, NULL);
    json_write_slice(&w, "tool", asked->tool);
    json_write_text(&w, "breaker", asked->has_none ? "none" : asked->is_open ? "open" : "closed");
    json_write_raw(&w, "by", asked->signature);
    json_object_end(&w);
    work_done(work, ERR_OK, NULL);
}

/* Whoever opens a breaker that no call asks would believe that the tool rests. */
static bool may_be_set(struct work *work, const struct tool *tool, bool is_open)
{
    struct err err = {0};

    if (!tool) {
        (void)err_set(&err, ERR_NOT_FOUND, "there is no such tool");
        err_hint(&err, "list what is registered with GET /v1/tools");
    } else if (is_open && tool->breaker.failures == 0) {
        (void)err_set(&err, ERR_INVALID, "this tool has no breaker, so nothing would keep its calls from beginning");
        err_hint(&err, "hold the tool with POST /v1/holds, or register a version of it that has a `breaker`");
    }
    if (err.code != ERR_OK) {
        work_done(work, err.code, &err);
    }
    return err.code == ERR_OK;
}

void engine_set_breaker(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    const struct tool *tool;
    struct asked *asked;

    if (work_refused(work)) {
        return;
    }
    tool = definitions_find_tool(engine->definitions, work->namespace, request->in.breaker.tool);
    if (!may_be_set(work, tool, request->in.breaker.is_open)) {
        return;
    }
    asked = arena_alloc(&work->arena, sizeof(*asked));
    asked->work = work;
    asked->tool = arena_slice(&work->arena, request->in.breaker.tool);
    asked->signature = work_signature(work, request->in.breaker.note);
    asked->is_open = request->in.breaker.is_open;
    asked->has_none = tool->breaker.failures == 0; /* an earlier version may have had one, which sagas still use */
    asked->set = (struct guard_breaker_set){.read = {.arena = &work->arena, .done = on_set, .context = asked},
                                            .namespace = work->namespace,
                                            .tool = asked->tool,
                                            .open = asked->is_open ? asked->signature : SLICE_NONE};
    struct person_act *act = act_new(work, "breaker", "tool", asked->tool, request->in.breaker.note);

    if (act) {
        act->detail = asked->is_open ? SLICE("open") : SLICE("closed");
        act->tool = asked->tool;
    }
    asked->set.act = act_of_work(work);
    store_guard_breaker_set(engine->store, &asked->set);
}
