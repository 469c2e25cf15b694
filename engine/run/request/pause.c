/* An operator stops the clocks of a saga, and lets it go on; also what a loop has paused or closed. */
#include "run/request/calling.h"

/* --- pause --- */

static void on_paused(struct mail *mail, enum err_code code, const struct err *err)
{
    struct work *work = container_of(mail, struct work, mail);

    if (code == ERR_OK) {
        answer_saga(work);
    } else if (!route_again(work, code, inbox_pause)) {
        work_done(work, code, err);
    }
}

static void pause_begin(struct work *work)
{
    const struct engine_request *request = work->request;

    route_prepare(work, request->in.pause.id, 0);
    work->mail.input =
        (struct saga_input){.type = SAGA_INPUT_PAUSE,
                            .pause = {.actor = work->actor, .note = arena_slice(&work->arena, request->in.pause.note)}};
    work->mail.done = on_paused;
    route_send(work, inbox_pause);
}

void engine_pause_saga(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (!work_refused(work)) {
        pause_begin(work);
    }
}

void pause_deliver(struct engine *engine, struct engine_request *request, const struct uuid *inbox_id)
{
    struct work *work = work_of_delivery(engine, request, inbox_id);

    if (work) {
        pause_begin(work);
    }
}

/* --- resume --- */

static void on_resumed(struct mail *mail, enum err_code code, const struct err *err)
{
    struct work *work = container_of(mail, struct work, mail);

    if (code == ERR_OK) {
        answer_saga(work);
    } else if (!route_again(work, code, inbox_resume)) {
        work_done(work, code, err);
    }
}

static void resume_begin(struct work *work)
{
    const struct engine_request *request = work->request;

    route_prepare(work, request->in.resume.id, 0);
    work->mail.input = (struct saga_input){
        .type = SAGA_INPUT_RESUME,
        .resume = {.actor = work->actor, .note = arena_slice(&work->arena, request->in.resume.note)}};
    work->mail.done = on_resumed;
    route_send(work, inbox_resume);
}

void engine_resume_saga(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (!work_refused(work)) {
        resume_begin(work);
    }
}

void resume_deliver(struct engine *engine, struct engine_request *request, const struct uuid *inbox_id)
{
    struct work *work = work_of_delivery(engine, request, inbox_id);

    if (work) {
        resume_begin(work);
    }
}
