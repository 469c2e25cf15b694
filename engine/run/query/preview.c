/*
 * What each verb would lead to. The saga is read back from its log, and the verbs are played on it. Nothing is sent to
 * the owner, so any engine may answer; the preview does not have what is under way and not durable yet.
 *
 * The play of a large saga takes seconds. It is played in slices, between which the loop does everything else. All
 * previews under way share one slice.
 */
#include "run/request/work.h"
#include "run/saga/cases.h"

#define SLICE_STEPS 100000u /* some 5 ms */
#define SLICE_PAUSE_MS 2

static void release_place(void *engine)
{
    CHECK(((struct engine *)engine)->works->previews_under_way > 0);
    ((struct engine *)engine)->works->previews_under_way--;
}

static void play_slice(struct timer *timer)
{
    struct work *work = container_of(timer, struct work, timer);
    struct engine *engine = work->engine;

    if (!work->request) { /* nobody waits for the result any more */
        work_done(work, ERR_TIMEOUT, NULL);
    } else if (preview_play(work->preview, SLICE_STEPS / engine->works->previews_under_way + 1)) {
        work_done(work, ERR_OK, NULL);
    } else {
        timer_start(engine->loop, &work->timer, SLICE_PAUSE_MS, play_slice);
    }
}

static void on_read(struct store_read *read)
{
    struct work *work = read->context;
    struct engine *engine = work->engine;

    if (work_saga_read_failed(work, read)) {
        return;
    }
    const struct saga *saga = work_fold(work);

    if (!saga) {
        return;
    }
    if (work->asked.escalation && saga->escalation.number != work->asked.escalation) {
        work_fail(work, ERR_DECIDED, "this escalation has been resolved already",
                  "`sagactl escalations N` shows by whom and how");
        return;
    }
    engine->works->previews_under_way++;
    arena_on_release(&work->reading, release_place, engine);
    work->preview = preview_new(saga, &work->asked, loop_wall_ms(engine->loop), &work->reading, &work->out);
    play_slice(&work->timer);
}

static void read_saga(struct work *work, struct saga_id id)
{
    work->saga = id;
    work->read = (struct read_saga){
        .read = {.arena = &work->reading, .done = on_read, .context = work}, .id = id, .namespace = work->namespace};
    store_read_saga(work->engine->store, &work->read);
}

static void on_escalation(struct store_read *read)
{
    struct work *work = read->context;
    const struct question_row *row = work_question(work);

    if (!row) {
        return;
    }
    if (question_is_case(row)) {
        work_fail(work, ERR_CONFLICT, "no log tells of this case, so that nothing can be played", NULL);
    } else {
        read_saga(work, row->saga);
    }
}

static void on_operation(struct store_read *read)
{
    struct work *work = read->context;

    if (work_found_operation(work)) {
        read_saga(work, work->store.operation.id);
    }
}

void engine_preview(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (work_refused(work)) {
        return;
    }
    work->asked = (struct preview_question){
        .escalation = request->in.preview.escalation, .key = request->in.preview.key, .steps_max = PREVIEW_STEPS_MAX};
    if (work->asked.escalation) {
        work_read_question(work, QUESTION_ESCALATION, work->asked.escalation, on_escalation);
    } else if (!uuid_is_nil(&work->asked.key.uuid)) {
        work_find_operation(work, &work->asked.key, on_operation);
    } else if (saga_id_shard(request->in.preview.id) >= SHARD_COUNT) {
        work_no_saga(work);
    } else {
        read_saga(work, request->in.preview.id);
    }
}
