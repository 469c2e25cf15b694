/* Approvals: what waits for a person's yes or no, and that answer. The first one holds. */
#include "run/request/calling.h"

#include "base/json.h"
#include "run/query/walk.h"

#define LIMIT_DEFAULT 50

struct approvals { /* in the arena of its work */
    struct work *work;
    struct list_questions list;
};

static const char no_such_approval[] = "there is no approval with this number";
static const char list_them[] = "`sagactl approvals` lists the open ones";

static void read_approvals(struct work *work, const struct list_questions *what, void (*done)(struct store_read *read))
{
    struct approvals *approvals = arena_alloc(&work->arena, sizeof(*approvals));

    approvals->work = work;
    approvals->list = *what;
    approvals->list.kind = QUESTION_APPROVAL;
    approvals->list.read = (struct store_read){.arena = &work->arena, .done = done, .context = approvals};
    approvals->list.namespace = work->namespace;
    store_list_questions(work->engine->store, &approvals->list);
}

static void read_one(struct work *work, uint64_t number, void (*done)(struct store_read *read))
{
    struct list_questions one = {.number = number, .limit = 1};

    read_approvals(work, &one, done);
}

/* The one that was asked for. NULL: the work has been ended. */
static const struct question_row *the_one(struct store_read *read)
{
    const struct approvals *approvals = read->context;

    if (read->code == ERR_NOT_FOUND) {
        work_fail(approvals->work, ERR_NOT_FOUND, no_such_approval, list_them);
        return NULL;
    }
    if (read->code != ERR_OK) {
        work_done(approvals->work, read->code, &read->err);
        return NULL;
    }
    CHECK(approvals->list.count > 0); /* of one that is asked for by its number the store says that there is none */
    return &approvals->list.rows[0];
}

/* --- reading --- */

static void on_approval(struct store_read *read)
{
    struct approvals *approvals = read->context;
    const struct question_row *row = the_one(read);

    if (row) {
        work_show_question(approvals->work, row);
    }
}

static void on_approvals(struct store_read *read)
{
    struct approvals *approvals = read->context;

    work_show_questions(approvals->work, &approvals->list);
}

void engine_get_approvals(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);
    size_t limit = request->in.approvals.limit ? request->in.approvals.limit : LIMIT_DEFAULT;
    struct list_questions page = {.open_only = request->in.approvals.open_only, .limit = limit + 1};

    if (work_refused(work)) {
        return;
    }
    if (request->in.approvals.number) {
        read_one(work, request->in.approvals.number, on_approval);
        return;
    }
    page.status = arena_slice(&work->arena, request->in.approvals.status);
    if (work_read_question_cursor(work, request->in.approvals.cursor, &page)) {
        read_approvals(work, &page, on_approvals);
    }
}

/* --- deciding --- */

static void on_decided(struct mail *mail, enum err_code code, const struct err *err)
{
    struct work *work = container_of(mail, struct work, mail);

    if (code == ERR_OK) {
        read_one(work, mail->input.decision.approval, on_approval);
    } else if (!route_again(work, code, inbox_decide)) {
        work_done(work, code == ERR_ENDED ? ERR_DECIDED : code, err);
    }
}

static void on_found(struct store_read *read)
{
    struct approvals *approvals = read->context;
    struct work *work = approvals->work;
    const struct question_row *row = the_one(read);

    if (!row) {
        return;
    }
    if (!row->open) {
        work_fail(work, ERR_DECIDED, "this approval has been decided already, or is not wanted any more",
                  "`sagactl approvals N` shows by whom and how");
        return;
    }
    work->saga = row->saga;
    work->mail.done = on_decided;
    route_send(work, inbox_decide);
}

static void decide_begin(struct work *work)
{
    const struct engine_request *request = work->request;

    if (request->in.decision.number == 0) { /* that would ask for all of them */
        work_fail(work, ERR_NOT_FOUND, no_such_approval, list_them);
        return;
    }
    route_prepare(work, (struct saga_id){0}, 0);
    work->mail.input = (struct saga_input){.type = SAGA_INPUT_DECISION,
                                           .decision = {.approval = request->in.decision.number,
                                                        .approve = request->in.decision.approve,
                                                        .role = request->in.decision.role,
                                                        .hash = arena_slice(&work->arena, request->in.decision.hash),
                                                        .actor = work->actor,
                                                        .note = arena_slice(&work->arena, request->in.decision.note)}};
    read_one(work, request->in.decision.number, on_found);
}

void engine_decide(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (!work_refused(work)) {
        decide_begin(work);
    }
}

void decide_deliver(struct engine *engine, struct engine_request *request, const struct uuid *inbox_id)
{
    struct work *work = work_of_delivery(engine, request, inbox_id);

    if (work) {
        decide_begin(work);
    }
}
