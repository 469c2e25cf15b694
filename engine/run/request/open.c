/* What ends an open saga well, and what an operator does to one: sign one more execution off. */
#include "run/request/calling.h"

#include "base/json.h"

#define RETRY_AFTER_MS 1000

/* --- complete --- */

static void send_complete(struct work *work)
{
    route_send(work, inbox_complete);
}

static void complete_gives_up(struct work *work)
{
    work_fail(work, ERR_UNSETTLED, "something of this saga is not settled yet",
              "GET the saga to see what; complete it when everything is settled");
}

static void on_completed(struct mail *mail, enum err_code code, const struct err *err)
{
    struct work *work = container_of(mail, struct work, mail);

    if (code == ERR_OK) {
        answer_saga(work);
    } else if (code == ERR_UNSETTLED && caller_has_patience(work)) {
        caller_wait(work, mail->live); /* said by the saga that it was decided for, which is here */
    } else if (!route_again(work, code, inbox_complete)) {
        work_done(work, code, err);
    }
}

static void complete_begin(struct work *work)
{
    const struct engine_request *request = work->request;

    route_prepare(work, request->in.complete.id, request->in.complete.wait_ms);
    work->calling->again = send_complete;
    work->calling->give_up = complete_gives_up;
    if (request->in.complete.output.len > work->engine->options.payload_bytes_max) {
        work_fail(work, ERR_TOO_LARGE, "the output is larger than allowed", NULL);
        return;
    }
    work->mail.input = (struct saga_input){
        .type = SAGA_INPUT_COMPLETE,
        .complete = {.output = arena_slice(&work->arena, request->in.complete.output), .actor = work->actor}};
    work->mail.done = on_completed;
    send_complete(work);
}

void engine_complete_saga(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (!work_refused(work)) {
        complete_begin(work);
    }
}

void complete_deliver(struct engine *engine, struct engine_request *request, const struct uuid *inbox_id)
{
    struct work *work = work_of_delivery(engine, request, inbox_id);

    if (work) {
        complete_begin(work);
    }
}

/* --- bypass --- */

static void write_bypass(const struct saga *saga, uint32_t step, struct buffer *out)
{
    const struct bypass *bypass = saga->steps[step].bypass;
    char key[UUID_TEXT_BYTES], fingerprint[65], at[INSTANT_TEXT_BYTES];
    struct json_writer w;

    CHECK(bypass); /* folded in the turn that is over right now; only a later one can use it up */
    uuid_text(&saga->steps[step].forward.key.uuid, key);
    digest_hex(&bypass->fingerprint, fingerprint);
    instant_text(bypass->expires_ms, at);
    json_writer_init(&w, out);
    json_object_begin(&w, NULL);
    json_write_text(&w, "key", key);
    json_write_text(&w, "fingerprint", fingerprint);
    json_write_slice(&w, "reason", bypass->note);
    json_write_slice(&w, "actor", bypass->actor);
    json_write_text(&w, "expires_at", at);
    json_object_end(&w);
}

static void on_signed(struct mail *mail, enum err_code code, const struct err *err)
{
    struct work *work = container_of(mail, struct work, mail);
    const struct live *live = mail->live;
    enum direction direction = DIRECTION_DO;

    if (code != ERR_OK) {
        if (!route_again(work, code, inbox_bypass)) {
            work_done(work, code, err);
        }
        return;
    }
    if (live->dropped) { /* it has not been applied here */
        work_fail(work, ERR_FENCED, "it is signed, but another engine took the saga over in this moment",
                  "GET the operation to see it");
    } else {
        uint32_t step = saga_find_key(&live->saga, &mail->input.bypass.key, &direction);

        CHECK(step != STEP_NONE && direction == DIRECTION_DO); /* else it would not have been signed */
        write_bypass(&live->saga, step, &work->out);
        work_done(work, ERR_OK, NULL);
    }
}

static void on_operation(struct store_read *read)
{
    struct work *work = read->context;

    if (read->code == ERR_NOT_FOUND) {
        work_fail(work, ERR_NOT_FOUND, "there is no operation with this key", NULL);
    } else if (read->code != ERR_OK) {
        work_done(work, read->code, &read->err);
    } else {
        work->saga = work->store.operation.id;
        route_send(work, inbox_bypass);
    }
}

static void bypass_begin(struct work *work)
{
    const struct engine_request *request = work->request;

    route_prepare(work, (struct saga_id){0}, 0);
    work->mail.input = (struct saga_input){.type = SAGA_INPUT_BYPASS,
                                           .bypass = {.key = request->in.bypass.key,
                                                      .actor = work->actor,
                                                      .note = arena_slice(&work->arena, request->in.bypass.reason)}};
    work->mail.done = on_signed;
    work->store.operation =
        (struct find_operation){.read = {.arena = &work->arena, .done = on_operation, .context = work},
                                .key = request->in.bypass.key,
                                .namespace = work->namespace};
    store_find_operation(work->engine->store, &work->store.operation);
}

void engine_bypass(struct engine *engine, struct engine_request *request)
{
    struct work *work = work_new(engine, request);

    if (!work_refused(work)) {
        bypass_begin(work);
    }
}

void bypass_deliver(struct engine *engine, struct engine_request *request, const struct uuid *inbox_id)
{
    struct work *work = work_of_delivery(engine, request, inbox_id);

    if (work) {
        bypass_begin(work);
    }
}
