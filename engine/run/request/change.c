/*
 * The way of a verb, which is the same for all of them. Its target is found, its saga gets it here or at the engine
 * that owns it, and its turn is the answer. `extras` has what a verb does besides.
 *
 *   engine_change(), or change_deliver() for another engine's
 *     -> ON_SAGA -----------------------------------------+-> its extra, if any -> route_send() -> on_changed()
 *     -> ON_OPERATION: find its saga --------------------/
 *     -> ON_ESCALATION, ON_APPROVAL: find its row ------/
 */
#include "run/request/act.h"
#include "run/request/calling.h"

#include "base/json.h"
#include "run/query/walk.h"
#include "run/saga/live.h"

static const struct verb_extra extras[VERB_COUNT] = {
    [VERB_MEND] = {.send = mend_send},
    [VERB_RERUN] = {.send = rerun_send, .ended = rerun_ended},
    [VERB_ABORT] = {.send = abort_send},
    [VERB_SIGNAL] = {.ended = signal_ended, .answer = signal_answer},
    [VERB_RESOLVE] = {.send = verdict_send},
    [VERB_RESOLVE_OPERATION] = {.send = verdict_send, .ended = debt_ended},
    [VERB_ACKNOWLEDGE] = {.found = remark_found},
    [VERB_ASSIGN] = {.found = remark_found},
    [VERB_COMMENT] = {.found = remark_found},
    [VERB_BYPASS] = {.answer = bypass_answer},
    [VERB_COST] = {.ended = cost_ended, .answer = cost_answer},
};

static bool asks(const struct verb *verb)
{
    return verb->on == ON_ESCALATION || verb->on == ON_APPROVAL;
}

static const struct verb_extra *extra_of(const struct work *work)
{
    return &extras[work->verb - verbs];
}

static enum question_kind question_kind_of(const struct verb *verb)
{
    return verb->on == ON_APPROVAL ? QUESTION_APPROVAL : QUESTION_ESCALATION;
}

/* --- the answer --- */

/* No turn wrote the row: a probe has begun, or the question was answered before. */
static void on_answered(struct store_read *read)
{
    struct work *work = read->context;
    const struct question_row *row = work_question(work);

    if (row && !work_answered_before(work, row)) {
        work_show_question(work, row);
    }
}

/* Answers with the row that the awaited turn has written. A probe leaves the case open, and the row as it was, so the
 * row is read. */
static void answer_question(struct work *work)
{
    uint64_t number = *verb_number(work->verb, &work->mail.input);
    struct question_row row;

    if (question_of_turn(work->mail.live, question_kind_of(work->verb), number, &row)) {
        work_show_question(work, &row);
    } else {
        work_read_question(work, question_kind_of(work->verb), number, on_answered);
    }
}

static void answer_operation(struct work *work)
{
    const struct live *live = work->mail.live;
    const struct op_key *key = verb_key(work->verb, &work->mail.input);
    enum direction direction = DIRECTION_DO;
    uint32_t step = live->dropped ? STEP_NONE : saga_find_key(&live->saga, key, &direction);

    if (step == STEP_NONE) { /* not applied here, or it has another key by now */
        query_operation(work, key);
    } else {
        saga_write_operation_at(&live->saga, step, direction, loop_wall_ms(work->engine->loop), &work->out);
        work_mask(work, &live->saga, &work->out, 0);
        work_done(work, ERR_OK, NULL);
    }
}

/* Answers for work->saga, from memory or from its log. */
static void answer_saga(struct work *work)
{
    const struct live *live = live_find(work->engine, work->saga);

    if (live) {
        saga_write_json(&live->saga, &work->out);
        work_mask(work, &live->saga, &work->out, 0);
        work_done(work, ERR_OK, NULL);
    } else {
        query_saga_from_store(work);
    }
}

/* Answers from the state here. The turn is applied, and the saga may leave memory right after. */
static void change_answer(struct work *work)
{
    switch (work->verb->answer) {
    case ANSWER_SAGA:
        answer_saga(work);
        return;
    case ANSWER_OPERATION:
        answer_operation(work);
        return;
    case ANSWER_QUESTION:
        answer_question(work);
        return;
    case ANSWER_OWN:
        extra_of(work)->answer(work);
        return;
    }
    UNREACHABLE();
}

static void change_gives_up(struct work *work)
{
    work_fail(work, ERR_UNSETTLED, "something of this saga is not settled yet",
              "GET the saga to see what; complete it when everything is settled");
}

static void on_changed(struct mail *mail, enum err_code code, const struct err *err)
{
    struct work *work = container_of(mail, struct work, mail);
    const struct verb_extra *extra = extra_of(work);

    if (code == ERR_OK) {
        change_answer(work);
    } else if (code == ERR_UNSETTLED && work->verb->wait_ms && caller_has_patience(work)) {
        caller_wait(work, mail->live); /* the saga that refused is here */
    } else if (!(code == ERR_ENDED && extra->ended && extra->ended(work)) && !route_again(work, code)) {
        work_done(work, code == ERR_ENDED && asks(work->verb) ? ERR_DECIDED : code, err);
    }
}

/* --- what it is about --- */

static void change_found(struct work *work)
{
    const struct verb_extra *extra = extra_of(work);

    (extra->send ? extra->send : route_send)(work);
}

static void on_operation(struct store_read *read)
{
    struct work *work = read->context;

    if (work_found_operation(work)) {
        work->saga = work->store.operation.id;
        change_found(work);
    }
}

static void on_question(struct store_read *read)
{
    struct work *work = read->context;
    const struct question_row *row = work_question(work);

    if (!row || work_answered_before(work, row)) {
        return;
    }
    if (work->act) {
        work->act->saga = row->saga;
        work->act->saga_name = row->saga_name;
        work->act->business_id = row->business_id;
        work->act->tool = json_string(json_member(json_member(row->body, "evidence"), "tool"), &work->arena);
    }
    if (extra_of(work)->found) {
        extra_of(work)->found(work);
        return;
    }
    if (!row->open) {
        bool approval = work->verb->on == ON_APPROVAL;

        work_fail(work, ERR_DECIDED,
                  approval ? "this approval has been decided already, or is not wanted any more"
                           : "this escalation has been resolved already",
                  approval ? "`sagactl approvals N` shows by whom and how"
                           : "`sagactl escalations N` shows by whom and how");
        return;
    }
    work->saga = row->saga;
    if (work->verb->on == ON_APPROVAL) {
        work->mail.input.decision.started_by = row->started_by; /* every engine that decides reads it there */
    }
    if (!case_takes(work, row)) {
        change_found(work);
    }
}

static void change_find(struct work *work)
{
    uint64_t number;

    switch (work->verb->on) {
    case ON_SAGA:
        change_found(work);
        return;
    case ON_OPERATION:
        work_find_operation(work, verb_key(work->verb, &work->mail.input), on_operation);
        return;
    case ON_ESCALATION:
    case ON_APPROVAL:
        number = *verb_number(work->verb, &work->mail.input);
        if (number == 0) { /* 0 would mean all of them */
            work_no_question(work, question_kind_of(work->verb));
        } else {
            work_read_question(work, question_kind_of(work->verb), number, on_question);
        }
        return;
    }
    UNREACHABLE();
}

static void change_begin(struct work *work)
{
    const struct change *change = &work->request->in.change;
    size_t bytes_max = work->engine->options.payload_bytes_max;
    struct err err = {0};

    work->verb = &verbs[change->verb];
    const struct verb_member *large = verb_too_large(work->verb, &change->input, bytes_max);

    if (large) {
        (void)err_set(&err, ERR_TOO_LARGE, "\"%s\" is larger than allowed", large->name);
        err_detail(&err, "at most %zu bytes are taken", bytes_max);
        err_hint(&err, "keep large bodies elsewhere and pass a reference");
        work_done(work, ERR_TOO_LARGE, &err);
        return;
    }
    route_prepare(work, change->saga, change->wait_ms);
    work->calling->again = route_send;
    work->calling->give_up = change_gives_up;
    verb_copy(work->verb, &change->input, work->actor, &work->arena, &work->mail.input);
    work->mail.done = on_changed;
    act_of_change(work);
    change_find(work);
}

void engine_change(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (!work_refused(work)) {
        change_begin(work);
    }
}

void change_deliver(struct engine *engine, struct engine_request *request, const struct uuid *inbox_id)
{
    struct work *work = work_of_delivery(engine, request, inbox_id);

    if (work) {
        change_begin(work);
    }
}
